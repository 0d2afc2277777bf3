/*
 * store.c - the writing half of catalog.h: a fitted predictor into the extension's tables.
 *
 * Rows are inserted as the tables' owner, by statements that hold nothing of the user's but parameters, so that no code of
 * the user runs with rights that aren't his.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/scan.h"

#define IMAGE_FORMAT 1
#define NAME_LOCK_KEY                                                                              \
	0x4148 /* objsubid of the lock on a name: SQL's advisory locks have 1 or 2 there */
#define MAX_PARAMETERS 24

/* Columns of ag_predictor that are looked at here, as the install script creates them. */
enum
{
	PREDICTOR_NAME = 2,
	PREDICTOR_VERSION = 3,
	PREDICTOR_PINNED = 4,
	PREDICTOR_OWNER = 5
};

/* ---- statements ---- */

typedef struct Insert
{
	const char *table;
	StringInfoData columns, places;
	int n;
	Oid types[MAX_PARAMETERS];
	Datum values[MAX_PARAMETERS];
	char nulls[MAX_PARAMETERS];
} Insert;

static void
insert_begin(Insert *insert, const char *table)
{
	memset(insert, 0, sizeof *insert);
	insert->table = table;
	initStringInfo(&insert->columns);
	initStringInfo(&insert->places);
}

static void
put(Insert *insert, const char *column, Oid type, Datum value, bool is_null)
{
	if (insert->n >= MAX_PARAMETERS)
		elog(ERROR, "too many columns");
	insert->types[insert->n] = type;
	insert->values[insert->n] = value;
	insert->nulls[insert->n] = is_null ? 'n' : ' ';
	insert->n++;
	appendStringInfo(&insert->columns, "%s%s", insert->n > 1 ? ", " : "", column);
	appendStringInfo(&insert->places, "%s$%d", insert->n > 1 ? ", " : "", insert->n);
}

static void
put_text(Insert *insert, const char *column, const char *text)
{
	put(insert, column, TEXTOID, text != NULL ? CStringGetTextDatum(text) : (Datum) 0,
		text == NULL);
}

/* A text of the engine's. */
static void
put_utf8(Insert *insert, const char *column, const char *text)
{
	put_text(insert, column, text != NULL ? ag_text_from_utf8(text) : NULL);
}

static void
put_json(Insert *insert, const char *column, const char *json)
{
	put(insert, column, JSONBOID,
		json != NULL ? DirectFunctionCall1(jsonb_in, CStringGetDatum(json)) : (Datum) 0,
		json == NULL);
}

static void
put_int(Insert *insert, const char *column, int value)
{
	put(insert, column, INT4OID, Int32GetDatum(value), false);
}

static void
put_bigint(Insert *insert, const char *column, int64 value, bool is_null)
{
	put(insert, column, INT8OID, Int64GetDatum(value), is_null);
}

/* NaN is NULL. */
static void
put_number(Insert *insert, const char *column, double value)
{
	put(insert, column, FLOAT8OID, Float8GetDatum(value), isnan(value));
}

static void
put_bool(Insert *insert, const char *column, bool value)
{
	put(insert, column, BOOLOID, BoolGetDatum(value), false);
}

static void
put_id(Insert *insert, const char *column, const pg_uuid_t *id)
{
	put(insert, column, UUIDOID, UUIDPGetDatum(id), false);
}

static void
insert_end(Insert *insert)
{
	char *sql = psprintf("INSERT INTO @.%s (%s) VALUES (%s)", insert->table, insert->columns.data,
						 insert->places.data);

	(void) ag_catalog_execute(sql, insert->n, insert->types, insert->values, insert->nulls);
}

/* ---- JSON ---- */

static char *
json_texts(const char *const *texts, int n)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '[');
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
			appendStringInfoChar(&json, ',');
		escape_json(&json, ag_text_from_utf8(texts[i]));
	}
	appendStringInfoChar(&json, ']');
	return json.data;
}

static char *
json_classes(const AgFittedPredictor *fitted)
{
	const char **names;

	if (fitted->n_classes == 0)
		return NULL;
	names = palloc(fitted->n_classes * sizeof(char *));
	for (int i = 0; i < fitted->n_classes; i++)
		names[i] = fitted->classes[i].name;
	return json_texts(names, fitted->n_classes);
}

