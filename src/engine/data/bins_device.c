/*
 * bins_device.c - copies of the binned matrix on devices.
 *
 * A copy that is whole is looked at by everybody on its device. One whose rows come in blocks has a single place for them, so it is
 * its maker's alone. Where a model needs more than is left of a share, copies in it that nobody uses make room: those of other
 * matrices go, and the model's own is made again, smaller.
 */
#include "engine/data/bins_device.h"

#include <stdio.h>
#include <string.h>

#include "engine/data/bins_private.h"

/* In the list of its matrix, whose lock guards it, and in that of the gpu whose share it takes. */
typedef struct AgBinsCopy
{
	AgGpu *gpu; /* who made it */
	const AgBins *bins;
	AgDeviceMatrix *matrix;
	int n_users;
	bool is_reduced; /* without columns, or in blocks: there was too little room */
	bool is_blocked;
	struct AgBinsCopy *next, *next_of_gpu;
} AgBinsCopy;

/* Do both stand for the same device? Trainings at the same time have a share of it each. */
static bool
is_same_device(const AgGpu *a, const AgGpu *b)
{
	return a == b || (a->ops == b->ops && strcmp(a->name, b->name) == 0);
}

/* ---- room ---- */

/* What is left of the gpu's share. */
static int64_t
room_of(const AgGpu *gpu)
{
	AgDeviceMemory memory;

	if (gpu->ops->memory == NULL)
		return INT64_MAX;
	gpu->ops->memory(gpu->device, &memory);
	return memory.limit_bytes - memory.used_bytes;
}

/* Of a whole copy, about. */
static int64_t
whole_bytes(const AgBins *bins)
{
	return bins->n_rows * bins->row_stride + bins->n_features * bins->column_stride;
}

static void
free_copy(AgBinsCopy *copy)
{
	AgBinsCopy **at = &copy->bins->copies->first;

	while (*at != copy)
		at = &(*at)->next;
	*at = copy->next;
	for (at = &copy->gpu->copies; *at != copy; at = &(*at)->next_of_gpu)
		;
	*at = copy->next_of_gpu;
	copy->gpu->ops->matrix_free(copy->gpu->device, copy->matrix);
	ag_mem_free(copy->bins->mem, copy);
}

/* Frees copies of other matrices that nobody uses, until there is that much room. A matrix that somebody else looks at is left alone. */
static void
make_room(AgGpu *gpu, const AgBins *bins, int64_t wanted_bytes)
{
	AgBinsCopy *copy, *next;

	for (copy = gpu->copies; copy != NULL && room_of(gpu) < wanted_bytes; copy = next)
	{
		const AgBins *other = copy->bins;

		next = copy->next_of_gpu;
		if (other == bins || pthread_mutex_trylock(&other->copies->lock) != 0)
			continue;
		if (copy->n_users == 0)
			free_copy(copy);
		pthread_mutex_unlock(&other->copies->lock);
	}
}

/* ---- copies ---- */

static AgDeviceStatus
make_matrix(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
			AgDeviceMatrix **matrix)
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
	status = gpu->ops->matrix_create(gpu->device, &shown, matrix);
	ag_mem_free(ctx->mem, features);
	return status;
}

static AgDeviceStatus
make_copy(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
		  AgBinsCopy **made)
{
	AgBinsCopy *copy = ag_mem_alloc(bins->mem, 1, sizeof *copy);
	AgDeviceLayout layout = {.has_columns = true};
	AgDeviceStatus status;

	*made = NULL;
	if (copy == NULL)
		return AG_DEVICE_MEMORY;
	*copy = (AgBinsCopy){.gpu = gpu, .bins = bins};
	status = make_matrix(ctx, bins, gpu, spare_bytes, &copy->matrix);
	if (status != AG_DEVICE_OK)
	{
		ag_mem_free(bins->mem, copy);
		return status;
	}
	if (gpu->ops->matrix_layout != NULL)
		gpu->ops->matrix_layout(copy->matrix, &layout);
	copy->is_blocked = layout.n_blocks > 0;
	copy->is_reduced = copy->is_blocked || !layout.has_columns;
	copy->next = bins->copies->first;
	bins->copies->first = copy;
	copy->next_of_gpu = gpu->copies;
	gpu->copies = copy;
	*made = copy;
	return AG_DEVICE_OK;
}

/* The one that gpu can look at; NULL: there is none. */
static AgBinsCopy *
find_copy(const AgBins *bins, const AgGpu *gpu)
{
	for (AgBinsCopy *copy = bins->copies->first; copy != NULL; copy = copy->next)
		if (copy->gpu == gpu || (is_same_device(copy->gpu, gpu) && !copy->is_blocked))
			return copy;
	return NULL;
}

/* Is the copy to be made again, for it leaves too little, or is smaller than it need be by now? */
static bool
is_out_of_place(const AgBinsCopy *copy, const AgGpu *gpu, int64_t spare_bytes)
{
	AgDeviceLayout layout;
	int64_t room;

	if (copy->gpu != gpu || copy->n_users > 0 || spare_bytes == 0)
		return false;
	room = room_of(gpu);
	if (room < spare_bytes)
		return true;
	if (!copy->is_reduced)
		return false;
	gpu->ops->matrix_layout(copy->matrix, &layout);
	/* more than a little, lest it be made in vain */
	return (room + layout.n_bytes - spare_bytes) / 9 > whole_bytes(copy->bins) / 8;
}

/* ag_bins_on_device, one at a time. */
static AgDeviceStatus
find_or_make(const AgContext *ctx, const AgBins *bins, AgGpu *gpu, int64_t spare_bytes,
			 AgDeviceMatrix **matrix)
{
	AgBinsCopy *copy = find_copy(bins, gpu);

	if (copy == NULL)
		make_room(gpu, bins, whole_bytes(bins) + spare_bytes);
	else if (spare_bytes > 0)
		make_room(gpu, bins, spare_bytes + (copy->is_reduced ? whole_bytes(bins) : 0));
	if (copy != NULL && is_out_of_place(copy, gpu, spare_bytes))
	{
		free_copy(copy);
		copy = NULL;
	}
	if (copy == NULL)
	{
		AgDeviceStatus status = make_copy(ctx, bins, gpu, spare_bytes, &copy);

		if (status != AG_DEVICE_OK)
			return status;
	}
	copy->n_users++;
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

void
ag_bins_let_go(const AgBins *bins, const AgDeviceMatrix *matrix)
{
	if (matrix == NULL)
		return;
	pthread_mutex_lock(&bins->copies->lock);
	for (AgBinsCopy *copy = bins->copies->first; copy != NULL; copy = copy->next)
		if (copy->matrix == matrix)
			copy->n_users--;
	pthread_mutex_unlock(&bins->copies->lock);
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
	if (bins->copies == NULL)
		return;
	while (bins->copies->first != NULL)
		free_copy(bins->copies->first);
}
