/*
 * gradients.cu - gradients of the losses, and their stochastic rounding.
 *
 * Operation by operation what the engine computes (model/objective.c, model/lanes.c), by the same inline maths; a maximum and a
 * sum of integers don't mind the order.
 */
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/loss_maths.h"
#include "kernels/block.cuh"

#define AGK_QUANTUM_HALF 0x1.0p-32

struct GradientTask
{
	const double *target, *weight, *scores, *shared;
	const int32_t *class_of;
	const uint32_t *train_rows;
	AgkGradient *gradients;
	AgkState *state;
	int64_t n_train, n_rows;
	double unit, positive, factor;
	double delta, power, ahead, level; /* delta: in units */
	int is_relative;
	AgDeviceLoss loss;
	int output, n_outputs;
};

/* ln of the sum of exponentials of a row's scores. */
__global__ void
agk_begin_round(GradientTask task, double *shared)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < task.n_train; i += step)
	{
		uint32_t row = task.train_rows[i];
		double highest = task.scores[row], sum = 0.0;

		for (int k = 1; k < task.n_outputs; k++)
		{
			double score = task.scores[k * task.n_rows + row];

			highest = score > highest ? score : highest;
		}
		for (int k = 0; k < task.n_outputs; k++)
			sum += ag_exp(task.scores[k * task.n_rows + row] - highest);
		shared[row] = highest + ag_ln(sum);
	}
}

/* Of a number's losses. */
static __device__ inline AgSlope
slope_of(const GradientTask &task, double score, double target)
{
	double per_unit = 1.0 / task.unit, x = score * per_unit - target * per_unit;

	switch (task.loss)
	{
		case AG_DEVICE_PINBALL:
			return ag_slope_pinball(score, target, task.level);
		case AG_DEVICE_HUBER:
			return ag_slope_huber(x, task.delta);
		case AG_DEVICE_FAIR:
			return ag_slope_fair(x, task.delta);
		case AG_DEVICE_PSEUDO_HUBER:
			return ag_slope_pseudo_huber(x, task.delta);
		case AG_DEVICE_POISSON:
			return ag_slope_poisson(score, target, task.ahead);
		case AG_DEVICE_GAMMA:
			return ag_slope_gamma(score, target);
		case AG_DEVICE_TWEEDIE:
			return ag_slope_tweedie(score, target, task.power);
		default:
			return ag_slope(x, 1.0);
	}
}

static __device__ inline AgkGradient
gradient_of_number(const GradientTask &task, uint32_t row)
{
	double score = task.scores[task.output * task.n_rows + row], target = task.target[row];
	double weight = agk_row_weight(task.weight, row);
	AgkGradient gradient;
	AgSlope slope;

	if (task.loss == AG_DEVICE_ABSOLUTE)
	{
		double size = ag_error_weight(weight, target, task.is_relative);

		gradient.g = (float) (score > target ? size : score < target ? -size : 0.0);
		gradient.h = (float) weight;
		return gradient;
	}
	slope = slope_of(task, score, target);
	gradient.g = (float) (slope.g * weight);
	gradient.h = (float) (slope.h * weight);
	return gradient;
}

static __device__ inline AgkGradient
gradient_of(const GradientTask &task, uint32_t row)
{
	double weight, p, g, h;
	AgkGradient gradient;
	bool is_class;

	if (!agk_has_classes(task.loss))
		return gradient_of_number(task, row);
	if (task.loss == AG_DEVICE_LOGISTIC)
		p = ag_sigmoid(task.scores[row]);
	else
	{
		p = ag_exp(task.scores[task.output * task.n_rows + row] - task.shared[row]);
		p = p < 1.0 ? p : 1.0;
	}
	is_class = task.class_of[row] == (task.loss == AG_DEVICE_LOGISTIC ? 1 : task.output);
	g = p - (is_class ? 1.0 : 0.0);
	h = task.factor * (p * (1.0 - p));
	if (task.weight != nullptr || task.positive != 1.0)
	{
		weight = agk_row_weight(task.weight, row);
		if (is_class)
			weight *= task.positive;
		g *= weight;
		h *= weight;
	}
	gradient.g = (float) g;
	gradient.h = (float) h;
	return gradient;
}

