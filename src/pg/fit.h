/*
 * fit.h - one call of ag_fit, in the session that makes it: shared by the files fit*.c.
 */
#ifndef AG_PG_FIT_H
#define AG_PG_FIT_H

#include "postgres.h"

#include "pgtime.h"
#include "utils/jsonb.h"
#include "utils/tuplestore.h"

#include "engine/engine.h"
#include "engine/search/fit.h"
#include "pg/line.h"
#include "pg/source.h"
#include "pg/stream.h"
#include "wire/message.h"

typedef struct AgFitCall
{
	/* asked */
	const char *data;
	const char *label;
	Jsonb *options_json;
	AgOptionEntry *entries;
	int n_entries;
	AgFitOptions *options; /* the engine's: freed with the context */
	/* found out */
	AgSource *source;
	AgSchema schema; /* what is sent; names in UTF-8 */
	int *columns;    /* of the source, a schema column each */
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
	/* result */
	AgFittedPredictor fitted;
	bool has_fitted;
	bool done;
	Tuplestorestate
		*frames; /* FEATURE, MEMBER and PART as they came: work_mem, then a temporary file */
	TupleDesc frames_desc;
	int version;
} AgFitCall;

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

#endif
