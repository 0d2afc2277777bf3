#include <string.h>

#include "engine/model/metric.h"

#define BINARY 1u
#define MULTICLASS 2u
#define CLASSES (BINARY | MULTICLASS)
#define REGRESSION 4u

/* One row a metric, in the order of AgMetric. */
static const struct MetricFacts
{
	const char *name;
	const char *alias; /* or NULL */
	unsigned problems;
	bool higher_is_better;
} facts[AG_METRIC_LAST] = {
	[AG_METRIC_ACCURACY] = {"accuracy", "acc", CLASSES, true},
	[AG_METRIC_BALANCED_ACCURACY] = {"balanced_accuracy", NULL, CLASSES, true},
	[AG_METRIC_MCC] = {"mcc", NULL, CLASSES, true},
	[AG_METRIC_LOG_LOSS] = {"log_loss", "nll", CLASSES, false},
	[AG_METRIC_ROC_AUC] = {"roc_auc", NULL, BINARY, true},
	[AG_METRIC_F1] = {"f1", NULL, BINARY, true},
	[AG_METRIC_PRECISION] = {"precision", NULL, BINARY, true},
	[AG_METRIC_RECALL] = {"recall", NULL, BINARY, true},
	[AG_METRIC_F1_MACRO] = {"f1_macro", NULL, CLASSES, true},
	[AG_METRIC_F1_MICRO] = {"f1_micro", NULL, CLASSES, true},
	[AG_METRIC_F1_WEIGHTED] = {"f1_weighted", NULL, CLASSES, true},
	[AG_METRIC_AVERAGE_PRECISION] = {"average_precision", NULL, BINARY, true},
	[AG_METRIC_ROC_AUC_OVR_MACRO] = {"roc_auc_ovr_macro", "roc_auc_ovr", MULTICLASS, true},
	[AG_METRIC_RMSE] = {"root_mean_squared_error", "rmse", REGRESSION, false},
	[AG_METRIC_MSE] = {"mean_squared_error", "mse", REGRESSION, false},
	[AG_METRIC_MAE] = {"mean_absolute_error", "mae", REGRESSION, false},
	[AG_METRIC_MEDAE] = {"median_absolute_error", "medae", REGRESSION, false},
	[AG_METRIC_MAPE] = {"mean_absolute_percentage_error", "mape", REGRESSION, false},
	[AG_METRIC_SMAPE] = {"symmetric_mean_absolute_percentage_error", "smape", REGRESSION, false},
	[AG_METRIC_R2] = {"r2", NULL, REGRESSION, true},
	[AG_METRIC_PEARSONR] = {"pearsonr", NULL, REGRESSION, true},
	[AG_METRIC_SPEARMANR] = {"spearmanr", NULL, REGRESSION, true},
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
													   : 0;

	return known(metric) && (facts[metric].problems & mask) != 0;
}

bool
ag_metric_higher_is_better(AgMetric metric)
{
	return known(metric) && facts[metric].higher_is_better;
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
		default:
			return AG_METRIC_NONE;
	}
}

int
ag_metric_list(AgProblem problem, AgMetric eval_metric, AgMetric *list)
{
	static const AgMetric reported[] = {
		AG_METRIC_ACCURACY,  AG_METRIC_BALANCED_ACCURACY,
		AG_METRIC_MCC,       AG_METRIC_LOG_LOSS,
		AG_METRIC_ROC_AUC,   AG_METRIC_F1,
		AG_METRIC_PRECISION, AG_METRIC_RECALL,
		AG_METRIC_RMSE,      AG_METRIC_MSE,
		AG_METRIC_MAE,       AG_METRIC_R2,
		AG_METRIC_PEARSONR,  AG_METRIC_MEDAE,
	};
	int n = 0;

	if (ag_metric_fits(eval_metric, problem))
		list[n++] = eval_metric;
	for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++)
		if (reported[i] != eval_metric && ag_metric_fits(reported[i], problem))
			list[n++] = reported[i];
	return n;
}

double
ag_metric_score(AgMetric metric, double value)
{
	/* 0 - value, for an error of 0 must not become -0 */
	return ag_metric_higher_is_better(metric) ? value : 0.0 - value;
}
