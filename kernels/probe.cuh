/*
 * probe.cuh - which GPUs there are, and whether code of this module runs on them.
 */
#ifndef AGK_PROBE_CUH
#define AGK_PROBE_CUH

#include "kernels/ag_cuda.h"

void agk_probe(AgCudaProbe *found);

#endif
