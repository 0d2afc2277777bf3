/*
 * message.h - the payloads of all frames but BLOCK, as structs, with encode and decode.
 *
 * Encoders append to a writer (test its `failed`). Decoders check everything and put what needs
 * memory into the arena given; texts come out NUL-terminated. A text with an embedded NUL is AG_ERR_PROTOCOL, except
 * where noted. Trailing bytes are AG_ERR_PROTOCOL.
 */
#ifndef AG_MESSAGE_H
#define AG_MESSAGE_H

#include "engine/data/schema.h"
#include "engine/search/fit.h"
#include "engine/search/options.h"
#include "wire/frame.h"

typedef struct AgMsgHello
{
	uint32_t wire_version;
	const char *
		build_id; /* AG_BUILD_ID of the sender: version and build of library and program must agree */
} AgMsgHello;

typedef struct AgMsgJob
{
	int n_entries;
	AgOptionEntry *entries; /* the options as given by the user */
	AgSchema schema;
	int label_column;
	const char *source_name; /* for the story: table's name or "query" */
	const char *time_zone;
	bool raw_text;
	double time_left;           /* seconds of the call's time limit that are left; INFINITY: none */
	double time_limit;          /* as promised, for the story */
	int64_t memory_limit_bytes; /* hard budget while rows are read */
	const char *gpu_fallback;   /* "warn", "error", "wait" */
	int num_gpus;               /* that all fits may use; -1: all there are */
	bool sandbox;               /* confine itself (trainer/sandbox.h) */
} AgMsgJob;

typedef struct AgMsgNeed
{
	int64_t memory_bytes;
	int num_cpus;   /* wanted; 0: all there are */
	AgGpuNeed gpu;  /* chunk 0: none */
	bool gpu_waits; /* nothing is granted before the least is free; else what there is, at once */
	int n_devices;  /* GPUs that will do, most wanted first */
	int devices[AG_MAX_GPUS];
} AgMsgNeed;

typedef struct AgMsgGrant
{
	int64_t memory_bytes;
	int num_cpus;
	double time_left;           /* seconds, after waiting */
	double gpu_memory_fraction; /* of a GPU that all fits together may take */
	int n_gpus;
	struct
	{
		int device, shares;
	} gpus[AG_MAX_GPUS];
} AgMsgGrant;

typedef struct AgMsgLog
{
	AgLogLevel level;
	const char *text;
	const char *hint; /* "" = none */
} AgMsgLog;

typedef struct AgMsgProgress
{
	const char *phase;
	double fraction; /* of the phase; -1 unknown */
	double elapsed_s;
	double done;  /* of the whole fit; -1 unknown */
	double score; /* of the best model so far; NaN: none */
} AgMsgProgress;

/* DONE: totals, for the report at verbosity >= 3. */
typedef struct AgMsgDone
{
	int64_t peak_memory_bytes;
	double cpu_seconds;
	int64_t n_parts;
	int64_t n_part_bytes;
} AgMsgDone;

#define AG_PART_BYTES (8u << 20)

typedef struct AgMsgPart
{
	int member;
	int part; /* 0.. */
	const void *bytes;
	uint32_t n_bytes; /* <= AG_PART_BYTES */
} AgMsgPart;

/* ag_msg_<name>_write(writer, msg) and ag_msg_<name>_read(arena, payload, n_bytes, msg, err) */
void ag_msg_hello_write(AgWriter *out, const AgMsgHello *msg);
AgStatus ag_msg_hello_read(AgArena *arena, const void *payload, size_t n, AgMsgHello *msg,
						   AgError *err);
void ag_msg_job_write(AgWriter *out, const AgMsgJob *msg);
AgStatus ag_msg_job_read(AgArena *arena, const void *payload, size_t n, AgMsgJob *msg,
						 AgError *err);
void ag_msg_need_write(AgWriter *out, const AgMsgNeed *msg);
AgStatus ag_msg_need_read(AgArena *arena, const void *payload, size_t n, AgMsgNeed *msg,
						  AgError *err);
void ag_msg_grant_write(AgWriter *out, const AgMsgGrant *msg);
AgStatus ag_msg_grant_read(AgArena *arena, const void *payload, size_t n, AgMsgGrant *msg,
						   AgError *err);
void ag_msg_log_write(AgWriter *out, const AgMsgLog *msg);
AgStatus ag_msg_log_read(AgArena *arena, const void *payload, size_t n, AgMsgLog *msg,
						 AgError *err);
void ag_msg_progress_write(AgWriter *out, const AgMsgProgress *msg);
AgStatus ag_msg_progress_read(AgArena *arena, const void *payload, size_t n, AgMsgProgress *msg,
							  AgError *err);
void ag_msg_error_write(AgWriter *out, const AgError *msg);
AgStatus ag_msg_error_read(const void *payload, size_t n, AgError *msg, AgError *err);
void ag_msg_predictor_write(AgWriter *out, const AgFittedPredictor *msg);
AgStatus ag_msg_predictor_read(AgArena *arena, const void *payload, size_t n,
							   AgFittedPredictor *msg, AgError *err);
void ag_msg_feature_write(AgWriter *out, const AgFittedFeature *msg);
AgStatus ag_msg_feature_read(AgArena *arena, const void *payload, size_t n, AgFittedFeature *msg,
							 AgError *err);
void ag_msg_member_write(AgWriter *out, const AgFittedMember *msg);
AgStatus ag_msg_member_read(AgArena *arena, const void *payload, size_t n, AgFittedMember *msg,
							AgError *err);
void ag_msg_part_write(AgWriter *out, const AgMsgPart *msg);
/* All but the bytes themselves, for a sender that lets them follow without a copy. */
void ag_msg_part_head_write(AgWriter *out, const AgMsgPart *msg);
AgStatus ag_msg_part_read(const void *payload, size_t n, AgMsgPart *msg,
						  AgError *err); /* bytes in place */
void ag_msg_done_write(AgWriter *out, const AgMsgDone *msg);
AgStatus ag_msg_done_read(AgArena *arena, const void *payload, size_t n, AgMsgDone *msg,
						  AgError *err);

#endif
