/*
 * fit_levels.c - stacking: models of a higher level have the out-of-fold predictions of the level below among their features.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/stacked.h"
#include "engine/search/fit_state.h"

#define LEAST_ROWS 750    /* fewer are not stacked unless asked for: AutoGluon's rule */
#define MOST_COLUMNS 2000 /* that a level adds to the features */
#define MOST_OF_A_FAMILY 12

/* AutoGluon's rule: how many models of one family a stacker looks at. */
static int
most_of_family(const AgFit *fit)
{
	int64_t n = fit->n_rows;

	if (fit->options->max_base_models_per_type >= 0)
		return fit->options->max_base_models_per_type > 0 ? fit->options->max_base_models_per_type
														  : AG_MAX_MODELS;
	if (n < 10000)
		return n < 1000 ? 1 : n < 5000 ? 2 : 3;
	return n >= 50000 ? MOST_OF_A_FAMILY : (int) (4 + (n - 10000) / 5000);
}

int
ag_levels_at_most(const AgFitOptions *options, int64_t n_rows)
{
	if (ag_folds_asked(options, n_rows) == 0)
		return 1;
	if (options->num_stack_levels >= 0)
		return 1 + options->num_stack_levels;
	if (options->dynamic_stacking == AG_DYNAMIC_ON)
		return 2;
	return options->auto_stack && n_rows >= LEAST_ROWS ? 2 : 1;
}

/* A level's models are fitted without as many folds as there are levels from there on: see fit_nested.c. */
static int
levels_honest(const AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	int most = v->n_folds > 2 ? v->n_folds - 1 : 1;

	return v->is_held_out || v->is_forward ? INT_MAX : most;
}

/* Of levels that were asked for by number it is a warning, which ag_info keeps. */
static void
too_many_tell(AgFit *fit, int most)
{
	static const char text[] = "%d levels are too many for %d folds: %d instead";
	char hint[128];

	snprintf(hint, sizeof hint, "So many levels take a \"num_bag_folds\" of at least %d.",
			 fit->n_levels + 1);
	if (fit->options->num_stack_levels > 0)
		ag_log_hint(&fit->ctx, AG_LOG_WARNING, hint, text, fit->n_levels, fit->validation.n_folds,
					most);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, text, fit->n_levels, fit->validation.n_folds, most);
}

AgStatus
ag_fit_plan_levels(AgFit *fit)
{
	const AgFitOptions *options = fit->options;
	int asked = options->num_stack_levels, most;

	fit->n_levels = 1;
	if (fit->validation.n_folds == 0)
	{
		if (asked > 0)
			ag_log(&fit->ctx, AG_LOG_NORMAL, "Models are not stacked, for they are not bagged");
		return AG_OK;
	}
	if ((asked > 0 || options->dynamic_stacking == AG_DYNAMIC_ON) && ag_fit_is_monotone(fit))
		return ag_error_set(fit->ctx.error, AG_ERR_OPTION,
							"monotone constraints do not go with \"%s\"",
							asked > 0 ? "num_stack_levels" : "dynamic_stacking");
	if (asked >= 0)
		fit->n_levels += asked;
	else if (ag_fit_is_monotone(fit) || fit->validation.is_held_out)
		fit->n_levels = 1;
	else if (options->dynamic_stacking == AG_DYNAMIC_ON)
		fit->n_levels++;
	else if (options->auto_stack && fit->n_rows >= LEAST_ROWS &&
			 fit->promised_seconds >= AG_FIT_SHORT_SECONDS &&
			 (options->dynamic_stacking != AG_DYNAMIC_OFF ||
			  fit->label->problem != AG_PROBLEM_BINARY))
		fit->n_levels++;
	most = levels_honest(fit);
	if (fit->n_levels > most)
	{
		too_many_tell(fit, most);
		fit->n_levels = most;
	}
	if (fit->n_levels > 1)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are stacked: those of level 2%s learn from the predictions of the level "
			   "below, too",
			   fit->n_levels > 2 ? " and above" : "");
	return AG_OK;
}

AgFitRows *
ag_fit_rows(AgFit *fit, int level)
{
	return level == 1 ? &fit->rows : &fit->levels[level - 1].rows;
}

const AgFitLevel *
ag_fit_inputs(const AgFit *fit, const AgFitModel *model)
{
	return model->level == 1 ? NULL : &fit->levels[model->level - 1];
}

void
ag_fit_mark(const AgFit *fit, int model, bool *marked)
{
	const AgFitLevel *level = ag_fit_inputs(fit, &fit->models[model]);

	if (marked[model])
		return;
	marked[model] = true;
	for (int i = 0; level != NULL && i < level->n_inputs; i++)
		ag_fit_mark(fit, level->inputs[i], marked);
}

/* A bag that was fitted again may go, unless a model that was not looks at it. */
bool
ag_fit_keeps_children(const AgFit *fit, int model)
{
	const AgFitModel *bag = &fit->models[model];

	if (fit->options->save_bag_folds || bag->full.image == NULL)
		return true;
	for (int i = model + 1; i < fit->n_models; i++)
	{
		const AgFitLevel *level = ag_fit_inputs(fit, &fit->models[i]);

		for (int k = 0; level != NULL && k < level->n_inputs; k++)
			if (level->inputs[k] == model && ag_fit_keeps_children(fit, i))
				return true;
	}
	return false;
}

