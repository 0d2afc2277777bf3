/*
 * fit_holdout.c - which rows are held out to validate on.
 *
 * Rows stand in the order of a hash of their values, so a choice by position is a choice by value: the same for
 * any order on disk. Which positions is drawn by the seed.
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/search/fit_state.h"

#define KEY_HOLDOUT 0x686f6c64 /* what these random numbers are for */

/* AutoGluon's rule: 500 rows of up to 5,000, 2,500 of up to 250,000, 1 % of more; 10 to 20 % of few. */
double
ag_holdout_rule(int64_t n_rows)
{
	double n = (double) n_rows;

	if (n_rows < 5000)
		return fmax(0.1, fmin(0.2, 500.0 / n));
	return fmax(0.01, fmin(0.1, 2500.0 / n));
}

/* Likewise: a search compares many models on these rows, and has twice as many of them. */
double
ag_holdout_asked(const AgFitOptions *options, int64_t n_rows)
{
	double rule = ag_holdout_rule(n_rows);

	if (!isnan(options->holdout_frac))
		return options->holdout_frac;
	return options->search.is_asked ? fmax(rule, fmin(0.2, 2.0 * rule)) : rule;
}

/*
 * How many rows of each class are held out: shares rounded by largest remainder (ties to the first class), at least
 * one row of each class left to train on. A binary problem keeps a row of either class to validate on where it can, for
 * without it most metrics are undefined.
 */
static AgStatus
class_quotas(AgFit *fit, int64_t n_valid, int64_t *quota)
{
	const AgLabel *label = fit->label;
	double share = (double) n_valid / (double) label->n_rows;
	double *rest;
	int64_t left = n_valid;

	AG_TRY(ag_get(&fit->ctx, (size_t) label->n_classes, sizeof *rest, &rest));
	for (int c = 0; c < label->n_classes; c++)
	{
		double exact = share * (double) label->classes[c].n_rows;

		quota[c] = (int64_t) floor(exact);
		rest[c] = exact - floor(exact);
		if (label->problem == AG_PROBLEM_BINARY && quota[c] == 0 && label->classes[c].n_rows >= 2)
		{
			quota[c] = 1;
			rest[c] = 0.0;
		}
		if (quota[c] > label->classes[c].n_rows - 1)
			quota[c] = label->classes[c].n_rows > 0 ? label->classes[c].n_rows - 1 : 0;
		left -= quota[c];
	}
	while (left > 0)
	{
		int best = -1;

		for (int c = 0; c < label->n_classes; c++)
			if (rest[c] >= 0.0 && quota[c] < label->classes[c].n_rows - 1 &&
				(best < 0 || rest[c] > rest[best]))
				best = c;
		if (best < 0)
			break;
		quota[best]++;
		rest[best] = -1.0; /* one extra row a class is all that rounding can ask for */
		left--;
	}
	ag_mem_free(fit->ctx.mem, rest);
	return AG_OK;
}

/*
 * Draws the rows in one pass, each class by selection sampling (Knuth, The Art of Computer Programming 2,
 * algorithm 3.4.2 S): exactly quota[c] of the class's rows, every subset as likely, in ascending order.
 */
static AgStatus
rows_draw(AgFit *fit, int n_groups, const int64_t *quota)
{
	AgSplit *split = &fit->validation.split;
	const int32_t *class_of = fit->label->class_of;
	uint64_t key = ag_key(fit->options->random_state, KEY_HOLDOUT);
	int64_t *wanted, *left;
	AgStatus status;

	wanted = NULL;
	AG_TRY(ag_get(&fit->ctx, (size_t) n_groups * 2, sizeof *wanted, &wanted));
	left = wanted + n_groups;
	for (int g = 0; g < n_groups; g++)
	{
		wanted[g] = quota[g];
		left[g] = class_of != NULL ? fit->label->classes[g].n_rows : fit->n_rows;
		split->n_valid += quota[g];
	}
	split->n_train = fit->n_rows - split->n_valid;
	AG_GO(
		ag_get(&fit->ctx, (size_t) split->n_train, sizeof *split->train_rows, &split->train_rows));
	AG_GO(
		ag_get(&fit->ctx, (size_t) split->n_valid, sizeof *split->valid_rows, &split->valid_rows));
	split->n_train = split->n_valid = 0;
	for (int64_t r = 0; r < fit->n_rows; r++)
	{
		int g = class_of != NULL ? class_of[r] : 0;

		if (wanted[g] > 0 &&
			(int64_t) ag_random_below(key, (uint64_t) r, (uint32_t) left[g]) < wanted[g])
		{
			wanted[g]--;
			split->valid_rows[split->n_valid++] = (uint32_t) r;
		}
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
		left[g]--;
	}
	status = AG_OK;
done:
	ag_mem_free(fit->ctx.mem, wanted);
	return status;
}

