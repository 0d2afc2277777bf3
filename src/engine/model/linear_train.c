/*
 * linear_train.c - training of the LR family: from rows and parameters to a model and its predictions.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"
#include "engine/model/again.h"
#include "engine/model/lbfgs.h"
#include "engine/model/linear_private.h"

#define PREDICT_ROWS 64
/* A squared loss is quadratic: it is cheap to come closer, and scikit-learn's is exact. */
#define FIRST_BEND 0.05 /* of the target's spread */
#define LEAST_BEND 1e-6
#define BEND_OF_LOSS 0.1 /* of the mean loss of a level */
#define MOST_PASSES 6
/* Of what cuts.h tells. */
#define BY_PRODUCTS 1
#define BY_ROWS 2
#define SQUARED_TOLERANCE 1e-2

typedef struct Training
{
	const AgContext *ctx;
	const AgDense *dense;
	const AgDenseMatrix *matrix;
	const AgTrainData *data;
	const AgLinearParams *params;
	AgLinearProblem problem;
	double *class_weight; /* [n_classes] sums of the weights */
	int32_t *place_of;    /* [n_classes] among the classes that have rows; -1: none has */
	uint32_t n_present;
	double centre, spread; /* of the target */
	double *x, *diagonal, *l1;
} Training;

/* Weights to a mean of 1. They may be of any size, so they are first divided by the greatest. */
static AgStatus
take_weights(Training *t)
{
	const AgTrainData *data = t->data;
	double greatest = 0.0, total = 0.0;

	if (data->weight == NULL)
		return AG_OK;
	AG_TRY(ag_get(t->ctx, (size_t) data->n_train, sizeof(double), &t->problem.weight));
	for (int64_t i = 0; i < data->n_train; i++)
		greatest = fmax(greatest, data->weight[data->train_rows[i]]);
	if (!(greatest > 0.0))
		return ag_error_set(t->ctx->error, AG_ERR_DATA, "all training rows have a weight of 0");
	for (int64_t i = 0; i < data->n_train; i++)
	{
		t->problem.weight[i] = fmax(data->weight[data->train_rows[i]] / greatest, 0.0);
		total += t->problem.weight[i];
	}
	total /= (double) data->n_train;
	for (int64_t i = 0; i < data->n_train; i++)
		t->problem.weight[i] /= total;
	return AG_OK;
}

static double
weight_of(const Training *t, int64_t i)
{
	return t->problem.weight != NULL ? t->problem.weight[i] : 1.0;
}

/* The target to mean 0 and spread 1, by way of a power of two that keeps squares from overflowing. */
static AgStatus
take_target(Training *t)
{
	const AgTrainData *data = t->data;
	int64_t n = data->n_train;
	double greatest = 0.0, unit, mean = 0.0, square = 0.0, *target;
	int e = 0;

	AG_TRY(ag_get(t->ctx, (size_t) n, sizeof(double), &target));
	t->problem.target = target;
	for (int64_t i = 0; i < n; i++)
		greatest = fmax(greatest, fabs(data->target[data->train_rows[i]]));
	if (greatest > 0.0)
		(void) frexp(greatest, &e);
	e = e < -1000 ? -1000 : e > 1022 ? 1022 : e;
	unit = ag_pow2i(-e);
	for (int64_t i = 0; i < n; i++)
	{
		target[i] = data->target[data->train_rows[i]] * unit;
		mean += weight_of(t, i) * target[i];
	}
	mean /= (double) n;
	for (int64_t i = 0; i < n; i++)
	{
		target[i] -= mean;
		square += weight_of(t, i) * target[i] * target[i];
	}
	square = sqrt(square / (double) n);
	t->centre = mean / unit;
	t->spread = square / unit;
	for (int64_t i = 0; i < n; i++)
		target[i] = square > 0.0 ? target[i] / square : 0.0;
	return AG_OK;
}

/* Classes with rows get places 0, 1, ... */
static AgStatus
take_classes(Training *t)
{
	const AgTrainData *data = t->data;
	int64_t n = data->n_train;

	AG_TRY(ag_get(t->ctx, (size_t) n, sizeof(int32_t), &t->problem.class_of));
	AG_TRY(ag_get_zeroed(t->ctx, (size_t) data->n_classes, sizeof(double), &t->class_weight));
	AG_TRY(ag_get(t->ctx, (size_t) data->n_classes, sizeof(int32_t), &t->place_of));
	for (int64_t i = 0; i < n; i++)
		t->class_weight[data->class_of[data->train_rows[i]]] += weight_of(t, i);
	for (int k = 0; k < data->n_classes; k++)
		t->place_of[k] = t->class_weight[k] > 0.0 ? (int32_t) t->n_present++ : -1;
	for (int64_t i = 0; i < n; i++)
	{
		int32_t place = t->place_of[data->class_of[data->train_rows[i]]];

		t->problem.class_of[i] = place < 0 ? 0 : place; /* such a row weighs nothing */
	}
	return AG_OK;
}

