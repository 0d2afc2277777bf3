/*
 * model.c - the table of what each kind of fitted model can do.
 */
#include "engine/model/model.h"

#include <math.h>

#include "engine/model/knn.h"
#include "engine/model/linear.h"
#include "engine/model/net.h"
#include "engine/model/prep.h"
#include "engine/model/trees.h"

typedef struct ModelKind
{
	AgStatus (*read)(const AgContext *ctx, const void *image, size_t size, void **fitted);
	AgStatus (*write)(const AgContext *ctx, const void *fitted, AgWriter *writer);
	void (*free)(void *fitted);
	uint32_t (*n_features)(const void *fitted);
	uint32_t (*n_out)(const void *fitted);
	bool (*is_classifier)(const void *fitted);
	size_t (*scratch_bytes)(const void *fitted);
	void (*run)(const void *fitted, const double *features, void *scratch, double *out);
	double (*row_ns)(const void *fitted);
	/* many rows at once; NULL: one by one */
	AgStatus (*prepare_rows)(const AgContext *ctx, void *fitted);
	void (*run_rows)(const void *fitted, int64_t n_rows, const double *features, void *scratch,
					 double *out);
} ModelKind;

/* --- trees */

static AgStatus
trees_read(const AgContext *ctx, const void *image, size_t size, void **fitted)
{
	AgTrees *trees = NULL;
	AgStatus status = ag_trees_read(ctx, image, size, &trees);

	*fitted = trees;
	return status;
}

static AgStatus
trees_write(const AgContext *ctx, const void *fitted, AgWriter *writer)
{
	return ag_trees_write(ctx, fitted, writer);
}

static void
trees_free(void *fitted)
{
	ag_trees_free(fitted);
}

static uint32_t
trees_n_features(const void *fitted)
{
	return ((const AgTrees *) fitted)->n_features;
}

static uint32_t
trees_n_out(const void *fitted)
{
	return ag_trees_n_out(fitted);
}

static bool
trees_is_classifier(const void *fitted)
{
	AgLink link = ((const AgTrees *) fitted)->link;

	return link != AG_LINK_IDENTITY && link != AG_LINK_EXP && link != AG_LINK_QUANTILES;
}

/* The scores before the link. */
static size_t
trees_scratch_bytes(const void *fitted)
{
	return ((const AgTrees *) fitted)->n_outputs * sizeof(double);
}

static void
trees_run(const void *fitted, const double *features, void *scratch, double *out)
{
	ag_trees_score(fitted, features, scratch);
	ag_trees_link(fitted, scratch, out);
}

/* Every level of a tree is a comparison and a load that waits for it. */
static double
trees_row_ns(const void *fitted)
{
	const AgTrees *trees = fitted;
	double n = trees->n_trees, leaves = n > 0.0 ? (double) trees->n_leaves / n : 1.0;

	return n * (1.0 + 2.0 * log2(leaves < 1.0 ? 1.0 : leaves)) + 2.0 * (double) trees->n_combos;
}

static AgStatus
trees_prepare_rows(const AgContext *ctx, void *fitted)
{
	return ag_trees_prepare_rows(ctx, fitted);
}

static void
trees_run_rows(const void *fitted, int64_t n_rows, const double *features, void *scratch,
			   double *out)
{
	const AgTrees *trees = fitted;
	const double *scores = scratch;
	uint32_t n_out = ag_trees_n_out(trees);

	ag_trees_score_rows(trees, n_rows, features, scratch);
	for (int64_t r = 0; r < n_rows; r++)
		ag_trees_link(trees, scores + r * trees->n_outputs, out + r * n_out);
}

/* --- linear models */

static AgStatus
linear_read(const AgContext *ctx, const void *image, size_t size, void **fitted)
{
	AgLinear *linear = NULL;
	AgStatus status = ag_linear_read(ctx, image, size, &linear);

	*fitted = linear;
	return status;
}

static AgStatus
linear_write(const AgContext *ctx, const void *fitted, AgWriter *writer)
{
	return ag_linear_write(ctx, fitted, writer);
}

static void
linear_free(void *fitted)
{
	ag_linear_free(fitted);
}

static uint32_t
linear_n_features(const void *fitted)
{
	return ((const AgLinear *) fitted)->dense->n_features;
}

