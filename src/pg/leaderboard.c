/*
 * leaderboard.c - ag_leaderboard: AutoGluon's columns in AutoGluon's order, then what ran where.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "pg/catalog.h"
#include "pg/evaluate.h"
#include "pg/srf.h"

/* One line. Times with inputs count a model's own and those of all that it combines; NaN: not known. */
typedef struct Line
{
	const AgMemberRow *member;
	double score_test;
	double fit_time, predict_time, test_time;             /* with inputs */
	double own_fit_time, own_predict_time, own_test_time; /* a bag's children are its own */
} Line;

static double
number_or(double value, double otherwise)
{
	return isnan(value) ? otherwise : value;
}

/* Sums a member's own times and its inputs', each once. */
static void
add_times(const Line *lines, int n, int ordinal, bool *seen, double *fit, double *predict)
{
	check_stack_depth(); /* as deep as the tables' rows make it */
	for (int i = 0; i < n; i++)
	{
		const AgMemberRow *member = lines[i].member;

		if (member->ordinal != ordinal || seen[i])
			continue;
		seen[i] = true;
		*fit += number_or(member->fit_time, 0);
		*predict += number_or(member->predict_time, 0);
		for (int j = 0; j < member->n_inputs; j++)
			add_times(lines, n, member->inputs[j], seen, fit, predict);
	}
}

/* A member's own times; a bag is no more than its children. */
static void
own_times(Line *line, const AgMemberRow *members, int n)
{
	const AgMemberRow *member = line->member;

	line->own_fit_time = number_or(member->fit_time, 0);
	line->own_predict_time = number_or(member->predict_time, 0);
	for (int j = 0; j < member->n_inputs; j++)
		for (int k = 0; k < n; k++)
			if (members[k].ordinal == member->inputs[j] && members[k].fold > 0)
			{
				line->own_fit_time += number_or(members[k].fit_time, 0);
				line->own_predict_time += number_or(members[k].predict_time, 0);
			}
}

/* Best first: score on the test data or else on validation, then the quicker, then the order of fitting. */
static int
compare(const void *left, const void *right)
{
	const Line *a = left, *b = right;
	double score_a = number_or(a->score_test, number_or(a->member->score_val, -INFINITY));
	double score_b = number_or(b->score_test, number_or(b->member->score_val, -INFINITY));
	double time_a = number_or(a->test_time, number_or(a->predict_time, INFINITY));
	double time_b = number_or(b->test_time, number_or(b->predict_time, INFINITY));

	if (score_a != score_b)
		return score_a > score_b ? -1 : 1;
	if (time_a != time_b)
		return time_a < time_b ? -1 : 1;
	return a->member->fit_order < b->member->fit_order ? -1 : 1;
}

static const Line *
line_of(const Line *lines, int n, int ordinal)
{
	for (int i = 0; i < n; i++)
		if (lines[i].member->ordinal == ordinal)
			return &lines[i];
	return NULL;
}

/*
 * Time on the test rows of all that a member needs beside itself: its inputs, and what those look at that no input has counted.
 * A bag's children are itself.
 */
static double
inputs_test_time(const Line *lines, int n, const AgMemberRow *member, bool *seen)
{
	double time = 0;

	check_stack_depth(); /* as deep as the tables' rows make it */
	for (int j = 0; j < member->n_inputs; j++)
	{
		const Line *input = line_of(lines, n, member->inputs[j]);

		if (input == NULL || seen[input - lines])
			continue;
		seen[input - lines] = true;
		time +=
			number_or(input->own_test_time, 0) + inputs_test_time(lines, n, input->member, seen);
	}
	return time;
}

/* What is the member's own: the run of one that combines or looks at others includes theirs. Inputs stand before it. */
static void
own_test_times(Line *lines, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (isnan(lines[i].test_time))
			continue;
		lines[i].own_test_time = lines[i].test_time - inputs_test_time(lines, n, lines[i].member,
																	   palloc0(sizeof(bool) * n));
		if (lines[i].own_test_time < 0)
			lines[i].own_test_time = 0;
	}
}

