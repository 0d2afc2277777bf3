/*
 * train_table.c - trains a booster or a forest on a table of numbers, times it, and writes its predictions.
 *
 *     train_table FILE [family=GBM|XGB|CAT|RF|XT] [name=value ...]
 *
 * FILE: int64 rows, int64 columns, then the columns as doubles one after the other; NaN is missing. The last
 * two columns are the part (0 train, 1 validation, 2 test) and the label. Names are those of the
 * family, which is GBM unless it comes first, and: cats=3,7 (columns that hold category codes), problem=binary|multiclass|regression,
 * classes=K, oob=0 (no out-of-bag predictions), threads=N, seed=N, stop=N (patience; -1 adaptive), metric=NAME, out=FILE (predictions of the
 * test rows as doubles), repeat=N.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/bins.h"
#include "engine/model/cat.h"
#include "engine/model/forest.h"
#include "engine/model/gbm.h"
#include "engine/model/xgb.h"
#include "engine/model/xgb.h"

typedef struct Table
{
	int64_t n_rows;
	int64_t n_columns;
	double *values;
	char is_category[4096];
} Table;

typedef struct Options
{
	AgBoostParams params;
	AgForestParams forest;
	bool is_forest, is_xgb, is_cat;
	AgProblem problem;
	int n_classes, n_threads, n_repeats;
	AgMetric metric;
	const char *out;
	const uint32_t **codes; /* of categories, for CAT */
} Options;

static void
fail(const char *what, const AgError *error)
{
	fprintf(stderr, "%s: %s\n", what, error != NULL ? error->message : "");
	exit(1);
}

static void
read_table(const char *path, Table *table)
{
	FILE *file = fopen(path, "rb");
	int64_t size[2];
	size_t n;

	if (file == NULL || fread(size, 8, 2, file) != 2 || size[0] < 1 || size[1] < 2)
		fail(path, NULL);
	table->n_rows = size[0];
	table->n_columns = size[1];
	n = (size_t) size[0] * (size_t) size[1];
	table->values = malloc(n * sizeof(double));
	if (table->values == NULL || fread(table->values, sizeof(double), n, file) != n)
		fail(path, NULL);
	fclose(file);
}

static void
read_cats(Table *table, char *list)
{
	for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ","))
		table->is_category[atoi(word) & 4095] = 1;
}

static void
read_option(Table *table, Options *options, char *text)
{
	char *value = strchr(text, '=');
	AgError error;

	if (value == NULL)
		fail(text, NULL);
	*value++ = '\0';
	ag_error_init(&error);
	if (strcmp(text, "family") == 0)
	{
		options->is_forest = strcmp(value, "RF") == 0 || strcmp(value, "XT") == 0;
		options->is_xgb = strcmp(value, "XGB") == 0;
		if (options->is_xgb)
		{
			memset(&options->params, 0, sizeof options->params);
			ag_params_default(ag_xgb_specs, ag_xgb_n_specs, &options->params);
			ag_xgb_complete(&options->params);
			options->params.early_stop_rounds = -1;
		}
		options->is_cat = strcmp(value, "CAT") == 0;
		if (options->is_cat)
		{
			memset(&options->params, 0, sizeof options->params);
			ag_params_default(ag_cat_specs, ag_cat_n_specs, &options->params);
			options->params.early_stop_rounds = -1;
			options->params.min_data_in_bin = 3;
		}
		options->forest.is_extra = strcmp(value, "XT") == 0;
		ag_params_default(options->forest.is_extra ? ag_xt_specs : ag_rf_specs, ag_rf_n_specs,
						  &options->forest);
	}
	else if (strcmp(text, "cats") == 0)
		read_cats(table, value);
	else if (strcmp(text, "problem") == 0)
		options->problem = value[0] == 'b'   ? AG_PROBLEM_BINARY
						   : value[0] == 'm' ? AG_PROBLEM_MULTICLASS
											 : AG_PROBLEM_REGRESSION;
	else if (strcmp(text, "classes") == 0)
		options->n_classes = atoi(value);
	else if (strcmp(text, "threads") == 0)
		options->n_threads = atoi(value);
	else if (strcmp(text, "seed") == 0)
		options->forest.seed = options->params.seed = strtoull(value, NULL, 10);
	else if (strcmp(text, "oob") == 0)
		options->forest.wants_oob = atoi(value) != 0;
	else if (strcmp(text, "stop") == 0)
		options->params.early_stop_rounds = atoi(value);
	else if (strcmp(text, "repeat") == 0)
		options->n_repeats = atoi(value);
	else if (strcmp(text, "metric") == 0)
		options->metric = ag_metric_by_name(value);
	else if (strcmp(text, "out") == 0)
		options->out = value;
	else if (options->is_forest)
	{
		bool is_word = strpbrk(value, "0123456789") == NULL && strcmp(value, "true") != 0 &&
					   strcmp(value, "false") != 0;

		if (ag_param_set(ag_rf_specs, ag_rf_n_specs, "RF", text, value, is_word, &options->forest,
						 &error) != AG_OK)
			fail(text, &error);
	}
	else if (ag_param_set(options->is_cat   ? ag_cat_specs
						  : options->is_xgb ? ag_xgb_specs
											: ag_gbm_specs,
						  options->is_cat   ? ag_cat_n_specs
						  : options->is_xgb ? ag_xgb_n_specs
											: ag_gbm_n_specs,
						  "booster", text, value,
						  strpbrk(value, "0123456789") == NULL && strcmp(value, "true") != 0 &&
							  strcmp(value, "false") != 0,
						  &options->params, &error) != AG_OK)
		fail(text, &error);
}

