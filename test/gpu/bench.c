/*
 * bench.c - how fast trees are grown on a GPU: one line a case, tab-separated. bench [SCALE]: rows of each case times SCALE.
 *
 * The floor is what must be moved or added at least: rows read once by each level's histograms (half of them after the first,
 * for siblings are subtracted), their ids and gradients read and written by each partition, over the memory's bandwidth; and two
 * additions in shared memory a row and feature, 32 lanes a clock and multiprocessor.
 */
#include <stdlib.h>

#include "unit/forests.h"

#include "cuda_sim/lib/there.h"

#define MOST_FOLDS 8

typedef struct BenchCase
{
	const char *name;
	int64_t n_rows;
	int n_features, n_rounds, depth;
	AgProblem problem;
} BenchCase;

static const BenchCase bench_cases[] = {
	{"XGB 11M x 28, depth 8, 100 trees", 11000000, 28, 100, 8, AG_PROBLEM_BINARY},
	{"XGB 1M x 28, depth 6, 100 trees", 1000000, 28, 100, 6, AG_PROBLEM_BINARY},
	{"XGB 100K x 28, depth 6, 100 trees", 100000, 28, 100, 6, AG_PROBLEM_BINARY},
	{"GBM 1M x 28, 31 leaves, 100 trees", 1000000, 28, 100, 0, AG_PROBLEM_BINARY},
	{"GBM 100K x 28, 31 leaves, 100 trees", 100000, 28, 100, 0, AG_PROBLEM_REGRESSION},
};

/* Seconds by the memory, and by additions, of an H200: 4.8 TB/s, 132 multiprocessors at 1.8 GHz. */
static double
floor_seconds(const BenchCase *bench, int64_t n_rows)
{
	double levels = bench->depth > 0 ? bench->depth : 5;
	double touched = (double) n_rows * (1.0 + 0.5 * (levels - 1.0));
	double bytes =
		touched * (32.0 + 8.0) + (double) n_rows * levels * 17.0 + (double) n_rows * 40.0;
	double additions = 2.0 * touched * bench->n_features;
	double by_memory = bytes / 4.8e12, by_additions = additions / (132 * 32 * 1.8e9);

	return bench->n_rounds * (by_memory > by_additions ? by_memory : by_additions);
}

static void
run_case(const AgDeviceOps *ops, const BenchCase *bench, double scale)
{
	int64_t n_rows = (int64_t) ((double) bench->n_rows * scale) + 100, began;
	AgBoostParams params =
		bench->depth > 0 ? xgb_params(bench->n_rounds) : gbm_params(bench->n_rounds);
	double first, again;
	AgBoostResult result;
	AgTrainData data;
	AgGpu gpu = {.ops = ops, .name = "cuda:0"};
	Bench own;
	Table table;
	char why[300];

	bench_init(&own, 4);
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &gpu.device, why, sizeof why) == AG_DEVICE_OK);
	own.ctx.gpu = &gpu;
	table_init(&table, n_rows, bench->n_features, 0, 1, 0.0, 2, 3);
	table_bin(&table, &own.ctx, 254);
	data = table_data(&table, bench->problem, bench->problem == AG_PROBLEM_BINARY ? 2 : 0);
	data.n_valid = 0;
	data.n_train = n_rows;
	for (int64_t i = 0; i < n_rows; i++)
		table.train[i] = (uint32_t) i;
	if (bench->depth > 0)
		params.max_depth = bench->depth;
	if (is_simulated) /* is the program right? */
		params.num_boost_round = 1;
	for (int pass = 0; pass < 2; pass++) /* the first one uploads the matrix */
	{
		began = ag_clock_ns();
		AG_REQUIRE(ag_boost_train(&own.ctx, &data, &params, &result) == AG_OK);
		*(pass == 0 ? &first : &again) = (double) (ag_clock_ns() - began) * 1e-9;
		if (!AG_CHECK(result.on_gpu))
			fprintf(stderr, "    %s\n", result.cpu_because);
		ag_boost_result_free(&own.ctx, &result);
	}
	printf("%s\t%lld\t%.3f\t%.3f\t%.3f\t%.4f\t%.1f\n", bench->name, (long long) n_rows, first,
		   again, again * 1e3 / bench->n_rounds, floor_seconds(bench, n_rows),
		   again / floor_seconds(bench, n_rows));
	fflush(stdout);
	table_end(&table);
	ops->close(gpu.device);
	bench_end(&own);
}

