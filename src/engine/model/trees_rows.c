#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "engine/model/trees_block.h"
#include "engine/model/trees_plan.h"
#include "engine/model/trees_walk.h"

/* With more leaves than this in the mean, walking each row on its own is faster where there are no vectors. */
#define MOST_MEAN_LEAVES 64
/* One tree in so many may be too large for masks, and is walked the slow way. */
#define LEAST_SHARE 8
/* Fewer trees don't pay for the bytes. */
#define LEAST_TREES 16
#define MOST_FEATURES 65536

/* --- preparation */

static int
compare_numbers(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

static bool
is_number(const AgTreeNode *node)
{
	return (node->flags & AG_NODE_CATEGORY) == 0;
}

/* Sorts n thresholds and drops repeats; returns how many are left. */
static uint32_t
unique_cuts(double *cuts, uint32_t n)
{
	uint32_t n_unique = 0;

	qsort(cuts, n, sizeof *cuts, compare_numbers);
	for (uint32_t i = 0; i < n; i++)
		if (n_unique == 0 || cuts[i] != cuts[n_unique - 1])
			cuts[n_unique++] = cuts[i];
	return n_unique;
}

/* How many of cuts[2^k - 1] are below x; none for NaN. */
static uint32_t
cuts_below(const double *cuts, uint32_t n_cuts, double x)
{
	uint32_t at = 0;

	for (uint32_t step = (n_cuts + 1) / 2; step > 0; step /= 2)
		at += cuts[at + step - 1] < x ? step : 0;
	return at;
}

/* What a preparation carries. */
typedef struct Preparation
{
	AgTrees *trees;
	uint32_t *input_of; /* [n_features] */
	uint64_t *first;    /* [n_features + 1] of a feature's thresholds */
	double *thresholds; /* [n_nodes] by feature */
	AgRowsInput *inputs;
	uint32_t n_inputs, n_columns;
	AgRowsNode *nodes;
	int32_t *
		code_of; /* [n_features] -1: not to be bytes; else their first column; MOST_FEATURES: none yet */
	AgRowsCode *codes;
	uint32_t n_codes;
	AgRowsTree *forms; /* [n_trees] */
	uint8_t *sets;
	AgRowsCut *cuts;
	double *leaves;
	bool fits;
} Preparation;

/* Thresholds of all nodes, sorted by feature: counted, then filled in from behind. */
static void
gather_thresholds(Preparation *preparation)
{
	const AgTrees *trees = preparation->trees;
	uint64_t *first = preparation->first;

	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (is_number(&trees->nodes[i]))
			first[trees->nodes[i].feature]++;
	for (uint32_t f = 1; f <= trees->n_features; f++)
		first[f] += first[f - 1];
	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (is_number(&trees->nodes[i]))
			preparation->thresholds[--first[trees->nodes[i].feature]] = trees->nodes[i].threshold;
}

/* One input a feature that is compared with thresholds. */
static AgStatus
make_inputs(const AgContext *ctx, Preparation *preparation)
{
	AgTrees *trees = preparation->trees;

	for (uint32_t f = 0; f < trees->n_features; f++)
	{
		double *thresholds = preparation->thresholds + preparation->first[f];
		uint64_t n = preparation->first[f + 1] - preparation->first[f];
		AgRowsInput *input = &preparation->inputs[preparation->n_inputs];
		uint32_t n_unique, n_room, n_padded = 1;
		double *cuts;

		if (n == 0)
			continue;
		n_unique = n <= UINT32_MAX ? unique_cuts(thresholds, (uint32_t) n) : UINT32_MAX;
		if (n_unique > AG_ROWS_MAX_CUTS)
		{
			preparation->fits = false;
			return AG_OK;
		}
		while (n_padded < n_unique)
			n_padded = 2 * n_padded + 1;
		n_room = n_padded + AG_ROWS_CUTS_BEHIND;
		cuts = ag_arena_alloc(&trees->arena, n_room, sizeof *cuts);
		if (cuts == NULL)
			return ag_mem_error(ctx->mem, n_room * sizeof *cuts, ctx->error);
		for (uint32_t i = 0; i < n_room; i++)
			cuts[i] = i < n_unique ? thresholds[i] : (double) INFINITY;
		*input = (AgRowsInput){f, n_padded, cuts, {-1, -1}};
		preparation->input_of[f] = preparation->n_inputs++;
	}
	return AG_OK;
}

static uint16_t
child_of(const AgTree *tree, int32_t child)
{
	return (uint16_t) (child >= 0 ? (uint32_t) child : tree->n_nodes + (uint32_t) ~child);
}

/* Categories whose nodes' sets all are small enough, and aren't combinations. */
static void
find_codes(Preparation *preparation)
{
	const AgTrees *trees = preparation->trees;

	for (uint32_t f = 0; f < trees->n_features + trees->n_combos; f++)
		preparation->code_of[f] = f < trees->n_features ? MOST_FEATURES : -1;
	for (uint64_t i = 0; i < trees->n_nodes; i++)
		if (!is_number(&trees->nodes[i]) && trees->nodes[i].n_set > AG_ROWS_SET_WORDS)
			preparation->code_of[trees->nodes[i].feature] = -1;
}

/* The first column of a category's bytes, given out when it is first asked for; -1: it has none. */
static int32_t
column_of_code(Preparation *preparation, uint32_t feature)
{
	int32_t *column = &preparation->code_of[feature];

	if (*column != MOST_FEATURES)
		return *column;
	if (preparation->n_columns + 2 > AG_ROWS_MAX_COLUMNS / 2) /* numbers can't do without */
		return *column = -1;
	*column = (int32_t) preparation->n_columns;
	preparation->n_columns += 2;
	preparation->codes[preparation->n_codes++] = (AgRowsCode){feature, (uint32_t) *column};
	return *column;
}

static void
make_nodes(Preparation *preparation, const AgTree *tree, AgRowsNode *made)
{
	const AgTreeNode *nodes = preparation->trees->nodes + tree->first_node;

	for (uint32_t i = 0; i < tree->n_nodes; i++)
	{
		AgRowsInput *input = &preparation->inputs[preparation->input_of[nodes[i].feature]];
		int32_t *column = &input->column[(nodes[i].flags & AG_NODE_MISSING_LEFT) != 0];

		made[i].left = child_of(tree, nodes[i].left);
		made[i].right = child_of(tree, nodes[i].right);
		made[i].ask = AG_ROWS_NUMBER;
		if (!is_number(&nodes[i]))
		{
			int32_t code = column_of_code(preparation, nodes[i].feature);

			made[i].ask = code < 0 ? AG_ROWS_CATEGORY : AG_ROWS_SET;
			made[i].column = code < 0 ? 0 : (uint16_t) code;
			continue;
		}
		if (*column < 0)
		{
			preparation->fits &= preparation->n_columns < AG_ROWS_MAX_COLUMNS;
			*column = (int32_t) preparation->n_columns++;
		}
		made[i].column = (uint16_t) *column;
		made[i].cut = (uint8_t) cuts_below(input->cuts, input->n_cuts, nodes[i].threshold);
	}
}

/* The codes that go left, a bit each. */
static void
fill_set(const AgTrees *trees, const AgTreeNode *node, uint8_t *set)
{
	memset(set, 0, AG_ROWS_SET_BYTES);
	for (uint32_t c = 0; c < 256; c++)
	{
		double x = c == AG_ROWS_MISSING ? (double) NAN : c == AG_ROWS_UNSEEN ? -1.0 : (double) c;

		if (ag_node_goes_left(trees, node, x))
			set[c / 8] |= (uint8_t) (1u << c % 8);
	}
}

/* --- shallow trees */

/* Do both nodes ask the same? */
static bool
are_same(const AgTrees *trees, const AgTreeNode *a, const AgTreeNode *b)
{
	if (a->feature != b->feature || a->flags != b->flags)
		return false;
	if (is_number(a))
		return a->threshold == b->threshold;
	return a->n_set == b->n_set &&
		   memcmp(trees->sets + a->set, trees->sets + b->set, a->n_set * sizeof *trees->sets) == 0;
}

/* Has it all nodes of its depth, and do those of a level ask the same? Level by level: nodes[first of the level] is its example. */
static bool
is_symmetric(const AgTrees *trees, const AgTree *tree)
{
	const AgTreeNode *nodes = trees->nodes + tree->first_node;
	int32_t level[1 << (AG_ROWS_FULL_DEPTH - 1)] = {0};

	if (tree->n_leaves != 1u << tree->depth)
		return false;
	for (uint32_t d = 0; d < tree->depth; d++)
	{
		int32_t next[1 << AG_ROWS_FULL_DEPTH];

		for (uint32_t k = 0; k < 1u << d; k++)
		{
			if (level[k] < 0 || !are_same(trees, &nodes[level[0]], &nodes[level[k]]))
				return false;
			next[2 * k] = nodes[level[k]].left;
			next[2 * k + 1] = nodes[level[k]].right;
		}
		if (d + 1 < tree->depth)
			memcpy(level, next, (2u << d) * sizeof *next);
	}
	return true;
}

static AgRowsForm
form_of(const AgTrees *trees, const AgTree *tree)
{
	const AgTreeNode *nodes = trees->nodes + tree->first_node;

	if (tree->depth < 1 || tree->depth > AG_ROWS_FULL_DEPTH)
		return AG_ROWS_MASKS;
	if (is_symmetric(trees, tree))
		return AG_ROWS_SYMMETRIC;
	if (1u << tree->depth > 2 * tree->n_leaves) /* more would be added than is there */
		return AG_ROWS_MASKS;
	for (uint32_t i = 0; i < tree->n_nodes; i++)
		if (!is_number(&nodes[i])) /* each costs as much as a row's walk */
			return AG_ROWS_MASKS;
	return AG_ROWS_FULL;
}

static uint32_t
n_cuts_of(const AgRowsTree *form)
{
	if (form->form == AG_ROWS_MASKS)
		return 0;
	return form->form == AG_ROWS_SYMMETRIC ? form->depth : (1u << form->depth) - 1;
}

static uint32_t
n_leaves_of(const AgRowsTree *form)
{
	uint32_t n = 1u << form->depth;

	return form->form == AG_ROWS_MASKS ? 0 : n > AG_ROWS_LEAST_LEAVES ? n : AG_ROWS_LEAST_LEAVES;
}

/* What each place of a full tree is: a node of the tree, or the leaf (~) that all below it are. */
static void
fill_full(Preparation *preparation, const AgTree *tree, const AgRowsTree *form)
{
	const AgTreeNode *nodes = preparation->trees->nodes + tree->first_node;
	const AgRowsNode *made = preparation->nodes + tree->first_node;
	const double *values = preparation->trees->leaves + tree->first_leaf;
	AgRowsCut *cuts = preparation->cuts + form->first_cut;
	double *leaves = preparation->leaves + form->first_leaf;
	int32_t places[1 << AG_ROWS_FULL_DEPTH] = {0};

	for (uint32_t level = 0; level < form->depth; level++)
		for (uint32_t k = 1u << level; k-- > 0;)
		{
			int32_t at = places[k];

			places[2 * k] = at < 0 ? at : nodes[at].right;
			places[2 * k + 1] = at < 0 ? at : nodes[at].left;
			if (form->form == AG_ROWS_FULL && at >= 0)
				cuts[(1u << level) - 1 + k] =
					(AgRowsCut){made[at].column, made[at].cut, AG_ROWS_NUMBER};
			else if (form->form == AG_ROWS_SYMMETRIC && k == 0)
				cuts[level] = (AgRowsCut){made[at].column, made[at].cut, made[at].ask};
		}
	for (uint32_t k = 0; k < 1u << form->depth; k++)
		leaves[k] = values[~places[k]];
}

/* The sets that a tree asks for, counted, and filled in where there is room already. */
static uint64_t
make_sets(const Preparation *preparation, uint32_t t)
{
	const AgTrees *trees = preparation->trees;
	const AgTree *tree = &trees->trees[t];
	const AgTreeNode *nodes = trees->nodes + tree->first_node;
	const AgRowsNode *made = preparation->nodes + tree->first_node;
	const AgRowsTree *form = &preparation->forms[t];
	bool is_by_level = form->form == AG_ROWS_SYMMETRIC;
	uint64_t n = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < (is_by_level ? tree->depth : tree->n_nodes); i++)
	{
		if (!is_by_level)
			at = i;
		if (made[at].ask == AG_ROWS_SET)
		{
			if (preparation->sets != NULL)
				fill_set(trees, &nodes[at],
						 preparation->sets + (form->first_set + n) * AG_ROWS_SET_BYTES);
			n++;
		}
		if (is_by_level && nodes[at].left >= 0)
			at = (uint32_t) nodes[at].left;
	}
	return n;
}

