/*
 * target_stats.h - categories as numbers: what the labels of a level's rows say.
 *
 * A training row's statistic is taken from the rows before it in a random order of the training rows, so that no row sees
 * its own label (Prokhorenkova et al. 2018, "CatBoost: unbiased boosting with categorical features"); every other
 * row's, and prediction's, from all training rows. The statistics are further columns of a binned matrix of one's own. A
 * cut of such a column is a set of levels, and as such it is stored: prediction needs no tables.
 */
#ifndef AG_TARGET_STATS_H
#define AG_TARGET_STATS_H

#include "engine/base/context.h"
#include "engine/model/boost.h"

#define AG_STAT_BINS 16        /* of a statistic */
#define AG_STAT_SLOTS 16       /* most levels of a tree: each may split on a combination */
#define AG_STAT_CLASSES 32     /* of more classes the commonest have statistics */
#define AG_STAT_MOST 40        /* statistics of one category */
#define AG_STAT_PERMUTATIONS 8 /* most */

/* What is summed over a level's rows. */
#define AG_STAT_ROWS (-1) /* nothing: how common the level is */
#define AG_STAT_LABEL 0   /* regression: the label */
#define AG_STAT_ABOVE 1   /* regression: 1 for a label above the border */

/* A statistic: (sum + weight * prior) / (rows + weight), or the rows. */
typedef struct AgStatRule
{
	int target; /* classes: the one whose rows count 1; else one of the above */
	double prior, weight;
	double border;
} AgStatRule;

/* A column of the matrix. */
typedef struct AgStatColumn
{
	int source;     /* the feature that it is made of; beyond the table's: a combination */
	int n_codes;    /* levels that have a statistic of their own */
	double *values; /* [n_codes] of the codes; NULL: the column is the feature itself */
	double missing; /* statistic of missing values */
	double unseen;  /* of levels beyond n_codes */
	int64_t *sets;  /* [AG_STAT_BINS] where AgTreesBuilder has put a cut's set, -1: nowhere yet */
} AgStatColumn;

typedef struct AgTargetStats
{
	int n_features; /* of the table */
	int n_permutations;
	AgBins *bins; /* what to train on: features that aren't replaced, then statistics */
	/* [n_permutations] the same, each by another order of the rows; cuts and other rows' bins are equal; [0] is bins */
	AgBins *permuted[AG_STAT_PERMUTATIONS];
	AgStatColumn *columns; /* [bins->n_features + AG_STAT_SLOTS] the slots are the combiner's */
	struct AgCombiner *combiner; /* NULL: no combinations */
} AgTargetStats;

/* Would a feature of that many levels be replaced? */
static inline bool
ag_stats_replace(const AgBinFeature *feature, int one_hot_max_size)
{
	return feature->is_category && feature->n_levels > (uint32_t) one_hot_max_size;
}

/*
 * codes[f], NULL or [n_rows] with UINT32_MAX for missing: the levels of features whose bins don't hold all of them apart;
 * codes NULL: none has any. Without, the levels of the tail count as one.
 */
AgStatus ag_target_stats_create(const AgContext *ctx, const AgTrainData *data,
								const uint32_t *const *codes, int one_hot_max_size,
								int n_permutations, uint64_t seed, AgTargetStats **stats);
void ag_target_stats_free(const AgContext *ctx, AgTargetStats *stats); /* NULL allowed */

/* Columns of statistics that a replaced feature becomes. */
int ag_stats_per_feature(AgProblem problem, int n_classes);
/* The same of a feature with at most so many classes' statistics: rules[AG_STAT_MOST]; how many. The last counts rows. */
int ag_stats_rules(const AgTrainData *data, int most_classes, AgStatRule *rules);
/* The train rows in the p-th random order. */
void ag_stats_order(const AgTrainData *data, uint64_t seed, int p, uint32_t *order);

static inline double
ag_stat_value(const AgStatRule *rule, double sum, double rows)
{
	return rule->target == AG_STAT_ROWS
			   ? rows
			   : (sum + rule->weight * rule->prior) / (rows + rule->weight);
}

/* What a row adds to the sum. */
static inline double
ag_stat_label(const AgTrainData *data, uint32_t row, const AgStatRule *rule)
{
	if (rule->target == AG_STAT_ROWS)
		return 0.0;
	if (data->problem == AG_PROBLEM_BINARY || data->problem == AG_PROBLEM_MULTICLASS)
		return data->class_of[row] == rule->target ? 1.0 : 0.0;
	if (rule->target == AG_STAT_ABOVE)
		return data->target[row] > rule->border ? 1.0 : 0.0;
	return data->target[row];
}

#endif
