/*
 * metric_regression.c - metrics of a predicted number.
 */
#include <math.h>

#include "engine/model/metric.h"
#include "engine/model/metric_maths.h"
#include "engine/model/rank.h"
#include "engine/model/sum.h"

typedef struct Rows
{
	AgMetric metric;
	const double *target;
	const double *prediction;
	const double *weight;                /* NULL: all 1 */
	double target_mean, prediction_mean; /* for the sums of the second pass */
} Rows;

static double
weight_of(const Rows *rows, int64_t i)
{
	return rows->weight != NULL ? rows->weight[i] : 1.0;
}

/* What one row costs under the metrics that are a mean of rows. */
static double
row_error(AgMetric metric, double target, double prediction)
{
	switch (metric)
	{
		case AG_METRIC_MAE:
			return ag_absolute_error(target, prediction);
		case AG_METRIC_MAPE:
			return ag_share_error(target, prediction);
		case AG_METRIC_SMAPE:
			return ag_symmetric_error(target, prediction);
		default:
			return ag_squared_error(target, prediction);
	}
}

static void
error_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		double w = weight_of(rows, i);

		sums[0] += w * row_error(rows->metric, rows->target[i], rows->prediction[i]);
		sums[1] += w;
	}
}

static double
mean_error(const AgContext *ctx, const Rows *rows, int64_t n)
{
	double sums[2];

	ag_sum_rows(ctx, n, 2, error_terms, rows, sums);
	return sums[0] / sums[1];
}

static void
mean_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		double w = weight_of(rows, i);

		sums[0] += w * rows->target[i];
		sums[1] += w * rows->prediction[i];
		sums[2] += w;
	}
}

/* Around the means, so that a large common offset costs no digits. */
static void
product_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		double w = weight_of(rows, i);
		double t = rows->target[i] - rows->target_mean;
		double p = rows->prediction[i] - rows->prediction_mean;
		double d = rows->prediction[i] - rows->target[i];

		sums[0] += w * t * p;
		sums[1] += w * t * t;
		sums[2] += w * p * p;
		sums[3] += w * d * d;
	}
}

/* sums: target × prediction, target², prediction², each around its mean, and difference². */
static void
product_sums(const AgContext *ctx, Rows *rows, int64_t n, double sums[4])
{
	ag_sum_rows(ctx, n, 3, mean_terms, rows, sums);
	rows->target_mean = sums[0] / sums[2];
	rows->prediction_mean = sums[1] / sums[2];
	ag_sum_rows(ctx, n, 4, product_terms, rows, sums);
}

/* The mean of equal numbers is not always that number, so the sums can't tell. Rows without weight aren't there. */
static bool
is_constant(const double *values, const double *weight, int64_t n)
{
	int64_t first = 0;

	while (first < n && weight != NULL && weight[first] == 0.0)
		first++;
	for (int64_t i = first + 1; i < n; i++)
		if (values[i] != values[first] && (weight == NULL || weight[i] != 0.0))
			return false;
	return true;
}

/* A constant target: 1 when it was met exactly, else 0. Undefined for less than two rows. */
static double
r2(const AgContext *ctx, Rows *rows, int64_t n)
{
	double sums[4];

	if (n < 2)
		return (double) NAN;
	product_sums(ctx, rows, n, sums);
	if (is_constant(rows->target, rows->weight, n))
		return sums[3] == 0.0 ? 1.0 : sums[3] > 0.0 ? 0.0 : (double) NAN;
	return 1.0 - sums[3] / sums[1];
}

static double
pearsonr(const AgContext *ctx, Rows *rows, int64_t n)
{
	double sums[4], r;

	if (is_constant(rows->target, rows->weight, n) ||
		is_constant(rows->prediction, rows->weight, n))
		return (double) NAN;
	product_sums(ctx, rows, n, sums);
	r = sums[0] / (sqrt(sums[1]) * sqrt(sums[2]));
	return r > 1.0 ? 1.0 : r < -1.0 ? -1.0 : r;
}

/*
 * Middle ranks: the weight of all smaller values and half of its equals'. With whole
 * weights that is, up to a constant, the mean rank of the rows repeated so often.
 */
