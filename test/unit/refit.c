/* refit.c - models fitted again on all rows: names, rounds, what is stored, what predicts, time. */
#include "unit/fit_cases.h"

#define N_BASE 6

static const AgOptionEntry base[N_BASE] = {
	{"/hyperparameters", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "60"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/refit_full", AG_JSON_BOOL, "true"},
	{"/num_bag_folds", AG_JSON_NUMBER, "3"},
};

static AgStatus
run_with(AgMem *mem, Result *r, int n_base, const AgOptionEntry *more, int n_more, double seconds)
{
	AgOptionEntry entries[N_BASE + 8];
	Setting s = {.mem = mem,
				 .n_rows = 600,
				 .entries = entries,
				 .n_entries = n_base + n_more,
				 .n_threads = 2,
				 .seconds = seconds};
	AgError err;
	AgStatus status;

	memcpy(entries, base, (size_t) n_base * sizeof *base);
	if (n_more > 0)
		memcpy(entries + n_base, more, (size_t) n_more * sizeof *more);
	status = run(&s, r, &err);
	if (status != AG_OK)
		fprintf(stderr, "    %s\n", err.message);
	return status;
}

static int
find_name(const Result *r, const char *name)
{
	for (int i = 0; i < r->n_members; i++)
		if (strcmp(r->names[i], name) == 0)
			return i;
	return -1;
}

static void
bags_again(AgMem *mem)
{
	static const AgOptionEntry best[] = {{"/set_best_to_refit_full", AG_JSON_BOOL, "true"}};
	Result r = {0};
	int full;

	AG_REQUIRE(run_with(mem, &r, N_BASE, best, 1, 0) == AG_OK);
	AG_CHECK_EQ(r.n_members, 2 * 4 + 2 + 2); /* bags with children, refits, two ensembles */
	full = find_name(&r, "GBM_BAG_L1_FULL");
	AG_REQUIRE(full >= 0 && find_name(&r, "LR_BAG_L1_FULL") >= 0);
	AG_CHECK_EQ(r.n_inputs[full], 0);
	AG_CHECK_EQ(r.folds[full], 0);
	AG_CHECK(isnan(r.scores[full]));
	AG_CHECK(r.can_infer[full]);
	AG_CHECK_STR(r.names[r.n_members - 1], "WeightedEnsemble_L2_FULL");
	AG_CHECK(isnan(r.scores[r.n_members - 1]));
	AG_CHECK(r.n_inputs[r.n_members - 1] == r.n_inputs[r.n_members - 2]);
	AG_CHECK(strstr(r.best, "_FULL") != NULL);
	AG_CHECK(isfinite(r.score)); /* the score of what it is the refit of */
	AG_CHECK(error_of(mem, &r, full + 1, 0) < 0.12);
	AG_CHECK(error_of(mem, &r, r.n_members, 0) < 0.12);
	/* as many rounds as the children kept on average */
	AG_CHECK(strstr(r.plan, "\"rounds_full\": ") != NULL);
	result_free(&r);
}

/* Without bags the rows held out are learnt from, too. */
static void
holdout_again(AgMem *mem)
{
	Result r = {0};
	int full;

	AG_REQUIRE(run_with(mem, &r, N_BASE - 1, NULL, 0, 0) == AG_OK);
	AG_CHECK_EQ(r.n_members, 2 + 2 + 2);
	AG_CHECK(strstr(r.best, "_FULL") == NULL); /* not asked for */
	full = find_name(&r, "GBM_FULL");
	AG_REQUIRE(full >= 0);
	AG_CHECK(r.images[1 + full].size != r.images[1 + find_name(&r, "GBM")].size ||
			 memcmp(r.images[1 + full].data, r.images[1 + find_name(&r, "GBM")].data,
					r.images[1 + full].size) != 0);
	AG_CHECK(error_of(mem, &r, full + 1, 0) < 0.12);
	result_free(&r);
}

static void
stored(AgMem *mem)
{
	static const AgOptionEntry only[] = {{"/set_best_to_refit_full", AG_JSON_BOOL, "true"},
										 {"/keep_only_best", AG_JSON_BOOL, "true"}};
	static const AgOptionEntry light[] = {
		{"/set_best_to_refit_full", AG_JSON_BOOL, "true"},
		{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
		{"/ag_args_ensemble/save_bag_folds", AG_JSON_BOOL, "false"}};
	Result r = {0};
	int best;

	AG_REQUIRE(run_with(mem, &r, N_BASE, only, 2, 0) == AG_OK);
	best = find_name(&r, r.best);
	AG_CHECK_EQ(best, r.n_members - 1);
	AG_CHECK(r.n_members <= 3);
	for (int i = 0; i < r.n_members; i++)
		AG_CHECK(strstr(r.names[i], "_FULL") != NULL);
	AG_CHECK(error_of(mem, &r, best + 1, 0) < 0.12);
	result_free(&r);

	AG_REQUIRE(run_with(mem, &r, N_BASE, light, 3, 0) == AG_OK);
	AG_CHECK_EQ(r.n_members, 2 + 2 + 2); /* no children */
	for (int i = 0; i < r.n_members; i++)
		AG_CHECK_EQ(r.can_infer[i], strstr(r.names[i], "_FULL") != NULL);
	AG_CHECK(isfinite(r.scores[find_name(&r, "GBM_BAG_L1")]));
	AG_CHECK(error_of(mem, &r, find_name(&r, r.best) + 1, 0) < 0.12);
	result_free(&r);

	/* the best model predicts, though nobody asked for the one that was fitted again */
	AG_REQUIRE(run_with(mem, &r, N_BASE, light + 1, 2, 0) == AG_OK);
	best = find_name(&r, r.best);
	AG_REQUIRE(best >= 0);
	AG_CHECK(r.can_infer[best]);
	AG_CHECK(error_of(mem, &r, best + 1, 0) < 0.12);
	result_free(&r);

	/* without a refit, only what the best combines */
	AG_REQUIRE(run_with(mem, &r, 4, only + 1, 1, 0) == AG_OK);
	AG_CHECK(r.n_members <= 3);
	AG_CHECK_STR(r.names[r.n_members - 1], r.best);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
refused(AgMem *mem)
{
	static const AgOptionEntry entries[][1] = {
		{{"/set_best_to_refit_full", AG_JSON_BOOL, "true"}},
		{{"/refit_full", AG_JSON_STRING, "some"}},
		{{"/keep_only_best", AG_JSON_NUMBER, "1"}},
	};
	static const char *const messages[] = {
		"option \"set_best_to_refit_full\" needs \"refit_full\"",
		"option \"refit_full\" takes true, false, \"all\" or \"best\", not \"some\"",
		"option \"keep_only_best\" takes true or false, not 1",
	};

	for (int i = 0; i < 3; i++)
	{
		AgFitOptions *options;
		AgError err;

		ag_error_init(&err);
		AG_CHECK_EQ(ag_options_parse(mem, entries[i], 1, &options, &err), AG_ERR_OPTION);
		AG_CHECK_STR(err.message, messages[i]);
	}
}

/* The promise holds; a refit that time doesn't allow leaves the model as it is. */
static void
little_time(AgMem *mem)
{
	static const AgOptionEntry more[] = {
		{"/set_best_to_refit_full", AG_JSON_BOOL, "true"},
		{"/hyperparameters/GBM/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/ag_args_fit", AG_JSON_OBJECT, "1"},
		{"/ag_args_fit/early_stop", AG_JSON_NULL, ""}};
	static const double limits[] = {1.0, 0.2, 0.05, 0.02};

	for (int i = 0; i < 4; i++)
	{
		Result r = {0};
		int64_t began = ag_clock_ns();
		AgStatus status;
		AgOptionEntry entries[] = {
			{"/hyperparameters", AG_JSON_OBJECT, "1"},
			{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
			more[1],
			{"/refit_full", AG_JSON_BOOL, "true"},
			{"/num_bag_folds", AG_JSON_NUMBER, "4"},
			more[0],
			more[2],
			more[3],
		};
		Setting s = {.mem = mem,
					 .n_rows = 3000,
					 .entries = entries,
					 .n_entries = 8,
					 .n_threads = 2,
					 .seconds = limits[i]};
		AgError err;

		status = run(&s, &r, &err);
		AG_CHECK(ag_fit_seconds(began) < limits[i] + 0.5);
		AG_CHECK(status == AG_OK || status == AG_ERR_TIME);
		if (status == AG_OK)
			AG_CHECK(isfinite(error_of(mem, &r, find_name(&r, r.best) + 1, 0)));
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Rounds without end into a few megabytes: the children are as long as there is room, and nothing shorter takes their place. */
static void
memory_is_full(AgMem *mem)
{
	static const AgOptionEntry endless[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "5"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "1000000"},
		{"/hyperparameters/GBM/learning_rate", AG_JSON_NUMBER, "0.00001"},
		{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "4"},
		{"/hyperparameters/GBM/min_data_in_leaf", AG_JSON_NUMBER, "2"},
		{"/hyperparameters/GBM/ag.early_stop", AG_JSON_NULL, ""},
		{"/num_bag_folds", AG_JSON_NUMBER, "2"},
		{"/refit_full", AG_JSON_BOOL, "true"},
		{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
		{"/ag_args_ensemble/fold_fitting_strategy", AG_JSON_STRING, "sequential_local"},
	};
	Setting s = {.mem = mem, .n_rows = 60, .entries = endless, .n_entries = 11, .n_threads = 1};
	Result r = {0};
	AgError err;

	mem->limit_bytes = INT64_C(16) << 20;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	mem->limit_bytes = INT64_MAX;
	AG_CHECK(strstr(r.log, "was not fitted again: the memory was full after") != NULL);
	AG_CHECK(find_name(&r, "GBM_BAG_L1") >= 0);
	AG_CHECK(find_name(&r, "GBM_BAG_L1_FULL") < 0);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* What a preset asks for is left where hardly any rows were held out; what the user asks for isn't. */
static void
presets_are_sparing(AgMem *mem)
{
	static const AgOptionEntry good[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "10"},
		{"/presets", AG_JSON_STRING, "good"},
		{"/auto_stack", AG_JSON_BOOL, "false"},
		{"/holdout_frac", AG_JSON_NUMBER, "0.015"},
		{"/refit_full", AG_JSON_BOOL, "true"},
	};
	AgOptionEntry more[7];
	int n = (int) (sizeof good / sizeof good[0]);
	Result r = {0};
	AgError err;
	Setting s = {.mem = mem, .n_rows = 600, .entries = good, .n_entries = n - 1, .n_threads = 1};

	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK_STR(r.best, "GBM");
	AG_CHECK(find_name(&r, "GBM_FULL") < 0);
	AG_CHECK(strstr(r.log, "None of the models is fitted again: only 9 of 600 rows") != NULL);
	result_free(&r);
	s.n_entries = n;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK_STR(r.best, "GBM_FULL");
	result_free(&r);
	memcpy(more, good, sizeof good);
	more[n - 2].text = "0.1";
	s.entries = more;
	s.n_entries = n - 1;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK_STR(r.best, "GBM_FULL");
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	bags_again(&mem);
	holdout_again(&mem);
	stored(&mem);
	refused(&mem);
	little_time(&mem);
	memory_is_full(&mem);
	presets_are_sparing(&mem);
	return ag_unit_done("refit");
}
