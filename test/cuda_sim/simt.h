/*
 * simt.h - runs CUDA C kernels on the CPU, so that they are tested where there is no GPU.
 *
 * One fiber a CUDA thread, one block at a time, all on the calling OS thread. A fiber runs until it meets a barrier
 * or a warp collective; the lanes of a warp go on together once every live lane of the collective's mask has come to it. So
 * a missing barrier shows as a wrong result under some order of the lanes (simt::order), and a divergent one as a deadlock,
 * which fails the launch with cudaErrorLaunchFailure. Under ASan every access outside an allocation is caught too, for device
 * memory is the heap.
 *
 * Compiled with -fsanitize=thread, each CUDA thread is one to the sanitizer too, and barriers, collectives and launches are all
 * that orders them: two threads of a block, or of different blocks of a launch, that touch the same cell without one of these
 * between, one of them writing, are reported as a data race. (Blocks have one shared memory here: a kernel of several that writes
 * to it before its first barrier is reported without need.)
 *
 * Not simulated: several blocks at once (a kernel that waits for another block never ends on a GPU either unless it is
 * cooperative), streams that overlap, memory models weaker than the CPU's, textures, tensor cores.
 */
#ifndef AG_SIMT_H
#define AG_SIMT_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <functional>
#include <memory>
#include <vector>

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
#define AG_SIMT_RACES 1
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#else
#define AG_SIMT_RACES 0
#endif

