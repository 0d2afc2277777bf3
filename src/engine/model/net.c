/*
 * net.c - prediction by a neural net: one row without memory of its own, or a block of rows, with the same bits.
 */
#include "engine/model/net.h"

#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/ascending.h"
#include "engine/model/net_maths.h"
#include "engine/model/net_private.h"

#define OUTPUT_CHUNK 256 /* outputs of one row whose sums lie on the stack */
#define MAX_LOGIT 1e30f

void
ag_net_free(AgNet *net)
{
	AgArena arena;

	if (net == NULL)
		return;
	ag_dense_free(net->own_dense);
	arena = net->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}

uint32_t
ag_net_n_out(const AgNet *net)
{
	return net->n_outputs;
}

float
ag_net_number(const AgNet *net, float x)
{
	return net->bends & AG_NET_BENDS ? ag_net_bend(x) : x;
}

/* What one number's waves are summed up to: out[n_wave_inputs]. */
static void
wave_inputs(const AgNet *net, const float *values, uint32_t number, float x, float *out)
{
	const float *w = values + net->first_wave_value +
					 number * ag_net_wave_values(net->n_waves, net->n_wave_inputs);
	const float *phases = w + net->n_waves, *sums = phases + net->n_waves;
	const float *bias = sums + net->n_waves * net->n_wave_inputs;

	for (uint32_t o = 0; o < net->n_wave_inputs; o++)
		out[o] = bias[o];
	for (uint32_t j = 0; j < net->n_waves; j++)
	{
		float u = w[j] * x + phases[j];
		float wave =
			net->bends & AG_NET_IN_PIECES ? ag_net_piece(u, j, net->n_waves) : ag_net_cos2pi(u);

		for (uint32_t o = 0; o < net->n_wave_inputs; o++)
			out[o] = out[o] + sums[o * net->n_waves + j] * wave;
	}
}

void
ag_net_inputs(const AgNet *net, const float *values, const float *numbers, const uint32_t *slots,
			  float *x)
{
	memset(x, 0, ag_net_stride(net->n_inputs) * sizeof *x);
	for (uint32_t j = 0; j < net->dense->n_numbers; j++)
	{
		x[j] = ag_net_number(net, numbers[j]);
		if (net->n_waves > 0)
			wave_inputs(net, values, j, x[j], x + net->first_wave + j * net->n_wave_inputs);
	}
	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];
		uint32_t first = net->dense->slots[s].first, width = net->dense->slots[s].width;
		uint32_t column = slots[s] == net->dense->n_columns ? width : slots[s] - first;

		if (slot->first != AG_NET_ONE_HOT)
			memcpy(x + slot->first_input, values + slot->first + (size_t) column * slot->n_inputs,
				   slot->n_inputs * sizeof *x);
		else if (column < width)
			x[slot->first_input + column] = 1.0f;
	}
}

/* Activation and normalisation of one row's sums, in place. */
static void
finish_sums(const AgNet *net, const AgNetLayer *layer, float *sums)
{
	size_t n = ag_net_round(layer->n_out), stride = ag_net_stride(layer->n_out);
	const float *scale = net->values + ag_net_norm_at(layer), *shift = scale + stride;

	net->ops->activate((AgActivation) layer->activation, n, sums, sums, NULL);
	if (layer->has_norm)
		for (size_t j = 0; j < n; j++)
			sums[j] = sums[j] * scale[j] + shift[j];
}

/* Single-precision sums of the last layer to doubles that no link stumbles over. */
static void
take_logits(const float *sums, uint32_t n, double *out)
{
	for (uint32_t k = 0; k < n; k++)
	{
		float z = sums[k];

		if (z != z)
			z = 0.0f;
		out[k] = z > MAX_LOGIT ? MAX_LOGIT : z < -MAX_LOGIT ? -MAX_LOGIT : z;
	}
}

