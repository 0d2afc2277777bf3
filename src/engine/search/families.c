/*
 * families.c - how each family is trained: which form of the rows it learns from, and what its result becomes.
 */
#include "engine/search/families_private.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/cat.h"
#include "engine/model/forest.h"
#include "engine/model/knn.h"
#include "engine/model/linear.h"
#include "engine/model/model.h"
#include "engine/model/net.h"
#include "engine/model/xgb.h"

/* Trees of a booster, all classes together, that early stopping leaves: by experience, not by law. */
#define TREES_MOST 10000
/* A leaf and its node, with some of what a growing array has spare. */
#define LEAF_BYTES 50
#define MIN_DATA_IN_BIN 3 /* where no parameter says */
#define CODES_AT_ONCE 512
#define PREP_COLUMNS 64    /* that memory is foreseen for */
#define SAMPLE_ROWS 200000 /* that a column's cuts are drawn from */

void
ag_fit_rows_free(AgFitRows *rows)
{
	ag_bins_free(rows->bins);
	ag_dense_matrix_free(rows->matrix);
	ag_dense_free(rows->dense);
	if (rows->ctx != NULL)
	{
		ag_mem_free(rows->ctx->mem, rows->n_levels);
		ag_fit_texts_free(rows->ctx->mem, rows->texts);
	}
	rows->texts = NULL;
	rows->bins = NULL;
	rows->matrix = NULL;
	rows->dense = NULL;
	rows->n_levels = NULL;
}

void
ag_trained_free(const AgContext *ctx, AgTrained *trained)
{
	ag_mem_free(ctx->mem, trained->image);
	ag_mem_free(ctx->mem, trained->valid_proba);
	ag_mem_free(ctx->mem, trained->oob_proba);
	ag_stages_free(ctx, &trained->stages);
	trained->image = NULL;
	trained->valid_proba = NULL;
	trained->oob_proba = NULL;
}

int
ag_fit_rows_features(const AgFitRows *rows)
{
	return rows->pipeline->n_visible + rows->n_extra;
}

int
ag_fit_rows_width(const AgFitRows *rows)
{
	return rows->pipeline->n_features + rows->n_extra;
}

/* --- forms of the rows */

static AgStatus rows_bin(AgWork *work, int max_bin, int min_data_in_bin);

/* Of a higher level: the first level's bins, and those of its own columns. */
static AgStatus
rows_bin_stacked(AgWork *work, int max_bin, int min_data_in_bin, const AgBinParams *params)
{
	AgFitRows *rows = work->rows;
	int n = rows->pipeline->n_visible;
	AgWork first = *work;
	AgStatus status;

	first.rows = rows->first_level;
	first.last = false;
	AG_TRY(rows_bin(&first, max_bin, min_data_in_bin));
	AG_TRY(ag_bins_create(work->ctx, rows->table->n_rows, n + rows->n_extra, &rows->bins));
	for (int f = 0; f < n; f++)
		AG_GO(ag_bins_copy_feature(work->ctx, rows->bins, f, first.rows->bins, f));
	for (int k = 0; k < rows->n_extra; k++)
	{
		AgBinSource source = {rows->extra + k * rows->table->n_rows, NULL, 0};

		AG_GO(ag_bins_set_feature(work->ctx, rows->bins, n + k, &source, params));
	}
	AG_GO(ag_bins_make_rows(work->ctx, rows->bins));
	rows->bin_params = *params;
	return AG_OK;
done:
	ag_bins_free(rows->bins);
	rows->bins = NULL;
	return status;
}

