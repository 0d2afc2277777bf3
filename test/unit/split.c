/*
 * split.c - the search for splits and the growth of trees, against every cut tried out row by row.
 */
#include <limits.h>

#include "booster.h"
#include "engine/model/grow.h"
#include "engine/model/split_scan.h"

static const double LESS =
	1e-9; /* relative: two ways to compute a score differ by their rounding */

/* Rows of one node, and what they sum to. */
typedef struct Node
{
	const AgBins *bins;
	const AgRowList *list;
	int64_t n;
	const AgSplitRules *rules;
	double parent_output;
} Node;

typedef struct Cut
{
	int64_t g, h, n; /* left */
	int64_t sum_g, sum_h;
	long double score;
	bool is_allowed;
} Cut;

static long double
side_score(const Node *node, double g, double h, double l2, int64_t n)
{
	const AgSplitRules *r = node->rules;
	long double size = fabs(g) - r->l1, soft, output;

	soft = size > 0 ? (g < 0 ? -size : size) : 0;
	output = -soft / (h + l2);
	if (r->max_step > 0 && output > r->max_step)
		output = r->max_step;
	if (r->max_step > 0 && output < -r->max_step)
		output = -r->max_step;
	if (r->path_smooth > 0)
	{
		long double share = n / (long double) r->path_smooth;

		output = output * share / (share + 1) + node->parent_output / (share + 1);
	}
	return -(2 * soft * output + (h + l2) * output * output);
}

/* Tries a split on the node's rows. */
static Cut
try_split(const Node *node, const AgSplit *split)
{
	const AgSplitRules *r = node->rules;
	const uint8_t *column = node->bins->columns + split->feature * node->bins->column_stride;
	double l2 = r->l2 + (split->has_cat_l2 ? r->cat_l2 : 0.0);
	Cut cut = {0};

	for (int64_t i = 0; i < node->n; i++)
	{
		int64_t g = ag_packed_g(node->list->grads[node->list->ids[i]]);
		int64_t h = ag_packed_h(node->list->grads[node->list->ids[i]]);
		bool is_left = ag_split_goes_left(split, column[node->list->ids[i]]);

		cut.sum_g += g;
		cut.sum_h += h;
		cut.g += is_left ? g : 0;
		cut.h += is_left ? h : 0;
		cut.n += is_left;
	}
	cut.is_allowed = cut.n >= r->min_rows && node->n - cut.n >= r->min_rows &&
					 (double) cut.h >= r->min_h && (double) (cut.sum_h - cut.h) >= r->min_h;
	if (cut.is_allowed)
		cut.score = side_score(node, (double) cut.g, (double) cut.h, l2, cut.n) +
					side_score(node, (double) (cut.sum_g - cut.g), (double) (cut.sum_h - cut.h), l2,
							   node->n - cut.n);
	return cut;
}

/* Best score over all cuts of the numeric features; -1 when none is allowed. */
static long double
best_of_numbers(const Node *node, const AgSplit *found, int *n_ties_missed)
{
	long double best = -1;
	Cut chosen = {0};

	if (found->feature >= 0)
		chosen = try_split(node, found);
	for (int f = 0; f < node->bins->n_features; f++)
		for (int t = 1; !node->bins->features[f].is_category && t <= node->bins->features[f].n_bins;
			 t++)
			for (int left = 0; left < 2; left++)
			{
				AgSplit split = {.feature = f, .bin = t, .missing_left = left};
				Cut cut = try_split(node, &split);

				if (!cut.is_allowed)
					continue;
				if (cut.score > best)
					best = cut.score;
				if (found->feature == f && t < found->bin && cut.g == chosen.g && cut.h == chosen.h)
					++*n_ties_missed;
			}
	return best;
}

/* Best score over each level of the category features against the rest. */
static long double
best_of_levels(const Node *node)
{
	long double best = -1;

	for (int f = 0; f < node->bins->n_features; f++)
		for (int b = 0; node->bins->features[f].is_category && b <= node->bins->features[f].n_bins;
			 b++)
		{
			AgSplit split = {.feature = f, .is_category = true};
			Cut cut;

			split.left_bins[b >> 6] = UINT64_C(1) << (b & 63);
			cut = try_split(node, &split);
			if (cut.is_allowed && cut.score > best)
				best = cut.score;
		}
	return best;
}

