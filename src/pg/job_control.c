/*
 * job_control.c - jobs as users see and steer them: ag_wait, ag_cancel, ag_job_log, and the functions of the view ag_jobs.
 *
 * A job that waits while no worker is about (the server was restarted, or had no worker to spare) is started by whoever
 * looks at it here.
 */
#include "postgres.h"

#include <math.h>
#include <signal.h>

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "engine/base/context.h"
#include "pg/catalog.h"
#include "pg/compat.h"
#include "pg/job.h"
#include "pg/rights.h"
#include "pg/scan.h"

#define WAKE_EVERY_NS INT64_C(1000000000)
#define CANCEL_PATIENCE_NS INT64_C(5000000000)
#define SIGNAL_EVERY_NS INT64_C(250000000)
#define SHORTEST_WAIT_MS 20
#define LONGEST_WAIT_MS 200

/* Columns of ag_job that are looked at here, as the install script creates them. */
enum
{
	JOB_ID = 1,
	JOB_OWNER,
	JOB_STATE,
	JOB_HOME,
	JOB_MODEL,
	JOB_LOG,
	JOB_COLUMNS = JOB_LOG
};

typedef struct Job
{
	int64 id;
	char *state;
	char *home;
	char *log;
	bool is_ours; /* written by this very transaction */
} Job;

/* The job as it is now, committed or ours. 42704 when there is none that the current role may see. */
static void
look_at(int64 id, bool want_log, Job *job)
{
	ScanKeyData key;
	AgScan scan;
	bool found = false;

	job->id = id;
	PushActiveSnapshot(GetLatestSnapshot());
	ag_scan_key_int8(&key, JOB_ID, id);
	ag_scan_begin(&scan, "ag_job", "ag_job_pkey", JOB_COLUMNS, 1, &key);
	if (ag_scan_next(&scan) && ag_rights_is_owner(GetUserId(), ag_scan_text(&scan, JOB_OWNER)))
	{
		found = true;
		job->state = ag_scan_text(&scan, JOB_STATE);
		job->home = ag_scan_text(&scan, JOB_HOME);
		job->log = want_log ? ag_scan_text(&scan, JOB_LOG) : NULL;
		job->is_ours = ag_scan_is_ours(&scan);
	}
	ag_scan_end(&scan);
	PopActiveSnapshot();
	if (!found)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("job " INT64_FORMAT " does not exist", id),
						errhint("The view ag_jobs lists the jobs that you may see.")));
}

static bool
is_ended(const char *state)
{
	return strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

/* Makes sure, once in a while, that somebody takes care of what waits or died. */
static void
see_to_worker(void)
{
	static int64 last_ns = 0;
	int64 now = ag_clock_ns();

	if (now - last_ns < WAKE_EVERY_NS)
		return;
	last_ns = now;
	if (!ag_job_queue_try())
		return; /* one waits already */
	ag_job_queue_leave();
	(void) ag_job_wake(MyDatabaseId);
}

/*
 * What a state that was read comes to: who wrote it may have died since, or the whole database may be a copy. On a standby
 * the locks are the primary's, so there it is what is written.
 */
static const char *
state_now(int64 id, const char *state, const char *home)
{
	Job job;

	if (is_ended(state) || RecoveryInProgress())
		return state;
	if (strcmp(state, "running") == 0)
	{
		if (ag_job_is_locked(id))
			return state;
		/* it may have ended since it was read; that it died may be written down by now */
		look_at(id, false, &job);
		if (strcmp(job.state, "running") != 0)
			return strcmp(job.state, "failed") == 0 ? "failed" : state;
	}
	see_to_worker();
	return strcmp(state, "queued") == 0 && strcmp(home, ag_job_home()) == 0 ? state : "failed";
}

/* ---- for the view ---- */

PG_FUNCTION_INFO_V1(ag_sql_job_state);

Datum
ag_sql_job_state(PG_FUNCTION_ARGS)
{
	int64 id = PG_GETARG_INT64(0);
	char *owner = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *state = text_to_cstring(PG_GETARG_TEXT_PP(2));
	char *home = text_to_cstring(PG_GETARG_TEXT_PP(3));

	if (!ag_rights_is_owner(GetUserId(), owner))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(state_now(id, state, home)));
}

PG_FUNCTION_INFO_V1(ag_sql_job_seconds);

/* ag_job_seconds(from_at, from_ns, to_at, to_ns); a standby's clock, and its nanoseconds, aren't those of the machine that wrote the row. */
Datum
ag_sql_job_seconds(PG_FUNCTION_ARGS)
{
	bool is_known[2] = {!PG_ARGISNULL(1), !PG_ARGISNULL(3)};
	TimestampTz at[2];
	int64 ns[2];

	for (int i = 0; i < 2; i++)
	{
		if (!PG_ARGISNULL(2 * i))
		{
			at[i] = PG_GETARG_TIMESTAMPTZ(2 * i);
			ns[i] = is_known[i] ? PG_GETARG_INT64(2 * i + 1) : 0;
			continue;
		}
		at[i] = GetCurrentTimestamp();
		ns[i] = ag_clock_ns();
		is_known[i] = !RecoveryInProgress();
	}
	if (is_known[0] && is_known[1])
		PG_RETURN_FLOAT8(fmax(((double) ns[1] - (double) ns[0]) / 1e9, 0));
	PG_RETURN_FLOAT8(fmax(((double) at[1] - (double) at[0]) / 1e6, 0));
}

