/*
 * fit_ensemble.c - the weighted mean of the fitted models, and which model is the best.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/ensemble.h"
#include "engine/search/fit_state.h"

AgStatus
ag_fit_ensemble(AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	const double **predictions;
	double *weights;
	int64_t began = ag_clock_ns();
	AgContext ctx = fit->ctx;
	AgTruth truth;

	if (!fit->options->fit_weighted_ensemble || fit->n_models < 2 || v->n_scored == 0)
		return AG_OK;
	predictions = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *predictions);
	weights = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *weights);
	if (predictions == NULL || weights == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models * sizeof *weights, fit->ctx.error);
	for (int i = 0; i < fit->n_models; i++)
		predictions[i] = fit->models[i].proba;
	ag_log(&fit->ctx, AG_LOG_NORMAL, "Weighing the models: WeightedEnsemble_L2 ...");
	/* The models may have used up their time to the last: weighing them is worth some of what is kept for storing. */
	if (fit->host->deadline_ns != INT64_MAX)
		ctx.deadline_ns =
			fit->ctx.deadline_ns + (fit->host->deadline_ns - fit->ctx.deadline_ns) / 3;
	truth = ag_fit_truth(fit, v->target, v->class_of);
	AG_TRY(ag_ensemble_select(&ctx, fit->metric, &truth, v->n_scored, fit->n_models, predictions,
							  AG_ENSEMBLE_STEPS, weights, &fit->ensemble_value));
	for (int i = 0; i < fit->n_models; i++)
		fit->models[i].weight = weights[i];
	fit->has_ensemble = true;
	fit->ensemble_seconds = ag_fit_seconds(began);
	for (int i = 0; i < fit->n_models; i++)
		if (weights[i] > 0.0)
			ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f  %s", weights[i], fit->models[i].name);
	if (isfinite(fit->ensemble_value))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s",
			   ag_metric_score(fit->metric, fit->ensemble_value), ag_metric_name(fit->metric));
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to weigh", fit->ensemble_seconds);
	return AG_OK;
}

/* An ensemble that is one model, or no better than one, only predicts slower. */
const char *
ag_fit_best_model(const AgFit *fit, double *value)
{
	int best = 0;

	for (int i = 1; i < fit->n_models; i++)
		if (ag_metric_score(fit->metric, fit->models[i].value) >
				ag_metric_score(fit->metric, fit->models[best].value) ||
			(isnan(fit->models[best].value) && !isnan(fit->models[i].value)))
			best = i;
	*value = fit->models[best].value;
	if (fit->has_ensemble &&
		ag_metric_score(fit->metric, fit->ensemble_value) > ag_metric_score(fit->metric, *value))
	{
		*value = fit->ensemble_value;
		return "WeightedEnsemble_L2";
	}
	return fit->models[best].name;
}

/* A bag whose children aren't stored can't predict; the model that replaces it can. */
static bool
needs_full(const AgFit *fit, const AgFitModel *model)
{
	return model->is_bag && !fit->options->save_bag_folds && model->full.image != NULL;
}

const char *
ag_fit_best(AgFit *fit, double *value)
{
	const char *name = ag_fit_best_model(fit, value);
	bool has_full = false, full_needed = false, is_single = false;
	char full[128];
	const char *copy;

	for (int i = 0; i < fit->n_models; i++)
		if (strcmp(fit->models[i].name, name) == 0)
		{
			is_single = true;
			has_full = fit->models[i].full.image != NULL;
			full_needed = needs_full(fit, &fit->models[i]);
		}
	for (int i = 0; i < fit->n_models && !is_single; i++)
		if (fit->models[i].weight > 0.0)
		{
			has_full = has_full || fit->models[i].full.image != NULL;
			full_needed = full_needed || needs_full(fit, &fit->models[i]);
		}
	if (!has_full || (!fit->options->set_best_to_refit_full && !full_needed))
		return name;
	snprintf(full, sizeof full, "%s_FULL", name);
	copy = ag_arena_strndup(&fit->arena, full, strlen(full));
	return copy != NULL ? copy : name;
}
