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
	double took, in_single; /* MB of the device, as the fit tells; NaN: untold */
} Fit;

static void
note_need(void *host, AgLogLevel level, const char *text, const char *hint)
{
	Fit *fit = host;
	const char *single = strstr(text, "in single precision it would take ");

	(void) level;
	(void) hint;
	if (sscanf(text, "Takes %lf MB", &fit->took) == 1 && single != NULL)
		sscanf(single, "in single precision it would take %lf MB", &fit->in_single);
}

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
	fit->ctx = (AgContext){.mem = &fit->mem,
						   .deadline_ns = INT64_MAX,
						   .error = &fit->err,
						   .log = note_need,
						   .host = fit};
	fit->took = fit->in_single = (double) NAN;
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
	for (int p = 0; p < 2; p++)
	{
		AgNetParams params = small(AG_NET_TABM);

		params.wave_kind = AG_NET_PIECES;
		check_same("TABM with pieces", problems[p], &params, p == 1);
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
check_failures(bool in_half)
{
	Mixed mixed = mixed_make(3, 120);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS);
	AgNetParams params = small(AG_NET_TABM);
	Fit here, there;

	params.num_epochs = 1;
	fit_run(&here, &mixed, &data, &params, 0);
	params.use_half = in_half;
	AG_REQUIRE(here.status == AG_OK);
	for (long at = -1; at < (is_simulated ? 24 : 0); at++)
	{
		bool by_launch = at % 2 != 0;

		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at * 9 : -1);
		fit_run(&there, &mixed, &data, &params, at < 0 ? 50000 : INT64_C(1) << 40);
		AG_REQUIRE(there.status == AG_OK);
		AG_CHECK(same(&here, &there, &data) || there.result.in_half);
		AG_CHECK_EQ(there.result.in_half, in_half && there.result.on_gpu);
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

/* ---- half precision ---- */

static float
bfloat(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
	memcpy(&x, &bits, sizeof x);
	return x;
}

#define ROOM 60000

/* c = d + a b by one op against the sum of rounded factors in double. */
static void
check_product(int n_rows, int n_columns, int n_inner, int n_lots, bool by_columns, bool has_shift)
{
	AgDeviceNetOp op = {.kind = AG_NET_DO_PRODUCT,
						.n_rows = n_rows,
						.n_columns = n_columns,
						.n_inner = n_inner,
						.n_lots = n_lots,
						.b = 20000,
						.c = 40000,
						.d = has_shift ? 59000 : -1,
						.a_stride = by_columns ? 1 : n_inner,
						.a_inner = by_columns ? n_rows : 1,
						.b_stride = n_columns,
						.c_stride = n_columns,
						.a_lot = n_rows * n_inner,
						.b_lot = n_inner * n_columns,
						.c_lot = n_rows * n_columns};
	uint32_t row = 0;
	AgDeviceNetSpec spec = {.n_floats = ROOM,
							.n_rows = 1,
							.n_train = 1,
							.train_rows = &row,
							.n_batch = 1,
							.n_members = 1,
							.ops = &op,
							.n_ops = 1,
							.has_half = true};
	AgDeviceNetStep step = {.first = 0};
	const AgDeviceOps *ops = table_of_ops.ops;
	float *room = malloc(ROOM * sizeof *room), *out = malloc(ROOM * sizeof *out);
	AgDeviceNet *net;
	AgDevice *device;
	char why[256];
	int n_wrong = 0;

	for (uint64_t i = 0; i < ROOM; i++)
		room[i] = out[i] = (float) (random_normal(77, i) * (i % 7 == 0 ? 1e-30 : 1.0));
	AG_REQUIRE(ops->open(0, INT64_C(1) << 40, &device, why, sizeof why) == AG_DEVICE_OK);
	AG_REQUIRE(ops->net_create(device, &spec, &net) == AG_DEVICE_OK);
	AG_REQUIRE(ops->net_write(device, net, 0, ROOM, room) == AG_DEVICE_OK);
	AG_REQUIRE(ops->net_steps(device, net, &step, 1) == AG_DEVICE_OK);
	AG_REQUIRE(ops->net_read(device, net, 0, ROOM, out) == AG_DEVICE_OK);
	for (int64_t lot = 0; lot < n_lots; lot++)
		for (int64_t i = 0; i < n_rows; i++)
			for (int64_t j = 0; j < n_columns; j++)
			{
				int64_t at = op.c + lot * op.c_lot + i * op.c_stride + j;
				double sum = has_shift ? (double) room[op.d + j] : 0.0, size = fabs(sum);

				for (int64_t k = 0; k < n_inner; k++)
				{
					float a =
						bfloat(room[op.a + lot * op.a_lot + i * op.a_stride + k * op.a_inner]);
					float b = bfloat(room[op.b + lot * op.b_lot + k * op.b_stride + j]);

					sum += (double) a * b;
					size += fabs((double) a * b);
				}
				/* tensor cores may cut off what an addition has beyond single precision */
				n_wrong +=
					!(fabs((double) out[at] - sum) <= (n_inner + 2) * 0x1p-23 * size + 1e-37);
				room[at] = out[at];
			}
	AG_CHECK_EQ(n_wrong, 0);
	AG_CHECK(memcmp(room, out, ROOM * sizeof *room) == 0); /* nothing beside it was written to */
	ops->net_free(device, net);
	ops->close(device);
	free(room);
	free(out);
}

static double
greatest_difference(const Fit *a, const Fit *b, size_t n)
{
	double greatest = 0.0;

	for (size_t i = 0; i < n; i++)
		greatest = fmax(greatest, fabs(a->result.valid_proba[i] - b->result.valid_proba[i]));
	return greatest;
}

/* Near the net of single precision, not it, and the same each time. tolerance: of a probability, or of the numbers' spread. */
static void
check_near(const char *what, AgProblem problem, AgNetParams params, double tolerance)
{
	Mixed mixed = mixed_make(3, 120);
	AgTrainData data = data_of(&mixed, problem);
	Fit single, half, again;
	double difference;

	fit_run(&single, &mixed, &data, &params, 0);
	params.use_half = true;
	fit_run(&half, &mixed, &data, &params, INT64_C(1) << 40);
	if (is_simulated)
		sim_machine_reset(5, 227 << 10, 2);
	fit_run(&again, &mixed, &data, &params, INT64_C(1) << 40);
	AG_REQUIRE(single.status == AG_OK && half.status == AG_OK && again.status == AG_OK);
	if (!AG_CHECK(half.result.on_gpu && half.result.in_half))
		fprintf(stderr, "    %s: %s%s\n", what, half.result.cpu_because, half.result.half_because);
	AG_CHECK(!same(&single, &half, &data));
	AG_CHECK(same(&half, &again, &data));
	difference = greatest_difference(&single, &half,
									 (size_t) data.n_valid * (size_t) ag_train_outputs(&data));
	if (!AG_CHECK(difference <= tolerance))
		fprintf(stderr, "    %s: %g off for problem %d\n", what, difference, problem);
	fit_end(&single);
	fit_end(&half);
	fit_end(&again);
	mixed_free(&mixed);
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
}

/* A GPU without such products: as without the wish, and a reason. */
static void
check_old_gpu(void)
{
	Mixed mixed = mixed_make(3, 120);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_BINARY);
	AgNetParams params = small(AG_NET_NN_TORCH);
	Fit here, there;

	sim_capability(7, 5);
	fit_run(&here, &mixed, &data, &params, 0);
	params.use_half = true;
	fit_run(&there, &mixed, &data, &params, INT64_C(1) << 40);
	AG_REQUIRE(here.status == AG_OK && there.status == AG_OK);
	AG_CHECK(there.result.on_gpu && !there.result.in_half && !there.result.gpu_failed);
	AG_CHECK(strstr(there.result.half_because, "compute capability 8.0") != NULL &&
			 strstr(there.result.half_because, "has 7.5") != NULL);
	AG_CHECK(same(&here, &there, &data));
	fit_end(&here);
	fit_end(&there);
	/* without a GPU the wish changes nothing, and nobody speaks of it */
	fit_run(&there, &mixed, &data, &params, 0);
	AG_CHECK(!there.result.in_half && there.result.half_because[0] == '\0');
	fit_end(&there);
	mixed_free(&mixed);
	sim_machine_reset(2, 227 << 10, 0);
}

