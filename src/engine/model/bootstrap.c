/*
 * bootstrap.c - drawn weights of rows.
 *
 * Rows are taken in parts of a fixed number, each on its own: the same draws at any number of threads.
 */
#include "engine/model/bootstrap.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"

/* What a part of the rows came to. */
typedef struct AgBootstrapPart
{
	float max_g, max_h;
	double sum_gg;
} AgBootstrapPart;

void
ag_bootstrap_init(const AgTrainData *data, const AgBoostParams *params, AgBootstrap *bootstrap)
{
	memset(bootstrap, 0, sizeof *bootstrap);
	bootstrap->kind = (AgBootstrapKind) params->bootstrap;
	bootstrap->temperature = params->bagging_temperature;
	bootstrap->share = params->bagging_fraction;
	if (bootstrap->kind == AG_BOOTSTRAP_AUTO)
		bootstrap->kind =
			data->problem == AG_PROBLEM_MULTICLASS ? AG_BOOTSTRAP_BAYESIAN : AG_BOOTSTRAP_MVS;
}

AgStatus
ag_bootstrap_create(const AgContext *ctx, const AgTrainData *data, const AgBoostParams *params,
					AgBootstrap *bootstrap)
{
	ag_bootstrap_init(data, params, bootstrap);
	bootstrap->n_parts = (data->n_train + AG_PART_ROWS - 1) / AG_PART_ROWS;
	AG_TRY(ag_get(ctx, (size_t) data->bins->n_rows, sizeof(AgGradient), &bootstrap->drawn));
	return ag_get(ctx, (size_t) bootstrap->n_parts, sizeof(AgBootstrapPart), &bootstrap->parts);
}

void
ag_bootstrap_free(const AgContext *ctx, AgBootstrap *bootstrap)
{
	ag_mem_free(ctx->mem, bootstrap->drawn);
	ag_mem_free(ctx->mem, bootstrap->parts);
	memset(bootstrap, 0, sizeof *bootstrap);
}

typedef struct AgDrawTask
{
	const AgContext *ctx;
	const AgBootstrap *bootstrap;
	const AgLoss *loss;
	uint64_t key;
} AgDrawTask;

/*
 * Minimal variance sampling (Ibragimov, Gusev 2019): a row is taken with the chance sizes[i] / threshold, at most 1,
 * where the threshold is such that share * n rows are expected. Rows that are certain are set apart until none is added.
 */
static double
mvs_threshold(const double *sizes, int n, double share)
{
	double wanted = share * n, threshold = 0.0;
	int n_certain = 0;

	for (int step = 0; step < AG_MVS_STEPS; step++)
	{
		double sum = 0.0;
		int n_above = 0;

		for (int i = 0; i < n; i++)
		{
			bool is_above = step > 0 && sizes[i] >= threshold;

			n_above += is_above;
			sum += is_above ? 0.0 : sizes[i];
		}
		if (step > 0 && n_above == n_certain)
			break;
		n_certain = n_above;
		if (!(wanted - n_certain > 0.0) || !(sum > 0.0))
			break;
		threshold = sum / (wanted - n_certain);
	}
	return threshold;
}

static void
mvs_chances(const AgDrawTask *task, const uint32_t *rows, int n, double *chances)
{
	const AgGradient *gradients = task->loss->gradients;
	double mean = 0.0, threshold;

	for (int i = 0; i < n; i++)
		mean += fabs((double) gradients[rows[i]].g);
	mean /= n;
	for (int i = 0; i < n; i++)
	{
		double g = (double) gradients[rows[i]].g;

		chances[i] = sqrt(g * g + mean * mean);
	}
	threshold = mvs_threshold(chances, n, task->bootstrap->share);
	for (int i = 0; i < n; i++)
		chances[i] = chances[i] < threshold ? chances[i] / threshold : 1.0;
}

/* The weight that a row's draw gives it; chance counts only for MVS. */
static double
draw_weight(const AgDrawTask *task, uint32_t row, double chance)
{
	const AgBootstrap *bootstrap = task->bootstrap;

	return ag_draw_weight((int) bootstrap->kind, bootstrap->temperature, bootstrap->share,
						  task->key, row, chance);
}

static void
draw_part(const AgDrawTask *task, int64_t part)
{
	const AgTrainData *data = task->loss->data;
	const uint32_t *rows = data->train_rows + part * AG_PART_ROWS;
	int64_t left = data->n_train - part * AG_PART_ROWS;
	int n = left < AG_PART_ROWS ? (int) left : AG_PART_ROWS;
	AgBootstrapPart *sums = task->bootstrap->parts + part;
	double chances[AG_PART_ROWS];

	*sums = (AgBootstrapPart){0};
	if (task->bootstrap->kind == AG_BOOTSTRAP_MVS)
		mvs_chances(task, rows, n, chances);
	else
		chances[0] = 1.0;
	for (int i = 0; i < n; i++)
	{
		bool is_mvs = task->bootstrap->kind == AG_BOOTSTRAP_MVS;
		double weight = draw_weight(task, rows[i], is_mvs ? chances[i] : 1.0);
		double g = (double) task->loss->gradients[rows[i]].g;
		AgGradient drawn = {(float) (g * weight), (float) (ag_row_weight(data, rows[i]) * weight)};

		task->bootstrap->drawn[rows[i]] = drawn;
		sums->sum_gg += g * g;
		if (fabsf(drawn.g) > sums->max_g)
			sums->max_g = fabsf(drawn.g);
		if (drawn.h > sums->max_h)
			sums->max_h = drawn.h;
	}
}

static void
draw_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgDrawTask *task = arg;

	(void) thread;
	for (int64_t part = begin; part < end && !ag_cancelled(task->ctx); part++)
		draw_part(task, part);
}

AgStatus
ag_bootstrap_draw(const AgContext *ctx, AgBootstrap *bootstrap, const AgLoss *loss, uint64_t key,
				  AgGradientRange *range)
{
	AgDrawTask task = {ctx, bootstrap, loss, key};
	double sum = 0.0;

	ag_pool_run(ctx->pool, bootstrap->n_parts, 1, draw_task, &task);
	AG_TRY(ag_check_cancel(ctx));
	*range = (AgGradientRange){0};
	for (int64_t p = 0; p < bootstrap->n_parts; p++)
	{
		const AgBootstrapPart *part = bootstrap->parts + p;

		sum += part->sum_gg;
		range->max_g = part->max_g > range->max_g ? part->max_g : range->max_g;
		range->max_h = part->max_h > range->max_h ? part->max_h : range->max_h;
	}
	bootstrap->size_g = sqrt(sum / (double) (loss->data->n_train > 0 ? loss->data->n_train : 1));
	return AG_OK;
}
