/*
 * label.c - what is predicted.
 */
#include "engine/data/label.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/bins_private.h"
#include "engine/data/label_private.h"

#define RARE_ROWS 10
#define SIGN UINT64_C(0x8000000000000000)

const char *
ag_problem_name(AgProblem problem)
{
	switch (problem)
	{
		case AG_PROBLEM_AUTO:
			return "auto";
		case AG_PROBLEM_BINARY:
			return "binary";
		case AG_PROBLEM_MULTICLASS:
			return "multiclass";
		case AG_PROBLEM_REGRESSION:
			return "regression";
		case AG_PROBLEM_QUANTILE:
			return "quantile";
	}
	return "unknown";
}

bool
ag_label_is_real(AgType type)
{
	return type == AG_TYPE_FLOAT32 || type == AG_TYPE_FLOAT64;
}

static int64_t
whole_at(const AgTableColumn *column, int64_t row)
{
	switch (column->type)
	{
		case AG_TYPE_BOOL:
			return ((const uint8_t *) column->values)[row];
		case AG_TYPE_INT32:
			return ((const int32_t *) column->values)[row];
		case AG_TYPE_INT64:
			return ((const int64_t *) column->values)[row];
		default:
			return ((const uint32_t *) column->values)[row]; /* a text's code */
	}
}

static double
real_at(const AgTableColumn *column, int64_t row)
{
	if (column->type == AG_TYPE_FLOAT32)
		return ((const float *) column->values)[row];
	if (column->type == AG_TYPE_FLOAT64)
		return ((const double *) column->values)[row];
	return (double) whole_at(column, row);
}

uint64_t
ag_label_key(const AgTableColumn *column, int64_t row)
{
	if (ag_label_is_real(column->type))
		return ag_order_key(real_at(column, row));
	return (uint64_t) whole_at(column, row) ^ SIGN;
}

/*
 * The shortest decimal form that reads back as the same number. PostgreSQL prints the same digits, and an
 * exponent from 1e+15 on.
 */
void
ag_label_number_name(double number, bool is_single, char *text, size_t size)
{
	if (number == floor(number) && fabs(number) < 1e15)
	{
		snprintf(text, size, "%.0f", number);
		return;
	}
	for (int digits = 1; digits <= 17; digits++)
	{
		snprintf(text, size, "%.*g", digits, number);
		if (is_single ? strtof(text, NULL) == (float) number : strtod(text, NULL) == number)
			return;
	}
}

/* Refuses columns that no label can be. */
static AgStatus
check_column(const AgContext *ctx, const AgTable *table, const AgTableColumn *column,
			 AgProblem asked)
{
	AgError *err = ctx->error;

	if (table->n_rows == 0 && table->n_left_out > 0)
		return ag_error_set(err, AG_ERR_DATA,
							"label column \"%s\" has nothing but NULLs (%" PRId64 " rows)",
							column->name, table->n_left_out);
	if (table->n_rows == 0)
		return ag_error_set(err, AG_ERR_DATA, "the data has no rows");
	if (column->type == AG_TYPE_DATE || column->type == AG_TYPE_TIMESTAMP ||
		column->type == AG_TYPE_TIME || column->type == AG_TYPE_INTERVAL)
	{
		ag_error_set(err, AG_ERR_DATA, "label column \"%s\" has type %s, which can't be predicted",
					 column->name, column->sql_type);
		ag_error_hint(err,
					  "Predict a number made of it, for example with a query that selects "
					  "extract(epoch FROM \"%s\").",
					  column->name);
		return AG_ERR_DATA;
	}
	if (column->type == AG_TYPE_TEXT &&
		(asked == AG_PROBLEM_REGRESSION || asked == AG_PROBLEM_QUANTILE))
	{
		ag_error_set(err, AG_ERR_DATA, "label column \"%s\" has type %s, which %s can't predict",
					 column->name, column->sql_type, ag_problem_name(asked));
		ag_error_hint(err,
					  "Cast the column to a number in a query, or leave out \"problem_type\".");
		return AG_ERR_DATA;
	}
	if (ag_label_is_real(column->type))
	{
		int64_t n_nan = 0, n_infinite = 0;

		for (int64_t row = 0; row < table->n_rows; row++)
		{
			n_nan += isnan(real_at(column, row)) != 0;
			n_infinite += isinf(real_at(column, row)) != 0;
		}
		if (n_nan + n_infinite > 0)
		{
			ag_error_set(err, AG_ERR_DATA, "label column \"%s\" has %s values", column->name,
						 n_nan > 0 && n_infinite > 0 ? "NaN and infinite"
						 : n_nan > 0                 ? "NaN"
													 : "infinite");
			ag_error_detail(err, "%" PRId64 " of %" PRId64 " rows are concerned.%s",
							n_nan + n_infinite, table->n_rows,
							n_infinite > 0 && strncmp(column->sql_type, "numeric", 7) == 0
								? " Numbers beyond the range of double precision count as infinite."
								: "");
			ag_error_hint(
				err,
				"Leave those rows out with a query, or make the values NULL: rows whose label is "
				"NULL are left out.");
			return AG_ERR_DATA;
		}
	}
	return AG_OK;
}

