/*
 * fit_report.c - the results on their way to the host: predictor, features, members, images.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"
#include "engine/search/json.h"

#define LEVELS_SHOWN 100
#define LEVEL_BYTES 200 /* of a level's text in the report */

static AgStatus
no_memory(AgFit *fit, size_t n)
{
	return ag_mem_error(fit->ctx.mem, n, fit->ctx.error);
}

static AgStatus
report_predictor(AgFit *fit)
{
	AgFittedPredictor predictor;
	double value;

	memset(&predictor, 0, sizeof predictor);
	predictor.problem = fit->label->problem;
	predictor.eval_metric = fit->metric;
	predictor.n_rows = fit->n_rows;
	predictor.n_rows_left_out = fit->n_left_out;
	predictor.n_classes = fit->label->n_classes;
	predictor.classes = fit->label->classes;
	predictor.best_model = ag_fit_best(fit, &value);
	predictor.score_val = ag_metric_score(fit->metric, value);
	predictor.plan_json = ag_fit_plan_json(fit);
	if (predictor.plan_json == NULL)
		return no_memory(fit, 0);
	predictor.warnings = fit->warnings;
	predictor.n_warnings = fit->n_warnings;
	predictor.fit_seconds = ag_fit_seconds(fit->job->started_ns);
	return fit->sink->predictor(fit->sink->host, &predictor);
}

static const char *
kind_of(const AgInput *input)
{
	switch (input->type)
	{
		case AG_TYPE_BOOL:
			return "boolean";
		case AG_TYPE_DATE:
		case AG_TYPE_TIMESTAMP:
			return "date";
		case AG_TYPE_TEXT:
			return input->levels != NULL ? "category" : "text";
		case AG_TYPE_INT32:
		case AG_TYPE_INT64:
		case AG_TYPE_FLOAT32:
		case AG_TYPE_FLOAT64:
		case AG_TYPE_TIME:
		case AG_TYPE_INTERVAL:
			break;
	}
	return "number";
}

/* "category of 12 levels", "number, year, month": one word a feature. */
static char *
became_of(AgFit *fit, int input)
{
	static const char *const words[] = {
		[AG_FEATURE_NUMBER] = "number",
		[AG_FEATURE_YEAR] = "year",
		[AG_FEATURE_MONTH] = "month",
		[AG_FEATURE_DAY] = "day",
		[AG_FEATURE_DAY_OF_WEEK] = "day of week",
		[AG_FEATURE_HOUR] = "hour",
		[AG_FEATURE_MINUTE] = "minute",
		[AG_FEATURE_SECOND] = "second",
	};
	char text[256] = "";
	size_t at = 0;

	for (int f = 0; f < fit->pipeline->n_features; f++)
	{
		const AgFeature *feature = &fit->pipeline->features[f];
		const char *comma = at > 0 ? ", " : "";

		if (feature->input != input || at >= sizeof text)
			continue;
		if (feature->kind == AG_FEATURE_CATEGORY)
			at += (size_t) snprintf(text + at, sizeof text - at, "%scategory of %u levels", comma,
									feature->n_levels);
		else
			at +=
				(size_t) snprintf(text + at, sizeof text - at, "%s%s", comma, words[feature->kind]);
	}
	return ag_arena_strndup(&fit->arena, text, strlen(text));
}

static char *
levels_json(AgFit *fit, const AgDictionary *levels)
{
	AgWriter out;

	ag_writer_init(&out, fit->ctx.mem);
	ag_json_raw(&out, "[");
	for (uint32_t i = 0; i < levels->n_levels && i < LEVELS_SHOWN; i++)
	{
		size_t n = ag_utf8_clip(levels->texts[i], levels->n_bytes[i], LEVEL_BYTES);

		if (i > 0)
			ag_json_raw(&out, ", ");
		ag_json_string(&out, levels->texts[i], n);
	}
	ag_json_raw(&out, "]");
	return ag_json_take(&out, &fit->arena);
}

static AgStatus
report_feature(AgFit *fit, int i)
{
	const AgInput *input = &fit->pipeline->inputs[i];
	AgFittedFeature feature;

	memset(&feature, 0, sizeof feature);
	feature.ordinal = i + 1;
	feature.column = input->name;
	feature.sql_type = input->sql_type;
	feature.kind = kind_of(input);
	feature.is_used = input->is_used;
	feature.n_missing = input->n_missing;
	feature.n_distinct = input->type == AG_TYPE_TEXT ? (int64_t) input->n_distinct : -1;
	feature.min = input->min;
	feature.max = input->max;
	feature.mean = input->mean;
	if (input->is_used)
	{
		feature.became = became_of(fit, i);
		if (feature.became == NULL)
			return no_memory(fit, 0);
	}
	else
		feature.dropped_why = input->dropped_why;
	if (input->is_used && input->levels != NULL)
	{
		feature.categories_json = levels_json(fit, input->levels);
		if (feature.categories_json == NULL)
			return no_memory(fit, 0);
	}
	return fit->sink->feature(fit->sink->host, &feature);
}

/* The name of a bag's child: "GBM_BAG_L1/S1F3". */
static void
child_name(const AgFit *fit, const AgFitModel *model, int child, char *name, size_t size)
{
	if (model->is_bag)
		snprintf(name, size, "%s/S%dF%d", model->name, child / fit->validation.n_folds + 1,
				 child % fit->validation.n_folds + 1);
	else
		snprintf(name, size, "%s", model->name);
}

