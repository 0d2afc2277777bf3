/*
 * import.c - fuzzes models of other programs: whatever the bytes are, what is accepted is a predictor that opens and predicts finite numbers. The
 * first byte says which format.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/search/fit.h"

#define MOST_BYTES (INT64_C(64) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the sink was given: copies of the two images. */
typedef struct Kept
{
	void *images[2];
	size_t n_bytes[2];
	char family[32];
} Kept;

static AgStatus
keep_predictor(void *host, const AgFittedPredictor *predictor)
{
	(void) host;
	return predictor->best_model != NULL ? AG_OK : AG_ERR_INTERNAL;
}

static AgStatus
keep_feature(void *host, const AgFittedFeature *feature)
{
	(void) host;
	return strlen(feature->column) > 0 ? AG_OK : AG_ERR_INTERNAL;
}

static AgStatus
keep_member(void *host, const AgFittedMember *member)
{
	Kept *kept = host;

	strncpy(kept->family, member->family, sizeof kept->family - 1);
	return AG_OK;
}

static AgStatus
keep_image(void *host, int member, const void *bytes, size_t n_bytes)
{
	Kept *kept = host;

	if (member < 0 || member > 1 || posix_memalign(&kept->images[member], 64, n_bytes + 1) != 0)
		return AG_ERR_INTERNAL;
	memcpy(kept->images[member], bytes, n_bytes);
	kept->n_bytes[member] = n_bytes;
	return AG_OK;
}

static void
predict(AgPredictor *predictor)
{
	static const double numbers[] = {0.0, -1.0, 3.5, 1e300, -1e300, INFINITY, NAN};
	int n_inputs, n_outputs = ag_predictor_outputs(predictor);
	const AgInputInfo *inputs = ag_predictor_inputs(predictor, &n_inputs);
	AgValue *values = calloc((size_t) n_inputs, sizeof *values);
	double *out = calloc((size_t) n_outputs, sizeof *out);

	for (size_t r = 0; values != NULL && out != NULL && r < sizeof numbers / sizeof *numbers; r++)
	{
		for (int i = 0; i < n_inputs; i++)
			if (inputs[i].type == AG_TYPE_TEXT)
				values[i] = (AgValue){.v.s = {"a", 1}};
			else
				values[i] = (AgValue){.is_null = isnan(numbers[r]), .v.f64 = numbers[r]};
		ag_predictor_run(predictor, values, out);
		for (int k = 0; k < n_outputs; k++)
			if (!isfinite(out[k]))
				abort();
	}
	free(values);
	free(out);
}

static void
open_it(const AgContext *ctx, const Kept *kept)
{
	AgImagePart parts[2] = {{0, kept->images[0], kept->n_bytes[0], NULL},
							{1, kept->images[1], kept->n_bytes[1], NULL}};
	AgMemberRef member = {.ordinal = 1, .name = kept->family, .family = kept->family};
	AgPredictor *predictor;
	AgStatus status = ag_predictor_open(ctx, parts, 2, &member, 1, 1, &predictor);

	if (status == AG_OK)
		predict(predictor);
	else if (status != AG_ERR_MEMORY)
		abort(); /* what was written must be read */
	if (status == AG_OK)
		ag_predictor_close(predictor);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Kept kept = {{NULL, NULL}, {0, 0}, ""};
	AgFitSink sink = {&kept, keep_predictor, keep_feature, keep_member, keep_image};
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgImport import = {.label = "label"};

	if (size == 0)
		return 0;
	import.format = data[0] % 2 == 0 ? "xgboost_json" : "lightgbm_text";
	import.bytes = (const char *) data + 1;
	import.n_bytes = size - 1;
	ag_mem_init(&mem, MOST_BYTES);
	ag_error_init(&error);
	if (ag_predictor_import(&ctx, &import, &sink) == AG_OK)
		open_it(&ctx, &kept);
	else if (error.status == AG_ERR_INTERNAL || error.status == AG_ERR_CORRUPT ||
			 error.message[0] == '\0')
		abort();
	if (mem.used_bytes != 0)
		abort(); /* a leak */
	free(kept.images[0]);
	free(kept.images[1]);
	return 0;
}
