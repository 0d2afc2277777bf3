/*
 * format.c - the frame of every stored image.
 */
#include "engine/data/format.h"

#include <string.h>

#include "engine/base/hash.h"

#define HEADER_BYTES 64
#define ALIGNMENT 64
#define MAX_SECTIONS                                                                               \
	((uint32_t) (sizeof(((AgImageWriter *) NULL)->sections) /                                      \
				 sizeof(((AgImageWriter *) NULL)->sections[0])))

static const char magic[8] = "AGPGIMG";

typedef struct Section
{
	uint32_t tag;
	uint32_t item_size;
	uint64_t offset;
	uint64_t count;
} Section;

void
ag_image_begin(AgImageWriter *image, AgWriter *out, AgImageKind kind)
{
	image->out = out;
	image->kind = kind;
	image->n_sections = 0;
}

void
ag_image_section(AgImageWriter *image, uint32_t tag, size_t item_size, const void *items,
				 uint64_t count)
{
	if (image->n_sections == MAX_SECTIONS || item_size == 0 || item_size > UINT32_MAX)
	{
		image->out->failed = true;
		return;
	}
	image->sections[image->n_sections].tag = tag;
	image->sections[image->n_sections].item_size = (uint32_t) item_size;
	image->sections[image->n_sections].items = items;
	image->sections[image->n_sections].count = count;
	image->n_sections++;
}

uint32_t
ag_image_kind(const void *data, size_t size)
{
	uint32_t kind;

	if (size < HEADER_BYTES)
		return 0;
	memcpy(&kind, (const uint8_t *) data + 12, sizeof kind);
	return kind;
}

static uint64_t
align_up(uint64_t offset)
{
	return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

AgStatus
ag_image_end(const AgContext *ctx, AgImageWriter *image)
{
	AgWriter *out = image->out;
	size_t start = out->size;
	uint64_t offset = HEADER_BYTES + image->n_sections * sizeof(Section);
	uint64_t total, hash;
	uint8_t zeros[28] = {0};

	ag_write_bytes(out, magic, sizeof magic);
	ag_write_u32(out, AG_IMAGE_VERSION);
	ag_write_u32(out, image->kind);
	ag_write_u64(out, 0); /* length and hash are known at the end */
	ag_write_u64(out, 0);
	ag_write_u32(out, image->n_sections);
	ag_write_bytes(out, zeros, sizeof zeros);
	for (uint32_t i = 0; i < image->n_sections; i++)
	{
		Section section = {image->sections[i].tag, image->sections[i].item_size, align_up(offset),
						   image->sections[i].count};

		ag_write_bytes(out, &section, sizeof section);
		offset = section.offset + section.count * section.item_size;
	}
	for (uint32_t i = 0; i < image->n_sections; i++)
	{
		while (!out->failed && (out->size - start) % ALIGNMENT != 0)
			ag_write_u8(out, 0);
		ag_write_bytes(out, image->sections[i].items,
					   image->sections[i].count * image->sections[i].item_size);
	}
	if (out->failed)
		return ag_mem_error(ctx->mem, offset, ctx->error);
	total = out->size - start;
	memcpy(out->data + start + 16, &total, 8);
	hash = ag_hash64(out->data + start + HEADER_BYTES, total - HEADER_BYTES, image->kind);
	memcpy(out->data + start + 24, &hash, 8);
	return AG_OK;
}

static AgStatus
corrupt(const AgContext *ctx, const char *what)
{
	return ag_error_set(ctx->error, AG_ERR_CORRUPT, "stored model is damaged: %s", what);
}

static Section
section_at(const AgImage *image, uint32_t i)
{
	Section section;

	memcpy(&section, image->data + HEADER_BYTES + i * sizeof section, sizeof section);
	return section;
}

/* Sections lie behind the table, aligned, in order, inside the image. */
static AgStatus
check_sections(const AgContext *ctx, const AgImage *image)
{
	uint64_t end = HEADER_BYTES + (uint64_t) image->n_sections * sizeof(Section);

	if (image->n_sections > MAX_SECTIONS || end > image->size)
		return corrupt(ctx, "its table of sections is longer than the image");
	for (uint32_t i = 0; i < image->n_sections; i++)
	{
		Section section = section_at(image, i);

		if (section.item_size == 0 || section.offset % ALIGNMENT != 0 || section.offset < end ||
			section.offset > image->size ||
			section.count > (image->size - section.offset) / section.item_size)
			return corrupt(ctx, "a section lies outside the image");
		end = section.offset + section.count * section.item_size;
	}
	return AG_OK;
}

AgStatus
ag_image_open(const AgContext *ctx, const void *data, size_t size, AgImageKind kind, AgImage *image)
{
	AgReader reader;
	const void *start;
	const uint8_t *zeros;
	uint32_t version, stored_kind;
	uint64_t total, hash;

	ag_reader_init(&reader, data, size);
	start = ag_read_bytes(&reader, sizeof magic);
	version = ag_read_u32(&reader);
	stored_kind = ag_read_u32(&reader);
	total = ag_read_u64(&reader);
	hash = ag_read_u64(&reader);
	image->data = data;
	image->size = size;
	image->kind = kind;
	image->n_sections = ag_read_u32(&reader);
	zeros = ag_read_bytes(&reader, 28);
	if (start == NULL || memcmp(start, magic, sizeof magic) != 0)
		return corrupt(ctx, "it doesn't begin as a model does");
	if (version > AG_IMAGE_VERSION)
	{
		ag_error_set(ctx->error, AG_ERR_CORRUPT,
					 "stored model has format version %u, and this release reads up to version %u",
					 version, (unsigned) AG_IMAGE_VERSION);
		ag_error_hint(ctx->error,
					  "The model was fitted by a newer release of ag_pg; install that release.");
		return AG_ERR_CORRUPT;
	}
	if (version == 0)
		return corrupt(ctx, "its format version is 0");
	if (reader.failed || total != size)
		return corrupt(ctx, "its length is wrong");
	if (stored_kind != (uint32_t) kind)
		return corrupt(ctx, "it holds another kind of part");
	for (int i = 0; i < 28; i++)
		if (zeros[i] != 0)
			return corrupt(ctx, "its header has bytes that must be zero");
	if (!ctx->trusts_images && !ctx->trusts_checksums &&
		hash != ag_hash64((const uint8_t *) data + HEADER_BYTES, size - HEADER_BYTES, stored_kind))
		return corrupt(ctx, "its checksum doesn't match");
	return check_sections(ctx, image);
}

bool
ag_image_has(const AgImage *image, uint32_t tag)
{
	for (uint32_t i = 0; i < image->n_sections; i++)
		if (section_at(image, i).tag == tag)
			return true;
	return false;
}

AgStatus
ag_image_find(const AgContext *ctx, const AgImage *image, uint32_t tag, size_t item_size,
			  const void **items, uint64_t *count)
{
	for (uint32_t i = 0; i < image->n_sections; i++)
	{
		Section section = section_at(image, i);

		if (section.tag != tag)
			continue;
		if (section.item_size != item_size)
			return corrupt(ctx, "a section's items have the wrong size");
		*items = image->data + section.offset;
		*count = section.count;
		return AG_OK;
	}
	return corrupt(ctx, "a section is missing");
}
