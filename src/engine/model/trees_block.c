/*
 * trees_block.c - see trees_block.h.
 */
#include <string.h>

#include "engine/model/trees_block.h"
#include "engine/model/trees_walk.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* The rows among `rows` whose category goes left. */
static __attribute__((noinline)) uint64_t
rows_in_set(const AgBlock *block, const AgTreeNode *node, uint64_t rows)
{
	const AgTrees *trees = block->trees;
	uint64_t left = 0;

	if (node->feature >= trees->n_features)
	{
		const uint32_t *column = block->codes[node->feature - trees->n_features];

		for (uint64_t rest = rows; rest != 0; rest &= rest - 1)
		{
			int i = __builtin_ctzll(rest);

			left |= (uint64_t) ag_node_goes_left(trees, node, (double) column[i]) << i;
		}
		return left;
	}

	for (uint64_t rest = rows; rest != 0; rest &= rest - 1)
	{
		int i = __builtin_ctzll(rest);
		double x = block->features[(size_t) i * trees->n_features + node->feature];

		left |= (uint64_t) ag_node_goes_left(trees, node, x) << i;
	}
	return left;
}

/*
 * A tree's nodes, parents first: UP_TO(column, cut) is the rows whose byte is at most cut, IN_SET(columns, set) those whose category is
 * in a set of bytes, where HAS_SETS.
 */
#define DEFINE_REACH(name, TARGET, UP_TO, HAS_SETS, IN_SET)                                        \
	TARGET static void name(const AgBlock *block, uint32_t t, uint64_t *reached)                   \
	{                                                                                              \
		const AgTreeRows *prepared = block->trees->rows;                                           \
		const AgTree *tree = &block->trees->trees[t];                                              \
		const AgTreeNode *originals = block->trees->nodes + tree->first_node;                      \
		const AgRowsNode *nodes = prepared->nodes + tree->first_node;                              \
		const uint8_t *set = prepared->sets + prepared->trees[t].first_set * AG_ROWS_SET_BYTES;    \
		const uint8_t(*columns)[AG_ROWS_BLOCK] = block->columns;                                   \
		uint32_t n = tree->n_nodes;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < n && !prepared->has_categories; i++)                              \
		{                                                                                          \
			uint64_t left = reached[i] & UP_TO(columns[nodes[i].column], nodes[i].cut);            \
                                                                                                   \
			reached[nodes[i].right] = reached[i] ^ left;                                           \
			reached[nodes[i].left] = left;                                                         \
		}                                                                                          \
		for (uint32_t i = 0; i < n && prepared->has_categories; i++)                               \
		{                                                                                          \
			uint64_t rows = reached[i], left;                                                      \
                                                                                                   \
			if (nodes[i].ask == AG_ROWS_NUMBER)                                                    \
				left = rows & UP_TO(columns[nodes[i].column], nodes[i].cut);                       \
			else if (HAS_SETS && nodes[i].ask == AG_ROWS_SET)                                      \
			{                                                                                      \
				left = rows & IN_SET(columns + nodes[i].column, set);                              \
				set += AG_ROWS_SET_BYTES;                                                          \
			}                                                                                      \
			else                                                                                   \
				left = rows_in_set(block, &originals[i], rows);                                    \
			reached[nodes[i].left] = left;                                                         \
			reached[nodes[i].right] = rows ^ left;                                                 \
		}                                                                                          \
	}

/* The bytes of one category. */
static inline __attribute__((always_inline)) void
fill_code(const AgRowsCode *code, uint32_t n_rows, uint32_t n_features, const double *features,
		  uint8_t (*columns)[AG_ROWS_BLOCK])
{
	for (uint32_t i = 0; i < n_rows; i++)
	{
		double x = features[(size_t) i * n_features + code->feature];
		uint32_t c = x >= 0.0 && x < (double) AG_ROWS_UNSEEN ? (uint32_t) x
					 : x == x                                ? AG_ROWS_UNSEEN
															 : AG_ROWS_MISSING;

		columns[code->column][i] = (uint8_t) (c / 8);
		columns[code->column + 1][i] = (uint8_t) (1u << c % 8);
	}
}

/*
 * The masks of the rows that go left at each level of a full tree. of(i) is the i-th comparison's; the choice is made of halves, for the
 * root's decision is the greatest part of a place.
 */
