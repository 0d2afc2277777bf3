/*
 * lanes.h - arithmetic on blocks of numbers, eight at a time.
 *
 * Each operation is written once, on vectors of eight as compilers know them, and compiled for several
 * kinds of CPU; operations of IEEE arithmetic without contraction, so every kind gives the same bytes as
 * the scalar forms that are named at each. Which kind a machine has is asked once by whoever holds the level.
 */
#ifndef AG_LANES_H
#define AG_LANES_H

#include <stdint.h>

/* Kinds of CPU, each able to do what the ones before it can. */
typedef enum AgCpuLevel
{
	AG_CPU_PORTABLE = 0,
	AG_CPU_AVX2 = 1,
	AG_CPU_AVX512 = 2, /* F, BW, DQ, VL */
} AgCpuLevel;

/* What this machine has. */
AgCpuLevel ag_cpu_level(void);

#define AG_LANES 8
#define AG_LANES_BLOCK 256 /* the longest block; arrays have room for n rounded up to AG_LANES */

/* out[i] = ag_exp(x[i]). */
void ag_exp_block(AgCpuLevel level, int n, const double *x, double *out);

/* out[i] = ag_sigmoid(x[i]). */
void ag_sigmoid_block(AgCpuLevel level, int n, const double *x, double *out);

/*
 * Stochastic rounding: with bits = ag_random_u64(key, rows[i]),
 * packed[i] = floor(g[i] * per_g + high half of bits / 2^32) << 16 | floor(h[i] * per_h + low half / 2^32), where the
 * second is at least 1 when h[i] > 0. |g[i] * per_g| and h[i] * per_h are at most 32766.
 */
void ag_round_block(AgCpuLevel level, int n, uint64_t key, const uint32_t *rows, const double *g,
					const double *h, double per_g, double per_h, uint32_t *packed);

#endif
