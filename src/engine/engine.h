/*
 * engine.h - all that the glue in src/pg may see of the engine: the options' table, prediction with a
 * stored predictor, metrics. (The wire's headers are beside it, in src/wire.)
 */
#ifndef AG_ENGINE_H
#define AG_ENGINE_H

#include "engine/base/bytes.h"
#include "engine/base/context.h"
#include "engine/data/label.h"
#include "engine/data/schema.h"
#include "engine/model/curve.h"
#include "engine/model/metric.h"
#include "engine/search/options.h"

/* A predictor's image bytes: member 0 is the pipeline, the others by ordinal. data must be 64-byte aligned. */
typedef struct AgImagePart
{
	int member;
	const void *data;
	size_t size;
	const void *
		layout; /* where the context trusts images: what ag_predictor_layout_write wrote, or NULL where that was nothing */
} AgImagePart;

/* A member as the catalogue has it: what the loader needs to put the ensemble together. */
typedef struct AgMemberRef
{
	int ordinal;
	const char *name;
	const char *family; /* "GBM", "ENS_WEIGHTED" */
	/* without bytes of its own it is their weighted mean; with, their outputs are among its features */
	int n_inputs;
	const int *inputs; /* ordinals */
	const double *weights;
	double temperature; /* of its probabilities when it is the one that is opened; 0: as they are */
	/* likewise of its quantiles, in ascending order: what each is moved by; none: they stay. Copied */
	int n_shifts;
	const double *shifts;
} AgMemberRef;

typedef struct AgPredictor AgPredictor;

/* What the glue has to deliver for each input column. */
typedef struct AgInputInfo
{
	const char *name;
	const char *sql_type;
	AgType type;
	bool is_used; /* must be there at prediction */
} AgInputInfo;

/*
 * Loads a predictor for one member (0: AG_ERR_INTERNAL). The parts' bytes must outlive it. Checks all bytes; AG_ERR_CORRUPT.
 * Only the parts that `member` needs have to be given.
 */
AgStatus ag_predictor_open(const AgContext *ctx, const AgImagePart *parts, int n_parts,
						   const AgMemberRef *members, int n_members, int member,
						   AgPredictor **predictor);
void ag_predictor_close(AgPredictor *predictor); /* NULL allowed */

/*
 * For processes that have a predictor's bytes together. One opens the parts, prepares for many rows, and writes for each part what it
 * made of it, to[bytes], 64-byte aligned, which holds no address; 0 bytes: nothing. Others of the same build then open parts and layouts with a
 * context that trusts images: without checks, in place, and with the same predictions.
 */
AgStatus ag_predictor_prepare_rows(const AgContext *ctx, AgPredictor *predictor);
size_t ag_predictor_layout_bytes(const AgPredictor *predictor, int member);
void ag_predictor_layout_write(const AgPredictor *predictor, int member, void *to);

AgProblem ag_predictor_problem(const AgPredictor *predictor);
AgType ag_predictor_label_type(const AgPredictor *predictor);
const char *ag_predictor_label_name(const AgPredictor *predictor);
const char *ag_predictor_time_zone(const AgPredictor *predictor); /* "" when no timestamptz */
bool ag_predictor_raw_text(const AgPredictor *predictor);
const AgInputInfo *ag_predictor_inputs(const AgPredictor *predictor, int *n);
const AgClass *ag_predictor_classes(const AgPredictor *predictor, int *n);
/* Quantile levels, ascending, and the places in them of those that were asked for 1st, 2nd, ...; *n 0 for other problems. */
const double *ag_predictor_quantiles(const AgPredictor *predictor, const int **order, int *n);
/* Doubles that ag_predictor_run writes: 1, or the number of classes or of quantile levels. */
int ag_predictor_outputs(const AgPredictor *predictor);

/*
 * One row: values[n_inputs] (unused inputs aren't looked at) to out[outputs]: the value, the classes' probabilities, or ascending quantiles. No
 * allocation, always finite. Not thread-safe on one AgPredictor (it owns scratch space).
 */
void ag_predictor_run(AgPredictor *predictor, const AgValue *values, double *out);

/*
 * Nanoseconds that a row takes, about, with the making of features: by the sizes of the models and not by a clock, so that the
 * same predictor has the same figure everywhere, and always.
 */
double ag_predictor_row_ns(const AgPredictor *predictor);