/* A number in units of the spread, in the label's. */
static double
label_of(const AgNet *net, double z)
{
	double y = net->half_spread * z;

	y = (net->centre + y) + y; /* the whole spread may be too large for a double */
	return y > net->high ? net->high : y < net->low ? net->low : y;
}

static void
apply_link(const AgNet *net, double *out)
{
	double greatest = out[0], total = 0.0;

	if (net->link != AG_NET_SOFTMAX)
	{
		for (uint32_t k = 0; k < net->n_outputs; k++)
			out[k] = label_of(net, net->link == AG_NET_RANGE ? ag_sigmoid(out[k]) : out[k]);
		ag_ascending(out, (int) net->n_outputs, out);
		return;
	}
	for (uint32_t k = 1; k < net->n_outputs; k++)
		greatest = out[k] > greatest ? out[k] : greatest;
	for (uint32_t k = 0; k < net->n_outputs; k++)
	{
		out[k] = ag_exp(out[k] - greatest);
		total += out[k];
	}
	for (uint32_t k = 0; k < net->n_outputs; k++)
		out[k] /= total;
}

/* The numbers of one row, wherever they are. */
static float
row_number(const AgNet *net, const double *features, uint32_t number)
{
	uint32_t f = net->feature_of_number[number];

	return ag_net_number(net, ag_dense_number(net->dense, &net->dense->features[f], features[f]));
}

/* The first layer's sums in the making: inputs in their order, each times its row of weights; those that are 0 add nothing. */
typedef struct FirstSums
{
	const AgNet *net;
	const float *factors; /* [n_inputs] of a member; NULL: none */
	const float *weights; /* of the wanted outputs, from the first input on */
	float *sums;
	uint32_t n;
} FirstSums;

static void
add_input(const FirstSums *first, uint32_t input, float x)
{
	if (first->factors != NULL)
		x *= first->factors[input];
	first->net->ops->add_row(x, first->weights + input * ag_net_stride(first->net->layers[0].n_out),
							 first->sums, first->n);
}

static void
add_slots(const FirstSums *first, const double *features, bool wants_embeddings)
{
	const AgNet *net = first->net;
	const AgDense *dense = net->dense;

	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];
		uint32_t f = dense->slots[s].feature, width = dense->slots[s].width, column;

		if ((slot->first != AG_NET_ONE_HOT) != wants_embeddings)
			continue;
		column = ag_dense_column(dense, &dense->features[f], features[f]);
		column = column == dense->n_columns ? width : column - dense->slots[s].first;
		if (!wants_embeddings && column < width)
			add_input(first, slot->first_input + column, 1.0f);
		for (uint32_t i = 0; wants_embeddings && i < slot->n_inputs; i++)
			add_input(first, slot->first_input + i,
					  net->values[slot->first + (size_t) column * slot->n_inputs + i]);
	}
}

/* The first layer's outputs [from, from + n) for a member, or for a net without; layer_at: where its values are. */
static void
first_sums(const AgNet *net, const double *features, uint32_t member, size_t layer_at,
		   uint32_t from, uint32_t n, float *sums)
{
	const AgNetLayer *layer = &net->layers[0];
	FirstSums first = {net,
					   net->n_members > 0 ? net->values + ag_net_factors_at(net) +
												member * ag_net_stride(net->n_inputs)
										  : NULL,
					   net->values + layer_at + from, sums, n};

	memcpy(sums, net->values + layer_at + (ag_net_bias_at(layer) - layer->first) + from,
		   n * sizeof *sums);
	for (uint32_t j = 0; j < net->dense->n_numbers; j++)
		add_input(&first, j, row_number(net, features, j));
	add_slots(&first, features, false); /* one-hot slots lie before the waves, embeddings behind */
	for (uint32_t j = 0; net->n_waves > 0 && j < net->dense->n_numbers; j++)
	{
		float waves[AG_NET_LANES];

		wave_inputs(net, net->values, j, row_number(net, features, j), waves);
		for (uint32_t o = 0; o < net->n_wave_inputs; o++)
			add_input(&first, net->first_wave + j * net->n_wave_inputs + o, waves[o]);
	}
	add_slots(&first, features, true);
}

