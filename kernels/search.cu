/*
 * search.cu - the best split of the nodes of a step: as model/split.c finds it, to the last bit.
 *
 * A warp takes one feature of a pair of children: it subtracts the smaller child's histogram from the parent's, which leaves the
 * larger one's, and scores all cuts of both, eight bins a lane. Of equal scores the lowest bin wins, then missing values on the
 * right, then the lowest feature. Where hessians can't tell whether a child has enough rows and the cut could win, the
 * feature's rows are counted and it is searched again: with the counts, the answer is exact.
 */
#include "engine/base/rng.h"
#include "kernels/search.cuh"

#define AGK_PER_LANE (AGK_BINS / 32)

/* One feature of one child, the lane's bins in registers. */
struct Cuts
{
	int64_t g[AGK_PER_LANE], h[AGK_PER_LANE];
	const uint32_t *rows; /* [AGK_BINS] counted rows of all bins; null: none needed or known */
	int64_t sum_g, sum_h, n_rows;
	double output;
	AgkBounds bounds;
	int n_bins, first, last;
	bool has_missing;
};

struct Best
{
	double score, maybe;
	int64_t left_g, left_h;
	int bin;
	bool missing_left;
};

static __device__ inline double
merit_of(const AgDeviceRules &rules, const Cuts &cuts, int64_t left_g, int64_t left_h,
		 int64_t left_rows)
{
	return agk_merit(rules, cuts.bounds, cuts.sum_g, cuts.sum_h, cuts.n_rows, cuts.output, rules.l2,
					 left_g, left_h, left_rows);
}

/* 1 allowed, 0 not, -1 can't tell without counting. */
static __device__ inline int
is_allowed(const AgDeviceRules &rules, const AgkState *state, const Cuts &cuts, int64_t left_h,
		   int64_t left_rows)
{
	int64_t right_h = cuts.sum_h - left_h;
	int64_t least = left_h < right_h ? left_h : right_h;

	if ((double) least < rules.min_h || !((double) least + rules.l2 > 0.0))
		return 0;
	if (cuts.rows != nullptr)
		return left_rows >= rules.min_rows && cuts.n_rows - left_rows >= rules.min_rows;
	if (least < rules.min_rows * state->min_h)
		return 0;
	return least >= rules.min_rows * state->max_h ? 1 : -1;
}

static __device__ inline void
consider(const AgDeviceRules &rules, const AgkState *state, const Cuts &cuts, int64_t left_g,
		 int64_t left_h, int64_t left_rows, int bin, bool missing_left, Best *best)
{
	int allowed = is_allowed(rules, state, cuts, left_h, left_rows);
	double score;

	if (allowed == 0)
		return;
	score = merit_of(rules, cuts, left_g, left_h, left_rows);
	if (allowed < 0)
	{
		if (score > best->maybe)
			best->maybe = score;
		return;
	}
	if (!(score > best->score))
		return;
	best->score = score;
	best->left_g = left_g;
	best->left_h = left_h;
	best->bin = bin;
	best->missing_left = missing_left;
}

/* Is lane b's best to be preferred? Lanes' bins differ, so missing_left never decides. */
static __device__ inline void
merge_lanes(Best *best)
{
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		Best other;

		other.score = __shfl_xor_sync(~0u, best->score, lanes);
		other.maybe = __shfl_xor_sync(~0u, best->maybe, lanes);
		other.left_g = __shfl_xor_sync(~0u, best->left_g, lanes);
		other.left_h = __shfl_xor_sync(~0u, best->left_h, lanes);
		other.bin = __shfl_xor_sync(~0u, best->bin, lanes);
		other.missing_left = __shfl_xor_sync(~0u, best->missing_left ? 1 : 0, lanes) != 0;
		if (other.maybe > best->maybe)
			best->maybe = other.maybe;
		if (other.bin > 0 &&
			(other.score > best->score ||
			 (other.score == best->score && (best->bin == 0 || other.bin < best->bin))))
		{
			best->score = other.score;
			best->left_g = other.left_g;
			best->left_h = other.left_h;
			best->bin = other.bin;
			best->missing_left = other.missing_left;
		}
	}
}

