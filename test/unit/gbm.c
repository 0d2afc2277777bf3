/*
 * gbm.c - the boosting loop as a whole: same bytes at any thread count, limits kept, nothing leaks.
 */
#include "booster.h"
#include "engine/model/early_stop.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

/* Trains on n_threads and returns the model's bytes (and its result for more checks when wanted). */
static AgWriter
train_bytes(Bench *bench, const AgTrainData *data, const AgGbmParams *params, double *error)
{
	AgBoostResult result;
	AgWriter writer;
	AgStatus status = ag_gbm_train(&bench->ctx, data, params, &result);

	if (!AG_CHECK(status == AG_OK))
		fprintf(stderr, "    %s\n", bench->error.message);
	writer = model_bytes(&bench->ctx, result.trees);
	if (error != NULL)
		*error = result.best_value;
	ag_boost_result_free(&bench->ctx, &result);
	return writer;
}

/* Every parameter that has code of its own, one after the other. */
static void
vary(AgGbmParams *params, int variant)
{
	switch (variant)
	{
		case 1:
			params->extra_trees = true;
			params->feature_fraction = 0.6;
			break;
		case 2:
			params->bagging_fraction = 0.7;
			params->bagging_freq = 2;
			params->feature_fraction_bynode = 0.5;
			break;
		case 3:
			params->lambda_l1 = 0.5;
			params->lambda_l2 = 2.0;
			params->max_delta_step = 0.3;
			params->path_smooth = 3.0;
			params->min_gain_to_split = 0.01;
			break;
		case 4:
			params->max_depth = 3;
			params->min_data_in_leaf = 1;
			params->max_cat_to_onehot = 50;
			break;
		default:
			break;
	}
}

