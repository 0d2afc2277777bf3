/*
 * trees.h - a fitted set of trees: in memory, as an image, and at prediction.
 *
 * All trees of a model sit in flat arrays. Node 0 of a tree is its root; children lie behind
 * their parent (so that walks end), leaves are negative child references: ~leaf. One predicate
 * (bins.h): x <= threshold goes left; categories by a bit set of codes.
 */
#ifndef AG_TREES_H
#define AG_TREES_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"

/* threshold unused (0): `set` names a bit set of codes, bit c % 64 of word c / 64, that go left */
#define AG_NODE_CATEGORY 1u
#define AG_NODE_MISSING_LEFT 2u /* NaN goes left */
#define AG_NODE_UNSEEN_LEFT                                                                        \
	4u /* category: codes beyond the set, the tail's bin included, and AG_UNSEEN go left */

/*
 * 32 bytes; the layout is the image's. Of a set, the bits of its last word behind the last code that has a bin
 * of its own must say what AG_NODE_UNSEEN_LEFT says, for those codes are of the tail's bin too.
 */
typedef struct AgTreeNode
{
	double threshold;
	uint32_t feature;
	uint32_t flags;
	int32_t left; /* node index within the tree, or ~leaf index within the tree */
	int32_t right;
	uint32_t set;   /* category: offset into `sets`, in uint64 words */
	uint32_t n_set; /* words of the set */
} AgTreeNode;

typedef struct AgTree
{
	uint64_t
		first_node; /* trees lie one behind the other: first_node + n_nodes is the next one's */
	uint64_t first_leaf; /* likewise */
	uint32_t n_nodes;    /* 0: a single leaf */
	uint32_t n_leaves;   /* n_nodes + 1 */
	uint32_t output;     /* which score it adds to (class or level of a round; else 0) */
	uint32_t depth;      /* nodes on the longest way to a leaf */
} AgTree;

typedef enum AgLink
{
	AG_LINK_IDENTITY = 0, /* scores are the outputs */
	AG_LINK_SIGMOID = 1,  /* one score -> {1-p, p} */
	AG_LINK_SOFTMAX = 2,
	AG_LINK_MEAN_FREQUENCIES = 3, /* forests: the mean over trees of a leaf's class shares */
	AG_LINK_EXP = 4,              /* Poisson, Tweedie, gamma */
	AG_LINK_QUANTILES = 5         /* one score a level, the outputs in ascending order */
} AgLink;

/* One class's share of a leaf of a forest. 16 bytes; the layout is the image's. */
typedef struct AgLeafEntry
{
	double share; /* above 0, at most 1 */
	uint32_t output;
	uint32_t zero;
} AgLeafEntry;

/*
 * Several categories taken together as one, whose levels are the combinations of theirs that training rows had. To nodes, all
 * of them category nodes, it is feature n_features + its number; its value is computed from the row's features. It is
 * never missing, for a member's missing value is a level like any other; a combination that no key stands for is unseen.
 * 24 bytes; the layout is the image's.
 */
typedef struct AgTreeCombo
{
	uint64_t
		first_key;   /* combinations lie one behind the other, and so do their keys and members */
	uint64_t n_keys; /* hashes of the members' levels, ascending: a key's place is the code */
	uint32_t first_member; /* likewise */
	uint32_t n_members;
} AgTreeCombo;

/* 16 bytes; the layout is the image's. */
typedef struct AgComboMember
{
	uint32_t feature;
	uint32_t n_codes;   /* codes from here on are of the tail or unseen */
	uint32_t has_other; /* 1: and make one level together; 0: and make the combination unseen */
	uint32_t zero;
} AgComboMember;

#define AG_COMBO_MEMBERS 8 /* most of them */

/*
 * Forests (AG_LINK_MEAN_FREQUENCIES): with one output a leaf's value is the share of class 1 of two. With more it
 * is the number of a vector of shares; leaves of equal shares, the pure ones above all, have one vector together.
 */
