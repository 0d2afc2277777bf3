/*
 * split_maths.h - gains and leaf values from sums: for C and CUDA alike, to the last bit.
 *
 * l1, max_step and path_smooth are those of AgSplitRules; 0 is none.
 */
#ifndef AG_SPLIT_MATHS_H
#define AG_SPLIT_MATHS_H

#include "engine/base/maths.h"

/* A cut must beat the unsplit node by more than the rounding of the two scores. */
#define AG_SCORE_ROUNDING 1e-12

AG_MATHS_FN double
ag_soften(double g, double l1)
{
	double size = fabs(g) - l1;

	if (!(size > 0.0))
		return 0.0;
	return g < 0.0 ? -size : size;
}

/* A leaf's best value. */
AG_MATHS_FN double
ag_leaf_best(double l1, double max_step, double path_smooth, double g, double h, double l2,
			 int64_t n_rows, double parent_output)
{
	double output, share;

	if (!(h + l2 > 0.0))
		return 0.0;
	output = -ag_soften(g, l1) / (h + l2);
	if (max_step > 0.0 && fabs(output) > max_step)
		output = output < 0.0 ? -max_step : max_step;
	if (!(path_smooth > 0.0))
		return output;
	share = (double) n_rows / path_smooth;
	return output * share / (share + 1.0) + parent_output / (share + 1.0);
}

/* How much a leaf lowers the loss (times two), at the value it would get. */
AG_MATHS_FN double
ag_leaf_merit(double l1, double max_step, double path_smooth, double g, double h, double l2,
			  int64_t n_rows, double parent_output)
{
	double soft = ag_soften(g, l1);
	double output;

	if (!(max_step > 0.0 || path_smooth > 0.0))
		return soft * soft / (h + l2);
	output = ag_leaf_best(l1, max_step, path_smooth, g, h, l2, n_rows, parent_output);
	return -(2.0 * soft * output + (h + l2) * output * output);
}

/* A value moved into bounds. */
AG_MATHS_FN double
ag_within(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* The same at a value that bounds allow, which *output becomes. */
AG_MATHS_FN double
ag_bounded_merit(double l1, double max_step, double path_smooth, double g, double h, double l2,
				 int64_t n_rows, double parent_output, double low, double high, double *output)
{
	*output = ag_within(ag_leaf_best(l1, max_step, path_smooth, g, h, l2, n_rows, parent_output),
						low, high);
	return -(2.0 * ag_soften(g, l1) * *output + (h + l2) * *output * *output);
}

/* Do a cut's sides stand the wrong way round? direction 1: the right one may not be lower, -1: not higher. */
AG_MATHS_FN int
ag_is_wrong_way(int direction, double left, double right)
{
	return (direction > 0 && left > right) || (direction < 0 && left < right);
}

/* Both sides' merits under plain rules: one division. */
AG_MATHS_FN double
ag_cut_merit(double gl, double hl, double gr, double hr, double l2)
{
	double dl = hl + l2, dr = hr + l2;

	return (gl * gl * dr + gr * gr * dl) / (dl * dr);
}

#endif
