/*
 * lanes.c - arithmetic on blocks of numbers, eight at a time.
 */
#include "engine/model/lanes.h"

#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/vectors.h"

AgCpuLevel
ag_cpu_level(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return AG_CPU_AVX512;
	if (__builtin_cpu_supports("avx2"))
		return AG_CPU_AVX2;
#endif
	return AG_CPU_PORTABLE;
}

/* x = ag_exp(x) for |x| <= 700, operation by operation. */
AG_INLINE void
exp_lanes(AgDoubles *x)
{
	const AgLongs half = (AgLongs) (AgDoubles) AG_EIGHT(0.5);
	AgDoubles k = *x * 1.4426950408889634;
	AgInts n = __builtin_convertvector(k + (AgDoubles) (((AgLongs) k & INT64_MIN) | half), AgInts);
	AgLongs bits = (__builtin_convertvector(n, AgLongs) + 1023) << 52;
	AgDoubles r, p;

	k = __builtin_convertvector(n, AgDoubles);
	r = *x - k * 6.93147180369123816490e-01;
	r = r - k * 1.90821492927058770002e-10;
	p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;
	p = p * r + 1.0 / 39916800.0;
	p = p * r + 1.0 / 3628800.0;
	p = p * r + 1.0 / 362880.0;
	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r + 1.0;
	p = p * r + 1.0;
	*x = p * (AgDoubles) bits;
}

AG_INLINE void
exp_body(int n, const double *x, double *out)
{
	for (int i = 0; i < n; i += AG_LANES)
	{
		AgDoubles v;

		memcpy(&v, x + i, sizeof v);
		exp_lanes(&v);
		memcpy(out + i, &v, sizeof v);
	}
}

AG_INLINE void
sigmoid_body(int n, const double *x, double *out)
{
	const AgDoubles one = AG_EIGHT(1.0);

	for (int i = 0; i < n; i += AG_LANES)
	{
		AgDoubles v, e;
		AgLongs is_negative;

		memcpy(&v, x + i, sizeof v);
		is_negative = (AgLongs) v >> 63;
		e = (AgDoubles) ((AgLongs) v | INT64_MIN); /* -|v| */
		exp_lanes(&e);
		v = AG_CHOOSE(is_negative, e, one) / (one + e);
		memcpy(out + i, &v, sizeof v);
	}
}

/* x = ag_mix64(x). */
AG_INLINE void
mix_lanes(AgWords *x)
{
	*x ^= *x >> 30;
	*x *= UINT64_C(0xbf58476d1ce4e5b9);
	*x ^= *x >> 27;
	*x *= UINT64_C(0x94d049bb133111eb);
	*x ^= *x >> 31;
}

/*
 * floor(x + u) where u is the low 32 bits of each word over 2^32: those are put behind the leading bit of 2^52, and
 * 2^52 is taken off, which is exact and needs no conversion that AVX2 lacks.
 */
AG_INLINE void
round_lanes(const AgDoubles *x, const AgWords *words, AgInts *rounded)
{
	AgWords bits = (*words & UINT64_C(0xffffffff)) | UINT64_C(0x4330000000000000);
	AgDoubles sum = *x + ((AgDoubles) bits - 0x1.0p52) * 0x1.0p-32;
	AgInts n = __builtin_convertvector(sum, AgInts);
	AgLongs is_above = __builtin_convertvector(n, AgDoubles) > sum;

	*rounded = n + __builtin_convertvector(is_above, AgInts);
}

AG_INLINE void
round_body(int n, uint64_t key, const uint32_t *rows, const double *g, const double *h,
		   double per_g, double per_h, uint32_t *packed)
{
	for (int i = 0; i < n; i += AG_LANES)
	{
		AgHalves row;
		AgWords bits, high;
		AgDoubles gs, hs;
		AgLongs has_h;
		AgInts qg, qh;

		memcpy(&row, rows + i, sizeof row);
		memcpy(&gs, g + i, sizeof gs);
		memcpy(&hs, h + i, sizeof hs);
		bits = __builtin_convertvector(row, AgWords) + UINT64_C(0x9e3779b97f4a7c15);
		mix_lanes(&bits);
		bits ^= key;
		mix_lanes(&bits);
		high = bits >> 32;
		has_h = hs > 0.0;
		gs *= per_g;
		hs *= per_h;
		round_lanes(&gs, &high, &qg);
		round_lanes(&hs, &bits, &qh);
		qh -= (qh == 0) & __builtin_convertvector(has_h, AgInts);
		row = (AgHalves) qg << 16 | (AgHalves) qh;
		memcpy(packed + i, &row, sizeof row);
	}
}

#define AG_EXP_PARAMETERS int n, const double *x, double *out
#define AG_EXP_ARGUMENTS n, x, out
#define AG_ROUND_PARAMETERS                                                                        \
	int n, uint64_t key, const uint32_t *rows, const double *g, const double *h, double per_g,     \
		double per_h, uint32_t *packed
#define AG_ROUND_ARGUMENTS n, key, rows, g, h, per_g, per_h, packed

AG_LEVELS(exp, AG_EXP_PARAMETERS, AG_EXP_ARGUMENTS)
AG_LEVELS(sigmoid, AG_EXP_PARAMETERS, AG_EXP_ARGUMENTS)
AG_LEVELS(round, AG_ROUND_PARAMETERS, AG_ROUND_ARGUMENTS)

/* Whether the block stays where exp_lanes needs no second step; false for NaN. */
static int
is_moderate(int n, const double *x)
{
	int is_all = 1;

	for (int i = 0; i < n; i++)
		is_all &= x[i] <= 700.0 && x[i] >= -700.0;
	return is_all;
}

void
ag_exp_block(AgCpuLevel level, int n, const double *x, double *out)
{
	if (is_moderate(n, x))
		exp_at(level, n, x, out);
	else
		for (int i = 0; i < n; i++)
			out[i] = ag_exp(x[i]);
}

void
ag_sigmoid_block(AgCpuLevel level, int n, const double *x, double *out)
{
	if (is_moderate(n, x))
		sigmoid_at(level, n, x, out);
	else
		for (int i = 0; i < n; i++)
			out[i] = ag_sigmoid(x[i]);
}

void
ag_round_block(AgCpuLevel level, int n, uint64_t key, const uint32_t *rows, const double *g,
			   const double *h, double per_g, double per_h, uint32_t *packed)
{
	round_at(level, n, key, rows, g, h, per_g, per_h, packed);
}
