#include <string.h>

#include "engine/model/metric.h"

#define BINARY 1u
#define MULTICLASS 2u
#define CLASSES (BINARY | MULTICLASS)
#define REGRESSION 4u
#define QUANTILE 8u

#define PROBABILITIES 1u
#define RANKING 2u
#define BY_CLASS 4u

/* One row a metric, in the order of AgMetric. */
static const struct MetricFacts
{
	const char *name;
	const char *alias; /* or NULL */
	unsigned problems;
	bool higher_is_better;
	unsigned kind; /* PROBABILITIES, RANKING, BY_CLASS */
} facts[AG_METRIC_LAST] = {
	[AG_METRIC_ACCURACY] = {"accuracy", "acc", CLASSES, true, 0},
	[AG_METRIC_BALANCED_ACCURACY] = {"balanced_accuracy", NULL, CLASSES, true, 0},
	[AG_METRIC_MCC] = {"mcc", NULL, CLASSES, true, 0},
	[AG_METRIC_LOG_LOSS] = {"log_loss", "nll", CLASSES, false, PROBABILITIES},
	[AG_METRIC_ROC_AUC] = {"roc_auc", NULL, BINARY, true, PROBABILITIES | RANKING},
	[AG_METRIC_F1] = {"f1", NULL, BINARY, true, 0},
	[AG_METRIC_PRECISION] = {"precision", NULL, BINARY, true, 0},
	[AG_METRIC_RECALL] = {"recall", NULL, BINARY, true, 0},
	[AG_METRIC_F1_MACRO] = {"f1_macro", NULL, CLASSES, true, 0},
	[AG_METRIC_F1_MICRO] = {"f1_micro", NULL, CLASSES, true, 0},
	[AG_METRIC_F1_WEIGHTED] = {"f1_weighted", NULL, CLASSES, true, 0},
	[AG_METRIC_AVERAGE_PRECISION] = {"average_precision", NULL, BINARY, true, PROBABILITIES},
	[AG_METRIC_ROC_AUC_OVR_MACRO] = {"roc_auc_ovr_macro", "roc_auc_ovr", MULTICLASS, true,
									 PROBABILITIES | RANKING | BY_CLASS},
	[AG_METRIC_ROC_AUC_OVR_MICRO] = {"roc_auc_ovr_micro", NULL, MULTICLASS, true,
									 PROBABILITIES | RANKING | BY_CLASS},
	[AG_METRIC_ROC_AUC_OVR_WEIGHTED] = {"roc_auc_ovr_weighted", NULL, MULTICLASS, true,
										PROBABILITIES | RANKING | BY_CLASS},
	[AG_METRIC_ROC_AUC_OVO_MACRO] = {"roc_auc_ovo_macro", "roc_auc_ovo", MULTICLASS, true,
									 PROBABILITIES | RANKING | BY_CLASS},
	[AG_METRIC_ROC_AUC_OVO_WEIGHTED] = {"roc_auc_ovo_weighted", NULL, MULTICLASS, true,
										PROBABILITIES | RANKING | BY_CLASS},
	[AG_METRIC_PRECISION_MACRO] = {"precision_macro", NULL, CLASSES, true, 0},
	[AG_METRIC_PRECISION_MICRO] = {"precision_micro", NULL, CLASSES, true, 0},
	[AG_METRIC_PRECISION_WEIGHTED] = {"precision_weighted", NULL, CLASSES, true, 0},
	[AG_METRIC_RECALL_MACRO] = {"recall_macro", NULL, CLASSES, true, 0},
	[AG_METRIC_RECALL_MICRO] = {"recall_micro", NULL, CLASSES, true, 0},
	[AG_METRIC_RECALL_WEIGHTED] = {"recall_weighted", NULL, CLASSES, true, 0},
	[AG_METRIC_QUADRATIC_KAPPA] = {"quadratic_kappa", NULL, CLASSES, true, 0},
	[AG_METRIC_PAC] = {"pac", "pac_score", CLASSES, true, PROBABILITIES},
	[AG_METRIC_RMSE] = {"root_mean_squared_error", "rmse", REGRESSION, false, 0},
	[AG_METRIC_MSE] = {"mean_squared_error", "mse", REGRESSION, false, 0},
	[AG_METRIC_MAE] = {"mean_absolute_error", "mae", REGRESSION, false, 0},
	[AG_METRIC_MEDAE] = {"median_absolute_error", "medae", REGRESSION, false, 0},
	[AG_METRIC_MAPE] = {"mean_absolute_percentage_error", "mape", REGRESSION, false, 0},
	[AG_METRIC_SMAPE] = {"symmetric_mean_absolute_percentage_error", "smape", REGRESSION, false, 0},
	[AG_METRIC_R2] = {"r2", NULL, REGRESSION, true, 0},
	[AG_METRIC_PEARSONR] = {"pearsonr", NULL, REGRESSION, true, 0},
	[AG_METRIC_SPEARMANR] = {"spearmanr", NULL, REGRESSION, true, 0},
	[AG_METRIC_PINBALL_LOSS] = {"pinball_loss", "pinball", QUANTILE, false, 0},
};

