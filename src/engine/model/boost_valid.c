/*
 * boost_valid.c - the rows that steer a booster's early stopping.
 */
#include "engine/model/boost_valid.h"

#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/lanes.h"
#include "engine/model/metric.h"

#define AG_VALID_CHUNK 1024

AgStatus
ag_valid_create(const AgContext *ctx, const AgTrainData *data, const AgLoss *loss, int n_out,
				AgValid *valid)
{
	size_t n = (size_t) data->n_valid;
	size_t n_outputs = (size_t) loss->n_outputs;

	valid->data = data;
	valid->shape.link = loss->objective->link;
	valid->shape.n_outputs = (uint32_t) loss->n_outputs;
	valid->level = loss->level;
	valid->n_rows = data->n_valid;
	valid->n_outputs = loss->n_outputs;
	valid->n_out = n_out;
	AG_TRY(ag_get(ctx, n * n_outputs, sizeof(double), &valid->scores));
	AG_TRY(ag_get(ctx, n * (size_t) n_out, sizeof(double), &valid->proba));
	AG_TRY(ag_get(ctx, n * (size_t) n_out, sizeof(double), &valid->best));
	if (!ag_problem_has_classes(data->problem))
		AG_TRY(ag_get(ctx, n, sizeof(double), &valid->target));
	else
		AG_TRY(ag_get(ctx, n, sizeof(int32_t), &valid->class_of));
	if (data->metric_weight != NULL)
		AG_TRY(ag_get(ctx, n, sizeof(double), &valid->weight));
	for (size_t i = 0; i < n; i++)
	{
		if (valid->weight != NULL)
			valid->weight[i] = data->metric_weight[data->valid_rows[i]];
		if (valid->target != NULL)
			valid->target[i] = data->target[data->valid_rows[i]];
		else
			valid->class_of[i] = data->class_of[data->valid_rows[i]];
		memcpy(valid->scores + i * n_outputs, loss->base, n_outputs * sizeof(double));
	}
	return AG_OK;
}

void
ag_valid_free(const AgContext *ctx, AgValid *valid)
{
	ag_mem_free(ctx->mem, valid->target);
	ag_mem_free(ctx->mem, valid->class_of);
	ag_mem_free(ctx->mem, valid->weight);
	ag_mem_free(ctx->mem, valid->scores);
	ag_mem_free(ctx->mem, valid->proba);
	ag_mem_free(ctx->mem, valid->best);
	memset(valid, 0, sizeof *valid);
}

/* As ag_trees_link; the common link in blocks, which gives the same bytes. */
static void
link_task(void *arg, int64_t begin, int64_t end, int thread)
{
	AgValid *valid = arg;

	(void) thread;
	if (valid->shape.link != AG_LINK_SIGMOID)
	{
		for (int64_t i = begin; i < end; i++)
			ag_trees_link(&valid->shape, valid->scores + i * valid->n_outputs,
						  valid->proba + i * valid->n_out);
		return;
	}
	for (int64_t at = begin; at < end; at += AG_LANES_BLOCK)
	{
		int n = end - at < AG_LANES_BLOCK ? (int) (end - at) : AG_LANES_BLOCK;
		double p[AG_LANES_BLOCK] = {0.0};

		memcpy(p, valid->scores + at, (size_t) n * sizeof *p);
		ag_sigmoid_block(valid->level, n, p, p);
		for (int i = 0; i < n; i++)
		{
			valid->proba[2 * (at + i)] = 1.0 - p[i];
			valid->proba[2 * (at + i) + 1] = p[i];
		}
	}
}

/* Are the rows looked at where their scores lie? */
static bool
watches_there(const AgBoostGpu *gpu)
{
	return gpu->boost != NULL && gpu->metric != AG_DEVICE_NO_METRIC;
}

AgStatus
ag_valid_evaluate(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu, double *value)
{
	AgTruth truth = {.n_classes = valid->data->n_classes,
					 .class_of = valid->class_of,
					 .n_quantiles = valid->data->n_quantiles,
					 .quantiles = valid->data->quantiles,
					 .target = valid->target,
					 .weight = valid->weight};

	if (watches_there(gpu))
		return ag_boost_gpu_metric(ctx, gpu, valid->data->stop_metric, value);
	if (gpu->boost != NULL)
		AG_TRY(ag_boost_gpu_valid(ctx, gpu, valid->scores));
	ag_pool_run(ctx->pool, valid->n_rows, AG_VALID_CHUNK, link_task, valid);
	return ag_metric_value(ctx, valid->data->stop_metric, &truth, valid->n_rows, valid->proba,
						   value);
}

static void
keep_predictions(AgValid *valid)
{
	memcpy(valid->best, valid->proba,
		   (size_t) valid->n_rows * (size_t) valid->n_out * sizeof(double));
}

AgStatus
ag_valid_keep(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu)
{
	if (watches_there(gpu))
		return ag_boost_gpu_keep(ctx, gpu);
	keep_predictions(valid);
	return AG_OK;
}

AgStatus
ag_valid_finish(const AgContext *ctx, AgValid *valid, AgBoostGpu *gpu)
{
	if (valid->n_rows == 0 || !watches_there(gpu))
		return AG_OK;
	AG_TRY(ag_boost_gpu_kept(ctx, gpu, valid->scores));
	ag_pool_run(ctx->pool, valid->n_rows, AG_VALID_CHUNK, link_task, valid);
	keep_predictions(valid);
	return AG_OK;
}
