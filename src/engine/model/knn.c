/*
 * knn.c - the KNN family at prediction: its parameters, its image, one row's neighbours and their vote.
 */
#include "engine/model/knn.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/vector.h"

#define TAG_HEAD 1u
#define TAG_PANELS 2u
#define TAG_CODES 3u
#define TAG_TARGETS 4u
#define TAG_LABELS 5u
#define TAG_WEIGHTS 6u
#define TAG_FALLBACK 7u

/* What counts panels and rows can't overflow below this. */
#define MAX_ROWS (1u << 30)

#define OFFSET(field) offsetof(AgKnnParams, field)

const AgParamSpec ag_knn_specs[] = {
	{"n_neighbors", NULL, AG_PARAM_INT, 1, AG_KNN_MAX_NEIGHBORS, 5, NULL,
	 "training rows that vote on a prediction", OFFSET(n_neighbors)},
	{"weights", NULL, AG_PARAM_CHOICE, 0, 1, AG_KNN_UNIFORM, "uniform distance",
	 "uniform: neighbours count the same, distance: by the inverse of their distance",
	 OFFSET(weights)},
	{"max_rows", NULL, AG_PARAM_INT, 1, 1e8, 20000, NULL,
	 "training rows that are kept; of more, a random sample that has n_neighbors of each class",
	 OFFSET(max_rows)},
	{"category_distance", NULL, AG_PARAM_REAL, 0.0, 1e6, 2.0, NULL,
	 "what differing in a category adds to the square of the distance; numbers have a spread of 1",
	 OFFSET(category_distance)},
	{"proc.skew_threshold", NULL, AG_PARAM_REAL, 0.0, INFINITY, 0.99, NULL,
	 "skewness above which a numeric column is mapped to a normal distribution",
	 OFFSET(dense.skew_threshold)},
	{"proc.impute_strategy", NULL, AG_PARAM_CHOICE, 0, 1, AG_DENSE_MEDIAN, "median mean",
	 "what a missing number counts as", OFFSET(dense.impute)},
	{"proc.min_level_count", NULL, AG_PARAM_INT, 1, 1e9, 2, NULL,
	 "training rows that a category needs to be told from other rare ones",
	 OFFSET(dense.min_level_count)},
	{"proc.max_category_levels", NULL, AG_PARAM_INT, 1, 1e6, 10000, NULL,
	 "most categories of one feature that are told apart", OFFSET(dense.max_levels)},
};
const int ag_knn_n_specs = sizeof ag_knn_specs / sizeof ag_knn_specs[0];

/* The first fields of AgKnn are the image's head. */
#define HEAD_BYTES offsetof(AgKnn, panels)

_Static_assert(HEAD_BYTES == 32, "part of the format");

void
ag_knn_free(AgKnn *knn)
{
	AgArena arena;

	if (knn == NULL)
		return;
	ag_dense_free(knn->own_dense);
	arena = knn->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}

uint32_t
ag_knn_n_out(const AgKnn *knn)
{
	return knn->n_classes > 0 ? knn->n_classes : 1;
}

static uint64_t
n_panels(const AgKnn *knn)
{
	return ((uint64_t) knn->n_rows + AG_PANEL - 1) / AG_PANEL;
}

