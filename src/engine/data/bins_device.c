/*
 * bins_device.c - copies of the binned matrix on devices.
 */
#include "engine/data/bins_device.h"

/* One of a list. */
typedef struct AgBinsCopy
{
	AgGpu *gpu;
	AgDeviceMatrix *matrix;
	struct AgBinsCopy *next;
} AgBinsCopy;

static AgDeviceStatus
make_copy(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, AgBinsCopy *copy)
{
	size_t n = (size_t) bins->n_features;
	AgDeviceFeature *features = ag_mem_alloc(ctx->mem, n, sizeof *features);
	AgDeviceBins shown = {.n_rows = bins->n_rows,
						  .n_features = bins->n_features,
						  .features = features,
						  .row_stride = bins->row_stride,
						  .rows = bins->rows,
						  .column_stride = bins->column_stride,
						  .columns = bins->columns};
	AgDeviceStatus status;

	if (features == NULL)
		return AG_DEVICE_MEMORY;
	for (size_t f = 0; f < n; f++)
		features[f] = (AgDeviceFeature){.n_bins = bins->features[f].n_bins,
										.is_category = bins->features[f].is_category,
										.has_other = bins->features[f].has_other,
										.cuts = bins->features[f].cuts,
										.centers = bins->features[f].centers};
	status = gpu->ops->matrix_create(gpu->device, &shown, &copy->matrix);
	ag_mem_free(ctx->mem, features);
	return status;
}

AgDeviceStatus
ag_bins_on_device(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, AgDeviceMatrix **matrix)
{
	AgDeviceStatus status;
	AgBinsCopy *copy;

	*matrix = NULL;
	for (copy = atomic_load(bins->copies); copy != NULL; copy = copy->next)
		if (copy->gpu == gpu)
		{
			*matrix = copy->matrix;
			return AG_DEVICE_OK;
		}
	copy = ag_mem_alloc(bins->mem, 1, sizeof *copy);
	if (copy == NULL)
		return AG_DEVICE_MEMORY;
	*copy = (AgBinsCopy){.gpu = gpu};
	status = make_copy(ctx, bins, gpu, copy);
	if (status != AG_DEVICE_OK)
	{
		ag_mem_free(bins->mem, copy);
		return status;
	}
	copy->next = atomic_load(bins->copies);
	while (!atomic_compare_exchange_weak(bins->copies, &copy->next, copy))
		;
	*matrix = copy->matrix;
	return AG_DEVICE_OK;
}

void
ag_bins_leave_devices(AgBins *bins)
{
	AgBinsCopy *copy, *next;

	if (bins->copies == NULL)
		return;
	for (copy = atomic_exchange(bins->copies, NULL); copy != NULL; copy = next)
	{
		next = copy->next;
		copy->gpu->ops->matrix_free(copy->gpu->device, copy->matrix);
		ag_mem_free(bins->mem, copy);
	}
}