typedef struct AgTrees
{
	uint32_t n_features; /* length of the feature vector */
	uint32_t n_outputs;  /* scores: 1, or the number of classes or levels */
	uint32_t n_trees;
	AgLink link;
	const double *base; /* [n_outputs] scores before any tree */
	const AgTree *trees;
	const AgTreeNode *nodes;
	const double *leaves; /* already times the learning rate */
	const uint64_t *sets;
	const uint64_t *vectors; /* [n_vectors + 1] where each one's entries begin; NULL: no vectors */
	const AgLeafEntry *entries; /* of a vector: outputs ascending, shares that sum to 1 */
	uint64_t n_nodes, n_leaves, n_set_words, n_vectors, n_entries;
	uint32_t n_combos; /* mostly none: then the three arrays are NULL */
	const AgTreeCombo *combos;
	const AgComboMember *combo_members;
	const uint64_t *combo_keys;
	uint64_t n_combo_members, n_combo_keys;
	const struct AgTreePlan *plan; /* the same trees laid out for speed (trees_plan.h), or NULL */
	const struct AgTreeRows *rows; /* likewise for many rows at once (trees_rows.h), or NULL */
	bool
		has_layout; /* both came from a layout (ag_trees_use_layout): there is no more to prepare */
	AgArena arena;  /* owns this struct, and the arrays unless they lie in an image */
} AgTrees;

/* All zero but for its arena, in which it lies itself: allocate the arrays from (*trees)->arena. */
AgStatus ag_trees_create(const AgContext *ctx, AgTrees **trees);
void ag_trees_free(AgTrees *trees); /* NULL allowed */

/* Forgets all trees behind the first n_trees (at least 1), and how they were laid out. */
void ag_trees_cut(AgTrees *trees, uint32_t n_trees);

/*
 * What prediction relies on: features < n_features + n_combos, combinations whole and their keys ascending, children behind their parent and every node and leaf reached
 * exactly once, trees one behind the other, depths true, sets in bounds, leaves and base finite and too small to
 * overflow in sum, link and outputs known, shares that sum to 1. Otherwise `status` with a text that names the first fault.
 */
AgStatus ag_trees_check(const AgContext *ctx, const AgTrees *trees, AgStatus status);

/* An image of kind AG_IMAGE_TREES. Checks first (AG_ERR_INTERNAL). */
AgStatus ag_trees_write(const AgContext *ctx, const AgTrees *trees, AgWriter *writer);
/*
 * In place: image must outlive the result and be 64-byte aligned. Checks all of it: AG_ERR_CORRUPT. One that is trusted is
 * neither checked nor laid out.
 */
AgStatus ag_trees_read(const AgContext *ctx, const void *image, size_t size, AgTrees **trees);

/*
 * Scores of one row (features[n_features]) before the link: scores[n_outputs], always finite. Sum order: trees
 * ascending. NaN is missing, infinities are numbers; a category that is negative (AG_UNSEEN) or beyond its set is
 * unseen. No allocation; any number of threads.
 */
void ag_trees_score(const AgTrees *trees, const double *features, double *scores);
/*
 * What makes ag_trees_score and ag_trees_score_rows fast, where it can (the results are the same without).
 * ag_trees_read has called the first; trained trees may be handed to both.
 */
AgStatus ag_trees_lay_out(const AgContext *ctx, AgTrees *trees);
AgStatus ag_trees_prepare_rows(const AgContext *ctx, AgTrees *trees);
/*
 * What those two have made, as one block that holds no address: other processes of this build may use it with the same trees, as
 * long as it stays where it is. 64-byte aligned.
 */
size_t ag_trees_layout_bytes(const AgTrees *trees);
void ag_trees_layout_write(const AgTrees *trees, void *to);
AgStatus ag_trees_use_layout(const AgContext *ctx, AgTrees *trees, const void *from);
/* Scores of many rows, features[n_rows][n_features] to scores[n_rows][n_outputs]: the same bytes as row by row. */
void ag_trees_score_rows(const AgTrees *trees, int64_t n_rows, const double *features,
						 double *scores);
/*
 * The link: out[1] exponential, out[2] sigmoid and forests of one output, else out[n_outputs]. out may be scores
 * where the lengths agree. Always finite; probabilities sum to 1.
 */
void ag_trees_link(const AgTrees *trees, const double *scores, double *out);
/* How many numbers the link gives. */
uint32_t ag_trees_n_out(const AgTrees *trees);

#endif
