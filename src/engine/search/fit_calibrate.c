/*
 * fit_calibrate.c - what is made of the best model's probabilities at the end: brought to the right size by one temperature, and
 * the one of two classes called positive from the probability on that the metric likes best.
 *
 * Both are one number each, found on the out-of-fold predictions (without folds, on the rows held out).
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/heat.h"
#include "engine/search/fit_state.h"

/* AutoGluon's rules for "auto". */
#define LEAST_ROWS_BINARY 3000 /* for a temperature */
#define LEAST_ROWS_CLASSES 500
#define LEAST_ROWS_ACCURACY 10000 /* for a threshold */
#define LEAST_ROWS 50
#define COARSE 50 /* thresholds are tried in steps of 1 / COARSE, then finer around the best */
#define FINE 19
#define HOTTEST 10.0
#define SEARCH_STEPS 40
#define LEAST_GAIN 1e-6
#define TINY 1e-15

/* The best model's predictions of the scored rows; NULL where there are none of all rows. */
static AgStatus
best_predictions(AgFit *fit, double **proba)
{
	const AgValidation *v = &fit->validation;
	double value;
	const char *name = ag_fit_best_model(fit, &value);
	const AgFitEnsemble *ensemble = ag_fit_find_ensemble(fit, name);
	int64_t n = v->n_scored * ag_fit_width(fit);

	*proba = NULL;
	if (v->n_scored == 0 || isnan(value))
		return AG_OK;
	AG_TRY(ag_get_zeroed(&fit->ctx, (size_t) n, sizeof **proba, proba));
	for (int m = 0; m < fit->n_models; m++)
	{
		const AgFitModel *model = &fit->models[m];
		double weight = ensemble == NULL         ? strcmp(model->name, name) == 0
						: m < ensemble->n_models ? ensemble->weights[m]
												 : 0.0;

		if (weight > 0.0 && model->n_covered < v->n_scored)
		{
			ag_mem_free(fit->ctx.mem, *proba);
			*proba = NULL;
			return AG_OK;
		}
		for (int64_t i = 0; weight > 0.0 && i < n; i++)
			(*proba)[i] += weight * model->proba[i];
	}
	return AG_OK;
}

/* --- temperature */

/* The mean log-loss of the probabilities at a temperature. Guo, Pleiss, Sun and Weinberger 2017, section 4.2. */
static double
loss_at(const AgFit *fit, const double *proba, double temperature)
{
	const AgValidation *v = &fit->validation;
	int k = fit->label->n_classes;
	double sum = 0.0, weights = 0.0, row[AG_HEAT_CLASSES];

	for (int64_t i = 0; i < v->n_scored; i++)
	{
		double weight = v->weight != NULL ? v->weight[i] : 1.0;

		memcpy(row, proba + i * k, (size_t) k * sizeof *row);
		ag_heat(temperature, k, row);
		sum -= weight * ag_ln(fmax(row[v->class_of[i]], TINY));
		weights += weight;
	}
	return weights > 0.0 ? sum / weights : sum;
}

/* Golden section over the temperature's logarithm: the loss has one valley. */
static double
best_temperature(const AgFit *fit, const double *proba)
{
	double golden = 0.5 * (sqrt(5.0) - 1.0), low = -ag_ln(HOTTEST), high = ag_ln(HOTTEST);
	double left = high - golden * (high - low), right = low + golden * (high - low);
	double at_left = loss_at(fit, proba, ag_exp(left)),
		   at_right = loss_at(fit, proba, ag_exp(right));

	for (int step = 0; step < SEARCH_STEPS && !ag_out_of_time(&fit->ctx); step++)
		if (at_left < at_right)
		{
			high = right;
			right = left;
			at_right = at_left;
			left = high - golden * (high - low);
			at_left = loss_at(fit, proba, ag_exp(left));
		}
		else
		{
			low = left;
			left = right;
			at_left = at_right;
			right = low + golden * (high - low);
			at_right = loss_at(fit, proba, ag_exp(right));
		}
	return ag_exp(0.5 * (low + high));
}

static bool
wants_temperature(const AgFit *fit)
{
	const AgLabel *label = fit->label;
	int64_t n = fit->validation.n_scored;

	if (label->n_classes < 2 || label->n_classes > AG_HEAT_CLASSES ||
		fit->options->calibrate == AG_CALIBRATE_OFF)
		return false;
	if (fit->options->calibrate == AG_CALIBRATE_ON)
		return true;
	return ag_metric_needs_probabilities(fit->metric) && !ag_metric_is_ranking(fit->metric) &&
		   n >= (label->n_classes == 2 ? LEAST_ROWS_BINARY : LEAST_ROWS_CLASSES);
}

