/*
 * fit_plan.c - what was asked for and what was done, as JSON.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/search/fit_state.h"
#include "engine/search/json.h"

static double
param_value(const AgParamSpec *spec, const void *params)
{
	const char *at = (const char *) params + spec->offset;
	double real;
	int integer;
	bool flag;

	switch (spec->type)
	{
		case AG_PARAM_REAL:
			memcpy(&real, at, sizeof real);
			return real;
		case AG_PARAM_BOOL:
			memcpy(&flag, at, sizeof flag);
			return flag;
		case AG_PARAM_INT:
		case AG_PARAM_CHOICE:
		case AG_PARAM_CHOICE_NUMBER: /* its first field */
			break;
		case AG_PARAM_INTS:
			return 0.0;
	}
	memcpy(&integer, at, sizeof integer);
	return integer;
}

static void
ints_write(AgWriter *out, const AgParamSpec *spec, const void *params)
{
	AgParamInts list;

	memcpy(&list, (const char *) params + spec->offset, sizeof list);
	ag_json_raw(out, "[");
	for (int i = 0; i < list.n; i++)
	{
		if (i > 0)
			ag_json_raw(out, ", ");
		ag_json_number(out, list.values[i]);
	}
	ag_json_raw(out, "]");
}

/* "word:key=number", the number only where there is one. */
static void
choice_write(AgWriter *out, const AgParamSpec *spec, const void *params, const char *word,
			 size_t n_word)
{
	AgParamChoice choice;
	char text[160];
	size_t n_name = n_word;

	memcpy(&choice, (const char *) params + spec->offset, sizeof choice);
	if (isnan(choice.number))
		for (n_name = 0; n_name < n_word && word[n_name] != ':'; n_name++)
			;
	snprintf(text, sizeof text, "%.*s", (int) n_name, word);
	if (!isnan(choice.number))
		snprintf(text + strlen(text), sizeof text - strlen(text), "%.17g", choice.number);
	ag_json_string(out, text, strlen(text));
}

static void
params_write(AgWriter *out, const AgFitModel *model)
{
	const AgModelConfig *config = model->config;
	const AgFamily *family = config->family;
	bool first = true;

	ag_json_raw(out, "{");
	for (int i = 0; i < *family->n_specs; i++)
	{
		const AgParamSpec *spec = &family->specs[i];
		double value = param_value(spec, config->params);
		size_t n_word = 0;
		const char *word = NULL;

		if (spec->choices != NULL)
			word = ag_param_word(spec, value, &n_word);
		ag_json_key(out, &first, spec->name);
		if (spec->type == AG_PARAM_BOOL)
			ag_json_raw(out, value != 0.0 ? "true" : "false");
		else if (word != NULL && spec->type == AG_PARAM_CHOICE_NUMBER)
			choice_write(out, spec, config->params, word, n_word);
		else if (word != NULL)
			ag_json_string(out, word, n_word);
		else if (spec->type == AG_PARAM_INTS)
			ints_write(out, spec, config->params);
		else
			ag_json_number(out, value);
	}
	if (family->stops_early)
	{
		ag_json_key(out, &first, "ag.early_stop");
		if (config->early_stop < 0)
			ag_json_raw(out, "\"adaptive\"");
		else if (config->early_stop == 0)
			ag_json_raw(out, "null");
		else
			ag_json_number(out, config->early_stop);
	}
	if (model->is_out_of_bag)
	{
		ag_json_key(out, &first, "ag.ens.use_child_oof");
		ag_json_raw(out, "true");
	}
	ag_json_raw(out, "}");
}

char *
ag_fit_params_json(AgFit *fit, const AgFitModel *model)
{
	AgWriter out;

	ag_writer_init(&out, fit->ctx.mem);
	params_write(&out, model);
	return ag_json_take(&out, &fit->arena);
}

static void
points_write(AgWriter *out, bool *first, const char *key, const AgHistory *history, bool values)
{
	ag_json_key(out, first, key);
	for (int i = 0; i < history->n; i++)
	{
		char text[32];

		ag_json_raw(out, i == 0 ? "[" : ",");
		/* to look at: a few digits are enough, and 17 would be most of a small predictor's bytes */
		if (!values || isfinite(history->valid[i]))
			snprintf(text, sizeof text, "%.7g", values ? history->valid[i] : history->round[i]);
		else
			snprintf(text, sizeof text, "null");
		ag_json_raw(out, text);
	}
	ag_json_raw(out, "]");
}