static void
test_threads(void)
{
	static const int n_threads[] = {1, 2, 5};

	for (int c = 0; c < 3; c++)
		for (int variant = 0; variant < 5; variant++)
		{
			AgWriter first = {0};
			Bench bench[3];

			for (int t = 0; t < 3; t++)
			{
				Table table;
				AgTrainData data;
				AgGbmParams params = gbm_params(8);
				AgWriter bytes;

				bench_init(&bench[t], n_threads[t]);
				table_init(&table, 6000, 6, 3, 40, 0.1, cases[c].n_classes, 11);
				table_bin(&table, &bench[t].ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				if (variant == 2)
					data.weight = table.weight;
				vary(&params, variant);
				bytes = train_bytes(&bench[t], &data, &params, NULL);
				if (t == 0)
					first = bytes;
				else
				{
					AG_CHECK(same_bytes(&first, &bytes));
					ag_writer_free(&bytes);
				}
				table_end(&table);
			}
			ag_writer_free(&first);
			for (int t = 0; t < 3; t++)
				bench_end(&bench[t]);
		}
}

/* More rows than a narrow histogram holds, so that wide ones and their subtraction are used. */
static void
test_wide(void)
{
	AgWriter first = {0};
	Bench bench[2];

	for (int t = 0; t < 2; t++)
	{
		Table table;
		AgTrainData data;
		AgGbmParams params = gbm_params(2);
		AgWriter bytes;

		bench_init(&bench[t], t == 0 ? 1 : 3);
		table_init(&table, 200000, 3, 1, 20, 0.05, 2, 5);
		table_bin(&table, &bench[t].ctx, 254);
		data = table_data(&table, AG_PROBLEM_BINARY, 2);
		bytes = train_bytes(&bench[t], &data, &params, NULL);
		if (t == 0)
			first = bytes;
		else
		{
			AG_CHECK(same_bytes(&first, &bytes));
			ag_writer_free(&bytes);
		}
		table_end(&table);
	}
	ag_writer_free(&first);
	for (int t = 0; t < 2; t++)
		bench_end(&bench[t]);
}

/* What training kept as predictions is what the model says of the rows' values. */
static void
test_predictions(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgGbmParams params = gbm_params(30);
		AgBoostResult result;
		int n_out = cases[c].n_classes > 0 ? cases[c].n_classes : 1;
		double features[16], scores[8], out[8];

		bench_init(&bench, 1);
		table_init(&table, 3000, 5, 2, 600, 0.1, cases[c].n_classes, 3);
		table_bin(&table, &bench.ctx, 60);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		AG_REQUIRE(ag_gbm_train(&bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK(ag_trees_check(&bench.ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
		for (int64_t i = 0; i < table.n_valid; i++)
		{
			table_features(&table, table.valid[i], features);
			ag_trees_score(result.trees, features, scores);
			ag_trees_link(result.trees, scores, out);
			if (memcmp(out, result.valid_proba + i * n_out, (size_t) n_out * sizeof(double)) != 0)
			{
				AG_CHECK(!"predictions differ");
				break;
			}
		}
		AG_CHECK_EQ(result.trees->n_trees,
					result.best_round * (cases[c].problem == AG_PROBLEM_MULTICLASS ? n_out : 1));
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Boosting must learn: the target's noise is 0.3 / sqrt(12) = 0.087, its spread near 1. */
static void
test_learns(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgGbmParams params = gbm_params(300);
	AgWriter bytes;
	double error;

	bench_init(&bench, 2);
	table_init(&table, 5000, 4, 1, 10, 0.0, 0, 8);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	bytes = train_bytes(&bench, &data, &params, &error);
	AG_CHECK(error < 0.13);
	ag_writer_free(&bytes);
	table_end(&table);
	bench_end(&bench);
}

/* Fails every allocation in turn; each failure must be told and nothing may leak. */
static void
test_allocations(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgGbmParams params = gbm_params(2);
		AgBoostResult result;
		int64_t used;

		bench_init(&bench, 2);
		table_init(&table, 400, 3, 1, 12, 0.1, cases[c].n_classes, 21);
		table_bin(&table, &bench.ctx, 32);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		params.bagging_fraction = 0.8;
		params.bagging_freq = 1;
		used = atomic_load(&bench.mem.used_bytes);
		for (int64_t n = 0;; n++)
		{
			AgStatus status;

			atomic_store(&bench.mem.fail_after, n);
			ag_error_init(&bench.error);
			status = ag_gbm_train(&bench.ctx, &data, &params, &result);
			atomic_store(&bench.mem.fail_after, -1);
			if (status == AG_OK)
			{
				AG_CHECK(n > 20);
				ag_boost_result_free(&bench.ctx, &result);
			}
			else
			{
				AG_CHECK_EQ(status, AG_ERR_MEMORY);
				AG_CHECK(bench.error.message[0] != '\0');
			}
			AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
			if (status == AG_OK || n > 2000)
				break;
		}
		table_end(&table);
		bench_end(&bench);
	}
}

static void
test_early_stop(void)
{
	AgEarlyStop stop;

	AG_CHECK_EQ(ag_early_stop_patience(100, 1), 300);
	AG_CHECK_EQ(ag_early_stop_patience(10000, 1), 300);
	AG_CHECK_EQ(ag_early_stop_patience(50000, 1), 60);
	AG_CHECK_EQ(ag_early_stop_patience(1000000, 1), 20);
	AG_CHECK_EQ(ag_early_stop_patience(1000000, 1000), 320);
	ag_early_stop_init(&stop, AG_METRIC_RMSE, 3, 100);
	AG_CHECK(ag_early_stop_take(&stop, 1, 5.0));
	AG_CHECK(!ag_early_stop_take(&stop, 2, 5.0));
	AG_CHECK(ag_early_stop_take(&stop, 3, 4.0));
	AG_CHECK(!ag_early_stop_done(&stop, 5));
	AG_CHECK(!ag_early_stop_take(&stop, 6, (double) NAN));
	AG_CHECK(ag_early_stop_done(&stop, 6));
	ag_early_stop_init(&stop, AG_METRIC_ACCURACY, 0, 100);
	AG_CHECK(ag_early_stop_take(&stop, 1, (double) NAN));
	AG_CHECK(ag_early_stop_take(&stop, 2, 0.5));
	AG_CHECK(!ag_early_stop_take(&stop, 3, 0.4));
	AG_CHECK(ag_early_stop_take(&stop, 4, 0.6));
	AG_CHECK(!ag_early_stop_done(&stop, 100000));
}

int
main(void)
{
	test_early_stop();
	test_threads();
	test_wide();
	test_predictions();
	test_learns();
	test_allocations();
	return ag_unit_done("gbm");
}
