/*
 * fit_heldout.c - bags that are scored on rows held out from all of their folds ("use_bag_holdout"): what each child makes of them.
 *
 * Children stop by their own fold, so that the rows held out have had no say in anything.
 */
#include "engine/base/threads.h"
#include "engine/model/model.h"
#include "engine/search/fit_state.h"

#define ROWS_AT_ONCE 256

typedef struct Held
{
	const AgFit *fit;
	const AgModel *model;
	double *proba; /* [n_scored][width] that predictions are added to */
	int width, n_features;
	double *features, *column,
		*out; /* of each thread: [ROWS_AT_ONCE][n_features], [ROWS_AT_ONCE], [width] */
	char *scratch;
	size_t n_scratch;
} Held;

static void
predict_task(void *arg, int64_t begin, int64_t end, int thread)
{
	const Held *h = arg;
	const AgFit *fit = h->fit;
	double *features = h->features + (size_t) thread * ROWS_AT_ONCE * (size_t) h->n_features;
	double *column = h->column + (size_t) thread * ROWS_AT_ONCE;
	double *out = h->out + (size_t) thread * (size_t) h->width;

	for (int64_t at = begin; at < end && !ag_cancelled(&fit->ctx); at += ROWS_AT_ONCE)
	{
		int64_t n = end - at < ROWS_AT_ONCE ? end - at : ROWS_AT_ONCE;

		for (int f = 0; f < h->n_features; f++)
		{
			ag_pipeline_feature(fit->pipeline, fit->table, f, fit->validation.scored_rows + at, n,
								column);
			for (int64_t i = 0; i < n; i++)
				features[i * h->n_features + f] = column[i];
		}
		for (int64_t i = 0; i < n; i++)
		{
			ag_model_run(h->model, features + i * h->n_features,
						 h->scratch + (size_t) thread * h->n_scratch, out);
			for (int k = 0; k < h->width; k++)
				h->proba[(at + i) * h->width + k] += out[k];
		}
	}
}

AgStatus
ag_fit_held_predict(AgFit *fit, const AgContext *ctx, const AgTrained *trained, double *proba)
{
	size_t n_threads = (size_t) ag_pool_size(ctx->pool);
	Held held = {.fit = fit, .proba = proba, .width = ag_fit_width(fit)};
	AgModel model;
	AgStatus status;

	held.n_features = fit->pipeline->n_features;
	AG_TRY(ag_model_read(ctx, trained->image, trained->n_image, &model));
	held.model = &model;
	held.n_scratch = (ag_model_scratch_bytes(&model) + 63) / 64 * 64;
	AG_GO(ag_get(ctx, n_threads * ROWS_AT_ONCE, (size_t) held.n_features * sizeof(double),
				 &held.features));
	AG_GO(ag_get(ctx, n_threads, ROWS_AT_ONCE * sizeof(double), &held.column));
	AG_GO(ag_get(ctx, n_threads, (size_t) held.width * sizeof(double), &held.out));
	AG_GO(ag_get(ctx, n_threads, held.n_scratch, &held.scratch));
	ag_pool_run(ctx->pool, fit->validation.n_scored, ROWS_AT_ONCE, predict_task, &held);
	status = ag_check_cancel(ctx);
done:
	ag_mem_free(ctx->mem, held.features);
	ag_mem_free(ctx->mem, held.column);
	ag_mem_free(ctx->mem, held.out);
	ag_mem_free(ctx->mem, held.scratch);
	ag_model_free(&model);
	return status;
}
