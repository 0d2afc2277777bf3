/*
 * level_scan.h - what one leaf adds to the merit of every cut of a feature, when all leaves get the same cut.
 */
#ifndef AG_LEVEL_SCAN_H
#define AG_LEVEL_SCAN_H

#include <math.h>

#include "engine/base/rng.h"
#include "engine/data/bins.h"
#include "engine/model/lanes.h"

/*
 * For each side of each cut, with the sums G and H and the value v = G / (H + l2): adds G v to nums, and v^2 H to dens.
 * Cut b of a number: missing and bins 1..b to the left; cut n_bins: missing against the rest. Of a category: bin b
 * against the rest. g[n_bins + 1] and h are the leaf's sums by bin. The same bytes at every level.
 */
void ag_level_add(AgCpuLevel level, const AgBinFeature *feature, const int64_t *g, const int64_t *h,
				  double l2, double *nums, double *dens);

/* The merit of a cut: by the cosine of the angle between gradients and leaf values, or by the loss it saves. */
static inline double
ag_level_score(double num, double den, bool is_cosine)
{
	if (!is_cosine)
		return num;
	return den > 0.0 ? num / sqrt(den) : 0.0;
}

/* Near to a standard normal number: the sum of eight uniform ones. */
static inline double
ag_level_noise(uint64_t key, uint64_t counter)
{
	double sum = 0.0;

	for (uint64_t word = 0; word < 2; word++)
	{
		uint64_t bits = ag_random_u64(key, 2 * counter + word);

		for (int part = 0; part < 4; part++, bits >>= 16)
			sum += (double) (bits & 0xffff) * 0x1.0p-16 - (0.5 - 0x1.0p-17);
	}
	return sum * 1.2247448713915890; /* sqrt(12 / 8) */
}

#endif
