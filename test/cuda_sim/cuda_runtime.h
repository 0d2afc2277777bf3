/*
 * cuda_runtime.h - found before CUDA's own by sources compiled for the simulator: as much of the runtime's API as they use,
 * over a machine that the test describes (sim::machine): its driver, its devices, and what goes wrong with them.
 */
#ifndef AG_SIM_CUDA_RUNTIME_H
#define AG_SIM_CUDA_RUNTIME_H

#include <stdio.h>

#include "simt.h"

/* The numbers are CUDA's. */
enum cudaError_t
{
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorStubLibrary = 34,
	cudaErrorInsufficientDriver = 35,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorECCUncorrectable = 214,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorOperatingSystem = 304,
	cudaErrorLaunchFailure = 719,
	cudaErrorSystemNotReady = 802,
	cudaErrorSystemDriverMismatch = 803,
	cudaErrorUnknown = 999
};

enum cudaMemcpyKind
{
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3
};

typedef void *cudaStream_t;

struct cudaUUID_t
{
	char bytes[16];
};

struct cudaDeviceProp
{
	char name[256];
	cudaUUID_t uuid;
	size_t totalGlobalMem;
	int major, minor;
};

namespace sim {
struct Device
{
	cudaDeviceProp properties = {};
	size_t free_bytes = 0;
	cudaError_t open_error = cudaSuccess;   /* cudaSetDevice */
	cudaError_t memory_error = cudaSuccess; /* cudaMalloc */
	cudaError_t launch_error = cudaSuccess;
	int n_resets = 0;
};

struct Machine
{
	int driver_version = 13000; /* 0: none */
	int runtime_version = 13000;
	cudaError_t count_error = cudaSuccess;
	std::vector<Device> devices;
	int current = 0;
	long n_allocated = 0; /* cudaMalloc's minus cudaFree's */
	cudaError_t last_error = cudaSuccess;
};
inline Machine machine;

inline cudaError_t
note(cudaError_t error)
{
	if (error != cudaSuccess)
		machine.last_error = error;
	return error;
}
} // namespace sim

namespace simt {
/* A launch as the runtime does it: errors come by cudaGetLastError. */
inline void
launch_and_note(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel)
{
	cudaError_t error = sim::machine.devices.empty()
							? cudaErrorNoDevice
							: sim::machine.devices[sim::machine.current].launch_error;

	if (error == cudaSuccess && !launch(grid, block, shared_bytes, kernel))
		error = cudaErrorLaunchFailure;
	sim::note(error);
}
} // namespace simt

inline cudaError_t
cudaRuntimeGetVersion(int *version)
{
	*version = sim::machine.runtime_version;
	return cudaSuccess;
}

inline cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = sim::machine.driver_version;
	return cudaSuccess;
}

/* As the real one, leaves *count alone when it fails. */
inline cudaError_t
cudaGetDeviceCount(int *count)
{
	if (sim::machine.count_error == cudaSuccess)
		*count = (int) sim::machine.devices.size();
	return sim::note(sim::machine.count_error);
}

inline cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
	if (device < 0 || (size_t) device >= sim::machine.devices.size())
		return sim::note(cudaErrorInvalidDevice);
	*properties = sim::machine.devices[device].properties;
	return cudaSuccess;
}

inline cudaError_t
cudaSetDevice(int device)
{
	if (device < 0 || (size_t) device >= sim::machine.devices.size())
		return sim::note(cudaErrorInvalidDevice);
	sim::machine.current = device;
	return sim::note(sim::machine.devices[device].open_error);
}

inline cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	const sim::Device &device = sim::machine.devices[sim::machine.current];

	if (device.open_error != cudaSuccess)
		return sim::note(device.open_error);
	*free_bytes = device.free_bytes;
	*total_bytes = device.properties.totalGlobalMem;
	return cudaSuccess;
}

inline cudaError_t
cudaDeviceReset()
{
	sim::machine.devices[sim::machine.current].n_resets++;
	return cudaSuccess;
}

inline cudaError_t
cudaDeviceSynchronize()
{
	return sim::machine.last_error;
}

inline cudaError_t
cudaGetLastError()
{
	cudaError_t error = sim::machine.last_error;

	sim::machine.last_error = cudaSuccess;
	return error;
}

inline cudaError_t
cudaMalloc(void **pointer, size_t size)
{
	if (!sim::machine.devices.empty())
	{
		cudaError_t error = sim::machine.devices[sim::machine.current].memory_error;

		if (error != cudaSuccess)
			return sim::note(error);
	}
	*pointer = malloc(size);
	memset(*pointer, 0xA5, size);
	sim::machine.n_allocated++;
	return cudaSuccess;
}

inline cudaError_t
cudaFree(void *pointer)
{
	if (pointer)
		sim::machine.n_allocated--;
	free(pointer);
	return cudaSuccess;
}

inline cudaError_t
cudaMemset(void *pointer, int value, size_t size)
{
	memset(pointer, value, size);
	return cudaSuccess;
}

inline cudaError_t
cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind)
{
	memcpy(to, from, size);
	return cudaSuccess;
}

inline const char *
cudaGetErrorString(cudaError_t)
{
	return "an error of the simulator";
}

#endif
