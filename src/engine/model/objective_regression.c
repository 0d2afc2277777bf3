/*
 * objective_regression.c - what can be minimised where the label is a number: squared, absolute and robust errors, quantiles, and
 * deviances of counts and amounts.
 *
 * Errors that grow linearly have no second derivative to step by: the hessian is the row's weight, and a leaf's value is then
 * taken anew, as the percentile of what its rows lack (Friedman 2001, "Greedy function approximation", section 4.3).
 */
#include "engine/model/objective.h"

#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/loss_maths.h"

/* ---- first scores ---- */

/*
 * The power of two above the largest distance of a label to the score, for gradients in units of the label.
 */
static void
set_unit(AgLoss *loss, double score)
{
	const AgTrainData *data = loss->data;
	double widest = 0.0;
	int exponent;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		double distance = fabs(data->target[data->train_rows[i]] * 0.5 - score * 0.5);

		if (distance > widest)
			widest = distance;
	}
	if (widest == 0.0)
		return;
	frexp(widest, &exponent);
	exponent += 1;
	if (exponent > 1022)
		exponent = 1022;
	if (exponent < -1021)
		exponent = -1021;
	loss->unit = ag_pow2i(exponent);
}

/* The weighted mean as a running one: no sum of labels that could overflow. */
static double
running_mean(const AgTrainData *data)
{
	double total = ag_total_weight(data), mean = 0.0, seen = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];
		double weight = total > 0.0 ? ag_row_weight(data, row) : 1.0;

		seen += weight;
		if (seen > 0.0)
			mean += (data->target[row] * 0.5 - mean * 0.5) * (weight / seen) * 2.0;
	}
	return mean;
}

double
ag_loss_error_weight(const AgLoss *loss, uint32_t row)
{
	double weight = ag_row_weight(loss->data, row);

	return loss->objective->is_relative ? ag_error_weight(weight, loss->data->target[row], 1)
										: weight;
}

double
ag_loss_level(const AgLoss *loss, int output)
{
	if (loss->data->n_quantiles > 0)
		return loss->data->quantiles[output];
	return loss->objective->has_level ? loss->params.alpha : 0.5;
}

double
ag_loss_largest_weight(const AgLoss *loss)
{
	const AgTrainData *data = loss->data;
	double largest = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		double weight = ag_loss_error_weight(loss, data->train_rows[i]);

		largest = weight > largest ? weight : largest;
	}
	return largest;
}

static void
squared_base(AgLoss *loss, double *base)
{
	base[0] = running_mean(loss->data);
	set_unit(loss, base[0]);
}

/* The percentiles of the labels, in loss->items; rows without any weight count alike. */
static void
percentile_base(AgLoss *loss, double *base)
{
	const AgTrainData *data = loss->data;
	double scale = ag_fixed_scale(ag_loss_largest_weight(loss), data->n_train);

	for (int k = 0; k < loss->n_outputs; k++)
	{
		for (int64_t i = 0; i < data->n_train; i++)
		{
			uint32_t row = data->train_rows[i];

			loss->items[i].value = data->target[row];
			loss->items[i].weight =
				scale > 0.0 ? (int64_t) (ag_loss_error_weight(loss, row) * scale) : 1;
		}
		base[k] = ag_percentile(loss->items, data->n_train, ag_loss_level(loss, k));
	}
}

static void
log_base(AgLoss *loss, double *base)
{
	double mean = running_mean(loss->data);

	base[0] = mean > 1e-15 ? ag_ln(mean) : ag_ln(1e-15);
}

/* ---- gradients ---- */

static void
put(const AgLoss *loss, uint32_t row, AgSlope slope)
{
	double weight = ag_row_weight(loss->data, row);

	loss->gradients[row] = (AgGradient){(float) (slope.g * weight), (float) (slope.h * weight)};
}

/* The score less the label, in units. */
static double
excess(const AgLoss *loss, uint32_t row, double per_unit)
{
	return loss->scores[row] * per_unit - loss->data->target[row] * per_unit;
}

static void
squared_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope(excess(loss, row, per_unit), 1.0));
	}
}

static void
pinball_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	const AgTrainData *data = loss->data;
	const double *scores = loss->scores + output * loss->n_rows;
	double level = ag_loss_level(loss, output);

	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = data->train_rows[i];

		put(loss, row, ag_slope_pinball(scores[row], data->target[row], level));
	}
}

static void
absolute_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	const AgTrainData *data = loss->data;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = data->train_rows[i];
		double score = loss->scores[row], target = data->target[row];
		double size = ag_loss_error_weight(loss, row);
		float g = (float) (score > target ? size : score < target ? -size : 0.0);

		loss->gradients[row] = (AgGradient){g, (float) ag_row_weight(data, row)};
	}
}

static void
huber_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, delta = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_huber(excess(loss, row, per_unit), delta));
	}
}

static void
fair_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, c = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_fair(excess(loss, row, per_unit), c));
	}
}

static void
pseudo_huber_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, delta = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_pseudo_huber(excess(loss, row, per_unit), delta));
	}
}

static void
poisson_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double ahead = ag_bounded_exp(loss->params.step);

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_poisson(loss->scores[row], loss->data->target[row], ahead));
	}
}

static void
gamma_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_gamma(loss->scores[row], loss->data->target[row]));
	}
}

static void
tweedie_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double power = loss->params.power;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];

		put(loss, row, ag_slope_tweedie(loss->scores[row], loss->data->target[row], power));
	}
}

