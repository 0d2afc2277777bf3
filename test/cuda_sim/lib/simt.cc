/*
 * simt.cc - the simulator's threads: which one runs when, and what lets those go on that wait.
 *
 * Who waits looks for the next one to run itself and goes there at once. A thread that begins where another one has ended runs on the
 * stack of that one: a kernel without barriers needs one stack and no switch. No sanitizer looks at this file, for it is most
 * of what a simulated kernel takes.
 */
#include "simt.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#ifdef __SANITIZE_THREAD__
/* Each CUDA thread is one to the thread sanitizer, and has a stack of its own. */
constexpr bool HAS_RACES = true;
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
}
#else
constexpr bool HAS_RACES = false;
#endif

extern "C" {
/* Where there is an address sanitizer. */
void __asan_poison_memory_region(void const volatile *at, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *at, size_t size) __attribute__((weak));
}

namespace simt {
Order order = FORWARD;
const char *fault;
Thread *current;
dim3 block_index, block_size, grid_size;
unsigned char *dynamic_shared;

/* ---- stacks ---- */

/* Where a thread of execution goes on. */
#if defined(__x86_64__)
typedef void *Context;

/*
 * Saves what a callee must keep on this stack, and goes on on another. swapcontext would do the same with two system calls, which
 * is ten times slower.
 */
__attribute__((naked, noinline)) static void
switch_to(Context *, const Context *)
{
	asm volatile("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
				 "movq %rsp, (%rdi); movq (%rsi), %rsp;"
				 "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
#else
typedef ucontext_t Context;

static void
switch_to(Context *from, const Context *to)
{
	swapcontext(from, to);
}
#endif

constexpr size_t STACK_BYTES = 128 << 10;
constexpr unsigned MOST_THREADS = 1024;

struct Fiber
{
	Context context;
	char *stack;
#ifdef __SANITIZE_THREAD__
	void *fiber;
#endif
};

static Thread threads[MOST_THREADS];
static Fiber
	fibers[MOST_THREADS]; /* of the thread of that number, and of those that ran after it */
static Context outside;

static void thread_main();

/* The context of thread i begins on its own stack. */
static void
make_context(unsigned i)
{
	Fiber *fiber = fibers + i;

	if (fiber->stack == nullptr)
	{
		fiber->stack = static_cast<char *>(malloc(STACK_BYTES));
		if (fiber->stack == nullptr)
			abort();
#ifdef __SANITIZE_THREAD__
		fiber->fiber = __tsan_create_fiber(0);
#endif
	}
#if defined(__x86_64__)
	/* as switch_to leaves a stack: six registers, and where to go; stacks begin at different cache lines */
	void **top = reinterpret_cast<void **>(fiber->stack + STACK_BYTES - 64 - (i * 832 & 0x3fc0));

	*--top = nullptr;
	*--top = reinterpret_cast<void *>(thread_main);
	for (int r = 0; r < 6; r++)
		*--top = nullptr;
	fiber->context = top;
#else
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = fiber->stack;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	fiber->context.uc_link = &outside;
	makecontext(&fiber->context, thread_main, 0);
#endif
}

static void
drop_stacks()
{
	for (Fiber &fiber : fibers)
	{
#ifdef __SANITIZE_THREAD__
		if (fiber.stack != nullptr)
			__tsan_destroy_fiber(fiber.fiber);
#endif
		free(fiber.stack);
		fiber = Fiber();
	}
}

/* ---- what orders threads, for the thread sanitizer ---- */

#ifdef __SANITIZE_THREAD__
static void *outside_fiber;
static uint64_t tokens[1 << 16];
static unsigned n_blocks_run;
static uint64_t start_token, end_token; /* of a launch */

uint64_t *
token(unsigned which)
{
	return &tokens[(n_blocks_run * 1061 + which) & 0xffff];
}

#define AG_RELEASE(at) __tsan_release(at)
#define AG_ACQUIRE(at) __tsan_acquire(at)
#else
#define AG_RELEASE(at)
#define AG_ACQUIRE(at)
#endif

/* ---- who meets whom ---- */

/* What groups of a warp's lanes brought: by the group's first lane, two in turn, for some may still read the last one. */
struct Warp
{
	uint64_t given[32][2][32];
	unsigned turn[32];
	uint32_t live, waiting; /* lanes; waiting: at a collective */
	uint32_t ready;         /* places of lanes in their order */
	unsigned n_lanes;
	uint8_t lanes[32], place[32]; /* in their order, and of each its place there */
};

static Warp warps[MOST_THREADS / 32];
static uint8_t warp_order[MOST_THREADS / 32];
static unsigned n_threads, n_warps, n_launches;
static void (*body)(const void *arg);
static const void *body_arg;

/* Lets go every group of lanes that has come together. */
static bool
release_collectives(unsigned w)
{
	Warp *warp = warps + w;
	Thread *lanes = threads + 32 * w;
	uint32_t todo = warp->waiting;
	bool released = false;

	while (todo != 0)
	{
		unsigned first = (unsigned) __builtin_ctz(todo);
		const Thread *leader = lanes + first;
		uint32_t group = leader->mask & warp->live;
		bool complete = (leader->mask >> first & 1) != 0 && (group & ~warp->waiting) == 0;

		for (uint32_t rest = group; complete && rest != 0; rest &= rest - 1)
		{
			const Thread *lane = lanes + __builtin_ctz(rest);

			complete = lane->mask == leader->mask && lane->site == leader->site;
		}
		todo &= todo - 1;
		if (!complete)
			continue;
		uint64_t *given = warp->given[first][warp->turn[first]++ & 1];

		for (int i = 0; i < 32; i++)
			given[i] = 0;
		for (uint32_t rest = group; rest != 0; rest &= rest - 1)
		{
			unsigned i = (unsigned) __builtin_ctz(rest);

			given[i] = lanes[i].given;
			lanes[i].seen = given;
			warp->ready |= 1u << warp->place[i];
		}
		warp->waiting &= ~group;
		todo &= ~group;
		released = true;
	}
	return released;
}

/* The barrier opens when no live thread is elsewhere; threads that have returned count as there. */
static bool
release_block_barrier()
{
	const Thread *first = nullptr;

	for (unsigned i = 0; i < n_threads; i++)
	{
		if (threads[i].state == DONE)
			continue;
		if (first == nullptr)
			first = threads + i;
		if (threads[i].state != AT_BLOCK_BARRIER || threads[i].site != first->site)
			return false;
	}
	for (unsigned i = 0; i < n_threads; i++)
		if (threads[i].state == AT_BLOCK_BARRIER)
			warps[i / 32].ready |= 1u << warps[i / 32].place[i % 32];
	return first != nullptr;
}

/* ---- who runs next ---- */

static unsigned warp_at; /* place in the order */
static uint32_t round;   /* places of the warp's lanes that are yet to come */
static unsigned n_stuck; /* warps one after the other that nobody of could go on */

static bool
all_are_done()
{
	for (unsigned w = 0; w < n_warps; w++)
		if (warps[w].live != 0)
			return false;
	return true;
}

/* The next one when of a warp's lanes all have had their turn. */
static Thread *next_round();

/* Null: the block has ended, or with a fault can't go on. */
static inline Thread *
next_thread()
{
	unsigned w = warp_order[warp_at];
	Warp *warp = warps + w;
	uint32_t todo = round & warp->ready, lowest = todo & -todo;

	if (todo == 0)
		return next_round();
	round = todo ^ lowest;
	warp->ready ^= lowest;
	return threads + 32 * w + warp->lanes[__builtin_ctz(lowest)];
}

static Thread *
next_round()
{
	for (;;)
	{
		unsigned w = warp_order[warp_at];

		round = ~0u;
		if (warps[w].ready != 0)
			return next_thread();
		if (release_collectives(w))
		{
			n_stuck = 0;
			if (order == SHUFFLED)
				warp_at = warp_at + 1 < n_warps ? warp_at + 1 : 0;
			continue;
		}
		warp_at = warp_at + 1 < n_warps ? warp_at + 1 : 0;
		if (++n_stuck < n_warps)
			continue;
		if (all_are_done())
			return nullptr;
		if (!release_block_barrier())
		{
			fault = "deadlock: threads wait at different barriers";
			return nullptr;
		}
		n_stuck = warp_at = 0;
	}
}

/* Goes on with another thread, from the one whose context that is. */
static void
go_to(Context *from, Thread *next)
{
	unsigned i;

	if (next == nullptr)
	{
		current = nullptr;
#ifdef __SANITIZE_THREAD__
		__tsan_switch_to_fiber(outside_fiber, 1);
#endif
		switch_to(from, &outside);
		return;
	}
	i = (unsigned) (next - threads);
	if (next->state == NEW)
		make_context(i);
	next->state = READY;
	current = next;
#ifdef __SANITIZE_THREAD__
	__tsan_switch_to_fiber(fibers[i].fiber, 1);
#endif
	switch_to(from, &fibers[i].context);
}

static void
thread_main()
{
	for (;;)
	{
		Thread *self, *next;

		AG_ACQUIRE(&start_token);
		body(body_arg);
		AG_RELEASE(&end_token);
		self = current;
		self->state = DONE;
		warps[self->warp].live &= ~(1u << self->lane);
		next = next_thread();
		if (next == nullptr || next->state != NEW || HAS_RACES)
			go_to(&fibers[self - threads].context, next); /* and never comes back */
		current = next;
		next->state = READY;
	}
}

void
wait_as(State state, unsigned site)
{
	Thread *self = current, *next;

	self->state = state;
	self->site = site;
	if (state == AT_COLLECTIVE)
		warps[self->warp].waiting |= 1u << self->lane;
	next = next_thread();
	if (next != self)
		go_to(&fibers[self - threads].context, next);
}

/* ---- blocks and grids ---- */

static unsigned
draw(unsigned *state, unsigned below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

static void
shuffle(unsigned *state, uint8_t *items, unsigned n)
{
	for (unsigned i = n; i > 1; i--)
		std::swap(items[i - 1], items[draw(state, i)]);
}

static void
set_orders()
{
	unsigned state = n_launches * 2654435761u + 1;

	for (unsigned w = 0; w < n_warps; w++)
	{
		Warp *warp = warps + w;

		warp->n_lanes = n_threads - 32 * w < 32 ? n_threads - 32 * w : 32;
		for (unsigned i = 0; i < warp->n_lanes; i++)
			warp->lanes[i] = (uint8_t) (order == BACKWARD ? warp->n_lanes - 1 - i : i);
		if (order == SHUFFLED)
			shuffle(&state, warp->lanes, warp->n_lanes);
		for (unsigned i = 0; i < warp->n_lanes; i++)
			warp->place[warp->lanes[i]] = (uint8_t) i;
		warp_order[w] = (uint8_t) (order == BACKWARD ? n_warps - 1 - w : w);
	}
	if (order == SHUFFLED)
		shuffle(&state, warp_order, n_warps);
}

static void
set_threads()
{
	for (unsigned i = 0; i < n_threads; i++)
	{
		threads[i].index = dim3(i % block_size.x, i / block_size.x % block_size.y,
								i / (block_size.x * block_size.y));
		threads[i].lane = i % 32;
		threads[i].warp = i / 32;
		if (HAS_RACES && fibers[i].stack == nullptr)
			make_context(i); /* one that another one makes would come after it, to the sanitizer */
	}
}

static bool
run_block()
{
	for (unsigned w = 0; w < n_warps; w++)
	{
		warps[w].live = warps[w].ready = warps[w].n_lanes < 32 ? (1u << warps[w].n_lanes) - 1 : ~0u;
		warps[w].waiting = 0;
	}
	for (unsigned i = 0; i < n_threads; i++)
		threads[i].state = NEW;
	warp_at = n_stuck = 0;
	round = ~0u;
	go_to(&outside, next_thread());
	if (fault == nullptr)
		return true;
	drop_stacks(); /* they are in no state to be used again */
	return false;
}

/* Shared memory of that size, and nothing readable behind it. */
static void
set_shared(size_t size)
{
	if (dynamic_shared == nullptr)
		dynamic_shared = static_cast<unsigned char *>(malloc(MAX_DYNAMIC_SHARED));
	if (dynamic_shared == nullptr)
		abort();
	if (__asan_poison_memory_region == nullptr || __asan_unpoison_memory_region == nullptr)
		return;
	__asan_unpoison_memory_region(dynamic_shared, size);
	__asan_poison_memory_region(dynamic_shared + size, MAX_DYNAMIC_SHARED - size);
}

static bool
run_grid(dim3 grid, size_t shared_bytes)
{
	for (unsigned z = 0; z < grid.z; z++)
		for (unsigned y = 0; y < grid.y; y++)
			for (unsigned x = 0; x < grid.x; x++)
			{
				block_index = dim3(x, y, z);
#ifdef __SANITIZE_THREAD__
				n_blocks_run++;
#endif
				for (size_t i = 0; i < shared_bytes; i++)
					dynamic_shared[i] = 0xA5; /* CUDA doesn't clear it */
				if (!run_block())
					return false;
			}
	return true;
}

bool
launch(dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(const void *arg), const void *arg)
{
	bool is_done;

	fault = nullptr;
	n_launches++;
	n_threads = block.x * block.y * block.z;
	n_warps = (n_threads + 31) / 32;
	if (n_threads == 0 || n_threads > MOST_THREADS || shared_bytes > MAX_DYNAMIC_SHARED)
	{
		fault = "a block of no or over 1024 threads, or over 227 KB of shared memory";
		return false;
	}
	grid_size = grid;
	block_size = block;
	body = kernel;
	body_arg = arg;
	set_orders();
	set_threads();
	set_shared(shared_bytes);
#ifdef __SANITIZE_THREAD__
	outside_fiber = __tsan_get_current_fiber();
#endif
	AG_RELEASE(&start_token);
	is_done = run_grid(grid, shared_bytes);
	AG_ACQUIRE(&end_token);
	return is_done;
}

int
forget_threads()
{
	AG_ACQUIRE(&end_token);
	drop_stacks();
	return 0;
}
} // namespace simt
