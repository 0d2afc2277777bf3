/*
 * leaves_step.c - leaf values by several steps.
 */
#include "engine/model/leaves_step.h"

#include <string.h>

#include "engine/base/threads.h"

#define AG_STEP_CHUNK 8192

AgStatus
ag_leaf_steps_create(const AgContext *ctx, const AgLoss *loss, int max_leaves, AgLeafSteps *steps)
{
	AG_TRY(ag_get(ctx, (size_t) loss->n_rows, sizeof(double), &steps->scores));
	return ag_get(ctx, (size_t) max_leaves, sizeof(double), &steps->values);
}

void
ag_leaf_steps_free(const AgContext *ctx, AgLeafSteps *steps)
{
	ag_mem_free(ctx->mem, steps->scores);
	ag_mem_free(ctx->mem, steps->values);
	memset(steps, 0, sizeof *steps);
}

int64_t
ag_leaf_steps_memory(const AgTrainData *data, int max_leaves)
{
	return data->bins->n_rows * 8 + max_leaves * INT64_C(8);
}

static void
weigh_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgLoss *loss = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		loss->gradients[row].h = (float) ag_row_weight(loss->data, row);
	}
}

/* Weights take the place of hessians. */
static void
weigh(const AgContext *ctx, const AgLoss *loss, AgGradientRange *range)
{
	ag_pool_run(ctx->pool, loss->data->n_train, AG_STEP_CHUNK, weigh_task, (void *) loss);
	range->max_h = 0.0f;
	for (int64_t i = 0; i < loss->data->n_train; i++)
	{
		float h = loss->gradients[loss->data->train_rows[i]].h;

		range->max_h = h > range->max_h ? h : range->max_h;
	}
}

AgStatus
ag_leaves_step(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss,
			   int output, const AgGradientRange *range, const AgQuantum *quantum,
			   const AgBoostParams *params, AgLeafSteps *steps)
{
	AgGradientRange at = *range;
	AgBoostParams own = *params;
	double *scores = loss->scores + output * loss->n_rows;
	size_t n = (size_t) grower->n_leaves;

	if (params->leaf_method == AG_LEAF_GRADIENT)
		weigh(ctx, loss, &at);
	if (params->leaf_steps <= 1 || n < 2)
		return ag_leaves_compute(ctx, leaves, grower, loss, &at, quantum, params);
	own.learning_rate = 1.0;
	memcpy(steps->scores, scores, (size_t) loss->n_rows * sizeof *scores);
	memset(steps->values, 0, n * sizeof *steps->values);
	for (int step = 0; step < params->leaf_steps; step++)
	{
		if (step > 0)
		{
			AG_TRY(ag_leaves_add(ctx, leaves, grower, loss, output));
			AG_TRY(ag_loss_begin_round(ctx, loss));
			AG_TRY(ag_loss_gradients(ctx, loss, output, &at));
			if (params->leaf_method == AG_LEAF_GRADIENT)
				weigh(ctx, loss, &at);
		}
		AG_TRY(ag_leaves_compute(ctx, leaves, grower, loss, &at, quantum, &own));
		for (size_t l = 0; l < n; l++)
			steps->values[l] += leaves->values[l];
	}
	for (size_t l = 0; l < n; l++)
		leaves->values[l] = steps->values[l] * params->learning_rate;
	memcpy(scores, steps->scores, (size_t) loss->n_rows * sizeof *scores);
	return ag_loss_begin_round(ctx, loss);
}
