/*
 * leaves_step.c - leaf values by several steps.
 */
#include "engine/model/leaves_step.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"

#define AG_STEP_CHUNK 8192

/* Of two classes without weights g is within 1 and h within 1/4, wherever steps lead. */
static bool
is_bounded(const AgLoss *loss)
{
	return loss->objective->link == AG_LINK_SIGMOID && loss->data->weight == NULL &&
		   loss->params.positive == 1.0;
}

AgStatus
ag_leaf_steps_create(const AgContext *ctx, const AgLoss *loss, int max_leaves, AgLeafSteps *steps)
{
	AG_TRY(ag_get(ctx, (size_t) loss->n_rows, sizeof(double), &steps->scores));
	if (is_bounded(loss))
		AG_TRY(ag_get(ctx, (size_t) loss->data->n_train, sizeof(int32_t), &steps->classes));
	AG_TRY(ag_get(ctx, (size_t) max_leaves, sizeof(double), &steps->values));
	return ag_get(ctx, (size_t) max_leaves, 1, &steps->is_done);
}

void
ag_leaf_steps_free(const AgContext *ctx, AgLeafSteps *steps)
{
	ag_mem_free(ctx->mem, steps->scores);
	ag_mem_free(ctx->mem, steps->classes);
	ag_mem_free(ctx->mem, steps->values);
	ag_mem_free(ctx->mem, steps->is_done);
	memset(steps, 0, sizeof *steps);
}

int64_t
ag_leaf_steps_memory(const AgTrainData *data, int max_leaves)
{
	return data->bins->n_rows * 12 + max_leaves * INT64_C(9);
}

void
ag_leaf_steps_begin(AgLeafSteps *steps, int n_leaves)
{
	memset(steps->values, 0, (size_t) n_leaves * sizeof *steps->values);
	memset(steps->is_done, 0, (size_t) n_leaves);
}

bool
ag_leaf_steps_take(AgLeafSteps *steps, AgLeaves *leaves, int n_leaves, int step)
{
	bool goes_on = false;

	for (int l = 0; l < n_leaves; l++)
	{
		if (steps->is_done[l])
		{
			leaves->values[l] = 0.0;
			continue;
		}
		steps->values[l] += leaves->values[l];
		steps->is_done[l] =
			step > 0 && fabs(leaves->values[l]) <= AG_STEP_LEAST * fabs(steps->values[l]);
		goes_on = goes_on || !steps->is_done[l];
	}
	return goes_on;
}

AgGradientRange
ag_leaf_steps_range(const AgLeafSteps *steps, const AgGradientRange *range)
{
	return steps->classes != NULL ? (AgGradientRange){1.0f, 0.25f} : *range;
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

/* ---- steps of bounded gradients: in the order of the leaves, with nothing written but scores ---- */

typedef struct AgStepTask
{
	const AgContext *ctx;
	const AgLeaves *leaves;
	const AgGrower *grower;
	const AgLoss *loss;
	AgLeafSteps *steps;
	const double *scores;
	double per_g, per_h;
} AgStepTask;

static void
gather_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgStepTask *task = arg;

	(void) thread;
	for (int64_t p = begin; p < end; p++)
	{
		const AgLeafPiece *piece = task->leaves->pieces + p;
		const uint32_t *ids = task->grower->lists[task->grower->leaves[piece->leaf].list].ids;

		for (int64_t i = piece->begin; i < piece->end; i++)
		{
			task->steps->scores[i] = task->scores[ids[i]];
			task->steps->classes[i] = task->loss->data->class_of[ids[i]];
		}
	}
}

static void
step_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgStepTask *task = arg;

	(void) thread;
	for (int64_t p = begin; p < end && !ag_cancelled(task->ctx); p++)
	{
		const AgLeafPiece *piece = task->leaves->pieces + p;
		int64_t sum_g = 0, sum_h = 0;

		if (task->steps->is_done[piece->leaf])
			continue;
		ag_logistic_step(task->loss->level, piece->end - piece->begin,
						 task->leaves->values[piece->leaf], task->steps->scores + piece->begin,
						 task->steps->classes + piece->begin, task->per_g, task->per_h, &sum_g,
						 &sum_h);
		atomic_fetch_add_explicit(task->leaves->sums + 2 * piece->leaf, sum_g,
								  memory_order_relaxed);
		atomic_fetch_add_explicit(task->leaves->sums + 2 * piece->leaf + 1, sum_h,
								  memory_order_relaxed);
	}
}

