/*
 * split_lanes.c - scoring the cuts of a numeric feature, eight at a time, from packed sums.
 *
 * Running sums are made in the register (Hillis & Steele 1986): both halves of a cell in one addition. A division is
 * most of what a score costs, so it is made only where numerator against threshold times denominator says that the
 * cut may matter: most features never come near the best of those before them.
 */
#include "engine/model/split_lanes.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)

#define AG_SCAN_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* The best cuts so far, in registers. */
typedef struct AgBest512
{
	__m512d score, maybe, at;
	__m512i left;
	double threshold; /* what a cut must score to matter, rounding allowed for */
} AgBest512;

/* Scores cuts i.. whose left sides are given; false when none of them matters. */
AG_SCAN_AVX512 static inline bool
score_avx512(const AgLaneScan *scan, __m512i left, __mmask8 in, int i, AgBest512 *best)
{
	const __m512d l2 = _mm512_set1_pd(scan->l2), threshold = _mm512_set1_pd(best->threshold);
	__m512d gl = _mm512_cvtepi64_pd(_mm512_srai_epi64(left, 32));
	__m512d hl = _mm512_cvtepi64_pd(_mm512_and_si512(left, _mm512_set1_epi64(0xffffffff)));
	__m512d gr = _mm512_sub_pd(_mm512_set1_pd(scan->sum_g), gl);
	__m512d hr = _mm512_sub_pd(_mm512_set1_pd(scan->sum_h), hl);
	__m512d dl = _mm512_add_pd(hl, l2), dr = _mm512_add_pd(hr, l2);
	__m512d least = _mm512_min_pd(hl, hr), den = _mm512_mul_pd(dl, dr), score;
	__m512d num = _mm512_add_pd(_mm512_mul_pd(_mm512_mul_pd(gl, gl), dr),
								_mm512_mul_pd(_mm512_mul_pd(gr, gr), dl));
	__mmask8 ok = _mm512_mask_cmp_pd_mask(in, least, _mm512_set1_pd(scan->least_h), _CMP_GE_OQ);
	__mmask8 sure, better;
	double highest;

	ok = _mm512_mask_cmp_pd_mask(ok, num, _mm512_mul_pd(threshold, den), _CMP_GE_OQ);
	if (ok == 0)
		return false;
	if (scan->rows != NULL)
	{
		__m512d rows =
			_mm512_add_pd(_mm512_loadu_pd(scan->rows + i), _mm512_set1_pd(scan->added_rows));

		ok = _mm512_mask_cmp_pd_mask(ok, rows, _mm512_set1_pd(scan->least_rows), _CMP_GE_OQ);
		ok = _mm512_mask_cmp_pd_mask(ok, rows, _mm512_set1_pd(scan->most_rows), _CMP_LE_OQ);
	}
	score = _mm512_div_pd(num, den);
	sure = ok & _mm512_cmp_pd_mask(least, _mm512_set1_pd(scan->sure_h), _CMP_GE_OQ);
	better = _mm512_mask_cmp_pd_mask(sure, score, best->score, _CMP_GT_OQ);
	best->maybe = _mm512_mask_max_pd(best->maybe, ok & ~sure, best->maybe, score);
	if (better == 0)
		return true;
	best->score = _mm512_mask_mov_pd(best->score, better, score);
	best->left = _mm512_mask_mov_epi64(best->left, better, left);
	best->at = _mm512_mask_mov_pd(
		best->at, better,
		_mm512_add_pd(_mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_pd((double) i)));
	highest = _mm512_reduce_max_pd(best->score) * (1.0 - AG_SCAN_SLACK);
	best->threshold = highest > best->threshold ? highest : best->threshold;
	return true;
}

/* Eight cells' running sums. */
AG_SCAN_AVX512 static inline __m512i
running_avx512(__m512i cells)
{
	const __m512i zero = _mm512_setzero_si512();

	cells = _mm512_add_epi64(cells, _mm512_alignr_epi64(cells, zero, 7));
	cells = _mm512_add_epi64(cells, _mm512_alignr_epi64(cells, zero, 6));
	return _mm512_add_epi64(cells, _mm512_alignr_epi64(cells, zero, 4));
}

