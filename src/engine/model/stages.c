/*
 * stages.c - what a model in training says of its validation rows, round by round.
 */
#include "engine/model/stages.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (INT64_C(8) << 20)
#define LEAST_POINTS 8

AgStatus
ag_stages_begin(const AgContext *ctx, int64_t n_cells, AgStages *stages)
{
	int64_t most = MOST_BYTES / (4 * (n_cells > 0 ? n_cells : 1));

	memset(stages, 0, sizeof *stages);
	stages->n_cells = n_cells;
	stages->stride = 1;
	stages->most = most > AG_STAGE_POINTS ? AG_STAGE_POINTS
				   : most < LEAST_POINTS  ? LEAST_POINTS
										  : (int) most;
	return ag_get(ctx, (size_t) n_cells, (size_t) stages->most * sizeof(float), &stages->values);
}

void
ag_stages_free(const AgContext *ctx, AgStages *stages)
{
	ag_mem_free(ctx->mem, stages->values);
	stages->values = NULL;
	stages->n = 0;
}

static bool
stays(const AgStages *stages, int round)
{
	return round == 1 || round % stages->stride == 0;
}

static void
thin(AgStages *stages)
{
	int n = 0;

	while (n == 0 || n > stages->most - 1)
	{
		stages->stride *= 2;
		n = 0;
		for (int i = 0; i < stages->n; i++)
			if (stays(stages, stages->round[i]))
			{
				stages->round[n] = stages->round[i];
				memmove(stages->values + n * stages->n_cells, stages->values + i * stages->n_cells,
						(size_t) stages->n_cells * sizeof(float));
				n++;
			}
		stages->n = n;
	}
}

void
ag_stages_add(AgStages *stages, int round, const double *values)
{
	float *to;

	/* the latest stands behind those that stay, until the next one comes */
	if (stages->n > 0 && !stays(stages, stages->round[stages->n - 1]))
		stages->n--;
	if (stages->n == stages->most)
		thin(stages);
	to = stages->values + stages->n * stages->n_cells;
	for (int64_t i = 0; i < stages->n_cells; i++)
		to[i] = (float) values[i];
	stages->round[stages->n++] = round;
}

const float *
ag_stages_near(const AgStages *stages, int round)
{
	int best = -1;

	for (int i = 0; i < stages->n; i++)
		if (best < 0 || abs(stages->round[i] - round) < abs(stages->round[best] - round))
			best = i;
	return best < 0 ? NULL : stages->values + best * stages->n_cells;
}
