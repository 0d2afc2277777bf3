/*
 * cat.h - the CAT family: boosted oblivious trees and ordered target statistics, with CatBoost's parameters.
 */
#ifndef AG_CAT_H
#define AG_CAT_H

#include "engine/model/boost.h"

/* They describe an AgBoostParams. */
extern const AgParamSpec ag_cat_specs[];
extern const int ag_cat_n_specs;

/*
 * Makes the statistics of categories, and trains: ag_boost_train. data's bins have the table's features; codes:
 * ag_target_stats_create. Parameters that don't fit each other are AG_ERR_OPTION.
 */
AgStatus ag_cat_train(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
					  const AgBoostParams *params, AgBoostResult *result);

/* Upper estimate of the memory that training takes beyond bins, in bytes. */
int64_t ag_cat_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads);

/* What its parameters must agree on among themselves; AG_ERR_OPTION. */
AgStatus ag_cat_check(const void *params, AgError *err);

#endif
