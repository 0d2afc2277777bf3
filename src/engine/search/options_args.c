/*
 * options_args.c - the arguments of a model's fit: "ag_args_fit", and "ag." keys beside a model's parameters.
 */
#include "engine/search/options_models.h"

#include <math.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/model/knn.h"
#include "engine/model/forest.h"

/* Keys of ag_args_fit that are known and not offered, with the value that asks for nothing. */
static const struct
{
	const char *name;
	const char *off;
} other_args[] = {
	{"stopping_metric", NULL},
	{"max_memory_usage_ratio", "1"},
	{"max_gpu_memory_usage_ratio", "1"},
	{"max_time_limit_ratio", "1"},
	{"min_time_limit", "0"},
	{"min_rows", NULL},
	{"max_rows", NULL},
	{"min_features", NULL},
	{"max_features", NULL},
	{"min_cells", NULL},
	{"max_cells", NULL},
	{"max_classes", NULL},
	{"problem_types", NULL},
	{"ignore_constraints", NULL},
	{"max_batch_size", NULL},
	{"drop_unique", "true"},
	{"predict_1_batch_size", NULL},
	{"temperature_scalar", NULL},
	{"get_features_kwargs", NULL},
	{"valid_raw_types", NULL},
	{"valid_special_types", NULL},
};

AgStatus
ag_option_unsupported(const char *what, const char *name, AgError *err)
{
	return ag_error_set(err, AG_ERR_UNSUPPORTED, "%s \"%s\" is not supported yet", what, name);
}

AgStatus
ag_option_num_gpus(const AgOptionNode *node, double *num_gpus, AgError *err)
{
	if (node->type == AG_JSON_NULL ||
		(node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0))
		*num_gpus = node->type == AG_JSON_NULL ? AG_GPUS_UNSAID : AG_GPUS_AUTO;
	else if (!ag_option_number(node, num_gpus) || *num_gpus < 0.0 || *num_gpus > 1024.0)
		return ag_option_reject(node, "a number from 0 to 1024 or \"auto\"", err);
	return AG_OK;
}

AgStatus
ag_option_num_cpus(const AgOptionNode *node, int *num_cpus, AgError *err)
{
	int64_t value = -1;

	if (node->type != AG_JSON_NULL &&
		!(node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0) &&
		!ag_option_integer(node, 1, 65536, &value))
		return ag_option_reject(node, "an integer from 1 to 65536 or \"auto\"", err);
	*num_cpus = (int) value;
	return AG_OK;
}

void
ag_fit_args_default(AgFitArgs *args)
{
	args->asked.num_gpus = args->bag.num_gpus = AG_GPUS_UNSAID;
	args->asked.num_cpus = args->bag.num_cpus = -1;
	args->max_time_limit = (double) INFINITY;
	args->early_stop = -1;
	args->use_fp16 = false;
	memset(&args->prep, 0, sizeof args->prep);
	ag_naming_default(&args->naming);
}

static AgStatus
max_time_limit_parse(const AgOptionNode *node, double *seconds, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		*seconds = (double) INFINITY;
	else if (!ag_option_number(node, seconds) || *seconds <= 0.0)
		return ag_option_reject(node, "a number of seconds greater than 0", err);
	return AG_OK;
}

/* null is AutoGluon's way to say "off" here, not "the default". */
static AgStatus
early_stop_parse(const AgOptionNode *node, int *rounds, AgError *err)
{
	int64_t value;

	if (ag_option_is_off(node, NULL))
		*rounds = 0;
	else if (node->type == AG_JSON_STRING && strcmp(node->text, "adaptive") == 0)
		*rounds = -1;
	else if (ag_option_integer(node, 1, 1000000, &value))
		*rounds = (int) value;
	else
		return ag_option_reject(node, "\"adaptive\", a number of rounds from 1 on, or null", err);
	return AG_OK;
}


AgStatus
ag_fit_arg_parse(const AgOptionNode *node, const char *name, AgFitArgs *args, bool *known,
				 AgError *err)
{
	*known = true;
	if (strcmp(name, "num_gpus") == 0)
		return ag_option_num_gpus(node, &args->asked.num_gpus, err);
	if (strcmp(name, "num_cpus") == 0)
		return ag_option_num_cpus(node, &args->asked.num_cpus, err);
	if (strcmp(name, "max_time_limit") == 0)
		return max_time_limit_parse(node, &args->max_time_limit, err);
	if (strcmp(name, "early_stop") == 0)
		return early_stop_parse(node, &args->early_stop, err);
	if (strcmp(name, "use_fp16") == 0)
	{
		if (node->type != AG_JSON_BOOL && node->type != AG_JSON_NULL)
			return ag_option_reject(node, "true or false", err);
		args->use_fp16 = strcmp(node->text, "true") == 0;
		return AG_OK;
	}
	if (strcmp(name, "prep_params") == 0)
		return ag_prep_params_parse(node, &args->prep, err);
	for (size_t i = 0; i < sizeof other_args / sizeof other_args[0]; i++)
		if (strcmp(name, other_args[i].name) == 0)
		{
			if (ag_option_is_off(node, other_args[i].off))
				return AG_OK;
			return ag_option_unsupported("argument of \"ag_args_fit\"", name, err);
		}
	*known = false;
	return AG_OK;
}

