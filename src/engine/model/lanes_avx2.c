/*
 * lanes_avx2.c - gradients and orders, four numbers at a time.
 */
#include "engine/model/lanes_avx2.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/base/maths.h"

#define AG_AVX2 __attribute__((target("avx2")))
#define AG_AVX2_INLINE AG_AVX2 static inline __attribute__((always_inline))
#define AG_SUM_AHEAD 32 /* listed rows fetched ahead of their use */

/* A double is cut to a whole number and its bits become that number, where it is small enough, by adding this. */
#define AG_WHOLE 0x1.8p52
#define AG_WHOLE_MAX 0x1.0p51

/* exp_lanes (vectors.h), operation by operation. */
AG_AVX2_INLINE __m256d
exp4(__m256d x)
{
	const __m256d sign = _mm256_set1_pd(-0.0), half = _mm256_set1_pd(0.5);
	__m256d k = _mm256_mul_pd(x, _mm256_set1_pd(1.4426950408889634));
	__m128i n = _mm256_cvttpd_epi32(_mm256_add_pd(k, _mm256_or_pd(_mm256_and_pd(k, sign), half)));
	__m256i bits =
		_mm256_slli_epi64(_mm256_add_epi64(_mm256_cvtepi32_epi64(n), _mm256_set1_epi64x(1023)), 52);
	__m256d whole = _mm256_cvtepi32_pd(n);
	__m256d r = _mm256_sub_pd(x, _mm256_mul_pd(whole, _mm256_set1_pd(6.93147180369123816490e-01)));
	__m256d p;

	r = _mm256_sub_pd(r, _mm256_mul_pd(whole, _mm256_set1_pd(1.90821492927058770002e-10)));
	AG_EXP_SERIES(p, r);
	return _mm256_mul_pd(p, _mm256_castsi256_pd(bits));
}

/* sigmoid_lanes (vectors.h). */
AG_AVX2_INLINE __m256d
sigmoid4(__m256d x)
{
	const __m256d one = _mm256_set1_pd(1.0);
	__m256d e = exp4(_mm256_or_pd(x, _mm256_set1_pd(-0.0))); /* of -|x| */

	return _mm256_div_pd(_mm256_blendv_pd(one, e, x), _mm256_add_pd(one, e));
}

/* All ones where exp4 needs no second step; 0 for NaN. */
AG_AVX2_INLINE __m256d
is_inside(__m256d x)
{
	return _mm256_cmp_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), x), _mm256_set1_pd(700.0),
						 _CMP_LE_OQ);
}

AG_AVX2 void
ag_moderate_avx2(int n, const double *x, int *is_all)
{
	__m256d inside = _mm256_castsi256_pd(_mm256_set1_epi32(-1));

	for (int i = 0; i < n; i += 4)
		inside = _mm256_and_pd(inside, is_inside(_mm256_loadu_pd(x + i)));
	*is_all &= _mm256_movemask_pd(inside) == 15;
}

/* A gradient and hessian of four rows with the probability p, as floats. */
AG_AVX2_INLINE void
gradient4(__m256d p, const int32_t *class_of, __m128 *g, __m128 *h)
{
	__m128i is_one =
		_mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *) class_of), _mm_set1_epi32(1));
	__m256d less =
		_mm256_and_pd(_mm256_castsi256_pd(_mm256_cvtepi32_epi64(is_one)), _mm256_set1_pd(-1.0));

	*h = _mm256_cvtpd_ps(_mm256_mul_pd(p, _mm256_sub_pd(_mm256_set1_pd(1.0), p)));
	*g = _mm256_cvtpd_ps(_mm256_add_pd(p, less));
}

AG_AVX2 void
ag_logistic_avx2(int n, const double *scores, const int32_t *class_of, AgGradient *gradients,
				 int *is_moderate)
{
	__m256d inside = _mm256_castsi256_pd(_mm256_set1_epi32(-1));

	for (int i = 0; i < n; i += 4)
	{
		__m256d score = _mm256_loadu_pd(scores + i);
		__m128 g, h;

		inside = _mm256_and_pd(inside, is_inside(score));
		gradient4(sigmoid4(score), class_of + i, &g, &h);
		_mm_storeu_ps(&gradients[i].g, _mm_unpacklo_ps(g, h));
		_mm_storeu_ps(&gradients[i + 2].g, _mm_unpackhi_ps(g, h));
	}
	*is_moderate &= _mm256_movemask_pd(inside) == 15;
}

