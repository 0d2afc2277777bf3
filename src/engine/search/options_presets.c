/*
 * options_presets.c - bundles of options by name. Options that are given themselves win over them.
 */
#include "engine/search/options_presets.h"

#include <math.h>
#include <string.h>

#define HOUR 3600.0
#define MOST_ALIASES 10

typedef struct Preset
{
	const char *name;
	const char *aliases[MOST_ALIASES + 1]; /* up to the first NULL */
	bool supported;
	const char *hyperparameters; /* NULL: unchanged, as all that is 0 */
	double time_limit;
	bool bags;
	bool refits; /* predicts with models fitted again on all rows, and keeps no bag */
	bool keeps_only_best;
	bool has_no_ensemble;
	bool ignores_ngrams; /* and changes nothing else, as the next and keeps_only_best */
	bool ignores_text;
} Preset;

static const Preset presets[] = {
	{.name = "medium",
	 .aliases = {"medium_quality", "mq", "medium_quality_faster_train"},
	 .supported = true,
	 .hyperparameters = "default"},
	{.name = "good",
	 .aliases = {"good_quality", "gq", "good_quality_faster_inference_only_refit",
				 "good_quality_v082"},
	 .supported = true,
	 .hyperparameters = "light",
	 .time_limit = HOUR,
	 .bags = true,
	 .refits = true},
	{.name = "high",
	 .aliases = {"high_quality", "hq", "high_quality_fast_inference_only_refit",
				 "high_quality_v082", "high_v150", "high_quality_v150"},
	 .supported = true,
	 .hyperparameters = "zeroshot",
	 .time_limit = HOUR,
	 .bags = true,
	 .refits = true},
	{.name = "best",
	 .aliases = {"best_quality", "bq", "best_v140", "best_quality_v140", "best_v150",
				 "best_quality_v150", "best_quality_v082"},
	 .supported = true,
	 .hyperparameters = "zeroshot",
	 .time_limit = HOUR,
	 .bags = true},
	{.name = "extreme",
	 .aliases = {"extreme_quality", "eq", "extreme_v140", "extreme_quality_v140", "extreme_v150",
				 "extreme_quality_v150", "extreme_v160", "experimental_quality_v120",
				 "experimental_quality_v140"},
	 .supported = true,
	 .hyperparameters = "extreme",
	 .time_limit = HOUR,
	 .bags = true},
	{.name = "noncommercial", .aliases = {"noncommercial_v160"}},
	{.name = "tabarena"},
	{.name = "interpretable",
	 .supported = true,
	 .hyperparameters = "interpretable",
	 .has_no_ensemble = true},
	{.name = "ignore_text", .supported = true, .ignores_ngrams = true, .ignores_text = true},
	{.name = "ignore_text_ngrams", .supported = true, .ignores_ngrams = true},
	{.name = "optimize_for_deployment", .supported = true, .keeps_only_best = true},
};

#define N_PRESETS (sizeof presets / sizeof presets[0])

/* The preset of that name or alias; NULL: there is none, and *nearest is what may have been meant, or NULL. */
static const Preset *
preset_find(const char *name, const char **nearest)
{
	AgNearest known;

	ag_nearest_init(&known, name);
	for (size_t i = 0; i < N_PRESETS; i++)
	{
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
		ag_nearest_offer(&known, presets[i].name);
		for (const char *const *alias = presets[i].aliases; *alias != NULL; alias++)
		{
			if (strcmp(*alias, name) == 0)
				return &presets[i];
			ag_nearest_offer(&known, *alias);
		}
	}
	*nearest = ag_nearest_name(&known);
	return NULL;
}

static AgStatus
reject_unsupported(const char *name, AgError *err)
{
	ag_error_set(err, AG_ERR_UNSUPPORTED, "preset \"%s\" is not supported yet", name);
	ag_error_hint(err, "This release has the presets medium, good, high, best, extreme, "
					   "interpretable, ignore_text, ignore_text_ngrams and "
					   "optimize_for_deployment.");
	return AG_ERR_UNSUPPORTED;
}

AgStatus
ag_preset_check(const char *name, AgError *err)
{
	const char *nearest;
	const Preset *preset = preset_find(name, &nearest);

	if (preset != NULL)
		return preset->supported ? AG_OK : reject_unsupported(name, err);
	ag_error_set(err, AG_ERR_OPTION, "there is no preset \"%s\"", name);
	if (nearest != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", nearest);
	return AG_ERR_OPTION;
}

static void
preset_apply(const Preset *preset, AgFitOptions *options, const char **hyperparameters)
{
	if (preset->hyperparameters != NULL)
		*hyperparameters = preset->hyperparameters;
	if (preset->keeps_only_best)
	{
		options->keep_only_best = true;
		return;
	}
	if (preset->ignores_ngrams)
	{
		options->features.text_ngram = false;
		options->features.text_special &= !preset->ignores_text;
		return;
	}
	options->time_limit = preset->time_limit > 0.0 ? preset->time_limit : (double) NAN;
	options->auto_stack = preset->bags;
	options->dynamic_stacking = preset->bags ? AG_DYNAMIC_AUTO : AG_DYNAMIC_OFF;
	options->refit_full = preset->refits ? AG_REFIT_ALL : AG_REFIT_NONE;
	options->set_best_to_refit_full = preset->refits;
	options->save_bag_folds = !preset->refits;
	options->fit_weighted_ensemble = !preset->has_no_ensemble;
	options->calibrate = preset->has_no_ensemble ? AG_CALIBRATE_OFF : AG_CALIBRATE_AUTO;
}

static AgStatus
preset_parse(const AgOptionNode *node, AgFitOptions *options, const char **hyperparameters,
			 AgError *err)
{
	const Preset *preset;
	const char *nearest;

	if (node->type != AG_JSON_STRING)
		return ag_option_reject(node, "a preset such as \"best\", or an array of presets", err);
	preset = preset_find(node->text, &nearest);
	if (preset != NULL && !preset->supported)
		return reject_unsupported(node->text, err);
	if (preset != NULL)
	{
		preset_apply(preset, options, hyperparameters);
		return AG_OK;
	}
	ag_option_reject(node, "a preset such as \"best\"", err);
	if (nearest != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", nearest);
	return AG_ERR_OPTION;
}

AgStatus
ag_presets_parse(const AgOptionNode *node, AgFitOptions *options, const char **hyperparameters,
				 AgError *err)
{
	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_ARRAY)
		return preset_parse(node, options, hyperparameters, err);
	for (const AgOptionNode *item = node->first; item != NULL; item = item->next)
		AG_TRY(preset_parse(item, options, hyperparameters, err));
	return AG_OK;
}
