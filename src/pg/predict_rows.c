/*
 * predict_rows.c - see predict_rows.h.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "pg/predict_rows.h"
#include "pg/result.h"
#include "pg/srf.h"

struct AgPredictRows
{
	const AgOpenModel *model;
	JsonbValue *class_keys;
	Datum *class_texts; /* the classes' names */
	double *out;        /* [AG_BATCH_ROWS][n_outputs] */
	AgPredictPut put;
	void *arg;
};

AgPredictRows *
ag_predict_rows_create(const AgOpenModel *model, AgPredictPut put, void *arg)
{
	AgPredictRows *rows = palloc(sizeof(AgPredictRows));

	rows->model = model;
	rows->class_keys = ag_result_class_keys(model);
	rows->class_texts = palloc(sizeof(Datum) * Max(model->n_classes, 1));
	for (int i = 0; i < model->n_classes; i++)
		rows->class_texts[i] = CStringGetTextDatum(rows->class_keys[i].val.string.val);
	rows->out = MemoryContextAllocHuge(CurrentMemoryContext,
									   sizeof(double) * AG_BATCH_ROWS * model->n_outputs);
	rows->put = put;
	rows->arg = arg;
	return rows;
}

/* A number's text; to: VARHDRSZ + DOUBLE_SHORTEST_DECIMAL_LEN bytes. */
static Datum
put_number_text(double value, char *to)
{
	SET_VARSIZE(to, VARHDRSZ + double_to_shortest_decimal_bufn(value, VARDATA(to)));
	return PointerGetDatum(to);
}

static void
put_prediction(AgPredictRows *rows, const char *key, const double *out)
{
	union
	{
		char bytes[VARHDRSZ + DOUBLE_SHORTEST_DECIMAL_LEN];
		int32 aligned;
	} text;
	const AgOpenModel *model = rows->model;
	double value = out[model->middle];
	Datum values[AG_PREDICT_COLUMNS];
	bool nulls[AG_PREDICT_COLUMNS] = {false};

	ag_srf_text(values, nulls, 0, key);
	nulls[3] = model->n_classes == 0;
	nulls[4] = model->n_quantiles == 0;
	values[3] = (Datum) 0;
	values[4] = nulls[4] ? (Datum) 0 : ag_result_quantiles(model, out);
	if (model->n_classes > 0)
	{
		int best = ag_model_best_class(model, out);

		value = model->classes[best].number;
		values[1] = rows->class_texts[best];
		values[3] = JsonbPGetDatum(ag_result_proba(model, rows->class_keys, out));
	}
	else
		values[1] = put_number_text(value, text.bytes);
	ag_srf_number(values, nulls, 2, value);
	rows->put(rows->arg, values, nulls);
}

void
ag_predict_rows_put(AgPredictRows *rows, int n, char *const *keys, const double *out)
{
	for (int i = 0; i < n; i++)
		put_prediction(rows, keys != NULL ? keys[i] : NULL,
					   out + (size_t) i * rows->model->n_outputs);
}

void
ag_predict_rows_take(void *arg, const AgBatch *batch)
{
	AgPredictRows *rows = arg;

	ag_batch_predict(rows->model, batch->n_rows, batch->features, rows->out);
	ag_predict_rows_put(rows, batch->n_rows, batch->keys, rows->out);
}
