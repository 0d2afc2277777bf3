/*
 * support.c - what the planner may know of the prediction functions: what they cost (cost.c), and that a call with a whole row is
 * one with the columns that the model needs.
 *
 * Only where it means the same: the row is of a table, view or sub-query of this query and no outer join can make it NULL as a
 * whole; every column is there, once; and they fit into a call. Everything else stays as written, errors included, for
 * execution to tell. The plan then depends on the table of predictors, whose every change makes it anew.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_func.h"
#include "parser/parsetree.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "pg/cache.h"
#include "pg/catalog.h"
#include "pg/cost.h"

#define LEADING_ARGUMENTS 3 /* of the function with columns */

/* --- where a row's columns are */

/* Is that range table entry below the side of an outer join that may be missing? */
static bool
is_nullable(Node *node, int varno, bool nullable)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblRef))
		return nullable && ((RangeTblRef *) node)->rtindex == varno;
	if (IsA(node, FromExpr))
	{
		ListCell *cell;

		foreach (cell, ((FromExpr *) node)->fromlist)
			if (is_nullable(lfirst(cell), varno, nullable))
				return true;
		return false;
	}
	if (IsA(node, JoinExpr))
	{
		JoinExpr *join = (JoinExpr *) node;
		bool left = join->jointype == JOIN_RIGHT || join->jointype == JOIN_FULL;
		bool right = join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL;

		return is_nullable(join->larg, varno, nullable || left) ||
			   is_nullable(join->rarg, varno, nullable || right);
	}
	return true;
}

static Expr *
column_of_table(const Var *row, Oid relid, const char *name)
{
	HeapTuple tuple = SearchSysCacheAttName(relid, name);
	Form_pg_attribute attribute;
	Expr *column = NULL;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	attribute = (Form_pg_attribute) GETSTRUCT(tuple);
	/* a virtual column is an expression, which is put in before we come */
	if (attribute->attnum > 0 &&
		(attribute->attgenerated == '\0' || attribute->attgenerated == ATTRIBUTE_GENERATED_STORED))
		column = (Expr *) makeVar(row->varno, attribute->attnum, attribute->atttypid,
								  attribute->atttypmod, attribute->attcollation, 0);
	ReleaseSysCache(tuple);
	return column;
}

/* A row type's column by name, from 0; -1 where it is none or several. */
static int
position_of(Oid type, List *names, const char *name)
{
	int found = -1;

	if (type == RECORDOID)
	{
		for (int i = 0; i < list_length(names); i++)
			if (strcmp(strVal(list_nth(names, i)), name) == 0)
			{
				if (found >= 0)
					return -1;
				found = i;
			}
	}
	else
	{
		TupleDesc desc = lookup_rowtype_tupdesc_noerror(type, -1, true);

		for (int i = 0; desc != NULL && i < desc->natts; i++)
			if (!TupleDescAttr(desc, i)->attisdropped &&
				strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
				found = i;
		if (desc != NULL)
			ReleaseTupleDesc(desc);
	}
	return found;
}

static Expr *
column_of_subquery(const Var *row, const RangeTblEntry *entry, const char *name)
{
	int position = position_of(row->vartype, entry->eref->colnames, name);
	TargetEntry *target;

	if (position < 0)
		return NULL;
	target = get_tle_by_resno(entry->subquery->targetList, position + 1);
	if (target == NULL || target->resjunk)
		return NULL;
	return (Expr *) makeVar(row->varno, position + 1, exprType((Node *) target->expr),
							exprTypmod((Node *) target->expr), exprCollation((Node *) target->expr),
							0);
}

static Expr *
column_of_constructor(const RowExpr *row, const char *name)
{
	int position = position_of(row->row_typeid, row->colnames, name);

	return position >= 0 && position < list_length(row->args)
			   ? copyObject(list_nth(row->args, position))
			   : NULL;
}

/* NULL where it can't be told. */
static Expr *
column_of(PlannerInfo *root, Node *row, const char *name)
{
	RangeTblEntry *entry;
	Var *var;

	if (IsA(row, RowExpr))
		return column_of_constructor((RowExpr *) row, name);
	var = (Var *) row;
	entry = planner_rt_fetch(var->varno, root);
	if (entry->rtekind == RTE_RELATION && get_rel_type_id(entry->relid) == var->vartype)
		return column_of_table(var, entry->relid, name);
	if (entry->rtekind == RTE_SUBQUERY && entry->subquery != NULL)
		return column_of_subquery(var, entry, name);
	return NULL;
}

static bool
is_whole_row(PlannerInfo *root, Node *row)
{
	if (IsA(row, RowExpr))
		return !contain_volatile_functions(row);
	if (!IsA(row, Var) || ((Var *) row)->varattno != InvalidAttrNumber ||
		((Var *) row)->varlevelsup != 0)
		return false;
	return !is_nullable((Node *) root->parse->jointree, ((Var *) row)->varno, false);
}

/* --- the model's columns */

/* Their names, as text; false: no such model, or more than a call takes. */
static bool
model_columns(const char *name, Datum **columns, int *n)
{
	MemoryContext keeper, caller = CurrentMemoryContext;
	const AgOpenModel *model;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;

	if (!ag_catalog_find_quietly(name, &id, &member, &row))
		return false;
	keeper = AllocSetContextCreate(caller, "ag_pg planning", ALLOCSET_SMALL_SIZES);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, keeper);
	*columns = palloc(sizeof(Datum) * Max(model->n_inputs, 1));
	*n = 0;
	for (int i = 0; i < model->n_inputs; i++)
		if (model->inputs[i].is_used)
			(*columns)[(*n)++] = CStringGetTextDatum(
				ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name)));
	MemoryContextDelete(keeper);
	return *n > 0 && *n <= FUNC_MAX_ARGS - LEADING_ARGUMENTS;
}

