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

#define AG_LOG_MAX 69.0 /* e^69 is 1e30, which as a gradient fits a float */

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

/* How much a row's absolute error counts: its weight, and relative to its label where errors are percentages. */
double
ag_loss_error_weight(const AgLoss *loss, uint32_t row)
{
	double weight = ag_row_weight(loss->data, row), size;

	if (!loss->objective->is_relative)
		return weight;
	size = fabs(loss->data->target[row]);
	return size > 1.0 ? weight / size : weight;
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
put(const AgLoss *loss, uint32_t row, double g, double h)
{
	double weight = ag_row_weight(loss->data, row);

	loss->gradients[row] = (AgGradient){(float) (g * weight), (float) (h * weight)};
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

		put(loss, row, excess(loss, row, per_unit), 1.0);
	}
}

/* Koenker and Bassett 1978; the middle level is the absolute error, halved. */
static void
pinball_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	const AgTrainData *data = loss->data;
	const double *scores = loss->scores + output * loss->n_rows;
	double level = ag_loss_level(loss, output);

	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = data->train_rows[i];
		double target = data->target[row];

		put(loss, row,
			scores[row] > target   ? 1.0 - level
			: scores[row] < target ? -level
								   : 0.0,
			1.0);
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

/* Huber 1964: squared within delta, linear beyond. */
static void
huber_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, delta = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double x = excess(loss, row, per_unit);

		put(loss, row, x > delta ? delta : x < -delta ? -delta : x, 1.0);
	}
}

/* c^2 (|x| / c - ln(1 + |x| / c)) */
static void
fair_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, c = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double x = excess(loss, row, per_unit), share = c / (fabs(x) + c);

		put(loss, row, x * share, share * share);
	}
}

/* delta^2 (sqrt(1 + (x / delta)^2) - 1) */
static void
pseudo_huber_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double per_unit = 1.0 / loss->unit, delta = loss->params.delta * per_unit;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double x = excess(loss, row, per_unit), z = x / delta, root = sqrt(1.0 + z * z);

		put(loss, row, x / root, 1.0 / (root * (1.0 + z * z)));
	}
}

static double
bounded_exp(double x)
{
	return ag_exp(x > AG_LOG_MAX ? AG_LOG_MAX : x < -AG_LOG_MAX ? -AG_LOG_MAX : x);
}

/* e^f - y f; the hessian is taken at a larger score, so that steps can't run away. */
static void
poisson_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double ahead = bounded_exp(loss->params.step);

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double mean = bounded_exp(loss->scores[row]);

		put(loss, row, mean - loss->data->target[row], mean * ahead);
	}
}

/* y e^-f + f */
static void
gamma_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double ratio = loss->data->target[row] * bounded_exp(-loss->scores[row]);

		ratio = ratio < 1e30 ? ratio : 1e30;
		put(loss, row, 1.0 - ratio, ratio);
	}
}

/* -y e^((1 - p) f) / (1 - p) + e^((2 - p) f) / (2 - p), with 1 <= p < 2 (Jorgensen 1987, "Exponential dispersion models"). */
static void
tweedie_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	double power = loss->params.power;

	(void) output;
	for (int64_t i = begin; i < end; i++)
	{
		uint32_t row = loss->data->train_rows[i];
		double score = loss->scores[row];
		double a = loss->data->target[row] * bounded_exp((1.0 - power) * score);
		double b = bounded_exp((2.0 - power) * score);

		a = a < 1e30 ? a : 1e30;
		put(loss, row, b - a, (power - 1.0) * a + (2.0 - power) * b);
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
						  .link = AG_LINK_IDENTITY,
						  .has_const_hessian = true,
						  .renews_leaves = true,
						  .base = percentile_base,
						  .gradients = absolute_gradients},
	[AG_LOSS_PERCENTAGE] = {.name = "absolute percentage error",
							.link = AG_LINK_IDENTITY,
							.has_const_hessian = true,
							.renews_leaves = true,
							.is_relative = true,
							.base = percentile_base,
							.gradients = absolute_gradients},
	[AG_LOSS_QUANTILE] = {.name = "pinball loss",
						  .link = AG_LINK_IDENTITY,
						  .has_const_hessian = true,
						  .renews_leaves = true,
						  .has_level = true,
						  .base = percentile_base,
						  .gradients = pinball_gradients},
	[AG_LOSS_HUBER] = {.name = "Huber loss",
					   .link = AG_LINK_IDENTITY,
					   .has_const_hessian = true,
					   .base = squared_base,
					   .gradients = huber_gradients},
	[AG_LOSS_FAIR] = {.name = "fair loss",
					  .link = AG_LINK_IDENTITY,
					  .base = squared_base,
					  .gradients = fair_gradients},
	[AG_LOSS_PSEUDO_HUBER] = {.name = "pseudo-Huber loss",
							  .link = AG_LINK_IDENTITY,
							  .base = squared_base,
							  .gradients = pseudo_huber_gradients},
	[AG_LOSS_POISSON] = {.name = "Poisson deviance",
						 .link = AG_LINK_EXP,
						 .domain = AG_LABELS_NOT_NEGATIVE,
						 .base = log_base,
						 .gradients = poisson_gradients},
	[AG_LOSS_GAMMA] = {.name = "gamma deviance",
					   .link = AG_LINK_EXP,
					   .domain = AG_LABELS_POSITIVE,
					   .base = log_base,
					   .gradients = gamma_gradients},
	[AG_LOSS_TWEEDIE] = {.name = "Tweedie deviance",
						 .link = AG_LINK_EXP,
						 .domain = AG_LABELS_NOT_NEGATIVE,
						 .base = log_base,
						 .gradients = tweedie_gradients},
};

/* A value a level, all from one booster whose trees are of a level each. */
static const AgObjective quantiles = {
	.name = "pinball loss",
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
