/*
 * boost_valid.h - the rows that steer a booster's early stopping: their predictions round by round, and those of the best round.
 */
#ifndef AG_BOOST_VALID_H
#define AG_BOOST_VALID_H

#include "engine/model/boost_gpu.h"
#include "engine/model/objective.h"

/* All zero: there are none. */
typedef struct AgValid
{
	const AgTrainData *data;
	AgTrees shape; /* link and outputs, for ag_trees_link */
	AgCpuLevel level;
	int64_t n_rows;
	int n_outputs, n_out;
	double *target;    /* [n_rows] */
	int32_t *class_of; /* [n_rows] */
	double *weight;    /* [n_rows] in the metric; NULL: all alike */
	double *scores;    /* [n_rows][n_outputs] */
	double *proba;     /* [n_rows][n_out] */
	double *best;      /* [n_rows][n_out] of the best round */
} AgValid;

/* With the loss's first scores; may be freed whatever this returns. */
AgStatus ag_valid_create(const AgContext *ctx, const AgTrainData *data, const AgLoss *loss,
						 int n_out, AgValid *valid);
void ag_valid_free(const AgContext *ctx, AgValid *valid);

/*
 * The value of data->stop_metric at the scores as they are: of gpu's, where it has a booster; there, too, where the device can watch
 * it, and then scores and predictions stay as they were here.
 */
AgStatus ag_valid_evaluate(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu, double *value);
/* What was evaluated last is the best so far. */
AgStatus ag_valid_keep(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu);
/* Once all rounds are over, with one kept at least: valid->best has the best one's predictions. */
AgStatus ag_valid_finish(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu);

#endif
