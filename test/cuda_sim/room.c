/*
 * room.c - a share of memory that models of several sizes and matrices take turns in; and how often the host launches and waits.
 */
#include "unit/forests.h"

#include "cuda_sim/lib/there.h"

static int n_made, n_freed;

static AgDeviceStatus
counted_create(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **matrix)
{
	n_made++;
	return noted_create(device, bins, matrix);
}

static void
counted_free(AgDevice *device, AgDeviceMatrix *matrix)
{
	n_freed++;
	table_of_ops.ops->matrix_free(device, matrix);
}

static AgDeviceOps
counting_ops(void)
{
	AgDeviceOps ops = *table_of_ops.ops;

	ops.matrix_create = counted_create;
	ops.matrix_free = counted_free;
	n_made = n_freed = 0;
	return ops;
}

static void
wide_table(Table *table, const AgContext *ctx, uint64_t seed)
{
	table_init(table, 1500, 38, 2, 12, 0.1, 2, seed);
	table_bin(table, ctx, 16);
}

/* Trains there; the model is the CPU's own. True: on the GPU. */
static bool
same_there(There *there, const Table *table, const AgBoostParams *params)
{
	AgTrainData data = table_data(table, AG_PROBLEM_BINARY, 2);
	AgBoostResult ours, theirs;
	AgWriter our_bytes, their_bytes;
	bool on_gpu;
	Bench here;

	bench_init(&here, 1);
	AG_REQUIRE(ag_boost_train(&here.ctx, &data, params, &ours) == AG_OK);
	AG_REQUIRE(ag_boost_train(&there->bench.ctx, &data, params, &theirs) == AG_OK);
	our_bytes = model_bytes(&here.ctx, ours.trees);
	their_bytes = model_bytes(&there->bench.ctx, theirs.trees);
	AG_CHECK(same_bytes(&our_bytes, &their_bytes));
	on_gpu = theirs.on_gpu;
	if (!on_gpu)
		fprintf(stderr, "    %s\n", theirs.cpu_because);
	ag_writer_free(&our_bytes);
	ag_writer_free(&their_bytes);
	ag_boost_result_free(&here.ctx, &ours);
	ag_boost_result_free(&there->bench.ctx, &theirs);
	bench_end(&here);
	return on_gpu;
}

/* What a model needs beside the matrix. */
static int64_t
need_of(const Table *table, const AgBoostParams *params)
{
	AgDeviceOps ops = counting_ops();
	There there;

	there_init(&there, INT64_C(1) << 40);
	there.gpu.ops = &ops;
	AG_CHECK(same_there(&there, table, params));
	ag_bins_leave_devices(table->bins);
	there_end(&there);
	return made_spare;
}

/* A small model finds room for the whole matrix; a larger one has it made smaller, and after it there is room again. */
static void
check_sizes(void)
{
	AgBoostParams small = gbm_params(1), large = gbm_params(1);
	AgDeviceOps ops;
	int64_t need;
	Bench bench;
	Table table;
	There there;

	bench_init(&bench, 1);
	wide_table(&table, &bench.ctx, 6);
	small.num_leaves = 3;
	need = need_of(&table, &large);
	ops = counting_ops();
	there_init(&there, need + 60000);
	there.gpu.ops = &ops;
	AG_CHECK(same_there(&there, &table, &small));
	AG_CHECK(n_made == 1 && made_layout.has_columns && made_layout.n_blocks == 0);
	AG_CHECK(same_there(&there, &table, &small));
	AG_CHECK_EQ(n_made, 1);
	AG_CHECK(same_there(&there, &table, &large));
	AG_CHECK(n_made == 2 && n_freed == 1 && made_layout.n_blocks > 1);
	AG_CHECK(same_there(&there, &table, &large));
	AG_CHECK_EQ(n_made, 2);
	AG_CHECK(same_there(&there, &table, &small));
	AG_CHECK(n_made == 3 && n_freed == 2 && made_layout.has_columns && made_layout.n_blocks == 0);
	table_end(&table);
	AG_CHECK_EQ(n_freed, 3);
	there_end(&there);
	bench_end(&bench);
}

/* Matrices that nobody uses make room for the next one; those in use don't. */
static void
check_matrices(void)
{
	AgBoostParams params = gbm_params(1);
	AgDeviceMatrix *held;
	AgDeviceOps ops;
	int64_t need;
	Bench bench;
	Table tables[2];
	There there;

	bench_init(&bench, 1);
	wide_table(&tables[0], &bench.ctx, 6);
	wide_table(&tables[1], &bench.ctx, 7);
	need = need_of(&tables[0], &params);
	ops = counting_ops();
	there_init(&there, need + 230000); /* one of them and the model */
	there.gpu.ops = &ops;
	for (int i = 0; i < 4; i++)
	{
		AG_CHECK(same_there(&there, &tables[i % 2], &params));
		AG_CHECK(n_made == i + 1 && n_freed == i && made_layout.has_columns);
	}
	AG_REQUIRE(ag_bins_on_device(&there.bench.ctx, tables[1].bins, &there.gpu, 0, &held) ==
			   AG_DEVICE_OK);
	AG_CHECK(same_there(&there, &tables[0], &params));
	AG_CHECK(n_made == 5 && n_freed == 3 && !made_layout.has_columns);
	ag_bins_let_go(tables[1].bins, held);
	AG_CHECK(same_there(&there, &tables[0], &params));
	AG_CHECK(n_made == 6 && n_freed == 5 && made_layout.has_columns);
	table_end(&tables[0]);
	table_end(&tables[1]);
	there_end(&there);
	bench_end(&bench);
}

