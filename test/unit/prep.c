/*
 * prep.c - columns of a model's own: no training row sees its own label and no other row's label is seen at all; prediction
 * gives what the fit gave; images that come back the same or are refused.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/model/gbm.h"
#include "engine/model/prep.h"
#include "unit/unit.h"

#define N_ROWS 600
#define N_FEATURES 4 /* two categories, two numbers */

typedef struct Data
{
	AgMem mem;
	AgError err;
	AgContext ctx;
	double features[N_ROWS][N_FEATURES];
	uint32_t n_levels[N_FEATURES];
	double target[N_ROWS];
	int32_t class_of[N_ROWS];
	uint32_t train_rows[N_ROWS], valid_rows[N_ROWS];
	AgTrainData data;
	AgDenseSource source;
} Data;

static void
read_rows(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	const Data *d = arg;

	for (int64_t i = 0; i < n; i++)
		values[i] = d->features[rows[i]][feature];
}

static void
data_open(Data *d, int n_classes)
{
	memset(d, 0, sizeof *d);
	ag_mem_init(&d->mem, INT64_MAX);
	ag_error_init(&d->err);
	d->ctx.mem = &d->mem;
	d->ctx.deadline_ns = INT64_MAX;
	d->ctx.error = &d->err;
	d->n_levels[0] = 40;
	d->n_levels[1] = 7;
	for (uint32_t r = 0; r < N_ROWS; r++)
	{
		uint32_t code = ag_random_below(1, r, 43);

		/* 40: missing, 41 and 42: never seen */
		d->features[r][0] = code == 40 ? (double) NAN : code > 40 ? -1.0 : code;
		d->features[r][1] = ag_random_below(2, r, 7);
		d->features[r][2] = r % 50 == 1 ? (double) NAN : ag_random_unit(3, r);
		d->features[r][3] = r % 60 == 2 ? (double) INFINITY : ag_random_unit(4, r) * 10.0;
		d->target[r] = ag_random_unit(5, r);
		d->class_of[r] = (int32_t) ag_random_below(6, r, n_classes > 0 ? (uint32_t) n_classes : 1);
		if (r % 3 != 0)
			d->train_rows[d->data.n_train++] = r;
		else
			d->valid_rows[d->data.n_valid++] = r;
	}
	d->data.problem = n_classes > 2    ? AG_PROBLEM_MULTICLASS
					  : n_classes == 2 ? AG_PROBLEM_BINARY
									   : AG_PROBLEM_REGRESSION;
	d->data.n_classes = n_classes;
	d->data.target = n_classes == 0 ? d->target : NULL;
	d->data.class_of = n_classes > 0 ? d->class_of : NULL;
	d->data.train_rows = d->train_rows;
	d->data.valid_rows = d->valid_rows;
	d->source = (AgDenseSource){N_ROWS, N_FEATURES, d->n_levels, read_rows, d};
}

static void
data_close(Data *d)
{
	AG_CHECK_EQ(d->mem.used_bytes, 0);
}

static const AgPrepParams all = {true, true, true, 7, N_FEATURES, 0, NULL, NULL, 0};

static void
fit(Data *d, AgPrep **prep, double **values)
{
	AG_REQUIRE(ag_prep_fit(&d->ctx, &d->source, &d->data, &all, prep, values) == AG_OK);
	AG_REQUIRE(*prep != NULL);
}

static bool
same(double a, double b)
{
	return a == b || (a != a && b != b);
}

/* Changes row's label; returns how many rows' columns change, and whether the row's own do. */
static int
count_changed(Data *d, uint32_t row, bool *own)
{
	AgPrep *before, *after;
	double *a, *b;
	int n = 0;

	*own = false;
	fit(d, &before, &a);
	d->target[row] += 5.0;
	d->class_of[row] = (d->class_of[row] + 1) % (d->data.n_classes > 0 ? d->data.n_classes : 1);
	fit(d, &after, &b);
	for (uint32_t r = 0; r < N_ROWS; r++)
	{
		bool differs = false;

		/* what is smoothed towards the mean of all moves a little everywhere */
		for (uint32_t c = 0; c < before->n_columns; c++)
			differs |=
				!(same(a[c * N_ROWS + r], b[c * N_ROWS + r]) ||
				  fabs(a[c * N_ROWS + r] - b[c * N_ROWS + r]) < 6.0 / (double) d->data.n_train);
		n += differs;
		*own |= differs && r == row;
	}
	ag_prep_free(before);
	ag_prep_free(after);
	ag_mem_free(&d->mem, a);
	ag_mem_free(&d->mem, b);
	return n;
}

