/*
 * fit_ensemble.c - weighted means of the fitted models, and which model is the best.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/ensemble.h"
#include "engine/search/fit_state.h"

/* What a model that may not be chosen predicts: NULL where all may. */
AgStatus
ag_fit_never(const AgFit *fit, const AgContext *ctx, double **never)
{
	int64_t n = fit->validation.n_scored * ag_fit_width(fit);
	bool any = false;

	*never = NULL;
	for (int i = 0; i < fit->n_models; i++)
		any = any || fit->models[i].is_slow;
	if (!any)
		return AG_OK;
	AG_TRY(ag_get(ctx, (size_t) n, sizeof **never, never));
	for (int64_t i = 0; i < n; i++)
		(*never)[i] = (double) NAN;
	return AG_OK;
}

static AgStatus
ensemble_begin(AgFit *fit, AgFitEnsemble *ensemble, const double *never,
			   const double ***predictions)
{
	size_t n = (size_t) fit->n_models;

	memset(ensemble, 0, sizeof *ensemble);
	ensemble->level = fit->level + 1;
	ensemble->n_models = fit->n_models;
	ensemble->value = (double) NAN;
	snprintf(ensemble->name, sizeof ensemble->name, "WeightedEnsemble_L%d", ensemble->level);
	ensemble->weights = ag_arena_alloc(&fit->arena, n, sizeof *ensemble->weights);
	*predictions = ag_arena_alloc(&fit->arena, n, sizeof **predictions);
	if (*predictions == NULL || ensemble->weights == NULL)
		return ag_mem_error(fit->ctx.mem, n * sizeof(double), fit->ctx.error);
	for (int i = 0; i < fit->n_models; i++)
		(*predictions)[i] = fit->models[i].is_slow ? never : fit->models[i].proba;
	return AG_OK;
}

static void
ensemble_tell(AgFit *fit, const AgFitEnsemble *ensemble)
{
	for (int i = 0; i < ensemble->n_models; i++)
		if (ensemble->weights[i] > 0.0)
			ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f  %s", ensemble->weights[i],
				   fit->models[i].name);
	if (isfinite(ensemble->value))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s",
			   ag_metric_score(fit->metric, ensemble->value), ag_metric_name(fit->metric));
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to weigh", ensemble->seconds);
}

/* As the fit that is repeated had it, where time cut it short there. */
static bool
ensemble_repeat(const AgFit *fit, AgFitEnsemble *ensemble)
{
	const AgReplayEnsemble *replayed = ag_replay_ensemble(fit->options, ensemble->name);

	if (replayed == NULL || replayed->n_weights != ensemble->n_models)
		return false;
	memcpy(ensemble->weights, replayed->weights, (size_t) ensemble->n_models * sizeof(double));
	ensemble->value = replayed->value;
	ensemble->single_value = replayed->single_value;
	ensemble->is_cut = true;
	return true;
}

/* Of models that are only trained once more: the weights are known, and of those that failed the others have a share. */
static AgStatus
ensemble_refit(AgFit *fit)
{
	const AgReplay *replay = fit->options->replay;
	AgFitEnsemble *ensemble = &fit->ensembles[0];
	size_t n = (size_t) fit->n_models;
	double sum = 0.0;

	for (int i = 0; i < fit->n_models; i++)
		if (strcmp(fit->models[i].name, replay->best) == 0)
			fit->best_known = replay->best;
	if (replay->n_ensembles == 0)
		return AG_OK;
	memset(ensemble, 0, sizeof *ensemble);
	ensemble->weights = ag_arena_alloc(&fit->arena, n, sizeof *ensemble->weights);
	if (ensemble->weights == NULL)
		return ag_mem_error(fit->ctx.mem, n * sizeof(double), fit->ctx.error);
	for (int i = 0; i < fit->n_models; i++)
		for (int k = 0; k < replay->n_models; k++)
			if (strcmp(replay->models[k].name, fit->models[i].name) == 0)
				sum += ensemble->weights[i] = replay->ensembles[0].weights[k];
	if (!(sum > 0.0))
		return AG_OK;
	for (int i = 0; i < fit->n_models && n < (size_t) replay->n_models; i++)
		ensemble->weights[i] /= sum;
	snprintf(ensemble->name, sizeof ensemble->name, "%s", replay->ensembles[0].name);
	ensemble->level = fit->level + 1;
	ensemble->n_models = fit->n_models;
	ensemble->value = ensemble->single_value = (double) NAN;
	ensemble->is_cut = true; /* its weights are part of the plan */
	ensemble->fit_order = ++fit->n_fitted;
	fit->n_ensembles = 1;
	if (strcmp(ensemble->name, replay->best) == 0)
		fit->best_known = replay->best;
	return AG_OK;
}

