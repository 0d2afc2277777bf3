/*
 * stages.h - what a model in training says of its validation rows, round by round, so that a round can be chosen later.
 */
#ifndef AG_STAGES_H
#define AG_STAGES_H

#include "engine/base/context.h"

#define AG_STAGE_POINTS 64

typedef struct AgStages
{
	int64_t n_cells; /* of one round */
	int n, most;     /* rounds kept; room */
	int stride;      /* rounds between them, but for the latest */
	int round[AG_STAGE_POINTS];
	float *values; /* [most][n_cells]; owned */
} AgStages;

/* Empties it, with room for as many rounds as fit into a modest amount of memory. */
AgStatus ag_stages_begin(const AgContext *ctx, int64_t n_cells, AgStages *stages);
void ag_stages_free(const AgContext *ctx, AgStages *stages);
/* Rounds ascend from 1. The latest is always there; of the others, when it gets full, every second goes. */
void ag_stages_add(AgStages *stages, int round, const double *values);
/* The predictions of the round that is nearest, the earlier one of two; NULL when there is none. */
const float *ag_stages_near(const AgStages *stages, int round);

#endif
