/*
 * curves.c - how well a classifier tells its classes apart, as tables: confusion matrix, ROC, precision-recall, calibration, lift,
 * thresholds.
 *
 * All but the matrix are about one class against the rest: the positive one of two, or the one that is named. A row whose
 * label training never saw is of no class.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "pg/catalog.h"
#include "pg/choice.h"
#include "pg/curves.h"
#include "pg/errors.h"
#include "pg/evaluate.h"
#include "pg/srf.h"

#define MOST_BINS 1000
#define MOST_LISTED 100 /* classes all of whose pairs are listed */

/* The model that argument 0 names. */
typedef struct Subject
{
	char *name;
	char *label;
	const AgOpenModel *model;
} Subject;

static void
open_subject(FunctionCallInfo fcinfo, Subject *subject)
{
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;

	subject->name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_catalog_find(subject->name, &id, &member, &row);
	subject->label = row->label;
	subject->model =
		ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	if (subject->model->n_classes == 0)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("model \"%s\" predicts a number, not a class", subject->name),
						errhint("ag_evaluate tells how good it is.")));
}

/* Run over the data of argument 1. */
static AgEvaluation *
evaluate(FunctionCallInfo fcinfo, const Subject *subject)
{
	return ag_evaluate_run(text_to_cstring(PG_GETARG_TEXT_PP(1)), subject->name, subject->label,
						   NULL, &subject->model, 1); /* counts rows */
}

