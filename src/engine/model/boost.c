/*
 * boost.c - the boosting loop.
 */
#include "engine/model/boost.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/again.h"
#include "engine/model/boost_gpu.h"
#include "engine/model/boost_valid.h"
#include "engine/model/bootstrap.h"
#include "engine/model/combine.h"
#include "engine/model/early_stop.h"
#include "engine/model/goss.h"
#include "engine/model/grow.h"
#include "engine/model/leaves.h"
#include "engine/model/leaves_step.h"
#include "engine/model/objective.h"
#include "engine/model/ordered.h"
#include "engine/model/route.h"
#include "engine/model/sample.h"
#include "engine/model/target_stats.h"
#include "engine/model/trees_builder.h"

#define AG_PROGRESS_NS INT64_C(1000000000)
#define AG_ROUTE_CHUNK 1024
#define FEW_TREES_BYTES (INT64_C(1) << 20)
#define AG_TARGET_MAX 1e290   /* beyond it sums of scores could pass the range of doubles */
#define AG_MOST_LEAVES 131072 /* of a tree, when nobody says */
#define AG_MOST_IDLE_ROUNDS                                                                        \
	10 /* rounds in a row that find no split before random draws are given up */

/* What keys are for. */
enum
{
	AG_KEY_ROUNDING = 1,
	AG_KEY_GROWTH = 2,
	AG_KEY_FEATURES = 3,
	AG_KEY_BAG = 4,
	AG_KEY_WEIGHTS = 5,
	AG_KEY_PERMUTATION = 8
};

typedef struct AgBooster
{
	const AgContext *ctx;
	const AgTrainData *data;
	AgBoostParams params; /* the family's, completed */
	AgLoss loss;
	AgGrower grower;
	AgLeaves leaves;
	AgLeafSteps steps;
	AgRoute route;
	AgTreesBuilder trees;
	AgEarlyStop stop;
	AgValid valid;
	AgBootstrap bootstrap; /* with splits_by_weight */
	AgOrdered ordered;     /* with is_ordered */
	AgBoostGpu gpu;        /* has a boost: trees are grown there */
	int n_out;
	uint32_t *bag; /* NULL without bagging */
	uint32_t *out_of_bag;
	int64_t n_bag, n_out_of_bag;
	int *features; /* [n_features] scratch for draws */
	int round;     /* in work, from 1 */
	int n_idle;    /* rounds in a row without a split */
	int64_t next_report_ns;
	bool is_stopped_by_time;
} AgBooster;

/* Tells how far it is, once in a while. */
static void
report(void *arg)
{
	AgBooster *booster = arg;
	const AgContext *ctx = booster->ctx;
	int most = booster->params.num_boost_round;
	char text[160];
	int64_t now;

	if (ctx->progress == NULL || (now = ag_clock_ns()) < booster->next_report_ns)
		return;
	booster->next_report_ns = now + AG_PROGRESS_NS;
	if (booster->stop.best_round > 0)
		snprintf(text, sizeof text, "training %s, round %d of at most %d, %s %.6g",
				 booster->params.family, booster->round, most, ag_metric_name(booster->stop.metric),
				 booster->stop.best_value);
	else
		snprintf(text, sizeof text, "training %s, round %d of at most %d", booster->params.family,
				 booster->round, most);
	ag_progress(ctx, text, ag_early_stop_share(&booster->stop, booster->round, most));
}

/* ---- setting up ---- */

static AgStatus
check_data(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params)
{
	if (data->n_train <= 0)
		return ag_error_set(ctx->error, AG_ERR_DATA, "no rows to train on");
	if (data->bins->rows == NULL && data->bins->n_features > 0)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "bins have no row-major copy");
	if (params->scale_pos_weight != 1.0 && data->problem != AG_PROBLEM_BINARY)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"parameter \"scale_pos_weight\" of family %s needs two classes",
							params->family);
	if (ag_problem_has_classes(data->problem))
		return AG_OK;
	for (int64_t i = 0; i < data->n_train; i++)
		if (!(fabs(data->target[data->train_rows[i]]) <= AG_TARGET_MAX))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"label values beyond 1e290 are too large to boost trees on");
	return AG_OK;
}

