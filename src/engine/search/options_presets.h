/*
 * options_presets.h - bundles of options by name. Private to options*.c.
 */
#ifndef AG_OPTIONS_PRESETS_H
#define AG_OPTIONS_PRESETS_H

#include "engine/base/nearest.h"
#include "engine/search/options_tree.h"

/*
 * Gives the options what the preset or the array of them says, the later over the earlier; *hyperparameters: the list of models,
 * unchanged when none is said.
 */
AgStatus ag_presets_parse(const AgOptionNode *node, AgFitOptions *options,
						  const char **hyperparameters, AgError *err);

#endif
