/*
 * options_presets.c - bundles of options by name. Options that are given themselves win over them.
 */
#include "engine/search/options_presets.h"

#include <math.h>
#include <string.h>

#define HOUR 3600.0

typedef struct Preset
{
	const char *name;
	const char *aliases; /* blank-separated */
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
	 .aliases = "medium_quality mq medium_quality_faster_train",
	 .supported = true,
	 .hyperparameters = "default"},
	{.name = "good",
	 .aliases = "good_quality gq good_quality_faster_inference_only_refit good_quality_v082",
	 .supported = true,
	 .hyperparameters = "light",
	 .time_limit = HOUR,
	 .bags = true,
	 .refits = true},
	{.name = "high",
	 .aliases =
		 "high_quality hq high_quality_fast_inference_only_refit high_quality_v082 high_v150 "
		 "high_quality_v150",
	 .supported = true,
	 .hyperparameters = "zeroshot",
	 .time_limit = HOUR,
	 .bags = true,
	 .refits = true},
	{.name = "best",
	 .aliases = "best_quality bq best_v140 best_quality_v140 best_v150 best_quality_v150 "
				"best_quality_v082",
	 .supported = true,
	 .hyperparameters = "zeroshot",
	 .time_limit = HOUR,
	 .bags = true},
	{.name = "extreme",
	 .aliases = "extreme_quality eq extreme_v140 extreme_quality_v140 extreme_v150 "
				"extreme_quality_v150 extreme_v160 experimental_quality_v120 "
				"experimental_quality_v140",
	 .supported = true,
	 .hyperparameters = "extreme",
	 .time_limit = HOUR,
	 .bags = true},
	{.name = "noncommercial", .aliases = "noncommercial_v160"},
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

/* Is name one of the blank-separated words? */
static bool
is_word(const char *words, const char *name)
{
	size_t n = strlen(name);

	while (words != NULL && *words != '\0')
	{
		size_t word = strcspn(words, " ");

		if (word == n && memcmp(words, name, n) == 0)
			return true;
		words += word + (words[word] == ' ');
	}
	return false;
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
	AgNearest nearest;

	if (node->type != AG_JSON_STRING)
		return ag_option_reject(node, "a preset such as \"best\", or an array of presets", err);
	ag_nearest_init(&nearest, node->text);
	for (size_t i = 0; i < N_PRESETS; i++)
	{
		if (strcmp(presets[i].name, node->text) != 0 && !is_word(presets[i].aliases, node->text))
			ag_nearest_offer(&nearest, presets[i].name);
		else if (presets[i].supported)
		{
			preset_apply(&presets[i], options, hyperparameters);
			return AG_OK;
		}
		else
		{
			ag_error_set(err, AG_ERR_UNSUPPORTED, "preset \"%s\" is not supported yet", node->text);
			ag_error_hint(err, "This release has the presets medium, good, high, best, "
							   "extreme, interpretable, ignore_text, ignore_text_ngrams and "
							   "optimize_for_deployment.");
			return AG_ERR_UNSUPPORTED;
		}
	}
	ag_option_reject(node, "a preset such as \"best\"", err);
	if (ag_nearest_name(&nearest) != NULL)
		ag_error_hint(err, "Did you mean \"%s\"?", ag_nearest_name(&nearest));
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
