/*
 * language.h - the language ag_model, as seen by who looks at a plan.
 */
#ifndef AG_LANGUAGE_H
#define AG_LANGUAGE_H

#include "postgres.h"

#include "fmgr.h"

#include "pg/call.h"

extern Datum ag_sql_language_handler(PG_FUNCTION_ARGS);

/* The calls of a place where a function in this language is executed; NULL: it hasn't been. */
extern const AgCall *ag_language_calls(const FmgrInfo *place);

/* The model's name that is the body of a function in this language, palloc'd. */
extern char *ag_language_model(Oid function);

#endif
