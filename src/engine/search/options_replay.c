/*
 * options_replay.c - the executed plan of an earlier fit, to be repeated exactly: what fit_replay.c wrote.
 */
#include "engine/search/options_replay.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/model/cuts.h"

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

/* Which of a bag's children there are. */
static AgStatus
children_read(AgArena *arena, const AgOptionNode *node, AgReplayModel *model, AgError *err)
{
	int last = -1, n = 0;

	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY || node->n_children != model->n_children)
		return ag_option_reject(node, WHAT, err);
	model->children = ag_arena_alloc(arena, (size_t) model->n_children, sizeof *model->children);
	if (model->children == NULL)
		return ag_mem_error(arena->mem, (size_t) model->n_children * sizeof(int), err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		int64_t child;

		if (!ag_option_integer(item, last + 1, AG_MAX_BAG_FOLDS * AG_MAX_BAG_SETS, &child))
			return ag_option_reject(item, WHAT, err);
		last = model->children[n++] = (int) child;
	}
	return AG_OK;
}

static AgStatus
cuts_read(AgArena *arena, const AgOptionNode *node, AgReplayModel *model, AgError *err)
{
	AgCuts *cuts, *next;

	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY || node->n_children != model->n_children)
		return ag_option_reject(node, WHAT, err);
	cuts = next = ag_arena_alloc(arena, (size_t) model->n_children, sizeof *cuts);
	if (cuts == NULL)
		return ag_mem_error(arena->mem, (size_t) model->n_children * sizeof *cuts, err);
	memset(cuts, 0, (size_t) model->n_children * sizeof *cuts);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next, next++)
	{
		if (item->type != AG_JSON_ARRAY || item->n_children > AG_CUTS_MOST)
			return ag_option_reject(item, WHAT, err);
		for (const AgOptionNode *value = item->first; value != NULL; value = value->next)
			if (!ag_option_integer(value, -1, INT64_C(1) << 53, &next->values[next->n++]))
				return ag_option_reject(value, WHAT, err);
	}
	model->cuts = cuts;
	return AG_OK;
}

/* A text that may be lacking. */
static AgStatus
name_read(AgArena *arena, const AgOptionNode *node, const char **name, AgError *err)
{
	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_STRING)
		return ag_option_reject(node, WHAT, err);
	*name = ag_arena_strndup(arena, node->text, strlen(node->text));
	return *name != NULL ? AG_OK : ag_mem_error(arena->mem, strlen(node->text), err);
}

static AgStatus
model_read(AgArena *arena, const AgOptionNode *node, AgReplayModel *model, AgError *err)
{
	const AgOptionNode *name = ag_option_child(node, "name");
	const AgOptionNode *full = ag_option_child(node, "full");
	const AgOptionNode *rounds = ag_option_child(node, "rounds");
	const AgOptionNode *sample = ag_option_child(node, "sample");

	if (name == NULL || name->type != AG_JSON_STRING || full == NULL ||
		full->type != AG_JSON_BOOL || rounds == NULL)
		return ag_option_reject(node, WHAT, err);
	model->name = ag_arena_strndup(arena, name->text, strlen(name->text));
	if (model->name == NULL)
		return ag_mem_error(arena->mem, strlen(name->text), err);
	model->is_full = strcmp(full->text, "true") == 0;
	model->is_slow = ag_option_child(node, "slow") != NULL;
	AG_TRY(name_read(arena, ag_option_child(node, "config"), &model->config, err));
	model->is_out_of_bag = ag_option_child(node, "child_oof") != NULL;
	if (sample != NULL && !ag_option_integer(sample, 1, INT64_C(1) << 40, &model->n_sample))
		return ag_option_reject(sample, WHAT, err);
	AG_TRY(rounds_read(arena, rounds, model, err));
	AG_TRY(children_read(arena, ag_option_child(node, "children"), model, err));
	return cuts_read(arena, ag_option_child(node, "cuts"), model, err);
}

/* null stands for NaN. */
static AgStatus
value_read(const AgOptionNode *node, const char *key, double *value, AgError *err)
{
	const AgOptionNode *child = ag_option_child(node, key);

	*value = (double) NAN;
	if (child == NULL || child->type == AG_JSON_NULL || ag_option_number(child, value))
		return AG_OK;
	return ag_option_reject(child, WHAT, err);
}

