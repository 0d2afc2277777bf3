/*
 * stacked_image.c - any bytes as the image of a stacker: refused, or the inputs it names and the image of a model, which is
 * refused or read in turn.
 */
#include "fuzz/image.h"

#include "engine/model/model.h"
#include "engine/model/stacked.h"

static AgStatus
image_try(const AgContext *ctx, const void *image, size_t size)
{
	AgStacked stacked;
	AgModel model;
	uint32_t sum = 0;

	AG_TRY(ag_stacked_read(ctx, image, size, &stacked));
	for (uint32_t i = 0; i < stacked.n_inputs; i++)
		sum += stacked.inputs[i];
	if (stacked.n_inputs == 0 || (uintptr_t) stacked.model % 64 != 0)
		__builtin_trap();
	(void) sum;
	AG_TRY(ag_model_read(ctx, stacked.model, stacked.n_model, &model));
	if (model.kind == AG_IMAGE_STACKED)
		__builtin_trap();
	ag_model_free(&model);
	return AG_OK;
}
