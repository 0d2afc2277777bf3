/*
 * predictor.c - a stored predictor at work: one row, many rows, and what it is.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/model/conformal.h"
#include "engine/model/heat.h"
#include "engine/model/stacked.h"
#include "engine/predictor_private.h"

void
ag_predictor_close(AgPredictor *predictor)
{
	AgMem *mem;

	if (predictor == NULL)
		return;
	mem = predictor->mem;
	ag_predictor_explain_free(predictor);
	for (int i = 0; i < predictor->n_leaves; i++)
	{
		ag_model_free(&predictor->leaves[i].model);
		ag_mem_free(mem, predictor->leaves[i].uses);
	}
	for (int v = 0; v < predictor->n_vectors; v++)
	{
		ag_mem_free(mem, predictor->vectors[v].inputs);
		ag_mem_free(mem, predictor->vectors[v].sums);
	}
	ag_mem_free(mem, predictor->vectors);
	ag_mem_free(mem, predictor->shifts);
	ag_mem_free(mem, predictor->sum_of);
	ag_mem_free(mem, predictor->stacked);
	ag_mem_free(mem, predictor->sums);
	ag_mem_free(mem, predictor->row_scratch);
	ag_mem_free(mem, predictor->row_outputs);
	ag_mem_free(mem, predictor->row_stacked);
	ag_mem_free(mem, predictor->row_sums);
	ag_mem_free(mem, predictor->leaves);
	ag_mem_free(mem, predictor->inputs);
	ag_mem_free(mem, predictor->features);
	ag_mem_free(mem, predictor->scratch);
	ag_mem_free(mem, predictor->outputs);
	ag_pipeline_free(predictor->pipeline);
	ag_mem_free(mem, predictor);
}

AgProblem
ag_predictor_problem(const AgPredictor *predictor)
{
	return predictor->pipeline->problem;
}

AgType
ag_predictor_label_type(const AgPredictor *predictor)
{
	return predictor->pipeline->label_type;
}

const char *
ag_predictor_label_name(const AgPredictor *predictor)
{
	return predictor->pipeline->label_name;
}

const char *
ag_predictor_time_zone(const AgPredictor *predictor)
{
	return predictor->pipeline->time_zone;
}

bool
ag_predictor_raw_text(const AgPredictor *predictor)
{
	return predictor->pipeline->raw_text;
}

const AgInputInfo *
ag_predictor_inputs(const AgPredictor *predictor, int *n)
{
	*n = predictor->pipeline->n_inputs;
	return predictor->inputs;
}

const AgClass *
ag_predictor_classes(const AgPredictor *predictor, int *n)
{
	*n = predictor->pipeline->n_classes;
	return predictor->pipeline->classes;
}

const double *
ag_predictor_quantiles(const AgPredictor *predictor, const int **order, int *n)
{
	*order = predictor->pipeline->quantile_order;
	*n = predictor->pipeline->n_quantiles;
	return predictor->pipeline->quantiles;
}

int
ag_predictor_outputs(const AgPredictor *predictor)
{
	return predictor->n_outputs;
}

double
ag_predictor_row_ns(const AgPredictor *predictor)
{
	double ns = 5.0 * predictor->pipeline->n_features;

	for (int i = 0; i < predictor->pipeline->n_inputs; i++)
		if (predictor->inputs[i].is_used)
			ns += predictor->inputs[i].type == AG_TYPE_TEXT ? 60.0 : 10.0;
	for (int i = 0; i < predictor->n_leaves; i++)
		ns += ag_model_row_ns(&predictor->leaves[i].model) +
			  (double) predictor->leaves[i].n_uses * predictor->n_outputs;
	return ns;
}

/* Sums of finite leaves can still overflow. */
static double
make_finite(double value)
{
	if (isfinite(value))
		return value;
	return isnan(value) ? 0.0 : value > 0.0 ? DBL_MAX : -DBL_MAX;
}

/* The vector of a higher level: the row's features, then of each sum what is taken as features. */
static void
stack_row(const AgPredictor *predictor, const AgVector *vector, const double *features,
		  const double *sums, int64_t sum_stride, double *stacked)
{
	AgProblem problem = predictor->pipeline->problem;
	int n = predictor->pipeline->n_features, width = ag_stack_width(problem, predictor->n_outputs);

	memcpy(stacked, features, (size_t) n * sizeof *stacked);
	for (int i = 0; i < vector->n_inputs; i++)
	{
		const double *sum = sums + vector->sums[i] * sum_stride;

		for (int k = 0; k < width; k++)
			stacked[n++] = make_finite(sum[ag_stack_first(problem) + k]);
	}
}