/* Every lane gets the best cut; bin 0: none. */
static __device__ Best
scan_cuts(const AgDeviceRules &rules, const AgkState *state, const Cuts &cuts)
{
	int lane = static_cast<int>(threadIdx.x % 32);
	int64_t g = 0, h = 0, rows = 0, missing_g, missing_h, missing_rows;
	int64_t before_g, before_h, before_rows;
	Best best = {-(double) INFINITY, -(double) INFINITY, 0, 0, 0, false};

	for (int k = 0; k < AGK_PER_LANE; k++)
		if (lane > 0 || k > 0) /* bin 0 is missing */
		{
			int b = lane * AGK_PER_LANE + k;

			g += cuts.g[k];
			h += cuts.h[k];
			rows += cuts.rows != nullptr && b <= cuts.n_bins ? cuts.rows[b] : 0;
		}
	before_g = agk_warp_before(g);
	before_h = agk_warp_before(h);
	before_rows = agk_warp_before(rows);
	missing_g = __shfl_sync(~0u, cuts.g[0], 0);
	missing_h = __shfl_sync(~0u, cuts.h[0], 0);
	missing_rows = cuts.rows != nullptr ? cuts.rows[0] : 0;
	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = lane * AGK_PER_LANE + k;

		if (b == 0 || b > cuts.last)
			continue;
		before_g += cuts.g[k];
		before_h += cuts.h[k];
		before_rows += cuts.rows != nullptr ? cuts.rows[b] : 0;
		if (b < cuts.first)
			continue;
		consider(rules, state, cuts, before_g, before_h, before_rows, b, false, &best);
		if (b < cuts.n_bins && cuts.has_missing)
			consider(rules, state, cuts, before_g + missing_g, before_h + missing_h,
					 before_rows + missing_rows, b, true, &best);
	}
	merge_lanes(&best);
	return best;
}

/* ---- extremely randomised cuts ---- */

/* A value inside bin b, for drawing: its middle, or as far beyond the end cut as the next one is before it. */
static __device__ double
bin_middle(const double *cuts, int n_bins, int b)
{
	int n_cuts = n_bins - 1;

	if (n_cuts == 1)
		return b == 1 ? cuts[0] - 0.5 : cuts[0] + 0.5;
	if (b == 1)
		return cuts[0] - (cuts[1] - cuts[0]) * 0.5;
	if (b == n_bins)
		return cuts[n_cuts - 1] + (cuts[n_cuts - 1] - cuts[n_cuts - 2]) * 0.5;
	return cuts[b - 2] + (cuts[b - 1] - cuts[b - 2]) * 0.5;
}

/* The one cut of the node and feature: a value drawn within its range, moved to the nearest cut. */
static __device__ int
random_cut(const double *cuts, int n_bins, int lowest, int highest, uint64_t key)
{
	double low, high, value;
	int at;

	if (lowest == highest)
		return highest;
	low = bin_middle(cuts, n_bins, lowest);
	high = bin_middle(cuts, n_bins, highest);
	if (!(high - low <= 1e300))
		return lowest + (int) ag_random_below(key, 0, (uint32_t) (highest - lowest));
	value = low + ag_random_unit(key, 0) * (high - low);
	for (at = lowest; at < highest - 1; at++)
		if (value < cuts[at - 1] + (cuts[at] - cuts[at - 1]) * 0.5)
			break;
	return at;
}

/* The first and the last value bin that isn't empty; where all are, the last and then the first that the loops end at. */
static __device__ void
filled_range(const Cuts &cuts, int *lowest, int *highest)
{
	int lane = static_cast<int>(threadIdx.x % 32), low = cuts.n_bins, high = 0;

	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = lane * AGK_PER_LANE + k;

		if (b == 0 || b > cuts.n_bins || (cuts.g[k] == 0 && cuts.h[k] == 0))
			continue;
		low = b < low ? b : low;
		high = b > high ? b : high;
	}
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		int other_low = __shfl_xor_sync(~0u, low, lanes);
		int other_high = __shfl_xor_sync(~0u, high, lanes);

		low = other_low < low ? other_low : low;
		high = other_high > high ? other_high : high;
	}
	*lowest = low;
	*highest = high > low ? high : low;
}

/* ---- a feature of a child ---- */

