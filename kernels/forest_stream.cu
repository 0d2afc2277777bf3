/*
 * forest_stream.cu - forests over a matrix that comes in blocks: there is no room for all of its rows.
 *
 * What a tree looks at is one feature at a time of nodes of many rows, and all features of the few rows below a small node. So nodes of
 * more rows than fit are split by columns, which come from the host as the trees draw their features; what is below them is grown as
 * ever, on the rows of as many such nodes as fit, which the host gathers. Sums are of integers: the trees are the same.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/forest_node.cuh"

#define AGK_STREAM_STAGE (INT64_C(4) << 20) /* bytes that the host gathers at a time */
#define AGK_STREAM_STACK                                                                           \
	(AGK_FOREST_STACK / 4) /* nodes of many rows that a tree begins with at a time */

/* What is to be done with the node on top of a tree's stack. */
enum AgkForestPhase
{
	AGK_FOREST_OPEN = 0,
	AGK_FOREST_SEARCH,
	AGK_FOREST_PART
};

/* ---- nodes of many rows, by columns ---- */

/* As many features as the search surely wants, at most AGK_FOREST_AHEAD; one thread. */
static __device__ void
draw_ahead(const AgkForest &forest, AgkForestWork<AgkBlockTeam> &work, AgkForestLook *look)
{
	uint64_t key = ag_key(work.key, AG_FOREST_KEY_FEATURES);
	int n = forest.matrix.n_features, most = forest.n_features_tried - look->n_tried;

	most = most < 1 ? 1 : most > AGK_FOREST_AHEAD ? AGK_FOREST_AHEAD : most;
	look->at = look->n_wanted = 0;
	while (look->n_wanted < most && look->n_left > 0)
	{
		int n_left = look->n_left--;
		int at = (int) ag_random_below(key, (uint64_t) (n - n_left), (uint32_t) n_left);

		look->wanted[look->n_wanted++] = work.features[at];
		agk_take_feature(work, n, n_left, at);
	}
}

/* Searches on, over the features whose columns are there; false: the next one's isn't. */
static __device__ bool
search_on(const AgkForest &forest, AgkForestWork<AgkBlockTeam> &work, AgkForestLook *look)
{
	for (;;)
	{
		AgkForestSplit best;
		int n_tried, n_left, n_waiting, f;

		__syncthreads();
		best = look->best;
		n_tried = look->n_tried;
		n_waiting = look->n_wanted - look->at;
		n_left = look->n_left + n_waiting;
		if (!agk_goes_on(forest, best, n_tried, n_left))
			return true;
		__syncthreads();
		if (n_waiting == 0 && threadIdx.x == 0)
			draw_ahead(forest, work, look);
		__syncthreads();
		f = look->wanted[look->at];
		if (forest.column_of[f] == nullptr)
			return false;
		n_tried += agk_try_feature(forest, work, f, &best);
		__syncthreads();
		if (threadIdx.x == 0)
		{
			look->best = best;
			look->n_tried = n_tried;
			look->at++;
		}
	}
}

/* The stack's top is done with; its children are next, if they have too many rows. One thread. */
static __device__ void
leave_node(const AgkForest &forest, AgkForestTree *tree, AgkForestLook *look,
		   const AgDeviceForestNode *nodes, uint32_t left, uint32_t most_rows)
{
	bool right_is_small = left != 0 && nodes[left + 1].n_rows <= nodes[left].n_rows;

	look->phase = AGK_FOREST_OPEN;
	look->at = look->n_wanted = 0;
	tree->n_stack--;
	for (uint32_t c = 0; left != 0 && c < 2; c++)
	{
		uint32_t child = left + (c == right_is_small ? 1 : 0);
		const AgDeviceForestNode *node = nodes + child;

		if (node->n_rows > most_rows && agk_may_split(forest, node->n_rows, node->depth))
			tree->stack[tree->n_stack++] = child;
	}
}

