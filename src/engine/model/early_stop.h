/*
 * early_stop.h - when to give up waiting for a better round.
 */
#ifndef AG_EARLY_STOP_H
#define AG_EARLY_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/metric.h"

typedef struct AgEarlyStop
{
	AgMetric metric;
	int fixed; /* patience in rounds; -1: adaptive; 0: never stop */
	int64_t n_train;
	int best_round; /* 1-based; 0: none yet */
	double best_value;
	double least_gain; /* what a value must be better by; 0: by anything */
	int patience;      /* from the best round on */
} AgEarlyStop;

void ag_early_stop_init(AgEarlyStop *stop, AgMetric metric, int fixed, int64_t n_train);

/*
 * Patience after a best round: 300 rounds up to 10,000 train rows, falling to 20 as
 * rows grow, and never less than 20 + 0.3 rounds for each one it took to get here.
 */
int ag_early_stop_patience(int64_t n_train, int best_round);

/*
 * Takes a round's value; true when it is the best so far: strictly better, and no NaN unless it is the first. Under the
 * adaptive rule it must be better than the last best by a millionth of the first round's value: on data without noise each round
 * is better than the one before by less and less, to the last bit.
 */
bool ag_early_stop_take(AgEarlyStop *stop, int round, double value);

/* True when round was the last worth waiting for. */
bool ag_early_stop_done(const AgEarlyStop *stop, int round);

/*
 * How far training is by a guess, in [0, 1]: as many rounds as there were are to come while each is the best so far, less the longer none was, and
 * then the patience; of `most` at most.
 */
double ag_early_stop_share(const AgEarlyStop *stop, int round, int most);

#endif
