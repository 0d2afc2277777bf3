/*
 * forest_gpu.c - a forest's trees grown on a device. Same bytes as on the CPU.
 *
 * The device draws the rows, finds all splits and parts the rows, several trees at a time; which splits a tree of max_leaf_nodes
 * has, their order and the leaves' values are found here, since they follow from gains and sums. A failure of the
 * device is no failure of the fit: the forest is grown again on the CPU.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/bins_device.h"
#include "engine/model/forest_private.h"

/* A tree that came back, and what is made of it. */
typedef struct AgGpuGrown
{
	AgForestTree *tree;
	AgDeviceForestTree grown;
	AgDeviceForestNode *nodes; /* [n_nodes] */
	uint8_t *ranks;            /* [n_ranks][256] */
	int32_t *queue;            /* [n_nodes] */
	uint32_t *number_of;       /* [n_nodes] of a child: its parent's number, then the side */
	AgDeviceForestLeaf *leaves;
	uint32_t *shares; /* [n_leaves][n_classes] more than two classes; else NULL */
	int n_queue;
	bool is_mistaken; /* the device left out a split that the tree has */
} AgGpuGrown;

typedef struct AgForestGpu
{
	AgForest *forest;
	AgGpu *gpu;
	AgDeviceForest *there;
	AgGpuGrown *grown; /* [n_at_once] */
	int32_t n_at_once;
	AgForestResult *result;
} AgForestGpu;

static void
fail(AgForestGpu *g, const char *why)
{
	g->result->gpu_failed = true;
	snprintf(g->result->cpu_because, sizeof g->result->cpu_because, "%s", why);
}

/* Whatever a device said, as a status of the engine; the text is in the result. */
static AgStatus
take_status(AgForestGpu *g, AgDeviceStatus status)
{
	if (status == AG_DEVICE_OK)
		return AG_OK;
	if (status == AG_DEVICE_STOPPED)
		return ag_check_cancel(g->forest->ctx);
	g->gpu->is_lost = g->gpu->is_lost || status == AG_DEVICE_LOST;
	fail(g, g->gpu->ops->why(g->gpu->device));
	g->result->gpu_failed = status != AG_DEVICE_UNSUPPORTED;
	return AG_ERR_SYSTEM;
}

/* What no device does, in words; NULL: nothing. */
static const char *
unsupported(const AgForest *forest, const AgGpu *gpu)
{
	const AgDeviceOps *ops = gpu->ops;

	if (gpu->is_lost)
		return "the GPU failed before";
	if (ops->matrix_create == NULL || ops->forest_memory == NULL || ops->forest_create == NULL ||
		ops->forest_grow == NULL || ops->forest_tree == NULL || ops->forest_fetch == NULL ||
		ops->forest_leaves == NULL)
		return "the module grows no forests";
	if (forest->data->bins->n_features < 1)
		return "there is nothing to learn from";
	return NULL;
}

static void
fill_spec(const AgForest *forest, AgDeviceForestSpec *spec)
{
	const AgTrainData *data = forest->data;
	const AgForestParams *params = forest->params;

	*spec =
		(AgDeviceForestSpec){.n_classes = forest->n_classes,
							 .is_entropy = forest->is_entropy,
							 .is_extra = params->is_extra,
							 .has_bootstrap = params->bootstrap,
							 .weighs_by_tree = params->class_weight == AG_CLASS_WEIGHT_SUBSAMPLE,
							 .wants_out_of_bag = params->bootstrap && params->wants_oob,
							 .train_rows = data->train_rows,
							 .n_train = data->n_train,
							 .class_of = data->class_of,
							 .values = forest->values,
							 .weights = forest->weights,
							 .class_rows = forest->class_rows,
							 .logs = forest->logs,
							 .n_logs = forest->n_logs,
							 .rank_of = forest->rank_of,
							 .n_ranks = forest->n_ranks,
							 .n_features_tried = forest->n_features_tried,
							 .n_draws = forest->n_draws,
							 .max_leaves = forest->max_leaves,
							 .max_depth = forest->max_depth,
							 .min_rows_split = forest->min_rows_split,
							 .min_rows_leaf = forest->min_rows_leaf,
							 .min_weight_fraction = params->min_weight_fraction_leaf,
							 .min_gain = forest->min_gain,
							 .seed = params->seed,
							 .n_trees = forest->n_trees};
}

