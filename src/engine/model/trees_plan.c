#include <math.h>

#include "engine/model/trees_plan.h"
#include "engine/model/trees_walk.h"

/* Below this the copy into slots costs more than it saves. */
#define LEAST_TREES AG_PLAN_GROUP

/* The width that a header states isn't bounded by its bytes, so what it may cost is bounded here. */
#define MOST_FEATURES 65536

/* Codes of a category slot that are no level. */
#define CODE_MISSING UINT32_MAX
#define CODE_UNSEEN (UINT32_MAX - 1)

/* What a layout carries. */
typedef struct Layout
{
	const AgTrees *trees;
	uint32_t *slot_of; /* [n_features][2]: slot of (feature, missing left), 0: none yet */
	AgPlanSlot *slots;
	uint32_t n_slots;
	AgPlanNode *nodes;
	uint32_t *place; /* [nodes of a tree] where its pair of children lies */
	bool has_categories;
	bool fits;
} Layout;

/* The slot that a node reads; one that is new is entered. Categories share the slot of their feature. */
static uint32_t
slot_for(Layout *layout, const AgTreeNode *node)
{
	bool is_category = (node->flags & AG_NODE_CATEGORY) != 0;
	bool missing_left = !is_category && (node->flags & AG_NODE_MISSING_LEFT) != 0;
	uint32_t *slot = &layout->slot_of[2 * (size_t) node->feature + missing_left];

	/* A feature may be a category in one node and a number in another only in a forged model: then there's no plan. */
	if (*slot != 0 && layout->slots[*slot].is_category != is_category)
		layout->fits = false;
	if (*slot == 0)
	{
		if (layout->n_slots == AG_PLAN_MAX_SLOTS)
		{
			layout->fits = false;
			return 0;
		}
		*slot = layout->n_slots++;
		layout->slots[*slot].feature = node->feature;
		layout->slots[*slot].is_category = is_category;
		layout->slots[*slot].missing_left = missing_left;
	}
	return *slot;
}

static void
lay_node(Layout *layout, const AgTreeNode *node, AgPlanNode *laid, uint32_t left)
{
	laid->slot = slot_for(layout, node);
	laid->left = left;
	if ((node->flags & AG_NODE_CATEGORY) == 0)
	{
		laid->threshold = node->threshold;
		return;
	}
	layout->has_categories = true;
	laid->set.first = node->set;
	laid->set.n = node->n_set;
	laid->slot |= AG_PLAN_CATEGORY;
	if (node->flags & AG_NODE_MISSING_LEFT)
		laid->slot |= AG_PLAN_MISSING_LEFT;
	if (node->flags & AG_NODE_UNSEEN_LEFT)
		laid->slot |= AG_PLAN_UNSEEN_LEFT;
}

static void
lay_leaf(Layout *layout, double value, uint32_t at)
{
	layout->nodes[at].threshold = value;
	layout->nodes[at].slot = 0;
	layout->nodes[at].left = at;
}

/*
 * Lays a tree from place `at` on, root first and then pair by pair: the children of the i-th node at the i-th pair.
 * Children lie behind their parent in AgTrees, so a node's own place is known when its turn comes.
 */
static void
lay_tree(Layout *layout, const AgTree *tree, uint32_t at)
{
	const AgTreeNode *nodes = layout->trees->nodes + tree->first_node;
	const double *leaves = layout->trees->leaves + tree->first_leaf;

	if (tree->n_nodes == 0)
		lay_leaf(layout, leaves[0], at);
	else
		layout->place[0] = at;
	for (uint32_t i = 0; i < tree->n_nodes; i++)
	{
		uint32_t pair = at + 1 + 2 * i;
		const int32_t children[2] = {nodes[i].left, nodes[i].right};

		lay_node(layout, &nodes[i], &layout->nodes[layout->place[i]], pair);
		for (uint32_t side = 0; side < 2; side++)
			if (children[side] < 0)
				lay_leaf(layout, leaves[~children[side]], pair + side);
			else
				layout->place[children[side]] = pair + side;
	}
}

