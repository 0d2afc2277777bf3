/*
 * importance.c - ag_feature_importance: what a model's score loses when a column tells it nothing.
 *
 * A column's values are shuffled among the rows, all features made of it together, and the rows predicted again
 * (Breiman 2001, "Random forests", section 10; Fisher, Rudin, Dominici 2019). The label stays where it is.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "engine/base/rng.h"
#include "engine/base/student.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/evaluate.h"
#include "pg/slow.h"
#include "pg/srf.h"

#define SEED 0x696d706f /* of the sample and the shuffles */
#define CONFIDENCE 0.99
#define MOST_SETS 1000
#define MOST_ROWS 10000000
#define ROWS_AT_ONCE 1024 /* between two looks for a cancel */

typedef struct Importance
{
	int input;
	char *name;
	double mean, stddev, p_value, high, low;
} Importance;

typedef struct Shuffling
{
	AgEvaluation *evaluation;
	AgMetric metric;
	double score;     /* of the rows as they are */
	double *shuffled; /* features */
	int32 *order;
	AgSlow slow;
	int64 n_done, n_todo; /* shuffles */
} Shuffling;

/* Higher is better. */
static double
score(Shuffling *shuffling, const double *features)
{
	AgEvaluation *evaluation = shuffling->evaluation;
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	for (int64 from = 0; from < evaluation->n_rows; from += ROWS_AT_ONCE)
	{
		AgPredictor *predictor = evaluation->model->predictor;
		int64 n = Min(ROWS_AT_ONCE, evaluation->n_rows - from);

		CHECK_FOR_INTERRUPTS();
		ag_error_check(ag_predictor_run_rows(
						   &ctx, predictor, n, features + from * ag_predictor_features(predictor),
						   evaluation->out[0] + from * evaluation->model->n_outputs),
					   &error);
	}
	return ag_metric_score(shuffling->metric, ag_evaluate_metric(evaluation, 0, shuffling->metric));
}

/* Knuth, The Art of Computer Programming 2, algorithm 3.4.2 P. */
static void
shuffle(int32 *order, int64 n, uint64 key)
{
	for (int64 i = 0; i < n; i++)
		order[i] = (int32) i;
	for (int64 i = n - 1; i > 0; i--)
	{
		int64 j = ag_random_below(key, (uint64) i, (uint32) (i + 1));
		int32 kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
}

/* The fall of the score in one shuffle of one input; the features are as they were afterwards. */
static double
fall(Shuffling *shuffling, int input, int set)
{
	AgEvaluation *evaluation = shuffling->evaluation;
	AgPredictor *predictor = evaluation->model->predictor;
	int n_features = ag_predictor_features(predictor);
	int64 n = evaluation->n_rows;
	double value;

	shuffle(shuffling->order, n, ag_key(ag_key(SEED, (uint64) input), (uint64) set));
	for (int f = 0; f < n_features; f++)
		if (ag_predictor_feature_input(predictor, f) == input)
			for (int64 i = 0; i < n; i++)
				shuffling->shuffled[i * n_features + f] =
					evaluation->features[(int64) shuffling->order[i] * n_features + f];
	value = shuffling->score - score(shuffling, shuffling->shuffled);
	for (int f = 0; f < n_features; f++)
		if (ag_predictor_feature_input(predictor, f) == input)
			for (int64 i = 0; i < n; i++)
				shuffling->shuffled[i * n_features + f] = evaluation->features[i * n_features + f];
	return value;
}

static void
measure(Shuffling *shuffling, Importance *importance, int n_sets)
{
	double *falls = palloc(sizeof(double) * n_sets);
	double sum = 0.0, squares = 0.0, error, bound;

	for (int set = 0; set < n_sets; set++)
	{
		ag_slow_tell(&shuffling->slow, shuffling->n_done++, shuffling->n_todo, "shuffles");
		falls[set] = fall(shuffling, importance->input, set);
		sum += falls[set];
	}
	importance->mean = sum / n_sets;
	importance->stddev = importance->p_value = importance->high = importance->low = NAN;
	if (n_sets > 1)
	{
		for (int set = 0; set < n_sets; set++)
			squares += (falls[set] - importance->mean) * (falls[set] - importance->mean);
		importance->stddev = sqrt(squares / (n_sets - 1));
		error = importance->stddev / sqrt(n_sets);
		if (error > 0.0)
			importance->p_value = 1.0 - ag_student_cdf(importance->mean / error, n_sets - 1);
		else /* every shuffle fell alike */
			importance->p_value = importance->mean > 0.0 ? 0.0 : importance->mean < 0.0 ? 1.0 : 0.5;
		bound = error * ag_student_quantile(0.5 + CONFIDENCE / 2.0, n_sets - 1);
		importance->high = importance->mean + bound;
		importance->low = importance->mean - bound;
	}
	pfree(falls);
}

static int
by_importance(const void *left, const void *right)
{
	const Importance *a = left, *b = right;

	if (a->mean != b->mean)
		return a->mean < b->mean ? 1 : -1;
	return a->input - b->input;
}

/* Is that column asked for? All are without a list. */
static bool
is_asked(const char *name, char **asked, int n_asked)
{
	for (int i = 0; i < n_asked; i++)
		if (strcmp(asked[i], name) == 0)
			return true;
	return asked == NULL;
}

static char **
asked_columns(const AgOpenModel *model, ArrayType *array, int *n)
{
	Datum *items;
	bool *nulls;
	char **asked;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &items, &nulls, n);
	asked = palloc(sizeof(char *) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
	{
		bool known = false;

		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("a column's name must not be NULL")));
		asked[i] = TextDatumGetCString(items[i]);
		for (int j = 0; j < model->n_inputs && !known; j++)
			known = model->inputs[j].is_used &&
					strcmp(asked[i], ag_model_text(model, model->inputs[j].name,
												   strlen(model->inputs[j].name))) == 0;
		if (!known)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("the model uses no column \"%s\"", asked[i]),
					 errhint("ag_info(model) -> 'features' lists the columns that it uses.")));
	}
	return asked;
}

