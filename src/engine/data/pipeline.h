/*
 * pipeline.h - from a table's columns to model features, at fit and ever after.
 *
 * A pipeline says for each input column what it became: nothing (dropped, with the
 * reason), one numeric feature, one category, a date's parts, or what can be read off
 * a text. It is fitted once on the table, stored as an image (format.h) and replayed
 * row by row at prediction. Nothing in it depends on labels.
 *
 * A feature's value is one double: a number (NaN = missing), or a category's code as
 * a double (0..n_levels-1; NaN = missing, AG_UNSEEN = a level training never saw).
 *
 * int64 and timestamps become doubles after an exact subtraction of `origin`: the training
 * minimum where some value lies beyond 2^53, so that neighbours there stay apart, else 0.
 */
#ifndef AG_PIPELINE_H
#define AG_PIPELINE_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/data/bins.h"
#include "engine/data/features.h"
#include "engine/data/label.h"
#include "engine/data/profile.h"
#include "engine/data/schema.h"
#include "engine/data/sparse.h"
#include "engine/data/table.h"

#define AG_UNSEEN (-1.0)

/* What a feature is made of its column. */
typedef enum AgFeatureKind
{
	AG_FEATURE_NUMBER =
		1, /* the value itself; date and timestamp: days / microseconds since origin, +/-infinity kept */
	AG_FEATURE_CATEGORY = 2, /* level code */
	AG_FEATURE_YEAR = 3,
	AG_FEATURE_MONTH = 4,       /* 1..12 */
	AG_FEATURE_DAY = 5,         /* 1..31 */
	AG_FEATURE_DAY_OF_WEEK = 6, /* 0 = Sunday, as PostgreSQL's dow */
	AG_FEATURE_HOUR = 7,
	AG_FEATURE_MINUTE = 8,
	AG_FEATURE_SECOND = 9,
	/* place on the circle of a day and of a week, so that its ends meet */
	AG_FEATURE_HOUR_SIN = 10,
	AG_FEATURE_HOUR_COS = 11,
	AG_FEATURE_WEEKDAY_SIN = 12,
	AG_FEATURE_WEEKDAY_COS = 13,
	AG_FEATURE_SINCE = 14, /* seconds since another date or timestamp of the row, `other` */
	/* of a text; a text that is written as a date has the kinds above as well */
	AG_FEATURE_TEXT_CHARS = 15,
	AG_FEATURE_TEXT_WORDS = 16,
	AG_FEATURE_TEXT_UPPER = 17, /* share of its characters, as the next three */
	AG_FEATURE_TEXT_LOWER = 18,
	AG_FEATURE_TEXT_DIGITS = 19,
	AG_FEATURE_TEXT_SPECIAL = 20,
	AG_FEATURE_TEXT_SYMBOL = 21, /* how often ag_text_symbols[part] is in it */
	AG_FEATURE_TEXT_NUMBER = 22, /* the part-th number in it, from 0 on */
	AG_FEATURE_TEXT_UNIT = 23,   /* category: what stands behind the first number */
	AG_FEATURE_TEXT_PLACE = 24,  /* coordinate `part` of its place among the texts */
	AG_FEATURE_TEXT_TERM =
		25 /* weight of the part-th of the terms that models may choose from; 0: not in it, or no text */
} AgFeatureKind;

#define AG_FEATURE_LAST AG_FEATURE_TEXT_TERM

typedef struct AgFeature
{
	AgFeatureKind kind;
	int input;         /* index into inputs */
	char *name;        /* the column's name, or "column (hour)" for parts: for messages; unique */
	int64_t origin;    /* INT64 and TIMESTAMP numbers; 0 for all others */
	uint32_t n_levels; /* category; 0 for all others */
	int other;         /* SINCE: the input that is subtracted; 0 for all others */
	int part;          /* which of several features of its kind; 0 for all others */
} AgFeature;

static inline bool
ag_feature_is_category(const AgFeature *feature)
{
	return feature->kind == AG_FEATURE_CATEGORY || feature->kind == AG_FEATURE_TEXT_UNIT;
}

/* An input column, kept or dropped. */
typedef struct AgInput
{
	char *name;
	char *sql_type;
	AgType type;
	bool is_used;      /* some feature needs it: it must be present at prediction */
	char *dropped_why; /* "constant", "identifier-like", ... NULL when used */
	int64_t n_missing;
	double min, max, mean; /* numbers; NaN otherwise */
	AgDictionary
		*levels; /* category: texts by code, at most the 100,000 commonest; NULL otherwise */
	uint32_t n_distinct;     /* TEXT */
	struct AgTextPlan *text; /* what is read off its texts; NULL: nothing (private) */
	int first_term;          /* feature; n_features where it has no terms */
	bool is_wordless;        /* of a fit: there was no time for its words */
} AgInput;

