/*
 * report_plots.c - see report.h.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "pg/curves.h"
#include "pg/page.h"
#include "pg/plot.h"
#include "pg/report.h"

#define MOST_CLASSES 5 /* drawn, each against the rest */
#define MOST_DOTS 600  /* of a scatter plot */
#define CURVE_POINTS 200
#define RATE_BINS 10 /* of the calibration plot */
#define ERROR_BINS 40
#define MOST_CELLS 20 /* classes of a whole confusion matrix */
#define MOST_PAIRS 20 /* else: pairs of classes listed */

typedef struct Counted
{
	int class;
	int64 n;
} Counted;

static int
compare_counted(const void *left, const void *right)
{
	const Counted *a = left, *b = right;

	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return a->class - b->class;
}

static char *
name_of(const AgOpenModel *model, int class)
{
	return class < 0
			   ? pstrdup("(another)")
			   : ag_model_text(model, model->classes[class].name, model->classes[class].n_bytes);
}

/* The classes to draw: the positive one of two, else the commonest ones. */
static int
choose_classes(const AgEvaluation *evaluation, int *classes)
{
	int n_classes = evaluation->model->n_classes;
	Counted *counted;
	int n = 0;

	if (n_classes == 2)
	{
		classes[0] = 1;
		return 1;
	}
	counted = palloc0(sizeof(Counted) * n_classes);
	for (int c = 0; c < n_classes; c++)
		counted[c].class = c;
	for (int64 i = 0; i < evaluation->n_rows; i++)
		if (evaluation->class_of[i] >= 0)
			counted[evaluation->class_of[i]].n++;
	qsort(counted, n_classes, sizeof(Counted), compare_counted);
	while (n < Min(n_classes, MOST_CLASSES) && counted[n].n > 0)
	{
		classes[n] = counted[n].class;
		n++;
	}
	pfree(counted);
	return n;
}

/* One curve of each class: of true over false positives, or of precision over recall. */
static void
draw_roc(AgPlot *plot, int series, const AgCurve *curve)
{
	AgPoint *points =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(AgPoint) * (curve->n_points + 1));

	points[0].x = points[0].y = 0.0;
	for (int64 i = 0; i < curve->n_points; i++)
	{
		points[i + 1].x = (double) curve->points[i].n_negative / curve->n_negative;
		points[i + 1].y = (double) curve->points[i].n_positive / curve->n_positive;
	}
	ag_plot_line(plot, series, curve->n_points + 1, points);
	pfree(points);
}

/* At steps of recall: of all points most are near a recall of 1. */
static void
draw_precision(AgPlot *plot, int series, const AgCurve *curve)
{
	AgPoint points[CURVE_POINTS + 2];
	double next = 0.0;
	int n = 0;

	for (int64 i = 0; i < curve->n_points && n < CURVE_POINTS + 2; i++)
	{
		const AgCurvePoint *point = &curve->points[i];
		double recall = (double) point->n_positive / curve->n_positive;

		if (point->n_positive == 0 || (recall < next && i < curve->n_points - 1))
			continue;
		points[n].x = recall;
		points[n++].y = (double) point->n_positive / (point->n_positive + point->n_negative);
		next = recall + 1.0 / CURVE_POINTS;
	}
	ag_plot_line(plot, series, n, points);
}

/* How often the class came true against its probability, in bins that have rows. */
static void
draw_calibration(AgPlot *plot, int series, const AgEvaluation *evaluation, int class)
{
	double sum[RATE_BINS] = {0.0};
	int64 n_rows[RATE_BINS] = {0}, n_positive[RATE_BINS] = {0};
	AgPoint points[RATE_BINS];
	int n = 0;

	for (int64 i = 0; i < evaluation->n_rows; i++)
	{
		double p = evaluation->out[0][i * evaluation->model->n_outputs + class];
		int bin = Max(0, Min((int) (p * RATE_BINS), RATE_BINS - 1));

		sum[bin] += p;
		n_rows[bin]++;
		n_positive[bin] += evaluation->class_of[i] == class;
	}
	for (int bin = 0; bin < RATE_BINS; bin++)
		if (n_rows[bin] > 0)
		{
			points[n].x = sum[bin] / n_rows[bin];
			points[n++].y = (double) n_positive[bin] / n_rows[bin];
		}
	ag_plot_line(plot, series, n, points);
	ag_plot_dots(plot, series, n, points);
}

