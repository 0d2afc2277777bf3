#include "engine/base/threads.h"
#include "engine/model/sum.h"

/* Fewer blocks than this aren't worth waking threads for. */
#define MIN_PARALLEL_BLOCKS 16

typedef struct Blocks
{
	int64_t n_rows;
	int n_sums;
	AgSumTerms terms;
	const void *arg;
	double *sums; /* [n_blocks][n_sums] */
} Blocks;

static void
sum_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
	Blocks *blocks = arg;

	(void) thread;
	for (int64_t b = begin; b < end; b++)
	{
		int64_t first = b * AG_SUM_BLOCK;
		int64_t behind =
			blocks->n_rows - first < AG_SUM_BLOCK ? blocks->n_rows : first + AG_SUM_BLOCK;
		double *sums = blocks->sums + b * blocks->n_sums;

		for (int i = 0; i < blocks->n_sums; i++)
			sums[i] = 0.0;
		blocks->terms(blocks->arg, first, behind, sums);
	}
}

void
ag_sum_rows(const AgContext *ctx, int64_t n_rows, int n_sums, AgSumTerms terms, const void *arg,
			double *sums)
{
	int64_t n_blocks = n_rows / AG_SUM_BLOCK + (n_rows % AG_SUM_BLOCK != 0);
	Blocks blocks = {n_rows, n_sums, terms, arg, NULL};
	double *all = NULL, part[AG_SUM_MAX];

	if (ag_pool_size(ctx->pool) > 1 && n_blocks >= MIN_PARALLEL_BLOCKS)
		all = ag_mem_alloc(ctx->mem, (size_t) n_blocks, (size_t) n_sums * sizeof(double));
	if (all != NULL)
	{
		blocks.sums = all;
		ag_pool_run(ctx->pool, n_blocks, 4, sum_blocks, &blocks);
	}
	for (int i = 0; i < n_sums; i++)
		sums[i] = 0.0;
	for (int64_t b = 0; b < n_blocks; b++)
	{
		if (all == NULL)
		{
			int64_t first = b * AG_SUM_BLOCK;

			for (int i = 0; i < n_sums; i++)
				part[i] = 0.0;
			terms(arg, first, n_rows - first < AG_SUM_BLOCK ? n_rows : first + AG_SUM_BLOCK, part);
		}
		for (int i = 0; i < n_sums; i++)
			sums[i] += all != NULL ? all[b * n_sums + i] : part[i];
	}
	ag_mem_free(ctx->mem, all);
}
