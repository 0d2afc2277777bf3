/*
 * ordered.c - ordered boosting.
 */
#include "engine/model/ordered.h"

#include <math.h>
#include <string.h>

#include "engine/base/threads.h"
#include "engine/model/leaves_step.h"
#include "engine/model/level_scan.h"
#include "engine/model/target_stats.h"

#define AG_SUMS_CELLS (4 * AG_HIST_BINS) /* of a body: its own g and h and its tail's, by bin */

/* ---- orders, bodies and tails ---- */

static int
cut_bodies(int64_t n, int64_t *ends)
{
	int64_t first =
		n / AG_ORDERED_SHARE < AG_ORDERED_FIRST ? n / AG_ORDERED_SHARE : AG_ORDERED_FIRST;
	int b = 0;

	ends[0] = first < 1 ? 1 : first;
	while (ends[b] < n && b < AG_ORDERED_MOST)
	{
		ends[b + 1] = b + 1 == AG_ORDERED_MOST || 2 * ends[b] > n ? n : 2 * ends[b];
		b++;
	}
	return b;
}

/* The rows of one order's prefixes, ascending, and whose tail each row is in; order: [n_train] scratch. */
static AgStatus
make_order(AgOrdered *ordered, uint64_t seed, int p, uint32_t *order)
{
	const AgTrainData *data = ordered->data;
	uint8_t *parts = ordered->parts + p * data->bins->n_rows;

	ag_stats_order(data, seed, p, order);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		int part = 0;

		while (part < ordered->n_bodies && i >= ordered->ends[part])
			part++;
		parts[order[i]] = (uint8_t) part;
	}
	for (int b = 0; b < ordered->n_bodies; b++)
	{
		uint32_t **rows = &ordered->rows[p * ordered->n_bodies + b];
		int64_t n = 0;

		AG_TRY(ag_get(ordered->ctx, (size_t) ordered->ends[b + 1], sizeof **rows, rows));
		for (int64_t i = 0; i < data->n_train; i++)
			if (parts[data->train_rows[i]] <= b + 1)
				(*rows)[n++] = data->train_rows[i];
	}
	return AG_OK;
}

static AgStatus
make_scores(AgOrdered *ordered, int p, int b)
{
	int64_t n = ordered->ends[b + 1];
	double **scores = &ordered->scores[p * ordered->n_bodies + b];
	int n_outputs = ordered->loss.n_outputs;

	AG_TRY(ag_get(ordered->ctx, (size_t) (n * n_outputs), sizeof **scores, scores));
	for (int k = 0; k < n_outputs; k++)
		for (int64_t i = 0; i < n; i++)
			(*scores)[k * n + i] = ordered->loss.base[k];
	return AG_OK;
}

static AgStatus
create_scratch(AgOrdered *ordered)
{
	const AgContext *ctx = ordered->ctx;
	AgLoss *loss = &ordered->loss;
	size_t n_rows = (size_t) loss->n_rows, n_threads = (size_t) ag_pool_size(ctx->pool);

	AG_TRY(ag_get(ctx, n_rows * (size_t) loss->n_outputs, sizeof(double), &loss->scores));
	if (loss->objective->begin_round != NULL)
		AG_TRY(ag_get(ctx, n_rows, sizeof(double), &loss->shared));
	AG_TRY(ag_get_zeroed(ctx, n_rows, sizeof(AgGradient), &loss->gradients));
	AG_TRY(ag_get(ctx, n_rows * (size_t) ordered->n_bodies, sizeof(AgOrderedGradient),
				  &ordered->drawn));
	AG_TRY(ag_get_zeroed(ctx, n_rows, sizeof(uint32_t), &ordered->leaf_of));
	AG_TRY(ag_get_zeroed(ctx, n_threads, sizeof(int64_t *), &ordered->sums));
	AG_TRY(ag_get_zeroed(ctx, n_threads, sizeof(uint8_t *), &ordered->bins));
	ordered->n_threads = (int) n_threads;
	for (size_t t = 0; t < n_threads; t++)
	{
		AG_TRY(ag_get(ctx, (size_t) ordered->n_bodies * AG_SUMS_CELLS, sizeof(int64_t),
					  &ordered->sums[t]));
		AG_TRY(ag_get(ctx, n_rows, 1, &ordered->bins[t]));
	}
	return AG_OK;
}