char *
ag_fit_history_json(AgFit *fit, const AgHistory *history)
{
	AgWriter out;
	bool first = true;

	ag_writer_init(&out, fit->ctx.mem);
	ag_json_raw(&out, "{");
	ag_json_key(&out, &first, "metric");
	ag_json_string(&out, ag_metric_name(history->metric), strlen(ag_metric_name(history->metric)));
	points_write(&out, &first, "iteration", history, false);
	points_write(&out, &first, "val", history, true);
	ag_json_raw(&out, "}");
	return ag_json_take(&out, &fit->arena);
}

static void
key_text(AgWriter *out, bool *first, const char *name, const char *text)
{
	ag_json_key(out, first, name);
	if (text == NULL)
		ag_json_raw(out, "null");
	else
		ag_json_string(out, text, strlen(text));
}

static void
key_flag(AgWriter *out, bool *first, const char *name, bool flag)
{
	ag_json_key(out, first, name);
	ag_json_raw(out, flag ? "true" : "false");
}

static void
key_number(AgWriter *out, bool *first, const char *name, double value)
{
	ag_json_key(out, first, name);
	ag_json_number(out, value);
}

/* One number, or of a bag one a child. */
static void
rounds_write(AgWriter *out, bool *first, const char *name, const AgFitModel *model, bool kept)
{
	ag_json_key(out, first, name);
	if (model->is_bag)
		ag_json_raw(out, "[");
	for (int c = 0; c < model->n_children; c++)
	{
		if (c > 0)
			ag_json_raw(out, ", ");
		ag_json_number(out, kept ? model->children[c].rounds : model->children[c].rounds_run);
	}
	if (model->is_bag)
		ag_json_raw(out, "]");
}

/* What ended the children, where it was the same for all. */
static const char *
ended_by(const AgFitModel *model)
{
	const char *text = model->children[0].ended_by;

	for (int c = 1; c < model->n_children && text != NULL; c++)
		if (model->children[c].ended_by == NULL || strcmp(model->children[c].ended_by, text) != 0)
			text = "various";
	return text;
}

static void
model_write(AgWriter *out, const AgFitModel *model)
{
	char devices[AG_DEVICES_TEXT];
	bool first = true;

	ag_json_raw(out, "{");
	key_text(out, &first, "name", model->name);
	key_text(out, &first, "family", model->config->family->key);
	if (model->is_bag)
		key_number(out, &first, "children", model->n_children);
	if (model->children[0].rounds >= 0)
	{
		rounds_write(out, &first, "rounds", model, true);
		rounds_write(out, &first, "rounds_run", model, false);
	}
	if (model->full.image != NULL && model->full.rounds >= 0)
		key_number(out, &first, "rounds_full", model->full.rounds);
	if (model->has_all_rows)
		key_flag(out, &first, "all_rows", true);
	if (model->n_sample > 0)
		key_number(out, &first, "sample", (double) model->n_sample);
	key_text(out, &first, "stopped_by", ended_by(model));
	ag_trained_devices(model->children, model->n_children, devices, sizeof devices);
	key_text(out, &first, "device", devices);
	ag_json_key(out, &first, "params");
	params_write(out, model);
	ag_json_raw(out, "}");
}

/* As asked for. */
static void
quantiles_write(AgWriter *out, bool *first, const AgFitOptions *options)
{
	ag_json_key(out, first, "quantile_levels");
	ag_json_raw(out, "[");
	for (int i = 0; i < options->n_quantiles; i++)
	{
		if (i > 0)
			ag_json_raw(out, ", ");
		ag_json_number(out, options->quantiles[options->quantile_order[i]]);
	}
	ag_json_raw(out, "]");
}

static void
monotone_write(AgWriter *out, bool *first, const AgMonotone *monotone)
{
	bool first_column = true;

	ag_json_key(out, first, "monotone_constraints");
	ag_json_raw(out, "{");
	for (int i = 0; i < monotone->n; i++)
		key_number(out, &first_column, monotone->columns[i], monotone->directions[i]);
	ag_json_raw(out, "}");
}