static __device__ void
search_number(const AgkGrowth &growth, const AgkChild &child, int index, int f, Cuts *cuts)
{
	const AgkMatrix &matrix = growth.matrix;
	AgkFound *found = growth.found + (int64_t) index * matrix.n_features + f;
	AgkBounds bounds = agk_bounds(growth, child, f);
	double bar =
		agk_bar(growth.rules, bounds, child.sum_g, child.sum_h, child.n_rows, child.output);
	int has_missing = cuts->g[0] != 0 || cuts->h[0] != 0;
	Best best;

	cuts->has_missing = __shfl_sync(~0u, has_missing, 0) != 0;
	cuts->sum_g = child.sum_g;
	cuts->sum_h = child.sum_h;
	cuts->n_rows = child.n_rows;
	cuts->output = child.output;
	cuts->bounds = bounds;
	cuts->n_bins = matrix.n_bins[f];
	cuts->first = 1;
	cuts->last = cuts->has_missing ? cuts->n_bins : cuts->n_bins - 1;
	if (growth.rules.has_random_cut && cuts->last > 0)
	{
		int lowest, highest;

		filled_range(*cuts, &lowest, &highest);
		cuts->first = random_cut(matrix.cuts + matrix.first_cut[f], cuts->n_bins, lowest, highest,
								 ag_key(child.key, (uint64_t) f));
		cuts->last = cuts->first < cuts->last ? cuts->first : cuts->last;
	}
	best = scan_cuts(growth.rules, growth.state, *cuts);
	if (threadIdx.x % 32 != 0)
		return;
	*found = AgkFound();
	found->maybe = best.maybe;
	found->split.feature = -1;
	/* what may be better is asked for only where it beats what is sure */
	if (best.maybe < best.score || !(best.maybe > bar))
		found->maybe = -(double) INFINITY;
	else
		found->maybe = best.maybe - bar;
	if (!(best.score > bar))
		return;
	found->split.gain = best.score - bar;
	found->split.rank = agk_rank(growth.rules, found->split.gain, bar, child.key, f);
	found->split.feature = f;
	found->split.bin = best.bin;
	found->split.missing_left =
		cuts->has_missing ? best.missing_left : 2 * best.left_h >= child.sum_h;
	found->split.left_g = best.left_g;
	found->split.left_h = best.left_h;
}

/* The lane's bins of one table into registers. */
static __device__ inline void
load_bins(const AgkMatrix &matrix, const int64_t *table, int f, int64_t *g, int64_t *h)
{
	const int64_t *cells = table + matrix.offset[f];

	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = static_cast<int>(threadIdx.x % 32) * AGK_PER_LANE + k;
		bool is_here = b <= matrix.n_bins[f];

		g[k] = is_here ? cells[b] : 0;
		h[k] = is_here ? cells[matrix.n_cells + b] : 0;
	}
}

/* Searches one feature of one child, or says that there is nothing. */
static __device__ void
search_child(const AgkGrowth &growth, int index, int f, Cuts *cuts)
{
	AgkFound *found = growth.found + (int64_t) index * growth.matrix.n_features + f;
	AgkChild child = agk_child(growth, index / 2, index % 2);

	if (child.can_split && agk_may_use(growth, index, f))
	{
		search_number(growth, child, index, f, cuts);
		return;
	}
	if (threadIdx.x % 32 != 0)
		return;
	found->split.feature = -1;
	found->maybe = -(double) INFINITY;
}

/* A step's pairs of children: subtraction and the search over numbers. */
__global__ void
agk_search_numbers(AgkGrowth growth)
{
	const AgkMatrix &matrix = growth.matrix;
	int64_t n_items = (int64_t) growth.state->n_expand * matrix.n_features;
	int64_t step = (int64_t) gridDim.x * AGK_WARPS, n_table = 2 * (int64_t) matrix.n_cells;

	for (int64_t item = (int64_t) blockIdx.x * AGK_WARPS + threadIdx.x / 32; item < n_items;
		 item += step)
	{
		int e = (int) (item / matrix.n_features), f = (int) (item % matrix.n_features);
		const AgkNode *node = growth.nodes + growth.expand[e];
		bool small_is_right = agk_small_is_right(growth, e);
		bool is_number = !matrix.is_category[f] && !growth.always_counts;
		int64_t *small_table = growth.slots + growth.child_slot[e] * n_table, *large_table;
		Cuts small, large;

		if (growth.child_slot[e] < 0)
			continue;
		load_bins(matrix, small_table, f, small.g, small.h);
		if (!growth.is_root)
		{
			large_table = growth.slots + node->slot * n_table;
			load_bins(matrix, large_table, f, large.g, large.h);
			for (int k = 0; k < AGK_PER_LANE; k++)
			{
				int b = static_cast<int>(threadIdx.x % 32) * AGK_PER_LANE + k;

				large.g[k] -= small.g[k];
				large.h[k] -= small.h[k];
				if (b > matrix.n_bins[f])
					continue;
				large_table[matrix.offset[f] + b] = large.g[k];
				large_table[matrix.n_cells + matrix.offset[f] + b] = large.h[k];
			}
			large.rows = nullptr;
			if (is_number)
				search_child(growth, 2 * e + !small_is_right, f, &large);
		}
		small.rows = nullptr;
		if (is_number)
			search_child(growth, 2 * e + small_is_right, f, &small);
	}
}

