/*
 * level_maths.h - the merit of a cut that all leaves of a level get, and the noise on merits: for C and CUDA alike.
 */
#ifndef AG_LEVEL_MATHS_H
#define AG_LEVEL_MATHS_H

#include "engine/base/maths.h"
#include "engine/base/rng.h"

#define AG_KEY_NOISE (UINT64_C(3) << 32)
#define AG_LEAST_L2 1e-30 /* of an empty side the value is 0 / this */

/* The merit of a cut: by the cosine of the angle between gradients and leaf values, or by the loss it saves. */
AG_MATHS_FN double
ag_level_score(double num, double den, bool is_cosine)
{
	if (!is_cosine)
		return num;
	return den > 0.0 ? num / sqrt(den) : 0.0;
}

/* Near to a standard normal number: the sum of eight uniform ones. */
AG_MATHS_FN double
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

/*
 * What a node's features are compared by: the gain of the best cut of one, with noise; or the root of its merit, which is bar
 * above the gain, with noise. A node's merit is Cosine's score squared, but for l2.
 */
AG_MATHS_FN double
ag_gain_with_noise(double gain, double bar, bool is_root, double noise, uint64_t node_key,
				   uint64_t feature)
{
	double merit = gain + bar;

	if (is_root)
		gain = merit > 0.0 ? sqrt(merit) : 0.0;
	return gain + noise * ag_level_noise(ag_key(ag_key(node_key, AG_KEY_NOISE), feature), 0);
}

#endif
