/*
 * options.c - checks the options one by one against the table, and gives them their meaning.
 */
#include "engine/search/options.h"

#include <math.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/search/options_models.h"
#include "engine/search/options_presets.h"
#include "engine/search/options_replay.h"

typedef struct OptionParser
{
	AgFitOptions *out;
	AgFitArgs args;
	const AgOptionNode *hyperparameters, *included, *excluded;
	const char *list; /* of models, by presets; NULL: the default */
	const AgOptionNode *replay;
	bool best_to_refit;    /* set_best_to_refit_full was given itself */
	bool trial_said;       /* ds_args was given */
	bool folds_saved_said; /* likewise ag_args_ensemble.save_bag_folds */
	AgError *err;
} OptionParser;

static AgStatus
out_of_memory(OptionParser *p, size_t n)
{
	return ag_mem_error(p->out->arena.mem, n, p->err);
}

static AgStatus
hint_nearest(OptionParser *p, const AgNearest *nearest)
{
	if (ag_nearest_name(nearest) != NULL)
		ag_error_hint(p->err, "Did you mean \"%s\"?", ag_nearest_name(nearest));
	return AG_ERR_OPTION;
}

static AgStatus
text_copy(OptionParser *p, const AgOptionNode *node, char **out)
{
	*out = ag_arena_strndup(&p->out->arena, node->text, strlen(node->text));
	return *out == NULL ? out_of_memory(p, strlen(node->text)) : AG_OK;
}

static AgStatus
parse_name(OptionParser *p, const AgOptionNode *node)
{
	if (node->type != AG_JSON_STRING || node->text[0] == '\0' || strlen(node->text) > 63 ||
		strpbrk(node->text, "@/") != NULL)
		return ag_option_reject(node, "a text of 1 to 63 bytes without \"@\" and \"/\"", p->err);
	return text_copy(p, node, &p->out->name);
}

/* Looked at before all others, which win over them. */
static AgStatus
parse_presets(OptionParser *p, const AgOptionNode *node)
{
	return AG_OK;
}

static AgStatus
parse_time_limit(OptionParser *p, const AgOptionNode *node)
{
	if (!ag_option_number(node, &p->out->time_limit) || p->out->time_limit <= 0.0)
		return ag_option_reject(node, "a number of seconds greater than 0", p->err);
	return AG_OK;
}

static AgStatus
parse_problem_type(OptionParser *p, const AgOptionNode *node)
{
	static const char *const names[] = {"binary", "multiclass", "regression", "quantile"};
	AgNearest nearest;

	if (node->type == AG_JSON_STRING)
	{
		if (strcmp(node->text, "softclass") == 0)
			return ag_error_set(p->err, AG_ERR_UNSUPPORTED,
								"problem type \"%s\" is not supported yet", node->text);
		for (int i = 0; i < 4; i++)
			if (strcmp(node->text, names[i]) == 0)
			{
				p->out->problem = (AgProblem) (AG_PROBLEM_BINARY + i);
				return AG_OK;
			}
	}
	ag_option_reject(node, "\"binary\", \"multiclass\", \"regression\" or \"quantile\"", p->err);
	if (node->type != AG_JSON_STRING)
		return AG_ERR_OPTION;
	ag_nearest_init(&nearest, node->text);
	for (int i = 0; i < 4; i++)
		ag_nearest_offer(&nearest, names[i]);
	return hint_nearest(p, &nearest);
}

static AgStatus
parse_quantile_levels(OptionParser *p, const AgOptionNode *node)
{
	return ag_quantiles_parse(node, p->out, p->err);
}

static AgStatus
parse_monotone_constraints(OptionParser *p, const AgOptionNode *node)
{
	return ag_monotone_parse(node, &p->out->arena, &p->out->monotone, p->err);
}

