/*
 * net_shape.c - which inputs and layers a net has, where its numbers lie, and whether all of that is in order.
 */
#include <math.h>

#include "engine/base/maths.h"
#include "engine/model/net_private.h"

#define MAX_INPUTS 0x10000000u
#define MAX_OUTPUTS 10000u
#define FASTAI_MAX_EMBEDDING 600.0
#define REALMLP_EMBEDDING 8

AgStatus
ag_net_create(const AgContext *ctx, const AgDense *dense, AgNet **net)
{
	AgArena arena;
	AgNet *made;

	*net = NULL;
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof *made, ctx->error);
	}
	made->arena = arena;
	made->dense = dense;
	made->ops = ag_net_ops();
	*net = made;
	return AG_OK;
}

AgStatus
ag_net_map_numbers(const AgContext *ctx, AgNet *net)
{
	const AgDense *dense = net->dense;
	uint32_t *map = ag_arena_alloc(&net->arena, (size_t) dense->n_numbers + 1, sizeof *map);

	if (map == NULL)
		return ag_mem_error(ctx->mem, (size_t) dense->n_numbers * sizeof *map, ctx->error);
	for (uint32_t f = 0; f < dense->n_features; f++)
		if (dense->features[f].number != AG_DENSE_NONE)
			map[dense->features[f].number] = f;
	net->feature_of_number = map;
	return AG_OK;
}

int
ag_net_widths(const AgNetParams *params, const AgTrainData *data, uint32_t *widths)
{
	int n = params->layers.n;
	double most;

	for (int l = 0; l < n; l++)
		widths[l] = (uint32_t) params->layers.values[l];
	if (n > 0)
		return n;
	for (n = 0; n < params->num_layers; n++)
		widths[n] = (uint32_t) params->hidden_size;
	if (n > 0)
		return n;
	/* FASTAI's own rule */
	most = data->problem == AG_PROBLEM_MULTICLASS ? 2.0 * data->n_classes : 100.0;
	most = most < 100.0 ? 100.0 : most > AG_NET_MAX_WIDTH / 2 ? AG_NET_MAX_WIDTH / 2 : most;
	widths[0] = (uint32_t) (2.0 * most);
	widths[1] = (uint32_t) most;
	return 2;
}

uint32_t
ag_net_embedding_width(const AgNetParams *params, uint32_t n_levels)
{
	bool is_torch = params->family == AG_NET_NN_TORCH;
	double width =
		1.6 * ag_exp((is_torch ? params->embed_exponent : 0.56) * ag_ln((double) n_levels));

	if (params->family >= AG_NET_REALMLP)
		return REALMLP_EMBEDDING;
	if (!is_torch)
		return (uint32_t) fmin(FASTAI_MAX_EMBEDDING, floor(width + 0.5));
	width = floor(params->embed_factor * fmax(2.0, fmin(params->embed_most, width)));
	return (uint32_t) fmax(1.0, fmin(AG_NET_MAX_WIDTH, width));
}

