/*
 * forest_grow.cu - growing the trees of a forest, a block each. As model/forest_grow.c, but that nodes are taken in any order.
 *
 * Where max_leaves ends a tree, the host takes its splits best first. A split whose least gain on the way from the root is below those
 * of max_leaves - 1 others that were found is never taken, and nothing below it: the tree would be full before. That is
 * looked up in buckets of gains, from time to time, and may be seen late: what is grown in vain is left out.
 */
#include "kernels/forest_search.cuh"

#define AGK_FOREST_WORK                                                                            \
	(INT64_C(1) << 26) /* rows times features looked at by a block in one launch, about */

static __device__ inline uint32_t
bucket_of(double gain)
{
	uint64_t bits;

	memcpy(&bits, &gain, sizeof(bits));
	return (uint32_t) (bits >> 48) & (AGK_FOREST_BUCKETS - 1);
}

/* ---- one node ---- */

static __device__ inline bool
may_split(const AgkForest &forest, uint32_t n_rows, uint32_t depth)
{
	return n_rows >= forest.min_rows_split && n_rows >= 2 * forest.min_rows_leaf &&
		   depth < forest.max_depth;
}

/* Moves left rows to the front, in their order; how many they are. */
template <class Team>
static __device__ uint32_t
part_rows(const AgkForest &forest, AgkForestWork<Team> &work, int f, uint32_t cut)
{
	const uint8_t *ranks = agk_forest_ranks(forest, work.slot, f);
	bool by_rows = work.n_rows < AGK_FOREST_SMALL;
	uint32_t n_left = 0, n_right = 0;

	for (uint32_t tile = 0; tile < work.n_rows; tile += Team::size)
	{
		uint32_t i = tile + work.team.rank;
		uint32_t n_here = work.n_rows - tile < Team::size ? work.n_rows - tile : Team::size;
		bool is_here = i < work.n_rows, is_left = false;
		uint64_t row = 0;
		int before, n_tile;

		if (is_here)
		{
			row = work.rows[i];
			is_left =
				ag_forest_cut_left(cut, agk_forest_bin(forest, f, ranks, by_rows, (uint32_t) row));
		}
		before = work.team.before(is_left ? 1 : 0, &n_tile);
		if (is_here && is_left)
			work.rows[n_left + before] = row; /* all of the tile was read */
		else if (is_here)
			work.spare[n_right + work.team.rank - before] = row;
		n_left += n_tile;
		n_right += n_here - n_tile;
	}
	work.team.sync();
	for (uint32_t i = work.team.rank; i < n_right; i += Team::size)
		work.rows[n_left + i] = work.spare[i];
	work.team.sync();
	return n_left;
}

/* The split that was found, as a cut of bins or ranks. */
template <class Team>
static __device__ uint32_t
cut_of(const AgkForest &forest, const AgkForestWork<Team> &work, const AgkForestSplit &split)
{
	const AgkMatrix &matrix = forest.matrix;
	int f = split.feature;
	int bin =
		ag_forest_place(matrix.centers + matrix.first_center[f], matrix.cuts + matrix.first_cut[f],
						matrix.n_bins[f], matrix.is_category[f] != 0, split.low, split.high,
						forest.is_extra != 0, split.value);
	bool missing_left =
		split.has_missing ? split.missing_left : 2 * split.left_weight >= work.weight;

	return ag_forest_cut(bin, missing_left);
}

static __device__ void
write_child(AgDeviceForestNode *child, uint32_t begin, uint32_t n_rows, uint64_t key,
			uint32_t depth, double least)
{
	*child = AgDeviceForestNode();
	child->begin = begin;
	child->n_rows = n_rows;
	child->key = key;
	child->depth = depth;
	child->least = least;
	child->feature = child->left = -1;
}

