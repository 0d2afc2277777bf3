/*
 * histogram.c - building, subtracting and reading histograms.
 *
 * Large nodes are cut into chunks of rows; each thread adds into its own narrow table and empties it
 * into its own wide one before it could overflow; at the end the tables are added up, feature by feature.
 */
#include "engine/model/histogram.h"

#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/histogram_rows.h"
#include "engine/model/vectors.h"

#define AG_HIST_CHUNK 16384 /* rows a task, but fewer where threads would else get none */
#define AG_HIST_CHUNK_LEAST 1024
#define AG_HIST_PARALLEL_CELLS 120000 /* updates below which one thread is quicker */
#define AG_HIST_PARALLEL_MERGE 40000  /* cells of all threads, likewise */

/* One thread's tables. narrow holds n_narrow rows not yet in wide. */
typedef struct AgHistScratch
{
	int64_t *narrow; /* [n_cells]; NULL until the thread is needed */
	int64_t *wide;   /* [2 * n_cells] */
	AgHistRoom room;
	int64_t n_narrow;
	bool has_narrow; /* narrow holds something that counts */
	bool has_wide;
} AgHistScratch;

/* Whether a number has AG_HIST_BINS cells in every layout: it would use most of them. */
static bool
is_spread(const AgBinFeature *feature)
{
	return !feature->is_category && 4 * (feature->n_bins + 1) >= 3 * AG_HIST_BINS;
}

/* Cells of all features where not all have AG_HIST_BINS, with one to spare for each pair that begins evenly. */
static int64_t
tight_cells(const AgBins *bins, bool *has_category)
{
	int64_t n_cells = 0;

	*has_category = false;
	for (int f = 0; f < bins->n_features; f++)
	{
		const AgBinFeature *feature = bins->features + f;

		*has_category = *has_category || feature->is_category;
		n_cells += is_spread(feature)     ? AG_HIST_BINS
				   : feature->is_category ? 2 * (feature->n_bins + 1) + 1
										  : feature->n_bins + 1;
	}
	return n_cells;
}

/* Whether all features shall have AG_HIST_BINS cells. */
static bool
suits_fixed(const AgBins *bins)
{
	bool has_category;
	int64_t n_cells = tight_cells(bins, &has_category);

	return !has_category && 4 * n_cells >= 3 * (int64_t) bins->n_features * AG_HIST_BINS;
}

int64_t
ag_hist_cells(const AgBins *bins)
{
	bool has_category;

	return suits_fixed(bins) ? (int64_t) bins->n_features * AG_HIST_BINS
							 : tight_cells(bins, &has_category);
}

int64_t
ag_hist_builder_memory(const AgBins *bins, bool is_wide)
{
	int64_t n_cells = ag_hist_cells(bins);
	int64_t room = ag_hist_is_blocked(n_cells, bins->row_stride)
					   ? AG_HIST_ROOM_BYTES + AG_HIST_ROOM_ROWS * (int64_t) sizeof(int64_t)
					   : 0;

	return n_cells * (is_wide ? 3 : 1) * (int64_t) sizeof(int64_t) + room;
}

/* Gives a feature the next n cells. */
static void
place(AgHistLayout *layout, int f, int n)
{
	layout->offset[f] = (uint32_t) layout->n_cells;
	layout->n_cells += n;
}

void
ag_hist_use(AgHistBuilder *builder, const uint8_t *is_used)
{
	AgHistLayout *layout = &builder->layout;
	const AgBins *bins = builder->bins;
	int n_used = 0;

	layout->n_numbers = layout->n_categories = 0;
	layout->n_cells = 0;
	for (int f = 0; f < bins->n_features; f++)
		n_used += is_used == NULL || is_used[f];
	layout->is_fixed = n_used == bins->n_features && suits_fixed(bins);
	for (int f = 0; f < bins->n_features; f++)
		if ((is_used == NULL || is_used[f]) && (layout->is_fixed || is_spread(bins->features + f)))
		{
			layout->numbers[layout->n_numbers++] = f;
			place(layout, f, AG_HIST_BINS);
		}
	layout->n_spread = layout->n_numbers;
	for (int f = 0; f < bins->n_features; f++)
	{
		const AgBinFeature *feature = bins->features + f;

		layout->step[f] = feature->is_category ? 2 : 1;
		if ((is_used != NULL && !is_used[f]) || layout->is_fixed || is_spread(feature))
			continue;
		if (feature->is_category)
			layout->categories[layout->n_categories++] = f;
		else
			layout->numbers[layout->n_numbers++] = f;
		layout->n_cells += layout->n_cells & (layout->step[f] - 1); /* pairs lie evenly */
		place(layout, f, (feature->n_bins + 1) * layout->step[f]);
	}
}

