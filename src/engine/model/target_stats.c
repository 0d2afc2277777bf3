/*
 * target_stats.c - ordered target statistics.
 */
#include "engine/model/target_stats.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/model/combine.h"

#define AG_KEY_ORDER 7
#define AG_ORDER_BLOCKS 1000  /* at least so many are shuffled */
#define AG_ORDER_ROWS 256     /* at most so many rows make one */
#define AG_STAT_SAMPLE 200000 /* rows that the cuts of a column are chosen from */
#define AG_MIDDLE_ROWS 1001   /* that the middle of the labels is taken from */
#define AG_FEW_CLASSES 3      /* up to so many, each class is counted under all priors */

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
	uint32_t *orders; /* [n_permutations][n_train] */
	double *values;   /* [n_rows] of the column in work */
	AgStatRule rules[AG_STAT_MOST];
	int n_rules;
	int at; /* the next column to fill */
} AgStatMaker;

/* ---- what a category becomes ---- */

static bool
counts_all_priors(AgProblem problem, int n_classes)
{
	return problem == AG_PROBLEM_BINARY || n_classes <= AG_FEW_CLASSES;
}

/*
 * Regression: the mean, and the share of labels above the middle, which large labels don't upset; classes: their shares; and for
 * both how common the level is.
 */
int
ag_stats_per_feature(AgProblem problem, int n_classes)
{
	if (!ag_problem_has_classes(problem))
		return 2 + 1;
	if (problem == AG_PROBLEM_BINARY)
		return 3 + 1;
	if (n_classes > AG_STAT_CLASSES)
		n_classes = AG_STAT_CLASSES;
	return n_classes * (counts_all_priors(problem, n_classes) ? 3 : 1) + 1;
}

/* A running mean: no sum that could overflow. */
static double
mean_label(const AgTrainData *data)
{
	double mean = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
		mean += (data->target[data->train_rows[i]] * 0.5 - mean * 0.5) / (double) (i + 1) * 2.0;
	return mean;
}

