/*
 * bins.c - the binned matrix.
 */
#include "engine/data/bins.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/bins_device.h"
#include "engine/data/bins_gpu.h"
#include "engine/data/bins_private.h"

/* Centers stay so small that differences of two are finite. */
#define AG_CENTER_MAX 1e300

static int64_t
row_stride_of(int n_features)
{
	int64_t bytes = (int64_t) n_features + 4;

	return bytes <= 32 ? (bytes + 3) / 4 * 4 : (bytes + 31) / 32 * 32;
}

AgStatus
ag_bins_create(const AgContext *ctx, int64_t n_rows, int n_features, AgBins **bins)
{
	return ag_bins_create_wider(ctx, n_rows, n_features, 0, bins);
}

AgStatus
ag_bins_create_wider(const AgContext *ctx, int64_t n_rows, int n_features, int n_spare,
					 AgBins **bins)
{
	size_t n_columns = (size_t) n_features + (size_t) n_spare;
	AgBins *b;

	*bins = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof(AgBins), &b));
	b->mem = ctx->mem;
	b->n_rows = n_rows;
	b->row_stride = row_stride_of(n_features);
	b->column_stride = (n_rows + 63) / 64 * 64;
	/* Columns that begin 4 KiB apart would share cache sets. */
	if (b->column_stride % 4096 == 0)
		b->column_stride += 64;
	if (ag_get_zeroed(ctx, 1, sizeof *b->copies, &b->copies) == AG_OK)
		pthread_mutex_init(&b->copies->lock, NULL);
	if (b->copies == NULL ||
		ag_get_zeroed(ctx, n_columns, sizeof(AgBinFeature), &b->features) != AG_OK ||
		ag_get_zeroed(ctx, n_columns, (size_t) b->column_stride, &b->columns) != AG_OK)
	{
		ag_bins_free(b);
		return AG_ERR_MEMORY;
	}
	b->n_features = n_features;
	*bins = b;
	return AG_OK;
}

void
ag_bins_free(AgBins *bins)
{
	if (bins == NULL)
		return;
	ag_bins_leave_devices(bins);
	if (bins->copies != NULL)
		pthread_mutex_destroy(&bins->copies->lock);
	ag_mem_free(bins->mem, bins->copies);
	for (int f = 0; f < bins->n_features; f++)
	{
		ag_mem_free(bins->mem, bins->features[f].cuts);
		ag_mem_free(bins->mem, bins->features[f].centers);
	}
	ag_mem_free(bins->mem, bins->features);
	ag_mem_free(bins->mem, bins->columns);
	ag_mem_free(bins->mem, bins->rows);
	ag_mem_free(bins->mem, bins);
}

int
ag_bin_of_number(const AgBinFeature *feature, double x)
{
	int bin = 1;

	if (x != x)
		return 0;
	while (bin < feature->n_bins && x > feature->cuts[bin - 1])
		bin++;
	return bin;
}

int
ag_bin_of_code(const AgBinFeature *feature, uint32_t code)
{
	if (code == UINT32_MAX)
		return 0;
	if (code < (uint32_t) (feature->n_bins - feature->has_other))
		return (int) code + 1;
	return feature->n_bins;
}

/* The order keys of the first n values that aren't missing; returns how many. */
static int64_t
collect_keys(const double *values, int64_t n, uint64_t *keys)
{
	int64_t n_keys = 0;

	for (int64_t i = 0; i < n; i++)
	{
		keys[n_keys] = ag_order_key(values[i]);
		n_keys += values[i] == values[i];
	}
	return n_keys;
}

static double
clipped(double x)
{
	return x < -AG_CENTER_MAX ? -AG_CENTER_MAX : x > AG_CENTER_MAX ? AG_CENTER_MAX : x;
}

