/*
 * options_search.c - searches over hyperparameters: what is asked for, spaces among a model's parameters, and the trials.
 *
 * Trials are configurations like others, so that everything that can be done with a model can be done with a trial.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/nearest.h"
#include "engine/base/rng.h"
#include "engine/search/options_models.h"
#include "engine/search/search.h"

#define KEY_SEARCH 0x68706f /* what these random numbers are for */
#define SPACE_TAKES                                                                                \
	"a search space such as {\"space\": \"real\", \"lower\": 0.01, \"upper\": 0.3, \"log\": "      \
	"true}, of space real, int, bool or categorical"

static AgStatus
trials_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	int64_t n;

	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (!ag_option_integer(node, 1, AG_MAX_MODELS, &n))
		return ag_option_reject(node, "an integer from 1 to 200", err);
	if (options->search.n_trials > 0)
		return ag_error_set(err, AG_ERR_OPTION,
							"options \"num_trials\" and \"hyperparameter_tune_kwargs.num_trials\" "
							"exclude each other");
	options->search.n_trials = (int) n;
	return AG_OK;
}

AgStatus
ag_search_num_trials_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	options->search.is_asked = true;
	return trials_parse(node, options, err);
}

static AgStatus
searcher_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	options->search.is_random = node->type == AG_JSON_STRING && strcmp(node->text, "random") == 0;
	if (options->search.is_random ||
		(node->type == AG_JSON_STRING &&
		 (strcmp(node->text, "auto") == 0 || strcmp(node->text, "bayes") == 0)))
		return AG_OK;
	return ag_option_reject(node,
							node->depth > 1
								? "\"auto\", \"random\" or \"bayes\""
								: "\"auto\", \"random\", \"bayes\" or an object of num_trials, "
								  "searcher and scheduler",
							err);
}

AgStatus
ag_search_asked_parse(const AgOptionNode *node, AgFitOptions *options, AgError *err)
{
	static const char *const names[] = {"num_trials", "searcher", "scheduler"};
	char label[AG_MAX_OPTION_PATH + 1];

	options->search.is_asked = true;
	if (node->type != AG_JSON_OBJECT)
		return searcher_parse(node, options, err);
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		AgNearest nearest;

		if (strcmp(child->key, "num_trials") == 0)
			AG_TRY(trials_parse(child, options, err));
		else if (strcmp(child->key, "searcher") == 0)
			AG_TRY(searcher_parse(child, options, err));
		else if (strcmp(child->key, "scheduler") == 0)
		{
			if (child->type != AG_JSON_NULL &&
				(child->type != AG_JSON_STRING ||
				 (strcmp(child->text, "local") != 0 && strcmp(child->text, "auto") != 0)))
				return ag_option_reject(child, "\"local\"", err);
		}
		else
		{
			ag_error_set(err, AG_ERR_OPTION, "unrecognized option \"%s\"",
						 ag_option_label(child, label, sizeof label));
			ag_nearest_init(&nearest, child->key);
			for (int i = 0; i < 3; i++)
				ag_nearest_offer(&nearest, names[i]);
			if (ag_nearest_name(&nearest) != NULL)
				ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
			else
				ag_error_hint(err, "It takes num_trials, searcher and scheduler.");
			return AG_ERR_OPTION;
		}
	}
	return AG_OK;
}

/* --- a space */

bool
ag_search_is_space(const AgOptionNode *node)
{
	return node->type == AG_JSON_OBJECT && ag_option_child(node, "space") != NULL;
}

static AgStatus
search_get(AgFitOptions *options, AgModelConfig *model, AgError *err)
{
	if (model->search == NULL)
		model->search = ag_arena_alloc(&options->arena, 1, sizeof *model->search);
	if (model->search == NULL)
		return ag_mem_error(options->arena.mem, sizeof *model->search, err);
	model->search->family = model->family;
	return AG_OK;
}

/* Would the parameter take that value? */
static AgStatus
value_try(const AgFamily *family, const AgSearchDim *dim, const AgSearchChoice *value, void *params,
		  AgError *err)
{
	return ag_param_set(family->specs, *family->n_specs, family->key, dim->spec->name, value->text,
						value->is_string, params, err);
}

/* "lower" or "upper". */
static AgStatus
bound_parse(const AgOptionNode *node, const char *key, AgModelConfig *model, const AgSearchDim *dim,
			double *bound, AgError *err)
{
	const AgOptionNode *child = ag_option_child(node, key);
	AgSearchChoice value = {NULL, false};
	double most = 1e9;

	if (child == NULL || !ag_option_number(child, bound))
		return ag_option_reject(child != NULL ? child : node,
								child != NULL ? "a number" : SPACE_TAKES, err);
	if (dim->kind == AG_SEARCH_INT && (*bound != floor(*bound) || fabs(*bound) > most))
		return ag_option_reject(child, "an integer", err);
	value.text = child->text;
	return value_try(model->family, dim, &value, model->params, err);
}