static AgStatus
set_up(Training *t)
{
	const AgTrainData *data = t->data;
	AgLinearProblem *problem = &t->problem;
	bool binary = data->n_classes == 2;
	double n = (double) data->n_train, share;

	if (data->n_train < 1)
		return ag_error_set(t->ctx->error, AG_ERR_DATA, "there are no training rows");
	problem->ops = ag_vector_ops();
	problem->matrix = t->matrix;
	problem->rows = data->train_rows;
	problem->n_rows = data->n_train;
	problem->n_numbers = t->dense->n_numbers;
	problem->n_columns = t->dense->n_columns;
	AG_TRY(take_weights(t));
	if (ag_problem_has_classes(data->problem))
		AG_TRY(take_classes(t));
	else
		AG_TRY(take_target(t));
	problem->link = data->problem == AG_PROBLEM_REGRESSION ? AG_LINK_IDENTITY
					: data->problem == AG_PROBLEM_QUANTILE ? AG_LINK_QUANTILES
					: binary                               ? AG_LINK_SIGMOID
														   : AG_LINK_SOFTMAX;
	problem->quantiles = data->quantiles;
	problem->n_outputs = problem->link == AG_LINK_SOFTMAX     ? t->n_present
						 : problem->link == AG_LINK_QUANTILES ? (uint32_t) data->n_quantiles
															  : 1;
	problem->n_padded =
		ag_linear_is_wide(problem) ? (problem->n_outputs + 7) / 8 * 8 : problem->n_outputs;
	share = t->params->penalty == AG_PENALTY_L1            ? 1.0
			: t->params->penalty == AG_PENALTY_ELASTIC_NET ? t->params->l1_ratio
														   : 0.0;
	problem->l2 = (1.0 - share) / (t->params->C * n);
	problem->l1 = share / (t->params->C * n);
	return AG_OK;
}

/* Intercepts that give each class its share (a class of no rows: half a row), beside coefficients of 0. */
static double
prior_of(const Training *t, int k)
{
	double w = t->class_weight[k];

	return ag_ln((w > 0.0 ? w : 0.5) / (double) t->data->n_train);
}

/* The normal distribution's quantile, roughly (logistic): the target has mean 0 and spread 1. */
static double
first_quantile(const Training *t, uint32_t k)
{
	double level = t->problem.quantiles[k];

	return 0.55 * ag_ln(level / (1.0 - level));
}

/*
 * Where the solver begins, and how it is scaled. The curvature there is moment times h (numbers have a spread of 1), but a rare
 * class's is soon another, and its inverse would send the first steps too far: the square root, half way to no scaling
 * at all, took the fewest iterations on the development tables.
 */
static AgStatus
begin(Training *t)
{
	AgLinearProblem *problem = &t->problem;
	size_t stride = t->matrix->stride, n_terms = stride + problem->n_columns + 2;
	uint32_t padded = problem->n_padded;
	double *moment, n = (double) problem->n_rows;

	AG_TRY(ag_get_zeroed(t->ctx, problem->n_values, sizeof(double), &t->x));
	AG_TRY(ag_get(t->ctx, problem->n_values, sizeof(double), &t->diagonal));
	if (problem->l1 > 0.0)
		AG_TRY(ag_get_zeroed(t->ctx, problem->n_values, sizeof(double), &t->l1));
	AG_TRY(ag_get_zeroed(t->ctx, n_terms, sizeof(double), &moment));
	for (size_t j = 0; j < stride; j++)
		moment[j] = 1.0;
	/* a cancelled sum is noticed by the first pass over the rows */
	for (int64_t i = 0;
		 i < problem->n_rows && !(i % AG_LINEAR_LOOK_ROWS == 0 && ag_cancelled(t->ctx)); i++)
		for (uint32_t s = 0; s < t->matrix->n_slots; s++)
			moment[stride + t->matrix->slots[(size_t) problem->rows[i] * t->matrix->n_slots + s]] +=
				weight_of(t, i) / n;
	moment[n_terms - 1] = 1.0;
	for (uint32_t k = 0; k < padded; k++)
	{
		double h = 1.0, q = 0.5;

		for (int c = 0; c < t->data->n_classes; c++)
			if (t->place_of[c] == (problem->link == AG_LINK_SIGMOID ? 1 : (int32_t) k))
			{
				q = t->class_weight[c] / n;
				t->x[ag_linear_intercept_at(problem) + k] = prior_of(t, c);
				if (problem->link == AG_LINK_SIGMOID)
					t->x[ag_linear_intercept_at(problem)] -= prior_of(t, 1 - c);
			}
		if (t->data->n_classes > 0)
			h = fmax(q * (1.0 - q), 1e-6);
		if (problem->link == AG_LINK_QUANTILES && k < problem->n_outputs)
			t->x[ag_linear_intercept_at(problem) + k] = first_quantile(t, k);
		for (size_t j = 0; j < n_terms; j++)
		{
			t->diagonal[j * padded + k] = sqrt(fmax(moment[j], 1e-9) * h) + problem->l2;
			if (t->l1 != NULL && j < n_terms - 2 && k < problem->n_outputs)
				t->l1[j * padded + k] = problem->l1;
		}
	}
	ag_mem_free(t->ctx->mem, moment);
	return AG_OK;
}

