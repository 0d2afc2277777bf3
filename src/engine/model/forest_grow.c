/*
 * forest_grow.c - one tree.
 *
 * A node's split is a function of its rows and its key, so the order in which nodes are taken decides nothing but
 * which of them are split before max_leaf_nodes is reached. Where it can't be, the last one made is taken next
 * (its rows are in the cache); else the one of most gain.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/forest_private.h"

/* Rows looked at between two readings of the clock. */
#define LOOKS_AT_A_TIME 20000
/* Constant features are remembered while that costs at most so many bytes. */
#define CONSTANTS_BYTES (INT64_C(16) << 20)

/* ---- room ---- */

static bool
reserve(AgForestWorker *worker, void *items_at, size_t item_size, size_t n, uint32_t *capacity)
{
	void **items = items_at;
	size_t wanted = *capacity < 64 ? 64 : *capacity;
	void *grown;

	if (n <= *capacity)
		return true;
	while (wanted < n)
		wanted *= 2;
	if (wanted > UINT32_MAX)
		return false;
	grown = ag_mem_realloc(worker->forest->ctx->mem, *items, wanted, item_size);
	if (grown == NULL)
		return false;
	*items = grown;
	*capacity = (uint32_t) wanted;
	return true;
}

AgStatus
ag_forest_worker_create(AgForest *forest, AgForestWorker *worker)
{
	const AgContext *ctx = forest->ctx;
	size_t n = (size_t) forest->data->n_train, n_features = (size_t) forest->data->bins->n_features;
	size_t n_classes = (size_t) forest->n_classes;

	worker->forest = forest;
	AG_TRY(ag_get(ctx, n, sizeof(uint64_t), &worker->rows));
	AG_TRY(ag_get(ctx, n, sizeof(uint64_t), &worker->spare));
	AG_TRY(ag_get(ctx, n, sizeof(uint64_t), &worker->pairs));
	AG_TRY(ag_get(ctx, n, 1, &worker->repeats));
	AG_TRY(ag_get(ctx, (size_t) forest->n_ranks, AG_FOREST_BINS, &worker->ranks));
	AG_TRY(ag_get(ctx, n_features, sizeof(int), &worker->features));
	AG_TRY(ag_get(ctx, n_features, sizeof(int), &worker->undo));
	for (size_t f = 0; f < n_features; f++)
		worker->features[f] = (int) f;
	if (forest->params->is_extra)
		AG_TRY(ag_get(ctx, n, 1, &worker->bins));
	if (!forest->is_classes)
		AG_TRY(ag_get(ctx, n, sizeof(int64_t), &worker->sums));
	if (forest->class_rows != NULL)
	{
		AG_TRY(ag_get(ctx, n_classes, sizeof(uint32_t), &worker->factors));
		AG_TRY(ag_get(ctx, n_classes, sizeof(int64_t), &worker->class_rows));
	}
	if (n_classes <= 2)
		return AG_OK;
	AG_TRY(ag_get(ctx, n, sizeof(uint32_t), &worker->classes));
	AG_TRY(ag_get(ctx, n, sizeof(uint32_t), &worker->weights));
	AG_TRY(ag_get(ctx, n, sizeof(uint32_t), &worker->next));
	AG_TRY(ag_get(ctx, n_classes, sizeof(uint32_t), &worker->slot_of));
	AG_TRY(ag_get(ctx, n_classes, sizeof(uint32_t), &worker->class_at));
	AG_TRY(ag_get(ctx, n_classes, sizeof(int64_t), &worker->totals));
	AG_TRY(ag_get(ctx, n_classes, sizeof(int64_t), &worker->lefts));
	AG_TRY(ag_get_zeroed(ctx, AG_FOREST_CELLS, sizeof(uint32_t), &worker->class_cells));
	memset(worker->slot_of, 0xff, n_classes * sizeof(uint32_t));
	memset(worker->heads, 0xff, sizeof worker->heads);
	return AG_OK;
}

