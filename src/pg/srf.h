/*
 * srf.h - functions that return a table.
 */
#ifndef AG_SRF_H
#define AG_SRF_H

#include "postgres.h"

#include "fmgr.h"
#include "access/tupdesc.h"
#include "utils/tuplestore.h"

typedef struct AgSrf
{
	TupleDesc desc;
	Tuplestorestate *rows;
} AgSrf;

/* Makes the result of this call ready to take rows. */
extern void ag_srf_begin(AgSrf *srf, FunctionCallInfo fcinfo);
extern void ag_srf_row(AgSrf *srf, Datum *values, bool *nulls);

/* A value of the row: NaN and a NULL text are SQL's NULL. */
extern void ag_srf_number(Datum *values, bool *nulls, int at, double value);
extern void ag_srf_text(Datum *values, bool *nulls, int at, const char *value);

#endif
