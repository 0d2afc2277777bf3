/*
 * split.c - gains, leaf values, and the search over the cuts of a numeric feature.
 *
 * Histograms hold no counts. A child's number of rows lies between sum_h / max_h_row and sum_h / min_h_row; where
 * that leaves min_rows undecided and the cut could win, the feature's rows are counted, so the limit
 * is exact and the counting rare.
 */
#include "engine/model/split.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/level_maths.h"
#include "engine/model/split_maths.h"
#include "engine/model/split_scan.h"

void
ag_split_rules_init(AgSplitRules *rules, const AgBoostParams *params, const AgQuantum *quantum,
					double unit)
{
	double g = quantum->g * unit;

	memset(rules, 0, sizeof *rules);
	rules->l1 = g > 0.0 ? params->lambda_l1 / g : 0.0;
	rules->l2 = params->lambda_l2 / quantum->h;
	rules->cat_l2 = params->cat_l2 / quantum->h;
	rules->max_step = g > 0.0 ? params->max_delta_step * (quantum->h / g) : 0.0;
	rules->path_smooth = params->path_smooth;
	rules->min_gain = g > 0.0 ? params->min_gain_to_split / g * (quantum->h / g) : 0.0;
	rules->min_h = params->min_sum_hessian_in_leaf / quantum->h;
	rules->min_rows = params->min_data_in_leaf > 1 ? params->min_data_in_leaf : 1;
	rules->is_plain =
		params->monotone == NULL &&
		!(params->lambda_l1 > 0.0 || params->max_delta_step > 0.0 || params->path_smooth > 0.0);
	rules->monotone = params->monotone;
	rules->has_random_cut = params->extra_trees;
	rules->min_h_row = quantum->min_h;
	rules->max_h_row = quantum->max_h;
	rules->cat_smooth = params->cat_smooth;
	rules->cat_smooth_h =
		(params->sorts_by_value ? params->lambda_l2 : params->cat_smooth) / quantum->h;
	rules->max_cat_threshold = params->max_cat_threshold;
	rules->max_cat_to_onehot = params->splits_categories ? params->max_cat_to_onehot : AG_HIST_BINS;
	rules->level = ag_cpu_level();
	rules->min_rows_per_group = params->min_data_per_group;
}

double
ag_leaf_output(const AgSplitRules *rules, double g, double h, double l2, int64_t n_rows,
			   double parent_output)
{
	return ag_leaf_best(rules->l1, rules->max_step, rules->path_smooth, g, h, l2, n_rows,
						parent_output);
}

static double
leaf_score(const AgSplitRules *rules, double g, double h, double l2, int64_t n_rows,
		   double parent_output)
{
	return ag_leaf_merit(rules->l1, rules->max_step, rules->path_smooth, g, h, l2, n_rows,
						 parent_output);
}

/* The same at a value that bounds allow. */
static double
bounded_score(const AgSplitRules *rules, const AgSplitNode *node, double g, double h, double l2,
			  int64_t n_rows, double *output)
{
	return ag_bounded_merit(rules->l1, rules->max_step, rules->path_smooth, g, h, l2, n_rows,
							node->output, node->low, node->high, output);
}

/* A cut whose sides would stand the wrong way round is none (XGBoost's and LightGBM's basic method). */
static double
monotone_score(const AgSplitRules *rules, const AgSplitNode *node, double l2, double left_g,
			   double left_h, int64_t left_rows)
{
	double left, right;
	double score =
		bounded_score(rules, node, left_g, left_h, l2, left_rows, &left) +
		bounded_score(rules, node, (double) node->sum_g - left_g, (double) node->sum_h - left_h, l2,
					  node->n_rows - left_rows, &right);

	return ag_is_wrong_way(node->direction, left, right) ? -(double) INFINITY : score;
}

double
ag_split_score(const AgSplitRules *rules, const AgSplitNode *node, double l2, int64_t left_g,
			   int64_t left_h, int64_t left_rows)
{
	double gl = (double) left_g, gr = (double) (node->sum_g - left_g);
	double hl = (double) left_h, hr = (double) (node->sum_h - left_h);

	if (rules->is_plain)
		return ag_cut_merit(gl, hl, gr, hr, l2);
	if (rules->monotone != NULL)
		return monotone_score(rules, node, l2, gl, hl, left_rows);
	return leaf_score(rules, gl, hl, l2, left_rows, node->output) +
		   leaf_score(rules, gr, hr, l2, node->n_rows - left_rows, node->output);
}