/*
 * Many rows. Length of a row's feature vector, and one row encoded: members of one predictor share the vectors.
 */
int ag_predictor_features(const AgPredictor *predictor);
void ag_predictor_encode(const AgPredictor *predictor, const AgValue *values, double *features);
/* The input column that a feature is made of. */
int ag_predictor_feature_input(const AgPredictor *predictor, int feature);
/*
 * features[n_rows][ag_predictor_features] to out[n_rows][outputs]: the same bytes as row by row, and for trees several times
 * faster. The first call takes memory (AG_ERR_MEMORY). Thread rule as above.
 */
AgStatus ag_predictor_run_rows(const AgContext *ctx, AgPredictor *predictor, int64_t n_rows,
							   const double *features, double *out);

/*
 * Explanations compare a row's output with those of rows that the predictor remembers of its training data (at most 64): base is
 * their mean output, and each input's contribution is its Shapley value; together the row's output. Exact for regression by trees
 * and linear models, for forests of two classes, and where at most 8 inputs differ between the row and another; else sampled,
 * always the same.
 *
 * Call it with steps 0, 1, ... n_steps - 1, which the first one sets; contributions[n_inputs] start as zero. The first call of all
 * takes memory. Thread rule as above.
 */
typedef struct AgExplanation
{
	int n_steps;
	double base;
	double *contributions;
} AgExplanation;

AgStatus ag_predictor_explain(const AgContext *ctx, AgPredictor *predictor, const double *features,
							  int output, int step, AgExplanation *explanation);

/*
 * How far rows (as ag_predictor_encode gives them) are from those that the predictor was trained on, input by input. The predictor
 * must outlive it.
 */
typedef struct AgDrift AgDrift;

typedef struct AgDriftResult
{
	/*
	 * Population stability index: the sum over bins of (now - before) ln(now / before), shares below 0.0001 taken as that. Bins: the
	 * training data's deciles, or its 19 commonest categories and the rest; missing values are a bin too. NaN without rows.
	 */
	double psi;
	double missing_before, missing_now; /* shares */
	double
		unseen; /* share, of the values there, of categories that training never saw, or of numbers beyond its range */
} AgDriftResult;

AgStatus ag_drift_create(const AgContext *ctx, const AgPredictor *predictor, AgDrift **drift);
void ag_drift_free(AgDrift *drift); /* NULL allowed */
void ag_drift_add(AgDrift *drift, int64_t n_rows, const double *features);
AgDriftResult ag_drift_result(const AgDrift *drift, int input);

/*
 * A model of trees in another program's format: "json", "sql", "xgboost_json", "lightgbm_text" (UTF-8) or "onnx" (bytes), appended to out. What the
 * format can't hold: AG_ERR_UNSUPPORTED, with a text that says what; no such format: AG_ERR_OPTION.
 */
AgStatus ag_predictor_export(const AgContext *ctx, const AgPredictor *predictor, const char *format,
							 AgWriter *out);

/*
 * The linear models of a predictor in the terms of its columns, as JSON (UTF-8) appended to out: of one model {"link", "of": [classes or levels], "intercept", "terms": [{"feature",
 * "kind": "number" | "normal" | "level" | "other" | "missing", "level", "unit", "from", "coefficient"}], "zero", "left_out"}, of several an array of them with "model". most_terms of all together are told,
 * the greatest; coefficients that are 0 are only counted. members: for names.
 */
AgStatus ag_predictor_coefficients(const AgContext *ctx, const AgPredictor *predictor,
								   const AgMemberRef *members, int n_members, int most_terms,
								   AgWriter *out);

/* A model of trees that another program made. */
typedef struct AgImport
{
	const char *format; /* "xgboost_json", "lightgbm_text" */
	const char *bytes;
	size_t n_bytes;
	const char *label; /* what the column that it predicts is called */
	const char *const *
		classes; /* names of its classes in their order; n_classes 0: they are the numbers 0, 1, ... */
	int n_classes;
} AgImport;

/*
 * Reads it and hands it to the sink as a fit does: a predictor of one model, whose columns are the model's features by name. AG_ERR_VALUE
 * where the bytes are no such model, AG_ERR_UNSUPPORTED where they are and we can't hold it, AG_ERR_OPTION for names that don't fit.
 */
struct AgFitSink;
AgStatus ag_predictor_import(const AgContext *ctx, const AgImport *import,
							 const struct AgFitSink *sink);

#endif
