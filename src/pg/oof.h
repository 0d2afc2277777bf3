/*
 * oof.h - the predictions that a fit keeps of rows that its models had not seen.
 */
#ifndef AG_OOF_H
#define AG_OOF_H

#include "postgres.h"

#include "pg/cache.h"

/* How far a prediction was from the truth, and how much its row counts. */
typedef struct AgOofError
{
	float distance,
		weight; /* weight: finite, not negative; 1 where weights don't count in scores */
} AgOofError;

/*
 * The distances, ascending, in the current memory context; *n of them, at least one. ERROR P0002 where none are stored. The model is the predictor's best
 * one, a regression.
 */
extern AgOofError *ag_oof_errors(const AgOpenModel *model, const char *name, int64 *n);

#endif
