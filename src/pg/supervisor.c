/*
 * supervisor.c - see supervisor.h.
 *
 * One loop around one wait set: pieces of rows go from the queue to the child's socket, frames from the socket to
 * the other queue, each as far as it goes without waiting. It computes nothing, so it is always there for SIGTERM, for barriers
 * (CHECK_FOR_INTERRUPTS, else DROP DATABASE of any database would hang) and for the end of either side. It is connected to
 * no database, but it is a full member of the lock manager: without that, its lease would outlive it.
 */
#include "postgres.h"

#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "engine/base/context.h"
#include "pg/child.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/lease.h"
#include "pg/supervisor.h"
#include "wire/message.h"

#define LEASE_POLL_MS 100
#define EXIT_PATIENCE_NS INT64_C(2000000000) /* between the last frame and the child's end */
#define SMALL_FRAME 1024                     /* HELLO and NEED fit */

typedef struct Supervisor
{
	AgSupervisorOrders orders;
	shm_mq_handle *rows, *results;
	AgChild child;
	AgLease lease;
	/* to the child */
	const uint8 *down;
	Size n_down;
	bool down_full; /* the socket took less than it was given */
	uint8 grant[SMALL_FRAME];
	Size n_grant;
	/* from the child */
	uint8 *up; /* AG_PIECE_BYTES read from the socket */
	Size up_at, up_end;
	uint8 header[AG_FRAME_HEADER];
	uint32 n_header;
	uint32 payload_left;
	bool swallow; /* the frame is for us */
	AgFrameType type;
	uint8 small[SMALL_FRAME];
	uint32 n_small;
	bool said_hello;
	bool ended;  /* DONE or ERROR went by, or we made an ERROR ourselves */
	bool broken; /* the child is no use any more: what it says is thrown away */
	bool eof;
	int64 eof_ns;
	/* to the session */
	uint8 kind; /* of the message being sent */
	const uint8 *message;
	Size n_message;
	bool results_full;
	bool session_gone;
	List *own; /* StringInfo: frames of ours that wait */
	/* the lease */
	bool wants;
	bool told_waiting;
	AgLeaseWant want;
	int64 next_try_ns;
} Supervisor;

/* For the exit callback: the process's only child. */
static AgChild *child_to_kill = NULL;

static void
kill_child(int code, Datum arg)
{
	if (child_to_kill != NULL)
		ag_child_kill(child_to_kill);
	child_to_kill = NULL;
}

/* ---- frames of our own ---- */

static void
send_own(Supervisor *s, AgFrameType type, const AgWriter *payload)
{
	StringInfo frame = makeStringInfo();
	uint8 header[AG_FRAME_HEADER];

	ag_frame_header_write(header, type, (uint32) payload->size);
	appendBinaryStringInfo(frame, (char *) header, AG_FRAME_HEADER);
	appendBinaryStringInfo(frame, (char *) payload->data, (int) payload->size);
	s->own = lappend(s->own, frame);
}

static void
send_error(Supervisor *s, const AgError *err)
{
	AgWriter payload;
	AgMem mem;

	if (s->ended)
		return;
	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_error_write(&payload, err);
	if (!payload.failed)
		send_own(s, AG_FRAME_ERROR, &payload);
	ag_writer_free(&payload);
	s->ended = true;
}

static void
fail(Supervisor *s, AgStatus status, const char *message, const char *hint)
{
	AgError err;

	ag_error_init(&err);
	ag_error_set(&err, status, "%s", message);
	if (hint[0] != '\0')
		ag_error_hint(&err, "%s", hint);
	send_error(s, &err);
}

/* The child must go, whatever it still has to say. An error was sent before. */
static void
drop_child(Supervisor *s)
{
	ag_child_kill(&s->child);
	s->broken = true;
	s->up_at = s->up_end = 0;
}

