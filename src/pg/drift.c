/*
 * drift.c - ag_drift: how far data has moved from what a model was trained on.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"

#include "pg/batch.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/rights.h"
#include "pg/srf.h"

typedef struct Line
{
	int input;
	char *name;
	AgDriftResult result;
} Line;

static void
take(void *arg, const AgBatch *batch)
{
	ag_drift_add(arg, batch->n_rows, batch->features);
}

/* The farthest first; without rows in the order of the columns. */
static int
by_psi(const void *left, const void *right)
{
	const Line *a = left, *b = right;

	if (a->result.psi != b->result.psi && !isnan(a->result.psi) && !isnan(b->result.psi))
		return a->result.psi < b->result.psi ? 1 : -1;
	return a->input - b->input;
}

static Line *
compare_data(const char *data, const char *name, const AgOpenModel *model, int *n_lines)
{
	Line *lines = palloc0(sizeof(Line) * Max(model->n_inputs, 1));
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgDrift *drift;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	ag_error_check(ag_drift_create(&ctx, model->predictor, &drift), &error);
	PG_TRY();
	{
		ag_batch_run(data, name, model, NULL, take, drift);
		*n_lines = 0;
		for (int i = 0; i < model->n_inputs; i++)
		{
			Line *line = &lines[*n_lines];

			if (!model->inputs[i].is_used)
				continue;
			line->input = i;
			line->name = ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name));
			line->result = ag_drift_result(drift, i);
			(*n_lines)++;
		}
	}
	PG_FINALLY();
	{
		ag_drift_free(drift);
	}
	PG_END_TRY();
	return lines;
}

PG_FUNCTION_INFO_V1(ag_sql_drift);

Datum
ag_sql_drift(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char *data = text_to_cstring(PG_GETARG_TEXT_PP(1));
	AgPredictorRow *row;
	pg_uuid_t id;
	Line *lines;
	int n;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	ag_catalog_find(name, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_INSPECT, row->name);
	lines = compare_data(data, name, ag_cache_get(&id, row->best_model, CurrentMemoryContext), &n);
	qsort(lines, n, sizeof(Line), by_psi);
	for (int i = 0; i < n; i++)
	{
		Datum values[5];
		bool nulls[5] = {false};

		ag_srf_text(values, nulls, 0, lines[i].name);
		ag_srf_number(values, nulls, 1, lines[i].result.psi);
		ag_srf_number(values, nulls, 2, lines[i].result.missing_before);
		ag_srf_number(values, nulls, 3, lines[i].result.missing_now);
		ag_srf_number(values, nulls, 4, lines[i].result.unseen);
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
