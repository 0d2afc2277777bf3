/*
 * forest.c - a forest from end to end.
 */
#include "engine/model/forest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/forest_private.h"

#define TARGET_MAX 1e290 /* as of boosted trees: sums stay in the range of doubles */
#define CLASSES_MAX (1 << 24)
/* Weights of all rows together are below that, in fixed point. */
#define WEIGHT_BITS 30
/* Targets are smaller than that, in fixed point. */
#define VALUE_BITS 61
#define MOST_LOGS 65536
/* Bins of fewer bytes lie in the near caches whatever the order of access. */
#define NEAR_BYTES (INT64_C(512) * 1024)
/* Of the time that is left, growing gets so much; the rest is for the predictions. */
#define GROWTH_SHARE 0.92
#define PROGRESS_NS INT64_C(1000000000)

/* ---- setting up ---- */

static AgStatus
check_data(const AgContext *ctx, const AgTrainData *data, const AgForestParams *params)
{
	bool is_classes = data->problem != AG_PROBLEM_REGRESSION;
	bool is_for_numbers = params->criterion == AG_CRITERION_SQUARED_ERROR ||
						  params->criterion == AG_CRITERION_FRIEDMAN_MSE;

	if (data->n_train <= 0)
		return ag_error_set(ctx->error, AG_ERR_DATA, "no rows to train on");
	if (data->bins->rows == NULL && data->bins->n_features > 0)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "bins have no row-major copy");
	if (params->criterion != AG_CRITERION_AUTO && is_for_numbers == is_classes)
	{
		ag_error_set(ctx->error, AG_ERR_OPTION, "parameter \"criterion\" doesn't fit the label");
		ag_error_hint(ctx->error, "Classes take \"gini\", \"entropy\" or \"log_loss\", numbers "
								  "\"squared_error\" or \"friedman_mse\".");
		return AG_ERR_OPTION;
	}
	if (params->class_weight != AG_CLASS_WEIGHT_NONE && !is_classes)
		return ag_error_set(ctx->error, AG_ERR_OPTION,
							"parameter \"class_weight\" needs a label of classes");
	if (is_classes && data->n_classes > CLASSES_MAX)
		return ag_error_set(ctx->error, AG_ERR_DATA, "too many classes: %d", data->n_classes);
	for (int64_t i = 0; !is_classes && i < data->n_train; i++)
		if (!(fabs(data->target[data->train_rows[i]]) <= TARGET_MAX))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"label values beyond 1e290 are too large for a forest");
	return AG_OK;
}

/*
 * Weights in fixed point; none when they are all the same. The step is a power of 2, so that whole weights stay in
 * proportion: a row of weight 2 is two rows.
 */
static AgStatus
fix_weights(AgForest *forest)
{
	const AgTrainData *data = forest->data;
	const double *weight = data->weight;
	double least = (double) INFINITY, most = 0.0, sum = 0.0;
	int exponent, more;

	if (weight == NULL)
		return AG_OK;
	for (int64_t i = 0; i < data->n_train; i++)
	{
		least = fmin(least, weight[data->train_rows[i]]);
		most = fmax(most, weight[data->train_rows[i]]);
	}
	if (!(most > 0.0) || !isfinite(most) || !(least >= 0.0))
		return ag_error_set(forest->ctx->error, AG_ERR_DATA,
							"weights must be finite, not negative, and not all 0");
	if (least == most)
		return AG_OK;
	AG_TRY(ag_get_zeroed(forest->ctx, (size_t) data->bins->n_rows, sizeof(uint32_t),
						 &forest->weights));
	frexp(most, &exponent);
	for (int64_t i = 0; i < data->n_train; i++)
		sum += ldexp(weight[data->train_rows[i]], -exponent);
	frexp(sum, &more);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		double part = ldexp(weight[data->train_rows[i]], WEIGHT_BITS - exponent - more);

		forest->weights[data->train_rows[i]] =
			part > 0.0 && part < 1.0 ? 1 : (uint32_t) (part + 0.5);
	}
	return AG_OK;
}

