/*
 * boost_gpu.c - a booster's trees grown on a device.
 *
 * The device holds rows, scores and gradients, and grows whole trees; what is computed once a tree stays here: the rules, the
 * leaves' values from exact sums, the model. A failure of the device is no failure of the fit: has_failed tells the booster to
 * begin again on the CPU, where the same trees come out.
 */
#include "engine/model/boost_gpu.h"

#include <stdio.h>
#include <string.h>

#include "engine/data/bins_device.h"
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
	if (params->monotone != NULL)
		return "monotone constraints are kept on the CPU only";
	if (params->is_ordered)
		return "ordered boosting is done on the CPU only";
	if (params->leaf_method == AG_LEAF_GRADIENT)
		return "leaf values by weights are found on the CPU only";
	if (params->leaf_steps > 1 &&
		(ops->boost_step == NULL || ops->boost_sums == NULL || ops->boost_unstep == NULL))
		return "the module takes no several steps to leaf values";
	if (loss->data->stats != NULL && loss->data->stats->combiner != NULL)
		return "combinations of categories are counted on the CPU only";
	return NULL;
}

static void
fill_spec(const AgLoss *loss, const AgBoostParams *params, const AgGrowth *growth,
		  const AgBootstrap *bootstrap, AgDeviceBoostSpec *spec)
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

AgStatus
ag_boost_gpu_create(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
					AgGrower *grower, const AgBootstrap *bootstrap, AgBoostGpu *gpu)
{
	size_t n_leaves = (size_t) grower->growth.max_leaves;
	const char *why = unsupported(ctx->gpu, loss, params);
	AgDeviceMatrix *matrix;
	AgDeviceBoostSpec spec;
	AgDeviceStatus status;
	AgDeviceShape shape;
	int64_t need;

	memset(gpu, 0, sizeof *gpu);
	gpu->gpu = ctx->gpu;
	gpu->grower = grower;
	if (why != NULL)
	{
		snprintf(gpu->why, sizeof gpu->why, "%s", why);
		return AG_OK;
	}
	fill_spec(loss, params, &grower->growth, bootstrap, &spec);
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgDeviceNode), &gpu->tree.nodes));
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgDeviceLeaf), &gpu->tree.leaves));
	AG_TRY(ag_get(ctx, n_leaves, 2 * sizeof(int64_t), &gpu->sums));
	shape = ag_bins_shape(loss->data->bins);
	need = gpu->gpu->ops->boost_memory(&shape, &spec);
	status = ag_bins_on_device(ctx, loss->data->bins, gpu->gpu, need, &matrix);
	if (status == AG_DEVICE_OK)
		ag_bins_tell_need(ctx, gpu->gpu, matrix, need);
	if (status == AG_DEVICE_OK)
		status = gpu->gpu->ops->boost_create(gpu->gpu->device, matrix, &spec, &gpu->boost);
	take_status(ctx, gpu, status);
	return AG_OK;
}

void
ag_boost_gpu_free(const AgContext *ctx, AgBoostGpu *gpu)
{
	if (gpu->boost != NULL)
		gpu->gpu->ops->boost_free(gpu->gpu->device, gpu->boost);
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
										  .has_cat_l2 = leaf->has_cat_l2};
		atomic_store(leaves->sums + 2 * l, leaf->sum_g);
		atomic_store(leaves->sums + 2 * l + 1, leaf->sum_h);
	}
}

AgStatus
ag_boost_gpu_grow(const AgContext *ctx, AgBoostGpu *gpu, const AgGpuTree *tree,
				  const AgSplitRules *rules, const AgLoss *loss, const AgGradientRange *range,
				  const AgQuantum *quantum, bool has_draws, AgLeaves *leaves)
{
	AgPoll asked = {ctx, gpu->grower};
	AgDeviceMatrix *matrix;
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

	ag_leaves_scales(range, loss->data->n_train, &order.fixed_g, &order.fixed_h);
	AG_TRY(take_status(ctx, gpu, ag_bins_on_device(ctx, gpu->grower->bins, gpu->gpu, 0, &matrix)));
	order.matrix = matrix;
	AG_TRY(take_status(
		ctx, gpu, gpu->gpu->ops->boost_grow(gpu->gpu->device, gpu->boost, &order, &gpu->tree)));
	take_tree(gpu, leaves);
	return AG_OK;
}

/* As ag_leaves_step, once the first step's sums are in leaves. */
AgStatus
ag_boost_gpu_values(const AgContext *ctx, AgBoostGpu *gpu, int output, const AgLoss *loss,
					const AgGradientRange *range, const AgQuantum *quantum,
					const AgBoostParams *params, AgLeaves *leaves, AgLeafSteps *steps)
{
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDevice *device = gpu->gpu->device;
	const AgGrower *grower = gpu->grower;
	int n_steps = params->leaf_steps > 1 && grower->n_leaves > 1 ? params->leaf_steps : 1;
	AgBoostParams own = *params;
	double per_g, per_h;

	ag_leaves_scales(range, loss->data->n_train, &per_g, &per_h);
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
		{
			AgDeviceRange all;
			AgGradientRange now;

			AG_TRY(take_status(ctx, gpu,
							   ops->boost_step(device, gpu->boost, output, leaves->values, &all)));
			now = (AgGradientRange){all.max_g, all.max_h};
			now = ag_leaf_steps_range(steps, &now);
			ag_leaves_scales(&now, loss->data->n_train, &per_g, &per_h);
			AG_TRY(take_status(ctx, gpu,
							   ops->boost_sums(device, gpu->boost, per_g, per_h, gpu->sums)));
			for (int i = 0; i < 2 * grower->n_leaves; i++)
				atomic_store(leaves->sums + i, gpu->sums[i]);
		}
		ag_leaves_set(leaves, grower, loss, per_g, per_h, quantum, &own);
		if (!ag_leaf_steps_take(steps, leaves, grower->n_leaves, step))
			break;
	}
	for (int l = 0; l < grower->n_leaves; l++)
		leaves->values[l] = steps->values[l] * params->learning_rate;
	return take_status(ctx, gpu, ops->boost_unstep(device, gpu->boost, output));
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
