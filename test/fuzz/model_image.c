/*
 * model_image.c - any bytes as a fitted model of any family: refused, or a model that answers every row, finitely.
 */
#include <math.h>

#include "fuzz/image.h"

#include "engine/model/model.h"
#include "engine/predictor_private.h"

#define MAX_WIDTH 256

static void
run(const AgContext *ctx, const AgModel *model)
{
	static const double values[] = {0.0, NAN, INFINITY, -INFINITY, -1.0, 3.0, 64.0, 1e308, 2.5};
	double features[MAX_WIDTH], out[MAX_WIDTH + 1];
	uint32_t n_features = ag_model_n_features(model), n_out = ag_model_n_out(model);
	void *scratch;

	if (n_features > MAX_WIDTH || n_out > MAX_WIDTH)
		return;
	scratch = ag_mem_alloc(ctx->mem, ag_model_scratch_bytes(model), 1);
	for (size_t v = 0; scratch != NULL && v < sizeof values / sizeof values[0]; v++)
	{
		for (uint32_t f = 0; f < n_features; f++)
			features[f] = values[(v + f) % (sizeof values / sizeof values[0])];
		ag_model_run(model, features, scratch, out);
		for (uint32_t k = 0; k < n_out; k++)
			if (!isfinite(out[k]))
				__builtin_trap();
	}
	ag_mem_free(ctx->mem, scratch);
}

/* What it has learnt is text of bounded length, whatever it is. */
static void
tell(const AgContext *ctx, const AgModel *model)
{
	AgPipeline pipeline = {.problem = AG_PROBLEM_REGRESSION};
	AgVector vector = {0, NULL, NULL, 0};
	AgLeaf leaf = {.model = *model, .weight = 1.0};
	AgPredictor predictor = {.pipeline = &pipeline,
							 .n_outputs = (int) ag_model_n_out(model),
							 .n_leaves = 1,
							 .leaves = &leaf,
							 .n_vectors = 1,
							 .vectors = &vector};
	AgWriter out;

	ag_writer_init(&out, ctx->mem);
	ag_predictor_coefficients(ctx, &predictor, NULL, 0, 100, &out);
	for (size_t i = 0; i < out.size; i++)
		if (out.data[i] == 0)
			__builtin_trap();
	ag_writer_free(&out);
}

static AgStatus
image_try(const AgContext *ctx, const void *image, size_t size)
{
	AgModel model;
	AgWriter writer;

	AG_TRY(ag_model_read(ctx, image, size, &model));
	run(ctx, &model);
	tell(ctx, &model);
	ag_writer_init(&writer, ctx->mem); /* what was read can be written again */
	if (ag_model_write(ctx, &model, &writer) != AG_OK)
		__builtin_trap();
	ag_writer_free(&writer);
	ag_model_free(&model);
	return AG_OK;
}
