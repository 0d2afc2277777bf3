/* dense.c - features as numbers: what each kind of value becomes, the same at any number of threads, and as bytes. */
#include "unit/unit.h"

#include <float.h>

#include "unit/dense_cases.h"

static AgMem mem;
static AgError err;
static AgContext ctx;

static AgDense *
fit(const Columns *columns, uint32_t n_features, const uint32_t *rows, int64_t n_rows,
	AgDenseParams params)
{
	AgDenseSource source = source_of(columns, n_features, n_rows);
	AgDense *dense;

	AG_REQUIRE(ag_dense_fit(&ctx, &source, rows, n_rows, &params, &dense) == AG_OK);
	return dense;
}

/* One numeric feature, fitted on n values; the caller asks for more. */
static AgDense *
fit_numbers(const double *values, int64_t n, AgDenseParams params)
{
	static uint32_t rows[5000];
	Columns columns = {{0}, {values}};

	for (uint32_t i = 0; i < 5000; i++)
		rows[i] = i;
	return fit(&columns, 1, rows, n, params);
}

static float
number(const AgDense *dense, double x)
{
	return ag_dense_number(dense, &dense->features[0], x);
}

static void
standardises(void)
{
	double values[] = {1, 2, 3, 4, 10};
	AgDense *dense = fit_numbers(values, 5, plain_dense());
	double mean = 4.0, spread = sqrt((9.0 + 4.0 + 1.0 + 0.0 + 36.0) / 5.0);

	AG_CHECK_EQ(dense->n_numbers, 1);
	AG_CHECK_EQ(dense->n_slots, 0);
	AG_CHECK_NEAR(number(dense, 1), (1.0 - mean) / spread, 1e-6);
	AG_CHECK_NEAR(number(dense, 12), (12.0 - mean) / spread, 1e-6);
	AG_CHECK_NEAR(number(dense, NAN), (3.0 - mean) / spread, 1e-6); /* the median */
	/* the range 1..10, widened by its width on either side */
	AG_CHECK_NEAR(number(dense, INFINITY), (19.0 - mean) / spread, 1e-6);
	AG_CHECK(number(dense, 1e308) == number(dense, INFINITY));
	AG_CHECK_NEAR(number(dense, -INFINITY), (-8.0 - mean) / spread, 1e-6);
	ag_dense_free(dense);
}

static void
imputes_means(void)
{
	double values[] = {1, 2, 3, NAN, 10};
	AgDenseParams params = plain_dense();
	AgDense *dense = fit_numbers(values, 5, params);

	AG_CHECK(number(dense, NAN) == number(dense, 2.5));
	AG_CHECK_EQ(dense->n_slots, 1);
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], NAN), 0);
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], 3.0), dense->n_columns);
	ag_dense_free(dense);
	params.impute = AG_DENSE_MEAN;
	dense = fit_numbers(values, 5, params);
	AG_CHECK(number(dense, NAN) == 0.0f);
	ag_dense_free(dense);
}

/* Values no arithmetic should meet unprepared. */
static void
survives_extremes(void)
{
	static const double sets[][6] = {
		{7, 7, 7, 7, 7, 7},
		{NAN, NAN, NAN, NAN, NAN, NAN},
		{INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY},
		{INFINITY, -INFINITY, NAN, INFINITY, NAN, -INFINITY},
		{1e308, -1e308, DBL_MAX, -DBL_MAX, 0, 1},
		{1e200, 2e200, 3e200, 4e200, 1e308, 5},
		{5e-324, 1e-323, 0, -5e-324, 1e-320, 0},
		{5, INFINITY, 5, 5, 5, 5},
		{DBL_MAX, DBL_MAX, DBL_MAX, -DBL_MAX, INFINITY, NAN},
		{1, 1 + DBL_EPSILON, 1, 1, 1, 1},
	};

	for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++)
		for (int skewed = 0; skewed < 2; skewed++)
		{
			AgDenseParams params = plain_dense();
			AgDense *dense;
			float last = -INFINITY;
			static const double rising[] = {-INFINITY, -DBL_MAX, -1e200, -1,    -5e-324, 0,
											5e-324,    1,        7,      1e200, DBL_MAX, INFINITY};

			params.skew_threshold = skewed ? 0.0 : INFINITY;
			dense = fit_numbers(sets[s], 6, params);
			AG_CHECK(isfinite(number(dense, NAN)));
			for (int i = 0; i < 12; i++)
			{
				float z = number(dense, rising[i]);

				AG_CHECK(isfinite(z) && fabsf(z) <= AG_DENSE_BOUND && z >= last);
				last = z;
			}
			if (s < 3)
				AG_CHECK(number(dense, 7) == 0.0f && number(dense, -3e5) == 0.0f);
			if (s == 5)
				AG_CHECK(number(dense, 5e307) > number(dense, 1e307));
			ag_dense_free(dense);
		}
}

