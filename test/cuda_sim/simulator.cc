/*
 * simulator.cc - does the simulator itself tell right from wrong? Small kernels with known answers, and broken ones that
 * must be caught.
 */
#include "kernels/launch.cuh"
#include "unit/unit.h"

__global__ void
sum_by_shuffle(const int *values, int *sum)
{
	int value = values[blockIdx.x * blockDim.x + threadIdx.x];

	for (int delta = 16; delta > 0; delta /= 2)
		value += __shfl_down_sync(~0u, value, delta);
	if (threadIdx.x % 32 == 0)
		atomicAdd(sum, value);
}

__global__ void
compact_even(const int *values, int *kept)
{
	bool keep = values[threadIdx.x] % 2 == 0;
	unsigned ballot = __ballot_sync(~0u, keep);

	if (keep)
		kept[__popc(ballot & ((1u << threadIdx.x) - 1))] = values[threadIdx.x];
}

__global__ void
reverse_through_shared(const int *in, int *out)
{
	AGK_DYNAMIC_SHARED(int, cells);

	cells[threadIdx.x] = in[threadIdx.x];
	__syncthreads();
	out[threadIdx.x] = cells[blockDim.x - 1 - threadIdx.x];
}

__global__ void
reverse_without_barrier(const int *in, int *out)
{
	AGK_DYNAMIC_SHARED(int, cells);

	cells[threadIdx.x] = in[threadIdx.x];
	out[threadIdx.x] = cells[blockDim.x - 1 - threadIdx.x];
}

__global__ void
divergent_barrier(int *out)
{
	if (threadIdx.x < 16)
		__syncthreads();
	else
		out[0] = __shfl_sync(~0u, 1, 0);
}

__global__ void
early_return(int *out)
{
	if (threadIdx.x >= 8)
		return;
	__syncthreads();
	out[threadIdx.x] = __any_sync(0xff, threadIdx.x == 3);
}

static int in[256], out[256];

int
main(void)
{
	sim::machine.devices.resize(1);
	for (int i = 0; i < 256; i++)
		in[i] = i;

	for (int pass = 0; pass < 4; pass++)
	{
		int sum = 0, wrong = 0;

		simt::order = pass == 0 ? simt::FORWARD : pass == 1 ? simt::BACKWARD : simt::SHUFFLED;
		AGK_LAUNCH(sum_by_shuffle, 4, 64, 0, nullptr, in, &sum);
		AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
		AG_CHECK_EQ(sum, 255 * 256 / 2);

		AGK_LAUNCH(compact_even, 1, 32, 0, nullptr, in, out);
		for (int i = 0; i < 16; i++)
			wrong += out[i] != 2 * i;
		AGK_LAUNCH(reverse_through_shared, 1, 200, 200 * sizeof(int), nullptr, in, out);
		for (int i = 0; i < 200; i++)
			wrong += out[i] != 199 - i;
		AGK_LAUNCH(early_return, 1, 40, 0, nullptr, out);
		for (int i = 0; i < 8; i++)
			wrong += out[i] != 1;
		AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
		AG_CHECK_EQ(wrong, 0);

		/* What is broken must show. */
		AGK_LAUNCH(reverse_without_barrier, 1, 64, 64 * sizeof(int), nullptr, in, out);
		for (int i = 0; i < 64; i++)
			wrong += out[i] != 63 - i;
		AG_CHECK(wrong > 0);
		AGK_LAUNCH(divergent_barrier, 1, 32, 0, nullptr, out);
		AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
		AG_CHECK(simt::fault != nullptr);
	}

	AGK_LAUNCH(early_return, 1, 1025, 0, nullptr, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	AGK_LAUNCH(early_return, 1, 32, 300 << 10, nullptr, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	return ag_unit_done("simulator");
}