__global__ void
agk_gradients(GradientTask task)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;
	unsigned max_g = 0, max_h = 0;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < task.n_train; i += step)
	{
		uint32_t row = task.train_rows[i];
		AgkGradient gradient = gradient_of(task, row);
		unsigned g = __float_as_uint(fabsf(gradient.g)), h = __float_as_uint(gradient.h);

		task.gradients[row] = gradient;
		/* NaN compares as nothing on the CPU; a negative hessian there is none */
		max_g = gradient.g == gradient.g && g > max_g ? g : max_g;
		max_h = gradient.h > 0.0f && h > max_h ? h : max_h;
	}
	max_g = agk_block_max(max_g);
	max_h = agk_block_max(max_h);
	if (threadIdx.x == 0)
	{
		atomicMax(&task.state->max_g, max_g);
		atomicMax(&task.state->max_w, max_h);
	}
}

static GradientTask
task_of(const AgDeviceBoost *boost, int output)
{
	const AgDeviceBoostSpec *spec = &boost->spec;
	GradientTask task = {};

	task.target = boost->target.at;
	task.weight = boost->weight.at;
	task.scores = boost->scores.at;
	task.shared = boost->shared.at;
	task.class_of = boost->class_of.at;
	task.train_rows = boost->train_rows.at;
	task.gradients = boost->gradients.at;
	task.state = boost->state.at;
	task.n_train = spec->n_train;
	task.n_rows = boost->matrix->view.n_rows;
	task.unit = spec->unit;
	task.positive = spec->loss == AG_DEVICE_LOGISTIC ? spec->positive : 1.0;
	task.factor = spec->loss == AG_DEVICE_SOFTMAX ? spec->multiclass_hessian : 1.0;
	task.delta = spec->delta * (1.0 / spec->unit);
	task.power = spec->power;
	task.ahead = ag_bounded_exp(spec->step);
	task.level = boost->levels != nullptr ? boost->levels[output] : 0.5;
	task.is_relative = spec->is_relative;
	task.loss = spec->loss;
	task.output = output;
	task.n_outputs = spec->n_outputs;
	return task;
}

