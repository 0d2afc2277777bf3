/*
 * boost_gpu.c - a booster's trees grown on a device.
 *
 * The device holds rows, scores and gradients, and grows whole trees; what is computed once a tree stays here: the rules, the
 * leaves' values from exact sums, the model. A failure of the device is no failure of the fit: has_failed tells the booster to
 * begin again on the CPU, where the same trees come out.
 */
#include "engine/model/boost_gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/data/bins_device.h"
#include "engine/model/goss.h"
#include "engine/model/leaves_step.h"
#include "engine/model/target_stats.h"

/* Whatever a device said, as a status of the engine; the text is in gpu->why. */
static AgStatus
take_status(const AgContext *ctx, AgBoostGpu *gpu, AgDeviceStatus status)
{
	if (status == AG_DEVICE_OK)
		return AG_OK;
	if (status == AG_DEVICE_STOPPED)
		return ag_check_cancel(ctx);
	gpu->gpu->is_lost = gpu->gpu->is_lost || status == AG_DEVICE_LOST;
	gpu->has_failed = true;
	snprintf(gpu->why, sizeof gpu->why, "%s", gpu->gpu->ops->why(gpu->gpu->device));
	return AG_ERR_SYSTEM;
}

/* What the device can watch of it; else none. */
static AgDeviceMetric
metric_of(const AgGpu *gpu, const AgTrainData *data)
{
	if (data->n_valid == 0 || gpu->ops->boost_metric == NULL || gpu->ops->boost_keep == NULL ||
		gpu->ops->boost_kept == NULL ||
		(data->metric_weight != NULL && data->metric_weight != data->weight))
		return AG_DEVICE_NO_METRIC;
	switch (data->stop_metric)
	{
		case AG_METRIC_ACCURACY:
		case AG_METRIC_F1_MICRO:
		case AG_METRIC_PRECISION_MICRO:
		case AG_METRIC_RECALL_MICRO:
			return AG_DEVICE_METRIC_HITS;
		case AG_METRIC_LOG_LOSS:
			return AG_DEVICE_METRIC_LOG;
		case AG_METRIC_RMSE:
		case AG_METRIC_MSE:
			return AG_DEVICE_METRIC_SQUARED;
		case AG_METRIC_MAE:
			return AG_DEVICE_METRIC_ABSOLUTE;
		case AG_METRIC_MAPE:
			return AG_DEVICE_METRIC_SHARE;
		case AG_METRIC_SMAPE:
			return AG_DEVICE_METRIC_SYMMETRIC;
		default:
			return AG_DEVICE_NO_METRIC;
	}
}

/* As renews_leaves of boost.c. */
static bool
renews(const AgLoss *loss, const AgBoostParams *params)
{
	return loss->objective->renews_leaves &&
		   (params->leaf_method == AG_LEAF_AUTO || params->leaf_method == AG_LEAF_EXACT);
}

/* What no device does, in words; NULL: nothing. */
static const char *
unsupported(const AgGpu *gpu, const AgLoss *loss, const AgBoostParams *params)
{
	const AgDeviceOps *ops = gpu->ops;

	if (gpu->is_lost)
		return "the GPU failed before";
	if (ops->matrix_create == NULL || ops->boost_memory == NULL || ops->boost_create == NULL ||
		ops->boost_gradients == NULL || ops->boost_grow == NULL || ops->boost_add == NULL ||
		ops->boost_valid == NULL)
		return "the module grows no boosted trees";
	if (loss->objective->on_device == AG_DEVICE_NO_LOSS)
		return "its loss is learnt on the CPU only";
	if (params->monotone != NULL && params->grow_order == AG_GROW_SYMMETRIC)
		return "monotone constraints of symmetric trees are kept on the CPU only";
	if (params->is_ordered)
		return "ordered boosting is done on the CPU only";
	if (ag_goss_is_used(params))
		return "rows are drawn by their gradients (goss) on the CPU only";
	if (params->leaf_steps > 1 &&
		(ops->boost_step == NULL || ops->boost_sums == NULL || ops->boost_unstep == NULL))
		return "the module takes no several steps to leaf values";
	if (renews(loss, params) && ops->boost_renew == NULL)
		return "the module finds no percentiles";
	if (loss->data->stats != NULL && loss->data->stats->combiner != NULL)
		return "combinations of categories are counted on the CPU only";
	return NULL;
}

