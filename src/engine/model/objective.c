/*
 * objective.c - binary and multiclass log-loss, and what all objectives have in common.
 *
 * Whatever touches a gradient is plain double arithmetic and maths.h, so that the bytes are the same on
 * every machine. First scores are sums over the train rows in their order, on one thread.
 */
#include "engine/model/objective.h"

#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/threads.h"

#define AG_LOSS_CHUNK 8192
#define AG_PRIOR_MIN 1e-15 /* a class that no train row has still gets a finite score */

double
ag_total_weight(const AgTrainData *data)
{
	double sum = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
		sum += ag_row_weight(data, data->train_rows[i]);
	return sum > 0.0 && sum <= 1e300 ? sum : 0.0;
}

double
ag_mean_weight(const AgTrainData *data)
{
	double total = ag_total_weight(data);

	return total > 0.0 ? total / (double) data->n_train : 1.0;
}

static double
clipped_prior(double part, double total)
{
	double p = total > 0.0 ? part / total : 0.0;

	if (!(p > AG_PRIOR_MIN))
		return AG_PRIOR_MIN;
	return p < 1.0 - AG_PRIOR_MIN ? p : 1.0 - AG_PRIOR_MIN;
}

/* Weighted class sizes; sums[n_classes]. Returns their total. */
static double
class_sums(const AgTrainData *data, double *sums)
{
	bool is_weighted = ag_total_weight(data) > 0.0;
	double total = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];
		double weight = is_weighted ? ag_row_weight(data, row) : 1.0;

		sums[data->class_of[row]] += weight;
		total += weight;
	}
	return total;
}

static void
logistic_base(AgLoss *loss, double *base)
{
	double sums[2] = {0.0, 0.0};
	double total = class_sums(loss->data, sums);
	double p = clipped_prior(sums[1], total);

	if (loss->params.positive != 1.0)
		p = clipped_prior(sums[1] * loss->params.positive,
						  sums[0] + sums[1] * loss->params.positive);
	base[0] = ag_ln(p / (1.0 - p));
}

/* g = p - y and h = factor * p(1-p), weighted; y is 1 for the rows of one class, whose weights are times positive. */
static void
store_block(const AgLoss *loss, const uint32_t *rows, int n, const double *p, int32_t class,
			double factor, double positive)
{
	const AgTrainData *data = loss->data;
	AgGradient *gradients = loss->gradients;
	double g[AG_LANES_BLOCK], h[AG_LANES_BLOCK];

	for (int i = 0; i < n; i++)
	{
		g[i] = p[i] - (data->class_of[rows[i]] == class ? 1.0 : 0.0);
		h[i] = factor * (p[i] * (1.0 - p[i]));
	}
	if (data->weight != NULL || positive != 1.0)
		for (int i = 0; i < n; i++)
		{
			double weight = ag_row_weight(data, rows[i]);

			if (data->class_of[rows[i]] == class)
				weight *= positive;
			g[i] *= weight;
			h[i] *= weight;
		}
	for (int i = 0; i < n; i++)
		gradients[rows[i]] = (AgGradient){(float) g[i], (float) h[i]};
}

/* Rows without weights. Those that follow each other are read and written where they are. */
static void
logistic_block(const AgLoss *loss, const uint32_t *rows, int n)
{
	const int32_t *class_of = loss->data->class_of;
	double scores[AG_LANES_BLOCK];
	int32_t classes[AG_LANES_BLOCK];
	AgGradient gradients[AG_LANES_BLOCK];
	int n_up = (n + AG_LANES - 1) / AG_LANES * AG_LANES;

	if (n == n_up && ag_rows_are_dense(rows, n))
	{
		ag_logistic_block(loss->level, n, loss->scores + rows[0], class_of + rows[0],
						  loss->gradients + rows[0]);
		return;
	}
	for (int i = 0; i < n_up; i++)
	{
		uint32_t row = rows[i < n ? i : 0];

		scores[i] = loss->scores[row];
		classes[i] = class_of[row];
	}
	ag_logistic_block(loss->level, n_up, scores, classes, gradients);
	for (int i = 0; i < n; i++)
		loss->gradients[rows[i]] = gradients[i];
}

static void
logistic_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	bool is_weighted = loss->data->weight != NULL || loss->params.positive != 1.0;
	double p[AG_LANES_BLOCK];

	(void) output;
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
	{
		const uint32_t *rows = loss->data->train_rows + at;
		int n = end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK;

		if (!is_weighted)
		{
			logistic_block(loss, rows, n);
			continue;
		}
		for (int i = 0; i < n; i++)
			p[i] = loss->scores[rows[i]];
		for (int i = n; i % AG_LANES != 0; i++)
			p[i] = 0.0;
		ag_sigmoid_block(loss->level, n, p, p);
		store_block(loss, rows, n, p, 1, 1.0, loss->params.positive);
	}
}

static void
softmax_base(AgLoss *loss, double *base)
{
	double total;

	for (int k = 0; k < loss->n_outputs; k++)
		base[k] = 0.0;
	total = class_sums(loss->data, base);
	for (int k = 0; k < loss->n_outputs; k++)
		base[k] = ag_ln(clipped_prior(base[k], total));
}

