/*
 * batch.h - the rows of a table or query, read for a model many at a time; no label needed.
 */
#ifndef AG_BATCH_H
#define AG_BATCH_H

#include "postgres.h"

#include "pg/cache.h"
#include "pg/source.h"

#define AG_BATCH_ROWS 256

/* Rows as the model's features. keys: one text a row (NULL where it is NULL), or NULL without a key column. */
typedef struct AgBatch
{
	int n_rows;
	const double *features; /* [n_rows][ag_predictor_features] */
	char **keys;
} AgBatch;

/* Called with each batch, in a memory context that is reset afterwards. */
typedef void (*AgBatchTake)(void *arg, const AgBatch *batch);

/*
 * Reads data (a table's name or a query) as the caller, within its snapshot, and only the columns that the model (called name)
 * uses, and the key column where it isn't NULL. Gives the number of rows.
 */
extern int64 ag_batch_run(const char *data, const char *name, const AgOpenModel *model,
						  const char *key_column, AgBatchTake take, void *arg);

/* Marks the source's columns that the model uses as wanted. */
extern void ag_batch_want(const AgOpenModel *model, AgSource *source);

/* Predicts a batch's or any other rows: features[n][..] to out[n][n_outputs]. */
extern void ag_batch_predict(const AgOpenModel *model, int64 n, const double *features,
							 double *out);

#endif