static AgStatus
parse_eval_metric(OptionParser *p, const AgOptionNode *node)
{
	AgNearest nearest;

	if (node->type != AG_JSON_STRING)
		return ag_option_reject(node, "the name of a metric such as \"log_loss\"", p->err);
	p->out->eval_metric = ag_metric_by_name(node->text);
	if (p->out->eval_metric != AG_METRIC_NONE)
		return AG_OK;
	ag_nearest_init(&nearest, node->text);
	for (int i = AG_METRIC_NONE + 1; i < AG_METRIC_LAST; i++)
		ag_nearest_offer(&nearest, ag_metric_name((AgMetric) i));
	ag_option_reject(node, "the name of a metric such as \"log_loss\"", p->err);
	if (ag_nearest_name(&nearest) == NULL)
		ag_error_hint(p->err,
					  "\"SELECT range FROM ag_options() WHERE name = 'eval_metric'\" lists them.");
	return hint_nearest(p, &nearest);
}

static AgStatus
parse_hyperparameters(OptionParser *p, const AgOptionNode *node)
{
	p->hyperparameters = node;
	return AG_OK;
}

static AgStatus
parse_ag_args_fit(OptionParser *p, const AgOptionNode *node)
{
	return ag_fit_args_parse(node, &p->args, p->err);
}

static AgStatus
parse_ag_args(OptionParser *p, const AgOptionNode *node)
{
	return ag_naming_parse(node, &p->args.naming, p->err);
}

static AgStatus
parse_included(OptionParser *p, const AgOptionNode *node)
{
	p->included = node;
	if (node->type != AG_JSON_STRING && node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, "an array of model families", p->err);
	return AG_OK;
}

static AgStatus
parse_excluded(OptionParser *p, const AgOptionNode *node)
{
	p->excluded = node;
	if (node->type != AG_JSON_STRING && node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, "an array of model families", p->err);
	return AG_OK;
}

static AgStatus
parse_hyperparameter_tune_kwargs(OptionParser *p, const AgOptionNode *node)
{
	return ag_search_asked_parse(node, p->out, p->err);
}

static AgStatus
parse_num_trials(OptionParser *p, const AgOptionNode *node)
{
	return ag_search_num_trials_parse(node, p->out, p->err);
}

static AgStatus
parse_num_gpus(OptionParser *p, const AgOptionNode *node)
{
	return ag_option_num_gpus(node, &p->out->total.num_gpus, p->err);
}

static AgStatus
parse_num_cpus(OptionParser *p, const AgOptionNode *node)
{
	return ag_option_num_cpus(node, &p->out->total.num_cpus, p->err);
}

static AgStatus
parse_memory_limit(OptionParser *p, const AgOptionNode *node)
{
	if (node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0)
		return AG_OK;
	if (!ag_option_number(node, &p->out->memory_limit_gb) || p->out->memory_limit_gb <= 0.0)
		return ag_option_reject(node, "a number of GB greater than 0 or \"auto\"", p->err);
	return AG_OK;
}

static AgStatus
parse_holdout_frac(OptionParser *p, const AgOptionNode *node)
{
	double *value = &p->out->holdout_frac;

	if (!ag_option_number(node, value) || *value <= 0.0 || *value >= 1.0)
		return ag_option_reject(node, "a number greater than 0 and less than 1", p->err);
	return AG_OK;
}

static AgStatus
parse_num_bag_folds(OptionParser *p, const AgOptionNode *node)
{
	int64_t value;

	if (!ag_option_integer(node, 0, AG_MAX_BAG_FOLDS, &value) || value == 1)
		return ag_option_reject(node, "0 or an integer from 2 to 100", p->err);
	p->out->num_bag_folds = (int) value;
	return AG_OK;
}

static AgStatus
parse_num_bag_sets(OptionParser *p, const AgOptionNode *node)
{
	int64_t value;

	if (!ag_option_integer(node, 1, AG_MAX_BAG_SETS, &value))
		return ag_option_reject(node, "an integer from 1 to 20", p->err);
	p->out->num_bag_sets = (int) value;
	p->out->bag_sets_said = true;
	return AG_OK;
}

static AgStatus
parse_num_stack_levels(OptionParser *p, const AgOptionNode *node)
{
	int64_t value;

	if (!ag_option_integer(node, 0, AG_MAX_STACK_LEVELS, &value))
		return ag_option_reject(node, "an integer from 0 to 5", p->err);
	p->out->num_stack_levels = (int) value;
	return AG_OK;
}

static AgStatus
bool_parse(OptionParser *p, const AgOptionNode *node, bool *value)
{
	if (node->type != AG_JSON_BOOL)
		return ag_option_reject(node, "true or false", p->err);
	*value = strcmp(node->text, "true") == 0;
	return AG_OK;
}

