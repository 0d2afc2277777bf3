/*
 * metric.h - evaluation metrics, by AutoGluon's names.
 *
 * Values are plain (an error is positive); ag_metric_score gives the signed
 * "higher is better" form for leaderboards. Sums run in fixed blocks, so a value doesn't
 * depend on the number of threads; ranks are integers.
 */
#ifndef AG_METRIC_H
#define AG_METRIC_H

#include "engine/base/context.h"
#include "engine/data/label.h"

typedef enum AgMetric
{
	AG_METRIC_NONE = 0,
	/* classification */
	AG_METRIC_ACCURACY,
	AG_METRIC_BALANCED_ACCURACY,
	AG_METRIC_MCC,
	AG_METRIC_LOG_LOSS,
	AG_METRIC_ROC_AUC, /* binary */
	AG_METRIC_F1,      /* binary, positive class */
	AG_METRIC_PRECISION,
	AG_METRIC_RECALL,
	AG_METRIC_F1_MACRO,
	AG_METRIC_F1_MICRO,
	AG_METRIC_F1_WEIGHTED,
	AG_METRIC_AVERAGE_PRECISION, /* binary */
	AG_METRIC_ROC_AUC_OVR_MACRO,
	AG_METRIC_ROC_AUC_OVR_MICRO,
	AG_METRIC_ROC_AUC_OVR_WEIGHTED,
	AG_METRIC_ROC_AUC_OVO_MACRO,
	AG_METRIC_ROC_AUC_OVO_WEIGHTED,
	AG_METRIC_PRECISION_MACRO,
	AG_METRIC_PRECISION_MICRO,
	AG_METRIC_PRECISION_WEIGHTED,
	AG_METRIC_RECALL_MACRO,
	AG_METRIC_RECALL_MICRO,
	AG_METRIC_RECALL_WEIGHTED,
	AG_METRIC_QUADRATIC_KAPPA,
	AG_METRIC_PAC,
	/* regression */
	AG_METRIC_RMSE,
	AG_METRIC_MSE,
	AG_METRIC_MAE,
	AG_METRIC_MEDAE,
	AG_METRIC_MAPE,
	AG_METRIC_SMAPE,
	AG_METRIC_R2,
	AG_METRIC_PEARSONR,
	AG_METRIC_SPEARMANR,
	/* quantiles */
	AG_METRIC_PINBALL_LOSS,
	AG_METRIC_LAST
} AgMetric;

/* The canonical name ("root_mean_squared_error"); NULL for NONE. */
const char *ag_metric_name(AgMetric metric);
/* By canonical name or alias ("rmse", "acc", "nll"); AG_METRIC_NONE when unknown. */
AgMetric ag_metric_by_name(const char *name);
bool ag_metric_fits(AgMetric metric, AgProblem problem);
bool ag_metric_higher_is_better(AgMetric metric);
/* Of probabilities themselves, not of the classes that they make most likely. */
bool ag_metric_needs_probabilities(AgMetric metric);
/* Only their order counts, so that a model can't be watched by it round by round. */
bool ag_metric_is_ranking(AgMetric metric);
/* Takes time in proportion to the number of classes, or of pairs of them. */
bool ag_metric_goes_by_class(AgMetric metric);
/* accuracy, accuracy, root_mean_squared_error, pinball_loss. */
AgMetric ag_metric_default(AgProblem problem);
/* All that fit a problem, the eval metric first and then as AutoGluon lists them; returns how many (<= AG_METRIC_LAST). */
int ag_metric_list(AgProblem problem, AgMetric eval_metric, AgMetric *list);
/* value or -value: higher is better. */
double ag_metric_score(AgMetric metric, double value);

/* What rows really were, whatever the problem; all arrays are the caller's. */
typedef struct AgTruth
{
	int n_classes;
	const int32_t *class_of; /* [n] classes */
	int n_quantiles;
	const double *quantiles; /* [n_quantiles] ascending */
	const double *target;    /* [n] numbers */
	const double *weight;    /* [n] or NULL */
	double threshold;        /* of two classes: above it the second; 0: a half */
} AgTruth;

static inline int
ag_truth_outputs(const AgTruth *truth)
{
	return ag_n_outputs(truth->n_classes, truth->n_quantiles);
}

/* The metric of predictions[n][ag_truth_outputs] as one of the functions below gives it, by the problem. */
AgStatus ag_metric_value(const AgContext *ctx, AgMetric metric, const AgTruth *truth, int64_t n,
						 const double *predictions, double *value);

/*
 * Regression: target[n], prediction[n]. weight may be NULL. A metric that is undefined on the
 * data (r2 of one row, AUC of one class) gives NaN.
 */
AgStatus ag_metric_regression(const AgContext *ctx, AgMetric metric, int64_t n,
							  const double *target, const double *prediction, const double *weight,
							  double *value);

/*
 * Classification: class_of[n] in [0, n_classes), or -1 for a class training never saw (counts as wrong;
 * its probability is taken as 0 and clipped); proba[n][n_classes]. The predicted class is the first maximum, for
 * binary: the positive class where proba > threshold.
 */
AgStatus ag_metric_classes(const AgContext *ctx, AgMetric metric, int64_t n, int n_classes,
						   const int32_t *class_of, const double *proba, double threshold,
						   const double *weight, double *value);

/* Quantiles: predictions[n][truth->n_quantiles]; the mean over rows and levels. */
AgStatus ag_metric_quantiles(const AgContext *ctx, AgMetric metric, const AgTruth *truth, int64_t n,
							 const double *predictions, double *value);

#endif
