/*
 * linear_loss.c - the mean loss of a linear model and its gradient, in one pass over the rows.
 *
 * Rows are cut into a number of parts that depends on the data alone. A part is summed by one thread, a block of rows at a
 * time: scores, loss and what the gradient gets are all done while the block is in the cache. Parts are added in their
 * order.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/linear_private.h"

#define MAX_PARTS 32
#define MIN_PART_ROWS 128
#define MAX_PART_BYTES ((size_t) 256 << 20) /* of all gradients together */
#define MAX_BLOCK_ROWS 64                   /* a multiple of 8 */
#define BLOCK_FLOATS 32768                  /* of a block's numbers: 128 KB */
#define ADD_CHUNK 4096

int
ag_linear_sum_parts(int64_t n_rows, size_t n_values)
{
	int64_t n = n_rows / MIN_PART_ROWS;
	int64_t most = (int64_t) (MAX_PART_BYTES / (n_values * sizeof(double)));

	most = most < 4 ? 4 : most > MAX_PARTS ? MAX_PARTS : most;
	return n < 1 ? 1 : n > most ? (int) most : (int) n;
}

AgStatus
ag_linear_sum_init(AgLinearProblem *problem)
{
	const AgContext *ctx = problem->ctx;
	size_t stride = problem->matrix->stride;
	int n_threads = ag_pool_size(ctx->pool);

	problem->n_values = (stride + problem->n_columns + 2) * problem->n_padded;
	problem->n_parts = ag_linear_sum_parts(problem->n_rows, problem->n_values);
	problem->block_rows = (int) (stride > 0 ? BLOCK_FLOATS / stride : MAX_BLOCK_ROWS);
	problem->block_rows = problem->block_rows < 4                ? 4
						  : problem->block_rows > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS
																 : problem->block_rows;
	AG_TRY(ag_get(ctx, problem->n_values, (size_t) problem->n_parts * sizeof(double),
				  &problem->parts));
	AG_TRY(ag_get(ctx, (size_t) problem->n_parts, sizeof(double), &problem->losses));
	AG_TRY(ag_get_zeroed(ctx, (size_t) n_threads, sizeof(double *), &problem->scratch));
	for (int t = 0; t < n_threads && ag_linear_is_wide(problem); t++)
		AG_TRY(ag_get(ctx, (size_t) problem->block_rows,
					  (stride + problem->n_padded) * sizeof(double), &problem->scratch[t]));
	return AG_OK;
}

void
ag_linear_sum_free(AgLinearProblem *problem)
{
	AgMem *mem = problem->ctx->mem;
	int n_threads = ag_pool_size(problem->ctx->pool);

	for (int t = 0; problem->scratch != NULL && t < n_threads; t++)
		ag_mem_free(mem, problem->scratch[t]);
	ag_mem_free(mem, problem->scratch);
	ag_mem_free(mem, problem->losses);
	ag_mem_free(mem, problem->parts);
}

/*
 * Loss of n rows with one score each, which becomes its derivative; there is room for a multiple of 8. Logistic
 * loss and its slope are both told from e^-|score|, which can't overflow.
 */
static double
block_slopes(const AgLinearProblem *problem, int64_t begin, int n, double *scores)
{
	double e[MAX_BLOCK_ROWS], loss = 0.0;
	int padded = (n + 7) / 8 * 8;

	if (problem->link == AG_LINK_IDENTITY)
	{
		for (int b = 0; b < n; b++)
		{
			double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;
			double miss = scores[b] - problem->target[begin + b];

			scores[b] = w * miss;
			loss += 0.5 * scores[b] * miss;
		}
		return loss;
	}
	for (int b = 0; b < padded; b++)
		e[b] = b < n ? -fabs(scores[b]) : 0.0;
	problem->ops->exps(e, (size_t) padded);
	for (int b = 0; b < n; b++)
	{
		double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;
		double y = (double) problem->class_of[begin + b];
		double margin = y == 1.0 ? scores[b] : -scores[b];

		loss += margin < 0.0 ? -margin * w : 0.0;
		scores[b] = w * ((scores[b] >= 0.0 ? 1.0 : e[b]) / (1.0 + e[b]) - y);
	}
	for (int b = 0; b < padded; b++)
		e[b] += 1.0;
	problem->ops->logs(e, (size_t) padded);
	for (int b = 0; b < n; b++)
		loss += problem->weight != NULL ? problem->weight[begin + b] * e[b] : e[b];
	return loss;
}

