/*
 * fit_slot.c - what trainings that run at the same time have each for themselves: an error, a pool, lists of rows, forms of the rows.
 */
#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/stacked.h"
#include "engine/search/fit_state.h"

AgStatus
ag_fit_slot_prepare(AgFit *fit, const AgContext *ctx, int level, const AgModelConfig *config)
{
	AgContext own = *ctx;

	own.gpu = ag_fit_idle_gpu(fit, config);
	return ag_family_prepare(&own, ag_fit_rows(fit, ag_fit_is_nested(fit, level) ? 1 : level),
							 config);
}

AgStatus
ag_fit_slot_open(AgFit *fit, const AgContext *ctx, int level, int n_cpus, AgFitSlot *slot)
{
	const AgFitRows *rows = ag_fit_rows(fit, level);
	size_t n = (size_t) fit->n_rows;

	slot->ctx = *ctx;
	ag_error_init(&slot->error);
	slot->ctx.error = &slot->error;
	slot->rows = *rows;
	slot->rows.dense = NULL;
	slot->rows.matrix = NULL;
	slot->rows.n_levels = NULL;
	slot->rows.ctx = &slot->ctx;
	if (ag_fit_is_nested(fit, level))
	{
		slot->rows.bins = NULL;
		slot->rows.extra = NULL;
		AG_TRY(ag_get(ctx, (size_t) rows->n_extra, n * sizeof *slot->extra, &slot->extra));
		slot->rows.extra = slot->extra;
	}
	if (n_cpus > 0)
	{
		AG_TRY(ag_pool_create(fit->ctx.mem, n_cpus, &slot->pool, ctx->error));
		slot->ctx.pool = slot->pool;
	}
	AG_TRY(ag_get(ctx, n, sizeof(uint32_t), &slot->split.train_rows));
	return ag_get(ctx, n, sizeof(uint32_t), &slot->split.valid_rows);
}

void
ag_fit_slot_close(AgFit *fit, int level, AgFitSlot *slot)
{
	AgMem *mem = fit->ctx.mem;

	if (slot->ctx.mem == NULL)
		return; /* it was never opened */
	if (slot->rows.bins == ag_fit_rows(fit, level)->bins)
		slot->rows.bins = NULL; /* the fit's own */
	slot->rows.texts = NULL;    /* likewise */
	ag_fit_rows_free(&slot->rows);
	ag_pool_free(slot->pool);
	ag_mem_free(mem, slot->extra);
	ag_mem_free(mem, slot->split.train_rows);
	ag_mem_free(mem, slot->split.valid_rows);
}

/* --- columns of a level above the first */

/* Where the predictions of one input are that rows of each part get; NULL: nowhere, they stay unknown. */
typedef struct Source
{
	const float *values[AG_FIT_NO_FOLD + 1];
} Source;

/* A row of a part that is trained without gets what is said without that much, any other what is said without its own part, too. */
static void
source_find(const AgFit *fit, const AgFitModel *input, int set, uint32_t without, int width,
			Source *source)
{
	const AgFitParts *parts = &fit->parts;

	memset(source, 0, sizeof *source);
	for (int p = 0; p < parts->n; p++)
	{
		uint32_t mask = without | UINT32_C(1) << p;
		const float *values = input->without[(uint32_t) set << parts->n | mask];

		for (int q = 0; q < p && values != NULL; q++)
			if ((mask >> q & 1) != 0)
				values += parts->size[set * parts->n + q] * width;
		source->values[p] = values;
	}
}

AgStatus
ag_fit_slot_columns(AgFit *fit, int level, int set, uint32_t without, int fold, AgFitSlot *slot)
{
	const AgFitLevel *own = &fit->levels[level - 1];
	const AgFitParts *parts = &fit->parts;
	const uint8_t *part_of = parts->of + (int64_t) set * fit->n_rows;
	const uint32_t *at = parts->at + (int64_t) set * fit->n_rows;
	const uint8_t *fold_of = fit->validation.fold_of + (int64_t) set * fit->n_rows;
	int n_out = ag_fit_width(fit), width = ag_stack_width(fit->label->problem, n_out);

	/* what was made of other columns */
	ag_bins_free(slot->rows.bins);
	ag_dense_matrix_free(slot->rows.matrix);
	ag_dense_free(slot->rows.dense);
	slot->rows.bins = NULL;
	slot->rows.matrix = NULL;
	slot->rows.dense = NULL;
	for (int b = 0; b < own->n_inputs; b++)
	{
		Source source;

		source_find(fit, &fit->models[own->inputs[b]], set, without, width, &source);
		for (int k = 0; k < width; k++)
		{
			int64_t first = (int64_t) (b * width + k) * fit->n_rows;
			double *column = slot->extra + first;

			for (int64_t r = 0; r < fit->n_rows; r++)
			{
				const float *values = source.values[part_of[r]];

				if (fold >= 0 && fold_of[r] == fold) /* as it will be scored */
					column[r] = own->columns[first + r];
				else
					column[r] = values != NULL ? (double) values[(int64_t) at[r] * width + k]
											   : (double) NAN;
			}
		}
		AG_TRY(ag_check_cancel(&slot->ctx));
	}
	return AG_OK;
}