static void
fill_spec(const AgLoss *loss, const AgBoostParams *params, const AgGrowth *growth,
		  const AgBootstrap *bootstrap, const double *levels, AgDeviceMetric metric,
		  AgDeviceBoostSpec *spec)
{
	const AgTrainData *data = loss->data;
	int n = loss->n_outputs;

	*spec = (AgDeviceBoostSpec){
		.loss = loss->objective->on_device,
		.n_outputs = n,
		.unit = loss->unit,
		.positive = params->scale_pos_weight,
		.multiclass_hessian = params->multiclass_hessian > 0.0 ? params->multiclass_hessian
							  : n > 1                          ? (double) n / (n - 1)
															   : 1.0,
		.delta = loss->params.delta,
		.power = loss->params.power,
		.step = loss->params.step,
		.is_relative = loss->objective->is_relative,
		.renews_leaves = levels != NULL,
		.sums_weights = params->leaf_method == AG_LEAF_GRADIENT,
		.levels = levels,
		.monotone = params->monotone,
		.metric = metric,
		.weighs_metric = data->metric_weight != NULL,
		.target = data->target,
		.class_of = data->class_of,
		.weight = data->weight,
		.train_rows = data->train_rows,
		.n_train = data->n_train,
		.valid_rows = data->valid_rows,
		.n_valid = data->n_valid,
		.base = loss->base,
		.order = growth->is_symmetric   ? AG_DEVICE_SYMMETRIC
				 : growth->is_depthwise ? AG_DEVICE_DEPTHWISE
										: AG_DEVICE_BEST_FIRST,
		.max_leaves = growth->max_leaves,
		.max_depth = growth->max_depth,
		.has_cosine_score = growth->has_cosine_score,
		.fraction_bylevel = growth->feature_fraction_bylevel,
		.fraction_bynode = growth->feature_fraction_bynode,
		.has_draws = params->splits_by_weight,
		.draw_kind = params->splits_by_weight ? (int32_t) bootstrap->kind : 0,
		.draw_temperature = bootstrap->temperature,
		.draw_share = bootstrap->share};
}

/* What leaves are found by, where it isn't gradients and hessians. */
static void
look_at_leaves(const AgLoss *loss, const AgBoostParams *params, AgBoostGpu *gpu)
{
	const AgTrainData *data = loss->data;

	gpu->renews_leaves = renews(loss, params);
	gpu->sums_weights = params->leaf_method == AG_LEAF_GRADIENT;
	if (gpu->renews_leaves && (data->weight != NULL || loss->objective->is_relative))
		gpu->error_scale = ag_fixed_scale(ag_loss_largest_weight(loss), data->n_train);
	for (int64_t i = 0; gpu->sums_weights && i < data->n_train; i++)
	{
		float weight = (float) ag_row_weight(data, data->train_rows[i]);

		gpu->most_weight = weight > gpu->most_weight ? weight : gpu->most_weight;
	}
}

/* The levels of an objective's percentiles, to be given back; NULL: it has none that a device has a part in. */
static AgStatus
levels_of(const AgContext *ctx, const AgLoss *loss, double **levels)
{
	*levels = NULL;
	if (!loss->objective->renews_leaves)
		return AG_OK;
	AG_TRY(ag_get(ctx, (size_t) loss->n_outputs, sizeof **levels, levels));
	for (int k = 0; k < loss->n_outputs; k++)
		(*levels)[k] = ag_loss_level(loss, k);
	return AG_OK;
}

/* The booster there; or what a device said of it. */
static AgDeviceStatus
take_device(const AgContext *ctx, const AgDeviceBoostSpec *spec, AgBoostGpu *gpu)
{
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDeviceShape shape = ag_bins_shape(gpu->bins);
	int64_t need = ops->boost_memory(&shape, spec);
	AgDeviceStatus status = ag_bins_on_device(ctx, gpu->bins, gpu->gpu, need, &gpu->matrix);

	if (status != AG_DEVICE_OK)
		return status;
	ag_bins_tell_need(ctx, gpu->gpu, gpu->matrix, need);
	return ops->boost_create(gpu->gpu->device, gpu->matrix, spec, &gpu->boost);
}

