/*
 * options_models.c - from "hyperparameters" to the list of configurations to fit.
 */
#include "engine/search/options_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/search/json.h"
#include "engine/search/options_lists.h"

/* Keys that users of AutoGluon know and that aren't in family.h's table. */
static const char *const unsupported_families[] = {
	"GBM_PREP",
	"TABM",
	"TABICL",
	"MITRA",
	"TABDPT",
	"TABDPT-TURBO",
	"TABPFNMIX",
	"NORI",
	"REALTABPFN-V2",
	"REALTABPFN-V2.5",
	"TABPFN-2.6",
	"TABPFN-3",
	"EBM",
	"AG_AUTOMM",
	"FT_TRANSFORMER",
	"AG_TEXT_NN",
	"AG_IMAGE_NN",
	"IM_RULEFIT",
	"IM_FIGS",
	"IM_GREEDYTREE",
	"IM_BOOSTEDRULES",
	"IM_HSTREE",
	"DUMMY",
	"VW",
	"FASTTEXT",
};

#define N_UNSUPPORTED (sizeof unsupported_families / sizeof unsupported_families[0])

/* A short list of numbers as JSON text; false when it is anything else. */
static bool
list_text(const AgOptionNode *node, char *text, size_t size)
{
	size_t used = 1;

	text[0] = '[';
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		size_t n = strlen(item->text);

		if (item->type != AG_JSON_NUMBER || n > size || used + n + 2 > size)
			return false;
		memcpy(text + used, item->text, n);
		used += n;
		if (item->next != NULL)
			text[used++] = ',';
	}
	memcpy(text + used, "]", 2);
	return node->type == AG_JSON_ARRAY;
}

/* A model's own parameter, through its family's table. */
static AgStatus
param_parse(const AgOptionNode *node, AgModelConfig *model, AgError *err)
{
	char label[AG_MAX_OPTION_PATH + 1];
	const AgFamily *family = model->family;
	char list[AG_PARAM_MAX_INTS * 16];
	bool done;

	AG_TRY(ag_namesake_parse(node, family, &done, err));
	if (done)
		return AG_OK;
	if (node->type == AG_JSON_NULL) /* as not given */
	{
		const char *nearest = NULL;

		if (ag_param_find(family->specs, *family->n_specs, node->key, &nearest) != NULL)
			return AG_OK;
	}
	else if (node->type == AG_JSON_OBJECT || node->type == AG_JSON_ARRAY)
	{
		const AgParamSpec *spec = ag_param_find(family->specs, *family->n_specs, node->key, NULL);

		if (spec != NULL && spec->type == AG_PARAM_INTS && list_text(node, list, sizeof list))
			return ag_param_set(family->specs, *family->n_specs, family->key, node->key, list,
								false, model->params, err);
		if (spec != NULL)
		{
			char takes[256];

			ag_option_reject(node, ag_param_takes(spec, takes, sizeof takes), err);
			if (node->type == AG_JSON_OBJECT && spec->type <= AG_PARAM_REAL)
				ag_error_hint(
					err, "A search space says what it is: {\"space\": \"real\", \"lower\": 0.1, "
						 "\"upper\": 1}, for example.");
			return AG_ERR_OPTION;
		}
	}
	if (strncmp(node->key, "ag.", 3) == 0 || strncmp(node->key, "ag_args", 7) == 0)
		return ag_option_unsupported("model argument", ag_option_label(node, label, sizeof label),
									 err);
	return ag_param_set(family->specs, *family->n_specs, family->key, node->key, node->text,
						node->type == AG_JSON_STRING, model->params, err);
}

/*
 * One configuration. "ag." keys win over its ag_args_fit, which wins over what all models have in
 * common: hence two passes.
 */
