/*
 * bins_cuts.c - where a number's bins begin and end.
 *
 * Equal-frequency bins, greedily from the left, in which a value that is as frequent as a whole bin gets one
 * of its own: the rule of LightGBM (Ke et al. 2017), so that results with equal parameters can be compared. A cut lies
 * midway between neighbouring distinct values.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/data/bins_private.h"

uint64_t
ag_order_key(double value)
{
	return ag_order_bits(value);
}

double
ag_order_value(uint64_t key)
{
	return ag_of_order_bits(key);
}

#define FEW_KEYS 28 /* so few are in order before a pass has counted its digits */

/* From that bit on, least significant digit first, 11 bits a pass; digits that are the same in all keys cost only their count. */
static void
sort_digits(uint64_t **keys, uint64_t **spare, int64_t n, int first)
{
	for (int shift = first; shift < 64; shift += 11)
	{
		int64_t starts[2048] = {0};
		int64_t sum = 0;
		uint64_t *from = *keys, *to = *spare;

		for (int64_t i = 0; i < n; i++)
			starts[from[i] >> shift & 2047]++;
		if (starts[from[0] >> shift & 2047] == n)
			continue;
		for (int digit = 0; digit < 2048; digit++)
		{
			int64_t count = starts[digit];

			starts[digit] = sum;
			sum += count;
		}
		for (int64_t i = 0; i < n; i++)
			to[starts[from[i] >> shift & 2047]++] = from[i];
		*keys = to;
		*spare = from;
	}
}

