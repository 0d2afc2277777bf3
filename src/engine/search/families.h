/*
 * families.h - training a configuration of any family. Private to the fit.
 */
#ifndef AG_FAMILIES_H
#define AG_FAMILIES_H

#include <stdatomic.h>

#include "engine/data/bins.h"
#include "engine/data/pipeline.h"
#include "engine/model/dense.h"
#include "engine/model/cuts.h"
#include "engine/model/gbm.h"
#include "engine/model/prep_text.h"
#include "engine/model/history.h"
#include "engine/model/stages.h"
#include "engine/search/resources.h"

#define AG_FIT_SCORES 256 /* splits whose linear models of texts are kept */

/* Where texts have terms that models choose from: those of all rows, and linear models of them, by the split's number. */
typedef struct AgFitTexts
{
	AgTermRows terms;
	_Atomic(AgTextScore *) scores[AG_FIT_SCORES];
} AgFitTexts;

/*
 * The rows in the forms that families learn from, made when first asked for and shared by the models that want the
 * same. The caller owns table and pipeline.
 */
typedef struct AgFitRows
{
	const AgContext *ctx;
	const AgPipeline *pipeline;
	AgTable *table;
	AgBins *bins; /* NULL: none yet */
	AgBinParams bin_params;
	AgDense *dense; /* NULL: none yet */
	AgDenseMatrix *matrix;
	AgDenseParams dense_params;
	int dense_split;    /* number of the split whose training rows it was fitted on */
	uint32_t *n_levels; /* [features] for dense */
	/*
	 * Of a higher level: columns behind the pipeline's features, NaN where unknown, [n_extra][table's rows], the caller's; and
	 * the rows of the first level, whose bins are shared. Nothing of the table is given back then.
	 */
	int n_extra;
	const double *extra;
	struct AgFitRows *first_level; /* NULL: this is it */
	AgFitTexts *
		texts; /* of the first level; copies share it with whom they are copies of. NULL: none yet, or no texts */
} AgFitRows;

/* Length of the vectors that models on these rows learn from, and that they are given at prediction. */
int ag_fit_rows_features(const AgFitRows *rows);
int ag_fit_rows_width(const AgFitRows *rows);
/* values[i] = the feature of ids[i] (n of them), as a stored model of these rows gets it. Any number of threads. */
void ag_fit_rows_read(const AgFitRows *rows, uint32_t feature, const uint32_t *ids, int64_t n,
					  double *values);

void ag_fit_rows_free(AgFitRows *rows);

/* A model as it will be stored. */
typedef struct AgTrained
{
	uint8_t *image; /* 64-byte aligned; owned, ag_mem_free */
	size_t n_image;
	double *valid_proba; /* [n_valid][ag_train_outputs]; owned, ag_mem_free */
	double *oob_proba;   /* [n_train][ag_train_outputs], likewise, where it was wanted; else NULL */
	int rounds, rounds_run; /* kept and run; -1 for a family without rounds */
	const char *ended_by;   /* "patience", "time", ...; NULL when there is nothing to say */
	char note[200];         /* what the user should know; else empty */
	bool warns;             /* and it is a warning */
	bool on_gpu;            /* the context's gpu trained it */
	const AgGpuGrant *gpu;  /* which that was; NULL: the CPU */
	char cpu_because[300];  /* why not, where the context had a gpu */
	bool gpu_failed;        /* that is no matter of parameters */
	char half_because
		[200]; /* why it isn't in half precision, which was asked for, on a GPU; else empty */
	double fit_seconds;
	AgHistory history; /* no points: none was made */
	bool keeps_rounds; /* the image has all rounds that were run; ag_family_settle chooses */
	AgCuts cuts;       /* what the time decided in it */
	AgStages stages;   /* likewise of a net: what it said of the validation rows */
} AgTrained;

void ag_trained_free(const AgContext *ctx, AgTrained *trained);

/* One training, beside its data. */
typedef struct AgTraining
{
	const AgModelConfig *config;
	uint64_t seed;
	int split; /* number of the split that the data's rows are of: no other rows have the same */
	int max_rounds; /* of a family that grows in rounds, whatever the configuration says; 0: no such limit */
	bool
		wants_oob; /* of a forest whose parameters say so: what it says of its own rows, out of bag */
	bool last;     /* nobody needs the table's columns afterwards: they may be given back */
} AgTraining;

/*
 * Trains. data's bins are set here. A fault's text goes to ctx->error. Rows that are made for several models come from
 * rows->ctx.
 */
AgStatus ag_family_train(const AgContext *ctx, AgFitRows *rows, const AgTraining *training,
						 AgTrainData *data, AgTrained *trained);

/* Makes what trainings of that configuration share, so that several may run at the same time on copies of rows. */
AgStatus ag_family_prepare(const AgContext *ctx, AgFitRows *rows, const AgModelConfig *config);

/*
 * Of a model that was trained with keeps_rounds: chooses the round that its predictions of the validation rows are of. A booster is
 * cut there; a net's weights stay those of its best epoch. Others are left as they are.
 */
AgStatus ag_family_settle(const AgContext *ctx, const AgFitRows *rows, const uint32_t *valid_rows,
						  int64_t n_valid, int round, AgTrained *trained);

/* What the stored model says of rows of the table, out[n][outputs]. */
AgStatus ag_family_predict(const AgContext *ctx, const AgFitRows *rows, const AgTrained *trained,
						   const uint32_t *ids, int64_t n, double *out);

/* Do its models count rows by their weights? */
bool ag_family_uses_weights(AgFamilyId family);

/* Do both learn from the same form of the rows, so that the second doesn't need the table any more? */
bool ag_family_shares_rows(const AgModelConfig *a, const AgModelConfig *b);

/* Upper estimate of the memory that training takes beside the table, all forms of the rows included, in bytes. */
int64_t ag_family_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads);
/* What stays of it when it is trained: the model. */
int64_t ag_family_kept(const AgModelConfig *config, const AgTrainData *data);

#endif