/* All models on vector v, added to the sums that they are part of. */
static void
run_vector(AgPredictor *predictor, int v, const double *vector)
{
	int n_outputs = predictor->n_outputs;

	for (int i = 0; i < predictor->n_leaves; i++)
	{
		const AgLeaf *leaf = &predictor->leaves[i];

		if (leaf->vector != v)
			continue;
		ag_model_run(&leaf->model, vector, predictor->scratch, predictor->outputs);
		for (int u = 0; u < leaf->n_uses; u++)
		{
			double *sum = predictor->sums + (size_t) leaf->uses[u].sum * (size_t) n_outputs;

			for (int k = 0; k < n_outputs; k++)
				sum[k] += leaf->uses[u].weight * predictor->outputs[k];
		}
	}
}

/* What is done to an answer at the end, out[n_outputs]. */
static void
calibrate(const AgPredictor *predictor, double *out)
{
	if (predictor->temperature > 0.0)
		ag_heat(predictor->temperature, predictor->n_outputs, out);
	if (predictor->shifts != NULL)
		ag_quantiles_shift(predictor->n_outputs, predictor->shifts, out);
}

void
ag_predictor_run(AgPredictor *predictor, const AgValue *values, double *out)
{
	int n_outputs = predictor->n_outputs;

	ag_pipeline_encode(predictor->pipeline, values, predictor->features);
	/* One model: its output as it is, without a multiplication by 1. */
	if (predictor->n_leaves == 1)
		ag_model_run(&predictor->leaves[0].model, predictor->features, predictor->scratch, out);
	else
	{
		memset(predictor->sums, 0,
			   (size_t) predictor->n_sums * (size_t) n_outputs * sizeof *predictor->sums);
		run_vector(predictor, 0, predictor->features);
		for (int v = 1; v < predictor->n_vectors; v++)
		{
			stack_row(predictor, &predictor->vectors[v], predictor->features, predictor->sums,
					  n_outputs, predictor->stacked);
			run_vector(predictor, v, predictor->stacked);
		}
		memcpy(out, predictor->sums, (size_t) n_outputs * sizeof *out);
	}
	for (int k = 0; k < n_outputs; k++)
		out[k] = make_finite(out[k]);
	calibrate(predictor, out);
}

/* ---- for other processes ---- */

static const AgModel *
model_of(const AgPredictor *predictor, int member)
{
	for (int i = 0; i < predictor->n_leaves; i++)
		if (predictor->leaves[i].ordinal == member)
			return &predictor->leaves[i].model;
	return NULL;
}

size_t
ag_predictor_layout_bytes(const AgPredictor *predictor, int member)
{
	const AgModel *model = model_of(predictor, member);

	return model == NULL ? 0 : ag_model_layout_bytes(model);
}

void
ag_predictor_layout_write(const AgPredictor *predictor, int member, void *to)
{
	const AgModel *model = model_of(predictor, member);

	if (model != NULL)
		ag_model_layout_write(model, to);
}

/* ---- many rows ---- */

int
ag_predictor_features(const AgPredictor *predictor)
{
	return predictor->pipeline->n_features;
}

int
ag_predictor_feature_input(const AgPredictor *predictor, int feature)
{
	return predictor->pipeline->features[feature].input;
}

void
ag_predictor_encode(const AgPredictor *predictor, const AgValue *values, double *features)
{
	ag_pipeline_encode(predictor->pipeline, values, features);
}

/* What the sums of a lot of rows may take: of many classes and levels fewer rows are run at once. */
#define ROW_BYTES (INT64_C(16) << 20)

static int
longest_vector(const AgPredictor *predictor)
{
	int longest = 0;

	for (int v = 0; v < predictor->n_vectors; v++)
		if (predictor->vectors[v].n_features > longest)
			longest = predictor->vectors[v].n_features;
	return longest;
}