static AgStatus
interval_parse(const AgOptionNode *node, AgModelConfig *model, AgSearchDim *dim, AgError *err)
{
	const AgOptionNode *log = ag_option_child(node, "log");
	const AgOptionNode *first = ag_option_child(node, "default");
	double number = dim->spec->normal;

	if (dim->spec->type != AG_PARAM_INT && dim->spec->type != AG_PARAM_REAL)
		return ag_option_reject(node, "a search space of space categorical", err);
	if (dim->spec->type == AG_PARAM_INT && dim->kind == AG_SEARCH_REAL)
		return ag_option_reject(node, "a search space of space int or categorical", err);
	AG_TRY(bound_parse(node, "lower", model, dim, &dim->lower, err));
	AG_TRY(bound_parse(node, "upper", model, dim, &dim->upper, err));
	if (dim->lower >= dim->upper)
		return ag_option_reject(node, "a search space whose \"lower\" is less than its \"upper\"",
								err);
	if (log != NULL && log->type != AG_JSON_NULL && log->type != AG_JSON_BOOL)
		return ag_option_reject(log, "true or false", err);
	dim->is_log = log != NULL && log->type == AG_JSON_BOOL && strcmp(log->text, "true") == 0;
	if (dim->is_log && dim->lower <= 0.0)
		return ag_option_reject(node, "a search space with \"lower\" above 0 where \"log\" is true",
								err);
	if (first != NULL && first->type != AG_JSON_NULL &&
		(!ag_option_number(first, &number) || number < dim->lower || number > dim->upper))
		return ag_option_reject(first, "a number from \"lower\" to \"upper\"", err);
	dim->first = ag_search_snap(dim, ag_search_place(dim, number));
	return AG_OK;
}

/* A list of integers, as short as such parameters can be. */
static AgStatus
choice_read(const AgOptionNode *node, AgArena *arena, AgSearchChoice *choice, AgError *err)
{
	choice->is_string = node->type == AG_JSON_STRING;
	if (node->type == AG_JSON_ARRAY)
		choice->text = ag_option_json(arena, node);
	else if (node->type == AG_JSON_OBJECT || node->type == AG_JSON_NULL)
		return ag_option_reject(node, "a value of the parameter", err);
	else
		choice->text = ag_arena_strndup(arena, node->text, strlen(node->text));
	return choice->text == NULL ? ag_mem_error(arena->mem, 0, err) : AG_OK;
}

static AgStatus
choices_parse(const AgOptionNode *node, AgArena *arena, AgModelConfig *model, AgSearchDim *dim,
			  AgError *err)
{
	const AgOptionNode *list = ag_option_child(node, "choices");
	const AgOptionNode *first = ag_option_child(node, "default");
	int at = first == NULL || first->type == AG_JSON_NULL ? 0 : -1;

	if (list == NULL || list->type != AG_JSON_ARRAY || list->n_children < 1 ||
		list->n_children > AG_SEARCH_CHOICES)
		return ag_option_reject(list != NULL ? list : node,
								"a search space with an array of 1 to 100 \"choices\"", err);
	dim->choices = ag_arena_alloc(arena, (size_t) list->n_children, sizeof *dim->choices);
	if (dim->choices == NULL)
		return ag_mem_error(arena->mem, (size_t) list->n_children * sizeof *dim->choices, err);
	for (const AgOptionNode *item = list->first; item != NULL; item = item->next)
	{
		AgSearchChoice *choice = &dim->choices[dim->n_choices];

		AG_TRY(choice_read(item, arena, choice, err));
		AG_TRY(value_try(model->family, dim, choice, model->params, err));
		if (at < 0 && first->type == item->type && strcmp(first->text, item->text) == 0)
			at = dim->n_choices;
		dim->n_choices++;
	}
	if (at < 0)
		return ag_option_reject(first, "one of the \"choices\"", err);
	dim->first = (at + 0.5) / dim->n_choices;
	return AG_OK;
}

static AgStatus
bools_parse(AgArena *arena, AgModelConfig *model, AgSearchDim *dim, AgError *err)
{
	dim->choices = ag_arena_alloc(arena, 2, sizeof *dim->choices);
	if (dim->choices == NULL)
		return ag_mem_error(arena->mem, 2 * sizeof *dim->choices, err);
	dim->choices[0].text = "false";
	dim->choices[1].text = "true";
	dim->n_choices = 2;
	dim->first = 0.25;
	AG_TRY(value_try(model->family, dim, &dim->choices[0], model->params, err));
	return value_try(model->family, dim, &dim->choices[1], model->params, err);
}

