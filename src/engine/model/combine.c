/*
 * combine.c - combinations of categories: what a level is offered, and which cut of them is best.
 */
#include "engine/model/combine.h"

#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/combine_private.h"

#define AG_COMBINE_CLASSES 8 /* of more classes the commonest have statistics of combinations */
#define AG_KEPT_BYTES (INT64_C(256) << 20)
#define AG_LEAST_KEPT (2 * AG_STAT_SLOTS)
#define AG_MOST_KEPT 1024
#define AG_KEY_SHARE 3

/* ---- setting up ---- */

static int64_t
kept_bytes(const AgTrainData *data, int n_stats, int n_permutations)
{
	int64_t row_bytes = (n_stats + 1) / 2;

	return data->bins->n_rows * (4 + row_bytes * n_permutations) +
		   data->n_train * (8 + 8 * n_stats) + 4096;
}

/* How many combinations may be kept; no more than there are. */
static int
most_kept(const AgTrainData *data, int n_stats, int n_permutations, int n_replaced,
		  int most_members)
{
	int64_t most = AG_KEPT_BYTES / kept_bytes(data, n_stats, n_permutations);
	double n_sets = 0.0, ways = n_replaced;

	for (int m = 2; m <= most_members && m <= n_replaced; m++)
	{
		ways *= (double) (n_replaced - m + 1) / m;
		n_sets += ways;
	}
	most = most < AG_LEAST_KEPT ? AG_LEAST_KEPT : most > AG_MOST_KEPT ? AG_MOST_KEPT : most;
	return (double) most > n_sets ? (int) n_sets + 1 : (int) most;
}

static void
list_targets(AgCombiner *combiner)
{
	for (int s = 0; s < combiner->n_stats; s++)
	{
		int t = 0;

		while (t < combiner->n_targets &&
			   combiner->rules[combiner->rule_of[t]].target != combiner->rules[s].target)
			t++;
		if (t == combiner->n_targets && combiner->rules[s].target != AG_STAT_ROWS)
			combiner->rule_of[combiner->n_targets++] = s;
		combiner->target_of[s] = t; /* of the counter: n_targets, where rows are */
	}
	combiner->target_of[combiner->n_stats - 1] = combiner->n_targets;
}

/*
 * Of the shares of classes under several priors those of none and of all are left out: the cuts of what is left hardly differ,
 * and combinations cost by the number of their statistics.
 */
static void
drop_extreme_priors(AgCombiner *combiner)
{
	int n = 0;

	for (int s = 0; s < combiner->n_stats; s++)
	{
		const AgStatRule *rule = combiner->rules + s;
		bool is_share = combiner->data->problem == AG_PROBLEM_BINARY ||
						combiner->data->problem == AG_PROBLEM_MULTICLASS;

		if (!is_share || rule->target == AG_STAT_ROWS || (rule->prior > 0.0 && rule->prior < 1.0))
			combiner->rules[n++] = *rule;
	}
	combiner->n_stats = n;
}

AgStatus
ag_combiner_create(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
				   AgTargetStats *stats, const AgCombineParams *params, AgCombiner **combiner)
{
	const AgBins *bins = data->bins;
	AgCombiner *c;
	AgStatus status;

	*combiner = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *c, &c));
	c->ctx = ctx;
	c->data = data;
	c->codes = codes;
	c->stats = stats;
	c->most_members = params->most_members;
	c->size_penalty = params->size_penalty;
	c->n_stats = ag_stats_rules(data, AG_COMBINE_CLASSES, c->rules);
	drop_extreme_priors(c);
	c->row_bytes = (c->n_stats + 1) / 2;
	c->most_codes = 1.0;
	list_targets(c);
	AG_GO(ag_get(ctx, (size_t) bins->n_features, sizeof(int), &c->categories));
	for (int f = 0; f < bins->n_features; f++)
		if (ag_stats_replace(bins->features + f, params->one_hot_max_size))
			c->categories[c->n_categories++] = f;
	c->max_kept =
		most_kept(data, c->n_stats, stats->n_permutations, c->n_categories, c->most_members);
	if (params->most_kept > 0)
		c->max_kept = params->most_kept;
	AG_GO(ag_get_zeroed(ctx, (size_t) c->max_kept, sizeof *c->kept, &c->kept));
	AG_GO(ag_get(ctx, (size_t) stats->bins->n_features, sizeof(double), &c->weight_of));
	AG_GO(ag_get_zeroed(ctx, (size_t) bins->n_features, 1, &c->is_used));
	AG_GO(ag_get(ctx, AG_STAT_SLOTS, sizeof *c->bases, &c->bases));
	AG_GO(ag_get(ctx, (size_t) stats->n_permutations * (size_t) data->n_train, sizeof(uint32_t),
				 &c->orders));
	for (int p = 0; p < stats->n_permutations; p++)
		ag_stats_order(data, params->seed, p, c->orders + p * data->n_train);
	AG_GO(ag_combine_scratch_create(ctx, c, &c->scratch));
	AG_GO(ag_combine_sums_create(c));
