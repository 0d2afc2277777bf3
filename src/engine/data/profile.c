/*
 * profile.c - see profile.h.
 */
#include "engine/data/profile.h"

#include <math.h>
#include <stdlib.h>

#include "engine/data/pipeline.h"

#define TAG_ROWS 2u
#define TAG_HISTOGRAMS 3u
#define TAG_TABLE_ROWS 4u
#define COUNTED_ROWS 10000

_Static_assert(sizeof(AgHistogram) == 168, "part of the format");

static int
compare_doubles(const void *left, const void *right)
{
	double a = *(const double *) left, b = *(const double *) right;

	return (a > b) - (a < b);
}

int
ag_histogram_bin(const AgHistogram *histogram, double x)
{
	int bin = 0;

	if (x != x)
		return AG_PROFILE_MISSING;
	while (bin < (int) histogram->n_cuts && !(x <= histogram->cuts[bin]))
		bin++;
	return bin;
}

/* Deciles of the sorted values that are there; a decile that repeats another cuts nothing off, nor does the greatest value. */
static void
set_cuts(AgHistogram *histogram, const double *sorted, int64_t n)
{
	for (int64_t k = 1; k <= AG_PROFILE_CUTS && n > 0; k++)
	{
		double cut = sorted[(k * n + AG_PROFILE_CUTS) / (AG_PROFILE_CUTS + 1) - 1];

		if (cut < sorted[n - 1] &&
			(histogram->n_cuts == 0 || cut > histogram->cuts[histogram->n_cuts - 1]))
			histogram->cuts[histogram->n_cuts++] = cut;
	}
}

/* values[n] are lost. */
static void
fill_histogram(AgHistogram *histogram, double *values, int64_t n)
{
	int64_t n_there = 0;

	for (int64_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			values[n_there++] = values[i];
	qsort(values, (size_t) n_there, sizeof *values, compare_doubles);
	set_cuts(histogram, values, n_there);
	for (int64_t i = 0; i < n_there; i++)
		histogram->counts[ag_histogram_bin(histogram, values[i])] += 1.0;
	histogram->counts[AG_PROFILE_MISSING] = (double) (n - n_there);
}

/* n of the table's rows, at even distances. */
static void
spread_rows(const AgTable *table, int64_t n, uint32_t *rows)
{
	for (int64_t i = 0; i < n; i++)
		rows[i] = (uint32_t) (i * table->n_rows / n);
}

/* The column itself where it is one; else the first thing that is read off it. */
int
ag_profile_feature(const AgPipeline *pipeline, int input)
{
	int first = -1;

	for (int f = 0; f < pipeline->n_features; f++)
	{
		if (pipeline->features[f].input != input || pipeline->features[f].kind == AG_FEATURE_SINCE)
			continue;
		if (pipeline->features[f].kind <= AG_FEATURE_CATEGORY)
			return f;
		if (first < 0)
			first = f;
	}
	return first;
}

static AgStatus
fill_histograms(const AgContext *ctx, const AgPipeline *pipeline, const AgTable *table,
				AgHistogram *histograms)
{
	int64_t n = table->n_rows < COUNTED_ROWS ? table->n_rows : COUNTED_ROWS;
	double *values = NULL;
	uint32_t *rows = NULL;
	AgStatus status;

	AG_GO(ag_get(ctx, (size_t) n, sizeof *values, &values));
	AG_GO(ag_get(ctx, (size_t) n, sizeof *rows, &rows));
	spread_rows(table, n, rows);
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		int f = ag_profile_feature(pipeline, i);

		if (f < 0 || pipeline->features[f].kind == AG_FEATURE_CATEGORY)
			continue;
		AG_GO(ag_check_cancel(ctx));
		ag_pipeline_feature(pipeline, table, f, rows, n, values);
		fill_histogram(&histograms[i], values, n);
	}
done:
	ag_mem_free(ctx->mem, values);
	ag_mem_free(ctx->mem, rows);
	return status;
}

