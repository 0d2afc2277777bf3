/*
 * pipeline_private.h - how a value becomes a feature: the one definition that fitting, binning and
 * prediction share (private to the data room).
 */
#ifndef AG_PIPELINE_PRIVATE_H
#define AG_PIPELINE_PRIVATE_H

#include <math.h>

#include "engine/data/dates.h"
#include "engine/data/pipeline.h"
#include "engine/data/vocabulary.h"

/* Levels beyond this many are kept as if never seen: no family tells them apart, and models stay small. */
#define AG_PIPELINE_MAX_LEVELS 100000

/*
 * value - origin, without overflow and exact wherever the difference has at most 53 bits. The
 * ends of a 64-bit range lie further apart than a signed integer can say.
 */
static inline double
ag_number_of_int64(int64_t value, int64_t origin)
{
	if (value >= origin)
		return (double) ((uint64_t) value - (uint64_t) origin);
	return -(double) ((uint64_t) origin - (uint64_t) value);
}

static inline double
ag_number_of_date(int32_t value, int64_t origin)
{
	if (value == INT32_MIN || value == INT32_MAX)
		return value < 0 ? -(double) INFINITY : (double) INFINITY;
	return ag_number_of_int64(value, origin);
}

static inline double
ag_number_of_timestamp(int64_t value, int64_t origin)
{
	if (value == INT64_MIN || value == INT64_MAX)
		return value < 0 ? -(double) INFINITY : (double) INFINITY;
	return ag_number_of_int64(value, origin);
}

/* A date or timestamp taken apart once for all its features. */
typedef struct AgDateParts
{
	bool is_finite;
	AgCivil civil;
	int64_t time_us;
} AgDateParts;

static inline AgDateParts
ag_parts_of_date(int32_t value)
{
	AgDateParts parts = {value != INT32_MIN && value != INT32_MAX, {0, 0, 0, 0}, 0};

	if (parts.is_finite)
		parts.civil = ag_civil_from_days(value);
	return parts;
}

static inline AgDateParts
ag_parts_of_timestamp(int64_t value)
{
	AgDateParts parts = {value != INT64_MIN && value != INT64_MAX, {0, 0, 0, 0}, 0};

	if (parts.is_finite)
		parts.civil = ag_civil_from_days(ag_days_of_timestamp(value, &parts.time_us));
	return parts;
}

/* Sines of the hours, and of the days of a week: written out, for a C library's may differ in the last bit. */
extern const double ag_hour_sines[24], ag_hour_cosines[24];
extern const double ag_weekday_sines[7], ag_weekday_cosines[7];

/* A part as a feature's value; NaN for infinity. kind is one of the parts. */
static inline double
ag_part_value(const AgDateParts *parts, AgFeatureKind kind)
{
	if (!parts->is_finite)
		return (double) NAN;
	switch (kind)
	{
		case AG_FEATURE_YEAR:
			return (double) parts->civil.year;
		case AG_FEATURE_MONTH:
			return parts->civil.month;
		case AG_FEATURE_DAY:
			return parts->civil.day;
		case AG_FEATURE_DAY_OF_WEEK:
			return parts->civil.day_of_week;
		case AG_FEATURE_HOUR:
			return (double) (parts->time_us / INT64_C(3600000000));
		case AG_FEATURE_MINUTE:
			return (double) (parts->time_us / 60000000 % 60);
		case AG_FEATURE_SECOND:
			return (double) (parts->time_us / 1000000 % 60);
		case AG_FEATURE_HOUR_SIN:
			return ag_hour_sines[parts->time_us / INT64_C(3600000000) % 24];
		case AG_FEATURE_HOUR_COS:
			return ag_hour_cosines[parts->time_us / INT64_C(3600000000) % 24];
		case AG_FEATURE_WEEKDAY_SIN:
			return ag_weekday_sines[parts->civil.day_of_week];
		case AG_FEATURE_WEEKDAY_COS:
			return ag_weekday_cosines[parts->civil.day_of_week];
		default:
			return (double) NAN;
	}
}

/* A date or timestamp in microseconds since 2000-01-01. False: infinite, or a date beyond what a timestamp can be. */
static inline bool
ag_timestamp_of(AgType type, int64_t value, int64_t *timestamp_us)
{
	if (type == AG_TYPE_DATE)
	{
		bool fits = value > -INT64_C(100000000) && value < INT64_C(100000000);

		*timestamp_us = fits ? value * AG_DAY_US : 0;
		return fits;
	}
	*timestamp_us = value;
	return value != INT64_MIN && value != INT64_MAX;
}