AgStatus
ag_hist_builder_create(const AgContext *ctx, const AgBins *bins, AgHistBuilder *builder)
{
	AgHistLayout *layout = &builder->layout;
	size_t n = (size_t) bins->n_features;

	memset(builder, 0, sizeof *builder);
	builder->ctx = ctx;
	builder->bins = bins;
	builder->level = ag_cpu_level();
	builder->most_cells = ag_hist_cells(bins);
	layout->n_features = bins->n_features;
	AG_TRY(ag_get(ctx, n, sizeof(uint32_t), &layout->offset));
	AG_TRY(ag_get(ctx, n, 1, &layout->step));
	AG_TRY(ag_get(ctx, n, sizeof(int), &layout->numbers));
	AG_TRY(ag_get(ctx, n, sizeof(int), &layout->categories));
	ag_hist_use(builder, NULL);
	builder->n_threads = ag_pool_size(ctx->pool);
	AG_TRY(
		ag_get_zeroed(ctx, (size_t) builder->n_threads, sizeof(AgHistScratch), &builder->scratch));
	if (!ag_hist_is_blocked(builder->most_cells, bins->row_stride))
		return AG_OK;
	for (int t = 0; t < builder->n_threads; t++)
	{
		AgHistRoom *room = &builder->scratch[t].room;

		AG_TRY(ag_get(ctx, AG_HIST_ROOM_BYTES, 1, &room->rows));
		AG_TRY(ag_get(ctx, AG_HIST_ROOM_ROWS, sizeof *room->values, &room->values));
	}
	return AG_OK;
}

void
ag_hist_builder_free(const AgContext *ctx, AgHistBuilder *builder)
{
	for (int t = 0; builder->scratch != NULL && t < builder->n_threads; t++)
	{
		ag_mem_free(ctx->mem, builder->scratch[t].narrow);
		ag_mem_free(ctx->mem, builder->scratch[t].wide);
		ag_mem_free(ctx->mem, builder->scratch[t].room.rows);
		ag_mem_free(ctx->mem, builder->scratch[t].room.values);
	}
	ag_mem_free(ctx->mem, builder->scratch);
	ag_mem_free(ctx->mem, builder->layout.offset);
	ag_mem_free(ctx->mem, builder->layout.step);
	ag_mem_free(ctx->mem, builder->layout.numbers);
	ag_mem_free(ctx->mem, builder->layout.categories);
	memset(builder, 0, sizeof *builder);
}

/* Adds a narrow table's cells [begin, end) to a wide one. */
static void
widen_into(const int64_t *narrow, int64_t begin, int64_t end, int64_t n_cells, int64_t *wide)
{
	for (int64_t c = begin; c < end; c++)
	{
		wide[c] += narrow[c] >> 32;
		wide[n_cells + c] += (int64_t) (uint32_t) narrow[c];
	}
}

typedef struct AgHistTask
{
	AgHistBuilder *builder;
	const AgRowList *list;
	AgHist *hist;
} AgHistTask;

