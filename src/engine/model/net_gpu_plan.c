/*
 * net_gpu_plan.c - see net_gpu_plan.h.
 *
 * The list follows net_batch.c and net_update.c step by step; what differs is that each operation is over the whole batch.
 */
#include "engine/model/net_gpu_plan.h"

#include <math.h>
#include <string.h>

static int64_t
place(AgNetPlan *plan, size_t n)
{
	int64_t at = plan->n_floats;

	plan->n_floats += (int64_t) ag_net_round(n);
	return at;
}

static int64_t
place_if(AgNetPlan *plan, const void *array, size_t n)
{
	return array != NULL ? place(plan, n) : -1;
}

/* What may be rounded: copies of weights, and what a batch leaves behind in a layer. */
static int64_t
place_rounded(AgNetPlan *plan, size_t n)
{
	int64_t at = AG_NET_HALVES + plan->n_halves;

	if (!plan->in_half)
		return place(plan, n);
	plan->n_halves += (int64_t) ag_net_round(n);
	return at;
}

static int64_t
place_rounded_if(AgNetPlan *plan, const void *array, size_t n)
{
	return array != NULL ? place_rounded(plan, n) : -1;
}

static void
place_norm(AgNetPlan *plan, const AgNetRows *rows, size_t stride, size_t n, AgNetRoom *room)
{
	room->hat = place_rounded_if(plan, rows->hat, n);
	room->mean = place(plan, stride);
	room->scale = place(plan, stride);
	room->sum_delta = place(plan, stride);
	room->sum_hat = place(plan, stride);
	room->running = place(plan, 2 * stride);
}

void
ag_net_plan_place(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	size_t stride = ag_net_stride(net->n_inputs), batch = (size_t) t->batch_size;
	size_t members = net->n_members > 0 ? net->n_members : 1;

	place(plan, net->n_values);
	plan->mean = place(plan, net->n_values);
	plan->square = place(plan, net->n_values);
	plan->gradient = place(plan, net->n_values);
	plan->input_scale = place_if(plan, t->input_scale, stride);
	plan->scale_mean = place_if(plan, t->input_scale, stride);
	plan->scale_square = place_if(plan, t->input_scale, stride);
	plan->scale_gradient = place_if(plan, t->input_scale, stride);
	plan->effective = place_rounded_if(
		plan, t->effective, ag_net_round(net->n_inputs) * ag_net_stride(net->layers[0].n_out));
	plan->inputs = place(plan, batch * stride);
	plan->input_deltas = place_if(plan, t->input_deltas, batch * stride);
	plan->input_keep = place_if(plan, t->input_keep, batch * stride);
	plan->spread = place_rounded_if(plan, t->spread, batch * members * stride);
	plan->spread_deltas = place_rounded_if(plan, t->spread, batch * members * stride);
	if (t->numbers.hat != NULL)
	{
		size_t width = ag_net_stride(net->dense->n_numbers);

		place_norm(plan, &t->numbers, width, batch * width, &plan->numbers);
	}
	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		const AgNetLayer *layer = &net->layers[l];
		const AgNetRows *rows = &t->rows[l];
		AgNetRoom *room = &plan->layers[l];
		size_t width = ag_net_stride(layer->n_out), n = batch * members * width;
		bool is_last = l + 1 == net->n_layers; /* the loss wants its sums whole */

		room->post = is_last ? place(plan, n) : place_rounded(plan, n);
		room->delta = is_last ? place(plan, n) : place_rounded(plan, n);
		room->slope = place_rounded_if(plan, rows->slope, n);
		room->back =
			place_rounded_if(plan, rows->back, ag_net_heads(net, l) * ag_net_back_floats(layer));
		room->keep = place_rounded_if(plan, rows->keep, n);
		if (layer->has_norm)
			place_norm(plan, rows, width, n, room);
	}
}

static AgDeviceNetOp *
add(AgNetPlan *plan, AgDeviceNetKind kind, int64_t n_rows, size_t n_columns)
{
	AgDeviceNetOp *op = plan->ops != NULL ? &plan->ops[plan->n_ops] : &plan->counted;

	plan->n_ops++;
	memset(op, 0, sizeof *op);
	op->kind = kind;
	op->n_rows = (int32_t) n_rows;
	op->n_columns = (int32_t) n_columns;
	op->n_lots = 1;
	op->index = -1;
	op->d = -1;
	return op;
}

