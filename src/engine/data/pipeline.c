/*
 * pipeline.c - replaying a pipeline: a table to bins, a row to features.
 */
#include "engine/data/pipeline.h"

#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/bins_gpu.h"
#include "engine/data/dictionary.h"
#include "engine/data/pipeline_private.h"

AgPipeline *
ag_pipeline_new(AgMem *mem)
{
	AgPipeline *pipeline = ag_mem_zalloc(mem, 1, sizeof(AgPipeline));

	if (pipeline == NULL)
		return NULL;
	pipeline->mem = mem;
	ag_arena_init(&pipeline->arena, mem);
	return pipeline;
}

void
ag_pipeline_free(AgPipeline *pipeline)
{
	if (pipeline == NULL)
		return;
	for (int i = 0; i < pipeline->n_inputs; i++)
		if (pipeline->inputs[i].levels != NULL)
			ag_dictionary_free(pipeline->inputs[i].levels, pipeline->mem);
	for (int f = 0; pipeline->level_values != NULL && f < pipeline->n_features; f++)
		ag_mem_free(pipeline->mem, pipeline->level_values[f]);
	for (int i = 0; pipeline->level_terms != NULL && i < pipeline->n_inputs; i++)
		if (pipeline->level_terms[i] != NULL)
		{
			ag_mem_free(pipeline->mem, (void *) pipeline->level_terms[i]->first);
			ag_mem_free(pipeline->mem, (void *) pipeline->level_terms[i]->terms);
		}
	ag_arena_free(&pipeline->arena);
	ag_mem_free(pipeline->mem, pipeline);
}

static double
part_of_date(int32_t value, AgFeatureKind kind)
{
	AgDateParts parts = ag_parts_of_date(value);

	return ag_part_value(&parts, kind);
}

static double
part_of_timestamp(int64_t value, AgFeatureKind kind)
{
	AgDateParts parts = ag_parts_of_timestamp(value);

	return ag_part_value(&parts, kind);
}

/* Hours, minutes and seconds need no calendar, which is most of the work. */
static double
time_part_of_timestamp(int64_t value, AgFeatureKind kind)
{
	AgDateParts parts = {value != INT64_MIN && value != INT64_MAX, {0, 0, 0, 0}, 0};

	ag_days_of_timestamp(value, &parts.time_us);
	return ag_part_value(&parts, kind);
}

/* A whole column as a numeric feature's values. */
static void
numbers_of_column(const AgFeature *feature, const AgTableColumn *column, int64_t n_rows,
				  double *out)
{
	const int64_t origin = feature->origin;

#define CONVERT(type, expression)                                                                  \
	do                                                                                             \
	{                                                                                              \
		const type *v = column->values;                                                            \
                                                                                                   \
		for (int64_t row = 0; row < n_rows; row++)                                                 \
			out[row] = (expression);                                                               \
	} while (0)

	switch (column->type)
	{
		case AG_TYPE_BOOL:
			CONVERT(uint8_t, v[row]);
			break;
		case AG_TYPE_INT32:
			CONVERT(int32_t, v[row]);
			break;
		case AG_TYPE_INT64:
			CONVERT(int64_t, ag_number_of_int64(v[row], origin));
			break;
		case AG_TYPE_FLOAT32:
			CONVERT(float, v[row]);
			break;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			memcpy(out, column->values, (size_t) n_rows * sizeof(double));
			break;
		case AG_TYPE_TIME:
			CONVERT(int64_t, (double) v[row]);
			break;
		case AG_TYPE_DATE:
			if (feature->kind == AG_FEATURE_NUMBER)
				CONVERT(int32_t, ag_number_of_date(v[row], origin));
			else
				CONVERT(int32_t, part_of_date(v[row], feature->kind));
			break;
		case AG_TYPE_TIMESTAMP:
			if (feature->kind == AG_FEATURE_NUMBER)
				CONVERT(int64_t, ag_number_of_timestamp(v[row], origin));
			else if (feature->kind != AG_FEATURE_HOUR && feature->kind != AG_FEATURE_MINUTE &&
					 feature->kind != AG_FEATURE_SECOND)
				CONVERT(int64_t, part_of_timestamp(v[row], feature->kind));
			else
				CONVERT(int64_t, time_part_of_timestamp(v[row], feature->kind));
			break;
		case AG_TYPE_TEXT:
			break;
	}
#undef CONVERT
	if (column->nulls != NULL)
		for (int64_t row = 0; row < n_rows; row++)
			if (ag_column_is_null(column, row))
				out[row] = (double) NAN;
}