typedef struct AgPipeline
{
	AgMem *mem;
	int n_inputs;
	AgInput *inputs;
	int n_features;
	int n_visible; /* features behind these are terms of texts: for a model's own columns alone (prep.h) */
	AgFeature *features;
	/* what a predictor needs beside the features */
	AgProblem problem;
	AgType label_type;
	char *label_name;
	int n_classes;
	AgClass *classes;
	int n_quantiles;
	double *quantiles;   /* [n_quantiles] ascending, in (0, 1) */
	int *quantile_order; /* [n_quantiles] place in quantiles of the level that was asked for i-th */
	char *time_zone;     /* zone in which timestamptz columns were read, "" if there is none */
	bool raw_text;       /* texts are raw bytes of an SQL_ASCII database */
	AgProfile profile;
	/*
	 * Of a pipeline that was fitted: features of the table's texts, [n_features][levels of the column], double for numbers and dates,
	 * else float; NULL for features of other columns.
	 */
	void **level_values;
	AgTermRows **
		level_terms; /* [n_inputs] likewise: terms of the table's texts, numbered from first_term; or NULL */
	AgArena arena; /* owns all of it, but for the profile of a pipeline that was read */
} AgPipeline;

/* Numbers that its models answer a row with. */
static inline int
ag_pipeline_outputs(const AgPipeline *pipeline)
{
	return ag_n_outputs(pipeline->n_classes, pipeline->n_quantiles);
}

/*
 * Fits the pipeline on a finished table: its inputs are the columns of role FEATURE, in order (columns that the
 * options ignore never reach the table). Drops (each with a NOTICE at NORMAL level, one line a reason): all-missing
 * and constant columns (one value and no NULL; one value plus NULL is a two-level feature), text with more than
 * 99 % distinct values of its non-NULL rows and over 20 rows that is neither words nor numbers nor dates, exact
 * duplicates of an earlier column; date parts and features of texts that are constant. AG_ERR_DATA "there is no usable
 * feature" when nothing is left. params NULL: the defaults.
 */
AgStatus ag_pipeline_fit(const AgContext *ctx, const AgTable *table, const AgLabel *label,
						 const char *time_zone, bool raw_text, const AgFeatureParams *params,
						 AgPipeline **pipeline);
void ag_pipeline_free(AgPipeline *pipeline); /* NULL allowed */

/* Bins every visible feature of the table (in row order). Columns are given back as they are done when drop is set. */
AgStatus ag_pipeline_bin(const AgContext *ctx, const AgPipeline *pipeline, AgTable *table,
						 const AgBinParams *params, bool drop, AgBins **bins);

/*
 * One row to features[n_features]. values[n_inputs] in the inputs' order and types; unused inputs aren't
 * looked at. No allocation; never fails.
 */
void ag_pipeline_encode(const AgPipeline *pipeline, const AgValue *values, double *features);

/*
 * One feature of some rows of the table that the pipeline was fitted on, whose columns are all still there:
 * values[i] = the feature of rows[i] (n of them), as ag_pipeline_encode gives it.
 */
void ag_pipeline_feature(const AgPipeline *pipeline, const AgTable *table, int f,
						 const uint32_t *rows, int64_t n, double *values);

/* The terms of all rows of that table, numbered from n_visible on. rows' arrays are the caller's to free. */
AgStatus ag_pipeline_terms(const AgContext *ctx, const AgPipeline *pipeline, const AgTable *table,
						   AgTermRows *rows);

/* What an input of type TEXT holds: "text", "date", "number" or "category". */
const char *ag_pipeline_text_kind(const AgInput *input);
/*
 * comma and what a feature is: "year", "category of 12 levels"; for those that come by the dozen "64 places" at the first of them and
 * nothing at the others. As snprintf: bytes wanted.
 */
size_t ag_feature_became(const AgPipeline *pipeline, int f, const char *comma, char *text,
						 size_t size);

/*
 * The pipeline as an image of kind AG_IMAGE_PIPELINE, and back (everything is checked; AG_ERR_CORRUPT). The image must outlive
 * the pipeline and be 64-byte aligned: the profile stays in it.
 */
AgStatus ag_pipeline_write(const AgContext *ctx, const AgPipeline *pipeline, AgWriter *writer);
AgStatus ag_pipeline_read(const AgContext *ctx, const void *image, size_t size,
						  AgPipeline **pipeline);

#endif
