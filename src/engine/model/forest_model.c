/*
 * forest_model.c - grown trees as a model: bins become thresholds and sets of codes, leaves of equal shares one vector.
 */
#include <math.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/model/forest_private.h"

#define EMPTY UINT32_MAX

/* Vectors of shares, each once. A pure leaf's is found by its class, the others' by their hash. */
typedef struct AgForestVectors
{
	uint64_t *firsts; /* [n_vectors + 1] */
	AgLeafEntry *entries;
	uint64_t n_vectors, n_entries;
	uint32_t *pure_of; /* [n_classes] */
	uint32_t *table;   /* [n_slots] */
	uint64_t n_slots;
} AgForestVectors;

static bool
is_category(const AgForestNode *node)
{
	return (node->feature & AG_FOREST_CATEGORY) != 0;
}

static uint32_t
n_codes(const AgBinFeature *feature)
{
	return (uint32_t) feature->n_bins - (feature->has_other ? 1 : 0);
}

static uint32_t
n_words(const AgForest *forest, const AgForestNode *node)
{
	const AgBinFeature *feature =
		forest->data->bins->features + (node->feature & AG_FOREST_FEATURE);

	return is_category(node) ? (n_codes(feature) + 63) / 64 : 0;
}

static uint32_t
shares_of(const AgForestTree *tree, uint32_t leaf, uint32_t *first)
{
	*first = leaf > 0 ? tree->share_ends[leaf - 1] : 0;
	return tree->share_ends[leaf] - *first;
}

int64_t
ag_forest_tree_bytes(const AgForest *forest, const AgForestTree *tree)
{
	int64_t bytes = (int64_t) sizeof(AgTree) + tree->n_nodes * (int64_t) sizeof(AgTreeNode) +
					tree->n_leaves * (int64_t) sizeof(double) +
					tree->n_sets * (int64_t) sizeof(AgForestSet);

	if (forest->n_classes > 2)
		bytes += (tree->n_shares - tree->n_leaves) * (int64_t) sizeof(AgLeafEntry);
	return bytes;
}

/* ---- vectors ---- */

static AgStatus
create_vectors(const AgForest *forest, AgForestVectors *vectors)
{
	const AgContext *ctx = forest->ctx;
	size_t n_mixed = 0, n_entries = (size_t) forest->n_classes;
	size_t n_classes = (size_t) forest->n_classes;

	for (int t = 0; t < forest->n_trees; t++)
	{
		const AgForestTree *tree = &forest->trees[t];
		uint32_t first;

		for (uint32_t l = 0; l < tree->n_leaves; l++)
			if (shares_of(tree, l, &first) > 1)
			{
				n_mixed++;
				n_entries += shares_of(tree, l, &first);
			}
	}
	vectors->n_slots = 64;
	while (vectors->n_slots < 2 * n_mixed)
		vectors->n_slots *= 2;
	AG_TRY(ag_get(ctx, n_mixed + n_classes + 1, sizeof(uint64_t), &vectors->firsts));
	AG_TRY(ag_get(ctx, n_entries, sizeof(AgLeafEntry), &vectors->entries));
	AG_TRY(ag_get(ctx, n_classes, sizeof(uint32_t), &vectors->pure_of));
	AG_TRY(ag_get(ctx, (size_t) vectors->n_slots, sizeof(uint32_t), &vectors->table));
	memset(vectors->pure_of, 0xff, n_classes * sizeof(uint32_t));
	memset(vectors->table, 0xff, (size_t) vectors->n_slots * sizeof(uint32_t));
	vectors->firsts[0] = 0;
	return AG_OK;
}

static void
free_vectors(const AgContext *ctx, AgForestVectors *vectors)
{
	ag_mem_free(ctx->mem, vectors->firsts);
	ag_mem_free(ctx->mem, vectors->entries);
	ag_mem_free(ctx->mem, vectors->pure_of);
	ag_mem_free(ctx->mem, vectors->table);
}

static uint32_t
keep_vector(AgForestVectors *vectors, uint32_t n)
{
	vectors->n_entries += n;
	vectors->firsts[++vectors->n_vectors] = vectors->n_entries;
	return (uint32_t) vectors->n_vectors - 1;
}

