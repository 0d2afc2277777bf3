/*
 * table_finish.c - the end of reading: makes a table independent of the order in which its rows came.
 *
 * A heap scan may begin anywhere and a plan may return any order, so nothing that is learnt may depend on a row's
 * position. Each row gets a 128-bit hash of its values and rows are sorted by it. As a hash is as good as
 * random, the first rows of the table are also a random sample of it, the same one every time.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/threads.h"
#include "engine/data/dictionary.h"
#include "engine/data/table_private.h"

#define ROW_CHUNK 4096

AgStatus
ag_table_too_long(const AgContext *ctx, int64_t n_rows)
{
	ag_error_set(ctx->error, AG_ERR_DATA, "too many rows to fit on: %" PRId64, n_rows);
	ag_error_hint(ctx->error,
				  "At most %" PRId64 " rows are supported; fit on a query that takes a sample.",
				  AG_TABLE_MAX_ROWS);
	return AG_ERR_DATA;
}

/* Which rows stay, and what a level of each dictionary hashes to. */
typedef struct Hashing
{
	const AgTable *table;
	int column;
	const AgHash128 *level_hashes; /* of the column at hand, TEXT */
	AgHash128 *hashes;             /* [n_rows] */
} Hashing;

/* NULL is no value: it turns the state instead of being folded into it. */
static inline AgHash128
fold_null(AgHash128 hash)
{
	hash.hi = ~hash.hi;
	return ag_hash128_fold(hash, UINT64_C(0x4e554c4c));
}

/* Numbers of different types that are equal hash alike, so widening a column's type changes nothing. */
static inline uint64_t
bits_of_value(const AgTableColumn *column, int64_t row)
{
	uint64_t bits;
	double real;

	switch (column->type)
	{
		case AG_TYPE_BOOL:
			return ((const uint8_t *) column->values)[row];
		case AG_TYPE_INT32:
		case AG_TYPE_DATE:
			return (uint64_t) (int64_t) ((const int32_t *) column->values)[row];
		case AG_TYPE_FLOAT32:
			real = ((const float *) column->values)[row];
			memcpy(&bits, &real, 8);
			return bits;
		default:
			return ((const uint64_t *) column->values)[row];
	}
}

static void
hash_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const Hashing *hashing = arg;
	const AgTableColumn *column = &hashing->table->columns[hashing->column];
	AgHash128 *hashes = hashing->hashes;

	(void) thread;
	if (column->type == AG_TYPE_TEXT)
	{
		const uint32_t *codes = column->values;

		for (int64_t row = begin; row < end; row++)
		{
			if (codes[row] == AG_NO_CODE)
				hashes[row] = fold_null(hashes[row]);
			else
			{
				AgHash128 level = hashing->level_hashes[codes[row]];

				hashes[row].hi += level.hi;
				hashes[row] = ag_hash128_fold(hashes[row], level.lo);
			}
		}
	}
	else if (column->nulls == NULL)
	{
		for (int64_t row = begin; row < end; row++)
			hashes[row] = ag_hash128_fold(hashes[row], bits_of_value(column, row));
	}
	else
	{
		for (int64_t row = begin; row < end; row++)
			hashes[row] = ag_column_is_null(column, row)
							  ? fold_null(hashes[row])
							  : ag_hash128_fold(hashes[row], bits_of_value(column, row));
	}
}

static AgStatus
hash_table_rows(const AgContext *ctx, const AgTable *table, AgHash128 *hashes)
{
	Hashing hashing = {table, 0, NULL, hashes};

	for (int c = 0; c < table->n_columns; c++)
	{
		const AgDictionary *dictionary = &table->columns[c].dictionary;
		AgHash128 *level_hashes = NULL;

		AG_TRY(ag_check_cancel(ctx));
		if (table->columns[c].type == AG_TYPE_TEXT)
		{
			AG_TRY(ag_get(ctx, dictionary->n_levels, sizeof(AgHash128), &level_hashes));
			for (uint32_t level = 0; level < dictionary->n_levels; level++)
				level_hashes[level] =
					ag_hash128(dictionary->texts[level], dictionary->n_bytes[level], 0);
		}
		hashing.column = c;
		hashing.level_hashes = level_hashes;
		ag_pool_run(ctx->pool, table->n_rows, ROW_CHUNK, hash_rows, &hashing);
		ag_mem_free(ctx->mem, level_hashes);
	}
	return AG_OK;
}

