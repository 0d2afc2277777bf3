/*
 * fit.c - the story of one fit: label, features, bins, holdout, models, ensemble, results.
 */
#include "engine/search/fit.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

/* Of the time promised, what is kept for the results' way to the catalogue. */
#define STORE_SHARE 0.05
#define STORE_MIN_S 0.25
#define STORE_MAX_S 10.0

double
ag_fit_seconds(int64_t since_ns)
{
	return (double) (ag_clock_ns() - since_ns) * 1e-9;
}

AgStatus
ag_fit_time_error(const AgFit *fit, AgError *err)
{
	double limit = fit->options->time_limit; /* as the user gave it */

	if (isnan(limit))
		limit = round(fit->promised_seconds * 1000.0) / 1000.0;
	ag_error_set(err, AG_ERR_TIME, "no model could be fitted within the time limit of %.10g s",
				 limit);
	ag_error_hint(err, "Raise \"time_limit\", or fit on fewer rows or columns.");
	return AG_ERR_TIME;
}

AgStatus
ag_fit_check(const AgFit *fit)
{
	AG_TRY(ag_check_cancel(&fit->ctx));
	if (ag_out_of_time(&fit->ctx))
		return ag_fit_time_error(fit, fit->ctx.error);
	return AG_OK;
}

/* WARNINGs are part of the result, too: ag_info shows them. */
static void
story_log(void *host, AgLogLevel level, const char *text, const char *hint)
{
	AgFit *fit = host;

	if (level == AG_LOG_WARNING)
	{
		const char **more = ag_arena_alloc(&fit->arena, (size_t) fit->n_warnings + 1, sizeof *more);
		char *copy = ag_arena_strndup(&fit->arena, text, strlen(text));

		if (more != NULL && copy != NULL)
		{
			if (fit->n_warnings > 0)
				memcpy(more, fit->warnings, (size_t) fit->n_warnings * sizeof *more);
			more[fit->n_warnings++] = copy;
			fit->warnings = more;
		}
	}
	if (fit->host->log != NULL)
		fit->host->log(fit->host->host, level, text, hint);
}

/* Of the model in work: children that are done count, and so does the time it may take, for patience may end it early. */
static double
model_done(const AgFit *fit, double fraction)
{
	const AgFitModel *model = &fit->models[fit->n_models];
	int n_children = ag_fit_n_children(fit, model);
	double counted = (model->n_children + (fraction > 0.0 ? fraction : 0.0)) / n_children;
	double timed = 0.0;

	if (fit->model_deadline_ns != INT64_MAX && fit->model_deadline_ns > fit->model_began_ns)
		timed = (double) (ag_clock_ns() - fit->model_began_ns) /
				(double) (fit->model_deadline_ns - fit->model_began_ns);
	counted = counted > timed ? counted : timed;
	return counted < 1.0 ? counted : 1.0;
}

/* The models that were not begun, of this level and those above, and what is fitted again when they are done. */
static void
count_waiting(AgFit *fit, AgOutlook *outlook)
{
	for (int m = 0; m < fit->options->n_models; m++)
	{
		const AgModelConfig *config = ag_fit_config(fit, m);
		AgFamilyId family = config->family->id;
		double units = ag_outlook_units(family);
		double levels = fit->n_levels - fit->level + (m > fit->at_model);
		AgFitModel model;

		if (ag_fit_is_left_out(fit, config))
			continue;
		ag_fit_model_begin(fit, config, &model);
		ag_outlook_waits(outlook, family, units * ag_fit_n_children(fit, &model) * levels);
		if (ag_fit_refits(fit) == AG_REFIT_ALL)
			ag_outlook_waits(outlook, family, units * fit->n_levels);
		else if (ag_fit_refits(fit) == AG_REFIT_BEST) /* who knows which */
			ag_outlook_waits(outlook, family, units / 2.0);
	}
}

/* Of the whole fit. Whoever tries whether stacking helps will have use for all of his time. */
static double
fit_done(AgFit *fit, double fraction)
{
	AgOutlook outlook = fit->outlook;
	double elapsed = ag_fit_seconds(fit->job->started_ns);

	if (fit->level == 0)
		return fit->phase != NULL ? fmin(elapsed / fit->promised_seconds, 1.0) : -1.0;
	if (fit->refits_left != NULL)
		memcpy(outlook.waiting, fit->refits_left->waiting, sizeof outlook.waiting);
	else
		count_waiting(fit, &outlook);
	if (fit->phase != NULL && fit->refits_left == NULL && fit->at_model >= 0 &&
		fit->at_model < fit->options->n_models)
	{
		const AgFitModel *model = &fit->models[fit->n_models];
		AgFamilyId family = model->config->family->id;
		double units = ag_outlook_units(family) * ag_fit_n_children(fit, model);
		double done = model_done(fit, fraction);

		if (done > 0.0)
			ag_outlook_took(&outlook, family, units * done, ag_fit_seconds(fit->model_began_ns));
		ag_outlook_waits(&outlook, family, units * (1.0 - done));
	}
	return ag_outlook_done(&outlook, elapsed, fit->promised_seconds);
}

