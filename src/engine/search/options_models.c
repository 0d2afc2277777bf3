/*
 * options_models.c - from "hyperparameters" to the list of configurations to fit.
 */
#include "engine/search/options_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/nearest.h"

typedef struct FamilyFacts
{
	const char *key;
	bool supported;
} FamilyFacts;

/* Keys that users of AutoGluon know; what this release fits comes first. */
static const FamilyFacts families[] = {
	{"GBM", true},
	{"CAT", false},
	{"XGB", false},
	{"RF", false},
	{"XT", false},
	{"KNN", false},
	{"LR", false},
	{"NN_TORCH", false},
	{"FASTAI", false},
	{"GBM_PREP", false},
	{"TABM", false},
	{"REALMLP", false},
	{"TABICL", false},
	{"MITRA", false},
	{"TABDPT", false},
	{"TABDPT-TURBO", false},
	{"TABPFNMIX", false},
	{"NORI", false},
	{"REALTABPFN-V2", false},
	{"REALTABPFN-V2.5", false},
	{"TABPFN-2.6", false},
	{"TABPFN-3", false},
	{"EBM", false},
	{"AG_AUTOMM", false},
	{"FT_TRANSFORMER", false},
	{"AG_TEXT_NN", false},
	{"AG_IMAGE_NN", false},
	{"IM_RULEFIT", false},
	{"IM_FIGS", false},
	{"IM_GREEDYTREE", false},
	{"IM_BOOSTEDRULES", false},
	{"IM_HSTREE", false},
	{"DUMMY", false},
	{"VW", false},
	{"FASTTEXT", false},
};

#define N_FAMILIES (sizeof families / sizeof families[0])

/* Lists of models by name. */
static const FamilyFacts lists[] = {
	{"default", true},
	{"light", false},
	{"very_light", false},
	{"toy", false},
	{"interpretable", false},
	{"multimodal", false},
	{"experimental", false},
	{"zeroshot", false},
	{"zeroshot_2023", false},
	{"zeroshot_2025_tabfm", false},
	{"zeroshot_2025_12_18_gpu", false},
	{"zeroshot_2025_12_18_cpu", false},
	{"commercial_2026_08_05", false},
	{"noncommercial_2026_08_05", false},
};

/* A model's own parameter, through its family's table. */
static AgStatus
param_parse(const AgOptionNode *node, AgModelConfig *model, AgError *err)
{
	char label[AG_MAX_OPTION_PATH + 1];

	if (node->type == AG_JSON_NULL) /* as not given */
	{
		const char *nearest = NULL;

		if (ag_param_find(ag_gbm_specs, ag_gbm_n_specs, node->key, &nearest) != NULL)
			return AG_OK;
	}
	else if (node->type == AG_JSON_OBJECT || node->type == AG_JSON_ARRAY)
	{
		const AgParamSpec *spec = ag_param_find(ag_gbm_specs, ag_gbm_n_specs, node->key, NULL);

		if (spec != NULL)
		{
			char takes[256];

			return ag_option_reject(node, ag_param_takes(spec, takes, sizeof takes), err);
		}
	}
	if (strncmp(node->key, "ag.", 3) == 0 || strncmp(node->key, "ag_args", 7) == 0)
		return ag_option_unsupported("model argument", ag_option_label(node, label, sizeof label),
									 err);
	return ag_param_set(ag_gbm_specs, ag_gbm_n_specs, "GBM", node->key, node->text,
						node->type == AG_JSON_STRING, &model->gbm, err);
}

/*
 * One configuration. "ag." keys win over its ag_args_fit, which wins over what all models have in
 * common: hence two passes.
 */
static AgStatus
entry_parse(const AgOptionNode *node, const AgFitArgs *common, AgModelConfig *model, AgError *err)
{
	AgFitArgs args = *common;
	const AgOptionNode *own = ag_option_child(node, "ag_args_fit");

	if (own != NULL)
		AG_TRY(ag_fit_args_parse(own, &args, err));
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		bool known = false;

		if (child == own)
			continue;
		if (strncmp(child->key, "ag.", 3) == 0)
			AG_TRY(ag_fit_arg_parse(child, child->key + 3, &args, &known, err));
		else if (strncmp(child->key, "ag_args", 7) == 0 && ag_option_is_off(child, NULL))
			known = true;
		if (!known)
			AG_TRY(param_parse(child, model, err));
	}
	model->asked = args.asked;
	model->max_time_limit = args.max_time_limit;
	model->use_fp16 = args.use_fp16;
	model->gbm.early_stop_rounds = args.early_stop;
	return AG_OK;
}

