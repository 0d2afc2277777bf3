/* budget.c - how a set of models spends a short budget, and a long one: order, nets' part, folds, samples, a first look, spare time. */
#include "unit/fit_again.h"

#include "engine/model/knn.h"

#define N_CONFIGS 6

static AgModelConfig configs[N_CONFIGS];
static AgKnnParams knn;
static AgFitOptions options;
static AgLabel label = {.problem = AG_PROBLEM_REGRESSION};
static AgPipeline pipeline = {.n_features = 10, .n_visible = 10};

/* GBM, LR, NN_TORCH, XGB, FASTAI, KNN of a set, with so many seconds from now. */
static void
fit_make(AgFit *fit, AgMem *mem, AgError *err, double seconds)
{
	static const AgFamilyId families[N_CONFIGS] = {AG_FAMILY_GBM,      AG_FAMILY_LR,
												   AG_FAMILY_NN_TORCH, AG_FAMILY_XGB,
												   AG_FAMILY_FASTAI,   AG_FAMILY_KNN};

	memset(fit, 0, sizeof *fit);
	memset(configs, 0, sizeof configs);
	memset(&options, 0, sizeof options);
	ag_error_init(err);
	for (int i = 0; i < N_CONFIGS; i++)
	{
		configs[i].family = ag_family(families[i]);
		snprintf(configs[i].name, sizeof configs[i].name, "%s", configs[i].family->key);
	}
	configs[5].params = &knn;
	options.models = configs;
	options.n_models = N_CONFIGS;
	options.models_from_set = true;
	ag_arena_init(&fit->arena, mem);
	fit->ctx.mem = mem;
	fit->ctx.error = err;
	fit->options = &options;
	fit->label = &label;
	fit->pipeline = &pipeline;
	fit->n_rows = 1000;
	fit->level = 1;
	fit->promised_seconds = seconds;
	fit->ctx.deadline_ns = ag_clock_ns() + (int64_t) (seconds * 1e9);
}

static const char *
key_at(const AgFit *fit, int at)
{
	return ag_fit_config(fit, at)->family->key;
}

/* A linear model before all others, where it takes next to no time and there is little of it. */
static void
linear_first(AgMem *mem)
{
	AgFit fit;
	AgError err;

	fit_make(&fit, mem, &err, 60);
	AG_CHECK_STR(key_at(&fit, 0), "GBM"); /* before there is an order */
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "LR");
	AG_CHECK_STR(key_at(&fit, 1), "GBM");
	fit.level = 2;
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "GBM");
	fit.level = 1;
	fit.n_rows = 1000000;
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "GBM");
	ag_arena_free(&fit.arena);
	fit_make(&fit, mem, &err, 300);
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "GBM");
	options.models_from_set = false;
	fit.promised_seconds = 60;
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "GBM");
	ag_arena_free(&fit.arena);
}

/* Of bags nets have a quarter of the time while others wait; then those go first. */
static void
nets_wait(AgMem *mem)
{
	AgFit fit;
	AgError err;

	fit_make(&fit, mem, &err, 100);
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 2), "NN_TORCH");
	AG_CHECK(isinf(ag_fit_net_seconds(&fit, 2))); /* a single model is trained but once */
	fit.validation.n_folds = 8;
	AG_CHECK_NEAR(ag_fit_net_seconds(&fit, 2), 25.0, 0.1);
	AG_CHECK(isinf(ag_fit_net_seconds(&fit, 1)));
	ag_fit_order_next(&fit, 2);
	AG_CHECK_STR(key_at(&fit, 2), "NN_TORCH");
	ag_fit_order_took(&fit, ag_fit_config(&fit, 1), 70.0); /* none of theirs */
	ag_fit_order_took(&fit, ag_fit_config(&fit, 2), 10.0);
	AG_CHECK_NEAR(ag_fit_net_seconds(&fit, 2), 15.0, 0.1);
	ag_fit_order_next(&fit, 2);
	AG_CHECK_STR(key_at(&fit, 2), "NN_TORCH");
	ag_fit_order_took(&fit, ag_fit_config(&fit, 2), 11.0); /* 4 are left: too few for another */
	ag_fit_order_next(&fit, 2);
	AG_CHECK_STR(key_at(&fit, 2), "XGB");
	AG_CHECK_STR(key_at(&fit, 3), "NN_TORCH");
	AG_CHECK_STR(key_at(&fit, 4), "FASTAI");
	/* nobody else waits but KNN, which isn't fitted: what is left is theirs */
	AG_CHECK(isinf(ag_fit_net_seconds(&fit, 3)));
	ag_fit_order_next(&fit, 3);
	AG_CHECK_STR(key_at(&fit, 3), "NN_TORCH");
	ag_arena_free(&fit.arena);
	fit_make(&fit, mem, &err, 300); /* time is not short */
	fit.validation.n_folds = 8;
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	ag_fit_order_took(&fit, ag_fit_config(&fit, 2), 200.0);
	AG_CHECK(isinf(ag_fit_net_seconds(&fit, 2)));
	ag_arena_free(&fit.arena);
}

