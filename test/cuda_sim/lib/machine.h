/*
 * machine.h - the simulated machine, for tests in C. On a real GPU (test/gpu) these do nothing.
 */
#ifndef AG_SIM_MACHINE_H
#define AG_SIM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A machine with one GPU, that works. order: 0 forward, 1 backward, 2 shuffled lanes. False where the GPU is a real one. */
bool sim_machine_reset(int n_processors, int shared_bytes, int order);
/* Its compute capability; 9.0 after a reset. */
void sim_capability(int major, int minor);
/* After so many more allocations, or launches, they fail; -1: never. */
void sim_fail_after(long n_mallocs, long n_launches);
/* Launches, and waits of the host for the device, so far. */
long sim_n_launches(void);
long sim_n_waits(void);
/* Allocations that weren't given back. */
long sim_n_allocated(void);
/* Why the simulator stopped a kernel; NULL: it didn't. */
const char *sim_fault(void);

#ifdef __cplusplus
}
#endif

#endif
