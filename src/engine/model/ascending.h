/*
 * ascending.h - quantiles that don't cross.
 */
#ifndef AG_ASCENDING_H
#define AG_ASCENDING_H

/*
 * scores[n] in ascending order to out[n], which may be scores. Chernozhukov, Fernandez-Val and Galichon 2010, "Quantile and
 * probability curves without crossing": the rearranged values are never farther from the true quantiles.
 */
static inline void
ag_ascending(const double *scores, int n, double *out)
{
	for (int k = 0; k < n; k++)
	{
		double score = scores[k];
		int at = k;

		for (; at > 0 && out[at - 1] > score; at--)
			out[at] = out[at - 1];
		out[at] = score;
	}
}

#endif