/* No tree can have more leaves than its rows and its depth allow, so no more room is taken. */
static AgGrowth
growth_of(const AgTrainData *data, const AgBoostParams *params)
{
	int64_t least = params->min_data_in_leaf > 1 ? params->min_data_in_leaf : 1;
	int64_t most = data->n_train / least;
	AgGrowth growth = {.max_leaves = params->num_leaves > 0 ? params->num_leaves : AG_MOST_LEAVES,
					   .max_depth = params->max_depth > 0 ? params->max_depth : INT_MAX,
					   .is_depthwise = params->grow_order == AG_GROW_DEPTHWISE,
					   .is_symmetric = params->grow_order == AG_GROW_SYMMETRIC,
					   .has_cosine_score = params->has_cosine_score,
					   .feature_fraction_bylevel = params->feature_fraction_bylevel,
					   .feature_fraction_bynode = params->feature_fraction_bynode};

	if (growth.is_symmetric) /* of full trees; levels beyond couldn't part so few rows */
	{
		int depth = 1;

		while (depth < params->max_depth && (INT64_C(1) << depth) < data->n_train)
			depth++;
		growth.max_leaves = 1 << depth;
		return growth;
	}
	if (growth.max_depth < 31 && (INT64_C(1) << growth.max_depth) < most)
		most = INT64_C(1) << growth.max_depth;
	if (most < growth.max_leaves)
		growth.max_leaves = most < 1 ? 1 : (int) most;
	return growth;
}

int
ag_boost_leaves(const AgTrainData *data, const AgBoostParams *params)
{
	return growth_of(data, params).max_leaves;
}

int
ag_boost_group_rows(int64_t n_train)
{
	if (n_train >= 5000)
		return 100;
	return n_train < 50 ? 1 : (int) (n_train / 50);
}

static bool
has_bagging(const AgBoostParams *params)
{
	return (params->bagging_freq > 0 && params->bagging_fraction < 1.0) || ag_goss_is_used(params);
}

static AgLossParams
loss_params(const AgBoostParams *params)
{
	return (AgLossParams){.kind = params->loss,
						  .alpha = params->loss_alpha,
						  .delta = params->loss_delta,
						  .power = params->loss_power,
						  .step = params->loss_step,
						  .positive = params->scale_pos_weight,
						  .multiclass_hessian = params->multiclass_hessian};
}

/* On the device where there is one that can; else the CPU's own, and the reason stays in booster->gpu. */
static AgStatus
create_grower(AgBooster *booster, const AgGrowth *growth)
{
	const AgContext *ctx = booster->ctx;
	const AgTrainData *data = booster->data;

	if (ctx->gpu != NULL)
	{
		AG_TRY(ag_grower_create_empty(ctx, data->bins, growth, &booster->grower));
		if (booster->params.splits_by_weight)
			ag_bootstrap_init(data, &booster->params, &booster->bootstrap);
		AG_TRY(ag_boost_gpu_create(ctx, &booster->loss, &booster->params, &booster->grower,
								   &booster->bootstrap, &booster->gpu));
		if (booster->gpu.boost != NULL)
			return AG_OK;
		ag_boost_gpu_free(ctx, &booster->gpu);
		ag_grower_free(ctx, &booster->grower);
	}
	AG_TRY(ag_grower_create(ctx, data->bins, data->n_train, growth, &booster->grower));
	if (booster->params.splits_by_weight)
		AG_TRY(ag_bootstrap_create(ctx, data, &booster->params, &booster->bootstrap));
	return AG_OK;
}

