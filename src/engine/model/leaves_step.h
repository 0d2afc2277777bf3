/*
 * leaves_step.h - leaf values by several steps: each from the gradients where the last one led.
 *
 * One step of Newton's method goes as far as the curvature at the old scores says, which for probabilities near 0 or 1 is
 * not far enough, or too far. CatBoost takes several (Dorogush et al. 2018, "CatBoost: gradient boosting with
 * categorical features support").
 */
#ifndef AG_LEAVES_STEP_H
#define AG_LEAVES_STEP_H

#include "engine/base/context.h"
#include "engine/model/leaves.h"

/* How leaf values are found. */
typedef enum AgLeafMethod
{
	AG_LEAF_AUTO = 0, /* EXACT where the loss has it, else NEWTON */
	AG_LEAF_NEWTON,   /* sums of gradients over sums of hessians */
	AG_LEAF_GRADIENT, /* over sums of weights */
	AG_LEAF_EXACT     /* the percentile that is best */
} AgLeafMethod;

/* Room for steps. */
typedef struct AgLeafSteps
{
	double *scores; /* [n_rows] of the output in work, as they were; NULL: one step only */
	double *values; /* [max_leaves] so far */
} AgLeafSteps;

AgStatus ag_leaf_steps_create(const AgContext *ctx, const AgLoss *loss, int max_leaves,
							  AgLeafSteps *steps);
void ag_leaf_steps_free(const AgContext *ctx, AgLeafSteps *steps); /* all zero is allowed */
/* Bytes that the room takes. */
int64_t ag_leaf_steps_memory(const AgTrainData *data, int max_leaves);

/*
 * As ag_leaves_compute, in params->leaf_steps steps by params->leaf_method. The loss's gradients are those of the output; they and
 * the scores that steps went through are forgotten.
 */
AgStatus ag_leaves_step(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower,
						const AgLoss *loss, int output, const AgGradientRange *range,
						const AgQuantum *quantum, const AgBoostParams *params, AgLeafSteps *steps);

#endif
