/*
 * prep_text.c - a linear model of terms, and the terms that say most.
 *
 * Few of a row's terms aren't zero, so that hundreds of iterations over thousands of terms cost little. Sums run over the rows in
 * their order on one thread: the same bytes everywhere.
 */
#include "engine/model/prep_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/model/lbfgs.h"

#define LEARNT_ROWS 20000
#define MOST_CLASSES 10
#define MAX_ITERATIONS 25
#define TOLERANCE 1e-4
#define RIDGE_CLASSES 0.2 /* of the squared weights, over the number of rows */
#define RIDGE_NUMBERS 1.0

/* One fit of the linear model. */
typedef struct Linear
{
	const AgTermRows *rows;
	const AgTrainData *data;
	uint32_t n_terms;
	int n_outputs;
	const uint32_t *learnt; /* rows */
	int64_t n_learnt;
	double centre, spread; /* of the target */
	double ridge;
	double total; /* weight */
} Linear;

static double
weight_of(const AgTrainData *data, uint32_t row)
{
	return data->weight != NULL ? data->weight[row] : 1.0;
}

static double
output_of(const Linear *linear, uint32_t row, const double *w)
{
	const AgTermRows *rows = linear->rows;
	double sum = w[linear->n_terms];

	for (uint64_t at = rows->first[row]; at < rows->first[row + 1]; at++)
		sum += (double) rows->terms[at].weight * w[rows->terms[at].term];
	return sum;
}

static void
add_slope(const Linear *linear, uint32_t row, double slope, double *gradient)
{
	const AgTermRows *rows = linear->rows;

	for (uint64_t at = rows->first[row]; at < rows->first[row + 1]; at++)
		gradient[rows->terms[at].term] += slope * (double) rows->terms[at].weight;
	gradient[linear->n_terms] += slope;
}

/* Loss and slopes of one row's outputs. */
static double
loss_of(const Linear *linear, uint32_t row, double *z)
{
	const AgTrainData *data = linear->data;
	double greatest = z[0], sum = 0.0, loss;

	if (data->n_classes == 0)
	{
		z[0] -= (data->target[row] - linear->centre) / linear->spread;
		return 0.5 * z[0] * z[0];
	}
	if (data->n_classes == 2)
	{
		bool is_one = data->class_of[row] == 1;
		double p = ag_sigmoid(z[0]);

		loss = (is_one ? -z[0] : z[0]) > 0.0 ? (is_one ? -z[0] : z[0]) : 0.0;
		loss += ag_ln(1.0 + ag_exp(-fabs(z[0])));
		z[0] = p - is_one;
		return loss;
	}
	for (int k = 1; k < linear->n_outputs; k++)
		greatest = z[k] > greatest ? z[k] : greatest;
	loss = greatest - z[data->class_of[row]];
	for (int k = 0; k < linear->n_outputs; k++)
		sum += z[k] = ag_exp(z[k] - greatest);
	for (int k = 0; k < linear->n_outputs; k++)
		z[k] = z[k] / sum - (k == data->class_of[row]);
	return loss + ag_ln(sum);
}

static AgStatus
objective(void *arg, const double *x, double *value, double *gradient)
{
	const Linear *linear = arg;
	size_t stride = (size_t) linear->n_terms + 1;
	double loss = 0.0, ridge = 0.0;

	memset(gradient, 0, (size_t) linear->n_outputs * stride * sizeof *gradient);
	for (int64_t i = 0; i < linear->n_learnt; i++)
	{
		uint32_t row = linear->learnt[i];
		double z[MOST_CLASSES] = {0.0}, weight = weight_of(linear->data, row) / linear->total;

		for (int k = 0; k < linear->n_outputs; k++)
			z[k] = output_of(linear, row, x + (size_t) k * stride);
		loss += weight * loss_of(linear, row, z);
		for (int k = 0; k < linear->n_outputs; k++)
			add_slope(linear, row, weight * z[k], gradient + (size_t) k * stride);
	}
	for (int k = 0; k < linear->n_outputs; k++)
		for (uint32_t t = 0; t < linear->n_terms; t++)
		{
			double w = x[(size_t) k * stride + t];

			ridge += w * w;
			gradient[(size_t) k * stride + t] += linear->ridge * w;
		}
	*value = loss + 0.5 * linear->ridge * ridge;
	return AG_OK;
}

