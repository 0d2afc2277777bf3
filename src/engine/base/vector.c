/*
 * vector.c - inner loops over numbers, in variants for what the processor has.
 */
#include "engine/base/vector.h"

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
#include "engine/base/vector_body.h"

#define VARIANT avx512
#define NAME_TEXT "avx512"
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define LANES 8
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
