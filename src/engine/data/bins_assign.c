/*
 * bins_assign.c - the bins of many values.
 *
 * A value's bin is one more than the number of cuts below it. Counting beats searching: compare with 16 pivots, then
 * with the 16 cuts of one group, all without a branch; 4 compares a value with AVX-512, 8 with AVX2. NaN is below no
 * cut and is set apart by a last select.
 */
#include <math.h>
#include <string.h>

#include "engine/data/bins_private.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void
ag_cut_table_init(AgCutTable *table, const double *cuts, int n_cuts)
{
	for (int i = 0; i < 256; i++)
		table->cuts[i] = i < n_cuts ? cuts[i] : (double) INFINITY;
	/* The last group has no pivot of its own: whatever is above all others belongs there. */
	for (int i = 0; i < 16; i++)
		table->pivots[i] = i < 15 ? table->cuts[16 * i + 15] : (double) INFINITY;
	table->n_groups = n_cuts / 16 + 1;
}

static void
assign_portable(const AgCutTable *table, const double *values, int64_t n, uint8_t *bins)
{
	const double *cuts = table->cuts;

	for (int64_t i = 0; i < n; i++)
	{
		double x = values[i];
		size_t below = 0;

		/* Halving 256 padded cuts, by multiplication instead of branches: those would be guesses. */
		below += (size_t) (cuts[127] < x) * 128;
		below += (size_t) (cuts[below + 63] < x) * 64;
		below += (size_t) (cuts[below + 31] < x) * 32;
		below += (size_t) (cuts[below + 15] < x) * 16;
		below += (size_t) (cuts[below + 7] < x) * 8;
		below += (size_t) (cuts[below + 3] < x) * 4;
		below += (size_t) (cuts[below + 1] < x) * 2;
		below += (size_t) (cuts[below] < x);
		bins[i] = x != x ? 0 : (uint8_t) (1 + below);
	}
}

#if defined(__x86_64__)

__attribute__((target("avx2,popcnt"))) static inline int
count_below_avx2(const double *cuts, __m256d x)
{
	__m256i a = _mm256_castpd_si256(_mm256_cmp_pd(_mm256_load_pd(cuts), x, _CMP_LT_OQ));
	__m256i b = _mm256_castpd_si256(_mm256_cmp_pd(_mm256_load_pd(cuts + 4), x, _CMP_LT_OQ));
	__m256i c = _mm256_castpd_si256(_mm256_cmp_pd(_mm256_load_pd(cuts + 8), x, _CMP_LT_OQ));
	__m256i d = _mm256_castpd_si256(_mm256_cmp_pd(_mm256_load_pd(cuts + 12), x, _CMP_LT_OQ));

	/* Sixteen masks of 64 bits packed to 32 and then 16 bits; two bits of the byte mask each. */
	a = _mm256_packs_epi32(a, b);
	c = _mm256_packs_epi32(c, d);
	a = _mm256_packs_epi32(a, c);
	return __builtin_popcount((unsigned) _mm256_movemask_epi8(a)) / 2;
}

__attribute__((target("avx2,popcnt"))) static void
assign_avx2(const AgCutTable *table, const double *values, int64_t n, uint8_t *bins)
{
	if (table->n_groups == 1)
	{
		for (int64_t i = 0; i < n; i++)
		{
			int bin = 1 + count_below_avx2(table->cuts, _mm256_set1_pd(values[i]));

			bins[i] = values[i] != values[i] ? 0 : (uint8_t) bin;
		}
		return;
	}
	for (int64_t i = 0; i < n; i++)
	{
		__m256d x = _mm256_set1_pd(values[i]);
		int group = 16 * count_below_avx2(table->pivots, x);
		int bin = 1 + group + count_below_avx2(table->cuts + group, x);

		bins[i] = values[i] != values[i] ? 0 : (uint8_t) bin;
	}
}

__attribute__((target("avx512f,popcnt"))) static inline int
count_below_avx512(const double *cuts, __m512d x)
{
	unsigned low = _mm512_cmp_pd_mask(_mm512_load_pd(cuts), x, _CMP_LT_OQ);
	unsigned high = _mm512_cmp_pd_mask(_mm512_load_pd(cuts + 8), x, _CMP_LT_OQ);

	return __builtin_popcount(low | high << 8);
}

__attribute__((target("avx512f,popcnt"))) static void
assign_avx512(const AgCutTable *table, const double *values, int64_t n, uint8_t *bins)
{
	if (table->n_groups == 1)
	{
		for (int64_t i = 0; i < n; i++)
		{
			int bin = 1 + count_below_avx512(table->cuts, _mm512_set1_pd(values[i]));

			bins[i] = values[i] != values[i] ? 0 : (uint8_t) bin;
		}
		return;
	}
	for (int64_t i = 0; i < n; i++)
	{
		__m512d x = _mm512_set1_pd(values[i]);
		int group = 16 * count_below_avx512(table->pivots, x);
		int bin = 1 + group + count_below_avx512(table->cuts + group, x);

		bins[i] = values[i] != values[i] ? 0 : (uint8_t) bin;
	}
}

#endif

int
ag_bin_assign_variants(AgBinAssign *variants)
{
	int n = 0;

	variants[n++] = assign_portable;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
		variants[n++] = assign_avx2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt"))
		variants[n++] = assign_avx512;
#endif
	return n;
}

AgBinAssign
ag_bin_assign_best(void)
{
	AgBinAssign variants[3];
	int n = ag_bin_assign_variants(variants);

	return variants[n - 1];
}
