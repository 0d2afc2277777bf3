/*
 * loss_maths.h - slopes of the losses of numbers at one row, before its weight: for C and CUDA alike, to the last bit.
 *
 * x is the score less the label; deltas are in the same unit.
 */
#ifndef AG_LOSS_MATHS_H
#define AG_LOSS_MATHS_H

#include "engine/base/maths.h"

#define AG_LOG_MAX 69.0 /* e^69 is 1e30, which as a gradient fits a float */

typedef struct AgSlope
{
	double g, h;
} AgSlope;

AG_MATHS_FN AgSlope
ag_slope(double g, double h)
{
	AgSlope slope;

	slope.g = g;
	slope.h = h;
	return slope;
}

/* Koenker and Bassett 1978; the middle level is the absolute error, halved. */
AG_MATHS_FN AgSlope
ag_slope_pinball(double score, double target, double level)
{
	return ag_slope(score > target ? 1.0 - level : score < target ? -level : 0.0, 1.0);
}

/* Huber 1964: squared within delta, linear beyond. */
AG_MATHS_FN AgSlope
ag_slope_huber(double x, double delta)
{
	return ag_slope(x > delta ? delta : x < -delta ? -delta : x, 1.0);
}

/* c^2 (|x| / c - ln(1 + |x| / c)) */
AG_MATHS_FN AgSlope
ag_slope_fair(double x, double c)
{
	double share = c / (fabs(x) + c);

	return ag_slope(x * share, share * share);
}

/* delta^2 (sqrt(1 + (x / delta)^2) - 1) */
AG_MATHS_FN AgSlope
ag_slope_pseudo_huber(double x, double delta)
{
	double z = x / delta, root = sqrt(1.0 + z * z);

	return ag_slope(x / root, 1.0 / (root * (1.0 + z * z)));
}

AG_MATHS_FN double
ag_bounded_exp(double x)
{
	return ag_exp(x > AG_LOG_MAX ? AG_LOG_MAX : x < -AG_LOG_MAX ? -AG_LOG_MAX : x);
}

/* e^f - y f; the hessian is taken at a score larger by ln(ahead), so that steps can't run away. */
AG_MATHS_FN AgSlope
ag_slope_poisson(double score, double target, double ahead)
{
	double mean = ag_bounded_exp(score);

	return ag_slope(mean - target, mean * ahead);
}

/* y e^-f + f */
AG_MATHS_FN AgSlope
ag_slope_gamma(double score, double target)
{
	double ratio = target * ag_bounded_exp(-score);

	ratio = ratio < 1e30 ? ratio : 1e30;
	return ag_slope(1.0 - ratio, ratio);
}

/* -y e^((1 - p) f) / (1 - p) + e^((2 - p) f) / (2 - p), with 1 <= p < 2 (Jorgensen 1987, "Exponential dispersion models"). */
AG_MATHS_FN AgSlope
ag_slope_tweedie(double score, double target, double power)
{
	double a = target * ag_bounded_exp((1.0 - power) * score);
	double b = ag_bounded_exp((2.0 - power) * score);

	a = a < 1e30 ? a : 1e30;
	return ag_slope(b - a, (power - 1.0) * a + (2.0 - power) * b);
}

/* How much a row's absolute error counts: its weight, and relative to its label where errors are percentages. */
AG_MATHS_FN double
ag_error_weight(double weight, double target, int is_relative)
{
	double size = fabs(target);

	return is_relative && size > 1.0 ? weight / size : weight;
}

#endif
