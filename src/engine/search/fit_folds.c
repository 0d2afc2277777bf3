/*
 * fit_folds.c - how rows are dealt to folds for bagging, and who validates.
 *
 * Rows stand in the order of a hash of their values, so folds by position are folds by value: the same for any order on
 * disk. Each class is shuffled by the seed and dealt like cards, going on where the class before stopped: no two folds
 * differ by more than one row, of any class and in all.
 */
#include <math.h>

#include "engine/base/rng.h"
#include "engine/search/fit_state.h"

#define FOLDS_SHARE 0.35 /* of the time, that one bag may take by expectation */
#define FEWEST_FOLDS 3   /* of our own choice; fewer waste rows */
/* Likewise where time is short: of many rows fewer folds, for each has enough to learn from; of more none, but rows held out. */
#define MANY_ROWS 20000
#define FOLDS_OF_MANY 5
#define MOST_ROWS 100000
#define HELD_ROWS 1000000 /* from so many on bags of our own choice are scored on rows held out */
#define KEY_FOLDS 0x666f6c64 /* what these random numbers are for */

/* AutoGluon's rule: eight folds, fewer for less than 80 rows. */
int
ag_folds_rule(int64_t n_rows)
{
	if (n_rows >= 80)
		return 8;
	return n_rows >= 70 ? 7 : n_rows >= 60 ? 6 : 5;
}

int
ag_folds_asked(const AgFitOptions *options, int64_t n_rows)
{
	if (options->num_bag_folds >= 0)
		return options->num_bag_folds;
	return options->auto_stack ? ag_folds_rule(n_rows) : 0;
}

/* The fewest rows of a class that has enough to be in more than one fold; all rows without classes. */
static int64_t
rarest_class(const AgLabel *label, int64_t n_rows)
{
	int64_t least = n_rows;

	for (int c = 0; c < label->n_classes; c++)
		if (label->classes[c].n_rows >= 2 && label->classes[c].n_rows < least)
			least = label->classes[c].n_rows;
	return least;
}

/*
 * A fold needs two rows, and in a binary problem one of either class: most metrics say nothing of a single class. Of more
 * classes, rare ones are missing in some folds' validation part.
 */
static int
folds_fit(AgFit *fit, int asked)
{
	int64_t most = fit->group_of != NULL ? fit->n_groups : fit->n_rows / 2;
	int folds = asked;

	if (fit->group_of == NULL && fit->moment == NULL && fit->label->problem == AG_PROBLEM_BINARY)
	{
		int64_t least = rarest_class(fit->label, fit->n_rows);

		most = least < most ? least : most;
	}
	if (most < folds)
		folds = most >= 2 ? (int) most : 0;
	if (folds == 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%lld rows are too few for a bag of models",
			   (long long) fit->n_rows);
	else if (folds < asked)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%d folds instead of %d, for want of %s", folds, asked,
			   fit->group_of != NULL    ? "groups"
			   : most < fit->n_rows / 2 ? "rows of the rarer class"
										: "rows");
	return folds;
}

/* The rows class by class into order, each ascending; begin[c] gets where class c begins ([n_groups + 1]). */
static void
rows_by_class(const AgFit *fit, int n_groups, uint32_t *order, int64_t *begin)
{
	const AgLabel *label = fit->label;

	begin[0] = 0;
	for (int g = 0; g < n_groups; g++)
		begin[g + 1] =
			begin[g] + (label->class_of != NULL ? label->classes[g].n_rows : fit->n_rows);
	for (int64_t r = 0; r < fit->n_rows; r++)
		order[begin[label->class_of != NULL ? label->class_of[r] : 0]++] = (uint32_t) r;
	for (int g = n_groups; g > 0; g--)
		begin[g] = begin[g - 1];
	begin[0] = 0;
}

/* Fisher and Yates, Durstenfeld's form. */
static void
shuffle(uint64_t key, uint32_t *order, int64_t n)
{
	for (int64_t i = n - 1; i > 0; i--)
	{
		uint32_t j = ag_random_below(key, (uint64_t) i, (uint32_t) i + 1);
		uint32_t row = order[i];

		order[i] = order[j];
		order[j] = row;
	}
}

/* Deals one set. order: scratch, [n_rows]; begin: scratch, [n_groups + 1]. */
static void
set_deal(AgFit *fit, int set, int n_groups, uint32_t *order, int64_t *begin, uint8_t *fold_of)
{
	uint64_t key = ag_key(ag_key(fit->options->random_state, KEY_FOLDS), (uint64_t) set);
	int next = 0;

	rows_by_class(fit, n_groups, order, begin);
	for (int g = 0; g < n_groups; g++)
	{
		if (fit->label->class_of != NULL && begin[g + 1] - begin[g] == 1)
		{
			/* without it, training would not know the class */
			fold_of[order[begin[g]]] = AG_FIT_NO_FOLD;
			continue;
		}
		shuffle(ag_key(key, (uint64_t) g), order + begin[g], begin[g + 1] - begin[g]);
		for (int64_t i = begin[g]; i < begin[g + 1]; i++)
		{
			fold_of[order[i]] = (uint8_t) next;
			next = (next + 1) % fit->validation.n_folds;
		}
	}
}

