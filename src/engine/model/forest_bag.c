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

/* Draws between two looks at the cancel flag. */
#define DRAWS_AT_A_TIME 1000000

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

/* class_weight. */
static void
weigh_classes(AgForestWorker *worker)
{
	const AgForest *forest = worker->forest;
	const int64_t *n_rows = forest->class_rows;
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
		worker->factors[k] = ag_forest_class_factor(n_rows[k], least, forest->weights != NULL);
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

/* Ranks of the bins of category f. */
static void
rank_levels(AgForestWorker *worker, int f, uint64_t halves, uint8_t *ranks)
{
	const AgForest *forest = worker->forest;
	const AgBins *bins = forest->data->bins;
	const uint8_t *column = bins->columns + f * bins->column_stride;
	int64_t sums[AG_FOREST_BINS] = {0}, weights[AG_FOREST_BINS] = {0};
	uint32_t n_rows[AG_FOREST_BINS] = {0};

	for (int64_t i = 0; i < worker->n_rows; i++)
	{
		uint64_t row = worker->rows[i];
		int64_t weight = ag_forest_weight(worker, row);
		uint8_t bin = column[(uint32_t) row];

		n_rows[bin]++;
		weights[bin] += weight;
		sums[bin] +=
			weight * ag_forest_level_target(row, forest->values, forest->n_classes, halves);
	}
	ag_forest_rank(bins->features[f].n_bins, ag_forest_is_by_target(halves), sums, weights, n_rows,
				   ranks);
}

AgStatus
ag_forest_bag(AgForestWorker *worker, uint64_t key, AgForestTree *tree)
{
	const AgForest *forest = worker->forest;
	int64_t n = forest->data->n_train;

	draw_repeats(worker, ag_key(key, AG_FOREST_KEY_ROWS));
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
			rank_levels(worker, f, ag_key(ag_key(key, AG_FOREST_KEY_HALVES), (uint64_t) f),
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
