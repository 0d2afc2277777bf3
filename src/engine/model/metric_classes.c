/*
 * metric_classes.c - metrics of predicted classes and their probabilities.
 *
 * A row of class -1 (training never saw its class) is nobody's hit. In the tallies
 * such rows form one class more, behind the known ones; in the binary metrics they
 * are not of the positive class.
 */
#include <math.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/metric.h"
#include "engine/model/rank.h"
#include "engine/model/sum.h"

/* A probability of 0 would cost infinitely much: it is taken as this, and 1 as 1 less this. */
#define LEAST_PROBABILITY 1e-15

typedef struct Rows
{
	AgMetric metric;
	int64_t n;
	int n_classes;
	const int32_t *class_of;
	const double *proba;
	double threshold;
	const double *weight; /* NULL: all 1 */
	int32_t *predicted;   /* [n], where a tally needs it */
} Rows;

static double
weight_of(const Rows *rows, int64_t i)
{
	return rows->weight != NULL ? rows->weight[i] : 1.0;
}

static int32_t
predicted_class(const Rows *rows, int64_t i)
{
	const double *p = rows->proba + i * rows->n_classes;
	int32_t best = 0;

	if (rows->n_classes == 2)
		return p[1] > rows->threshold;
	for (int32_t k = 1; k < rows->n_classes; k++)
		if (p[k] > p[best])
			best = k;
	return best;
}

static void
hit_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		double w = weight_of(rows, i);

		sums[0] += predicted_class(rows, i) == rows->class_of[i] ? w : 0.0;
		sums[1] += w;
	}
}

static void
log_loss_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const Rows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		int32_t k = rows->class_of[i];
		double w = weight_of(rows, i);
		double p = k >= 0 ? rows->proba[i * rows->n_classes + k] : 0.0;

		if (p < LEAST_PROBABILITY)
			p = LEAST_PROBABILITY;
		else if (p > 1.0 - LEAST_PROBABILITY)
			p = 1.0 - LEAST_PROBABILITY;
		sums[0] -= w * ag_ln(p);
		sums[1] += w;
	}
}

static double
mean_of(const AgContext *ctx, const Rows *rows, AgSumTerms terms)
{
	double sums[2];

	ag_sum_rows(ctx, rows->n, 2, terms, rows, sums);
	return sums[0] / sums[1];
}

/* Weights by true class, by predicted class, and of the hits: [n_classes + 1] each. */
typedef struct Tally
{
	int n_classes; /* the class of the unseen included */
	double *truth, *predicted, *hit;
	double total, total_hit;
} Tally;

static void
predict_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	Rows *rows = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
		rows->predicted[i] = predicted_class(rows, i);
}

static AgStatus
tally_rows(const AgContext *ctx, Rows *rows, Tally *tally)
{
	int n_classes = rows->n_classes + 1;

	AG_TRY(ag_get(ctx, (size_t) rows->n, sizeof(int32_t), &rows->predicted));
	AG_TRY(ag_get_zeroed(ctx, (size_t) n_classes, 3 * sizeof(double), &tally->truth));
	tally->n_classes = n_classes;
	tally->predicted = tally->truth + n_classes;
	tally->hit = tally->predicted + n_classes;
	ag_pool_run(ctx->pool, rows->n, 4096, predict_rows, rows);
	for (int64_t i = 0; i < rows->n; i++)
	{
		int32_t truth = rows->class_of[i], predicted = rows->predicted[i];
		double w = weight_of(rows, i);

		if (truth == predicted)
		{
			tally->hit[truth] += w;
			tally->total_hit += w;
		}
		tally->truth[truth >= 0 ? truth : n_classes - 1] += w;
		tally->predicted[predicted] += w;
		tally->total += w;
	}
	return AG_OK;
}

/* Mean recall of the classes that there are. */
static double
balanced_accuracy(const Tally *tally)
{
	double sum = 0.0;
	int n = 0;

	for (int k = 0; k < tally->n_classes; k++)
		if (tally->truth[k] > 0.0)
		{
			sum += tally->hit[k] / tally->truth[k];
			n++;
		}
	return n > 0 ? sum / n : (double) NAN;
}

