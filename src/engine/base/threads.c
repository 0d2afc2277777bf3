/*
 * threads.c - a small pool of threads.
 *
 * A run is open or closed. Workers that wake while it is open join it and pull chunks until none is left; the
 * caller pulls too, closes the run and waits only for those that joined: a worker that the system wakes late
 * finds the run closed and goes back to sleep, and nobody waited for it.
 */
#include "engine/base/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <string.h>

/* Enough for every task of the engine; the default of 8 MB each would count against a limit on data. */
#define STACK_BYTES ((size_t) 1 << 20)

typedef struct AgWorker
{
	AgPool *pool;
	pthread_t thread;
	int index; /* 1.. ; the caller is 0 */
} AgWorker;

struct AgPool
{
	AgMem *mem;
	int n_workers; /* started threads */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* a run was opened, or the end */
	pthread_cond_t done; /* the last worker that had joined a run left it */
	uint64_t run;        /* number of the latest run */
	bool open;
	bool ending;
	int n_joined;
	/* the run; written while none is open */
	AgTask task;
	void *arg;
	int64_t n_items;
	int64_t chunk;
	_Alignas(64) _Atomic int64_t next;
	_Alignas(64) AgWorker workers[];
};

static void
pull_chunks(AgPool *pool, int thread)
{
	for (;;)
	{
		int64_t begin = atomic_fetch_add_explicit(&pool->next, pool->chunk, memory_order_relaxed);
		int64_t left = pool->n_items - begin;

		if (left <= 0)
			break;
		pool->task(pool->arg, begin, begin + (left < pool->chunk ? left : pool->chunk), thread);
	}
}

static void *
worker_main(void *arg)
{
	AgWorker *worker = arg;
	AgPool *pool = worker->pool;
	uint64_t seen = 0;

	pthread_mutex_lock(&pool->lock);
	for (;;)
	{
		while (!pool->ending && !(pool->open && pool->run != seen))
			pthread_cond_wait(&pool->wake, &pool->lock);
		if (pool->ending)
			break;
		seen = pool->run;
		pool->n_joined++;
		pthread_mutex_unlock(&pool->lock);
		pull_chunks(pool, worker->index);
		pthread_mutex_lock(&pool->lock);
		if (--pool->n_joined == 0)
			pthread_cond_signal(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

/* Starts one thread with every signal blocked; 0 or an errno. */
static int
start_worker(AgWorker *worker)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int code;

	code = pthread_attr_init(&attr);
	if (code != 0)
		return code;
	sigfillset(&all);
	code = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (code == 0)
		code = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (code == 0)
	{
		code = pthread_create(&worker->thread, &attr, worker_main, worker);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	return code;
}

AgStatus
ag_pool_create(AgMem *mem, int n_threads, AgPool **pool, AgError *err)
{
	size_t bytes;
	AgPool *p;
	int code = 0;

	*pool = NULL;
	if (n_threads < 1)
		n_threads = 1;
	bytes = sizeof(AgPool) + (size_t) (n_threads - 1) * sizeof(AgWorker);
	p = ag_mem_zalloc(mem, bytes, 1);
	if (p == NULL)
		return ag_mem_error(mem, bytes, err);
	p->mem = mem;
	atomic_init(&p->next, 0);
	if ((code = pthread_mutex_init(&p->lock, NULL)) != 0)
		goto no_lock;
	if ((code = pthread_cond_init(&p->wake, NULL)) != 0)
		goto no_wake;
	if ((code = pthread_cond_init(&p->done, NULL)) != 0)
		goto no_done;
	while (p->n_workers < n_threads - 1)
	{
		AgWorker *worker = &p->workers[p->n_workers];

		worker->pool = p;
		worker->index = p->n_workers + 1;
		code = start_worker(worker);
		if (code != 0)
		{
			int started = p->n_workers + 1;

			ag_pool_free(p);
			ag_error_set(err, AG_ERR_SYSTEM, "could not start thread %d of %d: %s", started + 1,
						 n_threads, strerror(code));
			ag_error_hint(err,
						  "Lower \"num_cpus\", or raise the limit on processes and threads of the "
						  "server's user.");
			return AG_ERR_SYSTEM;
		}
		p->n_workers++;
	}
	*pool = p;
	return AG_OK;

no_done:
	pthread_cond_destroy(&p->wake);
no_wake:
	pthread_mutex_destroy(&p->lock);
no_lock:
	ag_mem_free(mem, p);
	return ag_error_set(err, AG_ERR_SYSTEM, "could not create a pool of threads: %s",
						strerror(code));
}

void
ag_pool_free(AgPool *pool)
{
	if (pool == NULL)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->ending = true;
	pthread_cond_broadcast(&pool->wake);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->n_workers; i++)
		pthread_join(pool->workers[i].thread, NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->wake);
	pthread_mutex_destroy(&pool->lock);
	ag_mem_free(pool->mem, pool);
}

int
ag_pool_size(const AgPool *pool)
{
	return pool == NULL ? 1 : pool->n_workers + 1;
}

void
ag_pool_run(AgPool *pool, int64_t n_items, int64_t chunk, AgTask task, void *arg)
{
	int64_t n_helpers;

	if (chunk < 1)
		chunk = 1;
	if (pool == NULL || pool->n_workers == 0 || n_items <= chunk)
	{
		for (int64_t begin = 0; begin < n_items; begin += chunk)
			task(arg, begin, n_items - begin < chunk ? n_items : begin + chunk, 0);
		return;
	}
	n_helpers = (n_items - 1) / chunk; /* chunks beyond the caller's own first one */
	pthread_mutex_lock(&pool->lock);
	pool->task = task;
	pool->arg = arg;
	pool->n_items = n_items;
	pool->chunk = chunk;
	atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
	pool->run++;
	pool->open = true;
	if (n_helpers >= pool->n_workers)
		pthread_cond_broadcast(&pool->wake);
	else
		for (int64_t i = 0; i < n_helpers; i++)
			pthread_cond_signal(&pool->wake);
	pthread_mutex_unlock(&pool->lock);

	pull_chunks(pool, 0);

	pthread_mutex_lock(&pool->lock);
	pool->open = false;
	while (pool->n_joined > 0)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}