/* Any monotone map of a normal variable comes out normal. */
static void
bends(void)
{
	static double values[4001];
	AgDenseParams params = plain_dense();
	AgDense *dense;
	double worst = 0.0;

	for (int i = 0; i < 4001; i++)
		values[i] = exp(3.0 * random_normal(3, (uint64_t) i));
	params.skew_threshold = 0.99;
	dense = fit_numbers(values, 4001, params);
	AG_CHECK_EQ(dense->features[0].kind, AG_DENSE_CURVE);
	for (double z = -2.0; z <= 2.0; z += 0.1)
		worst = fmax(worst, fabs(number(dense, exp(3.0 * z)) - z));
	AG_CHECK(worst < 0.15);
	AG_CHECK(number(dense, 1e300) == number(dense, INFINITY));
	AG_CHECK(number(dense, NAN) > -0.1f && number(dense, NAN) < 0.1f);
	ag_dense_free(dense);
	for (int i = 0; i < 4001; i++)
		values[i] = random_normal(3, (uint64_t) i);
	dense = fit_numbers(values, 4001, params);
	AG_CHECK_EQ(dense->features[0].kind, AG_DENSE_LINE);
	ag_dense_free(dense);
}

/* Knots of a curve are normal quantiles of ranks: a few known ones. */
static void
knows_quantiles(void)
{
	static double values[1000];
	AgDenseParams params = plain_dense();
	AgDense *dense;
	double scale;

	for (int i = 0; i < 1000; i++)
		values[i] = pow((i + 0.5) / 1000.0, 8.0);
	params.skew_threshold = 0.5;
	dense = fit_numbers(values, 1000, params);
	AG_REQUIRE(dense->features[0].kind == AG_DENSE_CURVE);
	/* quantiles of .975 and .5005 are 1.959964 and .00125; the spread of the sample is a little below 1 */
	scale = number(dense, pow(0.975, 8.0)) / 1.959964;
	AG_CHECK_NEAR(scale, 1.0, 0.005);
	AG_CHECK_NEAR(number(dense, pow(0.0250, 8.0)), -1.959964 * scale, 2e-3);
	AG_CHECK_NEAR(number(dense, pow(0.84134, 8.0)), 1.0 * scale, 2e-3);
	AG_CHECK_NEAR(number(dense, values[999]), 3.290527 * scale, 2e-3);
	AG_CHECK_NEAR(number(dense, values[0]), -3.290527 * scale, 2e-3);
	ag_dense_free(dense);
}

static void
one_hot(void)
{
	/* counts: 0: 4, 1: 3, 2: 1, 3: 2, missing 1 */
	double values[] = {0, 0, 0, 0, 1, 1, 1, 2, 3, 3, NAN};
	uint32_t rows[11];
	Columns columns = {{5}, {values}};
	AgDenseParams params = plain_dense();
	AgDense *dense;
	const AgDenseFeature *feature;

	for (uint32_t i = 0; i < 11; i++)
		rows[i] = i;
	params.min_level_count = 2;
	dense = fit(&columns, 1, rows, 11, params);
	feature = &dense->features[0];
	AG_CHECK_EQ(dense->n_numbers, 0);
	AG_CHECK_EQ(dense->n_columns, 5); /* 0, 1, 3, other, missing */
	AG_CHECK_EQ(ag_dense_column(dense, feature, 0), 0);
	AG_CHECK_EQ(ag_dense_column(dense, feature, 1), 1);
	AG_CHECK_EQ(ag_dense_column(dense, feature, 3), 2);
	AG_CHECK_EQ(ag_dense_column(dense, feature, 2), 3);         /* rare */
	AG_CHECK_EQ(ag_dense_column(dense, feature, 4), 3);         /* not in the training rows */
	AG_CHECK_EQ(ag_dense_column(dense, feature, 77), 3);        /* beyond the levels */
	AG_CHECK_EQ(ag_dense_column(dense, feature, AG_UNSEEN), 3); /* unseen */
	AG_CHECK_EQ(ag_dense_column(dense, feature, NAN), 4);
	ag_dense_free(dense);
	params.min_level_count = 1;
	dense = fit(&columns, 1, rows, 10, params); /* nothing rare, nothing missing */
	AG_CHECK_EQ(dense->n_columns, 4);
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], 4), 4); /* none */
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], NAN), 4);
	ag_dense_free(dense);
	params.max_levels = 2;
	dense = fit(&columns, 1, rows, 11, params);
	AG_CHECK_EQ(dense->n_columns, 4); /* 0, 1, other, missing */
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], 3), 2);
	ag_dense_free(dense);
	params.min_level_count = 100;
	dense = fit(&columns, 1, rows, 4, params); /* all rare */
	AG_CHECK_EQ(dense->n_columns, 1);
	AG_CHECK_EQ(ag_dense_column(dense, &dense->features[0], 0), 0);
	ag_dense_free(dense);
}

