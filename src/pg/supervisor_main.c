/*
 * supervisor_main.c - the background worker between a session and its trainer.
 *
 * The session is at the other end of two queues. The worker is connected to no database, but it is a full member of the lock
 * manager: without that, its lease would outlive it.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/relay.h"
#include "pg/supervisor.h"

/* ---- the session, at the end of two queues ---- */

typedef struct Queues
{
	shm_mq_handle *rows, *results;
} Queues;

static AgRelayResult
relay_result(shm_mq_result result)
{
	return result == SHM_MQ_SUCCESS       ? AG_RELAY_DONE
		   : result == SHM_MQ_WOULD_BLOCK ? AG_RELAY_LATER
										  : AG_RELAY_GONE;
}

static AgRelayResult
next_rows(void *arg, const uint8 **bytes, Size *n_bytes)
{
	void *data;
	shm_mq_result result = shm_mq_receive(((Queues *) arg)->rows, n_bytes, &data, true);

	if (result == SHM_MQ_SUCCESS)
		*bytes = data;
	return relay_result(result);
}

static AgRelayResult
take_message(void *arg, uint8 kind, const uint8 *bytes, Size n_bytes)
{
	shm_mq_iovec parts[2];

	parts[0].data = (char *) &kind;
	parts[0].len = 1;
	parts[1].data = (const char *) bytes;
	parts[1].len = n_bytes;
	return relay_result(ag_shm_mq_sendv(((Queues *) arg)->results, parts, 2, true, true));
}

/* ---- start ---- */

static bool
attach(AgSupervisor *s, Queues *queues)
{
	AgSupervisorSegments segments;
	AgSupervisorOrders *orders;
	dsm_segment *rows_segment, *results_segment;
	shm_mq *queue;
	Size offset = MAXALIGN(sizeof(AgSupervisorOrders));

	memcpy(&segments, MyBgworkerEntry->bgw_extra, sizeof segments);
	rows_segment = dsm_attach(segments.rows);
	results_segment = dsm_attach(segments.results);
	if (rows_segment == NULL || results_segment == NULL)
		return false; /* the session has given up already */

	queue = dsm_segment_address(results_segment);
	shm_mq_set_sender(queue, MyProc);
	queues->results = shm_mq_attach(queue, results_segment, NULL);
	orders = dsm_segment_address(rows_segment);
	if (orders->magic != AG_SUPERVISOR_MAGIC ||
		strncmp(orders->build_id, AG_BUILD_ID, sizeof orders->build_id) != 0)
	{
		ag_relay_fail(s, AG_ERR_SYSTEM,
					  "the library ag_pg was replaced after this session loaded it",
					  "Connect again.");
		ag_relay_up(s);
		return false;
	}
	s->orders = *orders;
	queue = (shm_mq *) ((char *) orders + offset);
	shm_mq_set_receiver(queue, MyProc);
	queues->rows = shm_mq_attach(queue, rows_segment, NULL);
	return true;
}

static void
supervise(AgSupervisor *s)
{
	ag_supervisor_start(s);
	while (!ShutdownRequestPending)
	{
		AgSupervisorTurn turn = ag_supervisor_turn(s);

		if (turn == AG_TURN_OVER)
			return;
		if (turn == AG_TURN_WAIT && !ShutdownRequestPending)
			ag_supervisor_wait(s, 1000);
	}
}

/* An error of our own ends the fit, not just the worker: the session hears what it was. */
static void
report_error(AgSupervisor *s, const ErrorData *edata)
{
	AgError err;
	bool is_resources = ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES;

	ag_error_init(&err);
	ag_error_set(&err,
				 edata->sqlerrcode == ERRCODE_QUERY_CANCELED ? AG_ERR_CANCELLED
				 : is_resources                              ? AG_ERR_RESOURCES
															 : AG_ERR_SYSTEM,
				 "%s", edata->message != NULL ? edata->message : "unknown error");
	if (edata->hint != NULL)
		ag_error_hint(&err, "%s", edata->hint);
	ag_relay_error(s, &err);
	ag_relay_up(s);
}

void
ag_supervisor_main(Datum arg)
{
	AgSupervisor *s;
	Queues *queues;
	MemoryContext context;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	context = AllocSetContextCreate(TopMemoryContext, "ag_pg supervisor", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = ResourceOwnerCreate(NULL, "ag_pg supervisor");
	s = palloc0(sizeof(AgSupervisor));
	s->child.socket = s->child.log = s->child.pidfd = -1;
	queues = palloc0(sizeof(Queues));
	s->session.next_rows = next_rows;
	s->session.take = take_message;
	s->session.arg = queues;
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("ag_fit of process %d", (int) MyBgworkerEntry->bgw_notify_pid));

	PG_TRY();
	{
		if (attach(s, queues))
			supervise(s);
	}
	PG_CATCH();
	{
		ErrorData *edata;

		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		ag_supervisor_end(s);
		if (queues->results != NULL)
			report_error(s, edata);
	}
	PG_END_TRY();
	ag_supervisor_end(s);
	proc_exit(0);
}
