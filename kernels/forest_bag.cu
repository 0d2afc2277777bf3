/*
 * forest_bag.cu - what each tree of a forest is grown on: its rows, and an order for each category's levels. As model/forest_bag.c.
 */
#include "kernels/forest.cuh"

/* How often each train row was drawn, below 2^32. */
static __device__ void
draw_repeats(const AgkForest &forest, uint64_t key, uint32_t *repeats)
{
	for (int64_t i = threadIdx.x; i < forest.n_train; i += blockDim.x)
		repeats[i] = forest.has_bootstrap ? 0 : 1;
	__syncthreads();
	for (int64_t i = threadIdx.x; forest.has_bootstrap && i < forest.n_draws; i += blockDim.x)
		atomicAdd(repeats + ag_random_below(key, (uint64_t) i, (uint32_t) forest.n_train), 1u);
	__syncthreads();
}

/* The rows that were drawn and have a weight, in order; how many they are. */
static __device__ int64_t
list_rows(const AgkForest &forest, const uint32_t *repeats, uint64_t *rows)
{
	int64_t n = 0;

	for (int64_t tile = 0; tile < forest.n_train; tile += blockDim.x)
	{
		int64_t i = tile + threadIdx.x;
		uint64_t row = 0;
		int before, n_here;

		if (i < forest.n_train)
		{
			uint32_t id = forest.train_rows[i];
			uint64_t load = repeats[i] < 255 ? repeats[i] : 255;

			if (load != 0 && (forest.weights == nullptr || forest.weights[id] != 0))
			{
				if (forest.n_classes > 0)
					load |= (uint64_t) (uint32_t) forest.class_of[id] << 8;
				row = load << 32 | id;
			}
		}
		before = agk_block_scan(row != 0 ? 1 : 0, &n_here);
		if (row != 0)
			rows[n + before] = row;
		n += n_here;
	}
	__syncthreads();
	return n;
}

static __device__ void
mark_out_of_bag(const AgkForest &forest, const uint32_t *repeats, uint8_t *mask)
{
	for (int64_t byte = threadIdx.x; byte < forest.n_mask; byte += blockDim.x)
	{
		unsigned bits = 0;

		for (int64_t i = 8 * byte; i < 8 * byte + 8 && i < forest.n_train; i++)
			bits |= static_cast<unsigned>(repeats[i] == 0) << (i & 7);
		mask[byte] = static_cast<uint8_t>(bits);
	}
}

/* class_weight: factors of the tree's classes. */
static __device__ void
weigh_classes(const AgkForest &forest, const uint64_t *rows, int64_t n, uint32_t *factors)
{
	__shared__ int64_t class_rows[AGK_FOREST_CLASSES];

	for (int k = threadIdx.x; k < forest.n_classes; k += blockDim.x)
		class_rows[k] = forest.weighs_by_tree ? 0 : forest.class_rows[k];
	__syncthreads();
	for (int64_t i = threadIdx.x; forest.weighs_by_tree && i < n; i += blockDim.x)
		agk_add(class_rows + ag_forest_class(rows[i]), (int64_t) (rows[i] >> 32 & 255u));
	__syncthreads();
	if (threadIdx.x == 0)
	{
		int64_t least = INT64_MAX;

		for (int k = 0; k < forest.n_classes; k++)
			if (class_rows[k] > 0 && class_rows[k] < least)
				least = class_rows[k];
		for (int k = 0; k < forest.n_classes; k++)
			factors[k] = ag_forest_class_factor(class_rows[k], least, forest.weights != nullptr);
	}
	__syncthreads();
}

static __device__ int64_t
sum_weights(const AgkForest &forest, const uint64_t *rows, int64_t n, const uint32_t *factors,
			int shift)
{
	int64_t sum = 0;

	for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
		sum += ag_forest_row_weight(rows[i], forest.weights, factors, shift);
	return agk_block_sum(sum);
}

/* Sums of a tree's weights must stay below 2^31. */
static __device__ int64_t
weigh_rows(const AgkForest &forest, const uint64_t *rows, int64_t n, const uint32_t *factors,
		   int *shift)
{
	int64_t whole = sum_weights(forest, rows, n, factors, 0), weight = whole;

	*shift = 0;
	if (forest.weights == nullptr && factors == nullptr)
		return weight;
	while (weight > INT32_MAX)
	{
		do
			(*shift)++;
		while ((whole >> *shift) - n > INT32_MAX);
		weight = sum_weights(forest, rows, n, factors, *shift);
	}
	return weight;
}

