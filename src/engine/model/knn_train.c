/*
 * knn_train.c - the KNN family's training: the rows that are kept, and the predictions of validation rows.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/knn_gpu.h"
#include "engine/model/knn_search.h"

typedef struct Training
{
	const AgContext *ctx;
	const AgDense *dense;
	const AgDenseMatrix *matrix;
	const AgTrainData *data;
	const AgKnnParams *params;
	uint32_t *rows; /* [n_rows] rows of the table that are kept, ascending */
	uint32_t n_rows;
	AgKnn *knn;
	float *norms;       /* [n_panels][AG_PANEL] sums of the rows' squares */
	AgNeighbor **heaps; /* [threads][AG_KNN_GROUP][n_neighbors] */
	double *proba;
	_Atomic bool late;
} Training;

/* Marks, of each class, the first rows: as many as are asked for, or as fit when all classes have as many. */
static AgStatus
mark_classes(const Training *t, uint8_t *kept, int64_t *n_kept)
{
	const AgTrainData *data = t->data;
	int64_t n_classes = data->n_classes, each = t->params->max_rows / n_classes;
	int64_t *seen;

	if (each > t->params->n_neighbors)
		each = t->params->n_neighbors;
	AG_TRY(ag_get_zeroed(t->ctx, (size_t) n_classes, sizeof *seen, &seen));
	for (int64_t i = 0; i < data->n_train; i++)
		if (seen[data->class_of[data->train_rows[i]]]++ < each)
		{
			kept[i] = 1;
			++*n_kept;
		}
	ag_mem_free(t->ctx->mem, seen);
	return AG_OK;
}

static AgStatus
choose_rows(Training *t)
{
	const AgTrainData *data = t->data;
	int64_t most = t->params->max_rows < data->n_train ? t->params->max_rows : data->n_train;
	int64_t n_kept = 0;
	uint8_t *kept = NULL;
	AgStatus status;

	AG_GO(ag_get(t->ctx, (size_t) most, sizeof *t->rows, &t->rows));
	AG_GO(ag_get_zeroed(t->ctx, (size_t) data->n_train, 1, &kept));
	if (most < data->n_train && data->problem != AG_PROBLEM_REGRESSION)
		AG_GO(mark_classes(t, kept, &n_kept));
	for (int64_t i = 0; i < data->n_train && n_kept < most; i++)
		if (!kept[i])
		{
			kept[i] = 1;
			n_kept++;
		}
	for (int64_t i = 0; i < data->n_train; i++)
		if (kept[i])
			t->rows[t->n_rows++] = data->train_rows[i];
done:
	ag_mem_free(t->ctx->mem, kept);
	return status;
}

/* The mean, or the classes' shares, of the kept rows. */
static void
fill_fallback(const Training *t, double *fallback)
{
	const AgTrainData *data = t->data;
	double n = (double) t->n_rows;

	for (uint32_t i = 0; i < t->n_rows; i++)
		if (data->problem == AG_PROBLEM_REGRESSION)
			fallback[0] += data->target[t->rows[i]] / n;
		else
			fallback[data->class_of[t->rows[i]]] += 1.0 / n;
	if (data->problem == AG_PROBLEM_REGRESSION)
		fallback[0] = fmin(fmax(fallback[0], -DBL_MAX), DBL_MAX);
}

static void
fill_labels(const Training *t, double *targets, uint32_t *labels, float *row_weights)
{
	const AgTrainData *data = t->data;
	double greatest = 0.0;

	for (uint32_t i = 0; i < t->n_rows && row_weights != NULL; i++)
		greatest = fmax(greatest, data->weight[t->rows[i]]);
	for (uint32_t i = 0; i < t->n_rows; i++)
	{
		size_t row = t->rows[i];

		if (data->problem == AG_PROBLEM_REGRESSION)
			targets[i] = data->target[row];
		else
			labels[i] = (uint32_t) data->class_of[row];
		if (row_weights != NULL)
			row_weights[i] =
				greatest > 0.0 ? (float) fmax(data->weight[row] / greatest, 0.0) : 1.0f;
	}
}

static void
fill_panels(const Training *t, float *panels, uint32_t *codes)
{
	const AgDenseMatrix *matrix = t->matrix;
	size_t n_numbers = t->dense->n_numbers, n_slots = t->dense->n_slots;

	for (uint32_t i = 0; i < t->n_rows; i++)
	{
		size_t row = t->rows[i], panel = i / AG_PANEL, lane = i % AG_PANEL;
		float *to = panels + panel * n_numbers * AG_PANEL + lane;
		uint32_t *to_codes = codes + panel * n_slots * AG_PANEL + lane;

		for (size_t j = 0; j < n_numbers; j++)
			to[j * AG_PANEL] = matrix->numbers[row * matrix->stride + j];
		for (size_t s = 0; s < n_slots; s++)
			to_codes[s * AG_PANEL] = matrix->slots[row * n_slots + s];
	}
}

