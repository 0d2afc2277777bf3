/*
 * matrix.cu - the binned matrix on the device.
 *
 * It comes once and serves every model, fold and level: row-major for histograms, column-major for partitions and for rows
 * that go through a tree. Where memory is short the column-major copy stays away; where it is shorter still, rows come in blocks
 * whenever they are looked at. Sums are of integers, so that nothing depends on it but the time.
 */
#include "kernels/matrix.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGK_CELL_BYTES 8    /* a bin's two sums in shared memory */
#define AGK_MOST_BLOCKS 64  /* with more the CPU is as fast */
#define AGK_SMALL_ARRAYS 12 /* each takes some more than its bytes */

/* What is computed on the host before it goes there. */
struct Layout
{
	int32_t *n_bins, *categories, *offset, *slab;
	uint8_t *is_category, *has_other;
	double *cuts, *centers;
	int64_t *first_cut, *first_center;
	int64_t n_cuts, n_centers;
};

static void
layout_free(Layout *layout)
{
	free(layout->n_bins);
	free(layout->categories);
	free(layout->offset);
	free(layout->slab);
	free(layout->is_category);
	free(layout->has_other);
	free(layout->cuts);
	free(layout->centers);
	free(layout->first_cut);
	free(layout->first_center);
}

template <class T>
static bool
host_get(size_t n, T **at)
{
	*at = static_cast<T *>(calloc(n + 1, sizeof(T)));
	return *at != nullptr;
}

/* Groups of four features, as many as fit. */
static void
cut_slabs(const AgDevice *device, Layout *layout, AgkMatrix *view)
{
	int most = (int) (device->shared_bytes / AGK_CELL_BYTES), n = view->n_features;

	for (int f = 0; f < n;)
	{
		int end = f, cells = 0;

		while (end < n)
		{
			int next = end + 4 < n ? end + 4 : n;
			int more = layout->offset[next] - layout->offset[end];

			if (end > f && cells + more > most)
				break;
			cells += more;
			end = next;
		}
		layout->slab[view->n_slabs++] = f;
		if (cells > view->slab_cells)
			view->slab_cells = cells;
		f = end;
	}
	layout->slab[view->n_slabs] = n;
}

static bool
lay_out(const AgDevice *device, const AgDeviceBins *bins, Layout *layout, AgkMatrix *view)
{
	size_t n = (size_t) bins->n_features;

	for (size_t f = 0; f < n; f++)
		if (!bins->features[f].is_category)
		{
			layout->n_cuts += bins->features[f].n_bins - 1;
			layout->n_centers += bins->features[f].n_bins;
		}
	if (!host_get(n, &layout->n_bins) || !host_get(n, &layout->categories) ||
		!host_get(n + 1, &layout->offset) || !host_get(n + 1, &layout->slab) ||
		!host_get(n, &layout->is_category) || !host_get(n, &layout->has_other) ||
		!host_get((size_t) layout->n_cuts, &layout->cuts) || !host_get(n, &layout->first_cut) ||
		!host_get((size_t) layout->n_centers, &layout->centers) ||
		!host_get(n, &layout->first_center))
		return false;
	layout->n_cuts = layout->n_centers = 0;
	for (size_t f = 0; f < n; f++)
	{
		const AgDeviceFeature *feature = bins->features + f;

		layout->n_bins[f] = feature->n_bins;
		layout->is_category[f] = feature->is_category;
		layout->has_other[f] = feature->has_other;
		layout->first_cut[f] = layout->n_cuts;
		layout->first_center[f] = layout->n_centers;
		layout->offset[f + 1] = layout->offset[f] + feature->n_bins + 1;
		if (feature->is_category)
			layout->categories[view->n_categories++] = (int32_t) f;
		for (int c = 0; !feature->is_category && c < feature->n_bins - 1; c++)
			layout->cuts[layout->n_cuts++] = feature->cuts[c];
		for (int b = 0; !feature->is_category && b < feature->n_bins; b++)
			layout->centers[layout->n_centers++] =
				feature->centers != nullptr ? feature->centers[b] : 0.0;
	}
	view->n_cells = layout->offset[n];
	cut_slabs(device, layout, view);
	return true;
}

/* As much as there is room for. */
static AgDeviceStatus
choose_layout(AgDevice *device, const AgDeviceBins *bins, const Layout *layout,
			  AgDeviceMatrix *matrix)
{
	AgkMatrix *view = &matrix->view;
	int64_t n = bins->n_features, n_blocks;
	int64_t small = 8 * (layout->n_cuts + layout->n_centers) + 64 * n + AGK_SMALL_ARRAYS * 512;
	int64_t rows = bins->n_rows * bins->row_stride, columns = n * bins->column_stride;
	int64_t left = device->limit_bytes - device->used_bytes;
	int64_t room = left - bins->spare_bytes - small;

	view->host_rows = bins->rows;
	view->host_columns = bins->columns;
	view->end_row = bins->n_rows;
	matrix->has_columns = rows + columns <= room;
	if (rows <= room)
		return AG_DEVICE_OK;
	view->n_block_rows = room / bins->row_stride;
	n_blocks = view->n_block_rows > 0 ? (bins->n_rows + view->n_block_rows - 1) / view->n_block_rows
									  : AGK_MOST_BLOCKS + 1;
	if (n_blocks <= AGK_MOST_BLOCKS)
	{
		view->n_block_rows = (bins->n_rows + n_blocks - 1) / n_blocks;
		return AG_DEVICE_OK;
	}
	snprintf(device->why, sizeof(device->why),
			 "it needs %.1f MB of GPU %d and as much of %.1f MB of bins as fits, where %.1f MB of "
			 "this fit's share are left",
			 (double) bins->spare_bytes / 1e6, device->index, (double) rows / 1e6,
			 (double) left / 1e6);
	return AG_DEVICE_MEMORY;
}

