/*
 * net.c - nets on the device against nets on the CPU: the same bytes. Links with the kernels, on the simulator or on a real
 * GPU.
 */
#include "unit/unit.h"

#include "engine/model/net.h"
#include "kernels/ag_cuda.h"
#include "unit/dense_cases.h"

#include "cuda_sim/lib/machine.h"

static AgCudaTable table_of_ops;
static bool is_simulated;

/* What a fit needs, and what it came to. */
typedef struct Fit
{
	AgMem mem;
	AgError err;
	AgContext ctx;
	AgGpu gpu;
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgNetResult result;
	AgWriter bytes;
	AgStatus status;
} Fit;

/* gpu_bytes: that the fit may have of the device; 0: on the CPU. */
static void
fit_run(Fit *fit, const Mixed *mixed, const AgTrainData *data, const AgNetParams *params,
		int64_t gpu_bytes)
{
	AgDenseSource source = source_of(&mixed->columns, MIXED_FEATURES, mixed->n_rows);
	char why[256];

	memset(fit, 0, sizeof *fit);
	ag_mem_init(&fit->mem, INT64_MAX);
	ag_error_init(&fit->err);
	fit->ctx = (AgContext){.mem = &fit->mem, .deadline_ns = INT64_MAX, .error = &fit->err};
	if (gpu_bytes > 0)
	{
		fit->gpu.ops = table_of_ops.ops;
		AG_REQUIRE(fit->gpu.ops->open(0, gpu_bytes, &fit->gpu.device, why, sizeof why) ==
				   AG_DEVICE_OK);
		fit->ctx.gpu = &fit->gpu;
	}
	AG_REQUIRE(ag_dense_fit(&fit->ctx, &source, data->train_rows, data->n_train, &params->dense,
							&fit->dense) == AG_OK);
	AG_REQUIRE(ag_dense_matrix(&fit->ctx, fit->dense, &source, &fit->matrix) == AG_OK);
	fit->status = ag_net_train(&fit->ctx, fit->dense, fit->matrix, data, params, &fit->result);
	ag_writer_init(&fit->bytes, &fit->mem);
	if (fit->status == AG_OK)
		AG_REQUIRE(ag_net_write(&fit->ctx, fit->result.model, &fit->bytes) == AG_OK);
}

static void
fit_end(Fit *fit)
{
	AgDeviceMemory memory;

	ag_writer_free(&fit->bytes);
	ag_net_result_free(&fit->ctx, &fit->result);
	ag_dense_matrix_free(fit->matrix);
	ag_dense_free(fit->dense);
	if (fit->gpu.device != NULL)
	{
		fit->gpu.ops->memory(fit->gpu.device, &memory);
		AG_CHECK_EQ(memory.used_bytes, 0);
		fit->gpu.ops->close(fit->gpu.device);
		if (is_simulated)
			AG_CHECK_EQ(sim_n_allocated(), 0);
	}
	AG_CHECK_EQ(atomic_load(&fit->mem.used_bytes), 0);
}

static bool
same(const Fit *a, const Fit *b, const AgTrainData *data)
{
	size_t n = (size_t) data->n_valid * (size_t) ag_train_outputs(data);

	return a->bytes.size == b->bytes.size &&
		   memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0 &&
		   memcmp(a->result.valid_proba, b->result.valid_proba, n * sizeof(double)) == 0 &&
		   a->result.best_epoch == b->result.best_epoch &&
		   a->result.epochs_run == b->result.epochs_run;
}

static AgNetParams
small(AgNetFamily family)
{
	AgNetParams params;

	ag_net_params_default(family, &params);
	params.num_epochs = 2;
	params.layers.n = 2;
	params.layers.values[0] = 24;
	params.layers.values[1] = 17;
	params.batch_size = 26;
	params.embed_min_levels = 3;
	params.seed = 5;
	if (family == AG_NET_TABM)
		params.n_members = 3;
	return params;
}

static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
									 AG_PROBLEM_MULTICLASS, AG_PROBLEM_QUANTILE};
static const double levels[] = {0.1, 0.5, 0.9};

static AgTrainData
data_of(Mixed *mixed, AgProblem problem)
{
	AgTrainData data = mixed_data(mixed, problem, 90);

	data.stop_metric = ag_metric_default(problem);
	if (problem == AG_PROBLEM_QUANTILE)
	{
		data.quantiles = levels;
		data.n_quantiles = 3;
	}
	for (int64_t i = 0; problem == AG_PROBLEM_BINARY && i < mixed->n_rows; i++)
		mixed->class_of[i] = mixed->class_of[i] > 0;
	return data;
}

