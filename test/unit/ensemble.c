/* ensemble.c - greedy selection: against a plain re-telling of it, and its rules for ties, prefixes, time and bad input. */
#include "unit/unit.h"

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/ensemble.h"

#define N_ROWS 500
#define N_MODELS 6

static AgMem mem;
static AgError err;
static AgContext ctx;

static double target[N_ROWS];
static int32_t class_of[N_ROWS];
static double predictions[N_MODELS][N_ROWS * 3];
static const double *all[N_MODELS];
static double weights[N_MODELS], value;

static double
noise(int model, int row)
{
	return ag_random_unit((uint64_t) model + 100, (uint64_t) row) - 0.5;
}

static void
make_regression(void)
{
	for (int i = 0; i < N_ROWS; i++)
	{
		target[i] = 4.0 * ag_random_unit(1, (uint64_t) i);
		for (int j = 0; j < N_MODELS; j++)
			predictions[j][i] = target[i] + (1.0 + 0.2 * j) * noise(j, i) + 0.02 * j;
	}
}

static void
make_binary(void)
{
	for (int i = 0; i < N_ROWS; i++)
	{
		class_of[i] = ag_random_unit(2, (uint64_t) i) < 0.3;
		for (int j = 0; j < N_MODELS; j++)
		{
			double p = 0.5 + 0.2 * (2 * class_of[i] - 1) + 0.55 * noise(j, i);

			predictions[j][2 * i] = 1.0 - p;
			predictions[j][2 * i + 1] = p;
		}
	}
}

static AgStatus
choose(AgMetric metric, AgProblem problem, int n_models, int n_steps)
{
	AgTruth truth = {
		.n_classes = problem == AG_PROBLEM_BINARY ? 2 : 0, .class_of = class_of, .target = target};

	return ag_ensemble_select(&ctx, metric, &truth, N_ROWS, n_models, all, n_steps, weights,
							  &value);
}

static double
rmse_of(const int *counts)
{
	static double mean[N_ROWS];
	double got;
	int n = 0;

	memset(mean, 0, sizeof mean);
	for (int j = 0; j < N_MODELS; j++)
	{
		n += counts[j];
		for (int i = 0; i < N_ROWS; i++)
			mean[i] += counts[j] * predictions[j][i];
	}
	for (int i = 0; i < N_ROWS; i++)
		mean[i] /= n;
	AG_CHECK_EQ(ag_metric_regression(&ctx, AG_METRIC_RMSE, N_ROWS, target, mean, NULL, &got),
				AG_OK);
	return got;
}

/* The same selection told by counts, for a metric whose steps have no ties. */
static void
as_told_plainly(void)
{
	int counts[N_MODELS] = {0}, best_counts[N_MODELS] = {0};
	double best_error = INFINITY, sum = 0.0;
	int n_best = 0;

	make_regression();
	for (int step = 0; step < 25; step++)
	{
		double least = INFINITY;
		int best = 0;

		for (int j = 0; j < N_MODELS; j++)
		{
			double error;

			counts[j]++;
			error = nearbyint(rmse_of(counts) * 1e6) / 1e6;
			counts[j]--;
			if (error < least || (error == least && counts[j] > 0 && counts[best] == 0))
			{
				least = error;
				best = j;
			}
		}
		counts[best]++;
		if (least < best_error)
		{
			best_error = least;
			memcpy(best_counts, counts, sizeof counts);
			n_best = step + 1;
		}
	}
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	AG_CHECK(n_best > 3);
	for (int j = 0; j < N_MODELS; j++)
	{
		AG_CHECK(weights[j] == (double) best_counts[j] / n_best);
		sum += weights[j];
	}
	AG_CHECK_NEAR(sum, 1.0, 1e-15);
	AG_CHECK_NEAR(value, rmse_of(best_counts), 1e-12);
}

/* It may only get better than its best member, whatever the metric. */
static void
beats_its_members(void)
{
	make_binary();
	for (int m = AG_METRIC_ACCURACY; m <= AG_METRIC_AVERAGE_PRECISION; m++)
	{
		AgMetric metric = (AgMetric) m;
		double sum = 0.0;

		AG_CHECK_EQ(choose(metric, AG_PROBLEM_BINARY, N_MODELS, AG_ENSEMBLE_STEPS), AG_OK);
		for (int j = 0; j < N_MODELS; j++)
		{
			double alone;

			sum += weights[j];
			AG_CHECK_EQ(ag_metric_classes(&ctx, metric, N_ROWS, 2, class_of, predictions[j], 0.5,
										  NULL, &alone),
						AG_OK);
			AG_CHECK(ag_metric_score(metric, value) >= ag_metric_score(metric, alone) - 1e-6);
		}
		AG_CHECK_NEAR(sum, 1.0, 1e-15);
	}
}