/* Rows [begin, end) of the training rows where a model has one score. */
static double
block_single(const AgLinearProblem *problem, int64_t begin, int n, double *gradient)
{
	const AgDenseMatrix *matrix = problem->matrix;
	const double *x = problem->x, *by_column = x + matrix->stride;
	double intercept = x[ag_linear_intercept_at(problem)], loss;
	double slopes[MAX_BLOCK_ROWS], total = 0.0;
	const float *numbers[MAX_BLOCK_ROWS];

	for (int b = 0; b < n; b++)
	{
		size_t row = problem->rows[begin + b];
		const uint32_t *slots = matrix->slots + row * matrix->n_slots;
		double score = intercept;

		numbers[b] = matrix->numbers + row * matrix->stride;
		score += problem->ops->dot_float(numbers[b], x, matrix->stride);
		for (uint32_t s = 0; s < matrix->n_slots; s++)
			score += by_column[slots[s]];
		slopes[b] = score;
	}
	loss = block_slopes(problem, begin, n, slopes);
	for (int b = 0; b < n; b++)
	{
		const uint32_t *slots = matrix->slots + (size_t) problem->rows[begin + b] * matrix->n_slots;

		total += slopes[b];
		for (uint32_t s = 0; s < matrix->n_slots; s++)
			gradient[matrix->stride + slots[s]] += slopes[b];
	}
	problem->ops->add_rows(gradient, numbers, slopes, n, matrix->stride);
	gradient[ag_linear_intercept_at(problem)] += total;
	return loss;
}

/* Scores of n rows become what their losses add to the gradient of each score. Returns the loss. */
static double
softmax_slopes(const AgLinearProblem *problem, int64_t begin, int n, double *scores)
{
	uint32_t padded = problem->n_padded;
	double own[MAX_BLOCK_ROWS], greatest[MAX_BLOCK_ROWS], sums[MAX_BLOCK_ROWS], loss = 0.0;

	for (int b = 0; b < n; b++)
	{
		double *row = scores + (size_t) b * padded;

		own[b] = row[problem->class_of[begin + b]];
		for (uint32_t k = problem->n_outputs; k < padded; k++)
			row[k] = -INFINITY;
	}
	problem->ops->exp_rows(scores, n, padded, greatest, sums);
	for (int b = 0; b < n; b++)
	{
		double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;
		double *row = scores + (size_t) b * padded, scale = w / sums[b];

		for (uint32_t k = 0; k < padded; k++)
			row[k] *= scale;
		row[problem->class_of[begin + b]] -= w;
	}
	for (int b = n; b < (n + 7) / 8 * 8; b++)
		sums[b] = 1.0;
	problem->ops->logs(sums, (size_t) (n + 7) / 8 * 8);
	for (int b = 0; b < n; b++)
	{
		double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;

		loss += w * (sums[b] + greatest[b] - own[b]);
	}
	return loss;
}

/*
 * The same for quantiles. The absolute value in |d| / 2 + (level - 1/2) d becomes a parabola within bend of 0: L-BFGS needs slopes
 * that don't jump, and so near the target both losses ask for the same.
 */
static double
quantile_slopes(const AgLinearProblem *problem, int64_t begin, int n, double *scores)
{
	double bend = problem->bend, loss = 0.0;

	for (int b = 0; b < n; b++)
	{
		double w = problem->weight != NULL ? problem->weight[begin + b] : 1.0;
		double *row = scores + (size_t) b * problem->n_padded;

		for (uint32_t k = 0; k < problem->n_outputs; k++)
		{
			double d = problem->target[begin + b] - row[k], size = fabs(d);
			double tilt = problem->quantiles[k] - 0.5;
			double half = size < bend ? d / (2.0 * bend) : d > 0.0 ? 0.5 : -0.5;

			loss += w * ((size < bend ? d * d / (4.0 * bend) + bend / 4.0 : size / 2.0) + tilt * d);
			row[k] = -w * (half + tilt);
		}
		for (uint32_t k = problem->n_outputs; k < problem->n_padded; k++)
			row[k] = 0.0;
	}
	return loss;
}

static void
add_vector(double *to, const double *from, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		to[k] += from[k];
}