static void
fit_args_offer(AgNearest *nearest)
{
	static const char *const ours[] = {"num_gpus",   "num_cpus", "max_time_limit",
									   "early_stop", "use_fp16", "prep_params"};

	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		ag_nearest_offer(nearest, ours[i]);
	for (size_t i = 0; i < sizeof other_args / sizeof other_args[0]; i++)
		ag_nearest_offer(nearest, other_args[i].name);
}

AgStatus
ag_option_argument_unknown(const AgOptionNode *node, const AgNearest *nearest, AgError *err)
{
	char label[AG_MAX_OPTION_PATH + 1];

	ag_option_label(node, label, sizeof label);
	ag_error_set(err, AG_ERR_OPTION, "unrecognized argument \"%s\"", label);
	if (ag_nearest_name(nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(nearest));
	return AG_ERR_OPTION;
}

AgStatus
ag_fit_args_parse(const AgOptionNode *node, AgFitArgs *args, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"num_gpus\": 1}", err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		/* AutoGluon's own advice spells some keys "ag.x" inside ag_args_fit too. */
		const char *name = strncmp(child->key, "ag.", 3) == 0 ? child->key + 3 : child->key;
		bool known;

		AG_TRY(ag_fit_arg_parse(child, name, args, &known, err));
		if (!known)
		{
			AgNearest nearest;

			ag_nearest_init(&nearest, name);
			fit_args_offer(&nearest);
			return ag_option_argument_unknown(child, &nearest, err);
		}
	}
	return AG_OK;
}

/* Keys of ag_args_ensemble that are known and not offered, with the value that asks for nothing. */
static const struct
{
	const char *name;
	const char *off;
} other_ensemble_args[] = {
	{"use_orig_features", "true"},      {"refit_folds", "false"}, {"model_random_seed", NULL},
	{"vary_seed_across_folds", "true"}, {"random_state", NULL},
};

#define STRATEGIES "\"auto\", \"parallel_local\" or \"sequential_local\""

static AgStatus
base_models_parse(const AgOptionNode *node, int *most, AgError *err)
{
	int64_t value;

	if (!ag_option_integer(node, 0, 10000, &value))
		return ag_option_reject(node, "a number of models, or 0 for no limit", err);
	*most = (int) value;
	return AG_OK;
}

static AgStatus
ensemble_arg_parse(const AgOptionNode *node, AgFitOptions *options, AgFitArgs *args, bool *known,
				   AgError *err)
{
	int64_t value;

	*known = true;
	if (strcmp(node->key, "ag_args_fit") == 0)
		return ag_bag_args_parse(node, &args->bag, err);
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (strcmp(node->key, "fold_fitting_strategy") == 0)
	{
		if (node->type != AG_JSON_STRING)
			return ag_option_reject(node, STRATEGIES, err);
		if (strcmp(node->text, "parallel_distributed") == 0)
			return ag_option_unsupported("fold_fitting_strategy", node->text, err);
		options->folds_parallel = strcmp(node->text, "parallel_local") == 0;
		options->folds_sequential = strcmp(node->text, "sequential_local") == 0;
		if (options->folds_parallel || options->folds_sequential || strcmp(node->text, "auto") == 0)
			return AG_OK;
		return ag_option_reject(node, STRATEGIES, err);
	}
	if (strcmp(node->key, "save_bag_folds") == 0)
	{
		if (node->type != AG_JSON_BOOL)
			return ag_option_reject(node, "true or false", err);
		options->save_bag_folds = strcmp(node->text, "true") == 0;
		return AG_OK;
	}
	if (strcmp(node->key, "use_child_oof") == 0)
	{
		if (node->type != AG_JSON_BOOL)
			return ag_option_reject(node, "true or false", err);
		options->use_child_oof =
			strcmp(node->text, "true") == 0 ? AG_CHILD_OOF_ON : AG_CHILD_OOF_OFF;
		return AG_OK;
	}
	if (strcmp(node->key, "max_base_models") == 0)
		return base_models_parse(node, &options->max_base_models, err);
	if (strcmp(node->key, "max_base_models_per_type") == 0)
	{
		if (node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0)
			return AG_OK;
		return base_models_parse(node, &options->max_base_models_per_type, err);
	}
	if (strcmp(node->key, "num_folds_parallel") == 0)
	{
		if (node->type == AG_JSON_STRING && strcmp(node->text, "auto") == 0)
			return AG_OK;
		if (!ag_option_integer(node, 1, AG_MAX_BAG_FOLDS, &value))
			return ag_option_reject(node, "\"auto\" or an integer from 1 to 100", err);
		options->num_folds_parallel = (int) value;
		return AG_OK;
	}
	for (size_t i = 0; i < sizeof other_ensemble_args / sizeof other_ensemble_args[0]; i++)
		if (strcmp(node->key, other_ensemble_args[i].name) == 0)
		{
			if (ag_option_is_off(node, other_ensemble_args[i].off))
				return AG_OK;
			return ag_option_unsupported("argument of \"ag_args_ensemble\"", node->key, err);
		}
	*known = false;
	return AG_OK;
}