static AgStatus
parse_auto_stack(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->auto_stack);
}

static AgStatus
parse_dynamic_stacking(OptionParser *p, const AgOptionNode *node)
{
	if (node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0)
		p->out->dynamic_stacking = AG_DYNAMIC_AUTO;
	else if (node->type == AG_JSON_BOOL)
		p->out->dynamic_stacking = strcmp(node->text, "true") == 0 ? AG_DYNAMIC_ON : AG_DYNAMIC_OFF;
	else
		return ag_option_reject(node, "true, false or \"auto\"", p->err);
	return AG_OK;
}

static AgStatus
parse_ds_args(OptionParser *p, const AgOptionNode *node)
{
	p->trial_said = true;
	return ag_trial_args_parse(node, p->out, p->err);
}

static AgStatus
calibrate_parse(OptionParser *p, const AgOptionNode *node, AgCalibrate *value)
{
	if (node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0)
		*value = AG_CALIBRATE_AUTO;
	else if (node->type == AG_JSON_BOOL)
		*value = strcmp(node->text, "true") == 0 ? AG_CALIBRATE_ON : AG_CALIBRATE_OFF;
	else
		return ag_option_reject(node, "true, false or \"auto\"", p->err);
	return AG_OK;
}

static AgStatus
parse_calibrate(OptionParser *p, const AgOptionNode *node)
{
	return calibrate_parse(p, node, &p->out->calibrate);
}

static AgStatus
parse_calibrate_threshold(OptionParser *p, const AgOptionNode *node)
{
	return calibrate_parse(p, node, &p->out->calibrate_threshold);
}

static AgStatus
parse_infer_limit(OptionParser *p, const AgOptionNode *node)
{
	if (!ag_option_number(node, &p->out->infer_limit) || !(p->out->infer_limit > 0.0))
		return ag_option_reject(node, "a number of seconds greater than 0", p->err);
	return AG_OK;
}

static AgStatus
column_parse(OptionParser *p, const AgOptionNode *node, char **column)
{
	if (node->type != AG_JSON_STRING || node->text[0] == '\0')
		return ag_option_reject(node, "the name of a column", p->err);
	return text_copy(p, node, column);
}

static AgStatus
parse_sample_weight(OptionParser *p, const AgOptionNode *node)
{
	if (node->type == AG_JSON_STRING && strcmp(node->text, "auto_weight") == 0)
		return ag_option_unsupported("sample weight", node->text, p->err);
	return column_parse(p, node, &p->out->sample_weight);
}

static AgStatus
parse_groups(OptionParser *p, const AgOptionNode *node)
{
	return column_parse(p, node, &p->out->groups);
}

static AgStatus
parse_weight_evaluation(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->weight_evaluation);
}

/* Looked at when all others are known. */
static AgStatus
parse_replay(OptionParser *p, const AgOptionNode *node)
{
	p->replay = node;
	return AG_OK;
}

static AgStatus
parse_dry_run(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->dry_run);
}

static AgStatus
parse_use_bag_holdout(OptionParser *p, const AgOptionNode *node)
{
	p->out->bag_holdout_said = true;
	return bool_parse(p, node, &p->out->use_bag_holdout);
}

static AgStatus
parse_time_column(OptionParser *p, const AgOptionNode *node)
{
	return column_parse(p, node, &p->out->time_column);
}

static AgStatus
parse_tuning_data(OptionParser *p, const AgOptionNode *node)
{
	if (node->type != AG_JSON_STRING || node->text[0] == '\0')
		return ag_option_reject(node, "the name of a table, or a query", p->err);
	return text_copy(p, node, &p->out->tuning_data);
}

static AgStatus
parse_label_count_threshold(OptionParser *p, const AgOptionNode *node)
{
	if (!ag_option_integer(node, 1, INT64_MAX, &p->out->label_count_threshold))
		return ag_option_reject(node, "an integer from 1 on", p->err);
	return AG_OK;
}

