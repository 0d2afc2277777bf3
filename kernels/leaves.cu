/*
 * leaves.cu - exact sums of the leaves of a grown tree, and adding their values to scores.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/block.cuh"

#define AGK_LEAF_CHUNK 4096 /* rows that a block takes at a time */

/* The nodes that are leaves of the tree, and ends of their chunks. One block. */
__global__ void
agk_list_leaves(AgkGrowth growth)
{
	AgkState *state = growth.state;
	int n_final = 0;
	int64_t n_chunks = 0;

	for (int first = 0; first < state->n_nodes; first += blockDim.x)
	{
		int at = first + static_cast<int>(threadIdx.x), n_tile, place;
		int64_t mine = 0, before, tile_chunks;
		bool is_leaf = false;

		if (at < state->n_nodes)
		{
			const AgkNode *node = growth.nodes + at;

			is_leaf = !node->is_inner && (node->parent < 0 || growth.nodes[node->parent].is_inner);
			if (is_leaf)
				mine = (node->n_rows + AGK_LEAF_CHUNK - 1) / AGK_LEAF_CHUNK;
		}
		place = agk_block_scan(is_leaf ? 1 : 0, &n_tile);
		before = agk_block_scan(mine, &tile_chunks);
		if (is_leaf)
		{
			growth.final_nodes[n_final + place] = at;
			growth.final_ends[n_final + place] = n_chunks + before + mine;
		}
		n_final += n_tile;
		n_chunks += tile_chunks;
	}
	if (threadIdx.x == 0)
	{
		state->n_final = n_final;
		state->n_final_chunks = n_chunks;
	}
}

/* Some rows of one leaf. */
struct Piece
{
	int32_t node;
	int64_t begin, end; /* within the node's list */
	const uint32_t *ids;
};

static __device__ inline Piece
piece_of(const AgkGrowth &growth, int64_t item)
{
	const AgkState *state = growth.state;
	int l = agk_find(growth.final_ends, state->n_final, item);
	const AgkNode *node = growth.nodes + growth.final_nodes[l];
	Piece piece;

	piece.node = growth.final_nodes[l];
	piece.begin = (item - (l > 0 ? growth.final_ends[l - 1] : 0)) * AGK_LEAF_CHUNK;
	piece.end =
		piece.begin + AGK_LEAF_CHUNK < node->n_rows ? piece.begin + AGK_LEAF_CHUNK : node->n_rows;
	piece.ids = growth.ids[node->list] + node->begin;
	return piece;
}

__global__ void
agk_sum_pieces(AgkGrowth growth, const AgkGradient *gradients)
{
	for (int64_t item = blockIdx.x; item < growth.state->n_final_chunks; item += gridDim.x)
	{
		Piece piece = piece_of(growth, item);
		int64_t sum_g = 0, sum_h = 0;

		for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += blockDim.x)
		{
			AgkGradient gradient = gradients[piece.ids[i]];

			if (growth.sums_weights)
				gradient.h = (float) agk_row_weight(growth.leaf_weight, piece.ids[i]);
			sum_g += (int64_t) ((double) gradient.g * growth.fixed_g);
			sum_h += (int64_t) ((double) gradient.h * growth.fixed_h);
		}
		sum_g = agk_block_sum(sum_g);
		sum_h = agk_block_sum(sum_h);
		if (threadIdx.x == 0)
		{
			agk_add(&growth.nodes[piece.node].leaf_g, sum_g);
			agk_add(&growth.nodes[piece.node].leaf_h, sum_h);
		}
	}
}

AgDeviceStatus
agk_sum_leaves(AgDevice *device, AgDeviceBoost *boost)
{
	const AgkGrowth *growth = &boost->growth;
	unsigned grid =
		agk_grid(device, growth->n_rows + growth->max_leaves * INT64_C(1024), AGK_LEAF_CHUNK);

	AGK_LAUNCH(agk_list_leaves, 1, AGK_THREADS, 0, device->stream, *growth);
	AGK_LAUNCH(agk_sum_pieces, grid, AGK_THREADS, 0, device->stream, *growth, boost->gradients.at);
	return agk_launched(device, "summing leaves");
}

/* ---- adding values ---- */

/* values[node]: rows that the tree was grown on, where they lie. */
__global__ void
agk_add_pieces(AgkGrowth growth, const double *values, double *scores)
{
	for (int64_t item = blockIdx.x; item < growth.state->n_final_chunks; item += gridDim.x)
	{
		Piece piece = piece_of(growth, item);
		double value = values[piece.node];

		for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += blockDim.x)
			scores[piece.ids[i]] += value;
	}
}

/* What sends rows through a tree. Scores are by the row's number, or (stride > 0) by its place in rows. */
struct RouteTask
{
	const AgkRouteNode *nodes;
	AgkMatrix matrix;
	const uint32_t *rows;
	int64_t n_rows;
	const double *values; /* [n_leaves] by leaf */
	double *scores;
	int64_t stride;
	int n_inner;
};

__global__ void
agk_route_rows(RouteTask task)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < task.n_rows; i += step)
	{
		uint32_t row = task.rows[i];
		int32_t at = 0;

		if (!agk_is_here(task.matrix, row))
			continue;
		while (at < task.n_inner)
		{
			const AgkRouteNode *node = task.nodes + at;
			unsigned bin = agk_bin(task.matrix, node->feature, row);

			at = node->next[node->left_bits[bin >> 5] >> (bin & 31) & 1];
		}
		task.scores[task.stride > 0 ? i * task.stride : row] += task.values[at - task.n_inner];
	}
}

