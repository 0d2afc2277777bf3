/*
 * forest_limits.c - where forests end: leaves, bytes, time, memory, the cancel flag; tables that have next to nothing
 * to learn; parameters.
 */
#include <pthread.h>
#include <unistd.h>

#include "forests.h"

/* max_leaf_nodes keeps the splits of most gain: those of the full tree, taken best first. */
static void
test_leaf_limit(void)
{
	AgForestParams params = forest_params(1, false);
	AgForestResult full, cut;
	double last = INFINITY;
	AgTrainData data;
	Table table;
	Bench bench;

	bench_init(&bench, 1);
	table_init(&table, 800, 4, 0, 1, 0.0, 0, 13);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.max_leaf_nodes = 0;
	full = train(&bench, &data, &params);
	AG_CHECK(full.trees->n_leaves > 300);
	for (int most = 2; most <= 64; most *= 2)
	{
		double error = 0.0;

		params.max_leaf_nodes = most;
		cut = train(&bench, &data, &params);
		AG_CHECK_EQ(cut.trees->n_leaves, most);
		for (int64_t i = 0; i < table.n_train; i++)
		{
			double features[8], score;

			table_features(&table, table.train[i], features);
			ag_trees_score(cut.trees, features, &score);
			error += pow(score - table.target[table.train[i]], 2);
		}
		AG_CHECK(error < last);
		last = error;
		AG_CHECK(cut.trees->nodes[0].feature == full.trees->nodes[0].feature &&
				 cut.trees->nodes[0].threshold == full.trees->nodes[0].threshold);
		ag_forest_result_free(&bench.ctx, &cut);
	}
	ag_forest_result_free(&bench.ctx, &full);
	params.max_leaf_nodes = 0;
	params.max_depth = 3;
	cut = train(&bench, &data, &params);
	AG_CHECK_EQ(cut.trees->trees[0].depth, 3);
	ag_forest_result_free(&bench.ctx, &cut);
	params.max_depth = -1;
	params.min_impurity_decrease = 0.05;
	cut = train(&bench, &data, &params);
	AG_CHECK(cut.trees->n_leaves > 1 && cut.trees->n_leaves < 12);
	ag_forest_result_free(&bench.ctx, &cut);
	table_end(&table);
	bench_end(&bench);
}

/* A bound on the model's bytes lowers the number of trees, to 40 and no further, and says so. */
static void
test_model_bytes(void)
{
	AgForestParams params = forest_params(200, false);
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;
	int64_t one;

	bench_init(&bench, 1);
	table_init(&table, 600, 4, 0, 1, 0.0, 3, 17);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_MULTICLASS, 3);
	result = train(&bench, &data, &params);
	AG_CHECK(!result.stopped_by_memory && result.n_trees == 200);
	one = result.model_bytes / 200;
	ag_forest_result_free(&bench.ctx, &result);
	params.model_bytes = 100 * one;
	result = train(&bench, &data, &params);
	AG_CHECK(result.stopped_by_memory && abs(result.n_trees - 100) < 10);
	AG_CHECK(result.model_bytes <= params.model_bytes);
	AG_CHECK(strstr(result.note, "n_estimators lowered from 200 to ") != NULL);
	ag_forest_result_free(&bench.ctx, &result);
	params.model_bytes = 1;
	result = train(&bench, &data, &params);
	AG_CHECK_EQ(result.n_trees, AG_FOREST_LEAST_TREES);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* A deadline that has passed leaves one tree, if only its root; a near one leaves some. */
static void
test_deadline(void)
{
	AgForestParams params = forest_params(100000, false);
	AgForestResult result;
	AgWriter bytes[2];
	AgTrainData data;
	Table table;
	Bench bench;
	int64_t start;

	bench_init(&bench, 2);
	table_init(&table, 3000, 6, 1, 20, 0.1, 4, 17);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_MULTICLASS, 4);
	bench.ctx.deadline_ns = ag_clock_ns();
	result = train(&bench, &data, &params);
	AG_CHECK(result.stopped_by_time && result.n_trees >= 1);
	AG_CHECK(strstr(result.note, "the time limit passed") != NULL);
	ag_forest_result_free(&bench.ctx, &result);
	start = ag_clock_ns();
	bench.ctx.deadline_ns = start + INT64_C(1000000000);
	result = train(&bench, &data, &params);
	AG_CHECK(result.stopped_by_time && result.n_trees >= 2 && result.n_trees < 100000);
	AG_CHECK(ag_clock_ns() - start < INT64_C(2500000000));
	/* as many without haste are the same */
	params.n_estimators = result.n_trees;
	bytes[0] = model_bytes(&bench.ctx, result.trees);
	ag_forest_result_free(&bench.ctx, &result);
	bench.ctx.deadline_ns = INT64_MAX;
	result = train(&bench, &data, &params);
	bytes[1] = model_bytes(&bench.ctx, result.trees);
	AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
	for (int i = 0; i < 2; i++)
		ag_writer_free(&bytes[i]);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

