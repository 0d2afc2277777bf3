/*
 * combine.c - combinations of categories: their statistics row by row, what they let trees learn, the same answers on every
 * way through a model, same bytes at any thread count and however few combinations are kept.
 */
#include "booster.h"
#include "engine/model/combine_private.h"
#include "engine/model/trees_walk.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 4}};

#define N_LEVELS 12

/* Three categories and a number; the label is a pair's own affair, of which neither alone tells anything. */
static void
table_of_pairs(Table *table, int64_t n_rows, int n_classes, double share_missing)
{
	table_init(table, n_rows, 1, 3, N_LEVELS, share_missing, n_classes, 31);
	for (int64_t i = 0; i < n_rows; i++)
	{
		uint64_t pair = (uint64_t) table->codes[i] * 1000 + table->codes[n_rows + i];
		uint64_t drawn = ag_random_u64(77, pair) % 4;

		table->target[i] = (double) drawn + 0.1 * ag_random_unit(78, (uint64_t) i);
		if (n_classes > 0)
			table->class_of[i] = (int32_t) (drawn % (uint64_t) n_classes);
	}
}

/* The levels, as a fit hands them over. */
static const uint32_t **
codes_of(const Table *table)
{
	const uint32_t **codes =
		calloc((size_t) (table->n_numbers + table->n_categories), sizeof *codes);

	for (int c = 0; c < table->n_categories; c++)
		codes[table->n_numbers + c] = table->codes + c * table->n_rows;
	return codes;
}

static AgBoostParams
pair_params(int n_rounds)
{
	AgBoostParams params = cat_params(n_rounds);

	params.learning_rate = 0.3;
	params.model_size_reg = 0.0;
	return params;
}

/* ---- what they are good for ---- */

static void
test_learns(int grow_order)
{
	for (int c = 0; c < 3; c++)
	{
		double best[2];

		for (int most = 1; most <= 2; most++)
		{
			Bench bench;
			Table table;
			AgTrainData data;
			AgBoostParams params = pair_params(60);
			AgBoostResult result;

			bench_init(&bench, 2);
			table_of_pairs(&table, 4000, cases[c].n_classes, 0.0);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.max_ctr_complexity = most;
			params.grow_order = grow_order;
			params.num_leaves = grow_order == AG_GROW_LOSSGUIDE ? 8 : 0;
			params.max_depth = grow_order == AG_GROW_SYMMETRIC ? 6 : 3;
			AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
			AG_CHECK((result.trees->n_combos > 0) == (most > 1));
			for (uint32_t k = 0; k < result.trees->n_combos; k++)
				AG_CHECK_EQ(result.trees->combos[k].n_members, 2);
			best[most - 1] = result.best_value;
			ag_boost_result_free(&bench.ctx, &result);
			table_end(&table);
			bench_end(&bench);
		}
		AG_CHECK(best[1] < 0.6 * best[0]);
	}
}

/* Combinations of many levels are put off by model_size_reg until they pay. */
static void
test_size_penalty(void)
{
	uint64_t n_keys[2];

	for (int r = 0; r < 2; r++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgBoostParams params = pair_params(20);
		AgBoostResult result;

		bench_init(&bench, 1);
		table_init(&table, 2000, 2, 3, 40, 0.0, 2, 5);
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, AG_PROBLEM_BINARY, 2);
		params.model_size_reg = r == 0 ? 0.0 : 5.0;
		AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
		n_keys[r] = result.trees->n_combo_keys;
		ag_boost_result_free(&bench.ctx, &result);
		table_end(&table);
		bench_end(&bench);
	}
	AG_CHECK(n_keys[1] < n_keys[0]);
}

/* ---- statistics ---- */

