/*
 * fit_memory.c - how much memory a fit will take, before it takes it.
 *
 * An upper estimate for the host's lease. What is too low costs a fit its life, what is too high only makes another
 * one wait, so everything that may live at the same time is added up.
 */
#include <math.h>
#include <string.h>

#include "engine/search/fit_state.h"
#include "engine/search/search.h"

/* Of a row: hashes and order of the rows, a column in order, labels, the split. */
#define ROW_SCRATCH 48

#define MOST_INPUTS 60 /* that a level has, as a rule */
#define STACKED_BYTES                                                                              \
	40                /* of a row and an input's number, with what is said without pairs of folds */
#define TEXT_BYTES 12 /* of a value on average, from which on a column may be words */
#define TEXT_FEATURES 100 /* that such a column becomes, about */
#define TEXT_LEVEL 480    /* bytes of a text's features */
#define TEXT_LEARNING (INT64_C(96) << 20)
#define TEXT_ROW 10800 /* bytes of a row's own columns, of two children at a time */
#define TEXT_ROWS_MOST (INT64_C(1) << 30)

/* Could its values be words? */
static bool
may_be_text(const AgTableColumn *column)
{
	const AgDictionary *levels = &column->dictionary;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < levels->n_levels; i++)
		bytes += levels->n_bytes[i];
	return bytes > (uint64_t) levels->n_levels * TEXT_BYTES;
}

/* Features that a column can become at most: a number, and the parts of a date or a time of day; what is read off texts. */
static int
features_of(const AgTableColumn *column)
{
	switch (column->type)
	{
		case AG_TYPE_DATE:
			return 10;
		case AG_TYPE_TIMESTAMP:
			return 16;
		case AG_TYPE_TEXT:
			return may_be_text(column) ? TEXT_FEATURES : 4;
		default:
			return 1;
	}
}

/* Memory for the features of texts, and for learning from the texts. */
static int64_t
text_memory(const AgTable *table)
{
	int64_t bytes = 0;

	for (int c = 0; c < table->n_columns; c++)
		if (table->columns[c].type == AG_TYPE_TEXT && ag_role_is_feature(table->columns[c].role) &&
			may_be_text(&table->columns[c]))
		{
			int64_t n = table->columns[c].dictionary.n_levels;
			int64_t own = table->n_rows * TEXT_ROW;

			bytes += own < TEXT_ROWS_MOST ? own : TEXT_ROWS_MOST;
			bytes += n * TEXT_LEVEL + (n * 8000 < TEXT_LEARNING ? n * 8000 : TEXT_LEARNING);
		}
	return bytes;
}

/* The classes there may be; only a text label can have more than an integer's ten unless the user insists. */
static int
classes_at_most(const AgTable *table, const AgFitOptions *options)
{
	for (int c = 0; c < table->n_columns; c++)
	{
		const AgTableColumn *column = &table->columns[c];

		if (column->role != AG_ROLE_LABEL || options->problem == AG_PROBLEM_REGRESSION ||
			options->problem == AG_PROBLEM_QUANTILE)
			continue;
		if (options->problem == AG_PROBLEM_BINARY || column->type == AG_TYPE_BOOL)
			return 2;
		if (column->type == AG_TYPE_TEXT)
			return column->dictionary.n_levels < 10000 ? (int) column->dictionary.n_levels : 10000;
		return options->problem == AG_PROBLEM_MULTICLASS ? 100 : 10;
	}
	return 0;
}

/* May there be time for a spare set of folds (fit_spare.c)? */
static bool
may_spare(const AgFitOptions *options)
{
	if (options->replay != NULL)
		return options->replay->has_spare_set;
	return options->models_from_set && options->auto_stack && !options->bag_sets_said &&
		   isnan(options->infer_limit) && !(options->time_limit < AG_FIT_LONG_SECONDS);
}