static void
keep_standing(AgFit *fit, double fraction)
{
	AgStanding *standing = fit->host->standing;
	double value;

	if (standing == NULL)
		return;
	if (!fit->is_trial)
		standing->done = fit_done(fit, fraction);
	if (fit->n_models > 0 && ag_fit_best_model(fit, &value) != NULL && isfinite(value))
		standing->score = ag_metric_score(fit->metric, value);
}

/* What runs inside a model's fit doesn't know which one it is. */
static void
story_progress(void *host, const char *phase, double fraction)
{
	AgFit *fit = host;

	keep_standing(fit, fraction);
	ag_progress(fit->host, fit->phase != NULL ? fit->phase : phase, fraction);
}

static int
label_column(const AgTable *table)
{
	for (int c = 0; c < table->n_columns; c++)
		if (table->columns[c].role == AG_ROLE_LABEL)
			return c;
	return -1;
}

/* Rows in order, the label read, the metric chosen. */
/* Columns that models see: not the label, weights, groups, nor the mark of tuning data. */
static int
features_of(const AgTable *table)
{
	int n = 0;

	for (int i = 0; i < table->n_columns; i++)
		n += ag_role_is_feature(table->columns[i].role);
	return n;
}

static AgStatus
prepare_label(AgFit *fit)
{
	int64_t began = ag_clock_ns();
	int column = label_column(fit->table), n_features = features_of(fit->table);

	if (column < 0)
		return ag_error_set(fit->ctx.error, AG_ERR_INTERNAL, "the table has no label column");
	if (fit->options->label_count_threshold > 0)
		AG_TRY(ag_label_leave_rare(&fit->ctx, fit->table, column, fit->options->problem,
								   fit->options->label_count_threshold, &fit->n_rare));
	ag_progress(&fit->ctx, "putting rows in order", -1.0);
	AG_TRY(ag_table_finish(&fit->ctx, fit->table, &fit->n_left_out));
	fit->n_rows = fit->table->n_rows;
	if (fit->n_left_out > fit->n_rare)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%lld %s left out because \"%s\" is NULL",
			   (long long) (fit->n_left_out - fit->n_rare),
			   fit->n_left_out - fit->n_rare == 1 ? "row is" : "rows are", fit->job->label_name);
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "%lld %s and %d %s to learn \"%s\" from (%.2f s to put in order)",
		   (long long) fit->n_rows, fit->n_rows == 1 ? "row" : "rows", n_features,
		   n_features == 1 ? "column" : "columns", fit->job->label_name, ag_fit_seconds(began));
	AG_TRY(ag_fit_check(fit));
	AG_TRY(ag_label_fit(&fit->ctx, fit->table, column, fit->options->problem,
						fit->options->positive_class, &fit->label));
	fit->label->n_quantiles = fit->options->n_quantiles;
	fit->label->quantiles = fit->options->quantiles;
	fit->label->quantile_order = fit->options->quantile_order;
	fit->metric = fit->options->eval_metric;
	if (fit->metric == AG_METRIC_NONE)
		fit->metric = ag_metric_default(fit->label->problem);
	AG_TRY(ag_options_check_metric(fit->metric, fit->label->problem, fit->ctx.error));
	/* AutoGluon's rule: a ranking is learnt from probabilities. */
	fit->stop_metric = ag_metric_is_ranking(fit->metric) ? AG_METRIC_LOG_LOSS : fit->metric;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "Models are compared by %s%s; to change this, give \"eval_metric\"",
		   ag_metric_name(fit->metric),
		   ag_metric_higher_is_better(fit->metric)
			   ? ""
			   : ", shown with a minus so that higher is better");
	return ag_fit_check(fit);
}

static AgStatus
prepare_features(AgFit *fit)
{
	int64_t began = ag_clock_ns();
	int n_used = 0;

	ag_progress(&fit->ctx, "preparing features", -1.0);
	AG_TRY(ag_pipeline_fit(&fit->ctx, fit->table, fit->label, fit->job->time_zone,
						   fit->job->raw_text, &fit->options->features, &fit->pipeline));
	for (int i = 0; i < fit->pipeline->n_inputs; i++)
		n_used += fit->pipeline->inputs[i].is_used;
	ag_log(&fit->ctx, AG_LOG_NORMAL, "%d of %d columns give %d features (%.2f s)", n_used,
		   fit->pipeline->n_inputs, fit->pipeline->n_visible, ag_fit_seconds(began));
	return ag_fit_check(fit);
}

