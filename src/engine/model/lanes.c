/*
 * lanes.c - arithmetic on blocks of numbers, eight at a time.
 */
#include "engine/model/lanes.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/maths.h"
#include "engine/model/lanes_avx2.h"
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

int64_t
ag_cpu_near_bytes(void)
{
	int64_t bytes = 0;

#if defined(_SC_LEVEL1_DCACHE_SIZE)
	bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
	return bytes > 0 ? bytes : 32768;
}

/* Whether the block stays where exp_lanes needs no second step; false for NaN. */
AG_INLINE void
moderate_body(int n, const double *x, int *is_all)
{
	const AgDoubles most = AG_EIGHT(700.0);
	AgLongs inside = AG_EIGHT(-1);

	for (int i = 0; i < n; i += AG_LANES)
	{
		AgDoubles v;

		memcpy(&v, x + i, sizeof v);
		inside &= (v <= most) & (v >= -most);
	}
	for (int i = 0; i < AG_LANES; i++)
		*is_all &= (int) inside[i];
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
	for (int i = 0; i < n; i += AG_LANES)
	{
		AgDoubles v;

		memcpy(&v, x + i, sizeof v);
		sigmoid_lanes(&v);
		memcpy(out + i, &v, sizeof v);
	}
}

/*
 * By counting what comes before: n * n comparisons, but of eight elements at a time and without a branch, where
 * sorting would mispredict every other one.
 */
AG_INLINE void
places_body(int n, const double *x, uint8_t *places)
{
	/* Eight of them from 7 - d on: all ones in the lanes behind lane d. */
	static const int64_t behind[2 * AG_LANES] = {0,  0,  0,  0,  0,  0,  0,  0,
												 -1, -1, -1, -1, -1, -1, -1, -1};

	for (int i = 0; i < n; i += AG_LANES)
	{
		AgLongs n_before = AG_EIGHT(0);
		AgDoubles own;
		int j = 0;

		memcpy(&own, x + i, sizeof own);
		for (; j < i; j++)
			n_before -= (AgDoubles) AG_EIGHT(x[j]) <= own;
		for (; j < i + AG_LANES; j++)
		{
			const AgDoubles other = AG_EIGHT(x[j]);
			AgLongs is_behind;

			memcpy(&is_behind, behind + 7 - (j - i), sizeof is_behind);
			n_before -= other < own;
			n_before -= (AgLongs) (other == own) & is_behind;
		}
		for (; j < n; j++)
			n_before -= (AgDoubles) AG_EIGHT(x[j]) < own;
		for (int l = 0; l < AG_LANES && i + l < n; l++)
			places[i + l] = (uint8_t) n_before[l];
	}
}

#define AG_EXP_PARAMETERS int n, const double *x, double *out
#define AG_EXP_ARGUMENTS n, x, out
#define AG_MODERATE_PARAMETERS int n, const double *x, int *is_all
#define AG_MODERATE_ARGUMENTS n, x, is_all
#define AG_PLACES_PARAMETERS int n, const double *x, uint8_t *places
#define AG_PLACES_ARGUMENTS n, x, places

AG_LEVELS(exp, AG_EXP)
AG_LEVELS(sigmoid, AG_EXP)
AG_LEVELS_WITH(places, ag_places_avx2, AG_PLACES)
AG_LEVELS_WITH(moderate, ag_moderate_avx2, AG_MODERATE)

static int
block_is_moderate(AgCpuLevel level, int n, const double *x)
{
	int is_all = 1;

	moderate_at(level, n, x, &is_all);
	return is_all;
}

void
ag_exp_block(AgCpuLevel level, int n, const double *x, double *out)
{
	if (block_is_moderate(level, n, x))
		exp_at(level, n, x, out);
	else
		for (int i = 0; i < n; i++)
			out[i] = ag_exp(x[i]);
}

void
ag_sigmoid_block(AgCpuLevel level, int n, const double *x, double *out)
{
	if (block_is_moderate(level, n, x))
		sigmoid_at(level, n, x, out);
	else
		for (int i = 0; i < n; i++)
			out[i] = ag_sigmoid(x[i]);
}

void
ag_places_block(AgCpuLevel level, int n, double *x, uint8_t *places)
{
	for (int i = n; i % AG_LANES != 0; i++)
		x[i] = (double) INFINITY;
	if (level != AG_CPU_PORTABLE)
	{
		places_at(level, n, x, places);
		return;
	}
	/* Compilers make little of the masks elsewhere; of two loops like these they do. */
	for (int i = 0; i < n; i++)
	{
		int64_t n_before = 0;

		for (int j = 0; j < i; j++)
			n_before += x[j] <= x[i];
		for (int j = i + 1; j < n; j++)
			n_before += x[j] < x[i];
		places[i] = (uint8_t) n_before;
	}
}
