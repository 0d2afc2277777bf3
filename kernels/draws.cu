/*
 * draws.cu - what is drawn at random: features of nodes, weights of rows. Numbers depend on keys alone, as the engine's do.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/model/bootstrap_maths.h"
#include "engine/model/sample_maths.h"
#include "kernels/search.cuh"

/* ---- features ---- */

/* A thread a child: the tree's features, or a draw of them for its level, or of those for itself. */
__global__ void
agk_draw_child_features(AgkGrowth growth)
{
	int n_features = growth.matrix.n_features, n_children = agk_n_children(growth);

	for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < n_children;
		 index += gridDim.x * blockDim.x)
	{
		int32_t *list = growth.drawn + (int64_t) index * n_features;
		uint8_t *may_use = growth.may_use + (int64_t) index * n_features;
		AgkChild child = agk_child(growth, index / 2, index % 2);
		int n = 0, n_drawn;

		for (int f = 0; f < n_features; f++)
		{
			may_use[f] = 0;
			if (growth.is_used[f])
				list[n++] = f;
		}
		n_drawn = ag_sample_size(growth.fraction_bylevel, n);
		if (growth.fraction_bylevel < 1.0)
		{
			ag_sample_front(ag_key(growth.key, AG_KEY_LEVEL + child.depth), n_drawn, n, list);
			n = n_drawn;
		}
		n_drawn = ag_sample_size(growth.fraction_bynode, n);
		if (growth.fraction_bynode < 1.0)
		{
			ag_sample_front(ag_key(child.key, AG_KEY_NODE), n_drawn, n, list);
			n = n_drawn;
		}
		for (int i = 0; i < n; i++)
			may_use[list[i]] = 1;
	}
}

AgDeviceStatus
agk_draw_features(AgDevice *device, const AgkGrowth *growth)
{
	AGK_LAUNCH(agk_draw_child_features, agk_grid(device, 2 * (int64_t) growth->most_expand, 32), 32,
			   0, device->stream, *growth);
	return agk_launched(device, "drawing features");
}

/* ---- weights of rows ---- */

struct DrawTask
{
	const uint32_t *train_rows;
	const AgkGradient *gradients;
	const double *weight;
	AgkGradient *drawn;
	double *chances, *part_gg;
	AgkState *state;
	int64_t n_train;
	uint64_t key;
	double temperature, share;
	int kind;
};

/*
 * sum plus the lanes' values one after the other, as a loop over rows adds them: sums of doubles keep the engine's order. Every
 * lane gets it.
 */
static __device__ inline double
add_in_order(double sum, double value, int n)
{
	for (int lane = 0; lane < n; lane++)
		sum += __shfl_sync(~0u, value, lane);
	return sum;
}

