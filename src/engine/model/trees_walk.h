/*
 * trees_walk.h - the one predicate of trees.h, and the plain walk through a tree by it. Private to trees*.c and forest*.c.
 */
#ifndef AG_TREES_WALK_H
#define AG_TREES_WALK_H

#include "engine/model/trees.h"

/* Does x go left? */
static inline bool
ag_node_goes_left(const AgTrees *trees, const AgTreeNode *node, double x)
{
	if (x != x)
		return (node->flags & AG_NODE_MISSING_LEFT) != 0;
	if ((node->flags & AG_NODE_CATEGORY) == 0)
		return x <= node->threshold;
	if (x >= 0.0 && x < 64.0 * node->n_set)
	{
		uint64_t code = (uint64_t) x;

		return trees->sets[node->set + code / 64] >> (code % 64) & 1;
	}
	return (node->flags & AG_NODE_UNSEEN_LEFT) != 0;
}

/* The leaf's value that a row's features lead to. */
static inline double
ag_tree_value(const AgTrees *trees, const AgTree *tree, const double *features)
{
	const AgTreeNode *nodes = trees->nodes + tree->first_node;
	int32_t at = tree->n_nodes > 0 ? 0 : ~0;

	while (at >= 0)
	{
		const AgTreeNode *node = &nodes[at];

		at = ag_node_goes_left(trees, node, features[node->feature]) ? node->left : node->right;
	}
	return trees->leaves[tree->first_leaf + (uint32_t) ~at];
}

/* Adds a leaf, given by its value, to the scores. */
static inline void
ag_leaf_add(const AgTrees *trees, uint32_t output, double value, double *scores)
{
	const uint64_t *vector;

	if (trees->vectors == NULL)
	{
		scores[output] += value;
		return;
	}
	vector = trees->vectors + (uint64_t) value;
	for (uint64_t e = vector[0]; e < vector[1]; e++)
		scores[trees->entries[e].output] += trees->entries[e].share;
}

#endif
