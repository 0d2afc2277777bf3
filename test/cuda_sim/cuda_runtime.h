/*
 * cuda_runtime.h - found before CUDA's own by sources compiled for the simulator: as much of the runtime's API as they use,
 * over a machine that the test describes (sim::machine): its driver, its devices, and what goes wrong with them.
 */
#ifndef AG_SIM_CUDA_RUNTIME_H
#define AG_SIM_CUDA_RUNTIME_H

#include <stdio.h>
#include <sys/mman.h>

#include <map>
#include <vector>

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

enum cudaDeviceAttr
{
	cudaDevAttrMultiProcessorCount = 16,
	cudaDevAttrComputeCapabilityMajor = 75,
	cudaDevAttrComputeCapabilityMinor = 76,
	cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

enum cudaFuncAttribute
{
	cudaFuncAttributeMaxDynamicSharedMemorySize = 8
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
	int n_processors = 2;
	int shared_bytes = 227 << 10;
	long mallocs_left = -1;  /* cudaMalloc fails when they are used up; -1: never */
	long launches_left = -1; /* likewise a launch, and everything after it */
	long n_launches = 0, n_waits = 0;
	cudaError_t last_error = cudaSuccess;
};
inline Machine machine;
inline std::map<const void *, size_t> most_shared; /* of kernels that asked */

inline size_t
shared_asked(const void *kernel)
{
	auto found = most_shared.find(kernel);

	return found != most_shared.end() ? found->second : simt::MAX_UNASKED_SHARED;
}

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
template <class Run>
inline void
launch_and_note(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes, const Run &run)
{
	cudaError_t error = sim::machine.devices.empty()
							? cudaErrorNoDevice
							: sim::machine.devices[sim::machine.current].launch_error;

	sim::machine.n_launches++;
	if (error == cudaSuccess && sim::machine.launches_left == 0)
	{
		error = cudaErrorLaunchFailure; /* sticks, as the real one does, until a reset */
		sim::machine.devices[sim::machine.current].launch_error = error;
	}
	else if (sim::machine.launches_left > 0)
		sim::machine.launches_left--;
	if (error == cudaSuccess && shared_bytes > sim::shared_asked(kernel))
	{
		fault = "over 48 KB of shared memory that wasn't asked for";
		error = cudaErrorLaunchFailure;
	}
	if (error == cudaSuccess &&
		!launch(
			grid, block, shared_bytes, [](const void *arg) { (*static_cast<const Run *>(arg))(); },
			&run))
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
	if (sim::machine.launches_left == 0)
	{
		sim::machine.launches_left = -1;
		sim::machine.devices[sim::machine.current].launch_error = cudaSuccess;
	}
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

/*
 * An allocation as large as this is only there so that indices are: nothing fills it, a copy of it moves what lies at its end, and
 * pages that nobody may touch are around it (the address sanitizer's own account of it would take memory).
 */
#define SIM_HUGE (size_t(1) << 30)
#define SIM_HUGE_COPIED (size_t(1) << 20)

namespace sim {
constexpr size_t GUARD_BYTES = 1 << 16;
inline std::map<void *, size_t> huge; /* bytes */

inline void *
get_huge(size_t size)
{
	size_t whole = (size + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
	char *at = static_cast<char *>(mmap(nullptr, whole + 2 * GUARD_BYTES, PROT_NONE,
										MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

	if (at == MAP_FAILED || mprotect(at + GUARD_BYTES, whole, PROT_READ | PROT_WRITE) != 0)
		return nullptr;
	huge[at + GUARD_BYTES] = whole;
	return at + GUARD_BYTES;
}

/* Was it huge? */
inline bool
give_huge(void *pointer)
{
	auto found = huge.find(pointer);

	if (found == huge.end())
		return false;
	munmap(static_cast<char *>(pointer) - GUARD_BYTES, found->second + 2 * GUARD_BYTES);
	huge.erase(found);
	return true;
}
} // namespace sim

inline cudaError_t
cudaMalloc(void **pointer, size_t size)
{
	if (!sim::machine.devices.empty())
	{
		cudaError_t error = sim::machine.devices[sim::machine.current].memory_error;

		if (error != cudaSuccess)
			return sim::note(error);
		if (sim::machine.mallocs_left == 0 ||
			size > sim::machine.devices[sim::machine.current].properties.totalGlobalMem)
			return sim::note(cudaErrorMemoryAllocation);
		if (sim::machine.mallocs_left > 0)
			sim::machine.mallocs_left--;
	}
	*pointer = size < SIM_HUGE ? malloc(size) : sim::get_huge(size);
	if (*pointer == nullptr)
		return sim::note(cudaErrorMemoryAllocation);
	if (size < SIM_HUGE) /* what isn't touched takes no memory */
		memset(*pointer, 0xA5, size);
	sim::machine.n_allocated++;
	return cudaSuccess;
}

inline cudaError_t
cudaFree(void *pointer)
{
	if (pointer)
		sim::machine.n_allocated--;
	if (!sim::give_huge(pointer))
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
	size_t left_out = size < SIM_HUGE ? 0 : size - SIM_HUGE_COPIED;

	memcpy(static_cast<char *>(to) + left_out, static_cast<const char *>(from) + left_out,
		   size - left_out);
	return cudaSuccess;
}

inline cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t)
{
	if (sim::machine.last_error != cudaSuccess)
		return sim::machine.last_error;
	return cudaMemcpy(to, from, size, kind);
}

inline cudaError_t
cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t)
{
	return cudaMemset(pointer, value, size);
}

inline cudaError_t
cudaStreamCreate(cudaStream_t *stream)
{
	*stream = malloc(1);
	return cudaSuccess;
}

inline cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	free(stream);
	return cudaSuccess;
}

inline cudaError_t
cudaStreamSynchronize(cudaStream_t)
{
	sim::machine.n_waits++;
	return sim::machine.last_error;
}

inline cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
	const cudaDeviceProp &properties = sim::machine.devices[device].properties;

	*value = attribute == cudaDevAttrMultiProcessorCount      ? sim::machine.n_processors
			 : attribute == cudaDevAttrComputeCapabilityMajor ? properties.major
			 : attribute == cudaDevAttrComputeCapabilityMinor ? properties.minor
															  : sim::machine.shared_bytes;
	return cudaSuccess;
}

template <class Kernel>
inline cudaError_t
cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute, int bytes)
{
	if (bytes < 0 || bytes > sim::machine.shared_bytes)
		return sim::note(cudaErrorInvalidValue);
	sim::most_shared[(const void *) kernel] = (size_t) bytes;
	return cudaSuccess;
}

inline const char *
cudaGetErrorString(cudaError_t)
{
	return "an error of the simulator";
}

#endif
