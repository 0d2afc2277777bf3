/*
 * combine_score.c - what the cuts of a combination are worth at a level.
 */
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/combine_private.h"
#include "engine/model/level_scan.h"
#include "engine/model/ordered.h"

#define AG_PAIR_BINS 256 /* two statistics' bins together */
#define AG_MOST_TABLES                                                                             \
	128 /* of pairs, that a level's leaves may have together where rows go in order */
#define AG_TABLE_ROWS 64 /* a leaf, below which clearing tables isn't worth it */

/* ---- room ---- */

int64_t
ag_combine_table_cells(int64_t n_train, int n_pairs)
{
	return (AG_MOST_TABLES + n_pairs) * INT64_C(256) * (n_train > AG_NARROW_ROWS ? 3 : 1);
}

AgStatus
ag_combine_sums_create(AgCombiner *combiner)
{
	const AgContext *ctx = combiner->ctx;
	AgCombineSums *sums;

	combiner->n_threads = ag_pool_size(ctx->pool);
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *sums, &combiner->sums));
	sums = combiner->sums;
	AG_TRY(
		ag_get(ctx, (size_t) combiner->data->bins->n_rows, sizeof *sums->leaf_of, &sums->leaf_of));
	AG_TRY(ag_get_zeroed(ctx, (size_t) combiner->n_threads, sizeof *sums->cells, &sums->cells));
	for (int t = 0; t < combiner->n_threads; t++)
		AG_TRY(ag_get(ctx,
					  (size_t) ag_combine_table_cells(combiner->data->n_train, combiner->row_bytes),
					  sizeof(int64_t), &sums->cells[t]));
	return AG_OK;
}

void
ag_combine_sums_free(AgCombiner *combiner)
{
	AgMem *mem = combiner->ctx->mem;
	AgCombineSums *sums = combiner->sums;

	if (sums == NULL)
		return;
	for (int t = 0; sums->cells != NULL && t < combiner->n_threads; t++)
		ag_mem_free(mem, sums->cells[t]);
	ag_mem_free(mem, sums->cells);
	ag_mem_free(mem, sums->leaf_of);
	ag_mem_free(mem, sums);
}

/* ---- sums ---- */

typedef int64_t AgStatSums[AG_STAT_BINS + 1]; /* by bin, from 1 on */

static inline int64_t
widened(uint32_t packed)
{
	return (int64_t) ag_packed_g(packed) * (INT64_C(1) << 32) + ag_packed_h(packed);
}

static inline void
add_narrow(int64_t cell, int64_t *g, int64_t *h)
{
	int64_t low = (int64_t) (cell & INT64_C(0xffffffff));

	*h += low;
	*g += (cell - low) >> 32;
}

/* Sums of one leaf's rows by bin. */
static void
add_leaf_rows(const AgCombiner *combiner, const AgCombined *combined, const AgRowList *list,
			  int64_t n_rows, AgStatSums *g, AgStatSums *h)
{
	const uint8_t *bytes = combined->bytes[combiner->permutation];
	int n_stats = combiner->n_stats;
	int64_t cells[AG_STAT_MOST][AG_STAT_BINS + 1];

	for (int64_t at = 0; at < n_rows; at += AG_NARROW_ROWS)
	{
		int64_t end = at + AG_NARROW_ROWS < n_rows ? at + AG_NARROW_ROWS : n_rows;

		memset(cells, 0, (size_t) n_stats * sizeof *cells);
		for (int64_t i = at; i < end; i++)
		{
			const uint8_t *row = bytes + (int64_t) list->ids[i] * combiner->row_bytes;
			int64_t step = widened(list->grads[list->ids[i]]);

			for (int s = 0; s < n_stats; s++)
				cells[s][ag_combined_bin(row, s)] += step;
		}
		for (int s = 0; s < n_stats; s++)
			for (int b = 1; b <= AG_STAT_BINS; b++)
				add_narrow(cells[s][b], &g[s][b], &h[s][b]);
	}
}

/*
 * Rows [begin, end) as they lie, each into its leaf's tables of pairs: nothing is looked up by a list. n_pairs is a constant
 * where it is inlined.
 */
static inline __attribute__((always_inline)) void
add_pairs(const uint16_t *leaf_of, const uint8_t *bytes, const uint32_t *grads, int n_pairs,
		  int64_t begin, int64_t end, int64_t *cells)
{
	for (int64_t row = begin; row < end; row++)
	{
		int64_t *at = cells + (size_t) leaf_of[row] * (size_t) n_pairs * AG_PAIR_BINS;
		int64_t step = widened(grads[row]);

		for (int q = 0; q < n_pairs; q++)
			at[q * AG_PAIR_BINS + bytes[row * n_pairs + q]] += step;
	}
}

