/*
 * pipeline_text_fit.c - finding out what a column of text holds, and learning from it.
 *
 * A column is looked at through some of its rows, which stand in the order of a hash and so are a sample. Then each of its
 * distinct texts is read once, and the features of rows are gathered by the texts' codes.
 */
#include <string.h>

#include "engine/base/threads.h"
#include "engine/data/pipeline_private.h"

#define LOOKED_ROWS 5000
#define LEARNING_SECONDS 5.0 /* that have to be left for a vocabulary to be begun */
#define WORDS_SHARE 0.3      /* of the time that is left, which reading all texts may take */
#define TIMED_LEVELS 500
#define LEARNT_ROWS 20000
#define LEARNT_BYTES (INT64_C(64) << 20)
#define TEXT_WORDS                                                                                 \
	3.0 /* words of a value on average, from which on a column is text (AutoGluon's rule) */
#define TEXT_DISTINCT 0.01 /* part of the values that differ, likewise */
#define DATE_SHARE 0.9     /* of the values, which a format must read */
#define NUMBER_SHARE 0.6   /* of the values, which must hold a number */
#define NUMBER_CHARS 64.0  /* of a text on average; longer ones hold numbers by chance */
#define CATEGORY_SHARE 0.5 /* of the values that differ, up to which text is a category too */
#define FEW_NAMES 20 /* different values, up to which digits behind letters are a part of names */
#define UNIT_SHARE 0.002 /* of the numbers, that a unit of its own needs */

/* --- looking */

/* Counts over the rows that are looked at. */
typedef struct Looked
{
	int64_t n, n_empty;
	int64_t n_words, n_chars;
	int64_t n_first, n_dates[AG_TEXT_DMY + 1];
	int64_t n_numbers[AG_TEXT_NUMBERS];
	int64_t n_plain;
	uint32_t n_units;
	struct
	{
		uint64_t hash;
		int64_t n;
	} units[256];
} Looked;

static void
look_at_unit(Looked *looked, uint64_t unit)
{
	uint32_t u = 0;

	while (u < looked->n_units && looked->units[u].hash != unit)
		u++;
	if (u == sizeof looked->units / sizeof looked->units[0])
		return;
	if (u == looked->n_units)
	{
		looked->units[u].hash = unit;
		looked->units[u].n = 0;
		looked->n_units++;
	}
	looked->units[u].n++;
}

static void
look_at_text(Looked *looked, const char *text, uint32_t n_bytes)
{
	AgTextStats stats;
	AgTextNumbers numbers;
	int64_t timestamp;

	looked->n++;
	ag_text_stats(text, n_bytes, &stats);
	if (stats.n_words == 0)
	{
		looked->n_empty++;
		return;
	}
	looked->n_words += stats.n_words;
	looked->n_chars += stats.n_chars;
	for (int format = AG_TEXT_YMD; format <= AG_TEXT_DMY; format++)
		looked->n_dates[format] += ag_text_date(text, n_bytes, (AgTextDate) format, &timestamp);
	ag_text_numbers(text, n_bytes, &numbers);
	for (int k = 0; k < numbers.n; k++)
		looked->n_numbers[k]++;
	looked->n_first += numbers.n > 0 && numbers.is_first;
	looked->n_plain += numbers.n > 0 && numbers.is_plain;
	if (numbers.n > 0)
		look_at_unit(looked, numbers.unit);
}

/* The units that are common enough, the commonest first. */
static void
find_units(const Looked *looked, AgTextFinding *finding)
{
	int64_t n[64];

	for (uint32_t u = 0; u < looked->n_units; u++)
	{
		int64_t count = looked->units[u].n;
		uint64_t hash = looked->units[u].hash;
		uint32_t at = finding->n_units;

		if ((double) count < UNIT_SHARE * (double) looked->n_numbers[0] || count < 2)
			continue;
		if (at == 64)
		{
			if (n[63] >= count)
				continue;
			at--;
		}
		else
			finding->n_units++;
		for (;
			 at > 0 && (n[at - 1] < count || (n[at - 1] == count && finding->units[at - 1] > hash));
			 at--)
		{
			n[at] = n[at - 1];
			finding->units[at] = finding->units[at - 1];
		}
		n[at] = count;
		finding->units[at] = hash;
	}
	if (finding->n_units < 2)
		finding->n_units = 0;
}

