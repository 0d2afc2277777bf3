/* honest.c - scores that flatter nobody: noise stays noise, weights are judged on other rows, the trial of stacking. */
#include "unit/fit_again.h"

static const AgOptionEntry noisy[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "4"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "7"},
	{"/hyperparameters/CAT", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/CAT/iterations", AG_JSON_NUMBER, "30"},
	{"/hyperparameters/CAT/depth", AG_JSON_NUMBER, "3"},
	{"/hyperparameters/NN_TORCH", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/NN_TORCH/num_epochs", AG_JSON_NUMBER, "12"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "5"},
	{"/num_stack_levels", AG_JSON_NUMBER, "0"},
	{"/eval_metric", AG_JSON_STRING, "roc_auc"},
	{"/random_state", AG_JSON_NUMBER, "0"},
};
#define N_NOISY ((int) (sizeof noisy / sizeof noisy[0]))
#define N_SEEDS 5
#define NOISY_ROWS 160

/*
 * Labels drawn anew each time. On the mean over several tables, no member and no ensemble is seen to know more than chance, though
 * the rounds of boosters and nets, the weights, and the best of all were chosen by the same rows.
 */
static void
noise_stays_noise(AgMem *mem)
{
	double sum[MAX_MEMBERS] = {0.0}, best = 0.0;
	/* of the mean of N_SEEDS areas under the curve by chance alone: see Hanley and McNeil 1982 */
	double spread = sqrt((NOISY_ROWS + 1.0) / (12.0 * NOISY_ROWS * NOISY_ROWS / 4.0) / N_SEEDS);
	AgOptionEntry entries[N_NOISY];
	char names[MAX_MEMBERS][64];
	int n = 0;

	memcpy(entries, noisy, sizeof entries);
	for (int seed = 0; seed < N_SEEDS; seed++)
	{
		Setting s = {.mem = mem,
					 .n_rows = NOISY_ROWS,
					 .n_classes = 2,
					 .label_seed = 100 + seed,
					 .entries = entries,
					 .n_entries = N_NOISY,
					 .n_threads = 2};
		Result r = {0};
		AgError err;

		AG_REQUIRE(run(&s, &r, &err) == AG_OK);
		AG_REQUIRE(n == 0 || n == r.n_members);
		n = r.n_members;
		for (int m = 0; m < n; m++)
		{
			sum[m] += r.scores[m];
			snprintf(names[m], sizeof names[m], "%s", r.names[m]);
		}
		best += r.score;
		result_free(&r);
	}
	for (int m = 0; m < n; m++)
		if (!isnan(sum[m]) && !AG_CHECK(sum[m] / N_SEEDS - 0.5 < 3.0 * spread))
			fprintf(stderr, "    %s: %.4f (spread %.4f)\n", names[m], sum[m] / N_SEEDS, spread);
	AG_CHECK(best / N_SEEDS - 0.5 < 3.0 * spread);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* What stackers seem to know of noise, the trial sees through; what they know of something, it doesn't mind. */
static void
trial_decides(AgMem *mem)
{
	AgOptionEntry entries[N_NOISY];
	int n_stacked = 0;

	memcpy(entries, noisy, sizeof entries);
	entries[10] = (AgOptionEntry){"/dynamic_stacking", AG_JSON_BOOL, "true"};
	for (int seed = 0; seed < 3; seed++)
	{
		Setting s = {.mem = mem,
					 .n_rows = NOISY_ROWS,
					 .n_classes = 2,
					 .label_seed = 200 + seed,
					 .entries = entries,
					 .n_entries = N_NOISY,
					 .n_threads = 2};
		Result r = {0};
		AgError err;

		AG_REQUIRE(run(&s, &r, &err) == AG_OK);
		AG_CHECK(strstr(r.log, "Trying whether stacking helps ...") != NULL);
		n_stacked += find_name(&r, "WeightedEnsemble_L3") >= 0;
		result_free(&r);
	}
	AG_CHECK(n_stacked <= 1);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
trial_trusts(AgMem *mem)
{
	static const AgOptionEntry rough[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "3"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "3"},
		{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "4"},
		{"/hyperparameters/GBM/learning_rate", AG_JSON_NUMBER, "0.5"},
		{"/num_bag_folds", AG_JSON_NUMBER, "4"},
		{"/dynamic_stacking", AG_JSON_BOOL, "true"},
		{"/ds_args", AG_JSON_OBJECT, "1"},
		{"/ds_args/holdout_frac", AG_JSON_NUMBER, "0.25"},
	};
	Setting s = {.mem = mem, .n_rows = 600, .entries = rough, .n_entries = 9, .n_threads = 2};
	Result r = {0};
	AgError err;
	int64_t n;

	mem->n_allocations = 0;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK(find_name(&r, "GBM_BAG_L2") >= 0); /* boosts three rounds more */
	AG_CHECK(strstr(r.log, "Stacking helps: it is used") != NULL);
	result_free(&r);
	n = mem->n_allocations;
	for (int64_t after = 0; after < n; after += 1 + n / 60)
	{
		AgStatus status;

		mem->fail_after = after;
		status = run(&s, &r, &err);
		mem->fail_after = -1;
		AG_CHECK(status == AG_ERR_MEMORY || status == AG_OK);
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

/* Models that are too slow are neither picked nor mixed in; when all are, the error says how slow the quickest is. */
static void
limit_is_kept(AgMem *mem)
{
	AgLabel label = {.problem = AG_PROBLEM_REGRESSION};
	AgFitOptions options = {.infer_limit = 0.010};
	AgFitModel models[4];
	AgFit fit;
	AgError err;
	double value;

	memset(&fit, 0, sizeof fit);
	memset(models, 0, sizeof models);
	ag_error_init(&err);
	ag_arena_init(&fit.arena, mem);
	fit.ctx.mem = mem;
	fit.ctx.error = &err;
	fit.options = &options;
	fit.label = &label;
	fit.metric = AG_METRIC_RMSE;
	fit.models = models;
	fit.n_models = 4;
	fit.validation.n_scored = 100;
	for (int i = 0; i < 4; i++)
	{
		static const double seconds[] = {2.0, 0.5, 0.3, 0.4}; /* for 100 rows */

		snprintf(models[i].name, sizeof models[i].name, "M%d", i);
		models[i].level = 1;
		models[i].n_children = 2;
		models[i].predict_seconds = seconds[i];
		models[i].value = 1.0 + i; /* the slowest is the best */
	}
	AG_CHECK_EQ(ag_fit_drop_slow(&fit), AG_OK);
	AG_CHECK(models[0].is_slow && !models[1].is_slow && !models[2].is_slow && models[3].is_slow);
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "M1");
	options.refit_full = AG_REFIT_ALL; /* one model instead of a bag of two */
	options.set_best_to_refit_full = true;
	AG_CHECK_EQ(ag_fit_drop_slow(&fit), AG_OK);
	AG_CHECK(models[0].is_slow && !models[3].is_slow);
	options.infer_limit = 0.001;
	AG_CHECK_EQ(ag_fit_drop_slow(&fit), AG_ERR_OPTION);
	AG_CHECK(strstr(err.hint, "The quickest takes 0.0015 s.") != NULL);
	ag_arena_free(&fit.arena);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	noise_stays_noise(&mem);
	trial_decides(&mem);
	trial_trusts(&mem);
	limit_is_kept(&mem);
	return ag_unit_done("honest");
}
