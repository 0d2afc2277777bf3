/*
 * relay.c - see relay.h.
 *
 * Down, pieces of the session's stream go to the socket as they are. Up, the stream is looked at only where a header is due: the
 * two kinds of frames that are for the supervisor are taken out, all else is passed on in the pieces it was read in, a frame of
 * 8 MB too. A message that a queue didn't take whole must be offered again before any other, so there is one at a time.
 */
#include "postgres.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/stringinfo.h"

#include "engine/base/context.h"
#include "pg/relay.h"
#include "wire/message.h"

/* ---- frames of our own ---- */

static void
send_own(AgSupervisor *s, AgFrameType type, const AgWriter *payload)
{
	StringInfo frame = makeStringInfo();
	uint8 header[AG_FRAME_HEADER];

	ag_frame_header_write(header, type, (uint32) payload->size);
	appendBinaryStringInfo(frame, (char *) header, AG_FRAME_HEADER);
	appendBinaryStringInfo(frame, (char *) payload->data, (int) payload->size);
	s->own = lappend(s->own, frame);
}

void
ag_relay_error(AgSupervisor *s, const AgError *err)
{
	AgWriter payload;
	AgMem mem;

	if (s->ended)
		return;
	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_error_write(&payload, err);
	if (!payload.failed)
		send_own(s, AG_FRAME_ERROR, &payload);
	ag_writer_free(&payload);
	s->ended = true;
}

void
ag_relay_fail(AgSupervisor *s, AgStatus status, const char *message, const char *hint)
{
	AgError err;

	ag_error_init(&err);
	ag_error_set(&err, status, "%s", message);
	if (hint[0] != '\0')
		ag_error_hint(&err, "%s", hint);
	ag_relay_error(s, &err);
}

void
ag_relay_drop_child(AgSupervisor *s)
{
	ag_child_kill(&s->child);
	s->broken = true;
	s->up_at = s->up_end = 0;
}

void
ag_relay_log(AgSupervisor *s, const char *text, const char *hint)
{
	AgMsgLog log = {AG_LOG_NORMAL, text, hint};
	AgWriter payload;
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	ag_writer_init(&payload, &mem);
	ag_msg_log_write(&payload, &log);
	if (!payload.failed)
		send_own(s, AG_FRAME_LOG, &payload);
	ag_writer_free(&payload);
}

/* ---- from the child to the session ---- */

/* A header is complete: for us, or the first piece of a frame to pass on. */
static bool
begin_frame(AgSupervisor *s)
{
	AgFrameHeader header;
	AgError err;

	ag_error_init(&err);
	if (ag_frame_header_read(s->header, &header, &err) != AG_OK)
	{
		ag_relay_error(s, &err);
		ag_relay_drop_child(s);
		return false;
	}
	s->type = header.type;
	s->payload_left = header.n_bytes;
	s->swallow = header.type == AG_FRAME_HELLO || header.type == AG_FRAME_NEED;
	s->n_small = 0;
	if ((s->swallow && header.n_bytes > AG_SMALL_FRAME) ||
		(!s->said_hello && header.type != AG_FRAME_HELLO))
	{
		ag_relay_fail(s, AG_ERR_PROTOCOL, "the trainer does not keep to the protocol",
					  "The program ag_trainer may be of another version than the library.");
		ag_relay_drop_child(s);
		return false;
	}
	return true;
}

static void
end_frame(AgSupervisor *s)
{
	s->n_header = 0;
	if (s->swallow)
		ag_supervisor_take_frame(s);
	else if (s->type == AG_FRAME_DONE || s->type == AG_FRAME_ERROR)
		s->ended = true;
}

/* The next piece of the stream to pass on, out of what was read; false: nothing left. */
static bool
next_piece(AgSupervisor *s)
{
	while (s->up_at < s->up_end && !s->broken)
	{
		const uint8 *at = s->up + s->up_at;
		Size left = s->up_end - s->up_at;
		Size take;

		if (s->n_header < AG_FRAME_HEADER)
		{
			take = Min(left, AG_FRAME_HEADER - s->n_header);
			memcpy(s->header + s->n_header, at, take);
			s->n_header += (uint32) take;
			s->up_at += take;
			if (s->n_header < AG_FRAME_HEADER)
				return false;
			if (!begin_frame(s))
				return false;
			if (s->payload_left == 0)
				end_frame(s);
			if (s->swallow)
				continue;
			s->message = s->header;
			s->n_message = AG_FRAME_HEADER;
			return true;
		}
		take = Min(left, s->payload_left);
		s->up_at += take;
		s->payload_left -= (uint32) take;
		if (s->swallow)
		{
			memcpy(s->small + s->n_small, at, take);
			s->n_small += (uint32) take;
		}
		if (s->payload_left == 0)
			end_frame(s);
		if (s->swallow)
			continue;
		s->message = at;
		s->n_message = take;
		return true;
	}
	return false;
}

/* The next message for the session: what the trainer says comes first as far as it is here, then ours. */
static bool
next_message(AgSupervisor *s)
{
	if (next_piece(s))
	{
		s->kind = AG_PIECE_STREAM;
		return true;
	}
	if (s->own != NIL)
	{
		StringInfo frame = linitial(s->own);

		s->own = list_delete_first(s->own);
		s->kind = AG_PIECE_OWN;
		s->message = (uint8 *) frame->data;
		s->n_message = (Size) frame->len;
		return true;
	}
	return false;
}

void
ag_relay_read(AgSupervisor *s)
{
	ssize_t n;

	do
		n = recv(s->child.socket, s->up, AG_PIECE_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0)
	{
		s->up_at = 0;
		s->up_end = (Size) n;
	}
	else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
	{
		s->eof = true;
		s->eof_ns = ag_clock_ns();
	}
}

void
ag_relay_up(AgSupervisor *s)
{
	s->results_full = false;
	for (;;)
	{
		AgRelayResult result;

		if (s->message == NULL && !next_message(s))
		{
			if (s->eof || s->child.socket < 0)
				return;
			ag_relay_read(s);
			if (s->up_at >= s->up_end)
				return;
			continue;
		}
		result = s->session.take(s->session.arg, s->kind, s->message, s->n_message);
		if (result == AG_RELAY_LATER)
		{
			s->results_full = true;
			return;
		}
		if (result == AG_RELAY_GONE)
		{
			s->session_gone = true;
			return;
		}
		s->message = NULL;
	}
}

/* ---- from the session to the child ---- */

/* The next bytes for the child: a grant waits for the end of the piece before it. */
static bool
next_down(AgSupervisor *s)
{
	AgRelayResult result;

	if (s->n_grant > 0)
	{
		s->down = s->grant;
		s->n_down = s->n_grant;
		s->n_grant = 0;
		return true;
	}
	result = s->session.next_rows(s->session.arg, &s->down, &s->n_down);
	if (result == AG_RELAY_GONE)
		s->session_gone = true;
	if (result != AG_RELAY_DONE)
		s->n_down = 0;
	return result == AG_RELAY_DONE;
}

void
ag_relay_down(AgSupervisor *s)
{
	s->down_full = false;
	while (s->child.socket >= 0 && !s->eof)
	{
		ssize_t n;

		if (s->n_down == 0 && !next_down(s))
			return;
		n = send(s->child.socket, s->down, s->n_down, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			s->down_full = true;
			return;
		}
		if (n < 0)
		{
			s->n_down = 0; /* the child is gone; its end of file says the rest */
			return;
		}
		s->down += n;
		s->n_down -= (Size) n;
	}
}
