/*
 * predict_rows.h - rows of ag_predict_table's result, made of batches of rows that were read.
 */
#ifndef AG_PREDICT_ROWS_H
#define AG_PREDICT_ROWS_H

#include "postgres.h"

#include "pg/batch.h"

#define AG_PREDICT_COLUMNS 5 /* key, prediction, value, proba, quantiles */

/* Where a row goes: the values are good until it returns. */
typedef void (*AgPredictPut)(void *arg, Datum *values, bool *nulls);

typedef struct AgPredictRows AgPredictRows;

/* Lives in the current memory context. */
extern AgPredictRows *ag_predict_rows_create(const AgOpenModel *model, AgPredictPut put, void *arg);

/* An AgBatchTake; arg is an AgPredictRows. */
extern void ag_predict_rows_take(void *arg, const AgBatch *batch);

/* Rows of which the model's outputs are known: out[n][n_outputs]; keys[n], or NULL. Leaves garbage in the current memory context. */
extern void ag_predict_rows_put(AgPredictRows *rows, int n, char *const *keys, const double *out);

#endif
