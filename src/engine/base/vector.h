/*
 * vector.h - inner loops over numbers, in variants for what the processor has.
 *
 * Every variant gives the same bits: sums over an index run in eight lanes (or one after the other, where it
 * says so), multiplication and addition are rounded apart, and nothing else depends on the width of a register.
 */
#ifndef AG_VECTOR_H
#define AG_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* Rows of a panel of neighbours, side by side. */
#define AG_PANEL 16
/* Queries that `near` compares at a time. */
#define AG_QUERIES 8

typedef struct AgPanel
{
	const float *numbers;  /* [n_numbers][AG_PANEL] */
	const uint32_t *codes; /* [n_codes][AG_PANEL] */
	const float *norms;    /* [AG_PANEL] sums of squares; only `near` reads them */
	int n_numbers, n_codes;
	float mismatch;
} AgPanel;

typedef struct AgVectorOps
{
	const char *name; /* "portable", "avx2", "avx512" */

	/* Sum of x[i] y[i]: lane i % 8 takes pair i, then ((0+4)+(2+6)) + ((1+5)+(3+7)). */
	double (*dot)(const double *x, const double *y, size_t n);
	double (*dot_float)(const float *x, const double *y, size_t n);

	/* y[i] = x[i]; n is a multiple of 8. */
	void (*widen)(const float *x, double *y, size_t n);
	/*
	 * x[i] = e^x[i] for x[i] <= 0, to about 1e-15; 0 below -708. n is a multiple of 8.
	 * exp_rows first subtracts, from each of n_rows rows of n, the greatest, which greatest[] gets; sums[] gets the rows' sums,
	 * by lanes as above.
	 */
	void (*exps)(double *x, size_t n);
	void (*exp_rows)(double *x, int n_rows, size_t n, double *greatest, double *sums);
	/* x[i] = ln x[i] for normal x[i] > 0, to about 1e-15. n is a multiple of 8. */
	void (*logs)(double *x, size_t n);

	/* sums[i] += c[0] rows[0][i] + ..., one row after the other. */
	void (*add_rows)(double *sums, const float *const *rows, const double *c, int n_rows, size_t n);

	/*
	 * Both take any n_rows and n_inner; n_out is a multiple of 8. Terms are added in the order of the summed index.
	 * multiply:            out[r][k] += sum over j of x[r][j] w[j][k]
	 * multiply_transposed: out[j][k] += (sum over r of x[r][j] y[r][k])
	 */
	void (*multiply)(const double *x, size_t x_stride, const double *w, size_t w_stride, int n_rows,
					 int n_inner, int n_out, double *out, size_t out_stride);
	void (*multiply_transposed)(const double *x, size_t x_stride, const double *y, size_t y_stride,
								int n_rows, int n_inner, int n_out, double *out, size_t out_stride);

	/*
	 * Squared distances from a query to the AG_PANEL rows of a panel: the squares of differences are added in four sums
	 * (number j to the j % 4th), these as (0 + 1) + (2 + 3), and then mismatch for each code that differs.
	 */
	void (*distances)(const AgPanel *panel, const float *query, const uint32_t *query_codes,
					  float *squared);
	/*
	 * Bit `lane` of masks[q] tells whether that row may be nearer to query q than within[q]: it is set whenever `distances`
	 * gives less, and rarely otherwise. AG_QUERIES queries at a time, by |a|^2 + |b|^2 - 2 ab.
	 */
	void (*near)(const AgPanel *panel, const float *const *queries,
				 const uint32_t *const *query_codes, const float *query_norms, const float *within,
				 uint32_t *masks);
} AgVectorOps;

/* The fastest table that this machine runs. */
const AgVectorOps *ag_vector_ops(void);
/* All of them that it runs, portable first, for tests; returns how many (at most 3). */
int ag_vector_variants(const AgVectorOps **variants);

#endif
