/*
 * partition.c - splitting row lists.
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

typedef struct AgPartitionTask
{
	const AgContext *ctx;
	AgCpuLevel level;
	const uint8_t *column;
	bool is_far;           /* column is worth fetching ahead */
	uint32_t left_bits[8]; /* bit b of the 256: bin b goes left */
	const AgRowList *from;
	AgRowList *to;
	int64_t n_rows;
	AgPartitionScratch *scratch;
	_Atomic int64_t n_left, n_right;
} AgPartitionTask;

/*
 * Splits rows [begin, end) into scratch behind the n_left and end - begin - n_left that are there. Both sides are written
 * always and one of them advances: no branch to mispredict.
 */
static int64_t
split_plain(const AgPartitionTask *task, int64_t begin, int64_t end, int64_t left, int64_t right,
			AgPartitionScratch *scratch)
{
	const uint32_t *ids = task->from->ids, *grads = task->from->grads;

	for (int64_t i = begin; i < end; i++)
	{
		unsigned bin = task->column[ids[i]];
		unsigned goes_left = task->left_bits[bin >> 5] >> (bin & 31) & 1;

		scratch->left_ids[left] = ids[i];
		scratch->left_grads[left] = grads[i];
		scratch->right_ids[right] = ids[i];
		scratch->right_grads[right] = grads[i];
		left += goes_left;
		right += 1 - goes_left;
	}
	return left;
}

#if defined(__x86_64__)
/*
 * Sixteen rows at a time: the bins are gathered as the aligned words that hold them, looked up in the bits, and both
 * sides are compressed. Stores are whole vectors; what is beyond the end is overwritten by the next.
 */
__attribute__((target("avx512f,avx512vl,popcnt"))) static int64_t
split_avx512(const AgPartitionTask *task, int64_t begin, int64_t end, AgPartitionScratch *scratch)
{
	const uint32_t *ids = task->from->ids, *grads = task->from->grads;
	const __m512i bits =
		_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *) task->left_bits));
	const __m512i low5 = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);
	const __m512i byte = _mm512_set1_epi32(255), low2 = _mm512_set1_epi32(3);
	int64_t left = 0, right = 0, i = begin;

	for (; i + 16 <= end; i += 16)
	{
		if (task->is_far && i + AG_PARTITION_AHEAD + 16 <= end)
			for (int k = 0; k < 16; k++)
				__builtin_prefetch(task->column + ids[i + AG_PARTITION_AHEAD + k]);
		__m512i id = _mm512_loadu_si512(ids + i), grad = _mm512_loadu_si512(grads + i);
		__m512i word =
			_mm512_i32gather_epi32(_mm512_srli_epi32(id, 2), (const int *) task->column, 4);
		__m512i shift = _mm512_slli_epi32(_mm512_and_si512(id, low2), 3);
		__m512i bin = _mm512_and_si512(_mm512_srlv_epi32(word, shift), byte);
		__m512i set = _mm512_permutexvar_epi32(_mm512_srli_epi32(bin, 5), bits);
		__m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(bin, low5));
		__mmask16 goes_left = _mm512_test_epi32_mask(set, bit);
		__mmask16 goes_right = (__mmask16) ~goes_left;
		int n_left = __builtin_popcount(goes_left);

		_mm512_storeu_si512(scratch->left_ids + left, _mm512_maskz_compress_epi32(goes_left, id));
		_mm512_storeu_si512(scratch->left_grads + left,
							_mm512_maskz_compress_epi32(goes_left, grad));
		_mm512_storeu_si512(scratch->right_ids + right,
							_mm512_maskz_compress_epi32(goes_right, id));
		_mm512_storeu_si512(scratch->right_grads + right,
							_mm512_maskz_compress_epi32(goes_right, grad));
		left += n_left;
		right += 16 - n_left;
	}
	return split_plain(task, i, end, left, right, scratch);
}
#endif

static int64_t
split_chunk(const AgPartitionTask *task, int64_t begin, int64_t end, AgPartitionScratch *scratch)
{
#if defined(__x86_64__)
	if (task->level == AG_CPU_AVX512)
		return split_avx512(task, begin, end, scratch);
#endif
	return split_plain(task, begin, end, 0, 0, scratch);
}

static void
place(const AgRowList *to, int64_t at, const uint32_t *ids, const uint32_t *grads, int64_t n)
{
	memcpy(to->ids + at, ids, (size_t) n * sizeof *ids);
	memcpy(to->grads + at, grads, (size_t) n * sizeof *grads);
}

static void
partition_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgPartitionTask *task = arg;
	AgPartitionScratch *scratch = task->scratch + thread;
	int64_t left, right, at;

	if (ag_cancelled(task->ctx))
		return;
	left = split_chunk(task, begin, end, scratch);
	right = end - begin - left;
	at = atomic_fetch_add_explicit(&task->n_left, left, memory_order_relaxed);
	place(task->to, at, scratch->left_ids, scratch->left_grads, left);
	at = atomic_fetch_add_explicit(&task->n_right, right, memory_order_relaxed);
	place(task->to, task->n_rows - at - right, scratch->right_ids, scratch->right_grads, right);
}

AgStatus
ag_partition(const AgContext *ctx, AgCpuLevel level, const AgBins *bins, const AgSplit *split,
			 const AgRowList *from, int64_t n_rows, AgRowList *to, AgPartitionScratch *scratch,
			 int64_t *n_left)
{
	AgPartitionTask task = {.ctx = ctx,
							.level = level,
							.column = bins->columns + split->feature * bins->column_stride,
							.is_far = bins->column_stride > AG_PARTITION_FAR,
							.from = from,
							.to = to,
							.n_rows = n_rows,
							.scratch = scratch};

	ag_split_bits(split, task.left_bits);
	ag_pool_run(n_rows < AG_PARTITION_PARALLEL ? NULL : ctx->pool, n_rows, AG_PARTITION_CHUNK,
				partition_task, &task);
	*n_left = atomic_load(&task.n_left);
	return ag_check_cancel(ctx);
}
