/*
 * rows.h - rows for the tests of the data room: written as values, appended in any order and block size.
 */
#ifndef AG_TEST_ROWS_H
#define AG_TEST_ROWS_H

#include <stdbool.h>

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/data/label.h"
#include "engine/data/pipeline.h"
#include "engine/data/table.h"
#include "unit/unit.h"

/* A context with memory of its own, whose lines of log are kept. */
typedef struct Host
{
	AgMem mem;
	AgError error;
	AgPool *pool;
	AgContext ctx;
	_Atomic bool cancel;
	char log[16384];
} Host;

static inline void
host_log(void *arg, AgLogLevel level, const char *text, const char *hint)
{
	Host *host = arg;
	size_t used = strlen(host->log);

	(void) level;
	snprintf(host->log + used, sizeof host->log - used, "%s%s%s\n", text, hint ? " | " : "",
			 hint ? hint : "");
}

static inline void
host_open(Host *host, int n_threads)
{
	memset(host, 0, sizeof *host);
	ag_mem_init(&host->mem, INT64_MAX);
	ag_error_init(&host->error);
	if (n_threads > 1)
		AG_REQUIRE(ag_pool_create(&host->mem, n_threads, &host->pool, &host->error) == AG_OK);
	host->ctx.mem = &host->mem;
	host->ctx.pool = host->pool;
	host->ctx.cancel = &host->cancel;
	host->ctx.deadline_ns = INT64_MAX;
	host->ctx.log = host_log;
	host->ctx.host = host;
	host->ctx.error = &host->error;
}

/* Nothing may be left behind. */
static inline void
host_close(Host *host)
{
	ag_pool_free(host->pool);
	AG_CHECK_EQ(host->mem.used_bytes, 0);
}

/* Lets the next call start without a fault or lines of its own. */
static inline void
host_reset(Host *host)
{
	ag_error_init(&host->error);
	host->log[0] = '\0';
}

#define ROWS_MAX_COLUMNS 16
#define ROWS_BLOCK 700

typedef struct Rows
{
	AgColumn columns[ROWS_MAX_COLUMNS];
	AgSchema schema;
	int64_t n_rows;
	AgValue *values; /* [n_rows][n_columns] */
} Rows;

static inline void
rows_open(Rows *rows, int64_t n_rows)
{
	memset(rows, 0, sizeof *rows);
	rows->schema.columns = rows->columns;
	rows->n_rows = n_rows;
	rows->values = calloc((size_t) n_rows * ROWS_MAX_COLUMNS + 1, sizeof(AgValue));
	AG_REQUIRE(rows->values != NULL);
}

static inline int
rows_column(Rows *rows, const char *name, AgType type, AgRole role)
{
	AgColumn column = {name, ag_type_name(type), type, role};

	rows->columns[rows->schema.n_columns] = column;
	return rows->schema.n_columns++;
}

static inline AgValue *
rows_at(const Rows *rows, int64_t row, int column)
{
	return &rows->values[row * ROWS_MAX_COLUMNS + column];
}

static inline void
rows_close(Rows *rows)
{
	free(rows->values);
}

static inline AgValue
value_null(void)
{
	AgValue value = {.is_null = true};

	return value;
}

static inline AgValue
value_text(const char *text)
{
	AgValue value = {.is_null = false};

	value.v.s.text = text;
	value.v.s.n_bytes = (uint32_t) strlen(text);
	return value;
}

static inline AgValue
value_f64(double number)
{
	AgValue value = {.is_null = false};

	value.v.f64 = number;
	return value;
}

static inline AgValue
value_i64(int64_t number)
{
	AgValue value = {.is_null = false};

	value.v.i64 = number;
	return value;
}

static inline AgValue
value_i32(int32_t number)
{
	AgValue value = {.is_null = false};

	value.v.i32 = number;
	return value;
}

static inline AgValue
value_bool(bool truth)
{
	AgValue value = {.is_null = false};

	value.v.b = truth;
	return value;
}

static inline const void *
value_bytes(const AgValue *value, AgType type)
{
	switch (type)
	{
		case AG_TYPE_BOOL:
			return &value->v.b;
		case AG_TYPE_INT32:
		case AG_TYPE_DATE:
			return &value->v.i32;
		case AG_TYPE_FLOAT32:
			return &value->v.f32;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			return &value->v.f64;
		default:
			return &value->v.i64;
	}
}

