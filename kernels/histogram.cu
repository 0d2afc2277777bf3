/*
 * histogram.cu - sums of quantised gradients by feature and bin.
 *
 * A block adds a chunk of rows into tables in its shared memory, two 32 bit atomics a row and feature, then what isn't zero
 * to the node's table of 64 bit sums. Integers: the order doesn't matter. Features that don't fit into shared memory together
 * are taken slab by slab (blockIdx.y). A thread reads four features' bins in one word.
 */
#include "kernels/children.cuh"

static __device__ inline void
add_word(int32_t *g, uint32_t *h, const int32_t *offset, int first, int n, uint32_t word,
		 int32_t grad_g, uint32_t grad_h)
{
	for (int k = 0; k < n; k++)
	{
		int turn = (k + static_cast<int>(threadIdx.x)) & 3; /* neighbours at different features */
		int cell;

		if (n < 4)
			turn = k;
		cell = offset[first + turn] - offset[0] + static_cast<int>(word >> 8 * turn & 255u);
		atomicAdd(g + cell, grad_g);
		atomicAdd(h + cell, grad_h);
	}
}

/* Rows [begin, end) of a list into the slab's tables. */
static __device__ void
add_rows(const AgkMatrix &matrix, int first, int last, const uint32_t *ids, const uint32_t *grads,
		 int64_t begin, int64_t end, int32_t *g, uint32_t *h)
{
	unsigned n_words = static_cast<unsigned>(last - first + 3) / 4;
	unsigned n_items = static_cast<unsigned>(end - begin) * n_words;

	for (unsigned item = threadIdx.x; item < n_items; item += blockDim.x)
	{
		int64_t i = begin + item / n_words;
		int w = static_cast<int>(item % n_words);
		uint32_t packed = grads[i], word;
		int n = last - first - 4 * w < 4 ? last - first - 4 * w : 4;
		int64_t id = ids[i];

		if (!agk_is_here(matrix, id))
			continue;
		word = *reinterpret_cast<const uint32_t *>(
			matrix.rows + (id - matrix.first_row) * matrix.row_stride + first + 4 * w);
		add_word(g, h, matrix.offset + first, 4 * w, n, word, (int32_t) packed >> 16,
				 packed & 0xffffu);
	}
}

/* The smaller child's histogram of every node of the step. */
__global__ void
agk_build_histograms(AgkGrowth growth)
{
	AGK_DYNAMIC_SHARED(int32_t, tables);
	const AgkState *state = growth.state;
	const AgkMatrix &matrix = growth.matrix;
	int first = matrix.slab[blockIdx.y], last = matrix.slab[blockIdx.y + 1];
	int from = matrix.offset[first], n = matrix.offset[last] - from;
	uint32_t *h = reinterpret_cast<uint32_t *>(tables + n);

	for (int64_t item = blockIdx.x; item < state->n_chunks; item += gridDim.x)
	{
		int e = agk_find(growth.chunk_ends, state->n_expand, item);
		int64_t begin = (item - (e > 0 ? growth.chunk_ends[e - 1] : 0)) * state->chunk, end;
		bool small_is_right = agk_small_is_right(growth, e);
		AgkChild child = agk_child(growth, e, small_is_right);
		int64_t *to = growth.slots + (int64_t) growth.child_slot[e] * 2 * matrix.n_cells + from;

		if (begin >= child.n_rows || growth.child_slot[e] < 0 ||
			(!child.can_split && !agk_child(growth, e, !small_is_right).can_split))
			continue;
		end = begin + state->chunk < child.n_rows ? begin + state->chunk : child.n_rows;
		__syncthreads();
		for (int c = threadIdx.x; c < n; c += blockDim.x)
		{
			tables[c] = 0;
			h[c] = 0;
		}
		__syncthreads();
		add_rows(matrix, first, last, growth.ids[child.list] + child.begin,
				 growth.grads[child.list] + child.begin, begin, end, tables, h);
		__syncthreads();
		for (int c = threadIdx.x; c < n; c += blockDim.x)
		{
			if (tables[c] != 0)
				agk_add(to + c, tables[c]);
			if (h[c] != 0)
				agk_add(to + matrix.n_cells + c, h[c]);
		}
	}
}

/* Blocks may take more shared memory than every device has: that must be asked for. */
AgDeviceStatus
agk_histograms_prepare(AgDevice *device)
{
	cudaError_t error =
		cudaFuncSetAttribute(agk_build_histograms, cudaFuncAttributeMaxDynamicSharedMemorySize,
							 (int) device->shared_bytes);

	return error == cudaSuccess ? AG_DEVICE_OK
								: agk_failed(device, error, "asking for shared memory");
}

AgDeviceStatus
agk_histograms(AgDevice *device, const AgkGrowth *growth)
{
	int64_t least = growth->is_root ? growth->n_rows : growth->n_rows / 2;
	unsigned grid =
		agk_grid(device, least + growth->most_expand * AGK_CHUNK_LEAST, AGK_CHUNK_LEAST);
	size_t shared_bytes = (size_t) growth->matrix.slab_cells * 2 * sizeof(int32_t);
	AgkGrowth own = *growth;

	AGK_TRY(agk_each_block(device, &own.matrix, [&] {
		AGK_LAUNCH(agk_build_histograms, dim3(grid, (unsigned) own.matrix.n_slabs), AGK_THREADS,
				   shared_bytes, device->stream, own);
	}));
	return agk_launched(device, "building histograms");
}
