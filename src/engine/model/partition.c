/*
 * partition.c - splitting row lists.
 *
 * One thread writes left rows where they belong and right rows over what it has read already, then moves those; several
 * threads split chunks into rooms of their own and reserve places for the two halves.
 */
#include "engine/model/partition.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/base/threads.h"

#define AG_PARTITION_AHEAD 64   /* rows whose bins are fetched ahead of their use */
#define AG_PARTITION_FAR 262144 /* bytes of a column beyond which it is likely not in the cache */
#define AG_PARTITION_PARALLEL 16384 /* rows below which one thread is quicker */
#define AG_PARTITION_ALONE 65536    /* rows between looks at the cancel flag */

/* The bins that decide. */
typedef struct AgPartitionSide
{
	const uint8_t *column;
	int64_t n_bytes;                 /* that may be read of it */
	bool is_far;                     /* column is worth fetching ahead */
	uint32_t left_bits[8];           /* bit b of the 256: bin b goes left */
	uint8_t goes_left[AG_HIST_BINS]; /* the same as 0 or 1 */
} AgPartitionSide;

/* Splits ids[n] into left, returning how many, and right. Either may lie at or before ids itself: n slots each. */
typedef int64_t (*AgPartitionSplit)(const AgPartitionSide *side, const uint32_t *ids, int64_t n,
									uint32_t *left, uint32_t *right);

typedef struct AgPartitionTask
{
	const AgContext *ctx;
	AgPartitionSide side;
	AgPartitionSplit split;
	const uint32_t *from;
	uint32_t *to;
	int64_t n_rows;
	AgPartitionScratch *scratch;
	_Atomic int64_t n_left, n_right;
} AgPartitionTask;

/* Both sides are written always and one of them advances: no branch to mispredict. */
static int64_t
split_plain(const AgPartitionSide *side, const uint32_t *ids, int64_t n, uint32_t *left,
			uint32_t *right)
{
	int64_t n_left = 0;

	for (int64_t i = 0; i < n; i++)
	{
		uint32_t id = ids[i];

		left[n_left] = id;
		right[i - n_left] = id;
		n_left += side->goes_left[side->column[id]];
	}
	return n_left;
}

#if defined(__x86_64__)
/*
 * Four rows at a time: what sorts the left ones to the front stands in a table, by which of them go left. (AVX2's own gather
 * takes longer than four loads.)
 */
#define AG_ROW(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
__attribute__((target("avx2,popcnt"))) static int64_t
split_avx2(const AgPartitionSide *side, const uint32_t *ids, int64_t n, uint32_t *left,
		   uint32_t *right)
{
	static const uint8_t orders[16][16] = {
		{AG_ROW(0), AG_ROW(0), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(0), AG_ROW(0), AG_ROW(0)},
		{AG_ROW(1), AG_ROW(0), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(1), AG_ROW(0), AG_ROW(0)},
		{AG_ROW(2), AG_ROW(0), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(2), AG_ROW(0), AG_ROW(0)},
		{AG_ROW(1), AG_ROW(2), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(1), AG_ROW(2), AG_ROW(0)},
		{AG_ROW(3), AG_ROW(0), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(3), AG_ROW(0), AG_ROW(0)},
		{AG_ROW(1), AG_ROW(3), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(1), AG_ROW(3), AG_ROW(0)},
		{AG_ROW(2), AG_ROW(3), AG_ROW(0), AG_ROW(0)}, {AG_ROW(0), AG_ROW(2), AG_ROW(3), AG_ROW(0)},
		{AG_ROW(1), AG_ROW(2), AG_ROW(3), AG_ROW(0)}, {AG_ROW(0), AG_ROW(1), AG_ROW(2), AG_ROW(3)}};
	const uint8_t *column = side->column, *goes_left = side->goes_left;
	int64_t n_left = 0, i = 0;

	for (; i + 4 <= n; i += 4)
	{
		__m128i id = _mm_loadu_si128((const __m128i *) (ids + i));
		unsigned which = goes_left[column[ids[i + 3]]];

		which = 2 * which + goes_left[column[ids[i + 2]]];
		which = 2 * which + goes_left[column[ids[i + 1]]];
		which = 2 * which + goes_left[column[ids[i]]];
		_mm_storeu_si128((__m128i *) (left + n_left),
						 _mm_shuffle_epi8(id, _mm_loadu_si128((const __m128i *) orders[which])));
		_mm_storeu_si128(
			(__m128i *) (right + i - n_left),
			_mm_shuffle_epi8(id, _mm_loadu_si128((const __m128i *) orders[15 - which])));
		n_left += __builtin_popcount(which);
	}
	return n_left + split_plain(side, ids + i, n - i, left + n_left, right + i - n_left);
}

