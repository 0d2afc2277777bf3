/*
 * forest.cu - what a forest takes on the device, its trees batch by batch, and what comes back of them.
 */
#include "kernels/forest.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes that a tree of max_leaves has room for at first: some are grown in vain. */
#define AGK_FOREST_ROOM 8

static int64_t
most_nodes(const AgDeviceForestSpec *spec)
{
	int64_t n = 2 * spec->n_train + 2;

	if (spec->max_leaves < spec->n_train && AGK_FOREST_ROOM * spec->max_leaves + 1024 < n)
		n = AGK_FOREST_ROOM * spec->max_leaves + 1024;
	return n;
}

/* Shared memory of a block; *in_shared: the cells of classes are there too. */
static size_t
shared_of(const AgDevice *device, const AgDeviceForestSpec *spec, bool *in_shared)
{
	size_t tables = AGK_WARPS * sizeof(AgkForestTable);
	size_t cells = spec->n_classes > 2 ? (size_t) AGK_WARPS * AG_FOREST_BINS *
											 (size_t) spec->n_classes * sizeof(uint32_t)
									   : 0;

	*in_shared = tables + cells <= device->shared_bytes;
	return *in_shared ? tables + cells : tables;
}

/* Everything, in one place for both the estimate and the taking: visits every array with its number of items. */
template <class Visit>
static AgDeviceStatus
each_array(const AgDevice *device, AgDeviceForest *f, const AgDeviceShape *shape,
		   const AgDeviceForestSpec *spec, int64_t n_slots, int64_t max_nodes, bool is_streamed,
		   Visit visit)
{
	int64_t n_rows = shape->n_rows, n_features = shape->n_features;
	int64_t n_cells = n_slots * AGK_WARPS * AG_FOREST_BINS * spec->n_classes;
	bool is_numbers = spec->n_classes == 0, in_shared;

	(void) shared_of(device, spec, &in_shared);
	AGK_TRY(visit(&f->train_rows, spec->n_train));
	AGK_TRY(visit(&f->class_of, is_numbers ? 0 : n_rows));
	AGK_TRY(visit(&f->values, is_numbers ? n_rows : 0));
	AGK_TRY(visit(&f->weights, spec->weights != nullptr ? n_rows : 0));
	AGK_TRY(visit(&f->class_rows, spec->class_rows != nullptr ? spec->n_classes : 0));
	AGK_TRY(visit(&f->logs, spec->is_entropy ? spec->n_logs : 0));
	AGK_TRY(visit(&f->rank_of, n_features));
	AGK_TRY(visit(&f->trees, n_slots));
	AGK_TRY(visit(&f->rows, n_slots * spec->n_train));
	AGK_TRY(visit(&f->spare, n_slots * spec->n_train));
	AGK_TRY(visit(&f->row_weights, n_slots * spec->n_train));
	AGK_TRY(visit(&f->distances, is_numbers ? n_slots * spec->n_train : 0));
	AGK_TRY(visit(&f->nodes, n_slots * max_nodes));
	AGK_TRY(visit(&f->small, n_slots * max_nodes));
	AGK_TRY(
		visit(&f->buckets, spec->max_leaves < spec->n_train ? n_slots * AGK_FOREST_BUCKETS : 0));
	AGK_TRY(visit(&f->ranks, n_slots * spec->n_ranks * AG_FOREST_BINS));
	AGK_TRY(visit(&f->factors, spec->class_rows != nullptr ? n_slots * AGK_FOREST_CLASSES : 0));
	AGK_TRY(
		visit(&f->out_of_bag, spec->wants_out_of_bag ? n_slots * ((spec->n_train + 7) / 8) : 0));
	AGK_TRY(visit(&f->features, n_slots * AGK_WARPS * 2 * n_features));
	AGK_TRY(visit(&f->cells, spec->n_classes > 2 && !in_shared ? n_cells : 0));
	AGK_TRY(visit(&f->leaves, max_nodes / 2 + 1));
	AGK_TRY(visit(&f->looks, is_streamed ? n_slots : 0));
	AGK_TRY(visit(&f->columns, is_streamed ? n_features : 0));
	AGK_TRY(visit(&f->place_of, is_streamed ? n_rows : 0));
	AGK_TRY(visit(&f->placed, is_streamed ? n_rows : 0));
	AGK_TRY(visit(&f->n_placed, is_streamed ? 1 : 0));
	return visit(&f->shares, spec->n_classes > 2 ? (max_nodes / 2 + 1) * spec->n_classes : 0);
}

