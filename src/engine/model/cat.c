/*
 * cat.c - the CAT family: CatBoost's names and aliases of parameters, and what it fixes.
 */
#include "engine/model/cat.h"

#include <stddef.h>

#include "engine/base/maths.h"
#include "engine/model/bootstrap.h"
#include "engine/model/combine_fixed.h"
#include "engine/model/leaves_step.h"
#include "engine/model/target_stats.h"

#define AT(field) offsetof(AgBoostParams, field)
#define REAL_MAX 1e300
#define AUTO_RATE (-1.0) /* how "auto" is stored */
#define LOSSGUIDE_LEAVES 31
#define ORDERED 1 /* of boosting_type */
#define AG_CAT_LOSSES 10

/* In the order of the words. */
static const AgLossKind losses[AG_CAT_LOSSES] = {
	AG_LOSS_AUTO,       AG_LOSS_SQUARED, AG_LOSS_ABSOLUTE, AG_LOSS_QUANTILE, AG_LOSS_HUBER,
	AG_LOSS_PERCENTAGE, AG_LOSS_POISSON, AG_LOSS_TWEEDIE,  AG_LOSS_LOGISTIC, AG_LOSS_SOFTMAX,
};
#define BINARY_STEPS 10
#define FIRST_ROUNDS 32 /* of the trees that choose combinations for others */
#define FIRST_DEPTH 6

const AgParamSpec ag_cat_specs[] = {
	{"iterations", "num_boost_round n_estimators num_trees", AG_PARAM_INT, 1, 1000000, 10000, NULL,
	 "most rounds of boosting", AT(num_boost_round)},
	{"loss_function", "objective", AG_PARAM_CHOICE_NUMBER, 0, AG_CAT_LOSSES - 1, 0,
	 "auto RMSE MAE Quantile:alpha= Huber:delta= MAPE Poisson Tweedie:variance_power= Logloss "
	 "MultiClass",
	 "what is minimised; auto goes by problem type and metric", AT(loss_function)},
	{"learning_rate", "eta", AG_PARAM_REAL, 1e-6, 10, 0.05, "auto",
	 "factor on each tree's values; auto takes it from rows and iterations", AT(learning_rate)},
	{"depth", "max_depth", AG_PARAM_INT, 1, 16, 6, NULL, "most splits on a path", AT(max_depth)},
	{"boosting_type", NULL, AG_PARAM_CHOICE, 0, 1, 0, "Plain Ordered",
	 "how gradients are made; Plain: by all trees so far; Ordered: in random orders of the rows, "
	 "by "
	 "the rows before, which is slower and may help with few rows. Target statistics are ordered "
	 "always",
	 AT(boosting)},
	{"grow_policy", NULL, AG_PARAM_CHOICE, 0, 2, 2, "Depthwise Lossguide SymmetricTree",
	 "split a level by one split, level by level, or the leaf with the greatest gain first",
	 AT(grow_order)},
	{"max_leaves", "num_leaves", AG_PARAM_INT, 0, 65536, 0, NULL,
	 "most leaves of a tree with Lossguide, 0 for 31", AT(num_leaves)},
	{"min_data_in_leaf", "min_child_samples", AG_PARAM_INT, 1, 1000000000, 1, NULL,
	 "fewest rows in a leaf with Depthwise and Lossguide", AT(min_data_in_leaf)},
	{"l2_leaf_reg", "reg_lambda", AG_PARAM_REAL, 0, REAL_MAX, 3, NULL,
	 "L2 penalty on leaf values, times the mean weight of rows", AT(lambda_l2)},
	{"random_strength", NULL, AG_PARAM_REAL, 0, REAL_MAX, 1, NULL,
	 "noise on the scores of splits; it fades as trees are added. With Depthwise and Lossguide "
	 "each feature's best cut gets it",
	 AT(random_strength)},
	{"bootstrap_type", NULL, AG_PARAM_CHOICE, 0, 4, 0, "auto Bayesian Bernoulli MVS No",
	 "how rows are weighed for a tree's splits; auto is MVS, but Bayesian for several classes",
	 AT(bootstrap)},
	{"bagging_temperature", NULL, AG_PARAM_REAL, 0, 100, 1, NULL,
	 "spread of the weights that Bayesian draws, 0 for none", AT(bagging_temperature)},
	{"subsample", NULL, AG_PARAM_REAL, 1e-6, 1, 0.8, NULL,
	 "share of the rows that Bernoulli and MVS draw", AT(bagging_fraction)},
	{"rsm", "colsample_bylevel", AG_PARAM_REAL, 1e-6, 1, 1, NULL,
	 "share of the features that a level may use", AT(feature_fraction_bylevel)},
	{"border_count", "max_bin", AG_PARAM_INT, 2, 254, 254, NULL,
	 "most intervals that a number is cut into", AT(max_bin)},
	{"one_hot_max_size", NULL, AG_PARAM_INT, 1, 254, 2, NULL,
	 "categories of at most so many levels are split as they are, others by target statistics",
	 AT(one_hot_max_size)},
	{"max_ctr_complexity", NULL, AG_PARAM_INT, 1, AG_COMBO_MEMBERS, 4, NULL,
	 "most categories that are combined to one, 1 for none; Depthwise and Lossguide take the "
	 "combinations that a few symmetric "
	 "trees choose",
	 AT(max_ctr_complexity)},
	{"permutation_count", NULL, AG_PARAM_INT, 1, AG_STAT_PERMUTATIONS, 3, NULL,
	 "random orders of the rows that target statistics are made by", AT(n_permutations)},
	{"model_size_reg", NULL, AG_PARAM_REAL, 0, 100, 0.5, NULL,
	 "penalty on splits by statistics of many levels that the model has not used yet",
	 AT(model_size_reg)},
	{"leaf_estimation_method", NULL, AG_PARAM_CHOICE, 0, 3, 0, "auto Newton Gradient Exact",
	 "how leaf values are found: by hessians, by weights, or as percentiles, which only losses of "
	 "absolute errors and quantiles "
	 "have; auto is Exact for them, else Newton",
	 AT(leaf_method)},
	{"leaf_estimation_iterations", NULL, AG_PARAM_INT, 0, 1000, 0, NULL,
	 "steps to a leaf's values; 0 is 10 for two classes, but of fewer than 20 features in fewer "
	 "than 200 "
	 "iterations, else 1",
	 AT(leaf_steps)},
	{"score_function", NULL, AG_PARAM_CHOICE, 0, 1, 1, "L2 Cosine",
	 "what the splits of SymmetricTree are chosen by; with Depthwise and Lossguide the scale that "
	 "random_strength is on",
	 AT(score_function)},
};