static AgStatus
parse_refit_full(OptionParser *p, const AgOptionNode *node)
{
	p->out->refit_full = AG_REFIT_NONE;
	p->out->refit_said = true;
	if (node->type == AG_JSON_BOOL && strcmp(node->text, "false") == 0)
		return AG_OK;
	if (node->type == AG_JSON_BOOL ||
		(node->type == AG_JSON_STRING && strcmp(node->text, "all") == 0))
		p->out->refit_full = AG_REFIT_ALL;
	else if (node->type == AG_JSON_STRING && strcmp(node->text, "best") == 0)
		p->out->refit_full = AG_REFIT_BEST;
	else
		return ag_option_reject(node, "true, false, \"all\" or \"best\"", p->err);
	return AG_OK;
}

static AgStatus
parse_set_best_to_refit_full(OptionParser *p, const AgOptionNode *node)
{
	p->best_to_refit = true;
	return bool_parse(p, node, &p->out->set_best_to_refit_full);
}

static AgStatus
parse_retrain_full(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->retrain_full);
}

static AgStatus
parse_fit_weighted_ensemble(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->fit_weighted_ensemble);
}

static AgStatus
parse_keep_only_best(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->keep_only_best);
}

static AgStatus
parse_save_space(OptionParser *p, const AgOptionNode *node)
{
	return bool_parse(p, node, &p->out->save_space);
}

static AgStatus
parse_ag_args_ensemble(OptionParser *p, const AgOptionNode *node)
{
	p->folds_saved_said = ag_option_child(node, "save_bag_folds") != NULL;
	return ag_ensemble_args_parse(node, p->out, &p->args, p->err);
}

static AgStatus
parse_positive_class(OptionParser *p, const AgOptionNode *node)
{
	if (node->type == AG_JSON_OBJECT || node->type == AG_JSON_ARRAY)
		return ag_option_reject(node, "a value of the label", p->err);
	return text_copy(p, node, &p->out->positive_class);
}

static AgStatus
parse_ignored_columns(OptionParser *p, const AgOptionNode *node)
{
	const AgOptionNode *item = node->type == AG_JSON_ARRAY ? node->first : node;
	int n = node->type == AG_JSON_ARRAY ? node->n_children : 1;

	p->out->ignored_columns = ag_arena_alloc(&p->out->arena, (size_t) n + 1, sizeof(char *));
	if (p->out->ignored_columns == NULL)
		return out_of_memory(p, (size_t) n * sizeof(char *));
	for (; item != NULL && p->out->n_ignored < n; item = item->next)
	{
		if (item->type != AG_JSON_STRING || item->text[0] == '\0')
			return ag_option_reject(item, "the name of a column", p->err);
		AG_TRY(text_copy(p, item, &p->out->ignored_columns[p->out->n_ignored]));
		p->out->n_ignored++;
	}
	return AG_OK;
}

static AgStatus
parse_verbosity(OptionParser *p, const AgOptionNode *node)
{
	int64_t value;

	if (!ag_option_integer(node, 0, 4, &value))
		return ag_option_reject(node, "an integer from 0 to 4", p->err);
	p->out->verbosity = (int) value;
	return AG_OK;
}

static AgStatus
parse_random_state(OptionParser *p, const AgOptionNode *node)
{
	int64_t value;

	if (!ag_option_integer(node, 0, INT64_MAX, &value))
		return ag_option_reject(node, "an integer from 0 to 9223372036854775807", p->err);
	p->out->random_state = (uint64_t) value;
	return AG_OK;
}

static AgStatus
parse_time_zone(OptionParser *p, const AgOptionNode *node)
{
	if (node->type != AG_JSON_STRING || node->text[0] == '\0' || strlen(node->text) > 255)
		return ag_option_reject(node, "the name of a time zone such as \"Europe/Berlin\"", p->err);
	return text_copy(p, node, &p->out->time_zone);
}

static AgStatus
parse_feature_generator_kwargs(OptionParser *p, const AgOptionNode *node)
{
	return ag_feature_args_parse(node, &p->out->features, p->err);
}