static AgStatus
create_booster(AgBooster *booster)
{
	const AgContext *ctx = booster->ctx;
	const AgTrainData *data = booster->data;
	AgGrowth growth = growth_of(data, &booster->params);
	AgLossParams of_loss = loss_params(&booster->params);

	AG_TRY(check_data(ctx, data, &booster->params));
	if (ag_objective_of(data, booster->params.loss) == NULL)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"the objective that is given for family %s does not fit a %s problem",
							booster->params.family, ag_problem_name(data->problem));
	AG_TRY(ag_loss_create(ctx, data, &of_loss, &booster->loss));
	if (booster->params.leaf_method == AG_LEAF_EXACT && !booster->loss.objective->renews_leaves)
		return ag_error_set(
			ctx->error, AG_ERR_OPTION,
			"parameter \"leaf_estimation_method\" of family %s can be \"Exact\" only "
			"with losses of absolute errors or quantiles",
			booster->params.family);
	if (data->monotone != NULL &&
		(booster->loss.objective->renews_leaves || booster->loss.n_outputs > 1))
		return ag_error_set(ctx->error, AG_ERR_OPTION, "monotone constraints do not go with %s",
							booster->loss.objective->name);
	booster->n_out = ag_train_outputs(data);
	AG_TRY(create_grower(booster, &growth));
	booster->grower.tick = report;
	booster->grower.tick_arg = booster;
	AG_TRY(ag_leaves_create(ctx, growth.max_leaves, data->n_train, &booster->leaves));
	if (booster->params.leaf_steps > 1)
		AG_TRY(ag_leaf_steps_create(ctx, &booster->loss, growth.max_leaves, &booster->steps));
	AG_TRY(ag_route_create(ctx, growth.max_leaves, &booster->route));
	AG_TRY(ag_get(ctx, (size_t) data->bins->n_features, sizeof(int), &booster->features));
	if (has_bagging(&booster->params))
	{
		AG_TRY(ag_get(ctx, (size_t) data->n_train + 1, sizeof(uint32_t), &booster->bag));
		AG_TRY(ag_get(ctx, (size_t) data->n_train + 1, sizeof(uint32_t), &booster->out_of_bag));
	}
	booster->grower.ordered = booster->params.is_ordered ? &booster->ordered : NULL;
	if (booster->params.is_ordered)
		AG_TRY(ag_ordered_create(ctx, &booster->loss, &booster->params, &booster->ordered));
	booster->trees.stats = data->stats;
	booster->grower.combiner = data->stats != NULL ? data->stats->combiner : NULL;
	ag_early_stop_init(&booster->stop, data->stop_metric, booster->params.early_stop_rounds,
					   data->n_train);
	if (data->n_valid > 0)
		AG_TRY(ag_valid_create(ctx, data, &booster->loss, booster->n_out, &booster->valid));
	return AG_OK;
}

static void
free_booster(AgBooster *booster)
{
	const AgContext *ctx = booster->ctx;

	ag_boost_gpu_free(ctx, &booster->gpu);
	ag_loss_free(ctx, &booster->loss);
	ag_grower_free(ctx, &booster->grower);
	ag_leaves_free(ctx, &booster->leaves);
	ag_leaf_steps_free(ctx, &booster->steps);
	ag_route_free(ctx, &booster->route);
	ag_trees_builder_free(ctx, &booster->trees);
	ag_bootstrap_free(ctx, &booster->bootstrap);
	ag_ordered_free(ctx, &booster->ordered);
	ag_valid_free(ctx, &booster->valid);
	ag_mem_free(ctx->mem, booster->bag);
	ag_mem_free(ctx->mem, booster->out_of_bag);
	ag_mem_free(ctx->mem, booster->features);
}

/* ---- rows that the tree wasn't grown on ---- */

typedef struct AgRouteTask
{
	const AgBooster *booster;
	const uint32_t *rows;
	double *scores;
	int64_t by_row; /* 1: scores are indexed by the row's number; 0: by its place in rows */
	int64_t stride;
} AgRouteTask;

static void
route_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgRouteTask *task = arg;
	const AgBooster *booster = task->booster;
	int32_t leaves[AG_ROUTE_CHUNK];

	(void) thread;
	if (ag_cancelled(booster->ctx))
		return;
	ag_route_rows(&booster->route, task->rows + begin, end - begin, leaves);
	for (int64_t i = begin; i < end; i++)
	{
		int64_t at = task->by_row ? task->rows[i] : i * task->stride;

		task->scores[at] += booster->leaves.values[leaves[i - begin]];
	}
}

