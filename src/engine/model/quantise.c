/*
 * quantise.c - stochastic rounding of gradients.
 */
#include "engine/model/quantise.h"

#include "engine/base/rng.h"
#include "engine/base/threads.h"

#define AG_QUANTISE_CHUNK 8192

typedef struct AgQuantiseTask
{
	const AgContext *ctx;
	const AgLoss *loss;
	uint64_t key;
	const uint32_t *rows;
	AgRowList *list;
	double per_g, per_h; /* steps in a unit */
	bool is_const_hessian;
	_Atomic int64_t sum_g, sum_h;
	_Atomic uint32_t min_h, max_h;
} AgQuantiseTask;

/* floor for values that fit an int32, without a call. */
static inline int32_t
floor_to_int(double x)
{
	int32_t n = (int32_t) x;

	return n - (x < (double) n);
}

/* One row: 32 random bits for each of the two. */
static inline uint32_t
quantise_row(const AgQuantiseTask *task, uint32_t row)
{
	uint64_t bits = ag_random_u64(task->key, row);
	double h = (double) task->loss->h[row];
	int32_t g = floor_to_int((double) task->loss->g[row] * task->per_g +
							 (double) (uint32_t) (bits >> 32) * 0x1.0p-32);
	int32_t q = floor_to_int(h * task->per_h + (double) (uint32_t) bits * 0x1.0p-32);

	if (q == 0 && h > 0.0)
		q = 1;
	return (uint32_t) g << 16 | (uint32_t) q;
}

static void
quantise_chunk(void *arg, int64_t begin, int64_t end, int thread)
{
	AgQuantiseTask *task = arg;
	int64_t sum_g = 0, sum_h = 0;
	uint32_t min_h = UINT32_MAX, max_h = 0, seen;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = task->rows[i];
		uint32_t packed = quantise_row(task, row);
		uint32_t h;

		if (task->is_const_hessian)
			packed = (packed & 0xffff0000u) | 1u;
		h = ag_packed_h(packed);
		task->list->ids[i] = row;
		task->list->grads[i] = packed;
		sum_g += ag_packed_g(packed);
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
ag_quantise(const AgContext *ctx, const AgLoss *loss, const AgGradientRange *range, uint64_t key,
			const uint32_t *rows, int64_t n_rows, AgRowList *list, AgQuantum *quantum)
{
	AgQuantiseTask task = {.ctx = ctx, .loss = loss, .key = key, .rows = rows, .list = list};

	task.is_const_hessian = loss->objective->has_const_hessian && loss->data->weight == NULL;
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
