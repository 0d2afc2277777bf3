/*
 * fit.c - a fit: from the call to the trainer's result; and ag_fit, which is all of it in the caller's session.
 *
 * Everything that can be refused is refused before a row is read. Then the rows go to the trainer, and what it
 * made comes back. It is stored only when the trainer has ended, in the caller's transaction: a fit that holds CPUs and memory of
 * the cluster never waits for a lock of SQL, whose deadlock detector couldn't see it.
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "pg/compat.h"
#include "pg/deadline.h"
#include "pg/errors.h"
#include "pg/fit.h"
#include "pg/job.h"
#include "pg/machine.h"
#include "pg/options_json.h"
#include "pg/replay.h"
#include "pg/settings.h"
#include "pg/stats.h"

#define LONGEST_TIME_LIMIT_S 1e9
#define GB 1e9

PG_FUNCTION_INFO_V1(ag_sql_fit);

/* The engine's memory isn't the server's: it goes with the call's memory context, in an error too. */
static void
free_call(void *arg)
{
	AgFitCall *call = arg;

	ag_options_free(call->options);
	call->options = NULL;
	ag_arena_free(&call->arena);
	ag_arena_free(&call->message);
}

AgFitCall *
ag_fit_begin(const char *data, const char *label, Jsonb *options)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "ag_fit", ALLOCSET_DEFAULT_SIZES);
	MemoryContextCallback *callback;
	AgFitCall *call;

	ag_stats_attach();
	MemoryContextSwitchTo(context);
	call = palloc0(sizeof(AgFitCall));
	call->data = call->source_text = data;
	call->label = label;
	call->options_json = options;
	call->context = context;
	call->started_ns = ag_clock_ns();
	call->last_notice_ns = call->started_ns;
	ag_mem_init(&call->mem, INT64_MAX);
	ag_arena_init(&call->arena, &call->mem);
	ag_arena_init(&call->message, &call->mem);
	callback = palloc0(sizeof(MemoryContextCallback));
	callback->func = free_call;
	callback->arg = call;
	MemoryContextRegisterResetCallback(context, callback);
	return call;
}

/* ---- options ---- */

static void
choose_zone(AgFitCall *call)
{
	if (call->options->time_zone == NULL)
		call->zone = session_timezone;
	else
		call->zone = pg_tzset(ag_text_from_utf8(call->options->time_zone));
	if (call->zone == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("option \"time_zone\": there is no time zone \"%s\"",
							   ag_text_from_utf8(call->options->time_zone)),
						errhint("The view pg_timezone_names lists them.")));
}

static void
choose_limits(AgFitCall *call)
{
	double asked_gb = call->options->memory_limit_gb;
	double seconds = call->options->time_limit;

	if (call->options->replay != NULL)
		seconds = LONGEST_TIME_LIMIT_S; /* as long as it takes */
	else if (isnan(seconds))
		seconds = ag_setting_default_time_limit_s;
	call->time_limit = Min(seconds, LONGEST_TIME_LIMIT_S);
	call->deadline_ns = call->started_ns + (int64) (call->time_limit * 1e9);

	call->memory_limit_bytes = ag_settings_memory_bytes();
	if (isnan(asked_gb))
		return;
	if (asked_gb * GB > (double) call->memory_limit_bytes)
		ereport(WARNING, (errmsg("memory_limit of %g GB is more than fits may use; %.1f GB it is",
								 asked_gb, (double) call->memory_limit_bytes / GB),
						  errhint("A superuser can raise the setting ag_pg.memory_limit.")));
	else
		call->memory_limit_bytes = (int64) (asked_gb * GB);
}

/* Asked for anywhere: of the fit, of a bag or of a training. */
static void
tell_cpus(const AgFitCall *call)
{
	const AgFitOptions *options = call->options;
	int asked = options->total.num_cpus, has = ag_settings_cpus();

	for (int i = 0; i < options->n_models; i++)
		asked = Max(asked, Max(options->models[i].asked.num_cpus, options->models[i].bag.num_cpus));
	if (asked > has)
		ereport(WARNING, (errmsg("num_cpus of %d is more than fits may use; %d it is", asked, has),
						  has < ag_machine_cpus()
							  ? errhint("A superuser can raise the setting ag_pg.num_cpus.")
							  : errhint("This machine, or the server's control group, has no "
										"more.")));
}

static void
read_options(AgFitCall *call)
{
	AgError err;
	Jsonb *options = ag_replay_options(call->options_json, &call->kept_options);

	ag_error_init(&err);
	if (call->plan != NULL)
		options = DatumGetJsonbP(
			DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(options), JsonbPGetDatum(call->plan)));
	ag_options_flatten(options, &call->entries, &call->n_entries);
	ag_error_check(
		ag_options_parse(&call->mem, call->entries, call->n_entries, &call->options, &err), &err);
	choose_zone(call);
	choose_limits(call);
	tell_cpus(call);
}

