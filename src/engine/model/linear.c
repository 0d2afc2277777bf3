/*
 * linear.c - the LR family at prediction: its parameters, its image, its scores.
 */
#include "engine/model/linear.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/ascending.h"

#define TAG_HEAD 1u
#define TAG_INTERCEPTS 2u
#define TAG_COEFFICIENTS 3u

/* Scores may not pass this in any row; softmax subtracts two of them. */
#define MAX_SCORE 1e300

#define OFFSET(field) offsetof(AgLinearParams, field)

const AgParamSpec ag_linear_specs[] = {
	{"C", NULL, AG_PARAM_REAL, 1e-10, 1e10, 1.0, NULL,
	 "inverse strength of the penalty on coefficients", OFFSET(C)},
	{"penalty", NULL, AG_PARAM_CHOICE, 0, 2, AG_PENALTY_L2, "L2 L1 elasticnet",
	 "L2: squares of the coefficients, L1: absolute values, elasticnet: both", OFFSET(penalty)},
	{"l1_ratio", NULL, AG_PARAM_REAL, 0.0, 1.0, 0.5, NULL,
	 "share of the absolute values, for penalty elasticnet", OFFSET(l1_ratio)},
	{"max_iter", NULL, AG_PARAM_INT, 1, 1e9, 10000, NULL, "most iterations of the solver",
	 OFFSET(max_iter)},
	{"tol", NULL, AG_PARAM_REAL, 1e-12, 1.0, 1e-4, NULL,
	 "gradient of the mean loss at which the solver has converged", OFFSET(tol)},
	{"proc.skew_threshold", NULL, AG_PARAM_REAL, 0.0, INFINITY, 0.99, NULL,
	 "skewness above which a numeric column is mapped to a normal distribution",
	 OFFSET(dense.skew_threshold)},
	{"proc.impute_strategy", NULL, AG_PARAM_CHOICE, 0, 1, AG_DENSE_MEDIAN, "median mean",
	 "what a missing number counts as", OFFSET(dense.impute)},
	{"proc.min_level_count", NULL, AG_PARAM_INT, 1, 1e9, 1, NULL,
	 "training rows that a category needs for a column of its own", OFFSET(dense.min_level_count)},
	{"proc.max_category_levels", NULL, AG_PARAM_INT, 1, 1e6, 10000, NULL,
	 "most columns of one categorical feature; other categories share one",
	 OFFSET(dense.max_levels)},
};
const int ag_linear_n_specs = sizeof ag_linear_specs / sizeof ag_linear_specs[0];

/* The first fields of AgLinear are the image's head. */
#define HEAD_BYTES offsetof(AgLinear, intercepts)

_Static_assert(HEAD_BYTES == 32, "part of the format");

void
ag_linear_free(AgLinear *linear)
{
	AgArena arena;

	if (linear == NULL)
		return;
	ag_dense_free(linear->own_dense);
	arena = linear->arena; /* the struct goes with it */
	ag_arena_free(&arena);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

/* No sum of a row's terms may overflow: numbers are bounded, and of a slot's columns one counts at most. */
static AgStatus
check(const AgContext *ctx, const AgLinear *linear)
{
	bool outputs_fit = linear->link == AG_LINK_SOFTMAX     ? linear->n_outputs >= 2
					   : linear->link == AG_LINK_QUANTILES ? linear->n_outputs >= 1
														   : linear->n_outputs == 1;

	if ((linear->link != AG_LINK_IDENTITY && linear->link != AG_LINK_SIGMOID &&
		 linear->link != AG_LINK_SOFTMAX && linear->link != AG_LINK_QUANTILES) ||
		!outputs_fit || linear->zero != 0)
		return corrupt(ctx, "its link function and its outputs don't fit");
	if (!isfinite(linear->centre) || !isfinite(linear->spread))
		return corrupt(ctx, "its target's scale is no number");
	for (uint32_t k = 0; k < linear->n_outputs; k++)
	{
		double greatest = fabs(linear->intercepts[k]);

		for (uint32_t j = 0; j < linear->n_terms; j++)
			greatest += (double) AG_DENSE_BOUND *
						fabs(linear->coefficients[(size_t) j * linear->n_outputs + k]);
		if (!(greatest < MAX_SCORE))
			return corrupt(ctx, "its scores can grow beyond all bounds");
	}
	return AG_OK;
}

AgStatus
ag_linear_write(const AgContext *ctx, const AgLinear *linear, AgWriter *writer)
{
	AgImageWriter image;

	ag_image_begin(&image, writer, AG_IMAGE_LINEAR);
	ag_image_section(&image, TAG_HEAD, HEAD_BYTES, linear, 1);
	ag_image_section(&image, TAG_INTERCEPTS, sizeof(double), linear->intercepts, linear->n_outputs);
	ag_image_section(&image, TAG_COEFFICIENTS, sizeof(double), linear->coefficients,
					 (uint64_t) linear->n_terms * linear->n_outputs);
	ag_dense_write(linear->dense, &image);
	return ag_image_end(ctx, &image);
}

static AgStatus
find_arrays(const AgContext *ctx, const AgImage *image, AgLinear *linear)
{
	const void *items;
	uint64_t n;

	AG_TRY(ag_image_find(ctx, image, TAG_HEAD, HEAD_BYTES, &items, &n));
	if (n != 1)
		return corrupt(ctx, "it has no head, or several");
	memcpy(linear, items, HEAD_BYTES);
	AG_TRY(ag_image_find(ctx, image, TAG_INTERCEPTS, sizeof(double), &items, &n));
	linear->intercepts = items;
	if (n != linear->n_outputs)
		return corrupt(ctx, "its count of intercepts is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_COEFFICIENTS, sizeof(double), &items, &n));
	linear->coefficients = items;
	if (n != (uint64_t) linear->n_terms * linear->n_outputs)
		return corrupt(ctx, "its count of coefficients is wrong");
	AG_TRY(ag_dense_read(ctx, image, &linear->own_dense));
	linear->dense = linear->own_dense;
	if ((uint64_t) linear->dense->n_numbers + linear->dense->n_columns != linear->n_terms)
		return corrupt(ctx, "its coefficients and its columns differ in number");
	return ctx->trusts_images ? AG_OK : check(ctx, linear);
}

AgStatus
ag_linear_read(const AgContext *ctx, const void *image_bytes, size_t size, AgLinear **linear)
{
	AgImage image;
	AgArena arena;
	AgLinear *made;
	AgStatus status;

	*linear = NULL;
	AG_TRY(ag_image_open(ctx, image_bytes, size, AG_IMAGE_LINEAR, &image));
	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, sizeof *made, ctx->error);
	}
	made->arena = arena;
	status = find_arrays(ctx, &image, made);
	if (status != AG_OK)
		ag_linear_free(made);
	else
		*linear = made;
	return status;
}

