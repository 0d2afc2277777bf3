/*
 * table.c - the training rows, column by column: appending.
 */
#include "engine/data/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/dictionary.h"
#include "engine/data/table_private.h"

AgStatus
ag_table_create(const AgContext *ctx, const AgSchema *schema, AgTable **table)
{
	AgTableOwner *owner;
	AgTable *t;

	*table = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof(AgTableOwner), &owner));
	t = &owner->table;
	t->mem = ctx->mem;
	ag_arena_init(&owner->arena, ctx->mem);
	if (ag_get_zeroed(ctx, (size_t) schema->n_columns, sizeof(AgTableColumn), &t->columns) != AG_OK)
		goto failed;
	t->n_columns = schema->n_columns;
	for (int c = 0; c < schema->n_columns; c++)
	{
		const AgColumn *from = &schema->columns[c];
		AgTableColumn *to = &t->columns[c];

		to->type = from->type;
		to->role = from->role;
		to->name = ag_arena_strndup(&owner->arena, from->name, strlen(from->name));
		to->sql_type = ag_arena_strndup(&owner->arena, from->sql_type, strlen(from->sql_type));
		if (to->name == NULL || to->sql_type == NULL ||
			(from->type == AG_TYPE_TEXT && !ag_dictionary_init(&to->dictionary, ctx->mem)))
		{
			ag_mem_error(ctx->mem, 1024, ctx->error);
			goto failed;
		}
	}
	*table = t;
	return AG_OK;

failed:
	ag_table_free(t);
	return AG_ERR_MEMORY;
}

void
ag_table_drop_column(AgTable *table, int column)
{
	AgTableColumn *c = &table->columns[column];

	ag_mem_free(table->mem, c->values);
	ag_mem_free(table->mem, c->nulls);
	c->values = NULL;
	c->nulls = NULL;
	ag_dictionary_free(&c->dictionary, table->mem);
}

void
ag_table_free(AgTable *table)
{
	AgTableOwner *owner = (AgTableOwner *) table;

	if (table == NULL)
		return;
	for (int c = 0; c < table->n_columns; c++)
		ag_table_drop_column(table, c);
	ag_mem_free(table->mem, table->columns);
	ag_arena_free(&owner->arena);
	ag_mem_free(table->mem, owner);
}

/* One block on its way into the table: what each column's task needs. */
typedef struct Append
{
	const AgContext *ctx;
	AgTable *table;
	int64_t n_rows;
	int64_t capacity; /* to grow to before anything is copied */
	const void *const *values;
	const uint8_t *const *nulls;
	const char *const *texts;
	_Atomic bool out_of_memory;
	_Atomic size_t wanted_bytes;
} Append;

static bool
grow_column(AgTable *table, AgTableColumn *column, int64_t capacity)
{
	void *grown;

	grown = ag_mem_realloc(table->mem, column->values, (size_t) capacity,
						   ag_column_width(column->type));
	if (grown == NULL)
		return false;
	column->values = grown;
	if (column->nulls != NULL)
	{
		size_t old_bytes = (size_t) (table->capacity + 7) / 8;
		size_t new_bytes = (size_t) (capacity + 7) / 8;

		grown = ag_mem_realloc(table->mem, column->nulls, new_bytes, 1);
		if (grown == NULL)
			return false;
		column->nulls = grown;
		memset(column->nulls + old_bytes, 0, new_bytes - old_bytes);
	}
	return true;
}

