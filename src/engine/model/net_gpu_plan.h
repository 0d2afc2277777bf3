/*
 * net_gpu_plan.h - a net's training step as a list of operations over one room of floats (private to the nets).
 */
#ifndef AG_NET_GPU_PLAN_H
#define AG_NET_GPU_PLAN_H

#include "engine/model/net_gpu.h"

/* Where a layer's arrays are; -1: nowhere. */
typedef struct AgNetRoom
{
	int64_t post, slope, delta, back, hat, keep, mean, scale, sum_delta, sum_hat, running;
} AgNetRoom;

typedef struct AgNetPlan
{
	AgNetTrainer *t;
	AgDeviceNetOp *ops; /* NULL: they are counted only */
	AgDeviceNetOp counted;
	int n_ops;
	bool
		in_half; /* factors of products, and what layers keep of a batch, are in the room of bfloat16 */
	int64_t n_floats, n_halves, mean, square, gradient;
	int64_t input_scale, scale_mean, scale_square, scale_gradient, effective;
	int64_t inputs, input_deltas, input_keep, spread, spread_deltas;
	AgNetRoom layers[AG_NET_MAX_LAYERS + 1];
	AgNetRoom numbers;
} AgNetPlan;

/* Places for all that the trainer has in arrays of its own; the learnt values begin at 0. plan has t and in_half, else zeros. */
void ag_net_plan_place(AgNetPlan *plan);
/* The ops of a step into plan->ops; where that is NULL, they are counted only. */
void ag_net_plan_ops(AgNetPlan *plan);
/* So many steps as take a tenth of a second, for a GPU of a few TFlops in single precision. */
int ag_net_plan_steps(const AgNetPlan *plan);

#endif
