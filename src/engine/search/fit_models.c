/*
 * fit_models.c - fits the configurations one after the other, each within its share of the time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

/* Does no model after the one at hand need the table's columns, and none that is fitted again? */
static bool
is_last_reader(const AgFit *fit, int at)
{
	const AgModelConfig *own = ag_fit_config(fit, at);
	int first = ag_fit_refits(fit) != AG_REFIT_NONE || ag_fit_retrains(fit) ? 0 : at + 1;

	if (fit->n_levels > 1 || fit->validation.is_held_out || ag_fit_may_spare(fit))
		return false;
	for (int i = first; i < fit->options->n_models; i++)
		if (!ag_family_shares_rows(own, ag_fit_config(fit, i)) ||
			ag_fit_config(fit, i)->search != NULL)
			return false;
	return true;
}

/* What planning takes a booster for, until one has been measured: seconds a round for each value on one CPU, and for itself. */
#define PLAN_VALUE_S 3e-9
#define PLAN_ROUND_S 5e-5
#define PLAN_CPUS 8 /* more don't make a booster quicker in proportion */
/* The most of what is left that one model may take while others wait. */
#define MOST_SHARE 0.7
/* Of a long list so many are counted on at a time: models that have too little time each are no good to anybody. */
#define MOST_WAITING 8
/* Of models on their way to the catalogue, on a machine that has more to do. */
#define STORE_BYTES_PER_S 8e7
#define LEAST_LEFT 0.02  /* of the time promised, to begin another model with */
#define SLOWEST 10.0     /* that is reckoned with */
#define SOON 0.05        /* seconds that tell nothing yet of how slow the machine is */
#define STORE_SHARE 0.08 /* of the time promised, that slowness alone may take */

/* How many times as long as its work the fit has taken: 1, unless others keep the CPUs busy. */
static double
slowness(const AgFit *fit)
{
	double wall = fit->began_ns != 0 ? ag_fit_seconds(fit->began_ns) : 0.0;
	double cpu = (double) (ag_cpu_ns() - fit->began_cpu_ns) * 1e-9;

	if (wall < SOON || fit->job->n_gpus > 0) /* too early to tell; waiting for a GPU is work */
		return 1.0;
	return !(cpu > 0.0) || wall <= cpu ? 1.0 : wall / cpu < SLOWEST ? wall / cpu : SLOWEST;
}

double
ag_fit_booster_seconds(const AgFit *fit)
{
	int n_cpus = ag_pool_size(fit->ctx.pool);
	double values = (double) fit->n_rows * (fit->pipeline->n_visible + 4);
	int n_outputs = fit->label->n_classes == 2 ? 1 : ag_label_outputs(fit->label);

	if (fit->booster_seconds > 0.0)
		return fit->booster_seconds; /* measured on the machine as it is */
	return slowness(fit) * AG_FIT_PLAN_ROUNDS * n_outputs *
		   (values * PLAN_VALUE_S / (n_cpus < PLAN_CPUS ? n_cpus : PLAN_CPUS) + PLAN_ROUND_S);
}

/*
 * This model's share of what is left: twice an equal part for the first of many, all for the last, but not so little that
 * it isn't worth beginning. One model well fitted is worth more than several begun; what a model leaves over goes to the next
 * ones.
 */
double
ag_fit_share(const AgFit *fit, double left, int waiting)
{
	double share = left / ((waiting < MOST_WAITING ? waiting : MOST_WAITING) + 2) * 2.0;

	if (share < fit->least_share)
		share = fit->least_share;
	if (waiting > 0 && share > left * MOST_SHARE)
		share = left * MOST_SHARE;
	return waiting > 0 ? share : left;
}

/* Its share, and its own limit. */
static int64_t
model_deadline(AgFit *fit, int at)
{
	const AgModelConfig *config = ag_fit_config(fit, at);
	int64_t now = ag_clock_ns(), deadline = fit->ctx.deadline_ns;

	if (deadline != INT64_MAX)
	{
		double left = (double) (deadline - now) * 1e-9;

		if (fit->n_models > 0 || left > fit->forms_seconds) /* else there may be this one only */
			deadline =
				now + (int64_t) (fmin(ag_fit_share(fit, left, fit->options->n_models - at - 1),
									  ag_fit_net_seconds(fit, at)) *
								 1e9);
	}
	if (fit->options->replay == NULL && config->max_time_limit < 1e9 &&
		now + (int64_t) (config->max_time_limit * 1e9) < deadline)
		deadline = now + (int64_t) (config->max_time_limit * 1e9);
	return deadline;
}

