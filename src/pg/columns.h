/*
 * columns.h - predictions from a row's columns, one argument each, instead of the row as a whole.
 *
 * The planner makes ag_predict('m', t) into ag_predict_columns('m', ..., '{x,k}', t.x, t.k): forming a row and taking it apart
 * again costs more than a small model. Users call the first and see the second in EXPLAIN VERBOSE.
 */
#ifndef AG_COLUMNS_H
#define AG_COLUMNS_H

#include "postgres.h"

#include "fmgr.h"

#include "pg/call.h"

/*
 * Runs the model on the arguments (model text, called oid, columns text[], VARIADIC "any"), of which `called` is the function that
 * the user wrote: it is the right to execute that one that counts.
 */
extern AgCall *ag_columns_predict(FunctionCallInfo fcinfo);

/* The calls of a place where that is done; NULL: none yet. */
extern const AgCall *ag_columns_calls(const FmgrInfo *place);

#endif