/*
 * ln of the sum of exponentials, once a row and round: a class's tree changes only its own
 * score, so every class of the round can use it, and no n x K matrix of gradients is kept.
 */
static void
softmax_block(const AgLoss *loss, const uint32_t *rows, int n)
{
	double highest[AG_LANES_BLOCK], sum[AG_LANES_BLOCK], power[AG_LANES_BLOCK];

	for (int i = 0; i < n; i++)
	{
		highest[i] = loss->scores[rows[i]];
		sum[i] = 0.0;
	}
	for (int k = 1; k < loss->n_outputs; k++)
		for (int i = 0; i < n; i++)
		{
			double score = loss->scores[k * loss->n_rows + rows[i]];

			highest[i] = score > highest[i] ? score : highest[i];
		}
	for (int k = 0; k < loss->n_outputs; k++)
	{
		for (int i = 0; i < n; i++)
			power[i] = loss->scores[k * loss->n_rows + rows[i]] - highest[i];
		for (int i = n; i % AG_LANES != 0; i++)
			power[i] = 0.0;
		ag_exp_block(loss->level, n, power, power);
		for (int i = 0; i < n; i++)
			sum[i] += power[i];
	}
	for (int i = 0; i < n; i++)
		loss->shared[rows[i]] = highest[i] + ag_ln(sum[i]);
}

static void
softmax_begin_round(const AgLoss *loss, int64_t begin, int64_t end)
{
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
		softmax_block(loss, loss->data->train_rows + at,
					  end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK);
}

/*
 * The diagonal hessian p(1-p), times K/(K-1): the correction for the redundant K-th score
 * (Friedman, Hastie, Tibshirani 2000, "Additive logistic regression", section 5), or times the family's own factor.
 */
static void
softmax_gradients(const AgLoss *loss, int output, int64_t begin, int64_t end)
{
	const double *scores = loss->scores + output * loss->n_rows;
	double factor = loss->n_outputs > 1 ? (double) loss->n_outputs / (loss->n_outputs - 1) : 1.0;
	double p[AG_LANES_BLOCK];

	if (loss->params.multiclass_hessian > 0.0)
		factor = loss->params.multiclass_hessian;
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
	{
		const uint32_t *rows = loss->data->train_rows + at;
		int n = end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK;

		for (int i = 0; i < n; i++)
			p[i] = scores[rows[i]] - loss->shared[rows[i]];
		for (int i = n; i % AG_LANES != 0; i++)
			p[i] = 0.0;
		ag_exp_block(loss->level, n, p, p);
		for (int i = 0; i < n; i++)
			p[i] = p[i] < 1.0 ? p[i] : 1.0;
		store_block(loss, rows, n, p, output, factor, 1.0);
	}
}

static const AgObjective logistic = {
	.name = "binary log-loss",
	.on_device = AG_DEVICE_LOGISTIC,
	.link = AG_LINK_SIGMOID,
	.base = logistic_base,
	.gradients = logistic_gradients,
};

static const AgObjective softmax = {
	.name = "multiclass log-loss",
	.on_device = AG_DEVICE_SOFTMAX,
	.link = AG_LINK_SOFTMAX,
	.is_per_output = true,
	.base = softmax_base,
	.begin_round = softmax_begin_round,
	.gradients = softmax_gradients,
};

const AgObjective *
ag_objective_of(const AgTrainData *data, AgLossKind kind)
{
	switch (data->problem)
	{
		case AG_PROBLEM_BINARY:
			return kind == AG_LOSS_AUTO || kind == AG_LOSS_LOGISTIC ? &logistic : NULL;
		case AG_PROBLEM_MULTICLASS:
			return kind == AG_LOSS_AUTO || kind == AG_LOSS_SOFTMAX ? &softmax : NULL;
		case AG_PROBLEM_REGRESSION:
			if (kind == AG_LOSS_AUTO)
				kind = ag_loss_kind_for(data->stop_metric);
			return ag_number_objective(data->problem, kind);
		case AG_PROBLEM_QUANTILE:
			return data->n_quantiles == 0 ? NULL : ag_number_objective(data->problem, kind);
		case AG_PROBLEM_AUTO:
			break;
	}
	return NULL;
}

static void
fill_scores(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLoss *loss = arg;

	(void) thread;
	for (int k = 0; k < loss->n_outputs; k++)
		for (int64_t row = begin; row < end; row++)
			loss->scores[k * loss->n_rows + row] = loss->base[k];
}

