/*
 * stats.h - counts of what the cluster's fits and predictions came to (the view ag_stats).
 *
 * They are kept where shared memory of the server's can be had: from 17 on anywhere, before that with the library in
 * shared_preload_libraries. Without, counting does nothing.
 */
#ifndef AG_STATS_H
#define AG_STATS_H

#include "postgres.h"

typedef enum AgStat
{
	AG_STAT_FITS,           /* stored, though their transaction may have been rolled back */
	AG_STAT_FITS_FAILED,    /* with an error */
	AG_STAT_FITS_CANCELLED, /* by users, timeouts, or a time limit too short for any model */
	AG_STAT_FIT_ROWS,       /* of those stored */
	AG_STAT_FIT_MS,         /* milliseconds that they took */
	AG_STAT_GPU_MS,         /* milliseconds of whole GPUs */
	AG_STAT_PREDICTIONS,    /* rows predicted for users */
	AG_STAT_CACHE_HITS,     /* models that a statement found in its session's cache */
	AG_STAT_SHARED_HITS,    /* that it then found in what all sessions share */
	AG_STAT_CACHE_MISSES,   /* and that had to be read */
	AG_STAT_LAST
} AgStat;

/* In _PG_init. */
extern void ag_stats_init(void);

/* Finds the counts: for those of a transaction that may fail, before it does. */
extern void ag_stats_attach(void);

/* What this process has counted since the last transaction's end. */
extern uint64 ag_stats_pending[AG_STAT_LAST];

/* Counts; seen by others when the transaction ends, in whatever way. */
static inline void
ag_stats_count(AgStat stat, uint64 n)
{
	ag_stats_pending[stat] += n;
}

/* A fit that ends in the error at hand. */
extern void ag_stats_count_failure(int sqlstate);

#endif
