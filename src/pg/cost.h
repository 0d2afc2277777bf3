/*
 * cost.h - what predictions cost, for the planner.
 */
#ifndef AG_COST_H
#define AG_COST_H

#include "postgres.h"

#include "nodes/supportnodes.h"

#include "pg/cache.h"
#include "pg/call.h"

/* One row's prediction, in units of cpu_operator_cost, as the COST of a function is; at least 1. */
extern double ag_cost_of_row(const AgOpenModel *model, AgRowForm form);

/* Answer the planner for a call of a prediction function; false: nothing is known that the function's own figures don't say. */
extern bool ag_cost_answer(SupportRequestCost *request);
extern bool ag_cost_answer_rows(SupportRequestRows *request);

#endif
