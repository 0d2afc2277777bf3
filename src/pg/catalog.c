/*
 * catalog.c - finding the extension's tables, names of models, rights, and reading predictors.
 *
 * Everything is an index scan under the active snapshot: so it works in parallel workers, in read-only
 * transactions and on a standby, and a prediction sees the version that its statement's snapshot sees.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "engine/base/nearest.h"
#include "pg/catalog.h"
#include "pg/rights.h"
#include "pg/scan.h"

#define EXTENSION_NAME "ag_pg"

/* Columns of ag_predictor, as the install script creates them. */
enum
{
	PREDICTOR_ID = 1,
	PREDICTOR_NAME,
	PREDICTOR_VERSION,
	PREDICTOR_PINNED,
	PREDICTOR_OWNER,
	PREDICTOR_DATA,
	PREDICTOR_LABEL,
	PREDICTOR_PROBLEM_TYPE,
	PREDICTOR_EVAL_METRIC,
	PREDICTOR_OPTIONS,
	PREDICTOR_ROWS,
	PREDICTOR_ROWS_LEFT_OUT,
	PREDICTOR_CLASSES,
	PREDICTOR_CREATED_AT,
	PREDICTOR_TIME_LIMIT,
	PREDICTOR_FIT_TIME,
	PREDICTOR_BEST_MODEL,
	PREDICTOR_SCORE_VAL,
	PREDICTOR_PLAN,
	PREDICTOR_WARNINGS,
	PREDICTOR_FORMAT,
	PREDICTOR_DECISION_THRESHOLD,
	PREDICTOR_COLUMNS = PREDICTOR_DECISION_THRESHOLD
};

/* The schema found last; forgotten when its ag_predictor goes (DROP EXTENSION, in any session). */
static Oid known_schema = InvalidOid;
static Oid known_predictor_table = InvalidOid;

static void
forget_schema(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == known_predictor_table)
		known_schema = known_predictor_table = InvalidOid;
}

static Oid
schema_of_extension(void)
{
	static bool callback_registered = false;
	Oid schema = InvalidOid;
	Relation rel;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(forget_schema, (Datum) 0);
		callback_registered = true;
	}
	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(EXTENSION_NAME));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return schema;
}

Oid
ag_catalog_schema(void)
{
	if (!OidIsValid(known_schema))
	{
		Oid schema = schema_of_extension();

		if (!OidIsValid(schema))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("extension \"%s\" is not installed in this database", EXTENSION_NAME)));
		known_predictor_table = get_relname_relid("ag_predictor", schema);
		known_schema = schema;
	}
	return known_schema;
}

Oid
ag_catalog_relation(const char *name)
{
	Oid relation = get_relname_relid(name, ag_catalog_schema());

	if (!OidIsValid(relation))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s\" of extension \"%s\" is missing", name, EXTENSION_NAME)));
	return relation;
}

bool
ag_catalog_is_installed(void)
{
	return OidIsValid(schema_of_extension());
}

Oid
ag_catalog_owner_of(const char *table)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(ag_catalog_relation(table)));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for table \"%s\"", table);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
ag_catalog_become_owner_of(const char *table, Oid *caller, int *caller_context)
{
	Oid owner = ag_catalog_owner_of(table);

	GetUserIdAndSecContext(caller, caller_context);
	SetUserIdAndSecContext(owner, *caller_context | SECURITY_LOCAL_USERID_CHANGE |
									  SECURITY_RESTRICTED_OPERATION);
}

/* --- names --- */

bool
ag_model_name_try(const char *model, AgModelName *parsed)
{
	const char *slash = strchr(model, '/');
	const char *name_end = slash != NULL ? slash : model + strlen(model);
	const char *at = memchr(model, '@', name_end - model);
	bool ok = true;

	parsed->version = 0;
	parsed->member = NULL;
	if (slash != NULL)
	{
		parsed->member = pstrdup(slash + 1);
		ok = parsed->member[0] != '\0';
	}
	if (at != NULL)
	{
		int64 version = 0;

		for (const char *digit = at + 1; digit < name_end && ok; digit++)
		{
			ok = *digit >= '0' && *digit <= '9' && version <= PG_INT32_MAX;
			version = version * 10 + (*digit - '0');
		}
		ok = ok && at + 1 < name_end && version > 0 && version <= PG_INT32_MAX;
		parsed->version = ok ? (int) version : 0;
		name_end = at;
	}
	if (!ok || name_end == model)
		return false;
	parsed->name = pnstrdup(model, name_end - model);
	return true;
}

