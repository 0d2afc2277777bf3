/*
 * trees_image.c - any bytes as an image of trees: refused, or trees that score every row, finitely.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/image.h"

#include "engine/model/trees.h"

#define MAX_WIDTH 256

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

static AgStatus
image_try(const AgContext *ctx, const void *image, size_t size)
{
	AgTrees *trees;
	AgWriter writer;

	AG_TRY(ag_trees_read(ctx, image, size, &trees));
	score(ctx, trees);
	ag_writer_init(&writer, ctx->mem); /* what was read can be written again */
	if (ag_trees_write(ctx, trees, &writer) != AG_OK)
		__builtin_trap();
	ag_writer_free(&writer);
	ag_trees_free(trees);
	return AG_OK;
}