/* The number of a leaf's vector; a new one is written behind the others and kept. */
static uint32_t
vector_of(AgForestVectors *vectors, const AgForestShare *shares, uint32_t n)
{
	AgLeafEntry *entries = vectors->entries + vectors->n_entries;
	size_t bytes = n * sizeof *entries;
	double total = 0.0;
	uint64_t slot;

	if (n == 1 && vectors->pure_of[shares[0].class_of] != EMPTY)
		return vectors->pure_of[shares[0].class_of];
	for (uint32_t i = 0; i < n; i++)
		total += shares[i].weight;
	for (uint32_t i = 0; i < n; i++)
		entries[i] = (AgLeafEntry){shares[i].weight / total, shares[i].class_of, 0};
	if (n == 1)
		return vectors->pure_of[shares[0].class_of] = keep_vector(vectors, 1);
	slot = ag_hash64(entries, bytes, 0) & (vectors->n_slots - 1);
	for (;; slot = (slot + 1) & (vectors->n_slots - 1))
	{
		uint32_t v = vectors->table[slot];

		if (v == EMPTY)
			return vectors->table[slot] = keep_vector(vectors, n);
		if (vectors->firsts[v + 1] - vectors->firsts[v] == n &&
			memcmp(vectors->entries + vectors->firsts[v], entries, bytes) == 0)
			return v;
	}
}

/* ---- nodes ---- */

/* Bits behind the last code stand for the tail and for unseen levels, and so follow their flag. */
static void
fill_set(const AgForestSet *set, uint32_t n_levels, bool unseen_left, uint32_t n, uint64_t *words)
{
	for (uint32_t w = 0; w < n; w++)
	{
		uint32_t n_here = n_levels - 64 * w;
		uint64_t beyond = n_here >= 64 ? 0 : UINT64_MAX << n_here;

		/* code 0 is bin 1 */
		words[w] = set->bits[w] >> 1 | (w < 3 ? set->bits[w + 1] << 63 : 0);
		words[w] = (words[w] & ~beyond) | (unseen_left ? beyond : 0);
	}
}

static void
fill_node(const AgForest *forest, const AgForestTree *tree, const AgForestNode *from,
		  AgTreeNode *node, uint64_t *sets, uint64_t *n_sets)
{
	const AgBinFeature *feature =
		forest->data->bins->features + (from->feature & AG_FOREST_FEATURE);

	memset(node, 0, sizeof *node);
	node->feature = from->feature & AG_FOREST_FEATURE;
	node->left = from->left;
	node->right = from->right;
	if (is_category(from))
	{
		const AgForestSet *set = &tree->sets[from->cut];
		bool unseen_left = (from->feature & AG_FOREST_UNSEEN_LEFT) != 0;

		node->flags = AG_NODE_CATEGORY | (unseen_left ? AG_NODE_UNSEEN_LEFT : 0) |
					  (set->bits[0] & 1 ? AG_NODE_MISSING_LEFT : 0);
		node->set = (uint32_t) *n_sets;
		node->n_set = n_words(forest, from);
		fill_set(set, n_codes(feature), unseen_left, node->n_set, sets + *n_sets);
		*n_sets += node->n_set;
		return;
	}
	{
		bool missing_left = from->cut >> 8 == 0;
		int bin = (int) (from->cut & 255u) - missing_left;

		node->flags = missing_left ? AG_NODE_MISSING_LEFT : 0;
		node->threshold = bin < feature->n_bins ? feature->cuts[bin - 1] : (double) INFINITY;
	}
}

/* The model's arrays, filled tree by tree. */
typedef struct AgForestArrays
{
	AgTree *trees;
	AgTreeNode *nodes;
	double *leaves;
	uint64_t *sets;
	uint64_t n_nodes, n_leaves, n_sets;
} AgForestArrays;

static void
fill_tree(const AgForest *forest, const AgForestTree *tree, AgForestVectors *vectors,
		  AgForestArrays *arrays, AgTree *made)
{
	*made = (AgTree){.first_node = arrays->n_nodes,
					 .first_leaf = arrays->n_leaves,
					 .n_nodes = tree->n_nodes,
					 .n_leaves = tree->n_leaves,
					 .depth = tree->depth};
	for (uint32_t i = 0; i < tree->n_nodes; i++)
		fill_node(forest, tree, &tree->nodes[i], &arrays->nodes[arrays->n_nodes++], arrays->sets,
				  &arrays->n_sets);
	for (uint32_t l = 0; l < tree->n_leaves; l++)
	{
		double *leaf = &arrays->leaves[arrays->n_leaves++];
		uint32_t first, n;

		if (!forest->is_classes)
			*leaf = tree->values[l] / forest->n_trees;
		else if (forest->n_classes == 2)
			*leaf = tree->values[l];
		else
		{
			n = shares_of(tree, l, &first);
			*leaf = vector_of(vectors, tree->shares + first, n);
		}
	}
}

