/*
 * build_histogram.c - nanoseconds to bin a value, and to add one row to one feature's histogram.
 *
 *     build_histogram [ROWS [FEATURES]]
 *
 * Random bins under all 254, and random subsets of the rows, as nodes of a tree list them. Binning by every kind of
 * CPU that this one can play; the histogram's loop is the same for all of them. Medians of nine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/data/bins_private.h"
#include "engine/model/histogram.h"

static int
compare(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Fills the columns and cuts that make each feature 254 bins. */
static AgBins *
random_bins(const AgContext *ctx, int64_t n_rows, int n_features)
{
	AgBinParams params = {254, 1, 200000};
	double *values = malloc((size_t) n_rows * sizeof *values);
	AgBins *bins;

	if (values == NULL || ag_bins_create(ctx, n_rows, n_features, &bins) != AG_OK)
		exit(1);
	for (int f = 0; f < n_features; f++)
	{
		AgBinSource source = {.values = values};

		for (int64_t i = 0; i < n_rows; i++)
			values[i] = ag_random_unit((uint64_t) f, (uint64_t) i);
		if (ag_bins_set_feature(ctx, bins, f, &source, &params) != AG_OK)
			exit(1);
	}
	free(values);
	if (ag_bins_make_rows(ctx, bins) != AG_OK)
		exit(1);
	return bins;
}

/* The binner's inner loop under 253 cuts. */
static void
time_binning(int64_t n_rows)
{
	static const char *names[] = {"portable", "AVX2", "AVX-512"};
	AgBinAssign variants[3];
	int n_variants = ag_bin_assign_variants(variants);
	double *values = malloc((size_t) n_rows * sizeof *values), cuts[253], times[9];
	uint8_t *bins = malloc((size_t) n_rows);
	AgCutTable table;

	if (values == NULL || bins == NULL)
		exit(1);
	for (int64_t i = 0; i < n_rows; i++)
		values[i] = ag_random_unit(5, (uint64_t) i);
	for (int i = 0; i < 253; i++)
		cuts[i] = (i + 1) / 254.0;
	ag_cut_table_init(&table, cuts, 253);
	for (int v = 0; v < n_variants; v++)
	{
		for (int r = 0; r < 9; r++)
		{
			double from = ag_cpu_ns() * 1e-9;

			variants[v](&table, values, n_rows, bins);
			times[r] = ag_cpu_ns() * 1e-9 - from;
		}
		qsort(times, 9, sizeof *times, compare);
		printf("binning, %s: %.2f ns a value\n", names[v], times[4] * 1e9 / (double) n_rows);
	}
	free(values);
	free(bins);
}

int
main(int argc, char **argv)
{
	int64_t n_rows = argc > 1 ? atoll(argv[1]) : 1000000;
	int n_features = argc > 2 ? atoi(argv[2]) : 28;
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgBins *bins;
	AgHistBuilder builder;
	AgHist hist;
	AgRowList list;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	time_binning(n_rows);
	bins = random_bins(&ctx, n_rows, n_features);
	list.ids = malloc((size_t) n_rows * sizeof(uint32_t));
	list.grads = malloc((size_t) n_rows * sizeof(uint32_t));
	if (list.ids == NULL || list.grads == NULL ||
		ag_hist_builder_create(&ctx, bins, &builder) != AG_OK)
		return 1;
	hist.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
	for (int one_in = 1; one_in <= 64; one_in *= 4)
	{
		double times[9];
		int64_t n = 0;

		for (int64_t i = 0; i < n_rows; i++)
			if (ag_random_below(77, (uint64_t) i, (uint32_t) one_in) == 0)
			{
				list.ids[n++] = (uint32_t) i;
				list.grads[i] = (uint32_t) ag_random_u64(78, (uint64_t) i) & 0xffff7fffu;
			}
		for (int r = 0; r < 9; r++)
		{
			double from = ag_cpu_ns() * 1e-9;

			if (ag_hist_build(&builder, &list, n, &hist) != AG_OK)
				return 1;
			times[r] = ag_cpu_ns() * 1e-9 - from;
		}
		qsort(times, 9, sizeof *times, compare);
		printf("histogram, one row in %d: %.3f ns a row and feature\n", one_in,
			   times[4] * 1e9 / (double) n / n_features);
	}
	ag_hist_builder_free(&ctx, &builder);
	ag_bins_free(bins);
	free(hist.cells);
	free(list.ids);
	free(list.grads);
	return 0;
}
