/*
 * linear_gpu.c - see linear_gpu.h.
 */
#include "engine/model/linear_private.h"

#include <stdio.h>
#include <string.h>

/* Which rows light each column: what a thread of the device adds up, in the rows' order. All to be freed, whatever is returned. */
typedef struct Lit
{
	int32_t *slot_of; /* [n_columns] */
	int64_t *starts;  /* [n_columns + 1] */
	uint32_t *places; /* [starts[n_columns]] */
} Lit;

static void
count_columns(const AgLinearProblem *problem, Lit *lit)
{
	const AgDenseMatrix *matrix = problem->matrix;

	for (int64_t i = 0; i < problem->n_rows; i++)
	{
		const uint32_t *slots = matrix->slots + (size_t) problem->rows[i] * matrix->n_slots;

		if (i % AG_LINEAR_LOOK_ROWS == 0 && ag_cancelled(problem->ctx))
			return;
		for (uint32_t s = 0; s < matrix->n_slots; s++)
			if (slots[s] < problem->n_columns)
			{
				lit->starts[slots[s]]++;
				lit->slot_of[slots[s]] = (int32_t) s;
			}
	}
	for (uint32_t c = 0, n = problem->n_columns; c < n; c++) /* where each ends */
		lit->starts[c + 1] += lit->starts[c];
}

/* From the last row on, so that ends become beginnings. */
static void
fill_columns(const AgLinearProblem *problem, Lit *lit)
{
	const AgDenseMatrix *matrix = problem->matrix;

	for (int64_t i = problem->n_rows; i-- > 0;)
	{
		const uint32_t *slots = matrix->slots + (size_t) problem->rows[i] * matrix->n_slots;

		if (i % AG_LINEAR_LOOK_ROWS == 0 && ag_cancelled(problem->ctx))
			return;
		for (uint32_t s = 0; s < matrix->n_slots; s++)
			if (slots[s] < problem->n_columns)
				lit->places[--lit->starts[slots[s]]] = (uint32_t) i;
	}
}

static AgStatus
find_lit(const AgLinearProblem *problem, Lit *lit)
{
	const AgContext *ctx = problem->ctx;
	size_t n = problem->n_columns;

	AG_TRY(ag_get_zeroed(ctx, n + 1, sizeof *lit->slot_of, &lit->slot_of));
	AG_TRY(ag_get_zeroed(ctx, n + 1, sizeof *lit->starts, &lit->starts));
	count_columns(problem, lit);
	AG_TRY(ag_check_cancel(ctx));
	AG_TRY(ag_get(ctx, (size_t) lit->starts[n] + 1, sizeof *lit->places, &lit->places));
	fill_columns(problem, lit);
	return ag_check_cancel(ctx);
}

static void
note_failure(AgLinearGpu *gpu, AgDeviceStatus status)
{
	gpu->gpu->is_lost = gpu->gpu->is_lost || status == AG_DEVICE_LOST;
	gpu->has_failed = true;
	snprintf(gpu->why, sizeof gpu->why, "%s", gpu->gpu->ops->why(gpu->gpu->device));
}

static void
fill_spec(const AgLinearProblem *problem, const Lit *lit, AgDeviceLinearSpec *spec)
{
	const AgDenseMatrix *matrix = problem->matrix;

	*spec = (AgDeviceLinearSpec){
		.n_rows = matrix->n_rows,
		.number_stride = (int64_t) matrix->stride,
		.numbers = matrix->numbers,
		.n_numbers = (int32_t) problem->n_numbers,
		.n_slots = (int32_t) matrix->n_slots,
		.n_columns = (int32_t) problem->n_columns,
		.row_slots = matrix->slots,
		.slot_of = lit->slot_of,
		.column_starts = lit->starts,
		.column_places = lit->places,
		.train_rows = problem->rows,
		.n_train = problem->n_rows,
		.weight = problem->weight,
		.target = problem->target,
		.class_of = problem->class_of,
		.quantiles = problem->quantiles,
		.loss = problem->link == AG_LINK_SIGMOID     ? AG_DEVICE_LINEAR_LOGISTIC
				: problem->link == AG_LINK_SOFTMAX   ? AG_DEVICE_LINEAR_SOFTMAX
				: problem->link == AG_LINK_QUANTILES ? AG_DEVICE_LINEAR_QUANTILES
													 : AG_DEVICE_LINEAR_SQUARED,
		.n_outputs = (int32_t) problem->n_outputs,
		.n_padded = (int32_t) problem->n_padded,
		.n_parts = problem->n_parts,
		.block_rows = problem->block_rows};
}

