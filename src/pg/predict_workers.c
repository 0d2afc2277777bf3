/*
 * predict_workers.c - see predict_workers.h.
 *
 * A worker's rows come through a queue in shared memory, piece by piece. The session is the only one that holds them back: what isn't
 * next stays in its queue, whose worker waits when it is full, so no process needs more memory for a larger table.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "partitioning/partdesc.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "pg/compat.h"
#include "pg/cost.h"
#include "pg/predict_rows.h"
#include "pg/predict_workers.h"
#include "pg/predict_workers_private.h"

/* A process should have work worth so many parallel_setup_cost: a worker has to start, and to open the model. */
#define PROCESS_SETUPS 5.0
#define PIECE_OPERATORS 100000.0 /* cpu_operator_cost: about 2 ms */
#define LEAST_PIECE_ROWS AG_BATCH_ROWS
#define MOST_PIECE_ROWS 4096
#define PIECES_A_PROCESS 4 /* at least, so that all end at about the same time */
#define MOST_PIECES (1u << 20)

/* --- whether to, and how --- */

/* May a worker turn values of the type into text? */
static bool
is_safe(Oid type)
{
	bool is_varlena;
	Oid output;

	getTypeOutputInfo(getBaseType(type), &output, &is_varlena);
	return func_parallel(output) == PROPARALLEL_SAFE;
}

/* Blocks that any process may read, with rows that are all there is of them. */
static bool
has_plain_blocks(Relation relation)
{
	return (relation->rd_rel->relkind == RELKIND_RELATION ||
			relation->rd_rel->relkind == RELKIND_MATVIEW) &&
		   relation->rd_rel->relpersistence != RELPERSISTENCE_TEMP && ag_has_tid_ranges(relation);
}

/* Are there columns that are computed when they are read, by any function? */
static bool
has_virtual_columns(Relation relation)
{
	for (int i = 0; i < RelationGetDescr(relation)->natts; i++)
	{
		char generated = TupleDescAttr(RelationGetDescr(relation), i)->attgenerated;

		if (generated != '\0' && generated != ATTRIBUTE_GENERATED_STORED)
			return true;
	}
	return false;
}

