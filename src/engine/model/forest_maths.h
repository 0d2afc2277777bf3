/*
 * forest_maths.h - what rows, cuts and nodes of a forest's trees are worth: for C and CUDA alike, to the last bit.
 *
 * logs[n_logs] is fixed-point n ln n; only entropy looks at it.
 */
#ifndef AG_FOREST_MATHS_H
#define AG_FOREST_MATHS_H

#include <stdbool.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"

#define AG_FOREST_BINS 256

/* Fixed-point n ln n. */
#define AG_LOGS_SCALE 16777216.0

/* Distances of one row from its node's mean are that small, so that their weighted sum fits. */
#define AG_FOREST_DISTANCE_BITS 30

/* Levels of fewer rows are ordered without regard to the target. */
#define AG_FOREST_LEVEL_ROWS 5

/* What random numbers are for: a tree's, a bag's, a node's. */
enum
{
	AG_FOREST_KEY_BAG = 1,
	AG_FOREST_KEY_ROOT = 2,
	AG_FOREST_KEY_LEFT = 3,
	AG_FOREST_KEY_RIGHT = 4,
	AG_FOREST_KEY_ROWS = 1,
	AG_FOREST_KEY_HALVES = 2,
	AG_FOREST_KEY_FEATURES = 1,
	AG_FOREST_KEY_CUT = 2
};

/* How a node's rows are added up. */
typedef enum AgForestKind
{
	AG_FOREST_PURE, /* nothing to split */
	AG_FOREST_PAIR, /* two classes of all */
	AG_FOREST_CLASSES,
	AG_FOREST_NUMBERS
} AgForestKind;

/* ---- rows: id, then class << 8 | repeats above it ---- */

AG_MATHS_FN uint32_t
ag_forest_class(uint64_t row)
{
	return (uint32_t) (row >> 40);
}

/* A row's weight in its tree. weights (by id) and factors (by class) may be NULL: all 1. */
AG_MATHS_FN int64_t
ag_forest_row_weight(uint64_t row, const uint32_t *weights, const uint32_t *factors, int shift)
{
	uint64_t weight = row >> 32 & 255u;

	if (weights == NULL && factors == NULL)
		return (int64_t) weight;
	if (weights != NULL)
		weight *= weights[(uint32_t) row];
	if (factors != NULL)
		weight *= factors[ag_forest_class(row)];
	weight >>= shift;
	return weight > 0 ? (int64_t) weight : 1;
}

/*
 * class_weight: a row of the rarest class (least rows) keeps its weight, those of the others lose what makes their class as heavy;
 * only proportions count. The bits are such that the sum of all products of weight, repeats and factor is below 2^63.
 */
AG_MATHS_FN uint32_t
ag_forest_class_factor(int64_t n_rows, int64_t least, bool has_weights)
{
	double unit = has_weights ? 16777216.0 : 1073741824.0; /* 2^24, 2^30 */
	double factor = n_rows > 0 ? unit * (double) least / (double) n_rows : 0.0;

	return factor < 1.0 ? 1 : (uint32_t) (factor + 0.5);
}

/* Whether a tree orders the levels of a category by their target: half of the trees do. */
AG_MATHS_FN bool
ag_forest_is_by_target(uint64_t halves)
{
	return (ag_random_u64(halves, UINT64_MAX) & 1) != 0;
}

/* A row's target as the order of levels sees it: a number, or in which half its class is. */
AG_MATHS_FN int64_t
ag_forest_level_target(uint64_t row, const int64_t *values, int n_classes, uint64_t halves)
{
	if (values != NULL)
		return values[(uint32_t) row] >> 31;
	if (n_classes == 2)
		return ag_forest_class(row);
	return (int64_t) (ag_random_u64(halves, ag_forest_class(row)) & 1);
}

/*
 * Ranks 1.. of the value bins of a category: levels of enough rows by their mean target where is_by_target, then the others by their
 * bins, which are by frequency. The missing bin keeps 0. sums, weights, n_rows: [256] by bin.
 */
AG_MATHS_FN void
ag_forest_rank(int n_bins, bool is_by_target, const int64_t *sums, const int64_t *weights,
			   const uint32_t *n_rows, uint8_t *ranks)
{
	double means[AG_FOREST_BINS];
	uint8_t order[AG_FOREST_BINS];
	int n_large = 0, n_ranks = 0;

	memset(ranks, 0, AG_FOREST_BINS);
	for (int b = 1; b <= n_bins; b++)
	{
		int at = n_large;

		if (!is_by_target || n_rows[b] < AG_FOREST_LEVEL_ROWS)
			continue;
		means[b] = (double) sums[b] / (double) weights[b];
		for (; at > 0 && means[order[at - 1]] > means[b]; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t) b;
		n_large++;
	}
	for (; n_ranks < n_large; n_ranks++)
		ranks[order[n_ranks]] = (uint8_t) (n_ranks + 1);
	for (int b = 1; b <= n_bins; b++)
		if (ranks[b] == 0)
			ranks[b] = (uint8_t) ++n_ranks;
}

/* ---- cuts ---- */

/* One comparison says for any bin, the missing one too, whether it goes left. */
AG_MATHS_FN bool
ag_forest_cut_left(uint32_t cut, uint32_t bin)
{
	return (uint8_t) (bin - (cut >> 8)) < (cut & 255u);
}

