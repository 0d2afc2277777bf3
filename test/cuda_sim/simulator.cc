/*
 * simulator.cc - does the simulator itself tell right from wrong? Small kernels with known answers, and broken ones that
 * must be caught.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

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

__global__ void
different_barriers(int *out)
{
	if (threadIdx.x < 16)
		__syncthreads();
	else
		__syncthreads();
	out[threadIdx.x] = 1;
}

__global__ void
different_collectives(int *out)
{
	if (threadIdx.x % 2 == 0)
		out[threadIdx.x] = __shfl_sync(~0u, 1, 0);
	else
		out[threadIdx.x] = __any_sync(~0u, 1);
}

__global__ void
beyond_dynamic_shared(int *out)
{
	AGK_DYNAMIC_SHARED(int, cells);

	cells[threadIdx.x + 1] = out[threadIdx.x];
}

__global__ void
beyond_static_shared(int *out)
{
	__shared__ int cells[32];

	cells[threadIdx.x + 1] = 1;
	__syncthreads();
	out[threadIdx.x] = cells[threadIdx.x];
}

__global__ void
beyond_device_memory(int *out)
{
	out[threadIdx.x + 1] = 1;
}

static int in[256], out[256];

/* Does the launch end its program, and with these words of the sanitizer? */
template <class Launch>
static bool
is_stopped(const char *words, Launch launch)
{
	char text[4096], rest[512];
	int status = 0, ends[2];
	size_t n = 0;
	ssize_t got;
	pid_t child;

	AG_REQUIRE(pipe(ends) == 0);
	child = fork();
	AG_REQUIRE(child >= 0);
	if (child == 0)
	{
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		launch();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], rest, sizeof(rest))) > 0) /* to its end, lest it waits to be read */
		for (ssize_t i = 0; i < got && n < sizeof(text) - 1; i++)
			text[n++] = rest[i];
	text[n] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	return status != 0 && strstr(text, words) != nullptr;
}

/* Accesses outside of what a block or the device has; dynamic shared memory right behind a launch that had more. */
static void
check_accesses()
{
	int *cells = nullptr;

	AG_REQUIRE(cudaMalloc(reinterpret_cast<void **>(&cells), 32 * sizeof(int)) == cudaSuccess);
	AGK_LAUNCH(reverse_through_shared, 1, 200, 200 * sizeof(int), nullptr, in, out);
	AG_CHECK(is_stopped("use-after-poison", [] {
		AGK_LAUNCH(beyond_dynamic_shared, 1, 32, 32 * sizeof(int), nullptr, out);
	}));
	AGK_LAUNCH(beyond_dynamic_shared, 1, 32, 33 * sizeof(int), nullptr, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
	AG_CHECK(is_stopped("out of bounds",
						[] { AGK_LAUNCH(beyond_static_shared, 1, 32, 0, nullptr, out); }));
	AG_CHECK(is_stopped("heap-buffer-overflow",
						[cells] { AGK_LAUNCH(beyond_device_memory, 1, 32, 0, nullptr, cells); }));
	cudaFree(cells);
}

/* More than 48 KB of shared memory must be asked for, and no more than the device has. */
static void
check_shared()
{
	AGK_LAUNCH(reverse_through_shared, 1, 32, 60 << 10, nullptr, in, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	AG_CHECK_EQ(cudaFuncSetAttribute(reverse_through_shared,
									 cudaFuncAttributeMaxDynamicSharedMemorySize, 300 << 10),
				cudaErrorInvalidValue);
	(void) cudaGetLastError();
	AG_CHECK_EQ(cudaFuncSetAttribute(reverse_through_shared,
									 cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10),
				cudaSuccess);
	AGK_LAUNCH(reverse_through_shared, 1, 32, 60 << 10, nullptr, in, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
	AGK_LAUNCH(reverse_through_shared, 1, 32, (60 << 10) + 16, nullptr, in, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
}

int
main(void)
{
	sim::machine.devices.resize(1);
	sim::machine.devices[0].properties.totalGlobalMem = 1 << 20;
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
		AGK_LAUNCH(different_barriers, 1, 32, 0, nullptr, out);
		AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
		AGK_LAUNCH(different_collectives, 1, 32, 0, nullptr, out);
		AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	}

	AGK_LAUNCH(early_return, 1, 1025, 0, nullptr, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	AGK_LAUNCH(early_return, 1, 32, 300 << 10, nullptr, out);
	AG_CHECK_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
	check_accesses();
	check_shared();
	return ag_unit_done("simulator");
}
