/*
 * outlook.c - see outlook.h.
 */
#include "engine/search/outlook.h"

#include <math.h>

#define MOST_DONE 0.99
#define ENDING 1.04 /* what comes behind the models takes its time too */

double
ag_outlook_units(AgFamilyId family)
{
	/* by fits of a minute on tables of 1,000 to 50,000 rows; only their ratios matter, and only until a family has been seen */
	static const double units[AG_FAMILY_LAST] = {
		[AG_FAMILY_GBM] = 2.0,    [AG_FAMILY_LR] = 0.5,      [AG_FAMILY_KNN] = 0.2,
		[AG_FAMILY_RF] = 6.0,     [AG_FAMILY_XT] = 6.0,      [AG_FAMILY_NN_TORCH] = 5.0,
		[AG_FAMILY_FASTAI] = 2.0, [AG_FAMILY_REALMLP] = 4.0, [AG_FAMILY_XGB] = 2.5,
		[AG_FAMILY_CAT] = 8.0,    [AG_FAMILY_TABM] = 8.0,
	};

	return units[family];
}

void
ag_outlook_took(AgOutlook *outlook, AgFamilyId family, double units, double seconds)
{
	outlook->done[family] += units;
	outlook->seconds[family] += seconds;
}

void
ag_outlook_waits(AgOutlook *outlook, AgFamilyId family, double units)
{
	outlook->waiting[family] += units;
}

double
ag_outlook_left(const AgOutlook *outlook)
{
	double done = 0.0, seconds = 0.0, left = 0.0;

	for (int f = 0; f < AG_FAMILY_LAST; f++)
	{
		done += outlook->done[f];
		seconds += outlook->seconds[f];
	}
	for (int f = 0; f < AG_FAMILY_LAST; f++)
		if (outlook->waiting[f] > 0.0)
			left +=
				outlook->waiting[f] *
				(outlook->done[f] > 0.0 ? outlook->seconds[f] / outlook->done[f] : seconds / done);
	return left;
}

double
ag_outlook_done(const AgOutlook *outlook, double elapsed, double limit)
{
	double total = (elapsed + ag_outlook_left(outlook)) * ENDING;

	if (!isfinite(total) || !(elapsed > 0.0))
		return -1.0;
	if (total > limit)
		total = limit;
	return elapsed < total * MOST_DONE ? elapsed / total : MOST_DONE;
}
