/*
 * fit_infer.c - models that are too slow at prediction: what predicts may take infer_limit seconds a row.
 *
 * What counts is the models' own time, one row at a time on one CPU, measured when they were fitted. A bag that will be
 * replaced by one model on all rows takes a child's time.
 */
#include <math.h>

#include "engine/search/fit_state.h"

/* AutoGluon's margins: of what an ensemble may take, and of what is left to models that look at others. */
#define ENSEMBLE_SHARE 0.95
#define BASE_SHARE 0.8

static double
own_seconds(const AgFit *fit, const AgFitModel *model)
{
	bool refits = fit->options->refit_full != AG_REFIT_NONE && fit->options->set_best_to_refit_full;
	double seconds = model->predict_seconds / (double) fit->validation.n_scored;

	return refits && model->n_children > 0 ? seconds / model->n_children : seconds;
}

/* Of the marked models together. */
static double
seconds_of(const AgFit *fit, const bool *marked)
{
	double seconds = 0.0;

	for (int i = 0; i < fit->n_models; i++)
		if (marked[i])
			seconds += own_seconds(fit, &fit->models[i]);
	return seconds;
}

/* All models that aren't too slow, and what they look at. */
static double
seconds_together(const AgFit *fit, int only, bool *marked)
{
	for (int i = 0; i < fit->n_models; i++)
		marked[i] = false;
	for (int i = 0; i < fit->n_models; i++)
		if (only >= 0 ? i == only : !fit->models[i].is_slow)
			ag_fit_mark(fit, i, marked);
	return seconds_of(fit, marked);
}

/* The worst that is still in; -1: none is. */
static int
worst_model(const AgFit *fit)
{
	double score = 0.0, worst_score = 0.0;
	int worst = -1;

	for (int i = 0; i < fit->n_models; i++)
	{
		if (fit->models[i].is_slow)
			continue;
		score = ag_metric_score(fit->metric, fit->models[i].value);
		if (worst < 0 || isnan(score) || score < worst_score)
		{
			worst = i;
			worst_score = score;
		}
	}
	return worst;
}

static AgStatus
none_is_quick(AgFit *fit, double quickest)
{
	ag_error_set(fit->ctx.error, AG_ERR_OPTION,
				 "no model predicts a row within the \"infer_limit\" of %.3g s",
				 fit->options->infer_limit);
	ag_error_hint(
		fit->ctx.error,
		"The quickest takes %.3g s. Raise the limit, or name quicker models in "
		"\"hyperparameters\"; \"refit_full\" with \"set_best_to_refit_full\" makes one model "
		"of each bag.",
		quickest);
	return AG_ERR_OPTION;
}

/* Those of the fit that is repeated: it was measured there. */
static AgStatus
slow_repeat(AgFit *fit)
{
	for (int i = 0; i < fit->n_models; i++)
		fit->models[i].is_slow = ag_replay_find(fit->options, fit->models[i].name)->is_slow;
	return AG_OK;
}

AgStatus
ag_fit_drop_slow(AgFit *fit)
{
	double limit = fit->options->infer_limit * ENSEMBLE_SHARE, quickest = (double) INFINITY;
	bool *marked;
	int n_slow = 0, n_quick = 0;

	if (isnan(limit))
		return AG_OK;
	if (fit->validation.n_scored == 0)
		return ag_error_set(fit->ctx.error, AG_ERR_OPTION,
							"\"infer_limit\" needs validation rows to be measured on");
	if (fit->options->replay != NULL)
		return slow_repeat(fit);
	marked = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *marked);
	if (marked == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models, fit->ctx.error);
	for (int i = 0; i < fit->n_models; i++)
	{
		double seconds = seconds_together(fit, i, marked);

		fit->models[i].is_slow = seconds > limit;
		n_quick += !fit->models[i].is_slow;
		quickest = seconds < quickest ? seconds : quickest;
	}
	if (n_quick == 0)
		return none_is_quick(fit, quickest);
	while (n_quick > 1 && seconds_together(fit, -1, marked) > limit)
	{
		fit->models[worst_model(fit)].is_slow = true;
		n_quick--;
	}
	for (int i = 0; i < fit->n_models; i++)
		n_slow += fit->models[i].is_slow;
	if (n_slow > 0)
		ag_log(
			&fit->ctx, AG_LOG_NORMAL,
			"%d of %d models are left out of the ensemble to keep the \"infer_limit\" of %.3g s a "
			"row",
			n_slow, fit->n_models, fit->options->infer_limit);
	return AG_OK;
}

/* The inputs are in the order of their scores. */
int
ag_fit_quick_inputs(const AgFit *fit, const int *inputs, int n)
{
	double seconds = 0.0;

	if (isnan(fit->options->infer_limit) || fit->options->replay != NULL)
		return n;
	for (int i = 0; i < n; i++)
	{
		seconds += own_seconds(fit, &fit->models[inputs[i]]);
		if (seconds > fit->options->infer_limit * BASE_SHARE)
			return i;
	}
	return n;
}
