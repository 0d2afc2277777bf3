/*
 * children.cuh - the children of the nodes that a step splits, as they follow from their parent.
 */
#ifndef AGK_CHILDREN_CUH
#define AGK_CHILDREN_CUH

#include "engine/base/rng.h"
#include "engine/model/split_maths.h"
#include "kernels/block.cuh"

static __device__ inline double
agk_leaf_output(const AgDeviceRules &rules, double g, double h, double l2, int64_t n_rows,
				double parent_output)
{
	return ag_leaf_best(rules.l1, rules.max_step, rules.path_smooth, g, h, l2, n_rows,
						parent_output);
}

static __device__ inline bool
agk_can_split(const AgkGrowth &growth, int64_t n_rows, int64_t sum_h, uint32_t depth)
{
	return (int64_t) depth < growth.max_depth && n_rows >= 2 * growth.rules.min_rows &&
		   (double) sum_h >= 2.0 * growth.rules.min_h && sum_h > 0;
}

/* One node that this step searches, in short. */
struct AgkChild
{
	int64_t begin, n_rows, sum_g, sum_h;
	double output;
	double low, high; /* with monotone */
	uint64_t key;
	uint32_t depth;
	int32_t list;
	bool can_split;
};

/* With monotone: a child's value within its parent's bounds, and its own, which lie half way to its sibling: set_bounds of model/grow.c. */
static __device__ inline void
agk_bound_child(const AgkGrowth &growth, const AgkNode *node, int64_t sibling_rows, bool is_right,
				AgkChild *child)
{
	const AgDeviceSplit *split = &node->split;
	int direction = split->is_category ? 0 : growth.monotone[split->feature];
	double other, middle;

	child->low = node->low;
	child->high = node->high;
	child->output = ag_within(child->output, node->low, node->high);
	if (direction == 0)
		return;
	other = agk_leaf_output(growth.rules, (double) (node->sum_g - child->sum_g),
							(double) (node->sum_h - child->sum_h), growth.rules.l2, sibling_rows,
							node->output);
	other = ag_within(other, node->low, node->high);
	middle = is_right ? other * 0.5 + child->output * 0.5 : child->output * 0.5 + other * 0.5;
	if ((direction > 0) != is_right)
		child->high = middle;
	else
		child->low = middle;
}

/* The child of expansion e on one side. A step that opens the root has the root as its only child. */
static __device__ inline AgkChild
agk_child(const AgkGrowth &growth, int e, bool is_right)
{
	const AgkNode *node = growth.nodes + growth.expand[e];
	const AgDeviceSplit *split = &node->split;
	int64_t n_left = growth.n_left[e];
	AgkChild child;

	if (growth.is_root)
	{
		child.begin = node->begin;
		child.n_rows = is_right ? 0 : node->n_rows;
		child.sum_g = node->sum_g;
		child.sum_h = node->sum_h;
		child.output = node->output;
		child.low = node->low;
		child.high = node->high;
		child.key = node->key;
		child.depth = node->depth;
		child.list = node->list;
		child.can_split = !is_right && (growth.is_symmetric ||
										agk_can_split(growth, node->n_rows, node->sum_h, 0));
		return child;
	}
	child.begin = node->begin + (is_right ? n_left : 0);
	child.n_rows = is_right ? node->n_rows - n_left : n_left;
	child.list = 1 - node->list;
	child.depth = node->depth + 1;
	if (growth.is_symmetric)
	{
		child.sum_g = child.sum_h = 0;
		child.output = child.low = child.high = 0.0;
		child.key = 0;
		child.can_split = growth.state->wants_search != 0 && child.n_rows > 0;
		return child;
	}
	child.sum_g = is_right ? node->sum_g - split->left_g : split->left_g;
	child.sum_h = is_right ? node->sum_h - split->left_h : split->left_h;
	child.output =
		agk_leaf_output(growth.rules, (double) child.sum_g, (double) child.sum_h,
						growth.rules.l2 + (split->has_cat_l2 ? growth.rules.cat_l2 : 0.0),
						child.n_rows, node->output);
	child.low = child.high = 0.0;
	if (growth.monotone != nullptr)
		agk_bound_child(growth, node, node->n_rows - child.n_rows, is_right, &child);
	child.key = ag_key(node->key, is_right);
	child.can_split = growth.state->wants_search != 0 &&
					  agk_can_split(growth, child.n_rows, child.sum_h, child.depth);
	return child;
}

/* Whose histogram is built from rows: the smaller one's; the other's is what is left of the parent's. */
static __device__ inline bool
agk_small_is_right(const AgkGrowth &growth, int e)
{
	return !growth.is_root &&
		   growth.n_left[e] > growth.nodes[growth.expand[e]].n_rows - growth.n_left[e];
}

#endif
