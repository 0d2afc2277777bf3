/*
 * launch.cuh - the two things of CUDA C that an ordinary C++ compiler can't read, as macros, so that the same sources
 * compile for the simulator in test/cuda_sim (which is found first as <cuda_runtime.h> there).
 */
#ifndef AGK_LAUNCH_CUH
#define AGK_LAUNCH_CUH

#include <cuda_runtime.h>

#ifdef __CUDACC__
/* kernel<<<grid, block, shared_bytes, stream>>>(...) */
#define AGK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
	kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
/* Dynamic shared memory of the block, as an array of `type` called `name`. */
#define AGK_DYNAMIC_SHARED(type, name)                                                             \
	extern __shared__ __align__(16) unsigned char agk_dynamic_shared_[];                           \
	type *name = reinterpret_cast<type *>(agk_dynamic_shared_)
#endif

#endif
