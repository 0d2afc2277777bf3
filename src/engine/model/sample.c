/*
 * sample.c - random choices of rows and features.
 */
#include "engine/model/sample.h"

#include "engine/base/rng.h"

int
ag_sample_size(double fraction, int n)
{
	int least = n < 2 ? n : 2;
	int size = fraction >= 1.0 ? n : (int) (fraction * n + 0.5);

	return size < least ? least : size;
}

/* The first k steps of Fisher and Yates' shuffle. */
void
ag_sample_front(uint64_t key, int k, int n, int *list)
{
	for (int i = 0; i < k && i < n - 1; i++)
	{
		int j = i + (int) ag_random_below(key, (uint64_t) i, (uint32_t) (n - i));
		int item = list[i];

		list[i] = list[j];
		list[j] = item;
	}
}

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
