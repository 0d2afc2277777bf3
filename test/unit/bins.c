/*
 * bins.c - cuts and bins: the one predicate, extreme values, equal bytes from every variant.
 */
#include <float.h>

#include "engine/base/device.h"
#include "engine/data/bins_gpu.h"
#include "engine/data/bins_private.h"
#include "unit/rows.h"

static const AgBinParams usual = {254, 3, 200000};

/* Values that are equal to doubles' neighbours, signed zeros, infinities, denormals. */
static double
hard_value(uint64_t key, uint64_t i)
{
	static const double special[] = {0.0,     -0.0,    1.0,      -1.0,  5e-324, -5e-324,
									 DBL_MIN, DBL_MAX, -DBL_MAX, 1e200, 1e199};
	uint64_t bits = ag_random_u64(key, i);

	switch (bits % 8)
	{
		case 0:
			return special[bits / 8 % 11];
		case 1:
			return bits / 8 % 2 ? (double) INFINITY : -(double) INFINITY;
		case 2:
			return (double) NAN;
		case 3:
			return nextafter(special[bits / 8 % 11], bits / 128 % 2 ? 1e300 : -1e300);
		case 4:
		{
			double value;

			memcpy(&value, &bits, 8);
			return value;
		}
		default:
			return (double) (int64_t) (bits / 8 % 1000) / 8.0;
	}
}

/* Everything that is promised of a numeric feature, against the slow definition. */
static void
check_feature(const AgBins *bins, int f, const double *values, int max_bins)
{
	const AgBinFeature *feature = &bins->features[f];
	const uint8_t *column = bins->columns + f * bins->column_stride;
	bool any_missing = false;

	AG_CHECK(feature->n_bins >= 1 && feature->n_bins <= max_bins);
	for (int t = 0; t < feature->n_bins - 1; t++)
	{
		AG_CHECK(!isnan(feature->cuts[t]) && feature->cuts[t] < (double) INFINITY);
		if (t > 0)
			AG_CHECK(feature->cuts[t - 1] < feature->cuts[t]);
	}
	for (int64_t r = 0; r < bins->n_rows; r++)
	{
		bool ok = column[r] == ag_bin_of_number(feature, values[r]);

		if (isnan(values[r]))
		{
			any_missing = true;
			ok = ok && column[r] == 0;
		}
		else
		{
			ok = ok && column[r] >= 1 && column[r] <= feature->n_bins;
			for (int t = 1; ok && t < feature->n_bins; t++)
				ok = (column[r] <= t) == (values[r] <= feature->cuts[t - 1]);
		}
		if (!ok)
			AG_CHECK(ok);
	}
	AG_CHECK_EQ(feature->has_missing, any_missing);
	AG_CHECK(!feature->is_category);
}

static void
test_hard_values(void)
{
	static const int64_t sizes[] = {1, 2, 3, 10, 63, 64, 65, 1000, 4096, 20000};
	static const int limits[] = {2, 3, 16, 17, 33, 100, 254, 1000};
	Host host;

	host_open(&host, 1);
	for (int s = 0; s < 10; s++)
	{
		int64_t n = sizes[s];
		double *values = malloc((size_t) n * sizeof *values);
		AgBins *bins;

		for (int64_t i = 0; i < n; i++)
			values[i] = hard_value((uint64_t) s, (uint64_t) i);
		AG_REQUIRE(ag_bins_create(&host.ctx, n, 8, &bins) == AG_OK);
		for (int f = 0; f < 8; f++)
		{
			AgBinParams params = {limits[f], f % 2 ? 3 : 1, f % 3 ? 200000 : 500};
			AgBinSource source = {values, NULL, 0};

			AG_REQUIRE(ag_bins_set_feature(&host.ctx, bins, f, &source, &params) == AG_OK);
			check_feature(bins, f, values, limits[f] > 254 ? 254 : limits[f]);
		}
		ag_bins_free(bins);
		free(values);
	}
	host_close(&host);
}

static AgBins *
bin_values(Host *host, const double *values, int64_t n, const AgBinParams *params)
{
	AgBins *bins;
	AgBinSource source = {values, NULL, 0};

	AG_REQUIRE(ag_bins_create(&host->ctx, n, 1, &bins) == AG_OK);
	AG_REQUIRE(ag_bins_set_feature(&host->ctx, bins, 0, &source, params) == AG_OK);
	return bins;
}