static AgStatus
rows_bin(AgWork *work, int max_bin, int min_data_in_bin)
{
	AgFitRows *rows = work->rows;
	AgBinParams params;
	int64_t began = ag_clock_ns();

	memset(&params, 0, sizeof params);
	params.max_bins = max_bin - 1; /* the missing bin is one of max_bin */
	params.min_data_in_bin = min_data_in_bin;
	params.sample_rows = SAMPLE_ROWS;
	if (rows->bins != NULL && rows->bin_params.max_bins == params.max_bins &&
		rows->bin_params.min_data_in_bin == params.min_data_in_bin)
	{
		for (int c = 0; work->last && rows->first_level == NULL && c < rows->table->n_columns; c++)
			if (ag_role_is_feature(rows->table->columns[c].role))
				ag_table_drop_column(rows->table, c);
		return AG_OK;
	}
	ag_bins_free(rows->bins);
	rows->bins = NULL;
	ag_progress(rows->ctx, "binning features", -1.0);
	if (rows->first_level != NULL)
		return rows_bin_stacked(work, max_bin, min_data_in_bin, &params);
	AG_TRY(
		ag_pipeline_bin(work->ctx, rows->pipeline, rows->table, &params, work->last, &rows->bins));
	AG_TRY(ag_bins_make_rows(work->ctx, rows->bins));
	rows->bin_params = params;
	ag_log(rows->ctx, AG_LOG_RESOURCES, "%d features binned to at most %d bins (%.2f s)",
		   rows->bins->n_features, params.max_bins, (double) (ag_clock_ns() - began) * 1e-9);
	return AG_OK;
}

void
ag_fit_rows_read(const AgFitRows *rows, uint32_t feature, const uint32_t *ids, int64_t n,
				 double *values)
{
	int n_features = rows->pipeline->n_features;
	const double *column;

	if ((int) feature < n_features)
	{
		ag_pipeline_feature(rows->pipeline, rows->table, (int) feature, ids, n, values);
		return;
	}
	column = rows->extra + (int64_t) ((int) feature - n_features) * rows->table->n_rows;
	for (int64_t i = 0; i < n; i++)
		values[i] = column[ids[i]];
}

/* As the models learn from them: without the terms. */
static void
source_read(const void *arg, uint32_t feature, const uint32_t *ids, int64_t n, double *values)
{
	const AgFitRows *rows = arg;
	uint32_t n_visible = (uint32_t) rows->pipeline->n_visible;

	if (feature >= n_visible)
		feature += (uint32_t) rows->pipeline->n_features - n_visible;
	ag_fit_rows_read(rows, feature, ids, n, values);
}

AgStatus
ag_work_source(AgWork *work, AgDenseSource *source)
{
	AgFitRows *rows = work->rows;
	int n = ag_fit_rows_features(rows);

	if (rows->n_levels == NULL)
	{
		AG_TRY(ag_get_zeroed(work->ctx, (size_t) n, sizeof *rows->n_levels, &rows->n_levels));
		for (int f = 0; f < rows->pipeline->n_visible; f++)
			if (ag_feature_is_category(&rows->pipeline->features[f]))
				rows->n_levels[f] = rows->pipeline->features[f].n_levels;
	}
	source->n_rows = rows->table->n_rows;
	source->n_features = (uint32_t) n;
	source->n_levels = rows->n_levels;
	source->read = source_read;
	source->arg = rows;
	return AG_OK;
}

static bool
same_dense(const AgDenseParams *a, const AgDenseParams *b)
{
	return a->skew_threshold == b->skew_threshold && a->impute == b->impute &&
		   a->min_level_count == b->min_level_count && a->max_levels == b->max_levels;
}

static AgStatus
rows_dense(AgWork *work, const AgDenseParams *params)
{
	AgFitRows *rows = work->rows;
	AgDenseSource source;
	int64_t began = ag_clock_ns();

	if (rows->dense != NULL && same_dense(&rows->dense_params, params) &&
		rows->dense_split == work->split)
		return AG_OK;
	ag_dense_matrix_free(rows->matrix);
	ag_dense_free(rows->dense);
	rows->matrix = NULL;
	rows->dense = NULL;
	AG_TRY(ag_work_source(work, &source));
	AG_TRY(ag_dense_fit(work->ctx, &source, work->data->train_rows, work->data->n_train, params,
						&rows->dense));
	AG_TRY(ag_dense_matrix(work->ctx, rows->dense, &source, &rows->matrix));
	rows->dense_params = *params;
	rows->dense_split = work->split;
	ag_log(rows->ctx, AG_LOG_RESOURCES, "%d features made %u numbers and %u columns (%.2f s)",
		   ag_fit_rows_features(rows), rows->dense->n_numbers, rows->dense->n_columns,
		   (double) (ag_clock_ns() - began) * 1e-9);
	return AG_OK;
}