AgStatus
ag_linear_gpu_create(AgLinearProblem *problem)
{
	const AgContext *ctx = problem->ctx;
	AgLinearGpu *gpu = &problem->gpu;
	Lit lit = {NULL, NULL, NULL};
	AgDeviceLinearSpec spec;
	AgDeviceStatus done;
	AgStatus status;

	gpu->gpu = ctx->gpu;
	if (ctx->gpu->is_lost || ctx->gpu->ops->linear_create == NULL)
	{
		snprintf(gpu->why, sizeof gpu->why, "%s",
				 ctx->gpu->is_lost ? "the GPU failed before"
								   : "the module trains no linear models");
		return AG_OK;
	}
	status = find_lit(problem, &lit);
	if (status == AG_ERR_MEMORY) /* the CPU takes less */
	{
		gpu->has_failed = true;
		snprintf(gpu->why, sizeof gpu->why,
				 "the memory limit leaves no room for what a GPU needs beside the rows");
		if (ctx->error != NULL)
			ag_error_init(ctx->error);
		status = AG_OK;
		goto done;
	}
	AG_GO(status);
	fill_spec(problem, &lit, &spec);
	done = ctx->gpu->ops->linear_create(ctx->gpu->device, &spec, &gpu->linear);
	if (done != AG_DEVICE_OK)
		note_failure(gpu, done);
	status = AG_OK;
done:
	ag_mem_free(ctx->mem, lit.slot_of);
	ag_mem_free(ctx->mem, lit.starts);
	ag_mem_free(ctx->mem, lit.places);
	return status;
}

void
ag_linear_gpu_free(AgLinearProblem *problem)
{
	AgLinearGpu *gpu = &problem->gpu;

	if (gpu->linear != NULL)
		gpu->gpu->ops->linear_free(gpu->gpu->device, gpu->linear);
	gpu->linear = NULL;
}

static int
poll_context(void *arg)
{
	return ag_must_stop(arg);
}

static AgStatus
take_status(const AgLinearProblem *problem, AgLinearGpu *gpu, AgDeviceStatus status)
{
	if (status == AG_DEVICE_OK)
		return AG_OK;
	if (status == AG_DEVICE_STOPPED)
	{
		AG_TRY(ag_check_cancel(problem->ctx));
		return AG_ERR_TIME;
	}
	note_failure(gpu, status);
	return ag_error_set(problem->ctx->error, AG_ERR_SYSTEM, "%s", gpu->why);
}

AgStatus
ag_linear_gpu_sum(AgLinearProblem *problem, double *gradient)
{
	AgLinearGpu *gpu = &problem->gpu;
	AgContext ctx = *problem->ctx;

	return take_status(problem, gpu,
					   gpu->gpu->ops->linear_sum(gpu->gpu->device, gpu->linear, problem->x,
												 problem->bend, problem->losses, gradient,
												 poll_context, &ctx));
}

AgStatus
ag_linear_gpu_products(AgLinearProblem *problem, const AgDeviceProducts *order, double *products)
{
	AgLinearGpu *gpu = &problem->gpu;
	AgContext ctx = *problem->ctx;

	return take_status(problem, gpu,
					   gpu->gpu->ops->linear_products(gpu->gpu->device, gpu->linear, order,
													  products, poll_context, &ctx));
}