static AgDeviceStatus
upload(AgDevice *device, const AgDeviceBins *bins, const Layout *layout, AgDeviceMatrix *matrix)
{
	AgkMatrix *view = &matrix->view;
	int64_t n = bins->n_features;

	if (view->n_block_rows > 0)
		AGK_TRY(agk_get(device, view->n_block_rows * bins->row_stride, &matrix->rows));
	else
		AGK_TRY(agk_get_filled(device, bins->n_rows * bins->row_stride, bins->rows, &matrix->rows));
	if (matrix->has_columns)
		AGK_TRY(agk_get_filled(device, n * bins->column_stride, bins->columns, &matrix->columns));
	AGK_TRY(agk_get_filled(device, n, layout->n_bins, &matrix->n_bins));
	AGK_TRY(agk_get_filled(device, n, layout->is_category, &matrix->is_category));
	AGK_TRY(agk_get_filled(device, n, layout->has_other, &matrix->has_other));
	AGK_TRY(agk_get_filled(device, n, layout->categories, &matrix->categories));
	AGK_TRY(agk_get_filled(device, n + 1, layout->offset, &matrix->offset));
	AGK_TRY(agk_get_filled(device, (int64_t) view->n_slabs + 1, layout->slab, &matrix->slab));
	AGK_TRY(agk_get_filled(device, layout->n_cuts, layout->cuts, &matrix->cuts));
	AGK_TRY(agk_get_filled(device, n, layout->first_cut, &matrix->first_cut));
	AGK_TRY(agk_get_filled(device, layout->n_centers, layout->centers, &matrix->centers));
	AGK_TRY(agk_get_filled(device, n, layout->first_center, &matrix->first_center));
	view->rows = matrix->rows.at;
	view->columns = matrix->columns.at;
	view->n_bins = matrix->n_bins.at;
	view->is_category = matrix->is_category.at;
	view->has_other = matrix->has_other.at;
	view->categories = matrix->categories.at;
	view->offset = matrix->offset.at;
	view->slab = matrix->slab.at;
	view->cuts = matrix->cuts.at;
	view->first_cut = matrix->first_cut.at;
	view->centers = matrix->centers.at;
	view->first_center = matrix->first_center.at;
	return agk_wait(device);
}

AgDeviceStatus
agk_matrix_create(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **created)
{
	AgDeviceMatrix *matrix;
	Layout layout;
	AgDeviceStatus status = AG_DEVICE_MEMORY;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	if (bins->n_features < 1 || bins->n_rows < 1)
		return agk_refuse(device, "there is nothing to learn from");
	if (bins->n_features > INT32_MAX / AGK_BINS)
		return agk_refuse(device, "there are more features than a histogram on a GPU can have");
	matrix = static_cast<AgDeviceMatrix *>(calloc(1, sizeof(AgDeviceMatrix)));
	if (matrix == nullptr)
		return AG_DEVICE_MEMORY;
	memset(&layout, 0, sizeof(layout));
	matrix->view.n_rows = bins->n_rows;
	matrix->view.n_features = bins->n_features;
	matrix->view.row_stride = bins->row_stride;
	matrix->view.column_stride = bins->column_stride;
	if (lay_out(device, bins, &layout, &matrix->view))
		status = choose_layout(device, bins, &layout, matrix);
	if (status == AG_DEVICE_OK)
		status = upload(device, bins, &layout, matrix);
	layout_free(&layout);
	if (status == AG_DEVICE_OK)
		*created = matrix;
	else
		agk_matrix_free(device, matrix);
	return status;
}

void
agk_matrix_layout(const AgDeviceMatrix *matrix, AgDeviceLayout *layout)
{
	const AgkMatrix *view = &matrix->view;

	layout->n_bytes = matrix->rows.n_bytes + matrix->columns.n_bytes;
	layout->has_columns = matrix->has_columns;
	layout->n_blocks = view->n_block_rows > 0
						   ? static_cast<int32_t>((view->n_rows - 1) / view->n_block_rows + 1)
						   : 0;
}

void
agk_matrix_free(AgDevice *device, AgDeviceMatrix *matrix)
{
	if (matrix == nullptr)
		return;
	agk_give(device, &matrix->rows);
	agk_give(device, &matrix->columns);
	agk_give(device, &matrix->n_bins);
	agk_give(device, &matrix->is_category);
	agk_give(device, &matrix->has_other);
	agk_give(device, &matrix->categories);
	agk_give(device, &matrix->offset);
	agk_give(device, &matrix->slab);
	agk_give(device, &matrix->cuts);
	agk_give(device, &matrix->first_cut);
	agk_give(device, &matrix->centers);
	agk_give(device, &matrix->first_center);
	free(matrix);
}
