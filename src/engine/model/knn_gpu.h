/*
 * knn_gpu.h - the neighbours of many rows on a device, the same as the CPU's (private to the KNN family).
 */
#ifndef AG_KNN_GPU_H
#define AG_KNN_GPU_H

#include "engine/base/device.h"
#include "engine/model/knn_search.h"

/* Where a row of the table is among the kept ones, rows[n_rows] ascending; or AG_KNN_NO_SELF. */
uint32_t ag_knn_place_of(const uint32_t *rows, uint32_t n_rows, uint32_t row);

/*
 * Predicts data->valid_rows on ctx->gpu: proba[n_valid][n_out]. result says whether it did; when it can't, or fails, AG_OK is returned all the
 * same, and the CPU does it. AG_ERR_CANCELLED, and AG_ERR_TIME without a text, as ag_knn_train.
 */
AgStatus ag_knn_gpu_predict(const AgContext *ctx, const AgKnn *knn, const uint32_t *rows,
							const AgDenseMatrix *matrix, const AgTrainData *data, double *proba,
							AgKnnResult *result);

#endif