/* The value at x, for reports; NaN when there is no time left for it. Overwrites the diagonal, which has served. */
static AgStatus
find_objective(Training *t, double *value)
{
	AgStatus status = ag_linear_sum(&t->problem, t->x, value, t->diagonal);

	if (status != AG_OK)
		*value = NAN;
	for (size_t i = 0; i < ag_linear_intercept_at(&t->problem); i++)
		*value += t->problem.l1 * fabs(t->x[i]);
	return status;
}

/* Which way, and how far: as the time allows, or as it did when the training was first run. True: not one step. */
static bool
plan_take(const Training *t, AgMinimum *minimum, bool *by_products, AgLinearResult *result)
{
	const AgCuts *cuts = t->data->cuts;

	if (cuts == NULL || cuts->n != 2)
	{
		*by_products = ag_linear_gram_fits(&t->problem);
		if (t->ctx->deadline_ns != INT64_MAX)
			ag_cuts_add(&result->cuts, *by_products ? BY_PRODUCTS : BY_ROWS, -1);
		return false;
	}
	*by_products = cuts->values[0] == BY_PRODUCTS;
	result->cuts = *cuts;
	if (cuts->values[1] >= 0 && cuts->values[1] < minimum->max_iter)
		minimum->max_iter = (int) cuts->values[1];
	return minimum->max_iter == 0;
}

/*
 * Quantiles: the parabola near the target must be narrow beside the errors, which aren't known before; so it is made narrower until
 * it is, each time from where the last one ended.
 */
static AgStatus
minimise(Training *t, AgLinearResult *result)
{
	AgLinearProblem *problem = &t->problem;
	AgMinimum minimum = {.n = problem->n_values,
						 .x = t->x,
						 .objective = ag_linear_sum,
						 .arg = problem,
						 .diagonal = t->diagonal,
						 .l1 = t->l1,
						 .max_iter = t->params->max_iter,
						 .tolerance = t->params->tol};
	bool by_products;
	int most_iter;

	if (problem->link == AG_LINK_IDENTITY)
		minimum.tolerance *= SQUARED_TOLERANCE;
	if (plan_take(t, &minimum, &by_products, result))
		return AG_OK; /* there was no time for one iteration */
	most_iter = minimum.max_iter;
	if (by_products)
	{
		AgStatus status =
			ag_linear_gram_solve(problem, minimum.max_iter, minimum.tolerance, t->x,
								 &result->n_iter, &result->converged, &result->stopped_by_time);

		if (status == AG_ERR_TIME)
			result->stopped_by_time = true;
		else if (status == AG_OK)
			status = find_objective(t, &result->objective);
		return status == AG_ERR_TIME ? AG_OK : status;
	}
	for (int pass = 0; pass < MOST_PASSES; pass++)
	{
		double bend = BEND_OF_LOSS * minimum.value / problem->n_outputs;

		if (pass > 0 && (!minimum.converged || !(bend < 0.5 * problem->bend)))
			break;
		problem->bend = pass == 0 ? FIRST_BEND : fmax(bend, LEAST_BEND);
		minimum.max_iter = most_iter - result->n_iter;
		if (minimum.max_iter < 1)
			break;
		AG_TRY(ag_minimise(t->ctx, &minimum));
		result->n_iter += minimum.n_iter;
		if (problem->link != AG_LINK_QUANTILES)
			break;
	}
	result->converged = minimum.converged;
	result->stopped_by_time = minimum.stopped_by_time;
	result->objective = minimum.value;
	return AG_OK;
}

