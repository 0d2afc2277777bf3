/*
 * linear.c - linear models whose rows a device sums up against those of the CPU: the same bytes. Links with the kernels, on the
 * simulator or on a real GPU.
 */
#include "cuda_sim/lib/dense_there.h"

#include "engine/model/linear.h"

typedef struct Fit
{
	DenseFit own;
	AgLinearResult result;
} Fit;

static void
fit_run(Fit *fit, const Mixed *mixed, const AgTrainData *data, const AgLinearParams *params,
		int64_t gpu_bytes)
{
	DenseFit *own = &fit->own;

	dense_fit_init(own, mixed, data, &params->dense, gpu_bytes);
	own->status = ag_linear_train(&own->ctx, own->dense, own->matrix, data, params, &fit->result);
	if (own->status == AG_OK)
		AG_REQUIRE(ag_linear_write(&own->ctx, fit->result.model, &own->bytes) == AG_OK);
}

static void
fit_end(Fit *fit)
{
	ag_linear_result_free(&fit->own.ctx, &fit->result);
	dense_fit_end(&fit->own);
}

static bool
same(const Fit *a, const Fit *b, const AgTrainData *data)
{
	size_t n = (size_t) data->n_valid * (size_t) ag_train_outputs(data);

	return same_image(&a->own, &b->own) &&
		   memcmp(a->result.valid_proba, b->result.valid_proba, n * sizeof(double)) == 0 &&
		   memcmp(&a->result.objective, &b->result.objective, sizeof(double)) == 0 &&
		   a->result.n_iter == b->result.n_iter && a->result.converged == b->result.converged;
}

static AgLinearParams
defaults(int max_iter)
{
	AgLinearParams params;

	memset(&params, 0, sizeof params);
	ag_params_default(ag_linear_specs, ag_linear_n_specs, &params);
	params.max_iter = max_iter;
	return params;
}

static const double levels[] = {0.1, 0.5, 0.9};

static AgTrainData
data_of(Mixed *mixed, AgProblem problem, int64_t n_train)
{
	AgTrainData data = mixed_data(mixed, problem, n_train);

	if (problem == AG_PROBLEM_QUANTILE)
	{
		data.quantiles = levels;
		data.n_quantiles = 3;
	}
	if (problem == AG_PROBLEM_BINARY)
		make_binary(mixed);
	return data;
}

/* Gives how many kernels it took. */
static long
check_same(const char *what, const Mixed *mixed, const AgTrainData *data,
		   const AgLinearParams *params, int64_t gpu_bytes)
{
	Fit here, there;
	long n_launches = sim_n_launches();

	fit_run(&here, mixed, data, params, 0);
	fit_run(&there, mixed, data, params, gpu_bytes);
	n_launches = sim_n_launches() - n_launches;
	AG_REQUIRE(here.own.status == AG_OK && there.own.status == AG_OK);
	if (!AG_CHECK(there.result.on_gpu && !there.result.gpu_failed && !here.result.on_gpu))
		fprintf(stderr, "    %s: %s %s\n", what, there.result.cpu_because,
				is_simulated && sim_fault() != NULL ? sim_fault() : "");
	if (!AG_CHECK(same(&here, &there, data)))
		fprintf(stderr, "    %s: another model for problem %d: %.17g against %.17g\n", what,
				data->problem, here.result.objective, there.result.objective);
	fit_end(&here);
	fit_end(&there);
	return n_launches;
}

/* Every problem with every penalty: by products of columns, and pass by pass; parts of several blocks, the last of few rows. */
static void
check_problems(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS, AG_PROBLEM_QUANTILE};
	static const AgCuts by_rows = {.n = 2, .values = {2, -1}};

	for (int p = 0; p < 4; p++)
	{
		Mixed mixed = mixed_make(3, 330);
		AgTrainData data = data_of(&mixed, problems[p], 301);
		AgLinearParams params = defaults(4);

		check_same("ridge", &mixed, &data, &params, MUCH);
		data.weight = mixed.weight;
		check_same("ridge with weights", &mixed, &data, &params, MUCH);
		params.penalty = AG_PENALTY_ELASTIC_NET;
		check_same("elastic net", &mixed, &data, &params, MUCH);
		data.cuts = &by_rows;
		check_same("by rows", &mixed, &data, &params, MUCH);
		mixed_free(&mixed);
	}
}

/* More scores than a tile has, classes without rows, one class, numbers only, few rows. */
static void
check_shapes(void)
{
	Mixed mixed = mixed_make(5, 150);
	AgTrainData data = data_of(&mixed, AG_PROBLEM_MULTICLASS, 120);
	AgLinearParams params = defaults(3);

	for (int64_t i = 0; i < mixed.n_rows; i++)
		mixed.class_of[i] = (int32_t) (i * 7 % 41);
	data.n_classes = 45;
	check_same("41 of 45 classes", &mixed, &data, &params, MUCH);
	params.dense.max_levels = 1;
	params.dense.min_level_count = 1000;
	check_same("few columns", &mixed, &data, &params, MUCH);
	data.n_train = 1;
	check_same("one row", &mixed, &data, &params, MUCH);
	mixed_free(&mixed);
}

