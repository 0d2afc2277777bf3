/*
 * forest.h - random forests (RF) and extremely randomised trees (XT).
 *
 * Breiman 2001, "Random forests"; Geurts, Ernst, Wehenkel 2006, "Extremely randomized trees". Parameters and their
 * defaults are scikit-learn's, n_estimators and max_leaf_nodes AutoGluon's.
 *
 * All that decides a split is an integer sum, and random numbers are keyed by (seed, tree, node path, feature): the
 * same bytes at any thread count. Categories are cut like numbers, by an order of their levels that each tree has of its
 * own: by frequency in half of the trees, in the others by the mean target of the tree's rows (Wright and König 2019,
 * "Splitting on categorical predictors in random forests"), of more than two classes by a random half of
 * them. Missing values go where the split is best; where a node has none, to the heavier child.
 */
#ifndef AG_FOREST_H
#define AG_FOREST_H

#include "engine/model/boost.h"

typedef enum AgCriterion
{
	AG_CRITERION_AUTO = 0, /* gini for classes, squared_error for numbers */
	AG_CRITERION_GINI,
	AG_CRITERION_ENTROPY,
	AG_CRITERION_LOG_LOSS, /* the same as entropy */
	AG_CRITERION_SQUARED_ERROR,
	AG_CRITERION_FRIEDMAN_MSE /* ranks the cuts of a node as squared_error does */
} AgCriterion;

/* Rows weigh so much more that all classes weigh the same: by the training rows, or by those of each tree. */
typedef enum AgClassWeight
{
	AG_CLASS_WEIGHT_NONE = 0,
	AG_CLASS_WEIGHT_BALANCED,
	AG_CLASS_WEIGHT_SUBSAMPLE
} AgClassWeight;

/* max_features: a share up to 1, a number of features above it, or one of these words */
#define AG_FEATURES_AUTO (-1.0) /* sqrt for classes, all for numbers */
#define AG_FEATURES_SQRT (-2.0)
#define AG_FEATURES_LOG2 (-3.0)
#define AG_FEATURES_ALL (-4.0)

typedef struct AgForestParams
{
	int n_estimators; /* 300 */
	int criterion;    /* AgCriterion */
	double max_features;
	int max_leaf_nodes;       /* 15000; 0: no limit. The splits of most gain are kept */
	int max_depth;            /* -1 or 0: no limit */
	double min_samples_split; /* 2: rows, repeats of the bootstrap not counted; below 1: a share */
	double min_samples_leaf;  /* 1: likewise */
	double min_weight_fraction_leaf; /* 0 */
	double min_impurity_decrease;    /* 0 */
	bool bootstrap;                  /* RF true, XT false */
	int class_weight;                /* AgClassWeight; beside the rows' own weights */
	double max_samples; /* 1: a bootstrap's draws, as a share or a number of the rows */
	/* not user parameters */
	bool is_extra;       /* XT: one random cut a feature and node */
	bool wants_oob;      /* fill oob_proba when there is a bootstrap */
	int64_t model_bytes; /* most bytes of the model; 0: half of the memory that is left */
	uint64_t seed;
} AgForestParams;

extern const AgParamSpec ag_rf_specs[];
extern const int ag_rf_n_specs;
extern const AgParamSpec ag_xt_specs[];
extern const int ag_xt_n_specs;

/* The model is never cut to fewer trees than this for the sake of memory. */
#define AG_FOREST_LEAST_TREES 40

typedef struct AgForestResult
{
	AgTrees *trees;
	int n_asked, n_trees;
	bool stopped_by_time;
	bool stopped_by_memory;
	double *valid_proba; /* [n_valid][max(1, n_classes)]: what the model predicts; owned */
	double *
		oob_proba; /* [n_train][max(1, n_classes)]: mean of the trees that didn't see the row; or NULL */
	uint32_t *
		oob_count; /* [n_train]: how many trees those are; 0: the row has the training rows' mean */
	int64_t model_bytes;   /* of the image, nearly */
	bool on_gpu;           /* ctx->gpu grew the trees */
	bool gpu_failed;       /* that is no matter of parameters: the device, or its memory, failed */
	char cpu_because[300]; /* why not, where there was a ctx->gpu */
	char note[200];        /* why there are fewer trees than asked for; else empty */
} AgForestResult;

/*
 * Grows the trees, one a thread. Stops at ctx->deadline_ns with the trees so far (the first one however short it
 * is), at the cancel flag with AG_ERR_CANCELLED within 100 ms. Rows of weight 0 aren't learnt from. Needs the
 * bins' row-major copy. data->stop_metric isn't looked at.
 */
AgStatus ag_forest_train(const AgContext *ctx, const AgTrainData *data,
						 const AgForestParams *params, AgForestResult *result);
void ag_forest_result_free(const AgContext *ctx, AgForestResult *result);

/* Upper estimate of what training takes beyond bins, in bytes; the model is bounded by model_bytes if that is set. */
int64_t ag_forest_memory(const AgTrainData *data, const AgForestParams *params, int n_threads);

#endif
