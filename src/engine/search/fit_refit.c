/*
 * fit_refit.c - models fitted again on all rows, with the rounds that validation found.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/search/fit_state.h"

/* Of the time of a bag, what fitting one model on all rows takes: a fold's and a little more, without waiting for patience. */
#define REFIT_FOLDS 1.3
#define REFIT_SHARE 0.4 /* likewise of a model that wasn't bagged */
/* Of the time left, for each part of the rows that is held out, to train in place; what is less than so many rows isn't waited for. */
#define RETRAIN_SHARE 1.5
#define RETRAIN_MOST 0.5 /* of the time at most: models come first */
#define RETRAIN_FRACTION 0.09
#define RETRAIN_MOST_ROWS 50 /* to one that is held out: beyond, another training is not worth it */

/* Which models are fitted again. A preset's wish is worth nothing where hardly any rows were held out: the models have the time instead. */
AgRefit
ag_fit_refits(const AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	bool few = v->n_folds == 0 && v->split.n_valid > 0 &&
			   v->split.n_valid < fit->n_rows / RETRAIN_MOST_ROWS;

	return few && !fit->options->refit_said ? AG_REFIT_NONE : fit->options->refit_full;
}

/*
 * Are models that were validated on rows held out trained once more, with these rows, under their own names? Not where these are
 * tuning data: they may be of another kind than what predictions are wanted of.
 */
bool
ag_fit_retrains(const AgFit *fit)
{
	const AgValidation *v = &fit->validation;

	return fit->options->retrain_full && fit->options->refit_full == AG_REFIT_NONE &&
		   v->n_folds == 0 && v->split.n_valid > 0 && fit->is_tuning == NULL &&
		   v->split.n_valid >= fit->n_rows / RETRAIN_MOST_ROWS;
}

/* When the models have to be done, so that there is time to fit some of them again. */
int64_t
ag_fit_models_deadline(const AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	int64_t deadline = fit->ctx.deadline_ns, now = ag_clock_ns();
	double share = REFIT_SHARE, held = (double) v->split.n_valid / (double) fit->n_rows;

	if (ag_fit_retrains(fit))
		share = held >= RETRAIN_FRACTION ? fmin(held * RETRAIN_SHARE, RETRAIN_MOST) : 0.0;
	else if (ag_fit_refits(fit) == AG_REFIT_NONE)
		return deadline;
	if (deadline == INT64_MAX || deadline <= now)
		return deadline;
	if (v->n_folds > 0)
		share = REFIT_FOLDS / (v->n_folds * v->n_sets + REFIT_FOLDS);
	return deadline - (int64_t) ((double) (deadline - now) * share);
}

/* The mean of the rounds that the children kept, rounded; 0 for a family without rounds. */
static int
rounds_of(const AgFitModel *model)
{
	int64_t sum = 0;

	if (model->children[0].rounds < 0)
		return 0;
	for (int c = 0; c < model->n_children; c++)
		sum += model->children[c].rounds;
	sum = (sum + model->n_children / 2) / model->n_children;
	return sum > 0 ? (int) sum : 1;
}

double
ag_fit_refit_seconds(const AgFit *fit, const AgFitModel *model, int rounds)
{
	const AgValidation *v = &fit->validation;
	double seconds = 0.0, rows = (double) v->split.n_train;
	int64_t run = 0;

	if (model->is_out_of_bag)
		rows = (double) fit->n_rows;
	else if (v->n_folds > 0)
		rows = (double) fit->n_rows * (v->n_folds - 1) / v->n_folds;
	for (int c = 0; c < model->n_children; c++)
	{
		seconds += model->children[c].fit_seconds;
		run += model->children[c].rounds_run > 0 ? model->children[c].rounds_run : 0;
	}
	if (rounds > 0 && run > 0)
		seconds *= (double) rounds / (double) run;
	else
		seconds /= model->n_children;
	return seconds * (double) fit->n_rows / (rows > 0.0 ? rows : 1.0);
}