AgStatus
ag_loss_create(const AgContext *ctx, const AgTrainData *data, const AgLossParams *params,
			   AgLoss *loss)
{
	const AgObjective *objective =
		ag_objective_of(data, params != NULL ? params->kind : AG_LOSS_AUTO);
	int64_t n_rows = data->bins->n_rows;

	memset(loss, 0, sizeof *loss);
	if (objective == NULL)
		return ag_error_set(ctx->error, AG_ERR_UNSUPPORTED,
							"boosted trees have no such objective for problem type \"%s\"",
							ag_problem_name(data->problem));
	AG_TRY(ag_loss_check_labels(ctx, objective, data));
	loss->objective = objective;
	loss->data = data;
	loss->params = params != NULL ? *params : (AgLossParams){.positive = 1.0};
	loss->n_rows = n_rows;
	loss->n_outputs = objective->is_per_output ? ag_train_outputs(data) : 1;
	loss->unit = 1.0;
	loss->level = ag_cpu_level();
	AG_TRY(ag_get_zeroed(ctx, (size_t) loss->n_outputs, sizeof(double), &loss->base));
	AG_TRY(ag_get(ctx, (size_t) loss->n_outputs * (size_t) n_rows, sizeof(double), &loss->scores));
	if (objective->begin_round != NULL)
		AG_TRY(ag_get(ctx, (size_t) n_rows, sizeof(double), &loss->shared));
	AG_TRY(ag_get(ctx, (size_t) n_rows, sizeof(AgGradient), &loss->gradients));
	if (objective->renews_leaves)
		AG_TRY(ag_get(ctx, (size_t) data->n_train, sizeof(AgWeighed), &loss->items));
	objective->base(loss, loss->base);
	ag_pool_run(ctx->pool, n_rows, AG_LOSS_CHUNK, fill_scores, loss);
	return AG_OK;
}

void
ag_loss_free(const AgContext *ctx, AgLoss *loss)
{
	ag_mem_free(ctx->mem, loss->base);
	ag_mem_free(ctx->mem, loss->scores);
	ag_mem_free(ctx->mem, loss->shared);
	ag_mem_free(ctx->mem, loss->gradients);
	ag_mem_free(ctx->mem, loss->items);
	memset(loss, 0, sizeof *loss);
}

int64_t
ag_loss_memory(const AgTrainData *data, const AgLossParams *params)
{
	const AgObjective *objective = ag_objective_of(data, params->kind);
	int64_t n_rows = data->bins->n_rows, n_scores = 1;

	if (objective == NULL)
		return 0;
	if (objective->is_per_output)
		n_scores = ag_train_outputs(data) + (objective->begin_round != NULL);
	return n_rows * (8 * n_scores + 8) +
		   (objective->renews_leaves ? data->n_train * (int64_t) sizeof(AgWeighed) : 0);
}

typedef struct AgLossTask
{
	const AgContext *ctx;
	const AgLoss *loss;
	int output;
	_Atomic uint32_t max_g; /* bits of a float >= 0: they order as the floats do */
	_Atomic uint32_t max_h;
} AgLossTask;

static void
begin_round_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLossTask *task = arg;

	(void) thread;
	if (!ag_cancelled(task->ctx))
		task->loss->objective->begin_round(task->loss, begin, end);
}

AgStatus
ag_loss_begin_round(const AgContext *ctx, const AgLoss *loss)
{
	AgLossTask task = {.ctx = ctx, .loss = loss};
	int64_t chunk = AG_LOSS_CHUNK / loss->n_outputs;

	if (loss->objective->begin_round == NULL)
		return AG_OK;
	ag_pool_run(ctx->pool, loss->data->n_train, chunk < 64 ? 64 : chunk, begin_round_task, &task);
	return ag_check_cancel(ctx);
}

static void
raise_to(_Atomic uint32_t *highest, float value)
{
	uint32_t bits, seen = atomic_load_explicit(highest, memory_order_relaxed);

	memcpy(&bits, &value, sizeof bits);
	while (seen < bits && !atomic_compare_exchange_weak(highest, &seen, bits))
		;
}

static void
gradients_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgLossTask *task = arg;
	const AgLoss *loss = task->loss;
	const uint32_t *rows = loss->data->train_rows;
	float max_g = 0.0f, max_h = 0.0f;

	(void) thread;
	if (ag_cancelled(task->ctx))
		return;
	loss->objective->gradients(loss, task->output, begin, end);
	if (begin < end && ag_rows_are_dense(rows + begin, end - begin))
		ag_gradient_range(loss->level, end - begin, loss->gradients + rows[begin], &max_g, &max_h);
	else
		for (int64_t i = begin; i < end; i++)
		{
			float g = fabsf(loss->gradients[rows[i]].g), h = loss->gradients[rows[i]].h;

			max_g = g > max_g ? g : max_g;
			max_h = h > max_h ? h : max_h;
		}
	raise_to(&task->max_g, max_g);
	raise_to(&task->max_h, max_h);
}

AgStatus
ag_loss_gradients(const AgContext *ctx, const AgLoss *loss, int output, AgGradientRange *range)
{
	AgLossTask task = {.ctx = ctx, .loss = loss, .output = output};
	uint32_t max_g, max_h;

	ag_pool_run(ctx->pool, loss->data->n_train, AG_LOSS_CHUNK, gradients_task, &task);
	max_g = atomic_load(&task.max_g);
	max_h = atomic_load(&task.max_h);
	memcpy(&range->max_g, &max_g, sizeof max_g);
	memcpy(&range->max_h, &max_h, sizeof max_h);
	return ag_check_cancel(ctx);
}
