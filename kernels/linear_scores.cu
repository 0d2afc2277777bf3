/*
 * linear_scores.cu - of a slice of rows: the scores at the parameters, and what their losses are and ask for.
 *
 * Orders of addition and expressions are those of model/linear_loss.c; double precision throughout.
 */
#include "engine/model/linear_maths.h"
#include "kernels/linear.cuh"

#define TILE 16
#define LANES 8 /* of base/vector.h */

/* A row of the slice: item i of [n_parts][slice_rows]; -1: there is none. */
static __device__ inline int64_t
place_of(const AgkLinear &linear, int64_t block, int64_t i)
{
	int64_t part = i / linear.slice_rows;
	int64_t at = agk_slice_begin(linear, part, block) + i % linear.slice_rows;

	return part < linear.n_parts && at < agk_slice_end(linear, part, block) ? at : -1;
}

static __device__ inline double
weight_of(const AgkLinear &linear, int64_t place)
{
	return linear.weight != nullptr ? linear.weight[place] : 1.0;
}

/* ((0+4)+(2+6)) + ((1+5)+(3+7)) of the eight lanes' sums. The whole warp comes. */
static __device__ inline double
lanes_sum(double sum)
{
	for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
		sum += __shfl_xor_sync(~0u, sum, lanes);
	return sum;
}

static __device__ inline double
lanes_most(double most)
{
	for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
	{
		double other = __shfl_xor_sync(~0u, most, lanes);

		most = other > most ? other : most;
	}
	return most;
}

/* ---- scores ---- */

/* One score a row: eight threads a row. */
__global__ void
agk_linear_score(AgkLinear linear, int64_t block)
{
	int64_t n = linear.n_parts * linear.slice_rows,
			step = (int64_t) gridDim.x * AGK_THREADS / LANES;
	int64_t first = (int64_t) blockIdx.x * (AGK_THREADS / LANES);
	int lane = (int) threadIdx.x % LANES;
	const double *by_column = linear.x + linear.stride;

	for (int64_t from = first; from < n; from += step)
	{
		int64_t i = from + threadIdx.x / LANES, at = i < n ? place_of(linear, block, i) : -1;
		int64_t row = at >= 0 ? linear.train_rows[at] : 0;
		const float *numbers = linear.numbers + row * linear.stride;
		double sum = 0.0, score;

		for (int64_t j = lane; at >= 0 && j < linear.stride; j += LANES)
			sum += (double) numbers[j] * linear.x[j];
		sum = lanes_sum(sum);
		if (at < 0 || lane != 0)
			continue;
		score = linear.x[linear.stride + linear.n_columns + 1];
		score += sum;
		for (int32_t s = 0; s < linear.n_slots; s++)
			score += by_column[linear.row_slots[row * linear.n_slots + s]];
		linear.scores[i] = score;
	}
}

/* Several scores a row: a block a tile of 16 rows and 16 scores. */
__global__ void
agk_linear_score_wide(AgkLinear linear, int64_t block)
{
	__shared__ double rows[TILE][TILE + 1], values[TILE][TILE];
	int64_t n = linear.n_parts * linear.slice_rows, padded = linear.n_padded;
	int64_t across = (padded + TILE - 1) / TILE, n_tiles = across * ((n + TILE - 1) / TILE);
	int x = (int) threadIdx.x % TILE, y = (int) threadIdx.x / TILE;
	const double *by_column = linear.x + linear.stride * padded;

	for (int64_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x)
	{
		int64_t i = tile / across * TILE + y, k = tile % across * TILE + x;
		int64_t at = i < n ? place_of(linear, block, i) : -1;
		int64_t row = at >= 0 ? linear.train_rows[at] : 0;
		double sum = 0.0, score;

		for (int from = 0; from < linear.n_numbers; from += TILE)
		{
			int depth = linear.n_numbers - from < TILE ? linear.n_numbers - from : TILE;

			__syncthreads();
			rows[y][x] = x < depth && at >= 0
							 ? (double) linear.numbers[row * linear.stride + from + x]
							 : 0.0;
			values[y][x] = y < depth && k < padded ? linear.x[(from + y) * padded + k] : 0.0;
			__syncthreads();
			for (int j = 0; j < depth; j++)
				sum += values[j][x] * rows[y][j];
		}
		if (at < 0 || k >= padded)
			continue;
		score = linear.x[(linear.stride + linear.n_columns + 1) * padded + k];
		score += sum;
		for (int32_t s = 0; s < linear.n_slots; s++)
			score += by_column[linear.row_slots[row * linear.n_slots + s] * padded + k];
		linear.scores[i * padded + k] = score;
	}
}

/* ---- derivatives, and terms of the loss ---- */

