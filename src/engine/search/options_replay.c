/*
 * options_replay.c - the executed plan of an earlier fit, to be repeated exactly: what fit_replay.c wrote.
 */
#include "engine/search/options_replay.h"

#include <limits.h>
#include <string.h>

#define WHAT "the name of a version such as \"name@3\""

static AgStatus
number_read(const AgOptionNode *node, const char *key, int least, int most, int *value,
			AgError *err)
{
	const AgOptionNode *child = ag_option_child(node, key);
	int64_t number;

	if (child == NULL || !ag_option_integer(child, least, most, &number))
		return ag_option_reject(child != NULL ? child : node, WHAT, err);
	*value = (int) number;
	return AG_OK;
}

static AgStatus
rounds_read(AgArena *arena, const AgOptionNode *node, AgReplayModel *model, AgError *err)
{
	const AgOptionNode *item;
	size_t n;

	if (node == NULL || node->type != AG_JSON_ARRAY || node->n_children < 1 ||
		node->n_children > AG_MAX_BAG_FOLDS * AG_MAX_BAG_SETS)
		return ag_option_reject(node, WHAT, err);
	n = (size_t) node->n_children;
	model->rounds = ag_arena_alloc(arena, n, sizeof *model->rounds);
	if (model->rounds == NULL)
		return ag_mem_error(arena->mem, n * sizeof *model->rounds, err);
	for (item = node->first; item != NULL; item = item->next)
	{
		int64_t rounds;

		if (!ag_option_integer(item, 0, INT_MAX, &rounds))
			return ag_option_reject(item, WHAT, err);
		model->rounds[model->n_children++] = (int) rounds;
	}
	return AG_OK;
}

static AgStatus
model_read(AgArena *arena, const AgOptionNode *node, AgReplayModel *model, AgError *err)
{
	const AgOptionNode *name = ag_option_child(node, "name");
	const AgOptionNode *full = ag_option_child(node, "full");
	const AgOptionNode *rounds = ag_option_child(node, "rounds");

	if (name == NULL || name->type != AG_JSON_STRING || full == NULL ||
		full->type != AG_JSON_BOOL || rounds == NULL)
		return ag_option_reject(node, WHAT, err);
	model->name = ag_arena_strndup(arena, name->text, strlen(name->text));
	if (model->name == NULL)
		return ag_mem_error(arena->mem, strlen(name->text), err);
	model->is_full = strcmp(full->text, "true") == 0;
	return rounds_read(arena, rounds, model, err);
}

