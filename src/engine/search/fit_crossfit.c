/*
 * fit_crossfit.c - how good weights are on rows that they were not chosen on.
 *
 * Weights that were chosen greedily on rows look better there than they are. So the scored rows are parted, by whole folds where
 * they are in some; on each part predicts a mean whose weights the other parts chose, and what comes of all of them together is the
 * ensemble's score. The same is done with the best single model, for picking the best one of many flatters as well: only
 * scores of the same kind are compared.
 */
#include <math.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/ensemble.h"
#include "engine/search/fit_state.h"

#define KEY_PARTS 0x70617274 /* what these random numbers are for */
#define MOST_PARTS 8
#define PARTS_OF_HOLDOUT 5
#define CELLS_AT_ONCE                                                                              \
	3e8 /* that weighing may look at beyond the first time: larger tables get fewer parts */

typedef struct Crossfit
{
	AgFit *fit;
	const AgContext *ctx;
	int n_models, n_parts, width;
	uint8_t *part_of;    /* [n_scored] */
	const double **some; /* [n_models] predictions of the rows of the other parts */
	double *values;      /* [n_models][n_scored × width] where those lie */
	double *target, *weight;
	int32_t *class_of;
	double *
		never; /* [n_scored × width] NaNs, for models that may not be chosen; NULL: there are none */
	double *weights; /* [n_models] */
	double *mixed;   /* [n_scored × width] */
} Crossfit;

/* Fewer where looking takes long; by the amount of work and not by the clock, so that a fit can be repeated. */
static int
parts_count(const AgFit *fit, int n_models)
{
	const AgValidation *v = &fit->validation;
	double cells = (double) v->n_scored * ag_fit_width(fit) * n_models * AG_ENSEMBLE_STEPS;
	int most = v->n_folds == 0 || v->is_held_out ? PARTS_OF_HOLDOUT
			   : v->n_folds < MOST_PARTS         ? v->n_folds
												 : MOST_PARTS;
	double affordable = 1.0 + CELLS_AT_ONCE / cells;

	if (affordable < most)
		most = affordable < 2.0 ? 2 : (int) affordable;
	return most;
}

static void
parts_deal(Crossfit *c)
{
	const AgFit *fit = c->fit;
	const AgValidation *v = &fit->validation;
	uint64_t key = ag_key(fit->options->random_state, KEY_PARTS);

	for (int64_t i = 0; i < v->n_scored; i++)
	{
		uint32_t row = v->scored_rows[i];
		uint32_t number = v->fold_of != NULL && !v->is_held_out ? v->fold_of[row]
						  : fit->group_of != NULL
							  ? ag_random_below(key, fit->group_of[row], 1u << 20)
							  : ag_random_below(key, row, 1u << 20);

		c->part_of[i] = (uint8_t) (number % (uint32_t) c->n_parts);
	}
}

/* The rows that aren't of a part, moved together; how many they are. */
static int64_t
others_gather(Crossfit *c, int part)
{
	const AgFit *fit = c->fit;
	const AgValidation *v = &fit->validation;
	size_t width = (size_t) c->width;
	int64_t n = 0;

	for (int64_t i = 0; i < v->n_scored; i++)
	{
		if (c->part_of[i] == part)
			continue;
		if (c->class_of != NULL)
			c->class_of[n] = v->class_of[i];
		else
			c->target[n] = v->target[i];
		if (c->weight != NULL)
			c->weight[n] = v->weight[i];
		n++;
	}
	for (int m = 0; m < c->n_models; m++)
	{
		double *to = c->values + (size_t) m * (size_t) v->n_scored * width;

		c->some[m] = fit->models[m].is_slow ? c->never : to;
		for (int64_t i = 0; i < v->n_scored; i++)
			if (c->part_of[i] != part)
			{
				memcpy(to, fit->models[m].proba + (size_t) i * width, width * sizeof *to);
				to += width;
			}
	}
	return n;
}

