/*
 * symmetric.cu - growth of oblivious trees: one split for all leaves of a level, as model/grow_symmetric.c grows them.
 *
 * A cut's merit is summed over the leaves in doubles, so their order counts: a warp takes a feature and goes through the leaves
 * in the engine's order, eight cuts a lane in registers. On the way it subtracts histograms. No level waits for the host.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/level_maths.h"
#include "engine/model/sample_maths.h"
#include "kernels/children.cuh"
#include "kernels/plan.cuh"

#define AGK_PER_LANE (AGK_BINS / 32)
#define AGK_MOST_LEVELS 31

/* ---- merits of cuts ---- */

/* The lane's cuts of one feature: two sums a cut. */
struct Merits
{
	double nums[AGK_PER_LANE], dens[AGK_PER_LANE];
	int n_bins;
	bool is_category;
	double l2;
};

static __device__ inline int
lane_bin(int k)
{
	return static_cast<int>(threadIdx.x % 32) * AGK_PER_LANE + k;
}

/* Sums on the left of the lane's cuts, from its bins: in place. *total: of all bins. */
static __device__ void
left_sums(const Merits *merits, int64_t *sums, int64_t *total)
{
	int64_t mine = 0, before, missing = __shfl_sync(~0u, sums[0], 0), all;

	for (int k = 0; k < AGK_PER_LANE; k++)
		mine += sums[k];
	before = mine;
	for (int delta = 1; delta < 32; delta *= 2)
	{
		int64_t other = __shfl_up_sync(~0u, before, delta);

		if (static_cast<int>(threadIdx.x % 32) >= delta)
			before += other;
	}
	all = __shfl_sync(~0u, before, 31);
	before -= mine;
	*total = all;
	if (merits->is_category)
		return;
	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		before += sums[k];
		sums[k] = lane_bin(k) == merits->n_bins ? missing : before;
	}
}

/* Adds one leaf: its bins' sums, which are changed. */
static __device__ void
add_leaf(Merits *merits, int64_t *g, int64_t *h)
{
	int64_t total_g, total_h;
	double sum_g, sum_h, l2 = merits->l2;

	left_sums(merits, g, &total_g);
	left_sums(merits, h, &total_h);
	sum_g = (double) total_g;
	sum_h = (double) total_h;
	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		double gl = (double) g[k], gr = sum_g - gl;
		double hl = (double) h[k], hr = sum_h - hl;
		double vl = gl / (hl + l2), vr = gr / (hr + l2);

		merits->nums[k] += gl * vl + gr * vr;
		merits->dens[k] += vl * vl * hl + vr * vr * hr;
	}
}

static __device__ void
load_leaf(const AgkMatrix &matrix, const int64_t *table, int f, int64_t *g, int64_t *h)
{
	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = lane_bin(k);
		bool is_here = b <= matrix.n_bins[f];

		g[k] = is_here ? table[matrix.offset[f] + b] : 0;
		h[k] = is_here ? table[matrix.n_cells + matrix.offset[f] + b] : 0;
	}
}

/* The cuts that part the rows of the root. */
static __device__ void
open_cuts(const AgkGrowth &growth, const Merits *merits, int f, const int64_t *hessians)
{
	int64_t h[AGK_PER_LANE], total, missing = __shfl_sync(~0u, hessians[0], 0);
	uint8_t *may_cut = growth.may_cut + growth.matrix.offset[f];

	for (int k = 0; k < AGK_PER_LANE; k++)
		h[k] = hessians[k];
	left_sums(merits, h, &total);
	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = lane_bin(k);

		if (b > merits->n_bins)
			continue;
		may_cut[b] = h[k] > 0 && h[k] < total;
		if (merits->is_category)
			continue;
		if (b == 0)
			may_cut[b] = 0; /* is may_cut[n_bins] the other way round */
		if (b == merits->n_bins)
			may_cut[b] = missing > 0 && missing < total;
	}
}

