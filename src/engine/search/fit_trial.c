/*
 * fit_trial.c - does stacking help? A smaller fit on most of the rows, judged on those held back.
 *
 * Levels are scored on rows that nothing they learnt from has seen (fit_nested.c), so that the fit itself can tell. A trial tells
 * beforehand, for a part of the time, what it would come to on rows that have had no say in anything, not even in which models
 * and weights are the best (AutoGluon's DyStack does the like). Levels are used only where these rows show a gain, and at least
 * half of that which the folds promised.
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/stacked.h"
#include "engine/search/fit_state.h"

#define TRUSTED_SHARE 0.5 /* of a promised gain */
#define MOST_PARTS 50
#define TRIAL_SET 1000000 /* a deal like no set's */

/* Rows that no model has seen, and what models say of them. */
typedef struct Held
{
	AgFit *fit; /* the trial's */
	int64_t n;
	uint32_t *rows;
	double *target, *weight;
	int32_t *class_of;
	double **of_model; /* [n_models] NULL: not asked yet */
	double *mixed;
} Held;

/* Validation and test score of the best of some models and an ensemble. */
typedef struct Verdict
{
	double valid, test;
} Verdict;

bool
ag_fit_wants_trial(const AgFit *fit)
{
	return fit->n_levels > 1 && fit->options->dynamic_stacking == AG_DYNAMIC_ON;
}

/* --- rows held back */

/* One of so many equal parts of all rows is held back; the others are dealt to folds. */
static AgStatus
validation_make(const AgFit *fit, AgFit *trial)
{
	AgValidation *v = &trial->validation;
	int n_parts = (int) (1.0 / fit->options->trial_holdout_frac + 0.5);
	size_t n = (size_t) fit->n_rows;
	uint8_t *part_of = NULL;
	AgStatus status;

	n_parts = n_parts < 2 ? 2 : n_parts > MOST_PARTS ? MOST_PARTS : n_parts;
	memset(v, 0, sizeof *v);
	AG_GO(ag_get(&fit->ctx, n, 1, &part_of));
	AG_GO(ag_get(&fit->ctx, n, 1, &v->fold_of));
	AG_GO(ag_get(&fit->ctx, n, sizeof(uint32_t), &v->scored_rows));
	v->n_sets = 1;
	v->is_forward = fit->validation.is_forward;
	v->n_folds = n_parts;
	AG_GO(ag_fit_deal(trial, TRIAL_SET, part_of));
	v->n_folds = fit->validation.n_folds;
	AG_GO(ag_fit_deal(trial, 0, v->fold_of));
	for (size_t r = 0; r < n; r++)
	{
		if (part_of[r] == n_parts - 1) /* of parts in time, the latest */
			v->fold_of[r] = AG_FIT_HELD;
		else if (v->fold_of[r] != AG_FIT_NO_FOLD)
			v->scored_rows[v->n_scored++] = (uint32_t) r;
	}
	status = ag_fit_gather_labels(trial);
done:
	ag_mem_free(fit->ctx.mem, part_of);
	return status;
}

static AgStatus
held_open(Held *held)
{
	const AgFit *fit = held->fit;
	const AgContext *ctx = &fit->ctx;
	const AgLabel *label = fit->label;
	size_t n = (size_t) fit->n_rows;

	AG_TRY(ag_get(ctx, n, sizeof *held->rows, &held->rows));
	for (size_t r = 0; r < n; r++)
		if (fit->validation.fold_of[r] == AG_FIT_HELD)
			held->rows[held->n++] = (uint32_t) r;
	n = (size_t) held->n;
	AG_TRY(ag_get(ctx, n, (size_t) ag_fit_width(fit) * sizeof(double), &held->mixed));
	AG_TRY(ag_get_zeroed(ctx, (size_t) fit->n_models, sizeof *held->of_model, &held->of_model));
	if (fit->validation.weight != NULL)
		AG_TRY(ag_get(ctx, n, sizeof *held->weight, &held->weight));
	if (label->class_of != NULL)
		AG_TRY(ag_get(ctx, n, sizeof *held->class_of, &held->class_of));
	else
		AG_TRY(ag_get(ctx, n, sizeof *held->target, &held->target));
	for (size_t i = 0; i < n; i++)
	{
		if (held->weight != NULL)
			held->weight[i] = fit->weight[held->rows[i]];
		if (held->class_of != NULL)
			held->class_of[i] = label->class_of[held->rows[i]];
		else
			held->target[i] = label->target[held->rows[i]];
	}
	return AG_OK;
}

