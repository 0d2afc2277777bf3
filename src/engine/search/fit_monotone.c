/*
 * fit_monotone.c - from columns with a direction to features with one.
 */
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/search/fit_state.h"

/* The feature that a column became, when it is the number itself and nothing else is made of it; -1: other; -2: it was dropped. */
static int
feature_of(const AgPipeline *pipeline, int input)
{
	int found = -2;

	for (int f = 0; f < pipeline->n_features; f++)
	{
		const AgFeature *feature = &pipeline->features[f];

		if (feature->input != input &&
			!(feature->kind == AG_FEATURE_SINCE && feature->other == input))
			continue;
		if (found >= 0 || feature->kind != AG_FEATURE_NUMBER)
			return -1;
		found = f;
	}
	return found;
}

static AgStatus
no_feature(const AgFit *fit, const char *column)
{
	AgNearest nearest;

	ag_nearest_init(&nearest, column);
	for (int i = 0; i < fit->pipeline->n_inputs; i++)
		ag_nearest_offer(&nearest, fit->pipeline->inputs[i].name);
	ag_error_set(fit->ctx.error, AG_ERR_OPTION,
				 "option \"monotone_constraints\" names column \"%s\", which is no feature",
				 column);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(fit->ctx.error, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	return AG_ERR_OPTION;
}

static AgStatus
directions_set(const AgFit *fit, const AgMonotone *monotone, int8_t *directions)
{
	const AgPipeline *pipeline = fit->pipeline;

	for (int i = 0; i < monotone->n; i++)
	{
		int input = 0, feature;

		while (input < pipeline->n_inputs &&
			   strcmp(pipeline->inputs[input].name, monotone->columns[i]) != 0)
			input++;
		if (input == pipeline->n_inputs)
			return no_feature(fit, monotone->columns[i]);
		feature = feature_of(pipeline, input);
		if (feature == -1 && monotone->directions[i] != 0)
			return ag_error_set(
				fit->ctx.error, AG_ERR_OPTION,
				"option \"monotone_constraints\" names column \"%s\" of type %s, which "
				"models don't see as one number",
				monotone->columns[i], pipeline->inputs[input].sql_type);
		if (feature >= 0 && directions != NULL)
			directions[feature] = monotone->directions[i];
	}
	return AG_OK;
}

bool
ag_fit_is_monotone(const AgFit *fit)
{
	for (int m = 0; m < fit->options->n_models; m++)
		if (fit->options->models[m].monotone != NULL)
			return true;
	return false;
}

AgStatus
ag_fit_check_monotone(AgFit *fit)
{
	for (int m = 0; m < fit->options->n_models; m++)
	{
		const AgMonotone *monotone = fit->options->models[m].monotone;

		if (monotone == NULL)
			continue;
		AG_TRY(directions_set(fit, monotone, NULL));
	}
	if (ag_fit_is_monotone(fit) && fit->label->problem != AG_PROBLEM_REGRESSION &&
		fit->label->problem != AG_PROBLEM_BINARY)
		return ag_error_set(fit->ctx.error, AG_ERR_OPTION,
							"option \"monotone_constraints\" does not go with a %s problem",
							ag_problem_name(fit->label->problem));
	return AG_OK;
}

AgStatus
ag_fit_monotone(const AgFit *fit, const AgContext *ctx, const AgModelConfig *config,
				int8_t **directions)
{
	size_t n = (size_t) fit->pipeline->n_features;

	*directions = NULL;
	if (config->monotone == NULL)
		return AG_OK;
	AG_TRY(ag_get_zeroed(ctx, n, 1, directions));
	return directions_set(fit, config->monotone, *directions);
}
