/*
 * combine_private.h - combinations that are kept. Private to combine*.c.
 */
#ifndef AG_COMBINE_PRIVATE_H
#define AG_COMBINE_PRIVATE_H

#include "engine/model/combine.h"

/* What scoring shares: where rows are, once a level, and each thread's sums. */
typedef struct AgCombineSums
{
	uint16_t *leaf_of; /* [n_rows] */
	int64_t **cells;   /* [n_threads]; a narrow table, and behind it, of many rows, a wide one */
	bool is_by_row;    /* leaf_of is this level's */
} AgCombineSums;

typedef struct AgCombined
{
	AgMembers members;
	uint64_t hash; /* of members */
	int number;    /* among the used; -1: not used yet */
	double n_codes;
	AgCombination *own;     /* until it is used */
	AgBins *sample;         /* owns features' cuts */
	AgBinFeature *features; /* [n_stats] */
	uint32_t *codes;        /* [n_rows] by first row; AG_NO_CODE: no training row has it */
	/* [n_rows][row_bytes] bins of the statistics, two a byte; NULL: not asked for yet */
	uint8_t *bytes[AG_STAT_PERMUTATIONS];
	int64_t last_tree, split_in; /* numbers of trees */
	/* of the level in work */
	int best_stat, best_cut; /* stat -1: none */
	double best_score;
} AgCombined;

#define AG_NO_CODE UINT32_MAX

/* The bin, from 1 on, of a row's s-th statistic; row: its row_bytes. */
static inline int
ag_combined_bin(const uint8_t *row, int s)
{
	return (row[s >> 1] >> (s & 1 ? 4 : 0) & 15) + 1;
}

uint64_t ag_members_hash(const AgMembers *members);

struct AgCombineScratch;
AgStatus ag_combine_scratch_create(const AgContext *ctx, const AgCombiner *combiner,
								   struct AgCombineScratch **scratch);
void ag_combine_scratch_free(const AgContext *ctx, struct AgCombineScratch *scratch);

/* Its levels, statistics and cuts, and its bins by the combiner's permutation. */
AgStatus ag_combined_create(AgCombiner *combiner, const AgMembers *members, uint64_t hash,
							AgCombined **combined);
/* The bins by the combiner's permutation, where they aren't there yet. */
AgStatus ag_combined_permute(AgCombiner *combiner, AgCombined *combined);
void ag_combined_free(AgCombiner *combiner, AgCombined *combined); /* NULL allowed */
/* Gives it a number, if it hasn't one. */
AgStatus ag_combined_use(AgCombiner *combiner, AgCombined *combined);
/* Of every row the place of its key, UINT32_MAX: no training row has it. codes[n_rows]. */
void ag_combination_codes(const AgCombiner *combiner, const AgCombination *combination,
						  uint32_t *codes);
void ag_combination_free(AgCombiner *combiner, AgCombination *combination); /* NULL allowed */

/* ---- combine_score.c ---- */

typedef struct AgCombineTask
{
	AgCombiner *combiner;
	const AgCombineLevel *level;
	AgCombined **offered;
} AgCombineTask;

AgStatus ag_combine_sums_create(AgCombiner *combiner);
void ag_combine_sums_free(AgCombiner *combiner);
/* Cells of a thread's tables. */
int64_t ag_combine_table_cells(int64_t n_train, int n_pairs);
/* Once a level: where the rows are. */
void ag_combine_note_leaves(AgCombiner *combiner, const AgGrower *grower);
/* The factor on the score of a combination of that many levels. */
double ag_combine_weight(const AgCombiner *combiner, double n_codes, bool is_used);
/* Sets best_stat, best_cut and best_score. */
void ag_combine_score(const AgCombineTask *task, AgCombined *combined, int thread);

#endif