/* Makes the two children of a node whose rows were parted, by one thread; the left one's number, 0: there is no room. */
static __device__ uint32_t
make_children(const AgkForest &forest, AgkForestTree *tree, AgDeviceForestNode *nodes, uint32_t at,
			  uint32_t n_left)
{
	AgDeviceForestNode *node = nodes + at;
	uint32_t left = atomicAdd(&tree->n_nodes, 2u);

	if ((int64_t) left + 2 > forest.max_nodes)
	{
		atomicMax(&tree->is_full, 1);
		return 0;
	}
	write_child(nodes + left, node->begin, n_left, ag_key(node->key, AG_FOREST_KEY_LEFT),
				node->depth + 1, node->least);
	write_child(nodes + left + 1, node->begin + n_left, node->n_rows - n_left,
				ag_key(node->key, AG_FOREST_KEY_RIGHT), node->depth + 1, node->least);
	node->left = (int32_t) left;
	return left;
}

/* Notes the split; false: no tree of max_leaves has it. */
template <class Team>
static __device__ bool
note_split(const AgkForest &forest, AgkForestWork<Team> &work, AgDeviceForestNode *node,
		   const AgkForestSplit &split, double gain, uint32_t cut)
{
	double least = gain < node->least ? gain : node->least;

	work.team.sync();
	if (work.team.rank == 0)
	{
		node->gain = gain;
		node->least = least;
		node->weight = (uint32_t) work.weight;
		node->left_weight = (uint32_t) split.left_weight;
		node->feature = split.feature;
		node->cut = cut;
		if (work.tree->is_limited)
		{
			atomicAdd(forest.buckets + work.slot * AGK_FOREST_BUCKETS + bucket_of(least), 1u);
			atomicAdd(&work.tree->n_splits, 1u);
		}
	}
	work.team.sync();
	return bucket_of(least) >= work.tree->least_bucket;
}

/* Splits a node, if it can be: the number of its left child, 0: it wasn't. For every thread of the team. */
template <class Team>
static __device__ uint32_t
split_node(const AgkForest &forest, AgkForestWork<Team> work, uint32_t at)
{
	AgDeviceForestNode *nodes = forest.nodes + work.slot * forest.max_nodes, *node = nodes + at;
	AgkForestSplit split;
	double gain;
	uint32_t cut, n_left;

	if (!may_split(forest, node->n_rows, node->depth) ||
		bucket_of(node->least) < work.tree->least_bucket)
		return 0;
	work.rows += node->begin;
	work.spare += node->begin;
	work.row_weights += node->begin;
	work.distances += forest.n_classes > 0 ? 0 : node->begin;
	work.n_rows = node->n_rows;
	work.key = node->key;
	work.shift = 0;
	if (forest.n_classes > 0)
		agk_view_classes(forest, work);
	else
		agk_view_numbers(forest, work);
	if (work.kind == AG_FOREST_PURE ||
		!((double) work.weight >= 2.0 * (forest.min_weight_fraction * (double) work.tree->weight)))
		return 0;
	split = agk_forest_search(forest, work);
	if (split.feature < 0)
		return 0;
	gain = ag_forest_gain(work.kind, forest.is_entropy != 0, forest.logs, forest.n_logs, work.sum,
						  work.squares, work.weight, work.shift, split.score);
	if (!(gain >= forest.min_gain * (double) work.tree->weight))
		return 0;
	cut = cut_of(forest, work, split);
	if (!note_split(forest, work, node, split, gain, cut))
		return 0;
	n_left = part_rows(forest, work, split.feature, cut);
	if (work.team.rank == 0)
		work.table->child = make_children(forest, work.tree, nodes, at, n_left);
	work.team.sync();
	return work.table->child;
}

/* ---- a tree ---- */