AgStatus
ag_profile_fit(const AgContext *ctx, AgPipeline *pipeline, const AgTable *table)
{
	AgProfile *profile = &pipeline->profile;
	int64_t n = table->n_rows < AG_PROFILE_ROWS ? table->n_rows : AG_PROFILE_ROWS;
	size_t n_features = (size_t) pipeline->n_features;
	uint32_t which[AG_PROFILE_ROWS];
	double column[AG_PROFILE_ROWS];
	double *rows = ag_arena_alloc(&pipeline->arena, (size_t) n, n_features * sizeof *rows);
	AgHistogram *histograms =
		ag_arena_alloc(&pipeline->arena, (size_t) pipeline->n_inputs, sizeof *histograms);

	if (rows == NULL || histograms == NULL)
		return ag_mem_error(ctx->mem, (size_t) n * n_features * sizeof *rows, ctx->error);
	spread_rows(table, n, which);
	for (int f = 0; f < pipeline->n_features; f++)
	{
		ag_pipeline_feature(pipeline, table, f, which, n, column);
		for (int64_t i = 0; i < n; i++)
			rows[(size_t) i * n_features + (size_t) f] = column[i];
	}
	profile->n_table_rows = table->n_rows;
	profile->n_rows = n;
	profile->rows = rows;
	profile->histograms = histograms;
	return fill_histograms(ctx, pipeline, table, histograms);
}

void
ag_profile_write(const AgPipeline *pipeline, AgImageWriter *image)
{
	const AgProfile *profile = &pipeline->profile;

	ag_image_section(image, TAG_ROWS, sizeof *profile->rows, profile->rows,
					 (uint64_t) profile->n_rows * (uint64_t) pipeline->n_features);
	ag_image_section(image, TAG_HISTOGRAMS, sizeof *profile->histograms, profile->histograms,
					 (uint64_t) pipeline->n_inputs);
	ag_image_section(image, TAG_TABLE_ROWS, sizeof profile->n_table_rows, &profile->n_table_rows,
					 1);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored preprocessing is damaged: %s", what);
}

/* A category's value is a code, as the encoder gives them. */
static bool
is_feature_value(const AgFeature *feature, double x)
{
	if (!ag_feature_is_category(feature) || x != x)
		return true;
	return x >= AG_UNSEEN && x < feature->n_levels && x == floor(x);
}

static bool
histogram_makes_sense(const AgHistogram *histogram)
{
	if (histogram->n_cuts > AG_PROFILE_CUTS)
		return false;
	for (uint64_t k = 0; k < histogram->n_cuts; k++)
		if (!(k == 0 ? histogram->cuts[0] == histogram->cuts[0]
					 : histogram->cuts[k] > histogram->cuts[k - 1]))
			return false;
	for (int k = 0; k <= AG_PROFILE_MISSING; k++)
		if (!(histogram->counts[k] >= 0.0 && histogram->counts[k] <= COUNTED_ROWS))
			return false;
	return true;
}

AgStatus
ag_profile_read(const AgContext *ctx, const AgImage *image, AgPipeline *pipeline)
{
	AgProfile *profile = &pipeline->profile;
	uint64_t n_features = (uint64_t) pipeline->n_features;
	uint64_t n_values, n_histograms, n_numbers;
	const void *rows, *histograms, *n_table_rows;

	AG_TRY(ag_image_find(ctx, image, TAG_ROWS, sizeof *profile->rows, &rows, &n_values));
	AG_TRY(ag_image_find(ctx, image, TAG_HISTOGRAMS, sizeof *profile->histograms, &histograms,
						 &n_histograms));
	AG_TRY(ag_image_find(ctx, image, TAG_TABLE_ROWS, sizeof profile->n_table_rows, &n_table_rows,
						 &n_numbers));
	if (n_numbers != 1 || n_values % n_features != 0 || n_values / n_features == 0 ||
		n_values / n_features > AG_PROFILE_ROWS || n_histograms != (uint64_t) pipeline->n_inputs)
		return corrupt(ctx, "its sections differ in length");
	profile->n_table_rows = *(const int64_t *) n_table_rows;
	profile->n_rows = (int64_t) (n_values / n_features);
	profile->rows = rows;
	profile->histograms = histograms;
	if (profile->n_table_rows < profile->n_rows)
		return corrupt(ctx, "it was trained on fewer rows than it holds");
	for (uint64_t i = 0; i < n_values; i++)
		if (!is_feature_value(&pipeline->features[i % n_features], profile->rows[i]))
			return corrupt(ctx, "a row of the training data makes no sense");
	for (uint64_t i = 0; i < n_histograms; i++)
		if (!histogram_makes_sense(&profile->histograms[i]))
			return corrupt(ctx, "a histogram makes no sense");
	return AG_OK;
}
