/*
 * fit_models.c - fits the configurations one after the other, each within its share of the time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/model.h"
#include "engine/search/fit_state.h"

#define TIMED_ROWS 512 /* rows that prediction is timed on */

/* "12 MB", for people. */
static double
megabytes(int64_t n_bytes)
{
	return (double) n_bytes / 1e6;
}

/* Does no model after the m-th need the table's columns? */
static bool
is_last_reader(const AgFit *fit, int m)
{
	const AgModelConfig *models = fit->options->models;

	for (int i = m + 1; i < fit->options->n_models; i++)
		if (!ag_family_shares_rows(&models[m], &models[i]))
			return false;
	return true;
}

/* Some validation rows' features, to time predictions on: the table may be gone by then. */
static AgStatus
sample_take(AgFit *fit)
{
	const AgHoldout *h = &fit->holdout;
	int64_t n = h->n_valid < TIMED_ROWS ? h->n_valid : TIMED_ROWS;
	int n_features = fit->pipeline->n_features;
	double *column;

	if (n == 0)
		return AG_OK;
	AG_TRY(ag_get(&fit->ctx, (size_t) n, (size_t) n_features * sizeof *fit->sample, &fit->sample));
	AG_TRY(ag_get(&fit->ctx, (size_t) n, sizeof *column, &column));
	for (int f = 0; f < n_features; f++)
	{
		ag_pipeline_feature(fit->pipeline, fit->table, f, h->valid_rows, n, column);
		for (int64_t i = 0; i < n; i++)
			fit->sample[i * n_features + f] = column[i];
	}
	ag_mem_free(fit->ctx.mem, column);
	fit->n_sample = n;
	return AG_OK;
}

/* Seconds that predicting the validation rows takes on one CPU, extrapolated from some of them. */
static AgStatus
predict_time(AgFit *fit, const AgContext *ctx, AgFitModel *model)
{
	AgModel loaded;
	double *out = NULL;
	void *scratch = NULL;
	int64_t began, n = 0;
	AgStatus status;

	model->predict_seconds = 0.0;
	if (fit->n_sample == 0)
		return AG_OK;
	AG_TRY(ag_model_read(ctx, model->trained.image, model->trained.n_image, &loaded));
	AG_GO(ag_get(ctx, ag_model_n_out(&loaded), sizeof *out, &out));
	AG_GO(ag_get(ctx, ag_model_scratch_bytes(&loaded), 1, &scratch));
	began = ag_clock_ns();
	while (n < fit->n_sample && ag_clock_ns() - began < 100000000) /* 0.1 s is enough to know */
	{
		ag_model_run(&loaded, fit->sample + n * fit->pipeline->n_features, scratch, out);
		n++;
	}
	model->predict_seconds = ag_fit_seconds(began) / (double) n * (double) fit->holdout.n_valid;
done:
	ag_mem_free(ctx->mem, out);
	ag_mem_free(ctx->mem, scratch);
	ag_model_free(&loaded);
	return status;
}

static AgStatus
model_score(AgFit *fit, const AgContext *ctx, AgFitModel *model)
{
	const AgHoldout *h = &fit->holdout;
	const AgLabel *label = fit->label;
	int64_t n_values = h->n_valid * (label->n_classes > 0 ? label->n_classes : 1);

	model->value = (double) NAN;
	if (h->n_valid == 0 || model->trained.valid_proba == NULL)
		return AG_OK;
	for (int64_t i = 0; i < n_values; i++)
		if (!isfinite(model->trained.valid_proba[i]))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"its predictions of the validation rows are not finite");
	if (label->class_of != NULL)
		return ag_metric_classes(ctx, fit->metric, h->n_valid, label->n_classes, h->class_of,
								 model->trained.valid_proba, 0.5, NULL, &model->value);
	return ag_metric_regression(ctx, fit->metric, h->n_valid, h->target, model->trained.valid_proba,
								NULL, &model->value);
}

