/*
 * lbfgs.h - minimises a smooth convex function, with absolute values added to it if wanted.
 */
#ifndef AG_LBFGS_H
#define AG_LBFGS_H

#include "engine/base/context.h"

/*
 * Value and gradient[n] at x[n]. May return AG_ERR_TIME, without a text, when the deadline passed before it was done.
 */
typedef AgStatus (*AgObjective)(void *arg, const double *x, double *value, double *gradient);

typedef struct AgMinimum
{
	size_t n;
	double *x; /* [n] where to begin; then the best that was found */
	AgObjective objective;
	void *arg;
	const double *diagonal; /* [n] about the second derivatives, > 0; NULL: all 1 */
	const double *l1;       /* [n] weights, >= 0, of |x[i]|; NULL: the function is smooth */
	int max_iter;
	double tolerance; /* converged when no (sub)gradient is greater */
	/* what came of it */
	double value; /* with the absolute values */
	double greatest_gradient;
	int n_iter;
	bool converged;
	bool stopped_by_time; /* x is the best so far, at worst where it began */
} AgMinimum;

/*
 * The function's value never rises from one iteration to the next. AG_ERR_CANCELLED, AG_ERR_MEMORY and what the objective
 * returns are errors; not to converge isn't.
 */
AgStatus ag_minimise(const AgContext *ctx, AgMinimum *problem);

#endif
