/*
 * relay.h - the two directions between a fit's session and the trainer's socket.
 *
 * The session is another process at the end of two queues, or this one (a job's worker). Nothing here waits: each
 * function goes as far as it can, and what stopped it is in the state.
 */
#ifndef AG_RELAY_H
#define AG_RELAY_H

#include "postgres.h"

#include "nodes/pg_list.h"

#include "pg/child.h"
#include "pg/lease.h"
#include "pg/supervisor.h"
#include "wire/frame.h"

#define AG_SMALL_FRAME 1024 /* HELLO and NEED fit */

typedef enum AgRelayResult
{
	AG_RELAY_DONE,
	AG_RELAY_LATER, /* nothing there, or no room, at this time */
	AG_RELAY_GONE   /* the session is no more */
} AgRelayResult;

/* The session, as the relay sees it. */
typedef struct AgRelaySession
{
	/* The next bytes for the trainer; they must stay until they are asked for again. */
	AgRelayResult (*next_rows)(void *arg, const uint8 **bytes, Size *n_bytes);
	/* Takes a message (AgPieceKind) whole. After LATER the same one is offered again. */
	AgRelayResult (*take)(void *arg, uint8 kind, const uint8 *bytes, Size n_bytes);
	void *arg;
} AgRelaySession;

typedef struct AgSupervisor
{
	AgSupervisorOrders orders;
	AgRelaySession session;
	AgChild child;
	AgLease lease;
	/* to the child */
	const uint8 *down;
	Size n_down;
	bool down_full; /* the socket took less than it was given */
	uint8 grant[AG_SMALL_FRAME];
	Size n_grant;
	/* from the child */
	uint8 *up; /* AG_PIECE_BYTES read from the socket */
	Size up_at, up_end;
	uint8 header[AG_FRAME_HEADER];
	uint32 n_header;
	uint32 payload_left;
	bool swallow; /* the frame is for us */
	AgFrameType type;
	uint8 small[AG_SMALL_FRAME];
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
	int64 wait_from_ns;     /* of the first try for a lease that was in vain; 0: none yet */
	const char *waited_for; /* NULL: for nothing yet */
	int64 asked_ns;         /* when it asked for the lease */
	AgLeaseWant want;
	int64 next_try_ns;
} AgSupervisor;

/* Passes on to the session all that can be without waiting. */
extern void ag_relay_up(AgSupervisor *s);

/* Passes on to the child all that can be without waiting. */
extern void ag_relay_down(AgSupervisor *s);

/* Reads the socket once; the last bytes must have been passed on. */
extern void ag_relay_read(AgSupervisor *s);

/* Frames of our own, put behind what the trainer said: an ERROR (only the first one counts), a line of the story. */
extern void ag_relay_error(AgSupervisor *s, const AgError *err);
extern void ag_relay_fail(AgSupervisor *s, AgStatus status, const char *message, const char *hint);
extern void ag_relay_log(AgSupervisor *s, const char *text, const char *hint);

/* The child must go, whatever it still has to say. An error was sent before. */
extern void ag_relay_drop_child(AgSupervisor *s);

/* supervisor.c: a whole frame for the supervisor has come (s->type; s->small, s->n_small bytes). */
extern void ag_supervisor_take_frame(AgSupervisor *s);

#endif
