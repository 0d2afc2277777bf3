/*
 * curve.h - how one class is told from the rest as the threshold falls: the numbers under ROC, precision-recall, lift and
 * threshold tables.
 */
#ifndef AG_CURVE_H
#define AG_CURVE_H

#include "engine/base/context.h"

/* Of the rows whose probability is at least `threshold`: how many are of the class, and how many are not. */
typedef struct AgCurvePoint
{
	double threshold;
	int64_t n_positive, n_negative;
} AgCurvePoint;

typedef struct AgCurve
{
	int64_t n_positive, n_negative; /* of all rows */
	int64_t n_points;               /* one for each probability that occurs, descending */
	AgCurvePoint *points;           /* owned, ag_mem_free */
} AgCurve;

/* Rows i < n with proba[i * stride]; a row is positive where class_of[i] == class. No NaN. */
AgStatus ag_curve_create(const AgContext *ctx, int64_t n, const double *proba, int stride,
						 const int32_t *class_of, int32_t class, AgCurve *curve);

/* What comes of calling a row positive when its probability is above the threshold. Undefined ratios are NaN. */
typedef struct AgConfusion
{
	int64_t tp, fp, fn, tn;
	double precision, recall, specificity, f1, accuracy, balanced_accuracy, mcc;
} AgConfusion;

void ag_curve_at(const AgCurve *curve, double threshold, AgConfusion *confusion);

/*
 * Positives among the `first` rows with the highest probabilities. Rows of equal probability are one lot whose positives are spread
 * evenly, so that their order makes no difference.
 */
double ag_curve_captured(const AgCurve *curve, int64_t first);

#endif
