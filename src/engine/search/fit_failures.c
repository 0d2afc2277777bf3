/*
 * fit_failures.c - models that a fit was asked for and went without: kept for ag_model_failures.
 */
#include <string.h>

#include "engine/search/fit_state.h"
#include "engine/search/json.h"

/* Keeping it must not fail a fit that goes on: without memory the model is only told of in the log. */
void
ag_fit_failure_add(AgFit *fit, const AgFitModel *model, AgStatus status, const char *message)
{
	AgFitFailure *failure = ag_arena_alloc(&fit->arena, 1, sizeof *failure);
	char *copy = ag_arena_strndup(&fit->arena, message, strlen(message));
	char *name = ag_arena_strndup(&fit->arena, model->name, strlen(model->name));

	if (failure == NULL || copy == NULL || name == NULL)
		return;
	failure->name = name;
	failure->family = model->config->family->key;
	failure->status = status;
	failure->message = copy;
	failure->seconds = fit->model_began_ns != 0 ? ag_fit_seconds(fit->model_began_ns) : 0.0;
	failure->next = NULL;
	if (fit->last_failure != NULL)
		fit->last_failure->next = failure;
	else
		fit->failures = failure;
	fit->last_failure = failure;
}

static const char *
kind_of(AgStatus status)
{
	switch (status)
	{
		case AG_ERR_TIME:
			return "time";
		case AG_ERR_MEMORY:
			return "memory";
		case AG_ERR_DATA:
			return "data";
		case AG_ERR_OPTION:
		case AG_ERR_UNSUPPORTED:
			return "option";
		default:
			return "error";
	}
}

static void
text_write(AgWriter *out, bool *first, const char *key, const char *text)
{
	ag_json_key(out, first, key);
	ag_json_string(out, text, strlen(text));
}

void
ag_fit_failures_write(const AgFit *fit, AgWriter *out)
{
	ag_json_raw(out, "[");
	for (const AgFitFailure *f = fit->failures; f != NULL; f = f->next)
	{
		bool first = true;

		ag_json_raw(out, f == fit->failures ? "{" : ", {");
		text_write(out, &first, "model", f->name);
		text_write(out, &first, "family", f->family);
		text_write(out, &first, "reason", kind_of(f->status));
		text_write(out, &first, "message", f->message);
		ag_json_key(out, &first, "seconds");
		ag_json_number(out, f->seconds);
		ag_json_raw(out, "}");
	}
	ag_json_raw(out, "]");
}