/* Bit i of a bitmap that comes from outside: nothing beyond n_rows is looked at. */
static inline bool
bit_is_set(const uint8_t *bits, int64_t i)
{
	return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/* Copies the NULL bits behind row `first` and empties the values below them. False: no memory. */
static bool
append_nulls(AgTable *table, AgTableColumn *column, const uint8_t *bits, int64_t n_rows,
			 int64_t capacity)
{
	int64_t first = table->n_rows;
	size_t width = ag_type_width(column->type);

	for (int64_t i = 0; i < n_rows; i++)
	{
		int64_t row = first + i;

		if ((i & 7) == 0 && bits[i >> 3] == 0)
		{
			i += 7;
			continue;
		}
		if (!bit_is_set(bits, i))
			continue;
		if (column->nulls == NULL)
		{
			column->nulls = ag_mem_zalloc(table->mem, (size_t) (capacity + 7) / 8, 1);
			if (column->nulls == NULL)
				return false;
		}
		column->nulls[row >> 3] |= (uint8_t) (1u << (row & 7));
		memset((char *) column->values + (size_t) row * width, 0, width);
		column->n_nulls++;
	}
	return true;
}

static bool
append_texts(AgTable *table, AgTableColumn *column, const void *offsets, const uint8_t *bits,
			 const char *bytes, int64_t n_rows)
{
	uint32_t *codes = (uint32_t *) column->values + table->n_rows;
	const char *at = offsets;
	uint32_t begin, end;

	memcpy(&begin, at, 4);
	for (int64_t i = 0; i < n_rows; i++, begin = end)
	{
		memcpy(&end, at + 4 * (i + 1), 4);
		if (bits != NULL && bit_is_set(bits, i))
		{
			codes[i] = AG_NO_CODE;
			column->n_nulls++;
		}
		else if (!ag_dictionary_add(&column->dictionary, table->mem, bytes + begin, end - begin,
									&codes[i]))
			return false;
	}
	return true;
}

/*
 * Equal values must be equal bytes, or the order in which equal rows arrived would show: one zero, one
 * NaN, one true.
 */
static void
canonicalise_values(AgTableColumn *column, int64_t first, int64_t n_rows)
{
	switch (column->type)
	{
		case AG_TYPE_BOOL:
		{
			uint8_t *v = (uint8_t *) column->values + first;

			for (int64_t i = 0; i < n_rows; i++)
				v[i] = v[i] != 0;
			break;
		}
		case AG_TYPE_FLOAT32:
		{
			float *v = (float *) column->values + first;

			for (int64_t i = 0; i < n_rows; i++)
				v[i] = v[i] != v[i] ? (float) NAN : v[i] + 0.0f;
			break;
		}
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
		{
			double *v = (double *) column->values + first;

			for (int64_t i = 0; i < n_rows; i++)
				v[i] = v[i] != v[i] ? (double) NAN : v[i] + 0.0;
			break;
		}
		default:
			break;
	}
}

static void
append_column(void *arg, int64_t begin, int64_t end, int thread)
{
	Append *append = arg;
	AgTable *table = append->table;

	(void) thread;
	for (int64_t c = begin; c < end; c++)
	{
		AgTableColumn *column = &table->columns[c];
		size_t width = ag_type_width(column->type);
		bool ok =
			append->capacity == table->capacity || grow_column(table, column, append->capacity);

		if (ok && column->type == AG_TYPE_TEXT)
			ok = append_texts(table, column, append->values[c], append->nulls[c], append->texts[c],
							  append->n_rows);
		else if (ok)
		{
			memcpy((char *) column->values + (size_t) table->n_rows * width, append->values[c],
				   (size_t) append->n_rows * width);
			canonicalise_values(column, table->n_rows, append->n_rows);
			if (append->nulls[c] != NULL)
				ok =
					append_nulls(table, column, append->nulls[c], append->n_rows, append->capacity);
		}
		if (!ok)
		{
			atomic_store(&append->wanted_bytes,
						 (size_t) append->capacity * ag_column_width(column->type));
			atomic_store(&append->out_of_memory, true);
		}
	}
}

AgStatus
ag_table_append(const AgContext *ctx, AgTable *table, int64_t n_rows, const void *const *values,
				const uint8_t *const *nulls, const char *const *texts)
{
	Append append = {0};

	if (table->finished)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "rows were appended to a finished table");
	if (n_rows <= 0)
		return AG_OK;
	if (n_rows > AG_TABLE_MAX_ROWS - table->n_rows)
		return ag_table_too_long(ctx, table->n_rows + n_rows);
	append.ctx = ctx;
	append.table = table;
	append.n_rows = n_rows;
	append.values = values;
	append.nulls = nulls;
	append.texts = texts;
	append.capacity = table->capacity;
	if (table->n_rows + n_rows > table->capacity)
	{
		append.capacity = table->capacity + table->capacity / 2;
		if (append.capacity < table->n_rows + n_rows)
			append.capacity = table->n_rows + n_rows;
	}
	ag_pool_run(ctx->pool, table->n_columns, 1, append_column, &append);
	if (atomic_load(&append.out_of_memory))
	{
		AgStatus status = ag_mem_error(ctx->mem, atomic_load(&append.wanted_bytes), NULL);

		ag_error_set(ctx->error, status, "out of memory after reading %" PRId64 " rows",
					 table->n_rows);
		if (ctx->mem->limit_bytes != INT64_MAX)
			ag_error_detail(ctx->error,
							"The rows read take %" PRId64 " MB, and the memory limit is %" PRId64
							" MB.",
							atomic_load(&ctx->mem->used_bytes) >> 20, ctx->mem->limit_bytes >> 20);
		ag_error_hint(
			ctx->error,
			"Raise \"memory_limit\" or the setting \"ag_pg.memory_limit\", or fit on a query "
			"with fewer rows or columns.");
		return status;
	}
	table->capacity = append.capacity;
	table->n_rows += n_rows;
	return AG_OK;
}