done:
	if (status != AG_OK)
	{
		ag_combiner_free(ctx, c);
		return status;
	}
	*combiner = c;
	return AG_OK;
}

void
ag_combiner_free(const AgContext *ctx, AgCombiner *combiner)
{
	if (combiner == NULL)
		return;
	for (int k = 0; k < combiner->n_kept; k++)
		ag_combined_free(combiner, combiner->kept[k]);
	for (int u = 0; u < combiner->n_used; u++)
		ag_combination_free(combiner, combiner->used[u]);
	ag_combine_scratch_free(ctx, combiner->scratch);
	ag_combine_sums_free(combiner);
	ag_mem_free(ctx->mem, combiner->kept);
	ag_mem_free(ctx->mem, combiner->used);
	ag_mem_free(ctx->mem, combiner->categories);
	ag_mem_free(ctx->mem, combiner->weight_of);
	ag_mem_free(ctx->mem, combiner->is_used);
	ag_mem_free(ctx->mem, combiner->bases);
	ag_mem_free(ctx->mem, combiner->orders);
	ag_mem_free(ctx->mem, combiner);
}

int64_t
ag_combiner_memory(const AgTrainData *data, int n_permutations, int n_replaced, int most_members,
				   int n_threads)
{
	int n_stats = ag_stats_per_feature(
		data->problem, data->n_classes < AG_COMBINE_CLASSES ? data->n_classes : AG_COMBINE_CLASSES);

	return most_kept(data, n_stats, n_permutations, n_replaced, most_members) *
			   kept_bytes(data, n_stats, n_permutations) +
		   data->n_train * 4 * n_permutations +
		   data->bins->n_rows * (8 + 2 + 16 + 16 * (n_stats + 1)) +
		   n_threads * ag_combine_table_cells(data->n_train, (n_stats + 1) / 2) * 8;
}

/* ---- what a level is offered ---- */

static bool
same_members(const AgMembers *a, const AgMembers *b)
{
	return a->n == b->n && memcmp(a->features, b->features, (size_t) a->n * sizeof(int)) == 0;
}

void
ag_combiner_begin(AgCombiner *combiner, int permutation)
{
	combiner->permutation = permutation;
	combiner->tree++;
	combiner->n_bases = 0;
	combiner->n_slots = 0;
}

/* The base and one feature more; false where it is in already or would be one too many. */
static bool
join(const AgMembers *base, int feature, int most, AgMembers *joined)
{
	int at = 0;

	if (base->n >= most)
		return false;
	while (at < base->n && base->features[at] < feature)
		at++;
	if (at < base->n && base->features[at] == feature)
		return false;
	*joined = *base;
	memmove(joined->features + at + 1, joined->features + at,
			(size_t) (base->n - at) * sizeof(int));
	joined->features[at] = feature;
	joined->n++;
	return true;
}

