/*
 * vector.c - inner loops over numbers, in variants for what the processor has.
 */
#include "engine/base/vector.h"

#include "engine/base/maths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define LESS(a, b) ((uint32_t) _mm_movemask_ps((__m128) ((__m128) (a) < (b))))
#else
static uint32_t
less(const float *a, float b)
{
	return (uint32_t) (a[0] < b) | (uint32_t) (a[1] < b) << 1 | (uint32_t) (a[2] < b) << 2 |
		   (uint32_t) (a[3] < b) << 3;
}
#define LESS(a, b) less((const float *) &(a), b)
#endif

#define VARIANT portable
#define NAME_TEXT "portable"
#define TARGET
#define LANES 2
#include "engine/base/vector_body.h"

#if defined(__x86_64__)

#define VARIANT avx2
#define NAME_TEXT "avx2"
#define TARGET __attribute__((target("avx2")))
#define LANES 4
#define LESS(a, b) ((uint32_t) _mm256_movemask_ps((__m256) ((__m256) (a) < (b))))
#include "engine/base/vector_body.h"

#define VARIANT avx512
#define NAME_TEXT "avx512"
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define LANES 8
#define LESS(a, b) ((uint32_t) _mm512_cmp_ps_mask((__m512) (a), _mm512_set1_ps(b), _CMP_LT_OQ))
#include "engine/base/vector_body.h"

#endif

int
ag_vector_variants(const AgVectorOps **variants)
{
	int n = 0;

	variants[n++] = &ops_portable;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2"))
		variants[n++] = &ops_avx2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512dq"))
		variants[n++] = &ops_avx512;
#endif
	return n;
}

const AgVectorOps *
ag_vector_ops(void)
{
	const AgVectorOps *variants[3];
	int n = ag_vector_variants(variants);

	return variants[n - 1];
}
