/*
 * export.c - ag_export and ag_export_bytea: models in other programs' formats.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "engine/engine.h"
#include "pg/cache.h"
#include "pg/catalog.h"
#include "pg/errors.h"

/* A value can't be longer; and some room is for the copy. */
#define MOST_BYTES (MaxAllocSize / 2)

/* What a model is made of is for those to see who may inspect it. */
static const AgOpenModel *
open_model(const char *name)
{
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;

	ag_catalog_find(name, &id, &member, &row);
	if (row->right < AG_RIGHT_INSPECT)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("permission denied to export model \"%s\"", name),
						errhint("That takes the right \"inspect\": ag_grant(%s, %s, 'inspect').",
								quote_literal_cstr(row->name),
								quote_literal_cstr(GetUserNameFromId(GetUserId(), false)))));
	return ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
}

/* As a value with a header, in the current memory context. */
static bytea *export(const char *name, const char *format)
{
	const AgOpenModel *model = open_model(name);
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgWriter out;
	AgStatus status;
	bytea *result;

	ag_mem_init(&mem, MOST_BYTES);
	ag_error_init(&error);
	ag_writer_init(&out, &mem);
	status = ag_predictor_export(&ctx, model->predictor, ag_text_to_utf8(format), &out);
	if (status != AG_OK)
	{
		ag_writer_free(&out);
		ag_error_raise(&error);
	}
	result = palloc_extended(out.size + VARHDRSZ, MCXT_ALLOC_NO_OOM);
	if (result != NULL)
	{
		SET_VARSIZE(result, out.size + VARHDRSZ);
		memcpy(VARDATA(result), out.data, out.size);
	}
	ag_writer_free(&out);
	if (result == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	return result;
}

PG_FUNCTION_INFO_V1(ag_sql_export);

Datum
ag_sql_export(PG_FUNCTION_ARGS)
{
	char *format = text_to_cstring(PG_GETARG_TEXT_PP(1));
	bytea *bytes;

	if (strcmp(format, "onnx") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("format \"onnx\" is no text"),
				 errhint("ag_export_bytea gives it.")));
	bytes = export(text_to_cstring(PG_GETARG_TEXT_PP(0)), format);
	PG_RETURN_TEXT_P(cstring_to_text(ag_text_from_utf8(text_to_cstring(bytes))));
}

PG_FUNCTION_INFO_V1(ag_sql_export_bytea);

Datum
ag_sql_export_bytea(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(
		export(text_to_cstring(PG_GETARG_TEXT_PP(0)), text_to_cstring(PG_GETARG_TEXT_PP(1))));
}
