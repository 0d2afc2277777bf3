/*
 * knn_search.h - the neighbours of many rows at once. Private to knn*.c.
 *
 * Rows go in groups past the panels, and panels in stretches that stay in the cache while all rows of the group are compared with
 * them. The comparison is a cheap bound; only rows that pass it are measured, so the neighbours are those of one row alone.
 */
#ifndef AG_KNN_SEARCH_H
#define AG_KNN_SEARCH_H

#include "engine/base/vector.h"
#include "engine/model/knn.h"

#define AG_KNN_GROUP 64 /* rows of a group, a multiple of AG_QUERIES */
#define AG_KNN_NO_SELF UINT32_MAX

/* Rows whose neighbours are looked for: transformed as the model's own are. */
typedef struct AgKnnGroup
{
	int n;
	const float *numbers[AG_KNN_GROUP];
	const uint32_t *codes[AG_KNN_GROUP];
	float norms[AG_KNN_GROUP];
	float within[AG_KNN_GROUP];  /* of the farthest neighbour so far, once there are enough */
	uint32_t self[AG_KNN_GROUP]; /* the kept row that it is itself, which doesn't count */
	uint32_t n_found[AG_KNN_GROUP];
} AgKnnGroup;

/* The sum of squares of a row's numbers. */
float ag_knn_norm(const float *numbers, uint32_t n);

/* Adds a row to a group that was all zero at first and has less than AG_KNN_GROUP of them; what is given must stay. */
void ag_knn_group_add(AgKnnGroup *group, const AgKnn *knn, const float *numbers,
					  const uint32_t *codes, uint32_t self);
/* After the last one was added: at least one. */
void ag_knn_group_close(AgKnnGroup *group);

/* How many panels a search should look at before it asks whether to go on; at least 1. */
uint32_t ag_knn_stretch(const AgKnn *knn);

/* Looks among panels [begin, end). norms: of all kept rows, [panels][AG_PANEL]; heaps: [AG_KNN_GROUP][n_neighbors]. */
void ag_knn_group_search(AgKnnGroup *group, const AgKnn *knn, const float *norms, uint32_t begin,
						 uint32_t end, AgNeighbor *heaps);

#endif