/* ---- from nodes to a tree ---- */

/* Is node a to be split before b? As comes_first of forest_grow.c. */
static bool
comes_first(const AgGpuGrown *grown, int32_t a, int32_t b)
{
	if (grown->nodes[a].gain != grown->nodes[b].gain)
		return grown->nodes[a].gain > grown->nodes[b].gain;
	return grown->number_of[a] < grown->number_of[b];
}

static void
queue_put(AgGpuGrown *grown, int32_t node, bool is_limited)
{
	int at = grown->n_queue++;

	if (is_limited)
		for (; at > 0 && comes_first(grown, node, grown->queue[(at - 1) / 2]); at = (at - 1) / 2)
			grown->queue[at] = grown->queue[(at - 1) / 2];
	grown->queue[at] = node;
}

static int32_t
queue_take(AgGpuGrown *grown, bool is_limited)
{
	int32_t taken = grown->queue[0], last = grown->queue[--grown->n_queue];
	int at = 0;

	if (!is_limited)
		return last;
	for (;;)
	{
		int child = 2 * at + 1;

		if (child >= grown->n_queue)
			break;
		if (child + 1 < grown->n_queue &&
			comes_first(grown, grown->queue[child + 1], grown->queue[child]))
			child++;
		if (!comes_first(grown, grown->queue[child], last))
			break;
		grown->queue[at] = grown->queue[child];
		at = child;
	}
	grown->queue[at] = last;
	return taken;
}

/* Hangs node `child` of the tree, or ~leaf, where it belongs. The root's own place is nowhere. */
static void
link_child(AgGpuGrown *grown, int32_t node, int32_t child)
{
	AgForestNode *parent;

	if (node == 0)
		return;
	parent = grown->tree->nodes + (grown->number_of[node] >> 1);
	if (grown->number_of[node] & 1)
		parent->right = child;
	else
		parent->left = child;
}

static void
add_leaf(AgGpuGrown *grown, int32_t at)
{
	const AgDeviceForestNode *node = grown->nodes + at;
	AgForestTree *tree = grown->tree;

	grown->leaves[tree->n_leaves] =
		(AgDeviceForestLeaf){.begin = node->begin, .n_rows = node->n_rows};
	link_child(grown, at, ~(int32_t) tree->n_leaves);
	tree->n_leaves++;
	if (node->depth > tree->depth)
		tree->depth = node->depth;
}

/* As add_node of forest_grow.c: a category's cut of ranks becomes a set of bins. */
static void
add_node(const AgForest *forest, AgGpuGrown *grown, int32_t at)
{
	const AgDeviceForestNode *node = grown->nodes + at;
	const AgBinFeature *feature = forest->data->bins->features + node->feature;
	AgForestTree *tree = grown->tree;
	AgForestNode made = {.feature = (uint32_t) node->feature, .cut = node->cut};
	int rank = forest->rank_of[node->feature];

	if (rank >= 0)
	{
		bool unseen_left = 2 * (int64_t) node->left_weight >= node->weight;

		tree->sets[tree->n_sets] = ag_forest_set_of(
			feature, grown->ranks + (size_t) rank * AG_FOREST_BINS, node->cut, &unseen_left);
		made.feature |= AG_FOREST_CATEGORY | (unseen_left ? AG_FOREST_UNSEEN_LEFT : 0);
		made.cut = tree->n_sets++;
	}
	link_child(grown, at, (int32_t) tree->n_nodes);
	tree->nodes[tree->n_nodes++] = made;
}

/* A node that waits to be split, or a leaf. */
static void
open_node(AgGpuGrown *grown, int32_t at, bool is_limited)
{
	if (grown->nodes[at].feature >= 0)
		queue_put(grown, at, is_limited);
	else
		add_leaf(grown, at);
}

