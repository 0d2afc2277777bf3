/*
 * bins_gpu.h - columns of numbers that are binned on a device, where that is faster (private to the data room).
 *
 * Its bins are the CPU's, byte for byte, so that a clock may say where a column goes: each side is tried, and while the device is free
 * and the faster one, it takes the next column. Threads that find it taken go on by themselves.
 */
#ifndef AG_BINS_GPU_H
#define AG_BINS_GPU_H

#include "engine/data/bins.h"

/* So many cells at least are worth the trouble: what binning takes a CPU some hundredths of a second for. */
#define AG_BINS_GPU_LEAST (INT64_C(4) << 20)

/*
 * From here to ag_bins_gpu_end ag_bins_set_feature may use ctx's gpu, if it has one that bins and there is room; whatever fails there is
 * done on the CPU. The gpu is nobody else's meanwhile. Without memory for it nothing changes.
 */
void ag_bins_gpu_begin(const AgContext *ctx, AgBins *bins, const AgBinParams *params);
/* Says, where resources are told of, what was binned where. Main thread only; bins may be NULL. */
void ag_bins_gpu_end(const AgContext *ctx, AgBins *bins);

/*
 * Sets feature and column from values[n] on the device, cuts from the first n_sample. False: do it yourself (the feature may have
 * cuts already); true: it is done, or *status says what failed.
 */
bool ag_bins_gpu_numbers(const AgContext *ctx, struct AgBinsGpu *gpu, const double *values,
						 int64_t n, int64_t n_sample, int max_bins, int min_data_in_bin,
						 AgBinFeature *feature, uint8_t *column, AgStatus *status);
/* How long a column of numbers took the CPU. */
void ag_bins_gpu_note_cpu(struct AgBinsGpu *gpu, int64_t ns);

#endif
