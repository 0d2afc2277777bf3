/*
 * line.c - see line.h.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine/base/context.h"
#include "pg/compat.h"
#include "pg/errors.h"
#include "pg/line_private.h"
#include "pg/settings.h"

#define TICK_NS INT64_C(200000000)
#define CLIENT_LOOK_NS INT64_C(500000000)

void
ag_line_check_client(AgLine *line)
{
	int64 now = ag_clock_ns();

	if (now - line->last_client_look_ns < CLIENT_LOOK_NS)
		return;
	line->last_client_look_ns = now;
	if (!ag_client_connected())
	{
		ClientConnectionLost = true;
		InterruptPending = true;
		CHECK_FOR_INTERRUPTS();
	}
}

/* ---- the two kinds' common parts ---- */

void
ag_line_begin(AgLine *line, const AgLineKind *kind, const AgLineParams *params)
{
	line->kind = kind;
	line->params = *params;
	line->context = CurrentMemoryContext;
	line->last_poll_ns = line->last_client_look_ns = ag_clock_ns();
}

void
ag_line_write_orders(const AgLine *line, AgSupervisorOrders *orders)
{
	memset(orders, 0, sizeof *orders);
	orders->magic = AG_SUPERVISOR_MAGIC;
	strlcpy(orders->build_id, AG_BUILD_ID, sizeof orders->build_id);
	orders->deadline_ns = line->params.deadline_ns;
	orders->time_limit = line->params.time_limit;
	orders->memory_limit_bytes = line->params.memory_limit_bytes;
	orders->memory_total_bytes = ag_settings_memory_bytes();
	orders->num_cpus = ag_settings_cpus();
	orders->gpu_memory_fraction = ag_setting_gpu_memory_fraction;
	orders->max_fits = ag_setting_max_fits;
}

/* ---- receiving ---- */

static void
hand_in(AgLine *line)
{
	line->n_header = 0;
	line->n_payload = 0;
	if (line->header.type == AG_FRAME_DONE)
		line->finished = true;
	line->params.frame(line->params.arg, &line->header, line->payload);
}

static void
begin_payload(AgLine *line)
{
	AgError err;

	ag_error_init(&err);
	ag_error_check(ag_frame_header_read(line->header_bytes, &line->header, &err), &err);
	if (line->header.n_bytes > line->payload_size)
	{
		if (line->payload != NULL)
			pfree(line->payload);
		line->payload = NULL;
		line->payload_size = 0;
		line->payload =
			MemoryContextAllocHuge(line->context, Max(line->header.n_bytes, AG_PIECE_BYTES));
		line->payload_size = Max(line->header.n_bytes, AG_PIECE_BYTES);
	}
}

/* Bytes of the trainer's stream: puts frames together. */
void
ag_line_take_stream(AgLine *line, const uint8 *bytes, Size n)
{
	while (n > 0)
	{
		Size take;

		if (line->n_header < AG_FRAME_HEADER)
		{
			take = Min(n, AG_FRAME_HEADER - line->n_header);
			memcpy(line->header_bytes + line->n_header, bytes, take);
			line->n_header += (uint32) take;
			if (line->n_header == AG_FRAME_HEADER)
				begin_payload(line);
		}
		else
		{
			take = Min(n, line->header.n_bytes - line->n_payload);
			memcpy(line->payload + line->n_payload, bytes, take);
			line->n_payload += (uint32) take;
		}
		bytes += take;
		n -= take;
		if (line->n_header == AG_FRAME_HEADER && line->n_payload == line->header.n_bytes)
			hand_in(line);
	}
}

/* A whole frame of the supervisor's. */
void
ag_line_take_own(AgLine *line, const uint8 *bytes, Size n)
{
	AgFrameHeader header;
	AgError err;

	ag_error_init(&err);
	if (n < AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	ag_error_check(ag_frame_header_read(bytes, &header, &err), &err);
	if (header.n_bytes != n - AG_FRAME_HEADER)
		elog(ERROR, "malformed message of the supervisor");
	line->params.frame(line->params.arg, &header, bytes + AG_FRAME_HEADER);
}

void
ag_line_poll(AgLine *line)
{
	line->last_poll_ns = ag_clock_ns();
	if (!line->finished)
		line->kind->poll(line);
}

/* ---- waiting ---- */

static void
check_deadline(AgLine *line, int64 deadline_ns, const char *message)
{
	if (ag_clock_ns() < deadline_ns)
		return;
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg(message, line->params.time_limit),
					errhint("Raise \"time_limit\" or train on fewer rows.")));
}

void
ag_line_tick(AgLine *line)
{
	CHECK_FOR_INTERRUPTS();
	if (ag_clock_ns() - line->last_poll_ns < TICK_NS)
		return;
	ag_line_poll(line);
	ag_line_check_client(line);
	check_deadline(line, line->params.deadline_ns,
				   "the time limit of %g s passed while the rows were being read");
}

void
ag_line_wait(AgLine *line)
{
	line->kind->sleep(line, 500);
	ag_line_poll(line);
	check_deadline(line, line->params.give_up_ns,
				   "the trainer did not keep to the time limit of %g s");
}

void
ag_line_send(AgLine *line, const void *bytes, size_t n_bytes, bool flush)
{
	const char *at = bytes;

	while (n_bytes > 0)
	{
		Size n = Min(n_bytes, AG_PIECE_BYTES);
		Size taken = line->kind->put(line, at, n, flush && n == n_bytes);

		if (taken == 0)
		{
			/* the same piece again when there is room; nothing else may be sent in between */
			ag_line_poll(line);
			line->kind->sleep(line, 200);
			check_deadline(line, line->params.deadline_ns,
						   "the time limit of %g s passed while the rows were being read");
			continue;
		}
		at += taken;
		n_bytes -= taken;
	}
}

/* ---- the end ---- */

void
ag_line_close(AgLine *line)
{
	line->kind->close(line);
	if (line->payload != NULL)
		pfree(line->payload);
	pfree(line);
}
