/*
 * net_maths.h - functions of single-precision numbers whose bits we own, without branches so that loops over them become
 * vector code. Private to the nets.
 *
 * Absolute error about 2e-7 of the result's scale. Arguments and results are finite.
 */
#ifndef AG_NET_MATHS_H
#define AG_NET_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define AG_NET_FN static inline __host__ __device__
#elif defined(__GNUC__)
#define AG_NET_FN static inline __attribute__((always_inline))
#else
#define AG_NET_FN static inline
#endif

/* The nearest bfloat16, of two as near the even one; NaN stays NaN. */
AG_NET_FN uint16_t
ag_net_bfloat(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t) (bits >> 16 | 0x40u);
	return (uint16_t) ((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

AG_NET_FN float
ag_net_from_bfloat(uint16_t x)
{
	uint32_t bits = (uint32_t) x << 16;
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* is_first ? a : b, by masks: compilers make branches of the plain form, and then no vector code. */
AG_NET_FN float
ag_net_pick(int is_first, float a, float b)
{
	uint32_t mask = 0u - (uint32_t) is_first, x, y;

	memcpy(&x, &a, sizeof x);
	memcpy(&y, &b, sizeof y);
	x = (x & mask) | (y & ~mask);
	memcpy(&a, &x, sizeof a);
	return a;
}

/* Added and taken away again, it rounds to the nearest integer, which lies in the sum's low bits. */
#define AG_NET_ROUND 12582912.0f
#define AG_NET_ROUND_BITS 0x4b400000

/* e^x, for x clipped to [-87, 88]: 2^k times Taylor's polynomial of degree 7 on |r| <= ln 2 / 2. */
AG_NET_FN float
ag_net_exp(float x)
{
	float t, k, r, p;
	int32_t n;

	x = ag_net_pick(x < 88.0f, x, 88.0f);
	x = ag_net_pick(x > -87.0f, x, -87.0f);
	t = x * 1.44269504f + AG_NET_ROUND;
	memcpy(&n, &t, sizeof n);
	k = t - AG_NET_ROUND;
	r = x - k * 0.693359375f;
	r = r + k * 2.12194440e-4f;
	p = 1.0f / 5040.0f;
	p = p * r + 1.0f / 720.0f;
	p = p * r + 1.0f / 120.0f;
	p = p * r + 1.0f / 24.0f;
	p = p * r + 1.0f / 6.0f;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	n = (int32_t) ((uint32_t) (n - AG_NET_ROUND_BITS + 127) << 23);
	memcpy(&t, &n, sizeof t);
	return p * t;
}

/* cos(2 pi u): with q = 1/4 - |u - nearest integer| it is sin(2 pi q), |2 pi q| <= pi/2. */
AG_NET_FN float
ag_net_cos2pi(float u)
{
	float k = (u + AG_NET_ROUND) - AG_NET_ROUND;
	float r = u - k, q, x, z, p;

	q = 0.25f - ag_net_pick(r < 0.0f, -r, r);
	x = q * 6.28318531f;
	z = x * x;
	p = 1.0f / 6227020800.0f;
	p = p * z - 1.0f / 39916800.0f;
	p = p * z + 1.0f / 362880.0f;
	p = p * z - 1.0f / 5040.0f;
	p = p * z + 1.0f / 120.0f;
	p = p * z - 1.0f / 6.0f;
	return x + x * z * p;
}

/*
 * Gorishniy, Rubachev, Babenko 2022, "On embeddings for numerical features in tabular deep learning", section 3.2: how far a number has
 * come through piece k of n, from 0 where it begins (u = 0) to 1 where it ends; the outer ones go on beyond.
 */
AG_NET_FN float
ag_net_piece(float u, uint32_t k, uint32_t n)
{
	u = ag_net_pick(k > 0 && u < 0.0f, 0.0f, u);
	return ag_net_pick(k + 1 < n && u > 1.0f, 1.0f, u);
}

AG_NET_FN float
ag_net_piece_slope(float u, uint32_t k, uint32_t n)
{
	return (k > 0 && u <= 0.0f) || (k + 1 < n && u >= 1.0f) ? 0.0f : 1.0f;
}

/* Holzmueller and others 2024, section 3: smooth clipping. */
AG_NET_FN float
ag_net_bend(float x)
{
	float t = x * (1.0f / 3.0f);

	return x / sqrtf(1.0f + t * t);
}

/* --- activations and their derivatives */

typedef enum AgActivation
{
	AG_ACT_RELU = 0,
	AG_ACT_ELU = 1,
	AG_ACT_TANH = 2,
	AG_ACT_SELU = 3,
	AG_ACT_MISH = 4,
	AG_ACT_NONE = 5
} AgActivation;

/* Clevert, Unterthiner, Hochreiter 2016, "Fast and accurate deep network learning by exponential linear units". */
AG_NET_FN float
ag_net_elu(float x)
{
	float e = ag_net_exp(ag_net_pick(x < 0.0f, x, 0.0f)) - 1.0f;

	return ag_net_pick(x > 0.0f, x, e);
}

AG_NET_FN float
ag_net_elu_slope(float x)
{
	return ag_net_exp(ag_net_pick(x < 0.0f, x, 0.0f));
}

AG_NET_FN float
ag_net_tanh(float x)
{
	float e = ag_net_exp(-2.0f * ag_net_pick(x < 0.0f, -x, x));
	float t = (1.0f - e) / (1.0f + e);

	return ag_net_pick(x < 0.0f, -t, t);
}

AG_NET_FN float
ag_net_tanh_slope(float x)
{
	float t = ag_net_tanh(x);

	return 1.0f - t * t;
}

/* Klambauer and others 2017, "Self-normalizing neural networks". */
#define AG_NET_SELU_SCALE 1.0507009874f
#define AG_NET_SELU_ALPHA 1.6732632424f

AG_NET_FN float
ag_net_selu(float x)
{
	float e = AG_NET_SELU_ALPHA * (ag_net_exp(ag_net_pick(x < 0.0f, x, 0.0f)) - 1.0f);

	return AG_NET_SELU_SCALE * ag_net_pick(x > 0.0f, x, e);
}

AG_NET_FN float
ag_net_selu_slope(float x)
{
	float e = AG_NET_SELU_ALPHA * ag_net_exp(ag_net_pick(x < 0.0f, x, 0.0f));

	return AG_NET_SELU_SCALE * ag_net_pick(x > 0.0f, 1.0f, e);
}

/* x tanh(ln(1 + e^x)) (Misra 2020, "Mish"): with w = e^x and n = w (w + 2) it is x n / (n + 2). */
AG_NET_FN float
ag_net_mish(float x)
{
	float w = ag_net_exp(ag_net_pick(x < 20.0f, x, 20.0f)), n = w * (w + 2.0f);

	return x * (n / (n + 2.0f));
}

AG_NET_FN float
ag_net_mish_slope(float x)
{
	float w = ag_net_exp(ag_net_pick(x < 20.0f, x, 20.0f)), n = w * (w + 2.0f), d = n + 2.0f;

	return n / d + x * (4.0f * w * (w + 1.0f) / (d * d));
}

#endif
