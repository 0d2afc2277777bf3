/*
 * report.h - ag_report's parts.
 */
#ifndef AG_REPORT_H
#define AG_REPORT_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "pg/evaluate.h"

/* How the model did on the data: plots of a classifier, of a regression. Within a <div class="plots">. */
extern void ag_report_class_plots(StringInfo page, const AgEvaluation *evaluation);
extern void ag_report_number_plots(StringInfo page, const AgEvaluation *evaluation);

/* Which class was taken for which, as a table. */
extern void ag_report_confusion(StringInfo page, const AgEvaluation *evaluation);

#endif
