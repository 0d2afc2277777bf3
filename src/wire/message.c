/*
 * message.c - the small messages: hello, need and grant, the story, parts, the end. The job is in
 * message_job.c, the results are in message_result.c.
 */
#include "wire/message.h"

#include <math.h>
#include <string.h>

#include "wire/decode.h"

void
ag_msg_hello_write(AgWriter *out, const AgMsgHello *msg)
{
	ag_write_u32(out, msg->wire_version);
	ag_write_str(out, msg->build_id);
}

/*
 * A peer of another wire version may have more behind its build id: it must be told apart from
 * garbage, so that the user reads "restart the session", hence no look at trailing bytes then.
 */
AgStatus
ag_msg_hello_read(AgArena *arena, const void *payload, size_t n, AgMsgHello *msg, AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "HELLO", payload, n, arena, err);
	msg->wire_version = ag_read_u32(&d.in);
	msg->build_id = ag_decode_text(&d);
	if (!d.in.failed && msg->wire_version != AG_WIRE_VERSION)
		d.in.at = d.in.size;
	return ag_decode_end(&d);
}

void
ag_msg_need_write(AgWriter *out, const AgMsgNeed *msg)
{
	ag_write_i64(out, msg->memory_bytes);
	ag_write_i32(out, msg->num_cpus);
	ag_write_i32(out, msg->gpu.chunk);
	ag_write_i32(out, msg->gpu.least);
	ag_write_i32(out, msg->gpu.most);
	ag_write_u8(out, msg->gpu_waits);
	ag_write_u32(out, (uint32_t) msg->n_devices);
	for (int i = 0; i < msg->n_devices; i++)
		ag_write_i32(out, msg->devices[i]);
}

/* Shares of a need make sense together, and no device is twice in a list. */
static bool
gpu_need_valid(const AgGpuNeed *need)
{
	return need->chunk >= 0 && need->chunk <= AG_GPU_SHARES && need->least >= 0 &&
		   need->least <= need->most && need->most <= AG_MAX_GPUS * AG_GPU_SHARES &&
		   need->chunk <= need->most;
}

static bool
device_valid(int device, const int *before, int n)
{
	for (int i = 0; i < n; i++)
		if (before[i] == device)
			return false;
	return device >= 0 && device < AG_MAX_GPUS;
}

AgStatus
ag_msg_need_read(AgArena *arena, const void *payload, size_t n, AgMsgNeed *msg, AgError *err)
{
	AgDecoder d;
	uint32_t n_devices;

	ag_decode_begin(&d, "NEED", payload, n, arena, err);
	msg->memory_bytes = ag_read_i64(&d.in);
	msg->num_cpus = ag_read_i32(&d.in);
	msg->gpu.chunk = ag_read_i32(&d.in);
	msg->gpu.least = ag_read_i32(&d.in);
	msg->gpu.most = ag_read_i32(&d.in);
	msg->gpu_waits = ag_decode_bool(&d);
	n_devices = ag_read_count(&d.in, 4);
	msg->n_devices = 0;
	if (msg->memory_bytes < 0 || msg->num_cpus < 0 || !gpu_need_valid(&msg->gpu) ||
		n_devices > AG_MAX_GPUS)
		ag_decode_reject(&d);
	for (; !d.in.failed && msg->n_devices < (int) n_devices; msg->n_devices++)
	{
		msg->devices[msg->n_devices] = ag_read_i32(&d.in);
		if (!device_valid(msg->devices[msg->n_devices], msg->devices, msg->n_devices))
			ag_decode_reject(&d);
	}
	return ag_decode_end(&d);
}

void
ag_msg_grant_write(AgWriter *out, const AgMsgGrant *msg)
{
	ag_write_i64(out, msg->memory_bytes);
	ag_write_i32(out, msg->num_cpus);
	ag_write_f64(out, msg->time_left);
	ag_write_f64(out, msg->gpu_memory_fraction);
	ag_write_u32(out, (uint32_t) msg->n_gpus);
	for (int i = 0; i < msg->n_gpus; i++)
	{
		ag_write_i32(out, msg->gpus[i].device);
		ag_write_i32(out, msg->gpus[i].shares);
	}
}

AgStatus
ag_msg_grant_read(AgArena *arena, const void *payload, size_t n, AgMsgGrant *msg, AgError *err)
{
	AgDecoder d;
	uint32_t n_gpus;
	int devices[AG_MAX_GPUS];

	ag_decode_begin(&d, "GRANT", payload, n, arena, err);
	msg->memory_bytes = ag_read_i64(&d.in);
	msg->num_cpus = ag_read_i32(&d.in);
	msg->time_left = ag_decode_number(&d);
	msg->gpu_memory_fraction = ag_decode_number(&d);
	n_gpus = ag_read_count(&d.in, 8);
	msg->n_gpus = 0;
	if (msg->memory_bytes < 0 || msg->num_cpus < 1 || n_gpus > AG_MAX_GPUS ||
		!(msg->gpu_memory_fraction >= 0.0 && msg->gpu_memory_fraction <= 1.0))
		ag_decode_reject(&d);
	for (; !d.in.failed && msg->n_gpus < (int) n_gpus; msg->n_gpus++)
	{
		int i = msg->n_gpus;

		devices[i] = msg->gpus[i].device = ag_read_i32(&d.in);
		msg->gpus[i].shares = ag_read_i32(&d.in);
		if (!device_valid(devices[i], devices, i) || msg->gpus[i].shares < 1 ||
			msg->gpus[i].shares > AG_GPU_SHARES)
			ag_decode_reject(&d);
	}
	return ag_decode_end(&d);
}