static AgStatus
make_full(const AgContext *ctx, Preparation *preparation, AgTreeRows *rows)
{
	AgTrees *trees = preparation->trees;

	preparation->forms = ag_arena_alloc(&trees->arena, trees->n_trees, sizeof(AgRowsTree));
	if (preparation->forms == NULL)
		return ag_mem_error(ctx->mem, trees->n_trees * sizeof(AgRowsTree), ctx->error);
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		AgRowsTree *form = &preparation->forms[t];

		form->form = form_of(trees, &trees->trees[t]);
		form->depth = trees->trees[t].depth;
		form->first_cut = rows->n_cuts;
		form->first_leaf = rows->n_leaves;
		form->first_set = rows->n_sets;
		if (trees->trees[t].n_nodes <= AG_ROWS_MAX_NODES)
			rows->n_sets += make_sets(preparation, t);
		rows->n_cuts += n_cuts_of(form);
		rows->n_leaves += n_leaves_of(form);
	}
	preparation->cuts = ag_arena_alloc(&trees->arena, (size_t) rows->n_cuts, sizeof(AgRowsCut));
	preparation->leaves = ag_arena_alloc(&trees->arena, (size_t) rows->n_leaves, sizeof(double));
	preparation->sets = ag_arena_alloc(&trees->arena, (size_t) rows->n_sets, AG_ROWS_SET_BYTES);
	if (preparation->cuts == NULL || preparation->leaves == NULL || preparation->sets == NULL)
		return ag_mem_error(ctx->mem, (size_t) rows->n_leaves * sizeof(double), ctx->error);
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (trees->trees[t].n_nodes <= AG_ROWS_MAX_NODES)
			make_sets(preparation, t);
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (preparation->forms[t].form != AG_ROWS_MASKS)
			fill_full(preparation, &trees->trees[t], &preparation->forms[t]);
	rows->trees = preparation->forms;
	rows->sets = preparation->sets;
	rows->cuts = preparation->cuts;
	rows->leaves = preparation->leaves;
	return AG_OK;
}

