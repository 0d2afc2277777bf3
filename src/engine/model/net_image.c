/*
 * net_image.c - a net as bytes.
 */
#include <string.h>

#include "engine/model/net_private.h"

#define TAG_HEAD 1u
#define TAG_LAYERS 2u
#define TAG_SLOTS 3u
#define TAG_VALUES 4u

/* The fields of AgNet before its arrays. */
#define HEAD_BYTES offsetof(AgNet, layers)

_Static_assert(HEAD_BYTES == 80, "part of the format");
_Static_assert(sizeof(AgNetLayer) == 24, "part of the format");
_Static_assert(sizeof(AgNetSlot) == 16, "part of the format");

AgStatus
ag_net_write(const AgContext *ctx, const AgNet *net, AgWriter *writer)
{
	AgImageWriter image;

	ag_image_begin(&image, writer, AG_IMAGE_NET);
	ag_image_section(&image, TAG_HEAD, HEAD_BYTES, net, 1);
	ag_image_section(&image, TAG_LAYERS, sizeof *net->layers, net->layers, net->n_layers);
	ag_image_section(&image, TAG_SLOTS, sizeof *net->slots, net->slots, net->n_slots);
	ag_image_section(&image, TAG_VALUES, sizeof *net->values, net->values, net->n_values);
	ag_dense_write(net->dense, &image);
	return ag_image_end(ctx, &image);
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

static AgStatus
find_arrays(const AgContext *ctx, const AgImage *image, AgNet *net)
{
	const void *items;
	uint64_t n;

	AG_TRY(ag_image_find(ctx, image, TAG_HEAD, HEAD_BYTES, &items, &n));
	if (n != 1)
		return corrupt(ctx, "it has no head, or several");
	memcpy(net, items, HEAD_BYTES);
	AG_TRY(ag_image_find(ctx, image, TAG_LAYERS, sizeof *net->layers, &items, &n));
	net->layers = items;
	if (n != net->n_layers)
		return corrupt(ctx, "its count of layers is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_SLOTS, sizeof *net->slots, &items, &n));
	net->slots = items;
	if (n != net->n_slots)
		return corrupt(ctx, "its count of slots is wrong");
	AG_TRY(ag_image_find(ctx, image, TAG_VALUES, sizeof *net->values, &items, &net->n_values));
	net->values = items;
	return ag_net_check(ctx, net);
}

AgStatus
ag_net_read(const AgContext *ctx, const void *bytes, size_t size, AgNet **net)
{
	AgImage image;
	AgDense *dense;
	AgStatus status;

	*net = NULL;
	AG_TRY(ag_image_open(ctx, bytes, size, AG_IMAGE_NET, &image));
	AG_TRY(ag_dense_read(ctx, &image, &dense));
	status = ag_net_create(ctx, dense, net);
	if (status != AG_OK)
	{
		ag_dense_free(dense);
		return status;
	}
	(*net)->own_dense = dense;
	AG_GO(find_arrays(ctx, &image, *net));
	AG_GO(ag_net_map_numbers(ctx, *net));
done:
	if (status != AG_OK)
	{
		ag_net_free(*net);
		*net = NULL;
	}
	return status;
}