/* mvs_threshold of the engine, on chances[n]. */
static __device__ double
mvs_threshold(const double *sizes, int n, double share)
{
	double wanted = share * n, threshold = 0.0;
	int n_certain = 0, lane = static_cast<int>(threadIdx.x);

	for (int step = 0; step < AG_MVS_STEPS; step++)
	{
		double sum = 0.0;
		int n_above = 0;

		for (int first = 0; first < n; first += 32)
		{
			int i = first + lane, here = n - first < 32 ? n - first : 32;
			double size = i < n ? sizes[i] : 0.0;
			bool is_above = i < n && step > 0 && size >= threshold;

			n_above += __popc(__ballot_sync(~0u, is_above));
			sum = add_in_order(sum, is_above ? 0.0 : size, here);
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

/* Chances of a part's rows to be drawn. */
static __device__ void
mvs_chances(const DrawTask &task, const uint32_t *rows, int n, double *chances)
{
	double mean = 0.0, threshold;
	int lane = static_cast<int>(threadIdx.x);

	for (int first = 0; first < n; first += 32)
	{
		int i = first + lane, here = n - first < 32 ? n - first : 32;

		mean = add_in_order(mean, i < n ? fabs((double) task.gradients[rows[i]].g) : 0.0, here);
	}
	mean /= n;
	for (int i = lane; i < n; i += 32)
	{
		double g = (double) task.gradients[rows[i]].g;

		chances[i] = sqrt(g * g + mean * mean);
	}
	__syncwarp();
	threshold = mvs_threshold(chances, n, task.share);
	__syncwarp();
	for (int i = lane; i < n; i += 32)
		chances[i] = chances[i] < threshold ? chances[i] / threshold : 1.0;
	__syncwarp();
}

static __device__ void
draw_part(const DrawTask &task, int64_t part)
{
	const uint32_t *rows = task.train_rows + part * AG_PART_ROWS;
	int64_t left = task.n_train - part * AG_PART_ROWS;
	int n = left < AG_PART_ROWS ? (int) left : AG_PART_ROWS, lane = static_cast<int>(threadIdx.x);
	double *chances = task.kind == AG_BOOTSTRAP_MVS ? task.chances + part * AG_PART_ROWS : nullptr;
	double sum_gg = 0.0;
	unsigned max_g = 0, max_h = 0;

	if (chances != nullptr)
		mvs_chances(task, rows, n, chances);
	for (int first = 0; first < n; first += 32)
	{
		int i = first + lane, here = n - first < 32 ? n - first : 32;
		double g = 0.0;

		if (i < n)
		{
			uint32_t row = rows[i];
			double weight = ag_draw_weight(task.kind, task.temperature, task.share, task.key, row,
										   chances != nullptr ? chances[i] : 1.0);
			double own =
				task.weight != nullptr ? (task.weight[row] < 1e30 ? task.weight[row] : 1e30) : 1.0;
			AgkGradient drawn;

			g = (double) task.gradients[row].g;
			drawn.g = (float) (g * weight);
			drawn.h = (float) (own * weight);
			task.drawn[row] = drawn;
			if (__float_as_uint(fabsf(drawn.g)) > max_g && drawn.g == drawn.g)
				max_g = __float_as_uint(fabsf(drawn.g));
			if (drawn.h > 0.0f && __float_as_uint(drawn.h) > max_h)
				max_h = __float_as_uint(drawn.h);
		}
		sum_gg = add_in_order(sum_gg, g * g, here);
	}
	atomicMax(&task.state->max_g, max_g);
	atomicMax(&task.state->max_w, max_h);
	if (lane == 0)
		task.part_gg[part] = sum_gg;
}

/* A warp a part: within it, order matters. */
__global__ void
agk_draw_parts(DrawTask task)
{
	int64_t n_parts = (task.n_train + AG_PART_ROWS - 1) / AG_PART_ROWS;

	for (int64_t part = blockIdx.x; part < n_parts; part += gridDim.x)
		draw_part(task, part);
}

AgDeviceStatus
agk_boost_draw(AgDevice *device, AgDeviceBoost *boost, uint64_t key, AgDeviceRange *range,
			   double *size_g)
{
	const AgDeviceBoostSpec *spec = &boost->spec;
	int64_t n_parts = (spec->n_train + AG_PART_ROWS - 1) / AG_PART_ROWS;
	DrawTask task = {};
	AgkState state;
	double *sums, sum = 0.0;
	AgDeviceStatus status;

	AGK_TRY(agk_enter(device));
	task.train_rows = boost->train_rows.at;
	task.gradients = boost->gradients.at;
	task.weight = boost->weight.at;
	task.drawn = boost->drawn.at;
	task.chances = boost->chances.at;
	task.part_gg = boost->part_gg.at;
	task.state = boost->state.at;
	task.n_train = spec->n_train;
	task.key = key;
	task.temperature = spec->draw_temperature;
	task.share = spec->draw_share;
	task.kind = spec->draw_kind;
	AGK_TRY(agk_clear(device, boost->state.at, sizeof(AgkState)));
	AGK_LAUNCH(agk_draw_parts, agk_grid(device, n_parts * 32, 32), 32, 0, device->stream, task);
	AGK_TRY(agk_launched(device, "drawing rows"));
	AGK_TRY(agk_download(device, &state, boost->state.at, sizeof(state)));
	memcpy(&range->max_g, &state.max_g, sizeof(range->max_g));
	memcpy(&range->max_h, &state.max_w, sizeof(range->max_h));
	sums = static_cast<double *>(malloc((size_t) n_parts * sizeof(double)));
	if (sums == nullptr)
		return AG_DEVICE_MEMORY;
	status = agk_download(device, sums, boost->part_gg.at, n_parts * (int64_t) sizeof(double));
	for (int64_t p = 0; p < n_parts; p++)
		sum += sums[p];
	free(sums);
	*size_g = sqrt(sum / (double) (spec->n_train > 0 ? spec->n_train : 1));
	return status;
}
