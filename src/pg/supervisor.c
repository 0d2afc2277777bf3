/*
 * supervisor.c - see supervisor.h.
 *
 * Turns around one wait set: pieces of rows go from the session to the child's socket, frames from the socket to the
 * session, each as far as it goes without waiting. It computes nothing, so it is always there for SIGTERM, for barriers
 * (CHECK_FOR_INTERRUPTS, else DROP DATABASE of any database would hang) and for the end of either side.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"

#include "engine/base/context.h"
#include "pg/child.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/relay.h"
#include "pg/supervisor.h"
#include "wire/message.h"

#define LEASE_POLL_MS 100
#define TELL_WAITING_NS INT64_C(250000000)
#define EXIT_PATIENCE_NS INT64_C(2000000000) /* between the last frame and the child's end */

/* For the exit callback: the process's only child. */
static AgChild *child_to_kill = NULL;

static void
kill_child(int code, Datum arg)
{
	if (child_to_kill != NULL)
		ag_child_kill(child_to_kill);
	child_to_kill = NULL;
}

/* ---- the lease ---- */

static void
grant(AgSupervisor *s)
{
	AgMsgGrant msg;
	AgWriter payload;
	AgMem mem;

	msg.memory_bytes = Min(s->lease.memory_bytes, s->orders.memory_limit_bytes);
	msg.num_cpus = s->lease.num_cpus;
	msg.time_left = s->orders.deadline_ns == INT64_MAX
						? INFINITY
						: (double) (s->orders.deadline_ns - ag_clock_ns()) / 1e9;
	msg.gpu_memory_fraction = s->orders.gpu_memory_fraction;
	msg.n_gpus = 0;
	for (int device = 0; device < AG_MAX_GPUS; device++)
		if (s->lease.gpu_shares[device] > 0)
		{
			msg.gpus[msg.n_gpus].device = device;
			msg.gpus[msg.n_gpus++].shares = s->lease.gpu_shares[device];
		}
	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_grant_write(&payload, &msg);
	if (payload.failed || payload.size > AG_SMALL_FRAME - AG_FRAME_HEADER)
		elog(ERROR, "could not write a grant");
	ag_frame_header_write(s->grant, AG_FRAME_GRANT, (uint32) payload.size);
	memcpy(s->grant + AG_FRAME_HEADER, payload.data, payload.size);
	s->n_grant = AG_FRAME_HEADER + payload.size;
	ag_writer_free(&payload);
	s->wants = false;
}

/* The wait left too little time to fit anything: that is what has to be told, not that no model came out. */
static bool
is_too_late(const AgSupervisor *s, int64 now)
{
	double limit_s = s->orders.time_limit;
	double needed_s = Min(Max(1.0, limit_s / 10), limit_s / 2);
	double left_s, waited_s = (double) (now - s->asked_ns) / 1e9;

	if (s->orders.deadline_ns == INT64_MAX || s->waited_for == NULL)
		return false;
	left_s = (double) (s->orders.deadline_ns - now) / 1e9;
	return left_s <= 0 || (left_s < needed_s && left_s + waited_s >= needed_s);
}

static void
give_up_waiting(AgSupervisor *s, int64 now)
{
	double waited_s = (double) (now - s->asked_ns) / 1e9;
	const char *waited_for = s->waited_for != NULL ? s->waited_for : "other fits";

	ag_relay_fail(
		s, AG_ERR_RESOURCES,
		now >= s->orders.deadline_ns
			? psprintf("the time limit of %g s passed while waiting %.1f s for %s",
					   s->orders.time_limit, waited_s, waited_for)
			: psprintf("too little of the time limit of %g s was left after waiting %.1f s for %s",
					   s->orders.time_limit, waited_s, waited_for),
		strstr(waited_for, "GPU") != NULL ? "Ask for a part of a GPU (option \"num_gpus\"), set "
											"ag_pg.gpu_fallback to \"warn\" to "
											"fit on the CPU then, or raise \"time_limit\"."
										  : "Give fits that run at the same time fewer CPUs each "
											"(option \"num_cpus\"), run fewer at a "
											"time (ag_pg.max_fits), or raise \"time_limit\".");
	ag_relay_drop_child(s); /* with its end goes the lease */
}

static void
try_lease(AgSupervisor *s)
{
	const char *lacking = NULL;
	int64 now = ag_clock_ns();

	if (!s->wants || s->ended || now < s->next_try_ns)
		return;
	s->next_try_ns = now + LEASE_POLL_MS * INT64_C(1000000);
	if (ag_lease_try(&s->lease, &s->orders, &s->want, &lacking))
	{
		if (is_too_late(s, now))
			give_up_waiting(s, now);
		else
			grant(s);
		return;
	}
	if (lacking != NULL)
		s->waited_for = lacking;
	if (lacking != NULL && s->wait_from_ns == 0)
		s->wait_from_ns = now;
	/* a fit that has just ended gives its lease back a moment later: that is no waiting */
	if (lacking != NULL && !s->told_waiting && now - s->wait_from_ns >= TELL_WAITING_NS)
	{
		ag_relay_log(s, psprintf("waiting for %s: other fits are running", lacking), "");
		s->told_waiting = true;
	}
	if (now >= s->orders.deadline_ns)
		give_up_waiting(s, now);
}

