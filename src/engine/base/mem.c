/*
 * mem.c - memory under a byte budget.
 *
 * A block is malloc's, with room to align it to 64 bytes; a header of 64 bytes in front
 * of what the caller sees knows the whole length and where malloc's block begins. Plain malloc and
 * realloc (not aligned_alloc) because glibc grows big blocks by moving pages, without a copy.
 */
#include "engine/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define ALIGNMENT 64
#define OVERHEAD (2 * ALIGNMENT)
#define BLOCK_MAX (PTRDIFF_MAX - OVERHEAD)

typedef struct AgBlockHeader
{
	size_t size;  /* bytes the caller sees */
	size_t shift; /* from malloc's block to the caller's bytes */
} AgBlockHeader;

static AgBlockHeader *
header_of(void *block)
{
	return (AgBlockHeader *) (void *) ((char *) block - ALIGNMENT);
}

void
ag_mem_init(AgMem *mem, int64_t limit_bytes)
{
	mem->limit_bytes = limit_bytes;
	atomic_init(&mem->used_bytes, 0);
	atomic_init(&mem->peak_bytes, 0);
	atomic_init(&mem->fail_after, -1);
	atomic_init(&mem->n_allocations, 0);
}

/* Counts one request and says whether a test wants it to fail. */
static bool
must_fail(AgMem *mem)
{
	atomic_fetch_add_explicit(&mem->n_allocations, 1, memory_order_relaxed);
	if (atomic_load_explicit(&mem->fail_after, memory_order_relaxed) < 0)
		return false;
	for (;;)
	{
		int64_t left = atomic_load(&mem->fail_after);

		if (left <= 0)
			return true;
		if (atomic_compare_exchange_weak(&mem->fail_after, &left, left - 1))
			return false;
	}
}

static bool
charge(AgMem *mem, int64_t bytes)
{
	int64_t used = atomic_load_explicit(&mem->used_bytes, memory_order_relaxed);
	int64_t peak;

	do
	{
		if (bytes > mem->limit_bytes - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&mem->used_bytes, &used, used + bytes,
													memory_order_relaxed, memory_order_relaxed));
	used += bytes;
	peak = atomic_load_explicit(&mem->peak_bytes, memory_order_relaxed);
	while (used > peak &&
		   !atomic_compare_exchange_weak_explicit(&mem->peak_bytes, &peak, used,
												  memory_order_relaxed, memory_order_relaxed))
		;
	return true;
}

static void
uncharge(AgMem *mem, int64_t bytes)
{
	atomic_fetch_sub_explicit(&mem->used_bytes, bytes, memory_order_relaxed);
}

/* n × size, at least 1; false when it overflows or no block could be that long. */
static bool
product(size_t n, size_t size, size_t *bytes)
{
	if (__builtin_mul_overflow(n, size, bytes) || *bytes > BLOCK_MAX)
		return false;
	if (*bytes == 0)
		*bytes = 1;
	return true;
}

static void *
place(char *raw, size_t bytes)
{
	char *block = raw + ALIGNMENT;
	AgBlockHeader *header;

	block += (ALIGNMENT - (uintptr_t) block % ALIGNMENT) % ALIGNMENT;
	header = header_of(block);
	header->size = bytes;
	header->shift = (size_t) (block - raw);
	return block;
}

#define HUGE_PAGE ((uintptr_t) 2 << 20)
#define HUGE_LEAST ((size_t) 4 << 20) /* a block that is sure to hold a huge page, and worth one */

/*
 * Asks for huge pages within a large block. Trees read rows here and there, and with small pages a good part of that
 * is waiting for addresses to be translated. Where the system has none to give, nothing happens.
 */