/* The middle of each bin's least and greatest value; keys are the sorted values. */
static void
find_centers(const uint64_t *keys, int64_t n, const double *cuts, int n_bins, double *centers)
{
	int64_t begin = 0;

	for (int b = 0; b < n_bins; b++)
	{
		int64_t low = begin, high = n;
		double least, most;

		/* The first key above the bin's upper cut. */
		while (b < n_bins - 1 && low < high)
		{
			int64_t middle = low + (high - low) / 2;

			if (ag_order_value(keys[middle]) <= cuts[b])
				low = middle + 1;
			else
				high = middle;
		}
		centers[b] = 0.0;
		if (high > begin)
		{
			least = clipped(ag_order_value(keys[begin]));
			most = clipped(ag_order_value(keys[high - 1]));
			centers[b] = least == most ? least : least + 0.5 * (most - least);
		}
		begin = high;
	}
}

AgStatus
ag_bins_set_cuts(const AgContext *ctx, const uint64_t *sorted, int64_t n_keys, int max_bins,
				 int min_data_in_bin, AgBinFeature *feature)
{
	double cuts[AG_MAX_BIN], centers[AG_MAX_BIN];
	int n_cuts = ag_cuts_choose(sorted, n_keys, max_bins, min_data_in_bin, cuts);

	find_centers(sorted, n_keys, cuts, n_cuts + 1, centers);
	ag_mem_free(ctx->mem, feature->cuts);
	ag_mem_free(ctx->mem, feature->centers);
	feature->cuts = feature->centers = NULL;
	feature->n_bins = n_cuts + 1;
	AG_TRY(ag_get(ctx, (size_t) n_cuts, sizeof(double), &feature->cuts));
	AG_TRY(ag_get(ctx, (size_t) n_cuts + 1, sizeof(double), &feature->centers));
	memcpy(feature->cuts, cuts, (size_t) n_cuts * sizeof(double));
	memcpy(feature->centers, centers, ((size_t) n_cuts + 1) * sizeof(double));
	return AG_OK;
}

static AgStatus
choose_cuts(const AgContext *ctx, const double *values, int64_t n, int max_bins,
			int min_data_in_bin, AgBinFeature *feature)
{
	uint64_t *keys;
	int64_t n_keys;
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) n, 2 * sizeof(uint64_t), &keys));
	n_keys = collect_keys(values, n, keys);
	status = ag_bins_set_cuts(ctx, ag_keys_sort(keys, keys + n, n_keys), n_keys, max_bins,
							  min_data_in_bin, feature);
	ag_mem_free(ctx->mem, keys);
	return status;
}

/* Cuts and bins, by the calling thread. */
static AgStatus
bin_numbers(const AgContext *ctx, const double *values, int64_t n, int64_t n_sample, int max_bins,
			int min_data_in_bin, AgBinFeature *feature, uint8_t *column)
{
	AgCutTable table;

	AG_TRY(choose_cuts(ctx, values, n_sample, max_bins, min_data_in_bin, feature));
	/* A sample that saw one value only may have missed the few rows that matter. */
	if (feature->n_bins == 1 && n_sample < n)
		AG_TRY(choose_cuts(ctx, values, n, max_bins, min_data_in_bin, feature));
	ag_cut_table_init(&table, feature->cuts, feature->n_bins - 1);
	ag_bin_assign_best()(&table, values, n, column);
	return AG_OK;
}

static AgStatus
set_numbers(const AgContext *ctx, AgBins *bins, int f, const double *values,
			const AgBinParams *params, int max_bins)
{
	AgBinFeature *feature = &bins->features[f];
	uint8_t *column = bins->columns + f * bins->column_stride;
	int64_t n = bins->n_rows;
	int64_t sample_rows =
		params->sample_rows > 0 && params->sample_rows < n ? params->sample_rows : n;
	int64_t began;
	AgStatus status;

	feature->is_category = false;
	if (bins->gpu == NULL ||
		!ag_bins_gpu_numbers(ctx, bins->gpu, values, n, sample_rows, max_bins,
							 params->min_data_in_bin, feature, column, &status))
	{
		began = ag_clock_ns();
		status = bin_numbers(ctx, values, n, sample_rows, max_bins, params->min_data_in_bin,
							 feature, column);
		if (bins->gpu != NULL)
			ag_bins_gpu_note_cpu(bins->gpu, ag_clock_ns() - began);
	}
	AG_TRY(status);
	feature->has_missing = n > 0 && memchr(column, 0, (size_t) n) != NULL;
	return AG_OK;
}

