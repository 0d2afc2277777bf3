/*
 * simt.h - runs CUDA C kernels on the CPU, so that they are tested where there is no GPU.
 *
 * One fiber a CUDA thread that ever waits, one block at a time, all on the calling OS thread. A thread runs until it meets a barrier
 * or a warp collective; the lanes of a warp go on together once every live lane of the collective's mask has come to it. So
 * a missing barrier shows as a wrong result under some order of the lanes (simt::order), and a divergent one (threads that wait
 * at different lines, or for others that never come) fails the launch with cudaErrorLaunchFailure. Under ASan every access outside
 * an allocation is caught too, for device memory is the heap, and so is one outside of a block's shared memory.
 *
 * Compiled with -fsanitize=thread, each CUDA thread is one to the sanitizer too, and barriers, collectives and launches are all
 * that orders them: two threads of a block, or of different blocks of a launch, that touch the same cell without one of these
 * between, one of them writing, are reported as a data race. (Blocks have one shared memory here: a kernel of several that writes
 * to it before its first barrier is reported without need.)
 *
 * Not simulated: several blocks at once (a kernel that waits for another block never ends on a GPU either unless it is
 * cooperative), streams that overlap, memory models weaker than the CPU's, textures, tensor cores.
 *
 * What runs the threads is lib/simt.cc, which no sanitizer looks at.
 */
#ifndef AG_SIMT_H
#define AG_SIMT_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* One block runs at a time, so a static variable is the block's. */
#define __shared__ static

struct dim3
{
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#endif

namespace simt {
/* In which order the lanes of a warp and the warps of a block run. */
enum Order
{
	FORWARD,
	BACKWARD,
	SHUFFLED /* anew in every launch, from the number of launches so far; warps take turns */
};
extern Order order;
extern const char *fault; /* why the last launch failed */

enum State
{
	NEW,
	READY,
	AT_BLOCK_BARRIER,
	AT_COLLECTIVE,
	DONE
};

struct Thread
{
	dim3 index;
	unsigned lane, warp;
	State state;
	unsigned site;        /* the line of the barrier or collective it waits at */
	uint32_t mask;        /* of the collective it waits at */
	uint64_t given;       /* what it brought */
	const uint64_t *seen; /* what each lane of the mask brought */
};

extern Thread *current;
extern dim3 block_index, block_size, grid_size;
extern unsigned char *dynamic_shared;

constexpr size_t MAX_DYNAMIC_SHARED = 227 << 10;
constexpr size_t MAX_UNASKED_SHARED = 48 << 10; /* without cudaFuncSetAttribute */

/* Lets others run until what the thread waits for has come. */
void wait_as(State state, unsigned site);

/* Runs a grid to its end; false, with `fault` set, when it couldn't. */
bool launch(dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(const void *arg),
			const void *arg);

/* Before a program under the thread sanitizer ends: what is torn down then is no race. Returns 0. */
int forget_threads();

/* What orders threads, for the sanitizer: all that passed `before` is seen by what passes `after`. */
#if defined(__SANITIZE_THREAD__)
/* One a block and kind of meeting, so that blocks don't order each other. */
uint64_t *token(unsigned which);

inline void
before(uint64_t *at)
{
	__tsan_release(at);
}

inline void
after(uint64_t *at)
{
	__tsan_acquire(at);
}
#else
inline uint64_t *
token(unsigned)
{
	return nullptr;
}

inline void
before(uint64_t *)
{
}

inline void
after(uint64_t *)
{
}
#endif

/* Brings a value to the warp's collective and gives the values of all lanes in the mask. */
inline const uint64_t *
collective(uint32_t mask, uint64_t value, unsigned site)
{
	Thread *self = current;
	uint64_t *meeting = token(1 + self->warp * 32 + (unsigned) __builtin_ctz(mask));

	self->mask = mask;
	self->given = value;
	before(meeting);
	wait_as(AT_COLLECTIVE, site);
	after(meeting);
	return self->seen;
}

template <class T>
inline uint64_t
to_bits(T value)
{
	static_assert(sizeof(T) <= 8, "a warp collective moves at most 8 bytes");
	uint64_t bits = 0;

	memcpy(&bits, &value, sizeof(value));
	return bits;
}

template <class T>
inline T
from_bits(uint64_t bits)
{
	T value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}
} // namespace simt

#define threadIdx (simt::current->index)
#define blockIdx (simt::block_index)
#define blockDim (simt::block_size)
#define gridDim (simt::grid_size)
inline constexpr int warpSize = 32;

/* Where a collective stands: all who meet there must have come to the same one. */
#define AG_SITE unsigned site = __builtin_LINE()

inline void
__syncthreads(AG_SITE)
{
	uint64_t *meeting = simt::token(0);

	simt::before(meeting);
	simt::wait_as(simt::AT_BLOCK_BARRIER, site);
	simt::after(meeting);
}

inline void
__syncwarp(unsigned mask = ~0u, AG_SITE)
{
	simt::collective(mask, 0, site);
}

inline void
__threadfence()
{
}

template <class T>
inline T
__shfl_sync(unsigned mask, T value, int lane, int width = 32, AG_SITE)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value), site);

	return simt::from_bits<T>(seen[(self & ~(width - 1u)) | (lane & (width - 1u))]);
}