/* --- forward */

static int64_t
member_rows(const AgNetPlan *plan)
{
	uint32_t members = plan->t->net->n_members;

	return (int64_t) plan->t->batch_size * (members > 0 ? members : 1);
}

#define FLOPS_AT_ONCE 1e11

int
ag_net_plan_steps(const AgNetPlan *plan)
{
	double n = FLOPS_AT_ONCE / (6.0 * (double) member_rows(plan) * (double) plan->t->net->n_values);

	return n >= AG_NET_GPU_STEPS ? AG_NET_GPU_STEPS : n < 1.0 ? 1 : (int) n;
}

/* Rows that one head of a layer is for. */
static int64_t
head_rows(const AgNetPlan *plan, uint32_t l)
{
	return member_rows(plan) / ag_net_heads(plan->t->net, l);
}

static void
add_inputs(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	size_t stride = ag_net_stride(net->n_inputs);
	size_t dropped = net->first_wave / AG_NET_LANES * AG_NET_LANES;
	AgDeviceNetOp *op = add(plan, AG_NET_DO_INPUT, t->batch_size, stride);

	op->a = plan->inputs;
	if (plan->input_keep >= 0)
	{
		op = add(plan, AG_NET_DO_DROP, t->batch_size, ag_net_round(net->n_inputs) - dropped);
		op->a = plan->input_keep + (int64_t) dropped;
		op->a_stride = (int64_t) stride;
		op->index = (int32_t) net->n_layers;
		op->flag = (int32_t) (net->first_wave - dropped);
		op = add(plan, AG_NET_DO_SCALE, t->batch_size, ag_net_round(net->n_inputs) - dropped);
		op->a = plan->inputs + (int64_t) dropped;
		op->b = plan->input_keep + (int64_t) dropped;
		op->a_stride = op->b_stride = (int64_t) stride;
	}
	if (t->numbers.hat != NULL)
	{
		int64_t gamma = (int64_t) ag_net_number_norm_at(net);
		size_t width = ag_net_stride(net->dense->n_numbers);
		const AgNetRoom *room = &plan->numbers;

		op = add(plan, AG_NET_DO_STATS, t->batch_size, net->dense->n_numbers);
		op->a = plan->inputs;
		op->a_stride = (int64_t) stride;
		op->c = room->mean;
		op->d = room->scale;
		op->e = room->running;
		op->f = room->running + (int64_t) width;
		op = add(plan, AG_NET_DO_NUMBER_NORM, t->batch_size, net->dense->n_numbers);
		op->a = plan->inputs;
		op->a_stride = (int64_t) stride;
		op->b = room->hat;
		op->b_stride = (int64_t) width;
		op->c = room->mean;
		op->d = room->scale;
		op->e = gamma;
		op->f = gamma + (int64_t) width;
	}
	if (plan->spread >= 0)
	{
		op = add(plan, AG_NET_DO_SPREAD, member_rows(plan), stride);
		op->n_inner = t->batch_size;
		op->a = plan->spread;
		op->b = plan->inputs;
		op->c = (int64_t) ag_net_factors_at(net);
		op->a_stride = op->b_stride = op->c_stride = (int64_t) stride;
	}
}

/* Where a layer's products find their rows. */
static int64_t
layer_inputs(const AgNetPlan *plan, uint32_t l)
{
	return l > 0 ? plan->layers[l - 1].post : plan->spread >= 0 ? plan->spread : plan->inputs;
}