static AgStatus
create_arrays(const AgForest *forest, AgTrees *trees, AgForestArrays *arrays)
{
	AgArena *arena = &trees->arena;
	double *base;

	for (int t = 0; t < forest->n_trees; t++)
	{
		const AgForestTree *tree = &forest->trees[t];

		trees->n_nodes += tree->n_nodes;
		trees->n_leaves += tree->n_leaves;
		for (uint32_t i = 0; tree->n_sets > 0 && i < tree->n_nodes; i++)
			trees->n_set_words += n_words(forest, &tree->nodes[i]);
	}
	if (trees->n_set_words > UINT32_MAX)
		return ag_error_set(forest->ctx->error, AG_ERR_DATA,
							"forest has too many splits on categories");
	base = ag_arena_alloc(arena, trees->n_outputs, sizeof *base);
	arrays->trees = ag_arena_alloc(arena, trees->n_trees, sizeof *arrays->trees);
	arrays->nodes = ag_arena_alloc(arena, (size_t) trees->n_nodes + 1, sizeof *arrays->nodes);
	arrays->leaves = ag_arena_alloc(arena, (size_t) trees->n_leaves, sizeof *arrays->leaves);
	arrays->sets = ag_arena_alloc(arena, (size_t) trees->n_set_words + 1, sizeof *arrays->sets);
	if (base == NULL || arrays->trees == NULL || arrays->nodes == NULL || arrays->leaves == NULL ||
		arrays->sets == NULL)
		return ag_mem_error(forest->ctx->mem, (size_t) trees->n_nodes * sizeof *arrays->nodes,
							forest->ctx->error);
	trees->base = base;
	trees->trees = arrays->trees;
	trees->nodes = arrays->nodes;
	trees->leaves = arrays->leaves;
	trees->sets = arrays->sets;
	return AG_OK;
}

static AgStatus
take_vectors(const AgContext *ctx, const AgForestVectors *vectors, AgTrees *trees)
{
	uint64_t *firsts =
		ag_arena_alloc(&trees->arena, (size_t) vectors->n_vectors + 1, sizeof *firsts);
	AgLeafEntry *entries =
		ag_arena_alloc(&trees->arena, (size_t) vectors->n_entries, sizeof *entries);

	if (firsts == NULL || entries == NULL)
		return ag_mem_error(ctx->mem, (size_t) vectors->n_entries * sizeof *entries, ctx->error);
	memcpy(firsts, vectors->firsts, ((size_t) vectors->n_vectors + 1) * sizeof *firsts);
	memcpy(entries, vectors->entries, (size_t) vectors->n_entries * sizeof *entries);
	trees->vectors = firsts;
	trees->entries = entries;
	trees->n_vectors = vectors->n_vectors;
	trees->n_entries = vectors->n_entries;
	return AG_OK;
}

AgStatus
ag_forest_model(AgForest *forest, AgTrees **out)
{
	const AgContext *ctx = forest->ctx;
	AgForestVectors vectors = {0};
	AgForestArrays arrays = {0};
	bool has_vectors = forest->n_classes > 2;
	AgTrees *trees;
	AgStatus status;

	AG_TRY(ag_trees_create(ctx, &trees));
	trees->n_features = (uint32_t) forest->data->bins->n_features;
	trees->n_outputs = has_vectors ? (uint32_t) forest->n_classes : 1;
	trees->n_trees = (uint32_t) forest->n_trees;
	trees->link = forest->is_classes ? AG_LINK_MEAN_FREQUENCIES : AG_LINK_IDENTITY;
	AG_GO(create_arrays(forest, trees, &arrays));
	if (has_vectors)
		AG_GO(create_vectors(forest, &vectors));
	for (int t = 0; t < forest->n_trees; t++)
	{
		AG_GO(ag_check_cancel(ctx));
		fill_tree(forest, &forest->trees[t], &vectors, &arrays, &arrays.trees[t]);
	}
	if (has_vectors)
		AG_GO(take_vectors(ctx, &vectors, trees));
	*out = trees;
done:
	free_vectors(ctx, &vectors);
	if (status != AG_OK)
		ag_trees_free(trees);
	return status;
}