static AgStatus
prepare(const AgContext *ctx, Preparation *preparation)
{
	AgTrees *trees = preparation->trees;
	AgTreeRows *rows = ag_arena_alloc(&trees->arena, 1, sizeof *rows);
	AgRowsNode *nodes = ag_arena_alloc(&trees->arena, (size_t) trees->n_nodes + 1, sizeof *nodes);

	preparation->inputs =
		ag_arena_alloc(&trees->arena, (size_t) trees->n_features + 1, sizeof(AgRowsInput));
	preparation->codes =
		ag_arena_alloc(&trees->arena, (size_t) trees->n_features + 1, sizeof(AgRowsCode));
	if (rows == NULL || nodes == NULL || preparation->inputs == NULL || preparation->codes == NULL)
		return ag_mem_error(ctx->mem, (size_t) trees->n_nodes * sizeof *nodes, ctx->error);
	preparation->nodes = nodes;
	find_codes(preparation);
	gather_thresholds(preparation);
	AG_TRY(make_inputs(ctx, preparation));
	for (uint32_t t = 0; preparation->fits && t < trees->n_trees; t++)
		if (trees->trees[t].n_nodes <= AG_ROWS_MAX_NODES)
			make_nodes(preparation, &trees->trees[t], nodes + trees->trees[t].first_node);
	if (!preparation->fits)
		return AG_OK;
	AG_TRY(make_full(ctx, preparation, rows));
	rows->n_inputs = preparation->n_inputs;
	rows->inputs = preparation->inputs;
	rows->n_codes = preparation->n_codes;
	rows->codes = preparation->codes;
	rows->nodes = nodes;
	for (uint64_t i = 0; i < trees->n_nodes; i++)
		rows->has_categories |= !is_number(&trees->nodes[i]);
	rows->level = ag_cpu_level();
	trees->rows = rows;
	return AG_OK;
}

