/*
 * predictor.c - a stored predictor put together again: preprocessing, models, weights.
 *
 * An ensemble of bags is one weighted mean of its leaves' outputs, so loading flattens it:
 * prediction walks a plain list of models, each at most once.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/predictor_private.h"

#define ENSEMBLE_FAMILY "ENS_WEIGHTED"
#define MAX_DEPTH 16
#define MAX_VISITS                                                                                 \
	100000 /* a forged ensemble could name its members over and over, level by level */

/* What loading looks things up in. */
typedef struct Loading
{
	const AgContext *ctx;
	const AgImagePart *parts;
	int n_parts;
	const AgMemberRef *members;
	int n_members;
	AgPredictor *predictor;
	int n_visits;
} Loading;

static AgStatus
corrupt(const Loading *loading, const char *name, const char *what)
{
	return ag_error_set(loading->ctx->error, AG_ERR_CORRUPT, "stored model \"%s\" is damaged: %s",
						name, what);
}

static const AgImagePart *
find_part(const Loading *loading, int member)
{
	for (int i = 0; i < loading->n_parts; i++)
		if (loading->parts[i].member == member)
			return &loading->parts[i];
	return NULL;
}

static const AgMemberRef *
find_member(const Loading *loading, int ordinal)
{
	for (int i = 0; i < loading->n_members; i++)
		if (loading->members[i].ordinal == ordinal)
			return &loading->members[i];
	return NULL;
}

static AgStatus
add_model(Loading *loading, const AgMemberRef *member, double weight)
{
	AgPredictor *predictor = loading->predictor;
	const AgImagePart *part = find_part(loading, member->ordinal);
	AgLeaf *leaf;

	for (int i = 0; i < predictor->n_leaves; i++)
		if (predictor->leaves[i].ordinal == member->ordinal)
		{
			predictor->leaves[i].weight += weight;
			return AG_OK;
		}
	if (part == NULL)
		return corrupt(loading, member->name, "its bytes are missing");
	leaf = &predictor->leaves[predictor->n_leaves];
	AG_TRY(ag_model_read(loading->ctx, part->data, part->size, &leaf->model));
	leaf->ordinal = member->ordinal;
	leaf->weight = weight;
	predictor->n_leaves++;
	if (ag_model_n_features(&leaf->model) != (uint32_t) predictor->pipeline->n_features ||
		!ag_model_fits(&leaf->model, predictor->pipeline->problem) ||
		ag_model_n_out(&leaf->model) != (uint32_t) predictor->n_outputs)
		return corrupt(loading, member->name, "it doesn't fit the predictor's preprocessing");
	return AG_OK;
}

/* Adds a member with its share of the whole; one with inputs, an ensemble or a bag, hands its share on to them. */
static AgStatus
add_member(Loading *loading, int ordinal, double share, int depth)
{
	const AgMemberRef *member = find_member(loading, ordinal);
	double sum = 0.0;

	if (member == NULL)
		return ag_error_set(loading->ctx->error, AG_ERR_CORRUPT,
							"stored predictor is damaged: it has no member %d", ordinal);
	if (member->n_inputs == 0 && strcmp(member->family, ENSEMBLE_FAMILY) != 0)
		return add_model(loading, member, share);
	if (depth == MAX_DEPTH || loading->n_visits > MAX_VISITS)
		return corrupt(loading, member->name, "its ensembles are nested too deep");
	loading->n_visits += member->n_inputs;
	for (int i = 0; i < member->n_inputs; i++)
	{
		if (!(member->weights[i] >= 0.0 && member->weights[i] <= 1e6))
			return corrupt(loading, member->name, "a weight is out of range");
		sum += member->weights[i];
	}
	if (!(sum > 0.0))
		return corrupt(loading, member->name, "its weights sum to nothing");
	for (int i = 0; i < member->n_inputs; i++)
		if (member->weights[i] > 0.0)
			AG_TRY(add_member(loading, member->inputs[i], share * (member->weights[i] / sum),
							  depth + 1));
	return AG_OK;
}

static AgStatus
load(Loading *loading, int member)
{
	const AgContext *ctx = loading->ctx;
	AgPredictor *predictor = loading->predictor;
	const AgImagePart *part = find_part(loading, 0);
	AgPipeline *pipeline;
	size_t n_scratch = 0;

	if (part == NULL)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored predictor is damaged: its preprocessing is missing");
	AG_TRY(ag_pipeline_read(ctx, part->data, part->size, &predictor->pipeline));
	pipeline = predictor->pipeline;
	predictor->n_outputs = ag_pipeline_outputs(pipeline);
	AG_TRY(
		ag_get_zeroed(ctx, (size_t) pipeline->n_inputs, sizeof(AgInputInfo), &predictor->inputs));
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		predictor->inputs[i].name = pipeline->inputs[i].name;
		predictor->inputs[i].sql_type = pipeline->inputs[i].sql_type;
		predictor->inputs[i].type = pipeline->inputs[i].type;
		predictor->inputs[i].is_used = pipeline->inputs[i].is_used;
	}
	AG_TRY(ag_get_zeroed(ctx, (size_t) loading->n_members, sizeof(AgLeaf), &predictor->leaves));
	AG_TRY(ag_get(ctx, (size_t) pipeline->n_features, sizeof(double), &predictor->features));
	AG_TRY(ag_get(ctx, (size_t) predictor->n_outputs, sizeof(double), &predictor->outputs));
	AG_TRY(add_member(loading, member, 1.0, 0));
	for (int i = 0; i < predictor->n_leaves; i++)
	{
		size_t bytes = ag_model_scratch_bytes(&predictor->leaves[i].model);

		n_scratch = bytes > n_scratch ? bytes : n_scratch;
	}
	return ag_get(ctx, n_scratch, 1, &predictor->scratch);
}