/* Rows that don't train leave no trace. */
static void
fits_training_rows_alone(void)
{
	Mixed mixed = mixed_make(1, 400);
	AgDenseParams params = plain_dense();
	AgDense *one, *other;

	params.skew_threshold = 0.99;
	one = fit(&mixed.columns, MIXED_FEATURES, mixed.rows, 300, params);
	for (int f = 0; f < MIXED_FEATURES; f++)
		for (int i = 300; i < 400; i++)
			mixed.cells[f][i] = f >= 5 ? 1.0 : 1e300;
	other = fit(&mixed.columns, MIXED_FEATURES, mixed.rows, 300, params);
	AG_CHECK(memcmp(one->features, other->features, one->n_features * sizeof *one->features) == 0);
	AG_CHECK(one->n_knots == other->n_knots && one->n_columns == other->n_columns);
	ag_dense_free(one);
	ag_dense_free(other);
	mixed_free(&mixed);
}

/* The matrix holds what encoding one row gives, at any number of threads. */
static void
matrix_is_encoding(void)
{
	Mixed mixed = mixed_make(2, 700);
	AgDenseSource source = source_of(&mixed.columns, MIXED_FEATURES, 700);
	AgDenseParams params = plain_dense();
	AgDense *dense, *again;
	AgDenseMatrix *matrix, *threaded;

	params.skew_threshold = 0.99;
	params.min_level_count = 3;
	dense = fit(&mixed.columns, MIXED_FEATURES, mixed.rows, 600, params);
	AG_REQUIRE(ag_dense_matrix(&ctx, dense, &source, &matrix) == AG_OK);
	AG_REQUIRE(ag_pool_create(&mem, 3, &ctx.pool, &err) == AG_OK);
	again = fit(&mixed.columns, MIXED_FEATURES, mixed.rows, 600, params);
	AG_REQUIRE(ag_dense_matrix(&ctx, again, &source, &threaded) == AG_OK);
	ag_pool_free(ctx.pool);
	ctx.pool = NULL;
	AG_CHECK_EQ(dense->n_numbers, 6);
	AG_CHECK_EQ(dense->n_slots, 3);
	AG_CHECK(memcmp(matrix->numbers, threaded->numbers, 700 * matrix->stride * sizeof(float)) == 0);
	AG_CHECK(memcmp(matrix->slots, threaded->slots, 700 * 3 * sizeof(uint32_t)) == 0);
	for (size_t i = 0; i < 700; i++)
	{
		double features[MIXED_FEATURES];
		float numbers[6];
		uint32_t slots[3];

		for (int f = 0; f < MIXED_FEATURES; f++)
			features[f] = mixed.cells[f][i];
		ag_dense_encode(dense, features, numbers, slots);
		AG_CHECK(memcmp(numbers, matrix->numbers + i * matrix->stride, sizeof numbers) == 0);
		AG_CHECK(memcmp(slots, matrix->slots + i * 3, sizeof slots) == 0);
		for (size_t j = 6; j < matrix->stride; j++)
			AG_CHECK(matrix->numbers[i * matrix->stride + j] == 0.0f);
	}
	ag_dense_matrix_free(matrix);
	ag_dense_matrix_free(threaded);
	ag_dense_free(dense);
	ag_dense_free(again);
	mixed_free(&mixed);
}

/* An image of the transform alone, as kind LINEAR. */
static uint8_t *
image_of(const AgDense *dense, size_t *size)
{
	AgImageWriter image;
	AgWriter writer;
	uint8_t *bytes;

	ag_writer_init(&writer, &mem);
	ag_image_begin(&image, &writer, AG_IMAGE_LINEAR);
	ag_dense_write(dense, &image);
	AG_REQUIRE(ag_image_end(&ctx, &image) == AG_OK);
	*size = writer.size;
	bytes = ag_mem_alloc(&mem, writer.size, 1);
	memcpy(bytes, writer.data, writer.size);
	ag_writer_free(&writer);
	return bytes;
}

static AgStatus
read_image(const uint8_t *bytes, size_t size, AgDense **dense)
{
	AgImage image;

	ag_error_init(&err);
	*dense = NULL;
	AG_TRY(ag_image_open(&ctx, bytes, size, AG_IMAGE_LINEAR, &image));
	return ag_dense_read(&ctx, &image, dense);
}

