/*
 * link.c - see link.h.
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
#include "pg/link.h"
#include "pg/settings.h"
#include "pg/supervisor.h"

#define TICK_NS INT64_C(200000000)
#define CLIENT_LOOK_NS INT64_C(500000000)
#define RETRY_MS 100

struct AgLink
{
	AgLinkParams params;
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
	MemoryContext context;
};

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
write_orders(AgLink *link)
{
	AgSupervisorOrders *orders = dsm_segment_address(link->rows_segment);

	memset(orders, 0, sizeof *orders);
	orders->magic = AG_SUPERVISOR_MAGIC;
	strlcpy(orders->build_id, AG_BUILD_ID, sizeof orders->build_id);
	orders->deadline_ns = link->params.deadline_ns;
	orders->memory_limit_bytes = link->params.memory_limit_bytes;
	orders->memory_total_bytes = ag_settings_memory_bytes();
	orders->num_cpus = ag_settings_cpus();
	orders->num_gpus = ag_setting_num_gpus;
	orders->max_fits = ag_setting_max_fits;
}

static bool
start_worker(AgLink *link)
{
	BackgroundWorker worker = {0};
	AgSupervisorSegments segments;
	MemoryContext old;
	bool started;

	segments.rows = dsm_segment_handle(link->rows_segment);
	segments.results = dsm_segment_handle(link->results_segment);
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
	started = RegisterDynamicBackgroundWorker(&worker, &link->worker);
	MemoryContextSwitchTo(old);
	return started;
}

static void
wait_for_worker(AgLink *link)
{
	bool told = false;

	while (!start_worker(link))
	{
		if (!told && link->params.tell_waiting)
			ereport(NOTICE,
					(errmsg("waiting for a free background worker"),
					 errhint("All of max_worker_processes (%d) are taken.", max_worker_processes)));
		told = true;
		if (ag_clock_ns() >= link->params.deadline_ns)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker became free within the time limit of %g s",
							link->params.time_limit),
					 errhint("Raise max_worker_processes (now %d) or \"time_limit\", or run fewer "
							 "fits at a time.",
							 max_worker_processes)));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, RETRY_MS,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

AgLink *
ag_link_open(const AgLinkParams *params)
{
	AgLink *link = palloc0(sizeof(AgLink));
	Size offset = MAXALIGN(sizeof(AgSupervisorOrders));
	shm_mq *rows, *results;

	link->params = *params;
	link->context = CurrentMemoryContext;
	link->last_poll_ns = link->last_client_look_ns = ag_clock_ns();
	link->rows_segment = create_queue(AG_ROWS_QUEUE_BYTES, offset, &rows, true);
	link->results_segment = create_queue(AG_RESULTS_QUEUE_BYTES, 0, &results, false);
	write_orders(link);
	wait_for_worker(link);
	on_dsm_detach(link->rows_segment, end_supervisor, PointerGetDatum(link->worker));
	link->rows = shm_mq_attach(rows, link->rows_segment, link->worker);
	link->results = shm_mq_attach(results, link->results_segment, link->worker);
	return link;
}

/* ---- receiving ---- */

static void
hand_in(AgLink *link)
{
	link->n_header = 0;
	link->n_payload = 0;
	link->params.frame(link->params.arg, &link->header, link->payload);
}

static void
begin_payload(AgLink *link)
{
	AgError err;

	ag_error_init(&err);
	ag_error_check(ag_frame_header_read(link->header_bytes, &link->header, &err), &err);
	if (link->header.n_bytes > link->payload_size)
	{
		if (link->payload != NULL)
			pfree(link->payload);
		link->payload = NULL;
		link->payload_size = 0;
		link->payload =
			MemoryContextAllocHuge(link->context, Max(link->header.n_bytes, AG_PIECE_BYTES));
		link->payload_size = Max(link->header.n_bytes, AG_PIECE_BYTES);
	}
}