/* --- what a level stands on */

typedef struct Base
{
	int model;
	double score;
} Base;

/* The best first, the first fitted among equals. */
static int
by_score(const void *left, const void *right)
{
	const Base *a = left, *b = right;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return a->model < b->model ? -1 : 1;
}

static int
by_number(const void *left, const void *right)
{
	const int *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static bool
is_base(const AgFit *fit, const AgFitModel *model)
{
	return model->level == fit->level - 1 && !model->config->never_base && model->proba != NULL &&
		   model->n_covered == fit->validation.n_scored;
}

/* The best of each family, as many as its share; in the order in which they were fitted. */
static AgStatus
inputs_choose(AgFit *fit, AgFitLevel *level)
{
	int n_of[AG_FAMILY_LAST] = {0}, n_bases = 0, most = most_of_family(fit);
	int width = ag_stack_width(fit->label->problem, ag_fit_width(fit));
	int most_in_all = fit->options->max_base_models;
	Base *bases;

	if (most_in_all == 0 || most_in_all > MOST_COLUMNS / width)
		most_in_all = MOST_COLUMNS / width > 0 ? MOST_COLUMNS / width : 1;
	level->n_inputs = 0;
	level->inputs = ag_arena_alloc(&fit->arena, (size_t) fit->n_models + 1, sizeof(int));
	if (level->inputs == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models * sizeof(int), fit->ctx.error);
	AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_models, sizeof *bases, &bases));
	for (int i = 0; i < fit->n_models; i++)
	{
		double score = ag_metric_score(fit->metric, fit->models[i].value);

		if (is_base(fit, &fit->models[i]))
			bases[n_bases++] = (Base){i, isnan(score) ? -(double) INFINITY : score};
	}
	qsort(bases, (size_t) n_bases, sizeof *bases, by_score);
	for (int i = 0; i < n_bases && level->n_inputs < most_in_all; i++)
		if (n_of[fit->models[bases[i].model].config->family->id]++ < most)
			level->inputs[level->n_inputs++] = bases[i].model;
	level->n_inputs = ag_fit_quick_inputs(fit, level->inputs, level->n_inputs);
	ag_mem_free(fit->ctx.mem, bases);
	return AG_OK;
}

/* Those that the repeated fit had. */
static void
inputs_repeat(const AgFit *fit, AgFitLevel *level)
{
	int n = 0;

	for (int i = 0; i < level->n_inputs; i++)
		if (ag_replay_has_input(fit->options, fit->level, fit->models[level->inputs[i]].name))
			level->inputs[n++] = level->inputs[i];
	level->n_inputs = n;
}

/* Rows without an out-of-fold prediction, the only ones of their class, have none here either. */
static AgStatus
columns_fill(AgFit *fit, AgFitLevel *level)
{
	const AgValidation *v = &fit->validation;
	AgProblem problem = fit->label->problem;
	int n_out = ag_fit_width(fit), width = ag_stack_width(problem, n_out);
	size_t n = (size_t) level->n_inputs * (size_t) width;

	AG_TRY(ag_get(&fit->ctx, n, (size_t) fit->n_rows * sizeof(double), &level->columns));
	for (int64_t i = 0; i < (int64_t) n * fit->n_rows; i++)
		level->columns[i] = (double) NAN;
	for (int b = 0; b < level->n_inputs; b++)
	{
		const double *proba = fit->models[level->inputs[b]].proba + ag_stack_first(problem);

		for (int k = 0; k < width; k++)
		{
			double *column = level->columns + (int64_t) (b * width + k) * fit->n_rows;

			for (int64_t i = 0; i < v->n_scored; i++)
				column[v->scored_rows[i]] = proba[i * n_out + k];
		}
	}
	level->rows.ctx = &fit->ctx;
	level->rows.pipeline = fit->pipeline;
	level->rows.table = fit->table;
	level->rows.n_extra = (int) n;
	level->rows.extra = level->columns;
	level->rows.first_level = &fit->rows;
	return AG_OK;
}

AgStatus
ag_fit_level_begin(AgFit *fit, int *n_inputs)
{
	AgFitLevel *level = &fit->levels[fit->level - 1];

	AG_TRY(inputs_choose(fit, level));
	if (fit->options->replay != NULL)
		inputs_repeat(fit, level);
	if (level->n_inputs > 0)
		AG_TRY(ag_fit_nested_make(fit, level));
	qsort(level->inputs, (size_t) level->n_inputs, sizeof(int), by_number);
	*n_inputs = level->n_inputs;
	if (level->n_inputs == 0)
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "No level %d: there is nothing below that it could learn from", fit->level);
		return AG_OK;
	}
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "Level %d: models with the predictions of %d of level %d among their features",
		   fit->level, level->n_inputs, fit->level - 1);
	return columns_fill(fit, level);
}

void
ag_fit_levels_free(AgFit *fit)
{
	for (int l = 0; l <= AG_MAX_STACK_LEVELS; l++)
	{
		ag_fit_rows_free(&fit->levels[l].rows);
		ag_mem_free(fit->ctx.mem, fit->levels[l].columns);
		fit->levels[l].columns = NULL;
	}
}
