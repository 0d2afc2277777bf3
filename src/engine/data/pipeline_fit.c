/*
 * pipeline_fit.c - what each column becomes, and why some are left out.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/threads.h"
#include "engine/data/dictionary.h"
#include "engine/data/pipeline_private.h"

#define FIRST_PART AG_FEATURE_YEAR
#define LAST_PART AG_FEATURE_WEEKDAY_COS
#define MOST_DIMS 256        /* coordinates of texts' places, all columns together */
#define POOL_LEVELS 200000   /* texts, from which on models have no terms to choose from */
#define POOL_LEVEL_BYTES 800 /* of a text's terms, about */
#define MEMORY_SHARE 8       /* one part in so many is for texts' features */
#define MOST_DATES 6         /* columns whose differences become features */
#define LISTED_NAMES 10
/* Integers up to here are doubles already, and need no other origin. */
#define EXACT_MAX (INT64_C(1) << 53)

/* What one pass over a column finds out. */
typedef struct Profile
{
	int column;
	int64_t n_missing; /* NULL, and NaN of a number */
	bool varies;       /* two different values that aren't missing */
	double min, max, mean;
	int64_t least, greatest; /* whole numbers, dates, timestamps: of the finite ones */
	bool part_varies[LAST_PART + 1];
	AgHash128 content; /* equal for columns with equal values */
} Profile;

/* Why columns are dropped; each is one line of the story. */
typedef enum Reason
{
	KEEP,
	ALL_MISSING,
	CONSTANT,
	IDENTIFIER,
	DUPLICATE,
	N_REASONS
} Reason;

typedef struct Fitting
{
	const AgContext *ctx;
	const AgTable *table;
	AgPipeline *pipeline;
	const AgFeatureParams *params;
	Profile *profiles;       /* [n_inputs], as the next two */
	AgTextFinding *findings; /* of columns of text */
	Reason *reasons;
	AgTextBudget budget;
} Fitting;

/* A value's number for statistics and content: whole numbers as themselves. False: missing. */
static bool
value_at(const AgTableColumn *column, int64_t row, double *real, int64_t *whole, bool *is_finite)
{
	*is_finite = true;
	if (ag_column_is_null(column, row))
		return false;
	switch (column->type)
	{
		case AG_TYPE_BOOL:
			*whole = ((const uint8_t *) column->values)[row];
			break;
		case AG_TYPE_INT32:
			*whole = ((const int32_t *) column->values)[row];
			break;
		case AG_TYPE_DATE:
			*whole = ((const int32_t *) column->values)[row];
			*is_finite = *whole != INT32_MIN && *whole != INT32_MAX;
			break;
		case AG_TYPE_TIMESTAMP:
			*whole = ((const int64_t *) column->values)[row];
			*is_finite = *whole != INT64_MIN && *whole != INT64_MAX;
			break;
		case AG_TYPE_INT64:
		case AG_TYPE_TIME:
			*whole = ((const int64_t *) column->values)[row];
			break;
		case AG_TYPE_TEXT:
			*whole = ((const uint32_t *) column->values)[row];
			break;
		case AG_TYPE_FLOAT32:
		case AG_TYPE_FLOAT64:
		case AG_TYPE_INTERVAL:
			*real = column->type == AG_TYPE_FLOAT32 ? (double) ((const float *) column->values)[row]
													: ((const double *) column->values)[row];
			*is_finite = isfinite(*real);
			memcpy(whole, real, sizeof *whole);
			return *real == *real;
	}
	*real = (double) *whole;
	return true;
}

static bool
is_date(AgType type)
{
	return type == AG_TYPE_DATE || type == AG_TYPE_TIMESTAMP;
}