/* Fills a list with gradients that have structure; h_kind: 0 all 1, 1 all alike but rounded, 2 wide. */
static void
make_list(const Table *table, int64_t n, int h_kind, AgRowList *list, AgQuantum *quantum)
{
	*quantum = (AgQuantum){.g = 1.0, .h = 1.0, .min_h = UINT32_MAX};
	list->ids = malloc((size_t) n * sizeof(uint32_t));
	list->grads = malloc((size_t) n * sizeof(uint32_t));
	for (int64_t i = 0; i < n; i++)
	{
		uint64_t bits = ag_random_u64(9, (uint64_t) i);
		int32_t g = (int32_t) ((table->target[i] - 1.5) * 6000.0) + (int32_t) (bits % 4000);
		uint32_t h = h_kind == 0   ? 1
					 : h_kind == 1 ? 20000 + (bits >> 40 & 1)
								   : (uint32_t) (bits >> 32) % 32768 * (bits >> 20 & 1);

		g = g > AG_QUANTUM_MAX ? AG_QUANTUM_MAX : g < -AG_QUANTUM_MAX ? -AG_QUANTUM_MAX : g;
		list->ids[i] = (uint32_t) i;
		list->grads[i] = (uint32_t) g << 16 | h;
		quantum->sum_g += g;
		quantum->sum_h += h;
		quantum->min_h = h < quantum->min_h ? h : quantum->min_h;
		quantum->max_h = h > quantum->max_h ? h : quantum->max_h;
	}
}

static AgSplit
find(const AgContext *ctx, const Node *node, const AgQuantum *quantum)
{
	AgHistBuilder builder;
	AgHist hist;
	AgSplit best = ag_split_none();
	AgSplitNode search = {.hist = &hist,
						  .ids = node->list->ids,
						  .n_rows = node->n,
						  .sum_g = quantum->sum_g,
						  .sum_h = quantum->sum_h,
						  .output = node->parent_output,
						  .key = 4};

	AG_REQUIRE(ag_hist_builder_create(ctx, node->bins, &builder) == AG_OK);
	hist.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
	AG_REQUIRE(ag_hist_build(&builder, node->list, node->n, &hist) == AG_OK);
	for (int f = node->bins->n_features - 1; f >= 0; f--) /* any order gives the same */
		ag_split_search(node->bins, &builder.layout, node->rules, &search, &f, 1, &best);
	free(hist.cells);
	ag_hist_builder_free(ctx, &builder);
	return best;
}

static AgBoostParams
case_params(int variant)
{
	AgBoostParams params = gbm_params(1);

	params.min_data_in_leaf = variant % 3 == 0 ? 1 : variant % 3 == 1 ? 20 : 90;
	params.max_cat_to_onehot = 254;
	params.lambda_l2 = variant & 1 ? 500.0 : 0.0;
	params.min_sum_hessian_in_leaf = variant == 4 ? 300.0 : 1e-3;
	if (variant >= 5)
	{
		params.lambda_l1 = 2000.0;
		params.max_delta_step = variant == 6 ? 0.5 : 0.0;
		params.path_smooth = variant == 7 ? 10.0 : 0.0;
	}
	return params;
}

