/*
 * grow.h - growing one tree.
 *
 * Leaf-wise: of all leaves the one with the highest gain is split next, the earlier-made one of equals. Depth-wise:
 * the earliest-made one, which goes level by level. Symmetric: all leaves of a level at once, by one split. What is kept is exactly that order, whatever was computed
 * when. Nodes are numbered in the order of their splits, so a child always lies behind its parent.
 */
#ifndef AG_GROW_H
#define AG_GROW_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/model/boost.h"
#include "engine/model/histogram.h"
#include "engine/model/partition.h"
#include "engine/model/quantise.h"
#include "engine/model/split.h"

/* A split of a grown tree; children are node numbers, or ~leaf number. */
typedef struct AgGrownNode
{
	AgSplit split;
	int32_t left, right;
} AgGrownNode;

/* A leaf of a grown tree and its rows. */
typedef struct AgGrownLeaf
{
	int64_t begin, n_rows; /* its part of lists[list] */
	int list;
	double parent_output; /* quantised units; path_smooth pulls towards it */
	double low, high;     /* likewise; with monotone constraints the bounds of its value */
	bool has_cat_l2;
	uint32_t depth;
} AgGrownLeaf;

/* The limits of one family's growth. */
typedef struct AgGrowth
{
	int max_leaves;
	int max_depth;     /* INT_MAX: none */
	bool is_depthwise; /* the leaf made first is split next, else the one with the highest gain */
	bool is_symmetric; /* all leaves of a level by the same split; max_leaves is a power of two */
	bool has_cosine_score; /* of symmetric trees */
	double feature_fraction_bylevel;
	double feature_fraction_bynode;
} AgGrowth;

/* Grows trees one after the other on the same bins. All memory is taken at creation or kept between trees. */
typedef struct AgGrower
{
	const AgContext *ctx;
	const AgBins *bins;
	AgGrowth growth;
	AgCpuLevel level;
	void (*tick)(void *arg); /* called between splits, for reports; NULL: nothing */
	void *tick_arg;
	AgHistBuilder hists;
	AgRowList lists[2]; /* the tree's rows start in lists[0]; each level moves them to the other */
	AgPartitionScratch *scratch;
	struct AgSymmetric *symmetric; /* NULL: not symmetric */
	struct AgCombiner
		*combiner;           /* of symmetric trees: offers combinations of categories; NULL: none */
	struct AgOpenLeaf *open; /* [max_leaves] */
	int *heap;               /* [max_leaves] */
	const struct AgOrdered
		*ordered;    /* of symmetric trees: cuts are scored by its gradients; else NULL */
	int64_t **slots; /* [n_slots] histograms, made as they are needed */
	int64_t slot_cells;
	int *free_slots;
	int n_slots, n_free_slots;
	int *features;  /* [2][n_features] two nodes' candidates */
	AgSplit *found; /* [n_threads][2] */
	/* the tree in work, and the result */
	uint8_t *is_used; /* [n_features] the tree's features */
	AgGrownNode *nodes;
	AgGrownLeaf *leaves;
	int n_nodes, n_leaves;
	uint32_t depth;
	bool is_cut_short; /* the deadline passed before it was fully grown */
} AgGrower;

/* Room for trees on up to n_rows rows. The grower may be freed whatever this returns. */
AgStatus ag_grower_create(const AgContext *ctx, const AgBins *bins, int64_t n_rows,
						  const AgGrowth *growth, AgGrower *grower);
/* Only the room for a tree that was grown elsewhere: is_used, nodes and leaves. */
AgStatus ag_grower_create_empty(const AgContext *ctx, const AgBins *bins, const AgGrowth *growth,
								AgGrower *grower);
void ag_grower_free(const AgContext *ctx, AgGrower *grower);
/* Takes the next trees' bins from a matrix that differs from its own in bytes only. */
void ag_grower_use(AgGrower *grower, const AgBins *bins);
/* Upper estimate of what ag_grower_create and growing take. */
int64_t ag_grower_memory(const AgBins *bins, int64_t n_rows, const AgGrowth *growth, int n_threads);

/*
 * Grows a tree on the n_rows rows of lists[0]. The caller has set is_used. key: of (seed, tree). Result in
 * nodes and leaves, valid until the next tree; a tree without a split has one leaf.
 */
AgStatus ag_grow_tree(AgGrower *grower, const AgSplitRules *rules, const AgQuantum *quantum,
					  int64_t n_rows, uint64_t key);

/* ---- shared by grow.c and grow_symmetric.c ---- */

AgStatus ag_symmetric_create(const AgContext *ctx, AgGrower *grower);
void ag_symmetric_free(const AgContext *ctx, AgGrower *grower);
int64_t ag_symmetric_memory(int64_t n_cells, int n_features, int max_leaves);
AgStatus ag_grow_symmetric(AgGrower *grower, const AgSplitRules *rules, int64_t n_rows,
						   uint64_t key);

#endif