/* The split of the node in work, as far as columns are there; false: the next one isn't. *left: 0: it isn't split. */
static __device__ bool
split_on(const AgkForest &forest, AgkForestWork<AgkBlockTeam> &work, AgkForestLook *look,
		 AgDeviceForestNode *nodes, uint32_t at, int phase, uint32_t *left)
{
	uint32_t cut, n_left;
	int f;

	*left = 0;
	if (phase == AGK_FOREST_OPEN)
	{
		__syncthreads();
		if (threadIdx.x == 0)
		{
			look->best = agk_no_split();
			look->n_left = forest.matrix.n_features;
			look->n_tried = look->n_wanted = look->at = 0;
			look->phase = AGK_FOREST_SEARCH;
		}
	}
	if (phase != AGK_FOREST_PART)
	{
		AgkForestSplit best;

		if (!search_on(forest, work, look))
			return false;
		best = look->best;
		__syncthreads();
		if (threadIdx.x == 0)
			agk_undo_draws(work, forest.matrix.n_features, look->n_left);
		if (!agk_judge_split(forest, work, nodes + at, best, &cut))
			return true;
		if (threadIdx.x == 0)
		{
			look->phase = AGK_FOREST_PART;
			look->wanted[0] = best.feature;
			look->n_wanted = 1;
			look->at = 0;
			look->cut = cut;
		}
	}
	__syncthreads();
	f = look->wanted[0];
	if (forest.column_of[f] == nullptr)
		return false;
	n_left = agk_part_rows(forest, work, f, look->cut);
	if (threadIdx.x == 0)
		work.table->child = agk_make_children(forest, work.tree, nodes, at, n_left);
	__syncthreads();
	*left = work.table->child;
	return true;
}

/* A block a tree: goes on until its next column isn't there, or no node has more than most_rows. */
__global__ void
__launch_bounds__(AGK_THREADS)
	agk_stream_nodes(AgkForest forest, AgkForestLook *looks, uint32_t most_rows)
{
	AGK_DYNAMIC_SHARED(AgkForestTable, tables);
	uint32_t *cells = reinterpret_cast<uint32_t *>(tables + AGK_WARPS);
	AgkForestWork<AgkBlockTeam> whole =
		agk_work_of<AgkBlockTeam>(forest, blockIdx.x, threadIdx.x, 0, tables, cells);
	AgDeviceForestNode *nodes = forest.nodes + blockIdx.x * forest.max_nodes;
	AgkForestLook *look = looks + blockIdx.x;

	for (;;)
	{
		AgkForestWork<AgkBlockTeam> work = whole;
		uint32_t at, left = 0;
		int phase;

		__syncthreads();
		if (work.tree->n_stack == 0 || work.tree->is_full)
			return;
		at = work.tree->stack[work.tree->n_stack - 1];
		phase = look->phase;
		if (nodes[at].n_rows > most_rows && agk_take_node(forest, work, nodes + at) &&
			!split_on(forest, work, look, nodes, at, phase, &left))
			return;
		__syncthreads();
		if (threadIdx.x == 0)
			leave_node(forest, work.tree, look, nodes, left, most_rows);
	}
}

/* Puts one column in the i-th place, where feature f's kernels find it. */
static AgDeviceStatus
bring_column(AgDevice *device, AgDeviceForest *f, int feature, int64_t i)
{
	const AgkMatrix *matrix = &f->matrix->view;
	uint8_t *to = const_cast<uint8_t *>(matrix->rows) + i * matrix->n_rows;

	f->host_columns[feature] = to;
	return agk_upload(device, to, matrix->host_columns + feature * matrix->column_stride,
					  matrix->n_rows);
}

static AgDeviceStatus
show_columns(AgDevice *device, AgDeviceForest *f)
{
	return agk_upload(device, f->columns.at, f->host_columns, f->columns.n_bytes);
}

static void
forget_columns(AgDeviceForest *f)
{
	memset(f->host_columns, 0, (size_t) f->columns.n_bytes);
}