/* The distinct values in ascending order, with their counts; at most AG_LABEL_MAX_CLASSES + 1 of them are kept. */
typedef struct Distinct
{
	uint64_t *keys;
	int64_t *counts;
	int64_t n; /* of all */
} Distinct;

static AgStatus
distinct_init(const AgContext *ctx, int64_t n_rows, Distinct *distinct)
{
	size_t most = n_rows < AG_LABEL_MAX_CLASSES + 1 ? (size_t) n_rows : AG_LABEL_MAX_CLASSES + 1;

	AG_TRY(ag_get(ctx, most, sizeof *distinct->keys + sizeof *distinct->counts, &distinct->keys));
	distinct->counts = (int64_t *) (distinct->keys + most);
	return AG_OK;
}

static AgStatus
find_distinct(const AgContext *ctx, const AgTable *table, const AgTableColumn *column,
			  Distinct *distinct)
{
	uint64_t *keys;
	const uint64_t *sorted;
	int64_t n_rows = table->n_rows;

	AG_TRY(ag_get(ctx, (size_t) n_rows, 2 * sizeof(uint64_t), &keys));
	for (int64_t row = 0; row < n_rows; row++)
		keys[row] = ag_label_key(column, row);
	sorted = ag_keys_sort(keys, keys + n_rows, n_rows);
	distinct->n = 0;
	for (int64_t row = 0; row < n_rows; row++)
	{
		if (row == 0 || sorted[row] != sorted[row - 1])
		{
			if (distinct->n <= AG_LABEL_MAX_CLASSES)
			{
				distinct->keys[distinct->n] = sorted[row];
				distinct->counts[distinct->n] = 0;
			}
			distinct->n++;
		}
		if (distinct->n <= AG_LABEL_MAX_CLASSES + 1)
			distinct->counts[distinct->n - 1]++;
	}
	ag_mem_free(ctx->mem, keys);
	return AG_OK;
}

static bool
all_integral(const AgTableColumn *column, const Distinct *distinct)
{
	if (!ag_label_is_real(column->type))
		return true;
	for (int64_t k = 0; k < distinct->n && k <= AG_LABEL_MAX_CLASSES; k++)
	{
		double value = ag_order_value(distinct->keys[k]);

		if (value != floor(value))
			return false;
	}
	return true;
}

/* The problem type that the values suggest, and why. */
static AgProblem
infer_problem(const AgTableColumn *column, const Distinct *distinct, char *reason, size_t size)
{
	if (distinct->n == 2)
	{
		snprintf(reason, size, "it has two distinct values");
		return AG_PROBLEM_BINARY;
	}
	if (column->type == AG_TYPE_TEXT)
	{
		snprintf(reason, size, "it is text with %" PRId64 " distinct values", distinct->n);
		return AG_PROBLEM_MULTICLASS;
	}
	if (distinct->n <= AG_LABEL_FEW_VALUES && all_integral(column, distinct))
	{
		snprintf(reason, size, "it has only %" PRId64 " distinct whole numbers", distinct->n);
		return AG_PROBLEM_MULTICLASS;
	}
	if (distinct->n > AG_LABEL_FEW_VALUES)
		snprintf(reason, size, "it is a number with more than %d distinct values",
				 AG_LABEL_FEW_VALUES);
	else
		snprintf(reason, size, "it is a number with fractions");
	return AG_PROBLEM_REGRESSION;
}

