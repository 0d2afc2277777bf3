/*
 * sample.h - random choices of rows and features.
 */
#ifndef AG_SAMPLE_H
#define AG_SAMPLE_H

#include <stdint.h>

#include "engine/model/sample_maths.h"

/* The rows that are in the bag: each with the given chance, by its own number. Returns how many went to bag. */
int64_t ag_sample_rows(uint64_t key, double fraction, const uint32_t *rows, int64_t n_rows,
					   uint32_t *bag);

#endif