/* The share of all positives among the rows with the highest probabilities. */
static void
draw_gain(AgPlot *plot, int series, const AgCurve *curve)
{
	AgPoint points[CURVE_POINTS + 1];
	int64 n = curve->n_positive + curve->n_negative;

	for (int i = 0; i <= CURVE_POINTS; i++)
	{
		points[i].x = (double) i / CURVE_POINTS;
		points[i].y = ag_curve_captured(curve, (int64) (points[i].x * n + 0.5)) / curve->n_positive;
	}
	ag_plot_line(plot, series, CURVE_POINTS + 1, points);
}

void
ag_report_class_plots(StringInfo page, const AgEvaluation *evaluation)
{
	int classes[MOST_CLASSES];
	AgCurve curves[MOST_CLASSES];
	char *names[MOST_CLASSES];
	int n = choose_classes(evaluation, classes), n_curves = 0;
	AgPlot plot;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ag_curves_make(evaluation, classes[i], &curves[n_curves]);
		if (curves[n_curves].n_positive == 0 || curves[n_curves].n_negative == 0)
			continue; /* nothing to tell apart in this data */
		classes[n_curves] = classes[i];
		names[n_curves++] = name_of(evaluation->model, classes[i]);
	}
	if (n_curves == 0)
		return;
	ag_plot_begin(&plot, page, "ROC curve", "False positive rate", "True positive rate", 0, 1, 0,
				  1);
	ag_plot_guide(&plot, 0, 0, 1, 1);
	for (int i = 0; i < n_curves; i++)
	{
		draw_roc(&plot, i, &curves[i]);
		ag_plot_name(&plot, i, names[i]);
	}
	ag_plot_end(&plot);
	ag_plot_begin(&plot, page, "Precision and recall", "Recall", "Precision", 0, 1, 0, 1);
	for (int i = 0; i < n_curves; i++)
	{
		draw_precision(&plot, i, &curves[i]);
		ag_plot_name(&plot, i, names[i]);
	}
	ag_plot_end(&plot);
	ag_plot_begin(&plot, page, "Calibration", "Predicted probability", "Share that came true", 0, 1,
				  0, 1);
	ag_plot_guide(&plot, 0, 0, 1, 1);
	for (int i = 0; i < n_curves; i++)
	{
		draw_calibration(&plot, i, evaluation, classes[i]);
		ag_plot_name(&plot, i, names[i]);
	}
	ag_plot_end(&plot);
	ag_plot_begin(&plot, page, "Cumulative gain", "Share of rows, most probable first",
				  "Share of the class found", 0, 1, 0, 1);
	ag_plot_guide(&plot, 0, 0, 1, 1);
	for (int i = 0; i < n_curves; i++)
	{
		draw_gain(&plot, i, &curves[i]);
		ag_plot_name(&plot, i, names[i]);
	}
	ag_plot_end(&plot);
}

/* --- numbers --- */

static int
compare_doubles(const void *left, const void *right)
{
	double a = *(const double *) left, b = *(const double *) right;

	return (a > b) - (a < b);
}

/* What stands for the row: a regression's value, the middle one of quantiles. */
static double
prediction_of(const AgEvaluation *evaluation, int64 row)
{
	const AgOpenModel *model = evaluation->model;

	return evaluation->out[0][row * model->n_outputs + model->middle];
}

static void
draw_predictions(StringInfo page, const AgEvaluation *evaluation, double low, double high)
{
	int64 n = Min(evaluation->n_rows, MOST_DOTS);
	AgPoint points[MOST_DOTS];
	AgPlot plot;

	for (int64 i = 0; i < n; i++)
	{
		int64 row = (int64) ((double) i * evaluation->n_rows / n);

		points[i].x = prediction_of(evaluation, row);
		points[i].y = evaluation->target[row];
	}
	ag_plot_begin(&plot, page, "Actual against predicted", "Predicted", "Actual", low, high, low,
				  high);
	ag_plot_guide(&plot, low, low, high, high);
	ag_plot_dots(&plot, 0, n, points);
	ag_plot_end(&plot);
}

