/*
 * fit_result.c - what the trainer says during a fit, and what it leaves when it is done.
 */
#include "postgres.h"

#include <math.h>

#include "access/tupdesc.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/fit.h"
#include "pg/settings.h"
#include "pg/stats.h"

#define NOTICE_EVERY_NS INT64_C(9500000000)
#define MAX_PASTED_QUERY 300

void
ag_fit_begin_results(AgFitCall *call)
{
	TupleDesc desc = CreateTemplateTupleDesc(2);
	ResourceOwner owner = CurrentResourceOwner;

	TupleDescInitEntry(desc, 1, "type", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "payload", BYTEAOID, -1, 0);
	call->frames_desc = desc;
	if (call->keeper != NULL)
		CurrentResourceOwner = call->keeper;
	call->frames = tuplestore_begin_heap(false, call->is_job, work_mem);
	CurrentResourceOwner = owner;
}

/* ---- messages ---- */

static void
take_log(AgFitCall *call, const uint8 *payload, uint32 n)
{
	int verbosity = call->options->verbosity;
	AgMsgLog log;
	AgError err;

	ag_error_init(&err);
	ag_error_check(ag_msg_log_read(&call->message, payload, n, &log, &err), &err);
	if (call->running != NULL && log.level <= AG_LOG_NORMAL)
		ag_running_message(call->running, ag_message_from_utf8(log.text));
	if (verbosity == 0 || (int) log.level > verbosity)
		return;
	ereport(log.level == AG_LOG_WARNING ? WARNING : NOTICE,
			(errmsg_internal("%s", ag_message_from_utf8(log.text)),
			 log.hint[0] != '\0' ? errhint("%s", ag_message_from_utf8(log.hint)) : 0));
	call->last_notice_ns = ag_clock_ns();
}

double
ag_fit_seconds_left(const AgFitCall *call, double done)
{
	int64 now = ag_clock_ns();
	double elapsed_s = (double) (now - call->started_ns) / 1e9;
	double allowed_s = (double) (call->deadline_ns - now) / 1e9;

	if (!(done > 0))
		return NAN;
	return Max(0, Min(elapsed_s * (1 - done) / done, allowed_s));
}

/* A long phase speaks up about every 10 seconds. */
static void
take_progress(AgFitCall *call, const uint8 *payload, uint32 n)
{
	AgMsgProgress progress;
	AgError err;
	int64 now = ag_clock_ns();
	double elapsed_s = (double) (now - call->started_ns) / 1e9;

	ag_error_init(&err);
	ag_error_check(ag_msg_progress_read(&call->message, payload, n, &progress, &err), &err);
	if (call->on_progress != NULL)
	{
		call->on_progress(call->on_progress_arg, &progress);
		return;
	}
	if (call->running != NULL)
	{
		double done = progress.done >= 0 ? progress.done : NAN;

		ag_running_progress(call->running, ag_message_from_utf8(progress.phase), done,
							ag_fit_seconds_left(call, done), progress.score);
	}
	if (call->options->verbosity < AG_LOG_NORMAL || now - call->last_notice_ns < NOTICE_EVERY_NS)
		return;
	call->last_notice_ns = now;
	if (progress.fraction >= 0)
		ereport(NOTICE, (errmsg("%s: %.0f %% after %.0f s", ag_message_from_utf8(progress.phase),
								Min(progress.fraction, 1.0) * 100, elapsed_s)));
	else
		ereport(NOTICE, (errmsg("%s: at work after %.0f s", ag_message_from_utf8(progress.phase),
								elapsed_s)));
}

static void
take_error(const uint8 *payload, uint32 n)
{
	AgError fault, err;

	ag_error_init(&err);
	ag_error_init(&fault);
	ag_error_check(ag_msg_error_read(payload, n, &fault, &err), &err);
	if (fault.status == AG_OK)
		fault.status = AG_ERR_INTERNAL;
	ag_error_raise(&fault);
}

