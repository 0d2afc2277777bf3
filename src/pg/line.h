/*
 * line.h - a fit's end of its line to a trainer: starts it, sends frames, hands in what comes back.
 *
 * Everything that waits here looks for cancels, the end of the postmaster, the time limit and a lost client, and keeps
 * taking in what the trainer says, so that neither side can block the other for good. When the transaction (or subtransaction)
 * ends, by an error too, the supervisor is told to go, and with it the trainer.
 */
#ifndef AG_LINE_H
#define AG_LINE_H

#include "postgres.h"

#include "wire/frame.h"

typedef struct AgLine AgLine;

/* One frame from the trainer or the supervisor; the payload is good during the call. May raise an ERROR. */
typedef void (*AgFrameFn)(void *arg, const AgFrameHeader *header, const uint8 *payload);

typedef struct AgLineParams
{
	int64 deadline_ns;        /* of the call, on ag_clock_ns(); INT64_MAX: none */
	int64 give_up_ns;         /* when to give up on a trainer that doesn't keep to the deadline */
	double time_limit;        /* seconds, for messages */
	int64 memory_limit_bytes; /* of this fit */
	AgFrameFn frame;
	void *arg;
	bool tell_waiting; /* NOTICE when no worker is free at once */
} AgLineParams;

/*
 * Starts a supervisor. Waits for a free worker until the deadline: then ERROR 53000. The line lives in the current memory
 * context.
 */
extern AgLine *ag_line_open(const AgLineParams *params);

/*
 * The same without a supervisor: this process watches over the trainer itself. After an error the caller must end it with
 * ag_line_kill_direct: it may outlive transactions.
 */
extern AgLine *ag_line_open_direct(const AgLineParams *params);
extern void ag_line_kill_direct(AgLine *line);

/* Sends bytes of the stream (frames, cut anywhere). flush: let the other side see them now. */
extern void ag_line_send(AgLine *line, const void *bytes, size_t n_bytes, bool flush);

/* Takes in what has come, without waiting. */
extern void ag_line_poll(AgLine *line);

/* The same when the last look was 200 ms ago or more; checks the deadline too (57014). For every block of rows. */
extern void ag_line_tick(AgLine *line);

/* Waits (at most half a second) for something to come, and takes it in. */
extern void ag_line_wait(AgLine *line);

/* Ends it, and waits for that a little. */
extern void ag_line_close(AgLine *line);

#endif
