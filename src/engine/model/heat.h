/*
 * heat.h - probabilities at another temperature.
 */
#ifndef AG_HEAT_H
#define AG_HEAT_H

#include <math.h>

#include "engine/base/maths.h"

#define AG_HEAT_CLASSES 1000 /* more are left as they are */

/* p^(1 / temperature), to a sum of 1 again; as it was where that is no number. temperature > 0. */
static inline void
ag_heat(double temperature, int n, double *proba)
{
	double most = 0.0, sum = 0.0;

	for (int k = 0; k < n; k++)
		most = proba[k] > most ? proba[k] : most;
	if (!(most > 0.0))
		return;
	for (int k = 0; k < n; k++)
		sum += proba[k] > 0.0 ? ag_exp(ag_ln(proba[k] / most) / temperature) : 0.0;
	for (int k = 0; k < n; k++)
		proba[k] = proba[k] > 0.0 ? ag_exp(ag_ln(proba[k] / most) / temperature) / sum : 0.0;
}

#endif
