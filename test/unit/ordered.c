/*
 * ordered.c - ordered boosting against a slow and obvious form of it: every body's model by sums over rows, and every level's
 * split against all cuts.
 */
#include "booster.h"
#include "engine/base/maths.h"
#include "engine/model/bootstrap.h"
#include "engine/model/leaves_step.h"
#include "engine/model/target_stats.h"

#define MOST_BODIES 24
#define RATE 0.3
#define L2 3.0

/* The models of bodies, row by row. */
typedef struct Slow
{
	const Table *table;
	bool is_binary;
	int n_bodies;
	int64_t ends[MOST_BODIES + 1];
	int64_t *place_of; /* [n_rows] in the order */
	double *scores;    /* [n_bodies][n_rows] */
	int *leaf;         /* [n_rows] of the tree in work */
} Slow;

static void
slow_init(Slow *slow, const Table *table, const AgTrainData *data, uint64_t seed, double base)
{
	uint32_t *order = calloc((size_t) table->n_train, sizeof *order);
	int64_t first = table->n_train / 50 < 100 ? table->n_train / 50 : 100;

	*slow = (Slow){.table = table, .is_binary = data->problem == AG_PROBLEM_BINARY};
	slow->place_of = calloc((size_t) table->n_rows, sizeof *slow->place_of);
	slow->leaf = calloc((size_t) table->n_rows, sizeof *slow->leaf);
	ag_stats_order(data, seed, 0, order);
	for (int64_t i = 0; i < table->n_train; i++)
		slow->place_of[order[i]] = i;
	for (slow->ends[0] = first; slow->ends[slow->n_bodies] < table->n_train; slow->n_bodies++)
		slow->ends[slow->n_bodies + 1] = 2 * slow->ends[slow->n_bodies] < table->n_train
											 ? 2 * slow->ends[slow->n_bodies]
											 : table->n_train;
	slow->scores = calloc((size_t) (slow->n_bodies * table->n_rows), sizeof(double));
	for (int64_t i = 0; i < slow->n_bodies * table->n_rows; i++)
		slow->scores[i] = base;
	free(order);
}

static void
slow_end(Slow *slow)
{
	free(slow->place_of);
	free(slow->leaf);
	free(slow->scores);
}

/* What body b's model lacks at a row: gradient and hessian. */
static void
slow_gradient(const Slow *slow, int b, uint32_t row, double *g, double *h)
{
	double score = slow->scores[b * slow->table->n_rows + row];
	double p = slow->is_binary ? ag_sigmoid(score) : score;

	*g = p - (slow->is_binary ? slow->table->class_of[row] : slow->table->target[row]);
	*h = slow->is_binary ? p * (1.0 - p) : 1.0;
}

/* The merit of splitting all leaves by a number's cut; missing values are left of all, alone with the last. -1: none is parted. */
static double
slow_merit(const Slow *slow, int n_leaves, int f, int cut, bool is_cosine)
{
	const Table *table = slow->table;
	const AgBins *bins = table->bins;
	double num = 0.0, den = 0.0;
	int64_t n_left = 0;

	for (int b = 0; b < slow->n_bodies; b++)
	{
		double body[16][2][2] = {{{0}}}, tail[16][2][2] = {{{0}}};

		for (int64_t i = 0; i < table->n_train; i++)
		{
			uint32_t row = table->train[i];
			int bin = bins->columns[f * bins->column_stride + row];
			bool left = cut == bins->features[f].n_bins ? bin == 0 : bin <= cut;
			double g, h;

			n_left += b == 0 && left;
			if (slow->place_of[row] >= slow->ends[b + 1])
				continue;
			slow_gradient(slow, b, row, &g, &h);
			(slow->place_of[row] < slow->ends[b] ? body : tail)[slow->leaf[row]][left][0] += g;
			(slow->place_of[row] < slow->ends[b] ? body : tail)[slow->leaf[row]][left][1] += 1.0;
		}
		for (int l = 0; l < n_leaves; l++)
			for (int side = 0; side < 2; side++)
			{
				double v = body[l][side][0] / (body[l][side][1] + L2);

				num += v * tail[l][side][0];
				den += v * v * tail[l][side][1];
			}
	}
	if (n_left == 0 || n_left == table->n_train)
		return -1e300;
	return !is_cosine ? num : den > 0.0 ? num / sqrt(den) : 0.0;
}

