/*
 * knn_image.c - any bytes as an image of neighbours: refused, or a model that answers every row, finitely.
 *
 * The bytes are tried as they are, and then with length and checksum mended, so that the fuzzer gets behind the frame.
 */
#include <math.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/format.h"
#include "engine/model/knn.h"

#define MAX_WIDTH 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run(const AgKnn *knn)
{
	static const double values[] = {0.0, NAN, INFINITY, -INFINITY, -1.0, 3.0, 64.0, 1e308, 2.5};
	double features[MAX_WIDTH], out[MAX_WIDTH + 1];
	uint64_t scratch[4 * MAX_WIDTH];

	if (knn->dense->n_features > MAX_WIDTH || ag_knn_n_out(knn) > MAX_WIDTH ||
		ag_knn_scratch_bytes(knn) > sizeof scratch)
		return;
	for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
	{
		for (uint32_t f = 0; f < knn->dense->n_features; f++)
			features[f] = values[(v + f) % (sizeof values / sizeof values[0])];
		ag_knn_run(knn, features, scratch, out);
		for (uint32_t k = 0; k < ag_knn_n_out(knn); k++)
			if (!isfinite(out[k]))
				__builtin_trap();
	}
}

static void
try_image(AgMem *mem, const void *image, size_t size)
{
	AgError err;
	AgContext ctx = {.mem = mem, .deadline_ns = INT64_MAX, .error = &err};
	AgKnn *knn;

	ag_error_init(&err);
	if (ag_knn_read(&ctx, image, size, &knn) == AG_OK)
	{
		AgWriter writer;

		run(knn);
		ag_writer_init(&writer, mem); /* what was read can be written again */
		if (ag_knn_write(&ctx, knn, &writer) != AG_OK)
			__builtin_trap();
		ag_writer_free(&writer);
		ag_knn_free(knn);
	}
	else if (err.status != AG_ERR_CORRUPT || err.message[0] == '\0')
		__builtin_trap();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AgMem mem;
	uint8_t *image;
	uint64_t total = size, hash;

	ag_mem_init(&mem, INT64_MAX);
	image = ag_mem_alloc(&mem, size, 1);
	if (image == NULL)
		return 0;
	if (size > 0)
		memcpy(image, data, size);
	try_image(&mem, image, size);
	if (size >= 64)
	{
		memcpy(image + 16, &total, sizeof total);
		hash = ag_hash64(image + 64, size - 64, AG_IMAGE_KNN);
		memcpy(image + 24, &hash, sizeof hash);
		try_image(&mem, image, size);
	}
	ag_mem_free(&mem, image);
	if (atomic_load(&mem.used_bytes) != 0)
		__builtin_trap();
	return 0;
}
