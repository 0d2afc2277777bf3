/*
 * early_stop.c - when to give up waiting for a better round.
 */
#include "engine/model/early_stop.h"

#include <limits.h>
#include <math.h>

#define LEAST_GAIN 1e-6

void
ag_early_stop_init(AgEarlyStop *stop, AgMetric metric, int fixed, int64_t n_train)
{
	*stop = (AgEarlyStop){
		.metric = metric, .fixed = fixed, .n_train = n_train, .best_value = (double) NAN};
}

int
ag_early_stop_patience(int64_t n_train, int best_round)
{
	double share = n_train > 10000 ? 10000.0 / (double) n_train : 1.0;
	int simple = (int) (300.0 * share + 0.5);
	int grown = (int) (0.3 * best_round + 20.0 + 0.5);

	if (simple < 20)
		simple = 20;
	return simple > grown ? simple : grown;
}

bool
ag_early_stop_take(AgEarlyStop *stop, int round, double value)
{
	bool is_better;

	if (stop->best_round == 0 || isnan(stop->best_value))
		is_better = stop->best_round == 0 || !isnan(value);
	else if (ag_metric_higher_is_better(stop->metric))
		is_better = value > stop->best_value + stop->least_gain;
	else
		is_better = value < stop->best_value - stop->least_gain;
	if (!is_better)
		return false;
	if (stop->best_round == 0 && stop->fixed < 0 && isfinite(value))
		stop->least_gain = LEAST_GAIN * fabs(value);
	stop->best_round = round;
	stop->best_value = value;
	stop->patience = stop->fixed < 0   ? ag_early_stop_patience(stop->n_train, round)
					 : stop->fixed > 0 ? stop->fixed
									   : INT_MAX;
	return true;
}

bool
ag_early_stop_done(const AgEarlyStop *stop, int round)
{
	return stop->best_round > 0 && round - stop->best_round >= stop->patience;
}

double
ag_early_stop_share(const AgEarlyStop *stop, int round, int most)
{
	double expected = most, idle;

	if (stop->best_round > 0 && stop->patience < INT_MAX)
	{
		idle = (double) (round - stop->best_round) / stop->patience;
		expected = stop->best_round + (double) stop->patience + (1.0 - idle) * round;
	}
	if (expected > most)
		expected = most;
	return round < expected ? round / expected : 1.0;
}
