/*
 * boost.cu - what a booster takes on the device, and giving it back.
 */
#include "engine/model/bootstrap_maths.h"
#include "kernels/boost.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGK_SPECULATE 8 /* leaves split at a time, best first */
#define AGK_EXPAND_MOST 256
#define AGK_STEP_BYTES (INT64_C(256) << 20) /* of what a step's searches come to */
#define AGK_LEAST_LEVELS 32 /* found[] keeps the splits of a symmetric tree's levels */

/* Sizes that follow from the spec. */
struct Sizes
{
	int32_t max_nodes, most_expand, n_slots;
	int64_t n_found, n_chunks, n_cells, n_features;
	bool has_draws_of_features, must_count;
};

static Sizes
sizes_of(const AgDeviceShape *shape, const AgDeviceBoostSpec *spec)
{
	Sizes sizes = {};
	int64_t n_features = shape->n_features;
	int64_t per_node =
		2 * n_features * (int64_t) (sizeof(AgkFound) + AGK_BINS * sizeof(uint32_t) + 8);
	int64_t most = AGK_STEP_BYTES / per_node;
	bool is_symmetric = spec->order == AG_DEVICE_SYMMETRIC;

	sizes.n_features = n_features;
	sizes.n_cells = shape->n_cells;
	if (spec->order == AG_DEVICE_BEST_FIRST)
		most = most < AGK_SPECULATE ? most : AGK_SPECULATE;
	else
		most = most < AGK_EXPAND_MOST ? most : AGK_EXPAND_MOST;
	most = most < 1 ? 1 : most;
	sizes.most_expand = (int32_t) (most < spec->max_leaves ? most : spec->max_leaves);
	if (is_symmetric)
		sizes.most_expand = spec->max_leaves;
	sizes.max_nodes =
		spec->order == AG_DEVICE_BEST_FIRST ? 4 * spec->max_leaves + 2 : 2 * spec->max_leaves + 2;
	/* leaves that were split ahead of their turn have two histograms each */
	sizes.n_slots = spec->order == AG_DEVICE_BEST_FIRST ? 2 * spec->max_leaves + 2
					: is_symmetric                      ? spec->max_leaves / 2 + 1
														: spec->max_leaves + 1;
	sizes.n_found = is_symmetric ? AGK_LEAST_LEVELS : 2 * (int64_t) sizes.most_expand * n_features;
	sizes.n_chunks = spec->n_train / AGK_CHUNK_LEAST + sizes.most_expand + 1;
	sizes.has_draws_of_features = spec->fraction_bylevel < 1.0 || spec->fraction_bynode < 1.0;
	return sizes;
}

