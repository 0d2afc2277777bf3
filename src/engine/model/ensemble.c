#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/ensemble.h"

/*
 * Errors are compared rounded to so many decimals, so that dust of the last digits doesn't bring one more model
 * into the ensemble; unless the first step's error is so small that digits count.
 */
#define ERROR_UNITS 1e6
#define LEAST_ROUNDED_ERROR 1e-4
/*
 * Greed on few rows takes to whatever fits them by chance. So of many candidates the best by themselves come first, as long as they
 * are about as good as the best one.
 */
#define CANDIDATES_PER_FIRST 3
#define MOST_FIRST 3
#define STEPS_PER_FIRST 4
#define FIRST_ERROR 1.15

typedef struct Selection
{
	const AgContext *ctx;
	AgMetric metric;
	const AgTruth *truth;
	int64_t n_rows, n_cells;
	int n_candidates;
	const double *const *predictions;
	double *sum;     /* [n_cells] of the members so far */
	double *mean;    /* [n_cells] with the candidate on trial */
	int *chosen;     /* [n_steps] candidate of each step */
	bool *usable;    /* [n_candidates] */
	bool *is_member; /* [n_candidates] */
	bool rounded;
	double *alone; /* [n_candidates] error by itself; NaN: unknown */
	int n_first;   /* that are taken for that */
	/* the mean on trial, for the pool */
	const double *trial;
	double share;
} Selection;

static void
mean_cells(void *arg, int64_t begin, int64_t end, int thread)
{
	const Selection *selection = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
		selection->mean[i] = (selection->sum[i] + selection->trial[i]) * selection->share;
}

/* The metric of the members' mean with candidate j as the (n_members + 1)-th. */
static AgStatus
try_candidate(Selection *selection, int n_members, int j, double *value)
{
	const AgContext *ctx = selection->ctx;

	AG_TRY(ag_check_cancel(ctx));
	selection->trial = selection->predictions[j];
	selection->share = 1.0 / (n_members + 1);
	ag_pool_run(ctx->pool, selection->n_cells, 16384, mean_cells, selection);
	return ag_metric_value(ctx, selection->metric, selection->truth, selection->n_rows,
						   selection->mean, value);
}

static double
error_of(const Selection *selection, double value)
{
	double error = ag_metric_higher_is_better(selection->metric) ? 1.0 - value : value;

	return selection->rounded && fabs(error) < 1e9 ? nearbyint(error * ERROR_UNITS) / ERROR_UNITS
												   : error;
}

/* Does another candidate's turn come first, as the better one by itself that isn't a member yet? */
static bool
is_behind(const Selection *selection, int n_members, int j)
{
	if (n_members == 0 || n_members >= selection->n_first)
		return false;
	if (selection->is_member[j])
		return true;
	for (int k = 0; k < selection->n_candidates; k++)
		if (!selection->is_member[k] && (selection->alone[k] < selection->alone[j] ||
										 (selection->alone[k] == selection->alone[j] && k < j)))
			return true;
	return false;
}

/* How many come first: known when each was tried by itself. */
static int
first_count(const Selection *selection, int n_steps)
{
	int n_usable = 0, n_good = 0, most;
	double least = (double) NAN;

	for (int j = 0; j < selection->n_candidates; j++)
	{
		n_usable += selection->usable[j];
		if (selection->alone[j] < least ||
			(least != least && selection->alone[j] == selection->alone[j]))
			least = selection->alone[j];
	}
	for (int j = 0; j < selection->n_candidates; j++)
		n_good += selection->alone[j] <= least * FIRST_ERROR;
	most = n_usable / CANDIDATES_PER_FIRST;
	if (most > n_steps / STEPS_PER_FIRST)
		most = n_steps / STEPS_PER_FIRST;
	most = most > MOST_FIRST ? MOST_FIRST : most;
	most = n_good < most ? n_good : most;
	return most > 1 ? most : 1;
}

/*
 * One step: *best gets the candidate that lowers the error most, or -1 when the metric
 * is undefined for all. Among equals members come first, then the lower index: the ensemble
 * stays small, and the same on every machine.
 */
static AgStatus
best_candidate(Selection *selection, int n_members, int *best, double *best_value,
			   double *best_error)
{
	*best = -1;
	for (int j = 0; j < selection->n_candidates; j++)
	{
		double value, error;

		if (!selection->usable[j] || is_behind(selection, n_members, j))
			continue;
		if (*best >= 0 && ag_out_of_time(selection->ctx))
			break;
		AG_TRY(try_candidate(selection, n_members, j, &value));
		error = error_of(selection, value);
		if (n_members == 0)
			selection->alone[j] = error;
		if (error != error)
			continue;
		if (*best < 0 || error < *best_error ||
			(error == *best_error && selection->is_member[j] && !selection->is_member[*best]))
		{
			*best = j;
			*best_value = value;
			*best_error = error;
		}
	}
	return AG_OK;
}