int64_t
ag_forest_worker_memory(const AgTrainData *data, const AgForestParams *params)
{
	int64_t n = data->n_train, n_features = data->bins->n_features;
	int64_t row = 25 + (params->is_extra ? 1 : 0) +
				  (data->problem == AG_PROBLEM_REGRESSION ? 8 : 0) + (data->n_classes > 2 ? 12 : 0);
	int64_t n_open =
		params->max_leaf_nodes > 0 && params->max_leaf_nodes < n ? params->max_leaf_nodes : 1024;
	int64_t constants = n_open * ((n_features + 63) / 64) * 8;

	return n * row + n_features * (8 + AG_FOREST_BINS) + n_open * (int64_t) sizeof(AgForestOpen) +
		   (constants < CONSTANTS_BYTES ? constants : CONSTANTS_BYTES) +
		   (data->n_classes > 2 ? 24 * (int64_t) data->n_classes + 4 * AG_FOREST_CELLS : 0) +
		   (int64_t) sizeof(AgForestWorker);
}

void
ag_forest_tree_free(const AgContext *ctx, AgForestTree *tree)
{
	ag_mem_free(ctx->mem, tree->nodes);
	ag_mem_free(ctx->mem, tree->sets);
	ag_mem_free(ctx->mem, tree->values);
	ag_mem_free(ctx->mem, tree->shares);
	ag_mem_free(ctx->mem, tree->share_ends);
	ag_mem_free(ctx->mem, tree->out_of_bag);
	memset(tree, 0, sizeof *tree);
}

void
ag_forest_worker_free(AgForestWorker *worker)
{
	AgMem *mem;

	if (worker->forest == NULL)
		return;
	mem = worker->forest->ctx->mem;
	ag_mem_free(mem, worker->rows);
	ag_mem_free(mem, worker->spare);
	ag_mem_free(mem, worker->pairs);
	ag_mem_free(mem, worker->repeats);
	ag_mem_free(mem, worker->factors);
	ag_mem_free(mem, worker->class_rows);
	ag_mem_free(mem, worker->ranks);
	ag_mem_free(mem, worker->features);
	ag_mem_free(mem, worker->undo);
	ag_mem_free(mem, worker->bins);
	ag_mem_free(mem, worker->sums);
	ag_mem_free(mem, worker->classes);
	ag_mem_free(mem, worker->weights);
	ag_mem_free(mem, worker->next);
	ag_mem_free(mem, worker->slot_of);
	ag_mem_free(mem, worker->class_at);
	ag_mem_free(mem, worker->totals);
	ag_mem_free(mem, worker->lefts);
	ag_mem_free(mem, worker->class_cells);
	ag_mem_free(mem, worker->constants);
	ag_mem_free(mem, worker->open);
	ag_mem_free(mem, worker->queue);
	ag_mem_free(mem, worker->free_open);
	ag_forest_tree_free(worker->forest->ctx, &worker->tree);
}

/* ---- open nodes ---- */

static uint64_t *
constants_of(const AgForestWorker *worker, int open)
{
	return worker->constants == NULL ? NULL : worker->constants + (int64_t) open * worker->n_words;
}

/* Doubles the room for open nodes; what is known of constant features is given up where it grows too large. */
static bool
more_open(AgForestWorker *worker)
{
	AgMem *mem = worker->forest->ctx->mem;
	int n = worker->n_open_max, wanted = n < 64 ? 64 : 2 * n;
	int64_t n_words = (worker->forest->data->bins->n_features + 63) / 64;
	bool keeps = (n == 0 || worker->constants != NULL) && wanted * n_words * 8 <= CONSTANTS_BYTES;
	void *open, *queue, *list, *constants;

	if (n > INT_MAX / 4)
		return false;
	if ((open = ag_mem_realloc(mem, worker->open, (size_t) wanted, sizeof(AgForestOpen))) == NULL)
		return false;
	worker->open = open;
	if ((queue = ag_mem_realloc(mem, worker->queue, (size_t) wanted, sizeof(int))) == NULL)
		return false;
	worker->queue = queue;
	if ((list = ag_mem_realloc(mem, worker->free_open, (size_t) wanted, sizeof(int))) == NULL)
		return false;
	worker->free_open = list;
	if (keeps)
	{
		constants =
			ag_mem_realloc(mem, worker->constants, (size_t) (wanted * n_words), sizeof(uint64_t));
		if (constants == NULL)
			return false;
		worker->constants = constants;
		worker->n_words = (int) n_words;
	}
	else
	{
		ag_mem_free(mem, worker->constants);
		worker->constants = NULL;
	}
	for (int i = wanted - 1; i >= n; i--)
		worker->free_open[worker->n_free++] = i;
	worker->n_open_max = wanted;
	return true;
}

