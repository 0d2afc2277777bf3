/*
 * history.c - a model's history keeps its shape however long it gets.
 */
#include "unit/unit.h"

#include "engine/model/history.h"

int
main(void)
{
	static const int lengths[] = {1, 2, 100, 128, 129, 130, 1000, 4097, 100000};
	AgHistory history;

	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
	{
		ag_history_begin(&history, AG_METRIC_RMSE);
		AG_CHECK_EQ(history.n, 0);
		for (int round = 1; round <= lengths[l]; round++)
		{
			ag_history_add(&history, round, 1.0 / round);
			if (!AG_CHECK(history.n >= 1 && history.n <= AG_HISTORY_POINTS))
				return 1;
		}
		AG_CHECK_EQ(history.round[0], 1);
		AG_CHECK_EQ(history.round[history.n - 1], lengths[l]);
		AG_CHECK(lengths[l] >= AG_HISTORY_POINTS ? history.n >= AG_HISTORY_POINTS / 2
												 : history.n == lengths[l]);
		for (int i = 0; i < history.n; i++)
		{
			AG_CHECK(history.valid[i] == 1.0 / history.round[i]);
			AG_CHECK(i == 0 || history.round[i] > history.round[i - 1]);
			AG_CHECK(i == 0 || i == history.n - 1 || history.round[i] % history.stride == 0);
		}
	}
	return ag_unit_done("history");
}
