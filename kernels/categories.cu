/*
 * categories.cu - the search over subsets of a category's levels: as model/split_category.c finds it, to the last bit.
 *
 * A warp takes one feature of one child. Few levels: each lane scores some of them against the rest. Many: lanes rank the
 * levels by the ratio of gradient to hessian, and one lane walks the prefixes of that order from both ends, for each step
 * there depends on the one before.
 */
#include "engine/base/rng.h"
#include "kernels/search.cuh"

#define AGK_CATEGORY_WARPS 4

/* A warp's room in shared memory. */
struct Levels
{
	int64_t g[AGK_BINS], h[AGK_BINS];
	double ratio[AGK_BINS]; /* NaN: not to be sorted */
	uint32_t rows[AGK_BINS];
	int16_t order[AGK_BINS];
};

struct Search
{
	const AgDeviceRules *rules;
	const Levels *levels;
	AgkChild child;
	AgkBounds bounds;
	int n_bins;
	double score; /* best so far */
	AgDeviceSplit split;
};

static __device__ inline bool
has_hessian(const Search *search, int64_t h)
{
	double sum = (double) h;

	return sum >= search->rules->min_h && sum + search->rules->l2 > 0.0;
}

static __device__ inline double
merit_of(const Search *search, double l2, int64_t g, int64_t h, int64_t rows)
{
	const AgkChild *child = &search->child;

	return agk_merit(*search->rules, search->bounds, child->sum_g, child->sum_h, child->n_rows,
					 child->output, l2, g, h, rows);
}

static __device__ inline void
set_bit(uint64_t *bits, int bin)
{
	bits[bin >> 6] |= UINT64_C(1) << (bin & 63);
}

/* The drawn one of the levels that are there; -1: all are looked at, or there is none. */
static __device__ int
only_level(const Search *search, int f)
{
	int n_present = 0, drawn;

	if (!search->rules->has_random_cut)
		return -1;
	for (int b = 0; b <= search->n_bins; b++)
		n_present += search->levels->rows[b] > 0;
	if (n_present == 0)
		return -1;
	drawn = (int) ag_random_below(ag_key(search->child.key, (uint64_t) f), 0, (uint32_t) n_present);
	for (int b = 0; b <= search->n_bins; b++)
		if (search->levels->rows[b] > 0 && drawn-- == 0)
			return b;
	return -1;
}

/* Each level alone on the left; of equal scores the lowest bin. The result is in lane 0. */
static __device__ void
search_each(Search *search, int f)
{
	const Levels *levels = search->levels;
	int64_t n_rows = search->child.n_rows, min_rows = search->rules->min_rows;
	int only = only_level(search, f), best = -1;
	double score = search->score;

	for (int b = static_cast<int>(threadIdx.x % 32); b <= search->n_bins; b += 32)
	{
		int64_t rows = levels->rows[b];
		double merit;

		if (rows == 0 || (only >= 0 && b != only) || rows < min_rows || n_rows - rows < min_rows ||
			!has_hessian(search, levels->h[b]) ||
			!has_hessian(search, search->child.sum_h - levels->h[b]))
			continue;
		merit = merit_of(search, search->rules->l2, levels->g[b], levels->h[b], rows);
		if (!(merit > score))
			continue;
		score = merit;
		best = b;
	}
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		double other_score = __shfl_xor_sync(~0u, score, lanes);
		int other = __shfl_xor_sync(~0u, best, lanes);

		if (other >= 0 &&
			(best < 0 || other_score > score || (other_score == score && other < best)))
		{
			score = other_score;
			best = other;
		}
	}
	if (best < 0)
		return;
	search->score = score;
	set_bit(search->split.left_bins, best);
	search->split.left_g = levels->g[best];
	search->split.left_h = levels->h[best];
	search->split.bin = best;
}

/* Ranks the levels that may be sorted; returns how many. Equal ratios keep the order of their bins. */
static __device__ int
sort_levels(const Search *search, Levels *levels)
{
	const AgDeviceRules *rules = search->rules;
	int n = 0;

	for (int b = static_cast<int>(threadIdx.x % 32); b <= search->n_bins; b += 32)
	{
		double below = (double) levels->h[b] + rules->cat_smooth_h;
		bool is_in =
			levels->rows[b] > 0 && !((double) levels->rows[b] < rules->cat_smooth) && below > 0.0;

		levels->ratio[b] = is_in ? (double) levels->g[b] / below : (double) NAN;
	}
	__syncwarp();
	for (int b = 0; b <= search->n_bins; b++)
		n += levels->ratio[b] == levels->ratio[b];
	for (int b = static_cast<int>(threadIdx.x % 32); b <= search->n_bins; b += 32)
	{
		double ratio = levels->ratio[b];
		int rank = 0;

		if (ratio != ratio)
			continue;
		for (int other = 0; other <= search->n_bins; other++)
			rank += levels->ratio[other] < ratio || (levels->ratio[other] == ratio && other < b);
		levels->order[rank] = (int16_t) b;
	}
	__syncwarp();
	return n;
}

