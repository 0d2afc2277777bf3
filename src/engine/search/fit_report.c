/*
 * fit_report.c - the results on their way to the host: predictor, features, members, images.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/stacked.h"
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
	predictor.decision_threshold = fit->threshold;
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
			return ag_pipeline_text_kind(input);
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

/* "category of 12 levels", "number, year, month": a word a feature, but for those that come by the dozen. */
static char *
became_of(AgFit *fit, int input)
{
	const AgPipeline *pipeline = fit->pipeline;
	char text[1024] = "";
	size_t at = 0;

	for (int f = 0; f < pipeline->n_features && at < sizeof text; f++)
	{
		const AgFeature *feature = &pipeline->features[f];

		if (feature->input == input)
			at += ag_feature_became(pipeline, f, at > 0 ? ", " : "", text + at, sizeof text - at);
	}
	if (at >= sizeof text)
		text[ag_utf8_clip(text, sizeof text - 1, sizeof text - 2)] = '\0';
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

static int
ordinal_of(const AgFitMember *members, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(members[i].member.name, name) == 0)
			return members[i].member.ordinal;
	return 0;
}

/* A stacker's image, with what it looks at: ordinals are known only now. */
static AgStatus
report_stacked(AgFit *fit, const AgFitMember *members, int n, const AgFitMember *one)
{
	const AgFittedMember *member = &one->member;
	AgStacked stacked = {NULL, (uint32_t) member->n_inputs, one->image, one->n_image};
	uint32_t *inputs;
	AgWriter out;
	AgStatus status;

	AG_TRY(ag_get(&fit->ctx, (size_t) member->n_inputs, sizeof *inputs, &inputs));
	for (int i = 0; i < member->n_inputs; i++)
		inputs[i] = (uint32_t) ordinal_of(members, n, member->input_names[i]);
	stacked.inputs = inputs;
	ag_writer_init(&out, fit->ctx.mem);
	AG_GO(ag_stacked_write(&fit->ctx, &stacked, &out));
	AG_GO(fit->sink->image(fit->sink->host, member->ordinal, out.data, out.size));
done:
	ag_writer_free(&out);
	ag_mem_free(fit->ctx.mem, inputs);
	return status;
}

/* The pipeline's image first, as member 0. */
static AgStatus
report_images(AgFit *fit, const AgFitMember *members, int n)
{
	AgWriter out;
	AgStatus status;

	ag_writer_init(&out, fit->ctx.mem);
	AG_GO(ag_pipeline_write(&fit->ctx, fit->pipeline, &out));
	AG_GO(fit->sink->image(fit->sink->host, 0, out.data, out.size));
	for (int i = 0; i < n; i++)
		if (members[i].is_stacked)
			AG_GO(report_stacked(fit, members, n, &members[i]));
		else if (members[i].image != NULL)
			AG_GO(fit->sink->image(fit->sink->host, members[i].member.ordinal, members[i].image,
								   members[i].n_image));
	out.size = 0;
	AG_GO(ag_fit_oof_write(fit, &out));
	if (out.size > 0)
		AG_GO(fit->sink->image(fit->sink->host, AG_OOF_MEMBER, out.data, out.size));
done:
	ag_writer_free(&out);
	return status;
}

AgStatus
ag_fit_report(AgFit *fit)
{
	AgFitMember *members;
	int n;

	ag_progress(&fit->ctx, "storing", -1.0);
	AG_TRY(ag_check_cancel(&fit->ctx));
	AG_TRY(ag_fit_members(fit, &members, &n));
	AG_TRY(report_predictor(fit));
	for (int i = 0; i < fit->pipeline->n_inputs; i++)
		AG_TRY(report_feature(fit, i));
	for (int i = 0; i < n; i++)
		AG_TRY(fit->sink->member(fit->sink->host, &members[i].member));
	return report_images(fit, members, n);
}
