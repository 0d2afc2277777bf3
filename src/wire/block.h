/*
 * block.h - a block of rows, column by column: the payload of AG_FRAME_BLOCK.
 *
 *   u32 rows (1..AG_BLOCK_ROWS), u32 columns, then a column each:
 *     u8 has_nulls, 3 zero bytes, u32 value bytes
 *     null bitmap of (rows+7)/8 bytes when has_nulls (bit set = NULL)
 *     fixed width: rows × width bytes; TEXT: rows+1 u32 offsets, then the bytes
 *
 * Writer and reader know the schema from the JOB frame. Nothing is aligned.
 */
#ifndef AG_BLOCK_H
#define AG_BLOCK_H

#include "engine/data/schema.h"
#include "wire/frame.h"

#define AG_BLOCK_ROWS 16384
#define AG_BLOCK_BYTES (2u << 20) /* the builder flushes when a block reaches this many bytes */

typedef struct AgBlockBuilder AgBlockBuilder;

/* A builder for a schema (kept by reference). */
AgStatus ag_block_builder_create(AgMem *mem, const AgSchema *schema, AgBlockBuilder **builder,
								 AgError *err);
void ag_block_builder_free(AgBlockBuilder *builder);
/* Adds one row: values[n_columns]. TEXT longer than AG_TEXT_MAX must have been clipped. AG_ERR_MEMORY possible. */
AgStatus ag_block_builder_add(AgBlockBuilder *builder, const AgValue *values, AgError *err);
/* True when the block should be sent before another row is added. */
bool ag_block_builder_full(const AgBlockBuilder *builder);
uint32_t ag_block_builder_rows(const AgBlockBuilder *builder);
/* Writes the block's payload (none when there are no rows) and empties the builder. */
AgStatus ag_block_builder_take(AgBlockBuilder *builder, AgWriter *payload, AgError *err);

/* A checked view into a payload, as ag_table_append takes it. The arrays belong to the view's arena. */
typedef struct AgBlockView
{
	uint32_t n_rows;
	const void **values;
	const uint8_t **nulls;
	const char **texts;
} AgBlockView;

/* Checks every length and offset; AG_ERR_PROTOCOL. view's arrays have room for schema->n_columns (the caller's). */
AgStatus ag_block_read(const void *payload, size_t n_bytes, const AgSchema *schema,
					   AgBlockView *view, AgError *err);

#endif