static void
held_close(Held *held)
{
	AgMem *mem = held->fit->ctx.mem;

	for (int i = 0; held->of_model != NULL && i < held->fit->n_models; i++)
		ag_mem_free(mem, held->of_model[i]);
	ag_mem_free(mem, held->of_model);
	ag_mem_free(mem, held->rows);
	ag_mem_free(mem, held->target);
	ag_mem_free(mem, held->weight);
	ag_mem_free(mem, held->class_of);
	ag_mem_free(mem, held->mixed);
}

/* As the stored bag would: what it looks at first, into the columns of its level. */
static AgStatus
model_predict(Held *held, int number)
{
	AgFit *fit = held->fit;
	const AgFitModel *model = &fit->models[number];
	const AgFitLevel *level = ag_fit_inputs(fit, model);
	int n_out = ag_fit_width(fit), width = ag_stack_width(fit->label->problem, n_out);

	if (held->of_model[number] != NULL)
		return AG_OK;
	for (int b = 0; level != NULL && b < level->n_inputs; b++)
	{
		const double *from;

		AG_TRY(model_predict(held, level->inputs[b]));
		from = held->of_model[level->inputs[b]] + ag_stack_first(fit->label->problem);
		for (int k = 0; k < width; k++)
			for (int64_t i = 0; i < held->n; i++)
				level->columns[(int64_t) (b * width + k) * fit->n_rows + held->rows[i]] =
					from[i * n_out + k];
	}
	AG_TRY(ag_get_zeroed(&fit->ctx, (size_t) held->n, (size_t) n_out * sizeof(double),
						 &held->of_model[number]));
	for (int c = 0; c < model->n_children; c++)
	{
		AG_TRY(ag_family_predict(&fit->ctx, ag_fit_rows(fit, model->level), &model->children[c],
								 held->rows, held->n, held->mixed));
		for (int64_t i = 0; i < held->n * n_out; i++)
			held->of_model[number][i] += held->mixed[i] / model->n_children;
	}
	return AG_OK;
}

/* --- the verdict */

/* Of models whose weights are given: what their mean is worth on the rows held back. */
static AgStatus
mean_value(Held *held, int n_models, const double *weights, double *value)
{
	AgFit *fit = held->fit;
	int64_t n = held->n * ag_fit_width(fit);

	for (int m = 0; m < n_models; m++)
		if (weights[m] > 0.0)
			AG_TRY(model_predict(held, m));
	memset(held->mixed, 0, (size_t) n * sizeof *held->mixed);
	for (int m = 0; m < n_models; m++)
	{
		if (!(weights[m] > 0.0))
			continue;
		for (int64_t i = 0; i < n; i++)
			held->mixed[i] += weights[m] * held->of_model[m][i];
	}
	return ag_fit_value(fit, &fit->ctx, held->n, held->target, held->class_of, held->weight,
						held->mixed, value);
}

/* The best by its validation score of the models of some levels, and of the ensembles of them. */
static AgStatus
levels_judge(Held *held, int first, int last, Verdict *verdict)
{
	AgFit *fit = held->fit;
	const AgFitEnsemble *ensemble = NULL;
	double *one, value;
	int best = -1;

	verdict->valid = verdict->test = (double) NAN;
	one = ag_arena_alloc(&fit->arena, (size_t) fit->n_models + 1, sizeof *one);
	if (one == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models * sizeof *one, fit->ctx.error);
	for (int i = 0; i < fit->n_models; i++)
	{
		double score = ag_metric_score(fit->metric, fit->models[i].value);

		if (fit->models[i].level >= first && fit->models[i].level <= last && !isnan(score) &&
			(best < 0 || score > verdict->valid))
		{
			best = i;
			verdict->valid = score;
		}
	}
	if (best < 0)
		return AG_OK;
	for (int e = 0; e < fit->n_ensembles; e++)
	{
		double score = ag_metric_score(fit->metric, fit->ensembles[e].value);

		if (fit->ensembles[e].level > first && fit->ensembles[e].level <= last + 1 &&
			score > verdict->valid)
		{
			ensemble = &fit->ensembles[e];
			verdict->valid = score;
		}
	}
	one[best] = 1.0;
	AG_TRY(mean_value(held, ensemble != NULL ? ensemble->n_models : fit->n_models,
					  ensemble != NULL ? ensemble->weights : one, &value));
	verdict->test = ag_metric_score(fit->metric, value);
	return AG_OK;
}