/* Trainings at the same time share a whole copy; one whose rows come in blocks has a place for one block, and is nobody else's. */
static void
check_blocks_apart(void)
{
	AgBoostParams params = gbm_params(1);
	AgDeviceMatrix *first, *second, *third;
	AgDeviceOps ops;
	int64_t need;
	Bench bench;
	Table table;
	There there[3];

	bench_init(&bench, 1);
	wide_table(&table, &bench.ctx, 6);
	need = need_of(&table, &params);
	ops = counting_ops();
	for (int i = 0; i < 3; i++)
	{
		there_init(&there[i], need + (i < 2 ? 60000 : 400000));
		there[i].gpu.ops = &ops;
	}
	AG_REQUIRE(ag_bins_on_device(&bench.ctx, table.bins, &there[0].gpu, need, &first) ==
			   AG_DEVICE_OK);
	AG_CHECK(made_layout.n_blocks > 1);
	AG_REQUIRE(ag_bins_on_device(&bench.ctx, table.bins, &there[1].gpu, need, &second) ==
			   AG_DEVICE_OK);
	AG_CHECK(n_made == 2 && first != second);
	AG_REQUIRE(ag_bins_on_device(&bench.ctx, table.bins, &there[2].gpu, need, &third) ==
			   AG_DEVICE_OK);
	AG_CHECK(n_made == 3 && made_layout.n_blocks == 0);
	ag_bins_let_go(table.bins, first);
	ag_bins_let_go(table.bins, second);
	ag_bins_let_go(table.bins, third);
	table_end(&table);
	for (int i = 0; i < 3; i++)
	{
		AgDeviceMemory memory;

		ops.memory(there[i].gpu.device, &memory);
		AG_CHECK_EQ(memory.used_bytes, 0);
		ops.close(there[i].gpu.device);
		bench_end(&there[i].bench);
	}
	bench_end(&bench);
}

/* ---- launches and waits ---- */

/* Of a tree, counted over two more of them. */
static void
count_tree(AgBoostParams params, const Table *table, double *launches, double *waits)
{
	AgTrainData data = table_data(table, AG_PROBLEM_BINARY, 2);
	long n_launches[2], n_waits[2];

	for (int pass = 0; pass < 2; pass++)
	{
		AgBoostResult result;
		There there;

		there_init(&there, INT64_C(1) << 40);
		params.num_boost_round = 2 + 2 * pass;
		n_launches[pass] = -sim_n_launches();
		n_waits[pass] = -sim_n_waits();
		AG_REQUIRE(ag_boost_train(&there.bench.ctx, &data, &params, &result) == AG_OK);
		AG_CHECK(result.on_gpu && result.trees->n_trees == (uint32_t) params.num_boost_round);
		n_launches[pass] += sim_n_launches();
		n_waits[pass] += sim_n_waits();
		ag_boost_result_free(&there.bench.ctx, &result);
		ag_bins_leave_devices(table->bins);
		there_end(&there);
	}
	*launches = (double) (n_launches[1] - n_launches[0]) / 2.0;
	*waits = (double) (n_waits[1] - n_waits[0]) / 2.0;
}

/* The host waits as often for a deep tree as for a shallow one; best first, where nobody knows how many steps it takes, once in a while. */
static void
check_waits(void)
{
	AgBoostParams xgb = xgb_params(1), symmetric = gbm_params(1), gbm = gbm_params(1);
	double launches, waits, more_launches, more_waits;
	Bench bench;
	Table table;

	if (!is_simulated)
		return;
	bench_init(&bench, 1);
	table_init(&table, 3000, 6, 0, 1, 0.0, 2, 6);
	table_bin(&table, &bench.ctx, 100);
	xgb.max_depth = 3;
	count_tree(xgb, &table, &launches, &waits);
	xgb.max_depth = 6;
	count_tree(xgb, &table, &more_launches, &more_waits);
	printf("depth 3: %.1f launches and %.1f waits a tree, depth 6: %.1f and %.1f; ", launches,
		   waits, more_launches, more_waits);
	AG_CHECK(waits == more_waits && waits <= 4.0);
	AG_CHECK(more_launches > launches && more_launches <= 80.0);
	symmetric.grow_order = AG_GROW_SYMMETRIC;
	symmetric.max_depth = 2;
	count_tree(symmetric, &table, &launches, &waits);
	symmetric.max_depth = 6;
	count_tree(symmetric, &table, &more_launches, &more_waits);
	printf("symmetric, depth 2: %.1f and %.1f, depth 6: %.1f and %.1f; ", launches, waits,
		   more_launches, more_waits);
	AG_CHECK(waits == more_waits && waits <= 5.0);
	gbm.min_data_in_leaf = 1;
	count_tree(gbm, &table, &launches, &waits);
	printf("31 leaves best first: %.1f and %.1f\n", launches, waits);
	AG_CHECK(waits <= 8.0 && launches >= 20.0 * waits);
	table_end(&table);
	bench_end(&bench);
}

int
main(void)
{
	there_begin();
	check_sizes();
	check_matrices();
	check_blocks_apart();
	check_waits();
	return ag_unit_done("cuda room");
}
