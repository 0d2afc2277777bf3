/*
 * threads.h - a small pool of threads.
 *
 * Not OpenMP: libgomp exits the process when a thread can't be had, and spinning
 * barriers collapse on a busy machine. Here work is pulled in chunks from an
 * atomic counter, the caller works too, and waiting blocks (never spins longer
 * than about a microsecond). Threads end by returning. All signals are blocked
 * in pool threads.
 */
#ifndef AG_THREADS_H
#define AG_THREADS_H

#include <stdint.h>

#include "engine/base/mem.h"

typedef struct AgPool AgPool;

/*
 * A pool in which n_threads work, the caller included (so n_threads - 1 are
 * started). AG_ERR_SYSTEM when a thread can't be started; nothing leaks then.
 */
AgStatus ag_pool_create(AgMem *mem, int n_threads, AgPool **pool, AgError *err);
void ag_pool_free(AgPool *pool);      /* NULL allowed; waits for the threads */
int ag_pool_size(const AgPool *pool); /* NULL: 1 */

/* Works on items [begin, end); thread is in [0, size). Must not fail: store what went wrong in arg. */
typedef void (*AgTask)(void *arg, int64_t begin, int64_t end, int thread);

/*
 * Runs task over [0, n_items) in chunks of at most chunk items (>= 1), and
 * returns when all are done. What task writes must not depend on how the chunks
 * fall or on thread, except into scratch memory of that thread. Not reentrant:
 * a task must not call it on the same pool. pool NULL: runs here.
 */
void ag_pool_run(AgPool *pool, int64_t n_items, int64_t chunk, AgTask task, void *arg);

#endif
