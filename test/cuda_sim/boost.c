/*
 * boost.c - boosters on the device against boosters on the CPU: the same bytes. Links with the kernels, on the simulator or on a
 * real GPU.
 */
#include "engine/model/bootstrap.h"

#include "cuda_sim/lib/boosts.h"

/* ---- families and their parameters ---- */

static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
									 AG_PROBLEM_MULTICLASS};
static const int n_classes_of[] = {0, 2, 4};

/* Every parameter that has code of its own, one after the other. */
static void
vary(AgBoostParams *params, int variant)
{
	switch (variant)
	{
		case 1:
			params->extra_trees = true;
			params->feature_fraction = 0.6;
			break;
		case 2:
			params->bagging_fraction = 0.7;
			params->bagging_freq = 2;
			params->feature_fraction_bynode = 0.5;
			params->feature_fraction_bylevel = 0.7;
			break;
		case 3:
			params->lambda_l1 = 0.5;
			params->lambda_l2 = 2.0;
			params->max_delta_step = 0.3;
			params->path_smooth = 3.0;
			params->min_gain_to_split = 0.01;
			break;
		case 4:
			params->max_depth = 3;
			params->min_data_in_leaf = 1;
			params->max_cat_to_onehot = 50;
			break;
		case 5:
			params->num_leaves = 7;
			params->min_data_in_leaf = 30;
			params->min_sum_hessian_in_leaf = 2.0;
			break;
		default:
			break;
	}
}

static void
check_gbm(void)
{
	for (int p = 0; p < 3; p++)
		for (int variant = 0; variant < 6; variant++)
		{
			AgBoostParams params = gbm_params(2);
			AgTrainData data;
			Bench bench;
			Table table;
			char what[64];

			bench_init(&bench, 1);
			table_init(&table, 600 + 37 * variant, 3, 2, 30, variant % 2 ? 0.1 : 0.0,
					   n_classes_of[p], 7 + (uint64_t) variant);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, problems[p], n_classes_of[p]);
			data.weight = variant == 3 || variant == 5 ? table.weight : NULL;
			vary(&params, variant);
			snprintf(what, sizeof what, "GBM, problem %d, variant %d", p, variant);
			check_same(what, &table, &data, &params);
			table_end(&table);
			bench_end(&bench);
		}
}

static void
check_xgb(void)
{
	for (int p = 0; p < 3; p++)
		for (int variant = 0; variant < 3; variant++)
		{
			AgBoostParams params = xgb_params(2);
			AgTrainData data;
			Bench bench;
			Table table;
			char what[64];

			bench_init(&bench, 1);
			table_init(&table, 900, 3, 2, 12, 0.15, n_classes_of[p], 70 + (uint64_t) variant);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, problems[p], n_classes_of[p]);
			data.weight = variant == 1 ? table.weight : NULL;
			if (variant == 1)
				params.max_depth = 4;
			if (variant == 2) /* no depth, few leaves; classes of different weight */
			{
				params.max_depth = 0;
				params.num_leaves = 20;
				params.feature_fraction_bylevel = 0.6;
				params.scale_pos_weight = p == 1 ? 2.5 : 1.0;
			}
			snprintf(what, sizeof what, "XGB, problem %d, variant %d", p, variant);
			check_same(what, &table, &data, &params);
			table_end(&table);
			bench_end(&bench);
		}
}

static void
check_cat(void)
{
	for (int p = 0; p < 3; p++)
		for (int kind = 0; kind < 5; kind++)
		{
			AgBoostParams params = cat_params(2);
			AgTrainData data;
			Bench bench;
			Table table;
			char what[64];

			bench_init(&bench, 1);
			table_init(&table, 800, 3, 2, kind % 2 ? 2 : 40, kind == 2 ? 0.2 : 0.0, n_classes_of[p],
					   90 + (uint64_t) kind);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, problems[p], n_classes_of[p]);
			data.weight = kind == 3 ? table.weight : NULL;
			params.bootstrap = kind;
			params.max_ctr_complexity = 1;
			params.leaf_steps = kind == 0 || kind == 3 ? 4 : 1;
			if (kind == AG_BOOTSTRAP_BERNOULLI || kind == AG_BOOTSTRAP_MVS)
				params.bagging_fraction = 0.6;
			params.max_depth = kind == 4 ? 3 : 5;
			params.random_strength = kind == 1 ? 0.0 : 1.0;
			params.bagging_temperature = kind == AG_BOOTSTRAP_BAYESIAN ? 0.5 : 1.0;
			params.score_function = kind == 3 ? 0 : 1;
			if (kind == 2)
				params.grow_order = AG_GROW_DEPTHWISE;
			if (kind == 1)
				params.feature_fraction_bylevel = 0.5;
			snprintf(what, sizeof what, "CAT, problem %d, kind %d", p, kind);
			check_same(what, &table, &data, &params);
			table_end(&table);
			bench_end(&bench);
		}
}

