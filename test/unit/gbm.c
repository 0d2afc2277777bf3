/*
 * gbm.c - the boosting loop as a whole: same bytes at any thread count, limits kept, nothing leaks.
 */
#include "booster.h"
#include "engine/model/histogram_rows.h"
#include "engine/model/early_stop.h"
#include "engine/model/goss.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

/* Trains on n_threads and returns the model's bytes (and its result for more checks when wanted). */
static AgWriter
train_bytes(Bench *bench, const AgTrainData *data, const AgBoostParams *params, double *error)
{
	AgBoostResult result;
	AgWriter writer;
	AgStatus status = ag_boost_train(&bench->ctx, data, params, &result);

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
vary(AgBoostParams *params, int variant)
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
		case 5:
			params->samples_by_gradient = true;
			params->learning_rate = 0.6;
			params->top_rate = 0.3;
			params->other_rate = 0.2;
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
		for (int variant = 0; variant < 6; variant++)
		{
			AgWriter first = {0};
			Bench bench[3];

			for (int t = 0; t < 3; t++)
			{
				Table table;
				AgTrainData data;
				AgBoostParams params = gbm_params(8);
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
		AgBoostParams params = gbm_params(2);
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
		AgBoostParams params = gbm_params(30);
		AgBoostResult result;
		int n_out = ag_n_outputs(cases[c].n_classes, 0);
		double features[16], scores[8], out[8];

		bench_init(&bench, 1);
		table_init(&table, 3000, 5, 2, 600, 0.1, cases[c].n_classes, 3);
		table_bin(&table, &bench.ctx, 60);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
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
	AgBoostParams params = gbm_params(300);
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

/*
 * Fails every allocation in turn; each failure must be told and nothing may leak. is_wide: with tables of sums that no nearest cache
 * holds, which are filled in blocks from a room of rows.
 */
static void
test_allocations(bool is_wide)
{
	for (int c = 0; c < (is_wide ? 1 : 3); c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = gbm_params(is_wide ? 1 : 2);
		AgBoostResult result;
		int64_t used;

		bench_init(&bench, 2);
		table_init(&table, is_wide ? 700 : 400, is_wide ? 120 : 3, 1, 12, 0.1, cases[c].n_classes,
				   21);
		for (int64_t i = 0; is_wide && i < table.n_rows * table.n_numbers; i++)
			table.numbers[i] = ag_random_unit(22, (uint64_t) i);
		table_bin(&table, &bench.ctx, is_wide ? 254 : 32);
		AG_CHECK_EQ(ag_hist_is_blocked(ag_hist_cells(table.bins), table.bins->row_stride), is_wide);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		params.num_leaves = is_wide ? 4 : params.num_leaves;
		params.bagging_fraction = 0.8;
		params.bagging_freq = 1;
		used = atomic_load(&bench.mem.used_bytes);
		for (int64_t n = 0;; n++)
		{
			AgStatus status;

			atomic_store(&bench.mem.fail_after, n);
			ag_error_init(&bench.error);
			status = ag_boost_train(&bench.ctx, &data, &params, &result);
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
	/* Adaptive: a millionth of the first value is no gain, but gains add up. */
	ag_early_stop_init(&stop, AG_METRIC_RMSE, -1, 1000);
	AG_CHECK(ag_early_stop_take(&stop, 1, 100.0));
	AG_CHECK(!ag_early_stop_take(&stop, 2, 99.99995));
	AG_CHECK(ag_early_stop_take(&stop, 3, 99.9998));
	ag_early_stop_init(&stop, AG_METRIC_RMSE, 10, 1000);
	AG_CHECK(ag_early_stop_take(&stop, 1, 100.0));
	AG_CHECK(ag_early_stop_take(&stop, 2, 99.99995));
	ag_early_stop_init(&stop, AG_METRIC_ACCURACY, 0, 100);
	AG_CHECK(ag_early_stop_take(&stop, 1, (double) NAN));
	AG_CHECK(ag_early_stop_take(&stop, 2, 0.5));
	AG_CHECK(!ag_early_stop_take(&stop, 3, 0.4));
	AG_CHECK(ag_early_stop_take(&stop, 4, 0.6));
	AG_CHECK(!ag_early_stop_done(&stop, 100000));
	/* How far it is: as many rounds again while they get better, the rest of the patience once they don't, `most` in any case. */
	ag_early_stop_init(&stop, AG_METRIC_RMSE, 100, 1000);
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 50, 1000), 0.05, 1e-12);
	AG_CHECK(ag_early_stop_take(&stop, 50, 1.0));
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 50, 1000), 50.0 / 200.0, 1e-12);
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 100, 1000), 100.0 / 200.0, 1e-12);
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 140, 1000), 140.0 / 164.0, 1e-12);
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 150, 1000), 1.0, 1e-12);
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 50, 60), 50.0 / 60.0, 1e-12);
	ag_early_stop_init(&stop, AG_METRIC_RMSE, 0, 1000);
	AG_CHECK(ag_early_stop_take(&stop, 50, 1.0));
	AG_CHECK_NEAR(ag_early_stop_share(&stop, 100, 1000), 0.1, 1e-12);
}

