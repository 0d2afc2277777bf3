/*
 * options.h - the options of ag_fit: one table for parsing, checking and documenting.
 *
 * The glue flattens the jsonb into entries (path, type, text); the engine checks them. So
 * hostile options are fuzzed without a server. Used on both sides: the backend checks before any
 * work is done, the trainer parses the same entries again.
 */
#ifndef AG_OPTIONS_H
#define AG_OPTIONS_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/data/features.h"
#include "engine/data/label.h"
#include "engine/model/family.h"
#include "engine/model/metric.h"

typedef enum AgJson
{
	AG_JSON_NULL = 0,
	AG_JSON_BOOL = 1,
	AG_JSON_NUMBER = 2,
	AG_JSON_STRING = 3,
	AG_JSON_OBJECT = 4, /* text: number of members */
	AG_JSON_ARRAY = 5   /* text: number of elements */
} AgJson;

/*
 * One node of the options' JSON tree, parents before children. path is a JSON pointer (RFC 6901):
 * "/hyperparameters/GBM/0/num_leaves"; the root itself has no entry. text: number and bool as JSON
 * writes them, string without quotes and unescaped.
 */
typedef struct AgOptionEntry
{
	const char *path;
	AgJson type;
	const char *text;
} AgOptionEntry;

#define AG_MAX_OPTION_ENTRIES 100000
#define AG_MAX_MODELS 200                  /* configurations in hyperparameters */
#define AG_BALANCE_WEIGHT "balance_weight" /* sample_weight that is no column */
#define AG_MAX_BAG_FOLDS 100
#define AG_MAX_BAG_SETS 20
#define AG_MAX_STACK_LEVELS 5

/* A row of the table (and of ag_options()). */
typedef struct AgOptionSpec
{
	const char *name;
	const char *type;   /* "boolean", "integer", "number", "text", "text or array", "object", ... */
	const char *range;  /* human: "0 to 4", "one of binary, multiclass, ..." */
	const char *normal; /* default, as JSON text */
	bool supported;     /* false: accepted by no release yet: AG_ERR_UNSUPPORTED when given */
	const char *help;   /* one line */
} AgOptionSpec;

const AgOptionSpec *ag_option_specs(int *n);

/* GPUs that nobody asked for, and "auto": as many as there are, and none is no fault. */
#define AG_GPUS_UNSAID (-1.0)
#define AG_GPUS_AUTO (-2.0)

/* Resources as asked for. */
typedef struct AgResourcesAsked
{
	double num_gpus; /* AG_GPUS_UNSAID, AG_GPUS_AUTO, or >= 0 */
	int num_cpus;    /* -1 auto, >= 1 */
} AgResourcesAsked;

typedef enum AgCalibrate
{
	AG_CALIBRATE_AUTO = 0, /* AutoGluon's rules */
	AG_CALIBRATE_OFF,
	AG_CALIBRATE_ON
} AgCalibrate;

/* Is there a trial first whether stacking helps? */
typedef enum AgDynamic
{
	AG_DYNAMIC_OFF = 0,
	AG_DYNAMIC_AUTO, /* where there is time */
	AG_DYNAMIC_ON
} AgDynamic;

/* Which models are fitted again on all rows. */
typedef enum AgRefit
{
	AG_REFIT_NONE = 0,
	AG_REFIT_BEST, /* the best one, and what it combines */
	AG_REFIT_ALL
} AgRefit;

/* Columns of a model's own (prep_params). */
typedef struct AgPrepAsked
{
	bool target, crosses, group_by;
} AgPrepAsked;

/* Are bags of families that can say it themselves one model that says of each row what it would without it? */
typedef enum AgChildOof
{
	AG_CHILD_OOF_AUTO = 0, /* where that is honest */
	AG_CHILD_OOF_OFF,
	AG_CHILD_OOF_ON
} AgChildOof;

/* Directions by column; columns without one are free. */
typedef struct AgMonotone
{
	int n;
	char **columns;
	int8_t *directions; /* -1, 0, 1 */
} AgMonotone;