static AgStatus
count_classes(AgForest *forest)
{
	const AgTrainData *data = forest->data;

	if (forest->params->class_weight == AG_CLASS_WEIGHT_NONE)
		return AG_OK;
	AG_TRY(ag_get_zeroed(forest->ctx, (size_t) forest->n_classes, sizeof(int64_t),
						 &forest->class_rows));
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t id = data->train_rows[i];

		forest->class_rows[data->class_of[id]] +=
			forest->weights == NULL || forest->weights[id] > 0;
	}
	return AG_OK;
}

/* Targets in fixed point, the largest just below 2^61. */
static AgStatus
fix_values(AgForest *forest)
{
	const AgTrainData *data = forest->data;
	double most = 0.0, scale;
	int exponent;

	AG_TRY(
		ag_get_zeroed(forest->ctx, (size_t) data->bins->n_rows, sizeof(int64_t), &forest->values));
	for (int64_t i = 0; i < data->n_train; i++)
		most = fmax(most, fabs(data->target[data->train_rows[i]]));
	frexp(most, &exponent);
	if (exponent < VALUE_BITS - 1000)
		exponent = VALUE_BITS - 1000; /* the step stays a normal number */
	forest->step = ldexp(1.0, exponent - VALUE_BITS);
	scale = ldexp(1.0, VALUE_BITS - exponent);
	AG_TRY(ag_check_cancel(forest->ctx));
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t id = data->train_rows[i];

		forest->values[id] = (int64_t) llrint(data->target[id] * scale);
	}
	forest->min_gain = forest->params->min_impurity_decrease / forest->step / forest->step;
	return AG_OK;
}

static AgStatus
find_categories(AgForest *forest)
{
	const AgBins *bins = forest->data->bins;

	AG_TRY(ag_get(forest->ctx, (size_t) bins->n_features, sizeof(int), &forest->rank_of));
	for (int f = 0; f < bins->n_features; f++)
		forest->rank_of[f] = bins->features[f].is_category ? forest->n_ranks++ : -1;
	return AG_OK;
}

static AgStatus
make_logs(AgForest *forest)
{
	forest->n_logs =
		forest->weights == NULL && forest->class_rows == NULL && forest->n_draws < MOST_LOGS
			? forest->n_draws + 2
			: MOST_LOGS;
	AG_TRY(ag_get(forest->ctx, (size_t) forest->n_logs, sizeof(int64_t), &forest->logs));
	forest->logs[0] = 0;
	for (int64_t n = 1; n < forest->n_logs; n++)
		forest->logs[n] = (int64_t) ((double) n * ag_ln((double) n) * AG_LOGS_SCALE + 0.5);
	return AG_OK;
}

/* A number of rows from one that may be a share. */
static int64_t
rows_of(double number, int64_t n)
{
	return number < 1.0 ? (int64_t) ceil(number * (double) n) : (int64_t) number;
}

static int
features_tried(const AgForest *forest)
{
	double n = forest->data->bins->n_features, tried = forest->params->max_features;

	if (tried == AG_FEATURES_AUTO)
		tried = forest->is_classes ? AG_FEATURES_SQRT : AG_FEATURES_ALL;
	if (tried == AG_FEATURES_SQRT)
		tried = floor(sqrt(n));
	else if (tried == AG_FEATURES_LOG2)
		tried = n > 0.0 ? floor(log2(n)) : 0.0;
	else if (tried == AG_FEATURES_ALL)
		tried = n;
	else if (tried <= 1.0)
		tried = floor(tried * n);
	return tried < 1.0 ? 1 : tried > n ? (int) n : (int) tried;
}