#define FIND_PLANES(depth, UP_TO)                                                                  \
	do                                                                                             \
	{                                                                                              \
		uint64_t masks[1 << (AG_ROWS_FULL_DEPTH - 2)];                                             \
                                                                                                   \
		planes[0] = UP_TO(columns[cuts[0].column], cuts[0].cut);                                   \
		for (int level = 1; level < (depth); level++)                                              \
		{                                                                                          \
			const AgRowsCut *at = cuts + (1 << level) - 1;                                         \
			int half = 1 << (level - 1);                                                           \
                                                                                                   \
			for (int k = 0; k < half; k++)                                                         \
			{                                                                                      \
				uint64_t low = UP_TO(columns[at[k].column], at[k].cut);                            \
				uint64_t high = UP_TO(columns[at[k + half].column], at[k + half].cut);             \
                                                                                                   \
				masks[k] = low ^ ((low ^ high) & planes[0]);                                       \
			}                                                                                      \
			for (int above = 1; half > 1; above++)                                                 \
			{                                                                                      \
				half /= 2;                                                                         \
				for (int k = 0; k < half; k++)                                                     \
					masks[k] ^= (masks[k] ^ masks[k + half]) & planes[above];                      \
			}                                                                                      \
			planes[level] = masks[0];                                                              \
		}                                                                                          \
	} while (0)

/* Planes of tree t; the usual depth once more by itself, so that loops have known lengths. */
#define DEFINE_PLANES(name, TARGET, UP_TO, HAS_SETS, IN_SET)                                       \
	TARGET static inline void name(const AgBlock *block, uint32_t t, uint64_t *planes)             \
	{                                                                                              \
		const AgRowsTree *tree = &block->trees->rows->trees[t];                                    \
		const AgRowsCut *cuts = block->trees->rows->cuts + tree->first_cut;                        \
		const uint8_t *set = block->trees->rows->sets + tree->first_set * AG_ROWS_SET_BYTES;       \
		const uint8_t(*columns)[AG_ROWS_BLOCK] = block->columns;                                   \
                                                                                                   \
		if (tree->form == AG_ROWS_SYMMETRIC)                                                       \
			for (uint32_t level = 0; level < tree->depth; level++)                                 \
			{                                                                                      \
				const uint8_t(*column)[AG_ROWS_BLOCK] = columns + cuts[level].column;              \
                                                                                                   \
				if (cuts[level].ask == AG_ROWS_NUMBER)                                             \
					planes[level] = UP_TO(*column, cuts[level].cut);                               \
				else if (HAS_SETS && cuts[level].ask == AG_ROWS_SET)                               \
				{                                                                                  \
					planes[level] = IN_SET(column, set);                                           \
					set += AG_ROWS_SET_BYTES;                                                      \
				}                                                                                  \
				else                                                                               \
					planes[level] = level_in_set(block, t, level);                                 \
			}                                                                                      \
		else if (tree->depth == AG_ROWS_FULL_DEPTH)                                                \
			FIND_PLANES(AG_ROWS_FULL_DEPTH, UP_TO);                                                \
		else                                                                                       \
			FIND_PLANES((int) tree->depth, UP_TO);                                                 \
	}

/* The rows that go left on a level of a symmetric tree that asks for a category. */
static __attribute__((noinline)) uint64_t
level_in_set(const AgBlock *block, uint32_t t, uint32_t level)
{
	const AgTreeNode *nodes = block->trees->nodes + block->trees->trees[t].first_node;
	int32_t at = 0;

	for (; level > 0; level--)
		at = nodes[at].left;
	return rows_in_set(block, &nodes[at], ~UINT64_C(0) >> (AG_ROWS_BLOCK - block->n_rows));
}

/* --- any CPU, or as compilers make it of the same text */

/* The bytes of one input. Step by step for all rows, so that their searches overlap. */
static inline __attribute__((always_inline)) void
fill_bytes(const AgRowsInput *input, uint32_t n_rows, uint32_t n_features, const double *features,
		   uint8_t (*columns)[AG_ROWS_BLOCK])
{
	double x[AG_ROWS_BLOCK];
	uint32_t at[AG_ROWS_BLOCK] = {0};

	for (uint32_t i = 0; i < n_rows; i++)
		x[i] = features[(size_t) i * n_features + input->feature];
	for (int bit = 31 - __builtin_clz(input->n_cuts); bit >= 0; bit--)
	{
		const double *cuts = input->cuts + (1u << bit) - 1;

		for (uint32_t i = 0; i < n_rows; i++)
			at[i] += (uint32_t) (cuts[at[i]] < x[i]) << bit;
	}
	for (int side = 0; side < 2; side++)
		if (input->column[side] >= 0)
			for (uint32_t i = 0; i < n_rows; i++)
				columns[input->column[side]][i] = (uint8_t) (x[i] == x[i] ? at[i]
															 : side == 0  ? 255
																		  : 0);
}

