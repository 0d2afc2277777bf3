/*
 * device.cu - opening a device, its memory, and what becomes of CUDA's errors.
 *
 * A full memory is an answer like any other. Every other error of CUDA may stick to the context: the device is lost to this
 * fit, and only a reset brings it back, which closing does.
 */
#include "kernels/device.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ag_cuda.h"

#define AGK_ALIGNMENT 256 /* of cudaMalloc: what a small allocation takes at least */
#define AGK_MOST_SHARED                                                                            \
	(100 << 10) /* so that two blocks share a multiprocessor where there is more */

AgDeviceStatus
agk_failed(AgDevice *device, cudaError_t error, const char *what)
{
	(void) cudaGetLastError();
	if (error == cudaErrorMemoryAllocation)
	{
		snprintf(device->why, sizeof(device->why), "the memory of GPU %d is full (%s)",
				 device->index, what);
		return AG_DEVICE_MEMORY;
	}
	device->is_lost = true;
	snprintf(device->why, sizeof(device->why), "GPU %d failed while %s: %s (error %d)",
			 device->index, what, cudaGetErrorString(error), (int) error);
	return AG_DEVICE_LOST;
}

AgDeviceStatus
agk_enter(AgDevice *device)
{
	cudaError_t error;

	if (device->is_lost)
		return AG_DEVICE_LOST;
	error = cudaSetDevice(device->index);
	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "being used");
}

AgDeviceStatus
agk_refuse(AgDevice *device, const char *what)
{
	snprintf(device->why, sizeof(device->why), "%s", what);
	return AG_DEVICE_UNSUPPORTED;
}

static int64_t
rounded(int64_t n_bytes)
{
	return (n_bytes + AGK_ALIGNMENT - 1) / AGK_ALIGNMENT * AGK_ALIGNMENT;
}

AgDeviceStatus
agk_get_bytes(AgDevice *device, int64_t n_bytes, void **at)
{
	cudaError_t error;

	*at = nullptr;
	if (device->is_lost)
		return AG_DEVICE_LOST;
	if (n_bytes > device->limit_bytes - device->used_bytes - AGK_ALIGNMENT)
	{
		snprintf(device->why, sizeof(device->why),
				 "%.1f MB more would pass this fit's share of GPU %d, %.1f MB",
				 (double) n_bytes / 1e6, device->index, (double) device->limit_bytes / 1e6);
		return AG_DEVICE_MEMORY;
	}
	error = cudaMalloc(at, (size_t) n_bytes);
	if (error != cudaSuccess)
	{
		*at = nullptr;
		return agk_failed(device, error, "allocating memory");
	}
	device->used_bytes += rounded(n_bytes);
	if (device->used_bytes > device->peak_bytes)
		device->peak_bytes = device->used_bytes;
	return AG_DEVICE_OK;
}

void
agk_give_bytes(AgDevice *device, void *at, int64_t n_bytes)
{
	if (at == nullptr)
		return;
	device->used_bytes -= rounded(n_bytes);
	(void) cudaSetDevice(device->index);
	if (cudaFree(at) != cudaSuccess)
		(void) cudaGetLastError(); /* of a lost device: its memory goes with the context */
}

AgDeviceStatus
agk_upload(AgDevice *device, void *to, const void *from, int64_t n_bytes)
{
	cudaError_t error;

	if (n_bytes <= 0)
		return AG_DEVICE_OK;
	error = cudaMemcpyAsync(to, from, (size_t) n_bytes, cudaMemcpyHostToDevice, device->stream);
	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "copying data there");
}

AgDeviceStatus
agk_download(AgDevice *device, void *to, const void *from, int64_t n_bytes)
{
	cudaError_t error;

	if (n_bytes <= 0)
		return AG_DEVICE_OK;
	error = cudaMemcpyAsync(to, from, (size_t) n_bytes, cudaMemcpyDeviceToHost, device->stream);
	if (error != cudaSuccess)
		return agk_failed(device, error, "copying data back");
	return agk_wait(device);
}

AgDeviceStatus
agk_copy(AgDevice *device, void *to, const void *from, int64_t n_bytes)
{
	cudaError_t error =
		cudaMemcpyAsync(to, from, (size_t) n_bytes, cudaMemcpyDeviceToDevice, device->stream);

	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "copying data");
}

AgDeviceStatus
agk_clear(AgDevice *device, void *at, int64_t n_bytes)
{
	cudaError_t error;

	if (n_bytes <= 0)
		return AG_DEVICE_OK;
	error = cudaMemsetAsync(at, 0, (size_t) n_bytes, device->stream);
	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "clearing memory");
}

