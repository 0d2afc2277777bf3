/*
 * job_run.c - one job, from its first transaction to its last.
 *
 * The data is read in one short transaction, as the submitter: his role, and what his session's settings were. Training goes on with
 * no transaction open; what there is to see of it is written in transactions of its own. The result is stored, and the job
 * seen to have succeeded, in one last transaction.
 *
 * The session user is the submitter's too, so that a policy or view that asks for it gets the answer it would have got; and code of
 * users runs in a security-restricted operation, so that it can't become anybody else again.
 */
#include "postgres.h"

#include <math.h>
#include <signal.h>

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "engine/base/context.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/fit.h"
#include "pg/job.h"
#include "pg/stats.h"

#define SHOW_EVERY_NS INT64_C(500000000)
#define SHOW_LOCK_TIMEOUT "200ms"
#define LOG_BYTES (1024 * 1024)

typedef struct Run
{
	const AgJobOrder *order;
	MemoryContext context;
	ResourceOwner keeper;
	AgFitCall *call;
	int64 started_ns, shown_ns;
	StringInfoData log;
	Size last_line; /* where it begins */
	bool log_changed, progress_changed, phase_changed;
	char phase[160];
	double done;  /* of the whole, 0 to 1; NaN: unknown */
	double score; /* so far; NaN: none */
} Run;

/* ---- cancels ---- */

/* A time limit that passes is a cancelled query too, but of no user's asking. */
static volatile sig_atomic_t cancel_asked = false;

static void
on_cancel(SIGNAL_ARGS)
{
	cancel_asked = true;
	StatementCancelHandler(postgres_signal_arg);
}

void
ag_job_accept_cancel(bool accept)
{
	pqsignal(SIGINT, accept ? on_cancel : SIG_IGN);
	if (accept)
		return;
	cancel_asked = false;
	QueryCancelPending = false;
}

/* ---- the log: what the session would have been told ---- */

/* The one whose messages are taken down; the hook stays for the process's life. */
static Run *listening = NULL;
static emit_log_hook_type previous_hook = NULL;
static int server_level; /* log_min_messages as it was */

static void
add_line(Run *run, const char *prefix, const char *text, const char *hint)
{
	if (run->log.len > LOG_BYTES)
		return;
	run->last_line = run->log.len;
	appendStringInfo(&run->log, "[%.1f s] %s%s\n", (double) (ag_clock_ns() - run->started_ns) / 1e9,
					 prefix, text);
	if (hint != NULL)
		appendStringInfo(&run->log, "    HINT:  %s\n", hint);
	if (run->log.len > LOG_BYTES)
		appendStringInfoString(&run->log, "... (the rest is left out)\n");
	run->log_changed = true;
}

static void
take_message(ErrorData *edata)
{
	if (previous_hook != NULL)
		previous_hook(edata);
	if (listening == NULL || edata->message == NULL)
		return;
	if (edata->elevel != NOTICE && edata->elevel != INFO && edata->elevel != WARNING)
		return;
	add_line(listening, edata->elevel == WARNING ? "WARNING:  " : "", edata->message, edata->hint);
	if (edata->elevel < server_level)
		edata->output_to_server = false;
}

static void
listen_to(Run *run)
{
	static bool installed = false;

	if (!installed)
	{
		previous_hook = emit_log_hook;
		emit_log_hook = take_message;
		server_level = log_min_messages;
		SetConfigOption("log_min_messages", "notice", PGC_SUSET, PGC_S_OVERRIDE);
	}
	installed = true;
	listening = run;
}

static void
take_progress(void *arg, const AgMsgProgress *progress)
{
	Run *run = arg;
	const char *phase = ag_message_from_utf8(progress->phase);

	if (strncmp(run->phase, phase, sizeof run->phase - 1) != 0)
	{
		strlcpy(run->phase, phase, sizeof run->phase);
		run->phase_changed = true;
	}
	if (progress->done >= 0 && !(run->done > progress->done))
		run->done = progress->done;
	run->score = progress->score;
	run->progress_changed = true;
}

/* ---- transactions ---- */

static void
begin_transaction(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
end_transaction(Run *run)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	CurrentResourceOwner = run->keeper;
	MemoryContextSwitchTo(run->context);
}

