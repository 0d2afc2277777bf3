/*
 * fit_models.c - fits the configurations one after the other, each within its share of the time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

#define TIMED_ROWS 512 /* rows that prediction is timed on */

/* "12 MB", for people. */
static double
megabytes(int64_t n_bytes)
{
	return (double) n_bytes / 1e6;
}

static bool
same_bins(const AgGbmParams *a, const AgGbmParams *b)
{
	return a->max_bin == b->max_bin && a->min_data_in_bin == b->min_data_in_bin;
}

/*
 * Models with the same binning share one matrix. The table's columns are given back with the last binning
 * that needs them.
 */
static AgStatus
bins_for(AgFit *fit, int m)
{
	const AgModelConfig *models = fit->options->models;
	const AgGbmParams *params = &models[m].gbm;
	AgBinParams bin_params;
	int64_t began = ag_clock_ns();
	bool drop = true;

	if (fit->bins_of >= 0 && same_bins(&models[fit->bins_of].gbm, params))
		return AG_OK;
	for (int i = m + 1; i < fit->options->n_models; i++)
		drop = drop && same_bins(&models[i].gbm, params);
	ag_bins_free(fit->bins);
	fit->bins = NULL;
	fit->bins_of = -1;
	bin_params.max_bins = params->max_bin - 1; /* the missing bin is one of max_bin */
	bin_params.min_data_in_bin = params->min_data_in_bin;
	bin_params.sample_rows = 200000;
	AG_TRY(ag_pipeline_bin(&fit->ctx, fit->pipeline, fit->table, &bin_params, drop, &fit->bins));
	AG_TRY(ag_bins_make_rows(&fit->ctx, fit->bins));
	fit->bins_of = m;
	ag_log(&fit->ctx, AG_LOG_RESOURCES,
		   "%d features binned to at most %d bins (%.2f s), %.1f MB in use", fit->bins->n_features,
		   bin_params.max_bins, ag_fit_seconds(began), megabytes(fit->ctx.mem->used_bytes));
	return AG_OK;
}

/*
 * A row's features as raw values that fall into its bins. The table may be gone by now, and how long a prediction takes
 * doesn't depend on where in its bin a value lies.
 */
static void
row_unbin(const AgBins *bins, int64_t row, double *features)
{
	for (int f = 0; f < bins->n_features; f++)
	{
		const AgBinFeature *feature = &bins->features[f];
		int bin = bins->columns[(size_t) f * (size_t) bins->column_stride + (size_t) row];

		if (bin == 0)
			features[f] = (double) NAN;
		else if (feature->is_category)
			features[f] = (double) (bin - 1);
		else if (bin < feature->n_bins)
			features[f] = feature->cuts[bin - 1];
		else
			features[f] = (double) INFINITY;
	}
}

/* Seconds that predicting the validation rows takes on one CPU, extrapolated from some of them. */
static AgStatus
predict_time(AgFit *fit, AgFitModel *model)
{
	const AgHoldout *h = &fit->holdout;
	int64_t n = h->n_valid < TIMED_ROWS ? h->n_valid : TIMED_ROWS;
	double *features, *scores;
	int64_t spent = 0;

	model->predict_seconds = 0.0;
	if (n == 0)
		return AG_OK;
	AG_TRY(ag_get(&fit->ctx,
				  (size_t) fit->bins->n_features + (size_t) model->trees->n_outputs * 2 + 2,
				  sizeof *features, &features));
	scores = features + fit->bins->n_features;
	for (int64_t i = 0; i < n && spent < 100000000; i++) /* 0.1 s is enough to know */
	{
		int64_t began;

		row_unbin(fit->bins, h->valid_rows[i], features);
		began = ag_clock_ns();
		ag_trees_score(model->trees, features, scores);
		ag_trees_link(model->trees, scores, scores + model->trees->n_outputs);
		spent += ag_clock_ns() - began;
		model->predict_seconds = (double) spent * 1e-9 / (double) (i + 1) * (double) h->n_valid;
	}
	ag_mem_free(fit->ctx.mem, features);
	return AG_OK;
}

