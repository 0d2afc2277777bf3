/*
 * train_dense.c - trains LR or KNN on a table of numbers, times it, and writes its predictions.
 *
 *     train_dense LR|KNN FILE [name=value ...]
 *
 * FILE: int64 rows, int64 columns, then the columns as doubles one after the other; NaN is missing. The last two columns
 * are the part (0 train, 2 test) and the label. Names are those of the family, and: cats=3,7 (columns that hold category
 * codes), problem=binary|multiclass|regression, classes=K, threads=N, repeat=N, out=FILE (predictions of the test rows as
 * doubles), matrix=FILE (the transformed training rows, one-hot, as doubles), loo=1 (KNN: predicts the training rows
 * instead, each without itself).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/threads.h"
#include "engine/model/knn.h"
#include "engine/model/linear.h"

typedef struct Table
{
	int64_t n_rows, n_columns;
	double *values;
	uint32_t n_levels[4096];
} Table;

typedef struct Options
{
	bool knn, loo;
	AgLinearParams linear;
	AgKnnParams neighbors;
	AgProblem problem;
	int n_classes, n_threads, n_repeats;
	const char *out, *matrix;
} Options;

static double
seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void
fail(const char *what, const AgError *error)
{
	fprintf(stderr, "%s: %s\n", what, error != NULL ? error->message : "");
	exit(1);
}

static void *
get(size_t n, size_t size)
{
	void *block = calloc(n > 0 ? n : 1, size);

	if (block == NULL)
		fail("out of memory", NULL);
	return block;
}

static void
read_table(const char *path, Table *table)
{
	FILE *file = fopen(path, "rb");
	int64_t size[2];
	size_t n;

	if (file == NULL || fread(size, 8, 2, file) != 2 || size[0] < 1 || size[1] < 3 ||
		size[1] > 4096)
		fail(path, NULL);
	table->n_rows = size[0];
	table->n_columns = size[1];
	n = (size_t) size[0] * (size_t) size[1];
	table->values = get(n, sizeof(double));
	if (fread(table->values, sizeof(double), n, file) != n)
		fail(path, NULL);
	fclose(file);
}

static void
read_cats(Table *table, char *list)
{
	for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ","))
	{
		int c = atoi(word) & 4095;
		const double *values = table->values + (size_t) c * (size_t) table->n_rows;

		table->n_levels[c] = 1;
		for (int64_t i = 0; c < table->n_columns && i < table->n_rows; i++)
			if (values[i] >= table->n_levels[c])
				table->n_levels[c] = (uint32_t) values[i] + 1;
	}
}

static void
read_option(Table *table, Options *options, char *text)
{
	char *value = strchr(text, '=');
	AgError error;
	AgStatus status = AG_OK;

	if (value == NULL)
		fail(text, NULL);
	*value++ = '\0';
	ag_error_init(&error);
	if (strcmp(text, "cats") == 0)
		read_cats(table, value);
	else if (strcmp(text, "problem") == 0)
		options->problem = value[0] == 'b'   ? AG_PROBLEM_BINARY
						   : value[0] == 'm' ? AG_PROBLEM_MULTICLASS
											 : AG_PROBLEM_REGRESSION;
	else if (strcmp(text, "classes") == 0)
		options->n_classes = atoi(value);
	else if (strcmp(text, "threads") == 0)
		options->n_threads = atoi(value);
	else if (strcmp(text, "repeat") == 0)
		options->n_repeats = atoi(value);
	else if (strcmp(text, "loo") == 0)
		options->loo = atoi(value) != 0;
	else if (strcmp(text, "out") == 0)
		options->out = value;
	else if (strcmp(text, "matrix") == 0)
		options->matrix = value;
	else if (options->knn)
		status = ag_param_set(ag_knn_specs, ag_knn_n_specs, "KNN", text, value, value[0] >= 'A',
							  &options->neighbors, &error);
	else
		status = ag_param_set(ag_linear_specs, ag_linear_n_specs, "LR", text, value,
							  value[0] >= 'A', &options->linear, &error);
	if (status != AG_OK)
		fail(text, &error);
}

static void
read_column(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	const Table *table = arg;
	const double *column = table->values + (size_t) feature * (size_t) table->n_rows;

	for (int64_t i = 0; i < n; i++)
		values[i] = column[rows[i]];
}

/* Rows by part, and the label in the form of the problem. */
static AgTrainData
make_data(const Table *table, const Options *options)
{
	const double *part = table->values + (size_t) (table->n_columns - 2) * (size_t) table->n_rows;
	const double *label = part + table->n_rows;
	uint32_t *train = get((size_t) table->n_rows, sizeof *train);
	uint32_t *valid = get((size_t) table->n_rows, sizeof *valid);
	int32_t *class_of = get((size_t) table->n_rows, sizeof *class_of);
	AgTrainData data = {.problem = options->problem,
						.n_classes = options->problem == AG_PROBLEM_REGRESSION ? 0
									 : options->problem == AG_PROBLEM_BINARY   ? 2
																			   : options->n_classes,
						.target = label,
						.class_of = class_of,
						.train_rows = train,
						.valid_rows = valid};

	for (int64_t i = 0; i < table->n_rows; i++)
	{
		class_of[i] = (int32_t) label[i];
		if (part[i] == 0.0)
			train[data.n_train++] = (uint32_t) i;
		else
			valid[data.n_valid++] = (uint32_t) i;
	}
	if (options->loo)
	{
		data.valid_rows = train;
		data.n_valid = data.n_train;
	}
	return data;
}