/* Two leaves of one parent: the smaller first, then what it leaves of the parent, which takes the parent's place. */
static __device__ void
add_children(const AgkGrowth &growth, Merits *merits, int f, int p)
{
	const AgkMatrix &matrix = growth.matrix;
	const AgkNode *parent = growth.nodes + p;
	int64_t n_left = growth.n_left[p], n_right = parent->n_rows - n_left;
	int64_t n_small = n_left <= n_right ? n_left : n_right;
	int64_t *small_table = growth.slots + growth.child_slot[p] * 2 * (int64_t) matrix.n_cells;
	int64_t *large_table = growth.slots + parent->slot * 2 * (int64_t) matrix.n_cells;
	int64_t g[AGK_PER_LANE], h[AGK_PER_LANE], small_g[AGK_PER_LANE], small_h[AGK_PER_LANE];

	if (parent->n_rows == 0)
		return;
	load_leaf(matrix, large_table, f, g, h);
	if (n_small > 0)
	{
		load_leaf(matrix, small_table, f, small_g, small_h);
		for (int k = 0; k < AGK_PER_LANE; k++)
		{
			int b = lane_bin(k);

			g[k] -= small_g[k];
			h[k] -= small_h[k];
			if (b > matrix.n_bins[f])
				continue;
			large_table[matrix.offset[f] + b] = g[k];
			large_table[matrix.n_cells + matrix.offset[f] + b] = h[k];
		}
		add_leaf(merits, small_g, small_h);
	}
	add_leaf(merits, g, h);
}

/*
 * The best of the lane's cuts by scores with noise, then of the warp's, the lowest of equals; it then stands for its feature
 * with noise of its own.
 */
static __device__ void
choose_cut(const AgkGrowth &growth, const Merits *merits, int f)
{
	uint64_t key =
		ag_key(ag_key(growth.key, AG_KEY_NOISE + (uint64_t) growth.at_level), (uint64_t) f);
	double best_score = 0.0, best_plain = 0.0, noise = growth.rules.noise;
	int best = -1;

	for (int k = 0; k < AGK_PER_LANE; k++)
	{
		int b = lane_bin(k);
		double plain, score;

		if (b > merits->n_bins || !growth.may_cut[growth.matrix.offset[f] + b])
			continue;
		plain = ag_level_score(merits->nums[k], merits->dens[k], growth.has_cosine_score != 0);
		score = plain + (noise > 0.0 ? noise * ag_level_noise(key, (uint64_t) b) : 0.0);
		if (best >= 0 && !(score > best_score))
			continue;
		best_score = score;
		best_plain = plain;
		best = b;
	}
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		double score = __shfl_xor_sync(~0u, best_score, lanes);
		double plain = __shfl_xor_sync(~0u, best_plain, lanes);
		int other = __shfl_xor_sync(~0u, best, lanes);

		if (other < 0 ||
			(best >= 0 && !(score > best_score || (score == best_score && other < best))))
			continue;
		best_score = score;
		best_plain = plain;
		best = other;
	}
	if (threadIdx.x % 32 != 0)
		return;
	growth.feature_score[f] =
		best_plain + (noise > 0.0 ? noise * ag_level_noise(key, AGK_BINS) : 0.0);
	growth.feature_cut[f] = best;
}

/* The level's features are may_use[level][.], or the tree's. */
static __device__ inline bool
may_use(const AgkGrowth &growth, int f)
{
	if (growth.may_use != nullptr)
		return growth.may_use[(int64_t) growth.at_level * growth.matrix.n_features + f] != 0;
	return growth.is_used[f] != 0;
}

/* A warp a feature: all leaves of the level, last parent first. */
__global__ void
agk_score_level(AgkGrowth growth)
{
	const AgkMatrix &matrix = growth.matrix;
	int step = static_cast<int>(gridDim.x) * AGK_WARPS;

	if (growth.state->is_done)
		return;
	for (int f = blockIdx.x * AGK_WARPS + threadIdx.x / 32; f < matrix.n_features; f += step)
	{
		Merits merits = {};

		merits.n_bins = matrix.n_bins[f];
		merits.is_category = matrix.is_category[f] != 0;
		merits.l2 = growth.rules.l2 > AG_LEAST_L2 ? growth.rules.l2 : AG_LEAST_L2;
		if (growth.at_level == 0)
		{
			int64_t g[AGK_PER_LANE], h[AGK_PER_LANE];

			load_leaf(matrix, growth.slots, f, g, h);
			open_cuts(growth, &merits, f, h);
			add_leaf(&merits, g, h);
			__syncwarp();
		}
		else
			for (int p = growth.state->n_leaves / 2 - 1; p >= 0; p--)
				add_children(growth, &merits, f, p);
		if (may_use(growth, f))
			choose_cut(growth, &merits, f);
		else if (threadIdx.x % 32 == 0)
			growth.feature_cut[f] = -1;
	}
}

/* ---- the level's split ---- */

