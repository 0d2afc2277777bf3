/*
 * gbm.h - the GBM family: boosted trees grown leaf by leaf, with LightGBM's parameters.
 */
#ifndef AG_GBM_H
#define AG_GBM_H

#include "engine/model/boost.h"

/* They describe an AgBoostParams. */
extern const AgParamSpec ag_gbm_specs[];
extern const int ag_gbm_n_specs;

/* What the family fixes: after its parameters are set. */
void ag_gbm_complete(AgBoostParams *params);

/* What its parameters must agree on among themselves; AG_ERR_OPTION. */
AgStatus ag_gbm_check(const void *params, AgError *err);

#endif
