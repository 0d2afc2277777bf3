/*
 * table.h - the training rows, column by column, in the trainer's own memory.
 *
 * Rows arrive in blocks in any order. Text columns are dictionary-coded as they
 * arrive; ag_table_finish makes everything independent of the order of arrival:
 * dictionaries are renumbered by (count descending, bytes ascending) and rows are
 * ordered by a 128-bit hash of their values (label included, NULL apart from
 * every value). Equal rows are interchangeable, so ties don't matter.
 */
#ifndef AG_TABLE_H
#define AG_TABLE_H

#include "engine/base/context.h"
#include "engine/data/schema.h"

#define AG_NO_CODE UINT32_MAX /* the code of a NULL in a text column */

/* The distinct texts of one column. Level 0 is the commonest (after ag_table_finish). */
typedef struct AgDictionary
{
	uint32_t n_levels;
	const char **texts;              /* [n_levels], not NUL-terminated */
	uint32_t *n_bytes;               /* [n_levels] */
	int64_t *counts;                 /* [n_levels] rows that hold it */
	struct AgDictionaryIndex *index; /* private: hash table and string pool */
} AgDictionary;

typedef struct AgTableColumn
{
	AgType type;
	AgRole role;
	const char *name;
	const char *sql_type;
	void *
		values; /* [n_rows] of the type's width; NULL slots hold 0; TEXT: uint32_t codes, AG_NO_CODE = NULL */
	uint8_t *
		nulls; /* bit r set = row r is NULL; NULL pointer = the column has none (TEXT: always NULL pointer) */
	int64_t n_nulls;
	AgDictionary dictionary; /* TEXT only */
} AgTableColumn;

typedef struct AgTable
{
	AgMem *mem;
	int64_t n_rows;
	int n_columns;
	AgTableColumn *columns;
	int64_t capacity;
	int64_t n_left_out; /* rows that ag_table_finish took out for their NULL label */
	bool finished;
} AgTable;

/* An empty table of that schema (texts are copied). */
AgStatus ag_table_create(const AgContext *ctx, const AgSchema *schema, AgTable **table);
void ag_table_free(AgTable *table); /* NULL allowed */

/*
 * Appends n_rows rows. For column c: values[c] points to n_rows fixed-width values
 * (unaligned is allowed); nulls[c] to a bitmap of (n_rows+7)/8 bytes, or NULL for
 * none. For TEXT values[c] points to n_rows+1 uint32 offsets (unaligned allowed) and
 * texts[c] to the bytes; the caller has checked that offsets ascend and are in bounds.
 * Fails with AG_ERR_MEMORY (naming rows read and the budget); the table is then only fit to be freed.
 */
AgStatus ag_table_append(const AgContext *ctx, AgTable *table, int64_t n_rows,
						 const void *const *values, const uint8_t *const *nulls,
						 const char *const *texts);

/*
 * Ends the reading: canonical dictionaries, rows in hash order (see above). Rows whose
 * label is NULL are taken out and counted in *n_left_out. At most 2^31 - 64 rows: else AG_ERR_DATA.
 */
AgStatus ag_table_finish(const AgContext *ctx, AgTable *table, int64_t *n_left_out);

/* Gives back one column's memory once it was encoded. */
void ag_table_drop_column(AgTable *table, int column);

static inline bool
ag_column_is_null(const AgTableColumn *column, int64_t row)
{
	if (column->type == AG_TYPE_TEXT)
		return ((const uint32_t *) column->values)[row] == AG_NO_CODE;
	return column->nulls != NULL && (column->nulls[row >> 3] >> (row & 7) & 1) != 0;
}

#endif
