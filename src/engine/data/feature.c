/*
 * feature.c - the kinds of features: which columns have them, and what they are called.
 */
#include <stdio.h>
#include <string.h>

#include "engine/data/pipeline_private.h"

const double ag_hour_sines[24] = {0.0,
								  0.258819045102521,
								  0.5,
								  0.707106781186547,
								  0.866025403784439,
								  0.965925826289068,
								  1.0,
								  0.965925826289068,
								  0.866025403784439,
								  0.707106781186548,
								  0.5,
								  0.258819045102521,
								  0.0,
								  -0.258819045102521,
								  -0.5,
								  -0.707106781186547,
								  -0.866025403784438,
								  -0.965925826289068,
								  -1.0,
								  -0.965925826289068,
								  -0.866025403784439,
								  -0.707106781186548,
								  -0.5,
								  -0.258819045102522};
const double ag_hour_cosines[24] = {1.0,
									0.965925826289068,
									0.866025403784439,
									0.707106781186548,
									0.5,
									0.258819045102521,
									0.0,
									-0.258819045102521,
									-0.5,
									-0.707106781186547,
									-0.866025403784439,
									-0.965925826289068,
									-1.0,
									-0.965925826289068,
									-0.866025403784439,
									-0.707106781186548,
									-0.5,
									-0.258819045102521,
									0.0,
									0.25881904510252,
									0.5,
									0.707106781186547,
									0.866025403784438,
									0.965925826289068};
const double ag_weekday_sines[7] = {0.0,
									0.78183148246803,
									0.974927912181824,
									0.433883739117558,
									-0.433883739117558,
									-0.974927912181824,
									-0.78183148246803};
const double ag_weekday_cosines[7] = {1.0,
									  0.623489801858734,
									  -0.222520933956314,
									  -0.900968867902419,
									  -0.900968867902419,
									  -0.222520933956315,
									  0.623489801858733};

static const char *const words[AG_FEATURE_LAST + 1] = {
	[AG_FEATURE_NUMBER] = "number",
	[AG_FEATURE_CATEGORY] = "category",
	[AG_FEATURE_YEAR] = "year",
	[AG_FEATURE_MONTH] = "month",
	[AG_FEATURE_DAY] = "day",
	[AG_FEATURE_DAY_OF_WEEK] = "day of week",
	[AG_FEATURE_HOUR] = "hour",
	[AG_FEATURE_MINUTE] = "minute",
	[AG_FEATURE_SECOND] = "second",
	[AG_FEATURE_HOUR_SIN] = "sine of hour",
	[AG_FEATURE_HOUR_COS] = "cosine of hour",
	[AG_FEATURE_WEEKDAY_SIN] = "sine of day of week",
	[AG_FEATURE_WEEKDAY_COS] = "cosine of day of week",
	[AG_FEATURE_SINCE] = "since",
	[AG_FEATURE_TEXT_CHARS] = "characters",
	[AG_FEATURE_TEXT_WORDS] = "words",
	[AG_FEATURE_TEXT_UPPER] = "capitals",
	[AG_FEATURE_TEXT_LOWER] = "lower case",
	[AG_FEATURE_TEXT_DIGITS] = "digits",
	[AG_FEATURE_TEXT_SPECIAL] = "special characters",
	[AG_FEATURE_TEXT_SYMBOL] = "symbol",
	[AG_FEATURE_TEXT_NUMBER] = "number in text",
	[AG_FEATURE_TEXT_UNIT] = "unit",
	[AG_FEATURE_TEXT_PLACE] = "place",
	[AG_FEATURE_TEXT_TERM] = "term",
};

const char *
ag_feature_kind_name(AgFeatureKind kind)
{
	return words[kind];
}

static bool
is_date_kind(AgFeatureKind kind)
{
	return (kind >= AG_FEATURE_YEAR && kind <= AG_FEATURE_SINCE);
}

bool
ag_feature_fits(AgFeatureKind kind, AgType type)
{
	switch (kind)
	{
		case AG_FEATURE_NUMBER:
			return type != AG_TYPE_TEXT;
		case AG_FEATURE_CATEGORY:
			return type == AG_TYPE_TEXT;
		case AG_FEATURE_HOUR:
		case AG_FEATURE_MINUTE:
		case AG_FEATURE_SECOND:
		case AG_FEATURE_HOUR_SIN:
		case AG_FEATURE_HOUR_COS:
			return type == AG_TYPE_TIMESTAMP;
		default:
			return is_date_kind(kind) && (type == AG_TYPE_DATE || type == AG_TYPE_TIMESTAMP);
	}
}