/* Are the trees of a size at which masks are faster than walks? */
static bool
is_size_right(const AgTrees *trees)
{
	uint32_t n_large = 0;

	if (ag_cpu_level() == AG_CPU_PORTABLE)
		return trees->n_leaves / trees->n_trees <= MOST_MEAN_LEAVES;
	for (uint32_t t = 0; t < trees->n_trees; t++)
		n_large += trees->trees[t].n_nodes > AG_ROWS_MAX_NODES;
	return n_large <= trees->n_trees / LEAST_SHARE;
}

AgStatus
ag_trees_prepare_rows(const AgContext *ctx, AgTrees *trees)
{
	Preparation preparation = {.trees = trees, .fits = true};
	size_t n_features = (size_t) trees->n_features + trees->n_combos;
	AgStatus status;

	if (trees->has_layout || trees->rows != NULL || trees->n_trees < LEAST_TREES ||
		n_features > MOST_FEATURES || trees->n_combos > AG_ROWS_MAX_COMBOS || !is_size_right(trees))
		return AG_OK;
	AG_GO(ag_get_zeroed(ctx, n_features, sizeof(uint32_t), &preparation.input_of));
	AG_GO(ag_get_zeroed(ctx, n_features + 1, sizeof(uint64_t), &preparation.first));
	AG_GO(ag_get(ctx, (size_t) trees->n_nodes, sizeof(double), &preparation.thresholds));
	AG_GO(ag_get(ctx, n_features, sizeof(int32_t), &preparation.code_of));
	AG_GO(prepare(ctx, &preparation));
done:
	ag_mem_free(ctx->mem, preparation.code_of);
	ag_mem_free(ctx->mem, preparation.thresholds);
	ag_mem_free(ctx->mem, preparation.first);
	ag_mem_free(ctx->mem, preparation.input_of);
	return status;
}

