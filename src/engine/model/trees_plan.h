/*
 * trees_plan.h - the same trees laid out for speed. Private to trees*.c.
 *
 * One row walks GROUP trees at a time, one level of all of them after the other: the loads of eight independent walks
 * overlap, and no branch depends on a comparison. For that
 *
 *  - nodes are 16 bytes and children neighbours, so that a step is: left + (x > threshold);
 *  - leaves are nodes whose step leads to themselves, so that short walks wait for the longest;
 *  - NaN is no case of its own: a row is first copied into slots, one a (feature, side of the missing), and where the
 *    missing go left NaN becomes -infinity, which is below every threshold.
 *
 * The leaves found are added in the trees' order: the same bytes as the plain walk.
 */
#ifndef AG_TREES_PLAN_H
#define AG_TREES_PLAN_H

#include "engine/model/trees.h"

#define AG_PLAN_GROUP 8
#define AG_PLAN_MAX_SLOTS 1024 /* on the stack of a prediction */

/* Bits of AgPlanNode.slot beside the slot's number; only of category nodes. */
#define AG_PLAN_CATEGORY 0x80000000u
#define AG_PLAN_MISSING_LEFT 0x40000000u
#define AG_PLAN_UNSEEN_LEFT 0x20000000u
#define AG_PLAN_SLOT 0x1fffffffu

typedef struct AgPlanNode
{
	union
	{
		double threshold; /* of a leaf: its value */
		struct
		{
			uint32_t first, n; /* words in `sets` */
		} set;
	};
	uint32_t slot;
	uint32_t left; /* right is the next one; of a leaf: itself */
} AgPlanNode;

/* Where a slot's number comes from. */
typedef struct AgPlanSlot
{
	uint32_t feature;
	bool is_category;
	bool missing_left; /* number: NaN becomes -infinity */
} AgPlanSlot;

typedef struct AgPlanTree
{
	uint32_t root;
	uint32_t output;
} AgPlanTree;

typedef struct AgTreePlan
{
	uint32_t n_slots; /* slot 0 is the leaves': -infinity */
	const AgPlanSlot *slots;
	const AgPlanTree *trees; /* filled up to whole groups */
	const uint32_t *depths;  /* [groups] of the deepest tree */
	const AgPlanNode *nodes;
	bool has_categories;
} AgTreePlan;

/* ag_trees_score by the plan. */
void ag_plan_score(const AgTrees *trees, const double *features, double *scores);
/* ag_trees_score_rows by it, for trees too large for masks (trees_rows.h). */
void ag_plan_score_rows(const AgTrees *trees, int64_t n_rows, const double *features,
						double *scores);

#endif
