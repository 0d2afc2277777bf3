/*
 * net_trainer.c - what the training of a net keeps in memory, and the order of a batch's steps.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/net_train.h"

#define BLOCK_HEAD 64

/* Blocks of memory, freed together; each is 64-byte aligned, so it begins with a line of its own. */
typedef struct AgNetMemory
{
	struct AgNetMemory *next;
} AgNetMemory;

static AgStatus
take(AgNetTrainer *t, size_t n, size_t size, void *out)
{
	size_t bytes;
	char *block;

	if (__builtin_mul_overflow(n, size, &bytes) ||
		__builtin_add_overflow(bytes, BLOCK_HEAD, &bytes))
		return ag_mem_error(t->ctx->mem, SIZE_MAX, t->ctx->error);
	AG_TRY(ag_get_zeroed(t->ctx, bytes, 1, &block));
	((AgNetMemory *) (void *) block)->next = t->memory;
	t->memory = (AgNetMemory *) (void *) block;
	block += BLOCK_HEAD;
	memcpy(out, &block, sizeof block);
	return AG_OK;
}

static AgStatus
take_floats(AgNetTrainer *t, size_t n, float **out)
{
	return take(t, n, sizeof(float), out);
}

int
ag_net_batch_size(const AgNetParams *params, int64_t n_train)
{
	int64_t size = params->batch_size, power = 8;

	if (size == 0 && params->family == AG_NET_FASTAI)
		size = n_train >= 200000 ? 512 : n_train <= 256 ? 32 : 256;
	else if (size == 0 && params->family == AG_NET_TABM)
		size = n_train < 3000 ? 32 : n_train < 6000 ? 64 : n_train < 12000 ? 128 : 256;
	else if (size == 0)
	{
		for (int64_t n = n_train; n >= 10; n /= 10)
			power *= 2;
		size = power < params->max_batch_size ? power : params->max_batch_size;
	}
	return (int) (size < n_train ? size : n_train);
}

/* Weights to a mean of 1. They may be of any size, so they are first divided by the greatest. */
static AgStatus
take_weights(AgNetTrainer *t)
{
	const AgTrainData *data = t->data;
	double greatest = 0.0, total = 0.0;

	if (data->weight == NULL)
		return AG_OK;
	AG_TRY(take_floats(t, (size_t) data->n_train, &t->weight));
	for (int64_t i = 0; i < data->n_train; i++)
		greatest = fmax(greatest, data->weight[data->train_rows[i]]);
	if (!(greatest > 0.0))
		return ag_error_set(t->ctx->error, AG_ERR_DATA, "all training rows have a weight of 0");
	for (int64_t i = 0; i < data->n_train; i++)
		total += fmax(data->weight[data->train_rows[i]] / greatest, 0.0);
	total /= (double) data->n_train;
	for (int64_t i = 0; i < data->n_train; i++)
		t->weight[i] = (float) (fmax(data->weight[data->train_rows[i]] / greatest, 0.0) / total);
	return AG_OK;
}

/*
 * The target as the net sees it: within the range of the predictions as 0 to 1 for a sigmoid, else to mean 0 and spread 1.
 * All of it runs in units that bring the greatest label near 1, so that nothing overflows.
 */
static AgStatus
take_target(AgNetTrainer *t)
{
	const AgTrainData *data = t->data;
	int64_t n = data->n_train;
	double greatest = 0.0, unit, low = INFINITY, high = -INFINITY, mean = 0.0, square = 0.0, extend;
	double centre, spread;
	int e = 0;

	AG_TRY(take_floats(t, (size_t) n, &t->target));
	for (int64_t i = 0; i < n; i++)
		greatest = fmax(greatest, fabs(data->target[data->train_rows[i]]));
	if (greatest > 0.0)
		(void) frexp(greatest, &e);
	e = e < -1000 ? -1000 : e > 1020 ? 1020 : e;
	unit = ag_pow2i(-e);
	for (int64_t i = 0; i < n; i++)
	{
		double y = data->target[data->train_rows[i]] * unit;

		low = fmin(low, y);
		high = fmax(high, y);
		mean += y;
	}
	mean /= (double) n;
	for (int64_t i = 0; i < n; i++)
	{
		double d = data->target[data->train_rows[i]] * unit - mean;

		square += d * d;
	}
	square = sqrt(square / (double) n);
	extend = t->params.y_range_extend * square;
	low = low >= 0.0 ? fmax(0.0, low - extend) : low - extend;
	high = high <= 0.0 ? fmin(0.0, high + extend) : high + extend;
	centre = t->net->link == AG_NET_RANGE ? low : mean;
	spread = t->net->link == AG_NET_RANGE ? high - low : square;
	for (int64_t i = 0; i < n; i++)
		t->target[i] =
			(float) (spread > 0.0 ? (data->target[data->train_rows[i]] * unit - centre) / spread
								  : 0.5);
	t->net->centre = centre / unit;
	t->net->half_spread = 0.5 * (spread / unit > 1e308 ? 1e308 : spread / unit);
	/* NN_TORCH's loss is in the label's own units; what is weighed against it must be, too */
	if (t->net->link == AG_NET_RANGE)
		t->loss_unit = fmin(fmax(spread / unit, 1.0), 1e12);
	t->net->low = fmax(low / unit, -1.7e308);
	t->net->high = fmin(high / unit, 1.7e308);
	return AG_OK;
}

