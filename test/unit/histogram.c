/*
 * histogram.c - histograms and partitions against sums and moves that are written out.
 */
#include "booster.h"
#include "engine/model/histogram.h"
#include "engine/model/histogram_rows.h"
#include "engine/model/partition.h"

/* What a histogram should hold: [n_features][256] of each. */
typedef struct Sums
{
	int64_t g[224][AG_HIST_BINS], h[224][AG_HIST_BINS], rows[224][AG_HIST_BINS];
} Sums;

static void
sum_rows(const AgBins *bins, const AgRowList *list, int64_t n, Sums *sums)
{
	memset(sums, 0, sizeof *sums);
	for (int64_t i = 0; i < n; i++)
		for (int f = 0; f < bins->n_features; f++)
		{
			int bin = bins->columns[f * bins->column_stride + list->ids[i]];

			sums->g[f][bin] += ag_packed_g(list->grads[list->ids[i]]);
			sums->h[f][bin] += ag_packed_h(list->grads[list->ids[i]]);
			sums->rows[f][bin]++;
		}
}

static int
n_differences(const AgHistBuilder *builder, const AgHist *hist, const uint8_t *is_used,
			  const Sums *sums)
{
	int n = 0;

	for (int f = 0; f < builder->bins->n_features; f++)
	{
		int n_bins = builder->bins->features[f].n_bins + 1;
		int64_t g[AG_HIST_BINS], h[AG_HIST_BINS], rows[AG_HIST_BINS];

		if (!is_used[f])
			continue;
		ag_hist_load(&builder->layout, hist, f, n_bins, g, h);
		if (builder->bins->features[f].is_category)
		{
			ag_hist_load_rows(&builder->layout, hist, f, n_bins, rows);
			n += memcmp(rows, sums->rows[f], (size_t) n_bins * sizeof *rows) != 0;
		}
		for (int b = 0; b < n_bins; b++)
			n += g[b] != sums->g[f][b] || h[b] != sums->h[f][b];
	}
	return n;
}

/* extreme: every row has the largest gradient, so that a cell that could overflow does. */
static void
make_list(AgRowList *list, int64_t n, bool is_extreme, uint64_t seed)
{
	list->ids = malloc((size_t) n * sizeof(uint32_t));
	list->grads = malloc((size_t) n * sizeof(uint32_t));
	for (int64_t i = 0; i < n; i++)
	{
		uint64_t bits = ag_random_u64(seed, (uint64_t) i);
		int32_t g = is_extreme ? -AG_QUANTUM_MAX : (int32_t) (bits % 65535) - AG_QUANTUM_MAX;
		uint32_t h = is_extreme ? AG_QUANTUM_MAX : (uint32_t) (bits >> 32) % 32768;

		list->ids[i] = (uint32_t) i;
		list->grads[i] = (uint32_t) g << 16 | h;
	}
}

/* n rows, of which the first n_child are the child; max_bins and n_categories choose fixed or tight cells. */
static void
test_layout(int n_categories, bool is_part, int64_t n, int64_t n_child, int max_bins, int n_numbers,
			bool is_extreme, int n_threads)
{
	static Sums sums;
	Bench bench;
	Table table;
	AgHistBuilder builder;
	AgHist parent = {0}, child = {0};
	AgRowList list, rest;
	uint8_t is_used[16];

	bench_init(&bench, n_threads);
	table_init(&table, n, n_numbers, n_categories, 5, 0.1, 0, 77);
	table_bin(&table, &bench.ctx, max_bins);
	make_list(&list, n, is_extreme, 5);
	AG_REQUIRE(ag_hist_builder_create(&bench.ctx, table.bins, &builder) == AG_OK);
	for (int f = 0; f < table.bins->n_features; f++)
		is_used[f] = !is_part || f % 3 != 1;
	ag_hist_use(&builder, is_used);
	AG_CHECK(builder.layout.n_cells <= ag_hist_cells(table.bins));
	parent.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
	child.cells = malloc((size_t) builder.layout.n_cells * 2 * sizeof(int64_t));
	AG_CHECK(ag_hist_build(&builder, &list, n, &parent) == AG_OK);
	sum_rows(table.bins, &list, n, &sums);
	AG_CHECK_EQ(n_differences(&builder, &parent, is_used, &sums), 0);
	AG_CHECK(ag_hist_build(&builder, &list, n_child, &child) == AG_OK);
	sum_rows(table.bins, &list, n_child, &sums);
	AG_CHECK_EQ(n_differences(&builder, &child, is_used, &sums), 0);
	ag_hist_subtract(&builder, &parent, &child, n - n_child);
	AG_CHECK_EQ(parent.is_wide, n - n_child > AG_NARROW_ROWS);
	rest = (AgRowList){list.ids + n_child, list.grads};
	sum_rows(table.bins, &rest, n - n_child, &sums);
	AG_CHECK_EQ(n_differences(&builder, &parent, is_used, &sums), 0);
	free(parent.cells);
	free(child.cells);
	free(list.ids);
	free(list.grads);
	ag_hist_builder_free(&bench.ctx, &builder);
	table_end(&table);
	bench_end(&bench);
}