static void
run_odd(const AgDense *dense, uint64_t seed)
{
	float numbers[64];
	uint32_t slots[64];

	for (uint64_t r = 0; r < 20; r++)
	{
		double features[64];

		for (uint32_t f = 0; f < dense->n_features; f++)
			features[f] = odd_value(ag_key(seed, r), f);
		ag_dense_encode(dense, features, numbers, slots);
		for (uint32_t j = 0; j < dense->n_numbers; j++)
			AG_CHECK(fabsf(numbers[j]) <= AG_DENSE_BOUND);
		for (uint32_t s = 0; s < dense->n_slots; s++)
			AG_CHECK(slots[s] <= dense->n_columns);
	}
}

static void
bytes_and_damage(void)
{
	Mixed mixed = mixed_make(3, 300);
	AgDenseParams params = plain_dense();
	AgDense *dense, *again;
	uint8_t *bytes, *damaged;
	size_t size;
	int n_refused = 0;

	params.skew_threshold = 0.99;
	dense = fit(&mixed.columns, MIXED_FEATURES, mixed.rows, 300, params);
	bytes = image_of(dense, &size);
	damaged = ag_mem_alloc(&mem, size, 1);
	AG_REQUIRE(read_image(bytes, size, &again) == AG_OK);
	for (int i = 0; i < 300; i++)
	{
		double features[MIXED_FEATURES];
		float one[6], other[6];
		uint32_t slots[3], other_slots[3];

		for (int f = 0; f < MIXED_FEATURES; f++)
			features[f] = mixed.cells[f][i];
		ag_dense_encode(dense, features, one, slots);
		ag_dense_encode(again, features, other, other_slots);
		AG_CHECK(memcmp(one, other, sizeof one) == 0);
		AG_CHECK(memcmp(slots, other_slots, sizeof slots) == 0);
	}
	ag_dense_free(again);
	for (uint64_t trial = 0; trial < 6000; trial++)
	{
		uint32_t at = ag_random_below(1, trial, (uint32_t) size);

		if (trial < size) /* every byte once, then several at a time */
			at = (uint32_t) trial;
		memcpy(damaged, bytes, size);
		damaged[at] ^= (uint8_t) (1 + ag_random_below(2, trial, 255));
		if (trial >= size)
			for (uint64_t k = 0; k < 4; k++)
				damaged[ag_random_below(3 + k, trial, (uint32_t) size)] = (uint8_t) trial;
		mend_image(damaged, size);
		if (read_image(damaged, size, &again) == AG_OK)
			run_odd(again, trial);
		else
		{
			AG_CHECK(again == NULL && err.status == AG_ERR_CORRUPT && err.message[0] != '\0');
			n_refused++;
		}
		ag_dense_free(again);
	}
	AG_CHECK(n_refused > 500);
	ag_error_init(&err);
	ag_mem_free(&mem, damaged);
	ag_mem_free(&mem, bytes);
	ag_dense_free(dense);
	mixed_free(&mixed);
}

static void
no_memory(void)
{
	Mixed mixed = mixed_make(4, 100);
	AgDenseSource source = source_of(&mixed.columns, MIXED_FEATURES, 100);
	AgDenseParams params = plain_dense();
	AgDense *dense = NULL;
	AgDenseMatrix *matrix = NULL;
	AgStatus status = AG_ERR_MEMORY;
	int64_t used = atomic_load(&mem.used_bytes);

	for (int after = 0; status != AG_OK && after < 1000; after++)
	{
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = ag_dense_fit(&ctx, &source, mixed.rows, 100, &params, &dense);
		if (status == AG_OK)
			status = ag_dense_matrix(&ctx, dense, &source, &matrix);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		if (status == AG_OK)
			ag_dense_matrix_free(matrix);
		ag_dense_free(dense);
		dense = NULL;
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&mem.fail_after, -1);
	ag_error_init(&err);
	mixed_free(&mixed);
}

static void
cancels(void)
{
	Mixed mixed = mixed_make(5, 50);
	AgDenseSource source = source_of(&mixed.columns, MIXED_FEATURES, 50);
	AgDenseParams params = plain_dense();
	_Atomic bool cancel = true;
	AgDense *dense;

	ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_dense_fit(&ctx, &source, mixed.rows, 50, &params, &dense), AG_ERR_CANCELLED);
	AG_CHECK(dense == NULL);
	ctx.cancel = NULL;
	ag_error_init(&err);
	mixed_free(&mixed);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	standardises();
	imputes_means();
	survives_extremes();
	bends();
	knows_quantiles();
	one_hot();
	fits_training_rows_alone();
	matrix_is_encoding();
	bytes_and_damage();
	no_memory();
	cancels();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("dense");
}