bool
ag_feature_fits_text(const AgFeature *feature, const AgTextPlan *plan)
{
	switch (feature->kind)
	{
		case AG_FEATURE_TEXT_CHARS:
		case AG_FEATURE_TEXT_WORDS:
		case AG_FEATURE_TEXT_UPPER:
		case AG_FEATURE_TEXT_LOWER:
		case AG_FEATURE_TEXT_DIGITS:
		case AG_FEATURE_TEXT_SPECIAL:
			return plan->has_stats;
		case AG_FEATURE_TEXT_SYMBOL:
			return plan->has_stats && feature->part < AG_TEXT_N_SYMBOLS;
		case AG_FEATURE_TEXT_NUMBER:
			return plan->has_numbers && feature->part < AG_TEXT_NUMBERS;
		case AG_FEATURE_TEXT_UNIT:
			return plan->has_numbers && feature->n_levels == plan->n_units && plan->n_units > 0;
		case AG_FEATURE_TEXT_PLACE:
			return plan->vocabulary != NULL && (uint32_t) feature->part < plan->vocabulary->n_dims;
		case AG_FEATURE_TEXT_TERM:
			return plan->vocabulary != NULL && (uint32_t) feature->part < plan->vocabulary->n_pool;
		case AG_FEATURE_CATEGORY:
			return true;
		default:
			return plan->date != AG_TEXT_NO_DATE &&
				   (feature->kind == AG_FEATURE_NUMBER || is_date_kind(feature->kind));
	}
}

void
ag_feature_describe(const AgFeature *feature, char *text, size_t size)
{
	if (feature->kind == AG_FEATURE_TEXT_SYMBOL)
		snprintf(text, size, "count of %c", ag_text_symbols[feature->part]);
	else if (feature->kind == AG_FEATURE_TEXT_PLACE || feature->kind == AG_FEATURE_TEXT_TERM ||
			 (feature->kind == AG_FEATURE_TEXT_NUMBER && feature->part > 0))
		snprintf(text, size, "%s %d", words[feature->kind], feature->part + 1);
	else
		snprintf(text, size, "%s", words[feature->kind]);
}

bool
ag_feature_name(AgPipeline *pipeline, AgFeature *feature)
{
	const char *column = pipeline->inputs[feature->input].name;
	const char *other = pipeline->inputs[feature->other].name;
	size_t size = strlen(column) + strlen(other) + 64;
	char *name = ag_arena_alloc(&pipeline->arena, size, 1);
	char what[64];

	if (name == NULL)
		return false;
	ag_feature_describe(feature, what, sizeof what);
	for (int attempt = 1;; attempt++)
	{
		bool is_taken = false;
		int n = snprintf(name, size, "%s (%s%s%s", column, what,
						 feature->kind == AG_FEATURE_SINCE ? " " : "",
						 feature->kind == AG_FEATURE_SINCE ? other : "");

		if (attempt == 1)
			snprintf(name + n, size - (size_t) n, ")");
		else
			snprintf(name + n, size - (size_t) n, " %d)", attempt);
		for (int i = 0; i < pipeline->n_inputs && !is_taken; i++)
			is_taken = strcmp(pipeline->inputs[i].name, name) == 0;
		if (!is_taken)
		{
			feature->name = name;
			return true;
		}
	}
}

const char *
ag_pipeline_text_kind(const AgInput *input)
{
	const AgTextPlan *plan = input->is_used ? input->text : NULL;

	if (plan != NULL && plan->date != AG_TEXT_NO_DATE)
		return "date";
	if (plan != NULL && (plan->has_stats || plan->vocabulary != NULL))
		return "text";
	if (input->levels != NULL)
		return "category";
	return plan != NULL ? "number" : "text";
}

/* Features of the same kind of the same input from f on, if f is the first of them; else 0. */
static int
count_kind(const AgPipeline *pipeline, int f)
{
	const AgFeature *feature = &pipeline->features[f];
	int n = 0;

	for (int g = 0; g < pipeline->n_features; g++)
		if (pipeline->features[g].input == feature->input &&
			pipeline->features[g].kind == feature->kind)
		{
			if (g < f)
				return 0;
			n++;
		}
	return n;
}

size_t
ag_feature_became(const AgPipeline *pipeline, int f, const char *comma, char *text, size_t size)
{
	const AgFeature *feature = &pipeline->features[f];
	char what[64];
	int n;

	switch (feature->kind)
	{
		case AG_FEATURE_CATEGORY:
		case AG_FEATURE_TEXT_UNIT:
			return (size_t) snprintf(text, size, "%s%s of %u levels", comma, words[feature->kind],
									 feature->n_levels);
		case AG_FEATURE_SINCE:
			return (size_t) snprintf(text, size, "%ssince \"%s\"", comma,
									 pipeline->inputs[feature->other].name);
		case AG_FEATURE_TEXT_SYMBOL:
		case AG_FEATURE_TEXT_PLACE:
		case AG_FEATURE_TEXT_TERM:
			n = count_kind(pipeline, f);
			if (n == 0)
				return 0;
			return (size_t) snprintf(text, size, "%s%d %s%s", comma, n,
									 feature->kind == AG_FEATURE_TEXT_PLACE  ? "coordinate"
									 : feature->kind == AG_FEATURE_TEXT_TERM ? "n-gram"
																			 : "symbol count",
									 n == 1 ? "" : "s");
		default:
			ag_feature_describe(feature, what, sizeof what);
			return (size_t) snprintf(text, size, "%s%s", comma, what);
	}
}

void
ag_feature_params_default(AgFeatureParams *params)
{
	params->text_special = true;
	params->text_ngram = true;
	params->max_ngrams = AG_VOCABULARY_MAX_TERMS;
	params->seed = 0;
	params->n_wordless = 0;
	params->wordless = NULL;
}