static AgStatus
model_add(AgFitOptions *options, const AgOptionNode *node, const AgFitArgs *common, AgError *err)
{
	AgModelConfig *model;

	if (options->n_models >= AG_MAX_MODELS)
		return ag_error_set(err, AG_ERR_OPTION,
							"option \"hyperparameters\" has more than %d models", AG_MAX_MODELS);
	model = &options->models[options->n_models];
	model->family = AG_FAMILY_GBM;
	if (options->n_models == 0)
		snprintf(model->name, sizeof model->name, "GBM");
	else
		snprintf(model->name, sizeof model->name, "GBM_%d", options->n_models + 1);
	ag_params_default(ag_gbm_specs, ag_gbm_n_specs, &model->gbm);
	model->gbm.seed = options->random_state;
	options->n_models++;
	if (node == NULL)
	{
		model->asked = common->asked;
		model->max_time_limit = common->max_time_limit;
		model->use_fp16 = common->use_fp16;
		model->gbm.early_stop_rounds = common->early_stop;
		return AG_OK;
	}
	model->params_json = ag_option_json(&options->arena, node);
	if (model->params_json == NULL)
		return ag_mem_error(options->arena.mem, 0, err);
	return entry_parse(node, common, model, err);
}

/*
 * AutoGluon's three boosters of its default list: plain, extremely randomised and large. The plain one comes
 * first here, so that it is the one that a short time limit leaves.
 */
static AgStatus
default_models(AgFitOptions *options, const AgFitArgs *common, AgError *err)
{
	static const char large[] = "{\"learning_rate\": 0.03, \"num_leaves\": 128, "
								"\"feature_fraction\": 0.9, \"min_data_in_leaf\": 3}";
	static const char *const given[] = {"{}", "{\"extra_trees\": true}", large};

	for (int i = 0; i < 3; i++)
	{
		AG_TRY(model_add(options, NULL, common, err));
		options->models[i].params_json =
			ag_arena_strndup(&options->arena, given[i], strlen(given[i]));
		if (options->models[i].params_json == NULL)
			return ag_mem_error(options->arena.mem, strlen(given[i]), err);
	}
	options->models[1].gbm.extra_trees = true;
	options->models[2].gbm.learning_rate = 0.03;
	options->models[2].gbm.num_leaves = 128;
	options->models[2].gbm.feature_fraction = 0.9;
	options->models[2].gbm.min_data_in_leaf = 3;
	return AG_OK;
}

static const FamilyFacts *
family_find(const char *key)
{
	for (size_t i = 0; i < N_FAMILIES; i++)
		if (strcmp(families[i].key, key) == 0)
			return &families[i];
	return NULL;
}

static AgStatus
family_unknown(const char *key, AgError *err)
{
	AgNearest nearest;

	ag_error_set(err, AG_ERR_OPTION, "unrecognized model family \"%.*s\"",
				 (int) ag_utf8_clip(key, strlen(key), 60), key);
	ag_nearest_init(&nearest, key);
	for (size_t i = 0; i < N_FAMILIES; i++)
		ag_nearest_offer(&nearest, families[i].key);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	else
		ag_error_hint(err, "\"SELECT * FROM ag_families()\" lists the model families.");
	return AG_ERR_OPTION;
}

/* Is that family in the list of included_model_types or excluded_model_types? Unknown names in it are errors. */
static AgStatus
family_listed(const AgOptionNode *list, const char *key, bool *listed, AgError *err)
{
	const AgOptionNode *item = list;

	*listed = false;
	if (list == NULL || list->type == AG_JSON_NULL)
		return AG_OK;
	if (list->type == AG_JSON_ARRAY)
		item = list->first;
	for (; item != NULL; item = item == list ? NULL : item->next)
	{
		if (item->type != AG_JSON_STRING)
			return ag_option_reject(item, "a model family such as \"GBM\"", err);
		if (family_find(item->text) == NULL)
			return family_unknown(item->text, err);
		*listed = *listed || strcmp(item->text, key) == 0;
	}
	return AG_OK;
}

static AgStatus
family_wanted(const AgOptionNode *included, const AgOptionNode *excluded, const char *key,
			  bool *wanted, AgError *err)
{
	bool in, out;

	AG_TRY(family_listed(included, key, &in, err));
	AG_TRY(family_listed(excluded, key, &out, err));
	*wanted = (included == NULL || included->type == AG_JSON_NULL || in) && !out;
	return AG_OK;
}

/* A family's entry: one object, or an array of them. */
static AgStatus
family_parse(const AgOptionNode *node, const AgFitArgs *common, AgFitOptions *options, AgError *err)
{
	if (node->type == AG_JSON_OBJECT)
		return model_add(options, node, common, err);
	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, "an object of parameters or an array of such objects", err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		if (item->type != AG_JSON_OBJECT)
			return ag_option_reject(item, "an object of parameters", err);
		AG_TRY(model_add(options, item, common, err));
	}
	return AG_OK;
}

static bool
is_stack_level(const char *key)
{
	return strcmp(key, "default") == 0 || (*key != '\0' && key[strspn(key, "0123456789")] == '\0');
}