static AgStatus
middle_ranks(const AgContext *ctx, const double *values, const double *weight, int64_t n,
			 double *ranks, bool *has_nan)
{
	AgRanked *ranked;
	double below = 0.0;

	AG_TRY(ag_rank_rows(ctx, n, values, 1, &ranked, has_nan));
	for (int64_t at = 0, end; at < n; at = end)
	{
		double same = 0.0;

		end = ag_rank_ties_end(ranked, n, at);
		for (int64_t i = at; i < end; i++)
			same += weight != NULL ? weight[ranked[i].row] : 1.0;
		for (int64_t i = at; i < end; i++)
			ranks[ranked[i].row] = below + 0.5 * same;
		below += same;
	}
	ag_mem_free(ctx->mem, ranked);
	return AG_OK;
}

/* Pearson's correlation of the ranks. */
static AgStatus
spearmanr(const AgContext *ctx, const Rows *rows, int64_t n, double *value)
{
	double *ranks;
	Rows ranked = *rows;
	bool nan_target, nan_prediction;
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) n, 2 * sizeof(double), &ranks));
	AG_GO(middle_ranks(ctx, rows->target, rows->weight, n, ranks, &nan_target));
	AG_GO(middle_ranks(ctx, rows->prediction, rows->weight, n, ranks + n, &nan_prediction));
	ranked.target = ranks;
	ranked.prediction = ranks + n;
	*value = nan_target || nan_prediction ? (double) NAN : pearsonr(ctx, &ranked, n);
done:
	ag_mem_free(ctx->mem, ranks);
	return status;
}

/*
 * The error that half of the weight stays within; where a value ends on exactly one
 * half (to rounding of the weights' sum), the mean of it and the next.
 */
static double
weighted_median(const AgRanked *ranked, const double *errors, const double *weight, int64_t n)
{
	double total = 0.0, seen = 0.0;
	int64_t at = 0, next;

	for (int64_t i = 0; i < n; i++)
		total += weight != NULL ? weight[ranked[i].row] : 1.0;
	if (!(total > 0.0))
		return (double) NAN;
	for (;; at++)
	{
		seen += weight != NULL ? weight[ranked[at].row] : 1.0;
		if (at == n - 1 || seen - 0.5 * total >= -1e-13 * total)
			break;
	}
	next = at + 1;
	while (next < n && weight != NULL && weight[ranked[next].row] == 0.0)
		next++;
	if (next >= n || seen - 0.5 * total > 1e-13 * total)
		return errors[ranked[at].row];
	return 0.5 * errors[ranked[at].row] + 0.5 * errors[ranked[next].row];
}

static AgStatus
median_error(const AgContext *ctx, const Rows *rows, int64_t n, double *value)
{
	double *errors;
	AgRanked *ranked = NULL;
	bool has_nan;
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) n, sizeof(double), &errors));
	for (int64_t i = 0; i < n; i++)
		errors[i] = fabs(rows->prediction[i] - rows->target[i]);
	AG_GO(ag_rank_rows(ctx, n, errors, 1, &ranked, &has_nan));
	*value = has_nan ? (double) NAN : weighted_median(ranked, errors, rows->weight, n);
done:
	ag_mem_free(ctx->mem, ranked);
	ag_mem_free(ctx->mem, errors);
	return status;
}

AgStatus
ag_metric_regression(const AgContext *ctx, AgMetric metric, int64_t n, const double *target,
					 const double *prediction, const double *weight, double *value)
{
	Rows rows = {metric, target, prediction, weight, 0.0, 0.0};

	*value = (double) NAN;
	if (!ag_metric_fits(metric, AG_PROBLEM_REGRESSION))
	{
		const char *name = ag_metric_name(metric);

		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "metric \"%s\" is not one of regression",
							name != NULL ? name : "none");
	}
	if (n <= 0)
		return AG_OK;
	switch (metric)
	{
		case AG_METRIC_RMSE:
			*value = sqrt(mean_error(ctx, &rows, n));
			break;
		case AG_METRIC_R2:
			*value = r2(ctx, &rows, n);
			break;
		case AG_METRIC_PEARSONR:
			*value = pearsonr(ctx, &rows, n);
			break;
		case AG_METRIC_SPEARMANR:
			return spearmanr(ctx, &rows, n, value);
		case AG_METRIC_MEDAE:
			return median_error(ctx, &rows, n, value);
		default:
			*value = mean_error(ctx, &rows, n);
			break;
	}
	return AG_OK;
}
