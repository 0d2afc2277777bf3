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

/* A table with blocks of its own: the one to predict, or a partition or child of it. */
typedef struct AgTablePart
{
	Oid relid;
	BlockNumber n_blocks, piece_blocks;
	uint32 first_piece; /* its pieces go on to the next part's first */
} AgTablePart;

/* What the workers are told. */
typedef struct AgTableOrders
{
	pg_uuid_t id;
	Oid relid;
	uint32 n_pieces;
	uint32 n_parts; /* none without blocks; in the order in which one process would read them */
	pg_atomic_uint32 next_piece; /* that nobody has taken; may pass n_pieces */
	/* where texts begin: the member, the model's name, the table's name, the key column or "" */
	Size member, name, table, key_column;
	Size texts; /* and where they do, from here; the parts come first */
	AgTablePart parts[FLEXIBLE_ARRAY_MEMBER];
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

static inline const char *
ag_order_text(const AgTableOrders *orders, Size at)
{
	return (const char *) orders + orders->texts + at;
}

static inline void
ag_read_piece(const AgTableOrders *orders, uint32 piece, AgBatchReader *reader)
{
	uint32 low = 0, high = orders->n_parts;
	const AgTablePart *part;
	uint64 first, end;

	while (high - low > 1) /* the last part that doesn't begin behind the piece */
	{
		uint32 middle = low + (high - low) / 2;

		if (orders->parts[middle].first_piece <= piece)
			low = middle;
		else
			high = middle;
	}
	part = &orders->parts[low];
	first = (uint64) (piece - part->first_piece) * part->piece_blocks;
	end = Min(first + part->piece_blocks, part->n_blocks);
	ag_batch_read_blocks(reader, part->relid, (BlockNumber) first, (BlockNumber) end);
}

#endif