static bool
is_limited(const AgForestWorker *worker)
{
	return worker->n_rows > worker->forest->max_leaves;
}

/* Is a to be split before b? */
static bool
comes_first(const AgForestWorker *worker, int a, int b)
{
	const AgForestOpen *x = &worker->open[a], *y = &worker->open[b];

	if (x->split.gain != y->split.gain)
		return x->split.gain > y->split.gain;
	return x->parent != y->parent ? x->parent < y->parent : !x->is_right;
}

static void
queue_put(AgForestWorker *worker, int open)
{
	int at = worker->n_queue++;

	if (is_limited(worker))
		for (; at > 0 && comes_first(worker, open, worker->queue[(at - 1) / 2]); at = (at - 1) / 2)
			worker->queue[at] = worker->queue[(at - 1) / 2];
	worker->queue[at] = open;
}

static int
queue_take(AgForestWorker *worker)
{
	int taken, last, at = 0;

	if (!is_limited(worker))
		return worker->queue[--worker->n_queue];
	taken = worker->queue[0];
	last = worker->queue[--worker->n_queue];
	for (;;)
	{
		int child = 2 * at + 1;

		if (child >= worker->n_queue)
			break;
		if (child + 1 < worker->n_queue &&
			comes_first(worker, worker->queue[child + 1], worker->queue[child]))
			child++;
		if (!comes_first(worker, worker->queue[child], last))
			break;
		worker->queue[at] = worker->queue[child];
		at = child;
	}
	worker->queue[at] = last;
	return taken;
}

/* ---- leaves ---- */

static void
link_child(AgForestWorker *worker, const AgForestOpen *node, int32_t child)
{
	if (node->parent < 0)
		return;
	if (node->is_right)
		worker->tree.nodes[node->parent].right = child;
	else
		worker->tree.nodes[node->parent].left = child;
}

/* The weights of the classes of rows, ascending by class. */
static bool
add_shares(AgForestWorker *worker, const uint64_t *rows, int64_t n_rows)
{
	AgForestTree *tree = &worker->tree;
	uint32_t n = 0;

	for (int64_t i = 0; i < n_rows; i++)
	{
		uint32_t class_of = ag_forest_class(rows[i]);

		if (worker->slot_of[class_of] == UINT32_MAX)
		{
			worker->slot_of[class_of] = n;
			worker->totals[n] = 0;
			worker->class_at[n++] = class_of;
		}
		worker->totals[worker->slot_of[class_of]] += ag_forest_weight(worker, rows[i]);
	}
	if (!reserve(worker, &tree->shares, sizeof *tree->shares, (size_t) tree->n_shares + n,
				 &worker->max_shares) ||
		!reserve(worker, &tree->share_ends, sizeof *tree->share_ends, (size_t) tree->n_leaves + 1,
				 &worker->max_ends))
		return false;
	for (uint32_t i = 0; i < n; i++)
	{
		AgForestShare share = {worker->class_at[i], (uint32_t) worker->totals[i]};
		uint32_t at = tree->n_shares + i;

		worker->slot_of[share.class_of] = UINT32_MAX;
		for (; at > tree->n_shares && tree->shares[at - 1].class_of > share.class_of; at--)
			tree->shares[at] = tree->shares[at - 1];
		tree->shares[at] = share;
	}
	tree->n_shares += n;
	tree->share_ends[tree->n_leaves] = tree->n_shares;
	return true;
}

