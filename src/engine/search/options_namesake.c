/*
 * options_namesake.c - what AutoGluon's families of the same names take and ours don't: accepted where it asks for what ours do anyway, else refused by name. And "early_stop"
 * for families whose patience is a parameter.
 */
#include <stdio.h>
#include <string.h>

#include "engine/search/options_models.h"

/* same: blank-separated values that ask for nothing else; NULL: null alone does. */
static const struct
{
	AgFamilyId family;
	const char *name;
	const char *same;
} namesakes[] = {
	{AG_FAMILY_NN_TORCH, "optimizer", "adam"},
	{AG_FAMILY_NN_TORCH, "loss_function", "auto"},
	{AG_FAMILY_NN_TORCH, "y_range", NULL},
	{AG_FAMILY_NN_TORCH, "use_ngram_features", "false"},
	{AG_FAMILY_NN_TORCH, "gamma", "5"},
	{AG_FAMILY_NN_TORCH, "alpha", "0.01"},
	{AG_FAMILY_FASTAI, "bs", "auto"},
	{AG_FAMILY_FASTAI, "epochs", "auto"},
	{AG_FAMILY_FASTAI, "alpha", "0.01"},
	{AG_FAMILY_FASTAI, "y_scaler", NULL},
	{AG_FAMILY_FASTAI, "clipping", "true"},
	{AG_FAMILY_LR, "fit_intercept", "true"},
	{AG_FAMILY_LR, "solver", "auto lbfgs"},
	{AG_FAMILY_LR, "handle_text", "ignore"},
	{AG_FAMILY_LR, "vectorizer_dict_size", "75000"},
	{AG_FAMILY_LR, "proc.ngram_range", NULL},
	{AG_FAMILY_LR, "alpha", NULL},
	{AG_FAMILY_LR, "class_weight", NULL},
	{AG_FAMILY_KNN, "algorithm", "auto brute"}, /* all of them are exact */
	{AG_FAMILY_KNN, "leaf_size", "30"},
	{AG_FAMILY_KNN, "metric", "minkowski euclidean"},
	{AG_FAMILY_KNN, "p", "2"},
};

/* Unlike ag_option_is_off it takes no "false" for "not wanted". */
static bool
is_same(const AgOptionNode *node, const char *same)
{
	double value, other;

	while (same != NULL && *same != '\0')
	{
		size_t n = strcspn(same, " ");
		char word[32];

		snprintf(word, sizeof word, "%.*s", (int) n, same);
		if (node->type == AG_JSON_NUMBER && sscanf(word, "%lf", &other) == 1 &&
			ag_option_number(node, &value) && value == other)
			return true;
		if ((node->type == AG_JSON_STRING || node->type == AG_JSON_BOOL) &&
			strcmp(node->text, word) == 0)
			return true;
		same += n + (same[n] == ' ');
	}
	return node->type == AG_JSON_NULL;
}

AgStatus
ag_namesake_parse(const AgOptionNode *node, const AgFamily *family, bool *done, AgError *err)
{
	char label[AG_MAX_OPTION_PATH + 1];

	*done = false;
	for (size_t i = 0; i < sizeof namesakes / sizeof namesakes[0]; i++)
	{
		if (namesakes[i].family != family->id || strcmp(namesakes[i].name, node->key) != 0)
			continue;
		*done = is_same(node, namesakes[i].same);
		if (*done || ag_param_find(family->specs, *family->n_specs, node->key, NULL) != NULL)
			return AG_OK;
		return ag_option_unsupported("parameter", ag_option_label(node, label, sizeof label), err);
	}
	return AG_OK;
}

AgStatus
ag_early_stop_settle(const AgOptionNode *node, const AgFitArgs *common, AgModelConfig *model,
					 AgError *err)
{
	const AgFamily *family = model->family;
	const AgOptionNode *own = NULL;
	char text[32];

	if (family->stops_early || model->early_stop < 0)
		return AG_OK;
	if (family->patience == NULL)
	{
		if (node == NULL || model->early_stop == 0 || model->early_stop == common->early_stop)
			return AG_OK; /* nothing stops it early, or others are meant */
		ag_error_set(err, AG_ERR_OPTION, "argument \"early_stop\" means nothing to family %s",
					 family->key);
		ag_error_hint(err, "It doesn't learn in rounds or epochs.");
		return AG_ERR_OPTION;
	}
	if (node != NULL)
		own = ag_option_child(node, family->patience);
	if (own != NULL && own->type != AG_JSON_NULL)
		return AG_OK;
	snprintf(text, sizeof text, "%d", model->early_stop);
	return ag_param_set(family->specs, *family->n_specs, family->key, family->patience, text, false,
						model->params, err);
}