static void
add_norm(AgNetPlan *plan, uint32_t l)
{
	const AgNetLayer *layer = &plan->t->net->layers[l];
	const AgNetRoom *room = &plan->layers[l];
	int64_t stride = (int64_t) ag_net_stride(layer->n_out), gamma = (int64_t) ag_net_norm_at(layer);
	AgDeviceNetOp *op = add(plan, AG_NET_DO_STATS, member_rows(plan), ag_net_round(layer->n_out));

	op->a = room->post;
	op->a_stride = stride;
	op->c = room->mean;
	op->d = room->scale;
	op->e = room->running;
	op->f = room->running + stride;
	op = add(plan, AG_NET_DO_NORM, member_rows(plan), ag_net_round(layer->n_out));
	op->a = room->post;
	op->b = room->hat;
	op->a_stride = op->b_stride = stride;
	op->c = room->mean;
	op->d = room->scale;
	op->e = gamma;
	op->f = gamma + stride;
	op->more = room->keep;
	op->index = room->keep >= 0 ? (int32_t) l : -1;
}

static void
add_forward(AgNetPlan *plan, uint32_t l)
{
	const AgNetTrainer *t = plan->t;
	const AgNetLayer *layer = &t->net->layers[l];
	const AgNetRoom *room = &plan->layers[l];
	int64_t stride = (int64_t) ag_net_stride(layer->n_out);
	size_t n = ag_net_round(layer->n_out);
	AgDeviceNetOp *op = add(plan, AG_NET_DO_PRODUCT, head_rows(plan, l), n);

	op->n_inner = (int32_t) layer->n_in;
	op->n_lots = (int32_t) ag_net_heads(t->net, l);
	op->a = layer_inputs(plan, l);
	op->a_stride = (int64_t) ag_net_stride(layer->n_in);
	op->a_inner = 1;
	op->b = l == 0 && plan->effective >= 0 ? plan->effective : (int64_t) layer->first;
	op->b_stride = op->c_stride = stride;
	op->c = room->post;
	op->d = (int64_t) ag_net_bias_at(layer);
	op->a_lot = op->n_rows * op->a_stride;
	op->c_lot = op->n_rows * stride;
	op->b_lot = op->d_lot = (int64_t) ag_net_layer_values(layer);
	if (l + 1 == t->net->n_layers)
		return;
	op = add(plan, AG_NET_DO_ACTIVATE, member_rows(plan), n);
	op->a = room->post;
	op->b = room->slope;
	op->a_stride = op->b_stride = stride;
	op->flag = (int32_t) layer->activation;
	op->index = ag_net_has_dropout(t, l) && !layer->has_norm ? (int32_t) l : -1;
	if (layer->has_norm)
		add_norm(plan, l);
}

/* --- backward */

/* A product of derivatives with transposed weights, from column `first` of the layer's inputs on. */
static void
add_back_product(AgNetPlan *plan, uint32_t l, size_t first, int64_t to)
{
	const AgNetLayer *layer = &plan->t->net->layers[l];
	const AgNetRoom *room = &plan->layers[l];
	AgDeviceNetOp *op =
		add(plan, AG_NET_DO_PRODUCT, head_rows(plan, l), ag_net_round(layer->n_in) - first);

	op->n_inner = (int32_t) layer->n_out;
	op->n_lots = (int32_t) ag_net_heads(plan->t->net, l);
	op->a = room->delta;
	op->a_stride = (int64_t) ag_net_stride(layer->n_out);
	op->a_inner = 1;
	op->b = room->back + (int64_t) first;
	op->b_stride = op->c_stride = (int64_t) ag_net_stride(layer->n_in);
	op->c = to + (int64_t) first;
	op->a_lot = op->n_rows * op->a_stride;
	op->b_lot = (int64_t) ag_net_back_floats(layer);
	op->c_lot = op->n_rows * op->c_stride;
}

