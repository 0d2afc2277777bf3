/*
 * plan_note.c - see plan_note.h.
 *
 * A node's expressions are lists of steps by the time that EXPLAIN writes it. Each step that calls one of our functions has the name of
 * the model among its arguments, and after an execution the calls that it made, with their counts.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/execExpr.h"
#include "executor/nodeAgg.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "pg/call.h"
#include "pg/catalog.h"
#include "pg/columns.h"
#include "pg/compat.h"
#include "pg/language.h"
#include "pg/plan_note.h"

#ifdef AG_NODE_NOTES

/* What is said of a node: models by their names as given. */
typedef struct Note
{
	char *model;
	bool is_counted;
	uint64 n_rows;
} Note;

typedef struct Notes
{
	bool is_analyzed;
	int n;
	int capacity;
	Note *notes;
} Notes;

/* Where an SQL function keeps its calls. */
typedef enum Keeper
{
	KEPT_IN_EXTRA,
	KEPT_BY_COLUMNS,
	KEPT_BY_LANGUAGE
} Keeper;

#define EACH_OF_FORMS(name)                                                                        \
	X(name##_record, KEPT_IN_EXTRA) X(name##_jsonb, KEPT_IN_EXTRA) X(name##_text, KEPT_IN_EXTRA)
#define EACH_FUNCTION                                                                              \
	EACH_OF_FORMS(ag_sql_predict)                                                                  \
	EACH_OF_FORMS(ag_sql_predict_typed)                                                            \
	EACH_OF_FORMS(ag_sql_predict_class)                                                            \
	EACH_OF_FORMS(ag_sql_predict_proba)                                                            \
	EACH_OF_FORMS(ag_sql_predict_proba_of)                                                         \
	EACH_OF_FORMS(ag_sql_predict_quantiles)                                                        \
	EACH_OF_FORMS(ag_sql_predict_interval)                                                         \
	X(ag_sql_predict_columns, KEPT_BY_COLUMNS)                                                     \
	X(ag_sql_predict_class_columns, KEPT_BY_COLUMNS)                                               \
	X(ag_sql_predict_proba_columns, KEPT_BY_COLUMNS)                                               \
	X(ag_sql_predict_quantiles_columns, KEPT_BY_COLUMNS)

#define X(function, keeper) extern Datum function(PG_FUNCTION_ARGS);
EACH_FUNCTION
#undef X
extern Datum ag_sql_predict_table(PG_FUNCTION_ARGS);

static const struct
{
	PGFunction function;
	Keeper keeper;
} functions[] = {
#define X(function, keeper) {function, keeper},
	EACH_FUNCTION
#undef X
	{ag_sql_language_handler, KEPT_BY_LANGUAGE},
};

static Note *
note_of(Notes *notes, const char *model)
{
	for (int i = 0; i < notes->n; i++)
		if (strcmp(notes->notes[i].model, model) == 0)
			return &notes->notes[i];
	if (notes->n == notes->capacity)
	{
		notes->capacity = notes->capacity * 2 + 4;
		notes->notes = notes->notes == NULL
						   ? palloc(sizeof(Note) * notes->capacity)
						   : repalloc(notes->notes, sizeof(Note) * notes->capacity);
	}
	notes->notes[notes->n] = (Note){pstrdup(model), false, 0};
	return &notes->notes[notes->n++];
}

/* NULL: it is computed row by row. */
static char *
name_of_model(const FmgrInfo *place, Keeper keeper)
{
	const FuncExpr *call = (const FuncExpr *) place->fn_expr;
	const Const *model;

	if (keeper == KEPT_BY_LANGUAGE)
		return ag_language_model(place->fn_oid);
	if (call == NULL || !IsA(call, FuncExpr) || call->args == NIL ||
		!IsA(linitial(call->args), Const))
		return NULL;
	model = linitial(call->args);
	return model->constisnull || model->consttype != TEXTOID
			   ? NULL
			   : TextDatumGetCString(model->constvalue);
}

static void
note_place(Notes *notes, const FmgrInfo *place)
{
	const AgCall *call;
	char *model;
	size_t i = 0;

	while (i < lengthof(functions) && functions[i].function != place->fn_addr)
		i++;
	if (i == lengthof(functions))
		return;
	model = name_of_model(place, functions[i].keeper);
	if (model != NULL)
		note_of(notes, model)->is_counted = notes->is_analyzed;
	if (!notes->is_analyzed)
		return;
	switch (functions[i].keeper)
	{
		case KEPT_BY_COLUMNS:
			call = ag_columns_calls(place);
			break;
		case KEPT_BY_LANGUAGE:
			call = ag_language_calls(place);
			break;
		default:
			call = place->fn_extra;
	}
	for (; call != NULL; call = call->next)
	{
		/* a name that rows make may tell of rows that a view keeps from the reader of the plan */
		Note *note = note_of(notes, model == NULL && !ag_may_monitor() ? "(computed)" : call->name);

		note->is_counted = true;
		note->n_rows += call->n_rows;
	}
}

static void
note_expression(Notes *notes, ExprState *state)
{
	for (int i = 0; state != NULL && i < state->steps_len; i++)
		switch (ExecEvalStepOp(state, &state->steps[i]))
		{
			case EEOP_FUNCEXPR:
			case EEOP_FUNCEXPR_STRICT:
			case EEOP_FUNCEXPR_STRICT_1:
			case EEOP_FUNCEXPR_STRICT_2:
			case EEOP_FUNCEXPR_FUSAGE:
			case EEOP_FUNCEXPR_STRICT_FUSAGE:
				note_place(notes, state->steps[i].d.func.finfo);
				break;
			default:
				break;
		}
}

static void
note_expressions(Notes *notes, List *states)
{
	ListCell *cell;

	foreach (cell, states)
		if (IsA(lfirst(cell), ExprState))
			note_expression(notes, lfirst(cell));
}

/* Arguments and filters of aggregates; a phase's steps are compiled in up to four ways. */
static void
note_aggregates(Notes *notes, AggState *state)
{
	for (int i = 0; i < state->numphases; i++)
		for (int k = 0; k < 4; k++)
			note_expression(notes, state->phases[i].evaltrans_cache[k / 2][k % 2]);
}

static void
note_windows(Notes *notes, WindowAggState *state)
{
	ListCell *cell;

	foreach (cell, state->funcs)
	{
		WindowFuncExprState *function = lfirst(cell);

		note_expressions(notes, function->args);
		note_expression(notes, function->aggfilter);
	}
	note_expression(notes, state->runcondition);
}

/* ag_predict_table's rows are the node's. */
static void
note_tables(Notes *notes, const FunctionScan *scan)
{
	ListCell *cell;

	foreach (cell, scan->functions)
	{
		const FuncExpr *call =
			(const FuncExpr *) ((const RangeTblFunction *) lfirst(cell))->funcexpr;
		FmgrInfo place;
		char *model;

		if (!IsA(call, FuncExpr))
			continue;
		fmgr_info(call->funcid, &place);
		place.fn_expr = (Node *) call;
		if (place.fn_addr == ag_sql_predict_table &&
			(model = name_of_model(&place, KEPT_IN_EXTRA)) != NULL)
			(void) note_of(notes, model);
	}
}

static void
note_node(Notes *notes, PlanState *state)
{
	note_expression(notes, state->qual);
	if (state->ps_ProjInfo != NULL)
		note_expression(notes, &state->ps_ProjInfo->pi_state);
	switch (nodeTag(state))
	{
		case T_NestLoopState:
		case T_MergeJoinState:
			note_expression(notes, ((JoinState *) state)->joinqual);
			break;
		case T_HashJoinState:
			note_expression(notes, ((JoinState *) state)->joinqual);
			note_expression(notes, ((HashJoinState *) state)->hashclauses);
			break;
		case T_FunctionScanState:
			note_tables(notes, (const FunctionScan *) state->plan);
			break;
		case T_ModifyTableState:
			for (int i = 0; i < ((ModifyTableState *) state)->mt_nrels; i++)
			{
				const ResultRelInfo *result = &((ModifyTableState *) state)->resultRelInfo[i];

				if (result->ri_projectReturning != NULL)
					note_expression(notes, &result->ri_projectReturning->pi_state);
			}
			break;
		case T_ResultState:
			note_expression(notes, ((ResultState *) state)->resconstantqual);
			break;
		case T_AggState:
			note_aggregates(notes, (AggState *) state);
			break;
		case T_WindowAggState:
			note_windows(notes, (WindowAggState *) state);
			break;
		case T_ProjectSetState:
			for (int i = 0; i < ((ProjectSetState *) state)->nelems; i++)
				if (IsA(((ProjectSetState *) state)->elems[i], ExprState))
					note_expression(notes, (ExprState *) ((ProjectSetState *) state)->elems[i]);
			break;
		default:
			break;
	}
}

/* "churn@3" for "churn", and "churn@3/LR" for "churn/LR"; as it is where the version can't be seen, or stands there already. */
static char *
with_version(const char *model, int *version)
{
	AgModelName name;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;

	*version = 0;
	/* auto_explain writes plans when their snapshot is gone */
	if (!ActiveSnapshotSet() || !ag_model_name_try(model, &name) ||
		!ag_catalog_find_quietly(model, &id, &member, &row))
		return pstrdup(model);
	*version = row->version;
	return psprintf("%s@%d%s%s", name.name, row->version, name.member != NULL ? "/" : "",
					name.member != NULL ? name.member : "");
}

/* What workers of a parallel plan scored isn't known here. */
static void
write_note(const Note *note, bool has_workers, ExplainState *es)
{
	const char *rows = has_workers ? "Rows Scored by Leader" : "Rows Scored";
	int version;
	char *model = with_version(note->model, &version);

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		if (note->is_counted)
			model = psprintf("%s (%s: " UINT64_FORMAT ")", model,
							 has_workers ? "rows scored by leader" : "rows scored", note->n_rows);
		ExplainPropertyText("Model", model, es);
		return;
	}
	ExplainOpenGroup("Model", NULL, true, es);
	ExplainPropertyText("Name", note->model, es);
	if (version > 0)
		ExplainPropertyInteger("Version", NULL, version, es);
	if (note->is_counted)
		ExplainPropertyUInteger(rows, NULL, note->n_rows, es);
	ExplainCloseGroup("Model", NULL, true, es);
}

static explain_per_node_hook_type previous_hook;

static void
note_in_explain(PlanState *state, List *ancestors, const char *relationship, const char *plan_name,
				ExplainState *es)
{
	Notes notes = {es->analyze};

	if (previous_hook != NULL)
		previous_hook(state, ancestors, relationship, plan_name, es);
	note_node(&notes, state);
	if (notes.n == 0)
		return;
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainOpenGroup("Models", "Models", false, es);
	for (int i = 0; i < notes.n; i++)
		write_note(&notes.notes[i], state->worker_instrument != NULL, es);
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainCloseGroup("Models", "Models", false, es);
}

void
ag_plan_note_init(void)
{
	previous_hook = explain_per_node_hook;
	explain_per_node_hook = note_in_explain;
}

#else

void
ag_plan_note_init(void)
{
}

#endif