typedef struct Binning
{
	AgContext ctx; /* of the tasks: no pool, no error text */
	const AgPipeline *pipeline;
	AgTable *table;
	const int *column_of; /* [n_inputs] */
	const AgBinParams *params;
	AgBins *bins;
	bool drop;
	_Atomic bool failed;
} Binning;

/* The time of a cell, not NULL, of a column that has SINCE features. level_times: of a column of text. */
static bool
time_of_cell(const AgTableColumn *column, const double *level_times, int64_t row,
			 int64_t *timestamp_us)
{
	if (column->type == AG_TYPE_TEXT)
	{
		double time = level_times[((const uint32_t *) column->values)[row]];

		*timestamp_us = time == time ? (int64_t) time : 0;
		return time == time;
	}
	return ag_timestamp_of(column->type,
						   column->type == AG_TYPE_DATE ? ((const int32_t *) column->values)[row]
														: ((const int64_t *) column->values)[row],
						   timestamp_us);
}

static double
seconds_between(int64_t later_us, int64_t earlier_us)
{
	return ag_number_of_int64(later_us, earlier_us) * 1e-6;
}

/* The times of a text's levels; NULL where it isn't text. */
static const double *
times_of_levels(const AgPipeline *pipeline, int input)
{
	for (int f = 0; f < pipeline->n_features; f++)
		if (pipeline->features[f].input == input &&
			pipeline->features[f].kind == AG_FEATURE_NUMBER && pipeline->level_values != NULL)
			return pipeline->level_values[f];
	return NULL;
}

/* The table's column of an input. */
static const AgTableColumn *
column_of_input(const AgTable *table, int input)
{
	int i = -1;

	for (int c = 0; c < table->n_columns; c++)
		if (ag_role_is_feature(table->columns[c].role) && ++i == input)
			return &table->columns[c];
	return NULL;
}

/* SINCE of some rows; rows NULL: of all. */
static void
since_of_rows(const AgPipeline *pipeline, const AgTable *table, const AgFeature *feature,
			  const uint32_t *rows, int64_t n, double *values)
{
	const AgTableColumn *later = column_of_input(table, feature->input);
	const AgTableColumn *earlier = column_of_input(table, feature->other);
	const double *later_times = times_of_levels(pipeline, feature->input);
	const double *earlier_times = times_of_levels(pipeline, feature->other);

	for (int64_t i = 0; i < n; i++)
	{
		int64_t row = rows != NULL ? rows[i] : i;
		int64_t to, from;

		values[i] = (double) NAN;
		if (!ag_column_is_null(later, row) && !ag_column_is_null(earlier, row) &&
			time_of_cell(later, later_times, row, &to) &&
			time_of_cell(earlier, earlier_times, row, &from))
			values[i] = seconds_between(to, from);
	}
}

/* The value of a feature of a text's level. */
static inline double
value_of_level(const AgPipeline *pipeline, int f, uint32_t code)
{
	if (ag_text_is_wide(pipeline->features[f].kind))
		return ((const double *) pipeline->level_values[f])[code];
	return (double) ((const float *) pipeline->level_values[f])[code];
}

/* A feature that is read off texts, for every row. */
static void
texts_of_column(const AgPipeline *pipeline, int f, const AgTableColumn *column, int64_t n_rows,
				double *out)
{
	const uint32_t *codes = column->values;

	for (int64_t row = 0; row < n_rows; row++)
		out[row] =
			codes[row] == AG_NO_CODE ? (double) NAN : value_of_level(pipeline, f, codes[row]);
}

static AgStatus
bin_feature(Binning *binning, int f, const AgTableColumn *column, double *scratch)
{
	const AgFeature *feature = &binning->pipeline->features[f];
	AgBinSource source = {NULL, NULL, 0};

	int64_t n_rows = binning->table->n_rows;

	if (feature->kind == AG_FEATURE_CATEGORY)
	{
		source.codes = column->values;
		source.n_levels = feature->n_levels;
		return ag_bins_set_feature(&binning->ctx, binning->bins, f, &source, binning->params);
	}
	if (feature->kind == AG_FEATURE_SINCE)
		since_of_rows(binning->pipeline, binning->table, feature, NULL, n_rows, scratch);
	else if (column->type == AG_TYPE_TEXT)
		texts_of_column(binning->pipeline, f, column, n_rows, scratch);
	else
		numbers_of_column(feature, column, n_rows, scratch);
	source.values = scratch;
	if (ag_feature_is_category(feature))
	{
		uint32_t *codes = (uint32_t *) scratch; /* in place: a code is half as long */

		for (int64_t row = 0; row < n_rows; row++)
		{
			double value = scratch[row];

			codes[row] = value >= 0.0  ? (uint32_t) value
						 : value < 0.0 ? feature->n_levels
									   : UINT32_MAX;
		}
		source.values = NULL;
		source.codes = codes;
		source.n_levels = feature->n_levels;
	}
	return ag_bins_set_feature(&binning->ctx, binning->bins, f, &source, binning->params);
}

