/*
 * fit_search.c - trials of a search during the fit: what each one tries, and which of them the levels above have.
 *
 * A trial is fitted, validated and stored like any other model, with bags as a bag. What it tries is decided when its turn comes.
 */
#include <math.h>
#include <string.h>

#include "engine/search/fit_state.h"
#include "engine/search/json.h"
#include "engine/search/search.h"

/* Scores of the trials before it; how many there are. */
static int
scores_gather(const AgFit *fit, const AgModelConfig *config, double *scores)
{
	int n = 0;

	for (int t = 0; t < config->trial - 1; t++)
		scores[t] = (double) NAN;
	for (int i = 0; i < fit->n_models; i++)
	{
		const AgFitModel *model = &fit->models[i];

		if (model->config->search != config->search || model->config->trial >= config->trial ||
			!isfinite(model->value))
			continue;
		scores[model->config->trial - 1] = ag_metric_score(fit->metric, model->value);
		n++;
	}
	return n;
}

AgStatus
ag_fit_search_begin(AgFit *fit, const AgContext *ctx, const AgModelConfig *config)
{
	AgSearch *search = config->search;
	double *scores, *point;
	char text[256];
	AgStatus status;

	/* of a fit that is repeated, and of the levels above, they are known */
	if (search == NULL || fit->level > 1 || fit->options->replay != NULL)
		return AG_OK;
	point = search->points + (size_t) (config->trial - 1) * (size_t) search->n_dims;
	AG_TRY(ag_get(ctx, (size_t) config->trial, sizeof *scores, &scores));
	if (scores_gather(fit, config, scores) >= 2 && search->is_bayes &&
		config->trial > ag_search_warmup(search))
		AG_GO(ag_search_propose(ctx, search, config->trial, scores, point));
	else
		ag_search_draw(search, config->trial, point);
	ag_log(&fit->ctx, AG_LOG_NORMAL, "  tries %s",
		   ag_search_text(search, point, text, sizeof text));
	status = ag_search_set(search, point, config->params, ctx->error);
done:
	ag_mem_free(ctx->mem, scores);
	return status;
}

bool
ag_fit_search_goes_up(const AgFit *fit, const AgModelConfig *config)
{
	const AgFitModel *best = NULL;

	if (config->search == NULL || fit->options->replay != NULL)
		return true;
	for (int i = 0; i < fit->n_models; i++)
	{
		const AgFitModel *model = &fit->models[i];

		if (model->level == 1 && model->config->search == config->search &&
			isfinite(model->value) &&
			(best == NULL || ag_metric_score(fit->metric, model->value) >
								 ag_metric_score(fit->metric, best->value)))
			best = model;
	}
	if (best == NULL && fit->options->dry_run) /* one of them, whichever it will be */
		return config->trial == 1;
	return best != NULL && best->config == config;
}

void
ag_fit_search_write(const AgFit *fit, AgWriter *out)
{
	bool is_first = true;

	ag_json_raw(out, "[");
	for (int m = 0; m < fit->options->n_models; m++)
	{
		const AgModelConfig *config = &fit->options->models[m];
		const AgSearch *search = config->search;
		bool first = true;

		if (search == NULL)
			continue;
		ag_json_raw(out, is_first ? "{" : ", {");
		is_first = false;
		ag_json_key(out, &first, "name");
		ag_json_string(out, config->name, strlen(config->name));
		ag_json_key(out, &first, "point");
		for (int d = 0; d < search->n_dims; d++)
		{
			ag_json_raw(out, d == 0 ? "[" : ", ");
			ag_json_number(out,
						   search->points[(size_t) (config->trial - 1) * (size_t) search->n_dims +
										  (size_t) d]);
		}
		ag_json_raw(out, "]}");
	}
	ag_json_raw(out, "]");
}