/* What a model and a bag's children have in common. */
static AgStatus
member_begin(AgFit *fit, int i, AgFittedMember *member)
{
	const AgFitModel *model = &fit->models[i];

	memset(member, 0, sizeof *member);
	member->fit_order = i + 1;
	member->family = model->config->family->key;
	member->stack_level = 1;
	member->params_json = ag_fit_params_json(fit, model->config);
	if (member->params_json == NULL)
		return no_memory(fit, 0);
	member->score_val = ag_metric_score(fit->metric, model->value);
	member->device = "cpu";
	member->num_cpus = model->num_cpus;
	member->can_infer = true;
	return AG_OK;
}

/* A bag's own row: the plain mean of its children, whose times are theirs. */
static AgStatus
report_bag(AgFit *fit, int i, AgFittedMember *member)
{
	const AgFitModel *model = &fit->models[i];
	size_t n = (size_t) model->n_children;
	const char **names = ag_arena_alloc(&fit->arena, n, sizeof *names);
	double *weights = ag_arena_alloc(&fit->arena, n, sizeof *weights);

	if (names == NULL || weights == NULL)
		return no_memory(fit, n * sizeof *names);
	for (int c = 0; c < model->n_children; c++)
	{
		char name[128];

		child_name(fit, model, c, name, sizeof name);
		names[c] = ag_arena_strndup(&fit->arena, name, strlen(name));
		if (names[c] == NULL)
			return no_memory(fit, strlen(name));
		weights[c] = 1.0 / (double) n;
	}
	member->ordinal++;
	member->name = model->name;
	member->fold = 0;
	member->score_val = ag_metric_score(fit->metric, model->value);
	member->fit_seconds = member->predict_seconds = 0.0;
	member->n_inputs = model->n_children;
	member->input_names = names;
	member->input_weights = weights;
	return fit->sink->member(fit->sink->host, member);
}

/* A model, or the children of a bag and the bag; *ordinal: the last one given. */
static AgStatus
report_model(AgFit *fit, int i, int *ordinal)
{
	const AgFitModel *model = &fit->models[i];
	AgFittedMember member;

	AG_TRY(member_begin(fit, i, &member));
	for (int c = 0; c < model->n_children; c++)
	{
		char name[128];

		child_name(fit, model, c, name, sizeof name);
		member.ordinal = ++*ordinal;
		member.name = name;
		if (model->is_bag)
		{
			member.fold = c + 1;
			member.score_val = (double) NAN;
		}
		member.fit_seconds = model->children[c].fit_seconds;
		member.predict_seconds = model->predict_seconds / model->n_children;
		AG_TRY(fit->sink->member(fit->sink->host, &member));
	}
	if (!model->is_bag)
		return AG_OK;
	++*ordinal;
	return report_bag(fit, i, &member);
}

static AgStatus
report_ensemble(AgFit *fit, int ordinal)
{
	AgFittedMember member;
	const char **names = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *names);
	double *weights = ag_arena_alloc(&fit->arena, (size_t) fit->n_models, sizeof *weights);

	if (names == NULL || weights == NULL)
		return no_memory(fit, (size_t) fit->n_models * sizeof *names);
	memset(&member, 0, sizeof member);
	for (int i = 0; i < fit->n_models; i++)
		if (fit->models[i].weight > 0.0)
		{
			names[member.n_inputs] = fit->models[i].name;
			weights[member.n_inputs++] = fit->models[i].weight;
		}
	member.ordinal = ordinal;
	member.fit_order = fit->n_models + 1;
	member.name = "WeightedEnsemble_L2";
	member.family = "ENS_WEIGHTED";
	member.stack_level = 2;
	member.params_json = "{\"ensemble_size\": 25}";
	member.score_val = ag_metric_score(fit->metric, fit->ensemble_value);
	member.fit_seconds = fit->ensemble_seconds;
	member.device = "cpu";
	member.num_cpus = ag_pool_size(fit->ctx.pool);
	member.can_infer = true;
	member.input_names = names;
	member.input_weights = weights;
	return fit->sink->member(fit->sink->host, &member);
}

/* The pipeline's image first, as member 0. */
static AgStatus
report_images(AgFit *fit)
{
	AgWriter out;
	AgStatus status;
	int ordinal = 0;

	ag_writer_init(&out, fit->ctx.mem);
	AG_GO(ag_pipeline_write(&fit->ctx, fit->pipeline, &out));
	AG_GO(fit->sink->image(fit->sink->host, 0, out.data, out.size));
	for (int i = 0; i < fit->n_models; i++)
	{
		const AgFitModel *model = &fit->models[i];

		for (int c = 0; c < model->n_children; c++)
			AG_GO(fit->sink->image(fit->sink->host, ++ordinal, model->children[c].image,
								   model->children[c].n_image));
		ordinal += model->is_bag; /* a bag has no image of its own */
	}
done:
	ag_writer_free(&out);
	return status;
}

AgStatus
ag_fit_report(AgFit *fit)
{
	int ordinal = 0;

	ag_progress(&fit->ctx, "storing", -1.0);
	AG_TRY(ag_check_cancel(&fit->ctx));
	AG_TRY(report_predictor(fit));
	for (int i = 0; i < fit->pipeline->n_inputs; i++)
		AG_TRY(report_feature(fit, i));
	for (int i = 0; i < fit->n_models; i++)
		AG_TRY(report_model(fit, i, &ordinal));
	if (fit->has_ensemble)
		AG_TRY(report_ensemble(fit, ordinal + 1));
	return report_images(fit);
}
