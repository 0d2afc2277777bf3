/*
 * booster.h - small seeded tables for the tests of the boosters.
 */
#ifndef AG_TEST_BOOSTER_H
#define AG_TEST_BOOSTER_H

#include "engine/base/rng.h"
#include "engine/base/threads.h"
#include "engine/model/cat.h"
#include "engine/model/gbm.h"
#include "engine/model/xgb.h"
#include "unit.h"

/* A context of one's own. */
typedef struct Bench
{
	AgMem mem;
	AgError error;
	AgPool *pool;
	AgContext ctx;
} Bench;

static inline void
bench_init(Bench *bench, int n_threads)
{
	ag_mem_init(&bench->mem, INT64_MAX);
	ag_error_init(&bench->error);
	bench->ctx = (AgContext){.mem = &bench->mem, .deadline_ns = INT64_MAX, .error = &bench->error};
	AG_REQUIRE(ag_pool_create(&bench->mem, n_threads, &bench->pool, &bench->error) == AG_OK);
	bench->ctx.pool = bench->pool;
}

static inline void
bench_end(Bench *bench)
{
	ag_pool_free(bench->pool);
	AG_CHECK_EQ(atomic_load(&bench->mem.used_bytes), 0);
}

/* A table: numeric columns, then categories. */
typedef struct Table
{
	int64_t n_rows;
	int n_numbers, n_categories;
	double *numbers; /* [n_numbers][n_rows] */
	uint32_t *codes; /* [n_categories][n_rows] */
	uint32_t n_levels;
	double *target;
	int32_t *class_of;
	double *weight;
	uint32_t *train, *valid;
	int64_t n_train, n_valid;
	AgBins *bins;
} Table;

/*
 * A seeded table. share_missing of the cells are missing. The target is smooth in the first two numbers, steps in the third,
 * depends on the first category, and has noise; classes cut it at quantiles.
 */
static inline void
table_init(Table *table, int64_t n_rows, int n_numbers, int n_categories, uint32_t n_levels,
		   double share_missing, int n_classes, uint64_t seed)
{
	memset(table, 0, sizeof *table);
	table->n_rows = n_rows;
	table->n_numbers = n_numbers;
	table->n_categories = n_categories;
	table->n_levels = n_levels;
	table->numbers = malloc((size_t) (n_rows * n_numbers + 1) * sizeof(double));
	table->codes = malloc((size_t) (n_rows * n_categories + 1) * sizeof(uint32_t));
	table->target = malloc((size_t) n_rows * sizeof(double));
	table->class_of = malloc((size_t) n_rows * sizeof(int32_t));
	table->weight = malloc((size_t) n_rows * sizeof(double));
	table->train = malloc((size_t) n_rows * sizeof(uint32_t));
	table->valid = malloc((size_t) n_rows * sizeof(uint32_t));
	for (int64_t i = 0; i < n_rows; i++)
	{
		double sum = 0.0;

		for (int f = 0; f < n_numbers; f++)
		{
			uint64_t key = ag_key(seed, (uint64_t) f);
			double x = ag_random_unit(key, (uint64_t) i);

			if (f % 3 == 2)
				x = floor(x * 10.0);
			if (f == 0)
				sum += sin(6.0 * x);
			else if (f == 1)
				sum += 2.0 * x;
			else if (f == 2)
				sum += x > 6.0;
			if (ag_random_unit(ag_key(key, 7), (uint64_t) i) < share_missing)
				x = (double) NAN;
			table->numbers[f * n_rows + i] = x;
		}
		for (int c = 0; c < n_categories; c++)
		{
			uint64_t key = ag_key(seed, 1000 + (uint64_t) c);
			double u = ag_random_unit(key, (uint64_t) i);
			uint32_t code = (uint32_t) (u * u * n_levels);

			if (c == 0)
				sum += (double) (code * 7 % 5) * 0.4;
			table->codes[c * n_rows + i] =
				ag_random_unit(ag_key(key, 7), (uint64_t) i) < share_missing ? UINT32_MAX : code;
		}
		sum += 0.3 * (ag_random_unit(ag_key(seed, 5000), (uint64_t) i) - 0.5);
		table->target[i] = sum;
		table->class_of[i] = n_classes > 0 ? ((int32_t) (fabs(sum) * 1.7)) % n_classes : 0;
		table->weight[i] = ag_random_unit(ag_key(seed, 5001), (uint64_t) i) * 3.0;
		if (i % 5 == 4)
			table->valid[table->n_valid++] = (uint32_t) i;
		else
			table->train[table->n_train++] = (uint32_t) i;
	}
}