static void
prefer_huge(char *raw, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
	uintptr_t begin = ((uintptr_t) raw + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = ((uintptr_t) raw + bytes) / HUGE_PAGE * HUGE_PAGE;

	if (bytes >= HUGE_LEAST)
		(void) madvise(raw + (begin - (uintptr_t) raw), end - begin, MADV_HUGEPAGE);
#else
	(void) raw;
	(void) bytes;
#endif
}

static void *
get_block(AgMem *mem, size_t n, size_t size, bool zeroed)
{
	size_t bytes;
	char *raw;

	if (must_fail(mem) || !product(n, size, &bytes))
		return NULL;
	if (!charge(mem, (int64_t) (bytes + OVERHEAD)))
		return NULL;
	raw = zeroed ? calloc(1, bytes + OVERHEAD) : malloc(bytes + OVERHEAD);
	if (raw == NULL)
	{
		uncharge(mem, (int64_t) (bytes + OVERHEAD));
		return NULL;
	}
	prefer_huge(raw, bytes);
	return place(raw, bytes);
}

void *
ag_mem_alloc(AgMem *mem, size_t n, size_t size)
{
	return get_block(mem, n, size, false);
}

void *
ag_mem_zalloc(AgMem *mem, size_t n, size_t size)
{
	return get_block(mem, n, size, true);
}

void *
ag_mem_realloc(AgMem *mem, void *block, size_t n, size_t size)
{
	size_t bytes, old_bytes, old_shift;
	int64_t delta;
	char *raw;
	char *moved;

	if (block == NULL)
		return get_block(mem, n, size, false);
	if (must_fail(mem) || !product(n, size, &bytes))
		return NULL;
	old_bytes = header_of(block)->size;
	old_shift = header_of(block)->shift;
	delta = (int64_t) bytes - (int64_t) old_bytes;
	if (delta > 0 && !charge(mem, delta))
		return NULL;
	raw = realloc((char *) block - old_shift, bytes + OVERHEAD);
	if (raw == NULL)
	{
		if (delta > 0)
			uncharge(mem, delta);
		return NULL;
	}
	if (delta < 0)
		uncharge(mem, -delta);
	/* The new block may begin at another distance from a multiple of 64 than the old one did. */
	moved = raw + ALIGNMENT;
	moved += (ALIGNMENT - (uintptr_t) moved % ALIGNMENT) % ALIGNMENT;
	if (moved != raw + old_shift)
		memmove(moved, raw + old_shift, bytes < old_bytes ? bytes : old_bytes);
	return place(raw, bytes);
}

void
ag_mem_free(AgMem *mem, void *block)
{
	AgBlockHeader header;

	if (block == NULL)
		return;
	header = *header_of(block);
	uncharge(mem, (int64_t) (header.size + OVERHEAD));
	free((char *) block - header.shift);
}

char *
ag_mem_strdup(AgMem *mem, const char *text)
{
	return ag_mem_strndup(mem, text, strlen(text));
}

char *
ag_mem_strndup(AgMem *mem, const char *bytes, size_t n)
{
	char *copy;

	if (n == SIZE_MAX)
		return NULL;
	copy = ag_mem_alloc(mem, n + 1, 1);
	if (copy == NULL)
		return NULL;
	if (n > 0)
		memcpy(copy, bytes, n);
	copy[n] = '\0';
	return copy;
}

/* Bytes as a person reads them: in kB, MB or GB, rounded up so that nothing shows as 0. */
static int64_t
readable(int64_t bytes, const char **unit)
{
	int64_t scale = 1024;

	*unit = "kB";
	if (bytes >= INT64_C(10) << 30)
	{
		scale = INT64_C(1) << 30;
		*unit = "GB";
	}
	else if (bytes >= INT64_C(10) << 20)
	{
		scale = INT64_C(1) << 20;
		*unit = "MB";
	}
	return bytes / scale + (bytes % scale != 0);
}

AgStatus
ag_mem_error(const AgMem *mem, size_t wanted_bytes, AgError *err)
{
	const char *want_unit, *limit_unit, *used_unit;
	int64_t want =
		readable(wanted_bytes > INT64_MAX ? INT64_MAX : (int64_t) wanted_bytes, &want_unit);
	int64_t used = readable(atomic_load(&mem->used_bytes), &used_unit);

	if (err != NULL && err->status != AG_OK)
		return err->status;
	ag_error_set(err, AG_ERR_MEMORY, "out of memory");
	if (mem->limit_bytes == INT64_MAX)
		ag_error_detail(err, "%" PRId64 " %s were needed with %" PRId64 " %s already in use.", want,
						want_unit, used, used_unit);
	else
	{
		int64_t limit = readable(mem->limit_bytes, &limit_unit);

		ag_error_detail(err,
						"%" PRId64 " %s were needed with %" PRId64
						" %s already in use, and the memory limit is %" PRId64 " %s.",
						want, want_unit, used, used_unit, limit, limit_unit);
	}
	ag_error_hint(
		err, "Raise \"memory_limit\" or the setting \"ag_pg.memory_limit\", or use fewer rows, "
			 "fewer columns or a smaller model.");
	return AG_ERR_MEMORY;
}

/*
 * Arena: a list of chunks, the youngest first. Chunks double up to 1 MB; what is longer than a quarter of the next chunk gets
 * one of its own, behind the youngest, so that the rest of the youngest isn't wasted.
 */
#define ARENA_FIRST 4096
#define ARENA_LAST ((size_t) 1 << 20)

typedef struct AgArenaChunk
{
	struct AgArenaChunk *next;
	size_t used;
	size_t size; /* usable bytes */
	size_t unused;
} AgArenaChunk;

void
ag_arena_init(AgArena *arena, AgMem *mem)
{
	arena->mem = mem;
	arena->chunks = NULL;
}

static AgArenaChunk *
new_chunk(AgArena *arena, size_t size)
{
	AgArenaChunk *chunk = ag_mem_zalloc(arena->mem, sizeof(AgArenaChunk) + size, 1);

	if (chunk != NULL)
		chunk->size = size;
	return chunk;
}

void *
ag_arena_alloc(AgArena *arena, size_t n, size_t size)
{
	AgArenaChunk *chunk = arena->chunks;
	size_t bytes, next_size;

	if (!product(n, size, &bytes) || bytes > BLOCK_MAX - sizeof(AgArenaChunk) - 16)
		return NULL;
	bytes = (bytes + 15) & ~(size_t) 15;
	if (chunk == NULL || bytes > chunk->size - chunk->used)
	{
		next_size = chunk == NULL                  ? ARENA_FIRST
					: chunk->size < ARENA_LAST / 2 ? chunk->size * 2
												   : ARENA_LAST;
		if (bytes > next_size / 4)
		{
			AgArenaChunk *own = new_chunk(arena, bytes);

			if (own == NULL)
				return NULL;
			own->used = bytes;
			if (chunk == NULL)
				arena->chunks = own;
			else
			{
				own->next = chunk->next;
				chunk->next = own;
			}
			return own + 1;
		}
		chunk = new_chunk(arena, next_size);
		if (chunk == NULL)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	chunk->used += bytes;
	return (char *) (chunk + 1) + chunk->used - bytes;
}

char *
ag_arena_strndup(AgArena *arena, const char *bytes, size_t n)
{
	char *copy;

	if (n == SIZE_MAX)
		return NULL;
	copy = ag_arena_alloc(arena, n + 1, 1);
	if (copy != NULL && n > 0)
		memcpy(copy, bytes, n);
	return copy;
}

void
ag_arena_free(AgArena *arena)
{
	while (arena->chunks != NULL)
	{
		AgArenaChunk *next = arena->chunks->next;

		ag_mem_free(arena->mem, arena->chunks);
		arena->chunks = next;
	}
}
