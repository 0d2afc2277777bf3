/*
 * job_worker.c - the background worker that runs jobs: finds one, runs it, goes.
 *
 * Any number of workers may be woken; one a database waits for a turn (the queue's lock), the others go at once. Who gets
 * a turn takes the first queued job, wakes another to wait, and runs it. A wake-up can't be lost: who stops waiting looks once more
 * after it gave up the queue's lock, and who found that lock taken had its job committed before.
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "engine/base/context.h"
#include "pg/catalog.h"
#include "pg/compat.h"
#include "pg/job.h"
#include "pg/settings.h"

#define TURN_POLL_MS 100

/* ---- looking ---- */

static void
begin_transaction(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
end_transaction(MemoryContext context)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
}

/* Whether the database has queued jobs at all; false too when it hasn't the extension (any more). */
static bool
has_queued(MemoryContext context)
{
	bool found = false;

	begin_transaction();
	if (ag_catalog_is_installed() && superuser_arg(ag_catalog_owner_of("ag_job_order")))
	{
		Oid types[1] = {TEXTOID};
		Datum values[1] = {CStringGetTextDatum(ag_job_home())};

		found = ag_catalog_execute_on("ag_job_order",
									  "SELECT FROM @.ag_job_order WHERE home = $1 AND NOT started "
									  "LIMIT 1",
									  1, types, values, NULL, NULL, NULL) > 0;
	}
	end_transaction(context);
	return found;
}

/* ---- jobs that died, and old ones ---- */

typedef struct Ids
{
	int n;
	int64 ids[100];
} Ids;

static void
take_id(void *arg, HeapTuple row, TupleDesc desc)
{
	Ids *ids = arg;
	bool is_null;

	if (ids->n < (int) lengthof(ids->ids))
		ids->ids[ids->n++] = DatumGetInt64(SPI_getbinval(row, desc, 1, &is_null));
}

static void
bury(int64 id, const char *why)
{
	Oid types[3] = {INT8OID, TEXTOID, INT8OID};
	Datum values[3] = {Int64GetDatum(id), CStringGetTextDatum(why), Int64GetDatum(ag_clock_ns())};

	ag_catalog_execute_on("ag_job_order", "DELETE FROM @.ag_job_order WHERE id = $1", 1, types,
						  values, NULL, NULL, NULL);
	ag_catalog_execute_on("ag_job",
						  "UPDATE @.ag_job SET state = 'failed', ended_at = clock_timestamp(), "
						  "ended_ns = $3, started_ns = NULL, message = $2 "
						  "WHERE id = $1 AND state IN ('queued', 'running')",
						  3, types, values, NULL, NULL, NULL);
	ag_job_notify(id);
}

static void
bury_dead(void)
{
	Oid types[1] = {TEXTOID};
	Datum values[1] = {CStringGetTextDatum(ag_job_home())};
	Ids dead = {0}, copied = {0};

	ag_catalog_execute_on("ag_job_order",
						  "SELECT id FROM @.ag_job_order WHERE home = $1 AND started "
						  "ORDER BY id FOR UPDATE SKIP LOCKED",
						  1, types, values, NULL, take_id, &dead);
	for (int i = 0; i < dead.n; i++)
		if (!ag_job_is_locked(dead.ids[i]))
			bury(dead.ids[i], AG_JOB_LOST);
	ag_catalog_execute_on("ag_job_order",
						  "SELECT id FROM @.ag_job_order WHERE home <> $1 "
						  "ORDER BY id FOR UPDATE SKIP LOCKED",
						  1, types, values, NULL, take_id, &copied);
	for (int i = 0; i < copied.n; i++)
		bury(copied.ids[i], AG_JOB_COPIED);
}

/*
 * By the clock on the wall, which somebody may have put forward; so the other one must agree that a job is old. That one counts from the
 * machine's last start: a job of before has a later moment there, or seems to be younger than it is, and stays a little longer.
 */
static void
forget_old(void)
{
	Oid types[2] = {FLOAT8OID, INT8OID};
	Datum values[2] = {Float8GetDatum(ag_setting_job_retention_min * 60.0),
					   Int64GetDatum(ag_clock_ns())};

	if (ag_setting_job_retention_min < 0)
		return;
	ag_catalog_execute_on(
		"ag_job",
		"DELETE FROM @.ag_job WHERE state IN ('succeeded', 'failed', 'cancelled') "
		"AND ended_at < clock_timestamp() - make_interval(secs => $1) "
		"AND (ended_ns IS NULL OR ended_ns > $2 OR ended_ns < $2 - $1 * 1e9)",
		2, types, values, NULL, NULL, NULL);
}

static void
clean_up(MemoryContext context)
{
	begin_transaction();
	if (ag_catalog_is_installed() && superuser_arg(ag_catalog_owner_of("ag_job_order")))
	{
		bury_dead();
		forget_old();
	}
	end_transaction(context);
}

/* ---- taking one ---- */