static AgStatus
route(AgBooster *booster, const uint32_t *rows, int64_t n_rows, double *scores, bool by_row,
	  int64_t stride)
{
	AgRouteTask task = {booster, rows, scores, by_row, stride};

	ag_pool_run(booster->ctx->pool, n_rows, AG_ROUTE_CHUNK, route_task, &task);
	return ag_check_cancel(booster->ctx);
}

/* ---- one tree ---- */

static uint64_t
tree_key(const AgBooster *booster, uint64_t use, int output)
{
	uint64_t key = ag_key(booster->params.seed, use);

	return ag_key(ag_key(key, (uint64_t) booster->round), (uint64_t) output);
}

static void
draw_features(AgBooster *booster, int output)
{
	int n = booster->data->bins->n_features;
	int n_drawn = ag_sample_size(booster->params.feature_fraction, n);
	uint8_t *is_used = booster->grower.is_used;

	memset(is_used, n_drawn == n, (size_t) n);
	if (n_drawn == n)
		return;
	for (int f = 0; f < n; f++)
		booster->features[f] = f;
	ag_sample_front(tree_key(booster, AG_KEY_FEATURES, output), n_drawn, n, booster->features);
	for (int i = 0; i < n_drawn; i++)
		is_used[booster->features[i]] = 1;
}

/* A new bag every bagging_freq rounds; an empty draw takes all rows. */
static void
draw_bag(AgBooster *booster)
{
	const AgTrainData *data = booster->data;
	int freq = booster->params.bagging_freq;
	uint64_t key = ag_key(booster->params.seed, AG_KEY_BAG);
	int64_t in = 0;

	if (booster->bag == NULL || ag_goss_is_used(&booster->params) ||
		(booster->round - 1) % freq != 0)
		return;
	booster->n_bag = ag_sample_rows(ag_key(key, (uint64_t) ((booster->round - 1) / freq)),
									booster->params.bagging_fraction, data->train_rows,
									data->n_train, booster->bag);
	if (booster->n_bag == 0)
	{
		memcpy(booster->bag, data->train_rows, (size_t) data->n_train * sizeof *booster->bag);
		booster->n_bag = data->n_train;
	}
	booster->n_out_of_bag = 0;
	for (int64_t i = 0; i < data->n_train; i++)
	{
		if (in < booster->n_bag && booster->bag[in] == data->train_rows[i])
			in++;
		else
			booster->out_of_bag[booster->n_out_of_bag++] = data->train_rows[i];
	}
}

/*
 * Noise on the scores of splits, in quantised units: as large as a row's gradient, less as the model grows
 * (Prokhorenkova et al. 2018).
 */
static void
set_noise(const AgBooster *booster, const AgQuantum *quantum, AgSplitRules *rules)
{
	const AgBoostParams *params = &booster->params;
	double n = (double) booster->data->n_train;
	double left = n * ag_exp(-(booster->round - 1) * params->learning_rate);
	double size = booster->bootstrap.size_g;

	if (!(params->random_strength > 0.0) || !(quantum->g > 0.0))
		return;
	size = size / quantum->g * sqrt(quantum->h);
	rules->roots_gain = params->has_cosine_score;
	rules->noise = params->random_strength * (left / (1.0 + left)) *
				   (params->has_cosine_score ? size : size * size);
}

/* All rows until it is time, then a draw for each tree. */
static AgStatus
sample_by_gradient(AgBooster *booster, int output, AgGradientRange *range)
{
	const AgTrainData *data = booster->data;

	if (!ag_goss_is_used(&booster->params))
		return AG_OK;
	if (ag_goss_is_due(&booster->params, booster->round))
	{
		AG_TRY(ag_goss_draw(booster->ctx, &booster->loss, &booster->params,
							tree_key(booster, AG_KEY_BAG, output), range, booster->bag,
							booster->out_of_bag, &booster->n_bag));
		booster->n_out_of_bag = data->n_train - booster->n_bag;
		return AG_OK;
	}
	memcpy(booster->bag, data->train_rows, (size_t) data->n_train * sizeof *booster->bag);
	booster->n_bag = data->n_train;
	booster->n_out_of_bag = 0;
	return AG_OK;
}