static AgStatus
create_forest(AgForest *forest)
{
	const AgTrainData *data = forest->data;
	const AgForestParams *params = forest->params;
	double draws = params->max_samples;

	AG_TRY(check_data(forest->ctx, data, params));
	forest->is_far = data->bins->n_rows * data->bins->n_features > NEAR_BYTES;
	forest->is_classes = data->problem != AG_PROBLEM_REGRESSION;
	forest->is_entropy =
		params->criterion == AG_CRITERION_ENTROPY || params->criterion == AG_CRITERION_LOG_LOSS;
	forest->n_classes = forest->is_classes ? data->n_classes : 0;
	forest->n_features_tried = features_tried(forest);
	forest->max_leaves = params->max_leaf_nodes > 0 ? params->max_leaf_nodes : INT64_MAX;
	forest->max_depth = params->max_depth > 0 ? (uint32_t) params->max_depth : UINT32_MAX;
	forest->min_rows_leaf = rows_of(params->min_samples_leaf, data->n_train);
	forest->min_rows_split = rows_of(params->min_samples_split, data->n_train);
	if (forest->min_rows_split < 2)
		forest->min_rows_split = 2;
	draws = draws <= 1.0 ? floor(draws * (double) data->n_train + 0.5) : draws;
	forest->n_draws = draws < 1.0                      ? 1
					  : draws > (double) data->n_train ? data->n_train
													   : (int64_t) draws;
	forest->min_gain = params->min_impurity_decrease;
	AG_TRY(ag_check_cancel(forest->ctx));
	AG_TRY(fix_weights(forest));
	AG_TRY(count_classes(forest));
	if (!forest->is_classes)
		AG_TRY(fix_values(forest));
	AG_TRY(find_categories(forest));
	if (forest->is_entropy)
		AG_TRY(make_logs(forest));
	forest->n_trees = params->n_estimators;
	return ag_get_zeroed(forest->ctx, (size_t) forest->n_trees, sizeof(AgForestTree),
						 &forest->trees);
}

static void
free_forest(AgForest *forest)
{
	const AgContext *ctx = forest->ctx;

	for (int t = 0; forest->trees != NULL && t < forest->n_trees; t++)
		ag_forest_tree_free(ctx, &forest->trees[t]);
	ag_mem_free(ctx->mem, forest->trees);
	ag_mem_free(ctx->mem, forest->weights);
	ag_mem_free(ctx->mem, forest->class_rows);
	ag_mem_free(ctx->mem, forest->values);
	ag_mem_free(ctx->mem, forest->rank_of);
	ag_mem_free(ctx->mem, forest->logs);
}

/* ---- growing ---- */

typedef struct AgGrowing
{
	AgForest *forest;
	AgForestWorker *workers;
} AgGrowing;

void
ag_forest_report(AgForest *forest, int n_done)
{
	const AgContext *ctx = forest->ctx;
	char text[120];
	int64_t now;

	if (ctx->progress == NULL || (now = ag_clock_ns()) < forest->next_report_ns)
		return;
	forest->next_report_ns = now + PROGRESS_NS;
	snprintf(text, sizeof text, "training %s, tree %d of %d",
			 forest->params->is_extra ? "XT" : "RF", n_done, forest->n_trees);
	ag_progress(ctx, text, (double) n_done / forest->n_trees);
}

static bool
is_over(const AgForest *forest)
{
	return ag_cancelled(forest->ctx) || atomic_load(&forest->is_out_of_time) ||
		   atomic_load(&forest->is_out_of_room) || atomic_load(&forest->has_failed);
}

/* With the next tree as large as those before, the model would be too large. */
static bool
is_full(const AgForest *forest, int tree)
{
	int64_t used = atomic_load(&forest->used_bytes);

	return tree >= AG_FOREST_LEAST_TREES && used + used / tree > forest->model_bytes;
}

/* An item is a worker, which takes trees while there are any. */
static void
grow_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgGrowing *growing = arg;
	AgForest *forest = growing->forest;

	for (int64_t w = begin; w < end; w++)
		while (!is_over(forest))
		{
			int tree = atomic_fetch_add(&forest->next_tree, 1);

			if (tree >= forest->n_trees)
				break;
			if (is_full(forest, tree))
				atomic_store(&forest->is_out_of_room, true);
			else if (ag_forest_grow(&growing->workers[w], tree) == AG_OK)
				atomic_fetch_add(&forest->n_done, 1);
			else if (atomic_load(&forest->n_done) >= AG_FOREST_LEAST_TREES)
				atomic_store(&forest->is_out_of_room, true);
			else
				atomic_store(&forest->has_failed, true);
			if (thread == 0)
				ag_forest_report(forest, atomic_load(&forest->n_done));
		}
}