/* All features of some inputs, each input by one thread. */
static void
bin_inputs(void *arg, int64_t begin, int64_t end, int thread)
{
	Binning *binning = arg;
	const AgPipeline *pipeline = binning->pipeline;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
	{
		const AgTableColumn *column = &binning->table->columns[binning->column_of[i]];
		double *scratch = NULL;
		bool ok = !ag_must_stop(&binning->ctx) && !atomic_load(&binning->failed);

		if (ok && pipeline->inputs[i].is_used)
			ok = ag_get(&binning->ctx, (size_t) binning->table->n_rows, sizeof(double), &scratch) ==
				 AG_OK;
		for (int f = 0; ok && f < pipeline->n_visible; f++)
			if (pipeline->features[f].input == (int) i)
				ok = bin_feature(binning, f, column, scratch) == AG_OK;
		ag_mem_free(binning->ctx.mem, scratch);
		if (!ok)
			atomic_store(&binning->failed, true);
	}
}

/* Inputs are the table's feature columns, in their order. */
static AgStatus
match_columns(const AgContext *ctx, const AgPipeline *pipeline, const AgTable *table,
			  int *column_of)
{
	int n = 0;

	for (int c = 0; c < table->n_columns; c++)
	{
		if (!ag_role_is_feature(table->columns[c].role))
			continue;
		if (n == pipeline->n_inputs || pipeline->inputs[n].type != table->columns[c].type)
			return ag_error_set(ctx->error, AG_ERR_INTERNAL,
								"a table doesn't have its pipeline's columns");
		column_of[n++] = c;
	}
	if (n != pipeline->n_inputs)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "a table lacks columns of its pipeline");
	return AG_OK;
}

AgStatus
ag_pipeline_bin(const AgContext *ctx, const AgPipeline *pipeline, AgTable *table,
				const AgBinParams *params, bool drop, AgBins **bins)
{
	AgStatus status;
	Binning binning = {.ctx = *ctx};
	int *column_of = NULL;

	*bins = NULL;
	AG_GO(ag_get(ctx, (size_t) pipeline->n_inputs, sizeof(int), &column_of));
	AG_GO(match_columns(ctx, pipeline, table, column_of));
	AG_GO(ag_bins_create(ctx, table->n_rows, pipeline->n_visible, bins));
	binning.ctx.error = NULL;
	binning.ctx.pool = NULL;
	binning.pipeline = pipeline;
	binning.table = table;
	binning.column_of = column_of;
	binning.params = params;
	binning.bins = *bins;
	binning.drop = drop;
	if (table->n_rows >= AG_BINS_GPU_LEAST / (pipeline->n_visible + 1))
		ag_bins_gpu_begin(ctx, *bins, params);
	ag_pool_run(ctx->pool, pipeline->n_inputs, 1, bin_inputs, &binning);
	ag_bins_gpu_end(ctx, *bins);
	AG_GO(ag_check_stop(ctx, "features were binned"));
	/* not as each is done: another may be counted from it */
	for (int i = 0; drop && i < pipeline->n_inputs; i++)
		ag_table_drop_column(table, column_of[i]);
	if (atomic_load(&binning.failed))
		AG_GO(ag_mem_error(ctx->mem, (size_t) table->n_rows * 2 * sizeof(double), ctx->error));

done:
	ag_mem_free(ctx->mem, column_of);
	if (status != AG_OK)
	{
		ag_bins_free(*bins);
		*bins = NULL;
	}
	return status;
}

static inline double
number_of_value(const AgFeature *feature, AgType type, const AgValue *value)
{
	if (type == AG_TYPE_FLOAT64) /* the commonest, for every row predicted */
		return value->v.f64;
	switch (type)
	{
		case AG_TYPE_BOOL:
			return value->v.b;
		case AG_TYPE_INT32:
			return value->v.i32;
		case AG_TYPE_INT64:
			return ag_number_of_int64(value->v.i64, feature->origin);
		case AG_TYPE_FLOAT32:
			return value->v.f32;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			return value->v.f64;
		case AG_TYPE_DATE:
			return ag_number_of_date(value->v.i32, feature->origin);
		case AG_TYPE_TIMESTAMP:
			return ag_number_of_timestamp(value->v.i64, feature->origin);
		case AG_TYPE_TIME:
			return (double) value->v.i64;
		case AG_TYPE_TEXT:
			break;
	}
	return (double) NAN;
}