double
ag_split_bar(const AgSplitRules *rules, const AgSplitNode *node)
{
	double score, output;

	if (!((double) node->sum_h + rules->l2 > 0.0))
		return (double) INFINITY;
	if (rules->monotone != NULL)
		score = bounded_score(rules, node, (double) node->sum_g, (double) node->sum_h, rules->l2,
							  node->n_rows, &output);
	else
		score = leaf_score(rules, (double) node->sum_g, (double) node->sum_h, rules->l2,
						   node->n_rows, node->output);
	return score + fabs(score) * AG_SCORE_ROUNDING + rules->min_gain;
}

void
ag_split_count(const AgBins *bins, const AgSplitRules *rules, const AgSplitNode *node, int f,
			   AgSplitSums *sums)
{
	int n = bins->features[f].n_bins + 1;

	if (rules->min_h_row == rules->max_h_row && rules->min_h_row > 0)
	{
		for (int b = 0; b < n; b++)
			sums->rows[b] = sums->h[b] / rules->min_h_row;
	}
	else
	{
		uint32_t counts[AG_HIST_BINS];

		ag_hist_count(bins, f, node->ids, node->n_rows, counts);
		for (int b = 0; b < n; b++)
			sums->rows[b] = counts[b];
	}
	sums->is_counted = true;
}

/* A value inside bin b, for drawing: its middle, or as far beyond the end cut as the next one is before it. */
static double
bin_middle(const AgBinFeature *feature, int b)
{
	const double *cuts = feature->cuts;
	int n_cuts = feature->n_bins - 1;

	if (n_cuts == 1)
		return b == 1 ? cuts[0] - 0.5 : cuts[0] + 0.5;
	if (b == 1)
		return cuts[0] - (cuts[1] - cuts[0]) * 0.5;
	if (b == feature->n_bins)
		return cuts[n_cuts - 1] + (cuts[n_cuts - 1] - cuts[n_cuts - 2]) * 0.5;
	return cuts[b - 2] + (cuts[b - 1] - cuts[b - 2]) * 0.5;
}

/*
 * The one cut of extremely randomised trees (Geurts et al. 2006): a value drawn uniformly within
 * the node's range, then moved to the nearest cut. Drawing a bin would follow the density instead.
 */
static int
random_cut(const AgBinFeature *feature, const AgSplitNode *node, const AgSplitSums *sums, int f)
{
	int lowest = 1, highest = feature->n_bins, at;
	uint64_t key = ag_key(node->key, (uint64_t) f);
	double low, high, value;

	while (lowest < highest && sums->g[lowest] == 0 && sums->h[lowest] == 0)
		lowest++;
	while (highest > lowest && sums->g[highest] == 0 && sums->h[highest] == 0)
		highest--;
	if (lowest == highest)
		return highest;
	low = bin_middle(feature, lowest);
	high = bin_middle(feature, highest);
	if (!(high - low <= 1e300)) /* infinite cuts: no lengths to draw by */
		return lowest + (int) ag_random_below(key, 0, (uint32_t) (highest - lowest));
	value = low + ag_random_unit(key, 0) * (high - low);
	for (at = lowest; at < highest - 1; at++)
		if (value < feature->cuts[at - 1] + (feature->cuts[at] - feature->cuts[at - 1]) * 0.5)
			break;
	return at;
}

/*
 * The best allowed cut, from packed cells when there are any. Counts rows when a cut could reach `gain` above
 * the bar whose rows hessians leave open.
 */
static void
scan_feature(const AgBins *bins, const AgSplitRules *rules, const AgSplitNode *node, int f,
			 const int64_t *cells, AgSplitSums *sums, double bar, double gain, AgScan *scan)
{
	const AgBinFeature *feature = bins->features + f;
	bool has_missing = sums->g[0] != 0 || sums->h[0] != 0;
	int first = 1, last = has_missing ? feature->n_bins : feature->n_bins - 1;

	if (rules->has_random_cut && last > 0)
	{
		first = random_cut(feature, node, sums, f);
		last = first < last ? first : last;
	}
	if (rules->path_smooth > 0.0)
		ag_split_count(bins, rules, node, f, sums);
	for (;;)
	{
		if (cells != NULL)
			ag_scan_packed(rules, node, cells, sums, feature->n_bins, bar + gain, scan);
		else
			ag_scan_cuts(rules, node, sums, feature->n_bins, has_missing, first, last, scan);
		if (sums->is_counted || scan->maybe < scan->score || !(scan->maybe > bar) ||
			scan->maybe - bar < gain)
			return;
		ag_split_count(bins, rules, node, f, sums);
	}
}

