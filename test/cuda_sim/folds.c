/*
 * folds.c - models and folds that share a GPU: the matrix goes there once, and each has what the CPU would have given it.
 */
#include <pthread.h>
#include <time.h>

#include "unit/forests.h"

#include "cuda_sim/lib/there.h"

#define N_FOLDS 3

/* ---- one matrix ---- */

static const AgDeviceOps *real_ops;
static _Atomic int n_made, n_freed;

static AgDeviceStatus
counted_create(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **matrix)
{
	n_made++;
	return real_ops->matrix_create(device, bins, matrix);
}

static void
counted_free(AgDevice *device, AgDeviceMatrix *matrix)
{
	n_freed++;
	real_ops->matrix_free(device, matrix);
}

/* Rows of fold k are validated, the others trained on. */
static AgTrainData
fold_data(const Table *table, int k, uint32_t *train_rows, uint32_t *valid_rows)
{
	AgTrainData data = table_data(table, AG_PROBLEM_BINARY, 2);

	data.n_train = data.n_valid = 0;
	for (uint32_t i = 0; i < (uint32_t) table->n_rows; i++)
		if ((int) (i % N_FOLDS) == k)
			valid_rows[data.n_valid++] = i;
		else
			train_rows[data.n_train++] = i;
	data.train_rows = train_rows;
	data.valid_rows = valid_rows;
	return data;
}

/* A fold's booster and forest, as bytes. */
static void
fit_fold(const AgContext *ctx, const AgTrainData *data, bool on_gpu, AgWriter *boosted,
		 AgWriter *forest)
{
	AgBoostParams gbm = gbm_params(2);
	AgForestParams rf = forest_params(2, false);
	AgForestResult grown;
	AgBoostResult result;

	AG_REQUIRE(ag_boost_train(ctx, data, &gbm, &result) == AG_OK);
	AG_CHECK(result.on_gpu == on_gpu);
	*boosted = model_bytes(ctx, result.trees);
	ag_boost_result_free(ctx, &result);
	AG_REQUIRE(ag_forest_train(ctx, data, &rf, &grown) == AG_OK);
	AG_CHECK(grown.on_gpu == on_gpu);
	*forest = model_bytes(ctx, grown.trees);
	ag_forest_result_free(ctx, &grown);
}

/* Each fold has its own share of the GPU, as trainings at the same time have. */
static void
check_folds(void)
{
	AgDeviceOps ops = *table_of_ops.ops;
	There there[N_FOLDS];
	uint32_t train_rows[400], valid_rows[400];
	Bench here;
	Table table;

	real_ops = table_of_ops.ops;
	ops.matrix_create = counted_create;
	ops.matrix_free = counted_free;
	bench_init(&here, 1);
	table_init(&table, 240, 3, 1, 12, 0.1, 2, 9);
	table_bin(&table, &here.ctx, 254);
	for (int k = 0; k < N_FOLDS; k++)
	{
		there_init(&there[k], INT64_C(1) << 30);
		there[k].gpu.ops = &ops;
	}
	for (int k = 0; k < N_FOLDS; k++)
	{
		AgTrainData data = fold_data(&table, k, train_rows, valid_rows);
		AgWriter ours[2], theirs[2];

		fit_fold(&here.ctx, &data, false, &ours[0], &ours[1]);
		fit_fold(&there[k].bench.ctx, &data, true, &theirs[0], &theirs[1]);
		for (int i = 0; i < 2; i++)
		{
			AG_CHECK(same_bytes(&ours[i], &theirs[i]));
			ag_writer_free(&ours[i]);
			ag_writer_free(&theirs[i]);
		}
	}
	AG_CHECK_EQ(n_made, 1);
	table_end(&table);
	AG_CHECK_EQ(n_freed, 1);
	for (int k = 0; k < N_FOLDS; k++)
	{
		AgDeviceMemory memory;

		there[k].gpu.ops->memory(there[k].gpu.device, &memory);
		AG_CHECK_EQ(memory.used_bytes, 0);
	}
	for (int k = 0; k < N_FOLDS; k++)
	{
		there[k].gpu.ops->close(there[k].gpu.device);
		bench_end(&there[k].bench);
	}
	bench_end(&here);
}

/* ---- threads that ask for it at the same time ---- */

static AgDeviceStatus
slow_create(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **matrix)
{
	(void) device;
	(void) bins;
	n_made++;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	*matrix = (AgDeviceMatrix *) &n_made;
	return AG_DEVICE_OK;
}

static void
no_free(AgDevice *device, AgDeviceMatrix *matrix)
{
	(void) device;
	(void) matrix;
	n_freed++;
}

typedef struct Asker
{
	pthread_t thread;
	const AgContext *ctx;
	const AgBins *bins;
	AgGpu gpu;
	AgDeviceMatrix *matrix;
	AgDeviceStatus status;
} Asker;

static void *
ask(void *arg)
{
	Asker *asker = arg;

	asker->status = ag_bins_on_device(asker->ctx, asker->bins, &asker->gpu, 0, &asker->matrix);
	return NULL;
}

static void
check_threads(void)
{
	AgDeviceOps ops = {.matrix_create = slow_create, .matrix_free = no_free};
	Asker askers[6];
	Bench bench;
	Table table;

	n_made = n_freed = 0;
	bench_init(&bench, 1);
	table_init(&table, 50, 2, 0, 1, 0.0, 0, 3);
	table_bin(&table, &bench.ctx, 254);
	for (int i = 0; i < 6; i++)
	{
		askers[i] =
			(Asker){.ctx = &bench.ctx, .bins = table.bins, .gpu = {.ops = &ops, .name = "cuda:0"}};
		if (i == 5)
			strcpy(askers[i].gpu.name, "cuda:1"); /* has a copy of its own */
		AG_REQUIRE(pthread_create(&askers[i].thread, NULL, ask, &askers[i]) == 0);
	}
	for (int i = 0; i < 6; i++)
	{
		pthread_join(askers[i].thread, NULL);
		AG_CHECK(askers[i].status == AG_DEVICE_OK && askers[i].matrix != NULL);
	}
	AG_CHECK_EQ(n_made, 2);
	table_end(&table);
	AG_CHECK_EQ(n_freed, 2);
	bench_end(&bench);
}

int
main(void)
{
	there_begin();
	check_folds();
	check_threads();
	return ag_unit_done("cuda folds");
}
