/*
 * grow.cu - growth of one tree, best first or level by level.
 *
 * Which leaf is next depends on gains alone, which lie on the device: one block plans each step there, and the host only
 * launches. Best first, a step splits the best leaf and, ahead of their turn, the next best: what is kept is exactly what
 * splitting one after the other gives, and what was split in vain is left out. The host numbers the nodes when all is done.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/children.cuh"
#include "kernels/plan.cuh"

#define AGK_STEPS_UNWATCHED 4 /* steps between looks at whether the tree is done, once it may be */

/* ---- planning a step ---- */

static __device__ inline bool
is_before(const AgkNode *a, const AgkNode *b)
{
	if (a->split.gain != b->split.gain)
		return a->split.gain > b->split.gain;
	return a->made < b->made;
}

/* The place in `open` of the best leaf, -1: none. only_whole: leaves that were split already don't count. */
static __device__ int
best_open(const AgkGrowth &growth, bool only_whole)
{
	__shared__ int bests[AGK_THREADS];
	const AgkNode *nodes = growth.nodes;
	int best = -1;

	for (int i = threadIdx.x; i < growth.state->n_open; i += blockDim.x)
	{
		if (only_whole && nodes[growth.open[i]].left >= 0)
			continue;
		if (best < 0 || is_before(nodes + growth.open[i], nodes + growth.open[best]))
			best = i;
	}
	__syncthreads();
	bests[threadIdx.x] = best;
	__syncthreads();
	for (int delta = AGK_THREADS / 2; delta > 0; delta /= 2)
	{
		if (static_cast<int>(threadIdx.x) < delta)
		{
			int other = bests[threadIdx.x + delta], mine = bests[threadIdx.x];

			if (other >= 0 &&
				(mine < 0 || is_before(nodes + growth.open[other], nodes + growth.open[mine])))
				bests[threadIdx.x] = other;
		}
		__syncthreads();
	}
	return bests[0];
}

/* A split leaf's turn has come: its children are leaves of the tree. One thread. */
static __device__ void
commit(const AgkGrowth &growth, int place)
{
	AgkState *state = growth.state;
	AgkNode *node = growth.nodes + growth.open[place];

	node->is_inner = true;
	state->n_leaves++;
	growth.open[place] = growth.open[--state->n_open];
	for (int c = 0; c < 2; c++)
	{
		AgkNode *child = growth.nodes + node->left + c;

		child->made = state->n_made++;
		if (child->split.feature >= 0)
			growth.open[state->n_open++] = node->left + c;
	}
}

/* How many nodes the step may split at most. */
static __device__ int
most_of_step(const AgkGrowth &growth)
{
	const AgkState *state = growth.state;
	int most = growth.max_leaves - state->n_leaves;

	most = most < growth.most_expand ? most : growth.most_expand;
	return most < state->n_free_slots ? most : state->n_free_slots;
}

static __device__ void
plan_best_first(const AgkGrowth &growth)
{
	AgkState *state = growth.state;
	int n = 0, most;

	for (;;)
	{
		int best = state->n_leaves < growth.max_leaves ? best_open(growth, false) : -1;

		if (best < 0)
		{
			__syncthreads();
			if (threadIdx.x == 0)
				state->n_open = 0;
			break;
		}
		if (growth.nodes[growth.open[best]].left < 0)
			break;
		__syncthreads();
		if (threadIdx.x == 0)
			commit(growth, best);
		__syncthreads();
	}
	__syncthreads();
	most = most_of_step(growth);
	for (; n < most; n++)
	{
		int best = best_open(growth, true);

		if (best < 0)
			break;
		__syncthreads();
		if (threadIdx.x == 0)
		{
			growth.expand[n] = growth.open[best];
			growth.nodes[growth.open[best]].left = state->n_nodes + 2 * n;
		}
		__syncthreads();
	}
	if (threadIdx.x == 0)
		state->n_expand = n;
}

