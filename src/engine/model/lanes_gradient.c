/*
 * lanes_gradient.c - gradients, eight rows at a time: making, measuring and rounding them.
 */
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/lanes.h"
#include "engine/model/lanes_avx2.h"
#include "engine/model/vectors.h"

/* Where g is in the eight bytes of an AgGradient, taken as one number. */
#define AG_G_SHIFT (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 32)
#define AG_H_SHIFT (32 - AG_G_SHIFT)
#define AG_SUM_AHEAD 32 /* listed rows fetched ahead of their use */

AG_INLINE void
logistic_body(int n, const double *scores, const int32_t *class_of, AgGradient *gradients,
			  int *is_moderate)
{
	const AgDoubles one = AG_EIGHT(1.0), most = AG_EIGHT(700.0);
	AgLongs inside = AG_EIGHT(-1);

	for (int i = 0; i < n; i += AG_LANES)
	{
		AgDoubles p, h;
		AgInts class;
		AgFloats narrow_g, narrow_h;
		AgWords pairs;

		memcpy(&p, scores + i, sizeof p);
		memcpy(&class, class_of + i, sizeof class);
		inside &= p <= most;
		inside &= p >= -most;
		sigmoid_lanes(&p);
		h = p * (one - p);
		p += __builtin_convertvector(class == 1, AgDoubles); /* true is -1 */
		narrow_g = __builtin_convertvector(p, AgFloats);
		narrow_h = __builtin_convertvector(h, AgFloats);
		pairs = __builtin_convertvector((AgHalves) narrow_g, AgWords) << AG_G_SHIFT |
				__builtin_convertvector((AgHalves) narrow_h, AgWords) << AG_H_SHIFT;
		memcpy(gradients + i, &pairs, sizeof pairs);
	}
	for (int i = 0; i < AG_LANES; i++)
		*is_moderate &= (int) inside[i];
}

/* n is a multiple of AG_LANES. */
AG_INLINE void
step_body(int64_t n, double step, double *scores, const int32_t *class_of, double per_g,
		  double per_h, int64_t *sum_g, int64_t *sum_h, int *is_moderate)
{
	const AgDoubles one = AG_EIGHT(1.0), most = AG_EIGHT(700.0);
	AgLongs inside = AG_EIGHT(-1), all_g = AG_EIGHT(0), all_h = AG_EIGHT(0);

	for (int64_t i = 0; i < n; i += AG_LANES)
	{
		AgDoubles p, h;
		AgInts class;

		memcpy(&p, scores + i, sizeof p);
		memcpy(&class, class_of + i, sizeof class);
		p += step;
		memcpy(scores + i, &p, sizeof p);
		inside &= p <= most;
		inside &= p >= -most;
		sigmoid_lanes(&p);
		h = p * (one - p);
		p += __builtin_convertvector(class == 1, AgDoubles); /* true is -1 */
		p = __builtin_convertvector(__builtin_convertvector(p, AgFloats), AgDoubles);
		h = __builtin_convertvector(__builtin_convertvector(h, AgFloats), AgDoubles);
		all_g += __builtin_convertvector(p * per_g, AgLongs);
		all_h += __builtin_convertvector(h * per_h, AgLongs);
	}
	for (int l = 0; l < AG_LANES; l++)
	{
		*sum_g += all_g[l];
		*sum_h += all_h[l];
		*is_moderate &= (int) inside[l];
	}
}

/* The bits of floats that aren't negative order as they do. */
AG_INLINE void
range_body(int64_t n, const AgGradient *gradients, uint32_t *max_g, uint32_t *max_h)
{
	const AgLongs size = AG_EIGHT(0x7fffffff);
	AgLongs most_g = AG_EIGHT(0), most_h = AG_EIGHT(0);

	for (int64_t i = 0; i < n; i += AG_LANES)
	{
		AgLongs pairs, g, h, above;

		memcpy(&pairs, gradients + i, sizeof pairs);
		g = pairs >> AG_G_SHIFT & size;
		h = pairs >> AG_H_SHIFT & size;
		above = g > most_g;
		most_g = (above & g) | (~above & most_g);
		above = h > most_h;
		most_h = (above & h) | (~above & most_h);
	}
	for (int i = 0; i < AG_LANES; i++)
	{
		*max_g = most_g[i] > *max_g ? (uint32_t) most_g[i] : *max_g;
		*max_h = most_h[i] > *max_h ? (uint32_t) most_h[i] : *max_h;
	}
}

