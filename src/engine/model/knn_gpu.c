/*
 * knn_gpu.c - see knn_gpu.h.
 *
 * The device finds who is near; the vote is the host's, by the same function as ever.
 */
#include "engine/model/knn_gpu.h"

#include <stdio.h>

#include "engine/base/threads.h"

#define LOOK_ROWS 65536 /* between looks after a cancel */

typedef struct Search
{
	const AgContext *ctx;
	const AgKnn *knn;
	AgGpu *gpu;
	AgDeviceKnn *device_knn;
	int64_t n_at_once, first;
	uint32_t *self;          /* [n_valid] */
	AgDeviceNeighbor *found; /* [n_at_once][n_neighbors] */
	int32_t *n_found;        /* [n_at_once] */
	AgNeighbor **heaps;      /* [threads][n_neighbors] */
	double *proba;
	AgKnnResult *result;
} Search;

static void
note_failure(Search *search, AgDeviceStatus status)
{
	search->gpu->is_lost = search->gpu->is_lost || status == AG_DEVICE_LOST;
	search->result->gpu_failed = true;
	snprintf(search->result->cpu_because, sizeof search->result->cpu_because, "%s",
			 search->gpu->ops->why(search->gpu->device));
}

static AgDeviceStatus
create(Search *search, const uint32_t *rows, const AgDenseMatrix *matrix, const AgTrainData *data)
{
	const AgKnn *knn = search->knn;
	AgDeviceKnnSpec spec = {.n_rows = matrix->n_rows,
							.number_stride = (int64_t) matrix->stride,
							.numbers = matrix->numbers,
							.n_numbers = (int32_t) knn->n_numbers,
							.n_slots = (int32_t) knn->n_slots,
							.row_slots = matrix->slots,
							.mismatch = knn->category_distance,
							.kept = rows,
							.n_kept = knn->n_rows,
							.queries = data->valid_rows,
							.self = search->self,
							.n_queries = data->n_valid,
							.n_neighbors = (int32_t) knn->n_neighbors};

	return search->gpu->ops->knn_create(search->gpu->device, &spec, &search->device_knn,
										&search->n_at_once);
}

static AgStatus
get_memory(Search *search, int n_threads)
{
	const AgContext *ctx = search->ctx;
	size_t n = (size_t) search->n_at_once, k = search->knn->n_neighbors;

	AG_TRY(ag_get(ctx, n * k, sizeof *search->found, &search->found));
	AG_TRY(ag_get(ctx, n, sizeof *search->n_found, &search->n_found));
	AG_TRY(ag_get_zeroed(ctx, (size_t) n_threads, sizeof *search->heaps, &search->heaps));
	for (int t = 0; t < n_threads; t++)
		AG_TRY(ag_get(ctx, k, sizeof(AgNeighbor), &search->heaps[t]));
	return AG_OK;
}

static void
vote_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const Search *search = arg;
	const AgKnn *knn = search->knn;
	AgNeighbor *heap = search->heaps[thread];

	for (int64_t i = begin; i < end; i++)
	{
		const AgDeviceNeighbor *found = search->found + (size_t) i * knn->n_neighbors;
		uint32_t n = 0;

		for (int32_t j = 0; j < search->n_found[i]; j++)
			n = ag_knn_offer(heap, n, knn->n_neighbors, found[j].squared, found[j].place);
		ag_knn_vote(knn, heap, n, search->proba + (size_t) (search->first + i) * ag_knn_n_out(knn));
	}
}

/* *status: of the device, which may fail in the middle. */
static AgStatus
search_all(Search *search, int64_t n_queries, AgDeviceStatus *status)
{
	const AgContext *ctx = search->ctx;

	*status = AG_DEVICE_OK;
	for (search->first = 0; search->first < n_queries; search->first += search->n_at_once)
	{
		int64_t n = n_queries - search->first;

		n = n < search->n_at_once ? n : search->n_at_once;
		AG_TRY(ag_check_cancel(ctx));
		if (ag_out_of_time(ctx))
			return AG_ERR_TIME;
		ag_progress(ctx, "nearest neighbours", (double) search->first / (double) n_queries);
		*status = search->gpu->ops->knn_search(search->gpu->device, search->device_knn,
											   search->first, n, search->found, search->n_found);
		if (*status != AG_DEVICE_OK)
			return AG_OK;
		ag_pool_run(ctx->pool, n, 16, vote_task, search);
	}
	return AG_OK;
}

static AgStatus
run(Search *search, const uint32_t *rows, const AgDenseMatrix *matrix, const AgTrainData *data)
{
	const AgContext *ctx = search->ctx;
	int n_threads = ag_pool_size(ctx->pool);
	AgDeviceStatus done;
	AgStatus status;

	AG_GO(ag_get(ctx, (size_t) data->n_valid, sizeof *search->self, &search->self));
	for (int64_t i = 0; i < data->n_valid; i++)
	{
		if (i % LOOK_ROWS == 0)
			AG_GO(ag_check_cancel(ctx));
		search->self[i] = ag_knn_place_of(rows, search->knn->n_rows, data->valid_rows[i]);
	}
	done = create(search, rows, matrix, data);
	if (done == AG_DEVICE_OK)
	{
		AG_GO(get_memory(search, n_threads));
		AG_GO(search_all(search, data->n_valid, &done));
	}
	if (done != AG_DEVICE_OK)
		note_failure(search, done);
	search->result->on_gpu = done == AG_DEVICE_OK;
	status = AG_OK;
done:
	if (search->device_knn != NULL)
		search->gpu->ops->knn_free(search->gpu->device, search->device_knn);
	for (int t = 0; search->heaps != NULL && t < n_threads; t++)
		ag_mem_free(ctx->mem, search->heaps[t]);
	ag_mem_free(ctx->mem, search->heaps);
	ag_mem_free(ctx->mem, search->n_found);
	ag_mem_free(ctx->mem, search->found);
	ag_mem_free(ctx->mem, search->self);
	return status;
}

AgStatus
ag_knn_gpu_predict(const AgContext *ctx, const AgKnn *knn, const uint32_t *rows,
				   const AgDenseMatrix *matrix, const AgTrainData *data, double *proba,
				   AgKnnResult *result)
{
	Search search = {.ctx = ctx, .knn = knn, .gpu = ctx->gpu, .proba = proba, .result = result};
	AgStatus status;

	if (ctx->gpu->is_lost || ctx->gpu->ops->knn_create == NULL)
	{
		snprintf(result->cpu_because, sizeof result->cpu_because, "%s",
				 ctx->gpu->is_lost ? "the GPU failed before" : "the module finds no neighbors");
		return AG_OK;
	}
	status = run(&search, rows, matrix, data);
	if (status != AG_ERR_MEMORY)
		return status;
	/* the CPU takes less */
	result->gpu_failed = true;
	snprintf(result->cpu_because, sizeof result->cpu_because,
			 "the memory limit leaves no room for what a GPU needs beside the rows");
	if (ctx->error != NULL)
		ag_error_init(ctx->error);
	return AG_OK;
}
