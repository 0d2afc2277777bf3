/*
 * result.h - a prediction as a value of some SQL type.
 */
#ifndef AG_RESULT_H
#define AG_RESULT_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/jsonb.h"

#include "pg/cache.h"

/* How values of one SQL type are made. */
typedef struct AgResultType
{
	Oid type;
	Oid base;        /* below domains */
	bool is_numeric; /* of the category of numbers */
	Oid io_param;
	FmgrInfo input;
} AgResultType;

/* What it keeps lives in context. */
extern void ag_result_type_init(AgResultType *result, Oid type, MemoryContext context);

/*
 * The prediction in out: a regression's value (rounded for integers), or the class, read as the type. ERROR 22P02, 22003
 * and the like, by the type's own input function, where it is none.
 */
extern Datum ag_result_datum(AgResultType *result, const AgOpenModel *model, const double *out);

/* The classes' names as keys of an object. */
extern JsonbValue *ag_result_class_keys(const AgOpenModel *model);

/* {"class": probability, ...} with all the digits that the numbers have. */
extern Jsonb *ag_result_proba(const AgOpenModel *model, JsonbValue *class_keys, const double *out);

/* Shortest text that reads back as the same number; palloc'd. */
extern char *ag_result_number_text(double value);

/* A quantile model's outputs as float8[], in the order in which the levels were asked for. */
extern Datum ag_result_quantiles(const AgOpenModel *model, const double *out);

#endif
