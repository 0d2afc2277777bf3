/*
 * tables.c - what is known without any model: the version and the options of ag_fit.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "engine/engine.h"
#include "pg/errors.h"
#include "pg/srf.h"

PG_FUNCTION_INFO_V1(ag_sql_version);

/* The build id is "version+hash of the sources"; users are told the version. */
Datum
ag_sql_version(PG_FUNCTION_ARGS)
{
	const char *build_id = AG_BUILD_ID;

	PG_RETURN_TEXT_P(cstring_to_text_with_len(build_id, strcspn(build_id, "+")));
}

PG_FUNCTION_INFO_V1(ag_sql_options);

Datum
ag_sql_options(PG_FUNCTION_ARGS)
{
	int n;
	const AgOptionSpec *specs = ag_option_specs(&n);
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	for (int i = 0; i < n; i++)
	{
		Datum values[6];
		bool nulls[6] = {false};

		ag_srf_text(values, nulls, 0, specs[i].name);
		ag_srf_text(values, nulls, 1, specs[i].type);
		ag_srf_text(values, nulls, 2, specs[i].range);
		ag_srf_text(values, nulls, 3, specs[i].normal);
		values[4] = BoolGetDatum(specs[i].supported);
		ag_srf_text(values, nulls, 5, ag_message_from_utf8(specs[i].help));
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
