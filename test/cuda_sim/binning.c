/*
 * binning.c - columns of numbers that are binned on the device against those that are on the CPU: the same bytes. Links with the kernels, on
 * the simulator or on a real GPU.
 */
#include <math.h>

#include "engine/base/rng.h"
#include "engine/data/bins_gpu.h"

#include "cuda_sim/lib/there.h"

#define KINDS 9

/* Columns of every kind that the cuts look at. */
static double
value_of(int kind, int64_t n, int64_t i)
{
	double unit = ag_random_unit(ag_key(11, (uint64_t) kind), (uint64_t) i);

	switch (kind)
	{
		case 0:
			return unit;
		case 1: /* few values, and missing ones */
			return unit < 0.2 ? (double) NAN : floor(unit * 20.0);
		case 2: /* values that fill bins alone among many others */
			return unit < 0.3 ? 7.0 : unit < 0.4 ? -7.0 : unit * 100.0;
		case 3:
			return (double) NAN;
		case 4:
			return unit < 0.1 ? -(double) INFINITY : unit < 0.2 ? (double) INFINITY : unit - 0.6;
		case 5: /* zeros of both signs */
			return unit < 0.3 ? -0.0 : unit < 0.6 ? 0.0 : unit;
		case 6: /* one value in the sample */
			return i < n - 2 ? 4.0 : (double) i;
		case 7: /* neighbours, and the tiniest */
			return unit < 0.5 ? nextafter(1.0, unit < 0.25 ? 2.0 : 0.0) : unit * 1e-310;
		default: /* in order */
			return (double) i;
	}
}

static char said[300];

static void
hear(void *host, AgLogLevel level, const char *text, const char *hint)
{
	(void) host;
	(void) level;
	(void) hint;
	snprintf(said, sizeof said, "%s", text);
}

/* Two columns of a kind, the first that a device is given; both alike. */
static AgBins *
bin_kind(AgContext *ctx, const double *values, int64_t n, const AgBinParams *params)
{
	AgBinSource source = {values, NULL, 0};
	AgBins *bins;

	said[0] = '\0';
	ctx->log = hear;
	AG_REQUIRE(ag_bins_create(ctx, n, 2, &bins) == AG_OK);
	ag_bins_gpu_begin(ctx, bins, params);
	for (int f = 0; f < 2; f++)
		AG_REQUIRE(ag_bins_set_feature(ctx, bins, f, &source, params) == AG_OK);
	ag_bins_gpu_end(ctx, bins);
	ctx->log = NULL;
	return bins;
}

static bool
same_bins(const AgBins *a, const AgBins *b)
{
	bool is_same = true;

	for (int f = 0; f < 2 && is_same; f++)
	{
		const AgBinFeature *one = &a->features[f], *other = &b->features[f];

		is_same = one->n_bins == other->n_bins && one->has_missing == other->has_missing &&
				  memcmp(a->columns + f * a->column_stride, b->columns + f * b->column_stride,
						 (size_t) a->n_rows) == 0;
		if (is_same && one->n_bins > 1)
			is_same = memcmp(one->cuts, other->cuts, (size_t) (one->n_bins - 1) * 8) == 0;
		is_same = is_same && memcmp(one->centers, other->centers, (size_t) one->n_bins * 8) == 0;
	}
	return is_same;
}

/* expected: how the log's line begins. */
static void
check_kind(int kind, int64_t n, int64_t sample_rows, int max_bins, int64_t limit_bytes,
		   const char *expected)
{
	AgBinParams params = {.max_bins = max_bins, .min_data_in_bin = 3, .sample_rows = sample_rows};
	double *values = malloc((size_t) n * sizeof *values);
	AgBins *ours, *theirs;
	There there;
	Bench here;

	for (int64_t i = 0; i < n; i++)
		values[i] = value_of(kind, n, i);
	bench_init(&here, 1);
	there_init(&there, limit_bytes);
	ours = bin_kind(&here.ctx, values, n, &params);
	AG_CHECK_STR(said, "");
	theirs = bin_kind(&there.bench.ctx, values, n, &params);
	if (!AG_CHECK(same_bins(ours, theirs) && strncmp(said, expected, strlen(expected)) == 0))
		fprintf(stderr, "    kind %d, %d rows: %s\n", kind, (int) n, said);
	ag_bins_free(ours);
	ag_bins_free(theirs);
	there_end(&there);
	bench_end(&here);
	free(values);
}

#define MUCH (INT64_C(1) << 40)
#define BOTH "Binned 2 columns of numbers on cuda:0 ("

static void
check_kinds(void)
{
	for (int kind = 0; kind < KINDS; kind++)
	{
		/* what a sample leaves open is left to the CPU */
		check_kind(kind, 3001, 1000, 254, MUCH,
				   kind == 3 || kind == 6 ? "Binned 0 columns of numbers on cuda:0 (" : BOTH);
		check_kind(kind, 257, 0, 254, MUCH, BOTH);
		check_kind(kind, 5, 200000, 2, MUCH, BOTH);
	}
	check_kind(0, 1, 200000, 254, MUCH, BOTH);
	/* more rows than are there at a time */
	check_kind(2, (INT64_C(2) << 20) + 5, 500, 16, MUCH, BOTH);
}

static void
check_machines(void)
{
	for (int order = 0; is_simulated && order < 3; order++)
	{
		sim_machine_reset(2 * order + 1, 48 << 10, order);
		check_kind(1, 900, 500, 254, MUCH, BOTH);
	}
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
}

/* Whatever fails there is done here, and nothing stays. */
static void
check_failures(void)
{
	check_kind(0, 900, 500, 254, 9000, "Columns are binned on the CPU: ");
	AG_CHECK(strstr(said, "share of GPU 0") != NULL);
	for (long at = 0; is_simulated && at < 8; at++)
	{
		sim_fail_after(at < 6 ? at : -1, at < 6 ? -1 : at - 6);
		check_kind(1, 900, 500, 254, MUCH, "Columns are binned on the CPU: ");
		AG_CHECK(strstr(said, at < 6 ? "the memory of GPU 0 is full" : "GPU 0 failed while") !=
				 NULL);
		sim_machine_reset(2, 227 << 10, 0);
	}
}

int
main(void)
{
	there_begin();
	check_kinds();
	check_machines();
	check_failures();
	return ag_unit_done("cuda binning");
}