/* Distinct values that a double can tell apart get bins of their own. */
static void
test_told_apart(void)
{
	static const double ladders[][6] = {
		{1e199, 1e200, 2e200, 1e201, 1e202, 1e203},
		{-DBL_MAX, -1e308, 0, 1e308, 1.7e308, DBL_MAX},
		{0, 5e-324, 1e-323, 1.5e-323, 2e-323, 2.5e-323},
		{1, 1 + DBL_EPSILON, 1 + 2 * DBL_EPSILON, 1 + 3 * DBL_EPSILON, 2, 3},
		{-(double) INFINITY, -DBL_MAX, -1, 1, DBL_MAX, (double) INFINITY},
		{-(double) INFINITY, -1e300, -1, 1, 5, (double) INFINITY}};
	Host host;

	host_open(&host, 1);
	for (int l = 0; l < 6; l++)
	{
		double values[18];
		AgBins *bins;

		for (int i = 0; i < 18; i++)
			values[i] = ladders[l][i % 6];
		bins = bin_values(&host, values, 18, &usual);
		AG_CHECK_EQ(bins->features[0].n_bins, 6);
		for (int i = 0; i < 18; i++)
			AG_CHECK_EQ(bins->columns[i], 1 + i % 6);
		check_feature(bins, 0, values, 254);
		ag_bins_free(bins);
	}
	{
		static const double two[] = {(double) INFINITY,  -(double) INFINITY, (double) INFINITY,
									 -(double) INFINITY, (double) INFINITY,  -(double) INFINITY};
		AgBins *bins = bin_values(&host, two, 6, &usual);

		AG_CHECK_EQ(bins->features[0].n_bins, 2);
		AG_CHECK(isfinite(bins->features[0].cuts[0]));
		ag_bins_free(bins);
	}
	host_close(&host);
}

static void
test_cuts(void)
{
	enum
	{
		N = 50000
	};
	static double values[N];
	static int counts[256];
	Host host;
	AgBins *bins;

	host_open(&host, 1);
	/* A midpoint, and rare values that join the next bin. */
	for (int i = 0; i < 12; i++)
		values[i] = i < 4 ? 1 : i < 5 ? 2 : i < 8 ? 4 : 10;
	bins = bin_values(&host, values, 12, &usual);
	AG_REQUIRE(bins->features[0].n_bins == 3);
	AG_CHECK(bins->features[0].cuts[0] == 1.5 && bins->features[0].cuts[1] == 7.0);
	ag_bins_free(bins);
	/* Equal counts: no bin is more than a few times the mean. */
	for (int i = 0; i < N; i++)
		values[i] = -log(1 - ag_random_unit(1, (uint64_t) i));
	bins = bin_values(&host, values, N, &usual);
	AG_CHECK(bins->features[0].n_bins >= 250);
	memset(counts, 0, sizeof counts);
	for (int i = 0; i < N; i++)
		counts[bins->columns[i]]++;
	for (int b = 1; b <= bins->features[0].n_bins; b++)
		AG_CHECK(counts[b] > N / 254 / 3 && counts[b] < N / 254 * 3);
	ag_bins_free(bins);
	/* A value that half of the rows share has a bin of its own, and doesn't cost the others theirs. */
	for (int i = 0; i < N; i += 2)
		values[i] = 0.5;
	bins = bin_values(&host, values, N, &usual);
	AG_CHECK(bins->features[0].n_bins >= 245);
	{
		int bin = ag_bin_of_number(&bins->features[0], 0.5);
		int others = 0;

		for (int i = 1; i < N; i += 2)
			others += bins->columns[i] == bin;
		AG_CHECK(others < N / 254);
	}
	ag_bins_free(bins);
	/* A sample that saw one value only isn't the last word. */
	for (int i = 0; i < N; i++)
		values[i] = i < N - 100 ? 3 : i;
	{
		AgBinParams params = {254, 3, 1000};

		bins = bin_values(&host, values, N, &params);
		AG_CHECK(bins->features[0].n_bins > 10);
		ag_bins_free(bins);
	}
	/* One value and missing ones: one bin beside the missing. */
	for (int i = 0; i < 100; i++)
		values[i] = i % 2 ? 7 : (double) NAN;
	bins = bin_values(&host, values, 100, &usual);
	AG_CHECK(bins->features[0].n_bins == 1 && bins->features[0].has_missing);
	ag_bins_free(bins);
	host_close(&host);
}

