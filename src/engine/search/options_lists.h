/*
 * options_lists.h - lists of models by name. Private to options*.c.
 */
#ifndef AG_OPTIONS_LISTS_H
#define AG_OPTIONS_LISTS_H

#include "engine/model/family.h"

/*
 * One configuration: "num_leaves=128 learning_rate=0.03", blank-separated; "" for a family's defaults. A search over hyperparameters sets out
 * from what has none, or begins with AG_LIST_TUNED; others stand for themselves.
 */
#define AG_LIST_TUNED "tuned "

typedef struct AgListModel
{
	AgFamilyId family;
	const char *params;
} AgListModel;

typedef struct AgModelList
{
	const char *name;
	const AgListModel *models; /* NULL: known to AutoGluon's users, not offered */
	int n_models;
} AgModelList;

const AgModelList *ag_model_lists(int *n);
/* NULL when there is none of that name. */
const AgModelList *ag_model_list(const char *name);

#endif
