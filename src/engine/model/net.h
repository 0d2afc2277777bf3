/*
 * net.h - neural nets on tables: the families NN_TORCH, FASTAI, REALMLP and TABM.
 *
 * A row's inputs are, one behind the other: the numbers of the transform (dense.h); a 1 and zeros for each of its slots
 * of few columns; waves of the numbers, where the family has them; and for each wider slot a vector that is learnt (its
 * embedding). Then come layers of sums, each followed by an activation, perhaps by batch normalisation and, in training,
 * by dropout; and a last layer of sums, one an output.
 *
 * NN_TORCH and FASTAI follow the nets of those names in AutoGluon: plain layers trained at a constant rate until the
 * validation score stops improving, and a net with batch normalisation trained on a one-cycle schedule. REALMLP follows
 * Holzmueller, Grinsztajn, Steinwart 2024, "Better by default: strong pre-tuned MLPs and boosted trees on tabular data".
 * TABM follows Gorishniy, Kotelnikov, Babenko 2025, "TabM: advancing tabular deep learning with parameter-efficient
 * ensembling", in its small form (section 3.3): several members share all hidden layers; each has factors of its own on the
 * inputs and a last layer of its own, is trained by its own loss, and the prediction is the mean of theirs.
 *
 * The same bytes come out at any number of threads and on every processor, while neither the time limit nor memory binds.
 */
#ifndef AG_NET_H
#define AG_NET_H

#include "engine/base/bytes.h"
#include "engine/model/cuts.h"
#include "engine/model/dense.h"
#include "engine/model/boost.h"
#include "engine/model/net_ops.h"
#include "engine/model/param.h"
#include "engine/model/stages.h"

#define AG_NET_MAX_WIDTH 4096 /* of a hidden layer */
#define AG_NET_MAX_LAYERS 16  /* hidden ones */

typedef enum AgNetFamily
{
	AG_NET_NN_TORCH = 0,
	AG_NET_FASTAI = 1,
	AG_NET_REALMLP = 2,
	AG_NET_TABM = 3
} AgNetFamily;

typedef enum AgNetWaves
{
	AG_NET_COSINES = 0,
	AG_NET_PIECES = 1
} AgNetWaves;

typedef struct AgNetParams
{
	AgNetFamily family; /* not a user parameter */
	AgParamInts layers; /* widths of the hidden layers; none: num_layers of hidden_size */
	int num_layers;
	int hidden_size;
	int activation; /* AgNetActivation */
	double dropout_prob;
	double embedding_dropout_prob;
	bool use_batchnorm;
	int embed_min_levels; /* slots of at least so many columns are embedded */
	/* NN_TORCH: in factor * max(2, min(most, 1.6 levels^exponent)) numbers */
	double embed_factor, embed_exponent;
	int embed_most;
	double learning_rate;
	double weight_decay;
	int batch_size;     /* 0: by the number of rows */
	int max_batch_size; /* NN_TORCH: then at most that */
	int num_epochs;
	int patience; /* epochs without a better score; -1: 20 and half of those to the best one; 0: never stops early */
	double min_delta; /* what counts as a better score */
	double
		y_range_extend; /* regression: predictions keep to the training range, so many deviations wider */
	double label_smoothing; /* classification */
	bool numeric_waves;     /* embeddings of the numbers: periodic, */
	int wave_kind;          /* AgNetWaves: or piecewise linear */
	int n_wave_inputs;      /* that a number's waves are summed up to */
	int n_members;          /* TABM; 0: the net is one */
	AgDenseParams dense;
	uint64_t seed; /* not a user parameter */
	bool use_half; /* likewise: products of bfloat16 on a GPU that has them */
} AgNetParams;

extern const AgParamSpec ag_nn_specs[];
extern const int ag_nn_n_specs;
extern const AgParamSpec ag_fastai_specs[];
extern const int ag_fastai_n_specs;
extern const AgParamSpec ag_realmlp_specs[];
extern const int ag_realmlp_n_specs;
extern const AgParamSpec ag_tabm_specs[];
extern const int ag_tabm_n_specs;

/*
 * The specs describe only what users may set. default fills in all of it; complete does what is left to do behind
 * ag_params_default and ag_param_set.
 */
void ag_net_params_default(AgNetFamily family, AgNetParams *params);
void ag_net_params_complete(AgNetFamily family, AgNetParams *params);

typedef enum AgNetLink
{
	AG_NET_IDENTITY = 0, /* centre + 2 half_spread z */
	AG_NET_RANGE = 1,    /* centre + 2 half_spread sigmoid(z) */
	AG_NET_SOFTMAX = 2,
	AG_NET_QUANTILES = 3 /* as the first, each output; in ascending order */
} AgNetLink;

/*
 * At `first` in values lie weights [n_in, rounded up to 16][stride], bias [stride] and, normalised, scale and shift. Of the last
 * layer of a net of members there is one such lot a member, one behind the other.
 */
typedef struct AgNetLayer
{
	uint32_t n_in, n_out;
	uint32_t activation; /* AgActivation */
	uint32_t has_norm;   /* behind the activation: scale[j] x + shift[j] */
	uint64_t first;
} AgNetLayer;

#define AG_NET_ONE_HOT UINT64_MAX
#define AG_NET_BENDS 1u
#define AG_NET_IN_PIECES 2u

