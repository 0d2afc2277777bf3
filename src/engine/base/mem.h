/*
 * mem.h - memory under a byte budget.
 *
 * All memory of the engine comes from an AgMem, which counts bytes and refuses
 * what would pass its limit. Thread-safe: counters are atomic, blocks come from
 * malloc. Blocks are 64-byte aligned (cache lines, AVX-512).
 */
#ifndef AG_MEM_H
#define AG_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

typedef struct AgMem
{
	int64_t limit_bytes;        /* INT64_MAX: no limit */
	_Atomic int64_t used_bytes; /* block headers included */
	_Atomic int64_t peak_bytes;
	_Atomic int64_t
		fail_after; /* tests: allocations to let through before failing every one; -1 = off */
	_Atomic int64_t
		n_allocations; /* how many were asked for: the allocation-failure loop's bound */
} AgMem;

void ag_mem_init(AgMem *mem, int64_t limit_bytes);

/*
 * n × size bytes, not zeroed (ag_mem_alloc) or zeroed (ag_mem_zalloc). The
 * product is checked for overflow. NULL when it doesn't fit. n or size 0 gives
 * a valid, unusable block.
 */
void *ag_mem_alloc(AgMem *mem, size_t n, size_t size);
void *ag_mem_zalloc(AgMem *mem, size_t n, size_t size);

/* As realloc: keeps the old block and returns NULL when the new size doesn't fit; block may be NULL. */
void *ag_mem_realloc(AgMem *mem, void *block, size_t n, size_t size);

/* Gives a block back; NULL is allowed. */
void ag_mem_free(AgMem *mem, void *block);

/* Copies of a string or of n bytes (a NUL is put behind them). NULL when it doesn't fit. */
char *ag_mem_strdup(AgMem *mem, const char *text);
char *ag_mem_strndup(AgMem *mem, const char *bytes, size_t n);

/* The one text for "out of memory": what was wanted, the budget, and the cures as a hint. */
AgStatus ag_mem_error(const AgMem *mem, size_t wanted_bytes, AgError *err);

/*
 * An arena: many small blocks that are freed together. Not thread-safe. Blocks
 * are 16-byte aligned. Zero-initialise by ag_arena_init; ag_arena_free is safe
 * on an initialised arena, any number of times.
 */
typedef struct AgArena
{
	AgMem *mem;
	struct AgArenaChunk *chunks;
} AgArena;

void ag_arena_init(AgArena *arena, AgMem *mem);
void *ag_arena_alloc(AgArena *arena, size_t n, size_t size); /* zeroed; NULL when it doesn't fit */
char *ag_arena_strndup(AgArena *arena, const char *bytes, size_t n);
void ag_arena_free(AgArena *arena);

#endif