static uint32_t
linear_n_out(const void *fitted)
{
	return ag_linear_n_out(fitted);
}

static bool
linear_is_classifier(const void *fitted)
{
	AgLink link = ((const AgLinear *) fitted)->link;

	return link != AG_LINK_IDENTITY && link != AG_LINK_QUANTILES;
}

static size_t
no_scratch(const void *fitted)
{
	return 0;
}

static void
linear_run(const void *fitted, const double *features, void *scratch, double *out)
{
	ag_linear_run(fitted, features, out);
}

/* Features, and not the terms that they become: of a category one term is looked at. */
static double
linear_row_ns(const void *fitted)
{
	const AgLinear *linear = fitted;

	return linear->dense->n_features * (4.0 + linear->n_outputs);
}

/* --- nearest neighbours */

static AgStatus
knn_read(const AgContext *ctx, const void *image, size_t size, void **fitted)
{
	AgKnn *knn = NULL;
	AgStatus status = ag_knn_read(ctx, image, size, &knn);

	*fitted = knn;
	return status;
}

static AgStatus
knn_write(const AgContext *ctx, const void *fitted, AgWriter *writer)
{
	return ag_knn_write(ctx, fitted, writer);
}

static void
knn_free(void *fitted)
{
	ag_knn_free(fitted);
}

static uint32_t
knn_n_features(const void *fitted)
{
	return ((const AgKnn *) fitted)->dense->n_features;
}

static uint32_t
knn_n_out(const void *fitted)
{
	return ag_knn_n_out(fitted);
}

static bool
knn_is_classifier(const void *fitted)
{
	return ((const AgKnn *) fitted)->n_classes > 0;
}

static size_t
knn_scratch_bytes(const void *fitted)
{
	return ag_knn_scratch_bytes(fitted);
}

static void
knn_run(const void *fitted, const double *features, void *scratch, double *out)
{
	ag_knn_run(fitted, features, scratch, out);
}

static void
knn_run_rows(const void *fitted, int64_t n_rows, const double *features, void *scratch, double *out)
{
	ag_knn_run_rows(fitted, n_rows, features, scratch, out);
}

/* The distances to all stored rows. */
static double
knn_row_ns(const void *fitted)
{
	const AgKnn *knn = fitted;

	return (double) knn->n_rows * (1.0 + 0.15 * (knn->n_numbers + knn->n_slots));
}

/* --- neural nets */

static AgStatus
net_read(const AgContext *ctx, const void *image, size_t size, void **fitted)
{
	AgNet *net = NULL;
	AgStatus status = ag_net_read(ctx, image, size, &net);

	*fitted = net;
	return status;
}

static AgStatus
net_write(const AgContext *ctx, const void *fitted, AgWriter *writer)
{
	return ag_net_write(ctx, fitted, writer);
}

static void
net_free(void *fitted)
{
	ag_net_free(fitted);
}

static uint32_t
net_n_features(const void *fitted)
{
	return ((const AgNet *) fitted)->dense->n_features;
}

static uint32_t
net_n_out(const void *fitted)
{
	return ag_net_n_out(fitted);
}

static bool
net_is_classifier(const void *fitted)
{
	return ((const AgNet *) fitted)->link == AG_NET_SOFTMAX;
}

static size_t
net_scratch_bytes(const void *fitted)
{
	return ag_net_row_scratch_bytes(fitted);
}

static void
net_run(const void *fitted, const double *features, void *scratch, double *out)
{
	ag_net_run(fitted, features, scratch, out);
}

/* Products, several at a time. */
static double
net_row_ns(const void *fitted)
{
	const AgNet *net = fitted;
	double products = (double) net->dense->n_numbers * net->n_waves * (net->n_wave_inputs + 10.0);

	for (uint32_t i = 0; i < net->n_layers; i++)
		products += (double) net->layers[i].n_in * net->layers[i].n_out;
	return products * 0.2;
}

static void
net_run_rows(const void *fitted, int64_t n_rows, const double *features, void *scratch, double *out)
{
	ag_net_run_rows(fitted, n_rows, features, scratch, out);
}

/* --- models with columns of their own */

static AgStatus
prep_read(const AgContext *ctx, const void *image, size_t size, void **fitted)
{
	AgPrep *prep = NULL;
	AgStatus status = ag_prep_read(ctx, image, size, &prep);

	*fitted = prep;
	return status;
}

