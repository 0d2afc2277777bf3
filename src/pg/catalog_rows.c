/*
 * catalog_rows.c - the columns, members and bytes of one predictor, read from the tables.
 */
#include "postgres.h"

#include "miscadmin.h"
#include <math.h>

#include "access/detoast.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "engine/base/hash.h"
#include "pg/catalog.h"
#include "pg/scan.h"

/* Columns of the tables, as the install script creates them. */
enum
{
	FEATURE_PREDICTOR = 1,
	FEATURE_ORDINAL,
	FEATURE_NAME,
	FEATURE_TYPE,
	FEATURE_KIND,
	FEATURE_USED,
	FEATURE_BECAME,
	FEATURE_DROPPED_WHY
};

enum
{
	MEMBER_PREDICTOR = 1,
	MEMBER_ORDINAL,
	MEMBER_NAME,
	MEMBER_FAMILY,
	MEMBER_STACK_LEVEL,
	MEMBER_FOLD,
	MEMBER_FIT_ORDER,
	MEMBER_HYPERPARAMETERS,
	MEMBER_SCORE_VAL,
	MEMBER_FIT_TIME,
	MEMBER_PREDICT_TIME,
	MEMBER_DEVICE,
	MEMBER_NUM_GPUS,
	MEMBER_NUM_CPUS,
	MEMBER_CAN_INFER,
	MEMBER_TEMPERATURE,
	MEMBER_QUANTILE_SHIFTS,
	MEMBER_INPUTS,
	MEMBER_HISTORY
};

enum
{
	PART_PREDICTOR = 1,
	PART_MEMBER,
	PART_PART,
	PART_DATA,
	PART_CHECKSUM
};

static void
corrupt(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("the stored model is damaged"),
					errdetail_internal("%s", what)));
}

AgFeatureRow *
ag_catalog_features(const pg_uuid_t *id, int *n)
{
	int capacity = 32;
	AgFeatureRow *rows = palloc(sizeof(AgFeatureRow) * capacity);
	ScanKeyData key;
	AgScan scan;

	*n = 0;
	ag_scan_key_uuid(&key, FEATURE_PREDICTOR, id);
	ag_scan_begin(&scan, "ag_predictor_feature", "ag_predictor_feature_pkey", FEATURE_DROPPED_WHY,
				  1, &key);
	while (ag_scan_next(&scan))
	{
		AgFeatureRow *row;

		if (*n == capacity)
		{
			capacity *= 2;
			rows = repalloc(rows, sizeof(AgFeatureRow) * capacity);
		}
		row = &rows[(*n)++];
		row->ordinal = DatumGetInt32(ag_scan_must(&scan, FEATURE_ORDINAL));
		row->name = ag_scan_text(&scan, FEATURE_NAME);
		row->type = ag_scan_text(&scan, FEATURE_TYPE);
		row->kind = ag_scan_text(&scan, FEATURE_KIND);
		row->is_used = DatumGetBool(ag_scan_must(&scan, FEATURE_USED));
		row->became = ag_scan_text_or_null(&scan, FEATURE_BECAME);
		row->dropped_why = ag_scan_text_or_null(&scan, FEATURE_DROPPED_WHY);
	}
	ag_scan_end(&scan);
	return rows;
}

/* --- members --- */

static int
ordinal_of(const AgMemberRow *rows, int n, const char *name, int n_bytes)
{
	for (int i = 0; i < n; i++)
		if (strlen(rows[i].name) == (size_t) n_bytes && memcmp(rows[i].name, name, n_bytes) == 0)
			return rows[i].ordinal;
	corrupt("An ensemble combines a model that is not there.");
	return 0;
}

/* One {"model": name, "weight": number} of an ensemble. */
static void
read_input(const AgMemberRow *rows, int n, JsonbContainer *object, int *ordinal, double *weight)
{
	JsonbValue key = {.type = jbvString};
	JsonbValue *name, *number;

	key.val.string.val = (char *) "model";
	key.val.string.len = 5;
	name = findJsonbValueFromContainer(object, JB_FOBJECT, &key);
	key.val.string.val = (char *) "weight";
	key.val.string.len = 6;
	number = findJsonbValueFromContainer(object, JB_FOBJECT, &key);
	if (name == NULL || name->type != jbvString || number == NULL || number->type != jbvNumeric)
		corrupt("An ensemble's list of models can't be read.");
	*ordinal = ordinal_of(rows, n, name->val.string.val, name->val.string.len);
	*weight =
		DatumGetFloat8(DirectFunctionCall1(numeric_float8, NumericGetDatum(number->val.numeric)));
}

