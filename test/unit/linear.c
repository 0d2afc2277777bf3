/* linear.c - the LR family: optima by their own conditions, gradients by differences, odd data, threads, bytes, memory. */
#include "unit/unit.h"

#include <float.h>

#include "engine/base/maths.h"
#include "engine/model/lbfgs.h"
#include "engine/model/linear_private.h"
#include "unit/dense_cases.h"

static AgMem mem;
static AgError err;
static AgContext ctx;

typedef struct Fitted
{
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgLinearResult result;
	AgStatus status;
} Fitted;

static AgLinearParams
defaults(void)
{
	AgLinearParams params;

	ag_params_default(ag_linear_specs, ag_linear_n_specs, &params);
	return params;
}

static Fitted
train(const Columns *columns, uint32_t n_features, int64_t n_rows, const AgTrainData *data,
	  AgLinearParams params)
{
	AgDenseSource source = source_of(columns, n_features, n_rows);
	Fitted fitted = {0};
	int64_t deadline = ctx.deadline_ns;

	ctx.deadline_ns = INT64_MAX;
	AG_REQUIRE(ag_dense_fit(&ctx, &source, data->train_rows, data->n_train, &params.dense,
							&fitted.dense) == AG_OK);
	AG_REQUIRE(ag_dense_matrix(&ctx, fitted.dense, &source, &fitted.matrix) == AG_OK);
	ctx.deadline_ns = deadline;
	fitted.status =
		ag_linear_train(&ctx, fitted.dense, fitted.matrix, data, &params, &fitted.result);
	return fitted;
}

static void
drop(Fitted *fitted)
{
	ag_linear_result_free(&ctx, &fitted->result);
	ag_dense_matrix_free(fitted->matrix);
	ag_dense_free(fitted->dense);
	ag_error_init(&err);
}

/* One row's terms, as the model sees them. */
static void
expand(const Fitted *fitted, size_t row, double *terms)
{
	const AgDense *dense = fitted->dense;
	const AgDenseMatrix *matrix = fitted->matrix;

	memset(terms, 0, (dense->n_numbers + dense->n_columns) * sizeof *terms);
	for (uint32_t j = 0; j < dense->n_numbers; j++)
		terms[j] = (double) matrix->numbers[row * matrix->stride + j];
	for (uint32_t s = 0; s < matrix->n_slots; s++)
		if (matrix->slots[row * matrix->n_slots + s] < dense->n_columns)
			terms[dense->n_numbers + matrix->slots[row * matrix->n_slots + s]] = 1.0;
}

/*
 * How far the model is from the minimum that linear.h promises: the greatest subgradient of the mean loss with its
 * penalty, told without any of the trainer's code.
 */
static double
distance_from_optimum(const Fitted *fitted, const AgTrainData *data, AgLinearParams params)
{
	const AgLinear *model = fitted->result.model;
	uint32_t n_terms = model->n_terms, n_out = model->n_outputs;
	double share = params.penalty == AG_PENALTY_L1            ? 1.0
				   : params.penalty == AG_PENALTY_ELASTIC_NET ? params.l1_ratio
															  : 0.0;
	double n = (double) data->n_train, total = 0.0, worst = 0.0;
	double *gradient = calloc((n_terms + 1) * n_out, sizeof(double));
	double *terms = malloc((n_terms + 1) * sizeof(double));
	double *out = malloc((n_out + 1) * sizeof(double));

	terms[n_terms] = 1.0;
	for (int64_t i = 0; i < data->n_train; i++)
		total += data->weight != NULL ? data->weight[data->train_rows[i]] : 1.0;
	for (int64_t i = 0; i < data->n_train; i++)
	{
		size_t row = data->train_rows[i];
		double w = (data->weight != NULL ? data->weight[row] : 1.0) / total;

		expand(fitted, row, terms);
		ag_linear_run_encoded(model, fitted->matrix->numbers + row * fitted->matrix->stride,
							  fitted->matrix->slots + row * fitted->matrix->n_slots, out);
		for (uint32_t k = 0; k < n_out; k++)
		{
			double slope;

			if (model->link == AG_LINK_IDENTITY)
				slope = (out[0] - data->target[row]) / model->spread;
			else if (model->link == AG_LINK_SIGMOID)
				slope = out[1] - (double) data->class_of[row];
			else
				slope = out[k] - (data->class_of[row] == (int32_t) k ? 1.0 : 0.0);
			for (uint32_t j = 0; j <= n_terms; j++)
				gradient[j * n_out + k] += w * slope * terms[j];
		}
	}
	for (uint32_t j = 0; j <= n_terms; j++)
		for (uint32_t k = 0; k < n_out; k++)
		{
			double g = gradient[j * n_out + k];
			double b = j < n_terms ? model->coefficients[j * n_out + k] : 0.0;
			double l1 = j < n_terms ? share / (params.C * n) : 0.0;

			g += (1.0 - share) / (params.C * n) * b;
			if (b != 0.0)
				g += b > 0.0 ? l1 : -l1;
			else
				g = g > l1 ? g - l1 : g < -l1 ? g + l1 : 0.0;
			worst = fmax(worst, fabs(g));
		}
	free(gradient);
	free(terms);
	free(out);
	return worst;
}