static int
permutation_of(const AgBooster *booster, int output)
{
	uint32_t n = (uint32_t) booster->params.n_permutations;

	return n < 2 ? 0 : (int) ag_random_below(tree_key(booster, AG_KEY_PERMUTATION, output), 0, n);
}

/* The gradients that splits are sought by, quantised, in the grower's first list; *n_rows 0: there is nothing to gain. */
static AgStatus
list_rows(AgBooster *booster, int output, const AgGradientRange *range, int64_t *n_rows,
		  AgQuantum *quantum)
{
	const AgContext *ctx = booster->ctx;
	const AgLoss *loss = &booster->loss;
	const uint32_t *rows = booster->bag != NULL ? booster->bag : booster->data->train_rows;
	bool is_equal = loss->objective->has_const_hessian && booster->data->weight == NULL &&
					!ag_goss_is_due(&booster->params, booster->round);
	const AgGradient *gradients = loss->gradients;
	AgGradientRange drawn = *range;

	if (booster->params.is_ordered)
		return ag_ordered_begin(&booster->ordered, permutation_of(booster, output), output,
								&booster->bootstrap, tree_key(booster, AG_KEY_WEIGHTS, output),
								booster->grower.lists[0].ids, n_rows, quantum);
	*n_rows = booster->bag != NULL ? booster->n_bag : booster->data->n_train;
	if (booster->params.splits_by_weight)
	{
		AG_TRY(ag_bootstrap_draw(ctx, &booster->bootstrap, loss,
								 tree_key(booster, AG_KEY_WEIGHTS, output), &drawn));
		gradients = booster->bootstrap.drawn;
		is_equal = booster->bootstrap.kind == AG_BOOTSTRAP_NO && booster->data->weight == NULL;
	}
	if (drawn.max_g > 0.0f && drawn.max_h > 0.0f)
		return ag_quantise(ctx, gradients, is_equal, &drawn,
						   tree_key(booster, AG_KEY_ROUNDING, output), rows, *n_rows,
						   &booster->grower.lists[0], quantum);
	*n_rows = 0;
	return AG_OK;
}

/* Each tree sees statistics by one of several orders of the rows, so that no order's luck stays in the model. */
static void
choose_permutation(AgBooster *booster, int output)
{
	const AgTargetStats *stats = booster->data->stats;
	int p = permutation_of(booster, output);

	if (stats == NULL)
		return;
	ag_grower_use(&booster->grower, stats->permuted[p]);
	if (stats->combiner != NULL)
		ag_combiner_begin(stats->combiner, p);
}

/* Percentiles of the rows' errors as leaf values, where the loss asks for them and the user doesn't ask for something else. */
static bool
renews_leaves(const AgBooster *booster)
{
	int method = booster->params.leaf_method;

	return booster->loss.objective->renews_leaves &&
		   (method == AG_LEAF_AUTO || method == AG_LEAF_EXACT);
}

/* As boost_output, on the device. */
static AgStatus
boost_output_there(AgBooster *booster, int output)
{
	const AgContext *ctx = booster->ctx;
	AgGrower *grower = &booster->grower;
	bool has_draws = booster->params.splits_by_weight, has_gain;
	bool is_equal =
		booster->data->weight == NULL && (has_draws ? booster->bootstrap.kind == AG_BOOTSTRAP_NO
													: booster->loss.objective->has_const_hessian);
	AgGpuTree tree = {.output = output,
					  .bag = booster->bag,
					  .n_bag = booster->n_bag,
					  .has_equal_hessians = is_equal,
					  .rounding_key = tree_key(booster, AG_KEY_ROUNDING, output),
					  .growth_key = tree_key(booster, AG_KEY_GROWTH, output),
					  .draw_key = tree_key(booster, AG_KEY_WEIGHTS, output)};
	AgQuantum quantum = {.g = 1.0, .h = 1.0};
	AgGradientRange range;
	AgSplitRules rules;

	AG_TRY(ag_boost_gpu_begin(ctx, &booster->gpu, &tree, &booster->bootstrap, has_draws, &range,
							  &quantum, &has_gain));
	draw_features(booster, output);
	choose_permutation(booster, output);
	grower->n_nodes = 0;
	grower->n_leaves = 1;
	grower->depth = 0;
	grower->is_cut_short = false;
	booster->leaves.values[0] = 0.0;
	if (has_gain)
	{
		ag_split_rules_init(&rules, &booster->params, &quantum, booster->loss.unit);
		set_noise(booster, &quantum, &rules);
		AG_TRY(ag_boost_gpu_grow(ctx, &booster->gpu, &tree, &rules, &booster->loss, &range,
								 &quantum, has_draws, &booster->leaves));
		AG_TRY(ag_boost_gpu_values(ctx, &booster->gpu, output, &booster->loss, &range, &quantum,
								   &booster->params, &booster->leaves, &booster->steps));
	}
	AG_TRY(ag_trees_builder_add(ctx, &booster->trees, grower, (uint32_t) output,
								booster->leaves.values));
	if (grower->n_nodes == 0)
		return AG_OK;
	return ag_boost_gpu_add(ctx, &booster->gpu, output, booster->leaves.values);
}

