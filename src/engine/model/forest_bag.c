/*
 * forest_bag.c - what one tree is grown on: its rows, and an order for each category's levels.
 *
 * The order is made from the tree's own rows, so that out-of-bag rows are judged by levels that haven't seen them.
 * A level of few rows isn't ordered by their target, for its place would tell them apart by their own labels; and in
 * half of the trees none is: in the mean over tables both orders together did better than either (test/bench/RESULTS.md).
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/forest_private.h"

/* Levels of fewer rows are ordered without regard to the target. */
#define LEVEL_ROWS 5

/* Draws between two looks at the cancel flag. */
#define DRAWS_AT_A_TIME 1000000

enum
{
	KEY_ROWS = 1,
	KEY_HALVES = 2
};

static void
draw_repeats(AgForestWorker *worker, uint64_t key)
{
	const AgForest *forest = worker->forest;
	uint32_t n = (uint32_t) forest->data->n_train;
	uint8_t *repeats = worker->repeats;

	if (!forest->params->bootstrap)
	{
		memset(repeats, 1, n);
		return;
	}
	memset(repeats, 0, n);
	for (int64_t i = 0; i < forest->n_draws; i++)
	{
		uint32_t row = ag_random_below(key, (uint64_t) i, n);

		repeats[row] = (uint8_t) (repeats[row] + (repeats[row] < 255));
		if (i % DRAWS_AT_A_TIME == DRAWS_AT_A_TIME - 1 && ag_cancelled(forest->ctx))
			return;
	}
}

/* The rows that were drawn and have a weight. */
static void
list_rows(AgForestWorker *worker)
{
	const AgTrainData *data = worker->forest->data;
	const uint32_t *weights = worker->forest->weights;

	worker->n_rows = 0;
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t id = data->train_rows[i];
		uint64_t load = worker->repeats[i];

		if (load == 0 || (weights != NULL && weights[id] == 0))
			continue;
		if (data->problem != AG_PROBLEM_REGRESSION)
			load |= (uint64_t) (uint32_t) data->class_of[id] << 8;
		worker->rows[worker->n_rows++] = load << 32 | id;
	}
}

/*
 * class_weight: a row of the rarest class keeps its weight, those of the others lose what makes their class as heavy; only
 * proportions count. The bits are such that the sum of all products of weight, repeats and factor is below 2^63.
 */
static void
weigh_classes(AgForestWorker *worker)
{
	const AgForest *forest = worker->forest;
	const int64_t *n_rows = forest->class_rows;
	double unit = ldexp(1.0, forest->weights == NULL ? 30 : 24);
	int64_t least = INT64_MAX;

	if (n_rows == NULL)
		return;
	if (forest->params->class_weight == AG_CLASS_WEIGHT_SUBSAMPLE)
	{
		n_rows = worker->class_rows;
		memset(worker->class_rows, 0, (size_t) forest->n_classes * sizeof *n_rows);
		for (int64_t i = 0; i < worker->n_rows; i++)
			worker->class_rows[ag_forest_class(worker->rows[i])] += worker->rows[i] >> 32 & 255u;
	}
	for (int k = 0; k < forest->n_classes; k++)
		if (n_rows[k] > 0 && n_rows[k] < least)
			least = n_rows[k];
	for (int k = 0; k < forest->n_classes; k++)
	{
		double factor = n_rows[k] > 0 ? unit * (double) least / (double) n_rows[k] : 0.0;

		worker->factors[k] = factor < 1.0 ? 1 : (uint32_t) (factor + 0.5);
	}
}

static int64_t
sum_weights(const AgForestWorker *worker)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < worker->n_rows; i++)
		sum += ag_forest_weight(worker, worker->rows[i]);
	return sum;
}

/* Sums of a tree's weights must stay below 2^31; a row drawn often may carry more than its share. */
static void
weigh_rows(AgForestWorker *worker)
{
	int64_t whole;

	worker->shift = 0;
	whole = worker->weight = sum_weights(worker);
	if (worker->forest->weights == NULL && worker->factors == NULL)
		return;
	while (worker->weight > INT32_MAX)
	{
		do /* by as much as is sure to be needed; what is cut off a row is less than 1 */
			worker->shift++;
		while ((whole >> worker->shift) - worker->n_rows > INT32_MAX);
		worker->weight = sum_weights(worker);
	}
}