/* What the filter compares with, a little lower than exact. */
typedef struct AgFilter512
{
	__m512i sum_g, sum_h; /* of the node, as int32 and uint32 */
	__m512 l2, least_h;
} AgFilter512;

/*
 * Which of sixteen cuts may score `threshold`: the same numbers in single precision, whose error is far below the slack
 * that it is given. Sums of a narrow histogram fit 32 bits, so both sides are exact before they are rounded.
 */
AG_SCAN_AVX512 static inline __mmask16
filter_avx512(const AgFilter512 *filter, __m512i first, __m512i second, double threshold)
{
	const __m512i low =
		_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
	const __m512i high =
		_mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
	__m512i whole_h = _mm512_permutex2var_epi32(first, low, second);
	__m512i whole_g = _mm512_permutex2var_epi32(first, high, second);
	__m512 gl = _mm512_cvtepi32_ps(whole_g);
	__m512 gr = _mm512_cvtepi32_ps(_mm512_sub_epi32(filter->sum_g, whole_g));
	__m512 hl = _mm512_cvtepu32_ps(whole_h);
	__m512 hr = _mm512_cvtepu32_ps(_mm512_sub_epi32(filter->sum_h, whole_h));
	__m512 dl = _mm512_add_ps(hl, filter->l2), dr = _mm512_add_ps(hr, filter->l2);
	__m512 bar = _mm512_set1_ps((float) (threshold * (1.0 - AG_FILTER_SLACK)));
	__m512 num = _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(gl, gl), dr),
							   _mm512_mul_ps(_mm512_mul_ps(gr, gr), dl));
	__mmask16 ok = _mm512_cmp_ps_mask(_mm512_min_ps(hl, hr), filter->least_h, _CMP_GE_OQ);

	return _mm512_mask_cmp_ps_mask(ok, num, _mm512_mul_ps(bar, _mm512_mul_ps(dl, dr)), _CMP_GE_OQ);
}

AG_SCAN_AVX512 static bool
scan_avx512(const AgLaneScan *scan, AgLaneBest *found)
{
	const __m512i added = _mm512_set1_epi64(scan->added), last = _mm512_set1_epi64(7);
	const __m512d none = _mm512_set1_pd(-(double) INFINITY);
	AgBest512 best = {none, none, _mm512_setzero_pd(), _mm512_setzero_si512(), scan->floor};
	AgFilter512 filter = {_mm512_set1_epi32((int32_t) scan->sum_g),
						  _mm512_set1_epi32((int32_t) (uint32_t) scan->sum_h),
						  _mm512_set1_ps((float) scan->l2),
						  _mm512_set1_ps((float) (scan->least_h * (1.0 - AG_FILTER_SLACK)))};
	bool is_filtered = scan->l2 <= AG_FILTER_L2_MAX && scan->floor > 0.0;
	__m512i carry = added;
	bool has_any = false;

	for (int i = 0; i < scan->n_cuts; i += 16)
	{
		__mmask16 in =
			(__mmask16) (scan->n_cuts - i >= 16 ? 0xffff : (1 << (scan->n_cuts - i)) - 1);
		__m512i first = running_avx512(_mm512_maskz_loadu_epi64((__mmask8) in, scan->cells + i));
		__m512i second =
			running_avx512(_mm512_maskz_loadu_epi64((__mmask8) (in >> 8), scan->cells + i + 8));
		__m512i middle = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(last, first));

		first = _mm512_add_epi64(first, carry);
		carry = _mm512_add_epi64(middle, _mm512_permutexvar_epi64(last, second));
		second = _mm512_add_epi64(second, middle);
		if (is_filtered)
			in &= filter_avx512(&filter, first, second, best.threshold);
		if (in == 0)
			continue;
		if ((in & 0xff) != 0)
			has_any |= score_avx512(scan, first, (__mmask8) in, i, &best);
		if (in >> 8 != 0)
			has_any |= score_avx512(scan, second, (__mmask8) (in >> 8), i + 8, &best);
	}
	if (!has_any)
		return false;
	_mm512_storeu_pd(found->score, best.score);
	_mm512_storeu_pd(found->maybe, best.maybe);
	_mm512_storeu_pd(found->at, best.at);
	_mm512_storeu_si512(found->left, best.left);
	return true;
}