/* A model that time cut short tells that the next ones need as much at least; but for what it got beyond its share. */
static void
share_learn(AgFit *fit, const AgFitModel *model)
{
	double seconds = model->fit_seconds;

	for (int c = 0; c < model->n_children; c++)
		if (model->children[c].ended_by == NULL || strcmp(model->children[c].ended_by, "time") != 0)
			return;
	if (fit->model_deadline_ns != INT64_MAX)
		seconds = fmin(seconds, (double) (fit->model_deadline_ns - fit->model_began_ns) * 1e-9);
	if (seconds > fit->least_share && model->config->max_time_limit > 1e9)
		fit->least_share = seconds;
}

/* "137 rounds of 437 kept, ended by patience"; of a bag the least and the most; empty for a family without rounds. */
static void
rounds_text(const AgFitModel *model, char *text, size_t size)
{
	const AgTrained *first = &model->children[0];
	int least = first->rounds, most = first->rounds;

	text[0] = '\0';
	for (int i = 1; i < model->n_children; i++)
	{
		int rounds = model->children[i].rounds;

		least = rounds < least ? rounds : least;
		most = rounds > most ? rounds : most;
	}
	if (model->is_bag && least >= 0)
		snprintf(text, size, " %d models (%d to %d rounds kept)", model->n_children, least, most);
	else if (model->is_bag)
		snprintf(text, size, " %d models", model->n_children);
	else if (least >= 0)
		snprintf(text, size, " (%d rounds of %d kept, ended by %s)", first->rounds,
				 first->rounds_run, first->ended_by);
}

/* What is to be known of the children: the first one's note that has any; what stays in ag_info is a warning. */
static void
note_tell(AgFit *fit, const AgFitModel *model)
{
	const AgTrained *noted = NULL;
	int n_warned = 0;

	for (int c = model->n_children; c-- > 0;)
	{
		n_warned += model->children[c].warns;
		if (model->children[c].note[0] != '\0' &&
			(noted == NULL || !noted->warns || model->children[c].warns))
			noted = &model->children[c];
	}
	if (noted != NULL && !noted->warns)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s: %s", model->name, noted->note);
	else if (noted != NULL && model->is_bag)
		ag_log(&fit->ctx, AG_LOG_WARNING, "model %s: %d of its %d models: %s", model->name,
			   n_warned, model->n_children, noted->note);
	else if (noted != NULL)
		ag_log(&fit->ctx, AG_LOG_WARNING, "model %s: %s", model->name, noted->note);
}

static void
model_tell(AgFit *fit, const AgFitModel *model)
{
	char rounds[128];

	if (isfinite(model->value))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s", ag_metric_score(fit->metric, model->value),
			   ag_metric_name(fit->metric));
	rounds_text(model, rounds, sizeof rounds);
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to fit%s", model->fit_seconds, rounds);
	note_tell(fit, model);
	if (fit->validation.n_scored > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.3f s  to predict %lld rows", model->predict_seconds,
			   (long long) fit->validation.n_scored);
}

static bool
is_whole(const AgFit *fit, const AgFitModel *model)
{
	return !model->is_bag || model->n_covered == fit->validation.n_scored;
}

/*
 * A bag that time cut short is scored on fewer rows than others, and can't be weighed with them: it stays only as long as
 * there is nothing else.
 */
static void
model_keep(AgFit *fit, AgFitModel *model)
{
	model_tell(fit, model);
	if (!is_whole(fit, model))
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s: only %d of %d folds were fitted in time%s",
			   model->name, model->n_children, fit->validation.n_folds,
			   fit->n_models > 0 ? "; left out" : "");
		if (fit->n_models > 0)
		{
			ag_fit_failure_add(fit, model, AG_ERR_TIME, "not all of its folds were fitted in time");
			ag_fit_model_free(fit, model);
			return;
		}
	}
	else if (fit->level == 1 && fit->n_models == 1 && !is_whole(fit, &fit->models[0]))
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s is left out: some of its folds are missing",
			   fit->models[0].name);
		ag_fit_failure_add(fit, &fit->models[0], AG_ERR_TIME,
						   "not all of its folds were fitted in time");
		ag_fit_model_free(fit, &fit->models[0]);
		model->fit_order = fit->models[0].fit_order;
		fit->models[0] = *model;
		return;
	}
	model->fit_order = ++fit->n_fitted;
	fit->n_models++;
}

/*
 * The forms of the rows that the model shares with others: what they take isn't of its own share. Not where it is the last to read
 * the table: then columns go as they are binned.
 */
static AgStatus
forms_make(AgFit *fit, AgContext *ctx, int at)
{
	const AgModelConfig *config = ag_fit_config(fit, at);
	int64_t began = ag_clock_ns();
	AgStatus status;

	if (is_last_reader(fit, at) || config->search != NULL)
		return AG_OK;
	if (fit->n_models == 0) /* one model is worth some of what is kept for storing */
		ctx->deadline_ns = fit->host->deadline_ns;
	status = ag_fit_slot_prepare(fit, ctx, fit->level, config);
	if (ag_fit_seconds(began) > fit->forms_seconds)
		fit->forms_seconds = ag_fit_seconds(began);
	return status;
}

