/*
 * prep_fit.c - fitting a model's own columns.
 *
 * A mean of labels is smoothed towards that of all training rows (Micci-Barreca 2001, "A preprocessing scheme for
 * high-cardinality categorical attributes"). The training rows are dealt to parts; a row's mean is of the other parts, so
 * that no row sees its own label.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/maths.h"
#include "engine/base/rng.h"
#include "engine/model/prep.h"

#define N_PARTS AG_PREP_PARTS
#define NO_PART N_PARTS    /* a row that isn't trained on */
#define SMOOTHING 10.0     /* rows' worth of the mean of all */
#define MOST_OUTPUTS 10    /* classes that have a mean each; of more none has */
#define MOST_CATEGORIES 50 /* that are encoded */
#define CROSSED 5          /* categories that are paired with each other */
#define CROSSED_LEVELS 10000
#define GROUPED 5 /* categories, and numbers within each */
#define READ_AT_ONCE 512
#define KEY_PARTS UINT64_C(0x70726570)
#define NO_GROUP UINT32_MAX /* a pair of levels that no training row has */

typedef struct Fit
{
	const AgContext *ctx;
	const AgDenseSource *source;
	const AgTrainData *data;
	uint8_t *part;          /* [n_rows] */
	double *column;         /* [n_rows] scratch */
	double *sums, *weights; /* [N_PARTS + 1][n_groups]: of each part, and of all */
	size_t n_room;          /* groups that there is room for */
	int n_outputs;          /* means of a category */
	/* what was made */
	AgPrepColumn *columns;
	double *values;
	uint64_t *keys;
	double *rows; /* [n_columns][n_rows] */
	size_t n_columns, n_values;
	size_t columns_room;
} Fit;

/* A row's groups: by the codes of one category or two. */
typedef struct Groups
{
	uint32_t *of; /* [n_rows]; n for missing, NO_GROUP for what training rows don't have */
	uint32_t n;
	const uint64_t *keys; /* [n] of pairs; NULL: codes */
	uint32_t a, b;
} Groups;

static AgStatus
read_column(const Fit *fit, uint32_t f, double *values)
{
	const AgDenseSource *source = fit->source;
	uint32_t rows[READ_AT_ONCE];

	for (int64_t at = 0; at < source->n_rows; at += READ_AT_ONCE)
	{
		int64_t n = source->n_rows - at < READ_AT_ONCE ? source->n_rows - at : READ_AT_ONCE;

		for (int64_t i = 0; i < n; i++)
			rows[i] = (uint32_t) (at + i);
		source->read(source->arg, f, rows, n, values + at);
	}
	return ag_check_cancel(fit->ctx);
}

static double
weight_of(const AgTrainData *data, uint32_t row)
{
	return data->weight != NULL ? data->weight[row] : 1.0;
}

static double
label_of(const AgTrainData *data, uint32_t row, int output)
{
	if (data->n_classes == 0)
		return data->target[row];
	return data->class_of[row] == (data->n_classes == 2 ? 1 : output);
}

static AgStatus
grow(const Fit *fit, void *block, size_t n, size_t size)
{
	void *old, *more;

	memcpy(&old, block, sizeof old);
	more = ag_mem_realloc(fit->ctx->mem, old, n, size);
	if (more == NULL)
		return ag_mem_error(fit->ctx->mem, n * size, fit->ctx->error);
	memcpy(block, &more, sizeof more);
	return AG_OK;
}

/* A column behind the others, with n values to be filled in; *rows is where its rows' values go. */
static AgStatus
add_column(Fit *fit, AgPrepKind kind, const Groups *groups, AgPrepColumn **column, double **rows)
{
	int64_t n_rows = fit->source->n_rows;
	size_t n = groups->n;

	if (fit->n_columns == fit->columns_room)
	{
		size_t room = fit->columns_room + fit->columns_room / 2 + 8;

		AG_TRY(grow(fit, &fit->columns, room, sizeof *fit->columns));
		AG_TRY(grow(fit, &fit->rows, room, (size_t) n_rows * sizeof *fit->rows));
		fit->columns_room = room;
	}
	AG_TRY(grow(fit, &fit->values, fit->n_values + n, sizeof *fit->values));
	AG_TRY(grow(fit, &fit->keys, fit->n_values + n, sizeof *fit->keys));
	*column = &fit->columns[fit->n_columns];
	*rows = fit->rows + (int64_t) fit->n_columns * n_rows;
	memset(*column, 0, sizeof **column);
	(*column)->kind = kind;
	(*column)->a = groups->a;
	(*column)->b = groups->b;
	(*column)->n = groups->n;
	(*column)->first = fit->n_values;
	for (size_t i = 0; i < n; i++)
		fit->keys[fit->n_values + i] = groups->keys != NULL ? groups->keys[i] : 0;
	fit->n_values += n;
	fit->n_columns++;
	return AG_OK;
}

