/*
 * net_train.h - the training of a net: one batch after the other (private to the nets).
 *
 * A batch is two or more parallel regions. Forward and backward run over blocks of AG_NET_BLOCK rows; between them lie
 * the sums over the batch that normalisation needs. Then the weights are updated in slices, each of which sums its own
 * gradient over the whole batch in the rows' order and applies it at once. So nothing depends on the threads.
 *
 * In a net of members every row of the batch comes once a member: all rows of the first member, then all of the second, and
 * so on. "Member rows" are these; the members' hidden layers are one product.
 */
#ifndef AG_NET_TRAIN_H
#define AG_NET_TRAIN_H

#include "engine/model/net_private.h"

/* Of a batch, below which one thread is quicker. */
#define AG_NET_PARALLEL_FLOPS 1e6

typedef enum AgNetOp
{
	AG_OP_INPUT,        /* inputs of a row */
	AG_OP_NUMBER_STATS, /* alone: mean and spread of the numbers over the batch */
	AG_OP_NUMBER_NORM,
	AG_OP_SPREAD,  /* times each member's factors: its rows' inputs */
	AG_OP_FORWARD, /* a layer's sums, activation and, where nothing is normalised, dropout */
	AG_OP_STATS,   /* alone, between regions: mean and spread over the batch */
	AG_OP_NORM,    /* normalisation and dropout */
	AG_OP_LOSS,    /* of the outputs, and its derivatives */
	AG_OP_BACK, /* derivatives of the layer's inputs, as far as its activation or normalisation */
	AG_OP_NORM_SUMS,   /* alone, between regions */
	AG_OP_NORM_BACK,   /* back through normalisation and activation */
	AG_OP_SPREAD_BACK, /* derivatives of the members' inputs */
	AG_OP_INPUT_BACK
} AgNetOp;

typedef struct AgNetStep
{
	AgNetOp op;
	uint32_t layer;
} AgNetStep;

/* One layer's rows of a batch, and what normalisation keeps. All [stride] or [batch][stride], batch being member rows. */
typedef struct AgNetRows
{
	float *post; /* what the next layer sees */
	float *
		slope; /* derivative of the activation (times dropout's factor where nothing is normalised) */
	float *delta; /* derivative of the loss by the layer's sums */
	float *back;  /* weights, transposed: [heads][round(n_out)][stride(n_in)] */
	/* normalised layers */
	float *hat;          /* normalised activations */
	float *keep;         /* dropout's factors */
	float *mean, *scale; /* of the batch: mean, 1 / spread */
	float *sum_delta, *sum_hat;
	float *running_mean, *running_square;
} AgNetRows;

typedef enum AgNetPart
{
	AG_PART_WEIGHTS,   /* rows [begin, end) of a layer's weights */
	AG_PART_BIAS,      /* and normalisation's scale and shift */
	AG_PART_EMBEDDING, /* of a slot */
	AG_PART_FACTORS,   /* of members [begin, end) */
	AG_PART_NUMBERS,   /* scale and shift of the normalised numbers */
	AG_PART_WAVES      /* of numbers [begin, end) */
} AgNetPart;

typedef struct AgNetUpdate
{
	AgNetPart part;
	uint32_t index; /* layer or slot */
	uint32_t begin, end;
	uint32_t head; /* of the layer */
} AgNetUpdate;

/* How fast each kind of weight learns, as a factor on the learning rate. */
typedef struct AgNetRates
{
	float bias, input_scale, waves, embedding;
	bool by_width; /* weights: 1 / sqrt(n_in) */
} AgNetRates;

typedef struct AgNetTrainer
{
	const AgContext *ctx;
	const AgDenseMatrix *matrix;
	const AgTrainData *data;
	AgNetParams params; /* with what was chosen by data filled in */
	AgNet *net;         /* its values are those of the last fold */
	const AgNetOps *ops;

	/* what is learnt, and Adam's moments */
	float *values, *mean, *square;                  /* [n_values] */
	float *input_scale, *scale_mean, *scale_square; /* [stride(n_inputs)], or NULL: all 1 */
	float *effective;     /* first layer's weights times input_scale; NULL without */
	float **level_shares; /* [n_slots]: share of the training rows in each column; NULL: one-hot */

	/* rows */
	float *target; /* [n_train] regression: within the range, or standardised */
	float *weight; /* [n_train] mean 1; NULL: all 1 */
	double
		loss_unit; /* how many of the loss's units the namesake's has in one of ours, at least 1 */

	/* a batch */
	int batch_size;
	int n_rows;            /* of the batch at hand */
	const uint32_t *order; /* [n_rows] places in data->train_rows */
	AgNetStep *steps;
	int n_steps;
	AgNetUpdate *updates;
	int n_updates;
	AgNetRows *rows; /* [n_layers] */
	float *inputs, *input_deltas,
		*input_keep; /* [batch][stride(n_inputs)]; the latter two may be NULL */
	float *spread,
		*spread_deltas; /* [batch][stride(n_inputs)] inputs of member rows; NULL without members */
	float *embedding_gradient; /* laid out as values, as far as the embeddings go */
	double *losses;            /* [batch] */
	float *scratch;            /* [threads][scratch_floats] */
	size_t scratch_floats;
	struct AgNetMemory *memory;  /* all of the arrays above */
	uint32_t first_learnt_input; /* from it on derivatives are wanted */
	AgNetRows numbers;    /* hat, and what is [stride], of normalised numbers; NULL: they aren't */
	uint64_t dropout_key; /* of this batch */
	float smoothing;
	AgNetRates rates;
	AgAdam adam;               /* of this step */
	double product1, product2; /* beta1^t, beta2^t */
	float *gradient; /* tests: gradients go here, laid out as values, and nothing is updated */
	float *scale_gradient; /* likewise */
} AgNetTrainer;