/* Names as AutoGluon's classes, or in lower case. */
static AgStatus
kind_parse(const AgOptionNode *node, AgSearchKind *kind, bool *is_bool, const char **keys,
		   AgError *err)
{
	static const char *const names[] = {"real",        "Real",        "int",  "Int",
										"categorical", "Categorical", "bool", "Bool"};

	for (int i = 0; i < 8 && node->type == AG_JSON_STRING; i++)
		if (strcmp(node->text, names[i]) == 0)
		{
			*kind = i < 2 ? AG_SEARCH_REAL : i < 4 ? AG_SEARCH_INT : AG_SEARCH_CHOICE;
			*is_bool = i >= 6;
			*keys = i < 4   ? " space lower upper log default "
					: i < 6 ? " space choices default "
							: " space ";
			return AG_OK;
		}
	return ag_option_reject(node, "\"real\", \"int\", \"bool\" or \"categorical\"", err);
}

AgStatus
ag_search_space_parse(const AgOptionNode *node, AgFitOptions *options, AgModelConfig *model,
					  AgError *err)
{
	const AgFamily *family = model->family;
	char label[AG_MAX_OPTION_PATH + 1];
	const char *keys = "";
	bool is_bool = false;
	AgSearchDim *dim;

	if (!options->search.is_asked)
	{
		ag_error_set(err, AG_ERR_OPTION,
					 "option \"%s\" is a search space, which needs \"hyperparameter_tune_kwargs\"",
					 ag_option_label(node, label, sizeof label));
		ag_error_hint(err, "Set \"hyperparameter_tune_kwargs\" to \"auto\", for example.");
		return AG_ERR_OPTION;
	}
	AG_TRY(search_get(options, model, err));
	if (model->search->n_dims >= AG_SEARCH_DIMS)
		return ag_error_set(err, AG_ERR_OPTION, "model \"%s\" has more than %d search spaces",
							model->name, AG_SEARCH_DIMS);
	dim = &model->search->dims[model->search->n_dims];
	dim->spec = ag_param_find(family->specs, *family->n_specs, node->key, NULL);
	if (dim->spec == NULL) /* refused as any other value of it is */
		return ag_param_set(family->specs, *family->n_specs, family->key, node->key, "0", false,
							model->params, err);
	for (int d = 0; d < model->search->n_dims; d++)
		if (model->search->dims[d].spec == dim->spec)
			return ag_error_set(err, AG_ERR_OPTION, "model \"%s\" has two search spaces of \"%s\"",
								model->name, dim->spec->name);
	AG_TRY(kind_parse(ag_option_child(node, "space"), &dim->kind, &is_bool, &keys, err));
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		char word[AG_MAX_OPTION_PATH + 3];

		snprintf(word, sizeof word, " %s ", child->key);
		if (strstr(keys, word) == NULL)
			return ag_error_set(err, AG_ERR_OPTION, "unrecognized option \"%s\"",
								ag_option_label(child, label, sizeof label));
	}
	model->search->n_dims++;
	if (dim->kind != AG_SEARCH_CHOICE)
		return interval_parse(node, model, dim, err);
	return is_bool ? bools_parse(&options->arena, model, dim, err)
				   : choices_parse(node, &options->arena, model, dim, err);
}

/* Does the user say what that parameter is? */
static bool
is_given(const AgFamily *family, const AgOptionNode *node, const AgParamSpec *spec)
{
	for (const AgOptionNode *child = node != NULL ? node->first : NULL; child != NULL;
		 child = child->next)
		if (child->type != AG_JSON_NULL &&
			ag_param_find(family->specs, *family->n_specs, child->key, NULL) == spec)
			return true;
	return false;
}

AgStatus
ag_search_space_default(const AgOptionNode *node, AgFitOptions *options, AgModelConfig *model,
						AgError *err)
{
	AgSearchDim dims[AG_SEARCH_DIMS];
	int n;

	if (!options->search.is_asked || model->search != NULL)
		return AG_OK;
	AG_TRY(ag_search_default_dims(model->family->id, &options->arena, dims, &n, err));
	for (int d = 0; d < n; d++)
		if (!is_given(model->family, node, dims[d].spec))
		{
			AG_TRY(search_get(options, model, err));
			model->search->dims[model->search->n_dims++] = dims[d];
		}
	return AG_OK;
}

/* --- trials */

static void *
params_copy(AgFitOptions *options, const AgFamily *family, const void *params)
{
	void *copy = ag_arena_alloc(&options->arena, 1, family->params_bytes);

	if (copy != NULL)
		memcpy(copy, params, family->params_bytes);
	return copy;
}