/* One row through the layers, with a member's factors and last layer. */
static void
run_member(const AgNet *net, const double *features, uint32_t member, double *out)
{
	_Alignas(64) float rows[2][AG_NET_MAX_WIDTH];
	_Alignas(64) float chunk[OUTPUT_CHUNK];
	uint32_t last = net->n_layers - 1;
	const AgNetLayer *layer = &net->layers[last];
	size_t last_at = layer->first + member * ag_net_layer_values(layer);
	size_t bias_at = last_at + (ag_net_bias_at(layer) - layer->first);
	float *x = rows[0], *sums = rows[1], *other;

	for (uint32_t l = 0; l < last; l++)
	{
		const AgNetLayer *hidden = &net->layers[l];
		uint32_t n = (uint32_t) ag_net_round(hidden->n_out);

		if (l == 0)
			first_sums(net, features, member, hidden->first, 0, n, sums);
		else
			net->ops->multiply(1, (int) hidden->n_in, (int) n, x, 0, 1, net->values + hidden->first,
							   ag_net_stride(hidden->n_out), net->values + ag_net_bias_at(hidden),
							   sums, n);
		finish_sums(net, hidden, sums);
		other = x;
		x = sums;
		sums = other;
	}
	for (uint32_t from = 0; from < layer->n_out; from += OUTPUT_CHUNK)
	{
		uint32_t n = layer->n_out - from < OUTPUT_CHUNK ? layer->n_out - from : OUTPUT_CHUNK;
		uint32_t rounded = (uint32_t) ag_net_round(n);

		if (last == 0)
			first_sums(net, features, member, last_at, from, rounded, chunk);
		else
			net->ops->multiply(1, (int) layer->n_in, (int) rounded, x, 0, 1,
							   net->values + last_at + from, ag_net_stride(layer->n_out),
							   net->values + bias_at + from, chunk, rounded);
		take_logits(chunk, n, out + from);
	}
	apply_link(net, out);
}

/* The mean of the members' predictions: adds one of n_members; the first one begins, the last one divides. */
static void
add_member(const AgNet *net, uint32_t member, const double *one, double *out)
{
	double share = 1.0 / net->n_members;

	for (uint32_t k = 0; k < net->n_outputs; k++)
		out[k] = (member == 0 ? 0.0 : out[k]) + one[k] * share;
}

void
ag_net_run(const AgNet *net, const double *features, void *scratch, double *out)
{
	double *one = scratch;

	if (net->n_members == 0)
		run_member(net, features, 0, out);
	for (uint32_t c = 0; c < net->n_members; c++)
	{
		run_member(net, features, c, one);
		add_member(net, c, one, out);
	}
}

/* The widest row of inputs or sums. */
static size_t
widest(const AgNet *net)
{
	size_t width = ag_net_stride(net->n_inputs);

	for (uint32_t l = 0; l < net->n_layers; l++)
		if (ag_net_stride(net->layers[l].n_out) > width)
			width = ag_net_stride(net->layers[l].n_out);
	return width;
}

/* Floats a row: two of the widest kind, and for members its inputs and one member's prediction. */
static size_t
row_floats(const AgNet *net)
{
	size_t n = 2 * widest(net);

	if (net->n_members > 0)
		n += ag_net_stride(net->n_inputs) + ag_net_round(net->n_outputs) * 2;
	return n;
}

size_t
ag_net_block_floats(const AgNet *net)
{
	return AG_NET_BLOCK * row_floats(net);
}

