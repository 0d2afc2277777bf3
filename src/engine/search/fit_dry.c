/*
 * fit_dry.c - a fit that is only planned: what would be fitted, on what, with how much memory and time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"
#include "engine/search/json.h"

typedef struct Dry
{
	AgFit *fit;
	AgWriter out;
	bool first_model;
	double left;      /* seconds of the level that no model has yet */
	AgTrainData data; /* of the first training, as far as memory goes by it */
	AgBins bins;
} Dry;

/* Bins as full as they can be: nothing is binned in earnest. */
static AgStatus
data_make(Dry *dry)
{
	AgFit *fit = dry->fit;
	const AgPipeline *pipeline = fit->pipeline;
	AgBins *bins = &dry->bins;

	bins->n_rows = fit->n_rows;
	bins->column_stride = fit->n_rows + 4096;
	bins->n_features = pipeline->n_visible;
	bins->row_stride = (bins->n_features + 4 + 31) / 32 * 32;
	bins->features =
		ag_arena_alloc(&fit->arena, (size_t) bins->n_features + 1, sizeof *bins->features);
	if (bins->features == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) bins->n_features * sizeof *bins->features,
							fit->ctx.error);
	memset(bins->features, 0, ((size_t) bins->n_features + 1) * sizeof *bins->features);
	for (int f = 0; f < bins->n_features; f++)
	{
		bins->features[f].n_bins = fit->n_rows < AG_MAX_BIN ? (int) fit->n_rows : AG_MAX_BIN;
		bins->features[f].is_category = ag_feature_is_category(&pipeline->features[f]);
		bins->features[f].n_levels = pipeline->features[f].n_levels;
	}
	if (fit->validation.n_folds > 0)
	{
		AgSplit *split = &fit->validation.split; /* given back with the validation */

		AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof(uint32_t), &split->train_rows));
		AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof(uint32_t), &split->valid_rows));
		ag_fit_split_fold(fit, 0, 0, split);
	}
	ag_fit_train_data(fit, &fit->validation.split, &dry->data);
	dry->data.bins = bins;
	return AG_OK;
}

static void
text_write(AgWriter *out, bool *first, const char *key, const char *text)
{
	ag_json_key(out, first, key);
	ag_json_string(out, text, strlen(text));
}

/* Rounded: digits beyond these say nothing. */
static void
number_write(AgWriter *out, bool *first, const char *key, double value)
{
	ag_json_key(out, first, key);
	ag_json_number(out, isfinite(value) ? round(value * 1000.0) / 1000.0 : value);
}

static void
model_write(Dry *dry, const AgModelConfig *config, double seconds)
{
	AgFit *fit = dry->fit;
	AgFitModel model;
	int n_children;
	double mb;
	char device[AG_DEVICES_TEXT];
	const char *params;
	bool first = true;

	ag_fit_model_begin(fit, config, &model);
	params = ag_fit_params_json(fit, &model);
	ag_fit_plan_model(fit, &model);
	n_children = ag_fit_n_children(fit, &model);
	mb = (double) ag_family_memory(config, &dry->data, model.plan.cpus_per_job) *
		 model.plan.n_parallel * 1e-6;
	ag_plan_devices(fit, &model.plan, device, sizeof device);
	if (isfinite(seconds))
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Would fit %s on %s: %d %s, at most %.1f s, about %.0f MB",
			   model.name, device[0] == 'c' && device[1] == 'p' ? "the CPU" : device, n_children,
			   n_children == 1 ? "training" : "trainings", seconds, mb);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Would fit %s on %s: %d %s, about %.0f MB", model.name,
			   device[0] == 'c' && device[1] == 'p' ? "the CPU" : device, n_children,
			   n_children == 1 ? "training" : "trainings", mb);
	ag_json_raw(&dry->out, dry->first_model ? "{" : ", {");
	dry->first_model = false;
	text_write(&dry->out, &first, "model", model.name);
	text_write(&dry->out, &first, "family", config->family->key);
	number_write(&dry->out, &first, "level", fit->level);
	text_write(&dry->out, &first, "device", device);
	number_write(&dry->out, &first, "num_gpus",
				 (double) model.plan.gpu_shares / AG_GPU_SHARES * model.plan.n_parallel);
	number_write(&dry->out, &first, "num_cpus", model.plan.num_cpus);
	number_write(&dry->out, &first, "trainings", n_children);
	if (ag_fit_nested_at_most(fit) > 0)
		number_write(&dry->out, &first, "nested_trainings_at_most", ag_fit_nested_at_most(fit));
	number_write(&dry->out, &first, "memory_mb", mb);
	number_write(&dry->out, &first, "seconds_at_most", seconds);
	ag_json_key(&dry->out, &first, "hyperparameters");
	ag_json_raw(&dry->out, params != NULL ? params : "null");
	ag_json_raw(&dry->out, "}");
}