/* Sums of products, each cut to a whole number: n of them a lane lie in `whole`, and the largest in `most`. */
typedef struct AgWholeSum
{
	__m256i whole;
	__m256d most;
} AgWholeSum;

AG_AVX2_INLINE void
add_whole(AgWholeSum *sum, __m256d x)
{
	__m256d cut = _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
	__m256d bits = _mm256_add_pd(cut, _mm256_set1_pd(AG_WHOLE));

	sum->whole = _mm256_add_epi64(sum->whole, _mm256_castpd_si256(bits));
	sum->most = _mm256_max_pd(sum->most, _mm256_andnot_pd(_mm256_set1_pd(-0.0), x));
}

/* The lanes' sums once n numbers were added to each; false when one was too large. */
AG_AVX2_INLINE bool
take_whole(const AgWholeSum *sum, int64_t n, int64_t *lanes)
{
	__m256i each = _mm256_castpd_si256(_mm256_set1_pd(AG_WHOLE));
	__m256d small = _mm256_cmp_pd(sum->most, _mm256_set1_pd(AG_WHOLE_MAX), _CMP_LT_OQ);
	int64_t bits[4];

	_mm256_storeu_si256((__m256i *) lanes, sum->whole);
	_mm256_storeu_si256((__m256i *) bits, each);
	for (int l = 0; l < 4; l++)
		lanes[l] = (int64_t) ((uint64_t) lanes[l] - (uint64_t) n * (uint64_t) bits[l]);
	return _mm256_movemask_pd(small) == 15;
}

AG_AVX2 void
ag_step_avx2(int64_t n, double step, double *scores, const int32_t *class_of, double per_g,
			 double per_h, int64_t *sum_g, int64_t *sum_h, int *is_moderate)
{
	AgWholeSum all_g = {_mm256_setzero_si256(), _mm256_setzero_pd()}, all_h = all_g;
	__m256d inside = _mm256_castsi256_pd(_mm256_set1_epi32(-1));
	int64_t g_lanes[4], h_lanes[4];
	bool is_small;

	for (int64_t i = 0; i < n; i += 4)
	{
		__m256d score = _mm256_add_pd(_mm256_loadu_pd(scores + i), _mm256_set1_pd(step));
		__m128 g, h;

		_mm256_storeu_pd(scores + i, score);
		inside = _mm256_and_pd(inside, is_inside(score));
		gradient4(sigmoid4(score), class_of + i, &g, &h);
		add_whole(&all_g, _mm256_mul_pd(_mm256_cvtps_pd(g), _mm256_set1_pd(per_g)));
		add_whole(&all_h, _mm256_mul_pd(_mm256_cvtps_pd(h), _mm256_set1_pd(per_h)));
	}
	is_small = take_whole(&all_g, n / 4, g_lanes);
	is_small = take_whole(&all_h, n / 4, h_lanes) && is_small;
	*is_moderate &= is_small && _mm256_movemask_pd(inside) == 15;
	for (int l = 0; l < 4 && *is_moderate; l++)
	{
		*sum_g += g_lanes[l];
		*sum_h += h_lanes[l];
	}
}

AG_AVX2 void
ag_range_avx2(int64_t n, const AgGradient *gradients, uint32_t *max_g, uint32_t *max_h)
{
	const __m256i size = _mm256_set1_epi32(0x7fffffff);
	__m256i most = _mm256_setzero_si256();
	uint32_t found[8];

	for (int64_t i = 0; i < n; i += 4)
		most = _mm256_max_epi32(
			most, _mm256_and_si256(_mm256_loadu_si256((const __m256i *) (gradients + i)), size));
	_mm256_storeu_si256((__m256i *) found, most);
	for (int l = 0; l < 8; l += 2)
	{
		*max_g = found[l] > *max_g ? found[l] : *max_g;
		*max_h = found[l + 1] > *max_h ? found[l + 1] : *max_h;
	}
}

/* Two listed rows' gradients and hessians, as they lie. */
AG_AVX2_INLINE __m256d
load_pairs(const AgGradient *gradients, const uint32_t *ids)
{
	__m128 pairs = _mm_loadl_pi(_mm_setzero_ps(), (const __m64 *) (gradients + ids[0]));

	return _mm256_cvtps_pd(_mm_loadh_pi(pairs, (const __m64 *) (gradients + ids[1])));
}

