/*
 * ordered.h - ordered boosting: gradients of a row by models that haven't seen it.
 *
 * Prokhorenkova et al. 2018 ("CatBoost: unbiased boosting with categorical features"), section 5 and appendix B. In each of
 * several random orders the rows are cut where their number doubles: the rows before a cut are a body, those from there to the next cut its
 * tail. Each body has a model of its own, the trees of the boosting with leaf values of its rows alone, whose scores are kept for
 * body and tail. A tree is chosen in one of the orders: a leaf's value by a body's gradients is judged on the tail's. The model that is
 * kept has values by all rows. The models of bodies take one step to their values.
 */
#ifndef AG_ORDERED_H
#define AG_ORDERED_H

#include "engine/model/bootstrap.h"
#include "engine/model/grow.h"
#include "engine/model/objective.h"

#define AG_ORDERED_MOST 24         /* bodies of an order */
#define AG_ORDERED_FIRST 100       /* rows of the first body at most, and: */
#define AG_ORDERED_SHARE 50        /* not more than one in so many */
#define AG_ORDERED_UNIT 0x3fffffff /* what the largest gradient becomes */

typedef struct AgOrderedGradient
{
	int32_t g, h;
} AgOrderedGradient;

typedef struct AgOrdered
{
	const AgContext *ctx;
	const AgTrainData *data;
	int n_orders, n_bodies;
	int64_t ends[AG_ORDERED_MOST +
				 1]; /* body b is the first ends[b] of an order, its tail goes to ends[b + 1] */
	uint8_t *parts;  /* [n_orders][n_rows] 0: in all bodies; b + 1: in the tail of body b */
	uint32_t **rows; /* [n_orders][n_bodies] ascending, [ends[b + 1]] */
	double **scores; /* likewise, [n_outputs][ends[b + 1]] */
	/* the tree in work */
	AgLoss loss; /* its scores and gradients are scratch */
	int order;
	AgOrderedGradient *drawn; /* [n_bodies][n_rows] by each body's model, times the draw's weight */
	uint32_t *leaf_of;        /* [n_rows] */
	int n_threads;
	int64_t **sums; /* [n_threads] scratch */
	uint8_t **bins; /* [n_threads][n_rows] scratch */
} AgOrdered;

/* loss: the booster's own, whose objective and first scores the models share. AG_ERR_OPTION where its leaves
 * are percentiles. May be freed whatever this returns. */
AgStatus ag_ordered_create(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
						   AgOrdered *ordered);
void ag_ordered_free(const AgContext *ctx, AgOrdered *ordered); /* all zero is allowed */
int64_t ag_ordered_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads);

/*
 * Before a tree: all bodies' gradients of that output, under one draw of the rows, and the rows in ids; *n_rows 0: the gradients
 * are all 0. Their units are in *quantum.
 */
AgStatus ag_ordered_begin(AgOrdered *ordered, int order, int output, AgBootstrap *bootstrap,
						  uint64_t draw_key, uint32_t *ids, int64_t *n_rows, AgQuantum *quantum);
/* After it: the grower's tree with each body's own values, on its body and tail. */
AgStatus ag_ordered_add(AgOrdered *ordered, const AgGrower *grower, int output,
						const AgBoostParams *params);

/*
 * What all leaves add to the merit of every cut of a feature whose bins are bins[n_rows], as ag_level_add does: the tails' gradients
 * along the values of their bodies, and what it takes to have those values.
 */
void ag_ordered_score(const AgOrdered *ordered, const AgGrower *grower, const AgBinFeature *feature,
					  const uint8_t *bins, double l2, int thread, double *nums, double *dens);

#endif