static void
test_search(int64_t n, int h_kind, int variant, double share_missing)
{
	Bench bench;
	Table table;
	AgRowList list;
	AgQuantum quantum;
	AgSplitRules rules;
	AgBoostParams params = case_params(variant);
	Node node;
	AgSplit found;
	long double best, of_levels;
	int n_ties_missed = 0;

	bench_init(&bench, 1);
	table_init(&table, n, 4, 2, 6, share_missing, 0, 100 + (uint64_t) n);
	table_bin(&table, &bench.ctx, 40);
	make_list(&table, n, h_kind, &list, &quantum);
	ag_split_rules_init(&rules, &params, &quantum, 1.0);
	node = (Node){table.bins, &list, n, &rules, 0.25};
	found = find(&bench.ctx, &node, &quantum);
	best = best_of_numbers(&node, &found, &n_ties_missed);
	of_levels = best_of_levels(&node);
	best = of_levels > best ? of_levels : best;
	AG_CHECK_EQ(n_ties_missed, 0);
	if (found.feature < 0)
	{
		long double bar =
			side_score(&node, (double) quantum.sum_g, (double) quantum.sum_h, rules.l2, n);

		AG_CHECK(best < 0 || best <= bar * (1 + LESS));
	}
	else
	{
		Cut cut = try_split(&node, &found);

		AG_CHECK(cut.is_allowed);
		AG_CHECK_EQ(cut.g, found.left_g);
		AG_CHECK_EQ(cut.h, found.left_h);
		AG_CHECK(fabsl(cut.score - best) <= fabsl(best) * LESS);
	}
	free(list.ids);
	free(list.grads);
	table_end(&table);
	bench_end(&bench);
}

/* Eight cuts at a time, at every level: the bits of the obvious loop, with counts and without. */
static void
test_packed(int64_t n, int h_kind, int variant, double share_missing)
{
	Bench bench;
	Table table;
	AgRowList list;
	AgQuantum quantum;
	AgSplitRules rules;
	AgBoostParams params = case_params(variant);
	AgHistBuilder builder;
	AgHist hist;
	AgSplitNode node = {.n_rows = n};

	bench_init(&bench, 1);
	table_init(&table, n, 6, 0, 1, share_missing, 0, 200 + (uint64_t) n);
	table_bin(&table, &bench.ctx, 254);
	make_list(&table, n, h_kind, &list, &quantum);
	ag_split_rules_init(&rules, &params, &quantum, 1.0);
	node.ids = list.ids;
	node.sum_g = quantum.sum_g;
	node.sum_h = quantum.sum_h;
	AG_REQUIRE(ag_hist_builder_create(&bench.ctx, table.bins, &builder) == AG_OK);
	hist.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
	AG_REQUIRE(ag_hist_build(&builder, &list, n, &hist) == AG_OK);
	for (int f = 0; f < table.bins->n_features; f++)
		for (int counted = 0; counted < 2; counted++)
			for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
			{
				int n_bins = table.bins->features[f].n_bins;
				AgSplitSums sums;
				AgScan slow, quick;
				bool has_missing;

				ag_hist_load(&builder.layout, &hist, f, n_bins + 1, sums.g, sums.h);
				has_missing = sums.g[0] != 0 || sums.h[0] != 0;
				sums.is_counted = false;
				if (counted)
					ag_split_count(table.bins, &rules, &node, f, &sums);
				ag_scan_cuts(&rules, &node, &sums, n_bins, has_missing, 1,
							 has_missing ? n_bins : n_bins - 1, &slow);
				rules.level = (AgCpuLevel) level;
				ag_scan_packed(&rules, &node, hist.cells + builder.layout.offset[f], &sums, n_bins,
							   -(double) INFINITY, &quick);
				AG_CHECK(quick.score == slow.score);
				AG_CHECK(quick.maybe == slow.maybe ||
						 (quick.maybe < slow.score && slow.maybe < slow.score));
				AG_CHECK_EQ(quick.bin, slow.bin);
				AG_CHECK_EQ(quick.missing_left, slow.missing_left);
				AG_CHECK_EQ(quick.left_g, slow.left_g);
				AG_CHECK_EQ(quick.left_h, slow.left_h);
				/* A floor hides what is below it and nothing else. */
				ag_scan_packed(&rules, &node, hist.cells + builder.layout.offset[f], &sums, n_bins,
							   slow.score, &quick);
				AG_CHECK(quick.score == slow.score);
				AG_CHECK_EQ(quick.bin, slow.bin);
				ag_scan_packed(&rules, &node, hist.cells + builder.layout.offset[f], &sums, n_bins,
							   slow.maybe, &quick);
				AG_CHECK(quick.maybe == slow.maybe || slow.maybe < slow.score);
			}
	free(hist.cells);
	free(list.ids);
	free(list.grads);
	ag_hist_builder_free(&bench.ctx, &builder);
	table_end(&table);
	bench_end(&bench);
}