/* The levels to use after all. NaNs, where nothing was fitted in time or the metric is undefined, speak against more than one. */
static int
levels_decide(const AgFit *fit, const Verdict *first, const Verdict *above)
{
	double promised = above->valid - first->valid, seen = above->test - first->test;

	return seen > 0.0 && promised > 0.0 && seen >= TRUSTED_SHARE * promised ? fit->n_levels : 1;
}

static AgStatus
trial_judge(AgFit *fit, AgFit *trial)
{
	Held held = {.fit = trial};
	Verdict first = {(double) NAN, (double) NAN}, above = first;
	AgStatus status;

	AG_GO(held_open(&held));
	AG_GO(levels_judge(&held, 1, 1, &first));
	AG_GO(levels_judge(&held, 2, trial->n_levels, &above));
	if (isnan(above.test) || isnan(first.test))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  the levels could not be compared: no stacking");
	else
	{
		ag_log(
			&fit->ctx, AG_LOG_NORMAL,
			"  %.5g and, stacked, %.5g on the rows of the folds; %.5g and %.5g on rows held back",
			first.valid, above.valid, first.test, above.test);
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   levels_decide(fit, &first, &above) > 1
				   ? "  Stacking helps: it is used"
				   : "  Stacking does not help on rows held back as it seems to on those of the "
					 "folds: it is not used");
	}
	fit->n_levels = levels_decide(fit, &first, &above);
done:
	held_close(&held);
	return status;
}

/* Its own story isn't told, and what fails in it is no failure of the fit, but for the end of all. */
static AgStatus
trial_run(AgFit *fit, AgFit *trial, const AgContext *host)
{
	AgStatus status;

	trial->host = host;
	AG_GO(validation_make(fit, trial));
	AG_GO(ag_fit_models(trial));
	AG_GO(trial_judge(fit, trial));
done:
	fit->rows = trial->rows; /* the bins are the same */
	for (int i = 0; i < trial->n_models; i++)
		ag_fit_model_free(trial, &trial->models[i]);
	ag_fit_levels_free(trial);
	ag_validation_free(&trial->ctx, &trial->validation);
	ag_mem_free(trial->ctx.mem, trial->sample);
	ag_arena_free(&trial->arena);
	return status;
}

AgStatus
ag_fit_trial(AgFit *fit)
{
	AgContext host = fit->ctx;
	AgFit trial = *fit;
	int64_t began = ag_clock_ns();
	AgError error;
	AgStatus status;

	ag_error_init(&error);
	trial.ctx.log = NULL;
	trial.is_trial = true;
	trial.ctx.error = &error;
	if (fit->ctx.deadline_ns != INT64_MAX)
	{
		double left = -ag_fit_seconds(fit->ctx.deadline_ns);

		trial.ctx.deadline_ns = began + (int64_t) (left * fit->options->trial_time_frac * 1e9);
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Trying whether stacking helps ... at most %.1f s",
			   left * fit->options->trial_time_frac);
	}
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Trying whether stacking helps ...");
	ag_arena_init(&trial.arena, fit->ctx.mem);
	host = trial.ctx;
	fit->phase = "trying whether stacking helps";
	ag_progress(&fit->ctx, fit->phase, -1.0);
	status = trial_run(fit, &trial, &host);
	fit->phase = NULL;
	if (status == AG_ERR_CANCELLED)
		return ag_check_cancel(&fit->ctx);
	if (status != AG_OK)
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  the trial came to nothing (%s): no stacking",
			   error.message);
		fit->n_levels = 1;
	}
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to try", ag_fit_seconds(began));
	return AG_OK;
}