static void
finds_optima(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS};
	Mixed mixed = mixed_make(11, 700);

	for (int p = 2; p >= 0; p--)
		for (int penalty = 0; penalty < 3; penalty++)
			for (int weighted = 0; weighted < 2; weighted++)
			{
				AgTrainData data = mixed_data(&mixed, problems[p], 600);
				AgLinearParams params = defaults();
				Fitted fitted;

				if (problems[p] == AG_PROBLEM_BINARY)
					for (int64_t i = 0; i < 700; i++)
						mixed.class_of[i] = mixed.class_of[i] > 0;
				params.penalty = penalty;
				params.C = penalty == AG_PENALTY_L2 ? 1.0 : 0.2;
				params.tol = 1e-6;
				data.weight = weighted ? mixed.weight : NULL;
				fitted = train(&mixed.columns, MIXED_FEATURES, 700, &data, params);
				AG_REQUIRE(fitted.status == AG_OK);
				AG_CHECK(fitted.result.converged && fitted.result.note[0] == '\0');
				AG_CHECK(distance_from_optimum(&fitted, &data, params) < 3e-6);
				drop(&fitted);
			}
	mixed_free(&mixed);
}

/* Two columns by hand: ridge on standardised columns is a 2 x 2 system. */
static void
ridge_by_hand(void)
{
	double x1[] = {1, 2, 3, 4, 5, 6}, x2[] = {2, 1, 4, 3, 6, 4}, y[] = {1, 3, 2, 5, 4, 9};
	uint32_t rows[] = {0, 1, 2, 3, 4, 5};
	Columns columns = {{0}, {x1, x2}};
	AgTrainData data = {.problem = AG_PROBLEM_REGRESSION,
						.target = y,
						.train_rows = rows,
						.n_train = 6,
						.valid_rows = rows,
						.n_valid = 6};
	AgLinearParams params = defaults();
	double a = 0, b = 0, c = 0, r1 = 0, r2 = 0, m1 = 3.5, m2 = 20.0 / 6.0, my = 4.0, s1 = 0, s2 = 0;
	double d, w1, w2;
	Fitted fitted;

	for (int i = 0; i < 6; i++)
	{
		s1 += (x1[i] - m1) * (x1[i] - m1) / 6.0;
		s2 += (x2[i] - m2) * (x2[i] - m2) / 6.0;
	}
	s1 = sqrt(s1);
	s2 = sqrt(s2);
	for (int i = 0; i < 6; i++)
	{
		double u = (x1[i] - m1) / s1, v = (x2[i] - m2) / s2;

		a += u * u;
		b += u * v;
		c += v * v;
		r1 += u * (y[i] - my);
		r2 += v * (y[i] - my);
	}
	params.C = 0.5; /* alpha = 2 */
	a += 2.0;
	c += 2.0;
	d = a * c - b * b;
	w1 = (r1 * c - r2 * b) / d;
	w2 = (a * r2 - b * r1) / d;
	fitted = train(&columns, 2, 6, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	AG_CHECK_NEAR(fitted.result.model->coefficients[0] * fitted.result.model->spread, w1, 1e-6);
	AG_CHECK_NEAR(fitted.result.model->coefficients[1] * fitted.result.model->spread, w2, 1e-6);
	for (int i = 0; i < 6; i++)
		AG_CHECK_NEAR(fitted.result.valid_proba[i],
					  my + w1 * (x1[i] - m1) / s1 + w2 * (x2[i] - m2) / s2, 1e-6);
	drop(&fitted);
}

/* The sum of the trainer, set up by hand. */
static AgLinearProblem
problem_of(const Fitted *fitted, const AgTrainData *data, AgLink link, uint32_t n_outputs)
{
	AgLinearProblem problem = {.ctx = &ctx,
							   .ops = ag_vector_ops(),
							   .matrix = fitted->matrix,
							   .rows = data->train_rows,
							   .n_rows = data->n_train,
							   .link = link,
							   .n_outputs = n_outputs,
							   .n_padded = n_outputs == 1 ? 1 : (n_outputs + 7) / 8 * 8,
							   .n_numbers = fitted->dense->n_numbers,
							   .n_columns = fitted->dense->n_columns,
							   .target = (double *) data->target,
							   .class_of = (int32_t *) data->class_of,
							   .weight = (double *) data->weight,
							   .l2 = 0.01};

	AG_REQUIRE(ag_linear_sum_init(&problem) == AG_OK);
	return problem;
}

/* The share of training rows below each level is the level, but for those that the many terms meet exactly; and levels ascend. */
static void
quantiles_part_the_rows(void)
{
	static const double levels[] = {0.05, 0.3, 0.5, 0.9};
	Mixed mixed = mixed_make(17, 2000);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 2000);
	AgLinearParams params = defaults();
	Fitted fitted;
	double below[4] = {0.0};

	data.problem = AG_PROBLEM_QUANTILE;
	data.n_quantiles = 4;
	data.quantiles = levels;
	data.valid_rows = data.train_rows;
	data.n_valid = data.n_train;
	params.C = 100.0;
	fitted = train(&mixed.columns, MIXED_FEATURES, 2000, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	AG_CHECK(fitted.result.converged);
	AG_CHECK_EQ(ag_linear_n_out(fitted.result.model), 4);
	for (int64_t i = 0; i < data.n_valid; i++)
		for (int k = 0; k < 4; k++)
		{
			below[k] += data.target[data.valid_rows[i]] <= fitted.result.valid_proba[i * 4 + k];
			AG_CHECK(k == 0 || fitted.result.valid_proba[i * 4 + k] >=
								   fitted.result.valid_proba[i * 4 + k - 1]);
		}
	for (int k = 0; k < 4; k++)
		AG_CHECK_NEAR(below[k] / (double) data.n_valid, levels[k], 0.05);
	drop(&fitted);
	mixed_free(&mixed);
}

static void
gradients_are_differences(void)
{
	Mixed mixed = mixed_make(12, 300);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 300);
	AgLinearParams params = defaults();
	Fitted fitted;

	data.weight = mixed.weight;
	params.dense.min_level_count = 30;
	fitted = train(&mixed.columns, MIXED_FEATURES, 300, &data, params);
	for (int c = 0; c < 4; c++)
	{
		static const AgLink links[] = {AG_LINK_IDENTITY, AG_LINK_SIGMOID, AG_LINK_SOFTMAX,
									   AG_LINK_QUANTILES};
		static const double levels[] = {0.1, 0.5, 0.95};
		AgLink link = links[c];
		AgLinearProblem problem;
		double *x, *gradient, *other, value, above, below;
		size_t n;

		problem = problem_of(&fitted, &data, link, c >= 2 ? 3 : 1);
		problem.quantiles = levels;
		problem.bend = 0.05;
		if (link == AG_LINK_SIGMOID)
			for (int64_t i = 0; i < 300; i++)
				mixed.class_of[i] = mixed.class_of[i] > 0;
		else if (link == AG_LINK_SOFTMAX)
			for (int64_t i = 0; i < 300; i++)
				mixed.class_of[i] = (int32_t) (i % 3);
		n = problem.n_values;
		x = calloc(n, sizeof(double));
		gradient = calloc(n, sizeof(double));
		other = calloc(n, sizeof(double));
		for (size_t i = 0; i < n; i++) /* what pads stays 0, as in training */
		{
			size_t term = i / problem.n_padded;
			bool pads = term >= fitted.dense->n_numbers && term < fitted.matrix->stride;

			if (!pads && term != fitted.matrix->stride + problem.n_columns &&
				i % problem.n_padded < problem.n_outputs)
				x[i] = random_normal(9, i) * 0.3;
		}
		AG_REQUIRE(ag_linear_sum(&problem, x, &value, gradient) == AG_OK);
		for (size_t i = 0; i < n; i++)
		{
			double h = 1e-5, at = x[i];

			if (at == 0.0)
			{
				AG_CHECK(gradient[i] == 0.0);
				continue;
			}
			x[i] = at + h;
			AG_REQUIRE(ag_linear_sum(&problem, x, &above, other) == AG_OK);
			x[i] = at - h;
			AG_REQUIRE(ag_linear_sum(&problem, x, &below, other) == AG_OK);
			x[i] = at;
			AG_CHECK_NEAR((above - below) / (2.0 * h), gradient[i], 1e-7 * (1.0 + fabs(value)));
		}
		free(x);
		free(gradient);
		free(other);
		ag_linear_sum_free(&problem);
	}
	drop(&fitted);
	mixed_free(&mixed);
}

