/*
 * options_naming.c - "ag_args": what a model is called, when its turn comes, and for what it may be used. Of the fit for all models, or of one.
 */
#include "engine/search/options_models.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/nearest.h"

#define MOST_BYTES 40 /* of a name and of its parts */
/* Of AutoGluon's scale: first models of the families from 90 down, the next of a family so much less than the one before. */
#define FIRST_PRIORITY 95.0
#define RANK_STEP 5.0
#define NEXT_STEP 55.0

/* Known and not offered, with the value that asks for nothing. */
static const struct
{
	const char *name;
	const char *off;
} other_args[] = {
	{"name_bag_suffix", "BAG"},
	{"model_type", NULL},
	{"disable_in_hpo", "false"},
	{"hyperparameter_tune_kwargs", NULL},
};

void
ag_naming_default(AgNaming *naming)
{
	memset(naming, 0, sizeof *naming);
	naming->priority = (double) NAN;
}

/* Names are parts of others ("GBM_XT_BAG_L1/S1F1") and of what people write in SQL. */
static AgStatus
part_parse(const AgOptionNode *node, char *part, AgError *err)
{
	size_t n = strlen(node->text);

	if (node->type != AG_JSON_STRING || n == 0 || n > MOST_BYTES ||
		node->text[strspn(node->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
									  "0123456789_-.")] != '\0')
		return ag_option_reject(node, "a text of up to 40 letters, digits, \"_\", \"-\" and \".\"",
								err);
	memcpy(part, node->text, n + 1);
	return AG_OK;
}

static AgStatus
problems_parse(const AgOptionNode *node, uint32_t *problems, AgError *err)
{
	static const char what[] =
		"an array of \"binary\", \"multiclass\", \"regression\" and \"quantile\"";

	if (node->type != AG_JSON_ARRAY || node->n_children == 0)
		return ag_option_reject(node, what, err);
	*problems = 0;
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		uint32_t before = *problems;

		for (int p = AG_PROBLEM_BINARY; p <= AG_PROBLEM_QUANTILE; p++)
			if (item->type == AG_JSON_STRING &&
				strcmp(item->text, ag_problem_name((AgProblem) p)) == 0)
				*problems |= UINT32_C(1) << p;
		if (*problems == before && strcmp(item->text, "softclass") != 0)
			return ag_option_reject(item, what, err);
	}
	if (*problems == 0) /* of a kind that no fit is of */
		*problems = UINT32_C(1) << 31;
	return AG_OK;
}

/* true is what there is anyway. */
static AgStatus
valid_parse(const AgOptionNode *node, bool *never, AgError *err)
{
	if (node->type != AG_JSON_BOOL)
		return ag_option_reject(node, "true or false", err);
	*never = strcmp(node->text, "false") == 0;
	return AG_OK;
}

static AgStatus
priority_parse(const AgOptionNode *node, double *priority, AgError *err)
{
	if (!ag_option_number(node, priority))
		return ag_option_reject(node, "a number: the higher, the earlier", err);
	return AG_OK;
}

typedef enum ArgKind
{
	ARG_PART,
	ARG_PRIORITY,
	ARG_PROBLEMS,
	ARG_VALID
} ArgKind;

static const struct
{
	const char *name;
	ArgKind kind;
	size_t offset; /* in AgNaming */
} args[] = {
	{"name", ARG_PART, offsetof(AgNaming, name)},
	{"name_main", ARG_PART, offsetof(AgNaming, main)},
	{"name_prefix", ARG_PART, offsetof(AgNaming, prefix)},
	{"name_suffix", ARG_PART, offsetof(AgNaming, suffix)},
	{"priority", ARG_PRIORITY, offsetof(AgNaming, priority)},
	{"problem_types", ARG_PROBLEMS, offsetof(AgNaming, problems)},
	{"valid_stacker", ARG_VALID, offsetof(AgNaming, never_stacks)},
	{"valid_base", ARG_VALID, offsetof(AgNaming, never_base)},
};

#define N_ARGS (sizeof args / sizeof args[0])
#define N_OTHERS (sizeof other_args / sizeof other_args[0])

static AgStatus
arg_parse(const AgOptionNode *node, size_t i, AgNaming *naming, AgError *err)
{
	void *at = (char *) naming + args[i].offset;

	if (node->type == AG_JSON_NULL) /* as not given */
		return AG_OK;
	switch (args[i].kind)
	{
		case ARG_PART:
			return part_parse(node, at, err);
		case ARG_PRIORITY:
			return priority_parse(node, at, err);
		case ARG_PROBLEMS:
			return problems_parse(node, at, err);
		case ARG_VALID:
			break;
	}
	return valid_parse(node, at, err);
}