/* Bytes of the trainer's stream: puts frames together. */
static void
take_stream(AgLink *link, const uint8 *bytes, Size n)
{
	while (n > 0)
	{
		Size take;

		if (link->n_header < AG_FRAME_HEADER)
		{
			take = Min(n, AG_FRAME_HEADER - link->n_header);
			memcpy(link->header_bytes + link->n_header, bytes, take);
			link->n_header += (uint32) take;
			if (link->n_header == AG_FRAME_HEADER)
				begin_payload(link);
		}
		else
		{
			take = Min(n, link->header.n_bytes - link->n_payload);
			memcpy(link->payload + link->n_payload, bytes, take);
			link->n_payload += (uint32) take;
		}
		bytes += take;
		n -= take;
		if (link->n_header == AG_FRAME_HEADER && link->n_payload == link->header.n_bytes)
			hand_in(link);
	}
}

/* A whole frame of the supervisor's. */
static void
take_own(AgLink *link, const uint8 *bytes, Size n)
{
	AgFrameHeader header;
	AgError err;

	ag_error_init(&err);
	if (n < AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	ag_error_check(ag_frame_header_read(bytes, &header, &err), &err);
	if (header.n_bytes != n - AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	link->params.frame(link->params.arg, &header, bytes + AG_FRAME_HEADER);
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
ag_link_poll(AgLink *link)
{
	link->last_poll_ns = ag_clock_ns();
	for (;;)
	{
		Size n;
		void *message;
		shm_mq_result result = shm_mq_receive(link->results, &n, &message, true);

		if (result == SHM_MQ_WOULD_BLOCK)
			return;
		if (result == SHM_MQ_DETACHED)
			supervisor_gone();
		if (n < 1)
			elog(ERROR, "malformed message of the supervisor");
		if (*(uint8 *) message == AG_PIECE_OWN)
			take_own(link, (uint8 *) message + 1, n - 1);
		else
			take_stream(link, (uint8 *) message + 1, n - 1);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ---- waiting ---- */

static void
check_client(AgLink *link)
{
	int64 now = ag_clock_ns();

	if (now - link->last_client_look_ns < CLIENT_LOOK_NS)
		return;
	link->last_client_look_ns = now;
	if (!ag_client_connected())
	{
		ClientConnectionLost = true;
		InterruptPending = true;
		CHECK_FOR_INTERRUPTS();
	}
}

static void
check_deadline(AgLink *link, int64 deadline_ns, const char *message)
{
	if (ag_clock_ns() < deadline_ns)
		return;
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg(message, link->params.time_limit),
					errhint("Raise \"time_limit\" or train on fewer rows.")));
}

void
ag_link_tick(AgLink *link)
{
	CHECK_FOR_INTERRUPTS();
	if (ag_clock_ns() - link->last_poll_ns < TICK_NS)
		return;
	ag_link_poll(link);
	check_client(link);
	check_deadline(link, link->params.deadline_ns,
				   "the time limit of %g s passed while the rows were being read");
}

static void
sleep_on_latch(AgLink *link, long timeout_ms)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	check_client(link);
}

void
ag_link_wait(AgLink *link)
{
	sleep_on_latch(link, 500);
	ag_link_poll(link);
	check_deadline(link, link->params.give_up_ns,
				   "the trainer did not keep to the time limit of %g s");
}

void
ag_link_send(AgLink *link, const void *bytes, size_t n_bytes, bool flush)
{
	const char *at = bytes;

	while (n_bytes > 0)
	{
		Size n = Min(n_bytes, AG_PIECE_BYTES);
		shm_mq_result result = ag_shm_mq_send(link->rows, n, at, true, flush && n == n_bytes);

		if (result == SHM_MQ_DETACHED)
		{
			ag_link_poll(link); /* its reason, if it left one */
			supervisor_gone();
		}
		if (result == SHM_MQ_WOULD_BLOCK)
		{
			/* the same piece again when there is room; nothing else may be sent in between */
			ag_link_poll(link);
			sleep_on_latch(link, 200);
			check_deadline(link, link->params.deadline_ns,
						   "the time limit of %g s passed while the rows were being read");
			continue;
		}
		at += n;
		n_bytes -= n;
	}
}

/* ---- the end ---- */

void
ag_link_close(AgLink *link)
{
	int64 patience_ns = ag_clock_ns() + INT64_C(1000000000);
	pid_t pid;

	dsm_detach(link->results_segment);
	dsm_detach(link->rows_segment);
	while (GetBackgroundWorkerPid(link->worker, &pid) != BGWH_STOPPED &&
		   ag_clock_ns() < patience_ns)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(link->worker);
	if (link->payload != NULL)
		pfree(link->payload);
	pfree(link);
}
