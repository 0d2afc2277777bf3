/*
 * forest.c - forests on the device against forests on the CPU: the same bytes, out-of-bag predictions too. Links with the kernels, on
 * the simulator or on a real GPU.
 */
#include "unit/forests.h"

#include "cuda_sim/lib/there.h"

/* Grows here and there; the model's bytes and all predictions must be equal. */
static void
check_same(const char *what, const Table *table, const AgTrainData *data,
		   const AgForestParams *params)
{
	There there;
	Bench here;
	AgForestResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	size_t n_out = (size_t) (data->n_classes > 0 ? data->n_classes : 1);

	there_init(&there, INT64_C(1) << 40);
	bench_init(&here, 1);
	ours = train(&here, data, params);
	theirs = train(&there.bench, data, params);
	if (!AG_CHECK(theirs.on_gpu))
		fprintf(stderr, "    %s: %s %s\n", what, theirs.cpu_because,
				is_simulated && sim_fault() != NULL ? sim_fault() : "");
	our_bytes = model_bytes(&here.ctx, ours.trees);
	their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
	AG_CHECK_EQ(ours.n_trees, theirs.n_trees);
	if (!AG_CHECK(same_bytes(&our_bytes, &their_bytes)))
		fprintf(stderr, "    %s: other trees (%u against %u nodes)\n", what,
				(unsigned) theirs.trees->n_nodes, (unsigned) ours.trees->n_nodes);
	AG_CHECK(memcmp(ours.valid_proba, theirs.valid_proba,
					(size_t) data->n_valid * n_out * sizeof(double)) == 0);
	AG_CHECK((ours.oob_proba == NULL) == (theirs.oob_proba == NULL));
	if (ours.oob_proba != NULL)
	{
		AG_CHECK(memcmp(ours.oob_proba, theirs.oob_proba,
						(size_t) data->n_train * n_out * sizeof(double)) == 0);
		AG_CHECK(memcmp(ours.oob_count, theirs.oob_count,
						(size_t) data->n_train * sizeof(uint32_t)) == 0);
	}
	ag_writer_free(&our_bytes);
	ag_writer_free(&their_bytes);
	ag_forest_result_free(&here.ctx, &ours);
	ag_forest_result_free(&there.bench.ctx, &theirs);
	ag_bins_leave_devices(table->bins);
	there_end(&there);
	bench_end(&here);
}

/* ---- parameters ---- */

/* Every parameter that has code of its own, one after the other. */
static void
vary(AgForestParams *params, int variant, bool is_classes)
{
	switch (variant)
	{
		case 1: /* best first, with nodes grown in vain */
			params->max_leaf_nodes = 12;
			params->max_samples = 0.5;
			break;
		case 2:
			params->min_samples_leaf = 5;
			params->min_samples_split = 12;
			params->max_features = 0.5;
			break;
		case 3:
			params->min_weight_fraction_leaf = 0.02;
			params->max_depth = 6;
			params->criterion = is_classes ? AG_CRITERION_ENTROPY : AG_CRITERION_FRIEDMAN_MSE;
			break;
		case 4:
			params->min_impurity_decrease = 0.002;
			params->class_weight = is_classes ? AG_CLASS_WEIGHT_SUBSAMPLE : AG_CLASS_WEIGHT_NONE;
			params->bootstrap = !params->bootstrap;
			break;
		case 5:
			params->class_weight = is_classes ? AG_CLASS_WEIGHT_BALANCED : AG_CLASS_WEIGHT_NONE;
			params->max_features = AG_FEATURES_ALL;
			params->max_leaf_nodes = 40;
			break;
		default:
			break;
	}
}

