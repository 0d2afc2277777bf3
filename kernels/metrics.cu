/*
 * metrics.cu - what early stopping watches, from the validation rows' scores where they lie: metrics that are a mean of rows.
 *
 * Doubles are added up as the engine adds them (model/sum.c): in blocks of rows, and each block in the order of its rows. So a warp
 * takes a block: its lanes compute, and then add one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/metric_maths.h"
#include "kernels/boost.cuh"

struct MetricTask
{
	const double *scores; /* [n_valid][n_outputs] */
	const double *target, *weight;
	const int32_t *class_of;
	const uint32_t *valid_rows;
	double *sums; /* [parts][2]: of terms, and of weights */
	int64_t n_valid;
	AgDeviceMetric metric;
	AgDeviceLoss loss;
	int n_outputs;
};

/* The prediction of a number from its score: ag_trees_link. */
static __device__ inline double
number_of(AgDeviceLoss loss, double score)
{
	if (loss == AG_DEVICE_POISSON || loss == AG_DEVICE_GAMMA || loss == AG_DEVICE_TWEEDIE)
		return fmin(ag_exp(score), DBL_MAX);
	return score;
}

static __device__ inline double
error_of(AgDeviceMetric metric, double target, double prediction)
{
	switch (metric)
	{
		case AG_DEVICE_METRIC_ABSOLUTE:
			return ag_absolute_error(target, prediction);
		case AG_DEVICE_METRIC_SHARE:
			return ag_share_error(target, prediction);
		case AG_DEVICE_METRIC_SYMMETRIC:
			return ag_symmetric_error(target, prediction);
		default:
			return ag_squared_error(target, prediction);
	}
}

/* Softmax of one row: the greatest score and the sum of powers. */
static __device__ inline void
look_at_row(const double *scores, int n, double *greatest, double *sum)
{
	*greatest = scores[0];
	*sum = 0.0;
	for (int k = 1; k < n; k++)
		*greatest = scores[k] > *greatest ? scores[k] : *greatest;
	for (int k = 0; k < n; k++)
		*sum += ag_exp(scores[k] - *greatest);
}

/* The predicted class, and the probability of class `of` (0: it is none). */
static __device__ int
class_of_row(const MetricTask &task, const double *scores, int of, double *p_of)
{
	double greatest, sum, best_p = 0.0;
	int best = 0;

	*p_of = 0.0;
	if (task.loss == AG_DEVICE_LOGISTIC)
	{
		double p = ag_sigmoid(scores[0]);

		*p_of = of == 1 ? p : of == 0 ? 1.0 - p : 0.0;
		return p > 0.5;
	}
	look_at_row(scores, task.n_outputs, &greatest, &sum);
	for (int k = 0; k < task.n_outputs; k++)
	{
		double p = ag_exp(scores[k] - greatest) / sum;

		if (k == 0 || p > best_p)
		{
			best = k;
			best_p = p;
		}
		if (k == of)
			*p_of = p;
	}
	return best;
}

/* What validation row i adds, before its weight. */
static __device__ double
cost_of(const MetricTask &task, int64_t i, double weight)
{
	const double *scores = task.scores + i * task.n_outputs;
	uint32_t row = task.valid_rows[i];
	double p;
	int predicted;

	if (!agk_has_classes(task.loss))
		return weight * error_of(task.metric, task.target[row], number_of(task.loss, scores[0]));
	predicted = class_of_row(task, scores, task.class_of[row], &p);
	if (task.metric == AG_DEVICE_METRIC_HITS)
		return predicted == task.class_of[row] ? weight : 0.0;
	return -(weight * ag_log_cost(p));
}

/* A warp a block of rows. */
__global__ void
agk_measure(MetricTask task)
{
	int64_t n_parts = (task.n_valid + AGK_METRIC_ROWS - 1) / AGK_METRIC_ROWS;
	int lane = static_cast<int>(threadIdx.x);

	for (int64_t part = blockIdx.x; part < n_parts; part += gridDim.x)
	{
		int64_t begin = part * AGK_METRIC_ROWS, end = begin + AGK_METRIC_ROWS;
		double sum = 0.0, total = 0.0;

		end = end < task.n_valid ? end : task.n_valid;
		for (int64_t first = begin; first < end; first += 32)
		{
			int64_t i = first + lane;
			int n_here = end - first < 32 ? static_cast<int>(end - first) : 32;
			double cost = 0.0, weight = 1.0;

			if (i < end)
			{
				weight = task.weight != nullptr ? task.weight[task.valid_rows[i]] : 1.0;
				cost = cost_of(task, i, weight);
			}
			for (int l = 0; l < n_here; l++)
			{
				sum += __shfl_sync(~0u, cost, l);
				total += __shfl_sync(~0u, weight, l);
			}
		}
		if (lane == 0)
		{
			task.sums[2 * part] = sum;
			task.sums[2 * part + 1] = total;
		}
	}
}

AgDeviceStatus
agk_boost_metric(AgDevice *device, AgDeviceBoost *boost, double *sums)
{
	const AgDeviceBoostSpec *spec = &boost->spec;
	int64_t n_parts = (spec->n_valid + AGK_METRIC_ROWS - 1) / AGK_METRIC_ROWS;
	MetricTask task = {};
	double *parts;
	AgDeviceStatus status;

	AGK_TRY(agk_enter(device));
	task.scores = boost->valid_scores.at;
	task.target = boost->target.at;
	task.weight = spec->weighs_metric ? boost->weight.at : nullptr;
	task.class_of = boost->class_of.at;
	task.valid_rows = boost->valid_rows.at;
	task.sums = boost->metric_sums.at;
	task.n_valid = spec->n_valid;
	task.metric = spec->metric;
	task.loss = spec->loss;
	task.n_outputs = spec->n_outputs;
	AGK_LAUNCH(agk_measure, agk_grid(device, n_parts * 32, 32), 32, 0, device->stream, task);
	AGK_TRY(agk_launched(device, "measuring predictions"));
	AGK_TRY(agk_new(device, (size_t) (2 * n_parts), &parts));
	status =
		agk_download(device, parts, boost->metric_sums.at, 2 * n_parts * (int64_t) sizeof(double));
	sums[0] = sums[1] = 0.0;
	for (int64_t p = 0; p < n_parts; p++)
	{
		sums[0] += parts[2 * p];
		sums[1] += parts[2 * p + 1];
	}
	free(parts);
	return status;
}

AgDeviceStatus
agk_boost_keep(AgDevice *device, AgDeviceBoost *boost)
{
	AGK_TRY(agk_enter(device));
	return agk_copy(device, boost->best_scores.at, boost->valid_scores.at,
					boost->valid_scores.n_bytes);
}

AgDeviceStatus
agk_boost_kept(AgDevice *device, AgDeviceBoost *boost, double *scores)
{
	AGK_TRY(agk_enter(device));
	return agk_download(device, scores, boost->best_scores.at, boost->best_scores.n_bytes);
}