/* Eight planes, bit b of each row's number, as bytes (the 8 x 8 bit transposition of Warren's Hacker's Delight, section 7-3). */
static inline __attribute__((always_inline)) void
turn_planes(const uint64_t planes[8], uint8_t *leaf_of)
{
	for (int g = 0; g < AG_ROWS_BLOCK / 8; g++)
	{
		uint64_t x = 0, t;

		for (int b = 0; b < 8; b++)
			x |= (planes[b] >> (8 * g) & 0xFF) << (8 * b);
		t = (x ^ x >> 7) & UINT64_C(0x00AA00AA00AA00AA);
		x ^= t ^ t << 7;
		t = (x ^ x >> 14) & UINT64_C(0x0000CCCC0000CCCC);
		x ^= t ^ t << 14;
		t = (x ^ x >> 28) & UINT64_C(0x00000000F0F0F0F0);
		x ^= t ^ t << 28;
		memcpy(leaf_of + 8 * g, &x, 8);
	}
}

/*
 * The leaf of each row, of at most 256: the masks are folded into eight planes, plane b of the rows whose leaf's number
 * has bit b. Nothing branches on a mask: a loop over the rows of each leaf would be mispredicted leaf after leaf.
 */
static inline __attribute__((always_inline)) void
number_leaves(const uint64_t *masks, uint32_t n_leaves, uint8_t *leaf_of)
{
	uint64_t planes[8] = {0};

	for (uint32_t l = 0; l < n_leaves; l++)
		for (int b = 0; b < 8; b++)
			planes[b] |= masks[l] & (UINT64_C(0) - (l >> b & 1));
	turn_planes(planes, leaf_of);
}

/* The root's level is the highest bit. */
#define DEFINE_FIND(name, TARGET, PLANES)                                                          \
	TARGET static void name(const AgBlock *block, uint32_t t, uint8_t *leaf_of)                    \
	{                                                                                              \
		uint32_t depth = block->trees->rows->trees[t].depth;                                       \
		uint64_t levels[AG_ROWS_FULL_DEPTH] = {0}, planes[8] = {0};                                \
                                                                                                   \
		PLANES(block, t, levels);                                                                  \
		for (uint32_t level = 0; level < depth; level++)                                           \
			planes[depth - 1 - level] = levels[level];                                             \
		turn_planes(planes, leaf_of);                                                              \
	}

#define DEFINE_ADD(name, TARGET, FIND)                                                             \
	TARGET static void name(const AgBlock *block, uint32_t t, double *scores)                      \
	{                                                                                              \
		const AgTreeRows *rows = block->trees->rows;                                               \
		const double *leaves = rows->leaves + rows->trees[t].first_leaf;                           \
		uint8_t leaf_of[AG_ROWS_BLOCK];                                                            \
                                                                                                   \
		FIND(block, t, leaf_of);                                                                   \
		for (uint32_t i = 0; i < block->n_rows; i++)                                               \
			scores[i] += leaves[leaf_of[i]];                                                       \
	}

static inline uint64_t
up_to_portable(const uint8_t *column, uint8_t cut)
{
	uint64_t rows = 0;

#ifdef __SSE2__
	__m128i most = _mm_set1_epi8((char) cut);

	for (int i = 0; i < AG_ROWS_BLOCK / 16; i++)
	{
		__m128i bytes = _mm_load_si128((const __m128i *) column + i);
		__m128i is_left = _mm_cmpeq_epi8(_mm_min_epu8(bytes, most), bytes);

		rows |= (uint64_t) (uint32_t) _mm_movemask_epi8(is_left) << (16 * i);
	}
#else
	for (int i = 0; i < AG_ROWS_BLOCK; i++)
		rows |= (uint64_t) (column[i] <= cut) << i;
#endif
	return rows;
}

/* Row by row is faster. */
#define no_set(columns, set) ((void) (columns), (void) (set), UINT64_C(0))

