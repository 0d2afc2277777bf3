/*
 * upkeep.c - ag_refresh and ag_delete_members: a model fitted again as it was fitted, and made smaller.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "pg/catalog.h"
#include "pg/fit.h"
#include "pg/srf.h"
#include "pg/upkeep.h"

extern Datum ag_sql_activate(PG_FUNCTION_ARGS);

AgPredictorRow *
ag_upkeep_find_own_member(const char *model, pg_uuid_t *id, char **member)
{
	AgPredictorRow *row;

	ag_catalog_find(model, id, member, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, row->name);
	return row;
}

AgPredictorRow *
ag_upkeep_find_own(const char *model, pg_uuid_t *id)
{
	AgModelName name;
	char *member;

	ag_model_name_parse(model, &name);
	if (name.member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one member of a model", model),
						errhint("Give the model's name, or one version of it as 'name@3'.")));
	return ag_upkeep_find_own_member(model, id, &member);
}

void
ag_upkeep_refuse_member(const AgPredictorRow *row, const char *name)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("model \"%s\" has no member \"%s\"", row->name, name),
					errhint("SELECT model FROM ag_leaderboard(%s) lists them.",
							quote_literal_cstr(row->name))));
}

void
ag_upkeep_require_data(const AgPredictorRow *row)
{
	if (strncmp(row->data, AG_IMPORTED_DATA, strlen(AG_IMPORTED_DATA)) == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("model \"%s\" was imported, and has no data to be fitted again on",
							   row->name),
						errhint("Import it again with ag_import, which makes a new version.")));
}

/* --- ag_refresh --- */

/* What it was fitted with, with what is given now put over it; the name is the model's own. */
static Jsonb *
options_of(const AgPredictorRow *row, Jsonb *given)
{
	StringInfoData name;
	Datum options = JsonbPGetDatum(row->options);

	initStringInfo(&name);
	appendStringInfoString(&name, "{\"name\": ");
	escape_json(&name, row->name);
	appendStringInfoChar(&name, '}');
	if (given != NULL)
		options = DirectFunctionCall2(jsonb_concat, options, JsonbPGetDatum(given));
	return DatumGetJsonbP(DirectFunctionCall2(
		jsonb_concat, options, DirectFunctionCall1(jsonb_in, CStringGetDatum(name.data))));
}

/* By the same metric, and really better: a tie is no reason for a change. */
static bool
is_better(const AgPredictorRow *current, const AgFitCall *call)
{
	const char *metric = ag_metric_name(call->fitted.eval_metric);

	return strcmp(metric, current->eval_metric) == 0 && !isnan(call->fitted.score_val) &&
		   (isnan(current->score_val) || call->fitted.score_val > current->score_val);
}

void
ag_upkeep_activate(const char *name, int version)
{
	CommandCounterIncrement();
	PushCopiedSnapshot(GetActiveSnapshot()); /* one that sees the version just stored */
	UpdateActiveSnapshotCommandId();
	(void) DirectFunctionCall2(ag_sql_activate, CStringGetTextDatum(name), Int32GetDatum(version));
	PopActiveSnapshot();
}

/*
 * Which version is current from now on. The new one is anyway where none is pinned; the old one stays so by being pinned, and a
 * pin that was there moves on to the new one.
 */
static void
settle(const AgPredictorRow *current, const AgFitCall *call, bool take_new)
{
	if (!take_new || current->pinned)
		ag_upkeep_activate(call->name, take_new ? call->version : current->version);
	if (call->options->verbosity == 0)
		return;
	if (take_new)
		ereport(NOTICE, (errmsg("version %d of \"%s\" (score %g) takes the place of version %d "
								"(score %g)",
								call->version, call->name, call->fitted.score_val, current->version,
								current->score_val)));
	else
		ereport(NOTICE, (errmsg("version %d of \"%s\" (score %g) stays the current one, not "
								"version %d (score %g)",
								current->version, call->name, current->score_val, call->version,
								call->fitted.score_val),
						 errdetail("It is pinned now."),
						 errhint("ag_activate(%s, NULL) makes the newest version the current one.",
								 quote_literal_cstr(call->name))));
}

