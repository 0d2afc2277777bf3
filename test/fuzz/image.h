/*
 * image.h - any bytes as a stored image: the entry that the fuzzers of images share.
 *
 * The bytes are tried as they are, and then with length and checksum mended, so that the fuzzer gets behind the frame.
 */
#ifndef AG_FUZZ_IMAGE_H
#define AG_FUZZ_IMAGE_H

#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The fuzzer's own: reads the image and uses what it got; gives all memory back. AG_ERR_CORRUPT with a text is all right. */
static AgStatus image_try(const AgContext *ctx, const void *image, size_t size);

static void
image_try_once(AgMem *mem, const void *image, size_t size)
{
	AgError err;
	AgContext ctx = {.mem = mem, .deadline_ns = INT64_MAX, .error = &err};

	ag_error_init(&err);
	if (image_try(&ctx, image, size) != AG_OK &&
		(err.status != AG_ERR_CORRUPT || err.message[0] == '\0'))
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
	image_try_once(&mem, image, size);
	if (size >= 64)
	{
		memcpy(image + 16, &total, sizeof total);
		hash = ag_hash64(image + 64, size - 64, ag_image_kind(image, size));
		memcpy(image + 24, &hash, sizeof hash);
		image_try_once(&mem, image, size);
	}
	ag_mem_free(&mem, image);
	if (atomic_load(&mem.used_bytes) != 0)
		__builtin_trap();
	return 0;
}

#endif
