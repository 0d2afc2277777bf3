/*
 * pipeline_image.c - a pipeline as bytes and back.
 *
 * Section 5 is bytes; numbers as bytes.h writes them, texts with their length:
 *
 *   u32 problem, u32 label type, text label, text time zone, u8 raw texts
 *   u32 classes, each: text name, f64 number, i64 rows
 *   u32 inputs, each: text name, text SQL type, u8 type, u8 used, text why dropped (empty: used),
 *       i64 missing, f64 min, f64 max, f64 mean, u32 distinct, u32 levels, each: text, i64 count,
 *       u8 has a plan for its texts, and that (text_plan.c)
 *   u32 features, each: u8 kind, u32 input, text name, i64 origin, u32 levels, u32 other, u32 part
 *
 * The others are the profile's.
 *
 * The reader trusts nothing: what it lets through can be replayed on any row without another check.
 */
#include <string.h>

#include "engine/data/dictionary.h"
#include "engine/data/format.h"
#include "engine/data/pipeline_private.h"

#define SECTION_BODY 5
#define MAX_CLASSES 10000
#define MAX_PART AG_TEXT_MOST_TERMS /* beyond any kind's parts */
#define MAX_NAME 1024 /* bytes of any name in an image: parts are longer than their column */

static void
write_inputs(const AgPipeline *pipeline, AgWriter *body)
{
	ag_write_u32(body, (uint32_t) pipeline->n_inputs);
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		const AgInput *input = &pipeline->inputs[i];
		uint32_t n_levels = input->levels != NULL ? input->levels->n_levels : 0;

		ag_write_str(body, input->name);
		ag_write_str(body, input->sql_type);
		ag_write_u8(body, (uint8_t) input->type);
		ag_write_u8(body, input->is_used);
		ag_write_str(body, input->dropped_why);
		ag_write_i64(body, input->n_missing);
		ag_write_f64(body, input->min);
		ag_write_f64(body, input->max);
		ag_write_f64(body, input->mean);
		ag_write_u32(body, input->n_distinct);
		ag_write_u32(body, n_levels);
		for (uint32_t level = 0; level < n_levels; level++)
		{
			ag_write_text(body, input->levels->texts[level], input->levels->n_bytes[level]);
			ag_write_i64(body, input->levels->counts[level]);
		}
		ag_write_u8(body, input->text != NULL && input->is_used);
		if (input->text != NULL && input->is_used)
			ag_text_plan_write(input->text, body);
	}
}

static void
write_quantiles(const AgPipeline *pipeline, AgWriter *body)
{
	ag_write_u32(body, (uint32_t) pipeline->n_quantiles);
	for (int i = 0; i < pipeline->n_quantiles; i++)
	{
		ag_write_f64(body, pipeline->quantiles[i]);
		ag_write_u32(body, (uint32_t) pipeline->quantile_order[i]);
	}
}

AgStatus
ag_pipeline_write(const AgContext *ctx, const AgPipeline *pipeline, AgWriter *writer)
{
	AgStatus status;
	AgWriter body;
	AgImageWriter image;

	ag_writer_init(&body, ctx->mem);
	ag_write_u32(&body, (uint32_t) pipeline->problem);
	ag_write_u32(&body, (uint32_t) pipeline->label_type);
	ag_write_str(&body, pipeline->label_name);
	ag_write_str(&body, pipeline->time_zone);
	ag_write_u8(&body, pipeline->raw_text);
	ag_write_u32(&body, (uint32_t) pipeline->n_classes);
	for (int k = 0; k < pipeline->n_classes; k++)
	{
		ag_write_text(&body, pipeline->classes[k].name, pipeline->classes[k].n_bytes);
		ag_write_f64(&body, pipeline->classes[k].number);
		ag_write_i64(&body, pipeline->classes[k].n_rows);
	}
	if (pipeline->problem == AG_PROBLEM_QUANTILE)
		write_quantiles(pipeline, &body);
	write_inputs(pipeline, &body);
	ag_write_u32(&body, (uint32_t) pipeline->n_features);
	for (int f = 0; f < pipeline->n_features; f++)
	{
		const AgFeature *feature = &pipeline->features[f];

		ag_write_u8(&body, (uint8_t) feature->kind);
		ag_write_u32(&body, (uint32_t) feature->input);
		ag_write_str(&body, feature->name);
		ag_write_i64(&body, feature->origin);
		ag_write_u32(&body, feature->n_levels);
		ag_write_u32(&body, (uint32_t) feature->other);
		ag_write_u32(&body, (uint32_t) feature->part);
	}
	if (body.failed)
		AG_GO(ag_mem_error(ctx->mem, body.size, ctx->error));
	ag_image_begin(&image, writer, AG_IMAGE_PIPELINE);
	ag_image_section(&image, SECTION_BODY, 1, body.data, body.size);
	ag_profile_write(pipeline, &image);
	AG_GO(ag_image_end(ctx, &image));

done:
	ag_writer_free(&body);
	return status;
}