/* What isn't put over the model's own options: another name, and what is no object. */
static void
check_given(Jsonb *given, const char *model_name)
{
	JsonbValue name = {.type = jbvString, .val.string = {4, "name"}};
	JsonbValue *value;

	if (!JB_ROOT_IS_OBJECT(given))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the options of ag_refresh must be a JSON object")));
	value = findJsonbValueFromContainer(&given->root, JB_FOBJECT, &name);
	if (value != NULL && value->type != jbvNull &&
		!(value->type == jbvString && value->val.string.len == (int) strlen(model_name) &&
		  memcmp(value->val.string.val, model_name, strlen(model_name)) == 0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("ag_refresh does not take the option \"name\""),
						errdetail("It makes a new version of model \"%s\".", model_name),
						errhint("Use ag_fit to fit another model, or ag_rename.")));
}

static void
refuse_dry_run(Jsonb *options)
{
	JsonbValue key = {.type = jbvString, .val.string = {7, "dry_run"}};
	JsonbValue *value = findJsonbValueFromContainer(&options->root, JB_FOBJECT, &key);

	if (value != NULL && value->type == jbvBool && value->val.boolean)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("ag_refresh does not take the option \"dry_run\"")));
}

PG_FUNCTION_INFO_V1(ag_sql_refresh);

/* ag_refresh(model text, activate text, options jsonb) RETURNS text */
Datum
ag_sql_refresh(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	char *model, *activate;
	Jsonb *given, *options;
	AgPredictorRow *row, *current;
	pg_uuid_t id;
	AgFitCall *call;
	bool take_new;
	char *name;

	ag_fit_refuse_early("ag_refresh", true);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	activate = PG_ARGISNULL(1) ? "if_better" : text_to_cstring(PG_GETARG_TEXT_PP(1));
	given = PG_ARGISNULL(2) ? NULL : PG_GETARG_JSONB_P(2);
	if (strcmp(activate, "if_better") != 0 && strcmp(activate, "always") != 0 &&
		strcmp(activate, "never") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("activate takes if_better, always or never, not \"%s\"", activate)));
	row = ag_upkeep_find_own(model, &id);
	ag_upkeep_require_data(row);
	current = ag_upkeep_find_own(row->name, &id);
	ag_rights_require_self(row->name, row->owner, "refresh");
	if (given != NULL)
		check_given(given, row->name);
	options = options_of(row, given);
	refuse_dry_run(options);
	call = ag_fit_begin(row->data, row->label, options);
	(void) ag_fit_in_session(call);
	take_new = strcmp(activate, "always") == 0 ||
			   (strcmp(activate, "if_better") == 0 && is_better(current, call));
	settle(current, call, take_new);
	MemoryContextSwitchTo(caller);
	name = psprintf("%s@%d", call->name, call->version);
	MemoryContextDelete(call->context);
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

/* --- ag_delete_members --- */

typedef struct Members
{
	AgMemberRow *rows;
	int n;
	bool *chosen;   /* to keep, or to delete */
	int64 *n_bytes; /* that its parts take */
} Members;

static int
index_of(const Members *members, int ordinal)
{
	for (int i = 0; i < members->n; i++)
		if (members->rows[i].ordinal == ordinal)
			return i;
	return -1;
}

/* Marks the members of the array; "best" is the best one. */
static void
choose(Members *members, ArrayType *names, const AgPredictorRow *row)
{
	Datum *values;
	bool *nulls;
	int n;

	deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &n);
	for (int k = 0; k < n; k++)
	{
		const char *name = nulls[k] ? "" : TextDatumGetCString(values[k]);
		bool found = false;

		if (strcmp(name, "best") == 0)
			name = row->best_model;
		for (int i = 0; i < members->n; i++)
			if (strcmp(members->rows[i].name, name) == 0)
				members->chosen[i] = found = true;
		if (!found)
			ag_upkeep_refuse_member(row, name);
	}
}

/* And all that the chosen ones combine. */
static void
choose_inputs(Members *members, int i)
{
	check_stack_depth(); /* as deep as the tables' rows make it */
	for (int k = 0; k < members->rows[i].n_inputs; k++)
	{
		int input = index_of(members, members->rows[i].inputs[k]);

		if (input >= 0 && !members->chosen[input])
		{
			members->chosen[input] = true;
			choose_inputs(members, input);
		}
	}
}

/* Turns those to keep into those to delete. */
static void
keep_chosen(Members *members)
{
	for (int i = 0; i < members->n; i++)
		if (members->chosen[i])
			choose_inputs(members, i);
	for (int i = 0; i < members->n; i++)
		members->chosen[i] = !members->chosen[i];
}

