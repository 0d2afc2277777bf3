/*
 * rights.c - see rights.h; and ag_grant, ag_revoke, ag_reassign.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "nodes/value.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "pg/catalog.h"
#include "pg/rights.h"
#include "pg/scan.h"

#define EVERYBODY "public" /* no role can have that name */

/* Columns of ag_predictor_grant, as the install script creates them. */
enum
{
	GRANT_PREDICTOR = 1,
	GRANT_GRANTEE,
	GRANT_PRIVILEGE,
	GRANT_COLUMNS = GRANT_PRIVILEGE
};

static const char *const right_names[] = {NULL, "predict", "inspect", "owner"};

/* ---- looking up ---- */

bool
ag_rights_is_owner(Oid role, const char *owner)
{
	Oid owner_role = get_role_oid(owner, true);

	/* an owner that is no role (a dump restored elsewhere, a role dropped): superusers can still clean up */
	if (!OidIsValid(owner_role))
		return superuser_arg(role);
	return has_privs_of_role(role, owner_role);
}

static AgRight
right_by_name(const char *name)
{
	for (AgRight right = AG_RIGHT_PREDICT; right < AG_RIGHT_OWNER; right++)
		if (strcmp(name, right_names[right]) == 0)
			return right;
	return AG_RIGHT_NONE;
}

static bool
is_meant(Oid role, const char *grantee)
{
	Oid grantee_role;

	if (strcmp(grantee, EVERYBODY) == 0)
		return true;
	grantee_role = get_role_oid(grantee, true);
	return OidIsValid(grantee_role) && has_privs_of_role(role, grantee_role);
}

static AgRight
granted_right(Oid role, const char *predictor)
{
	AgRight best = AG_RIGHT_NONE;
	ScanKeyData key;
	AgScan scan;

	ag_scan_key_text(&key, GRANT_PREDICTOR, predictor);
	ag_scan_begin(&scan, "ag_predictor_grant", "ag_predictor_grant_pkey", GRANT_COLUMNS, 1, &key);
	while (ag_scan_next(&scan))
	{
		AgRight right = right_by_name(ag_scan_text(&scan, GRANT_PRIVILEGE));

		if (right > best && is_meant(role, ag_scan_text(&scan, GRANT_GRANTEE)))
			best = right;
	}
	ag_scan_end(&scan);
	return best;
}

AgRight
ag_rights_of(Oid role, const char *predictor, const char *owner)
{
	if (ag_rights_is_owner(role, owner))
		return AG_RIGHT_OWNER;
	return granted_right(role, predictor);
}

void
ag_rights_require(AgRight right, AgRight needed, const char *predictor)
{
	if (right >= needed)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		 needed == AG_RIGHT_OWNER ? errmsg("must be owner of model \"%s\"", predictor)
								  : errmsg("permission denied for model \"%s\"", predictor),
		 needed == AG_RIGHT_OWNER
			 ? 0
			 : errhint("Its owner can give the right \"%s\" with ag_grant.", right_names[needed])));
}

void
ag_rights_require_self(const char *predictor, const char *owner, const char *action)
{
	Oid role = GetUserId(), writer = ag_catalog_owner_of("ag_predictor");

	if (get_role_oid(owner, true) != role)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be role \"%s\" to %s model \"%s\"", owner, action, predictor),
				 errdetail("A query that is kept with the model would run with your rights."),
				 errhint("SET ROLE %s, or give the query to ag_fit.", quote_identifier(owner))));
	if (!has_privs_of_role(writer, role))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("the query kept with model \"%s\" can be written by role \"%s\"",
							   predictor, GetUserNameFromId(writer, false)),
						errdetail("That role owns the extension's tables, and hasn't your rights, "
								  "with which the query would run."),
						errhint("Give the query to ag_fit.")));
}

PG_FUNCTION_INFO_V1(ag_sql_model_right);

/* For the views: the current role's right on a row of ag_predictor, by its name and owner; NULL: none. */
Datum
ag_sql_model_right(PG_FUNCTION_ARGS)
{
	AgRight right = ag_rights_of(GetUserId(), text_to_cstring(PG_GETARG_TEXT_PP(0)),
								 text_to_cstring(PG_GETARG_TEXT_PP(1)));

	if (right == AG_RIGHT_NONE)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(right_names[right]));
}