/* A label shifted far away leaves the same trees, but for rounding. */
static void
test_shift(void)
{
	double errors[2];

	for (int shift = 0; shift < 2; shift++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = gbm_params(100);
		AgWriter bytes;

		bench_init(&bench, 1);
		table_init(&table, 2000, 4, 1, 10, 0.0, 0, 8);
		table_bin(&table, &bench.ctx, 254);
		for (int64_t i = 0; i < table.n_rows; i++)
			table.target[i] += shift ? 1e9 : 0.0;
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		bytes = train_bytes(&bench, &data, &params, &errors[shift]);
		ag_writer_free(&bytes);
		table_end(&table);
		bench_end(&bench);
	}
	AG_CHECK_NEAR(errors[1], errors[0], 0.003);
}

/* Every leaf has at least min_data_in_leaf train rows, however its hessians lie; limits of depth and leaves hold. */
static void
test_limits(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = gbm_params(60);
		AgBoostResult result;
		int64_t *counts;
		int n_small = 0, n_deep = 0, n_wide = 0;

		bench_init(&bench, 1);
		table_init(&table, 2000, 5, 2, 30, 0.1, cases[c].n_classes, 71);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		data.n_valid = 0;
		data.weight = c == 1 ? table.weight : NULL;
		params.learning_rate = 0.5;
		params.min_data_in_leaf = 33;
		params.num_leaves = 13;
		params.max_depth = 5;
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK(isnan(result.best_value));
		AG_CHECK_EQ(result.best_round, result.rounds_run);
		counts = calloc((size_t) result.trees->n_leaves, sizeof *counts);
		for (int64_t i = 0; i < table.n_train; i++)
		{
			double features[16], scores[8];

			table_features(&table, table.train[i], features);
			for (uint32_t t = 0; t < result.trees->n_trees; t++)
			{
				/* one tree alone: the score tells the leaf */
				AgTrees one = *result.trees;

				one.n_trees = 1;
				one.trees = result.trees->trees + t;
				ag_trees_score(&one, features, scores);
				for (uint32_t l = 0; l < one.trees->n_leaves; l++)
					if (scores[one.trees->output] ==
						one.base[one.trees->output] + one.leaves[one.trees->first_leaf + l])
						counts[one.trees->first_leaf + l]++;
			}
		}
		for (uint32_t t = 0; t < result.trees->n_trees; t++)
		{
			const AgTree *tree = result.trees->trees + t;

			n_deep += tree->depth > 5;
			n_wide += tree->n_leaves > 13;
			for (uint32_t l = 0; tree->n_leaves > 1 && l < tree->n_leaves; l++)
				n_small += counts[tree->first_leaf + l] < 33;
		}
		AG_CHECK_EQ(n_small, 0);
		AG_CHECK_EQ(n_deep, 0);
		AG_CHECK_EQ(n_wide, 0);
		free(counts);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* How many features a tree splits on. */
static int
n_used(const AgTrees *trees, uint32_t t)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < trees->trees[t].n_nodes; i++)
		used |= UINT64_C(1) << trees->nodes[trees->trees[t].first_node + i].feature;
	return __builtin_popcountll(used);
}

