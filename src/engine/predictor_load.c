/*
 * predictor_load.c - a stored predictor put together again: preprocessing, models, weights, levels.
 *
 * An ensemble of bags is one weighted mean of its leaves' outputs, so loading flattens it; so is each member that a model of a
 * higher level looks at. What rows and images say may be forged: nothing may be endless, and every model must fit what it is
 * fed with.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "engine/model/stacked.h"
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
	bool *is_open; /* [n_members + 1] of a sum: what it sums up is being looked for */
	int n_visits;
} Loading;

static AgStatus add_member(Loading *loading, int ordinal, int sum, double share, int depth);

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

/* The sum that is a member's output, made when it is first asked for. */
static AgStatus
sum_of(Loading *loading, const AgMemberRef *by, int ordinal, int depth, int *sum)
{
	AgPredictor *predictor = loading->predictor;

	for (int s = 1; s < predictor->n_sums; s++)
		if (predictor->sum_of[s] == ordinal)
		{
			*sum = s;
			return loading->is_open[s] ? corrupt(loading, by->name, "it is an input of itself")
									   : AG_OK;
		}
	if (predictor->n_sums > loading->n_members) /* one a member, and the answer's */
		return corrupt(loading, by->name, "it has an input twice");
	*sum = predictor->n_sums++;
	predictor->sum_of[*sum] = ordinal;
	loading->is_open[*sum] = true;
	AG_TRY(add_member(loading, ordinal, *sum, 1.0, depth + 1));
	loading->is_open[*sum] = false;
	return AG_OK;
}

/* What the image says must be what the table of members says. */
static AgStatus
check_inputs(const Loading *loading, const AgMemberRef *member, const AgStacked *stacked)
{
	bool same = stacked->n_inputs == (uint32_t) member->n_inputs;

	for (int i = 0; same && i < member->n_inputs; i++)
		same = stacked->inputs[i] == (uint32_t) member->inputs[i];
	return same ? AG_OK : corrupt(loading, member->name, "its inputs are not those it learnt from");
}

static bool
is_vector_of(const AgVector *vector, const AgMemberRef *member)
{
	return vector->n_inputs == member->n_inputs &&
		   memcmp(vector->inputs, member->inputs, (size_t) member->n_inputs * sizeof(int)) == 0;
}

/* The vector of those inputs: models of one level share it. It is listed when all that it is made of is. */
static AgStatus
vector_of(Loading *loading, const AgMemberRef *member, int depth, int *number)
{
	AgPredictor *predictor = loading->predictor;
	int width = ag_stack_width(predictor->pipeline->problem, predictor->n_outputs);
	int64_t n_features = predictor->pipeline->n_features + (int64_t) member->n_inputs * width;
	AgVector vector = {member->n_inputs, NULL, NULL, (int) n_features};
	size_t n = (size_t) member->n_inputs;
	AgStatus status;

	for (int v = 1; v < predictor->n_vectors; v++)
		if (is_vector_of(&predictor->vectors[v], member))
		{
			*number = v;
			return AG_OK;
		}
	if (n_features > INT_MAX)
		return corrupt(loading, member->name, "it has too many inputs");
	AG_GO(ag_get(loading->ctx, n, sizeof(int), &vector.inputs));
	AG_GO(ag_get(loading->ctx, n, sizeof(int), &vector.sums));
	memcpy(vector.inputs, member->inputs, n * sizeof(int));
	for (int i = 0; i < member->n_inputs; i++)
		AG_GO(sum_of(loading, member, member->inputs[i], depth, &vector.sums[i]));
	if (predictor->n_vectors > loading->n_members)
		AG_GO(corrupt(loading, member->name, "its levels are too many"));
	*number = predictor->n_vectors;
	predictor->vectors[predictor->n_vectors++] = vector;
	return AG_OK;
done:
	ag_mem_free(loading->ctx->mem, vector.inputs);
	ag_mem_free(loading->ctx->mem, vector.sums);
	return status;
}