/* Everything, in one place for both the estimate and the taking: visits every array with its number of items. */
template <class Visit>
static AgDeviceStatus
each_array(AgDeviceBoost *b, const AgDeviceShape *shape, const AgDeviceBoostSpec *spec, Visit visit)
{
	Sizes sizes = sizes_of(shape, spec);
	int64_t n_rows = shape->n_rows, n_train = spec->n_train, n_valid = spec->n_valid;
	bool is_symmetric = spec->order == AG_DEVICE_SYMMETRIC;
	bool is_regression = !agk_has_classes(spec->loss);
	bool has_metric = spec->metric != AG_DEVICE_NO_METRIC;
	bool has_error_weights = spec->weight != nullptr || spec->is_relative;
	int64_t n_may_use = !sizes.has_draws_of_features ? 0
						: is_symmetric               ? AGK_LEAST_LEVELS * sizes.n_features
													 : sizes.n_found;

	AGK_TRY(visit(&b->target, is_regression ? n_rows : 0));
	AGK_TRY(visit(&b->class_of, is_regression ? 0 : n_rows));
	AGK_TRY(visit(&b->weight, spec->weight != nullptr ? n_rows : 0));
	AGK_TRY(visit(&b->scores, spec->n_outputs * n_rows));
	AGK_TRY(visit(&b->shared, spec->loss == AG_DEVICE_SOFTMAX ? n_rows : 0));
	AGK_TRY(visit(&b->valid_scores, spec->n_outputs * n_valid));
	AGK_TRY(visit(&b->best_scores, has_metric ? spec->n_outputs * n_valid : 0));
	AGK_TRY(visit(&b->metric_sums, has_metric ? 2 * (n_valid / AGK_METRIC_ROWS + 1) : 0));
	AGK_TRY(visit(&b->train_rows, n_train));
	AGK_TRY(visit(&b->valid_rows, n_valid));
	AGK_TRY(visit(&b->gradients, n_rows));
	AGK_TRY(visit(&b->drawn, spec->has_draws ? n_rows : 0));
	AGK_TRY(visit(&b->part_gg, spec->has_draws ? n_train / AG_PART_ROWS + 1 : 0));
	AGK_TRY(visit(&b->chances, spec->draw_kind == AG_BOOTSTRAP_MVS ? n_train : 0));
	for (int l = 0; l < 2; l++)
	{
		AGK_TRY(visit(&b->ids[l], n_train));
		AGK_TRY(visit(&b->grads[l], n_train));
	}
	AGK_TRY(visit(&b->values, (int64_t) sizes.max_nodes));
	AGK_TRY(visit(&b->route, (int64_t) spec->max_leaves));
	AGK_TRY(visit(&b->state, 1));
	AGK_TRY(visit(&b->nodes, (int64_t) sizes.max_nodes));
	AGK_TRY(visit(&b->level, is_symmetric ? (int64_t) sizes.max_nodes : 0));
	AGK_TRY(visit(&b->open, (int64_t) sizes.max_nodes));
	AGK_TRY(visit(&b->expand, (int64_t) sizes.most_expand));
	AGK_TRY(visit(&b->chunk_ends, (int64_t) sizes.most_expand));
	AGK_TRY(visit(&b->n_left, (int64_t) sizes.most_expand));
	AGK_TRY(visit(&b->child_slot, (int64_t) sizes.most_expand));
	AGK_TRY(visit(&b->chunk_left, sizes.n_chunks));
	AGK_TRY(visit(&b->free_slots, (int64_t) sizes.n_slots));
	AGK_TRY(visit(&b->slots, 2 * sizes.n_slots * sizes.n_cells));
	AGK_TRY(visit(&b->found, sizes.n_found));
	AGK_TRY(visit(&b->is_flagged, is_symmetric ? 0 : sizes.n_found));
	AGK_TRY(visit(&b->counts, is_symmetric ? 0 : sizes.n_found * AGK_BINS));
	AGK_TRY(visit(&b->may_use, n_may_use));
	AGK_TRY(visit(&b->drawn_features, is_symmetric ? 0 : n_may_use));
	AGK_TRY(visit(&b->is_used, sizes.n_features));
	AGK_TRY(visit(&b->monotone, spec->monotone != nullptr ? sizes.n_features : 0));
	AGK_TRY(visit(&b->error_keys, spec->renews_leaves ? n_train : 0));
	AGK_TRY(visit(&b->error_weights, spec->renews_leaves && has_error_weights ? n_train : 0));
	AGK_TRY(visit(&b->final_nodes, (int64_t) sizes.max_nodes));
	AGK_TRY(visit(&b->final_ends, (int64_t) sizes.max_nodes));
	AGK_TRY(visit(&b->feature_score, is_symmetric ? sizes.n_features : 0));
	AGK_TRY(visit(&b->feature_cut, is_symmetric ? sizes.n_features : 0));
	return visit(&b->may_cut, is_symmetric ? sizes.n_cells : 0);
}