/* One configuration to fit. */
typedef struct AgModelConfig
{
	const AgFamily *family;
	char name[64];          /* "GBM", "GBM_2", "LR", ... unique */
	void *params;           /* the family's structure; arena */
	int early_stop;         /* rounds without a gain; -1: the adaptive rule, 0: off */
	AgResourcesAsked asked; /* for each training: its ag_args_fit over the fit's, already merged */
	AgResourcesAsked bag;   /* for all folds of it together: "ag_args_fit" of ag_args_ensemble */
	double max_time_limit;  /* seconds; INFINITY: none */
	bool use_fp16;          /* asked for; a family it means nothing to says so */
	AgPrepAsked prep;
	double priority;            /* the higher, the earlier; of a set NAN: as it stands there */
	bool is_named;              /* its family was asked for by included_model_types */
	bool never_stacks;          /* not fitted above the first level */
	bool never_base;            /* no model of a higher level looks at it */
	uint32_t problems;          /* 1 << AgProblem of those that it is for; 0: all */
	const AgMonotone *monotone; /* its own, or the fit's; NULL: none */
	char *params_json;          /* what was given, as JSON, for the catalogue; arena */
	struct AgSearch *search;    /* that it is a trial of; NULL: of none */
	int trial;                  /* from 1 on */
} AgModelConfig;

/* A configuration that isn't fitted, and why: "can't predict quantiles: ...". */
typedef struct AgLeftOut
{
	char name[64];
	const char *why;
} AgLeftOut;

/* What an earlier fit made of one model. */
typedef struct AgReplayModel
{
	const char *name; /* "GBM_BAG_L1" */
	int n_children;   /* trained */
	int *rounds;      /* [n_children] that it was cut short after; 0: it ended by itself */
	int *children;    /* [n_children] which of a bag's they are, ascending; NULL: the first ones */
	const struct AgCuts *cuts; /* [n_children] what else the time decided; NULL: nothing */
	bool is_full;              /* fitted again on all rows */
	bool is_out_of_bag;        /* a bag of one child of all rows */
	int64_t n_sample;          /* rows that it learns from; 0: all of its split's */
	bool is_slow;              /* beyond the infer_limit */
	const char *config;        /* of a plan that is_refit: the configuration's name; else NULL */
} AgReplayModel;

/* An ensemble whose weighing the time cut short: what it came to. */
typedef struct AgReplayEnsemble
{
	const char *name;
	double value, single_value; /* NaN: unknown */
	int n_weights;
	double *weights;
} AgReplayEnsemble;

/* Where in its search's space a trial was. */
typedef struct AgReplayTrial
{
	const char *name; /* "GBM/T1" */
	int n;
	double *point;
} AgReplayTrial;

/* What models of a level above the first look at. */
typedef struct AgReplayLevel
{
	int n_inputs;
	const char **inputs;
} AgReplayLevel;

typedef struct AgReplay
{
	int n_models;
	AgReplayModel *models; /* no others are fitted */
	bool has_spare_set;    /* of folds, beside num_bag_sets: some models have children of it */
	int n_parts;           /* of the folds, for what stackers learn from; 0: there were none */
	int n_levels;          /* above the first */
	AgReplayLevel levels[AG_MAX_STACK_LEVELS];
	int n_ensembles;
	AgReplayEnsemble ensembles[AG_MAX_STACK_LEVELS + 1];
	bool is_calibrated;            /* the two are known */
	double temperature, threshold; /* 0: none */
	int n_trials;
	AgReplayTrial *trials;
	/*
	 * No repetition, but each model trained once, on all rows, with the rounds that are told, and under its name here; nothing is
	 * validated. The first ensemble weighs them, in their order.
	 */
	bool is_refit;
	const char *best; /* what predicts: a model or the ensemble */
	int n_shifts;     /* of its quantiles */
	double *shifts;
} AgReplay;

/* A search over hyperparameters, as asked for. */
typedef struct AgSearchAsked
{
	bool is_asked, is_random;
	int n_trials; /* of each search; 0: not said */
} AgSearchAsked;

