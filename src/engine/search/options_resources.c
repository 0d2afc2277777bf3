/*
 * options_resources.c - GPUs and CPUs of the whole fit, of each bag and of each training: none of them more than what it is a
 * part of.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/search/options_models.h"

/* What other arguments of a fit would mean to a bag as a whole, nobody has said. */
AgStatus
ag_bag_args_parse(const AgOptionNode *node, AgResourcesAsked *bag, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"num_gpus\": 1}", err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		char label[AG_MAX_OPTION_PATH + 1];

		if (strcmp(child->key, "num_gpus") == 0)
			AG_TRY(ag_option_num_gpus(child, &bag->num_gpus, err));
		else if (strcmp(child->key, "num_cpus") == 0)
			AG_TRY(ag_option_num_cpus(child, &bag->num_cpus, err));
		else if (child->type != AG_JSON_NULL)
		{
			ag_option_unsupported("argument", ag_option_label(child, label, sizeof label), err);
			ag_error_hint(err, "A bag as a whole takes \"num_gpus\" and \"num_cpus\"; what each of "
							   "its trainings takes is in \"ag_args_fit\" itself.");
			return AG_ERR_UNSUPPORTED;
		}
	}
	return AG_OK;
}

AgStatus
ag_model_ensemble_parse(const AgOptionNode *node, AgResourcesAsked *bag, AgError *err)
{
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"ag_args_fit\": {\"num_gpus\": 1}}",
								err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		char label[AG_MAX_OPTION_PATH + 1];

		if (strcmp(child->key, "ag_args_fit") == 0)
			AG_TRY(ag_bag_args_parse(child, bag, err));
		else if (child->type != AG_JSON_NULL)
			return ag_option_unsupported("model argument",
										 ag_option_label(child, label, sizeof label), err);
	}
	return AG_OK;
}

/* "model \"GBM\" asks for 2 GPUs for each training, but the whole fit has 1". what: "GPU". */
static AgStatus
too_much(const AgModelConfig *model, const char *what, double asked, bool is_bag, double has,
		 bool of_bag, AgError *err)
{
	const char *name = strcmp(what, "GPU") == 0 ? "num_gpus" : "num_cpus";

	ag_error_set(err, AG_ERR_OPTION, "model \"%s\" asks for %.10g %s%s%s, but %s has %.10g",
				 model->name, asked, what, asked == 1.0 ? "" : "s",
				 is_bag   ? " for its bag"
				 : of_bag ? " for each training"
						  : "",
				 of_bag ? "its bag" : "the whole fit", has);
	if (of_bag)
		ag_error_hint(err,
					  "Raise \"%s\" in the \"ag_args_fit\" of \"ag_args_ensemble\" (each bag), or "
					  "lower it in \"ag_args_fit\" (each training).",
					  name);
	else
		ag_error_hint(err, "Raise the option \"%s\" (all models together), or lower \"%s\" in %s.",
					  name, name,
					  is_bag ? "the \"ag_args_fit\" of \"ag_args_ensemble\" (each bag)"
							 : "\"ag_args_fit\" (each model)");
	return AG_ERR_OPTION;
}

static AgStatus
model_check(const AgModelConfig *model, const AgResourcesAsked *total, AgError *err)
{
	const AgResourcesAsked *each = &model->asked, *bag = &model->bag;

	if (total->num_gpus >= 0.0 && each->num_gpus > total->num_gpus)
		return too_much(model, "GPU", each->num_gpus, false, total->num_gpus, false, err);
	if (total->num_gpus >= 0.0 && bag->num_gpus > total->num_gpus)
		return too_much(model, "GPU", bag->num_gpus, true, total->num_gpus, false, err);
	if (bag->num_gpus >= 0.0 && each->num_gpus > bag->num_gpus)
		return too_much(model, "GPU", each->num_gpus, false, bag->num_gpus, true, err);
	if (total->num_cpus >= 0 && each->num_cpus > total->num_cpus)
		return too_much(model, "CPU", each->num_cpus, false, total->num_cpus, false, err);
	if (total->num_cpus >= 0 && bag->num_cpus > total->num_cpus)
		return too_much(model, "CPU", bag->num_cpus, true, total->num_cpus, false, err);
	if (bag->num_cpus >= 0 && each->num_cpus > bag->num_cpus)
		return too_much(model, "CPU", each->num_cpus, false, bag->num_cpus, true, err);
	return AG_OK;
}

AgStatus
ag_resources_merge(AgFitOptions *options, AgError *err)
{
	for (int i = 0; i < options->n_models; i++)
	{
		AgModelConfig *model = &options->models[i];

		AG_TRY(model_check(model, &options->total, err));
		if (model->asked.num_cpus < 0)
			model->asked.num_cpus =
				model->bag.num_cpus > 0 ? model->bag.num_cpus : options->total.num_cpus;
	}
	return AG_OK;
}
