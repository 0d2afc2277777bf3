/*
 * evaluate.c - see evaluate.h; and ag_evaluate.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "engine/base/rng.h"
#include "engine/search/options.h"
#include "pg/batch.h"
#include "pg/catalog.h"
#include "pg/convert.h"
#include "pg/errors.h"
#include "pg/evaluate.h"
#include "pg/options_json.h"
#include "pg/row.h"
#include "pg/source.h"
#include "pg/srf.h"

#define ROWS_AT_ONCE 256 /* predicted together */
#define MAX_NAMED 10     /* unknown classes that the NOTICE names */
/* Of more classes, ag_evaluate leaves out the metrics whose time grows with the classes or with pairs of them. */
#define MOST_CLASSES_APART 100

/* How the label's values become classes. */
typedef enum LabelForm
{
	LABEL_NUMBER, /* by value */
	LABEL_BOOLEAN,
	LABEL_TEXT /* by name */
} LabelForm;

typedef struct Receiver
{
	DestReceiver pub;
	AgEvaluation *evaluation;
	const AgOpenModel *const *models;
	AgRowMap *map;
	AgConverter *label;
	LabelForm label_form;
	int label_column;         /* in the rows, from 0 */
	const char *weight_name;  /* NULL: rows aren't weighted */
	int weight_column;        /* -1: by the classes, or not at all */
	double n_trained;         /* rows of all classes, to weigh by them */
	AgConverter *weight;      /* of the column */
	int *by_name, *by_number; /* the classes in these orders */
	const char *label_name;
	int64 capacity;
	MemoryContext home;
	MemoryContext row; /* reset after each row */
	double *features;  /* of the rows not yet predicted, the last n_waiting ones */
	int n_waiting;
	int64 max_rows; /* of a sample; 0: every row is predicted as it comes */
	uint64 seed;
	int64 n_without_label;
	int64 n_unknown;
	int n_named;
	char *named[MAX_NAMED];
	const AgSource *source;
} Receiver;

/* --- labels --- */

static bool
has_rounded_classes(const AgOpenModel *model)
{
	for (int i = 0; i < model->n_classes; i++)
		if (ag_model_is_rounded(model, model->classes[i].number))
			return true;
	return false;
}

static void
label_init(Receiver *receiver, Oid type)
{
	const AgOpenModel *model = receiver->evaluation->model;
	AgType natural;
	AgType wanted;

	if (!ag_convert_natural_type(type, &natural))
		natural = AG_TYPE_TEXT;
	if (model->n_classes == 0)
		receiver->label_form = LABEL_NUMBER;
	else if (natural == AG_TYPE_TEXT || model->label_type == AG_TYPE_TEXT ||
			 (natural != AG_TYPE_BOOL && has_rounded_classes(model)))
		receiver->label_form = LABEL_TEXT;
	else
		receiver->label_form = natural == AG_TYPE_BOOL ? LABEL_BOOLEAN : LABEL_NUMBER;
	wanted = receiver->label_form == LABEL_TEXT      ? AG_TYPE_TEXT
			 : receiver->label_form == LABEL_BOOLEAN ? AG_TYPE_BOOL
													 : AG_TYPE_FLOAT64;
	receiver->label =
		ag_converter_create(type, wanted, receiver->label_name, pg_tzset("GMT"), model->raw_text);
}

static int
compare_texts(const char *a, uint32 n_a, const char *b, uint32 n_b)
{
	int order = memcmp(a, b, Min(n_a, n_b));

	return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int
compare_names(const void *left, const void *right, void *arg)
{
	const AgClass *classes = arg;
	const AgClass *a = &classes[*(const int *) left];
	const AgClass *b = &classes[*(const int *) right];

	return compare_texts(a->name, a->n_bytes, b->name, b->n_bytes);
}

/* NaN (a text's number) last. */
static int
compare_numbers(const void *left, const void *right, void *arg)
{
	const AgClass *classes = arg;
	double a = classes[*(const int *) left].number;
	double b = classes[*(const int *) right].number;

	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a > b) - (a < b);
}

/* There may be 10,000 classes, and they are looked up for each row. */
static int *
sorted_classes(const AgOpenModel *model, int (*compare)(const void *, const void *, void *))
{
	int *order = palloc(sizeof(int) * Max(model->n_classes, 1));

	for (int i = 0; i < model->n_classes; i++)
		order[i] = i;
	qsort_arg(order, model->n_classes, sizeof(int), compare, (void *) model->classes);
	return order;
}

