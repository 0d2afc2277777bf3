/*
 * predict.c - ag_predict, ag_predict_class, ag_predict_proba and ag_predict_quantiles, for rows given as record, jsonb or JSON text.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "pg/call.h"
#include "pg/choice.h"
#include "pg/columns.h"
#include "pg/result.h"

/* The model named by argument 0, run on the row of argument 1. */
static AgCall *
predict(FunctionCallInfo fcinfo, AgRowForm form)
{
	text *name;
	AgCall *call;

	if (form == AG_ROW_COLUMNS)
		return ag_columns_predict(fcinfo);
	name = PG_GETARG_TEXT_PP(0);
	call = ag_call_get((AgCall **) &fcinfo->flinfo->fn_extra, fcinfo->flinfo->fn_mcxt,
					   VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), InvalidOid);

	ag_call_run(call, form, PG_GETARG_DATUM(1));
	return call;
}

/* --- ag_predict --- */

static Datum
predict_value(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);
	const AgOpenModel *model = call->model;
	double value = call->out[model->middle];

	if (model->n_classes > 0)
		value = model->classes[ag_model_best_class(model, call->out)].number;
	if (isnan(value))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts a text, not a number", call->name),
						errhint("Use ag_predict_class.")));
	PG_RETURN_FLOAT8(value);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_text);
PG_FUNCTION_INFO_V1(ag_sql_predict_columns);

Datum
ag_sql_predict_record(PG_FUNCTION_ARGS)
{
	return predict_value(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_jsonb(PG_FUNCTION_ARGS)
{
	return predict_value(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_text(PG_FUNCTION_ARGS)
{
	return predict_value(fcinfo, AG_ROW_TEXT);
}

Datum
ag_sql_predict_columns(PG_FUNCTION_ARGS)
{
	return predict_value(fcinfo, AG_ROW_COLUMNS);
}

/* --- ag_predict, typed by a sample --- */

static Datum
predict_typed(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	call = predict(fcinfo, form);
	if (call->extra == NULL)
	{
		Oid type = get_fn_expr_rettype(fcinfo->flinfo);
		AgResultType *result;

		if (!OidIsValid(type))
			ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
							errmsg("could not determine the type of the result")));
		result = MemoryContextAllocZero(call->context, sizeof(AgResultType));
		ag_result_type_init(result, type, call->context);
		call->extra = result;
	}
	return ag_result_datum(call->extra, call->model, call->out);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_typed_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_typed_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_typed_text);

Datum
ag_sql_predict_typed_record(PG_FUNCTION_ARGS)
{
	return predict_typed(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_typed_jsonb(PG_FUNCTION_ARGS)
{
	return predict_typed(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_typed_text(PG_FUNCTION_ARGS)
{
	return predict_typed(fcinfo, AG_ROW_TEXT);
}

/* --- ag_predict_class --- */

static Datum
predict_class(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);
	const AgClass *class;

	ag_choice_need_classes(call, "Use ag_predict.");
	class = &call->model->classes[ag_model_best_class(call->model, call->out)];
	PG_RETURN_TEXT_P(cstring_to_text(ag_model_text(call->model, class->name, class->n_bytes)));
}

PG_FUNCTION_INFO_V1(ag_sql_predict_class_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_class_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_class_text);
PG_FUNCTION_INFO_V1(ag_sql_predict_class_columns);

Datum
ag_sql_predict_class_record(PG_FUNCTION_ARGS)
{
	return predict_class(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_class_jsonb(PG_FUNCTION_ARGS)
{
	return predict_class(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_class_text(PG_FUNCTION_ARGS)
{
	return predict_class(fcinfo, AG_ROW_TEXT);
}

Datum
ag_sql_predict_class_columns(PG_FUNCTION_ARGS)
{
	return predict_class(fcinfo, AG_ROW_COLUMNS);
}

/* --- ag_predict_proba: all classes --- */

static Datum
predict_proba(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);

	ag_choice_need_classes(call, "Use ag_predict.");
	if (call->extra == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(call->context);

		call->extra = ag_result_class_keys(call->model);
		MemoryContextSwitchTo(caller);
	}
	PG_RETURN_JSONB_P(ag_result_proba(call->model, call->extra, call->out));
}

PG_FUNCTION_INFO_V1(ag_sql_predict_proba_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_text);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_columns);

Datum
ag_sql_predict_proba_record(PG_FUNCTION_ARGS)
{
	return predict_proba(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_proba_jsonb(PG_FUNCTION_ARGS)
{
	return predict_proba(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_proba_text(PG_FUNCTION_ARGS)
{
	return predict_proba(fcinfo, AG_ROW_TEXT);
}

Datum
ag_sql_predict_proba_columns(PG_FUNCTION_ARGS)
{
	return predict_proba(fcinfo, AG_ROW_COLUMNS);
}

/* --- ag_predict_proba: one class --- */

static Datum
predict_proba_of(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);

	ag_choice_need_classes(call, "Use ag_predict.");
	PG_RETURN_FLOAT8(call->out[ag_choice_argument(fcinfo, 2, call)]);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_proba_of_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_of_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_of_text);

Datum
ag_sql_predict_proba_of_record(PG_FUNCTION_ARGS)
{
	return predict_proba_of(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_proba_of_jsonb(PG_FUNCTION_ARGS)
{
	return predict_proba_of(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_proba_of_text(PG_FUNCTION_ARGS)
{
	return predict_proba_of(fcinfo, AG_ROW_TEXT);
}

/* --- ag_predict_quantiles --- */

static Datum
predict_quantiles(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);

	if (call->model->n_quantiles == 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts no quantiles", call->name),
						errhint("Fit it with \"problem_type\": \"quantile\".")));
	return ag_result_quantiles(call->model, call->out);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_quantiles_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_quantiles_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_quantiles_text);
PG_FUNCTION_INFO_V1(ag_sql_predict_quantiles_columns);

Datum
ag_sql_predict_quantiles_record(PG_FUNCTION_ARGS)
{
	return predict_quantiles(fcinfo, AG_ROW_RECORD);
}

Datum
ag_sql_predict_quantiles_jsonb(PG_FUNCTION_ARGS)
{
	return predict_quantiles(fcinfo, AG_ROW_JSONB);
}

Datum
ag_sql_predict_quantiles_text(PG_FUNCTION_ARGS)
{
	return predict_quantiles(fcinfo, AG_ROW_TEXT);
}

Datum
ag_sql_predict_quantiles_columns(PG_FUNCTION_ARGS)
{
	return predict_quantiles(fcinfo, AG_ROW_COLUMNS);
}