AgStatus
ag_knn_write(const AgContext *ctx, const AgKnn *knn, AgWriter *writer)
{
	bool classes = knn->n_classes > 0;
	AgImageWriter image;

	ag_image_begin(&image, writer, AG_IMAGE_KNN);
	ag_image_section(&image, TAG_HEAD, HEAD_BYTES, knn, 1);
	ag_image_section(&image, TAG_PANELS, sizeof(float), knn->panels,
					 n_panels(knn) * knn->n_numbers * AG_PANEL);
	ag_image_section(&image, TAG_CODES, sizeof(uint32_t), knn->codes,
					 n_panels(knn) * knn->n_slots * AG_PANEL);
	ag_image_section(&image, TAG_TARGETS, sizeof(double), knn->targets, classes ? 0 : knn->n_rows);
	ag_image_section(&image, TAG_LABELS, sizeof(uint32_t), knn->labels, classes ? knn->n_rows : 0);
	ag_image_section(&image, TAG_WEIGHTS, sizeof(float), knn->row_weights,
					 knn->row_weights != NULL ? knn->n_rows : 0);
	ag_image_section(&image, TAG_FALLBACK, sizeof(double), knn->fallback, ag_knn_n_out(knn));
	ag_dense_write(knn->dense, &image);
	return ag_image_end(ctx, &image);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

/* Values, once the lengths are known to be right. */
static AgStatus
check(const AgContext *ctx, const AgKnn *knn)
{
	uint64_t n_cells = n_panels(knn) * knn->n_numbers * AG_PANEL;

	if (knn->n_neighbors < 1 || knn->n_neighbors > knn->n_rows ||
		knn->n_neighbors > AG_KNN_MAX_NEIGHBORS || knn->weights > AG_KNN_DISTANCE ||
		!(knn->category_distance >= 0.0f && knn->category_distance <= 1e6f) || knn->zero != 0)
		return corrupt(ctx, "its parameters are out of their ranges");
	for (uint64_t i = 0; i < n_cells; i++)
		if (!(fabsf(knn->panels[i]) <= AG_DENSE_BOUND))
			return corrupt(ctx, "a row's number is out of its range");
	for (uint32_t i = 0; i < knn->n_rows; i++)
	{
		if (knn->n_classes > 0 ? knn->labels[i] >= knn->n_classes : !isfinite(knn->targets[i]))
			return corrupt(ctx, "a row's label is out of its range");
		if (knn->row_weights != NULL &&
			!(knn->row_weights[i] >= 0.0f && knn->row_weights[i] <= 1.0f))
			return corrupt(ctx, "a row's weight is out of its range");
	}
	for (uint32_t k = 0; k < ag_knn_n_out(knn); k++)
		if (!isfinite(knn->fallback[k]))
			return corrupt(ctx, "its mean is no number");
	return AG_OK;
}

/* A section's items, of which there must be n. */
static AgStatus
find(const AgContext *ctx, const AgImage *image, uint32_t tag, size_t item_size, uint64_t n,
	 const void **items)
{
	uint64_t count;

	AG_TRY(ag_image_find(ctx, image, tag, item_size, items, &count));
	return count == n ? AG_OK : corrupt(ctx, "a section is too long or too short");
}

static AgStatus
find_arrays(const AgContext *ctx, const AgImage *image, AgKnn *knn)
{
	const void *items;
	uint64_t n_weights;

	AG_TRY(find(ctx, image, TAG_HEAD, HEAD_BYTES, 1, &items));
	memcpy(knn, items, HEAD_BYTES);
	AG_TRY(ag_dense_read(ctx, image, &knn->own_dense));
	knn->dense = knn->own_dense;
	if (knn->n_rows > MAX_ROWS)
		return corrupt(ctx, "it has too many rows");
	if (knn->n_numbers != knn->dense->n_numbers || knn->n_slots != knn->dense->n_slots)
		return corrupt(ctx, "its rows and its transform differ in length");
	AG_TRY(find(ctx, image, TAG_PANELS, sizeof(float), n_panels(knn) * knn->n_numbers * AG_PANEL,
				&items));
	knn->panels = items;
	AG_TRY(find(ctx, image, TAG_CODES, sizeof(uint32_t), n_panels(knn) * knn->n_slots * AG_PANEL,
				&items));
	knn->codes = items;
	AG_TRY(find(ctx, image, TAG_TARGETS, sizeof(double), knn->n_classes > 0 ? 0 : knn->n_rows,
				&items));
	knn->targets = items;
	AG_TRY(find(ctx, image, TAG_LABELS, sizeof(uint32_t), knn->n_classes > 0 ? knn->n_rows : 0,
				&items));
	knn->labels = items;
	AG_TRY(ag_image_find(ctx, image, TAG_WEIGHTS, sizeof(float), &items, &n_weights));
	if (n_weights != 0 && n_weights != knn->n_rows)
		return corrupt(ctx, "a section is too long or too short");
	knn->row_weights = n_weights > 0 ? items : NULL;
	AG_TRY(find(ctx, image, TAG_FALLBACK, sizeof(double), ag_knn_n_out(knn), &items));
	knn->fallback = items;
	return ctx->trusts_images ? AG_OK : check(ctx, knn);
}

/* What comparing many rows needs beside the image. Lanes without a row have no norm, as they have no numbers. */
static AgStatus
add_norms(const AgContext *ctx, AgKnn *knn)
{
	size_t n = (size_t) n_panels(knn) * AG_PANEL;
	float *norms = ag_arena_alloc(&knn->arena, n, sizeof *norms);

	if (norms == NULL)
		return ag_mem_error(ctx->mem, n * sizeof *norms, ctx->error);
	for (size_t i = 0; i < n; i++)
	{
		const float *numbers =
			knn->panels + i / AG_PANEL * AG_PANEL * knn->n_numbers + i % AG_PANEL;

		norms[i] = 0.0f;
		for (uint32_t j = 0; j < knn->n_numbers; j++)
			norms[i] += numbers[(size_t) j * AG_PANEL] * numbers[(size_t) j * AG_PANEL];
	}
	knn->norms = norms;
	return AG_OK;
}

AgStatus
ag_knn_read(const AgContext *ctx, const void *image_bytes, size_t size, AgKnn **knn)
{
	AgImage image;
	AgArena arena;
	AgKnn *made;
	AgStatus status;

	*knn = NULL;
	AG_TRY(ag_image_open(ctx, image_bytes, size, AG_IMAGE_KNN, &image));
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof *made, ctx->error);
	}
	made->arena = arena;
	status = find_arrays(ctx, &image, made);
	if (status == AG_OK)
		status = add_norms(ctx, made);
	if (status != AG_OK)
		ag_knn_free(made);
	else
		*knn = made;
	return status;
}