AgStatus
ag_fit_ensemble(AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	AgFitEnsemble *ensemble = &fit->ensembles[fit->n_ensembles];
	const double **predictions;
	int64_t began = ag_clock_ns();
	AgContext ctx = fit->ctx;
	AgTruth truth;
	double chosen_on, *never; /* chosen_on flatters: see fit_crossfit.c */
	AgStatus status;

	if (fit->options->replay != NULL && fit->options->replay->is_refit)
		return ensemble_refit(fit);
	if (!fit->options->fit_weighted_ensemble || fit->n_models < 2 || v->n_scored == 0 ||
		fit->models[fit->n_models - 1].level < fit->level)
		return AG_OK;
	AG_TRY(ag_fit_never(fit, &fit->ctx, &never));
	AG_GO(ensemble_begin(fit, ensemble, never, &predictions));
	ag_log(&fit->ctx, AG_LOG_NORMAL, "Weighing the models: %s ...", ensemble->name);
	/* The models may have used up their time to the last: weighing them is worth some of what is kept for storing. */
	if (fit->host->deadline_ns != INT64_MAX)
		ctx.deadline_ns =
			fit->ctx.deadline_ns + (fit->host->deadline_ns - fit->ctx.deadline_ns) / 3;
	truth = ag_fit_truth(fit, v->target, v->class_of, v->weight);
	if (!ensemble_repeat(fit, ensemble))
	{
		AG_GO(ag_ensemble_select(&ctx, fit->metric, &truth, v->n_scored, fit->n_models, predictions,
								 AG_ENSEMBLE_STEPS, ensemble->weights, &chosen_on));
		AG_GO(ag_fit_crossfit(fit, &ctx, &ensemble->value, &ensemble->single_value));
		ensemble->is_cut = ag_out_of_time(&ctx);
		if (ensemble->is_cut) /* what was chosen in a hurry says nothing of choosing */
			ensemble->single_value = (double) NAN;
	}
	ensemble->fit_order = ++fit->n_fitted;
	ensemble->seconds = ag_fit_seconds(began);
	fit->n_ensembles++;
	ensemble_tell(fit, ensemble);
done:
	ag_mem_free(fit->ctx.mem, never);
	return status;
}

const AgFitEnsemble *
ag_fit_find_ensemble(const AgFit *fit, const char *name)
{
	for (int e = 0; e < fit->n_ensembles; e++)
		if (strcmp(fit->ensembles[e].name, name) == 0)
			return &fit->ensembles[e];
	return NULL;
}

static int
count_members(const AgFitEnsemble *ensemble)
{
	int n = 0;

	for (int i = 0; i < ensemble->n_models; i++)
		n += ensemble->weights[i] > 0.0;
	return n;
}

/*
 * On the few rows of a holdout the best of many models is often so by luck, and an ensemble is the safer choice: by so much of its error
 * must picking one be better.
 */
#define SINGLE_MARGIN 0.05

/* Is the ensemble of that value to be preferred to the best single model, or to a lower ensemble, of that value? */
static bool
is_preferred(const AgFit *fit, double value, double other, bool other_is_single)
{
	double error = ag_metric_higher_is_better(fit->metric) ? 1.0 - other : other;
	double margin =
		other_is_single && fit->validation.n_folds == 0 ? SINGLE_MARGIN * fabs(error) : 0.0;

	return isnan(other) ||
		   ag_metric_score(fit->metric, value) > ag_metric_score(fit->metric, other) - margin;
}

/*
 * An ensemble that is one model, or clearly no better than picking one, only predicts slower. Which is judged on rows that neither was
 * chosen on; what is told of the model picked is its own score. Where time cut that short an ensemble is the safer choice.
 */
const char *
ag_fit_best_model(const AgFit *fit, double *value)
{
	const AgFitEnsemble *best_ensemble = NULL;
	int best = 0;

	*value = (double) NAN;
	if (fit->best_known != NULL)
		return fit->best_known;
	while (best + 1 < fit->n_models && fit->models[best].is_slow)
		best++;
	for (int i = best + 1; i < fit->n_models; i++)
		if (!fit->models[i].is_slow &&
			(ag_metric_score(fit->metric, fit->models[i].value) >
				 ag_metric_score(fit->metric, fit->models[best].value) ||
			 (isnan(fit->models[best].value) && !isnan(fit->models[i].value))))
			best = i;
	for (int e = 0; e < fit->n_ensembles; e++)
	{
		const AgFitEnsemble *ensemble = &fit->ensembles[e];
		/* the last one's has picked among all models */
		double single = fit->ensembles[fit->n_ensembles - 1].single_value;

		if (count_members(ensemble) < 2 || isnan(ensemble->value))
			continue;
		if (isnan(single))
			single = ensemble->single_value;
		if (best_ensemble != NULL)
			single = best_ensemble->value;
		if (is_preferred(fit, ensemble->value, single, best_ensemble == NULL))
			best_ensemble = ensemble;
	}
	*value = best_ensemble != NULL ? best_ensemble->value : fit->models[best].value;
	return best_ensemble != NULL ? best_ensemble->name : fit->models[best].name;
}

const char *
ag_fit_best(AgFit *fit, double *value)
{
	const char *name = ag_fit_best_model(fit, value);
	const AgFitEnsemble *ensemble = ag_fit_find_ensemble(fit, name);
	bool has_full = false, full_needed = false;
	char full[128];
	const char *copy;

	for (int i = 0; i < fit->n_models; i++)
		if (ensemble == NULL ? strcmp(fit->models[i].name, name) == 0
							 : i < ensemble->n_models && ensemble->weights[i] > 0.0)
		{
			has_full = has_full || fit->models[i].full.image != NULL;
			/* a bag whose children aren't stored can't predict; the model that replaces it can */
			full_needed = full_needed || (fit->models[i].is_bag && !ag_fit_keeps_children(fit, i));
		}
	if (!has_full || (!fit->options->set_best_to_refit_full && !full_needed))
		return name;
	snprintf(full, sizeof full, "%s_FULL", name);
	copy = ag_arena_strndup(&fit->arena, full, strlen(full));
	return copy != NULL ? copy : name;
}