AG_MATHS_FN int64_t
ag_forest_log_at(const int64_t *logs, int64_t n_logs, int64_t n)
{
	if (n < n_logs)
		return logs[n];
	return (int64_t) ((double) n * ag_ln((double) n) * AG_LOGS_SCALE + 0.5);
}

/*
 * What a cut is worth among those of its node, of two classes by gini and of numbers: their impurity falls by
 * (S_l W - S W_l)^2 / (W W_l W_r), times 2 for gini; what all cuts of the node share is left out.
 */
AG_MATHS_FN double
ag_forest_ratio(int64_t all_sum, int64_t all_weight, int64_t sum, int64_t weight)
{
	double apart = (double) sum * (double) all_weight - (double) all_sum * (double) weight;

	return apart * apart / ((double) weight * (double) (all_weight - weight));
}

/* Likewise of two classes by entropy. */
AG_MATHS_FN double
ag_forest_entropy(const int64_t *logs, int64_t n_logs, int64_t all_sum, int64_t all_weight,
				  int64_t sum, int64_t weight)
{
	int64_t right_sum = all_sum - sum, right_weight = all_weight - weight;

	return (double) (ag_forest_log_at(logs, n_logs, sum) +
					 ag_forest_log_at(logs, n_logs, weight - sum) -
					 ag_forest_log_at(logs, n_logs, weight) +
					 ag_forest_log_at(logs, n_logs, right_sum) +
					 ag_forest_log_at(logs, n_logs, right_weight - right_sum) -
					 ag_forest_log_at(logs, n_logs, right_weight));
}

/*
 * Likewise of more classes. squares, all_squares: sums of the squared weights of the left and of the node; products: of the left's
 * times the node's. By entropy sums of n ln n of the left, of the node, and of the right less the node.
 */
AG_MATHS_FN double
ag_forest_of_classes(bool is_entropy, const int64_t *logs, int64_t n_logs, int64_t all_squares,
					 int64_t all_weight, int64_t squares, int64_t products, int64_t weight)
{
	int64_t right = all_weight - weight;

	if (is_entropy)
		return (double) (squares - ag_forest_log_at(logs, n_logs, weight) + all_squares + products -
						 ag_forest_log_at(logs, n_logs, right));
	return (double) squares / (double) weight +
		   (double) (all_squares - 2 * products + squares) / (double) right;
}

/*
 * Decrease of impurity times weight, which is what nodes of one tree are compared by, from the score of the best cut. sum, squares,
 * weight, shift: the node's, as AgForestView has them.
 */
AG_MATHS_FN double
ag_forest_gain(AgForestKind kind, bool is_entropy, const int64_t *logs, int64_t n_logs, int64_t sum,
			   int64_t squares, int64_t weight, int shift, double score)
{
	double gain;

	if (kind == AG_FOREST_NUMBERS)
		gain = ldexp(score / (double) weight, 2 * shift);
	else if (is_entropy)
	{
		int64_t apart = kind == AG_FOREST_CLASSES
							? squares
							: ag_forest_log_at(logs, n_logs, sum) +
								  ag_forest_log_at(logs, n_logs, weight - sum);

		gain = (score - (double) (apart - ag_forest_log_at(logs, n_logs, weight))) /
			   (AG_LOGS_SCALE * 0.6931471805599453);
	}
	else if (kind == AG_FOREST_PAIR)
		gain = 2.0 * score / (double) weight;
	else
		gain = score - (double) squares / (double) weight;
	return gain > 0.0 ? gain : 0.0;
}

/*
 * Where a cut lies between the last bin on the left and the first on the right: all places between them part the node's rows
 * alike, and the one nearest to the middle of their values is taken; of a random cut, the one at its value.
 */
AG_MATHS_FN int
ag_forest_place(const double *centers, const double *cuts, int n_bins, bool is_category, int low,
				int high, bool is_random, double value)
{
	double middle;
	int at = low;

	if (high == 255)
		return n_bins;
	if (is_random)
	{
		while (!is_category && at + 1 < high && centers[at] <= value)
			at++;
		return at;
	}
	if (is_category)
		return (low + high - 1) / 2;
	if (high == low + 1)
		return at;
	middle = centers[low - 1] + 0.5 * (centers[high - 1] - centers[low - 1]);
	while (at + 1 < high && fabs(cuts[at] - middle) < fabs(cuts[at - 1] - middle))
		at++;
	return at;
}

/* Does a cut of two classes, or of two rows, leave nothing to split? */
AG_MATHS_FN bool
ag_forest_is_pure(AgForestKind kind, int64_t n_rows, int64_t all_sum, int64_t all_weight,
				  int64_t sum, int64_t weight)
{
	if (kind == AG_FOREST_NUMBERS)
		return n_rows == 2;
	return kind == AG_FOREST_PAIR &&
		   (sum == weight ? sum == all_sum : sum == 0 && weight == all_weight - all_sum);
}

/* A node's cut, as ag_forest_cut_left wants it. */
AG_MATHS_FN uint32_t
ag_forest_cut(int bin, bool missing_left)
{
	return missing_left ? (uint32_t) bin + 1 : UINT32_C(1) << 8 | (uint32_t) bin;
}

#endif
