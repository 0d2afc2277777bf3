/*
 * lbfgs.c - limited-memory BFGS, and its orthant-wise form.
 *
 * Nocedal 1980, "Updating quasi-Newton matrices with limited storage", with a diagonal as the first guess of the curvature;
 * for absolute values Andrew and Gao 2007, "Scalable training of L1-regularized log-linear models". All sums run in the
 * fixed lanes of vector.h, on the calling thread.
 */
#include "engine/model/lbfgs.h"

#include <math.h>
#include <string.h>

#include "engine/base/vector.h"

#define HISTORY 10
#define MAX_TRIALS 30     /* evaluations of one line search */
#define SUFFICIENT 1e-4   /* Armijo */
#define CURVATURE 0.9     /* Wolfe */
#define VALUE_NOISE 1e-13 /* differences of values, relative, that rounding alone can make */

typedef struct Search
{
	const AgContext *ctx;
	AgMinimum *p;
	const AgVectorOps *ops;
	size_t n;
	double *block; /* all vectors below */
	double *gradient, *next_x, *next_gradient, *direction, *slope;
	double *s[HISTORY], *y[HISTORY];
	double inverse_sy[HISTORY];
	int n_pairs, newest;
	double value; /* with the absolute values */
} Search;

/* What remains of the value: the absolute values. */
static double
penalty(const Search *search, const double *x)
{
	double sum = 0.0;

	if (search->p->l1 != NULL)
		for (size_t i = 0; i < search->n; i++)
			sum += search->p->l1[i] * fabs(x[i]);
	return sum;
}

static AgStatus
evaluate(const Search *search, const double *x, double *value, double *gradient)
{
	AG_TRY(search->p->objective(search->p->arg, x, value, gradient));
	*value += penalty(search, x);
	return AG_OK;
}

/* The gradient, or of all subgradients the one nearest to 0. Returns the greatest absolute element. */
static double
find_slope(const Search *search, const double *x, const double *gradient)
{
	const double *l1 = search->p->l1;
	double greatest = 0.0;

	for (size_t i = 0; i < search->n; i++)
	{
		double g = gradient[i];

		if (l1 != NULL && l1[i] > 0.0)
		{
			if (x[i] != 0.0)
				g += x[i] > 0.0 ? l1[i] : -l1[i];
			else
				g = g > l1[i] ? g - l1[i] : g < -l1[i] ? g + l1[i] : 0.0;
		}
		search->slope[i] = g;
		greatest = fmax(greatest, fabs(g));
	}
	return greatest;
}

/* direction = -(approximate inverse Hessian) slope, by the two loops over the history. */
static void
find_direction(const Search *search)
{
	const AgVectorOps *ops = search->ops;
	const double *diagonal = search->p->diagonal;
	double *d = search->direction, alpha[HISTORY], scale = 1.0;
	size_t n = search->n;

	for (size_t i = 0; i < n; i++)
		d[i] = -search->slope[i];
	for (int k = 0; k < search->n_pairs; k++)
	{
		int j = (search->newest - k + HISTORY) % HISTORY;
		const double *y = search->y[j];

		alpha[j] = ops->dot(search->s[j], d, n) * search->inverse_sy[j];
		for (size_t i = 0; i < n; i++)
			d[i] -= alpha[j] * y[i];
	}
	if (search->n_pairs > 0)
	{
		const double *y = search->y[search->newest];
		double yy = 0.0;

		for (size_t i = 0; i < n; i++)
			yy += diagonal != NULL ? y[i] * y[i] / diagonal[i] : y[i] * y[i];
		scale = 1.0 / (search->inverse_sy[search->newest] * yy);
	}
	for (size_t i = 0; i < n; i++)
		d[i] *= diagonal != NULL ? scale / diagonal[i] : scale;
	for (int k = search->n_pairs - 1; k >= 0; k--)
	{
		int j = (search->newest - k + HISTORY) % HISTORY;
		double beta = ops->dot(search->y[j], d, n) * search->inverse_sy[j];
		const double *s = search->s[j];

		for (size_t i = 0; i < n; i++)
			d[i] += (alpha[j] - beta) * s[i];
	}
	if (search->p->l1 !=
		NULL) /* no step against the slope: it could leave the orthant for nothing */
		for (size_t i = 0; i < n; i++)
			if (d[i] * search->slope[i] > 0.0)
				d[i] = 0.0;
}

/* x + t direction; with absolute values it stops at 0 where the sign would change. */
static void
take_step(const Search *search, double t)
{
	const double *x = search->p->x, *l1 = search->p->l1, *d = search->direction;
	double *to = search->next_x;

	for (size_t i = 0; i < search->n; i++)
	{
		to[i] = x[i] + t * d[i];
		if (l1 != NULL && l1[i] > 0.0)
		{
			double side = x[i] != 0.0 ? x[i] : -search->slope[i];

			if (to[i] * side <= 0.0)
				to[i] = 0.0;
		}
	}
}

/* The minimum of the cubic through values and slopes at a and b, kept away from both ends. */
static double
cubic_minimum(double a, double fa, double da, double b, double fb, double db)
{
	double d1 = da + db - 3.0 * (fa - fb) / (a - b);
	double root = d1 * d1 - da * db, width = b - a, t;

	if (!(root >= 0.0))
		return a + 0.5 * width;
	root = width > 0.0 ? sqrt(root) : -sqrt(root);
	t = b - width * (db + root - d1) / (db - da + 2.0 * root);
	if (!(t > a + 0.1 * width))
		return a + 0.1 * width;
	return t > b - 0.1 * width ? b - 0.1 * width : t;
}

