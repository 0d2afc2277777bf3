/*
 * metric_rank.c - metrics of how well probabilities put rows in order.
 *
 * A class for which there are no rows, or nothing but, has no such metric, and no part in a mean over the classes.
 */
#include <math.h>

#include "engine/model/metric_private.h"
#include "engine/model/rank.h"

/*
 * The share of pairs of one positive and one other row that are in the right order,
 * ties counting half (Mann and Whitney 1947). Unweighted it is counted in integers,
 * twice over so that halves are whole: exact up to 2^32 rows.
 */
static double
auc_of(const AgRanked *ranked, const AgMetricRows *rows, int32_t positive)
{
	double w_below = 0.0, w_positive = 0.0, area = 0.0;
	uint64_t n_below = 0, n_positive = 0, twice = 0;

	for (int64_t at = 0, end; at < rows->n; at = end)
	{
		double w_pos = 0.0, w_neg = 0.0;
		uint64_t n_pos = 0, n_neg = 0;

		end = ag_rank_ties_end(ranked, rows->n, at);
		for (int64_t i = at; i < end; i++)
		{
			double w = ag_metric_weight(rows, ranked[i].row);
			bool is_positive = rows->class_of[ranked[i].row] == positive;

			w_pos += is_positive ? w : 0.0;
			w_neg += is_positive ? 0.0 : w;
			n_pos += is_positive;
			n_neg += !is_positive;
		}
		area += w_pos * (w_below + 0.5 * w_neg);
		twice += n_pos * (2 * n_below + n_neg);
		w_below += w_neg;
		w_positive += w_pos;
		n_below += n_neg;
		n_positive += n_pos;
	}
	if (!(w_positive > 0.0) || !(w_below > 0.0))
		return (double) NAN;
	if (rows->weight == NULL)
		return (double) twice / (2.0 * (double) n_positive * (double) n_below);
	return area / (w_positive * w_below);
}

/* The sum over thresholds, from the highest down, of the recall each adds times its precision. */
static double
average_precision_of(const AgRanked *ranked, const AgMetricRows *rows, int32_t positive)
{
	double total = 0.0, hits = 0.0, taken = 0.0, sum = 0.0;

	for (int64_t i = 0; i < rows->n; i++)
		total += rows->class_of[i] == positive ? ag_metric_weight(rows, i) : 0.0;
	for (int64_t end = rows->n, at; end > 0; end = at)
	{
		double w_pos = 0.0;

		at = end;
		while (at > 0 && ranked[at - 1].key == ranked[end - 1].key)
		{
			double w = ag_metric_weight(rows, ranked[--at].row);

			taken += w;
			w_pos += rows->class_of[ranked[at].row] == positive ? w : 0.0;
		}
		hits += w_pos;
		if (w_pos > 0.0)
			sum += w_pos * (hits / taken);
	}
	return total > 0.0 ? sum / total : 0.0;
}

typedef double (*RankedValue)(const AgRanked *ranked, const AgMetricRows *rows, int32_t positive);

/* The metric of one class against the rest, by the class's probability. */
static AgStatus
by_rank(const AgContext *ctx, const AgMetricRows *rows, int32_t positive, RankedValue of,
		double *value)
{
	AgRanked *ranked;
	bool has_nan;

	AG_TRY(ag_rank_rows(ctx, rows->n, rows->proba + positive, rows->n_classes, &ranked, &has_nan));
	*value = has_nan ? (double) NAN : of(ranked, rows, positive);
	ag_mem_free(ctx->mem, ranked);
	return AG_OK;
}

/* The mean over the classes, each against the rest: plain, or by the classes' weight. */
static AgStatus
auc_one_against_rest(const AgContext *ctx, const AgMetricRows *rows, double *value)
{
	bool by_weight = rows->metric == AG_METRIC_ROC_AUC_OVR_WEIGHTED;
	double sum = 0.0, total = 0.0, auc;

	for (int32_t k = 0; k < rows->n_classes; k++)
	{
		double w = by_weight ? 0.0 : 1.0;

		AG_TRY(by_rank(ctx, rows, k, auc_of, &auc));
		for (int64_t i = 0; by_weight && i < rows->n; i++)
			w += rows->class_of[i] == k ? ag_metric_weight(rows, i) : 0.0;
		if (auc == auc)
		{
			sum += w * auc;
			total += w;
		}
	}
	*value = total > 0.0 ? sum / total : (double) NAN;
	return AG_OK;
}

/* Every probability of every row as a row of its own, which is positive where it is the true class's. */
static AgStatus
auc_all_together(const AgContext *ctx, const AgMetricRows *rows, double *value)
{
	AgMetricRows flat = *rows;
	size_t n_classes = (size_t) rows->n_classes;
	int32_t *is_true = NULL;
	double *weight = NULL;
	AgStatus status;

	flat.n = rows->n * rows->n_classes;
	flat.n_classes = 1;
	AG_GO(ag_get_zeroed(ctx, (size_t) rows->n, n_classes * sizeof *is_true, &is_true));
	if (rows->weight != NULL)
		AG_GO(ag_get(ctx, (size_t) rows->n, n_classes * sizeof *weight, &weight));
	for (int64_t i = 0; i < rows->n; i++)
	{
		if (rows->class_of[i] >= 0)
			is_true[i * rows->n_classes + rows->class_of[i]] = 1;
		for (int k = 0; weight != NULL && k < rows->n_classes; k++)
			weight[i * rows->n_classes + k] = rows->weight[i];
	}
	flat.class_of = is_true;
	flat.weight = weight;
	{
		AgRanked *ranked;
		bool has_nan;

		AG_GO(ag_rank_rows(ctx, flat.n, flat.proba, 1, &ranked, &has_nan));
		*value = has_nan ? (double) NAN : auc_of(ranked, &flat, 1);
		ag_mem_free(ctx->mem, ranked);
	}
done:
	ag_mem_free(ctx->mem, is_true);
	ag_mem_free(ctx->mem, weight);
	return status;
}

