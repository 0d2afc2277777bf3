/*
 * predict_workers_private.h - what the session of a table's job and its workers know together. Private to predict_worker*.c.
 */
#ifndef AG_PREDICT_WORKERS_PRIVATE_H
#define AG_PREDICT_WORKERS_PRIVATE_H

#include "postgres.h"

#include "port/atomics.h"

#include "pg/batch.h"

#define AG_QUEUE_BYTES (512 * 1024) /* of each worker: more than a piece usually takes */

/* What lies where in their shared memory. */
#define AG_KEY_ORDERS UINT64CONST(0xA600000000000001)
#define AG_KEY_QUEUES UINT64CONST(0xA600000000000002)
#define AG_KEY_BUFFER_USAGE UINT64CONST(0xA600000000000003)
#define AG_KEY_WAL_USAGE UINT64CONST(0xA600000000000004)

/* What the workers are told. */
typedef struct AgTableOrders
{
	pg_uuid_t id;
	Oid relid;
	BlockNumber n_blocks, piece_blocks;
	uint32 n_pieces;
	pg_atomic_uint32 next_piece; /* that nobody has taken; may pass n_pieces */
	/* where texts begin: the member, the model's name, the table's name, the key column or "" */
	Size member, name, table, key_column;
	char texts[FLEXIBLE_ARRAY_MEMBER];
} AgTableOrders;

/* Rows of one piece in a worker's queue; behind it n_rows minimal tuples, each at a multiple of MAXALIGN. */
typedef struct AgTableLot
{
	uint32 piece;
	uint32 n_rows;
	uint32 is_last; /* of the piece */
	uint32 zero;
} AgTableLot;

StaticAssertDecl(sizeof(AgTableLot) == MAXALIGN(sizeof(AgTableLot)), "tuples begin behind it");

/* Takes a piece; false: there are none left. */
static inline bool
ag_take_piece(AgTableOrders *orders, uint32 *piece)
{
	*piece = pg_atomic_fetch_add_u32(&orders->next_piece, 1);
	return *piece < orders->n_pieces;
}

static inline void
ag_read_piece(const AgTableOrders *orders, uint32 piece, AgBatchReader *reader)
{
	uint64 first = (uint64) piece * orders->piece_blocks;
	uint64 end = Min(first + orders->piece_blocks, orders->n_blocks);

	ag_batch_read_blocks(reader, (BlockNumber) first, (BlockNumber) end);
}

#endif