AgStatus
ag_predictor_open(const AgContext *ctx, const AgImagePart *parts, int n_parts,
				  const AgMemberRef *members, int n_members, int member, AgPredictor **predictor)
{
	Loading loading = {ctx, parts, n_parts, members, n_members, NULL, 0};
	AgStatus status;

	*predictor = NULL;
	if (member == 0)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "member 0 is no model");
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof(AgPredictor), &loading.predictor));
	loading.predictor->mem = ctx->mem;
	status = load(&loading, member);
	if (status != AG_OK)
	{
		ag_predictor_close(loading.predictor);
		return status;
	}
	*predictor = loading.predictor;
	return AG_OK;
}

void
ag_predictor_close(AgPredictor *predictor)
{
	AgMem *mem;

	if (predictor == NULL)
		return;
	mem = predictor->mem;
	for (int i = 0; i < predictor->n_leaves; i++)
		ag_model_free(&predictor->leaves[i].model);
	ag_mem_free(mem, predictor->row_scratch);
	ag_mem_free(mem, predictor->row_outputs);
	ag_predictor_explain_free(predictor);
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

int
ag_predictor_outputs(const AgPredictor *predictor)
{
	return predictor->n_outputs;
}

/* Sums of finite leaves can still overflow. */
static double
make_finite(double value)
{
	if (isfinite(value))
		return value;
	return isnan(value) ? 0.0 : value > 0.0 ? DBL_MAX : -DBL_MAX;
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
		memset(out, 0, (size_t) n_outputs * sizeof(double));
		for (int i = 0; i < predictor->n_leaves; i++)
		{
			const AgLeaf *leaf = &predictor->leaves[i];

			ag_model_run(&leaf->model, predictor->features, predictor->scratch, predictor->outputs);
			for (int k = 0; k < n_outputs; k++)
				out[k] += leaf->weight * predictor->outputs[k];
		}
	}
	for (int k = 0; k < n_outputs; k++)
		out[k] = make_finite(out[k]);
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

static AgStatus
prepare_rows(const AgContext *ctx, AgPredictor *predictor)
{
	AgContext own = *ctx; /* what stays with the predictor comes from its memory */
	size_t n_scratch = 0;

	if (predictor->is_ready_for_rows)
		return AG_OK;
	own.mem = predictor->mem;
	for (int i = 0; i < predictor->n_leaves; i++)
	{
		size_t bytes = ag_model_rows_scratch_bytes(&predictor->leaves[i].model, AG_PREDICTOR_ROWS);

		n_scratch = bytes > n_scratch ? bytes : n_scratch;
	}
	if (predictor->row_scratch == NULL)
		AG_TRY(ag_get(&own, n_scratch, 1, &predictor->row_scratch));
	if (predictor->row_outputs == NULL)
		AG_TRY(ag_get(&own, (size_t) predictor->n_outputs * AG_PREDICTOR_ROWS, sizeof(double),
					  &predictor->row_outputs));
	for (int i = 0; i < predictor->n_leaves; i++)
		AG_TRY(ag_model_prepare_rows(&own, &predictor->leaves[i].model));
	predictor->is_ready_for_rows = true;
	return AG_OK;
}

/* Up to AG_PREDICTOR_ROWS of them, in the order of operations of ag_predictor_run. */
static void
run_some_rows(const AgPredictor *predictor, int64_t n_rows, const double *features, double *out)
{
	int64_t n = n_rows * predictor->n_outputs;

	if (predictor->n_leaves == 1)
		ag_model_run_rows(&predictor->leaves[0].model, n_rows, features, predictor->row_scratch,
						  out);
	else
	{
		memset(out, 0, (size_t) n * sizeof(double));
		for (int i = 0; i < predictor->n_leaves; i++)
		{
			const AgLeaf *leaf = &predictor->leaves[i];

			ag_model_run_rows(&leaf->model, n_rows, features, predictor->row_scratch,
							  predictor->row_outputs);
			for (int64_t j = 0; j < n; j++)
				out[j] += leaf->weight * predictor->row_outputs[j];
		}
	}
	for (int64_t j = 0; j < n; j++)
		out[j] = make_finite(out[j]);
}

AgStatus
ag_predictor_run_rows(const AgContext *ctx, AgPredictor *predictor, int64_t n_rows,
					  const double *features, double *out)
{
	AG_TRY(prepare_rows(ctx, predictor));
	for (int64_t at = 0; at < n_rows; at += AG_PREDICTOR_ROWS)
	{
		int64_t n = n_rows - at < AG_PREDICTOR_ROWS ? n_rows - at : AG_PREDICTOR_ROWS;

		run_some_rows(predictor, n, features + at * predictor->pipeline->n_features,
					  out + at * predictor->n_outputs);
	}
	return AG_OK;
}
