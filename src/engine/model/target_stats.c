/*
 * target_stats.c - ordered target statistics.
 */
#include "engine/model/target_stats.h"

#include <string.h>

#include "engine/base/rng.h"

#define AG_KEY_ORDER 7
#define AG_STAT_SAMPLE 200000 /* rows that the cuts of a column are chosen from */
#define AG_MOST_TARGETS 16    /* classes beyond have no statistic of their own */
#define AG_FEW_CLASSES 3      /* up to so many, each class is counted under all priors */

/* A statistic: (sum of labels + weight * prior) / (rows + weight). */
typedef struct AgStatPrior
{
	double prior, weight;
} AgStatPrior;

/* One feature's levels on all rows, and what is summed over them. */
typedef struct AgLevels
{
	const uint32_t *codes; /* NULL: bins */
	const uint8_t *column;
	int n_codes;  /* levels apart, the tail's bin included */
	double *sums; /* [n_codes + 1], missing last */
	double *rows; /* likewise */
} AgLevels;

typedef struct AgStatMaker
{
	const AgContext *ctx;
	const AgTrainData *data;
	AgTargetStats *stats;
	uint32_t *order; /* [n_train] train rows in random order */
	double *values;  /* [n_rows] of the column in work */
	double mean;     /* of the labels, regression */
	int at;          /* the next column to fill */
} AgStatMaker;

static bool
counts_all_priors(AgProblem problem, int n_classes)
{
	return problem == AG_PROBLEM_BINARY || n_classes <= AG_FEW_CLASSES;
}

/* Regression: the mean under two priors; classes: their shares; and for both how common the level is. */
int
ag_stats_per_feature(AgProblem problem, int n_classes)
{
	if (problem == AG_PROBLEM_REGRESSION)
		return 2 + 1;
	if (problem == AG_PROBLEM_BINARY)
		return 3 + 1;
	if (n_classes > AG_MOST_TARGETS)
		n_classes = AG_MOST_TARGETS;
	return n_classes * (counts_all_priors(problem, n_classes) ? 3 : 1) + 1;
}

static inline int
level_of(const AgLevels *levels, uint32_t row)
{
	if (levels->codes == NULL)
		return levels->column[row] == 0 ? levels->n_codes : levels->column[row] - 1;
	return levels->codes[row] < (uint32_t) levels->n_codes ? (int) levels->codes[row]
														   : levels->n_codes;
}

static inline double
label_of(const AgTrainData *data, uint32_t row, int target)
{
	if (data->problem == AG_PROBLEM_REGRESSION)
		return data->target[row];
	return data->class_of[row] == target ? 1.0 : 0.0;
}

static inline double
statistic(const AgStatPrior *prior, double sum, double rows)
{
	return (sum + prior->weight * prior->prior) / (rows + prior->weight);
}

static AgStatus
store_column(AgStatMaker *maker, const AgLevels *levels, const AgBinFeature *from, int source,
			 const AgStatPrior *prior)
{
	AgTargetStats *stats = maker->stats;
	AgStatColumn *column = stats->columns + maker->at;
	AgBinSource values = {.values = maker->values};
	AgBinParams params = {AG_STAT_BINS, 1, AG_STAT_SAMPLE};
	int n = levels->n_codes;

	AG_TRY(ag_get(maker->ctx, (size_t) n + 1, sizeof(double), &column->values));
	column->source = source;
	column->n_codes = n;
	for (int l = 0; l < n; l++)
		column->values[l] =
			prior != NULL ? statistic(prior, levels->sums[l], levels->rows[l]) : levels->rows[l];
	column->missing =
		prior != NULL ? statistic(prior, levels->sums[n], levels->rows[n]) : levels->rows[n];
	column->unseen = prior != NULL ? prior->prior : 0.0;
	if (levels->codes == NULL && from->has_other)
	{
		/* the tail's bin has no code of its own */
		column->n_codes = n - 1;
		column->unseen = column->values[n - 1];
	}
	AG_TRY(ag_bins_set_feature(maker->ctx, stats->bins, maker->at, &values, &params));
	maker->at++;
	return ag_check_cancel(maker->ctx);
}