/* The levels of every category, as a fit hands them over. */
static const uint32_t **
codes_of(const Table *table)
{
	const uint32_t **codes = calloc((size_t) table->n_columns, sizeof *codes);

	for (int64_t f = 0; f < table->n_columns - 2; f++)
	{
		const double *column = table->values + f * table->n_rows;
		uint32_t *levels = malloc((size_t) table->n_rows * sizeof *levels);

		for (int64_t i = 0; i < table->n_rows; i++)
			levels[i] = column[i] >= 0 ? (uint32_t) column[i] : UINT32_MAX;
		codes[f] = levels;
	}
	return codes;
}

/* Test rows at the end aren't binned: they are predicted from their values. */
static int64_t
rows_to_bin(const Table *table)
{
	const double *part = table->values + (table->n_columns - 2) * table->n_rows;
	int64_t n = table->n_rows;

	while (n > 1 && part[n - 1] == 2.0)
		n--;
	return n;
}

static AgBins *
bin_table(const AgContext *ctx, const Table *table, const Options *options)
{
	int n_features = (int) table->n_columns - 2;
	AgBinParams params = {options->params.max_bin - !options->is_cat,
						  options->params.min_data_in_bin, 200000};
	int64_t n_rows = rows_to_bin(table);
	AgBins *bins;

	if (ag_bins_create(ctx, n_rows, n_features, &bins) != AG_OK)
		fail("bins", ctx->error);
	for (int f = 0; f < n_features; f++)
	{
		const double *column = table->values + f * table->n_rows;
		AgBinSource source = {.values = column};
		uint32_t *codes = NULL;

		if (table->is_category[f])
		{
			codes = malloc((size_t) n_rows * sizeof *codes);
			for (int64_t i = 0; i < n_rows; i++)
			{
				codes[i] = column[i] >= 0 ? (uint32_t) column[i] : UINT32_MAX;
				if (codes[i] != UINT32_MAX && codes[i] >= source.n_levels)
					source.n_levels = codes[i] + 1;
			}
			source.values = NULL;
			source.codes = codes;
		}
		if (ag_bins_set_feature(ctx, bins, f, &source, &params) != AG_OK)
			fail("bins", ctx->error);
		free(codes);
	}
	if (ag_bins_make_rows(ctx, bins) != AG_OK)
		fail("bins", ctx->error);
	return bins;
}

static void
split_rows(const Table *table, uint32_t *rows[3], int64_t n[3])
{
	const double *part = table->values + (table->n_columns - 2) * table->n_rows;

	for (int p = 0; p < 3; p++)
	{
		rows[p] = malloc((size_t) table->n_rows * sizeof(uint32_t));
		n[p] = 0;
		for (int64_t i = 0; i < table->n_rows; i++)
			if ((int) part[i] == p)
				rows[p][n[p]++] = (uint32_t) i;
	}
}

static void
write_predictions(const Table *table, const Options *options, const AgTrees *trees,
				  const uint32_t *rows, int64_t n)
{
	FILE *file = fopen(options->out, "wb");
	int n_features = (int) table->n_columns - 2;
	double features[4096], scores[4096], out[4096];
	size_t n_out = (size_t) ag_n_outputs(
		options->problem == AG_PROBLEM_REGRESSION ? 0 : options->n_classes, 0);

	if (file == NULL)
		fail(options->out, NULL);
	for (int64_t i = 0; i < n; i++)
	{
		for (int f = 0; f < n_features; f++)
		{
			features[f] = table->values[f * table->n_rows + rows[i]];
			if (table->is_category[f] && features[f] < 0)
				features[f] = (double) NAN;
		}
		ag_trees_score(trees, features, scores);
		ag_trees_link(trees, scores, out);
		fwrite(out, sizeof(double), n_out, file);
	}
	fclose(file);
}

