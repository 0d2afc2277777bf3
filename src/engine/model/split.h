/*
 * split.h - the best way to cut a node in two, one feature at a time.
 *
 * Everything is computed in quantised units from integer sums, in one fixed order. Of equal gains the lowest
 * feature wins, then the lowest bin, then missing values on the right. With noise, each feature's best cut by gain gets some,
 * and so what is best among the features is left to chance; the gain that it is kept with has none.
 */
#ifndef AG_SPLIT_H
#define AG_SPLIT_H

#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/model/boost.h"
#include "engine/model/histogram.h"
#include "engine/model/lanes.h"
#include "engine/model/quantise.h"

/* A tree's limits and penalties, in quantised units. */
typedef struct AgSplitRules
{
	double l1, l2;      /* penalties on a leaf's value */
	double cat_l2;      /* more l2 for sorted categories */
	double max_step;    /* bound of a leaf's value; 0: none */
	double path_smooth; /* rows; 0: none */
	double min_gain;
	double min_h;                  /* a child's least sum of hessians */
	int64_t min_rows;              /* a child's least number of rows, >= 1 */
	bool is_plain;                 /* no l1, max_step or path_smooth: the gain is a ratio of sums */
	bool has_random_cut;           /* extra_trees */
	uint32_t min_h_row, max_h_row; /* least and greatest hessian of one row */
	double cat_smooth;             /* rows that a category must have to be sorted */
	double cat_smooth_h;           /* added to the hessian where categories are sorted */
	int max_cat_threshold;
	int max_cat_to_onehot;
	int64_t min_rows_per_group;
	const int8_t *
		monotone; /* [n_features] 1: predictions may not fall with it, -1: not rise; NULL: all free */
	double noise; /* standard deviation of what is added to what cuts are compared by */
	bool
		roots_gain; /* noise is added to the root of a cut's merit, where a node's features are compared */
	AgCpuLevel level; /* for the scan of eight cuts at a time */
} AgSplitRules;

/* A node as the search sees it. */
typedef struct AgSplitNode
{
	const AgHist *hist;
	const uint32_t *ids; /* its rows, for exact counts */
	int64_t n_rows;
	int64_t sum_g, sum_h;
	double output;    /* its own value in quantised units: what path_smooth pulls its children to */
	uint64_t key;     /* of random cuts: of (seed, tree, path) */
	double low, high; /* with monotone: what leaves below it may have as values */
	int direction; /* likewise, of the feature in work: 1: the right side may not be lower, -1: not higher */
} AgSplitNode;

typedef struct AgSplit
{
	double gain;     /* above the unsplit node and min_gain; a split only when > 0 */
	double rank;     /* what features are compared by: the gain, or with noise another number */
	int32_t feature; /* -1: none */
	int32_t bin;     /* numeric: value bins <= bin go left, bin <= n_bins */
	bool is_category;
	bool has_cat_l2;   /* the children's values carry cat_l2 */
	bool missing_left; /* where bin 0, NULL and NaN go */
	bool unseen_left;  /* category: where a level goes that no row here has */
	int64_t left_g, left_h;
	uint64_t left_bins[4]; /* category: bit b set = bin b goes left */
} AgSplit;

/* rules from a family's parameters; unit: AgLoss.unit. */
void ag_split_rules_init(AgSplitRules *rules, const AgBoostParams *params, const AgQuantum *quantum,
						 double unit);

/* No split: what a search starts with. */
static inline AgSplit
ag_split_none(void)
{
	return (AgSplit){.feature = -1};
}

/* True when a is to be preferred to b: the fixed order of the header's first lines. */
static inline bool
ag_split_better(const AgSplit *a, const AgSplit *b)
{
	if (a->feature < 0 || b->feature < 0)
		return a->feature >= 0;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->feature < b->feature;
}

/*
 * Replaces *best when one of the features has a better split of the node. Reads the histogram, and the
 * node's rows only where hessians can't decide whether a child has enough rows.
 */
void ag_split_search(const AgBins *bins, const AgHistLayout *layout, const AgSplitRules *rules,
					 const AgSplitNode *node, const int *features, int n_features, AgSplit *best);

/* A leaf's best value for sums of n_rows rows whose parent has the value parent_output. All in quantised units. */
double ag_leaf_output(const AgSplitRules *rules, double g, double h, double l2, int64_t n_rows,
					  double parent_output);

/* Does a row of this bin go left? The slow and obvious form. */
bool ag_split_goes_left(const AgSplit *split, int bin);

/* The same for all bins: bit b of the 256 is set when bin b goes left. */
void ag_split_bits(const AgSplit *split, uint32_t *left_bits);

/* ---- shared by split.c and split_category.c ---- */

/* One feature's sums within a node. */
typedef struct AgSplitSums
{
	int64_t g[AG_HIST_BINS];
	int64_t h[AG_HIST_BINS];
	int64_t rows[AG_HIST_BINS]; /* when is_counted */
	bool is_counted;
} AgSplitSums;

/* Fills sums->rows exactly. */
void ag_split_count(const AgBins *bins, const AgSplitRules *rules, const AgSplitNode *node, int f,
					AgSplitSums *sums);

/* Gain of a cut: the two sides' scores, less nothing. left_rows counts only under path_smooth. */
double ag_split_score(const AgSplitRules *rules, const AgSplitNode *node, double l2, int64_t left_g,
					  int64_t left_h, int64_t left_rows);
/* What a cut's score must pass: the unsplit node's score and min_gain. */
double ag_split_bar(const AgSplitRules *rules, const AgSplitNode *node);

/* sums are counted. */
void ag_split_search_category(const AgBins *bins, const AgSplitRules *rules,
							  const AgSplitNode *node, int f, double bar, AgSplitSums *sums,
							  AgSplit *best);

#endif