/* An order has every row once, and another one where it is another order's turn. */
static void
test_orders(void)
{
	static const int64_t counts[] = {1, 2, 7, 999, 1000, 1001, 1999, 2003, 70001, 300007};

	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
	{
		int64_t n = counts[c], n_moved = 0;
		uint32_t *rows = calloc((size_t) n, 4), *orders = calloc((size_t) n, 8);
		uint8_t *seen = calloc((size_t) n, 1);
		AgTrainData data = {.train_rows = rows, .n_train = n};

		for (int64_t i = 0; i < n; i++)
			rows[i] = (uint32_t) (3 * i);
		for (int p = 0; p < 2; p++)
			ag_stats_order(&data, 5, p, orders + p * n);
		for (int64_t i = 0; i < n; i++)
		{
			n_moved += orders[i] != orders[n + i];
			AG_REQUIRE(orders[n + i] % 3 == 0 && orders[n + i] < 3 * n);
			seen[orders[n + i] / 3] = 1;
		}
		AG_CHECK(memchr(seen, 0, (size_t) n) == NULL);
		AG_CHECK(n < 900 || n_moved > n * 9 / 10);
		free(rows);
		free(orders);
		free(seen);
	}
}

/* A training row's statistic by the rows before it in the permutation's order, other rows' by all. */
static void
test_statistics(void)
{
	for (int c = 0; c < 3; c++)
	{
		Bench bench;
		Table table;
		AgTrainData data;
		AgTargetStats *stats;
		AgCombiner *combiner;
		AgCombined *combined;
		AgCombineParams combining = {2, 2, 0.0, 42, 0};
		AgMembers members = {2, {1, 3}};
		const uint32_t **codes;
		uint32_t order[640];
		int n_wrong = 0, share_above = 0;

		bench_init(&bench, 2);
		table_of_pairs(&table, 800, cases[c].n_classes, 0.1);
		table_bin(&table, &bench.ctx, 50);
		codes = codes_of(&table);
		data = table_data(&table, cases[c].problem, cases[c].n_classes);
		AG_REQUIRE(ag_target_stats_create(&bench.ctx, &data, codes, 2, 3, 42, &stats) == AG_OK);
		AG_REQUIRE(ag_combiner_create(&bench.ctx, &data, codes, stats, &combining, &combiner) ==
				   AG_OK);
		AG_REQUIRE(ag_combined_create(combiner, &members, ag_members_hash(&members), &combined) ==
				   AG_OK);
		AG_REQUIRE(table.n_train == 640);
		for (int p = 0; p < 3; p++)
		{
			ag_stats_order(&data, 42, p, order);
			ag_combiner_begin(combiner, p);
			AG_REQUIRE(ag_combined_permute(combiner, combined) == AG_OK);
			for (int64_t i = 0; i < table.n_rows; i++)
			{
				bool is_train = i < table.n_train;
				uint32_t row = is_train ? order[i] : table.valid[i - table.n_train];

				for (int s = 0; s < combiner->n_stats; s++)
				{
					const AgStatRule *rule = combiner->rules + s;
					bool counts = rule->target == AG_STAT_ROWS;
					double sum = 0.0, n = 0.0, value;
					int bin = ag_combined_bin(combined->bytes[p] + row * combiner->row_bytes, s);

					for (int64_t j = 0; j < (is_train && !counts ? i : table.n_train); j++)
						if (table.codes[order[j]] == table.codes[row] &&
							table.codes[2 * 800 + order[j]] == table.codes[2 * 800 + row])
						{
							sum += counts  ? 0.0
								   : c > 0 ? table.class_of[order[j]] == rule->target
								   : rule->target == AG_STAT_ABOVE
									   ? table.target[order[j]] > rule->border
									   : table.target[order[j]];
							n += 1.0;
						}
					value = ag_stat_value(rule, sum, n);
					share_above += rule->target == AG_STAT_ABOVE && c == 0 && p == 0 &&
								   table.target[row] > rule->border;
					n_wrong += bin != ag_bin_of_number(combined->features + s, value + 1e-9) &&
							   bin != ag_bin_of_number(combined->features + s, value - 1e-9);
				}
			}
		}
		AG_CHECK_EQ(n_wrong, 0);
		AG_CHECK(c > 0 ||
				 (share_above > 200 && share_above < 600)); /* the border is in the middle */
		ag_combined_free(combiner, combined);
		stats->combiner = combiner;
		ag_target_stats_free(&bench.ctx, stats);
		free(codes);
		table_end(&table);
		bench_end(&bench);
	}
}

/* ---- prediction ---- */