/* Both families' results, as far as they are printed. */
static AgTrees *
train_once(const AgContext *ctx, const AgTrainData *data, const Options *options, char *text,
		   size_t size)
{
	AgTrees *trees;

	if (options->is_forest)
	{
		AgForestResult result;

		if (ag_forest_train(ctx, data, &options->forest, &result) != AG_OK)
			fail("train", ctx->error);
		snprintf(text, size, "trees=%d model_mb=%.1f", result.n_trees,
				 (double) result.model_bytes / 1048576.0);
		trees = result.trees;
		result.trees = NULL;
		ag_forest_result_free(ctx, &result);
	}
	else
	{
		AgBoostResult result;

		if ((options->is_cat ? ag_cat_train(ctx, data, options->codes, &options->params, &result)
							 : ag_boost_train(ctx, data, &options->params, &result)) != AG_OK)
			fail("train", ctx->error);
		snprintf(text, size, "rounds=%d best=%d trees=%u value=%.6g", result.rounds_run,
				 result.best_round, result.trees->n_trees, result.best_value);
		trees = result.trees;
		result.trees = NULL;
		ag_boost_result_free(ctx, &result);
	}
	return trees;
}

static void
train(const AgContext *ctx, const Table *table, const Options *options)
{
	const double *label = table->values + (table->n_columns - 1) * table->n_rows;
	uint32_t *rows[3];
	int64_t n[3];
	int32_t *class_of = malloc((size_t) table->n_rows * sizeof *class_of);
	double start = ag_cpu_ns() * 1e-9, binned;
	AgBins *bins = bin_table(ctx, table, options);
	AgTrainData data;

	binned = ag_cpu_ns() * 1e-9;
	split_rows(table, rows, n);
	for (int64_t i = 0; i < table->n_rows; i++)
		class_of[i] = options->problem == AG_PROBLEM_REGRESSION ? 0 : (int32_t) label[i];
	data = (AgTrainData){.bins = bins,
						 .problem = options->problem,
						 .n_classes = options->n_classes,
						 .target = label,
						 .class_of = class_of,
						 .train_rows = rows[0],
						 .n_train = n[0],
						 .valid_rows = rows[1],
						 .n_valid = n[1],
						 .stop_metric = options->metric};
	for (int r = 0; r < options->n_repeats; r++)
	{
		double from = ag_cpu_ns() * 1e-9, to;
		int64_t clock = ag_clock_ns();
		char text[200];
		AgTrees *trees = train_once(ctx, &data, options, text, sizeof text);

		to = ag_cpu_ns() * 1e-9;
		printf("bin_s=%.3f train_s=%.3f wall_s=%.3f %s nodes=%llu peak_mb=%.1f\n", binned - start,
			   to - from, 1e-9 * (double) (ag_clock_ns() - clock), text,
			   (unsigned long long) trees->n_nodes,
			   (double) atomic_load(&ctx->mem->peak_bytes) / 1048576.0);
		fflush(stdout);
		if (r == 0 && options->out != NULL)
			write_predictions(table, options, trees, rows[2], n[2]);
		ag_trees_free(trees);
	}
	ag_bins_free(bins);
	for (int p = 0; p < 3; p++)
		free(rows[p]);
	free(class_of);
}

int
main(int argc, char **argv)
{
	static Table table;
	Options options = {.problem = AG_PROBLEM_REGRESSION, .n_threads = 1, .n_repeats = 1};
	AgMem mem;
	AgError error;
	AgPool *pool;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};

	if (argc < 2)
	{
		fprintf(stderr, "usage: train_table FILE [name=value ...]\n");
		return 2;
	}
	ag_params_default(ag_gbm_specs, ag_gbm_n_specs, &options.params);
	ag_gbm_complete(&options.params);
	options.params.early_stop_rounds = -1;
	options.forest.wants_oob = true;
	read_table(argv[1], &table);
	options.codes = codes_of(&table);
	for (int i = 2; i < argc; i++)
		read_option(&table, &options, argv[i]);
	if (options.is_xgb)
		ag_xgb_complete(&options.params);
	else if (!options.is_cat && !options.is_forest)
		ag_gbm_complete(&options.params);
	if (options.problem == AG_PROBLEM_BINARY)
		options.n_classes = 2;
	if (options.metric == AG_METRIC_NONE)
		options.metric =
			options.problem == AG_PROBLEM_REGRESSION ? AG_METRIC_RMSE : AG_METRIC_LOG_LOSS;
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	if (ag_pool_create(&mem, options.n_threads, &pool, &error) != AG_OK)
		fail("pool", &error);
	ctx.pool = pool;
	train(&ctx, &table, &options);
	ag_pool_free(pool);
	free(table.values);
	return 0;
}