static const AgObjective objectives[AG_LOSS_LAST] = {
	[AG_LOSS_SQUARED] = {.name = "squared error",
						 .on_device = AG_DEVICE_SQUARED,
						 .link = AG_LINK_IDENTITY,
						 .has_const_hessian = true,
						 .base = squared_base,
						 .gradients = squared_gradients},
	[AG_LOSS_ABSOLUTE] = {.name = "absolute error",
						  .on_device = AG_DEVICE_ABSOLUTE,
						  .link = AG_LINK_IDENTITY,
						  .has_const_hessian = true,
						  .renews_leaves = true,
						  .base = percentile_base,
						  .gradients = absolute_gradients},
	[AG_LOSS_PERCENTAGE] = {.name = "absolute percentage error",
							.on_device = AG_DEVICE_ABSOLUTE,
							.link = AG_LINK_IDENTITY,
							.has_const_hessian = true,
							.renews_leaves = true,
							.is_relative = true,
							.base = percentile_base,
							.gradients = absolute_gradients},
	[AG_LOSS_QUANTILE] = {.name = "pinball loss",
						  .on_device = AG_DEVICE_PINBALL,
						  .link = AG_LINK_IDENTITY,
						  .has_const_hessian = true,
						  .renews_leaves = true,
						  .has_level = true,
						  .base = percentile_base,
						  .gradients = pinball_gradients},
	[AG_LOSS_HUBER] = {.name = "Huber loss",
					   .on_device = AG_DEVICE_HUBER,
					   .link = AG_LINK_IDENTITY,
					   .has_const_hessian = true,
					   .base = squared_base,
					   .gradients = huber_gradients},
	[AG_LOSS_FAIR] = {.name = "fair loss",
					  .on_device = AG_DEVICE_FAIR,
					  .link = AG_LINK_IDENTITY,
					  .base = squared_base,
					  .gradients = fair_gradients},
	[AG_LOSS_PSEUDO_HUBER] = {.name = "pseudo-Huber loss",
							  .on_device = AG_DEVICE_PSEUDO_HUBER,
							  .link = AG_LINK_IDENTITY,
							  .base = squared_base,
							  .gradients = pseudo_huber_gradients},
	[AG_LOSS_POISSON] = {.name = "Poisson deviance",
						 .on_device = AG_DEVICE_POISSON,
						 .link = AG_LINK_EXP,
						 .domain = AG_LABELS_NOT_NEGATIVE,
						 .base = log_base,
						 .gradients = poisson_gradients},
	[AG_LOSS_GAMMA] = {.name = "gamma deviance",
					   .on_device = AG_DEVICE_GAMMA,
					   .link = AG_LINK_EXP,
					   .domain = AG_LABELS_POSITIVE,
					   .base = log_base,
					   .gradients = gamma_gradients},
	[AG_LOSS_TWEEDIE] = {.name = "Tweedie deviance",
						 .on_device = AG_DEVICE_TWEEDIE,
						 .link = AG_LINK_EXP,
						 .domain = AG_LABELS_NOT_NEGATIVE,
						 .base = log_base,
						 .gradients = tweedie_gradients},
};

/* A value a level, all from one booster whose trees are of a level each. */
static const AgObjective quantiles = {
	.name = "pinball loss",
	.on_device = AG_DEVICE_PINBALL,
	.link = AG_LINK_QUANTILES,
	.is_per_output = true,
	.has_const_hessian = true,
	.renews_leaves = true,
	.has_level = true,
	.base = percentile_base,
	.gradients = pinball_gradients,
};

AgLossKind
ag_loss_kind_for(AgMetric metric)
{
	switch (metric)
	{
		case AG_METRIC_MAE:
		case AG_METRIC_MEDAE:
			return AG_LOSS_ABSOLUTE;
		case AG_METRIC_MAPE:
		case AG_METRIC_SMAPE:
			return AG_LOSS_PERCENTAGE;
		default:
			return AG_LOSS_SQUARED;
	}
}

const AgObjective *
ag_number_objective(AgProblem problem, AgLossKind kind)
{
	if (problem == AG_PROBLEM_QUANTILE)
		return kind == AG_LOSS_AUTO || kind == AG_LOSS_QUANTILE ? &quantiles : NULL;
	if (kind <= AG_LOSS_AUTO || kind >= AG_LOSS_LAST || objectives[kind].base == NULL)
		return NULL;
	return &objectives[kind];
}

AgStatus
ag_loss_check_labels(const AgContext *ctx, const AgObjective *objective, const AgTrainData *data)
{
	const char *label = data->label_name != NULL ? data->label_name : "label";
	bool has_positive = false;

	if (objective->domain == AG_LABELS_ANY)
		return AG_OK;
	for (int64_t i = 0; i < data->n_train; i++)
	{
		double target = data->target[data->train_rows[i]];

		has_positive = has_positive || target > 0.0;
		if (target < 0.0 || (target == 0.0 && objective->domain == AG_LABELS_POSITIVE))
		{
			ag_error_set(ctx->error, AG_ERR_DATA,
						 "label column \"%s\" has %s values, which %s can't "
						 "be computed of",
						 label, target < 0.0 ? "negative" : "zero", objective->name);
			ag_error_hint(ctx->error, "Choose another objective.");
			return AG_ERR_DATA;
		}
		if (target > 1e30)
			return ag_error_set(
				ctx->error, AG_ERR_DATA,
				"label column \"%s\" has values beyond 1e30, which are too large for "
				"%s",
				label, objective->name);
	}
	if (!has_positive)
		return ag_error_set(
			ctx->error, AG_ERR_DATA,
			"label column \"%s\" has nothing but zeros, of which %s can't be computed", label,
			objective->name);
	return AG_OK;
}