/* The rows of the tuning data validate, all others train. */
static AgStatus
tuning_hold_out(AgFit *fit)
{
	AgValidation *v = &fit->validation;
	AgSplit *split = &v->split;
	int64_t n_tuning = 0;

	for (int64_t r = 0; r < fit->n_rows; r++)
		n_tuning += fit->is_tuning[r];
	if (n_tuning == 0 || n_tuning == fit->n_rows)
		return ag_error_set(fit->ctx.error, AG_ERR_DATA, "%s no row with a label",
							n_tuning == 0 ? "the tuning data have" : "the data has");
	AG_TRY(
		ag_get(&fit->ctx, (size_t) (fit->n_rows - n_tuning), sizeof(uint32_t), &split->train_rows));
	AG_TRY(ag_get(&fit->ctx, (size_t) n_tuning, sizeof(uint32_t), &split->valid_rows));
	for (int64_t r = 0; r < fit->n_rows; r++)
		if (fit->is_tuning[r])
			split->valid_rows[split->n_valid++] = (uint32_t) r;
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
	v->split.number = 1;
	v->n_scored = n_tuning;
	v->scored_rows = split->valid_rows;
	v->fraction = (double) n_tuning / (double) fit->n_rows;
	ag_log(&fit->ctx, AG_LOG_NORMAL, "%lld rows of the tuning data validate, %lld rows train",
		   (long long) n_tuning, (long long) split->n_train);
	return AG_OK;
}

/* A class that only the tuning data have is one that no model could learn. */
static AgStatus
tuning_classes_check(AgFit *fit)
{
	const AgLabel *label = fit->label;
	int64_t *n_train, n_rows = 0;
	int n_classes = 0, first = -1;

	if (label->class_of == NULL)
		return AG_OK;
	AG_TRY(ag_get_zeroed(&fit->ctx, (size_t) label->n_classes, sizeof *n_train, &n_train));
	for (int64_t r = 0; r < fit->n_rows; r++)
		n_train[label->class_of[r]] += !fit->is_tuning[r];
	for (int c = 0; c < label->n_classes; c++)
		if (n_train[c] == 0)
		{
			first = n_classes++ == 0 ? c : first;
			n_rows += label->classes[c].n_rows;
		}
	ag_mem_free(fit->ctx.mem, n_train);
	if (n_classes == 0)
		return AG_OK;
	ag_error_set(fit->ctx.error, AG_ERR_DATA,
				 "the tuning data have %d %s that the data lacks, such as \"%.*s\"", n_classes,
				 n_classes == 1 ? "class" : "classes",
				 (int) ag_utf8_clip(label->classes[first].name, label->classes[first].n_bytes, 200),
				 label->classes[first].name);
	ag_error_detail(fit->ctx.error, "That concerns %lld of their rows.", (long long) n_rows);
	ag_error_hint(fit->ctx.error, "Leave those rows out with a query.");
	return AG_ERR_DATA;
}

AgStatus
ag_fit_hold_out(AgFit *fit)
{
	AgValidation *v = &fit->validation;
	bool asked = !isnan(fit->options->holdout_frac);
	int n_groups = fit->label->class_of != NULL ? fit->label->n_classes : 1;
	bool is_refit = fit->options->replay != NULL && fit->options->replay->is_refit;
	int64_t *quota, n_valid = 0;
	AgStatus status;

	if (fit->is_tuning != NULL)
	{
		AG_TRY(tuning_hold_out(fit));
		return tuning_classes_check(fit);
	}
	v->fraction = ag_holdout_asked(fit->options, fit->n_rows);
	if (!is_refit && (asked || fit->n_rows >= AG_FIT_MIN_HOLDOUT_ROWS))
		n_valid = (int64_t) ceil(v->fraction * (double) fit->n_rows);
	if (n_valid > fit->n_rows - 1)
		n_valid = fit->n_rows - 1;
	AG_TRY(ag_get_zeroed(&fit->ctx, (size_t) n_groups, sizeof *quota, &quota));
	v->split.number = 1;
	quota[0] = n_valid;
	if (fit->moment != NULL && n_valid > 0)
		AG_GO(ag_time_hold_out(fit, n_valid));
	else if (fit->group_of != NULL && !is_refit)
		AG_GO(ag_groups_hold_out(fit, n_valid));
	else if (fit->label->class_of != NULL && n_valid > 0)
		AG_GO(class_quotas(fit, n_valid, quota));
	if ((fit->group_of == NULL || is_refit) && (fit->moment == NULL || n_valid == 0))
		AG_GO(rows_draw(fit, n_groups, quota));
	v->n_scored = v->split.n_valid;
	v->scored_rows = v->split.valid_rows;
	if (v->n_scored > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "%lld of %lld rows are held out to validate on (holdout_frac %.4g)",
			   (long long) v->n_scored, (long long) fit->n_rows, v->fraction);
	else if (is_refit)
	{
		v->fraction = 0.0;
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Models are trained on all %lld rows, as long as their fit found: nothing is "
			   "validated",
			   (long long) fit->n_rows);
	}
	else
	{
		v->fraction = 0.0;
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   n_valid > 0 && fit->group_of == NULL && fit->moment == NULL
				   ? "classes have too few of the %lld rows to hold any out: models have no "
					 "validation score"
				   : "%lld rows are too few to hold any out: models have no validation score",
			   (long long) fit->n_rows);
	}
done:
	ag_mem_free(fit->ctx.mem, quota);
	return status;
}
