/*
 * percentiles.cu - leaf values where a loss has no curvature: as model/leaves_renew.c and model/percentile.c, to the last bit.
 *
 * The value at a place by weight is found digit by digit of its bits, which order as the numbers do: eight times the weights of the
 * rows that agree so far are added up by their next digit. Sums are of integers.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/loss_maths.h"
#include "kernels/block.cuh"

#define AGK_DIGITS 256

struct RenewTask
{
	AgkGrowth growth;
	const double *target, *weight, *scores;
	uint64_t *keys;   /* [n_train] by place in the lists */
	int64_t *weights; /* likewise; null: all 1 */
	double *values;   /* [max_nodes] by node */
	double scale, level;
	int is_relative;
};

/* A leaf's rows as keys and weights; their weight and how many have some. */
static __device__ void
list_errors(const RenewTask &task, const AgkNode *node, int64_t *total, int64_t *n_weighed)
{
	const uint32_t *ids = task.growth.ids[node->list] + node->begin;
	int64_t sum = 0, n = 0;

	for (int64_t i = threadIdx.x; i < node->n_rows; i += blockDim.x)
	{
		uint32_t row = ids[i];
		int64_t weight = 1;

		task.keys[node->begin + i] = ag_order_bits(task.target[row] - task.scores[row]);
		if (task.weights != nullptr)
		{
			weight = (int64_t) (ag_error_weight(agk_row_weight(task.weight, row), task.target[row],
												task.is_relative) *
								task.scale);
			task.weights[node->begin + i] = weight;
		}
		sum += weight;
		n += weight > 0;
	}
	*total = agk_block_sum(sum);
	*n_weighed = agk_block_sum(n);
	__syncthreads();
}

static __device__ inline int64_t
weight_at(const RenewTask &task, int64_t i)
{
	return task.weights != nullptr ? task.weights[i] : 1;
}

/* The lowest key up to which there is as much weight as wanted, and the weight below it. */
static __device__ uint64_t
find_key(const RenewTask &task, const AgkNode *node, double wanted, int64_t *weight_below)
{
	__shared__ unsigned long long digits[AGK_DIGITS];
	__shared__ int64_t below;
	__shared__ unsigned digit;
	uint64_t prefix = 0, known = 0;

	__syncthreads();
	if (threadIdx.x == 0)
		below = 0;
	for (int shift = 56; shift >= 0; shift -= 8)
	{
		for (unsigned d = threadIdx.x; d < AGK_DIGITS; d += blockDim.x)
			digits[d] = 0;
		__syncthreads();
		for (int64_t i = threadIdx.x; i < node->n_rows; i += blockDim.x)
		{
			uint64_t key = task.keys[node->begin + i];

			if ((key & known) == prefix)
				atomicAdd(digits + (key >> shift & (AGK_DIGITS - 1)),
						  static_cast<unsigned long long>(weight_at(task, node->begin + i)));
		}
		__syncthreads();
		if (threadIdx.x == 0)
		{
			int64_t before = below;
			unsigned d = 0;

			while (d < AGK_DIGITS - 1 &&
				   !((double) (before + static_cast<int64_t>(digits[d])) >= wanted))
				before += static_cast<int64_t>(digits[d++]);
			below = before;
			digit = d;
		}
		__syncthreads();
		prefix |= static_cast<uint64_t>(digit) << shift;
		known |= UINT64_C(255) << shift;
	}
	*weight_below = below;
	return prefix;
}

/* The greatest key below one, of rows with weight; 0: there is none. */
static __device__ uint64_t
greatest_below(const RenewTask &task, const AgkNode *node, uint64_t key)
{
	__shared__ unsigned long long greatest;
	unsigned long long mine = 0;

	__syncthreads();
	if (threadIdx.x == 0)
		greatest = 0;
	__syncthreads();
	for (int64_t i = threadIdx.x; i < node->n_rows; i += blockDim.x)
	{
		uint64_t other = task.keys[node->begin + i];

		if (other < key && other > mine && weight_at(task, node->begin + i) > 0)
			mine = other;
	}
	if (mine > 0)
		atomicMax(&greatest, mine);
	__syncthreads();
	return greatest;
}

/* A block a leaf. */
__global__ void
agk_renew_leaves(RenewTask task)
{
	const AgkGrowth &growth = task.growth;

	for (int l = blockIdx.x; l < growth.state->n_final; l += gridDim.x)
	{
		const AgkNode *node = growth.nodes + growth.final_nodes[l];
		int64_t total, n_weighed, below;
		double mean, wanted, value = 0.0, share;
		uint64_t key, lower;

		list_errors(task, node, &total, &n_weighed);
		if (total > 0)
		{
			mean = (double) total / (double) n_weighed;
			wanted = task.level * ((double) total + mean);
			if (wanted > (double) total)
				wanted = (double) total;
			key = find_key(task, node, wanted, &below);
			lower = greatest_below(task, node, key);
			share = (wanted - (double) below) / mean;
			value = ag_of_order_bits(key);
			if (below != 0 && !(share >= 1.0))
				value = ag_of_order_bits(lower) * (1.0 - share) + value * share;
		}
		if (threadIdx.x == 0)
			task.values[growth.final_nodes[l]] = value;
	}
}

AgDeviceStatus
agk_boost_renew(AgDevice *device, AgDeviceBoost *boost, int output, double scale, double *values)
{
	RenewTask task = {};
	double *by_node;
	AgDeviceStatus status;

	AGK_TRY(agk_enter(device));
	task.growth = boost->growth;
	task.target = boost->target.at;
	task.weight = boost->weight.at;
	task.scores = boost->scores.at + output * boost->matrix->view.n_rows;
	task.keys = boost->error_keys.at;
	task.weights = scale > 0.0 ? boost->error_weights.at : nullptr;
	task.values = boost->values.at;
	task.scale = scale;
	task.level = boost->levels[output];
	task.is_relative = boost->spec.is_relative;
	AGK_LAUNCH(agk_renew_leaves, agk_grid(device, boost->n_leaves, 1), AGK_THREADS, 0,
			   device->stream, task);
	AGK_TRY(agk_launched(device, "finding percentiles"));
	AGK_TRY(agk_new(device, (size_t) boost->growth.max_nodes, &by_node));
	status = agk_download(device, by_node, boost->values.at,
						  boost->growth.max_nodes * (int64_t) sizeof(double));
	for (int32_t l = 0; l < boost->n_leaves; l++)
		values[l] = by_node[boost->host_final[l]];
	free(by_node);
	return status;
}