static void
conclude(const Looked *looked, double distinct, double all_distinct, uint32_t n_levels,
		 bool is_identifier, const AgFeatureParams *params, AgTextFinding *finding)
{
	double n = (double) (looked->n - looked->n_empty);

	finding->has_category = !is_identifier;
	if (n == 0.0)
		return;
	for (int format = AG_TEXT_DMY; format >= AG_TEXT_YMD; format--)
		if ((double) looked->n_dates[format] >= DATE_SHARE * n &&
			looked->n_dates[format] >= looked->n_dates[finding->date])
			finding->date = (AgTextDate) format;
	if (finding->date != AG_TEXT_NO_DATE)
	{
		finding->has_category = false;
		return;
	}
	finding->is_text = (params->text_special || params->text_ngram) && distinct > TEXT_DISTINCT &&
					   (double) looked->n_words / n >= TEXT_WORDS;
	if (finding->is_text && all_distinct > CATEGORY_SHARE)
		finding->has_category = false;
	/* what is nearly always different, and a number without a unit, is an identifier */
	if (!finding->is_text && is_identifier &&
		((double) looked->n_first < NUMBER_SHARE * n || (double) looked->n_plain > 0.5 * n))
		return;
	if (n_levels <= FEW_NAMES && (double) looked->n_first < NUMBER_SHARE * n)
		return; /* "VS1", "c9" */
	if ((double) looked->n_chars / n <= NUMBER_CHARS)
		while (finding->n_numbers < AG_TEXT_NUMBERS &&
			   (double) looked->n_numbers[finding->n_numbers] >= NUMBER_SHARE * n)
			finding->n_numbers++;
	if (finding->n_numbers > 0)
		find_units(looked, finding);
}

AgStatus
ag_text_look(const AgContext *ctx, const AgTable *table, const AgTableColumn *column,
			 bool is_identifier, const AgFeatureParams *params, AgTextFinding *finding)
{
	const AgDictionary *levels = &column->dictionary;
	const uint32_t *codes = column->values;
	int64_t n_looked = 0, n_distinct = 0;
	uint8_t *seen = NULL;
	Looked *looked = NULL;
	AgStatus status;

	memset(finding, 0, sizeof *finding);
	AG_GO(ag_get_zeroed(ctx, levels->n_levels, 1, &seen));
	AG_GO(ag_get_zeroed(ctx, 1, sizeof *looked, &looked));
	for (int64_t row = 0; row < table->n_rows && n_looked < LOOKED_ROWS; row++)
	{
		uint32_t code = codes[row];

		if (code == AG_NO_CODE)
			continue;
		n_looked++;
		n_distinct += seen[code] == 0;
		seen[code] = 1;
		look_at_text(looked, levels->texts[code], levels->n_bytes[code]);
	}
	if (n_looked > 0)
		conclude(looked, (double) n_distinct / (double) n_looked,
				 (double) levels->n_levels / (double) (table->n_rows - column->n_nulls),
				 levels->n_levels, is_identifier, params, finding);
done:
	ag_mem_free(ctx->mem, seen);
	ag_mem_free(ctx->mem, looked);
	return status;
}

/* --- learning */

static AgStatus
learn_vocabulary(const AgContext *ctx, AgArena *arena, const AgTable *table,
				 const AgTableColumn *column, const AgTextBudget *budget,
				 const AgFeatureParams *params, AgVocabulary **vocabulary)
{
	AgVocabularyParams wanted = {params->max_ngrams, budget->n_dims, budget->n_pool, params->seed};
	const AgDictionary *levels = &column->dictionary;
	const uint32_t *codes = column->values;
	int64_t most = table->n_rows < LEARNT_ROWS ? table->n_rows : LEARNT_ROWS;
	AgTextSample sample = {NULL, NULL, 0};
	const char **texts = NULL;
	uint32_t *n_bytes = NULL;
	int64_t bytes = 0;
	AgStatus status;

	AG_GO(ag_get(ctx, (size_t) most, sizeof *texts, &texts));
	AG_GO(ag_get(ctx, (size_t) most, sizeof *n_bytes, &n_bytes));
	for (int64_t row = 0; row < table->n_rows && sample.n < most && bytes < LEARNT_BYTES; row++)
		if (codes[row] != AG_NO_CODE)
		{
			texts[sample.n] = levels->texts[codes[row]];
			n_bytes[sample.n] = levels->n_bytes[codes[row]];
			bytes += n_bytes[sample.n++];
		}
	sample.texts = texts;
	sample.n_bytes = n_bytes;
	AG_GO(ag_vocabulary_fit(ctx, arena, &sample, &wanted, vocabulary));
done:
	ag_mem_free(ctx->mem, texts);
	ag_mem_free(ctx->mem, n_bytes);
	return status;
}