/* ---- to the trainer and back ---- */

/* A frame of that payload. The writer's memory is the engine's and sending may fail: so a copy of ours is sent. */
static void
send_payload(AgFitCall *call, AgWriter *payload, AgFrameType type)
{
	bool failed = payload->failed || payload->size > AG_FRAME_MAX;
	size_t n = failed ? 0 : payload->size;
	uint8 *frame = MemoryContextAllocHuge(call->context, AG_FRAME_HEADER + n);

	if (n > 0)
		memcpy(frame + AG_FRAME_HEADER, payload->data, n);
	ag_writer_free(payload);
	if (failed)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	ag_frame_header_write(frame, type, (uint32) n);
	ag_line_send(call->line, frame, AG_FRAME_HEADER + n, true);
	pfree(frame);
}

static void
send_job(AgFitCall *call)
{
	AgMsgHello hello = {AG_WIRE_VERSION, AG_BUILD_ID};
	AgMsgJob job = {0};
	AgWriter payload;

	ag_writer_init(&payload, &call->mem);
	ag_msg_hello_write(&payload, &hello);
	send_payload(call, &payload, AG_FRAME_HELLO);

	job.n_entries = call->n_entries;
	job.entries = call->entries;
	job.schema = call->schema;
	job.label_column = call->label_column;
	job.source_name = ag_text_to_utf8(call->source->table != NULL ? call->source->table : "query");
	job.time_zone = ag_text_to_utf8(pg_get_timezone_name(call->zone));
	job.raw_text = call->raw_text;
	job.time_left = (double) (call->deadline_ns - ag_clock_ns()) / 1e9;
	job.time_limit = call->time_limit;
	job.memory_limit_bytes = call->memory_limit_bytes;
	job.gpu_fallback = ag_settings_gpu_fallback_name();
	job.sandbox = ag_setting_sandbox;
	job.num_gpus = ag_setting_num_gpus;
	ag_writer_init(&payload, &call->mem);
	ag_msg_job_write(&payload, &job);
	send_payload(call, &payload, AG_FRAME_JOB);
}

static void
open_line(AgFitCall *call)
{
	double grace_s = Max(8.0, call->time_limit / 10);
	AgLineParams params = {0};

	params.deadline_ns = call->deadline_ns;
	params.give_up_ns = call->deadline_ns + (int64) (grace_s * 1e9);
	params.time_limit = call->time_limit;
	params.memory_limit_bytes = call->memory_limit_bytes;
	params.frame = ag_fit_take_frame;
	params.arg = call;
	params.tell_waiting = call->options->verbosity > 0;
	call->line = call->is_job ? ag_line_open_direct(&params) : ag_line_open(&params);
}

static void
raise_late(const AgFitCall *call)
{
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED),
					errmsg("the time limit of %g s passed while the rows were being read",
						   call->time_limit),
					errhint("Raise the option \"time_limit\", or fit on fewer rows.")));
}

/* The executor has the say meanwhile, so a timer watches over the time limit. */
static void
read_rows(AgFitCall *call)
{
	MemoryContext context = CurrentMemoryContext;
	int64 n_rows;

	PG_TRY();
	{
		ag_deadline_start(call->deadline_ns);
		n_rows = ag_stream_run(call->source, &call->schema, call->columns, call->zone,
							   call->raw_text, call->line);
		if (call->tuning != NULL)
			n_rows += ag_stream_run(call->tuning, &call->schema, call->tuning_columns, call->zone,
									call->raw_text, call->line);
		ag_stream_end(call->line, n_rows);
	}
	PG_CATCH();
	{
		if (ag_deadline_stop() && geterrcode() == ERRCODE_QUERY_CANCELED)
		{
			MemoryContextSwitchTo(context);
			FlushErrorState();
			raise_late(call);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (ag_deadline_stop())
		raise_late(call);
}

static void
tell_time_limit(const AgFitCall *call)
{
	if (isnan(call->options->time_limit) && call->options->replay == NULL &&
		call->options->verbosity >= AG_LOG_NORMAL)
		ereport(NOTICE, (errmsg("time limit: %d s, the default", ag_setting_default_time_limit_s),
						 errhint("Set the option \"time_limit\" or the setting "
								 "ag_pg.default_time_limit for another.")));
}

static void
tell_presets(const AgFitCall *call)
{
	if (call->has_default_presets && call->options->verbosity >= AG_LOG_NORMAL)
		ereport(NOTICE, (errmsg("presets: %s, the default", ag_setting_default_presets),
						 errhint("Set the option \"presets\" or the setting "
								 "ag_pg.default_presets for others.")));
}

void
ag_fit_prepare(AgFitCall *call)
{
	MemoryContextSwitchTo(call->context);
	read_options(call);
	tell_presets(call);
	call->raw_text = GetDatabaseEncoding() == PG_SQL_ASCII;
	call->source = ag_source_open(call->source_text);
	ag_fit_choose_columns(call);
	ag_fit_choose_name(call);
}

void
ag_fit_send(AgFitCall *call)
{
	MemoryContextSwitchTo(call->context);
	ag_fit_warn_left_out(call);
	tell_time_limit(call);
	ag_fit_begin_results(call);
	open_line(call);
	send_job(call);
	read_rows(call);
}

void
ag_fit_end_line(AgFitCall *call)
{
	ag_line_close(call->line);
	call->line = NULL;
	if (!call->has_fitted)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION),
						errmsg("the trainer ended without a predictor")));
}

