/*
 * fit_order.c - in which order the configurations are fitted, and what a short time limit makes of a set of our own.
 *
 * Where there is less than AG_FIT_SHORT_SECONDS: a linear model first, where it takes next to no time, so that something can predict
 * early; of bags nets together at most a quarter of the time while others wait, for each of them is as many trainings as there are folds
 * (the others go before them, and what these leave is the nets'; on a holdout the set's order was measured with nets where they stand);
 * no KNN. Models that somebody named are fitted as named.
 */
#include <math.h>
#include <string.h>

#include "engine/search/fit_state.h"

#define NET_SHARE 0.25       /* of a level's time */
#define LEAST_NET_SHARE 0.02 /* less isn't worth beginning the first with */
#define LEAST_OF_NET 0.5     /* nor less than so much of what one has taken */
#define QUICK_CELLS                                                                                \
	3000000.0 /* of rows, features and outputs, that a linear model sees through at once */
/* Of more rows nets learn from a sample where time is short: many rounds over some rows before few over all. */
#define SAMPLE_ABOVE 100000
#define SAMPLE_ROWS 50000

bool
ag_fit_is_short(const AgFit *fit)
{
	return fit->options->models_from_set && fit->options->replay == NULL &&
		   fit->promised_seconds < AG_FIT_SHORT_SECONDS;
}

const AgModelConfig *
ag_fit_config(const AgFit *fit, int at)
{
	return &fit->options->models[fit->order != NULL ? fit->order[at] : at];
}

static bool
is_net(const AgModelConfig *config)
{
	return config->family->id == AG_FAMILY_NN_TORCH || config->family->id == AG_FAMILY_FASTAI ||
		   config->family->id == AG_FAMILY_REALMLP || config->family->id == AG_FAMILY_TABM;
}

static bool
fits_problem(const AgFit *fit, const AgModelConfig *config)
{
	return config->problems == 0 || (config->problems >> fit->label->problem & 1) != 0;
}

/* Neighbours tell little that trees don't, and take long where rows are many: others come first. */
static bool
is_spared(const AgFit *fit, const AgModelConfig *config)
{
	return config->family->id == AG_FAMILY_KNN && !config->is_named && ag_fit_is_short(fit);
}

static bool
has_others(const AgFit *fit)
{
	for (int m = 0; m < fit->options->n_models; m++)
		if (fits_problem(fit, &fit->options->models[m]) &&
			!is_spared(fit, &fit->options->models[m]))
			return true;
	return false;
}

/* AG_OK: it is on the first level. *why, or NULL: what keeps it from there. */
static AgStatus
obstacle(const AgFit *fit, const AgModelConfig *config, const char **why)
{
	*why = NULL;
	if (!fits_problem(fit, config))
	{
		*why = "its \"problem_types\" are others";
		return AG_ERR_OPTION;
	}
	if (is_spared(fit, config) && has_others(fit))
	{
		*why = "time is short for it";
		return AG_ERR_TIME;
	}
	return AG_OK;
}

bool
ag_fit_is_left_out(const AgFit *fit, const AgModelConfig *config)
{
	const char *why;

	return obstacle(fit, config, &why) != AG_OK;
}

AgStatus
ag_fit_tell_left_out(AgFit *fit)
{
	int n = 0;

	for (int m = 0; m < fit->options->n_models && fit->options->replay == NULL; m++)
	{
		const AgModelConfig *config = &fit->options->models[m];
		const char *why;
		AgStatus status = obstacle(fit, config, &why);
		AgFitModel model;

		if (status == AG_OK)
			continue;
		n++;
		if (fit->is_trial)
			continue;
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%s is left out: %s", config->name, why);
		ag_fit_model_begin(fit, config, &model);
		ag_fit_failure_add(fit, &model, status, why);
	}
	if (n < fit->options->n_models || n == 0)
		return AG_OK;
	return ag_error_set(fit->ctx.error, AG_ERR_OPTION,
						"the options leave no model to fit for a %s problem",
						ag_problem_name(fit->label->problem));
}