static void
fill_portable(const AgRowsInput *input, uint32_t n_rows, uint32_t n_features,
			  const double *features, uint8_t (*columns)[AG_ROWS_BLOCK])
{
	fill_bytes(input, n_rows, n_features, features, columns);
}

static void
number_portable(const uint64_t *masks, uint32_t n_leaves, uint8_t *leaf_of)
{
	number_leaves(masks, n_leaves, leaf_of);
}

DEFINE_REACH(reach_portable, , up_to_portable, false, no_set)
DEFINE_PLANES(planes_portable, , up_to_portable, false, no_set)
DEFINE_FIND(find_portable, , planes_portable)
DEFINE_ADD(add_portable, , find_portable)

#if defined(__x86_64__)

/* --- AVX2 */

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline uint64_t
up_to_avx2(const uint8_t *column, uint8_t cut)
{
	__m256i most = _mm256_set1_epi8((char) cut);
	__m256i low = _mm256_load_si256((const __m256i *) column);
	__m256i high = _mm256_load_si256((const __m256i *) column + 1);
	__m256i low_left = _mm256_cmpeq_epi8(_mm256_min_epu8(low, most), low);
	__m256i high_left = _mm256_cmpeq_epi8(_mm256_min_epu8(high, most), high);

	return (uint64_t) (uint32_t) _mm256_movemask_epi8(high_left) << 32 |
		   (uint32_t) _mm256_movemask_epi8(low_left);
}

/* The set's byte of each row, from the half that its number's fifth bit says, and the row's bit in it. */
AVX2 static inline uint32_t
half_in_set_avx2(__m256i which, __m256i bit, __m256i low, __m256i high)
{
	__m256i byte =
		_mm256_blendv_epi8(_mm256_shuffle_epi8(low, which), _mm256_shuffle_epi8(high, which),
						   _mm256_slli_epi16(which, 3));

	return (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(byte, bit), bit));
}

AVX2 static inline uint64_t
in_set_avx2(const uint8_t (*columns)[AG_ROWS_BLOCK], const uint8_t *set)
{
	const __m256i *which = (const __m256i *) columns[0], *bit = (const __m256i *) columns[1];
	__m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) set));
	__m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) set + 1));

	return half_in_set_avx2(_mm256_load_si256(which), _mm256_load_si256(bit), low, high) |
		   (uint64_t) half_in_set_avx2(_mm256_load_si256(which + 1), _mm256_load_si256(bit + 1),
									   low, high)
			   << 32;
}

AVX2 static void
code_avx2(const AgRowsCode *code, uint32_t n_rows, uint32_t n_features, const double *features,
		  uint8_t (*columns)[AG_ROWS_BLOCK])
{
	fill_code(code, n_rows, n_features, features, columns);
}

AVX2 static void
fill_avx2(const AgRowsInput *input, uint32_t n_rows, uint32_t n_features, const double *features,
		  uint8_t (*columns)[AG_ROWS_BLOCK])
{
	fill_bytes(input, n_rows, n_features, features, columns);
}

AVX2 static void
number_avx2(const uint64_t *masks, uint32_t n_leaves, uint8_t *leaf_of)
{
	number_leaves(masks, n_leaves, leaf_of);
}

DEFINE_REACH(reach_avx2, AVX2, up_to_avx2, true, in_set_avx2)
DEFINE_PLANES(planes_avx2, AVX2, up_to_avx2, true, in_set_avx2)
DEFINE_FIND(find_avx2, AVX2, planes_avx2)
DEFINE_ADD(add_avx2, AVX2, find_avx2)

/* --- AVX-512 */

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))

AVX512 static inline uint64_t
up_to_avx512(const uint8_t *column, uint8_t cut)
{
	uint64_t rows = _mm512_cmple_epu8_mask(_mm512_load_si512(column), _mm512_set1_epi8((char) cut));

	/* Out of the mask registers: what follows is slower in them, and compilers don't know. */
	__asm__("" : "+r"(rows));
	return rows;
}

/* As in_set_avx2. */
AVX512 static inline uint64_t
in_set_avx512(const uint8_t (*columns)[AG_ROWS_BLOCK], const uint8_t *set)
{
	__m512i which = _mm512_load_si512(columns[0]), bit = _mm512_load_si512(columns[1]);
	__m512i low = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *) set));
	__m512i high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *) set + 1));
	__mmask64 is_high = _mm512_test_epi8_mask(which, _mm512_set1_epi8(16));
	__m512i byte = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(low, which), is_high, high, which);
	uint64_t rows = _mm512_test_epi8_mask(byte, bit);

	__asm__("" : "+r"(rows)); /* as above */
	return rows;
}