static void
test_categories(void)
{
	Host host;
	AgBins *bins;
	static uint32_t codes[2000];

	host_open(&host, 1);
	for (int i = 0; i < 2000; i++)
		codes[i] = i % 10 == 0 ? UINT32_MAX : (uint32_t) i;
	AG_REQUIRE(ag_bins_create(&host.ctx, 2000, 5, &bins) == AG_OK);
	for (int f = 0; f < 5; f++)
	{
		static const uint32_t levels[] = {2000, 254, 255, 7, 100000};
		AgBinSource source = {NULL, codes, levels[f]};
		AgBinParams params = {f == 4 ? 10 : 254, 3, 200000};
		const AgBinFeature *feature = &bins->features[f];

		AG_REQUIRE(ag_bins_set_feature(&host.ctx, bins, f, &source, &params) == AG_OK);
		AG_CHECK(feature->is_category && feature->has_missing && feature->n_levels == levels[f]);
		AG_CHECK_EQ(feature->has_other, f != 1 && f != 3);
		AG_CHECK_EQ(feature->n_bins, f == 3 ? 7 : f == 4 ? 10 : 254);
		for (int i = 0; i < 2000; i++)
			if (bins->columns[f * bins->column_stride + i] != ag_bin_of_code(feature, codes[i]))
				AG_CHECK_EQ(bins->columns[f * bins->column_stride + i],
							ag_bin_of_code(feature, codes[i]));
		AG_CHECK_EQ(ag_bin_of_code(feature, UINT32_MAX), 0);
		AG_CHECK_EQ(ag_bin_of_code(feature, 0), 1);
		AG_CHECK_EQ(ag_bin_of_code(feature, 5000), feature->n_bins);
	}
	ag_bins_free(bins);
	host_close(&host);
}

/* The layout: strides, spare bytes, the row-major copy, at any number of threads. */
static void
test_layout(void)
{
	static const int widths[] = {1, 4, 27, 28, 29, 60, 61, 100};

	for (int w = 0; w < 8; w++)
	{
		int n_features = widths[w];
		int64_t n = w == 0 ? 8192 : 1000 + w;
		uint32_t *codes = malloc((size_t) n * sizeof *codes);
		Host host;
		AgBins *bins;

		host_open(&host, 1 + w % 3);
		AG_REQUIRE(ag_bins_create(&host.ctx, n, n_features, &bins) == AG_OK);
		AG_CHECK(bins->row_stride >= n_features + 4 && bins->row_stride % 4 == 0);
		AG_CHECK(bins->row_stride <= 32 || bins->row_stride % 32 == 0);
		AG_CHECK(bins->row_stride < n_features + 4 + 32);
		AG_CHECK(bins->column_stride >= n && bins->column_stride % 64 == 0 &&
				 bins->column_stride % 4096 != 0);
		for (int f = 0; f < n_features; f++)
		{
			AgBinSource source = {NULL, codes, 200};

			for (int64_t i = 0; i < n; i++)
				codes[i] = ag_random_below((uint64_t) f, (uint64_t) i, 200);
			AG_REQUIRE(ag_bins_set_feature(&host.ctx, bins, f, &source, &usual) == AG_OK);
		}
		AG_REQUIRE(ag_bins_make_rows(&host.ctx, bins) == AG_OK);
		for (int64_t i = 0; i < n; i++)
			for (int f = 0; f < bins->row_stride; f++)
			{
				uint8_t want = f < n_features ? bins->columns[f * bins->column_stride + i] : 0;

				if (bins->rows[i * bins->row_stride + f] != want)
					AG_CHECK_EQ(bins->rows[i * bins->row_stride + f], want);
			}
		AG_CHECK_EQ(ag_bins_make_rows(&host.ctx, bins), AG_OK);
		ag_bins_free(bins);
		free(codes);
		host_close(&host);
	}
	ag_bins_free(NULL);
}

