/*
 * net_ops.c - inner loops of neural nets, in variants for what the processor has.
 */
#include "engine/model/net_ops.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/net_maths.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define DROP_CHUNK 512 /* numbers whose random bits lie on the stack */
#define ADAM_CHUNK 256 /* numbers whose roots do; a multiple of AG_NET_LANES */

/* --- portable: sixteen lanes as an array */

typedef struct LanesPortable
{
	float at[AG_NET_LANES];
} LanesPortable;

static inline LanesPortable
load_portable(const float *from)
{
	LanesPortable lanes;

	memcpy(lanes.at, from, sizeof lanes.at);
	return lanes;
}

static inline LanesPortable
zero_portable(void)
{
	return (LanesPortable){{0}};
}

static inline LanesPortable
fma_portable(float x, LanesPortable y, LanesPortable sum)
{
	for (int i = 0; i < AG_NET_LANES; i++)
		sum.at[i] = fmaf(x, y.at[i], sum.at[i]);
	return sum;
}

static inline void
store_portable(float *to, LanesPortable lanes)
{
	memcpy(to, lanes.at, sizeof lanes.at);
}

static inline void
square_portable(const float *from, size_t from_stride, float *to, size_t to_stride)
{
	for (int i = 0; i < AG_NET_LANES; i++)
		for (int j = 0; j < AG_NET_LANES; j++)
			to[(size_t) j * to_stride + (size_t) i] = from[(size_t) i * from_stride + (size_t) j];
}

static inline void
roots_portable(size_t n, const float *x, float *out)
{
	for (size_t i = 0; i < n; i++)
		out[i] = sqrtf(x[i]);
}

#define VARIANT portable
#define NAME_TEXT "portable"
#define TARGET
#define Lanes LanesPortable
#define TILE_ROWS 2
#define TILE_GROUPS 1
#include "engine/model/net_ops_body.h"

#if defined(__x86_64__)

/* --- AVX2: two registers of eight */

#define TARGET __attribute__((target("avx2,fma")))

typedef struct LanesAvx2
{
	__m256 low, high;
} LanesAvx2;

TARGET static inline __attribute__((always_inline)) LanesAvx2
load_avx2(const float *from)
{
	return (LanesAvx2){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}

TARGET static inline __attribute__((always_inline)) LanesAvx2
zero_avx2(void)
{
	return (LanesAvx2){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

TARGET static inline __attribute__((always_inline)) LanesAvx2
fma_avx2(float x, LanesAvx2 y, LanesAvx2 sum)
{
	__m256 factor = _mm256_set1_ps(x);

	return (LanesAvx2){_mm256_fmadd_ps(factor, y.low, sum.low),
					   _mm256_fmadd_ps(factor, y.high, sum.high)};
}

TARGET static inline __attribute__((always_inline)) void
store_avx2(float *to, LanesAvx2 lanes)
{
	_mm256_storeu_ps(to, lanes.low);
	_mm256_storeu_ps(to + 8, lanes.high);
}

/* Eight by eight: pairs, then quads, then halves change places. */
TARGET static inline __attribute__((always_inline)) void
eight_avx2(const float *from, size_t from_stride, float *to, size_t to_stride)
{
	__m256 r[8], s[8];

	for (int i = 0; i < 8; i++)
		r[i] = _mm256_loadu_ps(from + (size_t) i * from_stride);
	for (int i = 0; i < 8; i += 2)
	{
		s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	for (int i = 0; i < 8; i += 4)
	{
		r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
		r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
		r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
		r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
	}
	for (int i = 0; i < 4; i++)
	{
		_mm256_storeu_ps(to + (size_t) i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
		_mm256_storeu_ps(to + (size_t) (i + 4) * to_stride,
						 _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
	}
}

TARGET static inline __attribute__((always_inline)) void
square_avx2(const float *from, size_t from_stride, float *to, size_t to_stride)
{
	eight_avx2(from, from_stride, to, to_stride);
	eight_avx2(from + 8, from_stride, to + 8 * to_stride, to_stride);
	eight_avx2(from + 8 * from_stride, from_stride, to + 8, to_stride);
	eight_avx2(from + 8 * from_stride + 8, from_stride, to + 8 * to_stride + 8, to_stride);
}

TARGET static inline __attribute__((always_inline)) void
roots_avx2(size_t n, const float *x, float *out)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(out + i, _mm256_sqrt_ps(_mm256_loadu_ps(x + i)));
	for (; i < n; i++)
		out[i] = sqrtf(x[i]);
}

#define VARIANT avx2
#define NAME_TEXT "avx2"
#define Lanes LanesAvx2
#define TILE_ROWS 4
#define TILE_GROUPS 1
#include "engine/model/net_ops_body.h"

/* --- AVX-512: one register of sixteen */

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))

TARGET static inline __attribute__((always_inline)) __m512
load_avx512(const float *from)
{
	return _mm512_loadu_ps(from);
}

TARGET static inline __attribute__((always_inline)) __m512
zero_avx512(void)
{
	return _mm512_setzero_ps();
}

TARGET static inline __attribute__((always_inline)) __m512
fma_avx512(float x, __m512 y, __m512 sum)
{
	return _mm512_fmadd_ps(_mm512_set1_ps(x), y, sum);
}

TARGET static inline __attribute__((always_inline)) void
store_avx512(float *to, __m512 lanes)
{
	_mm512_storeu_ps(to, lanes);
}

TARGET static inline __attribute__((always_inline)) void
square_avx512(const float *from, size_t from_stride, float *to, size_t to_stride)
{
	square_avx2(from, from_stride, to, to_stride);
}

TARGET static inline __attribute__((always_inline)) void
roots_avx512(size_t n, const float *x, float *out)
{
	size_t i = 0;

	for (; i + AG_NET_LANES <= n; i += AG_NET_LANES)
		_mm512_storeu_ps(out + i, _mm512_sqrt_ps(_mm512_loadu_ps(x + i)));
	for (; i < n; i++)
		out[i] = sqrtf(x[i]);
}

#define VARIANT avx512
#define NAME_TEXT "avx512"
#define Lanes __m512
#define TILE_ROWS 8
#define TILE_GROUPS 3
#include "engine/model/net_ops_body.h"

#endif

int
ag_net_ops_variants(const AgNetOps **variants)
{
	int n = 0;

	variants[n++] = &ops_portable;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
	{
		variants[n++] = &ops_avx2;
		if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
			__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
			variants[n++] = &ops_avx512;
	}
#endif
	return n;
}

const AgNetOps *
ag_net_ops(void)
{
	const AgNetOps *variants[3];
	int n = ag_net_ops_variants(variants);

	return variants[n - 1];
}