static int
class_by_number(const Receiver *receiver, double number)
{
	const AgOpenModel *model = receiver->evaluation->model;
	int low = 0, high = model->n_classes;

	while (low < high)
	{
		int middle = low + (high - low) / 2;
		double here = model->classes[receiver->by_number[middle]].number;

		if (here == number)
			return receiver->by_number[middle];
		if (here < number)
			low = middle + 1;
		else /* NaN too */
			high = middle;
	}
	return -1;
}

/* By its name; a text that is a number may also stand for a number's class ('1.0' for 1). */
static int
class_by_text(const Receiver *receiver, const char *text, uint32 n_bytes)
{
	const AgOpenModel *model = receiver->evaluation->model;
	int low = 0, high = model->n_classes;
	char *copy, *end;
	double number;

	while (low < high)
	{
		int middle = low + (high - low) / 2;
		const AgClass *here = &model->classes[receiver->by_name[middle]];
		int order = compare_texts(text, n_bytes, here->name, here->n_bytes);

		if (order == 0)
			return receiver->by_name[middle];
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (model->label_type == AG_TYPE_TEXT || n_bytes == 0)
		return -1;
	copy = pnstrdup(text, n_bytes);
	number = strtod(copy, &end);
	return *end == '\0' && !ag_model_is_rounded(model, number) ? class_by_number(receiver, number)
															   : -1;
}

static void
note_unknown(Receiver *receiver, const AgValue *value)
{
	char *name;

	receiver->n_unknown++;
	if (receiver->n_named == MAX_NAMED)
		return;
	if (receiver->label_form == LABEL_TEXT)
		name = ag_model_text(receiver->evaluation->model, value->v.s.text, value->v.s.n_bytes);
	else if (receiver->label_form == LABEL_BOOLEAN)
		name = pstrdup(value->v.b ? "true" : "false");
	else
		name = psprintf("%g", value->v.f64);
	for (int i = 0; i < receiver->n_named; i++)
		if (strcmp(receiver->named[i], name) == 0)
			return;
	receiver->named[receiver->n_named++] = MemoryContextStrdup(receiver->home, name);
}

static int32
class_of(Receiver *receiver, const AgValue *value)
{
	int class = -1;

	switch (receiver->label_form)
	{
		case LABEL_NUMBER:
			class = class_by_number(receiver, value->v.f64);
			break;
		case LABEL_BOOLEAN:
			class = class_by_number(receiver, value->v.b ? 1 : 0);
			break;
		case LABEL_TEXT:
			class = class_by_text(receiver, value->v.s.text, value->v.s.n_bytes);
			break;
	}
	if (class < 0)
		note_unknown(receiver, value);
	return class;
}

/* --- weights --- */

const char *
ag_evaluate_weight(const AgPredictorRow *row)
{
	JsonbValue *weight = ag_options_member(row->options, "sample_weight");
	JsonbValue *counts = ag_options_member(row->options, "weight_evaluation");

	if (weight == NULL || weight->type != jbvString || counts == NULL || counts->type != jbvBool ||
		!counts->val.boolean)
		return NULL;
	return pnstrdup(weight->val.string.val, weight->val.string.len);
}

/* Of a row's class: as the training rows were weighted. A class that they didn't have weighs as much as the mean row. */
static double
balance_of(const Receiver *receiver, int class)
{
	const AgOpenModel *model = receiver->evaluation->model;

	if (class < 0 || model->classes[class].n_rows == 0)
		return 1.0;
	return receiver->n_trained / model->n_classes / (double) model->classes[class].n_rows;
}

static double
weight_of(Receiver *receiver, TupleTableSlot *slot, int64 at)
{
	bool is_null;
	Datum datum;
	AgValue value;

	if (receiver->weight_column < 0)
		return balance_of(receiver, receiver->evaluation->class_of[at]);
	datum = slot_getattr(slot, receiver->weight_column + 1, &is_null);
	if (!is_null)
		ag_converter_run(receiver->weight, datum, false, &value);
	if (is_null || !isfinite(value.v.f64) || value.v.f64 < 0.0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("sample weight \"%s\" is %s in some row", receiver->weight_name,
						is_null             ? "NULL"
						: value.v.f64 < 0.0 ? "negative"
											: "NaN or infinite"),
				 errhint("A weight is a finite number from 0 on. coalesce() fills in NULLs.")));
	return value.v.f64;
}

