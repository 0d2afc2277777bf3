/*
 * search.cuh - what the searches over numbers and over categories share.
 */
#ifndef AGK_SEARCH_CUH
#define AGK_SEARCH_CUH

#include "engine/model/level_maths.h"
#include "kernels/children.cuh"

/* With monotone: what values a child may have, and which way they may go with the feature in work. */
struct AgkBounds
{
	double low, high;
	int direction;
	bool is_bounded;
};

static __device__ inline AgkBounds
agk_bounds(const AgkGrowth &growth, const AgkChild &child, int f)
{
	AgkBounds bounds;

	bounds.low = child.low;
	bounds.high = child.high;
	bounds.is_bounded = growth.monotone != nullptr;
	bounds.direction = bounds.is_bounded ? growth.monotone[f] : 0;
	return bounds;
}

/* What a cut's two sides lower the loss by: ag_split_score. */
static __device__ inline double
agk_merit(const AgDeviceRules &rules, const AgkBounds &bounds, int64_t sum_g, int64_t sum_h,
		  int64_t n_rows, double output, double l2, int64_t left_g, int64_t left_h,
		  int64_t left_rows)
{
	double gl = (double) left_g, gr = (double) (sum_g - left_g);
	double hl = (double) left_h, hr = (double) (sum_h - left_h);

	if (rules.is_plain)
		return ag_cut_merit(gl, hl, gr, hr, l2);
	if (bounds.is_bounded)
	{
		double left, right;
		double merit =
			ag_bounded_merit(rules.l1, rules.max_step, rules.path_smooth, gl, hl, l2, left_rows,
							 output, bounds.low, bounds.high, &left) +
			ag_bounded_merit(rules.l1, rules.max_step, rules.path_smooth, gr, hr, l2,
							 n_rows - left_rows, output, bounds.low, bounds.high, &right);

		return ag_is_wrong_way(bounds.direction, left, right) ? -(double) INFINITY : merit;
	}
	return ag_leaf_merit(rules.l1, rules.max_step, rules.path_smooth, gl, hl, l2, left_rows,
						 output) +
		   ag_leaf_merit(rules.l1, rules.max_step, rules.path_smooth, gr, hr, l2,
						 n_rows - left_rows, output);
}

/* What a cut's merit must pass: ag_split_bar. */
static __device__ inline double
agk_bar(const AgDeviceRules &rules, const AgkBounds &bounds, int64_t sum_g, int64_t sum_h,
		int64_t n_rows, double output)
{
	double score, bounded;

	if (!((double) sum_h + rules.l2 > 0.0))
		return (double) INFINITY;
	if (bounds.is_bounded)
		score = ag_bounded_merit(rules.l1, rules.max_step, rules.path_smooth, (double) sum_g,
								 (double) sum_h, rules.l2, n_rows, output, bounds.low, bounds.high,
								 &bounded);
	else
		score = ag_leaf_merit(rules.l1, rules.max_step, rules.path_smooth, (double) sum_g,
							  (double) sum_h, rules.l2, n_rows, output);
	return score + fabs(score) * AG_SCORE_ROUNDING + rules.min_gain;
}

/* What a child's features are compared by, from the gain of the best cut of one: ag_split_search. */
static __device__ inline double
agk_rank(const AgDeviceRules &rules, double gain, double bar, uint64_t key, int f)
{
	if (!(rules.noise > 0.0))
		return gain;
	return ag_gain_with_noise(gain, bar, rules.roots_gain, rules.noise, key, (uint64_t) f);
}

/* The sum of the values of the warp's lanes before this one. */
static __device__ inline int64_t
agk_warp_before(int64_t value)
{
	int64_t sum = value;

	for (int delta = 1; delta < 32; delta *= 2)
	{
		int64_t other = __shfl_up_sync(~0u, sum, delta);

		if (static_cast<int>(threadIdx.x % 32) >= delta)
			sum += other;
	}
	return sum - value;
}

/* May child `index` of the step be split on feature f? */
static __device__ inline bool
agk_may_use(const AgkGrowth &growth, int index, int f)
{
	if (growth.may_use == nullptr)
		return growth.is_used[f] != 0;
	return growth.may_use[(int64_t) index * growth.matrix.n_features + f] != 0;
}

/* Children of the step. */
static __device__ inline int
agk_n_children(const AgkGrowth &growth)
{
	return growth.is_root ? growth.state->n_expand : 2 * growth.state->n_expand;
}

/* The histogram of a child, once the step's were subtracted. */
static __device__ inline const int64_t *
agk_table(const AgkGrowth &growth, int index)
{
	int e = index / 2;
	bool is_small = agk_small_is_right(growth, e) == (index % 2 != 0);
	int32_t slot = is_small ? growth.child_slot[e] : growth.nodes[growth.expand[e]].slot;

	return growth.slots + slot * 2 * (int64_t) growth.matrix.n_cells;
}

/* draws.cu: which features each child may be split on, where they are drawn by level or node. */
AgDeviceStatus agk_draw_features(AgDevice *device, const AgkGrowth *growth);
/* categories.cu */
AgDeviceStatus agk_search_categories(AgDevice *device, const AgkGrowth *growth);

#endif
