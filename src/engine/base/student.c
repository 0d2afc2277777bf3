/*
 * student.c - Student's t distribution by the incomplete beta function.
 */
#include "engine/base/student.h"

#include <math.h>

#define MOST_TERMS 500
#define TINY 1e-300

/*
 * The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by the modified method of
 * Lentz (Thompson and Barnett 1986).
 */
static double
beta_fraction(double x, double a, double b)
{
	double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), value;

	d = 1.0 / (fabs(d) < TINY ? TINY : d);
	value = d;
	for (int m = 1; m <= MOST_TERMS; m++)
	{
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1.0 + even * d;
		c = 1.0 + even / c;
		d = 1.0 / (fabs(d) < TINY ? TINY : d);
		c = fabs(c) < TINY ? TINY : c;
		value *= c * d;
		d = 1.0 + odd * d;
		c = 1.0 + odd / c;
		d = 1.0 / (fabs(d) < TINY ? TINY : d);
		c = fabs(c) < TINY ? TINY : c;
		step = c * d;
		value *= step;
		if (fabs(step - 1.0) < 1e-15)
			break;
	}
	return value;
}

/* lgamma writes a global; its sign isn't needed for positive arguments. */
static double
log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

/* The regularised incomplete beta function at x, where y = 1 - x is given apart: near 1 it says more than x. */
static double
beta_regularised(double x, double y, double a, double b)
{
	double front;

	if (x <= 0.0)
		return 0.0;
	if (y <= 0.0)
		return 1.0;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
	/* The fraction converges fast on one side of the mean only. */
	if (x < (a + 1.0) / (a + b + 2.0))
		return front * beta_fraction(x, a, b) / a;
	return 1.0 - front * beta_fraction(y, b, a) / b;
}

double
ag_student_cdf(double t, double freedom)
{
	double tail;

	if (isnan(t))
		return t;
	if (isinf(t))
		return t > 0.0 ? 1.0 : 0.0;
	tail = 0.5 * beta_regularised(freedom / (freedom + t * t), t * t / (freedom + t * t),
								  freedom * 0.5, 0.5);
	return t > 0.0 ? 1.0 - tail : tail;
}

double
ag_student_quantile(double p, double freedom)
{
	double low = -1.0, high = 1.0;

	while (ag_student_cdf(low, freedom) > p && low > -1e300)
		low *= 2.0;
	while (ag_student_cdf(high, freedom) < p && high < 1e300)
		high *= 2.0;
	for (int i = 0; i < 200 && high - low > 1e-14 * (1.0 + fabs(low)); i++)
	{
		double middle = low + (high - low) * 0.5;

		if (ag_student_cdf(middle, freedom) < p)
			low = middle;
		else
			high = middle;
	}
	return low + (high - low) * 0.5;
}
