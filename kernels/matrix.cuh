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
	/* rows[first_row .. end_row - 1] are there: all, or one block of them after the other */
	const uint8_t *rows;
	int64_t first_row, end_row;
	int64_t n_block_rows;                    /* 0: all are there */
	const uint8_t *host_rows, *host_columns; /* where blocks come from, and columns */
	int64_t column_stride;
	const uint8_t *columns;     /* null: there was no room for them, or for all rows */
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
	bool has_columns;
	AgkArray<uint8_t> rows, columns, is_category, has_other;
	AgkArray<int32_t> n_bins, categories, offset, slab;
	AgkArray<double> cuts, centers;
	AgkArray<int64_t> first_cut, first_center;
};

/* Is row id in the block that is there? */
static __device__ inline bool
agk_is_here(const AgkMatrix &matrix, int64_t id)
{
	return id >= matrix.first_row && id < matrix.end_row;
}

/* The bin of a row that is there. */
static __device__ inline unsigned
agk_bin(const AgkMatrix &matrix, int f, int64_t id)
{
	return matrix.columns != nullptr ? matrix.columns[f * matrix.column_stride + id]
									 : matrix.rows[(id - matrix.first_row) * matrix.row_stride + f];
}

/* Launches once, or once for each block of rows, which is put in its place before; matrix is the view that is launched with. */
template <class Launch>
static inline AgDeviceStatus
agk_each_block(AgDevice *device, AgkMatrix *matrix, Launch launch)
{
	int64_t step = matrix->n_block_rows > 0 ? matrix->n_block_rows : matrix->n_rows;

	for (int64_t first = 0; first < matrix->n_rows; first += step)
	{
		int64_t n = matrix->n_rows - first < step ? matrix->n_rows - first : step;

		matrix->first_row = first;
		matrix->end_row = first + n;
		if (matrix->n_block_rows > 0)
			AGK_TRY(agk_upload(device, const_cast<uint8_t *>(matrix->rows),
							   matrix->host_rows + first * matrix->row_stride,
							   n * matrix->row_stride));
		launch();
	}
	return AG_DEVICE_OK;
}

#endif