void
ag_model_name_parse(const char *model, AgModelName *parsed)
{
	if (!ag_model_name_try(model, parsed))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid model name: \"%s\"", model),
				 errhint("Write a model as 'name', a version of it as 'name@3', one member of its "
						 "ensemble as 'name/GBM'.")));
}

void
ag_model_name_check(const char *name, const char *option)
{
	if (name[0] == '\0' || strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("predictor name \"%.200s\" is %s", name,
						name[0] == '\0' ? "empty" : "too long"),
				 option == NULL ? errhint("A name has 1 to %d bytes.", NAMEDATALEN - 1)
								: errhint("Give the option \"%s\": a name has 1 to %d bytes.",
										  option, NAMEDATALEN - 1)));
	if (strpbrk(name, "@/") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("predictor name \"%s\" holds \"@\" or \"/\"", name),
				 errdetail("They stand for versions and members in 'name@3' and 'name/GBM'."),
				 option == NULL ? 0 : errhint("Give the option \"%s\".", option)));
}

/* --- rights --- */

bool
ag_catalog_is_owner(const char *owner)
{
	return ag_rights_is_owner(GetUserId(), owner);
}

/* --- predictors --- */

static AgPredictorRow *
predictor_row(const AgScan *scan)
{
	AgPredictorRow *row = palloc0(sizeof(AgPredictorRow));

	row->id = *DatumGetUUIDP(ag_scan_must(scan, PREDICTOR_ID));
	row->name = ag_scan_text(scan, PREDICTOR_NAME);
	row->version = DatumGetInt32(ag_scan_must(scan, PREDICTOR_VERSION));
	row->pinned = DatumGetBool(ag_scan_must(scan, PREDICTOR_PINNED));
	row->owner = ag_scan_text(scan, PREDICTOR_OWNER);
	row->data = ag_scan_text(scan, PREDICTOR_DATA);
	row->label = ag_scan_text(scan, PREDICTOR_LABEL);
	row->problem_type = ag_scan_text(scan, PREDICTOR_PROBLEM_TYPE);
	row->eval_metric = ag_scan_text(scan, PREDICTOR_EVAL_METRIC);
	row->options = ag_scan_must_jsonb(scan, PREDICTOR_OPTIONS);
	row->rows = DatumGetInt64(ag_scan_must(scan, PREDICTOR_ROWS));
	row->rows_left_out = DatumGetInt64(ag_scan_must(scan, PREDICTOR_ROWS_LEFT_OUT));
	row->classes = ag_scan_jsonb(scan, PREDICTOR_CLASSES);
	row->created_at = DatumGetTimestampTz(ag_scan_must(scan, PREDICTOR_CREATED_AT));
	row->time_limit = ag_scan_number(scan, PREDICTOR_TIME_LIMIT);
	row->fit_time = ag_scan_number(scan, PREDICTOR_FIT_TIME);
	row->best_model = ag_scan_text(scan, PREDICTOR_BEST_MODEL);
	row->score_val = ag_scan_number(scan, PREDICTOR_SCORE_VAL);
	row->plan = ag_scan_must_jsonb(scan, PREDICTOR_PLAN);
	row->warnings = ag_scan_must_jsonb(scan, PREDICTOR_WARNINGS);
	row->format = DatumGetInt32(ag_scan_must(scan, PREDICTOR_FORMAT));
	row->decision_threshold = ag_scan_number(scan, PREDICTOR_DECISION_THRESHOLD);
	return row;
}

double
ag_catalog_threshold(const pg_uuid_t *id)
{
	double threshold = NAN;
	ScanKeyData key;
	AgScan scan;

	ag_scan_key_uuid(&key, PREDICTOR_ID, id);
	ag_scan_begin(&scan, "ag_predictor", "ag_predictor_pkey", PREDICTOR_COLUMNS, 1, &key);
	while (ag_scan_next(&scan))
		threshold = ag_scan_number(&scan, PREDICTOR_DECISION_THRESHOLD);
	ag_scan_end(&scan);
	return isnan(threshold) ? 0.5 : threshold;
}

/* What the scan over one name's versions keeps: the version asked for, or the current one. */
typedef struct Choice
{
	bool any_version; /* the role may use some version of that name */
	bool found;
	bool pinned;
	int version;
	int newest; /* of those that the role may use */
	pg_uuid_t id;
	AgPredictorRow *row;
} Choice;

static bool
is_better(const Choice *choice, const AgModelName *name, int version, bool pinned)
{
	if (name->version != 0)
		return version == name->version;
	if (!choice->found || pinned != choice->pinned)
		return !choice->found || pinned;
	return version > choice->version;
}

