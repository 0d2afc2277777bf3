/*
 * label_rare.c - rows of classes that have too few of them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "engine/data/bins_private.h"
#include "engine/data/label.h"
#include "engine/data/label_private.h"

/* The labels' values in order, NULLs left out. keys[2 * n]; gives where they are. */
static const uint64_t *
sorted_keys(const AgTable *table, const AgTableColumn *column, uint64_t *keys, int64_t *n)
{
	*n = 0;
	for (int64_t row = 0; row < table->n_rows; row++)
		if (!ag_column_is_null(column, row))
			keys[(*n)++] = ag_label_key(column, row);
	return ag_keys_sort(keys, keys + *n, *n);
}

/* Will they be taken for more than two classes? */
static bool
is_multiclass(const AgTableColumn *column, AgProblem asked, const uint64_t *sorted, int64_t n)
{
	int64_t n_distinct = 0;
	bool is_integral = true;

	if (asked != AG_PROBLEM_AUTO)
		return asked == AG_PROBLEM_MULTICLASS;
	for (int64_t i = 0; i < n; i++)
	{
		if (i > 0 && sorted[i] == sorted[i - 1])
			continue;
		n_distinct++;
		if (ag_label_is_real(column->type))
		{
			double value = ag_order_value(sorted[i]);

			is_integral = is_integral && value == floor(value);
		}
	}
	return n_distinct > 2 &&
		   (column->type == AG_TYPE_TEXT || (n_distinct <= AG_LABEL_FEW_VALUES && is_integral));
}

/* The rare values, moved to the front of keys in order. */
static int64_t
rare_keys(const uint64_t *sorted, int64_t n, int64_t threshold, uint64_t *keys, int64_t *n_classes)
{
	int64_t n_rare = 0;

	*n_classes = 0;
	for (int64_t at = 0, end; at < n; at = end)
	{
		uint64_t key = sorted[at];

		for (end = at + 1; end < n && sorted[end] == key; end++)
			;
		(*n_classes)++;
		if (end - at < threshold)
			keys[n_rare++] = key;
	}
	return n_rare;
}

static bool
holds(const uint64_t *keys, int64_t n, uint64_t key)
{
	int64_t low = 0, high = n;

	while (low < high)
	{
		int64_t middle = (low + high) / 2;

		if (keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && keys[low] == key;
}

static AgStatus
make_null(const AgContext *ctx, const AgTable *table, AgTableColumn *column, int64_t row)
{
	size_t width = ag_type_width(column->type);

	column->n_nulls++;
	if (column->type == AG_TYPE_TEXT)
	{
		((uint32_t *) column->values)[row] = AG_NO_CODE;
		return AG_OK;
	}
	if (column->nulls == NULL)
		AG_TRY(ag_get_zeroed(ctx, (size_t) (table->capacity + 7) / 8, 1, &column->nulls));
	column->nulls[row >> 3] |= (uint8_t) (1u << (row & 7));
	memset((char *) column->values + (size_t) row * width, 0, width);
	return AG_OK;
}

AgStatus
ag_label_leave_rare(const AgContext *ctx, AgTable *table, int label_column, AgProblem asked,
					int64_t threshold, int64_t *n_left_out)
{
	AgTableColumn *column = &table->columns[label_column];
	uint64_t *keys = NULL;
	const uint64_t *sorted;
	int64_t n, n_rare, n_classes;
	AgStatus status;

	*n_left_out = 0;
	AG_GO(ag_get(ctx, (size_t) table->n_rows, 2 * sizeof *keys, &keys));
	sorted = sorted_keys(table, column, keys, &n);
	if (!is_multiclass(column, asked, sorted, n))
	{
		ag_log(ctx, AG_LOG_NORMAL,
			   "\"label_count_threshold\" means nothing here: it is for labels of more than two "
			   "classes");
		goto done;
	}
	/* what is written never overtakes what is read, wherever the sorted ones lie */
	n_rare = rare_keys(sorted, n, threshold, keys, &n_classes);
	if (n_classes - n_rare < 2)
	{
		status = ag_error_set(
			ctx->error, AG_ERR_DATA, "label column \"%s\" has %s with at least %" PRId64 " rows",
			column->name, n_classes == n_rare ? "no class" : "only one class", threshold);
		ag_error_hint(ctx->error, "Lower \"label_count_threshold\".");
		goto done;
	}
	for (int64_t row = 0; row < table->n_rows && n_rare > 0; row++)
		if (!ag_column_is_null(column, row) && holds(keys, n_rare, ag_label_key(column, row)))
		{
			AG_GO(make_null(ctx, table, column, row));
			(*n_left_out)++;
		}
	if (n_rare > 0)
		ag_log(ctx, AG_LOG_NORMAL,
			   "%" PRId64 " of %" PRId64 " classes have fewer than %" PRId64 " rows: their %" PRId64
			   " rows are left out (\"label_count_threshold\")",
			   n_rare, n_classes, threshold, *n_left_out);
done:
	ag_mem_free(ctx->mem, keys);
	return status;
}