/* The deadline of the host, less what storing the result may take. */
static void
deadline_set(AgFit *fit)
{
	double promised, reserve;

	fit->promised_seconds = (double) INFINITY;
	if (fit->host->deadline_ns == INT64_MAX)
		return;
	promised = (double) (fit->host->deadline_ns - fit->job->started_ns) * 1e-9;
	reserve = promised * STORE_SHARE;
	if (reserve < STORE_MIN_S)
		reserve = promised < 4.0 * STORE_MIN_S ? promised / 4.0 : STORE_MIN_S;
	if (reserve > STORE_MAX_S)
		reserve = STORE_MAX_S;
	fit->promised_seconds = promised;
	fit->reserve_seconds = reserve;
	fit->ctx.deadline_ns = fit->host->deadline_ns - (int64_t) (reserve * 1e9);
}

static void
fit_release(AgFit *fit)
{
	for (int i = 0; i < fit->n_models; i++)
		ag_fit_model_free(fit, &fit->models[i]);
	ag_validation_free(&fit->ctx, &fit->validation);
	ag_mem_free(fit->ctx.mem, fit->weight);
	ag_mem_free(fit->ctx.mem, fit->moment);
	ag_mem_free(fit->ctx.mem, fit->is_tuning);
	ag_mem_free(fit->ctx.mem, fit->group_of);
	ag_fit_levels_free(fit);
	ag_fit_rows_free(&fit->rows);
	ag_fit_close_devices(fit); /* what was made on them is gone by now */
	ag_mem_free(fit->ctx.mem, fit->sample);
	ag_pipeline_free(fit->pipeline);
	ag_label_free(fit->label);
	ag_arena_free(&fit->arena);
}

AgStatus
ag_fit_run(const AgContext *ctx, const AgFitJob *job, AgTable *table, const AgFitSink *sink)
{
	AgFit fit;
	AgStatus status;
	double value;
	int64_t deadline, need_bytes = 0;
	const char *best;

	memset(&fit, 0, sizeof fit);
	fit.host = ctx;
	fit.began_ns = ag_clock_ns();
	fit.began_cpu_ns = ag_cpu_ns();
	fit.ctx = *ctx;
	fit.ctx.log = story_log;
	fit.ctx.progress = story_progress;
	fit.ctx.host = &fit;
	fit.job = job;
	fit.options = job->options;
	fit.table = table;
	fit.sink = sink;
	ag_arena_init(&fit.arena, ctx->mem);
	deadline_set(&fit);

	AG_GO(ag_fit_tell_devices(&fit));
	if (fit.options->dry_run) /* while the table is as it was when the memory was leased */
		need_bytes = ag_fit_memory(table, fit.options, ag_pool_size(ctx->pool));
	for (int i = 0; i < fit.options->n_left_out; i++)
		ag_log(&fit.ctx, AG_LOG_NORMAL, "%s is left out: %s", fit.options->left_out[i].name,
			   fit.options->left_out[i].why);
	AG_GO(prepare_label(&fit));
	AG_GO(ag_fit_read_roles(&fit));
	AG_GO(prepare_features(&fit));
	AG_GO(ag_fit_check_monotone(&fit));
	if (!fit.options->dry_run)
		AG_GO(ag_fit_early(&fit));
	AG_GO(ag_fit_split(&fit));
	AG_GO(ag_fit_plan_levels(&fit));
	if (fit.options->dry_run)
	{
		status = ag_fit_dry_run(&fit, need_bytes);
		goto done;
	}
	if (ag_fit_wants_trial(&fit))
		AG_GO(ag_fit_trial(&fit));
	deadline = fit.ctx.deadline_ns;
	fit.ctx.deadline_ns = ag_fit_models_deadline(&fit);
	AG_GO(ag_fit_models(&fit));
	fit.ctx.deadline_ns = deadline == INT64_MAX ? deadline : deadline - ag_fit_store_ns(&fit);
	AG_GO(ag_fit_refit(&fit));
	AG_GO(ag_fit_calibrate(&fit));
	best = ag_fit_best(&fit, &value);
	AG_GO(ag_fit_report(&fit));
	if (isfinite(value))
		ag_log(&fit.ctx, AG_LOG_SUMMARY, "Best model: %s, %s %.5g, after %.1f s", best,
			   ag_metric_name(fit.metric), ag_metric_score(fit.metric, value),
			   ag_fit_seconds(job->started_ns));
	else
		ag_log(&fit.ctx, AG_LOG_SUMMARY, "Best model: %s, without a validation score, after %.1f s",
			   best, ag_fit_seconds(job->started_ns));
done:
	fit_release(&fit);
	return status;
}
