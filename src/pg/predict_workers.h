/*
 * predict_workers.h - a table read and predicted by several processes: PostgreSQL's parallel workers, who see what the session
 * sees, as the same role, and end with its statement.
 *
 * The blocks of the table, or of all its partitions or children, are cut into pieces, and each process takes the next one when it is done
 * with its last. The session puts the pieces' rows together in the order of the table, so the result is what one process would give.
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
 * Does all of the job, where other processes can read the data and it is so much work that they should. False: nothing was done. They
 * can't read queries, views, foreign and temporary tables, nor tables that have such parts, under row-level security and with rights on
 * columns only, in serializable transactions and parallel workers, on PostgreSQL 13 (see predict_pool.h). Their number is bounded as a
 * parallel plan's is: by parallel_workers of the table (of its parts: the greatest), max_parallel_workers_per_gather,
 * max_parallel_workers and max_worker_processes. Their errors are raised here.
 */
extern bool ag_predict_by_workers(AgTableJob *job);

#endif
