/*
 * replay.c - see replay.h.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "pg/catalog.h"
#include "pg/options_json.h"
#include "pg/replay.h"

/* What can be given beside it: nothing that changes a bit of the result. */
static const char *const harmless[] = {"name",         "replay",   "verbosity",
									   "memory_limit", "num_cpus", "num_gpus"};

static void
check_others(Jsonb *given)
{
	JsonbIterator *it = JsonbIteratorInit(&given->root);
	JsonbIteratorToken token;
	JsonbValue value;

	(void) JsonbIteratorNext(&it, &value, true);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		bool is_harmless = token != WJB_KEY;

		for (size_t i = 0; !is_harmless && i < lengthof(harmless); i++)
			is_harmless = strlen(harmless[i]) == (size_t) value.val.string.len &&
						  memcmp(harmless[i], value.val.string.val, value.val.string.len) == 0;
		if (!is_harmless)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("options \"replay\" and \"%s\" exclude each other",
								   pnstrdup(value.val.string.val, value.val.string.len)),
							errdetail("All but the name and the resources is as it was.")));
	}
}

static Datum
without(Datum options, const char *key)
{
	return DirectFunctionCall2(jsonb_delete, options, CStringGetTextDatum(key));
}

/* Whether rows of a query that is kept with it would be read. */
static bool
has_tuning_data(const AgPredictorRow *row)
{
	return ag_options_member(row->options, "tuning_data") != NULL;
}

/* {"replay": the plan's part}. */
static Datum
plan_of(const AgPredictorRow *row, const char *model)
{
	JsonbParseState *state = NULL;
	JsonbValue *plan = ag_options_member(row->plan, "replay");
	JsonbValue key = {.type = jbvString};

	if (plan == NULL || plan->type != jbvBinary)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("model \"%s\" has no plan that could be repeated", model)));
	key.val.string.val = "replay";
	key.val.string.len = (int) strlen("replay");
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	pushJsonbValue(&state, WJB_KEY, &key);
	pushJsonbValue(&state, WJB_VALUE, plan);
	return JsonbPGetDatum(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}

Jsonb *
ag_replay_options(Jsonb *given, Jsonb **kept)
{
	JsonbValue *replay = ag_options_member(given, "replay");
	AgPredictorRow *row;
	Datum options;
	pg_uuid_t id;
	char *model, *member;

	*kept = given;
	if (replay == NULL)
		return given;
	if (replay->type != jbvString)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"replay\" takes the name of a version such as \"name@3\"")));
	check_others(given);
	model = pnstrdup(replay->val.string.val, replay->val.string.len);
	ag_catalog_find(model, &id, &member, &row);
	ag_rights_require(row->right, AG_RIGHT_INSPECT, row->name);
	if (member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one member of a model", model)));
	if (has_tuning_data(row))
		ag_rights_require_self(row->name, row->owner, "repeat the fit of");
	options = without(without(JsonbPGetDatum(row->options), "name"), "time_limit");
	options = DirectFunctionCall2(jsonb_concat, options, without(JsonbPGetDatum(given), "replay"));
	*kept = DatumGetJsonbP(options);
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat, options, plan_of(row, model)));
}