static const struct
{
	const char *name;
	AgStatus (*parse)(OptionParser *p, const AgOptionNode *node);
} parsers[] = {
	{"name", parse_name},
	{"presets", parse_presets},
	{"time_limit", parse_time_limit},
	{"problem_type", parse_problem_type},
	{"eval_metric", parse_eval_metric},
	{"hyperparameters", parse_hyperparameters},
	{"ag_args", parse_ag_args},
	{"ag_args_fit", parse_ag_args_fit},
	{"ag_args_ensemble", parse_ag_args_ensemble},
	{"included_model_types", parse_included},
	{"excluded_model_types", parse_excluded},
	{"hyperparameter_tune_kwargs", parse_hyperparameter_tune_kwargs},
	{"num_trials", parse_num_trials},
	{"num_gpus", parse_num_gpus},
	{"num_cpus", parse_num_cpus},
	{"memory_limit", parse_memory_limit},
	{"num_bag_folds", parse_num_bag_folds},
	{"num_bag_sets", parse_num_bag_sets},
	{"num_stack_levels", parse_num_stack_levels},
	{"auto_stack", parse_auto_stack},
	{"calibrate", parse_calibrate},
	{"infer_limit", parse_infer_limit},
	{"calibrate_decision_threshold", parse_calibrate_threshold},
	{"dynamic_stacking", parse_dynamic_stacking},
	{"ds_args", parse_ds_args},
	{"refit_full", parse_refit_full},
	{"set_best_to_refit_full", parse_set_best_to_refit_full},
	{"retrain_full", parse_retrain_full},
	{"keep_only_best", parse_keep_only_best},
	{"fit_weighted_ensemble", parse_fit_weighted_ensemble},
	{"save_space", parse_save_space},
	{"holdout_frac", parse_holdout_frac},
	{"sample_weight", parse_sample_weight},
	{"groups", parse_groups},
	{"weight_evaluation", parse_weight_evaluation},
	{"time_column", parse_time_column},
	{"use_bag_holdout", parse_use_bag_holdout},
	{"dry_run", parse_dry_run},
	{"replay", parse_replay},
	{"tuning_data", parse_tuning_data},
	{"label_count_threshold", parse_label_count_threshold},
	{"quantile_levels", parse_quantile_levels},
	{"monotone_constraints", parse_monotone_constraints},
	{"positive_class", parse_positive_class},
	{"ignored_columns", parse_ignored_columns},
	{"_feature_generator_kwargs", parse_feature_generator_kwargs},
	{"verbosity", parse_verbosity},
	{"random_state", parse_random_state},
	{"time_zone", parse_time_zone},
};

static AgStatus
option_unknown(OptionParser *p, const AgOptionNode *node)
{
	const AgOptionSpec *specs;
	AgNearest nearest;
	int n;

	ag_error_set(p->err, AG_ERR_OPTION, "unrecognized option \"%.*s\"",
				 (int) ag_utf8_clip(node->key, strlen(node->key), 63), node->key);
	ag_nearest_init(&nearest, node->key);
	specs = ag_option_specs(&n);
	for (int i = 0; i < n; i++)
		ag_nearest_offer(&nearest, specs[i].name);
	if (ag_nearest_name(&nearest) == NULL)
		ag_error_hint(p->err, "\"SELECT * FROM ag_options()\" lists the options.");
	return hint_nearest(p, &nearest);
}

/* JSON null is "as if not given" for every option. */
static AgStatus
option_parse(OptionParser *p, const AgOptionNode *node)
{
	const AgOptionSpec *specs, *spec = NULL;
	char off[32];
	size_t n_off;
	int n;

	specs = ag_option_specs(&n);
	for (int i = 0; i < n && spec == NULL; i++)
		if (strcmp(specs[i].name, node->key) == 0)
			spec = &specs[i];
	if (spec == NULL)
		return option_unknown(p, node);
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++)
		if (strcmp(parsers[i].name, spec->name) == 0)
			return parsers[i].parse(p, node);

	/* Not offered yet: only a value that asks for nothing passes. The default loses its quotes. */
	n_off = strcspn(spec->normal + (spec->normal[0] == '"'), "\"");
	if (n_off >= sizeof off)
		n_off = sizeof off - 1;
	memcpy(off, spec->normal + (spec->normal[0] == '"'), n_off);
	off[n_off] = '\0';
	if (ag_option_is_off(node, off))
		return AG_OK;
	return ag_error_set(p->err, AG_ERR_UNSUPPORTED, "option \"%s\" is not supported yet",
						spec->name);
}

