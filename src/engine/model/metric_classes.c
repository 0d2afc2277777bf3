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
#include "engine/model/metric_maths.h"
#include "engine/model/metric_private.h"
#include "engine/model/sum.h"

#define PAC_LEAST_PROBABILITY 3e-8

static int32_t
predicted_class(const AgMetricRows *rows, int64_t i)
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
	const AgMetricRows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		double w = ag_metric_weight(rows, i);

		sums[0] += predicted_class(rows, i) == rows->class_of[i] ? w : 0.0;
		sums[1] += w;
	}
}

static void
log_loss_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const AgMetricRows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		int32_t k = rows->class_of[i];
		double w = ag_metric_weight(rows, i);
		double p = k >= 0 ? rows->proba[i * rows->n_classes + k] : 0.0;

		sums[0] -= w * ag_log_cost(p);
		sums[1] += w;
	}
}

/* As log_loss_terms, with the bounds that pac has by its definition. */
static void
pac_terms(const void *arg, int64_t begin, int64_t end, double *sums)
{
	const AgMetricRows *rows = arg;

	for (int64_t i = begin; i < end; i++)
	{
		int32_t k = rows->class_of[i];
		double w = ag_metric_weight(rows, i);
		double p = k >= 0 ? rows->proba[i * rows->n_classes + k] : 0.0;

		p = p < PAC_LEAST_PROBABILITY ? PAC_LEAST_PROBABILITY : p;
		p = p > 1.0 - PAC_LEAST_PROBABILITY ? 1.0 - PAC_LEAST_PROBABILITY : p;
		sums[0] -= w * ag_ln(p);
		sums[1] += w;
	}
}

static double
mean_of(const AgContext *ctx, const AgMetricRows *rows, AgSumTerms terms)
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
	AgMetricRows *rows = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
		rows->predicted[i] = predicted_class(rows, i);
}

static AgStatus
tally_rows(const AgContext *ctx, AgMetricRows *rows, Tally *tally)
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
		double w = ag_metric_weight(rows, i);

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

static double
precision_of(const Tally *tally, int k)
{
	return tally->predicted[k] > 0.0 ? tally->hit[k] / tally->predicted[k] : 0.0;
}

static double
recall_of(const Tally *tally, int k)
{
	return tally->truth[k] > 0.0 ? tally->hit[k] / tally->truth[k] : 0.0;
}

/* Mean of the classes that are true or predicted somewhere: plain, or by true weight. */
static double
class_mean(const Tally *tally, double (*of)(const Tally *tally, int k), bool by_weight)
{
	double sum = 0.0, total = 0.0;

	for (int k = 0; k < tally->n_classes; k++)
		if (tally->truth[k] > 0.0 || tally->predicted[k] > 0.0)
		{
			double w = by_weight ? tally->truth[k] : 1.0;

			sum += w * of(tally, k);
			total += w;
		}
	return total > 0.0 ? sum / total : (double) NAN;
}

/*
 * Cohen's kappa with squared distances between the classes' places (Cohen 1968). As scikit-learn counts them, places are
 * those of the classes that are true or predicted somewhere. The sums over pairs come from the moments of both sides.
 */