static AgStatus
no_room(const AgContext *ctx, uint64_t n_nodes)
{
	return ag_mem_error(ctx->mem, (size_t) n_nodes * sizeof(AgPlanNode), ctx->error);
}

/* The plan's arrays, and the tree by tree layout into them. */
static AgStatus
lay_trees(const AgContext *ctx, AgTrees *trees, Layout *layout, uint64_t n_nodes)
{
	uint32_t n_groups = trees->n_trees / AG_PLAN_GROUP + (trees->n_trees % AG_PLAN_GROUP != 0);
	AgTreePlan *plan = ag_arena_alloc(&trees->arena, 1, sizeof *plan);
	AgPlanTree *laid = ag_arena_alloc(&trees->arena, n_groups, AG_PLAN_GROUP * sizeof *laid);
	uint32_t *depths = ag_arena_alloc(&trees->arena, n_groups, sizeof *depths);
	uint32_t at = 1; /* place 0 is the leaf of the trees that only fill the last group */

	layout->slots = ag_arena_alloc(&trees->arena, AG_PLAN_MAX_SLOTS, sizeof *layout->slots);
	layout->nodes = ag_arena_alloc(&trees->arena, (size_t) n_nodes, sizeof *layout->nodes);
	if (plan == NULL || laid == NULL || depths == NULL || layout->slots == NULL ||
		layout->nodes == NULL)
		return no_room(ctx, n_nodes);
	lay_leaf(layout, 0.0, 0);
	for (uint32_t t = 0; t < trees->n_trees; t++)
	{
		const AgTree *tree = &trees->trees[t];

		laid[t].root = at;
		laid[t].output = tree->output;
		if (tree->depth > depths[t / AG_PLAN_GROUP])
			depths[t / AG_PLAN_GROUP] = tree->depth;
		lay_tree(layout, tree, at);
		at += tree->n_nodes + tree->n_leaves;
	}
	plan->n_slots = layout->n_slots;
	plan->slots = layout->slots;
	plan->trees = laid;
	plan->depths = depths;
	plan->nodes = layout->nodes;
	plan->has_categories = layout->has_categories;
	trees->plan = layout->fits ? plan : NULL;
	return AG_OK;
}

/* No plan where it wouldn't pay (few trees) or fit (too many slots, features or nodes). */
AgStatus
ag_trees_lay_out(const AgContext *ctx, AgTrees *trees)
{
	Layout layout = {.trees = trees, .n_slots = 1, .fits = true};
	uint64_t n_nodes = trees->n_nodes + trees->n_leaves + 1;
	uint32_t n_largest = 1;
	AgStatus status;

	trees->plan = NULL;
	if (trees->n_trees < LEAST_TREES || trees->n_features > MOST_FEATURES ||
		trees->n_combos > MOST_FEATURES || n_nodes > UINT32_MAX)
		return AG_OK;
	for (uint32_t t = 0; t < trees->n_trees; t++)
		if (trees->trees[t].n_nodes > n_largest)
			n_largest = trees->trees[t].n_nodes;
	AG_GO(ag_get(ctx, n_largest, sizeof *layout.place, &layout.place));
	AG_GO(ag_get_zeroed(ctx, (size_t) trees->n_features + trees->n_combos,
						2 * sizeof *layout.slot_of, &layout.slot_of));
	AG_GO(lay_trees(ctx, trees, &layout, n_nodes));
done:
	ag_mem_free(ctx->mem, layout.slot_of);
	ag_mem_free(ctx->mem, layout.place);
	return status;
}

static uint32_t
code_of(double x)
{
	if (x != x)
		return CODE_MISSING;
	return x >= 0.0 && x < (double) CODE_UNSEEN ? (uint32_t) x : CODE_UNSEEN;
}