/* Columns that the trees wait for, as many as fit: first what each wants next. *n: how many; 0: none waits. */
static AgDeviceStatus
bring_columns(AgDevice *device, AgDeviceForest *f, int32_t n_trees, int64_t *n)
{
	const AgkMatrix *matrix = &f->matrix->view;
	int64_t most = matrix->n_block_rows * matrix->row_stride / matrix->n_rows;

	*n = 0;
	forget_columns(f);
	for (int k = 0; k < AGK_FOREST_AHEAD; k++)
		for (int32_t i = 0; i < n_trees; i++)
		{
			const AgkForestLook *look = f->host_looks + i;
			int feature;

			if (look->at + k >= look->n_wanted || *n == most)
				continue;
			feature = look->wanted[look->at + k];
			if (f->host_columns[feature] == nullptr)
				AGK_TRY(bring_column(device, f, feature, (*n)++));
		}
	return show_columns(device, f);
}

/* Splits all nodes of more rows than fit. */
static AgDeviceStatus
split_large(AgDevice *device, AgDeviceForest *f, int32_t n, int (*poll)(void *arg), void *arg,
			bool *is_full, int *answer)
{
	AgkForest view = f->view;
	int64_t n_block_rows = f->matrix->view.n_block_rows;
	uint32_t most_rows = n_block_rows < UINT32_MAX ? (uint32_t) n_block_rows : UINT32_MAX;
	int64_t n_columns;

	view.column_of = f->columns.at;
	AGK_TRY(agk_forest_list_features(device, f)); /* an earlier search may not have ended */
	AGK_TRY(agk_clear(device, f->looks.at, f->looks.n_bytes));
	forget_columns(f);
	AGK_TRY(show_columns(device, f));
	for (;;)
	{
		*answer = poll != nullptr ? poll(arg) : 0;
		if (*answer != 0)
			return *answer == 2 ? AG_DEVICE_STOPPED : AG_DEVICE_OK;
		AGK_LAUNCH(agk_stream_nodes, (unsigned) n, AGK_THREADS, f->shared_bytes, device->stream,
				   view, f->looks.at, most_rows);
		AGK_TRY(agk_launched(device, "growing trees"));
		AGK_TRY(
			agk_download(device, f->host_looks, f->looks.at, n * (int64_t) sizeof(AgkForestLook)));
		AGK_TRY(
			agk_download(device, f->host_trees, f->trees.at, n * (int64_t) sizeof(AgkForestTree)));
		for (int32_t i = 0; i < n; i++)
			*is_full = *is_full || f->host_trees[i].is_full != 0;
		if (*is_full)
			return AG_DEVICE_OK;
		AGK_TRY(bring_columns(device, f, n, &n_columns));
		if (n_columns == 0)
			return AG_DEVICE_OK;
	}
}

AgDeviceStatus
agk_forest_stream_ranks(AgDevice *device, AgDeviceForest *f, int32_t n)
{
	AgkForest view = f->view;

	view.column_of = f->columns.at;
	for (int32_t r = 0; r < view.n_ranks; r++)
	{
		forget_columns(f);
		AGK_TRY(bring_column(device, f, f->ranked[r], 0));
		AGK_TRY(show_columns(device, f));
		AGK_TRY(agk_forest_rank_column(device, &view, f->ranked[r], n));
	}
	return AG_DEVICE_OK;
}

/* ---- what is below them, by rows ---- */

/* A node that is to be grown with all that is below it. */
struct Part
{
	int32_t slot;
	uint32_t node, n_rows;
};

struct Parts
{
	Part *at;
	int64_t n, room;
};

static bool
add_part(Parts *parts, int32_t slot, uint32_t node, uint32_t n_rows)
{
	if (parts->n == parts->room)
	{
		int64_t room = 2 * parts->room + 64;
		Part *more = static_cast<Part *>(realloc(parts->at, (size_t) room * sizeof(Part)));

		if (more == nullptr)
			return false;
		parts->at = more;
		parts->room = room;
	}
	parts->at[parts->n].slot = slot;
	parts->at[parts->n].node = node;
	parts->at[parts->n++].n_rows = n_rows;
	return true;
}

