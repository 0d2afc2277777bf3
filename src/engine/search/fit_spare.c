/*
 * fit_spare.c - a second set of folds in time that nothing else needs.
 *
 * Where a set of our own had all the time that it wanted, with rows dealt once, what the best model combines is bagged a second time, the
 * most important first: its predictions become means of twice as many children, and rows are scored by two of them instead of one. Levels above
 * the first have learnt from one set and stay as they are; what they look at gets steadier. Then all is weighed anew.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

#define SLACK 1.2       /* times as long as the first set took it may take, to be begun */
#define MOST_SLACK 3.0  /* and at most */
#define MOST_SHARE 0.02 /* or so much of the whole time, where that is more */

bool
ag_fit_may_spare(const AgFit *fit)
{
	const AgValidation *v = &fit->validation;
	const AgFitOptions *options = fit->options;

	if (options->replay != NULL)
		return options->replay->has_spare_set && v->n_folds > 0 && v->n_sets == 1;
	return options->models_from_set && options->auto_stack && !options->bag_sets_said &&
		   isnan(options->infer_limit) && !fit->is_trial && v->n_folds > 0 && v->n_sets == 1 &&
		   !v->is_held_out && !v->is_forward && fit->promised_seconds >= AG_FIT_LONG_SECONDS &&
		   isfinite(fit->promised_seconds);
}

/* The rows dealt once more, behind the first set. */
static AgStatus
set_deal(AgFit *fit)
{
	AgValidation *v = &fit->validation;
	size_t n = (size_t) fit->n_rows;
	uint8_t *both;
	AgStatus status;

	AG_TRY(ag_get(&fit->ctx, n, 2, &both));
	memcpy(both, v->fold_of, n);
	status = ag_fit_deal(fit, 1, both + n);
	if (status != AG_OK)
	{
		ag_mem_free(fit->ctx.mem, both);
		return status;
	}
	ag_mem_free(fit->ctx.mem, v->fold_of);
	v->fold_of = both;
	v->n_spare_sets = 1;
	return AG_OK;
}

/* Room for as many children once more. */
static AgStatus
children_grow(AgFit *fit, AgFitModel *model, AgError *err)
{
	size_t n = (size_t) (model->n_children + fit->validation.n_folds);
	AgTrained *children = ag_arena_alloc(&fit->arena, n, sizeof *children);
	int *child_at = ag_arena_alloc(&fit->arena, n, sizeof *child_at);

	if (children == NULL || child_at == NULL)
		return ag_mem_error(fit->ctx.mem, n * sizeof *children, err);
	memcpy(children, model->children, (size_t) model->n_children * sizeof *children);
	memcpy(child_at, model->child_at, (size_t) model->n_children * sizeof *child_at);
	model->children = children;
	model->child_at = child_at;
	return AG_OK;
}

/* Whatever goes wrong leaves the model as it was, or with the children that were done; only a cancelled fit ends. */
static AgStatus
model_again(AgFit *fit, double seconds, AgFitModel *model)
{
	AgContext ctx = fit->ctx;
	struct AgPool *pool = NULL;
	AgError err;
	int64_t began = ag_clock_ns();
	int n = model->n_children;
	char phase[AG_FIT_NAME + 32];
	AgStatus status;

	ag_error_init(&err);
	ctx.error = &err;
	if (ctx.deadline_ns != INT64_MAX && began + (int64_t) (seconds * 1e9) < ctx.deadline_ns)
		ctx.deadline_ns = began + (int64_t) (seconds * 1e9);
	snprintf(phase, sizeof phase, "fitting %s once more", model->name);
	fit->phase = phase;
	status = children_grow(fit, model, &err);
	if (status == AG_OK)
		status = ag_fit_pool(fit, model->plan.num_cpus, &pool, &ctx);
	if (status == AG_OK)
		status = ag_fit_bag_again(fit, &ctx, model);
	ag_pool_free(pool);
	fit->phase = NULL;
	model->predict_seconds *= (double) model->n_children / n;
	model->fit_seconds += ag_fit_seconds(began);
	if (status == AG_ERR_CANCELLED)
		return ag_check_cancel(&fit->ctx);
	if (status == AG_OK)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s of %s, in %.2f s",
			   ag_metric_score(fit->metric, model->value), ag_metric_name(fit->metric), model->name,
			   ag_fit_seconds(began));
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s stays as it was: %s", model->name,
			   status == AG_ERR_TIME ? "no time was left" : err.message);
	return AG_OK;
}