AVX512 static void
code_avx512(const AgRowsCode *code, uint32_t n_rows, uint32_t n_features, const double *features,
			uint8_t (*columns)[AG_ROWS_BLOCK])
{
	fill_code(code, n_rows, n_features, features, columns);
}

/*
 * A step of the search for all rows that chooses among n <= 16 cuts: they are in registers. The first steps are the wide
 * ones, with few cuts in question.
 */
AVX512 static inline void
step_avx512(const AgRowsInput *input, uint32_t n, int bit, uint32_t n_rows, const double *x,
			uint32_t *at)
{
	const double *cuts = input->cuts + (1u << bit) - 1;
	double few[16] = {0};
	__m256i step = _mm256_set1_epi32(1 << bit);
	__m512d low, high;

	for (uint32_t i = 0; i < n; i++)
		few[i] = cuts[(size_t) i << (bit + 1)];
	low = _mm512_loadu_pd(few);
	high = _mm512_loadu_pd(few + 8);
	for (uint32_t i = 0; i < n_rows; i += 8)
	{
		__m256i place = _mm256_load_si256((const __m256i *) (at + i));
		__m512i which = _mm512_cvtepu32_epi64(_mm256_srli_epi32(place, (unsigned) bit + 1));
		__m512d cut = _mm512_permutex2var_pd(low, which, high);
		__mmask8 is_below = _mm512_cmp_pd_mask(cut, _mm512_load_pd(x + i), _CMP_LT_OQ);

		_mm256_store_si256((__m256i *) (at + i),
						   _mm256_mask_add_epi32(place, is_below, place, step));
	}
}

/* The last three steps are one: of eight neighbours it is counted how many are below. Gathers would take longer. */
AVX512 static void
fill_avx512(const AgRowsInput *input, uint32_t n_rows, uint32_t n_features, const double *features,
			uint8_t (*columns)[AG_ROWS_BLOCK])
{
	double x[AG_ROWS_BLOCK] __attribute__((aligned(64)));
	uint32_t at[AG_ROWS_BLOCK] __attribute__((aligned(64))) = {0};
	int bit = 31 - __builtin_clz(input->n_cuts);

	for (uint32_t i = 0; i < AG_ROWS_BLOCK; i++)
		x[i] = i < n_rows ? features[(size_t) i * n_features + input->feature] : 0.0;
	for (; bit >= 0 && (input->n_cuts + 1) >> (bit + 1) <= 16; bit--)
		step_avx512(input, (input->n_cuts + 1) >> (bit + 1), bit, n_rows, x, at);
	for (uint32_t i = 0; bit >= 0 && i < n_rows; i++)
	{
		__m512d cuts = _mm512_loadu_pd(input->cuts + at[i]);

		at[i] += (uint32_t) __builtin_popcount(
			_mm512_cmp_pd_mask(cuts, _mm512_set1_pd(x[i]), _CMP_LT_OQ));
	}
	for (uint32_t i = 0; i < n_rows; i += 8)
	{
		__m512d value = _mm512_load_pd(x + i);
		__mmask8 is_number = _mm512_cmp_pd_mask(value, value, _CMP_ORD_Q);
		__m128i bytes = _mm256_cvtepi32_epi8(_mm256_load_si256((const __m256i *) (at + i)));

		for (int side = 0; side < 2; side++)
			if (input->column[side] >= 0)
				_mm_storel_epi64(
					(__m128i *) &columns[input->column[side]][i],
					_mm_mask_mov_epi8(_mm_set1_epi8(side == 0 ? -1 : 0), is_number, bytes));
	}
}

/* Each row has one leaf, so the order doesn't matter: four chains. */
AVX512 static void
number_avx512(const uint64_t *masks, uint32_t n_leaves, uint8_t *leaf_of)
{
	__m512i numbers[4], leaf = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);
	uint32_t l = 0;

	numbers[0] = numbers[1] = numbers[2] = numbers[3] = leaf;
	for (; l + 4 <= n_leaves; l += 4)
		for (int k = 0; k < 4; k++)
		{
			numbers[k] = _mm512_mask_mov_epi8(numbers[k], masks[l + (uint32_t) k], leaf);
			leaf = _mm512_add_epi8(leaf, one);
		}
	for (; l < n_leaves; l++)
	{
		numbers[0] = _mm512_mask_mov_epi8(numbers[0], masks[l], leaf);
		leaf = _mm512_add_epi8(leaf, one);
	}
	numbers[0] = _mm512_or_si512(numbers[0], numbers[1]);
	numbers[2] = _mm512_or_si512(numbers[2], numbers[3]);
	_mm512_storeu_si512(leaf_of, _mm512_or_si512(numbers[0], numbers[2]));
}

