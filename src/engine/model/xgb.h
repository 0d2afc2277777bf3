/*
 * xgb.h - the XGB family: boosted trees grown level by level, with XGBoost's parameters.
 */
#ifndef AG_XGB_H
#define AG_XGB_H

#include "engine/model/boost.h"

/* They describe an AgBoostParams. */
extern const AgParamSpec ag_xgb_specs[];
extern const int ag_xgb_n_specs;

/* What the family fixes: after its parameters are set. */
void ag_xgb_complete(AgBoostParams *params);

/* What its parameters must agree on among themselves; AG_ERR_OPTION. */
AgStatus ag_xgb_check(const void *params, AgError *err);

#endif