static int64_t
room_left(const AgContext *ctx)
{
	int64_t used = atomic_load(&ctx->mem->used_bytes);

	return ctx->mem->limit_bytes == INT64_MAX ? INT64_MAX : ctx->mem->limit_bytes - used;
}

/* As many as threads, trees and half of the memory allow. */
static int
n_workers_of(const AgForest *forest)
{
	int64_t room = room_left(forest->ctx) / 2;
	int64_t one = ag_forest_worker_memory(forest->data, forest->params);
	int n = ag_pool_size(forest->ctx->pool);

	n = n > forest->n_trees ? forest->n_trees : n;
	if (room / one < n)
		n = (int) (room / one);
	return n < 1 ? 1 : n;
}

/*
 * The trees up to the first that wasn't grown: as many asked for, without a limit, are the same ones. Where already the first
 * was cut short, all others that there are, if any.
 */
static void
pack_trees(AgForest *forest)
{
	int n = 0, n_grown = 0;
	bool has_gap = false;

	for (int t = 0; t < forest->n_trees; t++)
		n_grown += forest->trees[t].is_grown;
	if (n_grown > 1 && forest->trees[0].is_short)
		forest->trees[0].is_grown = false;
	for (int t = 0; t < forest->n_trees && forest->trees[0].is_grown; t++)
	{
		has_gap |= !forest->trees[t].is_grown;
		forest->trees[t].is_grown = forest->trees[t].is_grown && !has_gap;
	}
	for (int t = 0; t < forest->n_trees; t++)
	{
		AgForestTree tree = forest->trees[t];

		memset(&forest->trees[t], 0, sizeof tree);
		if (tree.is_grown)
			forest->trees[n++] = tree;
		else
			ag_forest_tree_free(forest->ctx, &tree);
	}
	forest->n_trees = n;
}

/* Of time and room, for the trees that come now. */
static void
set_limits(AgForest *forest)
{
	const AgContext *ctx = forest->ctx;

	forest->model_bytes = forest->params->model_bytes;
	if (forest->model_bytes <= 0)
		forest->model_bytes = room_left(ctx) / 2;
	if (ctx->deadline_ns != INT64_MAX)
	{
		int64_t now = ag_clock_ns();

		forest->deadline_ns = now + (int64_t) (GROWTH_SHARE * (double) (ctx->deadline_ns - now));
	}
}

static AgStatus
grow_trees(AgForest *forest)
{
	const AgContext *ctx = forest->ctx;
	AgGrowing growing = {.forest = forest};
	int n_workers = n_workers_of(forest);
	AgStatus status;

	AG_TRY(ag_get_zeroed(ctx, (size_t) n_workers, sizeof(AgForestWorker), &growing.workers));
	for (int w = 0; w < n_workers; w++)
		AG_GO(ag_forest_worker_create(forest, &growing.workers[w]));
	set_limits(forest);
	ag_pool_run(ctx->pool, n_workers, 1, grow_task, &growing);
	AG_GO(ag_check_cancel(ctx));
	if (atomic_load(&forest->has_failed))
		status = ag_mem_error(
			ctx->mem, (size_t) ag_forest_worker_memory(forest->data, forest->params), ctx->error);
done:
	for (int w = 0; w < n_workers; w++)
		ag_forest_worker_free(&growing.workers[w]);
	ag_mem_free(ctx->mem, growing.workers);
	return status;
}

/* ---- the result ---- */

