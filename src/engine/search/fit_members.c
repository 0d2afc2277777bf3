/*
 * fit_members.c - the list of members that a fit leaves: children, bags, ensembles, and what was fitted again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

typedef struct List
{
	AgFit *fit;
	AgFitMember *members;
	int n;
} List;

static AgStatus
no_memory(const List *list, size_t n)
{
	return ag_mem_error(list->fit->ctx.mem, n, list->fit->ctx.error);
}

static AgStatus
name_copy(const List *list, const char *name, const char **copy)
{
	*copy = ag_arena_strndup(&list->fit->arena, name, strlen(name));
	return *copy == NULL ? no_memory(list, strlen(name)) : AG_OK;
}

/* Room for a member's inputs. */
static AgStatus
inputs_get(const List *list, int n, const char ***names, double **weights)
{
	*names = ag_arena_alloc(&list->fit->arena, (size_t) n, sizeof **names);
	*weights = ag_arena_alloc(&list->fit->arena, (size_t) n, sizeof **weights);
	return *names == NULL || *weights == NULL ? no_memory(list, (size_t) n * sizeof **names)
											  : AG_OK;
}

static AgFittedMember *
member_add(List *list)
{
	AgFittedMember *member = &list->members[list->n++].member;

	member->score_val = (double) NAN;
	member->device = "cpu";
	member->can_infer = true;
	return member;
}

/* What all that is made of one configuration has in common. */
static AgStatus
model_member(List *list, int i, AgFittedMember *member)
{
	const AgFitModel *model = &list->fit->models[i];

	member->fit_order = model->fit_order;
	member->family = model->config->family->key;
	member->stack_level = model->level;
	member->num_cpus = model->plan.cpus_per_job;
	member->params_json = ag_fit_params_json(list->fit, model);
	return member->params_json == NULL ? no_memory(list, 0) : AG_OK;
}

/* Where one training ran. */
static AgStatus
device_set(const List *list, const AgTrained *trained, AgFittedMember *member,
		   const AgFitModel *model)
{
	char device[AG_DEVICES_TEXT];

	if (trained->gpu == NULL)
		return AG_OK;
	ag_trained_devices(trained, 1, device, sizeof device);
	member->num_gpus = (double) model->plan.gpu_shares / AG_GPU_SHARES;
	return name_copy(list, device, &member->device);
}

static const AgFittedMember *
find(const List *list, const char *name)
{
	for (int i = 0; i < list->n; i++)
		if (strcmp(list->members[i].member.name, name) == 0)
			return &list->members[i].member;
	return NULL;
}

/* The member that a model is for others; full: as it was fitted again, where it was. */
static AgStatus
input_find(const List *list, int i, bool full, const AgFittedMember **input)
{
	const AgFitModel *model = &list->fit->models[i];
	char name[AG_FIT_NAME + 8];

	snprintf(name, sizeof name, "%s%s", model->name,
			 full && model->full.image != NULL ? "_FULL" : "");
	*input = find(list, name);
	return *input != NULL ? AG_OK
						  : ag_error_set(list->fit->ctx.error, AG_ERR_INTERNAL,
										 "there is no member \"%s\"", name);
}

/* A stacker's model looks at members of the level below: the models fitted again at those that were. */
static AgStatus
stack_inputs_add(List *list, int i, bool full, AgFittedMember *member)
{
	const AgFitLevel *level = ag_fit_inputs(list->fit, &list->fit->models[i]);
	const AgFittedMember *input;
	const char **names;
	double *weights;

	if (level == NULL)
		return AG_OK;
	AG_TRY(inputs_get(list, level->n_inputs, &names, &weights));
	for (int k = 0; k < level->n_inputs; k++)
	{
		AG_TRY(input_find(list, level->inputs[k], full, &input));
		names[k] = input->name;
		weights[k] = 1.0;
		member->can_infer = member->can_infer && input->can_infer;
	}
	member->n_inputs = level->n_inputs;
	member->input_names = names;
	member->input_weights = weights;
	list->members[list->n - 1].is_stacked = true;
	return AG_OK;
}

