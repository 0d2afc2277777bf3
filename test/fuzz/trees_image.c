/*
 * trees_image.c - any bytes as an image of trees: refused, or trees that score every row, finitely.
 *
 * The bytes are tried as they are, and then with length and checksum mended, so that the fuzzer gets behind the frame.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/format.h"
#include "engine/model/trees.h"

#define MAX_WIDTH 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was made fast gives what the plain walk gives. */
static void
score(const AgContext *ctx, AgTrees *trees)
{
	static const double values[] = {0.0, NAN, INFINITY, -INFINITY, -1.0, 63.0, 64.0, 1e308, 2.5};
	double features[MAX_WIDTH], scores[MAX_WIDTH], plain[MAX_WIDTH], out[MAX_WIDTH + 1];
	double rows[16 * 16], many[16 * 16];
	const struct AgTreePlan *plan = trees->plan;

	if (trees->n_features > MAX_WIDTH || trees->n_outputs > MAX_WIDTH)
		return;
	for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
	{
		for (uint32_t f = 0; f < trees->n_features; f++)
			features[f] = values[(v + f) % (sizeof values / sizeof values[0])];
		ag_trees_score(trees, features, scores);
		trees->plan = NULL;
		ag_trees_score(trees, features, plain);
		trees->plan = plan;
		if (memcmp(scores, plain, trees->n_outputs * sizeof(double)) != 0)
			__builtin_trap();
		ag_trees_link(trees, scores, out);
		for (uint32_t k = 0; k < ag_trees_n_out(trees); k++)
			if (!isfinite(out[k]))
				__builtin_trap();
	}
	if (trees->n_features > 16 || trees->n_outputs > 16)
		return;
	if (ag_trees_prepare_rows(ctx, trees) != AG_OK)
		__builtin_trap();
	for (uint32_t i = 0; i < 16 * trees->n_features; i++)
		rows[i] = values[i % (sizeof values / sizeof values[0])];
	ag_trees_score_rows(trees, 16, rows, many);
	for (uint32_t i = 0; i < 16; i++)
	{
		ag_trees_score(trees, rows + i * trees->n_features, scores);
		if (memcmp(scores, many + i * trees->n_outputs, trees->n_outputs * sizeof(double)) != 0)
			__builtin_trap();
	}
}

static void
try_image(AgMem *mem, const void *image, size_t size)
{
	AgError err;
	AgContext ctx = {.mem = mem, .deadline_ns = INT64_MAX, .error = &err};
	AgTrees *trees;

	ag_error_init(&err);
	if (ag_trees_read(&ctx, image, size, &trees) == AG_OK)
	{
		AgWriter writer;

		score(&ctx, trees);
		ag_writer_init(&writer, mem); /* what was read can be written again */
		if (ag_trees_write(&ctx, trees, &writer) != AG_OK)
			__builtin_trap();
		ag_writer_free(&writer);
		ag_trees_free(trees);
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
		hash = ag_hash64(image + 64, size - 64, AG_IMAGE_TREES);
		memcpy(image + 24, &hash, sizeof hash);
		try_image(&mem, image, size);
	}
	ag_mem_free(&mem, image);
	if (atomic_load(&mem.used_bytes) != 0)
		__builtin_trap();
	return 0;
}
