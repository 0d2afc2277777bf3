/* honest.c - scores that flatter nobody: noise stays noise, weights are judged on other rows, the trial of stacking. */
#include "unit/fit_again.h"

static const AgOptionEntry noisy[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "4"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "15"},
	{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "7"},
	{"/hyperparameters/CAT", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/CAT/iterations", AG_JSON_NUMBER, "10"},
	{"/hyperparameters/CAT/depth", AG_JSON_NUMBER, "3"},
	{"/hyperparameters/NN_TORCH", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/NN_TORCH/num_epochs", AG_JSON_NUMBER, "4"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "4"},
	{"/num_stack_levels", AG_JSON_NUMBER, "2"},
	{"/eval_metric", AG_JSON_STRING, "roc_auc"},
	{"/random_state", AG_JSON_NUMBER, "0"},
};
#define N_NOISY ((int) (sizeof noisy / sizeof noisy[0]))

/* One level of models that choose among many rounds. */
static const AgOptionEntry patient[] = {
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
#define N_PATIENT ((int) (sizeof patient / sizeof patient[0]))
#define NOISY_ROWS 160

/* Labels drawn anew each time, with a metric that chance gives a known value. */
typedef struct Noise
{
	int n_classes; /* 0: a number */
	const char *metric;
	double chance, spread; /* of one table, at most */
	const AgOptionEntry *entries;
	int n_entries, n_rows, n_seeds;
	AgStatus (*make)(const AgContext *ctx, const struct Setting *s, AgTable **table);
	const char *member; /* that has to be there: the noise is looked for up to it */
} Noise;

/*
 * On the mean over several tables, no member of any level and no ensemble is seen to know more than chance, though the rounds of
 * boosters and nets, the weights, and the best of all were chosen by the same rows.
 */
static void
noise_stays_noise(AgMem *mem, const Noise *noise)
{
	double sum[MAX_MEMBERS] = {0.0}, best = 0.0;
	double most = 3.0 * noise->spread / sqrt((double) noise->n_seeds);
	AgOptionEntry entries[N_NOISY + 8];
	char names[MAX_MEMBERS][64];
	int n = 0, count[MAX_MEMBERS] = {0};

	for (int i = 0; i < noise->n_entries; i++)
	{
		entries[i] = noise->entries[i];
		if (strcmp(entries[i].path, "/eval_metric") == 0)
			entries[i].text = noise->metric;
	}
	for (int seed = 0; seed < noise->n_seeds; seed++)
	{
		Setting s = {.mem = mem,
					 .n_rows = noise->n_rows,
					 .n_classes = noise->n_classes,
					 .label_seed = 100 + seed,
					 .entries = entries,
					 .n_entries = noise->n_entries,
					 .n_threads = 2,
					 .make = noise->make};
		Result r = {0};
		AgError err;

		if (!AG_CHECK(run(&s, &r, &err) == AG_OK))
			fprintf(stderr, "    %s\n", err.message);
		AG_REQUIRE(n == 0 || n == r.n_members);
		AG_CHECK(find_name(&r, noise->member) >= 0);
		n = r.n_members;
		for (int m = 0; m < n; m++)
		{
			count[m] += r.folds[m] == 0 && !isnan(r.scores[m]);
			sum[m] += isnan(r.scores[m]) ? 0.0 : r.scores[m];
			snprintf(names[m], sizeof names[m], "%s", r.names[m]);
		}
		best += r.score;
		result_free(&r);
	}
	for (int m = 0; m < n; m++)
		if (count[m] > 0 && !AG_CHECK(sum[m] / count[m] - noise->chance < most))
			fprintf(stderr, "    %s of %s: %.4f (at most %.4f)\n", noise->metric, names[m],
					sum[m] / count[m], noise->chance + most);
	AG_CHECK(best / noise->n_seeds - noise->chance < most);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* A number, a category of many levels and a text, none of which the label knows of. */
static AgStatus
words_make(const AgContext *ctx, const struct Setting *s, AgTable **table)
{
	static AgColumn columns[] = {
		{"x", "double precision", AG_TYPE_FLOAT64, AG_ROLE_FEATURE},
		{"level", "text", AG_TYPE_TEXT, AG_ROLE_FEATURE},
		{"words", "text", AG_TYPE_TEXT, AG_ROLE_FEATURE},
		{"y", "double precision", AG_TYPE_FLOAT64, AG_ROLE_LABEL},
	};
	AgSchema schema = {4, columns};
	size_t n = (size_t) s->n_rows;
	double *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
	uint32_t *level_at = calloc(n + 1, 4), *words_at = calloc(n + 1, 4);
	char *levels = calloc(n, 8), *words = calloc(n, 64);
	const void *values[] = {x, level_at, words_at, y};
	const uint8_t *nulls[] = {NULL, NULL, NULL, NULL};
	const char *texts[] = {NULL, levels, words, NULL};
	AgStatus status;

	for (size_t r = 0; r < n; r++)
	{
		char text[64] = "", level[16];

		x[r] = noise(1, (int) r);
		y[r] = (double) (int) (noise(s->label_seed, (int) r) *
							   (s->n_classes > 0 ? s->n_classes : 1000));
		snprintf(level, sizeof level, "l%d", (int) (noise(5, (int) r) * 25));
		for (int w = 0; w < 6; w++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%sword%c", w > 0 ? " " : "",
					 'a' + (int) (noise(10 + w, (int) r) * 12));
		memcpy(levels + level_at[r], level, strlen(level));
		memcpy(words + words_at[r], text, strlen(text));
		level_at[r + 1] = level_at[r] + (uint32_t) strlen(level);
		words_at[r + 1] = words_at[r] + (uint32_t) strlen(text);
	}
	AG_GO(ag_table_create(ctx, &schema, table));
	AG_GO(ag_table_append(ctx, *table, s->n_rows, values, nulls, texts));
done:
	free(x);
	free(y);
	free(level_at);
	free(words_at);
	free(levels);
	free(words);
	return status;
}

static const AgOptionEntry wordy[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM/num_leaves", AG_JSON_NUMBER, "5"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "10"},
	{"/hyperparameters/GBM/ag.prep_params", AG_JSON_ARRAY, "1"},
	{"/hyperparameters/GBM/ag.prep_params/0", AG_JSON_STRING, "OOFTargetEncodingFeatureGenerator"},
	{"/hyperparameters/CAT", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/CAT/iterations", AG_JSON_NUMBER, "8"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "4"},
	{"/num_bag_sets", AG_JSON_NUMBER, "2"},
	{"/num_stack_levels", AG_JSON_NUMBER, "1"},
	{"/eval_metric", AG_JSON_STRING, "roc_auc"},
};
#define N_WORDY ((int) (sizeof wordy / sizeof wordy[0]))

/* Models that say of each row what they would without it, and stackers that look at them. */
static const AgOptionEntry out_of_bag[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "4"},
	{"/hyperparameters/RF", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/RF/n_estimators", AG_JSON_NUMBER, "40"},
	{"/hyperparameters/XT", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/XT/n_estimators", AG_JSON_NUMBER, "40"},
	{"/hyperparameters/XT/bootstrap", AG_JSON_BOOL, "true"},
	{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "4"},
	{"/num_stack_levels", AG_JSON_NUMBER, "1"},
	{"/eval_metric", AG_JSON_STRING, "roc_auc"},
	{"/random_state", AG_JSON_NUMBER, "0"},
};
#define N_OUT_OF_BAG ((int) (sizeof out_of_bag / sizeof out_of_bag[0]))

static void
noise_is_seen_through(AgMem *mem)
{
	/* areas under the curve by chance alone: Hanley and McNeil 1982; ranks' correlation: Kendall and Stuart */
	double n = NOISY_ROWS, area = sqrt((n + 1.0) / (12.0 * n * n / 4.0)),
		   rank = 1.0 / sqrt(n - 1.0);
	const Noise cases[] = {
		{2, "roc_auc", 0.5, area, patient, N_PATIENT, NOISY_ROWS, 5, NULL, "WeightedEnsemble_L2"},
		{2, "roc_auc", 0.5, area, noisy, N_NOISY, NOISY_ROWS, 4, NULL, "WeightedEnsemble_L4"},
		{4, "roc_auc_ovr_macro", 0.5, area, noisy, N_NOISY, NOISY_ROWS, 2, NULL,
		 "WeightedEnsemble_L4"},
		{0, "spearmanr", 0.0, rank, noisy, N_NOISY, NOISY_ROWS, 2, NULL, "WeightedEnsemble_L4"},
		{2, "roc_auc", 0.5, area, wordy, N_WORDY, NOISY_ROWS, 3, words_make, "WeightedEnsemble_L3"},
		{2, "roc_auc", 0.5, area, out_of_bag, N_OUT_OF_BAG, NOISY_ROWS, 5, NULL,
		 "WeightedEnsemble_L3"},
		{0, "spearmanr", 0.0, rank, out_of_bag, N_OUT_OF_BAG, NOISY_ROWS, 4, NULL,
		 "WeightedEnsemble_L3"},
	};

	for (int i = 0; i < (int) (sizeof cases / sizeof cases[0]); i++)
		noise_stays_noise(mem, &cases[i]);
}

/* What stackers seem to know of noise, the trial sees through; what they know of something, it doesn't mind. */
static void
trial_decides(AgMem *mem)
{
	AgOptionEntry entries[N_PATIENT];
	int n_stacked = 0;

	memcpy(entries, patient, sizeof entries);
	entries[10] = (AgOptionEntry){"/dynamic_stacking", AG_JSON_BOOL, "true"};
	for (int seed = 0; seed < 3; seed++)
	{
		Setting s = {.mem = mem,
					 .n_rows = NOISY_ROWS,
					 .n_classes = 2,
					 .label_seed = 200 + seed,
					 .entries = entries,
					 .n_entries = N_PATIENT,
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

/* A level's models are fitted without one fold more for each level from there on: of two folds nothing is left. It is said. */
static void
few_folds(AgMem *mem)
{
	static const AgOptionEntry two[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
		{"/num_bag_folds", AG_JSON_NUMBER, "2"},
		{"/num_stack_levels", AG_JSON_NUMBER, "1"},
	};
	Setting s = {.mem = mem, .n_rows = 100, .entries = two, .n_entries = 4, .n_threads = 1};
	Result r = {0};
	AgError err;

	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK(strstr(r.log, "2 levels are too many for 2 folds: 1 instead") != NULL);
	AG_CHECK_EQ(r.n_warnings, 1); /* they were asked for: it isn't only told, but kept */
	AG_CHECK(strstr(r.warning, "too many for 2 folds") != NULL);
	AG_CHECK(find_name(&r, "LR_BAG_L1") >= 0 && find_name(&r, "LR_BAG_L2") < 0);
	result_free(&r);
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

/* Of a holdout's few rows a single model must be clearly better than the ensemble to be picked; of a bag's many, better. */
static void
ensemble_is_safer(AgMem *mem)
{
	AgLabel label = {.problem = AG_PROBLEM_REGRESSION};
	AgFitModel models[2];
	double weights[] = {0.5, 0.5}, value;
	AgFit fit;

	memset(&fit, 0, sizeof fit);
	memset(models, 0, sizeof models);
	fit.ctx.mem = mem;
	fit.label = &label;
	fit.metric = AG_METRIC_RMSE;
	fit.models = models;
	fit.n_models = 2;
	fit.n_ensembles = 1;
	snprintf(fit.ensembles[0].name, sizeof fit.ensembles[0].name, "E");
	for (int i = 0; i < 2; i++)
	{
		snprintf(models[i].name, sizeof models[i].name, "M%d", i);
		models[i].value = 1.0 + i;
	}
	fit.ensembles[0].n_models = 2;
	fit.ensembles[0].weights = weights;
	fit.ensembles[0].single_value = 1.0;
	fit.ensembles[0].value = 1.03;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "E");
	fit.ensembles[0].value = 1.07;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "M0");
	fit.validation.n_folds = 5;
	fit.ensembles[0].value = 1.03;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "M0");
	fit.ensembles[0].value = 0.99;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "E");
	/* scores that time made incomparable don't decide */
	fit.ensembles[0].value = 1.07;
	fit.ensembles[0].single_value = (double) NAN;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "E");
	AG_CHECK(value == 1.07);
	/* and of two ensembles only those of the one that has them */
	fit.n_ensembles = 2;
	fit.ensembles[1] = fit.ensembles[0];
	snprintf(fit.ensembles[1].name, sizeof fit.ensembles[1].name, "E2");
	fit.ensembles[0].single_value = 1.0;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "E2");
	fit.ensembles[0].value = 0.99;
	AG_CHECK_STR(ag_fit_best_model(&fit, &value), "E");
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	noise_is_seen_through(&mem);
	trial_decides(&mem);
	few_folds(&mem);
	trial_trusts(&mem);
	limit_is_kept(&mem);
	ensemble_is_safer(&mem);
	return ag_unit_done("honest");
}
