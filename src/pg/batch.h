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

/* Data at hand, and where its rows go. Between opening and closing it no other SPI connection can be made and left open. */
typedef struct AgBatchReader AgBatchReader;

/*
 * Opens data (a table's name or a query) to be read as the caller, within its snapshot, and only the columns that the model (called
 * name) uses, and the key column where it isn't NULL.
 */
extern AgBatchReader *ag_batch_open(const char *data, const char *name, const AgOpenModel *model,
									const char *key_column, AgBatchTake take, void *arg);
extern const AgSource *ag_batch_source(const AgBatchReader *reader);

/* Either all rows, or those of blocks [first, end) of a table or a part of it (see ag_source_scan_blocks), this as often as one likes. */
extern void ag_batch_read(AgBatchReader *reader);
extern void ag_batch_read_blocks(AgBatchReader *reader, Oid part, BlockNumber first,
								 BlockNumber end);

/* Gives the number of rows read. */
extern int64 ag_batch_close(AgBatchReader *reader);

/* All of that. */
extern int64 ag_batch_run(const char *data, const char *name, const AgOpenModel *model,
						  const char *key_column, AgBatchTake take, void *arg);

/* Marks the source's columns that the model uses as wanted. */
extern void ag_batch_want(const AgOpenModel *model, AgSource *source);

/* Predicts a batch's or any other rows: features[n][..] to out[n][n_outputs]. */
extern void ag_batch_predict(const AgOpenModel *model, int64 n, const double *features,
							 double *out);

#endif
