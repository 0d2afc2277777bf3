/*
 * net_update.c - the weights of a net: how they begin, and one step of theirs along the gradient.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/net_maths.h"
#include "engine/model/net_train.h"

#define SLICE_ROWS 32u
#define NORM_EPS 1e-5f
#define PIECE_ROWS 1024   /* whose quantiles pieces begin at */
#define LEAST_PIECE 1e-3f /* the width of one */
#define WAVE_SPREAD 0.1f
#define WAVE_NUMBERS 4u /* of an update */
#define TWO_PI 6.28318531f

static uint32_t
slice_rows(const AgNetLayer *layer)
{
	return ag_net_stride(layer->n_out) > 2048 ? AG_NET_LANES : SLICE_ROWS;
}

int
ag_net_updates_list(const AgNetTrainer *t, AgNetUpdate *updates)
{
	const AgNet *net = t->net;
	int n = 0;

	for (uint32_t l = 0; l < net->n_layers; l++)
		for (uint32_t h = 0; h < ag_net_heads(net, l); h++)
		{
			uint32_t step = slice_rows(&net->layers[l]);
			uint32_t n_in = (uint32_t) ag_net_round(net->layers[l].n_in);

			for (uint32_t k = 0; k < n_in; k += step, n++)
				if (updates != NULL)
					updates[n] =
						(AgNetUpdate){AG_PART_WEIGHTS, l, k, n_in - k < step ? n_in : k + step, h};
			if (updates != NULL)
				updates[n] = (AgNetUpdate){AG_PART_BIAS, l, 0, 0, h};
			n++;
		}
	for (uint32_t c = 0; c < net->n_members; c++, n++)
		if (updates != NULL)
			updates[n] = (AgNetUpdate){AG_PART_FACTORS, 0, c, c + 1, 0};
	if (t->numbers.hat != NULL)
	{
		if (updates != NULL)
			updates[n] = (AgNetUpdate){AG_PART_NUMBERS, 0, 0, 0, 0};
		n++;
	}
	for (uint32_t s = 0; s < net->n_slots; s++)
		if (net->slots[s].first != AG_NET_ONE_HOT)
		{
			if (updates != NULL)
				updates[n] = (AgNetUpdate){AG_PART_EMBEDDING, s, 0, 0, 0};
			n++;
		}
	for (uint32_t j = 0; net->n_waves > 0 && j < net->dense->n_numbers; j += WAVE_NUMBERS, n++)
		if (updates != NULL)
			updates[n] = (AgNetUpdate){
				AG_PART_WAVES, 0, j,
				net->dense->n_numbers - j < WAVE_NUMBERS ? net->dense->n_numbers : j + WAVE_NUMBERS,
				0};
	return n;
}

size_t
ag_net_update_floats(const AgNet *net, int batch_size)
{
	size_t most = AG_NET_MAX_WIDTH, n;

	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		n = slice_rows(&net->layers[l]) * ag_net_stride(net->layers[l].n_out);
		most = n > most ? n : most;
	}
	n = net->n_members > 0 ? ag_net_stride(net->n_inputs) : 0;
	most = n > most ? n : most;
	n = 2 * ag_net_stride(net->dense->n_numbers);
	most = n > most ? n : most;
	n = (4 + net->n_wave_inputs) * ag_net_round((size_t) batch_size) +
		ag_net_wave_values(net->n_waves, net->n_wave_inputs);
	return n > most ? n : most;
}

/* --- one kind of weights after the other */

static AgAdam
adam_at(const AgNetTrainer *t, float factor, bool decays)
{
	AgAdam adam = t->adam;

	adam.rate *= factor;
	if (!decays)
	{
		adam.decay = 0.0f;
		adam.shrink = 1.0f;
	}
	return adam;
}

/* Values [at, at + n) along their gradient. */
static void
apply(AgNetTrainer *t, const AgAdam *adam, size_t at, size_t n, const float *gradient)
{
	if (t->gradient != NULL)
		memcpy(t->gradient + at, gradient, n * sizeof *gradient);
	else
		t->ops->adam(adam, n, gradient, t->values + at, t->mean + at, t->square + at);
}

/* Sum of x[i] y[i] in sixteen lanes, which are added one after the other. */
static float
dot(size_t n, const float *x, const float *y)
{
	float lanes[AG_NET_LANES] = {0}, sum = 0.0f;
	size_t i = 0;

	for (; i + AG_NET_LANES <= n; i += AG_NET_LANES)
		for (size_t j = 0; j < AG_NET_LANES; j++)
			lanes[j] += x[i + j] * y[i + j];
	for (size_t j = 0; i + j < n; j++)
		lanes[j] += x[i + j] * y[i + j];
	for (size_t j = 0; j < AG_NET_LANES; j++)
		sum += lanes[j];
	return sum;
}

