/*
 * knn_search.c - see knn_search.h; and predictions of many rows.
 */
#include <math.h>
#include <string.h>

#include "engine/model/knn_search.h"

#define STRETCH_BYTES (128u * 1024u) /* of panels */

float
ag_knn_norm(const float *numbers, uint32_t n)
{
	float sum = 0.0f;

	for (uint32_t j = 0; j < n; j++)
		sum += numbers[j] * numbers[j];
	return sum;
}

void
ag_knn_group_add(AgKnnGroup *group, const AgKnn *knn, const float *numbers, const uint32_t *codes,
				 uint32_t self)
{
	int q = group->n++;

	group->numbers[q] = numbers;
	group->codes[q] = codes;
	group->norms[q] = ag_knn_norm(numbers, knn->n_numbers);
	group->within[q] = INFINITY;
	group->self[q] = self;
}

/* A last tile is filled up with the last row. */
void
ag_knn_group_close(AgKnnGroup *group)
{
	for (int q = group->n; q % AG_QUERIES != 0; q++)
	{
		group->numbers[q] = group->numbers[group->n - 1];
		group->codes[q] = group->codes[group->n - 1];
		group->norms[q] = group->norms[group->n - 1];
		group->within[q] = -1.0f; /* nothing is nearer */
	}
}

uint32_t
ag_knn_stretch(const AgKnn *knn)
{
	uint32_t panel_bytes = (knn->n_numbers + knn->n_slots) * AG_PANEL * 4;

	return panel_bytes == 0              ? knn->n_rows
		   : panel_bytes > STRETCH_BYTES ? 1
										 : STRETCH_BYTES / panel_bytes;
}

/* Measures the rows of a panel that may be among a query's nearest. */
static void
offer_lanes(AgKnnGroup *group, const AgKnn *knn, int q, const AgPanel *panel, uint32_t first,
			uint32_t mask, AgNeighbor *heap)
{
	float squared[AG_PANEL];

	if (knn->n_rows - first < AG_PANEL)
		mask &= (1u << (knn->n_rows - first)) - 1;
	if (mask != 0)
		ag_vector_ops()->distances(panel, group->numbers[q], group->codes[q], squared);
	for (; mask != 0; mask &= mask - 1)
	{
		uint32_t lane = (uint32_t) __builtin_ctz(mask), row = first + lane;

		if (row != group->self[q] && squared[lane] < group->within[q])
			group->n_found[q] =
				ag_knn_offer(heap, group->n_found[q], knn->n_neighbors, squared[lane], row);
		if (group->n_found[q] == knn->n_neighbors)
			group->within[q] = heap[0].squared;
	}
}

/* Queries [q, q + AG_QUERIES) of a group against panels [begin, end). */
static void
search_panels(AgKnnGroup *group, const AgKnn *knn, const float *norms, int q, uint32_t begin,
			  uint32_t end, AgNeighbor *heaps)
{
	const AgVectorOps *ops = ag_vector_ops();
	AgPanel panel = {.n_numbers = (int) knn->n_numbers,
					 .n_codes = (int) knn->n_slots,
					 .mismatch = knn->category_distance};
	uint32_t masks[AG_QUERIES];

	for (uint32_t p = begin; p < end; p++)
	{
		size_t first = (size_t) p * AG_PANEL;

		panel.numbers = knn->panels + first * knn->n_numbers;
		panel.codes = knn->codes + first * knn->n_slots;
		panel.norms = norms + first;
		ops->near(&panel, group->numbers + q, group->codes + q, group->norms + q, group->within + q,
				  masks);
		for (int i = 0; i < AG_QUERIES && q + i < group->n; i++)
			if (masks[i] != 0)
				offer_lanes(group, knn, q + i, &panel, (uint32_t) first, masks[i],
							heaps + (size_t) (q + i) * knn->n_neighbors);
	}
}

void
ag_knn_group_search(AgKnnGroup *group, const AgKnn *knn, const float *norms, uint32_t begin,
					uint32_t end, AgNeighbor *heaps)
{
	for (int q = 0; q < group->n; q += AG_QUERIES)
		search_panels(group, knn, norms, q, begin, end, heaps);
}

/* A group of rows from the features on; scratch as of ag_knn_run, for each. */
static void
run_group(const AgKnn *knn, int n, const double *features, void *scratch, double *out)
{
	AgKnnGroup group = {0};
	AgNeighbor *heaps = scratch;
	float *numbers = (float *) (heaps + (size_t) n * knn->n_neighbors);
	uint32_t *slots = (uint32_t *) (numbers + (size_t) n * knn->n_numbers);
	uint32_t n_panels = (knn->n_rows + AG_PANEL - 1) / AG_PANEL, stretch = ag_knn_stretch(knn);

	for (int q = 0; q < n; q++)
	{
		float *own = numbers + (size_t) q * knn->n_numbers;
		uint32_t *own_slots = slots + (size_t) q * knn->n_slots;

		ag_dense_encode(knn->dense, features + (size_t) q * knn->dense->n_features, own, own_slots);
		ag_knn_group_add(&group, knn, own, own_slots, AG_KNN_NO_SELF);
	}
	ag_knn_group_close(&group);
	for (uint32_t panel = 0; panel < n_panels; panel += stretch)
		ag_knn_group_search(&group, knn, knn->norms, panel,
							n_panels - panel < stretch ? n_panels : panel + stretch, heaps);
	for (int q = 0; q < n; q++)
		ag_knn_vote(knn, heaps + (size_t) q * knn->n_neighbors, group.n_found[q],
					out + (size_t) q * ag_knn_n_out(knn));
}

void
ag_knn_run_rows(const AgKnn *knn, int64_t n_rows, const double *features, void *scratch,
				double *out)
{
	int64_t n;

	for (int64_t at = 0; at < n_rows; at += n)
	{
		const double *rows = features + (size_t) at * knn->dense->n_features;
		double *to = out + (size_t) at * ag_knn_n_out(knn);

		n = n_rows - at < AG_KNN_GROUP ? n_rows - at : AG_KNN_GROUP;
		if (knn->norms != NULL && n >= AG_QUERIES / 2)
			run_group(knn, (int) n, rows, scratch, to);
		else
			for (int64_t i = 0; i < n; i++)
				ag_knn_run(knn, rows + (size_t) i * knn->dense->n_features, scratch,
						   to + (size_t) i * ag_knn_n_out(knn));
	}
}