static int
bins_argument(FunctionCallInfo fcinfo, int argument)
{
	int n = PG_ARGISNULL(argument) ? 0 : PG_GETARG_INT32(argument);

	if (n < 1 || n > MOST_BINS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bins must be between 1 and %d", MOST_BINS)));
	return n;
}

void
ag_curves_make(const AgEvaluation *evaluation, int class, AgCurve *curve)
{
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	AgCurvePoint *points;

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	ag_error_check(ag_curve_create(&ctx, evaluation->n_rows, evaluation->out[0] + class,
								   evaluation->model->n_outputs, evaluation->class_of, class,
								   curve),
				   &error);
	points = MemoryContextAllocExtended(CurrentMemoryContext,
										sizeof(AgCurvePoint) * Max(curve->n_points, 1),
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (points != NULL)
		memcpy(points, curve->points, sizeof(AgCurvePoint) * curve->n_points);
	ag_mem_free(&mem, curve->points);
	curve->points = points;
	if (points == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}

/* Arguments 0 and 1, the class, and where bins_at >= 0 their number. False: NULL in, no rows out. */
static bool
begin_curve(FunctionCallInfo fcinfo, AgSrf *srf, int class_at, int bins_at, int *n_bins,
			AgCurve *curve)
{
	Subject subject;
	int class;

	ag_srf_begin(srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return false;
	if (bins_at >= 0)
		*n_bins = bins_argument(fcinfo, bins_at);
	open_subject(fcinfo, &subject);
	class = ag_choice_output(fcinfo, class_at, subject.name, subject.model);
	ag_curves_make(evaluate(fcinfo, &subject), class, curve);
	return true;
}

static double
ratio(double part, double whole)
{
	return whole > 0.0 ? part / whole : NAN;
}

/* --- ag_confusion_matrix --- */

static char *
class_name(const AgOpenModel *model, int class)
{
	if (class < 0)
		return NULL;
	return ag_model_text(model, model->classes[class].name, model->classes[class].n_bytes);
}

static void
put_pair(AgSrf *srf, const AgOpenModel *model, uint64 pair, int64 n)
{
	Datum values[3];
	bool nulls[3] = {false};

	ag_srf_text(values, nulls, 0, class_name(model, (int) (pair / model->n_classes) - 1));
	ag_srf_text(values, nulls, 1, class_name(model, (int) (pair % model->n_classes)));
	values[2] = Int64GetDatum(n);
	ag_srf_row(srf, values, nulls);
}

static int
compare_pairs(const void *left, const void *right)
{
	uint64 a = *(const uint64 *) left, b = *(const uint64 *) right;

	return (a > b) - (a < b);
}

PG_FUNCTION_INFO_V1(ag_sql_confusion_matrix);

/* A pair is (actual + 1) * classes + predicted: labels that training never saw come first, and are listed only where they occur. */
Datum
ag_sql_confusion_matrix(PG_FUNCTION_ARGS)
{
	AgEvaluation *evaluation;
	const AgOpenModel *model;
	Subject subject;
	uint64 *pairs, next;
	int64 at = 0;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	open_subject(fcinfo, &subject);
	model = subject.model;
	evaluation = evaluate(fcinfo, &subject);
	pairs = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * evaluation->n_rows);
	for (int64 i = 0; i < evaluation->n_rows; i++)
	{
		const double *proba = evaluation->out[0] + i * model->n_outputs;

		pairs[i] = (uint64) (evaluation->class_of[i] + 1) * model->n_classes +
				   ag_model_best_class(model, proba);
	}
	qsort(pairs, evaluation->n_rows, sizeof(uint64), compare_pairs);
	next = model->n_classes; /* the next to be listed even if it doesn't occur */
	while (at < evaluation->n_rows)
	{
		uint64 pair = pairs[at];
		int64 first = at;

		while (at < evaluation->n_rows && pairs[at] == pair)
			at++;
		for (; model->n_classes <= MOST_LISTED && next < pair; next++)
			put_pair(&srf, model, next, 0);
		put_pair(&srf, model, pair, at - first);
		next = Max(next, pair + 1);
	}
	for (; model->n_classes <= MOST_LISTED &&
		   next < (uint64) model->n_classes * (model->n_classes + 1);
		 next++)
		put_pair(&srf, model, next, 0);
	return (Datum) 0;
}

/* --- ag_roc_curve and ag_pr_curve --- */

static void
put_numbers(AgSrf *srf, double a, double b, double c)
{
	Datum values[3];
	bool nulls[3] = {false};

	ag_srf_number(values, nulls, 0, a);
	ag_srf_number(values, nulls, 1, b);
	ag_srf_number(values, nulls, 2, c);
	ag_srf_row(srf, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_roc_curve);

Datum
ag_sql_roc_curve(PG_FUNCTION_ARGS)
{
	AgCurve curve;
	AgSrf srf;

	if (!begin_curve(fcinfo, &srf, 2, -1, NULL, &curve))
		return (Datum) 0;
	put_numbers(&srf, INFINITY, ratio(0, curve.n_negative), ratio(0, curve.n_positive));
	for (int64 i = 0; i < curve.n_points; i++)
		put_numbers(&srf, curve.points[i].threshold,
					ratio(curve.points[i].n_negative, curve.n_negative),
					ratio(curve.points[i].n_positive, curve.n_positive));
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(ag_sql_pr_curve);

Datum
ag_sql_pr_curve(PG_FUNCTION_ARGS)
{
	AgCurve curve;
	AgSrf srf;

	if (!begin_curve(fcinfo, &srf, 2, -1, NULL, &curve))
		return (Datum) 0;
	put_numbers(&srf, INFINITY, 1.0, ratio(0, curve.n_positive));
	for (int64 i = 0; i < curve.n_points; i++)
		put_numbers(&srf, curve.points[i].threshold,
					ratio(curve.points[i].n_positive,
						  curve.points[i].n_positive + curve.points[i].n_negative),
					ratio(curve.points[i].n_positive, curve.n_positive));
	return (Datum) 0;
}

/* --- ag_calibration --- */

typedef struct Bin
{
	int64 n, n_positive;
	double sum;
} Bin;

PG_FUNCTION_INFO_V1(ag_sql_calibration);

/* Bins of equal width, each with its lower bound; 1 is in the last. */
Datum
ag_sql_calibration(PG_FUNCTION_ARGS)
{
	AgEvaluation *evaluation;
	Subject subject;
	int n_bins, class;
	Bin *bins;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	n_bins = bins_argument(fcinfo, 2);
	open_subject(fcinfo, &subject);
	class = ag_choice_output(fcinfo, 3, subject.name, subject.model);
	evaluation = evaluate(fcinfo, &subject);
	bins = palloc0(sizeof(Bin) * n_bins);
	for (int64 i = 0; i < evaluation->n_rows; i++)
	{
		double p = evaluation->out[0][i * evaluation->model->n_outputs + class];
		Bin *bin = &bins[Max(0, Min((int) (p * n_bins), n_bins - 1))];

		bin->n++;
		bin->n_positive += evaluation->class_of[i] == class;
		bin->sum += p;
	}
	for (int b = 0; b < n_bins; b++)
	{
		Datum values[6];
		bool nulls[6] = {false};

		values[0] = Int32GetDatum(b + 1);
		ag_srf_number(values, nulls, 1, (double) b / n_bins);
		ag_srf_number(values, nulls, 2, (double) (b + 1) / n_bins);
		values[3] = Int64GetDatum(bins[b].n);
		ag_srf_number(values, nulls, 4, ratio(bins[b].sum, bins[b].n));
		ag_srf_number(values, nulls, 5, ratio(bins[b].n_positive, bins[b].n));
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}

/* --- ag_lift --- */

PG_FUNCTION_INFO_V1(ag_sql_lift);

/* Bin b ends behind row b * n / bins of those with the highest probabilities. */
Datum
ag_sql_lift(PG_FUNCTION_ARGS)
{
	AgCurve curve;
	int n_bins;
	int64 n, begin = 0;
	AgSrf srf;

	if (!begin_curve(fcinfo, &srf, 3, 2, &n_bins, &curve))
		return (Datum) 0;
	n = curve.n_positive + curve.n_negative;
	for (int b = 1; b <= n_bins; b++)
	{
		int64 end = (int64) ((double) n * b / n_bins + 0.5);
		double captured = ag_curve_captured(&curve, end);
		double positives = captured - ag_curve_captured(&curve, begin);
		double overall = ratio(curve.n_positive, n);
		Datum values[7];
		bool nulls[7] = {false};

		values[0] = Int32GetDatum(b);
		values[1] = Int64GetDatum(end - begin);
		ag_srf_number(values, nulls, 2, positives);
		ag_srf_number(values, nulls, 3, ratio(positives, end - begin));
		ag_srf_number(values, nulls, 4, ratio(ratio(positives, end - begin), overall));
		ag_srf_number(values, nulls, 5, ratio(ratio(captured, end), overall));
		ag_srf_number(values, nulls, 6, ratio(captured, curve.n_positive));
		ag_srf_row(&srf, values, nulls);
		begin = end;
	}
	return (Datum) 0;
}

/* --- ag_threshold_metrics --- */

#define THRESHOLDS 100 /* steps from 0 to 1 */

PG_FUNCTION_INFO_V1(ag_sql_threshold_metrics);

Datum
ag_sql_threshold_metrics(PG_FUNCTION_ARGS)
{
	AgCurve curve;
	AgSrf srf;

	if (!begin_curve(fcinfo, &srf, 2, -1, NULL, &curve))
		return (Datum) 0;
	for (int t = 0; t <= THRESHOLDS; t++)
	{
		double threshold = (double) t / THRESHOLDS;
		AgConfusion confusion;
		Datum values[12];
		bool nulls[12] = {false};

		ag_curve_at(&curve, threshold, &confusion);
		ag_srf_number(values, nulls, 0, threshold);
		values[1] = Int64GetDatum(confusion.tp);
		values[2] = Int64GetDatum(confusion.fp);
		values[3] = Int64GetDatum(confusion.fn);
		values[4] = Int64GetDatum(confusion.tn);
		ag_srf_number(values, nulls, 5, confusion.precision);
		ag_srf_number(values, nulls, 6, confusion.recall);
		ag_srf_number(values, nulls, 7, confusion.specificity);
		ag_srf_number(values, nulls, 8, confusion.f1);
		ag_srf_number(values, nulls, 9, confusion.accuracy);
		ag_srf_number(values, nulls, 10, confusion.balanced_accuracy);
		ag_srf_number(values, nulls, 11, confusion.mcc);
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
