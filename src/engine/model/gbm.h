/*
 * gbm.h - gradient-boosted trees on histograms, leaf-wise (the GBM family).
 *
 * Gradients and hessians are quantised to integers per tree (stochastic rounding by the counter-based
 * generator keyed by row and tree), histograms sum integers, gains come from the integer sums in a fixed order:
 * the same bytes at any thread count. Leaf values come from sums of unquantised fixed-point gradients.
 */
#ifndef AG_GBM_H
#define AG_GBM_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/data/label.h"
#include "engine/model/metric.h"
#include "engine/model/param.h"
#include "engine/model/trees.h"

typedef struct AgGbmParams
{
	int num_boost_round;            /* 10000 */
	double learning_rate;           /* 0.05 */
	int num_leaves;                 /* 31 */
	int max_depth;                  /* -1: none */
	int min_data_in_leaf;           /* 20, exact */
	double min_sum_hessian_in_leaf; /* 1e-3 */
	double lambda_l1, lambda_l2;    /* 0, 0 */
	double min_gain_to_split;       /* 0 */
	double max_delta_step;          /* 0: none */
	double feature_fraction;        /* 1, per tree */
	double feature_fraction_bynode; /* 1 */
	double bagging_fraction;        /* 1 */
	int bagging_freq;               /* 0 */
	bool extra_trees;               /* one random cut a feature and node */
	double path_smooth;             /* 0 */
	int max_bin;                    /* 255, the missing bin included */
	int min_data_in_bin;            /* 3 */
	double cat_smooth, cat_l2;      /* 10, 10 */
	int max_cat_threshold;          /* 32 */
	int max_cat_to_onehot;          /* 4 */
	int min_data_per_group;         /* 100 */
	/* not user parameters */
	uint64_t seed;
	int early_stop_rounds; /* fixed patience; -1: adaptive by training rows; 0: off */
} AgGbmParams;

extern const AgParamSpec ag_gbm_specs[];
extern const int ag_gbm_n_specs;

/* What a booster learns from. Rows are indices into bins; both lists ascend. */
typedef struct AgTrainData
{
	const AgBins *bins;
	AgProblem problem;
	int n_classes;
	const double *target;    /* regression */
	const int32_t *class_of; /* classification */
	const double *weight;    /* NULL: all 1 */
	const uint32_t *train_rows;
	int64_t n_train;
	const uint32_t *valid_rows; /* may be none: then no early stopping */
	int64_t n_valid;
	AgMetric stop_metric; /* what early stopping watches */
} AgTrainData;

typedef struct AgBoostResult
{
	AgTrees *trees; /* cut at the best round */
	int best_round; /* rounds kept */
	int rounds_run;
	double best_value; /* stop metric at the best round, plain; NaN without validation rows */
	double *
		valid_proba; /* [n_valid][max(1, n_classes)]: predictions (after the link) of the kept model; owned, ag_mem_free */
	bool stopped_by_time;
	bool stopped_by_patience;
} AgBoostResult;

/*
 * Trains. Stops at ctx->deadline_ns with the best so far (AG_ERR_TIME when not even one tree was grown), at the cancel
 * flag with AG_ERR_CANCELLED within 100 ms. Reports progress at least every 2 s through ctx->progress.
 */
AgStatus ag_gbm_train(const AgContext *ctx, const AgTrainData *data, const AgGbmParams *params,
					  AgBoostResult *result);
void ag_boost_result_free(const AgContext *ctx, AgBoostResult *result);

/* Upper estimate of the memory that training takes beyond bins, in bytes. */
int64_t ag_gbm_memory(const AgTrainData *data, const AgGbmParams *params, int n_threads);

#endif
