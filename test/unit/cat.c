/*
 * cat.c - oblivious trees and target statistics against slow sums over rows; same bytes at any thread count.
 */
#include "booster.h"
#include "engine/model/bootstrap.h"
#include "engine/model/leaves_step.h"
#include "engine/model/level_scan.h"
#include "engine/model/target_stats.h"
#include "engine/model/trees_walk.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

/* The levels of every category, as a fit hands them over. */
static const uint32_t **
codes_of(const Table *table)
{
	const uint32_t **codes =
		calloc((size_t) (table->n_numbers + table->n_categories), sizeof *codes);

	for (int c = 0; c < table->n_categories; c++)
		codes[table->n_numbers + c] = table->codes + c * table->n_rows;
	return codes;
}

/* Every parameter that has code of its own. */
static void
vary(AgBoostParams *params, int variant)
{
	switch (variant)
	{
		case 1:
			params->grow_order = AG_GROW_DEPTHWISE;
			params->min_data_in_leaf = 5;
			params->bootstrap = AG_BOOTSTRAP_BERNOULLI;
			break;
		case 2:
			params->grow_order = AG_GROW_LOSSGUIDE;
			params->num_leaves = 12;
			params->bootstrap = AG_BOOTSTRAP_NO;
			break;
		case 3:
			params->bootstrap = AG_BOOTSTRAP_BAYESIAN;
			params->bagging_temperature = 0.5;
			params->score_function = 0;
			params->feature_fraction_bylevel = 0.5;
			params->one_hot_max_size = 50;
			break;
		case 4:
			params->random_strength = 0.0;
			params->learning_rate = -1.0;
			params->max_depth = 9;
			params->lambda_l2 = 0.0;
			break;
		default:
			break;
	}
}