static AgStatus
model_score(AgFit *fit, const AgContext *ctx, AgFitModel *model)
{
	const AgHoldout *h = &fit->holdout;
	const AgLabel *label = fit->label;
	int64_t n_values = h->n_valid * (label->n_classes > 0 ? label->n_classes : 1);

	model->value = (double) NAN;
	if (h->n_valid == 0 || model->proba == NULL)
		return AG_OK;
	for (int64_t i = 0; i < n_values; i++)
		if (!isfinite(model->proba[i]))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"its predictions of the validation rows are not finite");
	if (label->class_of != NULL)
		return ag_metric_classes(ctx, fit->metric, h->n_valid, label->n_classes, h->class_of,
								 model->proba, 0.5, NULL, &model->value);
	return ag_metric_regression(ctx, fit->metric, h->n_valid, h->target, model->proba, NULL,
								&model->value);
}

static void
train_data_set(const AgFit *fit, AgTrainData *data)
{
	memset(data, 0, sizeof *data);
	data->bins = fit->bins;
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

/* Everything that goes wrong with one model, in ctx->error, so that another may still work. */
static AgStatus
model_fit(AgFit *fit, AgContext *ctx, int m, AgFitModel *model)
{
	const AgModelConfig *config = &fit->options->models[m];
	AgTrainData data;
	AgBoostResult result;
	struct AgPool *pool = NULL;
	int64_t began = ag_clock_ns();
	AgStatus status;

	memset(&result, 0, sizeof result);
	AG_GO(pool_for(fit, config, &pool, ctx));
	model->config = config;
	model->num_cpus = ag_pool_size(ctx->pool);
	model->params = config->gbm;
	if (fit->holdout.n_valid == 0 && model->params.num_boost_round > AG_FIT_ROUNDS_UNWATCHED)
		model->params.num_boost_round = AG_FIT_ROUNDS_UNWATCHED;
	train_data_set(fit, &data);
	ag_log(&fit->ctx, AG_LOG_RESOURCES, "Fitting %s with 'num_gpus': 0, 'num_cpus': %d",
		   config->name, model->num_cpus);
	ag_log(&fit->ctx, AG_LOG_RESOURCES,
		   "  memory: %.1f MB in use, at most %.1f MB more to train, limit %.1f MB",
		   megabytes(ctx->mem->used_bytes),
		   megabytes(ag_gbm_memory(&data, &model->params, model->num_cpus)),
		   megabytes(ctx->mem->limit_bytes));
	if (fit->options->verbosity >= AG_LOG_TRACE)
	{
		const char *params = ag_fit_params_json(fit, &model->params);

		ag_log(&fit->ctx, AG_LOG_TRACE, "  parameters: %s", params != NULL ? params : "?");
	}
	AG_GO(ag_gbm_train(ctx, &data, &model->params, &result));
	model->trees = result.trees;
	model->proba = result.valid_proba;
	model->rounds = result.best_round;
	model->rounds_run = result.rounds_run;
	model->stopped_by = result.stopped_by_time                              ? "time"
						: result.stopped_by_patience                        ? "patience"
						: result.rounds_run < model->params.num_boost_round ? "want of splits"
																			: "rounds";
	result.trees = NULL;
	result.valid_proba = NULL;
	model->fit_seconds = ag_fit_seconds(began);
	AG_GO(model_score(fit, ctx, model));
	AG_GO(predict_time(fit, model));
done:
	ag_boost_result_free(ctx, &result);
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
	if (isfinite(model->value))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.5g  %s", ag_metric_score(fit->metric, model->value),
			   ag_metric_name(fit->metric));
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  %.2f s  to fit (%d rounds of %d kept, ended by %s)",
		   model->fit_seconds, model->rounds, model->rounds_run, model->stopped_by);
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
	ag_trees_free(model->trees);
	ag_mem_free(fit->ctx.mem, model->proba);
	model->trees = NULL;
	model->proba = NULL;
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
	for (int m = 0; m < n; m++)
	{
		AG_TRY(ag_check_cancel(&fit->ctx));
		if (ag_out_of_time(&fit->ctx))
		{
			if (fit->n_models > 0)
				ag_log(&fit->ctx, AG_LOG_NORMAL, "No time is left for %d of %d models", n - m, n);
			break;
		}
		AG_TRY(bins_for(fit, m));
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