/* Derivatives of layer l's inputs, as far back as the sums of the layer below. */
static void
add_back(AgNetPlan *plan, uint32_t l)
{
	const AgNetLayer *layer = &plan->t->net->layers[l], *lower = layer - 1;
	const AgNetRoom *below = &plan->layers[l - 1];
	int64_t factors = lower->has_norm ? below->keep : below->slope;
	int64_t stride = (int64_t) ag_net_stride(lower->n_out), gamma = (int64_t) ag_net_norm_at(lower);
	AgDeviceNetOp *op;

	add_back_product(plan, l, 0, below->delta);
	if (factors >= 0)
	{
		op = add(plan, AG_NET_DO_SCALE, member_rows(plan), ag_net_round(lower->n_out));
		op->a = below->delta;
		op->b = factors;
		op->a_stride = op->b_stride = stride;
	}
	if (!lower->has_norm)
		return;
	op = add(plan, AG_NET_DO_NORM_SUMS, member_rows(plan), ag_net_round(lower->n_out));
	op->a = below->delta;
	op->b = below->hat;
	op->a_stride = op->b_stride = stride;
	op->c = below->sum_delta;
	op->d = below->sum_hat;
	op = add(plan, AG_NET_DO_NORM_BACK, member_rows(plan), ag_net_round(lower->n_out));
	op->a = below->delta;
	op->b = below->hat;
	op->a_stride = stride;
	op->c = below->sum_delta;
	op->d = below->scale;
	op->e = below->sum_hat;
	op->f = gamma;
	op->more = below->slope;
}

static void
add_input_back(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	int64_t stride = (int64_t) ag_net_stride(net->n_inputs);
	size_t first = t->first_learnt_input / AG_NET_LANES * AG_NET_LANES;
	size_t dropped = net->first_wave / AG_NET_LANES * AG_NET_LANES;
	AgDeviceNetOp *op;

	if (plan->spread >= 0)
		add_back_product(plan, 0, 0, plan->spread_deltas);
	if (plan->input_deltas < 0)
		return;
	if (plan->spread >= 0)
	{
		op = add(plan, AG_NET_DO_GATHER, t->batch_size, (size_t) stride);
		op->n_lots = (int32_t) net->n_members;
		op->a = plan->input_deltas;
		op->b = plan->spread_deltas;
		op->c = (int64_t) ag_net_factors_at(net);
		op->a_stride = op->b_stride = op->c_stride = stride;
	}
	else
		add_back_product(plan, 0, first, plan->input_deltas);
	if (plan->input_keep < 0)
		return;
	op = add(plan, AG_NET_DO_SCALE, t->batch_size, ag_net_round(net->n_inputs) - dropped);
	op->a = plan->input_deltas + (int64_t) dropped;
	op->b = plan->input_keep + (int64_t) dropped;
	op->a_stride = op->b_stride = stride;
}

/* --- updates */

/* Values [at, at + n), or what lies there, along gradients at g. */
static void
add_adam(AgNetPlan *plan, int64_t at, int64_t g, size_t n, float rate, bool decays)
{
	AgDeviceNetOp *op = add(plan, AG_NET_DO_ADAM, 1, n);

	op->a = at;
	op->b = g;
	op->c = plan->mean + at;
	op->d = plan->square + at;
	op->rate = rate;
	op->flag = decays;
}

/* The first layer sees weights times its inputs' scales. */
static void
add_input_scale(AgNetPlan *plan, const AgNetLayer *layer, int64_t gradient)
{
	size_t n_in = ag_net_round(layer->n_in);
	AgDeviceNetOp *op = add(plan, AG_NET_DO_DOTS, (int64_t) n_in, ag_net_round(layer->n_out));

	op->a = gradient;
	op->b = (int64_t) layer->first;
	op->a_stride = op->b_stride = (int64_t) ag_net_stride(layer->n_out);
	op->c = plan->scale_gradient;
	op->d = plan->input_scale;
	op = add(plan, AG_NET_DO_ADAM, 1, n_in);
	op->a = plan->input_scale;
	op->b = plan->scale_gradient;
	op->c = plan->scale_mean;
	op->d = plan->scale_square;
	op->rate = plan->t->rates.input_scale;
	op->flag = true;
}

