/*
 * maths.h - transcendental functions whose bits we own.
 *
 * exp and log of libm differ between C libraries and devices by an ulp. What
 * touches a gradient or a stored score must not, so these are plain arithmetic,
 * compiled with -ffp-contract=off (-fmad=false on a GPU), inline, and usable
 * from C and CUDA alike. Relative error at most about 1e-15 (doubles).
 */
#ifndef AG_MATHS_H
#define AG_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define AG_MATHS_FN static inline __host__ __device__
#else
#define AG_MATHS_FN static inline
#endif

/* A double as an integer in the same order (-0 counts as 0), and back. NaN must not come here. */
AG_MATHS_FN uint64_t
ag_order_bits(double value)
{
	uint64_t bits;

	value += 0.0; /* -0 becomes 0 */
	memcpy(&bits, &value, sizeof bits);
	return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

AG_MATHS_FN double
ag_of_order_bits(uint64_t key)
{
	uint64_t bits = key >> 63 != 0 ? key & ~(UINT64_C(1) << 63) : ~key;
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* 2^k for k in [-1022, 1023]. */
AG_MATHS_FN double
ag_pow2i(int k)
{
	uint64_t bits = (uint64_t) (k + 1023) << 52;
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/*
 * The series of exp and ln, of a number or of GNU C's vectors of them. AG_EXP_SERIES: p = the sum of r^n / n! to degree 13.
 * AG_LN_SERIES: p = (atanh(s) / s - 1) / s^2 from z = s^2, to the term of s^20.
 */
#define AG_EXP_SERIES(p, r)                                                                        \
	do                                                                                             \
	{                                                                                              \
		p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0;                                          \
		p = p * r + 1.0 / 39916800.0;                                                              \
		p = p * r + 1.0 / 3628800.0;                                                               \
		p = p * r + 1.0 / 362880.0;                                                                \
		p = p * r + 1.0 / 40320.0;                                                                 \
		p = p * r + 1.0 / 5040.0;                                                                  \
		p = p * r + 1.0 / 720.0;                                                                   \
		p = p * r + 1.0 / 120.0;                                                                   \
		p = p * r + 1.0 / 24.0;                                                                    \
		p = p * r + 1.0 / 6.0;                                                                     \
		p = p * r + 0.5;                                                                           \
		p = p * r + 1.0;                                                                           \
		p = p * r + 1.0;                                                                           \
	} while (0)
#define AG_LN_SERIES(p, z)                                                                         \
	do                                                                                             \
	{                                                                                              \
		p = z * (1.0 / 23.0) + 1.0 / 21.0;                                                         \
		p = p * z + 1.0 / 19.0;                                                                    \
		p = p * z + 1.0 / 17.0;                                                                    \
		p = p * z + 1.0 / 15.0;                                                                    \
		p = p * z + 1.0 / 13.0;                                                                    \
		p = p * z + 1.0 / 11.0;                                                                    \
		p = p * z + 1.0 / 9.0;                                                                     \
		p = p * z + 1.0 / 7.0;                                                                     \
		p = p * z + 1.0 / 5.0;                                                                     \
		p = p * z + 1.0 / 3.0;                                                                     \
	} while (0)

/*
 * e^x: Cody-Waite reduction by ln 2 in two parts, then a degree-13 Taylor
 * polynomial on |r| <= ln2/2. Saturates to 0 below -745 and to +inf above 709.78.
 */
AG_MATHS_FN double
ag_exp(double x)
{
	double k, r, p;
	int n;

	if (x != x)
		return x;
	if (x > 709.782712893384)
		return (double) INFINITY;
	if (x < -745.0)
		return 0.0;
	k = x * 1.4426950408889634;
	k = k < 0.0 ? -(double) (int) (0.5 - k) : (double) (int) (k + 0.5);
	r = x - k * 6.93147180369123816490e-01;
	r = r - k * 1.90821492927058770002e-10;
	AG_EXP_SERIES(p, r);
	n = (int) k;
	if (n < -1021) /* two steps keep the scale factors normal */
		return p * ag_pow2i(n + 600) * ag_pow2i(-600);
	if (n > 1023)
		return p * ag_pow2i(1023) * ag_pow2i(n - 1023);
	return p * ag_pow2i(n);
}

/*
 * ln x, x > 0: m in [sqrt(1/2), sqrt 2), then 2 atanh((m-1)/(m+1)) by its odd
 * series. -inf at 0, NaN below.
 */
AG_MATHS_FN double
ag_ln(double x)
{
	uint64_t bits;
	int e = 0;
	double m, s, z, p;

	if (x != x || x < 0.0)
		return (double) NAN;
	if (x == 0.0)
		return -(double) INFINITY;
	if (x == (double) INFINITY)
		return x;
	if (x < 2.2250738585072014e-308)
	{
		x *= 18014398509481984.0; /* 2^54: out of the denormals */
		e = -54;
	}
	memcpy(&bits, &x, sizeof bits);
	e += (int) (bits >> 52) - 1023;
	bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
	memcpy(&m, &bits, sizeof m);
	if (m > 1.4142135623730951)
	{
		m *= 0.5;
		e += 1;
	}
	s = (m - 1.0) / (m + 1.0);
	z = s * s;
	AG_LN_SERIES(p, z);
	p = 2.0 * s + 2.0 * s * z * p;
	return (double) e * 6.93147180369123816490e-01 + (p + (double) e * 1.90821492927058770002e-10);
}

/* 1 / (1 + e^-x), without overflow on either side. */
AG_MATHS_FN double
ag_sigmoid(double x)
{
	double e;

	if (x >= 0.0)
		return 1.0 / (1.0 + ag_exp(-x));
	e = ag_exp(x);
	return e / (1.0 + e);
}

#endif
