/*
 * bins_device.h - copies of the binned matrix on devices: one a device, made when first asked for, gone with the matrix. All
 * models, folds and levels that are trained on a device share it, those that run at the same time too. Where memory is too short for
 * all rows at a time, each training at the same time has a copy of its own.
 */
#ifndef AG_BINS_DEVICE_H
#define AG_BINS_DEVICE_H

#include "engine/base/device.h"
#include "engine/data/bins.h"

/*
 * The copy on gpu, which leaves spare_bytes for what is about to be taken beside it (AgDeviceBins; 0: nothing is). Copies in gpu's share
 * that nobody uses make room for it. bins has its row-major copy and isn't changed afterwards. AG_DEVICE_MEMORY when host or device is
 * full; then *matrix is NULL. A copy takes the share of the first gpu of its device, which must outlive bins. Threads may call it at
 * the same time, each with a gpu of its own: the others wait for the first one's upload. Stays until ag_bins_let_go.
 */
AgDeviceStatus ag_bins_on_device(const AgContext *ctx, const AgBins *bins, AgGpu *gpu,
								 int64_t spare_bytes, AgDeviceMatrix **matrix);
/* Once for each of those; NULL is allowed. The copy stays for the next one who asks, as long as there is room. */
void ag_bins_let_go(const AgBins *bins, const AgDeviceMatrix *matrix);

/* What there is of the matrix, for estimates. */
AgDeviceShape ag_bins_shape(const AgBins *bins);

/* Says, where resources are told of, what a model needs of the device beside the matrix: before it is taken. */
void ag_bins_tell_need(const AgContext *ctx, const AgGpu *gpu, const AgDeviceMatrix *matrix,
					   int64_t model_bytes);

/* Gives all copies back, which nobody may be using; ag_bins_free does so first. Their gpus are the caller's meanwhile. */
void ag_bins_leave_devices(AgBins *bins);

#endif