/* Scans, and takes the best of the lanes where it beats what is there: greater score, or the same at a lower bin. */
static void
scan_lanes(AgCpuLevel level, const AgLaneScan *lanes, bool missing_left, AgScan *scan)
{
	AgLaneBest found;

	if (!(level == AG_CPU_AVX512 ? scan_avx512(lanes, &found) : ag_scan_avx2(lanes, &found)))
		return;
	for (int i = 0; i < AG_LANES; i++)
	{
		int bin = (int) found.at[i] + 1;

		if (found.maybe[i] > scan->maybe)
			scan->maybe = found.maybe[i];
		if (!(found.score[i] > scan->score ||
			  (found.score[i] == scan->score && scan->bin > 0 && bin < scan->bin)))
			continue;
		scan->score = found.score[i];
		scan->bin = bin;
		scan->missing_left = missing_left;
		scan->left_g = found.left[i] >> 32;
		scan->left_h = found.left[i] & 0xffffffff;
	}
}

/* Rows before each cut, filled up for whole vectors. */
static void
sum_rows(const AgSplitSums *sums, int n_cuts, double *rows)
{
	int64_t sum = 0;

	for (int b = 1; b <= n_cuts; b++)
	{
		sum += sums->rows[b];
		rows[b - 1] = (double) sum;
	}
	for (int i = n_cuts; i % AG_SCAN_CUTS != 0; i++)
		rows[i] = 0.0;
}

void
ag_scan_packed(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
			   const AgSplitSums *sums, int n_bins, double floor, AgScan *scan)
{
	bool has_missing = cells[0] != 0;
	double never_h = (double) (rules->min_rows * rules->min_h_row);
	double rows[AG_HIST_BINS + AG_SCAN_CUTS];
	AgLaneScan lanes = {.cells = cells + 1,
						.n_cuts = has_missing ? n_bins : n_bins - 1,
						.sum_g = (double) node->sum_g,
						.sum_h = (double) node->sum_h,
						.l2 = rules->l2,
						.least_h = rules->min_h,
						.sure_h = (double) (rules->min_rows * rules->max_h_row),
						.least_rows = (double) rules->min_rows,
						.most_rows = (double) (node->n_rows - rules->min_rows),
						.floor = floor - fabs(floor) * AG_SCAN_SLACK};

	if (rules->level == AG_CPU_PORTABLE)
	{
		scan_unpacked(rules, node, cells, sums, n_bins, scan);
		return;
	}
	*scan = (AgScan){.score = -(double) INFINITY, .maybe = -(double) INFINITY};
	if (sums->is_counted)
	{
		sum_rows(sums, lanes.n_cuts, rows);
		lanes.rows = rows;
		lanes.sure_h = -1.0;
	}
	else if (never_h > lanes.least_h)
		lanes.least_h = never_h;
	if (!(rules->l2 > 0.0) &&
		lanes.least_h < 1.0) /* sums are whole: a side without hessian is out */
		lanes.least_h = 1.0;
	scan_lanes(rules->level, &lanes, false, scan);
	if (!has_missing || n_bins < 2)
		return;
	lanes.n_cuts = n_bins - 1;
	lanes.added = cells[0];
	lanes.added_rows = sums->is_counted ? (double) sums->rows[0] : 0.0;
	scan_lanes(rules->level, &lanes, true, scan);
}
#else
void
ag_scan_packed(const AgSplitRules *rules, const AgSplitNode *node, const int64_t *cells,
			   const AgSplitSums *sums, int n_bins, double floor, AgScan *scan)
{
	(void) floor;
	scan_unpacked(rules, node, cells, sums, n_bins, scan);
}
#endif