const int ag_cat_n_specs = (int) (sizeof ag_cat_specs / sizeof ag_cat_specs[0]);

/* ln rate = a ln(rows) + b at 1000 iterations; slower or faster by c with the logarithm of other numbers. */
typedef struct RateRule
{
	double a, b, c;
} RateRule;

/* As CatBoost fits it, with and without validation rows, by regression, two classes, several. */
static const RateRule rate_rules[3][2] = {
	{{0.157, -4.062, -0.61}, {0.158, -4.287, -0.813}},
	{{0.246, -5.127, -0.451}, {0.408, -7.299, -0.928}},
	{{0.02, -2.364, -0.382}, {0.051, -2.889, -0.845}},
};

static double
automatic_rate(const AgTrainData *data, int n_rounds)
{
	int problem = !ag_problem_has_classes(data->problem) ? 0
				  : data->problem == AG_PROBLEM_BINARY   ? 1
														 : 2;
	const RateRule *rule = &rate_rules[problem][data->n_valid > 0 ? 0 : 1];
	double rate = ag_exp(rule->a * ag_ln((double) data->n_train) + rule->b +
						 rule->c * (ag_ln((double) n_rounds) - ag_ln(1000.0)));

	return rate < 0.5 ? rate : 0.5;
}

/* As CatBoost has it. */
static int
automatic_steps(const AgTrainData *data, const AgBoostParams *params)
{
	bool is_small = data->bins->n_features < 20 && params->num_boost_round < 200;

	return data->problem == AG_PROBLEM_BINARY && params->leaf_method != AG_LEAF_GRADIENT &&
				   !is_small
			   ? BINARY_STEPS
			   : 1;
}

static void
complete_loss(AgBoostParams *params)
{
	double number = params->loss_function.number;

	params->loss = losses[params->loss_function.choice];
	params->loss_alpha = number == number ? number : 0.5;
	params->loss_delta = params->loss_power = number;
	params->loss_step = 0.0;
}