static bool
in_set(const uint64_t *sets, const AgPlanNode *node, uint32_t code)
{
	if (code / 64 < node->set.n)
		return sets[node->set.first + code / 64] >> (code % 64) & 1;
	return (node->slot & (code == CODE_MISSING ? AG_PLAN_MISSING_LEFT : AG_PLAN_UNSEEN_LEFT)) != 0;
}

/* The group's walks, in step. Inlined twice, so that models of numbers alone don't ask for categories. */
static inline __attribute__((always_inline)) void
walk_group(const AgTrees *trees, uint32_t group, const double *numbers, const uint32_t *codes,
		   bool has_categories, uint32_t *at)
{
	const AgTreePlan *plan = trees->plan;
	const AgPlanTree *laid = plan->trees + (size_t) group * AG_PLAN_GROUP;

	for (int k = 0; k < AG_PLAN_GROUP; k++)
		at[k] = laid[k].root;
	for (uint32_t level = plan->depths[group]; level > 0; level--)
		for (int k = 0; k < AG_PLAN_GROUP; k++)
		{
			const AgPlanNode *node = &plan->nodes[at[k]];

			if (has_categories && (node->slot & AG_PLAN_CATEGORY) != 0)
				at[k] = node->left + !in_set(trees->sets, node, codes[node->slot & AG_PLAN_SLOT]);
			else
				at[k] = node->left + !(numbers[node->slot] <= node->threshold);
		}
}

static inline __attribute__((always_inline)) void
score_groups(const AgTrees *trees, const double *numbers, const uint32_t *codes,
			 bool has_categories, double *scores)
{
	const AgTreePlan *plan = trees->plan;

	for (uint32_t t = 0; t < trees->n_trees; t += AG_PLAN_GROUP)
	{
		uint32_t at[AG_PLAN_GROUP];
		uint32_t n = trees->n_trees - t < AG_PLAN_GROUP ? trees->n_trees - t : AG_PLAN_GROUP;

		walk_group(trees, t / AG_PLAN_GROUP, numbers, codes, has_categories, at);
		for (uint32_t k = 0; k < n; k++)
			ag_leaf_add(trees, plan->trees[t + k].output, plan->nodes[at[k]].threshold, scores);
	}
}

/* What a row's nodes compare: one number or code a slot. */
static void
fill_slots(const AgTrees *trees, const double *features, double *numbers, uint32_t *codes)
{
	const AgTreePlan *plan = trees->plan;

	numbers[0] = -(double) INFINITY;
	codes[0] = 0;
	for (uint32_t s = 1; s < plan->n_slots; s++)
	{
		const AgPlanSlot *slot = &plan->slots[s];
		double x;

		if (slot->feature >= trees->n_features)
		{
			codes[s] = ag_combo_code(trees, slot->feature - trees->n_features, features);
			continue;
		}
		x = features[slot->feature];
		if (slot->is_category)
			codes[s] = code_of(x);
		else
			numbers[s] = x != x && slot->missing_left ? -(double) INFINITY : x;
	}
}

void
ag_plan_score(const AgTrees *trees, const double *features, double *scores)
{
	const AgTreePlan *plan = trees->plan;
	double numbers[AG_PLAN_MAX_SLOTS];
	uint32_t codes[AG_PLAN_MAX_SLOTS];

	fill_slots(trees, features, numbers, codes);
	for (uint32_t k = 0; k < trees->n_outputs; k++)
		scores[k] = trees->base[k];
	if (plan->has_categories)
		score_groups(trees, numbers, codes, true, scores);
	else
		score_groups(trees, numbers, codes, false, scores);
}

/* --- many rows: all of them go through one tree before the next, which so is in the near caches */

#define ROWS_SLOTS (8 * AG_PLAN_MAX_SLOTS) /* of all rows of a block, on the stack: 96 KiB */
#define MOST_ROWS 256

