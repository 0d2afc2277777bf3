/*
 * linear_gram.c - squared loss by way of the columns' products: exact for ridge, cheap sweeps for the lasso.
 *
 * One pass makes A'WA of A = (numbers, one-hot columns, 1, target). Ridge is then a Cholesky factorisation; absolute
 * values take coordinate descent with covariance updates (Friedman, Hastie, Tibshirani 2010, "Regularization paths for
 * generalized linear models via coordinate descent", 2.2).
 */
#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/linear_private.h"

#define MAX_TERMS 1024    /* wider problems are left to the iterative solver */
#define MAX_PRODUCTS 2e11 /* likewise longer ones: it can stop in between, this can't */
#define MAX_PARTS 16
#define MAX_PART_DOUBLES (8 << 20) /* of all parts together */
#define MAX_BLOCK_ROWS 64
#define BLOCK_PRODUCTS                                                                             \
	(16 << 20) /* of a block: some milliseconds, after which cancel and deadline are looked at */
#define PRODUCTS_A_SECOND 2e9 /* of one thread, at the least */
#define STRIPE 64             /* columns of a task that adds parts */

typedef struct Gram
{
	AgLinearProblem *problem;
	int n_terms; /* numbers with their padding, and columns */
	int size;    /* n_terms, 1 and the target, rounded up to 8 */
	int n_parts;
	int block_rows;
	double *parts;    /* [n_parts][size][size], of which the upper half counts */
	double **scratch; /* [threads] two blocks of rows */
	double *centred;  /* [n_terms][n_terms]: products about the means */
	double *right;    /* [n_terms]: with the target */
	double *means;    /* [n_terms] */
	double target_mean;
} Gram;

bool
ag_linear_gram_fits(const AgLinearProblem *problem)
{
	double n_terms = (double) problem->matrix->stride + (double) problem->n_columns;
	double n_products = (double) problem->n_rows * n_terms * n_terms, seconds_left;

	if (problem->link != AG_LINK_IDENTITY || n_terms > MAX_TERMS || n_products > MAX_PRODUCTS)
		return false;
	if (problem->ctx->deadline_ns == INT64_MAX)
		return true;
	seconds_left = 1e-9 * (double) (problem->ctx->deadline_ns - ag_clock_ns());
	return n_products / (PRODUCTS_A_SECOND * ag_pool_size(problem->ctx->pool)) < seconds_left;
}

static int
size_of(int64_t n_terms)
{
	return (int) ((n_terms + 2 + 7) / 8 * 8);
}

int
ag_linear_gram_parts(int n_parts, int64_t n_terms)
{
	int most = MAX_PART_DOUBLES / (size_of(n_terms) * size_of(n_terms));

	most = most < MAX_PARTS ? most : MAX_PARTS;
	return n_parts < most ? n_parts : most;
}

/* Rows of A, and the same times the weight. */
static void
expand_rows(const Gram *gram, int64_t begin, int n, double *plain, double *weighted)
{
	const AgLinearProblem *problem = gram->problem;
	const AgDenseMatrix *matrix = problem->matrix;

	for (int b = 0; b < n; b++)
	{
		size_t row = problem->rows[begin + b];
		const float *numbers = matrix->numbers + row * matrix->stride;
		const uint32_t *slots = matrix->slots + row * matrix->n_slots;
		double *to = plain + (size_t) b * (size_t) gram->size;
		double *scaled = weighted + (size_t) b * (size_t) gram->size;
		double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;

		memset(to, 0, (size_t) gram->size * sizeof(double));
		for (size_t j = 0; j < matrix->stride; j++)
			to[j] = (double) numbers[j];
		for (uint32_t s = 0; s < matrix->n_slots; s++)
			if (slots[s] < problem->n_columns)
				to[matrix->stride + slots[s]] = 1.0;
		to[gram->n_terms] = 1.0;
		to[gram->n_terms + 1] = problem->target[begin + b];
		for (int j = 0; j < gram->size; j++)
			scaled[j] = w * to[j];
	}
}

