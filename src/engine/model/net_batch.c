/*
 * net_batch.c - one batch through a net, forward and back.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/net_train.h"

#define NORM_EPS 1e-5f
#define NORM_MOMENTUM 0.1f
#define DROP_LEVELS 65536.0f

/* --- dropout */

/* Factors of rows [begin, end) of a layer (0: the inputs' embeddings) into keep[..][n]; n a multiple of 16. */
static void
drop_rows(const AgNetTrainer *t, uint32_t layer, double probability, int begin, int end, size_t n,
		  float *keep, size_t stride)
{
	uint32_t threshold = (uint32_t) (probability * DROP_LEVELS + 0.5);
	float factor = DROP_LEVELS / (DROP_LEVELS - (float) threshold);
	uint64_t key = ag_key(t->dropout_key, layer);

	for (int i = begin; i < end; i++)
		t->ops->drop(key, (uint64_t) i * (n / 4), threshold, factor, n,
					 keep + (size_t) (i - begin) * stride);
}

/* --- forward */

/* Dropout of inputs begins behind numbers and one-hot slots, with the lanes that the first embedding lies in. */
static size_t
first_dropped(const AgNetTrainer *t)
{
	return t->net->first_wave / AG_NET_LANES * AG_NET_LANES;
}

static void
input_rows(AgNetTrainer *t, int begin, int end)
{
	size_t stride = ag_net_stride(t->net->n_inputs), first = first_dropped(t);
	size_t n = ag_net_round(t->net->n_inputs) - first;

	for (int i = begin; i < end; i++)
	{
		size_t row = t->data->train_rows[t->order[i]];

		ag_net_inputs(t->net, t->values, t->matrix->numbers + row * t->matrix->stride,
					  t->matrix->slots + row * t->matrix->n_slots, t->inputs + (size_t) i * stride);
	}
	if (t->input_keep == NULL)
		return;
	drop_rows(t, t->net->n_layers, t->params.embedding_dropout_prob, begin, end, n,
			  t->input_keep + (size_t) begin * stride + first, stride);
	for (int i = begin; i < end; i++)
	{
		float *keep = t->input_keep + (size_t) i * stride;

		for (uint32_t j = (uint32_t) first; j < t->net->first_wave; j++)
			keep[j] = 1.0f;
		t->ops->scale(n, keep + first, t->inputs + (size_t) i * stride + first);
	}
}

/* Member rows: the row's inputs times the member's factors. */
static void
spread_rows(AgNetTrainer *t, int begin, int end)
{
	size_t stride = ag_net_stride(t->net->n_inputs);
	const float *factors = t->values + ag_net_factors_at(t->net);

	for (int i = begin; i < end; i++)
	{
		const float *x = t->inputs + (size_t) (i % t->n_rows) * stride;
		const float *own = factors + (size_t) (i / t->n_rows) * stride;
		float *to = t->spread + (size_t) i * stride;

		for (size_t j = 0; j < stride; j++)
			to[j] = x[j] * own[j];
	}
}

/* The rows from begin on that have one last layer in common: how many, and which one it is. */
static int
head_rows(const AgNetTrainer *t, uint32_t l, int begin, int end, uint32_t *head)
{
	int stop = end;

	*head = 0;
	if (ag_net_heads(t->net, l) == 1)
		return end - begin;
	*head = (uint32_t) (begin / t->n_rows);
	stop = ((int) *head + 1) * t->n_rows;
	return (stop < end ? stop : end) - begin;
}

static void
forward_rows(AgNetTrainer *t, uint32_t l, int begin, int end, int thread)
{
	const AgNetLayer *layer = &t->net->layers[l];
	AgNetRows *rows = &t->rows[l];
	size_t stride = ag_net_stride(layer->n_out), n = ag_net_round(layer->n_out);
	size_t x_stride = ag_net_stride(layer->n_in), at;
	const float *x = ag_net_layer_inputs(t, l);
	float *keep = t->scratch + (size_t) thread * t->scratch_floats;
	uint32_t head;
	int n_same;

	for (int i = begin; i < end; i += n_same)
	{
		n_same = head_rows(t, l, i, end, &head);
		at = head * ag_net_layer_values(layer);
		t->ops->multiply(
			n_same, (int) layer->n_in, (int) n, x + (size_t) i * x_stride, x_stride, 1,
			l == 0 && t->effective != NULL ? t->effective : t->values + layer->first + at, stride,
			t->values + ag_net_bias_at(layer) + at, rows->post + (size_t) i * stride, stride);
	}
	if (l + 1 == t->net->n_layers)
		return;
	for (int i = begin; i < end; i++)
	{
		float *post = rows->post + (size_t) i * stride, *slope = rows->slope + (size_t) i * stride;

		t->ops->activate((AgActivation) layer->activation, n, post, post, slope);
		if (ag_net_has_dropout(t, l) && rows->hat == NULL)
		{
			drop_rows(t, l, t->params.dropout_prob, i, i + 1, n, keep, 0);
			t->ops->scale(n, keep, post);
			t->ops->scale(n, keep, slope);
		}
	}
}