/* --- rows --- */

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc desc)
{
	Receiver *receiver = (Receiver *) self;
	MemoryContext caller = MemoryContextSwitchTo(receiver->home);

	ag_source_check(receiver->source, desc);
	ag_row_map_bind(receiver->map, desc);
	label_init(receiver, TupleDescAttr(desc, receiver->label_column)->atttypid);
	if (receiver->weight_column >= 0)
		receiver->weight = ag_converter_create(
			TupleDescAttr(desc, receiver->weight_column)->atttypid, AG_TYPE_FLOAT64,
			receiver->weight_name, pg_tzset("GMT"), receiver->evaluation->model->raw_text);
	MemoryContextSwitchTo(caller);
}

/* An array that holds n items, in receiver->home. */
static void *
grown(Receiver *receiver, void *array, int64 n, size_t size)
{
	if ((size_t) n > MaxAllocHugeSize / size)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows")));
	if (array == NULL)
		return MemoryContextAllocHuge(receiver->home, n * size);
	return repalloc_huge(array, n * size);
}

static void
make_room(Receiver *receiver)
{
	AgEvaluation *evaluation = receiver->evaluation;
	int64 n;

	if (evaluation->n_rows < receiver->capacity)
		return;
	n = receiver->capacity == 0 ? 1024 : receiver->capacity * 2;
	if (receiver->max_rows > 0)
		evaluation->features =
			grown(receiver, evaluation->features, n,
				  sizeof(double) * Max(ag_predictor_features(evaluation->model->predictor), 1));
	if (evaluation->model->n_classes == 0)
		evaluation->target = grown(receiver, evaluation->target, n, sizeof(double));
	else
		evaluation->class_of = grown(receiver, evaluation->class_of, n, sizeof(int32));
	if (receiver->weight_name != NULL)
		evaluation->weight = grown(receiver, evaluation->weight, n, sizeof(double));
	for (int i = 0; i < evaluation->n_models; i++)
		evaluation->out[i] =
			grown(receiver, evaluation->out[i], n, sizeof(double) * evaluation->model->n_outputs);
	receiver->capacity = n;
}

/* Predicts the rows that wait, with each model. */
static void
predict_waiting(Receiver *receiver)
{
	AgEvaluation *evaluation = receiver->evaluation;
	int n_outputs = evaluation->model->n_outputs;
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};

	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	for (int i = 0; i < evaluation->n_models; i++)
	{
		int64 started = ag_clock_ns();
		double *out = evaluation->out[i] + (evaluation->n_rows - receiver->n_waiting) * n_outputs;

		ag_error_check(ag_predictor_run_rows(&ctx, receiver->models[i]->predictor,
											 receiver->n_waiting, receiver->features, out),
					   &error);
		evaluation->seconds[i] += (ag_clock_ns() - started) * 1e-9;
	}
	receiver->n_waiting = 0;
}

/*
 * Where the next row goes: behind the others, or, when a sample is full, in place of one of them or nowhere (-1).
 * Vitter 1985, "Random sampling with a reservoir", algorithm R.
 */
static int64
place_of_row(Receiver *receiver)
{
	AgEvaluation *evaluation = receiver->evaluation;
	int64 seen = evaluation->n_seen++;
	uint64 place;

	if (receiver->max_rows == 0 || evaluation->n_rows < receiver->max_rows)
	{
		make_room(receiver);
		return evaluation->n_rows++;
	}
	place = ag_random_u64(receiver->seed, (uint64) seen) % (uint64) (seen + 1);
	return place < (uint64) receiver->max_rows ? (int64) place : -1;
}

static void
take_row(Receiver *receiver, TupleTableSlot *slot)
{
	AgEvaluation *evaluation = receiver->evaluation;
	AgPredictor *predictor = evaluation->model->predictor;
	size_t n_features = (size_t) ag_predictor_features(predictor);
	const AgValue *values;
	int64 at;
	AgValue label;
	bool is_null;
	Datum datum = slot_getattr(slot, receiver->label_column + 1, &is_null);

	if (is_null)
	{
		receiver->n_without_label++;
		return;
	}
	at = place_of_row(receiver);
	if (at < 0)
		return;
	ag_converter_run(receiver->label, datum, false, &label);
	if (evaluation->model->n_classes > 0)
		evaluation->class_of[at] = class_of(receiver, &label);
	else if (isfinite(label.v.f64))
		evaluation->target[at] = label.v.f64;
	else
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("label \"%s\" is NaN or infinite in some row", receiver->label_name)));
	if (receiver->weight_name != NULL)
		evaluation->weight[at] = weight_of(receiver, slot, at);
	values = ag_row_from_slot(receiver->map, slot);
	if (receiver->max_rows > 0)
	{
		ag_predictor_encode(predictor, values, evaluation->features + (size_t) at * n_features);
		return;
	}
	ag_predictor_encode(predictor, values,
						receiver->features + (size_t) receiver->n_waiting * n_features);
	if (++receiver->n_waiting == ROWS_AT_ONCE)
		predict_waiting(receiver);
}

