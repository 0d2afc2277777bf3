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
 * The value at place level * (n + 1) of n values in order, between two neighbours in proportion; before the first one or behind the
 * last one: that. (Of further draws as many are expected between any two neighbours as beyond each end; few rows' own shares would
 * be too near to the middle.) With weights, places are sums of weights in units of their mean, and equal
 * values count together; values without weight not at all. Moves the items about; their weights' sum must fit. Without any weight: 0.
 */
double ag_percentile(AgWeighed *items, int64_t n, double level);

/* The power of two by which numbers up to `highest` are scaled so that n of them, as integers, add up below 2^62; 0: all are 0. */
double ag_fixed_scale(double highest, int64_t n);

#endif