static bool
can_share(const AgSource *source, Relation relation)
{
	if (check_enable_rls(source->relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	/*
	 * Blocks are read without the executor, which would ask for rights: one on all columns is the same for all rows. What else it would
	 * be asked by a module (sepgsql), isn't known here.
	 */
	if (ExecutorCheckPerms_hook != NULL ||
		pg_class_aclcheck(source->relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		return false;
	for (int i = 0; i < source->n_columns; i++)
		if (source->columns[i].wanted && !is_safe(source->columns[i].typid))
			return false;
	return !has_virtual_columns(relation);
}

/* --- its parts, in the order in which the executor reads them --- */

/* All those below a partitioned table, partitioned ones replaced by theirs; locked. */
static List *
add_partitions(List *oids, Relation relation)
{
	const PartitionDescData *partitions = ag_partitions(relation);

	for (int i = 0; i < partitions->nparts; i++)
	{
		Relation partition = table_open(partitions->oids[i], AccessShareLock);

		if (partition->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
			oids = add_partitions(oids, partition);
		else
			oids = lappend_oid(oids, RelationGetRelid(partition));
		table_close(partition, NoLock);
	}
	return oids;
}

static List *
find_parts(Relation relation)
{
	if (relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return add_partitions(NIL, relation);
	if (relation->rd_rel->relhassubclass)
		return find_all_inheritors(RelationGetRelid(relation), AccessShareLock, NULL);
	return list_make1_oid(RelationGetRelid(relation));
}

/* What is known of a table's parts before it is cut. */
typedef struct Parts
{
	int n; /* with blocks */
	AgTablePart *parts;
	double *rows; /* [n], estimated */
	double n_rows, n_blocks;
	int most_workers; /* that any of them allows */
} Parts;

/* False: one of them isn't for others to read. */
static bool
look_at_parts(List *oids, Parts *parts)
{
	ListCell *cell;

	memset(parts, 0, sizeof *parts);
	parts->parts = palloc(sizeof(AgTablePart) * Max(list_length(oids), 1));
	parts->rows = palloc(sizeof(double) * Max(list_length(oids), 1));
	foreach (cell, oids)
	{
		Relation relation = table_open(lfirst_oid(cell), NoLock);
		bool is_plain = has_plain_blocks(relation) && !has_virtual_columns(relation);

		if (is_plain && RelationGetNumberOfBlocks(relation) > 0)
		{
			AgTablePart *part = &parts->parts[parts->n];
			double all_visible;
			BlockNumber n_counted;

			part->relid = RelationGetRelid(relation);
			part->n_blocks = RelationGetNumberOfBlocks(relation);
			estimate_rel_size(relation, NULL, &n_counted, &parts->rows[parts->n], &all_visible);
			parts->n_rows += parts->rows[parts->n];
			parts->n_blocks += part->n_blocks;
			parts->most_workers =
				Max(parts->most_workers,
					Min(RelationGetParallelWorkers(relation, max_parallel_workers_per_gather),
						max_parallel_workers_per_gather));
			parts->n++;
		}
		table_close(relation, NoLock);
		if (!is_plain)
			return false;
	}
	return true;
}

/* --- how they are cut into pieces --- */

/* Of all parts, so many that all processes end at about the same time; returns how many processes they make work for. */
static int
cut_parts(const AgTableJob *job, Parts *parts, uint32 *n_pieces)
{
	double operators = ag_cost_of_row(job->model, AG_ROW_COLUMNS);
	double n_processes = floor(parts->n_rows * operators * cpu_operator_cost /
							   fmax(PROCESS_SETUPS * parallel_setup_cost, 1e-9));
	double piece_rows = fmin(fmax(PIECE_OPERATORS / operators, LEAST_PIECE_ROWS), MOST_PIECE_ROWS);
	uint64 n = 0;

	n_processes = fmin(n_processes, parts->most_workers + 1.0);
	for (int i = 0; i < parts->n; i++)
	{
		AgTablePart *part = &parts->parts[i];
		double blocks = ceil(piece_rows * part->n_blocks / fmax(parts->rows[i], 1.0));

		blocks = fmin(blocks, parts->n_blocks / (PIECES_A_PROCESS * fmax(n_processes, 1)));
		blocks = fmin(fmax(blocks, parts->n_blocks / MOST_PIECES + 1), part->n_blocks);
		part->piece_blocks = (BlockNumber) fmax(blocks, 1.0);
		part->first_piece = (uint32) n;
		n += (part->n_blocks - 1) / part->piece_blocks + 1;
	}
	*n_pieces = (uint32) n; /* at most MOST_PIECES and one a part */
	return (int) fmin(n_processes, n) - 1;
}

/* How many workers to ask for; 0: the session does it alone. */
static int
plan(const AgTableJob *job, Parts *parts, uint32 *n_pieces)
{
	const AgSource *source = ag_batch_source(job->reader);
	Relation relation;
	int n_workers = 0;

	if (source->table == NULL || source->uses_temp || max_parallel_workers_per_gather < 1 ||
		!IsUnderPostmaster || IsInParallelMode() || IsolationIsSerializable())
		return 0;
	relation = table_open(source->relid, NoLock); /* which is locked */
	if (can_share(source, relation) && look_at_parts(find_parts(relation), parts) && parts->n > 0)
		n_workers = cut_parts(job, parts, n_pieces);
	table_close(relation, NoLock);
	return n_workers;
}

/* --- in the session --- */

typedef struct Queue
{
	shm_mq_handle *handle;
	const AgTableLot *lot; /* at its head, good until more is received; NULL: none has come */
	Size n_bytes;          /* of the lot */
	bool is_over;          /* nothing more will come */
} Queue;

typedef struct Leader
{
	AgTableJob *job;
	ParallelContext *context;
	AgTableOrders *orders;
	BufferUsage *buffer_usage; /* [workers] */
	WalUsage *wal_usage;
	int n_queues;
	Queue *queues;
	TupleTableSlot *slot;
	Tuplestorestate *result;
	uint32 next;          /* piece that the result is waiting for */
	Tuplestorestate *own; /* rows of a piece that this process took ahead of its turn */
	bool has_own;
	uint32 own_piece;
} Leader;

static Size
add_text(AgTableOrders *orders, Size at, const char *text, Size *next)
{
	strcpy((char *) orders + orders->texts + at, text);
	*next = at + strlen(text) + 1;
	return at;
}

static void
make_room(Leader *leader, const Parts *parts, uint32 n_pieces)
{
	const AgTableJob *job = leader->job;
	const AgSource *source = ag_batch_source(job->reader);
	const char *key_column = job->key_column != NULL ? job->key_column : "";
	ParallelContext *context = leader->context;
	Size n_texts = strlen(job->model->member) + strlen(job->name) + strlen(source->qualified) +
				   strlen(key_column) + 4;
	Size texts = add_size(offsetof(AgTableOrders, parts), mul_size(sizeof(AgTablePart), parts->n));
	Size n_orders = add_size(texts, n_texts), at = 0;
	int n = context->nworkers;
	char *queues;

	shm_toc_estimate_chunk(&context->estimator, n_orders);
	shm_toc_estimate_chunk(&context->estimator, mul_size(AG_QUEUE_BYTES, n));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(BufferUsage), n));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(WalUsage), n));
	shm_toc_estimate_keys(&context->estimator, 4);
	InitializeParallelDSM(context); /* may take workers away */
	leader->orders = shm_toc_allocate(context->toc, n_orders);
	leader->orders->n_pieces = n_pieces;
	leader->orders->n_parts = parts->n;
	leader->orders->texts = texts;
	memcpy(leader->orders->parts, parts->parts, sizeof(AgTablePart) * parts->n);
	leader->orders->id = job->model->id;
	leader->orders->relid = source->relid;
	pg_atomic_init_u32(&leader->orders->next_piece, 0);
	leader->orders->member = add_text(leader->orders, at, job->model->member, &at);
	leader->orders->name = add_text(leader->orders, at, job->name, &at);
	leader->orders->table = add_text(leader->orders, at, source->qualified, &at);
	leader->orders->key_column = add_text(leader->orders, at, key_column, &at);
	shm_toc_insert(context->toc, AG_KEY_ORDERS, leader->orders);
	leader->buffer_usage = shm_toc_allocate(context->toc, mul_size(sizeof(BufferUsage), n));
	shm_toc_insert(context->toc, AG_KEY_BUFFER_USAGE, leader->buffer_usage);
	leader->wal_usage = shm_toc_allocate(context->toc, mul_size(sizeof(WalUsage), n));
	shm_toc_insert(context->toc, AG_KEY_WAL_USAGE, leader->wal_usage);
	queues = shm_toc_allocate(context->toc, mul_size(AG_QUEUE_BYTES, n));
	shm_toc_insert(context->toc, AG_KEY_QUEUES, queues);
	leader->queues = palloc0(sizeof(Queue) * Max(n, 1));
	for (int i = 0; i < context->nworkers; i++)
	{
		shm_mq *queue = shm_mq_create(queues + (Size) i * AG_QUEUE_BYTES, AG_QUEUE_BYTES);

		shm_mq_set_receiver(queue, MyProc);
		leader->queues[i].handle = shm_mq_attach(queue, context->seg, NULL);
	}
}

static void
launch(Leader *leader)
{
	ParallelContext *context = leader->context;

	LaunchParallelWorkers(context);
	leader->n_queues = context->nworkers_launched;
	for (int i = 0; i < leader->n_queues; i++) /* so that the end of one that never came is seen */
		shm_mq_set_handle(leader->queues[i].handle, context->worker[i].bgwhandle);
	ereport(DEBUG1,
			(errmsg_internal("predicting %s in %u pieces, with %d workers of the %d asked for",
							 ag_batch_source(leader->job->reader)->qualified,
							 leader->orders->n_pieces, leader->n_queues, context->nworkers)));
}

/* Is there a lot in the queue? */
static bool
look(Queue *queue)
{
	void *data;

	if (queue->lot != NULL || queue->is_over)
		return queue->lot != NULL;
	switch (shm_mq_receive(queue->handle, &queue->n_bytes, &data, true))
	{
		case SHM_MQ_SUCCESS:
			queue->lot = data;
			break;
		case SHM_MQ_DETACHED:
			queue->is_over = true;
			break;
		case SHM_MQ_WOULD_BLOCK:
			break;
	}
	return queue->lot != NULL;
}

static void
put_lot(Leader *leader, Queue *queue)
{
	const char *at = (const char *) queue->lot + sizeof(AgTableLot);

	for (uint32 i = 0; i < queue->lot->n_rows; i++)
	{
		MinimalTuple tuple = (MinimalTuple) at;

		ExecStoreMinimalTuple(tuple, leader->slot, false);
		tuplestore_puttupleslot(leader->result, leader->slot);
		at += MAXALIGN(tuple->t_len);
	}
	ExecClearTuple(leader->slot);
	leader->job->n_rows += queue->lot->n_rows;
	leader->next += queue->lot->is_last;
	queue->lot = NULL;
}

/* Lots whose turn it is; false: there was none. */
static bool
put_lots(Leader *leader)
{
	bool any = false;

	for (int i = 0; i < leader->n_queues; i++)
		while (look(&leader->queues[i]) && leader->queues[i].lot->piece == leader->next)
		{
			put_lot(leader, &leader->queues[i]);
			any = true;
		}
	return any;
}

static bool
put_own(Leader *leader)
{
	if (!leader->has_own || leader->own_piece != leader->next)
		return false;
	while (tuplestore_gettupleslot(leader->own, true, false, leader->slot))
		tuplestore_puttupleslot(leader->result, leader->slot);
	ExecClearTuple(leader->slot);
	tuplestore_clear(leader->own);
	leader->has_own = false;
	leader->next++;
	return true;
}

/* One piece, straight to the result where that waits for it; false: there is none left. */
static bool
do_own(Leader *leader)
{
	AgSrf *srf = leader->job->srf;
	uint32 piece;

	if (leader->has_own || !ag_take_piece(leader->orders, &piece))
		return false;
	if (piece != leader->next)
	{
		leader->has_own = true;
		leader->own_piece = piece;
		srf->rows = leader->own;
	}
	ag_read_piece(leader->orders, piece, leader->job->reader);
	srf->rows = leader->result;
	if (piece == leader->next)
		leader->next++;
	return true;
}

static bool
are_over(const Leader *leader)
{
	for (int i = 0; i < leader->n_queues; i++)
		if (!leader->queues[i].is_over)
			return false;
	return true;
}

static void
put_all(Leader *leader)
{
	while (leader->next < leader->orders->n_pieces)
	{
		bool is_alone = are_over(leader);

		CHECK_FOR_INTERRUPTS(); /* raises a worker's error, too */
		if (put_own(leader) || put_lots(leader))
			continue;
		if ((parallel_leader_participation || is_alone) && do_own(leader))
			continue;
		if (is_alone)
			break; /* a piece is lost, with its worker */
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1,
						 ag_wait_event(AG_WAIT_PREDICT));
		ResetLatch(MyLatch);
	}
}

static void
finish(Leader *leader)
{
	for (int i = 0; i < leader->n_queues; i++)
		shm_mq_detach(leader->queues[i].handle);
	WaitForParallelWorkersToFinish(leader->context); /* or raises what became of them */
	if (leader->next < leader->orders->n_pieces)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("a parallel worker ended before it had predicted its rows")));
	for (int i = 0; i < leader->n_queues; i++)
		InstrAccumParallelQuery(&leader->buffer_usage[i], &leader->wal_usage[i]);
	DestroyParallelContext(leader->context);
	ExitParallelMode();
	tuplestore_end(leader->own);
	ExecDropSingleTupleTableSlot(leader->slot);
}

bool
ag_predict_by_workers(AgTableJob *job)
{
	Leader leader = {.job = job, .result = job->srf->rows};
	Parts parts;
	uint32 n_pieces;
	int n_workers = plan(job, &parts, &n_pieces);

	job->n_rows = 0;
	if (n_workers < 1)
		return false;
	EnterParallelMode(); /* until an error or finish ends it */
	leader.context = CreateParallelContext("ag_pg", "ag_predict_table_main", n_workers);
	make_room(&leader, &parts, n_pieces);
	leader.slot = MakeSingleTupleTableSlot(job->srf->desc, &TTSOpsMinimalTuple);
	leader.own = tuplestore_begin_heap(false, false, work_mem);
	launch(&leader);
	put_all(&leader);
	finish(&leader);
	return true;
}