static AgStatus
trial_read(AgArena *arena, const AgOptionNode *node, AgReplayTrial *trial, AgError *err)
{
	const AgOptionNode *name = ag_option_child(node, "name");
	const AgOptionNode *point = ag_option_child(node, "point");
	size_t n;

	if (name == NULL || name->type != AG_JSON_STRING || point == NULL ||
		point->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	n = (size_t) point->n_children;
	trial->name = ag_arena_strndup(arena, name->text, strlen(name->text));
	trial->point = ag_arena_alloc(arena, n + 1, sizeof *trial->point);
	if (trial->name == NULL || trial->point == NULL)
		return ag_mem_error(arena->mem, n * sizeof *trial->point, err);
	for (const AgOptionNode *item = point->first; item != NULL; item = item->next)
	{
		double place;

		if (!ag_option_number(item, &place) || place < 0.0 || place > 1.0)
			return ag_option_reject(item, WHAT, err);
		trial->point[trial->n++] = place;
	}
	return AG_OK;
}

static AgStatus
trials_read(AgArena *arena, const AgOptionNode *node, AgReplay *replay, AgError *err)
{
	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	replay->trials = ag_arena_alloc(arena, (size_t) node->n_children + 1, sizeof *replay->trials);
	if (replay->trials == NULL)
		return ag_mem_error(arena->mem, (size_t) node->n_children, err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
		AG_TRY(trial_read(arena, item, &replay->trials[replay->n_trials++], err));
	return AG_OK;
}

static AgStatus
levels_read(AgArena *arena, const AgOptionNode *node, AgReplay *replay, AgError *err)
{
	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY || node->n_children > AG_MAX_STACK_LEVELS)
		return ag_option_reject(node, WHAT, err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		AgReplayLevel *level = &replay->levels[replay->n_levels++];
		size_t n = (size_t) item->n_children + 1;

		if (item->type != AG_JSON_ARRAY)
			return ag_option_reject(item, WHAT, err);
		level->inputs = ag_arena_alloc(arena, n, sizeof *level->inputs);
		if (level->inputs == NULL)
			return ag_mem_error(arena->mem, n * sizeof *level->inputs, err);
		for (const AgOptionNode *name = item->first; name != NULL; name = name->next)
		{
			if (name->type != AG_JSON_STRING)
				return ag_option_reject(name, WHAT, err);
			level->inputs[level->n_inputs] =
				ag_arena_strndup(arena, name->text, strlen(name->text));
			if (level->inputs[level->n_inputs++] == NULL)
				return ag_mem_error(arena->mem, strlen(name->text), err);
		}
	}
	return AG_OK;
}

AgStatus
ag_replay_parse(const AgOptionNode *node, AgFitOptions *out, AgError *err)
{
	const AgOptionNode *models = ag_option_child(node, "models");
	const AgOptionNode *refused = ag_option_child(node, "refused");
	const AgOptionNode *zone = ag_option_child(node, "time_zone");
	AgArena *arena = &out->arena;
	AgReplay *replay;
	int levels = 0;

	if (node->type != AG_JSON_OBJECT || models == NULL || models->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	if (refused != NULL && refused->type == AG_JSON_STRING)
	{
		ag_error_set(err, AG_ERR_OPTION, "that fit can't be repeated exactly: %s", refused->text);
		ag_error_hint(err, "ag_refresh fits again as it was asked for.");
		return AG_ERR_OPTION;
	}
	replay = ag_arena_alloc(arena, 1, sizeof *replay);
	if (replay == NULL)
		return ag_mem_error(arena->mem, sizeof *replay, err);
	memset(replay, 0, sizeof *replay);
	replay->models = ag_arena_alloc(arena, (size_t) models->n_children + 1, sizeof *replay->models);
	if (replay->models == NULL)
		return ag_mem_error(arena->mem, (size_t) models->n_children, err);
	memset(replay->models, 0, ((size_t) models->n_children + 1) * sizeof *replay->models);
	for (const AgOptionNode *item = models->first; item != NULL; item = item->next)
		AG_TRY(model_read(arena, item, &replay->models[replay->n_models++], err));
	AG_TRY(trials_read(arena, ag_option_child(node, "trials"), replay, err));
	AG_TRY(levels_read(arena, ag_option_child(node, "levels"), replay, err));
	if (ag_option_child(node, "parts") != NULL)
		AG_TRY(number_read(node, "parts", 0, AG_MAX_BAG_FOLDS, &replay->n_parts, err));
	AG_TRY(number_read(node, "num_bag_folds", 0, AG_MAX_BAG_FOLDS, &out->num_bag_folds, err));
	AG_TRY(number_read(node, "num_bag_sets", 1, AG_MAX_BAG_SETS, &out->num_bag_sets, err));
	AG_TRY(number_read(node, "num_stack_levels", 0, AG_MAX_STACK_LEVELS, &levels, err));
	out->num_stack_levels = levels;
	out->auto_stack = false;
	out->dynamic_stacking = AG_DYNAMIC_OFF; /* its trial is over */
	if (zone != NULL && zone->type == AG_JSON_STRING)
	{
		out->time_zone = ag_arena_strndup(arena, zone->text, strlen(zone->text));
		if (out->time_zone == NULL)
			return ag_mem_error(arena->mem, strlen(zone->text), err);
	}
	out->replay = replay;
	return AG_OK;
}

const AgReplayModel *
ag_replay_find(const AgFitOptions *options, const char *name)
{
	for (int i = 0; i < options->replay->n_models; i++)
		if (strcmp(options->replay->models[i].name, name) == 0)
			return &options->replay->models[i];
	return NULL;
}

bool
ag_replay_has_input(const AgFitOptions *options, int level, const char *name)
{
	const AgReplayLevel *own = &options->replay->levels[level - 2];

	if (options->replay->n_levels == 0) /* the plan doesn't say */
		return true;
	if (level - 2 >= options->replay->n_levels)
		return false;
	for (int i = 0; i < own->n_inputs; i++)
		if (strcmp(own->inputs[i], name) == 0)
			return true;
	return false;
}