/* Rows added in blocks of features, whatever this machine would do: numbers of many bins have cells at constant distances. */
static void
test_blocks(int n_numbers, int n_categories, int n_skipped, bool is_part)
{
	static Sums sums;
	const int64_t n = n_numbers < 100 ? 9000 : 2700; /* several rooms full */
	Bench bench;
	Table table;
	AgHistBuilder builder;
	AgHist hist = {0};
	AgRowList list;
	AgHistRoom room = {malloc(AG_HIST_ROOM_BYTES), malloc(AG_HIST_ROOM_ROWS * sizeof(int64_t))};
	uint8_t is_used[224];
	int64_t n_listed = 0;
	int n_spread = 0;

	bench_init(&bench, 1);
	table_init(&table, n, n_numbers, n_categories, 90, 0.1, 0, 79);
	for (int64_t i = 0; i < n * n_numbers; i++)
		table.numbers[i] = ag_random_unit(80, (uint64_t) i);
	table_bin(&table, &bench.ctx, 254);
	make_list(&list, n, false, 6);
	for (int64_t i = 0; i < n; i++)
		if (i < n / 2 || i % 3 == 0)
			list.ids[n_listed++] = (uint32_t) i;
	AG_REQUIRE(ag_hist_builder_create(&bench.ctx, table.bins, &builder) == AG_OK);
	for (int f = 0; f < table.bins->n_features; f++)
	{
		is_used[f] = f >= n_skipped && (!is_part || f % 3 != 1);
		n_spread += is_used[f] && f < n_numbers;
	}
	ag_hist_use(&builder, is_used);
	AG_CHECK_EQ(builder.layout.is_fixed, n_categories == 0 && n_skipped == 0 && !is_part);
	AG_CHECK_EQ(builder.layout.n_spread, n_spread);
	AG_CHECK(builder.layout.n_cells <= ag_hist_cells(table.bins));
	hist.cells = malloc((size_t) builder.layout.n_cells * sizeof(int64_t));
	memset(hist.cells, 0x5a, (size_t) builder.layout.n_cells * sizeof(int64_t));
	/* in two parts, the second from the middle of a list on */
	ag_hist_add_rows(table.bins, &builder.layout, &list, 0, n / 4, &room, true, hist.cells);
	ag_hist_add_rows(table.bins, &builder.layout, &list, n / 4, n_listed, &room, false, hist.cells);
	sum_rows(table.bins, &list, n_listed, &sums);
	AG_CHECK_EQ(n_differences(&builder, &hist, is_used, &sums), 0);
	free(hist.cells);
	free(list.ids);
	free(list.grads);
	free(room.rows);
	free(room.values);
	ag_hist_builder_free(&bench.ctx, &builder);
	table_end(&table);
	bench_end(&bench);
}

static void
test_build(int64_t n, int64_t n_child, int max_bins, int n_numbers, bool is_extreme, int n_threads)
{
	test_layout(2, false, n, n_child, max_bins, n_numbers, is_extreme, n_threads);
	test_layout(2, true, n, n_child, max_bins, n_numbers, is_extreme, n_threads);
	test_layout(0, false, n, n_child, max_bins, n_numbers, is_extreme, n_threads);
}

