/*
 * table_private.h - what the two halves of a table's making share (private to the data room).
 */
#ifndef AG_TABLE_PRIVATE_H
#define AG_TABLE_PRIVATE_H

#include "engine/data/table.h"

/* Row numbers are 32 bits wide in all that follows, and a few values are kept for marks. */
#define AG_TABLE_MAX_ROWS ((INT64_C(1) << 31) - 64)

typedef struct AgTableOwner
{
	AgTable table; /* first: an AgTable pointer is a pointer to its owner */
	AgArena arena; /* names */
} AgTableOwner;

/* Bytes of a row in a column's values: the type's width, or a code's. */
static inline size_t
ag_column_width(AgType type)
{
	return type == AG_TYPE_TEXT ? sizeof(uint32_t) : ag_type_width(type);
}

AgStatus ag_table_too_long(const AgContext *ctx, int64_t n_rows);

#endif
