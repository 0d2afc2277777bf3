/*
 * row.c - see row.h.
 *
 * Finding the columns and the converters costs once a row type; per row there is one deform up to the last column that
 * is needed, and one conversion for each used input.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/typcache.h"

#include "pg/convert.h"
#include "pg/row.h"

/* One input that the model uses. */
typedef struct Input
{
	int at;     /* among the model's inputs */
	char *name; /* server's encoding */
	int name_bytes;
	AgType type;
	/* record and slot */
	int column; /* from 0 */
	AgConverter *converter;
	bool is_float8; /* see ag_converter_is_float8 */
	/* JSON, made when first needed */
	AgConverter *from_text, *from_number;
} Input;

struct AgRowMap
{
	MemoryContext context;
	MemoryContext bound; /* converters of the row type at hand */
	const AgOpenModel *model;
	char *name;
	pg_tz *zone;
	AgValue *values; /* [n_inputs] */
	int n_used;
	Input *used;
	/* the row type it is bound to */
	Oid type;
	int32 typmod;
	uint64 identity; /* of the type's descriptor */
	int n_columns;   /* up to the last one needed */
	bool is_lasting;
	TupleTableSlot *slot;
};

static pg_tz *
zone_of(const AgOpenModel *model)
{
	const char *name = ag_predictor_time_zone(model->predictor);
	pg_tz *zone;

	if (name == NULL || name[0] == '\0')
		return pg_tzset("GMT");
	zone = pg_tzset(name);
	if (zone == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("this server does not know the model's time zone \"%s\"", name)));
	return zone;
}

AgRowMap *
ag_row_map_create(const AgOpenModel *model, const char *name, MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "ag_pg row map", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	AgRowMap *map = palloc0(sizeof(AgRowMap));

	map->context = context;
	map->model = model;
	map->name = pstrdup(name);
	map->zone = zone_of(model);
	map->values = palloc0(sizeof(AgValue) * Max(model->n_inputs, 1));
	map->used = palloc0(sizeof(Input) * Max(model->n_inputs, 1));
	for (int i = 0; i < model->n_inputs; i++)
	{
		Input *input = &map->used[map->n_used];

		map->values[i].is_null = true;
		if (!model->inputs[i].is_used)
			continue;
		input->at = i;
		input->name = ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name));
		input->name_bytes = (int) strlen(input->name);
		input->type = model->inputs[i].type;
		map->n_used++;
	}
	MemoryContextSwitchTo(caller);
	return map;
}

/* --- missing columns --- */

/* One error for all of them: nobody should have to find them one by one. */
static void
missing_error(const AgRowMap *map, const bool *missing, const char *hint)
{
	StringInfoData list;
	int n = 0;

	initStringInfo(&list);
	for (int i = 0; i < map->n_used; i++)
		if (missing[i])
			appendStringInfo(&list, "%s\"%s\"", n++ == 0 ? "" : ", ", map->used[i].name);
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
					errmsg_plural("the row lacks column %s, which model \"%s\" was trained on",
								  "the row lacks columns %s, which model \"%s\" was trained on", n,
								  list.data, map->name),
					hint != NULL ? errhint("%s", hint) : 0));
}

/* The likeliest cause: names in another case, or a row without names. */
static const char *
missing_hint(const AgRowMap *map, const bool *missing, TupleDesc desc)
{
	if (desc->natts > 0 && strcmp(NameStr(TupleDescAttr(desc, 0)->attname), "f1") == 0)
		return "Columns are matched by name, and ROW(...) has none: pass a table's or sub-query's "
			   "alias.";
	for (int i = 0; i < map->n_used; i++)
	{
		if (!missing[i])
			continue;
		for (int j = 0; j < desc->natts; j++)
		{
			const char *name = NameStr(TupleDescAttr(desc, j)->attname);

			if (!TupleDescAttr(desc, j)->attisdropped &&
				pg_strcasecmp(name, map->used[i].name) == 0)
				return psprintf("Names are matched exactly: the row has a column \"%s\".", name);
		}
	}
	return "Columns are matched by name; those the model doesn't use may be missing.";
}

/* --- records and slots --- */

static int
column_by_name(const AgRowMap *map, TupleDesc desc, const char *name)
{
	int found = -1;

	for (int j = 0; j < desc->natts; j++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, j);

		if (attribute->attisdropped || strcmp(NameStr(attribute->attname), name) != 0)
			continue;
		if (found >= 0)
			ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
							errmsg("the row has two columns \"%s\", and model \"%s\" needs one",
								   name, map->name)));
		found = j;
	}
	return found;
}

static void
find_columns(AgRowMap *map, TupleDesc desc)
{
	bool *missing = palloc0(sizeof(bool) * Max(map->n_used, 1));
	bool any_missing = false;

	for (int i = 0; i < map->n_used; i++)
	{
		map->used[i].column = column_by_name(map, desc, map->used[i].name);
		missing[i] = map->used[i].column < 0;
		any_missing |= missing[i];
	}
	if (any_missing)
		missing_error(map, missing, missing_hint(map, missing, desc));
	pfree(missing);
}

