/*
 * admin.c - ag_drop, ag_activate and ag_rename: changing which versions there are, which one is current, what they are
 * called.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "pg/catalog.h"
#include "pg/share.h"

/* The statement with the schema put in. */
static char *
with_schema(const char *sql)
{
	const char *schema = quote_identifier(get_namespace_name(ag_catalog_schema()));
	StringInfoData text;

	initStringInfo(&text);
	for (const char *at = sql; *at != '\0'; at++)
	{
		if (at[0] == '@' && at[1] == '.')
			appendStringInfoString(&text, schema);
		else
			appendStringInfoChar(&text, *at);
	}
	return text.data;
}

static int
run_statement(const char *text, int n_args, Oid *types, Datum *values, const char *nulls,
			  bool latest)
{
	SPIPlanPtr plan;

	if (!latest)
		return SPI_execute_with_args(text, n_args, types, values, nulls, false, 0);
	plan = SPI_prepare(text, n_args, types);
	if (plan == NULL)
		return SPI_result;
	return SPI_execute_snapshot(plan, values, nulls, GetLatestSnapshot(), InvalidSnapshot, false,
								true, 0);
}

/*
 * The role and search_path of the caller come back at the end, or with the (sub)transaction when it fails: nothing that
 * the caller could have put in the way of a name or an operator is seen while the owner's rights are in force.
 */
static uint64
execute(const char *table, const char *sql, int n_args, Oid *types, Datum *values,
		const char *nulls, bool latest, AgCatalogRowFn take, void *arg)
{
	char *text = with_schema(sql);
	int level = NewGUCNestLevel();
	Oid caller;
	int caller_context, result;
	uint64 n_rows;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	ag_catalog_become_owner_of(table, &caller, &caller_context);
	SPI_connect();
	result = run_statement(text, n_args, types, values, nulls, latest);
	if (result < 0)
		elog(ERROR, "could not change the catalogue of models: %s", SPI_result_code_string(result));
	n_rows = SPI_processed;
	for (uint64 i = 0; take != NULL && SPI_tuptable != NULL && i < n_rows; i++)
		take(arg, SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
	SPI_finish();
	SetUserIdAndSecContext(caller, caller_context);
	AtEOXact_GUC(false, level);
	return n_rows;
}

uint64
ag_catalog_execute_on(const char *table, const char *sql, int n_args, Oid *types, Datum *values,
					  const char *nulls, AgCatalogRowFn take, void *arg)
{
	return execute(table, sql, n_args, types, values, nulls, false, take, arg);
}

uint64
ag_catalog_execute(const char *sql, int n_args, Oid *types, Datum *values, const char *nulls)
{
	return execute("ag_predictor", sql, n_args, types, values, nulls, false, NULL, NULL);
}

uint64
ag_catalog_execute_latest(const char *sql, int n_args, Oid *types, Datum *values,
						  AgCatalogRowFn take, void *arg)
{
	return execute("ag_predictor", sql, n_args, types, values, NULL, true, take, arg);
}

static void
no_member(const AgModelName *name)
{
	if (name->member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one member of a model", name->member),
						errhint("Give the model's name, or one version of it as 'name@3'.")));
}

/* --- ag_drop --- */

PG_FUNCTION_INFO_V1(ag_sql_drop);

/* Should the transaction not commit after all, the next session that predicts with it shares it again. */
static void
forget_shared(void *arg, HeapTuple row, TupleDesc desc)
{
	bool is_null;
	Datum id = heap_getattr(row, 1, desc, &is_null);

	if (!is_null)
		ag_share_forget(DatumGetUUIDP(id));
}

