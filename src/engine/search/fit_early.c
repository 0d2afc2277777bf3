/*
 * fit_early.c - a first look: what the machine and the rows are like, before it is decided how many folds there is time for.
 *
 * A small part of the time trains a booster on most of the rows, and scores it on the others, beside the guess that is the same for every row. That
 * tells early how well the label can be predicted, and how long a round takes, here and now, with all else that the machine has to do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/search/fit_state.h"

#define LOOK_SHARE 0.015 /* of the time left, for the first look */
#define LOOK_MOST_S 2.0
#define LOOK_LEAST_S 0.1 /* less shows nothing */
#define LOOK_ROWS 2000   /* of fewer, any folds are done in time */
#define HELD_OUT 8       /* one in so many rows */
#define LEAST_ROUNDS 3   /* that tell how long one takes */
#define KEY_EARLY 0x6561726c
#define EARLY_SPLIT 0xfffe /* number of the split: no bag's, no refit's */

typedef struct Early
{
	AgFit *fit;
	AgContext ctx; /* the fit's, with an error of its own */
	AgFitModel model;
	AgSplit split;
	AgTrained trained;
	double *target, *weight; /* of the rows held out */
	int32_t *class_of;
	double *prior; /* [n_valid][width] */
} Early;

static const AgModelConfig *
first_booster(const AgFit *fit)
{
	for (int m = 0; m < fit->options->n_models; m++)
		if (fit->options->models[m].family->id == AG_FAMILY_GBM &&
			fit->options->models[m].search == NULL &&
			!ag_fit_is_left_out(fit, &fit->options->models[m]))
			return &fit->options->models[m];
	return NULL;
}

/* Only where the folds are ours to choose, and may be too many. Of texts a booster's own columns would take longer than itself. */
static bool
is_wanted(const AgFit *fit)
{
	const AgFitOptions *options = fit->options;

	return options->models_from_set && options->auto_stack && options->num_bag_folds < 0 &&
		   options->replay == NULL && fit->ctx.deadline_ns != INT64_MAX &&
		   fit->promised_seconds < AG_FIT_LONG_SECONDS && fit->n_rows >= LOOK_ROWS &&
		   fit->pipeline->n_features == fit->pipeline->n_visible && first_booster(fit) != NULL;
}

/* Rows at random, or whole groups. */
static AgStatus
rows_part(Early *e)
{
	const AgFit *fit = e->fit;
	uint64_t key = ag_key(fit->options->random_state, KEY_EARLY);
	size_t n = (size_t) fit->n_rows;

	AG_TRY(ag_get(&e->ctx, n, sizeof(uint32_t), &e->split.train_rows));
	AG_TRY(ag_get(&e->ctx, n, sizeof(uint32_t), &e->split.valid_rows));
	e->split.number = EARLY_SPLIT;
	for (size_t r = 0; r < n; r++)
	{
		uint64_t of = fit->group_of != NULL ? fit->group_of[r] : r;

		if (ag_random_below(key, of, HELD_OUT) == 0)
			e->split.valid_rows[e->split.n_valid++] = (uint32_t) r;
		else
			e->split.train_rows[e->split.n_train++] = (uint32_t) r;
	}
	return AG_OK;
}

static AgStatus
labels_get(Early *e)
{
	const AgFit *fit = e->fit;
	size_t n = (size_t) e->split.n_valid;

	if (fit->label->class_of != NULL)
		AG_TRY(ag_get(&e->ctx, n, sizeof *e->class_of, &e->class_of));
	else
		AG_TRY(ag_get(&e->ctx, n, sizeof *e->target, &e->target));
	if (fit->weight != NULL && fit->options->weight_evaluation)
		AG_TRY(ag_get(&e->ctx, n, sizeof *e->weight, &e->weight));
	for (size_t i = 0; i < n; i++)
	{
		uint32_t row = e->split.valid_rows[i];

		if (e->class_of != NULL)
			e->class_of[i] = fit->label->class_of[row];
		else
			e->target[i] = fit->label->target[row];
		if (e->weight != NULL)
			e->weight[i] = fit->weight[row];
	}
	return AG_OK;
}

