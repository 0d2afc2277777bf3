/*
 * families_settle.c - the round of a trained model chosen after the fact, by somebody who looks at other rows than its own
 * validation rows.
 */
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/prep.h"
#include "engine/model/trees.h"
#include "engine/search/families.h"

#define ROWS_AT_ONCE 256

/* A model at work on rows of the table. */
typedef struct Prediction
{
	const AgFitRows *rows;
	const AgModel *model;
	const uint32_t *ids;
	int n_features, n_out;
	size_t n_scratch;
	double *features; /* [threads][ROWS_AT_ONCE][n_features] */
	double *column;   /* [threads][ROWS_AT_ONCE] */
	char *scratch;    /* [threads][n_scratch] */
	double *out;      /* [n][n_out] */
} Prediction;

static void
predict_rows(void *arg, int64_t begin, int64_t end, int thread)
{
	const Prediction *p = arg;
	double *features = p->features + (int64_t) thread * ROWS_AT_ONCE * p->n_features;
	double *column = p->column + (int64_t) thread * ROWS_AT_ONCE;

	for (int64_t at = begin; at < end; at += ROWS_AT_ONCE)
	{
		int64_t n = end - at < ROWS_AT_ONCE ? end - at : ROWS_AT_ONCE;

		for (int f = 0; f < p->n_features; f++)
		{
			ag_fit_rows_read(p->rows, (uint32_t) f, p->ids + at, n, column);
			for (int64_t i = 0; i < n; i++)
				features[i * p->n_features + f] = column[i];
		}
		ag_model_run_rows(p->model, n, features, p->scratch + (size_t) thread * p->n_scratch,
						  p->out + at * p->n_out);
	}
}

AgStatus
ag_family_predict(const AgContext *ctx, const AgFitRows *rows, const AgTrained *trained,
				  const uint32_t *ids, int64_t n, double *out)
{
	size_t n_threads = (size_t) ag_pool_size(ctx->pool);
	Prediction p = {.rows = rows, .ids = ids, .n_features = ag_fit_rows_width(rows), .out = out};
	AgModel model;
	AgStatus status;

	AG_TRY(ag_model_read(ctx, trained->image, trained->n_image, &model));
	p.model = &model;
	p.n_out = (int) ag_model_n_out(&model);
	p.n_scratch = (ag_model_rows_scratch_bytes(&model, ROWS_AT_ONCE) + 63) / 64 * 64;
	AG_GO(ag_model_prepare_rows(ctx, &model));
	AG_GO(
		ag_get(ctx, n_threads * ROWS_AT_ONCE, (size_t) p.n_features * sizeof(double), &p.features));
	AG_GO(ag_get(ctx, n_threads * ROWS_AT_ONCE, sizeof(double), &p.column));
	AG_GO(ag_get(ctx, n_threads, p.n_scratch, &p.scratch));
	ag_pool_run(ctx->pool, n, ROWS_AT_ONCE, predict_rows, &p);
	status = ag_check_cancel(ctx);
done:
	ag_mem_free(ctx->mem, p.features);
	ag_mem_free(ctx->mem, p.column);
	ag_mem_free(ctx->mem, p.scratch);
	ag_model_free(&model);
	return status;
}

/* The image of the first rounds of trees. */
static AgStatus
trees_write(const AgContext *ctx, AgTrees *trees, int round, int rounds_run, AgWriter *out)
{
	uint32_t per_round = trees->n_trees / (uint32_t) rounds_run;

	ag_trees_cut(trees, (uint32_t) round * per_round);
	ag_writer_init(out, ctx->mem);
	AG_TRY(ag_trees_write(ctx, trees, out));
	return out->failed ? ag_mem_error(ctx->mem, out->size, ctx->error) : AG_OK;
}

/* The same of trees behind columns of their own. */
static AgStatus
prep_cut(const AgContext *ctx, int round, const AgTrained *trained, AgWriter *out)
{
	AgWriter inner;
	AgPrep *prep;
	AgStatus status;

	ag_writer_init(&inner, ctx->mem);
	AG_TRY(ag_prep_read(ctx, trained->image, trained->n_image, &prep));
	AG_GO(trees_write(ctx, prep->inner.fitted, round, trained->rounds_run, &inner));
	AG_GO(ag_prep_write(ctx, prep, inner.data, inner.size, out));
	if (out->failed)
		status = ag_mem_error(ctx->mem, out->size, ctx->error);
done:
	ag_writer_free(&inner);
	ag_prep_free(prep);
	return status;
}

static AgStatus
trees_cut(const AgContext *ctx, int round, const AgTrained *trained, AgWriter *out)
{
	AgTrees *trees;
	AgStatus status;

	AG_TRY(ag_trees_read(ctx, trained->image, trained->n_image, &trees));
	status = trees_write(ctx, trees, round, trained->rounds_run, out);
	ag_trees_free(trees);
	return status;
}

static AgStatus
image_cut(const AgContext *ctx, int round, AgTrained *trained)
{
	AgWriter out;
	AgStatus status;

	ag_writer_init(&out, ctx->mem);
	if (ag_image_kind(trained->image, trained->n_image) == AG_IMAGE_PREP)
		status = prep_cut(ctx, round, trained, &out);
	else
		status = trees_cut(ctx, round, trained, &out);
	if (status != AG_OK)
	{
		ag_writer_free(&out);
		return status;
	}
	ag_mem_free(ctx->mem, trained->image);
	trained->image = out.data;
	trained->n_image = out.size;
	trained->rounds = round;
	return AG_OK;
}

static AgStatus
booster_settle(const AgContext *ctx, const AgFitRows *rows, const uint32_t *valid_rows,
			   int64_t n_valid, int round, AgTrained *trained)
{
	AG_TRY(image_cut(ctx, round, trained));
	return ag_family_predict(ctx, rows, trained, valid_rows, n_valid, trained->valid_proba);
}

AgStatus
ag_family_settle(const AgContext *ctx, const AgFitRows *rows, const uint32_t *valid_rows,
				 int64_t n_valid, int round, AgTrained *trained)
{
	AgStatus status = AG_OK;
	const float *stage;

	if (round > trained->rounds_run)
		round = trained->rounds_run;
	if (trained->keeps_rounds)
		status = booster_settle(ctx, rows, valid_rows, n_valid, round > 0 ? round : 1, trained);
	trained->keeps_rounds = false;
	stage = ag_stages_near(&trained->stages, round);
	for (int64_t i = 0; stage != NULL && i < trained->stages.n_cells; i++)
		trained->valid_proba[i] = stage[i];
	ag_stages_free(ctx, &trained->stages);
	return status;
}
