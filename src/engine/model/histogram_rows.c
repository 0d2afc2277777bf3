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

/* A category's two cells, both in one addition. */
AG_INLINE void
add_pair(int64_t *cells, unsigned bin, int64_t value)
{
	typedef int64_t AgPair __attribute__((vector_size(16)));
	AgPair pair;

	memcpy(&pair, cells + 2 * bin, sizeof pair);
	pair += (AgPair){value, 1};
	memcpy(cells + 2 * bin, &pair, sizeof pair);
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
				add_pair(cells + offset[categories[k]], row[categories[k]], value);
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
			add_pair(cells + offset[categories[k]], row[categories[k]], value);
			add_pair(cells + offset[categories[k]], next[categories[k]], next_value);
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

/* Copies n listed rows to the room; with cells adds their first eight features on the way, which are waiting for memory anyhow. */
AG_INLINE void
take_rows(AgRowSource source, int64_t stride, int64_t begin, int64_t n, int64_t end,
		  const AgHistRoom *room, int64_t *cells)
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
			add_eight(row, value, cells);
	}
}

static void
add_block8(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n, int64_t *cells)
{
	for (int64_t i = 0; i < n; i++, row += stride)
		add_eight(row, values[i], cells);
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

/* Two categories. */
static void
add_pairs2(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n,
		   const int *features, const uint32_t *offset, int64_t *cells)
{
	int64_t *a = cells + offset[features[0]], *b = cells + offset[features[1]];

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		add_pair(a, row[features[0]], values[i]);
		add_pair(b, row[features[1]], values[i]);
	}
}

static void
add_pairs1(const uint8_t *bin, int64_t stride, const int64_t *values, int64_t n, int64_t *at)
{
	for (int64_t i = 0; i < n; i++, bin += stride)
		add_pair(at, *bin, values[i]);
}

/* Numbers from the k-th on, and categories, of the n rows in the room. */
static void
add_blocks(const AgHistLayout *layout, int64_t stride, const AgHistRoom *room, int64_t n, int k,
		   int64_t *cells)
{
	const int *features = layout->numbers;
	const uint32_t *offset = layout->offset;

	for (; layout->is_fixed && k + 8 <= layout->n_numbers; k += 8)
		add_block8(room->rows + k, stride, room->values, n, cells + offset[k]);
	for (; k + 4 <= layout->n_numbers; k += 4)
		add_block4(room->rows, stride, room->values, n, features + k, offset, cells);
	for (; k < layout->n_numbers; k++)
		add_block1(room->rows + features[k], stride, room->values, n, cells + offset[features[k]]);
	features = layout->categories;
	for (k = 0; k + 2 <= layout->n_categories; k += 2)
		add_pairs2(room->rows, stride, room->values, n, features + k, offset, cells);
	for (; k < layout->n_categories; k++)
		add_pairs1(room->rows + features[k], stride, room->values, n, cells + offset[features[k]]);
}

static void
add_rows_blocked(AgRowSource source, const AgHistLayout *layout, int64_t begin, int64_t end,
				 const AgHistRoom *room, int64_t *cells)
{
	int64_t most = AG_HIST_ROOM_BYTES / source.stride;
	int64_t *first = layout->is_fixed && layout->n_numbers >= 8 ? cells : NULL;

	for (int64_t at = begin; at < end; at += most)
	{
		int64_t n = end - at < most ? end - at : most;

		if (source.stride == 32 && first != NULL)
			take_rows(source, 32, at, n, end, room, first);
		else
			take_rows(source, source.stride, at, n, end, room, first);
		add_blocks(layout, source.stride, room, n, first != NULL ? 8 : 0, cells);
	}
}

void
ag_hist_add_rows(const AgBins *bins, const AgHistLayout *layout, const AgRowList *list,
				 int64_t begin, int64_t end, const AgHistRoom *room, int64_t *cells)
{
	AgRowSource source = {bins->rows, bins->row_stride, list->ids, list->grads};

	if (room->rows != NULL)
		add_rows_blocked(source, layout, begin, end, room, cells);
	else if (layout->is_fixed)
		add_rows_fixed(source, layout->n_numbers, begin, end, cells);
	else
		add_rows_tight(source, layout, begin, end, cells);
}