static AgStatus
entry_parse(const AgOptionNode *node, const AgFitArgs *common, AgFitOptions *options,
			AgModelConfig *model, AgError *err)
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
		else if (strcmp(child->key, "ag_args") == 0)
		{
			AG_TRY(ag_naming_parse(child, &args.naming, err));
			known = true;
		}
		else if (strncmp(child->key, "ag_args", 7) == 0 && ag_option_is_off(child, NULL))
			known = true;
		else if (strcmp(child->key, "ag_args_ensemble") == 0)
		{
			AG_TRY(ag_model_ensemble_parse(child, &args.bag, err));
			known = true;
		}
		else if (model->family->keeps_monotone && strcmp(child->key, "monotone_constraints") == 0)
		{
			AgMonotone *monotone = NULL;

			AG_TRY(ag_monotone_parse(child, &options->arena, &monotone, err));
			model->monotone = monotone;
			known = true;
		}
		else if (ag_search_is_space(child))
		{
			AG_TRY(ag_search_space_parse(child, options, model, err));
			known = true;
		}
		if (!known)
			AG_TRY(param_parse(child, model, err));
	}
	AG_TRY(ag_naming_apply(options, &args.naming, model, err));
	model->early_stop = args.early_stop;
	AG_TRY(ag_early_stop_settle(node, common, model, err));
	AG_TRY(ag_search_space_default(node, options, model, err));
	model->asked = args.asked;
	model->bag = args.bag;
	model->max_time_limit = args.max_time_limit;
	model->use_fp16 = args.use_fp16;
	model->prep = args.prep;
	if (model->search != NULL) /* trials are checked each by itself */
		return AG_OK;
	return model->family->check != NULL ? model->family->check(model->params, err) : AG_OK;
}

static AgStatus
model_add(AgFitOptions *options, const AgFamily *family, const AgOptionNode *node,
		  const AgFitArgs *common, AgError *err)
{
	AgModelConfig *model;

	if (options->n_models >= AG_MAX_MODELS)
		return ag_error_set(err, AG_ERR_OPTION,
							"option \"hyperparameters\" has more than %d models", AG_MAX_MODELS);
	model = &options->models[options->n_models];
	model->family = family;
	model->params = ag_arena_alloc(&options->arena, 1, family->params_bytes);
	if (model->params == NULL)
		return ag_mem_error(options->arena.mem, family->params_bytes, err);
	ag_params_default(family->specs, *family->n_specs, model->params);
	options->n_models++;
	model->monotone = options->monotone;
	if (node == NULL)
	{
		AG_TRY(ag_naming_apply(options, &common->naming, model, err));
		model->asked = common->asked;
		model->bag = common->bag;
		model->max_time_limit = common->max_time_limit;
		model->use_fp16 = common->use_fp16;
		model->prep = common->prep;
		model->early_stop = common->early_stop;
		return ag_early_stop_settle(NULL, common, model, err);
	}
	model->params_json = ag_option_json(&options->arena, node);
	if (model->params_json == NULL)
		return ag_mem_error(options->arena.mem, 0, err);
	return entry_parse(node, common, options, model, err);
}

static AgStatus family_wanted(const AgOptionNode *included, const AgOptionNode *excluded,
							  const char *key, bool *wanted, AgError *err);

/* One "name=value" of a list. */
static AgStatus
list_param(const char *word, size_t n, AgModelConfig *model, AgWriter *json, bool *first,
		   AgError *err)
{
	char text[128];
	char *value;
	bool is_word;

	snprintf(text, sizeof text, "%.*s", (int) n, word);
	value = strchr(text, '=');
	*value++ = '\0';
	is_word = strchr("0123456789.-[", *value) == NULL && strcmp(value, "true") != 0 &&
			  strcmp(value, "false") != 0;
	ag_json_key(json, first, text);
	if (is_word)
		ag_json_string(json, value, strlen(value));
	else
		ag_json_raw(json, value);
	return ag_param_set(model->family->specs, *model->family->n_specs, model->family->key, text,
						value, is_word, model->params, err);
}