/* Has an earlier pair of a base and a category given the same? */
static bool
is_repeated(const AgCombiner *combiner, int base, const AgMembers *joined)
{
	AgMembers other;

	for (int b = 0; b < base; b++)
		for (int m = 0; m < joined->n; m++)
			if (join(&combiner->bases[b], joined->features[m], combiner->most_members, &other) &&
				same_members(&other, joined))
				return true;
	return false;
}

void
ag_combiner_weigh(AgCombiner *combiner)
{
	const AgTargetStats *stats = combiner->stats;

	for (int c = 0; c < stats->bins->n_features; c++)
		if (stats->columns[c].values != NULL &&
			(double) stats->columns[c].n_codes > combiner->most_codes)
			combiner->most_codes = (double) stats->columns[c].n_codes;
	for (int c = 0; c < stats->bins->n_features; c++)
	{
		const AgStatColumn *column = stats->columns + c;

		combiner->weight_of[c] = column->values == NULL
									 ? 1.0
									 : ag_combine_weight(combiner, (double) column->n_codes,
														 combiner->is_used[column->source] != 0);
	}
}

/* ---- scoring a batch ---- */

static void
score_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgCombineTask *task = arg;

	for (int64_t i = begin; i < end; i++)
		ag_combine_score(task, task->offered[i], thread);
}

/* Is that cut of that combination in the tree already? */
static bool
is_taken(const AgCombiner *combiner, const AgCombined *combined)
{
	for (int i = 0; i < combiner->n_slots; i++)
		if (combiner->slot_of[i] == combined && combiner->stat_of[i] == combined->best_stat &&
			combiner->cut_of[i] == combined->best_cut)
			return true;
	return false;
}

/* ---- choosing ---- */

/* What a search through a level's combinations carries. */
typedef struct AgCombineSearch
{
	AgCombiner *combiner;
	const AgCombineLevel *level;
	AgCombined *batch[AG_STAT_SLOTS];
	int n_batch;
	AgCombined *best; /* NULL: none passes the score */
	int best_stat, best_cut;
	double best_score;
} AgCombineSearch;

static void
run_batch(AgCombineSearch *search)
{
	AgCombineTask task = {search->combiner, search->level, search->batch};

	ag_pool_run(search->combiner->ctx->pool, search->n_batch, 1, score_task, &task);
	for (int i = 0; i < search->n_batch; i++)
	{
		AgCombined *combined = search->batch[i];

		if (combined->best_stat < 0 || !(combined->best_score > search->best_score) ||
			is_taken(search->combiner, combined))
			continue;
		search->best = combined;
		search->best_stat = combined->best_stat;
		search->best_cut = combined->best_cut;
		search->best_score = combined->best_score;
	}
	search->n_batch = 0;
}

/* A place of the cache whose combination nobody needs now: the one that wasn't for longest. */
static int
place_for(const AgCombineSearch *search)
{
	const AgCombiner *combiner = search->combiner;
	int at = -1;

	if (combiner->n_kept < combiner->max_kept)
		return combiner->n_kept;
	for (int k = 0; k < combiner->n_kept; k++)
	{
		const AgCombined *kept = combiner->kept[k];
		bool is_needed = kept == search->best || kept->split_in == combiner->tree;

		for (int i = 0; i < search->n_batch; i++)
			is_needed = is_needed || search->batch[i] == kept;
		if (!is_needed && (at < 0 || kept->last_tree < combiner->kept[at]->last_tree))
			at = k;
	}
	return at;
}