static void
keep_frame(AgFitCall *call, AgFrameType type, const uint8 *payload, uint32 n)
{
	bytea *copy;
	Datum values[2];
	bool nulls[2] = {false, false};

	if (n > MaxAllocSize - VARHDRSZ)
		ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION),
						errmsg("the trainer sent a result of %u bytes", n)));
	copy = palloc(n + VARHDRSZ);
	SET_VARSIZE(copy, n + VARHDRSZ);
	memcpy(VARDATA(copy), payload, n);
	values[0] = Int32GetDatum((int32) type);
	values[1] = PointerGetDatum(copy);
	tuplestore_putvalues(call->frames, call->frames_desc, values, nulls);
	pfree(copy);
}

void
ag_fit_take_frame(void *arg, const AgFrameHeader *header, const uint8 *payload)
{
	AgFitCall *call = arg;
	uint32 n = header->n_bytes;
	MemoryContext old = MemoryContextSwitchTo(call->context);
	AgMsgDone totals; /* the trainer's last line has told them already */
	AgError err;

	ag_error_init(&err);
	switch (header->type)
	{
		case AG_FRAME_LOG:
			take_log(call, payload, n);
			break;
		case AG_FRAME_PROGRESS:
			take_progress(call, payload, n);
			break;
		case AG_FRAME_ERROR:
			take_error(payload, n);
			break;
		case AG_FRAME_PREDICTOR:
			ag_error_check(ag_msg_predictor_read(&call->arena, payload, n, &call->fitted, &err),
						   &err);
			call->has_fitted = true;
			break;
		case AG_FRAME_FEATURE:
		case AG_FRAME_MEMBER:
		case AG_FRAME_PART:
			keep_frame(call, header->type, payload, n);
			break;
		case AG_FRAME_DONE:
			ag_error_check(ag_msg_done_read(&call->message, payload, n, &totals, &err), &err);
			call->done = true;
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_PROTOCOL_VIOLATION),
					 errmsg("unexpected frame of type %d from the trainer", (int) header->type)));
	}
	ag_arena_free(&call->message); /* told by now, and there may be many */
	MemoryContextSwitchTo(old);
}

/* ---- storing ---- */

static void
store_frame(AgFitCall *call, const pg_uuid_t *id, AgFrameType type, bytea *payload)
{
	const void *bytes = VARDATA_ANY(payload);
	size_t n = VARSIZE_ANY_EXHDR(payload);
	AgFittedFeature feature;
	AgFittedMember member;
	AgMsgPart part;
	AgError err;

	ag_error_init(&err);
	switch (type)
	{
		case AG_FRAME_FEATURE:
			ag_error_check(ag_msg_feature_read(&call->message, bytes, n, &feature, &err), &err);
			ag_catalog_store_feature(id, &feature);
			break;
		case AG_FRAME_MEMBER:
			ag_error_check(ag_msg_member_read(&call->message, bytes, n, &member, &err), &err);
			ag_catalog_store_member(id, &member);
			if (member.num_gpus > 0 && member.fit_seconds > 0)
				call->gpu_seconds += member.num_gpus * member.fit_seconds;
			break;
		default:
			ag_error_check(ag_msg_part_read(bytes, n, &part, &err), &err);
			ag_catalog_store_part(id, part.member, part.part, part.bytes, part.n_bytes);
			break;
	}
	ag_arena_free(&call->message);
}

/*
 * The caller's name, as it is now. The transaction may be minutes old: what happened to roles since is only heard when asked, and a
 * predictor under a name of yesterday would be whoever's takes that name next.
 */
static const char *
name_of_caller(void)
{
	const char *name;

	AcceptInvalidationMessages();
	name = GetUserNameFromId(GetUserId(), true);
	if (name == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("the role that fits was dropped during the fit")));
	return name;
}

