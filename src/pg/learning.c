/*
 * learning.c - ag_learning_curves: how models did on their validation rows, round by round.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"

#include "pg/catalog.h"
#include "pg/srf.h"

/* A member of the object; NULL where it isn't of that type: tables restored by hand may hold anything. */
static JsonbValue *
part_of(Jsonb *history, const char *name, enum jbvType type)
{
	JsonbValue key = {.type = jbvString};
	JsonbValue *value;

	if (!JB_ROOT_IS_OBJECT(history))
		return NULL;
	key.val.string.val = (char *) name;
	key.val.string.len = (int) strlen(name);
	value = findJsonbValueFromContainer(&history->root, JB_FOBJECT, &key);
	return value != NULL && value->type == type ? value : NULL;
}

static double
number_at(JsonbContainer *array, int i)
{
	JsonbValue *value = getIthJsonbValueFromContainer(array, i);

	if (value == NULL || value->type != jbvNumeric)
		return NAN;
	return DatumGetFloat8(
		DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(value->val.numeric)));
}

static void
put_history(AgSrf *srf, const char *name, int fold, Jsonb *history)
{
	JsonbValue *metric = part_of(history, "metric", jbvString);
	JsonbValue *iterations = part_of(history, "iteration", jbvBinary);
	JsonbValue *values = part_of(history, "val", jbvBinary);
	char *metric_name;

	if (metric == NULL || iterations == NULL || values == NULL ||
		!JsonContainerIsArray(iterations->val.binary.data) ||
		!JsonContainerIsArray(values->val.binary.data))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("the stored model is damaged"),
						errdetail_internal("A history is no object of a metric and two arrays.")));
	metric_name = pnstrdup(metric->val.string.val, metric->val.string.len);
	for (int i = 0; i < JsonContainerSize(iterations->val.binary.data); i++)
	{
		double iteration = number_at(iterations->val.binary.data, i);
		Datum row[5];
		bool nulls[5] = {false};

		if (!(iteration >= 0 && iteration <= PG_INT32_MAX))
			continue;
		ag_srf_text(row, nulls, 0, name);
		row[1] = Int32GetDatum(fold);
		nulls[1] = fold == 0;
		ag_srf_text(row, nulls, 2, metric_name);
		row[3] = Int32GetDatum((int32) iteration);
		ag_srf_number(row, nulls, 4, number_at(values->val.binary.data, i));
		ag_srf_row(srf, row, nulls);
	}
}

/* A bag's child is shown under the bag's name. */
static const char *
bag_name(const AgMemberRow *member)
{
	const char *slash = strrchr(member->name, '/');

	return slash != NULL ? pnstrdup(member->name, slash - member->name) : member->name;
}

PG_FUNCTION_INFO_V1(ag_sql_learning_curves);

Datum
ag_sql_learning_curves(PG_FUNCTION_ARGS)
{
	AgMemberRow *members;
	pg_uuid_t id;
	char *only;
	int n;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	ag_catalog_find(text_to_cstring(PG_GETARG_TEXT_PP(0)), &id, &only, NULL);
	members = ag_catalog_members(&id, &n);
	for (int i = 0; i < n; i++)
	{
		const char *name = members[i].fold > 0 ? bag_name(&members[i]) : members[i].name;
		Jsonb *history;

		if (only != NULL && strcmp(only, name) != 0 && strcmp(only, members[i].name) != 0)
			continue;
		history = ag_catalog_history(&id, members[i].ordinal);
		if (history != NULL)
			put_history(&srf, name, members[i].fold, history);
	}
	return (Datum) 0;
}