static void
test_labels(void)
{
	for (int n_classes = 0; n_classes <= 3; n_classes += n_classes == 0 ? 2 : 1)
	{
		Data *d = malloc(sizeof *d);
		bool own;

		data_open(d, n_classes);
		for (uint32_t r = 0; r < 30; r += 3)
		{
			AG_CHECK_EQ(count_changed(d, r, &own), 0); /* not trained on */
			AG_CHECK(count_changed(d, r + 1, &own) > 0);
			AG_CHECK(!own);
		}
		data_close(d);
		free(d);
	}
}

/* Rows that weren't trained on have what prediction gives them. */
static void
test_replay(void)
{
	Data *d = malloc(sizeof *d);
	AgPrep *prep;
	double *values;
	int n_wrong = 0, n_kinds[AG_PREP_SUM + 1] = {0};

	data_open(d, 3);
	fit(d, &prep, &values);
	AG_CHECK_EQ(ag_prep_n_inner(prep), N_FEATURES + prep->n_columns);
	for (uint32_t c = 0; c < prep->n_columns; c++)
		n_kinds[prep->columns[c].kind]++;
	AG_CHECK_EQ(n_kinds[AG_PREP_LEVEL], 2 * 3 + 2 * 2);
	AG_CHECK_EQ(n_kinds[AG_PREP_PAIR], 3 + 1);
	AG_CHECK_EQ(n_kinds[AG_PREP_CENTRED], 2 * 2);
	for (int64_t i = 0; i < d->data.n_valid; i++)
	{
		uint32_t r = d->valid_rows[i];
		double inner[256];

		ag_prep_row(prep, d->features[r], inner);
		for (int f = 0; f < N_FEATURES; f++)
			n_wrong += !same(inner[f], d->features[r][f]);
		for (uint32_t c = 0; c < prep->n_columns; c++)
			n_wrong += !same(inner[N_FEATURES + c], values[c * N_ROWS + r]);
	}
	AG_CHECK_EQ(n_wrong, 0);
	ag_prep_free(prep);
	ag_mem_free(&d->mem, values);
	data_close(d);
	free(d);
}

/* A tree of one leaf as the model behind the columns. */
static void
write_model(Data *d, const AgPrep *prep, AgWriter *writer)
{
	AgBins *bins;
	AgBoostParams params;
	AgBoostResult result;
	AgTrainData data = d->data;
	AgWriter inner;
	AgModel model;
	double *column = ag_mem_alloc(&d->mem, N_ROWS, sizeof *column);
	AgBinParams bin_params = {254, 3, 200000};

	AG_REQUIRE(ag_bins_create(&d->ctx, N_ROWS, (int) ag_prep_n_inner(prep), &bins) == AG_OK);
	for (uint32_t f = 0; f < ag_prep_n_inner(prep); f++)
	{
		AgBinSource source = {column, NULL, 0};
		double inner_row[256];

		for (uint32_t r = 0; r < N_ROWS; r++)
		{
			ag_prep_row(prep, d->features[r], inner_row);
			column[r] = inner_row[f];
		}
		AG_REQUIRE(ag_bins_set_feature(&d->ctx, bins, (int) f, &source, &bin_params) == AG_OK);
	}
	AG_REQUIRE(ag_bins_make_rows(&d->ctx, bins) == AG_OK);
	data.bins = bins;
	data.stop_metric = AG_METRIC_LOG_LOSS;
	memset(&params, 0, sizeof params);
	ag_params_default(ag_gbm_specs, ag_gbm_n_specs, &params);
	params.num_boost_round = 3;
	ag_gbm_complete(&params);
	memset(&result, 0, sizeof result);
	AG_REQUIRE(ag_boost_train(&d->ctx, &data, &params, &result) == AG_OK);
	ag_writer_init(&inner, &d->mem);
	ag_writer_init(writer, &d->mem);
	model = (AgModel){AG_IMAGE_TREES, result.trees};
	AG_REQUIRE(ag_model_write(&d->ctx, &model, &inner) == AG_OK);
	AG_REQUIRE(ag_prep_write(&d->ctx, prep, inner.data, inner.size, writer) == AG_OK);
	ag_writer_free(&inner);
	ag_boost_result_free(&d->ctx, &result);
	ag_bins_free(bins);
	ag_mem_free(&d->mem, column);
}

