/*
 * fit_rounds.c - the round at which a model would have done best, as others of its kind say that were fitted on other rows.
 */
#include <math.h>

#include "engine/search/fit_state.h"

/* The metric after a round, as the curve's points say; beyond its end as at its end. */
static double
curve_at(const AgHistory *history, int round)
{
	int i = 0;

	while (i < history->n && history->round[i] < round)
		i++;
	if (i == history->n)
		return history->valid[history->n - 1];
	if (i == 0 || history->round[i] == round)
		return history->valid[i];
	return history->valid[i - 1] + (history->valid[i] - history->valid[i - 1]) *
									   (double) (round - history->round[i - 1]) /
									   (double) (history->round[i] - history->round[i - 1]);
}

/* Their mean score; NaN: none has a curve. */
static double
mean_at(const AgTrained *const *children, int n, int round)
{
	double sum = 0.0;
	int n_others = 0;

	for (int c = 0; c < n; c++)
	{
		const AgHistory *history = children[c] != NULL ? &children[c]->history : NULL;

		if (history == NULL || history->n == 0)
			continue;
		sum += ag_metric_score(history->metric, curve_at(history, round));
		n_others++;
	}
	return n_others > 0 ? sum / n_others : (double) NAN;
}

/* The first round at which they are at their best, among those that any of them has a point of. */
int
ag_fit_round_by(const AgTrained *const *children, int n, int by_default)
{
	double best_score = (double) NAN;
	int best = by_default;

	for (int c = 0; c < n; c++)
		for (int i = 0; children[c] != NULL && i < children[c]->history.n; i++)
		{
			int round = children[c]->history.round[i];
			double score = mean_at(children, n, round);

			if (score > best_score || (!isnan(score) && isnan(best_score)) ||
				(score == best_score && round < best))
			{
				best_score = score;
				best = round;
			}
		}
	return best;
}