static int64_t
bytes_of(const AgDevice *device, const AgDeviceShape *shape, const AgDeviceForestSpec *spec,
		 int32_t n_trees, bool is_streamed)
{
	AgDeviceForest none = {};
	int64_t n_bytes = 0;

	(void) each_array(device, &none, shape, spec, n_trees, most_nodes(spec), is_streamed,
					  [&](auto *array, int64_t n) {
						  n_bytes += n * (int64_t) sizeof(*array->at) + 256;
						  return AG_DEVICE_OK;
					  });
	return n_bytes;
}

/* Whether the matrix will come in blocks isn't known yet. */
int64_t
agk_forest_memory(AgDevice *device, const AgDeviceShape *shape, const AgDeviceForestSpec *spec,
				  int32_t n_trees)
{
	return bytes_of(device, shape, spec, n_trees, true);
}

/* The view that kernels get. */
static void
look(AgDeviceForest *f, const AgDeviceForestSpec *spec, int64_t max_nodes)
{
	AgkForest *view = &f->view;

	view->matrix = f->matrix->view;
	view->train_rows = f->train_rows.at;
	view->weights = f->weights.at;
	view->class_of = f->class_of.at;
	view->rank_of = f->rank_of.at;
	view->values = f->values.at;
	view->class_rows = f->class_rows.at;
	view->logs = f->logs.at;
	view->trees = f->trees.at;
	view->rows = f->rows.at;
	view->spare = f->spare.at;
	view->row_weights = f->row_weights.at;
	view->distances = f->distances.at;
	view->nodes = f->nodes.at;
	view->small = f->small.at;
	view->buckets = f->buckets.at;
	view->ranks = f->ranks.at;
	view->factors = f->factors.at;
	view->out_of_bag = f->out_of_bag.at;
	view->features = f->features.at;
	view->cells = f->cells.at;
	view->n_train = spec->n_train;
	view->n_draws = spec->n_draws;
	view->n_logs = spec->n_logs;
	view->n_mask = (spec->n_train + 7) / 8;
	view->max_leaves = spec->max_leaves;
	view->max_nodes = max_nodes;
	view->min_rows_split = spec->min_rows_split;
	view->min_rows_leaf = spec->min_rows_leaf;
	view->min_weight_fraction = spec->min_weight_fraction;
	view->min_gain = spec->min_gain;
	view->seed = spec->seed;
	view->max_depth = spec->max_depth;
	view->n_classes = spec->n_classes;
	view->n_ranks = spec->n_ranks;
	view->n_features_tried = spec->n_features_tried;
	view->is_entropy = spec->is_entropy;
	view->is_extra = spec->is_extra;
	view->has_bootstrap = spec->has_bootstrap;
	view->weighs_by_tree = spec->weighs_by_tree;
	view->is_streamed = f->matrix->view.n_block_rows > 0;
	view->place_of = view->is_streamed ? f->place_of.at : nullptr;
}

/* features[][n_features] in order. */
__global__ void
agk_list_features(int32_t *features, int64_t n, int n_features)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		features[i] = static_cast<int32_t>(i % n_features);
}

AgDeviceStatus
agk_forest_list_features(AgDevice *device, const AgDeviceForest *f)
{
	int64_t n = f->features.n_bytes / (int64_t) sizeof(int32_t);

	AGK_LAUNCH(agk_list_features, agk_grid(device, n, AGK_THREADS), AGK_THREADS, 0, device->stream,
			   f->features.at, n, f->matrix->view.n_features);
	return agk_launched(device, "listing features");
}