void
ag_msg_log_write(AgWriter *out, const AgMsgLog *msg)
{
	ag_write_u32(out, (uint32_t) msg->level);
	ag_write_str(out, msg->text);
	ag_write_str(out, msg->hint);
}

AgStatus
ag_msg_log_read(AgArena *arena, const void *payload, size_t n, AgMsgLog *msg, AgError *err)
{
	AgDecoder d;
	uint32_t level;

	ag_decode_begin(&d, "LOG", payload, n, arena, err);
	level = ag_read_u32(&d.in);
	msg->text = ag_decode_text(&d);
	msg->hint = ag_decode_text(&d);
	if (level > AG_LOG_TRACE)
	{
		ag_decode_reject(&d);
		level = AG_LOG_TRACE;
	}
	msg->level = (AgLogLevel) level;
	return ag_decode_end(&d);
}

void
ag_msg_progress_write(AgWriter *out, const AgMsgProgress *msg)
{
	ag_write_str(out, msg->phase);
	ag_write_f64(out, msg->fraction);
	ag_write_f64(out, msg->elapsed_s);
	ag_write_f64(out, msg->done);
	ag_write_f64(out, msg->score);
}

AgStatus
ag_msg_progress_read(AgArena *arena, const void *payload, size_t n, AgMsgProgress *msg,
					 AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "PROGRESS", payload, n, arena, err);
	msg->phase = ag_decode_text(&d);
	msg->fraction = ag_decode_number(&d);
	msg->elapsed_s = ag_decode_number(&d);
	msg->done = ag_decode_number(&d);
	msg->score = ag_read_f64(&d.in);
	if (msg->fraction > 1.0 || (msg->fraction < 0.0 && msg->fraction != -1.0) || msg->done > 1.0 ||
		(msg->done < 0.0 && msg->done != -1.0) || !(msg->elapsed_s >= 0.0) || isinf(msg->elapsed_s))
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}

void
ag_msg_error_write(AgWriter *out, const AgError *msg)
{
	ag_write_u32(out, (uint32_t) msg->status);
	ag_write_str(out, msg->message);
	ag_write_str(out, msg->detail);
	ag_write_str(out, msg->hint);
}

/* One text of an AgError, cut to its buffer. */
static void
error_text_read(AgDecoder *d, char *buffer, size_t size)
{
	uint32_t n;
	const char *bytes = ag_read_text(&d->in, &n);

	buffer[0] = '\0';
	if (d->in.failed || bytes == NULL)
		return;
	if (n >= size || memchr(bytes, '\0', n) != NULL)
	{
		ag_decode_reject(d);
		return;
	}
	memcpy(buffer, bytes, n);
	buffer[n] = '\0';
}

/* A status this build doesn't know comes from a trainer that is newer: its text still counts. */
AgStatus
ag_msg_error_read(const void *payload, size_t n, AgError *msg, AgError *err)
{
	AgDecoder d;
	uint32_t status;

	ag_error_init(msg);
	ag_decode_begin(&d, "ERROR", payload, n, NULL, err);
	status = ag_read_u32(&d.in);
	error_text_read(&d, msg->message, sizeof msg->message);
	error_text_read(&d, msg->detail, sizeof msg->detail);
	error_text_read(&d, msg->hint, sizeof msg->hint);
	if (status == AG_OK)
		ag_decode_reject(&d);
	msg->status = status <= AG_ERR_RESOURCES ? (AgStatus) status : AG_ERR_INTERNAL;
	return ag_decode_end(&d);
}

void
ag_msg_part_head_write(AgWriter *out, const AgMsgPart *msg)
{
	ag_write_i32(out, msg->member);
	ag_write_i32(out, msg->part);
	ag_write_u32(out, msg->n_bytes);
}

void
ag_msg_part_write(AgWriter *out, const AgMsgPart *msg)
{
	ag_msg_part_head_write(out, msg);
	ag_write_bytes(out, msg->bytes, msg->n_bytes);
}

AgStatus
ag_msg_part_read(const void *payload, size_t n, AgMsgPart *msg, AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "PART", payload, n, NULL, err);
	msg->member = ag_read_i32(&d.in);
	msg->part = ag_read_i32(&d.in);
	msg->n_bytes = 0;
	msg->bytes = ag_read_text(&d.in, &msg->n_bytes);
	if (msg->member < 0 || msg->part < 0 || msg->n_bytes == 0 || msg->n_bytes > AG_PART_BYTES)
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}

void
ag_msg_done_write(AgWriter *out, const AgMsgDone *msg)
{
	ag_write_i64(out, msg->peak_memory_bytes);
	ag_write_f64(out, msg->cpu_seconds);
	ag_write_i64(out, msg->n_parts);
	ag_write_i64(out, msg->n_part_bytes);
}

AgStatus
ag_msg_done_read(AgArena *arena, const void *payload, size_t n, AgMsgDone *msg, AgError *err)
{
	AgDecoder d;

	ag_decode_begin(&d, "DONE", payload, n, arena, err);
	msg->peak_memory_bytes = ag_read_i64(&d.in);
	msg->cpu_seconds = ag_decode_number(&d);
	msg->n_parts = ag_read_i64(&d.in);
	msg->n_part_bytes = ag_read_i64(&d.in);
	if (msg->peak_memory_bytes < 0 || !(msg->cpu_seconds >= 0.0) || isinf(msg->cpu_seconds) ||
		msg->n_parts < 0 || msg->n_part_bytes < 0)
		ag_decode_reject(&d);
	return ag_decode_end(&d);
}