/* Every version of 'name', or 'name@3' alone. Their columns, members and bytes go with them (foreign keys). */
Datum
ag_sql_drop(PG_FUNCTION_ARGS)
{
	char *model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid types[3] = {TEXTOID, INT4OID, TEXTOID};
	Datum values[3];
	AgModelName name;
	AgPredictorRow *row;
	pg_uuid_t id;
	uint64 n_versions;

	ag_catalog_refuse_read_only("ag_drop");
	ag_model_name_parse(model, &name);
	no_member(&name);
	ag_catalog_find(model, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, name.name);
	values[0] = CStringGetTextDatum(name.name);
	values[1] = Int32GetDatum(name.version);
	values[2] = CStringGetTextDatum(row->owner);
	n_versions = ag_catalog_execute_on("ag_predictor",
									   "DELETE FROM @.ag_predictor WHERE name = $1 AND "
									   "($2 = 0 OR version = $2) AND owner = $3 RETURNING id",
									   3, types, values, NULL, forget_shared, NULL);
	if (n_versions == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("model \"%s\" does not exist", model),
				 errdetail("Another session has just dropped it.")));
	ag_catalog_execute("DELETE FROM @.ag_predictor_grant WHERE predictor = $1 AND NOT EXISTS "
					   "(SELECT FROM @.ag_predictor WHERE name = $1)",
					   1, types, values, NULL);
	ag_catalog_changed();
	PG_RETURN_INT32((int32) n_versions);
}

/* --- ag_activate --- */

PG_FUNCTION_INFO_V1(ag_sql_activate);

/* All rows of the name are written, so that two sessions wait for each other and one version stays pinned. */
Datum
ag_sql_activate(PG_FUNCTION_ARGS)
{
	char *model;
	Oid types[3] = {TEXTOID, INT4OID, TEXTOID};
	Datum values[3];
	AgModelName name;
	AgPredictorRow *row;
	pg_uuid_t id;

	ag_catalog_refuse_read_only("ag_activate");
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_model_name_parse(model, &name);
	no_member(&name);
	if (name.version != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one version of a model", model),
						errhint("Give the version as the second argument.")));
	if (!PG_ARGISNULL(1))
	{
		int32 version = PG_GETARG_INT32(1);

		if (version <= 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("version must be 1 or more")));
		model = psprintf("%s@%d", name.name, version);
	}
	ag_catalog_find(model, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, name.name);
	values[0] = CStringGetTextDatum(name.name);
	values[1] = PG_ARGISNULL(1) ? Int32GetDatum(0) : PG_GETARG_DATUM(1);
	values[2] = CStringGetTextDatum(row->owner);
	ag_catalog_execute("UPDATE @.ag_predictor SET pinned = (version = $2) WHERE name = $1 AND "
					   "owner = $3",
					   3, types, values, NULL);
	ag_catalog_changed();
	PG_RETURN_VOID();
}

/* --- ag_rename --- */

/* In one order, whoever renames what to what: two who swap names wait for each other and don't deadlock. */
static void
lock_both(const char *name, const char *new_name)
{
	bool in_order = strcmp(name, new_name) <= 0;

	ag_catalog_lock_name(in_order ? name : new_name);
	ag_catalog_lock_name(in_order ? new_name : name);
}

/* Whether any role's predictor has that name, committed by now or ours. */
static bool
name_is_taken(const char *name)
{
	Oid types[1] = {TEXTOID};
	Datum values[1] = {CStringGetTextDatum(name)};

	return ag_catalog_execute_latest("SELECT FROM @.ag_predictor WHERE name = $1", 1, types, values,
									 NULL, NULL) > 0;
}

PG_FUNCTION_INFO_V1(ag_sql_rename);

Datum
ag_sql_rename(PG_FUNCTION_ARGS)
{
	char *model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char *new_name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	Oid types[3] = {TEXTOID, TEXTOID, TEXTOID};
	Datum values[3];
	AgModelName name;
	AgPredictorRow *row;
	pg_uuid_t id;

	ag_catalog_refuse_read_only("ag_rename");
	ag_model_name_parse(model, &name);
	no_member(&name);
	if (name.version != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one version of a model", model),
						errhint("All versions of a model have its name: give that.")));
	ag_model_name_check(new_name, NULL);
	ag_catalog_find(model, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, name.name);
	lock_both(name.name, new_name);
	if (name_is_taken(new_name))
		ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
						errmsg("model \"%s\" already exists", new_name)));
	values[0] = CStringGetTextDatum(name.name);
	values[1] = CStringGetTextDatum(new_name);
	values[2] = CStringGetTextDatum(row->owner);
	if (ag_catalog_execute_latest(
			"UPDATE @.ag_predictor SET name = $2 WHERE name = $1 AND owner = $3", 3, types, values,
			NULL, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("model \"%s\" does not exist", model),
				 errdetail("Another session has just dropped it.")));
	ag_rights_rename(name.name, new_name);
	ag_catalog_changed();
	PG_RETURN_VOID();
}
