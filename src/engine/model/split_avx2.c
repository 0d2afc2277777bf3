/*
 * split_avx2.c - scoring the cuts of a numeric feature with AVX2: sixteen at a time are looked at, four at a time scored.
 */
#include "engine/model/split_lanes.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define AG_AVX2 __attribute__((target("avx2")))
#define AG_AVX2_INLINE AG_AVX2 static inline __attribute__((always_inline))

/* The best cuts so far, a lane each. */
typedef struct AgBest256
{
	__m256d score, maybe, at;
	__m256i left;
	double threshold; /* what a cut must score to matter, rounding allowed for */
} AgBest256;

/*
 * What tells in single precision which cuts may reach a threshold. Both sides' merits are that of the node whole, G²/D, and
 * D c² / (L R), where L and R are the sides' hessians with l2, D is L + R, and c = g - L G/D for the left side's gradient
 * g. So the cuts that matter have c² >= T L R with T = (threshold - G²/D) / D. Here c is wrong by less than 2^-22 of itself and
 * 2^-21 of G, which `slack` and a T that is a little too low make up for; R is a little too low.
 */
typedef struct AgFilter256
{
	__m256 l2, d, per_h, slack, t, least;
	double parent, whole; /* G²/D; D */
	bool is_used;
} AgFilter256;

AG_AVX2_INLINE void
filter_raise(AgFilter256 *filter, double threshold)
{
	double t = (threshold - threshold * AG_SCAN_SLACK - filter->parent) / filter->whole;

	/* So little that a float can't hold it: everything passes. */
	filter->t = _mm256_set1_ps(t > 1e-30 ? (float) (t * (1.0 - 0x1.0p-11)) : 0.0f);
}

AG_AVX2_INLINE void
filter_init(AgFilter256 *filter, const AgLaneScan *scan)
{
	double d = scan->sum_h + 2.0 * scan->l2, g = scan->sum_g;

	filter->is_used = scan->l2 <= AG_FILTER_L2_MAX && d > 0.0;
	filter->l2 = _mm256_set1_ps((float) scan->l2);
	filter->d = _mm256_set1_ps((float) (d * (1.0 - 0x1.0p-20)));
	filter->per_h = _mm256_set1_ps((float) (g / d));
	filter->slack = _mm256_set1_ps((float) (g * g * 0x1.0p-29));
	filter->least =
		_mm256_set1_ps((float) ((scan->least_h + scan->l2) * (1.0 - 0x1.0p-20) - d * 0x1.0p-19));
	filter->parent = g * g / d;
	filter->whole = d;
	filter_raise(filter, scan->floor);
}

/* Which of eight cuts may matter; bits 0, 1, 4 and 5 are the lanes of `first`. */
AG_AVX2_INLINE __m256
filter8(const AgFilter256 *filter, __m256i first, __m256i second)
{
	__m256 a = _mm256_castsi256_ps(first), b = _mm256_castsi256_ps(second);
	__m256 h = _mm256_cvtepi32_ps(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)));
	__m256 g = _mm256_cvtepi32_ps(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd)));
	__m256 l = _mm256_add_ps(h, filter->l2), r = _mm256_sub_ps(filter->d, l);
	__m256 c = _mm256_sub_ps(g, _mm256_mul_ps(l, filter->per_h));
	__m256 reached = _mm256_cmp_ps(_mm256_add_ps(_mm256_mul_ps(c, c), filter->slack),
								   _mm256_mul_ps(_mm256_mul_ps(l, filter->t), r), _CMP_GE_OQ);

	return _mm256_and_ps(reached, _mm256_cmp_ps(_mm256_min_ps(l, r), filter->least, _CMP_GE_OQ));
}

