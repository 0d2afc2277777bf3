/*
 * metric_quantile.c - the metric of predicted quantiles, and the metric of whatever is predicted.
 */
#include <math.h>

#include "engine/model/metric.h"
#include "engine/model/sum.h"

typedef struct Rows
{
	const AgTruth *truth;
	const double *predictions;
} Rows;

/* Koenker and Bassett 1978, "Regression quantiles", section 3: what too low costs level by level, and what too high does. */
static void
pinball_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;
	const AgTruth *truth = rows->truth;
	int n = truth->n_quantiles;

	for (int64_t i = begin; i < end; i++)
	{
		double w = truth->weight != NULL ? truth->weight[i] : 1.0, sum = 0.0;

		for (int k = 0; k < n; k++)
		{
			double difference = truth->target[i] - rows->predictions[i * n + k];
			double level = truth->quantiles[k];

			sum += difference >= 0.0 ? level * difference : (level - 1.0) * difference;
		}
		sums[0] += w * (sum / n);
		sums[1] += w;
	}
}

AgStatus
ag_metric_quantiles(const AgContext *ctx, AgMetric metric, const AgTruth *truth, int64_t n,
					const double *predictions, double *value)
{
	Rows rows = {truth, predictions};
	const char *name = ag_metric_name(metric);
	double sums[2];

	*value = (double) NAN;
	if (!ag_metric_fits(metric, AG_PROBLEM_QUANTILE))
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "metric \"%s\" is not one of quantiles",
							name != NULL ? name : "none");
	if (n <= 0)
		return AG_OK;
	ag_sum_rows(ctx, n, 2, pinball_terms, &rows, sums);
	*value = sums[0] / sums[1];
	return AG_OK;
}

AgStatus
ag_metric_value(const AgContext *ctx, AgMetric metric, const AgTruth *truth, int64_t n,
				const double *predictions, double *value)
{
	if (truth->n_classes > 0)
		return ag_metric_classes(ctx, metric, n, truth->n_classes, truth->class_of, predictions,
								 truth->threshold > 0.0 ? truth->threshold : 0.5, truth->weight,
								 value);
	if (truth->n_quantiles > 0)
		return ag_metric_quantiles(ctx, metric, truth, n, predictions, value);
	return ag_metric_regression(ctx, metric, n, truth->target, predictions, truth->weight, value);
}
