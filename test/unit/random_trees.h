/*
 * random_trees.h - trees of any shape and rows of any value, from a seed: for the tests of prediction.
 *
 * Feature f is a category when f % 3 == 2. Trees are grown by splitting a random leaf, as a leaf-wise booster does.
 */
#ifndef AG_RANDOM_TREES_H
#define AG_RANDOM_TREES_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/trees.h"

typedef struct RandomTrees
{
	uint64_t seed;
	uint32_t n_features, n_trees, n_outputs, max_leaves;
	AgLink link;
} RandomTrees;

static inline double
random_cut(uint64_t key, uint64_t counter)
{
	static const double special[] = {0.0,     -0.0,     INFINITY, -INFINITY,
									 DBL_MAX, -DBL_MAX, 5e-324,   1.0};
	uint32_t which = ag_random_below(key, counter, 40);

	return which < 8 ? special[which] : (double) ag_random_below(key, counter + 1, 64) / 8.0 - 4.0;
}

/* Turns a leaf of any value into a forest's: a share, or the number of a vector. */
static inline double
random_forest_leaf(const AgTrees *trees, double value)
{
	return trees->n_vectors == 0 ? value + 0.5 : floor((value + 0.5) * (double) trees->n_vectors);
}

/* Vectors of shares: pure ones first, then mixed. */
static inline AgStatus
random_vectors(AgTrees *trees, uint64_t key)
{
	uint32_t n_pure = trees->n_outputs, n = n_pure + 20;
	uint64_t *vectors = ag_arena_alloc(&trees->arena, n + 1, sizeof *vectors);
	AgLeafEntry *entries =
		ag_arena_alloc(&trees->arena, (size_t) n * trees->n_outputs, sizeof *entries);

	if (vectors == NULL || entries == NULL)
		return AG_ERR_MEMORY;
	for (uint32_t v = 0; v < n; v++)
	{
		uint32_t n_own = v < n_pure ? 1 : 1 + ag_random_below(key, v, trees->n_outputs);
		uint32_t first = v < n_pure ? v : 0;

		for (uint32_t i = 0; i < n_own; i++)
			entries[trees->n_entries++] = (AgLeafEntry){1.0 / n_own, first + i, 0};
		vectors[v + 1] = trees->n_entries;
	}
	trees->vectors = vectors;
	trees->entries = entries;
	trees->n_vectors = n;
	return AG_OK;
}

