/*
 * explain.c - ag_explain: what each column makes of one row's prediction.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "pg/call.h"
#include "pg/choice.h"
#include "pg/errors.h"
#include "pg/slow.h"
#include "pg/srf.h"

/* --- the columns' values, as texts */

/* Of a record: by the output function of the column's own type. */
static void
record_texts(const AgOpenModel *model, char **names, HeapTupleHeader record, char **texts)
{
	TupleDesc desc = lookup_rowtype_tupdesc_domain(HeapTupleHeaderGetTypeId(record),
												   HeapTupleHeaderGetTypMod(record), false);
	Datum *values = palloc(sizeof(Datum) * desc->natts);
	bool *nulls = palloc(sizeof(bool) * desc->natts);
	HeapTupleData tuple;

	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	heap_deform_tuple(&tuple, desc, values, nulls);
	for (int i = 0; i < model->n_inputs; i++)
		for (int j = 0; model->inputs[i].is_used && j < desc->natts; j++)
		{
			Form_pg_attribute attribute = TupleDescAttr(desc, j);
			Oid output;
			bool is_varlena;

			if (attribute->attisdropped || nulls[j] ||
				strcmp(NameStr(attribute->attname), names[i]) != 0)
				continue;
			getTypeOutputInfo(attribute->atttypid, &output, &is_varlena);
			texts[i] = OidOutputFunctionCall(output, values[j]);
		}
	ReleaseTupleDesc(desc);
}

static char *
json_text(const JsonbValue *json)
{
	switch (json->type)
	{
		case jbvString:
			return pnstrdup(json->val.string.val, json->val.string.len);
		case jbvBool:
			return pstrdup(json->val.boolean ? "true" : "false");
		case jbvNumeric:
			return DatumGetCString(
				DirectFunctionCall1(numeric_out, NumericGetDatum(json->val.numeric)));
		default:
			return NULL;
	}
}

static void
json_texts(const AgOpenModel *model, char **names, Jsonb *features, char **texts)
{
	for (int i = 0; i < model->n_inputs; i++)
	{
		JsonbValue found;

		if (model->inputs[i].is_used &&
			getKeyJsonValueFromContainer(&features->root, names[i], (int) strlen(names[i]),
										 &found) != NULL)
			texts[i] = json_text(&found);
	}
}

static char **
texts_of(const AgOpenModel *model, char **names, AgRowForm form, Datum features)
{
	char **texts = palloc0(sizeof(char *) * Max(model->n_inputs, 1));

	if (form == AG_ROW_RECORD)
		record_texts(model, names, DatumGetHeapTupleHeader(features), texts);
	else if (form == AG_ROW_JSONB)
		json_texts(model, names, DatumGetJsonbP(features), texts);
	else
	{
		char *json = text_to_cstring(DatumGetTextPP(features));

		json_texts(model, names,
				   DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json))), texts);
	}
	return texts;
}

/* --- the contributions */

/* Step by step, so that it can be cancelled. */
static AgExplanation *
explain(const AgOpenModel *model, const double *features, int output)
{
	AgExplanation *explanation = palloc0(sizeof(AgExplanation));
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgSlow slow;

	ag_slow_begin(&slow, "ag_explain");
	explanation->contributions = palloc0(sizeof(double) * Max(model->n_inputs, 1));
	explanation->n_steps = 1;
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	for (int step = 0; step < explanation->n_steps; step++)
	{
		ag_slow_tell(&slow, step, explanation->n_steps, "steps");
		ag_error_check(
			ag_predictor_explain(&ctx, model->predictor, features, output, step, explanation),
			&error);
	}
	return explanation;
}

/* The class whose probability is explained: as asked, else the positive one of two, else the predicted one. */
static int
output_of(FunctionCallInfo fcinfo, AgCall *call, const double *features)
{
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};

	if (PG_NARGS() > 2)
	{
		ag_choice_need_classes(call, "Leave the class out.");
		return ag_choice_argument(fcinfo, 2, call);
	}
	if (call->model->n_classes <= 2)
		return call->model->n_classes == 2 ? 1 : call->model->middle;
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	ag_error_check(ag_predictor_run_rows(&ctx, call->model->predictor, 1, features, call->out),
				   &error);
	return ag_model_best_class(call->model, call->out);
}

static void
put_row(AgSrf *srf, const char *feature, const char *value, double contribution)
{
	Datum values[3];
	bool nulls[3] = {false};

	ag_srf_text(values, nulls, 0, feature);
	ag_srf_text(values, nulls, 1, value);
	ag_srf_number(values, nulls, 2, contribution);
	ag_srf_row(srf, values, nulls);
}

static Datum
explain_row(FunctionCallInfo fcinfo, AgRowForm form)
{
	text *name = PG_GETARG_TEXT_PP(0);
	const AgOpenModel *model;
	AgExplanation *explanation;
	double *features;
	char **names, **texts;
	AgCall *call;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	call = ag_call_get((AgCall **) &fcinfo->flinfo->fn_extra, fcinfo->flinfo->fn_mcxt,
					   VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), InvalidOid);
	model = call->model;
	features = palloc(sizeof(double) * Max(ag_predictor_features(model->predictor), 1));
	ag_predictor_encode(model->predictor, ag_call_read(call, form, PG_GETARG_DATUM(1)), features);
	explanation = explain(model, features, output_of(fcinfo, call, features));
	names = palloc(sizeof(char *) * Max(model->n_inputs, 1));
	for (int i = 0; i < model->n_inputs; i++)
		names[i] = ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name));
	texts = texts_of(model, names, form, PG_GETARG_DATUM(1));
	put_row(&srf, NULL, NULL, explanation->base);
	for (int i = 0; i < model->n_inputs; i++)
		if (model->inputs[i].is_used)
			put_row(&srf, names[i], texts[i], explanation->contributions[i]);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ag_sql_explain_record);
PG_FUNCTION_INFO_V1(ag_sql_explain_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_explain_text);

Datum
ag_sql_explain_record(PG_FUNCTION_ARGS)
{
	return explain_row(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_explain_jsonb(PG_FUNCTION_ARGS)
{
	return explain_row(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_explain_text(PG_FUNCTION_ARGS)
{
	return explain_row(fcinfo, AG_ROW_TEXT);
}
