/*
 * there.h - a bench whose fits have a device, for tests in C that compare with the CPU.
 */
#ifndef AG_SIM_THERE_H
#define AG_SIM_THERE_H

#include "engine/data/bins_device.h"
#include "kernels/ag_cuda.h"
#include "unit/booster.h"

#include "cuda_sim/lib/machine.h"

static AgCudaTable table_of_ops;
static bool is_simulated;

typedef struct There
{
	Bench bench;
	AgGpu gpu;
} There;

static inline void
there_begin(void)
{
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table_of_ops));
	AG_REQUIRE(table_of_ops.ops != NULL && table_of_ops.ops->abi == AG_DEVICE_ABI);
	is_simulated = sim_machine_reset(2, 227 << 10, 0);
}

static inline void
there_init(There *there, int64_t limit_bytes)
{
	char why[256];

	bench_init(&there->bench, 1);
	memset(&there->gpu, 0, sizeof there->gpu);
	there->gpu.ops = table_of_ops.ops;
	AG_REQUIRE(there->gpu.ops->open(0, limit_bytes, &there->gpu.device, why, sizeof why) ==
			   AG_DEVICE_OK);
	snprintf(there->gpu.name, sizeof there->gpu.name, "cuda:0");
	there->bench.ctx.gpu = &there->gpu;
}

static inline void
there_end(There *there)
{
	AgDeviceMemory memory;

	there->gpu.ops->memory(there->gpu.device, &memory);
	AG_CHECK_EQ(memory.used_bytes, 0);
	there->gpu.ops->close(there->gpu.device);
	bench_end(&there->bench);
	if (is_simulated)
		AG_CHECK_EQ(sim_n_allocated(), 0);
}

/* ---- how the matrix came to lie there ---- */

static AgDeviceLayout made_layout; /* of the last one, by noted_create */
static int64_t made_spare;

static inline AgDeviceStatus
noted_create(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **matrix)
{
	AgDeviceStatus status = table_of_ops.ops->matrix_create(device, bins, matrix);

	made_layout = (AgDeviceLayout){0};
	made_spare = bins->spare_bytes;
	if (status == AG_DEVICE_OK)
		table_of_ops.ops->matrix_layout(*matrix, &made_layout);
	return status;
}

#endif
