/*
 * histogram_rows.c - adding rows to a narrow histogram.
 *
 * Rows are read from the row-major copy: one or two cache lines a row, then one addition a feature.
 */
#include "engine/model/histogram_rows.h"

#include <string.h>

#include "engine/model/vectors.h"

#define AG_HIST_AHEAD 32 /* rows fetched ahead of their use */
/* Rows beyond that length would leave room for so few of them that going from block to block costs more than it saves. */
#define AG_BLOCKED_STRIDE 128

bool
ag_hist_is_blocked(int64_t n_cells, int64_t row_stride)
{
	int64_t near_bytes = ag_cpu_near_bytes();

	return n_cells * (int64_t) sizeof(int64_t) > near_bytes + near_bytes / 4 && row_stride >= 16 &&
		   row_stride <= AG_BLOCKED_STRIDE;
}

/* int16:uint16 to int32:uint32. The low half is never negative, so no borrow passes between them. */
AG_INLINE int64_t
widen(uint32_t packed)
{
	return (int64_t) ((uint64_t) (int64_t) ag_packed_g(packed) << 32) + ag_packed_h(packed);
}

/* What the inner loops read, out of reach of the compiler's fear that a cell could be one of these. */
typedef struct AgRowSource
{
	const uint8_t *rows;
	int64_t stride;
	const uint32_t *ids, *grads;
} AgRowSource;

/* Fetches what row i of the list will need. */
AG_INLINE void
fetch_row(const AgRowSource *source, int64_t i)
{
	__builtin_prefetch(source->rows + (int64_t) source->ids[i] * source->stride);
	__builtin_prefetch(source->grads + source->ids[i]);
}

/* Eight features of a row, whose cells lie at constant distances: an update is one read-modify-write and little else. */
AG_INLINE void
add_eight(const uint8_t *bins, int64_t value, int64_t *at)
{
	uint64_t eight;

	memcpy(&eight, bins, sizeof eight);
	at[eight & 255] += value;
	at[AG_HIST_BINS + (eight >> 8 & 255)] += value;
	at[2 * AG_HIST_BINS + (eight >> 16 & 255)] += value;
	at[3 * AG_HIST_BINS + (eight >> 24 & 255)] += value;
	at[4 * AG_HIST_BINS + (eight >> 32 & 255)] += value;
	at[5 * AG_HIST_BINS + (eight >> 40 & 255)] += value;
	at[6 * AG_HIST_BINS + (eight >> 48 & 255)] += value;
	at[7 * AG_HIST_BINS + (eight >> 56)] += value;
}

/* What a row adds to a category's two cells, in one addition. */
typedef int64_t AgPair __attribute__((vector_size(16)));

AG_INLINE void
add_pair(int64_t *cells, unsigned bin, AgPair added)
{
	AgPair pair;

	memcpy(&pair, cells + 2 * bin, sizeof pair);
	pair += added;
	memcpy(cells + 2 * bin, &pair, sizeof pair);
}

static void
clear_cells(int64_t *cells, int64_t n)
{
	memset(cells, 0, (size_t) n * sizeof *cells);
}

/* Of n features with fixed cells. */
static void
clear_block(int64_t *cells, int n)
{
	clear_cells(cells, n * AG_HIST_BINS);
}

/* ---- all features of a row at once ---- */

/* Fixed cells. */
static void
add_rows_fixed(AgRowSource source, int n_features, int64_t begin, int64_t end, int64_t *cells)
{
	for (int64_t i = begin; i < end; i++)
	{
		const uint8_t *row = source.rows + (int64_t) source.ids[i] * source.stride;
		int64_t value = widen(source.grads[source.ids[i]]);
		int64_t *at = cells;
		int f = 0;

		if (i + AG_HIST_AHEAD < end)
			fetch_row(&source, i + AG_HIST_AHEAD);
		for (; f + 8 <= n_features; f += 8, at += 8 * AG_HIST_BINS)
			add_eight(row + f, value, at);
		for (; f < n_features; f++, at += AG_HIST_BINS)
			at[row[f]] += value;
	}
}

/*
 * Features one behind the other, two rows at a time: for features of few bins, of categories, and where
 * not all are used.
 */