/* Of equal scores the lowest feature's; -1: nothing parts the rows any more. */
static __device__ int
best_feature(const AgkGrowth &growth)
{
	__shared__ int bests[AGK_THREADS];
	int best = -1;

	for (int f = threadIdx.x; f < growth.matrix.n_features; f += blockDim.x)
		if (growth.feature_cut[f] >= 0 &&
			(best < 0 || growth.feature_score[f] > growth.feature_score[best]))
			best = f;
	__syncthreads();
	bests[threadIdx.x] = best;
	__syncthreads();
	for (int delta = AGK_THREADS / 2; delta > 0; delta /= 2)
	{
		if (static_cast<int>(threadIdx.x) < delta)
		{
			int other = bests[threadIdx.x + delta], mine = bests[threadIdx.x];

			if (other >= 0 &&
				(mine < 0 || growth.feature_score[other] > growth.feature_score[mine] ||
				 (growth.feature_score[other] == growth.feature_score[mine] && other < mine)))
				bests[threadIdx.x] = other;
		}
		__syncthreads();
	}
	return bests[0];
}

static __device__ void
split_of(const AgkMatrix &matrix, int feature, int cut, AgDeviceSplit *split)
{
	*split = AgDeviceSplit();
	split->feature = feature;
	split->bin = cut;
	if (!matrix.is_category[feature])
	{
		split->missing_left = cut < matrix.n_bins[feature]; /* missing is less than any number */
		return;
	}
	split->is_category = true;
	split->left_bins[cut >> 6] |= UINT64_C(1) << (cut & 63);
	split->missing_left = cut == 0;
	split->unseen_left = matrix.has_other[feature] && cut == matrix.n_bins[feature];
}

/* One block: the level's split, for all its leaves. The split is kept as found[level]. */
__global__ void
agk_split_level(AgkGrowth growth, int wants_search)
{
	__shared__ AgDeviceSplit split;
	AgkState *state = growth.state;
	int best, n = state->n_leaves;

	if (state->is_done)
		return;
	best = best_feature(growth);
	__syncthreads();
	if (threadIdx.x == 0)
	{
		state->is_done = best < 0;
		state->n_expand = best < 0 ? 0 : n;
		state->wants_search = wants_search;
		if (best >= 0)
		{
			split_of(growth.matrix, best, growth.feature_cut[best], &split);
			growth.may_cut[growth.matrix.offset[best] + growth.feature_cut[best]] = 0;
			growth.found[growth.at_level].split = split;
			state->n_leaves = state->n_nodes = 2 * n;
			state->n_made = growth.at_level + 1; /* levels split so far */
		}
	}
	__syncthreads();
	for (int l = threadIdx.x; best >= 0 && l < n; l += blockDim.x)
	{
		growth.nodes[l].split = split;
		growth.expand[l] = l;
		growth.child_slot[l] = wants_search ? n + l : -1;
	}
	__syncthreads();
	agk_plan_chunks(growth);
}

/* The next level's leaves, side by side; where nothing was split, the same ones again. */
__global__ void
agk_make_level(AgkGrowth growth)
{
	const AgkState *state = growth.state;
	bool is_done = state->is_done != 0;
	int n = is_done ? state->n_leaves : state->n_expand;

	for (int l = blockIdx.x * blockDim.x + threadIdx.x; l < n; l += gridDim.x * blockDim.x)
	{
		const AgkNode *parent = growth.nodes + l;

		if (is_done)
		{
			growth.level[l] = *parent;
			continue;
		}
		for (int c = 0; c < 2; c++)
		{
			AgkNode *node = growth.level + 2 * l + c;
			int64_t n_left = growth.n_left[l];
			bool small_is_right = n_left > parent->n_rows - n_left;

			*node = AgkNode();
			node->begin = parent->begin + (c == 0 ? 0 : n_left);
			node->n_rows = c == 0 ? n_left : parent->n_rows - n_left;
			node->list = 1 - parent->list;
			node->depth = parent->depth + 1;
			node->parent = node->left = -1;
			node->slot = (c == 1) == small_is_right ? growth.child_slot[l] : parent->slot;
		}
	}
}

/* ---- the whole ---- */

/* The features of every level that may come, drawn from the tree's. */
static AgDeviceStatus
draw_levels(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order)
{
	const AgkGrowth *growth = &boost->growth;
	int n_features = growth->matrix.n_features;
	uint8_t *marks;
	int32_t *list;
	AgDeviceStatus status = AG_DEVICE_OK;

	if (growth->may_use == nullptr)
		return AG_DEVICE_OK;
	marks = static_cast<uint8_t *>(malloc((size_t) n_features));
	list = static_cast<int32_t *>(malloc((size_t) n_features * sizeof(int32_t)));
	if (marks == nullptr || list == nullptr)
		status = AG_DEVICE_MEMORY;
	for (int level = 0; status == AG_DEVICE_OK && 1 << (level + 1) <= growth->max_leaves; level++)
	{
		int n = 0, n_drawn;

		memset(marks, 0, (size_t) n_features);
		for (int f = 0; f < n_features; f++)
			if (order->is_used[f])
				list[n++] = f;
		n_drawn = ag_sample_size(growth->fraction_bylevel, n);
		if (n_drawn < n)
			ag_sample_front(ag_key(growth->key, AG_KEY_LEVEL + (uint64_t) level), n_drawn, n, list);
		for (int i = 0; i < n_drawn; i++)
			marks[list[i]] = 1;
		status =
			agk_upload(device, growth->may_use + (int64_t) level * n_features, marks, n_features);
	}
	free(marks);
	free(list);
	return status;
}