/* The first layer sees weights times its inputs' scales: from their gradient those of both. */
static void
divide_gradient(AgNetTrainer *t, const AgNetUpdate *update, float *gradient, size_t stride)
{
	const AgNetLayer *layer = &t->net->layers[0];
	float scale_gradient[SLICE_ROWS];
	AgAdam adam = adam_at(t, t->rates.input_scale, true);

	for (uint32_t k = update->begin; k < update->end; k++)
	{
		float *row = gradient + (k - update->begin) * stride;

		scale_gradient[k - update->begin] =
			dot(ag_net_round(layer->n_out), row, t->values + layer->first + k * stride);
		for (size_t j = 0; j < stride; j++)
			row[j] *= t->input_scale[k];
	}
	if (t->gradient != NULL)
		memcpy(t->scale_gradient + update->begin, scale_gradient,
			   (update->end - update->begin) * sizeof(float));
	else
		t->ops->adam(&adam, update->end - update->begin, scale_gradient,
					 t->input_scale + update->begin, t->scale_mean + update->begin,
					 t->scale_square + update->begin);
}

void
ag_net_weights_spread(AgNetTrainer *t, uint32_t l, uint32_t head, uint32_t begin, uint32_t end)
{
	const AgNetLayer *layer = &t->net->layers[l];
	size_t stride = ag_net_stride(layer->n_out);
	const float *weights = t->values + layer->first + head * ag_net_layer_values(layer);
	uint32_t first = 0;

	if (l == 0 && t->effective != NULL)
	{
		for (uint32_t k = begin; k < end; k++)
			for (size_t j = 0; j < stride; j++)
				t->effective[k * stride + j] = weights[k * stride + j] * t->input_scale[k];
		weights = t->effective;
	}
	if (l == 0 && t->spread == NULL)
		first = t->first_learnt_input / AG_NET_LANES * AG_NET_LANES;
	first = first > begin ? first : begin;
	if (t->rows[l].back != NULL && first < end)
		t->ops->transpose(
			(int) (end - first), (int) ag_net_round(layer->n_out), weights + first * stride, stride,
			t->rows[l].back + head * ag_net_back_floats(layer) + first, ag_net_stride(layer->n_in));
}

void
ag_net_weights_spread_all(AgNetTrainer *t)
{
	const AgNet *net = t->net;

	for (uint32_t l = 0; l < net->n_layers; l++)
		for (uint32_t h = 0; h < ag_net_heads(net, l); h++)
			ag_net_weights_spread(t, l, h, 0, (uint32_t) ag_net_round(net->layers[l].n_in));
}

/* The first of the member rows that a layer's head learns from, and how many they are. */
static int
update_rows(const AgNetTrainer *t, const AgNetUpdate *update, int *n_rows)
{
	bool is_shared = ag_net_heads(t->net, update->index) == 1;

	*n_rows = is_shared ? ag_net_member_rows(t) : t->n_rows;
	return is_shared ? 0 : (int) update->head * t->n_rows;
}

static void
update_weights(AgNetTrainer *t, const AgNetUpdate *update, float *scratch)
{
	const AgNetLayer *layer = &t->net->layers[update->index];
	size_t stride = ag_net_stride(layer->n_out), x_stride = ag_net_stride(layer->n_in);
	size_t at = layer->first + update->head * ag_net_layer_values(layer);
	int n_rows, row = update_rows(t, update, &n_rows);
	const float *x = ag_net_layer_inputs(t, update->index) + (size_t) row * x_stride;
	AgAdam adam = adam_at(t, t->rates.by_width ? 1.0f / sqrtf((float) layer->n_in) : 1.0f, true);

	memset(scratch, 0, (update->end - update->begin) * stride * sizeof *scratch);
	t->ops->multiply((int) (update->end - update->begin), n_rows, (int) ag_net_round(layer->n_out),
					 x + update->begin, 1, x_stride,
					 t->rows[update->index].delta + (size_t) row * stride, stride, NULL, scratch,
					 stride);
	if (update->index == 0 && t->effective != NULL)
		divide_gradient(t, update, scratch, stride);
	apply(t, &adam, at + update->begin * stride, (update->end - update->begin) * stride, scratch);
	if (t->gradient == NULL)
		ag_net_weights_spread(t, update->index, update->head, update->begin, update->end);
}

