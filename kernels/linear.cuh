/*
 * linear.cuh - a linear model on the device: its rows, and the rows of a pass that are in work.
 *
 * Rows come in slices: of every part so many blocks at a time, as memory has room for their scores. Within a part sums go on from
 * slice to slice, so the order is that of the rows.
 */
#ifndef AGK_LINEAR_CUH
#define AGK_LINEAR_CUH

#include "kernels/boost.cuh"

/* What kernels see of it; by value. */
struct AgkLinear
{
	const float *numbers;
	const uint32_t *row_slots, *train_rows, *column_places;
	const int32_t *slot_of, *class_of;
	const int64_t *column_starts;
	const double *weight, *target, *quantiles;
	double *x;      /* [n_values] */
	double *scores; /* [n_parts][slice_rows][n_padded], which become derivatives */
	double *terms;  /* [n_parts][slice_rows][n_terms] of the loss */
	double
		*block_sums; /* [n_parts][slice_blocks][2]: loss, and of one score the sum of derivatives */
	double *parts;   /* [n_parts][n_values] gradients */
	double *losses;  /* [n_parts] */
	double *gradient; /* [n_values] */
	int64_t n_train, stride, n_values, n_places, slice_rows;
	int32_t n_numbers, n_slots, n_columns, n_outputs, n_padded, n_terms;
	int32_t n_parts, block_rows, slice_blocks;
	AgDeviceLinearLoss loss;
	double bend;
};

struct AgDeviceLinear
{
	AgDeviceLinearSpec spec; /* its arrays aren't to be read any more */
	int64_t most_blocks;     /* of a part */
	AgkArray<float> numbers;
	AgkArray<uint32_t> row_slots, train_rows, column_places;
	AgkArray<int32_t> slot_of, class_of;
	AgkArray<int64_t> column_starts;
	AgkArray<double> weight, target, quantiles;
	AgkArray<double> x, scores, terms, block_sums, parts, losses, gradient;
	AgkLinear view;
};

/* Where a part's rows of a slice begin and end, as places in train_rows. */
static __device__ inline int64_t
agk_part_begin(int64_t n, int32_t n_parts, int64_t part)
{
	return n * part / n_parts;
}

static __device__ inline int64_t
agk_slice_begin(const AgkLinear &linear, int64_t part, int64_t block)
{
	return agk_part_begin(linear.n_train, linear.n_parts, part) + block * linear.block_rows;
}

static __device__ inline int64_t
agk_slice_end(const AgkLinear &linear, int64_t part, int64_t block)
{
	int64_t end = agk_slice_begin(linear, part, block) + linear.slice_rows;
	int64_t behind = agk_part_begin(linear.n_train, linear.n_parts, part + 1);

	return end < behind ? end : behind;
}

/* linear_scores.cu: scores, derivatives and losses of a slice that begins at `block` of each part. */
void agk_linear_scores(AgDevice *device, const AgkLinear *linear, int64_t block);
/* linear_sums.cu: what that adds to losses and gradients; and at last the parts' sum. */
void agk_linear_add(AgDevice *device, const AgkLinear *linear, int64_t block);
void agk_linear_gather(AgDevice *device, const AgkLinear *linear);

#endif