/* What is read off the texts of a column. */
typedef struct AgTextPlan
{
	AgTextDate date; /* how they are written; NO_DATE: they are none */
	bool has_stats;  /* some feature needs them, as the next */
	bool has_numbers;
	uint32_t n_units;
	const uint64_t *units;    /* [n_units] hashes, by code */
	AgVocabulary *vocabulary; /* NULL: none */
} AgTextPlan;

/* One text, read once for all its features. */
typedef struct AgTextFacts
{
	bool is_date;
	int64_t timestamp_us;
	AgDateParts parts;
	AgTextStats stats;
	AgTextNumbers numbers;
	float place[AG_VOCABULARY_MAX_DIMS];
} AgTextFacts;

/* text may be longer than AG_TEXT_MAX: it is clipped. */
/* terms: weights of the pool's terms, [n_pool], zeros before; NULL: nobody wants them. */
void ag_text_facts(const AgTextPlan *plan, const char *text, uint32_t n_bytes, AgTextFacts *facts,
				   double *terms);
/* A feature of a text; not of kind CATEGORY or SINCE. */
double ag_text_value(const AgFeature *feature, const AgTextPlan *plan, const AgTextFacts *facts);
/* Only the date of a text. */
bool ag_text_timestamp(const AgTextPlan *plan, const char *text, uint32_t n_bytes,
					   int64_t *timestamp_us);

/* Is the value kept with the 53 bits of a double? All others are floats, at prediction too. */
static inline bool
ag_text_is_wide(AgFeatureKind kind)
{
	return kind < AG_FEATURE_TEXT_CHARS || kind == AG_FEATURE_TEXT_NUMBER;
}

/* What a column of text turned out to be (pipeline_text.c). */
typedef struct AgTextFinding
{
	AgTextDate date;
	bool is_text;      /* words: AutoGluon's rule */
	bool has_category; /* its levels are a feature */
	int n_numbers;     /* that most values have */
	uint32_t n_units;
	uint64_t units[64]; /* the commonest first */
} AgTextFinding;

/*
 * Looks at some rows. is_identifier: nearly all its values are distinct; then there may be nothing to be had of it, and the finding
 * says so by being empty.
 */
AgStatus ag_text_look(const AgContext *ctx, const AgTable *table, const AgTableColumn *column,
					  bool is_identifier, const AgFeatureParams *params, AgTextFinding *finding);
/* Of a column of text: coordinates, and terms for models to choose from. */
typedef struct AgTextBudget
{
	uint32_t n_dims, n_pool;
} AgTextBudget;

/* Adds the features of all terms behind the others: the last step. */
AgStatus ag_text_add_terms(const AgContext *ctx, AgPipeline *pipeline);
/* Where each input's terms begin. */
void ag_pipeline_find_terms(AgPipeline *pipeline);
#define AG_TEXT_MOST_TERMS 1000 /* of all columns together */

/*
 * Learns what the finding promises, within the budget, and adds the features that vary behind those of the pipeline, with
 * their values for every level of the column.
 */
AgStatus ag_text_learn(const AgContext *ctx, AgPipeline *pipeline, int input, const AgTable *table,
					   const AgTableColumn *column, const AgTextFinding *finding,
					   const AgTextBudget *budget, const AgFeatureParams *params);
/* Features of a column of text, at most. */
#define AG_TEXT_MOST_FEATURES 128

/* "chars", "number 2", ...: what sets a feature apart from its column's others. */
void ag_feature_describe(const AgFeature *feature, char *text, size_t size);
/* Names it after its column and what it is; no column has the name. False: no memory. */
bool ag_feature_name(AgPipeline *pipeline, AgFeature *feature);

/* text_plan.c: a plan as bytes, and back: all of it is checked. */
void ag_text_plan_write(const AgTextPlan *plan, AgWriter *body);
AgStatus ag_text_plan_read(const AgContext *ctx, AgReader *reader, AgArena *arena,
						   AgTextPlan **plan);

/* True when features of that kind can be made of that type. */
bool ag_feature_fits(AgFeatureKind kind, AgType type);
/* Likewise, of a text that is read by that plan. */
bool ag_feature_fits_text(const AgFeature *feature, const AgTextPlan *plan);
/* "year", "day of week", ... for names. */
const char *ag_feature_kind_name(AgFeatureKind kind);

/* An empty pipeline; NULL when out of memory. */
AgPipeline *ag_pipeline_new(AgMem *mem);

#endif