static void
update_bias(AgNetTrainer *t, const AgNetUpdate *update, float *scratch)
{
	const AgNetLayer *layer = &t->net->layers[update->index];
	const AgNetRows *rows = &t->rows[update->index];
	size_t stride = ag_net_stride(layer->n_out), n = ag_net_round(layer->n_out);
	AgAdam adam = adam_at(t, t->rates.bias, t->params.family == AG_NET_NN_TORCH);

	int n_rows, row = update_rows(t, update, &n_rows);

	memset(scratch, 0, n * sizeof *scratch);
	for (int i = row; i < row + n_rows; i++)
		for (size_t j = 0; j < n; j++)
			scratch[j] += rows->delta[(size_t) i * stride + j];
	if (ag_net_has_bias(t, update->index))
		apply(t, &adam, ag_net_bias_at(layer) + update->head * ag_net_layer_values(layer), n,
			  scratch);
	if (!layer->has_norm)
		return;
	apply(t, &adam, ag_net_norm_at(layer), n, rows->sum_hat);
	apply(t, &adam, ag_net_norm_at(layer) + stride, n, rows->sum_delta);
}

/* A member's factors on the inputs. */
static void
update_factors(AgNetTrainer *t, const AgNetUpdate *update, float *scratch)
{
	size_t stride = ag_net_stride(t->net->n_inputs);
	AgAdam adam = adam_at(t, t->rates.input_scale, false);
	const float *deltas = t->spread_deltas + (size_t) update->begin * t->n_rows * stride;

	memset(scratch, 0, stride * sizeof *scratch);
	for (int i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < stride; j++)
			scratch[j] += deltas[(size_t) i * stride + j] * t->inputs[(size_t) i * stride + j];
	apply(t, &adam, ag_net_factors_at(t->net) + update->begin * stride, stride, scratch);
}

/* Scale and shift of the normalised numbers. */
static void
update_numbers(AgNetTrainer *t, float *scratch)
{
	size_t n = t->net->dense->n_numbers, width = ag_net_stride(n);
	AgAdam adam = adam_at(t, t->rates.bias, false);

	memset(scratch, 0, 2 * width * sizeof *scratch);
	for (int i = 0; i < t->n_rows; i++)
	{
		const float *delta = t->input_deltas + (size_t) i * ag_net_stride(t->net->n_inputs);
		const float *hat = t->numbers.hat + (size_t) i * width;

		for (size_t j = 0; j < n; j++)
		{
			scratch[j] += delta[j] * hat[j];
			scratch[width + j] += delta[j];
		}
	}
	apply(t, &adam, ag_net_number_norm_at(t->net), 2 * width, scratch);
}

static void
update_embedding(AgNetTrainer *t, const AgNetUpdate *update)
{
	const AgNet *net = t->net;
	const AgNetSlot *slot = &net->slots[update->index];
	size_t n = ag_net_slot_rows(net, update->index) * slot->n_inputs;
	size_t stride = ag_net_stride(net->n_inputs);
	float *gradient = t->embedding_gradient + slot->first;
	AgAdam adam = adam_at(t, t->rates.embedding, true);

	memset(gradient, 0, n * sizeof *gradient);
	for (int i = 0; i < t->n_rows; i++)
	{
		size_t row = t->data->train_rows[t->order[i]];
		uint32_t column = t->matrix->slots[row * t->matrix->n_slots + update->index];
		const float *delta = t->input_deltas + (size_t) i * stride + slot->first_input;
		float *to;

		column = column == net->dense->n_columns ? net->dense->slots[update->index].width
												 : column - net->dense->slots[update->index].first;
		to = gradient + (size_t) column * slot->n_inputs;
		for (uint32_t j = 0; j < slot->n_inputs; j++)
			to[j] += delta[j];
	}
	apply(t, &adam, slot->first, n, gradient);
}

/* Of wave or piece k at x[n]. d cos(2 pi u) / du = -2 pi cos(2 pi (u - 1/4)); slope is without the -2 pi. */
static void
wave_and_slope(const AgNetTrainer *t, uint32_t k, float w, float phase, size_t n, const float *x,
			   float *wave, float *slope)
{
	uint32_t n_waves = t->net->n_waves;

	if (!(t->net->bends & AG_NET_IN_PIECES))
	{
		t->ops->waves(n, w, phase, x, wave);
		t->ops->waves(n, w, phase - 0.25f, x, slope);
		return;
	}
	for (size_t i = 0; i < n; i++)
	{
		float u = w * x[i] + phase;

		wave[i] = ag_net_piece(u, k, n_waves);
		slope[i] = ag_net_piece_slope(u, k, n_waves);
	}
}

