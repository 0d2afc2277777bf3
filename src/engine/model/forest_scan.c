/*
 * forest_scan.c - the best cut of one feature in a node.
 *
 * Rows are added up by bin, and the bins that have any are gone through in order. A node of few rows never touches all
 * 255 of them: it keeps a bit for each one that it fills. Of equal scores the feature drawn first wins, then
 * missing values on the right, then the lowest bin.
 */
#include <math.h>
#include <string.h>

#include "engine/model/forest_private.h"

/* With fewer rows than this bins are marked as they are filled. */
#define FEW_ROWS 256
/* A table of classes by bins is worth its emptying from this many rows a class on. */
#define ROWS_PER_CLASS 12
#define CELL_CLASSES (AG_FOREST_CELLS / AG_FOREST_BINS)

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t
bin_at(const AgForestColumn *column, uint64_t row, bool has_ranks)
{
	uint8_t bin = column->bytes[(int64_t) (uint32_t) row * column->step];

	return has_ranks ? column->ranks[bin] : bin;
}

static bool
wants_rows(const AgForestWorker *worker)
{
	return worker->forest->min_rows_leaf > 1;
}

/* ---- two sums a row: PAIR and NUMBERS ---- */

static inline void
take_group(AgForestWorker *worker, int bin, bool is_pair)
{
	int at = worker->n_groups++;
	uint64_t cell = worker->cells[bin];

	worker->group_bins[at] = (uint8_t) bin;
	if (is_pair)
	{
		worker->group_sums[at] = (uint32_t) cell;
		worker->group_weights[at] = (int64_t) (cell >> 32);
		worker->group_rows[at] = worker->cell_rows[bin];
		worker->cell_rows[bin] = 0;
	}
	else
	{
		worker->group_sums[at] = worker->cell_sums[bin];
		worker->group_weights[at] = (uint32_t) cell;
		worker->group_rows[at] = (int64_t) (cell >> 32);
		worker->cell_sums[bin] = 0;
	}
	worker->cells[bin] = 0;
}

INLINE void
group_few(AgForestWorker *worker, const AgForestColumn *column, bool is_pair, bool has_ranks)
{
	const AgForestView *view = &worker->view;
	uint64_t bits[4] = {0, 0, 0, 0};

	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint32_t bin = bin_at(column, view->rows[i], has_ranks);

		worker->cells[bin] += worker->pairs[i];
		if (!is_pair)
			worker->cell_sums[bin] += worker->sums[i];
		bits[bin >> 6] |= UINT64_C(1) << (bin & 63);
	}
	if (is_pair && wants_rows(worker))
		for (int64_t i = 0; i < view->n_rows; i++)
			worker->cell_rows[bin_at(column, view->rows[i], has_ranks)]++;
	for (int word = 0; word < 4; word++)
		for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
			take_group(worker, 64 * word + __builtin_ctzll(rest), is_pair);
}

/* Two tables take turns, so that runs of one bin don't wait for each other. */
INLINE void
group_many(AgForestWorker *worker, const AgForestColumn *column, bool is_pair, bool has_ranks,
		   int n_bins)
{
	const AgForestView *view = &worker->view;
	int64_t i = 0;

	if (is_pair)
		for (; i + 1 < view->n_rows; i += 2)
		{
			worker->cells[bin_at(column, view->rows[i], has_ranks)] += worker->pairs[i];
			worker->cells[AG_FOREST_BINS + bin_at(column, view->rows[i + 1], has_ranks)] +=
				worker->pairs[i + 1];
		}
	for (; i < view->n_rows; i++)
	{
		uint32_t bin = bin_at(column, view->rows[i], has_ranks);

		worker->cells[bin] += worker->pairs[i];
		if (!is_pair)
			worker->cell_sums[bin] += worker->sums[i];
	}
	if (is_pair && wants_rows(worker))
		for (i = 0; i < view->n_rows; i++)
			worker->cell_rows[bin_at(column, view->rows[i], has_ranks)]++;
	for (int bin = 0; bin <= n_bins; bin++)
	{
		worker->cells[bin] += worker->cells[AG_FOREST_BINS + bin];
		worker->cells[AG_FOREST_BINS + bin] = 0;
		if (worker->cells[bin] != 0)
			take_group(worker, bin, is_pair);
	}
}