static AgStatus
ensemble_read(AgArena *arena, const AgOptionNode *node, AgReplayEnsemble *ensemble, AgError *err)
{
	const AgOptionNode *name = ag_option_child(node, "name");
	const AgOptionNode *weights = ag_option_child(node, "weights");
	size_t n;

	if (name == NULL || name->type != AG_JSON_STRING || weights == NULL ||
		weights->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	n = (size_t) weights->n_children + 1;
	ensemble->name = ag_arena_strndup(arena, name->text, strlen(name->text));
	ensemble->weights = ag_arena_alloc(arena, n, sizeof *ensemble->weights);
	if (ensemble->name == NULL || ensemble->weights == NULL)
		return ag_mem_error(arena->mem, n * sizeof *ensemble->weights, err);
	for (const AgOptionNode *item = weights->first; item != NULL; item = item->next)
	{
		double weight;

		if (!ag_option_number(item, &weight) || !(weight >= 0.0 && weight <= 1.0))
			return ag_option_reject(item, WHAT, err);
		ensemble->weights[ensemble->n_weights++] = weight;
	}
	AG_TRY(value_read(node, "value", &ensemble->value, err));
	return value_read(node, "single_value", &ensemble->single_value, err);
}

static AgStatus
ensembles_read(AgArena *arena, const AgOptionNode *node, AgReplay *replay, AgError *err)
{
	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY || node->n_children > AG_MAX_STACK_LEVELS + 1)
		return ag_option_reject(node, WHAT, err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
		AG_TRY(ensemble_read(arena, item, &replay->ensembles[replay->n_ensembles++], err));
	return AG_OK;
}

static AgStatus
calibration_read(const AgOptionNode *node, AgReplay *replay, AgError *err)
{
	replay->is_calibrated = ag_option_child(node, "temperature") != NULL;
	if (!replay->is_calibrated)
		return AG_OK;
	AG_TRY(value_read(node, "temperature", &replay->temperature, err));
	AG_TRY(value_read(node, "threshold", &replay->threshold, err));
	if (replay->temperature >= 0.0 && replay->temperature <= 1e6 && replay->threshold >= 0.0 &&
		replay->threshold < 1.0)
		return AG_OK;
	return ag_option_reject(node, WHAT, err);
}

static AgStatus
wordless_read(AgArena *arena, const AgOptionNode *node, AgFeatureParams *features, AgError *err)
{
	const char **names;

	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	names = ag_arena_alloc(arena, (size_t) node->n_children + 1, sizeof *names);
	if (names == NULL)
		return ag_mem_error(arena->mem, (size_t) node->n_children * sizeof *names, err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
	{
		if (item->type != AG_JSON_STRING)
			return ag_option_reject(item, WHAT, err);
		names[features->n_wordless] = ag_arena_strndup(arena, item->text, strlen(item->text));
		if (names[features->n_wordless++] == NULL)
			return ag_mem_error(arena->mem, strlen(item->text), err);
	}
	features->wordless = names;
	return AG_OK;
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

static AgStatus
shifts_read(AgArena *arena, const AgOptionNode *node, AgReplay *replay, AgError *err)
{
	if (node == NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY)
		return ag_option_reject(node, WHAT, err);
	replay->shifts = ag_arena_alloc(arena, (size_t) node->n_children + 1, sizeof(double));
	if (replay->shifts == NULL)
		return ag_mem_error(arena->mem, (size_t) node->n_children * sizeof(double), err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
		if (!ag_option_number(item, &replay->shifts[replay->n_shifts++]))
			return ag_option_reject(item, WHAT, err);
	return AG_OK;
}

/* One training of each model, and what validation or several of them were asked for is over. */
static AgStatus
refit_read(const AgOptionNode *node, AgReplay *replay, AgFitOptions *out, AgError *err)
{
	if (ag_option_child(node, "refit") == NULL)
		return AG_OK;
	replay->is_refit = true;
	AG_TRY(name_read(&out->arena, ag_option_child(node, "best"), &replay->best, err));
	AG_TRY(shifts_read(&out->arena, ag_option_child(node, "shifts"), replay, err));
	for (int i = 0; i < replay->n_models; i++)
		if (replay->models[i].config == NULL || replay->models[i].n_children != 1)
			return ag_option_reject(node, WHAT, err);
	if (replay->best == NULL || replay->n_models == 0 || replay->n_ensembles > 1 ||
		out->num_bag_folds != 0 || out->num_bag_sets != 1 || out->num_stack_levels != 0)
		return ag_option_reject(node, WHAT, err);
	for (int e = 0; e < replay->n_ensembles; e++)
		if (replay->ensembles[e].n_weights != replay->n_models)
			return ag_option_reject(node, WHAT, err);
	out->use_bag_holdout = false;
	out->tuning_data = NULL;
	out->infer_limit = (double) NAN;
	out->refit_full = AG_REFIT_NONE;
	out->set_best_to_refit_full = out->keep_only_best = false;
	out->save_bag_folds = true;
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
	replay->has_spare_set = ag_option_child(node, "spare_set") != NULL;
	replay->models = ag_arena_alloc(arena, (size_t) models->n_children + 1, sizeof *replay->models);
	if (replay->models == NULL)
		return ag_mem_error(arena->mem, (size_t) models->n_children, err);
	memset(replay->models, 0, ((size_t) models->n_children + 1) * sizeof *replay->models);
	for (const AgOptionNode *item = models->first; item != NULL; item = item->next)
		AG_TRY(model_read(arena, item, &replay->models[replay->n_models++], err));
	AG_TRY(trials_read(arena, ag_option_child(node, "trials"), replay, err));
	AG_TRY(ensembles_read(arena, ag_option_child(node, "ensembles"), replay, err));
	AG_TRY(calibration_read(node, replay, err));
	AG_TRY(wordless_read(arena, ag_option_child(node, "wordless"), &out->features, err));
	AG_TRY(levels_read(arena, ag_option_child(node, "levels"), replay, err));
	if (ag_option_child(node, "parts") != NULL)
		AG_TRY(number_read(node, "parts", 0, AG_MAX_BAG_FOLDS, &replay->n_parts, err));
	AG_TRY(number_read(node, "num_bag_folds", 0, AG_MAX_BAG_FOLDS, &out->num_bag_folds, err));
	AG_TRY(number_read(node, "num_bag_sets", 1, AG_MAX_BAG_SETS, &out->num_bag_sets, err));
	AG_TRY(number_read(node, "num_stack_levels", 0, AG_MAX_STACK_LEVELS, &levels, err));
	out->num_stack_levels = levels;
	out->auto_stack = false;
	out->dynamic_stacking = AG_DYNAMIC_OFF; /* its trial is over */
	out->use_bag_holdout |= ag_option_child(node, "bag_holdout") != NULL;
	if (out->use_bag_holdout && levels > 0)
		return ag_option_reject(node, WHAT, err);
	AG_TRY(refit_read(node, replay, out, err));
	if (zone != NULL && zone->type == AG_JSON_STRING)
	{
		out->time_zone = ag_arena_strndup(arena, zone->text, strlen(zone->text));
		if (out->time_zone == NULL)
			return ag_mem_error(arena->mem, strlen(zone->text), err);
	}
	out->replay = replay;
	return AG_OK;
}

AgStatus
ag_replay_check(const AgFitOptions *options, AgError *err)
{
	const AgReplay *replay = options->replay;

	for (int i = 0; replay != NULL && replay->is_refit && i < replay->n_models; i++)
	{
		bool is_there = false;

		for (int m = 0; m < options->n_models && !is_there; m++)
			is_there = strcmp(options->models[m].name, replay->models[i].config) == 0;
		if (is_there)
			continue;
		ag_error_set(err, AG_ERR_OPTION, "there is no configuration \"%.60s\" any more",
					 replay->models[i].config);
		ag_error_hint(err,
					  "The sets of models are those of another release: ag_refresh fits anew.");
		return AG_ERR_OPTION;
	}
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

const AgReplayModel *
ag_replay_refit(const AgFitOptions *options, const char *config)
{
	for (int i = 0;
		 options->replay != NULL && options->replay->is_refit && i < options->replay->n_models; i++)
		if (strcmp(options->replay->models[i].config, config) == 0)
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

const AgReplayEnsemble *
ag_replay_ensemble(const AgFitOptions *options, const char *name)
{
	for (int e = 0; options->replay != NULL && e < options->replay->n_ensembles; e++)
		if (strcmp(options->replay->ensembles[e].name, name) == 0)
			return &options->replay->ensembles[e];
	return NULL;
}

int
ag_replay_child(const AgReplayModel *model, int child)
{
	if (model->children == NULL)
		return child < model->n_children ? child : -1;
	for (int c = 0; c < model->n_children; c++)
		if (model->children[c] == child)
			return c;
	return -1;
}