/* The labels of the rows that scores are of, in their order. */
AgStatus
ag_fit_gather_labels(AgFit *fit)
{
	AgValidation *v = &fit->validation;
	const AgLabel *label = fit->label;
	size_t n = (size_t) v->n_scored;

	if (n == 0)
		return AG_OK;
	if (fit->weight != NULL && fit->options->weight_evaluation)
	{
		AG_TRY(ag_get(&fit->ctx, n, sizeof *v->weight, &v->weight));
		for (size_t i = 0; i < n; i++)
			v->weight[i] = fit->weight[v->scored_rows[i]];
	}
	if (label->class_of != NULL)
	{
		AG_TRY(ag_get(&fit->ctx, n, sizeof *v->class_of, &v->class_of));
		for (size_t i = 0; i < n; i++)
			v->class_of[i] = label->class_of[v->scored_rows[i]];
		return AG_OK;
	}
	AG_TRY(ag_get(&fit->ctx, n, sizeof *v->target, &v->target));
	for (size_t i = 0; i < n; i++)
		v->target[i] = label->target[v->scored_rows[i]];
	return AG_OK;
}

static void
folds_tell(AgFit *fit)
{
	const AgValidation *v = &fit->validation;

	if (v->is_held_out)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are bags of %d folds of the other %lld rows, scored on those held out",
			   v->n_folds, (long long) (fit->n_rows - v->n_scored));
	else if (v->is_forward)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are bags of %d folds forward in time: each is trained on the rows before "
			   "those that it is scored on; the %lld earliest rows have no score",
			   v->n_folds, (long long) (fit->n_rows - v->n_scored));
	else if (v->n_sets > 1)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are bags of %d sets of %d folds; rows are scored by the models that were "
			   "trained without them",
			   v->n_sets, v->n_folds);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are bags of %d folds; rows are scored by the model that was trained without "
			   "them",
			   v->n_folds);
	if (v->n_scored < fit->n_rows && !v->is_forward && !v->is_held_out)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "%lld rows, the only ones of their classes, are trained on in every fold",
			   (long long) (fit->n_rows - v->n_scored));
	if (!isnan(fit->options->holdout_frac) && !v->is_held_out)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "\"holdout_frac\" is not used: bags validate on all rows");
}

/* Folds of our own choice are fewer where time is short: a few children trained well before many that are cut short. */
static int
folds_affordable(AgFit *fit, int folds)
{
	double left = -ag_fit_seconds(fit->ctx.deadline_ns), one;
	bool is_short = fit->promised_seconds < AG_FIT_LONG_SECONDS;

	if (fit->options->num_bag_folds >= 0 || fit->ctx.deadline_ns == INT64_MAX)
		return folds;
	if (is_short && fit->n_rows > MOST_ROWS)
	{
		ag_log(
			&fit->ctx, AG_LOG_NORMAL,
			"No bags, but rows held out: of more than %d rows, where the time is less than 600 s",
			MOST_ROWS);
		return 0;
	}
	if (is_short && fit->n_rows >= MANY_ROWS && folds > FOLDS_OF_MANY)
	{
		folds = FOLDS_OF_MANY;
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "%d folds: so many of %d rows and more, where the time is less than 600 s", folds,
			   MANY_ROWS);
	}
	one = ag_fit_booster_seconds(fit);
	if (folds * one <= FOLDS_SHARE * left)
		return folds;
	folds = (int) (FOLDS_SHARE * left / one);
	if (folds < FEWEST_FOLDS)
	{
		ag_log(&fit->ctx, AG_LOG_NORMAL, "Time is too short for bags of %lld rows",
			   (long long) fit->n_rows);
		return 0;
	}
	ag_log(&fit->ctx, AG_LOG_NORMAL, "%d folds, for want of time for more", folds);
	return folds;
}

/* Folds forward in time; where the latest rows are held out, those of the others are as any. */
static bool
goes_by_time(const AgFit *fit)
{
	return fit->moment != NULL && !fit->validation.is_held_out;
}

AgStatus
ag_fit_deal(AgFit *fit, int set, uint8_t *fold_of)
{
	int n_groups = fit->label->class_of != NULL ? fit->label->n_classes : 1;
	uint32_t *order = NULL;
	int64_t *begin = NULL;
	AgStatus status;

	if (goes_by_time(fit))
		return ag_time_deal(fit, fold_of);
	if (fit->group_of != NULL)
		return ag_groups_deal(fit, set, fold_of);
	AG_GO(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof *order, &order));
	AG_GO(ag_get(&fit->ctx, (size_t) n_groups + 1, sizeof *begin, &begin));
	set_deal(fit, set, n_groups, order, begin, fold_of);