/* Features that a column might have, before it is known which vary. */
typedef struct Candidates
{
	const AgContext *ctx;
	const AgTextPlan *plan;
	const AgDictionary *levels;
	int n;
	AgFeature features[AG_TEXT_MOST_FEATURES];
	void *values[AG_TEXT_MOST_FEATURES];
} Candidates;

static void
candidate_add(Candidates *candidates, int input, AgFeatureKind kind, int part, uint32_t n_levels)
{
	AgFeature *feature = &candidates->features[candidates->n++];

	memset(feature, 0, sizeof *feature);
	feature->kind = kind;
	feature->input = input;
	feature->part = part;
	feature->n_levels = n_levels;
}

static void
candidates_list(Candidates *candidates, int input, const AgTextFinding *finding)
{
	const AgTextPlan *plan = candidates->plan;

	if (plan->date != AG_TEXT_NO_DATE)
	{
		candidate_add(candidates, input, AG_FEATURE_NUMBER, 0, 0);
		for (int kind = AG_FEATURE_YEAR; kind <= AG_FEATURE_WEEKDAY_COS; kind++)
			candidate_add(candidates, input, (AgFeatureKind) kind, 0, 0);
	}
	if (plan->has_stats)
	{
		for (int kind = AG_FEATURE_TEXT_CHARS; kind <= AG_FEATURE_TEXT_SPECIAL; kind++)
			candidate_add(candidates, input, (AgFeatureKind) kind, 0, 0);
		for (int i = 0; i < AG_TEXT_N_SYMBOLS; i++)
			candidate_add(candidates, input, AG_FEATURE_TEXT_SYMBOL, i, 0);
	}
	for (int k = 0; k < finding->n_numbers; k++)
		candidate_add(candidates, input, AG_FEATURE_TEXT_NUMBER, k, 0);
	if (plan->n_units > 0)
		candidate_add(candidates, input, AG_FEATURE_TEXT_UNIT, 0, plan->n_units);
	for (uint32_t d = 0; plan->vocabulary != NULL && d < plan->vocabulary->n_dims; d++)
		candidate_add(candidates, input, AG_FEATURE_TEXT_PLACE, (int) d, 0);
}

static void
read_levels(void *arg, int64_t begin, int64_t end, int thread)
{
	const Candidates *candidates = arg;
	AgTextFacts facts;

	(void) thread;
	if (ag_cancelled(candidates->ctx))
		return;
	for (int64_t level = begin; level < end; level++)
	{
		ag_text_facts(candidates->plan, candidates->levels->texts[level],
					  candidates->levels->n_bytes[level], &facts, NULL);
		for (int f = 0; f < candidates->n; f++)
		{
			double value = ag_text_value(&candidates->features[f], candidates->plan, &facts);

			if (ag_text_is_wide(candidates->features[f].kind))
				((double *) candidates->values[f])[level] = value;
			else
				((float *) candidates->values[f])[level] = (float) value;
		}
	}
}

/* Has every level the same value? One that most levels lack isn't constant. */
static bool
is_constant(const AgFeature *feature, const void *values, uint32_t n_levels)
{
	size_t width = ag_text_is_wide(feature->kind) ? sizeof(double) : sizeof(float);

	for (uint32_t level = 1; level < n_levels; level++)
		if (memcmp(values, (const char *) values + level * width, width) != 0)
			return false;
	return true;
}