int64_t
agk_boost_memory(const AgDeviceShape *shape, const AgDeviceBoostSpec *spec)
{
	AgDeviceBoost none = {};
	/* a bag, marks of rows that come in blocks, and scores before steps */
	int64_t n_bytes = 5 * spec->n_train + 8 * shape->n_rows;

	(void) each_array(&none, shape, spec, [&](auto *array, int64_t n) {
		n_bytes += n * (int64_t) sizeof(*array->at) + 256;
		return AG_DEVICE_OK;
	});
	return n_bytes;
}

/* scores[output][row] and valid scores[row][output] begin at base. */
__global__ void
agk_fill_scores(double *scores, int64_t n, int n_outputs, double base, int output, int by_row)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		scores[by_row ? i * n_outputs + output : output * n + i] = base;
}

static AgDeviceStatus
fill(AgDevice *device, AgDeviceBoost *b)
{
	const AgDeviceBoostSpec *spec = &b->spec;
	int64_t n_rows = b->matrix->view.n_rows;

	AGK_TRY(agk_upload(device, b->target.at, spec->target, b->target.n_bytes));
	AGK_TRY(agk_upload(device, b->class_of.at, spec->class_of, b->class_of.n_bytes));
	AGK_TRY(agk_upload(device, b->weight.at, spec->weight, b->weight.n_bytes));
	AGK_TRY(agk_upload(device, b->monotone.at, spec->monotone, b->monotone.n_bytes));
	AGK_TRY(agk_upload(device, b->train_rows.at, spec->train_rows, b->train_rows.n_bytes));
	AGK_TRY(agk_upload(device, b->valid_rows.at, spec->valid_rows, b->valid_rows.n_bytes));
	for (int k = 0; k < spec->n_outputs; k++)
	{
		AGK_LAUNCH(agk_fill_scores, agk_grid(device, n_rows, AGK_THREADS), AGK_THREADS, 0,
				   device->stream, b->scores.at, n_rows, spec->n_outputs, spec->base[k], k, 0);
		if (spec->n_valid > 0)
			AGK_LAUNCH(agk_fill_scores, agk_grid(device, spec->n_valid, AGK_THREADS), AGK_THREADS,
					   0, device->stream, b->valid_scores.at, spec->n_valid, spec->n_outputs,
					   spec->base[k], k, 1);
	}
	AGK_TRY(agk_launched(device, "starting scores"));
	return agk_wait(device);
}

/* The view that kernels of growth get. */
static void
look(AgDeviceBoost *b, const Sizes *sizes)
{
	AgkGrowth *growth = &b->growth;
	const AgDeviceBoostSpec *spec = &b->spec;

	growth->matrix = b->matrix->view;
	growth->state = b->state.at;
	growth->nodes = b->nodes.at;
	growth->level = b->level.at;
	growth->open = b->open.at;
	growth->expand = b->expand.at;
	growth->chunk_ends = b->chunk_ends.at;
	growth->n_left = b->n_left.at;
	growth->child_slot = b->child_slot.at;
	growth->chunk_left = b->chunk_left.at;
	growth->free_slots = b->free_slots.at;
	growth->slots = b->slots.at;
	growth->found = b->found.at;
	growth->is_flagged = b->is_flagged.at;
	growth->counts = b->counts.at;
	growth->may_use = b->may_use.at;
	growth->drawn = b->drawn_features.at;
	growth->is_used = b->is_used.at;
	growth->monotone = b->monotone.at;
	growth->leaf_weight = b->weight.at;
	growth->sums_weights = spec->sums_weights;
	growth->final_nodes = b->final_nodes.at;
	growth->final_ends = b->final_ends.at;
	growth->feature_score = b->feature_score.at;
	growth->feature_cut = b->feature_cut.at;
	growth->may_cut = b->may_cut.at;
	for (int l = 0; l < 2; l++)
	{
		growth->ids[l] = b->ids[l].at;
		growth->grads[l] = b->grads[l].at;
	}
	growth->max_leaves = spec->max_leaves;
	growth->max_depth = spec->max_depth;
	growth->most_expand = sizes->most_expand;
	growth->n_slots = sizes->n_slots;
	growth->max_nodes = sizes->max_nodes;
	growth->is_depthwise = spec->order == AG_DEVICE_DEPTHWISE;
	growth->is_symmetric = spec->order == AG_DEVICE_SYMMETRIC;
	growth->has_cosine_score = spec->has_cosine_score;
	growth->fraction_bylevel = spec->fraction_bylevel;
	growth->fraction_bynode = spec->fraction_bynode;
}