#define AG_PARTITION_AVX512 "avx512f,avx512bw,avx512vl,popcnt"

/* Bins of sixteen rows from the aligned words that hold them. */
__attribute__((target(AG_PARTITION_AVX512))) static inline __m512i
gather_bins(const AgPartitionSide *side, __m512i id)
{
	const __m512i byte = _mm512_set1_epi32(255), low2 = _mm512_set1_epi32(3);
	__m512i word = _mm512_i32gather_epi32(_mm512_srli_epi32(id, 2), (const int *) side->column, 4);
	__m512i shift = _mm512_slli_epi32(_mm512_and_si512(id, low2), 3);

	return _mm512_and_si512(_mm512_srlv_epi32(word, shift), byte);
}

/* Looks bins up in the bits and compresses both sides; returns how many went left. Stores are whole vectors. */
__attribute__((target(AG_PARTITION_AVX512))) static inline int
place_sixteen(__m512i bits, __m512i bin, __m512i id, uint32_t *left, uint32_t *right)
{
	const __m512i low5 = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
	__m512i set = _mm512_permutexvar_epi32(_mm512_srli_epi32(bin, 5), bits);
	__m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(bin, low5));
	__mmask16 goes_left = _mm512_test_epi32_mask(set, bit);
	__mmask16 goes_right = (__mmask16) ~goes_left;

	_mm512_storeu_si512(left, _mm512_maskz_compress_epi32(goes_left, id));
	_mm512_storeu_si512(right, _mm512_maskz_compress_epi32(goes_right, id));
	return __builtin_popcount(goes_left);
}

__attribute__((target(AG_PARTITION_AVX512))) static inline void
fetch_ahead(const AgPartitionSide *side, const uint32_t *ids, int64_t i, int64_t n)
{
	if (!side->is_far || i + AG_PARTITION_AHEAD + 16 > n)
		return;
	for (int k = 0; k < 16; k++)
		__builtin_prefetch(side->column + ids[i + AG_PARTITION_AHEAD + k]);
}

__attribute__((target(AG_PARTITION_AVX512))) static int64_t
split_avx512(const AgPartitionSide *side, const uint32_t *ids, int64_t n, uint32_t *left,
			 uint32_t *right)
{
	const __m512i bits =
		_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *) side->left_bits));
	int64_t n_left = 0, i = 0;

	for (; i + 16 <= n; i += 16)
	{
		__m512i id = _mm512_loadu_si512(ids + i);

		fetch_ahead(side, ids, i, n);
		n_left += place_sixteen(bits, gather_bins(side, id), id, left + n_left, right + i - n_left);
	}
	return n_left + split_plain(side, ids + i, n - i, left + n_left, right + i - n_left);
}

/*
 * The same where bytes can be picked out of registers: sixteen rows that lie within 128 need two loads, and no
 * gather, which takes as long as all the rest. In the large nodes near the root they do.
 */
