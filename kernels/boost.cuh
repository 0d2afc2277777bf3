/*
 * boost.cuh - a booster on the device: its rows, and the tree in work.
 *
 * All that a step of growth needs lies on the device, the list of leaves to split included: kernels are launched one behind
 * the other, and the host waits once a tree (and, where nobody knows how many steps it takes, once in a while).
 */
#ifndef AGK_BOOST_CUH
#define AGK_BOOST_CUH

#include "kernels/matrix.cuh"

#define AGK_THREADS 256
#define AGK_WARPS (AGK_THREADS / 32)
#define AGK_CHUNK_LEAST 1024 /* rows that a block takes at a time; multiples of AGK_THREADS */
#define AGK_METRIC_ROWS 2048 /* that are added up one after the other: AG_SUM_BLOCK */
#define AGK_CHUNK_MOST 16384 /* so that 16 bit gradients add up within 32 */

struct AgkGradient
{
	float g, h;
};

/* A node of the tree in work. Children lie side by side. */
struct AgkNode
{
	int64_t begin, n_rows; /* its part of lists[list] */
	int64_t sum_g, sum_h;
	double low, high;       /* with monotone: what its value may be */
	int64_t leaf_g, leaf_h; /* of unquantised gradients in fixed point, once the tree is grown */
	double output, parent_output;
	uint64_t key; /* of (seed, tree, path) */
	AgDeviceSplit split;
	int32_t parent; /* -1: the root */
	int32_t left;   /* -1: it wasn't split */
	int32_t list;
	int32_t slot; /* of its histogram; -1: none */
	int32_t made; /* order of making: decides between equal gains */
	uint32_t depth;
	bool has_cat_l2;
	bool is_inner; /* its split is the tree's; false: a leaf, or not (yet) of the tree */
};

/* What a search over one feature of one node came to. */
struct AgkFound
{
	AgDeviceSplit split;
	double maybe; /* the best score of cuts whose rows must be counted first; -inf: none */
};

/* The tree in work: what changes from step to step. */
struct AgkState
{
	int64_t sum_g, sum_h; /* over the listed rows */
	uint32_t min_h, max_h;
	uint32_t max_g, max_w; /* bits of floats: AgDeviceRange */
	double sum_gg;
	int32_t n_nodes;
	int32_t n_leaves; /* of the tree so far */
	int32_t n_head;   /* depth-wise: open leaves before it were split */
	int32_t n_open;
	int32_t n_made;
	int32_t n_expand; /* nodes of this step */
	int32_t n_free_slots;
	int32_t n_flagged;    /* features of this step whose rows must be counted */
	int32_t wants_search; /* the children of this step may be split */
	int32_t is_done;
	int32_t n_final; /* leaves, once the tree is grown */
	int64_t chunk;   /* rows a block takes at a time */
	int64_t n_chunks;
	int64_t n_final_chunks;
};

/* What the kernels of growth see; by value. Pointers are the device's. */
struct AgkGrowth
{
	AgkMatrix matrix;
	AgDeviceRules rules;
	AgkState *state;
	AgkNode *nodes;      /* [max_nodes] */
	AgkNode *level;      /* [max_nodes] symmetric: the next level's leaves */
	int32_t *open;       /* [max_nodes] leaves with a split */
	int32_t *expand;     /* [most_expand] nodes to split in this step */
	int64_t *chunk_ends; /* [most_expand] sums of their chunks */
	int64_t *n_left;     /* [most_expand] */
	int32_t *child_slot; /* [most_expand] the new histogram of each */
	int32_t *chunk_left; /* [chunks] left rows in each */
	int32_t *free_slots; /* [n_slots] */
	int64_t *slots;      /* [n_slots][2][n_cells] */
	AgkFound *found;     /* [2 * most_expand][n_features] */
	uint8_t *is_flagged; /* [2 * most_expand][n_features] */
	uint32_t *counts;    /* [2 * most_expand][n_features][AGK_BINS] */
	uint8_t *may_use; /* [2 * most_expand][n_features] where features are drawn by level or node */
	int32_t *drawn;   /* [2 * most_expand][n_features] scratch of that */
	const uint8_t *is_used;    /* [n_features] the tree's features */
	const int8_t *monotone;    /* [n_features]; null: predictions may go any way */
	const double *leaf_weight; /* [n_rows] or null, where leaves sum weights */
	int32_t *final_nodes;      /* [max_nodes] the leaves */
	int64_t *final_ends;       /* [max_nodes] sums of their chunks */
	uint32_t *ids[2], *grads[2];
	uint8_t
		*marks; /* [n_train] by place in the lists: goes left; null: rows needn't come in blocks */
	/* symmetric */
	double *feature_score; /* [n_features] */
	int32_t *feature_cut;  /* [n_features] */
	uint8_t *may_cut;      /* [n_cells] */
	uint64_t key;          /* of (seed, tree) */
	int64_t n_rows;
	int32_t max_leaves, max_depth, most_expand, n_slots, max_nodes;
	int32_t at_level;
	int32_t is_root;           /* this step only opens the root */
	int32_t is_final;          /* nothing is left to count after this search */
	int32_t is_counted_from_h; /* all hessians are alike: rows follow from them */
	int32_t is_depthwise, is_symmetric;
	int32_t n_blocks; /* that fill the device */
	int32_t has_cosine_score;
	int32_t sums_weights;  /* leaves', instead of hessians */
	int32_t always_counts; /* path_smooth */
	double fraction_bylevel, fraction_bynode;
	double fixed_g, fixed_h;
};