/* AG_PLAN_GROUP rows through one tree. Most ways end well above the deepest leaf: when none moved, all have ended. */
static inline __attribute__((always_inline)) void
walk_rows(const AgTrees *trees, uint32_t t, const double *numbers, const uint32_t *codes,
		  bool has_categories, uint32_t *at)
{
	const AgTreePlan *plan = trees->plan;
	uint32_t moved = 1;

	for (int k = 0; k < AG_PLAN_GROUP; k++)
		at[k] = plan->trees[t].root;
	while (moved != 0)
	{
		moved = 0;
		for (uint32_t k = 0; k < AG_PLAN_GROUP; k++)
		{
			const AgPlanNode *node = &plan->nodes[at[k]];
			size_t row = (size_t) k * plan->n_slots;
			uint32_t next;

			if (has_categories && (node->slot & AG_PLAN_CATEGORY) != 0)
				next = node->left +
					   !in_set(trees->sets, node, codes[row + (node->slot & AG_PLAN_SLOT)]);
			else
				next = node->left + !(numbers[row + node->slot] <= node->threshold);
			moved |= next ^ at[k];
			at[k] = next;
		}
	}
}

static inline __attribute__((always_inline)) void
score_rows(const AgTrees *trees, uint32_t n_rows, const double *numbers, const uint32_t *codes,
		   bool has_categories, double *scores)
{
	const AgTreePlan *plan = trees->plan;

	for (uint32_t t = 0; t < trees->n_trees; t++)
		for (uint32_t r = 0; r < n_rows; r += AG_PLAN_GROUP)
		{
			uint32_t at[AG_PLAN_GROUP];
			uint32_t n = n_rows - r < AG_PLAN_GROUP ? n_rows - r : AG_PLAN_GROUP;

			walk_rows(trees, t, numbers + (size_t) r * plan->n_slots,
					  codes + (size_t) r * plan->n_slots, has_categories, at);
			for (uint32_t k = 0; k < n; k++)
				ag_leaf_add(trees, plan->trees[t].output, plan->nodes[at[k]].threshold,
							scores + (size_t) (r + k) * trees->n_outputs);
		}
}

/* A block; the rows that fill its last group up are copies of its last one. */
static void
score_block(const AgTrees *trees, uint32_t n_rows, const double *features, double *scores)
{
	const AgTreePlan *plan = trees->plan;
	double numbers[ROWS_SLOTS];
	uint32_t codes[ROWS_SLOTS];
	uint32_t n_filled = (n_rows + AG_PLAN_GROUP - 1) / AG_PLAN_GROUP * AG_PLAN_GROUP;

	for (uint32_t r = 0; r < n_filled; r++)
	{
		uint32_t from = r < n_rows ? r : n_rows - 1;

		fill_slots(trees, features + (size_t) from * trees->n_features,
				   numbers + (size_t) r * plan->n_slots, codes + (size_t) r * plan->n_slots);
	}
	for (uint32_t r = 0; r < n_rows; r++)
		for (uint32_t k = 0; k < trees->n_outputs; k++)
			scores[(size_t) r * trees->n_outputs + k] = trees->base[k];
	if (plan->has_categories)
		score_rows(trees, n_rows, numbers, codes, true, scores);
	else
		score_rows(trees, n_rows, numbers, codes, false, scores);
}

void
ag_plan_score_rows(const AgTrees *trees, int64_t n_rows, const double *features, double *scores)
{
	uint32_t most = ROWS_SLOTS / trees->plan->n_slots / AG_PLAN_GROUP * AG_PLAN_GROUP;

	most = most > MOST_ROWS ? MOST_ROWS : most;
	for (int64_t at = 0; at < n_rows; at += most)
		score_block(trees, n_rows - at < most ? (uint32_t) (n_rows - at) : most,
					features + (size_t) at * trees->n_features,
					scores + (size_t) at * trees->n_outputs);
}
