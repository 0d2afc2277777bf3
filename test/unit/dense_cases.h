/*
 * dense_cases.h - features by the column, for the tests of models that take them as numbers.
 */
#ifndef AG_DENSE_CASES_H
#define AG_DENSE_CASES_H

#include <math.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/data/pipeline.h"
#include "engine/data/format.h"
#include "engine/model/dense.h"
#include "engine/model/gbm.h"

typedef struct Columns
{
	uint32_t n_levels[64];
	const double *values[64];
} Columns;

static inline void
read_columns(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	const Columns *columns = arg;

	for (int64_t i = 0; i < n; i++)
		values[i] = columns->values[feature][rows[i]];
}

static inline AgDenseSource
source_of(const Columns *columns, uint32_t n_features, int64_t n_rows)
{
	AgDenseSource source = {n_rows, n_features, columns->n_levels, read_columns, columns};

	return source;
}

static inline AgDenseParams
plain_dense(void)
{
	AgDenseParams params = {INFINITY, AG_DENSE_MEDIAN, 1, 10000};

	return params;
}

/* A standard normal number, well enough. */
static inline double
random_normal(uint64_t key, uint64_t counter)
{
	double sum = -6.0;

	for (uint64_t i = 0; i < 12; i++)
		sum += ag_random_unit(key, counter * 12 + i);
	return sum;
}

/*
 * A table with all that columns may hold: 0, 1 plain numbers; 2 heavily skewed, huge; 3 with missing values and
 * infinities; 4 constant; 5 a category of 6 levels, some missing; 6 a category of many rare levels; 7 all missing.
 */
#define MIXED_FEATURES 8
typedef struct Mixed
{
	int64_t n_rows;
	Columns columns;
	double *cells[MIXED_FEATURES];
	double *target;
	int32_t *class_of; /* 0, 1, 2 */
	double *weight;
	uint32_t *rows; /* 0, 1, 2, ... */
} Mixed;

static inline Mixed
mixed_make(uint64_t seed, int64_t n)
{
	Mixed mixed = {.n_rows = n};

	for (int f = 0; f < MIXED_FEATURES; f++)
	{
		mixed.cells[f] = malloc((size_t) n * sizeof(double) + 1);
		mixed.columns.values[f] = mixed.cells[f];
	}
	mixed.columns.n_levels[5] = 6;
	mixed.columns.n_levels[6] = 500;
	mixed.target = malloc((size_t) n * sizeof(double) + 1);
	mixed.weight = malloc((size_t) n * sizeof(double) + 1);
	mixed.class_of = malloc((size_t) n * sizeof(int32_t) + 1);
	mixed.rows = malloc((size_t) n * sizeof(uint32_t) + 1);
	for (int64_t i = 0; i < n; i++)
	{
		uint64_t key = ag_key(seed, (uint64_t) i);
		double a = random_normal(key, 0), b = random_normal(key, 1), level, score;
		uint32_t draw = ag_random_below(key, 900, 20);

		mixed.cells[0][i] = a;
		mixed.cells[1][i] = 1000.0 + 5.0 * b + a;
		mixed.cells[2][i] = exp(40.0 * random_normal(key, 2));
		mixed.cells[3][i] = draw == 0 ? NAN : draw == 1 ? INFINITY : draw == 2 ? -INFINITY : a * b;
		mixed.cells[4][i] = 7.0;
		level = (double) ag_random_below(key, 901, 6);
		mixed.cells[5][i] = ag_random_below(key, 902, 10) == 0 ? NAN : level;
		mixed.cells[6][i] = floor(499.999 * pow(ag_random_unit(key, 903), 3.0));
		mixed.cells[7][i] = NAN;
		score = 1.5 * a - b + 0.4 * level;
		mixed.target[i] = 10.0 + 3.0 * score + random_normal(key, 3);
		mixed.class_of[i] = score + random_normal(key, 4) > 2.0 ? 2 : score > 0.5 ? 1 : 0;
		mixed.weight[i] = 0.5 + ag_random_unit(key, 904);
		mixed.rows[i] = (uint32_t) i;
	}
	return mixed;
}

static inline void
mixed_free(Mixed *mixed)
{
	for (int f = 0; f < MIXED_FEATURES; f++)
		free(mixed->cells[f]);
	free(mixed->target);
	free(mixed->weight);
	free(mixed->class_of);
	free(mixed->rows);
}

/* The first n_train rows train, the rest validate. */
static inline AgTrainData
mixed_data(const Mixed *mixed, AgProblem problem, int64_t n_train)
{
	AgTrainData data = {.problem = problem,
						.n_classes = problem == AG_PROBLEM_MULTICLASS ? 3
									 : problem == AG_PROBLEM_BINARY   ? 2
																	  : 0,
						.target = mixed->target,
						.class_of = mixed->class_of,
						.train_rows = mixed->rows,
						.n_train = n_train,
						.valid_rows = mixed->rows + n_train,
						.n_valid = mixed->n_rows - n_train};

	return data;
}

/* Values that no model may stumble over. */
static inline double
odd_value(uint64_t key, uint64_t counter)
{
	static const double odd[] = {0.0,    -0.0,   NAN,  INFINITY, -INFINITY, 1e308,
								 -1e308, 5e-324, -1.0, 1e9,      3.0,       2.0};

	return odd[ag_random_below(key, counter, 12)];
}

/* Mends length and checksum of an image after bytes of it were changed. */
static inline void
mend_image(uint8_t *image, uint64_t size)
{
	uint32_t kind;
	uint64_t hash;

	if (size < 64)
		return;
	memcpy(&kind, image + 12, 4);
	memcpy(image + 16, &size, 8);
	hash = ag_hash64(image + 64, size - 64, kind);
	memcpy(image + 24, &hash, 8);
}

#endif