static void
check_parameters(void)
{
	for (int is_extra = 0; is_extra < 2; is_extra++)
		for (int c = 0; c < 3; c++)
			for (int variant = 0; variant < 6; variant++)
			{
				AgForestParams params = forest_params(2, is_extra != 0);
				AgTrainData data;
				Bench bench;
				Table table;
				char what[64];

				bench_init(&bench, 1);
				table_init(&table, 150 + 17 * variant, 4, 2, 30, variant % 2 ? 0.1 : 0.0,
						   cases[c].n_classes, 7 + (uint64_t) variant);
				table_bin(&table, &bench.ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				data.weight = variant == 3 || variant == 5 ? table.weight : NULL;
				vary(&params, variant, cases[c].n_classes > 0);
				snprintf(what, sizeof what, "%s, problem %d, variant %d", is_extra ? "XT" : "RF", c,
						 variant);
				check_same(what, &table, &data, &params);
				table_end(&table);
				bench_end(&bench);
			}
}

/* ---- shapes ---- */

static void
check_shape(const char *what, int64_t n_rows, int n_numbers, int n_categories, int max_bins,
			double share_missing, int n_classes, AgForestParams params)
{
	AgTrainData data;
	Bench bench;
	Table table;

	bench_init(&bench, 1);
	table_init(&table, n_rows, n_numbers, n_categories, 300, share_missing, n_classes, 5);
	table_bin(&table, &bench.ctx, max_bins);
	data = table_data(&table,
					  n_classes == 0   ? AG_PROBLEM_REGRESSION
					  : n_classes == 2 ? AG_PROBLEM_BINARY
									   : AG_PROBLEM_MULTICLASS,
					  n_classes);
	check_same(what, &table, &data, &params);
	table_end(&table);
	bench_end(&bench);
}

static void
check_shapes(void)
{
	AgForestParams rf = forest_params(2, false), xt = forest_params(2, true), few;

	check_shape("one row", 1, 2, 0, 254, 0.0, 2, rf);
	check_shape("two rows", 2, 1, 0, 254, 0.0, 0, xt);
	check_shape("five rows", 5, 3, 1, 254, 0.0, 3, rf);
	check_shape("33 rows", 33, 1, 1, 254, 0.3, 2, xt);
	check_shape("nothing but missing values", 60, 2, 1, 254, 1.0, 2, rf);
	check_shape("two bins", 100, 3, 1, 2, 0.1, 0, rf);
	check_shape("many classes, whose cells aren't in shared memory", 300, 3, 1, 254, 0.05, 40, rf);
	check_shape("many classes, at random", 300, 3, 1, 254, 0.05, 40, xt);
	few = rf;
	few.n_estimators = 1;
	few.max_leaf_nodes = 3;
	check_shape("nodes of a whole block, and too little room for nodes", 4600, 2, 1, 254, 0.05, 0,
				few);
	few.is_extra = true;
	few.max_leaf_nodes = 0;
	few.max_depth = 5;
	check_shape("nodes of a whole block, at random", 3500, 2, 1, 254, 0.05, 3, few);
}

/* One or several processors, other orders of lanes, less shared memory: nothing changes. */
static void
check_machines(void)
{
	for (int order = 0; is_simulated && order < 3; order++)
	{
		sim_machine_reset(2 * order + 1, order == 1 ? 48 << 10 : 227 << 10, order);
		check_shape("another machine", 200, 4, 1, 254, 0.1, 5, forest_params(3, order == 2));
	}
	if (is_simulated)
		sim_machine_reset(2, 227 << 10, 0);
}

/* ---- memory ---- */

static AgForestResult
train_within(int64_t limit, const Table *table, const AgTrainData *data,
			 const AgForestParams *params, const AgWriter *our_bytes)
{
	AgDeviceOps ops = *table_of_ops.ops;
	AgForestResult result, told;
	AgWriter bytes;
	There there;

	there_init(&there, limit);
	ops.matrix_create = noted_create;
	there.gpu.ops = &ops;
	told = result = train(&there.bench, data, params);
	bytes = model_bytes(&there.bench.ctx, result.trees);
	AG_CHECK(our_bytes == NULL || same_bytes(our_bytes, &bytes));
	ag_writer_free(&bytes);
	ag_forest_result_free(&there.bench.ctx, &result);
	ag_bins_leave_devices(table->bins);
	there_end(&there);
	return told;
}

/* One tree at a time, by rows alone; in blocks; and not at all where not even a column fits. */
static void
check_memory(void)
{
	AgForestParams params = forest_params(2, false);
	AgForestResult ours, told;
	AgWriter bytes;
	Bench here;
	Table table;
	AgTrainData data;
	int64_t rows, need;

	bench_init(&here, 1);
	table_init(&table, 1500, 39, 1, 12, 0.1, 2, 6);
	table_bin(&table, &here.ctx, 16);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	rows = table.bins->n_rows * table.bins->row_stride;
	params.max_depth = 4;
	ours = train(&here, &data, &params);
	bytes = model_bytes(&here.ctx, ours.trees);
	told = train_within(INT64_C(1) << 40, &table, &data, &params, &bytes);
	AG_CHECK(told.on_gpu && made_layout.has_columns);
	need = made_spare;
	told = train_within(need + rows + 40000, &table, &data, &params, &bytes);
	AG_CHECK(told.on_gpu && !made_layout.has_columns && made_layout.n_blocks == 0);
	told = train_within(need + 45000, &table, &data, &params, &bytes);
	AG_CHECK(told.on_gpu && made_layout.n_blocks > 2);
	told = train_within(need, &table, &data, &params, &bytes);
	AG_CHECK(!told.on_gpu && told.gpu_failed && strstr(told.cpu_because, "share") != NULL);
	ag_writer_free(&bytes);
	ag_forest_result_free(&here.ctx, &ours);
	table_end(&table);
	bench_end(&here);
}

/* ---- bins that come in blocks ---- */

/* So that a forest has room for about so many of the table's rows. */
static int64_t
limit_for(const Table *table, const AgTrainData *data, const AgForestParams *params, int64_t n_rows)
{
	const AgBins *bins = table->bins;
	int64_t small =
		12 * 512 + 64 * bins->n_features; /* what there is of a matrix beside its rows */

	for (int f = 0; f < bins->n_features; f++)
		small += bins->features[f].is_category ? 0 : 16 * bins->features[f].n_bins;
	(void) train_within(INT64_C(1) << 40, table, data, params, NULL);
	return made_spare + small + n_rows * bins->row_stride;
}

/* Trees whose nodes of many rows are split by columns, and the others on rows that are gathered: what the CPU grows. */
static void
check_streamed(void)
{
	for (int is_extra = 0; is_extra < 2; is_extra++)
		for (int c = 0; c < 3; c++)
			for (int variant = 0; variant < 6; variant++)
			{
				AgForestParams params = forest_params(2, is_extra != 0);
				AgForestResult ours, told;
				AgTrainData data;
				AgWriter bytes;
				Bench here;
				Table table;
				int64_t room = variant == 0 ? 150 : variant == 5 ? 40 : 330;

				bench_init(&here, 1);
				table_init(&table, 700 + 13 * variant, 10, 3, 30, variant % 2 ? 0.1 : 0.0,
						   cases[c].n_classes, 50 + (uint64_t) variant);
				table_bin(&table, &here.ctx, 254);
				data = table_data(&table, cases[c].problem, cases[c].n_classes);
				data.weight = variant == 3 ? table.weight : NULL;
				vary(&params, variant, cases[c].n_classes > 0);
				ours = train(&here, &data, &params);
				bytes = model_bytes(&here.ctx, ours.trees);
				told = train_within(limit_for(&table, &data, &params, room), &table, &data, &params,
									&bytes);
				if (!AG_CHECK(told.on_gpu && made_layout.n_blocks > 1))
					fprintf(stderr, "    %s, problem %d, variant %d: %s, %d blocks %s\n",
							is_extra ? "XT" : "RF", c, variant, told.cpu_because,
							made_layout.n_blocks,
							is_simulated && sim_fault() != NULL ? sim_fault() : "");
				ag_writer_free(&bytes);
				ag_forest_result_free(&here.ctx, &ours);
				table_end(&table);
				bench_end(&here);
			}
}

/* Nodes of a whole block of threads below those that don't fit; several trees that want other columns than fit at a time. */
static void
check_streamed_large(void)
{
	AgForestParams params = forest_params(6, false);
	AgForestResult ours, told;
	AgTrainData data;
	AgWriter bytes;
	Bench here;
	Table table;

	bench_init(&here, 1);
	table_init(&table, 9000, 12, 0, 1, 0.02, 0, 8);
	table_bin(&table, &here.ctx, 60);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	params.max_depth = 5;
	params.max_features = 0.4;
	ours = train(&here, &data, &params);
	bytes = model_bytes(&here.ctx, ours.trees);
	told = train_within(limit_for(&table, &data, &params, 3400), &table, &data, &params, &bytes);
	AG_CHECK(told.on_gpu && made_layout.n_blocks == 3);
	ag_writer_free(&bytes);
	ag_forest_result_free(&here.ctx, &ours);
	table_end(&table);
	bench_end(&here);
}

/* ---- failures ---- */

/* Whatever fails on the device, the model is the CPU's own, says why, and nothing of it stays on the device. */
static void
check_failures(bool is_streamed)
{
	AgForestParams params = forest_params(is_streamed ? 2 : 5, false);
	AgForestResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	bool was_there = false;
	Bench here;
	Table table;
	AgTrainData data;
	There there;
	int64_t limit = INT64_C(1) << 40;

	bench_init(&here, 1);
	table_init(&table, is_streamed ? 600 : 90, 3, is_streamed ? 30 : 1, 9, 0.1, 2, 6);
	table_bin(&table, &here.ctx, 254);
	data = table_data(&table, AG_PROBLEM_BINARY, 2);
	ours = train(&here, &data, &params);
	our_bytes = model_bytes(&here.ctx, ours.trees);
	if (is_streamed)
		limit = limit_for(&table, &data, &params, 200);
	for (long at = -1; at < (!is_simulated ? 0
							 : is_streamed ? 260
										   : 80);
		 at += (at < 40 ? 1 : 7) * (is_streamed ? 3 : 1))
	{
		bool by_launch = at % 2 != 0;

		there_init(&there, at < 0 ? 9000 : limit); /* first: too small a share */
		if (at >= 0)
			sim_fail_after(by_launch ? -1 : at / 2, by_launch ? at / 2 : -1);
		theirs = train(&there.bench, &data, &params);
		their_bytes = model_bytes(&there.bench.ctx, theirs.trees);
		AG_CHECK(same_bytes(&our_bytes, &their_bytes));
		AG_CHECK(theirs.on_gpu == (theirs.cpu_because[0] == '\0'));
		AG_CHECK(theirs.gpu_failed == !theirs.on_gpu);
		AG_CHECK(!theirs.on_gpu || at > 6);
		was_there |= theirs.on_gpu;
		if (at < 0)
			AG_CHECK(strstr(theirs.cpu_because, "share") != NULL);
		AG_CHECK_EQ(there.gpu.is_lost, by_launch && at >= 0 && !theirs.on_gpu);
		ag_writer_free(&their_bytes);
		ag_forest_result_free(&there.bench.ctx, &theirs);
		ag_bins_leave_devices(table.bins);
		there_end(&there);
		if (is_simulated)
			sim_machine_reset(2, 227 << 10, 0);
	}
	AG_CHECK(was_there || !is_simulated);
	ag_writer_free(&our_bytes);
	ag_forest_result_free(&here.ctx, &ours);
	table_end(&table);
	bench_end(&here);
}

/* Time and cancels end trees that come in blocks, too. */
static void
check_streamed_ends(void)
{
	AgForestParams params = forest_params(4, true);
	AgForestResult result;
	_Atomic bool cancel = true;
	AgTrainData data;
	Bench here;
	Table table;
	There there;

	bench_init(&here, 1);
	table_init(&table, 900, 20, 1, 40, 0.0, 0, 8);
	table_bin(&table, &here.ctx, 254);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	there_init(&there, limit_for(&table, &data, &params, 300));
	there.bench.ctx.deadline_ns = ag_clock_ns();
	result = train(&there.bench, &data, &params); /* one tree at least */
	AG_CHECK(result.on_gpu && result.n_trees == 1 && result.stopped_by_time);
	ag_forest_result_free(&there.bench.ctx, &result);
	there.bench.ctx.deadline_ns = INT64_MAX;
	there.bench.ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_forest_train(&there.bench.ctx, &data, &params, &result), AG_ERR_CANCELLED);
	there.bench.ctx.cancel = NULL;
	table_end(&table);
	there_end(&there);
	bench_end(&here);
}