/* The products' way and the iterative one lead to the same place. */
static void
both_ways_agree(void)
{
	Mixed mixed = mixed_make(13, 500);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 500);
	AgLinearParams params = defaults();
	Fitted fitted;
	double *y = malloc(500 * sizeof(double));

	data.weight = mixed.weight;
	fitted = train(&mixed.columns, MIXED_FEATURES, 500, &data, params);
	for (int i = 0; i < 500; i++)
		y[i] = (mixed.target[i] - 10.0) / 5.0;
	data.target = y;
	for (int lasso = 0; lasso < 2; lasso++)
	{
		AgLinearProblem problem = problem_of(&fitted, &data, AG_LINK_IDENTITY, 1);
		double *x = calloc(problem.n_values, sizeof(double));
		double *z = calloc(problem.n_values, sizeof(double));
		double *l1 = calloc(problem.n_values, sizeof(double));
		AgMinimum minimum = {.n = problem.n_values,
							 .x = z,
							 .objective = ag_linear_sum,
							 .arg = &problem,
							 .max_iter = 5000,
							 .tolerance = 1e-9};
		int n_iter;
		bool converged, late;

		if (lasso)
		{
			problem.l1 = 0.02;
			problem.l2 = 0.001;
			for (size_t i = 0; i + 2 < problem.n_values; i++)
				l1[i] = problem.l1;
			minimum.l1 = l1;
		}
		/* Weights of the mean 1, which the trainer would have seen to. */
		problem.weight = NULL;
		AG_CHECK(ag_linear_gram_fits(&problem));
		AG_REQUIRE(ag_linear_gram_solve(&problem, 100000, 1e-10, x, &n_iter, &converged, &late) ==
				   AG_OK);
		AG_REQUIRE(ag_minimise(&ctx, &minimum) == AG_OK);
		AG_CHECK(converged && !late && minimum.converged);
		for (size_t i = 0; i < problem.n_values; i++)
			AG_CHECK_NEAR(x[i], z[i], 1e-5);
		if (lasso)
		{
			int n_zero = 0;

			for (size_t i = 0; i + 2 < problem.n_values; i++)
			{
				AG_CHECK((x[i] == 0.0) == (z[i] == 0.0));
				n_zero += x[i] == 0.0;
			}
			AG_CHECK(n_zero > 10);
		}
		free(x);
		free(z);
		free(l1);
		ag_linear_sum_free(&problem);
	}
	free(y);
	drop(&fitted);
	mixed_free(&mixed);
}