/* A reading: stops at the first fault. */
typedef struct Reading
{
	const AgContext *ctx;
	AgReader reader;
	AgPipeline *pipeline;
} Reading;

static AgStatus
corrupt(const Reading *reading, const char *what)
{
	return ag_error_set(reading->ctx->error, AG_ERR_CORRUPT, "stored preprocessing is damaged: %s",
						what);
}

static AgStatus
no_memory(const Reading *reading)
{
	return ag_mem_error(reading->ctx->mem, reading->reader.size, reading->ctx->error);
}

/* A text of at most `limit` bytes, none of them NUL, copied into the pipeline's arena. */
static AgStatus
read_name(Reading *reading, size_t limit, char **name, uint32_t *n_bytes)
{
	uint32_t n;
	const char *text = ag_read_text(&reading->reader, &n);

	if (reading->reader.failed || n > limit || memchr(text, 0, n) != NULL)
		return corrupt(reading, "a name is no text");
	*name = ag_arena_strndup(&reading->pipeline->arena, text, n);
	if (*name == NULL)
		return no_memory(reading);
	if (n_bytes != NULL)
		*n_bytes = n;
	return AG_OK;
}

static bool
classes_fit(AgProblem problem, uint32_t n_classes)
{
	switch (problem)
	{
		case AG_PROBLEM_BINARY:
			return n_classes == 2;
		case AG_PROBLEM_MULTICLASS:
			return n_classes >= 2 && n_classes <= MAX_CLASSES;
		case AG_PROBLEM_REGRESSION:
		case AG_PROBLEM_QUANTILE:
			return n_classes == 0;
		case AG_PROBLEM_AUTO:
			break;
	}
	return false;
}

/* Levels ascend within (0, 1), and the order that they were asked for in names each once. */
static AgStatus
read_quantiles(Reading *reading)
{
	AgReader *reader = &reading->reader;
	AgPipeline *pipeline = reading->pipeline;
	uint32_t n = ag_read_count(reader, 12);
	bool is_named[AG_MAX_QUANTILES] = {false};
	double before = 0.0;

	if (reader->failed || n < 1 || n > AG_MAX_QUANTILES)
		return corrupt(reading, "its quantile levels make no sense");
	pipeline->quantiles = ag_arena_alloc(&pipeline->arena, n, sizeof(double));
	pipeline->quantile_order = ag_arena_alloc(&pipeline->arena, n, sizeof(int));
	if (pipeline->quantiles == NULL || pipeline->quantile_order == NULL)
		return no_memory(reading);
	pipeline->n_quantiles = (int) n;
	for (uint32_t i = 0; i < n; i++)
	{
		double level = ag_read_f64(reader);
		uint32_t place = ag_read_u32(reader);

		if (reader->failed || !(level > before && level < 1.0) || place >= n || is_named[place])
			return corrupt(reading, "its quantile levels make no sense");
		pipeline->quantiles[i] = before = level;
		pipeline->quantile_order[i] = (int) place;
		is_named[place] = true;
	}
	return AG_OK;
}