/* Parameters whose work shows in the model itself. */
static void
test_parameters(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(20);
	AgBoostResult result;
	int n_many = 0, n_far = 0, n_roots = 0;
	uint32_t first_feature[20];

	bench_init(&bench, 1);
	table_init(&table, 2000, 8, 2, 10, 0.0, 0, 73);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.early_stop_rounds = 0;
	params.feature_fraction = 0.3;
	params.max_delta_step = 0.25;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
	{
		n_many += n_used(result.trees, t) > 3;
		first_feature[t] = result.trees->nodes[result.trees->trees[t].first_node].feature;
		n_roots += t > 0 && first_feature[t] != first_feature[t - 1];
	}
	for (uint64_t l = 0; l < result.trees->n_leaves; l++)
		n_far += fabs(result.trees->leaves[l]) > 0.25 * params.learning_rate * (1 + 1e-12);
	AG_CHECK_EQ(n_many, 0);
	AG_CHECK(n_roots > 0); /* each tree draws anew */
	AG_CHECK_EQ(n_far, 0);
	ag_boost_result_free(&bench.ctx, &result);

	params = gbm_params(20);
	params.min_gain_to_split = 1e9;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	AG_CHECK_EQ(result.rounds_run, 1);
	AG_CHECK_EQ(result.trees->n_nodes, 0);
	ag_boost_result_free(&bench.ctx, &result);

	params = gbm_params(1);
	params.learning_rate = 1.0;
	params.num_leaves = 2;
	params.path_smooth = 1e12; /* everything is pulled to the root's value, which is 0 */
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (uint64_t l = 0; l < result.trees->n_leaves; l++)
		AG_CHECK(fabs(result.trees->leaves[l]) < 1e-6);
	ag_boost_result_free(&bench.ctx, &result);

	params.path_smooth = 0.0;
	params.lambda_l2 = 1e12;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (uint64_t l = 0; l < result.trees->n_leaves; l++)
		AG_CHECK(fabs(result.trees->leaves[l]) < 1e-6);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* Rows of weight 0 don't matter to the values, and twice the weight is twice the row. */
static void
test_weights(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(50);
	AgBoostResult result;
	int n_far = 0;

	bench_init(&bench, 1);
	table_init(&table, 2000, 2, 0, 1, 0.0, 0, 81);
	table_bin(&table, &bench.ctx, 254);
	for (int64_t i = 0; i < table.n_rows; i++)
	{
		table.target[i] = table.numbers[i] > 0.5 ? 3.0 : -1.0;
		table.weight[i] = i % 4 == 0 ? 0.0 : 1.0 + (double) (i % 3);
		if (i % 4 == 0 && i % 5 != 4)
			table.target[i] = 1000.0; /* only rows of no weight say this */
	}
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.weight = table.weight;
	params.learning_rate = 0.3;
	params.early_stop_rounds = 0;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (int64_t i = 0; i < table.n_valid; i++)
		if (fabs(result.valid_proba[i] - (table.numbers[table.valid[i]] > 0.5 ? 3.0 : -1.0)) > 0.5)
			n_far++;
	AG_CHECK(n_far < 10); /* cuts lie between sampled values */
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* The seed is the only source of chance. */
static void
test_seeds(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(5);
	AgWriter first, again, other;

	bench_init(&bench, 2);
	table_init(&table, 1000, 4, 1, 10, 0.1, 2, 91);
	table_bin(&table, &bench.ctx, 100);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.feature_fraction = 0.5;
	first = train_bytes(&bench, &data, &params, NULL);
	again = train_bytes(&bench, &data, &params, NULL);
	params.seed = 43;
	other = train_bytes(&bench, &data, &params, NULL);
	AG_CHECK(same_bytes(&first, &again));
	AG_CHECK(!same_bytes(&first, &other));
	ag_writer_free(&first);
	ag_writer_free(&again);
	ag_writer_free(&other);
	table_end(&table);
	bench_end(&bench);
}

static void
test_cancel_and_time(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(100000);
	AgBoostResult result;
	_Atomic bool cancel = true;
	int64_t from;

	bench_init(&bench, 2);
	table_init(&table, 5000, 4, 1, 10, 0.1, 2, 92);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.early_stop_rounds = 0;
	bench.ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_ERR_CANCELLED);
	AG_CHECK(result.trees == NULL);
	bench.ctx.cancel = NULL;
	ag_error_init(&bench.error);
	bench.ctx.deadline_ns = ag_clock_ns() - 1;
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_ERR_TIME);
	ag_error_init(&bench.error);
	from = ag_clock_ns();
	bench.ctx.deadline_ns = from + INT64_C(300000000);
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_OK);
	AG_CHECK(ag_clock_ns() - from < INT64_C(3000000000));
	AG_CHECK(result.stopped_by_time);
	AG_CHECK(!result.stopped_by_patience);
	AG_CHECK(result.best_round >= 1);
	AG_CHECK_EQ(result.trees->n_trees, result.best_round);
	ag_boost_result_free(&bench.ctx, &result);
	bench.ctx.deadline_ns = INT64_MAX;
	params.early_stop_rounds = 5;
	params.learning_rate = 1.0;
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_OK);
	AG_CHECK(result.stopped_by_patience);
	AG_CHECK_EQ(result.rounds_run, result.best_round + 5);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* What was promised to the budget is enough. */
