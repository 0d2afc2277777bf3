/*
 * boost.h - gradient-boosted trees on histograms: the loop of all families that boost.
 *
 * Gradients and hessians are quantised to integers per tree (stochastic rounding by the counter-based
 * generator keyed by row and tree), histograms sum integers, gains come from the integer sums in a fixed order:
 * the same bytes at any thread count. Leaf values come from sums of unquantised fixed-point gradients.
 */
#ifndef AG_BOOST_H
#define AG_BOOST_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/data/label.h"
#include "engine/model/history.h"
#include "engine/model/metric.h"
#include "engine/model/param.h"
#include "engine/model/trees.h"

/* The order in which a tree's leaves are split. */
typedef enum AgGrowOrder
{
	AG_GROW_DEPTHWISE = 0, /* level by level */
	AG_GROW_LOSSGUIDE,     /* the greatest gain first */
	AG_GROW_SYMMETRIC      /* all leaves of a level by the same split */
} AgGrowOrder;

/* What is minimised. */
typedef enum AgLossKind
{
	AG_LOSS_AUTO = 0, /* what fits problem type and metric */
	AG_LOSS_SQUARED,
	AG_LOSS_ABSOLUTE,
	AG_LOSS_PERCENTAGE,
	AG_LOSS_QUANTILE,
	AG_LOSS_HUBER,
	AG_LOSS_FAIR,
	AG_LOSS_PSEUDO_HUBER,
	AG_LOSS_POISSON,
	AG_LOSS_GAMMA,
	AG_LOSS_TWEEDIE,
	AG_LOSS_LOGISTIC, /* of two classes */
	AG_LOSS_SOFTMAX,  /* of several */
	AG_LOSS_LAST
} AgLossKind;

/*
 * What all boosters can do; a family's table of parameters fills its own part, ag_<family>_complete the
 * rest. 0 is no limit, no penalty, no such thing, unless told otherwise. Shares are in (0, 1].
 */
typedef struct AgBoostParams
{
	const char *family; /* for reports */
	int num_boost_round;
	double learning_rate;
	int grow_order; /* an AgGrowOrder */
	int num_leaves;
	int max_depth;        /* -1: no limit either */
	int min_data_in_leaf; /* exact */
	double min_sum_hessian_in_leaf;
	double lambda_l1, lambda_l2;
	double min_gain_to_split;
	double max_delta_step;
	double feature_fraction;         /* of all, per tree */
	double feature_fraction_bylevel; /* of the tree's, per level */
	double feature_fraction_bynode;  /* of the level's, per node */
	double bagging_fraction;
	int bagging_freq;              /* rounds between draws; 0: no bagging */
	int boosting, sample_strategy; /* as its family words them */
	bool is_ordered; /* gradients by models that haven't seen the row; symmetric trees only */
	bool samples_by_gradient; /* all rows of large gradients and some of the others */
	double top_rate, other_rate;
	bool extra_trees; /* one random cut a feature and node */
	double path_smooth;
	int max_bin; /* the missing bin included */
	int min_data_in_bin;
	bool splits_categories; /* into groups; false: one level from the rest */
	double cat_smooth;      /* rows that a level needs to be sorted */
	bool
		sorts_by_value; /* by the values of leaves they would get; false: with cat_smooth added to hessians */
	double cat_l2;
	int max_cat_threshold;
	int max_cat_to_onehot;
	int min_data_per_group; /* 0: ag_boost_group_rows */
	int one_hot_max_size;   /* categories of more levels become target statistics */
	int max_ctr_complexity; /* most categories that are combined; 1: none are */
	int n_permutations;     /* orders of the rows that statistics are made by */
	double model_size_reg;  /* against combinations of many levels that no tree has yet */
	bool splits_by_weight;  /* seek splits by gradients and weights, not by hessians */
	int score_function;     /* as its family words it */
	bool has_cosine_score;  /* of symmetric trees; of others noise is on its scale */
	double random_strength; /* of the noise on scores */
	int bootstrap;          /* an AgBootstrapKind, with splits_by_weight */
	double bagging_temperature;
	int objective;               /* as its family words it */
	AgParamChoice loss_function; /* or so */
	AgLossKind loss; /* what that means, completed; its parameters as AgLossParams has them: */
	double loss_alpha, loss_delta, loss_power, loss_step;
	int leaf_method;           /* an AgLeafMethod */
	int leaf_steps;            /* steps to a leaf's values; 0: one */
	double scale_pos_weight;   /* on rows of class 1 of two */
	double multiclass_hessian; /* factor on p(1-p); 0: classes / (classes - 1) */
	/* not user parameters */
	const int8_t *monotone; /* as AgTrainData has it */
	uint64_t seed;
	int most_combinations; /* that are kept between trees; 0: as many as memory is set aside for */
	int early_stop_rounds; /* fixed patience; -1: adaptive by training rows; 0: off */
} AgBoostParams;

