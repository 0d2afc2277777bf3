/*
 * oof.c - see oof.h; and ag_predict_oof: what the best model predicted for the rows that it was scored on, without having been trained on them.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "engine/base/bytes.h"
#include "pg/cache.h"
#include "pg/catalog.h"
#include "pg/errors.h"
#include "pg/oof.h"
#include "pg/result.h"
#include "pg/srf.h"

typedef struct Oof
{
	const AgOpenModel *model;
	JsonbValue *class_keys;
	AgReader in;
	uint32 flags;
	double *out;
	AgSrf srf;
} Oof;

static void
damaged(const char *model)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("the stored out-of-fold predictions of \"%s\" are damaged", model)));
}

/* Numbers as their shortest text, classes by their names. */
static char *
label_text(Oof *oof, const char *name)
{
	const AgOpenModel *model = oof->model;
	int32_t class;

	if ((oof->flags & AG_OOF_CLASSES) == 0)
		return ag_result_number_text(ag_read_f64(&oof->in));
	class = ag_read_i32(&oof->in);
	if (class < 0 || class >= model->n_classes)
		damaged(name);
	return ag_model_text(model, model->classes[class].name, model->classes[class].n_bytes);
}

/* A number in single precision; 0 behind the end. */
static float
read_single(AgReader *in)
{
	const void *bytes = ag_read_bytes(in, sizeof(float));
	float single = 0;

	if (bytes != NULL)
		memcpy(&single, bytes, sizeof single);
	return single;
}

/* How much the row counts: behind its predictions. */
static float
read_weight(Oof *oof)
{
	return (oof->flags & AG_OOF_WEIGHTS) != 0 ? read_single(&oof->in) : 1.0f;
}

static void
put_row(Oof *oof, int64 row, const char *name)
{
	const AgOpenModel *model = oof->model;
	bool has_classes = (oof->flags & AG_OOF_CLASSES) != 0;
	Datum values[5];
	bool nulls[5] = {false};

	values[0] = Int64GetDatum(row);
	ag_srf_text(values, nulls, 1, label_text(oof, name));
	for (int k = 0; k < model->n_outputs; k++)
		oof->out[k] = read_single(&oof->in);
	(void) read_weight(oof);
	if (oof->in.failed)
		damaged(name);
	if (has_classes)
	{
		const AgClass *class = &model->classes[ag_model_best_class(model, oof->out)];

		ag_srf_text(values, nulls, 2, ag_model_text(model, class->name, class->n_bytes));
		values[3] = JsonbPGetDatum(ag_result_proba(model, oof->class_keys, oof->out));
	}
	else
		ag_srf_text(values, nulls, 2, ag_result_number_text(oof->out[model->middle]));
	nulls[3] = !has_classes;
	nulls[4] = model->n_quantiles == 0;
	values[4] = nulls[4] ? (Datum) 0 : ag_result_quantiles(model, oof->out);
	ag_srf_row(&oof->srf, values, nulls);
}

/* Gives how many rows follow. */
static uint64
read_head(Oof *oof, const char *name)
{
	bool is_ours = ag_read_u32(&oof->in) == AG_OOF_MAGIC;
	uint32 version = ag_read_u32(&oof->in), width = ag_read_u32(&oof->in);
	uint32 flags = ag_read_u32(&oof->in);
	uint32 known = version == 1 ? AG_OOF_CLASSES : AG_OOF_CLASSES | AG_OOF_WEIGHTS;
	uint64 n_rows = ag_read_u64(&oof->in);
	bool has_classes = (flags & AG_OOF_CLASSES) != 0, has_weights = (flags & AG_OOF_WEIGHTS) != 0;
	size_t row_bytes = (has_classes ? 4 : 8) + sizeof(float) * ((size_t) width + has_weights);

	oof->flags = flags;
	if (oof->in.failed || !is_ours || version < 1 || version > AG_OOF_VERSION ||
		(flags & ~known) != 0 || width != (uint32) oof->model->n_outputs ||
		has_classes != (oof->model->n_classes > 0) || ag_reader_left(&oof->in) % row_bytes != 0 ||
		ag_reader_left(&oof->in) / row_bytes != n_rows)
		damaged(name);
	return n_rows;
}

