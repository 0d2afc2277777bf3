/*
 * gpu.h - what GPUs there are, by way of ag_pg_cuda.so.
 */
#ifndef AG_TRAINER_GPU_H
#define AG_TRAINER_GPU_H

#include <stddef.h>

#include "engine/search/fit.h"
#include "kernels/ag_cuda.h"

typedef enum AgGpuModule
{
	AG_GPU_MODULE_NOWHERE, /* there is no telling where this program lies, and the module with it */
	AG_GPU_MODULE_ABSENT,  /* not installed */
	AG_GPU_MODULE_UNLOADABLE, /* the loader refuses it */
	AG_GPU_MODULE_FOREIGN,    /* it speaks another ABI */
	AG_GPU_MODULE_OPEN
} AgGpuModule;

/*
 * Loads the module from beside this program, for good: its code may have threads. path: where it is looked for; why: the
 * loader's own words where it refuses. *table is filled when the answer is OPEN.
 */
AgGpuModule ag_gpu_module_open(AgCudaTable *table, char *path, size_t path_size, char *why,
							   size_t why_size);

/*
 * Loads the module and asks it. Called only when a GPU was asked for: CUDA is never touched otherwise. Never fails: what is
 * missing is in state->reason and state->cure. *table is that of the module; without one, empty.
 */
void ag_gpu_probe(AgGpuState *state, AgCudaTable *table);

#endif
