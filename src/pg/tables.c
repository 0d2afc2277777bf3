/*
 * tables.c - what is known without any model: the version, the options of ag_fit, the families and their parameters.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "engine/engine.h"

PG_FUNCTION_INFO_V1(ag_sql_version);

/* The build id is "version+hash of the sources"; users are told the version. */
Datum
ag_sql_version(PG_FUNCTION_ARGS)
{
	const char *build_id = AG_BUILD_ID;

	PG_RETURN_TEXT_P(cstring_to_text_with_len(build_id, strcspn(build_id, "+")));
}