static bool
receiver_receive(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver *receiver = (Receiver *) self;
	MemoryContext caller = MemoryContextSwitchTo(receiver->row);

	take_row(receiver, slot);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(receiver->row);
	return true;
}

static void
receiver_done(DestReceiver *self)
{
}

/* --- the run --- */

/* Only what is needed is read, so the caller needs no right on other columns. */
static void
want_columns(Receiver *receiver, AgSource *source)
{
	int label = ag_source_find_column(source, receiver->label_name, "label"), weight = -1;

	ag_batch_want(receiver->evaluation->model, source);
	source->columns[label].wanted = true;
	if (receiver->weight_column >= 0)
	{
		weight = ag_source_find_column(source, receiver->weight_name, "sample weight");
		source->columns[weight].wanted = true;
	}
	ag_source_select(source);
	receiver->label_column = source->columns[label].position;
	if (weight >= 0)
		receiver->weight_column = source->columns[weight].position;
}

static void
tell(const Receiver *receiver)
{
	StringInfoData list;

	if (receiver->n_without_label > 0)
		ereport(NOTICE, (errmsg_plural("left out " INT64_FORMAT " row whose label \"%s\" is NULL",
									   "left out " INT64_FORMAT " rows whose label \"%s\" is NULL",
									   receiver->n_without_label, receiver->n_without_label,
									   receiver->label_name)));
	if (receiver->n_unknown > 0)
	{
		initStringInfo(&list);
		for (int i = 0; i < receiver->n_named; i++)
			appendStringInfo(&list, "%s\"%s\"", i == 0 ? "" : ", ", receiver->named[i]);
		ereport(NOTICE,
				(errmsg_plural(
					 "counted " INT64_FORMAT
					 " row as wrong: its label \"%s\" was not among the training data's classes",
					 "counted " INT64_FORMAT
					 " rows as wrong: their label \"%s\" was not among the training data's classes",
					 receiver->n_unknown, receiver->n_unknown, receiver->label_name),
				 errdetail("Unknown: %s%s.", list.data,
						   receiver->n_named == MAX_NAMED ? ", ..." : "")));
	}
}

static AgEvaluation *
run(const char *data, const char *name, const char *label, const char *weight,
	const AgOpenModel *const *models, int n_models, int64 max_rows, uint64 seed)
{
	AgEvaluation *evaluation = palloc0(sizeof(AgEvaluation));
	Receiver *receiver = palloc0(sizeof(Receiver));
	AgSource *source;

	evaluation->model = models[0];
	evaluation->n_models = n_models;
	evaluation->out = palloc0(sizeof(double *) * n_models);
	evaluation->seconds = palloc0(sizeof(double) * n_models);
	receiver->pub.rStartup = receiver_startup;
	receiver->pub.receiveSlot = receiver_receive;
	receiver->pub.rShutdown = receiver_done;
	receiver->pub.rDestroy = receiver_done;
	receiver->pub.mydest = DestTuplestore; /* SPI takes DestNone for a utility command */
	receiver->evaluation = evaluation;
	receiver->models = models;
	receiver->map = ag_row_map_create(models[0], name, CurrentMemoryContext);
	receiver->label_name = label;
	receiver->weight_name = weight;
	receiver->weight_column =
		weight == NULL || strcmp(weight, AG_BALANCE_WEIGHT) == 0 ? -1 : 0; /* not known yet */
	if (weight != NULL && receiver->weight_column < 0 && models[0]->n_classes == 0)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("the stored model is damaged"),
						errdetail("Its rows are weighted by classes, and it has none.")));
	for (int k = 0; k < models[0]->n_classes; k++)
		receiver->n_trained += (double) models[0]->classes[k].n_rows;
	receiver->home = CurrentMemoryContext;
	receiver->max_rows = max_rows;
	receiver->seed = seed;
	receiver->features = MemoryContextAllocHuge(
		receiver->home,
		sizeof(double) * ROWS_AT_ONCE * Max(ag_predictor_features(models[0]->predictor), 1));
	receiver->by_name = sorted_classes(models[0], compare_names);
	receiver->by_number = sorted_classes(models[0], compare_numbers);
	receiver->row =
		AllocSetContextCreate(CurrentMemoryContext, "ag_pg evaluated row", ALLOCSET_DEFAULT_SIZES);
	SPI_connect();
	source = ag_source_open(data);
	want_columns(receiver, source);
	receiver->source = source;
	ag_source_run(source, &receiver->pub);
	predict_waiting(receiver);
	SPI_finish();
	tell(receiver);
	if (evaluation->n_rows == 0)
		ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
						errmsg("there is no row with a label \"%s\" to evaluate on", label)));
	return evaluation;
}