static double
quadratic_kappa(const AgMetricRows *rows, const Tally *tally, double *place)
{
	double truth1 = 0.0, truth2 = 0.0, predicted1 = 0.0, predicted2 = 0.0, seen = 0.0, chance;
	int n = 0;

	for (int k = 0; k < tally->n_classes; k++)
		if (tally->truth[k] > 0.0 || tally->predicted[k] > 0.0)
		{
			double at = place[k] = n++;

			truth1 += tally->truth[k] * at;
			truth2 += tally->truth[k] * at * at;
			predicted1 += tally->predicted[k] * at;
			predicted2 += tally->predicted[k] * at * at;
		}
	for (int64_t i = 0; i < rows->n; i++)
	{
		double w = ag_metric_weight(rows, i);
		int truth = rows->class_of[i] >= 0 ? rows->class_of[i] : tally->n_classes - 1;
		double apart = w > 0.0 ? place[truth] - place[rows->predicted[i]] : 0.0;

		seen += w * apart * apart;
	}
	if (n < 2)
		return (double) NAN; /* nothing that chance could miss */
	chance = truth2 + predicted2 - 2.0 * truth1 * (predicted1 / tally->total);
	return 1.0 - seen / chance;
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
			return precision_of(tally, 1);
		case AG_METRIC_RECALL:
			return recall_of(tally, 1);
		case AG_METRIC_F1_MACRO:
			return class_mean(tally, f1_of, false);
		case AG_METRIC_PRECISION_MACRO:
			return class_mean(tally, precision_of, false);
		case AG_METRIC_PRECISION_WEIGHTED:
			return class_mean(tally, precision_of, true);
		case AG_METRIC_RECALL_MACRO:
			return class_mean(tally, recall_of, false);
		case AG_METRIC_RECALL_WEIGHTED:
			return class_mean(tally, recall_of, true);
		default:
			return class_mean(tally, f1_of, true);
	}
}

static AgStatus
by_tally(const AgContext *ctx, AgMetricRows *rows, double *value)
{
	Tally tally = {0};
	AgStatus status = tally_rows(ctx, rows, &tally);

	if (status == AG_OK && rows->metric == AG_METRIC_QUADRATIC_KAPPA)
		*value = quadratic_kappa(rows, &tally, tally.hit);
	else if (status == AG_OK)
		*value = tally_value(rows->metric, &tally);
	ag_mem_free(ctx->mem, tally.truth);
	ag_mem_free(ctx->mem, rows->predicted);
	return status;
}

/*
 * Probabilistic accuracy: exp(-log loss), on a scale where 0 is what the classes' shares alone give and 1 is certainty
 * (Guyon et al. 2015, "Design of the 2015 ChaLearn AutoML challenge").
 */
static AgStatus
pac(const AgContext *ctx, AgMetricRows *rows, double *value)
{
	Tally tally = {0};
	double got = ag_exp(-mean_of(ctx, rows, pac_terms)), entropy = 0.0, base;
	AgStatus status = tally_rows(ctx, rows, &tally);

	for (int k = 0; status == AG_OK && k < tally.n_classes; k++)
		if (tally.truth[k] > 0.0)
			entropy -= tally.truth[k] / tally.total * ag_ln(tally.truth[k] / tally.total);
	base = ag_exp(-entropy);
	*value =
		(got - base) / (1.0 - base > PAC_LEAST_PROBABILITY ? 1.0 - base : PAC_LEAST_PROBABILITY);
	ag_mem_free(ctx->mem, tally.truth);
	ag_mem_free(ctx->mem, rows->predicted);
	return status;
}

AgStatus
ag_metric_classes(const AgContext *ctx, AgMetric metric, int64_t n, int n_classes,
				  const int32_t *class_of, const double *proba, double threshold,
				  const double *weight, double *value)
{
	AgMetricRows rows = {metric, n, n_classes, class_of, proba, threshold, weight, NULL};
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
		case AG_METRIC_F1_MICRO: /* every row has one class, so all of these are the same */
		case AG_METRIC_PRECISION_MICRO:
		case AG_METRIC_RECALL_MICRO:
			*value = mean_of(ctx, &rows, hit_terms);
			return AG_OK;
		case AG_METRIC_LOG_LOSS:
			*value = mean_of(ctx, &rows, log_loss_terms);
			return AG_OK;
		case AG_METRIC_PAC:
			return pac(ctx, &rows, value);
		case AG_METRIC_ROC_AUC:
		case AG_METRIC_AVERAGE_PRECISION:
		case AG_METRIC_ROC_AUC_OVR_MACRO:
		case AG_METRIC_ROC_AUC_OVR_MICRO:
		case AG_METRIC_ROC_AUC_OVR_WEIGHTED:
		case AG_METRIC_ROC_AUC_OVO_MACRO:
		case AG_METRIC_ROC_AUC_OVO_WEIGHTED:
			return ag_metric_by_rank(ctx, &rows, value);
		default:
			return by_tally(ctx, &rows, value);
	}
}
