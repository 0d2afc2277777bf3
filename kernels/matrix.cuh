/*
 * matrix.cuh - the binned matrix on the device, and how histograms lie.
 */
#ifndef AGK_MATRIX_CUH
#define AGK_MATRIX_CUH

#include "kernels/device.cuh"

#define AGK_BINS 256 /* room for the bins of one feature */

/* As kernels see it; pointers are the device's. */
struct AgkMatrix
{
	int64_t n_rows;
	int n_features;
	int64_t row_stride;
	const uint8_t *rows;
	int64_t column_stride;
	const uint8_t *columns;
	const int32_t *n_bins;      /* [n_features] value bins */
	const uint8_t *is_category; /* [n_features] */
	const uint8_t *has_other;   /* [n_features] */
	const int32_t *categories;  /* [n_categories] those features */
	int n_categories;
	const double *cuts;          /* all features' */
	const int64_t *first_cut;    /* [n_features] into cuts */
	const double *centers;       /* all features' */
	const int64_t *first_center; /* [n_features] into centers */
	const int32_t *offset;       /* [n_features + 1] of a feature's cells in a histogram */
	int n_cells;
	/* Features whose cells fit into a block's shared memory together. */
	const int32_t *slab; /* [n_slabs + 1] first features, multiples of 4 */
	int n_slabs;
	int slab_cells; /* the most that a slab has */
};

struct AgDeviceMatrix
{
	AgkMatrix view;
	AgkArray<uint8_t> rows, columns, is_category, has_other;
	AgkArray<int32_t> n_bins, categories, offset, slab;
	AgkArray<double> cuts, centers;
	AgkArray<int64_t> first_cut, first_center;
};

#endif