/* Weights with all their digits: they come back bit for bit. */
static char *
json_inputs(const AgFittedMember *member)
{
	StringInfoData json;

	if (member->n_inputs == 0)
		return NULL;
	initStringInfo(&json);
	for (int i = 0; i < member->n_inputs; i++)
	{
		appendStringInfoString(&json, i == 0 ? "[{\"model\":" : ",{\"model\":");
		escape_json(&json, ag_text_from_utf8(member->input_names[i]));
		appendStringInfo(&json, ",\"weight\":%.17g}", member->input_weights[i]);
	}
	appendStringInfoChar(&json, ']');
	return json.data;
}

static char *
json_shifts(const AgFittedMember *member)
{
	StringInfoData json;

	if (member->n_shifts == 0)
		return NULL;
	initStringInfo(&json);
	for (int i = 0; i < member->n_shifts; i++)
		appendStringInfo(&json, "%c%.17g", i == 0 ? '[' : ',', member->shifts[i]);
	appendStringInfoChar(&json, ']');
	return json.data;
}

/* ---- names and versions ---- */

static void
refuse_name(const char *name)
{
	ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					errmsg("predictor \"%s\" belongs to another role", name),
					errhint("Choose another name with the option \"name\".")));
}

/*
 * The highest version of a name under the active snapshot, 0 when there is none; 42501 when it isn't ours. *owner: whose it
 * is, unchanged when there is none or that is no role any more. *pinned: the version activated by hand, 0: none.
 */
static int
highest_version(const char *name, const char **owner, int *pinned)
{
	ScanKeyData key;
	AgScan scan;
	int highest = 0;

	*pinned = 0;
	ag_scan_key_text(&key, PREDICTOR_NAME, name);
	ag_scan_begin(&scan, "ag_predictor", "ag_predictor_name_version_key", PREDICTOR_OWNER, 1, &key);
	while (ag_scan_next(&scan))
	{
		char *its_owner = ag_scan_text(&scan, PREDICTOR_OWNER);
		int version = DatumGetInt32(ag_scan_must(&scan, PREDICTOR_VERSION));

		if (!ag_catalog_is_owner(its_owner))
			refuse_name(name);
		if (OidIsValid(get_role_oid(its_owner, true)))
			*owner = its_owner;
		highest = Max(highest, version);
		if (DatumGetBool(ag_scan_must(&scan, PREDICTOR_PINNED)))
			*pinned = version;
	}
	ag_scan_end(&scan);
	return highest;
}

void
ag_catalog_check_name(const char *name)
{
	const char *owner = NULL;
	int pinned;

	(void) highest_version(name, &owner, &pinned);
}

void
ag_catalog_lock_name(const char *name)
{
	uint64 hash = DatumGetUInt64(
		hash_any_extended((const unsigned char *) name, (int) strlen(name), NAME_LOCK_KEY));
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32), (uint32) hash, NAME_LOCK_KEY);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* Looked for in what is committed now, not in what our snapshot sees. A predictor stays its owner's, whoever of his fits it. */
static int
next_version(const char *name, const char **owner, int *pinned)
{
	int version;

	ag_catalog_lock_name(name);
	PushActiveSnapshot(GetLatestSnapshot());
	version = highest_version(name, owner, pinned);
	PopActiveSnapshot();
	if (version == PG_INT32_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("predictor \"%s\" has too many versions", name)));
	return version + 1;
}

static void
make_id(pg_uuid_t *id)
{
	if (!pg_strong_random(id->data, UUID_LEN))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not make a random uuid")));
	id->data[6] = (id->data[6] & 0x0f) | 0x40; /* version 4, RFC 9562 */
	id->data[8] = (id->data[8] & 0x3f) | 0x80;
}

/* ---- rows ---- */