/* The children of the last step that have splits, behind those that wait. */
static __device__ void
queue_children(const AgkGrowth &growth)
{
	AgkState *state = growth.state;
	int n = 2 * state->n_expand, n_open = state->n_open;

	for (int first = 0; first < n; first += blockDim.x)
	{
		int index = first + static_cast<int>(threadIdx.x), child = -1, at, n_tile;

		if (index < n)
			child = growth.nodes[growth.expand[index / 2]].left + index % 2;
		if (child >= 0 && growth.nodes[child].split.feature < 0)
			child = -1;
		at = agk_block_scan(child >= 0 ? 1 : 0, &n_tile);
		if (child >= 0)
			growth.open[n_open + at] = child;
		n_open += n_tile;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		state->n_open = n_open;
}

static __device__ void
plan_depthwise(const AgkGrowth &growth, bool is_first)
{
	AgkState *state = growth.state;
	int most, n;

	if (!is_first)
		queue_children(growth);
	__syncthreads();
	most = most_of_step(growth);
	n = state->n_open - state->n_head;
	n = n < most ? n : most;
	for (int e = threadIdx.x; e < n; e += blockDim.x)
	{
		AgkNode *node = growth.nodes + growth.open[state->n_head + e];

		growth.expand[e] = growth.open[state->n_head + e];
		node->left = state->n_nodes + 2 * e;
		node->is_inner = true;
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		state->n_expand = n;
		state->n_head += n;
		state->n_leaves += n;
	}
}

/* What the step splits; nothing when the tree is done. */
__global__ void
agk_plan_step(AgkGrowth growth, int is_first)
{
	AgkState *state = growth.state;
	int left;

	if (state->is_done)
		return;
	if (is_first && threadIdx.x == 0)
	{
		state->n_made = 1;
		if (growth.nodes[0].split.feature >= 0)
			growth.open[state->n_open++] = 0;
	}
	__syncthreads();
	if (growth.is_depthwise)
		plan_depthwise(growth, is_first != 0);
	else
		plan_best_first(growth);
	__syncthreads();
	/* the children of the tree's last split need no search */
	left = growth.max_leaves - state->n_leaves;
	for (int e = threadIdx.x; e < state->n_expand; e += blockDim.x)
		growth.child_slot[e] = left > (growth.is_depthwise ? 0 : 1)
								   ? growth.free_slots[state->n_free_slots - 1 - e]
								   : -1;
	__syncthreads();
	if (threadIdx.x == 0)
	{
		state->wants_search = left > (growth.is_depthwise ? 0 : 1);
		state->n_nodes += 2 * state->n_expand;
		if (state->wants_search)
			state->n_free_slots -= state->n_expand;
		state->is_done = state->n_expand == 0;
	}
	__syncthreads();
	agk_plan_chunks(growth);
}

/* ---- the root ---- */

/* The root has slot 0; the others are free, and the last is taken first: what is wrong with large indices shows at once. */
__global__ void
agk_start(AgkGrowth growth)
{
	AgkState *state = growth.state;
	AgkNode *root = growth.nodes;

	for (int s = threadIdx.x; s < growth.n_slots - 1; s += blockDim.x)
		growth.free_slots[s] = s + 1;
	if (threadIdx.x == 0)
	{
		*root = AgkNode();
		root->n_rows = growth.n_rows;
		root->sum_g = state->sum_g;
		root->sum_h = state->sum_h;
		root->key = growth.key;
		root->low = -(double) INFINITY;
		root->high = (double) INFINITY;
		root->parent = root->left = -1;
		root->split.feature = -1;
		root->slot = 0;
		growth.child_slot[0] = 0;
		growth.expand[0] = 0;
		state->n_nodes = state->n_leaves = 1;
		state->n_free_slots = growth.n_slots - 1;
		state->n_expand = 1;
		state->wants_search = 1;
	}
	__syncthreads();
	agk_plan_chunks(growth);
}

AgDeviceStatus
agk_open_root(AgDevice *device, AgkGrowth *growth)
{
	growth->is_root = 1;
	AGK_TRY(agk_clear(device, growth->slots,
					  2 * (int64_t) growth->matrix.n_cells * (int64_t) sizeof(int64_t)));
	AGK_LAUNCH(agk_start, 1, AGK_THREADS, 0, device->stream, *growth);
	return agk_histograms(device, growth);
}

/* ---- numbering what was grown ---- */

/* Leaves that may be split next, best first: a heap of nodes. */
struct Queue
{
	const AgkNode *nodes;
	int32_t *heap;
	int n, n_head;
	bool is_depthwise;
};

static void
queue_push(Queue *queue, int32_t node)
{
	int at = queue->n++;

	while (!queue->is_depthwise && at > 0 &&
		   (queue->nodes[node].split.gain > queue->nodes[queue->heap[(at - 1) / 2]].split.gain ||
			(queue->nodes[node].split.gain == queue->nodes[queue->heap[(at - 1) / 2]].split.gain &&
			 queue->nodes[node].made < queue->nodes[queue->heap[(at - 1) / 2]].made)))
	{
		queue->heap[at] = queue->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue->heap[at] = node;
}

static bool
comes_before(const Queue *queue, int32_t a, int32_t b)
{
	const AgkNode *left = queue->nodes + a, *right = queue->nodes + b;

	if (left->split.gain != right->split.gain)
		return left->split.gain > right->split.gain;
	return left->made < right->made;
}

/* -1 when there is none. */
static int32_t
queue_pop(Queue *queue)
{
	int32_t top, last;
	int at = 0;

	if (queue->n_head == queue->n)
		return -1;
	if (queue->is_depthwise)
		return queue->heap[queue->n_head++];
	top = queue->heap[0];
	last = queue->heap[--queue->n];
	for (;;)
	{
		int child = 2 * at + 1;

		if (child >= queue->n)
			break;
		if (child + 1 < queue->n && comes_before(queue, queue->heap[child + 1], queue->heap[child]))
			child++;
		if (!comes_before(queue, queue->heap[child], last))
			break;
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = last;
	return top;
}

/* Splits the nodes again, in the order in which one after the other would have been, for their numbers. */
static bool
number_nodes(AgDeviceBoost *boost, AgDeviceTree *tree)
{
	AgkNode *nodes = boost->host_nodes;
	int32_t max_nodes = boost->growth.max_nodes, made = 1;
	int32_t *room = static_cast<int32_t *>(malloc(3 * (size_t) max_nodes * sizeof(int32_t)));
	int32_t *leaf_of,
		*parent_of; /* of a node: its leaf's number, and the tree's node that it hangs on */
	Queue queue = {nodes, room, 0, 0, boost->growth.is_depthwise != 0};

	if (room == nullptr)
		return false;
	leaf_of = room + max_nodes;
	parent_of = room + 2 * max_nodes;
	tree->n_nodes = 0;
	tree->n_leaves = 1;
	tree->depth = 0;
	boost->host_final[0] = 0;
	leaf_of[0] = 0;
	parent_of[0] = -1;
	nodes[0].made = 0;
	if (nodes[0].split.feature >= 0)
		queue_push(&queue, 0);
	for (int32_t at = queue_pop(&queue); at >= 0; at = queue_pop(&queue))
	{
		AgkNode *node = nodes + at;
		int32_t number = tree->n_nodes, right_leaf = tree->n_leaves;

		if (!node->is_inner)
			break; /* the tree was cut short, or is full */
		tree->n_nodes++;
		tree->n_leaves++;
		tree->nodes[number].split = node->split;
		if (parent_of[at] >= 0 && leaf_of[at] == ~tree->nodes[parent_of[at]].left)
			tree->nodes[parent_of[at]].left = number;
		else if (parent_of[at] >= 0)
			tree->nodes[parent_of[at]].right = number;
		tree->nodes[number].left = ~leaf_of[at];
		tree->nodes[number].right = ~right_leaf;
		if (node->depth + 1 > tree->depth)
			tree->depth = node->depth + 1;
		for (int32_t c = 0; c < 2; c++)
		{
			int32_t child = node->left + c, leaf = c == 0 ? leaf_of[at] : right_leaf;

			nodes[child].made = made++;
			leaf_of[child] = leaf;
			parent_of[child] = number;
			boost->host_final[leaf] = child;
			if (nodes[child].split.feature >= 0)
				queue_push(&queue, child);
		}
	}
	free(room);
	return true;
}

/* ---- the whole ---- */

static AgDeviceStatus
begin_growth(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order)
{
	AgkGrowth *growth = &boost->growth;

	boost->grown_on = order->matrix != nullptr ? order->matrix : boost->matrix;
	growth->matrix = boost->grown_on->view;
	growth->rules = order->rules;
	growth->key = order->growth_key;
	growth->n_rows = order->n_rows;
	growth->is_counted_from_h = order->has_equal_hessians;
	growth->always_counts = order->rules.path_smooth > 0.0;
	growth->fixed_g = order->fixed_g;
	growth->fixed_h = order->fixed_h;
	growth->n_blocks = device->n_blocks;
	growth->at_level = 0;
	growth->is_final = 0;
	growth->marks = nullptr;
	if (growth->matrix.n_block_rows == 0)
		return AG_DEVICE_OK;
	if (boost->marks.at == nullptr)
		AGK_TRY(agk_get(device, boost->spec.n_train, &boost->marks));
	growth->marks = boost->marks.at;
	return AG_DEVICE_OK;
}

/* Steps that a full tree takes at least, and one more that finds it done: nobody looks before. A step splits twice as many leaves as the one before. */
static int
least_steps(const AgkGrowth *growth)
{
	int steps = 1, wide = 1, left = growth->max_leaves - 1;

	while (left > 0 && steps <= growth->max_depth)
	{
		left -= wide;
		wide = 2 * wide < growth->most_expand ? 2 * wide : growth->most_expand;
		steps++;
	}
	return steps;
}

/* Steps until the tree is done. */
static AgDeviceStatus
grow_steps(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order,
		   AgDeviceTree *tree)
{
	AgkGrowth *growth = &boost->growth;
	int look_at = least_steps(growth);
	AgkState state = {};

	AGK_TRY(agk_open_root(device, growth));
	AGK_TRY(agk_search(device, growth));
	growth->is_root = 0;
	for (int step = 0; growth->max_leaves > 1; step++)
	{
		int answer = order->poll != nullptr ? order->poll(order->arg) : 0;

		if (answer == 2)
			return AG_DEVICE_STOPPED;
		if (answer == 1)
		{
			tree->is_cut_short = true;
			break;
		}
		AGK_LAUNCH(agk_plan_step, 1, AGK_THREADS, 0, device->stream, *growth, step == 0);
		AGK_TRY(agk_partition(device, growth));
		AGK_TRY(agk_histograms(device, growth));
		AGK_TRY(agk_search(device, growth));
		if (step + 1 < look_at)
			continue;
		look_at += AGK_STEPS_UNWATCHED;
		AGK_TRY(agk_download(device, &state, growth->state, sizeof(state)));
		if (state.is_done)
			break;
	}
	AGK_TRY(agk_sum_leaves(device, boost));
	if (!state.is_done)
		AGK_TRY(agk_download(device, &state, growth->state, sizeof(state)));
	AGK_TRY(agk_download(device, boost->host_nodes, growth->nodes,
						 state.n_nodes * (int64_t) sizeof(AgkNode)));
	if (!number_nodes(boost, tree))
		return AG_DEVICE_MEMORY;
	return AG_DEVICE_OK;
}

/* The tree as rows go through it. */
static void
lay_route(AgDeviceBoost *boost, const AgDeviceTree *tree)
{
	boost->n_leaves = tree->n_leaves;
	boost->n_inner = tree->n_nodes;
	for (int32_t i = 0; i < tree->n_nodes; i++)
	{
		const AgDeviceNode *node = tree->nodes + i;
		AgkRouteNode *to = boost->host_route + i;

		memset(to, 0, sizeof(*to));
		to->feature = node->split.feature;
		for (unsigned bin = 0; bin < AGK_BINS; bin++)
			to->left_bits[bin >> 5] |= static_cast<uint32_t>(agk_goes_left(&node->split, bin))
									   << (bin & 31);
		to->next[1] = node->left < 0 ? tree->n_nodes + ~node->left : node->left;
		to->next[0] = node->right < 0 ? tree->n_nodes + ~node->right : node->right;
	}
}

AgDeviceStatus
agk_boost_grow(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order,
			   AgDeviceTree *tree)
{
	AgkGrowth *growth = &boost->growth;

	tree->is_cut_short = false;
	AGK_TRY(agk_enter(device));
	AGK_TRY(begin_growth(device, boost, order));
	AGK_TRY(agk_upload(device, boost->is_used.at, order->is_used, growth->matrix.n_features));
	AGK_TRY(agk_quantise(device, boost, order));
	if (growth->is_symmetric)
		AGK_TRY(agk_grow_symmetric(device, boost, order, tree));
	else
		AGK_TRY(grow_steps(device, boost, order, tree));
	lay_route(boost, tree);
	for (int32_t l = 0; l < tree->n_leaves; l++)
	{
		const AgkNode *node = boost->host_nodes + boost->host_final[l];
		AgDeviceLeaf *leaf = tree->leaves + l;

		leaf->n_rows = node->n_rows;
		leaf->sum_g = node->leaf_g;
		leaf->sum_h = node->leaf_h;
		leaf->parent_output = node->parent_output;
		leaf->low = node->low;
		leaf->high = node->high;
		leaf->has_cat_l2 = node->has_cat_l2;
	}
	return AG_DEVICE_OK;
}