static int
by_value(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* What is said of a row that nothing is known of: shares of classes, the mean, or quantiles. */
static AgStatus
prior_make(Early *e)
{
	const AgFit *fit = e->fit;
	const AgLabel *label = fit->label;
	int width = ag_fit_width(fit);
	double *of_train = NULL, *one = NULL;
	AgStatus status;

	AG_GO(ag_get_zeroed(&e->ctx, (size_t) width, sizeof *one, &one));
	AG_GO(ag_get(&e->ctx, (size_t) e->split.n_valid, (size_t) width * sizeof(double), &e->prior));
	AG_GO(ag_get(&e->ctx, (size_t) e->split.n_train, sizeof *of_train, &of_train));
	for (int64_t i = 0; i < e->split.n_train; i++)
	{
		uint32_t row = e->split.train_rows[i];

		if (label->class_of != NULL)
			one[label->class_of[row]] += 1.0 / (double) e->split.n_train;
		else
			of_train[i] = label->target[row];
		if (label->class_of == NULL)
			one[0] += (label->target[row] - one[0]) / (double) (i + 1);
	}
	if (label->n_quantiles > 0)
		qsort(of_train, (size_t) e->split.n_train, sizeof *of_train, by_value);
	for (int k = 0; k < label->n_quantiles; k++)
		one[k] = of_train[(int64_t) (label->quantiles[k] * (double) (e->split.n_train - 1))];
	for (int64_t i = 0; i < e->split.n_valid; i++)
		memcpy(e->prior + i * width, one, (size_t) width * sizeof *one);
done:
	ag_mem_free(fit->ctx.mem, one);
	ag_mem_free(fit->ctx.mem, of_train);
	return status;
}

static AgStatus
score_of(Early *e, const double *proba, double *score)
{
	double value;

	AG_TRY(ag_fit_value(e->fit, &e->ctx, e->split.n_valid, e->target, e->class_of, e->weight, proba,
						&value));
	*score = ag_metric_score(e->fit->metric, value);
	return AG_OK;
}

/* A machine that does other things, too, takes longer: that is what is wanted to be known. */
static AgStatus
look(Early *e, double seconds)
{
	AgFit *fit = e->fit;
	AgContext ctx = e->ctx;
	double none, booster, of_rows = (double) fit->n_rows / (double) e->split.n_train;

	fit->rows.ctx = &fit->ctx;
	fit->rows.pipeline = fit->pipeline;
	fit->rows.table = fit->table;
	ctx.gpu = ag_fit_idle_gpu(fit, e->model.config);
	AG_TRY(ag_family_prepare(&ctx, &fit->rows, e->model.config)); /* the models have use for it */
	ctx.gpu = NULL;
	ctx.deadline_ns = ag_clock_ns() + (int64_t) (seconds * 1e9);
	AG_TRY(ag_fit_train_child(fit, &ctx, &fit->rows, &e->split, &e->model, 0, 0, &e->trained));
	AG_TRY(labels_get(e));
	AG_TRY(prior_make(e));
	AG_TRY(score_of(e, e->prior, &none));
	AG_TRY(score_of(e, e->trained.valid_proba, &booster));
	if (e->trained.rounds_run >= LEAST_ROUNDS)
		fit->booster_seconds =
			e->trained.fit_seconds / e->trained.rounds_run * AG_FIT_PLAN_ROUNDS * of_rows;
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   "A first look, at %lld rows held out: %s %.5g by the same for each row, %.5g by %d "
		   "rounds of %s in %.2f s",
		   (long long) e->split.n_valid, ag_metric_name(fit->metric), none, booster,
		   e->trained.rounds, e->model.config->family->key, e->trained.fit_seconds);
	if (fit->host->standing != NULL && isfinite(booster))
		fit->host->standing->score = booster;
	return AG_OK;
}

AgStatus
ag_fit_early(AgFit *fit)
{
	Early e = {.fit = fit, .ctx = fit->ctx};
	AgError err;
	double seconds = -ag_fit_seconds(fit->ctx.deadline_ns) * LOOK_SHARE;
	AgMem *mem = fit->ctx.mem;
	AgStatus status = AG_OK;

	seconds = seconds < LOOK_MOST_S ? seconds : LOOK_MOST_S;
	if (!is_wanted(fit) || seconds < LOOK_LEAST_S)
		return AG_OK;
	ag_error_init(&err);
	e.ctx.error = &err;
	ag_progress(&fit->ctx, "taking a first look", -1.0);
	ag_fit_model_begin(fit, first_booster(fit), &e.model);
	AG_GO(rows_part(&e));
	if (e.split.n_train > 0 && e.split.n_valid > 0)
		AG_GO(look(&e, seconds));
done:
	ag_trained_free(&fit->ctx, &e.trained);
	ag_mem_free(mem, e.split.train_rows);
	ag_mem_free(mem, e.split.valid_rows);
	ag_mem_free(mem, e.target);
	ag_mem_free(mem, e.weight);
	ag_mem_free(mem, e.class_of);
	ag_mem_free(mem, e.prior);
	if (status == AG_ERR_CANCELLED)
		return ag_check_cancel(&fit->ctx);
	if (status != AG_OK) /* then the models will say what is the matter */
		ag_log(&fit->ctx, AG_LOG_RESOURCES, "The first look came to nothing: %s", err.message);
	return AG_OK;
}