AgStatus
ag_boost_gpu_create(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
					AgGrower *grower, const AgBootstrap *bootstrap, AgBoostGpu *gpu)
{
	size_t n_leaves = (size_t) grower->growth.max_leaves;
	const char *why = unsupported(ctx->gpu, loss, params);
	AgDeviceBoostSpec spec;
	double *levels;

	memset(gpu, 0, sizeof *gpu);
	gpu->gpu = ctx->gpu;
	gpu->grower = grower;
	if (why != NULL)
	{
		snprintf(gpu->why, sizeof gpu->why, "%s", why);
		return AG_OK;
	}
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgDeviceNode), &gpu->tree.nodes));
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgDeviceLeaf), &gpu->tree.leaves));
	AG_TRY(ag_get(ctx, n_leaves, 2 * sizeof(int64_t), &gpu->sums));
	AG_TRY(levels_of(ctx, loss, &levels));
	look_at_leaves(loss, params, gpu);
	gpu->metric = metric_of(gpu->gpu, loss->data);
	fill_spec(loss, params, &grower->growth, bootstrap, levels, gpu->metric, &spec);
	gpu->bins = loss->data->bins;
	take_status(ctx, gpu, take_device(ctx, &spec, gpu));
	ag_mem_free(ctx->mem, levels);
	return AG_OK;
}

/* The tree's rows, in one of several orders of statistics; the booster looks at them until the next tree. */
static AgStatus
use_matrix(const AgContext *ctx, AgBoostGpu *gpu, const AgBins *bins)
{
	if (gpu->grown_on == bins)
		return AG_OK;
	if (gpu->grown_on != NULL)
		ag_bins_let_go(gpu->grown_on, gpu->grown_matrix);
	gpu->grown_on = NULL;
	AG_TRY(take_status(ctx, gpu, ag_bins_on_device(ctx, bins, gpu->gpu, 0, &gpu->grown_matrix)));
	gpu->grown_on = bins;
	return AG_OK;
}

void
ag_boost_gpu_free(const AgContext *ctx, AgBoostGpu *gpu)
{
	if (gpu->boost != NULL)
		gpu->gpu->ops->boost_free(gpu->gpu->device, gpu->boost);
	if (gpu->bins != NULL)
		ag_bins_let_go(gpu->bins, gpu->matrix);
	if (gpu->grown_on != NULL)
		ag_bins_let_go(gpu->grown_on, gpu->grown_matrix);
	gpu->bins = gpu->grown_on = NULL;
	ag_mem_free(ctx->mem, gpu->tree.nodes);
	ag_mem_free(ctx->mem, gpu->tree.leaves);
	ag_mem_free(ctx->mem, gpu->sums);
	gpu->boost = NULL;
	gpu->tree.nodes = NULL;
	gpu->tree.leaves = NULL;
	gpu->sums = NULL;
}

AgStatus
ag_boost_gpu_begin(const AgContext *ctx, AgBoostGpu *gpu, const AgGpuTree *tree,
				   AgBootstrap *bootstrap, bool has_draws, AgGradientRange *range,
				   AgQuantum *quantum, bool *has_gain)
{
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDevice *device = gpu->gpu->device;
	AgDeviceRange all, drawn;

	AG_TRY(ag_check_cancel(ctx));
	AG_TRY(take_status(ctx, gpu, ops->boost_gradients(device, gpu->boost, tree->output, &all)));
	*range = (AgGradientRange){all.max_g, all.max_h};
	drawn = all;
	if (has_draws)
		AG_TRY(take_status(
			ctx, gpu,
			ops->boost_draw(device, gpu->boost, tree->draw_key, &drawn, &bootstrap->size_g)));
	*has_gain = drawn.max_g > 0.0f && drawn.max_h > 0.0f;
	if (!*has_gain)
		return AG_OK;
	quantum->g = (double) drawn.max_g / (AG_QUANTUM_MAX - 1);
	quantum->h = tree->has_equal_hessians ? 1.0 : (double) drawn.max_h / (AG_QUANTUM_MAX - 1);
	quantum->per_g = (AG_QUANTUM_MAX - 1) / (double) drawn.max_g;
	quantum->per_h = (AG_QUANTUM_MAX - 1) / (double) drawn.max_h;
	return AG_OK;
}

/* What the device asks between steps. */
typedef struct AgPoll
{
	const AgContext *ctx;
	AgGrower *grower;
} AgPoll;

static int
poll(void *arg)
{
	AgPoll *asked = arg;

	if (ag_cancelled(asked->ctx))
		return 2;
	if (ag_out_of_time(asked->ctx))
		return 1;
	if (asked->grower->tick != NULL)
		asked->grower->tick(asked->grower->tick_arg);
	return 0;
}

