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
	int64_t n_train, n_draws, n_logs, n_mask, max_leaves, max_nodes;
	int64_t min_rows_split, min_rows_leaf;
	double min_weight_fraction, min_gain;
	uint64_t seed;
	uint32_t max_depth;
	int32_t n_classes, n_ranks, n_features_tried;
	int32_t is_entropy, is_extra, has_bootstrap, weighs_by_tree;
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
	AgkForestTree *host_trees; /* [n_slots] */
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

/* forest_bag.cu: rows, weights and ranks of trees first..first + n - 1; their roots wait. */
AgDeviceStatus agk_forest_bag(AgDevice *device, const AgkForest *forest, int32_t first, int32_t n);
/* forest_grow.cu: may it take so much shared memory? Then some more of all trees, until they are done. */
AgDeviceStatus agk_forest_prepare(AgDevice *device, size_t shared_bytes);
AgDeviceStatus agk_forest_continue(AgDevice *device, const AgkForest *forest, int32_t n,
								   size_t shared_bytes);

#endif
