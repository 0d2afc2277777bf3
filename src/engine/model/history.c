/*
 * history.c - how a model's metric went, round by round.
 */
#include "engine/model/history.h"

void
ag_history_begin(AgHistory *history, AgMetric metric)
{
	history->metric = metric;
	history->n = 0;
	history->stride = 1;
}

static bool
stays(const AgHistory *history, int round)
{
	return round == 1 || round % history->stride == 0;
}

static void
thin(AgHistory *history)
{
	int n = 0;

	history->stride *= 2;
	for (int i = 0; i < history->n; i++)
		if (stays(history, history->round[i]))
		{
			history->round[n] = history->round[i];
			history->valid[n++] = history->valid[i];
		}
	history->n = n;
}

void
ag_history_add(AgHistory *history, int round, double valid)
{
	/* the latest stands behind those that stay, until the next one comes */
	if (history->n > 0 && !stays(history, history->round[history->n - 1]))
		history->n--;
	if (history->n == AG_HISTORY_POINTS)
		thin(history);
	history->round[history->n] = round;
	history->valid[history->n++] = valid;
}