/* Numbers, one-hot slots, waves, embeddings. */
static AgStatus
shape_inputs(const AgContext *ctx, const AgNetParams *params, AgNet *net)
{
	const AgDense *dense = net->dense;
	uint64_t n_inputs = dense->n_numbers, n_values = 0;
	AgNetSlot *slots = ag_arena_alloc(&net->arena, (size_t) dense->n_slots + 1, sizeof *slots);

	if (slots == NULL)
		return ag_mem_error(ctx->mem, (size_t) dense->n_slots * sizeof *slots, ctx->error);
	net->slots = slots;
	net->n_slots = dense->n_slots;
	for (uint32_t s = 0; s < dense->n_slots; s++)
	{
		bool is_category = dense->features[dense->slots[s].feature].kind == AG_DENSE_CATEGORY;

		slots[s].first = 0;
		if (is_category && dense->slots[s].width >= (uint32_t) params->embed_min_levels)
			continue;
		slots[s].first = AG_NET_ONE_HOT;
		slots[s].first_input = (uint32_t) n_inputs;
		slots[s].n_inputs = dense->slots[s].width;
		n_inputs += slots[s].n_inputs;
	}
	net->first_wave = (uint32_t) n_inputs;
	if (params->numeric_waves && dense->n_numbers > 0)
	{
		net->n_waves = AG_NET_WAVES;
		net->n_wave_inputs = (uint32_t) params->n_wave_inputs;
		n_inputs += (uint64_t) dense->n_numbers * net->n_wave_inputs;
		n_values = dense->n_numbers * ag_net_wave_values(AG_NET_WAVES, net->n_wave_inputs);
	}
	for (uint32_t s = 0; s < dense->n_slots; s++)
	{
		if (slots[s].first == AG_NET_ONE_HOT)
			continue;
		slots[s].first = n_values;
		slots[s].first_input = (uint32_t) n_inputs;
		slots[s].n_inputs = ag_net_embedding_width(params, dense->slots[s].width + 1);
		n_inputs += slots[s].n_inputs;
		n_values += ag_net_slot_rows(net, s) * slots[s].n_inputs;
	}
	if (n_inputs > MAX_INPUTS)
		return ag_error_set(ctx->error, AG_ERR_DATA, "too many inputs for a neural net");
	net->n_inputs = (uint32_t) n_inputs;
	net->n_members = (uint32_t) params->n_members;
	net->n_values = ag_net_round(n_values) + net->n_members * ag_net_stride(net->n_inputs);
	if (ag_net_norms_numbers(params, dense))
		net->n_values += 2 * ag_net_stride(dense->n_numbers);
	return AG_OK;
}

static AgStatus
shape_layers(const AgContext *ctx, const AgTrainData *data, const AgNetParams *params, AgNet *net)
{
	uint32_t widths[AG_NET_MAX_LAYERS];
	int n = ag_net_widths(params, data, widths);
	AgNetLayer *layers = ag_arena_alloc(&net->arena, (size_t) n + 1, sizeof *layers);

	if (layers == NULL)
		return ag_mem_error(ctx->mem, (size_t) n * sizeof *layers, ctx->error);
	net->layers = layers;
	net->n_layers = (uint32_t) n + 1;
	for (int l = 0; l <= n; l++)
	{
		static const AgActivation kinds[] = {AG_ACT_RELU, AG_ACT_ELU, AG_ACT_TANH, AG_ACT_SELU,
											 AG_ACT_MISH};
		AgActivation kind = params->activation != AG_NET_ACT_AUTO    ? kinds[params->activation]
							: !ag_problem_has_classes(data->problem) ? AG_ACT_MISH
																	 : AG_ACT_SELU;

		layers[l].n_in = l == 0 ? net->n_inputs : widths[l - 1];
		layers[l].n_out = l == n ? net->n_outputs : widths[l];
		layers[l].activation = l == n ? AG_ACT_NONE : kind;
		/* NN_TORCH's last hidden layer has neither normalisation nor dropout */
		layers[l].has_norm = params->use_batchnorm && net->n_members == 0 &&
							 (l < n - 1 || (l < n && params->family == AG_NET_FASTAI));
		layers[l].first = net->n_values;
		net->n_values += ag_net_heads(net, (uint32_t) l) * ag_net_layer_values(&layers[l]);
	}
	return AG_OK;
}

