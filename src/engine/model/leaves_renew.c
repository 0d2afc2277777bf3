/*
 * leaves_renew.c - leaf values where a loss has no curvature: the constant that its rows lack.
 */
#include "engine/model/leaves.h"

#include <math.h>

#include "engine/base/threads.h"

typedef struct AgRenewTask
{
	const AgContext *ctx;
	AgLeaves *leaves;
	const AgGrower *grower;
	const AgLoss *loss;
	int output;
	double scale; /* of weights; 0: all count alike */
	double learning_rate;
} AgRenewTask;

/* A leaf's rows have their place in the scratch as they have it in the grower's list: no two leaves meet. */
static void
renew_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgRenewTask *task = arg;
	const AgLoss *loss = task->loss;
	const double *scores = loss->scores + task->output * loss->n_rows;
	double level = ag_loss_level(loss, task->output);

	(void) thread;
	for (int64_t l = begin; l < end; l++)
	{
		const AgGrownLeaf *leaf = task->grower->leaves + l;
		const uint32_t *ids = task->grower->lists[leaf->list].ids + leaf->begin;
		AgWeighed *items = loss->items + leaf->begin;
		double value;

		if (ag_cancelled(task->ctx))
			return;
		for (int64_t i = 0; i < leaf->n_rows; i++)
		{
			items[i].value = loss->data->target[ids[i]] - scores[ids[i]] + 0.0; /* no -0 */
			items[i].weight = task->scale > 0.0
								  ? (int64_t) (ag_loss_error_weight(loss, ids[i]) * task->scale)
								  : 1;
		}
		value = ag_percentile(items, leaf->n_rows, level) * task->learning_rate;
		task->leaves->values[l] = isfinite(value) ? value : 0.0;
	}
}

AgStatus
ag_leaves_renew(const AgContext *ctx, AgLeaves *leaves, const AgGrower *grower, const AgLoss *loss,
				int output, double learning_rate)
{
	AgRenewTask task = {.ctx = ctx,
						.leaves = leaves,
						.grower = grower,
						.loss = loss,
						.output = output,
						.learning_rate = learning_rate};

	if (grower->n_leaves < 2)
		return AG_OK;
	if (loss->data->weight != NULL || loss->objective->is_relative)
		task.scale = ag_fixed_scale(ag_loss_largest_weight(loss), loss->data->n_train);
	ag_pool_run(ctx->pool, grower->n_leaves, 1, renew_task, &task);
	return ag_check_cancel(ctx);
}