static void
forget_sums(AgLevels *levels)
{
	size_t bytes = ((size_t) levels->n_codes + 1) * sizeof(double);

	memset(levels->sums, 0, bytes);
	memset(levels->rows, 0, bytes);
}

static inline void
add_row(const AgTrainData *data, AgLevels *levels, uint32_t row, int level, int target)
{
	levels->sums[level] += label_of(data, row, target);
	levels->rows[level] += 1.0;
}

/*
 * Statistics of all rows from all training rows; then those of the training rows from the ones before them. Cuts are chosen
 * by the former: they lie between levels, not within what one level's statistic goes through as rows come in.
 */
static AgStatus
make_column(AgStatMaker *maker, AgLevels *levels, const AgBinFeature *from, int source, int target,
			const AgStatPrior *prior)
{
	const AgTrainData *data = maker->data;
	const AgBinFeature *made = maker->stats->bins->features + maker->at;
	uint8_t *bins = maker->stats->bins->columns + maker->at * maker->stats->bins->column_stride;

	forget_sums(levels);
	for (int64_t i = 0; i < data->n_train; i++)
		add_row(data, levels, maker->order[i], level_of(levels, maker->order[i]), target);
	for (int64_t row = 0; row < data->bins->n_rows; row++)
	{
		int level = level_of(levels, (uint32_t) row);

		maker->values[row] = statistic(prior, levels->sums[level], levels->rows[level]);
	}
	AG_TRY(store_column(maker, levels, from, source, prior));
	forget_sums(levels);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = maker->order[i];
		int level = level_of(levels, row);

		bins[row] = (uint8_t) ag_bin_of_number(
			made, statistic(prior, levels->sums[level], levels->rows[level]));
		add_row(data, levels, row, level, target);
	}
	return AG_OK;
}

/* How many training rows a level has; the sums of the column before it are there. */
static AgStatus
make_counter(AgStatMaker *maker, AgLevels *levels, const AgBinFeature *from, int source)
{
	for (int64_t row = 0; row < maker->data->bins->n_rows; row++)
		maker->values[row] = levels->rows[level_of(levels, (uint32_t) row)];
	return store_column(maker, levels, from, source, NULL);
}

static AgStatus
make_columns(AgStatMaker *maker, AgLevels *levels, const AgBinFeature *from, int source)
{
	const AgTrainData *data = maker->data;
	static const AgStatPrior shares[] = {{0.0, 1.0}, {0.5, 1.0}, {1.0, 1.0}};
	bool has_all = counts_all_priors(data->problem, data->n_classes);
	int first = data->problem == AG_PROBLEM_BINARY ? 1 : 0;
	int last = data->problem == AG_PROBLEM_REGRESSION ? 0 : data->n_classes - 1;

	if (data->problem == AG_PROBLEM_REGRESSION)
	{
		AgStatPrior light = {maker->mean, 1.0}, heavy = {maker->mean, 10.0};

		AG_TRY(make_column(maker, levels, from, source, 0, &light));
		AG_TRY(make_column(maker, levels, from, source, 0, &heavy));
		return make_counter(maker, levels, from, source);
	}
	if (last >= AG_MOST_TARGETS)
		last = AG_MOST_TARGETS - 1;
	for (int k = first; k <= last; k++)
	{
		AgStatPrior even = {1.0 / data->n_classes, 1.0};

		for (int p = 0; has_all && p < 3; p++)
			AG_TRY(make_column(maker, levels, from, source, k, &shares[p]));
		if (!has_all)
			AG_TRY(make_column(maker, levels, from, source, k, &even));
	}
	return make_counter(maker, levels, from, source);
}

static AgStatus
replace_feature(AgStatMaker *maker, const uint32_t *codes, int f)
{
	const AgBins *bins = maker->data->bins;
	const AgBinFeature *feature = bins->features + f;
	AgLevels levels = {.codes = codes,
					   .column = bins->columns + f * bins->column_stride,
					   .n_codes = codes != NULL ? (int) feature->n_levels : feature->n_bins};
	AgStatus status;

	AG_GO(ag_get(maker->ctx, (size_t) levels.n_codes + 1, sizeof(double), &levels.sums));
	AG_GO(ag_get(maker->ctx, (size_t) levels.n_codes + 1, sizeof(double), &levels.rows));
	AG_GO(make_columns(maker, &levels, feature, f));
done:
	ag_mem_free(maker->ctx->mem, levels.sums);
	ag_mem_free(maker->ctx->mem, levels.rows);
	return status;
}

