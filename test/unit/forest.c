/*
 * forest.c - RF and XT: splits against an exhaustive search, out-of-bag predictions against the trees, weights against
 * repeated rows, the draws of features and cuts, the same bytes on any number of threads.
 */
#include "forests.h"

/* ---- an exhaustive search ---- */

/* A training row of the reference: bins (ranks are their own), weight, class or target. */
typedef struct Reference
{
	const AgTrainData *data;
	const AgForestParams *params;
	const AgTrees *trees;
	int n_classes;
	bool is_entropy;
	int64_t n_rows;          /* of the whole tree */
	const int64_t *of_class; /* with class_weight: training rows of each class */
} Reference;

static double
row_weight(const Reference *reference, uint32_t row)
{
	double weight = reference->data->weight == NULL ? 1.0 : reference->data->weight[row];

	return reference->of_class == NULL
			   ? weight
			   : weight / (double) reference->of_class[reference->data->class_of[row]];
}

/* Impurity times weight, straight from its definition. */
static double
impurity(const Reference *reference, const uint32_t *rows, int64_t n)
{
	const AgTrainData *data = reference->data;
	double total = 0.0, sum = 0.0, result = 0.0, of_class[8] = {0};

	for (int64_t i = 0; i < n; i++)
	{
		double w = row_weight(reference, rows[i]);

		total += w;
		if (reference->n_classes > 0)
			of_class[data->class_of[rows[i]]] += w;
		else
			sum += w * data->target[rows[i]];
	}
	if (reference->n_classes == 0)
	{
		for (int64_t i = 0; i < n; i++)
			result += row_weight(reference, rows[i]) * pow(data->target[rows[i]] - sum / total, 2);
		return result;
	}
	for (int k = 0; k < reference->n_classes; k++)
	{
		double p = of_class[k] / total;

		result += reference->is_entropy ? (p > 0.0 ? -p * log(p) : 0.0) : p * (1.0 - p);
	}
	return total * result;
}

static bool
is_enough(const Reference *reference, int64_t n_left, int64_t n)
{
	return n_left >= reference->params->min_samples_leaf &&
		   n - n_left >= reference->params->min_samples_leaf;
}

/* The best decrease over all cuts of all features, missing values on either side. -1: there is none. */
static double
best_decrease(const Reference *reference, const uint32_t *rows, int64_t n)
{
	const AgBins *bins = reference->data->bins;
	double before = impurity(reference, rows, n), best = -1.0;
	uint32_t *parted = malloc((size_t) n * sizeof *parted);

	for (int f = 0; f < bins->n_features; f++)
		for (int t = 1; t <= bins->features[f].n_bins; t++)
			for (int missing_left = 0; missing_left < 2; missing_left++)
			{
				int64_t n_left = 0, n_right = 0;
				double after;

				for (int64_t i = 0; i < n; i++)
				{
					int bin = bins->columns[f * bins->column_stride + rows[i]];

					if (bin == 0 ? missing_left : bin <= t)
						parted[n_left++] = rows[i];
					else
						parted[n - ++n_right] = rows[i];
				}
				if (n_left == 0 || n_right == 0 || !is_enough(reference, n_left, n))
					continue;
				after = impurity(reference, parted, n_left) +
						impurity(reference, parted + n_left, n_right);
				best = fmax(best, before - after);
			}
	free(parted);
	return best;
}

static double
cell(const Table *table, uint32_t row, uint32_t feature)
{
	double features[32];

	table_features(table, row, features);
	return features[feature];
}

