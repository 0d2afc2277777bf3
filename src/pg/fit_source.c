/*
 * fit_source.c - what of the data takes part in a fit, and under which name the predictor is kept.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"

#include "pg/catalog.h"
#include "pg/convert.h"
#include "pg/errors.h"
#include "pg/fit.h"

#define MAX_LISTED 50 /* columns named in a warning */

void
ag_fit_warn_left_out(const AgFitCall *call)
{
	if (call->n_left_out == 0 || call->options->verbosity == 0)
		return;
	ereport(WARNING, (errmsg_plural("column left out, of a type no feature can be made of: %s",
									"columns left out, of types no feature can be made of: %s",
									call->n_left_out, call->left_out),
					  errhint("Cast to a number or text in a query what should count.")));
}

/* Marks the columns the user doesn't want. */
static bool *
ignored_columns(AgFitCall *call, int label)
{
	AgSource *source = call->source;
	bool *ignored = palloc0(Max(source->n_columns, 1) * sizeof(bool));

	for (int i = 0; i < call->options->n_ignored; i++)
	{
		const char *name = ag_text_from_utf8(call->options->ignored_columns[i]);
		int column = ag_source_find_column(source, name, "ignored column");

		if (column == label)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("option \"ignored_columns\" names the label \"%s\"", name)));
		ignored[column] = true;
	}
	return ignored;
}

static void
add_column(AgFitCall *call, int column, AgType type, AgRole role)
{
	AgSourceColumn *from = &call->source->columns[column];
	AgColumn *to = &call->schema.columns[call->schema.n_columns];

	from->wanted = true;
	to->name = ag_text_to_utf8(from->name);
	to->sql_type = ag_text_to_utf8(format_type_be(from->typid));
	to->type = type;
	to->role = role;
	if (role == AG_ROLE_LABEL)
		call->label_column = call->schema.n_columns;
	call->columns[call->schema.n_columns++] = column;
}

/* What the engine would refuse, too, but when all rows have been read. */
static void
check_label_type(const AgSourceColumn *column, AgProblem asked)
{
	AgType type;

	if (!ag_convert_natural_type(column->typid, &type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of type %s can't be a label", column->name,
						format_type_be(column->typid)),
				 errhint("A label is a number, a boolean, or a text or enum that names a class.")));
	if (type == AG_TYPE_DATE || type == AG_TYPE_TIMESTAMP || type == AG_TYPE_TIME ||
		type == AG_TYPE_INTERVAL)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("label column \"%s\" has type %s, which can't be predicted",
							   column->name, format_type_be(column->typid)),
						errhint("Predict a number made of it, for example with a query that "
								"selects extract(epoch FROM %s).",
								quote_identifier(column->name))));
	if (type == AG_TYPE_TEXT && (asked == AG_PROBLEM_REGRESSION || asked == AG_PROBLEM_QUANTILE))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("label column \"%s\" has type %s, which %s can't predict",
							   column->name, format_type_be(column->typid), ag_problem_name(asked)),
						errhint("Cast the column to a number in a query, or leave out "
								"\"problem_type\".")));
}

/* The column that an option names for a role of its own; -1: none. */
static int
role_column(AgFitCall *call, const char *option, const char *role, int label)
{
	const char *name;
	int column;
	AgType type;

	if (option == NULL)
		return -1;
	name = ag_text_from_utf8(option);
	column = ag_source_find_column(call->source, name, role);
	if (column == label)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s \"%s\" is the label", role, name)));
	if (!ag_convert_natural_type(call->source->columns[column].typid, &type))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("%s \"%s\" has type %s, which can't be read", role, name,
							   format_type_be(call->source->columns[column].typid))));
	return column;
}

static int
weight_column(AgFitCall *call, int label)
{
	const char *option = call->options->sample_weight;
	int column;
	AgType type;

	if (option != NULL && strcmp(option, AG_BALANCE_WEIGHT) == 0)
		return -1;
	column = role_column(call, option, "sample weight", label);
	if (column < 0)
		return -1;
	(void) ag_convert_natural_type(call->source->columns[column].typid, &type);
	if (type == AG_TYPE_TEXT || type == AG_TYPE_DATE || type == AG_TYPE_TIMESTAMP ||
		type == AG_TYPE_TIME || type == AG_TYPE_INTERVAL)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("sample weight \"%s\" is no number", call->source->columns[column].name)));
	return column;
}

/* What says when a row was. It stays a feature unless the user ignores it. */
static int
time_column(AgFitCall *call, int label)
{
	int column = role_column(call, call->options->time_column, "time column", label);
	AgType type;

	if (column < 0)
		return -1;
	(void) ag_convert_natural_type(call->source->columns[column].typid, &type);
	if (type == AG_TYPE_TEXT || type == AG_TYPE_BOOL)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("time column \"%s\" is no date, time or number",
							   call->source->columns[column].name)));
	return column;
}