static void
send_log(Supervisor *s, const char *text, const char *hint)
{
	AgMsgLog log = {AG_LOG_NORMAL, text, hint};
	AgWriter payload;
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_log_write(&payload, &log);
	if (!payload.failed)
		send_own(s, AG_FRAME_LOG, &payload);
	ag_writer_free(&payload);
}

/* ---- the lease ---- */

static void
grant(Supervisor *s)
{
	AgMsgGrant msg;
	AgWriter payload;
	AgMem mem;

	msg.memory_bytes = Min(s->lease.memory_bytes, s->orders.memory_limit_bytes);
	msg.num_cpus = s->lease.num_cpus;
	msg.time_left = s->orders.deadline_ns == INT64_MAX
						? INFINITY
						: (double) (s->orders.deadline_ns - ag_clock_ns()) / 1e9;
	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_grant_write(&payload, &msg);
	if (payload.failed || payload.size > SMALL_FRAME - AG_FRAME_HEADER)
		elog(ERROR, "could not write a grant");
	ag_frame_header_write(s->grant, AG_FRAME_GRANT, (uint32) payload.size);
	memcpy(s->grant + AG_FRAME_HEADER, payload.data, payload.size);
	s->n_grant = AG_FRAME_HEADER + payload.size;
	ag_writer_free(&payload);
	s->wants = false;
}

static void
try_lease(Supervisor *s)
{
	const char *lacking = NULL;
	int64 now = ag_clock_ns();

	if (!s->wants || s->ended || now < s->next_try_ns)
		return;
	s->next_try_ns = now + LEASE_POLL_MS * INT64_C(1000000);
	if (ag_lease_try(&s->lease, &s->orders, &s->want, &lacking))
	{
		grant(s);
		return;
	}
	if (lacking != NULL && !s->told_waiting)
	{
		send_log(s, psprintf("waiting for %s: other fits are running", lacking), "");
		s->told_waiting = true;
	}
	if (now >= s->orders.deadline_ns)
	{
		fail(s, AG_ERR_RESOURCES,
			 psprintf("the time limit passed while waiting for %s",
					  lacking != NULL ? lacking : "other fits"),
			 "Run fewer fits at a time, or raise \"time_limit\" or the setting.");
		drop_child(s);
	}
}

static void
check_need(Supervisor *s)
{
	double need_gb = (double) s->want.memory_bytes / 1e9;
	double limit_gb = (double) s->orders.memory_limit_bytes / 1e9;

	if (s->want.memory_bytes <= s->orders.memory_limit_bytes)
		return;
	fail(s, AG_ERR_MEMORY,
		 psprintf("the fit needs about %.2f GB of memory and may use %.2f GB", need_gb, limit_gb),
		 "Train on fewer rows or columns, or raise ag_pg.memory_limit (or the option "
		 "\"memory_limit\").");
	drop_child(s);
}

/* ---- frames for us ---- */

static void
read_hello(Supervisor *s, AgArena *arena)
{
	AgMsgHello hello;
	AgError err;

	ag_error_init(&err);
	if (ag_msg_hello_read(arena, s->small, s->n_small, &hello, &err) != AG_OK)
	{
		send_error(s, &err);
		drop_child(s);
		return;
	}
	s->said_hello = true;
	if (hello.wire_version == AG_WIRE_VERSION && strcmp(hello.build_id, AG_BUILD_ID) == 0)
		return;
	fail(s, AG_ERR_SYSTEM,
		 psprintf("the program ag_trainer is of build %.60s, the library of build %s",
				  hello.build_id, AG_BUILD_ID),
		 "Install both from one package, then connect again.");
	drop_child(s);
}

