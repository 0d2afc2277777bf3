/*
 * net_gpu.h - a net's steps on a device, with the bits of the CPU's unless half precision is wanted (private to the nets).
 *
 * The trainer stays what it is: it lays the net out, makes its first weights, and gets the learnt values back whenever they
 * are wanted; rows, weights and moments live on the device in between.
 */
#ifndef AG_NET_GPU_H
#define AG_NET_GPU_H

#include "engine/base/device.h"
#include "engine/model/net_train.h"

#define AG_NET_GPU_STEPS 32 /* handed over at a time, at most */

/* All zero: there is none. */
typedef struct AgNetGpu
{
	AgGpu *gpu;
	AgDeviceNet *net;
	AgDeviceNetStep steps[AG_NET_GPU_STEPS];
	int n_steps; /* not handed over yet */
	int most_steps; /* at a time: fewer of a net that takes long for one, for nobody looks after a cancel in between */
	bool has_failed; /* the device, not the fit: train again on the CPU */
	char why[300];
	int64_t bytes_before;               /* that the device held before the net came */
	bool in_half;                       /* products are of bfloat16 */
	char half_because[200];             /* why not, where that was wanted */
	int64_t at_input_scale, at_numbers; /* places in the room */
	int64_t at_running[AG_NET_MAX_LAYERS +
					   1]; /* of each layer's running mean; its running square comes behind */
} AgNetGpu;

/*
 * Takes a trainer, as initialised, to ctx->gpu. When that can't be, *gpu has no net but a why, and AG_OK is returned all the
 * same: the CPU does it.
 */
AgStatus ag_net_gpu_create(const AgContext *ctx, AgNetTrainer *trainer, AgNetGpu *gpu);
void ag_net_gpu_free(AgNetGpu *gpu);
/* The order of the rows until the next call: places[n_train] in data->train_rows. */
AgStatus ag_net_gpu_order(const AgContext *ctx, AgNetGpu *gpu, const uint32_t *places);
/* A step on the batch that begins at `first` in that order, by the trainer's parameters as they are now. It may be handed over later. */
AgStatus ag_net_gpu_step(const AgContext *ctx, AgNetGpu *gpu, const AgNetTrainer *trainer,
						 int64_t first, uint64_t dropout_key);
/* What was learnt, into the trainer, as ag_net_fold wants it; hands over all steps before. */
AgStatus ag_net_gpu_fetch(const AgContext *ctx, AgNetGpu *gpu, AgNetTrainer *trainer);

#endif
