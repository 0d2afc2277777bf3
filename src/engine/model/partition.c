/*
 * partition.c - splitting row lists.
 */
#include "engine/model/partition.h"

#include <string.h>

#include "engine/base/threads.h"

#define AG_PARTITION_PARALLEL 16384 /* rows below which one thread is quicker */

typedef struct AgPartitionTask
{
	const AgContext *ctx;
	const uint8_t *column;
	uint8_t goes_left[AG_HIST_BINS];
	const AgRowList *from;
	AgRowList *to;
	int64_t n_rows;
	AgPartitionScratch *scratch;
	_Atomic int64_t n_left, n_right;
} AgPartitionTask;

/* Both sides are written always and one of them advances: no branch to mispredict. */
static int64_t
part_chunk(const AgPartitionTask *task, int64_t begin, int64_t end, AgPartitionScratch *scratch)
{
	const uint32_t *ids = task->from->ids, *grads = task->from->grads;
	int64_t left = 0, right = 0;

	for (int64_t i = begin; i < end; i++)
	{
		int goes_left = task->goes_left[task->column[ids[i]]];

		scratch->left_ids[left] = ids[i];
		scratch->left_grads[left] = grads[i];
		scratch->right_ids[right] = ids[i];
		scratch->right_grads[right] = grads[i];
		left += goes_left;
		right += 1 - goes_left;
	}
	return left;
}

static void
place(const AgRowList *to, int64_t at, const uint32_t *ids, const uint32_t *grads, int64_t n)
{
	memcpy(to->ids + at, ids, (size_t) n * sizeof *ids);
	memcpy(to->grads + at, grads, (size_t) n * sizeof *grads);
}

static void
partition_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgPartitionTask *task = arg;
	AgPartitionScratch *scratch = task->scratch + thread;
	int64_t left, right, at;

	if (ag_cancelled(task->ctx))
		return;
	left = part_chunk(task, begin, end, scratch);
	right = end - begin - left;
	at = atomic_fetch_add_explicit(&task->n_left, left, memory_order_relaxed);
	place(task->to, at, scratch->left_ids, scratch->left_grads, left);
	at = atomic_fetch_add_explicit(&task->n_right, right, memory_order_relaxed);
	place(task->to, task->n_rows - at - right, scratch->right_ids, scratch->right_grads, right);
}

AgStatus
ag_partition(const AgContext *ctx, const AgBins *bins, const AgSplit *split, const AgRowList *from,
			 int64_t n_rows, AgRowList *to, AgPartitionScratch *scratch, int64_t *n_left)
{
	AgPartitionTask task = {.ctx = ctx,
							.column = bins->columns + split->feature * bins->column_stride,
							.from = from,
							.to = to,
							.n_rows = n_rows,
							.scratch = scratch};

	for (int b = 0; b < AG_HIST_BINS; b++)
		task.goes_left[b] = ag_split_goes_left(split, b) ? 1 : 0;
	ag_pool_run(n_rows < AG_PARTITION_PARALLEL ? NULL : ctx->pool, n_rows, AG_PARTITION_CHUNK,
				partition_task, &task);
	*n_left = atomic_load(&task.n_left);
	return ag_check_cancel(ctx);
}
