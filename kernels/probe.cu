/*
 * probe.cu - finds the GPUs, and the root cause where there is none.
 *
 * A count of devices proves little: the driver may be too old for this module's toolkit, the module may carry no code for the
 * device's architecture, another process may hold the device exclusively. So a tiny kernel runs on each device, and only
 * its right answer makes a device usable. What a CUDA call writes to its output is never read after the call failed: the
 * runtime leaves it untouched.
 */
#include "kernels/probe.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/launch.cuh"

#define AGK_PROBE_THREADS 64
#define AGK_PROBE_SUM (AGK_PROBE_THREADS * (AGK_PROBE_THREADS - 1) / 2)

/* Sums its threads' numbers through shared memory, a barrier and an atomic: what real kernels are made of. */
__global__ void
agk_probe_kernel(unsigned *sum)
{
	__shared__ unsigned partial[AGK_PROBE_THREADS];

	partial[threadIdx.x] = threadIdx.x;
	__syncthreads();
	atomicAdd(sum, partial[AGK_PROBE_THREADS - 1 - threadIdx.x]);
}

#define AGK_MAJOR(version) ((version) / 1000)
#define AGK_MINOR(version) ((version) % 1000 / 10)

/* The oldest driver for Linux that serves a toolkit of this major version (NVIDIA's release notes, minor version compatibility). */
static const char *
least_driver(int runtime_version)
{
	switch (AGK_MAJOR(runtime_version))
	{
		case 11:
			return "450.80.02";
		case 12:
			return "525.60.13";
		case 13:
			return "580.65.06";
		default:
			return "of the same age as the CUDA toolkit";
	}
}

static void
explain_no_driver(AgCudaProbe *found)
{
	snprintf(found->reason, sizeof(found->reason), "no NVIDIA driver was found (libcuda.so.1)");
	if (access("/dev/dxg", F_OK) == 0)
		snprintf(found->cure, sizeof(found->cure),
				 "On WSL2 the driver is Windows' own: update it, add /usr/lib/wsl/lib to "
				 "/etc/ld.so.conf.d, run ldconfig, and restart PostgreSQL.");
	else if (access("/proc/driver/nvidia/version", F_OK) == 0)
		snprintf(
			found->cure, sizeof(found->cure),
			"The kernel module is loaded but its library isn't to be found: install libcuda1 of "
			"the same version (in a container: start it with --gpus all).");
	else
		snprintf(
			found->cure, sizeof(found->cure),
			"Install the NVIDIA driver, %s or newer (in a container: start it with --gpus all), "
			"or ask for num_gpus 0.",
			least_driver(found->runtime_version));
}

static void
explain_no_device(AgCudaProbe *found)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (visible)
	{
		snprintf(found->reason, sizeof(found->reason),
				 "CUDA_VISIBLE_DEVICES is \"%.100s\", which shows no GPU to PostgreSQL", visible);
		snprintf(
			found->cure, sizeof(found->cure),
			"The variable is the one that PostgreSQL was started with: change it in the service's "
			"environment and restart PostgreSQL.");
		return;
	}
	snprintf(found->reason, sizeof(found->reason), "the NVIDIA driver reports no GPU");
	snprintf(found->cure, sizeof(found->cure),
			 "See whether nvidia-smi lists one for the operating system user of PostgreSQL (in a "
			 "container: start it with --gpus all).");
}

/* Why devices couldn't even be counted. */
static void
explain_machine(AgCudaProbe *found, cudaError_t error)
{
	switch (error)
	{
		case cudaErrorInsufficientDriver:
			if (found->driver_version == 0)
			{
				explain_no_driver(found);
				return;
			}
			snprintf(
				found->reason, sizeof(found->reason),
				"the NVIDIA driver serves CUDA %d.%d, but ag_pg_cuda.so was built with CUDA %d.%d",
				AGK_MAJOR(found->driver_version), AGK_MINOR(found->driver_version),
				AGK_MAJOR(found->runtime_version), AGK_MINOR(found->runtime_version));
			snprintf(found->cure, sizeof(found->cure),
					 "Update the driver to %s or newer, or build ag_pg with a CUDA %d toolkit.",
					 least_driver(found->runtime_version), AGK_MAJOR(found->driver_version));
			return;
		case cudaErrorNoDevice:
			explain_no_device(found);
			return;
		case cudaErrorStubLibrary:
			snprintf(found->reason, sizeof(found->reason),
					 "libcuda.so.1 is the toolkit's link-time copy, not the driver's library");
			snprintf(found->cure, sizeof(found->cure),
					 "Take the stubs folder out of LD_LIBRARY_PATH and restart PostgreSQL.");
			return;
		case cudaErrorSystemDriverMismatch:
			snprintf(found->reason, sizeof(found->reason),
					 "the driver's library and its kernel module are of different versions");
			snprintf(found->cure, sizeof(found->cure),
					 "Reboot, or reload the nvidia kernel modules, after an update of the driver.");
			return;
		case cudaErrorSystemNotReady:
			snprintf(found->reason, sizeof(found->reason), "the GPUs' fabric isn't ready");
			snprintf(found->cure, sizeof(found->cure),
					 "Start nvidia-fabricmanager, of the driver's own version.");
			return;
		case cudaErrorOperatingSystem:
			snprintf(found->reason, sizeof(found->reason),
					 "the operating system refused access to the GPU (/dev/nvidia*)");
			snprintf(found->cure, sizeof(found->cure),
					 "Let the operating system user of PostgreSQL read and write /dev/nvidia*, "
					 "/dev/nvidiactl and /dev/nvidia-uvm.");
			return;
		default:
			snprintf(found->reason, sizeof(found->reason), "CUDA can't be started: %s (error %d)",
					 cudaGetErrorString(error), (int) error);
			snprintf(found->cure, sizeof(found->cure),
					 "See whether nvidia-smi works for the operating system user of PostgreSQL.");
	}
}

