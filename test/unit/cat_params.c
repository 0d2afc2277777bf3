/*
 * cat_params.c - every parameter of CAT by its name: taken, and heard; what random_strength does to trees that grow node by node.
 */
#include "booster.h"
#include "engine/model/combine.h"

#define MOST_SETTINGS 4

/* A parameter, what it is set to, and what must be set so that it counts. */
typedef struct Setting
{
	const char *name, *value;
	const char *with[MOST_SETTINGS]; /* names and values */
	AgProblem problem;
} Setting;

/* The values of the learnt portfolios among them. */
static const Setting settings[] = {
	{"iterations", "3", {0}, AG_PROBLEM_REGRESSION},
	{"loss_function", "MAE", {0}, AG_PROBLEM_REGRESSION},
	{"learning_rate", "0.06864", {0}, AG_PROBLEM_BINARY},
	{"learning_rate", "auto", {0}, AG_PROBLEM_BINARY},
	{"depth", "4", {0}, AG_PROBLEM_BINARY},
	{"grow_policy", "Depthwise", {0}, AG_PROBLEM_BINARY},
	{"grow_policy", "Lossguide", {0}, AG_PROBLEM_BINARY},
	{"max_leaves", "5", {"grow_policy", "Lossguide"}, AG_PROBLEM_BINARY},
	{"min_data_in_leaf", "40", {"grow_policy", "Depthwise"}, AG_PROBLEM_BINARY},
	{"l2_leaf_reg", "2.154", {0}, AG_PROBLEM_BINARY},
	{"random_strength", "0", {0}, AG_PROBLEM_BINARY},
	{"random_strength", "0", {"grow_policy", "Depthwise"}, AG_PROBLEM_BINARY},
	{"random_strength", "3", {"grow_policy", "Lossguide"}, AG_PROBLEM_REGRESSION},
	{"bootstrap_type", "Bayesian", {0}, AG_PROBLEM_BINARY},
	{"bootstrap_type", "Bernoulli", {0}, AG_PROBLEM_BINARY},
	{"bootstrap_type", "No", {0}, AG_PROBLEM_MULTICLASS},
	{"bagging_temperature", "0.2", {"bootstrap_type", "Bayesian"}, AG_PROBLEM_BINARY},
	{"bagging_temperature", "0.2", {0}, AG_PROBLEM_MULTICLASS},
	{"subsample", "0.5", {"bootstrap_type", "Bernoulli"}, AG_PROBLEM_BINARY},
	{"subsample", "0.5", {0}, AG_PROBLEM_BINARY},
	{"rsm", "0.5", {0}, AG_PROBLEM_BINARY},
	{"border_count", "12", {0}, AG_PROBLEM_BINARY},
	{"one_hot_max_size", "10", {0}, AG_PROBLEM_BINARY},
	{"max_ctr_complexity", "1", {0}, AG_PROBLEM_BINARY},
	{"max_ctr_complexity", "1", {"grow_policy", "Depthwise"}, AG_PROBLEM_BINARY},
	{"permutation_count", "1", {0}, AG_PROBLEM_BINARY},
	{"model_size_reg", "20", {0}, AG_PROBLEM_BINARY},
	{"leaf_estimation_method", "Gradient", {0}, AG_PROBLEM_BINARY},
	{"leaf_estimation_iterations", "5", {0}, AG_PROBLEM_BINARY},
	{"score_function", "L2", {0}, AG_PROBLEM_BINARY},
	{"score_function", "L2", {"grow_policy", "Depthwise"}, AG_PROBLEM_BINARY},
};

static void
set(AgBoostParams *params, const char *name, const char *value)
{
	AgError err;
	bool is_number = strchr("0123456789.", value[0]) != NULL;

	ag_error_init(&err);
	AG_REQUIRE(ag_param_set(ag_cat_specs, ag_cat_n_specs, "CAT", name, value, !is_number, params,
							&err) == AG_OK);
	AG_REQUIRE(ag_cat_check(params, &err) == AG_OK);
}

/* Two categories that count together only, and numbers. */
static void
make_table(Table *table, int n_classes)
{
	table_init(table, 1000, 4, 2, 8, 0.05, n_classes, 12);
	for (int64_t i = 0; i < table->n_rows; i++)
	{
		uint32_t both = (table->codes[i] % 8 + table->codes[table->n_rows + i] % 8) % 2;

		table->target[i] += 2.0 * both;
		if (n_classes > 0)
			table->class_of[i] =
				(table->class_of[i] / 2 + (int32_t) both + (table->numbers[i] > 0.6)) % n_classes;
	}
}