static void
describe(const Training *t, AgLinearResult *result)
{
	if (result->stopped_by_time)
		snprintf(result->note, sizeof result->note,
				 "stopped by the time limit after %d iterations, before it had converged",
				 result->n_iter);
	else if (!result->converged && result->n_iter >= t->params->max_iter)
		snprintf(result->note, sizeof result->note,
				 "did not converge within max_iter = %d iterations", t->params->max_iter);
	else if (!result->converged)
		snprintf(result->note, sizeof result->note,
				 "did not converge: after %d iterations no step lowered the loss", result->n_iter);
}

/* The scores' parameters, without padding and with all classes. */
static void
fill_model(const Training *t, double *intercepts, double *coefficients, uint32_t n_outputs)
{
	const AgLinearProblem *problem = &t->problem;
	uint32_t n_numbers = t->dense->n_numbers, padded = problem->n_padded;
	uint32_t n_terms = n_numbers + t->dense->n_columns;
	const double *from_intercepts = t->x + ag_linear_intercept_at(problem);
	double least = INFINITY, least_prior = INFINITY;

	for (int c = 0; problem->link == AG_LINK_SOFTMAX && c < t->data->n_classes; c++)
		if (t->place_of[c] >= 0)
		{
			least = fmin(least, from_intercepts[t->place_of[c]]);
			least_prior = fmin(least_prior, prior_of(t, c));
		}
	for (uint32_t k = 0; k < n_outputs; k++)
	{
		int32_t place = problem->link == AG_LINK_SOFTMAX ? t->place_of[k] : (int32_t) k;

		if (place < 0) /* as much rarer than the rarest as half a row is */
		{
			intercepts[k] = least + fmin(prior_of(t, (int) k) - least_prior, 0.0);
			continue;
		}
		intercepts[k] = from_intercepts[place];
		for (uint32_t j = 0; j < n_terms; j++)
		{
			size_t at = j < n_numbers ? j : t->matrix->stride + (j - n_numbers);

			coefficients[(size_t) j * n_outputs + k] = t->x[at * padded + (uint32_t) place];
		}
	}
}

static AgStatus
make_model(const Training *t, AgLinear **linear)
{
	uint32_t n_outputs =
		t->problem.link == AG_LINK_SOFTMAX ? (uint32_t) t->data->n_classes : t->problem.n_outputs;
	uint32_t n_terms = t->dense->n_numbers + t->dense->n_columns;
	double *intercepts = NULL, *coefficients = NULL;
	AgArena arena;
	AgLinear *made;

	ag_arena_init(&arena, t->ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	if (made != NULL)
		intercepts = ag_arena_alloc(&arena, n_outputs, sizeof *intercepts);
	if (intercepts != NULL)
		coefficients = ag_arena_alloc(&arena, n_terms, n_outputs * sizeof *coefficients);
	if (coefficients == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(t->ctx->mem, (size_t) n_terms * n_outputs * sizeof *coefficients,
							t->ctx->error);
	}
	fill_model(t, intercepts, coefficients, n_outputs);
	made->arena = arena;
	made->n_outputs = n_outputs;
	made->n_terms = n_terms;
	made->link = (uint32_t) t->problem.link;
	made->centre = t->centre;
	made->spread = t->spread;
	made->intercepts = intercepts;
	made->coefficients = coefficients;
	made->dense = t->dense;
	*linear = made;
	return AG_OK;
}

typedef struct Prediction
{
	const Training *t;
	const AgLinear *linear;
	double *proba;
	size_t n_out;
} Prediction;

static void
predict_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const Prediction *prediction = arg;
	const AgDenseMatrix *matrix = prediction->t->matrix;

	(void) thread;
	if (ag_cancelled(prediction->t->ctx))
		return;
	for (int64_t i = begin; i < end; i++)
	{
		size_t row = prediction->t->data->valid_rows[i];

		ag_linear_run_encoded(prediction->linear, matrix->numbers + row * matrix->stride,
							  matrix->slots + row * matrix->n_slots,
							  prediction->proba + (size_t) i * prediction->n_out);
	}
}

