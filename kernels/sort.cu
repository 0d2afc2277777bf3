/*
 * sort.cu - integers in ascending order: CUB's radix sort, and where CUB doesn't compile a twin on the simulator's memory, which is
 * the host's.
 */
#include "kernels/sort.cuh"

#ifdef __CUDACC__
/* CUB includes <iostream> to print an iterator, which would want a part of libstdc++ to be linked. What it needs of it is declared so, too. */
#include <ostream>
#define _GLIBCXX_IOSTREAM 1
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#endif

void
agk_sorter_give(AgDevice *device, AgkSorter *sorter)
{
	agk_give(device, &sorter->keys);
	agk_give(device, &sorter->spare);
	agk_give(device, &sorter->scratch);
}

#ifdef __CUDACC__

AgDeviceStatus
agk_sorter_get(AgDevice *device, int64_t n, AgkSorter *sorter)
{
	cub::DoubleBuffer<uint64_t> keys(nullptr, nullptr);
	size_t n_bytes = 0;
	cudaError_t error = cub::DeviceRadixSort::SortKeys(nullptr, n_bytes, keys, n);

	if (error != cudaSuccess)
		return agk_failed(device, error, "sizing a sort");
	AGK_TRY(agk_get(device, n, &sorter->keys));
	AGK_TRY(agk_get(device, n, &sorter->spare));
	return agk_get(device, (int64_t) n_bytes, &sorter->scratch);
}

AgDeviceStatus
agk_sort(AgDevice *device, AgkSorter *sorter, int64_t n, const uint64_t **sorted)
{
	cub::DoubleBuffer<uint64_t> keys(sorter->keys.at, sorter->spare.at);
	size_t n_bytes = (size_t) sorter->scratch.n_bytes;
	cudaError_t error =
		cub::DeviceRadixSort::SortKeys(sorter->scratch.at, n_bytes, keys, n, 0, 64, device->stream);

	*sorted = keys.Current();
	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "sorting");
}

#else

AgDeviceStatus
agk_sorter_get(AgDevice *device, int64_t n, AgkSorter *sorter)
{
	AGK_TRY(agk_get(device, n, &sorter->keys));
	return agk_get(device, n, &sorter->spare);
}

AgDeviceStatus
agk_sort(AgDevice *, AgkSorter *sorter, int64_t n, const uint64_t **sorted)
{
	for (int64_t i = 0; i < n; i++)
		sorter->spare.at[i] = sorter->keys.at[i];
	std::sort(sorter->spare.at, sorter->spare.at + n);
	*sorted = sorter->spare.at; /* as the real one may leave them */
	return AG_DEVICE_OK;
}

#endif