static void
write_matrix(const char *path, const AgDense *dense, const AgDenseMatrix *matrix,
			 const AgTrainData *data)
{
	FILE *file = fopen(path, "wb");
	size_t width = (size_t) dense->n_numbers + dense->n_columns;
	double *row = get(width, sizeof *row);
	int64_t size[2] = {data->n_train, (int64_t) width};

	if (file == NULL)
		fail(path, NULL);
	fwrite(size, sizeof size, 1, file);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		size_t r = data->train_rows[i];

		memset(row, 0, width * sizeof *row);
		for (size_t j = 0; j < dense->n_numbers; j++)
			row[j] = (double) matrix->numbers[r * matrix->stride + j];
		for (size_t s = 0; s < matrix->n_slots; s++)
			if (matrix->slots[r * matrix->n_slots + s] < dense->n_columns)
				row[dense->n_numbers + matrix->slots[r * matrix->n_slots + s]] = 1.0;
		fwrite(row, sizeof *row, width, file);
	}
	fclose(file);
}

/* Trains once; says how long it took and what came of it. *proba is the caller's. */
static void
train(const AgContext *ctx, const Options *options, const AgDense *dense,
	  const AgDenseMatrix *matrix, const AgTrainData *data, double **proba)
{
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	AgLinearResult linear = {0};
	AgKnnResult knn = {0};
	AgStatus status = options->knn
						  ? ag_knn_train(ctx, dense, matrix, data, &options->neighbors, &knn)
						  : ag_linear_train(ctx, dense, matrix, data, &options->linear, &linear);

	if (status != AG_OK)
		fail("train", ctx->error);
	printf("train wall %.6f cpu %.6f iterations %d converged %d objective %.12g\n",
		   seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, linear.n_iter,
		   linear.converged, linear.objective);
	*proba = options->knn ? knn.valid_proba : linear.valid_proba;
	knn.valid_proba = linear.valid_proba = NULL;
	ag_linear_result_free(ctx, &linear);
	ag_knn_result_free(ctx, &knn);
}

int
main(int argc, char **argv)
{
	static Table table;
	Options options = {.problem = AG_PROBLEM_BINARY, .n_threads = 1, .n_repeats = 1};
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgDenseSource source;
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgTrainData data;
	double *proba = NULL, wall;

	if (argc < 3)
		fail("usage: train_dense LR|KNN FILE [name=value ...]", NULL);
	options.knn = strcmp(argv[1], "KNN") == 0;
	ag_params_default(ag_linear_specs, ag_linear_n_specs, &options.linear);
	ag_params_default(ag_knn_specs, ag_knn_n_specs, &options.neighbors);
	read_table(argv[2], &table);
	for (int i = 3; i < argc; i++)
		read_option(&table, &options, argv[i]);
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	if (ag_pool_create(&mem, options.n_threads, &ctx.pool, &error) != AG_OK)
		fail("threads", &error);
	data = make_data(&table, &options);
	source = (AgDenseSource){table.n_rows, (uint32_t) table.n_columns - 2, table.n_levels,
							 read_column, &table};
	wall = seconds(CLOCK_MONOTONIC);
	if (ag_dense_fit(&ctx, &source, data.train_rows, data.n_train,
					 options.knn ? &options.neighbors.dense : &options.linear.dense,
					 &dense) != AG_OK ||
		ag_dense_matrix(&ctx, dense, &source, &matrix) != AG_OK)
		fail("transform", &error);
	printf("transform wall %.6f numbers %u columns %u\n", seconds(CLOCK_MONOTONIC) - wall,
		   dense->n_numbers, dense->n_columns);
	if (options.matrix != NULL)
		write_matrix(options.matrix, dense, matrix, &data);
	for (int r = 0; r < options.n_repeats; r++)
	{
		ag_mem_free(&mem, proba);
		train(&ctx, &options, dense, matrix, &data, &proba);
	}
	if (options.out != NULL)
	{
		FILE *file = fopen(options.out, "wb");
		size_t n_out = (size_t) ag_train_outputs(&data);

		if (file == NULL || fwrite(proba, n_out * sizeof(double), (size_t) data.n_valid, file) !=
								(size_t) data.n_valid)
			fail(options.out, NULL);
		fclose(file);
	}
	return 0;
}
