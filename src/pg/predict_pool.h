/*
 * predict_pool.h - rows that one process reads, predicted by several: parallel workers run the model on batches of features, the
 * session reads the rows, and writes the result in their order. For what only the session can read (predict_workers.h): queries, views,
 * tables under row-level security, ...
 *
 * Workers are asked for when the session has predicted for a while by itself and rows still come.
 */
#ifndef AG_PREDICT_POOL_H
#define AG_PREDICT_POOL_H

#include "postgres.h"

#include "pg/batch.h"
#include "pg/predict_rows.h"

typedef struct AgPredictPool AgPredictPool;

/* Lives in the current memory context; rows gets the predictions. */
extern AgPredictPool *ag_predict_pool_create(const AgOpenModel *model, AgPredictRows *rows);

/* An AgBatchTake; arg is an AgPredictPool. */
extern void ag_predict_pool_take(void *arg, const AgBatch *batch);

/*
 * From now on workers may be asked for, unless the reader's source has functions that can't run while there are some (PARALLEL
 * UNSAFE). Their number is bounded as predict_workers.h says, and by how many one reading process can feed.
 */
extern void ag_predict_pool_allow(AgPredictPool *pool, const AgBatchReader *reader);

/* When the last batch was taken: what isn't put yet is, and workers end. */
extern void ag_predict_pool_finish(AgPredictPool *pool);

#endif
