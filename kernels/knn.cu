/*
 * knn.cu - nearest rows: all distances of some queries, then of each query the nearest, found by their bits.
 *
 * Distances are added up as base/vector.h says, so that they are the CPU's to the last bit, and with them who is near and which of equally
 * far ones comes first.
 */
#include "kernels/knn.cuh"

#include "kernels/block.cuh"

#define TILE_ROWS 64
#define TILE_QUERIES 32
#define DEPTH 16
#define ROWS_EACH (TILE_ROWS / 16)
#define QUERIES_EACH (TILE_QUERIES / 16)
#define INFINITE 0x7f800000u

#define MOST_DISTANCES (INT64_C(64) << 20) /* at a time: 256 MB */
#define MOST_FOUND (INT64_C(512) << 10)    /* likewise, which the host has room for, too */
#define MOST_WORK INT64_C(5000000000)      /* differences of numbers a search */

/* ---- distances ---- */

/* A tile of rows' numbers or codes from `from` on, [DEPTH][tile]; 0 beyond its ends, of both sides alike. */
template <class T>
static __device__ void
load(const T *values, int64_t stride, int32_t n_values, int from, const uint32_t *rows,
	 int64_t n_rows, int n_tile, T *tile)
{
	for (int i = (int) threadIdx.x; i < n_tile * DEPTH; i += AGK_THREADS)
	{
		int r = i / DEPTH, j = i % DEPTH;

		tile[j * (n_tile + 1) + r] =
			r < n_rows && from + j < n_values ? values[(int64_t) rows[r] * stride + from + j] : 0;
	}
}

struct Tile
{
	int64_t query, row; /* first ones; of the search's, and of the kept */
	int64_t n_queries, n_rows;
};

/* The tile's rows and queries, for all threads at once. */
template <class T>
static __device__ void
load_tile(const AgkKnn &knn, const Tile &tile, int64_t first, const T *values, int64_t stride,
		  int32_t n_values, int from, T *rows, T *queries)
{
	__syncthreads();
	load(values, stride, n_values, from, knn.kept + tile.row, tile.n_rows, TILE_ROWS, rows);
	load(values, stride, n_values, from, knn.queries + first + tile.query, tile.n_queries,
		 TILE_QUERIES, queries);
	__syncthreads();
}

/* Numbers: four sums each, by the number's place in four. */
static __device__ void
add_numbers(const AgkKnn &knn, const Tile &tile, int64_t first, float *sums)
{
	__shared__ float rows[DEPTH * (TILE_ROWS + 1)], queries[DEPTH * (TILE_QUERIES + 1)];
	float four[QUERIES_EACH][ROWS_EACH][4] = {};
	int x = (int) threadIdx.x % 16, y = (int) threadIdx.x / 16;

	for (int from = 0; from < knn.n_numbers; from += DEPTH)
	{
		load_tile(knn, tile, first, knn.numbers, knn.number_stride, knn.n_numbers, from, rows,
				  queries);
		for (int j = 0; j < DEPTH; j += 4)
			for (int i = 0; i < 4; i++)
				for (int q = 0; q < QUERIES_EACH; q++)
					for (int r = 0; r < ROWS_EACH; r++)
					{
						float d = rows[(j + i) * (TILE_ROWS + 1) + x + 16 * r] -
								  queries[(j + i) * (TILE_QUERIES + 1) + y + 16 * q];

						four[q][r][i] += d * d;
					}
	}
	for (int q = 0; q < QUERIES_EACH; q++)
		for (int r = 0; r < ROWS_EACH; r++)
			sums[q * ROWS_EACH + r] =
				(four[q][r][0] + four[q][r][1]) + (four[q][r][2] + four[q][r][3]);
}

static __device__ void
add_codes(const AgkKnn &knn, const Tile &tile, int64_t first, float *sums)
{
	__shared__ uint32_t rows[DEPTH * (TILE_ROWS + 1)], queries[DEPTH * (TILE_QUERIES + 1)];
	int x = (int) threadIdx.x % 16, y = (int) threadIdx.x / 16;

	for (int from = 0; from < knn.n_slots; from += DEPTH)
	{
		load_tile(knn, tile, first, knn.row_slots, knn.n_slots, knn.n_slots, from, rows, queries);
		for (int j = 0; j < DEPTH; j++)
			for (int q = 0; q < QUERIES_EACH; q++)
				for (int r = 0; r < ROWS_EACH; r++)
					sums[q * ROWS_EACH + r] += rows[j * (TILE_ROWS + 1) + x + 16 * r] !=
													   queries[j * (TILE_QUERIES + 1) + y + 16 * q]
												   ? knn.mismatch
												   : 0.0f;
	}
}

