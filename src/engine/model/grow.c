/*
 * grow.c - growth of one tree, best first or level by level.
 *
 * A split moves the leaf's rows to its two children, builds the histogram of the one with fewer rows and gets the other's
 * by subtraction from the parent's, whose memory it takes over. The children of the last split need none.
 */
#include "engine/model/grow.h"

#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/sample.h"
#include "engine/model/split_maths.h"

#define AG_SLOT_BYTES (INT64_C(64) << 20) /* of histograms kept for leaves that wait */
#define AG_LEAST_SLOTS 4
#define AG_SEARCH_PARALLEL 40000 /* cells below which one thread finds the splits quicker */
#define AG_SEARCH_CHUNK 4        /* features that are looked at together */

/* A leaf that may still be split. */
typedef struct AgOpenLeaf
{
	AgGrownLeaf leaf;
	AgHist hist;
	int slot; /* of hist; -1: none */
	int64_t sum_g, sum_h;
	double output;
	uint64_t key;  /* of (seed, tree, path) */
	uint64_t made; /* order of making: decides between equal gains */
	int parent;    /* node that it hangs on, -1: the root */
	bool is_right;
	AgSplit split;
} AgOpenLeaf;

/* A tree in work: what changes while it grows. */
typedef struct AgGrowing
{
	AgGrower *grower;
	const AgSplitRules *rules;
	int *heap; /* open leaves with a split, best first */
	int n_heap;
	uint64_t n_made;
	uint64_t key; /* of (seed, tree) */
} AgGrowing;

/* How many leaves may hold a histogram at once. */
static int
most_slots(int max_leaves, int64_t slot_cells)
{
	int64_t n = AG_SLOT_BYTES / ((slot_cells > 0 ? slot_cells : 1) * (int64_t) sizeof(int64_t));

	n = n < AG_LEAST_SLOTS ? AG_LEAST_SLOTS : n;
	return n < max_leaves + 1 ? (int) n : max_leaves + 1;
}

AgStatus
ag_grower_create_empty(const AgContext *ctx, const AgBins *bins, const AgGrowth *growth,
					   AgGrower *grower)
{
	size_t n_leaves = (size_t) growth->max_leaves;

	memset(grower, 0, sizeof *grower);
	grower->ctx = ctx;
	grower->bins = bins;
	grower->growth = *growth;
	AG_TRY(ag_get(ctx, (size_t) bins->n_features, 1, &grower->is_used));
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgGrownNode), &grower->nodes));
	return ag_get(ctx, n_leaves, sizeof(AgGrownLeaf), &grower->leaves);
}

AgStatus
ag_grower_create(const AgContext *ctx, const AgBins *bins, int64_t n_rows, const AgGrowth *growth,
				 AgGrower *grower)
{
	size_t n_leaves = (size_t) growth->max_leaves, n_features = (size_t) bins->n_features;
	size_t n_threads = (size_t) ag_pool_size(ctx->pool);

	AG_TRY(ag_grower_create_empty(ctx, bins, growth, grower));
	grower->level = ag_cpu_level();
	AG_TRY(ag_hist_builder_create(ctx, bins, &grower->hists));
	for (int l = 0; l < 2; l++)
		AG_TRY(ag_get(ctx, (size_t) n_rows, sizeof(uint32_t), &grower->lists[l].ids));
	AG_TRY(ag_get(ctx, (size_t) bins->n_rows, sizeof(uint32_t), &grower->lists[0].grads));
	grower->lists[1].grads = grower->lists[0].grads;
	AG_TRY(ag_get(ctx, n_threads, sizeof(AgPartitionScratch), &grower->scratch));
	AG_TRY(ag_get(ctx, n_leaves, sizeof(AgOpenLeaf), &grower->open));
	AG_TRY(ag_get(ctx, n_leaves, sizeof(int), &grower->heap));
	grower->slot_cells = grower->hists.most_cells * (n_rows > AG_NARROW_ROWS ? 2 : 1);
	grower->n_slots = most_slots(growth->max_leaves, grower->slot_cells);
	AG_TRY(ag_get_zeroed(ctx, (size_t) grower->n_slots, sizeof(int64_t *), &grower->slots));
	AG_TRY(ag_get(ctx, (size_t) grower->n_slots, sizeof(int), &grower->free_slots));
	AG_TRY(ag_get(ctx, 2 * n_features, sizeof(int), &grower->features));
	AG_TRY(ag_get(ctx, 2 * n_threads, sizeof(AgSplit), &grower->found));
	return growth->is_symmetric ? ag_symmetric_create(ctx, grower) : AG_OK;
}