AgStatus
ag_ensemble_args_parse(const AgOptionNode *node, AgFitOptions *options, AgFitArgs *args,
					   AgError *err)
{
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"fold_fitting_strategy\": \"auto\"}",
								err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		AgNearest nearest;
		bool known;

		AG_TRY(ensemble_arg_parse(child, options, args, &known, err));
		if (known)
			continue;
		ag_nearest_init(&nearest, child->key);
		ag_nearest_offer(&nearest, "fold_fitting_strategy");
		ag_nearest_offer(&nearest, "num_folds_parallel");
		ag_nearest_offer(&nearest, "save_bag_folds");
		ag_nearest_offer(&nearest, "use_child_oof");
		ag_nearest_offer(&nearest, "ag_args_fit");
		ag_nearest_offer(&nearest, "max_base_models");
		ag_nearest_offer(&nearest, "max_base_models_per_type");
		for (size_t i = 0; i < sizeof other_ensemble_args / sizeof other_ensemble_args[0]; i++)
			ag_nearest_offer(&nearest, other_ensemble_args[i].name);
		return ag_option_argument_unknown(child, &nearest, err);
	}
	return AG_OK;
}

void
ag_models_ask_oob(AgFitOptions *options)
{
	bool has_bags =
		options->num_bag_folds > 0 || (options->auto_stack && options->num_bag_folds != 0);

	bool any = options->use_child_oof == AG_CHILD_OOF_ON; /* however few its trees are */

	if (options->use_child_oof == AG_CHILD_OOF_OFF || !has_bags)
		return;
	for (int i = 0; i < options->n_models; i++)
	{
		const AgModelConfig *config = &options->models[i];
		AgForestParams *params = config->params;

		if (config->family->id == AG_FAMILY_RF || config->family->id == AG_FAMILY_XT)
			params->wants_oob =
				params->bootstrap && (any || params->n_estimators >= AG_FOREST_LEAST_TREES);
		if (config->family->id == AG_FAMILY_KNN)
			((AgKnnParams *) config->params)->wants_oob = true;
	}
}

/* Of ds_args: known and not offered, with the value that asks for nothing. */
static const struct
{
	const char *name;
	const char *off;
} other_trial_args[] = {
	{"validation_procedure", "holdout"},
	{"n_folds", "2"},
	{"n_repeats", "1"},
	{"memory_safe_fits", "auto"},
	{"clean_up_fits", "true"},
	{"holdout_data", NULL},
	{"enable_ray_logging", "true"},
	{"enable_callbacks", "true"},
};

static AgStatus
share_parse(const AgOptionNode *node, double most, double *share, AgError *err)
{
	if (!ag_option_number(node, share) || !(*share > 0.0) || !(*share <= most))
		return ag_option_reject(node,
								most == 0.5 ? "a number greater than 0 and at most 0.5"
											: "a number greater than 0 and at most 0.9",
								err);
	return AG_OK;
}

AgStatus
ag_trial_args_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"detection_time_frac\": 0.25}", err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		AgNearest nearest;
		bool known = true;

		if (strcmp(child->key, "detection_time_frac") == 0)
			AG_TRY(share_parse(child, 0.9, &options->trial_time_frac, err));
		else if (strcmp(child->key, "holdout_frac") == 0)
			AG_TRY(share_parse(child, 0.5, &options->trial_holdout_frac, err));
		else
			known = false;
		for (size_t i = 0; i < sizeof other_trial_args / sizeof other_trial_args[0]; i++)
			if (strcmp(child->key, other_trial_args[i].name) == 0)
			{
				if (child->type != AG_JSON_NULL &&
					!ag_option_is_off(child, other_trial_args[i].off))
					return ag_option_unsupported("argument of \"ds_args\"", child->key, err);
				known = true;
			}
		if (known)
			continue;
		ag_nearest_init(&nearest, child->key);
		ag_nearest_offer(&nearest, "detection_time_frac");
		ag_nearest_offer(&nearest, "holdout_frac");
		return ag_option_argument_unknown(child, &nearest, err);
	}
	return AG_OK;
}