/* Grows the tree of one output and adds it to model and scores. */
static AgStatus
boost_output(AgBooster *booster, int output)
{
	const AgContext *ctx = booster->ctx;
	int64_t n_rows;
	AgGradientRange range;
	AgQuantum quantum = {.g = 1.0, .h = 1.0};
	AgSplitRules rules;

	if (booster->gpu.boost != NULL)
		return boost_output_there(booster, output);
	AG_TRY(ag_loss_gradients(ctx, &booster->loss, output, &range));
	AG_TRY(sample_by_gradient(booster, output, &range));
	AG_TRY(list_rows(booster, output, &range, &n_rows, &quantum));
	draw_features(booster, output);
	choose_permutation(booster, output);
	ag_split_rules_init(&rules, &booster->params, &quantum, booster->loss.unit);
	set_noise(booster, &quantum, &rules);
	AG_TRY(ag_grow_tree(&booster->grower, &rules, &quantum, n_rows,
						tree_key(booster, AG_KEY_GROWTH, output)));
	AG_TRY(ag_leaves_step(ctx, &booster->leaves, &booster->grower, &booster->loss, output, &range,
						  &quantum, &booster->params, &booster->steps));
	if (renews_leaves(booster))
		AG_TRY(ag_leaves_renew(ctx, &booster->leaves, &booster->grower, &booster->loss, output,
							   booster->params.learning_rate));
	AG_TRY(ag_trees_builder_add(ctx, &booster->trees, &booster->grower, (uint32_t) output,
								booster->leaves.values));
	if (booster->grower.n_nodes == 0)
		return AG_OK;
	if (booster->params.is_ordered)
		AG_TRY(ag_ordered_add(&booster->ordered, &booster->grower, output, &booster->params));
	AG_TRY(ag_leaves_add(ctx, &booster->leaves, &booster->grower, &booster->loss, output));
	ag_route_set(&booster->route, &booster->grower);
	if (booster->bag != NULL)
		AG_TRY(route(booster, booster->out_of_bag, booster->n_out_of_bag,
					 booster->loss.scores + output * booster->loss.n_rows, true, 0));
	if (booster->valid.n_rows > 0)
		AG_TRY(route(booster, booster->data->valid_rows, booster->valid.n_rows,
					 booster->valid.scores + output, false, booster->loss.n_outputs));
	return AG_OK;
}

/* ---- one round ---- */

/*
 * Grows the trees of one round; *is_kept false: its time ran out and they were taken back. The very first
 * tree is kept however short it is: better than none.
 */