static void
read_inputs(const AgMemberRow *rows, int n, AgMemberRow *row, Jsonb *inputs)
{
	int n_inputs;

	if (inputs == NULL)
		return;
	if (!JB_ROOT_IS_ARRAY(inputs) || JB_ROOT_IS_SCALAR(inputs))
		corrupt("An ensemble's list of models is no array.");
	n_inputs = JB_ROOT_COUNT(inputs);
	row->inputs = palloc(sizeof(int) * n_inputs);
	row->weights = palloc(sizeof(double) * n_inputs);
	for (int i = 0; i < n_inputs; i++)
	{
		JsonbValue *item = getIthJsonbValueFromContainer(&inputs->root, i);

		CHECK_FOR_INTERRUPTS(); /* a list is as long as whoever wrote the row made it */
		if (item->type != jbvBinary || !JsonContainerIsObject(item->val.binary.data))
			corrupt("An ensemble's list of models can't be read.");
		read_input(rows, n, item->val.binary.data, &row->inputs[i], &row->weights[i]);
	}
	row->n_inputs = n_inputs;
}

static void
read_shifts(AgMemberRow *row, Jsonb *shifts)
{
	int n;

	if (shifts == NULL)
		return;
	if (!JB_ROOT_IS_ARRAY(shifts) || JB_ROOT_IS_SCALAR(shifts))
		corrupt("What quantiles are moved by is no array.");
	n = JB_ROOT_COUNT(shifts);
	row->shifts = palloc(sizeof(double) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		JsonbValue *item = getIthJsonbValueFromContainer(&shifts->root, i);

		CHECK_FOR_INTERRUPTS();
		if (item->type != jbvNumeric)
			corrupt("What quantiles are moved by can't be read.");
		row->shifts[i] =
			DatumGetFloat8(DirectFunctionCall1(numeric_float8, NumericGetDatum(item->val.numeric)));
	}
	row->n_shifts = n;
}

AgMemberRow *
ag_catalog_members(const pg_uuid_t *id, int *n)
{
	int capacity = 16;
	AgMemberRow *rows = palloc(sizeof(AgMemberRow) * capacity);
	Jsonb **inputs = palloc(sizeof(Jsonb *) * capacity);
	ScanKeyData key;
	AgScan scan;

	*n = 0;
	ag_scan_key_uuid(&key, MEMBER_PREDICTOR, id);
	ag_scan_begin(&scan, "ag_member", "ag_member_pkey", MEMBER_INPUTS, 1, &key);
	while (ag_scan_next(&scan))
	{
		AgMemberRow *row;

		if (*n == capacity)
		{
			capacity *= 2;
			rows = repalloc(rows, sizeof(AgMemberRow) * capacity);
			inputs = repalloc(inputs, sizeof(Jsonb *) * capacity);
		}
		inputs[*n] = ag_scan_jsonb(&scan, MEMBER_INPUTS);
		row = memset(&rows[(*n)++], 0, sizeof(AgMemberRow));
		row->ordinal = DatumGetInt32(ag_scan_must(&scan, MEMBER_ORDINAL));
		row->name = ag_scan_text(&scan, MEMBER_NAME);
		row->family = ag_scan_text(&scan, MEMBER_FAMILY);
		row->stack_level = DatumGetInt32(ag_scan_must(&scan, MEMBER_STACK_LEVEL));
		row->fold =
			scan.nulls[MEMBER_FOLD - 1] ? 0 : DatumGetInt32(ag_scan_must(&scan, MEMBER_FOLD));
		row->fit_order = DatumGetInt32(ag_scan_must(&scan, MEMBER_FIT_ORDER));
		row->hyperparameters = ag_scan_must_jsonb(&scan, MEMBER_HYPERPARAMETERS);
		row->score_val = ag_scan_number(&scan, MEMBER_SCORE_VAL);
		row->fit_time = ag_scan_number(&scan, MEMBER_FIT_TIME);
		row->predict_time = ag_scan_number(&scan, MEMBER_PREDICT_TIME);
		row->device = ag_scan_text(&scan, MEMBER_DEVICE);
		row->num_gpus = ag_scan_number(&scan, MEMBER_NUM_GPUS);
		row->num_cpus = DatumGetInt32(ag_scan_must(&scan, MEMBER_NUM_CPUS));
		row->can_infer = DatumGetBool(ag_scan_must(&scan, MEMBER_CAN_INFER));
		row->temperature =
			scan.nulls[MEMBER_TEMPERATURE - 1] ? 0 : ag_scan_number(&scan, MEMBER_TEMPERATURE);
		read_shifts(row, ag_scan_jsonb(&scan, MEMBER_QUANTILE_SHIFTS));
	}
	ag_scan_end(&scan);
	for (int i = 0; i < *n; i++)
		read_inputs(rows, *n, &rows[i], inputs[i]);
	return rows;
}

