/*
 * conformal.h - quantiles moved so that as many rows lie below each as it says.
 */
#ifndef AG_CONFORMAL_H
#define AG_CONFORMAL_H

/* Each by its shift, and in ascending order again. */
static inline void
ag_quantiles_shift(int n, const double *shifts, double *quantiles)
{
	for (int k = 0; k < n; k++)
	{
		double value = quantiles[k] + shifts[k];
		int at = k;

		for (; at > 0 && quantiles[at - 1] > value; at--)
			quantiles[at] = quantiles[at - 1];
		quantiles[at] = value;
	}
}

#endif
