/*
 * frame.h - the frames between backend, supervisor and trainer.
 *
 * A stream of frames each way: a 16-byte header, then a payload.
 *
 *   0  4  magic 0x31464741 ("AGF1")
 *   4  2  type (AgFrameType)
 *   6  2  zero
 *   8  4  payload bytes, at most AG_FRAME_MAX
 *  12  4  zero
 *
 * The supervisor relays frames by their header and reads the payload of HELLO, NEED and GRANT only. Readers copy the
 * header out once, check the copy, and use only the copy.
 */
#ifndef AG_FRAME_H
#define AG_FRAME_H

#include "engine/base/bytes.h"
#include "engine/base/status.h"

#define AG_FRAME_MAGIC UINT32_C(0x31464741)
#define AG_FRAME_HEADER 16
#define AG_FRAME_MAX (256u << 20) /* one row of 1,664 clipped texts fits with room to spare */
#define AG_WIRE_VERSION 1

typedef enum AgFrameType
{
	/* both ways: first frame of each side */
	AG_FRAME_HELLO = 1,
	/* to the trainer */
	AG_FRAME_JOB = 2,
	AG_FRAME_BLOCK = 3,
	AG_FRAME_END_OF_ROWS = 4, /* payload: u64 rows, for a check */
	AG_FRAME_GRANT = 5,       /* from the supervisor */
	AG_FRAME_CANCEL = 6,
	/* from the trainer */
	AG_FRAME_LOG = 16,
	AG_FRAME_PROGRESS = 17,
	AG_FRAME_NEED = 18, /* to the supervisor */
	AG_FRAME_PREDICTOR = 19,
	AG_FRAME_FEATURE = 20,
	AG_FRAME_MEMBER = 21,
	AG_FRAME_PART = 22,
	AG_FRAME_DONE = 23,
	AG_FRAME_ERROR =
		24 /* last frame of a fit that failed; the supervisor makes one when the trainer dies */
} AgFrameType;

typedef struct AgFrameHeader
{
	AgFrameType type;
	uint32_t n_bytes;
} AgFrameHeader;

void ag_frame_header_write(uint8_t bytes[AG_FRAME_HEADER], AgFrameType type, uint32_t n_bytes);
/* AG_ERR_PROTOCOL when magic, type, length or the zeros are wrong. */
AgStatus ag_frame_header_read(const uint8_t bytes[AG_FRAME_HEADER], AgFrameHeader *header,
							  AgError *err);

#endif