static void
update_wave(AgNetTrainer *t, uint32_t number, float *scratch)
{
	const AgNet *net = t->net;
	size_t n = (size_t) t->n_rows, stride = ag_net_stride(net->n_inputs), room = ag_net_round(n);
	size_t n_values = ag_net_wave_values(net->n_waves, net->n_wave_inputs);
	size_t at = net->first_wave_value + number * n_values;
	const float *w = t->values + at, *phases = w + net->n_waves, *sums = phases + net->n_waves;
	float *gradient = scratch, *x = gradient + n_values, *wave = x + room, *slope = wave + room;
	float *ones = slope + room, *deltas = ones + room;
	uint32_t n_out = net->n_wave_inputs, n_waves = net->n_waves;
	AgAdam adam = adam_at(t, t->rates.waves, true);

	memset(gradient, 0, n_values * sizeof *gradient);
	for (size_t i = 0; i < n; i++)
	{
		const float *delta =
			t->input_deltas + i * stride + net->first_wave + (size_t) number * n_out;

		x[i] = t->inputs[i * stride + number];
		ones[i] = 1.0f;
		for (uint32_t o = 0; o < n_out; o++)
			deltas[o * room + i] = delta[o];
	}
	for (uint32_t k = 0; k < n_waves; k++)
	{
		wave_and_slope(t, k, w[k], phases[k], n, x, wave, slope);
		for (size_t i = 0; i < n; i++)
		{
			float d = 0.0f;

			for (uint32_t o = 0; o < n_out; o++)
				d += sums[o * n_waves + k] * deltas[o * room + i];
			slope[i] *= (net->bends & AG_NET_IN_PIECES ? 1.0f : -TWO_PI) * d;
		}
		gradient[k] = dot(n, slope, x);
		gradient[n_waves + k] = dot(n, slope, ones);
		for (uint32_t o = 0; o < n_out; o++)
			gradient[(2 + o) * n_waves + k] = dot(n, wave, deltas + o * room);
	}
	for (uint32_t o = 0; o < n_out; o++)
		gradient[(2 + n_out) * n_waves + o] = dot(n, ones, deltas + o * room);
	apply(t, &adam, at, n_values, gradient);
}

static void
update_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgNetTrainer *t = arg;
	float *scratch = t->scratch + (size_t) thread * t->scratch_floats;

	for (int64_t u = begin; u < end; u++)
	{
		const AgNetUpdate *update = &t->updates[u];

		if (ag_cancelled(t->ctx))
			return;
		switch (update->part)
		{
			case AG_PART_WEIGHTS:
				update_weights(t, update, scratch);
				break;
			case AG_PART_BIAS:
				update_bias(t, update, scratch);
				break;
			case AG_PART_FACTORS:
				update_factors(t, update, scratch);
				break;
			case AG_PART_NUMBERS:
				update_numbers(t, scratch);
				break;
			case AG_PART_EMBEDDING:
				update_embedding(t, update);
				break;
			case AG_PART_WAVES:
				for (uint32_t j = update->begin; j < update->end; j++)
					update_wave(t, j, scratch);
				break;
		}
	}
}

void
ag_net_batch_update(AgNetTrainer *t)
{
	double flops = 6.0 * ag_net_member_rows(t) * (double) t->net->n_values;

	ag_pool_run(flops < AG_NET_PARALLEL_FLOPS ? NULL : t->ctx->pool, t->n_updates, 1, update_task,
				t);
}

/* --- how weights begin */

static float
uniform(uint64_t key, uint64_t counter, float bound)
{
	return (float) (2.0 * ag_random_unit(key, counter) - 1.0) * bound;
}

/* Box and Muller 1958, "A note on the generation of random normal deviates". */
static float
normal(uint64_t key, uint64_t counter)
{
	double u = 1.0 - ag_random_unit(key, 2 * counter);

	return (float) sqrt(-2.0 * ag_ln(u)) *
		   ag_net_cos2pi((float) ag_random_unit(key, 2 * counter + 1));
}