void
ag_grower_free(const AgContext *ctx, AgGrower *grower)
{
	AgMem *mem = ctx->mem;

	ag_symmetric_free(ctx, grower);
	ag_hist_builder_free(ctx, &grower->hists);
	for (int l = 0; l < 2; l++)
		ag_mem_free(mem, grower->lists[l].ids);
	ag_mem_free(mem, grower->lists[0].grads);
	for (int s = 0; grower->slots != NULL && s < grower->n_slots; s++)
		ag_mem_free(mem, grower->slots[s]);
	ag_mem_free(mem, grower->scratch);
	ag_mem_free(mem, grower->open);
	ag_mem_free(mem, grower->heap);
	ag_mem_free(mem, grower->slots);
	ag_mem_free(mem, grower->free_slots);
	ag_mem_free(mem, grower->features);
	ag_mem_free(mem, grower->found);
	ag_mem_free(mem, grower->is_used);
	ag_mem_free(mem, grower->nodes);
	ag_mem_free(mem, grower->leaves);
	memset(grower, 0, sizeof *grower);
}

void
ag_grower_use(AgGrower *grower, const AgBins *bins)
{
	grower->bins = bins;
	grower->hists.bins = bins;
}

int64_t
ag_grower_memory(const AgBins *bins, int64_t n_rows, const AgGrowth *growth, int n_threads)
{
	int64_t n_cells = ag_hist_cells(bins), n_leaves = growth->max_leaves;
	int64_t wide = n_rows > AG_NARROW_ROWS ? 2 : 1;
	int64_t n_slots = most_slots(growth->max_leaves, n_cells * wide);

	return (growth->is_symmetric
				? ag_symmetric_memory(n_cells, bins->n_features, growth->max_leaves)
				: 0) +
		   n_rows * 8 + bins->n_rows * 4 + n_slots * n_cells * wide * 8 +
		   n_threads * ag_hist_builder_memory(bins, wide > 1) +
		   n_threads * (int64_t) sizeof(AgPartitionScratch) + bins->n_features * 16 +
		   n_leaves *
			   (int64_t) (sizeof(AgOpenLeaf) + sizeof(AgGrownNode) + sizeof(AgGrownLeaf) + 24);
}

/* ---- histograms' memory ---- */

static void
give_slot(AgGrower *grower, AgOpenLeaf *open)
{
	if (open->slot >= 0)
		grower->free_slots[grower->n_free_slots++] = open->slot;
	open->slot = -1;
}

/*
 * Takes the histogram of a leaf that waits far back in the heap; should its turn come, both its
 * children's are built from rows. The leaf in work and its children aren't in the heap.
 */
static void
evict(AgGrowing *growing)
{
	for (int i = growing->n_heap - 1; i >= 0; i--)
	{
		AgOpenLeaf *open = growing->grower->open + growing->heap[i];

		if (open->slot < 0)
			continue;
		give_slot(growing->grower, open);
		return;
	}
}

static AgStatus
take_slot(AgGrowing *growing, AgOpenLeaf *open)
{
	AgGrower *grower = growing->grower;
	int slot;

	if (grower->n_free_slots == 0)
		evict(growing);
	slot = grower->free_slots[--grower->n_free_slots];
	open->slot = slot;
	if (grower->slots[slot] == NULL)
		AG_TRY(ag_get(grower->ctx, (size_t) grower->slot_cells, sizeof(int64_t),
					  &grower->slots[slot]));
	open->hist.cells = grower->slots[slot];
	return AG_OK;
}

/* ---- which leaf is next ---- */

static bool
is_before(const AgGrowing *growing, int a, int b)
{
	const AgOpenLeaf *left = growing->grower->open + a, *right = growing->grower->open + b;

	if (!growing->grower->growth.is_depthwise && left->split.gain != right->split.gain)
		return left->split.gain > right->split.gain;
	return left->made < right->made;
}