static AgDeviceStatus
fill(AgDevice *device, AgDeviceForest *f, const AgDeviceForestSpec *spec)
{
	AGK_TRY(agk_upload(device, f->train_rows.at, spec->train_rows, f->train_rows.n_bytes));
	AGK_TRY(agk_upload(device, f->class_of.at, spec->class_of, f->class_of.n_bytes));
	AGK_TRY(agk_upload(device, f->values.at, spec->values, f->values.n_bytes));
	AGK_TRY(agk_upload(device, f->weights.at, spec->weights, f->weights.n_bytes));
	AGK_TRY(agk_upload(device, f->class_rows.at, spec->class_rows, f->class_rows.n_bytes));
	AGK_TRY(agk_upload(device, f->logs.at, spec->logs, f->logs.n_bytes));
	AGK_TRY(agk_upload(device, f->rank_of.at, spec->rank_of, f->rank_of.n_bytes));
	AGK_TRY(agk_forest_list_features(device, f));
	return agk_wait(device);
}

/* Trees at a time: all that fill the device, as far as memory goes; 0: not even one. */
static int32_t
slots_of(AgDevice *device, const AgDeviceShape *shape, const AgDeviceForestSpec *spec,
		 bool is_streamed)
{
	int64_t room = device->limit_bytes - device->used_bytes;
	int32_t n = spec->n_trees < device->n_blocks ? spec->n_trees : device->n_blocks;

	while (n > 0 && bytes_of(device, shape, spec, n, is_streamed) > room)
		n = n > 8 ? n - n / 8 : n - 1;
	return n;
}

/* What the host keeps of a forest whose matrix comes in blocks. */
static AgDeviceStatus
take_streamed(AgDevice *device, AgDeviceForest *f, const AgDeviceForestSpec *spec)
{
	int n_features = f->matrix->view.n_features;

	AGK_TRY(agk_forest_stream_prepare(device, f->shared_bytes));
	AGK_TRY(agk_new(device, (size_t) f->n_slots, &f->host_looks));
	AGK_TRY(agk_new(device, (size_t) n_features, &f->host_columns));
	AGK_TRY(agk_new(device, (size_t) spec->n_ranks + 1, &f->ranked));
	for (int32_t i = 0; i < n_features; i++)
		if (spec->rank_of[i] >= 0)
			f->ranked[spec->rank_of[i]] = i;
	return AG_DEVICE_OK;
}

static AgDeviceStatus
take(AgDevice *device, AgDeviceForest *f, const AgDeviceForestSpec *spec)
{
	const AgkMatrix *matrix = &f->matrix->view;
	AgDeviceShape shape = {matrix->n_rows, matrix->n_cells, matrix->n_features};
	int64_t max_nodes = most_nodes(spec);
	bool in_shared, is_streamed = matrix->n_block_rows > 0;

	f->n_slots = slots_of(device, &shape, spec, is_streamed);
	if (f->n_slots < 1)
	{
		snprintf(device->why, sizeof(device->why),
				 "it needs %.1f MB of GPU %d, where %.1f MB of this fit's share are left",
				 (double) bytes_of(device, &shape, spec, 1, is_streamed) / 1e6, device->index,
				 (double) (device->limit_bytes - device->used_bytes) / 1e6);
		return AG_DEVICE_MEMORY;
	}
	f->shared_bytes = shared_of(device, spec, &in_shared);
	AGK_TRY(agk_forest_prepare(device, f->shared_bytes));
	AGK_TRY(each_array(device, f, &shape, spec, f->n_slots, max_nodes, is_streamed,
					   [&](auto *array, int64_t n) { return agk_get(device, n, array); }));
	AGK_TRY(agk_new(device, (size_t) f->n_slots, &f->host_trees));
	if (is_streamed)
		AGK_TRY(take_streamed(device, f, spec));
	look(f, spec, max_nodes);
	return fill(device, f, spec);
}