static void
add_spread_weights(AgNetPlan *plan, uint32_t l)
{
	const AgNetTrainer *t = plan->t;
	const AgNetLayer *layer = &t->net->layers[l];
	int64_t stride = (int64_t) ag_net_stride(layer->n_out), weights = (int64_t) layer->first;
	size_t n_in = ag_net_round(layer->n_in), first = 0;
	AgDeviceNetOp *op;

	if (l == 0 && plan->effective >= 0)
	{
		op = add(plan, AG_NET_DO_ROW_SCALE, (int64_t) n_in, (size_t) stride);
		op->a = weights;
		op->b = plan->input_scale;
		op->c = weights = plan->effective;
		op->a_stride = op->c_stride = stride;
	}
	if (l == 0 && plan->spread < 0)
		first = t->first_learnt_input / AG_NET_LANES * AG_NET_LANES;
	if (plan->layers[l].back < 0 || first >= n_in)
		return;
	op = add(plan, AG_NET_DO_TRANSPOSE, (int64_t) (n_in - first), ag_net_round(layer->n_out));
	op->n_lots = (int32_t) ag_net_heads(t->net, l);
	op->a = weights + (int64_t) first * stride;
	op->a_stride = stride;
	op->a_lot = (int64_t) ag_net_layer_values(layer);
	op->c = plan->layers[l].back + (int64_t) first;
	op->c_stride = (int64_t) ag_net_stride(layer->n_in);
	op->c_lot = (int64_t) ag_net_back_floats(layer);
}

static void
add_bias(AgNetPlan *plan, uint32_t l)
{
	const AgNetTrainer *t = plan->t;
	const AgNetLayer *layer = &t->net->layers[l];
	const AgNetRoom *room = &plan->layers[l];
	int64_t stride = (int64_t) ag_net_stride(layer->n_out), gamma = (int64_t) ag_net_norm_at(layer);
	size_t n = ag_net_round(layer->n_out);
	uint32_t heads = ag_net_heads(t->net, l);
	bool decays = t->params.family == AG_NET_NN_TORCH;

	if (ag_net_has_bias(t, l))
	{
		int64_t bias = (int64_t) ag_net_bias_at(layer);
		AgDeviceNetOp *op = add(plan, AG_NET_DO_SUMS, head_rows(plan, l), n);

		op->n_lots = (int32_t) heads;
		op->a = room->delta;
		op->a_stride = stride;
		op->a_lot = op->n_rows * stride;
		op->c = plan->gradient + bias;
		op->c_lot = (int64_t) ag_net_layer_values(layer);
		for (uint32_t h = 0; h < heads; h++)
			add_adam(plan, bias + h * (int64_t) ag_net_layer_values(layer),
					 plan->gradient + bias + h * (int64_t) ag_net_layer_values(layer), n,
					 t->rates.bias, decays);
	}
	if (!layer->has_norm)
		return;
	add_adam(plan, gamma, room->sum_hat, n, t->rates.bias, decays);
	add_adam(plan, gamma + stride, room->sum_delta, n, t->rates.bias, decays);
}

static void
add_layer_update(AgNetPlan *plan, uint32_t l)
{
	const AgNetTrainer *t = plan->t;
	const AgNetLayer *layer = &t->net->layers[l];
	int64_t stride = (int64_t) ag_net_stride(layer->n_out), first = (int64_t) layer->first;
	size_t n_in = ag_net_round(layer->n_in);
	uint32_t heads = ag_net_heads(t->net, l);
	float rate = t->rates.by_width ? 1.0f / sqrtf((float) layer->n_in) : 1.0f;
	AgDeviceNetOp *op = add(plan, AG_NET_DO_PRODUCT, (int64_t) n_in, ag_net_round(layer->n_out));

	op->n_inner = (int32_t) head_rows(plan, l);
	op->n_lots = (int32_t) heads;
	op->a = layer_inputs(plan, l);
	op->a_stride = 1;
	op->a_inner = (int64_t) ag_net_stride(layer->n_in);
	op->a_lot = op->n_inner * op->a_inner;
	op->b = plan->layers[l].delta;
	op->b_stride = op->c_stride = stride;
	op->b_lot = op->n_inner * stride;
	op->c = plan->gradient + first;
	op->c_lot = (int64_t) ag_net_layer_values(layer);
	if (l == 0 && plan->effective >= 0)
		add_input_scale(plan, layer, plan->gradient + first);
	for (uint32_t h = 0; h < heads; h++)
	{
		int64_t at = first + h * (int64_t) ag_net_layer_values(layer);

		add_adam(plan, at, plan->gradient + at, n_in * (size_t) stride, rate, true);
	}
	add_spread_weights(plan, l);
	add_bias(plan, l);
}

