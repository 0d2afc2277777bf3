/*
 * families_prep.c - models with columns of their own: what they make of the rows before their family learns from them.
 */
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/prep.h"
#include "engine/search/families_private.h"

#define CHOSEN_TERMS 300
#define TERM_BYTES 18 /* of a row and term: twice a number, and its bin */

bool
ag_config_has_prep(const AgModelConfig *config)
{
	return config->prep.target || config->prep.crosses || config->prep.group_by;
}

/* The rows with further columns behind those that they have, in forms of their own. */
static AgStatus
prep_rows(AgWork *work, const AgPrep *prep, const double *values, double **extra, AgFitRows *own)
{
	AgFitRows *rows = work->rows;
	size_t n_rows = (size_t) rows->table->n_rows;
	size_t before = (size_t) rows->n_extra * n_rows, more = prep->n_columns * n_rows;

	AG_TRY(ag_get(work->ctx, before + more, sizeof **extra, extra));
	if (before > 0)
		memcpy(*extra, rows->extra, before * sizeof **extra);
	memcpy(*extra + before, values, more * sizeof **extra);
	memset(own, 0, sizeof *own);
	own->ctx = rows->ctx;
	own->pipeline = rows->pipeline;
	own->table = rows->table;
	own->n_extra = rows->n_extra + (int) prep->n_columns;
	own->extra = *extra;
	own->first_level = rows->first_level != NULL ? rows->first_level : rows;
	return AG_OK;
}

/* Directions of as many features as the inner model has; own columns have none. */
static AgStatus
prep_directions(AgWork *work, const AgFitRows *own, int8_t **directions)
{
	AG_TRY(ag_get_zeroed(work->ctx, (size_t) ag_fit_rows_features(own), 1, directions));
	memcpy(*directions, work->data->monotone, (size_t) own->pipeline->n_visible);
	work->data->monotone = *directions;
	return AG_OK;
}

/* The model's image goes into one that makes the columns for it. */
static AgStatus
prep_store(AgWork *work, const AgPrep *prep)
{
	AgTrained *trained = work->trained;
	AgWriter out;
	AgStatus status;

	ag_writer_init(&out, work->ctx->mem);
	status = ag_prep_write(work->ctx, prep, trained->image, trained->n_image, &out);
	if (status == AG_OK && out.failed)
		status = ag_mem_error(work->ctx->mem, out.size, work->ctx->error);
	if (status != AG_OK)
	{
		ag_writer_free(&out);
		return status;
	}
	ag_mem_free(work->ctx->mem, trained->image);
	trained->image = out.data;
	trained->n_image = out.size;
	return AG_OK;
}

AgFitRows *
ag_work_root(const AgWork *work)
{
	return work->rows->first_level != NULL ? work->rows->first_level : work->rows;
}

/* The terms of all rows, made once. */
AgStatus
ag_fit_texts_make(const AgContext *ctx, AgFitRows *root)
{
	AgFitTexts *texts;

	if (root->texts != NULL || root->pipeline->n_features == root->pipeline->n_visible)
		return AG_OK;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *texts, &texts));
	root->texts = texts;
	return ag_pipeline_terms(ctx, root->pipeline, root->table, &texts->terms);
}

/*
 * A linear model of the texts' terms on the split's training rows, fitted once for all models that there is room to keep it for;
 * *own: it is the caller's to free. Two trainings never work on one split at the same time.
 */
static AgStatus
score_of(AgWork *work, AgFitTexts *texts, const AgTextScore **score, AgTextScore **own)
{
	const AgPipeline *pipeline = work->rows->pipeline;
	uint32_t n_terms = (uint32_t) (pipeline->n_features - pipeline->n_visible);
	_Atomic(AgTextScore *) *kept = &texts->scores[work->split % AG_FIT_SCORES];
	AgTextScore *made = atomic_load(kept), *nothing = NULL;
	uint8_t *part = NULL;
	AgStatus status;

	*score = made;
	if (made != NULL && made->split == work->split)
		return AG_OK;
	AG_GO(ag_get(work->ctx, (size_t) texts->terms.n_rows, 1, &part));
	ag_prep_deal(work->data, texts->terms.n_rows, work->seed, part);
	AG_GO(ag_text_score_fit(work->ctx, &texts->terms, n_terms, work->data, part, AG_PREP_PARTS,
							&made));
	*score = made;
	if (made != NULL)
	{
		made->split = work->split;
		if (!atomic_compare_exchange_strong(kept, &nothing, made))
			*own = made;
	}
done:
	ag_mem_free(work->ctx->mem, part);
	return status;
}