static void
sum_parts(void *arg, int64_t begin, int64_t end, int thread)
{
	const Gram *gram = arg;
	AgLinearProblem *problem = gram->problem;
	size_t size = (size_t) gram->size;
	double *plain = gram->scratch[thread], *weighted = plain + (size_t) gram->block_rows * size;

	for (int64_t p = begin; p < end; p++)
	{
		int64_t at = problem->n_rows * p / gram->n_parts;
		int64_t behind = problem->n_rows * (p + 1) / gram->n_parts;
		double *sums = gram->parts + (size_t) p * size * size;

		memset(sums, 0, size * size * sizeof(double));
		for (; at < behind; at += gram->block_rows)
		{
			int n = behind - at < gram->block_rows ? (int) (behind - at) : gram->block_rows;

			if (ag_cancelled(problem->ctx) || atomic_load(&problem->late))
				return;
			if (ag_out_of_time(problem->ctx))
			{
				atomic_store(&problem->late, true);
				return;
			}
			expand_rows(gram, at, n, plain, weighted);
			for (int c = 0; c < gram->size; c += 16)
			{
				int n_out = gram->size - c < 16 ? 8 : 16;

				problem->ops->multiply_transposed(plain, size, weighted + c, size, n, c + n_out,
												  n_out, sums + c, size);
			}
		}
	}
}

/* Adds the parts in their order into the first. */
static void
add_parts(void *arg, int64_t begin, int64_t end, int thread)
{
	const Gram *gram = arg;
	size_t size = (size_t) gram->size;

	(void) thread;
	for (int p = 1; p < gram->n_parts; p++)
	{
		const double *part = gram->parts + (size_t) p * size * size;

		for (size_t i = (size_t) begin * size; i < (size_t) end * size; i++)
			gram->parts[i] += part[i];
	}
}

/* Products about the means: the intercept drops out of what is solved. */
static void
centre(Gram *gram)
{
	int m = gram->n_terms;
	size_t size = (size_t) gram->size;
	const double *sums = gram->parts;
	double n = sums[(size_t) m * size + (size_t) m];

	gram->target_mean = sums[(size_t) m * size + (size_t) m + 1] / n;
	for (int i = 0; i < m; i++)
		gram->means[i] = sums[(size_t) i * size + (size_t) m] / n;
	for (int i = 0; i < m; i++)
	{
		gram->right[i] =
			sums[(size_t) i * size + (size_t) m + 1] - n * gram->means[i] * gram->target_mean;
		for (int j = i; j < m; j++)
		{
			double v = sums[(size_t) i * size + (size_t) j] - n * gram->means[i] * gram->means[j];

			gram->centred[(size_t) i * (size_t) m + (size_t) j] = v;
			gram->centred[(size_t) j * (size_t) m + (size_t) i] = v;
		}
	}
}

/*
 * (centred + l2) w = right, by Cholesky in place, row by row. The penalty keeps pivots positive; where rounding leaves
 * nothing of one, its column has nothing to say beside those before it and gets 0.
 */
static AgStatus
solve_ridge(Gram *gram, double l2, double *w)
{
	const AgVectorOps *ops = gram->problem->ops;
	size_t m = (size_t) gram->n_terms;
	double *a = gram->centred;

	for (size_t i = 0; i < m; i++)
	{
		double *row = a + i * m, pivot;
		double least = 1e-13 * (row[i] + l2);

		AG_TRY(ag_check_cancel(gram->problem->ctx));
		for (size_t j = 0; j < i; j++)
			row[j] = (row[j] - ops->dot(row, a + j * m, j)) * a[j * m + j];
		pivot = row[i] + l2 - ops->dot(row, row, i);
		row[i] = pivot > least ? 1.0 / sqrt(pivot) : 0.0; /* the inverse is what is needed */
		w[i] = (gram->right[i] - ops->dot(row, w, i)) * row[i];
	}
	for (size_t i = m; i-- > 0;)
	{
		w[i] *= a[i * m + i];
		for (size_t j = 0; j < i; j++)
			w[j] -= a[i * m + j] * w[i];
	}
	return AG_OK;
}

static double
soft_threshold(double x, double by)
{
	return x > by ? x - by : x < -by ? x + by : 0.0;
}

/* The greatest distance of a subgradient from 0. q = centred w. */
static double
worst_slope(const Gram *gram, double l1, double l2, const double *w, const double *q)
{
	double worst = 0.0;

	for (int j = 0; j < gram->n_terms; j++)
	{
		double g = q[j] - gram->right[j] + l2 * w[j];

		g = w[j] != 0.0 ? g + (w[j] > 0.0 ? l1 : -l1) : soft_threshold(g, l1);
		worst = fmax(worst, fabs(g));
	}
	return worst;
}

