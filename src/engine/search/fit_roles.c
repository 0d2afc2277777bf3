/*
 * fit_roles.c - columns that are no features: how much each row counts, and which rows belong together.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/search/fit_state.h"

static const AgTableColumn *
column_of(const AgTable *table, AgRole role)
{
	for (int c = 0; c < table->n_columns; c++)
		if (table->columns[c].role == role)
			return &table->columns[c];
	return NULL;
}

/* --- weights */

static double
number_at(const AgTableColumn *column, int64_t row)
{
	switch (column->type)
	{
		case AG_TYPE_BOOL:
			return ((const uint8_t *) column->values)[row];
		case AG_TYPE_INT32:
			return ((const int32_t *) column->values)[row];
		case AG_TYPE_INT64:
			return (double) ((const int64_t *) column->values)[row];
		case AG_TYPE_FLOAT32:
			return (double) ((const float *) column->values)[row];
		case AG_TYPE_FLOAT64:
			return ((const double *) column->values)[row];
		case AG_TYPE_DATE:
		case AG_TYPE_TIMESTAMP:
		case AG_TYPE_TIME:
		case AG_TYPE_INTERVAL:
		case AG_TYPE_TEXT:
			break;
	}
	return (double) NAN;
}

/* As given, in units of the largest. */
static AgStatus
weights_read(AgFit *fit, const AgTableColumn *column)
{
	double largest = 0.0;

	for (int64_t r = 0; r < fit->n_rows; r++)
	{
		double weight = ag_column_is_null(column, r) ? (double) NAN : number_at(column, r);

		if (!isfinite(weight) || weight < 0.0)
		{
			ag_error_set(fit->ctx.error, AG_ERR_DATA, "sample weight \"%s\" is %s in some row",
						 column->name,
						 ag_column_is_null(column, r) ? "NULL"
						 : weight < 0.0               ? "negative"
													  : "not finite");
			ag_error_hint(fit->ctx.error,
						  "A weight is a finite number from 0 on. coalesce() fills in NULLs.");
			return AG_ERR_DATA;
		}
		fit->weight[r] = weight;
		largest = weight > largest ? weight : largest;
	}
	if (largest == 0.0)
		return ag_error_set(fit->ctx.error, AG_ERR_DATA, "sample weight \"%s\" is 0 in every row",
							column->name);
	for (int64_t r = 0; r < fit->n_rows; r++)
		fit->weight[r] /= largest;
	return AG_OK;
}

/* Every class counts as much as any other. */
static AgStatus
weights_balance(AgFit *fit)
{
	const AgLabel *label = fit->label;
	double largest = 0.0;

	if (label->class_of == NULL)
	{
		ag_error_set(fit->ctx.error, AG_ERR_OPTION,
					 "\"sample_weight\": \"balance_weight\" does not fit a %s problem",
					 ag_problem_name(label->problem));
		ag_error_hint(fit->ctx.error,
					  "It balances classes. A number's rows are weighted by a column.");
		return AG_ERR_OPTION;
	}
	for (int c = 0; c < label->n_classes; c++)
		if (label->classes[c].n_rows > 0)
			largest = fmax(largest, 1.0 / (double) label->classes[c].n_rows);
	for (int64_t r = 0; r < fit->n_rows; r++)
		fit->weight[r] = 1.0 / (double) label->classes[label->class_of[r]].n_rows / largest;
	return AG_OK;
}

/* A mean of 1: parameters such as the least hessian of a leaf keep their meaning. */
static void
weights_scale(AgFit *fit)
{
	double sum = 0.0;

	for (int64_t r = 0; r < fit->n_rows; r++)
		sum += fit->weight[r];
	for (int64_t r = 0; r < fit->n_rows; r++)
		fit->weight[r] *= (double) fit->n_rows / sum;
}

/* Families that pay no heed to weights, once each. */
static void
weights_tell(AgFit *fit)
{
	bool told[AG_FAMILY_LAST] = {false};

	ag_log(&fit->ctx, AG_LOG_NORMAL, "Rows are weighted in training, %s in scores",
		   fit->options->weight_evaluation ? "and" : "not");
	for (int i = 0; i < fit->options->n_models; i++)
	{
		AgFamilyId family = fit->options->models[i].family->id;

		if (!told[family] && !ag_family_uses_weights(family))
			ag_log(&fit->ctx, AG_LOG_NORMAL, "\"sample_weight\" means nothing to %s",
				   ag_family(family)->key);
		told[family] = true;
	}
}

/* --- groups */

typedef struct Keyed
{
	uint64_t key;
	uint32_t row;
	bool is_null;
} Keyed;

static int
keyed_compare(const void *left, const void *right)
{
	const Keyed *a = left, *b = right;

	if (a->is_null != b->is_null)
		return a->is_null ? 1 : -1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->row < b->row ? -1 : 1;
}

/* Equal values, equal keys. */
static uint64_t
key_at(const AgTableColumn *column, int64_t row)
{
	size_t width = column->type == AG_TYPE_TEXT ? sizeof(uint32_t) : ag_type_width(column->type);
	uint64_t key = 0;

	memcpy(&key, (const char *) column->values + (size_t) row * width, width);
	return key;
}

