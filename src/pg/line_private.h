/*
 * line_private.h - shared by the two kinds of line: line_supervised.c (a supervisor in another process) and
 * line_direct.c (this process is the supervisor). What they have in common is in line.c.
 */
#ifndef AG_LINE_PRIVATE_H
#define AG_LINE_PRIVATE_H

#include "pg/line.h"
#include "pg/supervisor.h"

typedef struct AgLineKind
{
	/* Hands in, by ag_line_take_..., all that has come, without waiting. */
	void (*poll)(AgLine *line);
	/* Takes bytes of the stream, at most AG_PIECE_BYTES; 0: no room now, the same bytes are offered again. */
	Size (*put)(AgLine *line, const void *bytes, Size n_bytes, bool flush);
	/* Sleeps until something may have changed. */
	void (*sleep)(AgLine *line, long timeout_ms);
	/* All was said: ends it and frees what is its own. */
	void (*close)(AgLine *line);
} AgLineKind;

/* First in the struct of each kind. */
struct AgLine
{
	const AgLineKind *kind;
	AgLineParams params;
	int64 last_poll_ns;
	int64 last_client_look_ns;
	/* the frame being put together */
	uint8 header_bytes[AG_FRAME_HEADER];
	uint32 n_header;
	AgFrameHeader header;
	uint8 *payload;
	uint32 n_payload, payload_size;
	bool finished; /* DONE has come */
	MemoryContext context;
};

/* What begins every line; the struct is zeroed. */
extern void ag_line_begin(AgLine *line, const AgLineKind *kind, const AgLineParams *params);

/* What the supervisor must know of the call and of the settings. */
extern void ag_line_write_orders(const AgLine *line, AgSupervisorOrders *orders);

/* Bytes of the trainer's stream; a whole frame of the supervisor's own. */
extern void ag_line_take_stream(AgLine *line, const uint8 *bytes, Size n_bytes);
extern void ag_line_take_own(AgLine *line, const uint8 *bytes, Size n_bytes);

/* Notices within half a second that the client has gone, and ends the session then. */
extern void ag_line_check_client(AgLine *line);

#endif