/* Centre and spread of the targets that are learnt from. */
static void
set_scale(Linear *linear)
{
	const AgTrainData *data = linear->data;
	double sum = 0.0, squares = 0.0;

	linear->centre = 0.0;
	linear->spread = 1.0;
	if (data->n_classes > 0)
		return;
	for (int64_t i = 0; i < linear->n_learnt; i++)
		sum += data->target[linear->learnt[i]] / (double) linear->n_learnt;
	for (int64_t i = 0; i < linear->n_learnt; i++)
	{
		double d = data->target[linear->learnt[i]] - sum;

		squares += d * d / (double) linear->n_learnt;
	}
	linear->centre = sum;
	if (squares > 0.0 && isfinite(squares))
		linear->spread = sqrt(squares);
}

/* Fits on the training rows that aren't in a part (n_parts: on all); x begins where it is. */
static AgStatus
fit_without(const AgContext *ctx, Linear *linear, const uint8_t *part, int without,
			uint32_t *learnt, double *x)
{
	const AgTrainData *data = linear->data;
	AgMinimum problem;

	linear->n_learnt = 0;
	linear->total = 0.0;
	for (int64_t i = 0; i < data->n_train && linear->n_learnt < LEARNT_ROWS; i++)
		if (part[data->train_rows[i]] != without)
		{
			learnt[linear->n_learnt++] = data->train_rows[i];
			linear->total += weight_of(data, data->train_rows[i]);
		}
	linear->learnt = learnt;
	if (linear->n_learnt == 0 || !(linear->total > 0.0))
		return AG_OK;
	set_scale(linear);
	linear->ridge =
		(data->n_classes > 0 ? RIDGE_CLASSES : RIDGE_NUMBERS) / (double) linear->n_learnt;
	memset(&problem, 0, sizeof problem);
	problem.n = (size_t) linear->n_outputs * ((size_t) linear->n_terms + 1);
	problem.x = x;
	problem.objective = objective;
	problem.arg = linear;
	problem.max_iter = MAX_ITERATIONS;
	problem.tolerance = TOLERANCE;
	return ag_minimise(ctx, &problem);
}

/* The values of the rows of a part, by the model that was fitted without it; scaled back. */
static void
fill_values(const Linear *linear, const uint8_t *part, int which, int n_parts, const double *x,
			AgTextScore *score)
{
	size_t stride = (size_t) linear->n_terms + 1;

	for (int64_t row = 0; row < linear->rows->n_rows; row++)
	{
		if (part[row] != which && !(which == n_parts && part[row] >= n_parts))
			continue;
		for (int k = 0; k < linear->n_outputs; k++)
			score->values[k * linear->rows->n_rows + row] =
				linear->centre +
				linear->spread * output_of(linear, (uint32_t) row, x + (size_t) k * stride);
	}
}

AgStatus
ag_text_score_fit(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms,
				  const AgTrainData *data, const uint8_t *part, int n_parts, AgTextScore **score)
{
	Linear linear = {.rows = rows, .data = data, .n_terms = n_terms};
	size_t stride = (size_t) n_terms + 1;
	AgTextScore *made = NULL;
	uint32_t *learnt = NULL;
	AgStatus status;

	*score = NULL;
	if (data->n_classes > MOST_CLASSES)
		return AG_OK;
	linear.n_outputs = data->n_classes > 2 ? data->n_classes : 1;
	AG_GO(ag_get(ctx, (size_t) data->n_train, sizeof *learnt, &learnt));
	AG_GO(ag_get_zeroed(ctx, 1, sizeof *made, &made));
	made->mem = ctx->mem;
	made->n_terms = n_terms;
	made->n_outputs = linear.n_outputs;
	AG_GO(ag_get_zeroed(ctx, (size_t) linear.n_outputs, stride * sizeof(double), &made->weights));
	AG_GO(ag_get_zeroed(ctx, (size_t) linear.n_outputs, (size_t) rows->n_rows * sizeof(double),
						&made->values));
	/* the whole last: its weights are kept. Each begins from nothing, or rows would be seen through those before */
	for (int p = 0; p <= n_parts; p++)
	{
		AG_GO(ag_check_cancel(ctx));
		memset(made->weights, 0, (size_t) linear.n_outputs * stride * sizeof(double));
		AG_GO(fit_without(ctx, &linear, part, p, learnt, made->weights));
		fill_values(&linear, part, p, n_parts, made->weights, made);
	}
	for (size_t i = 0; i < (size_t) linear.n_outputs * stride; i++)
		made->weights[i] *= linear.spread;
	for (int k = 0; k < linear.n_outputs; k++)
		made->weights[(size_t) k * stride + n_terms] += linear.centre;
	*score = made;
	made = NULL;
done:
	ag_mem_free(ctx->mem, learnt);
	ag_text_score_free(made);
	return status;
}