/* Which parts of the dates differ between rows. */
static void
profile_parts(const AgTableColumn *column, int64_t n_rows, Profile *profile)
{
	double first[LAST_PART + 1];
	bool has_first = false;

	for (int64_t row = 0; row < n_rows; row++)
	{
		AgDateParts parts;

		if (ag_column_is_null(column, row))
			continue;
		parts = column->type == AG_TYPE_DATE
					? ag_parts_of_date(((const int32_t *) column->values)[row])
					: ag_parts_of_timestamp(((const int64_t *) column->values)[row]);
		if (!parts.is_finite)
			continue;
		for (int kind = FIRST_PART; kind <= LAST_PART; kind++)
		{
			double value = ag_part_value(&parts, (AgFeatureKind) kind);

			if (!has_first)
				first[kind] = value;
			else if (value != first[kind])
				profile->part_varies[kind] = true;
		}
		has_first = true;
	}
}

static void
profile_column(const AgTableColumn *column, int64_t n_rows, Profile *profile)
{
	AgHash128 content = {(uint64_t) column->type, 0};
	double sum = 0.0;
	double real = 0.0;
	int64_t whole = 0, first = 0;
	int64_t n_values = 0, n_finite = 0;
	bool is_finite;

	profile->min = (double) INFINITY;
	profile->max = -(double) INFINITY;
	profile->least = INT64_MAX;
	profile->greatest = INT64_MIN;
	for (int64_t row = 0; row < n_rows; row++)
	{
		if (!value_at(column, row, &real, &whole, &is_finite))
		{
			content.hi = ~content.hi;
			content = ag_hash128_fold(content, 0);
			continue;
		}
		content = ag_hash128_fold(content, (uint64_t) whole);
		if (n_values++ == 0)
			first = whole;
		profile->varies |= whole != first;
		profile->min = real < profile->min ? real : profile->min;
		profile->max = real > profile->max ? real : profile->max;
		if (is_finite)
		{
			n_finite++;
			/* Divided before it is added, so that huge values don't overflow. */
			sum += real / (double) n_rows;
			profile->least = whole < profile->least ? whole : profile->least;
			profile->greatest = whole > profile->greatest ? whole : profile->greatest;
		}
	}
	profile->n_missing = n_rows - n_values;
	profile->mean = n_finite > 0 ? sum * ((double) n_rows / (double) n_finite) : (double) NAN;
	profile->content = content;
	if (n_values == 0 || column->type == AG_TYPE_TEXT || is_date(column->type))
		profile->min = profile->max = profile->mean = (double) NAN;
	if (is_date(column->type))
		profile_parts(column, n_rows, profile);
	if (column->type == AG_TYPE_TEXT)
	{
		const AgDictionary *dictionary = &column->dictionary;

		for (uint32_t level = 0; level < dictionary->n_levels; level++)
			profile->content =
				ag_hash128_fold(profile->content,
								ag_hash64(dictionary->texts[level], dictionary->n_bytes[level], 1));
	}
}

static void
profile_columns(void *arg, int64_t begin, int64_t end, int thread)
{
	const Fitting *profiling = arg;

	(void) thread;
	for (int64_t i = begin; i < end; i++)
	{
		Profile *profile = &profiling->profiles[i];

		if (!ag_cancelled(profiling->ctx))
			profile_column(&profiling->table->columns[profile->column], profiling->table->n_rows,
						   profile);
	}
}

/* Is every value of a column of text another one, or nearly so? */
static bool
is_identifier_like(const AgTable *table, const Profile *profile)
{
	const AgTableColumn *column = &table->columns[profile->column];
	int64_t n_values = table->n_rows - profile->n_missing;

	return column->type == AG_TYPE_TEXT && n_values > 20 &&
		   (double) column->dictionary.n_levels > 0.99 * (double) n_values;
}

static bool
is_readable(const AgTextFinding *finding)
{
	return finding->is_text || finding->n_numbers > 0 || finding->date != AG_TEXT_NO_DATE;
}

