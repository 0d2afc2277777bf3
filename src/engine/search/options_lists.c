/*
 * options_lists.c - lists of models by name: what "hyperparameters": "default" stands for.
 */
#include "engine/search/options_lists.h"

#include <string.h>

/*
 * Each list stands in the order in which it is fitted: what a short time limit leaves comes first. The order is a search's over ensembles of
 * what was fitted once on development tables (test/bench/portfolio.py; test/bench/RESULTS.md has what came of it).
 */
#define GBM_RANDOM                                                                                 \
	"extra_trees=true learning_rate=0.03 num_leaves=16 feature_fraction=0.6 bagging_fraction=0.8 " \
	"bagging_freq=1"
#define GBM_SMALL "learning_rate=0.05 num_leaves=8 feature_fraction=0.8 lambda_l2=1"
#define NN_NORMED                                                                                  \
	"activation=elu dropout_prob=0.25 hidden_size=192 learning_rate=0.006 use_batchnorm=true"
#define GBM_LARGE "learning_rate=0.03 num_leaves=96 feature_fraction=0.7 min_data_in_leaf=3"
/* Of combinations of categories pairs are worth their time, more are not. */
#define CAT_PAIRS "max_ctr_complexity=2"

static const AgListModel default_list[] = {
	{AG_FAMILY_GBM, ""},
	{AG_FAMILY_LR, ""},
	{AG_FAMILY_GBM, GBM_SMALL},
	{AG_FAMILY_NN_TORCH, NN_NORMED},
	{AG_FAMILY_XT, AG_LIST_TUNED "max_features=0.75"},
	{AG_FAMILY_CAT, AG_LIST_TUNED CAT_PAIRS},
	{AG_FAMILY_GBM, GBM_LARGE},
	{AG_FAMILY_NN_TORCH, ""},
	{AG_FAMILY_FASTAI, ""},
	{AG_FAMILY_GBM, GBM_RANDOM},
	{AG_FAMILY_RF, ""},
	{AG_FAMILY_XGB, ""},
};

/* The same with forests that take little room. */
static const AgListModel light_list[] = {
	{AG_FAMILY_GBM, ""},
	{AG_FAMILY_LR, ""},
	{AG_FAMILY_GBM, GBM_SMALL},
	{AG_FAMILY_NN_TORCH, NN_NORMED},
	{AG_FAMILY_XT, AG_LIST_TUNED "max_features=0.75 max_depth=15"},
	{AG_FAMILY_CAT, AG_LIST_TUNED CAT_PAIRS},
	{AG_FAMILY_GBM, GBM_LARGE},
	{AG_FAMILY_NN_TORCH, ""},
	{AG_FAMILY_FASTAI, ""},
	{AG_FAMILY_GBM, GBM_RANDOM},
	{AG_FAMILY_RF, "max_depth=15"},
	{AG_FAMILY_XGB, ""},
};

/* And with none. */
static const AgListModel very_light_list[] = {
	{AG_FAMILY_GBM, ""},
	{AG_FAMILY_LR, ""},
	{AG_FAMILY_GBM, GBM_SMALL},
	{AG_FAMILY_NN_TORCH, NN_NORMED},
	{AG_FAMILY_CAT, AG_LIST_TUNED CAT_PAIRS},
	{AG_FAMILY_GBM, GBM_LARGE},
	{AG_FAMILY_NN_TORCH, ""},
	{AG_FAMILY_FASTAI, ""},
	{AG_FAMILY_GBM, GBM_RANDOM},
	{AG_FAMILY_XGB, ""},
};

/* To see that everything works. */
static const AgListModel toy_list[] = {
	{AG_FAMILY_GBM, "num_boost_round=10"}, {AG_FAMILY_LR, ""},
	{AG_FAMILY_NN_TORCH, "num_epochs=5"},  {AG_FAMILY_XGB, "n_estimators=10"},
	{AG_FAMILY_CAT, "iterations=10"},
};

/*
 * Many unlike models: of each family first what does well by itself, then what errs otherwise. Boosters with small steps and
 * rows and columns at random, forests of other shapes, nets with other seeds of shape. The first of them are zeroshot.
 */
