/*
 * bench_dense.c - how fast nets, neighbours and linear models are on a GPU: lines like bench.c's. bench_dense [SCALE]: rows of each case
 * times SCALE.
 *
 * Nets come with products in single and in half precision, with the memory that each took.
 */
#include <stdlib.h>

#include "unit/unit.h"

#include "cuda_sim/lib/machine.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/knn.h"
#include "engine/model/linear.h"
#include "engine/model/net.h"
#include "kernels/ag_cuda.h"

#define N_THREADS 4

typedef struct Bench
{
	AgMem mem;
	AgError err;
	AgContext ctx;
	AgGpu gpu;
	AgDense *dense;
	AgDenseMatrix *matrix;
	uint32_t n_levels[256];
	uint32_t *rows;
	double *target;
	int32_t *class_of;
} Bench;

static AgCudaTable table_of_ops;
static bool is_simulated;

static double
cell(uint32_t feature, uint32_t row)
{
	return ag_random_unit(feature + 1, row) + ag_random_unit(feature + 1000, row) - 1.0;
}

static void
read_cells(const void *arg, uint32_t feature, const uint32_t *rows, int64_t n, double *values)
{
	for (int64_t i = 0; i < n; i++)
		values[i] = cell(feature, rows[i]);
}

/* Numbers only, each of the label's making. */
static void
begin(Bench *bench, int64_t n_rows, uint32_t n_features)
{
	AgDenseParams params = {INFINITY, AG_DENSE_MEDIAN, 1, 100};
	AgDenseSource source = {n_rows, n_features, bench->n_levels, read_cells, NULL};
	char why[300];

	memset(bench, 0, sizeof *bench);
	ag_mem_init(&bench->mem, INT64_MAX);
	ag_error_init(&bench->err);
	bench->ctx = (AgContext){.mem = &bench->mem, .deadline_ns = INT64_MAX, .error = &bench->err};
	AG_REQUIRE(ag_pool_create(&bench->mem, is_simulated ? 1 : N_THREADS, &bench->ctx.pool,
							  &bench->err) == AG_OK);
	bench->gpu = (AgGpu){.ops = table_of_ops.ops, .name = "cuda:0"};
	AG_REQUIRE(bench->gpu.ops->open(0, INT64_C(1) << 40, &bench->gpu.device, why, sizeof why) ==
			   AG_DEVICE_OK);
	bench->ctx.gpu = &bench->gpu;
	bench->rows = malloc((size_t) n_rows * sizeof *bench->rows);
	bench->target = malloc((size_t) n_rows * sizeof *bench->target);
	bench->class_of = malloc((size_t) n_rows * sizeof *bench->class_of);
	for (int64_t i = 0; i < n_rows; i++)
	{
		bench->rows[i] = (uint32_t) i;
		bench->target[i] = cell(0, (uint32_t) i) - cell(1, (uint32_t) i) * cell(2, (uint32_t) i);
		bench->class_of[i] = bench->target[i] > 0.0;
	}
	AG_REQUIRE(ag_dense_fit(&bench->ctx, &source, bench->rows, n_rows, &params, &bench->dense) ==
			   AG_OK);
	AG_REQUIRE(ag_dense_matrix(&bench->ctx, bench->dense, &source, &bench->matrix) == AG_OK);
}

static void
end(Bench *bench)
{
	ag_dense_matrix_free(bench->matrix);
	ag_dense_free(bench->dense);
	ag_pool_free(bench->ctx.pool);
	bench->gpu.ops->close(bench->gpu.device);
	free(bench->rows);
	free(bench->target);
	free(bench->class_of);
}

static AgTrainData
data_of(const Bench *bench, AgProblem problem, int64_t n_train, int64_t n_valid)
{
	return (AgTrainData){.problem = problem,
						 .n_classes = problem == AG_PROBLEM_BINARY ? 2 : 0,
						 .target = bench->target,
						 .class_of = bench->class_of,
						 .stop_metric = ag_metric_default(problem),
						 .train_rows = bench->rows,
						 .n_train = n_train,
						 .valid_rows = bench->rows + n_train,
						 .n_valid = n_valid};
}

static void
tell(const Bench *bench, const char *name, int64_t n_rows, double seconds, double n_units)
{
	AgDeviceMemory memory;

	bench->gpu.ops->memory(bench->gpu.device, &memory);
	printf("%s, %.0f MB\t%lld\t%.3f\t%.3f\t%.4f\t-\t-\n", name, (double) memory.peak_bytes / 1e6,
		   (long long) n_rows, seconds, seconds, seconds * 1e3 / n_units);
	fflush(stdout);
}

