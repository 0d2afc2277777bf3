/*
 * fit.h - one fit: the story from a table of rows to a stored predictor.
 */
#ifndef AG_FIT_H
#define AG_FIT_H

#include "engine/base/context.h"
#include "engine/base/device.h"
#include "engine/data/table.h"
#include "engine/search/options.h"
#include "engine/search/resources.h"

/* What stays when the fit is done; the sink copies what it needs. All texts UTF-8. */
typedef struct AgFittedPredictor
{
	AgProblem problem;
	AgMetric eval_metric;
	int64_t n_rows;
	int64_t n_rows_left_out;
	int n_classes;
	const AgClass *classes;
	const char *best_model;
	double score_val; /* higher is better */
	double fit_seconds;
	/* of two classes: above that probability a row is positive; 0: a half */
	double decision_threshold;
	const char *
		plan_json; /* the executed plan: options in force, seeds, folds, rounds; of a dry run what would be */
	const char *const *warnings;
	int n_warnings;
} AgFittedPredictor;

typedef struct AgFittedFeature
{
	int ordinal;
	const char *column;
	const char *sql_type;
	const char *kind; /* "number", "category", "date", "boolean", "text" */
	bool is_used;
	const char *became; /* "number", "category of 12 levels", "number, year, month, ..." or NULL */
	const char *dropped_why; /* NULL when used */
	int64_t n_missing;
	int64_t n_distinct;          /* -1 unknown */
	double min, max, mean;       /* NaN: none */
	const char *categories_json; /* array of the commonest levels (at most 100) or NULL */
} AgFittedFeature;

typedef struct AgFittedMember
{
	int ordinal;        /* 1.. ; part images use it */
	const char *name;   /* "GBM", "GBM_BAG_L1", "GBM_BAG_L1/S1F1", "WeightedEnsemble_L2" */
	const char *family; /* "GBM", "ENS_WEIGHTED" */
	int stack_level;
	int fold; /* of a bag's child: 1.., in the order in which they were fitted; else 0 */
	int fit_order;
	const char *params_json;             /* all hyperparameters as used */
	double score_val;                    /* higher is better; NaN: none */
	double fit_seconds, predict_seconds; /* own */
	const char *device;                  /* "cpu" */
	double num_gpus;
	int num_cpus;
	bool can_infer;
	int n_inputs; /* members whose weighted mean an ensemble or a bag is */
	const char *const *input_names;
	const double *input_weights;
	double temperature; /* of its probabilities when it is asked by itself; 0: as they are */
	/* what its quantiles, in ascending order, are moved by then; none of them: they stay */
	int n_shifts;
	const double *shifts;
	const char *history_json; /* how its metric went round by round; NULL: not known */
} AgFittedMember;

/*
 * The image of that number is no member's: the best model's predictions of the rows that it was scored on, from models trained
 * without them. u32 magic, version, outputs a row, flags; u64 rows; then for each row its label (i32 class, or f64), its predictions
 * in single precision and, where weights count in scores, its weight likewise (mean of all rows: 1). Rows come in the fit's own order.
 * Version 1 had no weights.
 */
#define AG_OOF_MEMBER INT32_MAX
#define AG_OOF_MAGIC UINT32_C(0x464f4741)
#define AG_OOF_VERSION 2
#define AG_OOF_CLASSES 1u /* flags */
#define AG_OOF_WEIGHTS 2u

/* Where results go; called in this order: predictor, features, members, parts. A failure ends the fit with it. */
typedef struct AgFitSink
{
	void *host;
	AgStatus (*predictor)(void *host, const AgFittedPredictor *predictor);
	AgStatus (*feature)(void *host, const AgFittedFeature *feature);
	AgStatus (*member)(void *host, const AgFittedMember *member);
	/* A member's image; member 0 is the pipeline's. */
	AgStatus (*image)(void *host, int member, const void *bytes, size_t n_bytes);
} AgFitSink;

typedef struct AgFitJob
{
	const AgFitOptions *options;
	const char *label_name; /* schema column with role LABEL */
	const char *time_zone;
	bool raw_text;
	int num_cpus;       /* granted */
	int64_t started_ns; /* ag_clock_ns() when the whole call began */
	AgGpuState gpu;     /* looked at only when a GPU was asked for */
	int gpu_limit;      /* GPUs that fits may use; -1: all there are */
	bool gpu_required;  /* a GPU asked for and not to be had is an error, not a WARNING */
	AgGpuNeed gpu_need; /* what the host leased for */
	int n_gpus;         /* granted */
	AgGpuGrant gpus[AG_MAX_GPUS];
	const AgDeviceOps *gpu_ops; /* to compute on them; NULL: nothing is */
} AgFitJob;

/*
 * AG_ERR_SYSTEM, with reason and cure, when a GPU was asked for, is required and can't be used on this machine: for the host,
 * before rows are read.
 */
AgStatus ag_fit_check_gpu(const AgFitJob *job, AgError *err);

/* What GPUs to lease for the rows that were read: gpu_need of the job. */
void ag_fit_need_gpu(AgFitJob *job, int64_t n_rows, int n_cpus);

/*
 * Memory that fitting the finished-reading table will take in all (the table included), an upper estimate in bytes: what the
 * host leases before ag_fit_run.
 */
int64_t ag_fit_memory(const AgTable *table, const AgFitOptions *options, int n_threads);

/*
 * Runs the fit on the rows read (not yet ag_table_finish'ed; the table's columns are given back on the way). ctx->deadline_ns
 * bounds it: the best so far is kept. A model that fails (memory, non-finite predictions) is skipped with a WARNING while
 * another works.
 */
AgStatus ag_fit_run(const AgContext *ctx, const AgFitJob *job, AgTable *table,
					const AgFitSink *sink);

#endif
