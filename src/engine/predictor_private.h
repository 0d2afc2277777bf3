/*
 * predictor_private.h - what a stored predictor is made of. For predictor.c and explain.c only.
 */
#ifndef AG_PREDICTOR_PRIVATE_H
#define AG_PREDICTOR_PRIVATE_H

#include "engine/data/pipeline.h"
#include "engine/engine.h"
#include "engine/model/model.h"

#define AG_PREDICTOR_ROWS 256 /* run at once */

typedef struct AgLeaf
{
	int ordinal;
	AgModel model;
	double weight;
} AgLeaf;

struct AgPredictor
{
	AgMem *mem;
	AgPipeline *pipeline;
	AgInputInfo *inputs;
	int n_outputs;
	int n_leaves;
	AgLeaf *leaves;   /* room for one a member */
	double *features; /* scratch: [n_features] */
	double *outputs;  /* scratch: [n_outputs] */
	void *scratch;    /* what the hungriest model's run takes */
	/* for many rows, from the first time on */
	bool is_ready_for_rows;
	void *row_scratch;
	double *row_outputs;             /* [AG_PREDICTOR_ROWS][n_outputs] */
	struct AgExplaining *explaining; /* scratch of explanations, from the first one on; or NULL */
};

void ag_predictor_explain_free(AgPredictor *predictor);

#endif