static void
heap_push(AgGrowing *growing, int leaf)
{
	int *heap = growing->heap;
	int at = growing->n_heap++;

	while (at > 0 && is_before(growing, leaf, heap[(at - 1) / 2]))
	{
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = leaf;
}

static int
heap_pop(AgGrowing *growing)
{
	int *heap = growing->heap;
	int top = heap[0], last = heap[--growing->n_heap], at = 0;

	for (;;)
	{
		int child = 2 * at + 1;

		if (child >= growing->n_heap)
			break;
		if (child + 1 < growing->n_heap && is_before(growing, heap[child + 1], heap[child]))
			child++;
		if (!is_before(growing, heap[child], last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return top;
}

/* ---- finding splits ---- */

static bool
can_split(const AgGrowing *growing, const AgOpenLeaf *open)
{
	const AgSplitRules *rules = growing->rules;

	return (int64_t) open->leaf.depth < growing->grower->growth.max_depth &&
		   open->leaf.n_rows >= 2 * rules->min_rows && (double) open->sum_h >= 2.0 * rules->min_h &&
		   open->sum_h > 0;
}

/* Keeps a drawn share of the n features; returns how many. */
static int
draw_features(uint64_t key, double fraction, int n, int *features)
{
	int n_drawn = ag_sample_size(fraction, n);

	if (fraction >= 1.0)
		return n;
	ag_sample_front(key, n_drawn, n, features);
	return n_drawn;
}

/* The tree's features; returns how many. */
static int
tree_features(const AgGrower *grower, int *features)
{
	int n = 0;

	for (int f = 0; f < grower->bins->n_features; f++)
		if (grower->is_used[f])
			features[n++] = f;
	return n;
}

/* The features that a node may split on: the tree's, or a draw of them for its level, or of those for itself. */
static int
node_features(const AgGrowing *growing, const AgOpenLeaf *open, int *features)
{
	const AgGrower *grower = growing->grower;
	int n = tree_features(grower, features);

	n = draw_features(ag_key(growing->key, AG_KEY_LEVEL + open->leaf.depth),
					  grower->growth.feature_fraction_bylevel, n, features);
	return draw_features(ag_key(open->key, AG_KEY_NODE), grower->growth.feature_fraction_bynode, n,
						 features);
}

/* Up to two leaves, searched together. */
typedef struct AgSearchTask
{
	AgGrower *grower;
	const AgSplitRules *rules;
	const AgHistRest
		*rest; /* NULL: both histograms are there; else the first leaf's is made on the way */
	AgSplitNode nodes[2];
	const int *features[2];
	int n_features[2];
} AgSearchTask;

/* Features of one leaf behind those of the other. */
static void
search_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgSearchTask *task = arg;
	AgGrower *grower = task->grower;

	if (ag_cancelled(grower->ctx))
		return;
	for (int which = 0; which < 2; which++)
	{
		int64_t before = which ? task->n_features[0] : 0;
		int64_t from = begin > before ? begin - before : 0;
		int64_t to =
			end - before < task->n_features[which] ? end - before : task->n_features[which];

		if (from < to)
			ag_split_search(grower->bins, &grower->hists.layout, task->rules, task->nodes + which,
							task->features[which] + from, (int) (to - from),
							grower->found + 2 * thread + which);
	}
}

/* Features that the leaves have in common: a few are looked at in both while their cells are near. */
static void
search_joint_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgSearchTask *task = arg;
	AgGrower *grower = task->grower;

	if (ag_cancelled(grower->ctx))
		return;
	if (task->rest != NULL)
		ag_hist_rest_make(task->rest, task->features[0] + begin, (int) (end - begin));
	for (int which = 0; which < 2 && task->n_features[which] > 0; which++)
		ag_split_search(grower->bins, &grower->hists.layout, task->rules, task->nodes + which,
						task->features[which] + begin, (int) (end - begin),
						grower->found + 2 * thread + which);
}

/* Finds the best splits of one or two leaves that have their histograms, but for the first's with rest. */
static AgStatus
search_leaves(AgGrowing *growing, AgOpenLeaf **leaves, int n_leaves, const AgHistRest *rest)
{
	AgGrower *grower = growing->grower;
	const AgGrowth *growth = &grower->growth;
	AgSearchTask task = {.grower = grower, .rules = growing->rules, .rest = rest};
	int n_threads = ag_pool_size(grower->ctx->pool);
	bool is_small = n_leaves * grower->hists.layout.n_cells < AG_SEARCH_PARALLEL;
	bool is_joint =
		growth->feature_fraction_bylevel >= 1.0 && growth->feature_fraction_bynode >= 1.0;

	if (!is_joint && rest != NULL) /* leaves below may look at features that these don't */
		ag_hist_rest_make(rest, grower->features, tree_features(grower, grower->features));
	for (int i = 0; i < n_leaves; i++)
	{
		AgOpenLeaf *open = leaves[i];
		int *features = grower->features + i * grower->bins->n_features;

		task.nodes[i] = (AgSplitNode){.hist = &open->hist,
									  .ids = grower->lists[open->leaf.list].ids + open->leaf.begin,
									  .n_rows = open->leaf.n_rows,
									  .sum_g = open->sum_g,
									  .sum_h = open->sum_h,
									  .output = open->output,
									  .key = open->key,
									  .low = open->leaf.low,
									  .high = open->leaf.high};
		task.n_features[i] = node_features(growing, open, features);
		task.features[i] = features;
	}
	for (int i = 0; i < 2 * n_threads; i++)
		grower->found[i] = ag_split_none();
	ag_pool_run(is_small ? NULL : grower->ctx->pool,
				task.n_features[0] + (is_joint ? 0 : task.n_features[1]), AG_SEARCH_CHUNK,
				is_joint ? search_joint_task : search_task, &task);
	for (int i = 0; i < n_leaves; i++)
	{
		leaves[i]->split = grower->found[i];
		for (int t = 1; t < n_threads; t++)
			if (ag_split_better(grower->found + 2 * t + i, &leaves[i]->split))
				leaves[i]->split = grower->found[2 * t + i];
	}
	return ag_check_cancel(grower->ctx);
}

static AgStatus
build_hist(AgGrowing *growing, AgOpenLeaf *open)
{
	AgGrower *grower = growing->grower;
	AgRowList list = grower->lists[open->leaf.list];

	list.ids += open->leaf.begin;
	AG_TRY(take_slot(growing, open));
	return ag_hist_build(&grower->hists, &list, open->leaf.n_rows, &open->hist);
}

/*
 * Histograms and best splits of the two children of a leaf whose histogram is parent's. Gives back the slots
 * of those that can't be split.
 */
static AgStatus
evaluate_children(AgGrowing *growing, AgOpenLeaf *parent, int left, int right)
{
	AgGrower *grower = growing->grower;
	AgOpenLeaf *a = grower->open + left, *b = grower->open + right;
	AgOpenLeaf *small = a->leaf.n_rows <= b->leaf.n_rows ? a : b, *large = small == a ? b : a;
	AgOpenLeaf *both[2];
	AgHistRest rest;
	bool has_rest = false;
	int n = 0;

	if (!can_split(growing, a) && !can_split(growing, b))
	{
		give_slot(grower, parent);
		return AG_OK;
	}
	AG_TRY(build_hist(growing, small));
	if (can_split(growing, large) && parent->slot < 0)
	{
		AG_TRY(build_hist(growing, large));
		both[n++] = large;
	}
	else if (can_split(growing, large))
	{
		rest = ag_hist_rest_begin(&grower->hists, &parent->hist, &small->hist, large->leaf.n_rows);
		has_rest = true;
		large->hist = parent->hist;
		large->slot = parent->slot;
		both[n++] = large;
	}
	else
		give_slot(grower, parent);
	if (can_split(growing, small))
		both[n++] = small;
	AG_TRY(search_leaves(growing, both, n, has_rest ? &rest : NULL));
	for (int i = 0; i < 2; i++)
	{
		AgOpenLeaf *open = i == 0 ? a : b;

		if (open->split.feature >= 0)
			heap_push(growing, (int) (open - grower->open));
		else
			give_slot(grower, open);
	}
	return AG_OK;
}

/* ---- splitting ---- */

static void
hang(AgGrower *grower, const AgOpenLeaf *open, int32_t reference)
{
	if (open->parent < 0)
		return;
	if (open->is_right)
		grower->nodes[open->parent].right = reference;
	else
		grower->nodes[open->parent].left = reference;
}

static void
make_child(AgGrowing *growing, const AgOpenLeaf *parent, int node, bool is_right, int64_t begin,
		   int64_t n_rows, int at)
{
	AgGrower *grower = growing->grower;
	const AgSplitRules *rules = growing->rules;
	const AgSplit *split = &parent->split;
	AgOpenLeaf *open = grower->open + at;

	*open = (AgOpenLeaf){.leaf = {.begin = begin,
								  .n_rows = n_rows,
								  .list = 1 - parent->leaf.list,
								  .parent_output = parent->output,
								  .low = parent->leaf.low,
								  .high = parent->leaf.high,
								  .has_cat_l2 = split->has_cat_l2,
								  .depth = parent->leaf.depth + 1},
						 .slot = -1,
						 .sum_g = is_right ? parent->sum_g - split->left_g : split->left_g,
						 .sum_h = is_right ? parent->sum_h - split->left_h : split->left_h,
						 .key = ag_key(parent->key, is_right),
						 .made = growing->n_made++,
						 .parent = node,
						 .is_right = is_right,
						 .split = ag_split_none()};
	open->output = ag_leaf_output(rules, (double) open->sum_g, (double) open->sum_h,
								  rules->l2 + (split->has_cat_l2 ? rules->cat_l2 : 0.0), n_rows,
								  parent->output);
	if (rules->monotone != NULL)
		open->output = ag_within(open->output, open->leaf.low, open->leaf.high);
	hang(grower, open, ~at);
	if (open->leaf.depth > grower->depth)
		grower->depth = open->leaf.depth;
}

/* What lies below one side may not pass what lies below the other: both stop half way between the two. */
static void
set_bounds(const AgSplitRules *rules, const AgSplit *split, AgOpenLeaf *left, AgOpenLeaf *right)
{
	double middle = left->output * 0.5 + right->output * 0.5;

	if (rules->monotone == NULL || split->is_category || rules->monotone[split->feature] == 0)
		return;
	if (rules->monotone[split->feature] > 0)
		left->leaf.high = right->leaf.low = middle;
	else
		left->leaf.low = right->leaf.high = middle;
}

static AgStatus
split_leaf(AgGrowing *growing, int at)
{
	AgGrower *grower = growing->grower;
	AgOpenLeaf parent = grower->open[at];
	uint32_t *from = grower->lists[parent.leaf.list].ids + parent.leaf.begin;
	uint32_t *to = grower->lists[1 - parent.leaf.list].ids + parent.leaf.begin;
	int64_t n_left;
	int node = grower->n_nodes++, right = grower->n_leaves++;

	AG_TRY(ag_partition(grower->ctx, grower->level, grower->bins, &parent.split, from,
						parent.leaf.n_rows, to, grower->scratch, &n_left));
	grower->nodes[node].split = parent.split;
	hang(grower, &parent, node);
	make_child(growing, &parent, node, false, parent.leaf.begin, n_left, at);
	make_child(growing, &parent, node, true, parent.leaf.begin + n_left,
			   parent.leaf.n_rows - n_left, right);
	set_bounds(growing->rules, &parent.split, grower->open + at, grower->open + right);
	if (grower->n_leaves == grower->growth.max_leaves)
		return AG_OK;
	return evaluate_children(growing, &parent, at, right);
}

static AgStatus
start_root(AgGrowing *growing, const AgQuantum *quantum, int64_t n_rows, uint64_t key)
{
	AgGrower *grower = growing->grower;
	AgOpenLeaf *root = grower->open;

	*root = (AgOpenLeaf){
		.leaf = {.n_rows = n_rows, .low = -(double) INFINITY, .high = (double) INFINITY},
		.slot = -1,
		.sum_g = quantum->sum_g,
		.sum_h = quantum->sum_h,
		.key = key,
		.made = growing->n_made++,
		.parent = -1,
		.split = ag_split_none()};
	grower->n_leaves = 1;
	if (grower->growth.max_leaves < 2 || !can_split(growing, root))
		return AG_OK;
	AG_TRY(build_hist(growing, root));
	AG_TRY(search_leaves(growing, &root, 1, NULL));
	if (root->split.feature >= 0)
		heap_push(growing, 0);
	return AG_OK;
}

AgStatus
ag_grow_tree(AgGrower *grower, const AgSplitRules *rules, const AgQuantum *quantum, int64_t n_rows,
			 uint64_t key)
{
	AgGrowing growing = {.grower = grower, .rules = rules, .heap = grower->heap, .key = key};

	grower->n_nodes = grower->n_leaves = 0;
	grower->depth = 0;
	grower->is_cut_short = false;
	if (grower->growth.is_symmetric)
		return ag_grow_symmetric(grower, rules, n_rows, key);
	ag_hist_use(&grower->hists, grower->is_used);
	if (grower->hists.layout.n_cells > grower->hists.most_cells)
		return ag_error_set(grower->ctx->error, AG_ERR_INTERNAL, "bins have grown");
	grower->n_free_slots = 0;
	for (int s = grower->n_slots - 1; s >= 0; s--)
		grower->free_slots[grower->n_free_slots++] = s;
	AG_TRY(start_root(&growing, quantum, n_rows, key));
	while (growing.n_heap > 0 && grower->n_leaves < grower->growth.max_leaves)
	{
		if (ag_out_of_time(grower->ctx))
		{
			grower->is_cut_short = true;
			break;
		}
		AG_TRY(split_leaf(&growing, heap_pop(&growing)));
		if (grower->tick != NULL)
			grower->tick(grower->tick_arg);
	}
	for (int l = 0; l < grower->n_leaves; l++)
		grower->leaves[l] = grower->open[l].leaf;
	return AG_OK;
}