/* Rows of the batch at hand, once a member. */
static inline int
ag_net_member_rows(const AgNetTrainer *trainer)
{
	return trainer->n_rows * (trainer->net->n_members > 0 ? (int) trainer->net->n_members : 1);
}

/* What a layer's products take rows of: [rows][stride(n_in)]. */
static inline const float *
ag_net_layer_inputs(const AgNetTrainer *trainer, uint32_t layer)
{
	return layer > 0                 ? trainer->rows[layer - 1].post
		   : trainer->spread != NULL ? trainer->spread
									 : trainer->inputs;
}

/* Floats of one head's transposed weights. */
static inline size_t
ag_net_back_floats(const AgNetLayer *layer)
{
	return ag_net_round(layer->n_out) * ag_net_stride(layer->n_in);
}

/* Is the layer followed by dropout? Not the last hidden one of NN_TORCH. */
static inline bool
ag_net_has_dropout(const AgNetTrainer *trainer, uint32_t layer)
{
	uint32_t n = trainer->net->n_layers - (trainer->params.family == AG_NET_NN_TORCH ? 2 : 1);

	return trainer->params.dropout_prob > 0.0 && layer < n;
}

/*
 * Does the layer learn a bias? fastai's don't where normalisation follows, which matters although it would take a bias away
 * again: beside one, embeddings that begin small would hardly move a rectified unit.
 */
static inline bool
ag_net_has_bias(const AgNetTrainer *trainer, uint32_t layer)
{
	return trainer->params.family != AG_NET_FASTAI || !trainer->net->layers[layer].has_norm;
}

/* All arrays for batches of batch_size rows; initial weights. Free whatever it returns. */
AgStatus ag_net_trainer_init(const AgContext *ctx, const AgDense *dense,
							 const AgDenseMatrix *matrix, const AgTrainData *data,
							 const AgNetParams *params, AgNetTrainer *trainer);
void ag_net_trainer_free(AgNetTrainer *trainer);

/* Rows of a batch by the number of training rows, when the parameters don't say. */
int ag_net_batch_size(const AgNetParams *params, int64_t n_train);

/* Forward and backward on the rows order[0..n_rows), then the update. Mean loss of the batch. */
double ag_net_batch(AgNetTrainer *trainer, const uint32_t *order, int n_rows, uint64_t dropout_key);
/* The same without the update (for tests, and the first half of ag_net_batch). */
double ag_net_batch_derive(AgNetTrainer *trainer, const uint32_t *order, int n_rows,
						   uint64_t dropout_key);
void ag_net_batch_update(AgNetTrainer *trainer);

/* Rows [begin, end) of the batch at hand, or member rows, through one step. */
void ag_net_step_rows(AgNetTrainer *trainer, const AgNetStep *step, int begin, int end, int thread);
/* AG_OP_NUMBER_STATS, AG_OP_STATS and AG_OP_NORM_SUMS. */
void ag_net_step_between(AgNetTrainer *trainer, const AgNetStep *step);

/* Lists the updates: with updates NULL only counts them. */
int ag_net_updates_list(const AgNetTrainer *trainer, AgNetUpdate *updates);
/* Initial weights. */
void ag_net_weights_init(AgNetTrainer *trainer);
/* Effective and transposed weights of rows [begin, end) of a layer's head, from the learnt ones. */
void ag_net_weights_spread(AgNetTrainer *trainer, uint32_t layer, uint32_t head, uint32_t begin,
						   uint32_t end);
/* Those of all layers. */
void ag_net_weights_spread_all(AgNetTrainer *trainer);
/* The learnt values as prediction wants them: values[n_values]. */
void ag_net_fold(const AgNetTrainer *trainer, float *values);

/* Floats of scratch that a thread needs for the updates. */
size_t ag_net_update_floats(const AgNet *net, int batch_size);

#endif