static AgStatus
predict(const Training *t, AgLinearResult *result)
{
	Prediction prediction = {t, result->model, NULL, ag_linear_n_out(result->model)};

	AG_TRY(ag_get(t->ctx, (size_t) t->data->n_valid, prediction.n_out * sizeof(double),
				  &result->valid_proba));
	prediction.proba = result->valid_proba;
	ag_pool_run(t->ctx->pool, t->data->n_valid, PREDICT_ROWS, predict_rows, &prediction);
	return ag_check_cancel(t->ctx);
}

/* Once, on the device where there is one that can. */
static AgStatus
train_once(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
		   const AgTrainData *data, const AgLinearParams *params, AgLinearResult *result)
{
	Training t = {.ctx = ctx, .dense = dense, .matrix = matrix, .data = data, .params = params};
	AgStatus status;

	memset(result, 0, sizeof *result);
	t.problem.ctx = ctx;
	AG_GO(set_up(&t));
	AG_GO(ag_linear_sum_init(&t.problem));
	if (ctx->gpu != NULL)
		AG_GO(ag_linear_gpu_create(&t.problem));
	AG_GO(begin(&t));
	if (ag_problem_has_classes(data->problem) && t.n_present < 2)
		result->converged = true; /* one class: its prior says all */
	else
		AG_GO(minimise(&t, result));
	if (result->stopped_by_time && result->cuts.n == 2)
		result->cuts.values[1] = result->n_iter;
	describe(&t, result);
	AG_GO(make_model(&t, &result->model));
	AG_GO(predict(&t, result));
done:
	result->on_gpu = status == AG_OK && t.problem.gpu.linear != NULL;
	result->gpu_failed = t.problem.gpu.has_failed;
	memcpy(result->cpu_because, t.problem.gpu.why, sizeof result->cpu_because);
	ag_linear_gpu_free(&t.problem);
	ag_linear_sum_free(&t.problem);
	ag_mem_free(ctx->mem, t.problem.target);
	ag_mem_free(ctx->mem, t.problem.class_of);
	ag_mem_free(ctx->mem, t.problem.weight);
	ag_mem_free(ctx->mem, t.class_weight);
	ag_mem_free(ctx->mem, t.place_of);
	ag_mem_free(ctx->mem, t.x);
	ag_mem_free(ctx->mem, t.diagonal);
	ag_mem_free(ctx->mem, t.l1);
	if (status != AG_OK)
		ag_linear_result_free(ctx, result);
	return status;
}

/* A device that fails takes nothing with it: the CPU begins anew, and comes to the same model. */
AgStatus
ag_linear_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
				const AgTrainData *data, const AgLinearParams *params, AgLinearResult *result)
{
	AgAgain again;
	AgStatus status = train_once(ctx, dense, matrix, data, params, result);

	if (!ag_again_begin(&again, ctx, status == AG_ERR_SYSTEM && result->gpu_failed,
						result->cpu_because))
		return status;
	status = train_once(&again.ctx, dense, matrix, data, params, result);
	ag_again_end(&again, &result->gpu_failed, result->cpu_because);
	return status;
}

void
ag_linear_result_free(const AgContext *ctx, AgLinearResult *result)
{
	ag_linear_free(result->model);
	ag_mem_free(ctx->mem, result->valid_proba);
	result->model = NULL;
	result->valid_proba = NULL;
}

int64_t
ag_linear_memory(const AgDense *dense, const AgTrainData *data)
{
	size_t padded = data->problem == AG_PROBLEM_REGRESSION || data->problem == AG_PROBLEM_BINARY
						? 1
						: ((size_t) ag_train_outputs(data) + 7) / 8 * 8;
	size_t stride = ((size_t) dense->n_numbers + 15) / 16 * 16;
	size_t n_values = (stride + dense->n_columns + 2) * padded;
	int n_parts = ag_linear_sum_parts(data->n_train, n_values);
	size_t n_out = (size_t) ag_train_outputs(data);
	double bytes = 8.0 * (double) n_values * (n_parts + 30.0);

	if (data->problem == AG_PROBLEM_REGRESSION && stride + dense->n_columns <= 1024)
	{
		int n = ag_linear_gram_parts(n_parts, (int64_t) (stride + dense->n_columns));
		double size = (double) stride + dense->n_columns + 10.0;

		bytes += 8.0 * size * size * (n + 1.0);
	}
	bytes += 24.0 * (double) data->n_train + 8.0 * (double) n_out * (double) data->n_valid + 1e6;
	return bytes < 9e18 ? (int64_t) bytes : INT64_MAX;
}
