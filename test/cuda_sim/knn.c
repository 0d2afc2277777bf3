/*
 * knn.c - neighbours found on the device against those found on the CPU: the same bytes. Links with the kernels, on the
 * simulator or on a real GPU.
 */
#include "cuda_sim/lib/dense_there.h"

#include "engine/model/knn.h"

typedef struct Fit
{
	DenseFit own;
	AgKnnResult result;
} Fit;

static void
fit_run(Fit *fit, const Mixed *mixed, const AgTrainData *data, const AgKnnParams *params,
		int64_t gpu_bytes)
{
	DenseFit *own = &fit->own;

	dense_fit_init(own, mixed, data, &params->dense, gpu_bytes);
	own->status = ag_knn_train(&own->ctx, own->dense, own->matrix, data, params, &fit->result);
	if (own->status == AG_OK)
		AG_REQUIRE(ag_knn_write(&own->ctx, fit->result.model, &own->bytes) == AG_OK);
}

static void
fit_end(Fit *fit)
{
	ag_knn_result_free(&fit->own.ctx, &fit->result);
	dense_fit_end(&fit->own);
}

static bool
same(const Fit *a, const Fit *b, const AgTrainData *data)
{
	size_t n = (size_t) data->n_valid * (size_t) ag_train_outputs(data);

	return same_image(&a->own, &b->own) &&
		   memcmp(a->result.valid_proba, b->result.valid_proba, n * sizeof(double)) == 0;
}

static AgKnnParams
defaults(void)
{
	AgKnnParams params;

	memset(&params, 0, sizeof params);
	ag_params_default(ag_knn_specs, ag_knn_n_specs, &params);
	return params;
}

/* Gives how many kernels it took. */
static long
check_same(const char *what, Mixed *mixed, const AgTrainData *data, const AgKnnParams *params,
		   int64_t gpu_bytes)
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
		fprintf(stderr, "    %s: other predictions\n", what);
	fit_end(&here);
	fit_end(&there);
	return n_launches;
}

/* More neighbours than a tile has rows, than there are rows, one; samples; rows that leave themselves out. */
static void
check_parameters(void)
{
	Mixed mixed = mixed_make(3, 300);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 230);
	AgKnnParams params = defaults();

	check_same("defaults", &mixed, &data, &params, MUCH);
	params.weights = AG_KNN_DISTANCE;
	data.weight = mixed.weight;
	check_same("by distance, with weights", &mixed, &data, &params, MUCH);
	params.n_neighbors = 1;
	check_same("one neighbour", &mixed, &data, &params, MUCH);
	params.n_neighbors = 100;
	params.category_distance = 0.0;
	check_same("a hundred neighbours", &mixed, &data, &params, MUCH);
	params.n_neighbors = 1000;
	params.category_distance = 1e6;
	check_same("all rows", &mixed, &data, &params, MUCH);
	data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 230);
	data.valid_rows = data.train_rows;
	data.n_valid = data.n_train;
	check_same("all rows but oneself", &mixed, &data, &params, MUCH);
	params = defaults();
	params.max_rows = 90;
	check_same("a sample", &mixed, &data, &params, MUCH);
	mixed_free(&mixed);
}

/* Rows that are alike, so that distances are: the first in the table are the nearer. */
static void
check_ties(void)
{
	Mixed mixed = mixed_make(5, 400);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 330);
	AgKnnParams params = defaults();

	for (int f = 0; f < MIXED_FEATURES; f++)
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.cells[f][i] = (double) ((i * (f + 3)) % 3);
	params.n_neighbors = 7;
	check_same("ties", &mixed, &data, &params, MUCH);
	params.weights = AG_KNN_DISTANCE;
	check_same("ties by distance", &mixed, &data, &params, MUCH);
	for (int f = 0; f < MIXED_FEATURES; f++)
		for (int64_t i = 0; i < mixed.n_rows; i++)
			mixed.cells[f][i] = 1.0;
	check_same("rows all alike", &mixed, &data, &params, MUCH);
	mixed_free(&mixed);
}

/* Other orders of lanes, other numbers of blocks; so little memory that queries come in several lots. */
static void
check_machines(void)
{
	Mixed mixed = mixed_make(7, 300);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 200);
	AgKnnParams params = defaults();

	AG_CHECK(check_same("little memory", &mixed, &data, &params, 60000) > 2 || !is_simulated);
	for (int order = 1; order <= 2 && is_simulated; order++)
	{
		sim_machine_reset(order == 1 ? 1 : 5, 227 << 10, order);
		check_same("another machine", &mixed, &data, &params, 60000);
	}
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
	mixed_free(&mixed);
}

/* Whatever fails, and whenever: the CPU finds the same neighbours, and nothing is left there. */
static void
check_failures(void)
{
	Mixed mixed = mixed_make(9, 200);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 120);
	AgKnnParams params = defaults();
	Fit here, there;

	fit_run(&here, &mixed, &data, &params, 0);
	AG_REQUIRE(here.own.status == AG_OK);
	for (long at = -1; at < (is_simulated ? 22 : 0); at++)
	{
		bool by_launch = at % 2 != 0;

		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at / 2 : -1);
		fit_run(&there, &mixed, &data, &params, at < 0 ? 10000 : MUCH);
		AG_REQUIRE(there.own.status == AG_OK);
		AG_CHECK(same(&here, &there, &data));
		AG_CHECK(there.result.on_gpu == (there.result.cpu_because[0] == '\0'));
		AG_CHECK(there.result.gpu_failed == !there.result.on_gpu);
		/* eight allocations, two launches */
		AG_CHECK_EQ(there.result.on_gpu, at >= 0 && at / 2 >= (by_launch ? 2 : 8));
		AG_CHECK_EQ(there.own.gpu.is_lost, by_launch && at >= 0 && !there.result.on_gpu);
		fit_end(&there);
		if (is_simulated)
			sim_machine_reset(2, 227 << 10, 0);
	}
	fit_end(&here);
	mixed_free(&mixed);
}

/* The flag, the deadline, and every allocation of the host in turn. */
static void
check_ends(void)
{
	Mixed mixed = mixed_make(11, 200);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 120);
	AgKnnParams params = defaults();
	_Atomic bool cancel = true;
	bool is_done = false;
	Fit fit;

	for (int way = 0; way < 2; way++)
	{
		dense_fit_init(&fit.own, &mixed, &data, &params.dense, MUCH);
		if (way == 0)
			fit.own.ctx.cancel = &cancel;
		else
			fit.own.ctx.deadline_ns = 0;
		AG_CHECK_EQ(
			ag_knn_train(&fit.own.ctx, fit.own.dense, fit.own.matrix, &data, &params, &fit.result),
			way == 0 ? AG_ERR_CANCELLED : AG_ERR_TIME);
		fit_end(&fit);
	}
	for (int64_t room = 0; !is_done;
		 room += 200) /* at first too little for any, then for the CPU only */
	{
		dense_fit_init(&fit.own, &mixed, &data, &params.dense, MUCH);
		fit.own.mem.limit_bytes = atomic_load(&fit.own.mem.used_bytes) + room;
		fit.own.status =
			ag_knn_train(&fit.own.ctx, fit.own.dense, fit.own.matrix, &data, &params, &fit.result);
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
	check_parameters();
	check_ties();
	check_machines();
	check_failures();
	check_ends();
	return ag_unit_done("cuda knn");
}
