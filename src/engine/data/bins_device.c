/*
 * bins_device.c - copies of the binned matrix on devices.
 */
#include "engine/data/bins_device.h"

#include <string.h>

#include "engine/data/bins_private.h"

/* One of a list. */
typedef struct AgBinsCopy
{
	AgGpu *gpu; /* who made it, and whose share of the device's memory it takes */
	AgDeviceMatrix *matrix;
	struct AgBinsCopy *next;
} AgBinsCopy;

/* Do both stand for the same device? Trainings at the same time have a share of it each. */
static bool
is_same_device(const AgGpu *a, const AgGpu *b)
{
	return a == b || (a->ops == b->ops && strcmp(a->name, b->name) == 0);
}

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

/* ag_bins_on_device, one at a time. */
static AgDeviceStatus
find_or_make(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, AgDeviceMatrix **matrix)
{
	AgDeviceStatus status;
	AgBinsCopy *copy;

	for (copy = bins->copies->first; copy != NULL; copy = copy->next)
		if (is_same_device(copy->gpu, gpu))
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
	copy->next = bins->copies->first;
	bins->copies->first = copy;
	*matrix = copy->matrix;
	return AG_DEVICE_OK;
}

AgDeviceStatus
ag_bins_on_device(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, AgDeviceMatrix **matrix)
{
	AgDeviceStatus status;

	*matrix = NULL;
	pthread_mutex_lock(&bins->copies->lock);
	status = find_or_make(ctx, bins, gpu, matrix);
	pthread_mutex_unlock(&bins->copies->lock);
	return status;
}

void
ag_bins_leave_devices(AgBins *bins)
{
	AgBinsCopy *copy, *next;

	if (bins->copies == NULL)
		return;
	for (copy = bins->copies->first; copy != NULL; copy = next)
	{
		next = copy->next;
		copy->gpu->ops->matrix_free(copy->gpu->device, copy->matrix);
		ag_mem_free(bins->mem, copy);
	}
	bins->copies->first = NULL;
}