static AgStatus
room_for_groups(Fit *fit, size_t n)
{
	if (n <= fit->n_room)
		return AG_OK;
	AG_TRY(grow(fit, &fit->sums, n, (N_PARTS + 1) * sizeof *fit->sums));
	AG_TRY(grow(fit, &fit->weights, n, (N_PARTS + 1) * sizeof *fit->weights));
	fit->n_room = n;
	return AG_OK;
}

/* The mean of all training rows. */
static double
mean_of_all(const Fit *fit, int output)
{
	const AgTrainData *data = fit->data;
	double sum = 0.0, weight = 0.0;

	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i];

		sum += weight_of(data, row) * label_of(data, row, output);
		weight += weight_of(data, row);
	}
	return weight > 0.0 ? sum / weight : 0.0;
}

/* The sums of groups, by parts; the group behind the last is that of missing values. */
static void
sum_groups(Fit *fit, const Groups *groups, int output)
{
	const AgTrainData *data = fit->data;
	size_t n = (size_t) groups->n + 1;

	memset(fit->sums, 0, (N_PARTS + 1) * n * sizeof *fit->sums);
	memset(fit->weights, 0, (N_PARTS + 1) * n * sizeof *fit->weights);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i], group = groups->of[row];
		double w = weight_of(data, row), wy = w * label_of(data, row, output);
		size_t at = fit->part[row] * n + group;

		if (group == NO_GROUP)
			continue;
		fit->sums[at] += wy;
		fit->weights[at] += w;
		fit->sums[N_PARTS * n + group] += wy;
		fit->weights[N_PARTS * n + group] += w;
	}
}

/* A group's smoothed mean, without the rows of a part (NO_PART: with all). */
static double
mean_of(const Fit *fit, size_t n, uint32_t group, int part, double prior)
{
	double sum = fit->sums[N_PARTS * n + group], weight = fit->weights[N_PARTS * n + group];

	if (part != NO_PART)
	{
		sum -= fit->sums[part * n + group];
		weight -= fit->weights[part * n + group];
	}
	return (sum + SMOOTHING * prior) / (fmax(weight, 0.0) + SMOOTHING);
}

static AgStatus
add_means(Fit *fit, AgPrepKind kind, const Groups *groups)
{
	size_t n = (size_t) groups->n + 1;

	AG_TRY(room_for_groups(fit, n));
	for (int k = 0; k < fit->n_outputs; k++)
	{
		double prior = mean_of_all(fit, k);
		AgPrepColumn *column;
		double *rows;

		AG_TRY(add_column(fit, kind, groups, &column, &rows));
		sum_groups(fit, groups, k);
		for (uint32_t g = 0; g < groups->n; g++)
			fit->values[column->first + g] = mean_of(fit, n, g, NO_PART, prior);
		column->missing = mean_of(fit, n, groups->n, NO_PART, prior);
		column->other = prior;
		for (int64_t r = 0; r < fit->source->n_rows; r++)
			rows[r] = groups->of[r] == NO_GROUP
						  ? prior
						  : mean_of(fit, n, groups->of[r], fit->part[r], prior);
	}
	return AG_OK;
}

/* How many training rows are in each group, as a logarithm. */
static AgStatus
add_counts(Fit *fit, AgPrepKind kind, const Groups *groups)
{
	const AgTrainData *data = fit->data;
	AgPrepColumn *column;
	double *rows;

	AG_TRY(room_for_groups(fit, (size_t) groups->n + 1));
	AG_TRY(add_column(fit, kind, groups, &column, &rows));
	memset(fit->sums, 0, ((size_t) groups->n + 1) * sizeof *fit->sums);
	for (int64_t i = 0; i < data->n_train; i++)
		if (groups->of[data->train_rows[i]] != NO_GROUP)
			fit->sums[groups->of[data->train_rows[i]]] += 1.0;
	for (uint32_t g = 0; g <= groups->n; g++)
		fit->sums[g] = ag_ln(1.0 + fit->sums[g]);
	memcpy(fit->values + column->first, fit->sums, groups->n * sizeof *fit->values);
	column->missing = fit->sums[groups->n];
	column->other = 0.0;
	for (int64_t r = 0; r < fit->source->n_rows; r++)
		rows[r] = groups->of[r] == NO_GROUP ? 0.0 : fit->sums[groups->of[r]];
	return AG_OK;
}

