/*
 * encode.c - fuzzes the way of values to features: columns of random types with random values are written to blocks, read from
 * them, and become a table, a label and a pipeline; or are refused with a reason.
 *
 * What a row is at the fit it is at prediction, bit for bit, also by the stored pipeline; the order in which rows come and how they are cut into
 * blocks makes no difference; values that training never saw are encoded all the same.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/data/label.h"
#include "engine/data/pipeline.h"
#include "engine/data/table.h"
#include "wire/block.h"

#define MAX_COLUMNS 5
#define MAX_ROWS 32
/* Of most inputs: what a value does shows in a small table, and in less time. */
#define FEW_COLUMNS 3
#define FEW_ROWS 5
#define LONG_TEXT (AG_TEXT_MAX + 100)
#define CHECK(condition) ((condition) ? (void) 0 : __builtin_trap())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input
{
	const uint8_t *data;
	size_t size;
} Input;

typedef struct Fuzz
{
	AgMem mem;
	AgError error;
	AgContext ctx;
	Input input;
	AgColumn columns[MAX_COLUMNS];
	AgSchema schema;
	int n_rows;
	bool is_turned;                            /* are the rows sent in another order, too? */
	AgValue values[MAX_ROWS + 1][MAX_COLUMNS]; /* one row more than are trained on */
	AgProblem problem;
	bool raw_text;
	AgFeatureParams params;
} Fuzz;

typedef struct Fitted
{
	AgTable *table;
	AgLabel *label;
	AgPipeline *pipeline;
} Fitted;