static double
mean_of(const AgForestWorker *worker, const uint64_t *rows, int64_t n_rows)
{
	const AgForest *forest = worker->forest;
	__int128 sum = 0;
	int64_t weight = 0;

	for (int64_t i = 0; i < n_rows; i++)
	{
		int64_t w = ag_forest_weight(worker, rows[i]);

		weight += w;
		sum += forest->is_classes ? (ag_forest_class(rows[i]) != 0 ? w : 0)
								  : (__int128) forest->values[(uint32_t) rows[i]] * w;
	}
	return (double) sum / (double) weight * (forest->is_classes ? 1.0 : forest->step);
}

static bool
add_leaf(AgForestWorker *worker, const AgForestOpen *node)
{
	AgForestTree *tree = &worker->tree;
	const uint64_t *rows = worker->rows + node->begin;

	if (worker->forest->n_classes > 2)
	{
		if (!add_shares(worker, rows, node->n_rows))
			return false;
	}
	else
	{
		if (!reserve(worker, &tree->values, sizeof *tree->values, (size_t) tree->n_leaves + 1,
					 &worker->max_leaves))
			return false;
		tree->values[tree->n_leaves] = mean_of(worker, rows, node->n_rows);
	}
	link_child(worker, node, ~(int32_t) tree->n_leaves);
	tree->n_leaves++;
	if (node->depth > tree->depth)
		tree->depth = node->depth;
	return true;
}

/* ---- splits ---- */

static uint32_t
cut_of(const AgForestWorker *worker, const AgForestOpen *node)
{
	const AgForestSplit *split = &node->split;
	const AgBinFeature *feature = worker->forest->data->bins->features + split->feature;
	int bin =
		ag_forest_place(feature->centers, feature->cuts, feature->n_bins, feature->is_category,
						split->low, split->high, worker->forest->params->is_extra, split->value);
	bool missing_left =
		split->has_missing ? split->missing_left : 2 * split->left_weight >= node->weight;

	return ag_forest_cut(bin, missing_left);
}

/* Appends the split as a node; a category's cut of ranks becomes a set of bins. */
static bool
add_node(AgForestWorker *worker, const AgForestOpen *node, uint32_t cut)
{
	AgForestTree *tree = &worker->tree;
	const AgForestSplit *split = &node->split;
	const AgBinFeature *feature = worker->forest->data->bins->features + split->feature;
	int rank = worker->forest->rank_of[split->feature];
	AgForestNode made = {.feature = (uint32_t) split->feature, .cut = cut};

	if (!reserve(worker, &tree->nodes, sizeof *tree->nodes, (size_t) tree->n_nodes + 1,
				 &worker->max_nodes))
		return false;
	if (rank >= 0)
	{
		const uint8_t *ranks = worker->ranks + rank * AG_FOREST_BINS;
		bool unseen_left = 2 * split->left_weight >= node->weight;
		AgForestSet set = ag_forest_set_of(feature, ranks, cut, &unseen_left);

		if (!reserve(worker, &tree->sets, sizeof *tree->sets, (size_t) tree->n_sets + 1,
					 &worker->max_sets))
			return false;
		made.feature |= AG_FOREST_CATEGORY | (unseen_left ? AG_FOREST_UNSEEN_LEFT : 0);
		made.cut = tree->n_sets;
		tree->sets[tree->n_sets++] = set;
	}
	link_child(worker, node, (int32_t) tree->n_nodes);
	tree->nodes[tree->n_nodes++] = made;
	return true;
}