static AgStatus
boost_round(AgBooster *booster, bool *is_kept)
{
	size_t n_before = booster->trees.n_trees;
	bool is_first = booster->round == 1 && booster->loss.n_outputs == 1;
	bool has_split = false;

	*is_kept = false;
	draw_bag(booster);
	if (booster->gpu.boost == NULL)
		AG_TRY(ag_loss_begin_round(booster->ctx, &booster->loss));
	for (int k = 0; k < booster->loss.n_outputs; k++)
	{
		booster->is_stopped_by_time = !is_first && ag_out_of_time(booster->ctx);
		if (!booster->is_stopped_by_time)
		{
			AG_TRY(boost_output(booster, k));
			booster->is_stopped_by_time = booster->grower.is_cut_short;
			has_split = has_split || booster->grower.n_nodes > 0;
		}
		if (booster->is_stopped_by_time && !(is_first && has_split))
		{
			ag_trees_builder_cut(&booster->trees, n_before);
			return AG_OK;
		}
		report(booster);
	}
	booster->n_idle = has_split ? 0 : booster->n_idle + 1;
	*is_kept = true;
	return AG_OK;
}

/* Scores the validation rows and keeps their predictions when they are the best so far. */
static AgStatus
take_round(AgBooster *booster, AgHistory *history)
{
	double value;

	if (booster->valid.n_rows == 0)
		return AG_OK;
	AG_TRY(ag_valid_evaluate(booster->ctx, &booster->valid, &booster->gpu, &value));
	ag_history_add(history, booster->round, value);
	if (!ag_early_stop_take(&booster->stop, booster->round, value))
		return AG_OK;
	return ag_valid_keep(booster->ctx, &booster->valid, &booster->gpu);
}

/* Without a split the next round would be the same, unless something is drawn anew. */
static bool
is_exhausted(const AgBooster *booster)
{
	const AgBoostParams *params = &booster->params;
	bool has_draws = has_bagging(params) || params->feature_fraction < 1.0 ||
					 params->feature_fraction_bylevel < 1.0 ||
					 params->feature_fraction_bynode < 1.0 || params->extra_trees ||
					 params->splits_by_weight;

	return booster->n_idle > (has_draws ? AG_MOST_IDLE_ROUNDS : 0);
}

/*
 * A model is its trees as they are collected, then a copy of them, then an image that grows: about as much again five times over must be free. Few
 * trees are no matter, whatever else has taken the memory.
 */
static bool
is_full_of_trees(const AgBooster *booster)
{
	const AgTreesBuilder *trees = &booster->trees;
	const AgMem *mem = booster->ctx->mem;
	int64_t bytes =
		(int64_t) (trees->n_trees * sizeof(AgTree) + trees->n_nodes * sizeof(AgTreeNode) +
				   trees->n_leaves * sizeof(double) + trees->n_set_words * sizeof(uint64_t));

	return bytes > FEW_TREES_BYTES && mem->limit_bytes - mem->used_bytes < 5 * bytes;
}

static AgStatus
boost(AgBooster *booster, AgBoostResult *result)
{
	bool is_kept;

	ag_history_begin(&result->history, booster->stop.metric);
	for (booster->round = 1; booster->round <= booster->params.num_boost_round; booster->round++)
	{
		if (booster->round > 1 && ag_out_of_time(booster->ctx))
		{
			booster->is_stopped_by_time = true;
			break;
		}
		AG_TRY(boost_round(booster, &is_kept));
		if (!is_kept)
			break;
		result->rounds_run = booster->round;
		AG_TRY(take_round(booster, &result->history));
		result->stopped_by_patience = ag_early_stop_done(&booster->stop, booster->round);
		result->stopped_by_memory = is_full_of_trees(booster);
		if (result->stopped_by_patience || result->stopped_by_memory ||
			booster->is_stopped_by_time || is_exhausted(booster))
			break;
	}
	result->stopped_by_time = booster->is_stopped_by_time;
	if (result->rounds_run == 0)
		return ag_error_set(booster->ctx->error, AG_ERR_TIME,
							"time limit passed before the first tree was grown");
	return AG_OK;
}

