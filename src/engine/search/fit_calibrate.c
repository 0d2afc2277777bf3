/*
 * fit_calibrate.c - what is made of the best model's predictions at the end: probabilities brought to the right size by one
 * temperature, the one of two classes called positive from the probability on that the metric likes best, and quantiles moved until
 * as many rows lie below each as it says.
 *
 * All are a number each, found on the out-of-fold predictions (without folds, on the rows held out). Models that are fitted again on all rows
 * keep them, like the weights and the rounds: nothing is left that could be looked at without flattering.
 */
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/conformal.h"
#include "engine/model/heat.h"
#include "engine/model/rank.h"
#include "engine/search/fit_state.h"

/* AutoGluon's rules for "auto". */
#define LEAST_ROWS_BINARY 3000 /* for a temperature */
#define LEAST_ROWS_CLASSES 500
#define LEAST_ROWS_QUANTILES 1000
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

/* --- quantiles */

static bool
wants_shifts(const AgFit *fit)
{
	if (fit->label->n_quantiles == 0 || fit->options->calibrate == AG_CALIBRATE_OFF)
		return false;
	return fit->options->calibrate == AG_CALIBRATE_ON ||
		   fit->validation.n_scored >= LEAST_ROWS_QUANTILES;
}

/*
 * What a quantile has to be moved by. Of upper ones the least distance of a label that enough weight isn't above, with that of a
 * row to come on the other side; lower ones are upper ones of the negative. Romano, Patterson and Candes 2019, "Conformalized
 * quantile regression", theorem 2 (each side by itself); Tibshirani and others 2019 for weights. Where rows are too few to promise
 * the level, the farthest.
 */
static AgStatus
shift_find(AgFit *fit, const double *quantiles, int k, double *distance, double *shift)
{
	const AgValidation *v = &fit->validation;
	int n_levels = fit->label->n_quantiles;
	double level = fit->label->quantiles[k], sign = level < 0.5 ? -1.0 : 1.0;
	double total = 0.0, seen = 0.0;
	AgRanked *ranked;
	int64_t at = 0;
	bool has_nan;

	for (int64_t i = 0; i < v->n_scored; i++)
	{
		distance[i] = sign * (v->target[i] - quantiles[i * n_levels + k]);
		total += v->weight != NULL ? v->weight[i] : 1.0;
	}
	AG_TRY(ag_rank_rows(&fit->ctx, v->n_scored, distance, 1, &ranked, &has_nan));
	total += total / (double) v->n_scored;
	level = level < 0.5 ? 1.0 - level : level;
	for (;; at++)
	{
		seen += v->weight != NULL ? v->weight[ranked[at].row] : 1.0;
		if (seen >= level * total || at == v->n_scored - 1)
			break;
	}
	*shift = sign * distance[ranked[at].row];
	ag_mem_free(fit->ctx.mem, ranked);
	return AG_OK;
}

static AgStatus
shifts_find(AgFit *fit, double *quantiles)
{
	const AgValidation *v = &fit->validation;
	int n_levels = fit->label->n_quantiles;
	double *shifts = ag_arena_alloc(&fit->arena, (size_t) n_levels, sizeof *shifts);
	double *distance = NULL, before, after;
	AgStatus status;

	if (shifts == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) n_levels * sizeof *shifts, fit->ctx.error);
	AG_GO(ag_get(&fit->ctx, (size_t) v->n_scored, sizeof *distance, &distance));
	AG_GO(
		ag_fit_value(fit, &fit->ctx, v->n_scored, v->target, NULL, v->weight, quantiles, &before));
	for (int k = 0; k < n_levels; k++)
		AG_GO(shift_find(fit, quantiles, k, distance, &shifts[k]));
	for (int64_t i = 0; i < v->n_scored; i++)
		ag_quantiles_shift(n_levels, shifts, quantiles + i * n_levels);
	AG_GO(ag_fit_value(fit, &fit->ctx, v->n_scored, v->target, NULL, v->weight, quantiles, &after));
	fit->shifts = shifts;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "Quantiles are moved until as many rows lie below each as it says: %s %.5g instead of "
		   "%.5g",
		   ag_metric_name(fit->metric), ag_metric_score(fit->metric, after),
		   ag_metric_score(fit->metric, before));
done:
	ag_mem_free(fit->ctx.mem, distance);
	return status;
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

/* What was asked for and can't be had of this label. */
static void
useless_tell(const AgFit *fit)
{
	const AgLabel *label = fit->label;

	if (fit->options->calibrate == AG_CALIBRATE_ON && label->n_quantiles == 0 &&
		label->n_classes < 2)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "\"calibrate\" means nothing here: there are neither probabilities nor quantiles");
	if (fit->options->calibrate == AG_CALIBRATE_ON && label->n_classes > AG_HEAT_CLASSES)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "\"calibrate\" means nothing here: label \"%s\" has more than %d classes",
			   fit->job->label_name, AG_HEAT_CLASSES);
	if (fit->options->calibrate_threshold == AG_CALIBRATE_ON && label->problem != AG_PROBLEM_BINARY)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "\"calibrate_decision_threshold\" means nothing here: the problem type is %s, not "
			   "binary",
			   ag_problem_name(label->problem));
}

AgStatus
ag_fit_calibrate(AgFit *fit)
{
	const AgReplay *replay = fit->options->replay;
	double *proba;
	AgStatus status = AG_OK;

	if (replay != NULL && replay->is_refit)
	{
		fit->temperature = replay->temperature;
		fit->threshold = replay->threshold;
		fit->shifts = replay->n_shifts == fit->label->n_quantiles ? replay->shifts : NULL;
		return AG_OK;
	}
	useless_tell(fit);
	if (!wants_temperature(fit) && !wants_threshold(fit) && !wants_shifts(fit))
		return AG_OK;
	AG_TRY(best_predictions(fit, &proba));
	if (proba == NULL)
		return AG_OK;
	if (replay != NULL && replay->is_calibrated)
	{
		fit->temperature = replay->temperature;
		fit->threshold = replay->threshold;
	}
	else if (wants_temperature(fit))
		temperature_find(fit, proba);
	if (wants_shifts(fit))
		status = shifts_find(fit, proba);
	if (wants_threshold(fit) && (replay == NULL || !replay->is_calibrated))
		status = threshold_find(fit, proba);
	ag_mem_free(fit->ctx.mem, proba);
	return status;
}
