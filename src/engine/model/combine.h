/*
 * combine.h - combinations of categories, made as trees ask for them.
 *
 * As in Prokhorenkova et al. 2018 ("CatBoost: unbiased boosting with categorical features", section 3.2): all
 * combinations are too many, so a level of a tree is offered those of what the tree has split on so far with one
 * category more. A combination is a category itself and becomes target statistics like any other, in each
 * permutation. They are kept between trees, least recently used ones made anew when they are wanted again.
 */
#ifndef AG_COMBINE_H
#define AG_COMBINE_H

#include "engine/base/context.h"
#include "engine/model/grow.h"
#include "engine/model/target_stats.h"
#include "engine/model/trees.h"

/* Features of a combination, ascending. */
typedef struct AgMembers
{
	int n;
	int features[AG_COMBO_MEMBERS];
} AgMembers;

/* A combination that a tree has split on. */
typedef struct AgCombination
{
	AgMembers members;
	uint32_t n_codes;
	uint64_t *keys;        /* [n_codes] hashes of levels, ascending: a code is a place here */
	AgStatColumn *columns; /* [n_stats] */
} AgCombination;

typedef struct AgCombiner
{
	const AgContext *ctx;
	const AgTrainData *data; /* the table's */
	const uint32_t *const *codes;
	AgTargetStats *stats;
	int most_members;
	double size_penalty; /* exponent; 0: none */
	AgStatRule rules[AG_STAT_MOST];
	int n_stats;
	int n_targets;               /* different ones of rules */
	int target_of[AG_STAT_MOST]; /* [n_stats] index of the rule's */
	int rule_of[AG_STAT_MOST];   /* [n_targets] a rule that sums it */
	int row_bytes;               /* of a combination's bins, two a byte */
	uint32_t *orders;            /* [n_permutations][n_train] */
	int *categories;             /* [n_categories] features that are replaced */
	int n_categories;
	double *weight_of;        /* [bins' features] factor on a column's score at this level */
	uint8_t *is_used;         /* [table's features] some tree has split on their statistics */
	double most_codes;        /* of what was offered so far */
	struct AgCombined **kept; /* [n_kept] the cache */
	int n_kept, max_kept;
	AgCombination **used; /* [n_used] in the order of their numbers */
	int n_used, max_used;
	struct AgCombineScratch *scratch;
	struct AgCombineSums *sums;
	int n_threads;
	/* the tree in work */
	int permutation;
	int64_t tree;     /* its number */
	AgMembers *bases; /* [n_bases] what it has split on */
	int n_bases;
	int n_slots; /* combinations that it has split on */
	struct AgCombined *slot_of[AG_STAT_SLOTS];
	int stat_of[AG_STAT_SLOTS], cut_of[AG_STAT_SLOTS];
} AgCombiner;

/* What a combiner is told about its family's parameters. */
typedef struct AgCombineParams
{
	int most_members; /* max_ctr_complexity, at least 2 */
	int one_hot_max_size;
	double size_penalty; /* model_size_reg */
	uint64_t seed;
	int most_kept; /* 0: as many as memory is set aside for */
} AgCombineParams;

/* For stats made of the same data, codes and seed; all must outlive it. */
AgStatus ag_combiner_create(const AgContext *ctx, const AgTrainData *data,
							const uint32_t *const *codes, AgTargetStats *stats,
							const AgCombineParams *params, AgCombiner **combiner);
void ag_combiner_free(const AgContext *ctx, AgCombiner *combiner); /* NULL allowed */
/* Upper estimate of what it takes; n_replaced: categories that are replaced. */
int64_t ag_combiner_memory(const AgTrainData *data, int n_permutations, int n_replaced,
						   int most_members, int n_threads);

/* A new tree, on the bins of that permutation. */
void ag_combiner_begin(AgCombiner *combiner, int permutation);

/* A level in search of its split. */
typedef struct AgCombineLevel
{
	AgGrower *grower;
	const AgSplitRules *rules;
	uint64_t key; /* of the level: noise, draws */
	double share; /* of the combinations that may be split on */
	double best;  /* score to pass */
} AgCombineLevel;

/* Before a level: weight_of. */
void ag_combiner_weigh(AgCombiner *combiner);
/*
 * Looks through the level's combinations. Where one passes the score: *split is its cut, a column of the
 * permutation's spare ones holds its bins, and *is_better is set.
 */
AgStatus ag_combiner_choose(AgCombiner *combiner, const AgCombineLevel *level, AgSplit *split,
							bool *is_better);
/* After a level's split was chosen, whatever it is. */
void ag_combiner_take(AgCombiner *combiner, const AgSplit *split);

#endif
