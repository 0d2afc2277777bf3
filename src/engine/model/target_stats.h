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

#define AG_STAT_BINS 16 /* of a statistic */

/* A column of the matrix. */
typedef struct AgStatColumn
{
	int source;     /* the feature that it is made of */
	int n_codes;    /* levels that have a statistic of their own */
	double *values; /* [n_codes] of the codes; NULL: the column is the feature itself */
	double missing; /* statistic of missing values */
	double unseen;  /* of levels beyond n_codes */
} AgStatColumn;

typedef struct AgTargetStats
{
	int n_features;        /* of the table */
	AgBins *bins;          /* what to train on: features that aren't replaced, then statistics */
	AgStatColumn *columns; /* [bins->n_features] */
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
								const uint32_t *const *codes, int one_hot_max_size, uint64_t seed,
								AgTargetStats **stats);
void ag_target_stats_free(const AgContext *ctx, AgTargetStats *stats); /* NULL allowed */

/* Columns of statistics that a replaced feature becomes. */
int ag_stats_per_feature(AgProblem problem, int n_classes);

#endif