/* Means of a number within groups, and the distance to them. No label has a part in it. */
static AgStatus
add_group_by(Fit *fit, Groups *groups, uint32_t number)
{
	const AgTrainData *data = fit->data;
	size_t n = (size_t) groups->n + 1;
	double total = 0.0, n_total = 0.0;
	AgPrepColumn *column;
	double *rows;

	AG_TRY(room_for_groups(fit, n));
	AG_TRY(read_column(fit, number, fit->column));
	memset(fit->sums, 0, n * sizeof *fit->sums);
	memset(fit->weights, 0, n * sizeof *fit->weights);
	for (int64_t i = 0; i < data->n_train; i++)
	{
		uint32_t row = data->train_rows[i], group = groups->of[row];

		if (!isfinite(fit->column[row]) || group == NO_GROUP)
			continue;
		fit->sums[group] += fit->column[row];
		fit->weights[group] += 1.0;
		total += fit->column[row];
		n_total += 1.0;
	}
	if (n_total == 0.0 || !isfinite(total))
		return AG_OK;
	for (size_t g = 0; g < n; g++)
		fit->sums[g] = fit->weights[g] > 0.0 ? fit->sums[g] / fit->weights[g] : total / n_total;
	groups->b = number;
	for (int kind = 0; kind < 2; kind++)
	{
		AG_TRY(
			add_column(fit, kind == 0 ? AG_PREP_LEVEL : AG_PREP_CENTRED, groups, &column, &rows));
		memcpy(fit->values + column->first, fit->sums, groups->n * sizeof *fit->values);
		column->missing = fit->sums[groups->n];
		column->other = total / n_total;
		for (int64_t r = 0; r < fit->source->n_rows; r++)
		{
			double mean = groups->of[r] == NO_GROUP ? column->other : fit->sums[groups->of[r]];

			rows[r] = kind == 0 ? mean : fit->column[r] - mean;
		}
	}
	groups->b = groups->a;
	return AG_OK;
}

/* The groups of one category. */
static AgStatus
group_levels(Fit *fit, uint32_t feature, Groups *groups)
{
	uint32_t n = fit->source->n_levels[feature];

	AG_TRY(read_column(fit, feature, fit->column));
	groups->n = n;
	groups->keys = NULL;
	groups->a = groups->b = feature;
	for (int64_t r = 0; r < fit->source->n_rows; r++)
	{
		double x = fit->column[r];

		groups->of[r] = x != x ? n : x >= 0.0 && x < (double) n ? (uint32_t) x : NO_GROUP;
	}
	return AG_OK;
}

static int
compare_keys(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *) left, b = *(const uint64_t *) right;

	return (a > b) - (a < b);
}

#define KEY_MISSING UINT64_MAX
#define KEY_UNSEEN (UINT64_MAX - 1)

/* The groups of two categories: the pairs that training rows have. keys: scratch, [2 * n_rows]. */
static AgStatus
group_pairs(Fit *fit, uint32_t a, uint32_t b, uint64_t *keys, Groups *groups)
{
	const AgTrainData *data = fit->data;
	int64_t n_rows = fit->source->n_rows;
	uint64_t *of_row = keys + n_rows;
	int64_t n = 0, kept = 0;

	AG_TRY(read_column(fit, a, fit->column));
	for (int64_t r = 0; r < n_rows; r++)
		of_row[r] = fit->column[r] != fit->column[r] ? KEY_MISSING
					: fit->column[r] >= 0.0          ? (uint64_t) fit->column[r] << 32
													 : KEY_UNSEEN;
	AG_TRY(read_column(fit, b, fit->column));
	for (int64_t r = 0; r < n_rows; r++)
	{
		if (of_row[r] == KEY_MISSING || fit->column[r] != fit->column[r])
			of_row[r] = KEY_MISSING;
		else if (of_row[r] == KEY_UNSEEN || fit->column[r] < 0.0)
			of_row[r] = KEY_UNSEEN;
		else
			of_row[r] |= (uint64_t) fit->column[r];
	}
	for (int64_t i = 0; i < data->n_train; i++)
		if (of_row[data->train_rows[i]] < KEY_UNSEEN)
			keys[n++] = of_row[data->train_rows[i]];
	qsort(keys, (size_t) n, sizeof *keys, compare_keys);
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || keys[i] != keys[i - 1])
			keys[kept++] = keys[i];
	groups->n = (uint32_t) kept;
	groups->keys = keys;
	groups->a = a;
	groups->b = b;
	for (int64_t r = 0; r < n_rows; r++)
	{
		const uint64_t *found = of_row[r] < KEY_UNSEEN ? bsearch(&of_row[r], keys, (size_t) kept,
																 sizeof *keys, compare_keys)
													   : NULL;

		groups->of[r] = of_row[r] == KEY_MISSING ? groups->n
						: found == NULL          ? NO_GROUP
												 : (uint32_t) (found - keys);
	}
	return AG_OK;
}

