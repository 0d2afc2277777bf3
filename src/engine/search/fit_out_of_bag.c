/*
 * fit_out_of_bag.c - a bag of forests that is one forest: each row is scored by the trees that were grown without it. And one of neighbours: each row by the others.
 *
 * An eighth of the work of eight folds, and the model that predicts has seen all rows. It is honest only where a row left out says as
 * little of the others as any new one: not with groups or an order in time; nor with own columns, which are made from the
 * labels of all rows that the forest is trained on. There, the bag has its folds.
 */
#include <math.h>
#include <string.h>

#include "engine/model/forest.h"
#include "engine/model/knn.h"
#include "engine/search/fit_state.h"

/* Does the family know what it would say of a row that it hadn't seen, and is it to? */
static bool
wants_oob(const AgModelConfig *config)
{
	if (config->family->id == AG_FAMILY_KNN)
		return ((const AgKnnParams *) config->params)->wants_oob;
	return (config->family->id == AG_FAMILY_RF || config->family->id == AG_FAMILY_XT) &&
		   ((const AgForestParams *) config->params)->wants_oob;
}

bool
ag_fit_is_out_of_bag(const AgFit *fit, const AgModelConfig *config)
{
	const AgValidation *v = &fit->validation;

	return wants_oob(config) && !v->is_held_out && !v->is_forward && fit->group_of == NULL &&
		   !config->prep.target && !config->prep.crosses && !config->prep.group_by &&
		   (fit->pipeline == NULL || fit->pipeline->n_features == fit->pipeline->n_visible);
}

/* Of the rows that scores are of: those that are the only ones of their classes aren't among them. */
static AgStatus
take_scored(AgFit *fit, const AgContext *ctx, const double *oob, AgFitModel *model)
{
	const AgValidation *v = &fit->validation;
	size_t width = (size_t) ag_fit_width(fit);

	AG_TRY(ag_get(ctx, (size_t) v->n_scored, width * sizeof(double), &model->proba));
	for (int64_t i = 0; i < v->n_scored; i++)
		memcpy(model->proba + (size_t) i * width, oob + v->scored_rows[i] * width,
			   width * sizeof(double));
	for (size_t i = 0; i < (size_t) v->n_scored * width; i++)
		if (!isfinite(model->proba[i]))
			return ag_error_set(ctx->error, AG_ERR_DATA,
								"its out-of-bag predictions are not finite");
	model->n_covered = v->n_scored;
	return ag_fit_value(fit, ctx, v->n_scored, v->target, v->class_of, v->weight, model->proba,
						&model->value);
}

AgStatus
ag_fit_out_of_bag(AgFit *fit, AgContext *ctx, AgFitModel *model)
{
	AgTrained *trained = &model->children[0];
	AgSplit all = {.number = ag_fit_all_rows_number(fit)}; /* the rows of a refit */
	AgStatus status;

	AG_TRY(ag_get(ctx, (size_t) fit->n_rows, sizeof *all.train_rows, &all.train_rows));
	for (int64_t r = 0; r < fit->n_rows; r++)
		all.train_rows[all.n_train++] = (uint32_t) r;
	AG_GO(ag_fit_train_child(fit, ctx, ag_fit_rows(fit, model->level), &all, model, 0, 0, trained));
	model->n_children = 1; /* from here on it is the model's to free */
	model->child_at[0] = 0;
	ag_mem_free(ctx->mem, trained->valid_proba);
	trained->valid_proba = NULL;
	if (trained->oob_proba == NULL)
		AG_GO(ag_error_set(ctx->error, AG_ERR_INTERNAL, "a model has no out-of-bag predictions"));
	AG_GO(take_scored(fit, ctx, trained->oob_proba, model));
	ag_log(&fit->ctx, AG_LOG_NORMAL,
		   model->config->family->id == AG_FAMILY_KNN
			   ? "  one model of all rows, each scored by its neighbours without itself"
			   : "  one forest of all rows, scored by its out-of-bag predictions");
done:
	ag_mem_free(ctx->mem, trained->oob_proba);
	trained->oob_proba = NULL;
	ag_mem_free(ctx->mem, all.train_rows);
	return status;
}