static void
build_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgHistTask *task = arg;
	AgHistBuilder *builder = task->builder;
	AgHistScratch *scratch = builder->scratch + thread;
	int64_t n_cells = builder->layout.n_cells;

	if (ag_cancelled(builder->ctx))
		return;
	if (scratch->n_narrow + (end - begin) > AG_NARROW_ROWS)
	{
		if (!scratch->has_wide)
			memset(scratch->wide, 0, 2 * (size_t) n_cells * sizeof *scratch->wide);
		widen_into(scratch->narrow, 0, n_cells, n_cells, scratch->wide);
		scratch->has_wide = true;
		scratch->has_narrow = false;
		scratch->n_narrow = 0;
	}
	ag_hist_add_rows(builder->bins, &builder->layout, task->list, begin, end, &scratch->room,
					 !scratch->has_narrow, scratch->narrow);
	scratch->has_narrow = true;
	scratch->n_narrow += end - begin;
}

/* Adds the threads' tables up, cells [begin, end). */
static void
merge_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgHistTask *task = arg;
	AgHistBuilder *builder = task->builder;
	int64_t n_cells = builder->layout.n_cells;
	int64_t *cells = task->hist->cells;
	size_t n_bytes = (size_t) (end - begin) * sizeof *cells;

	(void) thread;
	memset(cells + begin, 0, n_bytes);
	if (task->hist->is_wide)
		memset(cells + n_cells + begin, 0, n_bytes);
	for (int t = 0; t < builder->n_threads; t++)
	{
		const AgHistScratch *scratch = builder->scratch + t;

		if (scratch->has_wide)
			for (int64_t c = begin; c < end; c++)
			{
				cells[c] += scratch->wide[c];
				cells[n_cells + c] += scratch->wide[n_cells + c];
			}
		if (scratch->has_narrow && task->hist->is_wide)
			widen_into(scratch->narrow, begin, end, n_cells, cells);
		else if (scratch->has_narrow)
			for (int64_t c = begin; c < end; c++)
				cells[c] += scratch->narrow[c];
	}
}

static AgStatus
take_scratch(AgHistBuilder *builder, bool is_wide)
{
	size_t n_cells = (size_t) builder->most_cells;

	for (int t = 0; t < builder->n_threads; t++)
	{
		AgHistScratch *scratch = builder->scratch + t;

		if (scratch->narrow == NULL)
			AG_TRY(ag_get(builder->ctx, n_cells, sizeof(int64_t), &scratch->narrow));
		if (is_wide && scratch->wide == NULL)
			AG_TRY(ag_get(builder->ctx, 2 * n_cells, sizeof(int64_t), &scratch->wide));
		scratch->has_narrow = scratch->has_wide = false;
		scratch->n_narrow = 0;
	}
	return AG_OK;
}

/* So that no thread waits long for the last chunk of another. */
static int64_t
chunk_rows(const AgHistBuilder *builder, int64_t n_rows)
{
	int64_t n = n_rows / (2 * builder->n_threads);

	n = n > AG_HIST_CHUNK_LEAST ? n : AG_HIST_CHUNK_LEAST;
	return n < AG_HIST_CHUNK ? n : AG_HIST_CHUNK;
}

AgStatus
ag_hist_build(AgHistBuilder *builder, const AgRowList *list, int64_t n_rows, AgHist *hist)
{
	AgHistTask task = {builder, list, hist};
	int64_t n_cells = builder->layout.n_cells;
	bool is_small = n_rows * (builder->layout.n_numbers + builder->layout.n_categories) <
						AG_HIST_PARALLEL_CELLS ||
					builder->n_threads == 1;

	hist->is_wide = n_rows > AG_NARROW_ROWS;
	if (is_small && !hist->is_wide)
	{
		int64_t at = 0;

		do
		{
			int64_t end = at + AG_HIST_CHUNK < n_rows ? at + AG_HIST_CHUNK : n_rows;

			ag_hist_add_rows(builder->bins, &builder->layout, list, at, end,
							 &builder->scratch->room, at == 0, hist->cells);
			at = end;
		} while (at < n_rows && !ag_cancelled(builder->ctx));
		return ag_check_cancel(builder->ctx);
	}
	AG_TRY(take_scratch(builder, hist->is_wide));
	ag_pool_run(builder->ctx->pool, n_rows, chunk_rows(builder, n_rows), build_task, &task);
	ag_pool_run(n_cells * builder->n_threads < AG_HIST_PARALLEL_MERGE ? NULL : builder->ctx->pool,
				n_cells, 2048, merge_task, &task);
	return ag_check_cancel(builder->ctx);
}