/* About as little of the device's memory as does. */
static int64_t
least_bytes(const Mixed *mixed, const AgTrainData *data, const AgLinearParams *params)
{
	int64_t bytes = 40000;
	bool does = false;

	while (!does)
	{
		Fit fit;

		bytes += 4000;
		fit_run(&fit, mixed, data, params, bytes);
		does = fit.result.on_gpu;
		fit_end(&fit);
	}
	return bytes;
}

/* Other orders of lanes, other numbers of blocks; so little memory that rows come in slices. */
static void
check_machines(void)
{
	Mixed mixed = mixed_make(7, 700);
	AgTrainData data;
	AgLinearParams params = defaults(2);
	int64_t least = 0;
	long n_launches;

	for (int p = 0; p < 2; p++)
	{
		data = data_of(&mixed, p == 0 ? AG_PROBLEM_MULTICLASS : AG_PROBLEM_BINARY, 650);
		n_launches = check_same("much memory", &mixed, &data, &params, MUCH);
		least = least_bytes(&mixed, &data, &params);
		AG_CHECK(check_same("little memory", &mixed, &data, &params, least) > n_launches ||
				 !is_simulated);
	}
	for (int order = 1; order <= 2 && is_simulated; order++)
	{
		sim_machine_reset(order == 1 ? 1 : 5, 227 << 10, order);
		check_same("another machine", &mixed, &data, &params, least);
	}
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
	mixed_free(&mixed);
}

/* Whatever fails, and whenever: the CPU comes to the same model, and nothing is left there. */
static void
check_failures(AgProblem problem, long n_tries)
{
	Mixed mixed = mixed_make(9, 200);
	AgTrainData data = data_of(&mixed, problem, 150);
	AgLinearParams params = defaults(2);
	bool was_done = false, was_lost = false;
	Fit here, there;

	fit_run(&here, &mixed, &data, &params, 0);
	AG_REQUIRE(here.own.status == AG_OK);
	for (long at = -1; at < (is_simulated ? n_tries : 0); at++)
	{
		bool by_launch = at % 2 != 0;

		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at / 2 : -1);
		fit_run(&there, &mixed, &data, &params, at < 0 ? 10000 : MUCH);
		AG_REQUIRE(there.own.status == AG_OK);
		AG_CHECK(same(&here, &there, &data));
		AG_CHECK(there.result.on_gpu == (there.result.cpu_because[0] == '\0'));
		AG_CHECK(there.result.gpu_failed == !there.result.on_gpu);
		AG_CHECK_EQ(there.own.gpu.is_lost, by_launch && at >= 0 && !there.result.on_gpu);
		AG_CHECK(at > 18 || !there.result.on_gpu);
		was_done = was_done || there.result.on_gpu;
		was_lost = was_lost || there.own.gpu.is_lost;
		fit_end(&there);
		if (is_simulated)
			sim_machine_reset(2, 227 << 10, 0);
	}
	AG_CHECK(!is_simulated || (was_done && was_lost));
	fit_end(&here);
	mixed_free(&mixed);
}

/* The flag, the deadline, and every allocation of the host in turn. */
static void
check_ends(AgProblem problem)
{
	Mixed mixed = mixed_make(11, 200);
	AgTrainData data = data_of(&mixed, problem, 150);
	AgLinearParams params = defaults(2);
	_Atomic bool cancel = true;
	bool is_done = false;
	Fit fit;

	dense_fit_init(&fit.own, &mixed, &data, &params.dense, MUCH);
	fit.own.ctx.cancel = &cancel;
	AG_CHECK_EQ(
		ag_linear_train(&fit.own.ctx, fit.own.dense, fit.own.matrix, &data, &params, &fit.result),
		AG_ERR_CANCELLED);
	fit_end(&fit);
	dense_fit_init(&fit.own, &mixed, &data, &params.dense, MUCH);
	fit.own.ctx.deadline_ns = 0;
	AG_CHECK_EQ(
		ag_linear_train(&fit.own.ctx, fit.own.dense, fit.own.matrix, &data, &params, &fit.result),
		AG_OK);
	AG_CHECK(fit.result.stopped_by_time && fit.result.on_gpu);
	fit_end(&fit);
	for (int64_t room = 0; !is_done; room += 1500)
	{
		dense_fit_init(&fit.own, &mixed, &data, &params.dense, MUCH);
		fit.own.mem.limit_bytes = atomic_load(&fit.own.mem.used_bytes) + room;
		fit.own.status = ag_linear_train(&fit.own.ctx, fit.own.dense, fit.own.matrix, &data,
										 &params, &fit.result);
		AG_CHECK(fit.own.status == AG_OK || fit.own.status == AG_ERR_MEMORY);
		is_done = fit.own.status == AG_OK && fit.result.on_gpu;
		AG_CHECK(fit.own.status != AG_OK || is_done ||
				 strstr(fit.result.cpu_because, "memory limit") != NULL);
		fit_end(&fit);
	}
	mixed_free(&mixed);
}

int
main(void)
{
	dense_begin();
	check_problems();
	check_shapes();
	check_machines();
	check_failures(AG_PROBLEM_REGRESSION, 60);
	check_failures(AG_PROBLEM_BINARY, 80);
	check_ends(AG_PROBLEM_REGRESSION);
	check_ends(AG_PROBLEM_MULTICLASS);
	return ag_unit_done("cuda linear");
}
