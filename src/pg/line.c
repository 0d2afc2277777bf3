/*
 * line.c - see line.h.
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
#include "pg/errors.h"
#include "pg/line.h"
#include "pg/settings.h"
#include "pg/supervisor.h"

#define TICK_NS INT64_C(200000000)
#define CLIENT_LOOK_NS INT64_C(500000000)
#define RETRY_MS 100

struct AgLine
{
	AgLineParams params;
	dsm_segment *rows_segment, *results_segment;
	shm_mq_handle *rows, *results;
	BackgroundWorkerHandle *worker; /* in TopTransactionContext: the abort still needs it */
	int64 last_poll_ns;
	int64 last_client_look_ns;
	/* the frame being put together */
	uint8 header_bytes[AG_FRAME_HEADER];
	uint32 n_header;
	AgFrameHeader header;
	uint8 *payload;
	uint32 n_payload, payload_size;
	bool finished; /* DONE has come: the supervisor may go now */
	MemoryContext context;
};

static void
check_client(AgLine *line)
{
	int64 now = ag_clock_ns();

	if (now - line->last_client_look_ns < CLIENT_LOOK_NS)
		return;
	line->last_client_look_ns = now;
	if (!ag_client_connected())
	{
		ClientConnectionLost = true;
		InterruptPending = true;
		CHECK_FOR_INTERRUPTS();
	}
}

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

static void
write_orders(AgLine *line)
{
	AgSupervisorOrders *orders = dsm_segment_address(line->rows_segment);

	memset(orders, 0, sizeof *orders);
	orders->magic = AG_SUPERVISOR_MAGIC;
	strlcpy(orders->build_id, AG_BUILD_ID, sizeof orders->build_id);
	orders->deadline_ns = line->params.deadline_ns;
	orders->memory_limit_bytes = line->params.memory_limit_bytes;
	orders->memory_total_bytes = ag_settings_memory_bytes();
	orders->num_cpus = ag_settings_cpus();
	orders->num_gpus = ag_setting_num_gpus;
	orders->max_fits = ag_setting_max_fits;
}

static bool
start_worker(AgLine *line)
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
wait_for_worker(AgLine *line)
{
	bool told = false;

	while (!start_worker(line))
	{
		if (!told && line->params.tell_waiting)
			ereport(NOTICE,
					(errmsg("waiting for a free background worker"),
					 errhint("All of max_worker_processes (%d) are taken.", max_worker_processes)));
		told = true;
		if (ag_clock_ns() >= line->params.deadline_ns)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker became free within the time limit of %g s",
							line->params.time_limit),
					 errhint("Raise max_worker_processes (now %d) or \"time_limit\", or run fewer "
							 "fits at a time.",
							 max_worker_processes)));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, RETRY_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		check_client(line);
	}
}

AgLine *
ag_line_open(const AgLineParams *params)
{
	AgLine *line = palloc0(sizeof(AgLine));
	Size offset = MAXALIGN(sizeof(AgSupervisorOrders));
	shm_mq *rows, *results;

	line->params = *params;
	line->context = CurrentMemoryContext;
	line->last_poll_ns = line->last_client_look_ns = ag_clock_ns();
	line->rows_segment = create_queue(AG_ROWS_QUEUE_BYTES, offset, &rows, true);
	line->results_segment = create_queue(AG_RESULTS_QUEUE_BYTES, 0, &results, false);
	write_orders(line);
	wait_for_worker(line);
	on_dsm_detach(line->rows_segment, end_supervisor, PointerGetDatum(line->worker));
	line->rows = shm_mq_attach(rows, line->rows_segment, line->worker);
	line->results = shm_mq_attach(results, line->results_segment, line->worker);
	return line;
}

/* ---- receiving ---- */

static void
hand_in(AgLine *line)
{
	line->n_header = 0;
	line->n_payload = 0;
	if (line->header.type == AG_FRAME_DONE)
		line->finished = true;
	line->params.frame(line->params.arg, &line->header, line->payload);
}

static void
begin_payload(AgLine *line)
{
	AgError err;

	ag_error_init(&err);
	ag_error_check(ag_frame_header_read(line->header_bytes, &line->header, &err), &err);
	if (line->header.n_bytes > line->payload_size)
	{
		if (line->payload != NULL)
			pfree(line->payload);
		line->payload = NULL;
		line->payload_size = 0;
		line->payload =
			MemoryContextAllocHuge(line->context, Max(line->header.n_bytes, AG_PIECE_BYTES));
		line->payload_size = Max(line->header.n_bytes, AG_PIECE_BYTES);
	}
}