static void
train_data_set(const AgFit *fit, AgTrainData *data)
{
	memset(data, 0, sizeof *data);
	data->problem = fit->label->problem;
	data->n_classes = fit->label->n_classes;
	data->target = fit->label->target;
	data->class_of = fit->label->class_of;
	data->train_rows = fit->holdout.train_rows;
	data->n_train = fit->holdout.n_train;
	data->valid_rows = fit->holdout.valid_rows;
	data->n_valid = fit->holdout.n_valid;
	data->stop_metric = fit->stop_metric;
}

/* The pool of the fit, or a smaller one for a model that wants fewer CPUs. */
static AgStatus
pool_for(AgFit *fit, const AgModelConfig *config, struct AgPool **own, AgContext *ctx)
{
	int have = ag_pool_size(fit->ctx.pool);

	*own = NULL;
	if (config->asked.num_cpus >= 1 && config->asked.num_cpus < have)
	{
		AG_TRY(ag_pool_create(fit->ctx.mem, config->asked.num_cpus, own, ctx->error));
		ctx->pool = *own;
	}
	return AG_OK;
}

/* A booster that no validation rows watch stops after a modest number of rounds, unless the user says how many. */
static AgModelConfig
config_unwatched(AgFit *fit, const AgModelConfig *config, AgGbmParams *params)
{
	AgModelConfig changed = *config;

	if (fit->holdout.n_valid > 0 || config->family->id != AG_FAMILY_GBM)
		return changed;
	*params = *(const AgGbmParams *) config->params;
	if (params->num_boost_round > AG_FIT_ROUNDS_UNWATCHED)
		params->num_boost_round = AG_FIT_ROUNDS_UNWATCHED;
	changed.params = params;
	return changed;
}

/* Everything that goes wrong with one model, in ctx->error, so that another may still work. */
static AgStatus
model_fit(AgFit *fit, AgContext *ctx, int m, AgFitModel *model)
{
	const AgModelConfig *config = &fit->options->models[m];
	AgGbmParams params;
	AgModelConfig used = config_unwatched(fit, config, &params);
	AgTrainData data;
	struct AgPool *pool = NULL;
	int64_t began = ag_clock_ns();
	AgStatus status;

	AG_GO(pool_for(fit, config, &pool, ctx));
	model->config = config;
	model->num_cpus = ag_pool_size(ctx->pool);
	train_data_set(fit, &data);
	ag_log(&fit->ctx, AG_LOG_RESOURCES, "Fitting %s with 'num_gpus': 0, 'num_cpus': %d",
		   config->name, model->num_cpus);
	ag_log(&fit->ctx, AG_LOG_RESOURCES, "  memory: %.1f MB in use, limit %.1f MB",
		   megabytes(ctx->mem->used_bytes), megabytes(ctx->mem->limit_bytes));
	if (fit->options->verbosity >= AG_LOG_TRACE)
	{
		const char *text = ag_fit_params_json(fit, &used);

		ag_log(&fit->ctx, AG_LOG_TRACE, "  parameters: %s", text != NULL ? text : "?");
	}
	AG_GO(ag_family_train(ctx, &fit->rows, &used, fit->options->random_state, &data,
						  is_last_reader(fit, m), &model->trained));
	model->fit_seconds = ag_fit_seconds(began);
	AG_GO(model_score(fit, ctx, model));
	AG_GO(predict_time(fit, ctx, model));
done:
	ag_pool_free(pool);
	return status;
}

/*
 * This model's share of what is left: twice an equal part for the first of many, all for the last. One model well fitted is
 * worth more than several begun; what a model leaves over goes to the next ones. And its own limit.
 */
static int64_t
model_deadline(const AgFit *fit, int m)
{
	const AgModelConfig *config = &fit->options->models[m];
	int64_t now = ag_clock_ns(), deadline = fit->ctx.deadline_ns;

	if (deadline != INT64_MAX)
		deadline = now + (deadline - now) / (fit->options->n_models - m + 1) * 2;
	if (config->max_time_limit < 1e9 && now + (int64_t) (config->max_time_limit * 1e9) < deadline)
		deadline = now + (int64_t) (config->max_time_limit * 1e9);
	return deadline;
}