/* The model's bytes: what is stored, and what is timed and loaded again from now on. */
static AgStatus
work_store(AgWork *work, AgImageKind kind, void *fitted)
{
	AgModel model = {kind, fitted};
	AgWriter out;
	AgStatus status;

	ag_writer_init(&out, work->ctx->mem);
	status = ag_model_write(work->ctx, &model, &out);
	if (status == AG_OK && out.failed)
		status = ag_mem_error(work->ctx->mem, out.size, work->ctx->error);
	if (status != AG_OK)
	{
		ag_writer_free(&out);
		return status;
	}
	work->trained->image = out.data;
	work->trained->n_image = out.size;
	return AG_OK;
}

/* Where it ran, and if that wasn't the context's GPU, why. */
static void
keep_device(AgTrained *trained, bool on_gpu, bool gpu_failed, const char *because)
{
	trained->on_gpu = on_gpu;
	trained->gpu_failed = gpu_failed;
	snprintf(trained->cpu_because, sizeof trained->cpu_because, "%s", because);
}

/* --- boosters */

/* As ag_boost_train wants them; CAT's are completed by its own training. */
static AgBoostParams
boost_params(const AgModelConfig *config)
{
	AgBoostParams params = *(const AgBoostParams *) config->params;

	if (config->family->id == AG_FAMILY_GBM)
		ag_gbm_complete(&params);
	else if (config->family->id == AG_FAMILY_XGB)
		ag_xgb_complete(&params);
	return params;
}

/* What boosting came to, and the model's bytes. */
static AgStatus
boost_store(AgWork *work, const AgBoostParams *params, AgBoostResult *result)
{
	AgTrained *trained = work->trained;

	trained->rounds = result->best_round;
	trained->rounds_run = result->rounds_run;
	trained->history = result->history;
	trained->ended_by = result->stopped_by_time                        ? "time"
						: result->stopped_by_memory                    ? "memory"
						: result->stopped_by_patience                  ? "patience"
						: result->rounds_run < params->num_boost_round ? "want of splits"
																	   : "rounds";
	trained->valid_proba = result->valid_proba;
	result->valid_proba = NULL;
	trained->keeps_rounds = work->data->keeps_rounds;
	keep_device(trained, result->on_gpu, result->gpu_failed, result->cpu_because);
	return work_store(work, AG_IMAGE_TREES, result->trees);
}

static void
boost_begin(const AgWork *work, AgBoostParams *params)
{
	params->seed = work->seed;
	params->early_stop_rounds = work->config->early_stop;
	if (work->max_rounds > 0 && params->num_boost_round > work->max_rounds)
		params->num_boost_round = work->max_rounds;
}

static AgStatus
boost_train(AgWork *work)
{
	AgBoostParams params = boost_params(work->config);
	AgBoostResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	boost_begin(work, &params);
	AG_TRY(rows_bin(work, params.max_bin, params.min_data_in_bin));
	work->data->bins = work->rows->bins;
	AG_GO(ag_boost_train(work->ctx, work->data, &params, &result));
	AG_GO(boost_store(work, &params, &result));
done:
	ag_boost_result_free(work->ctx, &result);
	return status;
}

static int64_t
boost_kept(const AgModelConfig *config, const AgTrainData *data)
{
	const AgBoostParams *params = config->params;
	int64_t n_trees = params->num_boost_round, n_leaves = ag_boost_leaves(data, params);

	if (data->problem != AG_PROBLEM_BINARY)
		n_trees *= ag_train_outputs(data);
	if (n_trees > TREES_MOST)
		n_trees = TREES_MOST;
	return n_trees * n_leaves * LEAF_BYTES;
}

/* The trees are there twice while their image is written. */
static int64_t
boost_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	const AgBins *bins = data->bins;
	AgBoostParams params = boost_params(config);

	return boost_kept(config, data) + ag_boost_memory(data, &params, n_threads) +
		   bins->n_features * bins->column_stride + bins->n_rows * bins->row_stride;
}

/* --- CAT */

