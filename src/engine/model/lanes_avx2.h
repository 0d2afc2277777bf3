/*
 * lanes_avx2.h - the functions of lanes.h for CPUs with AVX2. For lanes.c and lanes_gradient.c only.
 *
 * Compilers take vectors of eight doubles apart there, comparisons and conversions down to single numbers, so these are
 * written by hand, four at a time. Each has the parameters and the meaning of the body whose place it takes, and gives
 * its bytes.
 */
#ifndef AG_LANES_AVX2_H
#define AG_LANES_AVX2_H

#include "engine/model/lanes.h"

#if defined(__x86_64__)
/* n is a multiple of AG_LANES unless it says otherwise. *is_moderate becomes 0 when what was written means nothing. */
void ag_logistic_avx2(int n, const double *scores, const int32_t *class_of, AgGradient *gradients,
					  int *is_moderate);
/* Sums beyond 2^51 a row also make it 0; scores are right in any case. */
void ag_step_avx2(int64_t n, double step, double *scores, const int32_t *class_of, double per_g,
				  double per_h, int64_t *sum_g, int64_t *sum_h, int *is_moderate);
void ag_range_avx2(int64_t n, const AgGradient *gradients, uint32_t *max_g, uint32_t *max_h);
void ag_sum_avx2(int64_t n, const uint32_t *ids, const AgGradient *gradients, double per_g,
				 double per_h, int64_t *sum_g, int64_t *sum_h);
void ag_round_avx2(int n, uint64_t key, const uint32_t *rows, const AgGradient *gradients,
				   double per_g, double per_h, bool is_equal, uint32_t *packed, AgPackedSums *sums);
/* Any n, and x with room for whole AG_LANES. */
void ag_moderate_avx2(int n, const double *x, int *is_all);
/* Any n, and x filled up. */
void ag_places_avx2(int n, const double *x, uint8_t *places);
#endif

#endif
