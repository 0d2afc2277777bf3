/*
 * stats.c - see stats.h; and ag_stats_read, ag_stats_reset.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "pg/compat.h"
#include "pg/share.h"
#include "pg/srf.h"
#include "pg/stats.h"

/* Its name has the build's id: where the library is replaced while the server runs, sessions of either build have counts of their own. */
typedef struct SharedStats
{
	pg_atomic_uint64 counts[AG_STAT_LAST];
	pg_atomic_uint64 since; /* TimestampTz */
} SharedStats;

uint64 ag_stats_pending[AG_STAT_LAST];

static SharedStats *shared = NULL;
static bool is_looked_for = false; /* in this process */
static bool is_preloaded = false;
static void (*previous_request)(void) = NULL;

static void
shared_init(void *at)
{
	SharedStats *stats = at;

	for (int i = 0; i < AG_STAT_LAST; i++)
		pg_atomic_init_u64(&stats->counts[i], 0);
	pg_atomic_init_u64(&stats->since, (uint64) GetCurrentTimestamp());
}

void
ag_stats_attach(void)
{
	if (is_looked_for)
		return;
	shared = ag_shared_memory("ag_pg stats " AG_BUILD_ID, sizeof(SharedStats), shared_init,
							  is_preloaded);
	is_looked_for = true;
}

/* At the end of every transaction of a process that has the library loaded, so it is quick where nothing was counted. */
static void
flush(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE)
		return;
	for (int i = 0; i < AG_STAT_LAST; i++)
	{
		if (ag_stats_pending[i] == 0)
			continue;
		if (shared != NULL)
			(void) pg_atomic_fetch_add_u64(&shared->counts[i], (int64) ag_stats_pending[i]);
		ag_stats_pending[i] = 0;
	}
}

static void
request(void)
{
	if (previous_request != NULL)
		previous_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedStats)));
}

void
ag_stats_init(void)
{
	RegisterXactCallback(flush, NULL);
	if (!process_shared_preload_libraries_in_progress)
		return;
	is_preloaded = true;
	ag_shared_memory_on_request(request, &previous_request);
}

void
ag_stats_count_failure(int sqlstate)
{
	ag_stats_count(
		sqlstate == ERRCODE_QUERY_CANCELED ? AG_STAT_FITS_CANCELLED : AG_STAT_FITS_FAILED, 1);
}

static void
need_shared(void)
{
	ag_stats_attach();
	if (shared == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("ag_pg keeps no statistics here"),
						errhint("Before PostgreSQL 17 they need \"ag_pg\" in "
								"shared_preload_libraries, and a restart.")));
}

PG_FUNCTION_INFO_V1(ag_sql_stats_read);

Datum
ag_sql_stats_read(PG_FUNCTION_ARGS)
{
	Datum values[AG_STAT_LAST + 3];
	bool nulls[AG_STAT_LAST + 3] = {false};
	int64 n_models, bytes;
	AgSrf srf;

	need_shared();
	ag_srf_begin(&srf, fcinfo);
	for (int i = 0; i < AG_STAT_LAST; i++)
	{
		uint64 n = pg_atomic_read_u64(&shared->counts[i]);

		if (i == AG_STAT_FIT_MS || i == AG_STAT_GPU_MS)
			values[i] = Float8GetDatum((double) n / 1000.0);
		else
			values[i] = Int64GetDatum((int64) n);
	}
	ag_share_total(&n_models, &bytes);
	values[AG_STAT_LAST] = Int64GetDatum(n_models);
	values[AG_STAT_LAST + 1] = Int64GetDatum(bytes);
	values[AG_STAT_LAST + 2] =
		TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&shared->since));
	ag_srf_row(&srf, values, nulls);
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ag_sql_stats_reset);

Datum
ag_sql_stats_reset(PG_FUNCTION_ARGS)
{
	need_shared();
	for (int i = 0; i < AG_STAT_LAST; i++)
		pg_atomic_write_u64(&shared->counts[i], 0);
	pg_atomic_write_u64(&shared->since, (uint64) GetCurrentTimestamp());
	PG_RETURN_VOID();
}