/* Apart from the rest, for its buffer. */
static __attribute__((noinline)) uint32_t
find_long_text(const AgDictionary *levels, const char *text, uint32_t n_bytes)
{
	char buffer[AG_TEXT_MAX];
	uint32_t n;

	text = ag_text_clip(text, n_bytes, buffer, &n);
	return ag_dictionary_find(levels, text, n);
}

static double
code_of_value(const AgDictionary *levels, const AgValue *value)
{
	uint32_t code = value->v.s.n_bytes > AG_TEXT_MAX
						? find_long_text(levels, value->v.s.text, value->v.s.n_bytes)
						: ag_dictionary_find(levels, value->v.s.text, value->v.s.n_bytes);

	return code == AG_NO_CODE ? AG_UNSEEN : (double) code;
}

static bool
time_of_value(const AgInput *input, const AgValue *value, int64_t *timestamp_us)
{
	if (value->is_null)
		return false;
	if (input->text != NULL)
		return ag_text_timestamp(input->text, value->v.s.text, value->v.s.n_bytes, timestamp_us);
	return ag_timestamp_of(input->type, input->type == AG_TYPE_DATE ? value->v.i32 : value->v.i64,
						   timestamp_us);
}

static double
since_of_values(const AgPipeline *pipeline, const AgFeature *feature, const AgValue *values)
{
	int64_t later, earlier;

	if (!time_of_value(&pipeline->inputs[feature->input], &values[feature->input], &later) ||
		!time_of_value(&pipeline->inputs[feature->other], &values[feature->other], &earlier))
		return (double) NAN;
	return seconds_between(later, earlier);
}

void
ag_pipeline_encode(const AgPipeline *pipeline, const AgValue *values, double *features)
{
	AgDateParts parts = {false, {0, 0, 0, 0}, 0};
	AgTextFacts facts;
	int parts_of =
		-1; /* the input that parts or facts hold: an input's features follow each other */

	if (pipeline->n_features > pipeline->n_visible)
		memset(features + pipeline->n_visible, 0,
			   (size_t) (pipeline->n_features - pipeline->n_visible) * sizeof *features);
	for (int f = 0; f < pipeline->n_visible; f++)
	{
		const AgFeature *feature = &pipeline->features[f];
		const AgInput *input = &pipeline->inputs[feature->input];
		const AgValue *value = &values[feature->input];

		if (value->is_null)
			features[f] = (double) NAN;
		else if (feature->kind == AG_FEATURE_NUMBER && input->text == NULL)
			features[f] = number_of_value(feature, input->type, value);
		else if (feature->kind == AG_FEATURE_CATEGORY)
			features[f] = code_of_value(input->levels, value);
		else if (feature->kind == AG_FEATURE_SINCE)
			features[f] = since_of_values(pipeline, feature, values);
		else if (input->text != NULL)
		{
			if (parts_of != feature->input)
				ag_text_facts(
					input->text, value->v.s.text, value->v.s.n_bytes, &facts,
					input->first_term < pipeline->n_features ? features + input->first_term : NULL);
			parts_of = feature->input;
			features[f] = ag_text_value(feature, input->text, &facts);
		}
		else
		{
			if (parts_of != feature->input)
			{
				parts = input->type == AG_TYPE_DATE ? ag_parts_of_date(value->v.i32)
													: ag_parts_of_timestamp(value->v.i64);
				parts_of = feature->input;
			}
			features[f] = ag_part_value(&parts, feature->kind);
		}
	}
}

/* One cell of a column, not NULL and no text, as prediction gets it. */
static void
value_of_cell(const AgTableColumn *column, int64_t row, AgValue *value)
{
	value->is_null = false;
	switch (column->type)
	{
		case AG_TYPE_BOOL:
			value->v.b = ((const uint8_t *) column->values)[row] != 0;
			break;
		case AG_TYPE_INT32:
		case AG_TYPE_DATE:
			value->v.i32 = ((const int32_t *) column->values)[row];
			break;
		case AG_TYPE_INT64:
		case AG_TYPE_TIMESTAMP:
		case AG_TYPE_TIME:
			value->v.i64 = ((const int64_t *) column->values)[row];
			break;
		case AG_TYPE_FLOAT32:
			value->v.f32 = ((const float *) column->values)[row];
			break;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			value->v.f64 = ((const double *) column->values)[row];
			break;
		case AG_TYPE_TEXT:
			break;
	}
}