/* A row's target as the order of levels sees it: a number, or in which half its class is. */
static int64_t
target_of(const AgForest *forest, uint64_t row, uint64_t halves)
{
	if (!forest->is_classes)
		return forest->values[(uint32_t) row] >> 31;
	if (forest->n_classes == 2)
		return ag_forest_class(row);
	return (int64_t) (ag_random_u64(halves, ag_forest_class(row)) & 1);
}

/*
 * Ranks 1.. of the bins of category f: levels of enough rows by their mean target, in half of the trees, then the others
 * by their bins, which are by frequency. The missing bin keeps 0.
 */
static void
rank_levels(AgForestWorker *worker, int f, uint64_t halves, uint8_t *ranks)
{
	const AgForest *forest = worker->forest;
	const AgBins *bins = forest->data->bins;
	const uint8_t *column = bins->columns + f * bins->column_stride;
	int n_bins = bins->features[f].n_bins, n_large = 0, n_ranks = 0;
	bool is_by_target = (ag_random_u64(halves, UINT64_MAX) & 1) != 0;
	int64_t sums[AG_FOREST_BINS] = {0}, weights[AG_FOREST_BINS] = {0};
	uint32_t n_rows[AG_FOREST_BINS] = {0};
	double means[AG_FOREST_BINS];
	uint8_t order[AG_FOREST_BINS];

	for (int64_t i = 0; i < worker->n_rows; i++)
	{
		uint64_t row = worker->rows[i];
		int64_t weight = ag_forest_weight(worker, row);
		uint8_t bin = column[(uint32_t) row];

		n_rows[bin]++;
		weights[bin] += weight;
		sums[bin] += weight * target_of(forest, row, halves);
	}
	memset(ranks, 0, AG_FOREST_BINS);
	for (int b = 1; b <= n_bins; b++)
	{
		int at = n_large;

		if (!is_by_target || n_rows[b] < LEVEL_ROWS)
			continue;
		means[b] = (double) sums[b] / (double) weights[b];
		for (; at > 0 && means[order[at - 1]] > means[b]; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t) b;
		n_large++;
	}
	for (; n_ranks < n_large; n_ranks++)
		ranks[order[n_ranks]] = (uint8_t) (n_ranks + 1);
	for (int b = 1; b <= n_bins; b++)
		if (ranks[b] == 0)
			ranks[b] = (uint8_t) ++n_ranks;
}

AgStatus
ag_forest_bag(AgForestWorker *worker, uint64_t key, AgForestTree *tree)
{
	const AgForest *forest = worker->forest;
	int64_t n = forest->data->n_train;

	draw_repeats(worker, ag_key(key, KEY_ROWS));
	if (ag_cancelled(forest->ctx))
		return AG_OK;
	list_rows(worker);
	if (worker->n_rows == 0) /* all weight is on rows that weren't drawn: they are what there is */
	{
		memset(worker->repeats, 1, (size_t) n);
		list_rows(worker);
	}
	if (ag_cancelled(forest->ctx))
		return AG_OK;
	weigh_classes(worker);
	weigh_rows(worker);
	for (int f = 0; f < forest->data->bins->n_features; f++)
		if (forest->rank_of[f] >= 0 && !ag_cancelled(forest->ctx))
			rank_levels(worker, f, ag_key(ag_key(key, KEY_HALVES), (uint64_t) f),
						worker->ranks + forest->rank_of[f] * AG_FOREST_BINS);
	if (!forest->params->bootstrap || !forest->params->wants_oob)
		return AG_OK;
	tree->out_of_bag = ag_mem_zalloc(forest->ctx->mem, (size_t) (n + 7) / 8, 1);
	if (tree->out_of_bag == NULL)
		return AG_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++)
		tree->out_of_bag[i >> 3] |= (uint8_t) ((worker->repeats[i] == 0) << (i & 7));
	return AG_OK;
}