/* A combination's code by a look at every key. */
static double
slow_code(const AgTrees *trees, uint32_t c, const double *features)
{
	const AgTreeCombo *combo = &trees->combos[c];
	uint64_t key = AG_COMBO_START;

	for (uint32_t m = 0; m < combo->n_members; m++)
	{
		const AgComboMember *member = &trees->combo_members[combo->first_member + m];
		double x = features[member->feature];

		if (x == x && !(x >= 0.0 && x < member->n_codes) && !member->has_other)
			return -1.0;
		key = ag_key(key, x != x                            ? UINT32_MAX
						  : x >= 0.0 && x < member->n_codes ? (uint32_t) x
															: UINT32_MAX - 1);
	}
	for (uint64_t k = 0; k < combo->n_keys; k++)
		if (trees->combo_keys[combo->first_key + k] == key)
			return (double) k;
	return -1.0;
}

/* The scores by combinations that are features of a wider row. */
static void
slow_scores(const AgTrees *trees, const double *features, double *scores)
{
	double wide[300];
	AgTrees plain = *trees;

	memcpy(wide, features, trees->n_features * sizeof *wide);
	AG_REQUIRE(trees->n_features + trees->n_combos <= 300);
	for (uint32_t c = 0; c < trees->n_combos; c++)
		wide[trees->n_features + c] = slow_code(trees, c, features);
	plain.n_features += trees->n_combos;
	plain.n_combos = 0;
	plain.plan = NULL;
	ag_trees_score(&plain, wide, scores);
}

/* Every way through a model gives the same: walk, plan, many rows, image; and what training said of validation rows. */
static void
check_ways(const AgContext *ctx, AgMem *mem, const Table *table, const AgBoostResult *result,
		   int n_out)
{
	AgWriter writer;
	AgTrees *again;
	void *image;
	int n_wrong = 0;
	double features[16], rows[200][4], told[8], scores[8], many[200][8], out[8];

	ag_writer_init(&writer, mem);
	AG_REQUIRE(ag_trees_write(ctx, result->trees, &writer) == AG_OK);
	image = ag_mem_alloc(mem, writer.size, 1);
	AG_REQUIRE(image != NULL);
	memcpy(image, writer.data, writer.size);
	AG_REQUIRE(ag_trees_read(ctx, image, writer.size, &again) == AG_OK);
	AG_CHECK_EQ(again->n_combos, result->trees->n_combos);
	AG_CHECK(again->plan != NULL && result->trees->plan == NULL);
	AG_REQUIRE(ag_trees_prepare_rows(ctx, again) == AG_OK);
	AG_CHECK(again->rows != NULL);
	for (int64_t i = 0; i < table->n_valid; i++)
	{
		table_features(table, table->valid[i], features);
		slow_scores(result->trees, features, told);
		ag_trees_score(result->trees, features, scores);
		n_wrong += memcmp(told, scores, result->trees->n_outputs * sizeof(double)) != 0;
		ag_trees_link(result->trees, scores, out);
		n_wrong +=
			memcmp(out, result->valid_proba + i * n_out, (size_t) n_out * sizeof(double)) != 0;
	}
	for (int i = 0; i < 200; i++)
	{
		table_features(table, table->valid[i], rows[i]);
		if (i % 5 == 1) /* levels that nobody saw */
			rows[i][1 + i % 3] = i % 2 ? -1.0 : 1e6;
	}
	ag_trees_score_rows(again, 200, rows[0], many[0]);
	for (int i = 0; i < 200; i++)
	{
		const double *from = many[0] + (size_t) i * again->n_outputs;

		slow_scores(again, rows[i], told);
		ag_trees_score(again, rows[i], scores);
		n_wrong += memcmp(told, scores, again->n_outputs * sizeof(double)) != 0;
		n_wrong += memcmp(told, from, again->n_outputs * sizeof(double)) != 0;
	}
	AG_CHECK_EQ(n_wrong, 0);
	ag_trees_free(again);
	ag_mem_free(mem, image);
	ag_writer_free(&writer);
}

