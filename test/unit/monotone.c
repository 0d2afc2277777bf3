/*
 * monotone.c - predictions that keep the directions asked for, wherever one looks.
 */
#include "booster.h"

/* A target that rises with the first number but for waves, and falls with the second but for waves. */
static void
wavy(Table *table)
{
	for (int64_t i = 0; i < table->n_rows; i++)
	{
		double a = table->numbers[i], b = table->numbers[table->n_rows + i];
		double c = table->numbers[2 * table->n_rows + i];

		table->target[i] = (isnan(a) ? 0.5 : 2.0 * a + sin(25.0 * a)) -
						   (isnan(b) ? 0.3 : b + 0.5 * sin(20.0 * b)) * (isnan(c) ? 2.0 : c) +
						   ag_random_unit(3, (uint64_t) i);
		table->class_of[i] = table->target[i] > 0.0;
		if (table->target[i] < 0.0)
			table->target[i] *= 0.1;
	}
}

/* How often a score goes the wrong way along a line through each of many rows; directions[f] 0: how often it goes down. */
static int
wrong_steps(const Table *table, const AgTrees *trees, int f, int direction)
{
	int n_wrong = 0;

	for (int64_t i = 0; i < table->n_rows; i += 29)
	{
		double features[8], before = 0.0, score;

		table_features(table, i, features);
		for (int step = 0; step <= 60; step++)
		{
			features[f] = step / 50.0 - 0.1;
			ag_trees_score(trees, features, &score);
			n_wrong += step > 0 && (direction < 0 ? score > before : score < before);
			before = score;
		}
	}
	return n_wrong;
}

static void
keeps(AgBoostParams params, AgProblem problem)
{
	static const int8_t directions[] = {1, -1, 0, 0};
	AgWriter first = {0};

	for (int t = 0; t < 3; t++) /* free; then bound, with 1 and with 3 threads */
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostResult result;
		AgWriter bytes;

		bench_init(&bench, t == 2 ? 3 : 1);
		table_init(&table, 4000, 3, 1, 6, 0.05, 0, 61);
		wavy(&table);
		table_bin(&table, &bench.ctx, 100);
		data = table_data(&table, problem, problem == AG_PROBLEM_BINARY ? 2 : 0);
		data.monotone = t > 0 ? directions : NULL;
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		if (t == 0)
			AG_CHECK(wrong_steps(&table, result.trees, 0, 1) > 100 &&
					 wrong_steps(&table, result.trees, 1, -1) > 100);
		else
		{
			AG_CHECK_EQ(wrong_steps(&table, result.trees, 0, 1), 0);
			AG_CHECK_EQ(wrong_steps(&table, result.trees, 1, -1), 0);
			AG_CHECK(wrong_steps(&table, result.trees, 0, -1) > 100); /* not constant */
			AG_CHECK(problem == AG_PROBLEM_BINARY || result.best_value < 0.85);
		}
		bytes = model_bytes(&bench.ctx, result.trees);
		if (t == 1)
		{
			first.size = bytes.size;
			first.data = malloc(bytes.size);
			memcpy(first.data, bytes.data, bytes.size);
		}
		else if (t == 2)
			AG_CHECK(same_bytes(&first, &bytes));
		ag_writer_free(&bytes);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
	free(first.data);
}

/* Percentiles know no bounds. */
static void
refused(AgLossKind kind)
{
	static const int8_t directions[] = {1, 0};
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(3);
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 300, 2, 0, 6, 0.0, 0, 61);
	table_bin(&table, &bench.ctx, 100);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.monotone = directions;
	data.stop_metric = AG_METRIC_MAE;
	params.loss = kind;
	params.loss_alpha = 0.5;
	if (kind == AG_LOSS_AUTO) /* takes squared errors */
	{
		AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_OK);
		ag_boost_result_free(&bench.ctx, &result);
	}
	else
		AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_ERR_OPTION);
	ag_error_init(&bench.error);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	AgBoostParams params = gbm_params(150);

	params.learning_rate = 0.1;
	keeps(params, AG_PROBLEM_REGRESSION);
	keeps(params, AG_PROBLEM_BINARY);
	params.lambda_l1 = 0.5;
	params.path_smooth = 5.0;
	params.bagging_fraction = 0.7;
	params.bagging_freq = 1;
	keeps(params, AG_PROBLEM_REGRESSION);
	params = xgb_params(100);
	keeps(params, AG_PROBLEM_REGRESSION);
	params.max_delta_step = 0.5;
	keeps(params, AG_PROBLEM_BINARY);
	refused(AG_LOSS_ABSOLUTE);
	refused(AG_LOSS_QUANTILE);
	refused(AG_LOSS_AUTO);
	return ag_unit_done("monotone");
}