static AgStatus
offer(AgCombineSearch *search, const AgMembers *members)
{
	AgCombiner *combiner = search->combiner;
	uint64_t hash = ag_members_hash(members);
	AgCombined *combined = NULL;
	int place;

	if (search->level->share < 1.0 &&
		ag_random_unit(ag_key(search->level->key, AG_KEY_SHARE), hash) >= search->level->share)
		return AG_OK;
	for (int k = 0; k < combiner->n_kept && combined == NULL; k++)
		if (combiner->kept[k]->hash == hash && same_members(&combiner->kept[k]->members, members))
			combined = combiner->kept[k];
	if (combined == NULL)
	{
		if (search->n_batch == AG_STAT_SLOTS || (place = place_for(search)) < 0)
		{
			run_batch(search);
			place = place_for(search);
		}
		if (place < 0) /* as many as a tree splits on, all kept */
			return AG_OK;
		AG_TRY(ag_combined_create(combiner, members, hash, &combined));
		if (place == combiner->n_kept)
			combiner->n_kept++;
		else
			ag_combined_free(combiner, combiner->kept[place]);
		combiner->kept[place] = combined;
	}
	AG_TRY(ag_combined_permute(combiner, combined));
	combined->last_tree = combiner->tree;
	if (combined->n_codes > combiner->most_codes)
		combiner->most_codes = combined->n_codes;
	if (search->n_batch == AG_STAT_SLOTS)
		run_batch(search);
	search->batch[search->n_batch++] = combined;
	return ag_check_cancel(combiner->ctx);
}

/* The cut becomes a split of a spare column. */
static AgStatus
store_split(AgCombineSearch *search, AgSplit *split)
{
	AgCombiner *combiner = search->combiner;
	AgBins *bins = combiner->stats->permuted[combiner->permutation];
	AgCombined *combined = search->best;
	int slot = combiner->n_slots, column = bins->n_features + slot;
	uint8_t *to = bins->columns + column * bins->column_stride;
	const uint8_t *from = combined->bytes[combiner->permutation];

	AG_TRY(ag_combined_use(combiner, combined));
	for (int64_t row = 0; row < bins->n_rows; row++)
		to[row] = (uint8_t) ag_combined_bin(from + row * combiner->row_bytes, search->best_stat);
	bins->features[column] = combined->features[search->best_stat];
	combiner->stats->columns[column] = combiner->used[combined->number]->columns[search->best_stat];
	combiner->slot_of[slot] = combined;
	combiner->stat_of[slot] = search->best_stat;
	combiner->cut_of[slot] = search->best_cut;
	combined->split_in = combiner->tree;
	*split = ag_split_none();
	split->feature = column;
	split->bin = search->best_cut;
	split->missing_left = true;
	return AG_OK;
}

AgStatus
ag_combiner_choose(AgCombiner *combiner, const AgCombineLevel *level, AgSplit *split,
				   bool *is_better)
{
	AgCombineSearch search = {.combiner = combiner, .level = level, .best_score = level->best};
	AgMembers joined;

	*is_better = false;
	if (combiner->n_slots == AG_STAT_SLOTS)
		return AG_OK;
	if (combiner->n_bases > 0)
		ag_combine_note_leaves(combiner, level->grower);
	for (int b = 0; b < combiner->n_bases; b++)
		for (int c = 0; c < combiner->n_categories; c++)
		{
			if (!join(&combiner->bases[b], combiner->categories[c], combiner->most_members,
					  &joined) ||
				is_repeated(combiner, b, &joined))
				continue;
			if (ag_out_of_time(combiner->ctx))
				return AG_OK;
			AG_TRY(offer(&search, &joined));
		}
	run_batch(&search);
	AG_TRY(ag_check_cancel(combiner->ctx));
	*is_better = search.best != NULL;
	return *is_better ? store_split(&search, split) : AG_OK;
}

void
ag_combiner_take(AgCombiner *combiner, const AgSplit *split)
{
	const AgTargetStats *stats = combiner->stats;
	int slot = split->feature - stats->bins->n_features;
	AgMembers base = {.n = 1};

	if (slot < 0 && stats->columns[split->feature].values == NULL)
		return;
	if (slot >= 0)
	{
		base = combiner->slot_of[slot]->members;
		combiner->n_slots = slot + 1;
	}
	else
	{
		base.features[0] = stats->columns[split->feature].source;
		combiner->is_used[base.features[0]] = 1;
	}
	for (int b = 0; b < combiner->n_bases; b++)
		if (same_members(&combiner->bases[b], &base))
			return;
	if (combiner->n_bases < AG_STAT_SLOTS)
		combiner->bases[combiner->n_bases++] = base;
}