static void
test_variants(void)
{
	enum
	{
		N = 3000
	};
	AgBinAssign variants[3];
	int n_variants = ag_bin_assign_variants(variants);
	static double values[N];
	static uint8_t first[N], other[N];
	double cuts[253];

	for (int i = 0; i < N; i++)
		values[i] = hard_value(77, (uint64_t) i);
	for (int n_cuts = 0; n_cuts <= 253; n_cuts += n_cuts < 20 ? 1 : 11)
	{
		AgCutTable table;

		for (int i = 0; i < n_cuts; i++)
			cuts[i] = i * 100.0 / n_cuts - (i == 0 ? 1e300 : 0);
		if (n_cuts > 200)
			cuts[0] = -(double) INFINITY;
		ag_cut_table_init(&table, cuts, n_cuts);
		variants[0](&table, values, N, first);
		for (int v = 1; v < n_variants; v++)
		{
			memset(other, 0xff, N);
			variants[v](&table, values, N, other);
			AG_CHECK(memcmp(first, other, N) == 0);
		}
	}
	AG_CHECK(ag_bin_assign_best() == variants[n_variants - 1]);
	for (int i = 1; i < N; i++)
	{
		double a = values[i - 1], b = values[i];

		if (isnan(a) || isnan(b))
			continue;
		AG_CHECK((ag_order_key(a) < ag_order_key(b)) == (a < b));
		AG_CHECK(ag_order_value(ag_order_key(a)) == a);
	}
}

static void
test_out_of_memory(void)
{
	static double values[1000];
	int n_failed = 0;

	for (int i = 0; i < 1000; i++)
		values[i] = i;
	for (int64_t k = 0;; k++)
	{
		Host host;
		AgBins *bins = NULL;
		AgBinSource source = {values, NULL, 0};
		AgStatus status;

		host_open(&host, 1);
		host.mem.fail_after = k;
		status = ag_bins_create(&host.ctx, 1000, 2, &bins);
		for (int f = 0; f < 2 && status == AG_OK; f++)
			status = ag_bins_set_feature(&host.ctx, bins, f, &source, &usual);
		if (status == AG_OK)
			status = ag_bins_make_rows(&host.ctx, bins);
		host.mem.fail_after = -1;
		ag_bins_free(bins);
		host_close(&host);
		if (status == AG_OK)
			break;
		n_failed++;
		AG_CHECK_EQ(status, AG_ERR_MEMORY);
		AG_CHECK_EQ(host.error.status, AG_ERR_MEMORY);
	}
	AG_CHECK_EQ(n_failed, 11);
}

/* The middle of what was sampled in each bin; of a bin of one value, the value. */
static void
test_centers(void)
{
	static const double values[] = {3.0, NAN, 1.0, 2.0, 2.0, INFINITY, -INFINITY, 1e301};
	static const double told[] = {-1e300, 1.0, 2.0, 3.0, 1e300};
	AgBinParams params = {254, 1, 200000};
	AgBinSource source = {.values = values};
	static double many[5000];
	AgBins *bins;
	Host host;

	host_open(&host, 1);
	AG_REQUIRE(ag_bins_create(&host.ctx, 8, 1, &bins) == AG_OK);
	AG_CHECK_EQ(ag_bins_set_feature(&host.ctx, bins, 0, &source, &params), AG_OK);
	for (int b = 0; b < 4; b++)
		AG_CHECK(bins->features[0].centers[b] == told[b]);
	AG_CHECK(bins->features[0].centers[bins->features[0].n_bins - 1] == told[4]);
	ag_bins_free(bins);
	for (int i = 0; i < 5000; i++)
		many[i] = i * (double) i;
	source.values = many;
	params.max_bins = 20;
	AG_REQUIRE(ag_bins_create(&host.ctx, 5000, 1, &bins) == AG_OK);
	AG_CHECK_EQ(ag_bins_set_feature(&host.ctx, bins, 0, &source, &params), AG_OK);
	for (int b = 1; b <= bins->features[0].n_bins; b++)
	{
		double least = INFINITY, most = -INFINITY;

		for (int i = 0; i < 5000; i++)
			if (bins->columns[i] == b)
			{
				least = fmin(least, many[i]);
				most = fmax(most, many[i]);
			}
		AG_CHECK(bins->features[0].centers[b - 1] == least + 0.5 * (most - least));
	}
	ag_bins_free(bins);
	host_close(&host);
}