static void
test_predictions(int grow_order)
{
	for (int c = 0; c < 3; c++)
		for (int with_codes = 0; with_codes < 2; with_codes++)
		{
			Bench bench;
			Table table;
			AgTrainData data;
			AgBoostParams params = pair_params(24);
			AgBoostResult result;
			const uint32_t **codes;

			bench_init(&bench, 1);
			table_of_pairs(&table, 2000, cases[c].n_classes, 0.1);
			table_bin(&table, &bench.ctx, with_codes ? 8 : 254); /* some levels in the tail */
			codes = codes_of(&table);
			data = table_data(&table, cases[c].problem, cases[c].n_classes);
			params.early_stop_rounds = 0;
			params.grow_order = grow_order;
			params.learning_rate = 0.1;
			AG_REQUIRE(ag_cat_train(&bench.ctx, &data, with_codes ? codes : NULL, &params,
									&result) == AG_OK);
			AG_CHECK(result.trees->n_combos > 0);
			check_ways(&bench.ctx, &bench.mem, &table, &result,
					   cases[c].n_classes > 0 ? cases[c].n_classes : 1);
			ag_boost_result_free(&bench.ctx, &result);
			/* the tail as one level */
			ag_bins_free(table.bins);
			table_bin(&table, &bench.ctx, 8);
			data.bins = table.bins;
			AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
			AG_CHECK(result.trees->n_combos > 0);
			check_ways(&bench.ctx, &bench.mem, &table, &result,
					   cases[c].n_classes > 0 ? cases[c].n_classes : 1);
			ag_boost_result_free(&bench.ctx, &result);
			free(codes);
			table_end(&table);
			bench_end(&bench);
		}
}

/* Combinations that don't fit are refused, each by its own check. */
static void
test_damage(void)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = pair_params(10);
	AgBoostResult result;
	AgTrees *trees;
	AgTreeCombo *combos;
	AgComboMember *members;
	uint64_t *keys;
	AgTreeNode *node;

	bench_init(&bench, 1);
	table_of_pairs(&table, 1000, 2, 0.0);
	table_bin(&table, &bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	AG_REQUIRE(ag_cat_train(&bench.ctx, &data, NULL, &params, &result) == AG_OK);
	trees = result.trees;
	combos = (AgTreeCombo *) trees->combos;
	members = (AgComboMember *) trees->combo_members;
	keys = (uint64_t *) trees->combo_keys;
	node = (AgTreeNode *) trees->nodes;
	while (node->feature < trees->n_features)
		node++;
#define REFUSED(place, value)                                                                      \
	do                                                                                             \
	{                                                                                              \
		__typeof__(place) kept = (place);                                                          \
		(place) = (value);                                                                         \
		AG_CHECK_EQ(ag_trees_check(&bench.ctx, trees, AG_ERR_CORRUPT), AG_ERR_CORRUPT);            \
		(place) = kept;                                                                            \
		AG_CHECK_EQ(ag_trees_check(&bench.ctx, trees, AG_ERR_CORRUPT), AG_OK);                     \
	} while (0)
	REFUSED(combos[0].n_members, 0);
	REFUSED(combos[0].n_members, UINT32_MAX);
	REFUSED(combos[0].n_members, 1);
	REFUSED(combos[0].n_keys, UINT64_MAX);
	REFUSED(combos[0].n_keys, combos[0].n_keys - 1);
	REFUSED(combos[0].first_key, 1);
	REFUSED(combos[0].first_member, 1);
	REFUSED(members[0].feature, trees->n_features);
	REFUSED(members[0].has_other, 2);
	REFUSED(members[0].zero, 1);
	REFUSED(keys[1], keys[0]);
	REFUSED(node->feature, trees->n_features + trees->n_combos);
	REFUSED(node->flags, 0);
	REFUSED(trees->n_combo_keys, trees->n_combo_keys + 1);
	REFUSED(trees->n_combo_members, trees->n_combo_members + 1);
	ag_boost_result_free(&bench.ctx, &result);
	table_end(&table);
	bench_end(&bench);
}

/* ---- the same bytes ---- */