static void
temperature_find(AgFit *fit, double *proba)
{
	int k = fit->label->n_classes;
	double temperature = best_temperature(fit, proba), before = loss_at(fit, proba, 1.0);
	double after = loss_at(fit, proba, temperature);

	if (!(after < before - LEAST_GAIN))
		return;
	fit->temperature = temperature;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "Probabilities are calibrated by a temperature of %.3f: log_loss %.5g instead of %.5g",
		   temperature, -after, -before);
	for (int64_t i = 0; i < fit->validation.n_scored; i++)
		ag_heat(temperature, k, proba + i * k);
}

/* --- threshold */

static bool
wants_threshold(const AgFit *fit)
{
	int64_t n = fit->validation.n_scored;

	if (fit->label->problem != AG_PROBLEM_BINARY ||
		fit->options->calibrate_threshold == AG_CALIBRATE_OFF)
		return false;
	if (ag_metric_needs_probabilities(fit->metric))
	{
		if (fit->options->calibrate_threshold == AG_CALIBRATE_ON)
			ag_log(&fit->ctx, AG_LOG_NORMAL,
				   "\"calibrate_decision_threshold\" means nothing to %s, which looks at "
				   "probabilities",
				   ag_metric_name(fit->metric));
		return false;
	}
	if (fit->options->calibrate_threshold == AG_CALIBRATE_ON)
		return true;
	if (fit->metric == AG_METRIC_PRECISION || fit->metric == AG_METRIC_RECALL)
		return false; /* better and better, the fewer, or the more, are called positive */
	return n >= (fit->metric == AG_METRIC_ACCURACY ? LEAST_ROWS_ACCURACY : LEAST_ROWS);
}

typedef struct Search
{
	AgFit *fit;
	AgTruth truth;
	const double *proba;
	double best, best_score;
} Search;

/* Among equal ones the nearest to a half. */
static AgStatus
threshold_try(Search *search, double threshold)
{
	AgFit *fit = search->fit;
	double value, score;

	if (!(threshold > 0.0 && threshold < 1.0))
		return AG_OK;
	search->truth.threshold = threshold;
	AG_TRY(ag_metric_value(&fit->ctx, fit->metric, &search->truth, fit->validation.n_scored,
						   search->proba, &value));
	score = ag_metric_score(fit->metric, value);
	if (score > search->best_score ||
		(score == search->best_score && fabs(threshold - 0.5) < fabs(search->best - 0.5)))
	{
		search->best = threshold;
		search->best_score = score;
	}
	return AG_OK;
}

static AgStatus
threshold_find(AgFit *fit, const double *proba)
{
	const AgValidation *v = &fit->validation;
	Search search = {.fit = fit, .proba = proba, .best = 0.5};
	double half, around;

	search.truth = ag_fit_truth(fit, v->target, v->class_of, v->weight);
	search.truth.threshold = 0.5;
	AG_TRY(ag_metric_value(&fit->ctx, fit->metric, &search.truth, v->n_scored, proba, &half));
	half = search.best_score = ag_metric_score(fit->metric, half);
	for (int i = 0; i <= COARSE && !ag_out_of_time(&fit->ctx); i++)
		AG_TRY(threshold_try(&search, (double) i / COARSE));
	around = search.best;
	for (int i = -FINE; i <= FINE && !ag_out_of_time(&fit->ctx); i++)
		AG_TRY(threshold_try(&search, around + (double) i / (COARSE * (FINE + 1))));
	if (!(search.best_score > half) || search.best == 0.5)
		return AG_OK;
	fit->threshold = search.best;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "A row is called positive above a probability of %.4g: %s %.5g instead of %.5g",
		   search.best, ag_metric_name(fit->metric), search.best_score, half);
	return AG_OK;
}

AgStatus
ag_fit_calibrate(AgFit *fit)
{
	double *proba;
	AgStatus status = AG_OK;

	if (!wants_temperature(fit) && !wants_threshold(fit))
		return AG_OK;
	AG_TRY(best_predictions(fit, &proba));
	if (proba == NULL)
		return AG_OK;
	if (wants_temperature(fit))
		temperature_find(fit, proba);
	if (wants_threshold(fit))
		status = threshold_find(fit, proba);
	ag_mem_free(fit->ctx.mem, proba);
	return status;
}