/* The tree's split of a level is as good as any, and rows go on by it. */
static void
check_level(Slow *slow, const AgTrees *trees, const AgTree *tree, int depth, bool is_cosine)
{
	const Table *table = slow->table;
	const AgBins *bins = table->bins;
	const AgTreeNode *node = trees->nodes + tree->first_node + (1 << depth) - 1;
	const AgBinFeature *feature = bins->features + node->feature;
	int cut = isinf(node->threshold) ? feature->n_bins : ag_bin_of_number(feature, node->threshold);
	double best = -1e300, chosen = -1e300;

	/* missing values are less than any number, or, with the last cut, alone */
	bool is_alone = isinf(node->threshold) && !(node->flags & AG_NODE_MISSING_LEFT);

	for (int f = 0; f < bins->n_features; f++)
		for (int c = 1; c <= bins->features[f].n_bins; c++)
		{
			double merit = slow_merit(slow, 1 << depth, f, c, is_cosine);

			best = merit > best ? merit : best;
			if (f == (int) node->feature && c == cut)
				chosen = merit;
		}
	AG_CHECK(chosen >= best - 0.0005 * fabs(best));
	AG_CHECK(is_alone == (cut == feature->n_bins));
	for (int64_t i = 0; i < table->n_train; i++)
	{
		uint32_t row = table->train[i];
		int bin = bins->columns[node->feature * bins->column_stride + row];

		slow->leaf[row] = 2 * slow->leaf[row] + (is_alone ? bin == 0 : bin > cut);
	}
}

/* Every body's model takes the tree with its own rows' values. */
static void
slow_add(Slow *slow, int n_leaves)
{
	const Table *table = slow->table;

	for (int b = 0; b < slow->n_bodies; b++)
	{
		double sums[16][2] = {{0}};

		for (int64_t i = 0; i < table->n_train; i++)
		{
			uint32_t row = table->train[i];
			double g, h;

			if (slow->place_of[row] >= slow->ends[b])
				continue;
			slow_gradient(slow, b, row, &g, &h);
			sums[slow->leaf[row]][0] += g;
			sums[slow->leaf[row]][1] += h;
		}
		for (int64_t i = 0; i < table->n_train; i++)
		{
			const double *sum = sums[slow->leaf[table->train[i]]];

			if (sum[1] > 0.0)
				slow->scores[b * table->n_rows + table->train[i]] -= RATE * sum[0] / (sum[1] + L2);
		}
	}
	AG_CHECK(n_leaves <= 16);
}

static AgBoostParams
plain_params(int n_rounds, bool is_cosine)
{
	AgBoostParams params = cat_params(n_rounds);

	params.boosting = 1; /* Ordered */
	params.max_depth = 3;
	params.learning_rate = RATE;
	params.random_strength = 0.0;
	params.n_permutations = 1;
	params.bootstrap = AG_BOOTSTRAP_NO;
	params.score_function = is_cosine;
	return params;
}

/* Trees, one after the other: the models of bodies must be right for the next tree's splits to be. */
static void
check_trees(bool is_binary, bool is_cosine)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = plain_params(4, is_cosine);
	AgBoostResult result;
	Slow slow;

	bench_init(&bench, 2);
	table_init(&table, 700, 3, 0, 2, 0.1, is_binary ? 2 : 0, 23);
	table_bin(&table, &bench.ctx, 20);
	data = table_data(&table, is_binary ? AG_PROBLEM_BINARY : AG_PROBLEM_REGRESSION,
					  is_binary ? 2 : 0);
	data.n_valid = 0;
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	AG_REQUIRE(result.trees->n_trees == 4);
	slow_init(&slow, &table, &data, params.seed, result.trees->base[0]);
	AG_CHECK(slow.n_bodies > 4);
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
	{
		const AgTree *tree = result.trees->trees + t;

		AG_REQUIRE(tree->n_nodes == 7);
		memset(slow.leaf, 0, (size_t) table.n_rows * sizeof *slow.leaf);
		for (int depth = 0; depth < 3; depth++)
			check_level(&slow, result.trees, tree, depth, is_cosine);
		slow_add(&slow, 8);
	}
	slow_end(&slow);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