/* What model after model may take if each takes all that it may. */
static AgStatus
level_write(Dry *dry, double left)
{
	AgFit *fit = dry->fit;
	int n = fit->options->n_models;

	AG_TRY(ag_fit_order_begin(fit));
	for (int m = 0; m < n; m++)
	{
		const AgModelConfig *config = ag_fit_config(fit, m);
		double seconds = ag_fit_share(fit, left, n - m - 1);

		if (!ag_fit_is_for_level(fit, config))
			continue;
		if (config->max_time_limit < seconds)
			seconds = config->max_time_limit;
		model_write(dry, config, seconds);
		left -= seconds;
	}
	return AG_OK;
}

static AgStatus
plan_write(Dry *dry, int64_t need_bytes)
{
	AgFit *fit = dry->fit;
	const AgValidation *v = &fit->validation;
	AgWriter *out = &dry->out;
	bool first = true;
	double left = fit->ctx.deadline_ns == INT64_MAX ? (double) INFINITY
													: -ag_fit_seconds(ag_fit_models_deadline(fit));

	ag_json_raw(out, "{");
	text_write(out, &first, "problem_type", ag_problem_name(fit->label->problem));
	text_write(out, &first, "eval_metric", ag_metric_name(fit->metric));
	number_write(out, &first, "rows", (double) fit->n_rows);
	number_write(out, &first, "rows_left_out", (double) fit->n_left_out);
	number_write(out, &first, "rows_scored", (double) v->n_scored);
	number_write(out, &first, "features", fit->pipeline->n_visible);
	number_write(out, &first, "num_bag_folds", v->n_folds);
	number_write(out, &first, "num_bag_sets", v->n_folds > 0 ? v->n_sets : 1);
	number_write(out, &first, "stack_levels", fit->n_levels);
	number_write(out, &first, "num_cpus", ag_pool_size(fit->ctx.pool));
	number_write(out, &first, "time_limit", fit->promised_seconds);
	number_write(out, &first, "memory_mb", (double) need_bytes * 1e-6);
	number_write(out, &first, "memory_limit_mb", (double) fit->ctx.mem->limit_bytes * 1e-6);
	if (ag_fit_wants_trial(fit) && isfinite(left))
		number_write(out, &first, "trial_seconds_at_most",
					 -ag_fit_seconds(fit->ctx.deadline_ns) * fit->options->trial_time_frac);
	ag_json_key(out, &first, "models");
	ag_json_raw(out, "[");
	for (fit->level = 1; fit->level <= fit->n_levels; fit->level++)
		AG_TRY(level_write(dry, left / fit->n_levels));
	ag_json_raw(out, "]}");
	return AG_OK;
}

AgStatus
ag_fit_dry_run(AgFit *fit, int64_t need_bytes)
{
	AgFittedPredictor predictor;
	AgStatus status;
	Dry dry = {.fit = fit, .first_model = true};

	fit->level = 1;
	AG_TRY(ag_fit_tell_left_out(fit));
	fit->least_share =
		ag_fit_booster_seconds(fit) * (fit->validation.n_folds > 0 ? fit->validation.n_folds : 1);
	AG_TRY(data_make(&dry));
	ag_writer_init(&dry.out, fit->ctx.mem);
	status = plan_write(&dry, need_bytes);
	if (status != AG_OK)
	{
		ag_writer_free(&dry.out);
		return status;
	}
	memset(&predictor, 0, sizeof predictor);
	predictor.problem = fit->label->problem;
	predictor.eval_metric = fit->metric;
	predictor.n_rows = fit->n_rows;
	predictor.n_rows_left_out = fit->n_left_out;
	predictor.n_classes = fit->label->n_classes;
	predictor.classes = fit->label->classes;
	predictor.best_model = "none"; /* a message has one */
	predictor.score_val = (double) NAN;
	predictor.plan_json = ag_json_take(&dry.out, &fit->arena);
	if (predictor.plan_json == NULL)
		return ag_mem_error(fit->ctx.mem, 0, fit->ctx.error);
	predictor.warnings = fit->warnings;
	predictor.n_warnings = fit->n_warnings;
	predictor.fit_seconds = ag_fit_seconds(fit->job->started_ns);
	return fit->sink->predictor(fit->sink->host, &predictor);
}
