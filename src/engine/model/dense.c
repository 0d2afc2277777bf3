/*
 * dense.c - features as numbers: one value or one row at a time, and the transform as bytes.
 */
#include "engine/model/dense.h"

#include <math.h>
#include <string.h>

#define TAG_HEAD 101u
#define TAG_FEATURES 102u
#define TAG_SLOTS 103u
#define TAG_KNOT_X 104u
#define TAG_KNOT_Z 105u
#define TAG_LEVELS 106u

/* What an image may hold: differences of two of them don't overflow. */
#define MAX_SCALED 1e300

/* The first four fields of AgDense are the image's head. */
#define HEAD_BYTES (4 * sizeof(uint32_t))

_Static_assert(offsetof(AgDense, features) == HEAD_BYTES, "part of the format");
_Static_assert(sizeof(AgDenseFeature) == 72, "part of the format");
_Static_assert(sizeof(AgDenseSlot) == 24, "part of the format");

/* z between the knots around v, which lies within them. */
static double
bend(const AgDense *dense, const AgDenseFeature *feature, double v)
{
	const double *x = dense->knot_x + feature->first_item;
	const double *z = dense->knot_z + feature->first_item;
	uint32_t low = 0, high = feature->n_items - 1;

	if (v <= x[0])
		return z[0];
	if (v >= x[high])
		return z[high];
	while (high - low > 1)
	{
		uint32_t middle = low + (high - low) / 2;

		if (x[middle] <= v)
			low = middle;
		else
			high = middle;
	}
	return z[low] + (v - x[low]) / (x[high] - x[low]) * (z[high] - z[low]);
}

float
ag_dense_number(const AgDense *dense, const AgDenseFeature *feature, double x)
{
	double z;

	if (x != x)
		z = feature->missing;
	else
	{
		double v = x * feature->scale; /* may be infinite: clipped */

		v = v < feature->low ? feature->low : v > feature->high ? feature->high : v;
		if (feature->kind == AG_DENSE_CURVE)
			z = bend(dense, feature, v);
		else
			z = (v - feature->centre) * feature->inverse;
	}
	if (z > AG_DENSE_BOUND)
		return AG_DENSE_BOUND;
	return z < -AG_DENSE_BOUND ? -AG_DENSE_BOUND : (float) z;
}

uint32_t
ag_dense_column(const AgDense *dense, const AgDenseFeature *feature, double x)
{
	const AgDenseSlot *slot = &dense->slots[feature->slot];
	uint32_t column;

	if (x != x)
		column = slot->missing;
	else if (feature->kind != AG_DENSE_CATEGORY)
		column = AG_DENSE_NONE;
	else if (x >= 0.0 && x < (double) feature->n_items)
		column = dense->levels[feature->first_item + (uint64_t) x];
	else
		column = slot->other;
	return column == AG_DENSE_NONE ? dense->n_columns : slot->first + column;
}

void
ag_dense_encode(const AgDense *dense, const double *features, float *numbers, uint32_t *slots)
{
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];

		if (feature->number != AG_DENSE_NONE)
			numbers[feature->number] = ag_dense_number(dense, feature, features[f]);
		if (feature->slot != AG_DENSE_NONE)
			slots[feature->slot] = ag_dense_column(dense, feature, features[f]);
	}
}

void
ag_dense_free(AgDense *dense)
{
	AgArena arena;

	if (dense == NULL)
		return;
	arena = dense->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}