/* Of a node of few rows all that is below it, by a warp. */
static __device__ void
grow_small(const AgkForest &forest, const AgkForestWork<AgkWarpTeam> &work, uint32_t root)
{
	const AgDeviceForestNode *nodes = forest.nodes + work.slot * forest.max_nodes;
	uint32_t *stack = work.table->stack;
	int n = 1;

	__syncwarp();
	if (work.team.rank == 0)
		stack[0] = root;
	__syncwarp();
	while (n > 0)
	{
		uint32_t left = split_node(forest, work, stack[--n]);
		bool right_is_small;

		if (left == 0)
			continue;
		right_is_small = nodes[left + 1].n_rows <= nodes[left].n_rows;
		__syncwarp();
		if (work.team.rank == 0)
		{
			stack[n] = left + (right_is_small ? 0 : 1);
			stack[n + 1] = left + (right_is_small ? 1 : 0);
		}
		n += 2;
		__syncwarp();
	}
}

/* One child where it is taken from next. One thread. */
static __device__ void
queue_child(const AgkForest &forest, AgkForestTree *tree, uint32_t *small, uint32_t at,
			const AgDeviceForestNode *node)
{
	if (!may_split(forest, node->n_rows, node->depth))
		return;
	if (node->n_rows < AGK_FOREST_SMALL)
		small[tree->n_small++] = at;
	else
		tree->stack[tree->n_stack++] = at;
}

/* The next node of many rows, by the whole block; how many they are. */
static __device__ int64_t
grow_large(const AgkForest &forest, const AgkForestWork<AgkBlockTeam> &work)
{
	const AgDeviceForestNode *nodes = forest.nodes + work.slot * forest.max_nodes;
	AgkForestTree *tree = work.tree;
	uint32_t *small = forest.small + work.slot * forest.max_nodes;
	uint32_t at = tree->stack[tree->n_stack - 1], left;

	left = split_node(forest, work, at);
	__syncthreads();
	if (threadIdx.x == 0)
	{
		tree->n_stack--;
		if (left != 0)
		{
			bool right_is_small = nodes[left + 1].n_rows <= nodes[left].n_rows;

			for (uint32_t c = 0; c < 2; c++)
			{
				uint32_t child = left + (c == right_is_small ? 1 : 0);

				queue_child(forest, tree, small, child, nodes + child);
			}
		}
	}
	return nodes[at].n_rows;
}

/* The lowest bucket whose nodes may still be the tree's. */
static __device__ void
find_least_bucket(const AgkForest &forest, AgkForestTree *tree, int64_t slot)
{
	const uint32_t *buckets;
	constexpr int each = AGK_FOREST_BUCKETS / AGK_THREADS;
	int64_t wanted = forest.max_leaves - 1, before, total, mine = 0;
	int top = AGK_FOREST_BUCKETS - 1 - static_cast<int>(threadIdx.x) * each;

	if (!tree->is_limited || tree->n_splits < wanted)
		return; /* all threads: it was read after a barrier */
	buckets = forest.buckets + slot * AGK_FOREST_BUCKETS;
	for (int i = 0; i < each; i++)
		mine += buckets[top - i];
	before = agk_block_scan(mine, &total);
	if (before < wanted && before + mine >= wanted)
		for (int i = 0; i < each; i++)
		{
			before += buckets[top - i];
			if (before < wanted)
				continue;
			tree->least_bucket = static_cast<uint32_t>(top - i);
			break;
		}
}

template <class Team>
static __device__ AgkForestWork<Team>
work_of(const AgkForest &forest, int64_t slot, unsigned rank, int warp, AgkForestTable *tables,
		uint32_t *shared_cells)
{
	int64_t n_features = forest.matrix.n_features;
	int64_t n_cells = (int64_t) AG_FOREST_BINS * forest.n_classes;
	AgkForestWork<Team> work = {};

	work.team.rank = static_cast<int>(rank);
	work.slot = slot;
	work.tree = forest.trees + slot;
	work.table = tables + warp;
	work.cells = forest.cells != nullptr ? forest.cells + (slot * AGK_WARPS + warp) * n_cells
										 : shared_cells + warp * n_cells;
	work.features = forest.features + (slot * AGK_WARPS + warp) * 2 * n_features;
	work.undo = work.features + n_features;
	work.rows = forest.rows + slot * forest.n_train;
	work.spare = forest.spare + slot * forest.n_train;
	work.row_weights = forest.row_weights + slot * forest.n_train;
	work.distances = forest.distances + (forest.n_classes > 0 ? 0 : slot * forest.n_train);
	return work;
}