static void
not_stored(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NO_DATA_FOUND),
			 errmsg("no out-of-fold predictions of \"%s\" are stored", name),
			 errdetail("They aren't with \"save_space\", and where no rows were validated on.")));
}

/* --- errors --- */

static int
compare_errors(const void *left, const void *right)
{
	float a = ((const AgOofError *) left)->distance, b = ((const AgOofError *) right)->distance;

	return (a > b) - (a < b);
}

/* A distance that isn't finite counts as infinite. */
static void
read_errors(Oof *oof, const char *name, uint64 n, AgOofError *errors)
{
	for (uint64 i = 0; i < n; i++)
	{
		double truth = ag_read_f64(&oof->in);

		errors[i].distance = (float) fabs(truth - read_single(&oof->in));
		errors[i].weight = read_weight(oof);
		if (oof->in.failed || !(errors[i].weight >= 0.0f && isfinite(errors[i].weight)))
			damaged(name);
		if (!isfinite(errors[i].distance))
			errors[i].distance = INFINITY;
	}
	qsort(errors, n, sizeof *errors, compare_errors);
}

AgOofError *
ag_oof_errors(const AgOpenModel *model, const char *name, int64 *n)
{
	Oof oof = {.model = model};
	AgOofError *volatile errors = NULL; /* set before a jump, used behind it */
	size_t size;
	void *image;
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	image = ag_catalog_image(&model->id, AG_OOF_MEMBER, &mem, &size);
	if (image == NULL)
		not_stored(name);
	PG_TRY();
	{
		ag_reader_init(&oof.in, image, size);
		*n = (int64) read_head(&oof, name);
		if (*n == 0)
			damaged(name);
		errors = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(AgOofError) * *n);
		read_errors(&oof, name, (uint64) *n, errors);
	}
	PG_FINALLY();
	{
		ag_mem_free(&mem, image);
	}
	PG_END_TRY();
	return errors;
}

/* --- ag_predict_oof --- */

PG_FUNCTION_INFO_V1(ag_sql_predict_oof);

Datum
ag_sql_predict_oof(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0)), *member;
	MemoryContext scratch;
	AgPredictorRow *row;
	pg_uuid_t id;
	uint64 n_rows;
	size_t size;
	void *image;
	AgMem mem;
	Oof oof;

	ag_srf_begin(&oof.srf, fcinfo);
	ag_catalog_find(name, &id, &member, &row);
	ag_rights_require(row->right, AG_RIGHT_INSPECT, row->name);
	if (member != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" names one member of a model", name),
						errdetail("Out-of-fold predictions are kept of the best one.")));
	ag_mem_init(&mem, INT64_MAX);
	image = ag_catalog_image(&id, AG_OOF_MEMBER, &mem, &size);
	if (image == NULL)
		not_stored(name);
	PG_TRY();
	{
		oof.model = ag_cache_get(&id, row->best_model, CurrentMemoryContext);
		oof.class_keys = ag_result_class_keys(oof.model);
		oof.out = palloc(sizeof(double) * oof.model->n_outputs);
		ag_reader_init(&oof.in, image, size);
		n_rows = read_head(&oof, name);
		scratch =
			AllocSetContextCreate(CurrentMemoryContext, "ag_pg oof row", ALLOCSET_DEFAULT_SIZES);
		for (uint64 i = 0; i < n_rows; i++)
		{
			MemoryContext old = MemoryContextSwitchTo(scratch);

			CHECK_FOR_INTERRUPTS();
			put_row(&oof, (int64) i + 1, name);
			MemoryContextSwitchTo(old);
			MemoryContextReset(scratch);
		}
	}
	PG_FINALLY();
	{
		ag_mem_free(&mem, image);
	}
	PG_END_TRY();
	return (Datum) 0;
}