static void
set_codes(AgBins *bins, int f, const uint32_t *codes, uint32_t n_levels, int max_bins)
{
	AgBinFeature *feature = &bins->features[f];
	uint8_t *column = bins->columns + f * bins->column_stride;
	uint32_t n_apart;

	feature->is_category = true;
	feature->n_levels = n_levels;
	feature->has_other = n_levels > (uint32_t) max_bins;
	feature->n_bins = feature->has_other ? max_bins : n_levels > 0 ? (int) n_levels : 1;
	n_apart = (uint32_t) (feature->n_bins - feature->has_other);
	for (int64_t i = 0; i < bins->n_rows; i++)
	{
		uint32_t code = codes[i];
		/* AG_NO_CODE + 1 is 0: the missing bin. */
		uint32_t bin = code + 1;

		bin = bin > n_apart ? (uint32_t) feature->n_bins : bin;
		column[i] = (uint8_t) bin;
	}
	feature->has_missing = bins->n_rows > 0 && memchr(column, 0, (size_t) bins->n_rows) != NULL;
}

AgStatus
ag_bins_set_feature(const AgContext *ctx, AgBins *bins, int f, const AgBinSource *source,
					const AgBinParams *params)
{
	int max_bins = params->max_bins < 2            ? 2
				   : params->max_bins > AG_MAX_BIN ? AG_MAX_BIN
												   : params->max_bins;

	if (source->codes == NULL)
		return set_numbers(ctx, bins, f, source->values, params, max_bins);
	set_codes(bins, f, source->codes, source->n_levels, max_bins);
	return AG_OK;
}

AgStatus
ag_bins_copy_feature(const AgContext *ctx, AgBins *bins, int f, const AgBins *from, int g)
{
	AgBinFeature *feature = &bins->features[f];
	const AgBinFeature *source = &from->features[g];
	size_t n_cuts = source->is_category ? 0 : (size_t) source->n_bins - 1;

	*feature = *source;
	feature->cuts = feature->centers = NULL;
	memcpy(bins->columns + f * bins->column_stride, from->columns + g * from->column_stride,
		   (size_t) bins->n_rows);
	if (source->is_category)
		return AG_OK;
	AG_TRY(ag_get(ctx, n_cuts, sizeof(double), &feature->cuts));
	AG_TRY(ag_get(ctx, n_cuts + 1, sizeof(double), &feature->centers));
	if (n_cuts > 0)
		memcpy(feature->cuts, source->cuts, n_cuts * sizeof(double));
	memcpy(feature->centers, source->centers, (n_cuts + 1) * sizeof(double));
	return AG_OK;
}

/* Rows in blocks of 64: a block of all columns stays in the nearest cache while it is turned. */
static void
turn_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgBins *bins = arg;

	(void) thread;
	for (int64_t block = begin; block < end; block += 64)
	{
		int64_t block_end = end - block < 64 ? end : block + 64;

		for (int f = 0; f < bins->n_features; f++)
		{
			const uint8_t *from = bins->columns + f * bins->column_stride;
			uint8_t *to = bins->rows + f;

			for (int64_t row = block; row < block_end; row++)
				to[row * bins->row_stride] = from[row];
		}
	}
}

AgStatus
ag_bins_make_rows(const AgContext *ctx, AgBins *bins)
{
	if (bins->rows != NULL)
		return AG_OK;
	AG_TRY(ag_get_zeroed(ctx, (size_t) bins->n_rows, (size_t) bins->row_stride, &bins->rows));
	ag_pool_run(ctx->pool, bins->n_rows, 8192, turn_rows, bins);
	return AG_OK;
}