/* --- scoring */

static void
add_tree(const AgBlockOps *ops, const AgBlock *block, uint32_t t, double *scores)
{
	const AgTrees *trees = block->trees;
	const AgTree *tree = &trees->trees[t];
	const AgRowsTree *form = &trees->rows->trees[t];
	bool is_plain = trees->n_outputs == 1 && trees->vectors == NULL;
	const double *leaves = trees->leaves + tree->first_leaf;
	uint64_t reached[2 * AG_ROWS_MAX_NODES + 1]; /* nodes, then leaves */
	uint8_t leaf_of[AG_ROWS_BLOCK];

	if (form->form != AG_ROWS_MASKS && is_plain)
	{
		ops->add_leaves(block, t, scores);
		return;
	}
	if (form->form != AG_ROWS_MASKS)
	{
		ops->find_leaves(block, t, leaf_of);
		leaves = trees->rows->leaves + form->first_leaf;
	}
	else
	{
		reached[0] = ~UINT64_C(0) >> (AG_ROWS_BLOCK - block->n_rows);
		ops->reach(block, t, reached);
		ops->number_leaves(reached + tree->n_nodes, tree->n_leaves, leaf_of);
	}
	if (is_plain)
		for (uint32_t i = 0; i < block->n_rows; i++)
			scores[i] += leaves[leaf_of[i]];
	else
		for (uint32_t i = 0; i < block->n_rows; i++)
			ag_leaf_add(trees, tree->output, leaves[leaf_of[i]],
						scores + (size_t) i * trees->n_outputs);
}