/* What a repeated fit deferred stays where it was. */
static void
order_repeats(AgMem *mem)
{
	AgReplayModel models[] = {
		{.name = "LR"}, {.name = "GBM"}, {.name = "FASTAI"}, {.name = "NN_TORCH"}};
	AgReplay replay = {.models = models, .n_models = 4};
	AgFit fit;
	AgError err;

	fit_make(&fit, mem, &err, 60);
	options.replay = &replay;
	AG_REQUIRE(ag_fit_order_begin(&fit) == AG_OK);
	AG_CHECK_STR(key_at(&fit, 0), "LR");
	AG_CHECK_STR(key_at(&fit, 1), "GBM");
	AG_CHECK_STR(key_at(&fit, 2), "FASTAI");
	AG_CHECK_STR(key_at(&fit, 3), "NN_TORCH");
	ag_arena_free(&fit.arena);
}

/* No KNN where time is short, unless it is asked for; problem types; samples for nets of many rows. */
static void
who_is_fitted(AgMem *mem)
{
	AgFit fit;
	AgError err;

	fit_make(&fit, mem, &err, 60);
	AG_CHECK(ag_fit_is_left_out(&fit, &configs[5]));
	AG_CHECK(!ag_fit_is_for_level(&fit, &configs[5]));
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[0]));
	AG_CHECK_EQ(ag_fit_tell_left_out(&fit), AG_OK);
	AG_REQUIRE(fit.failures != NULL);
	AG_CHECK_STR(fit.failures->name, "KNN");
	AG_CHECK_EQ(fit.failures->status, AG_ERR_TIME);
	fit.failures = fit.last_failure = NULL;
	for (int i = 0; i < 5; i++) /* where nothing else is left, it is fitted */
		configs[i].problems = 1u << AG_PROBLEM_BINARY;
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[5]));
	for (int i = 0; i < 5; i++)
		configs[i].problems = 0;
	configs[5].is_named = true;
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[5]));
	configs[5].is_named = false;
	fit.promised_seconds = 300;
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[5]));
	configs[0].problems = 1u << AG_PROBLEM_BINARY;
	AG_CHECK(!ag_fit_is_for_level(&fit, &configs[0]));
	AG_CHECK_EQ(ag_fit_tell_left_out(&fit), AG_OK);
	AG_REQUIRE(fit.failures != NULL);
	AG_CHECK_STR(fit.failures->name, "GBM");
	AG_CHECK_STR(fit.failures->message, "its \"problem_types\" are others");
	for (int i = 0; i < N_CONFIGS; i++)
		configs[i].problems = 1u << AG_PROBLEM_BINARY;
	AG_CHECK_EQ(ag_fit_tell_left_out(&fit), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "the options leave no model to fit for a regression problem");
	for (int i = 0; i < N_CONFIGS; i++)
		configs[i].problems = 1u << AG_PROBLEM_REGRESSION;
	configs[2].never_stacks = true;
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[2]));
	fit.level = 2;
	AG_CHECK(!ag_fit_is_for_level(&fit, &configs[2]));
	AG_CHECK(ag_fit_is_for_level(&fit, &configs[0]));
	fit.n_rows = 100000;
	AG_CHECK_EQ(ag_fit_sample_rows(&fit, &configs[2]), 0);
	fit.n_rows++;
	AG_CHECK_EQ(ag_fit_sample_rows(&fit, &configs[2]), 50000);
	AG_CHECK_EQ(ag_fit_sample_rows(&fit, &configs[0]), 0);
	fit.promised_seconds = 600;
	AG_CHECK_EQ(ag_fit_sample_rows(&fit, &configs[2]), 0);
	fit.promised_seconds = 600 - 1e-6; /* as a limit of 600 may come to */
	AG_CHECK_EQ(ag_fit_sample_rows(&fit, &configs[2]), 0);
	ag_arena_free(&fit.arena);
}

/* --- whole fits */

static AgStatus
fit_run(Result *r, const AgOptionEntry *entries, int n, int n_rows, double seconds, AgMem *mem)
{
	Setting s = {.mem = mem,
				 .n_rows = n_rows,
				 .entries = entries,
				 .n_entries = n,
				 .n_threads = 2,
				 .seconds = seconds};
	AgError err;

	return run(&s, r, &err);
}