AgStatus
ag_fit_check_whole(const AgTrained *trained, int rounds, AgError *err)
{
	const char *ended_by = trained->ended_by != NULL ? trained->ended_by : "";
	int run = trained->rounds_run;

	if ((strcmp(ended_by, "time") != 0 && strcmp(ended_by, "memory") != 0) ||
		(rounds > 0 && run >= rounds))
		return AG_OK;
	if (strcmp(ended_by, "time") == 0)
		return AG_ERR_TIME;
	ag_error_set(err, AG_ERR_MEMORY, "the memory was full after %d of %d rounds", run, rounds);
	ag_error_hint(err, "Raise \"memory_limit\", or fit on fewer rows or columns.");
	return AG_ERR_MEMORY;
}

/* Cut short by time or memory it would be worse than the model there is: then it goes again. */
static AgStatus
refit_check(AgFit *fit, AgFitModel *model, int rounds, AgError *err)
{
	AgStatus status = ag_fit_check_whole(&model->full, rounds, err);

	if (status != AG_OK)
		ag_trained_free(&fit->ctx, &model->full);
	return status;
}

/* Only what predicts changes: rounds, curve and score stay those of the training that was watched. */
static void
image_replace(AgFit *fit, AgFitModel *model)
{
	AgTrained *watched = &model->children[0];

	ag_mem_free(fit->ctx.mem, watched->image);
	watched->image = model->full.image;
	watched->n_image = model->full.n_image;
	model->full.image = NULL;
	model->fit_seconds += model->full.fit_seconds;
	model->has_all_rows = true;
	ag_trained_free(&fit->ctx, &model->full);
	memset(&model->full, 0, sizeof model->full);
}

/* Whatever goes wrong leaves the model as it was; only a cancelled fit ends. */
static AgStatus
model_refit(AgFit *fit, const AgSplit *all, AgFitModel *model)
{
	AgContext ctx = fit->ctx;
	AgError err;
	int rounds = rounds_of(model);
	double expected = ag_fit_refit_seconds(fit, model, rounds);
	const char *suffix = ag_fit_retrains(fit) ? "" : "_FULL";
	char phase[128];
	AgStatus status;

	if (fit->options->replay != NULL && !ag_replay_find(fit->options, model->name)->is_full)
		return AG_OK;
	if (fit->ctx.deadline_ns != INT64_MAX && expected > -ag_fit_seconds(fit->ctx.deadline_ns))
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  no time left to fit %s again", model->name);
		return AG_OK;
	}
	ag_error_init(&err);
	ctx.error = &err;
	snprintf(phase, sizeof phase, "fitting %s%s%s", model->name, suffix,
			 *suffix == '\0' ? " again" : "");
	fit->phase = phase;
	ag_progress(&fit->ctx, phase, 0.0);
	status = ag_fit_train(fit, &ctx, all, model, rounds, &model->full);
	fit->phase = NULL;
	if (status == AG_ERR_CANCELLED)
	{
		if (fit->ctx.error != NULL && fit->ctx.error->status == AG_OK)
			*fit->ctx.error = err;
		return status;
	}
	if (status == AG_OK)
		status = refit_check(fit, model, rounds, &err);
	if (status == AG_ERR_TIME)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  no time left to fit %s again", model->name);
	else if (status != AG_OK)
		ag_log_hint(&fit->ctx, AG_LOG_WARNING, err.hint[0] != '\0' ? err.hint : NULL,
					"model %s was not fitted again: %s", model->name, err.message);
	else if (rounds > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  for %s%s (%d rounds)", model->full.fit_seconds,
			   model->name, suffix, model->full.rounds_run);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  for %s%s", model->full.fit_seconds, model->name,
			   suffix);
	if (status == AG_OK && model->full.warns && (*suffix != '\0' || !model->children[0].warns))
		ag_log(&fit->ctx, AG_LOG_WARNING, "model %s%s: %s", model->name, suffix, model->full.note);
	if (status == AG_OK && *suffix == '\0')
		image_replace(fit, model);
	return AG_OK;
}