static Reason
judge(const AgTable *table, const Profile *profiles, const AgTextFinding *findings, int i,
	  int *twin)
{
	const Profile *profile = &profiles[i];

	if (table->n_rows == profile->n_missing)
		return ALL_MISSING;
	if (!profile->varies && profile->n_missing == 0)
		return CONSTANT;
	if (is_identifier_like(table, profile) && !is_readable(&findings[i]))
		return IDENTIFIER;
	for (int j = 0; j < i; j++)
		if (profiles[j].content.lo == profile->content.lo &&
			profiles[j].content.hi == profile->content.hi)
		{
			*twin = j;
			return DUPLICATE;
		}
	return KEEP;
}

/* Where snprintf had no room for all of a text, takes away what is left of the last character. */
static void
cut_at_character(char *text, size_t wanted, size_t size)
{
	if (wanted >= size)
		text[ag_utf8_clip(text, size - 1, size - 2)] = '\0';
}

/* Writes `"a", "b" and 3 more` of the inputs that were dropped for a reason; returns how many those are. */
static int
list_names(const AgPipeline *pipeline, const Reason *reasons, Reason reason, char *text,
		   size_t size)
{
	int n = 0;
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		if (reasons[i] != reason)
			continue;
		if (n < LISTED_NAMES && used < size)
			used += (size_t) snprintf(text + used, size - used, "%s\"%s\"", n > 0 ? ", " : "",
									  pipeline->inputs[i].name);
		n++;
	}
	if (n > LISTED_NAMES && used < size)
		used += (size_t) snprintf(text + used, size - used, " and %d more", n - LISTED_NAMES);
	cut_at_character(text, used, size);
	return n;
}

static void
log_drops(const AgContext *ctx, const AgPipeline *pipeline, const Reason *reasons)
{
	static const char *const what[N_REASONS] = {"", "without a value", "with one value only",
												"of identifier-like text",
												"repeating an earlier column"};
	char names[3072];

	for (int reason = ALL_MISSING; reason < N_REASONS; reason++)
	{
		int n = list_names(pipeline, reasons, (Reason) reason, names, sizeof names);

		if (n > 0)
			ag_log(ctx, AG_LOG_NORMAL, "left out %d column%s %s: %s", n, n == 1 ? "" : "s",
				   what[reason], names);
	}
}

/* One line for what is read off texts, and a detailed one for each such column. */
static void
log_texts(const AgContext *ctx, const AgPipeline *pipeline)
{
	int n_texts = 0, n_dates = 0, n_numbers = 0;

	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		const AgTextPlan *plan = pipeline->inputs[i].text;

		if (plan == NULL || !pipeline->inputs[i].is_used)
			continue;
		n_dates += plan->date != AG_TEXT_NO_DATE;
		n_texts += plan->has_stats || plan->vocabulary != NULL;
		n_numbers += plan->has_numbers;
		if (plan->vocabulary != NULL)
			ag_log(ctx, AG_LOG_RESOURCES, "text of \"%s\": %u n-grams known, %u coordinates",
				   pipeline->inputs[i].name, plan->vocabulary->n_terms, plan->vocabulary->n_dims);
		else
			ag_log(ctx, AG_LOG_RESOURCES, "text of \"%s\": %s", pipeline->inputs[i].name,
				   plan->date != AG_TEXT_NO_DATE ? "dates"
				   : plan->has_numbers           ? "numbers"
												 : "statistics");
	}
	if (n_texts + n_dates + n_numbers > 0)
		ag_log(ctx, AG_LOG_NORMAL,
			   "Columns of text: words are read in %d, numbers in %d, dates in %d", n_texts,
			   n_numbers, n_dates);
}

static char *
keep(AgPipeline *pipeline, const char *text)
{
	return ag_arena_strndup(&pipeline->arena, text, strlen(text));
}

