/*
 * forest_random.c - one random cut of a feature in a node (XT).
 *
 * The threshold is drawn uniformly as a value between the node's least and greatest, and the bins whose middle doesn't
 * pass it go left. A uniform draw of bins would be another distribution on anything skewed.
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/forest_private.h"

/* With fewer rows each one's value is compared. */
#define FEW_ROWS 16

/* The node's rows of one feature, cut. */
typedef struct AgRandomCut
{
	int least, most; /* bins that have rows */
	bool has_missing;
	bool is_last; /* one bin: only the missing are apart */
	int low;      /* bins up to it go left */
	double value; /* drawn */
} AgRandomCut;

/* Fills bins, and the least and greatest of those that aren't missing (255 and 0: there are none). */
static inline __attribute__((always_inline)) void
gather_bins(AgForestWorker *worker, const AgForestColumn *column, bool has_ranks, AgRandomCut *cut)
{
	const AgForestView *view = &worker->view;
	uint8_t *bins = worker->bins;
	uint8_t low = 255, high = 0, zero = 0;
	bool is_few = view->n_rows < FEW_ROWS;

	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint8_t bin = column->bytes[(int64_t) (uint32_t) view->rows[i] * column->step];
		uint8_t below;

		bins[i] = bin = has_ranks ? column->ranks[bin] : bin;
		if (!is_few)
			continue;
		below = (uint8_t) (bin - 1);
		low = below < low ? below : low;
		high = bin > high ? bin : high;
		zero |= (uint8_t) (bin == 0);
	}
	/* of many rows in a loop of its own, which is done 16 at a time */
	for (int64_t i = 0; !is_few && i < view->n_rows; i++)
	{
		uint8_t below = (uint8_t) (bins[i] - 1);

		low = below < low ? below : low;
		high = bins[i] > high ? bins[i] : high;
		zero |= (uint8_t) (bins[i] == 0);
	}
	cut->least = high == 0 ? 255 : low + 1;
	cut->most = high;
	cut->has_missing = zero != 0;
}

/* Draws the value, and sets low to the greatest bin in [least, most) whose middle doesn't pass it. */
static void
draw_value(const AgForestWorker *worker, int f, AgRandomCut *cut)
{
	const AgBinFeature *feature = worker->forest->data->bins->features + f;
	double u = ag_random_unit(worker->view.cut_key, (uint64_t) f);
	double low, high;
	int from = cut->least, to = cut->most - 1;

	if (feature->is_category)
	{
		cut->low = cut->least + (int) (u * (cut->most - cut->least));
		return;
	}
	low = feature->centers[cut->least - 1];
	high = feature->centers[cut->most - 1];
	cut->value = low + u * (high - low);
	while (from < to)
	{
		int middle = (from + to + 1) / 2;

		if (feature->centers[middle - 1] <= cut->value)
			from = middle;
		else
			to = middle - 1;
	}
	cut->low = from;
}

/* Rows on the left. */
static int64_t
count_rows(const AgForestWorker *worker, const AgRandomCut *cut, bool missing_left)
{
	const uint8_t *bins = worker->bins;
	uint32_t n_left = 0;

	for (int64_t i = 0; i < worker->view.n_rows; i++)
		n_left += bins[i] == 0 ? missing_left : bins[i] <= cut->low;
	return n_left;
}

static bool
is_allowed(const AgForestWorker *worker, const AgRandomCut *cut, bool missing_left, int64_t weight)
{
	const AgForest *forest = worker->forest;
	int64_t n_left = 1;

	if (forest->min_rows_leaf > 1)
		n_left = count_rows(worker, cut, missing_left);
	else if (forest->params->min_weight_fraction_leaf <= 0.0)
		return true;
	return ag_forest_is_allowed(worker, n_left, weight);
}

static void
offer(const AgForestWorker *worker, int f, const AgRandomCut *cut, double score, int64_t sum,
	  int64_t weight, bool missing_left, AgForestSplit *best)
{
	if (!(score > best->score) || !is_allowed(worker, cut, missing_left, weight))
		return;
	best->is_perfect = ag_forest_is_perfect(&worker->view, sum, weight);
	best->score = score;
	best->feature = f;
	best->low = cut->low;
	best->high = cut->is_last ? 255 : cut->most;
	best->value = cut->value;
	best->has_missing = cut->has_missing;
	best->missing_left = missing_left;
	best->left_weight = weight;
}

/* ---- two sums a row ---- */

/* Sums over the rows whose bin is in [from, from + n), as bytes. */
static void
sum_pairs(const AgForestWorker *worker, int from, int n, int64_t *sum, int64_t *weight)
{
	const uint8_t *bins = worker->bins;
	int64_t n_rows = worker->view.n_rows;
	uint64_t cells = 0, sums = 0;

	if (worker->view.kind == AG_FOREST_PAIR)
	{
		for (int64_t i = 0; i < n_rows; i++)
			cells += worker->pairs[i] & (UINT64_C(0) - ((uint8_t) (bins[i] - from) < n));
		*sum = (int64_t) (uint32_t) cells;
		*weight = (int64_t) (cells >> 32);
		return;
	}
	for (int64_t i = 0; i < n_rows; i++)
	{
		uint64_t is_in = UINT64_C(0) - ((uint8_t) (bins[i] - from) < n);

		cells += worker->pairs[i] & is_in;
		sums += (uint64_t) worker->sums[i] & is_in;
	}
	*sum = (int64_t) sums;
	*weight = (int64_t) (uint32_t) cells;
}