static bool
known(AgMetric metric)
{
	return (int) metric > AG_METRIC_NONE && metric < AG_METRIC_LAST;
}

const char *
ag_metric_name(AgMetric metric)
{
	return known(metric) ? facts[metric].name : NULL;
}

AgMetric
ag_metric_by_name(const char *name)
{
	for (int m = AG_METRIC_NONE + 1; m < AG_METRIC_LAST; m++)
		if (strcmp(facts[m].name, name) == 0 ||
			(facts[m].alias != NULL && strcmp(facts[m].alias, name) == 0))
			return (AgMetric) m;
	return AG_METRIC_NONE;
}

bool
ag_metric_fits(AgMetric metric, AgProblem problem)
{
	unsigned mask = problem == AG_PROBLEM_BINARY       ? BINARY
					: problem == AG_PROBLEM_MULTICLASS ? MULTICLASS
					: problem == AG_PROBLEM_REGRESSION ? REGRESSION
					: problem == AG_PROBLEM_QUANTILE   ? QUANTILE
													   : 0;

	return known(metric) && (facts[metric].problems & mask) != 0;
}

bool
ag_metric_higher_is_better(AgMetric metric)
{
	return known(metric) && facts[metric].higher_is_better;
}

bool
ag_metric_needs_probabilities(AgMetric metric)
{
	return known(metric) && (facts[metric].kind & PROBABILITIES) != 0;
}

bool
ag_metric_is_ranking(AgMetric metric)
{
	return known(metric) && (facts[metric].kind & RANKING) != 0;
}

bool
ag_metric_goes_by_class(AgMetric metric)
{
	return known(metric) && (facts[metric].kind & BY_CLASS) != 0;
}

AgMetric
ag_metric_default(AgProblem problem)
{
	switch (problem)
	{
		case AG_PROBLEM_BINARY:
		case AG_PROBLEM_MULTICLASS:
			return AG_METRIC_ACCURACY;
		case AG_PROBLEM_REGRESSION:
			return AG_METRIC_RMSE;
		case AG_PROBLEM_QUANTILE:
			return AG_METRIC_PINBALL_LOSS;
		default:
			return AG_METRIC_NONE;
	}
}

int
ag_metric_list(AgProblem problem, AgMetric eval_metric, AgMetric *list)
{
	int n = 0;

	if (ag_metric_fits(eval_metric, problem))
		list[n++] = eval_metric;
	for (int m = AG_METRIC_NONE + 1; m < AG_METRIC_LAST; m++)
		if (m != (int) eval_metric && ag_metric_fits((AgMetric) m, problem))
			list[n++] = (AgMetric) m;
	return n;
}

double
ag_metric_score(AgMetric metric, double value)
{
	/* 0 - value, for an error of 0 must not become -0 */
	return ag_metric_higher_is_better(metric) ? value : 0.0 - value;
}
