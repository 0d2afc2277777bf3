/*
 * module.cu - the one exported function of ag_pg_cuda.so.
 */
#include "kernels/ag_cuda.h"
#include "kernels/device.cuh"
#include "kernels/probe.cuh"

#define AGK_EXPORT __attribute__((visibility("default")))

extern "C" AGK_EXPORT bool
ag_cuda_init(uint32_t abi, AgCudaTable *table)
{
	if (abi != AG_CUDA_ABI)
		return false;
	table->abi = AG_CUDA_ABI;
	table->architectures = AGK_ARCHITECTURES;
	table->families = "GBM XGB CAT RF XT LR KNN NN_TORCH FASTAI REALMLP TABM";
	table->probe = agk_probe;
	table->ops = &agk_ops;
	return true;
}