static uint8_t *
image_of(const AgLinear *linear, size_t *size)
{
	AgWriter writer;
	uint8_t *bytes;

	ag_writer_init(&writer, &mem);
	AG_REQUIRE(ag_linear_write(&ctx, linear, &writer) == AG_OK);
	*size = writer.size;
	bytes = ag_mem_alloc(&mem, writer.size, 1);
	memcpy(bytes, writer.data, writer.size);
	ag_writer_free(&writer);
	return bytes;
}

static void
threads_change_nothing(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS};
	Mixed mixed = mixed_make(14, 3000);

	for (int p = 0; p < 3; p++)
	{
		AgTrainData data = mixed_data(&mixed, problems[p], 2500);
		AgLinearParams params = defaults();
		uint8_t *first = NULL;
		double *proba = NULL;
		size_t size = 0, n_proba;
		int n_threads[] = {1, 2, 5};

		params.tol = 1e-3;
		if (problems[p] == AG_PROBLEM_BINARY)
			for (int64_t i = 0; i < 3000; i++)
				mixed.class_of[i] = mixed.class_of[i] > 0;
		else if (problems[p] == AG_PROBLEM_MULTICLASS)
			for (int64_t i = 0; i < 3000; i++)
				mixed.class_of[i] = mixed.target[i] > 15 ? 2 : mixed.target[i] > 10;
		n_proba = (size_t) data.n_valid * ((size_t) ag_train_outputs(&data));
		for (int t = 0; t < 3; t++)
		{
			Fitted fitted;
			uint8_t *bytes;
			size_t n;

			AG_REQUIRE(ag_pool_create(&mem, n_threads[t], &ctx.pool, &err) == AG_OK);
			fitted = train(&mixed.columns, MIXED_FEATURES, 3000, &data, params);
			AG_REQUIRE(fitted.status == AG_OK);
			bytes = image_of(fitted.result.model, &n);
			if (t == 0)
			{
				size = n;
				first = bytes;
				proba = malloc(n_proba * sizeof(double));
				memcpy(proba, fitted.result.valid_proba, n_proba * sizeof(double));
			}
			else
			{
				AG_CHECK(n == size && memcmp(bytes, first, n) == 0);
				AG_CHECK(memcmp(proba, fitted.result.valid_proba, n_proba * sizeof(double)) == 0);
				ag_mem_free(&mem, bytes);
			}
			drop(&fitted);
			ag_pool_free(ctx.pool);
			ctx.pool = NULL;
		}
		free(proba);
		ag_mem_free(&mem, first);
	}
	mixed_free(&mixed);
}