/*
 * A step along the direction that lowers the value enough and (smooth case) leaves the slope flat enough, between a step
 * that is too short and one that is too long. *found is false when there is none: then nothing moved. Near the minimum, where
 * values differ by rounding alone, slopes decide.
 */
static AgStatus
search_line(Search *search, double *next_value, bool *found)
{
	bool smooth = search->p->l1 == NULL;
	double d0 = search->ops->dot(search->slope, search->direction, search->n);
	double low = 0.0, f_low = search->value, d_low = d0;
	double high = 0.0, f_high = 0.0, d_high = 0.0, t = 1.0;
	double noise = VALUE_NOISE * fabs(search->value);
	bool has_high = false;

	*found = false;
	if (!(d0 < 0.0))
		return AG_OK;
	for (int trial = 0; trial < MAX_TRIALS; trial++)
	{
		double f, d = 0.0, expected = t * d0;

		take_step(search, t);
		AG_TRY(evaluate(search, search->next_x, &f, search->next_gradient));
		if (smooth)
			d = search->ops->dot(search->next_gradient, search->direction, search->n);
		else
		{
			expected = 0.0;
			for (size_t i = 0; i < search->n; i++)
				expected += search->slope[i] * (search->next_x[i] - search->p->x[i]);
		}
		if (!(f <= search->value + SUFFICIENT * expected) &&
			!(smooth && f <= search->value + noise && d <= (2.0 * SUFFICIENT - 1.0) * d0))
		{
			has_high = true;
			high = t;
			f_high = f;
			d_high = d;
		}
		else if (smooth && d < CURVATURE * d0)
		{
			low = t;
			f_low = f;
			d_low = d;
		}
		else
		{
			*next_value = f;
			*found = true;
			return AG_OK;
		}
		if (!has_high)
			t *= 4.0;
		else if (!smooth || !isfinite(f_high))
			t = low + 0.5 * (high - low);
		else
			t = cubic_minimum(low, f_low, d_low, high, f_high, d_high);
	}
	return AG_OK;
}

/* Moves to the point that was found, and keeps the pair unless it has no curvature. */
static void
accept(Search *search, double next_value)
{
	int j = search->n_pairs > 0 ? (search->newest + 1) % HISTORY : 0;
	double *s = search->s[j], *y = search->y[j], sy, yy;

	for (size_t i = 0; i < search->n; i++)
	{
		s[i] = search->next_x[i] - search->p->x[i];
		y[i] = search->next_gradient[i] - search->gradient[i];
	}
	sy = search->ops->dot(s, y, search->n);
	yy = search->ops->dot(y, y, search->n);
	if (sy > 1e-14 * yy)
	{
		search->inverse_sy[j] = 1.0 / sy;
		search->newest = j;
		if (search->n_pairs < HISTORY)
			search->n_pairs++;
	}
	memcpy(search->p->x, search->next_x, search->n * sizeof(double));
	memcpy(search->gradient, search->next_gradient, search->n * sizeof(double));
	search->value = next_value;
}

static AgStatus
iterate(Search *search)
{
	AgMinimum *p = search->p;
	int n_stalled = 0;

	AG_TRY(evaluate(search, p->x, &search->value, search->gradient));
	p->value = search->value;
	for (;;)
	{
		double next_value = search->value, before = search->value;
		bool found;

		p->greatest_gradient = find_slope(search, p->x, search->gradient);
		p->converged = p->greatest_gradient <= p->tolerance;
		if (p->converged || p->n_iter >= p->max_iter)
			return AG_OK;
		AG_TRY(ag_check_cancel(search->ctx));
		if (ag_out_of_time(search->ctx))
			return AG_ERR_TIME;
		find_direction(search);
		AG_TRY(search_line(search, &next_value, &found));
		if (!found && search->n_pairs == 0)
			return AG_OK;
		if (!found)
		{
			search->n_pairs = 0; /* begin anew, down the slope */
			continue;
		}
		accept(search, next_value);
		p->value = search->value;
		p->n_iter++;
		/* Three steps that only rounding can see: it can't get better. */
		n_stalled = before - search->value <= VALUE_NOISE * fabs(before) ? n_stalled + 1 : 0;
		if (n_stalled == 3)
		{
			p->converged = true;
			return AG_OK;
		}
	}
}

AgStatus
ag_minimise(const AgContext *ctx, AgMinimum *problem)
{
	Search search = {.ctx = ctx, .p = problem, .ops = ag_vector_ops(), .n = problem->n};
	AgStatus status;
	double *at;

	problem->n_iter = 0;
	problem->converged = false;
	problem->stopped_by_time = false;
	problem->value = problem->greatest_gradient = NAN;
	AG_TRY(ag_get(ctx, problem->n, (5 + 2 * HISTORY) * sizeof(double), &search.block));
	at = search.block;
	search.gradient = at;
	search.next_x = at += problem->n;
	search.next_gradient = at += problem->n;
	search.direction = at += problem->n;
	search.slope = at += problem->n;
	for (int k = 0; k < HISTORY; k++)
	{
		search.s[k] = at += problem->n;
		search.y[k] = at += problem->n;
	}
	status = iterate(&search);
	if (status == AG_ERR_TIME)
	{
		problem->stopped_by_time = true;
		status = AG_OK;
	}
	ag_mem_free(ctx->mem, search.block);
	return status;
}