/* Matthews' correlation, for any number of classes (Gorodkin 2004). 0 where one side is constant. */
static double
mcc(const Tally *tally)
{
	double both = 0.0, truth = 0.0, predicted = 0.0, square = tally->total * tally->total;
	double spread;

	for (int k = 0; k < tally->n_classes; k++)
	{
		both += tally->truth[k] * tally->predicted[k];
		truth += tally->truth[k] * tally->truth[k];
		predicted += tally->predicted[k] * tally->predicted[k];
	}
	spread = (square - truth) * (square - predicted);
	/* Weights that aren't whole leave dust where there should be nothing. */
	if (square - truth <= 1e-14 * square || square - predicted <= 1e-14 * square)
		return tally->total > 0.0 ? 0.0 : (double) NAN;
	return (tally->total_hit * tally->total - both) / sqrt(spread);
}

static double
f1_of(const Tally *tally, int k)
{
	double both = tally->truth[k] + tally->predicted[k];

	return both > 0.0 ? 2.0 * tally->hit[k] / both : 0.0;
}

/* Mean of the classes that are true or predicted somewhere: plain, or by true weight. */
static double
f1_mean(const Tally *tally, bool by_weight)
{
	double sum = 0.0, total = 0.0;

	for (int k = 0; k < tally->n_classes; k++)
		if (tally->truth[k] > 0.0 || tally->predicted[k] > 0.0)
		{
			double w = by_weight ? tally->truth[k] : 1.0;

			sum += w * f1_of(tally, k);
			total += w;
		}
	return total > 0.0 ? sum / total : (double) NAN;
}

static double
tally_value(AgMetric metric, const Tally *tally)
{
	switch (metric)
	{
		case AG_METRIC_BALANCED_ACCURACY:
			return balanced_accuracy(tally);
		case AG_METRIC_MCC:
			return mcc(tally);
		case AG_METRIC_F1:
			return f1_of(tally, 1);
		case AG_METRIC_PRECISION:
			return tally->predicted[1] > 0.0 ? tally->hit[1] / tally->predicted[1] : 0.0;
		case AG_METRIC_RECALL:
			return tally->truth[1] > 0.0 ? tally->hit[1] / tally->truth[1] : 0.0;
		case AG_METRIC_F1_MACRO:
			return f1_mean(tally, false);
		default:
			return f1_mean(tally, true);
	}
}

static AgStatus
by_tally(const AgContext *ctx, Rows *rows, double *value)
{
	Tally tally = {0};
	AgStatus status = tally_rows(ctx, rows, &tally);

	if (status == AG_OK)
		*value = tally_value(rows->metric, &tally);
	ag_mem_free(ctx->mem, tally.truth);
	ag_mem_free(ctx->mem, rows->predicted);
	return status;
}

/*
 * The share of pairs of one positive and one other row that are in the right order,
 * ties counting half (Mann and Whitney 1947). Unweighted it is counted in integers,
 * twice over so that halves are whole: exact up to 2^32 rows.
 */
static double
auc_of(const AgRanked *ranked, const Rows *rows, int32_t positive)
{
	double w_below = 0.0, w_positive = 0.0, area = 0.0;
	uint64_t n_below = 0, n_positive = 0, twice = 0;

	for (int64_t at = 0, end; at < rows->n; at = end)
	{
		double w_pos = 0.0, w_neg = 0.0;
		uint64_t n_pos = 0, n_neg = 0;

		end = ag_rank_ties_end(ranked, rows->n, at);
		for (int64_t i = at; i < end; i++)
		{
			double w = weight_of(rows, ranked[i].row);
			bool is_positive = rows->class_of[ranked[i].row] == positive;

			w_pos += is_positive ? w : 0.0;
			w_neg += is_positive ? 0.0 : w;
			n_pos += is_positive;
			n_neg += !is_positive;
		}
		area += w_pos * (w_below + 0.5 * w_neg);
		twice += n_pos * (2 * n_below + n_neg);
		w_below += w_neg;
		w_positive += w_pos;
		n_below += n_neg;
		n_positive += n_pos;
	}
	if (!(w_positive > 0.0) || !(w_below > 0.0))
		return (double) NAN;
	if (rows->weight == NULL)
		return (double) twice / (2.0 * (double) n_positive * (double) n_below);
	return area / (w_positive * w_below);
}