static void
model_tell(AgFit *fit, const AgFitModel *model)
{
	const AgTrained *trained = &model->trained;

	if (isfinite(model->value))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s", ag_metric_score(fit->metric, model->value),
			   ag_metric_name(fit->metric));
	if (trained->rounds >= 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to fit (%d rounds of %d kept, ended by %s)",
			   model->fit_seconds, trained->rounds, trained->rounds_run, trained->ended_by);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to fit", model->fit_seconds);
	if (trained->note[0] != '\0')
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %s: %s", model->config->name, trained->note);
	if (fit->holdout.n_valid > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.3f s  to predict %lld rows", model->predict_seconds,
			   (long long) fit->holdout.n_valid);
}

/*
 * One model from start to end. Its fault is told and forgotten, unless the whole fit has to end; *failure keeps the
 * first one for the case that nothing works.
 */
static AgStatus
model_run(AgFit *fit, int m, AgError *failure)
{
	const AgModelConfig *config = &fit->options->models[m];
	AgContext ctx = fit->ctx;
	AgFitModel *model = &fit->models[fit->n_models];
	AgError err;
	char phase[128];
	AgStatus status;

	memset(model, 0, sizeof *model);
	ag_error_init(&err);
	ctx.error = &err;
	ctx.deadline_ns = model_deadline(fit, m);
	snprintf(phase, sizeof phase, "fitting %s (%d of %d)", config->name, m + 1,
			 fit->options->n_models);
	if (ctx.deadline_ns == INT64_MAX)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Fitting model %s ...", config->name);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Fitting model %s ... at most %.1f s", config->name,
			   -ag_fit_seconds(ctx.deadline_ns));
	fit->phase = phase;
	ag_progress(&fit->ctx, phase, 0.0);
	status = model_fit(fit, &ctx, m, model);
	fit->phase = NULL;
	if (status == AG_OK)
	{
		fit->n_models++;
		model_tell(fit, model);
		return AG_OK;
	}
	ag_trained_free(&fit->ctx, &model->trained);
	if (failure->status == AG_OK)
		*failure = err;
	if (status == AG_ERR_CANCELLED)
	{
		if (fit->ctx.error != NULL && fit->ctx.error->status == AG_OK)
			*fit->ctx.error = err;
		return status;
	}
	if (status == AG_ERR_TIME)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  no time left for %s", config->name);
	else
		ag_log_hint(&fit->ctx, AG_LOG_WARNING, err.hint[0] != '\0' ? err.hint : NULL,
					"model %s was left out: %s", config->name, err.message);
	return AG_OK;
}

AgStatus
ag_fit_models(AgFit *fit)
{
	AgError failure;
	int n = fit->options->n_models;

	ag_error_init(&failure);
	fit->models = ag_arena_alloc(&fit->arena, (size_t) n, sizeof *fit->models);
	if (fit->models == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) n * sizeof *fit->models, fit->ctx.error);
	fit->rows.ctx = &fit->ctx;
	fit->rows.pipeline = fit->pipeline;
	fit->rows.table = fit->table;
	AG_TRY(sample_take(fit));
	for (int m = 0; m < n; m++)
	{
		AG_TRY(ag_check_cancel(&fit->ctx));
		if (ag_out_of_time(&fit->ctx))
		{
			if (fit->n_models > 0)
				ag_log(&fit->ctx, AG_LOG_NORMAL, "No time is left for %d of %d models", n - m, n);
			break;
		}
		AG_TRY(model_run(fit, m, &failure));
	}
	if (fit->n_models > 0)
		return AG_OK;
	if (failure.status == AG_OK || failure.status == AG_ERR_TIME)
		return ag_fit_time_error(fit, fit->ctx.error);
	if (fit->ctx.error != NULL && fit->ctx.error->status == AG_OK)
		*fit->ctx.error = failure;
	return failure.status;
}