/* ---- ag_job_log ---- */

PG_FUNCTION_INFO_V1(ag_sql_job_log);

Datum
ag_sql_job_log(PG_FUNCTION_ARGS)
{
	Job job;

	look_at(PG_GETARG_INT64(0), true, &job);
	(void) state_now(job.id, job.state, job.home);
	PG_RETURN_TEXT_P(cstring_to_text(job.log));
}

/* ---- ag_wait ---- */

static void
refuse_own(const Job *job)
{
	if (!job->is_ours || strcmp(job->state, "queued") != 0)
		return;
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("job " INT64_FORMAT " was submitted in this transaction and has not "
						   "started",
						   job->id),
					errhint("A job starts when the transaction that submits it commits: COMMIT "
							"first, then wait.")));
}

PG_FUNCTION_INFO_V1(ag_sql_wait);

/* ag_wait(job bigint, timeout double precision DEFAULT NULL) RETURNS text */
Datum
ag_sql_wait(PG_FUNCTION_ARGS)
{
	int64 began_ns = ag_clock_ns();
	long pause_ms = SHORTEST_WAIT_MS;
	double timeout_s = PG_ARGISNULL(1) ? INFINITY : PG_GETARG_FLOAT8(1);
	Job job;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (isnan(timeout_s) || timeout_s < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the timeout must be a number of seconds, 0 or more")));
	look_at(PG_GETARG_INT64(0), false, &job);
	refuse_own(&job);
	for (;;)
	{
		const char *state = state_now(job.id, job.state, job.home);
		double left_s = timeout_s - (double) (ag_clock_ns() - began_ns) / 1e9;

		if (is_ended(state) || left_s <= 0)
			PG_RETURN_TEXT_P(cstring_to_text(state));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min((double) pause_ms, left_s * 1000 + 1),
						 ag_wait_event(AG_WAIT_JOB));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		pause_ms = Min(pause_ms + pause_ms / 4 + 1, LONGEST_WAIT_MS);
		look_at(job.id, false, &job);
	}
}

/* ---- ag_cancel ---- */

/* In the caller's transaction. False: it has just been started. */
static bool
cancel_queued(const Job *job)
{
	Oid types[2] = {INT8OID, INT8OID};
	Datum values[2] = {Int64GetDatum(job->id), Int64GetDatum(ag_clock_ns())};

	if (ag_catalog_execute_on("ag_job_order",
							  "DELETE FROM @.ag_job_order WHERE id = $1 AND NOT started", 1, types,
							  values, NULL, NULL, NULL) == 0)
		return false;
	ag_catalog_execute_on("ag_job",
						  "UPDATE @.ag_job SET state = 'cancelled', ended_at = clock_timestamp(), "
						  "ended_ns = $2, message = 'cancelled before it started' WHERE id = $1",
						  2, types, values, NULL, NULL, NULL);
	ag_job_notify(job->id);
	return true;
}

/* The worker itself writes down how it ended. */
static bool
cancel_running(Job *job)
{
	int64 give_up_ns = ag_clock_ns() + CANCEL_PATIENCE_NS;
	int64 signalled_ns = 0;

	for (;;)
	{
		int64 now = ag_clock_ns();

		if (now - signalled_ns >= SIGNAL_EVERY_NS)
		{
			int pid = ag_job_pid(job->id);

			if (pid != 0 && BackendPidGetProc(pid) != NULL)
				(void) kill(pid, SIGINT);
			signalled_ns = now;
		}
		look_at(job->id, false, job);
		if (is_ended(state_now(job->id, job->state, job->home)))
			return strcmp(job->state, "cancelled") == 0;
		if (now >= give_up_ns)
			ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
							errmsg("job " INT64_FORMAT " was told to stop, but has not", job->id),
							errhint("It may be waiting for a lock that this transaction holds.")));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, SHORTEST_WAIT_MS,
						 ag_wait_event(AG_WAIT_JOB));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

PG_FUNCTION_INFO_V1(ag_sql_cancel);

/* ag_cancel(job bigint) RETURNS boolean */
Datum
ag_sql_cancel(PG_FUNCTION_ARGS)
{
	Job job;

	ag_catalog_refuse_read_only("ag_cancel");
	look_at(PG_GETARG_INT64(0), false, &job);
	if (is_ended(job.state))
		PG_RETURN_BOOL(false);
	if (strcmp(job.state, "queued") == 0 && cancel_queued(&job))
		PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(cancel_running(&job));
}