namespace simt {
/* In which order the lanes of a warp and the warps of a block run. */
enum Order
{
	FORWARD,
	BACKWARD,
	SHUFFLED /* anew in every launch, from the number of launches so far */
};
inline Order order = FORWARD;
inline const char *fault = nullptr; /* why the last launch failed */
inline unsigned n_launches = 0;

enum State
{
	READY,
	AT_BLOCK_BARRIER,
	AT_COLLECTIVE,
	DONE
};

/* Where a thread of execution goes on. */
#if defined(__x86_64__)
typedef void *Context;

/*
 * Saves what a callee must keep on this stack, and goes on on another. swapcontext would do the same with two system calls, which
 * is ten times slower.
 */
static __attribute__((naked, noinline, no_sanitize("thread"))) void
switch_to(Context *, Context)
{
	asm volatile("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
				 "movq %rsp, (%rdi); movq %rsi, %rsp;"
				 "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
#else
typedef ucontext_t Context;

static inline void
switch_to(Context *from, const Context &to)
{
	swapcontext(from, &to);
}
#endif

constexpr size_t STACK_BYTES = 128 << 10;

struct Thread
{
	Context context;
	char *stack;
	State state;
	dim3 index;
	unsigned lane, warp;
	uint32_t mask;        /* of the collective it waits at */
	uint64_t given;       /* what it brought */
	const uint64_t *seen; /* what each lane of the mask brought */

#if AG_SIMT_RACES
	void *fiber = __tsan_create_fiber(0);
#endif

	Thread() : stack(static_cast<char *>(malloc(STACK_BYTES)))
	{
	}
	~Thread()
	{
		free(stack);
#if AG_SIMT_RACES
		__tsan_destroy_fiber(fiber);
#endif
	}
	Thread(const Thread &) = delete;
};

/* What groups of a warp's lanes brought: by the group's first lane, two in turn, for some may still read the last one. */
struct Warp
{
	uint64_t given[32][2][32];
	unsigned turn[32];
};

inline std::vector<std::unique_ptr<Thread>> threads; /* reused by every launch */
inline unsigned n_threads;
inline Thread *current;
inline Context scheduler;
inline Warp warps[32];
inline dim3 block_index, block_size, grid_size;
inline std::vector<unsigned char> dynamic_shared;
inline const std::function<void()> *body;

constexpr size_t MAX_DYNAMIC_SHARED = 227 << 10;

/* What orders threads, for the sanitizer: all that passed `before` is seen by what passes `after`. */
#if AG_SIMT_RACES
inline void *scheduler_fiber;
inline uint64_t
	tokens[1 << 16]; /* one a block and kind of meeting, so that blocks don't order each other */
inline unsigned n_blocks_run;
inline uint64_t start_token, end_token; /* of a launch */

inline uint64_t *
token(unsigned which)
{
	return &tokens[(n_blocks_run * 1061 + which) & 0xffff];
}

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

inline void
go_to_scheduler()
{
	__tsan_switch_to_fiber(scheduler_fiber, 1);
	switch_to(&current->context, scheduler);
}
#else
inline uint64_t start_token, end_token; /* of a launch */

inline uint64_t *
token(unsigned)
{
	return &start_token;
}

inline void
before(uint64_t *)
{
}

inline void
after(uint64_t *)
{
}

inline void
go_to_scheduler()
{
	switch_to(&current->context, scheduler);
}
#endif

inline void
thread_main()
{
	after(&start_token);
	(*body)();
	before(&end_token);
	current->state = DONE;
	go_to_scheduler();
}

inline void
wait_as(State state)
{
	current->state = state;
	go_to_scheduler();
}

/* Brings a value to the warp's collective and gives the values of all lanes in the mask. */
inline const uint64_t *
collective(uint32_t mask, uint64_t value)
{
	uint64_t *meeting = token(1 + current->warp * 32 + (unsigned) __builtin_ctz(mask));

	current->mask = mask;
	current->given = value;
	before(meeting);
	wait_as(AT_COLLECTIVE);
	after(meeting);
	return current->seen;
}

inline uint32_t
live_lanes(unsigned warp)
{
	uint32_t live = 0;

	for (unsigned i = warp * 32; i < n_threads && i < warp * 32 + 32; i++)
		if (threads[i]->state != DONE)
			live |= 1u << threads[i]->lane;
	return live;
}

/* Lets go every group of lanes that has come together. */
inline bool
release_collectives(unsigned warp)
{
	uint32_t live = live_lanes(warp);
	bool released = false;

	for (unsigned first = 0; first < 32; first++)
	{
		Thread *leader = live >> first & 1 ? threads[warp * 32 + first].get() : nullptr;

		if (!leader || leader->state != AT_COLLECTIVE)
			continue;
		uint32_t mask = leader->mask, group = mask & live;
		bool complete = mask >> first & 1;

		for (unsigned lane = 0; lane < 32; lane++)
			if (group >> lane & 1)
			{
				Thread *thread = threads[warp * 32 + lane].get();

				complete = complete && thread->state == AT_COLLECTIVE && thread->mask == mask;
			}
		if (!complete)
			continue;
		uint64_t *given = warps[warp].given[first][warps[warp].turn[first]++ & 1];

		memset(given, 0, sizeof(warps[warp].given[first][0]));
		for (unsigned lane = 0; lane < 32; lane++)
			if (group >> lane & 1)
				given[lane] = threads[warp * 32 + lane]->given;
		for (unsigned lane = 0; lane < 32; lane++)
			if (group >> lane & 1)
			{
				threads[warp * 32 + lane]->seen = given;
				threads[warp * 32 + lane]->state = READY;
			}
		released = true;
	}
	return released;
}

/* The barrier opens when no live thread is elsewhere; threads that have returned count as there. */
inline bool
release_block_barrier()
{
	bool any = false;

	for (unsigned i = 0; i < n_threads; i++)
	{
		if (threads[i]->state == DONE)
			continue;
		if (threads[i]->state != AT_BLOCK_BARRIER)
			return false;
		any = true;
	}
	for (unsigned i = 0; i < n_threads; i++)
		if (threads[i]->state == AT_BLOCK_BARRIER)
			threads[i]->state = READY;
	return any;
}

inline std::vector<unsigned>
run_order()
{
	std::vector<unsigned> sequence(n_threads);
	unsigned state = n_launches * 2654435761u + 1;

	for (unsigned i = 0; i < n_threads; i++)
		sequence[i] = order == BACKWARD ? n_threads - 1 - i : i;
	for (unsigned i = n_threads; order == SHUFFLED && i > 1; i--)
	{
		state = state * 1664525u + 1013904223u;
		std::swap(sequence[i - 1], sequence[(state >> 8) % i]);
	}
	return sequence;
}

inline void
start_thread(unsigned i)
{
	Thread *thread = threads[i].get();

	thread->state = READY;
	thread->index =
		dim3(i % block_size.x, i / block_size.x % block_size.y, i / (block_size.x * block_size.y));
	thread->lane = i % 32;
	thread->warp = i / 32;
#if defined(__x86_64__)
	/* as switch_to leaves a stack: six registers, and where to go; stacks begin at different cache lines */
	void **top = reinterpret_cast<void **>(thread->stack + STACK_BYTES - 64 - (i * 832 & 0x3fc0));

	*--top = nullptr;
	*--top = reinterpret_cast<void *>(thread_main);
	for (int r = 0; r < 6; r++)
		*--top = nullptr;
	thread->context = top;
#else
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = STACK_BYTES;
	thread->context.uc_link = &scheduler;
	makecontext(&thread->context, thread_main, 0);
#endif
}

inline bool
run_block(const std::vector<unsigned> &sequence)
{
	for (unsigned i = 0; i < n_threads; i++)
		start_thread(i);
	for (;;)
	{
		bool progress = false;
		unsigned n_done = 0;

		for (unsigned i : sequence)
			if (threads[i]->state == READY)
			{
				current = threads[i].get();
#if AG_SIMT_RACES
				__tsan_switch_to_fiber(current->fiber, 1);
#endif
				switch_to(&scheduler, current->context);
				progress = true;
			}
		for (unsigned warp = 0; warp * 32 < n_threads; warp++)
			progress |= release_collectives(warp);
		progress |= release_block_barrier();
		for (unsigned i = 0; i < n_threads; i++)
			n_done += threads[i]->state == DONE;
		if (n_done == n_threads)
			return true;
		if (!progress)
		{
			threads.clear(); /* their stacks are in no state to be used again */
			fault = "deadlock: threads wait at different barriers";
			return false;
		}
	}
}

inline bool
run_grid(dim3 grid, size_t shared_bytes, const std::vector<unsigned> &sequence)
{
	for (unsigned z = 0; z < grid.z; z++)
		for (unsigned y = 0; y < grid.y; y++)
			for (unsigned x = 0; x < grid.x; x++)
			{
				block_index = dim3(x, y, z);
#if AG_SIMT_RACES
				n_blocks_run++;
#endif
				dynamic_shared.assign(shared_bytes, 0xA5); /* CUDA doesn't clear it */
				if (!run_block(sequence))
					return false;
			}
	return true;
}

/* Before the program ends: what is torn down then is no race. Returns 0. */
inline int
forget_threads()
{
#if AG_SIMT_RACES
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
	after(&end_token);
	threads.clear();
#if AG_SIMT_RACES
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
	return 0;
}

/* Runs a grid to its end; false, with `fault` set, when it couldn't. */
inline bool
launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel)
{
	fault = nullptr;
	n_launches++;
	n_threads = block.x * block.y * block.z;
	if (n_threads == 0 || n_threads > 1024 || shared_bytes > MAX_DYNAMIC_SHARED)
	{
		fault = "a block of no or over 1024 threads, or over 227 KB of shared memory";
		return false;
	}
	while (threads.size() < n_threads)
		threads.push_back(std::make_unique<Thread>());
	grid_size = grid;
	block_size = block;
	body = &kernel;
	std::vector<unsigned> sequence = run_order();

	before(&start_token);
#if AG_SIMT_RACES
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__); /* the scheduler is no part of the kernel */
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	scheduler_fiber = __tsan_get_current_fiber();
#endif
	bool is_done = run_grid(grid, shared_bytes, sequence);
#if AG_SIMT_RACES
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
	after(&end_token);
	return is_done;
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

inline void
__syncthreads()
{
	uint64_t *meeting = simt::token(0);

	simt::before(meeting);
	simt::wait_as(simt::AT_BLOCK_BARRIER);
	simt::after(meeting);
}

inline void
__syncwarp(unsigned mask = ~0u)
{
	simt::collective(mask, 0);
}

inline void
__threadfence()
{
}

template <class T>
inline T
__shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value));

	return simt::from_bits<T>(seen[(self & ~(width - 1u)) | (lane & (width - 1u))]);
}

