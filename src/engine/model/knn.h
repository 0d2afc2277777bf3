/*
 * knn.h - nearest neighbours (the KNN family), by exact distances.
 *
 * The distance of two rows is Euclid's over the transformed numbers (dense.h); each slot in which they differ adds
 * category_distance to its square. Of rows equally far away the ones that come first in the table are the nearer. Neighbours
 * vote with their row's weight, for weights = distance divided by the distance; rows at distance 0, if there are any, then
 * decide alone.
 *
 * At most max_rows training rows are kept. Of more, the first in the table's order, which is random, but of each class
 * its first n_neighbors rows in any case (fewer where that would be over max_rows).
 */
#ifndef AG_KNN_H
#define AG_KNN_H

#include "engine/base/bytes.h"
#include "engine/model/dense.h"
#include "engine/model/boost.h"
#include "engine/model/param.h"

#define AG_KNN_MAX_NEIGHBORS 1000

typedef enum AgKnnWeights
{
	AG_KNN_UNIFORM = 0,
	AG_KNN_DISTANCE = 1
} AgKnnWeights;

typedef struct AgKnnParams
{
	int n_neighbors;          /* 5 */
	int weights;              /* AgKnnWeights, uniform */
	int max_rows;             /* 20000 */
	double category_distance; /* 2: what one-hot columns would add */
	AgDenseParams dense;
	bool
		wants_oob; /* not a user parameter: where a bag asks, what each row's neighbours say of it */
} AgKnnParams;

extern const AgParamSpec ag_knn_specs[];
extern const int ag_knn_n_specs;

/* A fitted model. Rows lie in panels of AG_PANEL side by side (base/vector.h); the last one is filled up with zeros. */
typedef struct AgKnn
{
	uint32_t n_rows;
	uint32_t n_neighbors; /* <= n_rows */
	uint32_t weights;     /* AgKnnWeights */
	uint32_t n_classes;   /* 0: the target is a number */
	uint32_t n_numbers, n_slots;
	float category_distance;
	uint32_t zero;
	const float *panels;      /* [n_panels][n_numbers][AG_PANEL] */
	const uint32_t *codes;    /* [n_panels][n_slots][AG_PANEL] */
	const double *targets;    /* [n_rows] numbers, or none */
	const uint32_t *labels;   /* [n_rows] classes, or none */
	const float *row_weights; /* [n_rows] in [0, 1], or NULL */
	const double *fallback;   /* [n_out] the mean or the shares: where no neighbour votes */
	const float
		*norms; /* [n_panels][AG_PANEL] sums of rows' squares; NULL but in a model that was read */
	const AgDense *dense;
	AgDense *own_dense; /* set when the model was read from an image */
	AgArena arena;      /* owns this struct, and the arrays unless they lie in an image */
} AgKnn;

typedef struct AgKnnResult
{
	AgKnn *model;          /* refers to the transform that it was trained with */
	double *valid_proba;   /* [n_valid][max(1, n_classes)]; owned, ag_mem_free */
	int64_t n_left_out;    /* training rows beyond max_rows */
	bool on_gpu;           /* ctx->gpu found the neighbours of the validation rows */
	bool gpu_failed;       /* the device, or its memory, failed */
	char cpu_because[300]; /* why not, where there was a ctx->gpu */
} AgKnnResult;

/*
 * Keeps the rows and predicts data->valid_rows. A validation row that is a training row too is predicted with itself left
 * out; so train_rows = valid_rows gives leave-one-out predictions. data->bins isn't looked at. The same bytes at any number of
 * threads, and on ctx->gpu, if there is one that can. AG_ERR_TIME when the deadline passes before all validation rows have predictions, AG_ERR_CANCELLED within
 * 100 ms of the flag, AG_ERR_UNSUPPORTED for quantile problems, AG_ERR_DATA without training rows.
 */
AgStatus ag_knn_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
					  const AgTrainData *data, const AgKnnParams *params, AgKnnResult *result);
void ag_knn_result_free(const AgContext *ctx, AgKnnResult *result);

/* Bytes of the image that training would give, before it is trained or stored; the transform's own are left out. */
int64_t ag_knn_bytes(const AgDense *dense, const AgTrainData *data, const AgKnnParams *params);

void ag_knn_free(AgKnn *knn); /* NULL allowed */

/* An image of kind AG_IMAGE_KNN, the transform included; reading checks all of it, in place (AG_ERR_CORRUPT). */
AgStatus ag_knn_write(const AgContext *ctx, const AgKnn *knn, AgWriter *writer);
AgStatus ag_knn_read(const AgContext *ctx, const void *image, size_t size, AgKnn **knn);

/* Numbers that ag_knn_run writes: 1, or the number of classes. */
uint32_t ag_knn_n_out(const AgKnn *knn);
/* Bytes of the scratch space that a run takes, 8-byte aligned. */
size_t ag_knn_scratch_bytes(const AgKnn *knn);
/* One row: the value, or the classes' probabilities. Always finite, no allocation; one scratch a thread. */
void ag_knn_run(const AgKnn *knn, const double *features, void *scratch, double *out);
/* Many rows, faster: the same bytes. scratch: n_rows times as much. */
void ag_knn_run_rows(const AgKnn *knn, int64_t n_rows, const double *features, void *scratch,
					 double *out);

/* A training row and how far it is: what search and vote pass on. */
typedef struct AgNeighbor
{
	float squared; /* distance */
	uint32_t row;
} AgNeighbor;

/* Puts a row among the n nearest of a heap that has room for `most`, if it belongs there. Returns the new n. */
uint32_t ag_knn_offer(AgNeighbor *heap, uint32_t n, uint32_t most, float squared, uint32_t row);
/* The neighbours' vote; sorts them. */
void ag_knn_vote(const AgKnn *knn, AgNeighbor *neighbors, uint32_t n, double *out);

#endif