/* False: no memory. */
static bool
add_feature(AgPipeline *pipeline, int i, AgFeatureKind kind, const Profile *profile)
{
	AgFeature *feature = &pipeline->features[pipeline->n_features];
	AgInput *input = &pipeline->inputs[i];

	feature->kind = kind;
	feature->input = i;
	if (kind == AG_FEATURE_NUMBER &&
		(input->type == AG_TYPE_INT64 || input->type == AG_TYPE_TIMESTAMP) &&
		(profile->least < -EXACT_MAX || profile->greatest > EXACT_MAX) &&
		profile->least <= profile->greatest)
		feature->origin = profile->least;
	if (kind == AG_FEATURE_CATEGORY)
		feature->n_levels = input->levels->n_levels;
	pipeline->n_features++;
	feature->name = input->name;
	return kind <= AG_FEATURE_CATEGORY || ag_feature_name(pipeline, feature);
}

static bool
add_category(AgPipeline *pipeline, int i, const AgTableColumn *column, const Profile *profile)
{
	AgInput *input = &pipeline->inputs[i];

	input->levels = ag_arena_alloc(&pipeline->arena, 1, sizeof(AgDictionary));
	return input->levels != NULL &&
		   ag_dictionary_copy(&column->dictionary, AG_PIPELINE_MAX_LEVELS, input->levels,
							  pipeline->mem) &&
		   add_feature(pipeline, i, AG_FEATURE_CATEGORY, profile);
}

static bool
add_numbers(AgPipeline *pipeline, int i, const AgTableColumn *column, const Profile *profile)
{
	if (!add_feature(pipeline, i, AG_FEATURE_NUMBER, profile))
		return false;
	if (is_date(column->type))
		for (int kind = FIRST_PART; kind <= LAST_PART; kind++)
			if (profile->part_varies[kind] && ag_feature_fits((AgFeatureKind) kind, column->type) &&
				!add_feature(pipeline, i, (AgFeatureKind) kind, profile))
				return false;
	return true;
}

/* Of a column that is kept. A text of which nothing varies falls back to a category, or to none. */
static AgStatus
add_features(const Fitting *fitting, int i)
{
	AgPipeline *pipeline = fitting->pipeline;
	const Profile *profile = &fitting->profiles[i];
	const AgTableColumn *column = &fitting->table->columns[profile->column];
	const AgTextFinding *finding = &fitting->findings[i];
	int n_before = pipeline->n_features;
	bool ok = true;

	if (column->type != AG_TYPE_TEXT)
		ok = add_numbers(pipeline, i, column, profile);
	else
	{
		if (finding->has_category)
			ok = add_category(pipeline, i, column, profile);
		if (ok && is_readable(finding))
			AG_TRY(ag_text_learn(fitting->ctx, pipeline, i, fitting->table, column, finding,
								 &fitting->budget, fitting->params));
		if (ok && pipeline->n_features == n_before && !is_identifier_like(fitting->table, profile))
			ok = add_category(pipeline, i, column, profile);
	}
	pipeline->inputs[i].is_used = pipeline->n_features > n_before;
	return ok ? AG_OK : ag_mem_error(fitting->ctx->mem, (size_t) 1 << 20, fitting->ctx->error);
}