/* Bytes of the trainer's stream: puts frames together. */
static void
take_stream(AgLine *line, const uint8 *bytes, Size n)
{
	while (n > 0)
	{
		Size take;

		if (line->n_header < AG_FRAME_HEADER)
		{
			take = Min(n, AG_FRAME_HEADER - line->n_header);
			memcpy(line->header_bytes + line->n_header, bytes, take);
			line->n_header += (uint32) take;
			if (line->n_header == AG_FRAME_HEADER)
				begin_payload(line);
		}
		else
		{
			take = Min(n, line->header.n_bytes - line->n_payload);
			memcpy(line->payload + line->n_payload, bytes, take);
			line->n_payload += (uint32) take;
		}
		bytes += take;
		n -= take;
		if (line->n_header == AG_FRAME_HEADER && line->n_payload == line->header.n_bytes)
			hand_in(line);
	}
}

/* A whole frame of the supervisor's. */
static void
take_own(AgLine *line, const uint8 *bytes, Size n)
{
	AgFrameHeader header;
	AgError err;

	ag_error_init(&err);
	if (n < AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	ag_error_check(ag_frame_header_read(bytes, &header, &err), &err);
	if (header.n_bytes != n - AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	line->params.frame(line->params.arg, &header, bytes + AG_FRAME_HEADER);
}

static void
supervisor_gone(void)
{
	CHECK_FOR_INTERRUPTS();
	ereport(ERROR, (errcode(ERRCODE_OPERATOR_INTERVENTION),
					errmsg("the fit's background worker ended unexpectedly"),
					errhint("It may have been terminated, or the server is shutting down; the "
							"server's log says more.")));
}

void
ag_line_poll(AgLine *line)
{
	line->last_poll_ns = ag_clock_ns();
	while (!line->finished)
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
			take_own(line, (uint8 *) message + 1, n - 1);
		else
			take_stream(line, (uint8 *) message + 1, n - 1);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ---- waiting ---- */

static void
check_deadline(AgLine *line, int64 deadline_ns, const char *message)
{
	if (ag_clock_ns() < deadline_ns)
		return;
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg(message, line->params.time_limit),
					errhint("Raise \"time_limit\" or train on fewer rows.")));
}

void
ag_line_tick(AgLine *line)
{
	CHECK_FOR_INTERRUPTS();
	if (ag_clock_ns() - line->last_poll_ns < TICK_NS)
		return;
	ag_line_poll(line);
	check_client(line);
	check_deadline(line, line->params.deadline_ns,
				   "the time limit of %g s passed while the rows were being read");
}

static void
sleep_on_latch(AgLine *line, long timeout_ms)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	check_client(line);
}

void
ag_line_wait(AgLine *line)
{
	sleep_on_latch(line, 500);
	ag_line_poll(line);
	check_deadline(line, line->params.give_up_ns,
				   "the trainer did not keep to the time limit of %g s");
}

void
ag_line_send(AgLine *line, const void *bytes, size_t n_bytes, bool flush)
{
	const char *at = bytes;

	while (n_bytes > 0)
	{
		Size n = Min(n_bytes, AG_PIECE_BYTES);
		shm_mq_result result = ag_shm_mq_send(line->rows, n, at, true, flush && n == n_bytes);

		if (result == SHM_MQ_DETACHED)
		{
			ag_line_poll(line); /* its reason, if it left one */
			supervisor_gone();
		}
		if (result == SHM_MQ_WOULD_BLOCK)
		{
			/* the same piece again when there is room; nothing else may be sent in between */
			ag_line_poll(line);
			sleep_on_latch(line, 200);
			check_deadline(line, line->params.deadline_ns,
						   "the time limit of %g s passed while the rows were being read");
			continue;
		}
		at += n;
		n_bytes -= n;
	}
}

/* ---- the end ---- */

void
ag_line_close(AgLine *line)
{
	int64 patience_ns = ag_clock_ns() + INT64_C(1000000000);
	pid_t pid;

	dsm_detach(line->results_segment);
	dsm_detach(line->rows_segment);
	while (GetBackgroundWorkerPid(line->worker, &pid) != BGWH_STOPPED &&
		   ag_clock_ns() < patience_ns)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(line->worker);
	if (line->payload != NULL)
		pfree(line->payload);
	pfree(line);
}