void
ag_dense_write(const AgDense *dense, AgImageWriter *image)
{
	ag_image_section(image, TAG_HEAD, HEAD_BYTES, dense, 1);
	ag_image_section(image, TAG_FEATURES, sizeof *dense->features, dense->features,
					 dense->n_features);
	ag_image_section(image, TAG_SLOTS, sizeof *dense->slots, dense->slots, dense->n_slots);
	ag_image_section(image, TAG_KNOT_X, sizeof *dense->knot_x, dense->knot_x, dense->n_knots);
	ag_image_section(image, TAG_KNOT_Z, sizeof *dense->knot_z, dense->knot_z, dense->n_knots);
	ag_image_section(image, TAG_LEVELS, sizeof *dense->levels, dense->levels, dense->n_levels);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

static bool
scaled_ok(double value)
{
	return fabs(value) <= MAX_SCALED; /* false for NaN */
}

/* Knots of one curve: strictly ascending, finite, and bounded as z is. */
static bool
curve_ok(const AgDense *dense, const AgDenseFeature *feature)
{
	const double *x = dense->knot_x + feature->first_item;
	const double *z = dense->knot_z + feature->first_item;

	for (uint32_t i = 0; i < feature->n_items; i++)
		if (!scaled_ok(x[i]) || !(fabs(z[i]) <= AG_DENSE_BOUND) ||
			(i > 0 && (!(x[i] > x[i - 1]) || !(z[i] >= z[i - 1]))))
			return false;
	return true;
}

/* The numbers of one feature, and the stretch of knots or levels that is its own. */
static AgStatus
check_feature(const AgContext *ctx, const AgDense *dense, const AgDenseFeature *feature)
{
	uint64_t n_items = feature->kind == AG_DENSE_CATEGORY ? dense->n_levels : dense->n_knots;

	if (feature->kind < AG_DENSE_LINE || feature->kind > AG_DENSE_CATEGORY)
		return corrupt(ctx, "a feature is of an unknown kind");
	if (feature->first_item > n_items || feature->n_items > n_items - feature->first_item)
		return corrupt(ctx, "a feature's items lie outside of their section");
	if (feature->kind == AG_DENSE_CATEGORY)
		return AG_OK;
	if (!isfinite(feature->scale) || !scaled_ok(feature->low) || !scaled_ok(feature->high) ||
		!scaled_ok(feature->centre) || !scaled_ok(feature->missing) ||
		!isfinite(feature->inverse) || feature->scale <= 0.0 || feature->low > feature->high)
		return corrupt(ctx, "a feature's scale is no number");
	if (feature->kind == AG_DENSE_CURVE && (feature->n_items < 2 || !curve_ok(dense, feature)))
		return corrupt(ctx, "a feature's curve doesn't ascend");
	return AG_OK;
}

/* A slot belongs to the feature that names it; its columns follow the last one's. */
static AgStatus
check_slot(const AgContext *ctx, const AgDense *dense, uint32_t s, uint64_t first)
{
	const AgDenseSlot *slot = &dense->slots[s];
	const AgDenseFeature *feature;

	if (slot->feature >= dense->n_features || dense->features[slot->feature].slot != s ||
		slot->width == 0 || slot->first != first || slot->zero != 0)
		return corrupt(ctx, "a slot's columns are not where they must be");
	if ((slot->other != AG_DENSE_NONE && slot->other >= slot->width) ||
		(slot->missing != AG_DENSE_NONE && slot->missing >= slot->width))
		return corrupt(ctx, "a slot names a column that it doesn't have");
	feature = &dense->features[slot->feature];
	if (feature->kind == AG_DENSE_CATEGORY)
		for (uint32_t i = 0; i < feature->n_items; i++)
		{
			uint32_t column = dense->levels[feature->first_item + i];

			if (column != AG_DENSE_NONE && column >= slot->width)
				return corrupt(ctx, "a level names a column that its slot doesn't have");
		}
	return AG_OK;
}

/* All that encoding relies on. Numbers and slots are given out in the features' order. */
static AgStatus
check(const AgContext *ctx, const AgDense *dense)
{
	uint32_t n_numbers = 0, n_slots = 0;
	uint64_t n_columns = 0;

	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];

		AG_TRY(check_feature(ctx, dense, feature));
		if (feature->number != (feature->kind == AG_DENSE_CATEGORY ? AG_DENSE_NONE : n_numbers++) ||
			(feature->slot != AG_DENSE_NONE && feature->slot != n_slots++))
			return corrupt(ctx, "features are out of order");
	}
	if (n_numbers != dense->n_numbers || n_slots != dense->n_slots)
		return corrupt(ctx, "its counts of numbers and slots are wrong");
	for (uint32_t s = 0; s < n_slots; s++)
	{
		AG_TRY(check_slot(ctx, dense, s, n_columns));
		n_columns += dense->slots[s].width;
	}
	if (n_columns != dense->n_columns || n_columns > AG_DENSE_MAX_COLUMNS)
		return corrupt(ctx, "its count of columns is wrong");
	return AG_OK;
}

static AgStatus
find_arrays(const AgContext *ctx, const AgImage *image, AgDense *dense)
{
	const void *items;
	uint64_t n;

	AG_TRY(ag_image_find(ctx, image, TAG_HEAD, HEAD_BYTES, &items, &n));
	if (n != 1)
		return corrupt(ctx, "it has no head, or several");
	memcpy(dense, items, HEAD_BYTES);
	AG_TRY(ag_image_find(ctx, image, TAG_FEATURES, sizeof *dense->features, &items, &n));
	dense->features = items;
	if (n != dense->n_features)
		return corrupt(ctx, "its count of features is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_SLOTS, sizeof *dense->slots, &items, &n));
	dense->slots = items;
	if (n != dense->n_slots)
		return corrupt(ctx, "its count of slots is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_KNOT_X, sizeof *dense->knot_x, &items, &dense->n_knots));
	dense->knot_x = items;
	AG_TRY(ag_image_find(ctx, image, TAG_KNOT_Z, sizeof *dense->knot_z, &items, &n));
	dense->knot_z = items;
	if (n != dense->n_knots)
		return corrupt(ctx, "its count of knots is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_LEVELS, sizeof *dense->levels, &items, &dense->n_levels));
	dense->levels = items;
	return check(ctx, dense);
}

AgStatus
ag_dense_read(const AgContext *ctx, const AgImage *image, AgDense **dense)
{
	AgArena arena;
	AgDense *made;
	AgStatus status;

	*dense = NULL;
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof *made, ctx->error);
	}
	made->arena = arena;
	status = find_arrays(ctx, image, made);
	if (status != AG_OK)
		ag_dense_free(made);
	else
		*dense = made;
	return status;
}
