/*
 * language.c - the language ag_model: a function whose body is a model's name predicts with it.
 *
 * So EXECUTE on the function is the right to predict, to be granted and revoked as usual: the right on the
 * model that counts is that of the function's owner. No switch of the user is needed for it, and none is made:
 * types' own functions run as the caller.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "parser/parse_func.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "pg/call.h"
#include "pg/catalog.h"
#include "pg/compat.h"
#include "pg/convert.h"
#include "pg/cost.h"
#include "pg/language.h"
#include "pg/result.h"

/* What of pg_proc a call goes by, kept in fn_extra while the row there stays the same. */
typedef struct Function
{
	TransactionId xmin;
	ItemPointerData tid;
	char *model;
	int model_bytes;
	Oid owner;
	Oid result;
	AgRowForm form;
	AgCall *call;
} Function;

/* False: the type is no row. */
static bool
form_of(Oid type, AgRowForm *form)
{
	Oid base = getBaseType(type);

	*form = AG_ROW_RECORD;
	if (base == JSONBOID)
		*form = AG_ROW_JSONB;
	else if (base == TEXTOID)
		*form = AG_ROW_TEXT;
	else
		return base == RECORDOID || type_is_rowtype(type);
	return true;
}

static char *
source_of(HeapTuple tuple)
{
	bool is_null;
	Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &is_null);

	if (is_null)
		elog(ERROR, "function has no body");
	return TextDatumGetCString(source);
}

static void
read_function(Function *function, HeapTuple tuple, MemoryContext home)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	char *model;

	if (form->pronargs != 1 || !form_of(form->proargtypes.values[0], &function->form))
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
						errmsg("function \"%s\" must take one row", NameStr(form->proname))));
	model = MemoryContextStrdup(home, source_of(tuple));
	if (function->model != NULL)
		pfree(function->model);
	function->model = model;
	function->model_bytes = (int) strlen(model);
	function->owner = form->proowner;
	function->result = form->prorettype;
	function->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	function->tid = tuple->t_self;
}

static Function *
function_of(FmgrInfo *flinfo)
{
	Function *function = flinfo->fn_extra;
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(flinfo->fn_oid));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", flinfo->fn_oid);
	if (function == NULL)
	{
		function = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(Function));
		flinfo->fn_extra = function;
	}
	if (function->model == NULL || function->xmin != HeapTupleHeaderGetRawXmin(tuple->t_data) ||
		!ItemPointerEquals(&function->tid, &tuple->t_self))
		read_function(function, tuple, flinfo->fn_mcxt);
	ReleaseSysCache(tuple);
	return function;
}

const AgCall *
ag_language_calls(const FmgrInfo *place)
{
	const Function *function = place->fn_extra;

	return function != NULL ? function->call : NULL;
}

char *
ag_language_model(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char *model;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	model = source_of(tuple);
	ReleaseSysCache(tuple);
	return model;
}

PG_FUNCTION_INFO_V1(ag_sql_language_handler);

Datum
ag_sql_language_handler(PG_FUNCTION_ARGS)
{
	Function *function;
	AgCall *call;

	if (CALLED_AS_TRIGGER(fcinfo) || CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("a function in language ag_model can't be a trigger")));
	function = function_of(fcinfo->flinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	call = ag_call_get(&function->call, fcinfo->flinfo->fn_mcxt, function->model,
					   function->model_bytes, function->owner);
	ag_call_run(call, function->form, PG_GETARG_DATUM(0));
	if (call->extra == NULL)
	{
		AgResultType *result = MemoryContextAllocZero(call->context, sizeof(AgResultType));

		ag_result_type_init(result, function->result, call->context);
		call->extra = result;
	}
	return ag_result_datum(call->extra, call->model, call->out);
}

/* --- validator --- */

PG_FUNCTION_INFO_V1(ag_sql_language_validator);

/* The model itself is looked for only with check_function_bodies: a dump restores functions before models. */
Datum
ag_sql_language_validator(PG_FUNCTION_ARGS)
{
	Oid oid = PG_GETARG_OID(0);
	HeapTuple tuple;
	Form_pg_proc proc;
	AgRowForm form;
	char *model;
	Oid owner;
	pg_uuid_t id;

	if (!CheckFunctionValidatorAccess(fcinfo->flinfo->fn_oid, oid))
		PG_RETURN_VOID();
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prokind != PROKIND_FUNCTION || proc->proretset || proc->pronargs != 1 ||
		!form_of(proc->proargtypes.values[0], &form) ||
		get_typtype(proc->prorettype) == TYPTYPE_PSEUDO)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("a function in language ag_model takes one row and returns one value"),
				 errhint("Make it with ag_create_function.")));
	model = source_of(tuple);
	owner = proc->proowner;
	ReleaseSysCache(tuple);
	if (check_function_bodies)
		ag_catalog_find_as(owner, model, &id, NULL, NULL);
	PG_RETURN_VOID();
}