/*
 * Ioffe and Szegedy 2015, "Batch normalization", algorithm 1, of the first n columns of x[n_rows][stride]. Sums run in the
 * rows' order, column by column.
 */
static void
batch_stats(const AgNetTrainer *t, const float *x, size_t stride, size_t n, AgNetRows *rows)
{
	float *mean = rows->mean, *square = rows->scale, share = 1.0f / (float) t->n_rows;
	float unbiased = t->n_rows > 1 ? (float) t->n_rows / (float) (t->n_rows - 1) : 1.0f;

	memset(mean, 0, n * sizeof *mean);
	memset(square, 0, n * sizeof *square);
	for (int i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < n; j++)
			mean[j] += x[(size_t) i * stride + j];
	for (size_t j = 0; j < n; j++)
		mean[j] *= share;
	for (int i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < n; j++)
		{
			float d = x[(size_t) i * stride + j] - mean[j];

			square[j] += d * d;
		}
	for (size_t j = 0; j < n; j++)
	{
		float v = square[j] * share;

		rows->running_mean[j] += NORM_MOMENTUM * (mean[j] - rows->running_mean[j]);
		rows->running_square[j] += NORM_MOMENTUM * (v * unbiased - rows->running_square[j]);
		rows->scale[j] = 1.0f / sqrtf(v + NORM_EPS);
	}
}

static void
norm_numbers(AgNetTrainer *t, int begin, int end)
{
	size_t n = t->net->dense->n_numbers, width = ag_net_stride(n);
	const float *gamma = t->values + ag_net_number_norm_at(t->net), *beta = gamma + width;

	for (int i = begin; i < end; i++)
	{
		float *x = t->inputs + (size_t) i * ag_net_stride(t->net->n_inputs);
		float *hat = t->numbers.hat + (size_t) i * width;

		for (size_t j = 0; j < n; j++)
		{
			hat[j] = (x[j] - t->numbers.mean[j]) * t->numbers.scale[j];
			x[j] = gamma[j] * hat[j] + beta[j];
		}
	}
}

static void
norm_rows(AgNetTrainer *t, uint32_t l, int begin, int end)
{
	const AgNetLayer *layer = &t->net->layers[l];
	AgNetRows *rows = &t->rows[l];
	size_t stride = ag_net_stride(layer->n_out), n = ag_net_round(layer->n_out);
	const float *gamma = t->values + ag_net_norm_at(layer), *beta = gamma + stride;

	if (rows->keep != NULL)
		drop_rows(t, l, t->params.dropout_prob, begin, end, n, rows->keep + (size_t) begin * stride,
				  stride);
	for (int i = begin; i < end; i++)
	{
		float *post = rows->post + (size_t) i * stride, *hat = rows->hat + (size_t) i * stride;

		for (size_t j = 0; j < n; j++)
		{
			hat[j] = (post[j] - rows->mean[j]) * rows->scale[j];
			post[j] = gamma[j] * hat[j] + beta[j];
		}
		if (rows->keep != NULL)
			t->ops->scale(n, rows->keep + (size_t) i * stride, post);
	}
}

/* --- loss: its value, and its derivative by the outputs' sums, divided by the batch's rows */