/* Goes down a tree and compares each node's split with the best one, and each leaf with its rows. */
static void
check_node(const Reference *reference, const Table *table, int32_t at, uint32_t *rows, int64_t n)
{
	const AgTrees *trees = reference->trees;
	double scale = 1e-9 * (1.0 + impurity(reference, rows, n)), best, decrease;
	uint32_t *parted;
	int64_t n_left = 0, n_right = 0;
	bool is_large = n >= reference->params->min_samples_split;

	AG_CHECK(n >= reference->params->min_samples_leaf);
	if (at < 0)
	{
		double value = trees->leaves[trees->trees[0].first_leaf + (uint32_t) ~at];
		double sum = 0.0, total = 0.0;

		if (is_large && impurity(reference, rows, n) > scale)
			AG_CHECK(best_decrease(reference, rows, n) == -1.0);
		for (int64_t i = 0; i < n; i++)
		{
			total += row_weight(reference, rows[i]);
			sum += row_weight(reference, rows[i]) * (reference->n_classes > 0
														 ? reference->data->class_of[rows[i]]
														 : reference->data->target[rows[i]]);
		}
		if (reference->n_classes <= 2)
			AG_CHECK_NEAR(value, sum / total, 1e-6);
		else
			for (uint64_t e = trees->vectors[(int) value]; e < trees->vectors[(int) value + 1]; e++)
			{
				double of_class = 0.0;

				for (int64_t i = 0; i < n; i++)
					if ((uint32_t) reference->data->class_of[rows[i]] == trees->entries[e].output)
						of_class += row_weight(reference, rows[i]);
				AG_CHECK_NEAR(trees->entries[e].share, of_class / total, 1e-6);
			}
		return;
	}
	AG_CHECK(is_large);
	parted = malloc((size_t) n * sizeof *parted);
	for (int64_t i = 0; i < n; i++)
	{
		const AgTreeNode *node = &trees->nodes[at];
		double x = cell(table, rows[i], node->feature);
		bool is_left = x != x ? (node->flags & AG_NODE_MISSING_LEFT) != 0 : x <= node->threshold;

		if (is_left)
			parted[n_left++] = rows[i];
		else
			parted[n - ++n_right] = rows[i];
	}
	AG_CHECK(n_left > 0 && n_right > 0 && is_enough(reference, n_left, n));
	best = best_decrease(reference, rows, n);
	decrease = impurity(reference, rows, n) - impurity(reference, parted, n_left) -
			   impurity(reference, parted + n_left, n_right);
	if (!AG_CHECK(decrease >=
				  best - scale * (reference->data->weight == NULL && reference->of_class == NULL
									  ? 1.0
									  : 1e4)))
		fprintf(stderr, "    %.12g of %.12g, %ld rows\n", decrease, best, (long) n);
	check_node(reference, table, trees->nodes[at].left, parted, n_left);
	check_node(reference, table, trees->nodes[at].right, parted + n_left, n_right);
	free(parted);
}