static const struct
{
	AgProblem problem;
	int n_classes;
} cases[] = {{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 3}};

/* With categories, their combinations, weights and draws: the same bytes at any number of threads, and not Plain's. */
static void
test_threads(void)
{
	for (int c = 0; c < 3; c++)
	{
		AgWriter bytes[3];
		Bench bench[3];

		for (int t = 0; t < 3; t++)
		{
			Table table;
			AgTrainData data;
			AgBoostParams params = cat_params(4);
			AgBoostResult result;
			const uint32_t **codes;

			bench_init(&bench[t], t == 1 ? 4 : 1);
			table_init(&table, 1500, 3, 3, 30, 0.1, cases[c].n_classes, 11);
			table_bin(&table, &bench[t].ctx, 60);
			codes = calloc(6, sizeof *codes);
			for (int k = 0; k < 3; k++)
				codes[3 + k] = table.codes + k * table.n_rows;
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			data.weight = table.weight;
			params.boosting = t < 2;
			AG_REQUIRE(ag_cat_train(&bench[t].ctx, &data, codes, &params, &result) == AG_OK);
			AG_CHECK(ag_trees_check(&bench[t].ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
			AG_CHECK(result.trees->n_nodes > 0);
			bytes[t] = model_bytes(&bench[t].ctx, result.trees);
			ag_boost_result_free(&bench[t].ctx, &result);
			free(codes);
			table_end(&table);
		}
		AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
		AG_CHECK(!same_bytes(&bytes[0], &bytes[2]));
		for (int t = 0; t < 3; t++)
		{
			ag_writer_free(&bytes[t]);
			bench_end(&bench[t]);
		}
	}
}

/* Fails every allocation in turn; each failure must be told and nothing may leak. Then 1 and 2 rows. */
static void
test_limits(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = plain_params(2, true);
	AgBoostResult result;
	int64_t used, n_told = 0;

	bench_init(&bench, 1);
	table_init(&table, 120, 2, 1, 8, 0.1, 2, 9);
	table_bin(&table, &bench.ctx, 20);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	used = atomic_load(&bench.mem.used_bytes);
	for (int64_t n = 0;; n++)
	{
		AgStatus status;

		atomic_store(&bench.mem.fail_after, n);
		status = ag_cat_train(&bench.ctx, &data, NULL, &params, &result);
		atomic_store(&bench.mem.fail_after, -1);
		if (status == AG_OK)
			break;
		n_told += status == AG_ERR_MEMORY;
		AG_REQUIRE(n_told == n + 1 && atomic_load(&bench.mem.used_bytes) == used);
	}
	AG_CHECK(n_told > 50);
	ag_boost_result_free(&bench.ctx, &result);
	for (data.n_train = 1; data.n_train <= 2; data.n_train++)
	{
		AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
		AG_CHECK(isfinite(result.trees->base[0]));
		ag_boost_result_free(&bench.ctx, &result);
	}
	AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
	table_end(&table);
	bench_end(&bench);
}

/* Leaves of percentiles have no part in it. */
static void
test_refusals(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = plain_params(2, true);
	AgBoostResult result;

	bench_init(&bench, 1);
	table_init(&table, 200, 2, 0, 2, 0.0, 0, 9);
	table_bin(&table, &bench.ctx, 20);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.loss_function.choice = 2; /* MAE */
	AG_CHECK_EQ(ag_cat_train(&bench.ctx, &data, NULL, &params, &result), AG_ERR_OPTION);
	params.leaf_method = AG_LEAF_GRADIENT;
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	check_trees(false, true);
	check_trees(false, false);
	check_trees(true, true);
	test_threads();
	test_limits();
	test_refusals();
	return ag_unit_done("ordered");
}