AgEvaluation *
ag_evaluate_run(const char *data, const char *name, const char *label, const char *weight,
				const AgOpenModel *const *models, int n_models)
{
	return run(data, name, label, weight, models, n_models, 0, 0);
}

AgEvaluation *
ag_evaluate_sample(const char *data, const char *name, const char *label, const char *weight,
				   const AgOpenModel *model, int64 max_rows, uint64 seed)
{
	return run(data, name, label, weight, &model, 1, max_rows, seed);
}

void
ag_evaluate_warn(const AgPredictorRow *row, const char *data)
{
	AgMetric metric = ag_metric_by_name(row->eval_metric);

	if (row->right < AG_RIGHT_INSPECT || strcmp(data, row->data) != 0)
		return;
	ereport(NOTICE,
			(errmsg("these are rows that \"%s\" was fitted on: they make it look better than it is",
					row->name),
			 isnan(row->score_val)
				 ? 0
				 : errdetail("On rows that its models had not seen, %s was %g.", row->eval_metric,
							 ag_metric_score(metric, row->score_val))));
}

double
ag_evaluate_metric(const AgEvaluation *evaluation, int model, AgMetric metric)
{
	AgMem mem;
	AgError error;
	AgContext ctx = {.mem = &mem, .deadline_ns = INT64_MAX, .error = &error};
	double value = NAN;
	AgTruth truth = {0};

	CHECK_FOR_INTERRUPTS();
	ag_mem_init(&mem, INT64_MAX);
	ag_error_init(&error);
	truth.n_classes = evaluation->model->n_classes;
	truth.class_of = evaluation->class_of;
	truth.n_quantiles = evaluation->model->n_quantiles;
	truth.quantiles = evaluation->model->quantiles;
	truth.target = evaluation->target;
	truth.weight = evaluation->weight;
	truth.threshold = fmax(evaluation->model->threshold, DBL_MIN); /* 0 would be none */
	ag_error_check(
		ag_metric_value(&ctx, metric, &truth, evaluation->n_rows, evaluation->out[model], &value),
		&error);
	return value;
}

PG_FUNCTION_INFO_V1(ag_sql_evaluate);

Datum
ag_sql_evaluate(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char *data = text_to_cstring(PG_GETARG_TEXT_PP(1));
	AgMetric metrics[AG_METRIC_LAST];
	AgEvaluation *evaluation;
	const AgOpenModel *model;
	AgPredictorRow *row;
	pg_uuid_t id;
	char *member;
	int n_metrics;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	ag_catalog_find(name, &id, &member, &row);
	model = ag_cache_get(&id, member != NULL ? member : row->best_model, CurrentMemoryContext);
	evaluation = ag_evaluate_run(data, name, row->label, ag_evaluate_weight(row), &model, 1);
	ag_evaluate_warn(row, data);
	n_metrics = ag_metric_list(model->problem, ag_metric_by_name(row->eval_metric), metrics);
	for (int i = 0; i < n_metrics; i++)
	{
		Datum values[2];
		bool nulls[2] = {false};

		if (i > 0 && model->n_classes > MOST_CLASSES_APART && ag_metric_goes_by_class(metrics[i]))
			continue;
		ag_srf_text(values, nulls, 0, ag_metric_name(metrics[i]));
		ag_srf_number(values, nulls, 1, ag_evaluate_metric(evaluation, 0, metrics[i]));
		ag_srf_row(&srf, values, nulls);
	}
	return (Datum) 0;
}