/* Why the kernel didn't run on one device. */
static void
explain_device(AgCudaDevice *device, cudaError_t error)
{
	switch (error)
	{
		case cudaErrorNoKernelImageForDevice:
		case cudaErrorInvalidDeviceFunction:
		case cudaErrorUnsupportedPtxVersion:
			snprintf(
				device->reason, sizeof(device->reason),
				"ag_pg_cuda.so has no code for compute capability %d.%d (it has " AGK_ARCHITECTURES
				")",
				device->capability_major, device->capability_minor);
			snprintf(
				device->cure, sizeof(device->cure),
				"Build ag_pg on this machine, or with CUDA_ARCHITECTURES=%d%d, with a toolkit that "
				"knows this GPU.",
				device->capability_major, device->capability_minor);
			return;
		case cudaErrorMemoryAllocation:
			snprintf(device->reason, sizeof(device->reason), "its memory is full");
			snprintf(device->cure, sizeof(device->cure),
					 "See in nvidia-smi which processes hold it.");
			return;
		case cudaErrorDevicesUnavailable:
			snprintf(device->reason, sizeof(device->reason),
					 "another process holds it (compute mode exclusive or prohibited)");
			snprintf(device->cure, sizeof(device->cure),
					 "End that process, or run nvidia-smi -i %d -c DEFAULT.", device->index);
			return;
		case cudaErrorECCUncorrectable:
			snprintf(device->reason, sizeof(device->reason),
					 "its memory has an uncorrectable error");
			snprintf(device->cure, sizeof(device->cure),
					 "Reset the GPU, and have it examined if that comes again.");
			return;
		default:
			snprintf(device->reason, sizeof(device->reason), "a kernel didn't run: %s (error %d)",
					 cudaGetErrorString(error), (int) error);
	}
}

/* Runs the kernel on the current device. cudaErrorUnknown when it ran and the answer is wrong. */
static cudaError_t
run_kernel(void)
{
	unsigned *sum = nullptr;
	unsigned answer = 0;
	cudaError_t error = cudaMalloc(reinterpret_cast<void **>(&sum), sizeof(*sum));

	if (error != cudaSuccess)
		return error;
	error = cudaMemset(sum, 0, sizeof(*sum));
	if (error == cudaSuccess)
	{
		AGK_LAUNCH(agk_probe_kernel, 1, AGK_PROBE_THREADS, 0, nullptr, sum);
		error = cudaGetLastError();
	}
	if (error == cudaSuccess)
		error = cudaDeviceSynchronize();
	if (error == cudaSuccess)
		error = cudaMemcpy(&answer, sum, sizeof(answer), cudaMemcpyDeviceToHost);
	if (error == cudaSuccess && answer != AGK_PROBE_SUM)
		error = cudaErrorUnknown;
	cudaFree(sum);
	return error;
}

static void
format_uuid(char *text, size_t size, const cudaUUID_t *uuid)
{
	const unsigned char *b = reinterpret_cast<const unsigned char *>(uuid->bytes);

	snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
			 b[14], b[15]);
}

static void
probe_device(AgCudaDevice *device, int index)
{
	cudaDeviceProp properties;
	size_t free_bytes = 0, total_bytes = 0;
	cudaError_t error;

	device->index = index;
	device->free_bytes = -1;
	error = cudaGetDeviceProperties(&properties, index);
	if (error != cudaSuccess)
	{
		explain_device(device, error);
		return;
	}
	snprintf(device->name, sizeof(device->name), "%.63s", properties.name);
	format_uuid(device->uuid, sizeof(device->uuid), &properties.uuid);
	device->capability_major = properties.major;
	device->capability_minor = properties.minor;
	device->total_bytes = static_cast<int64_t>(properties.totalGlobalMem);

	error = cudaSetDevice(index);
	if (error == cudaSuccess)
		error = run_kernel();
	if (error == cudaSuccess)
		device->usable = true;
	else
		explain_device(device, error);
	if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess)
		device->free_bytes = static_cast<int64_t>(free_bytes);

	/* Gives the context's memory back (hundreds of MB), and clears an error that would stick to it. */
	cudaDeviceReset();
	(void) cudaGetLastError();
}

void
agk_probe(AgCudaProbe *found)
{
	int version = 0, n = 0;
	cudaError_t error;

	memset(found, 0, sizeof(*found));
	if (cudaRuntimeGetVersion(&version) == cudaSuccess)
		found->runtime_version = version;
	version = 0;
	if (cudaDriverGetVersion(&version) == cudaSuccess)
		found->driver_version = version;

	error = cudaGetDeviceCount(&n);
	if (error == cudaSuccess && n == 0)
		error = cudaErrorNoDevice;
	if (error != cudaSuccess)
	{
		explain_machine(found, error);
		(void) cudaGetLastError();
		return;
	}

	found->n_devices = n < AG_CUDA_MAX_DEVICES ? n : AG_CUDA_MAX_DEVICES;
	for (int i = 0; i < found->n_devices; i++)
	{
		probe_device(&found->devices[i], i);
		found->n_usable += found->devices[i].usable;
	}
	if (found->n_usable == 0)
	{
		const AgCudaDevice *first = &found->devices[0];

		snprintf(found->reason, sizeof(found->reason), "GPU %d (%s) can't be used: %s",
				 first->index, first->name[0] ? first->name : "unknown", first->reason);
		snprintf(found->cure, sizeof(found->cure), "%s", first->cure);
	}
}
