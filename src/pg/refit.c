/*
 * refit.c - ag_refit_full: what a predictor predicts with, or one of its members, trained once more on all rows of its data, without
 * validation: each of its models as one, with the parameters, rounds and weights that its fit found.
 *
 * It is a plan for the trainer in the form of one to be repeated (options_replay.c), made of what is stored.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/snapmgr.h"

#include "pg/catalog.h"
#include "pg/fit.h"
#include "pg/rights.h"
#include "pg/upkeep.h"

#define FULL "_FULL"
#define BAG "_BAG_L1"

/* What can be given: nothing that changes a bit of the result. */
static const char *const takes[] = {"verbosity", "memory_limit", "num_cpus", "num_gpus"};

typedef struct Refit
{
	const AgPredictorRow *row;
	const AgMemberRow *members, *best; /* best: what is to predict */
	int n_members;
	JsonbContainer *fitted,
		*replay; /* of the plan: models as they were fitted, and what repeats them */
	StringInfoData json;
} Refit;

/* --- what is stored */

static JsonbValue *
get(JsonbContainer *object, const char *name)
{
	JsonbValue key = {.type = jbvString};

	if (object == NULL || !JsonContainerIsObject(object))
		return NULL;
	key.val.string.val = (char *) name;
	key.val.string.len = (int) strlen(name);
	return findJsonbValueFromContainer(object, JB_FOBJECT, &key);
}

/* An array or object; NULL: there is none. */
static JsonbContainer *
get_container(JsonbContainer *object, const char *name)
{
	JsonbValue *value = get(object, name);

	return value != NULL && value->type == jbvBinary ? value->val.binary.data : NULL;
}

static JsonbContainer *
item_of(JsonbContainer *array, uint32 i)
{
	JsonbValue *value = array != NULL && JsonContainerIsArray(array) && i < JsonContainerSize(array)
							? getIthJsonbValueFromContainer(array, i)
							: NULL;

	return value != NULL && value->type == jbvBinary ? value->val.binary.data : NULL;
}

/* The model of that name in a list, as it was fitted first or again. */
static JsonbContainer *
find_model(JsonbContainer *list, const char *base)
{
	uint32 n = list != NULL && JsonContainerIsArray(list) ? JsonContainerSize(list) : 0;
	size_t n_base = strlen(base);

	for (uint32 i = 0; i < n; i++)
	{
		JsonbContainer *model = item_of(list, i);
		JsonbValue *name = get(model, "name");

		if (name == NULL || name->type != jbvString)
			continue;
		if (name->val.string.len >= (int) n_base &&
			memcmp(name->val.string.val, base, n_base) == 0 &&
			(name->val.string.len == (int) n_base ||
			 (name->val.string.len == (int) (n_base + strlen(FULL)) &&
			  memcmp(name->val.string.val + n_base, FULL, strlen(FULL)) == 0)))
			return model;
	}
	return NULL;
}

static void
unknown(const Refit *refit)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("what is stored of model \"%s\" doesn't tell how its models were trained",
					refit->row->name)));
}

static int64
whole(const Refit *refit, const JsonbValue *value)
{
	int64 number;

	if (value == NULL || value->type != jbvNumeric)
		unknown(refit);
	number = DatumGetInt64(DirectFunctionCall1(numeric_int8, NumericGetDatum(value->val.numeric)));
	if (number < 0 || number > INT_MAX)
		unknown(refit);
	return number;
}

/* The mean of those that the model's trainings kept; 0: its family has none. */
static int64
rounds_of(const Refit *refit, JsonbContainer *model)
{
	JsonbValue *rounds = get(model, "rounds");
	JsonbContainer *list;
	int64 sum = 0, n;

	if (rounds == NULL)
		return 0;
	if (rounds->type != jbvBinary)
		return Max(whole(refit, rounds), 1);
	list = rounds->val.binary.data;
	n = JsonContainerIsArray(list) ? JsonContainerSize(list) : 0;
	if (n == 0)
		unknown(refit);
	for (int64 i = 0; i < n; i++)
		sum += whole(refit, getIthJsonbValueFromContainer(list, (uint32) i));
	return Max((sum + n / 2) / n, 1);
}

