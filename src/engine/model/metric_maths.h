/*
 * metric_maths.h - what one row costs under the metrics that are a mean of rows: for C and CUDA alike, to the last bit.
 */
#ifndef AG_METRIC_MATHS_H
#define AG_METRIC_MATHS_H

#include <float.h>

#include "engine/base/maths.h"

/* A probability of 0 would cost infinitely much: it is taken as this, and 1 as 1 less this. */
#define AG_LEAST_PROBABILITY 1e-15

AG_MATHS_FN double
ag_log_cost(double p)
{
	if (p < AG_LEAST_PROBABILITY)
		p = AG_LEAST_PROBABILITY;
	else if (p > 1.0 - AG_LEAST_PROBABILITY)
		p = 1.0 - AG_LEAST_PROBABILITY;
	return ag_ln(p);
}

AG_MATHS_FN double
ag_squared_error(double target, double prediction)
{
	double difference = prediction - target;

	return difference * difference;
}

AG_MATHS_FN double
ag_absolute_error(double target, double prediction)
{
	return fabs(prediction - target);
}

AG_MATHS_FN double
ag_share_error(double target, double prediction)
{
	return fabs(prediction - target) / fmax(fabs(target), DBL_EPSILON);
}

AG_MATHS_FN double
ag_symmetric_error(double target, double prediction)
{
	return 2.0 * fabs(prediction - target) / fmax(fabs(target) + fabs(prediction), DBL_EPSILON);
}

#endif