template <class T>
inline T
__shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value));

	return simt::from_bits<T>(seen[(self & (width - 1u)) >= delta ? self - delta : self]);
}

template <class T>
inline T
__shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
	unsigned self = simt::current->lane;
	const uint64_t *seen = simt::collective(mask, simt::to_bits(value));

	return simt::from_bits<T>(
		seen[(self & (width - 1u)) + delta < (unsigned) width ? self + delta : self]);
}

template <class T>
inline T
__shfl_xor_sync(unsigned mask, T value, int lanes)
{
	unsigned self = simt::current->lane;

	return simt::from_bits<T>(simt::collective(mask, simt::to_bits(value))[self ^ lanes]);
}

inline unsigned
__ballot_sync(unsigned mask, int predicate)
{
	const uint64_t *seen = simt::collective(mask, predicate != 0);
	unsigned ballot = 0;

	for (unsigned lane = 0; lane < 32; lane++)
		ballot |= (unsigned) seen[lane] << lane;
	return ballot;
}

inline int
__any_sync(unsigned mask, int predicate)
{
	return __ballot_sync(mask, predicate) != 0;
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
	simt::launch_and_note((grid), (block), (shared_bytes), [&] { kernel(__VA_ARGS__); })
#define AGK_DYNAMIC_SHARED(type, name)                                                             \
	type *name = reinterpret_cast<type *>(simt::dynamic_shared.data())

#endif