/* --- the plan */

static void
put_text(Refit *refit, const char *key, const char *text)
{
	appendStringInfo(&refit->json, "\"%s\": ", key);
	escape_json(&refit->json, text);
	appendStringInfoString(&refit->json, ", ");
}

static void
put_number(Refit *refit, const char *key, double value)
{
	if (!isfinite(value))
		unknown(refit);
	appendStringInfo(&refit->json, "\"%s\": %.17g, ", key, value);
}

/* A list that the plan has in other words: as it is. */
static void
put_copy(Refit *refit, const char *key)
{
	JsonbContainer *list = get_container(refit->replay, key);

	if (list == NULL)
		return;
	appendStringInfo(&refit->json, "\"%s\": ", key);
	(void) JsonbToCString(&refit->json, list, 0);
	appendStringInfoString(&refit->json, ", ");
}

/* Linear models go the way that the first of their trainings went, but to the end. */
static void
put_cuts(Refit *refit, const AgMemberRow *member, const char *base)
{
	JsonbContainer *model = find_model(get_container(refit->replay, "models"), base);
	JsonbContainer *first = item_of(get_container(model, "cuts"), 0);

	if (strcmp(member->family, "LR") != 0 || first == NULL || !JsonContainerIsArray(first) ||
		JsonContainerSize(first) != 2)
		return;
	appendStringInfo(&refit->json, ", \"cuts\": [[" INT64_FORMAT ", -1]]",
					 whole(refit, getIthJsonbValueFromContainer(first, 0)));
}

static char *
without(const char *name, const char *suffix)
{
	size_t n = strlen(name), n_suffix = strlen(suffix);

	if (n > n_suffix && strcmp(name + n - n_suffix, suffix) == 0)
		n -= n_suffix;
	return pnstrdup(name, n);
}

static void
put_model(Refit *refit, const AgMemberRow *member)
{
	char *base = without(member->name, FULL);
	JsonbContainer *model = find_model(refit->fitted, base);

	if (member->fold != 0)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("\"%s\" of model \"%s\" is the model of one fold", member->name,
							   refit->row->name),
						errhint("Name the bag that it is part of: one model takes the place of "
								"all of its folds.")));
	if (member->stack_level != 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("model \"%s\" predicts with \"%s\", which learnt from other models' "
						"predictions",
						refit->row->name, member->name),
				 errdetail("Those are of models that hadn't seen the rows, and are not kept."),
				 errhint("SELECT ag_refresh(%s, options => '{\"refit_full\": true, "
						 "\"set_best_to_refit_full\": true}') makes them anew.",
						 quote_literal_cstr(refit->row->name))));
	if (model == NULL)
		unknown(refit);
	appendStringInfoString(&refit->json, "{");
	put_text(refit, "name", psprintf("%s" FULL, base));
	put_text(refit, "config", without(base, BAG));
	appendStringInfo(&refit->json, "\"full\": false, \"rounds\": [" INT64_FORMAT "]",
					 rounds_of(refit, model));
	put_cuts(refit, member, base);
	appendStringInfoString(&refit->json, "}");
}

static const AgMemberRow *
member_by(const Refit *refit, int ordinal)
{
	for (int i = 0; i < refit->n_members; i++)
		if (refit->members[i].ordinal == ordinal)
			return &refit->members[i];
	unknown(refit);
	return NULL;
}

static bool
is_ensemble(const AgMemberRow *member)
{
	return strcmp(member->family, "ENS_WEIGHTED") == 0;
}

