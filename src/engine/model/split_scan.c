/*
 * split_scan.c - scoring all cuts of a numeric feature.
 *
 * The obvious loop, and the same for eight cuts at a time on packed sums. Both compute the score by the same
 * operations in the same order, so they agree to the last bit.
 */
#include "engine/model/split_scan.h"

#include <math.h>
#include <string.h>

#include "engine/model/vectors.h"

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
	int64_t missing_rows = sums->is_counted ? sums->rows[0] : 0;

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

/* What the eight-lane loop reads and leaves. */
typedef struct AgLaneScan
{
	int64_t sums[AG_HIST_BINS + AG_LANES]; /* packed sums of value bins 1..i + 1 */
	int32_t rows[AG_HIST_BINS + AG_LANES]; /* and their rows */
	bool is_counted;
	int n_cuts;
	double sum_g, sum_h, l2;
	double least_h; /* of a side that may be allowed */
	double sure_h;  /* of a side that surely has enough rows */
	int32_t least_rows, most_rows;
	double score[AG_LANES], maybe[AG_LANES];
	int64_t at[AG_LANES];
} AgLaneScan;

AG_INLINE void
lanes_body(AgLaneScan *scan, int64_t added, int32_t added_rows)
{
	const AgDoubles none = AG_EIGHT(-(double) INFINITY);
	AgDoubles best = none, maybe = none;
	AgLongs best_at = AG_EIGHT(0), lane = {0, 1, 2, 3, 4, 5, 6, 7};

	for (int i = 0; i < scan->n_cuts; i += AG_LANES, lane += AG_LANES)
	{
		AgLongs sums, ok, sure, better;
		AgDoubles gl, hl, gr, hr, dl, dr, least, score;

		memcpy(&sums, scan->sums + i, sizeof sums);
		sums += added;
		gl = __builtin_convertvector(__builtin_convertvector(sums >> 32, AgInts), AgDoubles);
		hl = __builtin_convertvector(__builtin_convertvector(sums & 0xffffffff, AgInts), AgDoubles);
		gr = scan->sum_g - gl;
		hr = scan->sum_h - hl;
		dl = hl + scan->l2;
		dr = hr + scan->l2;
		least = AG_CHOOSE(hl < hr, hl, hr);
		ok = (lane < scan->n_cuts) & (least >= scan->least_h) & (least + scan->l2 > 0.0);
		if (scan->is_counted)
		{
			AgInts rows;

			memcpy(&rows, scan->rows + i, sizeof rows);
			rows += added_rows;
			ok &= __builtin_convertvector((rows >= scan->least_rows) & (rows <= scan->most_rows),
										  AgLongs);
			sure = ok;
		}
		else
			sure = ok & (least >= scan->sure_h);
		score = (gl * gl * dr + gr * gr * dl) / (dl * dr);
		ok = ok & ~sure;
		score = AG_CHOOSE(ok | sure, score, none);
		better = sure & (score > best);
		best = AG_CHOOSE(better, score, best);
		best_at = (better & lane) | (~better & best_at);
		maybe = AG_CHOOSE(ok & (score > maybe), score, maybe);
	}
	memcpy(scan->score, &best, sizeof best);
	memcpy(scan->maybe, &maybe, sizeof maybe);
	memcpy(scan->at, &best_at, sizeof best_at);
}

#define AG_SCAN_PARAMETERS AgLaneScan *scan, int64_t added, int32_t added_rows
#define AG_SCAN_ARGUMENTS scan, added, added_rows

AG_LEVELS(lanes, AG_SCAN_PARAMETERS, AG_SCAN_ARGUMENTS)

/* The best of the lanes into *scan, where it beats what is there: greater score, or the same at a lower bin. */
static void
take_lanes(const AgLaneScan *lanes, int64_t added, bool missing_left, AgScan *scan)
{
	for (int i = 0; i < AG_LANES; i++)
	{
		int bin = (int) lanes->at[i] + 1;
		int64_t sums;

		if (lanes->maybe[i] > scan->maybe)
			scan->maybe = lanes->maybe[i];
		if (!(lanes->score[i] > scan->score ||
			  (lanes->score[i] == scan->score && scan->bin > 0 && bin < scan->bin)))
			continue;
		sums = lanes->sums[bin - 1] + added;
		scan->score = lanes->score[i];
		scan->bin = bin;
		scan->missing_left = missing_left;
		scan->left_g = sums >> 32;
		scan->left_h = sums & 0xffffffff;
	}
}

/* Running sums of the bins, with slack that is never chosen. */
static int
sum_cuts(const int64_t *cells, const AgSplitSums *sums, int n_bins, bool has_missing,
		 AgLaneScan *lanes)
{
	int n_cuts = has_missing ? n_bins : n_bins - 1;
	int64_t sum = 0, rows = 0;

	for (int b = 1; b <= n_cuts; b++)
	{
		sum += cells[b];
		lanes->sums[b - 1] = sum;
	}
	if (sums->is_counted)
		for (int b = 1; b <= n_cuts; b++)
		{
			rows += sums->rows[b];
			lanes->rows[b - 1] = (int32_t) rows;
		}
	for (int i = n_cuts; i % AG_LANES != 0; i++)
	{
		lanes->sums[i] = 0;
		lanes->rows[i] = 0;
	}
	return n_cuts;
}

void
ag_scan_packed(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
			   const AgSplitSums *sums, int n_bins, AgScan *scan)
{
	bool has_missing = cells[0] != 0;
	double never_h = (double) (rules->min_rows * rules->min_h_row);
	AgLaneScan lanes = {.is_counted = sums->is_counted,
						.sum_g = (double) node->sum_g,
						.sum_h = (double) node->sum_h,
						.l2 = rules->l2,
						.least_h = rules->min_h,
						.sure_h = (double) (rules->min_rows * rules->max_h_row)};

	*scan = (AgScan){.score = -(double) INFINITY, .maybe = -(double) INFINITY};
	lanes.n_cuts = sum_cuts(cells, sums, n_bins, has_missing, &lanes);
	if (!sums->is_counted && never_h > lanes.least_h)
		lanes.least_h = never_h;
	lanes.least_rows = rules->min_rows < INT32_MAX ? (int32_t) rules->min_rows : INT32_MAX;
	lanes.most_rows = (int32_t) node->n_rows - lanes.least_rows;
	lanes_at(rules->level, &lanes, 0, 0);
	take_lanes(&lanes, 0, false, scan);
	if (!has_missing || n_bins < 2)
		return;
	lanes.n_cuts = n_bins - 1;
	lanes_at(rules->level, &lanes, cells[0], sums->is_counted ? (int32_t) sums->rows[0] : 0);
	take_lanes(&lanes, cells[0], true, scan);
}