static double
loss_classes(AgNetTrainer *t, const float *z, uint32_t n, int32_t class_of, float factor,
			 float *delta)
{
	float greatest = z[0], total = 0.0f, inverse, rest = t->smoothing / (float) n;
	double sum = 0.0;

	for (uint32_t k = 1; k < n; k++)
		greatest = z[k] > greatest ? z[k] : greatest;
	for (uint32_t k = 0; k < n; k++)
		delta[k] = z[k] - greatest;
	if (rest > 0.0f)
		for (uint32_t k = 0; k < n; k++)
			sum += delta[k];
	sum = sum * rest + (double) delta[class_of] * (1.0 - t->smoothing);
	t->ops->exponentials(n, delta, delta);
	for (uint32_t k = 0; k < n; k++)
		total += delta[k];
	inverse = 1.0f / total;
	for (uint32_t k = 0; k < n; k++)
		delta[k] = (delta[k] * inverse - rest) * factor;
	delta[class_of] -= (1.0f - t->smoothing) * factor;
	return ag_ln((double) total) - sum;
}

static double
loss_number(const AgNetTrainer *t, float z, float target, float factor, float *delta)
{
	float y, d;

	if (t->net->link != AG_NET_RANGE)
	{
		d = z - target;
		*delta = 2.0f * d * factor;
		return (double) d * d;
	}
	y = (float) ag_sigmoid(z);
	d = y - target;
	*delta = (d > 0.0f ? factor : d < 0.0f ? -factor : 0.0f) * y * (1.0f - y);
	return fabs((double) d);
}

/* The mean of the levels' pinball losses. */
static double
loss_quantiles(const AgNetTrainer *t, const float *z, uint32_t n, float target, float factor,
			   float *delta)
{
	double sum = 0.0;

	factor /= (float) n;
	for (uint32_t k = 0; k < n; k++)
	{
		float level = (float) t->data->quantiles[k], d = z[k] - target;
		float slope = d > 0.0f ? 1.0f - level : d < 0.0f ? -level : 0.0f;

		delta[k] = slope * factor;
		sum += (double) (slope * d);
	}
	return sum / n;
}

static void
loss_rows(AgNetTrainer *t, int begin, int end)
{
	uint32_t last = t->net->n_layers - 1, n = t->net->n_outputs;
	size_t stride = ag_net_stride(n);

	for (int i = begin; i < end; i++)
	{
		uint32_t at = t->order[i % t->n_rows], row = t->data->train_rows[at];
		const float *z = t->rows[last].post + (size_t) i * stride;
		float *delta = t->rows[last].delta + (size_t) i * stride;
		float weight = t->weight != NULL ? t->weight[at] : 1.0f;
		float factor = weight / (float) ag_net_member_rows(t);

		if (t->net->link == AG_NET_SOFTMAX)
			t->losses[i] = loss_classes(t, z, n, t->data->class_of[row], factor, delta);
		else if (t->net->link == AG_NET_QUANTILES)
			t->losses[i] = loss_quantiles(t, z, n, t->target[at], factor, delta);
		else
			t->losses[i] = loss_number(t, z[0], t->target[at], factor, delta);
		t->losses[i] *= weight;
	}
}

/* --- backward */

static void
back_rows(AgNetTrainer *t, uint32_t l, int begin, int end)
{
	const AgNetLayer *layer = &t->net->layers[l];
	AgNetRows *below = &t->rows[l - 1];
	size_t stride = ag_net_stride(layer->n_out), to_stride = ag_net_stride(layer->n_in);
	size_t n = ag_net_round(layer->n_in);
	const float *factors = below->hat == NULL ? below->slope : below->keep;
	uint32_t head;
	int n_same;

	for (int i = begin; i < end; i += n_same)
	{
		n_same = head_rows(t, l, i, end, &head);
		t->ops->multiply(n_same, (int) layer->n_out, (int) n,
						 t->rows[l].delta + (size_t) i * stride, stride, 1,
						 t->rows[l].back + head * ag_net_back_floats(layer), to_stride, NULL,
						 below->delta + (size_t) i * to_stride, to_stride);
	}
	for (int i = begin; factors != NULL && i < end; i++)
		t->ops->scale(n, factors + (size_t) i * to_stride, below->delta + (size_t) i * to_stride);
}

static void
norm_sums(AgNetTrainer *t, uint32_t l)
{
	AgNetRows *rows = &t->rows[l];
	size_t stride = ag_net_stride(t->net->layers[l].n_out);
	size_t n = ag_net_round(t->net->layers[l].n_out);

	memset(rows->sum_delta, 0, n * sizeof *rows->sum_delta);
	memset(rows->sum_hat, 0, n * sizeof *rows->sum_hat);
	for (int i = 0; i < t->n_rows; i++)
		for (size_t j = 0; j < n; j++)
		{
			float d = rows->delta[(size_t) i * stride + j];

			rows->sum_delta[j] += d;
			rows->sum_hat[j] += d * rows->hat[(size_t) i * stride + j];
		}
}

