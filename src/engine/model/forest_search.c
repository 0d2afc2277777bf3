/*
 * forest_search.c - a node's rows as the scans want them, and the draw of features.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/forest_private.h"

int64_t
ag_forest_log(const AgForest *forest, int64_t n)
{
	return ag_forest_log_at(forest->logs, forest->n_logs, n);
}

/* ---- views ---- */

static void
view_two(AgForestWorker *worker, AgForestView *view)
{
	int64_t weight = 0, sum = 0;

	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t w = ag_forest_weight(worker, view->rows[i]);
		int64_t of_class = w & -(int64_t) (ag_forest_class(view->rows[i]) != 0);

		worker->pairs[i] = (uint64_t) w << 32 | (uint64_t) of_class;
		weight += w;
		sum += of_class;
	}
	view->weight = weight;
	view->sum = sum;
	view->kind = sum == 0 || sum == weight ? AG_FOREST_PURE : AG_FOREST_PAIR;
}

/* Classes that occur are numbered, so that a node deep in the tree costs no more than its few classes. */
static void
view_classes(AgForestWorker *worker, AgForestView *view)
{
	const AgForest *forest = worker->forest;
	int n_classes = 0;

	view->weight = 0;
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint32_t class_of = ag_forest_class(view->rows[i]);
		uint32_t slot = worker->slot_of[class_of];
		int64_t w = ag_forest_weight(worker, view->rows[i]);

		if (slot == UINT32_MAX)
		{
			slot = (uint32_t) n_classes++;
			worker->slot_of[class_of] = slot;
			worker->class_at[slot] = class_of;
			worker->totals[slot] = 0;
		}
		worker->classes[i] = slot;
		worker->weights[i] = (uint32_t) w;
		worker->totals[slot] += w;
		view->weight += w;
	}
	view->n_classes = n_classes;
	view->kind = n_classes == 1   ? AG_FOREST_PURE
				 : n_classes == 2 ? AG_FOREST_PAIR
								  : AG_FOREST_CLASSES;
	view->squares = 0;
	for (int k = 0; k < n_classes; k++)
	{
		int64_t total = worker->totals[k];

		worker->slot_of[worker->class_at[k]] = UINT32_MAX;
		view->squares += forest->is_entropy ? ag_forest_log(forest, total) : total * total;
	}
	if (view->kind != AG_FOREST_PAIR)
		return;
	view->sum = worker->totals[1];
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		uint64_t w = worker->weights[i];

		worker->pairs[i] = w << 32 | (worker->classes[i] != 0 ? w : 0);
	}
}

/* Distances from the mean, as exact as 30 bits make them in the node's own range. */
static void
view_numbers(AgForestWorker *worker, AgForestView *view)
{
	const int64_t *values = worker->forest->values;
	__int128 sum = 0;
	int64_t weight = 0, least = INT64_MAX, most = INT64_MIN, center, range;

	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t value = values[(uint32_t) view->rows[i]];
		int64_t w = ag_forest_weight(worker, view->rows[i]);

		worker->pairs[i] = UINT64_C(1) << 32 | (uint64_t) w;
		sum += (__int128) value * w;
		weight += w;
		least = value < least ? value : least;
		most = value > most ? value : most;
	}
	view->weight = weight;
	view->kind = least == most ? AG_FOREST_PURE : AG_FOREST_NUMBERS;
	if (ag_cancelled(worker->forest->ctx))
		return;
	center = (int64_t) (sum / weight);
	range = most - center > center - least ? most - center : center - least;
	for (view->shift = 0; range >> view->shift >= INT64_C(1) << AG_FOREST_DISTANCE_BITS;)
		view->shift++;
	view->sum = 0;
	for (int64_t i = 0; i < view->n_rows; i++)
	{
		int64_t distance = (values[(uint32_t) view->rows[i]] - center) >> view->shift;

		worker->sums[i] = distance * (int64_t) (uint32_t) worker->pairs[i];
		view->sum += worker->sums[i];
	}
}

void
ag_forest_view(AgForestWorker *worker, const uint64_t *rows, int64_t n_rows)
{
	AgForestView *view = &worker->view;

	view->rows = rows;
	view->n_rows = n_rows;
	if (!worker->forest->is_classes)
		view_numbers(worker, view);
	else if (worker->forest->n_classes == 2)
		view_two(worker, view);
	else
		view_classes(worker, view);
}

/* ---- cuts ---- */

bool
ag_forest_is_allowed(const AgForestWorker *worker, int64_t left_rows, int64_t left_weight)
{
	const AgForest *forest = worker->forest;
	double least =
		forest->params->min_weight_fraction_leaf * (double) worker->weight * (1.0 - 1e-12);

	return left_rows >= forest->min_rows_leaf &&
		   worker->view.n_rows - left_rows >= forest->min_rows_leaf &&
		   (double) left_weight >= least && (double) (worker->view.weight - left_weight) >= least;
}

double
ag_forest_entropy_score(const AgForest *forest, const AgForestView *view, int64_t sum,
						int64_t weight)
{
	return ag_forest_entropy(forest->logs, forest->n_logs, view->sum, view->weight, sum, weight);
}

double
ag_forest_classes_score(const AgForest *forest, const AgForestView *view, const AgForestLeft *left)
{
	return ag_forest_of_classes(forest->is_entropy, forest->logs, forest->n_logs, view->squares,
								view->weight, left->squares, left->products, left->weight);
}

/* ---- the search ---- */

/*
 * Features are drawn until enough of them weren't constant, and on until one gives a split; a split that leaves nothing
 * to be split ends it, for no other can be better. The list of features is
 * put in order again, so that a draw depends on nothing but its key.
 */
AgForestSplit
ag_forest_search(AgForestWorker *worker, uint64_t *constants)
{
	const AgForest *forest = worker->forest;
	AgForestView *view = &worker->view;
	uint64_t key = ag_key(view->key, AG_FOREST_KEY_FEATURES);
	AgForestSplit best = {.feature = -1, .score = -(double) INFINITY};
	int *features = worker->features;
	int n = forest->data->bins->n_features, n_left = n, n_tried = 0;

	view->cut_key = ag_key(view->key, AG_FOREST_KEY_CUT);
	while (n_left > 0 && (n_tried < forest->n_features_tried || best.feature < 0) &&
		   !best.is_perfect && !ag_cancelled(forest->ctx))
	{
		int at = (int) ag_random_below(key, (uint64_t) (n - n_left), (uint32_t) n_left);
		int f = features[at];
		bool varies;

		worker->undo[n - n_left] = at;
		features[at] = features[--n_left];
		features[n_left] = f;
		if (constants != NULL && (constants[f >> 6] >> (f & 63) & 1))
			continue;
		varies = forest->params->is_extra ? ag_forest_draw(worker, f, &best)
										  : ag_forest_scan(worker, f, &best);
		n_tried += varies;
		if (!varies && constants != NULL)
			constants[f >> 6] |= UINT64_C(1) << (f & 63);
	}
	for (; n_left < n; n_left++)
	{
		int at = worker->undo[n - n_left - 1], f = features[n_left];

		features[n_left] = features[at];
		features[at] = f;
	}
	if (best.feature >= 0)
		best.gain = ag_forest_gain(view->kind, forest->is_entropy, forest->logs, forest->n_logs,
								   view->sum, view->squares, view->weight, view->shift, best.score);
	return best;
}