/* The rows of one class and another, gathered: their two probabilities lie side by side. */
typedef struct Pair
{
	AgMetricRows rows;
	double *proba, *weight;
	int32_t *class_of;
} Pair;

/* begin[n_classes + 1]: where each class's rows lie in order. */
static AgStatus
auc_of_pair(const AgContext *ctx, const AgMetricRows *rows, const int64_t *order,
			const int64_t *begin, int a, int b, Pair *pair, double *auc, double *weight)
{
	const int both[2] = {a, b};
	double forth, back;
	int64_t n = 0;

	*weight = 0.0;
	for (int s = 0; s < 2; s++)
		for (int64_t at = begin[both[s]]; at < begin[both[s] + 1]; at++, n++)
		{
			int64_t i = order[at];

			pair->class_of[n] = s;
			pair->proba[2 * n] = rows->proba[i * rows->n_classes + a];
			pair->proba[2 * n + 1] = rows->proba[i * rows->n_classes + b];
			if (pair->weight != NULL)
				pair->weight[n] = rows->weight[i];
			*weight += ag_metric_weight(rows, i);
		}
	pair->rows.n = n;
	pair->rows.n_classes = 2;
	pair->rows.class_of = pair->class_of;
	pair->rows.proba = pair->proba;
	pair->rows.weight = pair->weight;
	AG_TRY(by_rank(ctx, &pair->rows, 0, auc_of, &back));
	AG_TRY(by_rank(ctx, &pair->rows, 1, auc_of, &forth));
	*auc = 0.5 * (forth + back);
	return AG_OK;
}

/* The rows in the order of their classes; those of no class are left out. */
static void
rows_by_class(const AgMetricRows *rows, int64_t *order, int64_t *begin)
{
	for (int k = 0; k <= rows->n_classes; k++)
		begin[k] = 0;
	for (int64_t i = 0; i < rows->n; i++)
		if (rows->class_of[i] >= 0)
			begin[rows->class_of[i] + 1]++;
	for (int k = 0; k < rows->n_classes; k++)
		begin[k + 1] += begin[k];
	for (int64_t i = 0; i < rows->n; i++)
		if (rows->class_of[i] >= 0)
			order[begin[rows->class_of[i]]++] = i;
	for (int k = rows->n_classes; k > 0; k--)
		begin[k] = begin[k - 1];
	begin[0] = 0;
}

/* The mean over the pairs of classes (Hand and Till 2001): plain, or by the pairs' weight. */
static AgStatus
auc_one_against_one(const AgContext *ctx, const AgMetricRows *rows, double *value)
{
	bool by_weight = rows->metric == AG_METRIC_ROC_AUC_OVO_WEIGHTED;
	size_t n = (size_t) rows->n;
	int64_t *order = NULL, *begin = NULL;
	Pair pair = {0};
	double sum = 0.0, total = 0.0;
	AgStatus status;

	AG_GO(ag_get(ctx, n, sizeof *order, &order));
	AG_GO(ag_get(ctx, (size_t) rows->n_classes + 1, sizeof *begin, &begin));
	AG_GO(ag_get(ctx, n, 2 * sizeof *pair.proba, &pair.proba));
	AG_GO(ag_get(ctx, n, sizeof *pair.class_of, &pair.class_of));
	if (rows->weight != NULL)
		AG_GO(ag_get(ctx, n, sizeof *pair.weight, &pair.weight));
	rows_by_class(rows, order, begin);
	for (int a = 0; a < rows->n_classes; a++)
		for (int b = a + 1; b < rows->n_classes; b++)
		{
			double auc, weight;

			if (begin[a] == begin[a + 1] || begin[b] == begin[b + 1])
				continue;
			AG_GO(auc_of_pair(ctx, rows, order, begin, a, b, &pair, &auc, &weight));
			if (auc != auc)
				continue;
			weight = by_weight ? weight : 1.0;
			sum += weight * auc;
			total += weight;
		}
	*value = total > 0.0 ? sum / total : (double) NAN;
done:
	ag_mem_free(ctx->mem, order);
	ag_mem_free(ctx->mem, begin);
	ag_mem_free(ctx->mem, pair.proba);
	ag_mem_free(ctx->mem, pair.class_of);
	ag_mem_free(ctx->mem, pair.weight);
	return status;
}

AgStatus
ag_metric_by_rank(const AgContext *ctx, const AgMetricRows *rows, double *value)
{
	switch (rows->metric)
	{
		case AG_METRIC_ROC_AUC:
			return by_rank(ctx, rows, 1, auc_of, value);
		case AG_METRIC_AVERAGE_PRECISION:
			return by_rank(ctx, rows, 1, average_precision_of, value);
		case AG_METRIC_ROC_AUC_OVR_MICRO:
			return auc_all_together(ctx, rows, value);
		case AG_METRIC_ROC_AUC_OVO_MACRO:
		case AG_METRIC_ROC_AUC_OVO_WEIGHTED:
			return auc_one_against_one(ctx, rows, value);
		default:
			return auc_one_against_rest(ctx, rows, value);
	}
}
