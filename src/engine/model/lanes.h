/*
 * lanes.h - arithmetic on blocks of numbers, eight at a time.
 *
 * Each operation is written once, on vectors of eight as compilers know them, and compiled for several
 * kinds of CPU; operations of IEEE arithmetic without contraction, so every kind gives the same bytes as
 * the scalar forms that are named at each. Which kind a machine has is asked once by whoever holds the level.
 */
#ifndef AG_LANES_H
#define AG_LANES_H

#include <stdbool.h>
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
/* Bytes of its nearest cache of data; 32 KiB where it can't be asked. */
int64_t ag_cpu_near_bytes(void);

#define AG_LANES 8
#define AG_LANES_BLOCK 256 /* the longest block; arrays have room for n rounded up to AG_LANES */

/* out[i] = ag_exp(x[i]). */
void ag_exp_block(AgCpuLevel level, int n, const double *x, double *out);

/* out[i] = ag_sigmoid(x[i]). */
void ag_sigmoid_block(AgCpuLevel level, int n, const double *x, double *out);

/*
 * places[i]: where x[i] stands when x[n] are sorted, equal ones in their order. n <= AG_LANES_BLOCK, none is NaN; x
 * is filled up to a multiple of AG_LANES.
 */
void ag_places_block(AgCpuLevel level, int n, double *x, uint8_t *places);

/* A row's gradient and hessian, together: they are always read together. */
typedef struct AgGradient
{
	float g, h;
} AgGradient;

/* g = p - y, h = p (1 - p) with p = ag_sigmoid(scores[i]), y = 1 where class_of[i] is 1, else 0. n is a multiple of AG_LANES. */
void ag_logistic_block(AgCpuLevel level, int n, const double *scores, const int32_t *class_of,
					   AgGradient *gradients);

/*
 * scores[i] += step; then adds the gradients and hessians that ag_logistic_block gives there, times per_g and per_h, each cut to a
 * whole number, to the sums. Any n.
 */
void ag_logistic_step(AgCpuLevel level, int64_t n, double step, double *scores,
					  const int32_t *class_of, double per_g, double per_h, int64_t *sum_g,
					  int64_t *sum_h);

/* Raises *max_g to the largest |g| and *max_h to the largest h of n gradients, any number of them. */
void ag_gradient_range(AgCpuLevel level, int64_t n, const AgGradient *gradients, float *max_g,
					   float *max_h);

/* Adds the n listed rows' gradients times per_g, hessians times per_h, each cut to a whole number, to the sums. */
void ag_sum_listed(AgCpuLevel level, int64_t n, const uint32_t *ids, const AgGradient *gradients,
				   double per_g, double per_h, int64_t *sum_g, int64_t *sum_h);

/* Of packed gradients. */
typedef struct AgPackedSums
{
	int64_t sum_g, sum_h;
	uint32_t min_h, max_h;
} AgPackedSums;

/*
 * Stochastic rounding: with bits = ag_random_u64(key, rows[i]),
 * packed[i] = floor(g * per_g + high half of bits / 2^32) << 16 | floor(h * per_h + low half / 2^32), where the
 * second is at least 1 when h > 0, or 1 in any case with is_equal. |g * per_g| and h * per_h are at most 32766.
 * Adds what it made to *sums. n is a multiple of AG_LANES, at most AG_LANES_BLOCK.
 */
void ag_round_block(AgCpuLevel level, int n, uint64_t key, const uint32_t *rows,
					const AgGradient *gradients, double per_g, double per_h, bool is_equal,
					uint32_t *packed, AgPackedSums *sums);

#endif
