/*
 * prep.c - a model's own columns: one row, and as bytes.
 */
#include "engine/model/prep.h"

#include <math.h>
#include <string.h>

#define TAG_HEAD 1u
#define TAG_COLUMNS 2u
#define TAG_VALUES 3u
#define TAG_KEYS 4u
#define TAG_INNER 5u
#define MAX_FEATURES 10000000u

/* The first four fields of AgPrep are the image's head. */
#define HEAD_BYTES (4 * sizeof(uint32_t))

_Static_assert(offsetof(AgPrep, columns) == HEAD_BYTES, "part of the format");
_Static_assert(sizeof(AgPrepColumn) == 40, "part of the format");

/* Can the feature's value be the code of a value? */
static inline bool
is_code(double x, uint32_t n)
{
	return x >= 0.0 && x < (double) n;
}

static double
value_of_level(const AgPrep *prep, const AgPrepColumn *column, double x)
{
	if (x != x)
		return column->missing;
	return is_code(x, column->n) ? prep->values[column->first + (uint64_t) x] : column->other;
}

static double
value_of_pair(const AgPrep *prep, const AgPrepColumn *column, double x, double y)
{
	const uint64_t *keys = prep->keys + column->first;
	uint32_t low = 0, high = column->n;
	uint64_t key;

	if (x != x || y != y)
		return column->missing;
	if (!is_code(x, UINT32_MAX) || !is_code(y, UINT32_MAX))
		return column->other;
	key = (uint64_t) x << 32 | (uint64_t) y;
	while (low < high)
	{
		uint32_t middle = low + (high - low) / 2;

		if (keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < column->n && keys[low] == key ? prep->values[column->first + low] : column->other;
}

static double
value_of_sum(const AgPrep *prep, const AgPrepColumn *column, const double *features)
{
	const double *values = prep->values + column->first;
	double sum = column->other;

	for (uint32_t i = 0; i < column->n; i++)
		if (features[column->a + i] != 0.0)
			sum += features[column->a + i] * values[i];
	return sum;
}

static double
value_of(const AgPrep *prep, const AgPrepColumn *column, const double *features)
{
	switch ((AgPrepKind) column->kind)
	{
		case AG_PREP_LEVEL:
			return value_of_level(prep, column, features[column->a]);
		case AG_PREP_PAIR:
			return value_of_pair(prep, column, features[column->a], features[column->b]);
		case AG_PREP_CENTRED:
			return features[column->b] - value_of_level(prep, column, features[column->a]);
		case AG_PREP_COPY:
			return features[column->a];
		case AG_PREP_SUM:
			return value_of_sum(prep, column, features);
	}
	return (double) NAN;
}

void
ag_prep_row(const AgPrep *prep, const double *features, double *inner)
{
	uint32_t behind = prep->first_hidden + prep->n_hidden, n = prep->first_hidden;

	memcpy(inner, features, n * sizeof *inner);
	memcpy(inner + n, features + behind, (prep->n_in - behind) * sizeof *inner);
	n += prep->n_in - behind;
	for (uint32_t c = 0; c < prep->n_columns; c++)
		inner[n + c] = value_of(prep, &prep->columns[c], features);
}

/* --- bytes */

AgStatus
ag_prep_write(const AgContext *ctx, const AgPrep *prep, const void *inner, size_t n_inner,
			  AgWriter *writer)
{
	AgImageWriter image;

	ag_image_begin(&image, writer, AG_IMAGE_PREP);
	ag_image_section(&image, TAG_HEAD, HEAD_BYTES, prep, 1);
	ag_image_section(&image, TAG_COLUMNS, sizeof *prep->columns, prep->columns, prep->n_columns);
	ag_image_section(&image, TAG_VALUES, sizeof *prep->values, prep->values, prep->n_values);
	ag_image_section(&image, TAG_KEYS, sizeof *prep->keys, prep->keys, prep->n_values);
	ag_image_section(&image, TAG_INNER, 1, inner, n_inner);
	return ag_image_end(ctx, &image);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

static bool
column_ok(const AgPrep *prep, const AgPrepColumn *column)
{
	if (column->a >= prep->n_in || column->b >= prep->n_in)
		return false;
	if (column->first > prep->n_values || column->n > prep->n_values - column->first)
		return false;
	switch (column->kind)
	{
		case AG_PREP_LEVEL:
		case AG_PREP_PAIR:
		case AG_PREP_CENTRED:
			return true;
		case AG_PREP_COPY:
			return column->n == 0;
		case AG_PREP_SUM:
			return column->n <= prep->n_in - column->a;
	}
	return false;
}

static AgStatus
check(const AgContext *ctx, const AgPrep *prep)
{
	if (prep->n_in == 0 || prep->n_in > MAX_FEATURES || prep->n_columns > MAX_FEATURES ||
		prep->first_hidden > prep->n_in || prep->n_hidden > prep->n_in - prep->first_hidden ||
		ag_prep_n_inner(prep) == 0)
		return corrupt(ctx, "its counts of features make no sense");
	for (uint32_t c = 0; c < prep->n_columns; c++)
		if (!column_ok(prep, &prep->columns[c]))
			return corrupt(ctx, "a column of its own makes no sense");
	return AG_OK;
}

static AgStatus
read_all(const AgContext *ctx, const AgImage *image, AgPrep *prep)
{
	const void *items;
	uint64_t n;

	AG_TRY(ag_image_find(ctx, image, TAG_HEAD, HEAD_BYTES, &items, &n));
	if (n != 1)
		return corrupt(ctx, "it has no head, or several");
	memcpy(prep, items, HEAD_BYTES);
	AG_TRY(ag_image_find(ctx, image, TAG_COLUMNS, sizeof *prep->columns, &items, &n));
	if (n != prep->n_columns)
		return corrupt(ctx, "its count of columns is wrong");
	prep->columns = items;
	AG_TRY(ag_image_find(ctx, image, TAG_VALUES, sizeof *prep->values, &items, &prep->n_values));
	prep->values = items;
	AG_TRY(ag_image_find(ctx, image, TAG_KEYS, sizeof *prep->keys, &items, &n));
	if (n != prep->n_values)
		return corrupt(ctx, "its keys and values differ in number");
	prep->keys = items;
	AG_TRY(check(ctx, prep));
	AG_TRY(ag_image_find(ctx, image, TAG_INNER, 1, &items, &n));
	/* never one in another: reading would not end */
	if (ag_image_kind(items, (size_t) n) == AG_IMAGE_PREP)
		return corrupt(ctx, "a model's own columns are nested");
	AG_TRY(ag_model_read(ctx, items, (size_t) n, &prep->inner));
	if (ag_model_n_features(&prep->inner) != ag_prep_n_inner(prep))
		return corrupt(ctx, "its own columns don't fit the model behind them");
	return AG_OK;
}

AgStatus
ag_prep_read(const AgContext *ctx, const void *data, size_t size, AgPrep **prep)
{
	AgArena arena;
	AgImage image;
	AgPrep *made;
	AgStatus status;

	*prep = NULL;
	AG_TRY(ag_image_open(ctx, data, size, AG_IMAGE_PREP, &image));
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof *made, ctx->error);
	}
	made->arena = arena;
	status = read_all(ctx, &image, made);
	if (status != AG_OK)
		ag_prep_free(made);
	else
		*prep = made;
	return status;
}

void
ag_prep_free(AgPrep *prep)
{
	AgArena arena;

	if (prep == NULL)
		return;
	ag_model_free(&prep->inner);
	arena = prep->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}
