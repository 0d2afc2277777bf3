/* net_settle.c - nets whose steps were all of one length settle where the end is known. */
#include "unit/net_cases.h"

#define N_ROWS 3000
#define N_TRAIN 2000
#define N_FEATURES 2
#define FIRST 8 /* epochs of the shortest training, and */
#define LAST 12 /* of the longest */

static double
loss_of(const Mixed *mixed, const AgNet *net)
{
	double features[N_FEATURES], out[3], sum = 0.0;

	for (uint32_t row = N_TRAIN; row < N_ROWS; row++)
	{
		for (int f = 0; f < N_FEATURES; f++)
			features[f] = mixed->columns.values[f][row];
		run_one(net, features, out);
		sum -= ag_ln(fmax(out[mixed->class_of[row]], 1e-15));
	}
	return sum / (N_ROWS - N_TRAIN);
}

static AgNetParams
restless(int n_epochs)
{
	AgNetParams params = small(AG_NET_NN_TORCH, n_epochs);

	params.learning_rate = 0.05;
	params.use_batchnorm = true;
	params.patience = 0;
	return params;
}

/* How epochs FIRST to LAST of a training with steps of one length end, in the mean: its validation rows say so. */
static double
loss_of_long_steps(const Mixed *mixed, const AgTrainData *data)
{
	AgNetParams params = restless(LAST);
	Fitted fitted = train(&mixed->columns, N_FEATURES, N_ROWS, data, &params);
	double sum = 0.0;

	AG_REQUIRE(fitted.status == AG_OK && fitted.result.history.n == LAST);
	for (int epoch = FIRST; epoch <= LAST; epoch++)
		sum += fitted.result.history.valid[epoch - 1];
	drop(&fitted);
	return sum / (LAST - FIRST + 1);
}

static void
test_unwatched(const Mixed *mixed, AgTrainData data, double long_steps)
{
	double sum = 0.0;

	data.n_valid = 0;
	for (int n = FIRST; n <= LAST; n++)
	{
		AgNetParams params = restless(n);
		Fitted fitted = train(&mixed->columns, N_FEATURES, N_ROWS, &data, &params);

		AG_REQUIRE(fitted.status == AG_OK && fitted.result.best_epoch == n);
		sum += loss_of(mixed, fitted.result.model);
		drop(&fitted);
	}
	AG_CHECK(sum / (LAST - FIRST + 1) < 0.9 * long_steps);
}

/* The time ends them, as a plan says that it did: after so many epochs, which is known from step 32 on. */
static void
test_cut(const Mixed *mixed, AgTrainData data, double long_steps)
{
	double sum = 0.0;

	for (int n = FIRST; n <= LAST; n++)
	{
		AgNetParams params = restless(1000);
		AgCuts cuts = {.n = 0};
		Fitted fitted;

		ag_cuts_add(&cuts, 32, n * (N_TRAIN / ag_net_batch_size(&params, N_TRAIN)));
		data.cuts = &cuts;
		fitted = train(&mixed->columns, N_FEATURES, N_ROWS, &data, &params);
		AG_REQUIRE(fitted.status == AG_OK && fitted.result.stopped_by_time &&
				   fitted.result.history.n > n - 1);
		sum += fitted.result.history.valid[n - 1];
		drop(&fitted);
	}
	AG_CHECK(sum / (LAST - FIRST + 1) < 0.9 * long_steps);
}

int
main(void)
{
	Mixed mixed;
	AgTrainData data;
	double long_steps;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	mixed = mixed_make(51, N_ROWS);
	/* rings: classes that lie apart, so that noise is all there is */
	for (int64_t i = 0; i < N_ROWS; i++)
	{
		double a = mixed.cells[0][i], b = (mixed.cells[1][i] - 1000.0) / 5.0;
		double square = a * a + b * b;

		mixed.class_of[i] = square > 2.5 ? 2 : square > 0.8;
	}
	data = data_of(&mixed, AG_PROBLEM_MULTICLASS, N_TRAIN);
	data.stop_metric = AG_METRIC_LOG_LOSS;
	long_steps = loss_of_long_steps(&mixed, &data);
	test_unwatched(&mixed, data, long_steps);
	test_cut(&mixed, data, long_steps);
	mixed_free(&mixed);
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("net_settle");
}