/* Rows of inputs through the layers: x[n][stride(n_inputs)] and sums are overwritten. */
static void
run_layers(const AgNet *net, uint32_t member, int n, float *x, float *sums, double *out)
{
	size_t x_stride = ag_net_stride(net->n_inputs), n_out = net->n_outputs;
	float *other;

	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		const AgNetLayer *layer = &net->layers[l];
		size_t stride = ag_net_stride(layer->n_out);
		const float *values = net->values + layer->first;

		if (l + 1 == net->n_layers)
			values += member * ag_net_layer_values(layer);
		net->ops->multiply(n, (int) layer->n_in, (int) ag_net_round(layer->n_out), x, x_stride, 1,
						   values, stride, values + (ag_net_bias_at(layer) - layer->first), sums,
						   stride);
		for (int i = 0; l + 1 < net->n_layers && i < n; i++)
			finish_sums(net, layer, sums + (size_t) i * stride);
		other = x;
		x = sums;
		sums = other;
		x_stride = stride;
	}
	for (int i = 0; i < n; i++)
	{
		take_logits(x + (size_t) i * x_stride, net->n_outputs, out + (size_t) i * n_out);
		apply_link(net, out + (size_t) i * n_out);
	}
}

/*
 * Rows of inputs to predictions. room: for how many rows scratch[room][row_floats] is made; the inputs lie at its
 * beginning.
 */
static void
run_inputs(const AgNet *net, int n, size_t room, float *scratch, double *out)
{
	size_t width = widest(net), stride = ag_net_stride(net->n_inputs), n_out = net->n_outputs;
	float *sums = scratch + room * width, *inputs = sums + room * width;
	double *one = (double *) (void *) (inputs + room * stride);

	if (net->n_members == 0)
	{
		run_layers(net, 0, n, scratch, sums, out);
		return;
	}
	memcpy(inputs, scratch, (size_t) n * stride * sizeof *inputs);
	for (uint32_t c = 0; c < net->n_members; c++)
	{
		const float *factors = net->values + ag_net_factors_at(net) + c * stride;

		for (int i = 0; i < n; i++)
			for (size_t j = 0; j < stride; j++)
				scratch[(size_t) i * stride + j] = inputs[(size_t) i * stride + j] * factors[j];
		run_layers(net, c, n, scratch, sums, one);
		for (int i = 0; i < n; i++)
			add_member(net, c, one + (size_t) i * n_out, out + (size_t) i * n_out);
	}
}

void
ag_net_run_block(const AgNet *net, const AgDenseMatrix *matrix, const uint32_t *rows, int n,
				 float *scratch, double *out)
{
	size_t stride = ag_net_stride(net->n_inputs);

	for (int i = 0; i < n; i++)
		ag_net_inputs(net, net->values, matrix->numbers + (size_t) rows[i] * matrix->stride,
					  matrix->slots + (size_t) rows[i] * matrix->n_slots,
					  scratch + (size_t) i * stride);
	run_inputs(net, n, AG_NET_BLOCK, scratch, out);
}

size_t
ag_net_row_scratch_bytes(const AgNet *net)
{
	return (row_floats(net) + ag_net_round(net->dense->n_numbers) + ag_net_round(net->n_slots)) *
		   sizeof(float);
}

void
ag_net_run_rows(const AgNet *net, int64_t n_rows, const double *features, void *scratch,
				double *out)
{
	size_t room = n_rows < AG_NET_BLOCK ? (size_t) n_rows : AG_NET_BLOCK;
	size_t stride = ag_net_stride(net->n_inputs), n_features = net->dense->n_features;
	float *x = scratch, *numbers = x + room * row_floats(net);
	uint32_t *slots = (uint32_t *) (void *) (numbers + ag_net_round(net->dense->n_numbers));

	for (int64_t begin = 0; begin < n_rows; begin += AG_NET_BLOCK)
	{
		int n = (int) (n_rows - begin < AG_NET_BLOCK ? n_rows - begin : AG_NET_BLOCK);

		for (int i = 0; i < n; i++)
		{
			ag_dense_encode(net->dense, features + (size_t) (begin + i) * n_features, numbers,
							slots);
			ag_net_inputs(net, net->values, numbers, slots, x + (size_t) i * stride);
		}
		run_inputs(net, n, room, x, out + (size_t) begin * net->n_outputs);
	}
}