static void
norm_back_rows(AgNetTrainer *t, uint32_t l, int begin, int end)
{
	const AgNetLayer *layer = &t->net->layers[l];
	AgNetRows *rows = &t->rows[l];
	size_t stride = ag_net_stride(layer->n_out), n = ag_net_round(layer->n_out);
	const float *gamma = t->values + ag_net_norm_at(layer);
	float share = 1.0f / (float) t->n_rows;

	for (int i = begin; i < end; i++)
	{
		float *delta = rows->delta + (size_t) i * stride;
		const float *hat = rows->hat + (size_t) i * stride,
					*slope = rows->slope + (size_t) i * stride;

		for (size_t j = 0; j < n; j++)
			delta[j] = gamma[j] * rows->scale[j] * slope[j] *
					   (delta[j] - share * (rows->sum_delta[j] + hat[j] * rows->sum_hat[j]));
	}
}

/* Derivatives by all inputs of member rows, for the members' factors want them. */
static void
spread_back_rows(AgNetTrainer *t, int begin, int end)
{
	const AgNetLayer *layer = &t->net->layers[0];
	size_t stride = ag_net_stride(layer->n_out), to_stride = ag_net_stride(layer->n_in);
	uint32_t head;
	int n_same;

	for (int i = begin; i < end; i += n_same)
	{
		n_same = head_rows(t, 0, i, end, &head);
		t->ops->multiply(n_same, (int) layer->n_out, (int) ag_net_round(layer->n_in),
						 t->rows[0].delta + (size_t) i * stride, stride, 1,
						 t->rows[0].back + head * ag_net_back_floats(layer), to_stride, NULL,
						 t->spread_deltas + (size_t) i * to_stride, to_stride);
	}
}

/* Derivatives by the rows' own inputs: the members' sum, in their order. */
static void
gather_rows(AgNetTrainer *t, int begin, int end)
{
	size_t stride = ag_net_stride(t->net->n_inputs);
	const float *factors = t->values + ag_net_factors_at(t->net);

	for (int i = begin; i < end; i++)
	{
		float *to = t->input_deltas + (size_t) i * stride;

		memset(to, 0, stride * sizeof *to);
		for (uint32_t c = 0; c < t->net->n_members; c++)
		{
			const float *from = t->spread_deltas + ((size_t) c * t->n_rows + i) * stride;
			const float *own = factors + c * stride;

			for (size_t j = 0; j < stride; j++)
				to[j] += from[j] * own[j];
		}
	}
}

/* Derivatives by the inputs that are learnt. */
static void
input_back_rows(AgNetTrainer *t, int begin, int end)
{
	const AgNetLayer *layer = &t->net->layers[0];
	size_t stride = ag_net_stride(layer->n_out), to_stride = ag_net_stride(layer->n_in);
	size_t first = t->first_learnt_input / AG_NET_LANES * AG_NET_LANES;
	size_t n = ag_net_round(layer->n_in) - first, dropped = first_dropped(t);
	float *delta = t->input_deltas + (size_t) begin * to_stride + first;

	if (t->spread != NULL)
		gather_rows(t, begin, end);
	else
		t->ops->multiply(end - begin, (int) layer->n_out, (int) n,
						 t->rows[0].delta + (size_t) begin * stride, stride, 1,
						 t->rows[0].back + first, to_stride, NULL, delta, to_stride);
	for (int i = begin; t->input_keep != NULL && i < end; i++)
		t->ops->scale(ag_net_round(layer->n_in) - dropped,
					  t->input_keep + (size_t) i * to_stride + dropped,
					  t->input_deltas + (size_t) i * to_stride + dropped);
}

/* --- the steps of a batch */

