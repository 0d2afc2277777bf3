/*
 * history.h - how a model's metric went, round by round: at most AG_HISTORY_POINTS points at even distances.
 */
#ifndef AG_HISTORY_H
#define AG_HISTORY_H

#include "engine/model/metric.h"

#define AG_HISTORY_POINTS 128

typedef struct AgHistory
{
	AgMetric metric; /* NONE: nothing was recorded */
	int n;
	int stride; /* rounds between points, but for the first and the last */
	int round[AG_HISTORY_POINTS];
	double valid[AG_HISTORY_POINTS]; /* plain values on the validation rows */
} AgHistory;

/* Empties it. */
void ag_history_begin(AgHistory *history, AgMetric metric);
/* Rounds ascend from 1. The latest is always there; of the others, when it gets full, every second goes. */
void ag_history_add(AgHistory *history, int round, double valid);

#endif
