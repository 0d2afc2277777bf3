/*
 * job_submit.c - ag_fit_async: all that ag_fit refuses is refused here and now; what is left is written down, and a worker is
 * woken when that commits.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "engine/base/context.h"
#include "pg/catalog.h"
#include "pg/fit.h"
#include "pg/job.h"
#include "pg/settings.h"

PG_FUNCTION_INFO_V1(ag_sql_fit_async);

/* ---- at the end of the transaction ---- */

static bool submitted = false;

/* After the commit nothing may fail any more, and waking doesn't. A savepoint that was rolled back makes a worker look in vain. */
static void
at_transaction_end(XactEvent event, void *arg)
{
	if (!submitted)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that has submitted a job of ag_pg")));
			break;
		case XACT_EVENT_COMMIT:
			submitted = false;
			(void) ag_job_wake(MyDatabaseId);
			break;
		case XACT_EVENT_ABORT:
			submitted = false;
			break;
		default:
			break;
	}
}

static void
wake_at_commit(void)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(at_transaction_end, NULL);
	registered = true;
	submitted = true;
}

/* ---- writing it down ---- */

static void
refuse_temp(const AgSource *source)
{
	if (source == NULL || !source->uses_temp)
		return;
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					source->table != NULL
						? errmsg("a job can't read the temporary table \"%s\"", source->table)
						: errmsg("a job can't read temporary tables"),
					errdetail("It runs in a session of its own, which has none of this one's."),
					errhint("Use an ordinary (perhaps unlogged) table, or ag_fit.")));
}

/* Orders are trusted, so nobody else may be able to write them. */
static void
check_orders_owner(void)
{
	if (superuser_arg(ag_catalog_owner_of("ag_job_order")))
		return;
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("table \"ag_job_order\" must belong to a superuser")));
}

static void
write_record(const AgFitCall *call, int64 id, const char *home)
{
	Oid types[7] = {INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID};
	Datum values[7];

	values[0] = Int64GetDatum(id);
	values[1] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[2] = CStringGetTextDatum(home);
	values[3] = CStringGetTextDatum(call->name);
	values[4] = CStringGetTextDatum(call->data);
	values[5] = CStringGetTextDatum(call->label_name);
	values[6] = JsonbPGetDatum(call->options_json);
	ag_catalog_execute_on(
		"ag_job",
		"INSERT INTO @.ag_job (id, owner, state, home, model, data, label, options, submitted_at) "
		"VALUES ($1, $2, 'queued', $3, $4, $5, $6, $7, clock_timestamp())",
		7, types, values, NULL, NULL, NULL);
}

static void
write_order(const AgFitCall *call, int64 id, const char *home)
{
	const AgSource *source = call->source;
	Oid types[10] = {INT8OID, TEXTOID, OIDOID,  TEXTOID,  OIDOID,
					 TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID};
	Datum values[10];

	values[0] = Int64GetDatum(id);
	values[1] = CStringGetTextDatum(home);
	values[2] = ObjectIdGetDatum(GetUserId());
	values[3] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	values[4] = ObjectIdGetDatum(GetSessionUserId());
	values[5] = CStringGetTextDatum(source->table != NULL ? source->qualified : call->data);
	values[6] = CStringGetTextDatum(call->data);
	values[7] = CStringGetTextDatum(call->label_name);
	values[8] = JsonbPGetDatum(call->options_json);
	values[9] = CStringGetTextDatum(ag_job_settings_text());
	ag_catalog_execute_on("ag_job_order",
						  "INSERT INTO @.ag_job_order (id, home, role, role_name, session_role, "
						  "source, data, label, options, settings) "
						  "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
						  10, types, values, NULL, NULL, NULL);
}

void
ag_job_record_fit(const AgFitCall *call)
{
	Oid types[8] = {INT8OID, FLOAT8OID, INT4OID, FLOAT8OID, TEXTOID, TEXTOID, INT8OID, INT8OID};
	Datum values[8];
	char nulls[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
	int64 id, now = ag_clock_ns();

	if (!ag_setting_notify)
		return;
	id = nextval_internal(ag_catalog_relation("ag_job_id_seq"), false);
	write_record(call, id, ag_job_home());
	values[0] = Int64GetDatum(id);
	values[1] = Float8GetDatum((double) (now - call->started_ns) / 1e9);
	values[2] = Int32GetDatum(call->version);
	values[3] = Float8GetDatum(call->fitted.score_val);
	values[4] =
		CStringGetTextDatum(psprintf("stored as \"%s\", version %d", call->name, call->version));
	values[5] = CStringGetTextDatum("stored");
	values[6] = Int64GetDatum(call->started_ns);
	values[7] = Int64GetDatum(now);
	nulls[3] = isnan(call->fitted.score_val) ? 'n' : ' ';
	ag_catalog_execute_on(
		"ag_job",
		"UPDATE @.ag_job SET state = 'succeeded', ended_at = submitted_at, "
		"started_at = submitted_at - make_interval(secs => $2), percent = 100, version = $3, "
		"score = $4, message = $5, phase = $6, started_ns = $7, ended_ns = $8 WHERE id = $1",
		8, types, values, nulls, NULL, NULL);
	ag_job_notify(id);
}

/* ag_fit_async(data text, label text, options jsonb) RETURNS bigint */
Datum
ag_sql_fit_async(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	AgFitCall *call = ag_fit_begin_of(fcinfo, "ag_fit_async");
	char *home = ag_job_home();
	int64 id;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	ag_fit_prepare(call);
	if (call->options->dry_run)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("option \"dry_run\" is for ag_fit: a job has nothing to give back")));
	refuse_temp(call->source);
	refuse_temp(call->tuning);
	check_orders_owner();
	id = nextval_internal(ag_catalog_relation("ag_job_id_seq"), false);
	write_record(call, id, home);
	write_order(call, id, home);
	SPI_finish();
	wake_at_commit();
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(call->context);
	PG_RETURN_INT64(id);
}
