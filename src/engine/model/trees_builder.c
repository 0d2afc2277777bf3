/*
 * trees_builder.c - from bins to thresholds.
 */
#include "engine/model/trees_builder.h"

#include <math.h>
#include <string.h>

#include "engine/model/combine.h"
#include "engine/model/target_stats.h"
#include "engine/model/trees_walk.h"

/* Makes room for n more items; capacities double. */
static AgStatus
reserve(const AgContext *ctx, void **items, size_t item_size, size_t n_used, size_t n,
		size_t *capacity)
{
	size_t wanted = *capacity < 64 ? 64 : *capacity;
	void *grown;

	if (n_used + n <= *capacity)
		return AG_OK;
	while (wanted < n_used + n)
		wanted *= 2;
	grown = ag_mem_realloc(ctx->mem, *items, wanted, item_size);
	if (grown == NULL)
		return ag_mem_error(ctx->mem, wanted * item_size, ctx->error);
	*items = grown;
	*capacity = wanted;
	return AG_OK;
}

/* Codes that have a bin of their own. */
static int
n_codes(const AgBinFeature *feature)
{
	return feature->n_bins - (feature->has_other ? 1 : 0);
}

static uint32_t
n_set_words(const AgBinFeature *feature)
{
	return ((uint32_t) n_codes(feature) + 63) / 64;
}

/* Bits behind the last code stand for the tail and for unseen levels, and so follow their flag. */
static void
fill_set(const AgSplit *split, const AgBinFeature *feature, uint64_t *words)
{
	uint32_t n_words = n_set_words(feature);

	memset(words, 0, n_words * sizeof *words);
	for (int code = 0; code < (int) n_words * 64; code++)
	{
		bool is_left =
			code < n_codes(feature) ? ag_split_goes_left(split, code + 1) : split->unseen_left;

		if (is_left)
			words[code >> 6] |= UINT64_C(1) << (code & 63);
	}
}

/* The column's statistic, when a split's column is one. */
static const AgStatColumn *
stat_of(const AgTreesBuilder *builder, const AgSplit *split)
{
	const AgStatColumn *column;

	if (builder->stats == NULL)
		return NULL;
	column = builder->stats->columns + split->feature;
	return column->values != NULL ? column : NULL;
}

static size_t
set_words_of(const AgTreesBuilder *builder, const AgBins *bins, const AgSplit *split)
{
	const AgStatColumn *column = stat_of(builder, split);

	if (column != NULL)
		return ((size_t) column->n_codes + 63) / 64;
	return split->is_category ? n_set_words(bins->features + split->feature) : 0;
}

/* A cut of a statistic is a set of levels. Many trees cut alike: they have the set together. */
static void
fill_stat_node(AgTreesBuilder *builder, const AgBinFeature *feature, const AgSplit *split,
			   size_t n_words, AgTreeNode *node)
{
	const AgStatColumn *column = stat_of(builder, split);
	double cut = split->bin < feature->n_bins ? feature->cuts[split->bin - 1] : (double) INFINITY;
	int64_t *known = column->sets + split->bin - 1;
	bool unseen_left = column->unseen <= cut;
	uint64_t *words;

	node->feature = (uint32_t) column->source;
	node->flags = AG_NODE_CATEGORY | (column->missing <= cut ? AG_NODE_MISSING_LEFT : 0) |
				  (unseen_left ? AG_NODE_UNSEEN_LEFT : 0);
	node->n_set = (uint32_t) n_words;
	if (*known < 0)
	{
		*known = (int64_t) builder->n_set_words;
		words = builder->sets + builder->n_set_words;
		builder->n_set_words += n_words;
		memset(words, 0, n_words * sizeof *words);
		for (size_t code = 0; code < n_words * 64; code++)
			if (code < (size_t) column->n_codes ? column->values[code] <= cut : unseen_left)
				words[code >> 6] |= UINT64_C(1) << (code & 63);
	}
	node->set = (uint32_t) *known;
}

static void
fill_node(AgTreesBuilder *builder, const AgBins *bins, const AgGrownNode *grown, AgTreeNode *node)
{
	const AgSplit *split = &grown->split;
	const AgBinFeature *feature = bins->features + split->feature;

	memset(node, 0, sizeof *node);
	node->left = grown->left;
	node->right = grown->right;
	if (stat_of(builder, split) != NULL)
	{
		fill_stat_node(builder, feature, split, set_words_of(builder, bins, split), node);
		return;
	}
	node->feature =
		(uint32_t) (builder->stats != NULL ? builder->stats->columns[split->feature].source
										   : split->feature);
	node->flags = split->missing_left ? AG_NODE_MISSING_LEFT : 0;
	if (!split->is_category)
	{
		node->threshold =
			split->bin < feature->n_bins ? feature->cuts[split->bin - 1] : (double) INFINITY;
		return;
	}
	node->flags |= AG_NODE_CATEGORY | (split->unseen_left ? AG_NODE_UNSEEN_LEFT : 0);
	node->set = (uint32_t) builder->n_set_words;
	node->n_set = n_set_words(feature);
	fill_set(split, feature, builder->sets + builder->n_set_words);
	builder->n_set_words += node->n_set;
}