/* The sum over thresholds, from the highest down, of the recall each adds times its precision. */
static double
average_precision_of(const AgRanked *ranked, const Rows *rows, int32_t positive)
{
	double total = 0.0, hits = 0.0, taken = 0.0, sum = 0.0;

	for (int64_t i = 0; i < rows->n; i++)
		total += rows->class_of[i] == positive ? weight_of(rows, i) : 0.0;
	for (int64_t end = rows->n, at; end > 0; end = at)
	{
		double w_pos = 0.0;

		at = end;
		while (at > 0 && ranked[at - 1].key == ranked[end - 1].key)
		{
			double w = weight_of(rows, ranked[--at].row);

			taken += w;
			w_pos += rows->class_of[ranked[at].row] == positive ? w : 0.0;
		}
		hits += w_pos;
		if (w_pos > 0.0)
			sum += w_pos * (hits / taken);
	}
	return total > 0.0 ? sum / total : 0.0;
}

typedef double (*RankedValue)(const AgRanked *ranked, const Rows *rows, int32_t positive);

/* The metric of one class against the rest, by the class's probability. */
static AgStatus
by_rank(const AgContext *ctx, const Rows *rows, int32_t positive, RankedValue of, double *value)
{
	AgRanked *ranked;
	bool has_nan;

	AG_TRY(ag_rank_rows(ctx, rows->n, rows->proba + positive, rows->n_classes, &ranked, &has_nan));
	*value = has_nan ? (double) NAN : of(ranked, rows, positive);
	ag_mem_free(ctx->mem, ranked);
	return AG_OK;
}

/* The mean over the classes for which there are rows of it and rows of others. */
static AgStatus
auc_one_against_rest(const AgContext *ctx, const Rows *rows, double *value)
{
	double sum = 0.0, auc;
	int n = 0;

	for (int32_t k = 0; k < rows->n_classes; k++)
	{
		AG_TRY(by_rank(ctx, rows, k, auc_of, &auc));
		if (auc == auc)
		{
			sum += auc;
			n++;
		}
	}
	*value = n > 0 ? sum / n : (double) NAN;
	return AG_OK;
}

AgStatus
ag_metric_classes(const AgContext *ctx, AgMetric metric, int64_t n, int n_classes,
				  const int32_t *class_of, const double *proba, double threshold,
				  const double *weight, double *value)
{
	Rows rows = {metric, n, n_classes, class_of, proba, threshold, weight, NULL};
	AgProblem problem = n_classes == 2 ? AG_PROBLEM_BINARY : AG_PROBLEM_MULTICLASS;

	*value = (double) NAN;
	if (n_classes < 2 || !ag_metric_fits(metric, problem))
	{
		const char *name = ag_metric_name(metric);

		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "metric \"%s\" is not one of %d classes",
							name != NULL ? name : "none", n_classes);
	}
	if (n <= 0)
		return AG_OK;
	switch (metric)
	{
		case AG_METRIC_ACCURACY:
		case AG_METRIC_F1_MICRO: /* every row has one class, so all three are the same */
			*value = mean_of(ctx, &rows, hit_terms);
			return AG_OK;
		case AG_METRIC_LOG_LOSS:
			*value = mean_of(ctx, &rows, log_loss_terms);
			return AG_OK;
		case AG_METRIC_ROC_AUC:
			return by_rank(ctx, &rows, 1, auc_of, value);
		case AG_METRIC_AVERAGE_PRECISION:
			return by_rank(ctx, &rows, 1, average_precision_of, value);
		case AG_METRIC_ROC_AUC_OVR_MACRO:
			return auc_one_against_rest(ctx, &rows, value);
		default:
			return by_tally(ctx, &rows, value);
	}
}
