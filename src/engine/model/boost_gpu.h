/*
 * boost_gpu.h - a booster's trees grown on a device. Same bytes as on the CPU.
 */
#ifndef AG_BOOST_GPU_H
#define AG_BOOST_GPU_H

#include "engine/base/device.h"
#include "engine/model/bootstrap.h"
#include "engine/model/grow.h"
#include "engine/model/leaves_step.h"
#include "engine/model/objective.h"

/* A booster on a device. All zero: there is none. */
typedef struct AgBoostGpu
{
	AgGpu *gpu;
	AgDeviceBoost *boost;
	const AgBins *bins,
		*grown_on; /* what the copies are of that it uses: its own, and the tree's in work */
	AgDeviceMatrix *matrix, *grown_matrix;
	AgDeviceTree tree;
	AgGrower *grower; /* of the tree in work */
	int64_t *sums;    /* [max_leaves][2] */
	AgDeviceMetric
		metric; /* that the device computes; none: validation scores come back every round */
	bool renews_leaves;
	bool sums_weights;  /* leaf values by weights */
	double error_scale; /* of errors' weights in renewed leaves; 0: all alike */
	float most_weight;  /* of the train rows, with sums_weights */
	bool has_failed;    /* the device, not the fit: train again on the CPU */
	char why[300];      /* why it can't be trained on the device, or failed there */
} AgBoostGpu;

/* One tree's part of the work. */
typedef struct AgGpuTree
{
	int output;
	const uint32_t *bag; /* NULL: all train rows */
	int64_t n_bag;
	bool has_equal_hessians;
	uint64_t rounding_key, growth_key, draw_key;
} AgGpuTree;

/*
 * Takes the booster to ctx->gpu. When that can't be (parameters, memory), *gpu has no boost but a why, and AG_OK is returned all the same:
 * the CPU does it.
 */
AgStatus ag_boost_gpu_create(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
							 AgGrower *grower, const AgBootstrap *bootstrap, AgBoostGpu *gpu);
void ag_boost_gpu_free(const AgContext *ctx, AgBoostGpu *gpu);

/*
 * Gradients of one output, drawn where bootstrap->kind says so; sets range (of all rows), quantum's steps, and
 * bootstrap->size_g. False in *has_gain: there is nothing to gain.
 */
AgStatus ag_boost_gpu_begin(const AgContext *ctx, AgBoostGpu *gpu, const AgGpuTree *tree,
							AgBootstrap *bootstrap, bool has_draws, AgGradientRange *range,
							AgQuantum *quantum, bool *has_gain);
/* Grows the tree into the grower's nodes and leaves, and the leaves' sums into leaves. */
AgStatus ag_boost_gpu_grow(const AgContext *ctx, AgBoostGpu *gpu, const AgGpuTree *tree,
						   const AgSplitRules *rules, const AgLoss *loss,
						   const AgGradientRange *range, const AgQuantum *quantum, bool has_draws,
						   AgLeaves *leaves);
/*
 * The leaves' values from those sums, by as many steps as params asks for; steps: counts only with several. As
 * ag_leaves_step.
 */
AgStatus ag_boost_gpu_values(const AgContext *ctx, AgBoostGpu *gpu, int output, const AgLoss *loss,
							 const AgGradientRange *range, const AgQuantum *quantum,
							 const AgBoostParams *params, AgLeaves *leaves, AgLeafSteps *steps);
/* Adds the tree grown last to all scores. */
AgStatus ag_boost_gpu_add(const AgContext *ctx, AgBoostGpu *gpu, int output, const double *values);
/* The validation rows' scores[n_valid][n_outputs]. */
AgStatus ag_boost_gpu_valid(const AgContext *ctx, AgBoostGpu *gpu, double *scores);
/* With gpu->metric: the metric's value; keeps the scores as the best so far; those that were kept. */
AgStatus ag_boost_gpu_metric(const AgContext *ctx, AgBoostGpu *gpu, AgMetric metric, double *value);
AgStatus ag_boost_gpu_keep(const AgContext *ctx, AgBoostGpu *gpu);
AgStatus ag_boost_gpu_kept(const AgContext *ctx, AgBoostGpu *gpu, double *scores);

#endif
