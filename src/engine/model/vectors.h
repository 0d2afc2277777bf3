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

#include "engine/model/lanes.h"

typedef double AgDoubles __attribute__((vector_size(64)));
typedef int64_t AgLongs __attribute__((vector_size(64)));
typedef uint64_t AgWords __attribute__((vector_size(64)));
typedef int32_t AgInts __attribute__((vector_size(32)));
typedef uint32_t AgHalves __attribute__((vector_size(32)));

#define AG_INLINE static inline __attribute__((always_inline))

/* Doubles: a where the mask is all ones, else b. */
#define AG_CHOOSE(mask, a, b) ((AgDoubles) (((mask) & (AgLongs) (a)) | (~(mask) & (AgLongs) (b))))

#define AG_EIGHT(x)                                                                                \
	{                                                                                              \
		x, x, x, x, x, x, x, x                                                                     \
	}

/* One function a level around name_body, and name_at(level, ...) that calls the right one. */
#if defined(__x86_64__)
#define AG_LEVELS(name, PARAMETERS, ARGUMENTS)                                                     \
	static void name##_portable(PARAMETERS)                                                        \
	{                                                                                              \
		name##_body(ARGUMENTS);                                                                    \
	}                                                                                              \
	__attribute__((target("avx2"))) static void name##_avx2(PARAMETERS)                            \
	{                                                                                              \
		name##_body(ARGUMENTS);                                                                    \
	}                                                                                              \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) static void name##_avx512(       \
		PARAMETERS)                                                                                \
	{                                                                                              \
		name##_body(ARGUMENTS);                                                                    \
	}                                                                                              \
	static void name##_at(AgCpuLevel level, PARAMETERS)                                            \
	{                                                                                              \
		if (level == AG_CPU_AVX512)                                                                \
			name##_avx512(ARGUMENTS);                                                              \
		else if (level == AG_CPU_AVX2)                                                             \
			name##_avx2(ARGUMENTS);                                                                \
		else                                                                                       \
			name##_portable(ARGUMENTS);                                                            \
	}
#else
#define AG_LEVELS(name, PARAMETERS, ARGUMENTS)                                                     \
	static void name##_at(AgCpuLevel level, PARAMETERS)                                            \
	{                                                                                              \
		(void) level;                                                                              \
		name##_body(ARGUMENTS);                                                                    \
	}
#endif

#endif