int64_t
ag_fit_memory(const AgTable *table, const AgFitOptions *options, int n_threads)
{
	int64_t n = table->n_rows, training = 0, kept = 0, of_family[AG_FAMILY_LAST] = {0};
	int n_classes = classes_at_most(table, options), n_folds = ag_folds_asked(options, n);
	/* validation predictions, and the models themselves until they are stored */
	double holdout = ag_holdout_asked(options, n > 0 ? n : 1);
	int64_t n_scored = n_folds > 0 ? n : (int64_t) (holdout * (double) n);
	int n_parallel = n_folds > 0 ? ag_folds_at_a_time(options, n) : 1;
	int n_levels = ag_levels_at_most(options, n);
	int n_sets = options->num_bag_sets + may_spare(options);
	int64_t n_children = n_folds > 0 ? (int64_t) n_folds * n_sets : 1;
	AgTrainData data;
	AgBins bins;

	n_parallel = n_parallel < n_threads ? n_parallel : n_threads;
	n_parallel = n_folds > 0 && n_folds < n_parallel ? n_folds : n_parallel;
	memset(&data, 0, sizeof data);
	memset(&bins, 0, sizeof bins);
	bins.n_rows = n;
	bins.column_stride = n + 4096;
	for (int c = 0; c < table->n_columns; c++)
		if (ag_role_is_feature(table->columns[c].role))
			bins.n_features += features_of(&table->columns[c]);
	bins.features = ag_mem_zalloc(table->mem, (size_t) bins.n_features + 1, sizeof *bins.features);
	if (bins.features == NULL) /* then there is no room for a fit either, and the fit will say so */
		return table->mem->limit_bytes;
	for (int f = 0; f < bins.n_features; f++)
		bins.features[f].n_bins = n < AG_MAX_BIN ? (int) n : AG_MAX_BIN;
	bins.row_stride = (bins.n_features + 4 + 31) / 32 * 32;
	data.bins = &bins;
	data.problem = n_classes > 2    ? AG_PROBLEM_MULTICLASS
				   : n_classes == 2 ? AG_PROBLEM_BINARY
									: AG_PROBLEM_REGRESSION;
	data.n_classes = n_classes;
	if (options->problem == AG_PROBLEM_QUANTILE)
		data.problem = AG_PROBLEM_QUANTILE;
	data.n_quantiles = options->n_quantiles;
	data.quantiles = options->quantiles;
	data.n_train = n;
	data.n_valid = n_folds > 0 ? n / n_folds : n_scored;
	for (int i = 0; i < options->n_models; i++)
	{
		AgModelConfig config = options->models[i];
		AgFamilyId family = config.family->id;
		int64_t one;

		if (config.search != NULL) /* what it will try isn't known yet */
			config.params = config.search->largest;
		one = ag_family_memory(&config, &data, n_threads);

		one *= n_parallel;
		of_family[family] = one > of_family[family] ? one : of_family[family];
		/* one child may get as large as models get; all of them never do */
		kept += ((n_children + 3) / 4 + (options->refit_full != AG_REFIT_NONE)) *
					ag_family_kept(&config, &data) +
				2 * n_scored * ag_train_outputs(&data) * 8; /* and once more to weigh them */
	}
	ag_mem_free(table->mem, bins.features);
	kept *= n_levels;
	/* The forms of the rows that the families learn from stay for the next model. */
	for (int i = 0; i < AG_FAMILY_LAST; i++)
		training += of_family[i];
	if (n_levels >
		1) /* a higher level's forms of the rows, and what it adds to the features, also fold by fold */
	{
		int64_t n_inputs = options->n_models < MOST_INPUTS ? options->n_models : MOST_INPUTS;

		training += training + (int64_t) (n_levels - 1) * n * n_inputs *
								   (n_classes > 2 ? n_classes : 1) *
								   (STACKED_BYTES + 8 * n_parallel);
	}
	if (options->sample_weight != NULL)
		kept += n * 8;
	if (options->groups != NULL)
		kept += n * 24;
	if (options->refit_full != AG_REFIT_NONE || options->retrain_full)
		kept += n * 4;
	if (n_folds > 0)
		kept += n * (12 + 2 * n_sets); /* lists of rows, and folds, also while they get more */
	return table->mem->used_bytes + n * ROW_SCRATCH + text_memory(table) + training + kept +
		   (INT64_C(16) << 20);
}
