/*
 * gbm.c - the GBM family: LightGBM's names and aliases of parameters, and what it fixes.
 */
#include <stddef.h>

#include "engine/model/gbm.h"

#define AT(field) offsetof(AgBoostParams, field)
#define REAL_MAX 1e300
#define AG_GBM_OBJECTIVES 23

/* In the order of the words. */
static const AgLossKind losses[AG_GBM_OBJECTIVES] = {
	AG_LOSS_AUTO,     AG_LOSS_SQUARED,  AG_LOSS_SQUARED,    AG_LOSS_SQUARED,    AG_LOSS_SQUARED,
	AG_LOSS_SQUARED,  AG_LOSS_SQUARED,  AG_LOSS_SQUARED,    AG_LOSS_SQUARED,    AG_LOSS_ABSOLUTE,
	AG_LOSS_ABSOLUTE, AG_LOSS_ABSOLUTE, AG_LOSS_ABSOLUTE,   AG_LOSS_HUBER,      AG_LOSS_FAIR,
	AG_LOSS_POISSON,  AG_LOSS_QUANTILE, AG_LOSS_PERCENTAGE, AG_LOSS_PERCENTAGE, AG_LOSS_GAMMA,
	AG_LOSS_TWEEDIE,  AG_LOSS_LOGISTIC, AG_LOSS_SOFTMAX,
};