/* How common each column of the embedded slots is among the training rows. */
static AgStatus
take_shares(AgNetTrainer *t)
{
	const AgNet *net = t->net;
	double share = 1.0 / (double) t->data->n_train;

	AG_TRY(take(t, (size_t) net->n_slots + 1, sizeof *t->level_shares, &t->level_shares));
	for (uint32_t s = 0; s < net->n_slots; s++)
	{
		size_t width = net->dense->slots[s].width;
		uint32_t first = net->dense->slots[s].first;
		uint32_t *counts;

		if (net->slots[s].first == AG_NET_ONE_HOT)
			continue;
		AG_TRY(take_floats(t, width, &t->level_shares[s]));
		AG_TRY(ag_get_zeroed(t->ctx, width + 1, sizeof *counts, &counts));
		for (int64_t i = 0; i < t->data->n_train; i++)
		{
			uint32_t column =
				t->matrix->slots[(size_t) t->data->train_rows[i] * t->matrix->n_slots + s];

			counts[column == net->dense->n_columns ? width : column - first]++;
		}
		for (size_t i = 0; i < width; i++)
			t->level_shares[s][i] = (float) (counts[i] * share);
		ag_mem_free(t->ctx->mem, counts);
	}
	return AG_OK;
}

/* What normalisation of a layer's rows keeps: n = rows times stride. */
static AgStatus
take_norm(AgNetTrainer *t, size_t stride, size_t n, AgNetRows *rows)
{
	AG_TRY(take_floats(t, n, &rows->hat));
	AG_TRY(take_floats(t, stride, &rows->mean));
	AG_TRY(take_floats(t, stride, &rows->scale));
	AG_TRY(take_floats(t, stride, &rows->sum_delta));
	AG_TRY(take_floats(t, stride, &rows->sum_hat));
	AG_TRY(take_floats(t, stride, &rows->running_mean));
	return take_floats(t, stride, &rows->running_square);
}

/* Of a whole batch. */
static size_t
member_rows(const AgNetTrainer *t)
{
	return (size_t) t->batch_size * (t->net->n_members > 0 ? t->net->n_members : 1);
}

static AgStatus
take_layer(AgNetTrainer *t, uint32_t l)
{
	const AgNetLayer *layer = &t->net->layers[l];
	AgNetRows *rows = &t->rows[l];
	size_t stride = ag_net_stride(layer->n_out), n = member_rows(t) * stride;
	bool is_last = l + 1 == t->net->n_layers;

	AG_TRY(take_floats(t, n, &rows->post));
	AG_TRY(take_floats(t, n, &rows->delta));
	if (l > 0 || t->first_learnt_input < t->net->n_inputs || t->net->n_members > 0)
		AG_TRY(take_floats(t, ag_net_heads(t->net, l) * ag_net_back_floats(layer), &rows->back));
	if (!is_last)
		AG_TRY(take_floats(t, n, &rows->slope));
	if (!layer->has_norm)
		return AG_OK;
	if (ag_net_has_dropout(t, l))
		AG_TRY(take_floats(t, n, &rows->keep));
	return take_norm(t, stride, n, rows);
}