/* The sorted search against its description: prefixes of the levels by ratio, from both ends. */
static void
test_sorted(int64_t n, uint32_t n_levels, int h_kind)
{
	Bench bench;
	Table table;
	AgRowList list;
	AgQuantum quantum;
	AgSplitRules rules;
	AgBoostParams params = gbm_params(1);
	Node node;
	AgSplit found;
	const AgBinFeature *feature;
	double ratio[AG_HIST_BINS];
	int order[AG_HIST_BINS], n_order = 0;
	int64_t rows[AG_HIST_BINS] = {0}, g[AG_HIST_BINS] = {0}, h[AG_HIST_BINS] = {0};
	long double best = -1;

	bench_init(&bench, 1);
	table_init(&table, n, 0, 1, n_levels, 0.05, 0, 31);
	table_bin(&table, &bench.ctx, 254);
	make_list(&table, n, h_kind, &list, &quantum);
	params.min_data_per_group = 30;
	ag_split_rules_init(&rules, &params, &quantum, 1.0);
	node = (Node){table.bins, &list, n, &rules, 0.0};
	found = find(&bench.ctx, &node, &quantum);
	feature = table.bins->features;
	for (int64_t i = 0; i < n; i++)
	{
		int b = table.bins->columns[list.ids[i]];

		rows[b]++;
		g[b] += ag_packed_g(list.grads[i]);
		h[b] += ag_packed_h(list.grads[i]);
	}
	for (int b = 0; b <= feature->n_bins; b++)
		if (rows[b] >= 10)
		{
			int at = n_order++;

			ratio[b] = (double) g[b] / ((double) h[b] + 10.0);
			for (; at > 0 && ratio[order[at - 1]] > ratio[b]; at--)
				order[at] = order[at - 1];
			order[at] = b;
		}
	for (int end = 0; end < 2; end++)
	{
		AgSplit split = {.feature = 0, .is_category = true, .has_cat_l2 = true};
		int64_t group = 0;

		for (int i = 0; i < (n_order + 1) / 2 && i < 32; i++)
		{
			int b = order[end ? n_order - 1 - i : i];
			Cut cut;

			split.left_bins[b >> 6] |= UINT64_C(1) << (b & 63);
			group += rows[b];
			cut = try_split(&node, &split);
			if (cut.n < rules.min_rows || (double) cut.h < rules.min_h)
				continue;
			if (n - cut.n < rules.min_rows_per_group || !cut.is_allowed)
				break;
			if (group < rules.min_rows_per_group)
				continue;
			group = 0;
			best = cut.score > best ? cut.score : best;
		}
	}
	if (AG_CHECK(found.feature == 0))
	{
		Cut cut = try_split(&node, &found);

		AG_CHECK(fabsl(cut.score - best) <= fabsl(best) * LESS);
		AG_CHECK_EQ(cut.g, found.left_g);
		if (feature->has_other && rows[feature->n_bins] > 0)
			AG_CHECK_EQ(found.unseen_left, ag_split_goes_left(&found, feature->n_bins));
		else
			AG_CHECK_EQ(found.unseen_left, 2 * found.left_h >= quantum.sum_h);
	}
	free(list.ids);
	free(list.grads);
	table_end(&table);
	bench_end(&bench);
}

/* A leaf of the slow tree: its rows, and its best split by try_split's sums. */
typedef struct SlowLeaf
{
	AgRowList list;
	int64_t n;
	AgQuantum sums;
	AgSplit split;
} SlowLeaf;

static void
slow_leaf(const AgContext *ctx, const AgBins *bins, const AgSplitRules *rules, SlowLeaf *leaf)
{
	Node node = {bins, &leaf->list, leaf->n, rules, 0.0};

	leaf->split = ag_split_none();
	if (leaf->n >= 2 * rules->min_rows)
		leaf->split = find(ctx, &node, &leaf->sums);
}