AG_INLINE void
take_away_body(int64_t n, const int64_t *restrict other, int64_t *restrict cells)
{
	for (int64_t c = 0; c < n; c++)
		cells[c] -= other[c];
}

#define AG_TAKE_PARAMETERS int64_t n, const int64_t *restrict other, int64_t *restrict cells
#define AG_TAKE_ARGUMENTS n, other, cells

AG_LEVELS(take_away, AG_TAKE)

AgHistRest
ag_hist_rest_begin(const AgHistBuilder *builder, AgHist *parent, const AgHist *child,
				   int64_t n_rows)
{
	AgHistRest rest = {.builder = builder,
					   .cells = parent->cells,
					   .child = child,
					   .was_wide = parent->is_wide,
					   .is_wide = parent->is_wide && n_rows > AG_NARROW_ROWS};

	parent->is_wide = rest.is_wide;
	return rest;
}

/*
 * Cells [begin, end), in place. A wide parent whose rest has become small is made narrow on the way: cell c
 * is written only after the cells that it is made of were read.
 */
static void
make_rest(const AgHistRest *rest, int64_t begin, int64_t end)
{
	int64_t n_cells = rest->builder->layout.n_cells;
	int64_t *g = rest->cells, *h = rest->cells + n_cells;
	const int64_t *other = rest->child->cells;

	if (!rest->was_wide)
	{
		take_away_at(rest->builder->level, end - begin, other + begin, g + begin);
		return;
	}
	for (int64_t c = begin; c < end; c++)
	{
		g[c] -= rest->child->is_wide ? other[c] : other[c] >> 32;
		h[c] -= rest->child->is_wide ? other[n_cells + c] : (int64_t) (uint32_t) other[c];
	}
	for (int64_t c = begin; c < end && !rest->is_wide; c++)
		g[c] = (int64_t) ((uint64_t) g[c] << 32) + h[c];
}

void
ag_hist_rest_make(const AgHistRest *rest, const int *features, int n)
{
	const AgHistLayout *layout = &rest->builder->layout;

	for (int i = 0; i < n; i++)
	{
		int f = features[i];
		int64_t begin = layout->offset[f];

		make_rest(rest, begin,
				  begin + (rest->builder->bins->features[f].n_bins + 1) * layout->step[f]);
	}
}

void
ag_hist_subtract(const AgHistBuilder *builder, AgHist *parent, const AgHist *child, int64_t n_rows)
{
	AgHistRest rest = ag_hist_rest_begin(builder, parent, child, n_rows);

	make_rest(&rest, 0, builder->layout.n_cells);
}

void
ag_hist_load(const AgHistLayout *layout, const AgHist *hist, int f, int n, int64_t *g, int64_t *h)
{
	const int64_t *cells = hist->cells + layout->offset[f];
	int step = layout->step[f];

	if (hist->is_wide)
	{
		for (int b = 0; b < n; b++)
		{
			g[b] = cells[step * b];
			h[b] = cells[layout->n_cells + step * b];
		}
		return;
	}
	for (int b = 0; b < n; b++)
	{
		g[b] = cells[step * b] >> 32;
		h[b] = (int64_t) (uint32_t) cells[step * b];
	}
}

void
ag_hist_load_rows(const AgHistLayout *layout, const AgHist *hist, int f, int n, int64_t *rows)
{
	const int64_t *cells = hist->cells + layout->offset[f] + (hist->is_wide ? layout->n_cells : 0);

	for (int b = 0; b < n; b++)
		rows[b] = cells[2 * b + 1];
}

void
ag_hist_count(const AgBins *bins, int f, const uint32_t *ids, int64_t n_rows, uint32_t *counts)
{
	const uint8_t *column = bins->columns + f * bins->column_stride;

	memset(counts, 0, AG_HIST_BINS * sizeof *counts);
	for (int64_t i = 0; i < n_rows; i++)
		counts[column[ids[i]]]++;
}