/* Scores cuts i, i + 4, i + 8 and i + 12, whose left sides are given; false when none of them matters. */
AG_AVX2_INLINE bool
score4(const AgLaneScan *scan, __m256i left, int i, AgBest256 *best)
{
	const __m256i halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
	const __m256d l2 = _mm256_set1_pd(scan->l2), none = _mm256_set1_pd(-(double) INFINITY);
	__m256i apart = _mm256_permutevar8x32_epi32(left, halves); /* 4 hessians, 4 gradients */
	__m256d at = _mm256_add_pd(_mm256_setr_pd(0.0, 4.0, 8.0, 12.0), _mm256_set1_pd((double) i));
	__m256d gl = _mm256_cvtepi32_pd(_mm256_extracti128_si256(apart, 1));
	__m256d hl = _mm256_cvtepi32_pd(_mm256_castsi256_si128(apart));
	__m256d gr = _mm256_sub_pd(_mm256_set1_pd(scan->sum_g), gl);
	__m256d hr = _mm256_sub_pd(_mm256_set1_pd(scan->sum_h), hl);
	__m256d dl = _mm256_add_pd(hl, l2), dr = _mm256_add_pd(hr, l2);
	__m256d least = _mm256_min_pd(hl, hr), den = _mm256_mul_pd(dl, dr), score, sure, better;
	__m256d num = _mm256_add_pd(_mm256_mul_pd(_mm256_mul_pd(gl, gl), dr),
								_mm256_mul_pd(_mm256_mul_pd(gr, gr), dl));
	__m256d ok = _mm256_cmp_pd(at, _mm256_set1_pd((double) scan->n_cuts), _CMP_LT_OQ);
	double lanes[4], highest;

	ok = _mm256_and_pd(ok, _mm256_cmp_pd(least, _mm256_set1_pd(scan->least_h), _CMP_GE_OQ));
	ok = _mm256_and_pd(
		ok, _mm256_cmp_pd(num, _mm256_mul_pd(_mm256_set1_pd(best->threshold), den), _CMP_GE_OQ));
	if (_mm256_movemask_pd(ok) == 0)
		return false;
	if (scan->rows != NULL)
	{
		__m256d rows =
			_mm256_setr_pd(scan->rows[i], scan->rows[i + 4], scan->rows[i + 8], scan->rows[i + 12]);

		rows = _mm256_add_pd(rows, _mm256_set1_pd(scan->added_rows));
		ok = _mm256_and_pd(ok, _mm256_cmp_pd(rows, _mm256_set1_pd(scan->least_rows), _CMP_GE_OQ));
		ok = _mm256_and_pd(ok, _mm256_cmp_pd(rows, _mm256_set1_pd(scan->most_rows), _CMP_LE_OQ));
	}
	score = _mm256_div_pd(num, den);
	sure = _mm256_and_pd(ok, _mm256_cmp_pd(least, _mm256_set1_pd(scan->sure_h), _CMP_GE_OQ));
	better = _mm256_and_pd(sure, _mm256_cmp_pd(score, best->score, _CMP_GT_OQ));
	best->maybe =
		_mm256_max_pd(best->maybe, _mm256_blendv_pd(none, score, _mm256_andnot_pd(sure, ok)));
	if (_mm256_movemask_pd(better) == 0)
		return true;
	best->score = _mm256_blendv_pd(best->score, score, better);
	best->at = _mm256_blendv_pd(best->at, at, better);
	best->left = _mm256_blendv_epi8(best->left, left, _mm256_castpd_si256(better));
	_mm256_storeu_pd(lanes, best->score);
	highest = lanes[0] > lanes[1] ? lanes[0] : lanes[1];
	highest = lanes[2] > highest ? lanes[2] : highest;
	highest = (lanes[3] > highest ? lanes[3] : highest) * (1.0 - AG_SCAN_SLACK);
	best->threshold = highest > best->threshold ? highest : best->threshold;
	return true;
}

/* Two cells from each place, as one vector. */
AG_AVX2_INLINE __m256i
load_two(const int64_t *low, const int64_t *high)
{
	__m256i both = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *) low));

	return _mm256_inserti128_si256(both, _mm_loadu_si128((const __m128i *) high), 1);
}

