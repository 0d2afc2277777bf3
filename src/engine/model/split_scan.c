/*
 * split_scan.c - scoring all cuts of a numeric feature.
 *
 * The obvious loop, and the same for eight cuts at a time on packed sums. Both compute the score by the same
 * operations in the same order, so they agree to the last bit.
 */
#include "engine/model/split_scan.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif


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

/* Where there are no vectors for it: unpacks and goes the obvious way. */
static void
scan_unpacked(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
			  const AgSplitSums *sums, int n_bins, AgScan *scan)
{
	AgSplitSums unpacked;
	bool has_missing = cells[0] != 0;

	unpacked.is_counted = sums->is_counted;
	for (int b = 0; b <= n_bins; b++)
	{
		unpacked.g[b] = cells[b] >> 32;
		unpacked.h[b] = cells[b] & 0xffffffff;
		unpacked.rows[b] = sums->is_counted ? sums->rows[b] : 0;
	}
	ag_scan_cuts(rules, node, &unpacked, n_bins, has_missing, 1, has_missing ? n_bins : n_bins - 1,
				 scan);
}

/* What the loop over eight cuts at a time reads and leaves. */
typedef struct AgLaneScan
{
	int64_t sums[AG_HIST_BINS + AG_LANES]; /* packed sums of value bins 1..i + 1 */
	double rows[AG_HIST_BINS + AG_LANES];  /* and their rows, when is_counted */
	bool is_counted;
	int n_cuts;
	double sum_g, sum_h, l2;
	double least_h; /* of a side that may be allowed */
	double sure_h;  /* of a side that surely has enough rows */
	double least_rows, most_rows;
	double score[AG_LANES], maybe[AG_LANES], at[AG_LANES];
} AgLaneScan;

#if defined(__x86_64__)
#define AG_SCAN_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* A mask of the lanes whose cut may be allowed. */
AG_SCAN_AVX512 static inline __mmask8
allowed_avx512(const AgLaneScan *scan, int i, double added_rows, __m512d least)
{
	__mmask8 ok = (__mmask8) (scan->n_cuts - i >= 8 ? 0xff : (1 << (scan->n_cuts - i)) - 1);

	ok &= _mm512_cmp_pd_mask(least, _mm512_set1_pd(scan->least_h), _CMP_GE_OQ);
	ok &= _mm512_cmp_pd_mask(_mm512_add_pd(least, _mm512_set1_pd(scan->l2)), _mm512_setzero_pd(),
							 _CMP_GT_OQ);
	if (scan->is_counted)
	{
		__m512d rows = _mm512_add_pd(_mm512_loadu_pd(scan->rows + i), _mm512_set1_pd(added_rows));

		ok &= _mm512_cmp_pd_mask(rows, _mm512_set1_pd(scan->least_rows), _CMP_GE_OQ);
		ok &= _mm512_cmp_pd_mask(rows, _mm512_set1_pd(scan->most_rows), _CMP_LE_OQ);
	}
	return ok;
}

AG_SCAN_AVX512 static void
scan_avx512(AgLaneScan *scan, int64_t added, double added_rows)
{
	const __m512d sum_g = _mm512_set1_pd(scan->sum_g), sum_h = _mm512_set1_pd(scan->sum_h);
	const __m512d l2 = _mm512_set1_pd(scan->l2), sure_h = _mm512_set1_pd(scan->sure_h);
	__m512d best = _mm512_set1_pd(-(double) INFINITY), maybe = best;
	__m512d best_at = _mm512_setzero_pd();
	__m512d lane = _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7);

	for (int i = 0; i < scan->n_cuts; i += 8, lane = _mm512_add_pd(lane, _mm512_set1_pd(8.0)))
	{
		__m512i sums =
			_mm512_add_epi64(_mm512_loadu_si512(scan->sums + i), _mm512_set1_epi64(added));
		__m512d gl = _mm512_cvtepi32_pd(_mm512_cvtepi64_epi32(_mm512_srli_epi64(sums, 32)));
		__m512d hl = _mm512_cvtepi32_pd(_mm512_cvtepi64_epi32(sums));
		__m512d gr = _mm512_sub_pd(sum_g, gl), hr = _mm512_sub_pd(sum_h, hl);
		__m512d dl = _mm512_add_pd(hl, l2), dr = _mm512_add_pd(hr, l2);
		__m512d least = _mm512_min_pd(hl, hr), score;
		__mmask8 ok = allowed_avx512(scan, i, added_rows, least), sure, better;

		if (ok == 0)
			continue;
		score = _mm512_div_pd(_mm512_add_pd(_mm512_mul_pd(_mm512_mul_pd(gl, gl), dr),
											_mm512_mul_pd(_mm512_mul_pd(gr, gr), dl)),
							  _mm512_mul_pd(dl, dr));
		sure = ok & _mm512_cmp_pd_mask(least, sure_h, _CMP_GE_OQ);
		better = _mm512_mask_cmp_pd_mask(sure, score, best, _CMP_GT_OQ);
		best = _mm512_mask_mov_pd(best, better, score);
		best_at = _mm512_mask_mov_pd(best_at, better, lane);
		maybe = _mm512_mask_max_pd(maybe, ok & ~sure, maybe, score);
	}
	_mm512_storeu_pd(scan->score, best);
	_mm512_storeu_pd(scan->maybe, maybe);
	_mm512_storeu_pd(scan->at, best_at);
}