/* All rows into the thread's tables, those of no leaf into ones of their own; *is_wide: in the wide ones, g and then h. */
static void
add_all_rows(const AgCombiner *combiner, const AgCombined *combined, const AgGrower *grower,
			 int64_t *cells, bool *is_wide)
{
	const uint8_t *bytes = combined->bytes[combiner->permutation];
	const uint16_t *leaf_of = combiner->sums->leaf_of;
	const uint32_t *grads = grower->lists[0].grads;
	int64_t n_rows = combiner->data->bins->n_rows;
	int n_pairs = combiner->row_bytes;
	int64_t n_cells = (int64_t) (grower->n_leaves + 1) * n_pairs * AG_PAIR_BINS;
	int64_t *g = cells + n_cells, *h = g + n_cells;

	*is_wide = n_rows > AG_NARROW_ROWS && combiner->data->n_train > AG_NARROW_ROWS;
	memset(cells, 0, (size_t) (*is_wide ? 3 * n_cells : n_cells) * sizeof *cells);
	for (int64_t at = 0; at < n_rows; at += AG_NARROW_ROWS)
	{
		int64_t end = at + AG_NARROW_ROWS < n_rows ? at + AG_NARROW_ROWS : n_rows;

		if (n_pairs == 1)
			add_pairs(leaf_of, bytes, grads, 1, at, end, cells);
		else if (n_pairs == 2)
			add_pairs(leaf_of, bytes, grads, 2, at, end, cells);
		else
			add_pairs(leaf_of, bytes, grads, n_pairs, at, end, cells);
		if (!*is_wide)
			continue;
		for (int64_t c = 0; c < n_cells; c++)
			add_narrow(cells[c], &g[c], &h[c]);
		memset(cells, 0, (size_t) n_cells * sizeof *cells);
	}
}

/* A table of pairs: sums by the lower half of its byte and by the upper one. */
static void
part_pairs(const int64_t *table, int64_t *low, int64_t *high)
{
	memset(low, 0, AG_STAT_BINS * sizeof *low);
	for (int u = 0; u < AG_STAT_BINS; u++)
	{
		int64_t sum = 0;

		for (int l = 0; l < AG_STAT_BINS; l++)
		{
			low[l] += table[u * AG_STAT_BINS + l];
			sum += table[u * AG_STAT_BINS + l];
		}
		high[u] = sum;
	}
}

/* One leaf's sums of the two statistics of pair q. */
static void
read_pair(const int64_t *cells, int64_t n_cells, int64_t at, bool is_wide, AgStatSums *g,
		  AgStatSums *h, bool has_second)
{
	int64_t low[AG_STAT_BINS], high[AG_STAT_BINS];

	if (is_wide)
	{
		part_pairs(cells + n_cells + at, g[0] + 1, high);
		if (has_second)
			memcpy(g[1] + 1, high, sizeof high);
		part_pairs(cells + 2 * n_cells + at, h[0] + 1, high);
		if (has_second)
			memcpy(h[1] + 1, high, sizeof high);
		return;
	}
	part_pairs(cells + at, low, high);
	for (int b = 0; b < AG_STAT_BINS; b++)
		add_narrow(low[b], &g[0][b + 1], &h[0][b + 1]);
	for (int b = 0; has_second && b < AG_STAT_BINS; b++)
		add_narrow(high[b], &g[1][b + 1], &h[1][b + 1]);
}

/* May this level's rows be read as they lie? */
static bool
suits_order(const AgCombiner *combiner, const AgGrower *grower)
{
	return (int64_t) grower->n_leaves * combiner->row_bytes <= AG_MOST_TABLES &&
		   combiner->data->bins->n_rows <= 2 * combiner->data->n_train &&
		   combiner->data->n_train >= (int64_t) AG_TABLE_ROWS * grower->n_leaves;
}

void
ag_combine_note_leaves(AgCombiner *combiner, const AgGrower *grower)
{
	AgCombineSums *sums = combiner->sums;
	int64_t n_rows = combiner->data->bins->n_rows;

	sums->is_by_row = suits_order(combiner, grower);
	if (!sums->is_by_row)
		return;
	for (int64_t row = 0; row < n_rows; row++)
		sums->leaf_of[row] = (uint16_t) grower->n_leaves;
	for (int l = 0; l < grower->n_leaves; l++)
	{
		const AgGrownLeaf *leaf = grower->leaves + l;
		const uint32_t *ids = grower->lists[leaf->list].ids + leaf->begin;

		for (int64_t i = 0; i < leaf->n_rows; i++)
			sums->leaf_of[ids[i]] = (uint16_t) l;
	}
}

/* ---- scores ---- */

double
ag_combine_weight(const AgCombiner *combiner, double n_codes, bool is_used)
{
	if (is_used || combiner->size_penalty <= 0.0)
		return 1.0;
	return ag_exp(-combiner->size_penalty * ag_ln(1.0 + n_codes / combiner->most_codes));
}

