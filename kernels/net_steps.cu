/*
 * net_steps.cu - the ops of a net's training step (engine/base/device.h says what each computes).
 *
 * Every sum is one thread's, in the order that the engine's loops have; where these keep sixteen partial sums, so does the thread. Single
 * precision throughout: additions, multiplications, divisions and square roots are rounded as IEEE 754 says, products are chains of
 * fused multiply-adds, and the functions are those of model/net_maths.h. So the bits are the CPU's.
 */
#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/net_maths.h"
#include "kernels/net.cuh"

#define LANES 16
#define TWO_PI 6.28318531f
#define NORM_EPS 1e-5f
#define NORM_MOMENTUM 0.1f
#define DROP_LEVELS 65536.0f

static __device__ inline int64_t
thread_of_all()
{
	return (int64_t) blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline int64_t
all_threads()
{
	return (int64_t) gridDim.x * blockDim.x;
}

/* Dropout's factor of a cell: four cells share a counter; n is the columns that are drawn for. */
static __device__ inline float
drop_factor(const AgDeviceNetStep &step, uint32_t below, int32_t index, int64_t row, int32_t n,
			int32_t column)
{
	uint64_t bits = ag_random_u64(ag_key(step.dropout_key, (uint64_t) index),
								  (uint64_t) (row * (n / 4) + column / 4));
	uint32_t part = (uint32_t) (bits >> (16 * (column % 4))) & 0xffffu;

	return part < below ? 0.0f : DROP_LEVELS / (DROP_LEVELS - (float) below);
}

/* ---- inputs ---- */

static __device__ inline float
wave_of(const AgkNet &net, int k, float u)
{
	return net.in_pieces ? ag_net_piece(u, (uint32_t) k, (uint32_t) net.n_waves) : ag_net_cos2pi(u);
}

static __device__ void
wave_inputs(const AgkNet &net, int number, float x, float *out)
{
	const float *w = net.room + net.waves +
					 (int64_t) number * (net.n_waves * (2 + net.n_wave_inputs) +
										 (net.n_wave_inputs + 15) / 16 * 16);
	const float *phases = w + net.n_waves, *sums = phases + net.n_waves;
	const float *bias = sums + net.n_waves * net.n_wave_inputs;

	for (int o = 0; o < net.n_wave_inputs; o++)
		out[o] = bias[o];
	for (int j = 0; j < net.n_waves; j++)
	{
		float wave = wave_of(net, j, w[j] * x + phases[j]);

		for (int o = 0; o < net.n_wave_inputs; o++)
			out[o] = out[o] + sums[o * net.n_waves + j] * wave;
	}
}

static __device__ void
slot_inputs(const AgkNet &net, const AgDeviceNetSlot &slot, uint32_t column, float *x)
{
	column = column == net.no_column ? slot.width : column - slot.first_column;
	if (slot.embedding >= 0)
	{
		const float *from = net.room + slot.embedding + (int64_t) column * slot.n_inputs;

		for (uint32_t i = 0; i < slot.n_inputs; i++)
			x[slot.first_input + i] = from[i];
	}
	else if (column < slot.width)
		x[slot.first_input + column] = 1.0f;
}

/* A warp a row. */
__global__ void
agk_net_input(AgkNet net, AgDeviceNetOp op, AgDeviceNetStep step)
{
	int lane = (int) (threadIdx.x % 32);

	for (int64_t i = thread_of_all() / 32; i < op.n_rows; i += all_threads() / 32)
	{
		int64_t row = net.train_rows[net.order[step.first + i]];
		float *x = net.room + op.a + i * net.input_stride;

		for (int j = lane; j < net.input_stride; j += 32)
			x[j] = 0.0f;
		__syncwarp();
		for (int j = lane; j < net.n_numbers; j += 32)
		{
			int64_t at = row * net.number_stride + j;
			float z = net.half_numbers != nullptr ? ag_net_from_bfloat(net.half_numbers[at])
												  : net.numbers[at];

			x[j] = net.bends ? ag_net_bend(z) : z;
			if (net.n_waves > 0)
				wave_inputs(net, j, x[j], x + net.first_wave + (int64_t) j * net.n_wave_inputs);
		}
		for (int s = lane; s < net.n_slots; s += 32)
			slot_inputs(net, net.slots[s], net.row_slots[row * net.n_slots + s], x);
	}
}

/* ---- cell by cell ---- */

static __device__ inline float
activation_of(int kind, float x)
{
	switch (kind)
	{
		case AG_ACT_RELU:
			return x > 0.0f ? x : 0.0f;
		case AG_ACT_ELU:
			return ag_net_elu(x);
		case AG_ACT_TANH:
			return ag_net_tanh(x);
		case AG_ACT_SELU:
			return ag_net_selu(x);
		case AG_ACT_MISH:
			return ag_net_mish(x);
		default:
			return x;
	}
}

static __device__ inline float
slope_of(int kind, float x)
{
	switch (kind)
	{
		case AG_ACT_RELU:
			return x > 0.0f ? 1.0f : 0.0f;
		case AG_ACT_ELU:
			return ag_net_elu_slope(x);
		case AG_ACT_TANH:
			return ag_net_tanh_slope(x);
		case AG_ACT_SELU:
			return ag_net_selu_slope(x);
		case AG_ACT_MISH:
			return ag_net_mish_slope(x);
		default:
			return 1.0f;
	}
}

static __device__ void
norm_cell(const AgkNet &net, const AgDeviceNetOp &op, const AgDeviceNetStep &step, int64_t i, int j)
{
	int64_t at = op.a + i * op.a_stride + j;
	float hat = (agk_net_get(net, at) - net.room[op.c + j]) * net.room[op.d + j];
	float value = net.room[op.e + j] * hat + net.room[op.f + j];

	agk_net_put(net, op.b + i * op.b_stride + j, hat);
	if (op.index >= 0)
	{
		float factor = drop_factor(step, step.drop_below, op.index, i, op.n_columns, j);

		agk_net_put(net, op.more + i * op.a_stride + j, factor);
		value *= agk_net_get(net, op.more + i * op.a_stride + j); /* as it is kept */
	}
	agk_net_put(net, at, value);
}

static __device__ void
norm_back_cell(const AgkNet &net, const AgDeviceNetOp &op, int64_t i, int j)
{
	float share = 1.0f / (float) op.n_rows;
	int64_t at = op.a + i * op.a_stride + j;
	float hat = agk_net_get(net, op.b + i * op.a_stride + j);
	float slope = agk_net_get(net, op.more + i * op.a_stride + j);

	agk_net_put(
		net, at,
		net.room[op.f + j] * net.room[op.d + j] * slope *
			(agk_net_get(net, at) - share * (net.room[op.c + j] + hat * net.room[op.e + j])));
}

static __device__ void
gather_cell(const AgkNet &net, const AgDeviceNetOp &op, int64_t i, int j)
{
	float sum = 0.0f;

	for (int k = 0; k < op.n_lots; k++)
		sum += agk_net_get(net, op.b + ((int64_t) k * op.n_rows + i) * op.b_stride + j) *
			   net.room[op.c + k * op.c_stride + j];
	net.room[op.a + i * op.a_stride + j] = sum;
}

static __device__ void
cell(const AgkNet &net, const AgDeviceNetOp &op, const AgDeviceNetStep &step, int64_t i, int j)
{
	int64_t at = op.a + i * op.a_stride + j;

	switch (op.kind)
	{
		case AG_NET_DO_DROP:
			net.room[at] = j < op.flag ? 1.0f
									   : drop_factor(step, step.input_drop_below, op.index, i,
													 op.n_columns, j);
			break;
		case AG_NET_DO_SCALE:
			agk_net_put(net, at,
						agk_net_get(net, at) * agk_net_get(net, op.b + i * op.b_stride + j));
			break;
		case AG_NET_DO_SPREAD:
			agk_net_put(net, at,
						net.room[op.b + i % op.n_inner * op.b_stride + j] *
							net.room[op.c + i / op.n_inner * op.c_stride + j]);
			break;
		case AG_NET_DO_GATHER:
			gather_cell(net, op, i, j);
			break;
		case AG_NET_DO_ACTIVATE:
		{
			float x = agk_net_get(net, at), factor = 1.0f;
			bool drops = op.index >= 0 && step.drop_below > 0;

			if (drops)
				factor = drop_factor(step, step.drop_below, op.index, i, op.n_columns, j);
			agk_net_put(net, at,
						drops ? activation_of(op.flag, x) * factor : activation_of(op.flag, x));
			agk_net_put(net, op.b + i * op.b_stride + j,
						drops ? slope_of(op.flag, x) * factor : slope_of(op.flag, x));
			break;
		}
		case AG_NET_DO_NORM:
		case AG_NET_DO_NUMBER_NORM:
			norm_cell(net, op, step, i, j);
			break;
		case AG_NET_DO_NORM_BACK:
			norm_back_cell(net, op, i, j);
			break;
		case AG_NET_DO_ROW_SCALE:
			agk_net_put(net, op.c + i * op.c_stride + j, net.room[at] * net.room[op.b + i]);
			break;
		case AG_NET_DO_TRANSPOSE:
			for (int k = 0; k < op.n_lots; k++)
				agk_net_put(net, op.c + k * op.c_lot + j * op.c_stride + i,
							agk_net_get(net, at + k * op.a_lot));
			break;
		default:
			break;
	}
}

/* One thread a cell of n_rows times n_columns. */
__global__ void
agk_net_cells(AgkNet net, AgDeviceNetOp op, AgDeviceNetStep step)
{
	int64_t n = (int64_t) op.n_rows * op.n_columns;

	for (int64_t at = thread_of_all(); at < n; at += all_threads())
		cell(net, op, step, at / op.n_columns, (int) (at % op.n_columns));
}

/* ---- products ---- */

/* A block a tile of 16 x 16; b's columns and c's are a multiple of 16. */
__global__ void
agk_net_product(AgkNet net, AgDeviceNetOp op)
{
	__shared__ float left[AGK_NET_TILE][AGK_NET_TILE + 1], right[AGK_NET_TILE][AGK_NET_TILE];
	int x = (int) threadIdx.x % AGK_NET_TILE, y = (int) threadIdx.x / AGK_NET_TILE;
	int tiles = (op.n_columns + AGK_NET_TILE - 1) / AGK_NET_TILE;
	int64_t lot = blockIdx.y;
	int64_t row = (int64_t) (blockIdx.x / tiles) * AGK_NET_TILE + y;
	int column = (int) (blockIdx.x % tiles) * AGK_NET_TILE + x;
	const float *a = net.room + op.a + lot * op.a_lot, *b = net.room + op.b + lot * op.b_lot;
	float sum = op.d >= 0 ? net.room[op.d + lot * op.d_lot + column] : 0.0f;

	for (int from = 0; from < op.n_inner; from += AGK_NET_TILE)
	{
		int n = op.n_inner - from < AGK_NET_TILE ? op.n_inner - from : AGK_NET_TILE;

		__syncthreads();
		if (x < n && row < op.n_rows)
			left[y][x] = a[row * op.a_stride + (from + x) * op.a_inner];
		if (y < n)
			right[y][x] = b[(from + y) * op.b_stride + column];
		__syncthreads();
		for (int k = 0; k < n && row < op.n_rows; k++)
			sum = fmaf(left[y][k], right[k][x], sum);
	}
	if (row < op.n_rows)
		net.room[op.c + lot * op.c_lot + row * op.c_stride + column] = sum;
}

/* ---- loss ---- */

static __device__ void
loss_classes(const AgkNet &net, const float *z, int32_t class_of, float factor, float *delta)
{
	int n = net.n_outputs;
	float greatest = z[0], total = 0.0f, inverse, rest = net.smoothing / (float) n;

	for (int k = 1; k < n; k++)
		greatest = z[k] > greatest ? z[k] : greatest;
	for (int k = 0; k < n; k++)
		delta[k] = ag_net_exp(z[k] - greatest);
	for (int k = 0; k < n; k++)
		total += delta[k];
	inverse = 1.0f / total;
	for (int k = 0; k < n; k++)
		delta[k] = (delta[k] * inverse - rest) * factor;
	delta[class_of] -= (1.0f - net.smoothing) * factor;
}

static __device__ void
loss_numbers(const AgkNet &net, const float *z, float target, float factor, float *delta)
{
	float d, y;

	switch (net.loss)
	{
		case AG_DEVICE_NET_SQUARED:
			d = z[0] - target;
			delta[0] = 2.0f * d * factor;
			break;
		case AG_DEVICE_NET_RANGE:
			y = (float) ag_sigmoid(z[0]);
			d = y - target;
			delta[0] = (d > 0.0f ? factor : d < 0.0f ? -factor : 0.0f) * y * (1.0f - y);
			break;
		default:
			factor /= (float) net.n_outputs;
			for (int k = 0; k < net.n_outputs; k++)
			{
				d = z[k] - target;
				delta[k] = (d > 0.0f   ? 1.0f - net.quantiles[k]
							: d < 0.0f ? -net.quantiles[k]
									   : 0.0f) *
						   factor;
			}
	}
}

__global__ void
agk_net_loss(AgkNet net, AgDeviceNetOp op, AgDeviceNetStep step)
{
	for (int64_t i = thread_of_all(); i < op.n_rows; i += all_threads())
	{
		uint32_t at = net.order[step.first + i % op.n_inner];
		float weight = net.weight != nullptr ? net.weight[at] : 1.0f;
		float factor = weight / (float) op.n_rows;
		const float *z = net.room + op.a + i * op.a_stride;
		float *delta = net.room + op.b + i * op.b_stride;

		if (net.loss == AG_DEVICE_NET_SOFTMAX)
			loss_classes(net, z, net.class_of[net.train_rows[at]], factor, delta);
		else
			loss_numbers(net, z, net.target[at], factor, delta);
	}
}

/* ---- sums over rows, one thread a column ---- */

static __device__ void
column_stats(const AgkNet &net, const AgDeviceNetOp &op, int j)
{
	float mean = 0.0f, square = 0.0f, share = 1.0f / (float) op.n_rows, v;
	float unbiased = op.n_rows > 1 ? (float) op.n_rows / (float) (op.n_rows - 1) : 1.0f;
	int64_t at = op.a + j;

	for (int64_t i = 0; i < op.n_rows; i++)
		mean += agk_net_get(net, at + i * op.a_stride);
	mean *= share;
	for (int64_t i = 0; i < op.n_rows; i++)
	{
		float d = agk_net_get(net, at + i * op.a_stride) - mean;

		square += d * d;
	}
	v = square * share;
	net.room[op.c + j] = mean;
	net.room[op.e + j] += NORM_MOMENTUM * (mean - net.room[op.e + j]);
	net.room[op.f + j] += NORM_MOMENTUM * (v * unbiased - net.room[op.f + j]);
	net.room[op.d + j] = 1.0f / sqrtf(v + NORM_EPS);
}

static __device__ void
column_norm_sums(const AgkNet &net, const AgDeviceNetOp &op, int j)
{
	float sum = 0.0f, pairs = 0.0f;

	for (int64_t i = 0; i < op.n_rows; i++)
	{
		float d = agk_net_get(net, op.a + i * op.a_stride + j);

		sum += d;
		pairs += d * agk_net_get(net, op.b + i * op.b_stride + j);
	}
	net.room[op.c + j] = sum;
	net.room[op.d + j] = pairs;
}

static __device__ void
column_sums(const AgkNet &net, const AgDeviceNetOp &op, int64_t lot, int j, bool has_pairs)
{
	float sum = 0.0f;

	for (int64_t i = 0; i < op.n_rows; i++)
	{
		float x = agk_net_get(net, op.a + lot * op.a_lot + i * op.a_stride + j);

		sum += has_pairs ? x * net.room[op.b + i * op.b_stride + j] : x;
	}
	net.room[op.c + lot * op.c_lot + j] = sum;
}

/* Each thread has a number of every vector of the slot, whichever a row has. */
static __device__ void
column_embedding(const AgkNet &net, const AgDeviceNetOp &op, const AgDeviceNetStep &step, int j)
{
	const AgDeviceNetSlot &slot = net.slots[op.index];

	for (int64_t i = 0; i < op.n_rows; i++)
	{
		int64_t row = net.train_rows[net.order[step.first + i]];
		uint32_t column = net.row_slots[row * net.n_slots + op.index];

		column = column == net.no_column ? slot.width : column - slot.first_column;
		net.room[op.c + (int64_t) column * slot.n_inputs + j] +=
			net.room[op.a + i * op.a_stride + op.flag + j];
	}
}

__global__ void
agk_net_columns(AgkNet net, AgDeviceNetOp op, AgDeviceNetStep step)
{
	int64_t n = (int64_t) op.n_columns * op.n_lots;

	for (int64_t at = thread_of_all(); at < n; at += all_threads())
	{
		int64_t lot = at / op.n_columns;
		int j = (int) (at % op.n_columns);

		switch (op.kind)
		{
			case AG_NET_DO_STATS:
				column_stats(net, op, j);
				break;
			case AG_NET_DO_NORM_SUMS:
				column_norm_sums(net, op, j);
				break;
			case AG_NET_DO_SUMS:
				column_sums(net, op, lot, j, false);
				break;
			case AG_NET_DO_PAIRS:
				column_sums(net, op, lot, j, true);
				break;
			case AG_NET_DO_EMBEDDING:
				column_embedding(net, op, step, j);
				break;
			default:
				break;
		}
	}
}

/* ---- sums in sixteen lanes ---- */

static __device__ inline float
lanes_sum(const float *lanes)
{
	float sum = 0.0f;

	for (int j = 0; j < LANES; j++)
		sum += lanes[j];
	return sum;
}

/* One thread a row. */
__global__ void
agk_net_dots(AgkNet net, AgDeviceNetOp op)
{
	for (int64_t i = thread_of_all(); i < op.n_rows; i += all_threads())
	{
		float lanes[LANES] = {}, factor = net.room[op.d + i];
		float *x = net.room + op.a + i * op.a_stride;
		const float *y = net.room + op.b + i * op.b_stride;

		for (int j = 0; j < op.n_columns; j++)
			lanes[j % LANES] += x[j] * y[j];
		net.room[op.c + i] = lanes_sum(lanes);
		for (int64_t j = 0; j < op.a_stride; j++)
			x[j] *= factor;
	}
}

/* What one of the sums over a wave runs over, at row i. */
static __device__ float
wave_term(const AgkNet &net, const AgDeviceNetOp &op, int number, int wave, int which, int64_t i)
{
	int n_out = net.n_wave_inputs, n_waves = net.n_waves;
	const float *w =
		net.room + op.b + (int64_t) number * (n_waves * (2 + n_out) + (n_out + 15) / 16 * 16);
	const float *sums = w + 2 * n_waves;
	const float *deltas =
		net.room + op.a + i * op.a_stride + net.first_wave + (int64_t) number * n_out;
	float x = net.room[op.d + i * op.a_stride + number], d = 0.0f, slope;

	if (wave == n_waves)
		return 1.0f * deltas[which];
	if (which >= 2)
		return wave_of(net, wave, w[wave] * x + w[n_waves + wave]) * deltas[which - 2];
	for (int o = 0; o < n_out; o++)
		d += sums[o * n_waves + wave] * deltas[o];
	slope = net.in_pieces
				? ag_net_piece_slope(w[wave] * x + w[n_waves + wave], (uint32_t) wave,
									 (uint32_t) n_waves) *
					  (1.0f * d)
				: ag_net_cos2pi(w[wave] * x + (w[n_waves + wave] - 0.25f)) * (-TWO_PI * d);
	return which == 0 ? slope * x : slope * 1.0f;
}

/* One thread a number, wave and sum: frequencies, phases, then the weights of each input; behind the last wave the biases. */
__global__ void
agk_net_waves(AgkNet net, AgDeviceNetOp op)
{
	int n_out = net.n_wave_inputs, n_waves = net.n_waves;
	int64_t per_number = (int64_t) n_waves * (2 + n_out) + n_out, n = net.n_numbers * per_number;
	int64_t n_values = (int64_t) n_waves * (2 + n_out) + (n_out + 15) / 16 * 16;

	for (int64_t at = thread_of_all(); at < n; at += all_threads())
	{
		int number = (int) (at / per_number), item = (int) (at % per_number);
		int wave = item / n_waves < 2 + n_out ? item % n_waves : n_waves;
		int which = wave < n_waves ? item / n_waves : item - n_waves * (2 + n_out);
		float lanes[LANES] = {};

		for (int64_t i = 0; i < op.n_rows; i++)
			lanes[i % LANES] += wave_term(net, op, number, wave, which, i);
		net.room[op.c + number * n_values + item] = lanes_sum(lanes);
	}
}

/* ---- along the gradient ---- */

/* Kingma and Ba 2015, algorithm 1, as the engine's adam. */
__global__ void
agk_net_adam(AgkNet net, AgDeviceNetOp op, AgDeviceNetStep step)
{
	float rate = step.rate * op.rate, decay = op.flag ? step.decay : 0.0f;
	float shrink = op.flag ? step.shrink : 1.0f;
	float rest1 = 1.0f - step.beta1, rest2 = 1.0f - step.beta2;

	for (int64_t i = thread_of_all(); i < op.n_columns; i += all_threads())
	{
		float *weight = net.room + op.a + i, *mean = net.room + op.c + i,
			  *square = net.room + op.d + i;
		float g = net.room[op.b + i] + decay * *weight;

		*mean = step.beta1 * *mean + rest1 * g;
		*square = step.beta2 * *square + rest2 * g * g;
		*weight = *weight * shrink - rate * *mean / (sqrtf(*square) * step.root + step.eps);
	}
}

__global__ void
agk_net_clear(AgkNet net, AgDeviceNetOp op)
{
	for (int64_t i = thread_of_all(); i < op.n_columns; i += all_threads())
		net.room[op.a + i] = 0.0f;
}

/* ---- which kernel ---- */

#define LAUNCH(kernel, n, ...)                                                                     \
	AGK_LAUNCH(kernel, agk_grid(device, (n), AGK_THREADS), AGK_THREADS, 0, device->stream,         \
			   __VA_ARGS__)

void
agk_net_launch(AgDevice *device, const AgkNet *net, const AgDeviceNetOp *op,
			   const AgDeviceNetStep *step)
{
	int64_t tiles;

	switch (op->kind)
	{
		case AG_NET_DO_INPUT:
			LAUNCH(agk_net_input, 32 * (int64_t) op->n_rows, *net, *op, *step);
			break;
		case AG_NET_DO_PRODUCT:
			if (net->has_half)
			{
				agk_net_launch_half(device, net, op);
				break;
			}
			tiles = (int64_t) ((op->n_rows + AGK_NET_TILE - 1) / AGK_NET_TILE) *
					((op->n_columns + AGK_NET_TILE - 1) / AGK_NET_TILE);
			AGK_LAUNCH(agk_net_product, dim3((unsigned) tiles, (unsigned) op->n_lots), AGK_THREADS,
					   0, device->stream, *net, *op);
			break;
		case AG_NET_DO_LOSS:
			LAUNCH(agk_net_loss, op->n_rows, *net, *op, *step);
			break;
		case AG_NET_DO_STATS:
		case AG_NET_DO_NORM_SUMS:
		case AG_NET_DO_SUMS:
		case AG_NET_DO_PAIRS:
		case AG_NET_DO_EMBEDDING:
			LAUNCH(agk_net_columns, (int64_t) op->n_columns * op->n_lots, *net, *op, *step);
			break;
		case AG_NET_DO_DOTS:
			LAUNCH(agk_net_dots, op->n_rows, *net, *op);
			break;
		case AG_NET_DO_WAVES:
			LAUNCH(agk_net_waves,
				   (int64_t) net->n_numbers * net->n_waves * (3 + net->n_wave_inputs), *net, *op);
			break;
		case AG_NET_DO_ADAM:
			LAUNCH(agk_net_adam, op->n_columns, *net, *op, *step);
			break;
		case AG_NET_DO_CLEAR:
			LAUNCH(agk_net_clear, op->n_columns, *net, *op);
			break;
		default:
			LAUNCH(agk_net_cells, (int64_t) op->n_rows * op->n_columns, *net, *op, *step);
			break;
	}
}
