/*
 * fit_replay.c - what of a fit depended on the clock or on memory, so that it can be repeated without either.
 *
 * The rest follows from the rows, the options and the seed. Trees grown until the time was up are so many trees; of nets and linear
 * models cuts.h has what the time decided. A first tree that was left half grown is not to be had again, and such a plan says so.
 */
#include <stdio.h>
#include <string.h>

#include "engine/search/fit_state.h"
#include "engine/search/json.h"

static bool
was_cut(const AgTrained *trained)
{
	return trained->ended_by != NULL &&
		   (strcmp(trained->ended_by, "time") == 0 || strcmp(trained->ended_by, "memory") == 0);
}

static bool
grows_trees(const AgFitModel *model)
{
	switch (model->config->family->id)
	{
		case AG_FAMILY_GBM:
		case AG_FAMILY_XGB:
		case AG_FAMILY_CAT:
		case AG_FAMILY_RF:
		case AG_FAMILY_XT:
			return true;
		default:
			return false;
	}
}

/* The first tree of all may have been left half grown: so one round doesn't tell enough. Nor does a list without end. */
static bool
can_repeat(const AgFitModel *model, const AgTrained *child)
{
	if (child->cuts.is_full)
		return false;
	return !was_cut(child) || !grows_trees(model) || child->rounds_run > 1;
}

/* What a repeated training was told to stop at tells the next one, too: there it looks as if it had ended by itself. */
static int
rounds_cut(const AgFit *fit, const AgFitModel *model, int c)
{
	const AgReplayModel *replayed =
		fit->options->replay != NULL ? ag_replay_find(fit->options, model->name) : NULL;
	int place = replayed != NULL ? ag_replay_child(replayed, model->child_at[c]) : -1;

	if (replayed != NULL)
		return place >= 0 ? replayed->rounds[place] : 0;
	return was_cut(&model->children[c]) && grows_trees(model) ? model->children[c].rounds_run : 0;
}

static void
cuts_write(AgWriter *out, const AgCuts *cuts)
{
	ag_json_raw(out, "[");
	for (int i = 0; i < cuts->n; i++)
	{
		ag_json_raw(out, i == 0 ? "" : ", ");
		ag_json_number(out, (double) cuts->values[i]);
	}
	ag_json_raw(out, "]");
}

/* A list with a place for each child. */
static void
children_write(AgWriter *out, const AgFit *fit, const AgFitModel *model, bool *first)
{
	bool in_order = true, has_cuts = false;

	for (int c = 0; c < model->n_children; c++)
	{
		in_order = in_order && (!model->is_bag || model->child_at[c] == c);
		has_cuts = has_cuts || model->children[c].cuts.n > 0;
	}
	ag_json_key(out, first, "rounds");
	for (int c = 0; c < model->n_children; c++)
	{
		ag_json_raw(out, c == 0 ? "[" : ", ");
		ag_json_number(out, rounds_cut(fit, model, c));
	}
	ag_json_raw(out, "]");
	if (!in_order)
		ag_json_key(out, first, "children");
	for (int c = 0; c < model->n_children && !in_order; c++)
	{
		ag_json_raw(out, c == 0 ? "[" : ", ");
		ag_json_number(out, model->child_at[c]);
	}
	ag_json_raw(out, in_order ? "" : "]");
	if (has_cuts)
		ag_json_key(out, first, "cuts");
	for (int c = 0; c < model->n_children && has_cuts; c++)
	{
		ag_json_raw(out, c == 0 ? "[" : ", ");
		cuts_write(out, &model->children[c].cuts);
	}
	ag_json_raw(out, has_cuts ? "]" : "");
}

static void
model_write(AgWriter *out, const AgFit *fit, const AgFitModel *model)
{
	bool first = true;

	ag_json_raw(out, "{");
	ag_json_key(out, &first, "name");
	ag_json_string(out, model->name, strlen(model->name));
	if (ag_replay_refit(fit->options, model->config->name) != NULL)
	{
		ag_json_key(out, &first, "config");
		ag_json_string(out, model->config->name, strlen(model->config->name));
	}
	ag_json_key(out, &first, "full");
	ag_json_raw(out, model->full.image != NULL || model->has_all_rows ? "true" : "false");
	if (model->is_slow)
	{
		ag_json_key(out, &first, "slow");
		ag_json_raw(out, "true");
	}
	if (model->is_out_of_bag)
	{
		ag_json_key(out, &first, "child_oof");
		ag_json_raw(out, "true");
	}
	if (model->n_sample > 0)
	{
		ag_json_key(out, &first, "sample");
		ag_json_number(out, (double) model->n_sample);
	}
	children_write(out, fit, model, &first);
	ag_json_raw(out, "}");
}

/* Those whose weighing the time ended. */
static void
ensembles_write(AgWriter *out, const AgFit *fit)
{
	bool is_first = true;

	ag_json_raw(out, "[");
	for (int e = 0; e < fit->n_ensembles; e++)
	{
		const AgFitEnsemble *ensemble = &fit->ensembles[e];
		bool first = true;

		if (!ensemble->is_cut)
			continue;
		ag_json_raw(out, is_first ? "{" : ", {");
		is_first = false;
		ag_json_key(out, &first, "name");
		ag_json_string(out, ensemble->name, strlen(ensemble->name));
		ag_json_key(out, &first, "value");
		ag_json_number(out, ensemble->value);
		ag_json_key(out, &first, "single_value");
		ag_json_number(out, ensemble->single_value);
		ag_json_key(out, &first, "weights");
		for (int i = 0; i < ensemble->n_models; i++)
		{
			ag_json_raw(out, i == 0 ? "[" : ", ");
			ag_json_number(out, ensemble->weights[i]);
		}
		ag_json_raw(out, "]}");
	}
	ag_json_raw(out, "]");
}

