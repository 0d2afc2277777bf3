/*
 * losses.c - what boosters learn by, on the device against the CPU: losses of numbers and their leaves, monotone constraints, leaves by
 * weights, and the metrics that early stopping watches. The same bytes.
 */
#include "engine/model/leaves_step.h"

#include "cuda_sim/lib/boosts.h"

/* Labels that all losses can be computed of. */
static void
make_positive(Table *table)
{
	for (int64_t i = 0; i < table->n_rows; i++)
		table->target[i] = fabs(table->target[i]) * (i % 11 == 3 ? 30.0 : 1.0) + 0.01;
}

/* ---- losses ---- */

static const struct
{
	const char *name;
	AgLossKind kind;
	bool renews;
} losses[] = {
	{"absolute", AG_LOSS_ABSOLUTE, true}, {"percentage", AG_LOSS_PERCENTAGE, true},
	{"quantile", AG_LOSS_QUANTILE, true}, {"Huber", AG_LOSS_HUBER, false},
	{"fair", AG_LOSS_FAIR, false},        {"pseudo-Huber", AG_LOSS_PSEUDO_HUBER, false},
	{"Poisson", AG_LOSS_POISSON, false},  {"gamma", AG_LOSS_GAMMA, false},
	{"Tweedie", AG_LOSS_TWEEDIE, false},
};
#define N_LOSSES ((int) (sizeof losses / sizeof losses[0]))

static AgBoostParams
with_loss(AgBoostParams params, AgLossKind kind)
{
	params.loss = kind;
	params.loss_alpha = 0.2;
	params.loss_delta = 0.7;
	params.loss_power = 1.4;
	params.loss_step = 0.5;
	return params;
}

/* Each loss best first, level by level with a bag, and by symmetric trees; with weights, some of them 0. */
static void
check_losses(void)
{
	for (int l = 0; l < N_LOSSES; l++)
		for (int kind = 0; kind < 3; kind++)
		{
			AgBoostParams params = kind == 1 ? xgb_params(2) : gbm_params(2);
			AgTrainData data;
			Bench bench;
			Table table;
			char what[64];

			bench_init(&bench, 1);
			table_init(&table, 500 + 31 * kind, 4, kind == 2 ? 0 : 1, 20, kind == 1 ? 0.1 : 0.0, 0,
					   11 + (uint64_t) l);
			make_positive(&table);
			for (int64_t i = 0; i < table.n_rows; i += 3)
				table.weight[i] = 0.0;
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
			data.weight = (l + kind) % 2 == 1 ? table.weight : NULL;
			params = with_loss(params, losses[l].kind);
			params.num_leaves = kind == 0 ? 9 : params.num_leaves;
			if (kind == 1)
			{
				params.bagging_fraction = 0.6;
				params.bagging_freq = 1;
				params.max_depth = 3;
			}
			if (kind == 2)
			{
				params.max_depth = 3;
				params.leaf_steps = losses[l].renews ? 1 : 3;
				params.grow_order = AG_GROW_SYMMETRIC;
			}
			snprintf(what, sizeof what, "%s loss, kind %d", losses[l].name, kind);
			check_same(what, &table, &data, &params);
			table_end(&table);
			bench_end(&bench);
		}
}

/* A tree a level, levels that cross, and nearly all labels alike. */
static void
check_quantiles(void)
{
	static const double levels[] = {0.05, 0.5, 0.9};

	for (int variant = 0; variant < 3; variant++)
	{
		AgBoostParams params = variant == 1 ? xgb_params(2) : gbm_params(2);
		AgBoostResult ours, theirs;
		AgWriter our_bytes, their_bytes;
		AgTrainData data;
		There there;
		Bench here;
		Table table;

		bench_init(&here, 1);
		there_init(&there, INT64_C(1) << 40);
		table_init(&table, 400, 3, 1, 9, 0.1, 0, 17);
		for (int64_t i = 0; variant == 2 && i < table.n_rows; i++)
			table.target[i] = i % 50 == 0 ? -0.0 : i % 7 == 0 ? 1.0 : 0.0;
		table_bin(&table, &here.ctx, 254);
		data = table_data(&table, AG_PROBLEM_QUANTILE, 0);
		if (variant == 1)
			params.max_depth = 3;
		else
			params.num_leaves = 12;
		data.n_quantiles = 3;
		data.quantiles = levels;
		data.stop_metric = AG_METRIC_PINBALL_LOSS;
		data.weight = variant == 1 ? table.weight : NULL;
		AG_REQUIRE(train(&here.ctx, &data, &params, &table, &ours) == AG_OK);
		AG_REQUIRE(train(&there.bench.ctx, &data, &params, &table, &theirs) == AG_OK);
		if (!AG_CHECK(theirs.on_gpu))
			fprintf(stderr, "    quantiles: %s\n", theirs.cpu_because);
		our_bytes = model_bytes(&here.ctx, ours.trees);
		their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
		AG_CHECK(same_bytes(&our_bytes, &their_bytes) && ours.trees->n_nodes > 0);
		AG_CHECK(memcmp(ours.valid_proba, theirs.valid_proba,
						(size_t) data.n_valid * 3 * sizeof(double)) == 0);
		ag_writer_free(&our_bytes);
		ag_writer_free(&their_bytes);
		ag_boost_result_free(&here.ctx, &ours);
		ag_boost_result_free(&there.bench.ctx, &theirs);
		ag_bins_leave_devices(table.bins);
		table_end(&table);
		there_end(&there);
		bench_end(&here);
	}
}

