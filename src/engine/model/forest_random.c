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

enum
{
	KEY_CUT = 2
};

/* The node's rows of one feature, cut. */
typedef struct AgRandomCut
{
	int low;      /* bins up to it go left */
	bool is_last; /* no value is above it: only the missing are apart */
	bool has_missing;
} AgRandomCut;

/* Fills bins; *least and *most of those that aren't missing (255 and 0: there are none). */
static void
gather(AgForestWorker *worker, int f, int *least, int *most, bool *has_missing)
{
	const AgForestView *view = &worker->view;
	AgForestColumn column = ag_forest_column(worker, f, view->n_rows);
	uint8_t *bins = worker->bins;
	uint8_t low = 255, high = 0, zero = 0;

	if (column.ranks == NULL)
		for (int64_t i = 0; i < view->n_rows; i++)
			bins[i] = column.bytes[(int64_t) (uint32_t) view->rows[i] * column.step];
	else
		for (int64_t i = 0; i < view->n_rows; i++)
			bins[i] = column.ranks[column.bytes[(int64_t) (uint32_t) view->rows[i] * column.step]];
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint8_t below = (uint8_t) (bins[i] - 1);

		low = below < low ? below : low;
		high = bins[i] > high ? bins[i] : high;
		zero |= (uint8_t) (bins[i] == 0);
	}
	*least = high == 0 ? 255 : low + 1;
	*most = high;
	*has_missing = zero != 0;
}

/* The greatest bin in [least, most) whose value doesn't pass the one drawn. */
static int
draw_bin(const AgForestWorker *worker, int f, int least, int most)
{
	const AgBinFeature *feature = worker->forest->data->bins->features + f;
	double u = ag_random_unit(ag_key(worker->view.key, KEY_CUT), (uint64_t) f);
	double low, high, value;
	int from = least, to = most - 1;

	if (feature->is_category)
		return least + (int) (u * (most - least));
	low = feature->centers[least - 1];
	high = feature->centers[most - 1];
	value = low + u * (high - low);
	while (from < to)
	{
		int middle = (from + to + 1) / 2;

		if (feature->centers[middle - 1] <= value)
			from = middle;
		else
			to = middle - 1;
	}
	return from;
}

static void
offer(const AgForestWorker *worker, int f, const AgRandomCut *cut, double score, int64_t n_rows,
	  int64_t weight, bool missing_left, AgForestSplit *best)
{
	if (!ag_forest_is_allowed(worker, n_rows, weight) || !(score > best->score))
		return;
	best->score = score;
	best->feature = f;
	best->low = cut->low;
	best->high = cut->is_last ? 255 : cut->low + 1;
	best->has_missing = cut->has_missing;
	best->missing_left = missing_left;
	best->left_weight = weight;
}

/* Rows whose bin goes left, and missing ones. */
static void
count_rows(const AgForestWorker *worker, const AgRandomCut *cut, int64_t *left, int64_t *missing)
{
	const uint8_t *bins = worker->bins;
	uint32_t n_left = 0, n_missing = 0;

	for (int64_t i = 0; i < worker->view.n_rows; i++)
	{
		n_left += (uint8_t) (bins[i] - 1) < cut->low;
		n_missing += bins[i] == 0;
	}
	*left = n_left;
	*missing = n_missing;
}

/* ---- two sums a row ---- */

/* Sums over the rows whose bin is in [from, from + n), as bytes. */
static void
sum_pairs(const AgForestWorker *worker, int from, int n, int64_t *sum, int64_t *weight)
{
	const uint8_t *bins = worker->bins;
	bool is_pair = worker->view.kind == AG_FOREST_PAIR;
	uint64_t cells = 0, sums = 0;

	for (int64_t i = 0; i < worker->view.n_rows; i++)
	{
		uint64_t is_in = UINT64_C(0) - ((uint8_t) (bins[i] - from) < n);

		cells += worker->pairs[i] & is_in;
		if (!is_pair)
			sums += (uint64_t) worker->sums[i] & is_in;
	}
	*sum = is_pair ? (int64_t) (uint32_t) cells : (int64_t) sums;
	*weight = is_pair ? (int64_t) (cells >> 32) : (int64_t) (uint32_t) cells;
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
	int64_t sum, weight, missing_sum, missing_weight, n_left, n_missing;

	count_rows(worker, cut, &n_left, &n_missing);
	sum_pairs(worker, 1, cut->low, &sum, &weight);
	offer(worker, f, cut, pair_score(worker, sum, weight), n_left, weight, false, best);
	if (!cut->has_missing || cut->is_last)
		return;
	sum_pairs(worker, 0, 1, &missing_sum, &missing_weight);
	sum += missing_sum;
	weight += missing_weight;
	offer(worker, f, cut, pair_score(worker, sum, weight), n_left + n_missing, weight, true, best);
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
	int64_t weight = 0, n_left, n_missing;

	count_rows(worker, cut, &n_left, &n_missing);
	memset(worker->lefts, 0, (size_t) view->n_classes * sizeof *worker->lefts);
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t is_in = -(int64_t) ((uint8_t) (bins[i] - 1) < cut->low);

		worker->lefts[worker->classes[i]] += (int64_t) worker->weights[i] & is_in;
		weight += (int64_t) worker->weights[i] & is_in;
	}
	offer(worker, f, cut, lefts_score(worker, weight), n_left, weight, false, best);
	if (!cut->has_missing || cut->is_last)
		return;
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t is_in = -(int64_t) (bins[i] == 0);

		worker->lefts[worker->classes[i]] += (int64_t) worker->weights[i] & is_in;
		weight += (int64_t) worker->weights[i] & is_in;
	}
	offer(worker, f, cut, lefts_score(worker, weight), n_left + n_missing, weight, true, best);
}

bool
ag_forest_draw(AgForestWorker *worker, int f, AgForestSplit *best)
{
	AgRandomCut cut;
	int least, most;

	gather(worker, f, &least, &most, &cut.has_missing);
	if (most == 0 || (least == most && !cut.has_missing))
		return false;
	cut.is_last = least == most;
	cut.low = cut.is_last ? most : draw_bin(worker, f, least, most);
	if (worker->view.kind == AG_FOREST_CLASSES)
		offer_classes(worker, f, &cut, best);
	else
		offer_pairs(worker, f, &cut, best);
	return true;
}