/* What no device does is named; a cancel and the end of time are heard; what can't be paid for here is told of. */
static void
check_ends(void)
{
	AgForestParams params = forest_params(6, false);
	AgForestResult result;
	_Atomic bool cancel = true;
	Table table;
	AgTrainData data;
	There there;

	there_init(&there, INT64_C(1) << 40);
	table_init(&table, 300, 2, 1, 40, 0.0, 70, 8);
	table_bin(&table, &there.bench.ctx, 254);
	data = table_data(&table, AG_PROBLEM_MULTICLASS, 70);
	result = train(&there.bench, &data, &params);
	AG_CHECK(!result.on_gpu && !result.gpu_failed);
	AG_CHECK_STR(result.cpu_because, "forests of more than 64 classes are grown on the CPU only");
	ag_forest_result_free(&there.bench.ctx, &result);
	data = table_data(&table, AG_PROBLEM_REGRESSION, 0);
	there.bench.ctx.deadline_ns = ag_clock_ns();
	result = train(&there.bench, &data, &params); /* one tree at least */
	AG_CHECK(result.on_gpu && result.n_trees == 1 && result.stopped_by_time);
	ag_forest_result_free(&there.bench.ctx, &result);
	there.bench.ctx.deadline_ns = INT64_MAX;
	params.n_estimators = 60;
	params.model_bytes = 1;
	result = train(&there.bench, &data, &params);
	AG_CHECK(result.on_gpu && result.n_trees == AG_FOREST_LEAST_TREES && result.stopped_by_memory);
	ag_forest_result_free(&there.bench.ctx, &result);
	there.bench.ctx.cancel = &cancel;
	AG_CHECK_EQ(ag_forest_train(&there.bench.ctx, &data, &params, &result), AG_ERR_CANCELLED);
	there.bench.ctx.cancel = NULL;
	table_end(&table);
	there_end(&there);
}

int
main(void)
{
	there_begin();
	check_parameters();
	check_shapes();
	check_machines();
	check_memory();
	check_streamed();
	check_streamed_large();
	check_failures(false);
	check_failures(true);
	check_ends();
	check_streamed_ends();
	return ag_unit_done("cuda forest");
}