/* ---- forests ---- */

/* No floor: how deep trees get is the data's. */
static void
run_forest(const char *name, bool is_extra, double scale)
{
	int64_t n_rows = (int64_t) (1000000 * scale) + 100, began;
	AgForestParams params = forest_params(is_simulated ? 1 : 300, is_extra);
	AgForestResult result;
	AgTrainData data;
	There there;
	Table table;
	double seconds;

	there_init(&there, INT64_C(1) << 40);
	ag_pool_free(there.bench.pool);
	AG_REQUIRE(ag_pool_create(&there.bench.mem, 8, &there.bench.pool, &there.bench.error) == AG_OK);
	there.bench.ctx.pool = there.bench.pool;
	table_init(&table, n_rows, 28, 0, 1, 0.0, 2, 3);
	table_bin(&table, &there.bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	began = ag_clock_ns();
	result = train(&there.bench, &data, &params);
	seconds = (double) (ag_clock_ns() - began) * 1e-9;
	if (!AG_CHECK(result.on_gpu))
		fprintf(stderr, "    %s\n", result.cpu_because);
	printf("%s\t%lld\t%.3f\t%.3f\t%.3f\t-\t-\n", name, (long long) n_rows, seconds, seconds,
		   seconds * 1e3 / params.n_estimators);
	fflush(stdout);
	ag_forest_result_free(&there.bench.ctx, &result);
	table_end(&table);
	there_end(&there);
}

/* ---- folds ---- */

typedef struct FoldBench
{
	AgContext ctx[MOST_FOLDS];
	AgError errors[MOST_FOLDS];
	AgGpu gpus[MOST_FOLDS];
	AgTrainData data[MOST_FOLDS];
	uint32_t *rows[MOST_FOLDS]; /* those to train on, then those of the fold */
	const AgBoostParams *params;
} FoldBench;

static void
fold_task(void *arg, int64_t begin, int64_t end, int thread)
{
	FoldBench *folds = arg;

	(void) thread;
	for (int64_t k = begin; k < end; k++)
	{
		AgBoostResult result;

		AG_REQUIRE(ag_boost_train(&folds->ctx[k], &folds->data[k], folds->params, &result) ==
				   AG_OK);
		if (folds->ctx[k].gpu != NULL && !AG_CHECK(result.on_gpu))
			fprintf(stderr, "    %s\n", result.cpu_because);
		ag_boost_result_free(&folds->ctx[k], &result);
	}
}

static void
folds_init(FoldBench *folds, const AgContext *ctx, const AgDeviceOps *ops, const Table *table)
{
	int64_t n = table->n_rows;
	char why[300];

	for (int k = 0; k < MOST_FOLDS; k++)
	{
		int64_t n_train = 0, n_valid = 0;

		folds->gpus[k] = (AgGpu){.ops = ops, .name = "cuda:0"};
		AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &folds->gpus[k].device, why, sizeof why) ==
				   AG_DEVICE_OK);
		folds->ctx[k] = *ctx;
		folds->ctx[k].pool = NULL;
		ag_error_init(&folds->errors[k]);
		folds->ctx[k].error = &folds->errors[k];
		folds->ctx[k].gpu = &folds->gpus[k];
		folds->rows[k] = malloc((size_t) n * sizeof(uint32_t));
		for (int64_t i = 0; i < n; i++)
			n_train += i % MOST_FOLDS != k;
		for (int64_t i = 0, at = 0; i < n; i++)
			if (i % MOST_FOLDS == k)
				folds->rows[k][n_train + n_valid++] = (uint32_t) i;
			else
				folds->rows[k][at++] = (uint32_t) i;
		folds->data[k] = table_data(table, AG_PROBLEM_BINARY, 2);
		folds->data[k].train_rows = folds->rows[k];
		folds->data[k].n_train = n_train;
		folds->data[k].valid_rows = folds->rows[k] + n_train;
		folds->data[k].n_valid = n_valid;
	}
}