static void
swap_levels(AgkGrowth *growth)
{
	AgkNode *nodes = growth->nodes;

	growth->nodes = growth->level;
	growth->level = nodes;
}

/* Nodes of level d are 2^d - 1 and on, in the order of their leaves. */
static AgDeviceStatus
number_nodes(AgDevice *device, AgDeviceBoost *boost, const AgkState *state, AgDeviceTree *tree)
{
	AgkFound splits[AGK_MOST_LEVELS];
	int n_levels = state->n_made;

	AGK_TRY(
		agk_download(device, splits, boost->growth.found, n_levels * (int64_t) sizeof(AgkFound)));
	AGK_TRY(agk_download(device, boost->host_nodes, boost->growth.nodes,
						 state->n_leaves * (int64_t) sizeof(AgkNode)));
	tree->n_leaves = 1 << n_levels;
	tree->n_nodes = tree->n_leaves - 1;
	tree->depth = (uint32_t) n_levels;
	for (int level = 0, node = 0; level < n_levels; level++)
		for (int i = 0; i < 1 << level; i++, node++)
		{
			AgDeviceNode *to = tree->nodes + node;
			bool is_inner = 2 * node + 1 < tree->n_nodes;

			to->split = splits[level].split;
			to->left = is_inner ? 2 * node + 1 : ~(2 * node + 1 - tree->n_nodes);
			to->right = is_inner ? 2 * node + 2 : ~(2 * node + 2 - tree->n_nodes);
		}
	for (int32_t l = 0; l < tree->n_leaves; l++)
		boost->host_final[l] = l;
	return AG_DEVICE_OK;
}

/* Splits the level's leaves and makes the next ones. */
static AgDeviceStatus
step_level(AgDevice *device, AgkGrowth *growth, int n_leaves)
{
	int wants_search = 4 * (int64_t) n_leaves <= growth->max_leaves;
	unsigned grid = agk_grid(device, growth->matrix.n_features, AGK_WARPS);

	AGK_LAUNCH(agk_score_level, grid, AGK_THREADS, 0, device->stream, *growth);
	if (growth->at_level > 0)
	{
		AGK_LAUNCH(agk_make_level, agk_grid(device, n_leaves, AGK_THREADS), AGK_THREADS, 0,
				   device->stream, *growth);
		swap_levels(growth);
	}
	AGK_LAUNCH(agk_split_level, 1, AGK_THREADS, 0, device->stream, *growth, wants_search);
	growth->is_root = 0;
	AGK_TRY(agk_partition(device, growth));
	if (wants_search)
		AGK_TRY(agk_histograms(device, growth));
	growth->at_level++;
	return agk_launched(device, "splitting a level");
}

AgDeviceStatus
agk_grow_symmetric(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order,
				   AgDeviceTree *tree)
{
	AgkGrowth *growth = &boost->growth;
	AgkState state;

	AGK_TRY(draw_levels(device, boost, order));
	AGK_TRY(agk_open_root(device, growth));
	for (int n_leaves = 1; order->n_rows > 1 && 2 * n_leaves <= growth->max_leaves; n_leaves *= 2)
	{
		int answer = order->poll != nullptr ? order->poll(order->arg) : 0;

		if (answer == 2)
			return AG_DEVICE_STOPPED;
		if (answer == 1)
		{
			tree->is_cut_short = true;
			break;
		}
		AGK_TRY(step_level(device, growth, n_leaves));
	}
	if (growth->at_level > 0)
	{
		AGK_LAUNCH(agk_make_level, agk_grid(device, growth->max_leaves, AGK_THREADS), AGK_THREADS,
				   0, device->stream, *growth);
		swap_levels(growth);
	}
	AGK_TRY(agk_sum_leaves(device, boost));
	AGK_TRY(agk_download(device, &state, growth->state, sizeof(state)));
	return number_nodes(device, boost, &state, tree);
}