static AgStatus
read_label(Reading *reading)
{
	AgReader *reader = &reading->reader;
	AgPipeline *pipeline = reading->pipeline;
	uint32_t problem = ag_read_u32(reader);
	uint32_t type = ag_read_u32(reader);
	uint32_t n_classes;
	uint8_t raw_text;

	AG_TRY(read_name(reading, MAX_NAME, &pipeline->label_name, NULL));
	AG_TRY(read_name(reading, MAX_NAME, &pipeline->time_zone, NULL));
	raw_text = ag_read_u8(reader);
	n_classes = ag_read_count(reader, 20);
	if (reader->failed || problem > AG_PROBLEM_QUANTILE ||
		!classes_fit((AgProblem) problem, n_classes) || type > AG_TYPE_TEXT ||
		!ag_type_valid((int) type) || raw_text > 1)
		return corrupt(reading, "the label's description makes no sense");
	pipeline->problem = (AgProblem) problem;
	pipeline->label_type = (AgType) type;
	pipeline->raw_text = raw_text;
	pipeline->classes = ag_arena_alloc(&pipeline->arena, n_classes, sizeof(AgClass));
	if (pipeline->classes == NULL)
		return no_memory(reading);
	pipeline->n_classes = (int) n_classes;
	for (uint32_t k = 0; k < n_classes; k++)
	{
		AgClass *class = &pipeline->classes[k];
		char *name;

		AG_TRY(read_name(reading, AG_TEXT_MAX, &name, &class->n_bytes));
		class->name = name;
		class->number = ag_read_f64(reader);
		class->n_rows = ag_read_i64(reader);
		if (reader->failed || class->n_rows < 0 ||
			(type == AG_TYPE_TEXT ? !isnan(class->number) : !isfinite(class->number)))
			return corrupt(reading, "a class makes no sense");
	}
	return pipeline->problem == AG_PROBLEM_QUANTILE ? read_quantiles(reading) : AG_OK;
}

static AgStatus
read_levels(Reading *reading, AgInput *input, uint32_t n_levels)
{
	AgReader *reader = &reading->reader;
	AgMem *mem = reading->ctx->mem;

	input->levels = ag_arena_alloc(&reading->pipeline->arena, 1, sizeof(AgDictionary));
	if (input->levels == NULL || !ag_dictionary_init(input->levels, mem))
		return no_memory(reading);
	for (uint32_t level = 0; level < n_levels; level++)
	{
		uint32_t n_bytes, code;
		const char *text = ag_read_text(reader, &n_bytes);
		int64_t count = ag_read_i64(reader);

		if (reader->failed || n_bytes > AG_TEXT_MAX || count < 0)
			return corrupt(reading, "a category makes no sense");
		if (!ag_dictionary_add(input->levels, mem, text, n_bytes, &code))
			return no_memory(reading);
		if (code != level)
			return corrupt(reading, "a category is there twice");
		input->levels->counts[level] = count;
	}
	return AG_OK;
}

static AgStatus
read_input(Reading *reading, AgInput *input)
{
	AgReader *reader = &reading->reader;
	uint8_t type, is_used, has_plan;
	uint32_t n_levels;

	AG_TRY(read_name(reading, MAX_NAME, &input->name, NULL));
	AG_TRY(read_name(reading, MAX_NAME, &input->sql_type, NULL));
	type = ag_read_u8(reader);
	is_used = ag_read_u8(reader);
	AG_TRY(read_name(reading, MAX_NAME, &input->dropped_why, NULL));
	input->n_missing = ag_read_i64(reader);
	input->min = ag_read_f64(reader);
	input->max = ag_read_f64(reader);
	input->mean = ag_read_f64(reader);
	input->n_distinct = ag_read_u32(reader);
	n_levels = ag_read_count(reader, 12);
	if (reader->failed || !ag_type_valid(type) || is_used > 1 || input->n_missing < 0 ||
		(input->dropped_why[0] == '\0') != (is_used == 1) ||
		(n_levels > 0 && (type != AG_TYPE_TEXT || is_used == 0)))
		return corrupt(reading, "a column's description makes no sense");
	input->type = (AgType) type;
	input->is_used = is_used;
	if (is_used)
		input->dropped_why = NULL;
	if (n_levels > 0)
		AG_TRY(read_levels(reading, input, n_levels));
	has_plan = ag_read_u8(reader);
	if (reader->failed || has_plan > 1 || (has_plan == 1 && (type != AG_TYPE_TEXT || !is_used)))
		return corrupt(reading, "a column's description makes no sense");
	if (has_plan == 1)
		AG_TRY(ag_text_plan_read(reading->ctx, reader, &reading->pipeline->arena, &input->text));
	return AG_OK;
}

