/*
 * srf.c - see srf.h.
 */
#include "postgres.h"

#include <math.h>

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "pg/srf.h"

void
ag_srf_begin(AgSrf *srf, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *info = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext caller;

	if (info == NULL || !IsA(info, ReturnSetInfo) || (info->allowedModes & SFRM_Materialize) == 0)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("a function that returns a table was called where none can be")));
	caller = MemoryContextSwitchTo(info->econtext->ecxt_per_query_memory);
	if (get_call_result_type(fcinfo, NULL, &srf->desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	srf->rows =
		tuplestore_begin_heap((info->allowedModes & SFRM_Materialize_Random) != 0, false, work_mem);
	info->returnMode = SFRM_Materialize;
	info->setResult = srf->rows;
	info->setDesc = srf->desc;
	MemoryContextSwitchTo(caller);
}

void
ag_srf_row(AgSrf *srf, Datum *values, bool *nulls)
{
	tuplestore_putvalues(srf->rows, srf->desc, values, nulls);
}

void
ag_srf_number(Datum *values, bool *nulls, int at, double value)
{
	nulls[at] = isnan(value);
	values[at] = Float8GetDatum(value);
}

void
ag_srf_text(Datum *values, bool *nulls, int at, const char *value)
{
	nulls[at] = value == NULL;
	values[at] = value == NULL ? (Datum) 0 : CStringGetTextDatum(value);
}