static inline void
table_bin(Table *table, const AgContext *ctx, int max_bins)
{
	AgBinParams params = {max_bins, 3, 200000};

	AG_REQUIRE(ag_bins_create(ctx, table->n_rows, table->n_numbers + table->n_categories,
							  &table->bins) == AG_OK);
	for (int f = 0; f < table->n_numbers + table->n_categories; f++)
	{
		AgBinSource source = {.n_levels = table->n_levels};

		if (f < table->n_numbers)
			source.values = table->numbers + f * table->n_rows;
		else
			source.codes = table->codes + (f - table->n_numbers) * table->n_rows;
		AG_REQUIRE(ag_bins_set_feature(ctx, table->bins, f, &source, &params) == AG_OK);
	}
	AG_REQUIRE(ag_bins_make_rows(ctx, table->bins) == AG_OK);
}

static inline AgTrainData
table_data(const Table *table, AgProblem problem, int n_classes)
{
	return (AgTrainData){
		.bins = table->bins,
		.problem = problem,
		.n_classes = n_classes,
		.target = table->target,
		.class_of = table->class_of,
		.train_rows = table->train,
		.n_train = table->n_train,
		.valid_rows = table->valid,
		.n_valid = table->n_valid,
		.stop_metric = problem == AG_PROBLEM_REGRESSION ? AG_METRIC_RMSE : AG_METRIC_LOG_LOSS,
	};
}

/* A row as prediction sees it. */
static inline void
table_features(const Table *table, int64_t row, double *features)
{
	for (int f = 0; f < table->n_numbers; f++)
		features[f] = table->numbers[f * table->n_rows + row];
	for (int c = 0; c < table->n_categories; c++)
	{
		uint32_t code = table->codes[c * table->n_rows + row];

		features[table->n_numbers + c] = code == UINT32_MAX ? (double) NAN : (double) code;
	}
}

static inline void
table_end(Table *table)
{
	ag_bins_free(table->bins);
	free(table->numbers);
	free(table->codes);
	free(table->target);
	free(table->class_of);
	free(table->weight);
	free(table->train);
	free(table->valid);
}

static inline AgBoostParams
gbm_params(int n_rounds)
{
	AgBoostParams params;

	memset(&params, 0, sizeof params);
	ag_params_default(ag_gbm_specs, ag_gbm_n_specs, &params);
	ag_gbm_complete(&params);
	params.num_boost_round = n_rounds;
	params.early_stop_rounds = -1;
	params.seed = 42;
	return params;
}

/* Not completed: ag_cat_train does that. */
static inline AgBoostParams
cat_params(int n_rounds)
{
	AgBoostParams params;

	memset(&params, 0, sizeof params);
	ag_params_default(ag_cat_specs, ag_cat_n_specs, &params);
	params.num_boost_round = n_rounds;
	params.early_stop_rounds = -1;
	params.seed = 42;
	return params;
}

static inline AgBoostParams
xgb_params(int n_rounds)
{
	AgBoostParams params;

	memset(&params, 0, sizeof params);
	ag_params_default(ag_xgb_specs, ag_xgb_n_specs, &params);
	ag_xgb_complete(&params);
	params.num_boost_round = n_rounds;
	params.early_stop_rounds = -1;
	params.seed = 42;
	return params;
}

/* The bytes of a model, so that two can be told apart. */
static inline AgWriter
model_bytes(const AgContext *ctx, const AgTrees *trees)
{
	AgWriter writer;

	ag_writer_init(&writer, ctx->mem);
	AG_REQUIRE(ag_trees_write(ctx, trees, &writer) == AG_OK);
	return writer;
}

static inline bool
same_bytes(const AgWriter *a, const AgWriter *b)
{
	return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

#endif
