/*
 * forest_grow.cu - growing the trees of a forest, a block each. As model/forest_grow.c, but that nodes are taken in any order.
 *
 * Where max_leaves ends a tree, the host takes its splits best first. A split whose least gain on the way from the root is below those
 * of max_leaves - 1 others that were found is never taken, and nothing below it: the tree would be full before. That is
 * looked up in buckets of gains, from time to time, and may be seen late: what is grown in vain is left out.
 */
#include "kernels/forest_node.cuh"

#define AGK_FOREST_WORK                                                                            \
	(INT64_C(1) << 26) /* rows times features looked at by a block in one launch, about */

/* ---- one node ---- */

/* Splits a node, if it can be: the number of its left child, 0: it wasn't. For every thread of the team. */
template <class Team>
static __device__ uint32_t
split_node(const AgkForest &forest, AgkForestWork<Team> work, uint32_t at)
{
	AgDeviceForestNode *nodes = forest.nodes + work.slot * forest.max_nodes, *node = nodes + at;
	AgkForestSplit split;
	uint32_t cut, n_left;

	if (!agk_take_node(forest, work, node))
		return 0;
	split = agk_forest_search(forest, work);
	if (!agk_judge_split(forest, work, node, split, &cut))
		return 0;
	n_left = agk_part_rows(forest, work, split.feature, cut);
	if (work.team.rank == 0)
		work.table->child = agk_make_children(forest, work.tree, nodes, at, n_left);
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
	if (!agk_may_split(forest, node->n_rows, node->depth))
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

/* Some more of a block's tree: its nodes of many rows. */
__global__ void
__launch_bounds__(AGK_THREADS) agk_grow_large(AgkForest forest)
{
	AGK_DYNAMIC_SHARED(AgkForestTable, tables);
	uint32_t *cells = reinterpret_cast<uint32_t *>(tables + AGK_WARPS);
	AgkForestWork<AgkBlockTeam> work =
		agk_work_of<AgkBlockTeam>(forest, blockIdx.x, threadIdx.x, 0, tables, cells);

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
	AgkForestWork<AgkWarpTeam> work = agk_work_of<AgkWarpTeam>(
		forest, slot, threadIdx.x % 32, static_cast<int>(warp), tables, cells);

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