static void
score_block(const AgTrees *trees, uint32_t n_rows, const double *features, double *scores)
{
	uint8_t columns[AG_ROWS_MAX_COLUMNS][AG_ROWS_BLOCK] __attribute__((aligned(64)));
	uint32_t codes[AG_ROWS_MAX_COMBOS][AG_ROWS_BLOCK];
	const AgBlockOps *ops = ag_block_ops(trees->rows->level);
	const AgBlock block = {trees, n_rows, features, (const uint8_t(*)[AG_ROWS_BLOCK]) columns,
						   (const uint32_t(*)[AG_ROWS_BLOCK]) codes};

	for (uint32_t c = 0; c < trees->n_combos; c++)
		for (uint32_t i = 0; i < n_rows; i++)
			codes[c][i] = ag_combo_code(trees, c, features + (size_t) i * trees->n_features);
	for (uint32_t j = 0; j < trees->rows->n_inputs; j++)
		ops->fill(&trees->rows->inputs[j], n_rows, trees->n_features, features, columns);
	for (uint32_t j = 0; j < trees->rows->n_codes && ops->code != NULL; j++)
		ops->code(&trees->rows->codes[j], n_rows, trees->n_features, features, columns);
	for (uint32_t i = 0; i < n_rows; i++)
		memcpy(scores + (size_t) i * trees->n_outputs, trees->base,
			   trees->n_outputs * sizeof(double));
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		const AgTree *tree = &trees->trees[t];

		if (tree->n_nodes <= AG_ROWS_MAX_NODES)
		{
			add_tree(ops, &block, t, scores);
			continue;
		}
		for (uint32_t i = 0; i < n_rows; i++)
			ag_leaf_add(trees, tree->output,
						ag_tree_value(trees, tree, features + (size_t) i * trees->n_features),
						scores + (size_t) i * trees->n_outputs);
	}
}

void
ag_trees_score_rows(const AgTrees *trees, int64_t n_rows, const double *features, double *scores)
{
	if (trees->rows == NULL && trees->plan != NULL && n_rows >= AG_PLAN_GROUP)
	{
		ag_plan_score_rows(trees, n_rows, features, scores);
		return;
	}
	for (int64_t at = 0; at < n_rows; at += AG_ROWS_BLOCK)
	{
		int64_t n = n_rows - at < AG_ROWS_BLOCK ? n_rows - at : AG_ROWS_BLOCK;
		const double *block = features + (size_t) at * trees->n_features;
		double *block_scores = scores + (size_t) at * trees->n_outputs;

		/* A short block costs as much as a full one: below a quarter rows go alone. */
		if (trees->rows != NULL && n >= AG_ROWS_BLOCK / 4)
			score_block(trees, (uint32_t) n, block, block_scores);
		else
			for (int64_t i = 0; i < n; i++)
				ag_trees_score(trees, block + (size_t) i * trees->n_features,
							   block_scores + (size_t) i * trees->n_outputs);
	}
}