/* Fisher and Yates' shuffle. The mean is a running one: no sum that could overflow. */
static void
draw_order(AgStatMaker *maker, uint64_t seed)
{
	const AgTrainData *data = maker->data;
	uint64_t key = ag_key(seed, AG_KEY_ORDER);

	memcpy(maker->order, data->train_rows, (size_t) data->n_train * sizeof *maker->order);
	for (int64_t i = 0; i + 1 < data->n_train; i++)
	{
		int64_t j = i + ag_random_below(key, (uint64_t) i, (uint32_t) (data->n_train - i));
		uint32_t row = maker->order[i];

		maker->order[i] = maker->order[j];
		maker->order[j] = row;
	}
	for (int64_t i = 0; data->problem == AG_PROBLEM_REGRESSION && i < data->n_train; i++)
		maker->mean +=
			(data->target[data->train_rows[i]] * 0.5 - maker->mean * 0.5) / (double) (i + 1) * 2.0;
}

static AgStatus
make_all(AgStatMaker *maker, const uint32_t *const *codes, int one_hot_max_size, int n_columns)
{
	const AgBins *bins = maker->data->bins;
	AgTargetStats *stats = maker->stats;

	stats->n_features = bins->n_features;
	AG_TRY(ag_get_zeroed(maker->ctx, (size_t) n_columns, sizeof(AgStatColumn), &stats->columns));
	AG_TRY(ag_bins_create(maker->ctx, bins->n_rows, n_columns, &stats->bins));
	for (int f = 0; f < bins->n_features; f++)
	{
		if (ag_stats_replace(bins->features + f, one_hot_max_size))
			continue;
		stats->columns[maker->at].source = f;
		AG_TRY(ag_bins_copy_feature(maker->ctx, stats->bins, maker->at++, bins, f));
	}
	for (int f = 0; f < bins->n_features; f++)
		if (ag_stats_replace(bins->features + f, one_hot_max_size))
			AG_TRY(replace_feature(maker, codes != NULL ? codes[f] : NULL, f));
	return ag_bins_make_rows(maker->ctx, stats->bins);
}

AgStatus
ag_target_stats_create(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
					   int one_hot_max_size, uint64_t seed, AgTargetStats **stats)
{
	AgStatMaker maker = {.ctx = ctx, .data = data};
	int n_columns = 0;
	AgStatus status;

	*stats = NULL;
	for (int f = 0; f < data->bins->n_features; f++)
		n_columns += ag_stats_replace(data->bins->features + f, one_hot_max_size)
						 ? ag_stats_per_feature(data->problem, data->n_classes)
						 : 1;
	AG_GO(ag_get_zeroed(ctx, 1, sizeof(AgTargetStats), &maker.stats));
	AG_GO(ag_get(ctx, (size_t) data->n_train, sizeof(uint32_t), &maker.order));
	AG_GO(ag_get(ctx, (size_t) data->bins->n_rows, sizeof(double), &maker.values));
	draw_order(&maker, seed);
	AG_GO(make_all(&maker, codes, one_hot_max_size, n_columns));
done:
	ag_mem_free(ctx->mem, maker.order);
	ag_mem_free(ctx->mem, maker.values);
	if (status != AG_OK)
	{
		ag_target_stats_free(ctx, maker.stats);
		return status;
	}
	*stats = maker.stats;
	return AG_OK;
}

void
ag_target_stats_free(const AgContext *ctx, AgTargetStats *stats)
{
	if (stats == NULL)
		return;
	for (int c = 0; stats->columns != NULL && stats->bins != NULL && c < stats->bins->n_features;
		 c++)
		ag_mem_free(ctx->mem, stats->columns[c].values);
	ag_mem_free(ctx->mem, stats->columns);
	ag_bins_free(stats->bins);
	ag_mem_free(ctx->mem, stats);
}