/* A trained model: the only one of its configuration, or a bag's child. */
static AgStatus
child_add(List *list, int i, int c)
{
	const AgFitModel *model = &list->fit->models[i];
	const AgTrained *child = &model->children[c];
	int n_folds = list->fit->validation.n_folds;
	AgFittedMember *member = member_add(list);
	char name[128];

	AG_TRY(model_member(list, i, member));
	if (model->is_bag)
	{
		int at = model->child_at[c];

		snprintf(name, sizeof name, "%s/S%dF%d", model->name, at / n_folds + 1, at % n_folds + 1);
		member->fold = c + 1;
	}
	else
	{
		snprintf(name, sizeof name, "%s", model->name);
		member->score_val = ag_metric_score(list->fit->metric, model->value);
	}
	AG_TRY(device_set(list, child, member, model));
	member->fit_seconds = child->fit_seconds;
	member->predict_seconds = model->predict_seconds / model->n_children;
	if (child->history.n > 0 && !list->fit->options->save_space)
	{
		member->history_json = ag_fit_history_json(list->fit, &child->history);
		if (member->history_json == NULL)
			return no_memory(list, 0);
	}
	list->members[list->n - 1].image = child->image;
	list->members[list->n - 1].n_image = child->n_image;
	AG_TRY(stack_inputs_add(list, i, false, member));
	return name_copy(list, name, &member->name);
}

/* The plain mean of its children, whose times are theirs. */
static AgStatus
bag_add(List *list, int i, bool has_children)
{
	const AgFitModel *model = &list->fit->models[i];
	int n = has_children ? model->n_children : 0;
	AgFittedMember *member = member_add(list);
	char devices[AG_DEVICES_TEXT];
	const char **names;
	double *weights;

	AG_TRY(model_member(list, i, member));
	AG_TRY(inputs_get(list, n, &names, &weights));
	ag_trained_devices(model->children, model->n_children, devices, sizeof devices);
	AG_TRY(name_copy(list, devices, &member->device));
	member->num_gpus = ag_fit_model_gpus(model);
	member->num_cpus = model->plan.num_cpus;
	for (int c = 0; c < n; c++)
	{
		const AgFittedMember *child = &list->members[list->n - 1 - n + c].member;

		names[c] = child->name;
		weights[c] = 1.0 / n;
		member->can_infer = member->can_infer && child->can_infer;
	}
	member->name = model->name;
	member->score_val = ag_metric_score(list->fit->metric, model->value);
	member->n_inputs = n;
	member->input_names = names;
	member->input_weights = weights;
	if (!has_children)
	{
		member->can_infer = false;
		member->fit_seconds = model->fit_seconds;
		member->predict_seconds = model->predict_seconds;
	}
	return AG_OK;
}

static AgStatus
model_add(List *list, int i)
{
	const AgFitModel *model = &list->fit->models[i];
	bool has_children = !model->is_bag || ag_fit_keeps_children(list->fit, i);

	for (int c = 0; has_children && c < model->n_children; c++)
		AG_TRY(child_add(list, i, c));
	return model->is_bag ? bag_add(list, i, has_children) : AG_OK;
}

static AgStatus
full_add(List *list, int i, int *fit_order)
{
	const AgFitModel *model = &list->fit->models[i];
	AgFittedMember *member;
	char name[128];

	if (model->full.image == NULL)
		return AG_OK;
	member = member_add(list);
	AG_TRY(model_member(list, i, member));
	snprintf(name, sizeof name, "%s_FULL", model->name);
	member->fit_order = ++*fit_order;
	AG_TRY(device_set(list, &model->full, member, model));
	member->fit_seconds = model->full.fit_seconds;
	member->predict_seconds = model->predict_seconds / model->n_children;
	list->members[list->n - 1].image = model->full.image;
	list->members[list->n - 1].n_image = model->full.n_image;
	AG_TRY(stack_inputs_add(list, i, true, member));
	return name_copy(list, name, &member->name);
}

