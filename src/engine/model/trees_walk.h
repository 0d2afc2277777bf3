/*
 * trees_walk.h - the one predicate of trees.h, and the plain walk through a tree by it. Private to trees*.c and forest*.c.
 */
#ifndef AG_TREES_WALK_H
#define AG_TREES_WALK_H

#include "engine/base/rng.h"
#include "engine/model/trees.h"

#define AG_COMBO_UNSEEN (UINT32_MAX - 1)    /* the value of a combination without a key */
#define AG_COMBO_MISSING UINT32_MAX         /* the level of a member that is missing */
#define AG_COMBO_OTHER (UINT32_MAX - 1)     /* of one whose code is of the tail */
#define AG_COMBO_START UINT64_C(0x636f6d62) /* of the hash */

/* The hash of the members' levels, one after the other. */
static inline uint64_t
ag_combo_fold(uint64_t key, uint32_t level)
{
	return ag_key(key, level);
}

/*
 * The place of a key, or AG_COMBO_UNSEEN. Keys are hashes, so their places are near to where evenly spread ones would
 * be: the search begins there, and leaps.
 */
static inline uint32_t
ag_combo_find(const uint64_t *keys, uint64_t n, uint64_t key)
{
	uint64_t low, high, step = 16;

	if (n == 0)
		return AG_COMBO_UNSEEN;
	low = high = (uint64_t) (((unsigned __int128) key * n) >> 64);
	while (low > 0 && keys[low] > key)
	{
		low = low > step ? low - step : 0;
		step *= 2;
	}
	for (step = 16; high < n && keys[high] < key; step *= 2)
		high = n - high > step ? high + step : n;
	/* what is looked for lies in [low, high] */
	while (low < high)
	{
		uint64_t middle = low + (high - low) / 2;

		if (keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && keys[low] == key ? (uint32_t) low : AG_COMBO_UNSEEN;
}

/* The code of combination c of a row. */
static inline uint32_t
ag_combo_code(const AgTrees *trees, uint32_t c, const double *features)
{
	const AgTreeCombo *combo = &trees->combos[c];
	const AgComboMember *members = trees->combo_members + combo->first_member;
	uint64_t key = AG_COMBO_START;

	for (uint32_t m = 0; m < combo->n_members; m++)
	{
		double x = features[members[m].feature];
		uint32_t level = AG_COMBO_MISSING;

		if (x >= 0.0 && x < (double) members[m].n_codes)
			level = (uint32_t) x;
		else if (x == x)
		{
			if (!members[m].has_other)
				return AG_COMBO_UNSEEN;
			level = AG_COMBO_OTHER;
		}
		key = ag_combo_fold(key, level);
	}
	return ag_combo_find(trees->combo_keys + combo->first_key, combo->n_keys, key);
}

/* The number that a node asks for. */
static inline double
ag_node_value(const AgTrees *trees, const AgTreeNode *node, const double *features)
{
	if (node->feature < trees->n_features)
		return features[node->feature];
	return (double) ag_combo_code(trees, node->feature - trees->n_features, features);
}

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

		at = ag_node_goes_left(trees, node, ag_node_value(trees, node, features)) ? node->left
																				  : node->right;
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