/* Outputs of a model on rows of odd values: finite, and probabilities sum to 1. */
static void
check_outputs(const AgLinear *model, uint64_t seed)
{
	double features[64], out[1200];
	uint32_t n_out = ag_linear_n_out(model);

	AG_REQUIRE(n_out <= 1200 && model->dense->n_features <= 64);
	for (uint64_t r = 0; r < 8; r++)
	{
		double sum = 0.0;

		for (uint32_t f = 0; f < model->dense->n_features; f++)
			features[f] = odd_value(ag_key(seed, r), f);
		ag_linear_run(model, features, out);
		for (uint32_t k = 0; k < n_out; k++)
		{
			AG_CHECK(isfinite(out[k]));
			sum += out[k];
		}
		if (model->link != AG_LINK_IDENTITY)
			AG_CHECK_NEAR(sum, 1.0, 1e-9);
	}
}

static void
odd_tables(void)
{
	Mixed mixed = mixed_make(15, 60);
	AgLinearParams params = defaults();
	int64_t sizes[] = {1, 2, 3, 60};

	for (int s = 0; s < 4; s++)
		for (int p = 0; p < 3; p++)
		{
			static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
												 AG_PROBLEM_MULTICLASS};
			AgTrainData data = mixed_data(&mixed, problems[p], sizes[s]);
			Fitted fitted;

			if (p == 1)
				for (int i = 0; i < 60; i++)
					mixed.class_of[i] = mixed.class_of[i] > 0;
			data.n_classes += p == 2 ? 2 : 0; /* two classes nobody is in */
			fitted = train(&mixed.columns, MIXED_FEATURES, 60, &data, params);
			AG_CHECK_EQ(fitted.status, AG_OK);
			AG_CHECK(fitted.result.converged);
			check_outputs(fitted.result.model, 5);
			if (sizes[s] == 60 && p == 2)
			{
				double out[5], features[MIXED_FEATURES];

				for (int f = 0; f < MIXED_FEATURES; f++)
					features[f] = mixed.cells[f][0];
				ag_linear_run(fitted.result.model, features, out);
				AG_CHECK(out[3] < 0.05 && out[4] == out[3] && out[3] > 0.0);
			}
			drop(&fitted);
		}
	mixed_free(&mixed);
}

