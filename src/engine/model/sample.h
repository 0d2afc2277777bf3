/*
 * sample.h - random choices of rows and features.
 */
#ifndef AG_SAMPLE_H
#define AG_SAMPLE_H

#include <stdint.h>

/* How many of n features a fraction is: rounded, at least 2 where there are 2 (as LightGBM counts). */
int ag_sample_size(double fraction, int n);

/* Moves k of the n items to the front of list, chosen by key and by the items' order. */
void ag_sample_front(uint64_t key, int k, int n, int *list);

/* The rows that are in the bag: each with the given chance, by its own number. Returns how many went to bag. */
int64_t ag_sample_rows(uint64_t key, double fraction, const uint32_t *rows, int64_t n_rows,
					   uint32_t *bag);

#endif