static bool
farther(AgNeighbor a, AgNeighbor b)
{
	return a.squared > b.squared || (a.squared == b.squared && a.row > b.row);
}

/* Lets heap[at] sink to where no child is farther. */
static void
sink(AgNeighbor *heap, uint32_t n, uint32_t at)
{
	AgNeighbor moving = heap[at];

	for (;;)
	{
		uint32_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && farther(heap[child + 1], heap[child]))
			child++;
		if (!farther(heap[child], moving))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moving;
}

uint32_t
ag_knn_offer(AgNeighbor *heap, uint32_t n, uint32_t most, float squared, uint32_t row)
{
	AgNeighbor offered = {squared, row};
	uint32_t at = n;

	if (n == most)
	{
		if (farther(heap[0], offered))
		{
			heap[0] = offered;
			sink(heap, n, 0);
		}
		return n;
	}
	for (; at > 0 && farther(offered, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = offered;
	return n + 1;
}

void
ag_knn_vote(const AgKnn *knn, AgNeighbor *neighbors, uint32_t n, double *out)
{
	uint32_t n_out = ag_knn_n_out(knn), n_exact = 0;
	double total = 0.0;

	for (uint32_t end = n; end-- > 1;) /* nearest first, for sums in a fixed order */
	{
		AgNeighbor last = neighbors[end];

		neighbors[end] = neighbors[0];
		neighbors[0] = last;
		sink(neighbors, end, 0);
	}
	if (knn->weights == AG_KNN_DISTANCE)
		while (n_exact < n && neighbors[n_exact].squared == 0.0f)
			n_exact++;
	if (n_exact > 0)
		n = n_exact;
	for (int pass = 0; pass < 2; pass++) /* shares, so that no sum of targets overflows */
	{
		if (pass == 1)
			memset(out, 0, n_out * sizeof *out);
		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t row = neighbors[i].row;
			double w = knn->row_weights != NULL ? (double) knn->row_weights[row] : 1.0;

			if (knn->weights == AG_KNN_DISTANCE && n_exact == 0)
				w /= sqrt((double) neighbors[i].squared);
			if (pass == 0)
				total += w;
			else if (knn->n_classes > 0)
				out[knn->labels[row]] += w / total;
			else
				out[0] += w / total * knn->targets[row];
		}
		if (!(total > 0.0))
		{
			memcpy(out, knn->fallback, n_out * sizeof *out);
			return;
		}
	}
	if (knn->n_classes == 0) /* shares may add up to a hair over 1 */
		out[0] = fmin(fmax(out[0], -DBL_MAX), DBL_MAX);
}

size_t
ag_knn_scratch_bytes(const AgKnn *knn)
{
	return knn->n_neighbors * sizeof(AgNeighbor) + (size_t) knn->n_numbers * sizeof(float) +
		   (size_t) knn->n_slots * sizeof(uint32_t);
}

void
ag_knn_run(const AgKnn *knn, const double *features, void *scratch, double *out)
{
	const AgVectorOps *ops = ag_vector_ops();
	AgNeighbor *heap = scratch;
	float *numbers = (float *) (heap + knn->n_neighbors), squared[AG_PANEL];
	uint32_t *slots = (uint32_t *) (numbers + knn->n_numbers), n = 0;
	AgPanel panel = {.n_numbers = (int) knn->n_numbers,
					 .n_codes = (int) knn->n_slots,
					 .mismatch = knn->category_distance};

	ag_dense_encode(knn->dense, features, numbers, slots);
	for (uint32_t first = 0; first < knn->n_rows; first += AG_PANEL)
	{
		uint32_t n_lanes = knn->n_rows - first < AG_PANEL ? knn->n_rows - first : AG_PANEL;

		panel.numbers = knn->panels + (size_t) first * knn->n_numbers;
		panel.codes = knn->codes + (size_t) first * knn->n_slots;
		ops->distances(&panel, numbers, slots, squared);
		for (uint32_t lane = 0; lane < n_lanes; lane++)
			if (n < knn->n_neighbors || squared[lane] < heap[0].squared)
				n = ag_knn_offer(heap, n, knn->n_neighbors, squared[lane], first + lane);
	}
	ag_knn_vote(knn, heap, n, out);
}
