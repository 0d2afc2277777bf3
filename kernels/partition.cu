/*
 * partition.cu - moving rows to their nodes' children, in order.
 *
 * Chunks of rows are counted, then written: a chunk's place is what the chunks of its node before it came to. The order of
 * rows stays, so that neighbouring threads go on reading neighbouring rows.
 */
#include "kernels/block.cuh"

/* Does listed row i of the node, with that id, go left? */
static __device__ inline bool
goes_left(const AgkGrowth &growth, const AgkNode *node, int64_t i, uint32_t id)
{
	if (growth.marks != nullptr)
		return growth.marks[node->begin + i] != 0;
	return agk_goes_left(&node->split, agk_bin(growth.matrix, node->split.feature, id));
}

/* A chunk of rows of one of the step's nodes. */
struct Chunk
{
	const AgkNode *node;
	int e;              /* which of them */
	int64_t begin, end; /* within the node's list */
};

static __device__ inline Chunk
chunk_of(const AgkGrowth &growth, int64_t item)
{
	const AgkState *state = growth.state;
	Chunk chunk;

	chunk.e = agk_find(growth.chunk_ends, state->n_expand, item);
	chunk.node = growth.nodes + growth.expand[chunk.e];
	chunk.begin = (item - (chunk.e > 0 ? growth.chunk_ends[chunk.e - 1] : 0)) * state->chunk;
	chunk.end = chunk.begin + state->chunk < chunk.node->n_rows ? chunk.begin + state->chunk
																: chunk.node->n_rows;
	return chunk;
}

/* Marks rows of the block that is there. */
__global__ void
agk_mark_left(AgkGrowth growth)
{
	for (int64_t item = blockIdx.x; item < growth.state->n_chunks; item += gridDim.x)
	{
		Chunk chunk = chunk_of(growth, item);
		const AgkNode *node = chunk.node;
		const uint32_t *ids = growth.ids[node->list] + node->begin;

		for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x)
			if (agk_is_here(growth.matrix, ids[i]))
				growth.marks[node->begin + i] = agk_goes_left(
					&node->split, agk_bin(growth.matrix, node->split.feature, ids[i]));
	}
}

/* Left rows of each chunk; and the new histograms are cleared on the way. */
__global__ void
agk_count_left(AgkGrowth growth)
{
	const AgkState *state = growth.state;
	int64_t step = (int64_t) gridDim.x * blockDim.x;
	int64_t n_cells = 2 * (int64_t) growth.matrix.n_cells;

	for (int64_t item = blockIdx.x; item < state->n_chunks; item += gridDim.x)
	{
		Chunk chunk = chunk_of(growth, item);
		const AgkNode *node = chunk.node;
		const uint32_t *ids = growth.ids[node->list] + node->begin;
		int n_left = 0;

		for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x)
			n_left += goes_left(growth, node, i, ids[i]);
		n_left = agk_block_sum(n_left);
		if (threadIdx.x == 0)
		{
			growth.chunk_left[item] = n_left;
			agk_add(growth.n_left + chunk.e, n_left);
		}
	}
	for (int e = 0; e < state->n_expand; e++)
		if (growth.child_slot[e] >= 0)
			for (int64_t c = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; c < n_cells;
				 c += step)
				growth.slots[growth.child_slot[e] * n_cells + c] = 0;
}

/* Writes one chunk. left_at, right_at: where its first rows of each side go. */
static __device__ void
write_chunk(const AgkGrowth &growth, const AgkNode *node, int64_t begin, int64_t end,
			int64_t left_at, int64_t right_at)
{
	const uint32_t *from_ids = growth.ids[node->list] + node->begin;
	const uint32_t *from_grads = growth.grads[node->list] + node->begin;
	uint32_t *ids = growth.ids[1 - node->list] + node->begin;
	uint32_t *grads = growth.grads[1 - node->list] + node->begin;

	for (int64_t tile = begin; tile < end; tile += blockDim.x)
	{
		int64_t i = tile + threadIdx.x;
		bool is_here = i < end, is_left = false;
		uint32_t id = 0, grad = 0;
		int n_left, before;

		if (is_here)
		{
			id = from_ids[i];
			grad = from_grads[i];
			is_left = goes_left(growth, node, i, id);
		}
		before = agk_block_scan(is_left ? 1 : 0, &n_left);
		if (is_here)
		{
			int64_t at = is_left ? left_at + before : right_at + (int64_t) threadIdx.x - before;

			ids[at] = id;
			grads[at] = grad;
		}
		left_at += n_left;
		right_at += (end - tile < blockDim.x ? end - tile : (int64_t) blockDim.x) - n_left;
	}
}

__global__ void
agk_move_rows(AgkGrowth growth)
{
	for (int64_t item = blockIdx.x; item < growth.state->n_chunks; item += gridDim.x)
	{
		Chunk chunk = chunk_of(growth, item);
		int64_t first = chunk.e > 0 ? growth.chunk_ends[chunk.e - 1] : 0;
		int64_t before = 0;

		for (int64_t c = first + threadIdx.x; c < item; c += blockDim.x)
			before += growth.chunk_left[c];
		before = agk_block_sum(before);
		write_chunk(growth, chunk.node, chunk.begin, chunk.end, before,
					growth.n_left[chunk.e] + chunk.begin - before);
	}
}

AgDeviceStatus
agk_partition(AgDevice *device, const AgkGrowth *growth)
{
	unsigned grid =
		agk_grid(device, growth->n_rows + growth->most_expand * AGK_CHUNK_LEAST, AGK_CHUNK_LEAST);

	if (growth->marks != nullptr)
	{
		AgkGrowth own = *growth;

		AGK_TRY(agk_each_block(device, &own.matrix, [&] {
			AGK_LAUNCH(agk_mark_left, grid, AGK_THREADS, 0, device->stream, own);
		}));
	}
	AGK_LAUNCH(agk_count_left, grid, AGK_THREADS, 0, device->stream, *growth);
	AGK_LAUNCH(agk_move_rows, grid, AGK_THREADS, 0, device->stream, *growth);
	return agk_launched(device, "moving rows");
}