static void
huge_targets(void)
{
	static const double scales[] = {1e308, 1e-300, 1e200, 0.0};
	Mixed mixed = mixed_make(16, 80);

	for (int s = 0; s < 4; s++)
	{
		AgTrainData data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 60);
		AgLinearParams params = defaults();
		Fitted fitted;

		for (int i = 0; i < 80; i++)
			mixed.target[i] = scales[s] * (i % 3 - 1.0 + 0.3 * mixed.cells[0][i] / 8.0);
		fitted = train(&mixed.columns, MIXED_FEATURES, 80, &data, params);
		AG_REQUIRE(fitted.status == AG_OK);
		AG_CHECK(fitted.result.converged);
		for (int i = 0; i < 20; i++)
			AG_CHECK(isfinite(fitted.result.valid_proba[i]) &&
					 fabs(fitted.result.valid_proba[i]) <= 3.0 * scales[s]);
		check_outputs(fitted.result.model, 6);
		drop(&fitted);
	}
	mixed_free(&mixed);
}

static void
a_thousand_classes(void)
{
	enum
	{
		N = 3000
	};
	double *x = malloc(N * sizeof(double)), *code = malloc(N * sizeof(double));
	int32_t *class_of = malloc(N * sizeof(int32_t));
	uint32_t *rows = malloc(N * sizeof(uint32_t));
	Columns columns = {{0, 1000}, {x, code}};
	AgTrainData data = {.problem = AG_PROBLEM_MULTICLASS,
						.n_classes = 1000,
						.class_of = class_of,
						.train_rows = rows,
						.n_train = N,
						.valid_rows = rows,
						.n_valid = 200};
	AgLinearParams params = defaults();
	int n_right = 0;
	Fitted fitted;

	for (int i = 0; i < N; i++)
	{
		rows[i] = (uint32_t) i;
		class_of[i] = i % 1000;
		code[i] = class_of[i];
		x[i] = random_normal(1, (uint64_t) i);
	}
	params.max_iter = 8;
	params.dense.min_level_count = 1;
	fitted = train(&columns, 2, N, &data, params);
	AG_REQUIRE(fitted.status == AG_OK);
	for (int i = 0; i < 200; i++)
	{
		int best = 0;

		for (int k = 1; k < 1000; k++)
			if (fitted.result.valid_proba[i * 1000 + k] >
				fitted.result.valid_proba[i * 1000 + best])
				best = k;
		n_right += best == class_of[i];
	}
	AG_CHECK(n_right > 190);
	check_outputs(fitted.result.model, 7);
	drop(&fitted);
	free(x);
	free(code);
	free(class_of);
	free(rows);
}

static void
says_when_it_did_not_converge(void)
{
	Mixed mixed = mixed_make(17, 400);
	AgTrainData data = mixed_data(&mixed, AG_PROBLEM_MULTICLASS, 300);
	AgLinearParams params = defaults();
	_Atomic bool cancel = true;
	Fitted fitted;

	params.max_iter = 2;
	fitted = train(&mixed.columns, MIXED_FEATURES, 400, &data, params);
	AG_CHECK_EQ(fitted.status, AG_OK);
	AG_CHECK(!fitted.result.converged && !fitted.result.stopped_by_time);
	AG_CHECK_STR(fitted.result.note, "did not converge within max_iter = 2 iterations");
	drop(&fitted);

	ctx.deadline_ns = ag_clock_ns() - 1; /* the classes' frequencies */
	fitted = train(&mixed.columns, MIXED_FEATURES, 400, &data, params);
	AG_CHECK_EQ(fitted.status, AG_OK);
	AG_CHECK(fitted.result.stopped_by_time && !fitted.result.converged);
	AG_CHECK(strstr(fitted.result.note, "time limit") != NULL);
	if (fitted.status == AG_OK)
		for (int k = 0; k < 3; k++)
		{
			double share = 0.0;

			for (int i = 0; i < 300; i++)
				share += mixed.class_of[i] == k ? 1.0 / 300.0 : 0.0;
			AG_CHECK_NEAR(fitted.result.valid_proba[k], share, 1e-9);
		}
	drop(&fitted);
	data = mixed_data(&mixed, AG_PROBLEM_REGRESSION, 300);
	fitted = train(&mixed.columns, MIXED_FEATURES, 400, &data, params);
	AG_CHECK(fitted.status == AG_OK && fitted.result.stopped_by_time);
	drop(&fitted);
	ctx.deadline_ns = INT64_MAX;

	fitted = train(&mixed.columns, MIXED_FEATURES, 400, &data, params);
	ag_linear_result_free(&ctx, &fitted.result);
	ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_linear_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result),
				AG_ERR_CANCELLED);
	AG_CHECK(fitted.result.model == NULL && fitted.result.valid_proba == NULL);
	ctx.cancel = NULL;
	drop(&fitted);

	mixed_free(&mixed);
}

