/*
 * bootstrap_maths.h - kinds of draws, and the weight that a row's draw gives it: for C and CUDA alike.
 */
#ifndef AG_BOOTSTRAP_MATHS_H
#define AG_BOOTSTRAP_MATHS_H

#include <stdbool.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"

#define AG_PART_ROWS 8192 /* rows that are drawn together, and whose sums are taken in order */
#define AG_MVS_STEPS 40   /* far more than the search for a threshold takes */

/* In the order of the family's words for them. */
typedef enum AgBootstrapKind
{
	AG_BOOTSTRAP_AUTO = 0,  /* MVS, but Bayesian where there are more than two classes */
	AG_BOOTSTRAP_BAYESIAN,  /* exponential weights to the power of the temperature */
	AG_BOOTSTRAP_BERNOULLI, /* each row with the chance `share` */
	AG_BOOTSTRAP_MVS, /* rows of large gradients sooner, the others' weights raised to match */
	AG_BOOTSTRAP_NO
} AgBootstrapKind;

/* chance counts only for MVS. */
AG_MATHS_FN double
ag_draw_weight(int kind, double temperature, double share, uint64_t key, uint32_t row,
			   double chance)
{
	double u, weight;

	if (kind == AG_BOOTSTRAP_NO)
		return 1.0;
	u = ag_random_unit(key, row);
	switch (kind)
	{
		case AG_BOOTSTRAP_BAYESIAN:
			weight = -ag_ln(1.0 - u);
			if (temperature == 1.0)
				return weight;
			return weight > 0.0 ? ag_exp(temperature * ag_ln(weight)) : 0.0;
		case AG_BOOTSTRAP_BERNOULLI:
			return u < share ? 1.0 : 0.0;
		case AG_BOOTSTRAP_MVS:
			return u < chance ? 1.0 / chance : 0.0;
		default:
			return 1.0;
	}
}

#endif