/* ---- shapes ---- */

/* A table of odd size, and one family on it. */
static void
check_shape(const char *what, int64_t n_rows, int n_numbers, int n_categories, int max_bins,
			double share_missing, AgBoostParams params)
{
	AgTrainData data;
	Bench bench;
	Table table;

	bench_init(&bench, 1);
	table_init(&table, n_rows, n_numbers, n_categories, 300, share_missing, 2, 5);
	table_bin(&table, &bench.ctx, max_bins);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	check_same(what, &table, &data, &params);
	table_end(&table);
	bench_end(&bench);
}

static void
check_shapes(void)
{
	AgBoostParams gbm = gbm_params(2), xgb = xgb_params(2), cat = cat_params(2);

	gbm.min_data_in_leaf = 1;
	cat.max_ctr_complexity = cat.leaf_steps = 1;
	check_shape("one row", 1, 2, 0, 254, 0.0, gbm);
	check_shape("one row, symmetric", 1, 2, 0, 254, 0.0, cat);
	check_shape("two rows", 2, 1, 0, 254, 0.0, gbm);
	check_shape("five rows", 5, 3, 1, 254, 0.0, xgb);
	check_shape("33 rows", 33, 1, 1, 254, 0.3, gbm);
	check_shape("257 rows, a deep symmetric tree with empty leaves", 257, 2, 0, 254, 0.0, cat);
	check_shape("nothing but missing values", 60, 2, 1, 254, 1.0, gbm);
	check_shape("nothing but missing values, symmetric", 60, 2, 1, 254, 1.0, cat);
	check_shape("two bins", 100, 3, 1, 2, 0.1, xgb);
	check_shape("255 bins and several chunks of rows", 3001, 2, 1, 254, 0.05, gbm);
}

/* Small blocks of shared memory, one or several processors, other orders of lanes: nothing changes. */
static void
check_machines(void)
{
	AgBoostParams params = gbm_params(2);

	if (!is_simulated)
		return;
	for (int order = 0; order < 3; order++)
	{
		sim_machine_reset(2 * order + 1, order == 1 ? 9 << 10 : 48 << 10, order);
		check_shape("another machine", 1500, 5, 2, 254, 0.1, params);
		check_shape("another machine, depth-wise", 700, 5, 2, 254, 0.1, xgb_params(1));
	}
	sim_machine_reset(2, 227 << 10, 0);
}

/* ---- memory ---- */

/* Trains with so much memory; the model is the CPU's. True: on the GPU. */
static bool
train_within(int64_t limit, const Table *table, const AgTrainData *data,
			 const AgBoostParams *params, const AgWriter *our_bytes)
{
	AgDeviceOps ops = *table_of_ops.ops;
	AgBoostResult result;
	AgWriter bytes;
	There there;
	bool on_gpu;

	there_init(&there, limit);
	ops.matrix_create = noted_create;
	there.gpu.ops = &ops;
	AG_REQUIRE(train(&there.bench.ctx, data, params, table, &result) == AG_OK);
	bytes = model_bytes(&there.bench.ctx, result.trees);
	AG_CHECK(same_bytes(our_bytes, &bytes));
	on_gpu = result.on_gpu;
	AG_CHECK(on_gpu || (result.gpu_failed && strstr(result.cpu_because, "share") != NULL));
	ag_writer_free(&bytes);
	ag_boost_result_free(&there.bench.ctx, &result);
	ag_bins_leave_devices(table->bins);
	there_end(&there);
	return on_gpu;
}

/* With both copies of the bins there, with rows only, with blocks of rows, and with nothing: the same trees. */
static void
check_memory(AgBoostParams params, int n_categories)
{
	AgBoostResult ours;
	AgWriter bytes;
	Bench here;
	Table table;
	AgTrainData data;
	int64_t rows, need;

	bench_init(&here, 1);
	table_init(&table, 1500, 40 - n_categories, n_categories, 12, 0.1, 2, 6);
	table_bin(&table, &here.ctx, 16);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	rows = table.bins->n_rows * table.bins->row_stride;
	AG_REQUIRE(train(&here.ctx, &data, &params, &table, &ours) == AG_OK);
	bytes = model_bytes(&here.ctx, ours.trees);
	AG_CHECK(train_within(INT64_C(1) << 40, &table, &data, &params, &bytes));
	AG_CHECK(made_layout.has_columns && made_layout.n_blocks == 0 && made_spare > 100000);
	need = made_spare;
	AG_CHECK(train_within(need + rows + 40000, &table, &data, &params, &bytes));
	AG_CHECK(!made_layout.has_columns && made_layout.n_blocks == 0);
	AG_CHECK_EQ(made_layout.n_bytes, rows);
	AG_CHECK(train_within(need + 45000, &table, &data, &params, &bytes));
	AG_CHECK(!made_layout.has_columns && made_layout.n_blocks > 2);
	AG_CHECK(made_layout.n_bytes < rows / 2);
	AG_CHECK(!train_within(need, &table, &data, &params, &bytes));
	ag_writer_free(&bytes);
	ag_boost_result_free(&here.ctx, &ours);
	table_end(&table);
	bench_end(&here);
}