/* The two halves of eight AgGradients as doubles. */
AG_INLINE void
part_lanes(const AgWords *pairs, AgDoubles *g, AgDoubles *h)
{
	*g = __builtin_convertvector((AgFloats) __builtin_convertvector(*pairs >> AG_G_SHIFT, AgHalves),
								 AgDoubles);
	*h = __builtin_convertvector((AgFloats) __builtin_convertvector(*pairs >> AG_H_SHIFT, AgHalves),
								 AgDoubles);
}

/* n is a multiple of AG_LANES. */
AG_INLINE void
sum_body(int64_t n, const uint32_t *ids, const AgGradient *gradients, double per_g, double per_h,
		 int64_t *sum_g, int64_t *sum_h)
{
	AgLongs all_g = AG_EIGHT(0), all_h = AG_EIGHT(0);

	for (int64_t i = 0; i < n; i += AG_LANES)
	{
		uint64_t one[AG_LANES];
		AgWords pairs;
		AgDoubles g, h;

		for (int l = 0; l < AG_LANES; l++)
		{
			if (i + AG_SUM_AHEAD + AG_LANES <= n)
				__builtin_prefetch(gradients + ids[i + AG_SUM_AHEAD + l]);
			memcpy(one + l, gradients + ids[i + l], sizeof *one);
		}
		memcpy(&pairs, one, sizeof pairs);
		part_lanes(&pairs, &g, &h);
		all_g += __builtin_convertvector(g * per_g, AgLongs);
		all_h += __builtin_convertvector(h * per_h, AgLongs);
	}
	for (int l = 0; l < AG_LANES; l++)
	{
		*sum_g += all_g[l];
		*sum_h += all_h[l];
	}
}

AG_INLINE void
round_body(int n, uint64_t key, const uint32_t *rows, const AgGradient *gradients, double per_g,
		   double per_h, bool is_equal, uint32_t *packed, AgPackedSums *sums)
{
	const AgInts no_rounding = is_equal ? (AgInts) AG_EIGHT(-1) : (AgInts) AG_EIGHT(0);
	AgInts sum_g = AG_EIGHT(0), sum_h = AG_EIGHT(0);
	AgInts min_h = AG_EIGHT(INT32_MAX), max_h = AG_EIGHT(0);

	for (int i = 0; i < n; i += AG_LANES)
	{
		AgHalves row;
		AgWords pairs, bits, high;
		AgDoubles g, h;
		AgInts qg, qh, has_h, beyond;

		memcpy(&row, rows + i, sizeof row);
		memcpy(&pairs, gradients + i, sizeof pairs);
		part_lanes(&pairs, &g, &h);
		bits = __builtin_convertvector(row, AgWords) + UINT64_C(0x9e3779b97f4a7c15);
		mix_lanes(&bits);
		bits ^= key;
		mix_lanes(&bits);
		high = bits >> 32;
		has_h = __builtin_convertvector(h > 0.0, AgInts);
		g *= per_g;
		h *= per_h;
		round_lanes(&g, &high, &qg);
		round_lanes(&h, &bits, &qh);
		qh -= (qh == 0) & has_h;
		qh = (no_rounding & 1) | (~no_rounding & qh);
		sum_g += qg;
		sum_h += qh;
		beyond = qh < min_h;
		min_h = (beyond & qh) | (~beyond & min_h);
		beyond = qh > max_h;
		max_h = (beyond & qh) | (~beyond & max_h);
		row = (AgHalves) qg << 16 | (AgHalves) qh;
		memcpy(packed + i, &row, sizeof row);
	}
	for (int i = 0; i < AG_LANES; i++)
	{
		sums->sum_g += sum_g[i];
		sums->sum_h += sum_h[i];
		sums->min_h = (uint32_t) min_h[i] < sums->min_h ? (uint32_t) min_h[i] : sums->min_h;
		sums->max_h = (uint32_t) max_h[i] > sums->max_h ? (uint32_t) max_h[i] : sums->max_h;
	}
}

#define AG_LOGISTIC_PARAMETERS                                                                     \
	int n, const double *scores, const int32_t *class_of, AgGradient *gradients, int *is_moderate
#define AG_LOGISTIC_ARGUMENTS n, scores, class_of, gradients, is_moderate
#define AG_RANGE_PARAMETERS int64_t n, const AgGradient *gradients, uint32_t *max_g, uint32_t *max_h
#define AG_RANGE_ARGUMENTS n, gradients, max_g, max_h
#define AG_SUM_PARAMETERS                                                                          \
	int64_t n, const uint32_t *ids, const AgGradient *gradients, double per_g, double per_h,       \
		int64_t *sum_g, int64_t *sum_h
