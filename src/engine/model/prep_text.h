/*
 * prep_text.h - what the words of the rows say about the label: a linear model of them, and which of them say most.
 */
#ifndef AG_PREP_TEXT_H
#define AG_PREP_TEXT_H

#include "engine/data/sparse.h"
#include "engine/model/boost.h"

/* A linear model of the terms, fitted on the training rows. */
typedef struct AgTextScore
{
	int split; /* whose training rows: for whoever keeps several */
	uint32_t n_terms;
	int n_outputs;   /* 1; of more than two classes their number */
	double *weights; /* [n_outputs][n_terms + 1], the constant last */
	double *values;  /* [n_outputs][n_rows]: of training rows out of fold */
	AgMem *mem;
} AgTextScore;

/*
 * part[n_rows]: to which of n_parts a training row belongs; its value comes from the others. *score is NULL where there are too many
 * classes. Time and memory are bounded: a few ten thousand rows are learnt from at most.
 */
AgStatus ag_text_score_fit(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms,
						   const AgTrainData *data, const uint8_t *part, int n_parts,
						   AgTextScore **score);
void ag_text_score_free(AgTextScore *score); /* NULL allowed */

/*
 * The terms that tell most of the label of the training rows: by chi squared between the terms' weights and the classes, or
 * by the F of a regression on a term. chosen[most] ascending; *n_chosen of them.
 */
AgStatus ag_text_choose(const AgContext *ctx, const AgTermRows *rows, uint32_t n_terms,
						const AgTrainData *data, uint32_t most, uint32_t *chosen,
						uint32_t *n_chosen);

#endif