static void
complete(const AgTrainData *data, AgBoostParams *params)
{
	params->family = "CAT";
	complete_loss(params);
	params->has_cosine_score = params->score_function == 1;
	params->splits_by_weight = true;
	params->is_ordered = params->boosting == ORDERED;
	params->feature_fraction = params->feature_fraction_bynode = 1.0;
	params->scale_pos_weight = 1.0;
	params->min_data_per_group = 1;
	if (params->learning_rate == AUTO_RATE)
		params->learning_rate = automatic_rate(data, params->num_boost_round);
	if (params->leaf_steps == 0)
		params->leaf_steps = automatic_steps(data, params);
	if (params->grow_order == AG_GROW_LOSSGUIDE && params->num_leaves == 0)
		params->num_leaves = LOSSGUIDE_LEAVES;
}

static AgStatus
check_loss(const AgParamChoice *loss, AgError *err)
{
	double number = loss->number;

	switch (losses[loss->choice])
	{
		case AG_LOSS_QUANTILE:
			if (number == number && !(number > 0.0 && number < 1.0))
				return ag_error_set(err, AG_ERR_OPTION,
									"\"alpha\" in parameter \"loss_function\" of family CAT takes "
									"a number between 0 and 1, not %.10g",
									number);
			return AG_OK;
		case AG_LOSS_HUBER:
			if (!(number > 0.0))
				return ag_error_set(err, AG_ERR_OPTION,
									"parameter \"loss_function\" of family CAT takes "
									"\"Huber:delta=\" with a number greater than 0");
			return AG_OK;
		case AG_LOSS_TWEEDIE:
			if (!(number > 1.0 && number < 2.0))
				return ag_error_set(err, AG_ERR_OPTION,
									"parameter \"loss_function\" of family CAT takes "
									"\"Tweedie:variance_power=\" with a number between 1 and 2");
			return AG_OK;
		default:
			return AG_OK;
	}
}

AgStatus
ag_cat_check(const void *params, AgError *err)
{
	const AgBoostParams *own = params;

	if (own->boosting == ORDERED && own->grow_order != AG_GROW_SYMMETRIC)
		return ag_error_set(err, AG_ERR_OPTION,
							"\"boosting_type\" \"Ordered\" of family CAT needs \"grow_policy\" "
							"\"SymmetricTree\"");
	return check_loss(&own->loss_function, err);
}

/* A number that only some ways of drawing rows look at has another value than its default. */
static AgStatus
check_draws(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params)
{
	AgBoostParams normal;
	AgBootstrap bootstrap;

	ag_params_default(ag_cat_specs, ag_cat_n_specs, &normal);
	ag_bootstrap_init(data, params, &bootstrap);
	if (params->bagging_temperature != normal.bagging_temperature &&
		bootstrap.kind != AG_BOOTSTRAP_BAYESIAN)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"parameter \"bagging_temperature\" of family CAT needs "
							"\"bootstrap_type\" \"Bayesian\"");
	if (params->bagging_fraction != normal.bagging_fraction &&
		bootstrap.kind != AG_BOOTSTRAP_BERNOULLI && bootstrap.kind != AG_BOOTSTRAP_MVS)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"parameter \"subsample\" of family CAT needs \"bootstrap_type\" "
							"\"Bernoulli\" or \"MVS\"");
	return AG_OK;
}

static AgStatus
check_params(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params)
{
	AG_TRY(check_draws(ctx, data, params));
	if (params->num_leaves > 0 && params->grow_order != AG_GROW_LOSSGUIDE)
		return ag_error_set(
			ctx->error, AG_ERR_OPTION,
			"parameter \"max_leaves\" of family CAT needs \"grow_policy\" \"Lossguide\"");
	if (params->min_data_in_leaf > 1 && params->grow_order == AG_GROW_SYMMETRIC)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"parameter \"min_data_in_leaf\" of family CAT needs \"grow_policy\" "
							"\"Depthwise\" or \"Lossguide\"");
	return AG_OK;
}

static bool
combines(const AgBoostParams *params, int n_replaced)
{
	return n_replaced > 1 && params->max_ctr_complexity > 1;
}

/*
 * Trees that grow node by node have no level to offer combinations to. They get those that a few symmetric trees ask for, as
 * further columns from the beginning. stats is exchanged for such of the wider table.
 */