/* ---- changing ---- */

void
ag_rights_forget(const char *predictor)
{
	Oid types[1] = {TEXTOID};
	Datum values[1] = {CStringGetTextDatum(predictor)};

	ag_catalog_execute_latest("DELETE FROM @.ag_predictor_grant WHERE predictor = $1", 1, types,
							  values, NULL, NULL);
}

void
ag_rights_rename(const char *predictor, const char *new_name)
{
	Oid types[2] = {TEXTOID, TEXTOID};
	Datum values[2] = {CStringGetTextDatum(predictor), CStringGetTextDatum(new_name)};

	ag_rights_forget(new_name); /* of nobody's predictor, so left over */
	ag_catalog_execute_latest("UPDATE @.ag_predictor_grant SET predictor = $2 WHERE predictor = $1",
							  2, types, values, NULL, NULL);
}

/* The predictor whose rights the current user may change. A row lock keeps it from being dropped or renamed meanwhile. */
static char *
owned_predictor(const char *model)
{
	Oid types[1] = {TEXTOID};
	Datum values[1];
	AgPredictorRow *row;
	AgModelName name;
	pg_uuid_t id;

	ag_model_name_parse(model, &name);
	if (name.version != 0 || name.member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("rights are given on a model, not on \"%s\"", model),
						errhint("Give the model's name alone.")));
	ag_catalog_find(name.name, &id, NULL, &row);
	ag_rights_require(row->right, AG_RIGHT_OWNER, name.name);
	values[0] = CStringGetTextDatum(name.name);
	if (ag_catalog_execute("SELECT FROM @.ag_predictor WHERE name = $1 FOR KEY SHARE", 1, types,
						   values, NULL) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("model \"%s\" does not exist", name.name),
						errdetail("Another session has just dropped it.")));
	return name.name;
}

static AgRight
asked_right(const char *name)
{
	AgRight right = right_by_name(name);

	if (right == AG_RIGHT_NONE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("unrecognized right on a model: \"%s\"", name),
						errhint("The rights are \"predict\" and \"inspect\".")));
	return right;
}

static void
refuse_early(FunctionCallInfo fcinfo, const char *function)
{
	ag_catalog_refuse_read_only(function);
	for (int i = 0; i < PG_NARGS(); i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("no argument of %s may be NULL", function)));
}

/* The role named by the second argument; PUBLIC in any case, as in GRANT, where no role has that name. */
static char *
grantee_argument(FunctionCallInfo fcinfo)
{
	char *grantee = text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (pg_strcasecmp(grantee, EVERYBODY) == 0 && !OidIsValid(get_role_oid(grantee, true)))
		return pstrdup(EVERYBODY);
	return grantee;
}

PG_FUNCTION_INFO_V1(ag_sql_grant);

