/*
 * predict_table.c - ag_predict_table: every row of a table or query predicted, many at a time.
 *
 * Rows go from the executor to the engine in batches, and the predictions into a tuplestore, which keeps to work_mem and goes on
 * in a temporary file.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "pg/batch.h"
#include "pg/catalog.h"
#include "pg/result.h"
#include "pg/srf.h"
#include "pg/stats.h"

typedef struct Job
{
	const AgOpenModel *model;
	JsonbValue *class_keys;
	Datum *class_texts; /* the classes' names */
	double *out;        /* [AG_BATCH_ROWS][n_outputs] */
	AgSrf srf;
} Job;

/* A number's text; to: VARHDRSZ + DOUBLE_SHORTEST_DECIMAL_LEN bytes. */
static Datum
put_number_text(double value, char *to)
{
	SET_VARSIZE(to, VARHDRSZ + double_to_shortest_decimal_bufn(value, VARDATA(to)));
	return PointerGetDatum(to);
}

static void
put_prediction(Job *job, const char *key, const double *out)
{
	union
	{
		char bytes[VARHDRSZ + DOUBLE_SHORTEST_DECIMAL_LEN];
		int32 aligned;
	} text;
	const AgOpenModel *model = job->model;
	double value = out[model->middle];
	Datum values[5];
	bool nulls[5] = {false};

	ag_srf_text(values, nulls, 0, key);
	nulls[3] = model->n_classes == 0;
	nulls[4] = model->n_quantiles == 0;
	values[3] = (Datum) 0;
	values[4] = nulls[4] ? (Datum) 0 : ag_result_quantiles(model, out);
	if (model->n_classes > 0)
	{
		int best = ag_model_best_class(model, out);

		value = model->classes[best].number;
		values[1] = job->class_texts[best];
		values[3] = JsonbPGetDatum(ag_result_proba(model, job->class_keys, out));
	}
	else
		values[1] = put_number_text(value, text.bytes);
	ag_srf_number(values, nulls, 2, value);
	ag_srf_row(&job->srf, values, nulls);
}

static void
take(void *arg, const AgBatch *batch)
{
	Job *job = arg;

	ag_batch_predict(job->model, batch->n_rows, batch->features, job->out);
	ag_stats_count(AG_STAT_PREDICTIONS, batch->n_rows);
	for (int i = 0; i < batch->n_rows; i++)
		put_prediction(job, batch->keys != NULL ? batch->keys[i] : NULL,
					   job->out + (size_t) i * job->model->n_outputs);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_table);

Datum
ag_sql_predict_table(PG_FUNCTION_ARGS)
{
	char *name, *member;
	AgPredictorRow *row;
	pg_uuid_t id;
	Job job;

	ag_srf_begin(&job.srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_catalog_find(name, &id, &member, &row);
	job.model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	job.class_keys = ag_result_class_keys(job.model);
	job.class_texts = palloc(sizeof(Datum) * Max(job.model->n_classes, 1));
	for (int i = 0; i < job.model->n_classes; i++)
		job.class_texts[i] = CStringGetTextDatum(job.class_keys[i].val.string.val);
	job.out = MemoryContextAllocHuge(CurrentMemoryContext,
									 sizeof(double) * AG_BATCH_ROWS * job.model->n_outputs);
	ag_batch_run(text_to_cstring(PG_GETARG_TEXT_PP(1)), name, job.model,
				 PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2)), take, &job);
	return (Datum) 0;
}