static AgStatus
list_model(const AgListModel *entry, AgFitOptions *options, const AgFitArgs *common, AgError *err)
{
	AgModelConfig *model = &options->models[options->n_models];
	size_t n_tuned = strlen(AG_LIST_TUNED);
	bool is_tuned = strncmp(entry->params, AG_LIST_TUNED, n_tuned) == 0, first = true;
	AgWriter json;
	AgStatus status;

	AG_TRY(model_add(options, ag_family(entry->family), NULL, common, err));
	ag_writer_init(&json, options->arena.mem);
	ag_json_raw(&json, "{");
	for (const char *word = entry->params + (is_tuned ? n_tuned : 0); *word != '\0';
		 word += *word == ' ')
	{
		size_t n = strcspn(word, " ");

		AG_GO(list_param(word, n, model, &json, &first, err));
		word += n;
	}
	ag_json_raw(&json, "}");
	if (*entry->params == '\0' || is_tuned)
		AG_GO(ag_search_space_default(NULL, options, model, err));
	model->params_json = ag_json_take(&json, &options->arena);
	return model->params_json == NULL ? ag_mem_error(options->arena.mem, 0, err) : AG_OK;
done:
	ag_writer_free(&json);
	return status;
}

static AgStatus
list_models(const AgModelList *list, const AgOptionNode *included, const AgOptionNode *excluded,
			AgFitOptions *options, const AgFitArgs *common, AgError *err)
{
	for (int i = 0; i < list->n_models; i++)
	{
		bool wanted;

		AG_TRY(family_wanted(included, excluded, ag_family(list->models[i].family)->key, &wanted,
							 err));
		if (!wanted)
			continue;
		AG_TRY(list_model(&list->models[i], options, common, err));
		options->models[options->n_models - 1].is_named =
			included != NULL && included->type != AG_JSON_NULL;
	}
	return AG_OK;
}

/* Families asked for by name that the list lacks: with their defaults, after the list's own. */
static AgStatus
list_complete(const AgModelList *list, const AgOptionNode *included, const AgOptionNode *excluded,
			  AgFitOptions *options, const AgFitArgs *common, AgError *err)
{
	if (included == NULL || included->type == AG_JSON_NULL)
		return AG_OK;
	for (int f = 0; f < AG_FAMILY_LAST; f++)
	{
		AgListModel plain = {(AgFamilyId) f, ""};
		bool wanted;

		AG_TRY(family_wanted(included, excluded, ag_family(plain.family)->key, &wanted, err));
		for (int i = 0; i < list->n_models; i++)
			wanted = wanted && list->models[i].family != plain.family;
		if (!wanted)
			continue;
		AG_TRY(list_model(&plain, options, common, err));
		options->models[options->n_models - 1].is_named = true;
	}
	return AG_OK;
}

static bool
family_known(const char *key)
{
	for (size_t i = 0; i < N_UNSUPPORTED; i++)
		if (strcmp(unsupported_families[i], key) == 0)
			return true;
	return ag_family_find(key) != NULL;
}

static AgStatus
family_unknown(const char *key, AgError *err)
{
	AgNearest nearest;

	ag_error_set(err, AG_ERR_OPTION, "unrecognized model family \"%.*s\"",
				 (int) ag_utf8_clip(key, strlen(key), 60), key);
	ag_nearest_init(&nearest, key);
	for (int i = 0; i < AG_FAMILY_LAST; i++)
		ag_nearest_offer(&nearest, ag_family((AgFamilyId) i)->key);
	for (size_t i = 0; i < N_UNSUPPORTED; i++)
		ag_nearest_offer(&nearest, unsupported_families[i]);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	else
		ag_error_hint(err, "\"SELECT * FROM ag_families()\" lists the model families.");
	return AG_ERR_OPTION;
}

/* Known to AutoGluon's users, but not to this release. */
static AgStatus
family_unsupported(const char *key, AgError *err)
{
	char list[128] = "";
	size_t at = 0;

	for (int i = 0; i < AG_FAMILY_LAST; i++)
		at += (size_t) snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "",
								ag_family((AgFamilyId) i)->key);
	ag_option_unsupported("model family", key, err);
	ag_error_hint(err, "This release fits %s.", list);
	return AG_ERR_UNSUPPORTED;
}

/* Is that family in the list of included_model_types or excluded_model_types? Unknown names in it are errors; so is,
 * where the families must be fitted, one that this release doesn't have. */
static AgStatus
family_listed(const AgOptionNode *list, const char *key, bool must_fit, bool *listed, AgError *err)
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
		if (!family_known(item->text))
			return family_unknown(item->text, err);
		if (must_fit && ag_family_find(item->text) == NULL)
			return family_unsupported(item->text, err);
		*listed = *listed || strcmp(item->text, key) == 0;
	}
	return AG_OK;
}