#define AG_PARTITION_VBMI AG_PARTITION_AVX512 ",avx512vbmi"
__attribute__((target(AG_PARTITION_VBMI))) static int64_t
split_vbmi(const AgPartitionSide *side, const uint32_t *ids, int64_t n, uint32_t *left,
		   uint32_t *right)
{
	const __m512i bits =
		_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *) side->left_bits));
	const __m512i wide = _mm512_set1_epi32(128);
	int64_t n_left = 0, i = 0;

	for (; i + 16 <= n; i += 16)
	{
		__m512i id = _mm512_loadu_si512(ids + i), bin;
		__m512i offset = _mm512_sub_epi32(id, _mm512_set1_epi32((int) ids[i]));

		if (_mm512_cmplt_epu32_mask(offset, wide) == 0xffff &&
			(int64_t) ids[i] + 128 <= side->n_bytes)
		{
			const uint8_t *at = side->column + ids[i];
			__m512i index = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(offset));
			__m512i bytes = _mm512_permutex2var_epi8(_mm512_loadu_si512(at), index,
													 _mm512_loadu_si512(at + 64));

			bin = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(bytes));
		}
		else
		{
			fetch_ahead(side, ids, i, n);
			bin = gather_bins(side, id);
		}
		n_left += place_sixteen(bits, bin, id, left + n_left, right + i - n_left);
	}
	return n_left + split_plain(side, ids + i, n - i, left + n_left, right + i - n_left);
}
#endif

static AgPartitionSplit
best_split(AgCpuLevel level)
{
#if defined(__x86_64__)
	if (level == AG_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi"))
		return split_vbmi;
	if (level == AG_CPU_AVX512)
		return split_avx512;
	if (level == AG_CPU_AVX2)
		return split_avx2;
#endif
	(void) level;
	return split_plain;
}

static void
partition_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgPartitionTask *task = arg;
	AgPartitionScratch *scratch = task->scratch + thread;
	int64_t left, right, at;

	if (ag_cancelled(task->ctx))
		return;
	left = task->split(&task->side, task->from + begin, end - begin, scratch->left, scratch->right);
	right = end - begin - left;
	at = atomic_fetch_add_explicit(&task->n_left, left, memory_order_relaxed);
	memcpy(task->to + at, scratch->left, (size_t) left * sizeof(uint32_t));
	at = atomic_fetch_add_explicit(&task->n_right, right, memory_order_relaxed);
	memcpy(task->to + task->n_rows - at - right, scratch->right, (size_t) right * sizeof(uint32_t));
}

/* Whole vectors that are stored never reach beyond what was read: left and right rows together are no more. */
static void
partition_alone(AgPartitionTask *task, uint32_t *from)
{
	int64_t n_left = 0, n_right = 0;

	for (int64_t at = 0; at < task->n_rows && !ag_cancelled(task->ctx); at += AG_PARTITION_ALONE)
	{
		int64_t n = task->n_rows - at < AG_PARTITION_ALONE ? task->n_rows - at : AG_PARTITION_ALONE;
		int64_t left = task->split(&task->side, from + at, n, task->to + n_left, from + n_right);

		n_left += left;
		n_right += n - left;
	}
	memcpy(task->to + n_left, from, (size_t) n_right * sizeof *from);
	atomic_init(&task->n_left, n_left);
}

AgStatus
ag_partition(const AgContext *ctx, AgCpuLevel level, const AgBins *bins, const AgSplit *split,
			 uint32_t *from, int64_t n_rows, uint32_t *to, AgPartitionScratch *scratch,
			 int64_t *n_left)
{
	AgPartitionTask task = {.ctx = ctx,
							.side = {.column = bins->columns + split->feature * bins->column_stride,
									 .n_bytes = bins->column_stride,
									 .is_far = bins->column_stride > AG_PARTITION_FAR},
							.split = best_split(level),
							.from = from,
							.to = to,
							.n_rows = n_rows,
							.scratch = scratch};

	ag_split_bits(split, task.side.left_bits);
	for (int b = 0; b < AG_HIST_BINS; b++)
		task.side.goes_left[b] = task.side.left_bits[b >> 5] >> (b & 31) & 1;
	if (n_rows < AG_PARTITION_PARALLEL || ag_pool_size(ctx->pool) == 1)
		partition_alone(&task, from);
	else
		ag_pool_run(ctx->pool, n_rows, AG_PARTITION_CHUNK, partition_task, &task);
	*n_left = atomic_load(&task.n_left);
	return ag_check_cancel(ctx);
}