/* Is it a bag of the first level with the children of all folds? */
static bool
can_grow(const AgFit *fit, const AgFitModel *model)
{
	return model->level == 1 && model->is_bag && !model->is_out_of_bag &&
		   model->n_children == fit->validation.n_folds;
}

/* The one that most depends on; -1: none is left. In a fit that is repeated, the next that had it there. */
static int
next_model(const AgFit *fit, const double *weights, const bool *done)
{
	int best = -1;

	for (int i = 0; i < fit->n_models; i++)
	{
		const AgReplayModel *replayed =
			fit->options->replay != NULL ? ag_replay_find(fit->options, fit->models[i].name) : NULL;

		if (done[i] || !can_grow(fit, &fit->models[i]) ||
			(replayed != NULL ? replayed->n_children <= fit->validation.n_folds
							  : !(weights[i] > 0.0)))
			continue;
		if (best < 0 || weights[i] > weights[best])
			best = i;
	}
	return best;
}

/* Each ensemble of the models that it was of, with what they say now. */
static AgStatus
weigh_again(AgFit *fit)
{
	int n_models = fit->n_models, n = fit->n_ensembles, level = fit->level;
	int n_fitted = fit->n_fitted;
	AgStatus status = AG_OK;

	for (int e = 0; e < n && status == AG_OK; e++)
	{
		int order = fit->ensembles[e].fit_order;

		fit->n_ensembles = e;
		fit->level = fit->ensembles[e].level - 1;
		fit->n_models = fit->ensembles[e].n_models;
		status = ag_fit_ensemble(fit);
		fit->ensembles[e].fit_order = order;
	}
	fit->n_models = n_models;
	fit->n_ensembles = n;
	fit->level = level;
	fit->n_fitted = n_fitted;
	return status;
}

AgStatus
ag_fit_spare_set(AgFit *fit)
{
	int64_t deadline = fit->ctx.deadline_ns;
	double value, *weights;
	int i, n_again = 0;
	bool *done;
	AgStatus status = AG_OK;

	if (!ag_fit_may_spare(fit) || fit->is_pressed)
		return AG_OK;
	done = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *done);
	weights = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *weights);
	if (done == NULL || weights == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) fit->n_models * sizeof *weights, fit->ctx.error);
	ag_fit_weights(fit, ag_fit_best_model(fit, &value), weights);
	while (status == AG_OK && (i = next_model(fit, weights, done)) >= 0)
	{
		AgFitModel *model = &fit->models[i];
		double left = (double) INFINITY;

		done[i] = true;
		if (deadline != INT64_MAX)
		{
			fit->ctx.deadline_ns = deadline - ag_fit_store_ns(fit);
			left = -ag_fit_seconds(fit->ctx.deadline_ns);
		}
		if (model->fit_seconds * SLACK > left)
			continue;
		if (n_again++ == 0)
		{
			ag_log(&fit->ctx, AG_LOG_NORMAL,
				   "Time is left for a second set of folds of what the best model combines ...");
			status = set_deal(fit);
		}
		if (status == AG_OK)
			status = model_again(fit,
								 fmax(model->fit_seconds * MOST_SLACK,
									  isfinite(left) ? MOST_SHARE * fit->promised_seconds : 0.0),
								 model);
	}
	if (status == AG_OK && n_again > 0)
		status = weigh_again(fit);
	fit->ctx.deadline_ns = deadline;
	return status;
}
