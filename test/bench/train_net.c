/*
 * train_net.c - trains a neural net on a table of numbers, times it, and writes its predictions.
 *
 *     train_net FILE family=NN_TORCH|FASTAI|REALMLP|TABM [name=value ...]
 *
 * FILE and the other names are those of train_table.c, parameters those of the family. Epochs run and kept, CPU and wall time of
 * training, and both of one prediction are printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/net.h"

typedef struct Table
{
	int64_t n_rows, n_columns;
	double *values;
	uint32_t n_levels[4096];
} Table;

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

	if (file == NULL || fread(size, 8, 2, file) != 2 || size[0] < 1 || size[1] < 2 ||
		size[1] > 4096)
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
read_column(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	const Table *table = arg;
	const double *column = table->values + (int64_t) feature * table->n_rows;

	for (int64_t i = 0; i < n; i++)
		values[i] =
			table->n_levels[feature] > 0 && column[rows[i]] < 0 ? (double) NAN : column[rows[i]];
}

static void
read_cats(Table *table, char *list)
{
	for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ","))
	{
		int f = atoi(word) & 4095;

		table->n_levels[f] = 1;
		for (int64_t i = 0; i < table->n_rows; i++)
		{
			double code = table->values[f * table->n_rows + i];

			if (code >= table->n_levels[f])
				table->n_levels[f] = (uint32_t) code + 1;
		}
	}
}

static void
predict(const Table *table, const AgNet *net, const uint32_t *rows, int64_t n, const char *path)
{
	FILE *file = path != NULL ? fopen(path, "wb") : NULL;
	double *features = malloc(4096 * sizeof *features), *out = malloc(10000 * sizeof *out);
	void *scratch = aligned_alloc(64, (ag_net_row_scratch_bytes(net) + 63) / 64 * 64);
	int64_t spent = 0;

	for (int64_t i = 0; i < n; i++)
	{
		int64_t began;

		for (uint32_t f = 0; f < net->dense->n_features; f++)
			read_column(table, f, rows + i, 1, features + f);
		began = ag_clock_ns();
		ag_net_run(net, features, scratch, out);
		spent += ag_clock_ns() - began;
		if (file != NULL)
			fwrite(out, sizeof(double), ag_net_n_out(net), file);
	}
	if (file != NULL)
		fclose(file);
	printf(" predict_us=%.2f", n > 0 ? 1e-3 * (double) spent / (double) n : 0.0);
	free(features);
	free(scratch);
	free(out);
}

typedef struct Options
{
	const AgParamSpec *specs;
	int n_specs, n_threads, n_classes, n_repeats;
	double seconds; /* time limit of training; 0: none */
	AgProblem problem;
	AgMetric metric;
	const char *out;
	AgNetParams params;
} Options;

static void
read_family(Options *options, const char *name)
{
	AgNetFamily family = strcmp(name, "FASTAI") == 0    ? AG_NET_FASTAI
						 : strcmp(name, "REALMLP") == 0 ? AG_NET_REALMLP
						 : strcmp(name, "TABM") == 0    ? AG_NET_TABM
														: AG_NET_NN_TORCH;

	options->specs = family == AG_NET_FASTAI    ? ag_fastai_specs
					 : family == AG_NET_REALMLP ? ag_realmlp_specs
					 : family == AG_NET_TABM    ? ag_tabm_specs
												: ag_nn_specs;
	options->n_specs = family == AG_NET_FASTAI    ? ag_fastai_n_specs
					   : family == AG_NET_REALMLP ? ag_realmlp_n_specs
					   : family == AG_NET_TABM    ? ag_tabm_n_specs
												  : ag_nn_n_specs;
	ag_params_default(options->specs, options->n_specs, &options->params);
	options->params.family = family;
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
		read_family(options, value);
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
		options->params.seed = strtoull(value, NULL, 10);
	else if (strcmp(text, "repeat") == 0)
		options->n_repeats = atoi(value);
	else if (strcmp(text, "seconds") == 0)
		options->seconds = atof(value);
	else if (strcmp(text, "metric") == 0)
		options->metric = ag_metric_by_name(value);
	else if (strcmp(text, "out") == 0)
		options->out = value;
	else
	{
		bool is_word = strpbrk(value, "0123456789") == NULL && strcmp(value, "true") != 0 &&
					   strcmp(value, "false") != 0;

		if (ag_param_set(options->specs, options->n_specs, "net", text, value, is_word,
						 &options->params, &error) != AG_OK)
			fail(text, &error);
	}
}

static void
train(AgContext *ctx, const Table *table, Options *options)
{
	const double *part = table->values + (table->n_columns - 2) * table->n_rows;
	const double *label = part + table->n_rows;
	AgDenseSource source = {table->n_rows, (uint32_t) table->n_columns - 2, table->n_levels,
							read_column, table};
	int32_t *class_of = malloc((size_t) table->n_rows * sizeof *class_of);
	uint32_t *rows[3];
	int64_t n[3] = {0, 0, 0};
	AgDenseMatrix *matrix;
	AgTrainData data;
	AgDense *dense;

	for (int p = 0; p < 3; p++)
	{
		rows[p] = malloc((size_t) table->n_rows * sizeof(uint32_t));
		for (int64_t i = 0; i < table->n_rows; i++)
			if ((int) part[i] == p)
				rows[p][n[p]++] = (uint32_t) i;
	}
	for (int64_t i = 0; i < table->n_rows; i++)
		class_of[i] = options->problem == AG_PROBLEM_REGRESSION ? 0 : (int32_t) label[i];
	data = (AgTrainData){.problem = options->problem,
						 .n_classes = options->n_classes,
						 .target = label,
						 .class_of = class_of,
						 .train_rows = rows[0],
						 .n_train = n[0],
						 .valid_rows = rows[1],
						 .n_valid = n[1],
						 .stop_metric = options->metric};
	ag_net_params_complete(options->params.family, &options->params);
	if (ag_dense_fit(ctx, &source, rows[0], n[0], &options->params.dense, &dense) != AG_OK ||
		ag_dense_matrix(ctx, dense, &source, &matrix) != AG_OK)
		fail("transform", ctx->error);
	for (int r = 0; r < options->n_repeats; r++)
	{
		double from = ag_cpu_ns() * 1e-9;
		int64_t clock = ag_clock_ns();
		AgNetResult result;

		if (options->seconds > 0.0)
			ctx->deadline_ns = clock + (int64_t) (options->seconds * 1e9);
		if (ag_net_train(ctx, dense, matrix, &data, &options->params, &result) != AG_OK)
			fail("train", ctx->error);
		printf("cpu_s=%.3f wall_s=%.3f epochs=%d best=%d value=%.6g weights=%llu peak_mb=%.1f",
			   ag_cpu_ns() * 1e-9 - from, 1e-9 * (double) (ag_clock_ns() - clock),
			   result.epochs_run, result.best_epoch, result.best_value,
			   (unsigned long long) result.model->n_values,
			   (double) atomic_load(&ctx->mem->peak_bytes) / 1048576.0);
		predict(table, result.model, rows[2], n[2], r == 0 ? options->out : NULL);
		printf("\n");
		fflush(stdout);
		ag_net_result_free(ctx, &result);
	}
	ag_dense_matrix_free(matrix);
	ag_dense_free(dense);
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

	if (argc < 3 || strncmp(argv[2], "family=", 7) != 0)
	{
		fprintf(stderr, "usage: train_net FILE family=F [name=value ...]\n");
		return 2;
	}
	read_table(argv[1], &table);
	for (int i = 2; i < argc; i++)
		read_option(&table, &options, argv[i]);
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
