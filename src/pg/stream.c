/*
 * stream.c - see stream.h.
 *
 * The executor hands each row to our receiver, which converts its values and adds them to a block; a full block goes to the
 * line. Nothing is allocated a row: texts are taken where they lie in the row, unless they must be detoasted or converted.
 */
#include "postgres.h"

#include "executor/tuptable.h"
#include "tcop/dest.h"
#include "utils/memutils.h"

#include "pg/convert.h"
#include "pg/errors.h"
#include "pg/stream.h"
#include "wire/block.h"

#define ROWS_A_TICK 64
#define SCRATCH_BYTES (256 * 1024)

typedef struct Stream
{
	DestReceiver receiver; /* first: the executor knows only this */
	AgLine *line;
	const AgSchema *schema;
	int *positions; /* in the row, from 0 */
	int n_needed;   /* attributes to deform */
	AgConverter **converters;
	AgValue *values;
	AgMem mem;
	AgBlockBuilder *builder;
	AgWriter frame;
	MemoryContext scratch; /* what conversions allocate */
	int64 n_rows;
	const AgSource *source;
} Stream;

/* The block's memory isn't the server's: it goes with the memory context the stream lives in, in an error too. */
static void
free_stream(void *arg)
{
	Stream *stream = arg;

	ag_block_builder_free(stream->builder);
	stream->builder = NULL;
	ag_writer_free(&stream->frame);
}

static void
send_frame(Stream *stream, AgFrameType type, bool flush)
{
	uint32 n_bytes = (uint32) (stream->frame.size - AG_FRAME_HEADER);

	ag_frame_header_write(stream->frame.data, type, n_bytes);
	ag_line_send(stream->line, stream->frame.data, stream->frame.size, flush);
}

/* An empty frame with room for its header. */
static void
begin_frame(Stream *stream)
{
	static const uint8 header[AG_FRAME_HEADER];

	stream->frame.size = 0;
	ag_write_bytes(&stream->frame, header, AG_FRAME_HEADER);
}

static void
send_block(Stream *stream)
{
	AgError err;

	if (ag_block_builder_rows(stream->builder) == 0)
		return;
	ag_error_init(&err);
	begin_frame(stream);
	ag_error_check(ag_block_builder_take(stream->builder, &stream->frame, &err), &err);
	if (stream->frame.failed || stream->frame.size > AG_FRAME_MAX)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
						errdetail("A block of rows did not fit.")));
	send_frame(stream, AG_FRAME_BLOCK, true);
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Stream *stream = (Stream *) self;
	int n = stream->schema->n_columns;
	MemoryContext old;
	AgError err;

	slot_getsomeattrs(slot, stream->n_needed);
	old = MemoryContextSwitchTo(stream->scratch);
	for (int c = 0; c < n; c++)
	{
		int position = stream->positions[c];

		if (stream->converters[c] == NULL) /* its value stays as it is */
			continue;
		ag_converter_run(stream->converters[c], slot->tts_values[position],
						 slot->tts_isnull[position], &stream->values[c]);
	}
	ag_error_init(&err);
	ag_error_check(ag_block_builder_add(stream->builder, stream->values, &err), &err);
	MemoryContextSwitchTo(old);
	if (MemoryContextMemAllocated(stream->scratch, false) > SCRATCH_BYTES)
		MemoryContextReset(stream->scratch);
	if (ag_block_builder_full(stream->builder))
		send_block(stream);
	if (++stream->n_rows % ROWS_A_TICK == 0)
		ag_line_tick(stream->line);
	return true;
}

static void
start_up(DestReceiver *self, int operation, TupleDesc desc)
{
	Stream *stream = (Stream *) self;

	ag_source_check(stream->source, desc);
}

static void
shut_down(DestReceiver *self)
{
}

static Stream *
create_stream(AgSource *source, const AgSchema *schema, const int *columns, pg_tz *zone,
			  bool raw_text, AgLine *line)
{
	Stream *stream = palloc0(sizeof(Stream));
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));
	int n = schema->n_columns;
	AgError err;

	stream->receiver.receiveSlot = receive_row;
	stream->source = source;
	stream->receiver.rStartup = start_up;
	stream->receiver.rShutdown = shut_down;
	stream->receiver.rDestroy = shut_down;
	/* any kind but DestNone, for which SPI would not return rows at all */
	stream->receiver.mydest = DestTuplestore;
	stream->line = line;
	stream->schema = schema;
	stream->positions = palloc(n * sizeof(int));
	stream->converters = palloc0(n * sizeof(AgConverter *));
	stream->values = palloc0(n * sizeof(AgValue));
	for (int c = 0; c < n; c++)
	{
		AgSourceColumn *column;

		if (columns[c] < 0)
		{
			stream->values[c].v.b = columns[c] == AG_STREAM_TRUE;
			continue;
		}
		column = &source->columns[columns[c]];
		stream->positions[c] = column->position;
		stream->n_needed = Max(stream->n_needed, column->position + 1);
		stream->converters[c] = ag_converter_create(column->typid, schema->columns[c].type,
													column->name, zone, raw_text);
	}
	stream->scratch =
		AllocSetContextCreate(CurrentMemoryContext, "ag_pg row", ALLOCSET_DEFAULT_SIZES);
	ag_mem_init(&stream->mem, INT64_MAX);
	ag_writer_init(&stream->frame, &stream->mem);
	callback->func = free_stream;
	callback->arg = stream;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	ag_error_init(&err);
	ag_error_check(ag_block_builder_create(&stream->mem, schema, &stream->builder, &err), &err);
	return stream;
}

int64
ag_stream_run(AgSource *source, const AgSchema *schema, const int *columns, pg_tz *zone,
			  bool raw_text, AgLine *line)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "ag_pg stream", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Stream *stream;
	int64 n_rows;

	stream = create_stream(source, schema, columns, zone, raw_text, line);
	ag_source_run(source, &stream->receiver);
	send_block(stream);
	n_rows = stream->n_rows;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return n_rows;
}

void
ag_stream_end(AgLine *line, int64 n_rows)
{
	uint8 frame[AG_FRAME_HEADER + sizeof(uint64)];

	ag_frame_header_write(frame, AG_FRAME_END_OF_ROWS, sizeof(uint64));
	for (int i = 0; i < 8; i++) /* little-endian, as ag_write_u64 */
		frame[AG_FRAME_HEADER + i] = (uint8) ((uint64) n_rows >> (8 * i));
	ag_line_send(line, frame, sizeof frame, true);
}
