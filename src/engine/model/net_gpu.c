/*
 * net_gpu.c - a net's training on a device: what goes there, when steps are handed over, and what comes back.
 */
#include "engine/model/net_gpu_plan.h"

#include <stdio.h>
#include <string.h>

#define DROP_LEVELS 65536.0

/* --- to the device, and back */

static AgStatus
take_status(const AgContext *ctx, AgNetGpu *gpu, AgDeviceStatus status)
{
	if (status == AG_DEVICE_OK)
		return AG_OK;
	gpu->gpu->is_lost = gpu->gpu->is_lost || status == AG_DEVICE_LOST;
	gpu->has_failed = true;
	snprintf(gpu->why, sizeof gpu->why, "%s", gpu->gpu->ops->why(gpu->gpu->device));
	return ag_error_set(ctx->error, AG_ERR_SYSTEM, "%s", gpu->why);
}

/* Only products see them then, which round them in any case. */
static bool
rounds_numbers(const AgNetPlan *plan)
{
	const AgNet *net = plan->t->net;

	return plan->in_half && net->n_waves == 0 && (net->bends & AG_NET_BENDS) == 0 &&
		   plan->t->numbers.hat == NULL && net->n_members == 0;
}

static void
fill_spec(const AgNetPlan *plan, const AgDeviceNetSlot *slots, const float *quantiles,
		  AgDeviceNetSpec *spec)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;

	*spec = (AgDeviceNetSpec){.n_floats = plan->n_floats,
							  .n_rows = t->matrix->n_rows,
							  .number_stride = (int64_t) t->matrix->stride,
							  .numbers = t->matrix->numbers,
							  .n_numbers = (int32_t) net->dense->n_numbers,
							  .n_slots = (int32_t) net->n_slots,
							  .row_slots = t->matrix->slots,
							  .slots = slots,
							  .no_column = net->dense->n_columns,
							  .bends = (net->bends & AG_NET_BENDS) != 0,
							  .in_pieces = (net->bends & AG_NET_IN_PIECES) != 0,
							  .n_inputs = (int32_t) net->n_inputs,
							  .input_stride = (int32_t) ag_net_stride(net->n_inputs),
							  .n_waves = (int32_t) net->n_waves,
							  .n_wave_inputs = (int32_t) net->n_wave_inputs,
							  .first_wave = (int32_t) net->first_wave,
							  .waves = (int64_t) net->first_wave_value,
							  .n_train = t->data->n_train,
							  .train_rows = t->data->train_rows,
							  .loss = net->link == AG_NET_SOFTMAX     ? AG_DEVICE_NET_SOFTMAX
									  : net->link == AG_NET_RANGE     ? AG_DEVICE_NET_RANGE
									  : net->link == AG_NET_QUANTILES ? AG_DEVICE_NET_QUANTILES
																	  : AG_DEVICE_NET_SQUARED,
							  .target = t->target,
							  .weight = t->weight,
							  .class_of = net->link == AG_NET_SOFTMAX ? t->data->class_of : NULL,
							  .quantiles = net->link == AG_NET_QUANTILES ? quantiles : NULL,
							  .n_outputs = (int32_t) net->n_outputs,
							  .smoothing = t->smoothing,
							  .n_batch = t->batch_size,
							  .n_members = net->n_members > 0 ? (int32_t) net->n_members : 1,
							  .ops = plan->ops,
							  .n_ops = plan->n_ops,
							  .has_half = plan->in_half,
							  .n_halves = plan->n_halves,
							  .half_numbers = rounds_numbers(plan)};
}

/* The first weights, and what follows from them. */
static AgDeviceStatus
write_weights(AgNetGpu *gpu, const AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDevice *device = gpu->gpu->device;
	AgDeviceStatus status = ops->net_write(device, gpu->net, 0, (int64_t) net->n_values, t->values);

	if (status == AG_DEVICE_OK && t->input_scale != NULL)
		status = ops->net_write(device, gpu->net, plan->input_scale,
								(int64_t) ag_net_stride(net->n_inputs), t->input_scale);
	if (status == AG_DEVICE_OK && t->effective != NULL)
		status = ops->net_write(
			device, gpu->net, plan->effective,
			(int64_t) (ag_net_round(net->n_inputs) * ag_net_stride(net->layers[0].n_out)),
			t->effective);
	if (status == AG_DEVICE_OK && t->numbers.hat != NULL)
		status = ops->net_write(
			device, gpu->net,
			plan->numbers.running + (int64_t) ag_net_stride(net->dense->n_numbers),
			(int64_t) ag_net_stride(net->dense->n_numbers), t->numbers.running_square);
	for (uint32_t l = 0; l < net->n_layers && status == AG_DEVICE_OK; l++)
	{
		const AgNetLayer *layer = &net->layers[l];
		int64_t stride = (int64_t) ag_net_stride(layer->n_out);

		if (t->rows[l].back != NULL)
			status = ops->net_write(device, gpu->net, plan->layers[l].back,
									(int64_t) (ag_net_heads(net, l) * ag_net_back_floats(layer)),
									t->rows[l].back);
		if (layer->has_norm && status == AG_DEVICE_OK)
			status = ops->net_write(device, gpu->net, plan->layers[l].running + stride, stride,
									t->rows[l].running_square);
	}
	return status;
}