/* Most searches: all cuts, under plain rules, of a narrow histogram. */
static bool
is_common(const AgSplitRules *rules, const AgSplitNode *node)
{
	return rules->is_plain && !rules->has_random_cut && !node->hist->is_wide;
}

static void
search_number(const AgBins *bins, const AgHistLayout *layout, const AgSplitRules *rules,
			  const AgSplitNode *node, int f, double bar, AgSplitSums *sums, AgSplit *best)
{
	const int64_t *cells = NULL;
	AgSplit split = {.feature = f};
	bool has_missing;
	AgScan scan;

	if (is_common(rules, node))
		cells = node->hist->cells + layout->offset[f];
	scan_feature(bins, rules, node, f, cells, sums, bar, best->gain, &scan);
	if (!(scan.score > bar))
		return;
	has_missing = cells != NULL ? cells[0] != 0 : sums->g[0] != 0 || sums->h[0] != 0;
	split.gain = split.rank = scan.score - bar;
	split.bin = scan.bin;
	split.missing_left = has_missing ? scan.missing_left : 2 * scan.left_h >= node->sum_h;
	split.left_g = scan.left_g;
	split.left_h = scan.left_h;
	if (ag_split_better(&split, best))
		*best = split;
}

/* Replaces *best by the best cut of feature f where that is better. */
static void
search_feature(const AgBins *bins, const AgHistLayout *layout, const AgSplitRules *rules,
			   const AgSplitNode *node, int f, double bar, AgSplitSums *sums, AgSplit *best)
{
	const AgBinFeature *feature = bins->features + f;

	sums->is_counted = false;
	sums->g[0] = sums->h[0] = 0;
	if (feature->is_category || !is_common(rules, node))
		ag_hist_load(layout, node->hist, f, feature->n_bins + 1, sums->g, sums->h);
	if (!feature->is_category)
	{
		search_number(bins, layout, rules, node, f, bar, sums, best);
		return;
	}
	ag_hist_load_rows(layout, node->hist, f, feature->n_bins + 1, sums->rows);
	sums->is_counted = true;
	ag_split_search_category(bins, rules, node, f, bar, sums, best);
}

void
ag_split_search(const AgBins *bins, const AgHistLayout *layout, const AgSplitRules *rules,
				const AgSplitNode *node, const int *features, int n_features, AgSplit *best)
{
	double bar = ag_split_bar(rules, node);
	AgSplitNode own = *node;
	AgSplitSums sums;

	for (int i = 0; i < n_features; i++)
	{
		AgSplit found = ag_split_none();

		if (rules->monotone != NULL)
			own.direction = rules->monotone[features[i]];
		if (!(rules->noise > 0.0))
		{
			search_feature(bins, layout, rules, &own, features[i], bar, &sums, best);
			continue;
		}
		search_feature(bins, layout, rules, &own, features[i], bar, &sums, &found);
		if (found.feature < 0)
			continue;
		found.rank = ag_gain_with_noise(found.gain, bar, rules->roots_gain, rules->noise, node->key,
										(uint64_t) found.feature);
		if (ag_split_better(&found, best))
			*best = found;
	}
}

bool
ag_split_goes_left(const AgSplit *split, int bin)
{
	if (split->is_category)
		return (split->left_bins[bin >> 6] >> (bin & 63) & 1) != 0;
	return bin == 0 ? split->missing_left : bin <= split->bin;
}

void
ag_split_bits(const AgSplit *split, uint32_t *left_bits)
{
	int n_left = split->bin + 1; /* numeric: bins below it go left, but for the missing one */

	for (int w = 0; w < AG_HIST_BINS / 32; w++)
	{
		int n = n_left - 32 * w;

		if (split->is_category)
			left_bits[w] = (uint32_t) (split->left_bins[w / 2] >> (w % 2 * 32));
		else
			left_bits[w] = n >= 32 ? UINT32_MAX : n <= 0 ? 0 : (UINT32_C(1) << n) - 1;
	}
	if (!split->is_category)
		left_bits[0] = (left_bits[0] & ~UINT32_C(1)) | split->missing_left;
}
