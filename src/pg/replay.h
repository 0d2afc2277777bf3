/*
 * replay.h - the option "replay" of ag_fit.
 */
#ifndef AG_PG_REPLAY_H
#define AG_PG_REPLAY_H

#include "postgres.h"

#include "utils/jsonb.h"

/*
 * The options in force: given, or where they hold "replay": "name@3" that version's own, with what else is given put over them, and
 * the plan to repeat in the place of the name. *kept: what is to be kept with the predictor. ERROR unless the current user may
 * inspect that version, and when other options are given than those that make no difference.
 */
extern Jsonb *ag_replay_options(Jsonb *given, Jsonb **kept);

#endif