AgStatus
ag_net_shape(const AgContext *ctx, const AgDense *dense, const AgTrainData *data,
			 const AgNetParams *params, AgNet **net)
{
	AgStatus status;

	AG_TRY(ag_net_create(ctx, dense, net));
	(*net)->bends = params->family >= AG_NET_REALMLP ? AG_NET_BENDS : 0;
	if (params->numeric_waves && params->wave_kind == AG_NET_PIECES)
		(*net)->bends |= AG_NET_IN_PIECES;
	(*net)->n_outputs = (uint32_t) ag_train_outputs(data);
	(*net)->link = ag_problem_has_classes(data->problem)  ? AG_NET_SOFTMAX
				   : data->problem == AG_PROBLEM_QUANTILE ? AG_NET_QUANTILES
				   : params->family == AG_NET_NN_TORCH    ? AG_NET_RANGE
														  : AG_NET_IDENTITY;
	AG_GO(shape_inputs(ctx, params, *net));
	AG_GO(shape_layers(ctx, data, params, *net));
	AG_GO(ag_net_map_numbers(ctx, *net));
done:
	if (status != AG_OK)
	{
		ag_net_free(*net);
		*net = NULL;
	}
	return status;
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

/* Do n values from first on lie within the array? */
static bool
has_values(const AgNet *net, uint64_t first, uint64_t n)
{
	return first <= net->n_values && n <= net->n_values - first;
}

static AgStatus
check_layers(const AgContext *ctx, const AgNet *net)
{
	uint32_t n_in = net->n_inputs;

	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		const AgNetLayer *layer = &net->layers[l];
		bool is_last = l + 1 == net->n_layers;

		if (layer->n_in != n_in || layer->n_out == 0 ||
			layer->n_out > (is_last ? MAX_OUTPUTS : AG_NET_MAX_WIDTH) ||
			(is_last && layer->n_out != net->n_outputs))
			return corrupt(ctx, "a layer's widths are wrong");
		if (layer->activation > AG_ACT_NONE || layer->has_norm > 1)
			return corrupt(ctx, "a layer is of an unknown kind");
		if (!has_values(net, layer->first, ag_net_heads(net, l) * ag_net_layer_values(layer)))
			return corrupt(ctx, "a layer's weights lie outside of their section");
		n_in = layer->n_out;
	}
	return AG_OK;
}

static AgStatus
check_inputs(const AgContext *ctx, const AgNet *net)
{
	const AgDense *dense = net->dense;
	uint64_t n_waves = (uint64_t) dense->n_numbers * net->n_wave_inputs;

	if (net->n_inputs > MAX_INPUTS || dense->n_numbers > net->n_inputs ||
		net->n_slots != dense->n_slots)
		return corrupt(ctx, "its inputs don't fit the transform");
	if (net->n_members * ag_net_stride(net->n_inputs) > net->layers[0].first)
		return corrupt(ctx, "its members' factors are not where they must be");
	if (net->n_waves > AG_NET_WAVES || net->n_wave_inputs > AG_NET_LANES)
		return corrupt(ctx, "it has too many waves");
	if (net->n_waves > 0 &&
		(net->first_wave > net->n_inputs || n_waves > net->n_inputs - net->first_wave ||
		 !has_values(net, net->first_wave_value,
					 dense->n_numbers * ag_net_wave_values(net->n_waves, net->n_wave_inputs))))
		return corrupt(ctx, "its waves are not where they must be");
	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];

		if (slot->first_input > net->n_inputs || slot->n_inputs > net->n_inputs - slot->first_input)
			return corrupt(ctx, "a slot's inputs are not where they must be");
		if (slot->first == AG_NET_ONE_HOT
				? slot->n_inputs != dense->slots[s].width
				: !has_values(net, slot->first, ag_net_slot_rows(net, s) * slot->n_inputs))
			return corrupt(ctx, "a slot's vectors are not where they must be");
	}
	return AG_OK;
}

AgStatus
ag_net_check(const AgContext *ctx, const AgNet *net)
{
	if (net->link > AG_NET_QUANTILES || net->n_outputs == 0 || net->n_outputs > MAX_OUTPUTS ||
		(net->n_outputs > 1 && net->link < AG_NET_SOFTMAX) ||
		(net->n_outputs == 1 && net->link == AG_NET_SOFTMAX))
		return corrupt(ctx, "its outputs are of an unknown kind");
	if (net->n_layers == 0 || net->n_layers > AG_NET_MAX_LAYERS + 1 ||
		net->bends > (AG_NET_BENDS | AG_NET_IN_PIECES) || net->n_members > AG_NET_MAX_MEMBERS)
		return corrupt(ctx, "its head is wrong");
	if (!isfinite(net->centre) || !isfinite(net->half_spread) || !isfinite(net->low) ||
		!isfinite(net->high) || net->low > net->high)
		return corrupt(ctx, "its range is no range");
	AG_TRY(check_inputs(ctx, net));
	AG_TRY(check_layers(ctx, net));
	for (uint64_t i = 0; !ctx->trusts_images && i < net->n_values; i++)
		if (!isfinite(net->values[i]))
			return corrupt(ctx, "a weight is no number");
	return AG_OK;
}
