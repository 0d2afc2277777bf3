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
#include "engine/model/boost.h"
#include "engine/model/lanes.h"
#include "engine/model/trees.h"

struct AgLoss;

/* How some families weigh gradients. */
typedef struct AgLossWeights
{
	double positive;           /* factor on rows of class 1 of two; 1: none */
	double multiclass_hessian; /* on p(1-p); 0: classes / (classes - 1) */
} AgLossWeights;

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
	bool is_per_class;      /* one score and one tree a class; else one */
	bool has_const_hessian; /* the hessian is the row's weight */
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
	AgLossWeights weights;
	int n_outputs;
	double unit;           /* gradients are real gradients / unit */
	double *base;          /* [n_outputs] */
	double *scores;        /* [n_outputs][n_rows] of the train rows */
	double *shared;        /* [n_rows] softmax: log of the sum of exponentials; else NULL */
	AgGradient *gradients; /* [n_rows] of the output in work */
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

/* The objective of a problem type; NULL when boosting has none for it. */
const AgObjective *ag_objective_of(AgProblem problem);

/* Room for scores and gradients, and the first scores. weights NULL: {1, 0}. The loss may be freed whatever this returns. */
AgStatus ag_loss_create(const AgContext *ctx, const AgTrainData *data, const AgLossWeights *weights,
						AgLoss *loss);
void ag_loss_free(const AgContext *ctx, AgLoss *loss);
/* Bytes that ag_loss_create takes. */
int64_t ag_loss_memory(const AgTrainData *data);

/* At the start of a round, before the gradients of its outputs. */
AgStatus ag_loss_begin_round(const AgContext *ctx, const AgLoss *loss);
/* g and h of one output for all train rows. */
AgStatus ag_loss_gradients(const AgContext *ctx, const AgLoss *loss, int output,
						   AgGradientRange *range);

#endif
