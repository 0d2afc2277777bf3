/*
 * cuts.h - what the clock decided in a training, so that it can be repeated without one. What the numbers mean is the family's:
 *
 * Nets: pairs (steps made, steps that the schedules end after from then on); (steps made, 0) is the end. Linear models: 1 where the
 * products of all terms were summed once, 2 where each iteration reads the rows; iterations until time was up, or -1. What it learns
 * from neither sort is empty.
 */
#ifndef AG_CUTS_H
#define AG_CUTS_H

#include <stdbool.h>
#include <stdint.h>

#define AG_CUTS_MOST 256

typedef struct AgCuts
{
	int n;
	bool is_full; /* there were more */
	int64_t values[AG_CUTS_MOST];
} AgCuts;

static inline void
ag_cuts_add(AgCuts *cuts, int64_t a, int64_t b)
{
	if (cuts->n + 2 > AG_CUTS_MOST)
	{
		cuts->is_full = true;
		return;
	}
	cuts->values[cuts->n++] = a;
	cuts->values[cuts->n++] = b;
}

#endif
