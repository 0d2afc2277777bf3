/*
 * trees_layout.c - the plan of trees_plan.h and the nodes of trees_rows.h as one block without addresses, for processes that have a
 * model in memory together: its tables are by far the most of a model's bytes, and what takes time to make.
 */
#include <string.h>

#include "engine/model/trees_plan.h"
#include "engine/model/trees_rows.h"

#define ALIGNMENT 64

/* In front; with the trees' own counts it says how long each array is. */
typedef struct Head
{
	uint32_t has_plan, n_slots, plan_has_categories;
	uint32_t has_rows, n_inputs, rows_have_categories;
	uint64_t n_cuts; /* of all inputs, with those behind */
	uint64_t n_full_cuts, n_full_leaves, n_sets, n_codes;
} Head;

/* Where the arrays lie. */
typedef struct Block
{
	size_t size;
	AgPlanSlot *slots;
	AgPlanTree *trees;
	uint32_t *depths;
	AgPlanNode *nodes;
	AgRowsInput *inputs; /* their cuts: NULL */
	double *cuts;        /* the inputs', one behind the other */
	AgRowsNode *rows_nodes;
	AgRowsTree *rows_trees;
	AgRowsCut *full_cuts;
	double *full_leaves;
	AgRowsCode *codes;
	uint8_t *sets;
} Block;