static bool
has_times(const AgInput *input)
{
	return input->type == AG_TYPE_DATE || input->type == AG_TYPE_TIMESTAMP ||
		   (input->text != NULL && input->text->date != AG_TEXT_NO_DATE);
}

/* Can a feature of that kind be made of its column, and of the other? */
static bool
feature_fits(const AgPipeline *pipeline, const AgFeature *feature)
{
	const AgInput *from = &pipeline->inputs[feature->input];
	uint32_t n_levels = 0;

	if (feature->kind == AG_FEATURE_CATEGORY)
		n_levels = from->levels != NULL ? from->levels->n_levels : 0;
	else if (feature->kind == AG_FEATURE_TEXT_UNIT)
		n_levels = from->text != NULL ? from->text->n_units : 0;
	if (feature->n_levels != n_levels || (ag_feature_is_category(feature) && n_levels == 0))
		return false;
	if (feature->kind == AG_FEATURE_SINCE)
	{
		const AgInput *other = &pipeline->inputs[feature->other];

		return other->is_used && has_times(from) && has_times(other);
	}
	if (feature->other != 0 || !from->is_used)
		return false;
	if (feature->kind == AG_FEATURE_CATEGORY)
		return feature->part == 0;
	if (from->text != NULL)
		return ag_feature_fits_text(feature, from->text);
	return feature->part == 0 && ag_feature_fits(feature->kind, from->type);
}

static AgStatus
read_feature(Reading *reading, AgFeature *feature, bool *is_needed)
{
	AgReader *reader = &reading->reader;
	const AgPipeline *pipeline = reading->pipeline;
	uint8_t kind = ag_read_u8(reader);
	uint32_t input = ag_read_u32(reader);
	uint32_t other, part;
	AgType type;

	AG_TRY(read_name(reading, MAX_NAME, &feature->name, NULL));
	feature->origin = ag_read_i64(reader);
	feature->n_levels = ag_read_u32(reader);
	other = ag_read_u32(reader);
	part = ag_read_u32(reader);
	if (reader->failed || input >= (uint32_t) pipeline->n_inputs ||
		other >= (uint32_t) pipeline->n_inputs)
		return corrupt(reading, "a feature has no column");
	if (kind < AG_FEATURE_NUMBER || kind > AG_FEATURE_LAST || part >= MAX_PART)
		return corrupt(reading, "a feature is of an unknown kind");
	feature->kind = (AgFeatureKind) kind;
	feature->input = (int) input;
	feature->other = (int) other;
	feature->part = (int) part;
	type = pipeline->inputs[input].type;
	if (!feature_fits(pipeline, feature) ||
		(feature->origin != 0 &&
		 (kind != AG_FEATURE_NUMBER || (type != AG_TYPE_INT64 && type != AG_TYPE_TIMESTAMP))))
		return corrupt(reading, "a feature doesn't fit its column");
	is_needed[input] = true;
	return AG_OK;
}