AgDeviceStatus
agk_forest_create(AgDevice *device, const AgDeviceMatrix *matrix, const AgDeviceForestSpec *spec,
				  AgDeviceForest **created, int32_t *n_at_once)
{
	AgDeviceForest *f;
	AgDeviceStatus status;

	*created = nullptr;
	*n_at_once = 0;
	AGK_TRY(agk_enter(device));
	if (spec->n_classes > AGK_FOREST_CLASSES)
		return agk_refuse(device, "forests of more than 64 classes are grown on the CPU only");
	if (matrix->view.n_block_rows > 0 &&
		matrix->view.n_block_rows * matrix->view.row_stride < matrix->view.n_rows)
	{
		(void) agk_refuse(device, "a forest needs a whole column of the bins at a time, and this "
								  "fit's share of the GPU's memory doesn't hold one");
		return AG_DEVICE_MEMORY;
	}
	if (spec->n_train > UINT32_MAX / 4)
		return agk_refuse(device, "there are more rows than a forest on a GPU can have");
	AGK_TRY(agk_new(device, 1, &f));
	f->matrix = matrix;
	status = take(device, f, spec);
	if (status == AG_DEVICE_OK)
	{
		*created = f;
		*n_at_once = f->n_slots;
	}
	else
		agk_forest_free(device, f);
	return status;
}

void
agk_forest_free(AgDevice *device, AgDeviceForest *f)
{
	AgDeviceForestSpec none = {};
	AgDeviceShape shape = {};

	if (f == nullptr)
		return;
	(void) each_array(device, f, &shape, &none, 0, 0, false, [&](auto *array, int64_t n) {
		(void) n;
		agk_give(device, array);
		return AG_DEVICE_OK;
	});
	free(f->host_trees);
	free(f->host_looks);
	free(f->host_columns);
	free(f->ranked);
	free(f);
}

/* ---- growing ---- */

/* Twice as many nodes a tree. */
static AgDeviceStatus
more_nodes(AgDevice *device, AgDeviceForest *f)
{
	int64_t n = 2 * f->view.max_nodes, most = 2 * f->view.n_train + 2;
	int32_t n_classes = f->view.n_classes;

	n = n < most ? n : most;
	agk_give(device, &f->nodes);
	agk_give(device, &f->small);
	agk_give(device, &f->leaves);
	agk_give(device, &f->shares);
	AGK_TRY(agk_get(device, f->n_slots * n, &f->nodes));
	AGK_TRY(agk_get(device, f->n_slots * n, &f->small));
	AGK_TRY(agk_get(device, n / 2 + 1, &f->leaves));
	AGK_TRY(agk_get(device, n_classes > 2 ? (n / 2 + 1) * n_classes : 0, &f->shares));
	f->view.max_nodes = n;
	f->view.nodes = f->nodes.at;
	f->view.small = f->small.at;
	return AG_DEVICE_OK;
}

AgDeviceStatus
agk_forest_finish(AgDevice *device, AgDeviceForest *f, int32_t n, int (*poll)(void *arg), void *arg,
				  bool *is_full, int *answer)
{
	for (;;)
	{
		bool is_done = true;

		*answer = poll != nullptr ? poll(arg) : 0;
		if (*answer != 0)
			return *answer == 2 ? AG_DEVICE_STOPPED : AG_DEVICE_OK;
		AGK_TRY(agk_forest_continue(device, &f->view, n, f->shared_bytes));
		AGK_TRY(
			agk_download(device, f->host_trees, f->trees.at, n * (int64_t) sizeof(AgkForestTree)));
		for (int32_t i = 0; i < n; i++)
		{
			*is_full = *is_full || f->host_trees[i].is_full != 0;
			is_done = is_done && f->host_trees[i].is_done != 0;
		}
		if (is_done || *is_full)
			return AG_DEVICE_OK;
	}
}

AgDeviceStatus
agk_forest_grow(AgDevice *device, AgDeviceForest *f, int32_t first, int32_t n,
				int (*poll)(void *arg), void *arg)
{
	int answer;

	AGK_TRY(agk_enter(device));
	for (;;)
	{
		bool is_full = false;

		AGK_TRY(agk_forest_bag(device, &f->view, first, n));
		if (f->view.is_streamed)
			AGK_TRY(agk_forest_stream_ranks(device, f, n));
		AGK_TRY(
			agk_download(device, f->host_trees, f->trees.at, n * (int64_t) sizeof(AgkForestTree)));
		AGK_TRY(f->view.is_streamed
					? agk_forest_stream(device, f, n, poll, arg, &is_full)
					: agk_forest_finish(device, f, n, poll, arg, &is_full, &answer));
		if (!is_full)
			return AG_DEVICE_OK;
		AGK_TRY(more_nodes(device, f));
	}
}