static AgStatus
codes_read(AgWork *work, int f, uint32_t *codes)
{
	int64_t n_rows = work->rows->table->n_rows;
	uint32_t ids[CODES_AT_ONCE];
	double values[CODES_AT_ONCE];

	for (int64_t at = 0; at < n_rows; at += CODES_AT_ONCE)
	{
		int n = n_rows - at < CODES_AT_ONCE ? (int) (n_rows - at) : CODES_AT_ONCE;

		for (int i = 0; i < n; i++)
			ids[i] = (uint32_t) (at + i);
		ag_pipeline_feature(work->rows->pipeline, work->rows->table, f, ids, n, values);
		for (int i = 0; i < n; i++)
			codes[at + i] = values[i] >= 0.0 ? (uint32_t) values[i] : UINT32_MAX;
	}
	return ag_check_cancel(work->ctx);
}

/* The levels of categories that have more of them than bins tell apart; of others codes[f] stays NULL. */
static AgStatus
codes_get(AgWork *work, int max_bins, uint32_t **codes)
{
	const AgPipeline *pipeline = work->rows->pipeline;

	for (int f = 0; f < pipeline->n_visible; f++)
	{
		if (!ag_feature_is_category(&pipeline->features[f]) ||
			pipeline->features[f].n_levels <= (uint32_t) max_bins)
			continue;
		AG_TRY(ag_get(work->ctx, (size_t) work->rows->table->n_rows, sizeof **codes, &codes[f]));
		AG_TRY(codes_read(work, f, codes[f]));
	}
	return AG_OK;
}

static AgStatus
cat_train(AgWork *work)
{
	AgBoostParams params = boost_params(work->config);
	int n_features = ag_fit_rows_features(work->rows);
	uint32_t **codes = NULL;
	AgBoostResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	boost_begin(work, &params);
	AG_GO(ag_get_zeroed(work->ctx, (size_t) n_features, sizeof *codes, &codes));
	AG_GO(codes_get(work, params.max_bin, codes)); /* before the table's columns are given back */
	AG_GO(rows_bin(work, params.max_bin + 1, MIN_DATA_IN_BIN));
	work->data->bins = work->rows->bins;
	AG_GO(ag_cat_train(work->ctx, work->data, (const uint32_t *const *) codes, &params, &result));
	AG_GO(boost_store(work, &params, &result));
done:
	for (int f = 0; codes != NULL && f < n_features; f++)
		ag_mem_free(work->ctx->mem, codes[f]);
	ag_mem_free(work->ctx->mem, codes);
	ag_boost_result_free(work->ctx, &result);
	return status;
}

static int64_t
cat_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	const AgBins *bins = data->bins;
	int64_t n_long = 0;

	for (int f = 0; f < bins->n_features; f++)
		n_long += bins->features[f].is_category && bins->features[f].has_other;
	return boost_kept(config, data) + ag_cat_memory(data, config->params, n_threads) +
		   bins->n_features * bins->column_stride + bins->n_rows * bins->row_stride +
		   n_long * bins->n_rows * 4;
}

/* --- LR */

static AgStatus
linear_train(AgWork *work)
{
	const AgLinearParams *params = work->config->params;
	AgTrained *trained = work->trained;
	AgLinearResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	AG_TRY(rows_dense(work, &params->dense));
	AG_GO(ag_linear_train(work->ctx, work->rows->dense, work->rows->matrix, work->data, params,
						  &result));
	trained->rounds = trained->rounds_run = -1;
	trained->ended_by = result.converged         ? "convergence"
						: result.stopped_by_time ? "time"
												 : "iterations";
	snprintf(trained->note, sizeof trained->note, "%s", result.note);
	trained->warns = !result.converged && !result.stopped_by_time;
	keep_device(trained, result.on_gpu, result.gpu_failed, result.cpu_because);
	trained->cuts = result.cuts;
	trained->valid_proba = result.valid_proba;
	result.valid_proba = NULL;
	AG_GO(work_store(work, AG_IMAGE_LINEAR, result.model));
done:
	ag_linear_result_free(work->ctx, &result);
	return status;
}

/* Numbers and slots of every row; a category lights one column of at most as many as there are bins to tell apart. */
static int64_t
dense_memory(const AgTrainData *data)
{
	int64_t n = data->bins->n_rows, f = data->bins->n_features;

	return n * ((f + 16) * 4 + f * 4) + n * 3 * 8 * 2;
}