static void
ties_and_prefixes(void)
{
	make_regression();
	/* one model: all the weight, its own value */
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, 1, 25), AG_OK);
	AG_CHECK(weights[0] == 1.0);
	AG_CHECK_NEAR(value, rmse_of((int[N_MODELS]){1}), 1e-14);
	/* copies of one model: the first of them, alone */
	memcpy(predictions[1], predictions[0], sizeof predictions[0]);
	memcpy(predictions[2], predictions[0], sizeof predictions[0]);
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, 3, 25), AG_OK);
	AG_CHECK(weights[0] == 1.0 && weights[1] == 0.0 && weights[2] == 0.0);
	/* a perfect model at the end: nothing is mixed into it */
	memcpy(predictions[2], target, sizeof target);
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, 3, 25), AG_OK);
	AG_CHECK(weights[2] == 1.0 && value == 0.0);
	/* two models whose errors are opposite: half and half */
	for (int i = 0; i < N_ROWS; i++)
	{
		predictions[0][i] = target[i] + 0.5;
		predictions[1][i] = target[i] - 0.5;
		predictions[2][i] = target[i] + 5.0;
	}
	AG_CHECK_EQ(choose(AG_METRIC_MAE, AG_PROBLEM_REGRESSION, 3, 25), AG_OK);
	AG_CHECK(weights[0] == 0.5 && weights[1] == 0.5 && weights[2] == 0.0);
	AG_CHECK_NEAR(value, 0.0, 1e-15);
	/* a gain below the sixth decimal is no gain */
	for (int i = 0; i < N_ROWS; i++)
		predictions[1][i] = predictions[0][i] - 1e-8;
	AG_CHECK_EQ(choose(AG_METRIC_MAE, AG_PROBLEM_REGRESSION, 3, 25), AG_OK);
	AG_CHECK(weights[0] + weights[1] == 1.0 && (weights[0] == 1.0 || weights[1] == 1.0));
}

static void
bad_input(void)
{
	make_regression();
	predictions[0][17] = NAN;
	predictions[1][3] = INFINITY;
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	AG_CHECK(weights[0] == 0.0 && weights[1] == 0.0 && isfinite(value));
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, 2, 25), AG_ERR_DATA);
	AG_CHECK(strstr(err.message, "finite") != NULL);
	ag_error_init(&err);
	/* the metric is undefined: the first usable candidate */
	for (int i = 0; i < N_ROWS; i++)
		target[i] = 1.0;
	AG_CHECK_EQ(choose(AG_METRIC_PEARSONR, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	AG_CHECK(weights[2] == 1.0 && isnan(value));
}

static void
time_and_threads(void)
{
	double alone[N_MODELS], alone_value;
	_Atomic bool cancel = true;
	AgPool *pool;

	make_regression();
	ctx.deadline_ns = 0;
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	AG_CHECK(weights[0] == 1.0 && isfinite(value));
	ctx.deadline_ns = INT64_MAX;
	ctx.cancel = &cancel;
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_ERR_CANCELLED);
	ag_error_init(&err);
	ctx.cancel = NULL;
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	memcpy(alone, weights, sizeof weights);
	alone_value = value;
	AG_REQUIRE(ag_pool_create(&mem, 2, &pool, &err) == AG_OK);
	ctx.pool = pool;
	AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
	AG_CHECK(memcmp(alone, weights, sizeof weights) == 0 && alone_value == value);
	ctx.pool = NULL;
	ag_pool_free(pool);
}

static void
no_memory(void)
{
	AgStatus status = AG_ERR_MEMORY;

	make_binary();
	for (int after = 0; status != AG_OK && after < 2000; after++)
	{
		ag_error_init(&err);
		atomic_store(&mem.fail_after, after);
		status = choose(AG_METRIC_F1, AG_PROBLEM_BINARY, 2, 3);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	}
	AG_CHECK_EQ(status, AG_OK);
	atomic_store(&mem.fail_after, -1);
	ag_error_init(&err);
}

/* Two that err alike are both taken, as the best two of six; plain greed would take the better one alone. */
static void
best_few_come_first(void)
{
	static const double errs[] = {1.05, 1.3};

	for (int e = 0; e < 2; e++)
	{
		make_regression();
		for (int i = 0; i < N_ROWS; i++)
			for (int j = 0; j < N_MODELS; j++)
				predictions[j][i] = target[i] + (j == 0   ? noise(0, i)
												 : j == 1 ? errs[e] * noise(0, i)
														  : 2.0 + noise(0, i));
		AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS, 25), AG_OK);
		/* but not one that is much worse */
		AG_CHECK(weights[0] > 0.5 && (e == 0 ? weights[1] > 0.0 : weights[1] == 0.0));
		AG_CHECK(weights[2] == 0.0);
		/* nor of so few that it would be a third of them */
		AG_CHECK_EQ(choose(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, N_MODELS - 1, 25), AG_OK);
		AG_CHECK(weights[0] == 1.0);
	}
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	for (int j = 0; j < N_MODELS; j++)
		all[j] = predictions[j];
	as_told_plainly();
	best_few_come_first();
	beats_its_members();
	ties_and_prefixes();
	bad_input();
	time_and_threads();
	no_memory();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("ensemble");
}
