/*
 * fit_time.c - validation by time: what is learnt of the past is tried on what came after it.
 *
 * Rows of one moment are never torn apart: most often they are of one day or event.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/search/fit_state.h"

typedef struct Moment
{
	double at;
	uint32_t row;
} Moment;

static int
by_time(const void *left, const void *right)
{
	const Moment *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static AgStatus
moments_sort(AgFit *fit, Moment **moments)
{
	size_t n = (size_t) fit->n_rows;

	AG_TRY(ag_get(&fit->ctx, n, sizeof **moments, moments));
	for (size_t r = 0; r < n; r++)
		(*moments)[r] = (Moment){fit->moment[r], (uint32_t) r};
	qsort(*moments, n, sizeof **moments, by_time);
	if ((*moments)[0].at == (*moments)[n - 1].at)
	{
		ag_mem_free(fit->ctx.mem, *moments);
		*moments = NULL;
		return ag_error_set(fit->ctx.error, AG_ERR_DATA, "\"time_column\" is the same in all rows");
	}
	return AG_OK;
}

/* The cut between two moments that is nearest to a place, and behind `from`; n_rows when there is none. */
static int64_t
cut_near(const Moment *moments, int64_t n, int64_t from, int64_t place)
{
	int64_t before = place, after = place;

	while (before > from && moments[before].at == moments[before - 1].at)
		before--;
	while (after < n && after > 0 && moments[after].at == moments[after - 1].at)
		after++;
	if (before <= from)
		return after;
	return after >= n || place - before <= after - place ? before : after;
}

/*
 * The rows in one block more than there are folds, each of about as many. The first is in every fold's training part; each other
 * is a fold, trained on all blocks before it. Fewer folds where moments are few.
 */
AgStatus
ag_time_deal(AgFit *fit, uint8_t *fold_of)
{
	AgValidation *v = &fit->validation;
	int64_t n = fit->n_rows, from = 0;
	int n_blocks = v->n_folds + 1, n_folds = 0;
	Moment *moments;

	AG_TRY(moments_sort(fit, &moments));
	for (int block = 0; block < n_blocks && from < n; block++)
	{
		int64_t end = n;

		if (block < n_blocks - 1)
			end = cut_near(moments, n, from, n * (block + 1) / n_blocks);
		if (end <= from)
			continue;
		for (int64_t i = from; i < end; i++)
			fold_of[moments[i].row] = from == 0 ? AG_FIT_NO_FOLD : (uint8_t) n_folds;
		n_folds += from > 0;
		from = end;
	}
	ag_mem_free(fit->ctx.mem, moments);
	if (n_folds < v->n_folds)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%d folds instead of %d, for want of different times",
			   n_folds, v->n_folds);
	v->n_folds = n_folds;
	v->is_forward = true;
	return AG_OK;
}

/* About n_valid rows, the latest. */
AgStatus
ag_time_hold_out(AgFit *fit, int64_t n_valid)
{
	AgSplit *split = &fit->validation.split;
	int64_t cut;
	double last;
	Moment *moments;

	AG_TRY(moments_sort(fit, &moments));
	cut = cut_near(moments, fit->n_rows, 0, fit->n_rows - n_valid);
	last = moments[cut - 1].at;
	ag_mem_free(fit->ctx.mem, moments);
	AG_TRY(ag_get(&fit->ctx, (size_t) cut, sizeof(uint32_t), &split->train_rows));
	AG_TRY(ag_get(&fit->ctx, (size_t) (fit->n_rows - cut), sizeof(uint32_t), &split->valid_rows));
	for (int64_t r = 0; r < fit->n_rows; r++)
		if (fit->moment[r] > last)
			split->valid_rows[split->n_valid++] = (uint32_t) r;
		else
			split->train_rows[split->n_train++] = (uint32_t) r;
	return AG_OK;
}
