/*
 * fit.h - one fit, in the session that calls ag_fit or in a job's worker: shared by the files fit*.c and job*.c.
 */
#ifndef AG_PG_FIT_H
#define AG_PG_FIT_H

#include "postgres.h"

#include "fmgr.h"
#include "pgtime.h"
#include "utils/jsonb.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

#include "engine/engine.h"
#include "engine/search/fit.h"
#include "pg/line.h"
#include "pg/running.h"
#include "pg/source.h"
#include "pg/stream.h"
#include "wire/message.h"

typedef struct AgFitCall
{
	/* asked */
	const char *data;        /* as the user gave it */
	const char *source_text; /* what is opened: the same, or with a table's schema put in */
	const char *label;
	Jsonb *options_json; /* as given, or with the presets of the setting */
	Jsonb *plan; /* {"replay": a plan} that is made here and put over the options; NULL: none */
	Jsonb *kept_options; /* what is kept with the predictor: of a replay, those that it repeats */
	bool has_default_presets; /* they are the setting's */
	AgOptionEntry *entries;
	int n_entries;
	AgFitOptions *options; /* the engine's: freed with the context */
	/* found out */
	AgSource *source;
	AgSource *tuning;    /* rows to validate on; NULL: none */
	int *tuning_columns; /* as columns */
	AgSchema schema;     /* what is sent; names in UTF-8 */
	int *columns;        /* of the source, a schema column each */
	int label_column;
	const char *label_name; /* server encoding */
	char *left_out; /* columns of types that can't be features, for the warning; NULL: none */
	int n_left_out;
	char *name;
	pg_tz *zone;
	bool raw_text;
	int64 started_ns, deadline_ns;
	double time_limit; /* seconds */
	int64 memory_limit_bytes;
	/* on the way */
	MemoryContext context; /* of the whole call */
	AgMem mem;             /* of the engine's structures */
	AgArena arena;         /* of the call */
	AgArena message;       /* of the message at hand */
	AgLine *line;
	int64 last_notice_ns;
	/* of a job: it goes on from one transaction to the next, and watches over its trainer itself */
	bool is_job;
	ResourceOwner keeper; /* of what outlives transactions; NULL: the current one */
	void (*on_progress)(void *arg, const AgMsgProgress *progress); /* NULL: NOTICEs do */
	void *on_progress_arg;
	AgRunning *running; /* of a session: what others see of it; NULL: a job's */
	/* result */
	AgFittedPredictor fitted;
	bool has_fitted;
	bool done;
	Tuplestorestate
		*frames; /* FEATURE, MEMBER and PART as they came: work_mem, then a temporary file */
	TupleDesc frames_desc;
	int version;
	double gpu_seconds; /* of its members */
	int pinned;         /* the version that stays current, activated by hand; 0: the new one is */
} AgFitCall;

/*
 * fit.c. A fit is: begin; prepare (inside an SPI connection, as what follows: options, source, columns, name; all that can be refused
 * is refused); send (starts the trainer, sends it the rows); ag_line_wait until done; end_line; store; tell_how_to_predict. begin makes
 * call->context the current one, and it stays so; the call ends with that context. begin_of takes the arguments
 * of ag_fit and its kin, and the presets of the setting where they name none; what is fitted again keeps what it had.
 */
extern AgFitCall *ag_fit_begin(const char *data, const char *label, Jsonb *options);
extern AgFitCall *ag_fit_begin_of(FunctionCallInfo fcinfo, const char *function);
extern void ag_fit_prepare(AgFitCall *call);
extern void ag_fit_send(AgFitCall *call);
extern void ag_fit_end_line(AgFitCall *call);
/* All of it behind begin. Gives what ag_fit is to give: the name, or of a dry run the plan. */
extern const char *ag_fit_in_session(AgFitCall *call);

/* The standard errors of a standby, a read-only transaction and parallel mode. */
extern void ag_fit_refuse_early(const char *function, bool writes);

/* fit_source.c: which columns take part, as what; the predictor's name. Inside an SPI connection. */
extern void ag_fit_choose_columns(AgFitCall *call);
extern void ag_fit_choose_name(AgFitCall *call);
/* The WARNING about columns of types that no feature can be made of. */
extern void ag_fit_warn_left_out(const AgFitCall *call);

/* fit_result.c: what the trainer says (an AgFrameFn), and storing what it made. */
extern void ag_fit_begin_results(AgFitCall *call);
extern void ag_fit_take_frame(void *call, const AgFrameHeader *header, const uint8 *payload);
extern void ag_fit_store(AgFitCall *call);
extern void ag_fit_tell_how_to_predict(AgFitCall *call);

/* As fast as so far, and never beyond the time limit. done: of the whole, 0 to 1. NaN: too early to tell. */
extern double ag_fit_seconds_left(const AgFitCall *call, double done);

/* With ag_pg.log_fits on: a line in the server's log. */
extern void ag_fit_log(const AgFitCall *call);

#endif
