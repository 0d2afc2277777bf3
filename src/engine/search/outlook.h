/*
 * outlook.h - how far a fit is, judged by what its models took so far.
 *
 * Work is counted in units that are a family's usual cost beside others. What was done of it, and in how many seconds, says what a unit of that
 * family takes here, or, of a family that hasn't been seen yet, what units take on the whole.
 */
#ifndef AG_OUTLOOK_H
#define AG_OUTLOOK_H

#include "engine/model/family.h"

typedef struct AgOutlook
{
	double done[AG_FAMILY_LAST], seconds[AG_FAMILY_LAST]; /* units, and what they took */
	double waiting[AG_FAMILY_LAST];
} AgOutlook;

/* Units of one training by a family. */
double ag_outlook_units(AgFamilyId family);

/* That much was done, in so many seconds; that much is still to do. */
void ag_outlook_took(AgOutlook *outlook, AgFamilyId family, double units, double seconds);
void ag_outlook_waits(AgOutlook *outlook, AgFamilyId family, double units);

/* Seconds that what waits will take; NaN: there's nothing to judge by. */
double ag_outlook_left(const AgOutlook *outlook);

/*
 * Of the whole fit, by time: in [0, 1); -1: unknown. elapsed: seconds so far. limit: after which it ends, at the latest; INFINITY: there is
 * none.
 */
double ag_outlook_done(const AgOutlook *outlook, double elapsed, double limit);

#endif