/* ---- leaves by weights ---- */

static void
check_weighed_leaves(void)
{
	for (int p = 0; p < 3; p++)
		for (int steps = 1; steps < 4; steps += 2)
		{
			static const AgProblem problems[] = {AG_PROBLEM_REGRESSION, AG_PROBLEM_BINARY,
												 AG_PROBLEM_MULTICLASS};
			AgBoostParams params = cat_params(2);
			AgTrainData data;
			Bench bench;
			Table table;

			bench_init(&bench, 1);
			table_init(&table, 450, 3, 1, 2, 0.1, p + (p > 0), 23);
			table_bin(&table, &bench.ctx, 254);
			data = table_data(&table, problems[p], p + (p > 0));
			data.weight = steps > 1 ? table.weight : NULL;
			params.leaf_method = AG_LEAF_GRADIENT;
			params.leaf_steps = steps;
			params.max_depth = 3;
			check_same("leaves by weights", &table, &data, &params);
			table_end(&table);
			bench_end(&bench);
		}
}

/* ---- monotone constraints ---- */

/* Up with the first number, down with the second; the third is free. */
static void
check_monotone(void)
{
	static const int8_t directions[] = {1, -1, 0, 0, 0};

	for (int variant = 0; variant < 8; variant++)
	{
		AgBoostParams params = variant % 2 == 0 ? gbm_params(3) : xgb_params(2);
		AgProblem problem = variant / 2 % 2 == 0 ? AG_PROBLEM_REGRESSION : AG_PROBLEM_BINARY;
		AgTrainData data;
		Bench bench;
		Table table;
		char what[40];

		bench_init(&bench, 1);
		table_init(&table, 700, 3, 2, 30, variant % 3 == 0 ? 0.1 : 0.0, 2, 31 + (uint64_t) variant);
		for (int64_t i = 0; i < table.n_rows; i++) /* waves that the constraints must cut */
			table.target[i] += 2.0 * sin(25.0 * (isnan(table.numbers[i]) ? 0.0 : table.numbers[i]));
		table_bin(&table, &bench.ctx, 254);
		data = table_data(&table, problem, problem == AG_PROBLEM_BINARY ? 2 : 0);
		data.monotone = directions;
		data.weight = variant == 4 ? table.weight : NULL;
		if (variant >= 4)
		{
			params.lambda_l1 = 0.2;
			params.path_smooth = variant == 6 ? 2.0 : 0.0;
			params.max_delta_step = variant == 5 ? 0.4 : 0.0;
			params.extra_trees = variant == 7;
		}
		snprintf(what, sizeof what, "monotone, variant %d", variant);
		check_same(what, &table, &data, &params);
		table_end(&table);
		bench_end(&bench);
	}
}

/* ---- metrics ---- */

static int n_valid_fetched;

static AgDeviceStatus
counted_valid(AgDevice *device, AgDeviceBoost *boost, double *scores)
{
	n_valid_fetched++;
	return table_of_ops.ops->boost_valid(device, boost, scores);
}