/*
 * Appends rows order[begin..end) as one block; every buffer is exactly as long as it must be and unaligned by one
 * byte, so that reading beyond or assuming alignment shows.
 */
static inline AgStatus
rows_append_block(const Rows *rows, const int64_t *order, int64_t begin, int64_t end, Host *host,
				  AgTable *table)
{
	int n_columns = rows->schema.n_columns;
	size_t n = (size_t) (end - begin);
	const void *values[ROWS_MAX_COLUMNS] = {NULL};
	const uint8_t *nulls[ROWS_MAX_COLUMNS] = {NULL};
	const char *texts[ROWS_MAX_COLUMNS] = {NULL};
	AgStatus status;

	for (int c = 0; c < n_columns; c++)
	{
		AgType type = rows->columns[c].type;
		size_t width = type == AG_TYPE_TEXT ? 4 : ag_type_width(type);
		char *block = malloc(1 + (n + 1) * width);
		uint8_t *bits = calloc((n + 7) / 8, 1);
		char *bytes = NULL;
		uint32_t used = 0;
		bool any = false;

		for (size_t i = 0; i < n; i++)
		{
			const AgValue *value = rows_at(rows, order[begin + (int64_t) i], c);

			if (value->is_null)
			{
				bits[i / 8] |= (uint8_t) (1 << i % 8);
				any = true;
			}
			if (type != AG_TYPE_TEXT)
			{
				/* What a NULL slot holds must not matter. */
				memcpy(block + 1 + i * width, value_bytes(value, type), width);
				if (value->is_null)
					memset(block + 1 + i * width, (int) (i & 1), width);
				continue;
			}
			memcpy(block + 1 + 4 * i, &used, 4);
			if (!value->is_null)
			{
				bytes = realloc(bytes, used + value->v.s.n_bytes + 1);
				memcpy(bytes + used, value->v.s.text, value->v.s.n_bytes);
				used += value->v.s.n_bytes;
			}
		}
		if (type == AG_TYPE_TEXT)
			memcpy(block + 1 + 4 * n, &used, 4);
		/* Bits behind the last row are nobody's. */
		if (any && n % 8 != 0)
			bits[n / 8] |= (uint8_t) (0xff << n % 8);
		values[c] = block + 1;
		nulls[c] = bits;
		texts[c] = bytes;
		if (!any)
		{
			free(bits);
			nulls[c] = NULL;
		}
	}
	status = ag_table_append(&host->ctx, table, (int64_t) n, values, nulls, texts);
	for (int c = 0; c < n_columns; c++)
	{
		free((char *) (uintptr_t) values[c] - 1);
		free((uint8_t *) (uintptr_t) nulls[c]);
		free((char *) (uintptr_t) texts[c]);
	}
	return status;
}