/* ms: a step. */
static void
run_net(const char *name, AgNetFamily family, int width, int batch, bool in_half, double scale)
{
	int64_t n_rows = (int64_t) (200000 * scale) + 1000, began;
	AgNetParams params;
	AgNetResult result;
	AgTrainData data;
	char text[120];
	Bench bench;

	begin(&bench, n_rows, 60);
	data = data_of(&bench, AG_PROBLEM_BINARY, n_rows, 0);
	ag_net_params_default(family, &params);
	params.num_epochs = 1;
	params.layers.n = 4;
	for (int l = 0; l < 4; l++)
		params.layers.values[l] = is_simulated ? 16 : width;
	params.batch_size = batch;
	params.use_half = in_half;
	began = ag_clock_ns();
	AG_REQUIRE(ag_net_train(&bench.ctx, bench.dense, bench.matrix, &data, &params, &result) ==
			   AG_OK);
	snprintf(text, sizeof text, "%s, %s precision", name, result.in_half ? "half" : "single");
	tell(&bench, text, n_rows, (double) (ag_clock_ns() - began) * 1e-9, (double) (n_rows / batch));
	AG_CHECK(result.on_gpu);
	if (in_half && !result.in_half)
		fprintf(stderr, "    %s\n", result.half_because);
	ag_net_result_free(&bench.ctx, &result);
	end(&bench);
}

/* ms: a thousand rows. */
static void
run_knn(double scale)
{
	int64_t n_rows = (int64_t) (200000 * scale) + 1000, n_train = n_rows / 8, began;
	AgKnnParams params;
	AgKnnResult result;
	AgTrainData data;
	Bench bench;

	begin(&bench, n_rows, 50);
	data = data_of(&bench, AG_PROBLEM_BINARY, n_train, n_rows - n_train);
	memset(&params, 0, sizeof params);
	ag_params_default(ag_knn_specs, ag_knn_n_specs, &params);
	began = ag_clock_ns();
	AG_REQUIRE(ag_knn_train(&bench.ctx, bench.dense, bench.matrix, &data, &params, &result) ==
			   AG_OK);
	tell(&bench, "KNN of 20,000 rows x 50", data.n_valid, (double) (ag_clock_ns() - began) * 1e-9,
		 (double) data.n_valid / 1000.0);
	AG_CHECK(result.on_gpu);
	ag_knn_result_free(&bench.ctx, &result);
	end(&bench);
}

/* ms: an iteration. */
static void
run_linear(const char *name, AgProblem problem, double scale)
{
	int64_t n_rows = (int64_t) (1000000 * scale) + 1000, began;
	AgLinearParams params;
	AgLinearResult result;
	AgTrainData data;
	Bench bench;

	begin(&bench, n_rows, 60);
	data = data_of(&bench, problem, n_rows, 0);
	memset(&params, 0, sizeof params);
	ag_params_default(ag_linear_specs, ag_linear_n_specs, &params);
	params.max_iter = is_simulated ? 2 : 100;
	began = ag_clock_ns();
	AG_REQUIRE(ag_linear_train(&bench.ctx, bench.dense, bench.matrix, &data, &params, &result) ==
			   AG_OK);
	tell(&bench, name, n_rows, (double) (ag_clock_ns() - began) * 1e-9,
		 result.n_iter > 0 ? result.n_iter : 1);
	AG_CHECK(result.on_gpu);
	ag_linear_result_free(&bench.ctx, &result);
	end(&bench);
}

int
main(int argc, char **argv)
{
	double scale = argc > 1 ? atof(argv[1]) : 1.0;

	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table_of_ops));
	is_simulated = sim_machine_reset(2, 227 << 10, 0);
	for (int in_half = 0; in_half < 2; in_half++)
	{
		run_net("NN_TORCH 200K x 60, 4 layers of 512, batches of 512", AG_NET_NN_TORCH, 512, 512,
				in_half, scale);
		run_net("NN_TORCH 200K x 60, 4 layers of 2048, batches of 4096", AG_NET_NN_TORCH, 2048,
				is_simulated ? 512 : 4096, in_half, scale);
		run_net("TABM 200K x 60, 16 members, 4 layers of 512, batches of 256", AG_NET_TABM, 512,
				256, in_half, scale);
	}
	run_knn(scale);
	run_linear("LR 1M x 60, two classes, 100 iterations", AG_PROBLEM_BINARY, scale);
	run_linear("LR 1M x 60, ridge", AG_PROBLEM_REGRESSION, scale);
	return ag_unit_done("cuda bench of rows");
}