/* The terms of a row in a column: places in its pool. */
static uint32_t
row_terms(const AgPipeline *pipeline, const AgTableColumn *column, int input, int64_t row,
		  const AgTerm **terms)
{
	const AgTermRows *rows = pipeline->level_terms[input];
	uint32_t code = ((const uint32_t *) column->values)[row];

	if (rows == NULL || code == AG_NO_CODE)
		return 0;
	*terms = rows->terms + rows->first[code];
	return (uint32_t) (rows->first[code + 1] - rows->first[code]);
}

/* A term's weight in a row. */
static double
term_of_row(const AgPipeline *pipeline, const AgTable *table, const AgFeature *feature, int64_t row)
{
	const AgTerm *terms = NULL;
	const AgTableColumn *column = column_of_input(table, feature->input);
	uint32_t n = row_terms(pipeline, column, feature->input, row, &terms);

	for (uint32_t i = 0; i < n; i++)
		if (terms[i].term == (uint32_t) feature->part)
			return (double) terms[i].weight;
	return 0.0;
}

/* Of all columns with terms. all NULL: only counted. */
static uint64_t
gather_terms(const AgPipeline *pipeline, const AgTable *table, uint64_t *first, AgTerm *all)
{
	uint64_t n = 0;

	for (int64_t row = 0; row < table->n_rows; row++)
	{
		first[row] = n;
		for (int i = 0; i < pipeline->n_inputs; i++)
		{
			int shift = pipeline->inputs[i].first_term - pipeline->n_visible;
			const AgTerm *terms = NULL;
			uint32_t n_terms;

			if (pipeline->level_terms[i] == NULL)
				continue;
			n_terms = row_terms(pipeline, column_of_input(table, i), i, row, &terms);
			for (uint32_t k = 0; k < n_terms && all != NULL; k++)
				all[n + k] = (AgTerm){terms[k].term + (uint32_t) shift, terms[k].weight};
			n += n_terms;
		}
	}
	first[table->n_rows] = n;
	return n;
}

AgStatus
ag_pipeline_terms(const AgContext *ctx, const AgPipeline *pipeline, const AgTable *table,
				  AgTermRows *rows)
{
	uint64_t *first;
	AgTerm *terms;

	memset(rows, 0, sizeof *rows);
	AG_TRY(ag_get(ctx, (size_t) table->n_rows + 1, sizeof *first, &first));
	rows->n_rows = table->n_rows;
	rows->first = first;
	AG_TRY(ag_get(ctx, gather_terms(pipeline, table, first, NULL), sizeof *terms, &terms));
	gather_terms(pipeline, table, first, terms);
	rows->terms = terms;
	return AG_OK;
}

static double
feature_of_cell(const AgPipeline *pipeline, int f, const AgTableColumn *column, int64_t row)
{
	const AgFeature *feature = &pipeline->features[f];
	AgValue value;
	AgDateParts parts;

	if (ag_column_is_null(column, row))
		return (double) NAN;
	if (feature->kind == AG_FEATURE_CATEGORY)
	{
		uint32_t code = ((const uint32_t *) column->values)[row];

		return code < feature->n_levels ? (double) code : AG_UNSEEN;
	}
	if (column->type == AG_TYPE_TEXT)
		return value_of_level(pipeline, f, ((const uint32_t *) column->values)[row]);
	value_of_cell(column, row, &value);
	if (feature->kind == AG_FEATURE_NUMBER)
		return number_of_value(feature, column->type, &value);
	parts = column->type == AG_TYPE_DATE ? ag_parts_of_date(value.v.i32)
										 : ag_parts_of_timestamp(value.v.i64);
	return ag_part_value(&parts, feature->kind);
}

void
ag_pipeline_feature(const AgPipeline *pipeline, const AgTable *table, int f, const uint32_t *rows,
					int64_t n, double *values)
{
	const AgFeature *feature = &pipeline->features[f];
	const AgTableColumn *column = column_of_input(table, feature->input);

	if (feature->kind == AG_FEATURE_SINCE)
	{
		since_of_rows(pipeline, table, feature, rows, n, values);
		return;
	}
	if (feature->kind == AG_FEATURE_TEXT_TERM)
	{
		for (int64_t i = 0; i < n; i++)
			values[i] = term_of_row(pipeline, table, feature, rows[i]);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		values[i] = feature_of_cell(pipeline, f, column, rows[i]);
}
