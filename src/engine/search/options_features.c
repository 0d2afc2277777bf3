/*
 * options_features.c - "_feature_generator_kwargs": how columns become features; and "prep_params": which columns a model
 * makes for itself.
 */
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/search/options_models.h"

/* Arguments of AutoGluon's generator that can only have the value that they always have here. */
static const struct
{
	const char *name;
	const char *always;
} other_args[] = {
	{"enable_numeric_features", "true"},  {"enable_categorical_features", "true"},
	{"enable_datetime_features", "true"}, {"enable_raw_text_features", "false"},
	{"enable_vision_features", "false"},  {"vectorizer", NULL},
	{"pre_drop_useless", "true"},         {"pre_enforce_types", "true"},
	{"custom_feature_generators", NULL},
};

static AgStatus
flag_parse(const AgOptionNode *node, bool *flag, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_BOOL)
		return ag_option_reject(node, "true or false", err);
	*flag = strcmp(node->text, "true") == 0;
	return AG_OK;
}

static AgStatus
unknown(const AgOptionNode *node, AgNearest *nearest, AgError *err)
{
	char label[128];

	ag_error_set(err, AG_ERR_OPTION, "unrecognized option \"%s\"",
				 ag_option_label(node, label, sizeof label));
	if (ag_nearest_name(nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(nearest));
	return AG_ERR_OPTION;
}

static AgStatus
ngrams_parse(const AgOptionNode *node, AgFeatureParams *params, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"max_features\": 1000}", err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		AgNearest nearest;
		int64_t value;

		if (strcmp(child->key, "max_features") != 0)
		{
			ag_nearest_init(&nearest, child->key);
			ag_nearest_offer(&nearest, "max_features");
			return unknown(child, &nearest, err);
		}
		if (child->type == AG_JSON_NULL)
			continue;
		if (!ag_option_integer(child, 1, AG_FEATURE_MAX_NGRAMS, &value))
			return ag_option_reject(child, "an integer from 1 to 10000", err);
		params->max_ngrams = (uint32_t) value;
	}
	return AG_OK;
}

static AgStatus
arg_parse(const AgOptionNode *node, AgFeatureParams *params, AgError *err)
{
	AgNearest nearest;

	if (strcmp(node->key, "enable_text_special_features") == 0)
		return flag_parse(node, &params->text_special, err);
	if (strcmp(node->key, "enable_text_ngram_features") == 0)
		return flag_parse(node, &params->text_ngram, err);
	if (strcmp(node->key, "text_ngram_params") == 0)
		return ngrams_parse(node, params, err);
	ag_nearest_init(&nearest, node->key);
	ag_nearest_offer(&nearest, "enable_text_special_features");
	ag_nearest_offer(&nearest, "enable_text_ngram_features");
	ag_nearest_offer(&nearest, "text_ngram_params");
	for (size_t i = 0; i < sizeof other_args / sizeof other_args[0]; i++)
	{
		if (strcmp(node->key, other_args[i].name) != 0)
			continue;
		if (node->type == AG_JSON_NULL ||
			(other_args[i].always != NULL && node->type == AG_JSON_BOOL &&
			 strcmp(node->text, other_args[i].always) == 0))
			return AG_OK;
		return ag_option_unsupported("argument of \"_feature_generator_kwargs\"", node->key, err);
	}
	return unknown(node, &nearest, err);
}

AgStatus
ag_feature_args_parse(const AgOptionNode *node, AgFeatureParams *params, AgError *err)
{
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"enable_text_ngram_features\": false}",
								err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
		AG_TRY(arg_parse(child, params, err));
	return AG_OK;
}

static AgStatus
generator_parse(const AgOptionNode *node, AgPrepAsked *prep, AgError *err)
{
	static const char *const names[] = {"OOFTargetEncodingFeatureGenerator",
										"CategoricalInteractionFeatureGenerator",
										"GroupByFeatureGenerator"};
	bool *const flags[] = {&prep->target, &prep->crosses, &prep->group_by};
	AgNearest nearest;

	ag_nearest_init(&nearest, node->text);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
	{
		if (strcmp(node->text, names[i]) == 0)
		{
			*flags[i] = true;
			return AG_OK;
		}
		ag_nearest_offer(&nearest, names[i]);
	}
	if (strcmp(node->text, "ArithmeticFeatureGenerator") == 0 ||
		strcmp(node->text, "RandomSubsetTargetEncodingFeatureGenerator") == 0)
		return ag_option_unsupported("generator of features", node->text, err);
	ag_option_reject(node,
					 "OOFTargetEncodingFeatureGenerator, "
					 "CategoricalInteractionFeatureGenerator or GroupByFeatureGenerator",
					 err);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
	return AG_ERR_OPTION;
}

/* AutoGluon nests lists of generators, each a name and an object of its arguments. */
AgStatus
ag_prep_params_parse(const AgOptionNode *node, AgPrepAsked *prep, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type == AG_JSON_STRING)
		return generator_parse(node, prep, err);
	if (node->type == AG_JSON_OBJECT && node->first != NULL)
		return ag_option_unsupported("argument of a generator of features", node->first->key, err);
	if (node->type != AG_JSON_OBJECT && node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, "the name of a generator of features, or an array of them",
								err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
		AG_TRY(ag_prep_params_parse(child, prep, err));
	return AG_OK;
}