static void
begin_layer(AgNetTrainer *t, uint32_t l, uint32_t head, uint64_t key)
{
	const AgNetLayer *layer = &t->net->layers[l];
	size_t at = head * ag_net_layer_values(layer);
	size_t stride = ag_net_stride(layer->n_out);
	float bound = 1.0f / sqrtf((float) (layer->n_in > 0 ? layer->n_in : 1));
	bool is_normal = t->params.family == AG_NET_REALMLP;

	/* whoever trains looks after a cancel before the first step */
	for (uint32_t k = 0; k < layer->n_in && !ag_cancelled(t->ctx); k++)
		for (uint32_t j = 0; j < layer->n_out; j++)
		{
			uint64_t counter = (uint64_t) k * layer->n_out + j;

			t->values[at + layer->first + k * stride + j] =
				is_normal ? normal(key, counter) * bound : uniform(key, counter, bound);
		}
	for (uint32_t j = 0; j < layer->n_out; j++)
	{
		uint64_t bias_key = ag_key(key, 1);

		t->values[at + ag_net_bias_at(layer) + j] =
			!ag_net_has_bias(t, l) ? 0.0f
			: is_normal            ? (l + 1 < t->net->n_layers ? normal(bias_key, j) : 0.0f)
								   : uniform(bias_key, j, bound);
		if (layer->has_norm)
			t->values[at + ag_net_norm_at(layer) + j] = 1.0f;
	}
}

/* The n least first (Shell 1959). */
static void
sort_floats(float *x, int n)
{
	for (int gap = n / 2; gap > 0; gap = gap > 1 && gap < 4 ? 1 : gap * 4 / 9)
		for (int i = gap; i < n; i++)
		{
			float moving = x[i];
			int at = i;

			for (; at >= gap && x[at - gap] > moving; at -= gap)
				x[at] = x[at - gap];
			x[at] = moving;
		}
}

/*
 * A number's pieces end at quantiles of (the first of) its training values, where these differ. Where there are fewer, those in the middle
 * stay flat, at 0.
 */
static void
begin_pieces(const AgNetTrainer *t, uint32_t number, float *w, float *phases)
{
	const AgTrainData *data = t->data;
	float values[PIECE_ROWS], ends[AG_NET_WAVES + 1];
	int n = data->n_train < PIECE_ROWS ? (int) data->n_train : PIECE_ROWS, n_ends = 0;
	int n_pieces = (int) t->net->n_waves;

	for (int i = 0; i < n; i++)
		values[i] = ag_net_number(
			t->net, t->matrix->numbers[(size_t) data->train_rows[i] * t->matrix->stride + number]);
	sort_floats(values, n);
	for (int e = 0; e <= n_pieces; e++)
	{
		float end = values[(int64_t) (n - 1) * e / n_pieces];

		if (n_ends == 0 || end - ends[n_ends - 1] > LEAST_PIECE)
			ends[n_ends++] = end;
	}
	for (int k = 0; k + 1 < n_ends; k++)
	{
		int to = k > 0 && k + 2 == n_ends ? n_pieces - 1 : k; /* the last one goes on for ever */

		w[to] = 1.0f / (ends[k + 1] - ends[k]);
		phases[to] = -ends[k] * w[to];
	}
}

static void
begin_waves(AgNetTrainer *t, uint64_t key)
{
	const AgNet *net = t->net;
	size_t n_values = ag_net_wave_values(net->n_waves, net->n_wave_inputs);

	for (uint32_t j = 0; j < net->dense->n_numbers; j++)
	{
		float *w = t->values + net->first_wave_value + j * n_values;
		uint64_t own = ag_key(key, j);

		if (net->bends & AG_NET_IN_PIECES)
			begin_pieces(t, j, w, w + net->n_waves);
		for (uint32_t k = 0; k < net->n_waves && !(net->bends & AG_NET_IN_PIECES); k++)
		{
			w[k] = normal(own, k) * WAVE_SPREAD;
			w[net->n_waves + k] = uniform(ag_key(own, 1), k, 0.5f);
		}
		for (uint32_t k = 0; k < net->n_waves * net->n_wave_inputs; k++)
			w[2 * net->n_waves + k] =
				uniform(ag_key(own, 2), k, 1.0f / sqrtf((float) net->n_waves));
	}
}

/* The members begin apart: random signs, one an input (Gorishniy and others 2025, section 3.3). */
static void
begin_factors(AgNetTrainer *t, uint64_t key)
{
	const AgNet *net = t->net;
	size_t stride = ag_net_stride(net->n_inputs);

	for (uint32_t c = 0; c < net->n_members; c++)
		for (uint32_t j = 0; j < net->n_inputs; j++)
			t->values[ag_net_factors_at(net) + c * stride + j] =
				ag_random_u64(ag_key(key, c), j) >> 63 != 0 ? 1.0f : -1.0f;
}