/* A block a tile of queries [first, first + n) and kept rows. */
__global__ void
agk_knn_distances(AgkKnn knn, int64_t first, int64_t n)
{
	int64_t across = (knn.n_kept + TILE_ROWS - 1) / TILE_ROWS;
	int64_t n_tiles = across * ((n + TILE_QUERIES - 1) / TILE_QUERIES);
	int x = (int) threadIdx.x % 16, y = (int) threadIdx.x / 16;

	for (int64_t at = blockIdx.x; at < n_tiles; at += gridDim.x)
	{
		Tile tile = {at / across * TILE_QUERIES, at % across * TILE_ROWS, 0, 0};
		float sums[QUERIES_EACH * ROWS_EACH];

		tile.n_queries = n - tile.query;
		tile.n_rows = knn.n_kept - tile.row;
		add_numbers(knn, tile, first, sums);
		add_codes(knn, tile, first, sums);
		for (int q = 0; q < QUERIES_EACH; q++)
			for (int r = 0; r < ROWS_EACH; r++)
			{
				int64_t query = tile.query + y + 16 * q, row = tile.row + x + 16 * r;

				if (query < n && row < knn.n_kept)
					knn.distances[query * knn.n_kept + row] =
						row == knn.self[first + query] ? (float) INFINITY : sums[q * ROWS_EACH + r];
			}
	}
}

/* ---- the nearest ---- */

/* Bits of the want-th least distance; *n_equal: how many of that distance are among the first `want`. Both may be read by all threads. */
struct Border
{
	uint32_t bits;
	uint32_t n_equal, want;
};

/* Digit by digit, from the highest: non-negative floats are in the order of their bits. */
static __device__ Border
find_border(const float *distances, int64_t n, uint32_t n_neighbors)
{
	__shared__ uint32_t counts[256], digit, below;
	Border border = {0, 0, 0};

	for (int shift = 24; shift >= 0; shift -= 8)
	{
		uint32_t total, before;

		__syncthreads();
		counts[threadIdx.x] = 0;
		__syncthreads();
		for (int64_t i = threadIdx.x; i < n; i += AGK_THREADS)
		{
			uint32_t bits = __float_as_uint(distances[i]);

			if (bits < INFINITE && (shift == 24 || bits >> (shift + 8) == border.bits))
				atomicAdd(&counts[bits >> shift & 255u], 1u);
		}
		__syncthreads();
		before = agk_block_scan(counts[threadIdx.x], &total);
		if (shift == 24)
			border.want = border.n_equal = total < n_neighbors ? total : n_neighbors;
		if (border.want == 0)
			return border;
		if (before < border.n_equal && border.n_equal <= before + counts[threadIdx.x])
		{
			digit = threadIdx.x;
			below = before;
		}
		__syncthreads();
		border.bits = border.bits << 8 | digit;
		border.n_equal -= below;
		__syncthreads();
	}
	return border;
}

/* A block a query: those below the border, and of those at it the first. */
__global__ void
agk_knn_nearest(AgkKnn knn, int64_t n)
{
	for (int64_t query = blockIdx.x; query < n; query += gridDim.x)
	{
		const float *distances = knn.distances + query * knn.n_kept;
		AgDeviceNeighbor *found = knn.found + query * knn.n_neighbors;
		Border border = find_border(distances, knn.n_kept, (uint32_t) knn.n_neighbors);
		uint32_t n_less = 0, n_equal = 0;

		for (int64_t from = 0; from < knn.n_kept && border.want > 0; from += AGK_THREADS)
		{
			int64_t i = from + threadIdx.x;
			uint32_t bits = i < knn.n_kept ? __float_as_uint(distances[i]) : INFINITE, total;
			bool is_less = bits < border.bits, is_equal = bits == border.bits;
			/* both counts in one: a tile has few of each */
			uint32_t before =
				agk_block_scan((uint32_t) is_less | (uint32_t) is_equal << 16, &total);
			uint32_t less = n_less + (before & 0xffffu), equal = n_equal + (before >> 16);

			if (is_less)
				found[less] = {distances[i], (uint32_t) i};
			else if (is_equal && equal < border.n_equal)
				found[border.want - border.n_equal + equal] = {distances[i], (uint32_t) i};
			n_less += total & 0xffffu;
			n_equal += total >> 16;
		}
		if (threadIdx.x == 0)
			knn.n_found[query] = (int32_t) border.want;
	}
}

/* ---- the host's side ---- */

