/*
 * net_half.cu - the products of a net's step with factors of bfloat16, on tensor cores.
 *
 * Factors that aren't of bfloat16 already are rounded on their way to shared memory, where a block's eight warps have a tile of 64 x 64
 * of the result in work, eight 16 x 16 tiles by two. bfloat16 has the range of single precision, so that derivatives
 * don't vanish and no scaling of the loss is needed.
 */
#include "kernels/net.cuh"
#include "kernels/tensor.cuh"

#define SIDE 64
#define DEPTH 32
#define LEFT_STRIDE (DEPTH + 8) /* rows begin at other banks */
#define RIGHT_STRIDE (SIDE + 8)
#define SUM_STRIDE (SIDE + 4)
#define TILES_A_WARP (SIDE * SIDE / (AGK_TENSOR * AGK_TENSOR) / AGK_WARPS)

/* What a block works on. */
struct Block
{
	int64_t a, b, c, d; /* places; d < 0: 0 */
	int64_t row;
	int column;
};

static __device__ Block
block_of(const AgkNet &net, const AgDeviceNetOp &op)
{
	int across = (op.n_columns + SIDE - 1) / SIDE;
	int64_t lot = blockIdx.y;

	return {op.a + lot * op.a_lot,
			op.b + lot * op.b_lot,
			op.c + lot * op.c_lot,
			op.d >= 0 ? op.d + lot * op.d_lot : -1,
			(int64_t) (blockIdx.x / across) * SIDE,
			(int) (blockIdx.x % across) * SIDE};
}

static __device__ inline uint16_t
factor(const AgkNet &net, int64_t at)
{
	return at < AG_NET_HALVES ? ag_net_bfloat(net.room[at]) : net.halves[at - AG_NET_HALVES];
}

/* Inner indices [from, from + DEPTH) of both factors; 0 beyond their ends. Threads side by side read numbers side by side. */
static __device__ void
load(const AgkNet &net, const AgDeviceNetOp &op, const Block &block, int from, uint16_t *left,
	 uint16_t *right)
{
	bool by_inner = op.a_inner == 1;

	for (int i = (int) threadIdx.x; i < SIDE * DEPTH; i += AGK_THREADS)
	{
		int r = by_inner ? i / DEPTH : i % SIDE, k = by_inner ? i % DEPTH : i / SIDE;
		int64_t row = block.row + r;
		bool is_in = row < op.n_rows && from + k < op.n_inner;

		left[r * LEFT_STRIDE + k] =
			is_in ? factor(net, block.a + row * op.a_stride + (from + k) * op.a_inner) : 0;
	}
	for (int i = (int) threadIdx.x; i < DEPTH * SIDE; i += AGK_THREADS)
	{
		int k = i / SIDE, j = i % SIDE;
		bool is_in = block.column + j < op.n_columns && from + k < op.n_inner;

		right[k * RIGHT_STRIDE + j] =
			is_in ? factor(net, block.b + (from + k) * op.b_stride + block.column + j) : 0;
	}
}

__global__ void
agk_net_product_half(AgkNet net, AgDeviceNetOp op)
{
	__shared__ __align__(32) uint16_t left[SIDE * LEFT_STRIDE];
	__shared__ __align__(32) uint16_t right[DEPTH * RIGHT_STRIDE];
	__shared__ __align__(32) float sums[SIDE * SUM_STRIDE];
	Block block = block_of(net, op);
	AgkTile tiles[TILES_A_WARP];
	int warp = (int) threadIdx.x / 32, row = warp / 2 * AGK_TENSOR;
	int column = warp % 2 * TILES_A_WARP * AGK_TENSOR;

	for (int t = 0; t < TILES_A_WARP; t++)
		agk_tile_clear(&tiles[t]);
	for (int from = 0; from < op.n_inner; from += DEPTH)
	{
		__syncthreads();
		load(net, op, block, from, left, right);
		__syncthreads();
		for (int k = 0; k < DEPTH; k += AGK_TENSOR)
			for (int t = 0; t < TILES_A_WARP; t++)
				agk_tile_add(&tiles[t], left + row * LEFT_STRIDE + k, LEFT_STRIDE,
							 right + k * RIGHT_STRIDE + column + t * AGK_TENSOR, RIGHT_STRIDE);
	}
	for (int t = 0; t < TILES_A_WARP; t++)
		agk_tile_store(&tiles[t], sums + row * SUM_STRIDE + column + t * AGK_TENSOR, SUM_STRIDE);
	__syncthreads();
	for (int i = (int) threadIdx.x; i < SIDE * SIDE; i += AGK_THREADS)
	{
		int64_t r = block.row + i / SIDE;
		int j = block.column + i % SIDE;

		if (r < op.n_rows && j < op.n_columns)
			agk_net_put(net, block.c + r * op.c_stride + j,
						(block.d >= 0 ? net.room[block.d + j] : 0.0f) +
							sums[i / SIDE * SUM_STRIDE + i % SIDE]);
	}
}

void
agk_net_launch_half(AgDevice *device, const AgkNet *net, const AgDeviceNetOp *op)
{
	int64_t tiles =
		(int64_t) ((op->n_rows + SIDE - 1) / SIDE) * ((op->n_columns + SIDE - 1) / SIDE);

	AGK_LAUNCH(agk_net_product_half, dim3((unsigned) tiles, (unsigned) op->n_lots), AGK_THREADS, 0,
			   device->stream, *net, *op);
}
