/*
 * linear_private.h - what the files of the LR family's training share (private to them).
 */
#ifndef AG_LINEAR_PRIVATE_H
#define AG_LINEAR_PRIVATE_H

#include "engine/base/vector.h"
#include "engine/model/linear.h"
#include "engine/model/linear_gpu.h"

#define AG_LINEAR_LOOK_ROWS 65536 /* of a plain loop, between looks after a cancel */

/*
 * The rows to fit and the sum over them. Parameters lie as [n_slots_of_terms][n_padded]: the matrix's numbers (its padding
 * included), the slots' columns, one column for "none" that stays 0, and the intercepts.
 */
typedef struct AgLinearProblem
{
	const AgContext *ctx;
	const AgVectorOps *ops;
	const AgDenseMatrix *matrix;
	const uint32_t *rows;
	int64_t n_rows;
	AgLink link;
	uint32_t n_outputs;
	uint32_t n_padded;  /* n_outputs, rounded up to 8 where it isn't 1 */
	uint32_t n_numbers; /* of the matrix, without its padding */
	uint32_t n_columns;
	double *target;          /* [n_rows] IDENTITY, QUANTILES: mean 0, spread 1 */
	const double *quantiles; /* [n_outputs] QUANTILES: levels */
	double bend;             /* likewise: how near to the target the loss is a parabola */
	int32_t *class_of;       /* [n_rows] otherwise */
	double *weight;          /* [n_rows] mean 1; NULL: all 1 */
	double l2, l1;           /* of the mean loss: (1 - r) / (C n), r / (C n) */
	/* of the sum */
	int n_parts;      /* fixed by n_rows and n_values, never by the threads */
	size_t n_values;  /* parameters, padding included */
	double *parts;    /* [n_parts][n_values] */
	double *losses;   /* [n_parts] */
	int block_rows;   /* rows a product takes at a time */
	double **scratch; /* [threads] */
	const double *x;  /* where the sum is taken */
	double *gradient;
	_Atomic bool late; /* the deadline passed in the middle of a sum */
	AgLinearGpu gpu;   /* has a linear: passes are made there */
} AgLinearProblem;

/* Several scores a row. */
static inline bool
ag_linear_is_wide(const AgLinearProblem *problem)
{
	return problem->link == AG_LINK_SOFTMAX || problem->link == AG_LINK_QUANTILES;
}

static inline size_t
ag_linear_intercept_at(const AgLinearProblem *problem)
{
	return (problem->matrix->stride + problem->n_columns + 1) * problem->n_padded;
}

/* Fills the fields "of the sum"; those before are set. */
AgStatus ag_linear_sum_init(AgLinearProblem *problem);
void ag_linear_sum_free(AgLinearProblem *problem);
/* Parts and their bytes for a problem of that size. */
int ag_linear_sum_parts(int64_t n_rows, size_t n_values);

/* An AgObjective: mean loss and l2 / 2 sum of squares. AG_ERR_TIME when the deadline passes in it. */
AgStatus ag_linear_sum(void *problem, const double *x, double *value, double *gradient);

/* Parts of the products of a problem with that many parts and terms (numbers with their padding, and columns). */
int ag_linear_gram_parts(int n_parts, int64_t n_terms);
/* True when the squared loss is best minimised through the matrix of the columns' products, and there is time for it. */
bool ag_linear_gram_fits(const AgLinearProblem *problem);
/*
 * IDENTITY only: the minimum, absolute values included, by Cholesky or coordinate descent. x[n_values] gets it.
 * AG_ERR_TIME without a text when the deadline passes before the products are there.
 */
AgStatus ag_linear_gram_solve(AgLinearProblem *problem, int max_iter, double tolerance, double *x,
							  int *n_iter, bool *converged, bool *late);

#endif