void
ag_text_score_free(AgTextScore *score)
{
	if (score == NULL)
		return;
	ag_mem_free(score->mem, score->weights);
	ag_mem_free(score->mem, score->values);
	ag_mem_free(score->mem, score);
}

/* --- choosing */

typedef struct Told
{
	double value;
	uint32_t term;
} Told;

static int
compare_told(const void *left, const void *right)
{
	const Told *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	return (a->term > b->term) - (a->term < b->term);
}

static int
compare_chosen(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *) left, b = *(const uint32_t *) right;

	return (a > b) - (a < b);
}

/* Sums over the training rows: sums[k][term] of class k; without classes k = 0 the weights, 1 their squares, 2 times the target. */
static void
sum_terms(const AgTermRows *rows, uint32_t n_terms, const AgTrainData *data, double centre,
		  double *sums)
{
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];

		for (uint64_t at = rows->first[row]; at < rows->first[row + 1]; at++)
		{
			double x = (double) rows->terms[at].weight;
			uint32_t term = rows->terms[at].term;

			if (data->n_classes > 0)
				sums[(size_t) data->class_of[row] * n_terms + term] += x;
			else
			{
				sums[term] += x;
				sums[n_terms + term] += x * x;
				sums[2 * (size_t) n_terms + term] += x * (data->target[row] - centre);
			}
		}
	}
}

/* Chi squared between a term's weight and the classes (shares[k] of the rows). */
static double
chi_squared(const double *sums, uint32_t n_terms, uint32_t term, const double *shares,
			int n_classes)
{
	double total = 0.0, value = 0.0;

	for (int k = 0; k < n_classes; k++)
		total += sums[(size_t) k * n_terms + term];
	for (int k = 0; k < n_classes; k++)
	{
		double expected = total * shares[k];
		double d = sums[(size_t) k * n_terms + term] - expected;

		value += expected > 0.0 ? d * d / expected : 0.0;
	}
	return value;
}

/* The squared correlation with the target, which F grows with, up to a factor that all terms share. */
static double
correlation(const double *sums, uint32_t n_terms, uint32_t term, double n)
{
	double mean = sums[term] / n;
	double spread = sums[n_terms + term] / n - mean * mean;
	double with = sums[2 * (size_t) n_terms + term] / n;

	return spread > 1e-12 ? with * with / spread : 0.0;
}

AgStatus
ag_text_choose(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms,
			   const AgTrainData *data, uint32_t most, uint32_t *chosen, uint32_t *n_chosen)
{
	int n_sums = data->n_classes > 0 ? data->n_classes : 3;
	double *sums = NULL, *shares = NULL, centre = 0.0;
	Told *told = NULL;
	AgStatus status;

	*n_chosen = 0;
	AG_GO(ag_get_zeroed(ctx, (size_t) n_sums, (size_t) n_terms * sizeof *sums, &sums));
	AG_GO(ag_get_zeroed(ctx, (size_t) n_sums, sizeof *shares, &shares));
	AG_GO(ag_get(ctx, n_terms, sizeof *told, &told));
	for (int64_t i = 0; i < data->n_train; i++)
		if (data->n_classes > 0)
			shares[data->class_of[data->train_rows[i]]] += 1.0 / (double) data->n_train;
		else
			centre += data->target[data->train_rows[i]] / (double) data->n_train;
	sum_terms(rows, n_terms, data, centre, sums);
	for (uint32_t t = 0; t < n_terms; t++)
		told[t] =
			(Told){data->n_classes > 0 ? chi_squared(sums, n_terms, t, shares, data->n_classes)
									   : correlation(sums, n_terms, t, (double) data->n_train),
				   t};
	qsort(told, n_terms, sizeof *told, compare_told);
	while (*n_chosen < most && *n_chosen < n_terms && told[*n_chosen].value > 0.0)
	{
		chosen[*n_chosen] = told[*n_chosen].term;
		(*n_chosen)++;
	}
	qsort(chosen, *n_chosen, sizeof *chosen, compare_chosen);
done:
	ag_mem_free(ctx->mem, sums);
	ag_mem_free(ctx->mem, shares);
	ag_mem_free(ctx->mem, told);
	return status;
}