#define AG_SUM_ARGUMENTS n, ids, gradients, per_g, per_h, sum_g, sum_h
#define AG_ROUND_PARAMETERS                                                                        \
	int n, uint64_t key, const uint32_t *rows, const AgGradient *gradients, double per_g,          \
		double per_h, bool is_equal, uint32_t *packed, AgPackedSums *sums
#define AG_ROUND_ARGUMENTS n, key, rows, gradients, per_g, per_h, is_equal, packed, sums

#define AG_STEP_PARAMETERS                                                                         \
	int64_t n, double step, double *scores, const int32_t *class_of, double per_g, double per_h,   \
		int64_t *sum_g, int64_t *sum_h, int *is_moderate
#define AG_STEP_ARGUMENTS n, step, scores, class_of, per_g, per_h, sum_g, sum_h, is_moderate

AG_LEVELS_WITH(logistic, ag_logistic_avx2, AG_LOGISTIC)
AG_LEVELS_WITH(step, ag_step_avx2, AG_STEP)
AG_LEVELS_WITH(range, ag_range_avx2, AG_RANGE)
AG_LEVELS_WITH(sum, ag_sum_avx2, AG_SUM)
AG_LEVELS_WITH(round, ag_round_avx2, AG_ROUND)

void
ag_logistic_block(AgCpuLevel level, int n, const double *scores, const int32_t *class_of,
				  AgGradient *gradients)
{
	int is_moderate = 1;

	logistic_at(level, n, scores, class_of, gradients, &is_moderate);
	if (is_moderate)
		return;
	for (int i = 0; i < n; i++)
	{
		double p = ag_sigmoid(scores[i]);

		gradients[i] =
			(AgGradient){(float) (p - (class_of[i] == 1 ? 1.0 : 0.0)), (float) (p * (1.0 - p))};
	}
}

void
ag_logistic_step(AgCpuLevel level, int64_t n, double step, double *scores, const int32_t *class_of,
				 double per_g, double per_h, int64_t *sum_g, int64_t *sum_h)
{
	int64_t whole = n / AG_LANES * AG_LANES, part_g = 0, part_h = 0;
	int is_moderate = 1;

	step_at(level, whole, step, scores, class_of, per_g, per_h, &part_g, &part_h, &is_moderate);
	for (int64_t i = whole; i < n; i++)
		scores[i] += step;
	if (!is_moderate)
		whole = part_g = part_h = 0;
	for (int64_t i = whole; i < n; i++)
	{
		double p = ag_sigmoid(scores[i]), h = p * (1.0 - p);
		double g = p - (class_of[i] == 1 ? 1.0 : 0.0);

		part_g += (int64_t) ((double) (float) g * per_g);
		part_h += (int64_t) ((double) (float) h * per_h);
	}
	*sum_g += part_g;
	*sum_h += part_h;
}

void
ag_gradient_range(AgCpuLevel level, int64_t n, const AgGradient *gradients, float *max_g,
				  float *max_h)
{
	int64_t whole = n / AG_LANES * AG_LANES;
	uint32_t bits_g = 0, bits_h = 0;
	float g, h;

	range_at(level, whole, gradients, &bits_g, &bits_h);
	memcpy(&g, &bits_g, sizeof g);
	memcpy(&h, &bits_h, sizeof h);
	*max_g = g > *max_g ? g : *max_g;
	*max_h = h > *max_h ? h : *max_h;
	for (int64_t i = whole; i < n; i++)
	{
		g = gradients[i].g < 0.0f ? -gradients[i].g : gradients[i].g;
		*max_g = g > *max_g ? g : *max_g;
		*max_h = gradients[i].h > *max_h ? gradients[i].h : *max_h;
	}
}

void
ag_sum_listed(AgCpuLevel level, int64_t n, const uint32_t *ids, const AgGradient *gradients,
			  double per_g, double per_h, int64_t *sum_g, int64_t *sum_h)
{
	int64_t whole = n / AG_LANES * AG_LANES;

	sum_at(level, whole, ids, gradients, per_g, per_h, sum_g, sum_h);
	for (int64_t i = whole; i < n; i++)
	{
		*sum_g += (int64_t) ((double) gradients[ids[i]].g * per_g);
		*sum_h += (int64_t) ((double) gradients[ids[i]].h * per_h);
	}
}

void
ag_round_block(AgCpuLevel level, int n, uint64_t key, const uint32_t *rows,
			   const AgGradient *gradients, double per_g, double per_h, bool is_equal,
			   uint32_t *packed, AgPackedSums *sums)
{
	round_at(level, n, key, rows, gradients, per_g, per_h, is_equal, packed, sums);
}
