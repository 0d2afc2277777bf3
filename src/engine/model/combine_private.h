/*
 * combine_private.h - combinations that are kept. Private to combine*.c.
 */
#ifndef AG_COMBINE_PRIVATE_H
#define AG_COMBINE_PRIVATE_H

#include "engine/model/combine.h"

typedef struct AgCombined
{
	AgMembers members;
	uint64_t hash; /* of members */
	int number;    /* among the used; -1: not used yet */
	double n_codes;
	AgCombination *own;                   /* until it is used */
	AgBins *sample;                       /* owns features' cuts */
	AgBinFeature *features;               /* [n_stats] */
	uint8_t *bytes[AG_STAT_PERMUTATIONS]; /* [n_rows][row_bytes] bins of the statistics */
	int64_t last_tree, split_in;          /* numbers of trees */
	/* of the level in work */
	int best_stat, best_cut; /* stat -1: none */
	double best_score;
} AgCombined;

uint64_t ag_members_hash(const AgMembers *members);

struct AgCombineScratch;
AgStatus ag_combine_scratch_create(const AgContext *ctx, const AgCombiner *combiner,
								   struct AgCombineScratch **scratch);
void ag_combine_scratch_free(const AgContext *ctx, struct AgCombineScratch *scratch);

/* Its levels, statistics and bins. */
AgStatus ag_combined_create(AgCombiner *combiner, const AgMembers *members, uint64_t hash,
							AgCombined **combined);
void ag_combined_free(AgCombiner *combiner, AgCombined *combined); /* NULL allowed */
/* Gives it a number, if it hasn't one. */
AgStatus ag_combined_use(AgCombiner *combiner, AgCombined *combined);
/* Of every row the place of its key, UINT32_MAX: no training row has it. codes[n_rows]. */
void ag_combination_codes(const AgCombiner *combiner, const AgCombination *combination,
						  uint32_t *codes);
void ag_combination_free(AgCombiner *combiner, AgCombination *combination); /* NULL allowed */

#endif
