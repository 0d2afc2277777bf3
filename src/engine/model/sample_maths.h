/*
 * sample_maths.h - random choices of features: for C and CUDA alike.
 */
#ifndef AG_SAMPLE_MATHS_H
#define AG_SAMPLE_MATHS_H

#include "engine/base/rng.h"

/* Keys of a tree's draws, clear of those of children and features. */
#define AG_KEY_NODE (UINT64_C(1) << 32)
#define AG_KEY_LEVEL (UINT64_C(2) << 32)

/* How many of n features a fraction is: rounded, at least 2 where there are 2 (as LightGBM counts). */
AG_RNG_FN int
ag_sample_size(double fraction, int n)
{
	int least = n < 2 ? n : 2;
	int size = fraction >= 1.0 ? n : (int) (fraction * n + 0.5);

	return size < least ? least : size;
}

/* Moves k of the n items to the front of list, chosen by key and by the items' order: the first k steps of Fisher and Yates' shuffle. */
AG_RNG_FN void
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

#endif
