/*
 * fit_probe.c - is a bag worth finishing? Where time is too short for all configurations of a set, each shows on its first folds
 * what it would add to the ensemble of those that there are; one that adds nothing leaves its time to the next.
 */
#include <math.h>
#include <string.h>

#include "engine/model/ensemble.h"
#include "engine/search/fit_state.h"

#define FEWEST_FOLDS 2  /* that tell something */
#define FEWEST_MODELS 3 /* that are fitted whatever they add */
#define LEAST_GAIN 1e-3 /* of the ensemble's error */
#define STEPS 12        /* of greed: to see a gain, not to weigh */

/* Would the configurations that wait, each as long as one before, take more time than there is? */
static bool
is_pressed(const AgFit *fit)
{
	double seconds = 0.0, left = -ag_fit_seconds(fit->ctx.deadline_ns);

	for (int i = 0; i < fit->n_models; i++)
		seconds += fit->models[i].fit_seconds;
	return seconds / fit->n_models * (fit->options->n_models - fit->at_model) > left;
}

int
ag_fit_probe_folds(const AgFit *fit, int n_slots)
{
	const AgValidation *v = &fit->validation;
	int n = n_slots > FEWEST_FOLDS ? n_slots : FEWEST_FOLDS;

	if (!fit->options->models_from_set || fit->options->replay != NULL || fit->is_trial ||
		fit->level > 1 || v->is_held_out || v->is_forward || fit->ctx.deadline_ns == INT64_MAX)
		return 0;
	if (n > v->n_folds / 2 || fit->n_models < FEWEST_MODELS)
		return 0;
	for (int i = 0; i < fit->n_models; i++)
		if (fit->models[i].n_covered < v->n_scored)
			return 0;
	return is_pressed(fit) ? n : 0;
}

/* The rows of the first folds: labels, and what each model and at last the new one say of them. */
typedef struct Probe
{
	int64_t n;
	double *target, *weight, *cells; /* cells: [n_models + 1][n × width] */
	int32_t *class_of;
	const double **of_model; /* [n_models + 1] */
} Probe;

static AgStatus
probe_open(const AgFit *fit, const AgContext *ctx, int n_folds, Probe *p)
{
	const AgValidation *v = &fit->validation;
	size_t n_models = (size_t) fit->n_models + 1;

	for (int64_t i = 0; i < v->n_scored; i++)
		p->n += v->fold_of[v->scored_rows[i]] < n_folds;
	AG_TRY(ag_get(ctx, n_models, sizeof *p->of_model, &p->of_model));
	AG_TRY(ag_get(ctx, n_models * (size_t) p->n, (size_t) ag_fit_width(fit) * sizeof(double),
				  &p->cells));
	if (v->weight != NULL)
		AG_TRY(ag_get(ctx, (size_t) p->n, sizeof *p->weight, &p->weight));
	if (v->class_of != NULL)
		return ag_get(ctx, (size_t) p->n, sizeof *p->class_of, &p->class_of);
	return ag_get(ctx, (size_t) p->n, sizeof *p->target, &p->target);
}

static void
probe_close(const AgContext *ctx, Probe *p)
{
	ag_mem_free(ctx->mem, p->target);
	ag_mem_free(ctx->mem, p->weight);
	ag_mem_free(ctx->mem, p->class_of);
	ag_mem_free(ctx->mem, p->cells);
	ag_mem_free(ctx->mem, p->of_model);
}

/* Row by row; a fold's predictions of the new model come in the order of its rows. */
static void
probe_gather(const AgFit *fit, const AgTrained *trained, int n_folds, Probe *p)
{
	const AgValidation *v = &fit->validation;
	size_t width = (size_t) ag_fit_width(fit), n_cells = (size_t) p->n * width, at = 0;
	size_t from[AG_MAX_BAG_FOLDS] = {0};

	for (int m = 0; m <= fit->n_models; m++)
		p->of_model[m] = p->cells + (size_t) m * n_cells;
	for (int64_t i = 0; i < v->n_scored; i++)
	{
		int fold = v->fold_of[v->scored_rows[i]];

		if (fold >= n_folds)
			continue;
		if (p->class_of != NULL)
			p->class_of[at] = v->class_of[i];
		else
			p->target[at] = v->target[i];
		if (p->weight != NULL)
			p->weight[at] = v->weight[i];
		for (int m = 0; m < fit->n_models; m++)
			memcpy(p->cells + (size_t) m * n_cells + at * width,
				   fit->models[m].proba + (size_t) i * width, width * sizeof(double));
		memcpy(p->cells + (size_t) fit->n_models * n_cells + at * width,
			   trained[fold].valid_proba + from[fold]++ * width, width * sizeof(double));
		at++;
	}
}

/* Among equals the models that are there come first, so that the new one is chosen only where it is better. */
static AgStatus
probe_gain(AgFit *fit, const AgContext *ctx, const Probe *p, bool *helps)
{
	AgTruth truth = ag_fit_truth(fit, p->target, p->class_of, p->weight);
	double *weights, without, with, error, gain;
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) fit->n_models + 1, sizeof *weights, &weights));
	status = ag_ensemble_select(ctx, fit->metric, &truth, p->n, fit->n_models, p->of_model, STEPS,
								weights, &without);
	if (status == AG_OK)
		status = ag_ensemble_select(ctx, fit->metric, &truth, p->n, fit->n_models + 1, p->of_model,
									STEPS, weights, &with);
	ag_mem_free(ctx->mem, weights);
	AG_TRY(status);
	error = ag_metric_higher_is_better(fit->metric) ? 1.0 - without : without;
	gain = ag_metric_score(fit->metric, with) - ag_metric_score(fit->metric, without);
	*helps = isnan(gain) || (gain > 0.0 && gain >= LEAST_GAIN * fabs(error));
	return AG_OK;
}

AgStatus
ag_fit_probe(AgFit *fit, const AgContext *ctx, const AgTrained *trained, int n_folds, bool *helps)
{
	Probe p = {0};
	AgStatus status;

	AG_GO(probe_open(fit, ctx, n_folds, &p));
	probe_gather(fit, trained, n_folds, &p);
	AG_GO(probe_gain(fit, ctx, &p, helps));
done:
	probe_close(ctx, &p);
	return status;
}