/* Splits the nodes again, in the CPU's order, for their numbers: grow of forest_grow.c. */
static void
number_nodes(const AgForest *forest, AgGpuGrown *grown)
{
	bool is_limited = grown->grown.n_rows > forest->max_leaves;
	AgForestTree *tree = grown->tree;

	grown->number_of[0] = 0;
	open_node(grown, 0, is_limited);
	while (grown->n_queue > 0)
	{
		int32_t at = queue_take(grown, is_limited), left = grown->nodes[at].left;
		uint32_t number = tree->n_nodes;

		if (tree->n_leaves + (int64_t) grown->n_queue + 2 > forest->max_leaves || left < 0)
		{
			/* what wasn't split is a leaf of a tree that time cut short, and of no other */
			grown->is_mistaken |=
				left < 0 && grown->grown.is_whole &&
				tree->n_leaves + (int64_t) grown->n_queue + 2 <= forest->max_leaves;
			add_leaf(grown, at);
			continue;
		}
		add_node(forest, grown, at);
		for (int32_t side = 0; side < 2; side++)
		{
			grown->number_of[left + side] = number << 1 | (uint32_t) side;
			open_node(grown, left + side, is_limited);
		}
	}
}

static void
number_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgForestGpu *g = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
		number_nodes(g->forest, g->grown + i);
}

/* ---- leaves ---- */

/* Gives back what a tree didn't need of an array. */
static void
trim(const AgContext *ctx, void *items_at, size_t n, size_t size)
{
	void **items = items_at;
	void *fewer = n > 0 ? ag_mem_realloc(ctx->mem, *items, n, size) : NULL;

	if (fewer != NULL)
		*items = fewer;
}

static double
leaf_mean(const AgForest *forest, const AgDeviceForestLeaf *leaf)
{
	__int128 sum = (__int128) leaf->high * (INT64_C(1) << 31) + leaf->low;

	return (double) sum / (double) leaf->weight * (forest->is_classes ? 1.0 : forest->step);
}

static void
fill_shares(const AgForest *forest, AgGpuGrown *grown)
{
	AgForestTree *tree = grown->tree;
	uint32_t n_classes = (uint32_t) forest->n_classes;

	tree->n_shares = 0;
	for (uint32_t l = 0; l < tree->n_leaves; l++)
	{
		const uint32_t *weights = grown->shares + (size_t) l * n_classes;

		for (uint32_t k = 0; k < n_classes; k++)
			if (weights[k] != 0)
				tree->shares[tree->n_shares++] = (AgForestShare){k, weights[k]};
		tree->share_ends[l] = tree->n_shares;
	}
}

static AgStatus
fill_leaves(AgForestGpu *g, int32_t i)
{
	const AgForest *forest = g->forest;
	const AgContext *ctx = forest->ctx;
	AgGpuGrown *grown = g->grown + i;
	AgForestTree *tree = grown->tree;
	size_t n = tree->n_leaves, n_shares = 0;

	if (grown->is_mistaken)
	{
		fail(g, "a split of the tree didn't come back from the GPU");
		return AG_ERR_SYSTEM;
	}
	trim(ctx, &tree->nodes, tree->n_nodes, sizeof *tree->nodes);
	trim(ctx, &tree->sets, tree->n_sets, sizeof *tree->sets);
	if (forest->n_classes > 2)
		AG_TRY(ag_get(ctx, n, (size_t) forest->n_classes * sizeof(uint32_t), &grown->shares));
	AG_TRY(take_status(g, g->gpu->ops->forest_leaves(g->gpu->device, g->there, i, grown->leaves,
													 (int32_t) n, grown->shares)));
	if (forest->n_classes <= 2)
	{
		AG_TRY(ag_get(ctx, n, sizeof *tree->values, &tree->values));
		for (size_t l = 0; l < n; l++)
			tree->values[l] = leaf_mean(forest, grown->leaves + l);
		return AG_OK;
	}
	for (size_t at = 0; at < n * (size_t) forest->n_classes; at++)
		n_shares += grown->shares[at] != 0;
	AG_TRY(ag_get(ctx, n_shares, sizeof *tree->shares, &tree->shares));
	AG_TRY(ag_get(ctx, n, sizeof *tree->share_ends, &tree->share_ends));
	fill_shares(forest, grown);
	return AG_OK;
}