static void
check_memories(void)
{
	AgBoostParams gbm = gbm_params(2), xgb = xgb_params(1), cat = cat_params(2);

	check_memory(gbm, 2);
	gbm.bagging_fraction = 0.7;
	gbm.bagging_freq = 1;
	gbm.path_smooth = 2.0; /* rows of all cuts are counted */
	check_memory(gbm, 2);
	check_memory(xgb, 0);
	cat.max_ctr_complexity = 1;
	check_memory(cat, 0);
}

/* ---- failures ---- */

/* Whatever fails on the device, the model is the CPU's own, says why, and nothing of it stays on the device. */
static void
check_failures(void)
{
	AgBoostParams params = gbm_params(2);
	AgBoostResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	Bench here;
	Table table;
	AgTrainData data;
	There there;

	bench_init(&here, 1);
	table_init(&table, 200, 3, 1, 9, 0.1, 2, 6);
	table_bin(&table, &here.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	AG_REQUIRE(train(&here.ctx, &data, &params, &table, &ours) == AG_OK);
	our_bytes = model_bytes(&here.ctx, ours.trees);
	for (long at = -1; at < (is_simulated ? 120 : 0); at += at < 40 ? 1 : 13)
	{
		bool by_launch = at % 2 != 0;

		there_init(&there, at < 0 ? 50000 : INT64_C(1) << 40); /* first: too small a share */
		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at / 2 : -1);
		AG_CHECK(train(&there.bench.ctx, &data, &params, &table, &theirs) == AG_OK);
		their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
		AG_CHECK(same_bytes(&our_bytes, &their_bytes));
		AG_CHECK(theirs.on_gpu == (theirs.cpu_because[0] == '\0'));
		AG_CHECK(theirs.gpu_failed == !theirs.on_gpu);
		AG_CHECK(!theirs.on_gpu || at > 20);
		if (at < 0)
			AG_CHECK(strstr(theirs.cpu_because, "share of GPU 0") != NULL ||
					 strstr(theirs.cpu_because, "share are left") != NULL);
		AG_CHECK_EQ(there.gpu.is_lost, by_launch && at >= 0 && !theirs.on_gpu);
		ag_writer_free(&their_bytes);
		ag_boost_result_free(&there.bench.ctx, &theirs);
		ag_bins_leave_devices(table.bins);
		there_end(&there);
		if (is_simulated)
			sim_machine_reset(2, 227 << 10, 0);
	}
	ag_writer_free(&our_bytes);
	ag_boost_result_free(&here.ctx, &ours);
	table_end(&table);
	bench_end(&here);
}

/* What no device does is named. */
static void
check_refusals(void)
{
	AgBoostParams params = cat_params(1);
	AgBoostResult result;
	Table table;
	AgTrainData data;
	There there;

	there_init(&there, INT64_C(1) << 40);
	table_init(&table, 300, 1, 3, 40, 0.0, 2, 8);
	table_bin(&table, &there.bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	AG_REQUIRE(train(&there.bench.ctx, &data, &params, &table, &result) == AG_OK);
	AG_CHECK(!result.on_gpu && !result.gpu_failed);
	AG_CHECK_STR(result.cpu_because, "combinations of categories are counted on the CPU only");
	ag_boost_result_free(&there.bench.ctx, &result);
	params = gbm_params(1);
	params.samples_by_gradient = true;
	params.top_rate = 0.2;
	params.other_rate = 0.1;
	AG_REQUIRE(train(&there.bench.ctx, &data, &params, &table, &result) == AG_OK);
	AG_CHECK_STR(result.cpu_because, "rows are drawn by their gradients (goss) on the CPU only");
	AG_CHECK(!result.on_gpu && result.trees->n_nodes > 0);
	ag_boost_result_free(&there.bench.ctx, &result);
	params = cat_params(1);
	params.max_ctr_complexity = 1;
	params.boosting = 1; /* Ordered */
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	AG_REQUIRE(train(&there.bench.ctx, &data, &params, &table, &result) == AG_OK);
	AG_CHECK_STR(result.cpu_because, "ordered boosting is done on the CPU only");
	ag_boost_result_free(&there.bench.ctx, &result);
	table_end(&table);
	there_end(&there);
}

int
main(void)
{
	there_begin();
	check_gbm();
	check_xgb();
	check_cat();
	check_shapes();
	check_machines();
	check_memories();
	check_failures();
	check_refusals();
	return ag_unit_done("cuda boost");
}