static void
test_memory(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = gbm_params(10);
		AgBoostResult result;
		int64_t before;

		bench_init(&bench, 2);
		table_init(&table, 90000, 3, 1, 10, 0.1, cases[c].n_classes, 93);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		before = atomic_load(&bench.mem.used_bytes);
		atomic_store(&bench.mem.peak_bytes, before);
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK(atomic_load(&bench.mem.peak_bytes) - before <= ag_boost_memory(&data, &params, 2));
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Counts the calls and keeps the last text. */
static void
note_progress(void *host, const char *phase, double fraction)
{
	char *text = host;

	AG_CHECK(fraction >= 0.0 && fraction <= 1.0);
	snprintf(text, 200, "%s", phase);
}

static void
test_progress(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(1000000);
	AgBoostResult result;
	char text[200] = "";

	bench_init(&bench, 1);
	table_init(&table, 3000, 4, 0, 1, 0.0, 0, 94);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.early_stop_rounds = 0;
	bench.ctx.progress = note_progress;
	bench.ctx.host = text;
	bench.ctx.deadline_ns = ag_clock_ns() + INT64_C(1300000000);
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_OK);
	AG_CHECK(strncmp(text, "training GBM, round ", 20) == 0);
	AG_CHECK(strstr(text, " of at most 1000000, root_mean_squared_error 0.") != NULL);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* Five levels of 48 rows: by default their groups are small enough to be split; a limit that is given holds. */
static void
test_few_rows(void)
{
	AG_CHECK_EQ(ag_boost_group_rows(1), 1);
	AG_CHECK_EQ(ag_boost_group_rows(240), 4);
	AG_CHECK_EQ(ag_boost_group_rows(4999), 99);
	AG_CHECK_EQ(ag_boost_group_rows(5000), 100);
	for (int given = 0; given < 2; given++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = gbm_params(10);
		AgBoostResult result;

		bench_init(&bench, 1);
		table_init(&table, 300, 0, 1, 5, 0.0, 0, 9);
		for (int64_t i = 0; i < table.n_rows; i++)
		{
			table.codes[i] = (uint32_t) (i % 5);
			table.target[i] = (double) (i % 5) * 10.0;
			table.train[i] = (uint32_t) i;
		}
		table.n_train = 240;
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		params.min_data_per_group = given ? 150 : 0;
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK_EQ(result.trees->n_nodes > 0, !given);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* The largest gradients are in, the others as often and as heavy as asked, and the sums stay what they were. */
static void
test_goss(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = gbm_params(10);
	AgLoss loss;
	AgGradientRange range;
	uint32_t *bag, *rest;
	AgGradient *before;
	double sum = 0.0, drawn = 0.0, least_top = 1e300, most_out = 0.0;
	int64_t n_bag = 0, n_scaled = 0;

	params.samples_by_gradient = true;
	params.top_rate = 0.2;
	params.other_rate = 0.1;
	params.learning_rate = 0.25;
	AG_CHECK(!ag_goss_is_due(&params, 4) && ag_goss_is_due(&params, 5));
	bench_init(&bench, 2);
	table_init(&table, 20000, 4, 0, 1, 0.0, 0, 31);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
	AG_REQUIRE(ag_loss_gradients(&bench.ctx, &loss, 0, &range) == AG_OK);
	bag = malloc((size_t) data.n_train * sizeof *bag);
	rest = malloc((size_t) data.n_train * sizeof *rest);
	before = malloc((size_t) loss.n_rows * sizeof *before);
	memcpy(before, loss.gradients, (size_t) loss.n_rows * sizeof *before);
	AG_CHECK(ag_goss_draw(&bench.ctx, &loss, &params, 7, &range, bag, rest, &n_bag) == AG_OK);
	for (int64_t i = 0; i < n_bag; i++)
	{
		bool is_scaled = loss.gradients[bag[i]].h != 1.0f;

		n_scaled += is_scaled;
		drawn += (double) loss.gradients[bag[i]].h;
		AG_CHECK(!is_scaled || fabsf(loss.gradients[bag[i]].h - 8.0f) < 0.1f);
		if (!is_scaled && fabs((double) before[bag[i]].g) < least_top)
			least_top = fabs((double) before[bag[i]].g);
		AG_CHECK(fabsf(loss.gradients[bag[i]].g) <= range.max_g);
	}
	for (int64_t i = 0; i < data.n_train - n_bag; i++)
		if (fabs((double) before[rest[i]].g) > most_out)
			most_out = fabs((double) before[rest[i]].g);
	sum = (double) data.n_train;
	AG_CHECK(most_out < least_top);
	AG_CHECK_NEAR((double) (n_bag - n_scaled) / sum, 0.2, 0.002);
	AG_CHECK_NEAR((double) n_scaled / sum, 0.1, 0.01);
	AG_CHECK_NEAR(drawn / sum, 1.0, 0.05);
	free(bag);
	free(rest);
	free(before);
	ag_loss_free(&bench.ctx, &loss);
	table_end(&table);
	bench_end(&bench);
}

/* Each way to draw rows refuses what belongs to the other. */
static void
test_goss_options(void)
{
	AgError error;
	AgBoostParams params;

	for (int wrong = 0; wrong < 5; wrong++)
	{
		memset(&params, 0, sizeof params);
		ag_params_default(ag_gbm_specs, ag_gbm_n_specs, &params);
		params.boosting = wrong != 2;
		if (wrong == 1 || wrong == 2)
			params.top_rate = 0.4;
		if (wrong == 3)
			params.other_rate = 0.9;
		if (wrong == 4)
		{
			params.bagging_freq = 1;
			params.bagging_fraction = 0.5;
		}
		ag_error_init(&error);
		AG_CHECK_EQ(ag_gbm_check(&params, &error) == AG_OK, wrong < 2);
		ag_gbm_complete(&params);
		AG_CHECK_EQ(params.samples_by_gradient, wrong != 2);
	}
}

int
main(void)
{
	test_goss();
	test_goss_options();
	test_few_rows();
	test_early_stop();
	test_shift();
	test_limits();
	test_parameters();
	test_weights();
	test_seeds();
	test_cancel_and_time();
	test_memory();
	test_progress();
	test_threads();
	test_wide();
	test_predictions();
	test_learns();
	test_allocations(false);
	test_allocations(true);
	return ag_unit_done("gbm");
}
