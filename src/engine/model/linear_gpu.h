/*
 * linear_gpu.h - a linear model's passes over its rows on a device, with the bits of the CPU's (private to the LR family).
 */
#ifndef AG_LINEAR_GPU_H
#define AG_LINEAR_GPU_H

#include "engine/base/context.h"
#include "engine/base/device.h"

struct AgLinearProblem;

/* All zero: there is none. */
typedef struct AgLinearGpu
{
	AgGpu *gpu;
	AgDeviceLinear *linear;
	bool has_failed; /* the device, not the fit: train again on the CPU */
	char why[300];
} AgLinearGpu;

/*
 * Takes a problem whose sum is set up to ctx->gpu, into problem->gpu. When that can't be, that has no linear but a why, and AG_OK is returned all
 * the same: the CPU does it.
 */
AgStatus ag_linear_gpu_create(struct AgLinearProblem *problem);
void ag_linear_gpu_free(struct AgLinearProblem *problem);
/* problem->losses[n_parts] and the parts' sum at problem->x into gradient[n_values]. AG_ERR_TIME as ag_linear_sum; AG_ERR_SYSTEM: has_failed. */
AgStatus ag_linear_gpu_sum(struct AgLinearProblem *problem, double *gradient);
/* linear_gram.c's products of all rows: [size][size]. Likewise. */
AgStatus ag_linear_gpu_products(struct AgLinearProblem *problem, const AgDeviceProducts *order,
								double *products);

#endif
