/*
 * split_filter.c - scans that look at cuts in single precision first lose none: nodes whose cuts hardly differ, whose sides are
 * of very different weight, and whose best cut is exactly what is asked for.
 */
#include <math.h>

#include "engine/base/rng.h"
#include "engine/model/split_scan.h"
#include "unit.h"

#define N_NODES 60000
#define MOST_H INT64_C(2147418112) /* 65536 rows of 32767 */

typedef struct Case
{
	AgSplitRules rules;
	AgSplitNode node;
	AgSplitSums sums;
	int64_t cells[AG_HIST_BINS];
	int n_bins;
} Case;

/* A number below n, another for each key and at. */
static int64_t
draw(uint64_t key, uint64_t at, int64_t n)
{
	return (int64_t) (ag_random_unit(key, at) * (double) n);
}

/* Hessians of bins over up to 31 powers of two; gradients at one ratio to them, but for a little. */
static void
make_case(uint64_t key, Case *c)
{
	static const double l2s[] = {0.0, 0.0, 1.0, 1e-3, 300.0, 1e6};
	int most_bits = 1 + (int) draw(key, 0, 30), noise_bits = 1 + (int) draw(key, 1, 24);
	double ratio = draw(key, 2, 3) == 0 ? 0.0 : 1.98 * ag_random_unit(key, 3) - 0.99;
	int64_t h_left = MOST_H;

	memset(c, 0, sizeof *c);
	c->n_bins = 2 + (int) draw(key, 4, 253);
	c->rules = (AgSplitRules){
		.l2 = l2s[draw(key, 5, 6)], .min_h = (double) draw(key, 6, 2) * 1e-3, .is_plain = true};
	for (int b = draw(key, 7, 2) == 0; b <= c->n_bins; b++)
	{
		uint64_t own = ag_key(key, (uint64_t) b);
		int64_t h = draw(own, 0, INT64_C(1) << draw(own, 1, most_bits + 1)) + 1;
		int64_t most = h < INT64_C(1) << noise_bits ? h : INT64_C(1) << noise_bits, g;

		if (h > h_left)
			break;
		h_left -= h;
		g = (int64_t) (ratio * (double) (h - most)) + draw(own, 2, 2 * most + 1) - most;
		c->cells[b] = (int64_t) ((uint64_t) g << 32) + h;
		c->sums.g[b] = g;
		c->sums.h[b] = h;
		c->node.sum_g += g;
		c->node.sum_h += h;
	}
	c->node.n_rows = 65536;
}

/* Whether a scan with that floor finds what is best, or where that is below, nothing that reaches it. */
static bool
keeps_best(const Case *c, double floor, const AgScan *best)
{
	AgScan found;

	ag_scan_packed(&c->rules, &c->node, c->cells, &c->sums, c->n_bins, floor, &found);
	if (best->score < floor)
		return found.score < floor;
	return found.score == best->score && found.bin == best->bin &&
		   found.missing_left == best->missing_left && found.left_g == best->left_g &&
		   found.left_h == best->left_h;
}

static void
test_level(AgCpuLevel level)
{
	int n_wrong = 0, n_gains = 0;

	for (uint64_t key = 1; key <= N_NODES; key++)
	{
		static Case c;
		AgScan best;
		bool has_missing;
		double bar;

		make_case(key, &c);
		c.rules.level = level;
		has_missing = c.cells[0] != 0;
		ag_scan_cuts(&c.rules, &c.node, &c.sums, c.n_bins, has_missing, 1,
					 has_missing ? c.n_bins : c.n_bins - 1, &best);
		bar = ag_split_bar(&c.rules, &c.node);
		n_gains += best.score > bar;
		n_wrong += !keeps_best(&c, -(double) INFINITY, &best);
		n_wrong += !keeps_best(&c, 0.0, &best);
		n_wrong += !keeps_best(&c, bar, &best);
		n_wrong += !keeps_best(&c, best.score, &best);
		n_wrong += !keeps_best(&c, nextafter(best.score, -(double) INFINITY), &best);
		n_wrong += !keeps_best(&c, nextafter(best.score, (double) INFINITY), &best);
	}
	AG_CHECK_EQ(n_wrong, 0);
	AG_CHECK(n_gains > N_NODES / 2);
}

int
main(void)
{
	for (int level = AG_CPU_PORTABLE; level <= (int) ag_cpu_level(); level++)
		test_level((AgCpuLevel) level);
	return ag_unit_done("split_filter");
}