/* The parts of a model, from its own arena. */
static AgStatus
fill_model(const Training *t, AgKnn *knn)
{
	const AgTrainData *data = t->data;
	AgArena *arena = &knn->arena;
	bool classes = data->problem != AG_PROBLEM_REGRESSION;
	size_t n_panels = ((size_t) t->n_rows + AG_PANEL - 1) / AG_PANEL;
	float *panels, *row_weights = NULL;
	uint32_t *codes, *labels;
	double *targets, *fallback;

	knn->n_rows = t->n_rows;
	knn->n_neighbors = (uint32_t) t->params->n_neighbors;
	if (knn->n_neighbors > t->n_rows)
		knn->n_neighbors = t->n_rows;
	knn->weights = (uint32_t) t->params->weights;
	knn->n_classes = classes ? (uint32_t) data->n_classes : 0;
	knn->n_numbers = t->dense->n_numbers;
	knn->n_slots = t->dense->n_slots;
	knn->category_distance = (float) t->params->category_distance;
	knn->dense = t->dense;
	panels = ag_arena_alloc(arena, n_panels * AG_PANEL, knn->n_numbers * sizeof *panels);
	codes = ag_arena_alloc(arena, n_panels * AG_PANEL, knn->n_slots * sizeof *codes);
	labels = ag_arena_alloc(arena, classes ? t->n_rows : 0, sizeof *labels);
	targets = ag_arena_alloc(arena, classes ? 0 : t->n_rows, sizeof *targets);
	fallback = ag_arena_alloc(arena, ag_knn_n_out(knn), sizeof *fallback);
	if (data->weight != NULL)
		row_weights = ag_arena_alloc(arena, t->n_rows, sizeof *row_weights);
	if (panels == NULL || codes == NULL || labels == NULL || targets == NULL || fallback == NULL ||
		(data->weight != NULL && row_weights == NULL))
		return ag_mem_error(t->ctx->mem, n_panels * AG_PANEL * knn->n_numbers * sizeof *panels,
							t->ctx->error);
	fill_panels(t, panels, codes);
	fill_labels(t, targets, labels, row_weights);
	fill_fallback(t, fallback);
	knn->panels = panels;
	knn->codes = codes;
	knn->labels = labels;
	knn->targets = targets;
	knn->row_weights = row_weights;
	knn->fallback = fallback;
	return AG_OK;
}

static AgStatus
make_model(Training *t)
{
	AgArena arena;
	AgStatus status;

	ag_arena_init(&arena, t->ctx->mem);
	t->knn = ag_arena_alloc(&arena, 1, sizeof *t->knn);
	if (t->knn == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(t->ctx->mem, sizeof *t->knn, t->ctx->error);
	}
	t->knn->arena = arena;
	status = fill_model(t, t->knn);
	if (status != AG_OK)
	{
		ag_knn_free(t->knn);
		t->knn = NULL;
	}
	return status;
}

uint32_t
ag_knn_place_of(const uint32_t *rows, uint32_t n_rows, uint32_t row)
{
	uint32_t low = 0, high = n_rows;

	while (low < high)
	{
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle] < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n_rows && rows[low] == row ? low : AG_KNN_NO_SELF;
}

static bool
must_stop(Training *t)
{
	if (ag_out_of_time(t->ctx))
		atomic_store(&t->late, true);
	return ag_cancelled(t->ctx) || atomic_load(&t->late);
}

/* A task is a group of validation rows. */
static void
predict_group(void *arg, int64_t begin, int64_t end, int thread)
{
	Training *t = arg;
	const AgKnn *knn = t->knn;
	uint32_t n_panels = (knn->n_rows + AG_PANEL - 1) / AG_PANEL, stretch = ag_knn_stretch(knn);
	AgNeighbor *heaps = t->heaps[thread];
	AgKnnGroup group = {0};

	for (int64_t i = begin; i < end; i++)
	{
		size_t row = t->data->valid_rows[i];

		ag_knn_group_add(&group, knn, t->matrix->numbers + row * t->matrix->stride,
						 t->matrix->slots + row * t->matrix->n_slots,
						 ag_knn_place_of(t->rows, t->n_rows, (uint32_t) row));
	}
	ag_knn_group_close(&group);
	for (uint32_t panel = 0; panel < n_panels; panel += stretch)
	{
		if (must_stop(t))
			return;
		ag_knn_group_search(&group, knn, t->norms, panel,
							n_panels - panel < stretch ? n_panels : panel + stretch, heaps);
	}
	for (int q = 0; q < group.n; q++)
		ag_knn_vote(knn, heaps + (size_t) q * knn->n_neighbors, group.n_found[q],
					t->proba + (size_t) (begin + q) * ag_knn_n_out(knn));
}

