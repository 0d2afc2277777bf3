/*
 * cost.c - see cost.h. A model of ten trees costs a thousandth of an ensemble of nets: filters and plans should know.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pg/catalog.h"
#include "pg/cost.h"
#include "pg/source.h"

/* A simple operator of the executor takes about that long, and so that is what one cpu_operator_cost stands for. */
#define OPERATOR_NS 20.0

/* Of a call, and of each column that comes that way, beyond what the model does with it. */
static double
form_ns(AgRowForm form, int n_columns)
{
	switch (form)
	{
		case AG_ROW_COLUMNS:
			return 150.0;
		case AG_ROW_RECORD:
			return 150.0 + 25.0 * n_columns;
		default:
			return 300.0 + 100.0 * n_columns;
	}
}

double
ag_cost_of_row(const AgOpenModel *model, AgRowForm form)
{
	double ns = ag_predictor_row_ns(model->predictor) + form_ns(form, model->n_inputs);

	return fmax(1.0, rint(ns / OPERATOR_NS));
}

/* NULL where it is no text that the planner knows. */
static char *
text_argument(const FuncExpr *call, int i)
{
	Const *argument;

	if (list_length(call->args) <= i || !IsA(list_nth(call->args, i), Const))
		return NULL;
	argument = list_nth(call->args, i);
	if (argument->constisnull || argument->consttype != TEXTOID)
		return NULL;
	return TextDatumGetCString(argument->constvalue);
}

/* The model that a call names, as long as keeper lives; NULL where it isn't known, or isn't the user's to predict with. */
static const AgOpenModel *
model_of(const FuncExpr *call, MemoryContext keeper)
{
	char *name = text_argument(call, 0), *member;
	AgPredictorRow *row;
	pg_uuid_t id;

	if (name == NULL || !ActiveSnapshotSet() || !ag_catalog_find_quietly(name, &id, &member, &row))
		return NULL;
	return ag_cache_get(&id, member != NULL ? member : row->best_model, keeper);
}

static AgRowForm
form_of(const FuncExpr *call)
{
	Oid type = list_length(call->args) > 1 ? exprType(lsecond(call->args)) : InvalidOid;

	if (type == OIDOID)
		return AG_ROW_COLUMNS;
	return type == JSONBOID || type == TEXTOID ? AG_ROW_JSONB : AG_ROW_RECORD;
}

static double
rows_of_table(const FuncExpr *call)
{
	char *data = text_argument(call, 1);

	return data != NULL ? ag_source_guess_rows(data) : -1.0;
}

bool
ag_cost_answer(SupportRequestCost *request)
{
	const FuncExpr *call = (const FuncExpr *) request->node;
	const AgOpenModel *model;
	MemoryContext keeper;
	double rows = 1.0, cost = 0.0;

	if (call == NULL || !IsA(call, FuncExpr))
		return false;
	if (call->funcretset)
		rows = rows_of_table(call);
	if (rows < 0.0)
		return false;
	keeper = AllocSetContextCreate(CurrentMemoryContext, "ag_pg cost", ALLOCSET_SMALL_SIZES);
	model = model_of(call, keeper);
	if (model != NULL)
		cost = ag_cost_of_row(model, call->funcretset ? AG_ROW_COLUMNS : form_of(call));
	MemoryContextDelete(keeper);
	request->startup = 0.0;
	request->per_tuple = cost * cpu_operator_cost * rows;
	return cost > 0.0;
}

bool
ag_cost_answer_rows(SupportRequestRows *request)
{
	const FuncExpr *call = (const FuncExpr *) request->node;
	double rows;

	if (call == NULL || !IsA(call, FuncExpr))
		return false;
	rows = rows_of_table(call);
	if (rows < 0.0)
		return false;
	request->rows = fmax(rows, 1.0);
	return true;
}