/* Bytes that single precision would take more, but for what the device rounds sizes to. */
static int64_t
saved_bytes(const AgNetPlan *plan)
{
	AgNetPlan single = {.t = plan->t};
	int64_t n_numbers = plan->t->matrix->n_rows * (int64_t) plan->t->matrix->stride;

	ag_net_plan_place(&single);
	return 4 * (single.n_floats - plan->n_floats) - 2 * plan->n_halves +
		   (rounds_numbers(plan) ? 2 * n_numbers : 0);
}

/* What it took, once it is there, and what it would have taken without half precision. */
static void
tell_need(const AgContext *ctx, const AgNetGpu *gpu, const AgNetPlan *plan)
{
	AgDeviceMemory memory;
	double used, left;

	gpu->gpu->ops->memory(gpu->gpu->device, &memory);
	used = (double) (memory.used_bytes - gpu->bytes_before) / 1e6;
	left = (double) (memory.limit_bytes - memory.used_bytes) / 1e6;
	if (plan->in_half)
		ag_log(ctx, AG_LOG_RESOURCES,
			   "Takes %.2f MB of %s, with products in half (bfloat16) precision; "
			   "in single precision it would take %.2f MB; "
			   "%.2f MB of this training's share are free",
			   used, gpu->gpu->name, used + (double) saved_bytes(plan) / 1e6, left);
	else
		ag_log(ctx, AG_LOG_RESOURCES,
			   "Takes %.2f MB of %s, with products in single precision; %.2f MB of this training's "
			   "share are free",
			   used, gpu->gpu->name, left);
}

/* *done: what the device said. */
static AgStatus
create(const AgContext *ctx, AgNetGpu *gpu, AgNetPlan *plan, AgDeviceStatus *done)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	AgDeviceNetSlot *slots = NULL;
	float *quantiles = NULL;
	AgDeviceNetSpec spec;
	AgStatus status;

	ag_net_plan_ops(plan);
	AG_GO(ag_get(ctx, (size_t) plan->n_ops, sizeof *plan->ops, &plan->ops));
	ag_net_plan_ops(plan);
	AG_GO(ag_get(ctx, (size_t) net->n_slots + 1, sizeof *slots, &slots));
	AG_GO(ag_get(ctx, (size_t) t->data->n_quantiles + 1, sizeof *quantiles, &quantiles));
	for (uint32_t s = 0; s < net->n_slots; s++)
		slots[s] = (AgDeviceNetSlot){
			net->slots[s].first == AG_NET_ONE_HOT ? -1 : (int64_t) net->slots[s].first,
			net->dense->slots[s].first, net->dense->slots[s].width, net->slots[s].first_input,
			net->slots[s].n_inputs};
	for (int k = 0; k < t->data->n_quantiles; k++)
		quantiles[k] = (float) t->data->quantiles[k];
	fill_spec(plan, slots, quantiles, &spec);
	*done = gpu->gpu->ops->net_create(gpu->gpu->device, &spec, &gpu->net);
	if (*done == AG_DEVICE_OK)
		*done = write_weights(gpu, plan);
	status = AG_OK;
done:
	ag_mem_free(ctx->mem, plan->ops);
	ag_mem_free(ctx->mem, slots);
	ag_mem_free(ctx->mem, quantiles);
	return status;
}

/* The plan, and the net by it. */
static AgStatus
try_create(const AgContext *ctx, AgNetTrainer *t, bool in_half, AgNetGpu *gpu, AgNetPlan *plan,
		   AgDeviceStatus *done)
{
	*plan = (AgNetPlan){.t = t, .in_half = in_half};
	ag_net_plan_place(plan);
	if (plan->n_floats > INT32_MAX ||
		plan->n_halves > INT32_MAX) /* counts of an op are of 32 bits */
	{
		snprintf(gpu->why, sizeof gpu->why, "a net of that size is trained on the CPU only");
		*done = AG_DEVICE_OK;
		return AG_OK;
	}
	return create(ctx, gpu, plan, done);
}