typedef struct SortRow
{
	uint32_t key; /* the hash's upper 32 bits */
	uint32_t row;
} SortRow;

static bool
hash_before(const AgHash128 *hashes, uint32_t a, uint32_t b)
{
	if (hashes[a].hi != hashes[b].hi)
		return hashes[a].hi < hashes[b].hi;
	return hashes[a].lo < hashes[b].lo;
}

/*
 * Radix sort by the upper 32 bits in three passes, then insertion where those are equal: rows that are
 * equal, which take one step each, and chance meetings, which are few and short.
 */
static void
sort_rows(SortRow *rows, SortRow *spare, int64_t n, const AgHash128 *hashes)
{
	static const int shifts[3] = {0, 11, 22};

	for (int pass = 0; pass < 3; pass++)
	{
		uint32_t starts[2048] = {0};
		uint32_t sum = 0;
		SortRow *swap;

		for (int64_t i = 0; i < n; i++)
			starts[rows[i].key >> shifts[pass] & 2047]++;
		for (int digit = 0; digit < 2048; digit++)
		{
			uint32_t count = starts[digit];

			starts[digit] = sum;
			sum += count;
		}
		for (int64_t i = 0; i < n; i++)
			spare[starts[rows[i].key >> shifts[pass] & 2047]++] = rows[i];
		swap = rows;
		rows = spare;
		spare = swap;
	}
	for (int64_t i = 1; i < n; i++)
	{
		SortRow moving = rows[i];
		int64_t to = i;

		for (; to > 0 && rows[to - 1].key == moving.key &&
			   hash_before(hashes, moving.row, rows[to - 1].row);
			 to--)
			rows[to] = rows[to - 1];
		rows[to] = moving;
	}
	/* Three passes: the result lies in what came as spare. */
}

/* The rows that stay, in hash order: order[n_kept]. */
static AgStatus
find_order(const AgContext *ctx, const AgTable *table, const AgTableColumn *label, uint32_t **order,
		   int64_t *n_kept)
{
	AgStatus status;
	AgHash128 *hashes = NULL;
	SortRow *rows = NULL;
	size_t n_rows = (size_t) table->n_rows;
	int64_t n = 0;

	*order = NULL;
	AG_GO(ag_get_zeroed(ctx, n_rows, sizeof(AgHash128), &hashes));
	AG_GO(hash_table_rows(ctx, table, hashes));
	AG_GO(ag_get(ctx, n_rows, 2 * sizeof(SortRow), &rows));
	for (int64_t row = 0; row < table->n_rows; row++)
	{
		if (label != NULL && ag_column_is_null(label, row))
			continue;
		rows[n].key = (uint32_t) (hashes[row].hi >> 32);
		rows[n].row = (uint32_t) row;
		n++;
	}
	sort_rows(rows, rows + n_rows, n, hashes);
	AG_GO(ag_get(ctx, (size_t) n, sizeof(uint32_t), order));
	for (int64_t i = 0; i < n; i++)
		(*order)[i] = rows[(int64_t) n_rows + i].row;
	*n_kept = n;

done:
	ag_mem_free(ctx->mem, rows);
	ag_mem_free(ctx->mem, hashes);
	return status;
}

/* One column on its way into the new order. */
typedef struct Permuting
{
	const AgTableColumn *from;
	void *to;
	uint8_t *nulls;
	const uint32_t *order;
	const uint32_t *new_codes; /* TEXT */
} Permuting;

#define GATHER(type)                                                                               \
	do                                                                                             \
	{                                                                                              \
		const type *from = permuting->from->values;                                                \
		type *to = permuting->to;                                                                  \
                                                                                                   \
		for (int64_t i = begin; i < end; i++)                                                      \
			to[i] = from[order[i]];                                                                \
	} while (0)