/* A model that no sum has asked for yet. */
static AgStatus
open_leaf(Loading *loading, const AgMemberRef *member, int depth, AgLeaf **opened)
{
	AgPredictor *predictor = loading->predictor;
	const AgImagePart *part = find_part(loading, member->ordinal);
	AgStacked stacked = {NULL, 0, NULL, 0};
	const void *image;
	size_t n_image;
	int vector = 0;
	AgLeaf *leaf;

	if (part == NULL)
		return corrupt(loading, member->name, "its bytes are missing");
	image = part->data;
	n_image = part->size;
	if (ag_image_kind(image, n_image) == AG_IMAGE_STACKED)
	{
		AG_TRY(ag_stacked_read(loading->ctx, image, n_image, &stacked));
		image = stacked.model;
		n_image = stacked.n_model;
	}
	AG_TRY(check_inputs(loading, member, &stacked));
	if (stacked.n_inputs > 0)
		AG_TRY(vector_of(loading, member, depth, &vector));
	leaf = &predictor->leaves[predictor->n_leaves];
	AG_TRY(ag_model_read(loading->ctx, image, n_image, &leaf->model));
	leaf->ordinal = member->ordinal;
	leaf->vector = vector;
	predictor->n_leaves++;
	if (part->layout != NULL)
		AG_TRY(ag_model_use_layout(loading->ctx, &leaf->model, part->layout));
	if (ag_model_n_features(&leaf->model) != (uint32_t) predictor->vectors[vector].n_features ||
		!ag_model_fits(&leaf->model, predictor->pipeline->problem) ||
		ag_model_n_out(&leaf->model) != (uint32_t) predictor->n_outputs)
		return corrupt(loading, member->name, "it doesn't fit the predictor's preprocessing");
	*opened = leaf;
	return AG_OK;
}

static AgStatus
add_use(Loading *loading, AgLeaf *leaf, int sum, double weight)
{
	AgUse *uses;

	if (sum == 0)
		leaf->weight += weight;
	for (int u = 0; u < leaf->n_uses; u++)
		if (leaf->uses[u].sum == sum)
		{
			leaf->uses[u].weight += weight;
			return AG_OK;
		}
	uses = ag_mem_realloc(loading->ctx->mem, leaf->uses, (size_t) leaf->n_uses + 1, sizeof *uses);
	if (uses == NULL)
		return ag_mem_error(loading->ctx->mem, ((size_t) leaf->n_uses + 1) * sizeof *uses,
							loading->ctx->error);
	leaf->uses = uses;
	leaf->uses[leaf->n_uses++] = (AgUse){sum, weight};
	return AG_OK;
}

static AgStatus
add_model(Loading *loading, const AgMemberRef *member, int sum, double weight, int depth)
{
	AgPredictor *predictor = loading->predictor;
	AgLeaf *leaf = NULL;

	for (int i = 0; i < predictor->n_leaves && leaf == NULL; i++)
		if (predictor->leaves[i].ordinal == member->ordinal)
			leaf = &predictor->leaves[i];
	if (leaf == NULL)
		AG_TRY(open_leaf(loading, member, depth, &leaf));
	return add_use(loading, leaf, sum, weight);
}

/* Something with bytes of its own is a model; what has inputs without is an ensemble or a bag. */
static bool
is_model(const Loading *loading, const AgMemberRef *member)
{
	return strcmp(member->family, ENSEMBLE_FAMILY) != 0 &&
		   (member->n_inputs == 0 || find_part(loading, member->ordinal) != NULL);
}

/* Adds a member with its share of the whole; one that combines others hands its share on to them. */
static AgStatus
add_member(Loading *loading, int ordinal, int into, double share, int depth)
{
	const AgMemberRef *member = find_member(loading, ordinal);
	double sum = 0.0;

	if (member == NULL)
		return ag_error_set(loading->ctx->error, AG_ERR_CORRUPT,
							"stored predictor is damaged: it has no member %d", ordinal);
	if (depth == MAX_DEPTH || loading->n_visits > MAX_VISITS)
		return corrupt(loading, member->name, "its ensembles are nested too deep");
	loading->n_visits += 1 + member->n_inputs;
	if (is_model(loading, member))
		return add_model(loading, member, into, share, depth);
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
			AG_TRY(add_member(loading, member->inputs[i], into, share * (member->weights[i] / sum),
							  depth + 1));
	return AG_OK;
}

static AgStatus
inputs_tell(const AgContext *ctx, AgPredictor *predictor)
{
	const AgPipeline *pipeline = predictor->pipeline;

	AG_TRY(
		ag_get_zeroed(ctx, (size_t) pipeline->n_inputs, sizeof(AgInputInfo), &predictor->inputs));
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		predictor->inputs[i].name = pipeline->inputs[i].name;
		predictor->inputs[i].sql_type = pipeline->inputs[i].sql_type;
		predictor->inputs[i].type = pipeline->inputs[i].type;
		predictor->inputs[i].is_used = pipeline->inputs[i].is_used;
	}
	return AG_OK;
}