AgDeviceStatus
agk_wait(AgDevice *device)
{
	cudaError_t error = cudaStreamSynchronize(device->stream);

	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, "computing");
}

AgDeviceStatus
agk_launched(AgDevice *device, const char *what)
{
	cudaError_t error = cudaGetLastError();

	return error == cudaSuccess ? AG_DEVICE_OK : agk_failed(device, error, what);
}

static cudaError_t
look_at(AgDevice *device)
{
	int n_processors = 0, shared_bytes = 0, major = 0, minor = 0;
	cudaError_t error =
		cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device->index);

	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
									   device->index);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->index);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device->index);
	if (error != cudaSuccess)
		return error;
	device->capability = 10 * major + minor;
	device->n_blocks = 2 * (n_processors > 0 ? n_processors : 1);
	device->shared_bytes =
		(size_t) (shared_bytes < AGK_MOST_SHARED ? shared_bytes : AGK_MOST_SHARED);
	return cudaSuccess;
}

/* Of each GPU, those that are open: one a training that runs on it. They are opened and closed by one thread. */
static int n_open[AG_CUDA_MAX_DEVICES];

static AgDeviceStatus
device_open(int index, int64_t limit_bytes, AgDevice **opened, char *why, int why_size)
{
	AgDevice *device = static_cast<AgDevice *>(calloc(1, sizeof(AgDevice)));
	cudaError_t error;
	AgDeviceStatus status;

	*opened = nullptr;
	if (device == nullptr)
	{
		snprintf(why, (size_t) why_size, "out of memory");
		return AG_DEVICE_MEMORY;
	}
	device->index = index;
	device->limit_bytes = limit_bytes;
	error = cudaSetDevice(index);
	if (error == cudaSuccess)
		error = look_at(device);
	if (error == cudaSuccess)
		error = cudaStreamCreate(&device->stream);
	if (error == cudaSuccess)
	{
		if (index >= 0 && index < AG_CUDA_MAX_DEVICES)
			n_open[index]++;
		*opened = device;
		return AG_DEVICE_OK;
	}
	status = agk_failed(device, error, "being opened");
	snprintf(why, (size_t) why_size, "%s", device->why);
	free(device);
	return status;
}

/*
 * A reset gives the context's memory back and clears what sticks to it, but takes all streams on the GPU with it: it is for the last one
 * that is open there.
 */
static void
device_close(AgDevice *device)
{
	if (device == nullptr)
		return;
	(void) cudaSetDevice(device->index);
	(void) cudaStreamDestroy(device->stream);
	if (device->index < 0 || device->index >= AG_CUDA_MAX_DEVICES || --n_open[device->index] <= 0)
		(void) cudaDeviceReset();
	(void) cudaGetLastError();
	free(device);
}

static void
device_memory(AgDevice *device, AgDeviceMemory *memory)
{
	size_t free_bytes = 0, total_bytes = 0;

	if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
	{
		(void) cudaGetLastError();
		free_bytes = total_bytes = 0;
	}
	memory->total_bytes = (int64_t) total_bytes;
	memory->free_bytes = (int64_t) free_bytes;
	memory->limit_bytes = device->limit_bytes;
	memory->used_bytes = device->used_bytes;
	memory->peak_bytes = device->peak_bytes;
}

static const char *
device_why(AgDevice *device)
{
	return device->why;
}

const AgDeviceOps agk_ops = {
	AG_DEVICE_ABI,       "cuda",
	device_open,         device_close,
	device_memory,       device_why,
	agk_matrix_create,   agk_matrix_free,
	agk_matrix_layout,   agk_bin_create,
	agk_bin_free,        agk_bin_sort,
	agk_bin_assign,      agk_boost_memory,
	agk_boost_create,    agk_boost_free,
	agk_boost_gradients, agk_boost_draw,
	agk_boost_grow,      agk_boost_step,
	agk_boost_sums,      agk_boost_renew,
	agk_boost_unstep,    agk_boost_add,
	agk_boost_valid,     agk_boost_metric,
	agk_boost_keep,      agk_boost_kept,
	agk_forest_memory,   agk_forest_create,
	agk_forest_free,     agk_forest_grow,
	agk_forest_tree,     agk_forest_fetch,
	agk_forest_leaves,   agk_net_create,
	agk_net_free,        agk_net_write,
	agk_net_read,        agk_net_order,
	agk_net_steps,       agk_knn_create,
	agk_knn_free,        agk_knn_search,
	agk_linear_create,   agk_linear_free,
	agk_linear_sum,      agk_linear_products,
};