static bool
keep_quantiles(AgPipeline *pipeline, const AgLabel *label)
{
	size_t n = (size_t) label->n_quantiles;

	pipeline->quantiles = ag_arena_alloc(&pipeline->arena, n, sizeof(double));
	pipeline->quantile_order = ag_arena_alloc(&pipeline->arena, n, sizeof(int));
	if (pipeline->quantiles == NULL || pipeline->quantile_order == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
	{
		pipeline->quantiles[i] = label->quantiles[i];
		pipeline->quantile_order[i] = label->quantile_order[i];
	}
	pipeline->n_quantiles = label->n_quantiles;
	return true;
}

/* Names, statistics and the label's side. False: no memory. */
static bool
fill_pipeline(AgPipeline *pipeline, const AgTable *table, const AgLabel *label,
			  const char *time_zone, const Profile *profiles)
{
	bool ok;

	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		const AgTableColumn *column = &table->columns[profiles[i].column];
		AgInput *input = &pipeline->inputs[i];

		input->name = keep(pipeline, column->name);
		input->sql_type = keep(pipeline, column->sql_type);
		if (input->name == NULL || input->sql_type == NULL)
			return false;
		input->type = column->type;
		input->n_missing = profiles[i].n_missing;
		input->min = profiles[i].min;
		input->max = profiles[i].max;
		input->mean = profiles[i].mean;
		if (column->type == AG_TYPE_TEXT)
			input->n_distinct = column->dictionary.n_levels;
	}
	pipeline->problem = label->problem;
	pipeline->label_type = label->type;
	pipeline->label_name = keep(pipeline, "");
	for (int c = 0; c < table->n_columns; c++)
		if (table->columns[c].role == AG_ROLE_LABEL)
			pipeline->label_name = keep(pipeline, table->columns[c].name);
	pipeline->time_zone = keep(pipeline, time_zone != NULL ? time_zone : "");
	pipeline->classes =
		ag_arena_alloc(&pipeline->arena, (size_t) label->n_classes, sizeof(AgClass));
	ok = pipeline->label_name != NULL && pipeline->time_zone != NULL && pipeline->classes != NULL;
	for (int k = 0; ok && k < label->n_classes; k++)
	{
		pipeline->classes[k] = label->classes[k];
		pipeline->classes[k].name =
			ag_arena_strndup(&pipeline->arena, label->classes[k].name, label->classes[k].n_bytes);
		ok = pipeline->classes[k].name != NULL;
	}
	pipeline->n_classes = label->n_classes;
	return ok && keep_quantiles(pipeline, label);
}

static bool
set_reason(AgPipeline *pipeline, int i, Reason reason, int twin)
{
	AgInput *input = &pipeline->inputs[i];
	char text[AG_NAME_MAX + 32];

	switch (reason)
	{
		case ALL_MISSING:
			input->dropped_why = keep(pipeline, "no value");
			break;
		case CONSTANT:
			input->dropped_why = keep(pipeline, "constant");
			break;
		case IDENTIFIER:
			input->dropped_why = keep(pipeline, "identifier-like");
			break;
		default:
			snprintf(text, sizeof text, "duplicate of \"%s\"", pipeline->inputs[twin].name);
			input->dropped_why = keep(pipeline, text);
			break;
	}
	return input->dropped_why != NULL;
}

/* Fills a pipeline whose inputs have room. */
static AgStatus
decide(Fitting *fitting)
{
	AgPipeline *pipeline = fitting->pipeline;
	Reason *reasons = fitting->reasons;

	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		int twin = -1;

		reasons[i] = judge(fitting->table, fitting->profiles, fitting->findings, i, &twin);
		/* A repetition of a column that was itself dropped shares that one's reason. */
		if (reasons[i] == DUPLICATE && reasons[twin] != KEEP && reasons[twin] != DUPLICATE)
			reasons[i] = reasons[twin];
		if (reasons[i] == KEEP)
			AG_TRY(add_features(fitting, i));
		if (reasons[i] == KEEP && !pipeline->inputs[i].is_used)
			reasons[i] = IDENTIFIER;
		if (reasons[i] != KEEP && !set_reason(pipeline, i, reasons[i], twin))
			return ag_mem_error(fitting->ctx->mem, AG_NAME_MAX, fitting->ctx->error);
	}
	return AG_OK;
}

