/*
 * forest_node.cuh - what becomes of one node of a forest's tree: may it be split, how its rows are parted, its children.
 */
#ifndef AGK_FOREST_NODE_CUH
#define AGK_FOREST_NODE_CUH

#include "kernels/forest_search.cuh"

static __device__ inline uint32_t
agk_bucket_of(double gain)
{
	uint64_t bits;

	memcpy(&bits, &gain, sizeof(bits));
	return (uint32_t) (bits >> 48) & (AGK_FOREST_BUCKETS - 1);
}

static inline __host__ __device__ bool
agk_may_split(const AgkForest &forest, uint32_t n_rows, uint32_t depth)
{
	return n_rows >= forest.min_rows_split && n_rows >= 2 * forest.min_rows_leaf &&
		   depth < forest.max_depth;
}

/* Moves left rows to the front, in their order; how many they are. */
template <class Team>
static __device__ uint32_t
agk_part_rows(const AgkForest &forest, AgkForestWork<Team> &work, int f, uint32_t cut)
{
	const uint8_t *ranks = agk_forest_ranks(forest, work.slot, f);
	uint64_t *spare = forest.spare + (work.rows - forest.rows); /* it lies as they do */
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
			is_left = ag_forest_cut_left(
				cut, agk_team_bin<Team>(forest, f, ranks, by_rows, (uint32_t) row));
		}
		before = work.team.before(is_left ? 1 : 0, &n_tile);
		if (is_here && is_left)
			work.rows[n_left + before] = row; /* all of the tile was read */
		else if (is_here)
			spare[n_right + work.team.rank - before] = row;
		n_left += n_tile;
		n_right += n_here - n_tile;
	}
	work.team.sync();
	for (uint32_t i = work.team.rank; i < n_right; i += Team::size)
		work.rows[n_left + i] = spare[i];
	work.team.sync();
	return n_left;
}

/* The split that was found, as a cut of bins or ranks. */
template <class Team>
static __device__ uint32_t
agk_cut_of(const AgkForest &forest, const AgkForestWork<Team> &work, const AgkForestSplit &split)
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
agk_write_child(AgDeviceForestNode *child, uint32_t begin, uint32_t n_rows, uint64_t key,
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
agk_make_children(const AgkForest &forest, AgkForestTree *tree, AgDeviceForestNode *nodes,
				  uint32_t at, uint32_t n_left)
{
	AgDeviceForestNode *node = nodes + at;
	uint32_t left = atomicAdd(&tree->n_nodes, 2u);

	if ((int64_t) left + 2 > forest.max_nodes)
	{
		atomicMax(&tree->is_full, 1);
		return 0;
	}
	agk_write_child(nodes + left, node->begin, n_left, ag_key(node->key, AG_FOREST_KEY_LEFT),
					node->depth + 1, node->least);
	agk_write_child(nodes + left + 1, node->begin + n_left, node->n_rows - n_left,
					ag_key(node->key, AG_FOREST_KEY_RIGHT), node->depth + 1, node->least);
	node->left = (int32_t) left;
	return left;
}

/* Notes the split; false: no tree of max_leaves has it. */
template <class Team>
static __device__ bool
agk_note_split(const AgkForest &forest, AgkForestWork<Team> &work, AgDeviceForestNode *node,
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
			atomicAdd(forest.buckets + work.slot * AGK_FOREST_BUCKETS + agk_bucket_of(least), 1u);
			atomicAdd(&work.tree->n_splits, 1u);
		}
	}
	work.team.sync();
	return agk_bucket_of(least) >= work.tree->least_bucket;
}

/* The node's part of the team's room, and its view; false: it can't be split. For every thread of the team. */
template <class Team>
static __device__ bool
agk_take_node(const AgkForest &forest, AgkForestWork<Team> &work, const AgDeviceForestNode *node)
{
	if (!agk_may_split(forest, node->n_rows, node->depth) ||
		agk_bucket_of(node->least) < work.tree->least_bucket)
		return false;
	work.rows += node->begin;
	work.row_weights += node->begin;
	work.n_rows = node->n_rows;
	work.key = node->key;
	work.shift = 0;
	if (forest.n_classes > 0)
		agk_view_classes(forest, work);
	else
		agk_view_numbers(forest, work);
	return work.kind != AG_FOREST_PURE &&
		   (double) work.weight >= 2.0 * (forest.min_weight_fraction * (double) work.tree->weight);
}

/* Is the split that was found one of the tree's? Then it is noted, and its cut in *cut. */
template <class Team>
static __device__ bool
agk_judge_split(const AgkForest &forest, AgkForestWork<Team> &work, AgDeviceForestNode *node,
				const AgkForestSplit &split, uint32_t *cut)
{
	double gain;

	if (split.feature < 0)
		return false;
	gain = ag_forest_gain(work.kind, forest.is_entropy != 0, forest.logs, forest.n_logs, work.sum,
						  work.squares, work.weight, work.shift, split.score);
	if (!(gain >= forest.min_gain * (double) work.tree->weight))
		return false;
	*cut = agk_cut_of(forest, work, split);
	return agk_note_split(forest, work, node, split, gain, *cut);
}

template <class Team>
static __device__ AgkForestWork<Team>
agk_work_of(const AgkForest &forest, int64_t slot, unsigned rank, int warp, AgkForestTable *tables,
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
	work.rows = forest.rows + slot * forest.n_train;
	work.row_weights = forest.row_weights + slot * forest.n_train;
	return work;
}

#endif