Datum
ag_sql_grant(PG_FUNCTION_ARGS)
{
	Oid types[3] = {TEXTOID, TEXTOID, TEXTOID};
	Datum values[3];
	char *grantee;

	refuse_early(fcinfo, "ag_grant");
	grantee = grantee_argument(fcinfo);
	(void) asked_right(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	values[0] = CStringGetTextDatum(owned_predictor(text_to_cstring(PG_GETARG_TEXT_PP(0))));
	if (strcmp(grantee, EVERYBODY) != 0)
		(void) get_role_oid(grantee, false);
	values[1] = CStringGetTextDatum(grantee);
	values[2] = PG_GETARG_DATUM(2);
	ag_catalog_execute("INSERT INTO @.ag_predictor_grant (predictor, grantee, privilege) "
					   "VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
					   3, types, values, NULL);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(ag_sql_revoke);

/* Inspect includes predict, so who loses predict loses both. A grantee with a right may be no role any more. */
Datum
ag_sql_revoke(PG_FUNCTION_ARGS)
{
	Oid types[3] = {TEXTOID, TEXTOID, TEXTOID};
	Datum values[3];
	char *grantee;

	refuse_early(fcinfo, "ag_revoke");
	grantee = grantee_argument(fcinfo);
	(void) asked_right(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	values[0] = CStringGetTextDatum(owned_predictor(text_to_cstring(PG_GETARG_TEXT_PP(0))));
	values[1] = CStringGetTextDatum(grantee);
	values[2] = PG_GETARG_DATUM(2);
	if (ag_catalog_execute("DELETE FROM @.ag_predictor_grant WHERE predictor = $1 AND "
						   "grantee = $2 AND (privilege = $3 OR $3 = 'predict')",
						   3, types, values, NULL) == 0 &&
		strcmp(grantee, EVERYBODY) != 0)
		(void) get_role_oid(grantee, false); /* a name misspelt takes nothing away: say so */
	PG_RETURN_VOID();
}

/* Names that SPI gave, in a context that outlives it. */
typedef struct NameList
{
	MemoryContext context;
	List *names;
} NameList;

static void
take_name(void *arg, HeapTuple row, TupleDesc desc)
{
	NameList *names = arg;
	MemoryContext old = MemoryContextSwitchTo(names->context);

	names->names = lappend(names->names, makeString(SPI_getvalue(row, desc, 1)));
	MemoryContextSwitchTo(old);
}

/*
 * Locks all names that role's predictors have, so that no version that another session is about to commit is missed. Who
 * held a lock may have made names of others by a rename: until nothing new is there.
 */
static void
lock_names_of(const char *role)
{
	Oid types[1] = {TEXTOID};
	Datum values[1] = {CStringGetTextDatum(role)};
	List *locked = NIL;
	bool again = true;

	while (again)
	{
		NameList found = {.context = CurrentMemoryContext};
		ListCell *cell;

		again = false;
		ag_catalog_execute_latest("SELECT DISTINCT name FROM @.ag_predictor WHERE owner = $1 "
								  "ORDER BY name",
								  1, types, values, take_name, &found);
		foreach (cell, found.names)
		{
			if (list_member(locked, lfirst(cell)))
				continue;
			ag_catalog_lock_name(strVal(lfirst(cell)));
			locked = lappend(locked, lfirst(cell));
			again = true;
		}
	}
}

PG_FUNCTION_INFO_V1(ag_sql_reassign);

/*
 * As REASSIGN OWNED: for who has the privileges of both roles. Where the old name is no role's any more (dropped, renamed, a
 * dump from elsewhere) superusers do it, and what was granted to that name goes along.
 */
Datum
ag_sql_reassign(PG_FUNCTION_ARGS)
{
	Oid types[2] = {TEXTOID, TEXTOID};
	Datum values[2];
	char *old_role, *new_role;
	uint64 n_versions;

	refuse_early(fcinfo, "ag_reassign");
	old_role = text_to_cstring(PG_GETARG_TEXT_PP(0));
	new_role = text_to_cstring(PG_GETARG_TEXT_PP(1));
	if (!ag_rights_is_owner(GetUserId(), old_role) ||
		!has_privs_of_role(GetUserId(), get_role_oid(new_role, false)))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("permission denied to reassign models"),
						errdetail("It takes the privileges of both roles, \"%s\" and \"%s\".",
								  old_role, new_role)));
	values[0] = PG_GETARG_DATUM(0);
	values[1] = PG_GETARG_DATUM(1);
	lock_names_of(old_role);
	n_versions = ag_catalog_execute_latest("UPDATE @.ag_predictor SET owner = $2 WHERE owner = $1",
										   2, types, values, NULL, NULL);
	if (!OidIsValid(get_role_oid(old_role, true)))
	{
		ag_catalog_execute(
			"INSERT INTO @.ag_predictor_grant (predictor, grantee, privilege) "
			"SELECT predictor, $2, privilege FROM @.ag_predictor_grant WHERE grantee = $1 "
			"ON CONFLICT DO NOTHING",
			2, types, values, NULL);
		ag_catalog_execute("DELETE FROM @.ag_predictor_grant WHERE grantee = $1", 1, types, values,
						   NULL);
	}
	PG_RETURN_INT64((int64) n_versions);
}