static AgStatus
families_parse(const AgOptionNode *node, const AgOptionNode *included, const AgOptionNode *excluded,
			   const AgFitArgs *args, AgFitOptions *options, AgError *err)
{
	AgFitArgs common = *args;
	const AgOptionNode *shared = ag_option_child(node, "AG_ARGS_FIT");

	if (shared != NULL)
		AG_TRY(ag_fit_args_parse(shared, &common, err));
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		const FamilyFacts *family = family_find(child->key);
		bool wanted;

		if (child == shared)
			continue;
		if (is_stack_level(child->key))
			return ag_option_unsupported("stack level in \"hyperparameters\"", child->key, err);
		if (family == NULL)
			return family_unknown(child->key, err);
		AG_TRY(family_wanted(included, excluded, child->key, &wanted, err));
		if (!wanted || (child->type == AG_JSON_ARRAY && child->n_children == 0))
			continue;
		if (!family->supported)
		{
			ag_option_unsupported("model family", family->key, err);
			ag_error_hint(err, "This release fits \"GBM\".");
			return AG_ERR_UNSUPPORTED;
		}
		AG_TRY(family_parse(child, &common, options, err));
	}
	return AG_OK;
}

static AgStatus
list_check(const AgOptionNode *node, AgError *err)
{
	AgNearest nearest;

	ag_nearest_init(&nearest, node->text);
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
	{
		if (strcmp(lists[i].key, node->text) != 0)
			ag_nearest_offer(&nearest, lists[i].key);
		else if (lists[i].supported)
			return AG_OK;
		else
			return ag_option_unsupported("list of models", lists[i].key, err);
	}
	ag_option_reject(node, "\"default\" or an object of model families", err);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	return AG_ERR_OPTION;
}

/* A model can't have more than the whole fit: said here, where both numbers are known. */
static AgStatus
resources_merge(AgFitOptions *options, AgError *err)
{
	for (int i = 0; i < options->n_models; i++)
	{
		AgModelConfig *model = &options->models[i];

		if (options->total.num_gpus >= 0.0 && model->asked.num_gpus > options->total.num_gpus)
		{
			ag_error_set(err, AG_ERR_OPTION,
						 "model \"%s\" asks for %.10g GPUs, but the whole fit has %.10g",
						 model->name, model->asked.num_gpus, options->total.num_gpus);
			ag_error_hint(err, "Raise the option \"num_gpus\" (all models together), or lower "
							   "\"num_gpus\" in \"ag_args_fit\" (each model).");
			return AG_ERR_OPTION;
		}
		if (options->total.num_cpus >= 0 && model->asked.num_cpus > options->total.num_cpus)
		{
			ag_error_set(err, AG_ERR_OPTION,
						 "model \"%s\" asks for %d CPUs, but the whole fit has %d", model->name,
						 model->asked.num_cpus, options->total.num_cpus);
			ag_error_hint(err, "Raise the option \"num_cpus\" (all models together), or lower "
							   "\"num_cpus\" in \"ag_args_fit\" (each model).");
			return AG_ERR_OPTION;
		}
		if (model->asked.num_gpus < 0.0)
			model->asked.num_gpus = options->total.num_gpus;
		if (model->asked.num_cpus < 0)
			model->asked.num_cpus = options->total.num_cpus;
	}
	return AG_OK;
}

AgStatus
ag_models_parse(const AgOptionNode *hyperparameters, const AgOptionNode *included,
				const AgOptionNode *excluded, const AgFitArgs *args, AgFitOptions *options,
				AgError *err)
{
	const AgOptionNode *node = hyperparameters;
	bool wanted;

	/* Checked even when no family asks: a misspelt name must not pass. */
	AG_TRY(family_wanted(included, excluded, "GBM", &wanted, err));
	options->models = ag_arena_alloc(&options->arena, AG_MAX_MODELS, sizeof *options->models);
	if (options->models == NULL)
		return ag_mem_error(options->arena.mem, AG_MAX_MODELS * sizeof *options->models, err);
	if (node == NULL || node->type == AG_JSON_NULL || node->type == AG_JSON_STRING)
	{
		if (node != NULL && node->type == AG_JSON_STRING)
			AG_TRY(list_check(node, err));
		if (wanted)
			AG_TRY(default_models(options, args, err));
	}
	else if (node->type == AG_JSON_OBJECT)
		AG_TRY(families_parse(node, included, excluded, args, options, err));
	else
		return ag_option_reject(node, "\"default\" or an object of model families", err);
	if (options->n_models == 0)
	{
		ag_error_set(err, AG_ERR_OPTION, "the options leave no model to fit");
		ag_error_hint(err, "Look at \"hyperparameters\", \"included_model_types\" and "
						   "\"excluded_model_types\".");
		return AG_ERR_OPTION;
	}
	return resources_merge(options, err);
}
