/*
 * fit_oof.c - the best model's predictions of the rows that it was scored on, made without them: kept for ag_predict_oof.
 */
#include <string.h>

#include "engine/search/fit_state.h"

/* What the model or ensemble of that name predicted for the i-th scored row; false: not known of all rows. */
static bool
is_known(const AgFit *fit, const char *best, const AgFitEnsemble *ensemble)
{
	for (int m = 0; m < fit->n_models; m++)
	{
		const AgFitModel *model = &fit->models[m];
		bool is_in = ensemble != NULL ? m < ensemble->n_models && ensemble->weights[m] > 0.0
									  : strcmp(model->name, best) == 0;

		if (is_in && (model->proba == NULL || model->n_covered != fit->validation.n_scored))
			return false;
	}
	return true;
}

static void
row_write(const AgFit *fit, const char *best, const AgFitEnsemble *ensemble, int64_t i,
		  AgWriter *out)
{
	int width = ag_fit_width(fit);

	for (int k = 0; k < width; k++)
	{
		double sum = 0.0;
		float single;

		for (int m = 0; m < fit->n_models; m++)
		{
			const AgFitModel *model = &fit->models[m];
			double weight = ensemble == NULL         ? strcmp(model->name, best) == 0
							: m < ensemble->n_models ? ensemble->weights[m]
													 : 0.0;

			if (weight > 0.0)
				sum += weight * model->proba[i * width + k];
		}
		single = (float) sum;
		ag_write_bytes(out, &single, sizeof single);
	}
}

static void
weight_write(const AgValidation *v, int64_t i, AgWriter *out)
{
	float single = v->weight != NULL ? (float) v->weight[i] : 1.0f;

	if (v->weight != NULL)
		ag_write_bytes(out, &single, sizeof single);
}

AgStatus
ag_fit_oof_write(AgFit *fit, AgWriter *out)
{
	const AgValidation *v = &fit->validation;
	double value;
	const char *best = ag_fit_best_model(fit, &value);
	const AgFitEnsemble *ensemble = ag_fit_find_ensemble(fit, best);

	if (fit->options->save_space || v->n_scored == 0 || !is_known(fit, best, ensemble))
		return AG_OK;
	ag_write_u32(out, AG_OOF_MAGIC);
	ag_write_u32(out, AG_OOF_VERSION);
	ag_write_u32(out, (uint32_t) ag_fit_width(fit));
	ag_write_u32(out, (v->class_of != NULL ? AG_OOF_CLASSES : 0) |
						  (v->weight != NULL ? AG_OOF_WEIGHTS : 0));
	ag_write_u64(out, (uint64_t) v->n_scored);
	for (int64_t i = 0; i < v->n_scored; i++)
	{
		if (v->class_of != NULL)
			ag_write_i32(out, v->class_of[i]);
		else
			ag_write_f64(out, v->target[i]);
		row_write(fit, best, ensemble, i, out);
		weight_write(v, i, out);
		if ((i & 4095) == 0)
			AG_TRY(ag_check_cancel(&fit->ctx));
	}
	return out->failed ? ag_mem_error(fit->ctx.mem, out->size, fit->ctx.error) : AG_OK;
}
