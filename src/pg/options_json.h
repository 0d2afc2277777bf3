/*
 * options_json.h - the options of ag_fit from jsonb to the engine's list of entries.
 */
#ifndef AG_OPTIONS_JSON_H
#define AG_OPTIONS_JSON_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "engine/search/options.h"

/*
 * Every node of the tree but the root, parents before children, texts in UTF-8, palloc'd in the current context. ERROR 22023
 * when the root is no object or there are more than AG_MAX_OPTION_ENTRIES nodes. (No tree is deeper than jsonb lets it be.)
 */
extern void ag_options_flatten(Jsonb *options, AgOptionEntry **entries, int *n_entries);

/* The value of one member of the root; NULL: it has none, it is JSON's null, or the root is no object. */
extern JsonbValue *ag_options_member(Jsonb *options, const char *name);

#endif