/* One tree on all rows and features: every split is the best there is, and it ends where none is left. */
static void
test_splits(void)
{
	for (int c = 0; c < 3; c++)
		for (int variant = 0; variant < 12; variant++)
		{
			AgForestParams params = forest_params(1, false);
			Reference reference = {.params = &params, .n_classes = cases[c].n_classes};
			int64_t of_class[8] = {0};
			AgForestResult result;
			AgTrainData data;
			Table table;
			Bench bench;

			bench_init(&bench, 1);
			table_init(&table, variant & 4 ? 600 : 90, 4, 0, 1, variant & 1 ? 0.2 : 0.0,
					   cases[c].n_classes, 100 + (uint64_t) variant);
			table_bin(&table, &bench.ctx, variant & 4 ? 12 : 254);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.bootstrap = false;
			params.max_features = AG_FEATURES_ALL;
			params.min_samples_leaf = variant & 2 ? 4 : 1;
			params.min_samples_split = variant & 2 ? 11 : 2;
			if (c > 0 && variant & 2)
				params.criterion = AG_CRITERION_ENTROPY;
			if (variant & 1)
				data.weight = table.weight;
			if (c > 0 && variant & 8)
			{
				params.class_weight =
					variant & 2 ? AG_CLASS_WEIGHT_SUBSAMPLE : AG_CLASS_WEIGHT_BALANCED;
				for (int64_t i = 0; i < table.n_train; i++)
					of_class[table.class_of[table.train[i]]]++;
				reference.of_class = of_class;
			}
			reference.is_entropy = params.criterion == AG_CRITERION_ENTROPY;
			result = train(&bench, &data, &params);
			reference.data = &data;
			reference.trees = result.trees;
			check_node(&reference, &table, result.trees->n_nodes > 0 ? 0 : ~0, table.train,
					   table.n_train);
			AG_CHECK(result.oob_proba == NULL);
			AG_CHECK_STR(result.note, "");
			ag_forest_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
}

/* ---- the same bytes ---- */

/* Every parameter that has code of its own, one after the other. */
static void
vary(AgForestParams *params, AgTrainData *data, const Table *table, int variant)
{
	switch (variant)
	{
		case 1:
			params->max_leaf_nodes = 40;
			params->criterion =
				data->n_classes > 0 ? AG_CRITERION_ENTROPY : AG_CRITERION_FRIEDMAN_MSE;
			break;
		case 2:
			data->weight = table->weight;
			params->max_features = AG_FEATURES_LOG2;
			params->min_samples_leaf = 0.002;
			if (data->n_classes > 0)
				params->class_weight = AG_CLASS_WEIGHT_BALANCED;
			break;
		case 3:
			params->bootstrap = !params->bootstrap;
			params->max_depth = 6;
			params->max_features = 3;
			params->min_impurity_decrease = 1e-4;
			break;
		case 4:
			params->min_weight_fraction_leaf = 0.01;
			params->max_samples = 0.3;
			params->max_features = 0.8;
			if (data->n_classes > 0)
				params->class_weight = AG_CLASS_WEIGHT_SUBSAMPLE;
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
		for (int variant = 0; variant < 10; variant++)
		{
			AgForestResult results[3];
			AgWriter bytes[3];
			Bench bench[3];
			int n_out = ag_n_outputs(cases[c].n_classes, 0);

			for (int t = 0; t < 3; t++)
			{
				AgForestParams params = forest_params(7, variant >= 5);
				AgTrainData data;
				Table table;

				bench_init(&bench[t], n_threads[t]);
				table_init(&table, 2500, 6, 3, 300, 0.1, cases[c].n_classes, 11);
				table_bin(&table, &bench[t].ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				vary(&params, &data, &table, variant % 5);
				results[t] = train(&bench[t], &data, &params);
				bytes[t] = model_bytes(&bench[t].ctx, results[t].trees);
				AG_CHECK(same_bytes(&bytes[0], &bytes[t]));
				AG_CHECK(memcmp(results[0].valid_proba, results[t].valid_proba,
								(size_t) (data.n_valid * n_out) * sizeof(double)) == 0);
				AG_CHECK((results[t].oob_proba != NULL) == params.bootstrap);
				if (params.bootstrap)
					AG_CHECK(memcmp(results[0].oob_proba, results[t].oob_proba,
									(size_t) (data.n_train * n_out) * sizeof(double)) == 0);
				table_end(&table);
			}
			for (int t = 0; t < 3; t++)
			{
				ag_writer_free(&bytes[t]);
				ag_forest_result_free(&bench[t].ctx, &results[t]);
				bench_end(&bench[t]);
			}
		}
}

/* ---- predictions ---- */

/* The score of one tree alone, as the model without the others would give it. */
static void
tree_output(const AgTrees *trees, uint32_t t, const double *features, double *out)
{
	AgTrees one = *trees;
	AgTree tree = trees->trees[t];
	double scores[8];

	one.n_trees = 1;
	one.trees = &tree;
	one.plan = NULL;
	one.rows = NULL;
	ag_trees_score(&one, features, scores);
	ag_trees_link(&one, scores, out);
	if (trees->link == AG_LINK_IDENTITY)
		out[0] *= trees->n_trees;
}

/*
 * Validation predictions are the model's to the bit. Out-of-bag ones are the mean of some trees: which, follows from
 * the count being about 37 % and from training rows: a forest grown to pure leaves gives rows in the bag their own class.
 */
static void
test_predictions(void)
{
	for (int c = 0; c < 3; c++)
		for (int extra = 0; extra < 2; extra++)
		{
			AgForestParams params = forest_params(40, extra == 1);
			int n_out = ag_n_outputs(cases[c].n_classes, 0);
			double features[16], scores[8], out[8], sum_count = 0.0;
			AgForestResult result;
			AgTrainData data;
			Table table;
			Bench bench;
			bool is_same = true;

			bench_init(&bench, 2);
			table_init(&table, 1500, 5, 2, 600, 0.1, cases[c].n_classes, 3);
			table_bin(&table, &bench.ctx, 60);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.bootstrap = true;
			result = train(&bench, &data, &params);
			AG_CHECK_EQ(result.n_trees, 40);
			AG_CHECK_EQ(result.trees->n_trees, 40);
			for (int64_t i = 0; i < table.n_valid; i++)
			{
				table_features(&table, table.valid[i], features);
				ag_trees_score(result.trees, features, scores);
				ag_trees_link(result.trees, scores, out);
				is_same = is_same && memcmp(out, result.valid_proba + i * n_out,
											(size_t) n_out * sizeof(double)) == 0;
			}
			AG_CHECK(is_same);
			for (int64_t i = 0; i < table.n_train; i++)
				sum_count += result.oob_count[i];
			AG_CHECK_NEAR(sum_count / (double) table.n_train / 40.0, 0.3679, 0.01);
			ag_forest_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
}

/* Which rows a tree has seen: with the same seed, a forest of one leaf a tree tells how often. */
static void
test_oob(void)
{
	for (int c = 0; c < 3; c++)
	{
		enum
		{
			N_TREES = 12
		};
		AgForestParams params = forest_params(N_TREES, false);
		int n_out = ag_n_outputs(cases[c].n_classes, 0);
		AgForestResult result;
		AgTrainData data;
		Table table;
		Bench bench;
		uint8_t *has_seen;

		bench_init(&bench, 1);
		table_init(&table, 400, 4, 1, 5, 0.1, cases[c].n_classes, 5);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		result = train(&bench, &data, &params);
		has_seen = calloc((size_t) table.n_train, N_TREES);
		/* the bootstrap, drawn again */
		for (int t = 0; t < N_TREES; t++)
		{
			uint64_t key = ag_key(ag_key(ag_key(params.seed, (uint64_t) t), 1), 1);

			for (int64_t i = 0; i < table.n_train; i++)
				has_seen[ag_random_below(key, (uint64_t) i, (uint32_t) table.n_train) * N_TREES +
						 (uint32_t) t] = 1;
		}
		for (int64_t i = 0; i < table.n_train; i++)
		{
			double features[16], sums[8] = {0}, out[8];
			uint32_t n = 0;

			table_features(&table, table.train[i], features);
			for (uint32_t t = 0; t < N_TREES; t++)
			{
				if (has_seen[i * N_TREES + t])
					continue;
				tree_output(result.trees, t, features, out);
				n++;
				for (int k = 0; k < n_out; k++)
					sums[k] += out[k];
			}
			AG_CHECK_EQ(result.oob_count[i], n);
			for (int k = 0; k < n_out && n > 0; k++)
				AG_CHECK_NEAR(result.oob_proba[i * n_out + k], sums[k] / n, 1e-12);
			for (int k = 0; k < n_out; k++)
				AG_CHECK(isfinite(result.oob_proba[i * n_out + k]));
		}
		free(has_seen);
		ag_forest_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
}

/* Out-of-bag error is an honest estimate of the error on new rows, small levels of a category included. */
static void
test_honest(void)
{
	AgForestParams params = forest_params(60, false);
	double oob = 0.0, valid = 0.0;
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;

	bench_init(&bench, 2);
	table_init(&table, 4000, 3, 4, 900, 0.0, 0, 21);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	result = train(&bench, &data, &params);
	for (int64_t i = 0; i < table.n_train; i++)
		oob += pow(result.oob_proba[i] - table.target[table.train[i]], 2);
	for (int64_t i = 0; i < table.n_valid; i++)
		valid += pow(result.valid_proba[i] - table.target[table.valid[i]], 2);
	oob = sqrt(oob / (double) table.n_train);
	valid = sqrt(valid / (double) table.n_valid);
	AG_CHECK_NEAR(oob / valid, 1.04, 0.06);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* ---- weights ---- */

/* A weight of 2 is the row twice: without a bootstrap, the same splits. */
static void
test_repetition(void)
{
	for (int c = 0; c < 3; c++)
		for (int extra = 0; extra < 2; extra++)
		{
			AgForestParams params = forest_params(3, extra == 1);
			AgForestResult weighted, repeated;
			AgTrainData data;
			Table table;
			Bench bench;
			double *weight;
			uint32_t *rows;
			int64_t n = 0;
			bool is_same = true;

			bench_init(&bench, 1);
			table_init(&table, 500, 5, 0, 1, 0.1, cases[c].n_classes, 9);
			table_bin(&table, &bench.ctx, 254);
			weight = malloc((size_t) table.n_rows * sizeof *weight);
			rows = malloc((size_t) table.n_rows * 3 * sizeof *rows);
			for (int64_t i = 0; i < table.n_train; i++)
			{
				uint32_t row = table.train[i];

				weight[row] = 1.0 + row % 3;
				for (uint32_t k = 0; k <= row % 3; k++)
					rows[n++] = row;
			}
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.bootstrap = false;
			data.weight = weight;
			weighted = train(&bench, &data, &params);
			data.weight = NULL;
			data.train_rows = rows;
			data.n_train = n;
			repeated = train(&bench, &data, &params);
			AG_CHECK_EQ(weighted.trees->n_nodes, repeated.trees->n_nodes);
			for (uint64_t i = 0; i < weighted.trees->n_nodes && i < repeated.trees->n_nodes; i++)
				is_same = is_same &&
						  weighted.trees->nodes[i].feature == repeated.trees->nodes[i].feature &&
						  weighted.trees->nodes[i].threshold == repeated.trees->nodes[i].threshold;
			AG_CHECK(is_same);
			for (int64_t i = 0; i < table.n_valid; i++)
				AG_CHECK_NEAR(weighted.valid_proba[i], repeated.valid_proba[i], 1e-6);
			free(weight);
			free(rows);
			ag_forest_result_free(&bench.ctx, &weighted);
			ag_forest_result_free(&bench.ctx, &repeated);
			table_end(&table);
			bench_end(&bench);
		}
}

/* Rows of weight 0 might as well not be there; equal weights are none. */
static void
test_odd_weights(void)
{
	AgForestParams params = forest_params(5, false);
	AgForestResult result;
	AgTrainData data;
	AgWriter plain, equal;
	Table table;
	Bench bench;

	bench_init(&bench, 1);
	table_init(&table, 300, 4, 1, 4, 0.0, 2, 19);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	result = train(&bench, &data, &params);
	plain = model_bytes(&bench.ctx, result.trees);
	ag_forest_result_free(&bench.ctx, &result);
	data.weight = table.weight;
	for (int64_t i = 0; i < table.n_rows; i++)
		table.weight[i] = 1e300;
	result = train(&bench, &data, &params);
	equal = model_bytes(&bench.ctx, result.trees);
	AG_CHECK(same_bytes(&plain, &equal));
	ag_writer_free(&plain);
	ag_writer_free(&equal);
	ag_forest_result_free(&bench.ctx, &result);
	/* all of it on rows of class 1: nothing else is ever predicted */
	for (int64_t i = 0; i < table.n_rows; i++)
		table.weight[i] = table.class_of[i] == 1 ? 0.5 + (double) i : 0.0;
	result = train(&bench, &data, &params);
	for (int64_t i = 0; i < table.n_valid; i++)
		AG_CHECK(result.valid_proba[2 * i + 1] == 1.0);
	ag_forest_result_free(&bench.ctx, &result);
	/* one row has it all: most bags haven't drawn it */
	for (int64_t i = 0; i < table.n_rows; i++)
		table.weight[i] = i == table.train[7] ? 1.0 : 0.0;
	result = train(&bench, &data, &params);
	AG_CHECK(result.valid_proba[table.class_of[table.train[7]]] == 1.0);
	ag_forest_result_free(&bench.ctx, &result);
	/* a spread that fixed point can't hold */
	for (int64_t i = 0; i < table.n_rows; i++)
		table.weight[i] = i % 2 ? 1e-300 : 1e300;
	result = train(&bench, &data, &params);
	ag_forest_result_free(&bench.ctx, &result);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.weight[i] = 0.0;
	AG_CHECK_EQ(ag_forest_train(&bench.ctx, &data, &params, &result), AG_ERR_DATA);
	AG_CHECK(result.trees == NULL);
	table_end(&table);
	bench_end(&bench);
}

/* ---- which features, which cuts ---- */

static double
mostly_constant(int64_t row, int f)
{
	return f < 15 ? 1.0 : ag_random_unit(77 + (uint64_t) f, (uint64_t) row);
}

static void
count_roots(const AgTrees *trees, int *counts)
{
	for (uint32_t t = 0; t < trees->n_trees; t++)
		counts[trees->nodes[trees->trees[t].first_node].feature]++;
}

/*
 * One feature a node: each of the 5 that vary is the root's in a fifth of the trees, and the 15 constant ones never stop
 * a tree from growing until its leaves are pure.
 */
static void
test_max_features(void)
{
	AgForestParams params = forest_params(1000, false);
	int counts[20] = {0};
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;

	bench_init(&bench, 2);
	table_numbers(&table, &bench.ctx, 60, 20, mostly_constant, 2);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.max_features = 1e-9;
	result = train(&bench, &data, &params);
	count_roots(result.trees, counts);
	for (int f = 0; f < 20; f++)
		AG_CHECK(f < 15 ? counts[f] == 0 : counts[f] > 150 && counts[f] < 250);
	for (uint64_t l = 0; l < result.trees->n_leaves; l++)
		AG_CHECK(result.trees->leaves[l] == 0.0 || result.trees->leaves[l] == 1.0);
	ag_forest_result_free(&bench.ctx, &result);
	/* all of them: every tree without a bootstrap is the same */
	params.n_estimators = 8;
	params.max_features = AG_FEATURES_ALL;
	params.bootstrap = false;
	result = train(&bench, &data, &params);
	memset(counts, 0, sizeof counts);
	count_roots(result.trees, counts);
	for (int f = 15; f < 20; f++)
		AG_CHECK(counts[f] == 0 || counts[f] == 8);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* Cuts are uniform over values, so the share below a value is its share of the range, and not that of the bins. */
static void
test_random_cuts(void)
{
	AgForestParams params = forest_params(4000, true);
	int below[4] = {0};
	AgForestResult result;
	AgTrainData data;
	double range;
	Table table;
	Bench bench;

	bench_init(&bench, 2);
	table_numbers(&table, &bench.ctx, 200, 1, square, 2);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.train[i] = (uint32_t) i;
	table.n_train = table.n_rows;
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.max_depth = 1;
	result = train(&bench, &data, &params);
	range = 199.0 * 199.0;
	for (uint32_t t = 0; t < result.trees->n_trees; t++)
		for (int q = 0; q < 4; q++)
			below[q] += result.trees->nodes[result.trees->trees[t].first_node].threshold <
						range * (q + 1) / 5.0;
	for (int q = 0; q < 4; q++)
		AG_CHECK_NEAR(below[q] / 4000.0, (q + 1) / 5.0, 0.025);
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

static double
gap(int64_t row, int f)
{
	(void) f;
	return row < 99 ? (double) row : 1000.0 + (double) row;
}

/* Between a node's neighbours the cut lies near the middle of their values. */
static void
test_middle(void)
{
	AgForestParams params = forest_params(1, false);
	AgForestResult result;
	AgTrainData data;
	Table table;
	Bench bench;

	bench_init(&bench, 1);
	table_numbers(&table, &bench.ctx, 200, 1, gap, 2);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.class_of[i] = i >= 20;
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.bootstrap = false;
	/* only the ends are learnt from: everything between could be the cut */
	table.n_train = 0;
	for (uint32_t i = 0; i < 200; i++)
		if (i < 20 || i > 180)
			table.train[table.n_train++] = i;
	data.n_train = table.n_train;
	result = train(&bench, &data, &params);
	AG_CHECK_EQ(result.trees->n_nodes, 1);
	AG_CHECK_NEAR(result.trees->nodes[0].threshold, 600.0, 10.0); /* in the gap */
	ag_forest_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* ---- categories ---- */

/* A label that is a category's odd levels is told by one split; levels and codes beyond the training's go somewhere. */
static void
test_categories(void)
{
	for (int extra = 0; extra < 2; extra++)
		for (int c = 0; c < 3; c++)
		{
			AgForestParams params = forest_params(20, extra == 1);
			double features[1], scores[8], out[8], n_right = 0.0;
			AgForestResult result;
			AgTrainData data;
			Table table;
			Bench bench;

			bench_init(&bench, 1);
			table_init(&table, 2000, 0, 1, 400, 0.05, cases[c].n_classes, 31);
			for (int64_t i = 0; i < table.n_rows; i++)
			{
				uint32_t code = table.codes[i];

				table.class_of[i] = code == UINT32_MAX ? 0 : (int32_t) code % 2;
				table.target[i] = table.class_of[i];
			}
			table_bin(&table, &bench.ctx, 30);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			result = train(&bench, &data, &params);
			for (double code = -1.0; code < 500.0; code++)
			{
				features[0] = code < 0 ? (double) NAN : code;
				ag_trees_score(result.trees, features, scores);
				ag_trees_link(result.trees, scores, out);
				if (code < 29.0)
					n_right += fabs(out[c > 0] - (code < 0 ? 0 : (int) code % 2)) < 0.3;
			}
			AG_CHECK(n_right >= 29.0);
			/* the tail's levels, those unseen in training and those unknown are one */
			features[0] = 450.0;
			ag_trees_score(result.trees, features, scores);
			features[0] = -1.0;
			ag_trees_score(result.trees, features, out);
			AG_CHECK(memcmp(scores, out, result.trees->n_outputs * sizeof(double)) == 0);
			ag_forest_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
}

int
main(void)
{
	test_splits();
	test_threads();
	test_predictions();
	test_oob();
	test_honest();
	test_repetition();
	test_odd_weights();
	test_max_features();
	test_random_cuts();
	test_middle();
	test_categories();
	return ag_unit_done("forest");
}
