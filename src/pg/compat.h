/*
 * compat.h - what differs between PostgreSQL 13 and 18. The only file that looks at PG_VERSION_NUM; each
 * wrapper has the newest version's meaning.
 */
#ifndef AG_COMPAT_H
#define AG_COMPAT_H

#include "postgres.h"

#include <poll.h>

#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "partitioning/partdesc.h"
#include "storage/latch.h"
#include "storage/shm_mq.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/varlena.h"
#if PG_VERSION_NUM >= 140000
#include "utils/wait_event.h"
#else
#include "pgstat.h"
#include "tcop/pquery.h"
#endif
#if PG_VERSION_NUM >= 150000
#include "access/xlogrecovery.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "storage/waiteventset.h"
#define AG_NODE_NOTES 1 /* 18 has a hook for what EXPLAIN says of a node */
#endif

#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#else
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#endif

#if PG_VERSION_NUM < 130000
#error "ag_pg needs PostgreSQL 13 or newer"
#endif

/* 18 writes it in front of a declaration. */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/* What a process of ours waits for, as pg_stat_activity shows it: by name since 17, before that as "Extension". */
typedef enum AgWaitEvent
{
	AG_WAIT_FIT,     /* a session for its fit */
	AG_WAIT_WORKER,  /* a session for a background worker that is free, or gone */
	AG_WAIT_TRAINER, /* a supervisor or job for its trainer */
	AG_WAIT_TURN,    /* a job's worker for its turn */
	AG_WAIT_ORDERS,  /* the launcher for something to launch */
	AG_WAIT_JOB,     /* ag_wait and ag_cancel */
	AG_WAIT_PROBE,   /* ag_gpus and ag_doctor for the GPUs */
	AG_WAIT_PREDICT, /* ag_predict_table for rows of its workers */
	AG_WAIT_LAST
} AgWaitEvent;

static inline uint32
ag_wait_event(AgWaitEvent event)
{
#if PG_VERSION_NUM >= 170000
	static const char *const names[AG_WAIT_LAST] = {
		"AgFit", "AgWorker", "AgTrainer", "AgTurn", "AgOrders", "AgJob", "AgProbe", "AgPredict"};
	static uint32 known[AG_WAIT_LAST];

	if (known[event] == 0)
		known[event] = WaitEventExtensionNew(names[event]);
	return known[event];
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* 15 has a flag that says when to flush; before, every send was flushed. */
static inline shm_mq_result
ag_shm_mq_send(shm_mq_handle *queue, Size n_bytes, const void *data, bool nowait, bool flush)
{
#if PG_VERSION_NUM >= 150000
	return shm_mq_send(queue, n_bytes, data, nowait, flush);
#else
	return shm_mq_send(queue, n_bytes, data, nowait);
#endif
}

static inline shm_mq_result
ag_shm_mq_sendv(shm_mq_handle *queue, shm_mq_iovec *parts, int n_parts, bool nowait, bool flush)
{
#if PG_VERSION_NUM >= 150000
	return shm_mq_sendv(queue, parts, n_parts, nowait, flush);
#else
	return shm_mq_sendv(queue, parts, n_parts, nowait);
#endif
}

/* 15 reserves prefixes by a name of its own. */
static inline void
ag_reserve_settings(const char *prefix)
{
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved(prefix);
#else
	EmitWarningsOnPlaceholders(prefix);
#endif
}

/* 17 ties wait sets to a resource owner; ours live as long as their process. */
static inline WaitEventSet *
ag_wait_set_create(int n_events)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, n_events);
#else
	return CreateWaitEventSet(TopMemoryContext, n_events);
#endif
}

/* libpq/libpq.h has it, but drags in headers of GSSAPI that packages don't bring along. */
#if PG_VERSION_NUM >= 140000
extern bool pq_check_connection(void);
#endif

/*
 * True while the client is there, or there never was one; nothing is read from it. 14 has that; before, the same question is asked of its
 * socket here, which is what a Port begins with (the header that says so is libpq/libpq-be.h, with GSSAPI's).
 */
static inline bool
ag_client_connected(void)
{
	if (MyProcPort == NULL || whereToSendOutput != DestRemote)
		return true;
#if PG_VERSION_NUM >= 140000
	return pq_check_connection();
#else
	{
		struct pollfd client = {*(pgsocket *) MyProcPort, POLLRDHUP, 0};

		return poll(&client, 1, 0) <= 0;
	}
#endif
}

#if PG_VERSION_NUM < 140000
static inline void
ag_spi_context(void *query)
{
	errcontext("SQL statement \"%s\"", (const char *) query);
}
#endif

/*
 * 14 can send a prepared plan's rows to a receiver directly; before, a cursor's portal does, which says no query in its errors. parameters:
 * NULL for none.
 */
static inline int
ag_spi_execute_to(SPIPlanPtr plan, ParamListInfo parameters, DestReceiver *receiver)
{
#if PG_VERSION_NUM >= 140000
	SPIExecuteOptions options = {0};

	options.params = parameters;
	options.read_only = true;
	options.must_return_tuples = true;
	options.dest = receiver;
	return SPI_execute_plan_extended(plan, &options);
#else
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));
	ErrorContextCallback context = {error_context_stack, ag_spi_context,
									unconstify(char *, source->query_string)};
	Portal portal = SPI_cursor_open_with_paramlist(NULL, plan, parameters, true);

	error_context_stack = &context;
	receiver->rStartup(receiver, CMD_SELECT, portal->tupDesc);
	PortalRunFetch(portal, FETCH_FORWARD, FETCH_ALL, receiver);
	error_context_stack = context.previous;
	SPI_cursor_close(portal);
	return SPI_OK_SELECT;
