/*
 * forest_team.cuh - who takes a node of a forest: a whole block, or a warp of it. Every thread of the team must come to all of this.
 */
#ifndef AGK_FOREST_TEAM_CUH
#define AGK_FOREST_TEAM_CUH

#include "kernels/block.cuh"

/* The best of several: the higher score, then the lower order. */
struct AgkOffer
{
	double score;
	int order; /* INT32_MAX: none */
};

static __device__ inline void
agk_prefer(AgkOffer *best, double score, int order)
{
	if (order == INT32_MAX || !(best->order == INT32_MAX || score > best->score ||
								(score == best->score && order < best->order)))
		return;
	best->score = score;
	best->order = order;
}

struct AgkWarpTeam
{
	static constexpr int size = 32;
	int rank;

	__device__ void
	sync() const
	{
		__syncwarp();
	}

	template <class T>
	__device__ T
	sum(T value) const
	{
		for (int lanes = 16; lanes > 0; lanes /= 2)
			value += __shfl_xor_sync(~0u, value, lanes);
		return value;
	}

	template <class T>
	__device__ T
	highest(T value) const
	{
		for (int lanes = 16; lanes > 0; lanes /= 2)
		{
			T other = __shfl_xor_sync(~0u, value, lanes);

			value = other > value ? other : value;
		}
		return value;
	}

	/* The sum of those before; *total: of all. */
	template <class T>
	__device__ T
	before(T value, T *total) const
	{
		T sum = value;

		for (int delta = 1; delta < 32; delta *= 2)
		{
			T other = __shfl_up_sync(~0u, sum, delta);

			if (rank >= delta)
				sum += other;
		}
		*total = __shfl_sync(~0u, sum, 31);
		return sum - value;
	}

	__device__ AgkOffer
	best(AgkOffer offer) const
	{
		for (int lanes = 16; lanes > 0; lanes /= 2)
		{
			double score = __shfl_xor_sync(~0u, offer.score, lanes);
			int order = __shfl_xor_sync(~0u, offer.order, lanes);

			agk_prefer(&offer, score, order);
		}
		return offer;
	}
};

struct AgkBlockTeam
{
	static constexpr int size = AGK_THREADS;
	int rank;

	__device__ void
	sync() const
	{
		__syncthreads();
	}

	template <class T>
	__device__ T
	sum(T value) const
	{
		return agk_block_sum(value);
	}

	template <class T>
	__device__ T
	highest(T value) const
	{
		__shared__ T of_warps[AGK_WARPS];
		AgkWarpTeam warp = {rank % 32};

		value = warp.highest(value);
		__syncthreads();
		if (warp.rank == 0)
			of_warps[rank / 32] = value;
		__syncthreads();
		for (int w = 0; w < AGK_WARPS; w++)
			value = of_warps[w] > value ? of_warps[w] : value;
		return value;
	}

	template <class T>
	__device__ T
	before(T value, T *total) const
	{
		return agk_block_scan(value, total);
	}

	__device__ AgkOffer
	best(AgkOffer offer) const
	{
		__shared__ double scores[AGK_WARPS];
		__shared__ int orders[AGK_WARPS];
		AgkWarpTeam warp = {rank % 32};

		offer = warp.best(offer);
		__syncthreads();
		if (warp.rank == 0)
		{
			scores[rank / 32] = offer.score;
			orders[rank / 32] = offer.order;
		}
		__syncthreads();
		for (int w = 0; w < AGK_WARPS; w++)
			agk_prefer(&offer, scores[w], orders[w]);
		return offer;
	}
};

#endif
