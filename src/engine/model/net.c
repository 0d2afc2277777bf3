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

/* Holzmueller and others 2024, section 3: smooth clipping. */
float
ag_net_number(const AgNet *net, float x)
{
	float t = x * (1.0f / 3.0f);

	return net->bends ? x / sqrtf(1.0f + t * t) : x;
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
		float wave = ag_net_cos2pi(w[j] * x + phases[j]);

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

/* Inputs in their order, each times its row of weights: inputs that are 0 add nothing. */
static void
first_sums(const AgNet *net, const double *features, uint32_t from, uint32_t n, float *sums)
{
	const AgNetLayer *layer = &net->layers[0];
	size_t stride = ag_net_stride(layer->n_out);
	const float *weights = net->values + layer->first + from;
	const AgDense *dense = net->dense;
	bool last;

	memcpy(sums, net->values + ag_net_bias_at(layer) + from, n * sizeof *sums);
	for (uint32_t j = 0; j < dense->n_numbers; j++)
		net->ops->add_row(row_number(net, features, j), weights + j * stride, sums, n);
	for (int pass = 0; pass < 2; pass++) /* one-hot slots lie before the waves, embeddings behind */
	{
		last = pass == 1;
		for (uint32_t j = 0; last && net->n_waves > 0 && j < dense->n_numbers; j++)
		{
			float waves[AG_NET_LANES];

			wave_inputs(net, net->values, j, row_number(net, features, j), waves);
			for (uint32_t o = 0; o < net->n_wave_inputs; o++)
				net->ops->add_row(waves[o],
								  weights + (net->first_wave + j * net->n_wave_inputs + o) * stride,
								  sums, n);
		}
		for (uint32_t s = 0; s < net->n_slots; s++)
		{
			const AgNetSlot *slot = &net->slots[s];
			uint32_t f = dense->slots[s].feature, width = dense->slots[s].width, column;

			if ((slot->first != AG_NET_ONE_HOT) != last)
				continue;
			column = ag_dense_column(dense, &dense->features[f], features[f]);
			column = column == dense->n_columns ? width : column - dense->slots[s].first;
			if (!last && column < width)
				net->ops->add_row(1.0f, weights + (slot->first_input + column) * stride, sums, n);
			for (uint32_t i = 0; last && i < slot->n_inputs; i++)
				net->ops->add_row(net->values[slot->first + (size_t) column * slot->n_inputs + i],
								  weights + (slot->first_input + i) * stride, sums, n);
		}
	}
}

void
ag_net_run(const AgNet *net, const double *features, double *out)
{
	_Alignas(64) float rows[2][AG_NET_MAX_WIDTH];
	_Alignas(64) float chunk[OUTPUT_CHUNK];
	uint32_t last = net->n_layers - 1;
	const AgNetLayer *layer = &net->layers[last];
	float *x = rows[0], *sums = rows[1], *other;

	for (uint32_t l = 0; l < last; l++)
	{
		const AgNetLayer *hidden = &net->layers[l];
		uint32_t n = (uint32_t) ag_net_round(hidden->n_out);

		if (l == 0)
			first_sums(net, features, 0, n, sums);
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
			first_sums(net, features, from, rounded, chunk);
		else
			net->ops->multiply(1, (int) layer->n_in, (int) rounded, x, 0, 1,
							   net->values + layer->first + from, ag_net_stride(layer->n_out),
							   net->values + ag_net_bias_at(layer) + from, chunk, rounded);
		take_logits(chunk, n, out + from);
	}
	apply_link(net, out);
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

size_t
ag_net_block_floats(const AgNet *net)
{
	return 2 * AG_NET_BLOCK * widest(net);
}

/* Rows of inputs, which are x[n][stride(n_inputs)], through the layers; both arrays are overwritten. */
static void
run_inputs(const AgNet *net, int n, float *x, float *sums, double *out)
{
	size_t x_stride = ag_net_stride(net->n_inputs), n_out = net->n_outputs;
	float *other;

	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		const AgNetLayer *layer = &net->layers[l];
		size_t stride = ag_net_stride(layer->n_out);

		net->ops->multiply(n, (int) layer->n_in, (int) ag_net_round(layer->n_out), x, x_stride, 1,
						   net->values + layer->first, stride, net->values + ag_net_bias_at(layer),
						   sums, stride);
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

void
ag_net_run_block(const AgNet *net, const AgDenseMatrix *matrix, const uint32_t *rows, int n,
				 float *scratch, double *out)
{
	size_t stride = ag_net_stride(net->n_inputs);

	for (int i = 0; i < n; i++)
		ag_net_inputs(net, net->values, matrix->numbers + (size_t) rows[i] * matrix->stride,
					  matrix->slots + (size_t) rows[i] * matrix->n_slots,
					  scratch + (size_t) i * stride);
	run_inputs(net, n, scratch, scratch + AG_NET_BLOCK * widest(net), out);
}

/* Two rows of the widest kind, numbers, slots. */
size_t
ag_net_row_scratch_bytes(const AgNet *net)
{
	return (2 * widest(net) + ag_net_round(net->dense->n_numbers) + ag_net_round(net->n_slots)) *
		   sizeof(float);
}

void
ag_net_run_rows(const AgNet *net, int64_t n_rows, const double *features, void *scratch,
				double *out)
{
	size_t room = n_rows < AG_NET_BLOCK ? (size_t) n_rows : AG_NET_BLOCK, width = widest(net);
	size_t stride = ag_net_stride(net->n_inputs), n_features = net->dense->n_features;
	float *x = scratch, *sums = x + room * width, *numbers = sums + room * width;
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
		run_inputs(net, n, x, sums, out + (size_t) begin * net->n_outputs);
	}
}
