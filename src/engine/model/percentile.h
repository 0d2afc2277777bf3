/*
 * percentile.h - weighted percentiles: the constant that costs least under a loss of absolute values.
 */
#ifndef AG_PERCENTILE_H
#define AG_PERCENTILE_H

#include <stdint.h>

/* A value and how much it counts, from 0 on, in fixed point: sums don't depend on their order. */
typedef struct AgWeighed
{
	double value;
	int64_t weight;
} AgWeighed;

/*
 * The least value such that it and all smaller ones have the share `level`, in (0, 1), of the weight; where they have exactly that
 * share, to rounding, the mean of it and the next greater value that has weight: the middle of all that cost the same. Whole weights
 * are repeated rows; equal values count together, and values without weight not at all. The sum of weights must fit.
 * Without any weight: 0. Moves the items about.
 */
double ag_percentile(AgWeighed *items, int64_t n, double level);

/* The power of two by which numbers up to `highest` are scaled so that n of them, as integers, add up below 2^62; 0: all are 0. */
double ag_fixed_scale(double highest, int64_t n);

#endif
