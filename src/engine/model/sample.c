/*
 * sample.c - random choices of rows and features.
 */
#include "engine/model/sample.h"

#include "engine/base/rng.h"

int64_t
ag_sample_rows(uint64_t key, double fraction, const uint32_t *rows, int64_t n_rows, uint32_t *bag)
{
	int64_t n = 0;

	for (int64_t i = 0; i < n_rows; i++)
	{
		bag[n] = rows[i];
		n += ag_random_unit(key, rows[i]) < fraction;
	}
	return n;
}