/*
 * Caruana, Niculescu-Mizil, Crew and Ksikes 2004, "Ensemble selection from libraries of models": forward selection with
 * replacement from the best few (section 2.2 and 2.3), then the steps up to the first that reached the least error.
 */
static AgStatus
select_members(Selection *selection, int n_steps, double *weights, double *value)
{
	double least_error = 0.0;
	int n_best = 0;

	*value = (double) NAN;
	for (int step = 0; step < n_steps; step++)
	{
		double step_value = 0.0, error = 0.0;
		int best;

		if (step > 0 && ag_out_of_time(selection->ctx))
			break;
		AG_TRY(best_candidate(selection, step, &best, &step_value, &error));
		if (best < 0)
			break;
		if (step == 0)
			selection->n_first = first_count(selection, n_steps);
		if (step == 0 && fabs(error) > LEAST_ROUNDED_ERROR)
		{
			selection->rounded = true;
			error = error_of(selection, step_value);
		}
		selection->chosen[step] = best;
		selection->is_member[best] = true;
		for (int64_t i = 0; i < selection->n_cells; i++)
			selection->sum[i] += selection->predictions[best][i];
		if (step < selection->n_first || error < least_error)
		{
			n_best = step + 1;
			least_error = error;
			*value = step_value;
		}
	}
	for (int step = 0; step < n_best; step++)
		weights[selection->chosen[step]] += 1.0;
	for (int j = 0; n_best > 0 && j < selection->n_candidates; j++)
		weights[j] /= n_best;
	return AG_OK;
}

/* Marks the candidates that are finite; *first gets the first of them. */
static AgStatus
check_candidates(Selection *selection, int *first)
{
	*first = -1;
	for (int j = selection->n_candidates - 1; j >= 0; j--)
	{
		bool finite = true;

		for (int64_t i = 0; finite && i < selection->n_cells; i++)
			finite = isfinite(selection->predictions[j][i]);
		selection->usable[j] = finite;
		if (finite)
			*first = j;
	}
	if (*first < 0)
		return ag_error_set(selection->ctx->error, AG_ERR_DATA,
							"no model has finite predictions on the validation rows");
	return AG_OK;
}

AgStatus
ag_ensemble_select(const AgContext *ctx, AgMetric metric, const AgTruth *truth, int64_t n_rows,
				   int n_candidates, const double *const *predictions, int n_steps, double *weights,
				   double *value)
{
	Selection selection = {.ctx = ctx,
						   .metric = metric,
						   .truth = truth,
						   .n_rows = n_rows,
						   .n_cells = n_rows * ag_truth_outputs(truth),
						   .n_candidates = n_candidates,
						   .predictions = predictions};
	size_t n = (size_t) n_candidates, n_cells = (size_t) selection.n_cells;
	int first;
	AgStatus status;

	*value = (double) NAN;
	for (int j = 0; j < n_candidates; j++)
		weights[j] = 0.0;
	AG_GO(ag_get_zeroed(ctx, n_cells, sizeof(double), &selection.sum));
	AG_GO(ag_get(ctx, n_cells, sizeof(double), &selection.mean));
	AG_GO(ag_get(ctx, (size_t) n_steps, sizeof(int), &selection.chosen));
	AG_GO(ag_get_zeroed(ctx, n, sizeof(bool), &selection.usable));
	AG_GO(ag_get_zeroed(ctx, n, sizeof(bool), &selection.is_member));
	AG_GO(ag_get(ctx, n, sizeof(double), &selection.alone));
	for (int j = 0; j < n_candidates; j++)
		selection.alone[j] = (double) NAN;
	AG_GO(check_candidates(&selection, &first));
	AG_GO(select_members(&selection, n_steps, weights, value));
	if (*value != *value) /* no step was taken */
		weights[first] = 1.0;
done:
	ag_mem_free(ctx->mem, selection.alone);
	ag_mem_free(ctx->mem, selection.is_member);
	ag_mem_free(ctx->mem, selection.usable);
	ag_mem_free(ctx->mem, selection.chosen);
	ag_mem_free(ctx->mem, selection.mean);
	ag_mem_free(ctx->mem, selection.sum);
	return status;
}
