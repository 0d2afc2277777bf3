/*
 * families_private.h - one training, as the parts of families*.c hand it to each other.
 */
#ifndef AG_FAMILIES_PRIVATE_H
#define AG_FAMILIES_PRIVATE_H

#include "engine/search/families.h"

/* One training under way. */
typedef struct AgWork
{
	const AgContext *ctx;
	AgFitRows *rows;
	const AgModelConfig *config;
	uint64_t seed;
	AgTrainData *data;
	bool last;
	AgTrained *trained;
	int split;      /* see AgTraining */
	int max_rounds; /* 0: as configured */
	bool wants_oob;
} AgWork;

/* The features of the rows, as models learn from them. */
AgStatus ag_work_source(AgWork *work, AgDenseSource *source);
/* Trains the family's model on the rows as they are. */
AgStatus ag_work_train(AgWork *work);
/* Does the family learn from bins? */
bool ag_work_has_bins(const AgWork *work);
/* The rows of the first level. */
AgFitRows *ag_work_root(const AgWork *work);

/* families_prep.c: trains with columns of the model's own ahead of it. */
AgStatus ag_work_train_prep(AgWork *work);
/* Are such columns asked for? Texts have some in any case. */
bool ag_config_has_prep(const AgModelConfig *config);
/* Makes the terms of all rows, unless they are there; root: rows of the first level. */
AgStatus ag_fit_texts_make(const AgContext *ctx, AgFitRows *root);
void ag_fit_texts_free(AgMem *mem, AgFitTexts *texts);

#endif