/* A bag's children go with it; what a member that stays combines can't go. */
static void
delete_chosen(Members *members)
{
	for (int i = 0; i < members->n; i++)
		for (int k = 0; members->chosen[i] && k < members->rows[i].n_inputs; k++)
		{
			int input = index_of(members, members->rows[i].inputs[k]);

			if (input >= 0 && members->rows[input].fold > 0)
				members->chosen[input] = true;
		}
}

static void
check_rest(const Members *members, const AgPredictorRow *row)
{
	for (int i = 0; i < members->n; i++)
	{
		const AgMemberRow *member = &members->rows[i];

		if (members->chosen[i] && strcmp(member->name, row->best_model) == 0)
			ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
							errmsg("\"%s\" is what \"%s\" predicts with", member->name, row->name),
							errhint("Keep 'best' too.")));
		for (int k = 0; !members->chosen[i] && k < member->n_inputs; k++)
		{
			int input = index_of(members, member->inputs[k]);

			if (input >= 0 && members->chosen[input])
				ereport(ERROR,
						(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
						 errmsg("\"%s\" needs \"%s\"", member->name, members->rows[input].name),
						 errhint("Delete both, or give models_to_keep.")));
		}
	}
}

static void
take_bytes(void *arg, HeapTuple tuple, TupleDesc desc)
{
	Members *members = arg;
	bool is_null;
	int i = index_of(members, DatumGetInt32(heap_getattr(tuple, 1, desc, &is_null)));

	if (i >= 0)
		members->n_bytes[i] += DatumGetInt32(heap_getattr(tuple, 2, desc, &is_null));
}

static void
apply(const pg_uuid_t *id, Members *members, bool dry_run)
{
	Oid types[2] = {UUIDOID, INT4ARRAYOID};
	Datum values[2], *ordinals = palloc(sizeof(Datum) * Max(members->n, 1));
	int n = 0;

	for (int i = 0; i < members->n; i++)
		if (members->chosen[i])
			ordinals[n++] = Int32GetDatum(members->rows[i].ordinal);
	values[0] = UUIDPGetDatum(id);
	values[1] =
		PointerGetDatum(construct_array(ordinals, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
	ag_catalog_execute_on("ag_member_part",
						  dry_run ? "SELECT member, octet_length(data) FROM @.ag_member_part "
									"WHERE predictor = $1 AND member = ANY ($2)"
								  : "DELETE FROM @.ag_member_part WHERE predictor = $1 AND "
									"member = ANY ($2) RETURNING member, octet_length(data)",
						  2, types, values, NULL, take_bytes, members);
	if (dry_run)
		return;
	ag_catalog_execute_on("ag_member",
						  "DELETE FROM @.ag_member WHERE predictor = $1 AND ordinal = ANY ($2)", 2,
						  types, values, NULL, NULL, NULL);
	ag_catalog_changed();
}

PG_FUNCTION_INFO_V1(ag_sql_delete_members);

/* ag_delete_members(model, models_to_keep text[], models_to_delete text[], dry_run) RETURNS TABLE (model, bytes) */
Datum
ag_sql_delete_members(PG_FUNCTION_ARGS)
{
	bool dry_run = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
	Members members = {0};
	AgPredictorRow *row;
	pg_uuid_t id;
	AgSrf srf;

	if (!dry_run)
		ag_catalog_refuse_read_only("ag_delete_members");
	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	if (PG_ARGISNULL(1) == PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("give either models_to_keep or models_to_delete"),
						errhint("models_to_keep => '{best}' keeps what the model predicts with.")));
	row = ag_upkeep_find_own(text_to_cstring(PG_GETARG_TEXT_PP(0)), &id);
	members.rows = ag_catalog_members(&id, &members.n);
	members.chosen = palloc0(sizeof(bool) * Max(members.n, 1));
	members.n_bytes = palloc0(sizeof(int64) * Max(members.n, 1));
	choose(&members, PG_GETARG_ARRAYTYPE_P(PG_ARGISNULL(1) ? 2 : 1), row);
	if (PG_ARGISNULL(1))
		delete_chosen(&members);
	else
		keep_chosen(&members);
	check_rest(&members, row);
	apply(&id, &members, dry_run);
	for (int i = 0; i < members.n; i++)
	{
		Datum values[2];
		bool nulls[2] = {false};

		if (!members.chosen[i])
			continue;
		ag_srf_text(values, nulls, 0, members.rows[i].name);
		values[1] = Int64GetDatum(members.n_bytes[i]);
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