void
ag_row_map_bind(AgRowMap *map, TupleDesc desc)
{
	MemoryContext caller;

	map->slot = NULL;
	map->n_columns = 0;
	find_columns(map, desc);
	if (map->bound == NULL)
		map->bound = AllocSetContextCreate(map->context, "ag_pg row type", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(map->bound);
	caller = MemoryContextSwitchTo(map->bound);
	map->is_lasting = true;
	for (int i = 0; i < map->n_used; i++)
	{
		Input *input = &map->used[i];

		input->converter =
			ag_converter_create(TupleDescAttr(desc, input->column)->atttypid, input->type,
								input->name, map->zone, map->model->raw_text);
		input->is_float8 = ag_converter_is_float8(input->converter);
		map->is_lasting &= ag_converter_is_lasting(input->converter);
		map->n_columns = Max(map->n_columns, input->column + 1);
	}
	/* with the columns' missing values: a tuple may be older than ALTER TABLE ... ADD COLUMN */
	map->slot = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(desc), &TTSOpsHeapTuple);
	MemoryContextSwitchTo(caller);
}

static void
bind_type(AgRowMap *map, Oid type, int32 typmod)
{
	TupleDesc desc = lookup_rowtype_tupdesc_domain(type, typmod, false);

	ag_row_map_bind(map, desc);
	ReleaseTupleDesc(desc);
	map->type = type;
	map->typmod = typmod;
	map->identity = assign_record_type_identifier(type, typmod);
}

static inline void
convert(const Input *input, Datum datum, bool is_null, AgValue *value)
{
	if (!input->is_float8)
	{
		ag_converter_run(input->converter, datum, is_null, value);
		return;
	}
	value->is_null = is_null;
	value->v.f64 = is_null ? 0.0 : DatumGetFloat8(datum);
}

const AgValue *
ag_row_from_slot(AgRowMap *map, TupleTableSlot *slot)
{
	slot_getsomeattrs(slot, map->n_columns);
	for (int i = 0; i < map->n_used; i++)
	{
		const Input *input = &map->used[i];

		convert(input, slot->tts_values[input->column], slot->tts_isnull[input->column],
				&map->values[input->at]);
	}
	return map->values;
}

bool
ag_row_map_is_bound(const AgRowMap *map)
{
	return map->slot != NULL;
}

bool
ag_row_map_is_lasting(const AgRowMap *map)
{
	return map->slot != NULL && map->is_lasting;
}

const AgValue *
ag_row_from_arguments(AgRowMap *map, const NullableDatum *arguments)
{
	for (int i = 0; i < map->n_used; i++)
	{
		const Input *input = &map->used[i];

		convert(input, arguments[input->column].value, arguments[input->column].isnull,
				&map->values[input->at]);
	}
	return map->values;
}

const AgValue *
ag_row_from_record(AgRowMap *map, HeapTupleHeader record)
{
	Oid type = HeapTupleHeaderGetTypeId(record);
	int32 typmod = HeapTupleHeaderGetTypMod(record);
	const AgValue *values;
	HeapTupleData tuple;

	/* A composite type that no table's lock guards may change between two rows of one statement. */
	if (map->slot == NULL || type != map->type || typmod != map->typmod ||
		assign_record_type_identifier(type, typmod) != map->identity)
		bind_type(map, type, typmod);
	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	ExecStoreHeapTuple(&tuple, map->slot, false);
	values = ag_row_from_slot(map, map->slot);
	ExecClearTuple(map->slot); /* the record is the caller's, and may be gone at the next row */
	return values;
}

/* --- JSON --- */

static AgConverter *
json_converter(AgRowMap *map, AgConverter **converter, Oid type, const Input *input)
{
	if (*converter == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(map->context);

		*converter =
			ag_converter_create(type, input->type, input->name, map->zone, map->model->raw_text);
		MemoryContextSwitchTo(caller);
	}
	return *converter;
}

static void
convert_json(AgRowMap *map, Input *input, const JsonbValue *json, AgValue *value)
{
	AgConverter *converter;

	switch (json->type)
	{
		case jbvNull:
			value->is_null = true;
			break;
		case jbvString:
			converter = json_converter(map, &input->from_text, TEXTOID, input);
			ag_converter_run_text(converter, pnstrdup(json->val.string.val, json->val.string.len),
								  value);
			break;
		case jbvBool:
			converter = json_converter(map, &input->from_text, TEXTOID, input);
			ag_converter_run_text(converter, json->val.boolean ? "true" : "false", value);
			break;
		case jbvNumeric:
			converter = json_converter(map, &input->from_number, NUMERICOID, input);
			ag_converter_run(converter, NumericGetDatum(json->val.numeric), false, value);
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("column \"%s\" is a JSON object or array, not a value", input->name)));
	}
}

const AgValue *
ag_row_from_jsonb(AgRowMap *map, Jsonb *features)
{
	bool *missing = NULL;

	if (!JB_ROOT_IS_OBJECT(features))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the row for model \"%s\" must be a JSON object", map->name)));
	for (int i = 0; i < map->n_used; i++)
	{
		Input *input = &map->used[i];
		JsonbValue found;

		if (getKeyJsonValueFromContainer(&features->root, input->name, input->name_bytes, &found) !=
			NULL)
			convert_json(map, input, &found, &map->values[input->at]);
		else
		{
			if (missing == NULL)
				missing = palloc0(sizeof(bool) * map->n_used);
			missing[i] = true;
		}
	}
	if (missing != NULL)
		missing_error(map, missing, "In JSON, null stands for an unknown value.");
	return map->values;
}

/*
 * A text is JSON. The commonest way to get here without wanting to is a table alias that is also the name of a text
 * column: PostgreSQL takes the column.
 */
const AgValue *
ag_row_from_text(AgRowMap *map, const text *features)
{
	char *json = text_to_cstring(features);
	const char *at = json;

	while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
		at++;
	if (*at != '{')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("the row for model \"%s\" is a text that is no JSON object", map->name),
				 errhint("To pass a table's row give its alias; where a column has the alias's "
						 "name, write alias.* instead.")));
	return ag_row_from_jsonb(map,
							 DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json))));
}