/* All steps behind the first. */
static AgStatus
step_bounded(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss,
			 const double *scores, const AgQuantum *quantum, const AgBoostParams *params,
			 AgLeafSteps *steps)
{
	AgStepTask task = {ctx, leaves, grower, loss, steps, scores, 0.0, 0.0};
	AgGradientRange range = ag_leaf_steps_range(steps, NULL);

	ag_leaves_scales(&range, loss->data->n_train, &task.per_g, &task.per_h);
	ag_pool_run(ctx->pool, leaves->n_pieces, 1, gather_task, &task);
	for (int step = 1; step < params->leaf_steps; step++)
	{
		for (int l = 0; l < 2 * grower->n_leaves; l++)
			atomic_init(leaves->sums + l, 0);
		ag_pool_run(ctx->pool, leaves->n_pieces, 1, step_task, &task);
		AG_TRY(ag_check_cancel(ctx));
		ag_leaves_set(leaves, grower, loss, task.per_g, task.per_h, quantum, params);
		if (!ag_leaf_steps_take(steps, leaves, grower->n_leaves, step))
			break;
	}
	return AG_OK;
}

/* ---- steps of all gradients ---- */

static AgStatus
step_freely(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss,
			int output, const AgQuantum *quantum, const AgBoostParams *params, AgLeafSteps *steps)
{
	double *scores = loss->scores + output * loss->n_rows;
	AgGradientRange range;

	memcpy(steps->scores, scores, (size_t) loss->n_rows * sizeof *scores);
	for (int step = 1; step < params->leaf_steps; step++)
	{
		AG_TRY(ag_leaves_add(ctx, leaves, grower, loss, output));
		AG_TRY(ag_loss_begin_round(ctx, loss));
		AG_TRY(ag_loss_gradients(ctx, loss, output, &range));
		if (params->leaf_method == AG_LEAF_GRADIENT)
			weigh(ctx, loss, &range);
		AG_TRY(ag_leaves_compute(ctx, leaves, grower, loss, &range, quantum, params));
		if (!ag_leaf_steps_take(steps, leaves, grower->n_leaves, step))
			break;
	}
	memcpy(scores, steps->scores, (size_t) loss->n_rows * sizeof *scores);
	return ag_loss_begin_round(ctx, loss);
}

AgStatus
ag_leaves_step(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss,
			   int output, const AgGradientRange *range, const AgQuantum *quantum,
			   const AgBoostParams *params, AgLeafSteps *steps)
{
	AgGradientRange at = *range;
	AgBoostParams own = *params;
	int n = grower->n_leaves;

	if (params->leaf_method == AG_LEAF_GRADIENT)
		weigh(ctx, loss, &at);
	if (params->leaf_steps <= 1 || n < 2)
		return ag_leaves_compute(ctx, leaves, grower, loss, &at, quantum, params);
	own.learning_rate = 1.0;
	ag_leaf_steps_begin(steps, n);
	AG_TRY(ag_leaves_compute(ctx, leaves, grower, loss, &at, quantum, &own));
	ag_leaf_steps_take(steps, leaves, n, 0);
	if (steps->classes != NULL && params->leaf_method != AG_LEAF_GRADIENT)
		AG_TRY(step_bounded(ctx, leaves, grower, loss, loss->scores + output * loss->n_rows,
							quantum, &own, steps));
	else
		AG_TRY(step_freely(ctx, leaves, grower, loss, output, quantum, &own, steps));
	for (int l = 0; l < n; l++)
		leaves->values[l] = steps->values[l] * params->learning_rate;
	return AG_OK;
}
