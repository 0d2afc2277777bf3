/*
 * report.h - ag_report's parts.
 */
#ifndef AG_REPORT_H
#define AG_REPORT_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "pg/evaluate.h"
#include "pg/plot.h"

/* How the model did on the data: plots of a classifier, of a regression. Within a <div class="plots">. */
extern void ag_report_class_plots(StringInfo page, const AgEvaluation *evaluation);
extern void ag_report_number_plots(StringInfo page, const AgEvaluation *evaluation);

/* How many rows lie below each quantile, as a table. */
extern void ag_report_quantiles(StringInfo page, const AgEvaluation *evaluation);

/* One model's metric on validation rows by rounds: a line a fold. Within a <div class="plots">. */
typedef struct AgReportCurve
{
	int64 n;
	AgPoint *points; /* round, value */
} AgReportCurve;
extern void ag_report_learning(StringInfo page, const char *model, const char *metric,
							   const AgReportCurve *curves, int n_curves);

/* Which class was taken for which, as a table. */
extern void ag_report_confusion(StringInfo page, const AgEvaluation *evaluation);

#endif
