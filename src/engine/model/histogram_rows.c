/*
 * histogram_rows.c - adding rows to a narrow histogram.
 *
 * Rows are read from the row-major copy: one or two cache lines a row, then one addition a feature.
 */
#include "engine/model/histogram_rows.h"

#include <string.h>

#include "engine/model/vectors.h"

#define AG_HIST_AHEAD 32 /* rows fetched ahead of their use */
/*
 * Rows up to that length go to the room whole. Of longer ones a window does, for all rows before the next: there is room for
 * more rows then, and the cells of a window's features stay in the second cache.
 */
#define AG_WHOLE_STRIDE 128
#define AG_WINDOW_BYTES 64

bool
ag_hist_is_blocked(int64_t n_cells, int64_t row_stride)
{
	int64_t near_bytes = ag_cpu_near_bytes();

	return n_cells * (int64_t) sizeof(int64_t) > near_bytes + near_bytes / 4 && row_stride >= 16;
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

/* The bytes [first, first + n_bytes) of every row, 16 at least, and the features in them. */
typedef struct AgHistWindow
{
	int first, n_bytes;
	const int *spread, *narrow,
		*categories; /* of numbers with AG_HIST_BINS cells, of others, and of categories */
	int n_spread, n_narrow, n_categories;
	int64_t *spread_cells;
	int n_taken; /* so many of spread are added on the way to the room: 8 or none */
} AgHistWindow;

AG_INLINE void
copy_bytes(uint8_t *to, const uint8_t *from, int64_t n)
{
	if (n < 32)
	{
		memcpy(to, from, 16);
		memcpy(to + n - 16, from + n - 16, 16);
	}
	else
		for (int64_t at = 0; at < n; at += 32)
			memcpy(to + at, from + at, 32);
}

/*
 * Copies a window of n_bytes of n listed rows to the room; with cells adds eight features, which begin at eight, on the way: rows
 * are waited for anyhow.
 */
AG_INLINE void
take_rows(AgRowSource source, int64_t stride, int64_t n_bytes, int64_t begin, int64_t n,
		  int64_t end, const AgHistRoom *room, int eight, int64_t *cells)
{
	uint8_t *to = room->rows;

	source.stride = stride;
	for (int64_t i = 0; i < n; i++, to += n_bytes)
	{
		const uint8_t *row = source.rows + (int64_t) source.ids[begin + i] * stride;
		int64_t value = widen(source.grads[source.ids[begin + i]]);

		if (begin + i + AG_HIST_AHEAD < end)
			fetch_row(&source, begin + i + AG_HIST_AHEAD);
		copy_bytes(to, row, n_bytes);
		room->values[i] = value;
		if (cells != NULL)
			add_eight(row + eight, value, cells);
	}
}

/* Rows that will be in the room next: fetched while blocks of those in it are added, so that memory is never waited for at once. */
typedef struct AgNextRows
{
	const AgRowSource *source;
	int64_t at, n; /* in the list */
} AgNextRows;

/* Eight features side by side, whose cells lie at constant distances; one row in two fetches one of the next. */
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

/* The same of features at any places of a row that begins with feature first. */
static void
add_spread8(const uint8_t *row, int64_t stride, const int64_t *values, int64_t n,
			const int *features, int first, int64_t *cells)
{
	int64_t a = features[0] - first, b = features[1] - first, c = features[2] - first;
	int64_t d = features[3] - first, e = features[4] - first, f = features[5] - first;
	int64_t g = features[6] - first, h = features[7] - first;

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
		   const int *features, int first, const uint32_t *offset, int64_t *cells)
{
	int64_t *a = cells + offset[features[0]], *b = cells + offset[features[1]];
	int64_t *c = cells + offset[features[2]], *d = cells + offset[features[3]];
	int64_t at[4] = {features[0] - first, features[1] - first, features[2] - first,
					 features[3] - first};

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		int64_t value = values[i];

		a[row[at[0]]] += value;
		b[row[at[1]]] += value;
		c[row[at[2]]] += value;
		d[row[at[3]]] += value;
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
		   const int *features, int first, const uint32_t *offset, int64_t *cells)
{
	int64_t *a = cells + offset[features[0]], *b = cells + offset[features[1]];
	int64_t *c = cells + offset[features[2]], *d = cells + offset[features[3]];
	int64_t at[4] = {features[0] - first, features[1] - first, features[2] - first,
					 features[3] - first};

	for (int64_t i = 0; i < n; i++, row += stride)
	{
		AgPair pair = {values[i], 1};

		add_pair(a, row[at[0]], pair);
		add_pair(b, row[at[1]], pair);
		add_pair(c, row[at[2]], pair);
		add_pair(d, row[at[3]], pair);
	}
}

static void
add_pairs1(const uint8_t *bin, int64_t stride, const int64_t *values, int64_t n, int64_t *at)
{
	for (int64_t i = 0; i < n; i++, bin += stride)
		add_pair(at, *bin, (AgPair){values[i], 1});
}

static bool
are_side_by_side(const int *features, int n)
{
	return features[n - 1] - features[0] == n - 1;
}

/* The n rows in the room: numbers with AG_HIST_BINS cells. */
static void
add_spread(const AgHistWindow *window, const AgHistRoom *room, int64_t n, bool is_new,
		   AgNextRows next, const uint32_t *offset, int64_t *cells)
{
	int64_t stride = window->n_bytes, end = next.at + next.n;
	int n_eights = (window->n_spread - window->n_taken) / 8;
	int64_t share = n_eights > 0 ? next.n / n_eights + 1 : 0;
	int n_block;

	for (int k = window->n_taken; k < window->n_spread; k += n_block)
	{
		const int *features = window->spread + k;
		const uint8_t *bins = room->rows + (features[0] - window->first);
		int64_t *at = window->spread_cells + k * AG_HIST_BINS;
		int n_left = window->n_spread - k;

		n_block = n_left >= 8 ? 8 : n_left >= 4 ? 4 : 1;
		if (is_new)
			clear_block(at, n_block);
		next.n = end - next.at < share ? end - next.at : share;
		if (n_block == 8 && are_side_by_side(features, 8))
			add_block8(bins, stride, room->values, n, next, at);
		else if (n_block == 8)
			add_spread8(room->rows, stride, room->values, n, features, window->first, at);
		else if (n_block == 4)
			add_block4(room->rows, stride, room->values, n, features, window->first, offset, cells);
		else
			add_block1(bins, stride, room->values, n, at);
		next.at += next.n;
	}
}

/* The n rows in the room: everything else, whose cells hold something. */
static void
add_others(const AgHistWindow *window, const AgHistRoom *room, int64_t n, const uint32_t *offset,
		   int64_t *cells)
{
	const uint8_t *rows = room->rows;
	int64_t stride = window->n_bytes;
	const int *features = window->narrow;
	int first = window->first, k = 0;

	for (; k + 4 <= window->n_narrow; k += 4)
		add_block4(rows, stride, room->values, n, features + k, first, offset, cells);
	for (; k < window->n_narrow; k++)
		add_block1(rows + features[k] - first, stride, room->values, n,
				   cells + offset[features[k]]);
	features = window->categories;
	for (k = 0; k + 4 <= window->n_categories; k += 4)
		add_pairs4(rows, stride, room->values, n, features + k, first, offset, cells);
	for (; k < window->n_categories; k++)
		add_pairs1(rows + features[k] - first, stride, room->values, n,
				   cells + offset[features[k]]);
}

/* All listed rows of a window, as many at a time as there is room for. */
static void
add_window(AgRowSource source, const AgHistWindow *window, int64_t begin, int64_t end,
		   const AgHistRoom *room, bool is_new, const uint32_t *offset, int64_t *cells)
{
	int64_t most = AG_HIST_ROOM_BYTES / window->n_bytes;
	int64_t *taken = window->n_taken > 0 ? window->spread_cells : NULL;
	int eight = window->n_taken > 0 ? window->spread[0] - window->first : 0;

	source.rows += window->first;
	for (int64_t at = begin; at < end; at += most)
	{
		int64_t n = end - at < most ? end - at : most;
		AgNextRows next = {&source, at + n, end - at - n < most ? end - at - n : most};
		bool is_first = is_new && at == begin;

		if (is_first && taken != NULL)
			clear_block(taken, window->n_taken);
		if (source.stride == 32 && taken != NULL)
			take_rows(source, 32, 32, at, n, end, room, eight, taken);
		else if (window->n_bytes == AG_WINDOW_BYTES && taken != NULL)
			take_rows(source, source.stride, AG_WINDOW_BYTES, at, n, end, room, eight, taken);
		else
			take_rows(source, source.stride, window->n_bytes, at, n, end, room, eight, taken);
		add_spread(window, room, n, is_first, next, offset, cells);
		add_others(window, room, n, offset, cells);
	}
}

/* How many of n features, in ascending order, come before end. */
static int
count_before(const int *features, int n, int end)
{
	int k = 0;

	while (k < n && features[k] < end)
		k++;
	return k;
}

static void
add_rows_blocked(AgRowSource source, const AgHistLayout *layout, int64_t begin, int64_t end,
				 const AgHistRoom *room, bool is_new, int64_t *cells)
{
	int64_t most = source.stride <= AG_WHOLE_STRIDE ? source.stride : AG_WINDOW_BYTES, n_bytes;
	int n_narrow = layout->n_numbers - layout->n_spread;
	int spread = 0, narrow = 0, category = 0;

	if (is_new)
		clear_cells(cells + layout->n_spread * AG_HIST_BINS,
					layout->n_cells - layout->n_spread * AG_HIST_BINS);
	for (int64_t first = 0; first < source.stride; first += n_bytes)
	{
		AgHistWindow window = {.first = (int) first,
							   .spread = layout->numbers + spread,
							   .narrow = layout->numbers + layout->n_spread + narrow,
							   .categories = layout->categories + category,
							   .spread_cells = cells + spread * AG_HIST_BINS};
		int last;

		n_bytes = source.stride - first < most ? source.stride - first : most;
		window.n_bytes = (int) n_bytes;
		last = (int) (first + n_bytes);
		window.n_spread = count_before(window.spread, layout->n_spread - spread, last);
		window.n_narrow = count_before(window.narrow, n_narrow - narrow, last);
		window.n_categories =
			count_before(window.categories, layout->n_categories - category, last);
		if (window.n_spread >= 8 && are_side_by_side(window.spread, 8))
			window.n_taken = 8;
		if (window.n_spread + window.n_narrow + window.n_categories > 0)
			add_window(source, &window, begin, end, room, is_new, layout->offset, cells);
		spread += window.n_spread;
		narrow += window.n_narrow;
		category += window.n_categories;
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
