/*
 * device.h - what an accelerator does for the engine: one table of operations that a provider fills.
 *
 * Plain C that C++ reads too, and nothing of the engine's own types: the two sides are built apart. An entry that is NULL is an
 * operation that the provider doesn't offer; whoever wanted it computes on the CPU, which is the reference: a device that
 * offers an operation gives the same integers and the same bytes.
 *
 * Every operation that can fail gives an AgDeviceStatus; ops->why() then has the text, in the style of an errdetail without
 * its period. One thread at a time uses a device and what was made on it.
 */
#ifndef AG_DEVICE_H
#define AG_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Raised whenever a struct or the meaning of an entry changes; both sides must have the same. */
#define AG_DEVICE_ABI 6

#ifdef __cplusplus
extern "C" {
#endif

typedef enum AgDeviceStatus
{
	AG_DEVICE_OK = 0,
	AG_DEVICE_MEMORY,      /* the device, or this fit's share of it, is full; it works on */
	AG_DEVICE_UNSUPPORTED, /* the provider can't do it with these parameters; why() names what */
	AG_DEVICE_STOPPED,     /* poll() said so */
	AG_DEVICE_LOST         /* nothing works on the device any more but freeing and closing */
} AgDeviceStatus;

/* The provider's own. */
typedef struct AgDevice AgDevice;
typedef struct AgDeviceMatrix AgDeviceMatrix;
typedef struct AgDeviceBinner AgDeviceBinner;
typedef struct AgDeviceBoost AgDeviceBoost;
typedef struct AgDeviceForest AgDeviceForest;
typedef struct AgDeviceNet AgDeviceNet;
typedef struct AgDeviceKnn AgDeviceKnn;
typedef struct AgDeviceLinear AgDeviceLinear;

typedef struct AgDeviceMemory
{
	int64_t total_bytes; /* of the device */
	int64_t free_bytes;  /* of the device, now */
	int64_t limit_bytes; /* that this fit may hold */
	int64_t used_bytes;  /* that this fit holds */
	int64_t peak_bytes;
} AgDeviceMemory;

/* ---- the binned matrix: see AgBins ---- */

typedef struct AgDeviceFeature
{
	int32_t n_bins; /* value bins; bin 0 is missing and comes on top */
	bool is_category;
	bool has_other;
	const double *cuts;    /* [n_bins - 1]; NULL: a category */
	const double *centers; /* [n_bins] likewise: see AgBinFeature */
} AgDeviceFeature;

typedef struct AgDeviceBins
{
	int64_t n_rows;
	int32_t n_features;
	const AgDeviceFeature *features; /* [n_features] */
	int64_t row_stride;
	const uint8_t *rows; /* [n_rows][row_stride] */
	int64_t column_stride;
	const uint8_t *columns; /* [n_features][column_stride] */
	/*
	 * What the caller is about to take beside it. Where that and the matrix don't fit, the copy does without columns, or
	 * rows come there in blocks, each time that they are looked at: then `rows` and `columns` must live as long as the copy.
	 */
	int64_t spare_bytes;
} AgDeviceBins;

/* As much of a matrix as decides what a model takes. */
typedef struct AgDeviceShape
{
	int64_t n_rows, n_cells; /* cells: of all features, n_bins + 1 each */
	int32_t n_features;
} AgDeviceShape;

/* How a copy lies on the device. */
typedef struct AgDeviceLayout
{
	int64_t n_bytes;
	int32_t n_blocks; /* that its rows come in; 0: all are there */
	bool has_columns;
} AgDeviceLayout;

/* ---- boosting ---- */

typedef enum AgDeviceLoss
{
	AG_DEVICE_NO_LOSS = 0, /* that it has */
	AG_DEVICE_SQUARED,
	AG_DEVICE_LOGISTIC,
	AG_DEVICE_SOFTMAX,
	AG_DEVICE_ABSOLUTE,
	AG_DEVICE_PINBALL,
	AG_DEVICE_HUBER,
	AG_DEVICE_FAIR,
	AG_DEVICE_PSEUDO_HUBER,
	AG_DEVICE_POISSON,
	AG_DEVICE_GAMMA,
	AG_DEVICE_TWEEDIE
} AgDeviceLoss;

/* What early stopping watches, where a device can: means over the validation rows. */
typedef enum AgDeviceMetric
{
	AG_DEVICE_NO_METRIC = 0, /* that it has */
	AG_DEVICE_METRIC_HITS,   /* predicted class right: 1 */
	AG_DEVICE_METRIC_LOG,    /* -ln of the true class's probability */
	AG_DEVICE_METRIC_SQUARED,
	AG_DEVICE_METRIC_ABSOLUTE,
	AG_DEVICE_METRIC_SHARE,    /* absolute error over the label */
	AG_DEVICE_METRIC_SYMMETRIC /* likewise, over label and prediction */
} AgDeviceMetric;

typedef enum AgDeviceOrder
{
	AG_DEVICE_BEST_FIRST = 0,
	AG_DEVICE_DEPTHWISE,
	AG_DEVICE_SYMMETRIC
} AgDeviceOrder;

/* One booster: its rows, its loss, the limits of its trees. Arrays are read during boost_create only. */
typedef struct AgDeviceBoostSpec
{
	AgDeviceLoss loss;
	int32_t n_outputs;
	double unit;               /* gradients are real gradients / unit */
	double positive;           /* factor on rows of class 1 of two */
	double multiclass_hessian; /* factor on p(1-p) */
	double delta, power, step; /* AgLossParams' */
	bool is_relative;          /* absolute error in shares of the label */
	bool renews_leaves;        /* boost_renew is called */
	bool sums_weights;         /* leaves' sums are of weights, not of hessians */
	const double *levels;      /* [n_outputs] of percentiles, with renews_leaves; else NULL */
	const int8_t *monotone;    /* [n_features] AgSplitRules'; NULL: none */
	AgDeviceMetric metric;     /* boost_metric is called */
	bool weighs_metric;        /* by weight, as it is */
	const double *target;      /* [n_rows of the matrix] losses of numbers */
	const int32_t *class_of;   /* [n_rows] the others */
	const double *weight;      /* [n_rows]; NULL: all 1 */
	const uint32_t *train_rows;
	int64_t n_train;
	const uint32_t *valid_rows;
	int64_t n_valid;
	const double *base; /* [n_outputs] first scores */
	AgDeviceOrder order;
	int32_t max_leaves;
	int32_t max_depth; /* INT32_MAX: none */
	bool has_cosine_score;
	double fraction_bylevel, fraction_bynode; /* of features */
	bool has_draws;    /* draw() is called: splits are sought by drawn gradients and weights */
	int32_t draw_kind; /* an AgBootstrapKind */
	double draw_temperature, draw_share;
} AgDeviceBoostSpec;

/* The largest gradient and hessian of some rows; see AgGradientRange. */
typedef struct AgDeviceRange
{
	float max_g, max_h;
} AgDeviceRange;

/* A tree's limits and penalties in quantised units: AgSplitRules, field by field. */
typedef struct AgDeviceRules
{
	double l1, l2, cat_l2, max_step, path_smooth, min_gain, min_h;
	int64_t min_rows;
	bool is_plain, has_random_cut;
	double cat_smooth, cat_smooth_h;
	int32_t max_cat_threshold, max_cat_to_onehot;
	int64_t min_rows_per_group;
	double noise;
	bool roots_gain;
} AgDeviceRules;

/* How one tree is to be grown. */
typedef struct AgDeviceTreeOrder
{
	/* rows in other orders of statistics: as many features and bins as the booster's own; NULL: that one */
	const AgDeviceMatrix *matrix;
	bool from_draws;      /* gradients as drawn, not as they are */
	const uint32_t *rows; /* the bag, ascending; NULL: all train rows */
	int64_t n_rows;       /* 0: nothing can be gained, the tree is a leaf */
	bool has_equal_hessians;
	double per_g, per_h; /* steps in a unit of gradient and hessian */
	uint64_t rounding_key, growth_key;
	const uint8_t *is_used; /* [n_features] */
	AgDeviceRules rules;
	double fixed_g, fixed_h; /* fixed-point steps in a unit, for the leaves' sums */
	/* Called between steps: 0 go on, 1 stop growing and keep what there is, 2 give up. */
	int (*poll)(void *arg);
	void *arg;
} AgDeviceTreeOrder;

/* AgSplit, field by field. */
typedef struct AgDeviceSplit
{
	double gain, rank;
	int32_t feature, bin;
	bool is_category, has_cat_l2, missing_left, unseen_left;
	int64_t left_g, left_h;
	uint64_t left_bins[4];
} AgDeviceSplit;

typedef struct AgDeviceNode
{
	AgDeviceSplit split;
	int32_t left, right; /* node numbers, or ~leaf number */
} AgDeviceNode;

typedef struct AgDeviceLeaf
{
	int64_t n_rows;
	int64_t sum_g, sum_h; /* of unquantised gradients, in fixed point */
	double parent_output; /* quantised units */
	double low, high;     /* likewise; with monotone the bounds of its value */
	bool has_cat_l2;
} AgDeviceLeaf;

/* A grown tree; room for max_leaves of each. */
typedef struct AgDeviceTree
{
	AgDeviceNode *nodes;
	AgDeviceLeaf *leaves;
	int32_t n_nodes, n_leaves;
	uint32_t depth;
	bool is_cut_short; /* poll said 1 */
} AgDeviceTree;

/* ---- forests ---- */

/* One forest: its rows, and the limits of its trees, as AgForest has them. Arrays are read during forest_create only. */
typedef struct AgDeviceForestSpec
{
	int32_t n_classes; /* 0: numbers */
	bool is_entropy, is_extra, has_bootstrap;
	bool weighs_by_tree; /* class_weight by the rows of each tree */
	bool wants_out_of_bag;
	const uint32_t *train_rows;
	int64_t n_train;
	const int32_t *class_of;   /* [n_rows of the matrix] */
	const int64_t *values;     /* [n_rows] numbers: in fixed point */
	const uint32_t *weights;   /* [n_rows] in fixed point; NULL: all 1 */
	const int64_t *class_rows; /* [n_classes] for class_weight; NULL: none */
	const int64_t *logs;       /* [n_logs] entropy: fixed-point n ln n */
	int64_t n_logs;
	const int32_t *rank_of; /* [n_features] number of a category's ranks, or -1 */
	int32_t n_ranks;
	int32_t n_features_tried;
	int64_t n_draws, max_leaves; /* INT64_MAX: any */
	uint32_t max_depth;
	int64_t min_rows_split, min_rows_leaf;
	double min_weight_fraction, min_gain;
	uint64_t seed;
	int32_t n_trees; /* at a time, at most */
} AgDeviceForestSpec;

/* A node. Nodes come in no order but that parents are before their children; those that no tree of max_leaves has may be there. */
typedef struct AgDeviceForestNode
{
	double gain;  /* of its split */
	double least; /* the least gain on the way to it and of its own */
	uint64_t key;
	uint32_t begin, n_rows; /* its part of the tree's rows */
	uint32_t weight, left_weight;
	int32_t feature; /* -1: no split */
	uint32_t cut;    /* ag_forest_cut_left's; of a category by rank */
	int32_t left;    /* its children, one after the other; -1: it wasn't split */
	uint32_t depth;
} AgDeviceForestNode;

typedef struct AgDeviceForestTree
{
	uint32_t n_rows, n_nodes;
	bool is_whole; /* else poll said 1 before it was grown */
} AgDeviceForestTree;

/* A leaf's rows; then what they come to. */
typedef struct AgDeviceForestLeaf
{
	uint32_t begin, n_rows;
	int64_t weight;
	int64_t
		low; /* two classes: the weight of the second; numbers: sum of weight times the low 31 bits */
	int64_t high; /* numbers: and of weight times the bits above */
} AgDeviceForestLeaf;

/* ---- neural nets ---- */

/*
 * What a training step of a net does, one after the other. All numbers lie in one room of floats; a, b, ... are places in it, [n][m] there has
 * rows of the op's stride of that letter. Sums run in the order of the rows, products in that of n_inner, each by fused multiply-add; all else
 * is rounded operation by operation: the engine's own loops (model/net_batch.c, net_update.c) give the same bits.
 */
typedef enum AgDeviceNetKind
{
	AG_NET_DO_INPUT = 0,   /* a[n_rows]: the inputs of the batch's rows */
	AG_NET_DO_NUMBER_NORM, /* as NORM, of inputs */
	AG_NET_DO_DROP, /* a[n_rows][n_columns]: dropout's factors; 1 in the first `flag` columns. index: of the key */
	AG_NET_DO_SCALE,   /* a[n_rows][n_columns] *= b */
	AG_NET_DO_SPREAD,  /* a[i] = b[i mod n_inner] * c[i div n_inner], n_rows of n_columns */
	AG_NET_DO_GATHER,  /* a[i] = sum over k < n_lots of b[k n_rows + i] * c[k] */
	AG_NET_DO_PRODUCT, /* c[n_rows][n_columns] = d + sum over n_inner of a (a_stride, a_inner) b; n_lots times, each *_lot on. d < 0: 0 */
	AG_NET_DO_ACTIVATE, /* a[n_rows][n_columns] in place, b: slope; flag: an AgActivation; both times dropout's factors if index >= 0 */
	AG_NET_DO_STATS, /* of a[n_rows][n_columns]: c mean, d 1 / spread, e and f running mean and square */
	AG_NET_DO_NORM, /* b = (a - c) * d, a = e * b + f; times dropout's factors, kept in `more`, if index >= 0 */
	AG_NET_DO_NORM_SUMS, /* c = sums of a[n_rows][n_columns], d = of a * b */
	AG_NET_DO_NORM_BACK, /* a = f * d * more * (a - (c + b * e) / n_rows); more: slope, b: normalised; c, e: sums */
	AG_NET_DO_LOSS, /* b[n_rows][n_columns]: derivatives by the outputs a; row i is the batch's i mod n_inner */
	AG_NET_DO_SUMS, /* c[n_columns] = sums of a[n_rows][n_columns]; n_lots times */
	AG_NET_DO_DOTS, /* c[n_rows] = sums of a[n_rows][n_columns] * b, in sixteen lanes; then a's rows *= d[n_rows] */
	AG_NET_DO_PAIRS, /* c[n_columns] = sums over n_rows of a * b; n_lots times, b the same each time */
	AG_NET_DO_EMBEDDING, /* c: gradients of slot `index` from the inputs' a, all zero before; flag: its first input */
	AG_NET_DO_WAVES, /* c: gradients of the waves at b from the inputs' derivatives a and the inputs d */
	AG_NET_DO_CLEAR,     /* a[n_columns] = 0 */
	AG_NET_DO_ADAM,      /* a[n_columns] along b; c, d: moments; rate times `rate`; flag: decays */
	AG_NET_DO_ROW_SCALE, /* c[n_rows][n_columns] = a * b[n_rows] */
	AG_NET_DO_TRANSPOSE  /* c[n_columns][n_rows] = a[n_rows][n_columns]; n_lots times */
} AgDeviceNetKind;

/*
 * Where the room of bfloat16 begins. There may be: b of SCALE, GATHER and PRODUCT, a of STATS and SUMS and PAIRS, a and b of ACTIVATE and
 * NORM_SUMS, a, b and `more` of NORM and NORM_BACK, a of SCALE and SPREAD, a and c of PRODUCT and TRANSPOSE, c of ROW_SCALE.
 */
#define AG_NET_HALVES (INT64_C(1) << 40)

typedef struct AgDeviceNetOp
{
	int32_t kind; /* AgDeviceNetKind */
	int32_t index, flag;
	int32_t n_rows, n_columns, n_inner, n_lots;
	int64_t a, b, c, d, e, f, more;
	int64_t a_stride, b_stride, c_stride, a_inner;
	int64_t a_lot, b_lot, c_lot, d_lot;
	float rate;
} AgDeviceNetOp;

typedef enum AgDeviceNetLoss
{
	AG_DEVICE_NET_SQUARED = 0,
	AG_DEVICE_NET_RANGE, /* absolute error of a sigmoid */
	AG_DEVICE_NET_SOFTMAX,
	AG_DEVICE_NET_QUANTILES
} AgDeviceNetLoss;

/* A slot's inputs: AgNetSlot and AgDenseSlot in one. */
typedef struct AgDeviceNetSlot
{
	int64_t embedding; /* place of [width + 1][n_inputs]; -1: one-hot */
	uint32_t first_column, width;
	uint32_t first_input, n_inputs;
} AgDeviceNetSlot;

/* Rows, labels, and the ops of a step. Arrays are read during net_create only. */
typedef struct AgDeviceNetSpec
{
	int64_t n_floats; /* of the room; all 0 at first */
	int64_t n_rows;
	int64_t number_stride;
	const float *numbers; /* [n_rows][number_stride] */
	int32_t n_numbers, n_slots;
	const uint32_t *row_slots; /* [n_rows][n_slots] */
	const AgDeviceNetSlot *slots;
	uint32_t no_column;    /* what row_slots has for none */
	bool bends, in_pieces; /* in_pieces: waves are pieces */
	int32_t n_inputs, input_stride;
	int32_t n_waves, n_wave_inputs, first_wave;
	int64_t waves; /* place */
	int64_t n_train;
	const uint32_t *train_rows;
	AgDeviceNetLoss loss;
	const float *target;     /* [n_train]; NULL: classes */
	const float *weight;     /* [n_train]; NULL: all 1 */
	const int32_t *class_of; /* [n_rows] */
	const float *quantiles;  /* [n_outputs] */
	int32_t n_outputs;
	float smoothing;
	int32_t n_batch;
	int32_t n_members; /* at least 1 */
	const AgDeviceNetOp *ops;
	int32_t n_ops;
	/*
	 * Products round each factor to bfloat16 and add in single precision, in an order that is the device's own: the same bits
	 * each time, but not the CPU's. What is at AG_NET_HALVES and beyond is rounded whenever it is written; all else, the weights
	 * first of all, stays in single precision.
	 */
	bool has_half;
	int64_t
		n_halves; /* numbers of bfloat16 from AG_NET_HALVES on; all 0 at first; only with has_half */
	bool half_numbers; /* numbers, which nothing but products sees then, are kept as bfloat16 */
} AgDeviceNetSpec;

/* What changes from step to step. */
typedef struct AgDeviceNetStep
{
	int64_t first; /* of the batch, in the order of net_order */
	uint64_t dropout_key;
	/* 16 random bits below it: dropped; of layers, and of inputs (ops with a flag >= 0) */
	uint32_t drop_below, input_drop_below;
	float rate, beta1, beta2, root, eps, decay, shrink; /* AgAdam */
} AgDeviceNetStep;

/* ---- neighbours ---- */

/* Rows that are looked at, and those that are looked for. Arrays are read during knn_create only. */
typedef struct AgDeviceKnnSpec
{
	int64_t n_rows;
	int64_t number_stride;
	const float *numbers; /* [n_rows][number_stride] */
	int32_t n_numbers, n_slots;
	const uint32_t *row_slots; /* [n_rows][n_slots] */
	float mismatch;            /* what a slot that differs adds to the square of a distance */
	const uint32_t *kept;      /* [n_kept] rows, ascending */
	int64_t n_kept;
	const uint32_t *queries; /* [n_queries] rows */
	const uint32_t
		*self; /* [n_queries] which kept row each is, and hasn't as a neighbour; UINT32_MAX: none */
	int64_t n_queries;
	int32_t n_neighbors;
} AgDeviceKnnSpec;

typedef struct AgDeviceNeighbor
{
	float squared;  /* distance, as AgVectorOps.distances gives it */
	uint32_t place; /* in kept */
} AgDeviceNeighbor;

/* ---- linear models ---- */

typedef enum AgDeviceLinearLoss
{
	AG_DEVICE_LINEAR_SQUARED = 0,
	AG_DEVICE_LINEAR_LOGISTIC,
	AG_DEVICE_LINEAR_SOFTMAX,
	AG_DEVICE_LINEAR_QUANTILES
} AgDeviceLinearLoss;

/*
 * AgLinearProblem: parameters and gradients lie as [number_stride + n_columns + 2][n_padded], the numbers' first, then the columns', one
 * of "none" that stays 0, the intercepts. Sums are over n_parts parts of the rows, each in blocks of block_rows rows, in the order that
 * model/linear_loss.c has. Arrays are read during linear_create only.
 */
typedef struct AgDeviceLinearSpec
{
	int64_t n_rows;
	int64_t number_stride;
	const float *numbers; /* [n_rows][number_stride] */
	int32_t n_numbers, n_slots, n_columns;
	const uint32_t *row_slots;    /* [n_rows][n_slots]; n_columns: none */
	const int32_t *slot_of;       /* [n_columns] */
	const int64_t *column_starts; /* [n_columns + 1] in column_places */
	const uint32_t *
		column_places; /* of each column, the train rows that light it, ascending: places in train_rows */
	const uint32_t *train_rows;
	int64_t n_train;
	const double *weight;    /* [n_train]; NULL: all 1 */
	const double *target;    /* [n_train]; NULL: classes */
	const int32_t *class_of; /* [n_train] */
	const double *quantiles; /* [n_outputs] */
	AgDeviceLinearLoss loss;
	int32_t n_outputs, n_padded;
	int32_t n_parts, block_rows;
} AgDeviceLinearSpec;

/* Products of the columns of (numbers, columns, 1, target), AG_DEVICE_LINEAR_SQUARED only: model/linear_gram.c. */
typedef struct AgDeviceProducts
{
	int32_t size, n_terms; /* rounded up to 8; without 1 and target */
	int32_t n_parts, block_rows;
} AgDeviceProducts;

/* ---- the table ---- */

typedef struct AgDeviceOps
{
	uint32_t abi;
	const char *kind; /* "cuda": devices are called kind:index */

	/*
	 * Opens device `index` for allocations of at most limit_bytes. On failure *device is NULL and why[why_size] says why; this
	 * entry alone needs it, for there is nothing yet to ask.
	 */
	AgDeviceStatus (*open)(int index, int64_t limit_bytes, AgDevice **device, char *why,
						   int why_size);
	/* Everything made on it must be freed before. A lost device may be opened again afterwards. */
	void (*close)(AgDevice *device);
	void (*memory)(AgDevice *device, AgDeviceMemory *memory);
	/* Of the last operation that failed; static until the next one. */
	const char *(*why)(AgDevice *device);

	AgDeviceStatus (*matrix_create)(AgDevice *device, const AgDeviceBins *bins,
									AgDeviceMatrix **matrix);
	void (*matrix_free)(AgDevice *device, AgDeviceMatrix *matrix);
	void (*matrix_layout)(const AgDeviceMatrix *matrix, AgDeviceLayout *layout);

	/* Room to bin columns of n_rows numbers, one after the other, whose cuts come from n_sample of them at most. */
	AgDeviceStatus (*bin_create)(AgDevice *device, int64_t n_rows, int64_t n_sample,
								 AgDeviceBinner **binner);
	void (*bin_free)(AgDevice *device, AgDeviceBinner *binner);
	/* The first n values of a column, n <= n_sample, as keys (ag_order_bits) in ascending order: *n_keys of keys[n], for NaN has none. */
	AgDeviceStatus (*bin_sort)(AgDevice *device, AgDeviceBinner *binner, const double *values,
							   int64_t n, uint64_t *keys, int64_t *n_keys);
	/* bins[n] of the column that bin_sort has seen last: 0 of NaN, else 1 + the cuts below; n_cuts at most 254. */
	AgDeviceStatus (*bin_assign)(AgDevice *device, AgDeviceBinner *binner, const double *values,
								 int64_t n, const double *cuts, int32_t n_cuts, uint8_t *bins);

	/* Bytes that boost_create and growing will take beside the matrix, an upper estimate. */
	int64_t (*boost_memory)(const AgDeviceShape *shape, const AgDeviceBoostSpec *spec);
	AgDeviceStatus (*boost_create)(AgDevice *device, const AgDeviceMatrix *matrix,
								   const AgDeviceBoostSpec *spec, AgDeviceBoost **boost);
	void (*boost_free)(AgDevice *device, AgDeviceBoost *boost);
	/* Gradients of one output; output 0 begins a round. */
	AgDeviceStatus (*boost_gradients)(AgDevice *device, AgDeviceBoost *boost, int output,
									  AgDeviceRange *range);
	/* Draws weights under a key. *size_g: root of the mean squared gradient, without draws. */
	AgDeviceStatus (*boost_draw)(AgDevice *device, AgDeviceBoost *boost, uint64_t key,
								 AgDeviceRange *range, double *size_g);
	AgDeviceStatus (*boost_grow)(AgDevice *device, AgDeviceBoost *boost,
								 const AgDeviceTreeOrder *order, AgDeviceTree *tree);
	/*
	 * One more step to the values of the tree grown last, on its own rows: adds values[n_leaves] to their scores for now, and
	 * computes the gradients again.
	 */
	AgDeviceStatus (*boost_step)(AgDevice *device, AgDeviceBoost *boost, int output,
								 const double *values, AgDeviceRange *range);
	/* sums[n_leaves][2] of gradients and hessians, in fixed point, by the gradients as they are now. */
	AgDeviceStatus (*boost_sums)(AgDevice *device, AgDeviceBoost *boost, double fixed_g,
								 double fixed_h, int64_t *sums);
	/*
	 * values[n_leaves] of the tree grown last: the percentiles of what its own rows lack of their labels (ag_percentile), by their
	 * error weights times scale as integers; scale 0: all alike.
	 */
	AgDeviceStatus (*boost_renew)(AgDevice *device, AgDeviceBoost *boost, int output, double scale,
								  double *values);
	/* Takes all steps back; the gradients' common part is computed anew. */
	AgDeviceStatus (*boost_unstep)(AgDevice *device, AgDeviceBoost *boost, int output);
	/* Adds values[n_leaves] of the tree grown last to the scores of all train and validation rows. */
	AgDeviceStatus (*boost_add)(AgDevice *device, AgDeviceBoost *boost, int output,
								const double *values);
	/* scores[n_valid][n_outputs]. */
	AgDeviceStatus (*boost_valid)(AgDevice *device, AgDeviceBoost *boost, double *scores);
	/* sums[2] over the validation rows: of what they cost, times their weights, and of those. */
	AgDeviceStatus (*boost_metric)(AgDevice *device, AgDeviceBoost *boost, double *sums);
	/* Keeps the scores as they are now, and gives those that were kept last: as boost_valid. */
	AgDeviceStatus (*boost_keep)(AgDevice *device, AgDeviceBoost *boost);
	AgDeviceStatus (*boost_kept)(AgDevice *device, AgDeviceBoost *boost, double *scores);

	/* Bytes beside the matrix that so many trees at a time take; an upper estimate. */
	int64_t (*forest_memory)(AgDevice *device, const AgDeviceShape *shape,
							 const AgDeviceForestSpec *spec, int32_t n_trees);
	/* *n_at_once: trees that are grown at a time, as memory allows. */
	AgDeviceStatus (*forest_create)(AgDevice *device, const AgDeviceMatrix *matrix,
									const AgDeviceForestSpec *spec, AgDeviceForest **forest,
									int32_t *n_at_once);
	void (*forest_free)(AgDevice *device, AgDeviceForest *forest);
	/* Grows trees first..first + n - 1, n <= n_at_once; poll as AgDeviceTreeOrder's. */
	AgDeviceStatus (*forest_grow)(AgDevice *device, AgDeviceForest *forest, int32_t first,
								  int32_t n, int (*poll)(void *arg), void *arg);
	/* What tree i of those grown last came to. */
	AgDeviceStatus (*forest_tree)(AgDevice *device, AgDeviceForest *forest, int32_t i,
								  AgDeviceForestTree *tree);
	/* Its nodes[n_nodes], ranks[n_ranks][256], out_of_bag[(n_train + 7) / 8] (where wanted, else NULL). */
	AgDeviceStatus (*forest_fetch)(AgDevice *device, AgDeviceForest *forest, int32_t i,
								   AgDeviceForestNode *nodes, uint8_t *ranks, uint8_t *out_of_bag);
	/* Fills its leaves[n], and for more than two classes the weights of each in shares[n][n_classes]; else NULL. */
	AgDeviceStatus (*forest_leaves)(AgDevice *device, AgDeviceForest *forest, int32_t i,
									AgDeviceForestLeaf *leaves, int32_t n, uint32_t *shares);

	AgDeviceStatus (*net_create)(AgDevice *device, const AgDeviceNetSpec *spec, AgDeviceNet **net);
	void (*net_free)(AgDevice *device, AgDeviceNet *net);
	/* Floats into the room, and out of it; into the room of bfloat16, too, which rounds them. */
	AgDeviceStatus (*net_write)(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n,
								const float *from);
	AgDeviceStatus (*net_read)(AgDevice *device, AgDeviceNet *net, int64_t at, int64_t n,
							   float *to);
	/* In which order the rows come: places[n_train] in train_rows. */
	AgDeviceStatus (*net_order)(AgDevice *device, AgDeviceNet *net, const uint32_t *places);
	/* Runs the ops once a step, and waits for the last. */
	AgDeviceStatus (*net_steps)(AgDevice *device, AgDeviceNet *net, const AgDeviceNetStep *steps,
								int n_steps);

	/* *n_at_once: queries that a search takes, as memory allows and so that it is a matter of milliseconds. */
	AgDeviceStatus (*knn_create)(AgDevice *device, const AgDeviceKnnSpec *spec, AgDeviceKnn **knn,
								 int64_t *n_at_once);
	void (*knn_free)(AgDevice *device, AgDeviceKnn *knn);
	/*
	 * Of queries [first, first + n), n <= n_at_once, the nearest kept rows, among those equally far the first ones: found[n][n_neighbors], of
	 * which n_found[n] are there, in no order.
	 */
	AgDeviceStatus (*knn_search)(AgDevice *device, AgDeviceKnn *knn, int64_t first, int64_t n,
								 AgDeviceNeighbor *found, int32_t *n_found);

	AgDeviceStatus (*linear_create)(AgDevice *device, const AgDeviceLinearSpec *spec,
									AgDeviceLinear **linear);
	void (*linear_free)(AgDevice *device, AgDeviceLinear *linear);
	/*
	 * At parameters x: losses[n_parts], and the sum over the parts of the gradient without a penalty. bend: AgLinearProblem's. poll is asked in
	 * between: other than 0 stops it, with AG_DEVICE_STOPPED.
	 */
	AgDeviceStatus (*linear_sum)(AgDevice *device, AgDeviceLinear *linear, const double *x,
								 double bend, double *losses, double *gradient,
								 int (*poll)(void *arg), void *arg);
	/* products[size][size], of which the upper half counts; poll likewise. */
	AgDeviceStatus (*linear_products)(AgDevice *device, AgDeviceLinear *linear,
									  const AgDeviceProducts *order, double *products,
									  int (*poll)(void *arg), void *arg);
} AgDeviceOps;

/* ---- a device that the fit holds ---- */

/* Made by the host of the fit, which opens and closes the device; the engine marks it lost. */
typedef struct AgGpu
{
	const AgDeviceOps *ops;
	AgDevice *device;
	char name[32];             /* "cuda:0" */
	bool is_lost;              /* no more training on it in this fit */
	struct AgBinsCopy *copies; /* matrices in its share: data/bins_device.c */
} AgGpu;

#ifdef __cplusplus
}
#endif

#endif
