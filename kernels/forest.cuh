/*
 * forest.cuh - forests on the device: a block a tree.
 *
 * A block grows a tree on its own: all of it takes the nodes of many rows one after the other, and then each warp a node of few
 * rows with all that is below it. So trees need nothing of each other, and the host only looks in once in a while. Which nodes a
 * tree of max_leaves has is decided on the host, from gains; those that can't be among them are left alone as soon as that shows.
 */
#ifndef AGK_FOREST_CUH
#define AGK_FOREST_CUH

#include "engine/model/forest_maths.h"
#include "kernels/block.cuh"

#define AGK_FOREST_SMALL 2048    /* rows from which on the whole block takes a node */
#define AGK_FOREST_CLASSES 64    /* a warp's tables hold no more */
#define AGK_FOREST_STACK 64      /* the smaller child is taken first: log2 of the rows is enough */
#define AGK_FOREST_AHEAD 8       /* features that are drawn ahead, where columns come one by one */
#define AGK_FOREST_BUCKETS 32768 /* of gains, by the upper bits of a double */

/* A tree in work. */
struct AgkForestTree
{
	uint64_t key;
	int64_t weight;  /* of its rows */
	uint32_t n_rows; /* distinct ones */
	int32_t shift;   /* of weights */
	uint32_t n_nodes;
	uint32_t n_small, next_small; /* nodes of few rows: listed, and taken from the list */
	uint32_t n_splits;
	int32_t n_stack; /* nodes of many rows */
	uint32_t stack[AGK_FOREST_STACK];
	uint32_t least_bucket; /* nodes whose gains are in buckets below can't be the tree's */
	int32_t is_limited;    /* max_leaves may end it */
	int32_t is_done;
	int32_t is_full; /* of nodes */
};

/* What a cut came to, from the lane that found it to the others. */
struct AgkForestWon
{
	int64_t sum, weight;
	int32_t high;
};

/* A warp's table, in shared memory; with more than two classes there are cells too. */
struct AgkForestTable
{
	unsigned long long sums[AG_FOREST_BINS];
	uint32_t weights[AG_FOREST_BINS], rows[AG_FOREST_BINS];
	uint32_t totals[AGK_FOREST_CLASSES];
	uint32_t stack[AGK_FOREST_STACK];
	AgkForestWon won;
	uint32_t child;
};

/* The best cut of a node so far. */
struct AgkForestSplit
{
	double score, value;
	int64_t left_weight;
	int32_t feature, low, high;
	bool has_missing, missing_left, is_perfect;
};

/*
 * A matrix that comes in blocks: where the search of a tree's next node of many rows is, from launch to launch. Such a node is split
 * as soon as the columns that it wants are there.
 */
struct AgkForestLook
{
	AgkForestSplit best;
	int32_t n_left, n_tried;          /* features not drawn, and that weren't constant */
	int32_t wanted[AGK_FOREST_AHEAD]; /* features: drawn, or the one that was split on */
	int32_t n_wanted, at;             /* of them, and the next one */
	int32_t phase;                    /* AgkForestPhase */
	uint32_t cut;
};

/* As kernels see it; by value. Pointers are the device's. [n_slots] trees are in work at a time. */
struct AgkForest
{
	AgkMatrix matrix;
	const uint32_t *train_rows, *weights;
	const int32_t *class_of, *rank_of;
	const int64_t *values, *class_rows, *logs;
	AgkForestTree *trees;      /* [n_slots] */
	uint64_t *rows, *spare;    /* [n_slots][n_train] */
	uint32_t *row_weights;     /* [n_slots][n_train] of the node in work */
	int64_t *distances;        /* [n_slots][n_train] numbers: times the weight */
	AgDeviceForestNode *nodes; /* [n_slots][max_nodes] */
	uint32_t *small;           /* [n_slots][max_nodes] */
	uint32_t *buckets;         /* [n_slots][AGK_FOREST_BUCKETS]; null: trees are never limited */
	uint8_t *ranks;            /* [n_slots][n_ranks][256] */
	uint32_t *factors;         /* [n_slots][AGK_FOREST_CLASSES]; null: no class_weight */
	uint8_t *out_of_bag;       /* [n_slots][n_mask]; null: nobody asks */
	int32_t *features;         /* [n_slots][AGK_WARPS][2][n_features] */
	uint32_t *cells; /* [n_slots][AGK_WARPS][256][n_classes]; null: they are in shared memory */
	/* a matrix that comes in blocks: by columns, or rows of some nodes */
	const uint8_t *const *column_of; /* [n_features] null entries aren't there; null: none is */
	const uint32_t *place_of;        /* [n_rows] one more than a row's place in matrix.rows */
	int64_t n_train, n_draws, n_logs, n_mask, max_leaves, max_nodes;
	int64_t min_rows_split, min_rows_leaf;
	double min_weight_fraction, min_gain;
	uint64_t seed;
	uint32_t max_depth;
	int32_t n_classes, n_ranks, n_features_tried;
	int32_t is_entropy, is_extra, has_bootstrap, weighs_by_tree;
	int32_t is_streamed; /* the matrix comes in blocks */
};