done:
	ag_mem_free(fit->ctx.mem, order);
	ag_mem_free(fit->ctx.mem, begin);
	return status;
}

static AgStatus
folds_deal(AgFit *fit, int n_folds)
{
	AgValidation *v = &fit->validation;
	size_t n = (size_t) fit->n_rows;

	v->n_folds = n_folds;
	v->n_sets = goes_by_time(fit) ? 1 : fit->options->num_bag_sets; /* time goes one way only */
	AG_TRY(ag_get(&fit->ctx, n, (size_t) v->n_sets, &v->fold_of));
	if (!v->is_held_out)
		AG_TRY(ag_get(&fit->ctx, n, sizeof(uint32_t), &v->scored_rows));
	for (int set = 0; set < v->n_sets; set++)
	{
		uint8_t *fold_of = v->fold_of + (int64_t) set * fit->n_rows;

		AG_TRY(ag_fit_deal(fit, set, fold_of));
		for (int64_t i = 0; v->is_held_out && i < v->n_scored; i++)
			fold_of[v->scored_rows[i]] = AG_FIT_HELD;
	}
	for (int64_t r = 0; r < fit->n_rows && !v->is_held_out; r++)
		if (v->fold_of[r] != AG_FIT_NO_FOLD)
			v->scored_rows[v->n_scored++] = (uint32_t) r;
	folds_tell(fit);
	return AG_OK;
}

int
ag_fit_all_rows_number(const AgFit *fit)
{
	return fit->validation.n_folds * (fit->validation.n_sets + 1) +
		   2; /* with room for a spare set */
}

void
ag_fit_split_fold(const AgFit *fit, int set, int fold, AgSplit *split)
{
	const AgValidation *v = &fit->validation;
	const uint8_t *fold_of = v->fold_of + (int64_t) set * fit->n_rows;

	split->number = 1 + set * v->n_folds + fold;
	split->n_train = split->n_valid = 0;
	for (int64_t r = 0; r < fit->n_rows; r++)
		if (fold_of[r] == AG_FIT_HELD)
			continue;
		else if (v->is_forward && fold_of[r] != AG_FIT_NO_FOLD && fold_of[r] > fold)
			continue;
		else if (fold_of[r] == fold)
			split->valid_rows[split->n_valid++] = (uint32_t) r;
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
}

/* Rows held out as without bags; of the split only they stay. */
static AgStatus
hold_out_beside(AgFit *fit)
{
	AgValidation *v = &fit->validation;

	AG_TRY(ag_fit_hold_out(fit));
	ag_mem_free(fit->ctx.mem, v->split.train_rows);
	v->split.train_rows = NULL;
	v->scored_rows = v->split.valid_rows; /* from here on its owner */
	v->split.valid_rows = NULL;
	v->split.n_train = v->split.n_valid = 0;
	v->is_held_out = v->n_scored > 0;
	if (v->is_held_out)
		return AG_OK;
	ag_mem_free(fit->ctx.mem, v->scored_rows); /* too few rows for that */
	v->scored_rows = NULL;
	return AG_OK;
}

/* Are bags scored on rows held out from all folds? AutoGluon's rule, where nobody says: of a million rows some are enough. */
static bool
is_beside(const AgFit *fit)
{
	const AgFitOptions *options = fit->options;

	if (options->bag_holdout_said || options->use_bag_holdout)
		return options->use_bag_holdout;
	if (!options->auto_stack || options->num_bag_folds >= 0 || options->num_stack_levels > 0 ||
		options->dynamic_stacking == AG_DYNAMIC_ON || fit->n_rows < HELD_ROWS)
		return false;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "Bags of %d rows and more are scored on rows held out, and not stacked; to change this, "
		   "give \"use_bag_holdout\": false",
		   HELD_ROWS);
	return true;
}

AgStatus
ag_fit_split(AgFit *fit)
{
	int n_folds = ag_folds_asked(fit->options, fit->n_rows);

	if (n_folds > 0)
		n_folds = folds_fit(fit, n_folds);
	if (n_folds > 0)
		n_folds = folds_affordable(fit, n_folds);
	if (n_folds > 0 && is_beside(fit))
		AG_TRY(hold_out_beside(fit));
	if (n_folds > 0)
		AG_TRY(folds_deal(fit, n_folds));
	else
		AG_TRY(ag_fit_hold_out(fit));
	return ag_fit_gather_labels(fit);
}

void
ag_validation_free(const AgContext *ctx, AgValidation *validation)
{
	if (validation->scored_rows != validation->split.valid_rows)
		ag_mem_free(ctx->mem, validation->scored_rows);
	ag_mem_free(ctx->mem, validation->split.train_rows);
	ag_mem_free(ctx->mem, validation->split.valid_rows);
	ag_mem_free(ctx->mem, validation->fold_of);
	ag_mem_free(ctx->mem, validation->target);
	ag_mem_free(ctx->mem, validation->class_of);
	ag_mem_free(ctx->mem, validation->weight);
}