static void
become_submitter(const Run *run, Oid *user, int *context)
{
	GetUserIdAndSecContext(user, context);
	SetUserIdAndSecContext(run->order->role,
						   *context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
}

/* ---- what others see ---- */

static Datum
last_line(const Run *run)
{
	const char *line = run->log.data + run->last_line;
	const char *text = strstr(line, "] ");

	text = text != NULL ? text + 2 : line;
	return PointerGetDatum(cstring_to_text_with_len(text, (int) strcspn(text, "\n")));
}

static void
write_progress(Run *run)
{
	Oid types[8] = {INT8OID, TEXTOID, FLOAT8OID, FLOAT8OID, FLOAT8OID, TEXTOID, TEXTOID, INT8OID};
	Datum values[8] = {0};
	char nulls[8] = {' ', ' ', ' ', ' ', ' ', 'n', 'n', ' '};
	double left_s = ag_fit_seconds_left(run->call, run->done);

	values[0] = Int64GetDatum(run->order->id);
	values[1] = CStringGetTextDatum(run->phase);
	values[2] = Float8GetDatum(run->done * 100);
	values[3] = Float8GetDatum(left_s);
	values[4] = Float8GetDatum(run->score);
	nulls[2] = isnan(run->done) ? 'n' : ' ';
	nulls[3] = nulls[7] = isnan(left_s) ? 'n' : ' ';
	if (!isnan(left_s))
		values[7] = Int64GetDatum(ag_clock_ns() + (int64) (left_s * 1e9));
	nulls[4] = isnan(run->score) ? 'n' : ' ';
	if (run->log_changed)
	{
		values[5] = CStringGetTextDatum(run->log.data);
		values[6] = last_line(run);
		nulls[5] = nulls[6] = ' ';
	}
	ag_catalog_execute_on(
		"ag_job",
		"UPDATE @.ag_job SET phase = $2, percent = $3, score = $5, log = coalesce($6, log), "
		"expected_end = clock_timestamp() + make_interval(secs => $4), expected_ns = $8, "
		"message = coalesce($7, message) WHERE id = $1",
		8, types, values, nulls, NULL, NULL);
	if (run->phase_changed)
		ag_job_notify(run->order->id);
}

/* Somebody has locked the table: the trainer mustn't wait for him, so another time. */
static void
skip_if_locked(Run *run)
{
	if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
		PG_RE_THROW();
	MemoryContextSwitchTo(run->context);
	FlushErrorState();
	AbortCurrentTransaction();
	CurrentResourceOwner = run->keeper;
	MemoryContextSwitchTo(run->context);
}

static void
show(Run *run)
{
	int64 now = ag_clock_ns();

	if (now - run->shown_ns < SHOW_EVERY_NS || !(run->log_changed || run->progress_changed))
		return;
	run->shown_ns = now;
	PG_TRY();
	{
		begin_transaction();
		(void) set_config_option("lock_timeout", SHOW_LOCK_TIMEOUT, PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_LOCAL, true, 0, false);
		write_progress(run);
		end_transaction(run);
		run->log_changed = run->progress_changed = run->phase_changed = false;
	}
	PG_CATCH();
	{
		skip_if_locked(run);
	}
	PG_END_TRY();
}

/* The last word, in the current transaction. version 0: none. */
static void
write_end(Run *run, const char *state, const char *message, int version, double score)
{
	Oid types[8] = {INT8OID, TEXTOID, TEXTOID, TEXTOID, INT4OID, FLOAT8OID, FLOAT8OID, INT8OID};
	Datum values[8];
	char nulls[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};

	values[0] = Int64GetDatum(run->order->id);
	values[1] = CStringGetTextDatum(state);
	values[2] = CStringGetTextDatum(message);
	values[3] = CStringGetTextDatum(run->log.data);
	values[4] = Int32GetDatum(version);
	values[5] = Float8GetDatum(score);
	values[6] = Float8GetDatum(100.0);
	values[7] = Int64GetDatum(ag_clock_ns());
	nulls[4] = nulls[6] = version == 0 ? 'n' : ' ';
	nulls[5] = isnan(score) ? 'n' : ' ';
	ag_catalog_execute_on("ag_job",
						  "UPDATE @.ag_job SET state = $2, message = $3, log = $4, version = $5, "
						  "score = coalesce($6, score), percent = coalesce($7, percent), ended_at "
						  "= clock_timestamp(), ended_ns = $8 WHERE id = $1",
						  8, types, values, nulls, NULL, NULL);
	ag_catalog_execute_on("ag_job_order", "DELETE FROM @.ag_job_order WHERE id = $1", 1, types,
						  values, NULL, NULL, NULL);
	ag_job_notify(run->order->id);
}

/* ---- the steps ---- */

/* A role's number may have gone to another one since. */
static void
become_session(Run *run)
{
	const AgJobOrder *order = run->order;
	Oid session = order->session_role;
	char *name;

	begin_transaction();
	name = GetUserNameFromId(order->role, true);
	if (name == NULL || strcmp(name, order->role_name) != 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("role \"%s\", which submitted the job, no longer exists",
							   order->role_name)));
	if (GetUserNameFromId(session, true) == NULL)
		session = order->role;
	SetSessionAuthorization(session, superuser_arg(session));
	ag_job_settings_apply(order->settings);
	end_transaction(run);
}