/* Prefixes of the sorted levels from one end. only >= 0: just that length - 1. */
static __device__ void
search_prefixes(Search *search, int n_levels, int n_most, bool from_end, int only)
{
	const Levels *levels = search->levels;
	const AgDeviceRules *rules = search->rules;
	double l2 = rules->l2 + rules->cat_l2;
	int64_t g = 0, h = 0, rows = 0, group = 0;
	uint64_t left[4] = {0, 0, 0, 0};

	for (int i = 0; i < n_most; i++)
	{
		int b = levels->order[from_end ? n_levels - 1 - i : i];
		int64_t right_rows;
		double score;

		set_bit(left, b);
		g += levels->g[b];
		h += levels->h[b];
		rows += levels->rows[b];
		group += levels->rows[b];
		right_rows = search->child.n_rows - rows;
		if (rows < rules->min_rows || !has_hessian(search, h))
			continue;
		if (right_rows < rules->min_rows || right_rows < rules->min_rows_per_group ||
			!has_hessian(search, search->child.sum_h - h))
			break;
		if (group < rules->min_rows_per_group)
			continue;
		group = 0;
		if (only >= 0 && i != only)
			continue;
		score = merit_of(search, l2, g, h, rows);
		if (!(score > search->score))
			continue;
		search->score = score;
		for (int w = 0; w < 4; w++)
			search->split.left_bins[w] = left[w];
		search->split.left_g = g;
		search->split.left_h = h;
		search->split.bin = i + 1;
		search->split.has_cat_l2 = true;
	}
}

static __device__ void
search_sorted(Search *search, Levels *levels, int f)
{
	int n_levels = sort_levels(search, levels), n_most = (n_levels + 1) / 2, only = -1;

	if (threadIdx.x % 32 != 0)
		return;
	if (n_most > search->rules->max_cat_threshold)
		n_most = search->rules->max_cat_threshold;
	if (search->rules->has_random_cut && n_most > 0)
		only = (int) ag_random_below(ag_key(search->child.key, (uint64_t) f), 0, (uint32_t) n_most);
	search_prefixes(search, n_levels, n_most, false, only);
	search_prefixes(search, n_levels, n_most, true, only);
}

/* Levels without rows follow the child with the greater hessian; so do unseen ones, but for the tail's bin where it has rows. */
static __device__ void
place_absent(Search *search, bool has_other)
{
	AgDeviceSplit *split = &search->split;
	bool majority_left = 2 * split->left_h >= search->child.sum_h;

	for (int b = 0; majority_left && b <= search->n_bins; b++)
		if (search->levels->rows[b] == 0)
			set_bit(split->left_bins, b);
	split->missing_left = (split->left_bins[0] & 1) != 0;
	split->unseen_left = majority_left;
	if (has_other)
		split->unseen_left =
			(split->left_bins[search->n_bins >> 6] >> (search->n_bins & 63) & 1) != 0;
}

static __device__ void
search_feature(const AgkGrowth &growth, int index, int f, Levels *levels)
{
	const AgkMatrix &matrix = growth.matrix;
	int64_t at = (int64_t) index * matrix.n_features + f;
	AgkFound *found = growth.found + at;
	const int64_t *cells;
	Search search = {};
	double bar;

	search.child = agk_child(growth, index / 2, index % 2);
	if (threadIdx.x % 32 == 0)
	{
		*found = AgkFound();
		found->split.feature = -1;
		found->maybe = -(double) INFINITY;
	}
	if (!search.child.can_split || !agk_may_use(growth, index, f))
		return;
	search.rules = &growth.rules;
	search.levels = levels;
	search.n_bins = matrix.n_bins[f];
	cells = agk_table(growth, index) + matrix.offset[f];
	__syncwarp();
	for (int b = static_cast<int>(threadIdx.x % 32); b <= search.n_bins; b += 32)
	{
		levels->g[b] = cells[b];
		levels->h[b] = cells[matrix.n_cells + b];
		levels->rows[b] = growth.counts[at * AGK_BINS + b];
	}
	__syncwarp();
	search.split.feature = f;
	search.split.is_category = true;
	search.bounds = agk_bounds(growth, search.child, f);
	bar = agk_bar(growth.rules, search.bounds, search.child.sum_g, search.child.sum_h,
				  search.child.n_rows, search.child.output);
	search.score = bar;
	if (search.n_bins <= growth.rules.max_cat_to_onehot)
		search_each(&search, f);
	else
		search_sorted(&search, levels, f);
	if (threadIdx.x % 32 != 0 || !(search.score > bar))
		return;
	search.split.gain = search.score - bar;
	search.split.rank = agk_rank(growth.rules, search.split.gain, bar, search.child.key, f);
	place_absent(&search, matrix.has_other[f] != 0);
	found->split = search.split;
}

__global__ void
agk_search_levels(AgkGrowth growth)
{
	AGK_DYNAMIC_SHARED(Levels, levels);
	const AgkMatrix &matrix = growth.matrix;
	int64_t n_items = (int64_t) agk_n_children(growth) * matrix.n_categories;
	int64_t step = (int64_t) gridDim.x * AGK_CATEGORY_WARPS;

	if (growth.state->wants_search == 0)
		return;
	for (int64_t item = (int64_t) blockIdx.x * AGK_CATEGORY_WARPS + threadIdx.x / 32;
		 item < n_items; item += step)
		search_feature(growth, (int) (item / matrix.n_categories),
					   matrix.categories[item % matrix.n_categories], levels + threadIdx.x / 32);
}

AgDeviceStatus
agk_search_categories(AgDevice *device, const AgkGrowth *growth)
{
	int64_t n_items = 2 * (int64_t) growth->most_expand * growth->matrix.n_categories;

	if (growth->matrix.n_categories == 0)
		return AG_DEVICE_OK;
	AGK_LAUNCH(agk_search_levels, agk_grid(device, n_items, AGK_CATEGORY_WARPS),
			   32 * AGK_CATEGORY_WARPS, AGK_CATEGORY_WARPS * sizeof(Levels), device->stream,
			   *growth);
	return agk_launched(device, "searching splits");
}
