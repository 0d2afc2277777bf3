/*
 * gbm_hard.c - data that breaks sums and tables that leave nothing to learn: finite answers or named errors.
 */
#include "booster.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

/* Trains on hard data: whatever the status, nothing that isn't finite may come out. */
static AgStatus
train_hard(const Table *table, Bench *bench, AgProblem problem, int n_classes,
		   const AgBoostParams *params, const double *weight)
{
	AgTrainData data = table_data(table, problem, n_classes);
	AgBoostResult result;
	AgStatus status;
	size_t n_out = (size_t) ag_n_outputs(n_classes, 0);

	data.weight = weight;
	ag_error_init(&bench->error);
	status = ag_boost_train(&bench->ctx, &data, params, &result);
	if (status != AG_OK)
		return status;
	AG_CHECK(ag_trees_check(&bench->ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
	AG_CHECK(result.best_round >= 1);
	for (size_t i = 0; i < (size_t) table->n_valid * n_out; i++)
		if (!isfinite(result.valid_proba[i]))
		{
			AG_CHECK(!"a prediction is not finite");
			break;
		}
	for (uint64_t i = 0; i < result.trees->n_leaves; i++)
		if (!isfinite(result.trees->leaves[i]))
		{
			AG_CHECK(!"a leaf is not finite");
			break;
		}
	ag_boost_result_free(&bench->ctx, &result);
	return status;
}

/* A target made of the table's, in one of the shapes that break sums. */
static void
harden(Table *table, int shape)
{
	for (int64_t i = 0; i < table->n_rows; i++)
	{
		double *y = table->target + i;

		switch (shape)
		{
			case 0:
				*y = 5.0;
				break;
			case 1:
				*y = 1e12 + *y;
				break;
			case 2:
				*y = *y * 1e280;
				break;
			case 3:
				*y = *y * 1e-300;
				break;
			case 4:
				*y = i == 7 ? 1e30 : *y;
				break;
			case 5:
				*y = i % 2 ? 1e290 : -1e290;
				break;
			default:
				break;
		}
	}
}

static void
test_hard_targets(void)
{
	for (int shape = 0; shape < 6; shape++)
		for (int weighted = 0; weighted < 3; weighted++)
		{
			Bench bench;
			Table table;
			AgBoostParams params = gbm_params(20);

			bench_init(&bench, 1);
			table_init(&table, 300, 3, 1, 5, 0.1, 0, 61);
			table_bin(&table, &bench.ctx, 50);
			harden(&table, shape);
			for (int64_t i = 0; i < table.n_rows; i++)
				table.weight[i] = weighted == 1 ? 0.0 : pow(10.0, (double) (i % 600) - 300.0);
			AG_CHECK_EQ(train_hard(&table, &bench, AG_PROBLEM_REGRESSION, 0, &params,
								   weighted ? table.weight : NULL),
						AG_OK);
			table_end(&table);
			bench_end(&bench);
		}
}

/* Few rows, few features, nothing but missing values, many classes. */
static void
test_hard_tables(void)
{
	static const int64_t n_rows[] = {1, 2, 3, 40};

	for (int r = 0; r < 4; r++)
		for (int c = 0; c < 3; c++)
			for (int missing = 0; missing < 2; missing++)
			{
				Bench bench;
				Table table;
				AgBoostParams params = gbm_params(5);

				bench_init(&bench, 1);
				table_init(&table, n_rows[r], 1, 1, 3, missing ? 1.1 : 0.0, cases[c].n_classes, 62);
				table_bin(&table, &bench.ctx, 50);
				params.min_data_in_leaf = r % 2;
				AG_CHECK_EQ(
					train_hard(&table, &bench, cases[c].problem, cases[c].n_classes, &params, NULL),
					AG_OK);
				table_end(&table);
				bench_end(&bench);
			}
}

static void
test_many_classes(void)
{
	Bench bench;
	Table table;
	AgBoostParams params = gbm_params(2);

	bench_init(&bench, 2);
	table_init(&table, 3000, 2, 0, 1, 0.0, 2, 63);
	table_bin(&table, &bench.ctx, 50);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.class_of[i] = (int32_t) (i * i % 1000); /* some never, most seldom */
	params.min_data_in_leaf = 1;
	AG_CHECK_EQ(train_hard(&table, &bench, AG_PROBLEM_MULTICLASS, 1000, &params, NULL), AG_OK);
	table_end(&table);
	bench_end(&bench);
}

/* Labels beyond what sums can hold are refused, by name. */
static void
test_too_large(void)
{
	Bench bench;
	Table table;
	AgBoostParams params = gbm_params(5);

	bench_init(&bench, 1);
	table_init(&table, 50, 1, 0, 1, 0.0, 0, 64);
	table_bin(&table, &bench.ctx, 50);
	table.target[10] = 1e300;
	AG_CHECK_EQ(train_hard(&table, &bench, AG_PROBLEM_REGRESSION, 0, &params, NULL), AG_ERR_DATA);
	AG_CHECK(strstr(bench.error.message, "1e290") != NULL);
	table_end(&table);
	bench_end(&bench);
}

/* A million rounds into a few megabytes: what was grown before they were full is a model. */
static void
test_little_memory(void)
{
	Bench bench;
	Table table;
	AgBoostParams params = gbm_params(1000000);
	AgTrainData data;
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 60, 1, 0, 1, 0.0, 0, 65);
	table_bin(&table, &bench.ctx, 50);
	params.learning_rate = 1e-5;
	params.num_leaves = 4;
	params.min_data_in_leaf = 2;
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.n_valid = 0;
	ag_error_init(&bench.error);
	bench.mem.limit_bytes = atomic_load(&bench.mem.used_bytes) + (INT64_C(9) << 20);
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	AG_CHECK(result.stopped_by_memory && !result.stopped_by_time);
	AG_CHECK(result.rounds_run > 1000 && result.rounds_run < 100000);
	AG_CHECK_EQ(result.trees->n_trees, result.rounds_run);
	AG_CHECK(ag_trees_check(&bench.ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
	ag_boost_result_free(&bench.ctx, &result);
	bench.mem.limit_bytes = INT64_MAX;
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	test_hard_targets();
	test_hard_tables();
	test_many_classes();
	test_too_large();
	test_little_memory();
	return ag_unit_done("gbm_hard");
}
