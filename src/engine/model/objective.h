/*
 * objective.h - what a booster minimises: first scores, gradients and hessians.
 *
 * One table entry an objective; a new loss is a new entry. Arrays are indexed by the row of the binned
 * matrix. Gradients are kept in units of `unit`, a power of two of the size of the residuals, so that
 * labels of any finite size fit a float; everything but the leaf values is computed in those units.
 */
#ifndef AG_OBJECTIVE_H
#define AG_OBJECTIVE_H

#include "engine/base/context.h"
#include "engine/base/device.h"
#include "engine/model/boost.h"
#include "engine/model/lanes.h"
#include "engine/model/percentile.h"
#include "engine/model/trees.h"

struct AgLoss;

/* What families let users choose of a loss, and how they weigh gradients. */
typedef struct AgLossParams
{
	AgLossKind kind;
	double alpha;              /* level of AG_LOSS_QUANTILE of one output */
	double delta;              /* where Huber, pseudo-Huber and fair losses bend, in label units */
	double power;              /* of Tweedie's variance, from 1 to below 2 */
	double step;               /* Poisson: the hessian is that of a score larger by it */
	double positive;           /* factor on rows of class 1 of two; 1: none */
	double multiclass_hessian; /* on p(1-p); 0: classes / (classes - 1) */
} AgLossParams;

/* Labels that an objective can be computed of. */
typedef enum AgLabelDomain
{
	AG_LABELS_ANY = 0,
	AG_LABELS_NOT_NEGATIVE,
	AG_LABELS_POSITIVE
} AgLabelDomain;

/* The largest gradient and hessian of some rows. */
typedef struct AgGradientRange
{
	float max_g; /* of absolute values */
	float max_h;
} AgGradientRange;

typedef struct AgObjective
{
	const char *name;
	AgLink link;
	bool is_per_output;     /* one score and one tree a class or level; else one */
	bool has_const_hessian; /* the hessian is the row's weight */
	bool renews_leaves;     /* a leaf's value is a percentile of its rows' errors */
	bool is_relative;       /* errors count in shares of the label, of 1 at least */
	bool has_level;         /* the percentile is of a level; else the middle one */
	AgLabelDomain domain;
	AgDeviceLoss on_device; /* what it is to a device; 0: nothing, it is learnt on the CPU */
	/* The scores before any tree: base[n_outputs], finite; may set loss->unit. */
	void (*base)(struct AgLoss *loss, double *base);
	/* What all outputs of a round share, for train rows [begin, end); NULL: nothing. */
	void (*begin_round)(const struct AgLoss *loss, int64_t begin, int64_t end);
	/* g and h of one output for train rows [begin, end) into loss->gradients. */
	void (*gradients)(const struct AgLoss *loss, int output, int64_t begin, int64_t end);
} AgObjective;

/* An objective on its data. */
typedef struct AgLoss
{
	const AgObjective *objective;
	const AgTrainData *data;
	AgLossParams params;
	int n_outputs;
	double unit;           /* gradients are real gradients / unit */
	double *base;          /* [n_outputs] */
	double *scores;        /* [n_outputs][n_rows] of the train rows */
	double *shared;        /* [n_rows] softmax: log of the sum of exponentials; else NULL */
	AgGradient *gradients; /* [n_rows] of the output in work */
	AgWeighed *items;      /* [n_train] scratch of renewed leaves; else NULL */
	int64_t n_rows;        /* of the binned matrix */
	AgCpuLevel level;
} AgLoss;

#define AG_WEIGHT_MAX 1e30 /* a heavier row still has gradients that fit a float */

static inline double
ag_row_weight(const AgTrainData *data, uint32_t row)
{
	if (data->weight == NULL)
		return 1.0;
	return data->weight[row] < AG_WEIGHT_MAX ? data->weight[row] : AG_WEIGHT_MAX;
}

/* Do n ascending rows, at least one, follow each other without a gap? */
static inline bool
ag_rows_are_dense(const uint32_t *rows, int64_t n)
{
	return (int64_t) rows[n - 1] - (int64_t) rows[0] == n - 1;
}

/* Of the train rows; 1 where they can't be weighed. */
double ag_mean_weight(const AgTrainData *data);

/* The sum of weights, or 0 when the weights can't weigh: then the caller counts rows alike. */
double ag_total_weight(const AgTrainData *data);

/* The objective of that kind for the data's problem, AUTO: the one that fits its metric; NULL when there is none. */
const AgObjective *ag_objective_of(const AgTrainData *data, AgLossKind kind);
/* Of numbers: what is minimised where a metric of regression is asked for, as AutoGluon's families choose it; and the table. */
AgLossKind ag_loss_kind_for(AgMetric metric);
const AgObjective *ag_number_objective(AgProblem problem, AgLossKind kind);
/* AG_ERR_DATA, naming the label, when some train row's can't be learnt by that objective. */
AgStatus ag_loss_check_labels(const AgContext *ctx, const AgObjective *objective,
							  const AgTrainData *data);

/*
 * Room for scores and gradients, and the first scores. params NULL: all 0 but positive 1. AG_ERR_DATA for labels out of the
 * objective's domain. The loss may be freed whatever this returns.
 */
AgStatus ag_loss_create(const AgContext *ctx, const AgTrainData *data, const AgLossParams *params,
						AgLoss *loss);
void ag_loss_free(const AgContext *ctx, AgLoss *loss);
/* Bytes that ag_loss_create takes. */
int64_t ag_loss_memory(const AgTrainData *data, const AgLossParams *params);

/* Where leaves are renewed: the percentile's level, a row's weight in it, and the largest weight of the train rows. */
double ag_loss_level(const AgLoss *loss, int output);
double ag_loss_error_weight(const AgLoss *loss, uint32_t row);
double ag_loss_largest_weight(const AgLoss *loss);

/* At the start of a round, before the gradients of its outputs. */
AgStatus ag_loss_begin_round(const AgContext *ctx, const AgLoss *loss);
/* g and h of one output for all train rows. */
AgStatus ag_loss_gradients(const AgContext *ctx, const AgLoss *loss, int output,
						   AgGradientRange *range);

#endif
