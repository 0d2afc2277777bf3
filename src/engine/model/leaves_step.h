/*
 * leaves_step.h - leaf values by several steps: each from the gradients where the last one led.
 *
 * One step of Newton's method goes as far as the curvature at the old scores says, which for probabilities near 0 or 1 is
 * not far enough, or too far. CatBoost takes several (Dorogush et al. 2018, "CatBoost: gradient boosting with
 * categorical features support"). A leaf whose step is hardly anything of its value so far takes no more: the large ones are
 * there after three or four, and it is the small ones, which the penalty holds back, that need the rest.
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

#define AG_STEP_LEAST 0x1.0p-12 /* of a leaf's value: smaller steps are its last */

/* Room for steps. */
typedef struct AgLeafSteps
{
	double *scores;   /* [n_rows] of the output in work, as they were; NULL: one step only */
	int32_t *classes; /* [n_train]; NULL: gradients aren't bounded */
	double *values;   /* [max_leaves] so far */
	uint8_t *is_done; /* [max_leaves] */
} AgLeafSteps;

AgStatus ag_leaf_steps_create(const AgContext *ctx, const AgLoss *loss, int max_leaves,
							  AgLeafSteps *steps);
void ag_leaf_steps_free(const AgContext *ctx, AgLeafSteps *steps); /* all zero is allowed */
/* Bytes that the room takes. */
int64_t ag_leaf_steps_memory(const AgTrainData *data, int max_leaves);

/* Before the first step. */
void ag_leaf_steps_begin(AgLeafSteps *steps, int n_leaves);
/*
 * leaves->values are those of the step-th, from 0: adds them to steps->values, where a leaf that takes no more steps gets 0. Does
 * any take more?
 */
bool ag_leaf_steps_take(AgLeafSteps *steps, AgLeaves *leaves, int n_leaves, int step);
/* The range that sums after the first step are scaled by: of the gradients, or, where they are bounded, what they can't pass. */
AgGradientRange ag_leaf_steps_range(const AgLeafSteps *steps, const AgGradientRange *range);

/*
 * As ag_leaves_compute, in params->leaf_steps steps by params->leaf_method. The loss's gradients are those of the output; they and
 * the scores that steps went through are forgotten.
 */
AgStatus ag_leaves_step(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower,
						const AgLoss *loss, int output, const AgGradientRange *range,
						const AgQuantum *quantum, const AgBoostParams *params, AgLeafSteps *steps);

#endif