static AgStatus
family_wanted(const AgOptionNode *included, const AgOptionNode *excluded, const char *key,
			  bool *wanted, AgError *err)
{
	bool in, out;

	AG_TRY(family_listed(included, key, true, &in, err));
	AG_TRY(family_listed(excluded, key, false, &out, err));
	*wanted = (included == NULL || included->type == AG_JSON_NULL || in) && !out;
	return AG_OK;
}

/* A family's entry: one object, or an array of them. */
static AgStatus
family_parse(const AgFamily *family, const AgOptionNode *node, const AgFitArgs *common,
			 AgFitOptions *options, AgError *err)
{
	if (node->type == AG_JSON_OBJECT)
		return model_add(options, family, node, common, err);
	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, "an object of parameters or an array of such objects", err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		if (item->type != AG_JSON_OBJECT)
			return ag_option_reject(item, "an object of parameters", err);
		AG_TRY(model_add(options, family, item, common, err));
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
		const AgFamily *family = ag_family_find(child->key);
		bool wanted;

		if (child == shared)
			continue;
		if (is_stack_level(child->key))
			return ag_option_unsupported("stack level in \"hyperparameters\"", child->key, err);
		if (!family_known(child->key))
			return family_unknown(child->key, err);
		AG_TRY(family_wanted(included, excluded, child->key, &wanted, err));
		if (!wanted || (child->type == AG_JSON_ARRAY && child->n_children == 0))
			continue;
		if (family == NULL)
			return family_unsupported(child->key, err);
		AG_TRY(family_parse(family, child, &common, options, err));
	}
	return AG_OK;
}

static AgStatus
list_find(const AgOptionNode *node, const AgModelList **list, AgError *err)
{
	AgNearest nearest;
	const AgModelList *lists;
	int n;

	*list = ag_model_list(node->text);
	if (*list != NULL && (*list)->models != NULL)
		return AG_OK;
	if (*list != NULL)
		return ag_option_unsupported("list of models", node->text, err);
	ag_nearest_init(&nearest, node->text);
	lists = ag_model_lists(&n);
	for (int i = 0; i < n; i++)
		ag_nearest_offer(&nearest, lists[i].name);
	ag_option_reject(node, "\"default\" or an object of model families", err);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	return AG_ERR_OPTION;
}

AgStatus
ag_models_parse(const AgOptionNode *hyperparameters, const char *list_name,
				const AgOptionNode *included, const AgOptionNode *excluded, const AgFitArgs *args,
				AgFitOptions *options, AgError *err)
{
	const AgOptionNode *node = hyperparameters;
	const AgModelList *list = ag_model_list(list_name != NULL ? list_name : "default");
	bool wanted;

	/* Checked even when no family asks: a misspelt name must not pass. */
	AG_TRY(family_wanted(included, excluded, "GBM", &wanted, err));
	options->models = ag_arena_alloc(&options->arena, AG_MAX_MODELS, sizeof *options->models);
	if (options->models == NULL)
		return ag_mem_error(options->arena.mem, AG_MAX_MODELS * sizeof *options->models, err);
	if (node == NULL || node->type == AG_JSON_NULL || node->type == AG_JSON_STRING)
	{
		if (node != NULL && node->type == AG_JSON_STRING)
			AG_TRY(list_find(node, &list, err));
		AG_TRY(list_models(list, included, excluded, options, args, err));
		AG_TRY(list_complete(list, included, excluded, options, args, err));
		options->models_from_set = true;
	}
	else if (node->type == AG_JSON_OBJECT)
	{
		AG_TRY(families_parse(node, included, excluded, args, options, err));
		ag_naming_order(options);
	}
	else
		return ag_option_reject(node, "\"default\" or an object of model families", err);
	if (options->n_models == 0)
	{
		ag_error_set(err, AG_ERR_OPTION, "the options leave no model to fit");
		ag_error_hint(err, "Look at \"hyperparameters\", \"included_model_types\" and "
						   "\"excluded_model_types\".");
		return AG_ERR_OPTION;
	}
	AG_TRY(ag_models_leave_out(options, err));
	AG_TRY(ag_search_expand(options, err));
	return ag_resources_merge(options, err);
}
