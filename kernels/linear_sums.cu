/*
 * linear_sums.cu - sums over the rows of a slice: losses, gradients of numbers, columns and intercepts.
 *
 * Each sum is one thread's, in the order of model/linear_loss.c: row by row within a part, and where that adds up a block first, so does
 * the thread.
 */
#include "kernels/linear.cuh"

#define TILE 16
#define MOST_ROWS 64 /* of a block */
#define WIDTH 32     /* sums that a block adds rows to */

/* ---- losses ---- */

/* One thread a block of rows. */
__global__ void
agk_linear_block_sums(AgkLinear linear, int64_t block)
{
	int64_t n = (int64_t) linear.n_parts * linear.slice_blocks;
	int n_passes = linear.loss == AG_DEVICE_LINEAR_LOGISTIC ? 2 : 1;
	int each = linear.n_terms / n_passes;

	for (int64_t at = (int64_t) blockIdx.x * AGK_THREADS + threadIdx.x; at < n;
		 at += (int64_t) gridDim.x * AGK_THREADS)
	{
		int64_t part = at / linear.slice_blocks, b = at % linear.slice_blocks;
		int64_t first = part * linear.slice_rows + b * linear.block_rows;
		int64_t left =
			agk_slice_end(linear, part, block) - agk_slice_begin(linear, part, block + b);
		int64_t n_rows = left < linear.block_rows ? left : linear.block_rows;
		double loss = 0.0, total = 0.0;

		for (int pass = 0; pass < n_passes; pass++)
			for (int64_t i = first; i < first + n_rows; i++)
				for (int t = 0; t < each; t++)
					loss += linear.terms[i * linear.n_terms + pass + t];
		for (int64_t i = first; i < first + n_rows && linear.n_padded == 1; i++)
			total += linear.scores[i];
		linear.block_sums[2 * at] = loss;
		linear.block_sums[2 * at + 1] = total;
	}
}

/* One thread a part. */
__global__ void
agk_linear_part_sums(AgkLinear linear, int64_t block)
{
	int64_t part = threadIdx.x;
	double *intercept = linear.parts + part * linear.n_values + linear.n_values - 1;

	if (part >= linear.n_parts)
		return;
	for (int64_t b = 0; b < linear.slice_blocks; b++)
	{
		const double *sums = linear.block_sums + 2 * (part * linear.slice_blocks + b);

		if (agk_slice_begin(linear, part, block + b) >= agk_slice_end(linear, part, block))
			return;
		linear.losses[part] += sums[0];
		if (linear.n_padded == 1)
			*intercept += sums[1];
	}
}

/* ---- row by row ---- */

/* What row i of the slice adds to sum j: of one score, number times derivative; of several, the derivative itself, for the intercepts. */
static __device__ inline double
addend(const AgkLinear &linear, int64_t i, int64_t place, int64_t j)
{
	if (linear.n_padded > 1)
		return linear.scores[i * linear.n_padded + j];
	return (double) linear.numbers[linear.train_rows[place] * linear.stride + j] * linear.scores[i];
}

/* Threads from the second warp on bring rows [from, from + MOST_ROWS) of the part's slice. */
static __device__ void
bring(const AgkLinear &linear, int64_t part, int64_t begin, int64_t from, int64_t n_rows,
	  int64_t column, int64_t width, double *rows)
{
	for (int at = (int) threadIdx.x - 32; at >= 0 && at < MOST_ROWS * WIDTH; at += AGK_THREADS - 32)
	{
		int64_t r = from + at / WIDTH, j = column + at % WIDTH;

		if (r < n_rows && j < width)
			rows[at] = addend(linear, part * linear.slice_rows + r, begin + r, j);
	}
}

/* A block a part and WIDTH sums: the first warp adds while the others bring the next rows. */
__global__ void
agk_linear_add_rows(AgkLinear linear, int64_t block)
{
	__shared__ double rows[2][MOST_ROWS * WIDTH];
	bool is_wide = linear.n_padded > 1;
	int64_t width = is_wide ? linear.n_padded : linear.stride;
	int64_t across = (width + WIDTH - 1) / WIDTH;
	int64_t first = is_wide ? linear.n_values - linear.n_padded : 0;

	for (int64_t at = blockIdx.x; at < across * linear.n_parts; at += gridDim.x)
	{
		int64_t part = at / across, column = at % across * WIDTH, j = column + threadIdx.x;
		int64_t begin = agk_slice_begin(linear, part, block);
		int64_t n_rows = agk_slice_end(linear, part, block) - begin;
		bool adds = threadIdx.x < WIDTH && j < width;
		double *to = linear.parts + part * linear.n_values + first + j, sum = adds ? *to : 0.0;

		__syncthreads();
		bring(linear, part, begin, 0, n_rows, column, width, rows[0]);
		for (int64_t from = 0; from < n_rows; from += MOST_ROWS)
		{
			const double *tile = rows[from / MOST_ROWS % 2];
			int64_t n = n_rows - from < MOST_ROWS ? n_rows - from : MOST_ROWS;

			__syncthreads();
			bring(linear, part, begin, from + MOST_ROWS, n_rows, column, width,
				  rows[(from / MOST_ROWS + 1) % 2]);
			for (int64_t r = 0; r < n && adds; r++)
				sum += tile[r * WIDTH + threadIdx.x];
		}
		if (adds)
			*to = sum;
	}
}