static const AgListModel extreme_list[] = {
	{AG_FAMILY_GBM, ""},
	{AG_FAMILY_LR, ""},
	{AG_FAMILY_GBM, GBM_SMALL},
	{AG_FAMILY_NN_TORCH, NN_NORMED},
	{AG_FAMILY_XT, AG_LIST_TUNED "max_features=0.75"},
	{AG_FAMILY_CAT, AG_LIST_TUNED CAT_PAIRS},
	{AG_FAMILY_GBM, GBM_LARGE},
	{AG_FAMILY_NN_TORCH, ""},
	{AG_FAMILY_FASTAI, ""},
	{AG_FAMILY_GBM, GBM_RANDOM},
	{AG_FAMILY_REALMLP, ""},
	{AG_FAMILY_RF, ""},
	{AG_FAMILY_XGB, "max_depth=10 colsample_bytree=0.69 learning_rate=0.02 min_child_weight=0.6"},
	{AG_FAMILY_XT, ""},
	{AG_FAMILY_CAT, "grow_policy=Depthwise depth=8 learning_rate=0.03 l2_leaf_reg=3 " CAT_PAIRS},
	{AG_FAMILY_GBM,
	 "learning_rate=0.02 num_leaves=31 feature_fraction=0.5 bagging_fraction=0.7 bagging_freq=1 "
	 "lambda_l2=5"},
	{AG_FAMILY_LR, "C=0.1"},
	{AG_FAMILY_GBM, "extra_trees=true learning_rate=0.018 num_leaves=39 feature_fraction=0.46 "
					"bagging_fraction=0.88 bagging_freq=1 min_data_in_leaf=3 lambda_l2=0.36"},
	{AG_FAMILY_FASTAI, "layers=[400,200,100] bs=256 emb_drop=0.4 ps=0.2 lr=0.015 epochs=40"},
	{AG_FAMILY_XGB, "max_depth=4 subsample=0.8 colsample_bytree=0.8 learning_rate=0.05"},
	{AG_FAMILY_NN_TORCH, "learning_rate=0.001 hidden_size=256 num_layers=3 dropout_prob=0.2"},
	{AG_FAMILY_CAT, "depth=4 learning_rate=0.07 l2_leaf_reg=4 " CAT_PAIRS},
	{AG_FAMILY_RF, "max_features=0.75"},
	{AG_FAMILY_REALMLP, "activation=relu p_drop=0.05"},
	/* extreme only, from here on */
	{AG_FAMILY_GBM, "extra_trees=true"},
	{AG_FAMILY_CAT, ""},
	{AG_FAMILY_XGB, ""},
	{AG_FAMILY_GBM, "extra_trees=true learning_rate=0.05 num_leaves=64 min_data_in_leaf=5"},
	{AG_FAMILY_CAT, "depth=8 l2_leaf_reg=5"},
	{AG_FAMILY_REALMLP, "p_drop=0.3 wd=0.02"},
	{AG_FAMILY_GBM, "learning_rate=0.01 num_leaves=200 feature_fraction=0.6 min_data_in_leaf=10 "
					"bagging_fraction=0.8 bagging_freq=1"},
	{AG_FAMILY_XGB, "max_depth=7 colsample_bytree=0.9 learning_rate=0.09 min_child_weight=3"},
	{AG_FAMILY_XT, "max_features=1.0 min_samples_leaf=4"},
	{AG_FAMILY_LR, "penalty=L1"},
	{AG_FAMILY_NN_TORCH,
	 "activation=relu dropout_prob=0.05 hidden_size=128 num_layers=2 learning_rate=0.01 "
	 "weight_decay=0.0001"},
	{AG_FAMILY_GBM, "extra_trees=true learning_rate=0.04 num_leaves=16 min_data_in_leaf=33"},
	{AG_FAMILY_FASTAI, "layers=[800,400] bs=512 emb_drop=0.05 ps=0.3 lr=0.008 epochs=45"},
	{AG_FAMILY_RF, "max_features=0.75 min_samples_leaf=3"},
	{AG_FAMILY_XGB, "max_depth=9 subsample=0.7 colsample_bytree=0.5 learning_rate=0.015"},
	{AG_FAMILY_CAT, "depth=5 learning_rate=0.03 l2_leaf_reg=1 random_strength=2"},
	{AG_FAMILY_GBM, "extra_trees=true learning_rate=0.0187 num_leaves=5 feature_fraction=0.5 "
					"bagging_fraction=0.7 bagging_freq=1 min_data_in_leaf=5"},
	{AG_FAMILY_NN_TORCH, "activation=elu dropout_prob=0.12 hidden_size=213 learning_rate=0.00105"},
	{AG_FAMILY_XGB, "grow_policy=lossguide max_leaves=48 max_depth=0 learning_rate=0.03 "
					"colsample_bytree=0.6 subsample=0.8 reg_lambda=4"},
	{AG_FAMILY_REALMLP, "layers=[512,256,128] p_drop=0.2"},
	{AG_FAMILY_FASTAI, "layers=[800,400] bs=128 emb_drop=0.027 epochs=31 lr=0.08 ps=0.457"},
	{AG_FAMILY_CAT, "depth=7 learning_rate=0.06 l2_leaf_reg=2 " CAT_PAIRS},
	{AG_FAMILY_KNN, "weights=distance n_neighbors=15"},
	{AG_FAMILY_XT, "min_samples_leaf=2"},
};

#define N_ZEROSHOT 24

/* What can be read: a weighted sum, a sparse one, one small tree. */
static const AgListModel interpretable_list[] = {
	{AG_FAMILY_LR, ""},
	{AG_FAMILY_LR, "penalty=L1 C=0.1"},
	{AG_FAMILY_RF, "n_estimators=1 max_depth=4 bootstrap=false max_features=1.0"},
};

#define LIST(name, list)                                                                           \
	{                                                                                              \
		name, list, (int) (sizeof list / sizeof list[0])                                           \
	}

static const AgModelList lists[] = {
	LIST("default", default_list),
	LIST("light", light_list),
	LIST("very_light", very_light_list),
	LIST("toy", toy_list),
	{"zeroshot", extreme_list, N_ZEROSHOT},
	LIST("extreme", extreme_list),
	LIST("interpretable", interpretable_list),
	/* AutoGluon's that have no counterpart here */
	{"multimodal", NULL, 0},
	{"experimental", NULL, 0},
	{"zeroshot_2023", NULL, 0},
	{"zeroshot_2025_tabfm", NULL, 0},
	{"zeroshot_2025_12_18_gpu", NULL, 0},
	{"zeroshot_2025_12_18_cpu", NULL, 0},
	{"commercial_2026_08_05", NULL, 0},
	{"noncommercial_2026_08_05", NULL, 0},
};

const AgModelList *
ag_model_lists(int *n)
{
	*n = (int) (sizeof lists / sizeof lists[0]);
	return lists;
}

const AgModelList *
ag_model_list(const char *name)
{
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		if (strcmp(lists[i].name, name) == 0)
			return &lists[i];
	return NULL;
}