static AgStatus
add_crosses(Fit *fit, const uint32_t *categories, int n, bool has_means, Groups *groups)
{
	uint64_t *keys = NULL;
	AgStatus status;

	AG_GO(ag_get(fit->ctx, (size_t) fit->source->n_rows, 2 * sizeof *keys, &keys));
	for (int i = 0; i < n && i < CROSSED; i++)
		for (int j = 0; j < i; j++)
		{
			if (fit->source->n_levels[categories[i]] > CROSSED_LEVELS ||
				fit->source->n_levels[categories[j]] > CROSSED_LEVELS)
				continue;
			AG_GO(group_pairs(fit, categories[j], categories[i], keys, groups));
			if (has_means)
				AG_GO(add_means(fit, AG_PREP_PAIR, groups));
			AG_GO(add_counts(fit, AG_PREP_PAIR, groups));
		}
	status = AG_OK;
done:
	ag_mem_free(fit->ctx->mem, keys);
	return status;
}

static AgStatus
add_all(Fit *fit, const AgPrepParams *params)
{
	const AgDenseSource *source = fit->source;
	uint32_t categories[MOST_CATEGORIES];
	Groups groups = {NULL, 0, NULL, 0, 0};
	int n = 0;
	AgStatus status = AG_OK;

	for (uint32_t f = 0; f < source->n_features && n < MOST_CATEGORIES; f++)
		if (source->n_levels[f] >= 2)
			categories[n++] = f;
	AG_GO(ag_get(fit->ctx, (size_t) source->n_rows, sizeof *groups.of, &groups.of));
	for (int i = 0; i < n; i++)
	{
		int n_numbers = 0;

		AG_GO(group_levels(fit, categories[i], &groups));
		if (params->target && fit->n_outputs > 0)
			AG_GO(add_means(fit, AG_PREP_LEVEL, &groups));
		for (uint32_t f = 0; params->group_by && i < GROUPED && f < source->n_features; f++)
			if (source->n_levels[f] == 0 && n_numbers++ < GROUPED)
				AG_GO(add_group_by(fit, &groups, f));
	}
	if (params->crosses)
		AG_GO(add_crosses(fit, categories, n, fit->n_outputs > 0, &groups));
done:
	ag_mem_free(fit->ctx->mem, groups.of);
	return status;
}

void
ag_prep_deal(const AgTrainData *data, int64_t n_rows, uint64_t seed, uint8_t *part)
{
	uint64_t key = ag_key(seed, KEY_PARTS);

	memset(part, NO_PART, (size_t) n_rows);
	for (int64_t i = 0; i < data->n_train; i++)
		part[data->train_rows[i]] = (uint8_t) ag_random_below(key, data->train_rows[i], N_PARTS);
}

/* The linear model of the terms as columns. */
static AgStatus
add_score(Fit *fit, const AgTextScore *score)
{
	Groups terms = {NULL, score->n_terms, NULL, fit->source->n_features, fit->source->n_features};

	for (int k = 0; k < score->n_outputs; k++)
	{
		const double *weights = score->weights + (size_t) k * (score->n_terms + 1);
		AgPrepColumn *column;
		double *rows;

		AG_TRY(add_column(fit, AG_PREP_SUM, &terms, &column, &rows));
		memcpy(fit->values + column->first, weights, score->n_terms * sizeof *weights);
		column->other = weights[score->n_terms];
		memcpy(rows, score->values + k * fit->source->n_rows,
			   (size_t) fit->source->n_rows * sizeof *rows);
	}
	return AG_OK;
}