/* Terms of few outputs, and L-BFGS's pairs of them. */
static int64_t
linear_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	int64_t outputs = data->n_classes == 2 ? 1 : ag_train_outputs(data);

	return dense_memory(data) + data->n_train * outputs * 24 +
		   (int64_t) data->bins->n_features * 256 * outputs * 8 * 30;
}

/* --- KNN */

/* How large it is, before it is stored: its bytes are the rows'. */
static void
knn_describe(const AgWork *work, int64_t n_left_out)
{
	AgTrained *trained = work->trained;
	double mb = (double) ag_knn_bytes(work->rows->dense, work->data, work->config->params) * 1e-6;
	long long n = (long long) work->data->n_train;

	if (n_left_out > 0)
		snprintf(trained->note, sizeof trained->note,
				 "keeps a sample of %lld of %lld rows (\"max_rows\"), %.1f MB",
				 n - (long long) n_left_out, n, mb);
	else
		snprintf(trained->note, sizeof trained->note, "keeps %lld rows, %.1f MB", n, mb);
}

static AgStatus
knn_train(AgWork *work)
{
	const AgKnnParams *params = work->config->params;
	AgTrained *trained = work->trained;
	bool leaves_one_out = params->wants_oob && work->wants_oob;
	AgTrainData data = *work->data;
	AgKnnResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	AG_TRY(rows_dense(work, &params->dense));
	if (leaves_one_out)
	{
		data.valid_rows = data.train_rows;
		data.n_valid = data.n_train;
	}
	AG_GO(ag_knn_train(work->ctx, work->rows->dense, work->rows->matrix, &data, params, &result));
	trained->rounds = trained->rounds_run = -1;
	keep_device(trained, result.on_gpu, result.gpu_failed, result.cpu_because);
	knn_describe(work, result.n_left_out);
	if (leaves_one_out)
		trained->oob_proba = result.valid_proba;
	else
		trained->valid_proba = result.valid_proba;
	result.valid_proba = NULL;
	AG_GO(work_store(work, AG_IMAGE_KNN, result.model));
done:
	ag_knn_result_free(work->ctx, &result);
	return status;
}

static int64_t
knn_kept(const AgModelConfig *config, const AgTrainData *data)
{
	const AgKnnParams *params = config->params;
	int64_t kept = data->n_train < params->max_rows ? data->n_train : params->max_rows;

	return kept * ((int64_t) data->bins->n_features * 8 + 64);
}

static int64_t
knn_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	const AgKnnParams *params = config->params;
	int64_t said = params->wants_oob ? data->n_train * ag_train_outputs(data) * 8 : 0;

	return dense_memory(data) + 2 * knn_kept(config, data) + said + (INT64_C(4) << 20) * n_threads;
}

/* --- neural nets */

static AgNetParams
net_params(const AgModelConfig *config)
{
	AgNetParams params = *(const AgNetParams *) config->params;

	ag_net_params_complete(config->family->id == AG_FAMILY_NN_TORCH ? AG_NET_NN_TORCH
						   : config->family->id == AG_FAMILY_FASTAI ? AG_NET_FASTAI
						   : config->family->id == AG_FAMILY_TABM   ? AG_NET_TABM
																	: AG_NET_REALMLP,
						   &params);
	return params;
}

static AgStatus
net_train(AgWork *work)
{
	AgNetParams params = net_params(work->config);
	AgTrained *trained = work->trained;
	AgNetResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	params.seed = work->seed;
	params.use_half = work->config->use_fp16;
	if (work->max_rounds > 0 && params.num_epochs > work->max_rounds)
		params.num_epochs = work->max_rounds;
	AG_TRY(rows_dense(work, &params.dense));
	AG_GO(ag_net_train(work->ctx, work->rows->dense, work->rows->matrix, work->data, &params,
					   &result));
	trained->cuts = result.cuts;
	trained->rounds = result.best_epoch;
	trained->rounds_run = result.epochs_run;
	trained->history = result.history;
	trained->ended_by = result.stopped_by_time       ? "time"
						: result.stopped_by_patience ? "patience"
													 : "epochs";
	keep_device(trained, result.on_gpu, result.gpu_failed, result.cpu_because);
	snprintf(trained->half_because, sizeof trained->half_because, "%s", result.half_because);
	trained->valid_proba = result.valid_proba;
	result.valid_proba = NULL;
	trained->stages = result.stages;
	result.stages.values = NULL;
	AG_GO(work_store(work, AG_IMAGE_NET, result.model));
done:
	ag_net_result_free(work->ctx, &result);
	return status;
}

