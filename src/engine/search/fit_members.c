/*
 * fit_members.c - the list of members that a fit leaves: children, bags, ensembles, and what was fitted again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/search/fit_state.h"

#define ENSEMBLE "WeightedEnsemble_L2"

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

	member->fit_order = i + 1;
	member->family = model->config->family->key;
	member->stack_level = 1;
	member->num_cpus = model->plan.cpus_per_job;
	member->params_json = ag_fit_params_json(list->fit, model->config);
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
		snprintf(name, sizeof name, "%s/S%dF%d", model->name, c / n_folds + 1, c % n_folds + 1);
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
	if (child->history.n > 0)
	{
		member->history_json = ag_fit_history_json(list->fit, &child->history);
		if (member->history_json == NULL)
			return no_memory(list, 0);
	}
	list->members[list->n - 1].image = child->image;
	list->members[list->n - 1].n_image = child->n_image;
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
		names[c] = list->members[list->n - 1 - n + c].member.name;
		weights[c] = 1.0 / n;
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
	bool has_children =
		!model->is_bag || list->fit->options->save_bag_folds || model->full.image == NULL;

	for (int c = 0; has_children && c < model->n_children; c++)
		AG_TRY(child_add(list, i, c));
	return model->is_bag ? bag_add(list, i, has_children) : AG_OK;
}

static AgStatus
full_add(List *list, int i)
{
	const AgFitModel *model = &list->fit->models[i];
	AgFittedMember *member;
	char name[128];

	if (model->full.image == NULL)
		return AG_OK;
	member = member_add(list);
	AG_TRY(model_member(list, i, member));
	snprintf(name, sizeof name, "%s_FULL", model->name);
	member->fit_order = list->fit->n_models + 2 + i;
	AG_TRY(device_set(list, &model->full, member, model));
	member->fit_seconds = model->full.fit_seconds;
	member->predict_seconds = model->predict_seconds / model->n_children;
	list->members[list->n - 1].image = model->full.image;
	list->members[list->n - 1].n_image = model->full.n_image;
	return name_copy(list, name, &member->name);
}

static const AgFittedMember *
find(const List *list, const char *name)
{
	for (int i = 0; i < list->n; i++)
		if (strcmp(list->members[i].member.name, name) == 0)
			return &list->members[i].member;
	return NULL;
}

/* full: of the models as they were fitted again, where they were. */
static AgStatus
ensemble_add(List *list, bool full)
{
	AgFit *fit = list->fit;
	AgFittedMember *member;
	const char **names;
	double *weights;

	AG_TRY(inputs_get(list, fit->n_models, &names, &weights));
	member = member_add(list);
	member->name = full ? ENSEMBLE "_FULL" : ENSEMBLE;
	member->family = "ENS_WEIGHTED";
	member->stack_level = 2;
	member->fit_order = full ? 2 * fit->n_models + 2 : fit->n_models + 1;
	member->params_json = "{\"ensemble_size\": 25}";
	member->num_cpus = ag_pool_size(fit->ctx.pool);
	if (!full)
	{
		member->score_val = ag_metric_score(fit->metric, fit->ensemble_value);
		member->fit_seconds = fit->ensemble_seconds;
	}
	for (int i = 0; i < fit->n_models; i++)
	{
		const AgFitModel *model = &fit->models[i];
		char name[128];
		const AgFittedMember *input;

		if (!(model->weight > 0.0))
			continue;
		snprintf(name, sizeof name, "%s%s", model->name,
				 full && model->full.image != NULL ? "_FULL" : "");
		input = find(list, name);
		names[member->n_inputs] = input->name;
		weights[member->n_inputs++] = model->weight;
		member->can_infer = member->can_infer && input->can_infer;
	}
	member->input_names = names;
	member->input_weights = weights;
	return AG_OK;
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

AgStatus
ag_fit_members(AgFit *fit, AgFitMember **members, int *n)
{
	List list = {fit, NULL, 0};
	size_t most = 2;
	double value;
	bool any_full = false;

	for (int i = 0; i < fit->n_models; i++)
	{
		most += (size_t) fit->models[i].n_children + 2;
		any_full = any_full || (fit->models[i].full.image != NULL && fit->models[i].weight > 0.0);
	}
	list.members = ag_arena_alloc(&fit->arena, most, sizeof *list.members);
	if (list.members == NULL)
		return no_memory(&list, most * sizeof *list.members);
	for (int i = 0; i < fit->n_models; i++)
		AG_TRY(model_add(&list, i));
	for (int i = 0; i < fit->n_models; i++)
		AG_TRY(full_add(&list, i));
	if (fit->has_ensemble)
		AG_TRY(ensemble_add(&list, false));
	if (fit->has_ensemble && any_full)
		AG_TRY(ensemble_add(&list, true));
	if (fit->options->keep_only_best)
		keep_only(&list, ag_fit_best(fit, &value));
	for (int i = 0; i < list.n; i++)
		list.members[i].member.ordinal = i + 1;
	*members = list.members;
	*n = list.n;
	return AG_OK;
}
