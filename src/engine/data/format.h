/*
 * format.h - the frame of every stored image.
 *
 *   0  8  magic "AGPGIMG\0"
 *   8  4  format version (1)
 *  12  4  kind (AgImageKind)
 *  16  8  total bytes, header included
 *  24  8  ag_hash64 of everything from byte 64 on, seed = kind
 *  32  4  number of sections
 *  36 28  zero
 *  64     section table: {u32 tag, u32 item size, u64 offset, u64 count} a section, then
 *         the sections, each 64-byte aligned, in ascending order, without overlap
 *
 * An image is one position-independent block, used in place once it was checked.
 * Every version ever released stays readable.
 */
#ifndef AG_FORMAT_H
#define AG_FORMAT_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"

#define AG_IMAGE_VERSION 1

typedef enum AgImageKind
{
	AG_IMAGE_PIPELINE = 1,
	AG_IMAGE_TREES = 2,
	AG_IMAGE_ENSEMBLE = 3,
	AG_IMAGE_LINEAR = 4,
	AG_IMAGE_KNN = 5,
	AG_IMAGE_NET = 6,
	AG_IMAGE_STACKED = 7,
	AG_IMAGE_PREP = 8
} AgImageKind;

typedef struct AgImageWriter
{
	AgWriter *out;
	uint32_t kind;
	uint32_t n_sections;
	struct
	{
		uint32_t tag;
		uint32_t item_size;
		const void *items;
		uint64_t count;
	} sections[32];
} AgImageWriter;

void ag_image_begin(AgImageWriter *image, AgWriter *out, AgImageKind kind);
/* items must stay valid until ag_image_end. */
void ag_image_section(AgImageWriter *image, uint32_t tag, size_t item_size, const void *items,
					  uint64_t count);
AgStatus ag_image_end(const AgContext *ctx, AgImageWriter *image);

typedef struct AgImage
{
	const uint8_t *data;
	size_t size;
	uint32_t kind;
	uint32_t n_sections;
} AgImage;

/* The kind that the header names, unchecked; 0 when there is no room for a header. */
uint32_t ag_image_kind(const void *data, size_t size);
/*
 * Checks the frame: magic, version (a newer one gets its own text), length, checksum (unless the context trusts it), sections in bounds.
 * data must be 8-byte aligned.
 */
AgStatus ag_image_open(const AgContext *ctx, const void *data, size_t size, AgImageKind kind,
					   AgImage *image);
/* Is there a section of that tag? */
bool ag_image_has(const AgImage *image, uint32_t tag);
/* The section's items in place; AG_ERR_CORRUPT when it is absent or its item size differs. */
AgStatus ag_image_find(const AgContext *ctx, const AgImage *image, uint32_t tag, size_t item_size,
					   const void **items, uint64_t *count);

#endif
