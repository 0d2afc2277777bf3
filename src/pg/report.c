/*
 * report.c - ag_report: a predictor as one HTML page, with how it does on a table or query where one is given.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "pg/catalog.h"
#include "pg/page.h"
#include "pg/report.h"

#define MOST_FEATURES 30 /* of the importance table */

typedef struct Report
{
	StringInfoData page;
	const char *model; /* as the caller named it */
	const char *data;  /* NULL: none */
	pg_uuid_t id;
	const AgPredictorRow *row;
	const AgEvaluation *evaluation; /* NULL without data */
	const char *schema;             /* of the extension, quoted */
} Report;

/* --- rows of the extension's own functions --- */

/*
 * Runs one statement with the model as $1 and the data as $2 as the caller; "@." in sql stands for the extension's schema. Its rows are in
 * SPI_tuptable.
 *
 * On the caller's search_path, which the data may need: so every name of a function, operator or type is qualified, pg_catalog's types
 * too, which temporary ones go before; and functions get all their arguments, for one with fewer may be somebody else's.
 */
static void
query(const Report *report, const char *sql)
{
	Oid types[2] = {TEXTOID, TEXTOID};
	Datum values[2];
	char nulls[2] = {' ', report->data == NULL ? 'n' : ' '};
	StringInfoData statement;
	const char *at;

	initStringInfo(&statement);
	while ((at = strstr(sql, "@.")) != NULL)
	{
		appendBinaryStringInfo(&statement, sql, (int) (at - sql));
		appendStringInfo(&statement, "%s.", report->schema);
		sql = at + 2;
	}
	appendStringInfoString(&statement, sql);
	values[0] = CStringGetTextDatum(report->model);
	values[1] = report->data == NULL ? (Datum) 0 : CStringGetTextDatum(report->data);
	if (SPI_execute_with_args(statement.data, 2, types, values, nulls, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the report's rows");
}

static const char *
text_at(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);
}

/* NaN: NULL. */
static double
number_at(uint64 row, int column)
{
	bool is_null;
	Datum value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &is_null);

	return is_null ? NAN : DatumGetFloat8(value);
}

/* --- sections --- */

static void
put_tile(StringInfo page, const char *name, const char *text, double number)
{
	appendStringInfoString(page, "<div class=\"tile\"><b>");
	if (text != NULL)
		ag_page_text(page, text);
	else
		ag_page_number(page, number);
	appendStringInfoString(page, "</b><span>");
	ag_page_text(page, name);
	appendStringInfoString(page, "</span></div>\n");
}

static const char *
problem_words(const char *problem_type)
{
	if (strcmp(problem_type, "binary") == 0)
		return "binary classification";
	if (strcmp(problem_type, "multiclass") == 0)
		return "multiclass classification";
	return strcmp(problem_type, "quantile") == 0 ? "quantile regression" : problem_type;
}

static void
put_head(Report *report)
{
	const AgPredictorRow *row = report->row;
	StringInfo page = &report->page;
	AgMetric metric = ag_metric_by_name(row->eval_metric);

	appendStringInfoString(page, "<header><h1>");
	ag_page_text(page, row->name);
	appendStringInfoString(page, "</h1>\n<p>");
	ag_page_text(page,
				 psprintf("Version %d: %s of \"%s\", fitted %s by %s.", row->version,
						  problem_words(row->problem_type), row->label,
						  timestamptz_to_str(row->created_at - row->created_at % USECS_PER_SEC),
						  row->owner));
	appendStringInfoString(page, "</p></header>\n<div class=\"tiles\">\n");
	put_tile(page, "best model", row->best_model, NAN);
	put_tile(page, psprintf("%s on validation rows", row->eval_metric), NULL,
			 ag_metric_score(metric, row->score_val));
	if (report->evaluation != NULL)
		put_tile(page, psprintf("%s on the data below", row->eval_metric), NULL,
				 ag_evaluate_metric(report->evaluation, 0, metric));
	put_tile(page, "rows fitted on", NULL, (double) row->rows);
	put_tile(page, "seconds to fit", NULL, row->fit_time);
	appendStringInfoString(page, "</div>\n");
}