/* errors: ascending. The hundredth part at either end falls to the outermost bars, so that one row can't flatten the rest. */
static void
draw_errors(StringInfo page, const double *errors, int64 n)
{
	double low = errors[(int64) (0.005 * (n - 1))], high = errors[(int64) (0.995 * (n - 1))];
	int64 counts[ERROR_BINS] = {0}, most = 0;
	double width;
	AgPlot plot;

	if (!(high > low))
	{
		low -= 0.5;
		high += 0.5;
	}
	width = (high - low) / ERROR_BINS;
	for (int64 i = 0; i < n; i++)
	{
		int64 *count = &counts[(int) Max(0.0, Min((errors[i] - low) / width, ERROR_BINS - 1.0))];

		++*count;
		most = Max(most, *count);
	}
	ag_plot_begin(&plot, page, "Errors", "Actual - predicted", "Rows", low, high, 0, (double) most);
	for (int bin = 0; bin < ERROR_BINS; bin++)
		ag_plot_bar(&plot, 0, low + bin * width, low + (bin + 1) * width, (double) counts[bin]);
	ag_plot_guide(&plot, 0, 0, 0, (double) most);
	ag_plot_end(&plot);
}

static void
draw_residuals(StringInfo page, const AgEvaluation *evaluation, const double *errors, double low,
			   double high)
{
	int64 n = Min(evaluation->n_rows, MOST_DOTS);
	double bound = Max(fabs(errors[(int64) (0.005 * (evaluation->n_rows - 1))]),
					   fabs(errors[(int64) (0.995 * (evaluation->n_rows - 1))]));
	AgPoint points[MOST_DOTS];
	AgPlot plot;

	for (int64 i = 0; i < n; i++)
	{
		int64 row = (int64) ((double) i * evaluation->n_rows / n);

		points[i].x = prediction_of(evaluation, row);
		points[i].y = evaluation->target[row] - points[i].x;
	}
	ag_plot_begin(&plot, page, "Errors against predictions", "Predicted", "Actual - predicted", low,
				  high, -bound, bound);
	ag_plot_guide(&plot, low, 0, high, 0);
	ag_plot_dots(&plot, 0, n, points);
	ag_plot_end(&plot);
}

void
ag_report_number_plots(StringInfo page, const AgEvaluation *evaluation)
{
	int64 n = evaluation->n_rows;
	double *errors = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(double) * n);
	double low = INFINITY, high = -INFINITY;

	for (int64 i = 0; i < n; i++)
	{
		double prediction = prediction_of(evaluation, i), target = evaluation->target[i];

		errors[i] = target - prediction;
		low = Min(low, Min(prediction, target));
		high = Max(high, Max(prediction, target));
	}
	qsort(errors, n, sizeof(double), compare_doubles);
	if (!isfinite(low) || !isfinite(high) || !isfinite(errors[n - 1] - errors[0]))
		return;
	draw_predictions(page, evaluation, low, high);
	draw_residuals(page, evaluation, errors, low, high);
	draw_errors(page, errors, n);
	pfree(errors);
}

/* --- quantiles --- */

