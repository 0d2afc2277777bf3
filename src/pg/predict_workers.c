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
#include "catalog/pg_proc.h"
#include "executor/instrument.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
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

static bool
can_share(const AgSource *source, Relation relation)
{
	char kind = relation->rd_rel->relkind;

	if ((kind != RELKIND_RELATION && kind != RELKIND_MATVIEW) || source->uses_temp ||
		relation->rd_rel->relhassubclass || !ag_has_tid_ranges(relation) ||
		check_enable_rls(source->relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	/* Where rows lie may be asked by those who may read all columns. */
	if (pg_class_aclcheck(source->relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		return false;
	for (int i = 0; i < source->n_columns; i++)
		if (source->columns[i].wanted && !is_safe(source->columns[i].typid))
			return false;
	for (int i = 0; i < RelationGetDescr(relation)->natts; i++)
	{
		char generated = TupleDescAttr(RelationGetDescr(relation), i)->attgenerated;

		if (generated != '\0' && generated != ATTRIBUTE_GENERATED_STORED) /* by any function */
			return false;
	}
	return true;
}

/* How the table is cut into pieces, for so many workers; returns those that it makes work for. */
static int
cut_table(const AgTableJob *job, Relation relation, AgTableOrders *orders)
{
	int most = Min(RelationGetParallelWorkers(relation, max_parallel_workers_per_gather),
				   max_parallel_workers_per_gather);
	double operators = ag_cost_of_row(job->model, AG_ROW_COLUMNS);
	double rows, all_visible, n_processes, piece_rows, piece_blocks;
	BlockNumber n_counted;

	estimate_rel_size(relation, NULL, &n_counted, &rows, &all_visible);
	orders->n_blocks = RelationGetNumberOfBlocks(relation);
	if (orders->n_blocks == 0)
		return 0;
	n_processes = floor(rows * operators * cpu_operator_cost /
						fmax(PROCESS_SETUPS * parallel_setup_cost, 1e-9));
	n_processes = fmin(n_processes, most + 1.0);
	piece_rows = fmin(fmax(PIECE_OPERATORS / operators, LEAST_PIECE_ROWS), MOST_PIECE_ROWS);
	piece_blocks = ceil(piece_rows * orders->n_blocks / fmax(rows, 1.0));
	piece_blocks = fmin(piece_blocks, orders->n_blocks / (PIECES_A_PROCESS * fmax(n_processes, 1)));
	orders->piece_blocks =
		Max(orders->n_blocks / MOST_PIECES + 1, (BlockNumber) fmax(piece_blocks, 1.0));
	orders->n_pieces = (orders->n_blocks - 1) / orders->piece_blocks + 1;
	return (int) fmin(n_processes, orders->n_pieces) - 1;
}

static int
plan(const AgTableJob *job, AgTableOrders *orders)
{
	const AgSource *source = ag_batch_source(job->reader);
	Relation relation;
	int n_workers = 0;

	if (source->table == NULL || max_parallel_workers_per_gather < 1 || !IsUnderPostmaster ||
		IsInParallelMode() || IsolationIsSerializable())
		return 0;
	relation = table_open(source->relid, NoLock); /* which is locked */
	if (can_share(source, relation))
		n_workers = cut_table(job, relation, orders);
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
	strcpy(orders->texts + at, text);
	*next = at + strlen(text) + 1;
	return at;
}

static void
make_room(Leader *leader, const AgTableOrders *plan)
{
	const AgTableJob *job = leader->job;
	const AgSource *source = ag_batch_source(job->reader);
	const char *key_column = job->key_column != NULL ? job->key_column : "";
	ParallelContext *context = leader->context;
	Size n_texts = strlen(job->model->member) + strlen(job->name) + strlen(source->qualified) +
				   strlen(key_column) + 4;
	Size n_orders = offsetof(AgTableOrders, texts) + n_texts, at = 0;
	int n = context->nworkers;
	char *queues;

	shm_toc_estimate_chunk(&context->estimator, n_orders);
	shm_toc_estimate_chunk(&context->estimator, mul_size(AG_QUEUE_BYTES, n));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(BufferUsage), n));
	shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(WalUsage), n));
	shm_toc_estimate_keys(&context->estimator, 4);
	InitializeParallelDSM(context); /* may take workers away */
	leader->orders = shm_toc_allocate(context->toc, n_orders);
	memcpy(leader->orders, plan, offsetof(AgTableOrders, texts));
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
	AgTableOrders orders = {.n_pieces = 0};
	int n_workers = plan(job, &orders);

	job->n_rows = 0;
	if (n_workers < 1)
		return false;
	EnterParallelMode(); /* until an error or finish ends it */
	leader.context = CreateParallelContext("ag_pg", "ag_predict_table_main", n_workers);
	make_room(&leader, &orders);
	leader.slot = MakeSingleTupleTableSlot(job->srf->desc, &TTSOpsMinimalTuple);
	leader.own = tuplestore_begin_heap(false, false, work_mem);
	launch(&leader);
	put_all(&leader);
	finish(&leader);
	return true;
}