static void
put_warnings(Report *report)
{
	if (report->row->right < AG_RIGHT_INSPECT)
		return;
	query(report, "SELECT w FROM pg_catalog.jsonb_array_elements_text(@.ag_info($1) "
				  "OPERATOR(pg_catalog.->) 'warnings') AS w");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		appendStringInfoString(&report->page, "<div class=\"warn\">");
		ag_page_text(&report->page, text_at(i, 1));
		appendStringInfoString(&report->page, "</div>\n");
	}
}

static void
put_models(Report *report)
{
	static const char *const headings[] = {"Model",   "#Score, data", "#Score, validation",
										   "#Fit, s", "#Own fit, s",  "#Predict, s",
										   "#Level",  "Device",       "#GPUs",
										   "#CPUs"};
	StringInfo page = &report->page;

	query(report,
		  "SELECT model, score_test, score_val, fit_time, fit_time_marginal, "
		  "pred_time_val, stack_level::pg_catalog.float8,"
		  " device, num_gpus, num_cpus::pg_catalog.float8 FROM @.ag_leaderboard($1, $2) WITH "
		  "ORDINALITY ORDER BY ordinality");
	ag_page_section(page, "Models",
					"By the evaluation metric, best first. Of scores higher is better, so errors "
					"are negative. Times include a model's inputs, but for its own.");
	ag_page_table(page, lengthof(headings), headings);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		ag_page_row(page);
		for (int column = 1; column <= (int) lengthof(headings); column++)
			if (strstr(headings[column - 1], ", s") != NULL)
				ag_page_seconds_cell(page, number_at(i, column));
			else if (headings[column - 1][0] == '#')
				ag_page_number_cell(page, number_at(i, column));
			else
				ag_page_cell(page, text_at(i, column));
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	ag_page_section_end(page);
}