void
ag_fit_refuse_early(const char *function, bool writes)
{
	const char *command = psprintf("%s()", function);

	PreventCommandDuringRecovery(command);
	if (writes)
		PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
}

/* Before options are read in earnest: what isn't a boolean is refused there. */
static bool
is_dry_run(Jsonb *options)
{
	JsonbValue *value = ag_options_member(options, "dry_run");

	return value != NULL && value->type == jbvBool && value->val.boolean;
}

/* {"presets": [those of the setting]} */
static Jsonb *
presets_json(List *names)
{
	JsonbParseState *state = NULL;
	JsonbValue text = {.type = jbvString};
	ListCell *cell;

	text.val.string.val = (char *) "presets";
	text.val.string.len = (int) strlen("presets");
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	pushJsonbValue(&state, WJB_KEY, &text);
	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	foreach (cell, names)
	{
		text.val.string.val = lfirst(cell);
		text.val.string.len = (int) strlen(lfirst(cell));
		pushJsonbValue(&state, WJB_ELEM, &text);
	}
	pushJsonbValue(&state, WJB_END_ARRAY, NULL);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* They become options like any others: what is stored, repeated, refreshed or run as a job is the same without the setting. */
static void
add_default_presets(AgFitCall *call)
{
	List *names = ag_settings_presets();

	if (names == NIL || !JB_ROOT_IS_OBJECT(call->options_json) ||
		ag_options_member(call->options_json, "presets") != NULL ||
		ag_options_member(call->options_json, "replay") != NULL)
		return;
	call->options_json = DatumGetJsonbP(DirectFunctionCall2(
		jsonb_concat, JsonbPGetDatum(call->options_json), JsonbPGetDatum(presets_json(names))));
	call->has_default_presets = true;
}

AgFitCall *
ag_fit_begin_of(FunctionCallInfo fcinfo, const char *function)
{
	Jsonb *options = PG_ARGISNULL(2)
						 ? DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")))
						 : PG_GETARG_JSONB_P_COPY(2);
	AgFitCall *call;

	ag_fit_refuse_early(function, !is_dry_run(options));
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("%s of %s must not be NULL",
							   PG_ARGISNULL(0) ? "the data" : "the label", function)));
	call = ag_fit_begin(text_to_cstring(PG_GETARG_TEXT_PP(0)),
						text_to_cstring(PG_GETARG_TEXT_PP(1)), options);
	add_default_presets(call);
	return call;
}

const char *
ag_fit_in_session(AgFitCall *call)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	ag_fit_prepare(call);
	call->running = ag_running_begin(call->name, call->data, call->label_name);
	ag_fit_send(call);
	while (!call->done)
		ag_line_wait(call->line);
	ag_fit_end_line(call);
	ag_running_end(call->running);
	if (!call->options->dry_run)
	{
		ag_fit_store(call);
		ag_job_record_fit(call);
		ag_fit_tell_how_to_predict(call);
		ag_fit_log(call);
	}
	SPI_finish();
	return call->options->dry_run ? ag_text_from_utf8(call->fitted.plan_json) : call->name;
}

/* ag_fit(data text, label text, options jsonb) RETURNS text */
Datum
ag_sql_fit(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	AgFitCall *call = ag_fit_begin_of(fcinfo, "ag_fit");
	const char *volatile result = NULL;
	text *text_result;

	PG_TRY();
	{
		result = ag_fit_in_session(call);
	}
	PG_CATCH();
	{
		ag_stats_count_failure(geterrcode());
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	text_result = cstring_to_text(result);
	MemoryContextDelete(call->context);
	PG_RETURN_TEXT_P(text_result);
}
