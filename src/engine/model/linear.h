/*
 * linear.h - linear models (the LR family): ridge, lasso and elastic net for numbers, logistic and multinomial regression
 * for classes.
 *
 * What is minimised, over the training rows, with the weights w_i scaled to a mean of 1:
 *
 *     sum of w_i loss_i + 1/C ((1 - r) / 2 sum of b^2 + r sum of |b|)
 *
 * where r is 0 for penalty L2, 1 for L1 and l1_ratio for elasticnet; b are the coefficients of the transformed columns
 * (dense.h), without the intercepts. The loss is half the squared difference, the target divided by its spread, or minus the
 * log-likelihood. For L2 these are scikit-learn's LogisticRegression(C) and Ridge(alpha = 1/C).
 */
#ifndef AG_LINEAR_H
#define AG_LINEAR_H

#include "engine/base/bytes.h"
#include "engine/model/cuts.h"
#include "engine/model/dense.h"
#include "engine/model/boost.h"
#include "engine/model/param.h"
#include "engine/model/trees.h"

typedef enum AgPenalty
{
	AG_PENALTY_L2 = 0,
	AG_PENALTY_L1 = 1,
	AG_PENALTY_ELASTIC_NET = 2
} AgPenalty;

typedef struct AgLinearParams
{
	double C;        /* 1 */
	int penalty;     /* AgPenalty, L2 */
	double l1_ratio; /* 0.5 */
	int max_iter;    /* 10000 */
	double tol;      /* 1e-4: the greatest gradient of the mean loss at which training is done */
	AgDenseParams dense;
} AgLinearParams;

extern const AgParamSpec ag_linear_specs[];
extern const int ag_linear_n_specs;

/* A fitted model. Terms are the transform's numbers, then the columns of its slots. */
typedef struct AgLinear
{
	uint32_t n_outputs; /* scores: 1, or the number of classes */
	uint32_t link;      /* AgLink: IDENTITY, SIGMOID, SOFTMAX or QUANTILES */
	uint32_t n_terms;
	uint32_t zero;
	double centre, spread;      /* IDENTITY, QUANTILES: predictions are centre + spread * score */
	const double *intercepts;   /* [n_outputs] */
	const double *coefficients; /* [n_terms][n_outputs] */
	const AgDense *dense;
	AgDense *own_dense; /* set when the model was read from an image */
	AgArena arena;      /* owns this struct, and the arrays unless they lie in an image */
} AgLinear;

typedef struct AgLinearResult
{
	AgLinear *model;     /* refers to the transform that it was trained with */
	double *valid_proba; /* [n_valid][max(1, n_classes)]; owned, ag_mem_free */
	double objective;    /* what is minimised, divided by the number of rows */
	int n_iter;
	bool converged;
	bool stopped_by_time;
	AgCuts cuts;           /* what the time decided */
	bool on_gpu;           /* ctx->gpu made the passes over the rows */
	bool gpu_failed;       /* the device, or its memory, failed */
	char cpu_because[300]; /* why not, where there was a ctx->gpu */
	char note[160];        /* what the user should know when it didn't converge; else empty */
} AgLinearResult;

/*
 * Trains on data->train_rows of a matrix that `dense` (fitted on those rows) made of the whole table; data->bins isn't
 * looked at. The same bytes at any number of threads, and on ctx->gpu, if there is one that can. At the deadline it gives the best so far (at worst the classes'
 * frequencies or the mean), AG_ERR_CANCELLED within 100 ms of the flag. Classes without a training row get a
 * probability near 0. AG_ERR_DATA without training rows.
 */
AgStatus ag_linear_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
						 const AgTrainData *data, const AgLinearParams *params,
						 AgLinearResult *result);
void ag_linear_result_free(const AgContext *ctx, AgLinearResult *result);

/* Upper estimate of the memory that training takes beyond the matrix, in bytes. */
int64_t ag_linear_memory(const AgDense *dense, const AgTrainData *data);

void ag_linear_free(AgLinear *linear); /* NULL allowed */

/* An image of kind AG_IMAGE_LINEAR, the transform included; reading checks all of it, in place (AG_ERR_CORRUPT). */
AgStatus ag_linear_write(const AgContext *ctx, const AgLinear *linear, AgWriter *writer);
AgStatus ag_linear_read(const AgContext *ctx, const void *image, size_t size, AgLinear **linear);

/* Numbers that ag_linear_run writes: 1, or the number of classes. */
uint32_t ag_linear_n_out(const AgLinear *linear);
/* One row: the value, or the classes' probabilities. Always finite, no allocation, any number of threads. */
void ag_linear_run(const AgLinear *linear, const double *features, double *out);
/* Of a model of numbers (link IDENTITY): what the value of feature f adds to the prediction. */
double ag_linear_term(const AgLinear *linear, uint32_t f, double x);
/* As ag_linear_run, for a row that was already transformed. */
void ag_linear_run_encoded(const AgLinear *linear, const float *numbers, const uint32_t *slots,
						   double *out);

#endif