static _Atomic bool cancel;
static int64_t cancelled_at;

static void *
raise_flag(void *arg)
{
	(void) arg;
	usleep(300000);
	cancelled_at = ag_clock_ns();
	atomic_store(&cancel, true);
	return NULL;
}

/* Within 100 ms, sanitizers and a busy machine not counted. */
static void
test_cancel(void)
{
	for (int extra = 0; extra < 2; extra++)
	{
		AgForestParams params = forest_params(100000, extra == 1);
		AgForestResult result;
		pthread_t thread;
		AgTrainData data;
		Table table;
		Bench bench;

		bench_init(&bench, 2);
		table_init(&table, 60000, 6, 1, 20, 0.1, 4, 17);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_MULTICLASS, 4);
		bench.ctx.cancel = &cancel;
		atomic_store(&cancel, false);
		AG_REQUIRE(pthread_create(&thread, NULL, raise_flag, NULL) == 0);
		AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_CANCELLED);
		AG_CHECK(ag_clock_ns() - cancelled_at < INT64_C(500000000));
		AG_CHECK(result.trees == NULL);
		pthread_join(thread, NULL);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Every allocation that fails is told, and nothing leaks. */
static void
test_no_memory(void)
{
	for (int c = 0; c < 3; c++)
	{
		AgForestParams params = forest_params(3, c == 1);
		AgStatus status = AG_ERR_MEMORY;
		AgTrainData data;
		Table table;
		Bench bench;
		int64_t used;

		bench_init(&bench, 2);
		table_init(&table, 400, 3, 2, 30, 0.1, cases[c].n_classes, 23);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		data.weight = table.weight;
		params.bootstrap = true;
		if (c > 0)
		{
			params.criterion = AG_CRITERION_ENTROPY;
			params.class_weight = AG_CLASS_WEIGHT_SUBSAMPLE;
		}
		used = atomic_load(&bench.mem.used_bytes);
		for (int64_t k = 0; status != AG_OK && k < 2000; k++)
		{
			AgForestResult result;

			ag_error_init(&bench.error);
			atomic_store(&bench.mem.fail_after, k);
			status = ag_forest_train(&bench.ctx, &data, &params, &result);
			atomic_store(&bench.mem.fail_after, -1);
			AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
			AG_CHECK(status == AG_OK || bench.error.message[0] != '\0');
			ag_forest_result_free(&bench.ctx, &result);
			AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
		}
		AG_CHECK_EQ(status, AG_OK);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Training stays within what was estimated. */
static void
test_memory(void)
{
	for (int c = 0; c < 3; c++)
		for (int extra = 0; extra < 2; extra++)
		{
			AgForestParams params = forest_params(30, extra == 1);
			AgForestResult result;
			AgTrainData data;
			Table table;
			Bench bench;
			int64_t before, told;

			bench_init(&bench, 2);
			table_init(&table, 8000, 8, 3, 60, 0.1, cases[c].n_classes, 29);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.bootstrap = true;
			before = atomic_load(&bench.mem.used_bytes);
			atomic_store(&bench.mem.peak_bytes, before);
			told = ag_forest_memory(&data, &params, 2);
			result = train(&bench, &data, &params);
			AG_CHECK(atomic_load(&bench.mem.peak_bytes) - before <= told);
			if (atomic_load(&bench.mem.peak_bytes) - before > told)
				fprintf(stderr, "    took %ld, told %ld\n",
						(long) (atomic_load(&bench.mem.peak_bytes) - before), (long) told);
			ag_forest_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
}

/* ---- tables that have next to nothing to learn ---- */

static double
nothing(int64_t row, int f)
{
	(void) row, (void) f;
	return NAN;
}

static double
same(int64_t row, int f)
{
	(void) row, (void) f;
	return 3.0;
}

static double
halves(int64_t row, int f)
{
	return f == 0 ? (double) (row % 2) : row % 3 ? NAN : INFINITY;
}

static void
test_degenerate(void)
{
	static double (*const values[])(int64_t, int) = {nothing, same, halves, square};

	for (int c = 0; c < 3; c++)
		for (int v = 0; v < 4; v++)
			for (int64_t n_train = 1; n_train < 40; n_train = n_train * 3 + 1)
				for (int extra = 0; extra < 2; extra++)
				{
					AgForestParams params = forest_params(4, extra == 1);
					AgForestResult result;
					AgTrainData data;
					Table table;
					Bench bench;
					int n_out = ag_n_outputs(cases[c].n_classes, 0);

					bench_init(&bench, 1);
					table_numbers(&table, &bench.ctx, 60, v % 2 + 1, values[v], cases[c].n_classes);
					table.target[0] = 1e12;
					table.target[1] = -1e290;
					data = table_data(&table, cases[c].problem, cases[c].n_classes);
					data.n_train = n_train;
					params.bootstrap = v % 2 == 0;
					result = train(&bench, &data, &params);
					for (int64_t i = 0; i < data.n_valid * n_out; i++)
						AG_CHECK(isfinite(result.valid_proba[i]));
					for (int64_t i = 0; result.oob_proba != NULL && i < n_train * n_out; i++)
						AG_CHECK(isfinite(result.oob_proba[i]));
					ag_forest_result_free(&bench.ctx, &result);
					table_end(&table);
					bench_end(&bench);
				}
}

/* A thousand classes, a few rows each; and no features at all. */
static void
test_many_classes(void)
{
	AgForestParams params = forest_params(10, false);
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;
	double sum = 0.0;

	bench_init(&bench, 2);
	table_init(&table, 4000, 3, 1, 50, 0.1, 0, 41);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.class_of[i] =
			(int32_t) (table.numbers[i] == table.numbers[i] ? table.numbers[i] * 999.0
															: (double) (i % 1000));
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_MULTICLASS, 1000);
	result = train(&bench, &data, &params);
	for (int k = 0; k < 1000; k++)
		sum += result.valid_proba[k];
	AG_CHECK_NEAR(sum, 1.0, 1e-9);
	AG_CHECK(result.trees->n_vectors < result.trees->n_leaves);
	ag_forest_result_free(&bench.ctx, &result);
	params.criterion = AG_CRITERION_ENTROPY;
	params.is_extra = true;
	result = train(&bench, &data, &params);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	table_init(&table, 50, 0, 0, 1, 0.0, 2, 1);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.criterion = AG_CRITERION_AUTO;
	result = train(&bench, &data, &params);
	AG_CHECK_EQ(result.trees->n_nodes, 0);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* The mean probability of a class of one row in twenty, of which the numbers say nothing. */
static double
rare_share(int class_weight, bool bootstrap, AgWriter *bytes, Bench *bench)
{
	AgForestParams params = forest_params(40, false);
	AgForestResult result;
	AgTrainData data;
	Table table;
	double sum = 0.0;

	table_init(&table, 2000, 3, 0, 1, 0.0, 2, 1);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.class_of[i] = ag_random_below(9, (uint64_t) i, 20) == 0;
	table_bin(&table, &bench->ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.max_depth = 1;
	params.min_samples_leaf = 50;
	params.bootstrap = bootstrap;
	params.class_weight = class_weight;
	params.max_samples = 0.2;
	result = train(bench, &data, &params);
	for (int64_t i = 0; i < data.n_valid; i++)
		sum += result.valid_proba[2 * i + 1];
	sum /= (double) data.n_valid;
	*bytes = model_bytes(&bench->ctx, result.trees);
	ag_forest_result_free(&bench->ctx, &result);
	table_end(&table);
	return sum;
}

static void
test_class_weight(void)
{
	AgForestParams rf = forest_params(1, false);
	AgWriter bytes[5];
	AgError error;
	Bench bench;

	bench_init(&bench, 1);
	AG_CHECK_NEAR(rare_share(AG_CLASS_WEIGHT_NONE, true, &bytes[0], &bench), 0.05, 0.02);
	AG_CHECK_NEAR(rare_share(AG_CLASS_WEIGHT_BALANCED, true, &bytes[1], &bench), 0.5, 0.06);
	AG_CHECK_NEAR(rare_share(AG_CLASS_WEIGHT_SUBSAMPLE, true, &bytes[2], &bench), 0.5, 0.05);
	AG_CHECK(!same_bytes(&bytes[1], &bytes[2]));
	rare_share(AG_CLASS_WEIGHT_BALANCED, false, &bytes[3], &bench);
	rare_share(AG_CLASS_WEIGHT_SUBSAMPLE, false, &bytes[4], &bench);
	AG_CHECK(same_bytes(&bytes[3], &bytes[4])); /* a tree's rows are all rows */
	for (int i = 0; i < 5; i++)
		ag_writer_free(&bytes[i]);
	bench_end(&bench);
	ag_error_init(&error);
	AG_CHECK_EQ(ag_param_set(ag_rf_specs, ag_rf_n_specs, "RF", "class_weight", "balanced", true,
							 &rf, &error),
				AG_OK);
	AG_CHECK_EQ(rf.class_weight, AG_CLASS_WEIGHT_BALANCED);
	AG_CHECK_EQ(ag_param_set(ag_rf_specs, ag_rf_n_specs, "RF", "class_weight", "{\"a\": 2}", false,
							 &rf, &error),
				AG_ERR_OPTION);
	ag_error_init(&error);
	AG_CHECK_EQ(
		ag_param_set(ag_xt_specs, ag_xt_n_specs, "XT", "criterion", "poisson", true, &rf, &error),
		AG_ERR_OPTION);
}

static void
test_refusals(void)
{
	AgForestParams params = forest_params(2, false);
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;

	bench_init(&bench, 1);
	table_init(&table, 50, 2, 0, 1, 0.0, 2, 1);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.criterion = AG_CRITERION_SQUARED_ERROR;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_OPTION);
	AG_CHECK_STR(bench.error.message, "parameter \"criterion\" doesn't fit the label");
	ag_error_init(&bench.error);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.criterion = AG_CRITERION_GINI;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_OPTION);
	ag_error_init(&bench.error);
	params.criterion = AG_CRITERION_AUTO;
	params.class_weight = AG_CLASS_WEIGHT_BALANCED;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_OPTION);
	AG_CHECK_STR(bench.error.message, "parameter \"class_weight\" needs a label of classes");
	ag_error_init(&bench.error);
	params.class_weight = AG_CLASS_WEIGHT_NONE;
	table.target[table.train[3]] = 1e291;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_DATA);
	ag_error_init(&bench.error);
	data.n_train = 0;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_DATA);
	table_end(&table);
	bench_end(&bench);
}