AgStatus
ag_net_gpu_create(const AgContext *ctx, AgNetTrainer *t, AgNetGpu *gpu)
{
	const AgDeviceOps *ops = ctx->gpu->ops;
	AgDeviceMemory memory;
	AgDeviceStatus done;
	AgNetPlan plan;

	memset(gpu, 0, sizeof *gpu);
	gpu->gpu = ctx->gpu;
	if (ctx->gpu->is_lost || ops->net_create == NULL || ops->net_steps == NULL)
	{
		snprintf(gpu->why, sizeof gpu->why, "%s",
				 ctx->gpu->is_lost ? "the GPU failed before" : "the module trains no neural nets");
		return AG_OK;
	}
	ops->memory(ctx->gpu->device, &memory);
	gpu->bytes_before = memory.used_bytes;
	AG_TRY(try_create(ctx, t, t->params.use_half, gpu, &plan, &done));
	if (done == AG_DEVICE_UNSUPPORTED && plan.in_half)
	{
		snprintf(gpu->half_because, sizeof gpu->half_because, "%s", ops->why(ctx->gpu->device));
		AG_TRY(try_create(ctx, t, false, gpu, &plan, &done));
	}
	if (done != AG_DEVICE_OK)
	{
		ctx->gpu->is_lost = ctx->gpu->is_lost || done == AG_DEVICE_LOST;
		gpu->has_failed = true;
		snprintf(gpu->why, sizeof gpu->why, "%s", ops->why(ctx->gpu->device));
		ag_net_gpu_free(gpu);
	}
	if (gpu->net == NULL)
		return AG_OK;
	gpu->in_half = plan.in_half;
	gpu->at_input_scale = plan.input_scale;
	gpu->at_numbers = plan.numbers.running;
	for (uint32_t l = 0; l < t->net->n_layers; l++)
		gpu->at_running[l] = plan.layers[l].running;
	gpu->most_steps = ag_net_plan_steps(&plan);
	tell_need(ctx, gpu, &plan);
	return AG_OK;
}

void
ag_net_gpu_free(AgNetGpu *gpu)
{
	if (gpu->net != NULL)
		gpu->gpu->ops->net_free(gpu->gpu->device, gpu->net);
	gpu->net = NULL;
}

static AgStatus
hand_over(const AgContext *ctx, AgNetGpu *gpu)
{
	int n = gpu->n_steps;

	gpu->n_steps = 0;
	if (n == 0)
		return AG_OK;
	return take_status(ctx, gpu,
					   gpu->gpu->ops->net_steps(gpu->gpu->device, gpu->net, gpu->steps, n));
}

AgStatus
ag_net_gpu_order(const AgContext *ctx, AgNetGpu *gpu, const uint32_t *places)
{
	AG_TRY(hand_over(ctx, gpu));
	return take_status(ctx, gpu, gpu->gpu->ops->net_order(gpu->gpu->device, gpu->net, places));
}

static uint32_t
drop_below(double probability)
{
	return (uint32_t) (probability * DROP_LEVELS + 0.5);
}

AgStatus
ag_net_gpu_step(const AgContext *ctx, AgNetGpu *gpu, const AgNetTrainer *t, int64_t first,
				uint64_t dropout_key)
{
	gpu->steps[gpu->n_steps++] =
		(AgDeviceNetStep){.first = first,
						  .dropout_key = dropout_key,
						  .drop_below = drop_below(t->params.dropout_prob),
						  .input_drop_below = drop_below(t->params.embedding_dropout_prob),
						  .rate = t->adam.rate,
						  .beta1 = t->adam.beta1,
						  .beta2 = t->adam.beta2,
						  .root = t->adam.root,
						  .eps = t->adam.eps,
						  .decay = t->adam.decay,
						  .shrink = t->adam.shrink};
	return gpu->n_steps < gpu->most_steps ? AG_OK : hand_over(ctx, gpu);
}

AgStatus
ag_net_gpu_fetch(const AgContext *ctx, AgNetGpu *gpu, AgNetTrainer *t)
{
	const AgNet *net = t->net;
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDevice *device = gpu->gpu->device;

	AG_TRY(hand_over(ctx, gpu));
	AG_TRY(take_status(ctx, gpu,
					   ops->net_read(device, gpu->net, 0, (int64_t) net->n_values, t->values)));
	if (t->input_scale != NULL)
		AG_TRY(take_status(ctx, gpu,
						   ops->net_read(device, gpu->net, gpu->at_input_scale,
										 (int64_t) ag_net_stride(net->n_inputs), t->input_scale)));
	if (t->numbers.hat != NULL)
	{
		int64_t width = (int64_t) ag_net_stride(net->dense->n_numbers);

		AG_TRY(take_status(
			ctx, gpu,
			ops->net_read(device, gpu->net, gpu->at_numbers, width, t->numbers.running_mean)));
		AG_TRY(take_status(ctx, gpu,
						   ops->net_read(device, gpu->net, gpu->at_numbers + width, width,
										 t->numbers.running_square)));
	}
	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		int64_t stride = (int64_t) ag_net_stride(net->layers[l].n_out);

		if (!net->layers[l].has_norm)
			continue;
		AG_TRY(take_status(
			ctx, gpu,
			ops->net_read(device, gpu->net, gpu->at_running[l], stride, t->rows[l].running_mean)));
		AG_TRY(take_status(ctx, gpu,
						   ops->net_read(device, gpu->net, gpu->at_running[l] + stride, stride,
										 t->rows[l].running_square)));
	}
	if (t->effective != NULL)
		ag_net_weights_spread(t, 0, 0, 0, (uint32_t) ag_net_round(net->layers[0].n_in));
	return AG_OK;
}