static int64_t
net_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	AgNetParams params = net_params(config);
	AgNetSize size = {0};

	for (int f = 0; f < data->bins->n_features; f++)
	{
		const AgBinFeature *feature = &data->bins->features[f];
		uint32_t most = (uint32_t) params.dense.max_levels;

		ag_net_size_add(
			&size, &params, !feature->is_category,
			!feature->is_category ? 1 : 2 + (feature->n_levels < most ? feature->n_levels : most));
	}
	return dense_memory(data) + ag_net_memory_of(&size, data, &params, n_threads);
}

/* --- RF and XT */

#define FOREST_MAX_BIN 255 /* and the boosters' default of rows in a bin, to share their matrix */
#define FOREST_MIN_DATA_IN_BIN 3

static AgStatus
forest_train(AgWork *work)
{
	AgForestParams params = *(const AgForestParams *) work->config->params;
	AgTrained *trained = work->trained;
	AgForestResult result;
	AgStatus status;

	memset(&result, 0, sizeof result);
	params.seed = work->seed;
	params.is_extra = work->config->family->id == AG_FAMILY_XT;
	params.wants_oob = params.wants_oob && work->wants_oob;
	if (work->max_rounds > 0 && params.n_estimators > work->max_rounds)
		params.n_estimators = work->max_rounds;
	AG_TRY(rows_bin(work, FOREST_MAX_BIN, FOREST_MIN_DATA_IN_BIN));
	work->data->bins = work->rows->bins;
	AG_GO(ag_forest_train(work->ctx, work->data, &params, &result));
	trained->rounds = result.n_trees;
	trained->rounds_run = result.n_trees;
	trained->ended_by = result.stopped_by_time     ? "time"
						: result.stopped_by_memory ? "memory"
												   : "rounds";
	snprintf(trained->note, sizeof trained->note, "%s", result.note);
	keep_device(trained, result.on_gpu, result.gpu_failed, result.cpu_because);
	trained->valid_proba = result.valid_proba;
	result.valid_proba = NULL;
	trained->oob_proba = result.oob_proba;
	result.oob_proba = NULL;
	AG_GO(work_store(work, AG_IMAGE_TREES, result.trees));
done:
	ag_forest_result_free(work->ctx, &result);
	return status;
}

static int64_t
forest_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	AgForestParams params = *(const AgForestParams *) config->params;
	const AgBins *bins = data->bins;

	params.is_extra = config->family->id == AG_FAMILY_XT;
	return ag_forest_memory(data, &params, n_threads) + bins->n_features * bins->column_stride +
		   bins->n_rows * bins->row_stride;
}

static void
boost_bins(const void *params, int *max_bin, int *min_data_in_bin)
{
	const AgBoostParams *boost = params;

	*max_bin = boost->max_bin;
	*min_data_in_bin = boost->min_data_in_bin > 0 ? boost->min_data_in_bin : MIN_DATA_IN_BIN;
}

static void
forest_bins(const void *params, int *max_bin, int *min_data_in_bin)
{
	*max_bin = FOREST_MAX_BIN;
	*min_data_in_bin = FOREST_MIN_DATA_IN_BIN;
}

typedef struct FamilyWork
{
	AgStatus (*train)(AgWork *work);
	int64_t (*memory)(const AgModelConfig *config, const AgTrainData *data, int n_threads);
	int64_t (*kept)(const AgModelConfig *config,
					const AgTrainData *data); /* NULL: next to nothing */
	/* How the rows are binned; NULL: learns from the table's values. */
	void (*bins)(const void *params, int *max_bin, int *min_data_in_bin);
} FamilyWork;