AG_AVX2 void
ag_sum_avx2(int64_t n, const uint32_t *ids, const AgGradient *gradients, double per_g, double per_h,
			int64_t *sum_g, int64_t *sum_h)
{
	const __m256d per = _mm256_setr_pd(per_g, per_h, per_g, per_h);
	AgWholeSum first = {_mm256_setzero_si256(), _mm256_setzero_pd()}, second = first;
	int64_t lanes[4], more[4];
	bool is_small;

	for (int64_t i = 0; i < n; i += 4)
	{
		if (i + AG_SUM_AHEAD + 4 <= n)
			for (int l = 0; l < 4; l++)
				__builtin_prefetch(gradients + ids[i + AG_SUM_AHEAD + l]);
		add_whole(&first, _mm256_mul_pd(load_pairs(gradients, ids + i), per));
		add_whole(&second, _mm256_mul_pd(load_pairs(gradients, ids + i + 2), per));
	}
	is_small = take_whole(&first, n / 4, lanes);
	is_small = take_whole(&second, n / 4, more) && is_small;
	for (int l = 0; l < 4 && is_small; l += 2)
	{
		*sum_g += lanes[l] + more[l];
		*sum_h += lanes[l + 1] + more[l + 1];
	}
	for (int64_t i = 0; i < n && !is_small; i++)
	{
		*sum_g += (int64_t) ((double) gradients[ids[i]].g * per_g);
		*sum_h += (int64_t) ((double) gradients[ids[i]].h * per_h);
	}
}

/* One more where the mask is all ones. */
AG_AVX2_INLINE __m256i
count_up(__m256i n, __m256d mask)
{
	return _mm256_sub_epi64(n, _mm256_castpd_si256(mask));
}

AG_AVX2 void
ag_places_avx2(int n, const double *x, uint8_t *places)
{
	/* Eight of them from 7 - d on: all ones in the lanes behind lane d. */
	static const int64_t behind[2 * AG_LANES] = {0,  0,  0,  0,  0,  0,  0,  0,
												 -1, -1, -1, -1, -1, -1, -1, -1};

	for (int i = 0; i < n; i += AG_LANES)
	{
		__m256d low = _mm256_loadu_pd(x + i), high = _mm256_loadu_pd(x + i + 4);
		__m256i n_low = _mm256_setzero_si256(), n_high = n_low;
		int64_t counts[AG_LANES];
		int j = 0;

		for (; j < i; j++)
		{
			__m256d other = _mm256_broadcast_sd(x + j);

			n_low = count_up(n_low, _mm256_cmp_pd(other, low, _CMP_LE_OQ));
			n_high = count_up(n_high, _mm256_cmp_pd(other, high, _CMP_LE_OQ));
		}
		for (; j < i + AG_LANES; j++)
		{
			__m256d other = _mm256_broadcast_sd(x + j);
			__m256d behind_low = _mm256_loadu_pd((const double *) (behind + 7 - (j - i)));
			__m256d behind_high = _mm256_loadu_pd((const double *) (behind + 11 - (j - i)));

			behind_low = _mm256_and_pd(behind_low, _mm256_cmp_pd(other, low, _CMP_EQ_OQ));
			behind_high = _mm256_and_pd(behind_high, _mm256_cmp_pd(other, high, _CMP_EQ_OQ));
			n_low =
				count_up(n_low, _mm256_or_pd(_mm256_cmp_pd(other, low, _CMP_LT_OQ), behind_low));
			n_high =
				count_up(n_high, _mm256_or_pd(_mm256_cmp_pd(other, high, _CMP_LT_OQ), behind_high));
		}
		for (; j < n; j++)
		{
			__m256d other = _mm256_broadcast_sd(x + j);

			n_low = count_up(n_low, _mm256_cmp_pd(other, low, _CMP_LT_OQ));
			n_high = count_up(n_high, _mm256_cmp_pd(other, high, _CMP_LT_OQ));
		}
		_mm256_storeu_si256((__m256i *) counts, n_low);
		_mm256_storeu_si256((__m256i *) (counts + 4), n_high);
		for (int l = 0; l < AG_LANES && i + l < n; l++)
			places[i + l] = (uint8_t) counts[l];
	}
}

/* x times the number whose halves are low and high, modulo 2^64. */
AG_AVX2_INLINE __m256i
times(__m256i x, uint32_t low, uint32_t high)
{
	const __m256i l = _mm256_set1_epi64x(low), h = _mm256_set1_epi64x(high);
	__m256i cross =
		_mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), l), _mm256_mul_epu32(x, h));

	return _mm256_add_epi64(_mm256_mul_epu32(x, l), _mm256_slli_epi64(cross, 32));
}