/* Terms as columns of their own: as many as take an eighth of the memory at most. */
static uint32_t
terms_affordable(const AgWork *work)
{
	int64_t limit = work->ctx->mem->limit_bytes, most = CHOSEN_TERMS;

	if (!ag_work_has_bins(work))
		return 0;
	if (limit < INT64_MAX && limit / 8 / TERM_BYTES / work->rows->table->n_rows < most)
		most = limit / 8 / TERM_BYTES / work->rows->table->n_rows;
	return (uint32_t) most;
}

/* What there is to be learnt from texts: few terms for trees, and the linear model for all. */
static AgStatus
prep_texts(AgWork *work, AgPrepParams *params, AgTextScore **own)
{
	AgFitRows *root = ag_work_root(work);
	const AgPipeline *pipeline = root->pipeline;

	params->n_hidden = (uint32_t) (pipeline->n_features - pipeline->n_visible);
	params->n_in = (uint32_t) ag_fit_rows_width(work->rows);
	if (params->n_hidden == 0)
		return AG_OK;
	AG_TRY(ag_fit_texts_make(work->ctx, root));
	AG_TRY(score_of(work, root->texts, &params->score, own));
	params->terms = &root->texts->terms;
	params->most_terms = terms_affordable(work);
	return AG_OK;
}

AgStatus
ag_work_train_prep(AgWork *work)
{
	const AgModelConfig *config = work->config;
	AgPrepParams params = {.target = config->prep.target,
						   .crosses = config->prep.crosses,
						   .group_by = config->prep.group_by,
						   .seed = work->seed};
	AgFitRows own = {.ctx = NULL};
	AgFitRows *rows = work->rows;
	const int8_t *monotone = work->data->monotone;
	double *values = NULL, *extra = NULL;
	AgTextScore *score = NULL;
	int8_t *directions = NULL;
	AgDenseSource source;
	AgPrep *prep = NULL;
	AgStatus status;

	AG_GO(ag_work_source(work, &source));
	source.n_features = (uint32_t) rows->pipeline->n_visible;
	AG_GO(prep_texts(work, &params, &score));
	AG_GO(ag_prep_fit(work->ctx, &source, work->data, &params, &prep, &values));
	if (prep == NULL)
	{
		AG_GO(ag_work_train(work));
		goto done;
	}
	AG_GO(prep_rows(work, prep, values, &extra, &own));
	ag_mem_free(work->ctx->mem, values);
	values = NULL;
	if (monotone != NULL)
		AG_GO(prep_directions(work, &own, &directions));
	work->rows = &own;
	work->last = false;
	AG_GO(ag_work_train(work));
	AG_GO(prep_store(work, prep));
	ag_log(rows->ctx, AG_LOG_RESOURCES, "  %s has %u columns of its own", config->name,
		   prep->n_columns);
done:
	work->data->monotone = monotone;
	ag_mem_free(work->ctx->mem, directions);
	ag_fit_rows_free(&own);
	ag_text_score_free(score);
	ag_prep_free(prep);
	ag_mem_free(work->ctx->mem, values);
	ag_mem_free(work->ctx->mem, extra);
	return status;
}

void
ag_fit_texts_free(AgMem *mem, AgFitTexts *texts)
{
	if (texts == NULL)
		return;
	ag_mem_free(mem, (void *) texts->terms.first);
	ag_mem_free(mem, (void *) texts->terms.terms);
	for (int i = 0; i < AG_FIT_SCORES; i++)
		ag_text_score_free(atomic_load(&texts->scores[i]));
	ag_mem_free(mem, texts);
}
