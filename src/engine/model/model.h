/*
 * model.h - a fitted model of any family, as prediction and the catalogue see it.
 *
 * What a family's model can do is one row of a table (model.c), keyed by the kind of its image. So whoever predicts,
 * stores or loads never asks which family it is.
 */
#ifndef AG_MODEL_H
#define AG_MODEL_H

#include "engine/base/context.h"
#include "engine/data/format.h"
#include "engine/data/label.h"

/* kind 0: none. The rest is the family's own structure (AgTrees, AgLinear, AgKnn, ...), owned. */
typedef struct AgModel
{
	AgImageKind kind;
	void *fitted;
} AgModel;

/* In place: image must outlive the model and be 64-byte aligned. Checks all of it: AG_ERR_CORRUPT. */
AgStatus ag_model_read(const AgContext *ctx, const void *image, size_t size, AgModel *model);
AgStatus ag_model_write(const AgContext *ctx, const AgModel *model, AgWriter *writer);
void ag_model_free(AgModel *model); /* a model of kind 0 is allowed; leaves one behind */

/*
 * What reading and preparing made beside the image (ag_trees_layout_bytes): 0 bytes: nothing. Where the context trusts images, a
 * model is as fast as it was only with its layout, which must outlive it.
 */
size_t ag_model_layout_bytes(const AgModel *model);
void ag_model_layout_write(const AgModel *model, void *to);
AgStatus ag_model_use_layout(const AgContext *ctx, AgModel *model, const void *from);

/* Length of the feature vector it was trained on. */
uint32_t ag_model_n_features(const AgModel *model);
/* Numbers that a run writes: 1, or the number of classes. */
uint32_t ag_model_n_out(const AgModel *model);
/* Does it answer with classes' probabilities? */
bool ag_model_is_classifier(const AgModel *model);
/* Does it answer that kind of problem (a value, or classes' probabilities)? */
bool ag_model_fits(const AgModel *model, AgProblem problem);
/* Bytes of the scratch space that a run takes, 64-byte aligned; one a thread. */
size_t ag_model_scratch_bytes(const AgModel *model);

/*
 * One row, features[n_features] as a pipeline gives them: the value, or the classes' probabilities, to out[n_out]. No
 * allocation; any number of threads, each with its own scratch.
 */
void ag_model_run(const AgModel *model, const double *features, void *scratch, double *out);

/* Nanoseconds that a run takes, about: by the model's size alone, so that it is the same everywhere. */
double ag_model_row_ns(const AgModel *model);

/*
 * Many rows: features[n_rows][n_features] to out[n_rows][n_out], the same bytes as row by row, with a larger scratch space.
 * Preparing makes it faster where the family can (AG_ERR_MEMORY; then it works as before).
 */
AgStatus ag_model_prepare_rows(const AgContext *ctx, AgModel *model);
size_t ag_model_rows_scratch_bytes(const AgModel *model, int64_t n_rows);
void ag_model_run_rows(const AgModel *model, int64_t n_rows, const double *features, void *scratch,
					   double *out);

#endif