static void
read_data(Run *run)
{
	Oid user;
	int context;
	AgFitCall *call;

	begin_transaction();
	become_submitter(run, &user, &context);
	MemoryContextSwitchTo(run->context);
	call = ag_fit_begin(run->order->data, run->order->label, run->order->options);
	call->source_text = run->order->source;
	call->is_job = true;
	call->keeper = run->keeper;
	call->on_progress = take_progress;
	call->on_progress_arg = run;
	run->call = call;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	ag_fit_prepare(call);
	ag_fit_send(call);
	SPI_finish();
	end_transaction(run);
	SetUserIdAndSecContext(user, context);
}

static void
train(Run *run)
{
	AgFitCall *call = run->call;

	while (!call->done)
	{
		ag_line_wait(call->line);
		show(run);
	}
	ag_fit_end_line(call);
}

static void
store(Run *run)
{
	AgFitCall *call = run->call;
	Oid user;
	int context;

	begin_transaction();
	become_submitter(run, &user, &context);
	ag_fit_store(call);
	ag_fit_tell_how_to_predict(call);
	ag_fit_log(call);
	SetUserIdAndSecContext(user, context);
	write_end(run, "succeeded", psprintf("stored as \"%s\", version %d", call->name, call->version),
			  call->version, call->fitted.score_val);
	end_transaction(run);
}

/* In the handler of an error: ends all that was begun, and writes down why. */
static void
fail(Run *run)
{
	ErrorData *edata;
	bool is_cancelled;

	listening = NULL;
	MemoryContextSwitchTo(run->context);
	edata = CopyErrorData();
	ag_stats_count_failure(edata->sqlerrcode);
	is_cancelled = edata->sqlerrcode == ERRCODE_QUERY_CANCELED && cancel_asked;
	ag_job_accept_cancel(false);
	if (!is_cancelled)
		EmitErrorReport();
	FlushErrorState();
	AbortCurrentTransaction();
	SetUserIdAndSecContext(GetSessionUserId(), 0);
	CurrentResourceOwner = run->keeper;
	MemoryContextSwitchTo(run->context);
	if (run->call != NULL && run->call->line != NULL)
		ag_line_kill_direct(run->call->line);
	if (is_cancelled)
		add_line(run, "", "cancelled", NULL);
	else
	{
		add_line(run, "ERROR:  ", edata->message, edata->hint);
		if (edata->detail != NULL)
			appendStringInfo(&run->log, "    DETAIL:  %s\n", edata->detail);
	}
	begin_transaction();
	write_end(run, is_cancelled ? "cancelled" : "failed",
			  is_cancelled ? "cancelled" : edata->message, 0, NAN);
	end_transaction(run);
}

void
ag_job_run(const AgJobOrder *order)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext context =
		AllocSetContextCreate(TopMemoryContext, "ag_pg job", ALLOCSET_DEFAULT_SIZES);
	Run *run;

	MemoryContextSwitchTo(context);
	run = palloc0(sizeof(Run));
	run->order = order;
	run->context = context;
	run->keeper = ResourceOwnerCreate(NULL, "ag_pg job");
	run->started_ns = ag_clock_ns();
	run->done = run->score = NAN;
	strlcpy(run->phase, "reading rows", sizeof run->phase);
	initStringInfo(&run->log);
	pgstat_report_activity(STATE_RUNNING, psprintf("job " INT64_FORMAT, order->id));
	listen_to(run);

	PG_TRY();
	{
		become_session(run);
		read_data(run);
		train(run);
		store(run);
	}
	PG_CATCH();
	{
		fail(run);
	}
	PG_END_TRY();

	listening = NULL;
	SetSessionAuthorization(BOOTSTRAP_SUPERUSERID, true);
	if (run->call != NULL && run->call->frames != NULL)
		tuplestore_end(run->call->frames);
	CurrentResourceOwner = NULL;
	ResourceOwnerDelete(run->keeper);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