static void
add_rows_tight(AgRowSource source, const AgHistLayout *layout, int64_t begin, int64_t end,
			   int64_t *cells)
{
	const uint32_t *offset = layout->offset;
	const int *numbers = layout->numbers, *categories = layout->categories;
	int n_numbers = layout->n_numbers, n_categories = layout->n_categories;

	for (int64_t i = begin; i < end; i += 2)
	{
		/* An odd last row comes alone. */
		int64_t other = i + 1 < end ? i + 1 : i;
		const uint8_t *row = source.rows + (int64_t) source.ids[i] * source.stride;
		const uint8_t *next = source.rows + (int64_t) source.ids[other] * source.stride;
		int64_t value = widen(source.grads[source.ids[i]]);
		int64_t next_value = widen(source.grads[source.ids[other]]);

		if (i + AG_HIST_AHEAD + 1 < end)
		{
			fetch_row(&source, i + AG_HIST_AHEAD);
			fetch_row(&source, i + AG_HIST_AHEAD + 1);
		}
		if (other == i)
		{
			for (int k = 0; k < n_numbers; k++)
				cells[offset[numbers[k]] + row[numbers[k]]] += value;
			for (int k = 0; k < n_categories; k++)
				add_pair(cells + offset[categories[k]], row[categories[k]], (AgPair){value, 1});
			break;
		}
		for (int k = 0; k < n_numbers; k++)
		{
			int64_t *at = cells + offset[numbers[k]];

			at[row[numbers[k]]] += value;
			at[next[numbers[k]]] += next_value;
		}
		for (int k = 0; k < n_categories; k++)
		{
			add_pair(cells + offset[categories[k]], row[categories[k]], (AgPair){value, 1});
			add_pair(cells + offset[categories[k]], next[categories[k]], (AgPair){next_value, 1});
		}
	}
}

/* ---- in blocks ---- */

/* A row of at least 16 bytes. */
AG_INLINE void
copy_row(uint8_t *to, const uint8_t *from, int64_t stride)
{
	if (stride < 32)
	{
		memcpy(to, from, 16);
		memcpy(to + stride - 16, from + stride - 16, 16);
	}
	else
		for (int64_t at = 0; at < stride; at += 32)
			memcpy(to + at, from + at, 32);
}

/*
 * Copies n listed rows to the room; with cells adds eight features, which begin at first, on the way: rows are waited for
 * anyhow.
 */
AG_INLINE void
take_rows(AgRowSource source, int64_t stride, int64_t begin, int64_t n, int64_t end,
		  const AgHistRoom *room, int first, int64_t *cells)
{
	uint8_t *to = room->rows;

	source.stride = stride;
	for (int64_t i = 0; i < n; i++, to += stride)
	{
		const uint8_t *row = source.rows + (int64_t) source.ids[begin + i] * stride;
		int64_t value = widen(source.grads[source.ids[begin + i]]);

		if (begin + i + AG_HIST_AHEAD < end)
			fetch_row(&source, begin + i + AG_HIST_AHEAD);
		copy_row(to, row, stride);
		room->values[i] = value;
		if (cells != NULL)
			add_eight(row + first, value, cells);
	}
}

/* Rows that will be in the room next: fetched while blocks of those in it are added, so that memory is never waited for at once. */
typedef struct AgNextRows
{
	const AgRowSource *source;
	int64_t at, n; /* in the list */
} AgNextRows;

/* Eight features; one row in two fetches one of the next. */
static void
add_block8(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n, AgNextRows next,
		   int64_t *cells)
{
	AgRowSource source = *next.source;

	source.ids += next.at;
	for (int64_t i = 0; i < n; i += 2, row += 2 * stride)
	{
		if (i / 2 < next.n)
			__builtin_prefetch(source.rows + (int64_t) source.ids[i / 2] * source.stride);
		add_eight(row, values[i], cells);
		if (i + 1 < n)
			add_eight(row + stride, values[i + 1], cells);
	}
}

/* Eight features at any places of the row, with cells at constant distances. */
static void
add_spread8(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n,
			const int *features, int64_t *cells)
{
	int64_t a = features[0], b = features[1], c = features[2], d = features[3];
	int64_t e = features[4], f = features[5], g = features[6], h = features[7];

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		int64_t value = values[i];

		cells[row[a]] += value;
		cells[AG_HIST_BINS + row[b]] += value;
		cells[2 * AG_HIST_BINS + row[c]] += value;
		cells[3 * AG_HIST_BINS + row[d]] += value;
		cells[4 * AG_HIST_BINS + row[e]] += value;
		cells[5 * AG_HIST_BINS + row[f]] += value;
		cells[6 * AG_HIST_BINS + row[g]] += value;
		cells[7 * AG_HIST_BINS + row[h]] += value;
	}
}

/* Four features, at any place in the row and in the table. */
static void
add_block4(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n,
		   const int *features, const uint32_t *offset, int64_t *cells)
{
	int64_t *a = cells + offset[features[0]], *b = cells + offset[features[1]];
	int64_t *c = cells + offset[features[2]], *d = cells + offset[features[3]];

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		int64_t value = values[i];

		a[row[features[0]]] += value;
		b[row[features[1]]] += value;
		c[row[features[2]]] += value;
		d[row[features[3]]] += value;
	}
}

static void
add_block1(const uint8_t *bin, int64_t stride, const int64_t *values, int64_t n, int64_t *at)
{
	for (int64_t i = 0; i < n; i++, bin += stride)
		at[*bin] += values[i];
}

/* Four categories: with fewer at a time, rows of the same level would wait for each other. */
static void
add_pairs4(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n,
		   const int *features, const uint32_t *offset, int64_t *cells)
{
	int64_t *a = cells + offset[features[0]], *b = cells + offset[features[1]];
	int64_t *c = cells + offset[features[2]], *d = cells + offset[features[3]];

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		AgPair pair = {values[i], 1};

		add_pair(a, row[features[0]], pair);
		add_pair(b, row[features[1]], pair);
		add_pair(c, row[features[2]], pair);
		add_pair(d, row[features[3]], pair);
	}
}

