/*
 * fit_groups.c - validation by whole groups: what is known of a patient, a shop or a day doesn't help to predict it.
 */
#include <stdlib.h>

#include "engine/base/rng.h"
#include "engine/search/fit_state.h"

#define KEY_GROUPS 0x67727570 /* what these random numbers are for */

typedef struct Group
{
	uint32_t number;
	int64_t n_rows;
	uint64_t draw;
} Group;

/* The largest first, so that folds come out even; at random among equals. */
static int
by_size(const void *left, const void *right)
{
	const Group *a = left, *b = right;

	if (a->n_rows != b->n_rows)
		return a->n_rows > b->n_rows ? -1 : 1;
	return a->draw != b->draw ? (a->draw < b->draw ? -1 : 1) : (a->number < b->number ? -1 : 1);
}

static int
by_draw(const void *left, const void *right)
{
	const Group *a = left, *b = right;

	return a->draw != b->draw ? (a->draw < b->draw ? -1 : 1) : (a->number < b->number ? -1 : 1);
}

static AgStatus
groups_count(AgFit *fit, int set, Group **groups)
{
	uint64_t key = ag_key(ag_key(fit->options->random_state, KEY_GROUPS), (uint64_t) set);

	AG_TRY(ag_get_zeroed(&fit->ctx, fit->n_groups, sizeof **groups, groups));
	for (uint32_t g = 0; g < fit->n_groups; g++)
	{
		(*groups)[g].number = g;
		(*groups)[g].draw = ag_random_u64(key, g);
	}
	for (int64_t r = 0; r < fit->n_rows; r++)
		(*groups)[fit->group_of[r]].n_rows++;
	return AG_OK;
}

/* Each group to the fold that has the fewest rows so far. */
AgStatus
ag_groups_deal(AgFit *fit, int set, uint8_t *fold_of)
{
	int64_t n_rows[AG_MAX_BAG_FOLDS] = {0};
	uint8_t *fold_of_group = NULL;
	Group *groups = NULL;
	AgStatus status;

	AG_GO(groups_count(fit, set, &groups));
	AG_GO(ag_get(&fit->ctx, fit->n_groups, 1, &fold_of_group));
	qsort(groups, fit->n_groups, sizeof *groups, by_size);
	for (uint32_t g = 0; g < fit->n_groups; g++)
	{
		int least = 0;

		for (int f = 1; f < fit->validation.n_folds; f++)
			if (n_rows[f] < n_rows[least])
				least = f;
		fold_of_group[groups[g].number] = (uint8_t) least;
		n_rows[least] += groups[g].n_rows;
	}
	for (int64_t r = 0; r < fit->n_rows; r++)
		fold_of[r] = fold_of_group[fit->group_of[r]];
done:
	ag_mem_free(fit->ctx.mem, groups);
	ag_mem_free(fit->ctx.mem, fold_of_group);
	return status;
}

/* Groups at random until n_valid rows are held out; one that would be far too much is passed over while others are left. */
AgStatus
ag_groups_hold_out(AgFit *fit, int64_t n_valid)
{
	AgSplit *split = &fit->validation.split;
	Group *groups = NULL;
	bool *held = NULL;
	uint32_t n_held = 0;
	AgStatus status;

	AG_GO(groups_count(fit, 0, &groups));
	AG_GO(ag_get_zeroed(&fit->ctx, fit->n_groups, sizeof *held, &held));
	qsort(groups, fit->n_groups, sizeof *groups, by_draw);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t g = 0; g < fit->n_groups && split->n_valid < n_valid; g++)
			if (!held[groups[g].number] && n_held + 1 < fit->n_groups &&
				(pass == 1 || split->n_valid + groups[g].n_rows <= n_valid + n_valid / 2) &&
				(pass == 0 || split->n_valid == 0))
			{
				held[groups[g].number] = true;
				n_held++;
				split->n_valid += groups[g].n_rows;
			}
	split->n_train = fit->n_rows - split->n_valid;
	AG_GO(ag_get(&fit->ctx, (size_t) split->n_train, sizeof(uint32_t), &split->train_rows));
	AG_GO(ag_get(&fit->ctx, (size_t) split->n_valid, sizeof(uint32_t), &split->valid_rows));
	split->n_train = split->n_valid = 0;
	for (int64_t r = 0; r < fit->n_rows; r++)
		if (held[fit->group_of[r]])
			split->valid_rows[split->n_valid++] = (uint32_t) r;
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
done:
	ag_mem_free(fit->ctx.mem, groups);
	ag_mem_free(fit->ctx.mem, held);
	return status;
}