static void
check_need(AgSupervisor *s)
{
	double need_gb = (double) s->want.memory_bytes / 1e9;
	double limit_gb = (double) s->orders.memory_limit_bytes / 1e9;

	if (s->want.memory_bytes <= s->orders.memory_limit_bytes)
		return;
	ag_relay_fail(
		s, AG_ERR_MEMORY,
		psprintf("the fit needs about %.2f GB of memory and may use %.2f GB", need_gb, limit_gb),
		"Train on fewer rows or columns, or raise ag_pg.memory_limit (or the option "
		"\"memory_limit\").");
	ag_relay_drop_child(s);
}

/* ---- frames for us ---- */

static void
read_hello(AgSupervisor *s, AgArena *arena)
{
	AgMsgHello hello;
	AgError err;

	ag_error_init(&err);
	if (ag_msg_hello_read(arena, s->small, s->n_small, &hello, &err) != AG_OK)
	{
		ag_relay_error(s, &err);
		ag_relay_drop_child(s);
		return;
	}
	s->said_hello = true;
	if (hello.wire_version == AG_WIRE_VERSION && strcmp(hello.build_id, AG_BUILD_ID) == 0)
		return;
	ag_relay_fail(s, AG_ERR_SYSTEM,
				  psprintf("the program ag_trainer is of build %.60s, the library of build %s",
						   hello.build_id, AG_BUILD_ID),
				  "Install both from one package, then connect again; where the server preloads "
				  "ag_pg, restart it.");
	ag_relay_drop_child(s);
}

static void
read_need(AgSupervisor *s, AgArena *arena)
{
	AgMsgNeed need;
	AgError err;

	ag_error_init(&err);
	if (ag_msg_need_read(arena, s->small, s->n_small, &need, &err) != AG_OK)
	{
		ag_relay_error(s, &err);
		ag_relay_drop_child(s);
		return;
	}
	s->want.memory_bytes = Max(need.memory_bytes, 0);
	s->want.num_cpus = Max(need.num_cpus, 0);
	s->want.gpu = need.gpu;
	s->want.gpu_waits = need.gpu_waits;
	s->want.n_devices = need.n_devices;
	memcpy(s->want.devices, need.devices, sizeof need.devices);
	s->wants = true;
	s->asked_ns = ag_clock_ns();
	s->next_try_ns = 0;
	check_need(s);
	try_lease(s);
}

void
ag_supervisor_take_frame(AgSupervisor *s)
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

/* ---- the end of the child ---- */

static void
tell_end(AgSupervisor *s)
{
	char how[128];
	const char *hint = "The server's log may say more.";

	ag_child_describe_end(&s->child, how, sizeof how);
	if (strstr(how, "signal 9") != NULL)
		hint = "The system may have run out of memory: lower ag_pg.memory_limit (or the option "
			   "\"memory_limit\"), or train on fewer rows.";
	ag_relay_fail(s, AG_ERR_SYSTEM, psprintf("the program ag_trainer %s", how), hint);
}

/* True when all is said and the child is gone. */
static bool
is_over(AgSupervisor *s)
{
	bool reaped;

	if (s->session_gone)
		return true;
	reaped = ag_child_reap(&s->child);
	if (reaped)
		ag_lease_release(&s->lease);
	if (reaped && !s->eof && s->child.socket >= 0 && s->message == NULL && s->up_at >= s->up_end)
		ag_relay_read(s); /* what it left behind, up to the end of file */
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
wait_timeout(const AgSupervisor *s)
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
void
ag_supervisor_wait(AgSupervisor *s, long timeout_ms)
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
	(void) WaitEventSetWait(set, Min(timeout_ms, wait_timeout(s)), &event, 1,
							ag_wait_event(AG_WAIT_TRAINER));
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
}

/* ---- what supervisor.h and relay.h offer ---- */

void
ag_supervisor_start(AgSupervisor *s)
{
	static bool registered = false;
	char reason[512], hint[512];

	if (!registered)
		before_shmem_exit(kill_child, (Datum) 0);
	registered = true;
	s->up = palloc(AG_PIECE_BYTES);
	if (!ag_child_start(&s->child, AG_CHILD_FIT, reason, sizeof reason, hint, sizeof hint))
	{
		ag_relay_fail(s, AG_ERR_SYSTEM, reason, hint);
		s->child.reaped = true;
		s->eof = true;
	}
	child_to_kill = &s->child;
}

AgSupervisorTurn
ag_supervisor_turn(AgSupervisor *s)
{
	CHECK_FOR_INTERRUPTS();
	ag_relay_down(s);
	ag_relay_up(s);
	ag_child_read_log(&s->child);
	try_lease(s);
	if (is_over(s))
		return AG_TURN_OVER;
	if (s->n_grant > 0 || ((s->own != NIL || s->up_at < s->up_end) && !s->results_full))
		return AG_TURN_AGAIN;
	return AG_TURN_WAIT;
}

void
ag_supervisor_end(AgSupervisor *s)
{
	kill_child(0, (Datum) 0);
	ag_lease_release(&s->lease);
}