void
ag_fit_store(AgFitCall *call)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(call->frames_desc, &TTSOpsMinimalTuple);
	MemoryContext scratch =
		AllocSetContextCreate(call->context, "ag_pg store", ALLOCSET_DEFAULT_SIZES);
	AgCatalogPredictor predictor = {0};
	pg_uuid_t id;

	MemoryContextSwitchTo(scratch);
	predictor.name = call->name;
	predictor.owner = name_of_caller();
	predictor.data = call->data;
	predictor.label = call->label_name;
	predictor.options_json =
		JsonbToCString(NULL, &call->kept_options->root, VARSIZE(call->kept_options));
	predictor.time_limit = call->time_limit;
	predictor.fit_seconds = (double) (ag_clock_ns() - call->started_ns) / 1e9;
	predictor.fitted = &call->fitted;
	ag_catalog_store_begin(&predictor, &id, &call->version, &call->pinned);
	MemoryContextSwitchTo(call->context); /* the slot frees what it read from the file itself */
	while (tuplestore_gettupleslot(call->frames, true, false, slot))
	{
		slot_getallattrs(slot);
		MemoryContextReset(scratch);
		MemoryContextSwitchTo(scratch);
		store_frame(call, &id, (AgFrameType) DatumGetInt32(slot->tts_values[0]),
					(bytea *) DatumGetPointer(slot->tts_values[1]));
		MemoryContextSwitchTo(call->context);
	}
	ag_catalog_store_end(&id);
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(call->frames);
	call->frames = NULL;
	MemoryContextDelete(scratch);
	ag_stats_count(AG_STAT_FITS, 1);
	ag_stats_count(AG_STAT_FIT_ROWS, (uint64) call->fitted.n_rows);
	ag_stats_count(AG_STAT_FIT_MS, (uint64) (predictor.fit_seconds * 1000));
	ag_stats_count(AG_STAT_GPU_MS, (uint64) (call->gpu_seconds * 1000));
}

/* ---- the last word ---- */

/* A name that no column has: a column called like the alias would be taken for it. */
static const char *
free_alias(const AgSource *source)
{
	static const char *const aliases[] = {"t", "row_of_t", "source_row", "ag_row"};

	for (size_t a = 0; a < lengthof(aliases); a++)
	{
		bool taken = false;

		for (int i = 0; i < source->n_columns && !taken; i++)
			taken = strcmp(source->columns[i].name, aliases[a]) == 0;
		if (!taken)
			return aliases[a];
	}
	return "ag_source";
}

static const char *
pasted_source(const AgFitCall *call)
{
	const AgSource *source = call->source;

	if (source->table == NULL)
		return strlen(call->data) <= MAX_PASTED_QUERY ? psprintf("(%s)", call->data)
													  : "(... the query ...)";
	return RelationIsVisible(source->relid) ? quote_identifier(source->table) : source->qualified;
}

/* As the user can call it. */
static const char *
function_name(const char *function)
{
	List *path = fetch_search_path(false);
	bool is_in_path = list_member_oid(path, ag_catalog_schema());

	list_free(path);
	return is_in_path
			   ? function
			   : quote_qualified_identifier(get_namespace_name(ag_catalog_schema()), function);
}

void
ag_fit_tell_how_to_predict(AgFitCall *call)
{
	const char *model =
		call->pinned == 0 ? call->name : psprintf("%s@%d", call->name, call->version);
	AgType label_type = call->schema.columns[call->label_column].type;
	const char *function = label_type == AG_TYPE_TEXT       ? "ag_predict_class"
						   : call->options->n_quantiles > 0 ? "ag_predict_quantiles"
															: "ag_predict";
	const char *alias = free_alias(call->source);

	if (call->options->verbosity == 0)
		return;
	function = function_name(function);
	ereport(NOTICE, (errmsg("stored as \"%s\", version %d", call->name, call->version),
					 errhint("SELECT *, %s(%s, %s) FROM %s AS %s", function,
							 quote_literal_cstr(model), alias, pasted_source(call), alias)));
	if (call->pinned != 0)
		ereport(NOTICE,
				(errmsg("version %d stays the current version of \"%s\", as it is pinned",
						call->pinned, call->name),
				 errhint("%s(%s, %s) predicts with the new version; SELECT %s(%s, NULL) makes the "
						 "newest version the current one.",
						 function, quote_literal_cstr(model), alias, function_name("ag_activate"),
						 quote_literal_cstr(call->name))));
}

void
ag_fit_log(const AgFitCall *call)
{
	if (!ag_setting_log_fits)
		return;
	ereport(LOG, (errmsg("fitted model \"%s\", version %d, on " INT64_FORMAT
						 " rows in %.3f s: best model %s, %s %g",
						 call->name, call->version, (int64) call->fitted.n_rows,
						 (double) (ag_clock_ns() - call->started_ns) / 1e9,
						 ag_message_from_utf8(call->fitted.best_model),
						 ag_metric_name(call->fitted.eval_metric), call->fitted.score_val),
				  errhidestmt(true)));
}