static AgStatus
finish(AgBooster *booster, AgBoostResult *result)
{
	const AgContext *ctx = booster->ctx;
	const AgTargetStats *stats = booster->data->stats;
	int n_features = stats != NULL ? stats->n_features : booster->data->bins->n_features;
	int n_outputs = booster->loss.n_outputs;

	result->best_value = (double) NAN;
	result->best_round = result->rounds_run - booster->n_idle;
	if (result->best_round < 1)
		result->best_round = 1;
	if (booster->valid.n_rows > 0)
	{
		result->best_round = booster->stop.best_round;
		result->best_value = booster->stop.best_value;
	}
	ag_trees_builder_cut(&booster->trees,
						 (size_t) (booster->data->keeps_rounds && booster->valid.n_rows > 0
									   ? result->rounds_run
									   : result->best_round) *
							 (size_t) n_outputs);
	AG_TRY(ag_trees_builder_finish(ctx, &booster->trees, n_features, n_outputs,
								   booster->loss.objective->link, booster->loss.base,
								   &result->trees));
	AG_TRY(ag_valid_finish(ctx, &booster->valid, &booster->gpu));
	result->valid_proba = booster->valid.best;
	booster->valid.best = NULL;
	return AG_OK;
}

/* *device_failed: it is to be done again, without the device. */
static AgStatus
train_once(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params,
		   AgBoostResult *result, bool *device_failed)
{
	AgBooster *booster;
	AgStatus status;

	memset(result, 0, sizeof *result);
	*device_failed = false;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *booster, &booster));
	booster->ctx = ctx;
	booster->data = data;
	booster->params = *params;
	booster->params.monotone = data->monotone;
	if (data->monotone != NULL && params->loss == AG_LOSS_AUTO &&
		data->problem == AG_PROBLEM_REGRESSION)
		booster->params.loss =
			AG_LOSS_SQUARED; /* a metric of absolute errors would ask for percentiles */
	if (params->min_data_per_group == 0)
		booster->params.min_data_per_group = ag_boost_group_rows(data->n_train);
	if (params->splits_by_weight)
		booster->params.lambda_l2 *= ag_mean_weight(data);
	booster->next_report_ns = ag_clock_ns() + AG_PROGRESS_NS;
	AG_GO(create_booster(booster));
	AG_GO(boost(booster, result));
	AG_GO(finish(booster, result));
done:
	*device_failed = booster->gpu.has_failed && booster->gpu.boost != NULL && status != AG_OK;
	if (status != AG_OK)
		ag_boost_result_free(ctx, result);
	result->on_gpu = status == AG_OK && booster->gpu.boost != NULL;
	result->gpu_failed = booster->gpu.has_failed;
	memcpy(result->cpu_because, booster->gpu.why, sizeof result->cpu_because);
	free_booster(booster);
	ag_mem_free(ctx->mem, booster);
	return status;
}

/* A device that fails takes nothing with it: the CPU begins anew, and comes to the same trees. */
AgStatus
ag_boost_train(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params,
			   AgBoostResult *result)
{
	bool device_failed;
	AgAgain again;
	AgStatus status = train_once(ctx, data, params, result, &device_failed);

	if (!ag_again_begin(&again, ctx, device_failed, result->cpu_because))
		return status;
	status = train_once(&again.ctx, data, params, result, &device_failed);
	ag_again_end(&again, &result->gpu_failed, result->cpu_because);
	return status;
}

void
ag_boost_result_free(const AgContext *ctx, AgBoostResult *result)
{
	ag_trees_free(result->trees);
	ag_mem_free(ctx->mem, result->valid_proba);
	memset(result, 0, sizeof *result);
}

int64_t
ag_boost_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads)
{
	AgGrowth growth = growth_of(data, params);
	int64_t n_out = ag_train_outputs(data);
	AgLossParams of_loss = loss_params(params);
	int64_t bytes = ag_loss_memory(data, &of_loss) +
					ag_grower_memory(data->bins, data->n_train, &growth, n_threads) +
					data->n_valid * 8 * (3 * n_out + 1) +
					growth.max_leaves * (int64_t) (2 * sizeof(AgRouteNode)) +
					(params->leaf_steps > 1 ? ag_leaf_steps_memory(data, growth.max_leaves) : 0);

	if (has_bagging(params))
		bytes += 8 * data->n_train;
	if (params->splits_by_weight)
		bytes += data->bins->n_rows * (int64_t) sizeof(AgGradient);
	if (params->is_ordered)
		bytes += ag_ordered_memory(data, params, n_threads);
	return bytes + (INT64_C(1) << 20);
}
