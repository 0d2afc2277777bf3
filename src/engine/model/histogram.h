/*
 * histogram.h - sums of quantised gradients by feature and bin.
 *
 * A cell is one int64: the gradient's sum in the high half, the hessian's in the low half, so that an update is
 * one addition. That is exact up to AG_NARROW_ROWS rows. A node with more rows has a wide histogram: one
 * int64 array of gradients and one of hessians behind it. Integers: any order of adding gives the same bytes.
 */
#ifndef AG_HISTOGRAM_H
#define AG_HISTOGRAM_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/model/quantise.h"

/* 65536 rows of |g| <= 32767 stay within int32, of h <= 32767 within uint32. */
#define AG_NARROW_ROWS 65536
#define AG_HIST_BINS 256 /* room for the bins of one feature */

/*
 * Where the cells of each feature that is used lie: a number's from offset[f] on, bin 0, missing, first. A category's
 * bin has two: the sums, and behind them a cell that counts its rows in the hessian's place, for splits of categories
 * ask for exact counts; both are updated as one. Constant distances make the inner loop quicker: numbers that use most of
 * AG_HIST_BINS cells have as many and come first, and where all features are numbers and most of the room would be used,
 * so has every feature.
 */
typedef struct AgHistLayout
{
	int n_features;
	bool is_fixed;
	uint32_t *offset; /* [n_features]; of features that aren't used undefined */
	uint8_t *step;    /* [n_features] cells a bin: 1 or 2 */
	int64_t n_cells;
	int *numbers, *categories; /* the features used */
	int n_numbers, n_categories;
	int n_spread; /* so many of the numbers have AG_HIST_BINS cells, the k-th from k * AG_HIST_BINS on */
} AgHistLayout;

typedef struct AgHist
{
	int64_t *cells; /* room for a wide one: 2 * n_cells */
	bool is_wide;
} AgHist;

/* Builds histograms; owns each thread's private tables. One build at a time. */
typedef struct AgHistBuilder
{
	const AgContext *ctx;
	const AgBins *bins; /* with rows */
	AgHistLayout layout;
	int64_t most_cells; /* of the bins it was made for: other bins may have no more */
	AgCpuLevel level;
	int n_threads;
	struct AgHistScratch *scratch; /* [n_threads] */
} AgHistBuilder;

AgStatus ag_hist_builder_create(const AgContext *ctx, const AgBins *bins, AgHistBuilder *builder);
/* Safe on a builder that is all zero or whose creation failed. */
void ag_hist_builder_free(const AgContext *ctx, AgHistBuilder *builder);

/* Lays cells out for the features with is_used, all when NULL: histograms made before mean nothing from then on. */
void ag_hist_use(AgHistBuilder *builder, const uint8_t *is_used);

/*
 * The histogram of n_rows listed rows, on the pool when it is worth it. AG_ERR_MEMORY when private tables
 * can't be had; AG_ERR_CANCELLED.
 */
AgStatus ag_hist_build(AgHistBuilder *builder, const AgRowList *list, int64_t n_rows, AgHist *hist);

/* parent -= child: what is left is the histogram of the n_rows rows of the other child. */
void ag_hist_subtract(const AgHistBuilder *builder, AgHist *parent, const AgHist *child,
					  int64_t n_rows);

/* A subtraction that is made a few features at a time, when they are looked at: their cells are near then. */
typedef struct AgHistRest
{
	const AgHistBuilder *builder;
	int64_t *cells; /* the parent's, and then the rest's */
	const AgHist *child;
	bool was_wide, is_wide;
} AgHistRest;

/* parent is wide or narrow from now on as the rest will be, and holds nothing of a feature before that was made. */
AgHistRest ag_hist_rest_begin(const AgHistBuilder *builder, AgHist *parent, const AgHist *child,
							  int64_t n_rows);
/* Each feature that is used once, in any order, by any thread. */
void ag_hist_rest_make(const AgHistRest *rest, const int *features, int n);

/* The cells that the features of bins take at most. */
int64_t ag_hist_cells(const AgBins *bins);
/* What ag_hist_builder_create takes for each thread, and building later, for wide histograms or not. */
int64_t ag_hist_builder_memory(const AgBins *bins, bool is_wide);

/* Feature f's sums of the first n bins: g[n], h[n]. */
void ag_hist_load(const AgHistLayout *layout, const AgHist *hist, int f, int n, int64_t *g,
				  int64_t *h);

/* The same of a category's rows. */
void ag_hist_load_rows(const AgHistLayout *layout, const AgHist *hist, int f, int n, int64_t *rows);

/* How many of the listed rows fall into each bin of feature f: counts[AG_HIST_BINS]. */
void ag_hist_count(const AgBins *bins, int f, const uint32_t *ids, int64_t n_rows,
				   uint32_t *counts);

#endif