AgStatus
ag_ordered_create(const AgContext *ctx, const AgLoss *loss, const AgBoostParams *params,
				  AgOrdered *ordered)
{
	const AgTrainData *data = loss->data;
	uint32_t *order = NULL;
	size_t n_models;
	AgStatus status;

	memset(ordered, 0, sizeof *ordered);
	if (loss->objective->renews_leaves &&
		(params->leaf_method == AG_LEAF_AUTO || params->leaf_method == AG_LEAF_EXACT))
		return ag_error_set(
			ctx->error, AG_ERR_OPTION,
			"\"boosting_type\" \"Ordered\" of family %s does not go with leaf values that are "
			"percentiles: \"leaf_estimation_method\" must be \"Gradient\" with this loss",
			params->family);
	ordered->ctx = ctx;
	ordered->data = data;
	ordered->loss = *loss;
	ordered->loss.scores = ordered->loss.shared = NULL;
	ordered->loss.gradients = NULL;
	ordered->loss.items = NULL;
	ordered->n_orders = params->n_permutations;
	ordered->n_bodies = cut_bodies(data->n_train, ordered->ends);
	n_models = (size_t) ordered->n_orders * (size_t) ordered->n_bodies;
	AG_GO(ag_get(ctx, (size_t) ordered->n_orders * (size_t) loss->n_rows, 1, &ordered->parts));
	AG_GO(ag_get_zeroed(ctx, n_models, sizeof *ordered->rows, &ordered->rows));
	AG_GO(ag_get_zeroed(ctx, n_models, sizeof *ordered->scores, &ordered->scores));
	AG_GO(ag_get(ctx, (size_t) data->n_train, sizeof *order, &order));
	for (int p = 0; p < ordered->n_orders; p++)
	{
		AG_GO(make_order(ordered, params->seed, p, order));
		for (int b = 0; b < ordered->n_bodies; b++)
			AG_GO(make_scores(ordered, p, b));
		AG_GO(ag_check_cancel(ctx));
	}
	AG_GO(create_scratch(ordered));
done:
	ag_mem_free(ctx->mem, order);
	return status;
}

void
ag_ordered_free(const AgContext *ctx, AgOrdered *ordered)
{
	for (int m = 0; m < ordered->n_orders * ordered->n_bodies; m++)
	{
		ag_mem_free(ctx->mem, ordered->rows != NULL ? ordered->rows[m] : NULL);
		ag_mem_free(ctx->mem, ordered->scores != NULL ? ordered->scores[m] : NULL);
	}
	for (int t = 0; t < ordered->n_threads; t++)
	{
		ag_mem_free(ctx->mem, ordered->sums[t]);
		ag_mem_free(ctx->mem, ordered->bins[t]);
	}
	ag_mem_free(ctx->mem, ordered->sums);
	ag_mem_free(ctx->mem, ordered->bins);
	ag_mem_free(ctx->mem, ordered->parts);
	ag_mem_free(ctx->mem, ordered->rows);
	ag_mem_free(ctx->mem, ordered->scores);
	ag_mem_free(ctx->mem, ordered->loss.scores);
	ag_mem_free(ctx->mem, ordered->loss.shared);
	ag_mem_free(ctx->mem, ordered->loss.gradients);
	ag_mem_free(ctx->mem, ordered->drawn);
	ag_mem_free(ctx->mem, ordered->leaf_of);
	memset(ordered, 0, sizeof *ordered);
}

int64_t
ag_ordered_memory(const AgTrainData *data, const AgBoostParams *params, int n_threads)
{
	int64_t ends[AG_ORDERED_MOST + 1], n_rows = data->bins->n_rows, n_prefixes = 0;
	int n_bodies = data->n_train > 0 ? cut_bodies(data->n_train, ends) : 0;
	int64_t n_outputs = ag_train_outputs(data);

	for (int b = 0; b < n_bodies; b++)
		n_prefixes += ends[b + 1];
	return params->n_permutations * (n_rows + n_prefixes * (4 + 8 * n_outputs) + 64 * n_bodies) +
		   n_rows * (8 * n_outputs + 8 + 8 + 4 +
					 ((int64_t) sizeof(AgOrderedGradient) + 4) * n_bodies + 8) +
		   data->n_train * 4 + n_threads * (n_rows + n_bodies * AG_SUMS_CELLS * INT64_C(8) + 64);
}

/* ---- gradients ---- */

/* A body's model's gradients of one output on body and tail, in ordered->loss.gradients; data: room for what they are of. */
static AgStatus
find_gradients(AgOrdered *ordered, int order, int b, int output, AgTrainData *data)
{
	const uint32_t *rows = ordered->rows[order * ordered->n_bodies + b];
	const double *scores = ordered->scores[order * ordered->n_bodies + b];
	int64_t n = ordered->ends[b + 1];
	AgLoss loss = ordered->loss;
	AgGradientRange range;

	*data = *ordered->data;
	data->train_rows = rows;
	data->n_train = n;
	loss.data = data;
	for (int k = 0; k < loss.n_outputs; k++)
		for (int64_t i = 0; i < n; i++)
			loss.scores[k * loss.n_rows + rows[i]] = scores[k * n + i];
	AG_TRY(ag_loss_begin_round(ordered->ctx, &loss));
	return ag_loss_gradients(ordered->ctx, &loss, output, &range);
}

