/*
 * split_category.c - the search over subsets of a category's levels.
 *
 * Few levels: each against the rest. Many: levels are sorted by their gradient to hessian ratio, and the best subset of
 * a convex loss is a prefix of that order (Fisher 1958, "On grouping for maximum homogeneity"); both ends
 * are tried, so that the set that must be stored stays short. Missing is a level like any other.
 */
#include "engine/model/split.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"

/* A feature's search in one node. */
typedef struct AgLevelSearch
{
	const AgBinFeature *feature;
	const AgSplitRules *rules;
	const AgSplitNode *node;
	const AgSplitSums *sums;
	int f;
	double bar;
	double score; /* best so far */
	AgSplit split;
} AgLevelSearch;

static inline void
set_bit(uint64_t *bits, int bin)
{
	bits[bin >> 6] |= UINT64_C(1) << (bin & 63);
}

static bool
has_hessian(const AgLevelSearch *search, int64_t h)
{
	double sum = (double) h;

	return sum >= search->rules->min_h && sum + search->rules->l2 > 0.0;
}

/* Each level alone on the left. */
static void
search_each(AgLevelSearch *search)
{
	const AgSplitSums *sums = search->sums;
	const AgSplitRules *rules = search->rules;
	const AgSplitNode *node = search->node;
	int present[AG_HIST_BINS], n_present = 0, only = -1;

	for (int b = 0; b <= search->feature->n_bins; b++)
		if (sums->rows[b] > 0)
			present[n_present++] = b;
	if (rules->has_random_cut && n_present > 0)
		only = present[ag_random_below(ag_key(node->key, (uint64_t) search->f), 0,
									   (uint32_t) n_present)];
	for (int i = 0; i < n_present; i++)
	{
		int b = present[i];
		double score;

		if ((only >= 0 && b != only) || sums->rows[b] < rules->min_rows ||
			node->n_rows - sums->rows[b] < rules->min_rows || !has_hessian(search, sums->h[b]) ||
			!has_hessian(search, node->sum_h - sums->h[b]))
			continue;
		score = ag_split_score(rules, node, rules->l2, sums->g[b], sums->h[b], sums->rows[b]);
		if (!(score > search->score))
			continue;
		search->score = score;
		memset(search->split.left_bins, 0, sizeof search->split.left_bins);
		set_bit(search->split.left_bins, b);
		search->split.left_g = sums->g[b];
		search->split.left_h = sums->h[b];
		search->split.bin = b;
	}
}

/* Prefixes of the sorted levels from one end. only >= 0: just that length - 1. */
static void
search_prefixes(AgLevelSearch *search, const uint8_t *levels, int n_levels, int n_most, int step,
				int only)
{
	const AgSplitSums *sums = search->sums;
	const AgSplitRules *rules = search->rules;
	const AgSplitNode *node = search->node;
	double l2 = rules->l2 + rules->cat_l2;
	int64_t g = 0, h = 0, rows = 0, group = 0;
	uint64_t left[4] = {0, 0, 0, 0};

	for (int i = 0; i < n_most; i++)
	{
		int b = levels[step > 0 ? i : n_levels - 1 - i];
		int64_t right_rows;
		double score;

		set_bit(left, b);
		g += sums->g[b];
		h += sums->h[b];
		rows += sums->rows[b];
		group += sums->rows[b];
		right_rows = node->n_rows - rows;
		if (rows < rules->min_rows || !has_hessian(search, h))
			continue;
		if (right_rows < rules->min_rows || right_rows < rules->min_rows_per_group ||
			!has_hessian(search, node->sum_h - h))
			break;
		if (group < rules->min_rows_per_group)
			continue;
		group = 0;
		if (only >= 0 && i != only)
			continue;
		score = ag_split_score(rules, node, l2, g, h, rows);
		if (!(score > search->score))
			continue;
		search->score = score;
		memcpy(search->split.left_bins, left, sizeof left);
		search->split.left_g = g;
		search->split.left_h = h;
		search->split.bin = i + 1;
		search->split.has_cat_l2 = true;
	}
}

static void
search_sorted(AgLevelSearch *search)
{
	const AgSplitSums *sums = search->sums;
	const AgSplitRules *rules = search->rules;
	double ratios[AG_HIST_BINS + AG_LANES];
	uint8_t bins[AG_HIST_BINS], levels[AG_HIST_BINS], places[AG_HIST_BINS];
	int n_levels = 0, n_most, only = -1;

	for (int b = 0; b <= search->feature->n_bins; b++)
	{
		double below = (double) sums->h[b] + rules->cat_smooth_h;

		if (sums->rows[b] == 0 || (double) sums->rows[b] < rules->cat_smooth || !(below > 0.0))
			continue;
		bins[n_levels] = (uint8_t) b;
		ratios[n_levels++] = (double) sums->g[b] / below;
	}
	/* Equal ratios keep the order of their bins. */
	ag_places_block(rules->level, n_levels, ratios, places);
	for (int i = 0; i < n_levels; i++)
		levels[places[i]] = bins[i];
	n_most = (n_levels + 1) / 2;
	if (n_most > rules->max_cat_threshold)
		n_most = rules->max_cat_threshold;
	if (rules->has_random_cut && n_most > 0)
		only = (int) ag_random_below(ag_key(search->node->key, (uint64_t) search->f), 0,
									 (uint32_t) n_most);
	search_prefixes(search, levels, n_levels, n_most, 1, only);
	search_prefixes(search, levels, n_levels, n_most, -1, only);
}

/*
 * Levels that no row of the node has follow the child with the greater hessian, and so does what training never
 * saw; but the tail's bin and unseen levels are one at prediction, so where the tail has rows it leads.
 */
static void
place_absent(AgLevelSearch *search)
{
	const AgSplitSums *sums = search->sums;
	AgSplit *split = &search->split;
	int n_bins = search->feature->n_bins;
	bool majority_left = 2 * split->left_h >= search->node->sum_h;

	for (int b = 0; majority_left && b <= n_bins; b++)
		if (sums->rows[b] == 0)
			set_bit(split->left_bins, b);
	split->missing_left = (split->left_bins[0] & 1) != 0;
	split->unseen_left = majority_left;
	if (search->feature->has_other)
		split->unseen_left = (split->left_bins[n_bins >> 6] >> (n_bins & 63) & 1) != 0;
}

void
ag_split_search_category(const AgBins *bins, const AgSplitRules *rules, const AgSplitNode *node,
						 int f, double bar, AgSplitSums *sums, AgSplit *best)
{
	AgLevelSearch search = {.feature = bins->features + f,
							.rules = rules,
							.node = node,
							.sums = sums,
							.f = f,
							.bar = bar,
							.split = {.feature = f, .is_category = true}};

	search.score = search.bar;
	if (search.feature->n_bins <= rules->max_cat_to_onehot)
		search_each(&search);
	else
		search_sorted(&search);
	if (!(search.score > search.bar))
		return;
	search.split.gain = search.split.rank = search.score - search.bar;
	place_absent(&search);
	if (ag_split_better(&search.split, best))
		*best = search.split;
}