/* Columns forget the sets that aren't there any more. */
static void
forget_stat_sets(const AgTreesBuilder *builder, const AgStatColumn *columns, int n)
{
	for (int c = 0; c < n; c++)
		for (int b = 0; columns[c].sets != NULL && b < AG_STAT_BINS; b++)
			if (columns[c].sets[b] >= (int64_t) builder->n_set_words)
				columns[c].sets[b] = -1;
}

static void
forget_sets(const AgTreesBuilder *builder)
{
	const AgTargetStats *stats = builder->stats;

	if (stats == NULL)
		return;
	forget_stat_sets(builder, stats->columns, stats->bins->n_features);
	for (int u = 0; stats->combiner != NULL && u < stats->combiner->n_used; u++)
		forget_stat_sets(builder, stats->combiner->used[u]->columns, stats->combiner->n_stats);
}

AgStatus
ag_trees_builder_add(const AgContext *ctx, AgTreesBuilder *builder, const AgGrower *grower,
					 uint32_t output, const double *values)
{
	size_t n_nodes = (size_t) grower->n_nodes, n_leaves = (size_t) grower->n_leaves, n_words = 0;
	AgTree *tree;

	for (size_t i = 0; i < n_nodes; i++)
		n_words += set_words_of(builder, grower->bins, &grower->nodes[i].split);
	if (builder->n_set_words + n_words > UINT32_MAX)
		return ag_error_set(ctx->error, AG_ERR_RESOURCES, "trees have too many sets of categories");

	AG_TRY(reserve(ctx, (void **) &builder->trees, sizeof(AgTree), builder->n_trees, 1,
				   &builder->max_trees));
	AG_TRY(reserve(ctx, (void **) &builder->nodes, sizeof(AgTreeNode), builder->n_nodes, n_nodes,
				   &builder->max_nodes));
	AG_TRY(reserve(ctx, (void **) &builder->leaves, sizeof(double), builder->n_leaves, n_leaves,
				   &builder->max_leaves));
	AG_TRY(reserve(ctx, (void **) &builder->sets, sizeof(uint64_t), builder->n_set_words, n_words,
				   &builder->max_set_words));
	tree = builder->trees + builder->n_trees++;
	*tree = (AgTree){.first_node = builder->n_nodes,
					 .first_leaf = builder->n_leaves,
					 .n_nodes = (uint32_t) n_nodes,
					 .n_leaves = (uint32_t) n_leaves,
					 .output = output,
					 .depth = grower->depth};
	for (size_t i = 0; i < n_nodes; i++)
		fill_node(builder, grower->bins, grower->nodes + i, builder->nodes + builder->n_nodes++);
	memcpy(builder->leaves + builder->n_leaves, values, n_leaves * sizeof *values);
	builder->n_leaves += n_leaves;
	return AG_OK;
}

void
ag_trees_builder_cut(AgTreesBuilder *builder, size_t n_trees)
{
	const AgTreeNode *node;

	if (n_trees >= builder->n_trees)
		return;
	builder->n_nodes = (size_t) builder->trees[n_trees].first_node;
	builder->n_leaves = (size_t) builder->trees[n_trees].first_leaf;
	builder->n_trees = n_trees;
	builder->n_set_words = 0;
	for (size_t i = 0; i < builder->n_nodes; i++)
	{
		node = builder->nodes + i;
		if (node->set + (size_t) node->n_set > builder->n_set_words)
			builder->n_set_words = node->set + (size_t) node->n_set;
	}
	forget_sets(builder);
}

static const void *
copied(AgArena *arena, const void *items, size_t n, size_t size)
{
	void *copy = ag_arena_alloc(arena, n > 0 ? n : 1, size);

	if (copy != NULL && n > 0)
		memcpy(copy, items, n * size);
	return copy;
}