/* Coordinates of a text's place: fewer where many columns are text, or so many texts that memory is short. */
static AgTextBudget
budget_for(const Fitting *fitting)
{
	AgTextBudget budget = {0, 0};
	int64_t n_texts = 0, n_levels = 0, dims = AG_VOCABULARY_MAX_DIMS;
	int64_t limit = fitting->ctx->mem->limit_bytes;

	for (int i = 0; i < fitting->pipeline->n_inputs; i++)
		if (fitting->findings[i].is_text)
		{
			n_texts++;
			n_levels += fitting->table->columns[fitting->profiles[i].column].dictionary.n_levels;
		}
	if (n_texts == 0)
		return budget;
	budget.n_pool = (uint32_t) (AG_TEXT_MOST_TERMS / n_texts);
	if (n_levels > POOL_LEVELS ||
		(limit < INT64_MAX && n_levels > limit / MEMORY_SHARE / POOL_LEVEL_BYTES))
		budget.n_pool = 0;
	if (n_texts * dims > MOST_DIMS)
		dims = n_texts < MOST_DIMS ? MOST_DIMS / n_texts : 1;
	if (limit < INT64_MAX && n_levels > 0 && dims > limit / MEMORY_SHARE / 4 / n_levels)
		dims = limit / MEMORY_SHARE / 4 / n_levels;
	budget.n_dims = (uint32_t) dims;
	return budget;
}

/* What there is in columns of text. */
static AgStatus
look_at_texts(Fitting *fitting)
{
	for (int i = 0; i < fitting->pipeline->n_inputs; i++)
	{
		const Profile *profile = &fitting->profiles[i];
		const AgTableColumn *column = &fitting->table->columns[profile->column];

		if (column->type == AG_TYPE_TEXT && profile->varies)
			AG_TRY(ag_text_look(fitting->ctx, fitting->table, column,
								is_identifier_like(fitting->table, profile), fitting->params,
								&fitting->findings[i]));
		else if (column->type == AG_TYPE_TEXT)
			fitting->findings[i].has_category = true;
	}
	fitting->budget = budget_for(fitting);
	return AG_OK;
}

/* The time between two dates of a row, for each pair of the first few columns that hold some. */
static AgStatus
add_differences(Fitting *fitting)
{
	AgPipeline *pipeline = fitting->pipeline;
	int dates[MOST_DATES], n = 0;

	for (int i = 0; i < pipeline->n_inputs && n < MOST_DATES; i++)
	{
		const AgInput *input = &pipeline->inputs[i];

		if (input->is_used &&
			(is_date(input->type) || (input->text != NULL && input->text->date != AG_TEXT_NO_DATE)))
			dates[n++] = i;
	}
	for (int a = 1; a < n; a++)
		for (int b = 0; b < a; b++)
		{
			AgFeature *feature = &pipeline->features[pipeline->n_features];

			memset(feature, 0, sizeof *feature);
			feature->kind = AG_FEATURE_SINCE;
			feature->input = dates[a];
			feature->other = dates[b];
			if (!ag_feature_name(pipeline, feature))
				return ag_mem_error(fitting->ctx->mem, AG_NAME_MAX, fitting->ctx->error);
			pipeline->n_features++;
		}
	return AG_OK;
}

/* Room for every feature that there might be. */
static AgStatus
make_room(Fitting *fitting)
{
	AgPipeline *p = fitting->pipeline;
	size_t n = MOST_DATES * MOST_DATES + AG_TEXT_MOST_TERMS;

	for (int i = 0; i < p->n_inputs; i++)
	{
		AgType type = fitting->table->columns[fitting->profiles[i].column].type;

		n += type == AG_TYPE_TEXT ? AG_TEXT_MOST_FEATURES : is_date(type) ? LAST_PART + 1 : 1;
	}
	p->features = ag_arena_alloc(&p->arena, n, sizeof(AgFeature));
	p->level_values = ag_arena_alloc(&p->arena, n, sizeof(void *));
	p->level_terms = ag_arena_alloc(&p->arena, (size_t) p->n_inputs, sizeof *p->level_terms);
	if (p->features == NULL || p->level_values == NULL || p->level_terms == NULL)
		return ag_mem_error(fitting->ctx->mem, n * sizeof(AgFeature), fitting->ctx->error);
	return AG_OK;
}