static AgStatus
prep_write(const AgContext *ctx, const void *fitted, AgWriter *writer)
{
	const AgPrep *prep = fitted;
	AgWriter inner;
	AgStatus status;

	ag_writer_init(&inner, ctx->mem);
	AG_GO(ag_model_write(ctx, &prep->inner, &inner));
	AG_GO(ag_prep_write(ctx, prep, inner.data, inner.size, writer));
done:
	ag_writer_free(&inner);
	return status;
}

static void
prep_free(void *fitted)
{
	ag_prep_free(fitted);
}

static uint32_t
prep_n_features(const void *fitted)
{
	return ((const AgPrep *) fitted)->n_in;
}

static uint32_t
prep_n_out(const void *fitted)
{
	return ag_model_n_out(&((const AgPrep *) fitted)->inner);
}

static bool
prep_is_classifier(const void *fitted)
{
	return ag_model_is_classifier(&((const AgPrep *) fitted)->inner);
}

static size_t
round_up(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* A row as the inner model sees it, and that model's own. */
static size_t
prep_scratch_bytes(const void *fitted)
{
	const AgPrep *prep = fitted;

	return round_up(ag_prep_n_inner(prep) * sizeof(double)) +
		   round_up(ag_model_scratch_bytes(&prep->inner));
}

static void
prep_run(const void *fitted, const double *features, void *scratch, double *out)
{
	const AgPrep *prep = fitted;
	size_t n = round_up(ag_prep_n_inner(prep) * sizeof(double));

	ag_prep_row(prep, features, scratch);
	ag_model_run(&prep->inner, scratch, (char *) scratch + n, out);
}

static double
prep_row_ns(const void *fitted)
{
	const AgPrep *prep = fitted;

	return 30.0 * prep->n_columns + ag_model_row_ns(&prep->inner);
}

static AgStatus
prep_prepare_rows(const AgContext *ctx, void *fitted)
{
	return ag_model_prepare_rows(ctx, &((AgPrep *) fitted)->inner);
}

static void
prep_run_rows(const void *fitted, int64_t n_rows, const double *features, void *scratch,
			  double *out)
{
	const AgPrep *prep = fitted;
	uint32_t n_inner = ag_prep_n_inner(prep);
	size_t n = round_up(n_inner * sizeof(double)) * (size_t) n_rows;
	double *rows = scratch;

	for (int64_t r = 0; r < n_rows; r++)
		ag_prep_row(prep, features + r * prep->n_in, rows + r * n_inner);
	ag_model_run_rows(&prep->inner, n_rows, rows, (char *) scratch + n, out);
}

/* By kind of image. */
static const ModelKind kinds[] = {
	[AG_IMAGE_TREES] = {trees_read, trees_write, trees_free, trees_n_features, trees_n_out,
						trees_is_classifier, trees_scratch_bytes, trees_run, trees_row_ns,
						trees_prepare_rows, trees_run_rows},
	[AG_IMAGE_LINEAR] = {linear_read, linear_write, linear_free, linear_n_features, linear_n_out,
						 linear_is_classifier, no_scratch, linear_run, linear_row_ns, NULL, NULL},
	[AG_IMAGE_KNN] = {knn_read, knn_write, knn_free, knn_n_features, knn_n_out, knn_is_classifier,
					  knn_scratch_bytes, knn_run, knn_row_ns, NULL, knn_run_rows},
	[AG_IMAGE_NET] = {net_read, net_write, net_free, net_n_features, net_n_out, net_is_classifier,
					  net_scratch_bytes, net_run, net_row_ns, NULL, net_run_rows},
	[AG_IMAGE_PREP] = {prep_read, prep_write, prep_free, prep_n_features, prep_n_out,
					   prep_is_classifier, prep_scratch_bytes, prep_run, prep_row_ns,
					   prep_prepare_rows, prep_run_rows},
};

static const ModelKind *
kind_find(uint32_t kind)
{
	if (kind >= sizeof kinds / sizeof kinds[0] || kinds[kind].read == NULL)
		return NULL;
	return &kinds[kind];
}

AgStatus
ag_model_read(const AgContext *ctx, const void *image, size_t size, AgModel *model)
{
	uint32_t number = ag_image_kind(image, size);
	const ModelKind *kind = kind_find(number);

	model->kind = (AgImageKind) 0;
	model->fitted = NULL;
	if (kind == NULL)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored model is damaged: its bytes are no model's");
	AG_TRY(kind->read(ctx, image, size, &model->fitted));
	model->kind = (AgImageKind) number;
	return AG_OK;
}

AgStatus
ag_model_write(const AgContext *ctx, const AgModel *model, AgWriter *writer)
{
	return kinds[model->kind].write(ctx, model->fitted, writer);
}

void
ag_model_free(AgModel *model)
{
	if (model->fitted != NULL)
		kinds[model->kind].free(model->fitted);
	model->kind = (AgImageKind) 0;
	model->fitted = NULL;
}

uint32_t
ag_model_n_features(const AgModel *model)
{
	return kinds[model->kind].n_features(model->fitted);
}

uint32_t
ag_model_n_out(const AgModel *model)
{
	return kinds[model->kind].n_out(model->fitted);
}

bool
ag_model_is_classifier(const AgModel *model)
{
	return kinds[model->kind].is_classifier(model->fitted);
}

bool
ag_model_fits(const AgModel *model, AgProblem problem)
{
	bool wants_classes = problem == AG_PROBLEM_BINARY || problem == AG_PROBLEM_MULTICLASS;

	if (kinds[model->kind].is_classifier(model->fitted) != wants_classes)
		return false;
	if (problem == AG_PROBLEM_QUANTILE)
		return ag_model_n_out(model) >= 1;
	return wants_classes ? ag_model_n_out(model) >= 2 : ag_model_n_out(model) == 1;
}

size_t
ag_model_scratch_bytes(const AgModel *model)
{
	return kinds[model->kind].scratch_bytes(model->fitted);
}

void
ag_model_run(const AgModel *model, const double *features, void *scratch, double *out)
{
	kinds[model->kind].run(model->fitted, features, scratch, out);
}

double
ag_model_row_ns(const AgModel *model)
{
	return kinds[model->kind].row_ns(model->fitted);
}

AgStatus
ag_model_prepare_rows(const AgContext *ctx, AgModel *model)
{
	const ModelKind *kind = &kinds[model->kind];

	return kind->prepare_rows == NULL ? AG_OK : kind->prepare_rows(ctx, model->fitted);
}

/* Trees' alone, own columns in front of them or not. */
static const AgTrees *
trees_of(const AgModel *model)
{
	const AgModel *at =
		model->kind == AG_IMAGE_PREP ? &((const AgPrep *) model->fitted)->inner : model;

	return at->kind == AG_IMAGE_TREES ? at->fitted : NULL;
}

size_t
ag_model_layout_bytes(const AgModel *model)
{
	const AgTrees *trees = trees_of(model);

	return trees == NULL ? 0 : ag_trees_layout_bytes(trees);
}

void
ag_model_layout_write(const AgModel *model, void *to)
{
	const AgTrees *trees = trees_of(model);

	if (trees != NULL)
		ag_trees_layout_write(trees, to);
}

AgStatus
ag_model_use_layout(const AgContext *ctx, AgModel *model, const void *from)
{
	AgTrees *trees = (AgTrees *) trees_of(model);

	return trees == NULL ? AG_OK : ag_trees_use_layout(ctx, trees, from);
}

size_t
ag_model_rows_scratch_bytes(const AgModel *model, int64_t n_rows)
{
	size_t bytes = ag_model_scratch_bytes(model);

	return kinds[model->kind].run_rows == NULL ? bytes : bytes * (size_t) n_rows;
}

void
ag_model_run_rows(const AgModel *model, int64_t n_rows, const double *features, void *scratch,
				  double *out)
{
	const ModelKind *kind = &kinds[model->kind];
	uint32_t n_features, n_out;

	if (kind->run_rows != NULL)
	{
		kind->run_rows(model->fitted, n_rows, features, scratch, out);
		return;
	}
	n_features = kind->n_features(model->fitted);
	n_out = kind->n_out(model->fitted);
	for (int64_t r = 0; r < n_rows; r++)
		kind->run(model->fitted, features + r * n_features, scratch, out + r * n_out);
}