/* Every row arrives once, on its side; of all rows, and of one in several, as nodes far from the root list them. */
static void
test_partition(AgCpuLevel level, int64_t n, int one_in, int n_threads)
{
	Bench bench;
	Table table;
	uint32_t *from = malloc((size_t) n * sizeof *from), *to = malloc((size_t) n * sizeof *to);
	AgPartitionScratch *scratch = malloc((size_t) n_threads * sizeof *scratch);
	AgSplit splits[3] = {{.feature = 0, .bin = 100},
						 {.feature = 1, .bin = 7, .missing_left = true},
						 {.feature = 3, .is_category = true, .left_bins = {0x5555, 1, 0, 2}}};
	uint8_t *seen = malloc((size_t) n);

	bench_init(&bench, n_threads);
	table_init(&table, n, 3, 1, 300, 0.1, 0, 78);
	table_bin(&table, &bench.ctx, 254);
	for (int s = 0; s < 3; s++)
	{
		const uint8_t *column = table.bins->columns + splits[s].feature * table.bins->column_stride;
		int64_t n_left = -1, n_expected = 0, n_wrong = 0, n_listed = 0;

		memset(seen, 0, (size_t) n);
		for (int64_t i = 0; i < n; i++)
		{
			if (ag_random_below(6, (uint64_t) i, (uint32_t) one_in) != 0)
				continue;
			from[n_listed++] = (uint32_t) i;
			n_expected += ag_split_goes_left(&splits[s], column[i]);
		}
		AG_CHECK(ag_partition(&bench.ctx, level, table.bins, &splits[s], from, n_listed, to,
							  scratch, &n_left) == AG_OK);
		AG_CHECK_EQ(n_left, n_expected);
		for (int64_t i = 0; i < n_listed; i++)
		{
			uint32_t id = to[i];

			n_wrong += id >= n || seen[id] ||
					   ag_random_below(6, (uint64_t) id, (uint32_t) one_in) != 0 ||
					   ag_split_goes_left(&splits[s], column[id]) != (i < n_left);
			seen[id < n ? id : 0] = 1;
		}
		AG_CHECK_EQ(n_wrong, 0);
	}
	free(seen);
	free(scratch);
	free(from);
	free(to);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	static const int64_t sizes[] = {1, 2, 17, 1000};

	for (int i = 0; i < 4; i++)
	{
		test_build(sizes[i], sizes[i] / 3, 254, 9, false, 1);
		test_build(sizes[i], sizes[i] / 2, 20, 5, true, 2);
	}
	for (int n_threads = 1; n_threads <= 3; n_threads += 2)
	{
		test_build(65536, 1, 254, 10, true, n_threads);
		test_build(65537, 30000, 254, 10, true, n_threads);
		test_build(150000, 20000, 254, 8, true, n_threads);
		test_build(150000, 75000, 10, 8, false, n_threads);
	}
	for (int n_numbers = 12; n_numbers <= 42; n_numbers += 5) /* rows of 16 to 64 bytes */
		test_blocks(n_numbers, 0, 0, false);
	test_blocks(28, 0, 0, false);
	test_blocks(28, 0, 0, true);
	test_blocks(28, 0, 3, false);
	test_blocks(19, 8, 0, false);
	test_blocks(19, 8, 5, false);
	test_blocks(20, 3, 0, true);
	/* rows that don't go to the room whole: windows of 64 bytes, the last of 32 and 64 */
	test_blocks(140, 10, 0, false);
	test_blocks(140, 10, 0, true);
	test_blocks(180, 0, 0, false);
	test_blocks(180, 6, 70, false);
	for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
		for (int n_threads = 1; n_threads <= 3; n_threads++)
		{
			test_partition((AgCpuLevel) level, 1, 1, n_threads);
			test_partition((AgCpuLevel) level, 1005, 1, n_threads);
			test_partition((AgCpuLevel) level, 40001, 1, n_threads);
			test_partition((AgCpuLevel) level, 40001, 5, n_threads);
			test_partition((AgCpuLevel) level, 70000, 30, n_threads);
		}
	return ag_unit_done("histogram");
}
