/*
 * level_scan.c - the inner loop of oblivious trees.
 *
 * No branches, so that compilers make vectors of it; divisions and products in one fixed order, without contraction.
 */
#include "engine/model/level_scan.h"

#include "engine/model/histogram.h"
#include "engine/model/vectors.h"

static inline __attribute__((always_inline)) void
add_sides(int n, const double *left_g, const double *left_h, double sum_g, double sum_h, double l2,
		  double *nums, double *dens)
{
	for (int i = 0; i < n; i++)
	{
		double gl = left_g[i], gr = sum_g - gl;
		double hl = left_h[i], hr = sum_h - hl;
		double vl = gl / (hl + l2), vr = gr / (hr + l2);

		nums[i] += gl * vl + gr * vr;
		dens[i] += vl * vl * hl + vr * vr * hr;
	}
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static void
add_sides_avx512(int n, const double *left_g, const double *left_h, double sum_g, double sum_h,
				 double l2, double *nums, double *dens)
{
	add_sides(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
}

__attribute__((target("avx2"))) static void
add_sides_avx2(int n, const double *left_g, const double *left_h, double sum_g, double sum_h,
			   double l2, double *nums, double *dens)
{
	add_sides(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
}
#endif

static void
add_sides_portable(int n, const double *left_g, const double *left_h, double sum_g, double sum_h,
				   double l2, double *nums, double *dens)
{
	add_sides(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
}

/* Sums on the left of each cut; returns the totals. */
static void
left_sums(const AgBinFeature *feature, const int64_t *g, const int64_t *h, double *left_g,
		  double *left_h, double *sum_g, double *sum_h)
{
	int64_t sums_g = 0, sums_h = 0;
	int n = feature->n_bins;

	for (int b = 0; b <= n; b++)
	{
		sums_g += g[b];
		sums_h += h[b];
		left_g[b] = (double) (feature->is_category ? g[b] : sums_g);
		left_h[b] = (double) (feature->is_category ? h[b] : sums_h);
	}
	if (!feature->is_category)
	{
		left_g[n] = (double) g[0];
		left_h[n] = (double) h[0];
	}
	*sum_g = (double) sums_g;
	*sum_h = (double) sums_h;
}

void
ag_level_add(AgCpuLevel level, const AgBinFeature *feature, const int64_t *g, const int64_t *h,
			 double l2, double *nums, double *dens)
{
	double left_g[AG_HIST_BINS], left_h[AG_HIST_BINS], sum_g, sum_h;
	int n = feature->n_bins + 1;

	left_sums(feature, g, h, left_g, left_h, &sum_g, &sum_h);
	l2 = l2 > AG_LEAST_L2 ? l2 : AG_LEAST_L2;
#if defined(__x86_64__)
	if (level == AG_CPU_AVX512)
	{
		add_sides_avx512(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
		return;
	}
	if (level == AG_CPU_AVX2)
	{
		add_sides_avx2(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
		return;
	}
#endif
	add_sides_portable(n, left_g, left_h, sum_g, sum_h, l2, nums, dens);
}

/* ---- bodies and tails ---- */

AG_INLINE void
tail_body(int n, const double (*left)[AG_HIST_BINS], const double *all, double l2, double *nums,
		  double *dens)
{
	for (int i = 0; i < n; i++)
	{
		double vl = left[0][i] / (left[1][i] + l2);
		double vr = (all[0] - left[0][i]) / (all[1] - left[1][i] + l2);

		nums[i] += vl * left[2][i] + vr * (all[2] - left[2][i]);
		dens[i] += vl * vl * left[3][i] + vr * vr * (all[3] - left[3][i]);
	}
}

#define AG_TAIL_PARAMETERS                                                                         \
	int n, const double(*left)[AG_HIST_BINS], const double *all, double l2, double *nums,          \
		double *dens
#define AG_TAIL_ARGUMENTS n, left, all, l2, nums, dens

AG_LEVELS(tail, AG_TAIL)

void
ag_level_add_tail(AgCpuLevel level, const AgBinFeature *feature, const int64_t (*sums)[4],
				  double l2, double *nums, double *dens)
{
	double left[4][AG_HIST_BINS], all[4];
	int n = feature->n_bins;

	for (int c = 0; c < 4; c++)
	{
		int64_t sum = 0;

		for (int b = 0; b <= n; b++)
		{
			sum += sums[b][c];
			left[c][b] = (double) (feature->is_category ? sums[b][c] : sum);
		}
		if (!feature->is_category)
			left[c][n] = (double) sums[0][c];
		all[c] = (double) sum;
	}
	tail_at(level, n + 1, (const double(*)[AG_HIST_BINS]) left, all,
			l2 > AG_LEAST_L2 ? l2 : AG_LEAST_L2, nums, dens);
}