/* Some more of a block's tree: its nodes of many rows. */
__global__ void
__launch_bounds__(AGK_THREADS) agk_grow_large(AgkForest forest)
{
	AGK_DYNAMIC_SHARED(AgkForestTable, tables);
	uint32_t *cells = reinterpret_cast<uint32_t *>(tables + AGK_WARPS);
	AgkForestWork<AgkBlockTeam> work =
		work_of<AgkBlockTeam>(forest, blockIdx.x, threadIdx.x, 0, tables, cells);

	for (int64_t n_looks = 0; n_looks < AGK_FOREST_WORK;)
	{
		__syncthreads();
		if (work.tree->n_stack == 0 || work.tree->is_full)
			return;
		n_looks += grow_large(forest, work) * forest.n_features_tried;
	}
}

/* Then those of few rows. */
__global__ void
__launch_bounds__(AGK_THREADS) agk_grow_small(AgkForest forest)
{
	AGK_DYNAMIC_SHARED(AgkForestTable, tables);
	uint32_t *cells = reinterpret_cast<uint32_t *>(tables + AGK_WARPS);
	int64_t slot = blockIdx.x;
	uint32_t warp = threadIdx.x / 32;
	AgkForestTree *tree = forest.trees + slot;
	const uint32_t *small = forest.small + slot * forest.max_nodes;
	AgkForestWork<AgkWarpTeam> work =
		work_of<AgkWarpTeam>(forest, slot, threadIdx.x % 32, static_cast<int>(warp), tables, cells);

	if (tree->n_stack > 0) /* the other comes again first */
		return;
	for (int64_t n_looks = 0; n_looks < AGK_FOREST_WORK;
		 n_looks += (int64_t) AGK_WARPS * AGK_FOREST_SMALL * forest.n_features_tried)
	{
		uint32_t next, n_small;
		bool is_over;

		__syncthreads();
		next = tree->next_small;
		n_small = tree->n_small;
		is_over = tree->is_done || tree->is_full;
		__syncthreads(); /* all have read what the quickest may change */
		if (is_over)
			return;
		if (next + warp < n_small)
			grow_small(forest, work, small[next + warp]);
		__syncthreads();
		find_least_bucket(forest, tree, slot);
		__syncthreads();
		if (threadIdx.x == 0)
		{
			tree->next_small = next + AGK_WARPS;
			tree->is_done = next + AGK_WARPS >= n_small;
		}
	}
}

AgDeviceStatus
agk_forest_prepare(AgDevice *device, size_t shared_bytes)
{
	cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
	cudaError_t error;

	if (shared_bytes > device->shared_bytes)
		return agk_refuse(device, "a block of this GPU has too little shared memory for forests");
	error = cudaFuncSetAttribute(agk_grow_large, most, (int) shared_bytes);
	if (error == cudaSuccess)
		error = cudaFuncSetAttribute(agk_grow_small, most, (int) shared_bytes);
	return error == cudaSuccess ? AG_DEVICE_OK
								: agk_failed(device, error, "asking for shared memory");
}

AgDeviceStatus
agk_forest_continue(AgDevice *device, const AgkForest *forest, int32_t n, size_t shared_bytes)
{
	AGK_LAUNCH(agk_grow_large, (unsigned) n, AGK_THREADS, shared_bytes, device->stream, *forest);
	AGK_LAUNCH(agk_grow_small, (unsigned) n, AGK_THREADS, shared_bytes, device->stream, *forest);
	return agk_launched(device, "growing trees");
}