static AgDeviceRules
rules_for_device(const AgSplitRules *rules)
{
	return (AgDeviceRules){.l1 = rules->l1,
						   .l2 = rules->l2,
						   .cat_l2 = rules->cat_l2,
						   .max_step = rules->max_step,
						   .path_smooth = rules->path_smooth,
						   .min_gain = rules->min_gain,
						   .min_h = rules->min_h,
						   .min_rows = rules->min_rows,
						   .is_plain = rules->is_plain,
						   .has_random_cut = rules->has_random_cut,
						   .cat_smooth = rules->cat_smooth,
						   .cat_smooth_h = rules->cat_smooth_h,
						   .max_cat_threshold = rules->max_cat_threshold,
						   .max_cat_to_onehot = rules->max_cat_to_onehot,
						   .min_rows_per_group = rules->min_rows_per_group,
						   .noise = rules->noise,
						   .roots_gain = rules->roots_gain};
}

/* The tree as the grower would have left it. */
static void
take_tree(AgBoostGpu *gpu, AgLeaves *leaves)
{
	const AgDeviceTree *tree = &gpu->tree;
	AgGrower *grower = gpu->grower;

	grower->n_nodes = tree->n_nodes;
	grower->n_leaves = tree->n_leaves;
	grower->depth = tree->depth;
	grower->is_cut_short = tree->is_cut_short;
	for (int i = 0; i < tree->n_nodes; i++)
	{
		const AgDeviceSplit *from = &tree->nodes[i].split;
		AgSplit *to = &grower->nodes[i].split;

		*to = (AgSplit){.gain = from->gain,
						.rank = from->rank,
						.feature = from->feature,
						.bin = from->bin,
						.is_category = from->is_category,
						.has_cat_l2 = from->has_cat_l2,
						.missing_left = from->missing_left,
						.unseen_left = from->unseen_left,
						.left_g = from->left_g,
						.left_h = from->left_h};
		memcpy(to->left_bins, from->left_bins, sizeof to->left_bins);
		grower->nodes[i].left = tree->nodes[i].left;
		grower->nodes[i].right = tree->nodes[i].right;
	}
	for (int l = 0; l < tree->n_leaves; l++)
	{
		const AgDeviceLeaf *leaf = tree->leaves + l;

		grower->leaves[l] = (AgGrownLeaf){.n_rows = leaf->n_rows,
										  .parent_output = leaf->parent_output,
										  .low = leaf->low,
										  .high = leaf->high,
										  .has_cat_l2 = leaf->has_cat_l2};
		atomic_store(leaves->sums + 2 * l, leaf->sum_g);
		atomic_store(leaves->sums + 2 * l + 1, leaf->sum_h);
	}
}

/* The largest numbers that leaves sum. */
static AgGradientRange
leaf_range(const AgBoostGpu *gpu, const AgGradientRange *range)
{
	return gpu->sums_weights ? (AgGradientRange){range->max_g, gpu->most_weight} : *range;
}

AgStatus
ag_boost_gpu_grow(const AgContext *ctx, AgBoostGpu *gpu, const AgGpuTree *tree,
				  const AgSplitRules *rules, const AgLoss *loss, const AgGradientRange *range,
				  const AgQuantum *quantum, bool has_draws, AgLeaves *leaves)
{
	AgPoll asked = {ctx, gpu->grower};
	AgGradientRange at;
	AgDeviceTreeOrder order = {.from_draws = has_draws,
							   .rows = tree->bag,
							   .n_rows = tree->bag != NULL ? tree->n_bag : loss->data->n_train,
							   .has_equal_hessians = tree->has_equal_hessians,
							   .per_g = quantum->per_g,
							   .per_h = quantum->per_h,
							   .rounding_key = tree->rounding_key,
							   .growth_key = tree->growth_key,
							   .is_used = gpu->grower->is_used,
							   .rules = rules_for_device(rules),
							   .poll = poll,
							   .arg = &asked};

	at = leaf_range(gpu, range);
	ag_leaves_scales(&at, loss->data->n_train, &order.fixed_g, &order.fixed_h);
	AG_TRY(use_matrix(ctx, gpu, gpu->grower->bins));
	order.matrix = gpu->grown_matrix;
	AG_TRY(take_status(
		ctx, gpu, gpu->gpu->ops->boost_grow(gpu->gpu->device, gpu->boost, &order, &gpu->tree)));
	take_tree(gpu, leaves);
	return AG_OK;
}

/* As ag_leaves_renew. */
static AgStatus
renew_leaves(const AgContext *ctx, AgBoostGpu *gpu, int output, double learning_rate,
			 AgLeaves *leaves)
{
	AG_TRY(take_status(ctx, gpu,
					   gpu->gpu->ops->boost_renew(gpu->gpu->device, gpu->boost, output,
												  gpu->error_scale, leaves->values)));
	for (int l = 0; l < gpu->grower->n_leaves; l++)
	{
		double value = leaves->values[l] * learning_rate;

		leaves->values[l] = isfinite(value) ? value : 0.0;
	}
	return AG_OK;
}