/* A model by these parameters, as bytes. */
static AgWriter
train(const AgBoostParams *params, AgProblem problem, Bench *bench)
{
	int n_classes = problem == AG_PROBLEM_REGRESSION ? 0 : problem == AG_PROBLEM_BINARY ? 2 : 3;
	const uint32_t *codes[6] = {NULL};
	AgBoostResult result;
	AgTrainData data;
	AgWriter bytes;
	Table table;

	make_table(&table, n_classes);
	table_bin(&table, &bench->ctx, params->max_bin);
	codes[4] = table.codes;
	codes[5] = table.codes + table.n_rows;
	data = table_data(&table, problem, n_classes);
	AG_REQUIRE(ag_cat_train(&bench->ctx, &data, codes, params, &result) == AG_OK);
	AG_CHECK(ag_trees_check(&bench->ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
	AG_CHECK(result.trees->n_nodes > 0);
	bytes = model_bytes(&bench->ctx, result.trees);
	ag_boost_result_free(&bench->ctx, &result);
	table_end(&table);
	return bytes;
}

static void
test_each(void)
{
	Bench bench;

	bench_init(&bench, 1);
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
	{
		const Setting *setting = settings + i;
		AgBoostParams params = cat_params(8);
		AgWriter without, with;
		bool is_heard;

		params.max_depth = 3;
		for (int w = 0; w < MOST_SETTINGS && setting->with[w] != NULL; w += 2)
			set(&params, setting->with[w], setting->with[w + 1]);
		without = train(&params, setting->problem, &bench);
		set(&params, setting->name, setting->value);
		with = train(&params, setting->problem, &bench);
		is_heard = !same_bytes(&without, &with);
		if (!is_heard)
			printf("%s = %s changes nothing\n", setting->name, setting->value);
		AG_CHECK(is_heard);
		ag_writer_free(&without);
		ag_writer_free(&with);
	}
	bench_end(&bench);
	for (int s = 0; s < ag_cat_n_specs; s++)
	{
		bool has_test = strcmp(ag_cat_specs[s].name, "boosting_type") == 0; /* of one value */

		for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
			has_test |= strcmp(ag_cat_specs[s].name, settings[i].name) == 0;
		AG_CHECK(has_test);
	}
}

/* How often each of the features is the first split of one of many trees. */
static void
count_roots(AgGrowOrder order, int score_function, double strength, int *n_roots)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = cat_params(60);
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 400, 5, 0, 1, 0.0, 0, 6);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.target[i] = table.numbers[i]; /* the first one says all */
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	data.n_valid = 0;
	params.grow_order = order;
	params.max_depth = 2;
	params.learning_rate = 1e-6; /* the noise doesn't fade, the gradients stay */
	params.score_function = score_function;
	params.random_strength = strength;
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	memset(n_roots, 0, 5 * sizeof *n_roots);
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
		n_roots[result.trees->nodes[result.trees->trees[t].first_node].feature]++;
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

static void
test_strength(void)
{
	int n_roots[5];

	for (int order = AG_GROW_DEPTHWISE; order <= AG_GROW_SYMMETRIC; order++)
		for (int score = 0; score < 2; score++)
		{
			count_roots((AgGrowOrder) order, score, 0.0, n_roots);
			AG_CHECK_EQ(n_roots[0], 60);
			count_roots((AgGrowOrder) order, score, 1e6, n_roots);
			for (int f = 0; f < 5; f++)
				AG_CHECK(n_roots[f] >= 3 && n_roots[f] <= 28); /* 12 by chance alone */
		}
}

static void
check_refused(AgBoostParams params, AgProblem problem, const char *message)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 100, 2, 0, 1, 0.0, 3, 5);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, problem, problem == AG_PROBLEM_REGRESSION ? 0 : 3);
	AG_CHECK_EQ(ag_cat_train(&bench.ctx, &data, NULL, &params, &result), AG_ERR_OPTION);
	AG_CHECK_STR(bench.error.message, message);
	table_end(&table);
	bench_end(&bench);
}

static void
test_refusals(void)
{
	AgBoostParams params = cat_params(2);
	AgError err;

	params.bagging_temperature = 0.5;
	check_refused(params, AG_PROBLEM_REGRESSION,
				  "parameter \"bagging_temperature\" of family CAT needs \"bootstrap_type\" "
				  "\"Bayesian\"");
	params = cat_params(2);
	params.bagging_fraction = 0.5;
	check_refused(params, AG_PROBLEM_MULTICLASS,
				  "parameter \"subsample\" of family CAT needs \"bootstrap_type\" \"Bernoulli\" or "
				  "\"MVS\"");
	params = cat_params(2);
	set(&params, "boosting_type", "Plain");
	ag_error_init(&err);
	AG_CHECK_EQ(ag_param_set(ag_cat_specs, ag_cat_n_specs, "CAT", "boosting_type", "Ordered", true,
							 &params, &err),
				AG_OK);
	AG_CHECK_EQ(ag_cat_check(&params, &err), AG_OK);
	params.grow_order = AG_GROW_DEPTHWISE;
	AG_CHECK_EQ(ag_cat_check(&params, &err), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "\"boosting_type\" \"Ordered\" of family CAT needs \"grow_policy\" "
							  "\"SymmetricTree\"");
}

int
main(void)
{
	test_each();
	test_strength();
	test_refusals();
	return ag_unit_done("cat parameters");
}