/* The columns that a source must have, found in the tuning data by their names; all that are missing are named. */
static void
open_tuning(AgFitCall *call)
{
	AgSource *tuning = ag_source_open(ag_text_from_utf8(call->options->tuning_data));
	int n = call->schema.n_columns;
	AgColumn *flag = &call->schema.columns[n];
	StringInfoData missing;
	int n_missing = 0;

	call->tuning = tuning;
	call->tuning_columns = palloc((n + 1) * sizeof(int));
	initStringInfo(&missing);
	for (int c = 0; c < n; c++)
	{
		const char *name = call->source->columns[call->columns[c]].name;
		int i = 0;

		while (i < tuning->n_columns && strcmp(tuning->columns[i].name, name) != 0)
			i++;
		call->tuning_columns[c] = i;
		if (i < tuning->n_columns)
			tuning->columns[i].wanted = true;
		else if (n_missing++ < MAX_LISTED)
			appendStringInfo(&missing, "%s\"%s\"", n_missing > 1 ? ", " : "", name);
	}
	if (n_missing > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg_plural("the tuning data lack the column %s",
							   "the tuning data lack the columns %s", n_missing, missing.data),
				 errdetail("They must have the label and all the columns that are learnt from.")));
	ag_source_select(tuning);
	flag->name = "is tuning data";
	flag->sql_type = "boolean";
	flag->type = AG_TYPE_BOOL;
	flag->role = AG_ROLE_TUNING;
	call->columns[n] = AG_STREAM_FALSE;
	call->tuning_columns[n] = AG_STREAM_TRUE;
	call->schema.n_columns++;
}

void
ag_fit_choose_columns(AgFitCall *call)
{
	AgSource *source = call->source;
	int label = ag_source_find_column(source, call->label, "label");
	int weight = weight_column(call, label);
	int group = role_column(call, call->options->groups, "groups", label);
	int moment = time_column(call, label);
	int n_features = 0;
	bool *ignored = ignored_columns(call, label);
	StringInfoData left_out;
	int n_left_out = 0;

	if (weight >= 0 && weight == group)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("column \"%s\" can't be both sample weight and groups",
							   source->columns[weight].name)));
	if (weight >= 0 && weight == moment)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("column \"%s\" can't be both sample weight and time column",
							   source->columns[weight].name)));
	check_label_type(&source->columns[label], call->options->problem);
	call->label_name = source->columns[label].name;
	call->schema.columns = palloc0((source->n_columns + 1) * sizeof(AgColumn));
	call->columns = palloc0((source->n_columns + 1) * sizeof(int));
	initStringInfo(&left_out);
	for (int i = 0; i < source->n_columns; i++)
	{
		AgSourceColumn *column = &source->columns[i];
		AgType type;

		if (ignored[i] && i != weight && i != group && i != moment)
			continue;
		if (ag_convert_natural_type(column->typid, &type))
		{
			AgRole role = i == label    ? AG_ROLE_LABEL
						  : i == weight ? AG_ROLE_WEIGHT
						  : i == group  ? AG_ROLE_GROUP
						  : i != moment ? AG_ROLE_FEATURE
						  : ignored[i]  ? AG_ROLE_ORDER
										: AG_ROLE_TIME;

			n_features += ag_role_is_feature(role);
			add_column(call, i, type, role);
			continue;
		}
		if (n_left_out++ < MAX_LISTED)
			appendStringInfo(&left_out, "%s\"%s\" (%s)", n_left_out > 1 ? ", " : "", column->name,
							 format_type_be(column->typid));
	}
	if (n_left_out > MAX_LISTED)
		appendStringInfo(&left_out, ", and %d more", n_left_out - MAX_LISTED);
	call->left_out = left_out.data;
	call->n_left_out = n_left_out;
	if (n_features == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("no usable feature: there is no column beside the label \"%s\"",
						call->label_name),
				 n_left_out > 0 ? errdetail("Left out for their types: %s.", left_out.data) : 0));
	ag_source_select(source);
	if (call->options->tuning_data != NULL)
		open_tuning(call);
}

/* ---- the name ---- */

static char *
default_name(AgFitCall *call)
{
	char *joined;

	if (call->source->table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a fit on a query needs the option \"name\""),
				 errhint("For example: ag_fit('SELECT ...', 'y', '{\"name\": \"my_model\"}').")));
	joined = psprintf("%s_%s", call->source->table, call->label_name);
	return str_tolower(joined, strlen(joined), DEFAULT_COLLATION_OID);
}

void
ag_fit_choose_name(AgFitCall *call)
{
	bool given = call->options->name != NULL;
	char *name = given ? ag_text_from_utf8(call->options->name) : default_name(call);

	ag_model_name_check(name, given ? NULL : "name");
	ag_catalog_check_name(name);
	call->name = pstrdup(name);
}
