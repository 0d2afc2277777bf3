/*
 * line_supervised.c - a line whose trainer is watched over by a supervisor, a background worker started for it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/memutils.h"

#include "engine/base/context.h"
#include "pg/compat.h"
#include "pg/line_private.h"
#include "pg/settings.h"

#define RETRY_MS 100

typedef struct SupervisedLine
{
	AgLine line; /* first */
	dsm_segment *rows_segment, *results_segment;
	shm_mq_handle *rows, *results;
	BackgroundWorkerHandle *worker; /* in TopTransactionContext: the abort still needs it */
} SupervisedLine;

/* ---- starting ---- */

/* The segment goes, so the session has given up or is done: the supervisor must not outlive that. */
static void
end_supervisor(dsm_segment *segment, Datum arg)
{
	TerminateBackgroundWorker((BackgroundWorkerHandle *) DatumGetPointer(arg));
}

static dsm_segment *
create_queue(Size n_bytes, Size offset, shm_mq **queue, bool is_sender)
{
	dsm_segment *segment = dsm_create(offset + n_bytes, 0);

	*queue = shm_mq_create((char *) dsm_segment_address(segment) + offset, n_bytes);
	if (is_sender)
		shm_mq_set_sender(*queue, MyProc);
	else
		shm_mq_set_receiver(*queue, MyProc);
	return segment;
}

static bool
start_worker(SupervisedLine *line)
{
	BackgroundWorker worker = {0};
	AgSupervisorSegments segments;
	MemoryContext old;
	bool started;

	segments.rows = dsm_segment_handle(line->rows_segment);
	segments.results = dsm_segment_handle(line->results_segment);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_library_name, "ag_pg", sizeof worker.bgw_library_name);
	strlcpy(worker.bgw_function_name, AG_SUPERVISOR_FUNCTION, sizeof worker.bgw_function_name);
	strlcpy(worker.bgw_type, AG_SUPERVISOR_TYPE, sizeof worker.bgw_type);
	snprintf(worker.bgw_name, sizeof worker.bgw_name, "ag_pg supervisor of %d", MyProcPid);
	memcpy(worker.bgw_extra, &segments, sizeof segments);

	old = MemoryContextSwitchTo(TopTransactionContext);
	started = RegisterDynamicBackgroundWorker(&worker, &line->worker);
	MemoryContextSwitchTo(old);
	return started;
}

static void
wait_for_worker(SupervisedLine *line)
{
	bool told = false;

	while (!start_worker(line))
	{
		if (!told && line->line.params.tell_waiting)
			ereport(NOTICE,
					(errmsg("waiting for a free background worker"),
					 errhint("All of max_worker_processes (%d) are taken.", max_worker_processes)));
		told = true;
		if (ag_clock_ns() >= line->line.params.deadline_ns)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker became free within the time limit of %g s",
							line->line.params.time_limit),
					 errhint("Raise max_worker_processes (now %d) or \"time_limit\", or run fewer "
							 "fits at a time.",
							 max_worker_processes)));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, RETRY_MS,
						 ag_wait_event(AG_WAIT_WORKER));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		ag_line_check_client(&line->line);
	}
}

/* ---- the kind's functions ---- */

static void
supervisor_gone(void)
{
	CHECK_FOR_INTERRUPTS();
	ereport(ERROR, (errcode(ERRCODE_OPERATOR_INTERVENTION),
					errmsg("the fit's background worker ended unexpectedly"),
					errhint("It may have been terminated, or the server is shutting down; the "
							"server's log says more.")));
}

static void
poll_supervisor(AgLine *common)
{
	SupervisedLine *line = (SupervisedLine *) common;

	while (!common->finished)
	{
		Size n;
		void *message;
		shm_mq_result result = shm_mq_receive(line->results, &n, &message, true);

		if (result == SHM_MQ_WOULD_BLOCK)
			return;
		if (result == SHM_MQ_DETACHED)
			supervisor_gone();
		if (n < 1)
			elog(ERROR, "malformed message of the supervisor");
		if (*(uint8 *) message == AG_PIECE_OWN)
			ag_line_take_own(common, (uint8 *) message + 1, n - 1);
		else
			ag_line_take_stream(common, (uint8 *) message + 1, n - 1);
		CHECK_FOR_INTERRUPTS();
	}
}

static Size
put_to_supervisor(AgLine *common, const void *bytes, Size n_bytes, bool flush)
{
	SupervisedLine *line = (SupervisedLine *) common;
	shm_mq_result result = ag_shm_mq_send(line->rows, n_bytes, bytes, true, flush);

	if (result == SHM_MQ_DETACHED)
	{
		ag_line_poll(common); /* its reason, if it left one */
		supervisor_gone();
	}
	return result == SHM_MQ_SUCCESS ? n_bytes : 0;
}

static void
sleep_on_latch(AgLine *common, long timeout_ms)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
					 ag_wait_event(AG_WAIT_FIT));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	ag_line_check_client(common);
}

/* Waits up to a second for the supervisor to go. */
static void
leave_supervisor(AgLine *common)
{
	SupervisedLine *line = (SupervisedLine *) common;
	int64 patience_ns = ag_clock_ns() + INT64_C(1000000000);
	pid_t pid;

	dsm_detach(line->results_segment);
	dsm_detach(line->rows_segment);
	while (GetBackgroundWorkerPid(line->worker, &pid) != BGWH_STOPPED &&
		   ag_clock_ns() < patience_ns)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 ag_wait_event(AG_WAIT_WORKER));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(line->worker);
}

static const AgLineKind supervised = {poll_supervisor, put_to_supervisor, sleep_on_latch,
									  leave_supervisor};

AgLine *
ag_line_open(const AgLineParams *params)
{
	SupervisedLine *line = palloc0(sizeof(SupervisedLine));
	Size offset = MAXALIGN(sizeof(AgSupervisorOrders));
	shm_mq *rows, *results;

	ag_line_begin(&line->line, &supervised, params);
	line->rows_segment = create_queue(AG_ROWS_QUEUE_BYTES, offset, &rows, true);
	line->results_segment = create_queue(AG_RESULTS_QUEUE_BYTES, 0, &results, false);
	ag_line_write_orders(&line->line, dsm_segment_address(line->rows_segment));
	wait_for_worker(line);
	on_dsm_detach(line->rows_segment, end_supervisor, PointerGetDatum(line->worker));
	line->rows = shm_mq_attach(rows, line->rows_segment, line->worker);
	line->results = shm_mq_attach(results, line->results_segment, line->worker);
	return &line->line;
}