/* What all outputs share, by the scores as they are now. */
AgDeviceStatus
agk_begin_scores(AgDevice *device, AgDeviceBoost *boost)
{
	if (boost->spec.loss != AG_DEVICE_SOFTMAX)
		return AG_DEVICE_OK;
	AGK_LAUNCH(agk_begin_round, agk_grid(device, boost->spec.n_train, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, task_of(boost, 0), boost->shared.at);
	return agk_launched(device, "beginning a round");
}

/* Gradients, and the largest; of the state nothing else is kept but what growth left there. */
AgDeviceStatus
agk_compute_gradients(AgDevice *device, AgDeviceBoost *boost, int output, AgDeviceRange *range)
{
	AgkState *state = boost->state.at;
	unsigned highest[2];

	AGK_TRY(agk_clear(device, &state->max_g, sizeof(highest)));
	AGK_LAUNCH(agk_gradients, agk_grid(device, boost->spec.n_train, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, task_of(boost, output));
	AGK_TRY(agk_launched(device, "computing gradients"));
	AGK_TRY(agk_download(device, highest, &state->max_g, sizeof(highest)));
	memcpy(&range->max_g, &highest[0], sizeof(range->max_g));
	memcpy(&range->max_h, &highest[1], sizeof(range->max_h));
	return AG_DEVICE_OK;
}

AgDeviceStatus
agk_boost_gradients(AgDevice *device, AgDeviceBoost *boost, int output, AgDeviceRange *range)
{
	AGK_TRY(agk_enter(device));
	AGK_TRY(agk_clear(device, boost->state.at, sizeof(AgkState)));
	if (output == 0)
		AGK_TRY(agk_begin_scores(device, boost));
	return agk_compute_gradients(device, boost, output, range);
}

/* ---- several steps to a tree's values ---- */

AgDeviceStatus
agk_boost_step(AgDevice *device, AgDeviceBoost *boost, int output, const double *values,
			   AgDeviceRange *range)
{
	int64_t n_rows = boost->matrix->view.n_rows;
	const double *scores = boost->scores.at + output * n_rows;

	AGK_TRY(agk_enter(device));
	if (boost->kept_scores.at == nullptr)
		AGK_TRY(agk_get(device, n_rows, &boost->kept_scores));
	if (!boost->has_stepped)
		AGK_TRY(agk_copy(device, boost->kept_scores.at, scores, boost->kept_scores.n_bytes));
	boost->has_stepped = true;
	AGK_TRY(agk_add_by_lists(device, boost, output, values));
	AGK_TRY(agk_begin_scores(device, boost));
	return agk_compute_gradients(device, boost, output, range);
}

AgDeviceStatus
agk_boost_unstep(AgDevice *device, AgDeviceBoost *boost, int output)
{
	AGK_TRY(agk_enter(device));
	if (boost->has_stepped)
		AGK_TRY(agk_copy(device, boost->scores.at + output * boost->matrix->view.n_rows,
						 boost->kept_scores.at, boost->kept_scores.n_bytes));
	boost->has_stepped = false;
	return agk_begin_scores(device, boost);
}

/* ---- rounding ---- */

struct QuantiseTask
{
	const AgkGradient *gradients;
	const uint32_t *rows;
	uint32_t *ids, *grads;
	AgkState *state;
	int64_t n_rows;
	double per_g, per_h;
	uint64_t key;
	int has_equal_hessians;
};

__global__ void
agk_round(QuantiseTask task)
{
	int64_t step = (int64_t) gridDim.x * blockDim.x;
	int64_t sum_g = 0, sum_h = 0;
	unsigned least = ~0u, most = 0;

	for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < task.n_rows; i += step)
	{
		uint32_t row = task.rows[i];
		AgkGradient gradient = task.gradients[row];
		uint64_t bits = ag_random_u64(task.key, row);
		double g = (double) gradient.g, h = (double) gradient.h;
		int32_t qg = (int32_t) floor(g * task.per_g + (double) (bits >> 32) * AGK_QUANTUM_HALF);
		int32_t qh =
			(int32_t) floor(h * task.per_h + (double) (bits & 0xffffffffu) * AGK_QUANTUM_HALF);

		if (qh == 0 && h > 0.0)
			qh = 1;
		if (task.has_equal_hessians)
			qh = 1;
		task.ids[i] = row;
		task.grads[i] = (uint32_t) qg << 16 | ((uint32_t) qh & 0xffffu);
		sum_g += qg;
		sum_h += qh;
		least = (unsigned) qh < least ? (unsigned) qh : least;
		most = (unsigned) qh > most ? (unsigned) qh : most;
	}
	sum_g = agk_block_sum(sum_g);
	sum_h = agk_block_sum(sum_h);
	least = ~agk_block_max(~least);
	most = agk_block_max(most);
	if (threadIdx.x == 0)
	{
		agk_add(&task.state->sum_g, sum_g);
		agk_add(&task.state->sum_h, sum_h);
		atomicMin(&task.state->min_h, least);
		atomicMax(&task.state->max_h, most);
	}
}

AgDeviceStatus
agk_quantise(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order)
{
	QuantiseTask task = {};
	AgkState state = {};

	boost->has_bag = order->rows != nullptr;
	if (boost->has_bag)
	{
		if (boost->bag.at == nullptr)
			AGK_TRY(agk_get(device, boost->spec.n_train, &boost->bag));
		AGK_TRY(agk_upload(device, boost->bag.at, order->rows,
						   order->n_rows * (int64_t) sizeof(uint32_t)));
	}
	task.gradients = order->from_draws ? boost->drawn.at : boost->gradients.at;
	task.rows = boost->has_bag ? boost->bag.at : boost->train_rows.at;
	task.ids = boost->ids[0].at;
	task.grads = boost->grads[0].at;
	task.state = boost->state.at;
	task.n_rows = order->n_rows;
	task.per_g = order->per_g;
	task.per_h = order->per_h;
	task.key = order->rounding_key;
	task.has_equal_hessians = order->has_equal_hessians;
	state.min_h = ~0u;
	AGK_TRY(agk_upload(device, boost->state.at, &state, sizeof(state)));
	AGK_LAUNCH(agk_round, agk_grid(device, order->n_rows, AGK_THREADS), AGK_THREADS, 0,
			   device->stream, task);
	return agk_launched(device, "rounding gradients");
}