static AgWriter
bytes_of(Bench *bench, const Table *table, int c, const AgBoostParams *params)
{
	AgTrainData data = table_data(table, cases[c].problem, cases[c].n_classes);
	AgBoostResult result;
	AgWriter bytes;

	AG_REQUIRE(ag_cat_train(&bench->ctx, &data, NULL, params, &result) == AG_OK);
	AG_CHECK(result.trees->n_combos > 0);
	bytes = model_bytes(&bench->ctx, result.trees);
	ag_boost_result_free(&bench->ctx, &result);
	return bytes;
}

static void
test_threads(void)
{
	static const int n_threads[] = {1, 2, 5};

	for (int c = 0; c < 3; c++)
	{
		AgWriter bytes[3];
		Bench bench[3];

		for (int t = 0; t < 3; t++)
		{
			Table table;
			AgBoostParams params = pair_params(8);

			bench_init(&bench[t], n_threads[t]);
			table_of_pairs(&table, 6000, cases[c].n_classes, 0.1);
			table_bin(&table, &bench[t].ctx, 254);
			params.feature_fraction_bylevel = c == 1 ? 0.7 : 1.0;
			params.grow_order = c == 2 ? AG_GROW_DEPTHWISE : AG_GROW_SYMMETRIC;
			bytes[t] = bytes_of(&bench[t], &table, c, &params);
			table_end(&table);
		}
		AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
		AG_CHECK(same_bytes(&bytes[0], &bytes[2]));
		for (int t = 0; t < 3; t++)
		{
			ag_writer_free(&bytes[t]);
			bench_end(&bench[t]);
		}
	}
}

/* Combinations that had to go and were made anew are the same ones. */
static void
test_kept(void)
{
	AgWriter bytes[2];
	Bench bench[2];

	for (int t = 0; t < 2; t++)
	{
		Table table;
		AgBoostParams params = pair_params(12);

		bench_init(&bench[t], 1);
		table_init(&table, 1500, 1, 8, 5, 0.0, 2, 12);
		table_bin(&table, &bench[t].ctx, 254);
		params.most_combinations = t == 0 ? 0 : 34; /* of 154 */
		params.random_strength = 20.0;
		bytes[t] = bytes_of(&bench[t], &table, 1, &params);
		table_end(&table);
	}
	AG_CHECK(same_bytes(&bytes[0], &bytes[1]));
	for (int t = 0; t < 2; t++)
	{
		ag_writer_free(&bytes[t]);
		bench_end(&bench[t]);
	}
}

/* Fails every allocation in turn; each failure must be told and nothing may leak. */
static void
test_allocations(int grow_order)
{
	Bench bench;
	Table table;
	AgTrainData data;
	AgBoostParams params = pair_params(2);
	AgBoostResult result;
	AgStatus status = AG_ERR_MEMORY;
	int64_t used, n = 0;

	bench_init(&bench, 1);
	table_of_pairs(&table, 300, 2, 0.1);
	table_bin(&table, &bench.ctx, 32);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	params.max_depth = 4;
	params.grow_order = grow_order;
	used = atomic_load(&bench.mem.used_bytes);
	for (; status != AG_OK && n < 4000; n++)
	{
		atomic_store(&bench.mem.fail_after, n);
		ag_error_init(&bench.error);
		status = ag_cat_train(&bench.ctx, &data, NULL, &params, &result);
		atomic_store(&bench.mem.fail_after, -1);
		AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
		if (status == AG_OK)
		{
			AG_CHECK(result.trees->n_combos > 0);
			ag_boost_result_free(&bench.ctx, &result);
		}
		AG_CHECK_EQ(atomic_load(&bench.mem.used_bytes), used);
	}
	AG_CHECK_EQ(status, AG_OK);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	test_orders();
	test_statistics();
	for (int order = AG_GROW_DEPTHWISE; order <= AG_GROW_SYMMETRIC; order++)
		test_learns(order);
	test_size_penalty();
	test_predictions(AG_GROW_SYMMETRIC);
	test_predictions(AG_GROW_DEPTHWISE);
	test_damage();
	test_threads();
	test_kept();
	test_allocations(AG_GROW_SYMMETRIC);
	test_allocations(AG_GROW_DEPTHWISE);
	return ag_unit_done("combine");
}
