/*
 * net_cases.h - nets that are small enough to be trained in a test.
 */
#ifndef AG_NET_CASES_H
#define AG_NET_CASES_H

#include "unit/unit.h"

#include <float.h>

#include "engine/base/maths.h"
#include "engine/model/net_maths.h"
#include "engine/model/net_train.h"
#include "unit/dense_cases.h"

static AgMem mem;
static AgError err;
static AgContext ctx;

typedef struct Fitted
{
	AgDense *dense;
	AgDenseMatrix *matrix;
	AgNetResult result;
	AgStatus status;
} Fitted;

static inline AgNetParams
small(AgNetFamily family, int n_epochs)
{
	AgNetParams params;

	ag_net_params_default(family, &params);
	params.num_epochs = n_epochs;
	params.layers.n = 2;
	params.layers.values[0] = 24;
	params.layers.values[1] = 17;
	params.seed = 5;
	if (family == AG_NET_TABM)
		params.n_members = 4;
	return params;
}

static inline void
prepare(const Columns *columns, uint32_t n_features, int64_t n_rows, const AgTrainData *data,
		const AgNetParams *params, Fitted *fitted)
{
	AgDenseSource source = source_of(columns, n_features, n_rows);
	int64_t deadline = ctx.deadline_ns;

	memset(fitted, 0, sizeof *fitted);
	ctx.deadline_ns = INT64_MAX;
	AG_REQUIRE(ag_dense_fit(&ctx, &source, data->train_rows, data->n_train, &params->dense,
							&fitted->dense) == AG_OK);
	AG_REQUIRE(ag_dense_matrix(&ctx, fitted->dense, &source, &fitted->matrix) == AG_OK);
	ctx.deadline_ns = deadline;
}

static inline Fitted
train(const Columns *columns, uint32_t n_features, int64_t n_rows, const AgTrainData *data,
	  const AgNetParams *params)
{
	Fitted fitted;

	prepare(columns, n_features, n_rows, data, params, &fitted);
	fitted.status = ag_net_train(&ctx, fitted.dense, fitted.matrix, data, params, &fitted.result);
	return fitted;
}

static inline void
drop(Fitted *fitted)
{
	ag_net_result_free(&ctx, &fitted->result);
	ag_dense_matrix_free(fitted->matrix);
	ag_dense_free(fitted->dense);
	ag_error_init(&err);
}

/* One row, with as much scratch as it asks for. */
static inline void
run_one(const AgNet *net, const double *features, double *out)
{
	void *scratch = ag_mem_alloc(&mem, 1, ag_net_row_scratch_bytes(net));

	AG_REQUIRE(scratch != NULL);
	ag_net_run(net, features, scratch, out);
	ag_mem_free(&mem, scratch);
}

static inline AgTrainData
data_of(const Mixed *mixed, AgProblem problem, int64_t n_train)
{
	AgTrainData data = mixed_data(mixed, problem, n_train);

	data.stop_metric = ag_metric_default(problem);
	return data;
}

/* Two classes of the mixed table's three, for binary problems. */
static inline void
two_classes(Mixed *mixed)
{
	for (int64_t i = 0; i < mixed->n_rows; i++)
		mixed->class_of[i] = mixed->class_of[i] > 0;
}

static inline float
number(uint64_t key, uint64_t counter)
{
	return (float) (2.0 * ag_random_unit(key, counter) - 1.0);
}

#endif
