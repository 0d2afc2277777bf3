/*
 * net_private.h - what the files of the nets share (private to them).
 */
#ifndef AG_NET_PRIVATE_H
#define AG_NET_PRIVATE_H

#include "engine/model/net.h"

#define AG_NET_BLOCK 32 /* rows that go through the net together */
#define AG_NET_WAVES 16 /* of a number */
#define AG_NET_MAX_MEMBERS 128

typedef enum AgNetActivation /* the parameter's choices */
{
	AG_NET_ACT_RELU = 0,
	AG_NET_ACT_ELU = 1,
	AG_NET_ACT_TANH = 2,
	AG_NET_ACT_SELU = 3,
	AG_NET_ACT_MISH = 4,
	AG_NET_ACT_AUTO = 5 /* SELU for classes, Mish for numbers */
} AgNetActivation;

static inline size_t
ag_net_round(size_t n)
{
	return (n + AG_NET_LANES - 1) / AG_NET_LANES * AG_NET_LANES;
}

/* Floats from row to row of a matrix of n columns: not a multiple of 512 bytes, which would fall on few cache sets. */
static inline size_t
ag_net_stride(size_t n)
{
	size_t stride = ag_net_round(n);

	return stride % 128 == 0 && stride > 0 ? stride + AG_NET_LANES
		   : stride == 0                   ? AG_NET_LANES
										   : stride;
}

static inline size_t
ag_net_layer_values(const AgNetLayer *layer)
{
	return (ag_net_round(layer->n_in) + (layer->has_norm ? 3u : 1u)) * ag_net_stride(layer->n_out);
}

static inline size_t
ag_net_bias_at(const AgNetLayer *layer)
{
	return layer->first + ag_net_round(layer->n_in) * ag_net_stride(layer->n_out);
}

static inline size_t
ag_net_norm_at(const AgNetLayer *layer)
{
	return ag_net_bias_at(layer) + ag_net_stride(layer->n_out);
}

/* How many last layers there are. */
static inline uint32_t
ag_net_heads(const AgNet *net, uint32_t layer)
{
	return layer + 1 == net->n_layers && net->n_members > 0 ? net->n_members : 1;
}

/* Where the members' factors on the inputs begin. */
static inline size_t
ag_net_factors_at(const AgNet *net)
{
	return net->layers[0].first - (size_t) net->n_members * ag_net_stride(net->n_inputs);
}

/* Are the numbers normalised over each batch, as FASTAI's are? Prediction has that in its first layer's weights. */
static inline bool
ag_net_norms_numbers(const AgNetParams *params, const AgDense *dense)
{
	return params->family == AG_NET_FASTAI && dense->n_numbers > 0;
}

/* Where the numbers' scale and shift [stride(n_numbers)] begin, if they are normalised. */
static inline size_t
ag_net_number_norm_at(const AgNet *net)
{
	return net->layers[0].first - 2 * ag_net_stride(net->dense->n_numbers);
}

/* Values of one number's waves. */
static inline size_t
ag_net_wave_values(uint32_t n_waves, uint32_t n_wave_inputs)
{
	return (size_t) n_waves * (2 + n_wave_inputs) + ag_net_round(n_wave_inputs);
}

/* An embedding's rows: the slot's columns, and one for "none". */
static inline size_t
ag_net_slot_rows(const AgNet *net, uint32_t slot)
{
	return (size_t) net->dense->slots[slot].width + 1;
}

/* A net without arrays, in its own arena. */
AgStatus ag_net_create(const AgContext *ctx, const AgDense *dense, AgNet **net);
/* Lays out inputs, layers and values for a problem; arrays but `values` are there then. */
AgStatus ag_net_shape(const AgContext *ctx, const AgDense *dense, const AgTrainData *data,
					  const AgNetParams *params, AgNet **net);
/* What prediction relies on; otherwise AG_ERR_CORRUPT. */
AgStatus ag_net_check(const AgContext *ctx, const AgNet *net);
/* Fills feature_of_number. */
AgStatus ag_net_map_numbers(const AgContext *ctx, AgNet *net);

/* Numbers that stand for one of n_levels, the unseen one included. */
uint32_t ag_net_embedding_width(const AgNetParams *params, uint32_t n_levels);
/* The layers' widths, the last one excluded; returns how many. */
int ag_net_widths(const AgNetParams *params, const AgTrainData *data, uint32_t *widths);

/* One row's inputs, from its numbers and slots: x[ag_net_stride(n_inputs)], zeros behind them included. */
void ag_net_inputs(const AgNet *net, const float *values, const float *numbers,
				   const uint32_t *slots, float *x);
/* The bent number, where the net bends. */
float ag_net_number(const AgNet *net, float x);

/* Bytes of scratch that ag_net_run_block needs, in floats. */
size_t ag_net_block_floats(const AgNet *net);
/* The same as ag_net_run, for n rows of a matrix (at most AG_NET_BLOCK): out[n][ag_net_n_out]. */
void ag_net_run_block(const AgNet *net, const AgDenseMatrix *matrix, const uint32_t *rows, int n,
					  float *scratch, double *out);

#endif