/* ---- batches ---- */

static void
free_grown(const AgContext *ctx, AgGpuGrown *grown)
{
	ag_mem_free(ctx->mem, grown->nodes);
	ag_mem_free(ctx->mem, grown->ranks);
	ag_mem_free(ctx->mem, grown->queue);
	ag_mem_free(ctx->mem, grown->number_of);
	ag_mem_free(ctx->mem, grown->leaves);
	ag_mem_free(ctx->mem, grown->shares);
	memset(grown, 0, sizeof *grown);
}

/* Room for a tree that was grown, and what of it comes from the device. */
static AgStatus
fetch_tree(AgForestGpu *g, int32_t i, AgForestTree *tree)
{
	const AgForest *forest = g->forest;
	const AgContext *ctx = forest->ctx;
	const AgDeviceOps *ops = g->gpu->ops;
	AgGpuGrown *grown = g->grown + i;
	size_t n, n_splits, n_mask = ((size_t) forest->data->n_train + 7) / 8;

	grown->tree = tree;
	AG_TRY(take_status(g, ops->forest_tree(g->gpu->device, g->there, i, &grown->grown)));
	n = grown->grown.n_nodes;
	n_splits = n / 2;
	AG_TRY(ag_get(ctx, n, sizeof *grown->nodes, &grown->nodes));
	AG_TRY(ag_get(ctx, (size_t) forest->n_ranks, AG_FOREST_BINS, &grown->ranks));
	AG_TRY(ag_get(ctx, n, sizeof *grown->queue, &grown->queue));
	AG_TRY(ag_get(ctx, n, sizeof *grown->number_of, &grown->number_of));
	AG_TRY(ag_get(ctx, n_splits + 1, sizeof *grown->leaves, &grown->leaves));
	AG_TRY(ag_get(ctx, n_splits, sizeof *tree->nodes, &tree->nodes));
	if (forest->n_ranks > 0)
		AG_TRY(ag_get(ctx, n_splits, sizeof *tree->sets, &tree->sets));
	if (forest->params->bootstrap && forest->params->wants_oob)
		AG_TRY(ag_get(ctx, n_mask, 1, &tree->out_of_bag));
	return take_status(g, ops->forest_fetch(g->gpu->device, g->there, i, grown->nodes, grown->ranks,
											tree->out_of_bag));
}

/* The trees that the device grew, as many as threads at a time. */
static AgStatus
take_trees(AgForestGpu *g, int32_t first, int32_t n)
{
	AgForest *forest = g->forest;
	int32_t at_once = ag_pool_size(forest->ctx->pool);
	AgStatus status = AG_OK;

	for (int32_t from = 0; from < n && status == AG_OK; from += at_once)
	{
		int32_t here = n - from < at_once ? n - from : at_once;

		for (int32_t i = from; i < from + here && status == AG_OK; i++)
			status = fetch_tree(g, i, &forest->trees[first + i]);
		if (status == AG_OK)
		{
			AgForestGpu part = *g;

			part.grown += from;
			ag_pool_run(forest->ctx->pool, here, 1, number_task, &part);
		}
		for (int32_t i = from; i < from + here && status == AG_OK; i++)
		{
			AgForestTree *tree = &forest->trees[first + i];

			if ((status = fill_leaves(g, i)) != AG_OK)
				break;
			/* The first tree is kept however short it is: better than none. */
			tree->is_short = !g->grown[i].grown.is_whole;
			tree->is_grown = !tree->is_short || first + i == 0;
		}
		for (int32_t i = from; i < from + here; i++)
			free_grown(forest->ctx, g->grown + i);
	}
	return status;
}

/* What the device asks between launches. */
static int
poll(void *arg)
{
	AgForest *forest = arg;

	if (ag_cancelled(forest->ctx))
		return 2;
	if (forest->deadline_ns == INT64_MAX || ag_clock_ns() < forest->deadline_ns)
		return 0;
	atomic_store(&forest->is_out_of_time, true);
	return 1;
}