/* The running sums of sixteen cells behind *carry: left[k]'s lane l is that of cell 4 l + k. */
AG_AVX2_INLINE void
running16(const int64_t *cells, __m256i *carry, __m256i *left)
{
	__m256i even = load_two(cells, cells + 8), odd = load_two(cells + 4, cells + 12);
	__m256i last, before;

	left[0] = _mm256_unpacklo_epi64(even, odd);
	left[1] = _mm256_add_epi64(left[0], _mm256_unpackhi_epi64(even, odd));
	even = load_two(cells + 2, cells + 10);
	odd = load_two(cells + 6, cells + 14);
	left[2] = _mm256_add_epi64(left[1], _mm256_unpacklo_epi64(even, odd));
	last = _mm256_add_epi64(left[2], _mm256_unpackhi_epi64(even, odd));
	/* What lies before each lane's four: 0, s0, s0 + s1, s0 + s1 + s2. */
	before = _mm256_blend_epi32(_mm256_permute4x64_epi64(last, 0x90), _mm256_setzero_si256(), 3);
	before = _mm256_add_epi64(before, _mm256_slli_si256(before, 8));
	before = _mm256_add_epi64(before, _mm256_blend_epi32(_mm256_permute4x64_epi64(before, 0x50),
														 _mm256_setzero_si256(), 0x0f));
	before = _mm256_add_epi64(before, *carry);
	left[0] = _mm256_add_epi64(left[0], before);
	left[1] = _mm256_add_epi64(left[1], before);
	left[2] = _mm256_add_epi64(left[2], before);
	left[3] = _mm256_add_epi64(last, before);
	*carry = _mm256_permute4x64_epi64(left[3], 0xff);
}

AG_AVX2 static void
store_best(const AgBest256 *best, AgLaneBest *found)
{
	for (int i = 4; i < AG_LANES; i++)
	{
		found->score[i] = found->maybe[i] = -(double) INFINITY;
		found->at[i] = 0.0;
		found->left[i] = 0;
	}
	_mm256_storeu_pd(found->score, best->score);
	_mm256_storeu_pd(found->maybe, best->maybe);
	_mm256_storeu_pd(found->at, best->at);
	_mm256_storeu_si256((__m256i *) found->left, best->left);
}

AG_AVX2 bool
ag_scan_avx2(const AgLaneScan *scan, AgLaneBest *found)
{
	const __m256d none = _mm256_set1_pd(-(double) INFINITY);
	AgBest256 best = {none, none, _mm256_setzero_pd(), _mm256_setzero_si256(), scan->floor};
	__m256i carry = _mm256_set1_epi64x(scan->added), left[4];
	AgFilter256 filter;
	bool has_any = false;

	filter_init(&filter, scan);
	for (int i = 0; i < scan->n_cuts; i += 16)
	{
		const int64_t *cells = scan->cells + i;
		int64_t last[16];
		unsigned in = 0xffff;

		if (scan->n_cuts - i < 16)
		{
			for (int k = 0; k < 16; k++)
				last[k] = i + k < scan->n_cuts ? cells[k] : 0;
			cells = last;
		}
		running16(cells, &carry, left);
		if (filter.is_used)
		{
			__m256 low = filter8(&filter, left[0], left[1]);
			__m256 high = filter8(&filter, left[2], left[3]);

			if (_mm256_movemask_ps(_mm256_or_ps(low, high)) == 0)
				continue;
			in = (unsigned) _mm256_movemask_ps(low) | (unsigned) _mm256_movemask_ps(high) << 8;
		}
		for (int k = 0; k < 4; k++)
			if ((in >> (k / 2 * 8) & (k % 2 ? 0xccu : 0x33u)) != 0)
				has_any |= score4(scan, left[k], i + k, &best);
		if (filter.is_used)
			filter_raise(&filter, best.threshold);
	}
	if (!has_any)
		return false;
	store_best(&best, found);
	return true;
}
#endif