/* Is so little time left that another model, after those there are, would be begun in vain? */
static bool
is_too_late(const AgFit *fit)
{
	if (fit->ctx.deadline_ns == INT64_MAX)
		return false;
	return ag_out_of_time(&fit->ctx) ||
		   (fit->n_models > 0 &&
			-ag_fit_seconds(fit->ctx.deadline_ns) < fit->promised_seconds * LEAST_LEFT);
}

/*
 * One model from start to end. Its fault is told and forgotten, unless the whole fit has to end; *failure keeps the
 * first one for the case that nothing works.
 */
static AgStatus
model_run(AgFit *fit, int at, AgError *failure)
{
	const AgModelConfig *config = ag_fit_config(fit, at);
	AgContext ctx = fit->ctx;
	AgFitModel *model = &fit->models[fit->n_models];
	AgError err;
	char phase[128];
	int64_t began;
	AgStatus status;

	ag_fit_model_begin(fit, config, model);
	ag_error_init(&err);
	ctx.error = &err;
	began = ag_clock_ns();
	status = forms_make(fit, &ctx, at);
	ctx.deadline_ns = model_deadline(fit, at);
	snprintf(phase, sizeof phase, "fitting %s (%d of %d)", model->name, at + 1,
			 fit->options->n_models);
	if (ctx.deadline_ns == INT64_MAX)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Fitting model %s ...", model->name);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Fitting model %s ... at most %.1f s", model->name,
			   -ag_fit_seconds(ctx.deadline_ns));
	fit->phase = phase;
	fit->at_model = at;
	fit->model_began_ns = began;
	fit->model_deadline_ns = ctx.deadline_ns;
	ag_progress(&fit->ctx, phase, 0.0);
	if (status == AG_OK)
		status = ag_fit_search_begin(fit, &ctx, config);
	if (status == AG_OK)
		status = ag_fit_model(fit, &ctx, is_last_reader(fit, at), model);
	fit->phase = NULL;
	ag_fit_order_took(fit, config, ag_fit_seconds(fit->model_began_ns));
	ag_outlook_took(&fit->outlook, model->config->family->id,
					ag_outlook_units(model->config->family->id) * ag_fit_n_children(fit, model),
					ag_fit_seconds(fit->model_began_ns));
	if (status == AG_OK)
	{
		share_learn(fit, model);
		model_keep(fit, model);
		return AG_OK;
	}
	if (model->is_dropped)
		ag_error_set(&err, AG_ERR_TIME,
					 "its first folds add nothing to the other models, which had the time instead");
	ag_fit_model_free(fit, model);
	ag_fit_failure_add(fit, model, status, err.message);
	if (failure->status == AG_OK)
		*failure = err;
	if (status == AG_ERR_CANCELLED)
	{
		if (fit->ctx.error != NULL && fit->ctx.error->status == AG_OK)
			*fit->ctx.error = err;
		return status;
	}
	if (model->is_dropped)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s is given up: %s", model->name, err.message);
	else if (status == AG_ERR_TIME)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  no time left for %s", model->name);
	else
		ag_log_hint(&fit->ctx, AG_LOG_WARNING, err.hint[0] != '\0' ? err.hint : NULL,
					"model %s was left out: %s", model->name, err.message);
	return AG_OK;
}

/* Nothing on a higher level has anything of the distances between rows that the level below hasn't told. */
bool
ag_fit_is_for_level(AgFit *fit, const AgModelConfig *config)
{
	AgFitModel model;

	ag_fit_model_begin(fit, config, &model);
	if (fit->options->replay != NULL)
		return ag_replay_find(fit->options, model.name) != NULL;
	if (ag_fit_is_left_out(fit, config))
		return false;
	return fit->level == 1 || (config->family->id != AG_FAMILY_KNN && !config->never_stacks &&
							   ag_fit_search_goes_up(fit, config));
}

/* Those from that place on. */
static void
never_begun(AgFit *fit, int at)
{
	fit->model_began_ns = 0;
	for (; at < fit->options->n_models; at++)
	{
		AgFitModel model;

		if (!ag_fit_is_for_level(fit, ag_fit_config(fit, at)))
			continue;
		ag_fit_model_begin(fit, ag_fit_config(fit, at), &model);
		ag_fit_failure_add(fit, &model, AG_ERR_TIME, "no time was left to begin it");
	}
}