/* Keys whose upper halves tell them apart, tell a few apart, and don't at all: in order, and none lost. */
static void
test_sort(void)
{
	enum
	{
		N = 30000
	};
	uint64_t *keys = malloc(2 * N * sizeof *keys);

	for (int shift = 0; shift <= 60; shift += 6)
		for (int64_t n = 0; n <= N; n = n * 31 + 1)
		{
			uint64_t *sorted, sum = 0;
			int64_t n_wrong = 0;

			for (int64_t i = 0; i < n; i++)
			{
				keys[i] = ag_random_u64(90, (uint64_t) i) >> shift | UINT64_C(1) << 63;
				sum += keys[i];
			}
			sorted = ag_keys_sort(keys, keys + N, n);
			for (int64_t i = 0; i < n; i++)
			{
				n_wrong += i > 0 && sorted[i] < sorted[i - 1];
				sum -= sorted[i];
			}
			AG_CHECK(n_wrong == 0 && sum == 0);
		}
	free(keys);
}

/* The rule of equal counts, value by value: where each bin ends, as the number of keys before. */
static int
slow_ends(const uint64_t *keys, int64_t n, int max_bins, int64_t *ends)
{
	double heavy = (double) n / max_bins, mean;
	int64_t bins_left = max_bins, rows_left = n, in_bin = 0;
	int n_ends = 0;

	for (int64_t at = 0, next; at < n; at = next)
	{
		for (next = at + 1; next < n && keys[next] == keys[at];)
			next++;
		if ((double) (next - at) >= heavy)
		{
			bins_left--;
			rows_left -= next - at;
		}
	}
	mean = bins_left > 0 ? (double) rows_left / (double) bins_left : heavy;
	for (int64_t at = 0, next, after; n_ends < max_bins - 1; at = next)
	{
		bool is_heavy, before_heavy;

		for (next = at + 1; next < n && keys[next] == keys[at];)
			next++;
		if (next >= n)
			break;
		for (after = next + 1; after < n && keys[after] == keys[next];)
			after++;
		is_heavy = (double) (next - at) >= heavy;
		before_heavy = (double) (after - next) >= heavy;
		rows_left -= is_heavy ? 0 : next - at;
		in_bin += next - at;
		if (!is_heavy && (double) in_bin < mean &&
			!(before_heavy && (double) in_bin >= (mean > 2 ? mean / 2 : 1)))
			continue;
		ends[n_ends++] = next;
		in_bin = 0;
		if (!is_heavy && --bins_left > 0)
			mean = (double) rows_left / (double) bins_left;
	}
	return n_ends;
}

/* Bins end where the rule says, among values that differ, that repeat, and that fill bins. */
static void
test_equal_counts(void)
{
	enum
	{
		N = 20000
	};
	uint64_t *keys = malloc(2 * N * sizeof *keys);

	for (int r = 0; r < 60; r++)
	{
		int64_t n = 2000 + ag_random_below(91, (uint64_t) r, N - 2000), ends[256];
		int max_bins = 3 + (int) ag_random_below(92, (uint64_t) r, 252), n_ends, n_cuts;
		uint32_t n_values = 300u << r % 10;
		uint64_t *sorted;
		double cuts[256];
		int n_wrong = 0;

		for (int64_t i = 0; i < n; i++)
		{
			double value = ag_random_below(93 + (uint64_t) r, (uint64_t) i, n_values);

			if (r % 3 == 2 && i % 5 == 0) /* some values are far more frequent */
				value = (double) (i % 3) * 50.0;
			keys[i] = ag_order_key(value);
		}
		sorted = ag_keys_sort(keys, keys + N, n);
		n_ends = slow_ends(sorted, n, max_bins, ends);
		n_cuts = ag_cuts_choose(sorted, n, max_bins, 1, cuts);
		AG_CHECK_EQ(n_cuts, n_ends);
		for (int c = 0; c < n_cuts && c < n_ends; c++)
			n_wrong += !(ag_order_value(sorted[ends[c] - 1]) <= cuts[c] &&
						 cuts[c] < ag_order_value(sorted[ends[c]]));
		AG_CHECK_EQ(n_wrong, 0);
	}
	free(keys);
}

