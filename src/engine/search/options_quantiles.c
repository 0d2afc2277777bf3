/*
 * options_quantiles.c - the levels of quantile regression, and the models that can't do what is asked for.
 */
#include "engine/search/options_models.h"

#include <stdio.h>
#include <string.h>

#define LEVELS "an array of 1 to 100 different numbers between 0 and 1"

static AgStatus
levels_make(AgFitOptions *options, int n, AgError *err)
{
	options->quantiles = ag_arena_alloc(&options->arena, (size_t) n, sizeof(double));
	options->quantile_order = ag_arena_alloc(&options->arena, (size_t) n, sizeof(int));
	if (options->quantiles == NULL || options->quantile_order == NULL)
		return ag_mem_error(options->arena.mem, (size_t) n * sizeof(double), err);
	return AG_OK;
}

AgStatus
ag_quantiles_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	double asked[AG_MAX_QUANTILES];
	int n = 0;

	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, LEVELS, err);
	if (node->n_children < 1 || node->n_children > AG_MAX_QUANTILES)
		return ag_error_set(err, AG_ERR_OPTION,
							"option \"quantile_levels\" takes " LEVELS ", not an array of %d",
							node->n_children);
	for (const AgOptionNode *item = node->first; item != NULL && n < AG_MAX_QUANTILES;
		 item = item->next, n++)
	{
		if (!ag_option_number(item, &asked[n]) || !(asked[n] > 0.0 && asked[n] < 1.0))
			return ag_option_reject(item, "a number between 0 and 1", err);
		for (int i = 0; i < n; i++)
			if (asked[i] == asked[n])
				return ag_error_set(err, AG_ERR_OPTION,
									"option \"quantile_levels\" has the level %.10g twice",
									asked[n]);
	}
	AG_TRY(levels_make(options, n, err));
	options->n_quantiles = n;
	for (int i = 0; i < n; i++)
	{
		int place = 0;

		for (int k = 0; k < n; k++)
			place += asked[k] < asked[i];
		options->quantiles[place] = asked[i];
		options->quantile_order[i] = place;
	}
	return AG_OK;
}

AgStatus
ag_quantiles_check(AgFitOptions *options, AgError *err)
{
	if (options->problem != AG_PROBLEM_QUANTILE)
	{
		if (options->n_quantiles == 0)
			return AG_OK;
		ag_error_set(err, AG_ERR_OPTION,
					 "option \"quantile_levels\" needs \"problem_type\": \"quantile\"");
		return AG_ERR_OPTION;
	}
	if (options->n_quantiles > 0)
		return AG_OK;
	AG_TRY(levels_make(options, 9, err));
	options->n_quantiles = 9;
	for (int i = 0; i < 9; i++)
	{
		options->quantiles[i] = (i + 1) / 10.0;
		options->quantile_order[i] = i;
	}
	return AG_OK;
}

/* Why a family can't do what the options ask for; NULL: it can. */
static const char *
obstacle(const AgFitOptions *options, const AgFamily *family)
{
	if (options->problem == AG_PROBLEM_QUANTILE && family->no_quantiles != NULL)
		return family->no_quantiles;
	return options->monotone != NULL && !family->keeps_monotone
			   ? "it does not keep monotone constraints"
			   : NULL;
}

AgStatus
ag_models_leave_out(AgFitOptions *options, AgError *err)
{
	int n = options->n_models, n_kept = 0;

	options->left_out = ag_arena_alloc(&options->arena, (size_t) n, sizeof *options->left_out);
	if (options->left_out == NULL)
		return ag_mem_error(options->arena.mem, (size_t) n * sizeof *options->left_out, err);
	for (int i = 0; i < n; i++)
	{
		const AgModelConfig *model = &options->models[i];
		const char *why = obstacle(options, model->family);
		AgLeftOut *left_out = &options->left_out[options->n_left_out];

		if (model->monotone != NULL &&
			(model->prep.target || model->prep.crosses || model->prep.group_by))
			return ag_error_set(
				err, AG_ERR_OPTION,
				"\"prep_params\" of model \"%s\" do not go with monotone constraints", model->name);
		if (why == NULL)
		{
			options->models[n_kept++] = *model;
			continue;
		}
		snprintf(left_out->name, sizeof left_out->name, "%s", model->name);
		left_out->why = why;
		options->n_left_out++;
	}
	options->n_models = n_kept;
	if (n_kept > 0)
		return AG_OK;
	ag_error_set(err, AG_ERR_UNSUPPORTED, "model \"%s\" can't be fitted: %s",
				 options->left_out[0].name, options->left_out[0].why);
	ag_error_hint(err, "Add another model family, such as GBM.");
	return AG_ERR_UNSUPPORTED;
}
