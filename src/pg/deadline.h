/*
 * deadline.h - a call's time limit as a timer, for the stretches in which the executor has the say.
 *
 * When it goes off, the running query is cancelled as by statement_timeout. One at a time a session.
 */
#ifndef AG_DEADLINE_H
#define AG_DEADLINE_H

#include "postgres.h"

/* Sets the timer for a moment on ag_clock_ns(); INT64_MAX: none. */
extern void ag_deadline_start(int64 deadline_ns);

/* Takes it back. True: it went off, and if a cancel is still pending it was ours and is taken back too. */
extern bool ag_deadline_stop(void);

#endif