/* The next array; at NULL only lengths count. */
static void *
take(Block *block, char *at, uint64_t n, size_t size)
{
	size_t begin = block->size;

	block->size += ((size_t) n * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return at != NULL ? at + begin : NULL;
}

static uint32_t
n_groups(const AgTrees *trees)
{
	return trees->n_trees / AG_PLAN_GROUP + (trees->n_trees % AG_PLAN_GROUP != 0);
}

static Block
block_at(const AgTrees *trees, const Head *head, char *at)
{
	Block block = {0};

	take(&block, at, 1, sizeof *head);
	if (head->has_plan)
	{
		block.slots = take(&block, at, head->n_slots, sizeof *block.slots);
		block.trees =
			take(&block, at, (uint64_t) n_groups(trees) * AG_PLAN_GROUP, sizeof *block.trees);
		block.depths = take(&block, at, n_groups(trees), sizeof *block.depths);
		block.nodes = take(&block, at, trees->n_nodes + trees->n_leaves + 1, sizeof *block.nodes);
	}
	if (head->has_rows)
	{
		block.inputs = take(&block, at, head->n_inputs, sizeof *block.inputs);
		block.cuts = take(&block, at, head->n_cuts, sizeof *block.cuts);
		block.rows_nodes = take(&block, at, trees->n_nodes + 1, sizeof *block.rows_nodes);
		block.rows_trees = take(&block, at, trees->n_trees, sizeof *block.rows_trees);
		block.full_cuts = take(&block, at, head->n_full_cuts, sizeof *block.full_cuts);
		block.full_leaves = take(&block, at, head->n_full_leaves, sizeof *block.full_leaves);
		block.codes = take(&block, at, head->n_codes, sizeof *block.codes);
		block.sets = take(&block, at, head->n_sets, AG_ROWS_SET_BYTES);
	}
	return block;
}

static size_t
cuts_of(const AgRowsInput *input)
{
	return (size_t) input->n_cuts + AG_ROWS_CUTS_BEHIND;
}

static Head
head_of(const AgTrees *trees)
{
	Head head = {0};

	if (trees->plan != NULL)
	{
		head.has_plan = 1;
		head.n_slots = trees->plan->n_slots;
		head.plan_has_categories = trees->plan->has_categories;
	}
	if (trees->rows != NULL)
	{
		head.has_rows = 1;
		head.n_inputs = trees->rows->n_inputs;
		head.rows_have_categories = trees->rows->has_categories;
		head.n_full_cuts = trees->rows->n_cuts;
		head.n_full_leaves = trees->rows->n_leaves;
		head.n_codes = trees->rows->n_codes;
		head.n_sets = trees->rows->n_sets;
		for (uint32_t i = 0; i < head.n_inputs; i++)
			head.n_cuts += cuts_of(&trees->rows->inputs[i]);
	}
	return head;
}

size_t
ag_trees_layout_bytes(const AgTrees *trees)
{
	Head head = head_of(trees);

	return block_at(trees, &head, NULL).size;
}

void
ag_trees_layout_write(const AgTrees *trees, void *to)
{
	const AgTreePlan *plan = trees->plan;
	const AgTreeRows *rows = trees->rows;
	Head head = head_of(trees);
	Block block = block_at(trees, &head, to);
	double *cuts = block.cuts;

	memset(to, 0, block.size); /* paddings too: the same trees, the same bytes */
	memcpy(to, &head, sizeof head);
	if (plan != NULL)
	{
		memcpy(block.slots, plan->slots, plan->n_slots * sizeof *block.slots);
		memcpy(block.trees, plan->trees, n_groups(trees) * AG_PLAN_GROUP * sizeof *block.trees);
		memcpy(block.depths, plan->depths, n_groups(trees) * sizeof *block.depths);
		memcpy(block.nodes, plan->nodes,
			   (size_t) (trees->n_nodes + trees->n_leaves + 1) * sizeof *block.nodes);
	}
	for (uint32_t i = 0; i < head.n_inputs; i++)
	{
		block.inputs[i] = rows->inputs[i];
		block.inputs[i].cuts = NULL;
		memcpy(cuts, rows->inputs[i].cuts, cuts_of(&rows->inputs[i]) * sizeof *cuts);
		cuts += cuts_of(&rows->inputs[i]);
	}
	if (rows == NULL)
		return;
	memcpy(block.rows_nodes, rows->nodes, ((size_t) trees->n_nodes + 1) * sizeof *rows->nodes);
	memcpy(block.rows_trees, rows->trees, trees->n_trees * sizeof *rows->trees);
	memcpy(block.full_cuts, rows->cuts, (size_t) rows->n_cuts * sizeof *rows->cuts);
	memcpy(block.full_leaves, rows->leaves, (size_t) rows->n_leaves * sizeof *rows->leaves);
	memcpy(block.codes, rows->codes, rows->n_codes * sizeof *rows->codes);
	memcpy(block.sets, rows->sets, (size_t) rows->n_sets * AG_ROWS_SET_BYTES);
}

static AgStatus
use_rows(const AgContext *ctx, AgTrees *trees, const Head *head, const Block *block)
{
	AgTreeRows *rows = ag_arena_alloc(&trees->arena, 1, sizeof *rows);
	AgRowsInput *inputs = ag_arena_alloc(&trees->arena, head->n_inputs, sizeof *inputs);
	const double *cuts = block->cuts;

	if (rows == NULL || inputs == NULL)
		return ag_mem_error(ctx->mem, head->n_inputs * sizeof *inputs, ctx->error);
	for (uint32_t i = 0; i < head->n_inputs; i++)
	{
		inputs[i] = block->inputs[i];
		inputs[i].cuts = cuts;
		cuts += cuts_of(&inputs[i]);
	}
	rows->n_inputs = head->n_inputs;
	rows->inputs = inputs;
	rows->nodes = block->rows_nodes;
	rows->trees = block->rows_trees;
	rows->n_cuts = head->n_full_cuts;
	rows->n_leaves = head->n_full_leaves;
	rows->cuts = block->full_cuts;
	rows->leaves = block->full_leaves;
	rows->n_codes = (uint32_t) head->n_codes;
	rows->codes = block->codes;
	rows->n_sets = head->n_sets;
	rows->sets = block->sets;
	rows->has_categories = head->rows_have_categories;
	rows->level = ag_cpu_level();
	trees->rows = rows;
	return AG_OK;
}

AgStatus
ag_trees_use_layout(const AgContext *ctx, AgTrees *trees, const void *from)
{
	const Head *head = from;
	Block block = block_at(trees, head, (char *) from);
	AgTreePlan *plan;

	if (head->has_rows)
		AG_TRY(use_rows(ctx, trees, head, &block));
	if (head->has_plan)
	{
		plan = ag_arena_alloc(&trees->arena, 1, sizeof *plan);
		if (plan == NULL)
			return ag_mem_error(ctx->mem, sizeof *plan, ctx->error);
		*plan = (AgTreePlan){.n_slots = head->n_slots,
							 .slots = block.slots,
							 .trees = block.trees,
							 .depths = block.depths,
							 .nodes = block.nodes,
							 .has_categories = head->plan_has_categories};
		trees->plan = plan;
	}
	trees->has_layout = true;
	return AG_OK;
}
