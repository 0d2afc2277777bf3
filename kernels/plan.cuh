/*
 * plan.cuh - cutting the rows of a step's nodes into chunks. One block; every thread must come.
 */
#ifndef AGK_PLAN_CUH
#define AGK_PLAN_CUH

#include "kernels/block.cuh"

/* Chunk size and ends of the state's n_expand nodes. */
static __device__ inline void
agk_plan_chunks(const AgkGrowth &growth)
{
	AgkState *state = growth.state;
	int n = state->n_expand;
	int64_t total = 0, chunk, before = 0;

	for (int e = threadIdx.x; e < n; e += blockDim.x)
		total += growth.nodes[growth.expand[e]].n_rows;
	total = agk_block_sum(total);
	chunk = (total + growth.n_blocks - 1) / growth.n_blocks;
	chunk = chunk < AGK_CHUNK_LEAST ? AGK_CHUNK_LEAST : chunk;
	chunk = chunk > AGK_CHUNK_MOST ? AGK_CHUNK_MOST : chunk;
	chunk = (chunk + AGK_THREADS - 1) / AGK_THREADS * AGK_THREADS;
	for (int first = 0; first < n; first += blockDim.x)
	{
		int e = first + static_cast<int>(threadIdx.x);
		int64_t n_chunks = 0, sum, n_tile;

		if (e < n)
			n_chunks = (growth.nodes[growth.expand[e]].n_rows + chunk - 1) / chunk;
		sum = agk_block_scan(n_chunks, &n_tile);
		if (e < n)
		{
			growth.chunk_ends[e] = before + sum + n_chunks;
			growth.n_left[e] = 0;
		}
		before += n_tile;
	}
	if (threadIdx.x == 0)
	{
		state->chunk = chunk;
		state->n_chunks = before;
		state->n_flagged = 0;
	}
}

#endif