/* The terms that tell most, as columns. */
static AgStatus
add_terms(Fit *fit, const AgPrepParams *params)
{
	const AgTermRows *terms = params->terms;
	int64_t n_rows = fit->source->n_rows;
	uint32_t *chosen = NULL, *place_of = NULL, n = 0;
	size_t first = fit->n_columns;
	AgStatus status;

	AG_GO(ag_get(fit->ctx, params->most_terms, sizeof *chosen, &chosen));
	AG_GO(ag_get(fit->ctx, params->n_hidden, sizeof *place_of, &place_of));
	AG_GO(ag_text_choose(fit->ctx, terms, params->n_hidden, fit->data, params->most_terms, chosen,
						 &n));
	memset(place_of, 0xff, params->n_hidden * sizeof *place_of);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t feature = fit->source->n_features + chosen[i];
		Groups none = {NULL, 0, NULL, feature, feature};
		AgPrepColumn *column;
		double *rows;

		AG_GO(add_column(fit, AG_PREP_COPY, &none, &column, &rows));
		memset(rows, 0, (size_t) n_rows * sizeof *rows);
		place_of[chosen[i]] = i;
	}
	for (int64_t row = 0; row < n_rows; row++)
		for (uint64_t at = terms->first[row]; at < terms->first[row + 1]; at++)
		{
			uint32_t place = place_of[terms->terms[at].term];

			if (place != UINT32_MAX)
				fit->rows[(int64_t) (first + place) * n_rows + row] =
					(double) terms->terms[at].weight;
		}
done:
	ag_mem_free(fit->ctx->mem, chosen);
	ag_mem_free(fit->ctx->mem, place_of);
	return status;
}

/* What was made, into an arena of its own. */
static AgStatus
take(const Fit *fit, const AgPrepParams *params, AgPrep **prep)
{
	const AgContext *ctx = fit->ctx;
	AgPrepColumn *columns;
	uint64_t *keys;
	double *values;
	AgArena arena;
	AgPrep *made;

	ag_arena_init(&arena, ctx->mem);
	made = ag_arena_alloc(&arena, 1, sizeof *made);
	columns = ag_arena_alloc(&arena, fit->n_columns, sizeof *columns);
	values = ag_arena_alloc(&arena, fit->n_values, sizeof *values);
	keys = ag_arena_alloc(&arena, fit->n_values, sizeof *keys);
	if (made == NULL || columns == NULL || values == NULL || keys == NULL)
	{
		ag_arena_free(&arena);
		return ag_mem_error(ctx->mem, fit->n_values * 16, ctx->error);
	}
	memcpy(columns, fit->columns, fit->n_columns * sizeof *columns);
	if (fit->n_values > 0)
	{
		memcpy(values, fit->values, fit->n_values * sizeof *values);
		memcpy(keys, fit->keys, fit->n_values * sizeof *keys);
	}
	made->n_in = params->n_in;
	made->first_hidden = fit->source->n_features;
	made->n_hidden = params->n_hidden;
	made->n_columns = (uint32_t) fit->n_columns;
	made->columns = columns;
	made->n_values = fit->n_values;
	made->values = values;
	made->keys = keys;
	made->arena = arena;
	*prep = made;
	return AG_OK;
}

AgStatus
ag_prep_fit(const AgContext *ctx, const AgDenseSource *source, const AgTrainData *data,
			const AgPrepParams *params, AgPrep **prep, double **values)
{
	Fit fit = {.ctx = ctx, .source = source, .data = data};
	AgStatus status;

	*prep = NULL;
	*values = NULL;
	fit.n_outputs = data->n_classes <= 2              ? 1
					: data->n_classes <= MOST_OUTPUTS ? data->n_classes
													  : 0;
	AG_GO(ag_get(ctx, (size_t) source->n_rows, 1, &fit.part));
	ag_prep_deal(data, source->n_rows, params->seed, fit.part);
	AG_GO(ag_get(ctx, (size_t) source->n_rows, sizeof *fit.column, &fit.column));
	if (params->target || params->crosses || params->group_by)
		AG_GO(add_all(&fit, params));
	if (params->score != NULL)
		AG_GO(add_score(&fit, params->score));
	if (params->terms != NULL && params->most_terms > 0)
		AG_GO(add_terms(&fit, params));
	if (fit.n_columns > 0 || params->n_hidden > 0)
		AG_GO(take(&fit, params, prep));
	*values = fit.rows;
	fit.rows = NULL;
done:
	ag_mem_free(ctx->mem, fit.part);
	ag_mem_free(ctx->mem, fit.column);
	ag_mem_free(ctx->mem, fit.sums);
	ag_mem_free(ctx->mem, fit.weights);
	ag_mem_free(ctx->mem, fit.columns);
	ag_mem_free(ctx->mem, fit.values);
	ag_mem_free(ctx->mem, fit.keys);
	ag_mem_free(ctx->mem, fit.rows);
	return status;
}