static AgStatus
metric_check(OptionParser *p)
{
	if (p->out->eval_metric == AG_METRIC_NONE || p->out->problem == AG_PROBLEM_AUTO)
		return AG_OK;
	return ag_options_check_metric(p->out->eval_metric, p->out->problem, p->err);
}

/* What asks for more of a bag asks for a bag. */
static AgStatus
bagging_check(OptionParser *p)
{
	AgFitOptions *out = p->out;

	if (p->trial_said && out->dynamic_stacking != AG_DYNAMIC_ON)
	{
		ag_error_set(p->err, AG_ERR_OPTION, "option \"ds_args\" needs \"dynamic_stacking\"");
		ag_error_hint(p->err, "Set \"dynamic_stacking\" to true: they are its trial's.");
		return AG_ERR_OPTION;
	}
	if ((out->num_bag_sets <= 1 && out->num_stack_levels <= 0 &&
		 out->dynamic_stacking != AG_DYNAMIC_ON) ||
		out->num_bag_folds > 0 || (out->auto_stack && out->num_bag_folds < 0))
		return AG_OK;
	ag_error_set(p->err, AG_ERR_OPTION, "option \"%s\" needs \"num_bag_folds\"",
				 out->num_bag_sets > 1       ? "num_bag_sets"
				 : out->num_stack_levels > 0 ? "num_stack_levels"
											 : "dynamic_stacking");
	ag_error_hint(p->err, "Set \"num_bag_folds\" to 8, for example, or \"auto_stack\" to true.");
	return AG_ERR_OPTION;
}

static AgStatus
together_reject(OptionParser *p, const char *one, const char *other, const char *why)
{
	ag_error_set(p->err, AG_ERR_OPTION, "options \"%s\" and \"%s\" exclude each other", one, other);
	ag_error_detail(p->err, "%s", why);
	return AG_ERR_OPTION;
}

/* Who validates is said once. */
static AgStatus
validation_check(OptionParser *p)
{
	AgFitOptions *out = p->out;
	bool has_bags = out->num_bag_folds > 0 || (out->auto_stack && out->num_bag_folds != 0);

	if (out->weight_evaluation && out->sample_weight == NULL)
	{
		ag_error_set(p->err, AG_ERR_OPTION, "option \"weight_evaluation\" needs \"sample_weight\"");
		return AG_ERR_OPTION;
	}
	if (out->time_column != NULL && out->groups != NULL)
		return together_reject(p, "time_column", "groups",
							   "Rows are validated either by their time or by their group.");
	if (out->label_count_threshold > 0 && out->problem != AG_PROBLEM_AUTO &&
		out->problem != AG_PROBLEM_MULTICLASS)
		return ag_error_set(p->err, AG_ERR_OPTION,
							"option \"label_count_threshold\" is for problem type multiclass, and "
							"this one is %s",
							ag_problem_name(out->problem));
	if (out->use_bag_holdout && !has_bags)
	{
		ag_error_set(p->err, AG_ERR_OPTION, "option \"use_bag_holdout\" needs \"num_bag_folds\"");
		return AG_ERR_OPTION;
	}
	if (out->use_bag_holdout &&
		(out->num_stack_levels > 0 || out->dynamic_stacking == AG_DYNAMIC_ON))
		return together_reject(p, "use_bag_holdout",
							   out->num_stack_levels > 0 ? "num_stack_levels" : "dynamic_stacking",
							   "A higher level learns from scores of all rows.");
	if (out->tuning_data == NULL)
		return AG_OK;
	if (has_bags && !out->use_bag_holdout)
	{
		together_reject(p, "tuning_data", "num_bag_folds",
						"A bag is validated on the rows that it is trained on, each by the models "
						"that were trained without it.");
		ag_error_hint(
			p->err,
			"Set \"use_bag_holdout\" to true, or \"num_bag_folds\" to 0 where a preset asks for "
			"bags.");
		return AG_ERR_OPTION;
	}
	if (!isnan(out->holdout_frac) || out->time_column != NULL || out->groups != NULL)
		return together_reject(p, "tuning_data",
							   out->time_column != NULL ? "time_column"
							   : out->groups != NULL    ? "groups"
														: "holdout_frac",
							   "The tuning data are the rows that models are validated on.");
	return AG_OK;
}

