/*
 * xgb.c - trees grown level by level: leaves against slow sums, limits, each parameter's work.
 */
#include "booster.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

/* Every parameter that has code of its own. */
static void
vary(AgBoostParams *params, int variant)
{
	switch (variant)
	{
		case 1:
			params->grow_order = AG_GROW_LOSSGUIDE;
			params->max_depth = 0;
			params->num_leaves = 20;
			params->splits_categories = true;
			break;
		case 2:
			params->bagging_fraction = 0.6;
			params->feature_fraction = 0.8;
			params->feature_fraction_bylevel = 0.6;
			params->feature_fraction_bynode = 0.7;
			break;
		case 3:
			params->lambda_l1 = 0.5;
			params->max_delta_step = 0.7;
			params->min_gain_to_split = 0.1;
			params->splits_categories = true;
			break;
		default:
			break;
	}
}

static void
test_threads(void)
{
	for (int c = 0; c < 3; c++)
		for (int variant = 0; variant < 4; variant++)
		{
			AgWriter bytes[2];
			Bench bench[2];

			for (int t = 0; t < 2; t++)
			{
				Table table;
				AgTrainData data;
				AgBoostParams params = xgb_params(6);
				AgBoostResult result;

				bench_init(&bench[t], t == 0 ? 1 : 4);
				table_init(&table, 4000, 6, 3, 40, 0.1, cases[c].n_classes, 11);
				table_bin(&table, &bench[t].ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				vary(&params, variant);
				AG_REQUIRE(ag_boost_train(&bench[t].ctx, &data, &params, &result) == AG_OK);
				AG_CHECK(ag_trees_check(&bench[t].ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
				bytes[t] = model_bytes(&bench[t].ctx, result.trees);
				ag_boost_result_free(&bench[t].ctx, &result);
				table_end(&table);
			}
			AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
			for (int t = 0; t < 2; t++)
			{
				ag_writer_free(&bytes[t]);
				bench_end(&bench[t]);
			}
		}
}

/* The leaf of tree t that a row falls into, walked by hand. */
static uint32_t
leaf_of(const AgTrees *trees, uint32_t t, const double *features)
{
	const AgTreeNode *nodes = trees->nodes + trees->trees[t].first_node;
	int32_t at = trees->trees[t].n_nodes > 0 ? 0 : ~0;

	while (at >= 0)
	{
		const AgTreeNode *node = nodes + at;
		double x = features[node->feature];
		bool left;

		if (isnan(x))
			left = (node->flags & AG_NODE_MISSING_LEFT) != 0;
		else if (!(node->flags & AG_NODE_CATEGORY))
			left = x <= node->threshold;
		else if (x >= node->n_set * 64.0)
			left = (node->flags & AG_NODE_UNSEEN_LEFT) != 0;
		else
			left = trees->sets[node->set + (uint32_t) x / 64] >> ((uint32_t) x % 64) & 1;
		at = left ? node->left : node->right;
	}
	return (uint32_t) ~at;
}

/* First gradients of a row by the textbook, hessians as the family has them. */
static void
first_gradient(const AgTrainData *data, const AgTrees *trees, uint32_t output, uint32_t row,
			   double positive, double *g, double *h)
{
	double scores[8], p[8];

	memcpy(scores, trees->base, trees->n_outputs * sizeof *scores);
	ag_trees_link(trees, scores, p);
	if (data->problem == AG_PROBLEM_REGRESSION)
	{
		*g = scores[0] - data->target[row];
		*h = 1.0;
		return;
	}
	if (data->problem == AG_PROBLEM_BINARY)
	{
		double weight = data->class_of[row] == 1 ? positive : 1.0;

		*g = weight * (p[1] - (data->class_of[row] == 1));
		*h = weight * p[1] * (1.0 - p[1]);
		return;
	}
	*g = p[output] - (data->class_of[row] == (int32_t) output);
	*h = 2.0 * p[output] * (1.0 - p[output]);
}

/* The first round's leaves: value -eta G/(H + lambda), at least min_child_weight in each, no deeper than allowed. */
static void
check_leaves(int c, double positive, int max_leaves, AgGrowOrder order)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = xgb_params(1);
	AgBoostResult result;
	int n_wrong = 0, n_light = 0, n_shallow = 0;

	bench_init(&bench, 1);
	table_init(&table, 2000, 4, 1, 12, 0.1, cases[c].n_classes, 21);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, cases[c].problem, cases[c].n_classes);
	params.scale_pos_weight = positive;
	params.min_sum_hessian_in_leaf = 7.0;
	params.lambda_l2 = 3.0;
	params.num_leaves = max_leaves;
	params.grow_order = (int) order;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
	{
		const AgTree *tree = result.trees->trees + t;
		double g[64] = {0}, h[64] = {0}, features[8];

		AG_CHECK(tree->depth <= 6 && tree->n_leaves > 4);
		AG_REQUIRE(tree->n_leaves <= 64);
		AG_CHECK(max_leaves == 0 || tree->n_leaves <= (uint32_t) max_leaves);
		n_shallow += max_leaves == 8 && tree->depth == 3;
		for (int64_t i = 0; i < table.n_train; i++)
		{
			double row_g, row_h;
			uint32_t leaf;

			table_features(&table, table.train[i], features);
			leaf = leaf_of(result.trees, t, features);
			first_gradient(&data, result.trees, tree->output, table.train[i], positive, &row_g,
						   &row_h);
			g[leaf] += row_g;
			h[leaf] += row_h;
		}
		for (uint32_t l = 0; l < tree->n_leaves; l++)
		{
			double value = -0.1 * g[l] / (h[l] + 3.0);

			n_light += h[l] < 7.0 * 0.999;
			n_wrong += fabs(result.trees->leaves[tree->first_leaf + l] - value) >
					   1e-5 * (0.1 + fabs(value));
		}
	}
	AG_CHECK_EQ(n_wrong, 0);
	AG_CHECK_EQ(n_light, 0);
	if (max_leaves == 8) /* eight leaves, level by level, make a full tree */
		AG_CHECK_EQ(n_shallow, order == AG_GROW_DEPTHWISE ? (int) result.trees->n_trees : 0);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* A level's nodes use its draw of the tree's features only. */
static void
test_columns(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = xgb_params(12);
	AgBoostResult result;
	int n_many = 0, n_trees_wide = 0;

	bench_init(&bench, 1);
	table_init(&table, 3000, 10, 0, 2, 0.0, 0, 73);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.early_stop_rounds = 0;
	params.feature_fraction_bylevel = 0.2;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
	{
		const AgTree *tree = result.trees->trees + t;
		const AgTreeNode *nodes = result.trees->nodes + tree->first_node;
		uint64_t of_level[8] = {0}, of_tree = 0;
		int depth[64] = {0};

		for (uint32_t i = 0; i < tree->n_nodes; i++)
		{
			of_level[depth[i]] |= UINT64_C(1) << nodes[i].feature;
			of_tree |= UINT64_C(1) << nodes[i].feature;
			if (nodes[i].left >= 0)
				depth[nodes[i].left] = depth[i] + 1;
			if (nodes[i].right >= 0)
				depth[nodes[i].right] = depth[i] + 1;
		}
		for (int d = 0; d < 8; d++)
			n_many += __builtin_popcountll(of_level[d]) > 2;
		n_trees_wide += __builtin_popcountll(of_tree) > 2;
	}
	AG_CHECK_EQ(n_many, 0);
	AG_CHECK(n_trees_wide > 0);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* One level from the rest, unless enable_categorical asks for groups. */
static void
test_categories(void)
{
	for (int groups = 0; groups < 2; groups++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = xgb_params(5);
		AgBoostResult result;
		int n_sets = 0, n_many = 0;

		bench_init(&bench, 1);
		table_init(&table, 3000, 0, 1, 20, 0.0, 0, 5);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		params.splits_categories = groups;
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		/* of the roots no level is absent, so that a set shows what was chosen */
		for (uint32_t t = 0; t < result.trees->n_trees; t++)
		{
			const AgTreeNode *root = result.trees->nodes + result.trees->trees[t].first_node;
			uint64_t left;

			if (!(root->flags & AG_NODE_CATEGORY))
				continue;
			left = result.trees->sets[root->set] & ((UINT64_C(1) << 20) - 1);
			n_sets++;
			n_many += __builtin_popcountll(left) > 1;
		}
		AG_CHECK(n_sets > 0);
		AG_CHECK_EQ(n_many > 0, groups);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

static void
test_refusals(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = xgb_params(5);
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 100, 1, 1, 20, 0.0, 0, 5);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.scale_pos_weight = 2.0;
	AG_CHECK_EQ(ag_boost_train(&bench.ctx, &data, &params, &result), AG_ERR_OPTION);
	AG_CHECK_STR(bench.error.message,
				 "parameter \"scale_pos_weight\" of family XGB needs two classes");
	params = xgb_params(5);
	params.min_gain_to_split = 1e9;
	AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
	AG_CHECK_EQ(result.trees->n_nodes, 0);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* Fails every allocation in turn; each failure must be told and nothing may leak. */
static void
test_allocations(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = xgb_params(2);
	AgBoostResult result;
	AgStatus status = AG_ERR_MEMORY;
	int64_t used;

	bench_init(&bench, 2);
	table_init(&table, 400, 3, 1, 12, 0.1, 2, 21);
	table_bin(&table, &bench.ctx, 32);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.bagging_fraction = 0.8;
	used = atomic_load(&bench.mem.used_bytes);
	for (int64_t n = 0; status != AG_OK && n < 2000; n++)
	{
		atomic_store(&bench.mem.fail_after, n);
		ag_error_init(&bench.error);
		status = ag_boost_train(&bench.ctx, &data, &params, &result);
		atomic_store(&bench.mem.fail_after, -1);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		if (status == AG_OK)
			ag_boost_result_free(&bench.ctx, &result);
		AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	table_end(&table);
	bench_end(&bench);
}

/* Boosting must learn: the target's noise is 0.3 / sqrt(12) = 0.087. */
static void
test_learns(void)
{
	for (int groups = 0; groups < 2; groups++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = xgb_params(300);
		AgBoostResult result;

		bench_init(&bench, 2);
		table_init(&table, 5000, 4, 1, 10, 0.0, 0, 8);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		params.splits_categories = groups;
		AG_REQUIRE(ag_boost_train(&bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK(result.best_value < 0.13);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

int
main(void)
{
	test_threads();
	for (int c = 0; c < 3; c++)
	{
		check_leaves(c, 1.0, 0, AG_GROW_DEPTHWISE);
		check_leaves(c, 1.0, 8, AG_GROW_DEPTHWISE);
		check_leaves(c, 1.0, 8, AG_GROW_LOSSGUIDE);
	}
	check_leaves(1, 5.0, 0, AG_GROW_DEPTHWISE);
	test_columns();
	test_categories();
	test_refusals();
	test_allocations();
	test_learns();
	return ag_unit_done("xgb");
}
