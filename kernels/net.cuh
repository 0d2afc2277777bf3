/*
 * net.cuh - a net in training on the device: its room of floats, its rows, and the kernels of a step.
 */
#ifndef AGK_NET_CUH
#define AGK_NET_CUH

#include "engine/model/net_maths.h"
#include "kernels/boost.cuh"

#define AGK_NET_TILE 16
#define AGK_HALF_CAPABILITY 80 /* from which on there are tensor cores for bfloat16 */

/* What kernels see of a net; by value. */
struct AgkNet
{
	float *room;
	uint16_t *halves; /* the room of bfloat16 */
	const float *numbers;
	const uint16_t *half_numbers; /* instead of numbers */
	const uint32_t *row_slots;
	const AgDeviceNetSlot *slots;
	const uint32_t *train_rows, *order;
	const float *target, *weight;
	const int32_t *class_of;
	const float *quantiles;
	int64_t number_stride, waves;
	int32_t n_numbers, n_slots, n_inputs, input_stride, n_waves, n_wave_inputs, first_wave;
	int32_t n_outputs, n_batch, n_members;
	uint32_t no_column;
	AgDeviceNetLoss loss;
	float smoothing;
	bool bends, in_pieces, has_half;
};

struct AgDeviceNet
{
	AgDeviceNetSpec spec; /* its arrays aren't to be read any more */
	AgDeviceNetOp *ops;   /* [n_ops] the host's */
	AgkArray<float> room, numbers, target, weight, quantiles;
	AgkArray<uint16_t> halves, half_numbers;
	AgkArray<uint32_t> row_slots, train_rows, order;
	AgkArray<int32_t> class_of;
	AgkArray<AgDeviceNetSlot> slots;
	AgkNet view;
};

/* What lies at a place, and what is to lie there. */
static __device__ inline float
agk_net_get(const AgkNet &net, int64_t at)
{
	return at < AG_NET_HALVES ? net.room[at] : ag_net_from_bfloat(net.halves[at - AG_NET_HALVES]);
}

static __device__ inline void
agk_net_put(const AgkNet &net, int64_t at, float x)
{
	if (at < AG_NET_HALVES)
		net.room[at] = x;
	else
		net.halves[at - AG_NET_HALVES] = ag_net_bfloat(x);
}

/* Launches one op of a step. */
void agk_net_launch(AgDevice *device, const AgkNet *net, const AgDeviceNetOp *op,
					const AgDeviceNetStep *step);

/* net_half.cu: a product's, of bfloat16. */
void agk_net_launch_half(AgDevice *device, const AgkNet *net, const AgDeviceNetOp *op);

#endif
