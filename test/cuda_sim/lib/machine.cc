/*
 * machine.cc - the simulated machine, for tests in C.
 */
#include "cuda_sim/lib/machine.h"

#include "cuda_runtime.h"

bool
sim_machine_reset(int n_processors, int shared_bytes, int order)
{
	sim::machine = sim::Machine();
	sim::machine.devices.resize(1);
	sim::machine.devices[0].properties.totalGlobalMem = (size_t) 80 << 30;
	sim::machine.devices[0].properties.major = 9;
	sim::machine.n_processors = n_processors;
	sim::machine.shared_bytes = shared_bytes;
	simt::order = (simt::Order) order;
	simt::fault = nullptr;
	return true;
}

void
sim_capability(int major, int minor)
{
	sim::machine.devices[0].properties.major = major;
	sim::machine.devices[0].properties.minor = minor;
}

void
sim_fail_after(long n_mallocs, long n_launches)
{
	sim::machine.mallocs_left = n_mallocs;
	sim::machine.launches_left = n_launches;
}

long
sim_n_launches(void)
{
	return sim::machine.n_launches;
}

long
sim_n_waits(void)
{
	return sim::machine.n_waits;
}

long
sim_n_allocated(void)
{
	return sim::machine.n_allocated;
}

const char *
sim_fault(void)
{
	return simt::fault;
}
