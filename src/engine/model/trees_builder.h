/*
 * trees_builder.h - collects grown trees into an AgTrees.
 */
#ifndef AG_TREES_BUILDER_H
#define AG_TREES_BUILDER_H

#include "engine/base/context.h"
#include "engine/model/grow.h"
#include "engine/model/trees.h"

struct AgTargetStats;

typedef struct AgTreesBuilder
{
	const struct AgTargetStats *stats; /* what columns stand for; NULL: for the table's features */
	AgTree *trees;
	AgTreeNode *nodes;
	double *leaves;
	uint64_t *sets;
	size_t n_trees, n_nodes, n_leaves, n_set_words;
	size_t max_trees, max_nodes, max_leaves, max_set_words;
} AgTreesBuilder; /* starts as all zero but for stats */

/*
 * Appends the grower's tree: bins become thresholds and sets of codes. values[n_leaves] by leaf
 * number. On failure nothing was added.
 */
AgStatus ag_trees_builder_add(const AgContext *ctx, AgTreesBuilder *builder, const AgGrower *grower,
							  uint32_t output, const double *values);
/* Forgets all but the first n_trees. */
void ag_trees_builder_cut(AgTreesBuilder *builder, size_t n_trees);
/* What was collected, as a model. base[n_outputs] is copied. */
AgStatus ag_trees_builder_finish(const AgContext *ctx, const AgTreesBuilder *builder,
								 int n_features, int n_outputs, AgLink link, const double *base,
								 AgTrees **trees);
void ag_trees_builder_free(const AgContext *ctx, AgTreesBuilder *builder);

#endif