const AgParamSpec ag_gbm_specs[] = {
	{"num_boost_round",
	 "num_iterations num_iteration n_iter num_tree num_trees num_round num_rounds nrounds "
	 "n_estimators max_iter",
	 AG_PARAM_INT, 1, 1000000, 10000, NULL, "most rounds of boosting", AT(num_boost_round)},
	{"learning_rate", "shrinkage_rate eta", AG_PARAM_REAL, 1e-6, 10, 0.05, NULL,
	 "factor on each tree's values", AT(learning_rate)},
	{"objective", "objective_type app application loss", AG_PARAM_CHOICE, 0, AG_GBM_OBJECTIVES - 1,
	 0,
	 "auto regression l2 regression_l2 mse mean_squared_error rmse root_mean_squared_error l2_root "
	 "regression_l1 l1 mae mean_absolute_error huber fair poisson quantile mape "
	 "mean_absolute_percentage_error gamma tweedie binary multiclass softmax",
	 "what is minimised; auto goes by problem type and metric", AT(objective)},
	{"alpha", NULL, AG_PARAM_REAL, 1e-9, REAL_MAX, 0.9, NULL,
	 "level of objective quantile, below 1; where errors count linearly in objective huber",
	 AT(loss_alpha)},
	{"fair_c", NULL, AG_PARAM_REAL, 1e-9, REAL_MAX, 1, NULL,
	 "size from which errors count linearly in objective fair", AT(loss_delta)},
	{"poisson_max_delta_step", NULL, AG_PARAM_REAL, 0, 50, 0.7, NULL,
	 "how careful the steps of objective poisson are", AT(loss_step)},
	{"tweedie_variance_power", NULL, AG_PARAM_REAL, 1, 1.999, 1.5, NULL,
	 "power of the mean that the variance grows with in objective tweedie", AT(loss_power)},
	{"num_leaves", "num_leaf max_leaves max_leaf max_leaf_nodes", AG_PARAM_INT, 2, 131072, 31, NULL,
	 "most leaves of a tree", AT(num_leaves)},
	{"max_depth", NULL, AG_PARAM_INT, -1, 100000, -1, NULL,
	 "most splits on a path, -1 or 0 for no limit", AT(max_depth)},
	{"min_data_in_leaf", "min_data_per_leaf min_data min_child_samples min_samples_leaf",
	 AG_PARAM_INT, 0, 1000000000, 20, NULL, "fewest rows in a leaf, counted exactly",
	 AT(min_data_in_leaf)},
	{"min_sum_hessian_in_leaf",
	 "min_sum_hessian_per_leaf min_sum_hessian min_hessian min_child_weight", AG_PARAM_REAL, 0,
	 REAL_MAX, 1e-3, NULL, "least sum of hessians in a leaf", AT(min_sum_hessian_in_leaf)},
	{"lambda_l1", "reg_alpha l1_regularization", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "L1 penalty on leaf values", AT(lambda_l1)},
	{"lambda_l2", "reg_lambda lambda l2_regularization", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "L2 penalty on leaf values", AT(lambda_l2)},
	{"min_gain_to_split", "min_split_gain", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "least gain that a split must bring", AT(min_gain_to_split)},
	{"max_delta_step", "max_tree_output max_leaf_output", AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "bound on leaf values before the learning rate, 0 for none", AT(max_delta_step)},
	{"feature_fraction", "sub_feature colsample_bytree", AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the features that a tree may use", AT(feature_fraction)},
	{"feature_fraction_bynode", "sub_feature_bynode colsample_bynode", AG_PARAM_REAL, 1e-6, 1, 1,
	 NULL, "share of the tree's features that a node may use", AT(feature_fraction_bynode)},
	{"bagging_fraction", "sub_row subsample bagging", AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the rows that trees are grown on; needs bagging_freq", AT(bagging_fraction)},
	{"bagging_freq", "subsample_freq", AG_PARAM_INT, 0, 1000000, 0, NULL,
	 "rounds between new draws of rows, 0 for no bagging", AT(bagging_freq)},
	{"boosting", "boosting_type boost", AG_PARAM_CHOICE, 0, 1, 0, "gbdt goss",
	 "goss is gbdt with data_sample_strategy goss", AT(boosting)},
	{"data_sample_strategy", NULL, AG_PARAM_CHOICE, 0, 1, 0, "bagging goss",
	 "how rows are drawn: by bagging_fraction, or, from round 1 / learning_rate on, those of large "
	 "gradients and some of the others",
	 AT(sample_strategy)},
	{"top_rate", NULL, AG_PARAM_REAL, 1e-6, 1, 0.2, NULL,
	 "share of rows, those of the largest gradients, that goss keeps", AT(top_rate)},
	{"other_rate", NULL, AG_PARAM_REAL, 1e-6, 1, 0.1, NULL,
	 "share of rows that goss draws from the others", AT(other_rate)},
	{"extra_trees", "extra_tree", AG_PARAM_BOOL, 0, 1, 0, NULL,
	 "try one random cut of each feature in a node", AT(extra_trees)},
	{"path_smooth", NULL, AG_PARAM_REAL, 0, REAL_MAX, 0, NULL,
	 "rows by which a leaf's value is pulled towards its parent's", AT(path_smooth)},
	{"max_bin", "max_bins", AG_PARAM_INT, 3, 255, 255, NULL,
	 "most bins of a feature, the one for missing values included", AT(max_bin)},
	{"min_data_in_bin", NULL, AG_PARAM_INT, 1, 1000000000, 3, NULL, "fewest rows in a bin",
	 AT(min_data_in_bin)},
	{"cat_smooth", NULL, AG_PARAM_REAL, 0, REAL_MAX, 10, NULL,
	 "rows by which small categories are drawn to the middle of the order", AT(cat_smooth)},
	{"cat_l2", NULL, AG_PARAM_REAL, 0, REAL_MAX, 10, NULL,
	 "further L2 penalty where sorted categories are split", AT(cat_l2)},
	{"max_cat_threshold", NULL, AG_PARAM_INT, 1, 254, 32, NULL,
	 "most categories on the smaller side of a split", AT(max_cat_threshold)},
	{"max_cat_to_onehot", NULL, AG_PARAM_INT, 1, 254, 4, NULL,
	 "up to this many categories each one is split from the rest", AT(max_cat_to_onehot)},
	{"min_data_per_group", NULL, AG_PARAM_INT, 0, 1000000000, 0, NULL,
	 "fewest rows in a group of categories; 0 takes 100, or 1 in 50 where there are fewer than "
	 "5000 rows",
	 AT(min_data_per_group)},
};

const int ag_gbm_n_specs = (int) (sizeof ag_gbm_specs / sizeof ag_gbm_specs[0]);

void
ag_gbm_complete(AgBoostParams *params)
{
	params->family = "GBM";
	params->grow_order = AG_GROW_LOSSGUIDE;
	params->loss = losses[params->objective];
	if (params->loss == AG_LOSS_HUBER)
		params->loss_delta = params->loss_alpha;
	params->samples_by_gradient = params->boosting == 1 || params->sample_strategy == 1;
	params->feature_fraction_bylevel = 1.0;
	params->splits_categories = true;
	params->scale_pos_weight = 1.0;
}

/* Parameters of one way to draw rows are refused with the other. */
static AgStatus
check_sampling(const AgBoostParams *params, AgError *err)
{
	bool is_goss = params->boosting == 1 || params->sample_strategy == 1;
	bool has_bags = params->bagging_freq > 0 && params->bagging_fraction < 1.0;
	bool has_rates = params->top_rate != 0.2 || params->other_rate != 0.1;

	if (is_goss && has_bags)
		return ag_error_set(err, AG_ERR_OPTION,
							"parameter \"bagging_freq\" of family GBM cannot be used with "
							"\"data_sample_strategy\" \"goss\"");
	if (!is_goss && has_rates)
		return ag_error_set(
			err, AG_ERR_OPTION,
			"parameter \"%s\" of family GBM needs \"data_sample_strategy\" \"goss\"",
			params->top_rate != 0.2 ? "top_rate" : "other_rate");
	if (params->top_rate + params->other_rate > 1.0)
		return ag_error_set(err, AG_ERR_OPTION,
							"parameters \"top_rate\" and \"other_rate\" of family GBM add up to "
							"more than 1");
	return AG_OK;
}

AgStatus
ag_gbm_check(const void *params, AgError *err)
{
	static const AgLossUse uses[] = {
		{"alpha", AG_LOSS_HUBER, AG_LOSS_QUANTILE, "\"huber\" or \"quantile\""},
		{"fair_c", AG_LOSS_FAIR, AG_LOSS_FAIR, "\"fair\""},
		{"poisson_max_delta_step", AG_LOSS_POISSON, AG_LOSS_POISSON, "\"poisson\""},
		{"tweedie_variance_power", AG_LOSS_TWEEDIE, AG_LOSS_TWEEDIE, "\"tweedie\""},
	};
	AgBoostParams own = *(const AgBoostParams *) params;

	AG_TRY(check_sampling(&own, err));
	own.loss = losses[own.objective];
	if (own.loss == AG_LOSS_QUANTILE && !(own.loss_alpha < 1.0))
		return ag_error_set(err, AG_ERR_OPTION,
							"parameter \"alpha\" of family GBM takes a number below 1 with "
							"\"objective\" \"quantile\", not %.10g",
							own.loss_alpha);
	return ag_boost_check_loss("GBM", ag_gbm_specs, ag_gbm_n_specs, &own, uses,
							   (int) (sizeof uses / sizeof uses[0]), err);
}