Jsonb *
ag_catalog_history(const pg_uuid_t *id, int ordinal)
{
	Jsonb *history = NULL;
	ScanKeyData keys[2];
	AgScan scan;

	ag_scan_key_uuid(&keys[0], MEMBER_PREDICTOR, id);
	ag_scan_key_int4(&keys[1], MEMBER_ORDINAL, ordinal);
	ag_scan_begin(&scan, "ag_member", "ag_member_pkey", MEMBER_HISTORY, 2, keys);
	if (ag_scan_next(&scan))
		history = ag_scan_jsonb(&scan, MEMBER_HISTORY);
	ag_scan_end(&scan);
	return history;
}

/* --- bytes --- */

int64
ag_catalog_checksum(const void *bytes, uint32 n_bytes)
{
	return (int64) ag_hash64(bytes, n_bytes, 0);
}

static void
part_scan_begin(AgScan *scan, const pg_uuid_t *id, int member)
{
	ScanKeyData keys[2];

	ag_scan_key_uuid(&keys[0], PART_PREDICTOR, id);
	ag_scan_key_int4(&keys[1], PART_MEMBER, member);
	ag_scan_begin(scan, "ag_member_part", "ag_member_part_pkey", PART_CHECKSUM, 2, keys);
}

/* The bytes of all parts, without reading them. */
static size_t
image_size(const pg_uuid_t *id, int member)
{
	size_t size = 0;
	int n_parts = 0;
	AgScan scan;

	part_scan_begin(&scan, id, member);
	while (ag_scan_next(&scan))
	{
		if (DatumGetInt32(ag_scan_must(&scan, PART_PART)) != n_parts++)
			corrupt("Parts of its bytes are missing.");
		size += toast_raw_datum_size(ag_scan_must(&scan, PART_DATA)) - VARHDRSZ;
	}
	ag_scan_end(&scan);
	return size;
}

static void
copy_parts(const pg_uuid_t *id, int member, char *image, size_t size)
{
	size_t at = 0;
	AgScan scan;

	part_scan_begin(&scan, id, member);
	while (ag_scan_next(&scan))
	{
		bytea *part = DatumGetByteaPP(ag_scan_must(&scan, PART_DATA));
		size_t n = VARSIZE_ANY_EXHDR(part);

		CHECK_FOR_INTERRUPTS();
		if (n > size - at)
			corrupt("Its bytes changed while they were read.");
		if (ag_catalog_checksum(VARDATA_ANY(part), (uint32) n) !=
			DatumGetInt64(ag_scan_must(&scan, PART_CHECKSUM)))
			corrupt("A part's checksum does not match its bytes.");
		memcpy(image + at, VARDATA_ANY(part), n);
		at += n;
		if ((void *) part != DatumGetPointer(scan.values[PART_DATA - 1]))
			pfree(part);
	}
	ag_scan_end(&scan);
	if (at != size)
		corrupt("Its bytes changed while they were read.");
}

void *
ag_catalog_image(const pg_uuid_t *id, int member, AgMem *mem, size_t *size)
{
	char *image;

	*size = image_size(id, member);
	if (*size == 0)
		return NULL;
	image = ag_mem_alloc(mem, *size, 1);
	if (image == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
						errdetail("A model of %zu bytes does not fit.", *size)));
	PG_TRY();
	{
		copy_parts(id, member, image, *size);
	}
	PG_CATCH();
	{
		ag_mem_free(mem, image);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return image;
}
