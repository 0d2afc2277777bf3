/*
 * options_monotone.c - directions that predictions keep, by column.
 */
#include "engine/search/options_models.h"

#include <string.h>

AgStatus
ag_monotone_parse(const AgOptionNode *node, AgArena *arena, AgMonotone **monotone, AgError *err)
{
	AgMonotone *made;
	int n_asked = 0;

	if (node->type == AG_JSON_NULL)
		return AG_OK;
	if (node->type != AG_JSON_OBJECT)
		return ag_option_reject(node, "an object of columns with -1, 0 or 1", err);
	made = ag_arena_alloc(arena, 1, sizeof *made);
	if (made == NULL)
		return ag_mem_error(arena->mem, sizeof *made, err);
	made->columns = ag_arena_alloc(arena, (size_t) node->n_children + 1, sizeof(char *));
	made->directions = ag_arena_alloc(arena, (size_t) node->n_children + 1, 1);
	if (made->columns == NULL || made->directions == NULL)
		return ag_mem_error(arena->mem, (size_t) node->n_children * sizeof(char *), err);
	made->n = 0;
	for (const AgOptionNode *child = node->first; child != NULL; child = child->next)
	{
		int64_t direction;

		if (!ag_option_integer(child, -1, 1, &direction))
			return ag_option_reject(child, "-1, 0 or 1", err);
		made->columns[made->n] = ag_arena_strndup(arena, child->key, strlen(child->key));
		if (made->columns[made->n] == NULL)
			return ag_mem_error(arena->mem, strlen(child->key), err);
		made->directions[made->n++] = (int8_t) direction;
		n_asked += direction != 0;
	}
	*monotone = n_asked > 0 ? made : NULL;
	return AG_OK;
}

AgStatus
ag_monotone_check(const AgFitOptions *options, AgError *err)
{
	if (options->monotone == NULL)
		return AG_OK;
	if (options->problem == AG_PROBLEM_QUANTILE || options->problem == AG_PROBLEM_MULTICLASS)
		return ag_error_set(err, AG_ERR_OPTION,
							"option \"monotone_constraints\" does not go with a %s problem",
							ag_problem_name(options->problem));
	if (options->num_stack_levels > 0)
	{
		ag_error_set(err, AG_ERR_OPTION,
					 "option \"monotone_constraints\" does not go with \"num_stack_levels\"");
		ag_error_hint(err,
					  "What models of a higher level make of the lower ones' predictions keeps no "
					  "direction.");
		return AG_ERR_OPTION;
	}
	return AG_OK;
}