/* Drops trees that would make the model too large. */
static void
keep_room(AgForest *forest, int first, int n)
{
	int64_t used = 0;

	for (int t = 0; t < first + n; t++)
	{
		AgForestTree *tree = &forest->trees[t];

		if (!tree->is_grown)
			continue;
		if (t >= AG_FOREST_LEAST_TREES && used + used / t > forest->model_bytes)
		{
			atomic_store(&forest->is_out_of_room, true);
			ag_forest_tree_free(forest->ctx, tree);
			continue;
		}
		used += ag_forest_tree_bytes(forest, tree);
	}
	atomic_store(&forest->used_bytes, used);
}

static AgStatus
grow_batches(AgForestGpu *g)
{
	AgForest *forest = g->forest;

	for (int32_t first = 0; first < forest->n_trees; first += g->n_at_once)
	{
		int32_t n = forest->n_trees - first < g->n_at_once ? forest->n_trees - first : g->n_at_once;

		AG_TRY(take_status(
			g, g->gpu->ops->forest_grow(g->gpu->device, g->there, first, n, poll, forest)));
		AG_TRY(take_trees(g, first, n));
		keep_room(forest, first, n);
		ag_forest_report(forest, first + n);
		if (atomic_load(&forest->is_out_of_time) || atomic_load(&forest->is_out_of_room))
			break;
	}
	return ag_check_cancel(forest->ctx);
}

/* As if nothing had been grown. */
static void
forget_trees(AgForest *forest)
{
	for (int t = 0; t < forest->n_trees; t++)
		ag_forest_tree_free(forest->ctx, &forest->trees[t]);
	atomic_store(&forest->used_bytes, 0);
	atomic_store(&forest->is_out_of_time, false);
	atomic_store(&forest->is_out_of_room, false);
}

static AgStatus
grow_there(AgForestGpu *g)
{
	const AgContext *ctx = g->forest->ctx;
	const AgDeviceOps *ops = g->gpu->ops;
	AgDeviceForestSpec spec;
	AgDeviceMatrix *matrix;
	AgDeviceShape shape;
	AgStatus status;
	int64_t need;

	fill_spec(g->forest, &spec);
	shape = ag_bins_shape(g->forest->data->bins);
	need = ops->forest_memory(g->gpu->device, &shape, &spec, 1);
	AG_TRY(take_status(g, ag_bins_on_device(ctx, g->forest->data->bins, g->gpu, need, &matrix)));
	ag_bins_tell_need(ctx, g->gpu, matrix, need);
	AG_GO(take_status(g,
					  ops->forest_create(g->gpu->device, matrix, &spec, &g->there, &g->n_at_once)));
	AG_GO(ag_get_zeroed(ctx, (size_t) g->n_at_once, sizeof *g->grown, &g->grown));
	AG_GO(grow_batches(g));
done:
	ag_mem_free(ctx->mem, g->grown);
	ops->forest_free(g->gpu->device, g->there);
	ag_bins_let_go(g->forest->data->bins, matrix);
	return status;
}

AgStatus
ag_forest_gpu_grow(AgForest *forest, AgForestResult *result)
{
	AgForestGpu g = {.forest = forest, .gpu = forest->ctx->gpu, .result = result};
	const char *why = unsupported(forest, g.gpu);
	AgStatus status;

	if (why != NULL)
	{
		snprintf(result->cpu_because, sizeof result->cpu_because, "%s", why);
		result->gpu_failed = g.gpu->is_lost;
		return AG_OK;
	}
	status = grow_there(&g);
	result->on_gpu = status == AG_OK;
	if (status == AG_OK)
		return AG_OK;
	forget_trees(forest);
	if (status == AG_ERR_MEMORY) /* there it takes memory beside the trees; here it may be enough */
		fail(&g, "the memory for trees that come from the GPU didn't suffice");
	return result->cpu_because[0] != '\0' ? AG_OK : status;
}