/* Chunks are multiples of 8 rows, so no two threads share a byte of the NULL bits. */
static void
permute_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const Permuting *permuting = arg;
	const uint32_t *order = permuting->order;

	(void) thread;
	if (permuting->new_codes != NULL)
	{
		const uint32_t *from = permuting->from->values;
		uint32_t *to = permuting->to;

		for (int64_t i = begin; i < end; i++)
			to[i] =
				from[order[i]] == AG_NO_CODE ? AG_NO_CODE : permuting->new_codes[from[order[i]]];
		return;
	}
	switch (ag_type_width(permuting->from->type))
	{
		case 1:
			GATHER(uint8_t);
			break;
		case 4:
			GATHER(uint32_t);
			break;
		default:
			GATHER(uint64_t);
			break;
	}
	if (permuting->nulls != NULL)
		for (int64_t i = begin; i < end; i++)
			if (ag_column_is_null(permuting->from, order[i]))
				permuting->nulls[i >> 3] |= (uint8_t) (1u << (i & 7));
}

/* Counts the levels of the rows that stay and renumbers them. *new_codes is the caller's to free. */
static AgStatus
renumber_levels(const AgContext *ctx, AgTableColumn *column, const uint32_t *order, int64_t n_rows,
				uint32_t **new_codes)
{
	AgDictionary *dictionary = &column->dictionary;
	const uint32_t *codes = column->values;

	AG_TRY(ag_get(ctx, dictionary->n_levels, sizeof(uint32_t), new_codes));
	for (uint32_t level = 0; level < dictionary->n_levels; level++)
		dictionary->counts[level] = 0;
	for (int64_t i = 0; i < n_rows; i++)
		if (codes[order[i]] != AG_NO_CODE)
			dictionary->counts[codes[order[i]]]++;
	if (!ag_dictionary_canonicalise(dictionary, ctx->mem, *new_codes))
		return ag_mem_error(ctx->mem, (size_t) dictionary->n_levels * 64, ctx->error);
	return AG_OK;
}

static AgStatus
permute_column(const AgContext *ctx, AgTable *table, AgTableColumn *column, const uint32_t *order,
			   int64_t n_rows)
{
	AgStatus status;
	Permuting permuting = {column, NULL, NULL, order, NULL};
	uint32_t *new_codes = NULL;
	int64_t n_nulls = 0;

	AG_GO(ag_check_cancel(ctx));
	if (column->type == AG_TYPE_TEXT)
	{
		AG_GO(renumber_levels(ctx, column, order, n_rows, &new_codes));
		permuting.new_codes = new_codes;
	}
	AG_GO(ag_get(ctx, (size_t) n_rows, ag_column_width(column->type), &permuting.to));
	for (int64_t i = 0; i < n_rows && column->n_nulls > 0; i++)
		n_nulls += ag_column_is_null(column, order[i]);
	if (n_nulls > 0 && column->type != AG_TYPE_TEXT)
		AG_GO(ag_get_zeroed(ctx, (size_t) (n_rows + 7) / 8, 1, &permuting.nulls));
	ag_pool_run(ctx->pool, n_rows, ROW_CHUNK, permute_rows, &permuting);
	ag_mem_free(table->mem, column->values);
	ag_mem_free(table->mem, column->nulls);
	column->values = permuting.to;
	column->nulls = permuting.nulls;
	column->n_nulls = n_nulls;
	permuting.to = NULL;
	permuting.nulls = NULL;

done:
	ag_mem_free(ctx->mem, permuting.to);
	ag_mem_free(ctx->mem, permuting.nulls);
	ag_mem_free(ctx->mem, new_codes);
	return status;
}

AgStatus
ag_table_finish(const AgContext *ctx, AgTable *table, int64_t *n_left_out)
{
	AgStatus status;
	const AgTableColumn *label = NULL;
	uint32_t *order = NULL;
	int64_t n_kept = 0;

	*n_left_out = 0;
	if (table->finished)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "a table was finished twice");
	for (int c = 0; c < table->n_columns; c++)
		if (table->columns[c].role == AG_ROLE_LABEL)
			label = &table->columns[c];
	AG_GO(find_order(ctx, table, label, &order, &n_kept));
	for (int c = 0; c < table->n_columns; c++)
		AG_GO(permute_column(ctx, table, &table->columns[c], order, n_kept));
	table->n_left_out = table->n_rows - n_kept;
	table->n_rows = n_kept;
	table->capacity = n_kept;
	table->finished = true;
	*n_left_out = table->n_left_out;

done:
	ag_mem_free(ctx->mem, order);
	return status;
}