/* On the CPU. */
static AgStatus
search_here(Training *t)
{
	const AgContext *ctx = t->ctx;
	int n_threads = ag_pool_size(ctx->pool);
	AgStatus status;

	AG_GO(ag_get_zeroed(ctx, (size_t) t->n_rows + AG_PANEL, sizeof *t->norms, &t->norms));
	for (uint32_t i = 0; i < t->n_rows; i++)
		t->norms[i] = ag_knn_norm(t->matrix->numbers + (size_t) t->rows[i] * t->matrix->stride,
								  t->knn->n_numbers);
	AG_GO(ag_get_zeroed(ctx, (size_t) n_threads, sizeof *t->heaps, &t->heaps));
	for (int i = 0; i < n_threads; i++)
		AG_GO(ag_get(ctx, AG_KNN_GROUP * (size_t) t->knn->n_neighbors, sizeof(AgNeighbor),
					 &t->heaps[i]));
	ag_progress(ctx, "nearest neighbours", -1.0);
	ag_pool_run(ctx->pool, t->data->n_valid, AG_KNN_GROUP, predict_group, t);
	AG_GO(ag_check_cancel(ctx));
	status = atomic_load(&t->late) ? AG_ERR_TIME : AG_OK;
done:
	for (int i = 0; t->heaps != NULL && i < n_threads; i++)
		ag_mem_free(ctx->mem, t->heaps[i]);
	ag_mem_free(ctx->mem, t->heaps);
	ag_mem_free(ctx->mem, t->norms);
	return status;
}

static AgStatus
predict(Training *t, AgKnnResult *result)
{
	const AgContext *ctx = t->ctx;
	const AgTrainData *data = t->data;
	AgStatus status = AG_OK;

	AG_TRY(ag_get(ctx, (size_t) data->n_valid, ag_knn_n_out(t->knn) * sizeof(double), &t->proba));
	if (ctx->gpu != NULL && data->n_valid > 0)
		status = ag_knn_gpu_predict(ctx, t->knn, t->rows, t->matrix, data, t->proba, result);
	if (status == AG_OK && !result->on_gpu)
		status = search_here(t);
	if (status == AG_ERR_TIME)
		return ag_error_set(ctx->error, AG_ERR_TIME,
							"time limit passed before the neighbors of all rows were found");
	return status;
}

AgStatus
ag_knn_train(const AgContext *ctx, const AgDense *dense, const AgDenseMatrix *matrix,
			 const AgTrainData *data, const AgKnnParams *params, AgKnnResult *result)
{
	Training t = {.ctx = ctx, .dense = dense, .matrix = matrix, .data = data, .params = params};
	AgStatus status;

	memset(result, 0, sizeof *result);
	if (data->problem == AG_PROBLEM_QUANTILE)
		return ag_error_set(ctx->error, AG_ERR_UNSUPPORTED,
							"nearest neighbors do not predict quantiles");
	if (data->n_train < 1)
		return ag_error_set(ctx->error, AG_ERR_DATA, "there are no training rows");
	AG_GO(choose_rows(&t));
	AG_GO(make_model(&t));
	AG_GO(predict(&t, result));
	result->n_left_out = data->n_train - t.n_rows;
done:
	ag_mem_free(ctx->mem, t.rows);
	result->model = t.knn;
	result->valid_proba = t.proba;
	if (status != AG_OK)
		ag_knn_result_free(ctx, result);
	return status;
}

void
ag_knn_result_free(const AgContext *ctx, AgKnnResult *result)
{
	ag_knn_free(result->model);
	ag_mem_free(ctx->mem, result->valid_proba);
	result->model = NULL;
	result->valid_proba = NULL;
}

int64_t
ag_knn_bytes(const AgDense *dense, const AgTrainData *data, const AgKnnParams *params)
{
	int64_t n = params->max_rows < data->n_train ? params->max_rows : data->n_train;
	int64_t width = 4 * ((int64_t) dense->n_numbers + dense->n_slots);
	int64_t label = data->problem == AG_PROBLEM_REGRESSION ? 8 : 4;

	return (n + AG_PANEL - 1) / AG_PANEL * AG_PANEL * width + n * label +
		   (data->weight != NULL ? 4 * n : 0) + 8 * (int64_t) ag_train_outputs(data) + 1024;
}