/* A slot of the transform as inputs. */
typedef struct AgNetSlot
{
	uint32_t first_input;
	uint32_t n_inputs;
	uint64_t
		first; /* embedding [columns + 1][n_inputs] in values, the last for "none"; or AG_NET_ONE_HOT */
} AgNetSlot;

/* A fitted net. */
typedef struct AgNet
{
	/* the image's head */
	uint32_t link; /* AgNetLink */
	uint32_t n_outputs;
	uint32_t n_layers; /* the last one included */
	uint32_t n_inputs;
	uint32_t n_slots;
	uint32_t n_waves;       /* of a number; 0: none */
	uint32_t n_wave_inputs; /* inputs that a number's waves are summed up to */
	uint32_t first_wave;    /* input */
	uint32_t
		bends; /* AG_NET_BENDS: numbers become x / sqrt(1 + x^2 / 9) first; AG_NET_IN_PIECES: waves are pieces */
	/* factors on the inputs [n_members][stride(n_inputs)] lie right before layer 0's values; 0: the net is one, without */
	uint32_t n_members;
	uint64_t
		first_wave_value; /* [n_numbers]: frequencies, phases [n_waves] (pieces: 1 / width, -start / width), sums [n_wave_inputs][n_waves], bias */
	double centre, half_spread, low, high; /* regression */
	/* the arrays */
	const AgNetLayer *layers;
	const AgNetSlot *slots;
	const float *values;
	uint64_t n_values;
	const AgDense *dense;
	AgDense *own_dense;                /* set when the model was read from an image */
	const uint32_t *feature_of_number; /* [dense->n_numbers] */
	const AgNetOps *ops;
	AgArena arena; /* owns this struct, and the arrays unless they lie in an image */
} AgNet;

typedef struct AgNetResult
{
	AgNet *model;        /* refers to the transform that it was trained with */
	double *valid_proba; /* [n_valid][max(1, n_classes)]; owned, ag_mem_free */
	AgStages stages;     /* of the validation rows, by epoch, where the data keeps_rounds; owned */
	int best_epoch;      /* epochs behind the kept weights, rounded up */
	int epochs_run;
	double best_value; /* stop metric of the kept weights, plain; NaN without validation rows */
	bool stopped_by_time;
	bool stopped_by_patience;
	AgCuts cuts;            /* what the time decided */
	bool on_gpu;            /* ctx->gpu made the steps */
	bool gpu_failed;        /* the device, or its memory, failed */
	char cpu_because[300];  /* why not, where there was a ctx->gpu */
	bool in_half;           /* as params->use_half wanted */
	char half_because[200]; /* why not, where it was wanted and a GPU made the steps */
	AgHistory history;      /* of the stop metric; none without validation rows */
} AgNetResult;

/*
 * Trains on data->train_rows of a matrix that `dense` (fitted on those rows) made of the whole table; data->bins isn't
 * looked at. Steps are made on ctx->gpu, if there is one that can, with the same bits (but with products in half precision, where
 * params->use_half asks for them and the GPU has them). Keeps the weights of the epoch with the best value of data->stop_metric (among equal ones of
 * classification, the least log-loss). At the deadline it gives the best so far, AG_ERR_TIME when not one step was made;
 * AG_ERR_CANCELLED within 100 ms of the flag, on a GPU when the steps that were handed over are done. AG_ERR_DATA without training
 * rows or when the weights grow without bound.
 */
AgStatus ag_net_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
					  const AgTrainData *data, const AgNetParams *params, AgNetResult *result);
void ag_net_result_free(const AgContext *ctx, AgNetResult *result);

/* What the features make of a net: add one after the other to an all-zero one, with the columns of its slot or 0. */
typedef struct AgNetSize
{
	double inputs, learnt;
} AgNetSize;

void ag_net_size_add(AgNetSize *size, const AgNetParams *params, bool is_number,
					 uint32_t n_columns);

/* Upper estimates of the memory that training takes beyond the matrix, in bytes. */
int64_t ag_net_memory_of(const AgNetSize *size, const AgTrainData *data, const AgNetParams *params,
						 int n_threads);
int64_t ag_net_memory(const AgDense *dense, const AgTrainData *data, const AgNetParams *params,
					  int n_threads);

void ag_net_free(AgNet *net); /* NULL allowed */

/* An image of kind AG_IMAGE_NET, the transform included; reading checks all of it, in place (AG_ERR_CORRUPT). */
AgStatus ag_net_write(const AgContext *ctx, const AgNet *net, AgWriter *writer);
AgStatus ag_net_read(const AgContext *ctx, const void *image, size_t size, AgNet **net);

/* Numbers that ag_net_run writes: 1, or the number of classes. */
uint32_t ag_net_n_out(const AgNet *net);
/*
 * One row: the value, or the classes' probabilities. Always finite, no allocation, any number of threads. scratch: as
 * ag_net_run_rows for one row; a net without members doesn't look at it.
 */
void ag_net_run(const AgNet *net, const double *features, void *scratch, double *out);
/*
 * Many rows, features[n_rows][n_features] to out[n_rows][n_out]: the same bytes as row by row, save the sign of a zero, and
 * several times faster. scratch has room for n_rows times ag_net_row_scratch_bytes, 64-byte aligned.
 */
void ag_net_run_rows(const AgNet *net, int64_t n_rows, const double *features, void *scratch,
					 double *out);
size_t ag_net_row_scratch_bytes(const AgNet *net);

#endif
