/*
 * real.c - what the tests ask of the simulated machine, where there is a real one: nothing can be set.
 */
#include <stddef.h>

#include "cuda_sim/lib/machine.h"

bool
sim_machine_reset(int n_processors, int shared_bytes, int order)
{
	(void) n_processors;
	(void) shared_bytes;
	(void) order;
	return false;
}

void
sim_capability(int major, int minor)
{
	(void) major;
	(void) minor;
}

void
sim_fail_after(long n_mallocs, long n_launches)
{
	(void) n_mallocs;
	(void) n_launches;
}

long
sim_n_launches(void)
{
	return 0;
}

long
sim_n_waits(void)
{
	return 0;
}

long
sim_n_allocated(void)
{
	return 0;
}

const char *
sim_fault(void)
{
	return NULL;
}
