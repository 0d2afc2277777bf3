/*
 * columns.c - see columns.h: reading the columns at execution. The rewriting is in support.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "pg/columns.h"
#include "pg/compat.h"
#include "pg/stats.h"

#define FIRST_COLUMN 3 /* argument */

#define MOST_KEPT 16

/*
 * In fn_extra, and kept from one execution to the next: a look-up of one row by a prepared statement would spend most of its time on
 * getting ready. Only what can't change in the meantime is kept, or what is looked at again.
 */
typedef struct State
{
	struct State *next; /* of those that nobody uses, the one used last first */
	MemoryContext context;
	AgCall *call;
	Oid checked_role; /* whose right to execute was looked at last, and on what */
	Oid checked_function;
	bool is_at_work; /* or was when it failed */
	/* what it is for */
	Oid function, called;
	text *name;
	ArrayType *columns;
	int n;
	Oid *types;
} State;

static State *kept;

static void
not_for_users(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg("this function is for the planner to call"),
		 errhint("Use ag_predict, ag_predict_class, ag_predict_proba or ag_predict_quantiles.")));
}

static Oid
owner_of(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid owner = InvalidOid;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

/*
 * ag_predict for ag_predict_columns, and so on: no other function's right counts, also not that of one which somebody else put into the schema
 * under that name.
 */
static bool
stands_for(Oid function, Oid called)
{
	char *name = get_func_name(function), *called_name = get_func_name(called);

	return name != NULL && called_name != NULL &&
		   get_func_namespace(function) == get_func_namespace(called) &&
		   owner_of(function) == owner_of(called) &&
		   strcmp(name, psprintf("%s_columns", called_name)) == 0;
}

static void
check_right(FunctionCallInfo fcinfo, State *state)
{
	Oid called = PG_GETARG_OID(1);
	AclResult result;

	if (state->checked_role == GetUserId() && state->checked_function == called)
		return;
	if (!stands_for(fcinfo->flinfo->fn_oid, called))
		not_for_users();
	result = ag_function_aclcheck(called, GetUserId());
	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(called));
	state->checked_role = GetUserId();
	state->checked_function = called;
}

static bool
is_for(const State *state, FunctionCallInfo fcinfo, const text *name, const ArrayType *columns)
{
	int n = PG_NARGS() - FIRST_COLUMN;

	if (state->function != fcinfo->flinfo->fn_oid || state->called != PG_GETARG_OID(1) ||
		state->n != n || VARSIZE_ANY_EXHDR(state->name) != VARSIZE_ANY_EXHDR(name) ||
		memcmp(VARDATA_ANY(state->name), VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)) != 0 ||
		VARSIZE(state->columns) != VARSIZE(columns) ||
		memcmp(state->columns, columns, VARSIZE(columns)) != 0)
		return false;
	for (int i = 0; i < n; i++)
		if (state->types[i] != get_fn_expr_argtype(fcinfo->flinfo, FIRST_COLUMN + i))
			return false;
	return true;
}

static State *
make_state(FunctionCallInfo fcinfo, const text *name, const ArrayType *columns)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "ag_pg columns", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	State *state = palloc0(sizeof(State));

	state->context = context;
	state->function = fcinfo->flinfo->fn_oid;
	state->called = PG_GETARG_OID(1);
	state->n = PG_NARGS() - FIRST_COLUMN;
	state->name = cstring_to_text_with_len(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	state->columns = palloc(VARSIZE(columns));
	memcpy(state->columns, columns, VARSIZE(columns));
	state->types = palloc(sizeof(Oid) * Max(state->n, 1));
	for (int i = 0; i < state->n; i++)
		state->types[i] = get_fn_expr_argtype(fcinfo->flinfo, FIRST_COLUMN + i);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(context, CacheMemoryContext);
	return state;
}

/* The execution is over, well or badly. Its context's children, and so the model's pin, are gone already. */
static void
release(void *arg)
{
	State *state = arg;
	State **last = &kept;
	int n = 0;

	if (state->is_at_work || state->call == NULL || state->call->next != NULL ||
		state->call->map == NULL || !ag_row_map_is_lasting(state->call->map))
	{
		MemoryContextDelete(state->context);
		return;
	}
	state->next = kept;
	kept = state;
	while (*last != NULL && n++ < MOST_KEPT)
		last = &(*last)->next;
	if (*last != NULL)
	{
		MemoryContextDelete((*last)->context);
		*last = NULL;
	}
}

static State *
take_state(FunctionCallInfo fcinfo)
{
	text *name = PG_GETARG_TEXT_PP(0);
	ArrayType *columns = PG_GETARG_ARRAYTYPE_P(2);
	MemoryContextCallback *callback =
		MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(MemoryContextCallback));
	State **at = &kept;
	State *state;

	while (*at != NULL && !is_for(*at, fcinfo, name, columns))
		at = &(*at)->next;
	state = *at;
	if (state != NULL)
		*at = state->next;
	else
		state = make_state(fcinfo, name, columns);
	state->next = NULL;
	state->checked_role = InvalidOid; /* the right may have been taken away */
	state->is_at_work = true;
	callback->func = release;
	callback->arg = state;
	MemoryContextRegisterResetCallback(fcinfo->flinfo->fn_mcxt, callback);
	fcinfo->flinfo->fn_extra = state;
	if (state->call == NULL)
		state->call = ag_call_create(state->context, fcinfo->flinfo->fn_mcxt, VARDATA_ANY(name),
									 VARSIZE_ANY_EXHDR(name));
	else
		ag_call_resume(state->call, fcinfo->flinfo->fn_mcxt);
	return state;
}

const AgCall *
ag_columns_calls(const FmgrInfo *place)
{
	const State *state = place->fn_extra;

	return state != NULL ? state->call : NULL;
}

/* The arguments as a row of that many columns, each with its name and type. */
static TupleDesc
describe(FunctionCallInfo fcinfo)
{
	int n = PG_NARGS() - FIRST_COLUMN, n_names;
	TupleDesc desc = CreateTemplateTupleDesc(n);
	Datum *names;
	bool *nulls;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls,
					  &n_names);
	if (n_names != n)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("there are %d names for %d columns", n_names, n)));
	for (int i = 0; i < n; i++)
	{
		Oid type = get_fn_expr_argtype(fcinfo->flinfo, FIRST_COLUMN + i);

		if (nulls[i] || !OidIsValid(type))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("column %d has no name or no type", i + 1)));
		TupleDescInitEntry(desc, i + 1, TextDatumGetCString(names[i]), type, -1, 0);
	}
	return desc;
}

AgCall *
ag_columns_predict(FunctionCallInfo fcinfo)
{
	State *state = fcinfo->flinfo->fn_extra;
	AgCall *call;
	text *name;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) ||
		get_fn_expr_variadic(fcinfo->flinfo))
		not_for_users();
	if (state == NULL)
		state = take_state(fcinfo);
	state->is_at_work = true;
	check_right(fcinfo, state);
	name = PG_GETARG_TEXT_PP(0);
	call = ag_call_get(&state->call, state->context, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name),
					   InvalidOid);
	if (!ag_row_map_is_bound(call->map))
		ag_row_map_bind(call->map, describe(fcinfo));
	ag_predictor_run(call->model->predictor,
					 ag_row_from_arguments(call->map, fcinfo->args + FIRST_COLUMN), call->out);
	ag_stats_count(AG_STAT_PREDICTIONS, 1);
	state->is_at_work = false;
	return call;
}
