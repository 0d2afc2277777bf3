/*
 * predict_table.c - ag_predict_table: every row of a table or query predicted, many at a time.
 *
 * Rows go from the executor to the engine in batches, and the predictions into a tuplestore, which keeps to work_mem and goes on
 * in a temporary file. A large table is several processes' work (predict_workers.h); of rows that only the session can read, the
 * predicting is (predict_pool.h).
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "pg/catalog.h"
#include "pg/predict_pool.h"
#include "pg/predict_rows.h"
#include "pg/predict_workers.h"
#include "pg/srf.h"
#include "pg/stats.h"

static void
put(void *arg, Datum *values, bool *nulls)
{
	ag_srf_row(arg, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_table);

Datum
ag_sql_predict_table(PG_FUNCTION_ARGS)
{
	char *name, *member;
	AgPredictorRow *row;
	pg_uuid_t id;
	AgTableJob job;
	AgPredictPool *pool;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_catalog_find(name, &id, &member, &row);
	job.name = name;
	job.key_column = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	job.model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	pool = ag_predict_pool_create(job.model, ag_predict_rows_create(job.model, put, &srf));
	job.reader = ag_batch_open(text_to_cstring(PG_GETARG_TEXT_PP(1)), name, job.model,
							   job.key_column, ag_predict_pool_take, pool);
	job.srf = &srf;
	if (!ag_predict_by_workers(&job))
	{
		ag_predict_pool_allow(pool, job.reader);
		ag_batch_read(job.reader);
		ag_predict_pool_finish(pool);
	}
	ag_stats_count(AG_STAT_PREDICTIONS, job.n_rows + ag_batch_close(job.reader));
	return (Datum) 0;
}