/* --- ag_create_function --- */

/* Numbers of any kind are one kind. */
static int
kind_of(AgType type)
{
	return type == AG_TYPE_BOOL ? 0 : type == AG_TYPE_TEXT ? 1 : 2;
}

/* The label's type in the relation; where that has no such column, or one of another kind, the type that it had at the fit. */
static Oid
label_type(const AgOpenModel *model, Oid relation)
{
	char *label = ag_model_text(model, model->label, strlen(model->label));
	AttrNumber column = get_attnum(relation, label);
	AgType natural;

	if (column > 0 && ag_convert_natural_type(get_atttype(relation, column), &natural) &&
		kind_of(natural) == kind_of(model->label_type))
		return get_atttype(relation, column);
	switch (model->label_type)
	{
		case AG_TYPE_BOOL:
			return BOOLOID;
		case AG_TYPE_INT32:
			return INT4OID;
		case AG_TYPE_INT64:
			return INT8OID;
		case AG_TYPE_FLOAT32:
			return FLOAT4OID;
		case AG_TYPE_TEXT:
			return TEXTOID;
		default:
			return FLOAT8OID;
	}
}

static void
notice_rounding(const char *model_name, const AgOpenModel *model, Oid type)
{
	Oid base = getBaseType(type);

	if (model->n_classes == 0 && (base == INT2OID || base == INT4OID || base == INT8OID))
		ereport(
			NOTICE,
			(errmsg("predictions are rounded to %s, the label's type", format_type_be(type)),
			 errhint("ag_predict(%s, ...) gives them unrounded.", quote_literal_cstr(model_name))));
}

/* The name with the schema that CREATE FUNCTION puts it in: search_path can't lead to another one of that name later. */
static List *
in_its_schema(List *name)
{
	char *function;
	Oid schema = QualifiedNameGetCreationNamespace(name, &function);

	return list_make2(makeString(get_namespace_name(schema)), makeString(function));
}

/*
 * Executing it is predicting with its owner's right, so it is nobody else's until granted. A domain's CHECK runs any code: not in
 * a parallel worker.
 */
static void
create(const char *signature, Oid result, const char *model_name, double cost)
{
	const char *parallel = get_typtype(result) == TYPTYPE_DOMAIN ? "RESTRICTED" : "SAFE";
	const char *statements[3];

	statements[0] = psprintf("CREATE FUNCTION %s RETURNS %s LANGUAGE ag_model STABLE STRICT "
							 "PARALLEL %s AS %s",
							 signature, format_type_be_qualified(result), parallel,
							 quote_literal_cstr(model_name));
	statements[1] = psprintf("ALTER FUNCTION %s COST %.0f", signature, cost);
	statements[2] = psprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature);
	SPI_connect();
	for (size_t i = 0; i < lengthof(statements); i++)
		if (SPI_execute(statements[i], false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "could not create the function");
	SPI_finish();
}

static void
hint_quoting(void *arg)
{
	if (geterrcode() == ERRCODE_INVALID_NAME)
		errhint("Quote names as SQL does: 'predict_price', 'public.predict_price' or "
				"'\"Predict price\"'.");
}

static List *
function_name(const char *text)
{
	ErrorContextCallback callback = {.previous = error_context_stack, .callback = hint_quoting};
	List *name;

	error_context_stack = &callback;
	name = ag_qualified_name_list(text);
	error_context_stack = callback.previous;
	return name;
}

/* Columns that every call would miss are an error here. */
static void
check_columns(const AgOpenModel *model, const char *model_name, Oid row_type)
{
	AgRowMap *map = ag_row_map_create(model, model_name, CurrentMemoryContext);

	ag_row_map_bind(map, lookup_rowtype_tupdesc_copy(row_type, -1));
}

PG_FUNCTION_INFO_V1(ag_sql_create_function);

Datum
ag_sql_create_function(PG_FUNCTION_ARGS)
{
	char *model_name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	List *name = function_name(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	Oid relation = PG_GETARG_OID(2);
	Oid row_type = get_rel_type_id(relation);
	const AgOpenModel *model;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;
	Oid result;

	if (get_rel_name(relation) == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relation)));
	if (!OidIsValid(row_type))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" has no rows to predict for", get_rel_name(relation))));
	ag_catalog_find(model_name, &id, &member, &row);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	check_columns(model, model_name, row_type);
	result = label_type(model, relation);
	notice_rounding(model_name, model, result);
	name = in_its_schema(name);
	create(psprintf("%s(%s)", NameListToQuotedString(name), format_type_be_qualified(row_type)),
		   result, model_name, ag_cost_of_row(model, AG_ROW_RECORD));
	PG_RETURN_OID(LookupFuncName(name, 1, &row_type, false));
}
