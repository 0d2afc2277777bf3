/*
 * dense.h - features as numbers for models that add and multiply: linear models, neighbours, neural nets.
 *
 * A numeric feature becomes one number of mean 0 and spread 1, skewed ones after they were bent to a normal curve. A category
 * becomes a slot: the index of the one of its columns that is 1 (one-hot), or none. A numeric feature that was missing
 * in training rows has a slot with one column too, which is 1 where the value is missing.
 *
 * What odd values mean, at fit and at prediction:
 *   missing number     the median (or mean) of the training rows, and the indicator's column if there is one
 *   +/-infinity        the bounds below, as any value beyond them
 *   beyond the bounds  numbers are clipped to the range of the finite training values, widened by its width on
 *                      either side (a bent one to the range itself)
 *   missing category   a column of its own if a training row was missing, else no column
 *   rare level         fewer than min_level_count training rows, or beyond max_levels: the column "other"
 *   unseen level       "other" if some training row is in it, else no column
 *   constant           0, whatever the value
 *
 * All of it is fitted on the training rows alone, in their order, and the same at any number of threads.
 */
#ifndef AG_DENSE_H
#define AG_DENSE_H

#include "engine/base/context.h"
#include "engine/data/format.h"

#define AG_DENSE_NONE UINT32_MAX
/* No number passes this; a training row comes near it only beside 10^12 equal ones. */
#define AG_DENSE_BOUND 1e6f
#define AG_DENSE_MAX_COLUMNS 10000000u

/* The features of a table, asked for column by column. */
typedef struct AgDenseSource
{
	int64_t n_rows;
	uint32_t n_features;
	const uint32_t *n_levels; /* [n_features] levels of a category; 0: a number */
	/*
	 * values[i] = feature of rows[i] (n of them), as a pipeline gives it: a number, or a level's code; NaN = missing, a
	 * negative code = unseen. Called from several threads.
	 */
	void (*read)(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n,
				 double *values);
	const void *arg;
} AgDenseSource;

typedef enum AgDenseImpute
{
	AG_DENSE_MEDIAN = 0,
	AG_DENSE_MEAN = 1
} AgDenseImpute;

typedef struct AgDenseParams
{
	double skew_threshold; /* numbers of a greater |skewness| are bent; infinite: none */
	int impute;            /* AgDenseImpute */
	int min_level_count;   /* training rows below which a level counts as rare */
	int max_levels;        /* columns of a category, "other" and missing apart */
} AgDenseParams;

typedef enum AgDenseKind
{
	AG_DENSE_LINE = 1,    /* z = (clipped x - centre) / spread */
	AG_DENSE_CURVE = 2,   /* z interpolated between knots */
	AG_DENSE_CATEGORY = 3 /* no number */
} AgDenseKind;

/* A feature. The layout is the image's. */
typedef struct AgDenseFeature
{
	uint32_t kind;
	uint32_t number;  /* which number it is; AG_DENSE_NONE for a category */
	uint32_t slot;    /* its slot, or AG_DENSE_NONE */
	uint32_t n_items; /* CURVE: knots (>= 2); CATEGORY: codes that have an entry in `levels` */
	uint64_t first_item;
	double
		scale; /* a power of two that brings training values into [-1, 1]; what follows is scaled */
	double low, high;
	double centre, inverse; /* inverse of the spread; 0 for a constant */
	double missing;         /* z of a missing value */
} AgDenseFeature;

/* A run of columns of which at most one is 1. */
typedef struct AgDenseSlot
{
	uint32_t feature;
	uint32_t first;   /* column, counted over all slots */
	uint32_t width;   /* >= 1 */
	uint32_t other;   /* column within the slot, or AG_DENSE_NONE */
	uint32_t missing; /* likewise */
	uint32_t zero;
} AgDenseSlot;

typedef struct AgDense
{
	uint32_t n_features;
	uint32_t n_numbers;
	uint32_t n_slots;
	uint32_t n_columns; /* of all slots together */
	const AgDenseFeature *features;
	const AgDenseSlot *slots;
	const double *knot_x,
		*knot_z;            /* of all curves; x strictly ascending within one, z not descending */
	const uint32_t *levels; /* code -> column within the slot, which may be `other` */
	uint64_t n_knots, n_levels;
	AgArena arena; /* owns this struct, and the arrays unless they lie in an image */
} AgDense;

/* Rows as numbers and slots. */
typedef struct AgDenseMatrix
{
	AgMem *mem;
	int64_t n_rows;
	size_t stride;  /* floats from row to row: n_numbers rounded up to 16 (zeros) */
	float *numbers; /* [n_rows][stride] */
	uint32_t n_slots;
	uint32_t *slots; /* [n_rows][n_slots]: columns counted over all slots, n_columns for none */
} AgDenseMatrix;

/* Fits on the given rows (ascending; n_rows >= 1). AG_ERR_DATA when it takes over AG_DENSE_MAX_COLUMNS columns. */
AgStatus ag_dense_fit(const AgContext *ctx, const AgDenseSource *source, const uint32_t *rows,
					  int64_t n_rows, const AgDenseParams *params, AgDense **dense);
void ag_dense_free(AgDense *dense); /* NULL allowed */

/* Every row of the source, in its order. */
AgStatus ag_dense_matrix(const AgContext *ctx, const AgDense *dense, const AgDenseSource *source,
						 AgDenseMatrix **matrix);
void ag_dense_matrix_free(AgDenseMatrix *matrix); /* NULL allowed */

/* The number that a value of a numeric feature becomes: finite, within AG_DENSE_BOUND. */
float ag_dense_number(const AgDense *dense, const AgDenseFeature *feature, double x);
/* The column, counted over all slots, that a value of a feature with a slot lights; n_columns: none. */
uint32_t ag_dense_column(const AgDense *dense, const AgDenseFeature *feature, double x);
/* One row: numbers[n_numbers] and slots[n_slots]. No allocation. */
void ag_dense_encode(const AgDense *dense, const double *features, float *numbers, uint32_t *slots);

/* Adds the transform's sections to an image; reads and checks them, in place (AG_ERR_CORRUPT). */
void ag_dense_write(const AgDense *dense, AgImageWriter *image);
AgStatus ag_dense_read(const AgContext *ctx, const AgImage *image, AgDense **dense);

#endif
