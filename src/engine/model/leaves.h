/*
 * leaves.h - values of a grown tree's leaves, and adding them to the scores of its rows.
 */
#ifndef AG_LEAVES_H
#define AG_LEAVES_H

#include "engine/base/context.h"
#include "engine/model/grow.h"
#include "engine/model/objective.h"
#include "engine/model/split.h"

/* Some rows of one leaf: what a thread takes at a time. */
typedef struct AgLeafPiece
{
	int leaf;
	int64_t begin, end; /* within the grower's list */
} AgLeafPiece;

typedef struct AgLeaves
{
	AgLeafPiece *pieces;
	int64_t n_pieces, max_pieces;
	double *values;        /* [max_leaves] times the learning rate, in label units */
	_Atomic int64_t *sums; /* [max_leaves][2] fixed-point gradients and hessians */
} AgLeaves;

AgStatus ag_leaves_create(const AgContext *ctx, int max_leaves, int64_t n_rows, AgLeaves *leaves);
void ag_leaves_free(const AgContext *ctx, AgLeaves *leaves); /* all zero is allowed */

/*
 * Computes leaves->values of the tree that the grower holds from the unquantised gradients of each leaf's rows, in
 * fixed point, so that no order of adding matters. A tree without a split has the value 0.
 */
AgStatus ag_leaves_compute(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower,
						   const AgLoss *loss, const AgGradientRange *range,
						   const AgQuantum *quantum, const AgBoostParams *params);

/*
 * Where the objective says so, instead of those values: the percentile of what the leaf's rows lack, times the learning rate. No
 * penalty or bound on leaf values has a part in it.
 */
AgStatus ag_leaves_renew(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower,
						 const AgLoss *loss, int output, double learning_rate);

/* leaves->values from the sums that are in leaves->sums, by steps of per_g and per_h: the last part of ag_leaves_compute. */
void ag_leaves_set(AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss, double per_g,
				   double per_h, const AgQuantum *quantum, const AgBoostParams *params);
/* Fixed-point steps in a unit, so that the sums of n rows stay within 62 bits; 0: all are 0. */
void ag_leaves_scales(const AgGradientRange *range, int64_t n, double *per_g, double *per_h);

/* Adds the values to the scores of the rows that the tree was grown on. */
AgStatus ag_leaves_add(const AgContext *ctx, const AgLeaves *leaves, const AgGrower *grower,
					   const AgLoss *loss, int output);

#endif
