/*
 * net_ops.h - inner loops of neural nets over single-precision numbers, in variants for what the processor has.
 *
 * Every variant gives the same bits: an element of a product is one chain of fused multiply-adds in the order of the
 * summed index, whatever the shape of the tile it was computed in, and everything else is multiplications, additions,
 * divisions and square roots that are rounded one by one. A processor without fused multiply-add computes it in
 * software, slowly.
 */
#ifndef AG_NET_OPS_H
#define AG_NET_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/net_maths.h"

/* Rows of matrices are multiples of this many floats long. */
#define AG_NET_LANES 16

/* One step of Adam (Kingma and Ba 2015, algorithm 1; decay apart from the gradient: Loshchilov and Hutter 2019). */
typedef struct AgAdam
{
	float rate; /* learning rate over 1 - beta1^t */
	float beta1, beta2;
	float root; /* 1 / sqrt(1 - beta2^t) */
	float eps;
	float decay;  /* added to the gradient, times the weight */
	float shrink; /* the weight is multiplied by it first: 1 - rate * decoupled decay */
} AgAdam;

typedef struct AgNetOps
{
	const char *name; /* "portable", "avx2", "avx512" */

	/*
	 * c[i][j] = init[j] (0 when NULL) + sum over k of a[i * a_row + k * a_inner] b[k][j], k ascending. n_columns is a
	 * multiple of AG_NET_LANES.
	 */
	void (*multiply)(int n_rows, int n_inner, int n_columns, const float *a, size_t a_row,
					 size_t a_inner, const float *b, size_t b_stride, const float *init, float *c,
					 size_t c_stride);

	/* sums[j] = fma(x, row[j], sums[j]); n is a multiple of AG_NET_LANES. */
	void (*add_row)(float x, const float *row, float *sums, size_t n);

	/* out = activation of z, slope its derivative there (slope may be NULL; out may be z). */
	void (*activate)(AgActivation kind, size_t n, const float *z, float *out, float *slope);

	/*
	 * factors[i] = 0 where 16 random bits are below threshold, else factor. Four numbers come from one counter;
	 * n is a multiple of 4.
	 */
	void (*drop)(uint64_t key, uint64_t counter, uint32_t threshold, float factor, size_t n,
				 float *factors);

	/* x[i] *= y[i] */
	void (*scale)(size_t n, const float *y, float *x);

	void (*adam)(const AgAdam *adam, size_t n, const float *gradient, float *weight, float *mean,
				 float *square);

	/* to[j][i] = from[i][j] for i < n_rows, j < n_columns (both multiples of AG_NET_LANES). */
	void (*transpose)(int n_rows, int n_columns, const float *from, size_t from_stride, float *to,
					  size_t to_stride);

	/* out[i] = e^x[i], for x <= 0 */
	void (*exponentials)(size_t n, const float *x, float *out);

	/* out[i] = cos(2 pi (w x[i] + b)) */
	void (*waves)(size_t n, float w, float b, const float *x, float *out);
} AgNetOps;

/* The fastest table that this machine runs. */
const AgNetOps *ag_net_ops(void);
/* All of them that it runs, portable first, for tests; returns how many (at most 3). */
int ag_net_ops_variants(const AgNetOps **variants);

#endif