/* One combination behind the others. */
static void
put_combo(const AgTreesBuilder *builder, const AgBins *bins, const AgCombination *from,
		  AgTrees *trees, AgComboMember *members, uint64_t *keys, AgTreeCombo *combo)
{
	const AgCombiner *combiner = builder->stats->combiner;

	*combo = (AgTreeCombo){.first_key = trees->n_combo_keys,
						   .n_keys = from->n_codes,
						   .first_member = (uint32_t) trees->n_combo_members,
						   .n_members = (uint32_t) from->members.n};
	for (int m = 0; m < from->members.n; m++)
	{
		int f = from->members.features[m];
		const AgBinFeature *feature = bins->features + f;
		bool has_codes = combiner->codes != NULL && combiner->codes[f] != NULL;

		members[trees->n_combo_members++] =
			(AgComboMember){.feature = (uint32_t) f,
							.n_codes = has_codes ? feature->n_levels : (uint32_t) n_codes(feature),
							.has_other = !has_codes && feature->has_other};
	}
	memcpy(keys + trees->n_combo_keys, from->keys, from->n_codes * sizeof *keys);
	trees->n_combo_keys += from->n_codes;
}

/* The combinations that the trees left split on, numbered anew without the others. */
static AgStatus
add_combos(const AgContext *ctx, const AgTreesBuilder *builder, AgTrees *trees)
{
	const AgCombiner *combiner = builder->stats != NULL ? builder->stats->combiner : NULL;
	AgTreeNode *nodes = (AgTreeNode *) trees->nodes; /* its own copy */
	uint32_t *numbers;
	size_t n = combiner != NULL ? (size_t) combiner->n_used : 0, n_keys = 0;
	AgTreeCombo *combos;
	AgComboMember *members;
	uint64_t *keys;

	if (n == 0)
		return AG_OK;
	numbers = ag_arena_alloc(&trees->arena, n, sizeof *numbers);
	for (size_t u = 0; u < n; u++)
		n_keys += combiner->used[u]->n_codes;
	combos = ag_arena_alloc(&trees->arena, n, sizeof *combos);
	members = ag_arena_alloc(&trees->arena, n * AG_COMBO_MEMBERS, sizeof *members);
	keys = ag_arena_alloc(&trees->arena, n_keys > 0 ? n_keys : 1, sizeof *keys);
	if (numbers == NULL || combos == NULL || members == NULL || keys == NULL)
		return ag_mem_error(ctx->mem, n_keys * sizeof *keys, ctx->error);
	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (nodes[i].feature >= trees->n_features)
			numbers[nodes[i].feature - trees->n_features] = 1;
	for (size_t u = 0; u < n; u++)
	{
		if (numbers[u] == 0)
			continue;
		put_combo(builder, combiner->data->bins, combiner->used[u], trees, members, keys,
				  combos + trees->n_combos);
		numbers[u] = trees->n_combos++;
	}
	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (nodes[i].feature >= trees->n_features)
			nodes[i].feature = trees->n_features + numbers[nodes[i].feature - trees->n_features];
	trees->combos = combos;
	trees->combo_members = members;
	trees->combo_keys = keys;
	return AG_OK;
}

AgStatus
ag_trees_builder_finish(const AgContext *ctx, const AgTreesBuilder *builder, int n_features,
						int n_outputs, AgLink link, const double *base, AgTrees **trees)
{
	AgTrees *made;
	AgArena *arena;

	AG_TRY(ag_trees_create(ctx, &made));
	arena = &made->arena;
	made->n_features = (uint32_t) n_features;
	made->n_outputs = (uint32_t) n_outputs;
	made->n_trees = (uint32_t) builder->n_trees;
	made->link = link;
	made->n_nodes = builder->n_nodes;
	made->n_leaves = builder->n_leaves;
	made->n_set_words = builder->n_set_words;
	made->base = copied(arena, base, (size_t) n_outputs, sizeof *base);
	made->trees = copied(arena, builder->trees, builder->n_trees, sizeof(AgTree));
	made->nodes = copied(arena, builder->nodes, builder->n_nodes, sizeof(AgTreeNode));
	made->leaves = copied(arena, builder->leaves, builder->n_leaves, sizeof(double));
	made->sets = copied(arena, builder->sets, builder->n_set_words, sizeof(uint64_t));
	if (made->base == NULL || made->trees == NULL || made->nodes == NULL || made->leaves == NULL ||
		made->sets == NULL)
	{
		ag_trees_free(made);
		return ag_mem_error(ctx->mem, builder->n_nodes * sizeof(AgTreeNode), ctx->error);
	}
	if (add_combos(ctx, builder, made) != AG_OK)
	{
		ag_trees_free(made);
		return AG_ERR_MEMORY;
	}
	*trees = made;
	return AG_OK;
}

void
ag_trees_builder_free(const AgContext *ctx, AgTreesBuilder *builder)
{
	ag_mem_free(ctx->mem, builder->trees);
	ag_mem_free(ctx->mem, builder->nodes);
	ag_mem_free(ctx->mem, builder->leaves);
	ag_mem_free(ctx->mem, builder->sets);
	memset(builder, 0, sizeof *builder);
}