struct AgDeviceBoost
{
	const AgDeviceMatrix *matrix;
	const AgDeviceMatrix *grown_on; /* the tree grown last */
	AgDeviceBoostSpec spec;         /* its arrays aren't to be read any more */
	AgkArray<double> target, weight, scores, shared, valid_scores, values;
	AgkArray<double> best_scores, metric_sums; /* where a metric is watched here */
	AgkArray<double> kept_scores;              /* [n_rows] before steps; taken when first needed */
	bool has_stepped;
	AgkArray<int32_t> class_of;
	AgkArray<uint32_t> train_rows, valid_rows, bag;
	AgkArray<AgkGradient> gradients, drawn;
	AgkArray<double> part_gg; /* sums of squares of parts of rows */
	AgkArray<double> chances; /* [n_train] of minimal variance sampling */
	AgkArray<struct AgkRouteNode> route;
	/* growth */
	AgkArray<AgkState> state;
	AgkArray<AgkNode> nodes, level;
	AgkArray<int32_t> open, expand, child_slot, chunk_left, free_slots, drawn_features, final_nodes,
		feature_cut;
	AgkArray<int64_t> chunk_ends, n_left, slots, final_ends;
	AgkArray<AgkFound> found;
	AgkArray<uint8_t> is_flagged, may_use, is_used, may_cut;
	AgkArray<int8_t> monotone;
	AgkArray<uint64_t> error_keys;   /* [n_train] of renewed leaves */
	AgkArray<int64_t> error_weights; /* likewise */
	AgkArray<uint8_t> marks;         /* taken when first needed */
	AgkArray<uint32_t> counts, ids[2], grads[2];
	AgkArray<double> feature_score;
	AgkGrowth growth;    /* the view of it */
	double *levels;      /* [n_outputs] of percentiles; null: none are taken */
	AgkNode *host_nodes; /* [max_nodes] */
	int32_t *host_final; /* [max_leaves] of the tree grown last: the node of each leaf */
	struct AgkRouteNode *host_route;
	int32_t n_leaves, n_inner; /* of the tree grown last */
	bool has_bag;
};

/* A node that a row goes through; leaves come behind the nodes and lead to themselves. */
struct AgkRouteNode
{
	uint32_t left_bits[8]; /* bit b of the 256: bin b goes left */
	int32_t feature;
	int32_t next[2]; /* right, left */
};

#define AGK_WEIGHT_MAX 1e30 /* AG_WEIGHT_MAX */

static __device__ inline double
agk_row_weight(const double *weight, uint32_t row)
{
	if (weight == nullptr)
		return 1.0;
	return weight[row] < AGK_WEIGHT_MAX ? weight[row] : AGK_WEIGHT_MAX;
}

static inline __host__ __device__ bool
agk_has_classes(AgDeviceLoss loss)
{
	return loss == AG_DEVICE_LOGISTIC || loss == AG_DEVICE_SOFTMAX;
}

static inline __host__ __device__ bool
agk_goes_left(const AgDeviceSplit *split, unsigned bin)
{
	if (split->is_category)
		return (split->left_bins[bin >> 6] >> (bin & 63) & 1) != 0;
	return bin == 0 ? split->missing_left : static_cast<int32_t>(bin) <= split->bin;
}

/* What each source file does to the booster. */
AgDeviceStatus agk_begin_scores(AgDevice *device, AgDeviceBoost *boost);
AgDeviceStatus agk_compute_gradients(AgDevice *device, AgDeviceBoost *boost, int output,
									 AgDeviceRange *range);
AgDeviceStatus agk_add_by_lists(AgDevice *device, AgDeviceBoost *boost, int output,
								const double *values);
AgDeviceStatus agk_quantise(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order);
AgDeviceStatus agk_histograms_prepare(AgDevice *device);
AgDeviceStatus agk_open_root(AgDevice *device, AgkGrowth *growth);
AgDeviceStatus agk_partition(AgDevice *device, const AgkGrowth *growth);
AgDeviceStatus agk_histograms(AgDevice *device, const AgkGrowth *growth);
AgDeviceStatus agk_search(AgDevice *device, AgkGrowth *growth);
AgDeviceStatus agk_grow_symmetric(AgDevice *device, AgDeviceBoost *boost,
								  const AgDeviceTreeOrder *order, AgDeviceTree *tree);
AgDeviceStatus agk_sum_leaves(AgDevice *device, AgDeviceBoost *boost);

#endif
