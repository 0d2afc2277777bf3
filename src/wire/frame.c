/*
 * frame.c - the 16-byte header in front of every payload.
 */
#include "wire/frame.h"

#include <string.h>

/* A switch over the enum without default: the compiler names a type that is forgotten here. */
static bool
frame_type_valid(unsigned type)
{
	switch ((AgFrameType) type)
	{
		case AG_FRAME_HELLO:
		case AG_FRAME_JOB:
		case AG_FRAME_BLOCK:
		case AG_FRAME_END_OF_ROWS:
		case AG_FRAME_GRANT:
		case AG_FRAME_CANCEL:
		case AG_FRAME_LOG:
		case AG_FRAME_PROGRESS:
		case AG_FRAME_NEED:
		case AG_FRAME_PREDICTOR:
		case AG_FRAME_FEATURE:
		case AG_FRAME_MEMBER:
		case AG_FRAME_PART:
		case AG_FRAME_DONE:
		case AG_FRAME_ERROR:
			return true;
	}
	return false;
}

void
ag_frame_header_write(uint8_t bytes[AG_FRAME_HEADER], AgFrameType type, uint32_t n_bytes)
{
	uint32_t magic = AG_FRAME_MAGIC;
	uint16_t type16 = (uint16_t) type;

	memset(bytes, 0, AG_FRAME_HEADER);
	memcpy(bytes, &magic, sizeof magic);
	memcpy(bytes + 4, &type16, sizeof type16);
	memcpy(bytes + 8, &n_bytes, sizeof n_bytes);
}

AgStatus
ag_frame_header_read(const uint8_t bytes[AG_FRAME_HEADER], AgFrameHeader *header, AgError *err)
{
	AgReader in;
	uint32_t magic, n_bytes, zero32;
	uint16_t type, zero16;

	ag_reader_init(&in, bytes, AG_FRAME_HEADER);
	magic = ag_read_u32(&in);
	type = ag_read_u16(&in);
	zero16 = ag_read_u16(&in);
	n_bytes = ag_read_u32(&in);
	zero32 = ag_read_u32(&in);

	if (magic != AG_FRAME_MAGIC || zero16 != 0 || zero32 != 0)
		return ag_error_set(err, AG_ERR_PROTOCOL,
							"malformed frame header between server and trainer");
	if (!frame_type_valid(type))
		return ag_error_set(err, AG_ERR_PROTOCOL,
							"unknown frame type %u between server and trainer", type);
	if (n_bytes > AG_FRAME_MAX)
		return ag_error_set(err, AG_ERR_PROTOCOL,
							"frame of %u bytes between server and trainer is longer than %u",
							n_bytes, AG_FRAME_MAX);
	header->type = (AgFrameType) type;
	header->n_bytes = n_bytes;
	return AG_OK;
}
