/*
 * sort.cuh - integers in ascending order.
 */
#ifndef AGK_SORT_CUH
#define AGK_SORT_CUH

#include "kernels/device.cuh"

/* Room for keys, and what sorting them takes beside. All zero is allowed. */
struct AgkSorter
{
	AgkArray<uint64_t> keys, spare;
	AgkArray<uint8_t> scratch;
};

/* For at most n keys. */
AgDeviceStatus agk_sorter_get(AgDevice *device, int64_t n, AgkSorter *sorter);
void agk_sorter_give(AgDevice *device, AgkSorter *sorter);
/* The first n of keys; *sorted is where they lie then. */
AgDeviceStatus agk_sort(AgDevice *device, AgkSorter *sorter, int64_t n, const uint64_t **sorted);

#endif