/* Room for all: AG_OK, or the status of what failed. */
static inline AgStatus
random_trees(const AgContext *ctx, RandomTrees want, AgTrees **out)
{
	AgTrees *trees;
	size_t n_max = (size_t) want.n_trees * want.max_leaves + 1;
	AgTree *tree;
	AgTreeNode *nodes;
	double *leaves, *base;
	uint64_t *sets, draw = 0, key = ag_key(want.seed, 7);

	AG_TRY(ag_trees_create(ctx, out));
	trees = *out;
	tree = ag_arena_alloc(&trees->arena, want.n_trees + 1, sizeof *tree);
	nodes = ag_arena_alloc(&trees->arena, n_max, sizeof *nodes);
	leaves = ag_arena_alloc(&trees->arena, n_max, sizeof *leaves);
	base = ag_arena_alloc(&trees->arena, want.n_outputs, sizeof *base);
	sets = ag_arena_alloc(&trees->arena, n_max * 3, sizeof *sets);
	if (tree == NULL || nodes == NULL || leaves == NULL || base == NULL || sets == NULL)
	{
		ag_trees_free(trees);
		*out = NULL;
		return AG_ERR_MEMORY;
	}
	trees->n_features = want.n_features;
	trees->n_outputs = want.n_outputs;
	trees->n_trees = want.n_trees;
	trees->link = want.link;
	trees->base = base;
	trees->trees = tree;
	trees->nodes = nodes;
	trees->leaves = leaves;
	trees->sets = sets;
	for (uint32_t k = 0; k < want.n_outputs; k++)
		base[k] = ag_random_unit(key, draw++) - 0.5;
	if (want.link == AG_LINK_MEAN_FREQUENCIES)
	{
		memset(base, 0, want.n_outputs * sizeof *base);
		if (want.n_outputs > 1 && random_vectors(trees, key) != AG_OK)
		{
			ag_trees_free(trees);
			*out = NULL;
			return AG_ERR_MEMORY;
		}
	}
	for (uint32_t t = 0; t < want.n_trees; t++)
	{
		uint32_t n_leaves = 1 + ag_random_below(key, draw++, want.max_leaves);
		AgTreeNode *node = nodes + trees->n_nodes;
		struct
		{
			int32_t parent;
			int is_right;
			uint32_t level;
		} at[4096] = {{-1, 0, 0}};

		tree[t].first_node = trees->n_nodes;
		tree[t].first_leaf = trees->n_leaves;
		tree[t].output = trees->n_vectors > 0 ? 0 : t % want.n_outputs;
		for (uint32_t n = 0; n + 1 < n_leaves; n++)
		{
			uint32_t leaf = ag_random_below(key, draw++, n + 1);
			uint32_t feature = ag_random_below(key, draw++, want.n_features);
			uint32_t flags = ag_random_below(key, draw++, 8);

			node[n].feature = feature;
			node[n].flags = flags & AG_NODE_MISSING_LEFT;
			if (feature % 3 == 2)
			{
				node[n].flags = (flags & ~1u) | AG_NODE_CATEGORY;
				node[n].set = (uint32_t) trees->n_set_words;
				node[n].n_set = ag_random_below(key, draw++, 4);
				for (uint32_t w = 0; w < node[n].n_set; w++)
					sets[trees->n_set_words++] = ag_random_u64(key, draw++);
			}
			else
			{
				node[n].threshold = random_cut(key, draw);
				draw += 2;
			}
			if (at[leaf].parent >= 0 && at[leaf].is_right)
				node[at[leaf].parent].right = (int32_t) n;
			else if (at[leaf].parent >= 0)
				node[at[leaf].parent].left = (int32_t) n;
			node[n].left = ~(int32_t) leaf;
			node[n].right = ~(int32_t) (n + 1);
			at[leaf].parent = at[n + 1].parent = (int32_t) n;
			at[leaf].is_right = 0;
			at[n + 1].is_right = 1;
			at[n + 1].level = ++at[leaf].level;
			if (at[leaf].level > tree[t].depth)
				tree[t].depth = at[leaf].level;
		}
		tree[t].n_nodes = n_leaves - 1;
		tree[t].n_leaves = n_leaves;
		for (uint32_t l = 0; l < n_leaves; l++)
		{
			double value = ag_random_unit(key, draw++) - 0.5;

			leaves[trees->n_leaves + l] =
				want.link == AG_LINK_MEAN_FREQUENCIES ? random_forest_leaf(trees, value) : value;
		}
		trees->n_nodes += n_leaves - 1;
		trees->n_leaves += n_leaves;
	}
	return AG_OK;
}

/* One value: ordinary ones, those on the cuts, and everything that may surprise. */
static inline double
random_value(uint64_t seed, uint64_t row, uint32_t feature)
{
	static const double special[] = {NAN, -NAN,    INFINITY, -INFINITY, -0.0,
									 0.0, DBL_MAX, -DBL_MAX, 5e-324};
	uint64_t key = ag_key(seed, 11), counter = row * 1009 + feature * 3;
	uint32_t which = ag_random_below(key, counter, 60);

	if (feature % 3 == 2)
	{
		if (which < 5)
			return NAN;
		if (which < 10)
			return -1.0;
		if (which < 12)
			return which == 10 ? 4294967295.0 : -0.0;
		return (double) ag_random_below(key, counter + 1, 210);
	}
	if (which < 9)
		return special[which];
	if (which < 30)
		return (double) ag_random_below(key, counter + 1, 64) / 8.0 - 4.0;
	return 10.0 * ag_random_unit(key, counter + 1) - 5.0;
}

#endif