/* The tree as rows go through it. */
static AgDeviceStatus
upload_route(AgDevice *device, AgDeviceBoost *boost)
{
	return agk_upload(device, boost->route.at, boost->host_route,
					  boost->n_inner * (int64_t) sizeof(AgkRouteNode));
}

static AgDeviceStatus
route(AgDevice *device, AgDeviceBoost *boost, const uint32_t *rows, int64_t n_rows, double *scores,
	  int64_t stride)
{
	RouteTask task = {};

	if (n_rows == 0)
		return AG_DEVICE_OK;
	task.nodes = boost->route.at;
	task.matrix = boost->grown_on->view;
	task.rows = rows;
	task.n_rows = n_rows;
	task.values = boost->values.at;
	task.scores = scores;
	task.stride = stride;
	task.n_inner = boost->n_inner;
	AGK_TRY(agk_each_block(device, &task.matrix, [&] {
		AGK_LAUNCH(agk_route_rows, agk_grid(device, n_rows, AGK_THREADS), AGK_THREADS, 0,
				   device->stream, task);
	}));
	return agk_launched(device, "adding a tree to scores");
}

/* To the scores of the rows that the tree was grown on. */
AgDeviceStatus
agk_add_by_lists(AgDevice *device, AgDeviceBoost *boost, int output, const double *values)
{
	const AgkGrowth *growth = &boost->growth;
	double *scores = boost->scores.at + output * boost->matrix->view.n_rows;
	double *by_node = static_cast<double *>(calloc((size_t) growth->max_nodes, sizeof(double)));
	AgDeviceStatus status;

	if (by_node == nullptr)
		return AG_DEVICE_MEMORY;
	for (int32_t l = 0; l < boost->n_leaves; l++)
		by_node[boost->host_final[l]] = values[l];
	status =
		agk_upload(device, boost->values.at, by_node, growth->max_nodes * (int64_t) sizeof(double));
	free(by_node);
	AGK_TRY(status);
	AGK_LAUNCH(agk_add_pieces, agk_grid(device, boost->spec.n_train, AGK_LEAF_CHUNK), AGK_THREADS,
			   0, device->stream, *growth, boost->values.at, scores);
	return agk_launched(device, "adding a tree to scores");
}

AgDeviceStatus
agk_boost_add(AgDevice *device, AgDeviceBoost *boost, int output, const double *values)
{
	double *scores = boost->scores.at + output * boost->matrix->view.n_rows;

	AGK_TRY(agk_enter(device));
	if (!boost->has_bag)
		AGK_TRY(agk_add_by_lists(device, boost, output, values));
	if (!boost->has_bag && boost->spec.n_valid == 0)
		return AG_DEVICE_OK;
	AGK_TRY(upload_route(device, boost));
	AGK_TRY(
		agk_upload(device, boost->values.at, values, boost->n_leaves * (int64_t) sizeof(double)));
	if (boost->has_bag) /* in the bag or out of it: all the same */
		AGK_TRY(route(device, boost, boost->train_rows.at, boost->spec.n_train, scores, 0));
	return route(device, boost, boost->valid_rows.at, boost->spec.n_valid,
				 boost->valid_scores.at + output, boost->spec.n_outputs);
}

__global__ void
agk_clear_sums(AgkGrowth growth)
{
	int n = growth.state->n_final;

	for (int l = blockIdx.x * blockDim.x + threadIdx.x; l < n; l += gridDim.x * blockDim.x)
	{
		growth.nodes[growth.final_nodes[l]].leaf_g = 0;
		growth.nodes[growth.final_nodes[l]].leaf_h = 0;
	}
}

AgDeviceStatus
agk_boost_sums(AgDevice *device, AgDeviceBoost *boost, double fixed_g, double fixed_h,
			   int64_t *sums)
{
	AgkGrowth *growth = &boost->growth;
	int32_t most = 0;

	AGK_TRY(agk_enter(device));
	growth->fixed_g = fixed_g;
	growth->fixed_h = fixed_h;
	for (int32_t l = 0; l < boost->n_leaves; l++)
		most = boost->host_final[l] > most ? boost->host_final[l] : most;
	AGK_LAUNCH(agk_clear_sums, agk_grid(device, boost->n_leaves, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, *growth);
	AGK_LAUNCH(agk_sum_pieces, agk_grid(device, boost->spec.n_train, AGK_LEAF_CHUNK), AGK_THREADS,
			   0, device->stream, *growth, boost->gradients.at);
	AGK_TRY(agk_launched(device, "summing leaves"));
	AGK_TRY(agk_download(device, boost->host_nodes, growth->nodes,
						 ((int64_t) most + 1) * (int64_t) sizeof(AgkNode)));
	for (int32_t l = 0; l < boost->n_leaves; l++)
	{
		sums[2 * l] = boost->host_nodes[boost->host_final[l]].leaf_g;
		sums[2 * l + 1] = boost->host_nodes[boost->host_final[l]].leaf_h;
	}
	return AG_DEVICE_OK;
}