/* ag_predict_columns for ag_predict, and so on. */
static Oid
function_with_columns(Oid called)
{
	Oid types[LEADING_ARGUMENTS + 1] = {TEXTOID, OIDOID, TEXTARRAYOID, ANYOID};
	char *name = get_func_name(called);

	if (name == NULL)
		return InvalidOid;
	return LookupFuncName(list_make2(makeString(get_namespace_name(get_func_namespace(called))),
									 makeString(psprintf("%s_columns", name))),
						  LEADING_ARGUMENTS + 1, types, true);
}

static Const *
array_of_names(Datum *names, int n)
{
	ArrayType *array = construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT);

	return makeConst(TEXTARRAYOID, -1, DEFAULT_COLLATION_OID, -1, PointerGetDatum(array), false,
					 false);
}

/*
 * A statement that only reads, or writes what it read: elsewhere a row may also be the one that was there, or the one that was to come.
 * Where rows are grouped in several ways, a grouped row is NULL in some, but its columns wouldn't be.
 */
static bool
is_plain(const Query *query)
{
	if (query->groupingSets != NIL)
		return false;
	if (query->commandType == CMD_INSERT)
		return query->onConflict == NULL && query->returningList == NIL;
	return query->commandType == CMD_SELECT;
}

/* NULL: the call stays as it is. */
static Node *
simplify(PlannerInfo *root, FuncExpr *call)
{
	Node *model, *row;
	Datum *names;
	List *columns = NIL;
	Oid function;
	int n;

	if (root == NULL || !is_plain(root->parse) || !ActiveSnapshotSet() ||
		list_length(call->args) != 2)
		return NULL;
	model = linitial(call->args);
	row = lsecond(call->args);
	if (!IsA(model, Const) || ((Const *) model)->constisnull || !is_whole_row(root, row))
		return NULL;
	function = function_with_columns(call->funcid);
	if (!OidIsValid(function) ||
		!model_columns(TextDatumGetCString(((Const *) model)->constvalue), &names, &n))
		return NULL;
	for (int i = 0; i < n; i++)
	{
		Expr *column = column_of(root, row, TextDatumGetCString(names[i]));

		if (column == NULL || exprType((Node *) column) == UNKNOWNOID)
			return NULL;
		columns = lappend(columns, column);
	}
	root->glob->relationOids =
		list_append_unique_oid(root->glob->relationOids, ag_catalog_relation("ag_predictor"));
	columns = list_concat(list_make3(copyObject(model),
									 makeConst(OIDOID, -1, InvalidOid, sizeof(Oid),
											   ObjectIdGetDatum(call->funcid), false, true),
									 array_of_names(names, n)),
						  columns);
	return (Node *) makeFuncExpr(function, call->funcresulttype, columns, call->funccollid,
								 call->inputcollid, COERCE_EXPLICIT_CALL);
}

PG_FUNCTION_INFO_V1(ag_sql_predict_support);

Datum
ag_sql_predict_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);
	Node *result = NULL;

	if (IsA(request, SupportRequestSimplify))
	{
		SupportRequestSimplify *simplifying = (SupportRequestSimplify *) request;

		result = simplify(simplifying->root, simplifying->fcall);
	}
	else if (IsA(request, SupportRequestCost) && ag_cost_answer((SupportRequestCost *) request))
		result = request;
	else if (IsA(request, SupportRequestRows) &&
			 ag_cost_answer_rows((SupportRequestRows *) request))
		result = request;
	PG_RETURN_POINTER(result);
}
