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
	bool has_equal_hessians;
	_Atomic int64_t sum_g, sum_h;
	_Atomic uint32_t min_h, max_h;
} AgQuantiseTask;

/* Rounds listed rows [at, at + n). Rows that follow each other are read where they are. */
static void
quantise_block(const AgQuantiseTask *task, int64_t at, int n, AgPackedSums *sums)
{
	const uint32_t *rows = task->rows + at;
	uint32_t packed[AG_LANES_BLOCK];
	AgGradient gathered[AG_LANES_BLOCK];
	int whole = n / AG_LANES * AG_LANES;

	memcpy(task->list->ids + at, rows, (size_t) n * sizeof *rows);
	if (n == whole && ag_rows_are_dense(rows, n))
	{
		ag_round_block(task->level, n, task->key, rows, task->gradients + rows[0], task->per_g,
					   task->per_h, task->has_equal_hessians, task->list->grads + rows[0], sums);
		return;
	}
	for (int i = 0; i < n; i++)
		gathered[i] = task->gradients[rows[i]];
	ag_round_block(task->level, whole, task->key, rows, gathered, task->per_g, task->per_h,
				   task->has_equal_hessians, packed, sums);
	if (whole < n)
	{
		AgPackedSums eight = {.min_h = UINT32_MAX};
		AgGradient last[AG_LANES];
		uint32_t ids[AG_LANES];

		/* The last few: with copies of the first of them, whose sums are left out. */
		for (int i = 0; i < AG_LANES; i++)
		{
			int from = whole + i < n ? whole + i : whole;

			ids[i] = rows[from];
			last[i] = gathered[from];
		}
		ag_round_block(task->level, AG_LANES, task->key, ids, last, task->per_g, task->per_h,
					   task->has_equal_hessians, packed + whole, &eight);
		sums->min_h = eight.min_h < sums->min_h ? eight.min_h : sums->min_h;
		sums->max_h = eight.max_h > sums->max_h ? eight.max_h : sums->max_h;
		for (int i = whole; i < n; i++)
		{
			sums->sum_g += ag_packed_g(packed[i]);
			sums->sum_h += ag_packed_h(packed[i]);
		}
	}
	for (int i = 0; i < n; i++)
		task->list->grads[rows[i]] = packed[i];
}

static void
quantise_chunk(void *arg, int64_t begin, int64_t end, int thread)
{
	AgQuantiseTask *task = arg;
	AgPackedSums sums = {.min_h = UINT32_MAX};
	uint32_t seen;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
		quantise_block(task, at, end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK,
					   &sums);
	atomic_fetch_add(&task->sum_g, sums.sum_g);
	atomic_fetch_add(&task->sum_h, sums.sum_h);
	seen = atomic_load(&task->min_h);
	while (sums.min_h < seen && !atomic_compare_exchange_weak(&task->min_h, &seen, sums.min_h))
		;
	seen = atomic_load(&task->max_h);
	while (sums.max_h > seen && !atomic_compare_exchange_weak(&task->max_h, &seen, sums.max_h))
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
						   .has_equal_hessians = has_equal_hessians};

	task.per_g = range->max_g > 0.0f ? (AG_QUANTUM_MAX - 1) / (double) range->max_g : 0.0;
	task.per_h = range->max_h > 0.0f ? (AG_QUANTUM_MAX - 1) / (double) range->max_h : 0.0;
	atomic_init(&task.min_h, UINT32_MAX);
	ag_pool_run(ctx->pool, n_rows, AG_QUANTISE_CHUNK, quantise_chunk, &task);
	quantum->g = (double) range->max_g / (AG_QUANTUM_MAX - 1);
	quantum->h = has_equal_hessians ? 1.0 : (double) range->max_h / (AG_QUANTUM_MAX - 1);
	quantum->min_h = atomic_load(&task.min_h);
	quantum->max_h = atomic_load(&task.max_h);
	quantum->sum_g = atomic_load(&task.sum_g);
	quantum->sum_h = atomic_load(&task.sum_h);
	return ag_check_cancel(ctx);
}