/* The nodes of one tree that nobody looked at. */
static AgDeviceStatus
list_parts(AgDevice *device, AgDeviceForest *f, int32_t slot, Parts *parts)
{
	uint32_t n_nodes = f->host_trees[slot].n_nodes;
	AgDeviceForestNode *nodes;
	AgDeviceStatus status;

	AGK_TRY(agk_new(device, n_nodes, &nodes));
	status = agk_download(device, nodes, f->nodes.at + slot * f->view.max_nodes,
						  n_nodes * (int64_t) sizeof(AgDeviceForestNode));
	for (uint32_t i = 0; i < n_nodes && status == AG_DEVICE_OK; i++)
		if (nodes[i].left < 0 && nodes[i].n_rows <= f->matrix->view.n_block_rows &&
			agk_may_split(f->view, nodes[i].n_rows, nodes[i].depth) &&
			!add_part(parts, slot, i, nodes[i].n_rows))
		{
			snprintf(device->why, sizeof(device->why), "out of memory");
			status = AG_DEVICE_MEMORY;
		}
	free(nodes);
	return status;
}

static AgDeviceStatus
show_small(AgDevice *device, AgDeviceForest *f, int32_t slot, const uint32_t *small)
{
	return agk_upload(device, f->small.at + slot * f->view.max_nodes, small,
					  f->host_trees[slot].n_small * (int64_t) sizeof(uint32_t));
}

/* Hands the parts from *first on, as many as fit, to their trees; *first becomes the next one. Parts of a tree lie side by side. small: room for all. */
static AgDeviceStatus
hand_out(AgDevice *device, AgDeviceForest *f, int32_t n, const Parts *parts, uint32_t *small,
		 int64_t *first)
{
	int64_t most_rows = f->matrix->view.n_block_rows, n_rows = 0;
	int32_t slot = parts->at[*first].slot;

	for (int32_t i = 0; i < n; i++)
	{
		AgkForestTree *tree = f->host_trees + i;

		tree->n_small = tree->next_small = 0;
		tree->n_stack = 0;
		tree->is_done = 1;
	}
	for (; *first < parts->n; (*first)++)
	{
		const Part *part = parts->at + *first;
		AgkForestTree *tree = f->host_trees + part->slot;
		bool is_large = part->n_rows >= AGK_FOREST_SMALL;

		n_rows += part->n_rows;
		if (n_rows > most_rows || (is_large && tree->n_stack == AGK_STREAM_STACK))
			break;
		if (part->slot != slot)
			AGK_TRY(show_small(device, f, slot, small));
		slot = part->slot;
		tree->is_done = 0;
		if (is_large)
			tree->stack[tree->n_stack++] = part->node;
		else
			small[tree->n_small++] = part->node;
	}
	AGK_TRY(show_small(device, f, slot, small));
	return agk_upload(device, f->trees.at, f->host_trees, n * (int64_t) sizeof(AgkForestTree));
}

/* Gives each row of the parts that were handed out a place, once. A block a tree. */
__global__ void
agk_place_rows(AgkForest forest, uint32_t *place_of, uint32_t *placed, uint32_t *n_placed)
{
	int64_t slot = blockIdx.x;
	const AgkForestTree *tree = forest.trees + slot;
	const uint64_t *rows = forest.rows + slot * forest.n_train;
	const uint32_t *small = forest.small + slot * forest.max_nodes;
	uint32_t n_stack = (uint32_t) tree->n_stack;

	for (uint32_t p = 0; p < n_stack + tree->n_small; p++)
	{
		uint32_t at = p < n_stack ? tree->stack[p] : small[p - n_stack];
		const AgDeviceForestNode *node = forest.nodes + slot * forest.max_nodes + at;

		for (uint32_t i = threadIdx.x; i < node->n_rows; i += blockDim.x)
		{
			uint32_t id = (uint32_t) rows[node->begin + i], place;

			if (atomicCAS(place_of + id, 0u, ~0u) != 0u)
				continue;
			place = atomicAdd(n_placed, 1u);
			placed[place] = id;
			(void) atomicCAS(place_of + id, ~0u, place + 1);
		}
	}
}

