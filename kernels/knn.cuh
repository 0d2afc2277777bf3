/*
 * knn.cuh - nearest rows on the device: the matrix, and the distances of some queries to all kept rows.
 */
#ifndef AGK_KNN_CUH
#define AGK_KNN_CUH

#include "kernels/boost.cuh"

/* What kernels see of it; by value. */
struct AgkKnn
{
	const float *numbers;
	const uint32_t *row_slots, *kept, *queries, *self;
	float *distances;        /* [n_at_once][n_kept] squares; of a query to itself: infinite */
	AgDeviceNeighbor *found; /* [n_at_once][n_neighbors] */
	int32_t *n_found;
	int64_t number_stride, n_kept;
	int32_t n_numbers, n_slots, n_neighbors;
	float mismatch;
};

struct AgDeviceKnn
{
	AgDeviceKnnSpec spec; /* its arrays aren't to be read any more */
	int64_t n_at_once;
	AgkArray<float> numbers, distances;
	AgkArray<uint32_t> row_slots, kept, queries, self;
	AgkArray<AgDeviceNeighbor> found;
	AgkArray<int32_t> n_found;
	AgkKnn view;
};

#endif