/* Moves left rows to the front, in their order, and returns how many they are. */
static int64_t
part_rows(AgForestWorker *worker, const AgForestOpen *node, uint32_t cut)
{
	AgForestColumn column = ag_forest_column(worker, node->split.feature, node->n_rows);
	uint64_t *rows = worker->rows + node->begin, *spare = worker->spare;
	int64_t n_left = 0, n_right = 0;

	for (int64_t i = 0; i < node->n_rows; i++)
	{
		uint64_t row = rows[i];
		uint8_t bin = column.bytes[(int64_t) (uint32_t) row * column.step];
		bool is_left;

		if (column.ranks != NULL)
			bin = column.ranks[bin];
		is_left = ag_forest_cut_left(cut, bin);
		rows[n_left] = row;
		spare[n_right] = row;
		n_left += is_left;
		n_right += !is_left;
	}
	memcpy(rows + n_left, spare, (size_t) n_right * sizeof *rows);
	return n_left;
}

/* May a node be split? Its rows are viewed then. Most nodes are of a row or two, and end here. */
static bool
may_split(AgForestWorker *worker, AgForestOpen *node)
{
	const AgForest *forest = worker->forest;
	double least = forest->params->min_weight_fraction_leaf * (double) worker->weight;

	if (node->n_rows < forest->min_rows_split || node->n_rows < 2 * forest->min_rows_leaf ||
		node->depth >= forest->max_depth || ag_cancelled(forest->ctx))
		return false;
	ag_forest_view(worker, worker->rows + node->begin, node->n_rows);
	node->weight = worker->view.weight;
	return worker->view.kind != AG_FOREST_PURE && (double) node->weight >= 2.0 * least;
}

/* Finds the split of the node that was viewed; false: it has none. */
static bool
find_split(AgForestWorker *worker, int at)
{
	AgForestOpen *node = &worker->open[at];

	worker->view.key = node->key;
	node->split = ag_forest_search(worker, constants_of(worker, at));
	return node->split.feature >= 0 &&
		   node->split.gain >= worker->forest->min_gain * (double) worker->weight;
}

/* Makes an open node of rows and puts it in the queue, or closes it as a leaf. */
static bool
open_node(AgForestWorker *worker, AgForestOpen *made, int parent_open)
{
	int at;

	if (!may_split(worker, made))
		return add_leaf(worker, made);
	if (worker->n_free == 0 && !more_open(worker))
		return false;
	at = worker->free_open[--worker->n_free];
	worker->open[at] = *made;
	if (worker->constants != NULL && parent_open < 0)
		memset(constants_of(worker, at), 0, (size_t) worker->n_words * 8);
	else if (worker->constants != NULL)
		memcpy(constants_of(worker, at), constants_of(worker, parent_open),
			   (size_t) worker->n_words * 8);
	if (find_split(worker, at))
	{
		queue_put(worker, at);
		return true;
	}
	worker->free_open[worker->n_free++] = at;
	return add_leaf(worker, &worker->open[at]);
}

static bool
split_node(AgForestWorker *worker, int at)
{
	AgForestOpen node = worker->open[at];
	AgForestOpen child = {.begin = node.begin,
						  .key = ag_key(node.key, AG_FOREST_KEY_LEFT),
						  .parent = (int32_t) worker->tree.n_nodes,
						  .depth = node.depth + 1};
	uint32_t cut = cut_of(worker, &node);
	int64_t n_left;

	if (!add_node(worker, &node, cut))
		return false;
	n_left = part_rows(worker, &node, cut);
	child.n_rows = n_left;
	if (!open_node(worker, &child, at))
		return false;
	child.is_right = true;
	child.begin += n_left;
	child.n_rows = node.n_rows - n_left;
	child.key = ag_key(node.key, AG_FOREST_KEY_RIGHT);
	if (!open_node(worker, &child, at))
		return false;
	worker->free_open[worker->n_free++] = at;
	return true;
}

/* True when the tree is to be left as it is. */
static bool
is_over(AgForestWorker *worker, int64_t n_rows)
{
	AgForest *forest = worker->forest;

	if (ag_cancelled(forest->ctx))
		return true;
	worker->n_looks += (uint64_t) n_rows + 16;
	if (worker->n_looks >= LOOKS_AT_A_TIME)
	{
		worker->n_looks = 0;
		if (forest->deadline_ns != INT64_MAX && ag_clock_ns() >= forest->deadline_ns)
			atomic_store(&forest->is_out_of_time, true);
	}
	return atomic_load_explicit(&forest->is_out_of_time, memory_order_relaxed);
}