/* What predicts: one model, or an ensemble and what it weighs. */
static void
put_models(Refit *refit)
{
	const AgMemberRow *best = refit->best;
	int n = is_ensemble(best) ? best->n_inputs : 1;

	if (n == 0)
		unknown(refit);
	appendStringInfoString(&refit->json, "\"models\": [");
	for (int i = 0; i < n; i++)
	{
		appendStringInfoString(&refit->json, i > 0 ? ", " : "");
		put_model(refit, is_ensemble(best) ? member_by(refit, best->inputs[i]) : best);
	}
	appendStringInfoString(&refit->json, "], \"ensembles\": [");
	if (is_ensemble(best))
	{
		appendStringInfoString(&refit->json, "{");
		put_text(refit, "name", psprintf("%s" FULL, without(best->name, FULL)));
		appendStringInfoString(&refit->json, "\"weights\": [");
		for (int i = 0; i < n; i++)
		{
			if (!(best->weights[i] >= 0 && best->weights[i] <= 1))
				unknown(refit);
			appendStringInfo(&refit->json, "%s%.17g", i > 0 ? ", " : "", best->weights[i]);
		}
		appendStringInfoString(&refit->json, "]}");
	}
	appendStringInfoString(&refit->json, "]}}");
}

static Jsonb *
plan_make(Refit *refit)
{
	const AgMemberRow *best = refit->best;
	JsonbValue *zone = get(refit->replay, "time_zone");

	initStringInfo(&refit->json);
	appendStringInfoString(&refit->json, "{\"replay\": {\"refit\": true, \"num_bag_folds\": 0, "
										 "\"num_bag_sets\": 1, \"num_stack_levels\": 0, ");
	put_text(refit, "best", psprintf("%s" FULL, without(best->name, FULL)));
	if (zone != NULL && zone->type == jbvString)
		put_text(refit, "time_zone", pnstrdup(zone->val.string.val, zone->val.string.len));
	put_number(refit, "temperature", best->temperature);
	put_number(refit, "threshold",
			   isnan(refit->row->decision_threshold) ? 0 : refit->row->decision_threshold);
	appendStringInfoString(&refit->json, "\"shifts\": [");
	for (int i = 0; i < best->n_shifts; i++)
	{
		if (!isfinite(best->shifts[i]))
			unknown(refit);
		appendStringInfo(&refit->json, "%s%.17g", i > 0 ? ", " : "", best->shifts[i]);
	}
	appendStringInfoString(&refit->json, "], ");
	put_copy(refit, "wordless");
	put_copy(refit, "trials");
	put_models(refit);
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(refit->json.data)));
}

/* member: what is to be trained again; NULL: what predicts. */
static void
open_stored(Refit *refit, const AgPredictorRow *row, const pg_uuid_t *id, const char *member)
{
	JsonbContainer *plan = JB_ROOT_IS_OBJECT(row->plan) ? &row->plan->root : NULL;

	memset(refit, 0, sizeof *refit);
	refit->row = row;
	refit->members = ag_catalog_members(id, &refit->n_members);
	for (int i = 0; i < refit->n_members; i++)
		if (strcmp(refit->members[i].name, member != NULL ? member : row->best_model) == 0)
			refit->best = &refit->members[i];
	if (refit->best == NULL && member != NULL)
		ag_upkeep_refuse_member(row, member);
	refit->fitted = get_container(plan, "models");
	refit->replay = get_container(plan, "replay");
	if (refit->best == NULL || refit->replay == NULL)
		unknown(refit);
}

/* --- what came of it */