/* Room that running takes, when it is known what there is. */
static AgStatus
scratch_get(const AgContext *ctx, AgPredictor *predictor)
{
	size_t n_scratch = 0;
	int longest = 0;

	for (int i = 0; i < predictor->n_leaves; i++)
	{
		size_t bytes = ag_model_scratch_bytes(&predictor->leaves[i].model);

		n_scratch = bytes > n_scratch ? bytes : n_scratch;
	}
	for (int v = 1; v < predictor->n_vectors; v++)
		if (predictor->vectors[v].n_features > longest)
			longest = predictor->vectors[v].n_features;
	AG_TRY(ag_get(ctx, (size_t) longest, sizeof(double), &predictor->stacked));
	AG_TRY(ag_get(ctx, (size_t) predictor->n_sums, (size_t) predictor->n_outputs * sizeof(double),
				  &predictor->sums));
	return ag_get(ctx, n_scratch, 1, &predictor->scratch);
}

static AgStatus
temperature_take(Loading *loading, const AgMemberRef *member)
{
	AgPredictor *predictor = loading->predictor;

	if (!(member->temperature >= 0.0 && member->temperature <= 1e6))
		return corrupt(loading, member->name, "its temperature is out of range");
	if (predictor->pipeline->n_classes > 0 && member->temperature > 0.0)
		predictor->temperature = fmax(member->temperature, 1e-3);
	return AG_OK;
}

static AgStatus
shifts_take(Loading *loading, const AgMemberRef *member)
{
	AgPredictor *predictor = loading->predictor;

	if (member->n_shifts == 0)
		return AG_OK;
	if (predictor->pipeline->n_quantiles == 0 || member->n_shifts != predictor->n_outputs)
		return corrupt(loading, member->name, "it moves quantiles that there are not");
	AG_TRY(ag_get(loading->ctx, (size_t) member->n_shifts, sizeof(double), &predictor->shifts));
	for (int k = 0; k < member->n_shifts; k++)
	{
		if (!isfinite(member->shifts[k]))
			return corrupt(loading, member->name, "a quantile is moved by no number");
		predictor->shifts[k] = member->shifts[k];
	}
	return AG_OK;
}

static AgStatus
load(Loading *loading, int member)
{
	const AgContext *ctx = loading->ctx;
	AgPredictor *predictor = loading->predictor;
	const AgImagePart *part = find_part(loading, 0);
	size_t n = (size_t) loading->n_members + 1;

	if (part == NULL)
		return ag_error_set(ctx->error, AG_ERR_CORRUPT,
							"stored predictor is damaged: its preprocessing is missing");
	AG_TRY(ag_pipeline_read(ctx, part->data, part->size, &predictor->pipeline));
	predictor->n_outputs = ag_pipeline_outputs(predictor->pipeline);
	AG_TRY(inputs_tell(ctx, predictor));
	AG_TRY(ag_get_zeroed(ctx, n, sizeof(AgLeaf), &predictor->leaves));
	AG_TRY(ag_get_zeroed(ctx, n, sizeof(AgVector), &predictor->vectors));
	AG_TRY(ag_get_zeroed(ctx, n, sizeof(int), &predictor->sum_of));
	predictor->vectors[0].n_features = predictor->pipeline->n_features;
	predictor->n_vectors = 1;
	predictor->n_sums = 1;
	AG_TRY(ag_get(ctx, (size_t) predictor->pipeline->n_features, sizeof(double),
				  &predictor->features));
	AG_TRY(ag_get(ctx, (size_t) predictor->n_outputs, sizeof(double), &predictor->outputs));
	AG_TRY(add_member(loading, member, 0, 1.0, 0));
	AG_TRY(temperature_take(loading, find_member(loading, member)));
	AG_TRY(shifts_take(loading, find_member(loading, member)));
	return scratch_get(ctx, predictor);
}

AgStatus
ag_predictor_open(const AgContext *ctx, const AgImagePart *parts, int n_parts,
				  const AgMemberRef *members, int n_members, int member, AgPredictor **predictor)
{
	Loading loading = {ctx, parts, n_parts, members, n_members, NULL, NULL, 0};
	AgStatus status;

	*predictor = NULL;
	if (member == 0)
		return ag_error_set(ctx->error, AG_ERR_INTERNAL, "member 0 is no model");
	AG_TRY(ag_get_zeroed(ctx, 1, sizeof(AgPredictor), &loading.predictor));
	loading.predictor->mem = ctx->mem;
	AG_GO(ag_get_zeroed(ctx, (size_t) n_members + 1, sizeof(bool), &loading.is_open));
	AG_GO(load(&loading, member));
	*predictor = loading.predictor;
done:
	ag_mem_free(ctx->mem, loading.is_open);
	if (status != AG_OK)
		ag_predictor_close(loading.predictor);
	return status;
}