template <class T>
inline T
__shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, AG_SITE)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value), site);

	return simt::from_bits<T>(seen[(self & (width - 1u)) >= delta ? self - delta : self]);
}

template <class T>
inline T
__shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, AG_SITE)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value), site);

	return simt::from_bits<T>(
		seen[(self & (width - 1u)) + delta < (unsigned) width ? self + delta : self]);
}

template <class T>
inline T
__shfl_xor_sync(unsigned mask, T value, int lanes, AG_SITE)
{
	unsigned self = simt::current->lane;

	return simt::from_bits<T>(simt::collective(mask, simt::to_bits(value), site)[self ^ lanes]);
}

inline unsigned
__ballot_sync(unsigned mask, int predicate, AG_SITE)
{
	const uint64_t *seen = simt::collective(mask, predicate != 0, site);
	unsigned ballot = 0;

	for (unsigned lane = 0; lane < 32; lane++)
		ballot |= (unsigned) seen[lane] << lane;
	return ballot;
}

inline int
__any_sync(unsigned mask, int predicate, AG_SITE)
{
	return __ballot_sync(mask, predicate, site) != 0;
}

inline int
__popc(unsigned bits)
{
	return __builtin_popcount(bits);
}

inline unsigned
__float_as_uint(float value)
{
	unsigned bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

inline float
__uint_as_float(unsigned bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

inline int
__clz(int bits)
{
	return bits ? __builtin_clz((unsigned) bits) : 32;
}

/* One OS thread runs everything, so these are atomic anyway; to the sanitizer they must look so. */
template <class T>
inline T
atomicAdd(T *target, T value)
{
	return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
}

template <class T>
inline T
atomicMax(T *target, T value)
{
	T old = __atomic_load_n(target, __ATOMIC_RELAXED);

	if (value > old)
		__atomic_store_n(target, value, __ATOMIC_RELAXED);
	return old;
}

template <class T>
inline T
atomicMin(T *target, T value)
{
	T old = __atomic_load_n(target, __ATOMIC_RELAXED);

	if (value < old)
		__atomic_store_n(target, value, __ATOMIC_RELAXED);
	return old;
}

template <class T>
inline T
atomicCAS(T *target, T expected, T value)
{
	__atomic_compare_exchange_n(target, &expected, value, false, __ATOMIC_RELAXED,
								__ATOMIC_RELAXED);
	return expected;
}

#define AGK_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
	simt::launch_and_note((const void *) (kernel), (grid), (block), (shared_bytes),                \
						  [&] { kernel(__VA_ARGS__); })
#define AGK_DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(simt::dynamic_shared)

#endif