/* The best cut of one statistic, with noise as in grow_symmetric.c, against the best of those before. */
static void
score_stat(const AgCombineTask *task, AgCombined *combined, int s, uint64_t key, const double *nums,
		   const double *dens, const int64_t *rows)
{
	const AgCombiner *combiner = task->combiner;
	double noise = task->level->rules->noise, best = 0.0, best_plain = 0.0;
	int64_t left = 0, total = 0;
	int cut = -1;

	key = ag_key(key, (uint64_t) s);
	for (int b = 0; b <= AG_STAT_BINS; b++)
		total += rows[b];
	for (int b = 1; b < combined->features[s].n_bins; b++)
	{
		double plain, score;

		left += rows[b];
		if (left == 0 || left == total)
			continue;
		plain = ag_level_score(nums[b], dens[b], task->level->grower->growth.has_cosine_score);
		score = plain + (noise > 0.0 ? noise * ag_level_noise(key, (uint64_t) b) : 0.0);
		if (cut >= 0 && !(score > best))
			continue;
		best = score;
		best_plain = plain;
		cut = b;
	}
	if (cut < 0)
		return;
	if (noise > 0.0)
		best_plain += noise * ag_level_noise(key, AG_STAT_BINS + 1);
	best_plain *= ag_combine_weight(combiner, combined->n_codes, combined->number >= 0);
	if (combined->best_stat >= 0 && !(best_plain > combined->best_score))
		return;
	combined->best_stat = s;
	combined->best_cut = cut;
	combined->best_score = best_plain;
}

/* One leaf's sums by each statistic's bins. */
static void
sum_leaf(const AgCombineTask *task, const AgCombined *combined, const AgGrownLeaf *leaf,
		 const int64_t *cells, bool is_wide, AgStatSums *g, AgStatSums *h)
{
	const AgCombiner *combiner = task->combiner;
	const AgGrower *grower = task->level->grower;
	AgRowList list = {grower->lists[leaf->list].ids + leaf->begin, grower->lists[leaf->list].grads};
	int64_t n_cells = (int64_t) (grower->n_leaves + 1) * combiner->row_bytes * AG_PAIR_BINS;
	int64_t l = leaf - grower->leaves;

	memset(g, 0, (size_t) combiner->n_stats * sizeof *g);
	memset(h, 0, (size_t) combiner->n_stats * sizeof *h);
	if (cells == NULL)
	{
		add_leaf_rows(combiner, combined, &list, leaf->n_rows, g, h);
		return;
	}
	for (int q = 0; q < combiner->row_bytes; q++)
		read_pair(cells, n_cells, (l * combiner->row_bytes + q) * AG_PAIR_BINS, is_wide, g + 2 * q,
				  h + 2 * q, 2 * q + 1 < combiner->n_stats);
}

/* The same merits by ordered boosting; all: how many rows are in each bin. */
static void
add_ordered(const AgCombineTask *task, const AgCombined *combined, int thread, int s, double *nums,
			double *dens, int64_t *all)
{
	const AgCombiner *combiner = task->combiner;
	const AgGrower *grower = task->level->grower;
	const AgOrdered *ordered = grower->ordered;
	const uint8_t *bytes = combined->bytes[combiner->permutation];
	uint8_t *bins = ordered->bins[thread];

	for (int64_t row = 0; row < combiner->data->bins->n_rows; row++)
		bins[row] = (uint8_t) ag_combined_bin(bytes + row * combiner->row_bytes, s);
	for (int64_t i = 0; i < combiner->data->n_train; i++)
		all[bins[combiner->data->train_rows[i]]]++;
	ag_ordered_score(ordered, grower, combined->features + s, bins, task->level->rules->l2, thread,
					 nums, dens);
}

/* Scores of all its cuts, and the best. */
void
ag_combine_score(const AgCombineTask *task, AgCombined *combined, int thread)
{
	AgCombiner *combiner = task->combiner;
	const AgGrower *grower = task->level->grower;
	double nums[AG_STAT_MOST][AG_STAT_BINS + 1] = {{0}};
	double dens[AG_STAT_MOST][AG_STAT_BINS + 1] = {{0}};
	AgStatSums all[AG_STAT_MOST] = {{0}}, g[AG_STAT_MOST], h[AG_STAT_MOST];
	uint64_t key = ag_key(task->level->key, combined->hash);
	int64_t *cells = combiner->sums->is_by_row ? combiner->sums->cells[thread] : NULL;
	bool is_wide = false;

	for (int s = 0; grower->ordered != NULL && s < combiner->n_stats; s++)
		add_ordered(task, combined, thread, s, nums[s], dens[s], all[s]);
	if (grower->ordered == NULL && cells != NULL && !ag_cancelled(grower->ctx))
		add_all_rows(combiner, combined, grower, cells, &is_wide);
	for (int l = 0; grower->ordered == NULL && l < grower->n_leaves; l++)
	{
		const AgGrownLeaf *leaf = grower->leaves + l;

		if (leaf->n_rows == 0 || ag_cancelled(grower->ctx))
			continue;
		sum_leaf(task, combined, leaf, cells, is_wide, g, h);
		for (int s = 0; s < combiner->n_stats; s++)
		{
			ag_level_add(grower->level, combined->features + s, g[s], h[s], task->level->rules->l2,
						 nums[s], dens[s]);
			for (int b = 0; b <= AG_STAT_BINS; b++)
				all[s][b] += h[s][b];
		}
	}
	combined->best_stat = -1;
	for (int i = 0; i < combiner->n_stats; i++)
		score_stat(task, combined, i, key, nums[i], dens[i], all[i]);
}