static void
choose_version(Oid role, const AgModelName *name, bool want_row, Choice *choice)
{
	ScanKeyData key;
	AgScan scan;
	char *last_owner = NULL; /* of all versions, but for rows restored by hand */
	AgRight right = AG_RIGHT_NONE;

	ag_scan_key_text(&key, PREDICTOR_NAME, name->name);
	ag_scan_begin(&scan, "ag_predictor", "ag_predictor_name_version_key", PREDICTOR_COLUMNS, 1,
				  &key);
	while (ag_scan_next(&scan))
	{
		int version = DatumGetInt32(ag_scan_must(&scan, PREDICTOR_VERSION));
		bool pinned = DatumGetBool(ag_scan_must(&scan, PREDICTOR_PINNED));
		char *owner = ag_scan_text(&scan, PREDICTOR_OWNER);

		if (last_owner == NULL || strcmp(owner, last_owner) != 0)
			right = ag_rights_of(role, name->name, owner);
		last_owner = owner;
		if (right < AG_RIGHT_PREDICT)
			continue;
		choice->any_version = true;
		choice->newest = Max(choice->newest, version);
		if (!is_better(choice, name, version, pinned))
			continue;
		choice->found = true;
		choice->pinned = pinned;
		choice->version = version;
		choice->id = *DatumGetUUIDP(ag_scan_must(&scan, PREDICTOR_ID));
		if (!want_row)
			continue;
		choice->row = predictor_row(&scan);
		choice->row->right = right;
	}
	ag_scan_end(&scan);
}

bool
ag_catalog_find_quietly(const char *model, pg_uuid_t *id, char **member, AgPredictorRow **row)
{
	AgModelName name;
	Choice choice = {0};

	if (!ag_model_name_try(model, &name))
		return false;
	choose_version(GetUserId(), &name, true, &choice);
	*id = choice.id;
	*member = name.member;
	*row = choice.row;
	return choice.found;
}

void
ag_catalog_refuse_read_only(const char *function)
{
	const char *command = psprintf("%s()", function);

	PreventCommandDuringRecovery(command);
	PreventCommandIfReadOnly(command);
}

void
ag_catalog_changed(void)
{
	CacheInvalidateRelcacheByRelid(ag_catalog_relation("ag_predictor"));
}

/*
 * The name nearest to one that doesn't exist, of the models that the current user (not another role that it predicts for) may
 * use; NULL: none is near.
 */
static const char *
nearest_name(const char *wanted)
{
	const char *last = NULL;
	AgNearest nearest;
	AgScan scan;

	ag_nearest_init(&nearest, wanted);
	ag_scan_begin(&scan, "ag_predictor", "ag_predictor_name_version_key", PREDICTOR_COLUMNS, 0,
				  NULL);
	while (ag_scan_next(&scan))
	{
		const char *name = ag_scan_text(&scan, PREDICTOR_NAME);

		CHECK_FOR_INTERRUPTS();
		if (last != NULL && strcmp(name, last) == 0)
			continue;
		last = name;
		if (ag_rights_of(GetUserId(), name, ag_scan_text(&scan, PREDICTOR_OWNER)) >=
			AG_RIGHT_PREDICT)
			ag_nearest_offer(&nearest, name);
	}
	ag_scan_end(&scan);
	return ag_nearest_name(&nearest);
}

void
ag_catalog_find_as(Oid role, const char *model, pg_uuid_t *id, char **member, AgPredictorRow **row)
{
	AgModelName name;
	Choice choice = {0};
	const char *nearest = NULL;
	bool own_snapshot = !ActiveSnapshotSet();

	ag_model_name_parse(model, &name);
	if (own_snapshot)
		PushActiveSnapshot(GetTransactionSnapshot());
	choose_version(role, &name, row != NULL, &choice);
	if (!choice.found && !choice.any_version)
		nearest = nearest_name(name.name);
	if (own_snapshot)
		PopActiveSnapshot();
	if (!choice.found && choice.any_version)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("model \"%s\" has no version %d", name.name, name.version),
						errhint("Its newest version is %d.", choice.newest)));
	if (!choice.found)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("model \"%s\" does not exist", name.name),
						nearest != NULL
							? errhint("Did you mean \"%s\"?", nearest)
							: errhint("The view ag_models lists the models that you may use.")));
	*id = choice.id;
	if (member != NULL)
		*member = name.member;
	if (row != NULL)
		*row = choice.row;
}

void
ag_catalog_find(const char *model, pg_uuid_t *id, char **member, AgPredictorRow **row)
{
	ag_catalog_find_as(GetUserId(), model, id, member, row);
}