/* What is learnt, and the rows of a batch, layer by layer and before the first. */
static AgStatus
take_weights_and_rows(AgNetTrainer *t)
{
	const AgNet *net = t->net;
	size_t stride = ag_net_stride(net->n_inputs);
	size_t n_first = ag_net_round(net->n_inputs) * ag_net_stride(net->layers[0].n_out);

	AG_TRY(take_floats(t, net->n_values, &t->values));
	AG_TRY(take_floats(t, net->n_values, &t->mean));
	AG_TRY(take_floats(t, net->n_values, &t->square));
	if (t->params.family == AG_NET_REALMLP)
	{
		AG_TRY(take_floats(t, stride, &t->input_scale));
		AG_TRY(take_floats(t, stride, &t->scale_mean));
		AG_TRY(take_floats(t, stride, &t->scale_square));
		AG_TRY(take_floats(t, n_first, &t->effective));
	}
	AG_TRY(take_floats(t, (size_t) t->batch_size * stride, &t->inputs));
	if (t->first_learnt_input < net->n_inputs)
	{
		AG_TRY(take_floats(t, (size_t) t->batch_size * stride, &t->input_deltas));
		AG_TRY(take_floats(t, net->layers[0].first, &t->embedding_gradient));
		if (t->params.embedding_dropout_prob > 0.0 && net->first_wave < net->n_inputs)
			AG_TRY(take_floats(t, (size_t) t->batch_size * stride, &t->input_keep));
	}
	if (ag_net_norms_numbers(&t->params, net->dense))
	{
		size_t width = ag_net_stride(net->dense->n_numbers);

		AG_TRY(take_norm(t, width, (size_t) t->batch_size * width, &t->numbers));
	}
	if (net->n_members > 0)
	{
		AG_TRY(take_floats(t, member_rows(t) * stride, &t->spread));
		AG_TRY(take_floats(t, member_rows(t) * stride, &t->spread_deltas));
	}
	AG_TRY(take(t, net->n_layers, sizeof *t->rows, &t->rows));
	for (uint32_t l = 0; l < net->n_layers; l++)
		AG_TRY(take_layer(t, l));
	AG_TRY(take(t, member_rows(t), sizeof *t->losses, &t->losses));
	t->scratch_floats = ag_net_round(ag_net_update_floats(net, t->batch_size));
	return take_floats(t, (size_t) ag_pool_size(t->ctx->pool) * t->scratch_floats, &t->scratch);
}

static void
add_step(AgNetTrainer *t, AgNetOp op, uint32_t layer)
{
	t->steps[t->n_steps++] = (AgNetStep){op, layer};
}

static AgStatus
take_steps(AgNetTrainer *t)
{
	const AgNet *net = t->net;

	AG_TRY(take(t, (size_t) net->n_layers * 6 + 7, sizeof *t->steps, &t->steps));
	add_step(t, AG_OP_INPUT, 0);
	if (t->numbers.hat != NULL)
	{
		add_step(t, AG_OP_NUMBER_STATS, 0);
		add_step(t, AG_OP_NUMBER_NORM, 0);
	}
	if (t->spread != NULL)
		add_step(t, AG_OP_SPREAD, 0);
	for (uint32_t l = 0; l < net->n_layers; l++)
	{
		add_step(t, AG_OP_FORWARD, l);
		if (!net->layers[l].has_norm)
			continue;
		add_step(t, AG_OP_STATS, l);
		add_step(t, AG_OP_NORM, l);
	}
	add_step(t, AG_OP_LOSS, 0);
	for (uint32_t l = net->n_layers - 1; l > 0; l--)
	{
		add_step(t, AG_OP_BACK, l);
		if (!net->layers[l - 1].has_norm)
			continue;
		add_step(t, AG_OP_NORM_SUMS, l - 1);
		add_step(t, AG_OP_NORM_BACK, l - 1);
	}
	if (t->spread != NULL)
		add_step(t, AG_OP_SPREAD_BACK, 0);
	if (t->input_deltas != NULL)
		add_step(t, AG_OP_INPUT_BACK, 0);
	t->n_updates = ag_net_updates_list(t, NULL);
	AG_TRY(take(t, (size_t) t->n_updates, sizeof *t->updates, &t->updates));
	ag_net_updates_list(t, t->updates);
	return AG_OK;
}

