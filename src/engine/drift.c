/*
 * drift.c - rows counted beside the distributions that a predictor remembers of its training data.
 */
#include <math.h>

#include "engine/predictor_private.h"

#define TOP_LEVELS 19 /* of a category; the rest share a bin */
#define N_BINS 21     /* the last one is the missing values' */
#define MISSING (N_BINS - 1)
#define LEAST_SHARE 1e-4 /* of a bin: an empty one would count without end */

typedef struct Counts
{
	int64_t now[N_BINS];
	int64_t n_unseen;
	int feature; /* the one that is counted; -1: none */
} Counts;

struct AgDrift
{
	AgMem *mem;
	const AgPipeline *pipeline;
	int64_t n_rows;
	Counts *counts; /* [n_inputs] */
};

AgStatus
ag_drift_create(const AgContext *ctx, const AgPredictor *predictor, AgDrift **drift)
{
	const AgPipeline *pipeline = predictor->pipeline;
	AgDrift *made;

	*drift = NULL;
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof *made, &made));
	made->mem = ctx->mem;
	made->pipeline = pipeline;
	if (ag_get_zeroed(ctx, (size_t) pipeline->n_inputs, sizeof *made->counts, &made->counts) !=
		AG_OK)
	{
		ag_mem_free(ctx->mem, made);
		return AG_ERR_MEMORY;
	}
	for (int i = 0; i < pipeline->n_inputs; i++)
		made->counts[i].feature = ag_profile_feature(pipeline, i);
	*drift = made;
	return AG_OK;
}

void
ag_drift_free(AgDrift *drift)
{
	if (drift == NULL)
		return;
	ag_mem_free(drift->mem, drift->counts);
	ag_mem_free(drift->mem, drift);
}

static void
count_category(Counts *counts, double code)
{
	if (code != code)
		counts->now[MISSING]++;
	else
	{
		counts->n_unseen += code < 0.0;
		counts->now[code >= 0.0 && code < TOP_LEVELS ? (int) code : TOP_LEVELS]++;
	}
}

/* min and max are NaN for dates: none of them counts as unseen. */
static void
count_number(Counts *counts, const AgHistogram *histogram, const AgInput *input, double origin,
			 double x)
{
	int bin = ag_histogram_bin(histogram, x);

	counts->now[bin == AG_PROFILE_MISSING ? MISSING : bin]++;
	counts->n_unseen += x + origin < input->min || x + origin > input->max;
}

void
ag_drift_add(AgDrift *drift, int64_t n_rows, const double *features)
{
	const AgPipeline *pipeline = drift->pipeline;

	drift->n_rows += n_rows;
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		Counts *counts = &drift->counts[i];
		const AgFeature *feature;

		if (counts->feature < 0)
			continue;
		feature = &pipeline->features[counts->feature];
		for (int64_t r = 0; r < n_rows; r++)
		{
			double x = features[r * pipeline->n_features + counts->feature];

			if (feature->kind == AG_FEATURE_CATEGORY)
				count_category(counts, x);
			else
				count_number(counts, &pipeline->profile.histograms[i], &pipeline->inputs[i],
							 (double) feature->origin, x);
		}
	}
}

/* Training's counts in the same bins. */
static void
counts_before(const AgPipeline *pipeline, int i, bool is_category, double *before)
{
	const AgInput *input = &pipeline->inputs[i];

	if (is_category)
	{
		before[MISSING] = (double) input->n_missing;
		before[TOP_LEVELS] = (double) (pipeline->profile.n_table_rows - input->n_missing);
		for (uint32_t level = 0; level < input->levels->n_levels && level < TOP_LEVELS; level++)
		{
			before[level] = (double) input->levels->counts[level];
			before[TOP_LEVELS] -= before[level];
		}
		before[TOP_LEVELS] = fmax(before[TOP_LEVELS], 0.0);
	}
	else
	{
		const AgHistogram *histogram = &pipeline->profile.histograms[i];

		for (int k = 0; k < AG_PROFILE_MISSING; k++)
			before[k] = histogram->counts[k];
		before[MISSING] = histogram->counts[AG_PROFILE_MISSING];
	}
}

AgDriftResult
ag_drift_result(const AgDrift *drift, int i)
{
	const Counts *counts = &drift->counts[i];
	AgDriftResult result = {(double) NAN, (double) NAN, (double) NAN, (double) NAN};
	double before[N_BINS] = {0}, n_before = 0.0, n_now = (double) drift->n_rows;
	double n_there = n_now - (double) counts->now[MISSING];

	if (counts->feature < 0 || drift->n_rows == 0)
		return result;
	counts_before(drift->pipeline, i,
				  drift->pipeline->features[counts->feature].kind == AG_FEATURE_CATEGORY, before);
	for (int k = 0; k < N_BINS; k++)
		n_before += before[k];
	result.psi = 0.0;
	for (int k = 0; k < N_BINS; k++)
	{
		double p = fmax(before[k] / n_before, LEAST_SHARE);
		double q = fmax((double) counts->now[k] / n_now, LEAST_SHARE);

		if (before[k] > 0.0 || counts->now[k] > 0)
			result.psi += (q - p) * log(q / p);
	}
	result.missing_before = before[MISSING] / n_before;
	result.missing_now = (double) counts->now[MISSING] / n_now;
	result.unseen = n_there > 0.0 ? (double) counts->n_unseen / n_there : (double) NAN;
	return result;
}
