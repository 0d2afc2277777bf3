/*
 * predict_workers.h - a table predicted by several processes: PostgreSQL's parallel workers, who see what the session sees, as
 * the same role, and end with its statement.
 *
 * The table's blocks are cut into pieces, and each process takes the next one when it is done with its last. The session puts the
 * pieces' rows together in the order of the table, so the result is what one process would give.
 */
#ifndef AG_PREDICT_WORKERS_H
#define AG_PREDICT_WORKERS_H

#include "postgres.h"

#include "pg/batch.h"
#include "pg/srf.h"

typedef struct AgTableJob
{
	const AgOpenModel *model;
	const char *name;       /* the model's */
	const char *key_column; /* or NULL */
	AgBatchReader *reader;  /* its rows' predictions go to *srf */
	AgSrf *srf;
	int64 n_rows; /* that others have read: set by ag_predict_by_workers */
} AgTableJob;

/*
 * Does all of the job, where other processes can take part and it is so much work that they should. False: nothing was done. They
 * can't for queries, views, partitioned, foreign, temporary and inherited tables, under row-level security and with rights on
 * columns only, in serializable transactions and parallel workers, on PostgreSQL 13. Their number is bounded as a parallel plan's is: by the table's parallel_workers,
 * max_parallel_workers_per_gather, max_parallel_workers and max_worker_processes. Their errors are raised here.
 */
extern bool ag_predict_by_workers(AgTableJob *job);

#endif