/* Terms stand behind everything else, each column's pool as a whole, of columns that have other features. */
static AgStatus
check_terms(const Reading *reading)
{
	AgPipeline *pipeline = reading->pipeline;
	int f = 0;

	while (f < pipeline->n_features && pipeline->features[f].kind != AG_FEATURE_TEXT_TERM)
		f++;
	pipeline->n_visible = f;
	while (f < pipeline->n_features)
	{
		int input = pipeline->features[f].input;
		bool is_seen = false;

		for (uint32_t i = 0; i < pipeline->inputs[input].text->vocabulary->n_pool; i++, f++)
			if (f == pipeline->n_features || pipeline->features[f].kind != AG_FEATURE_TEXT_TERM ||
				pipeline->features[f].input != input || pipeline->features[f].part != (int) i)
				return corrupt(reading, "a text's terms are out of order");
		for (int v = 0; v < pipeline->n_visible; v++)
			is_seen |= pipeline->features[v].input == input &&
					   pipeline->features[v].kind != AG_FEATURE_CATEGORY &&
					   pipeline->features[v].kind != AG_FEATURE_SINCE;
		if (!is_seen)
			return corrupt(reading, "a text's terms stand alone");
	}
	if (pipeline->n_visible == 0)
		return corrupt(reading, "it has no features but terms");
	ag_pipeline_find_terms(pipeline);
	return AG_OK;
}

static AgStatus
read_body(Reading *reading)
{
	AgReader *reader = &reading->reader;
	AgPipeline *pipeline = reading->pipeline;
	uint32_t n_inputs, n_features;
	bool *is_needed;

	AG_TRY(read_label(reading));
	n_inputs = ag_read_count(reader, 57);
	if (reader->failed || n_inputs > AG_MAX_COLUMNS)
		return corrupt(reading, "its list of columns is too long");
	pipeline->inputs = ag_arena_alloc(&pipeline->arena, n_inputs, sizeof(AgInput));
	is_needed = ag_arena_alloc(&pipeline->arena, n_inputs, sizeof(bool));
	if (pipeline->inputs == NULL || is_needed == NULL)
		return no_memory(reading);
	pipeline->n_inputs = (int) n_inputs;
	for (uint32_t i = 0; i < n_inputs; i++)
		AG_TRY(read_input(reading, &pipeline->inputs[i]));
	n_features = ag_read_count(reader, 29);
	if (reader->failed || n_features == 0 ||
		n_features > AG_MAX_COLUMNS * AG_TEXT_MOST_FEATURES + AG_TEXT_MOST_TERMS)
		return corrupt(reading, "its list of features has a wrong length");
	pipeline->features = ag_arena_alloc(&pipeline->arena, n_features, sizeof(AgFeature));
	if (pipeline->features == NULL)
		return no_memory(reading);
	pipeline->n_features = (int) n_features;
	for (uint32_t f = 0; f < n_features; f++)
		AG_TRY(read_feature(reading, &pipeline->features[f], is_needed));
	if (!ag_reader_done(reader))
		return corrupt(reading, "there are bytes behind its end");
	AG_TRY(check_terms(reading));
	for (uint32_t i = 0; i < n_inputs; i++)
		if (is_needed[i] != pipeline->inputs[i].is_used)
			return corrupt(reading, "a column is used by no feature");
	return AG_OK;
}

AgStatus
ag_pipeline_read(const AgContext *ctx, const void *image, size_t size, AgPipeline **pipeline)
{
	Reading reading = {.ctx = ctx};
	AgImage frame;
	const void *bytes;
	uint64_t n_bytes;
	AgStatus status;

	*pipeline = NULL;
	AG_TRY(ag_image_open(ctx, image, size, AG_IMAGE_PIPELINE, &frame));
	AG_TRY(ag_image_find(ctx, &frame, SECTION_BODY, 1, &bytes, &n_bytes));
	ag_reader_init(&reading.reader, bytes, n_bytes);
	reading.pipeline = ag_pipeline_new(ctx->mem);
	if (reading.pipeline == NULL)
		return no_memory(&reading);
	status = read_body(&reading);
	if (status == AG_OK)
		status = ag_profile_read(ctx, &frame, reading.pipeline);
	if (status != AG_OK)
	{
		ag_pipeline_free(reading.pipeline);
		return status;
	}
	*pipeline = reading.pipeline;
	return AG_OK;
}
