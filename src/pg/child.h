/*
 * child.h - the program ag_trainer as a child process of the supervisor, or of the session that asks about GPUs.
 *
 * The child gets: descriptor 3 (a probe: 1), one end of a stream socket pair; 0 and 1 otherwise /dev/null; 2 a pipe whose lines go to the server's
 * log; no other descriptor; a short environment; default signals, none blocked; a process group of its own.
 */
#ifndef AG_CHILD_H
#define AG_CHILD_H

#include "postgres.h"

#define AG_CHILD_SOCKET 3 /* in the child */

typedef enum AgChildTask
{
	AG_CHILD_FIT,  /* frames on AG_CHILD_SOCKET */
	AG_CHILD_PROBE /* lines on its standard output (src/trainer/probe.h) */
} AgChildTask;

typedef struct AgChild
{
	pid_t pid;   /* 0: none, or reaped */
	int socket;  /* our end, non-blocking */
	int log;     /* our end of its standard error, non-blocking; -1 after its end */
	int pidfd;   /* readable when it has ended; -1 where the kernel has none, and after its end */
	bool reaped; /* it has ended, and status tells how */
	int status;  /* as of waitpid */
	char line[1024];
	int n_line;
} AgChild;

/* Starts it. False: reason says why, hint (may stay empty) what to do. */
extern bool ag_child_start(AgChild *child, AgChildTask task, char *reason, size_t reason_size,
						   char *hint, size_t hint_size);

/* Looks, without waiting, whether it has ended. */
extern bool ag_child_reap(AgChild *child);

/* SIGKILL to its process group, and waits for its end (a second at most). Safe to call at any time. */
extern void ag_child_kill(AgChild *child);

/* Takes in what it wrote to standard error, a LOG line a line. */
extern void ag_child_read_log(AgChild *child);

/* "was killed by signal 9", "exited with code 3". */
extern void ag_child_describe_end(const AgChild *child, char *text, size_t size);

#endif
