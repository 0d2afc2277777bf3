/*
 * pipeline_image.c - any bytes as an image of a pipeline: refused, or a pipeline that encodes every row.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/image.h"

#include "engine/data/pipeline.h"

static AgValue
make_value(AgType type, int which)
{
	static const int64_t numbers[] = {0, 1, -1, INT64_MIN, INT64_MAX, INT64_C(700000000000000)};
	static const double reals[] = {0.0, -1e308, 1e308, -0.0, 5e-324, 2.5};
	static const char *const texts[] = {
		"", "a oak", "2/29/2024 1:05 PM", "Ulm", "tag 7 cc oak Crisp", "2000-02-29 x\xff"};
	AgValue value;

	memset(&value, 0, sizeof value);
	switch (type)
	{
		case AG_TYPE_BOOL:
			value.v.b = which % 2;
			break;
		case AG_TYPE_INT32:
		case AG_TYPE_DATE:
			value.v.i32 = which == 3   ? INT32_MIN
						  : which == 4 ? INT32_MAX
									   : (int32_t) numbers[which];
			break;
		case AG_TYPE_FLOAT32:
			value.v.f32 = which == 2 ? 1e38f : 1.5f;
			break;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			value.v.f64 = reals[which];
			break;
		case AG_TYPE_TEXT:
			value.v.s.text = texts[which];
			value.v.s.n_bytes = (uint32_t) strlen(texts[which]);
			break;
		default:
			value.v.i64 = numbers[which];
			break;
	}
	return value;
}

static void
encode(AgMem *mem, const AgPipeline *pipeline)
{
	AgValue *values = ag_mem_alloc(mem, (size_t) pipeline->n_inputs, sizeof *values);
	double *features = ag_mem_alloc(mem, (size_t) pipeline->n_features, sizeof *features);

	for (int which = 0; which < 7 && values != NULL && features != NULL; which++)
	{
		for (int i = 0; i < pipeline->n_inputs; i++)
		{
			values[i] = make_value(pipeline->inputs[i].type, which % 6);
			values[i].is_null = which == 6;
		}
		ag_pipeline_encode(pipeline, values, features);
		for (int f = 0; f < pipeline->n_features; f++)
		{
			const AgFeature *feature = &pipeline->features[f];

			/* A code is a level's, or unseen, or missing. */
			if (ag_feature_is_category(feature) && features[f] == features[f] &&
				(features[f] < AG_UNSEEN || features[f] >= feature->n_levels))
				__builtin_trap();
		}
	}
	ag_mem_free(mem, values);
	ag_mem_free(mem, features);
}

static AgStatus
image_try(const AgContext *ctx, const void *image, size_t size)
{
	AgPipeline *pipeline;
	AgWriter writer;

	AG_TRY(ag_pipeline_read(ctx, image, size, &pipeline));
	encode(ctx->mem, pipeline);
	ag_writer_init(&writer, ctx->mem); /* what was read can be written again */
	if (ag_pipeline_write(ctx, pipeline, &writer) != AG_OK)
		__builtin_trap();
	ag_writer_free(&writer);
	ag_pipeline_free(pipeline);
	return AG_OK;
}