static uint8_t
take(Input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

static int64_t
take_bytes(Input *input, int n)
{
	uint64_t bits = 0;

	for (int i = 0; i < n; i++)
		bits = bits << 8 | take(input);
	return (int64_t) bits;
}

/* --- values --- */

static double
take_real(Input *input)
{
	static const double reals[] = {0.0,     -0.0,     1.0,       -1.0, 1e308,  -1e308, 5e-324,
								   1.5e-39, INFINITY, -INFINITY, NAN,  3.4e38, 1e15,   0.1};
	uint8_t which = take(input);
	int64_t bits;
	double real;

	if (which < sizeof reals / sizeof *reals)
		return reals[which];
	if (which < 200)
		return which - 100;
	bits = take_bytes(input, 8);
	memcpy(&real, &bits, sizeof real);
	return real;
}

static int64_t
take_integer(Input *input)
{
	static const int64_t integers[] = {INT64_MIN,
									   INT64_MAX,
									   INT64_MIN + 1,
									   INT64_MAX - 1,
									   INT32_MIN,
									   INT32_MAX,
									   INT64_C(9007199254740993),
									   INT64_C(-9007199254740993),
									   INT64_C(86400000000),
									   INT64_C(700000000000000)};
	uint8_t which = take(input);

	if (which < sizeof integers / sizeof *integers)
		return integers[which];
	return which < 220 ? which - 100 : take_bytes(input, 1 + which % 8);
}

static void
take_text(Input *input, AgValue *value)
{
	static const char *const texts[] = {"",
										"a",
										"Ulm",
										"ulm",
										"2/29/2024 1:05 PM",
										"2000-02-29",
										"1999-12-31T23:59:60.5Z",
										"12.5 km",
										"-1e400",
										"0x7f,8 %",
										"the quick brown fox and the lazy dog",
										"the dog\xff\xc3",
										"\xe2\x82\xac 7",
										"a word, another; \"third\"",
										"NaN"};
	static char longest[LONG_TEXT], clipped[16][AG_TEXT_MAX];
	static int n_clipped;
	uint8_t which = take(input);

	if (which < sizeof texts / sizeof *texts)
	{
		value->v.s.text = texts[which];
		value->v.s.n_bytes = (uint32_t) strlen(texts[which]);
		return;
	}
	if (which == 251 &&
		take(input) == 13) /* beyond what a block can carry; seldom, for it is slow */
	{
		memset(longest, 'a' + take(input) % 4, sizeof longest);
		n_clipped = (n_clipped + 1) % 16;
		value->v.s.text =
			ag_text_clip(longest, sizeof longest, clipped[n_clipped], &value->v.s.n_bytes);
		return;
	}
	which %= 24;
	if (which > input->size)
		which = (uint8_t) input->size;
	value->v.s.text = (const char *) input->data;
	value->v.s.n_bytes = (uint32_t) strnlen(value->v.s.text, which); /* the server's have no NUL */
	input->data += which;
	input->size -= which;
}

static void
take_value(Input *input, AgType type, AgValue *value)
{
	switch (type)
	{
		case AG_TYPE_BOOL:
			value->v.b = take(input) % 2;
			break;
		case AG_TYPE_INT32:
		case AG_TYPE_DATE:
			value->v.i32 = (int32_t) take_integer(input);
			break;
		case AG_TYPE_FLOAT32:
			value->v.f32 = (float) take_real(input);
			break;
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			value->v.f64 = take_real(input);
			break;
		case AG_TYPE_TEXT:
			take_text(input, value);
			break;
		default:
			value->v.i64 = take_integer(input);
			break;
	}
}

/* A value of its own, one of a row before (so that some repeat), or none. What the input doesn't say repeats too. */
static void
fill(Fuzz *fuzz, int row, int column)
{
	AgValue *value = &fuzz->values[row][column];
	uint8_t how = take(&fuzz->input);

	memset(value, 0, sizeof *value);
	if (fuzz->input.size == 0)
		how = (uint8_t) (row * 7 + column * 3 + 100);
	if (how < 20)
		value->is_null = true;
	else if (how < 90 || row == 0 || fuzz->input.size == 0)
		take_value(&fuzz->input, fuzz->columns[column].type, value);
	else
		*value = fuzz->values[how % row][column];
	if (fuzz->input.size == 0 && row > 0)
		*value = fuzz->values[how % row][column];
}

static void
read_input(Fuzz *fuzz, const uint8_t *data, size_t size)
{
	static const char *const names[MAX_COLUMNS] = {"label", "a", "b", "c", "d"};
	Input *input = &fuzz->input;
	/* by all of the input, so that what is made of one that is slow and finds much isn't mostly slow too */
	uint64_t size_class = ag_hash64(data, size, 0);
	uint8_t flags;

	*input = (Input){data, size};
	fuzz->schema.n_columns =
		2 + take(input) % ((size_class % 8 == 0 ? MAX_COLUMNS : FEW_COLUMNS) - 1);
	fuzz->schema.columns = fuzz->columns;
	fuzz->n_rows = 1 + take(input) % (size_class / 8 % 16 == 0 ? MAX_ROWS : FEW_ROWS);
	fuzz->is_turned = size_class / 128 % 4 == 0;
	flags = take(input);
	fuzz->problem = (AgProblem) (flags % 4);
	fuzz->raw_text = (flags & 4) != 0;
	ag_feature_params_default(&fuzz->params);
	fuzz->params.text_special = (flags & 8) == 0;
	fuzz->params.text_ngram = (flags & 16) == 0;
	fuzz->params.max_ngrams = 1 + flags;
	ag_mem_init(&fuzz->mem, flags >= 224 ? (int64_t) take(input) << 10 : INT64_C(256) << 20);
	for (int c = 0; c < fuzz->schema.n_columns; c++)
	{
		fuzz->columns[c].type = (AgType) (1 + take(input) % AG_TYPE_TEXT);
		fuzz->columns[c].role = c == 0 ? AG_ROLE_LABEL : AG_ROLE_FEATURE;
		fuzz->columns[c].name = names[c];
		fuzz->columns[c].sql_type = ag_type_name(fuzz->columns[c].type);
	}
	for (int r = 0; r <= fuzz->n_rows; r++)
		for (int c = 0; c < fuzz->schema.n_columns; c++)
			fill(fuzz, r, c);
	ag_error_init(&fuzz->error);
	fuzz->ctx = (AgContext){.mem = &fuzz->mem, .deadline_ns = INT64_MAX, .error = &fuzz->error};
}

/* --- to a pipeline --- */

static AgStatus
append(Fuzz *fuzz, AgTable *table, AgBlockBuilder *builder)
{
	const void *values[MAX_COLUMNS];
	const uint8_t *nulls[MAX_COLUMNS];
	const char *texts[MAX_COLUMNS];
	AgBlockView view = {0, values, nulls, texts};
	AgWriter payload;
	AgStatus status;

	ag_writer_init(&payload, &fuzz->mem);
	status = ag_block_builder_take(builder, &payload, &fuzz->error);
	if (status == AG_OK)
	{
		/* what the writer writes the reader takes */
		CHECK(ag_block_read(payload.data, payload.size, &fuzz->schema, &view, &fuzz->error) ==
			  AG_OK);
		status = ag_table_append(&fuzz->ctx, table, view.n_rows, values, nulls, texts);
	}
	ag_writer_free(&payload);
	return status;
}

typedef struct Kept
{
	uint64_t types; /* of the columns, 4 bits each behind a 1 */
	AgBlockBuilder *builder;
} Kept;

/* A builder takes megabytes, room for a whole block, however little is sent: so those of some schemas are kept from run to run, in memory of their own. */
static Kept *
builder_for(const AgSchema *schema)
{
	static AgMem mem;
	static Kept kept[64];
	AgError error;
	uint64_t types = 1;
	Kept *place;

	if (mem.limit_bytes == 0)
		ag_mem_init(&mem, INT64_MAX);
	for (int c = 0; c < schema->n_columns; c++)
		types = types << 4 | (uint64_t) schema->columns[c].type;
	place = &kept[ag_hash64(&types, sizeof types, 0) % 64];
	if (place->types == types)
		return place;
	ag_block_builder_free(place->builder);
	ag_error_init(&error);
	CHECK(ag_block_builder_create(&mem, schema, &place->builder, &error) == AG_OK);
	place->types = types;
	return place;
}

/* Rows from the first or from the last on, so many to a block. */
static AgStatus
send_rows(Fuzz *fuzz, bool backwards, int a_block, AgTable *table)
{
	Kept *kept = builder_for(&fuzz->schema);
	AgBlockBuilder *builder = kept->builder;
	AgStatus status = AG_OK;

	for (int r = 0; r < fuzz->n_rows && status == AG_OK; r++)
	{
		int row = backwards ? fuzz->n_rows - 1 - r : r;

		status = ag_block_builder_add(builder, fuzz->values[row], &fuzz->error);
		if (status == AG_OK && (r % a_block == a_block - 1 || r == fuzz->n_rows - 1))
			status = append(fuzz, table, builder);
	}
	if (status == AG_OK)
		return AG_OK;
	ag_block_builder_free(builder); /* what is in it is not of another run */
	*kept = (Kept){0};
	return status;
}

static void
fitted_free(Fitted *fitted)
{
	ag_pipeline_free(fitted->pipeline);
	ag_label_free(fitted->label);
	ag_table_free(fitted->table);
}

static AgStatus
fit(Fuzz *fuzz, bool backwards, int a_block, Fitted *fitted)
{
	int64_t n_left_out;

	memset(fitted, 0, sizeof *fitted);
	AG_TRY(ag_table_create(&fuzz->ctx, &fuzz->schema, &fitted->table));
	AG_TRY(send_rows(fuzz, backwards, a_block, fitted->table));
	AG_TRY(ag_table_finish(&fuzz->ctx, fitted->table, &n_left_out));
	CHECK(fitted->table->n_rows + n_left_out == fuzz->n_rows);
	AG_TRY(ag_label_fit(&fuzz->ctx, fitted->table, 0, fuzz->problem, NULL, &fitted->label));
	return ag_pipeline_fit(&fuzz->ctx, fitted->table, fitted->label, "UTC", fuzz->raw_text,
						   &fuzz->params, &fitted->pipeline);
}

/* --- what must hold of one --- */

static void
check_label(const AgLabel *label, int64_t n_rows)
{
	for (int64_t r = 0; r < n_rows; r++)
		if (label->n_classes > 0)
			CHECK(label->class_of[r] >= 0 && label->class_of[r] < label->n_classes);
		else
			CHECK(isfinite(label->target[r]));
}

static void
check_features(const AgPipeline *pipeline, const double *features)
{
	for (int f = 0; f < pipeline->n_features; f++)
		if (ag_feature_is_category(&pipeline->features[f]) && !isnan(features[f]))
			CHECK(features[f] >= AG_UNSEEN && features[f] < pipeline->features[f].n_levels);
}

/* The values of a row of the table, as a prediction would bring them: inputs are the feature columns. */
static void
table_row(const AgTable *table, int64_t row, AgValue *values)
{
	for (int c = 1; c < table->n_columns; c++)
	{
		const AgTableColumn *column = &table->columns[c];
		AgValue *value = &values[c - 1];
		size_t width = ag_type_width(column->type);

		memset(value, 0, sizeof *value);
		value->is_null = ag_column_is_null(column, row);
		if (value->is_null)
			continue;
		if (column->type == AG_TYPE_TEXT)
		{
			uint32_t code = ((const uint32_t *) column->values)[row];

			CHECK(code < column->dictionary.n_levels);
			value->v.s.text = column->dictionary.texts[code];
			value->v.s.n_bytes = column->dictionary.n_bytes[code];
		}
		else
			memcpy(&value->v, (const uint8_t *) column->values + (size_t) row * width, width);
	}
}

static bool
same(double a, double b)
{
	return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/*
 * Every row of the table, at the fit and at prediction, by the pipeline and by what was stored of it. now, later: a row's features;
 * all: [MAX_ROWS] times as many.
 */
static void
check_rows(const Fitted *fitted, const AgPipeline *stored, double *now, double *later, double *all)
{
	AgValue values[MAX_COLUMNS];
	uint32_t rows[MAX_ROWS];
	int64_t n_rows = fitted->table->n_rows;

	for (int64_t r = 0; r < n_rows; r++)
		rows[r] = (uint32_t) r;
	for (int f = 0; f < stored->n_features; f++)
		ag_pipeline_feature(fitted->pipeline, fitted->table, f, rows, n_rows, all + f * MAX_ROWS);
	for (int64_t r = 0; r < n_rows; r++)
	{
		table_row(fitted->table, r, values);
		ag_pipeline_encode(fitted->pipeline, values, now);
		ag_pipeline_encode(stored, values, later);
		check_features(stored, later);
		for (int f = 0; f < stored->n_features; f++)
			CHECK(same(now[f], later[f]) && same(now[f], all[f * MAX_ROWS + r]));
	}
}

static AgStatus
check_stored(Fuzz *fuzz, const Fitted *fitted, const AgWriter *image)
{
	AgPipeline *stored;
	AgWriter again;
	AgStatus status;
	size_t n = (size_t) fitted->pipeline->n_features;
	double *room = NULL;
	uint8_t *bytes = ag_mem_alloc(&fuzz->mem, image->size, 1); /* aligned, as images must be */

	if (bytes == NULL)
		return ag_mem_error(&fuzz->mem, image->size, &fuzz->error);
	memcpy(bytes, image->data, image->size);
	status = ag_pipeline_read(&fuzz->ctx, bytes, image->size, &stored);
	if (status == AG_OK)
	{
		ag_writer_init(&again, &fuzz->mem);
		status = ag_pipeline_write(&fuzz->ctx, stored, &again);
		if (status == AG_OK)
			CHECK(again.size == image->size && memcmp(again.data, image->data, again.size) == 0);
		ag_writer_free(&again);
		room = ag_mem_alloc(&fuzz->mem, (2 + MAX_ROWS) * n, sizeof *room);
		if (room != NULL)
		{
			check_rows(fitted, stored, room, room + n, room + 2 * n);
			/* a row that training never saw */
			ag_pipeline_encode(stored, fuzz->values[fuzz->n_rows] + 1, room);
			check_features(stored, room);
		}
		ag_mem_free(&fuzz->mem, room);
		ag_pipeline_free(stored);
	}
	ag_mem_free(&fuzz->mem, bytes);
	return status;
}

static AgStatus
check_bins(Fuzz *fuzz, Fitted *fitted)
{
	static const AgBinParams usual = {254, 3, 200000};
	AgBins *bins;

	AG_TRY(ag_pipeline_bin(&fuzz->ctx, fitted->pipeline, fitted->table, &usual, true, &bins));
	for (int f = 0; f < bins->n_features; f++)
		for (int64_t r = 0; r < bins->n_rows; r++)
			CHECK(bins->columns[f * bins->column_stride + r] <= bins->features[f].n_bins);
	ag_bins_free(bins);
	return AG_OK;
}

/* The same rows from the last to the first, in other blocks: the same bytes. */
static AgStatus
check_order(Fuzz *fuzz, const AgWriter *image)
{
	Fitted other;
	AgWriter again;
	AgStatus status = fit(fuzz, true, 5, &other);

	ag_writer_init(&again, &fuzz->mem);
	if (status == AG_OK)
		status = ag_pipeline_write(&fuzz->ctx, other.pipeline, &again);
	if (status == AG_OK)
		CHECK(again.size == image->size && memcmp(again.data, image->data, again.size) == 0);
	ag_writer_free(&again);
	fitted_free(&other);
	return status;
}

static AgStatus
check_all(Fuzz *fuzz, Fitted *fitted)
{
	AgWriter image;
	AgStatus status;

	check_label(fitted->label, fitted->table->n_rows);
	ag_writer_init(&image, &fuzz->mem);
	status = ag_pipeline_write(&fuzz->ctx, fitted->pipeline, &image);
	if (status == AG_OK)
		status = check_stored(fuzz, fitted, &image);
	if (status == AG_OK && fuzz->is_turned)
		status = check_order(fuzz, &image);
	if (status == AG_OK)
		status = check_bins(fuzz, fitted);
	ag_writer_free(&image);
	/* what could be fitted once goes all the way, but for want of memory */
	CHECK(status == AG_OK || status == AG_ERR_MEMORY);
	return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Fuzz fuzz;
	Fitted fitted;
	AgStatus status;

	read_input(&fuzz, data, size);
	status = fit(&fuzz, false, MAX_ROWS, &fitted);
	if (status == AG_OK)
		status = check_all(&fuzz, &fitted);
	fitted_free(&fitted);
	if (status == AG_ERR_MEMORY)
		CHECK(fuzz.mem.limit_bytes < INT64_C(1) << 20);
	else
		CHECK(status == AG_OK || status == AG_ERR_DATA || status == AG_ERR_OPTION);
	CHECK(status == AG_OK || (fuzz.error.status == status && fuzz.error.message[0] != '\0'));
	CHECK(fuzz.mem.used_bytes == 0);
	return 0;
}
