/*
 * binning.cu - bins of a column of numbers: keys of its first values in order, from which the host chooses cuts, and then the bin of each
 * value. Both as data/bins_cuts.c and bins_assign.c have them.
 */
#include <stdlib.h>

#include "engine/base/maths.h"
#include "kernels/block.cuh"
#include "kernels/sort.cuh"

#define AGK_BIN_ROWS (INT64_C(2) << 20) /* at a time */

struct AgDeviceBinner
{
	AgkSorter sorter;
	AgkArray<double> values; /* of the rows in work */
	AgkArray<double> cuts;   /* [AGK_BINS] */
	AgkArray<uint8_t> bins;
	AgkArray<unsigned long long> n_missing;
	int64_t n_rows;  /* at a time */
	int64_t n_there; /* of the column, in values */
};

/* Keys; missing values come behind all others. */
__global__ void
agk_bin_keys(const double *values, int64_t n, uint64_t *keys, unsigned long long *n_missing)
{
	unsigned long long missing = 0;

	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * (int64_t) blockDim.x)
	{
		double x = values[i];

		keys[i] = x != x ? UINT64_MAX : ag_order_bits(x);
		missing += x != x;
	}
	missing = agk_block_sum(missing);
	if (threadIdx.x == 0 && missing > 0)
		atomicAdd(n_missing, missing);
}

/* cuts[AGK_BINS], infinite behind the last. */
__global__ void
agk_bin_values(const double *values, int64_t n, const double *cuts, uint8_t *bins)
{
	__shared__ double all[AGK_BINS];

	__syncthreads(); /* blocks of the simulator have one shared memory after the other */
	for (int c = (int) threadIdx.x; c < AGK_BINS; c += (int) blockDim.x)
		all[c] = cuts[c];
	__syncthreads();
	for (int64_t i = blockIdx.x * (int64_t) blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * (int64_t) blockDim.x)
	{
		double x = values[i];
		unsigned below = 0;

		for (unsigned half = AGK_BINS / 2; half > 0; half /= 2)
			below += all[below + half - 1] < x ? half : 0;
		bins[i] = x != x ? 0 : (uint8_t) (1 + below);
	}
}

static AgDeviceStatus
take(AgDevice *device, int64_t n_sample, AgDeviceBinner *binner)
{
	AGK_TRY(agk_sorter_get(device, n_sample, &binner->sorter));
	AGK_TRY(agk_get(device, binner->n_rows, &binner->values));
	AGK_TRY(agk_get(device, binner->n_rows, &binner->bins));
	AGK_TRY(agk_get(device, AGK_BINS, &binner->cuts));
	return agk_get(device, 1, &binner->n_missing);
}

AgDeviceStatus
agk_bin_create(AgDevice *device, int64_t n_rows, int64_t n_sample, AgDeviceBinner **created)
{
	AgDeviceBinner *binner;
	AgDeviceStatus status;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_new(device, 1, &binner));
	binner->n_rows = n_rows < AGK_BIN_ROWS ? n_rows : AGK_BIN_ROWS;
	if (binner->n_rows < n_sample)
		binner->n_rows = n_sample;
	status = take(device, n_sample, binner);
	if (status == AG_DEVICE_OK)
		*created = binner;
	else
		agk_bin_free(device, binner);
	return status;
}

void
agk_bin_free(AgDevice *device, AgDeviceBinner *binner)
{
	if (binner == nullptr)
		return;
	agk_sorter_give(device, &binner->sorter);
	agk_give(device, &binner->values);
	agk_give(device, &binner->cuts);
	agk_give(device, &binner->bins);
	agk_give(device, &binner->n_missing);
	free(binner);
}

AgDeviceStatus
agk_bin_sort(AgDevice *device, AgDeviceBinner *binner, const double *values, int64_t n,
			 uint64_t *keys, int64_t *n_keys)
{
	unsigned long long n_missing = 0;
	const uint64_t *sorted;

	AGK_TRY(agk_enter(device));
	binner->n_there = 0;
	AGK_TRY(agk_upload(device, binner->values.at, values, n * (int64_t) sizeof(double)));
	AGK_TRY(agk_clear(device, binner->n_missing.at, binner->n_missing.n_bytes));
	AGK_LAUNCH(agk_bin_keys, agk_grid(device, n, AGK_THREADS), AGK_THREADS, 0, device->stream,
			   binner->values.at, n, binner->sorter.keys.at, binner->n_missing.at);
	AGK_TRY(agk_launched(device, "making keys"));
	AGK_TRY(agk_sort(device, &binner->sorter, n, &sorted));
	AGK_TRY(agk_download(device, &n_missing, binner->n_missing.at, (int64_t) sizeof(n_missing)));
	*n_keys = n - (int64_t) n_missing;
	AGK_TRY(agk_download(device, keys, sorted, *n_keys * (int64_t) sizeof(uint64_t)));
	binner->n_there = n;
	return AG_DEVICE_OK;
}

AgDeviceStatus
agk_bin_assign(AgDevice *device, AgDeviceBinner *binner, const double *values, int64_t n,
			   const double *cuts, int32_t n_cuts, uint8_t *bins)
{
	double all[AGK_BINS];

	AGK_TRY(agk_enter(device));
	if (n_cuts < 0 || n_cuts >= AGK_BINS - 1)
		return agk_refuse(device, "a column may have more bins than a byte holds");
	for (int c = 0; c < AGK_BINS; c++)
		all[c] = c < n_cuts ? cuts[c] : (double) INFINITY;
	AGK_TRY(agk_upload(device, binner->cuts.at, all, (int64_t) sizeof(all)));
	for (int64_t first = 0; first < n; first += binner->n_rows)
	{
		int64_t rows = n - first < binner->n_rows ? n - first : binner->n_rows;
		int64_t there = first == 0 ? binner->n_there : 0; /* the sample is */

		there = there < rows ? there : rows;
		AGK_TRY(agk_upload(device, binner->values.at + there, values + first + there,
						   (rows - there) * (int64_t) sizeof(double)));
		AGK_LAUNCH(agk_bin_values, agk_grid(device, rows, AGK_THREADS), AGK_THREADS, 0,
				   device->stream, binner->values.at, rows, binner->cuts.at, binner->bins.at);
		AGK_TRY(agk_launched(device, "binning"));
		AGK_TRY(agk_download(device, bins + first, binner->bins.at, rows));
	}
	binner->n_there = 0;
	return AG_DEVICE_OK;
}
