/*
 * forests.h - what the tests of the forests share.
 */
#ifndef AG_TEST_FORESTS_H
#define AG_TEST_FORESTS_H

#include "booster.h"
#include "engine/model/forest.h"

typedef struct Case
{
	AgProblem problem;
	int n_classes;
} Case;

static const Case cases[] = {
	{AG_PROBLEM_REGRESSION, 0}, {AG_PROBLEM_BINARY, 2}, {AG_PROBLEM_MULTICLASS, 5}};

static inline AgForestParams
forest_params(int n_trees, bool is_extra)
{
	AgForestParams params;

	memset(&params, 0, sizeof params);
	if (is_extra)
		ag_params_default(ag_xt_specs, ag_xt_n_specs, &params);
	else
		ag_params_default(ag_rf_specs, ag_rf_n_specs, &params);
	params.n_estimators = n_trees;
	params.is_extra = is_extra;
	params.wants_oob = true;
	params.seed = 42;
	return params;
}

static inline AgForestResult
train(Bench *bench, const AgTrainData *data, const AgForestParams *params)
{
	AgForestResult result;

	if (!AG_CHECK(ag_forest_train(&bench->ctx, data, params, &result) == AG_OK))
	{
		fprintf(stderr, "    %s\n", bench->error.message);
		exit(ag_unit_done("forest"));
	}
	AG_CHECK(ag_trees_check(&bench->ctx, result.trees, AG_ERR_INTERNAL) == AG_OK);
	return result;
}

/* Numbers of one's own making: [n_features][n_rows]. */
static inline void
table_numbers(Table *table, const AgContext *ctx, int64_t n_rows, int n_features,
			  double (*value)(int64_t, int), int n_classes)
{
	table_init(table, n_rows, n_features, 0, 1, 0.0, n_classes, 1);
	for (int f = 0; f < n_features; f++)
		for (int64_t i = 0; i < n_rows; i++)
			table->numbers[f * n_rows + i] = value(i, f);
	table_bin(table, ctx, 254);
}

/* Squares: half of the rows lie in the lowest quarter of the range. */
static inline double
square(int64_t row, int f)
{
	(void) f;
	return (double) (row * row);
}

#endif