/* ag_mix64. */
AG_AVX2_INLINE __m256i
mix4(__m256i x)
{
	x = times(_mm256_xor_si256(x, _mm256_srli_epi64(x, 30)), 0x1ce4e5b9u, 0xbf58476du);
	x = times(_mm256_xor_si256(x, _mm256_srli_epi64(x, 27)), 0x133111ebu, 0x94d049bbu);
	return _mm256_xor_si256(x, _mm256_srli_epi64(x, 31));
}

/* floor(x + u); the low halves of `words` are those of u over 2^32, their high halves 2^52's. */
AG_AVX2_INLINE __m128i
round4(__m256d x, __m256i words)
{
	__m256d u = _mm256_sub_pd(_mm256_castsi256_pd(words), _mm256_set1_pd(0x1.0p52));

	x = _mm256_add_pd(x, _mm256_mul_pd(u, _mm256_set1_pd(0x1.0p-32)));
	return _mm256_cvttpd_epi32(_mm256_floor_pd(x));
}

AG_AVX2 void
ag_round_avx2(int n, uint64_t key, const uint32_t *rows, const AgGradient *gradients, double per_g,
			  double per_h, bool is_equal, uint32_t *packed, AgPackedSums *sums)
{
	const __m256i apart = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
	const __m256i base = _mm256_set1_epi64x(0x4330000000000000);
	const __m128i one = _mm_set1_epi32(1), equal = _mm_set1_epi32(is_equal ? -1 : 0);
	__m128i sum_g = _mm_setzero_si128(), sum_h = sum_g, most = sum_g;
	__m128i least = _mm_set1_epi32(INT32_MAX);
	int32_t lanes[4][4];

	for (int i = 0; i < n; i += 4)
	{
		__m256i row = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *) (rows + i)));
		__m256i pairs = _mm256_loadu_si256((const __m256i *) (gradients + i));
		__m256 parts = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(pairs, apart));
		__m128 narrow_g = _mm256_castps256_ps128(parts), narrow_h = _mm256_extractf128_ps(parts, 1);
		__m256i bits =
			mix4(_mm256_add_epi64(row, _mm256_set1_epi64x((int64_t) UINT64_C(0x9e3779b97f4a7c15))));
		__m256d g = _mm256_mul_pd(_mm256_cvtps_pd(narrow_g), _mm256_set1_pd(per_g));
		__m256d h = _mm256_mul_pd(_mm256_cvtps_pd(narrow_h), _mm256_set1_pd(per_h));
		__m128i qg, qh, has_h = _mm_castps_si128(_mm_cmpgt_ps(narrow_h, _mm_setzero_ps()));

		bits = mix4(_mm256_xor_si256(bits, _mm256_set1_epi64x((int64_t) key)));
		qg = round4(g, _mm256_or_si256(_mm256_srli_epi64(bits, 32), base));
		qh = round4(h, _mm256_blend_epi32(bits, base, 0xaa));
		qh = _mm_sub_epi32(qh, _mm_and_si128(_mm_cmpeq_epi32(qh, _mm_setzero_si128()), has_h));
		qh = _mm_blendv_epi8(qh, one, equal);
		sum_g = _mm_add_epi32(sum_g, qg);
		sum_h = _mm_add_epi32(sum_h, qh);
		least = _mm_min_epi32(least, qh);
		most = _mm_max_epi32(most, qh);
		_mm_storeu_si128((__m128i *) (packed + i), _mm_or_si128(_mm_slli_epi32(qg, 16), qh));
	}
	_mm_storeu_si128((__m128i *) lanes[0], sum_g);
	_mm_storeu_si128((__m128i *) lanes[1], sum_h);
	_mm_storeu_si128((__m128i *) lanes[2], least);
	_mm_storeu_si128((__m128i *) lanes[3], most);
	for (int l = 0; l < 4; l++)
	{
		sums->sum_g += lanes[0][l];
		sums->sum_h += lanes[1][l];
		sums->min_h = (uint32_t) lanes[2][l] < sums->min_h ? (uint32_t) lanes[2][l] : sums->min_h;
		sums->max_h = (uint32_t) lanes[3][l] > sums->max_h ? (uint32_t) lanes[3][l] : sums->max_h;
	}
}
#endif