static AgStatus
fix_combinations(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
				 const AgBoostParams *params, AgTargetStats **stats, AgFixedTable *fixed)
{
	AgTrainData first = *data, wider = *data;
	AgBoostParams few = *params;
	AgTargetStats *made;
	AgBoostResult result;

	first.bins = (*stats)->bins;
	first.stats = *stats;
	first.n_valid = 0;
	few.grow_order = AG_GROW_SYMMETRIC;
	few.num_leaves = 0;
	few.min_data_in_leaf = 1;
	few.max_depth = few.max_depth < 1 || few.max_depth > FIRST_DEPTH ? FIRST_DEPTH : few.max_depth;
	few.num_boost_round = few.num_boost_round < FIRST_ROUNDS ? few.num_boost_round : FIRST_ROUNDS;
	few.early_stop_rounds = 0;
	AG_TRY(ag_boost_train(ctx, &first, &few, &result));
	ag_boost_result_free(ctx, &result);
	if ((*stats)->combiner->n_used == 0)
		return AG_OK;
	AG_TRY(ag_fixed_table_create(ctx, (*stats)->combiner, codes, fixed));
	wider.bins = fixed->bins;
	AG_TRY(ag_target_stats_create(ctx, &wider, (const uint32_t *const *) fixed->codes,
								  params->one_hot_max_size, params->n_permutations, params->seed,
								  &made));
	made->n_features = data->bins->n_features;
	made->combiner = (*stats)->combiner; /* for the combinations' keys */
	(*stats)->combiner = NULL;
	ag_target_stats_free(ctx, *stats);
	*stats = made;
	return AG_OK;
}

AgStatus
ag_cat_train(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
			 const AgBoostParams *params, AgBoostResult *result)
{
	AgBoostParams own = *params;
	AgTrainData shown = *data;
	AgTargetStats *stats = NULL;
	AgFixedTable fixed = {0};
	int n_replaced = 0;
	AgStatus status;

	AG_TRY(check_params(ctx, data, params));
	complete(data, &own);
	for (int f = 0; f < data->bins->n_features; f++)
		n_replaced += ag_stats_replace(data->bins->features + f, params->one_hot_max_size);
	if (n_replaced > 0 && data->n_train > 0)
		AG_TRY(ag_target_stats_create(ctx, data, codes, params->one_hot_max_size,
									  params->n_permutations, params->seed, &stats));
	if (stats != NULL && combines(&own, n_replaced))
	{
		AgCombineParams combining = {own.max_ctr_complexity, own.one_hot_max_size,
									 own.model_size_reg, own.seed, own.most_combinations};

		AG_GO(ag_combiner_create(ctx, data, codes, stats, &combining, &stats->combiner));
		if (own.grow_order != AG_GROW_SYMMETRIC)
			AG_GO(fix_combinations(ctx, data, codes, &own, &stats, &fixed));
	}
	if (stats != NULL)
	{
		shown.bins = stats->bins;
		shown.stats = stats;
	}
	AG_GO(ag_boost_train(ctx, &shown, &own, result));
done:
	ag_target_stats_free(ctx, stats);
	ag_fixed_table_free(ctx, &fixed);
	return status;
}

int64_t
ag_cat_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads)
{
	int64_t n_columns = 0, n_levels = 0, per = ag_stats_per_feature(data->problem, data->n_classes);
	int64_t n_rows = data->bins->n_rows, n_histograms, bytes;
	int n_replaced = 0;
	AgBoostParams own = *params;

	complete(data, &own);
	for (int f = 0; f < data->bins->n_features; f++)
	{
		const AgBinFeature *feature = data->bins->features + f;

		n_columns += ag_stats_replace(feature, params->one_hot_max_size) ? per : 0;
		n_levels += ag_stats_replace(feature, params->one_hot_max_size) ? feature->n_levels : 0;
		n_replaced += ag_stats_replace(feature, params->one_hot_max_size);
	}
	if (n_columns == 0)
		return ag_boost_memory(data, &own, n_threads);
	/* columns and rows of the statistics' matrix, the column in work, levels' tables, wide histograms */
	n_histograms = ag_boost_leaves(data, &own) + 1 + 2 * n_threads;
	bytes = combines(&own, n_replaced) ? ag_combiner_memory(data, own.n_permutations, n_replaced,
															own.max_ctr_complexity, n_threads)
									   : 0;
	if (combines(&own, n_replaced) && own.grow_order != AG_GROW_SYMMETRIC)
	{
		n_columns += AG_FIXED_MOST * per;
		bytes += ag_fixed_table_memory(data);
	}
	return bytes + ag_boost_memory(data, &own, n_threads) +
		   own.n_permutations * (data->bins->n_features + n_columns + 72) * 2 * n_rows +
		   n_rows * (24 + 4 * own.n_permutations) + n_levels * 8 * (2 + per) +
		   n_columns * (AG_STAT_BINS + 1) * (16 * n_histograms + 64);
}
