/*
 * tensor.cuh - a warp's product of tiles of bfloat16 on the tensor cores, and a twin of it in plain arithmetic.
 *
 * A tile is 16 x 16. Sums are of single precision. The twin serves the simulator, which has no tensor cores, and code for GPUs
 * before compute capability 8.0, so that nothing computes nothing there; its sums run in the order of the inner index, those of
 * tensor cores in one that isn't told.
 */
#ifndef AGK_TENSOR_CUH
#define AGK_TENSOR_CUH

#include <stdint.h>

#include "engine/model/net_maths.h"
#include "kernels/launch.cuh"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#endif

#define AGK_TENSOR 16

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

/* Sums of a tile, spread over the warp. */
struct AgkTile
{
	nvcuda::wmma::fragment<nvcuda::wmma::accumulator, AGK_TENSOR, AGK_TENSOR, AGK_TENSOR, float>
		sums;
};

static __device__ inline void
agk_tile_clear(AgkTile *tile)
{
	nvcuda::wmma::fill_fragment(tile->sums, 0.0f);
}

/* Adds a b, both [16][stride] of bfloat16 in shared memory, 32-byte aligned, strides multiples of 8. The whole warp comes. */
static __device__ inline void
agk_tile_add(AgkTile *tile, const uint16_t *a, int a_stride, const uint16_t *b, int b_stride)
{
	namespace wmma = nvcuda::wmma;
	wmma::fragment<wmma::matrix_a, AGK_TENSOR, AGK_TENSOR, AGK_TENSOR, __nv_bfloat16,
				   wmma::row_major>
		left;
	wmma::fragment<wmma::matrix_b, AGK_TENSOR, AGK_TENSOR, AGK_TENSOR, __nv_bfloat16,
				   wmma::row_major>
		right;

	wmma::load_matrix_sync(left, reinterpret_cast<const __nv_bfloat16 *>(a), a_stride);
	wmma::load_matrix_sync(right, reinterpret_cast<const __nv_bfloat16 *>(b), b_stride);
	wmma::mma_sync(tile->sums, left, right, tile->sums);
}

/* To c[16][stride] in shared memory; strides are multiples of 4. */
static __device__ inline void
agk_tile_store(const AgkTile *tile, float *c, int c_stride)
{
	nvcuda::wmma::store_matrix_sync(c, tile->sums, c_stride, nvcuda::wmma::mem_row_major);
}

#else

struct AgkTile
{
	float sums[AGK_TENSOR * AGK_TENSOR / 32]; /* a lane has half a row */
};

static __device__ inline void
agk_tile_clear(AgkTile *tile)
{
	for (int i = 0; i < AGK_TENSOR / 2; i++)
		tile->sums[i] = 0.0f;
}

static __device__ inline void
agk_tile_add(AgkTile *tile, const uint16_t *a, int a_stride, const uint16_t *b, int b_stride)
{
	int row = (int) (threadIdx.x % 32) / 2, column = (int) (threadIdx.x % 2) * (AGK_TENSOR / 2);

	for (int k = 0; k < AGK_TENSOR; k++)
		for (int i = 0; i < AGK_TENSOR / 2; i++)
			tile->sums[i] = fmaf(ag_net_from_bfloat(a[row * a_stride + k]),
								 ag_net_from_bfloat(b[k * b_stride + column + i]), tile->sums[i]);
	__syncwarp();
}

static __device__ inline void
agk_tile_store(const AgkTile *tile, float *c, int c_stride)
{
	int row = (int) (threadIdx.x % 32) / 2, column = (int) (threadIdx.x % 2) * (AGK_TENSOR / 2);

	for (int i = 0; i < AGK_TENSOR / 2; i++)
		c[row * c_stride + column + i] = tile->sums[i];
	__syncwarp();
}

#endif

#endif
