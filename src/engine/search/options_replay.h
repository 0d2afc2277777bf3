/*
 * options_replay.h - reading the plan that a fit is to repeat. Private to the options.
 */
#ifndef AG_OPTIONS_REPLAY_H
#define AG_OPTIONS_REPLAY_H

#include "engine/search/options.h"
#include "engine/search/options_tree.h"

/* The object that ag_fit_replay_write made, in the place of the option "replay"; after all other options, which it overrules. */
AgStatus ag_replay_parse(const AgOptionNode *node, AgFitOptions *out, AgError *err);
/* When the models are known: does a plan that is_refit name configurations that there are? */
AgStatus ag_replay_check(const AgFitOptions *options, AgError *err);

#endif
