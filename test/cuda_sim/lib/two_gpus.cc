/*
 * two_gpus.cc - with the kernels, an ag_pg_cuda.so whose GPUs are simulated: for whole fits "on" GPUs (test/t/gpus.pl).
 */
#include "cuda_runtime.h"

namespace {
struct TwoGpus
{
	TwoGpus()
	{
		sim::machine.devices.resize(2);
		for (sim::Device &device : sim::machine.devices)
		{
			snprintf(device.properties.name, sizeof(device.properties.name), "Simulated");
			device.properties.totalGlobalMem = (size_t) 4 << 30;
			device.properties.major = 9;
			device.free_bytes = (size_t) 4 << 30;
		}
	}
} two_gpus;
} // namespace
