/*
 * slow.h - a line now and then from a call that takes long.
 */
#ifndef AG_SLOW_H
#define AG_SLOW_H

#include "postgres.h"

typedef struct AgSlow
{
	const char *function;
	int64 began_ns, told_ns; /* ag_clock_ns() */
} AgSlow;

extern void ag_slow_begin(AgSlow *slow, const char *function);

/* "ag_explain: 3 of 80 steps after 20 s" as a NOTICE, every 10 seconds; looks after interrupts too. */
extern void ag_slow_tell(AgSlow *slow, int64 done, int64 of, const char *what);

#endif