int64_t
ag_fit_sample_rows(const AgFit *fit, const AgModelConfig *config)
{
	return fit->options->models_from_set && is_net(config) && fit->n_rows > SAMPLE_ABOVE &&
				   fit->promised_seconds < AG_FIT_LONG_SECONDS
			   ? SAMPLE_ROWS
			   : 0;
}

/* --- order */

static void
move(int *order, int from, int to)
{
	int m = order[from];

	memmove(order + to + 1, order + to, (size_t) (from - to) * sizeof *order);
	order[to] = m;
}

/* The place of a configuration's model in the plan that is repeated; past its end where it has none. */
static int
place_of(AgFit *fit, const AgModelConfig *config)
{
	const AgReplay *replay = fit->options->replay;
	AgFitModel model;
	int i = 0;

	ag_fit_model_begin(fit, config, &model);
	while (i < replay->n_models && strcmp(replay->models[i].name, model.name) != 0)
		i++;
	return i;
}

/* Sums of predictions and ties between models go by it: the same order gives the same bits. */
static void
order_repeat(AgFit *fit)
{
	const AgModelConfig *models = fit->options->models;

	for (int i = 1; i < fit->options->n_models; i++)
		for (int k = i; k > 0 && place_of(fit, &models[fit->order[k]]) <
									 place_of(fit, &models[fit->order[k - 1]]);
			 k--)
			move(fit->order, k, k - 1);
}

static void
linear_first(AgFit *fit)
{
	double cells = (double) fit->n_rows * fit->pipeline->n_features * ag_fit_width(fit);

	for (int i = 1; i < fit->options->n_models && cells <= QUICK_CELLS; i++)
		if (ag_fit_config(fit, i)->family->id == AG_FAMILY_LR)
		{
			move(fit->order, i, 0);
			return;
		}
}

AgStatus
ag_fit_order_begin(AgFit *fit)
{
	int n = fit->options->n_models;

	if (fit->order == NULL)
		fit->order = ag_arena_alloc(&fit->arena, (size_t) n, sizeof *fit->order);
	if (fit->order == NULL)
		return ag_mem_error(fit->ctx.mem, (size_t) n * sizeof *fit->order, fit->ctx.error);
	for (int i = 0; i < n; i++)
		fit->order[i] = i;
	fit->level_began_ns = ag_clock_ns();
	fit->net_seconds = 0.0;
	fit->n_nets = 0;
	if (fit->options->replay != NULL)
		order_repeat(fit);
	else if (fit->level == 1 && ag_fit_is_short(fit) && !fit->options->search.is_asked)
		linear_first(fit);
	return AG_OK;
}

/* --- nets */

void
ag_fit_order_took(AgFit *fit, const AgModelConfig *config, double seconds)
{
	if (!is_net(config))
		return;
	fit->net_seconds += seconds;
	fit->n_nets++;
}

/* The first behind that place that is no net; -1: there is none. */
static int
next_other(AgFit *fit, int at)
{
	for (int i = at + 1; i < fit->options->n_models; i++)
		if (!is_net(ag_fit_config(fit, i)) && ag_fit_is_for_level(fit, ag_fit_config(fit, i)))
			return i;
	return -1;
}

/* Seconds that are left of the nets' part. */
static double
nets_left(const AgFit *fit)
{
	double whole = (double) (fit->ctx.deadline_ns - fit->level_began_ns) * 1e-9;

	return NET_SHARE * whole - fit->net_seconds;
}

double
ag_fit_net_seconds(AgFit *fit, int at)
{
	if (!ag_fit_is_short(fit) || fit->validation.n_folds == 0 || fit->options->search.is_asked ||
		!is_net(ag_fit_config(fit, at)) || next_other(fit, at) < 0)
		return (double) INFINITY;
	return nets_left(fit);
}

void
ag_fit_order_next(AgFit *fit, int at)
{
	double whole = (double) (fit->ctx.deadline_ns - fit->level_began_ns) * 1e-9;
	double least =
		fit->n_nets > 0 ? LEAST_OF_NET * fit->net_seconds / fit->n_nets : LEAST_NET_SHARE * whole;

	if (fit->order == NULL || ag_fit_net_seconds(fit, at) >= fmax(least, 0.0))
		return;
	move(fit->order, next_other(fit, at), at);
}