void
ag_report_quantiles(StringInfo page, const AgEvaluation *evaluation)
{
	static const char *const headings[] = {"#Level", "#Share of rows at or below"};
	const AgOpenModel *model = evaluation->model;

	ag_page_table(page, lengthof(headings), headings);
	for (int q = 0; q < model->n_quantiles; q++)
	{
		int64 n = 0;

		for (int64 i = 0; i < evaluation->n_rows; i++)
			n += evaluation->target[i] <= evaluation->out[0][i * model->n_outputs + q];
		ag_page_row(page);
		ag_page_number_cell(page, model->quantiles[q]);
		ag_page_number_cell(page, (double) n / evaluation->n_rows);
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
}

/* --- learning curves --- */

void
ag_report_learning(StringInfo page, const char *model, const char *metric,
				   const AgReportCurve *curves, int n_curves)
{
	double right = 0.0, bottom = INFINITY, top = -INFINITY;
	AgPlot plot;

	for (int c = 0; c < n_curves; c++)
		for (int64 i = 0; i < curves[c].n; i++)
			if (isfinite(curves[c].points[i].y))
			{
				right = Max(right, curves[c].points[i].x);
				bottom = Min(bottom, curves[c].points[i].y);
				top = Max(top, curves[c].points[i].y);
			}
	if (!isfinite(top - bottom))
		return;
	ag_plot_begin(&plot, page, model, "Round", metric, 0, right, bottom, top);
	for (int c = 0; c < n_curves; c++)
		ag_plot_line(&plot, c % AG_PLOT_SERIES, curves[c].n, curves[c].points);
	ag_plot_end(&plot);
}

/* --- confusion --- */

static void
put_heat(StringInfo page, int64 n, int64 n_actual, bool is_right)
{
	appendStringInfo(
		page, "<td class=\"heat\" style=\"--c:var(--%s);--share:%.3f\">" INT64_FORMAT "</td>",
		is_right ? "good" : "bad", n_actual > 0 ? (double) n / n_actual : 0.0, n);
}

static void
put_matrix(StringInfo page, const AgOpenModel *model, const int64 *counts)
{
	int n = model->n_classes;
	const char **headings = palloc(sizeof(char *) * (n + 1));

	headings[0] = "Actual \\ predicted";
	for (int c = 0; c < n; c++)
		headings[c + 1] = psprintf("#%s", name_of(model, c));
	ag_page_table(page, n + 1, headings);
	for (int actual = -1; actual < n; actual++)
	{
		const int64 *row = counts + (actual + 1) * n;
		int64 n_actual = 0;

		for (int c = 0; c < n; c++)
			n_actual += row[c];
		if (actual < 0 && n_actual == 0)
			continue;
		ag_page_row(page);
		ag_page_cell(page, name_of(model, actual));
		for (int c = 0; c < n; c++)
			put_heat(page, row[c], n_actual, c == actual);
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
}

static void
put_pairs(StringInfo page, const AgOpenModel *model, Counted *pairs, int64 n_pairs)
{
	static const char *const headings[] = {"Actual", "Predicted", "#Rows"};

	qsort(pairs, n_pairs, sizeof(Counted), compare_counted);
	ag_page_table(page, lengthof(headings), headings);
	for (int64 i = 0; i < Min(n_pairs, MOST_PAIRS); i++)
	{
		ag_page_row(page);
		ag_page_cell(page, name_of(model, pairs[i].class / model->n_classes - 1));
		ag_page_cell(page, name_of(model, pairs[i].class % model->n_classes));
		ag_page_number_cell(page, (double) pairs[i].n);
		ag_page_row_end(page);
	}
	ag_page_table_end(page);
}

/* Pairs are numbered (actual + 1) * classes + predicted, as in curves.c; 10,000 classes at most keep that below 2^31. */
void
ag_report_confusion(StringInfo page, const AgEvaluation *evaluation)
{
	const AgOpenModel *model = evaluation->model;
	int n = model->n_classes;
	bool is_whole = n <= MOST_CELLS;
	Counted *pairs =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Counted) * evaluation->n_rows);
	int64 *counts = palloc0(sizeof(int64) * (MOST_CELLS + 1) * MOST_CELLS);
	int64 n_pairs = 0, n_kept = 0;

	for (int64 i = 0; i < evaluation->n_rows; i++)
	{
		int actual = evaluation->class_of[i];
		int predicted = ag_model_best_class(model, evaluation->out[0] + i * model->n_outputs);

		if (is_whole)
			counts[(actual + 1) * n + predicted]++;
		else if (actual != predicted)
		{
			pairs[n_pairs].class = (actual + 1) * n + predicted;
			pairs[n_pairs++].n = 0; /* so that they sort by pair */
		}
	}
	if (is_whole)
		put_matrix(page, model, counts);
	else
	{
		qsort(pairs, n_pairs, sizeof(Counted), compare_counted);
		for (int64 i = 0; i < n_pairs; i++)
		{
			if (n_kept == 0 || pairs[n_kept - 1].class != pairs[i].class)
				pairs[n_kept++] = pairs[i];
			pairs[n_kept - 1].n++;
		}
		put_pairs(page, model, pairs, n_kept);
	}
	pfree(pairs);
	pfree(counts);
}
