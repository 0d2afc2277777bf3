/*
 * messages.c - fuzzes the decoders of all messages. The first byte chooses one by its frame type.
 */
#include <stdlib.h>

#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads what a decoder said is there. */
static size_t
touch(const char *text)
{
	size_t n = 0;

	while (text != NULL && text[n] != '\0')
		n++;
	return n;
}

static void
touch_job(const AgMsgJob *job)
{
	for (int i = 0; i < job->n_entries; i++)
		touch(job->entries[i].path), touch(job->entries[i].text);
	for (int c = 0; c < job->schema.n_columns; c++)
		touch(job->schema.columns[c].name), touch(job->schema.columns[c].sql_type);
	if (job->label_column >= job->schema.n_columns)
		abort();
}

static AgStatus
decode(AgFrameType type, AgArena *arena, const uint8_t *data, size_t n, AgError *err)
{
	union
	{
		AgMsgHello hello;
		AgMsgJob job;
		AgMsgNeed need;
		AgMsgGrant grant;
		AgMsgLog log;
		AgMsgProgress progress;
		AgFittedPredictor predictor;
		AgFittedFeature feature;
		AgFittedMember member;
		AgMsgPart part;
		AgMsgDone done;
		AgError error;
	} msg;
	AgStatus status;

	switch (type)
	{
		case AG_FRAME_HELLO:
			return ag_msg_hello_read(arena, data, n, &msg.hello, err);
		case AG_FRAME_JOB:
			status = ag_msg_job_read(arena, data, n, &msg.job, err);
			if (status == AG_OK)
				touch_job(&msg.job);
			return status;
		case AG_FRAME_NEED:
			return ag_msg_need_read(arena, data, n, &msg.need, err);
		case AG_FRAME_GRANT:
			return ag_msg_grant_read(arena, data, n, &msg.grant, err);
		case AG_FRAME_LOG:
			return ag_msg_log_read(arena, data, n, &msg.log, err);
		case AG_FRAME_PROGRESS:
			return ag_msg_progress_read(arena, data, n, &msg.progress, err);
		case AG_FRAME_PREDICTOR:
			status = ag_msg_predictor_read(arena, data, n, &msg.predictor, err);
			for (int i = 0; status == AG_OK && i < msg.predictor.n_classes; i++)
				if (touch(msg.predictor.classes[i].name) != msg.predictor.classes[i].n_bytes)
					abort();
			for (int i = 0; status == AG_OK && i < msg.predictor.n_warnings; i++)
				touch(msg.predictor.warnings[i]);
			return status;
		case AG_FRAME_FEATURE:
			return ag_msg_feature_read(arena, data, n, &msg.feature, err);
		case AG_FRAME_MEMBER:
			status = ag_msg_member_read(arena, data, n, &msg.member, err);
			for (int i = 0; status == AG_OK && i < msg.member.n_inputs; i++)
				if (touch(msg.member.input_names[i]) > n || !(msg.member.input_weights[i] < 1e308))
					touch(msg.member.name);
			return status;
		case AG_FRAME_PART:
			return ag_msg_part_read(data, n, &msg.part, err);
		case AG_FRAME_DONE:
			return ag_msg_done_read(arena, data, n, &msg.done, err);
		default:
			return ag_msg_error_read(data, n, &msg.error, err);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AgMem mem;
	AgArena arena;
	AgError err;
	AgStatus status;

	if (size == 0)
		return 0;
	ag_mem_init(&mem, INT64_C(256) << 20);
	ag_arena_init(&arena, &mem);
	ag_error_init(&err);
	status = decode((AgFrameType) data[0], &arena, data + 1, size - 1, &err);
	if (status != AG_OK && status != AG_ERR_PROTOCOL)
		abort(); /* no message of this size may need 256 MB */
	ag_arena_free(&arena);
	if (mem.used_bytes != 0)
		abort();
	return 0;
}