/* Moves the candidates that vary to the pipeline; those that don't are given back. */
static AgStatus
candidates_keep(Candidates *candidates, AgPipeline *pipeline)
{
	for (int f = 0; f < candidates->n; f++)
	{
		AgFeature *feature = &pipeline->features[pipeline->n_features];

		if (is_constant(&candidates->features[f], candidates->values[f],
						candidates->levels->n_levels))
			continue;
		*feature = candidates->features[f];
		if (!ag_feature_name(pipeline, feature))
			return ag_mem_error(pipeline->mem, 256, candidates->ctx->error);
		pipeline->level_values[pipeline->n_features++] = candidates->values[f];
		candidates->values[f] = NULL;
	}
	return AG_OK;
}

/* The terms of every level, of those that models may choose from. */
static AgStatus
read_terms(const AgContext *ctx, AgPipeline *pipeline, int input, const AgDictionary *levels,
		   const AgVocabulary *vocabulary)
{
	AgTermRows *rows = ag_arena_alloc(&pipeline->arena, 1, sizeof *rows);
	size_t capacity = 0, n = 0;
	AgTerm *terms = NULL;
	uint64_t *first;

	if (rows == NULL)
		return ag_mem_error(ctx->mem, sizeof *rows, ctx->error);
	AG_TRY(ag_get(ctx, (size_t) levels->n_levels + 1, sizeof *first, &first));
	rows->n_rows = levels->n_levels;
	rows->first = first;
	pipeline->level_terms[input] = rows; /* owns them from here on */
	for (uint32_t level = 0; level < levels->n_levels; level++)
	{
		if (capacity - n < AG_TEXT_MAX_TERMS)
		{
			size_t wanted = capacity + capacity / 2 + 4 * AG_TEXT_MAX_TERMS;
			AgTerm *more = ag_mem_realloc(ctx->mem, terms, wanted, sizeof *terms);

			if (more == NULL)
				return ag_mem_error(ctx->mem, wanted * sizeof *terms, ctx->error);
			rows->terms = terms = more;
			capacity = wanted;
		}
		first[level] = n;
		n += ag_vocabulary_pool(vocabulary, terms + n,
								ag_vocabulary_terms(vocabulary, levels->texts[level],
													levels->n_bytes[level], terms + n));
		if (level % 1024 == 0)
			AG_TRY(ag_check_cancel(ctx));
	}
	first[levels->n_levels] = n;
	return AG_OK;
}

void
ag_pipeline_find_terms(AgPipeline *pipeline)
{
	for (int i = 0; i < pipeline->n_inputs; i++)
		pipeline->inputs[i].first_term = pipeline->n_features;
	for (int f = pipeline->n_features - 1; f >= pipeline->n_visible; f--)
		pipeline->inputs[pipeline->features[f].input].first_term = f;
}

AgStatus
ag_text_add_terms(const AgContext *ctx, AgPipeline *pipeline)
{
	pipeline->n_visible = pipeline->n_features;
	for (int i = 0; i < pipeline->n_inputs; i++)
	{
		uint32_t n = pipeline->level_terms[i] != NULL && pipeline->inputs[i].is_used
						 ? pipeline->inputs[i].text->vocabulary->n_pool
						 : 0;

		for (uint32_t part = 0; part < n; part++)
		{
			AgFeature *feature = &pipeline->features[pipeline->n_features];

			memset(feature, 0, sizeof *feature);
			feature->kind = AG_FEATURE_TEXT_TERM;
			feature->input = i;
			feature->part = (int) part;
			if (!ag_feature_name(pipeline, feature))
				return ag_mem_error(ctx->mem, AG_NAME_MAX, ctx->error);
			pipeline->n_features++;
		}
	}
	ag_pipeline_find_terms(pipeline);
	return AG_OK;
}

static double
seconds_left(const AgContext *ctx)
{
	return (double) (ctx->deadline_ns - ag_clock_ns()) * 1e-9;
}

/*
 * Is there time to place every level? Asked of a plan with a vocabulary, which then is measured on some of them; of one without, whether
 * there is time to learn it. Without a time limit there always is.
 */