static void
test_params(void)
{
	AgForestParams rf = forest_params(300, false), xt = forest_params(300, true);
	AgError error;

	AG_CHECK(rf.bootstrap && !xt.bootstrap);
	AG_CHECK_EQ(rf.n_estimators, 300);
	AG_CHECK_EQ(rf.max_leaf_nodes, 15000);
	AG_CHECK(rf.max_features == AG_FEATURES_AUTO && rf.min_samples_leaf == 1.0 &&
			 rf.min_samples_split == 2.0 && rf.max_samples == 1.0);
	ag_error_init(&error);
	AG_CHECK_EQ(
		ag_param_set(ag_rf_specs, ag_rf_n_specs, "RF", "max_features", "sqrt", true, &rf, &error),
		AG_OK);
	AG_CHECK(rf.max_features == AG_FEATURES_SQRT);
	AG_CHECK_EQ(
		ag_param_set(ag_rf_specs, ag_rf_n_specs, "RF", "criterion", "entropy", true, &rf, &error),
		AG_OK);
	AG_CHECK_EQ(rf.criterion, AG_CRITERION_ENTROPY);
}

int
main(void)
{
	test_params();
	test_leaf_limit();
	test_model_bytes();
	test_deadline();
	test_cancel();
	test_no_memory();
	test_memory();
	test_degenerate();
	test_many_classes();
	test_class_weight();
	test_refusals();
	return ag_unit_done("forest_limits");
}