/* A table of the rows, shuffled by `shuffle` (0: as they are), in blocks of `block` rows; not finished. */
static inline AgStatus
rows_append(const Rows *rows, uint64_t shuffle, int64_t block, Host *host, AgTable **table)
{
	int64_t *order = malloc(((size_t) rows->n_rows + 1) * sizeof *order);
	AgStatus status = ag_table_create(&host->ctx, &rows->schema, table);

	for (int64_t i = 0; i < rows->n_rows; i++)
		order[i] = i;
	for (int64_t i = rows->n_rows - 1; shuffle != 0 && i > 0; i--)
	{
		int64_t j = ag_random_below(shuffle, (uint64_t) i, (uint32_t) (i + 1));
		int64_t swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
	for (int64_t begin = 0; status == AG_OK && begin < rows->n_rows; begin += block)
		status = rows_append_block(rows, order, begin,
								   begin + block < rows->n_rows ? begin + block : rows->n_rows,
								   host, *table);
	free(order);
	return status;
}

static inline AgStatus
rows_table(const Rows *rows, uint64_t shuffle, int64_t block, Host *host, AgTable **table,
		   int64_t *n_left_out)
{
	AgStatus status = rows_append(rows, shuffle, block, host, table);

	return status != AG_OK ? status : ag_table_finish(&host->ctx, *table, n_left_out);
}

/*
 * Rows of every type with NULLs, equal rows, rare and common texts, both zeros, NaN and infinities; the label
 * is column 0.
 */
static inline void
rows_make_mixed(Rows *rows, int64_t n_rows)
{
	static const char *const towns[] = {"Köln", "", "köln", "Ulm", "Bonn"};
	static char names[4096][16];

	rows_open(rows, n_rows);
	rows_column(rows, "label", AG_TYPE_TEXT, AG_ROLE_LABEL);
	rows_column(rows, "b", AG_TYPE_BOOL, AG_ROLE_FEATURE);
	rows_column(rows, "i4", AG_TYPE_INT32, AG_ROLE_FEATURE);
	rows_column(rows, "i8", AG_TYPE_INT64, AG_ROLE_FEATURE);
	rows_column(rows, "f4", AG_TYPE_FLOAT32, AG_ROLE_FEATURE);
	rows_column(rows, "f8", AG_TYPE_FLOAT64, AG_ROLE_FEATURE);
	rows_column(rows, "d", AG_TYPE_DATE, AG_ROLE_FEATURE);
	rows_column(rows, "ts", AG_TYPE_TIMESTAMP, AG_ROLE_FEATURE);
	rows_column(rows, "t", AG_TYPE_TIME, AG_ROLE_FEATURE);
	rows_column(rows, "iv", AG_TYPE_INTERVAL, AG_ROLE_FEATURE);
	rows_column(rows, "town", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	rows_column(rows, "tag", AG_TYPE_TEXT, AG_ROLE_FEATURE);
	for (int64_t r = 0; r < n_rows; r++)
	{
		/* Every fifth row repeats the one before. */
		uint64_t key = (uint64_t) (r % 5 == 4 ? r - 1 : r);
		uint32_t tag = ag_random_below(11, key, ag_random_below(12, key, 2) ? 4 : 4096);

		*rows_at(rows, r, 0) = value_text(ag_random_below(1, key, 3) ? "no" : "yes");
		*rows_at(rows, r, 1) = value_bool(ag_random_below(2, key, 2));
		*rows_at(rows, r, 2) = value_i32((int32_t) ag_random_below(3, key, 50) - 20);
		*rows_at(rows, r, 3) = value_i64(INT64_C(9007199254740993) + ag_random_below(4, key, 1000));
		rows_at(rows, r, 4)->v.f32 = (float) ag_random_unit(5, key);
		*rows_at(rows, r, 5) = value_f64(ag_random_unit(6, key) * 1e200 - 5e199);
		*rows_at(rows, r, 6) = value_i32((int32_t) ag_random_below(7, key, 4000));
		*rows_at(rows, r, 7) = value_i64((int64_t) (ag_random_unit(8, key) * 3e14));
		*rows_at(rows, r, 8) = value_i64((int64_t) (ag_random_unit(9, key) * 8.64e10));
		*rows_at(rows, r, 9) = value_f64(ag_random_below(10, key, 5) * 3600.0);
		*rows_at(rows, r, 10) = value_text(towns[ag_random_below(13, key, 5)]);
		snprintf(names[tag], sizeof names[tag], "tag %u", tag);
		*rows_at(rows, r, 11) = value_text(names[tag]);
		switch (ag_random_below(14, key, 40))
		{
			case 0:
				rows_at(rows, r, 5)->v.f64 = r % 2 ? 0.0 : -0.0;
				break;
			case 1:
				rows_at(rows, r, 5)->v.f64 = r % 2 ? (double) NAN : -(double) NAN;
				break;
			case 2:
				rows_at(rows, r, 5)->v.f64 = (double) INFINITY;
				rows_at(rows, r, 6)->v.i32 = INT32_MAX;
				rows_at(rows, r, 7)->v.i64 = INT64_MIN;
				break;
			default:
				break;
		}
		for (int c = 0; c < rows->schema.n_columns; c++)
			if (ag_random_below(100 + (uint64_t) c, key, 15) == 0)
				rows_at(rows, r, c)->is_null = true;
	}
}

#endif
