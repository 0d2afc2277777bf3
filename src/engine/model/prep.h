/*
 * prep.h - a model with features of its own: columns that are fitted on its training rows and their labels, ahead of another
 * family's model (AG_IMAGE_PREP).
 *
 * What depends on labels must not see those of the rows that a model is scored on, so it can't be part of the preprocessing
 * that all models share: each model has its own. A training row's value comes from the labels of other training rows (out
 * of fold), every other row's, and prediction's, from all of them.
 *
 * The inner model sees the features, but for a run of them that is for the columns alone, and then the columns.
 */
#ifndef AG_PREP_H
#define AG_PREP_H

#include "engine/model/boost.h"
#include "engine/model/dense.h"
#include "engine/model/model.h"
#include "engine/model/prep_text.h"

typedef enum AgPrepKind
{
	AG_PREP_LEVEL = 1,   /* of feature a's code */
	AG_PREP_PAIR = 2,    /* of the codes of features a and b */
	AG_PREP_CENTRED = 3, /* number b less what a's code says */
	AG_PREP_COPY = 4,    /* feature a, one that the inner model doesn't see itself */
	AG_PREP_SUM = 5      /* other + the n features from a on, each times a value */
} AgPrepKind;

/* A column. The layout is the image's. */
typedef struct AgPrepColumn
{
	uint32_t kind;
	uint32_t a, b;
	uint32_t n;     /* codes, pairs or features that have a value */
	uint64_t first; /* value (and key of a pair) */
	double missing; /* where a feature is missing */
	double other;   /* of a code that has no value; SUM: the constant */
} AgPrepColumn;

typedef struct AgPrep
{
	uint32_t n_in;                   /* features */
	uint32_t first_hidden, n_hidden; /* those that the inner model doesn't see */
	uint32_t n_columns;
	const AgPrepColumn *columns;
	uint64_t n_values;
	const double *values;
	const uint64_t
		*keys; /* [n_values] (a's code << 32 | b's), ascending within a pair's run; else 0 */
	AgModel inner;
	AgArena arena; /* owns this struct, and what doesn't lie in an image */
} AgPrep;

static inline uint32_t
ag_prep_n_inner(const AgPrep *prep)
{
	return prep->n_in - prep->n_hidden + prep->n_columns;
}

/* A row as the inner model sees it, inner[ag_prep_n_inner]. */
void ag_prep_row(const AgPrep *prep, const double *features, double *inner);

/* What is asked for. */
typedef struct AgPrepParams
{
	bool target;   /* categories as means of the label */
	bool crosses;  /* pairs of categories, likewise, and how common they are */
	bool group_by; /* means of numbers within categories, and the distance to them */
	uint64_t seed;
	/* the features that the source has, and those behind them that it hasn't: terms of texts, and others */
	uint32_t n_in, n_hidden;
	const AgTermRows *terms;  /* NULL: none */
	const AgTextScore *score; /* of them; NULL: no column */
	uint32_t most_terms;      /* that are chosen for columns of their own */
} AgPrepParams;

/* To which part of AG_PREP_PARTS each training row belongs; AG_PREP_PARTS: it isn't one. part[n_rows]. */
#define AG_PREP_PARTS 5
void ag_prep_deal(const AgTrainData *data, int64_t n_rows, uint64_t seed, uint8_t *part);

/*
 * Fits on the training rows. values gets the columns of every row of the source, [n_columns][n_rows], owned by the caller.
 * *prep is NULL where there is nothing to make. prep->inner is to be set by whoever writes it, or not at all.
 */
AgStatus ag_prep_fit(const AgContext *ctx, const AgDenseSource *source, const AgTrainData *data,
					 const AgPrepParams *params, AgPrep **prep, double **values);

/* With the inner model's image. */
AgStatus ag_prep_write(const AgContext *ctx, const AgPrep *prep, const void *inner, size_t n_inner,
					   AgWriter *writer);
/* In place; the inner model too. Checks all of it: AG_ERR_CORRUPT. */
AgStatus ag_prep_read(const AgContext *ctx, const void *data, size_t size, AgPrep **prep);
void ag_prep_free(AgPrep *prep); /* NULL allowed; the inner model too */

#endif