/* The sums of the leaves' rows at the scores that steps have led to. */
static AgStatus
step_sums(const AgContext *ctx, AgBoostGpu *gpu, int output, const AgLoss *loss, AgLeaves *leaves,
		  const AgLeafSteps *steps, double *per_g, double *per_h)
{
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDeviceRange all;
	AgGradientRange now;

	AG_TRY(take_status(
		ctx, gpu, ops->boost_step(gpu->gpu->device, gpu->boost, output, leaves->values, &all)));
	now = (AgGradientRange){all.max_g, all.max_h};
	now = gpu->sums_weights ? leaf_range(gpu, &now) : ag_leaf_steps_range(steps, &now);
	ag_leaves_scales(&now, loss->data->n_train, per_g, per_h);
	AG_TRY(take_status(ctx, gpu,
					   ops->boost_sums(gpu->gpu->device, gpu->boost, *per_g, *per_h, gpu->sums)));
	for (int i = 0; i < 2 * gpu->grower->n_leaves; i++)
		atomic_store(leaves->sums + i, gpu->sums[i]);
	return AG_OK;
}

/* As ag_leaves_step, once the first step's sums are in leaves. */
AgStatus
ag_boost_gpu_values(const AgContext *ctx, AgBoostGpu *gpu, int output, const AgLoss *loss,
					const AgGradientRange *range, const AgQuantum *quantum,
					const AgBoostParams *params, AgLeaves *leaves, AgLeafSteps *steps)
{
	const AgGrower *grower = gpu->grower;
	int n_steps = params->leaf_steps > 1 && grower->n_leaves > 1 ? params->leaf_steps : 1;
	AgGradientRange at = leaf_range(gpu, range);
	AgBoostParams own = *params;
	double per_g, per_h;

	if (gpu->renews_leaves && grower->n_leaves > 1)
		return renew_leaves(ctx, gpu, output, params->learning_rate, leaves);
	ag_leaves_scales(&at, loss->data->n_train, &per_g, &per_h);
	if (n_steps == 1)
	{
		ag_leaves_set(leaves, grower, loss, per_g, per_h, quantum, params);
		return AG_OK;
	}
	own.learning_rate = 1.0;
	ag_leaf_steps_begin(steps, grower->n_leaves);
	for (int step = 0; step < n_steps; step++)
	{
		if (step > 0)
			AG_TRY(step_sums(ctx, gpu, output, loss, leaves, steps, &per_g, &per_h));
		ag_leaves_set(leaves, grower, loss, per_g, per_h, quantum, &own);
		if (!ag_leaf_steps_take(steps, leaves, grower->n_leaves, step))
			break;
	}
	for (int l = 0; l < grower->n_leaves; l++)
		leaves->values[l] = steps->values[l] * params->learning_rate;
	return take_status(ctx, gpu, gpu->gpu->ops->boost_unstep(gpu->gpu->device, gpu->boost, output));
}

AgStatus
ag_boost_gpu_add(const AgContext *ctx, AgBoostGpu *gpu, int output, const double *values)
{
	return take_status(ctx, gpu,
					   gpu->gpu->ops->boost_add(gpu->gpu->device, gpu->boost, output, values));
}

AgStatus
ag_boost_gpu_valid(const AgContext *ctx, AgBoostGpu *gpu, double *scores)
{
	return take_status(ctx, gpu, gpu->gpu->ops->boost_valid(gpu->gpu->device, gpu->boost, scores));
}

AgStatus
ag_boost_gpu_metric(const AgContext *ctx, AgBoostGpu *gpu, AgMetric metric, double *value)
{
	double sums[2];

	AG_TRY(take_status(ctx, gpu, gpu->gpu->ops->boost_metric(gpu->gpu->device, gpu->boost, sums)));
	*value = sums[0] / sums[1];
	if (metric == AG_METRIC_RMSE)
		*value = sqrt(*value);
	return AG_OK;
}

AgStatus
ag_boost_gpu_keep(const AgContext *ctx, AgBoostGpu *gpu)
{
	return take_status(ctx, gpu, gpu->gpu->ops->boost_keep(gpu->gpu->device, gpu->boost));
}

AgStatus
ag_boost_gpu_kept(const AgContext *ctx, AgBoostGpu *gpu, double *scores)
{
	return take_status(ctx, gpu, gpu->gpu->ops->boost_kept(gpu->gpu->device, gpu->boost, scores));
}
