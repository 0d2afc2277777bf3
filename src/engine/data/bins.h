/*
 * bins.h - the binned matrix that tree families train on.
 *
 * One byte a cell. Bin 0 is the missing bin of every feature; values take bins
 * 1..n_bins (n_bins <= 254). One predicate everywhere, in training and at prediction:
 *
 *     numeric:  1 <= bin <= t   <=>   x <= cuts[t - 1]      (1 <= t < n_bins)
 *     category: bin = code + 1 while code < n_bins - has_other, else the last bin
 *
 * Codes of a category are ranks by frequency (AgDictionary's order), so the byte
 * column holds the commonest levels apart and the tail together.
 */
#ifndef AG_BINS_H
#define AG_BINS_H

#include "engine/base/context.h"

#define AG_MAX_BIN 254 /* the highest value bin; with bin 0 that makes 255 */

typedef struct AgBinFeature
{
	bool is_category;
	bool has_missing;  /* some training row is missing */
	bool has_other;    /* category: the last bin collects the tail */
	int n_bins;        /* value bins, >= 1 */
	uint32_t n_levels; /* category: levels in all */
	double *
		cuts; /* numeric: [n_bins - 1], ascending, finite or +/-inf; midpoints of neighbouring distinct values */
	double *
		centers; /* numeric: [n_bins], of bin b at b - 1: middle of the least and greatest sampled value in it, within +/-1e300 */
} AgBinFeature;

typedef struct AgBins
{
	AgMem *mem;
	int64_t n_rows;
	int n_features;
	AgBinFeature *features; /* [n_features] */
	/*
	 * Bytes of a row in `rows`: n_features, then at least 4 spare bytes (the last 4 are where a packed gradient may
	 * sit), rounded up to a multiple of 4, or of 32 above 32.
	 */
	int64_t row_stride;
	uint8_t *rows; /* [n_rows][row_stride], row-major: histograms. NULL until ag_bins_make_rows */
	uint8_t *columns;      /* [n_features][column_stride], column-major: partition, prediction */
	int64_t column_stride; /* n_rows rounded up to 64, padded off 4 KiB multiples */
	struct AgBinsCopies
		*copies;           /* on devices, where a const matrix can have them; see bins_device.h */
	struct AgBinsGpu *gpu; /* that bins columns just now; NULL: none. See bins_gpu.h */
} AgBins;

/*
 * A numeric feature to bin: values[n_rows], NaN = missing, +/-inf are values. A category:
 * codes[n_rows], UINT32_MAX = missing. Exactly one of the two is set.
 */
typedef struct AgBinSource
{
	const double *values;
	const uint32_t *codes;
	uint32_t n_levels;
} AgBinSource;

typedef struct AgBinParams
{
	int max_bins;        /* 2..254, default 254 */
	int min_data_in_bin; /* default 3 */
	int64_t
		sample_rows; /* rows the cuts are drawn from: the first sample_rows in row order (the table's hash order makes them random); default 200000 */
} AgBinParams;

/* Makes room for a matrix (columns are filled by ag_bins_set_feature). */
AgStatus ag_bins_create(const AgContext *ctx, int64_t n_rows, int n_features, AgBins **bins);
/* With room for n_spare columns behind the last, which n_features doesn't count and whose descriptors own nothing. */
AgStatus ag_bins_create_wider(const AgContext *ctx, int64_t n_rows, int n_features, int n_spare,
							  AgBins **bins);
/* Chooses the cuts of feature f and fills its column. Different features may be set from different threads. */
AgStatus ag_bins_set_feature(const AgContext *ctx, AgBins *bins, int f, const AgBinSource *source,
							 const AgBinParams *params);
/* Takes over feature g of another matrix of as many rows. */
AgStatus ag_bins_copy_feature(const AgContext *ctx, AgBins *bins, int f, const AgBins *from, int g);
/* Builds the row-major copy. */
AgStatus ag_bins_make_rows(const AgContext *ctx, AgBins *bins);
void ag_bins_free(AgBins *bins);

/* The bin of one value under a feature's cuts: the predicate above, in its slow and obvious form. */
int ag_bin_of_number(const AgBinFeature *feature, double x);
int ag_bin_of_code(const AgBinFeature *feature, uint32_t code);

#endif
