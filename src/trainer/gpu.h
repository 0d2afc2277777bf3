/*
 * gpu.h - what GPUs there are, by way of ag_pg_cuda.so.
 */
#ifndef AG_TRAINER_GPU_H
#define AG_TRAINER_GPU_H

#include "engine/search/fit.h"

/*
 * Loads the module from beside this program and asks it. Called only when a GPU was asked for: CUDA is never touched
 * otherwise. Never fails: what is missing is in state->reason and state->cure.
 */
void ag_gpu_probe(AgGpuState *state);

#endif