static char *
text_of(HeapTuple row, TupleDesc desc, int column)
{
	bool is_null;
	Datum value = SPI_getbinval(row, desc, column, &is_null);

	return is_null ? pstrdup("") : TextDatumGetCString(value);
}

static void
take_order(void *arg, HeapTuple row, TupleDesc desc)
{
	AgJobOrder **order = arg;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	AgJobOrder *copy = palloc0(sizeof(AgJobOrder));
	bool is_null;

	copy->id = DatumGetInt64(SPI_getbinval(row, desc, 1, &is_null));
	copy->role = DatumGetObjectId(SPI_getbinval(row, desc, 2, &is_null));
	copy->role_name = text_of(row, desc, 3);
	copy->session_role = DatumGetObjectId(SPI_getbinval(row, desc, 4, &is_null));
	copy->source = text_of(row, desc, 5);
	copy->data = text_of(row, desc, 6);
	copy->label = text_of(row, desc, 7);
	copy->options = DatumGetJsonbPCopy(SPI_getbinval(row, desc, 8, &is_null));
	copy->settings = text_of(row, desc, 9);
	MemoryContextSwitchTo(old);
	*order = copy;
}

/* The first job that nobody else has and nobody is just cancelling. Its lock is held before it is seen to run. */
static AgJobOrder *
claim(MemoryContext context)
{
	Oid types[1] = {TEXTOID};
	Oid id_types[2] = {INT8OID, INT8OID};
	Datum values[2];
	AgJobOrder *order = NULL;

	begin_transaction();
	values[0] = CStringGetTextDatum(ag_job_home());
	ag_catalog_execute_on("ag_job_order",
						  "SELECT id, role, role_name, session_role, source, data, label, options, "
						  "settings FROM @.ag_job_order WHERE home = $1 AND NOT started "
						  "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
						  1, types, values, NULL, take_order, &order);
	if (order != NULL)
	{
		ag_job_lock(order->id);
		values[0] = Int64GetDatum(order->id);
		values[1] = Int64GetDatum(ag_clock_ns());
		ag_catalog_execute_on("ag_job_order",
							  "UPDATE @.ag_job_order SET started = true WHERE id = $1", 1, id_types,
							  values, NULL, NULL, NULL);
		ag_catalog_execute_on("ag_job",
							  "UPDATE @.ag_job SET state = 'running', phase = 'reading rows', "
							  "started_at = clock_timestamp(), started_ns = $2 WHERE id = $1",
							  2, id_types, values, NULL, NULL, NULL);
		ag_job_notify(order->id);
	}
	end_transaction(context);
	return order;
}

/* Waits, as the one that may, for a slot and a job; NULL: there is none any more. *slot is held with a job. */
static AgJobOrder *
wait_for_turn(MemoryContext context, int *slot)
{
	AgJobOrder *order = NULL;

	pgstat_report_activity(STATE_RUNNING, "waiting for a turn (ag_pg.max_jobs)");
	while (has_queued(context))
	{
		*slot = ag_job_slot_try();
		if (*slot >= 0)
		{
			/* a cancel of it counts from the moment its lock is ours */
			ag_job_accept_cancel(true);
			order = claim(context);
			if (order != NULL)
				return order;
			ag_job_accept_cancel(false);
			ag_job_slot_leave(*slot);
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, TURN_POLL_MS,
						 ag_wait_event(AG_WAIT_TURN));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
	return NULL;
}

/* ---- the worker ---- */

/* What a superuser may have set for his sessions, or for the database, is not for this one. */
static void
set_defaults(void)
{
	static const char *const settings[][2] = {
		{"default_transaction_read_only", "off"},
		{"default_transaction_isolation", "read committed"},
		{"lock_timeout", "0"},
		{"session_replication_role", "origin"},
	};

	for (size_t i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

/* True: another worker goes on, or there is nothing to do. */
static bool
hand_over(MemoryContext context)
{
	if (!ag_job_queue_try())
		return true; /* another one waits */
	ag_job_queue_leave();
	return !has_queued(context) || ag_job_wake(MyDatabaseId);
}

static void
work(MemoryContext context)
{
	for (;;)
	{
		AgJobOrder *order;
		int slot;

		clean_up(context);
		if (!ag_job_queue_try())
			return;
		order = wait_for_turn(context, &slot);
		ag_job_queue_leave();
		if (order == NULL)
		{
			if (has_queued(context))
				continue;
			return;
		}
		if (has_queued(context))
			(void) ag_job_wake(MyDatabaseId);
		ag_job_run(order);
		ag_job_accept_cancel(false);
		LockReleaseAll(USER_LOCKMETHOD,
					   true); /* its slot, its id, and what a function of the user's took */
		if (hand_over(context))
			return;
	}
}

void
ag_job_worker_main(Datum arg)
{
	MemoryContext context;

	pqsignal(SIGTERM, die);
	ag_job_accept_cancel(false);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	ConfigReloadPending = true; /* one that came before this handler was ignored */
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, 0);
	context = AllocSetContextCreate(TopMemoryContext, "ag_pg jobs", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	set_defaults();
	work(context);
	proc_exit(0);
}