/*
 * Growth: at each step, of all leaves the one with the greatest gain, the older one of equals. Each leaf's split is found
 * from scratch, so histograms by subtraction must give the same, and those that were given up and built again.
 */
static void
test_growth(int64_t n, int max_leaves, int n_threads, bool has_few_slots)
{
	Bench bench;
	Table table;
	AgQuantum quantum;
	AgSplitRules rules;
	AgBoostParams params = gbm_params(1);
	AgGrower grower;
	AgGrowth growth = {.max_leaves = max_leaves,
					   .max_depth = INT_MAX,
					   .feature_fraction_bylevel = 1.0,
					   .feature_fraction_bynode = 1.0};
	SlowLeaf *leaves = calloc((size_t) max_leaves, sizeof *leaves);
	uint32_t *grads;
	int *made = calloc((size_t) max_leaves, sizeof *made);
	int n_leaves = 1, n_made = 1, n_wrong = 0;

	bench_init(&bench, n_threads);
	table_init(&table, n, 5, 2, 12, 0.1, 0, 55);
	table_bin(&table, &bench.ctx, 100);
	make_list(&table, n, 2, &leaves[0].list, &quantum);
	grads = leaves[0].list.grads;
	leaves[0].n = n;
	leaves[0].sums = quantum;
	params.min_data_in_leaf = 15;
	params.max_cat_to_onehot = 254;
	ag_split_rules_init(&rules, &params, &quantum, 1.0);
	AG_REQUIRE(ag_grower_create(&bench.ctx, table.bins, n, &growth, &grower) == AG_OK);
	if (has_few_slots)
		grower.n_slots = 4;
	memset(grower.is_used, 1, (size_t) table.bins->n_features);
	memcpy(grower.lists[0].ids, leaves[0].list.ids, (size_t) n * sizeof(uint32_t));
	memcpy(grower.lists[0].grads, leaves[0].list.grads, (size_t) n * sizeof(uint32_t));
	AG_REQUIRE(ag_grow_tree(&grower, &rules, &quantum, n, 4) == AG_OK);
	slow_leaf(&bench.ctx, table.bins, &rules, &leaves[0]);
	for (int step = 0; step < grower.n_nodes; step++)
	{
		SlowLeaf parent, sides[2];
		const AgSplit *split = &grower.nodes[step].split;
		int best = -1;

		for (int l = 0; l < n_leaves; l++)
			if (leaves[l].split.feature >= 0 &&
				(best < 0 || leaves[l].split.gain > leaves[best].split.gain ||
				 (leaves[l].split.gain == leaves[best].split.gain && made[l] < made[best])))
				best = l;
		AG_REQUIRE(best >= 0);
		parent = leaves[best];
		n_wrong += parent.split.feature != split->feature || parent.split.bin != split->bin ||
				   parent.split.gain != split->gain ||
				   memcmp(parent.split.left_bins, split->left_bins, sizeof split->left_bins) != 0;
		for (int side = 0; side < 2; side++)
		{
			const uint8_t *column =
				table.bins->columns + parent.split.feature * table.bins->column_stride;

			sides[side] = (SlowLeaf){.sums = {.g = 1.0, .h = 1.0}};
			sides[side].list.ids = malloc((size_t) parent.n * sizeof(uint32_t));
			sides[side].list.grads = parent.list.grads;
			for (int64_t i = 0; i < parent.n; i++)
			{
				uint32_t id = parent.list.ids[i];

				if (ag_split_goes_left(&parent.split, column[id]) != (side == 0))
					continue;
				sides[side].list.ids[sides[side].n++] = id;
				sides[side].sums.sum_g += ag_packed_g(parent.list.grads[id]);
				sides[side].sums.sum_h += ag_packed_h(parent.list.grads[id]);
			}
			slow_leaf(&bench.ctx, table.bins, &rules, &sides[side]);
		}
		free(parent.list.ids);
		leaves[best] = sides[0];
		made[best] = n_made++;
		made[n_leaves] = n_made++;
		leaves[n_leaves++] = sides[1];
	}
	AG_CHECK_EQ(n_wrong, 0);
	AG_CHECK_EQ(grower.n_leaves, n_leaves);
	AG_CHECK(grower.n_leaves == max_leaves || max_leaves > 40);
	for (int l = 0; l < n_leaves; l++)
	{
		AG_CHECK_EQ(grower.leaves[l].n_rows, leaves[l].n);
		AG_CHECK(leaves[l].n >= 15);
		AG_CHECK(grower.n_leaves == max_leaves || leaves[l].split.feature < 0);
		free(leaves[l].list.ids);
	}
	free(grads);
	ag_grower_free(&bench.ctx, &grower);
	free(leaves);
	free(made);
	table_end(&table);
	bench_end(&bench);
}