/* ---- a device that bins ---- */

static int n_there;

static AgDeviceStatus
fake_create(AgDevice *device, int64_t n_rows, int64_t n_sample, AgDeviceBinner **binner)
{
	(void) device;
	AG_CHECK(n_rows == 500 && n_sample == 400);
	*binner = (AgDeviceBinner *) &n_there;
	return AG_DEVICE_OK;
}

static void
fake_free(AgDevice *device, AgDeviceBinner *binner)
{
	(void) device;
	AG_CHECK(binner == (AgDeviceBinner *) &n_there);
}

static AgDeviceStatus
fake_sort(AgDevice *device, AgDeviceBinner *binner, const double *values, int64_t n, uint64_t *keys,
		  int64_t *n_keys)
{
	uint64_t own[500], spare[500], *sorted;

	(void) device;
	(void) binner;
	for (int64_t i = 0; i < n; i++)
		own[i] = ag_order_key(values[i]);
	sorted = ag_keys_sort(own, spare, n);
	memcpy(keys, sorted, (size_t) n * sizeof *keys);
	*n_keys = n;
	return AG_DEVICE_OK;
}

static AgDeviceStatus
fake_assign(AgDevice *device, AgDeviceBinner *binner, const double *values, int64_t n,
			const double *cuts, int32_t n_cuts, uint8_t *bins)
{
	AgBinFeature feature = {.n_bins = n_cuts + 1, .cuts = (double *) cuts};

	(void) device;
	(void) binner;
	for (int64_t i = 0; i < n; i++)
		bins[i] = (uint8_t) ag_bin_of_number(&feature, values[i]);
	n_there++;
	return AG_DEVICE_OK;
}

/* Who bins the next column: first the device twice, then a CPU once, then whoever was the faster. */
static void
test_device_is_ahead(void)
{
	AgDeviceOps ops = {.bin_create = fake_create,
					   .bin_free = fake_free,
					   .bin_sort = fake_sort,
					   .bin_assign = fake_assign};
	AgGpu gpu = {.ops = &ops};
	AgBinParams params = {254, 3, 400};
	double values[500];
	AgBinSource source = {values, NULL, 0};
	Host host;

	for (int i = 0; i < 500; i++)
		values[i] = ag_random_unit(3, (uint64_t) i);
	for (int way = 0; way < 4; way++)
	{
		static const int expected[] = {8, 2, 2, 0};
		AgBins *bins;

		host_open(&host, 1);
		host.ctx.gpu = way == 3 ? NULL : &gpu;
		AG_REQUIRE(ag_bins_create(&host.ctx, 500, 8, &bins) == AG_OK);
		ag_bins_gpu_begin(&host.ctx, bins, &params);
		AG_CHECK((bins->gpu != NULL) == (way < 3));
		n_there = 0;
		if (way == 0)
			ag_bins_gpu_note_cpu(bins->gpu, INT64_C(1) << 60);
		if (way == 1)
			ag_bins_gpu_note_cpu(bins->gpu, 0);
		for (int f = 0; f < (way == 2 ? 3 : 8); f++)
		{
			AG_REQUIRE(ag_bins_set_feature(&host.ctx, bins, f, &source, &params) == AG_OK);
			check_feature(bins, f, values, 254);
		}
		AG_CHECK_EQ(n_there, expected[way]);
		ag_bins_gpu_end(&host.ctx, bins);
		AG_CHECK(bins->gpu == NULL);
		ag_bins_free(bins);
		host_close(&host);
	}
}

int
main(void)
{
	test_device_is_ahead();
	test_sort();
	test_equal_counts();
	test_hard_values();
	test_told_apart();
	test_cuts();
	test_categories();
	test_layout();
	test_variants();
	test_centers();
	test_out_of_memory();
	return ag_unit_done("bins");
}