static void
read_need(Supervisor *s, AgArena *arena)
{
	AgMsgNeed need;
	AgError err;

	ag_error_init(&err);
	if (ag_msg_need_read(arena, s->small, s->n_small, &need, &err) != AG_OK)
	{
		send_error(s, &err);
		drop_child(s);
		return;
	}
	s->want.memory_bytes = Max(need.memory_bytes, 0);
	s->want.num_cpus = Max(need.num_cpus, 0);
	s->want.num_gpus = need.num_gpus > 0 ? need.num_gpus : 0;
	s->wants = true;
	s->next_try_ns = 0;
	check_need(s);
	try_lease(s);
}

static void
read_small(Supervisor *s)
{
	AgMem mem;
	AgArena arena;

	ag_mem_init(&mem, INT64_MAX);
	ag_arena_init(&arena, &mem);
	if (s->type == AG_FRAME_HELLO)
		read_hello(s, &arena);
	else
		read_need(s, &arena);
	ag_arena_free(&arena);
}

/* ---- from the child to the session ---- */

/* A header is complete: for us, or the first piece of a frame to pass on. */
static bool
begin_frame(Supervisor *s)
{
	AgFrameHeader header;
	AgError err;

	ag_error_init(&err);
	if (ag_frame_header_read(s->header, &header, &err) != AG_OK)
	{
		send_error(s, &err);
		drop_child(s);
		return false;
	}
	s->type = header.type;
	s->payload_left = header.n_bytes;
	s->swallow = header.type == AG_FRAME_HELLO || header.type == AG_FRAME_NEED;
	s->n_small = 0;
	if ((s->swallow && header.n_bytes > SMALL_FRAME) ||
		(!s->said_hello && header.type != AG_FRAME_HELLO))
	{
		fail(s, AG_ERR_PROTOCOL, "the trainer does not keep to the protocol",
			 "The program ag_trainer may be of another version than the library.");
		drop_child(s);
		return false;
	}
	return true;
}

static void
end_frame(Supervisor *s)
{
	s->n_header = 0;
	if (s->swallow)
		read_small(s);
	else if (s->type == AG_FRAME_DONE || s->type == AG_FRAME_ERROR)
		s->ended = true;
}

/* The next piece of the stream to pass on, out of what was read; false: nothing left. */
static bool
next_piece(Supervisor *s)
{
	while (s->up_at < s->up_end && !s->broken)
	{
		const uint8 *at = s->up + s->up_at;
		Size left = s->up_end - s->up_at;
		Size take;

		if (s->n_header < AG_FRAME_HEADER)
		{
			take = Min(left, AG_FRAME_HEADER - s->n_header);
			memcpy(s->header + s->n_header, at, take);
			s->n_header += (uint32) take;
			s->up_at += take;
			if (s->n_header < AG_FRAME_HEADER)
				return false;
			if (!begin_frame(s))
				return false;
			if (s->payload_left == 0)
				end_frame(s);
			if (s->swallow)
				continue;
			s->message = s->header;
			s->n_message = AG_FRAME_HEADER;
			return true;
		}
		take = Min(left, s->payload_left);
		s->up_at += take;
		s->payload_left -= (uint32) take;
		if (s->swallow)
		{
			memcpy(s->small + s->n_small, at, take);
			s->n_small += (uint32) take;
		}
		if (s->payload_left == 0)
			end_frame(s);
		if (s->swallow)
			continue;
		s->message = at;
		s->n_message = take;
		return true;
	}
	return false;
}

/* The next message for the session: what the trainer says comes first as far as it is here, then ours. */
static bool
next_message(Supervisor *s)
{
	if (next_piece(s))
	{
		s->kind = AG_PIECE_STREAM;
		return true;
	}
	if (s->own != NIL)
	{
		StringInfo frame = linitial(s->own);

		s->own = list_delete_first(s->own);
		s->kind = AG_PIECE_OWN;
		s->message = (uint8 *) frame->data;
		s->n_message = (Size) frame->len;
		return true;
	}
	return false;
}

static void
read_socket(Supervisor *s)
{
	ssize_t n;

	do
		n = recv(s->child.socket, s->up, AG_PIECE_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0)
	{
		s->up_at = 0;
		s->up_end = (Size) n;
	}
	else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
	{
		s->eof = true;
		s->eof_ns = ag_clock_ns();
	}
}