static void
run_all(Data *d, AgModel *model, double *one, double *many)
{
	uint32_t n_out = ag_model_n_out(model);
	void *scratch = ag_mem_alloc(&d->mem, ag_model_rows_scratch_bytes(model, N_ROWS), 1);

	for (uint32_t r = 0; r < N_ROWS; r++)
		ag_model_run(model, d->features[r], scratch, one + r * n_out);
	AG_REQUIRE(ag_model_prepare_rows(&d->ctx, model) == AG_OK);
	ag_model_run_rows(model, N_ROWS, d->features[0], scratch, many);
	ag_mem_free(&d->mem, scratch);
}

static void
test_image(void)
{
	Data *d = malloc(sizeof *d);
	double *one = malloc(N_ROWS * 3 * sizeof *one), *many = malloc(N_ROWS * 3 * sizeof *many);
	int n_accepted = 0, n_refused = 0;
	AgWriter image, again;
	double *values;
	AgModel model;
	AgPrep *prep;

	data_open(d, 3);
	fit(d, &prep, &values);
	write_model(d, prep, &image);
	AG_REQUIRE(ag_model_read(&d->ctx, image.data, image.size, &model) == AG_OK);
	AG_CHECK_EQ(model.kind, AG_IMAGE_PREP);
	AG_CHECK_EQ(ag_model_n_features(&model), N_FEATURES);
	AG_CHECK_EQ(ag_model_n_out(&model), 3);
	AG_CHECK(ag_model_fits(&model, AG_PROBLEM_MULTICLASS));
	run_all(d, &model, one, many);
	AG_CHECK(memcmp(one, many, N_ROWS * 3 * sizeof *one) == 0);
	ag_writer_init(&again, &d->mem);
	AG_REQUIRE(ag_model_write(&d->ctx, &model, &again) == AG_OK);
	AG_CHECK(again.size == image.size && memcmp(again.data, image.data, image.size) == 0);
	ag_model_free(&model);
	for (size_t at = 64; at < image.size; at += at < 4000 ? 1 : 37)
	{
		uint8_t before = image.data[at];
		uint64_t hash;
		AgStatus status;

		image.data[at] = (uint8_t) (before ^ (1 << at % 8));
		hash = ag_hash64(image.data + 64, image.size - 64, AG_IMAGE_PREP);
		memcpy(image.data + 24, &hash, 8);
		ag_error_init(&d->err);
		status = ag_model_read(&d->ctx, image.data, image.size, &model);
		if (status == AG_OK && ag_model_n_features(&model) == N_FEATURES &&
			ag_model_n_out(&model) == 3)
			run_all(d, &model, one, many);
		n_accepted += status == AG_OK;
		n_refused += status == AG_ERR_CORRUPT;
		if (status != AG_OK && status != AG_ERR_CORRUPT)
			AG_CHECK_EQ(status, AG_ERR_CORRUPT);
		ag_model_free(&model);
		image.data[at] = before;
	}
	AG_CHECK(n_accepted > 0 && n_refused > 0);
	ag_writer_free(&again);
	ag_writer_free(&image);
	ag_prep_free(prep);
	ag_mem_free(&d->mem, values);
	data_close(d);
	free(d);
	free(one);
	free(many);
}

static void
test_out_of_memory(void)
{
	Data *d = malloc(sizeof *d);
	int n_failed = 0;

	data_open(d, 2);
	for (int64_t k = 0;; k++)
	{
		AgPrep *prep;
		double *values;
		AgStatus status;

		ag_error_init(&d->err);
		d->mem.fail_after = k;
		status = ag_prep_fit(&d->ctx, &d->source, &d->data, &all, &prep, &values);
		d->mem.fail_after = -1;
		ag_prep_free(prep);
		ag_mem_free(&d->mem, values);
		AG_CHECK_EQ(d->mem.used_bytes, 0);
		if (status == AG_OK)
			break;
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
	}
	AG_CHECK(n_failed > 20);
	free(d);
}

int
main(void)
{
	test_labels();
	test_replay();
	test_image();
	test_out_of_memory();
	return ag_unit_done("prep");
}