static void
part_mix(Crossfit *c, int part)
{
	const AgFit *fit = c->fit;
	int64_t n = fit->validation.n_scored;

	for (int64_t i = 0; i < n; i++)
		for (int k = 0; c->part_of[i] == part && k < c->width; k++)
		{
			int64_t at = i * c->width + k;

			c->mixed[at] = 0.0;
			for (int m = 0; m < c->n_models; m++)
				if (c->weights[m] > 0.0)
					c->mixed[at] += c->weights[m] * fit->models[m].proba[at];
		}
}

/* The score of so many steps of greed. */
static AgStatus
steps_value(Crossfit *c, int n_steps, double *value)
{
	AgFit *fit = c->fit;
	const AgValidation *v = &fit->validation;
	AgContext ctx = *c->ctx;
	int64_t began = ag_clock_ns();

	for (int part = 0; part < c->n_parts; part++)
	{
		int64_t n = others_gather(c, part);
		AgTruth truth = ag_fit_truth(fit, c->target, c->class_of, c->weight);
		double own;

		AG_TRY(ag_check_cancel(&ctx));
		if (c->ctx->deadline_ns != INT64_MAX)
			ctx.deadline_ns = began + (c->ctx->deadline_ns - began) / c->n_parts * (part + 1);
		if (n > 0 && n < v->n_scored)
			AG_TRY(ag_ensemble_select(&ctx, fit->metric, &truth, n, c->n_models, c->some, n_steps,
									  c->weights, &own));
		part_mix(c, part);
	}
	return ag_fit_value(fit, c->ctx, v->n_scored, v->target, v->class_of, v->weight, c->mixed,
						value);
}

static AgStatus
crossfit_open(Crossfit *c)
{
	const AgValidation *v = &c->fit->validation;
	size_t n = (size_t) v->n_scored, n_models = (size_t) c->n_models;
	size_t n_bytes = (size_t) c->width * sizeof(double);

	AG_TRY(ag_get(c->ctx, n, 1, &c->part_of));
	AG_TRY(ag_get(c->ctx, n_models, sizeof *c->some, &c->some));
	AG_TRY(ag_get(c->ctx, n_models, n * n_bytes, &c->values));
	AG_TRY(ag_get_zeroed(c->ctx, n_models, sizeof *c->weights, &c->weights));
	AG_TRY(ag_get(c->ctx, n, n_bytes, &c->mixed));
	AG_TRY(ag_fit_never(c->fit, c->ctx, &c->never));
	if (v->weight != NULL)
		AG_TRY(ag_get(c->ctx, n, sizeof *c->weight, &c->weight));
	if (v->class_of != NULL)
		return ag_get(c->ctx, n, sizeof *c->class_of, &c->class_of);
	return ag_get(c->ctx, n, sizeof *c->target, &c->target);
}

AgStatus
ag_fit_crossfit(AgFit *fit, const AgContext *ctx, double *value, double *single_value)
{
	AgError error;
	AgContext own = *ctx;
	Crossfit c = {.fit = fit, .ctx = &own, .n_models = fit->n_models, .width = ag_fit_width(fit)};
	AgMem *mem = ctx->mem;
	AgStatus status;

	ag_error_init(&error);
	own.error = &error;
	c.n_parts = parts_count(fit, c.n_models);
	AG_GO(crossfit_open(&c));
	parts_deal(&c);
	AG_GO(steps_value(&c, 1, single_value));
	AG_GO(steps_value(&c, AG_ENSEMBLE_STEPS, value));
done:
	ag_mem_free(mem, c.part_of);
	ag_mem_free(mem, c.some);
	ag_mem_free(mem, c.values);
	ag_mem_free(mem, c.never);
	ag_mem_free(mem, c.weights);
	ag_mem_free(mem, c.mixed);
	ag_mem_free(mem, c.weight);
	ag_mem_free(mem, c.class_of);
	ag_mem_free(mem, c.target);
	if (status != AG_OK && ctx->error != NULL)
		*ctx->error = error;
	return status;
}