static void
check_same(const char *what, AgProblem problem, const AgNetParams *params, bool has_weights)
{
	Mixed mixed = mixed_make(3, 120);
	AgTrainData data = data_of(&mixed, problem);
	Fit here, there;

	if (has_weights)
		data.weight = mixed.weight;
	fit_run(&here, &mixed, &data, params, 0);
	fit_run(&there, &mixed, &data, params, INT64_C(1) << 40);
	AG_REQUIRE(here.status == AG_OK && there.status == AG_OK);
	if (!AG_CHECK(there.result.on_gpu && !there.result.gpu_failed && !here.result.on_gpu))
		fprintf(stderr, "    %s: %s %s\n", what, there.result.cpu_because,
				is_simulated && sim_fault() != NULL ? sim_fault() : "");
	if (!AG_CHECK(same(&here, &there, &data)))
		fprintf(stderr, "    %s: another net for problem %d: %g against %g\n", what, problem,
				there.result.best_value, here.result.best_value);
	fit_end(&here);
	fit_end(&there);
	mixed_free(&mixed);
}

/* Every family, problem, and parameter that has code of its own on the device. */
static void
check_families(void)
{
	static const char *const names[] = {"NN_TORCH", "FASTAI", "REALMLP", "TABM"};

	for (int f = 0; f < 4; f++)
		for (int p = 0; p < 4; p++)
		{
			AgNetParams params = small((AgNetFamily) f);

			check_same(names[f], problems[p], &params, p % 2 == 0);
		}
	for (int a = 0; a < 5; a++)
	{
		AgNetParams params = small(AG_NET_NN_TORCH);

		params.activation = a;
		params.use_batchnorm = a % 2 == 0;
		params.dropout_prob = a == 4 ? 0.0 : 0.3;
		params.embed_min_levels = a == 3 ? 1000 : 3;
		check_same("NN_TORCH with activations", AG_PROBLEM_MULTICLASS, &params, false);
	}
}

/* Other orders of lanes and blocks, other numbers of these. */
static void
check_machines(void)
{
	AgNetParams params = small(AG_NET_FASTAI);

	for (int order = 1; order <= 2 && is_simulated; order++)
	{
		sim_machine_reset(order == 1 ? 1 : 5, 227 << 10, order);
		check_same("FASTAI on another machine", AG_PROBLEM_MULTICLASS, &params, true);
		params = small(AG_NET_TABM);
	}
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
}

/* Whatever fails, and whenever: the CPU comes to the same net, and nothing is left there. */
static void
check_failures(void)
{
	Mixed mixed = mixed_make(3, 120);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS);
	AgNetParams params = small(AG_NET_TABM);
	Fit here, there;

	params.num_epochs = 1;
	fit_run(&here, &mixed, &data, &params, 0);
	AG_REQUIRE(here.status == AG_OK);
	for (long at = -1; at < (is_simulated ? 24 : 0); at++)
	{
		bool by_launch = at % 2 != 0;

		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at * 9 : -1);
		fit_run(&there, &mixed, &data, &params, at < 0 ? 50000 : INT64_C(1) << 40);
		AG_REQUIRE(there.status == AG_OK);
		AG_CHECK(same(&here, &there, &data));
		AG_CHECK(there.result.on_gpu == (there.result.cpu_because[0] == '\0'));
		AG_CHECK(there.result.gpu_failed == !there.result.on_gpu);
		AG_CHECK(at > 11 || !there.result.on_gpu);
		AG_CHECK_EQ(there.gpu.is_lost, by_launch && at >= 0 && !there.result.on_gpu);
		fit_end(&there);
		if (is_simulated)
			sim_machine_reset(2, 227 << 10, 0);
	}
	fit_end(&here);
	mixed_free(&mixed);
}

int
main(void)
{
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table_of_ops));
	AG_REQUIRE(table_of_ops.ops != NULL && table_of_ops.ops->abi == AG_DEVICE_ABI);
	is_simulated = sim_machine_reset(2, 227 << 10, 0);
	check_families();
	check_machines();
	check_failures();
	return ag_unit_done("cuda net");
}
