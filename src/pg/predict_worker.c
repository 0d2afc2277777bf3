/*
 * predict_worker.c - a process that predicts pieces of a table for a session (predict_workers.h).
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_type.h"
#include "executor/instrument.h"
#include "executor/tuptable.h"
#include "utils/lsyscache.h"

#include "pg/compat.h"
#include "pg/predict_rows.h"
#include "pg/predict_workers_private.h"

#define LOT_BYTES (32 * 1024) /* rows that are sent at once */

typedef struct Sender
{
	shm_mq_handle *queue;
	TupleTableSlot *slot;
	AgTableLot lot;
	char *tuples; /* [room] of the lot */
	Size used, room;
	bool
		is_unheard; /* the session has turned away: whatever stopped it will stop this process, too */
} Sender;

static void
send_lot(Sender *sender, bool is_last)
{
	shm_mq_iovec parts[2] = {{(const char *) &sender->lot, sizeof(AgTableLot)},
							 {sender->tuples, sender->used}};

	sender->lot.is_last = is_last;
	if (!sender->is_unheard &&
		ag_shm_mq_sendv(sender->queue, parts, 2, false, true) != SHM_MQ_SUCCESS)
		sender->is_unheard = true;
	sender->lot.n_rows = 0;
	sender->used = 0;
}

static void
put_in_lot(void *arg, Datum *values, bool *nulls)
{
	Sender *sender = arg;
	MinimalTuple tuple;

	ExecClearTuple(sender->slot);
	memcpy(sender->slot->tts_values, values, sizeof(Datum) * AG_PREDICT_COLUMNS);
	memcpy(sender->slot->tts_isnull, nulls, sizeof(bool) * AG_PREDICT_COLUMNS);
	ExecStoreVirtualTuple(sender->slot);
	tuple = ExecCopySlotMinimalTuple(sender->slot);
	if (sender->used > 0 && sender->used + MAXALIGN(tuple->t_len) > LOT_BYTES)
		send_lot(sender, false);
	if (MAXALIGN(tuple->t_len) > sender->room)
	{
		sender->room = MAXALIGN(tuple->t_len);
		pfree(sender->tuples);
		sender->tuples = MemoryContextAllocHuge(GetMemoryChunkContext(sender->slot), sender->room);
	}
	memcpy(sender->tuples + sender->used, tuple, tuple->t_len);
	sender->used += MAXALIGN(tuple->t_len);
	sender->lot.n_rows++;
	pfree(tuple);
}

static TupleDesc
make_desc(void)
{
	Oid types[AG_PREDICT_COLUMNS] = {TEXTOID, TEXTOID, FLOAT8OID, JSONBOID,
									 get_array_type(FLOAT8OID)};
	TupleDesc desc = CreateTemplateTupleDesc(AG_PREDICT_COLUMNS);

	for (int i = 0; i < AG_PREDICT_COLUMNS; i++)
		TupleDescInitEntry(desc, i + 1, NULL, types[i], -1, 0);
	return desc;
}

static void
sender_init(Sender *sender, dsm_segment *segment, shm_toc *toc)
{
	char *queues = shm_toc_lookup(toc, AG_KEY_QUEUES, false);
	shm_mq *queue = (shm_mq *) (queues + (Size) ParallelWorkerNumber * AG_QUEUE_BYTES);

	memset(sender, 0, sizeof *sender);
	shm_mq_set_sender(queue, MyProc);
	sender->queue = shm_mq_attach(queue, segment, NULL);
	sender->slot = MakeSingleTupleTableSlot(make_desc(), &TTSOpsVirtual);
	sender->room = LOT_BYTES;
	sender->tuples = palloc(sender->room);
}

/* The table by its name; by now that might be another's than the one whose rights and policies the session looked at. */
static AgBatchReader *
open_table(const AgTableOrders *orders, const AgOpenModel *model, Sender *sender)
{
	const char *table = ag_order_text(orders, orders->table);
	const char *key_column = ag_order_text(orders, orders->key_column);
	AgBatchReader *reader =
		ag_batch_open(table, ag_order_text(orders, orders->name), model,
					  key_column[0] != '\0' ? key_column : NULL, ag_predict_rows_take,
					  ag_predict_rows_create(model, put_in_lot, sender));

	if (ag_batch_source(reader)->relid != orders->relid)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("%s became another table while it was being opened", table),
						errhint("Try again.")));
	return reader;
}

PGDLLEXPORT void ag_predict_table_main(dsm_segment *segment, shm_toc *toc);

void
ag_predict_table_main(dsm_segment *segment, shm_toc *toc)
{
	AgTableOrders *orders = shm_toc_lookup(toc, AG_KEY_ORDERS, false);
	BufferUsage *buffer_usage = shm_toc_lookup(toc, AG_KEY_BUFFER_USAGE, false);
	WalUsage *wal_usage = shm_toc_lookup(toc, AG_KEY_WAL_USAGE, false);
	AgBatchReader *reader;
	Sender sender;
	uint32 piece;

	InstrStartParallelQuery();
	sender_init(&sender, segment, toc);
	reader = open_table(
		orders,
		ag_cache_get(&orders->id, ag_order_text(orders, orders->member), CurrentMemoryContext),
		&sender);
	while (!sender.is_unheard && ag_take_piece(orders, &piece))
	{
		sender.lot.piece = piece;
		ag_read_piece(orders, piece, reader);
		send_lot(&sender, true);
	}
	ag_batch_close(reader);
	shm_mq_detach(sender.queue);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);
}