typedef struct AgFitOptions
{
	char *name;        /* NULL: the default */
	double time_limit; /* seconds; NAN: not given */
	AgProblem problem;
	int n_quantiles;     /* with problem type quantile; else 0 */
	double *quantiles;   /* [n_quantiles] ascending */
	int *quantile_order; /* [n_quantiles] place in quantiles of the level that was asked for i-th */
	AgMonotone *monotone; /* NULL: none */
	AgMetric eval_metric; /* NONE: the default */
	int verbosity;        /* 0..4 */
	uint64_t random_state;
	double holdout_frac;  /* NAN: the rule */
	int num_bag_folds;    /* 0: none; -1: not given */
	int num_bag_sets;     /* 1.. */
	bool bag_sets_said;   /* by the user: no more than those */
	bool auto_stack;      /* folds and stack levels by the number of rows */
	int num_stack_levels; /* levels above the first; -1: not given */
	AgDynamic dynamic_stacking;
	AgCalibrate calibrate, calibrate_threshold;
	double infer_limit;                         /* seconds a row; NAN: none */
	double trial_time_frac, trial_holdout_frac; /* of the time and of the rows, for the trial */
	int max_base_models;          /* that a model of a higher level looks at; 0: no limit */
	int max_base_models_per_type; /* of one family; 0: no limit, -1: the rule */
	AgRefit refit_full;
	bool refit_said; /* by the user, and not by a preset */
	bool set_best_to_refit_full;
	bool retrain_full; /* models validated on rows held out are trained on these, too, at last */
	bool keep_only_best;
	bool fit_weighted_ensemble;
	AgChildOof
		use_child_oof; /* forests in bags: one of all rows, validated by its out-of-bag predictions */
	bool save_bag_folds;                   /* children of a bag that was fitted again are kept */
	bool folds_parallel, folds_sequential; /* as fold_fitting_strategy says; neither: as fits */
	int num_folds_parallel;                /* 0: as many as CPUs allow */
	double memory_limit_gb;                /* NAN: not given */
	AgResourcesAsked total;                /* num_cpus, num_gpus of the whole fit */
	char *sample_weight;                   /* a column, or AG_BALANCE_WEIGHT; NULL: none */
	char *groups;                          /* a column; NULL: none */
	bool weight_evaluation;                /* weights count in scores, too */
	bool use_bag_holdout;                  /* bags are scored on rows held out from all folds */
	bool bag_holdout_said;                 /* else a rule says so of very many rows */
	char *time_column;                     /* NULL: none */
	char *tuning_data;                     /* a table or query; NULL: none */
	AgReplay *replay;              /* NULL: none; else neither time nor memory decides anything */
	bool save_space;               /* nothing but what prediction needs is stored */
	bool dry_run;                  /* nothing is fitted, only planned */
	int64_t label_count_threshold; /* classes of fewer rows are left out; 0: none is */
	char *positive_class;          /* NULL: the rule */
	char *time_zone;               /* NULL: the session's */
	int n_ignored;
	char **ignored_columns;
	AgFeatureParams features; /* how columns become features */
	AgSearchAsked search;
	int n_models;
	AgModelConfig *models; /* in the order in which they are fitted; never empty */
	bool models_from_set;  /* chosen by us, not named by the user */
	int n_left_out;        /* configurations that can't do what is asked for */
	AgLeftOut *left_out;
	AgArena arena;
} AgFitOptions;

/*
 * Parses and checks. Errors: AG_ERR_OPTION (unknown name: with the nearest known one as hint; wrong type; out of
 * range: what it takes and what was given), AG_ERR_UNSUPPORTED ("option \"x\" is not supported yet").
 */
AgStatus ag_options_parse(AgMem *mem, const AgOptionEntry *entries, int n_entries,
						  AgFitOptions **options, AgError *err);
void ag_options_free(AgFitOptions *options);

/* Is there a preset of that name or alias? AG_ERR_OPTION with the nearest name as hint, AG_ERR_UNSUPPORTED. */
AgStatus ag_preset_check(const char *name, AgError *err);

/*
 * What a search tries for a parameter where nobody gives a space: "0.005 to 0.2, logarithmic", in text; NULL: it leaves that
 * parameter alone.
 */
const char *ag_search_default_text(AgFamilyId family, const AgParamSpec *spec, char *text,
								   size_t size);

/* The model of that name in options->replay; NULL: it was not fitted. */
const AgReplayModel *ag_replay_find(const AgFitOptions *options, const char *name);
const AgReplayEnsemble *ag_replay_ensemble(const AgFitOptions *options, const char *name);
/* What a plan that is_refit tells of a configuration; NULL: nothing, or there is no such plan. */
const AgReplayModel *ag_replay_refit(const AgFitOptions *options, const char *config);
/* The place of a child in what the plan tells of the model's; -1: it wasn't trained. */
int ag_replay_child(const AgReplayModel *model, int child);
/* Did the models of that level (2..) look at the one of that name? */
bool ag_replay_has_input(const AgFitOptions *options, int level, const char *name);

/* Does the metric fit the problem? AG_ERR_OPTION says which would. Also for the inferred problem type. */
AgStatus ag_options_check_metric(AgMetric metric, AgProblem problem, AgError *err);

#endif