void
ag_net_weights_init(AgNetTrainer *t)
{
	const AgNet *net = t->net;
	uint64_t key = ag_key(t->params.seed, 1);
	float spread = t->params.family == AG_NET_FASTAI ? 0.01f : 1.0f;

	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];
		uint64_t own = ag_key(ag_key(key, 1), s);

		if (slot->first == AG_NET_ONE_HOT)
			continue;
		for (size_t i = 0; i < ag_net_slot_rows(net, s) * slot->n_inputs; i++)
			t->values[slot->first + i] = normal(own, i) * spread;
	}
	begin_waves(t, ag_key(key, 2));
	begin_factors(t, ag_key(key, 4));
	for (uint32_t j = 0; t->numbers.hat != NULL && j < net->dense->n_numbers; j++)
	{
		t->values[ag_net_number_norm_at(net) + j] = 1.0f;
		t->numbers.running_square[j] = 1.0f;
	}
	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		uint64_t own = ag_key(ag_key(key, 3), l);

		for (uint32_t h = 0; h < ag_net_heads(net, l); h++)
			begin_layer(t, l, h, h == 0 ? own : ag_key(ag_key(own, 2), h));
		if (t->rows[l].running_square != NULL)
			for (uint32_t j = 0; j < net->layers[l].n_out; j++)
				t->rows[l].running_square[j] = 1.0f;
	}
	for (uint32_t k = 0; t->input_scale != NULL && k < net->n_inputs; k++)
		t->input_scale[k] = 1.0f;
	ag_net_weights_spread_all(t);
}

/* --- what prediction gets */

static void
fold_norm(const AgNetTrainer *t, uint32_t l, float *values)
{
	const AgNetLayer *layer = &t->net->layers[l];
	const AgNetRows *rows = &t->rows[l];
	float *scale = values + ag_net_norm_at(layer), *shift = scale + ag_net_stride(layer->n_out);

	for (uint32_t j = 0; j < layer->n_out; j++)
	{
		scale[j] = scale[j] / sqrtf(rows->running_square[j] + NORM_EPS);
		shift[j] = shift[j] - rows->running_mean[j] * scale[j];
	}
}

/* The numbers' normalisation into the first layer: scales into its weights, shifts into its bias. */
static void
fold_numbers(const AgNetTrainer *t, float *values)
{
	const AgNet *net = t->net;
	const AgNetLayer *layer = &net->layers[0];
	size_t width = ag_net_stride(net->dense->n_numbers), stride = ag_net_stride(layer->n_out);
	float *gamma = values + ag_net_number_norm_at(net), *beta = gamma + width;
	float *weights = values + layer->first, *bias = values + ag_net_bias_at(layer);

	for (uint32_t j = 0; j < net->dense->n_numbers; j++)
	{
		float scale = gamma[j] / sqrtf(t->numbers.running_square[j] + NORM_EPS);
		float shift = beta[j] - t->numbers.running_mean[j] * scale;

		for (size_t o = 0; o < stride; o++)
		{
			bias[o] += weights[j * stride + o] * shift;
			weights[j * stride + o] *= scale;
		}
	}
	memset(gamma, 0, 2 * width * sizeof *gamma);
}

void
ag_net_fold(const AgNetTrainer *t, float *values)
{
	const AgNet *net = t->net;

	memcpy(values, t->values, net->n_values * sizeof *values);
	if (t->effective != NULL)
		memcpy(values + net->layers[0].first, t->effective,
			   ag_net_round(net->layers[0].n_in) * ag_net_stride(net->layers[0].n_out) *
				   sizeof *values);
	if (t->numbers.hat != NULL)
		fold_numbers(t, values);
	for (uint32_t l = 0; l < net->n_layers; l++)
		if (net->layers[l].has_norm)
			fold_norm(t, l, values);
	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		const AgNetSlot *slot = &net->slots[s];
		size_t n = ag_net_slot_rows(net, s) - 1;
		float *mean;

		if (slot->first == AG_NET_ONE_HOT)
			continue;
		mean =
			values + slot->first + n * slot->n_inputs; /* a level never seen is like the average */
		memset(mean, 0, slot->n_inputs * sizeof *mean);
		for (size_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < slot->n_inputs; j++)
				mean[j] += t->level_shares[s][i] * values[slot->first + i * slot->n_inputs + j];
	}
}
