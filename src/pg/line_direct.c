/*
 * line_direct.c - a line whose trainer is watched over by this very process: a job's worker.
 *
 * The same turns as in a supervisor, taken where a session would look into its queues. So nothing of the trainer is looked at while
 * the executor has the say, but for a tick every few rows: the socket's buffers hold what it says until then.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "engine/base/context.h"
#include "pg/line_private.h"
#include "pg/relay.h"

#define CLOSE_PATIENCE_NS INT64_C(3000000000)

typedef struct DirectLine
{
	AgLine line; /* first */
	AgSupervisor supervisor;
	const uint8 *offered; /* by put */
	Size n_offered;
} DirectLine;

/* ---- the session, for the relay ---- */

static AgRelayResult
next_rows(void *arg, const uint8 **bytes, Size *n_bytes)
{
	DirectLine *line = arg;

	if (line->n_offered == 0)
		return AG_RELAY_LATER;
	*bytes = line->offered;
	*n_bytes = line->n_offered;
	line->n_offered = 0;
	return AG_RELAY_DONE;
}

static AgRelayResult
take_message(void *arg, uint8 kind, const uint8 *bytes, Size n_bytes)
{
	DirectLine *line = arg;

	CHECK_FOR_INTERRUPTS();
	if (line->line.finished)
		return AG_RELAY_DONE;
	if (kind == AG_PIECE_OWN)
		ag_line_take_own(&line->line, bytes, n_bytes);
	else
		ag_line_take_stream(&line->line, bytes, n_bytes);
	return AG_RELAY_DONE;
}

/* ---- the kind's functions ---- */

static AgSupervisorTurn
take_turns(DirectLine *line)
{
	MemoryContext old = MemoryContextSwitchTo(line->line.context);
	AgSupervisorTurn turn;

	do
		turn = ag_supervisor_turn(&line->supervisor);
	while (turn == AG_TURN_AGAIN);
	MemoryContextSwitchTo(old);
	return turn;
}

static void
poll_trainer(AgLine *common)
{
	if (take_turns((DirectLine *) common) == AG_TURN_OVER && !common->finished)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION),
						errmsg("the trainer ended without a predictor")));
}

/* What the socket doesn't take now stays ours. */
static Size
put_to_trainer(AgLine *common, const void *bytes, Size n_bytes, bool flush)
{
	DirectLine *line = (DirectLine *) common;
	AgSupervisor *s = &line->supervisor;
	Size left;

	line->offered = bytes;
	line->n_offered = n_bytes;
	ag_relay_down(s);
	left = line->n_offered + s->n_down;
	line->n_offered = s->n_down = 0;
	return n_bytes - left;
}

static void
sleep_on_trainer(AgLine *common, long timeout_ms)
{
	ag_supervisor_wait(&((DirectLine *) common)->supervisor, timeout_ms);
	CHECK_FOR_INTERRUPTS();
}

static void
leave_trainer(AgLine *common)
{
	DirectLine *line = (DirectLine *) common;
	int64 patience_ns = ag_clock_ns() + CLOSE_PATIENCE_NS;

	while (take_turns(line) != AG_TURN_OVER && ag_clock_ns() < patience_ns)
		ag_supervisor_wait(&line->supervisor, 20);
	ag_supervisor_end(&line->supervisor);
	pfree(line->supervisor.up);
}

static const AgLineKind direct = {poll_trainer, put_to_trainer, sleep_on_trainer, leave_trainer};

AgLine *
ag_line_open_direct(const AgLineParams *params)
{
	DirectLine *line = palloc0(sizeof(DirectLine));
	AgSupervisor *s = &line->supervisor;

	ag_line_begin(&line->line, &direct, params);
	ag_line_write_orders(&line->line, &s->orders);
	s->child.socket = s->child.log = s->child.pidfd = -1;
	s->session.next_rows = next_rows;
	s->session.take = take_message;
	s->session.arg = line;
	ag_supervisor_start(s);
	return &line->line;
}

void
ag_line_kill_direct(AgLine *line)
{
	ag_supervisor_end(&((DirectLine *) line)->supervisor);
}
