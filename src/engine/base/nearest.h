/*
 * nearest.h - the known name closest to one that isn't known, for "did you mean".
 *
 * Names may sit in any table, so they are offered one after the other:
 *
 *     AgNearest nearest;
 *     ag_nearest_init(&nearest, "time_limt");
 *     for (...) ag_nearest_offer(&nearest, table[i].name);
 *     hint = ag_nearest_name(&nearest);      "time_limit", or NULL
 */
#ifndef AG_NEAREST_H
#define AG_NEAREST_H

#define AG_NEAREST_MAX 64 /* longer names, in bytes, have no neighbours */

typedef struct AgNearest
{
	const char *wanted;
	const char *best;
	int best_distance;
} AgNearest;

/* wanted must stay valid while names are offered. */
void ag_nearest_init(AgNearest *nearest, const char *wanted);
/* name must outlive the answer. The first of equally close names wins. */
void ag_nearest_offer(AgNearest *nearest, const char *name);
/* The closest name offered, or NULL when none is close enough to be what was meant. */
const char *ag_nearest_name(const AgNearest *nearest);

#endif