/* What needs most memory is, by and large, what is largest; a space's choices in the order given. */
static AgStatus
largest_set(AgFitOptions *options, AgModelConfig *model, AgError *err)
{
	AgSearch *search = model->search;
	double corner[AG_SEARCH_DIMS];
	AgError ignored;

	search->largest = params_copy(options, model->family, model->params);
	if (search->largest == NULL)
		return ag_mem_error(options->arena.mem, model->family->params_bytes, err);
	for (int d = 0; d < search->n_dims; d++)
		corner[d] = 1.0;
	ag_error_init(&ignored); /* that the values don't go together is no matter here */
	if (ag_search_set(search, corner, search->largest, &ignored) == AG_ERR_MEMORY)
		return ag_mem_error(options->arena.mem, model->family->params_bytes, err);
	return AG_OK;
}

static AgStatus
search_begin(AgFitOptions *options, AgModelConfig *model, int number, AgError *err)
{
	AgSearch *search = model->search;
	int n = options->search.n_trials > 0 ? options->search.n_trials : AG_SEARCH_TRIALS;
	size_t n_places;

	search->is_bayes = !options->search.is_random;
	search->n_trials = ag_search_n_points(search, n);
	search->key = ag_key(ag_key(options->random_state, KEY_SEARCH), (uint64_t) number);
	n_places = (size_t) search->n_trials * (size_t) search->n_dims;
	search->points = ag_arena_alloc(&options->arena, n_places, sizeof *search->points);
	if (search->points == NULL)
		return ag_mem_error(options->arena.mem, n_places * sizeof *search->points, err);
	return largest_set(options, model, err);
}

/* As it was when the fit that is repeated was made; else a draw, which the fit may replace. */
static AgStatus
trial_make(AgFitOptions *options, const AgModelConfig *model, int trial, AgModelConfig *made,
		   AgError *err)
{
	AgSearch *search = model->search;
	size_t n_dims = (size_t) search->n_dims;
	double *point = search->points + (size_t) (trial - 1) * n_dims;

	*made = *model;
	made->trial = trial;
	snprintf(made->name, sizeof made->name, "%.50s/T%d", model->name, trial);
	ag_search_draw(search, trial, point);
	for (int i = 0; options->replay != NULL && i < options->replay->n_trials; i++)
	{
		const AgReplayTrial *old = &options->replay->trials[i];

		if (strcmp(old->name, made->name) == 0 && old->n == search->n_dims)
			memcpy(point, old->point, n_dims * sizeof *point);
	}
	made->params = params_copy(options, model->family, model->params);
	if (made->params == NULL)
		return ag_mem_error(options->arena.mem, model->family->params_bytes, err);
	return ag_search_set(search, point, made->params, err);
}

AgStatus
ag_search_expand(AgFitOptions *options, AgError *err)
{
	int n_before = options->n_models, n_after = 0, most = 0, n_searches = 0;
	AgModelConfig *before = options->models, *after;

	if (!options->search.is_asked)
		return AG_OK;
	for (int i = 0; i < n_before; i++)
	{
		int n = 1;

		if (before[i].search != NULL)
		{
			AG_TRY(search_begin(options, &before[i], i, err));
			n = before[i].search->n_trials;
			n_searches++;
		}
		n_after += n;
		most = n > most ? n : most;
	}
	if (n_searches == 0)
	{
		ag_error_set(err, AG_ERR_OPTION,
					 "option \"hyperparameter_tune_kwargs\" finds nothing to search for");
		ag_error_hint(err,
					  "Give a model of \"hyperparameters\" a search space, or leave the "
					  "parameters out that \"SELECT * FROM ag_families()\" lists a space for.");
		return AG_ERR_OPTION;
	}
	if (n_after > AG_MAX_MODELS)
	{
		ag_error_set(err, AG_ERR_OPTION,
					 "the search asks for %d models, and at most %d can be fitted", n_after,
					 AG_MAX_MODELS);
		ag_error_hint(err, "Lower \"num_trials\", or fit fewer model families.");
		return AG_ERR_OPTION;
	}
	after = ag_arena_alloc(&options->arena, AG_MAX_MODELS, sizeof *after);
	if (after == NULL)
		return ag_mem_error(options->arena.mem, AG_MAX_MODELS * sizeof *after, err);
	options->n_models = 0;
	/* every search's first trials before anyone's second: what a short time limit leaves is varied */
	for (int trial = 1; trial <= most; trial++)
		for (int i = 0; i < n_before; i++)
		{
			AgModelConfig *made = &after[options->n_models];

			if (trial > (before[i].search != NULL ? before[i].search->n_trials : 1))
				continue;
			if (before[i].search == NULL)
				*made = before[i];
			else
				AG_TRY(trial_make(options, &before[i], trial, made, err));
			options->n_models++;
		}
	options->models = after;
	return AG_OK;
}