static AgStatus
no_usable_feature(const AgContext *ctx, const AgPipeline *pipeline)
{
	char names[960];
	size_t used = 0;

	ag_error_set(ctx->error, AG_ERR_DATA, "there is no usable feature");
	if (pipeline->n_inputs == 0)
	{
		ag_error_detail(ctx->error,
						"The data has no column beside the label that a feature can be made of.");
		return AG_ERR_DATA;
	}
	for (int i = 0; i < pipeline->n_inputs && i < LISTED_NAMES && used < sizeof names; i++)
		used +=
			(size_t) snprintf(names + used, sizeof names - used, "%s\"%s\" (%s)", i > 0 ? ", " : "",
							  pipeline->inputs[i].name, pipeline->inputs[i].dropped_why);
	if (pipeline->n_inputs > LISTED_NAMES && used < sizeof names)
		used += (size_t) snprintf(names + used, sizeof names - used, " and %d more",
								  pipeline->n_inputs - LISTED_NAMES);
	cut_at_character(names, used, sizeof names);
	ag_error_detail(ctx->error, "Columns left out: %s.", names);
	return AG_ERR_DATA;
}

AgStatus
ag_pipeline_fit(const AgContext *ctx, const AgTable *table, const AgLabel *label,
				const char *time_zone, bool raw_text, const AgFeatureParams *params,
				AgPipeline **pipeline)
{
	AgStatus status;
	AgPipeline *p = ag_pipeline_new(ctx->mem);
	AgFeatureParams normal;
	Fitting fitting = {.ctx = ctx, .table = table, .pipeline = p};
	int n = 0;

	*pipeline = NULL;
	ag_feature_params_default(&normal);
	fitting.params = params != NULL ? params : &normal;
	if (p == NULL)
		return ag_mem_error(ctx->mem, sizeof(AgPipeline), ctx->error);
	AG_GO(ag_get_zeroed(ctx, (size_t) table->n_columns, sizeof(Profile), &fitting.profiles));
	AG_GO(ag_get_zeroed(ctx, (size_t) table->n_columns, sizeof(Reason), &fitting.reasons));
	AG_GO(ag_get_zeroed(ctx, (size_t) table->n_columns, sizeof(AgTextFinding), &fitting.findings));
	for (int c = 0; c < table->n_columns; c++)
		if (ag_role_is_feature(table->columns[c].role))
			fitting.profiles[n++].column = c;
	p->inputs = ag_arena_alloc(&p->arena, (size_t) n, sizeof(AgInput));
	if (p->inputs == NULL)
		AG_GO(ag_mem_error(ctx->mem, (size_t) n * sizeof(AgInput), ctx->error));
	p->n_inputs = n;
	p->raw_text = raw_text;
	AG_GO(make_room(&fitting));
	ag_pool_run(ctx->pool, n, 1, profile_columns, &fitting);
	AG_GO(ag_check_cancel(ctx));
	if (!fill_pipeline(p, table, label, time_zone, fitting.profiles))
		AG_GO(ag_mem_error(ctx->mem, (size_t) 1 << 20, ctx->error));
	AG_GO(look_at_texts(&fitting));
	AG_GO(decide(&fitting));
	AG_GO(add_differences(&fitting));
	AG_GO(ag_text_add_terms(ctx, p));
	if (p->n_features == 0)
		AG_GO(no_usable_feature(ctx, p));
	AG_GO(ag_profile_fit(ctx, p, table));
	log_drops(ctx, p, fitting.reasons);
	log_texts(ctx, p);
	*pipeline = p;

done:
	ag_mem_free(ctx->mem, fitting.profiles);
	ag_mem_free(ctx->mem, fitting.reasons);
	ag_mem_free(ctx->mem, fitting.findings);
	if (status != AG_OK)
		ag_pipeline_free(p);
	return status;
}