static void
group_pairs(AgForestWorker *worker, int f)
{
	AgForestColumn column = ag_forest_column(worker, f, worker->view.n_rows);
	int n_bins = worker->forest->data->bins->features[f].n_bins;
	bool is_pair = worker->view.kind == AG_FOREST_PAIR, has_ranks = column.ranks != NULL;

	worker->n_groups = 0;
	if (worker->view.n_rows < FEW_ROWS)
	{
		if (is_pair && has_ranks)
			group_few(worker, &column, true, true);
		else if (is_pair)
			group_few(worker, &column, true, false);
		else if (has_ranks)
			group_few(worker, &column, false, true);
		else
			group_few(worker, &column, false, false);
	}
	else if (is_pair && has_ranks)
		group_many(worker, &column, true, true, n_bins);
	else if (is_pair)
		group_many(worker, &column, true, false, n_bins);
	else if (has_ranks)
		group_many(worker, &column, false, true, n_bins);
	else
		group_many(worker, &column, false, false, n_bins);
}

/* ---- what the scans of either kind share ---- */

static bool
has_limits(const AgForestWorker *worker)
{
	return wants_rows(worker) || worker->forest->params->min_weight_fraction_leaf > 0.0;
}

/* A cut after group i. */
static void
take_cut(const AgForestWorker *worker, int f, int i, double score, int64_t left_weight,
		 bool missing_left, AgForestSplit *best)
{
	best->is_perfect = false;
	best->score = score;
	best->feature = f;
	best->low = worker->group_bins[i];
	best->high = i + 1 < worker->n_groups ? worker->group_bins[i + 1] : 255;
	best->has_missing = worker->group_bins[0] == 0;
	best->missing_left = missing_left;
	best->left_weight = left_weight;
}

static void
scan_pairs(const AgForestWorker *worker, int f, bool missing_left, AgForestSplit *best)
{
	const AgForest *forest = worker->forest;
	const AgForestView *view = &worker->view;
	int first = worker->group_bins[0] == 0;
	int end = first && !missing_left ? worker->n_groups : worker->n_groups - 1;
	bool is_entropy = forest->is_entropy, limited = has_limits(worker);
	int64_t sum = 0, weight = 0, n_rows = 0;
	int best_at = -1;
	int64_t best_sum = 0, best_weight = 0;
	double best_score = best->score;

	for (int i = missing_left ? 0 : first; i < end; i++)
	{
		double score;

		sum += worker->group_sums[i];
		weight += worker->group_weights[i];
		n_rows += worker->group_rows[i];
		if ((limited && !ag_forest_is_allowed(worker, wants_rows(worker) ? n_rows : 1, weight)) ||
			i < first)
			continue;
		score = is_entropy ? ag_forest_entropy_score(forest, view, sum, weight)
						   : ag_forest_ratio_score(view, sum, weight);
		if (!(score > best_score))
			continue;
		best_score = score;
		best_at = i;
		best_sum = sum;
		best_weight = weight;
	}
	if (best_at < 0)
		return;
	take_cut(worker, f, best_at, best_score, best_weight, missing_left, best);
	best->is_perfect = ag_forest_is_perfect(view, best_sum, best_weight);
}

/* ---- a sum a class ---- */

INLINE void
add_weight(AgForestWorker *worker, AgForestLeft *left, uint32_t k, int64_t weight, bool is_entropy)
{
	int64_t before = worker->lefts[k], total = worker->totals[k], after = before + weight;

	if (is_entropy)
	{
		const AgForest *forest = worker->forest;

		left->squares += ag_forest_log(forest, after) - ag_forest_log(forest, before);
		left->products +=
			ag_forest_log(forest, total - after) - ag_forest_log(forest, total - before);
	}
	else
	{
		left->squares += weight * (before + after);
		left->products += weight * total;
	}
	worker->lefts[k] = after;
	left->weight += weight;
}

INLINE void
add_group(AgForestWorker *worker, AgForestLeft *left, int i, bool has_cells, bool is_entropy)
{
	int bin = worker->group_bins[i];
	int n_classes = worker->view.n_classes;

	left->n_rows += worker->group_rows[i];
	if (!has_cells)
	{
		for (uint32_t at = worker->heads[bin]; at != UINT32_MAX; at = worker->next[at])
			add_weight(worker, left, worker->classes[at], worker->weights[at], is_entropy);
		return;
	}
	for (int k = 0; k < n_classes; k++)
	{
		uint32_t weight = worker->class_cells[bin * n_classes + k];

		if (weight != 0)
			add_weight(worker, left, (uint32_t) k, weight, is_entropy);
	}
}