/* full: of the models as they were fitted again, where they were. */
static AgStatus
ensemble_add(List *list, const AgFitEnsemble *ensemble, bool full, int *fit_order)
{
	AgFit *fit = list->fit;
	AgFittedMember *member;
	const char **names;
	double *weights;
	char name[AG_FIT_NAME + 8];

	AG_TRY(inputs_get(list, ensemble->n_models, &names, &weights));
	member = member_add(list);
	snprintf(name, sizeof name, "%s%s", ensemble->name, full ? "_FULL" : "");
	AG_TRY(name_copy(list, name, &member->name));
	member->family = "ENS_WEIGHTED";
	member->stack_level = ensemble->level;
	member->fit_order = full ? ++*fit_order : ensemble->fit_order;
	member->params_json = "{\"ensemble_size\": 25}";
	member->num_cpus = ag_pool_size(fit->ctx.pool);
	if (!full)
	{
		member->score_val = ag_metric_score(fit->metric, ensemble->value);
		member->fit_seconds = ensemble->seconds;
	}
	for (int i = 0; i < ensemble->n_models; i++)
	{
		const AgFittedMember *input;

		if (!(ensemble->weights[i] > 0.0))
			continue;
		AG_TRY(input_find(list, i, full, &input));
		names[member->n_inputs] = input->name;
		weights[member->n_inputs++] = ensemble->weights[i];
		member->can_infer = member->can_infer && input->can_infer;
	}
	member->input_names = names;
	member->input_weights = weights;
	return AG_OK;
}

static bool
has_full(const AgFit *fit, const AgFitEnsemble *ensemble)
{
	for (int i = 0; i < ensemble->n_models; i++)
		if (fit->models[i].full.image != NULL && ensemble->weights[i] > 0.0)
			return true;
	return false;
}

/* The member of that name and all that it combines. Inputs stand before what combines them: one pass from the end. */
static void
keep_only(List *list, const char *name)
{
	int n = 0;

	for (int i = list->n - 1; i >= 0; i--)
	{
		const AgFittedMember *member = &list->members[i].member;

		if (strcmp(member->name, name) == 0)
			list->members[i].is_needed = true;
		for (int k = 0; list->members[i].is_needed && k < member->n_inputs; k++)
			for (int j = 0; j < i; j++)
				if (strcmp(list->members[j].member.name, member->input_names[k]) == 0)
					list->members[j].is_needed = true;
	}
	for (int i = 0; i < list->n; i++)
		if (list->members[i].is_needed)
			list->members[n++] = list->members[i];
	list->n = n;
}

static AgStatus
list_fill(List *list)
{
	const AgFit *fit = list->fit;
	int fit_order = fit->n_fitted;

	for (int i = 0; i < fit->n_models; i++)
		AG_TRY(model_add(list, i));
	for (int i = 0; i < fit->n_models; i++)
		AG_TRY(full_add(list, i, &fit_order));
	for (int e = 0; e < fit->n_ensembles; e++)
		AG_TRY(ensemble_add(list, &fit->ensembles[e], false, &fit_order));
	for (int e = 0; e < fit->n_ensembles; e++)
		if (has_full(fit, &fit->ensembles[e]))
			AG_TRY(ensemble_add(list, &fit->ensembles[e], true, &fit_order));
	return AG_OK;
}

AgStatus
ag_fit_members(AgFit *fit, AgFitMember **members, int *n)
{
	List list = {fit, NULL, 0};
	size_t most = 2 * (size_t) fit->n_ensembles;
	const char *best;
	double value;

	for (int i = 0; i < fit->n_models; i++)
		most += (size_t) fit->models[i].n_children + 2;
	list.members = ag_arena_alloc(&fit->arena, most, sizeof *list.members);
	if (list.members == NULL)
		return no_memory(&list, most * sizeof *list.members);
	AG_TRY(list_fill(&list));
	best = ag_fit_best(fit, &value);
	if (fit->options->keep_only_best)
		keep_only(&list, best);
	for (int i = 0; i < list.n; i++)
	{
		list.members[i].member.ordinal = i + 1;
		if (strcmp(list.members[i].member.name, best) != 0)
			continue;
		list.members[i].member.temperature = fit->temperature;
		list.members[i].member.n_shifts = fit->shifts != NULL ? fit->label->n_quantiles : 0;
		list.members[i].member.shifts = fit->shifts;
	}
	*members = list.members;
	*n = list.n;
	return AG_OK;
}