void
ag_net_step_rows(AgNetTrainer *t, const AgNetStep *step, int begin, int end, int thread)
{
	switch (step->op)
	{
		case AG_OP_INPUT:
			input_rows(t, begin, end);
			break;
		case AG_OP_SPREAD:
			spread_rows(t, begin, end);
			break;
		case AG_OP_SPREAD_BACK:
			spread_back_rows(t, begin, end);
			break;
		case AG_OP_FORWARD:
			forward_rows(t, step->layer, begin, end, thread);
			break;
		case AG_OP_NORM:
			norm_rows(t, step->layer, begin, end);
			break;
		case AG_OP_LOSS:
			loss_rows(t, begin, end);
			break;
		case AG_OP_BACK:
			back_rows(t, step->layer, begin, end);
			break;
		case AG_OP_NORM_BACK:
			norm_back_rows(t, step->layer, begin, end);
			break;
		case AG_OP_INPUT_BACK:
			input_back_rows(t, begin, end);
			break;
		case AG_OP_NUMBER_NORM:
			norm_numbers(t, begin, end);
			break;
		case AG_OP_NUMBER_STATS:
		case AG_OP_STATS:
		case AG_OP_NORM_SUMS:
			break;
	}
}

void
ag_net_step_between(AgNetTrainer *t, const AgNetStep *step)
{
	const AgNet *net = t->net;
	size_t width = net->layers[step->layer].n_out;

	if (step->op == AG_OP_NUMBER_STATS)
		batch_stats(t, t->inputs, ag_net_stride(net->n_inputs), net->dense->n_numbers, &t->numbers);
	else if (step->op == AG_OP_STATS)
		batch_stats(t, t->rows[step->layer].post, ag_net_stride(width), ag_net_round(width),
					&t->rows[step->layer]);
	else
		norm_sums(t, step->layer);
}

static bool
is_between(const AgNetStep *step)
{
	return step->op == AG_OP_NUMBER_STATS || step->op == AG_OP_STATS || step->op == AG_OP_NORM_SUMS;
}

/* How many rows the step is for. */
static int
step_rows(const AgNetTrainer *t, const AgNetStep *step)
{
	bool is_of_inputs =
		step->op == AG_OP_INPUT || step->op == AG_OP_NUMBER_NORM || step->op == AG_OP_INPUT_BACK;

	return is_of_inputs ? t->n_rows : ag_net_member_rows(t);
}

typedef struct Region
{
	AgNetTrainer *trainer;
	int first, end; /* steps */
} Region;

static void
region_task(void *arg, int64_t begin, int64_t end, int thread)
{
	Region *region = arg;

	for (int64_t block = begin; block < end; block += AG_NET_BLOCK)
	{
		int64_t block_end = end - block < AG_NET_BLOCK ? end : block + AG_NET_BLOCK;

		/* through all layers of a wide net even one block takes too long for a cancel to wait */
		for (int s = region->first; s < region->end; s++)
		{
			if (ag_cancelled(region->trainer->ctx))
				return;
			ag_net_step_rows(region->trainer, &region->trainer->steps[s], (int) block,
							 (int) block_end, thread);
		}
	}
}

static struct AgPool *
pool_of(const AgNetTrainer *t)
{
	double flops = 6.0 * ag_net_member_rows(t) * (double) t->net->n_values;

	return flops < AG_NET_PARALLEL_FLOPS ? NULL : t->ctx->pool;
}

double
ag_net_batch_derive(AgNetTrainer *t, const uint32_t *order, int n_rows, uint64_t dropout_key)
{
	double loss = 0.0;

	t->order = order;
	t->n_rows = n_rows;
	t->dropout_key = dropout_key;
	for (int s = 0; s < t->n_steps; s++)
	{
		Region region = {t, s, s};

		if (is_between(&t->steps[s]))
		{
			ag_net_step_between(t, &t->steps[s]);
			continue;
		}
		while (region.end < t->n_steps && !is_between(&t->steps[region.end]) &&
			   step_rows(t, &t->steps[region.end]) == step_rows(t, &t->steps[s]))
			region.end++;
		ag_pool_run(pool_of(t), step_rows(t, &t->steps[s]), AG_NET_BLOCK, region_task, &region);
		s = region.end - 1;
	}
	n_rows = ag_net_member_rows(t);
	for (int i = 0; i < n_rows; i++)
		loss += t->losses[i];
	return loss / n_rows;
}

double
ag_net_batch(AgNetTrainer *t, const uint32_t *order, int n_rows, uint64_t dropout_key)
{
	double loss = ag_net_batch_derive(t, order, n_rows, dropout_key);

	if (!ag_cancelled(t->ctx))
		ag_net_batch_update(t);
	return loss;
}