template <class Visit>
static AgDeviceStatus
each_array(AgDeviceKnn *knn, const AgDeviceKnnSpec *spec, Visit visit)
{
	const float *no_distance = nullptr;
	const AgDeviceNeighbor *no_neighbor = nullptr;
	const int32_t *no_count = nullptr;

	AGK_TRY(visit(&knn->numbers, spec->n_rows * spec->number_stride, spec->numbers));
	AGK_TRY(visit(&knn->row_slots, spec->n_rows * spec->n_slots, spec->row_slots));
	AGK_TRY(visit(&knn->kept, spec->n_kept, spec->kept));
	AGK_TRY(visit(&knn->queries, spec->n_queries, spec->queries));
	AGK_TRY(visit(&knn->self, spec->n_queries, spec->self));
	AGK_TRY(visit(&knn->distances, knn->n_at_once * spec->n_kept, no_distance));
	AGK_TRY(visit(&knn->found, knn->n_at_once * spec->n_neighbors, no_neighbor));
	return visit(&knn->n_found, knn->n_at_once, no_count);
}

/* Queries at a time: by work, and by a half of the memory that is left beside the rows. */
static int64_t
at_once(const AgDevice *device, const AgDeviceKnnSpec *spec)
{
	int64_t rows = spec->n_rows * (spec->number_stride + spec->n_slots) * 4 + spec->n_kept * 4 +
				   spec->n_queries * 8;
	int64_t left = (device->limit_bytes - device->used_bytes - rows) / 8;
	int64_t n = MOST_WORK / (spec->n_kept * (spec->n_numbers + spec->n_slots + 8));
	int64_t most = (left < MOST_DISTANCES ? left : MOST_DISTANCES) /
				   (spec->n_kept + 2 * (int64_t) spec->n_neighbors + 1);

	n = n < most ? n : most;
	n = n < MOST_FOUND / spec->n_neighbors ? n : MOST_FOUND / spec->n_neighbors;
	n = n < spec->n_queries ? n : spec->n_queries;
	return n < 1 ? 1 : n;
}

static AgDeviceStatus
take(AgDevice *device, AgDeviceKnn *knn)
{
	const AgDeviceKnnSpec *spec = &knn->spec;

	AGK_TRY(each_array(knn, spec, [&](auto *array, int64_t n, auto from) {
		AgDeviceStatus status = agk_get(device, n, array);

		if (status != AG_DEVICE_OK || from == nullptr)
			return status;
		return agk_upload(device, array->at, from, array->n_bytes);
	}));
	knn->view = {knn->numbers.at,     knn->row_slots.at, knn->kept.at,    knn->queries.at,
				 knn->self.at,        knn->distances.at, knn->found.at,   knn->n_found.at,
				 spec->number_stride, spec->n_kept,      spec->n_numbers, spec->n_slots,
				 spec->n_neighbors,   spec->mismatch};
	return agk_wait(device);
}

AgDeviceStatus
agk_knn_create(AgDevice *device, const AgDeviceKnnSpec *spec, AgDeviceKnn **created,
			   int64_t *n_at_once)
{
	AgDeviceKnn *knn;
	AgDeviceStatus status;

	*created = nullptr;
	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_new(device, 1, &knn));
	knn->spec = *spec;
	knn->n_at_once = *n_at_once = at_once(device, spec);
	status = take(device, knn);
	if (status == AG_DEVICE_OK)
		*created = knn;
	else
		agk_knn_free(device, knn);
	return status;
}

void
agk_knn_free(AgDevice *device, AgDeviceKnn *knn)
{
	if (knn == nullptr)
		return;
	(void) each_array(knn, &knn->spec, [&](auto *array, int64_t n, auto from) {
		(void) n;
		(void) from;
		agk_give(device, array);
		return AG_DEVICE_OK;
	});
	free(knn);
}

AgDeviceStatus
agk_knn_search(AgDevice *device, AgDeviceKnn *knn, int64_t first, int64_t n,
			   AgDeviceNeighbor *found, int32_t *n_found)
{
	int64_t n_tiles =
		(n + TILE_QUERIES - 1) / TILE_QUERIES * ((knn->spec.n_kept + TILE_ROWS - 1) / TILE_ROWS);

	AGK_TRY(agk_enter(device));
	AGK_LAUNCH(agk_knn_distances, agk_grid(device, n_tiles, 1), AGK_THREADS, 0, device->stream,
			   knn->view, first, n);
	AGK_LAUNCH(agk_knn_nearest, agk_grid(device, n, 1), AGK_THREADS, 0, device->stream, knn->view,
			   n);
	AGK_TRY(agk_launched(device, "looking for neighbours"));
	AGK_TRY(agk_download(device, n_found, knn->n_found.at, n * (int64_t) sizeof(int32_t)));
	return agk_download(device, found, knn->found.at,
						n * knn->spec.n_neighbors * (int64_t) sizeof(AgDeviceNeighbor));
}
