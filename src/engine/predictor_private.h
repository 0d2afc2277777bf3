/*
 * predictor_private.h - what a stored predictor is made of. For predictor*.c and explain.c only.
 *
 * Whatever ensembles, bags and levels it was stored as: a list of models, and sums of their outputs with weights. Sum 0 is the
 * answer. The others are what models of a higher level have among their features: such a model reads a vector that is the
 * row's features and then, one after the other, the values of some sums. Vectors are in the order in which they can be made:
 * the models on vector v take part only in sums that later vectors need.
 */
#ifndef AG_PREDICTOR_PRIVATE_H
#define AG_PREDICTOR_PRIVATE_H

#include "engine/data/pipeline.h"
#include "engine/engine.h"
#include "engine/model/model.h"

#define AG_PREDICTOR_ROWS 256 /* run at once, at most */

typedef struct AgUse
{
	int sum;
	double weight;
} AgUse;

typedef struct AgLeaf
{
	int ordinal;
	AgModel model;
	int vector;
	int n_uses;
	AgUse *uses;
	double weight; /* in sum 0 */
} AgLeaf;

/* Vector 0 is the row's features alone. */
typedef struct AgVector
{
	int n_inputs;
	int *inputs; /* ordinals of members */
	int *sums;   /* [n_inputs] */
	int n_features;
} AgVector;

struct AgPredictor
{
	AgMem *mem;
	AgPipeline *pipeline;
	AgInputInfo *inputs;
	int n_outputs;
	double temperature; /* 0: none */
	double *shifts;     /* [n_outputs] of quantiles; NULL: none */
	int n_leaves;
	AgLeaf *leaves; /* room for one a member */
	int n_vectors;
	AgVector *vectors; /* room for one a member, and the first */
	int n_sums;
	int *sum_of;      /* [n_sums] ordinal of the member that a sum is; [0] is the answer's */
	double *features; /* scratch: [n_features] */
	double *stacked;  /* scratch: [longest vector] */
	double *sums;     /* scratch: [n_sums][n_outputs] */
	double *outputs;  /* scratch: [n_outputs] */
	void *scratch;    /* what the hungriest model's run takes */
	/* for many rows, from the first time on */
	bool is_ready_for_rows;
	int n_rows_at_once;
	void *row_scratch;
	double *row_outputs;             /* [n_rows_at_once][n_outputs] */
	double *row_stacked;             /* [n_rows_at_once][longest vector] */
	double *row_sums;                /* [n_sums][n_rows_at_once][n_outputs]; the first is unused */
	struct AgExplaining *explaining; /* scratch of explanations, from the first one on; or NULL */
};

/* Does no model look at others' predictions, and is nothing done to the answer? Then it is one weighted sum of the leaves. */
static inline bool
ag_predictor_is_flat(const AgPredictor *predictor)
{
	return predictor->n_vectors == 1 && predictor->temperature == 0.0 && predictor->shifts == NULL;
}

void ag_predictor_explain_free(AgPredictor *predictor);

#endif