/* Those again whose rows were counted. */
__global__ void
agk_search_again(AgkGrowth growth)
{
	const AgkMatrix &matrix = growth.matrix;
	int64_t n_items = (int64_t) agk_n_children(growth) * matrix.n_features;
	int64_t step = (int64_t) gridDim.x * AGK_WARPS;

	if (growth.state->wants_search == 0 || (growth.state->n_flagged == 0 && !growth.always_counts))
		return;
	for (int64_t item = (int64_t) blockIdx.x * AGK_WARPS + threadIdx.x / 32; item < n_items;
		 item += step)
	{
		int index = (int) (item / matrix.n_features), f = (int) (item % matrix.n_features);
		Cuts cuts;

		if (matrix.is_category[f] || !(growth.always_counts || growth.is_flagged[item]))
			continue;
		load_bins(matrix, agk_table(growth, index), f, cuts.g, cuts.h);
		cuts.rows = growth.counts + item * AGK_BINS;
		search_child(growth, index, f, &cuts);
	}
}

/* ---- counting rows ---- */

/* How many rows of a child are in each bin of the features that want it. */
__global__ void
agk_count_rows(AgkGrowth growth, int only_flagged)
{
	__shared__ unsigned counts[AGK_BINS];
	const AgkMatrix &matrix = growth.matrix;
	int n_children = agk_n_children(growth);

	if (growth.state->wants_search == 0 || (only_flagged && growth.state->n_flagged == 0))
		return;
	for (int64_t item = blockIdx.x; item < (int64_t) n_children * matrix.n_features;
		 item += gridDim.x)
	{
		int index = (int) (item / matrix.n_features), f = (int) (item % matrix.n_features);
		AgkChild child = agk_child(growth, index / 2, index % 2);
		bool wanted = only_flagged ? growth.is_flagged[item] != 0
								   : matrix.is_category[f] || growth.always_counts;
		uint32_t *to = growth.counts + item * AGK_BINS;

		if (!wanted || !child.can_split || !agk_may_use(growth, index, f))
			continue;
		if (growth.is_counted_from_h)
		{
			const int64_t *h = agk_table(growth, index) + matrix.n_cells + matrix.offset[f];

			for (int b = threadIdx.x; b <= matrix.n_bins[f]; b += blockDim.x)
				to[b] = (uint32_t) (h[b] / growth.state->min_h);
			continue;
		}
		__syncthreads();
		for (int b = threadIdx.x; b < AGK_BINS; b += blockDim.x)
			counts[b] = 0;
		__syncthreads();
		for (int64_t i = threadIdx.x; i < child.n_rows; i += blockDim.x)
		{
			int64_t id = growth.ids[child.list][child.begin + i];

			if (agk_is_here(matrix, id))
				atomicAdd(counts + agk_bin(matrix, f, id), 1u);
		}
		__syncthreads();
		for (int b = threadIdx.x; b < AGK_BINS; b += blockDim.x)
			to[b] = counts[b] + (matrix.first_row > 0 ? to[b] : 0); /* blocks before */
	}
}

/* ---- the best of the features ---- */

static __device__ inline bool
is_better(const AgDeviceSplit *a, const AgDeviceSplit *b)
{
	if (a->feature < 0 || b->feature < 0)
		return a->feature >= 0;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->feature < b->feature;
}

/* The feature of a child's best split, -1: none; for all threads. */
static __device__ int
best_feature(const AgkFound *found, int n_features)
{
	__shared__ int bests[AGK_THREADS];
	int best = -1;

	for (int f = threadIdx.x; f < n_features; f += blockDim.x)
		if (found[f].split.feature >= 0 &&
			(best < 0 || is_better(&found[f].split, &found[best].split)))
			best = f;
	__syncthreads();
	bests[threadIdx.x] = best;
	__syncthreads();
	for (int delta = AGK_THREADS / 2; delta > 0; delta /= 2)
	{
		if (static_cast<int>(threadIdx.x) < delta)
		{
			int other = bests[threadIdx.x + delta], mine = bests[threadIdx.x];

			if (other >= 0 && (mine < 0 || is_better(&found[other].split, &found[mine].split)))
				bests[threadIdx.x] = other;
		}
		__syncthreads();
	}
	return bests[0];
}

/* Marks the features whose undecided cuts could win; with noise, any could. */
static __device__ void
flag_features(const AgkGrowth &growth, int index, const AgkFound *found, double gain)
{
	int n_features = growth.matrix.n_features;

	for (int f = threadIdx.x; f < n_features; f += blockDim.x)
	{
		bool is_flagged = found[f].maybe > 0.0 && !(found[f].maybe < gain);

		growth.is_flagged[(int64_t) index * n_features + f] = is_flagged;
		if (is_flagged)
			atomicAdd(&growth.state->n_flagged, 1);
	}
}