static AgStatus
check_count(const AgContext *ctx, const AgTableColumn *column, const Distinct *distinct,
			AgProblem problem)
{
	AgError *err = ctx->error;

	if (distinct->n == 1)
	{
		ag_error_set(err, AG_ERR_DATA, "label column \"%s\" has one distinct value only",
					 column->name);
		ag_error_detail(err, "There is nothing to learn from a constant.");
		return AG_ERR_DATA;
	}
	if (problem == AG_PROBLEM_BINARY && distinct->n > 2)
	{
		ag_error_set(err, AG_ERR_DATA,
					 "label column \"%s\" has %" PRId64 " distinct values, and problem type binary "
					 "takes two",
					 column->name, distinct->n);
		ag_error_hint(err, "Use \"problem_type\": \"multiclass\", or leave it out.");
		return AG_ERR_DATA;
	}
	if (problem == AG_PROBLEM_MULTICLASS && distinct->n > AG_LABEL_MAX_CLASSES)
	{
		ag_error_set(err, AG_ERR_DATA,
					 "label column \"%s\" has %" PRId64
					 " distinct values, and at most %d classes are "
					 "supported",
					 column->name, distinct->n, AG_LABEL_MAX_CLASSES);
		ag_error_hint(err, "Group the rare values in a query%s.",
					  column->type == AG_TYPE_TEXT ? ""
												   : ", or use \"problem_type\": \"regression\"");
		return AG_ERR_DATA;
	}
	return AG_OK;
}

/* Numbers for regression: huge values are scaled down while they are summed. */
static AgStatus
fill_target(const AgContext *ctx, AgLabel *label, const AgTableColumn *column)
{
	int64_t n = label->n_rows;
	double scale = 1.0, mean = 0.0, squares = 0.0;

	AG_TRY(ag_get(ctx, (size_t) n, sizeof(double), &label->target));
	label->min = (double) INFINITY;
	label->max = -(double) INFINITY;
	for (int64_t row = 0; row < n; row++)
	{
		double value = real_at(column, row);

		label->target[row] = value;
		label->min = value < label->min ? value : label->min;
		label->max = value > label->max ? value : label->max;
	}
	if (label->max > 1e100 || label->min < -1e100)
		scale = 0x1.0p-600;
	for (int64_t row = 0; row < n; row++)
		mean += label->target[row] * scale;
	mean /= (double) n;
	for (int64_t row = 0; row < n; row++)
	{
		double deviation = label->target[row] * scale - mean;

		squares += deviation * deviation;
	}
	label->mean = mean / scale;
	label->stddev = n > 1 ? sqrt(squares / (double) (n - 1)) / scale : 0.0;
	return AG_OK;
}

/* A name and a number for every class, in the order of the keys. */
static AgStatus
name_classes(const AgContext *ctx, AgLabel *label, const AgTableColumn *column,
			 const Distinct *distinct)
{
	char text[64];

	label->classes = ag_arena_alloc(&label->arena, (size_t) distinct->n, sizeof(AgClass));
	if (label->classes == NULL)
		return ag_mem_error(ctx->mem, (size_t) distinct->n * sizeof(AgClass), ctx->error);
	label->n_classes = (int) distinct->n;
	for (int k = 0; k < label->n_classes; k++)
	{
		AgClass *class = &label->classes[k];
		int64_t whole = (int64_t) (distinct->keys[k] ^ SIGN);
		const char *name = text;
		size_t n_bytes;

		class->number =
			ag_label_is_real(column->type) ? ag_order_value(distinct->keys[k]) : (double) whole;
		class->n_rows = distinct->counts[k];
		if (column->type == AG_TYPE_BOOL)
			name = whole != 0 ? "true" : "false";
		else if (column->type == AG_TYPE_TEXT)
		{
			name = column->dictionary.texts[whole];
			class->number = (double) NAN;
		}
		else if (ag_label_is_real(column->type))
			ag_label_number_name(class->number, column->type == AG_TYPE_FLOAT32, text, sizeof text);
		else
			snprintf(text, sizeof text, "%" PRId64, whole);
		n_bytes = column->type == AG_TYPE_TEXT ? column->dictionary.n_bytes[whole] : strlen(name);
		class->n_bytes = (uint32_t) n_bytes;
		class->name = ag_arena_strndup(&label->arena, name, n_bytes);
		if (class->name == NULL)
			return ag_mem_error(ctx->mem, n_bytes, ctx->error);
	}
	return AG_OK;
}