/* Half precision takes less, and tells truly what single precision would: at most `share` of it. */
static void
check_need(const char *what, AgNetFamily family, double share)
{
	Mixed mixed = mixed_make(3, 4000);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS);
	AgNetParams params = small(family);
	Fit single, half;

	params.num_epochs = 1;
	params.layers.values[0] = params.layers.values[1] = 256;
	params.batch_size = 90;
	fit_run(&single, &mixed, &data, &params, INT64_C(1) << 40);
	params.use_half = true;
	fit_run(&half, &mixed, &data, &params, INT64_C(1) << 40);
	AG_REQUIRE(single.status == AG_OK && half.status == AG_OK);
	AG_REQUIRE(half.result.in_half && !single.result.in_half);
	AG_CHECK(isnan(single.in_single));
	if (!AG_CHECK(half.took <= share * single.took && fabs(half.in_single - single.took) <= 0.02))
		fprintf(stderr, "    %s: %g MB, %g in single, said to be %g\n", what, half.took,
				single.took, half.in_single);
	fit_end(&single);
	fit_end(&half);
	mixed_free(&mixed);
}

static void
check_half(void)
{
	static const char *const names[] = {"NN_TORCH", "FASTAI", "REALMLP", "TABM"};

	check_product(1, 16, 1, 1, false, false);
	check_product(70, 48, 33, 1, false, true);
	check_product(40, 80, 70, 2, true, false);
	check_product(130, 64, 64, 1, false, true);
	for (int f = 0; f < 4; f++)
	{
		check_near(names[f], AG_PROBLEM_MULTICLASS, small((AgNetFamily) f), 0.01);
		check_near(names[f], AG_PROBLEM_REGRESSION, small((AgNetFamily) f), 0.05);
	}
	check_need("NN_TORCH", AG_NET_NN_TORCH, 0.79);
	check_need("FASTAI", AG_NET_FASTAI, 0.80);
	check_need("REALMLP", AG_NET_REALMLP, 0.83);
	check_need("TABM", AG_NET_TABM, 0.75);
	if (is_simulated)
		check_old_gpu();
}

int
main(void)
{
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table_of_ops));
	AG_REQUIRE(table_of_ops.ops != NULL && table_of_ops.ops->abi == AG_DEVICE_ABI);
	is_simulated = sim_machine_reset(2, 227 << 10, 0);
	check_families();
	check_machines();
	check_failures(false);
	check_failures(true);
	check_half();
	return ag_unit_done("cuda net");
}
