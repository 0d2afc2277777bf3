/*
 * probe.cc - kernels/probe.cu on simulated machines: what it says of each, and that it lets go of everything.
 */
#include <stdlib.h>

#include "kernels/ag_cuda.h"
#include "kernels/launch.cuh"
#include "unit/unit.h"

static AgCudaTable table;
static AgCudaProbe found;

static sim::Device
some_gpu(const char *name, int capability)
{
	sim::Device device;

	snprintf(device.properties.name, sizeof(device.properties.name), "%s", name);
	for (int i = 0; i < 16; i++)
		device.properties.uuid.bytes[i] = (char) (0xf0 + i);
	device.properties.major = capability / 10;
	device.properties.minor = capability % 10;
	device.properties.totalGlobalMem = (size_t) 80 << 30;
	device.free_bytes = (size_t) 79 << 30;
	return device;
}

/* Probes a machine whose devices can't even be counted. */
static void
machine_fails(cudaError_t error, int driver_version)
{
	sim::machine = sim::Machine();
	sim::machine.driver_version = driver_version;
	sim::machine.count_error = error;
	table.probe(&found);
	AG_CHECK_EQ(found.n_devices, 0);
	AG_CHECK_EQ(found.n_usable, 0);
	AG_CHECK(found.reason[0] && found.reason[strlen(found.reason) - 1] != '.');
	AG_CHECK(found.cure[0] && found.cure[strlen(found.cure) - 1] == '.');
	AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

/* Probes a machine with one GPU that fails. */
static void
device_fails(cudaError_t open, cudaError_t memory, cudaError_t launch)
{
	sim::machine = sim::Machine();
	sim::machine.devices.push_back(some_gpu("NVIDIA Old", 61));
	sim::machine.devices[0].open_error = open;
	sim::machine.devices[0].memory_error = memory;
	sim::machine.devices[0].launch_error = launch;
	table.probe(&found);
	AG_CHECK_EQ(found.n_devices, 1);
	AG_CHECK_EQ(found.n_usable, 0);
	AG_CHECK(!found.devices[0].usable);
	AG_CHECK(strstr(found.reason, found.devices[0].reason) != NULL);
	AG_CHECK(strstr(found.reason, "NVIDIA Old") != NULL);
	AG_CHECK_STR(found.cure, found.devices[0].cure);
	AG_CHECK_EQ(found.devices[0].free_bytes, open ? -1 : (int64_t) 79 << 30);
	AG_CHECK_EQ(sim::machine.n_allocated, 0);
	AG_CHECK_EQ(sim::machine.devices[0].n_resets, 1);
	AG_CHECK_EQ(cudaGetLastError(), cudaSuccess);
}

static void
test_machines(void)
{
	machine_fails(cudaErrorInsufficientDriver, 0);
	AG_CHECK(strstr(found.reason, "no NVIDIA driver") != NULL);
	machine_fails(cudaErrorInsufficientDriver, 11040);
	AG_CHECK(strstr(found.reason, "CUDA 11.4") && strstr(found.reason, "CUDA 13.0"));
	AG_CHECK(strstr(found.cure, "580.65.06") && strstr(found.cure, "CUDA 11 toolkit"));

	unsetenv("CUDA_VISIBLE_DEVICES");
	machine_fails(cudaErrorNoDevice, 13000);
	AG_CHECK(strstr(found.reason, "reports no GPU") != NULL);
	machine_fails(cudaSuccess, 13000); /* a count of none */
	AG_CHECK(strstr(found.reason, "reports no GPU") != NULL);
	setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
	machine_fails(cudaErrorNoDevice, 13000);
	AG_CHECK(strstr(found.reason, "CUDA_VISIBLE_DEVICES is \"-1\"") != NULL);
	AG_CHECK(strstr(found.cure, "restart PostgreSQL") != NULL);
	unsetenv("CUDA_VISIBLE_DEVICES");

	machine_fails(cudaErrorStubLibrary, 13000);
	AG_CHECK(strstr(found.cure, "LD_LIBRARY_PATH") != NULL);
	machine_fails(cudaErrorSystemDriverMismatch, 13000);
	AG_CHECK(strstr(found.reason, "different versions") != NULL);
	machine_fails(cudaErrorSystemNotReady, 13000);
	AG_CHECK(strstr(found.cure, "fabricmanager") != NULL);
	machine_fails(cudaErrorOperatingSystem, 13000);
	AG_CHECK(strstr(found.reason, "/dev/nvidia") != NULL);
	machine_fails(cudaErrorUnknown, 13000);
	AG_CHECK(strstr(found.reason, "error 999") != NULL);
}

static void
test_devices(void)
{
	device_fails(cudaSuccess, cudaSuccess, cudaErrorNoKernelImageForDevice);
	AG_CHECK(strstr(found.reason, "compute capability 6.1") != NULL);
	AG_CHECK(strstr(found.cure, "CUDA_ARCHITECTURES=61") != NULL);
	device_fails(cudaSuccess, cudaErrorMemoryAllocation, cudaSuccess);
	AG_CHECK(strstr(found.reason, "memory is full") != NULL);
	device_fails(cudaErrorDevicesUnavailable, cudaSuccess, cudaSuccess);
	AG_CHECK(strstr(found.reason, "another process") != NULL);
	device_fails(cudaErrorECCUncorrectable, cudaSuccess, cudaSuccess);
	AG_CHECK(strstr(found.reason, "uncorrectable") != NULL);
	device_fails(cudaSuccess, cudaSuccess, cudaErrorLaunchFailure);
	AG_CHECK(strstr(found.reason, "error 719") != NULL);
}

static void
test_usable(void)
{
	sim::machine = sim::Machine();
	sim::machine.devices.push_back(some_gpu("NVIDIA Old", 61));
	sim::machine.devices.push_back(some_gpu("NVIDIA New", 90));
	sim::machine.devices[0].launch_error = cudaErrorNoKernelImageForDevice;
	for (int order = simt::FORWARD; order <= simt::SHUFFLED; order++)
	{
		simt::order = (simt::Order) order;
		table.probe(&found);
		AG_CHECK_EQ(found.n_devices, 2);
		AG_CHECK_EQ(found.n_usable, 1);
		AG_CHECK_STR(found.reason, "");
		AG_CHECK_STR(found.cure, "");
		AG_CHECK(!found.devices[0].usable && found.devices[0].reason[0]);
		AG_CHECK(found.devices[1].usable && !found.devices[1].reason[0]);
		AG_CHECK_STR(found.devices[1].name, "NVIDIA New");
		AG_CHECK_STR(found.devices[1].uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
		AG_CHECK_EQ(found.devices[1].capability_major, 9);
		AG_CHECK_EQ(found.devices[1].total_bytes, (int64_t) 80 << 30);
		AG_CHECK_EQ(found.devices[1].free_bytes, (int64_t) 79 << 30);
		AG_CHECK_EQ(found.driver_version, 13000);
		AG_CHECK_EQ(sim::machine.n_allocated, 0);
	}
	/* More than the table holds: the rest is left out. */
	sim::machine.devices.assign(AG_CUDA_MAX_DEVICES + 3, some_gpu("NVIDIA New", 90));
	table.probe(&found);
	AG_CHECK_EQ(found.n_devices, AG_CUDA_MAX_DEVICES);
	AG_CHECK_EQ(found.n_usable, AG_CUDA_MAX_DEVICES);
}

int
main(void)
{
	AG_CHECK(!ag_cuda_init(AG_CUDA_ABI + 1, &table));
	AG_CHECK(table.probe == NULL);
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table));
	AG_CHECK_EQ(table.abi, AG_CUDA_ABI);
	test_machines();
	test_devices();
	test_usable();
	return ag_unit_done("probe");
}