static double
seconds_of_folds(FoldBench *folds, AgPool *pool, int n)
{
	int64_t began = ag_clock_ns();

	ag_pool_run(pool, n, 1, fold_task, folds);
	return (double) (ag_clock_ns() - began) * 1e-9;
}

/* All folds at the same time against one alone; with cpu_rounds, against the CPU too, by as many rounds of one fold. */
static void
run_folds(const AgDeviceOps *ops, const char *name, int64_t n_rows, int n_features,
		  AgBoostParams params, int cpu_rounds)
{
	FoldBench *folds = calloc(1, sizeof *folds);
	AgBoostParams fewer = params;
	double one, all, cpu = 0.0;
	Bench own;
	Table table;

	bench_init(&own, is_simulated ? 1 : MOST_FOLDS); /* the simulator has one thread */
	table_init(&table, n_rows, n_features, 0, 1, 0.0, 2, 3);
	table_bin(&table, &own.ctx, 254);
	folds_init(folds, &own.ctx, ops, &table);
	folds->params = &params;
	(void) seconds_of_folds(folds, own.pool, 1); /* uploads the matrix */
	one = seconds_of_folds(folds, own.pool, 1);
	all = seconds_of_folds(folds, own.pool, MOST_FOLDS);
	printf("%s: one of 8 folds\t%lld\t%.3f\t%.3f\t%.3f\t-\t-\n", name, (long long) n_rows, one, one,
		   one * 1e3 / params.num_boost_round);
	printf("%s: all of them, %.2f times one\t%lld\t%.3f\t%.3f\t%.3f\t-\t-\n", name, all / one,
		   (long long) n_rows, all, all, all * 1e3 / params.num_boost_round / MOST_FOLDS);
	if (cpu_rounds > 0)
	{
		fewer.num_boost_round = cpu_rounds;
		folds->params = &fewer;
		folds->ctx[0].gpu = NULL;
		folds->ctx[0].pool = own.pool;
		fold_task(folds, 0, 1, 0); /* on as many threads as there are folds */
		{
			int64_t began = ag_clock_ns();

			fold_task(folds, 0, 1, 0);
			cpu = (double) (ag_clock_ns() - began) * 1e-9 * MOST_FOLDS * params.num_boost_round /
				  cpu_rounds;
		}
		printf("%s: on 8 cores, from %d rounds of one fold; the GPU is %.1f times faster\t%lld\t"
			   "%.3f\t%.3f\t%.3f\t-\t-\n",
			   name, cpu_rounds, cpu / all, (long long) n_rows, cpu, cpu,
			   cpu * 1e3 / params.num_boost_round / MOST_FOLDS);
	}
	fflush(stdout);
	table_end(&table);
	for (int k = 0; k < MOST_FOLDS; k++)
	{
		ops->close(folds->gpus[k].device);
		free(folds->rows[k]);
	}
	free(folds);
	bench_end(&own);
}

int
main(int argc, char **argv)
{
	double scale = argc > 1 ? atof(argv[1]) : 1.0;
	AgBoostParams xgb = xgb_params(100), gbm = gbm_params(1000);

	there_begin();
	if (is_simulated)
		gbm.num_boost_round = xgb.num_boost_round = 1;
	printf("case\trows\tfirst s\ts\tms/tree\tfloor s\ttimes the floor\n");
	for (size_t c = 0; c < sizeof bench_cases / sizeof bench_cases[0]; c++)
		run_case(table_of_ops.ops, &bench_cases[c], scale);
	run_forest("RF 1M x 28, 300 trees", false, scale);
	run_forest("XT 1M x 28, 300 trees", true, scale);
	xgb.max_depth = 6;
	run_folds(table_of_ops.ops, "XGB 300K x 28, depth 6, 100 trees",
			  (int64_t) (300000 * scale) + 800, 28, xgb, 0);
	run_folds(table_of_ops.ops, "GBM 2M x 30, 31 leaves, 1000 trees",
			  (int64_t) (2000000 * scale) + 800, 30, gbm, is_simulated ? 1 : 50);
	return ag_unit_done("cuda bench");
}