AgDeviceStatus
agk_forest_tree(AgDevice *device, AgDeviceForest *f, int32_t i, AgDeviceForestTree *tree)
{
	(void) device;
	tree->n_rows = f->host_trees[i].n_rows;
	tree->n_nodes = f->host_trees[i].n_nodes;
	tree->is_whole = f->host_trees[i].is_done != 0;
	return AG_DEVICE_OK;
}

AgDeviceStatus
agk_forest_fetch(AgDevice *device, AgDeviceForest *f, int32_t i, AgDeviceForestNode *nodes,
				 uint8_t *ranks, uint8_t *out_of_bag)
{
	int64_t n_ranks = (int64_t) f->view.n_ranks * AG_FOREST_BINS;

	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_download(device, nodes, f->nodes.at + i * f->view.max_nodes,
						 f->host_trees[i].n_nodes * (int64_t) sizeof(AgDeviceForestNode)));
	AGK_TRY(agk_download(device, ranks, f->ranks.at + i * n_ranks, n_ranks));
	if (out_of_bag == nullptr)
		return AG_DEVICE_OK;
	return agk_download(device, out_of_bag, f->out_of_bag.at + i * f->view.n_mask, f->view.n_mask);
}

/* ---- leaves ---- */

/* A warp a leaf. shares: [n][n_classes], 0 before. */
__global__ void
agk_sum_forest_leaves(AgkForest forest, int slot, AgDeviceForestLeaf *leaves, int n,
					  uint32_t *shares)
{
	const uint64_t *rows = forest.rows + slot * forest.n_train;
	const AgkForestTree *tree = forest.trees + slot;
	int step = static_cast<int>(gridDim.x) * AGK_WARPS;
	uint32_t lane = threadIdx.x % 32;

	for (int l = static_cast<int>(blockIdx.x * AGK_WARPS + threadIdx.x / 32); l < n; l += step)
	{
		AgDeviceForestLeaf *leaf = leaves + l;
		int64_t weight = 0, low = 0, high = 0;

		for (uint32_t i = lane; i < leaf->n_rows; i += 32)
		{
			uint64_t row = rows[leaf->begin + i];
			int64_t w = agk_forest_weight(forest, tree, slot, row);

			weight += w;
			if (forest.n_classes > 2)
				atomicAdd(shares + (int64_t) l * forest.n_classes + ag_forest_class(row),
						  (uint32_t) w);
			else if (forest.n_classes == 2)
				low += ag_forest_class(row) != 0 ? w : 0;
			else
			{
				low += (forest.values[(uint32_t) row] & INT32_MAX) * w;
				high += (forest.values[(uint32_t) row] >> 31) * w;
			}
		}
		for (int lanes = 16; lanes > 0; lanes /= 2)
		{
			weight += __shfl_xor_sync(~0u, weight, lanes);
			low += __shfl_xor_sync(~0u, low, lanes);
			high += __shfl_xor_sync(~0u, high, lanes);
		}
		if (lane != 0)
			continue;
		leaf->weight = weight;
		leaf->low = low;
		leaf->high = high;
	}
}

AgDeviceStatus
agk_forest_leaves(AgDevice *device, AgDeviceForest *f, int32_t i, AgDeviceForestLeaf *leaves,
				  int32_t n, uint32_t *shares)
{
	int64_t n_bytes = n * (int64_t) sizeof(*leaves);
	int64_t n_shares = shares != nullptr ? (int64_t) n * f->view.n_classes * 4 : 0;

	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_upload(device, f->leaves.at, leaves, n_bytes));
	AGK_TRY(agk_clear(device, f->shares.at, n_shares));
	AGK_LAUNCH(agk_sum_forest_leaves, agk_grid(device, n, AGK_WARPS), AGK_THREADS, 0,
			   device->stream, f->view, i, f->leaves.at, n, f->shares.at);
	AGK_TRY(agk_launched(device, "summing leaves"));
	AGK_TRY(agk_download(device, leaves, f->leaves.at, n_bytes));
	return agk_download(device, shares, f->shares.at, n_shares);
}