static AgStatus
arg_other(const AgOptionNode *node, AgError *err)
{
	AgNearest nearest;

	for (size_t i = 0; i < N_OTHERS; i++)
		if (strcmp(node->key, other_args[i].name) == 0)
			return ag_option_is_off(node, other_args[i].off)
					   ? AG_OK
					   : ag_option_unsupported("argument of \"ag_args\"", node->key, err);
	ag_nearest_init(&nearest, node->key);
	for (size_t i = 0; i < N_ARGS; i++)
		ag_nearest_offer(&nearest, args[i].name);
	for (size_t i = 0; i < N_OTHERS; i++)
		ag_nearest_offer(&nearest, other_args[i].name);
	return ag_option_argument_unknown(node, &nearest, err);
}

AgStatus
ag_naming_parse(const AgOptionNode *node, AgNaming *naming, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object such as {\"name_suffix\": \"_slow\"}", err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		size_t i = 0;

		while (i < N_ARGS && strcmp(child->key, args[i].name) != 0)
			i++;
		if (i < N_ARGS)
			AG_TRY(arg_parse(child, i, naming, err));
		else
			AG_TRY(arg_other(child, err));
	}
	return AG_OK;
}

/* --- names */

/* Would it be taken for another member, or for a word? */
static bool
is_reserved(const char *name)
{
	size_t n = strlen(name);

	return strncmp(name, "WeightedEnsemble", 16) == 0 || strstr(name, "_BAG_L") != NULL ||
		   (n >= 5 && strcmp(name + n - 5, "_FULL") == 0) || strcmp(name, "best") == 0 ||
		   strcmp(name, "all") == 0;
}

static bool
is_taken(const AgFitOptions *options, const AgModelConfig *model, const char *name)
{
	for (int i = 0; i < options->n_models; i++)
		if (&options->models[i] != model && strcmp(options->models[i].name, name) == 0)
			return true;
	return false;
}

AgStatus
ag_naming_apply(const AgFitOptions *options, const AgNaming *naming, AgModelConfig *model,
				AgError *err)
{
	char name[4 * MOST_BYTES];
	const char *main = naming->main[0] != '\0' ? naming->main : model->family->key;

	if (naming->name[0] != '\0')
		snprintf(name, sizeof name, "%s", naming->name);
	else
		snprintf(name, sizeof name, "%s%s%s", naming->prefix, main, naming->suffix);
	if (strlen(name) > MOST_BYTES || is_reserved(name))
	{
		ag_error_set(err, AG_ERR_OPTION,
					 strlen(name) > MOST_BYTES ? "\"%s\" is too long for a model's name"
											   : "\"%s\" can't be a model's name",
					 name);
		ag_error_hint(err,
					  "Names have up to 40 bytes, and none of what ensembles, bags and models "
					  "fitted again are known by: \"WeightedEnsemble\", \"_BAG_L\", \"_FULL\".");
		return AG_ERR_OPTION;
	}
	snprintf(model->name, sizeof model->name, "%.40s", name);
	for (int n = 2; is_taken(options, model, model->name); n++)
		snprintf(model->name, sizeof model->name, "%.40s_%d", name, n);
	model->priority = naming->priority;
	model->never_stacks = naming->never_stacks;
	model->never_base = naming->never_base;
	model->problems = naming->problems;
	return AG_OK;
}

/* --- order */

/* Whom a short time limit should leave first. */
static int
family_rank(AgFamilyId family)
{
	static const int ranks[AG_FAMILY_LAST] = {
		[AG_FAMILY_GBM] = 1,      [AG_FAMILY_LR] = 2,     [AG_FAMILY_CAT] = 3,
		[AG_FAMILY_NN_TORCH] = 4, [AG_FAMILY_XT] = 5,     [AG_FAMILY_RF] = 6,
		[AG_FAMILY_XGB] = 7,      [AG_FAMILY_FASTAI] = 8, [AG_FAMILY_REALMLP] = 9,
		[AG_FAMILY_TABM] = 10,    [AG_FAMILY_KNN] = 11,
	};

	return ranks[family];
}

/*
 * jsonb doesn't keep the order of an object's members, so it says nothing: the first of each family by rank, then the second
 * of each, and so on; and before that what the user says. Among equals the same.
 */
void
ag_naming_order(AgFitOptions *options)
{
	int n_of[AG_FAMILY_LAST] = {0};
	double usual[AG_MAX_MODELS];
	AgModelConfig *models = options->models;

	for (int i = 0; i < options->n_models; i++)
	{
		usual[i] = FIRST_PRIORITY - RANK_STEP * family_rank(models[i].family->id) -
				   NEXT_STEP * n_of[models[i].family->id]++;
		if (isnan(models[i].priority))
			models[i].priority = usual[i];
	}
	for (int i = 1; i < options->n_models; i++)
		for (int k = i;
			 k > 0 && (models[k].priority > models[k - 1].priority ||
					   (models[k].priority == models[k - 1].priority && usual[k] > usual[k - 1]));
			 k--)
		{
			AgModelConfig model = models[k];
			double at = usual[k];

			models[k] = models[k - 1];
			models[k - 1] = model;
			usual[k] = usual[k - 1];
			usual[k - 1] = at;
		}
}
