/*
 * curve.c - see curve.h.
 */
#include "engine/model/curve.h"

#include <math.h>
#include <stdlib.h>

/* Points of single rows, then merged in place. */
static int
compare_points(const void *left, const void *right)
{
	const AgCurvePoint *a = left, *b = right;

	return (a->threshold < b->threshold) - (a->threshold > b->threshold);
}

AgStatus
ag_curve_create(const AgContext *ctx, int64_t n, const double *proba, int stride,
				const int32_t *class_of, int32_t class, AgCurve *curve)
{
	AgCurvePoint *points = NULL;
	int64_t last = -1;

	*curve = (AgCurve){0};
	AG_TRY(ag_get(ctx, (size_t) n, sizeof *points, &points));
	for (int64_t i = 0; i < n; i++)
	{
		bool is_positive = class_of[i] == class;

		points[i] = (AgCurvePoint){proba[i * stride], is_positive, !is_positive};
	}
	qsort(points, (size_t) n, sizeof *points, compare_points);
	for (int64_t i = 0; i < n; i++)
	{
		curve->n_positive += points[i].n_positive;
		curve->n_negative += points[i].n_negative;
		if (last < 0 || points[i].threshold != points[last].threshold)
			last++;
		points[last] = (AgCurvePoint){points[i].threshold, curve->n_positive, curve->n_negative};
	}
	curve->n_points = last + 1;
	curve->points = points;
	return AG_OK;
}

static double
ratio(double part, double whole)
{
	return whole > 0.0 ? part / whole : (double) NAN;
}

/* How many points lie above the threshold. */
static int64_t
points_above(const AgCurve *curve, double threshold)
{
	int64_t low = 0, high = curve->n_points;

	while (low < high)
	{
		int64_t middle = low + (high - low) / 2;

		if (curve->points[middle].threshold > threshold)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
ag_curve_at(const AgCurve *curve, double threshold, AgConfusion *confusion)
{
	int64_t n = points_above(curve, threshold);
	double tp, fp, fn, tn;

	confusion->tp = n > 0 ? curve->points[n - 1].n_positive : 0;
	confusion->fp = n > 0 ? curve->points[n - 1].n_negative : 0;
	confusion->fn = curve->n_positive - confusion->tp;
	confusion->tn = curve->n_negative - confusion->fp;
	tp = (double) confusion->tp;
	fp = (double) confusion->fp;
	fn = (double) confusion->fn;
	tn = (double) confusion->tn;
	confusion->precision = ratio(tp, tp + fp);
	confusion->recall = ratio(tp, tp + fn);
	confusion->specificity = ratio(tn, tn + fp);
	confusion->f1 = ratio(2.0 * tp, 2.0 * tp + fp + fn);
	confusion->accuracy = ratio(tp + tn, tp + fp + fn + tn);
	confusion->balanced_accuracy = (confusion->recall + confusion->specificity) / 2.0;
	/* the root of each sum: their product may pass 2^53 by far */
	confusion->mcc =
		ratio(tp * tn - fp * fn, sqrt(tp + fp) * sqrt(tp + fn) * sqrt(tn + fp) * sqrt(tn + fn));
}

double
ag_curve_captured(const AgCurve *curve, int64_t first)
{
	int64_t low = 0, high = curve->n_points, before = 0, positive = 0;

	while (low < high) /* the first point that reaches as far */
	{
		int64_t middle = low + (high - low) / 2;

		if (curve->points[middle].n_positive + curve->points[middle].n_negative < first)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == curve->n_points)
		return (double) curve->n_positive;
	if (low > 0)
	{
		positive = curve->points[low - 1].n_positive;
		before = positive + curve->points[low - 1].n_negative;
	}
	return (double) positive +
		   (double) (first - before) * (double) (curve->points[low].n_positive - positive) /
			   (double) (curve->points[low].n_positive + curve->points[low].n_negative - before);
}
