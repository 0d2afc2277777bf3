/*
 * net_image.c - any bytes as an image of a neural net: refused, or a net that answers every row, finitely.
 *
 * The bytes are tried as they are, and then with length and checksum mended, so that the fuzzer gets behind the frame.
 */
#include <math.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/format.h"
#include "engine/model/net.h"

#define MAX_WIDTH 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run(const AgNet *net)
{
	static const double values[] = {0.0, NAN, INFINITY, -INFINITY, -1.0, 3.0, 64.0, 1e308, 2.5};
	double features[MAX_WIDTH], out[MAX_WIDTH + 1];

	if (net->dense->n_features > MAX_WIDTH || ag_net_n_out(net) > MAX_WIDTH)
		return;
	for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
	{
		for (uint32_t f = 0; f < net->dense->n_features; f++)
			features[f] = values[(v + f) % (sizeof values / sizeof values[0])];
		ag_net_run(net, features, out);
		for (uint32_t k = 0; k < ag_net_n_out(net); k++)
			if (!isfinite(out[k]))
				__builtin_trap();
	}
}

static void
try_image(AgMem *mem, const void *image, size_t size)
{
	AgError err;
	AgContext ctx = {.mem = mem, .deadline_ns = INT64_MAX, .error = &err};
	AgNet *net;

	ag_error_init(&err);
	if (ag_net_read(&ctx, image, size, &net) == AG_OK)
	{
		AgWriter writer;

		run(net);
		ag_writer_init(&writer, mem); /* what was read can be written again */
		if (ag_net_write(&ctx, net, &writer) != AG_OK)
			__builtin_trap();
		ag_writer_free(&writer);
		ag_net_free(net);
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
		hash = ag_hash64(image + 64, size - 64, AG_IMAGE_NET);
		memcpy(image + 24, &hash, sizeof hash);
		try_image(&mem, image, size);
	}
	ag_mem_free(&mem, image);
	if (atomic_load(&mem.used_bytes) != 0)
		__builtin_trap();
	return 0;
}