AgStatus
ag_predictor_prepare_rows(const AgContext *ctx, AgPredictor *predictor)
{
	AgContext own = *ctx; /* what stays with the predictor comes from its memory */
	size_t n_scratch = 0, n_sums = 0, n_stacked = 0;
	int64_t row_bytes, n_rows;

	if (predictor->is_ready_for_rows)
		return AG_OK;
	own.mem = predictor->mem;
	if (!ag_predictor_is_flat(predictor))
	{
		n_sums = (size_t) predictor->n_sums * (size_t) predictor->n_outputs;
		n_stacked = (size_t) longest_vector(predictor);
	}
	row_bytes = (int64_t) ((n_sums + n_stacked + 1) * sizeof(double));
	n_rows = ROW_BYTES / row_bytes;
	predictor->n_rows_at_once = n_rows > AG_PREDICTOR_ROWS ? AG_PREDICTOR_ROWS
								: n_rows < 1               ? 1
														   : (int) n_rows;
	for (int i = 0; i < predictor->n_leaves; i++)
	{
		size_t bytes =
			ag_model_rows_scratch_bytes(&predictor->leaves[i].model, predictor->n_rows_at_once);

		n_scratch = bytes > n_scratch ? bytes : n_scratch;
	}
	if (predictor->row_scratch == NULL)
		AG_TRY(ag_get(&own, n_scratch, 1, &predictor->row_scratch));
	if (predictor->row_outputs == NULL)
		AG_TRY(ag_get(&own, (size_t) predictor->n_outputs * (size_t) predictor->n_rows_at_once,
					  sizeof(double), &predictor->row_outputs));
	if (predictor->row_sums == NULL)
		AG_TRY(ag_get(&own, n_sums * (size_t) predictor->n_rows_at_once, sizeof(double),
					  &predictor->row_sums));
	if (predictor->row_stacked == NULL)
		AG_TRY(ag_get(&own, n_stacked * (size_t) predictor->n_rows_at_once, sizeof(double),
					  &predictor->row_stacked));
	for (int i = 0; i < predictor->n_leaves; i++)
		AG_TRY(ag_model_prepare_rows(&own, &predictor->leaves[i].model));
	predictor->is_ready_for_rows = true;
	return AG_OK;
}

/* The answer's sum goes straight to out; the others have room of their own. */
static void
run_vector_rows(const AgPredictor *predictor, int v, int64_t n_rows, const double *vectors,
				double *out)
{
	int64_t n = n_rows * predictor->n_outputs;
	int64_t stride = (int64_t) predictor->n_rows_at_once * predictor->n_outputs;

	for (int i = 0; i < predictor->n_leaves; i++)
	{
		const AgLeaf *leaf = &predictor->leaves[i];

		if (leaf->vector != v)
			continue;
		ag_model_run_rows(&leaf->model, n_rows, vectors, predictor->row_scratch,
						  predictor->row_outputs);
		for (int u = 0; u < leaf->n_uses; u++)
		{
			int s = leaf->uses[u].sum;
			double *sum = s == 0 ? out : predictor->row_sums + s * stride;
			double weight = leaf->uses[u].weight;

			for (int64_t j = 0; j < n; j++)
				sum[j] += weight * predictor->row_outputs[j];
		}
	}
}

/* Up to n_rows_at_once of them, in the order of operations of ag_predictor_run. */
static void
run_some_rows(const AgPredictor *predictor, int64_t n_rows, const double *features, double *out)
{
	int64_t n = n_rows * predictor->n_outputs;
	int64_t stride = (int64_t) predictor->n_rows_at_once * predictor->n_outputs;

	if (predictor->n_leaves == 1)
		ag_model_run_rows(&predictor->leaves[0].model, n_rows, features, predictor->row_scratch,
						  out);
	else
	{
		memset(out, 0, (size_t) n * sizeof(double));
		for (int s = 1; s < predictor->n_sums; s++)
			memset(predictor->row_sums + s * stride, 0, (size_t) n * sizeof(double));
		run_vector_rows(predictor, 0, n_rows, features, out);
		for (int v = 1; v < predictor->n_vectors; v++)
		{
			const AgVector *vector = &predictor->vectors[v];

			for (int64_t r = 0; r < n_rows; r++)
				stack_row(predictor, vector, features + r * predictor->pipeline->n_features,
						  predictor->row_sums + r * predictor->n_outputs, stride,
						  predictor->row_stacked + r * vector->n_features);
			run_vector_rows(predictor, v, n_rows, predictor->row_stacked, out);
		}
	}
	for (int64_t j = 0; j < n; j++)
		out[j] = make_finite(out[j]);
	for (int64_t r = 0; r < n_rows; r++)
		calibrate(predictor, out + r * predictor->n_outputs);
}

AgStatus
ag_predictor_run_rows(const AgContext *ctx, AgPredictor *predictor, int64_t n_rows,
					  const double *features, double *out)
{
	AG_TRY(ag_predictor_prepare_rows(ctx, predictor));
	for (int64_t at = 0; at < n_rows; at += predictor->n_rows_at_once)
	{
		int64_t n =
			n_rows - at < predictor->n_rows_at_once ? n_rows - at : predictor->n_rows_at_once;

		run_some_rows(predictor, n, features + at * predictor->pipeline->n_features,
					  out + at * predictor->n_outputs);
	}
	return AG_OK;
}
