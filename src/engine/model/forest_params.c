/*
 * forest_params.c - the hyperparameters of RF and XT: scikit-learn's names.
 */
#include <stddef.h>

#include "engine/model/forest.h"

#define AT(field) offsetof(AgForestParams, field)
#define REAL_MAX 1e300
#define CRITERIA "auto gini entropy log_loss squared_error friedman_mse"

/* The two families differ in one default only. */
#define SPECS(bootstraps)                                                                          \
	{                                                                                              \
		{"n_estimators",  NULL, AG_PARAM_INT, 1, 100000, 300, NULL, "number of trees",             \
		 AT(n_estimators)},                                                                        \
			{"criterion",                                                                          \
			 NULL,                                                                                 \
			 AG_PARAM_CHOICE,                                                                      \
			 0,                                                                                    \
			 5,                                                                                    \
			 AG_CRITERION_AUTO,                                                                    \
			 CRITERIA,                                                                             \
			 "impurity that splits lower",                                                         \
			 AT(criterion)},                                                                       \
			{"max_features",                                                                       \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 1e-9,                                                                                 \
			 1e9,                                                                                  \
			 AG_FEATURES_AUTO,                                                                     \
			 "auto sqrt log2 all",                                                                 \
			 "features that a node tries: up to 1 a share of them, above 1 their number",          \
			 AT(max_features)},                                                                    \
			{"max_leaf_nodes",  NULL,  AG_PARAM_INT, 0,                                            \
			 1000000000,        15000, NULL,         "most leaves of a tree, 0 for no limit",      \
			 AT(max_leaf_nodes)},                                                                  \
			{"max_depth",  NULL, AG_PARAM_INT, -1,                                                 \
			 100000,       -1,   NULL,         "most splits on a path, -1 or 0 for no limit",      \
			 AT(max_depth)},                                                                       \
			{"min_samples_split",                                                                  \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 1e-9,                                                                                 \
			 1e9,                                                                                  \
			 2,                                                                                    \
			 NULL,                                                                                 \
			 "fewest rows of a node that is split, below 1 as a share",                            \
			 AT(min_samples_split)},                                                               \
			{"min_samples_leaf",                                                                   \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 1e-9,                                                                                 \
			 1e9,                                                                                  \
			 1,                                                                                    \
			 NULL,                                                                                 \
			 "fewest rows in a leaf, below 1 as a share",                                          \
			 AT(min_samples_leaf)},                                                                \
			{"min_weight_fraction_leaf",                                                           \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 0,                                                                                    \
			 0.5,                                                                                  \
			 0,                                                                                    \
			 NULL,                                                                                 \
			 "least share of the weights in a leaf",                                               \
			 AT(min_weight_fraction_leaf)},                                                        \
			{"min_impurity_decrease",                                                              \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 0,                                                                                    \
			 REAL_MAX,                                                                             \
			 0,                                                                                    \
			 NULL,                                                                                 \
			 "least decrease of the mean impurity that a split must bring",                        \
			 AT(min_impurity_decrease)},                                                           \
			{"bootstrap",                                                                          \
			 NULL,                                                                                 \
			 AG_PARAM_BOOL,                                                                        \
			 0,                                                                                    \
			 1,                                                                                    \
			 bootstraps,                                                                           \
			 NULL,                                                                                 \
			 "draw each tree's rows with replacement",                                             \
			 AT(bootstrap)},                                                                       \
			{"class_weight",                                                                       \
			 NULL,                                                                                 \
			 AG_PARAM_CHOICE,                                                                      \
			 0,                                                                                    \
			 2,                                                                                    \
			 AG_CLASS_WEIGHT_NONE,                                                                 \
			 "none balanced balanced_subsample",                                                   \
			 "balanced gives all classes the same weight, balanced_subsample does so for the "     \
			 "rows of each tree",                                                                  \
			 AT(class_weight)},                                                                    \
			{"max_samples",                                                                        \
			 NULL,                                                                                 \
			 AG_PARAM_REAL,                                                                        \
			 1e-9,                                                                                 \
			 1e9,                                                                                  \
			 1,                                                                                    \
			 NULL,                                                                                 \
			 "rows that a bootstrap draws: up to 1 a share of them, above 1 their number",         \
			 AT(max_samples)},                                                                     \
	}

const AgParamSpec ag_rf_specs[] = SPECS(1);
const int ag_rf_n_specs = (int) (sizeof ag_rf_specs / sizeof ag_rf_specs[0]);

const AgParamSpec ag_xt_specs[] = SPECS(0);
const int ag_xt_n_specs = (int) (sizeof ag_xt_specs / sizeof ag_xt_specs[0]);