static int
compare_labels(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

/* The median of some rows, far apart. */
static double
middle_label(const AgTrainData *data)
{
	double labels[AG_MIDDLE_ROWS];
	int64_t n = data->n_train < AG_MIDDLE_ROWS ? data->n_train : AG_MIDDLE_ROWS;

	for (int64_t i = 0; i < n; i++)
		labels[i] = data->target[data->train_rows[i * data->n_train / n]];
	qsort(labels, (size_t) n, sizeof *labels, compare_labels);
	return n > 0 ? labels[(n - 1) / 2] : 0.0;
}

/* The commonest classes, the lower number of equals. */
static int
choose_classes(const AgTrainData *data, int most, int *classes)
{
	int64_t rows[AG_STAT_CLASSES];
	int n = 0;

	for (int k = 0; k < data->n_classes; k++)
	{
		int64_t n_rows = 0;
		int at = n;

		for (int64_t i = 0; data->n_classes > most && i < data->n_train; i++)
			n_rows += data->class_of[data->train_rows[i]] == k;
		/* sorted by falling rows; what falls out at the end is forgotten */
		while (at > 0 && rows[at - 1] < n_rows)
			at--;
		if (at == most)
			continue;
		n += n < most;
		memmove(rows + at + 1, rows + at, (size_t) (n - at - 1) * sizeof *rows);
		memmove(classes + at + 1, classes + at, (size_t) (n - at - 1) * sizeof *classes);
		rows[at] = n_rows;
		classes[at] = k;
	}
	return n;
}

int
ag_stats_rules(const AgTrainData *data, int most_classes, AgStatRule *rules)
{
	static const double priors[] = {0.0, 0.5, 1.0};
	bool has_all = counts_all_priors(data->problem, data->n_classes);
	int classes[AG_STAT_CLASSES], n_classes, n = 0;

	if (!ag_problem_has_classes(data->problem))
	{
		double mean = mean_label(data);

		rules[n++] = (AgStatRule){AG_STAT_LABEL, mean, 1.0, 0.0};
		rules[n++] = (AgStatRule){AG_STAT_ABOVE, 0.5, 1.0, middle_label(data)};
		rules[n++] = (AgStatRule){AG_STAT_ROWS, 0.0, 0.0, 0.0};
		return n;
	}
	n_classes = choose_classes(data, most_classes, classes);
	for (int k = data->problem == AG_PROBLEM_BINARY ? 1 : 0; k < n_classes; k++)
		for (int p = 0; p < (has_all ? 3 : 1); p++)
			rules[n++] =
				(AgStatRule){classes[k], has_all ? priors[p] : 1.0 / data->n_classes, 1.0, 0.0};
	rules[n++] = (AgStatRule){AG_STAT_ROWS, 0.0, 0.0, 0.0};
	return n;
}

/* ---- one column ---- */

static inline int
level_of(const AgLevels *levels, uint32_t row)
{
	if (levels->codes == NULL)
		return levels->column[row] == 0 ? levels->n_codes : levels->column[row] - 1;
	return levels->codes[row] < (uint32_t) levels->n_codes ? (int) levels->codes[row]
														   : levels->n_codes;
}

static AgStatus
store_column(AgStatMaker *maker, const AgLevels *levels, const AgBinFeature *from, int source,
			 const AgStatRule *rule)
{
	AgTargetStats *stats = maker->stats;
	AgStatColumn *column = stats->columns + maker->at;
	AgBinSource values = {.values = maker->values};
	AgBinParams params = {AG_STAT_BINS, 1, AG_STAT_SAMPLE};
	int n = levels->n_codes;

	AG_TRY(ag_get(maker->ctx, (size_t) n + 1, sizeof(double), &column->values));
	AG_TRY(ag_get(maker->ctx, AG_STAT_BINS, sizeof(int64_t), &column->sets));
	for (int b = 0; b < AG_STAT_BINS; b++)
		column->sets[b] = -1;
	column->source = source;
	column->n_codes = n;
	for (int l = 0; l < n; l++)
		column->values[l] = ag_stat_value(rule, levels->sums[l], levels->rows[l]);
	column->missing = ag_stat_value(rule, levels->sums[n], levels->rows[n]);
	column->unseen = ag_stat_value(rule, 0.0, 0.0);
	if (levels->codes == NULL && from->has_other)
	{
		/* the tail's bin has no code of its own */
		column->n_codes = n - 1;
		column->unseen = column->values[n - 1];
	}
	AG_TRY(ag_bins_set_feature(maker->ctx, stats->bins, maker->at, &values, &params));
	for (int p = 1; p < stats->n_permutations; p++)
		AG_TRY(ag_bins_copy_feature(maker->ctx, stats->permuted[p], maker->at, stats->bins,
									maker->at));
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
add_row(const AgTrainData *data, AgLevels *levels, uint32_t row, int level, const AgStatRule *rule)
{
	levels->sums[level] += ag_stat_label(data, row, rule);
	levels->rows[level] += 1.0;
}

/* The training rows' bins in one permutation, each from the rows before it. */
static void
fill_permuted(AgStatMaker *maker, AgLevels *levels, const AgStatRule *rule, int p)
{
	const AgTrainData *data = maker->data;
	AgBins *bins = maker->stats->permuted[p];
	const AgBinFeature *made = bins->features + maker->at;
	uint8_t *column = bins->columns + maker->at * bins->column_stride;
	const uint32_t *order = maker->orders + p * data->n_train;

	forget_sums(levels);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		int level = level_of(levels, order[i]);

		column[order[i]] = (uint8_t) ag_bin_of_number(
			made, ag_stat_value(rule, levels->sums[level], levels->rows[level]));
		add_row(data, levels, order[i], level, rule);
	}
}

/*
 * Statistics of all rows from all training rows; then those of the training rows from the ones before them. Cuts are chosen
 * by the former: they lie between levels, not within what one level's statistic goes through as rows come in. How
 * common a level is tells nothing of a row's own label: all rows count.
 */
static AgStatus
make_column(AgStatMaker *maker, AgLevels *levels, const AgBinFeature *from, int source,
			const AgStatRule *rule)
{
	const AgTrainData *data = maker->data;

	forget_sums(levels);
	for (int64_t i = 0; i < data->n_train; i++)
		add_row(data, levels, maker->orders[i], level_of(levels, maker->orders[i]), rule);
	for (int64_t row = 0; row < data->bins->n_rows; row++)
	{
		int level = level_of(levels, (uint32_t) row);

		maker->values[row] = ag_stat_value(rule, levels->sums[level], levels->rows[level]);
	}
	AG_TRY(store_column(maker, levels, from, source, rule));
	for (int p = 0; rule->target != AG_STAT_ROWS && p < maker->stats->n_permutations; p++)
		fill_permuted(maker, levels, rule, p);
	maker->at++;
	return AG_OK;
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
	for (int r = 0; r < maker->n_rules; r++)
		AG_GO(make_column(maker, &levels, feature, f, &maker->rules[r]));
done:
	ag_mem_free(maker->ctx->mem, levels.sums);
	ag_mem_free(maker->ctx->mem, levels.rows);
	return status;
}

/* ---- all of them ---- */

/*
 * Fisher and Yates' shuffle, of blocks of rows: rows have no order that means anything, and going through memory in pieces is
 * several times quicker than jumping from row to row. Numbers of blocks wait at the end of `order`, which rows don't reach before
 * they were read.
 */
void
ag_stats_order(const AgTrainData *data, uint64_t seed, int p, uint32_t *order)
{
	uint64_t key = ag_key(seed, AG_KEY_ORDER);
	int64_t size = data->n_train / AG_ORDER_BLOCKS + 1, n_blocks, at = 0;
	uint32_t *blocks;

	size = size < AG_ORDER_ROWS ? size : AG_ORDER_ROWS;
	n_blocks = (data->n_train + size - 1) / size;
	blocks = order + (data->n_train - n_blocks);
	if (p > 0)
		key = ag_key(key, (uint64_t) p);
	for (int64_t i = 0; i < n_blocks; i++)
		blocks[i] = (uint32_t) i;
	for (int64_t i = 0; i + 1 < n_blocks; i++)
	{
		int64_t j = i + ag_random_below(key, (uint64_t) i, (uint32_t) (n_blocks - i));
		uint32_t block = blocks[i];

		blocks[i] = blocks[j];
		blocks[j] = block;
	}
	for (int64_t i = 0; i < n_blocks; i++)
	{
		int64_t begin = blocks[i] * size, n = data->n_train - begin;

		n = n < size ? n : size;
		memcpy(order + at, data->train_rows + begin, (size_t) n * sizeof *order);
		at += n;
	}
}

static AgStatus
make_all(AgStatMaker *maker, const uint32_t *const *codes, int one_hot_max_size, int n_columns)
{
	const AgBins *bins = maker->data->bins;
	AgTargetStats *stats = maker->stats;

	stats->n_features = bins->n_features;
	AG_TRY(ag_get_zeroed(maker->ctx, (size_t) n_columns + AG_STAT_SLOTS, sizeof(AgStatColumn),
						 &stats->columns));
	for (int p = 0; p < stats->n_permutations; p++)
		AG_TRY(ag_bins_create_wider(maker->ctx, bins->n_rows, n_columns, AG_STAT_SLOTS,
									&stats->permuted[p]));
	stats->bins = stats->permuted[0];
	for (int f = 0; f < bins->n_features; f++)
	{
		if (ag_stats_replace(bins->features + f, one_hot_max_size))
			continue;
		stats->columns[maker->at].source = f;
		for (int p = 0; p < stats->n_permutations; p++)
			AG_TRY(ag_bins_copy_feature(maker->ctx, stats->permuted[p], maker->at, bins, f));
		maker->at++;
	}
	for (int f = 0; f < bins->n_features; f++)
		if (ag_stats_replace(bins->features + f, one_hot_max_size))
			AG_TRY(replace_feature(maker, codes != NULL ? codes[f] : NULL, f));
	for (int p = 0; p < stats->n_permutations; p++)
		AG_TRY(ag_bins_make_rows(maker->ctx, stats->permuted[p]));
	return AG_OK;
}

AgStatus
ag_target_stats_create(const AgContext *ctx, const AgTrainData *data, const uint32_t *const *codes,
					   int one_hot_max_size, int n_permutations, uint64_t seed,
					   AgTargetStats **stats)
{
	AgStatMaker maker = {.ctx = ctx, .data = data};
	int n_columns = 0;
	AgStatus status;

	*stats = NULL;
	maker.n_rules = ag_stats_rules(data, AG_STAT_CLASSES, maker.rules);
	for (int f = 0; f < data->bins->n_features; f++)
		n_columns +=
			ag_stats_replace(data->bins->features + f, one_hot_max_size) ? maker.n_rules : 1;
	AG_GO(ag_get_zeroed(ctx, 1, sizeof(AgTargetStats), &maker.stats));
	maker.stats->n_permutations = n_permutations;
	AG_GO(ag_get(ctx, (size_t) data->n_train * (size_t) n_permutations, sizeof(uint32_t),
				 &maker.orders));
	AG_GO(ag_get(ctx, (size_t) data->bins->n_rows, sizeof(double), &maker.values));
	for (int p = 0; p < n_permutations; p++)
		ag_stats_order(data, seed, p, maker.orders + p * data->n_train);
	AG_GO(make_all(&maker, codes, one_hot_max_size, n_columns));
done:
	ag_mem_free(ctx->mem, maker.orders);
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
	ag_combiner_free(ctx, stats->combiner);
	for (int c = 0; stats->columns != NULL && stats->bins != NULL && c < stats->bins->n_features;
		 c++)
	{
		ag_mem_free(ctx->mem, stats->columns[c].values);
		ag_mem_free(ctx->mem, stats->columns[c].sets);
	}
	ag_mem_free(ctx->mem, stats->columns);
	for (int p = 0; p < stats->n_permutations; p++)
		ag_bins_free(stats->permuted[p]);
	ag_mem_free(ctx->mem, stats);
}
