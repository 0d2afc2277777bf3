/*
 * info.c - ag_info: all that is known of a predictor, as one JSON object. Who may only predict with it sees what that
 * takes: nothing that quotes the data it was made of.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "pg/catalog.h"
#include "pg/coefficients.h"
#include "pg/result.h"

/* --- an object, member by member --- */

static void
put_key(JsonbParseState **state, const char *key)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = (char *) key;
	value.val.string.len = (int) strlen(key);
	pushJsonbValue(state, WJB_KEY, &value);
}

/* An element of an array, or the value of the key just put. NULL: null. */
static void
put_text(JsonbParseState **state, JsonbIteratorToken token, const char *text)
{
	JsonbValue value = {.type = jbvNull};

	if (text != NULL)
	{
		value.type = jbvString;
		value.val.string.val = (char *) text;
		value.val.string.len = (int) strlen(text);
	}
	pushJsonbValue(state, token, &value);
}

static void
put_text_member(JsonbParseState **state, const char *key, const char *text)
{
	put_key(state, key);
	put_text(state, WJB_VALUE, text);
}

/* NaN: null. */
static void
put_number(JsonbParseState **state, const char *key, double number)
{
	JsonbValue value = {.type = jbvNull};

	put_key(state, key);
	if (isfinite(number))
	{
		value.type = jbvNumeric;
		value.val.numeric = DatumGetNumeric(
			DirectFunctionCall3(numeric_in, CStringGetDatum(ag_result_number_text(number)),
								ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	}
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
put_bool(JsonbParseState **state, const char *key, bool flag)
{
	JsonbValue value = {.type = jbvBool};

	put_key(state, key);
	value.val.boolean = flag;
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* A stored object or array; NULL: an empty array. */
static void
put_jsonb(JsonbParseState **state, const char *key, Jsonb *jsonb)
{
	put_key(state, key);
	if (jsonb == NULL)
	{
		pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
		pushJsonbValue(state, WJB_END_ARRAY, NULL);
	}
	else
	{
		JsonbValue value = {.type = jbvBinary};

		value.val.binary.data = &jsonb->root;
		value.val.binary.len = VARSIZE(jsonb) - VARHDRSZ;
		pushJsonbValue(state, WJB_VALUE, &value);
	}
}

/* --- the parts of ag_info --- */

static void
put_features(JsonbParseState **state, const pg_uuid_t *id, AgRight right)
{
	int n;
	AgFeatureRow *features = ag_catalog_features(id, &n);

	put_key(state, "features");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		if (features[i].is_used)
			put_text(state, WJB_ELEM, features[i].name);
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
	if (right < AG_RIGHT_INSPECT)
		return;
	put_key(state, "became");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < n; i++)
		if (features[i].is_used)
			put_text_member(state, features[i].name, features[i].became);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
	put_key(state, "left_out");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < n; i++)
		if (!features[i].is_used)
			put_text_member(state, features[i].name, features[i].dropped_why);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/* Of a bag; a stacker's model has inputs, too, but they aren't its children. */
static int
count_children(const AgMemberRow *members, int n, const AgMemberRow *bag)
{
	int n_children = 0;

	for (int j = 0; j < bag->n_inputs; j++)
		for (int i = 0; i < n; i++)
			n_children += members[i].ordinal == bag->inputs[j] && members[i].fold > 0;
	return n_children;
}

static void
put_members(JsonbParseState **state, const pg_uuid_t *id, AgRight right)
{
	int n;
	AgMemberRow *members = ag_catalog_members(id, &n);
	const char *device = "cpu";

	put_key(state, "models");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < n; i++)
	{
		if (strcmp(members[i].device, "imported") == 0)
			device = "imported";
		else if (strcmp(members[i].device, "cpu") != 0)
			device = "gpu";
		if (members[i].fold > 0) /* a bag stands for its children */
			continue;
		put_key(state, members[i].name);
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		put_text_member(state, "family", members[i].family);
		put_number(state, "score_val", members[i].score_val);
		put_text_member(state, "device", members[i].device);
		put_jsonb(state, "hyperparameters", members[i].hyperparameters);
		if (count_children(members, n, &members[i]) > 0)
			put_number(state, "children", count_children(members, n, &members[i]));
		if (right >= AG_RIGHT_INSPECT && ag_coefficients_has(&members[i]))
			put_jsonb(state, "coefficients", ag_coefficients(id, members, n, &members[i]));
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
	}
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
	put_text_member(state, "device", device);
}

static char *
timestamp_text(TimestampTz timestamp)
{
	/* the form that JSON has: ISO 8601, whatever DateStyle says */
	return JsonEncodeDateTime(NULL, TimestampTzGetDatum(timestamp), TIMESTAMPTZOID, NULL);
}

PG_FUNCTION_INFO_V1(ag_sql_info);

Datum
ag_sql_info(PG_FUNCTION_ARGS)
{
	JsonbParseState *state = NULL;
	AgPredictorRow *row;
	pg_uuid_t id;

	ag_catalog_find(text_to_cstring(PG_GETARG_TEXT_PP(0)), &id, NULL, &row);
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	put_text_member(&state, "name", row->name);
	put_number(&state, "version", row->version);
	put_bool(&state, "pinned", row->pinned);
	put_text_member(&state, "owner", row->owner);
	if (row->right >= AG_RIGHT_INSPECT)
		put_text_member(&state, "data", row->data);
	put_text_member(&state, "label", row->label);
	put_text_member(&state, "problem_type", row->problem_type);
	put_jsonb(&state, "classes", row->classes);
	put_text_member(&state, "eval_metric", row->eval_metric);
	put_number(&state, "score_val", row->score_val);
	put_text_member(&state, "best_model", row->best_model);
	if (strcmp(row->problem_type, "binary") == 0)
		put_number(&state, "decision_threshold",
				   isnan(row->decision_threshold) ? 0.5 : row->decision_threshold);
	put_number(&state, "rows", (double) row->rows);
	put_number(&state, "rows_left_out", (double) row->rows_left_out);
	put_text_member(&state, "created_at", timestamp_text(row->created_at));
	put_number(&state, "time_limit", row->time_limit);
	put_number(&state, "fit_time", row->fit_time);
	if (row->right >= AG_RIGHT_INSPECT)
	{
		put_jsonb(&state, "options", row->options);
		put_jsonb(&state, "plan", row->plan);
		put_jsonb(&state, "warnings", row->warnings);
	}
	put_features(&state, &id, row->right);
	put_members(&state, &id, row->right);
	put_number(&state, "format", row->format);
	PG_RETURN_JSONB_P(JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}