/* Badly scaled and coupled: 1e6 between the greatest and the least curvature. */
static AgStatus
valley(void *arg, const double *x, double *value, double *gradient)
{
	const double *at = arg;

	*value = 0.0;
	for (int i = 0; i < 20; i++)
	{
		double h = pow(10.0, 6.0 * i / 19.0);
		double d = x[i] - at[i] + (i > 0 ? 0.5 * (x[i - 1] - at[i - 1]) : 0.0);

		gradient[i] = h * d;
		*value += 0.5 * h * d * d;
		if (i > 0)
			gradient[i - 1] += 0.5 * h * d;
	}
	return AG_OK;
}

static void
minimises(void)
{
	double at[20], x[20], diagonal[20];
	AgMinimum minimum = {.n = 20,
						 .x = x,
						 .objective = valley,
						 .arg = at,
						 .diagonal = diagonal,
						 .max_iter = 1000,
						 .tolerance = 1e-7};

	for (int i = 0; i < 20; i++)
	{
		at[i] = i * 0.7 - 3.0;
		x[i] = 0.0;
		diagonal[i] = pow(10.0, 6.0 * i / 19.0);
	}
	AG_CHECK_EQ(ag_minimise(&ctx, &minimum), AG_OK);
	AG_CHECK(minimum.converged && minimum.n_iter < 100);
	for (int i = 0; i < 20; i++)
		AG_CHECK_NEAR(x[i], at[i], 1e-6);
}

static void
bytes_and_damage(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS};
	Mixed mixed = mixed_make(18, 200);

	for (int p = 0; p < 3; p++)
	{
		AgTrainData data = mixed_data(&mixed, problems[p], 150);
		AgLinearParams params = defaults();
		Fitted fitted;
		AgLinear *again;
		uint8_t *bytes, *damaged, *twice;
		size_t size, size_twice;
		int n_refused = 0;

		if (p == 1)
			for (int i = 0; i < 200; i++)
				mixed.class_of[i] = mixed.class_of[i] > 0;
		else
			for (int i = 0; i < 200; i++)
				mixed.class_of[i] = i % 3;
		params.dense.min_level_count = 10;
		fitted = train(&mixed.columns, MIXED_FEATURES, 200, &data, params);
		AG_REQUIRE(fitted.status == AG_OK);
		bytes = image_of(fitted.result.model, &size);
		AG_REQUIRE(ag_linear_read(&ctx, bytes, size, &again) == AG_OK);
		twice = image_of(again, &size_twice);
		AG_CHECK(size == size_twice && memcmp(bytes, twice, size) == 0);
		for (int64_t i = 0; i < data.n_valid; i++)
		{
			double features[MIXED_FEATURES], out[3];
			uint32_t n_out = ag_linear_n_out(again);

			for (int f = 0; f < MIXED_FEATURES; f++)
				features[f] = mixed.cells[f][data.valid_rows[i]];
			ag_linear_run(again, features, out);
			AG_CHECK(memcmp(out, fitted.result.valid_proba + i * n_out, n_out * sizeof *out) == 0);
		}
		ag_linear_free(again);
		damaged = ag_mem_alloc(&mem, size, 1);
		for (uint64_t trial = 0; trial < 4000; trial++)
		{
			memcpy(damaged, bytes, size);
			for (uint64_t k = 0; k < 1 + trial % 3; k++)
				damaged[ag_random_below(k, trial, trial % 2 ? 700 : (uint32_t) size)] ^=
					(uint8_t) (1 + ag_random_below(9 + k, trial, 255));
			mend_image(damaged, size);
			ag_error_init(&err);
			if (ag_linear_read(&ctx, damaged, size, &again) == AG_OK)
			{
				if (again->dense->n_features <= 64)
					check_outputs(again, trial);
				ag_linear_free(again);
			}
			else
			{
				AG_CHECK(again == NULL && err.status == AG_ERR_CORRUPT && err.message[0] != '\0');
				n_refused++;
			}
		}
		AG_CHECK(n_refused > 300);
		for (size_t cut = 0; cut < size; cut += 1 + size / 50)
		{
			memcpy(damaged, bytes, size);
			mend_image(damaged, cut);
			AG_CHECK_EQ(ag_linear_read(&ctx, damaged, cut, &again), AG_ERR_CORRUPT);
		}
		ag_mem_free(&mem, damaged);
		ag_mem_free(&mem, twice);
		ag_mem_free(&mem, bytes);
		drop(&fitted);
	}
	mixed_free(&mixed);
}

