/*
 * running.h - fits that run in sessions, as other sessions see them (the view ag_jobs).
 *
 * Each has a board, a small segment of shared memory that its session writes to, and a lock whose tag names the segment: so it needs no shared
 * memory of the server's own, and vanishes with the session's transaction. The tags are of the advisory kind, with a number that SQL can't
 * name, and show in pg_locks.
 */
#ifndef AG_RUNNING_H
#define AG_RUNNING_H

#include "postgres.h"

typedef struct AgRunning AgRunning;

/* Puts up a board for a fit of the current role; lives in the current memory context and resource owner. Texts in the server's encoding. */
extern AgRunning *ag_running_begin(const char *model, const char *data, const char *label);
extern void ag_running_end(AgRunning *running);

/* Where it is now. done: of the whole, 0 to 1, and seconds_left and score NaN where unknown. */
extern void ag_running_progress(AgRunning *running, const char *phase, double done,
								double seconds_left, double score);

/* Its last line. */
extern void ag_running_message(AgRunning *running, const char *message);

#endif
