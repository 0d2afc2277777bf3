/*
 * threads.c - the pool: every item once, whatever the sizes; signals stay away from it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "engine/base/threads.h"
#include "unit/unit.h"

typedef struct Work
{
	uint8_t *hits;
	_Atomic int64_t sum;
	_Atomic int bad; /* a chunk too long, a thread out of range, a signal let through */
	int64_t chunk;
	int n_threads;
	bool check_signals;
} Work;

static void
count_items(void *arg, int64_t begin, int64_t end, int thread)
{
	Work *work = arg;

	if (begin >= end || end - begin > work->chunk || thread < 0 || thread >= work->n_threads)
		work->bad++;
	for (int64_t i = begin; i < end; i++)
	{
		work->hits[i]++;
		work->sum += i;
	}
	if (work->check_signals && thread > 0)
	{
		sigset_t mask;

		pthread_sigmask(SIG_SETMASK, NULL, &mask);
		if (!sigismember(&mask, SIGTERM) || !sigismember(&mask, SIGINT) ||
			!sigismember(&mask, SIGUSR1))
			work->bad++;
	}
}

static void
check_run(AgPool *pool, int64_t n, int64_t chunk)
{
	Work work = {.hits = calloc((size_t) n + 1, 1), .chunk = chunk, .check_signals = true};

	work.n_threads = ag_pool_size(pool);
	ag_pool_run(pool, n, chunk, count_items, &work);
	AG_CHECK_EQ(work.bad, 0);
	AG_CHECK_EQ(work.sum, n > 0 ? n * (n - 1) / 2 : 0);
	for (int64_t i = 0; i < n; i++)
		if (work.hits[i] != 1)
			AG_CHECK(work.hits[i] == 1);
	AG_CHECK(work.hits[n] == 0);
	free(work.hits);
}

static void
nothing(void *arg, int64_t begin, int64_t end, int thread)
{
	(void) thread;
	*(_Atomic int64_t *) arg += end - begin;
}

int
main(void)
{
	static const int sizes[] = {1, 2, 3, 8};
	AgMem mem;
	AgError err;
	AgPool *pool;
	sigset_t before, after;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	check_run(NULL, 1000, 7);
	AG_CHECK_EQ(ag_pool_size(NULL), 1);
	ag_pool_free(NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (int i = 0; i < 4; i++)
	{
		_Atomic int64_t total = 0;

		AG_REQUIRE(ag_pool_create(&mem, sizes[i], &pool, &err) == AG_OK);
		AG_CHECK_EQ(ag_pool_size(pool), sizes[i]);
		check_run(pool, 0, 1);
		check_run(pool, 1, 1);
		check_run(pool, 5, 100);
		check_run(pool, 100000, 1);
		check_run(pool, 100001, 1000);
		/* Many short runs, each with its own argument: a late thread must not touch a run that ended. */
		for (int run = 0; run < 3000; run++)
		{
			_Atomic int64_t mine = 0;

			ag_pool_run(pool, 1 + run % 9, 1 + run % 3, nothing, &mine);
			total += mine == 1 + run % 9;
		}
		AG_CHECK_EQ(total, 3000);
		ag_pool_free(pool);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++)
		AG_CHECK_EQ(sigismember(&before, s), sigismember(&after, s));
	AG_REQUIRE(ag_pool_create(&mem, -3, &pool, &err) == AG_OK);
	AG_CHECK_EQ(ag_pool_size(pool), 1);
	ag_pool_free(pool);
	mem.fail_after = 0;
	AG_CHECK_EQ(ag_pool_create(&mem, 4, &pool, &err), AG_ERR_MEMORY);
	AG_CHECK(pool == NULL);
	AG_CHECK_EQ(mem.used_bytes, 0);
	return ag_unit_done("threads");
}