static __device__ inline void
free_slot(const AgkGrowth &growth, int32_t slot)
{
	growth.free_slots[atomicAdd(&growth.state->n_free_slots, 1)] = slot;
}

/* Writes a child with its split; histograms that nobody will need are given back. */
static __device__ void
make_child(const AgkGrowth &growth, int e, bool is_right, const AgDeviceSplit *split)
{
	const AgkNode *parent = growth.nodes + growth.expand[e];
	AgkNode *node = growth.nodes + (growth.is_root ? 0 : parent->left + is_right);
	AgkChild child = agk_child(growth, e, is_right);
	bool is_small = agk_small_is_right(growth, e) == is_right;
	int32_t slot = is_small ? growth.child_slot[e] : parent->slot;

	if (!growth.is_root)
	{
		*node = AgkNode();
		node->begin = child.begin;
		node->n_rows = child.n_rows;
		node->sum_g = child.sum_g;
		node->sum_h = child.sum_h;
		node->output = child.output;
		node->low = child.low;
		node->high = child.high;
		node->parent_output = parent->output;
		node->key = child.key;
		node->parent = growth.expand[e];
		node->list = child.list;
		node->depth = child.depth;
		node->has_cat_l2 = parent->split.has_cat_l2;
	}
	node->left = -1;
	node->split.feature = -1;
	node->slot = slot;
	if (split != nullptr)
		node->split = *split;
	if (node->split.feature >= 0 || slot < 0)
		return;
	free_slot(growth, slot);
	node->slot = -1;
}

/* A block a child: its best split, or what must be counted first. */
__global__ void
agk_pick_splits(AgkGrowth growth, int may_flag)
{
	int n_features = growth.matrix.n_features;
	int n_children = agk_n_children(growth);

	if (!may_flag && !growth.is_final)
		return;
	for (int index = blockIdx.x; index < n_children; index += gridDim.x)
	{
		const AgkFound *found = growth.found + (int64_t) index * n_features;
		int best = growth.state->wants_search ? best_feature(found, n_features) : -1;

		if (may_flag && growth.state->wants_search)
			flag_features(growth, index, found,
						  best >= 0 && !(growth.rules.noise > 0.0) ? found[best].split.gain : 0.0);
		if (growth.is_final && threadIdx.x == 0)
			make_child(growth, index / 2, index % 2, best >= 0 ? &found[best].split : nullptr);
	}
}

/* ---- the whole search of a step ---- */

static AgDeviceStatus
count_rows(AgDevice *device, AgkGrowth growth, unsigned grid, int only_flagged)
{
	return agk_each_block(device, &growth.matrix, [&] {
		AGK_LAUNCH(agk_count_rows, grid, AGK_THREADS, 0, device->stream, growth, only_flagged);
	});
}

AgDeviceStatus
agk_search(AgDevice *device, AgkGrowth *growth)
{
	int64_t n_children = 2 * (int64_t) growth->most_expand;
	int64_t n_pairs = (int64_t) growth->most_expand * growth->matrix.n_features;
	unsigned grid = agk_grid(device, n_pairs, AGK_WARPS);
	unsigned wide = agk_grid(device, 2 * n_pairs, 1);
	bool must_count = !growth->is_counted_from_h;

	if (growth->may_use != nullptr)
		AGK_TRY(agk_draw_features(device, growth));
	AGK_LAUNCH(agk_search_numbers, grid, AGK_THREADS, 0, device->stream, *growth);
	if (growth->matrix.n_categories > 0 || growth->always_counts)
	{
		AGK_TRY(count_rows(device, *growth, wide, 0));
		if (growth->always_counts) /* numbers, now that their rows are known */
			AGK_LAUNCH(agk_search_again, grid, AGK_THREADS, 0, device->stream, *growth);
		AGK_TRY(agk_search_categories(device, growth));
	}
	growth->is_final = 0;
	if (must_count && !growth->always_counts)
	{
		AGK_LAUNCH(agk_pick_splits, agk_grid(device, n_children, 1), AGK_THREADS, 0, device->stream,
				   *growth, 1);
		AGK_TRY(count_rows(device, *growth, wide, 1));
		AGK_LAUNCH(agk_search_again, grid, AGK_THREADS, 0, device->stream, *growth);
	}
	growth->is_final = 1;
	AGK_LAUNCH(agk_pick_splits, agk_grid(device, n_children, 1), AGK_THREADS, 0, device->stream,
			   *growth, 0);
	return agk_launched(device, "searching splits");
}
