/*
 * percentile.c - by partition, not by sorting (Hoare 1961, "Algorithm 65: find"), on weights instead of places.
 */
#include "engine/model/percentile.h"

#include <math.h>

#include "engine/base/maths.h"

#define AG_SHARE_ROUNDING                                                                          \
	1e-12 /* of the whole weight: levels such as 0.1 are no binary fractions */

double
ag_fixed_scale(double highest, int64_t n)
{
	int size, n_bits = 0, power;

	if (!(highest > 0.0))
		return 0.0;
	frexp(highest, &size);
	while (n_bits < 62 && (INT64_C(1) << n_bits) < n)
		n_bits++;
	power = 62 - size - n_bits;
	return ag_pow2i(power > 1000 ? 1000 : power);
}

static void
swap(AgWeighed *a, AgWeighed *b)
{
	AgWeighed kept = *a;

	*a = *b;
	*b = kept;
}

static double
middle_of(double a, double b, double c)
{
	double low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : c > high ? high : c;
}

/* The items in [low, high) below, at and above the pivot, in this order. */
static void
part(AgWeighed *items, int64_t low, int64_t high, double pivot, int64_t *first, int64_t *end)
{
	int64_t at = low, below = low, above = high;

	while (at < above)
	{
		if (items[at].value < pivot)
			swap(&items[at++], &items[below++]);
		else if (items[at].value > pivot)
			swap(&items[at], &items[--above]);
		else
			at++;
	}
	*first = below;
	*end = above;
}

static int64_t
weight_of(const AgWeighed *items, int64_t begin, int64_t end)
{
	int64_t sum = 0;

	for (int64_t i = begin; i < end; i++)
		sum += items[i].weight;
	return sum;
}

/* The greatest value with weight in [0, end); there is one. */
static double
greatest_before(const AgWeighed *items, int64_t end)
{
	double greatest = -(double) INFINITY;

	for (int64_t i = 0; i < end; i++)
		if (items[i].weight > 0 && items[i].value > greatest)
			greatest = items[i].value;
	return greatest;
}

/* The items of one value that pass the wanted weight, the first of them at *first; `below` is the weight before them. */
static double
value_at(AgWeighed *items, int64_t n, double wanted, int64_t *first, int64_t *below)
{
	int64_t low = 0, high = n, before = 0; /* the weight before low */

	for (;;)
	{
		double pivot =
			middle_of(items[low].value, items[low + (high - low) / 2].value, items[high - 1].value);
		int64_t end, here;

		part(items, low, high, pivot, first, &end);
		*below = before + weight_of(items, low, *first);
		here = weight_of(items, *first, end);
		if (*first > low && (double) *below >= wanted)
			high = *first;
		else if (here > 0 && ((double) (*below + here) >= wanted || end == high))
			return pivot;
		else
		{
			before = *below + here;
			low = end;
		}
	}
}

double
ag_percentile(AgWeighed *items, int64_t n, double level)
{
	double total, mean, wanted, value, share;
	int64_t n_weighed = 0, first, below;

	for (int64_t i = 0; i < n; i++)
		n_weighed += items[i].weight > 0;
	total = (double) weight_of(items, 0, n);
	if (!(total > 0.0))
		return 0.0;
	mean = total / (double) n_weighed;
	wanted = level * (total + mean);
	if (wanted > total) /* above all rows: the greatest */
		wanted = total;
	value = value_at(items, n, wanted, &first, &below);
	share = (wanted - (double) below) / mean;
	if (below == 0 || share >= 1.0)
		return value;
	return greatest_before(items, first) * (1.0 - share) + value * share;
}
