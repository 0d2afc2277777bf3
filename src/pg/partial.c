/*
 * partial.c - ag_partial_dependence: the mean prediction when all rows have one value of a column.
 *
 * Friedman 2001, "Greedy function approximation: a gradient boosting machine", section 8.2. The values tried are some that
 * the data has, each with all features made of it (a date's year, month, ...).
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "engine/base/rng.h"
#include "pg/batch.h"
#include "pg/catalog.h"
#include "pg/choice.h"
#include "pg/srf.h"

#define SEED 0x70617274 /* of the sample */
#define MOST_ROWS 1000  /* in which the value is exchanged */
#define MOST_POINTS 1000

/* A sample of the rows, every row as likely. */
typedef struct Sample
{
	MemoryContext home;
	int n_features;
	int64 n_seen;
	int n_rows;
	double *features; /* [MOST_ROWS][n_features] */
	char **texts;     /* [MOST_ROWS] of the column; NULL where it is NULL */
} Sample;

/* One value of the column, of a row of the sample. */
typedef struct Point
{
	int row;
	double x; /* its first feature */
	int n;    /* rows that have it */
} Point;

/* Vitter 1985, "Random sampling with a reservoir", algorithm R. */
static void
take(void *arg, const AgBatch *batch)
{
	Sample *sample = arg;

	for (int i = 0; i < batch->n_rows; i++)
	{
		int64 place = sample->n_seen++;

		if (place >= MOST_ROWS)
			place = (int64) (ag_random_unit(SEED, (uint64) place) * (double) sample->n_seen);
		if (place >= MOST_ROWS)
			continue;
		memcpy(sample->features + place * sample->n_features,
			   batch->features + (size_t) i * sample->n_features,
			   sizeof(double) * sample->n_features);
		if (place < sample->n_rows && sample->texts[place] != NULL)
			pfree(sample->texts[place]);
		sample->texts[place] =
			batch->keys[i] != NULL ? MemoryContextStrdup(sample->home, batch->keys[i]) : NULL;
		sample->n_rows = Max(sample->n_rows, (int) place + 1);
	}
}

static int
find_input(const AgOpenModel *model, const char *column)
{
	for (int i = 0; i < model->n_inputs; i++)
		if (model->inputs[i].is_used &&
			strcmp(column,
				   ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name))) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("the model uses no column \"%s\"", column),
			 errhint("ag_info(model) -> 'features' lists the columns that it uses.")));
	return -1;
}

/* Missing values last. */
static int
by_value(const void *left, const void *right)
{
	const Point *a = left, *b = right;

	if (isnan(a->x) || isnan(b->x))
		return isnan(a->x) - isnan(b->x);
	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return a->row - b->row;
}

/* The commonest first. */
static int
by_frequency(const void *left, const void *right)
{
	const Point *a = left, *b = right;

	return a->n != b->n ? b->n - a->n : by_value(left, right);
}

/* The column's different values, ascending; a category's first feature is its code. */
static Point *
find_points(const Sample *sample, int first_feature, int *n_points)
{
	Point *points = palloc0(sizeof(Point) * Max(sample->n_rows, 1));
	int n = 0;

	for (int i = 0; i < sample->n_rows; i++)
		points[i] =
			(Point){i, sample->features[(size_t) i * sample->n_features + first_feature], 1};
	qsort(points, sample->n_rows, sizeof(Point), by_value);
	for (int i = 0; i < sample->n_rows; i++)
	{
		if (n > 0 &&
			(points[n - 1].x == points[i].x || (isnan(points[n - 1].x) && isnan(points[i].x))))
			points[n - 1].n++;
		else
			points[n++] = points[i];
	}
	*n_points = n;
	return points;
}

/* Keeps at most so many: of categories the commonest, of numbers those at even distances among all rows, the ends included. */
static int
thin_points(Point *points, int n, int most, bool is_category)
{
	int n_kept = 0, n_rows = 0, n_missing = 0, before = 0;

	if (n <= most)
	{
		if (is_category)
			qsort(points, n, sizeof(Point), by_frequency);
		return n;
	}
	if (is_category)
	{
		qsort(points, n, sizeof(Point), by_frequency);
		return most;
	}
	if (isnan(points[n - 1].x))
		n_missing = points[n - 1].n;
	for (int i = 0; i < n; i++)
		n_rows += points[i].n;
	n_rows -= n_missing;
	most -= n_missing > 0;
	for (int i = 0; i < n; i++)
	{
		/* the row at which the next one to be kept is due */
		int due = most > 1 ? (int) ((int64) n_kept * (n_rows - 1) / (most - 1)) : n_rows / 2;

		before += points[i].n;
		if (isnan(points[i].x) || (n_kept < most && before > due))
			points[n_kept++] = points[i];
	}
	return n_kept;
}