static void
options_write(AgWriter *out, const AgFit *fit)
{
	const AgFitOptions *options = fit->options;
	bool first = true;

	ag_json_raw(out, "{");
	key_text(out, &first, "problem_type", ag_problem_name(fit->label->problem));
	if (options->n_quantiles > 0)
		quantiles_write(out, &first, options);
	if (options->monotone != NULL)
		monotone_write(out, &first, options->monotone);
	key_text(out, &first, "eval_metric", ag_metric_name(fit->metric));
	key_number(out, &first, "time_limit", fit->promised_seconds);
	key_number(out, &first, "holdout_frac", fit->validation.fraction);
	key_number(out, &first, "num_bag_folds", fit->validation.n_folds);
	key_number(out, &first, "num_bag_sets",
			   fit->validation.n_folds > 0 ? fit->validation.n_sets : 1);
	key_number(out, &first, "num_stack_levels", fit->n_levels - 1);
	ag_json_key(out, &first, "random_state");
	{
		char digits[24];
		size_t at = sizeof digits - 1;
		uint64_t seed = options->random_state;

		/* beyond 2^53 a double would lose digits */
		digits[at] = '\0';
		do
			digits[--at] = (char) ('0' + seed % 10);
		while ((seed /= 10) != 0);
		ag_json_raw(out, digits + at);
	}
	key_text(out, &first, "positive_class", options->positive_class);
	key_text(out, &first, "time_zone", fit->job->time_zone);
	ag_json_key(out, &first, "ignored_columns");
	ag_json_raw(out, "[");
	for (int i = 0; i < options->n_ignored; i++)
	{
		if (i > 0)
			ag_json_raw(out, ", ");
		ag_json_string(out, options->ignored_columns[i], strlen(options->ignored_columns[i]));
	}
	ag_json_raw(out, "]");
	ag_json_key(out, &first, "_feature_generator_kwargs");
	ag_json_raw(out, "{");
	first = true;
	key_flag(out, &first, "enable_text_special_features", options->features.text_special);
	key_flag(out, &first, "enable_text_ngram_features", options->features.text_ngram);
	ag_json_raw(out, "}}");
}

/* A bag's children leave out one fold each; together they see all rows. */
static int64_t
rows_trained(const AgFit *fit)
{
	if (fit->validation.is_held_out)
		return fit->n_rows - fit->validation.n_scored;
	return fit->validation.n_folds > 0 ? fit->n_rows : fit->validation.split.n_train;
}

char *
ag_fit_plan_json(AgFit *fit)
{
	AgWriter out;
	const AgFitEnsemble *ensemble =
		fit->n_ensembles > 0 ? &fit->ensembles[fit->n_ensembles - 1] : NULL;
	bool first = true, first_weight = true;

	ag_writer_init(&out, fit->ctx.mem);
	ag_json_raw(&out, "{");
	ag_json_key(&out, &first, "options");
	options_write(&out, fit);
	ag_json_key(&out, &first, "rows");
	ag_json_raw(&out, "{");
	{
		bool first_row = true;

		key_number(&out, &first_row, "train", (double) rows_trained(fit));
		key_number(&out, &first_row, "validation", (double) fit->validation.n_scored);
		key_number(&out, &first_row, "left_out", (double) fit->n_left_out);
	}
	ag_json_raw(&out, "}");
	key_number(&out, &first, "num_cpus", fit->job->num_cpus);
	ag_json_key(&out, &first, "models");
	ag_json_raw(&out, "[");
	for (int i = 0; i < fit->n_models; i++)
	{
		if (i > 0)
			ag_json_raw(&out, ", ");
		model_write(&out, &fit->models[i]);
	}
	ag_json_raw(&out, "]");
	ag_json_key(&out, &first, "ensemble");
	ag_json_raw(&out, "{");
	for (int i = 0; ensemble != NULL && i < ensemble->n_models; i++)
		if (ensemble->weights[i] > 0.0)
			key_number(&out, &first_weight, fit->models[i].name, ensemble->weights[i]);
	ag_json_raw(&out, "}");
	ag_json_key(&out, &first, "replay");
	ag_fit_replay_write(fit, &out);
	ag_json_key(&out, &first, "failures");
	ag_fit_failures_write(fit, &out);
	ag_json_raw(&out, "}");
	return ag_json_take(&out, &fit->arena);
}