/* Columns of texts whose words there was no time for. */
static void
words_write(AgWriter *out, const AgFit *fit)
{
	bool is_first = true;

	ag_json_raw(out, "[");
	for (int i = 0; i < fit->pipeline->n_inputs; i++)
	{
		const char *name = fit->pipeline->inputs[i].name;

		if (!fit->pipeline->inputs[i].is_wordless)
			continue;
		ag_json_raw(out, is_first ? "" : ", ");
		is_first = false;
		ag_json_string(out, name, strlen(name));
	}
	ag_json_raw(out, "]");
}

/* What each level above the first looks at: some may have been left out for want of time. */
static void
levels_write(AgWriter *out, const AgFit *fit)
{
	ag_json_raw(out, "[");
	for (int l = 2; l <= fit->n_levels; l++)
	{
		const AgFitLevel *level = &fit->levels[l - 1];

		ag_json_raw(out, l == 2 ? "[" : ", [");
		for (int i = 0; i < level->n_inputs; i++)
		{
			const char *name = fit->models[level->inputs[i]].name;

			ag_json_raw(out, i == 0 ? "" : ", ");
			ag_json_string(out, name, strlen(name));
		}
		ag_json_raw(out, "]");
	}
	ag_json_raw(out, "]");
}

/* Of a fit that only trained once more: what a fit has found out by validation. */
static void
refit_write(AgWriter *out, const AgFit *fit, bool *first)
{
	const AgReplay *replay = fit->options->replay;

	if (replay == NULL || !replay->is_refit)
		return;
	ag_json_key(out, first, "refit");
	ag_json_raw(out, "true");
	ag_json_key(out, first, "best");
	ag_json_string(out, replay->best, strlen(replay->best));
	ag_json_key(out, first, "shifts");
	for (int i = 0; i < replay->n_shifts; i++)
	{
		ag_json_raw(out, i == 0 ? "[" : ", ");
		ag_json_number(out, replay->shifts[i]);
	}
	ag_json_raw(out, replay->n_shifts > 0 ? "]" : "[]");
}

/* Why not; NULL: it can be repeated. */
static const char *
refusal(const AgFit *fit, char *text, size_t size)
{
	for (int i = 0; i < fit->n_models; i++)
		for (int c = 0; c < fit->models[i].n_children; c++)
			if (!can_repeat(&fit->models[i], &fit->models[i].children[c]))
			{
				snprintf(text, size, "time cut %s short", fit->models[i].name);
				return text;
			}
	return NULL;
}

void
ag_fit_replay_write(const AgFit *fit, AgWriter *out)
{
	const AgValidation *v = &fit->validation;
	char text[AG_FIT_NAME + 64];
	const char *refused = refusal(fit, text, sizeof text);
	bool first = true;

	ag_json_raw(out, "{");
	if (refused != NULL)
	{
		ag_json_key(out, &first, "refused");
		ag_json_string(out, refused, strlen(refused));
	}
	refit_write(out, fit, &first);
	ag_json_key(out, &first, "num_bag_folds");
	ag_json_number(out, v->n_folds);
	ag_json_key(out, &first, "num_bag_sets");
	ag_json_number(out, v->n_folds > 0 ? v->n_sets : 1);
	if (v->is_held_out)
	{
		ag_json_key(out, &first, "bag_holdout");
		ag_json_raw(out, "true");
	}
	if (v->n_spare_sets > 0)
	{
		ag_json_key(out, &first, "spare_set");
		ag_json_raw(out, "true");
	}
	ag_json_key(out, &first, "num_stack_levels");
	ag_json_number(out, fit->n_levels - 1);
	ag_json_key(out, &first, "time_zone");
	ag_json_string(out, fit->job->time_zone, strlen(fit->job->time_zone));
	ag_json_key(out, &first, "parts");
	ag_json_number(out, fit->n_parts);
	ag_json_key(out, &first, "levels");
	levels_write(out, fit);
	ag_json_key(out, &first, "models");
	ag_json_raw(out, "[");
	for (int i = 0; i < fit->n_models; i++)
	{
		if (i > 0)
			ag_json_raw(out, ", ");
		model_write(out, fit, &fit->models[i]);
	}
	ag_json_raw(out, "]");
	ag_json_key(out, &first, "ensembles");
	ensembles_write(out, fit);
	ag_json_key(out, &first, "temperature");
	ag_json_number(out, fit->temperature);
	ag_json_key(out, &first, "threshold");
	ag_json_number(out, fit->threshold);
	ag_json_key(out, &first, "wordless");
	words_write(out, fit);
	if (fit->options->search.is_asked)
	{
		ag_json_key(out, &first, "trials");
		ag_fit_search_write(fit, out);
	}
	ag_json_raw(out, "}");
}