/* A row's own gradient is that of the body whose tail it is in. */
static void
keep_gradients(AgOrdered *ordered, int b, float *raw, AgGradient *own)
{
	const uint32_t *rows = ordered->rows[ordered->order * ordered->n_bodies + b];
	const uint8_t *parts = ordered->parts + ordered->order * ordered->loss.n_rows;

	for (int64_t i = 0; i < ordered->ends[b + 1]; i++)
	{
		uint32_t row = rows[i];

		raw[row] = ordered->loss.gradients[row].g;
		if (parts[row] == b + 1 || (b == 0 && parts[row] == 0))
			own[row] = ordered->loss.gradients[row];
	}
}

/* Gradients times the draw's weights as whole numbers, the largest AG_ORDERED_UNIT; raw: [n_bodies][n_rows]. */
static void
round_gradients(AgOrdered *ordered, const AgGradient *drawn, const float *raw, AgQuantum *quantum)
{
	int64_t n_rows = ordered->loss.n_rows;
	double max_g = 0.0, max_h = 0.0;

	for (int pass = 0; pass < 2; pass++)
	{
		if (pass == 1 && !(max_g > 0.0 && max_h > 0.0))
			break;
		for (int b = 0; b < ordered->n_bodies; b++)
		{
			const uint32_t *rows = ordered->rows[ordered->order * ordered->n_bodies + b];

			for (int64_t i = 0; i < ordered->ends[b + 1]; i++)
			{
				double h = (double) drawn[rows[i]].h;
				double weight = ag_row_weight(ordered->data, rows[i]);
				double g = weight > 0.0 ? (double) raw[b * n_rows + rows[i]] * (h / weight) : 0.0;

				if (pass == 0)
				{
					max_g = fabs(g) > max_g ? fabs(g) : max_g;
					max_h = h > max_h ? h : max_h;
				}
				else
					ordered->drawn[b * n_rows + rows[i]] =
						(AgOrderedGradient){(int32_t) (g / max_g * AG_ORDERED_UNIT),
											(int32_t) (h / max_h * AG_ORDERED_UNIT)};
			}
		}
	}
	quantum->g = max_g / AG_ORDERED_UNIT;
	quantum->h = max_h / AG_ORDERED_UNIT;
}

AgStatus
ag_ordered_begin(AgOrdered *ordered, int order, int output, AgBootstrap *bootstrap,
				 uint64_t draw_key, uint32_t *ids, int64_t *n_rows_listed, AgQuantum *quantum)
{
	const AgContext *ctx = ordered->ctx;
	size_t n_rows = (size_t) ordered->loss.n_rows;
	AgLoss loss = ordered->loss;
	AgGradientRange range;
	AgTrainData data;
	float *raw = NULL;
	AgGradient *own = NULL;
	AgStatus status;

	ordered->order = order;
	*n_rows_listed = 0;
	AG_GO(ag_get(ctx, n_rows * (size_t) ordered->n_bodies, sizeof *raw, &raw));
	AG_GO(ag_get_zeroed(ctx, n_rows, sizeof *own, &own));
	for (int b = 0; b < ordered->n_bodies; b++)
	{
		AG_GO(find_gradients(ordered, order, b, output, &data));
		keep_gradients(ordered, b, raw + (size_t) b * n_rows, own);
	}
	loss.gradients = own;
	AG_GO(ag_bootstrap_draw(ctx, bootstrap, &loss, draw_key, &range));
	round_gradients(ordered, bootstrap->drawn, raw, quantum);
	memcpy(ids, ordered->data->train_rows, (size_t) ordered->data->n_train * sizeof *ids);
	if (quantum->g > 0.0 && quantum->h > 0.0)
		*n_rows_listed = ordered->data->n_train;
done:
	ag_mem_free(ctx->mem, raw);
	ag_mem_free(ctx->mem, own);
	return status;
}

/* ---- scores of cuts ---- */

/* What a leaf's row adds: to its tail, and to all bodies that have it. */
static void
add_rows(const AgOrdered *ordered, const uint8_t *parts, const uint8_t *bins, const uint32_t *ids,
		 int64_t n, int64_t *sums, bool *has_tail)
{
	int64_t n_rows = ordered->loss.n_rows;

	for (int64_t i = 0; i < n; i++)
	{
		uint32_t row = ids[i];
		int part = parts[row];
		int64_t *at = sums + 4 * (int64_t) bins[row];

		if (part > 0)
		{
			const AgOrderedGradient *g = ordered->drawn + (part - 1) * n_rows + row;

			has_tail[part - 1] = true;
			at[(part - 1) * AG_SUMS_CELLS + 2] += g->g;
			at[(part - 1) * AG_SUMS_CELLS + 3] += g->h;
		}
		for (int b = part; b < ordered->n_bodies; b++)
		{
			const AgOrderedGradient *g = ordered->drawn + b * n_rows + row;

			at[b * AG_SUMS_CELLS] += g->g;
			at[b * AG_SUMS_CELLS + 1] += g->h;
		}
	}
}

