/*
 * quantise.c - stochastic rounding of gradients.
 */
#include "engine/model/quantise.h"

#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/lanes.h"

#define AG_QUANTISE_CHUNK 8192

typedef struct AgQuantiseTask
{
	const AgContext *ctx;
	const AgGradient *gradients;
	AgCpuLevel level;
	uint64_t key;
	const uint32_t *rows;
	AgRowList *list;
	double per_g, per_h; /* steps in a unit */
	bool is_const_hessian;
	_Atomic int64_t sum_g, sum_h;
	_Atomic uint32_t min_h, max_h;
} AgQuantiseTask;

/* Rounds listed rows [at, at + n). */
static void
quantise_block(const AgQuantiseTask *task, int64_t at, int n)
{
	const uint32_t *rows = task->rows + at;
	uint32_t ids[AG_LANES_BLOCK], packed[AG_LANES_BLOCK];
	double g[AG_LANES_BLOCK], h[AG_LANES_BLOCK];

	for (int i = 0; i < n; i++)
	{
		AgGradient gradient = task->gradients[rows[i]];

		ids[i] = rows[i];
		g[i] = (double) gradient.g;
		h[i] = (double) gradient.h;
	}
	for (int i = n; i % AG_LANES != 0; i++)
	{
		ids[i] = 0;
		g[i] = h[i] = 0.0;
	}
	ag_round_block(task->level, n, task->key, ids, g, h, task->per_g, task->per_h, packed);
	memcpy(task->list->ids + at, ids, (size_t) n * sizeof *ids);
	memcpy(task->list->grads + at, packed, (size_t) n * sizeof *packed);
}

static void
quantise_chunk(void *arg, int64_t begin, int64_t end, int thread)
{
	AgQuantiseTask *task = arg;
	uint32_t *grads = task->list->grads;
	int64_t sum_g = 0, sum_h = 0;
	uint32_t min_h = UINT32_MAX, max_h = 0, seen;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
		quantise_block(task, at, end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK);
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t h;

		if (task->is_const_hessian)
			grads[i] = (grads[i] & 0xffff0000u) | 1u;
		h = ag_packed_h(grads[i]);
		sum_g += ag_packed_g(grads[i]);
		sum_h += h;
		min_h = h < min_h ? h : min_h;
		max_h = h > max_h ? h : max_h;
	}
	atomic_fetch_add(&task->sum_g, sum_g);
	atomic_fetch_add(&task->sum_h, sum_h);
	seen = atomic_load(&task->min_h);
	while (min_h < seen && !atomic_compare_exchange_weak(&task->min_h, &seen, min_h))
		;
	seen = atomic_load(&task->max_h);
	while (max_h > seen && !atomic_compare_exchange_weak(&task->max_h, &seen, max_h))
		;
}

/*
 * The step is max / (32767 - 1), so that the rounding up of the largest value still fits.
 */
AgStatus
ag_quantise(const AgContext *ctx, const AgGradient *gradients, bool has_equal_hessians,
			const AgGradientRange *range, uint64_t key, const uint32_t *rows, int64_t n_rows,
			AgRowList *list, AgQuantum *quantum)
{
	AgQuantiseTask task = {.ctx = ctx,
						   .gradients = gradients,
						   .level = ag_cpu_level(),
						   .key = key,
						   .rows = rows,
						   .list = list,
						   .is_const_hessian = has_equal_hessians};

	task.per_g = range->max_g > 0.0f ? (AG_QUANTUM_MAX - 1) / (double) range->max_g : 0.0;
	task.per_h = range->max_h > 0.0f ? (AG_QUANTUM_MAX - 1) / (double) range->max_h : 0.0;
	atomic_init(&task.min_h, UINT32_MAX);
	ag_pool_run(ctx->pool, n_rows, AG_QUANTISE_CHUNK, quantise_chunk, &task);
	quantum->g = (double) range->max_g / (AG_QUANTUM_MAX - 1);
	quantum->h = task.is_const_hessian ? 1.0 : (double) range->max_h / (AG_QUANTUM_MAX - 1);
	quantum->min_h = atomic_load(&task.min_h);
	quantum->max_h = atomic_load(&task.max_h);
	quantum->sum_g = atomic_load(&task.sum_g);
	quantum->sum_h = atomic_load(&task.sum_h);
	return ag_check_cancel(ctx);
}
