#include "engine/model/stacked.h"

#define TAG_INPUTS 1u
#define TAG_MODEL 2u

AgStatus
ag_stacked_write(const AgContext *ctx, const AgStacked *stacked, AgWriter *writer)
{
	AgImageWriter image;

	ag_image_begin(&image, writer, AG_IMAGE_STACKED);
	ag_image_section(&image, TAG_INPUTS, sizeof *stacked->inputs, stacked->inputs,
					 stacked->n_inputs);
	ag_image_section(&image, TAG_MODEL, 1, stacked->model, stacked->n_model);
	return ag_image_end(ctx, &image);
}

AgStatus
ag_stacked_read(const AgContext *ctx, const void *data, size_t size, AgStacked *stacked)
{
	const void *items;
	uint64_t n;
	AgImage image;

	AG_TRY(ag_image_open(ctx, data, size, AG_IMAGE_STACKED, &image));
	AG_TRY(ag_image_find(ctx, &image, TAG_INPUTS, sizeof *stacked->inputs, &items, &n));
	if (n == 0 || n > AG_MAX_STACK_INPUTS)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: its count of inputs is wrong");
	stacked->inputs = items;
	stacked->n_inputs = (uint32_t) n;
	AG_TRY(ag_image_find(ctx, &image, TAG_MODEL, 1, &items, &n));
	stacked->model = items;
	stacked->n_model = (size_t) n;
	return AG_OK;
}
