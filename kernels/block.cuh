/*
 * block.cuh - sums over a block's threads. Every thread of the block must come.
 */
#ifndef AGK_BLOCK_CUH
#define AGK_BLOCK_CUH

#include "kernels/boost.cuh"

/* The sum of all threads' values, for every thread. */
template <class T>
static __device__ inline T
agk_block_sum(T value)
{
	__shared__ T sums[AGK_WARPS];
	T total = 0;

	for (int delta = 16; delta > 0; delta /= 2)
		value += __shfl_down_sync(~0u, value, delta);
	__syncthreads(); /* of an earlier call nobody reads any more */
	if (threadIdx.x % 32 == 0)
		sums[threadIdx.x / 32] = value;
	__syncthreads();
	for (int w = 0; w < AGK_WARPS; w++)
		total += sums[w];
	return total;
}

/* The sum of the values of threads before this one; *total: of all. */
template <class T>
static __device__ inline T
agk_block_scan(T value, T *total)
{
	__shared__ T sums[AGK_WARPS];
	unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	T sum = value, before = 0;

	for (unsigned delta = 1; delta < 32; delta *= 2)
	{
		T other = __shfl_up_sync(~0u, sum, delta);

		if (lane >= delta)
			sum += other;
	}
	__syncthreads();
	if (lane == 31)
		sums[warp] = sum;
	__syncthreads();
	*total = 0;
	for (unsigned w = 0; w < AGK_WARPS; w++)
	{
		if (w < warp)
			before += sums[w];
		*total += sums[w];
	}
	return before + sum - value;
}

static __device__ inline unsigned
agk_block_max(unsigned value)
{
	__shared__ unsigned highest[AGK_WARPS];
	unsigned most = 0;

	for (int delta = 16; delta > 0; delta /= 2)
	{
		unsigned other = __shfl_down_sync(~0u, value, delta);

		value = other > value ? other : value;
	}
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		highest[threadIdx.x / 32] = value;
	__syncthreads();
	for (int w = 0; w < AGK_WARPS; w++)
		most = highest[w] > most ? highest[w] : most;
	return most;
}

/* The first i with item < ends[i]; ends ascends and its last is above item. */
static __device__ inline int
agk_find(const int64_t *ends, int n, int64_t item)
{
	int low = 0, high = n - 1;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (item < ends[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* int64 sums by CUDA's only 64 bit atomic addition. */
static __device__ inline void
agk_add(int64_t *target, int64_t value)
{
	atomicAdd(reinterpret_cast<unsigned long long *>(target),
			  static_cast<unsigned long long>(value));
}

#endif