/* Passes on all that can be without waiting. */
static void
push_up(Supervisor *s)
{
	s->results_full = false;
	for (;;)
	{
		shm_mq_iovec parts[2];
		shm_mq_result result;

		if (s->message == NULL && !next_message(s))
		{
			if (s->eof || s->child.socket < 0)
				return;
			read_socket(s);
			if (s->up_at >= s->up_end)
				return;
			continue;
		}
		parts[0].data = (char *) &s->kind;
		parts[0].len = 1;
		parts[1].data = (const char *) s->message;
		parts[1].len = s->n_message;
		result = ag_shm_mq_sendv(s->results, parts, 2, true, true);
		if (result == SHM_MQ_WOULD_BLOCK)
		{
			s->results_full = true;
			return;
		}
		if (result == SHM_MQ_DETACHED)
		{
			s->session_gone = true;
			return;
		}
		s->message = NULL;
	}
}

/* ---- from the session to the child ---- */

/* The next bytes for the child: a grant waits for the end of the piece before it. */
static bool
next_down(Supervisor *s)
{
	void *data;
	Size n;
	shm_mq_result result;

	if (s->n_grant > 0)
	{
		s->down = s->grant;
		s->n_down = s->n_grant;
		s->n_grant = 0;
		return true;
	}
	result = shm_mq_receive(s->rows, &n, &data, true);
	if (result == SHM_MQ_DETACHED)
		s->session_gone = true;
	if (result != SHM_MQ_SUCCESS)
		return false;
	s->down = data;
	s->n_down = n;
	return true;
}

static void
push_down(Supervisor *s)
{
	s->down_full = false;
	while (s->child.socket >= 0 && !s->eof)
	{
		ssize_t n;

		if (s->n_down == 0 && !next_down(s))
			return;
		n = send(s->child.socket, s->down, s->n_down, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			s->down_full = true;
			return;
		}
		if (n < 0)
		{
			s->n_down = 0; /* the child is gone; its end of file says the rest */
			return;
		}
		s->down += n;
		s->n_down -= (Size) n;
	}
}

/* ---- the end of the child ---- */

static void
tell_end(Supervisor *s)
{
	char how[128];
	const char *hint = "The server's log may say more.";

	ag_child_describe_end(&s->child, how, sizeof how);
	if (strstr(how, "signal 9") != NULL)
		hint = "The system may have run out of memory: lower ag_pg.memory_limit (or the option "
			   "\"memory_limit\"), or train on fewer rows.";
	fail(s, AG_ERR_SYSTEM, psprintf("the program ag_trainer %s", how), hint);
}

/* True when all is said and the child is gone. */
static bool
is_over(Supervisor *s)
{
	bool reaped;

	if (s->session_gone)
		return true;
	reaped = ag_child_reap(&s->child);
	if (reaped)
		ag_lease_release(&s->lease);
	if (reaped && !s->eof && s->child.socket >= 0 && s->message == NULL && s->up_at >= s->up_end)
		read_socket(s); /* what it left behind, up to the end of file */
	if (reaped && s->child.socket < 0)
		s->eof = true;
	if (!reaped && (s->eof || s->ended) && s->child.pid != 0)
	{
		if (s->eof_ns == 0)
			s->eof_ns = ag_clock_ns();
		if (ag_clock_ns() - s->eof_ns > EXIT_PATIENCE_NS)
			ag_child_kill(&s->child);
	}
	if (!reaped || !s->eof || s->up_at < s->up_end)
		return false;
	if (!s->ended)
	{
		ag_child_read_log(&s->child);
		tell_end(s);
	}
	return s->message == NULL && s->own == NIL;
}

/* ---- waiting ---- */

