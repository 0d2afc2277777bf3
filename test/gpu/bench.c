/*
 * bench.c - how fast boosters are on a GPU: one line a case, tab-separated. bench [SCALE]: rows of each case times SCALE.
 *
 * The floor is what must be moved or added at least: rows read once by each level's histograms (half of them after the first,
 * for siblings are subtracted), their ids and gradients read and written by each partition, over the memory's bandwidth; and two
 * additions in shared memory a row and feature, 32 lanes a clock and multiprocessor.
 */
#include <stdlib.h>

#include "kernels/ag_cuda.h"
#include "unit/booster.h"

#include "cuda_sim/lib/machine.h"

typedef struct BenchCase
{
	const char *name;
	int64_t n_rows;
	int n_features, n_rounds, depth;
	AgProblem problem;
} BenchCase;

static const BenchCase cases[] = {
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

int
main(int argc, char **argv)
{
	double scale = argc > 1 ? atof(argv[1]) : 1.0;
	AgCudaTable table;

	(void) sim_machine_reset(2, 48 << 10, 0);
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table));
	printf("case\trows\tfirst s\ts\tms/tree\tfloor s\ttimes the floor\n");
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
		run_case(table.ops, &cases[c], scale);
	return ag_unit_done("cuda bench");
}