/* How much depends on each model: its weight in the best ensemble, and that of the models that look at it. */
void
ag_fit_weights(const AgFit *fit, const char *best, double *weights)
{
	const AgFitEnsemble *ensemble = ag_fit_find_ensemble(fit, best);

	for (int i = 0; i < fit->n_models; i++)
		weights[i] = ensemble == NULL         ? strcmp(fit->models[i].name, best) == 0
					 : i < ensemble->n_models ? ensemble->weights[i]
											  : 0.0;
	for (int i = fit->n_models - 1; i >= 0; i--)
	{
		const AgFitLevel *level = ag_fit_inputs(fit, &fit->models[i]);

		for (int k = 0; level != NULL && k < level->n_inputs; k++)
			weights[level->inputs[k]] += weights[i];
	}
}

/* The one with the largest weight that is not done yet; those without weight after all others, in their order. */
static int
next_model(const AgFit *fit, const double *weights, const bool *done)
{
	int best = -1;

	for (int i = 0; i < fit->n_models; i++)
		if (!done[i] && (best < 0 || weights[i] > weights[best]))
			best = i;
	return best;
}

/* What waits, half of the model at hand included: its rounds are told, but not what they are a part of. */
static void
count_refits(const AgFit *fit, const double *weights, const bool *done, int at, AgOutlook *left)
{
	memset(left, 0, sizeof *left);
	for (int i = 0; i < fit->n_models; i++)
	{
		AgFamilyId family = fit->models[i].config->family->id;

		if (!done[i] && (ag_fit_refits(fit) != AG_REFIT_BEST || weights[i] > 0.0))
			ag_outlook_waits(left, family, ag_outlook_units(family) * (i == at ? 0.5 : 1.0));
	}
}

static AgStatus
refit_all(AgFit *fit, const AgSplit *all)
{
	double value;
	AgOutlook left;
	AgStatus status;
	const char *best = ag_fit_best_model(fit, &value);
	bool *done = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *done);
	double *weights = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *weights);

	if (done == NULL || weights == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models * sizeof *weights, fit->ctx.error);
	ag_fit_weights(fit, best, weights);
	for (int n = 0; n < fit->n_models; n++)
	{
		int i = next_model(fit, weights, done);

		if (i < 0 || (ag_fit_refits(fit) != AG_REFIT_ALL && !(weights[i] > 0.0)))
			break;
		AG_TRY(ag_check_cancel(&fit->ctx));
		count_refits(fit, weights, done, i, &left);
		fit->refits_left = &left;
		status = model_refit(fit, all, &fit->models[i]);
		fit->refits_left = NULL;
		AG_TRY(status);
		done[i] = true;
	}
	return AG_OK;
}

AgStatus
ag_fit_refit(AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	AgSplit all;
	AgStatus status;

	if (ag_fit_refits(fit) == AG_REFIT_NONE && !ag_fit_retrains(fit))
	{
		if (fit->options->refit_full != AG_REFIT_NONE)
			ag_log(&fit->ctx, AG_LOG_NORMAL,
				   "None of the models is fitted again: only %lld of %lld rows were held out",
				   (long long) v->split.n_valid, (long long) fit->n_rows);
		return AG_OK;
	}
	if (v->n_folds == 0 && v->split.n_valid == 0)
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "The models have all rows already: none is fitted again");
		return AG_OK;
	}
	memset(&all, 0, sizeof all);
	all.number = ag_fit_all_rows_number(fit);
	AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof *all.train_rows, &all.train_rows));
	for (int64_t r = 0; r < fit->n_rows; r++)
		all.train_rows[all.n_train++] = (uint32_t) r;
	ag_log(&fit->ctx, AG_LOG_NORMAL, "Fitting models again, on all %lld rows ...",
		   (long long) fit->n_rows);
	status = refit_all(fit, &all);
	ag_mem_free(fit->ctx.mem, all.train_rows);
	return status;
}
