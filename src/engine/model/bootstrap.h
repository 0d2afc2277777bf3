/*
 * bootstrap.h - drawn weights of rows, for the structure of a tree.
 *
 * Only the search for splits sees them; leaf values are taken from all rows. Draws depend on (key, row) alone.
 */
#ifndef AG_BOOTSTRAP_H
#define AG_BOOTSTRAP_H

#include "engine/base/context.h"
#include "engine/model/bootstrap_maths.h"
#include "engine/model/objective.h"

typedef struct AgBootstrap
{
	AgBootstrapKind kind; /* not AUTO */
	double temperature;
	double share;
	AgGradient
		*drawn; /* [n_rows of the binned matrix] gradient and weight, times the draw's weight */
	struct AgBootstrapPart *parts; /* [n_parts] */
	int64_t n_parts;
	double size_g; /* root of the mean squared gradient, without draws */
} AgBootstrap;

/* Kind and shares, without room for draws: what a device needs to know. */
void ag_bootstrap_init(const AgTrainData *data, const AgBoostParams *params,
					   AgBootstrap *bootstrap);
/* May be freed whatever this returns; all zero is allowed. */
AgStatus ag_bootstrap_create(const AgContext *ctx, const AgTrainData *data,
							 const AgBoostParams *params, AgBootstrap *bootstrap);
void ag_bootstrap_free(const AgContext *ctx, AgBootstrap *bootstrap);

/* Fills `drawn` and size_g from the loss's gradients; *range is that of what was drawn. */
AgStatus ag_bootstrap_draw(const AgContext *ctx, AgBootstrap *bootstrap, const AgLoss *loss,
						   uint64_t key, AgGradientRange *range);

#endif