/* What a booster learns from. Rows are indices into bins; both lists ascend. */
typedef struct AgTrainData
{
	const AgBins *bins;
	AgProblem problem;
	int n_classes;
	const char *label_name;  /* for messages; NULL: unknown */
	const double *target;    /* regression */
	const int32_t *class_of; /* classification */
	int n_quantiles;         /* quantile regression: levels to predict; else 0 */
	const double *quantiles; /* [n_quantiles] ascending, in (0, 1) */
	const int8_t *
		monotone; /* [n_features] 1: predictions may not fall with that number, -1: not rise; NULL: all free */
	const double *weight; /* NULL: all 1 */
	/* likewise in what early stopping watches: weight itself, or NULL */
	const double *metric_weight;
	const uint32_t *train_rows;
	int64_t n_train;
	const uint32_t *valid_rows; /* may be none: then no early stopping */
	int64_t n_valid;
	AgMetric stop_metric;      /* what early stopping watches */
	const struct AgCuts *cuts; /* to be repeated, whatever the clock says; NULL: it decides */
	/* the round is chosen later: boosters keep all their trees, nets what they said of the validation rows after each round */
	bool keeps_rounds;
	const struct AgTargetStats
		*stats; /* what the columns of bins are, where they aren't the table's features */
} AgTrainData;

/* Numbers that a model answers a row with. */
static inline int
ag_train_outputs(const AgTrainData *data)
{
	return ag_n_outputs(data->n_classes, data->n_quantiles);
}

typedef struct AgBoostResult
{
	AgTrees *trees; /* cut at the best round, unless the data keeps_rounds */
	int best_round;
	int rounds_run;
	double best_value; /* stop metric at the best round, plain; NaN without validation rows */
	double *
		valid_proba; /* [n_valid][ag_train_outputs]: predictions (after the link) of the kept model; owned, ag_mem_free */
	bool stopped_by_time;
	bool
		stopped_by_memory; /* its trees, with the copies that are made of them, would need more than there is */
	bool stopped_by_patience;
	AgHistory history;     /* of the stop metric; none without validation rows */
	bool on_gpu;           /* ctx->gpu trained it */
	bool gpu_failed;       /* that is no matter of parameters: the device, or its memory, failed */
	char cpu_because[300]; /* why not, where there was a ctx->gpu */
} AgBoostResult;

/*
 * Trains. Stops at ctx->deadline_ns with the best so far (AG_ERR_TIME when not even one tree was grown), at the cancel
 * flag with AG_ERR_CANCELLED within 100 ms; and before the memory is full of trees, with the best so far. Reports progress at least every 2 s through ctx->progress.
 */
AgStatus ag_boost_train(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params,
						AgBoostResult *result);
void ag_boost_result_free(const AgContext *ctx, AgBoostResult *result);

/* A parameter that counts with one of two losses only; which is how the family words them. */
typedef struct AgLossUse
{
	const char *param; /* a number */
	AgLossKind first, second;
	const char *objectives;
} AgLossUse;

/* AG_ERR_OPTION when one of them has another value than its default and the loss isn't one of its two. */
AgStatus ag_boost_check_loss(const char *family, const AgParamSpec *specs, int n_specs,
							 const AgBoostParams *params, const AgLossUse *uses, int n_uses,
							 AgError *err);

/* Upper estimate of the memory that training takes beyond bins, in bytes. */
int64_t ag_boost_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads);

/* Most leaves that a tree can get. */
int ag_boost_leaves(const AgTrainData *data, const AgBoostParams *params);

/*
 * Fewest rows in a group of levels where none are asked for: 100, but 1 in 50 of fewer than 5000 rows, so that
 * small tables' categories can be split at all.
 */
int ag_boost_group_rows(int64_t n_train);

#endif
