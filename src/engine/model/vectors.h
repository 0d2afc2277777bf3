/*
 * vectors.h - vectors of eight, and a function compiled for each kind of CPU. For the .c files of this room only.
 *
 * GNU C's vectors: one that the CPU has no register for is made of several. A function with a target attribute
 * can't share code by call, so a body is always inlined into one function for each level. Vectors are passed by
 * pointer: by value they have no stable ABI.
 */
#ifndef AG_VECTORS_H
#define AG_VECTORS_H

#include <stdint.h>

#include "engine/base/maths.h"
#include "engine/model/lanes.h"

typedef double AgDoubles __attribute__((vector_size(64)));
typedef int64_t AgLongs __attribute__((vector_size(64)));
typedef uint64_t AgWords __attribute__((vector_size(64)));
typedef int32_t AgInts __attribute__((vector_size(32)));
typedef uint32_t AgHalves __attribute__((vector_size(32)));
typedef float AgFloats __attribute__((vector_size(32)));

#define AG_INLINE static inline __attribute__((always_inline))

/* Doubles: a where the mask is all ones, else b. */
#define AG_CHOOSE(mask, a, b) ((AgDoubles) (((mask) & (AgLongs) (a)) | (~(mask) & (AgLongs) (b))))

#define AG_EIGHT(x)                                                                                \
	{                                                                                              \
		x, x, x, x, x, x, x, x                                                                     \
	}

/* ---- operations on lanes that several files use ---- */

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
	AG_EXP_SERIES(p, r);
	*x = p * (AgDoubles) bits;
}

/* x = ag_sigmoid(x) for |x| <= 700. */
AG_INLINE void
sigmoid_lanes(AgDoubles *x)
{
	const AgDoubles one = AG_EIGHT(1.0);
	AgLongs is_negative = (AgLongs) *x >> 63;
	AgDoubles e = (AgDoubles) ((AgLongs) *x | INT64_MIN); /* -|x| */

	exp_lanes(&e);
	*x = AG_CHOOSE(is_negative, e, one) / (one + e);
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

/* ---- a function for each kind of CPU ---- */

/*
 * One function a level around name_body, and name_at(level, ...) that calls the right one. X_PARAMETERS and X_ARGUMENTS are
 * what they take and pass on.
 */
#if defined(__x86_64__)
#define AG_LEVELS(name, X)                                                                         \
	__attribute__((target("avx2"))) static void name##_avx2(X##_PARAMETERS)                        \
	{                                                                                              \
		name##_body(X##_ARGUMENTS);                                                                \
	}                                                                                              \
	AG_LEVELS_WITH(name, name##_avx2, X)

/* The same with another function for AVX2. */
#define AG_LEVELS_WITH(name, for_avx2, X)                                                          \
	static void name##_portable(X##_PARAMETERS)                                                    \
	{                                                                                              \
		name##_body(X##_ARGUMENTS);                                                                \
	}                                                                                              \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static void name##_avx512(       \
		X##_PARAMETERS)                                                                            \
	{                                                                                              \
		name##_body(X##_ARGUMENTS);                                                                \
	}                                                                                              \
	static void name##_at(AgCpuLevel level, X##_PARAMETERS)                                        \
	{                                                                                              \
		if (level == AG_CPU_AVX512)                                                                \
			name##_avx512(X##_ARGUMENTS);                                                          \
		else if (level == AG_CPU_AVX2)                                                             \
			for_avx2(X##_ARGUMENTS);                                                               \
		else                                                                                       \
			name##_portable(X##_ARGUMENTS);                                                        \
	}
#else
#define AG_LEVELS(name, X)                                                                         \
	static void name##_at(AgCpuLevel level, X##_PARAMETERS)                                        \
	{                                                                                              \
		(void) level;                                                                              \
		name##_body(X##_ARGUMENTS);                                                                \
	}
#define AG_LEVELS_WITH(name, for_avx2, X) AG_LEVELS(name, X)
#endif

#endif
