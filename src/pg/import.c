/*
 * import.c - ag_import: a model of trees that another program made becomes a predictor.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "engine/engine.h"
#include "engine/search/fit.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/fit.h"
#include "pg/settings.h"
#include "wire/message.h"

#define MOST_BYTES (INT64_C(4) << 30) /* of the model while it is read, or what fits may use */

typedef struct Import
{
	AgCatalogPredictor predictor;
	pg_uuid_t id;
	int version, pinned;
	MemoryContext context;
	ErrorData *error;    /* of the tables: raised when the engine has put its memory away */
	_Atomic bool cancel; /* likewise: the session has to look after an interrupt */
} Import;

/* Between two trees. */
static void
look_up(void *host, const char *phase, double fraction)
{
	Import *import = host;

	if (InterruptPending && (QueryCancelPending || ProcDiePending))
		import->cancel = true;
}

/* --- the sink: errors must not jump over the engine --- */

typedef enum Step
{
	STEP_PREDICTOR,
	STEP_FEATURE,
	STEP_MEMBER
} Step;

static void
take_step(Import *import, Step step, const void *what)
{
	switch (step)
	{
		case STEP_PREDICTOR:
			import->predictor.fitted = what;
			ag_catalog_store_begin(&import->predictor, &import->id, &import->version,
								   &import->pinned);
			break;
		case STEP_FEATURE:
			ag_catalog_store_feature(&import->id, what);
			break;
		case STEP_MEMBER:
			ag_catalog_store_member(&import->id, what);
			break;
	}
}

static void
take_image(Import *import, int member, const char *bytes, size_t n_bytes)
{
	for (size_t at = 0; at < n_bytes; at += AG_PART_BYTES)
		ag_catalog_store_part(&import->id, member, (int) (at / AG_PART_BYTES), bytes + at,
							  (uint32) Min(n_bytes - at, AG_PART_BYTES));
}

static void
keep_error(Import *import)
{
	MemoryContextSwitchTo(import->context);
	import->error = CopyErrorData();
	FlushErrorState();
}

static AgStatus
guarded_step(Import *import, Step step, const void *what)
{
	PG_TRY();
	{
		take_step(import, step, what);
	}
	PG_CATCH();
	{
		keep_error(import);
	}
	PG_END_TRY();
	return import->error == NULL ? AG_OK : AG_ERR_INTERNAL;
}

static AgStatus
sink_predictor(void *host, const AgFittedPredictor *predictor)
{
	return guarded_step(host, STEP_PREDICTOR, predictor);
}

static AgStatus
sink_feature(void *host, const AgFittedFeature *feature)
{
	return guarded_step(host, STEP_FEATURE, feature);
}

static AgStatus
sink_member(void *host, const AgFittedMember *member)
{
	return guarded_step(host, STEP_MEMBER, member);
}

static AgStatus
sink_image(void *host, int member, const void *bytes, size_t n_bytes)
{
	Import *import = host;

	PG_TRY();
	{
		take_image(import, member, bytes, n_bytes);
	}
	PG_CATCH();
	{
		keep_error(import);
	}
	PG_END_TRY();
	return import->error == NULL ? AG_OK : AG_ERR_INTERNAL;
}

/* --- the call --- */

static const char **
class_names(ArrayType *array, int *n)
{
	Datum *items;
	bool *nulls;
	const char **names;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &items, &nulls, n);
	names = palloc(sizeof(char *) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("the name of a class must not be NULL")));
		names[i] = ag_text_to_utf8(TextDatumGetCString(items[i]));
	}
	return names;
}

/* Arguments: name, model, format, label, classes. */
static void
import_model(FunctionCallInfo fcinfo, const char *name, const char *bytes, size_t n_bytes)
{
	char *format = text_to_cstring(PG_GETARG_TEXT_PP(2));
	char *label = text_to_cstring(PG_GETARG_TEXT_PP(3));
	Import state = {.context = CurrentMemoryContext};
	AgImport import = {
		.format = format, .bytes = bytes, .n_bytes = n_bytes, .label = ag_text_to_utf8(label)};
	AgFitSink sink = {&state, sink_predictor, sink_feature, sink_member, sink_image};
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem,
					 .deadline_ns = INT64_MAX,
					 .error = &error,
					 .cancel = &state.cancel,
					 .progress = look_up,
					 .host = &state};
	AgStatus status;

	if (!PG_ARGISNULL(4))
		import.classes = class_names(PG_GETARG_ARRAYTYPE_P(4), &import.n_classes);
	if (label[0] == '\0' || strlen(label) >= NAMEDATALEN)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the label must be the name of a column")));
	state.predictor.name = name;
	state.predictor.owner = GetUserNameFromId(GetUserId(), false);
	state.predictor.data = psprintf(AG_IMPORTED_DATA "%s)", format);
	state.predictor.label = label;
	state.predictor.options_json = "{}";
	ag_mem_init(&mem, Min(MOST_BYTES, ag_settings_memory_bytes()));
	ag_error_init(&error);
	status = ag_predictor_import(&ctx, &import, &sink);
	if (state.error != NULL)
		ReThrowError(state.error);
	if (state.cancel)
		CHECK_FOR_INTERRUPTS();
	ag_error_check(status, &error);
	ag_catalog_store_end(&state.id);
	ereport(NOTICE, (errmsg("stored as \"%s\", version %d", name, state.version),
					 errhint("Its columns are found by name: ag_info(%s) -> 'features' lists them.",
							 quote_literal_cstr(name))));
}

static Datum
import_bytes(FunctionCallInfo fcinfo, bool is_text)
{
	char *name;
	const char *bytes;
	size_t n_bytes;

	ag_fit_refuse_early("ag_import", true);
	for (int i = 0; i < 4; i++)
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the name, model, format and label of ag_import must not be NULL")));
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_model_name_check(name, NULL);
	ag_catalog_check_name(name);
	if (is_text)
	{
		bytes = ag_text_to_utf8(text_to_cstring(PG_GETARG_TEXT_PP(1)));
		n_bytes = strlen(bytes);
	}
	else
	{
		bytea *model = PG_GETARG_BYTEA_PP(1);

		bytes = VARDATA_ANY(model);
		n_bytes = VARSIZE_ANY_EXHDR(model);
	}
	SPI_connect();
	import_model(fcinfo, name, bytes, n_bytes);
	SPI_finish();
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

PG_FUNCTION_INFO_V1(ag_sql_import_text);

Datum
ag_sql_import_text(PG_FUNCTION_ARGS)
{
	return import_bytes(fcinfo, true);
}

PG_FUNCTION_INFO_V1(ag_sql_import_bytea);

Datum
ag_sql_import_bytea(PG_FUNCTION_ARGS)
{
	return import_bytes(fcinfo, false);
}
