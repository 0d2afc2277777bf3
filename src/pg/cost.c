/*
 * cost.c - see cost.h. A model of ten trees costs a thousandth of an ensemble of nets: filters and plans should know.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/inval.h"
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

/*
 * The planner asks for every path that it tries. The last few answers are kept until some name means something else, which
 * makes plans anew; that another snapshot may see it otherwise is no matter for an estimate.
 */
#define MOST_ANSWERS 8
static struct Answer
{
	bool valid;
	Oid role;
	char name[2 * NAMEDATALEN];
	AgRowForm form;
	double cost;
} answers[MOST_ANSWERS];
static int next_answer; /* is written over next */
static Oid predictors;  /* InvalidOid: no invalidation of it is listened to yet */

static void
forget_last(Datum arg, Oid relid)
{
	if (relid == predictors || !OidIsValid(relid))
		memset(answers, 0, sizeof answers);
}

static void
remember(const char *name, AgRowForm form, double cost)
{
	struct Answer *answer = &answers[next_answer];

	if (strlen(name) >= sizeof answer->name)
		return;
	if (!OidIsValid(predictors))
		CacheRegisterRelcacheCallback(forget_last, (Datum) 0);
	predictors = ag_catalog_relation("ag_predictor");
	answer->role = GetUserId();
	strlcpy(answer->name, name, sizeof answer->name);
	answer->form = form;
	answer->cost = cost;
	answer->valid = true;
	next_answer = (next_answer + 1) % MOST_ANSWERS;
}

/* One that predicts? What else is wrong with a call is said when it runs. */
static bool
has_member(const pg_uuid_t *id, const char *member)
{
	int n;
	AgMemberRow *rows = ag_catalog_members(id, &n);

	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].name, member) == 0)
			return rows[i].can_infer;
	return false;
}

/* Of one row of the model of that name; 0 where it isn't known, or isn't the user's to predict with. */
static double
cost_by_name(const char *name, AgRowForm form)
{
	MemoryContext keeper;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;
	double cost;

	for (int i = 0; i < MOST_ANSWERS; i++)
		if (answers[i].valid && answers[i].role == GetUserId() && answers[i].form == form &&
			strcmp(answers[i].name, name) == 0)
			return answers[i].cost;
	if (!ActiveSnapshotSet() || !ag_catalog_find_quietly(name, &id, &member, &row))
		return 0.0;
	if (member == NULL)
		member = row->best_model;
	if (!has_member(&id, member))
		return 0.0;
	keeper = AllocSetContextCreate(CurrentMemoryContext, "ag_pg cost", ALLOCSET_SMALL_SIZES);
	cost = ag_cost_of_row(ag_cache_get(&id, member, keeper), form);
	MemoryContextDelete(keeper);
	remember(name, form, cost);
	return cost;
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
	double rows = 1.0, cost;
	char *name;

	if (call == NULL || !IsA(call, FuncExpr) || (name = text_argument(call, 0)) == NULL)
		return false;
	if (call->funcretset)
		rows = rows_of_table(call);
	if (rows < 0.0)
		return false;
	cost = cost_by_name(name, call->funcretset ? AG_ROW_COLUMNS : form_of(call));
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
