/*
 * options_tree.h - the options' entries put together to a tree again, and reading single values from it.
 *
 * Private to options*.c. The entries come from a user's JSON by way of another process, so nothing is
 * believed: parents must come before children, no path twice, depth and lengths bounded.
 */
#ifndef AG_OPTIONS_TREE_H
#define AG_OPTIONS_TREE_H

#include "engine/search/options.h"

#define AG_MAX_OPTION_DEPTH 12
#define AG_MAX_OPTION_PATH 1024

typedef struct AgOptionNode
{
	const char *path; /* JSON pointer; "" for the root */
	const char *key;  /* the last step, unescaped */
	const char *text;
	AgJson type;
	int depth;
	int n_children;
	struct AgOptionNode *first, *last,
		*next; /* children in the order given, and the next sibling */
} AgOptionNode;

/* The tree of the entries, in the arena; *root is an object without an entry. */
AgStatus ag_option_tree_build(AgArena *arena, const AgOptionEntry *entries, int n_entries,
							  AgOptionNode **root, AgError *err);

/* The child of that name; NULL when absent. */
const AgOptionNode *ag_option_child(const AgOptionNode *node, const char *key);

/* The node's value as JSON, in the arena; NULL when out of memory. */
char *ag_option_json(AgArena *arena, const AgOptionNode *node);

/* A finite JSON number: true and *value. The grammar is JSON's own: no hex, no "inf". */
bool ag_option_number(const AgOptionNode *node, double *value);

/* A number without fraction within [min, max]: true and *value. */
bool ag_option_integer(const AgOptionNode *node, int64_t min, int64_t max, int64_t *value);

/* "no such thing": option, what it takes, and what was given. what: "a number of seconds greater than 0". */
AgStatus ag_option_reject(const AgOptionNode *node, const char *what, AgError *err);

/* "option \"hyperparameters.GBM.num_leaves\"": the path as people write it, into buffer. */
const char *ag_option_label(const AgOptionNode *node, char *buffer, size_t size);

/* True when the value asks for nothing: null, one of the blank-separated JSON scalars in `off`, or false where true isn't one of them. */
bool ag_option_is_off(const AgOptionNode *node, const char *off);

#endif