/* Rows ids[n] from the host's matrix to the device's, side by side. */
static AgDeviceStatus
gather_rows(AgDevice *device, const AgDeviceForest *f, const uint32_t *ids, int64_t n)
{
	const AgkMatrix *matrix = &f->matrix->view;
	int64_t stride = matrix->row_stride, step = AGK_STREAM_STAGE / stride;
	AgDeviceStatus status = AG_DEVICE_OK;
	uint8_t *stage;

	step = step < 1 ? 1 : step > n ? n : step;
	AGK_TRY(agk_new(device, (size_t) (step * stride), &stage));
	for (int64_t first = 0; first < n && status == AG_DEVICE_OK; first += step)
	{
		int64_t n_here = n - first < step ? n - first : step;

		for (int64_t i = 0; i < n_here; i++)
			memcpy(stage + i * stride, matrix->host_rows + ids[first + i] * stride,
				   (size_t) stride);
		status = agk_upload(device, const_cast<uint8_t *>(matrix->rows) + first * stride, stage,
							n_here * stride);
	}
	if (status == AG_DEVICE_OK)
		status = agk_wait(device);
	free(stage);
	return status;
}

static AgDeviceStatus
place_rows(AgDevice *device, AgDeviceForest *f, int32_t n)
{
	AgDeviceStatus status;
	uint32_t n_placed = 0, *ids;

	AGK_TRY(agk_clear(device, f->place_of.at, f->place_of.n_bytes));
	AGK_TRY(agk_clear(device, f->n_placed.at, f->n_placed.n_bytes));
	AGK_LAUNCH(agk_place_rows, (unsigned) n, AGK_THREADS, 0, device->stream, f->view,
			   f->place_of.at, f->placed.at, f->n_placed.at);
	AGK_TRY(agk_launched(device, "placing rows"));
	AGK_TRY(agk_download(device, &n_placed, f->n_placed.at, sizeof(n_placed)));
	AGK_TRY(agk_new(device, (size_t) n_placed + 1, &ids));
	status = agk_download(device, ids, f->placed.at, n_placed * (int64_t) sizeof(uint32_t));
	if (status == AG_DEVICE_OK && n_placed > 0)
		status = gather_rows(device, f, ids, n_placed);
	free(ids);
	return status;
}

static AgDeviceStatus
grow_parts(AgDevice *device, AgDeviceForest *f, int32_t n, const Parts *parts, uint32_t *small,
		   int (*poll)(void *arg), void *arg, bool *is_full)
{
	int answer = 0;

	for (int64_t first = 0; first < parts->n && answer == 0;)
	{
		AGK_TRY(hand_out(device, f, n, parts, small, &first));
		AGK_TRY(place_rows(device, f, n));
		AGK_TRY(agk_forest_finish(device, f, n, poll, arg, is_full, &answer));
		if (*is_full)
			return AG_DEVICE_OK;
	}
	for (int32_t i = 0; i < n; i++) /* what a tree lacks when time ends it isn't known */
		f->host_trees[i].is_done = answer == 0;
	return AG_DEVICE_OK;
}

AgDeviceStatus
agk_forest_stream(AgDevice *device, AgDeviceForest *f, int32_t n, int (*poll)(void *arg), void *arg,
				  bool *is_full)
{
	AgDeviceStatus status = AG_DEVICE_OK;
	Parts parts = {};
	uint32_t *small = nullptr;
	int answer;

	AGK_TRY(split_large(device, f, n, poll, arg, is_full, &answer));
	if (*is_full || answer != 0)
		return AG_DEVICE_OK;
	for (int32_t i = 0; i < n && status == AG_DEVICE_OK; i++)
		status = list_parts(device, f, i, &parts);
	if (status == AG_DEVICE_OK)
		status = agk_new(device, (size_t) parts.n + 1, &small);
	if (status == AG_DEVICE_OK)
		status = grow_parts(device, f, n, &parts, small, poll, arg, is_full);
	free(small);
	free(parts.at);
	return status;
}

AgDeviceStatus
agk_forest_stream_prepare(AgDevice *device, size_t shared_bytes)
{
	cudaError_t error = cudaFuncSetAttribute(
		agk_stream_nodes, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared_bytes);

	return error == cudaSuccess ? AG_DEVICE_OK
								: agk_failed(device, error, "asking for shared memory");
}
