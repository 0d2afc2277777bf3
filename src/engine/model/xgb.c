/*
 * xgb.c - the XGB family: XGBoost's names and aliases of parameters, and what it fixes.
 */
#include "engine/model/xgb.h"

#include <stddef.h>

#define AT(field) offsetof(AgBoostParams, field)
#define REAL_MAX 1e300
#define AG_XGB_OBJECTIVES 12
#define POISSON_STEP 0.7 /* where max_delta_step says nothing */

/* In the order of the words. */
static const AgLossKind losses[AG_XGB_OBJECTIVES] = {
	AG_LOSS_AUTO,         AG_LOSS_SQUARED,  AG_LOSS_SQUARED, AG_LOSS_ABSOLUTE,
	AG_LOSS_PSEUDO_HUBER, AG_LOSS_QUANTILE, AG_LOSS_POISSON, AG_LOSS_GAMMA,
	AG_LOSS_TWEEDIE,      AG_LOSS_LOGISTIC, AG_LOSS_SOFTMAX, AG_LOSS_SOFTMAX,
};

/* Defaults are AutoGluon's for the family: rounds until early stopping, and categories one level at a time. */
const AgParamSpec ag_xgb_specs[] = {
	{"n_estimators", "num_boost_round", AG_PARAM_INT, 1, 1000000, 10000, NULL,
	 "most rounds of boosting", AT(num_boost_round)},
	{"learning_rate", "eta", AG_PARAM_REAL, 1e-6, 10, 0.1, NULL, "factor on each tree's values",
	 AT(learning_rate)},
	{"objective", NULL, AG_PARAM_CHOICE, 0, AG_XGB_OBJECTIVES - 1, 0,
	 "auto reg:squarederror reg:linear reg:absoluteerror reg:pseudohubererror reg:quantileerror "
	 "count:poisson reg:gamma reg:tweedie binary:logistic multi:softprob multi:softmax",
	 "what is minimised; auto goes by problem type and metric", AT(objective)},
	{"quantile_alpha", NULL, AG_PARAM_REAL, 1e-9, 1 - 1e-9, 0.5, NULL,
	 "level of objective reg:quantileerror", AT(loss_alpha)},
	{"huber_slope", NULL, AG_PARAM_REAL, 1e-9, REAL_MAX, 1, NULL,
	 "size from which errors count linearly in objective reg:pseudohubererror", AT(loss_delta)},
	{"tweedie_variance_power", NULL, AG_PARAM_REAL, 1, 1.999, 1.5, NULL,
	 "power of the mean that the variance grows with in objective reg:tweedie", AT(loss_power)},
	{"max_depth", NULL, AG_PARAM_INT, 0, 100000, 6, NULL, "most splits on a path, 0 for no limit",
	 AT(max_depth)},
	{"max_leaves", NULL, AG_PARAM_INT, 0, 131072, 0, NULL, "most leaves of a tree, 0 for no limit",
	 AT(num_leaves)},
	{"grow_policy", NULL, AG_PARAM_CHOICE, 0, 1, 0, "depthwise lossguide",
	 "split level by level, or the leaf with the greatest gain first", AT(grow_order)},
	{"min_child_weight", NULL, AG_PARAM_REAL, 0, REAL_MAX, 1, NULL,
	 "least sum of hessians in a leaf", AT(min_sum_hessian_in_leaf)},
	{"gamma", "min_split_loss", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "least gain that a split must bring", AT(min_gain_to_split)},
	{"reg_lambda", "lambda", AG_PARAM_REAL, 0, REAL_MAX, 1, NULL, "L2 penalty on leaf values",
	 AT(lambda_l2)},
	{"reg_alpha", "alpha", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL, "L1 penalty on leaf values",
	 AT(lambda_l1)},
	{"max_delta_step", NULL, AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "bound on leaf values before the learning rate, 0 for none", AT(max_delta_step)},
	{"subsample", NULL, AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the rows that the trees of a round are grown on", AT(bagging_fraction)},
	{"colsample_bytree", NULL, AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the features that a tree may use", AT(feature_fraction)},
	{"colsample_bylevel", NULL, AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the tree's features that a level may use", AT(feature_fraction_bylevel)},
	{"colsample_bynode", NULL, AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the level's features that a node may use", AT(feature_fraction_bynode)},
	{"max_bin", NULL, AG_PARAM_INT, 3, 255, 255, NULL,
	 "most bins of a feature, the one for missing values included", AT(max_bin)},
	{"enable_categorical", NULL, AG_PARAM_BOOL, 0, 1, 0, NULL,
	 "split categories into groups; otherwise one of them from the rest", AT(splits_categories)},
	{"max_cat_to_onehot", NULL, AG_PARAM_INT, 1, 254, 4, NULL,
	 "up to this many categories each one is split from the rest even so", AT(max_cat_to_onehot)},
	{"max_cat_threshold", NULL, AG_PARAM_INT, 1, 254, 64, NULL,
	 "most categories on the smaller side of a split", AT(max_cat_threshold)},
	{"scale_pos_weight", NULL, AG_PARAM_REAL, 1e-6, 1e6, 1, NULL,
	 "factor on the weights of the second of two classes' rows", AT(scale_pos_weight)},
};

const int ag_xgb_n_specs = (int) (sizeof ag_xgb_specs / sizeof ag_xgb_specs[0]);

/* Its hessian of many classes is twice the diagonal; it sorts categories by the values their leaves would get. */
void
ag_xgb_complete(AgBoostParams *params)
{
	params->family = "XGB";
	params->min_data_in_bin = 3;
	params->bagging_freq = 1;
	params->loss = losses[params->objective];
	if (params->loss == AG_LOSS_POISSON)
	{
		if (!(params->max_delta_step > 0.0))
			params->max_delta_step = POISSON_STEP;
		params->loss_step = params->max_delta_step;
	}
	params->min_data_per_group = 1;
	params->sorts_by_value = true;
	params->multiclass_hessian = 2.0;
}

AgStatus
ag_xgb_check(const void *params, AgError *err)
{
	static const AgLossUse uses[] = {
		{"quantile_alpha", AG_LOSS_QUANTILE, AG_LOSS_QUANTILE, "\"reg:quantileerror\""},
		{"huber_slope", AG_LOSS_PSEUDO_HUBER, AG_LOSS_PSEUDO_HUBER, "\"reg:pseudohubererror\""},
		{"tweedie_variance_power", AG_LOSS_TWEEDIE, AG_LOSS_TWEEDIE, "\"reg:tweedie\""},
	};
	AgBoostParams own = *(const AgBoostParams *) params;

	own.loss = losses[own.objective];
	return ag_boost_check_loss("XGB", ag_xgb_specs, ag_xgb_n_specs, &own, uses,
							   (int) (sizeof uses / sizeof uses[0]), err);
}