static const FamilyWork works[AG_FAMILY_LAST] = {
	[AG_FAMILY_GBM] = {boost_train, boost_memory, boost_kept, boost_bins},
	[AG_FAMILY_XGB] = {boost_train, boost_memory, boost_kept, boost_bins},
	[AG_FAMILY_CAT] = {cat_train, cat_memory, boost_kept, NULL},
	[AG_FAMILY_LR] = {linear_train, linear_memory, NULL, NULL},
	[AG_FAMILY_KNN] = {knn_train, knn_memory, knn_kept, NULL},
	[AG_FAMILY_RF] = {forest_train, forest_memory, NULL, forest_bins},
	[AG_FAMILY_XT] = {forest_train, forest_memory, NULL, forest_bins},
	[AG_FAMILY_NN_TORCH] = {net_train, net_memory, NULL, NULL},
	[AG_FAMILY_FASTAI] = {net_train, net_memory, NULL, NULL},
	[AG_FAMILY_REALMLP] = {net_train, net_memory, NULL, NULL},
	[AG_FAMILY_TABM] = {net_train, net_memory, NULL, NULL},
};

AgStatus
ag_work_train(AgWork *work)
{
	return works[work->config->family->id].train(work);
}

bool
ag_work_has_bins(const AgWork *work)
{
	return works[work->config->family->id].bins != NULL;
}

AgStatus
ag_family_train(const AgContext *ctx, AgFitRows *rows, const AgTraining *training,
				AgTrainData *data, AgTrained *trained)
{
	AgWork work = {.ctx = ctx,
				   .rows = rows,
				   .config = training->config,
				   .seed = training->seed,
				   .data = data,
				   .last = training->last,
				   .trained = trained,
				   .split = training->split,
				   .max_rounds = training->max_rounds,
				   .wants_oob = training->wants_oob};
	int64_t began = ag_clock_ns();
	AgStatus status;

	memset(trained, 0, sizeof *trained);
	if (ag_config_has_prep(training->config) ||
		rows->pipeline->n_features > rows->pipeline->n_visible)
		status = ag_work_train_prep(&work);
	else
		status = works[training->config->family->id].train(&work);
	if (status != AG_OK)
		ag_trained_free(ctx, trained);
	trained->fit_seconds = (double) (ag_clock_ns() - began) * 1e-9;
	return status;
}

AgStatus
ag_family_prepare(const AgContext *ctx, AgFitRows *rows, const AgModelConfig *config)
{
	AgWork work = {.ctx = ctx, .rows = rows, .config = config};
	int max_bin, min_data_in_bin;

	AG_TRY(ag_fit_texts_make(ctx, ag_work_root(&work)));
	if (config->family->id == AG_FAMILY_CAT)
		return rows_bin(&work, ((const AgBoostParams *) config->params)->max_bin + 1,
						MIN_DATA_IN_BIN);
	if (works[config->family->id].bins == NULL)
		return AG_OK;
	works[config->family->id].bins(config->params, &max_bin, &min_data_in_bin);
	return rows_bin(&work, max_bin, min_data_in_bin);
}

bool
ag_family_uses_weights(AgFamilyId family)
{
	return works[family].train != net_train;
}

bool
ag_family_shares_rows(const AgModelConfig *a, const AgModelConfig *b)
{
	const FamilyWork *first = &works[a->family->id], *second = &works[b->family->id];
	int max_bin[2], min_data_in_bin[2];

	if (first->bins == NULL || second->bins == NULL || ag_config_has_prep(a) ||
		ag_config_has_prep(b))
		return false;
	first->bins(a->params, &max_bin[0], &min_data_in_bin[0]);
	second->bins(b->params, &max_bin[1], &min_data_in_bin[1]);
	return max_bin[0] == max_bin[1] && min_data_in_bin[0] == min_data_in_bin[1];
}

int64_t
ag_family_memory(const AgModelConfig *config, const AgTrainData *data, int n_threads)
{
	int64_t own = ag_config_has_prep(config) ? data->bins->n_rows * PREP_COLUMNS * 3 * 8 : 0;

	return works[config->family->id].memory(config, data, n_threads) + own;
}

int64_t
ag_family_kept(const AgModelConfig *config, const AgTrainData *data)
{
	const FamilyWork *work = &works[config->family->id];

	return work->kept != NULL ? work->kept(config, data) : 0;
}