INLINE void
scan_classes(AgForestWorker *worker, int f, bool missing_left, bool has_cells, bool is_entropy,
			 AgForestSplit *best)
{
	const AgForest *forest = worker->forest;
	const AgForestView *view = &worker->view;
	int first = worker->group_bins[0] == 0;
	int end = first && !missing_left ? worker->n_groups : worker->n_groups - 1;
	bool limited = has_limits(worker);
	AgForestLeft left = {0, 0, 0, 0};

	memset(worker->lefts, 0, (size_t) view->n_classes * sizeof *worker->lefts);
	for (int i = missing_left ? 0 : first; i < end; i++)
	{
		double score;

		add_group(worker, &left, i, has_cells, is_entropy);
		if ((limited &&
			 !ag_forest_is_allowed(worker, wants_rows(worker) ? left.n_rows : 1, left.weight)) ||
			i < first)
			continue;
		score = ag_forest_classes_score(forest, view, &left);
		if (score > best->score)
			take_cut(worker, f, i, score, left.weight, missing_left, best);
	}
}

static void
scan_either(AgForestWorker *worker, int f, bool missing_left, bool has_cells, AgForestSplit *best)
{
	bool is_entropy = worker->forest->is_entropy;

	if (has_cells && is_entropy)
		scan_classes(worker, f, missing_left, true, true, best);
	else if (has_cells)
		scan_classes(worker, f, missing_left, true, false, best);
	else if (is_entropy)
		scan_classes(worker, f, missing_left, false, true, best);
	else
		scan_classes(worker, f, missing_left, false, false, best);
}

/* By bin: a list of its rows, or with cells a sum a class. */
INLINE void
group_classes(AgForestWorker *worker, const AgForestColumn *column, bool has_cells, bool has_ranks)
{
	const AgForestView *view = &worker->view;
	uint32_t n_classes = (uint32_t) view->n_classes;
	uint64_t bits[4] = {0, 0, 0, 0};

	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint32_t bin = bin_at(column, view->rows[i], has_ranks);

		if (has_cells)
			worker->class_cells[bin * n_classes + worker->classes[i]] += worker->weights[i];
		else
		{
			worker->next[i] = worker->heads[bin];
			worker->heads[bin] = (uint32_t) i;
		}
		bits[bin >> 6] |= UINT64_C(1) << (bin & 63);
	}
	if (wants_rows(worker))
		for (int64_t i = 0; i < view->n_rows; i++)
			worker->cell_rows[bin_at(column, view->rows[i], has_ranks)]++;
	worker->n_groups = 0;
	for (int word = 0; word < 4; word++)
		for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
		{
			int bin = 64 * word + __builtin_ctzll(rest);

			worker->group_bins[worker->n_groups] = (uint8_t) bin;
			worker->group_rows[worker->n_groups++] = worker->cell_rows[bin];
			worker->cell_rows[bin] = 0;
		}
}

static void
clear_classes(AgForestWorker *worker, bool has_cells)
{
	int n_classes = worker->view.n_classes;

	for (int i = 0; i < worker->n_groups; i++)
	{
		int bin = worker->group_bins[i];

		if (has_cells)
			memset(worker->class_cells + bin * n_classes, 0,
				   (size_t) n_classes * sizeof *worker->class_cells);
		else
			worker->heads[bin] = UINT32_MAX;
	}
}

bool
ag_forest_scan(AgForestWorker *worker, int f, AgForestSplit *best)
{
	const AgForestView *view = &worker->view;
	bool has_cells, varies;

	if (view->kind != AG_FOREST_CLASSES)
	{
		group_pairs(worker, f);
		if (worker->n_groups < 2)
			return false;
		scan_pairs(worker, f, false, best);
		if (worker->group_bins[0] == 0)
			scan_pairs(worker, f, true, best);
		return true;
	}
	has_cells = view->n_classes <= CELL_CLASSES &&
				view->n_rows >= (int64_t) ROWS_PER_CLASS * view->n_classes;
	{
		AgForestColumn column = ag_forest_column(worker, f, view->n_rows);

		if (has_cells && column.ranks != NULL)
			group_classes(worker, &column, true, true);
		else if (has_cells)
			group_classes(worker, &column, true, false);
		else if (column.ranks != NULL)
			group_classes(worker, &column, false, true);
		else
			group_classes(worker, &column, false, false);
	}
	varies = worker->n_groups >= 2;
	if (varies)
	{
		scan_either(worker, f, false, has_cells, best);
		if (worker->group_bins[0] == 0)
			scan_either(worker, f, true, has_cells, best);
	}
	clear_classes(worker, has_cells);
	return varies;
}