static void
no_memory(void)
{
	Mixed mixed = mixed_make(19, 120);

	for (int p = 0; p < 3; p++)
	{
		AgTrainData data =
			mixed_data(&mixed, p == 0 ? AG_PROBLEM_MULTICLASS : AG_PROBLEM_REGRESSION, 100);
		AgLinearParams params = defaults();
		AgStatus status = AG_ERR_MEMORY;
		Fitted fitted;
		uint8_t *bytes;
		size_t size;
		AgLinear *again;
		int64_t used;

		data.weight = mixed.weight;
		params.penalty = p == 2 ? AG_PENALTY_L1 : AG_PENALTY_L2;
		fitted = train(&mixed.columns, MIXED_FEATURES, 120, &data, params);
		bytes = image_of(fitted.result.model, &size);
		ag_linear_result_free(&ctx, &fitted.result);
		used = atomic_load(&mem.used_bytes);
		for (int after = 0; status != AG_OK && after < 1000; after++)
		{
			ag_error_init(&err);
			atomic_store(&mem.fail_after, after);
			status =
				ag_linear_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result);
			AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
			AG_CHECK((fitted.result.model != NULL) == (status == AG_OK));
			ag_linear_result_free(&ctx, &fitted.result);
			AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
		}
		AG_CHECK_EQ(status, AG_OK);
		status = AG_ERR_MEMORY;
		for (int after = 0; status != AG_OK && after < 1000; after++)
		{
			ag_error_init(&err);
			atomic_store(&mem.fail_after, after);
			status = ag_linear_read(&ctx, bytes, size, &again);
			AG_CHECK(status == AG_OK || status == AG_ERR_MEMORY);
			ag_linear_free(again);
			AG_CHECK_EQ(atomic_load(&mem.used_bytes), used);
		}
		AG_CHECK_EQ(status, AG_OK);
		atomic_store(&mem.fail_after, -1);
		ag_mem_free(&mem, bytes);
		drop(&fitted);
	}
	mixed_free(&mixed);
}

/* The estimate of the memory holds. */
static void
memory_is_foreseen(void)
{
	static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
										 AG_PROBLEM_MULTICLASS};
	Mixed mixed = mixed_make(20, 2000);

	for (int p = 0; p < 3; p++)
	{
		AgTrainData data = mixed_data(&mixed, problems[p], 1900);
		AgLinearParams params = defaults();
		Fitted fitted;
		int64_t before;

		if (p == 1)
			for (int i = 0; i < 2000; i++)
				mixed.class_of[i] = mixed.class_of[i] > 0;
		fitted = train(&mixed.columns, MIXED_FEATURES, 2000, &data, params);
		ag_linear_result_free(&ctx, &fitted.result);
		before = atomic_load(&mem.used_bytes);
		atomic_store(&mem.peak_bytes, before);
		AG_CHECK_EQ(
			ag_linear_train(&ctx, fitted.dense, fitted.matrix, &data, &params, &fitted.result),
			AG_OK);
		AG_CHECK(atomic_load(&mem.peak_bytes) - before <= ag_linear_memory(fitted.dense, &data));
		drop(&fitted);
	}
	mixed_free(&mixed);
}

int
main(void)
{
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&err);
	ctx = (AgContext){.mem = &mem, .deadline_ns = INT64_MAX, .error = &err};
	minimises();
	ridge_by_hand();
	finds_optima();
	gradients_are_differences();
	quantiles_part_the_rows();
	both_ways_agree();
	threads_change_nothing();
	odd_tables();
	huge_targets();
	a_thousand_classes();
	says_when_it_did_not_converge();
	bytes_and_damage();
	no_memory();
	memory_is_foreseen();
	AG_CHECK_EQ(atomic_load(&mem.used_bytes), 0);
	return ag_unit_done("linear");
}