/* All ones in the lanes whose cut may be allowed. */
__attribute__((target("avx2"))) static inline __m256d
allowed_avx2(const AgLaneScan *scan, int i, double added_rows, __m256d least, __m256d lane)
{
	__m256d ok = _mm256_cmp_pd(lane, _mm256_set1_pd((double) scan->n_cuts), _CMP_LT_OQ);

	ok = _mm256_and_pd(ok, _mm256_cmp_pd(least, _mm256_set1_pd(scan->least_h), _CMP_GE_OQ));
	ok = _mm256_and_pd(ok, _mm256_cmp_pd(_mm256_add_pd(least, _mm256_set1_pd(scan->l2)),
										 _mm256_setzero_pd(), _CMP_GT_OQ));
	if (scan->is_counted)
	{
		__m256d rows = _mm256_add_pd(_mm256_loadu_pd(scan->rows + i), _mm256_set1_pd(added_rows));

		ok = _mm256_and_pd(ok, _mm256_cmp_pd(rows, _mm256_set1_pd(scan->least_rows), _CMP_GE_OQ));
		ok = _mm256_and_pd(ok, _mm256_cmp_pd(rows, _mm256_set1_pd(scan->most_rows), _CMP_LE_OQ));
	}
	return ok;
}

/* Four at a time, into the first four lanes. */
__attribute__((target("avx2"))) static void
scan_avx2(AgLaneScan *scan, int64_t added, double added_rows)
{
	const __m256d sum_g = _mm256_set1_pd(scan->sum_g), sum_h = _mm256_set1_pd(scan->sum_h);
	const __m256d l2 = _mm256_set1_pd(scan->l2), sure_h = _mm256_set1_pd(scan->sure_h);
	const __m256d none = _mm256_set1_pd(-(double) INFINITY);
	const __m256i halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
	__m256d best = none, maybe = none, best_at = _mm256_setzero_pd();
	__m256d lane = _mm256_setr_pd(0, 1, 2, 3);

	for (int i = 0; i < scan->n_cuts; i += 4, lane = _mm256_add_pd(lane, _mm256_set1_pd(4.0)))
	{
		__m256i sums = _mm256_add_epi64(_mm256_loadu_si256((const __m256i *) (scan->sums + i)),
										_mm256_set1_epi64x(added));
		__m256i apart = _mm256_permutevar8x32_epi32(sums, halves); /* 4 hessians, 4 gradients */
		__m256d gl = _mm256_cvtepi32_pd(_mm256_extracti128_si256(apart, 1));
		__m256d hl = _mm256_cvtepi32_pd(_mm256_castsi256_si128(apart));
		__m256d gr = _mm256_sub_pd(sum_g, gl), hr = _mm256_sub_pd(sum_h, hl);
		__m256d dl = _mm256_add_pd(hl, l2), dr = _mm256_add_pd(hr, l2);
		__m256d least = _mm256_min_pd(hl, hr), score, sure, better, open;
		__m256d ok = allowed_avx2(scan, i, added_rows, least, lane);

		if (_mm256_movemask_pd(ok) == 0)
			continue;
		score = _mm256_div_pd(_mm256_add_pd(_mm256_mul_pd(_mm256_mul_pd(gl, gl), dr),
											_mm256_mul_pd(_mm256_mul_pd(gr, gr), dl)),
							  _mm256_mul_pd(dl, dr));
		sure = _mm256_and_pd(ok, _mm256_cmp_pd(least, sure_h, _CMP_GE_OQ));
		better = _mm256_and_pd(sure, _mm256_cmp_pd(score, best, _CMP_GT_OQ));
		best = _mm256_blendv_pd(best, score, better);
		best_at = _mm256_blendv_pd(best_at, lane, better);
		open = _mm256_andnot_pd(sure, ok);
		maybe = _mm256_max_pd(maybe, _mm256_blendv_pd(none, score, open));
	}
	for (int i = 4; i < AG_LANES; i++)
	{
		scan->score[i] = scan->maybe[i] = -(double) INFINITY;
		scan->at[i] = 0.0;
	}
	_mm256_storeu_pd(scan->score, best);
	_mm256_storeu_pd(scan->maybe, maybe);
	_mm256_storeu_pd(scan->at, best_at);
}

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
			lanes->rows[b - 1] = (double) rows;
		}
	for (int i = n_cuts; i % AG_LANES != 0; i++)
	{
		lanes->sums[i] = 0;
		lanes->rows[i] = 0.0;
	}
	return n_cuts;
}

static void
scan_lanes(AgCpuLevel level, AgLaneScan *lanes, int64_t added, double added_rows)
{
	if (level == AG_CPU_AVX512)
		scan_avx512(lanes, added, added_rows);
	else
		scan_avx2(lanes, added, added_rows);
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

	if (rules->level == AG_CPU_PORTABLE)
	{
		scan_unpacked(rules, node, cells, sums, n_bins, scan);
		return;
	}
	*scan = (AgScan){.score = -(double) INFINITY, .maybe = -(double) INFINITY};
	lanes.n_cuts = sum_cuts(cells, sums, n_bins, has_missing, &lanes);
	if (sums->is_counted)
		lanes.sure_h = -1.0;
	else if (never_h > lanes.least_h)
		lanes.least_h = never_h;
	lanes.least_rows = (double) rules->min_rows;
	lanes.most_rows = (double) (node->n_rows - rules->min_rows);
	scan_lanes(rules->level, &lanes, 0, 0.0);
	take_lanes(&lanes, 0, false, scan);
	if (!has_missing || n_bins < 2)
		return;
	lanes.n_cuts = n_bins - 1;
	scan_lanes(rules->level, &lanes, cells[0], sums->is_counted ? (double) sums->rows[0] : 0.0);
	take_lanes(&lanes, cells[0], true, scan);
}
#else
void
ag_scan_packed(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
			   const AgSplitSums *sums, int n_bins, AgScan *scan)
{
	scan_unpacked(rules, node, cells, sums, n_bins, scan);
}
#endif
