/*
 * split_scan.c - scoring all cuts of a numeric feature.
 *
 * The obvious loop. split_lanes.c does the same for eight cuts at a time on packed sums, by the same operations in
 * the same order, so the two agree to the last bit.
 */
#include "engine/model/split_scan.h"

#include <math.h>

/* A cut's two sides against the limits: 1 allowed, 0 not, -1 can't tell without counting. */
static inline int
cut_is_allowed(const AgSplitRules *rules, const AgSplitNode *node, bool is_counted, int64_t left_h,
			   int64_t left_rows)
{
	int64_t right_h = node->sum_h - left_h;
	int64_t least = left_h < right_h ? left_h : right_h;

	if ((double) least < rules->min_h || !((double) least + rules->l2 > 0.0))
		return 0;
	if (is_counted)
		return left_rows >= rules->min_rows && node->n_rows - left_rows >= rules->min_rows;
	if (least < rules->min_rows * rules->min_h_row)
		return 0;
	return least >= rules->min_rows * rules->max_h_row ? 1 : -1;
}

static inline void
consider(const AgSplitRules *rules, const AgSplitNode *node, bool is_counted, int64_t left_g,
		 int64_t left_h, int64_t left_rows, int bin, bool missing_left, AgScan *scan)
{
	int allowed = cut_is_allowed(rules, node, is_counted, left_h, left_rows);
	double score;

	if (allowed == 0)
		return;
	score = ag_split_score(rules, node, rules->l2, left_g, left_h, left_rows);
	if (allowed < 0)
	{
		if (score > scan->maybe)
			scan->maybe = score;
		return;
	}
	if (!(score > scan->score))
		return;
	scan->score = score;
	scan->bin = bin;
	scan->missing_left = missing_left;
	scan->left_g = left_g;
	scan->left_h = left_h;
}

void
ag_scan_cuts(const AgSplitRules *rules, const AgSplitNode *node, const AgSplitSums *sums,
			 int n_bins, bool has_missing, int first, int last, AgScan *scan)
{
	int64_t g = 0, h = 0, rows = 0;
	int64_t missing_rows = sums->is_counted ? (double) sums->rows[0] : 0.0;

	*scan = (AgScan){.score = -(double) INFINITY, .maybe = -(double) INFINITY};
	for (int b = 1; b <= last; b++)
	{
		g += sums->g[b];
		h += sums->h[b];
		rows += sums->is_counted ? sums->rows[b] : 0;
		if (b < first)
			continue;
		if (b < n_bins || has_missing)
			consider(rules, node, sums->is_counted, g, h, rows, b, false, scan);
		if (b < n_bins && has_missing)
			consider(rules, node, sums->is_counted, g + sums->g[0], h + sums->h[0],
					 rows + missing_rows, b, true, scan);
	}
}