struct AgDeviceForest
{
	const AgDeviceMatrix *matrix;
	AgkForest view;
	AgkArray<uint32_t> train_rows, weights, row_weights, small, buckets, factors, cells, shares;
	AgkArray<int32_t> class_of, rank_of, features;
	AgkArray<int64_t> values, class_rows, logs, distances;
	AgkArray<AgkForestTree> trees;
	AgkArray<uint64_t> rows, spare;
	AgkArray<AgDeviceForestNode> nodes;
	AgkArray<uint8_t> ranks, out_of_bag;
	AgkArray<AgDeviceForestLeaf> leaves;
	/* streamed */
	AgkArray<AgkForestLook> looks;       /* [n_slots] */
	AgkArray<const uint8_t *> columns;   /* [n_features] */
	AgkArray<uint32_t> place_of;         /* [n_rows] */
	AgkArray<uint32_t> placed, n_placed; /* [n_rows] ids by place, and how many */
	AgkForestLook *host_looks;
	const uint8_t **host_columns; /* [n_features] */
	int32_t *ranked;              /* [n_ranks] features that have ranks */
	AgkForestTree *host_trees;    /* [n_slots] */
	int32_t n_slots;
	size_t shared_bytes;
};

static __device__ inline int64_t
agk_forest_weight(const AgkForest &forest, const AgkForestTree *tree, int64_t slot, uint64_t row)
{
	const uint32_t *factors =
		forest.factors != nullptr ? forest.factors + slot * AGK_FOREST_CLASSES : nullptr;

	return ag_forest_row_weight(row, forest.weights, factors, tree->shift);
}

/* The bin of row id, from where rows lie. */
static __device__ inline unsigned
agk_row_bin(const AgkForest &forest, int f, const uint8_t *ranks, uint32_t id)
{
	int64_t at = forest.place_of != nullptr ? (int64_t) forest.place_of[id] - 1 : id;
	unsigned bin = forest.matrix.rows[at * forest.matrix.row_stride + f];

	return ranks != nullptr ? ranks[bin] : bin;
}

/* Likewise, from wherever it is there; by_rows: better from where rows lie. */
static __device__ inline unsigned
agk_forest_bin(const AgkForest &forest, int f, const uint8_t *ranks, bool by_rows, uint32_t id)
{
	unsigned bin;

	if (forest.column_of != nullptr)
		bin = forest.column_of[f][id];
	else if (by_rows || forest.matrix.columns == nullptr)
		return agk_row_bin(forest, f, ranks, id);
	else
		bin = forest.matrix.columns[f * forest.matrix.column_stride + id];
	return ranks != nullptr ? ranks[bin] : bin;
}

/* forest_bag.cu: rows, weights and ranks of trees first..first + n - 1; their roots wait. */
AgDeviceStatus agk_forest_bag(AgDevice *device, const AgkForest *forest, int32_t first, int32_t n);
/* Ranks of feature f alone, whose column is there. */
AgDeviceStatus agk_forest_rank_column(AgDevice *device, const AgkForest *forest, int32_t f,
									  int32_t n);
/* forest.cu: launches until all n trees are done, one is full of nodes, or poll ends it: *answer is its last. */
AgDeviceStatus agk_forest_finish(AgDevice *device, AgDeviceForest *f, int32_t n,
								 int (*poll)(void *arg), void *arg, bool *is_full, int *answer);
AgDeviceStatus agk_forest_list_features(AgDevice *device, const AgDeviceForest *f);
/* forest_stream.cu: the same from the roots on, in a matrix that comes in blocks. */
AgDeviceStatus agk_forest_stream(AgDevice *device, AgDeviceForest *f, int32_t n,
								 int (*poll)(void *arg), void *arg, bool *is_full);
/* Ranks of all features that have some, by columns that come for it. */
AgDeviceStatus agk_forest_stream_ranks(AgDevice *device, AgDeviceForest *f, int32_t n);
AgDeviceStatus agk_forest_stream_prepare(AgDevice *device, size_t shared_bytes);
/* forest_grow.cu: may it take so much shared memory? Then some more of all trees, until they are done. */
AgDeviceStatus agk_forest_prepare(AgDevice *device, size_t shared_bytes);
AgDeviceStatus agk_forest_continue(AgDevice *device, const AgkForest *forest, int32_t n,
								   size_t shared_bytes);

#endif
