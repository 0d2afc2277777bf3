/*
 * metric_private.h - what the metrics of classes (metric_classes.c, metric_rank.c) share.
 */
#ifndef AG_METRIC_PRIVATE_H
#define AG_METRIC_PRIVATE_H

#include "engine/model/metric.h"

typedef struct AgMetricRows
{
	AgMetric metric;
	int64_t n;
	int n_classes;
	const int32_t *class_of; /* -1: a class that training never saw */
	const double *proba;     /* [n][n_classes] */
	double threshold;
	const double *weight; /* NULL: all 1 */
	int32_t *predicted;   /* [n], where a tally needs it */
} AgMetricRows;

static inline double
ag_metric_weight(const AgMetricRows *rows, int64_t i)
{
	return rows->weight != NULL ? rows->weight[i] : 1.0;
}

/* metric_rank.c: the metrics that only the order of the probabilities matters to. */
AgStatus ag_metric_by_rank(const AgContext *ctx, const AgMetricRows *rows, double *value);

#endif