/* The same rounds, the same best one, the same values of the metric; and scores come back only where the device can't watch it. */
static void
check_metric(AgMetric metric, AgProblem problem, int n_classes, AgLossKind loss, bool is_weighted,
			 bool is_there)
{
	AgDeviceOps ops = *table_of_ops.ops;
	AgBoostParams params = gbm_params(12);
	AgBoostResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	AgTrainData data;
	There there;
	Bench here;
	Table table;

	bench_init(&here, 1);
	there_init(&there, INT64_C(1) << 40);
	ops.boost_valid = counted_valid;
	there.gpu.ops = &ops;
	n_valid_fetched = 0;
	table_init(&table, 10 * 2048 + 777, 2, 0, 1, 0.05, n_classes, 41);
	make_positive(&table);
	table_bin(&table, &here.ctx, 16);
	data = table_data(&table, problem, n_classes);
	data.stop_metric = metric;
	for (int64_t i = 0; i < table.n_rows;
		 i++) /* few rows to learn, many to look at: that overfits soon */
		if (i < 300)
			table.train[i] = (uint32_t) i;
		else
			table.valid[i - 300] = (uint32_t) i;
	data.n_train = 300;
	data.n_valid = table.n_rows - 300;
	data.weight = data.metric_weight = is_weighted ? table.weight : NULL;
	params.loss = loss;
	params.loss_power = 1.5;
	params.learning_rate = 0.5;
	params.min_data_in_leaf = 3;
	params.num_leaves = 8;
	params.early_stop_rounds = 3;
	AG_REQUIRE(train(&here.ctx, &data, &params, &table, &ours) == AG_OK);
	AG_REQUIRE(train(&there.bench.ctx, &data, &params, &table, &theirs) == AG_OK);
	AG_CHECK(theirs.on_gpu);
	our_bytes = model_bytes(&here.ctx, ours.trees);
	their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
	AG_CHECK(same_bytes(&our_bytes, &their_bytes));
	AG_CHECK_EQ(ours.best_round, theirs.best_round);
	AG_CHECK_EQ(ours.rounds_run, theirs.rounds_run);
	AG_CHECK(memcmp(&ours.best_value, &theirs.best_value, sizeof(double)) == 0);
	AG_CHECK(memcmp(&ours.history, &theirs.history, sizeof ours.history) == 0);
	AG_CHECK(memcmp(ours.valid_proba, theirs.valid_proba,
					(size_t) (data.n_valid * (n_classes > 0 ? n_classes : 1)) * sizeof(double)) ==
			 0);
	AG_CHECK_EQ(n_valid_fetched, is_there ? 0 : ours.rounds_run);
	ag_writer_free(&our_bytes);
	ag_writer_free(&their_bytes);
	ag_boost_result_free(&here.ctx, &ours);
	ag_boost_result_free(&there.bench.ctx, &theirs);
	ag_bins_leave_devices(table.bins);
	table_end(&table);
	there_end(&there);
	bench_end(&here);
}

static void
check_metrics(void)
{
	check_metric(AG_METRIC_LOG_LOSS, AG_PROBLEM_BINARY, 2, AG_LOSS_AUTO, false, true);
	check_metric(AG_METRIC_ACCURACY, AG_PROBLEM_BINARY, 2, AG_LOSS_AUTO, true, true);
	check_metric(AG_METRIC_ROC_AUC, AG_PROBLEM_BINARY, 2, AG_LOSS_AUTO, false, false);
	check_metric(AG_METRIC_LOG_LOSS, AG_PROBLEM_MULTICLASS, 3, AG_LOSS_AUTO, true, true);
	check_metric(AG_METRIC_F1_MICRO, AG_PROBLEM_MULTICLASS, 3, AG_LOSS_AUTO, false, true);
	check_metric(AG_METRIC_RMSE, AG_PROBLEM_REGRESSION, 0, AG_LOSS_AUTO, true, true);
	check_metric(AG_METRIC_MSE, AG_PROBLEM_REGRESSION, 0, AG_LOSS_TWEEDIE, false, true);
	check_metric(AG_METRIC_MAE, AG_PROBLEM_REGRESSION, 0, AG_LOSS_AUTO, false, true);
	check_metric(AG_METRIC_MAPE, AG_PROBLEM_REGRESSION, 0, AG_LOSS_AUTO, true, true);
	check_metric(AG_METRIC_SMAPE, AG_PROBLEM_REGRESSION, 0, AG_LOSS_POISSON, false, true);
	check_metric(AG_METRIC_R2, AG_PROBLEM_REGRESSION, 0, AG_LOSS_AUTO, false, false);
}

int
main(void)
{
	there_begin();
	check_losses();
	check_quantiles();
	check_weighed_leaves();
	check_monotone();
	check_metrics();
	return ag_unit_done("cuda losses");
}