static long
wait_timeout(const Supervisor *s)
{
	if (s->wants)
		return LEASE_POLL_MS;
	if (s->eof || s->ended || s->child.pidfd < 0)
		return 20;
	return 1000;
}

/*
 * Made anew each time: what is waited for changes with every turn, and a wait comes only after all that could be done
 * without waiting was done.
 */
static void
wait_for_something(Supervisor *s)
{
	WaitEventSet *set = ag_wait_set_create(5);
	WaitEvent event;
	uint32 socket_events = 0;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	if (s->child.socket >= 0 && !s->eof)
	{
		if (!s->results_full)
			socket_events |= WL_SOCKET_READABLE;
		if (s->down_full)
			socket_events |= WL_SOCKET_WRITEABLE;
	}
	if (socket_events != 0)
		AddWaitEventToSet(set, socket_events, s->child.socket, NULL, NULL);
	if (s->child.log >= 0)
		AddWaitEventToSet(set, WL_SOCKET_READABLE, s->child.log, NULL, NULL);
	if (s->child.pidfd >= 0)
		AddWaitEventToSet(set, WL_SOCKET_READABLE, s->child.pidfd, NULL, NULL);
	(void) WaitEventSetWait(set, wait_timeout(s), &event, 1, PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
}

static void
supervise(Supervisor *s)
{
	char reason[512], hint[512];

	if (!ag_child_start(&s->child, reason, sizeof reason, hint, sizeof hint))
	{
		fail(s, AG_ERR_SYSTEM, reason, hint);
		s->child.reaped = true;
		s->eof = true;
	}
	child_to_kill = &s->child;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			return;
		push_down(s);
		push_up(s);
		ag_child_read_log(&s->child);
		try_lease(s);
		if (is_over(s))
			return;
		if (s->n_grant > 0 || ((s->own != NIL || s->up_at < s->up_end) && !s->results_full))
			continue;
		wait_for_something(s);
	}
}

/* ---- start ---- */

static bool
attach(Supervisor *s)
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
	s->results = shm_mq_attach(queue, results_segment, NULL);
	orders = dsm_segment_address(rows_segment);
	if (orders->magic != AG_SUPERVISOR_MAGIC ||
		strncmp(orders->build_id, AG_BUILD_ID, sizeof orders->build_id) != 0)
	{
		fail(s, AG_ERR_SYSTEM, "the library ag_pg was replaced after this session loaded it",
			 "Connect again.");
		push_up(s);
		return false;
	}
	s->orders = *orders;
	queue = (shm_mq *) ((char *) orders + offset);
	shm_mq_set_receiver(queue, MyProc);
	s->rows = shm_mq_attach(queue, rows_segment, NULL);
	return true;
}

/* An error of our own ends the fit, not just the worker: the session hears what it was. */
static void
report_error(Supervisor *s, const ErrorData *edata)
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
	send_error(s, &err);
	push_up(s);
}

void
ag_supervisor_main(Datum arg)
{
	Supervisor *s;
	MemoryContext context;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	context = AllocSetContextCreate(TopMemoryContext, "ag_pg supervisor", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = ResourceOwnerCreate(NULL, "ag_pg supervisor");
	s = palloc0(sizeof(Supervisor));
	s->child.socket = s->child.log = s->child.pidfd = -1;
	s->up = palloc(AG_PIECE_BYTES);
	before_shmem_exit(kill_child, (Datum) 0);
	pgstat_report_activity(STATE_RUNNING,
						   psprintf("ag_fit of process %d", (int) MyBgworkerEntry->bgw_notify_pid));

	PG_TRY();
	{
		if (attach(s))
			supervise(s);
	}
	PG_CATCH();
	{
		ErrorData *edata;

		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		kill_child(0, (Datum) 0);
		if (s->results != NULL)
			report_error(s, edata);
	}
	PG_END_TRY();
	kill_child(0, (Datum) 0);
	ag_lease_release(&s->lease);
	proc_exit(0);
}
