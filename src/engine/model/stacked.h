/*
 * stacked.h - the image of a model that has other members' predictions among its features.
 *
 * It says which members, in the order of its features, and holds the model's own image.
 */
#ifndef AG_STACKED_H
#define AG_STACKED_H

#include "engine/base/context.h"
#include "engine/data/format.h"
#include "engine/data/label.h"

#define AG_MAX_STACK_INPUTS 10000

typedef struct AgStacked
{
	const uint32_t *inputs; /* [n_inputs] ordinals of members */
	uint32_t n_inputs;
	const void *model; /* its image, 64-byte aligned, unchecked */
	size_t n_model;
} AgStacked;

AgStatus ag_stacked_write(const AgContext *ctx, const AgStacked *stacked, AgWriter *writer);
/* In place: data must outlive the result and be 64-byte aligned. Checks all but the model's own bytes: AG_ERR_CORRUPT. */
AgStatus ag_stacked_read(const AgContext *ctx, const void *data, size_t size, AgStacked *stacked);

/*
 * What of a prediction (its n_outputs numbers) is taken as features: all, but of two classes the second's probability alone.
 * How many they are, and which is the first.
 */
static inline int
ag_stack_width(AgProblem problem, int n_outputs)
{
	return problem == AG_PROBLEM_BINARY ? 1 : n_outputs;
}

static inline int
ag_stack_first(AgProblem problem)
{
	return problem == AG_PROBLEM_BINARY ? 1 : 0;
}

#endif