/* Moves each key to where it belongs, as far as there are no more than so many moves: then false. */
static bool
sort_near(uint64_t *keys, int64_t n, int64_t most_moves)
{
	for (int64_t i = 1; i < n; i++)
	{
		uint64_t key = keys[i];
		int64_t at = i;

		for (; at > 0 && keys[at - 1] > key; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
		most_moves -= i - at;
		if (most_moves < 0)
			return false;
	}
	return true;
}

/* The upper half of the bits says nearly all about numbers of the usual kinds: what it leaves open is a few places away. */
uint64_t *
ag_keys_sort(uint64_t *keys, uint64_t *spare, int64_t n)
{
	if (n <= FEW_KEYS)
	{
		sort_near(keys, n, INT64_MAX);
		return keys;
	}
	sort_digits(&keys, &spare, n, 31);
	if (!sort_near(keys, n, 2 * n))
		sort_digits(&keys, &spare, n, 0);
	return keys;
}

/* A cut with left <= cut < right, for left < right. */
static double
cut_between(double left, double right)
{
	double cut;

	if (isinf(left))
		cut = isinf(right) ? 0.0 : -DBL_MAX;
	else if (isinf(right))
		cut = DBL_MAX;
	else
		cut = left / 2 + right / 2; /* the sum could overflow */
	/* Neighbouring doubles have nothing between them, and halves of the tiniest are rounded. */
	return cut >= left && cut < right ? cut : left;
}

/* A walk over the distinct values of sorted keys. */
typedef struct Run
{
	uint64_t key;
	int64_t count;
	int64_t next; /* where the following one begins */
} Run;

static Run
run_at(const uint64_t *keys, int64_t n, int64_t at)
{
	Run run = {keys[at], 0, at};

	while (run.next < n && keys[run.next] == run.key)
		run.next++;
	run.count = run.next - at;
	return run;
}

/* Few distinct values: each has a bin, but for those too rare, which join the next. */
static int
cut_every_value(const uint64_t *keys, int64_t n, int min_data_in_bin, double *cuts)
{
	int n_cuts = 0;
	int64_t in_bin = 0;
	Run run = run_at(keys, n, 0);

	while (run.next < n)
	{
		Run following = run_at(keys, n, run.next);

		in_bin += run.count;
		if (in_bin >= min_data_in_bin)
		{
			cuts[n_cuts++] = cut_between(ag_order_value(run.key), ag_order_value(following.key));
			in_bin = 0;
		}
		run = following;
	}
	return n_cuts;
}

/* Values that fill a bin alone: how many rows they have. A run of `least` keys holds every least-th place at least once. */
static int64_t
count_heavy(const uint64_t *keys, int64_t n, int64_t least, int64_t *n_values)
{
	int64_t rows = 0, end = 0;

	*n_values = 0;
	for (int64_t at = 0; at < n; at += least)
	{
		int64_t begin = at;

		if (at < end)
			continue;
		while (begin > end && keys[begin - 1] == keys[at])
			begin--;
		end = run_at(keys, n, at).next;
		if (end - begin < least)
			continue;
		rows += end - begin;
		(*n_values)++;
	}
	return rows;
}

/* No heavy values: each bin ends with the first value that makes it full, and the rest is shared by the bins left. */
static int
cut_light_values(const uint64_t *keys, int64_t n, int max_bins, double *cuts)
{
	double mean = (double) n / max_bins;
	int n_cuts = 0;

	for (int64_t begin = 0; n_cuts < max_bins - 1;)
	{
		int64_t last = begin + (int64_t) ceil(mean) - 1, end;

		if (last >= n)
			break;
		end = run_at(keys, n, last).next;
		if (end >= n)
			break;
		cuts[n_cuts++] = cut_between(ag_order_value(keys[last]), ag_order_value(keys[end]));
		mean = (double) (n - end) / (max_bins - n_cuts);
		begin = end;
	}
	return n_cuts;
}

/* Many distinct values: bins of equal count, around the values that fill one alone. */
static int
cut_equal_counts(const uint64_t *keys, int64_t n, int max_bins, int min_data_in_bin, double *cuts)
{
	int64_t bins_left, rows_left, in_bin = 0, n_heavy;
	double heavy, mean;
	int n_cuts = 0;
	Run run;

	if (n / min_data_in_bin < max_bins)
		max_bins = n / min_data_in_bin > 1 ? (int) (n / min_data_in_bin) : 1;
	heavy = (double) n / max_bins;
	rows_left = n - count_heavy(keys, n, (int64_t) ceil(heavy), &n_heavy);
	if (n_heavy == 0)
		return cut_light_values(keys, n, max_bins, cuts);
	bins_left = max_bins - n_heavy;
	mean = bins_left > 0 ? (double) rows_left / (double) bins_left : heavy;
	run = run_at(keys, n, 0);
	while (run.next < n && n_cuts < max_bins - 1)
	{
		Run following = run_at(keys, n, run.next);
		bool is_heavy = (double) run.count >= heavy;
		bool before_heavy = (double) following.count >= heavy;

		if (!is_heavy)
			rows_left -= run.count;
		in_bin += run.count;
		if (is_heavy || (double) in_bin >= mean ||
			(before_heavy && (double) in_bin >= (mean > 2 ? mean / 2 : 1)))
		{
			cuts[n_cuts++] = cut_between(ag_order_value(run.key), ag_order_value(following.key));
			in_bin = 0;
			if (!is_heavy && --bins_left > 0)
				mean = (double) rows_left / (double) bins_left;
		}
		run = following;
	}
	return n_cuts;
}

int
ag_cuts_choose(const uint64_t *keys, int64_t n, int max_bins, int min_data_in_bin, double *cuts)
{
	int64_t n_distinct = n > 0;

	if (min_data_in_bin < 1)
		min_data_in_bin = 1;
	for (int64_t i = 1; i < n && n_distinct <= max_bins; i++)
		n_distinct += keys[i] != keys[i - 1];
	if (n_distinct <= 1)
		return 0;
	if (n_distinct <= max_bins)
		return cut_every_value(keys, n, min_data_in_bin, cuts);
	return cut_equal_counts(keys, n, max_bins, min_data_in_bin, cuts);
}