static double
block_wide(const AgLinearProblem *problem, int64_t begin, int n, double *gradient, double *scratch)
{
	const AgDenseMatrix *matrix = problem->matrix;
	uint32_t padded = problem->n_padded;
	size_t stride = matrix->stride;
	const double *by_column = problem->x + stride * padded;
	double *x = scratch, *scores = scratch + (size_t) problem->block_rows * stride, loss;

	for (int b = 0; b < n; b++)
	{
		size_t row = problem->rows[begin + b];
		const float *numbers = matrix->numbers + row * stride;

		memcpy(scores + (size_t) b * padded, problem->x + ag_linear_intercept_at(problem),
			   padded * sizeof(double));
		problem->ops->widen(numbers, x + (size_t) b * stride, stride);
	}
	problem->ops->multiply(x, stride, problem->x, padded, n, (int) problem->n_numbers, (int) padded,
						   scores, padded);
	for (int b = 0; b < n; b++)
	{
		const uint32_t *slots = matrix->slots + (size_t) problem->rows[begin + b] * matrix->n_slots;
		double *row_scores = scores + (size_t) b * padded;

		for (uint32_t s = 0; s < matrix->n_slots; s++)
			add_vector(row_scores, by_column + (size_t) slots[s] * padded, padded);
	}
	loss = problem->link == AG_LINK_QUANTILES ? quantile_slopes(problem, begin, n, scores)
											  : softmax_slopes(problem, begin, n, scores);
	for (int b = 0; b < n; b++)
	{
		const uint32_t *slots = matrix->slots + (size_t) problem->rows[begin + b] * matrix->n_slots;
		double *row_scores = scores + (size_t) b * padded;

		for (uint32_t s = 0; s < matrix->n_slots; s++)
			add_vector(gradient + (stride + slots[s]) * padded, row_scores, padded);
		add_vector(gradient + ag_linear_intercept_at(problem), row_scores, padded);
	}
	problem->ops->multiply_transposed(x, stride, scores, padded, n, (int) problem->n_numbers,
									  (int) padded, gradient, padded);
	return loss;
}

static void
sum_parts(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLinearProblem *problem = arg;

	for (int64_t p = begin; p < end; p++)
	{
		int64_t at = problem->n_rows * p / problem->n_parts;
		int64_t behind = problem->n_rows * (p + 1) / problem->n_parts;
		double *gradient = problem->parts + (size_t) p * problem->n_values;
		double loss = 0.0;

		memset(gradient, 0, problem->n_values * sizeof(double));
		while (at < behind)
		{
			int n = behind - at < problem->block_rows ? (int) (behind - at) : problem->block_rows;

			if (ag_cancelled(problem->ctx) || atomic_load(&problem->late))
				return;
			if (ag_out_of_time(problem->ctx))
			{
				atomic_store(&problem->late, true);
				return;
			}
			loss += ag_linear_is_wide(problem)
						? block_wide(problem, at, n, gradient, problem->scratch[thread])
						: block_single(problem, at, n, gradient);
			at += n;
		}
		problem->losses[p] = loss;
	}
}

/* The sum over the rows becomes a mean, with what the penalty adds. */
static void
finish_gradient(const AgLinearProblem *problem, int64_t begin, int64_t end)
{
	double *gradient = problem->gradient;
	double inverse = 1.0 / (double) problem->n_rows;
	size_t none_at = (problem->matrix->stride + problem->n_columns) * problem->n_padded;

	for (int64_t i = begin; i < end; i++)
	{
		gradient[i] *= inverse;
		if ((size_t) i < none_at)
			gradient[i] += problem->l2 * problem->x[i];
		else if ((size_t) i < none_at + problem->n_padded)
			gradient[i] = 0.0;
	}
}

static void
add_parts(void *arg, int64_t begin, int64_t end, int thread)
{
	const AgLinearProblem *problem = arg;
	double *gradient = problem->gradient;

	(void) thread;
	memcpy(gradient + begin, problem->parts + begin, (size_t) (end - begin) * sizeof(double));
	for (int p = 1; p < problem->n_parts; p++)
	{
		const double *part = problem->parts + (size_t) p * problem->n_values;

		for (int64_t i = begin; i < end; i++)
			gradient[i] += part[i];
	}
	finish_gradient(problem, begin, end);
}

static AgStatus
sum_here(AgLinearProblem *problem)
{
	ag_pool_run(problem->ctx->pool, problem->n_parts, 1, sum_parts, problem);
	AG_TRY(ag_check_cancel(problem->ctx));
	if (atomic_load(&problem->late))
		return AG_ERR_TIME;
	ag_pool_run(problem->ctx->pool, (int64_t) problem->n_values, ADD_CHUNK, add_parts, problem);
	return AG_OK;
}

AgStatus
ag_linear_sum(void *arg, const double *x, double *value, double *gradient)
{
	AgLinearProblem *problem = arg;
	size_t n_penalised = (problem->matrix->stride + problem->n_columns) * problem->n_padded;
	double loss = 0.0;

	problem->x = x;
	problem->gradient = gradient;
	atomic_store(&problem->late, false);
	ag_progress(problem->ctx, "linear model", -1.0);
	if (problem->gpu.linear != NULL)
	{
		AG_TRY(ag_linear_gpu_sum(problem, gradient));
		finish_gradient(problem, 0, (int64_t) problem->n_values);
	}
	else
		AG_TRY(sum_here(problem));
	for (int p = 0; p < problem->n_parts; p++)
		loss += problem->losses[p];
	*value =
		loss / (double) problem->n_rows + 0.5 * problem->l2 * problem->ops->dot(x, x, n_penalised);
	return AG_OK;
}