static double
pair_score(const AgForestWorker *worker, int64_t sum, int64_t weight)
{
	const AgForestView *view = &worker->view;

	return worker->forest->is_entropy ? ag_forest_entropy_score(worker->forest, view, sum, weight)
									  : ag_forest_ratio_score(view, sum, weight);
}

static void
offer_pairs(const AgForestWorker *worker, int f, const AgRandomCut *cut, AgForestSplit *best)
{
	int64_t sum, weight, missing_sum, missing_weight;

	sum_pairs(worker, 1, cut->low, &sum, &weight);
	offer(worker, f, cut, pair_score(worker, sum, weight), sum, weight, false, best);
	if (!cut->has_missing || cut->is_last)
		return;
	sum_pairs(worker, 0, 1, &missing_sum, &missing_weight);
	sum += missing_sum;
	weight += missing_weight;
	offer(worker, f, cut, pair_score(worker, sum, weight), sum, weight, true, best);
}

/*
 * Numbers of few rows without a missing one: their values are compared, not their bins, and low becomes the greatest bin
 * that one of them has; the rest of the way up to the value is left for when the cut is chosen.
 */
static void
offer_few(const AgForestWorker *worker, int f, AgRandomCut *cut, AgForestSplit *best)
{
	const AgForestView *view = &worker->view;
	const double *centers = worker->forest->data->bins->features[f].centers - 1;
	bool is_pair = view->kind == AG_FOREST_PAIR;
	uint64_t cells = 0, sums = 0;
	double least = centers[cut->least];

	cut->value = least + ag_random_unit(view->cut_key, (uint64_t) f) * (centers[cut->most] - least);
	cut->low = cut->least;
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int bin = worker->bins[i];
		bool is_left = (centers[bin] <= cut->value) & (bin < cut->most);
		uint64_t mask = UINT64_C(0) - is_left;

		cut->low = is_left && bin > cut->low ? bin : cut->low;
		cells += worker->pairs[i] & mask;
		if (!is_pair)
			sums += (uint64_t) worker->sums[i] & mask;
	}
	{
		int64_t sum = is_pair ? (int64_t) (uint32_t) cells : (int64_t) sums;
		int64_t weight = is_pair ? (int64_t) (cells >> 32) : (int64_t) (uint32_t) cells;

		offer(worker, f, cut, pair_score(worker, sum, weight), sum, weight, false, best);
	}
}

/* ---- a sum a class ---- */

/* The score of the weights in lefts. */
static double
lefts_score(const AgForestWorker *worker, int64_t weight)
{
	AgForestLeft left = {.weight = weight};

	for (int k = 0; k < worker->view.n_classes; k++)
	{
		int64_t of_left = worker->lefts[k], of_all = worker->totals[k];

		if (!worker->forest->is_entropy)
		{
			left.squares += of_left * of_left;
			left.products += of_left * of_all;
			continue;
		}
		left.squares += ag_forest_log(worker->forest, of_left);
		left.products +=
			ag_forest_log(worker->forest, of_all - of_left) - ag_forest_log(worker->forest, of_all);
	}
	return ag_forest_classes_score(worker->forest, &worker->view, &left);
}

static void
offer_classes(AgForestWorker *worker, int f, const AgRandomCut *cut, AgForestSplit *best)
{
	const AgForestView *view = &worker->view;
	const uint8_t *bins = worker->bins;
	int64_t weight = 0;

	memset(worker->lefts, 0, (size_t) view->n_classes * sizeof *worker->lefts);
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t is_in = -(int64_t) ((uint8_t) (bins[i] - 1) < cut->low);

		worker->lefts[worker->classes[i]] += (int64_t) worker->weights[i] & is_in;
		weight += (int64_t) worker->weights[i] & is_in;
	}
	offer(worker, f, cut, lefts_score(worker, weight), 0, weight, false, best);
	if (!cut->has_missing || cut->is_last)
		return;
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t is_in = -(int64_t) (bins[i] == 0);

		worker->lefts[worker->classes[i]] += (int64_t) worker->weights[i] & is_in;
		weight += (int64_t) worker->weights[i] & is_in;
	}
	offer(worker, f, cut, lefts_score(worker, weight), 0, weight, true, best);
}

bool
ag_forest_draw(AgForestWorker *worker, int f, AgForestSplit *best)
{
	AgForestColumn column = ag_forest_column(worker, f, worker->view.n_rows);
	AgRandomCut cut = {.value = 0.0};

	if (column.ranks != NULL)
		gather_bins(worker, &column, true, &cut);
	else
		gather_bins(worker, &column, false, &cut);
	if (cut.most == 0 || (cut.least == cut.most && !cut.has_missing))
		return false;
	cut.is_last = cut.least == cut.most;
	if (worker->view.n_rows < FEW_ROWS && worker->view.kind != AG_FOREST_CLASSES &&
		!cut.has_missing && column.ranks == NULL)
	{
		offer_few(worker, f, &cut, best);
		return true;
	}
	cut.low = cut.most;
	if (!cut.is_last)
		draw_value(worker, f, &cut);
	if (worker->view.kind == AG_FOREST_CLASSES)
		offer_classes(worker, f, &cut, best);
	else
		offer_pairs(worker, f, &cut, best);
	return true;
}
