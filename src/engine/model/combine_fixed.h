/*
 * combine_fixed.h - combinations of categories as columns of a table, for trees that don't ask for them level by level.
 */
#ifndef AG_COMBINE_FIXED_H
#define AG_COMBINE_FIXED_H

#include "engine/base/context.h"
#include "engine/model/combine.h"

#define AG_FIXED_MOST 24 /* combinations */

/* A table with a category more for each combination that the combiner has seen used, in that order. */
typedef struct AgFixedTable
{
	AgBins *bins;     /* features of the table, then combinations; no row-major copy */
	uint32_t **codes; /* [bins->n_features] as ag_target_stats_create takes them */
	int n_features;   /* of the table */
} AgFixedTable;

/* codes: the table's, NULL: none; they must outlive it. It may be freed whatever this returns. */
AgStatus ag_fixed_table_create(const AgContext *ctx, const AgCombiner *combiner,
							   const uint32_t *const *codes, AgFixedTable *fixed);
void ag_fixed_table_free(const AgContext *ctx, AgFixedTable *fixed); /* all zero is allowed */
/* Upper estimate of what it takes. */
int64_t ag_fixed_table_memory(const AgTrainData *data);

#endif