#endif
}

/* 14 can read a range of a table's blocks. */
static inline bool
ag_has_tid_ranges(Relation relation)
{
#if PG_VERSION_NUM >= 140000
	return relation->rd_tableam != NULL && relation->rd_tableam->scan_set_tidrange != NULL;
#else
	return false;
#endif
}

/* 14 knows of partitions that are being detached, which the active snapshot may see no more. */
static inline PartitionDesc
ag_partitions(Relation relation)
{
#if PG_VERSION_NUM >= 140000
	return RelationGetPartitionDesc(relation, true);
#else
	return RelationGetPartitionDesc(relation);
#endif
}

/* Of a relation that has them: a scan of the rows in blocks [first, end), and its next row; false at its end. */
static inline TableScanDesc
ag_blocks_begin(Relation relation, Snapshot snapshot, BlockNumber first, BlockNumber end)
{
#if PG_VERSION_NUM >= 140000
	ItemPointerData least, most;

	ItemPointerSet(&least, first, 0);
	ItemPointerSet(&most, end - 1, PG_UINT16_MAX);
	return table_beginscan_tidrange(relation, snapshot, &least, &most);
#else
	elog(ERROR, "PostgreSQL 13 reads no ranges of blocks");
	return NULL;
#endif
}

static inline bool
ag_blocks_next(TableScanDesc scan, TupleTableSlot *slot)
{
#if PG_VERSION_NUM >= 140000
	return table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot);
#else
	return false;
#endif
}

/* 14 can convert without raising an error. False: some character has no counterpart, or the text is invalid. */
static inline bool
ag_try_convert(const char *text, int n, int from, int to, char *out, int out_size)
{
#if PG_VERSION_NUM >= 140000
	Oid proc = FindDefaultConversionProc(from, to);

	if (!OidIsValid(proc))
		return false;
	return pg_do_encoding_conversion_buf(proc, from, to, (unsigned char *) text, n,
										 (unsigned char *) out, out_size, true) == n;
#else
	return false;
#endif
}

/* 14 counts the ends of (sub)transactions in snapshots; before, 0: bounds and counts must do. */
static inline uint64
ag_snapshot_completion_count(Snapshot snapshot)
{
#if PG_VERSION_NUM >= 140000
	return snapshot->snapXactCompletionCount;
#else
	return 0;
#endif
}

/* The server that this library was built for, as 150004. */
static inline int
ag_built_for(void)
{
	return PG_VERSION_NUM;
}

/* The timeline that the server writes; of a standby, that it replays. Before 15 looking for recovery sets it. */
static inline TimeLineID
ag_timeline(void)
{
	TimeLineID timeline = 0;

	if (RecoveryInProgress())
		(void) GetXLogReplayRecPtr(&timeline);
	else
#if PG_VERSION_NUM >= 150000
		timeline = GetWALInsertionTimeLine();
#else
		timeline = ThisTimeLineID;
#endif
	return timeline;
}

/* 14 renamed the role. */
static inline bool
ag_may_monitor(void)
{
#if PG_VERSION_NUM >= 140000
	return has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
#else
	return has_privs_of_role(GetUserId(), DEFAULT_ROLE_MONITOR);
#endif
}

/* 16 can report a bad name softly. */
static inline List *
ag_qualified_name_list(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return stringToQualifiedNameList(name, NULL);
#else
	return stringToQualifiedNameList(name);
#endif
}

/* May the role execute the function? */
static inline AclResult
ag_function_aclcheck(Oid function, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE);
#else
	return pg_proc_aclcheck(function, role, ACL_EXECUTE);
#endif
}

/*
 * A piece of shared memory by its name, which all processes of the cluster have together; the first one initialises it. 17 can make it at
 * any time; before, it takes a library in shared_preload_libraries that asked for the room. NULL: there is none.
 */
static inline void *
ag_shared_memory(const char *name, Size size, void (*init)(void *at), bool is_preloaded)
{
#if PG_VERSION_NUM >= 170000
	char sized[NAMEDATALEN];
	bool found;

	/* the server would refuse one of another size, as a build with other headers may have made it */
	snprintf(sized, sizeof sized, "%s %zu", name, size);
	return GetNamedDSMSegment(sized, size, init, &found);
#else
	void *at;
	bool found;

	if (!is_preloaded)
		return NULL;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	at = ShmemInitStruct(name, size, &found);
	if (!found)
		init(at);
	LWLockRelease(AddinShmemInitLock);
	return at;
#endif
}

/*
 * While the library is preloaded: request is called when it is time to ask for room in shared memory, and then calls *previous
 * where that isn't NULL.
 */
static inline void
ag_shared_memory_on_request(void (*request)(void), void (**previous)(void))
{
	*previous = NULL;
#if PG_VERSION_NUM >= 150000 && PG_VERSION_NUM < 170000
	*previous = shmem_request_hook;
	shmem_request_hook = request;
#elif PG_VERSION_NUM < 150000
	request();
#endif
}

#endif
