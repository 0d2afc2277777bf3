/*
 * family.c - the table of the model families.
 */
#include "engine/model/family.h"

#include <string.h>

#include "engine/model/cat.h"
#include "engine/model/forest.h"
#include "engine/model/gbm.h"
#include "engine/model/knn.h"
#include "engine/model/linear.h"
#include "engine/model/net.h"
#include "engine/model/xgb.h"

/* Why a family can't predict quantiles. */
#define FEW_NEIGHBOURS "a few neighbours say little about quantiles"
#define LEAVES_OF_MEANS "its leaves keep means, not distributions"

static const AgFamily families[AG_FAMILY_LAST] = {
	[AG_FAMILY_GBM] = {AG_FAMILY_GBM, "GBM", "gradient-boosted trees, grown leaf by leaf",
					   ag_gbm_specs, &ag_gbm_n_specs, sizeof(AgBoostParams), true, true,
					   .keeps_monotone = true, .check = ag_gbm_check},
	[AG_FAMILY_LR] = {AG_FAMILY_LR, "LR", "linear and logistic regression", ag_linear_specs,
					  &ag_linear_n_specs, sizeof(AgLinearParams), false, true,
					  .keeps_monotone = false},
	[AG_FAMILY_KNN] = {AG_FAMILY_KNN, "KNN", "nearest neighbours", ag_knn_specs, &ag_knn_n_specs,
					   sizeof(AgKnnParams), false, true, .no_quantiles = FEW_NEIGHBOURS},
	[AG_FAMILY_RF] = {AG_FAMILY_RF, "RF", "random forest", ag_rf_specs, &ag_rf_n_specs,
					  sizeof(AgForestParams), false, true, .no_quantiles = LEAVES_OF_MEANS},
	[AG_FAMILY_XT] = {AG_FAMILY_XT, "XT", "extremely randomised trees", ag_xt_specs, &ag_xt_n_specs,
					  sizeof(AgForestParams), false, true, .no_quantiles = LEAVES_OF_MEANS},
	[AG_FAMILY_NN_TORCH] = {AG_FAMILY_NN_TORCH, "NN_TORCH", "neural net with embeddings",
							ag_nn_specs, &ag_nn_n_specs, sizeof(AgNetParams), false, true,
							.has_half = true, .keeps_monotone = false,
							.patience = "epochs_wo_improve"},
	[AG_FAMILY_FASTAI] = {AG_FAMILY_FASTAI, "FASTAI",
						  "neural net with batch normalisation, on a one-cycle schedule",
						  ag_fastai_specs, &ag_fastai_n_specs, sizeof(AgNetParams), false, true,
						  .has_half = true, .keeps_monotone = false,
						  .patience = "early.stopping.patience"},
	[AG_FAMILY_REALMLP] = {AG_FAMILY_REALMLP, "REALMLP", "neural net with waves of the numbers",
						   ag_realmlp_specs, &ag_realmlp_n_specs, sizeof(AgNetParams), false, true,
						   .has_half = true, .keeps_monotone = false,
						   .patience = "early_stopping_patience"},
	[AG_FAMILY_XGB] = {AG_FAMILY_XGB, "XGB", "gradient-boosted trees, grown level by level",
					   ag_xgb_specs, &ag_xgb_n_specs, sizeof(AgBoostParams), true, true,
					   .keeps_monotone = true, .check = ag_xgb_check},
	[AG_FAMILY_CAT] = {AG_FAMILY_CAT, "CAT",
					   "gradient-boosted oblivious trees on target statistics", ag_cat_specs,
					   &ag_cat_n_specs, sizeof(AgBoostParams), true, true, .check = ag_cat_check},
	[AG_FAMILY_TABM] = {AG_FAMILY_TABM, "TABM",
						"several neural nets in one, which share their layers", ag_tabm_specs,
						&ag_tabm_n_specs, sizeof(AgNetParams), false, true, .has_half = true,
						.keeps_monotone = false, .patience = "patience"},
};

const AgFamily *
ag_family(AgFamilyId id)
{
	return &families[id];
}

const AgFamily *
ag_family_find(const char *key)
{
	for (int i = 0; i < AG_FAMILY_LAST; i++)
		if (strcmp(families[i].key, key) == 0)
			return &families[i];
	return NULL;
}