/* The mean output with that point's value in every row. rows is changed. */
static double
mean_output(const AgOpenModel *model, const Sample *sample, const Point *point, int input,
			int output, double *rows, double *out)
{
	const double *donor = sample->features + (size_t) point->row * sample->n_features;
	double sum = 0.0;

	CHECK_FOR_INTERRUPTS();
	for (int f = 0; f < sample->n_features; f++)
		if (ag_predictor_feature_input(model->predictor, f) == input)
			for (int i = 0; i < sample->n_rows; i++)
				rows[(size_t) i * sample->n_features + f] = donor[f];
	ag_batch_predict(model, sample->n_rows, rows, out);
	for (int i = 0; i < sample->n_rows; i++)
		sum += out[(size_t) i * model->n_outputs + output];
	return sum / sample->n_rows;
}

static void
put_points(AgSrf *srf, const AgOpenModel *model, const Sample *sample, const Point *points, int n,
		   int input, int output)
{
	Size n_bytes = sizeof(double) * Max(sample->n_rows, 1) * sample->n_features;
	double *rows = MemoryContextAllocHuge(CurrentMemoryContext, n_bytes);
	double *out =
		MemoryContextAllocHuge(CurrentMemoryContext, sizeof(double) * MOST_ROWS * model->n_outputs);

	memcpy(rows, sample->features, sizeof(double) * sample->n_rows * sample->n_features);
	for (int i = 0; i < n; i++)
	{
		Datum values[3];
		bool nulls[3] = {false};

		ag_srf_text(values, nulls, 0, sample->texts[points[i].row]);
		ag_srf_number(values, nulls, 1,
					  mean_output(model, sample, &points[i], input, output, rows, out));
		ag_srf_number(values, nulls, 2, (double) points[i].n / sample->n_rows);
		ag_srf_row(srf, values, nulls);
	}
}

static int
points_argument(FunctionCallInfo fcinfo, int argument)
{
	int n = PG_ARGISNULL(argument) ? 0 : PG_GETARG_INT32(argument);

	if (n < 2 || n > MOST_POINTS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("points must be between 2 and %d", MOST_POINTS)));
	return n;
}

static void
read_sample(const char *data, const char *name, const AgOpenModel *model, const char *column,
			Sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	sample->home = CurrentMemoryContext;
	sample->n_features = ag_predictor_features(model->predictor);
	sample->features = MemoryContextAllocHuge(CurrentMemoryContext,
											  sizeof(double) * MOST_ROWS * sample->n_features);
	sample->texts = palloc0(sizeof(char *) * MOST_ROWS);
	ag_batch_run(data, name, model, column, take, sample);
}

PG_FUNCTION_INFO_V1(ag_sql_partial_dependence);

Datum
ag_sql_partial_dependence(PG_FUNCTION_ARGS)
{
	int most, output, input, n, first = 0;
	char *name, *member, *column;
	const AgOpenModel *model;
	AgPredictorRow *row;
	Sample sample;
	Point *points;
	pg_uuid_t id;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		return (Datum) 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	column = text_to_cstring(PG_GETARG_TEXT_PP(2));
	most = points_argument(fcinfo, 3);
	ag_catalog_find(name, &id, &member, &row);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	output = ag_choice_output(fcinfo, 4, name, model);
	input = find_input(model, column);
	while (ag_predictor_feature_input(model->predictor, first) != input)
		first++;
	read_sample(text_to_cstring(PG_GETARG_TEXT_PP(1)), name, model, column, &sample);
	points = find_points(&sample, first, &n);
	n = thin_points(points, n, most, model->inputs[input].type == AG_TYPE_TEXT);
	put_points(&srf, model, &sample, points, n, input, output);
	return (Datum) 0;
}
