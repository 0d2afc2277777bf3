/*
 * bins_device.c - copies of the binned matrix on devices.
 */
#include "engine/data/bins_device.h"

#include <stdio.h>
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
make_copy(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
		  AgBinsCopy *copy)
{
	size_t n = (size_t) bins->n_features;
	AgDeviceFeature *features = ag_mem_alloc(ctx->mem, n, sizeof *features);
	AgDeviceBins shown = {.n_rows = bins->n_rows,
						  .n_features = bins->n_features,
						  .features = features,
						  .row_stride = bins->row_stride,
						  .rows = bins->rows,
						  .column_stride = bins->column_stride,
						  .columns = bins->columns,
						  .spare_bytes = spare_bytes};
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
find_or_make(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
			 AgDeviceMatrix **matrix)
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
	status = make_copy(ctx, bins, gpu, spare_bytes, copy);
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
ag_bins_on_device(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
				  AgDeviceMatrix **matrix)
{
	AgDeviceStatus status;

	*matrix = NULL;
	pthread_mutex_lock(&bins->copies->lock);
	status = find_or_make(ctx, bins, gpu, spare_bytes, matrix);
	pthread_mutex_unlock(&bins->copies->lock);
	return status;
}

AgDeviceShape
ag_bins_shape(const AgBins *bins)
{
	AgDeviceShape shape = {.n_rows = bins->n_rows, .n_features = bins->n_features};

	for (int f = 0; f < bins->n_features; f++)
		shape.n_cells += bins->features[f].n_bins + 1;
	return shape;
}

void
ag_bins_tell_need(const AgContext *ctx, const AgGpu *gpu, const AgDeviceMatrix *matrix,
				  int64_t model_bytes)
{
	AgDeviceLayout layout;
	AgDeviceMemory memory;
	char blocks[64] = "";

	if (gpu->ops->matrix_layout == NULL)
		return;
	gpu->ops->matrix_layout(matrix, &layout);
	gpu->ops->memory(gpu->device, &memory);
	if (layout.n_blocks > 0)
		snprintf(blocks, sizeof blocks, ", which come in %d blocks", (int) layout.n_blocks);
	ag_log(
		ctx, AG_LOG_RESOURCES,
		"Needs %.2f MB of %s beside %.2f MB of bins%s; %.2f MB of this training's share are free",
		(double) model_bytes / 1e6, gpu->name, (double) layout.n_bytes / 1e6, blocks,
		(double) (memory.limit_bytes - memory.used_bytes) / 1e6);
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