static void
put_metrics(Report *report)
{
	static const char *const headings[] = {"Metric", "#Value"};
	const AgEvaluation *evaluation = report->evaluation;
	const AgOpenModel *model = evaluation->model;
	StringInfo page = &report->page;
	AgMetric metrics[AG_METRIC_LAST];
	int n = ag_metric_list(model->problem, ag_metric_by_name(report->row->eval_metric), metrics);

	ag_page_section(page, "On the data", NULL);
	appendStringInfoString(page, "<p>");
	ag_page_text(page, psprintf(INT64_FORMAT " rows of: %s", evaluation->n_rows, report->data));
	appendStringInfoString(page, "</p>\n");
	if (report->row->right >= AG_RIGHT_INSPECT && strcmp(report->data, report->row->data) == 0)
		appendStringInfoString(page, "<div class=\"warn\">The model was fitted on this very data, "
									 "so it looks better here than it is. "
									 "Its validation score is the honest one.</div>\n");
	ag_page_table(page, lengthof(headings), headings);
	for (int i = 0; i < n; i++)
	{
		ag_page_row(page);
		ag_page_cell(page, ag_metric_name(metrics[i]));
		ag_page_number_cell(page, ag_evaluate_metric(evaluation, 0, metrics[i]));
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	appendStringInfoString(page, "<div class=\"plots\" style=\"margin-top:1rem\">\n");
	if (model->n_classes > 0)
		ag_report_class_plots(page, evaluation);
	else
		ag_report_number_plots(page, evaluation);
	appendStringInfoString(page, "</div>\n");
	ag_page_section_end(page);
	if (model->n_quantiles > 0)
	{
		ag_page_section(page, "Quantiles", "Of a good model about as many rows as the level says.");
		ag_report_quantiles(page, evaluation);
		ag_page_section_end(page);
	}
	if (model->n_classes == 0)
		return;
	ag_page_section(page, "Which class was taken for which",
					"Rows of the data; of many classes the commonest confusions.");
	ag_report_confusion(page, evaluation);
	ag_page_section_end(page);
}

#define MOST_CURVES 12 /* folds of a model; models */

/* Rows come model by model, fold by fold. */
static void
put_learning(Report *report)
{
	StringInfo page = &report->page;
	AgReportCurve curves[MOST_CURVES] = {{0}};
	uint64 at = 0, n_rows;
	int n_plots = 0;

	query(report, "SELECT model, coalesce(fold, 0)::pg_catalog.float8, metric, "
				  "iteration::pg_catalog.float8, val FROM @.ag_learning_curves($1) WITH ORDINALITY "
				  "ORDER BY pg_catalog.min(ordinality) OVER (PARTITION BY model), fold, iteration");
	n_rows = SPI_processed;
	if (n_rows == 0)
		return;
	ag_page_section(page, "Learning curves",
					"The metric that stops training, on validation rows, round by round; of a bag "
					"a line a fold.");
	appendStringInfoString(page, "<div class=\"plots\">\n");
	while (at < n_rows && n_plots < MOST_CURVES)
	{
		const char *model = text_at(at, 1), *metric = text_at(at, 3);
		double fold = NAN;
		int n_curves = 0;

		for (; at < n_rows && strcmp(text_at(at, 1), model) == 0; at++)
		{
			AgReportCurve *curve;

			if (number_at(at, 2) != fold && n_curves < MOST_CURVES)
			{
				curves[n_curves].n = 0;
				curves[n_curves++].points = palloc(sizeof(AgPoint) * n_rows);
			}
			fold = number_at(at, 2);
			curve = &curves[n_curves - 1];
			curve->points[curve->n].x = number_at(at, 4);
			curve->points[curve->n++].y = number_at(at, 5);
		}
		ag_report_learning(page, model, metric, curves, n_curves);
		for (int c = 0; c < n_curves; c++)
			pfree(curves[c].points);
		n_plots++;
	}
	appendStringInfoString(page, "</div>\n");
	ag_page_section_end(page);
}

static void
put_failures(Report *report)
{
	static const char *const headings[] = {"Model", "Why it is missing", "#After, s"};
	StringInfo page = &report->page;

	if (report->row->right < AG_RIGHT_INSPECT)
		return;
	query(report, "SELECT model, message, seconds FROM @.ag_model_failures($1) WITH ORDINALITY "
				  "ORDER BY ordinality");
	if (SPI_processed == 0)
		return;
	ag_page_section(page, "Models that were not fitted", NULL);
	ag_page_table(page, lengthof(headings), headings);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		ag_page_row(page);
		ag_page_cell(page, text_at(i, 1));
		ag_page_cell(page, text_at(i, 2));
		ag_page_seconds_cell(page, number_at(i, 3));
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	ag_page_section_end(page);
}

static void
put_importance(Report *report)
{
	static const char *const headings[] = {"Column", "Importance", "#Standard deviation",
										   "#p-value"};
	StringInfo page = &report->page;
	double most = 0.0;

	query(report,
		  "SELECT feature, importance, stddev, p_value FROM @.ag_feature_importance($1, $2, "
		  "2000, 3, NULL::pg_catalog.text[])"
		  " WITH ORDINALITY ORDER BY ordinality");
	for (uint64 i = 0; i < SPI_processed; i++)
		most = Max(most, fabs(number_at(i, 2)));
	ag_page_section(page, "Importance of columns",
					"How much the score on the data falls when a column's values are shuffled "
					"among the rows, mean of 3 shuffles of at most 2,000 rows.");
	ag_page_table(page, lengthof(headings), headings);
	for (uint64 i = 0; i < Min(SPI_processed, MOST_FEATURES); i++)
	{
		double value = number_at(i, 2);

		ag_page_row(page);
		ag_page_cell(page, text_at(i, 1));
		ag_page_bar_cell(page, value, most > 0.0 ? value / most : 0.0);
		ag_page_number_cell(page, number_at(i, 3));
		ag_page_number_cell(page, number_at(i, 4));
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	if (SPI_processed > MOST_FEATURES)
		appendStringInfo(page, "<p>And " UINT64_FORMAT " columns of less importance.</p>\n",
						 (uint64) (SPI_processed - MOST_FEATURES));
	ag_page_section_end(page);
}

static void
put_columns(Report *report)
{
	static const char *const headings[] = {"Column", "Type", "Read as",
										   "Became, or why it was left out"};
	StringInfo page = &report->page;
	AgFeatureRow *features;
	int n;

	if (report->row->right < AG_RIGHT_INSPECT)
		return;
	features = ag_catalog_features(&report->id, &n);
	ag_page_section(page, "Columns", NULL);
	ag_page_table(page, lengthof(headings), headings);
	for (int i = 0; i < n; i++)
	{
		ag_page_row(page);
		ag_page_cell(page, features[i].name);
		ag_page_cell(page, features[i].type);
		ag_page_cell(page, features[i].kind);
		ag_page_cell(page, features[i].is_used ? features[i].became : features[i].dropped_why);
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	ag_page_section_end(page);
}

static void
put_options(Report *report)
{
	static const char *const headings[] = {"Option", "Value"};
	StringInfo page = &report->page;

	if (report->row->right < AG_RIGHT_INSPECT)
		return;
	query(report, "SELECT e.key, e.value FROM pg_catalog.jsonb_each_text(@.ag_info($1) "
				  "OPERATOR(pg_catalog.->) 'options') AS e"
				  " ORDER BY e.key COLLATE pg_catalog.\"C\"");
	ag_page_section(page, "Fitted with", NULL);
	ag_page_table(page, lengthof(headings), headings);
	ag_page_row(page);
	ag_page_cell(page, "data");
	ag_page_cell(page, report->row->data);
	ag_page_row_end(page);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		ag_page_row(page);
		ag_page_cell(page, text_at(i, 1));
		ag_page_cell(page, text_at(i, 2));
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
	ag_page_section_end(page);
}

/* --- the page --- */

static void
put_report(Report *report)
{
	ag_page_begin(&report->page,
				  psprintf("%s, version %d", report->row->name, report->row->version));
	put_head(report);
	put_warnings(report);
	put_models(report);
	if (report->evaluation != NULL)
	{
		put_metrics(report);
		put_importance(report);
	}
	put_learning(report);
	put_failures(report);
	put_columns(report);
	put_options(report);
	query(report, "SELECT @.ag_version()");
	appendStringInfoString(&report->page, "<footer>Made by ag_pg ");
	ag_page_text(&report->page, text_at(0, 1));
	appendStringInfoString(&report->page, ".</footer>\n");
	ag_page_end(&report->page);
}

PG_FUNCTION_INFO_V1(ag_sql_report);

Datum
ag_sql_report(PG_FUNCTION_ARGS)
{
	Report report = {0};
	AgPredictorRow *row;
	const AgOpenModel *model;
	char *member;
	int nest_level;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	initStringInfo(&report.page);
	report.model = text_to_cstring(PG_GETARG_TEXT_PP(0));
	report.data = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	ag_catalog_find(report.model, &report.id, &member, &row);
	report.row = row;
	report.schema = quote_identifier(get_namespace_name(ag_catalog_schema()));
	if (report.data != NULL)
	{
		model = ag_cache_get(&report.id, member != NULL ? member : row->best_model,
							 CurrentMemoryContext);
		report.evaluation = ag_evaluate_run(report.data, report.model, row->label,
											ag_evaluate_weight(row), &model, 1);
	}
	/* what that said of rows left out need not be said again by each part */
	nest_level = NewGUCNestLevel();
	if (client_min_messages < WARNING)
		(void) set_config_option("client_min_messages", "warning", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	put_report(&report);
	SPI_finish();
	AtEOXact_GUC(true, nest_level);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(report.page.data, report.page.len));
}
