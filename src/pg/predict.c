/*
 * predict.c - ag_predict, ag_predict_class and ag_predict_proba, for rows given as record, jsonb or JSON text.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "pg/call.h"
#include "pg/result.h"

/* The model named by argument 0, run on the row of argument 1. */
static AgCall *
predict(FunctionCallInfo fcinfo, AgRowForm form)
{
	text *name = PG_GETARG_TEXT_PP(0);
	AgCall *call = ag_call_get((AgCall **) &fcinfo->flinfo->fn_extra, fcinfo->flinfo->fn_mcxt,
							   VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), InvalidOid);

	ag_call_run(call, form, PG_GETARG_DATUM(1));
	return call;
}

static void
need_classes(const AgCall *call)
{
	if (call->model->n_classes == 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts a number, not a class", call->name),
						errhint("Use ag_predict.")));
}

/* --- ag_predict --- */

static Datum
predict_value(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);
	const AgOpenModel *model = call->model;
	double value = call->out[0];

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

	need_classes(call);
	class = &call->model->classes[ag_model_best_class(call->model, call->out)];
	PG_RETURN_TEXT_P(cstring_to_text(ag_model_text(call->model, class->name, class->n_bytes)));
}

PG_FUNCTION_INFO_V1(ag_sql_predict_class_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_class_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_class_text);

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

/* --- ag_predict_proba: all classes --- */

/* The classes' names as jsonb keys, made once a model. */
static JsonbValue *
class_keys(AgCall *call)
{
	const AgOpenModel *model = call->model;
	MemoryContext caller;
	JsonbValue *keys = call->extra;

	if (keys != NULL)
		return keys;
	caller = MemoryContextSwitchTo(call->context);
	keys = palloc0(sizeof(JsonbValue) * model->n_classes);
	for (int i = 0; i < model->n_classes; i++)
	{
		char *name = ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes);

		keys[i].type = jbvString;
		keys[i].val.string.val = name;
		keys[i].val.string.len = (int) strlen(name);
	}
	MemoryContextSwitchTo(caller);
	call->extra = keys;
	return keys;
}

/* Exactly: float8's own way to numeric keeps 15 digits only. */
static Numeric
exact_numeric(double value)
{
	return DatumGetNumeric(DirectFunctionCall3(numeric_in,
											   CStringGetDatum(ag_result_number_text(value)),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

static Datum
predict_proba(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);
	JsonbParseState *state = NULL;
	JsonbValue *keys;

	need_classes(call);
	keys = class_keys(call);
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < call->model->n_classes; i++)
	{
		JsonbValue value = {.type = jbvNumeric};

		value.val.numeric = exact_numeric(call->out[i]);
		pushJsonbValue(&state, WJB_KEY, &keys[i]);
		pushJsonbValue(&state, WJB_VALUE, &value);
	}
	PG_RETURN_JSONB_P(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}

PG_FUNCTION_INFO_V1(ag_sql_predict_proba_record);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_jsonb);
PG_FUNCTION_INFO_V1(ag_sql_predict_proba_text);

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

/* --- ag_predict_proba: one class --- */

/* The class that argument 2 named last. */
typedef struct ClassChoice
{
	FmgrInfo output; /* of the argument's type */
	bool is_numeric;
	bool is_boolean;
	char *text;
	int index;
} ClassChoice;

static ClassChoice *
class_choice(FunctionCallInfo fcinfo, AgCall *call)
{
	ClassChoice *choice = call->extra;

	if (choice == NULL)
	{
		Oid type = get_fn_expr_argtype(fcinfo->flinfo, 2);
		Oid output;
		bool is_varlena, is_preferred;
		char category;

		if (!OidIsValid(type))
			ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
							errmsg("could not determine the type of the class")));
		choice = MemoryContextAllocZero(call->context, sizeof(ClassChoice));
		getTypeOutputInfo(type, &output, &is_varlena);
		fmgr_info_cxt(output, &choice->output, call->context);
		get_type_category_preferred(getBaseType(type), &category, &is_preferred);
		choice->is_numeric = category == TYPCATEGORY_NUMERIC;
		choice->is_boolean = getBaseType(type) == BOOLOID;
		call->extra = choice;
	}
	return choice;
}

static void
unknown_class(const AgCall *call, const char *text)
{
	const AgOpenModel *model = call->model;
	StringInfoData list;
	int n = Min(model->n_classes, 20);

	initStringInfo(&list);
	for (int i = 0; i < n; i++)
		appendStringInfo(&list, "%s\"%s\"", i == 0 ? "" : ", ",
						 ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("model \"%s\" has no class \"%s\"", call->name, text),
			 errhint("Its classes are %s%s.", list.data, n < model->n_classes ? ", ..." : "")));
}

/* By name; numbers by value, so that 1 and 1.0 are one class. */
static int
find_class(const AgCall *call, const char *text, bool is_numeric)
{
	const AgOpenModel *model = call->model;

	for (int i = 0; i < model->n_classes; i++)
		if (strcmp(text, ag_model_text(model, model->classes[i].name, model->classes[i].n_bytes)) ==
			0)
			return i;
	if (is_numeric)
	{
		double number = strtod(text, NULL);

		for (int i = 0; i < model->n_classes; i++)
			if (model->classes[i].number == number)
				return i;
	}
	unknown_class(call, text);
	return -1;
}

static Datum
predict_proba_of(FunctionCallInfo fcinfo, AgRowForm form)
{
	AgCall *call = predict(fcinfo, form);
	ClassChoice *choice;
	const char *text;

	need_classes(call);
	choice = class_choice(fcinfo, call);
	if (choice->is_boolean) /* prints as t and f, but the classes are called true and false */
		text = PG_GETARG_BOOL(2) ? "true" : "false";
	else
		text = OutputFunctionCall(&choice->output, PG_GETARG_DATUM(2));
	if (choice->text == NULL || strcmp(choice->text, text) != 0)
	{
		choice->index = find_class(call, text, choice->is_numeric);
		if (choice->text != NULL)
			pfree(choice->text);
		choice->text = MemoryContextStrdup(call->context, text);
	}
	PG_RETURN_FLOAT8(call->out[choice->index]);
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