AgStatus
ag_net_trainer_init(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
					const AgTrainData *data, const AgNetParams *params, AgNetTrainer *t)
{
	bool is_realmlp = params->family == AG_NET_REALMLP, is_tabm = params->family == AG_NET_TABM;

	memset(t, 0, sizeof *t);
	t->ctx = ctx;
	t->matrix = matrix;
	t->data = data;
	t->params = *params;
	t->product1 = t->product2 = t->loss_unit = 1.0;
	if (data->n_train < 1)
		return ag_error_set(ctx->error, AG_ERR_DATA, "there are no training rows");
	AG_TRY(ag_net_shape(ctx, dense, data, params, &t->net));
	t->ops = t->net->ops;
	t->batch_size = ag_net_batch_size(params, data->n_train);
	t->first_learnt_input = ag_net_norms_numbers(params, dense) ? 0 : t->net->first_wave;
	/* Smoothed labels make better classes and worse probabilities: REALMLP's are by default, FASTAI's when asked for. */
	t->smoothing = (is_realmlp || is_tabm) && ag_metric_needs_probabilities(data->stop_metric)
					   ? 0.0f
					   : (float) params->label_smoothing;
	if (is_realmlp && params->learning_rate <= 0.0)
		t->params.learning_rate = ag_problem_has_classes(data->problem) ? 0.04 : 0.07;
	t->rates = is_realmlp ? (AgNetRates){0.1f, 6.0f, 0.1f, 1.0f, true}
						  : (AgNetRates){1.0f, 1.0f, 1.0f, 1.0f, false};
	AG_TRY(take_weights(t));
	if (!ag_problem_has_classes(data->problem))
		AG_TRY(take_target(t));
	AG_TRY(take_shares(t));
	AG_TRY(take_weights_and_rows(t));
	AG_TRY(take_steps(t));
	ag_net_weights_init(t);
	return AG_OK;
}

void
ag_net_trainer_free(AgNetTrainer *t)
{
	AgNetMemory *next;

	for (AgNetMemory *at = t->memory; at != NULL; at = next)
	{
		next = at->next;
		ag_mem_free(t->ctx->mem, at);
	}
	t->memory = NULL;
	ag_net_free(t->net);
	t->net = NULL;
}

void
ag_net_size_add(AgNetSize *size, const AgNetParams *params, bool is_number, uint32_t n_columns)
{
	double width = n_columns;
	double numbers = ag_net_embedding_width(params, n_columns + 1) + 8.0;
	bool is_embedded = !is_number && width >= params->embed_min_levels;

	if (is_number)
	{
		size->inputs += params->numeric_waves ? 1.0 + params->n_wave_inputs : 1.0;
		size->learnt += params->numeric_waves ? 64.0 + 16.0 * params->n_wave_inputs : 0.0;
	}
	size->inputs += is_embedded ? numbers : width;
	size->learnt += is_embedded ? (width + 1.0) * numbers : 0.0;
}

int64_t
ag_net_memory_of(const AgNetSize *size, const AgTrainData *data, const AgNetParams *params,
				 int n_threads)
{
	uint32_t widths[AG_NET_MAX_LAYERS], n_classes = (uint32_t) ag_train_outputs(data);
	int n = ag_net_widths(params, data, widths);
	double values = size->learnt, below = size->inputs + 16.0, widest = below, units = 0.0, bytes;
	double batch = ag_net_batch_size(params, data->n_train);
	double members = params->n_members > 0 ? params->n_members : 1.0;

	if (params->n_members > 0)
		values += members * below;
	for (int l = 0; l <= n; l++)
	{
		double outputs = 32.0 + (l < n ? widths[l] : n_classes);

		values += (below + 16.0) * outputs * (l == n ? members : 1.0);
		units += outputs;
		widest = fmax(widest, outputs);
		below = outputs;
	}
	/* weights: three of Adam's, transposed, effective, two folded, one kept; rows: up to five arrays a layer */
	bytes =
		4.0 * (8.0 * values + batch * (4.0 * size->inputs + members * (5.0 * units + 2.0)) +
			   n_threads * (96.0 * widest + 12.0 * batch + 64.0 * n_classes + AG_NET_MAX_WIDTH));
	if (params->n_members > 0)
		bytes += 8.0 * members * batch * (size->inputs + 16.0);
	bytes += 20.0 * (double) data->n_train + 16.0 * (double) data->n_valid * n_classes + 1e6;
	return bytes < 9e18 ? (int64_t) bytes : INT64_MAX;
}

int64_t
ag_net_memory(const AgDense *dense, const AgTrainData *data, const AgNetParams *params,
			  int n_threads)
{
	AgNetSize size = {0};

	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];

		ag_net_size_add(&size, params, feature->kind != AG_DENSE_CATEGORY,
						feature->slot != AG_DENSE_NONE ? dense->slots[feature->slot].width : 0);
	}
	return ag_net_memory_of(&size, data, params, n_threads);
}