static void
add_pairs1(const uint8_t *bin, int64_t stride, const int64_t *values, int64_t n, int64_t *at)
{
	for (int64_t i = 0; i < n; i++, bin += stride)
		add_pair(at, *bin, (AgPair){values[i], 1});
}

/* The n rows in the room, of fixed cells; features before the k-th are done. */
static void
add_fixed_blocks(int n_features, const AgHistRoom *room, int64_t n, int k, bool is_new,
				 AgNextRows next, const uint32_t *offset, int64_t *cells)
{
	static const int four[4] = {0, 1, 2, 3};
	int64_t stride = next.source->stride, end = next.at + next.n;
	int64_t share = n_features >= k + 16 ? next.n / ((n_features - k) / 8) + 1 : next.n;

	for (int n_block; k < n_features; k += n_block)
	{
		int64_t *at = cells + k * AG_HIST_BINS;

		n_block = n_features - k >= 8 ? 8 : n_features - k >= 4 ? 4 : 1;
		if (is_new)
			clear_block(at, n_block);
		next.n = end - next.at < share ? end - next.at : share;
		if (n_block == 8)
			add_block8(room->rows + k, stride, room->values, n, next, at);
		else if (n_block == 4)
			add_block4(room->rows + k, stride, room->values, n, four, offset, at);
		else
			add_block1(room->rows + k, stride, room->values, n, at);
		next.at += next.n;
	}
}

/* The same of others, of whose numbers those before the k-th are done. */
static void
add_tight_blocks(const AgHistLayout *layout, int64_t stride, const AgHistRoom *room, int64_t n,
				 int k, int64_t *cells)
{
	const int *features = layout->numbers;
	const uint32_t *offset = layout->offset;

	for (; k + 8 <= layout->n_spread; k += 8)
		add_spread8(room->rows, stride, room->values, n, features + k, cells + k * AG_HIST_BINS);
	for (; k + 4 <= layout->n_numbers; k += 4)
		add_block4(room->rows, stride, room->values, n, features + k, offset, cells);
	for (; k < layout->n_numbers; k++)
		add_block1(room->rows + features[k], stride, room->values, n, cells + offset[features[k]]);
	features = layout->categories;
	for (k = 0; k + 4 <= layout->n_categories; k += 4)
		add_pairs4(room->rows, stride, room->values, n, features + k, offset, cells);
	for (; k < layout->n_categories; k++)
		add_pairs1(room->rows + features[k], stride, room->values, n, cells + offset[features[k]]);
}

/* Whether the first eight features with cells at constant distances lie side by side in a row. */
static bool
begins_with_eight(const AgHistLayout *layout)
{
	return layout->n_spread >= 8 && layout->numbers[7] - layout->numbers[0] == 7;
}

static void
add_rows_blocked(AgRowSource source, const AgHistLayout *layout, int64_t begin, int64_t end,
				 const AgHistRoom *room, bool is_new, int64_t *cells)
{
	int64_t most = AG_HIST_ROOM_BYTES / source.stride;
	int n_taken = begins_with_eight(layout) ? 8 : 0;
	int first = n_taken > 0 ? layout->numbers[0] : 0;

	if (is_new && !layout->is_fixed)
		clear_cells(cells, layout->n_cells);
	for (int64_t at = begin; at < end; at += most)
	{
		int64_t n = end - at < most ? end - at : most;
		AgNextRows next = {&source, at + n, end - at - n < most ? end - at - n : most};
		bool is_first = is_new && at == begin;

		if (is_first && layout->is_fixed && n_taken > 0)
			clear_block(cells, 8);
		if (source.stride == 32 && n_taken > 0)
			take_rows(source, 32, at, n, end, room, first, cells);
		else if (source.stride == 32)
			take_rows(source, 32, at, n, end, room, 0, NULL);
		else
			take_rows(source, source.stride, at, n, end, room, first, n_taken > 0 ? cells : NULL);
		if (layout->is_fixed)
			add_fixed_blocks(layout->n_numbers, room, n, n_taken, is_first, next, layout->offset,
							 cells);
		else
			add_tight_blocks(layout, source.stride, room, n, n_taken, cells);
	}
}

void
ag_hist_add_rows(const AgBins *bins, const AgHistLayout *layout, const AgRowList *list,
				 int64_t begin, int64_t end, const AgHistRoom *room, bool is_new, int64_t *cells)
{
	AgRowSource source = {bins->rows, bins->row_stride, list->ids, list->grads};

	if (room->rows != NULL && begin < end)
	{
		add_rows_blocked(source, layout, begin, end, room, is_new, cells);
		return;
	}
	if (is_new)
		clear_cells(cells, layout->n_cells);
	if (layout->is_fixed)
		add_rows_fixed(source, layout->n_numbers, begin, end, cells);
	else
		add_rows_tight(source, layout, begin, end, cells);
}