uint32_t
ag_linear_n_out(const AgLinear *linear)
{
	return linear->link == AG_LINK_SIGMOID ? 2 : linear->n_outputs;
}

/* Adds one feature's terms to the scores; features are added in their order, whichever way a row comes. */
static void
add_terms(const AgLinear *linear, const AgDenseFeature *feature, float number, uint32_t column,
		  double *scores)
{
	size_t n = linear->n_outputs;

	if (feature->number != AG_DENSE_NONE)
	{
		const double *b = linear->coefficients + feature->number * n;

		for (size_t k = 0; k < n; k++)
			scores[k] += b[k] * (double) number;
	}
	if (feature->slot != AG_DENSE_NONE && column < linear->dense->n_columns)
	{
		const double *b = linear->coefficients + (linear->dense->n_numbers + (size_t) column) * n;

		for (size_t k = 0; k < n; k++)
			scores[k] += b[k];
	}
}

/* Scores to outputs, in place; a sigmoid's only score is out[0]. */
static void
apply_link(const AgLinear *linear, double *out)
{
	double greatest = out[0], sum = 0.0;

	if (linear->link == AG_LINK_IDENTITY || linear->link == AG_LINK_QUANTILES)
	{
		for (uint32_t k = 0; k < linear->n_outputs; k++)
			out[k] = fmin(fmax(linear->centre + linear->spread * out[k], -DBL_MAX), DBL_MAX);
		ag_ascending(out, (int) linear->n_outputs, out);
		return;
	}
	if (linear->link == AG_LINK_SIGMOID)
	{
		out[1] = ag_sigmoid(out[0]);
		out[0] = 1.0 - out[1];
		return;
	}
	for (uint32_t k = 1; k < linear->n_outputs; k++)
		greatest = out[k] > greatest ? out[k] : greatest;
	for (uint32_t k = 0; k < linear->n_outputs; k++)
	{
		out[k] = ag_exp(out[k] - greatest);
		sum += out[k];
	}
	for (uint32_t k = 0; k < linear->n_outputs; k++)
		out[k] /= sum;
}

void
ag_linear_run(const AgLinear *linear, const double *features, double *out)
{
	const AgDense *dense = linear->dense;

	memcpy(out, linear->intercepts, linear->n_outputs * sizeof *out);
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];
		float number = 0.0f;
		uint32_t column = dense->n_columns;

		if (feature->number != AG_DENSE_NONE)
			number = ag_dense_number(dense, feature, features[f]);
		if (feature->slot != AG_DENSE_NONE)
			column = ag_dense_column(dense, feature, features[f]);
		add_terms(linear, feature, number, column, out);
	}
	apply_link(linear, out);
}

double
ag_linear_term(const AgLinear *linear, uint32_t f, double x)
{
	const AgDense *dense = linear->dense;
	const AgDenseFeature *feature = &dense->features[f];
	float number = 0.0f;
	uint32_t column = dense->n_columns;
	double score = 0.0;

	if (feature->number != AG_DENSE_NONE)
		number = ag_dense_number(dense, feature, x);
	if (feature->slot != AG_DENSE_NONE)
		column = ag_dense_column(dense, feature, x);
	add_terms(linear, feature, number, column, &score);
	return linear->spread * score;
}

void
ag_linear_run_encoded(const AgLinear *linear, const float *numbers, const uint32_t *slots,
					  double *out)
{
	const AgDense *dense = linear->dense;

	memcpy(out, linear->intercepts, linear->n_outputs * sizeof *out);
	for (uint32_t f = 0; f < dense->n_features; f++)
	{
		const AgDenseFeature *feature = &dense->features[f];
		float number = feature->number != AG_DENSE_NONE ? numbers[feature->number] : 0.0f;
		uint32_t column = feature->slot != AG_DENSE_NONE ? slots[feature->slot] : dense->n_columns;

		add_terms(linear, feature, number, column, out);
	}
	apply_link(linear, out);
}