/* What is kept for storing from the start is meant for few models, and for a machine that does nothing else. */
int64_t
ag_fit_store_ns(const AgFit *fit)
{
	double bytes = 0.0, largest = 0.0, slow = slowness(fit), kept;

	if (fit->is_trial || fit->host->deadline_ns == INT64_MAX || fit->n_models == 0)
		return 0;
	for (int i = 0; i < fit->n_models && !fit->options->keep_only_best; i++)
	{
		double of_model = (double) fit->models[i].full.n_image;

		for (int c = 0; c < fit->models[i].n_children; c++)
			of_model += (double) fit->models[i].children[c].n_image;
		bytes += of_model;
		largest = of_model > largest ? of_model : largest;
	}
	kept = fit->reserve_seconds * (slow - 1.0);
	if (kept > fit->promised_seconds * STORE_SHARE)
		kept = fit->promised_seconds * STORE_SHARE;
	return (int64_t) (((bytes + largest) / STORE_BYTES_PER_S * slow + kept) * 1e9);
}

/* The configurations, one after the other, and their ensemble. */
static AgStatus
level_fit(AgFit *fit, AgError *failure)
{
	int64_t deadline = fit->ctx.deadline_ns;
	int n = fit->options->n_models;

	AG_TRY(ag_fit_order_begin(fit));
	for (int at = 0; at < n; at++)
	{
		AG_TRY(ag_check_cancel(&fit->ctx));
		if (deadline != INT64_MAX)
			fit->ctx.deadline_ns = deadline - ag_fit_store_ns(fit);
		if (is_too_late(fit))
		{
			if (fit->n_models > 0)
				ag_log(&fit->ctx, AG_LOG_NORMAL, "No time is left for %d of %d models", n - at, n);
			fit->is_pressed = true;
			never_begun(fit, at);
			break;
		}
		ag_fit_order_next(fit, at);
		if (ag_fit_is_for_level(fit, ag_fit_config(fit, at)))
			AG_TRY(model_run(fit, at, failure));
	}
	fit->at_model = n;
	if (fit->n_models == 0)
		return AG_OK;
	AG_TRY(ag_fit_drop_slow(fit));
	return ag_fit_ensemble(fit);
}

/* An equal part of what is left for each level; those above the first begin with making what they learn from. */
static int64_t
level_deadline(const AgFit *fit, int64_t deadline)
{
	int left = fit->n_levels - fit->level + 1;
	int64_t now = ag_clock_ns();

	if (deadline == INT64_MAX || left == 1 || deadline <= now)
		return deadline;
	return now + (int64_t) ((double) (deadline - now) / left);
}

static AgStatus
levels_fit(AgFit *fit, AgError *failure)
{
	int64_t deadline = fit->ctx.deadline_ns;
	AgStatus status = AG_OK;

	for (fit->level = 1; fit->level <= fit->n_levels && status == AG_OK; fit->level++)
	{
		int n_inputs = 1;

		fit->ctx.deadline_ns = level_deadline(fit, deadline);
		if (fit->level > 1 && ag_out_of_time(&fit->ctx))
		{
			ag_log(&fit->ctx, AG_LOG_NORMAL, "No time is left for level %d", fit->level);
			break;
		}
		fit->at_model = -1;
		if (fit->level > 1)
			status = ag_fit_level_begin(fit, &n_inputs);
		if (n_inputs == 0)
			break;
		if (status == AG_OK)
			status = level_fit(fit, failure);
	}
	ag_fit_nested_free(fit);
	fit->ctx.deadline_ns = deadline;
	return status;
}

AgStatus
ag_fit_models(AgFit *fit)
{
	AgError failure;
	size_t n = (size_t) fit->options->n_models * (size_t) fit->n_levels;

	ag_error_init(&failure);
	fit->models = ag_arena_alloc(&fit->arena, n + 1, sizeof *fit->models);
	if (fit->models == NULL)
		return ag_mem_error(fit->ctx.mem, n * sizeof *fit->models, fit->ctx.error);
	fit->least_share =
		ag_fit_booster_seconds(fit) * (fit->validation.n_folds > 0 ? fit->validation.n_folds : 1);
	fit->rows.ctx = &fit->ctx;
	fit->rows.pipeline = fit->pipeline;
	fit->rows.table = fit->table;
	fit->order = NULL; /* of another arena, if any */
	fit->level = 1;
	AG_TRY(ag_fit_tell_left_out(fit));
	AG_TRY(ag_fit_take_sample(fit));
	AG_TRY(levels_fit(fit, &failure));
	if (fit->n_models > 0)
		return ag_fit_spare_set(fit);
	if (failure.status == AG_OK || failure.status == AG_ERR_TIME)
		return ag_fit_time_error(fit, fit->ctx.error);
	if (fit->ctx.error != NULL && fit->ctx.error->status == AG_OK)
		*fit->ctx.error = failure;
	return failure.status;
}