static bool
has_time_for_words(const AgContext *ctx, const AgTextPlan *plan, const AgDictionary *levels)
{
	uint32_t n = levels->n_levels < TIMED_LEVELS ? levels->n_levels : TIMED_LEVELS;
	int64_t began = ag_clock_ns();
	AgTextFacts facts;
	double needed;

	if (ctx->deadline_ns == INT64_MAX)
		return true;
	if (plan->vocabulary == NULL)
		return seconds_left(ctx) >= LEARNING_SECONDS;
	for (uint32_t level = 0; level < n; level++)
		ag_text_facts(plan, levels->texts[level], levels->n_bytes[level], &facts, NULL);
	needed = (double) (ag_clock_ns() - began) * 1e-9 / (double) n * (double) levels->n_levels /
			 ag_pool_size(ctx->pool);
	return needed <= WORDS_SHARE * seconds_left(ctx);
}

static bool
is_wordless(const AgFeatureParams *params, const char *name)
{
	for (int i = 0; i < params->n_wordless; i++)
		if (strcmp(params->wordless[i], name) == 0)
			return true;
	return false;
}

static AgStatus
plan_fill(const AgContext *ctx, AgPipeline *pipeline, int input, const AgTable *table,
		  const AgTableColumn *column, const AgTextFinding *finding, const AgTextBudget *budget,
		  const AgFeatureParams *params, AgTextPlan *plan)
{
	uint64_t *units = ag_arena_alloc(&pipeline->arena, finding->n_units, sizeof *units);

	if (units == NULL)
		return ag_mem_error(ctx->mem, finding->n_units * sizeof *units, ctx->error);
	memcpy(units, finding->units, finding->n_units * sizeof *units);
	plan->date = finding->date;
	plan->has_stats = finding->is_text && params->text_special;
	plan->has_numbers = finding->n_numbers > 0;
	plan->n_units = finding->n_units;
	plan->units = units;
	if (!finding->is_text || !params->text_ngram || budget->n_dims == 0)
		return AG_OK;
	if (!is_wordless(params, pipeline->inputs[input].name) &&
		has_time_for_words(ctx, plan, &column->dictionary))
	{
		AG_TRY(learn_vocabulary(ctx, &pipeline->arena, table, column, budget, params,
								&plan->vocabulary));
		if (plan->vocabulary == NULL || has_time_for_words(ctx, plan, &column->dictionary))
			return AG_OK;
		plan->vocabulary = NULL;
	}
	pipeline->inputs[input].is_wordless = true;
	ag_log(ctx, AG_LOG_NORMAL, "Time is too short to learn from the words of \"%s\"",
		   pipeline->inputs[input].name);
	return AG_OK;
}

AgStatus
ag_text_learn(const AgContext *ctx, AgPipeline *pipeline, int input, const AgTable *table,
			  const AgTableColumn *column, const AgTextFinding *finding, const AgTextBudget *budget,
			  const AgFeatureParams *params)
{
	AgTextPlan *plan = ag_arena_alloc(&pipeline->arena, 1, sizeof *plan);
	Candidates *candidates = NULL;
	AgStatus status;

	if (plan == NULL)
		return ag_mem_error(ctx->mem, sizeof *plan, ctx->error);
	AG_GO(ag_get_zeroed(ctx, 1, sizeof *candidates, &candidates));
	AG_GO(plan_fill(ctx, pipeline, input, table, column, finding, budget, params, plan));
	candidates->ctx = ctx;
	candidates->plan = plan;
	candidates->levels = &column->dictionary;
	candidates_list(candidates, input, finding);
	for (int f = 0; f < candidates->n; f++)
		AG_GO(ag_get(ctx, column->dictionary.n_levels,
					 ag_text_is_wide(candidates->features[f].kind) ? sizeof(double) : sizeof(float),
					 &candidates->values[f]));
	ag_pool_run(ctx->pool, column->dictionary.n_levels, 256, read_levels, candidates);
	AG_GO(ag_check_cancel(ctx));
	pipeline->inputs[input].text = plan;
	AG_GO(candidates_keep(candidates, pipeline));
	if (plan->vocabulary != NULL && plan->vocabulary->n_pool > 0)
		AG_GO(read_terms(ctx, pipeline, input, &column->dictionary, plan->vocabulary));
done:
	for (int f = 0; candidates != NULL && f < candidates->n; f++)
		ag_mem_free(ctx->mem, candidates->values[f]);
	ag_mem_free(ctx->mem, candidates);
	return status;
}
