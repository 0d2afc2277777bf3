/*
 * bins_gpu.c - columns of numbers that are binned on a device.
 *
 * A value goes there as 8 bytes and comes back as one, which takes about a nanosecond; a CPU takes two to seven, and more for
 * the sorting of the sample. Which of them is ahead depends on the machine, and on how many threads bin: it is measured.
 */
#include "engine/data/bins_gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/device.h"
#include "engine/data/bins_private.h"

#define TRIES 2 /* the first column there also loads the kernels */

typedef struct AgBinsGpu
{
	AgMem *mem;
	AgGpu *gpu;
	pthread_mutex_t lock; /* of all below but least_cpu: one column at a time */
	AgDeviceBinner *binner;
	uint64_t *keys; /* [n_sample] */
	int64_t n_sample;
	int64_t least_gpu; /* nanoseconds that a column took */
	int n_columns;
	bool is_off;
	char why[256]; /* is_off: what failed */
	_Atomic int64_t least_cpu;
	_Atomic int n_on_cpu;
} AgBinsGpu;

/* False: it failed there, and is for the CPU, as all that follow are. */
static bool
is_done(AgBinsGpu *gpu, AgDeviceStatus done)
{
	if (done == AG_DEVICE_OK)
		return true;
	gpu->is_off = true;
	gpu->gpu->is_lost = gpu->gpu->is_lost || done == AG_DEVICE_LOST;
	snprintf(gpu->why, sizeof gpu->why, "%s", gpu->gpu->ops->why(gpu->gpu->device));
	return false;
}

void
ag_bins_gpu_begin(const AgContext *ctx, AgBins *bins, const AgBinParams *params)
{
	AgGpu *gpu = ctx->gpu;
	AgBinsGpu *made;
	int64_t n_sample = params->sample_rows > 0 && params->sample_rows < bins->n_rows
						   ? params->sample_rows
						   : bins->n_rows;

	if (gpu == NULL || gpu->is_lost || gpu->ops->bin_create == NULL || n_sample < 1)
		return;
	made = ag_mem_zalloc(ctx->mem, 1, sizeof *made);
	if (made == NULL)
		return;
	made->mem = ctx->mem;
	made->gpu = gpu;
	made->n_sample = n_sample;
	made->keys = ag_mem_alloc(ctx->mem, (size_t) n_sample, sizeof *made->keys);
	if (made->keys != NULL &&
		is_done(made, gpu->ops->bin_create(gpu->device, bins->n_rows, n_sample, &made->binner)))
	{
		pthread_mutex_init(&made->lock, NULL);
		bins->gpu = made;
		return;
	}
	if (made->is_off)
		ag_log(ctx, AG_LOG_RESOURCES, "Columns are binned on the CPU: %s", made->why);
	ag_mem_free(ctx->mem, made->keys);
	ag_mem_free(ctx->mem, made);
}

void
ag_bins_gpu_end(const AgContext *ctx, AgBins *bins)
{
	AgBinsGpu *gpu = bins != NULL ? bins->gpu : NULL;

	if (gpu == NULL)
		return;
	bins->gpu = NULL;
	if (gpu->is_off)
		ag_log(ctx, AG_LOG_RESOURCES, "Columns are binned on the CPU: %s", gpu->why);
	else
		ag_log(ctx, AG_LOG_RESOURCES,
			   "Binned %d columns of numbers on %s (%.2f ms one), %d on the CPU (%.2f ms one)",
			   gpu->n_columns, gpu->gpu->name, (double) gpu->least_gpu * 1e-6,
			   atomic_load(&gpu->n_on_cpu), (double) atomic_load(&gpu->least_cpu) * 1e-6);
	gpu->gpu->ops->bin_free(gpu->gpu->device, gpu->binner);
	pthread_mutex_destroy(&gpu->lock);
	ag_mem_free(gpu->mem, gpu->keys);
	ag_mem_free(gpu->mem, gpu);
}

void
ag_bins_gpu_note_cpu(AgBinsGpu *gpu, int64_t ns)
{
	int64_t least = atomic_load(&gpu->least_cpu);

	atomic_fetch_add(&gpu->n_on_cpu, 1);
	while ((least == 0 || ns < least) &&
		   !atomic_compare_exchange_weak(&gpu->least_cpu, &least, ns > 0 ? ns : 1))
		;
}

/* Is the next column for the device? */
static bool
is_ahead(AgBinsGpu *gpu)
{
	int64_t cpu = atomic_load(&gpu->least_cpu);

	if (gpu->is_off)
		return false;
	/* first the device, then the CPU: what is ahead is known after three columns */
	return gpu->n_columns < TRIES || (cpu > 0 && gpu->least_gpu <= cpu);
}

static bool
bin_there(const AgContext *ctx, AgBinsGpu *gpu, const double *values, int64_t n, int64_t n_sample,
		  int max_bins, int min_data_in_bin, AgBinFeature *feature, uint8_t *column,
		  AgStatus *status)
{
	const AgDeviceOps *ops = gpu->gpu->ops;
	AgDevice *device = gpu->gpu->device;
	int64_t n_keys = 0, began = ag_clock_ns(), took;

	if (!is_done(gpu, ops->bin_sort(device, gpu->binner, values, n_sample, gpu->keys, &n_keys)))
		return false;
	*status = ag_bins_set_cuts(ctx, gpu->keys, n_keys, max_bins, min_data_in_bin, feature);
	if (*status != AG_OK)
		return true;
	if (feature->n_bins == 1 && n_sample < n)
		return false; /* all rows must be looked at */
	if (!is_done(gpu, ops->bin_assign(device, gpu->binner, values, n, feature->cuts,
									  feature->n_bins - 1, column)))
		return false;
	took = ag_clock_ns() - began;
	gpu->n_columns++;
	if (gpu->least_gpu == 0 || took < gpu->least_gpu)
		gpu->least_gpu = took > 0 ? took : 1;
	return true;
}

bool
ag_bins_gpu_numbers(const AgContext *ctx, AgBinsGpu *gpu, const double *values, int64_t n,
					int64_t n_sample, int max_bins, int min_data_in_bin, AgBinFeature *feature,
					uint8_t *column, AgStatus *status)
{
	bool done = false;

	*status = AG_OK;
	if (n_sample > gpu->n_sample || pthread_mutex_trylock(&gpu->lock) != 0)
		return false;
	if (is_ahead(gpu))
		done = bin_there(ctx, gpu, values, n, n_sample, max_bins, min_data_in_bin, feature, column,
						 status);
	pthread_mutex_unlock(&gpu->lock);
	return done;
}