static int
compare_names(const void *a, const void *b)
{
	const AgClass *x = *(const AgClass *const *) a;
	const AgClass *y = *(const AgClass *const *) b;
	int order = memcmp(x->name, y->name, x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes);

	return order != 0 ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Text classes come by their codes; turns them into byte order. rank_of[code] gets each one's place. */
static AgStatus
sort_texts(const AgContext *ctx, AgLabel *label, int32_t *rank_of)
{
	size_t n = (size_t) label->n_classes;
	const AgClass **order;
	AgClass *sorted;

	AG_TRY(ag_get(ctx, n, sizeof(AgClass *), &order));
	sorted = ag_arena_alloc(&label->arena, n, sizeof(AgClass));
	if (sorted == NULL)
	{
		ag_mem_free(ctx->mem, order);
		return ag_mem_error(ctx->mem, n * sizeof(AgClass), ctx->error);
	}
	for (size_t k = 0; k < n; k++)
		order[k] = &label->classes[k];
	qsort(order, n, sizeof(AgClass *), compare_names);
	for (size_t k = 0; k < n; k++)
	{
		sorted[k] = *order[k];
		rank_of[order[k] - label->classes] = (int32_t) k;
	}
	label->classes = sorted;
	ag_mem_free(ctx->mem, order);
	return AG_OK;
}

/* Makes the class that was asked for the positive one, which is index 1. */
static AgStatus
choose_positive(const AgContext *ctx, AgLabel *label, const char *column, const char *positive,
				int32_t *rank_of)
{
	char *end;
	double number;
	int chosen = -1;

	if (positive == NULL)
		return AG_OK;
	if (label->problem != AG_PROBLEM_BINARY)
	{
		ag_error_set(ctx->error, AG_ERR_OPTION,
					 "option \"positive_class\" is for problem type binary, and this one is %s",
					 ag_problem_name(label->problem));
		return AG_ERR_OPTION;
	}
	number = strtod(positive, &end);
	for (int k = 0; k < 2; k++)
	{
		const AgClass *class = &label->classes[k];

		if (strlen(positive) == class->n_bytes &&
			memcmp(positive, class->name, class->n_bytes) == 0)
			chosen = k;
		else if (label->type != AG_TYPE_TEXT && label->type != AG_TYPE_BOOL && end != positive &&
				 *end == '\0' && number == class->number)
			chosen = k;
	}
	if (chosen < 0)
	{
		const AgClass *first = &label->classes[0], *second = &label->classes[1];

		ag_error_set(
			ctx->error, AG_ERR_OPTION,
			"option \"positive_class\" is \"%s\", which is no value of label column \"%s\"",
			positive, column);
		ag_error_hint(ctx->error, "Its values are \"%.*s\" and \"%.*s\".",
					  (int) ag_utf8_clip(first->name, first->n_bytes, 400), first->name,
					  (int) ag_utf8_clip(second->name, second->n_bytes, 400), second->name);
		return AG_ERR_OPTION;
	}
	if (chosen == 0)
	{
		AgClass swap = label->classes[0];

		label->classes[0] = label->classes[1];
		label->classes[1] = swap;
		rank_of[0] = 1 - rank_of[0];
		rank_of[1] = 1 - rank_of[1];
	}
	return AG_OK;
}

static AgStatus
fill_classes(const AgContext *ctx, AgLabel *label, const AgTableColumn *column,
			 const Distinct *distinct, const char *positive_class)
{
	AgStatus status;
	int32_t *rank_of = NULL; /* place of the k-th key among the classes */

	AG_GO(ag_get(ctx, (size_t) distinct->n, sizeof(int32_t), &rank_of));
	for (int64_t k = 0; k < distinct->n; k++)
		rank_of[k] = (int32_t) k;
	AG_GO(name_classes(ctx, label, column, distinct));
	if (column->type == AG_TYPE_TEXT)
		AG_GO(sort_texts(ctx, label, rank_of));
	AG_GO(choose_positive(ctx, label, column->name, positive_class, rank_of));
	AG_GO(ag_get(ctx, (size_t) label->n_rows, sizeof(int32_t), &label->class_of));
	for (int64_t row = 0; row < label->n_rows; row++)
	{
		uint64_t key = ag_label_key(column, row);
		int64_t low = 0, high = distinct->n - 1;

		while (low < high)
		{
			int64_t middle = (low + high) / 2;

			if (distinct->keys[middle] < key)
				low = middle + 1;
			else
				high = middle;
		}
		label->class_of[row] = rank_of[low];
	}

done:
	ag_mem_free(ctx->mem, rank_of);
	return status;
}

static void
tell(const AgContext *ctx, const AgLabel *label, const char *column, AgProblem asked)
{
	int n_rare = 0;

	if (asked == AG_PROBLEM_AUTO)
		ag_log_hint(ctx, AG_LOG_NORMAL,
					label->problem == AG_PROBLEM_REGRESSION
						? "If it is a class, give the option \"problem_type\": \"multiclass\"."
					: label->type == AG_TYPE_TEXT || label->type == AG_TYPE_BOOL
						? NULL
						: "If it is an amount, give the option \"problem_type\": \"regression\".",
					"problem type of label \"%s\" is %s, as %s", column,
					ag_problem_name(label->problem), label->reason);
	if (label->problem == AG_PROBLEM_BINARY)
		ag_log(ctx, AG_LOG_NORMAL, "positive class is \"%s\", negative class is \"%s\"",
			   label->classes[1].name, label->classes[0].name);
	for (int k = 0; k < label->n_classes; k++)
		n_rare += label->classes[k].n_rows < RARE_ROWS;
	if (n_rare > RARE_ROWS && n_rare == label->n_classes)
		ag_log_hint(ctx, AG_LOG_WARNING,
					"If it is a name or a key, choose another label; if it is an amount, make it a "
					"number; \"label_count_threshold\" leaves classes of few rows out.",
					"all of the %d classes of label \"%s\" have fewer than %d rows: little can be "
					"learnt of them",
					n_rare, column, RARE_ROWS);
	else if (n_rare > 0)
		ag_log(ctx, AG_LOG_NORMAL, "%d of %d classes %s fewer than %d rows; kept", n_rare,
			   label->n_classes, n_rare == 1 ? "has" : "have", RARE_ROWS);
}

AgStatus
ag_label_fit(const AgContext *ctx, const AgTable *table, int label_column, AgProblem asked,
			 const char *positive_class, AgLabel **label)
{
	AgStatus status;
	const AgTableColumn *column = &table->columns[label_column];
	Distinct distinct = {NULL, NULL, 0};
	AgLabel *l = NULL;

	*label = NULL;
	AG_TRY(check_column(ctx, table, column, asked));
	AG_GO(distinct_init(ctx, table->n_rows, &distinct));
	AG_GO(ag_get_zeroed(ctx, 1, sizeof(AgLabel), &l));
	ag_arena_init(&l->arena, ctx->mem);
	l->type = column->type;
	l->n_rows = table->n_rows;
	AG_GO(find_distinct(ctx, table, column, &distinct));
	if (asked == AG_PROBLEM_AUTO)
		l->problem = infer_problem(column, &distinct, l->reason, sizeof l->reason);
	else
	{
		l->problem = asked;
		snprintf(l->reason, sizeof l->reason, "option \"problem_type\" says so");
	}
	AG_GO(check_count(ctx, column, &distinct, l->problem));
	if (l->problem == AG_PROBLEM_BINARY || l->problem == AG_PROBLEM_MULTICLASS)
		AG_GO(fill_classes(ctx, l, column, &distinct, positive_class));
	else
	{
		AG_GO(choose_positive(ctx, l, column->name, positive_class, NULL));
		AG_GO(fill_target(ctx, l, column));
	}
	tell(ctx, l, column->name, asked);
	*label = l;
	l = NULL;

done:
	ag_mem_free(ctx->mem, distinct.keys);
	ag_label_free(l);
	return status;
}

void
ag_label_free(AgLabel *label)
{
	AgMem *mem;

	if (label == NULL)
		return;
	mem = label->arena.mem;
	ag_mem_free(mem, label->target);
	ag_mem_free(mem, label->class_of);
	ag_arena_free(&label->arena);
	ag_mem_free(mem, label);
}