/* Several scores: a block a part and 16 numbers by 16 scores; each block of rows by itself first. */
__global__ void
agk_linear_add_wide(AgkLinear linear, int64_t block)
{
	__shared__ double rows[MOST_ROWS][TILE], slopes[MOST_ROWS][TILE];
	int64_t padded = linear.n_padded, across = (padded + TILE - 1) / TILE;
	int64_t down = ((int64_t) linear.n_numbers + TILE - 1) / TILE;
	int x = (int) threadIdx.x % TILE, y = (int) threadIdx.x / TILE;

	for (int64_t at = blockIdx.x; at < across * down * linear.n_parts; at += gridDim.x)
	{
		int64_t part = at / (across * down), j = at / across % down * TILE + y;
		int64_t k = at % across * TILE + x;
		int64_t begin = agk_slice_begin(linear, part, block);
		int64_t n_rows = agk_slice_end(linear, part, block) - begin;
		bool is_in = j < linear.n_numbers && k < padded;
		double *to = linear.parts + part * linear.n_values + j * padded + k;
		double sum = is_in ? *to : 0.0;

		for (int64_t from = 0; from < n_rows; from += linear.block_rows)
		{
			int64_t n = n_rows - from < linear.block_rows ? n_rows - from : linear.block_rows;
			double of_block = 0.0;

			__syncthreads();
			for (int r = y; r < n; r += TILE)
			{
				int64_t row = linear.train_rows[begin + from + r];
				int64_t number = at / across % down * TILE + x;

				rows[r][x] = number < linear.n_numbers
								 ? (double) linear.numbers[row * linear.stride + number]
								 : 0.0;
				slopes[r][x] =
					k < padded ? linear.scores[(part * linear.slice_rows + from + r) * padded + k]
							   : 0.0;
			}
			__syncthreads();
			for (int r = 0; r < n; r++)
				of_block += slopes[r][x] * rows[r][y];
			sum += of_block;
		}
		if (is_in)
			*to = sum;
	}
}

/* ---- columns ---- */

/* The first of places[low..high) that isn't before `place`. */
static __device__ inline int64_t
first_from(const uint32_t *places, int64_t low, int64_t high, int64_t place)
{
	while (low < high)
	{
		int64_t middle = low + (high - low) / 2;

		if ((int64_t) places[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* One thread a part, column and score: over the rows that light the column. */
__global__ void
agk_linear_add_columns(AgkLinear linear, int64_t block)
{
	int64_t padded = linear.n_padded, n = linear.n_parts * linear.n_columns * padded;

	for (int64_t at = (int64_t) blockIdx.x * AGK_THREADS + threadIdx.x; at < n;
		 at += (int64_t) gridDim.x * AGK_THREADS)
	{
		int64_t k = at % padded, column = at / padded % linear.n_columns;
		int64_t part = at / padded / linear.n_columns;
		int64_t begin = agk_slice_begin(linear, part, block);
		int64_t low = linear.column_starts[column], high = linear.column_starts[column + 1];
		double *to = linear.parts + part * linear.n_values + (linear.stride + column) * padded + k;
		double sum = *to;

		low = first_from(linear.column_places, low, high, begin);
		high = first_from(linear.column_places, low, high, agk_slice_end(linear, part, block));
		for (int64_t i = low; i < high; i++)
			sum +=
				linear
					.scores[(part * linear.slice_rows + linear.column_places[i] - begin) * padded +
							k];
		*to = sum;
	}
}

/* Parts in their order; one thread a value. */
__global__ void
agk_linear_gradient(AgkLinear linear)
{
	for (int64_t i = (int64_t) blockIdx.x * AGK_THREADS + threadIdx.x; i < linear.n_values;
		 i += (int64_t) gridDim.x * AGK_THREADS)
	{
		double sum = linear.parts[i];

		for (int64_t part = 1; part < linear.n_parts; part++)
			sum += linear.parts[part * linear.n_values + i];
		linear.gradient[i] = sum;
	}
}

#define LAUNCH(kernel, n, each, ...)                                                               \
	AGK_LAUNCH(kernel, agk_grid(device, (n), (each)), AGK_THREADS, 0, device->stream, __VA_ARGS__)

void
agk_linear_add(AgDevice *device, const AgkLinear *linear, int64_t block)
{
	int64_t padded = linear->n_padded, across = (padded + TILE - 1) / TILE;
	int64_t width = padded > 1 ? padded : linear->stride;

	LAUNCH(agk_linear_block_sums, (int64_t) linear->n_parts * linear->slice_blocks, AGK_THREADS,
		   *linear, block);
	AGK_LAUNCH(agk_linear_part_sums, 1, AGK_THREADS, 0, device->stream, *linear, block);
	LAUNCH(agk_linear_add_rows, (width + WIDTH - 1) / WIDTH * linear->n_parts, 1, *linear, block);
	if (padded > 1)
		LAUNCH(agk_linear_add_wide,
			   across * (((int64_t) linear->n_numbers + TILE - 1) / TILE) * linear->n_parts, 1,
			   *linear, block);
	LAUNCH(agk_linear_add_columns, linear->n_parts * linear->n_columns * padded, AGK_THREADS,
		   *linear, block);
}

void
agk_linear_gather(AgDevice *device, const AgkLinear *linear)
{
	LAUNCH(agk_linear_gradient, linear->n_values, AGK_THREADS, *linear);
}
