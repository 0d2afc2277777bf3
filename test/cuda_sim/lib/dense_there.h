/*
 * dense_there.h - rows as numbers and slots for a model that is fitted on the CPU or on a device, for tests in C that compare the two.
 */
#ifndef AG_SIM_DENSE_THERE_H
#define AG_SIM_DENSE_THERE_H

#include "unit/unit.h"

#include "kernels/ag_cuda.h"
#include "unit/dense_cases.h"

#include "cuda_sim/lib/machine.h"

#define MUCH (INT64_C(1) << 40)

static AgCudaTable table_of_ops;
static bool is_simulated;

/* What a fit needs; its model is the test's. */
typedef struct DenseFit
{
	AgMem mem;
	AgError err;
	AgContext ctx;
	AgGpu gpu;
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgWriter bytes;
	AgStatus status;
} DenseFit;

static inline void
dense_begin(void)
{
	AG_REQUIRE(ag_cuda_init(AG_CUDA_ABI, &table_of_ops));
	AG_REQUIRE(table_of_ops.ops != NULL && table_of_ops.ops->abi == AG_DEVICE_ABI);
	is_simulated = sim_machine_reset(2, 227 << 10, 0);
}

/* gpu_bytes: that the fit may have of the device; 0: on the CPU. */
static inline void
dense_fit_init(DenseFit *fit, const Mixed *mixed, const AgTrainData *data,
			   const AgDenseParams *params, int64_t gpu_bytes)
{
	AgDenseSource source = source_of(&mixed->columns, MIXED_FEATURES, mixed->n_rows);
	char why[256];

	memset(fit, 0, sizeof *fit);
	ag_mem_init(&fit->mem, INT64_MAX);
	ag_error_init(&fit->err);
	fit->ctx = (AgContext){.mem = &fit->mem, .deadline_ns = INT64_MAX, .error = &fit->err};
	if (gpu_bytes > 0)
	{
		fit->gpu.ops = table_of_ops.ops;
		AG_REQUIRE(fit->gpu.ops->open(0, gpu_bytes, &fit->gpu.device, why, sizeof why) ==
				   AG_DEVICE_OK);
		fit->ctx.gpu = &fit->gpu;
	}
	AG_REQUIRE(ag_dense_fit(&fit->ctx, &source, data->train_rows, data->n_train, params,
							&fit->dense) == AG_OK);
	AG_REQUIRE(ag_dense_matrix(&fit->ctx, fit->dense, &source, &fit->matrix) == AG_OK);
	ag_writer_init(&fit->bytes, &fit->mem);
}

/* When the model is freed: nothing is left anywhere. */
static inline void
dense_fit_end(DenseFit *fit)
{
	AgDeviceMemory memory;

	ag_writer_free(&fit->bytes);
	ag_dense_matrix_free(fit->matrix);
	ag_dense_free(fit->dense);
	if (fit->gpu.device != NULL)
	{
		fit->gpu.ops->memory(fit->gpu.device, &memory);
		AG_CHECK_EQ(memory.used_bytes, 0);
		fit->gpu.ops->close(fit->gpu.device);
		if (is_simulated)
			AG_CHECK_EQ(sim_n_allocated(), 0);
	}
	AG_CHECK_EQ(atomic_load(&fit->mem.used_bytes), 0);
}

static inline bool
same_image(const DenseFit *a, const DenseFit *b)
{
	return a->bytes.size == b->bytes.size &&
		   memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0;
}

/* Two classes of three. */
static inline void
make_binary(Mixed *mixed)
{
	for (int64_t i = 0; i < mixed->n_rows; i++)
		mixed->class_of[i] = mixed->class_of[i] > 0;
}

#endif