static const AgOptionEntry toy[] = {
	{"/hyperparameters", AG_JSON_STRING, "toy"},
	{"/auto_stack", AG_JSON_BOOL, "true"},
	{"/num_stack_levels", AG_JSON_NUMBER, "0"},
	{"/included_model_types", AG_JSON_ARRAY, "3"},
	{"/included_model_types/0", AG_JSON_STRING, "GBM"},
	{"/included_model_types/1", AG_JSON_STRING, "LR"},
	{"/included_model_types/2", AG_JSON_STRING, "XGB"},
	{"/num_bag_sets", AG_JSON_NUMBER, "1"},
};
#define N_TOY ((int) (sizeof toy / sizeof toy[0]))

/* Time that is left deals the rows once more; not where the user says how often, nor where there is less. */
static void
spare_time(AgMem *mem)
{
	Result r = {0}, once = {0};
	int at;

	AG_REQUIRE(fit_run(&r, toy, N_TOY - 1, 150, 620, mem) == AG_OK);
	AG_CHECK(strstr(r.log, "Time is left for a second set of folds") != NULL);
	AG_CHECK(strstr(r.plan, "\"spare_set\": true") != NULL);
	at = find_name(&r, "WeightedEnsemble_L2");
	AG_REQUIRE(at >= 0);
	for (int i = 0; i < r.n_inputs[at]; i++) /* what it combines has two sets of children */
		AG_CHECK_EQ(r.n_inputs[r.inputs[at][i] - 1], 16);
	AG_CHECK(isfinite(error_of(mem, &r, r.n_members, 0)));
	AG_REQUIRE(fit_run(&once, toy, N_TOY, 150, 620, mem) == AG_OK);
	AG_CHECK(strstr(once.log, "second set") == NULL);
	AG_CHECK(find_name(&once, "GBM_BAG_L1/S2F1") < 0);
	result_free(&once);
	AG_REQUIRE(fit_run(&once, toy, N_TOY - 1, 150, 500, mem) == AG_OK);
	AG_CHECK(strstr(once.log, "second set") == NULL);
	AG_CHECK(error_of(mem, &r, r.n_members, 0) < 1.05 * error_of(mem, &once, once.n_members, 0));
	result_free(&once);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* An allocation that fails in it leaves a fit, or ends it without a leak. */
static void
spare_without_memory(AgMem *mem)
{
	Result r = {0};
	int64_t n;

	mem->n_allocations = 0;
	AG_REQUIRE(fit_run(&r, toy, N_TOY - 1, 60, 620, mem) == AG_OK);
	result_free(&r);
	n = mem->n_allocations;
	for (int64_t after = n / 2; after < n; after += 1 + n / 40)
	{
		AgStatus status;

		mem->fail_after = after;
		status = fit_run(&r, toy, N_TOY - 1, 60, 620, mem);
		mem->fail_after = -1;
		AG_CHECK(status == AG_ERR_MEMORY || status == AG_OK);
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

/* Before folds are chosen, a booster on rows held out tells how long a round takes. */
static void
first_look(AgMem *mem)
{
	static const AgOptionEntry some[] = {
		{"/hyperparameters", AG_JSON_STRING, "toy"},
		{"/auto_stack", AG_JSON_BOOL, "true"},
		{"/included_model_types", AG_JSON_STRING, "GBM"},
	};
	static const AgOptionEntry named[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "10"},
		{"/auto_stack", AG_JSON_BOOL, "true"},
	};
	Result r = {0};

	AG_REQUIRE(fit_run(&r, some, 3, 3000, 60, mem) == AG_OK);
	AG_CHECK(strstr(r.log, "A first look, at ") != NULL);
	AG_CHECK(strstr(r.log, "10 rounds of GBM") != NULL);
	result_free(&r);
	AG_REQUIRE(fit_run(&r, some, 3, 1000, 60, mem) == AG_OK); /* few rows: no need to look */
	AG_CHECK(strstr(r.log, "A first look") == NULL);
	result_free(&r);
	AG_REQUIRE(fit_run(&r, named, 4, 3000, 60, mem) == AG_OK);
	AG_CHECK(strstr(r.log, "A first look") == NULL);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* What it measures is what folds are planned by. */
static void
look_decides(AgMem *mem)
{
	AgFit fit;
	AgError err;

	fit_make(&fit, mem, &err, 60);
	fit.validation.n_folds = 8;
	AG_CHECK(ag_fit_booster_seconds(&fit) < 1.0);
	fit.booster_seconds = 40.0;
	AG_CHECK_NEAR(ag_fit_booster_seconds(&fit), 40.0, 0.0);
	ag_arena_free(&fit.arena);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	linear_first(&mem);
	nets_wait(&mem);
	order_repeats(&mem);
	who_is_fitted(&mem);
	look_decides(&mem);
	first_look(&mem);
	spare_time(&mem);
	spare_without_memory(&mem);
	return ag_unit_done("budget");
}