static AgDeviceShape
shape_of(const AgDeviceMatrix *matrix)
{
	AgDeviceShape shape = {matrix->view.n_rows, matrix->view.n_cells, matrix->view.n_features};

	return shape;
}

static AgDeviceStatus
take(AgDevice *device, AgDeviceBoost *b)
{
	AgDeviceShape shape = shape_of(b->matrix);
	Sizes sizes = sizes_of(&shape, &b->spec);
	int64_t wanted = agk_boost_memory(&shape, &b->spec);

	if (wanted > device->limit_bytes - device->used_bytes)
	{
		snprintf(device->why, sizeof(device->why),
				 "it needs %.1f MB of GPU %d, where %.1f MB of this fit's share are left",
				 (double) wanted / 1e6, device->index,
				 (double) (device->limit_bytes - device->used_bytes) / 1e6);
		return AG_DEVICE_MEMORY;
	}
	AGK_TRY(each_array(b, &shape, &b->spec,
					   [&](auto *array, int64_t n) { return agk_get(device, n, array); }));
	if (b->spec.renews_leaves)
	{
		AGK_TRY(agk_new(device, (size_t) b->spec.n_outputs, &b->levels));
		memcpy(b->levels, b->spec.levels, (size_t) b->spec.n_outputs * sizeof(double));
	}
	AGK_TRY(agk_new(device, (size_t) sizes.max_nodes, &b->host_nodes));
	AGK_TRY(agk_new(device, (size_t) sizes.max_nodes, &b->host_final));
	AGK_TRY(agk_new(device, (size_t) b->spec.max_leaves, &b->host_route));
	look(b, &sizes);
	AGK_TRY(agk_histograms_prepare(device));
	return fill(device, b);
}

AgDeviceStatus
agk_boost_create(AgDevice *device, const AgDeviceMatrix *matrix, const AgDeviceBoostSpec *spec,
				 AgDeviceBoost **created)
{
	AgDeviceBoost *b;
	AgDeviceStatus status;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	if (spec->max_leaves < 1 || spec->max_leaves > 1 << 24)
		return agk_refuse(device, "trees may have more leaves than a GPU grows");
	AGK_TRY(agk_new(device, 1, &b));
	b->matrix = matrix;
	b->spec = *spec;
	status = take(device, b);
	b->spec.target = b->spec.base = b->spec.levels = nullptr;
	b->spec.class_of = nullptr;
	b->spec.train_rows = b->spec.valid_rows = nullptr;
	if (status == AG_DEVICE_OK)
		*created = b;
	else
		agk_boost_free(device, b);
	return status;
}

void
agk_boost_free(AgDevice *device, AgDeviceBoost *b)
{
	AgDeviceShape shape;

	if (b == nullptr)
		return;
	shape = shape_of(b->matrix);
	(void) each_array(b, &shape, &b->spec, [&](auto *array, int64_t n) {
		(void) n;
		agk_give(device, array);
		return AG_DEVICE_OK;
	});
	agk_give(device, &b->bag);
	agk_give(device, &b->marks);
	agk_give(device, &b->kept_scores);
	free(b->levels);
	free(b->host_nodes);
	free(b->host_final);
	free(b->host_route);
	free(b);
}

AgDeviceStatus
agk_boost_valid(AgDevice *device, AgDeviceBoost *boost, double *scores)
{
	AGK_TRY(agk_enter(device));
	return agk_download(device, scores, boost->valid_scores.at, boost->valid_scores.n_bytes);
}