static AgStatus
finish(AgForest *forest, AgForestResult *result)
{
	const char *why = NULL;

	pack_trees(forest);
	result->n_asked = forest->params->n_estimators;
	result->n_trees = forest->n_trees;
	result->stopped_by_time = atomic_load(&forest->is_out_of_time);
	result->stopped_by_memory =
		result->n_trees < result->n_asked && atomic_load(&forest->is_out_of_room);
	for (int t = 0; t < forest->n_trees; t++)
		result->model_bytes += ag_forest_tree_bytes(forest, &forest->trees[t]);
	if (result->stopped_by_memory)
		why = "the memory budget holds no more";
	else if (result->stopped_by_time)
		why = "the time limit passed";
	if (why != NULL)
		snprintf(result->note, sizeof result->note, "n_estimators lowered from %d to %d: %s",
				 result->n_asked, result->n_trees, why);
	AG_TRY(ag_forest_model(forest, &result->trees));
	return ag_forest_predict(forest, result);
}

AgStatus
ag_forest_train(const AgContext *ctx, const AgTrainData *data, const AgForestParams *params,
				AgForestResult *result)
{
	AgForest *forest;
	AgStatus status;

	memset(result, 0, sizeof *result);
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *forest, &forest));
	forest->ctx = ctx;
	forest->data = data;
	forest->params = params;
	forest->deadline_ns = INT64_MAX;
	forest->next_report_ns = ag_clock_ns() + PROGRESS_NS;
	AG_GO(create_forest(forest));
	if (ctx->gpu != NULL)
	{
		set_limits(forest);
		AG_GO(ag_forest_gpu_grow(forest, result));
	}
	if (!result->on_gpu)
		AG_GO(grow_trees(forest));
	AG_GO(finish(forest, result));
done:
	free_forest(forest);
	ag_mem_free(ctx->mem, forest);
	if (status != AG_OK)
		ag_forest_result_free(ctx, result);
	return status;
}

void
ag_forest_result_free(const AgContext *ctx, AgForestResult *result)
{
	ag_trees_free(result->trees);
	ag_mem_free(ctx->mem, result->valid_proba);
	ag_mem_free(ctx->mem, result->oob_proba);
	ag_mem_free(ctx->mem, result->oob_count);
	memset(result, 0, sizeof *result);
}

/* What the trees may come to: a leaf for every two rows of a bag, or max_leaf_nodes. */
static int64_t
trees_memory(const AgTrainData *data, const AgForestParams *params)
{
	double n_leaves = params->bootstrap ? 0.64 * (double) data->n_train : (double) data->n_train;
	double bytes;

	if (params->max_leaf_nodes > 0)
		n_leaves = fmin(n_leaves, params->max_leaf_nodes);
	if (params->max_depth > 0 && params->max_depth < 50)
		n_leaves = fmin(n_leaves, ldexp(1.0, params->max_depth));
	/* grown and final nodes, leaves, and what vectors take */
	bytes = (16 + 8 + 32 + 8 + (data->n_classes > 2 ? 24 : 0)) * n_leaves * params->n_estimators;
	if (params->model_bytes > 0)
		bytes = fmin(bytes, 1.7 * (double) params->model_bytes);
	return bytes < 1e18 ? (int64_t) bytes : INT64_C(1000000000000000000);
}

int64_t
ag_forest_memory(const AgTrainData *data, const AgForestParams *params, int n_threads)
{
	int64_t n_out = ag_train_outputs(data);
	int64_t bytes = trees_memory(data, params) + data->n_valid * 8 * n_out;

	bytes += n_threads * ag_forest_worker_memory(data, params);
	if (data->weight != NULL)
		bytes += 4 * data->bins->n_rows;
	if (params->class_weight != AG_CLASS_WEIGHT_NONE)
		bytes += (8 + 12 * (int64_t) n_threads) * n_out;
	if (data->problem == AG_PROBLEM_REGRESSION)
		bytes += 8 * data->bins->n_rows;
	if (params->bootstrap && params->wants_oob)
		bytes += data->n_train * (8 * n_out + 4) +
				 (int64_t) params->n_estimators * ((data->n_train + 7) / 8);
	return bytes + (INT64_C(1) << 20);
}