static void
score_on(const char *data, const char *name, const AgPredictorRow *row, Line *lines, int n)
{
	const AgOpenModel **models = palloc(sizeof(AgOpenModel *) * n);
	int *numbers = palloc(sizeof(int) * n);
	AgMetric metric = ag_metric_by_name(row->eval_metric);
	AgEvaluation *evaluation;
	int n_models = 0;

	for (int i = 0; i < n; i++)
	{
		if (!lines[i].member->can_infer || lines[i].member->fold > 0)
			continue;
		numbers[n_models] = i;
		models[n_models++] = ag_cache_get(&row->id, lines[i].member->name, CurrentMemoryContext);
	}
	if (n_models == 0)
		return;
	evaluation = ag_evaluate_run(data, name, row->label, ag_evaluate_weight(row), models, n_models);
	for (int i = 0; i < n_models; i++)
	{
		Line *line = &lines[numbers[i]];

		line->score_test = ag_metric_score(metric, ag_evaluate_metric(evaluation, i, metric));
		line->test_time = evaluation->seconds[i];
	}
	own_test_times(lines, n);
}

/* Is it a bag of one model of all rows, scored on each by what it says without that row? */
static bool
has_child_oof(const AgMemberRow *member)
{
	static const char key[] = "ag.ens.use_child_oof";
	JsonbContainer *root = &member->hyperparameters->root;
	JsonbValue value;

	return JsonContainerIsObject(root) &&
		   getKeyJsonValueFromContainer(root, key, sizeof key - 1, &value) != NULL &&
		   value.type == jbvBool && value.val.boolean;
}

static void
put_line(AgSrf *srf, const Line *line, const char *eval_metric)
{
	const AgMemberRow *member = line->member;
	Datum values[17];
	bool nulls[17] = {false};

	ag_srf_text(values, nulls, 0, member->name);
	ag_srf_number(values, nulls, 1, line->score_test);
	ag_srf_number(values, nulls, 2, member->score_val);
	ag_srf_text(values, nulls, 3, eval_metric);
	ag_srf_number(values, nulls, 4, line->test_time);
	ag_srf_number(values, nulls, 5, line->predict_time);
	ag_srf_number(values, nulls, 6, line->fit_time);
	ag_srf_number(values, nulls, 7, line->own_test_time);
	ag_srf_number(values, nulls, 8, line->own_predict_time);
	ag_srf_number(values, nulls, 9, line->own_fit_time);
	values[10] = Int32GetDatum(member->stack_level);
	values[11] = BoolGetDatum(member->can_infer);
	values[12] = Int32GetDatum(member->fit_order);
	ag_srf_text(values, nulls, 13, member->device);
	ag_srf_number(values, nulls, 14, member->num_gpus);
	values[15] = Int32GetDatum(member->num_cpus);
	values[16] = BoolGetDatum(has_child_oof(member));
	ag_srf_row(srf, values, nulls);
}

PG_FUNCTION_INFO_V1(ag_sql_leaderboard);

Datum
ag_sql_leaderboard(PG_FUNCTION_ARGS)
{
	AgPredictorRow *row;
	AgMemberRow *members;
	Line *lines;
	pg_uuid_t id;
	char *name;
	int n;
	AgSrf srf;

	ag_srf_begin(&srf, fcinfo);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ag_catalog_find(name, &id, NULL, &row);
	members = ag_catalog_members(&id, &n);
	lines = palloc0(sizeof(Line) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		lines[i].member = &members[i];
		lines[i].score_test = lines[i].test_time = lines[i].own_test_time = NAN;
	}
	for (int i = 0; i < n; i++)
	{
		add_times(lines, n, members[i].ordinal, palloc0(sizeof(bool) * n), &lines[i].fit_time,
				  &lines[i].predict_time);
		own_times(&lines[i], members, n);
	}
	if (!PG_ARGISNULL(1))
		score_on(text_to_cstring(PG_GETARG_TEXT_PP(1)), name, row, lines, n);
	qsort(lines, n, sizeof(Line), compare);
	for (int i = 0; i < n; i++)
		if (lines[i].member->fold == 0)
			put_line(&srf, &lines[i], row->eval_metric);
	return (Datum) 0;
}