static __device__ void
slope_of_one(const AgkLinear &linear, int64_t i, int64_t at)
{
	double w = weight_of(linear, at), score = linear.scores[i];
	double *term = linear.terms + i * linear.n_terms;

	if (linear.loss == AG_DEVICE_LINEAR_SQUARED)
	{
		double miss = score - linear.target[at], slope = w * miss;

		linear.scores[i] = slope;
		term[0] = 0.5 * slope * miss;
	}
	else
	{
		double y = (double) linear.class_of[at], e = ag_linear_exp(-fabs(score));
		double margin = y == 1.0 ? score : -score;

		term[0] = margin < 0.0 ? -margin * w : 0.0;
		linear.scores[i] = w * ((score >= 0.0 ? 1.0 : e) / (1.0 + e) - y);
		term[1] = w * ag_linear_ln(e + 1.0);
	}
}

static __device__ void
slopes_of_quantiles(const AgkLinear &linear, int64_t i, int64_t at)
{
	double w = weight_of(linear, at), bend = linear.bend,
		   *row = linear.scores + i * linear.n_padded;

	for (int32_t k = 0; k < linear.n_outputs; k++)
	{
		double d = linear.target[at] - row[k], size = fabs(d);
		double tilt = linear.quantiles[k] - 0.5;
		double half = size < bend ? d / (2.0 * bend) : d > 0.0 ? 0.5 : -0.5;

		linear.terms[i * linear.n_terms + k] =
			w * ((size < bend ? d * d / (4.0 * bend) + bend / 4.0 : size / 2.0) + tilt * d);
		row[k] = -w * (half + tilt);
	}
	for (int32_t k = linear.n_outputs; k < linear.n_padded; k++)
		row[k] = 0.0;
}

/* Eight threads a row. */
static __device__ void
slopes_of_classes(const AgkLinear &linear, int64_t i, int64_t at, int lane)
{
	int32_t n = at >= 0 ? linear.n_outputs : 0, padded = at >= 0 ? linear.n_padded : 0;
	double *row = linear.scores + i * linear.n_padded;
	double w = at >= 0 ? weight_of(linear, at) : 0.0, own = 0.0, most, sum = 0.0, scale;
	int32_t class_of = at >= 0 ? linear.class_of[at] : 0;

	if (at >= 0)
		own = row[class_of];
	most = -(double) INFINITY;
	for (int32_t k = lane; k < n; k += LANES)
		most = row[k] > most ? row[k] : most;
	most = lanes_most(most);
	for (int32_t k = lane; k < padded; k += LANES)
	{
		double e = k < n ? ag_linear_exp(row[k] - most) : 0.0;

		row[k] = e;
		sum += e;
	}
	sum = lanes_sum(sum);
	scale = w / sum;
	for (int32_t k = lane; k < padded; k += LANES)
	{
		row[k] *= scale;
		if (k == class_of)
			row[k] -= w;
	}
	if (at >= 0 && lane == 0)
		linear.terms[i] = w * (ag_linear_ln(sum) + most - own);
}

__global__ void
agk_linear_slopes(AgkLinear linear, int64_t block)
{
	int64_t n = linear.n_parts * linear.slice_rows;
	int each = linear.loss == AG_DEVICE_LINEAR_SOFTMAX ? LANES : 1;
	int64_t step = (int64_t) gridDim.x * AGK_THREADS / each;

	for (int64_t from = (int64_t) blockIdx.x * AGK_THREADS / each; from < n; from += step)
	{
		int64_t i = from + threadIdx.x / each, at = i < n ? place_of(linear, block, i) : -1;

		if (linear.loss == AG_DEVICE_LINEAR_SOFTMAX)
			slopes_of_classes(linear, i, at, (int) threadIdx.x % LANES);
		else if (at >= 0 && linear.loss == AG_DEVICE_LINEAR_QUANTILES)
			slopes_of_quantiles(linear, i, at);
		else if (at >= 0)
			slope_of_one(linear, i, at);
	}
}

void
agk_linear_scores(AgDevice *device, const AgkLinear *linear, int64_t block)
{
	int64_t n = linear->n_parts * linear->slice_rows;
	int64_t tiles = (n + TILE - 1) / TILE * ((linear->n_padded + TILE - 1) / TILE);

	if (linear->n_padded == 1)
		AGK_LAUNCH(agk_linear_score, agk_grid(device, n * LANES, AGK_THREADS), AGK_THREADS, 0,
				   device->stream, *linear, block);
	else
		AGK_LAUNCH(agk_linear_score_wide, agk_grid(device, tiles, 1), AGK_THREADS, 0,
				   device->stream, *linear, block);
	AGK_LAUNCH(agk_linear_slopes, agk_grid(device, n * LANES, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, *linear, block);
}