static int
range_argument(FunctionCallInfo fcinfo, int at, const char *name, int most)
{
	int value = PG_ARGISNULL(at) ? 0 : PG_GETARG_INT32(at);

	if (value < 1 || value > most)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s must be between 1 and %d", name, most)));
	return value;
}

/* Rows to shuffle and the score to fall from. */
static void
shuffling_begin(Shuffling *shuffling, const char *data, const char *name, const AgPredictorRow *row,
				const AgOpenModel *model, int max_rows)
{
	AgEvaluation *evaluation;
	Size n_bytes;

	evaluation =
		ag_evaluate_sample(data, name, row->label, ag_evaluate_weight(row), model, max_rows, SEED);
	n_bytes = sizeof(double) * Max(ag_predictor_features(model->predictor), 1) * evaluation->n_rows;
	shuffling->evaluation = evaluation;
	shuffling->metric = ag_metric_by_name(row->eval_metric);
	shuffling->shuffled = MemoryContextAllocHuge(CurrentMemoryContext, n_bytes);
	memcpy(shuffling->shuffled, evaluation->features, n_bytes);
	shuffling->order = palloc(sizeof(int32) * evaluation->n_rows);
	shuffling->score = score(shuffling, evaluation->features);
	if (isnan(shuffling->score))
		ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
						errmsg("%s is undefined on these rows", row->eval_metric),
						errhint("It may take rows of every class, or more of them.")));
}

PG_FUNCTION_INFO_V1(ag_sql_feature_importance);

Datum
ag_sql_feature_importance(PG_FUNCTION_ARGS)
{
	int max_rows, n_sets, n_asked = 0, n = 0;
	char **asked = NULL;
	Importance *importances;
	Shuffling shuffling;
	const AgOpenModel *model;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member, *name;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	max_rows = range_argument(fcinfo, 2, "subsample_size", MOST_ROWS);
	n_sets = range_argument(fcinfo, 3, "num_shuffle_sets", MOST_SETS);
	ag_catalog_find(name, &id, &member, &row);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	if (!PG_ARGISNULL(4))
		asked = asked_columns(model, PG_GETARG_ARRAYTYPE_P(4), &n_asked);
	shuffling_begin(&shuffling, text_to_cstring(PG_GETARG_TEXT_PP(1)), name, row, model, max_rows);

	importances = palloc0(sizeof(Importance) * Max(model->n_inputs, 1));
	for (int i = 0; i < model->n_inputs; i++)
	{
		char *column = ag_model_text(model, model->inputs[i].name, strlen(model->inputs[i].name));

		if (!model->inputs[i].is_used || !is_asked(column, asked, n_asked))
			continue;
		importances[n].input = i;
		importances[n++].name = column;
	}
	shuffling.n_done = 0;
	shuffling.n_todo = (int64) n * n_sets;
	ag_slow_begin(&shuffling.slow, "ag_feature_importance");
	for (int i = 0; i < n; i++)
		measure(&shuffling, &importances[i], n_sets);
	qsort(importances, n, sizeof(Importance), by_importance);
	for (int i = 0; i < n; i++)
	{
		Datum values[7];
		bool nulls[7] = {false};

		ag_srf_text(values, nulls, 0, importances[i].name);
		ag_srf_number(values, nulls, 1, importances[i].mean);
		ag_srf_number(values, nulls, 2, importances[i].stddev);
		ag_srf_number(values, nulls, 3, importances[i].p_value);
		values[4] = Int32GetDatum(n_sets);
		ag_srf_number(values, nulls, 5, importances[i].high);
		ag_srf_number(values, nulls, 6, importances[i].low);
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