/* ---- the tree ---- */

static bool
copied(AgForestWorker *worker, void *items_at, size_t n, size_t size)
{
	void **items = items_at;
	void *copy;

	if (n == 0)
	{
		*items = NULL;
		return true;
	}
	copy = ag_mem_alloc(worker->forest->ctx->mem, n, size);
	if (copy != NULL)
		memcpy(copy, *items, n * size);
	*items = copy;
	return copy != NULL;
}

/* The tree in arrays of its own length. */
static bool
keep_tree(AgForestWorker *worker, AgForestTree *kept)
{
	uint8_t *out_of_bag = kept->out_of_bag;
	AgForestTree tree = worker->tree;
	bool is_copied = copied(worker, &tree.nodes, tree.n_nodes, sizeof *tree.nodes);

	is_copied &= copied(worker, &tree.sets, tree.n_sets, sizeof *tree.sets);
	is_copied &= copied(worker, &tree.values, worker->forest->n_classes > 2 ? 0 : tree.n_leaves,
						sizeof *tree.values);
	is_copied &= copied(worker, &tree.shares, tree.n_shares, sizeof *tree.shares);
	is_copied &= copied(worker, &tree.share_ends, worker->forest->n_classes > 2 ? tree.n_leaves : 0,
						sizeof *tree.share_ends);
	*kept = tree;
	kept->out_of_bag = out_of_bag;
	kept->is_grown = is_copied;
	kept->is_short = false;
	return is_copied;
}

static bool
grow(AgForestWorker *worker, uint64_t key, bool *is_whole)
{
	AgForest *forest = worker->forest;
	AgForestTree *tree = &worker->tree;
	AgForestOpen root = {
		.n_rows = worker->n_rows, .parent = -1, .key = ag_key(key, AG_FOREST_KEY_ROOT)};
	bool is_limit = false;

	tree->n_nodes = tree->n_sets = tree->n_leaves = tree->n_shares = tree->depth = 0;
	worker->n_queue = worker->n_free = 0;
	for (int i = worker->n_open_max - 1; i >= 0; i--)
		worker->free_open[worker->n_free++] = i;
	*is_whole = true;
	if (!open_node(worker, &root, -1))
		return false;
	while (worker->n_queue > 0)
	{
		int at = queue_take(worker);

		/* every open node will be a leaf at least */
		is_limit = tree->n_leaves + (int64_t) worker->n_queue + 2 > forest->max_leaves;
		if (!is_limit && is_over(worker, worker->open[at].n_rows))
			*is_whole = false;
		if (is_limit || !*is_whole)
		{
			if (!add_leaf(worker, &worker->open[at]))
				return false;
		}
		else if (!split_node(worker, at))
			return false;
	}
	return true;
}

AgStatus
ag_forest_grow(AgForestWorker *worker, int number)
{
	AgForest *forest = worker->forest;
	AgForestTree *tree = &forest->trees[number];
	uint64_t key = ag_key(forest->params->seed, (uint64_t) number);
	bool is_whole;

	AG_TRY(ag_forest_bag(worker, ag_key(key, AG_FOREST_KEY_BAG), tree));
	if (ag_cancelled(forest->ctx))
		return AG_OK;
	if (!grow(worker, key, &is_whole))
		return AG_ERR_MEMORY;
	/* The first tree is kept however short it is: better than none. */
	if (!is_whole && number > 0)
		return AG_OK;
	if (!keep_tree(worker, tree))
		return AG_ERR_MEMORY;
	tree->is_short = !is_whole;
	atomic_fetch_add(&forest->used_bytes, ag_forest_tree_bytes(forest, tree));
	return AG_OK;
}