/* What is said of models fitted again says nothing without them. */
static AgStatus
refit_check(OptionParser *p)
{
	AgFitOptions *out = p->out;

	if (out->keep_only_best && out->refit_full == AG_REFIT_ALL)
		out->refit_full = AG_REFIT_BEST; /* of the others nothing would be kept */
	if (out->refit_full == AG_REFIT_NONE && !p->best_to_refit)
		out->set_best_to_refit_full = false; /* a preset's */
	if (out->refit_full == AG_REFIT_NONE && !p->folds_saved_said)
		out->save_bag_folds = true;
	if (out->refit_full != AG_REFIT_NONE || (!out->set_best_to_refit_full && out->save_bag_folds))
		return AG_OK;
	ag_error_set(p->err, AG_ERR_OPTION, "option \"%s\" needs \"refit_full\"",
				 out->set_best_to_refit_full ? "set_best_to_refit_full"
											 : "ag_args_ensemble.save_bag_folds");
	ag_error_hint(p->err, "Set \"refit_full\" to true.");
	return AG_ERR_OPTION;
}

/* The tree of entries goes when the options are parsed: it can be large, and what is kept is small. */
AgStatus
ag_options_parse(AgMem *mem, const AgOptionEntry *entries, int n_entries, AgFitOptions **options,
				 AgError *err)
{
	OptionParser p;
	AgArena scratch;
	AgOptionNode *root;
	AgStatus status;

	*options = NULL;
	memset(&p, 0, sizeof p);
	p.err = err;
	p.out = ag_mem_zalloc(mem, 1, sizeof *p.out);
	if (p.out == NULL)
		return ag_mem_error(mem, sizeof *p.out, err);
	ag_arena_init(&p.out->arena, mem);
	ag_arena_init(&scratch, mem);
	p.out->time_limit = (double) NAN;
	p.out->holdout_frac = (double) NAN;
	p.out->memory_limit_gb = (double) NAN;
	p.out->num_bag_folds = -1;
	p.out->num_bag_sets = 1;
	p.out->num_stack_levels = -1;
	p.out->infer_limit = (double) NAN;
	p.out->trial_time_frac = 0.25;
	p.out->trial_holdout_frac = 1.0 / 9.0;
	p.out->max_base_models_per_type = -1;
	p.out->save_bag_folds = true;
	p.out->fit_weighted_ensemble = true;
	p.out->retrain_full = true;
	p.out->total.num_gpus = AG_GPUS_UNSAID;
	p.out->total.num_cpus = -1;
	p.out->verbosity = 2;
	ag_fit_args_default(&p.args);
	ag_feature_params_default(&p.out->features);

	AG_GO(ag_option_tree_build(&scratch, entries, n_entries, &root, err));
	if (ag_option_child(root, "presets") != NULL)
		AG_GO(ag_presets_parse(ag_option_child(root, "presets"), p.out, &p.list, err));
	for (const AgOptionNode *node = root->first; node != NULL; node = node->next)
		AG_GO(option_parse(&p, node));
	p.out->features.seed = p.out->random_state;
	AG_GO(ag_quantiles_check(p.out, err));
	if (p.replay != NULL)
	{
		AG_GO(ag_replay_parse(p.replay, p.out, err));
		p.trial_said = false;
	}
	AG_GO(ag_monotone_check(p.out, err));
	AG_GO(metric_check(&p));
	AG_GO(bagging_check(&p));
	AG_GO(validation_check(&p));
	AG_GO(refit_check(&p));
	AG_GO(ag_models_parse(p.hyperparameters, p.list, p.included, p.excluded, &p.args, p.out, err));
	AG_GO(ag_replay_check(p.out, err));
	ag_models_ask_oob(p.out);
	*options = p.out;
done:
	ag_arena_free(&scratch);
	if (status != AG_OK)
		ag_options_free(p.out);
	return status;
}

void
ag_options_free(AgFitOptions *options)
{
	AgMem *mem;

	if (options == NULL)
		return;
	mem = options->arena.mem;
	ag_arena_free(&options->arena);
	ag_mem_free(mem, options);
}
