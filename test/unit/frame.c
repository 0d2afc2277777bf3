/* frame.c - the frame header: what is written is read, anything else is refused. */
#include "unit/unit.h"

#include "wire/frame.h"

static void
round_trip(void)
{
	static const int types[] = {1, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21, 22, 23, 24};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
	{
		uint8_t bytes[AG_FRAME_HEADER];
		AgFrameHeader header;
		AgError err;

		ag_error_init(&err);
		ag_frame_header_write(bytes, (AgFrameType) types[i], (uint32_t) i * 1000);
		AG_CHECK_EQ(ag_frame_header_read(bytes, &header, &err), AG_OK);
		AG_CHECK_EQ(header.type, types[i]);
		AG_CHECK_EQ(header.n_bytes, i * 1000);
	}
}

/* Every byte of a header counts: no bit may change without the header being refused or reading differently. */
static void
refusals(void)
{
	uint8_t good[AG_FRAME_HEADER], bytes[AG_FRAME_HEADER];
	AgFrameHeader header;
	AgError err;

	ag_frame_header_write(good, AG_FRAME_BLOCK, 77);
	for (int bit = 0; bit < AG_FRAME_HEADER * 8; bit++)
	{
		AgStatus status;

		ag_error_init(&err);
		memcpy(bytes, good, sizeof bytes);
		bytes[bit / 8] ^= (uint8_t) (1u << (bit % 8));
		status = ag_frame_header_read(bytes, &header, &err);
		if (status == AG_OK)
			AG_CHECK(header.type != AG_FRAME_BLOCK || header.n_bytes != 77);
		else
			AG_CHECK_EQ(status, AG_ERR_PROTOCOL);
	}
	ag_error_init(&err);
	ag_frame_header_write(bytes, AG_FRAME_BLOCK, AG_FRAME_MAX);
	AG_CHECK_EQ(ag_frame_header_read(bytes, &header, &err), AG_OK);
	ag_frame_header_write(bytes, AG_FRAME_BLOCK, AG_FRAME_MAX + 1);
	AG_CHECK_EQ(ag_frame_header_read(bytes, &header, &err), AG_ERR_PROTOCOL);
	AG_CHECK(strstr(err.message, "longer than") != NULL);
}

int
main(void)
{
	round_trip();
	refusals();
	return ag_unit_done("frame");
}