static void
add_factors_update(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	int64_t stride = (int64_t) ag_net_stride(t->net->n_inputs);
	int64_t factors = (int64_t) ag_net_factors_at(t->net);
	AgDeviceNetOp *op = add(plan, AG_NET_DO_PAIRS, t->batch_size, (size_t) stride);

	op->n_lots = (int32_t) t->net->n_members;
	op->a = plan->spread_deltas;
	op->b = plan->inputs;
	op->a_stride = op->b_stride = op->c_lot = stride;
	op->a_lot = t->batch_size * stride;
	op->c = plan->gradient + factors;
	add_adam(plan, factors, plan->gradient + factors, t->net->n_members * (size_t) stride,
			 t->rates.input_scale, false);
}

/* What the inputs are made with: embeddings, waves, and the numbers' scale and shift. */
static void
add_input_updates(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	const AgNet *net = t->net;
	int64_t stride = (int64_t) ag_net_stride(net->n_inputs);
	AgDeviceNetOp *op;

	if (t->numbers.hat != NULL)
	{
		int64_t gamma = (int64_t) ag_net_number_norm_at(net);
		int64_t width = (int64_t) ag_net_stride(net->dense->n_numbers);

		op = add(plan, AG_NET_DO_NORM_SUMS, t->batch_size, net->dense->n_numbers);
		op->a = plan->input_deltas;
		op->a_stride = stride;
		op->b = plan->numbers.hat;
		op->b_stride = width;
		op->c = plan->gradient + gamma + width;
		op->d = plan->gradient + gamma;
		add_adam(plan, gamma, plan->gradient + gamma, 2 * (size_t) width, t->rates.bias, false);
	}
	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];
		size_t n;

		if (slot->first == AG_NET_ONE_HOT)
			continue;
		n = ag_net_slot_rows(net, s) * slot->n_inputs;
		op = add(plan, AG_NET_DO_CLEAR, 1, n);
		op->a = plan->gradient + (int64_t) slot->first;
		op = add(plan, AG_NET_DO_EMBEDDING, t->batch_size, slot->n_inputs);
		op->index = (int32_t) s;
		op->flag = (int32_t) slot->first_input;
		op->a = plan->input_deltas;
		op->a_stride = stride;
		op->c = plan->gradient + (int64_t) slot->first;
		add_adam(plan, (int64_t) slot->first, op->c, n, t->rates.embedding, true);
	}
	if (net->n_waves == 0)
		return;
	op = add(plan, AG_NET_DO_WAVES, t->batch_size, 0);
	op->a = plan->input_deltas;
	op->a_stride = stride;
	op->b = (int64_t) net->first_wave_value;
	op->c = plan->gradient + (int64_t) net->first_wave_value;
	op->d = plan->inputs;
	add_adam(plan, (int64_t) net->first_wave_value,
			 plan->gradient + (int64_t) net->first_wave_value,
			 net->dense->n_numbers * ag_net_wave_values(net->n_waves, net->n_wave_inputs),
			 t->rates.waves, true);
}

/* Updates come behind all derivatives: these are by the weights as they were. */
void
ag_net_plan_ops(AgNetPlan *plan)
{
	const AgNetTrainer *t = plan->t;
	uint32_t n = t->net->n_layers;
	const AgNetRoom *last = &plan->layers[n - 1];
	AgDeviceNetOp *op;

	plan->n_ops = 0;
	add_inputs(plan);
	for (uint32_t l = 0; l < n; l++)
		add_forward(plan, l);
	op = add(plan, AG_NET_DO_LOSS, member_rows(plan), t->net->n_outputs);
	op->n_inner = t->batch_size;
	op->a = last->post;
	op->b = last->delta;
	op->a_stride = op->b_stride = (int64_t) ag_net_stride(t->net->n_outputs);
	for (uint32_t l = n - 1; l > 0; l--)
		add_back(plan, l);
	add_input_back(plan);
	add_input_updates(plan);
	if (plan->spread >= 0)
		add_factors_update(plan);
	for (uint32_t l = 0; l < n; l++)
		add_layer_update(plan, l);
}