DEFINE_REACH(reach_avx512, AVX512, up_to_avx512, true, in_set_avx512)
DEFINE_PLANES(planes_avx512, AVX512, up_to_avx512, true, in_set_avx512)

/* Each row's leaf as a byte: the root's level is the highest bit. */
AVX512 static inline __m512i
leaves_avx512(const uint64_t *levels, uint32_t depth)
{
	__m512i leaf = _mm512_setzero_si512();

	for (uint32_t level = 0; level < depth; level++)
		leaf = _mm512_mask_add_epi8(leaf, levels[level], leaf,
									_mm512_set1_epi8((char) (1 << (depth - 1 - level))));
	return leaf;
}

AVX512 static void
find_avx512(const AgBlock *block, uint32_t t, uint8_t *leaf_of)
{
	uint64_t levels[AG_ROWS_FULL_DEPTH] = {0};

	planes_avx512(block, t, levels);
	_mm512_storeu_si512(leaf_of, leaves_avx512(levels, block->trees->rows->trees[t].depth));
}

/* The values are in registers, sixteen in a pair: the lower four bits choose among each, the two others between them. */
AVX512 static void
add_avx512(const AgBlock *block, uint32_t t, double *scores)
{
	const AgTreeRows *rows = block->trees->rows;
	const double *leaves = rows->leaves + rows->trees[t].first_leaf;
	uint32_t depth = rows->trees[t].depth;
	uint64_t levels[AG_ROWS_FULL_DEPTH] = {0};
	uint64_t bit4 = 0, bit5 = 0;
	uint8_t leaf_of[AG_ROWS_BLOCK] __attribute__((aligned(64)));
	__m512d table[8];

	planes_avx512(block, t, levels);
	_mm512_store_si512(leaf_of, leaves_avx512(levels, depth));
	if (depth > 4)
		bit4 = levels[depth - 5];
	if (depth > 5)
		bit5 = levels[depth - 6];
	for (uint32_t k = 0; k < 8; k++)
		table[k] = _mm512_loadu_pd(leaves + (8 * k < (1u << depth) ? 8 * k : 8 * (k & 1)));
	for (uint32_t i = 0; i < block->n_rows; i += 8)
	{
		__mmask8 is_row =
			block->n_rows - i < 8 ? (__mmask8) ((1u << (block->n_rows - i)) - 1) : 0xff;
		__m512i which = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *) (leaf_of + i)));
		__mmask8 b4 = (__mmask8) (bit4 >> i), b5 = (__mmask8) (bit5 >> i);
		__m512d low = _mm512_permutex2var_pd(table[0], which, table[1]);
		__m512d sum = _mm512_maskz_loadu_pd(is_row, scores + i);

		if (depth > 4)
			low = _mm512_mask_blend_pd(b4, low, _mm512_permutex2var_pd(table[2], which, table[3]));
		if (depth > 5)
		{
			__m512d high = _mm512_permutex2var_pd(table[4], which, table[5]);

			high =
				_mm512_mask_blend_pd(b4, high, _mm512_permutex2var_pd(table[6], which, table[7]));
			low = _mm512_mask_blend_pd(b5, low, high);
		}
		_mm512_mask_storeu_pd(scores + i, is_row, _mm512_add_pd(sum, low));
	}
}
#endif

const AgBlockOps *
ag_block_ops(AgCpuLevel level)
{
	static const AgBlockOps portable = {fill_portable,   NULL,          reach_portable,
										number_portable, find_portable, add_portable};
#if defined(__x86_64__)
	static const AgBlockOps avx2 = {fill_avx2,   code_avx2, reach_avx2,
									number_avx2, find_avx2, add_avx2};
	static const AgBlockOps avx512 = {fill_avx512,   code_avx512, reach_avx512,
									  number_avx512, find_avx512, add_avx512};

	if (level == AG_CPU_AVX512)
		return &avx512;
	if (level == AG_CPU_AVX2)
		return &avx2;
#endif
	(void) level;
	return &portable;
}