static void
test_threads(void)
{
	for (int c = 0; c < 3; c++)
		for (int variant = 0; variant < 5; variant++)
		{
			AgWriter bytes[2];
			Bench bench[2];

			for (int t = 0; t < 2; t++)
			{
				Table table;
				AgTrainData data;
				AgBoostParams params = cat_params(5);
				AgBoostResult result;

				bench_init(&bench[t], t == 0 ? 1 : 4);
				table_init(&table, 4000, 12, 3, 40, 0.1, cases[c].n_classes, 11);
				table_bin(&table, &bench[t].ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				data.weight = variant == 2 ? table.weight : NULL;
				vary(&params, variant);
				AG_REQUIRE(ag_cat_train(&bench[t].ctx, &data, NULL, &params, &result) == AG_OK);
				AG_CHECK(ag_trees_check(&bench[t].ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
				AG_CHECK(result.trees->n_nodes > 0);
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

/* More rows than a narrow histogram holds, and more leaves than memory for histograms: both ways to one tree. */
static void
test_wide(void)
{
	AgWriter bytes[2];
	Bench bench[2];

	for (int t = 0; t < 2; t++)
	{
		Table table;
		AgTrainData data;
		AgBoostParams params = cat_params(1);
		AgBoostResult result;

		bench_init(&bench[t], t == 0 ? 1 : 3);
		table_init(&table, 150000, 3, 1, 20, 0.05, 2, 5);
		table_bin(&table, &bench[t].ctx, 254);
		data = table_data(&table, AG_PROBLEM_BINARY, 2);
		params.max_depth = 10;
		AG_REQUIRE(ag_cat_train(&bench[t].ctx, &data, NULL, &params, &result) == AG_OK);
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

/* What training kept as predictions is what the model says of the rows' values, whatever a category became. */
static void
test_predictions(void)
{
	for (int c = 0; c < 3; c++)
		for (int with_codes = 0; with_codes < 2; with_codes++)
		{
			Bench bench;
			Table table;
			AgTrainData data;
			AgBoostParams params = cat_params(25);
			AgBoostResult result;
			const uint32_t **codes;
			int n_out = ag_n_outputs(cases[c].n_classes, 0), n_wrong = 0;
			double features[16], scores[8], out[8];

			bench_init(&bench, 1);
			table_init(&table, 3000, 5, 2, 600, 0.1, cases[c].n_classes, 3);
			table_bin(&table, &bench.ctx, 60);
			codes = codes_of(&table);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.model_size_reg = 0.0;
			AG_REQUIRE(ag_cat_train(&bench.ctx, &data, with_codes ? codes : NULL, &params,
									&result) == AG_OK);
			AG_CHECK(ag_trees_check(&bench.ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
			AG_CHECK(result.trees->n_set_words > 0);
			for (int64_t i = 0; i < table.n_valid; i++)
			{
				table_features(&table, table.valid[i], features);
				ag_trees_score(result.trees, features, scores);
				ag_trees_link(result.trees, scores, out);
				n_wrong += memcmp(out, result.valid_proba + i * n_out,
								  (size_t) n_out * sizeof(double)) != 0;
			}
			AG_CHECK_EQ(n_wrong, 0);
			features[5] = -1.0; /* a level that nobody saw */
			ag_trees_score(result.trees, features, scores);
			AG_CHECK(isfinite(scores[0]));
			free(codes);
			ag_boost_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
}

/* A cut of one column of bins, as the search numbers them. */
static bool
goes_left(const AgBinFeature *feature, int bin, int cut)
{
	if (feature->is_category)
		return bin == cut;
	return cut == feature->n_bins ? bin > 0 : bin <= cut;
}

/* The score of splitting every leaf by (f, cut), by sums over rows; -1 where nothing is parted. */
static double
slow_score(const AgTrainData *data, const double *g, const int *leaf, int n_leaves, int f, int cut,
		   bool is_cosine)
{
	const AgBins *bins = data->bins;
	double sums[64][2][2] = {{{0}}}, num = 0.0, den = 0.0;
	int64_t n_left = 0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];
		bool left =
			goes_left(bins->features + f, bins->columns[f * bins->column_stride + row], cut);

		sums[leaf[i]][left][0] += g[i];
		sums[leaf[i]][left][1] += 1.0;
		n_left += left;
	}
	if (n_left == 0 || n_left == data->n_train)
		return -1.0;
	for (int l = 0; l < n_leaves; l++)
		for (int side = 0; side < 2; side++)
		{
			double v = sums[l][side][0] / (sums[l][side][1] + 3.0);

			num += sums[l][side][0] * v;
			den += v * v * sums[l][side][1];
		}
	return is_cosine ? num / sqrt(den) : num;
}

/* Each level's split is as good as the best that there is, and all nodes of a level are the same. */
static void
check_levels(int c, bool is_cosine)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = cat_params(1);
	AgBoostResult result;
	double *g;
	int *leaf;

	bench_init(&bench, 1);
	table_init(&table, 1500, 4, 1, 2, 0.1, cases[c].n_classes, 17);
	table_bin(&table, &bench.ctx, 40);
	data = table_data(&table, cases[c].problem, cases[c].n_classes);
	params.max_depth = 4;
	params.random_strength = 0.0;
	params.bootstrap = AG_BOOTSTRAP_NO;
	params.score_function = is_cosine;
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	AG_REQUIRE(result.trees->trees[0].n_nodes == 15);
	g = calloc((size_t) table.n_train, sizeof *g);
	leaf = calloc((size_t) table.n_train, sizeof *leaf);
	for (int64_t i = 0; i < table.n_train; i++)
	{
		double p[8];

		ag_trees_link(result.trees, result.trees->base, p);
		g[i] = c == 0   ? p[0] - table.target[table.train[i]]
			   : c == 1 ? p[1] - table.class_of[table.train[i]]
						: p[0] - (table.class_of[table.train[i]] == 0);
	}
	for (int d = 0; d < 4; d++)
	{
		const AgTreeNode *node = result.trees->nodes + (1 << d) - 1;
		const AgBinFeature *feature = table.bins->features + node->feature;
		double best = -1.0, chosen;
		int cut = 0;

		for (int i = 1; i < 1 << d; i++)
			AG_CHECK(node[i].feature == node->feature && node[i].threshold == node->threshold &&
					 node[i].flags == node->flags);
		if (feature->is_category)
		{
			/* the only level on the left, or missing */
			cut = (node->flags & AG_NODE_MISSING_LEFT) ? 0 : 1;
			while (cut > 0 && !(result.trees->sets[node->set] >> (cut - 1) & 1))
				cut++;
		}
		else
			cut = ag_bin_of_number(feature, node->threshold);
		for (int f = 0; f < table.bins->n_features; f++)
			for (int b = table.bins->features[f].is_category ? 0 : 1;
				 b <= table.bins->features[f].n_bins; b++)
			{
				double score = slow_score(&data, g, leaf, 1 << d, f, b, is_cosine);

				best = score > best ? score : best;
			}
		chosen = slow_score(&data, g, leaf, 1 << d, (int) node->feature, cut, is_cosine);
		AG_CHECK(chosen >= best * 0.9995);
		for (int64_t i = 0; i < table.n_train; i++)
		{
			int bin =
				table.bins->columns[node->feature * table.bins->column_stride + table.train[i]];

			leaf[i] = 2 * leaf[i] + !goes_left(feature, bin, cut);
		}
	}
	/* leaves: Newton's step from all rows */
	for (int l = 0; l < 16 && c == 0; l++)
	{
		double sum = 0.0, n = 0.0;

		for (int64_t i = 0; i < table.n_train; i++)
		{
			sum += leaf[i] == l ? g[i] : 0.0;
			n += leaf[i] == l;
		}
		AG_CHECK_NEAR(result.trees->leaves[l], -0.05 * sum / (n + 3.0), 1e-6);
	}
	free(g);
	free(leaf);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* Which leaf of the first tree a row falls into. */
static uint32_t
first_leaf(const AgTrees *trees, const double *features)
{
	int32_t at = 0;

	while (at >= 0)
	{
		const AgTreeNode *node = trees->nodes + at;

		at = ag_node_goes_left(trees, node, features[node->feature]) ? node->left : node->right;
	}
	return (uint32_t) ~at;
}

/* Leaf values by one and by several steps, by hessians and by weights, as sums over rows give them. */
static void
check_leaf_steps(int method, int n_steps)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = cat_params(1);
	AgBoostResult result;
	double value[64] = {0.0}, features[8];

	bench_init(&bench, 2);
	table_init(&table, 1200, 3, 0, 1, 0.1, 2, 37);
	table_bin(&table, &bench.ctx, 40);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	data.weight = table.weight;
	params.max_depth = 3;
	params.learning_rate = 0.5;
	params.leaf_method = method;
	params.leaf_steps = n_steps;
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	AG_REQUIRE(result.trees->trees[0].n_leaves == 8);
	for (int step = 0; step < n_steps; step++)
	{
		double g[8] = {0.0}, h[8] = {0.0}, weights = 0.0;

		for (int64_t i = 0; i < table.n_train; i++)
		{
			uint32_t row = table.train[i], leaf;
			double p, w = table.weight[row];

			table_features(&table, row, features);
			leaf = first_leaf(result.trees, features);
			p = 1.0 / (1.0 + exp(-result.trees->base[0] - value[leaf]));
			g[leaf] += w * (p - table.class_of[row]);
			h[leaf] += method == AG_LEAF_GRADIENT ? w : w * p * (1.0 - p);
			weights += w;
		}
		for (int l = 0; l < 8; l++)
			value[l] -= g[l] / (h[l] + 3.0 * weights / (double) table.n_train);
	}
	for (int l = 0; l < 8; l++)
		AG_CHECK_NEAR(result.trees->leaves[l], 0.5 * value[l], 1e-5);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* 10 steps for two classes, but for small models; 1 for others; as asked for where asked. */
static void
test_automatic_steps(void)
{
	static const struct
	{
		int problem, n_rounds, n_steps, same_as;
	} told[] = {{1, 200, 0, 10}, {1, 199, 0, 1}, {0, 200, 0, 1}, {2, 200, 0, 1}};

	for (size_t t = 0; t < sizeof told / sizeof told[0]; t++)
	{
		AgWriter bytes[2];
		Bench bench;
		Table table;

		bench_init(&bench, 1);
		table_init(&table, 300, 3, 1, 5, 0.0, cases[told[t].problem].n_classes, 41);
		table_bin(&table, &bench.ctx, 20);
		for (int k = 0; k < 2; k++)
		{
			AgTrainData data = table_data(&table, cases[told[t].problem].problem,
										  cases[told[t].problem].n_classes);
			AgBoostParams params = cat_params(told[t].n_rounds);
			AgBoostResult result;

			params.max_depth = 2;
			params.leaf_steps = k == 0 ? told[t].n_steps : told[t].same_as;
			AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
			bytes[k] = model_bytes(&bench.ctx, result.trees);
			ag_boost_result_free(&bench.ctx, &result);
		}
		AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
		ag_writer_free(&bytes[0]);
		ag_writer_free(&bytes[1]);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Absolute errors: leaves are medians, unless something else is asked for. */
static void
test_leaf_methods(void)
{
	AgWriter bytes[3];
	Bench bench;
	Table table;

	bench_init(&bench, 1);
	table_init(&table, 400, 3, 0, 1, 0.0, 0, 41);
	table_bin(&table, &bench.ctx, 20);
	for (int k = 0; k < 3; k++)
	{
		static const AgLeafMethod methods[] = {AG_LEAF_AUTO, AG_LEAF_EXACT, AG_LEAF_GRADIENT};
		AgTrainData data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		AgBoostParams params = cat_params(5);
		AgBoostResult result;

		params.loss_function.choice = 2;
		params.leaf_method = methods[k];
		AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
		bytes[k] = model_bytes(&bench.ctx, result.trees);
		ag_boost_result_free(&bench.ctx, &result);
	}
	AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
	AG_CHECK(!same_bytes(&bytes[0], &bytes[2]));
	for (int k = 0; k < 3; k++)
		ag_writer_free(&bytes[k]);
	table_end(&table);
	bench_end(&bench);
}

/* Statistics, recomputed row by row from all rows before it in the order. */
static void
test_statistics(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgTargetStats *stats;
		const uint32_t **codes;
		uint32_t order[800];
		int n_wrong = 0, per, target = c == 1 ? 1 : 0;
		double mean = 0.0, prior;

		bench_init(&bench, 1);
		table_init(&table, 900, 1, 1, 300, 0.1, cases[c].n_classes, 19);
		table_bin(&table, &bench.ctx, 50);
		codes = codes_of(&table);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		AG_REQUIRE(ag_target_stats_create(&bench.ctx, &data, codes, 2, 1, 42, &stats) == AG_OK);
		per = ag_stats_per_feature(cases[c].problem, cases[c].n_classes);
		AG_CHECK_EQ(stats->bins->n_features, 1 + per);
		AG_CHECK(stats->columns[0].values == NULL && stats->columns[0].source == 0);
		memcpy(order, table.train, (size_t) table.n_train * sizeof *order);
		for (int64_t i = 0; i + 1 < table.n_train; i++)
		{
			int64_t j =
				i + ag_random_below(ag_key(42, 7), (uint64_t) i, (uint32_t) (table.n_train - i));
			uint32_t row = order[i];

			order[i] = order[j];
			order[j] = row;
		}
		for (int64_t i = 0; i < table.n_train; i++)
			mean += table.target[table.train[i]] / (double) table.n_train;
		prior = c == 0 ? mean : c == 1 ? 0.0 : 0.25;
		for (int64_t i = 0; i < table.n_rows; i++)
		{
			bool is_train = i < table.n_train;
			uint32_t row = is_train ? order[i] : table.valid[i - table.n_train];
			const AgStatColumn *column = stats->columns + 1;
			double sum = prior, n = 1.0, value;
			int bin = stats->bins->columns[stats->bins->column_stride + row];

			for (int64_t j = 0; j < (is_train ? i : table.n_train); j++)
				if (table.codes[order[j]] == table.codes[row])
				{
					sum += c == 0 ? table.target[order[j]] : table.class_of[order[j]] == target;
					n += 1.0;
				}
			value = sum / n;
			/* rounding may move it over a cut it lies on */
			n_wrong += bin != ag_bin_of_number(stats->bins->features + 1, value + 1e-9) &&
					   bin != ag_bin_of_number(stats->bins->features + 1, value - 1e-9);
			if (!is_train)
				n_wrong +=
					fabs((table.codes[row] == UINT32_MAX ? column->missing
														 : column->values[table.codes[row]]) -
						 value) > 1e-9;
		}
		AG_CHECK_EQ(n_wrong, 0);
		AG_CHECK_NEAR(stats->columns[1].unseen, prior, 1e-9);
		ag_target_stats_free(&bench.ctx, stats);
		free(codes);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Cuts of a statistic lie between levels: not more intervals than levels, however the training rows' values drift. */
static void
test_cuts(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgTargetStats *stats;

	bench_init(&bench, 1);
	table_init(&table, 2000, 0, 1, 4, 0.0, 2, 29);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	AG_REQUIRE(ag_target_stats_create(&bench.ctx, &data, NULL, 2, 1, 42, &stats) == AG_OK);
	for (int f = 0; f < stats->bins->n_features; f++)
		AG_CHECK(stats->bins->features[f].n_bins > 1 && stats->bins->features[f].n_bins <= 4);
	ag_target_stats_free(&bench.ctx, stats);
	table_end(&table);
	bench_end(&bench);
}

/* Draws keep sums as they are, on average; MVS and Bernoulli draw their share. */
static void
test_bootstrap(void)
{
	for (int kind = AG_BOOTSTRAP_BAYESIAN; kind <= AG_BOOTSTRAP_NO; kind++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = cat_params(1);
		AgBootstrap bootstrap;
		AgGradientRange range;
		AgLoss loss;
		double sum = 0.0, sum_g = 0.0, all_g = 0.0, n_drawn = 0.0;

		bench_init(&bench, 2);
		table_init(&table, 30000, 2, 0, 1, 0.0, 0, 23);
		table_bin(&table, &bench.ctx, 50);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		params.bootstrap = kind;
		params.bagging_fraction = 0.6;
		AG_REQUIRE(ag_loss_create(&bench.ctx, &data, NULL, &loss) == AG_OK);
		AG_REQUIRE(ag_bootstrap_create(&bench.ctx, &data, &params, &bootstrap) == AG_OK);
		AG_REQUIRE(ag_loss_gradients(&bench.ctx, &loss, 0, &range) == AG_OK);
		AG_REQUIRE(ag_bootstrap_draw(&bench.ctx, &bootstrap, &loss, 5, &range) == AG_OK);
		for (int64_t i = 0; i < table.n_train; i++)
		{
			AgGradient drawn = bootstrap.drawn[table.train[i]];

			AG_REQUIRE(drawn.h <= range.max_h && fabsf(drawn.g) <= range.max_g);
			sum += (double) drawn.h;
			n_drawn += drawn.h > 0.0f;
			sum_g += fabs((double) drawn.g);
			all_g += fabs((double) loss.gradients[table.train[i]].g);
		}
		sum /= (double) table.n_train;
		n_drawn /= (double) table.n_train;
		AG_CHECK_NEAR(n_drawn,
					  kind == AG_BOOTSTRAP_BERNOULLI || kind == AG_BOOTSTRAP_MVS ? 0.6 : 1.0, 0.02);
		AG_CHECK_NEAR(sum, kind == AG_BOOTSTRAP_BERNOULLI ? 0.6 : 1.0, 0.03);
		AG_CHECK_NEAR(sum_g / all_g, kind == AG_BOOTSTRAP_BERNOULLI ? 0.6 : 1.0, 0.03);
		ag_bootstrap_free(&bench.ctx, &bootstrap);
		ag_loss_free(&bench.ctx, &loss);
		table_end(&table);
		bench_end(&bench);
	}
}

/* The scan gives the same bytes on every kind of CPU. */
static void
test_scan(void)
{
	for (int is_category = 0; is_category < 2; is_category++)
	{
		AgBinFeature feature = {.n_bins = 61, .is_category = is_category};
		int64_t g[256], h[256];
		double first[2][256] = {{0}}, sums[2][256];

		for (int b = 0; b < 62; b++)
		{
			g[b] = (int64_t) ag_random_below(1, (uint64_t) b, 100000) - 50000;
			h[b] = b % 7 == 3 ? 0 : (int64_t) ag_random_below(2, (uint64_t) b, 60000);
		}
		ag_level_add(AG_CPU_PORTABLE, &feature, g, h, 0.7, first[0], first[1]);
		AG_CHECK(first[0][5] > 0.0 && first[1][5] > 0.0);
		for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
		{
			memset(sums, 0, sizeof sums);
			ag_level_add((AgCpuLevel) level, &feature, g, h, 0.7, sums[0], sums[1]);
			AG_CHECK(memcmp(sums, first, sizeof sums) == 0);
		}
	}
	{
		double sum = 0.0, squares = 0.0;

		for (uint64_t i = 0; i < 20000; i++)
		{
			double x = ag_level_noise(9, i);

			sum += x;
			squares += x * x;
		}
		AG_CHECK_NEAR(sum / 20000, 0.0, 0.03);
		AG_CHECK_NEAR(squares / 20000, 1.0, 0.05);
	}
}

static void
test_refusals(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = cat_params(2);
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 100, 1, 1, 5, 0.0, 0, 5);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.num_leaves = 8;
	AG_CHECK_EQ(ag_cat_train(&bench.ctx, &data, NULL, &params, &result), AG_ERR_OPTION);
	AG_CHECK_STR(bench.error.message,
				 "parameter \"max_leaves\" of family CAT needs \"grow_policy\" \"Lossguide\"");
	params = cat_params(2);
	params.min_data_in_leaf = 2;
	ag_error_init(&bench.error);
	AG_CHECK_EQ(ag_cat_train(&bench.ctx, &data, NULL, &params, &result), AG_ERR_OPTION);
	params = cat_params(2);
	params.leaf_method = AG_LEAF_EXACT;
	ag_error_init(&bench.error);
	AG_CHECK_EQ(ag_cat_train(&bench.ctx, &data, NULL, &params, &result), AG_ERR_OPTION);
	table_end(&table);
	bench_end(&bench);
}

/* Fails every allocation in turn; each failure must be told and nothing may leak. */
static void
test_allocations(void)
{
	for (int policy = 0; policy < 3; policy++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = cat_params(2);
		AgBoostResult result;
		AgStatus status = AG_ERR_MEMORY;
		int64_t used, most;

		bench_init(&bench, 2);
		table_init(&table, 400, 3, 2, 12, 0.1, cases[policy].n_classes, 21);
		table_bin(&table, &bench.ctx, 32);
		data = table_data(&table, cases[policy].problem, cases[policy].n_classes);
		params.grow_order = policy;
		most = ag_cat_memory(&data, &params, 2);
		used = atomic_load(&bench.mem.used_bytes);
		for (int64_t n = 0; status != AG_OK && n < 4000; n++)
		{
			atomic_store(&bench.mem.fail_after, n);
			ag_error_init(&bench.error);
			status = ag_cat_train(&bench.ctx, &data, NULL, &params, &result);
			atomic_store(&bench.mem.fail_after, -1);
			AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
			if (status == AG_OK)
				ag_boost_result_free(&bench.ctx, &result);
			AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
		}
		AG_CHECK_EQ(status, AG_OK);
		AG_CHECK(most > 0 && most < INT64_C(1) << 28);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Categories of many levels, few rows each: statistics must learn them; numbers too. */
static void
test_learns(void)
{
	for (int with_codes = 0; with_codes < 2; with_codes++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = cat_params(300);
		AgBoostResult result;
		const uint32_t **codes;

		bench_init(&bench, 2);
		table_init(&table, 8000, 0, 1, 2000, 0.0, 0, 8);
		for (int64_t i = 0; i < table.n_rows; i++) /* a level's mean is its own affair */
			table.target[i] =
				ag_random_unit(77, table.codes[i]) + 0.1 * ag_random_unit(78, (uint64_t) i);
		table_bin(&table, &bench.ctx, 254);
		codes = codes_of(&table);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		AG_REQUIRE(ag_cat_train(&bench.ctx, &data, with_codes ? codes : NULL, &params, &result) ==
				   AG_OK);
		/* the spread of the levels is 0.29 */
		AG_CHECK(with_codes ? result.best_value < 0.2 : result.best_value > 0.2);
		free(codes);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = cat_params(600);
		AgBoostResult result;

		bench_init(&bench, 2);
		table_init(&table, 5000, 4, 1, 10, 0.0, 0, 8);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
		AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
		AG_CHECK(result.best_value < 0.15);
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Tables that leave nothing to learn, or break sums: finite answers. */
static void
test_hard(void)
{
	static const int64_t n_rows[] = {1, 2, 3, 40};

	for (int r = 0; r < 4; r++)
		for (int c = 0; c < 3; c++)
			for (int shape = 0; shape < 5; shape++)
			{
				Bench bench;
				Table table;
				AgTrainData data;
				AgBoostParams params = cat_params(5);
				AgBoostResult result;

				bench_init(&bench, 1);
				table_init(&table, n_rows[r], 1, 1, 3, shape == 1 ? 1.1 : 0.0, cases[c].n_classes,
						   62);
				for (int64_t i = 0; i < table.n_rows; i++)
				{
					table.target[i] = shape == 2   ? 5.0
									  : shape == 3 ? (i % 2 ? 1e290 : -1e290)
												   : 1e12 + table.target[i];
					table.weight[i] = 0.0;
				}
				table_bin(&table, &bench.ctx, 50);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				data.weight = shape == 4 ? table.weight : NULL;
				params.lambda_l2 = shape % 2 ? 0.0 : 3.0;
				AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
				AG_CHECK(ag_trees_check(&bench.ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
				ag_boost_result_free(&bench.ctx, &result);
				table_end(&table);
				bench_end(&bench);
			}
}

int
main(void)
{
	test_scan();
	test_bootstrap();
	test_statistics();
	test_cuts();
	for (int c = 0; c < 3; c++)
	{
		check_levels(c, true);
		check_levels(c, false);
	}
	check_leaf_steps(AG_LEAF_NEWTON, 1);
	check_leaf_steps(AG_LEAF_NEWTON, 10);
	check_leaf_steps(AG_LEAF_GRADIENT, 1);
	check_leaf_steps(AG_LEAF_GRADIENT, 5);
	test_automatic_steps();
	test_leaf_methods();
	test_predictions();
	test_threads();
	test_wide();
	test_refusals();
	test_allocations();
	test_learns();
	test_hard();
	return ag_unit_done("cat");
}