/* Groups are numbered in the order of their first rows, which is the same for any order on disk. NULLs are one group. */
static AgStatus
groups_read(AgFit *fit, const AgTableColumn *column)
{
	size_t n = (size_t) fit->n_rows;
	Keyed *keyed = NULL;
	uint32_t *number = NULL;
	AgStatus status;

	AG_GO(ag_get(&fit->ctx, n, sizeof *keyed, &keyed));
	AG_GO(ag_get(&fit->ctx, n, sizeof *number, &number));
	AG_GO(ag_get(&fit->ctx, n, sizeof *fit->group_of, &fit->group_of));
	for (size_t r = 0; r < n; r++)
	{
		bool is_null = ag_column_is_null(column, (int64_t) r);

		keyed[r] = (Keyed){is_null ? 0 : key_at(column, (int64_t) r), (uint32_t) r, is_null};
	}
	qsort(keyed, n, sizeof *keyed, keyed_compare);
	for (size_t i = 0, first = 0; i < n; i++)
	{
		if (keyed[i].key != keyed[first].key || keyed[i].is_null != keyed[first].is_null)
			first = i;
		fit->group_of[keyed[i].row] = keyed[first].row; /* for now: the group's first row */
	}
	for (size_t r = 0; r < n; r++)
		if (fit->group_of[r] == r)
			number[r] = fit->n_groups++;
	for (size_t r = 0; r < n; r++)
		fit->group_of[r] = number[fit->group_of[r]];
	if (fit->n_groups < 2)
		status = ag_error_set(fit->ctx.error, AG_ERR_DATA,
							  "column \"%s\" puts all rows into one group", column->name);
	else
		ag_log(&fit->ctx, AG_LOG_NORMAL,
			   "Rows of one \"%s\" stay together when models are validated: %u groups",
			   column->name, fit->n_groups);
done:
	ag_mem_free(fit->ctx.mem, keyed);
	ag_mem_free(fit->ctx.mem, number);
	return status;
}

/* --- time and tuning data */

static double
moment_at(const AgTableColumn *column, int64_t row)
{
	switch (column->type)
	{
		case AG_TYPE_DATE:
			return ((const int32_t *) column->values)[row];
		case AG_TYPE_TIMESTAMP:
		case AG_TYPE_TIME:
			return (double) ((const int64_t *) column->values)[row];
		case AG_TYPE_INTERVAL:
			return ((const double *) column->values)[row];
		default:
			return number_at(column, row);
	}
}

/* Rows without a time, or with NaN for one, count as the earliest: they are never validated on before others. */
static AgStatus
moments_read(AgFit *fit, const AgTableColumn *column)
{
	int64_t n_none = 0;

	AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof *fit->moment, &fit->moment));
	for (int64_t r = 0; r < fit->n_rows; r++)
	{
		double moment = ag_column_is_null(column, r) ? (double) NAN : moment_at(column, r);

		n_none += isnan(moment) != 0;
		fit->moment[r] = isnan(moment) ? -(double) INFINITY : moment;
	}
	if (n_none > 0)
		ag_log(&fit->ctx, AG_LOG_NORMAL, "%lld rows without a \"%s\" count as the earliest",
			   (long long) n_none, column->name);
	return AG_OK;
}

static AgStatus
tuning_read(AgFit *fit, const AgTableColumn *column)
{
	AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, 1, &fit->is_tuning));
	for (int64_t r = 0; r < fit->n_rows; r++)
		fit->is_tuning[r] = ((const uint8_t *) column->values)[r] != 0;
	return AG_OK;
}

AgStatus
ag_fit_read_roles(AgFit *fit)
{
	const AgTableColumn *weight = column_of(fit->table, AG_ROLE_WEIGHT);
	const AgTableColumn *group = column_of(fit->table, AG_ROLE_GROUP);
	const AgTableColumn *tuning = column_of(fit->table, AG_ROLE_TUNING);
	const AgTableColumn *moment = column_of(fit->table, AG_ROLE_TIME);
	bool balance = fit->options->sample_weight != NULL &&
				   strcmp(fit->options->sample_weight, AG_BALANCE_WEIGHT) == 0;

	if (moment == NULL)
		moment = column_of(fit->table, AG_ROLE_ORDER);
	if (weight != NULL || balance)
	{
		AG_TRY(ag_get(&fit->ctx, (size_t) fit->n_rows, sizeof *fit->weight, &fit->weight));
		if (balance)
			AG_TRY(weights_balance(fit));
		else
			AG_TRY(weights_read(fit, weight));
		weights_scale(fit);
		weights_tell(fit);
	}
	if (group != NULL)
		AG_TRY(groups_read(fit, group));
	if (moment != NULL)
		AG_TRY(moments_read(fit, moment));
	if (tuning != NULL)
		AG_TRY(tuning_read(fit, tuning));
	return AG_OK;
}