void
ag_ordered_score(const AgOrdered *ordered, const AgGrower *grower, const AgBinFeature *feature,
				 const uint8_t *bins, double l2, int thread, double *nums, double *dens)
{
	const uint8_t *parts = ordered->parts + ordered->order * ordered->loss.n_rows;
	int64_t *sums = ordered->sums[thread];
	size_t bytes = 4 * ((size_t) feature->n_bins + 1) * sizeof *sums;

	for (int l = 0; l < grower->n_leaves && !ag_cancelled(ordered->ctx); l++)
	{
		const AgGrownLeaf *leaf = grower->leaves + l;
		bool has_tail[AG_ORDERED_MOST] = {false};

		if (leaf->n_rows == 0)
			continue;
		for (int b = 0; b < ordered->n_bodies; b++)
			memset(sums + b * AG_SUMS_CELLS, 0, bytes);
		add_rows(ordered, parts, bins, grower->lists[leaf->list].ids + leaf->begin, leaf->n_rows,
				 sums, has_tail);
		for (int b = 0; b < ordered->n_bodies; b++)
			if (has_tail[b])
				ag_level_add_tail(grower->level, feature,
								  (const int64_t(*)[4])(sums + b * AG_SUMS_CELLS), l2, nums, dens);
	}
}

/* ---- the models of the bodies ---- */

static void
note_leaves(AgOrdered *ordered, const AgGrower *grower)
{
	for (int l = 0; l < grower->n_leaves; l++)
	{
		const AgGrownLeaf *leaf = grower->leaves + l;
		const uint32_t *ids = grower->lists[leaf->list].ids + leaf->begin;

		for (int64_t i = 0; i < leaf->n_rows; i++)
			ordered->leaf_of[ids[i]] = (uint32_t) l;
	}
}

/* One model's values from its body's gradients, added to what it says of body and tail; sums: [n_leaves][2] scratch. */
static void
add_values(AgOrdered *ordered, const AgGrower *grower, int order, int b, int output,
		   const AgBoostParams *params, double *sums)
{
	const uint8_t *parts = ordered->parts + order * ordered->loss.n_rows;
	const uint32_t *rows = ordered->rows[order * ordered->n_bodies + b];
	int64_t n = ordered->ends[b + 1];
	double *scores = ordered->scores[order * ordered->n_bodies + b] + output * n;
	const AgGradient *gradients = ordered->loss.gradients;
	const AgQuantum plain = {.g = 1.0, .h = 1.0};
	AgSplitRules rules;

	ag_split_rules_init(&rules, params, &plain, ordered->loss.unit);
	memset(sums, 0, 2 * (size_t) grower->n_leaves * sizeof *sums);
	for (int64_t i = 0; i < n; i++)
	{
		double *sum = sums + 2 * ordered->leaf_of[rows[i]];

		if (parts[rows[i]] > b)
			continue;
		sum[0] += (double) gradients[rows[i]].g;
		sum[1] += params->leaf_method == AG_LEAF_GRADIENT ? ag_row_weight(ordered->data, rows[i])
														  : (double) gradients[rows[i]].h;
	}
	for (int l = 0; l < grower->n_leaves; l++)
	{
		double h = sums[2 * l + 1], value = 0.0;

		if (h > 0.0)
			value = ag_leaf_output(&rules, sums[2 * l], h, rules.l2, 1, 0.0) * ordered->loss.unit *
					params->learning_rate;
		sums[2 * l] = isfinite(value) ? value : 0.0;
	}
	for (int64_t i = 0; i < n; i++)
		scores[i] += sums[2 * ordered->leaf_of[rows[i]]];
}

AgStatus
ag_ordered_add(AgOrdered *ordered, const AgGrower *grower, int output, const AgBoostParams *params)
{
	const AgContext *ctx = ordered->ctx;
	AgTrainData data;
	double *sums = NULL;
	AgStatus status;

	note_leaves(ordered, grower);
	AG_GO(ag_get(ctx, 2 * (size_t) grower->n_leaves, sizeof *sums, &sums));
	for (int p = 0; p < ordered->n_orders; p++)
		for (int b = 0; b < ordered->n_bodies; b++)
		{
			AG_GO(find_gradients(ordered, p, b, output, &data));
			add_values(ordered, grower, p, b, output, params, sums);
			AG_GO(ag_check_cancel(ctx));
		}
done:
	ag_mem_free(ctx->mem, sums);
	return status;
}