static AgStatus
solve_lasso(Gram *gram, double l1, double l2, int max_iter, double tolerance, double *w,
			int *n_iter, bool *converged, bool *late)
{
	const AgContext *ctx = gram->problem->ctx;
	size_t m = (size_t) gram->n_terms;
	double *q;
	AgStatus status = AG_OK;

	*converged = false;
	AG_TRY(ag_get_zeroed(ctx, m, sizeof(double), &q));
	memset(w, 0, m * sizeof(double));
	for (*n_iter = 0; *n_iter < max_iter && !*converged && !*late; (*n_iter)++)
	{
		AG_GO(ag_check_cancel(ctx));
		*late = ag_out_of_time(ctx);
		for (size_t j = 0; j < m; j++)
		{
			const double *row = gram->centred + j * m;
			double d = row[j] + l2, old = w[j], change;

			if (!(row[j] > 0.0))
				continue; /* a constant column */
			w[j] = soft_threshold(gram->right[j] - q[j] + row[j] * old, l1) / d;
			change = w[j] - old;
			if (change != 0.0)
				for (size_t i = 0; i < m; i++)
					q[i] += row[i] * change;
		}
		*converged = worst_slope(gram, l1, l2, w, q) <= tolerance;
	}
done:
	ag_mem_free(ctx->mem, q);
	return status;
}

static AgStatus
get_memory(Gram *gram, int n_threads)
{
	const AgContext *ctx = gram->problem->ctx;
	size_t m = (size_t) gram->n_terms, size = (size_t) gram->size;

	AG_TRY(ag_get(ctx, (size_t) gram->n_parts * size, size * sizeof(double), &gram->parts));
	AG_TRY(ag_get(ctx, m, m * sizeof(double), &gram->centred));
	AG_TRY(ag_get(ctx, m, sizeof(double), &gram->right));
	AG_TRY(ag_get(ctx, m, sizeof(double), &gram->means));
	AG_TRY(ag_get_zeroed(ctx, (size_t) n_threads, sizeof(double *), &gram->scratch));
	for (int t = 0; t < n_threads; t++)
		AG_TRY(
			ag_get(ctx, 2 * (size_t) gram->block_rows, size * sizeof(double), &gram->scratch[t]));
	return AG_OK;
}

/* Fills the first part with the products of all rows. */
static AgStatus
multiply(Gram *gram)
{
	AgLinearProblem *problem = gram->problem;
	const AgContext *ctx = problem->ctx;

	if (problem->gpu.linear != NULL)
	{
		AgDeviceProducts order = {gram->size, gram->n_terms, gram->n_parts, gram->block_rows};

		return ag_linear_gpu_products(problem, &order, gram->parts);
	}
	atomic_store(&problem->late, false);
	ag_pool_run(ctx->pool, gram->n_parts, 1, sum_parts, gram);
	AG_TRY(ag_check_cancel(ctx));
	if (atomic_load(&problem->late))
		return AG_ERR_TIME;
	ag_pool_run(ctx->pool, gram->size, STRIPE, add_parts, gram);
	return AG_OK;
}

AgStatus
ag_linear_gram_solve(AgLinearProblem *problem, int max_iter, double tolerance, double *x,
					 int *n_iter, bool *converged, bool *late)
{
	Gram gram = {.problem = problem};
	const AgContext *ctx = problem->ctx;
	int n_threads = ag_pool_size(ctx->pool);
	double n = (double) problem->n_rows, intercept;
	AgStatus status;

	*n_iter = 0;
	*converged = *late = false;
	gram.n_terms = (int) (problem->matrix->stride + problem->n_columns);
	gram.size = size_of(gram.n_terms);
	gram.n_parts = ag_linear_gram_parts(problem->n_parts, gram.n_terms);
	gram.block_rows = BLOCK_PRODUCTS / (gram.size * gram.size);
	gram.block_rows = gram.block_rows < MAX_BLOCK_ROWS ? gram.block_rows : MAX_BLOCK_ROWS;
	AG_GO(get_memory(&gram, n_threads));
	AG_GO(multiply(&gram));
	centre(&gram);
	if (problem->l1 > 0.0)
		AG_GO(solve_lasso(&gram, problem->l1 * n, problem->l2 * n, max_iter, tolerance * n, x,
						  n_iter, converged, late));
	else
	{
		AG_GO(solve_ridge(&gram, problem->l2 * n, x));
		*converged = true;
	}
	intercept = gram.target_mean;
	for (int j = 0; j < gram.n_terms; j++)
		intercept -= x[j] * gram.means[j];
	x[gram.n_terms] = 0.0; /* "none" */
	x[gram.n_terms + 1] = intercept;
done:
	for (int t = 0; gram.scratch != NULL && t < n_threads; t++)
		ag_mem_free(ctx->mem, gram.scratch[t]);
	ag_mem_free(ctx->mem, gram.scratch);
	ag_mem_free(ctx->mem, gram.means);
	ag_mem_free(ctx->mem, gram.right);
	ag_mem_free(ctx->mem, gram.centred);
	ag_mem_free(ctx->mem, gram.parts);
	return status;
}
