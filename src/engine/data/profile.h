/*
 * profile.h - what a predictor remembers of the rows it was trained on: some of them whole, and how each column's values
 * were distributed. Explanations measure against the rows, drift against the distributions.
 */
#ifndef AG_PROFILE_H
#define AG_PROFILE_H

#include "engine/base/context.h"
#include "engine/data/format.h"
#include "engine/data/table.h"

#define AG_PROFILE_ROWS 64    /* kept whole; of fewer, all */
#define AG_PROFILE_CUTS 9     /* ten bins */
#define AG_PROFILE_MISSING 10 /* their count stands behind the bins' */

/*
 * Of a column that became a number: bin k holds cuts[k-1] < x <= cuts[k]. No cuts and nothing counted for all other columns.
 * 168 bytes; the layout is the image's.
 */
typedef struct AgHistogram
{
	uint64_t n_cuts;
	double cuts[AG_PROFILE_CUTS]; /* ascending: the deciles that differ */
	double counts[AG_PROFILE_MISSING + 1];
} AgHistogram;

typedef struct AgProfile
{
	int64_t n_table_rows; /* trained on or validated on */
	int64_t n_rows;
	const double *rows;            /* [n_rows][n_features], as the pipeline encodes them */
	const AgHistogram *histograms; /* [n_inputs] of at most 10,000 rows */
} AgProfile;

struct AgPipeline;

/*
 * Looks at rows at even distances in the table's order, which is random. Everything comes from the pipeline's arena. Columns
 * must all still be there.
 */
AgStatus ag_profile_fit(const AgContext *ctx, struct AgPipeline *pipeline, const AgTable *table);

/* The feature that stands for an input where distributions are compared; -1: it has none. */
int ag_profile_feature(const struct AgPipeline *pipeline, int input);

/* The bin of a value: 0..n_cuts, or AG_PROFILE_MISSING. */
int ag_histogram_bin(const AgHistogram *histogram, double x);

/* Sections of the pipeline's image, which must stay until ag_image_end; reads and checks them in place (AG_ERR_CORRUPT). */
void ag_profile_write(const struct AgPipeline *pipeline, AgImageWriter *image);
AgStatus ag_profile_read(const AgContext *ctx, const AgImage *image, struct AgPipeline *pipeline);

#endif
