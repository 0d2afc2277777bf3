/*
 * sum.h - sums over rows that don't depend on the number of threads.
 *
 * Rows are added up in blocks of AG_SUM_BLOCK, and the blocks' sums in the blocks'
 * order: the same bits on one thread and on many.
 */
#ifndef AG_SUM_H
#define AG_SUM_H

#include "engine/base/context.h"

#define AG_SUM_BLOCK 2048
#define AG_SUM_MAX 4 /* sums at a time */

/* Adds the terms of rows [begin, end) to sums; called from the pool's threads. */
typedef void (*AgSumTerms)(const void *arg, int64_t begin, int64_t end, double *sums);

/* sums[n_sums] gets the totals over n_rows rows. Never fails: without memory it sums on this thread. */
void ag_sum_rows(const AgContext *ctx, int64_t n_rows, int n_sums, AgSumTerms terms,
				 const void *arg, double *sums);

#endif
