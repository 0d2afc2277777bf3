/*
 * frames.c - fuzzes a stream of frames: headers, and where each next one begins.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size >= AG_FRAME_HEADER)
	{
		uint8_t again[AG_FRAME_HEADER];
		AgFrameHeader header;
		AgError err;

		ag_error_init(&err);
		if (ag_frame_header_read(data, &header, &err) != AG_OK)
		{
			if (err.status != AG_ERR_PROTOCOL)
				abort();
			return 0;
		}
		/* what is accepted is exactly what is written */
		ag_frame_header_write(again, header.type, header.n_bytes);
		if (memcmp(again, data, sizeof again) != 0 || header.n_bytes > AG_FRAME_MAX)
			abort();
		data += AG_FRAME_HEADER;
		size -= AG_FRAME_HEADER;
		if (header.n_bytes > size)
			return 0;
		data += header.n_bytes;
		size -= header.n_bytes;
	}
	return 0;
}