/* The one cut of extra_trees is drawn by value: on a skewed feature it seldom falls into the crowded bins. */
static void
test_random_cut(void)
{
	Bench bench;
	Table table;
	AgRowList list;
	AgQuantum quantum;
	AgSplitRules rules;
	AgBoostParams params = gbm_params(1);
	int n_low = 0, n_found = 0;

	bench_init(&bench, 1);
	table_init(&table, 4000, 1, 0, 1, 0.0, 0, 3);
	for (int64_t i = 0; i < table.n_rows; i++)
		table.numbers[i] = exp(8.0 * table.numbers[i]);
	table_bin(&table, &bench.ctx, 200);
	make_list(&table, table.n_rows, 0, &list, &quantum);
	params.extra_trees = true;
	params.min_data_in_leaf = 1;
	ag_split_rules_init(&rules, &params, &quantum, 1.0);
	for (uint64_t key = 0; key < 200; key++)
	{
		AgHistBuilder builder;
		AgHist hist;
		AgSplit best = ag_split_none();
		AgSplitNode search = {.hist = &hist,
							  .ids = list.ids,
							  .n_rows = table.n_rows,
							  .sum_g = quantum.sum_g,
							  .sum_h = quantum.sum_h,
							  .key = key};

		AG_REQUIRE(ag_hist_builder_create(&bench.ctx, table.bins, &builder) == AG_OK);
		hist.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
		AG_REQUIRE(ag_hist_build(&builder, &list, table.n_rows, &hist) == AG_OK);
		ag_split_search(table.bins, &builder.layout, &rules, &search, (int[]){0}, 1, &best);
		n_found += best.feature == 0;
		/* half of the rows, but a sixtieth of the range, lie below e^4 */
		n_low += best.feature == 0 && table.bins->features[0].cuts[best.bin - 1] < exp(4.0);
		free(hist.cells);
		ag_hist_builder_free(&bench.ctx, &builder);
	}
	AG_CHECK_EQ(n_found, 200);
	AG_CHECK(n_low < 15);
	free(list.ids);
	free(list.grads);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	for (int h_kind = 0; h_kind < 3; h_kind++)
		for (int variant = 0; variant < 8; variant++)
		{
			test_search(300, h_kind, variant, 0.15);
			test_search(500, h_kind, variant, 0.0);
			test_search(7, h_kind, variant, 0.3);
			if (variant < 5)
			{
				test_packed(2, h_kind, variant, 0.0);
				test_packed(120, h_kind, variant, 0.3);
				test_packed(3000, h_kind, variant, variant == 3 ? 0.0 : 0.1);
			}
		}
	for (int h_kind = 0; h_kind < 3; h_kind++)
	{
		test_sorted(3000, 60, h_kind);
		test_sorted(6000, 400, h_kind);
	}
	for (int n_threads = 1; n_threads <= 2; n_threads++)
	{
		test_growth(3000, 31, n_threads, false);
		test_growth(3000, 31, n_threads, true);
		test_growth(600, 64, n_threads, n_threads == 2);
	}
	test_random_cut();
	return ag_unit_done("split");
}
