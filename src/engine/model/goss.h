/*
 * goss.h - one-side sampling by gradients: all rows of large gradients, and a few of the others, which then count for
 * more.
 */
#ifndef AG_GOSS_H
#define AG_GOSS_H

#include "engine/base/context.h"
#include "engine/model/objective.h"

/* Does the parameters' family sample so, and does it in this round? The first 1 / learning_rate rounds see all rows. */
bool ag_goss_is_used(const AgBoostParams *params);
bool ag_goss_is_due(const AgBoostParams *params, int round);

/*
 * Draws rows for a tree from the gradients of the loss. Those drawn of the others are scaled there, as their share
 * demands, and *range becomes that of the rows drawn. bag and rest have room for all train rows, get those in and those
 * out, ascending, and *n_bag is at least 1.
 */
AgStatus ag_goss_draw(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
					  uint64_t key, AgGradientRange *range, uint32_t *bag, uint32_t *rest,
					  int64_t *n_bag);

#endif