/* Ranks of the bins of category f. */
static __device__ void
rank_levels(const AgkForest &forest, int f, uint64_t halves, const uint64_t *rows, int64_t n,
			const uint32_t *factors, int shift, uint8_t *ranks)
{
	__shared__ int64_t sums[AG_FOREST_BINS], weights[AG_FOREST_BINS];
	__shared__ uint32_t n_rows[AG_FOREST_BINS];
	bool is_by_target = ag_forest_is_by_target(halves);

	for (int b = threadIdx.x; b < AG_FOREST_BINS; b += blockDim.x)
	{
		sums[b] = weights[b] = 0;
		n_rows[b] = 0;
	}
	__syncthreads();
	for (int64_t i = threadIdx.x; is_by_target && i < n; i += blockDim.x)
	{
		int64_t weight = ag_forest_row_weight(rows[i], forest.weights, factors, shift);
		unsigned bin = agk_forest_bin(forest, f, nullptr, false, (uint32_t) rows[i]);

		atomicAdd(n_rows + bin, 1u);
		agk_add(weights + bin, weight);
		agk_add(sums + bin,
				weight * ag_forest_level_target(rows[i], forest.values, forest.n_classes, halves));
	}
	__syncthreads();
	if (threadIdx.x == 0)
		ag_forest_rank(forest.matrix.n_bins[f], is_by_target, sums, weights, n_rows, ranks);
	__syncthreads();
}

static __device__ void
open_tree(const AgkForest &forest, int64_t slot, uint64_t key, int64_t n, int64_t weight, int shift)
{
	AgkForestTree *tree = forest.trees + slot;
	AgDeviceForestNode *root = forest.nodes + slot * forest.max_nodes;

	*tree = AgkForestTree();
	tree->key = key;
	tree->n_rows = (uint32_t) n;
	tree->weight = weight;
	tree->shift = shift;
	tree->n_nodes = 1;
	tree->n_stack = 1;
	tree->is_limited = forest.buckets != nullptr && n > forest.max_leaves;
	*root = AgDeviceForestNode();
	root->key = ag_key(key, AG_FOREST_KEY_ROOT);
	root->n_rows = (uint32_t) n;
	root->least = (double) INFINITY;
	root->feature = root->left = -1;
}

/* A block a tree. */
__global__ void
agk_bag_trees(AgkForest forest, int first)
{
	int64_t slot = blockIdx.x;
	uint64_t key = ag_key(forest.seed, (uint64_t) (first + slot));
	uint64_t bag_key = ag_key(key, AG_FOREST_KEY_BAG);
	uint64_t *rows = forest.rows + slot * forest.n_train;
	uint32_t *repeats = reinterpret_cast<uint32_t *>(forest.spare + slot * forest.n_train);
	uint32_t *factors =
		forest.factors != nullptr ? forest.factors + slot * AGK_FOREST_CLASSES : nullptr;
	int64_t n, weight;
	int shift;

	draw_repeats(forest, ag_key(bag_key, AG_FOREST_KEY_ROWS), repeats);
	n = list_rows(forest, repeats, rows);
	if (n == 0) /* all weight is on rows that weren't drawn: they are what there is */
	{
		for (int64_t i = threadIdx.x; i < forest.n_train; i += blockDim.x)
			repeats[i] = 1;
		__syncthreads();
		n = list_rows(forest, repeats, rows);
	}
	if (forest.out_of_bag != nullptr)
		mark_out_of_bag(forest, repeats, forest.out_of_bag + slot * forest.n_mask);
	if (factors != nullptr)
		weigh_classes(forest, rows, n, factors);
	weight = weigh_rows(forest, rows, n, factors, &shift);
	for (int f = 0; f < forest.matrix.n_features && !forest.is_streamed; f++)
		if (forest.rank_of[f] >= 0)
			rank_levels(forest, f, ag_key(ag_key(bag_key, AG_FOREST_KEY_HALVES), (uint64_t) f),
						rows, n, factors, shift,
						forest.ranks +
							(slot * forest.n_ranks + forest.rank_of[f]) * AG_FOREST_BINS);
	if (forest.buckets != nullptr)
		for (int b = threadIdx.x; b < AGK_FOREST_BUCKETS; b += blockDim.x)
			forest.buckets[slot * AGK_FOREST_BUCKETS + b] = 0;
	if (threadIdx.x == 0)
		open_tree(forest, slot, key, n, weight, shift);
}

/* A block a tree, of rows that are there. */
__global__ void
agk_rank_column(AgkForest forest, int f)
{
	int64_t slot = blockIdx.x;
	const AgkForestTree *tree = forest.trees + slot;
	uint64_t bag_key = ag_key(tree->key, AG_FOREST_KEY_BAG);
	const uint32_t *factors =
		forest.factors != nullptr ? forest.factors + slot * AGK_FOREST_CLASSES : nullptr;

	rank_levels(forest, f, ag_key(ag_key(bag_key, AG_FOREST_KEY_HALVES), (uint64_t) f),
				forest.rows + slot * forest.n_train, tree->n_rows, factors, tree->shift,
				forest.ranks + (slot * forest.n_ranks + forest.rank_of[f]) * AG_FOREST_BINS);
}

AgDeviceStatus
agk_forest_rank_column(AgDevice *device, const AgkForest *forest, int32_t f, int32_t n)
{
	AGK_LAUNCH(agk_rank_column, (unsigned) n, AGK_THREADS, 0, device->stream, *forest, f);
	return agk_launched(device, "ranking levels");
}

AgDeviceStatus
agk_forest_bag(AgDevice *device, const AgkForest *forest, int32_t first, int32_t n)
{
	AGK_LAUNCH(agk_bag_trees, (unsigned) n, AGK_THREADS, 0, device->stream, *forest, first);
	return agk_launched(device, "drawing the rows of trees");
}