void
ag_catalog_store_begin(const AgCatalogPredictor *predictor, pg_uuid_t *id, int *version,
					   int *pinned)
{
	const AgFittedPredictor *fitted = predictor->fitted;
	const char *owner = predictor->owner;
	Insert insert;

	*version = next_version(predictor->name, &owner, pinned);
	if (*version == 1)
		ag_rights_forget(predictor->name); /* left over from another's of that name */
	make_id(id);
	insert_begin(&insert, "ag_predictor");
	put_id(&insert, "id", id);
	put_text(&insert, "name", predictor->name);
	put_int(&insert, "version", *version);
	put_text(&insert, "owner", owner);
	put_text(&insert, "data", predictor->data);
	put_text(&insert, "label", predictor->label);
	put_utf8(&insert, "problem_type", ag_problem_name(fitted->problem));
	put_utf8(&insert, "eval_metric", ag_metric_name(fitted->eval_metric));
	put_json(&insert, "options", predictor->options_json);
	put_bigint(&insert, "rows", fitted->n_rows, false);
	put_bigint(&insert, "rows_left_out", fitted->n_rows_left_out, false);
	put_json(&insert, "classes", json_classes(fitted));
	put(&insert, "created_at", TIMESTAMPTZOID, TimestampTzGetDatum(GetCurrentTimestamp()), false);
	put_number(&insert, "time_limit", predictor->time_limit);
	put_number(&insert, "fit_time", predictor->fit_seconds);
	put_utf8(&insert, "best_model", fitted->best_model);
	put_number(&insert, "score_val", fitted->score_val);
	put_json(&insert, "plan", ag_text_from_utf8(fitted->plan_json));
	put_json(&insert, "warnings", json_texts(fitted->warnings, fitted->n_warnings));
	put_int(&insert, "format", IMAGE_FORMAT);
	put_number(&insert, "decision_threshold",
			   fitted->decision_threshold > 0.0 ? fitted->decision_threshold : NAN);
	insert_end(&insert);
}

void
ag_catalog_store_feature(const pg_uuid_t *id, const AgFittedFeature *feature)
{
	Insert insert;

	insert_begin(&insert, "ag_predictor_feature");
	put_id(&insert, "predictor", id);
	put_int(&insert, "ordinal", feature->ordinal);
	put_utf8(&insert, "name", feature->column);
	put_utf8(&insert, "type", feature->sql_type);
	put_utf8(&insert, "kind", feature->kind);
	put_bool(&insert, "used", feature->is_used);
	put_utf8(&insert, "became", feature->became);
	put_utf8(&insert, "dropped_why", feature->dropped_why);
	put_bigint(&insert, "missing", feature->n_missing, false);
	put_bigint(&insert, "distinct_values", feature->n_distinct, feature->n_distinct < 0);
	put_number(&insert, "min", feature->min);
	put_number(&insert, "max", feature->max);
	put_number(&insert, "mean", feature->mean);
	put_json(&insert, "categories",
			 feature->categories_json != NULL ? ag_text_from_utf8(feature->categories_json) : NULL);
	insert_end(&insert);
}

void
ag_catalog_store_member(const pg_uuid_t *id, const AgFittedMember *member)
{
	Insert insert;

	insert_begin(&insert, "ag_member");
	put_id(&insert, "predictor", id);
	put_int(&insert, "ordinal", member->ordinal);
	put_utf8(&insert, "name", member->name);
	put_utf8(&insert, "family", member->family);
	put_int(&insert, "stack_level", member->stack_level);
	put(&insert, "fold", INT4OID, Int32GetDatum(member->fold), member->fold == 0);
	put_int(&insert, "fit_order", member->fit_order);
	put_json(&insert, "hyperparameters", ag_text_from_utf8(member->params_json));
	put_number(&insert, "score_val", member->score_val);
	put_number(&insert, "fit_time", member->fit_seconds);
	put_number(&insert, "predict_time", member->predict_seconds);
	put_utf8(&insert, "device", member->device);
	put_number(&insert, "num_gpus", member->num_gpus);
	put_int(&insert, "num_cpus", member->num_cpus);
	put_bool(&insert, "can_infer", member->can_infer);
	put_number(&insert, "temperature", member->temperature > 0.0 ? member->temperature : NAN);
	put_json(&insert, "quantile_shifts", json_shifts(member));
	put_json(&insert, "inputs", json_inputs(member));
	put_json(&insert, "history",
			 member->history_json != NULL ? ag_text_from_utf8(member->history_json) : NULL);
	insert_end(&insert);
}

void
ag_catalog_store_part(const pg_uuid_t *id, int member, int part, const void *bytes, uint32 n_bytes)
{
	bytea *data = palloc((Size) n_bytes + VARHDRSZ);
	Insert insert;

	SET_VARSIZE(data, n_bytes + VARHDRSZ);
	memcpy(VARDATA(data), bytes, n_bytes);
	insert_begin(&insert, "ag_member_part");
	put_id(&insert, "predictor", id);
	put_int(&insert, "member", member);
	put_int(&insert, "part", part);
	put(&insert, "data", BYTEAOID, PointerGetDatum(data), false);
	put_bigint(&insert, "checksum", ag_catalog_checksum(bytes, n_bytes), false);
	insert_end(&insert);
	pfree(data);
}

void
ag_catalog_store_end(const pg_uuid_t *id)
{
	ag_catalog_changed();
}
