/*
 * job_launcher.c - with ag_pg in shared_preload_libraries: looks once, when the server runs (and again after a crash), for databases
 * whose queued jobs must go on, and then sleeps.
 *
 * It can't see into databases, so each gets a worker for a moment, which goes when there is nothing to do.
 */
#include "postgres.h"

#include <signal.h>

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "pg/compat.h"
#include "pg/job.h"

#define RETRY_MS 200
#define RESTART_S 5

static List *
databases(MemoryContext context)
{
	List *found = NIL;
	Relation relation;
	SysScanDesc scan;
	HeapTuple tuple;

	StartTransactionCommand();
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;

		/* a limit below -1 marks one whose DROP was interrupted */
		if (!database->datallowconn || database->datistemplate || database->datconnlimit < -1)
			continue;
		old = MemoryContextSwitchTo(context);
		found = lappend_oid(found, database->oid);
		MemoryContextSwitchTo(old);
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return found;
}

static void
sleep_ms(long timeout_ms)
{
	int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout_ms > 0 ? WL_TIMEOUT : 0);

	(void) WaitLatch(MyLatch, events, timeout_ms, ag_wait_event(AG_WAIT_ORDERS));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

void
ag_job_launcher_main(Datum arg)
{
	MemoryContext context;
	ListCell *cell;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	context = AllocSetContextCreate(TopMemoryContext, "ag_pg launcher", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	foreach (cell, databases(context))
		while (!ag_job_wake(lfirst_oid(cell)))
			sleep_ms(RETRY_MS);
	pgstat_report_activity(STATE_IDLE, NULL);
	for (;;)
		sleep_ms(0);
}

void
ag_job_launcher_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_S;
	strlcpy(worker.bgw_library_name, "ag_pg", sizeof worker.bgw_library_name);
	strlcpy(worker.bgw_function_name, AG_JOB_LAUNCHER_FUNCTION, sizeof worker.bgw_function_name);
	strlcpy(worker.bgw_type, "ag_pg launcher", sizeof worker.bgw_type);
	strlcpy(worker.bgw_name, "ag_pg launcher", sizeof worker.bgw_name);
	RegisterBackgroundWorker(&worker);
}
