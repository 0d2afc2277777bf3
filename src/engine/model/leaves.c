/*
 * leaves.c - leaf values from exact sums.
 */
#include "engine/model/leaves.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/split_maths.h"

#define AG_LEAF_PIECE 8192
#define AG_LEAF_AHEAD 32 /* rows fetched ahead of their use */

AgStatus
ag_leaves_create(const AgContext *ctx, int max_leaves, int64_t n_rows, AgLeaves *leaves)
{
	memset(leaves, 0, sizeof *leaves);
	leaves->max_pieces = max_leaves + n_rows / AG_LEAF_PIECE + 1;
	AG_TRY(ag_get(ctx, (size_t) leaves->max_pieces, sizeof(AgLeafPiece), &leaves->pieces));
	AG_TRY(ag_get(ctx, (size_t) max_leaves, sizeof(double), &leaves->values));
	return ag_get(ctx, (size_t) max_leaves * 2, sizeof(int64_t), &leaves->sums);
}

void
ag_leaves_free(const AgContext *ctx, AgLeaves *leaves)
{
	ag_mem_free(ctx->mem, leaves->pieces);
	ag_mem_free(ctx->mem, leaves->values);
	ag_mem_free(ctx->mem, (void *) leaves->sums);
	memset(leaves, 0, sizeof *leaves);
}

static void
cut_pieces(AgLeaves *leaves, const AgGrower *grower)
{
	leaves->n_pieces = 0;
	for (int l = 0; l < grower->n_leaves; l++)
	{
		const AgGrownLeaf *leaf = grower->leaves + l;
		int64_t end = leaf->begin + leaf->n_rows;

		for (int64_t at = leaf->begin; at < end; at += AG_LEAF_PIECE)
			leaves->pieces[leaves->n_pieces++] =
				(AgLeafPiece){l, at, at + AG_LEAF_PIECE < end ? at + AG_LEAF_PIECE : end};
	}
}

typedef struct AgLeafTask
{
	const AgContext *ctx;
	const AgLeaves *leaves;
	const AgGrower *grower;
	const AgLoss *loss;
	double *scores;
	double per_g, per_h; /* fixed-point steps in a unit */
} AgLeafTask;

static void
sum_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLeafTask *task = arg;
	const AgGradient *gradients = task->loss->gradients;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t p = begin; p < end; p++)
	{
		const AgLeafPiece *piece = task->leaves->pieces + p;
		const uint32_t *ids = task->grower->lists[task->grower->leaves[piece->leaf].list].ids;
		int64_t sum_g = 0, sum_h = 0;

		ag_sum_listed(task->loss->level, piece->end - piece->begin, ids + piece->begin, gradients,
					  task->per_g, task->per_h, &sum_g, &sum_h);
		atomic_fetch_add_explicit(task->leaves->sums + 2 * piece->leaf, sum_g,
								  memory_order_relaxed);
		atomic_fetch_add_explicit(task->leaves->sums + 2 * piece->leaf + 1, sum_h,
								  memory_order_relaxed);
	}
}

static double
leaf_value(const AgGrower *grower, const AgSplitRules *rules, const AgGrownLeaf *leaf, double g,
		   double h, const AgQuantum *quantum)
{
	double parent_output = leaf->parent_output * (quantum->g / quantum->h);
	double l2 = rules->l2 + (leaf->has_cat_l2 ? rules->cat_l2 : 0.0), output;

	if (grower->n_leaves < 2)
		return 0.0;
	output = ag_leaf_output(rules, g, h, l2, leaf->n_rows, parent_output);
	if (rules->monotone == NULL)
		return output;
	return ag_within(output, leaf->low * (quantum->g / quantum->h),
					 leaf->high * (quantum->g / quantum->h));
}

void
ag_leaves_scales(const AgGradientRange *range, int64_t n, double *per_g, double *per_h)
{
	*per_g = ag_fixed_scale((double) range->max_g, n);
	*per_h = ag_fixed_scale((double) range->max_h, n);
}

void
ag_leaves_set(AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss, double per_g,
			  double per_h, const AgQuantum *quantum, const AgBoostParams *params)
{
	const AgQuantum plain = {.g = 1.0, .h = 1.0};
	AgSplitRules rules;
	double factor = loss->unit * params->learning_rate;

	ag_split_rules_init(&rules, params, &plain, loss->unit);
	for (int l = 0; l < grower->n_leaves; l++)
	{
		double g = per_g > 0.0 ? (double) leaves->sums[2 * l] / per_g : 0.0;
		double h = per_h > 0.0 ? (double) leaves->sums[2 * l + 1] / per_h : 0.0;
		double value = leaf_value(grower, &rules, grower->leaves + l, g, h, quantum) * factor;

		leaves->values[l] = isfinite(value) ? value : 0.0;
	}
}

AgStatus
ag_leaves_compute(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower,
				  const AgLoss *loss, const AgGradientRange *range, const AgQuantum *quantum,
				  const AgBoostParams *params)
{
	AgLeafTask task = {.ctx = ctx, .leaves = leaves, .grower = grower, .loss = loss};

	ag_leaves_scales(range, loss->data->n_train, &task.per_g, &task.per_h);
	cut_pieces(leaves, grower);
	for (int l = 0; l < 2 * grower->n_leaves; l++)
		atomic_init(leaves->sums + l, 0);
	ag_pool_run(ctx->pool, leaves->n_pieces, 1, sum_task, &task);
	ag_leaves_set(leaves, grower, loss, task.per_g, task.per_h, quantum, params);
	return ag_check_cancel(ctx);
}

static void
add_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLeafTask *task = arg;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t p = begin; p < end; p++)
	{
		const AgLeafPiece *piece = task->leaves->pieces + p;
		const uint32_t *ids = task->grower->lists[task->grower->leaves[piece->leaf].list].ids;
		double value = task->leaves->values[piece->leaf];

		for (int64_t i = piece->begin; i < piece->end; i++)
		{
			if (i + AG_LEAF_AHEAD < piece->end)
				__builtin_prefetch(task->scores + ids[i + AG_LEAF_AHEAD], 1);
			task->scores[ids[i]] += value;
		}
	}
}

AgStatus
ag_leaves_add(const AgContext *ctx, const AgLeaves *leaves, const AgGrower *grower,
			  const AgLoss *loss, int output)
{
	AgLeafTask task = {.ctx = ctx,
					   .leaves = leaves,
					   .grower = grower,
					   .scores = loss->scores + output * loss->n_rows};

	ag_pool_run(ctx->pool, leaves->n_pieces, 1, add_task, &task);
	return ag_check_cancel(ctx);
}