/* A set of models may mean other parameters in another release: then what was trained isn't what was meant, and isn't stored either. */
static void
check_same(const Refit *refit, const AgFitCall *call)
{
	AgPredictorRow *row;
	AgMemberRow *members;
	char *member;
	pg_uuid_t id;
	int n;

	CommandCounterIncrement();
	PushCopiedSnapshot(GetActiveSnapshot()); /* one that sees the version just stored */
	UpdateActiveSnapshotCommandId();
	ag_catalog_find(psprintf("%s@%d", call->name, call->version), &id, &member, &row);
	members = ag_catalog_members(&id, &n);
	PopActiveSnapshot();
	for (int i = 0; i < n; i++)
		for (int k = 0; k < refit->n_members; k++)
		{
			const AgMemberRow *old = &refit->members[k];

			if (old->fold != 0 ||
				strcmp(without(members[i].name, FULL), without(old->name, FULL)) != 0 ||
				compareJsonbContainers(&members[i].hyperparameters->root,
									   &old->hyperparameters->root) == 0)
				continue;
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("\"%s\" of model \"%s\" was trained with other hyperparameters than it "
							"would be now",
							old->name, refit->row->name),
					 errhint("The sets of models are those of another release: ag_refresh fits "
							 "anew.")));
		}
}

/* --- the call */

static void
check_options(Jsonb *given)
{
	JsonbIterator *it = JsonbIteratorInit(&given->root);
	JsonbIteratorToken token;
	JsonbValue value;

	if (!JB_ROOT_IS_OBJECT(given))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("options of ag_refit_full must be a JSON object")));
	(void) JsonbIteratorNext(&it, &value, true);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		bool is_known = token != WJB_KEY;

		for (size_t i = 0; !is_known && i < lengthof(takes); i++)
			is_known = strlen(takes[i]) == (size_t) value.val.string.len &&
					   memcmp(takes[i], value.val.string.val, value.val.string.len) == 0;
		if (!is_known)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("ag_refit_full does not take the option \"%s\"",
							pnstrdup(value.val.string.val, value.val.string.len)),
					 errdetail("It takes verbosity, memory_limit, num_cpus and num_gpus; all else "
							   "is as it was."),
					 errhint("ag_refresh fits again with other options.")));
	}
}

/* Those of the fit, under its name. */
static Jsonb *
options_of(const AgPredictorRow *row, Jsonb *given)
{
	Datum options = JsonbPGetDatum(row->options);
	StringInfoData name;

	initStringInfo(&name);
	appendStringInfoString(&name, "{\"name\": ");
	escape_json(&name, row->name);
	appendStringInfoChar(&name, '}');
	options = DirectFunctionCall2(jsonb_delete, options, CStringGetTextDatum("time_limit"));
	options = DirectFunctionCall2(jsonb_concat, options, JsonbPGetDatum(given));
	return DatumGetJsonbP(DirectFunctionCall2(
		jsonb_concat, options, DirectFunctionCall1(jsonb_in, CStringGetDatum(name.data))));
}

PG_FUNCTION_INFO_V1(ag_sql_refit_full);

/* ag_refit_full(model text, options jsonb) RETURNS text */
Datum
ag_sql_refit_full(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	Jsonb *given, *options, *plan;
	AgPredictorRow *row, *current;
	pg_uuid_t id, current_id;
	AgFitCall *call;
	Refit refit;
	char *name, *member;

	ag_fit_refuse_early("ag_refit_full", true);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	given = PG_ARGISNULL(1) ? DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")))
							: PG_GETARG_JSONB_P(1);
	check_options(given);
	row = ag_upkeep_find_own_member(text_to_cstring(PG_GETARG_TEXT_PP(0)), &id, &member);
	ag_upkeep_require_data(row);
	current = ag_upkeep_find_own(row->name, &current_id);
	ag_rights_require_self(row->name, row->owner, "retrain");
	open_stored(&refit, row, &id, member);
	plan = plan_make(&refit);
	options = options_of(row, given);
	call = ag_fit_begin(row->data, row->label, options);
	call->plan = plan;
	(void) ag_fit_in_session(call);
	check_same(&refit, call);
	if (current->pinned)
		ag_upkeep_activate(call->name, call->version);
	MemoryContextSwitchTo(caller);
	name = psprintf("%s@%d", call->name, call->version);
	MemoryContextDelete(call->context);
	PG_RETURN_TEXT_P(cstring_to_text(name));
}
