/* fit.c - the story of a fit inside one process: holdout, shares of time, failing models, results that predict. */
#include <limits.h>

#include "unit/fit_cases.h"

/* What is stored predicts what was learnt: every member, of every problem type. */
static void
results_predict(AgMem *mem)
{
	static const int classes[] = {0, 2, 4};

	for (int i = 0; i < 3; i++)
	{
		Setting s = {.mem = mem,
					 .n_rows = 2000,
					 .n_classes = classes[i],
					 .entries = quick,
					 .n_entries = N_QUICK,
					 .n_threads = 2};
		Result r = {0};
		AgError err;

		if (!AG_CHECK_EQ(run(&s, &r, &err), AG_OK))
		{
			fprintf(stderr, "    %s\n", err.message);
			continue;
		}
		AG_CHECK_EQ(r.problem, i == 0   ? AG_PROBLEM_REGRESSION
							   : i == 1 ? AG_PROBLEM_BINARY
										: AG_PROBLEM_MULTICLASS);
		AG_CHECK_EQ(r.n_members, 3);
		AG_CHECK_EQ(r.n_images, 4);
		AG_CHECK_STR(r.names[2], "WeightedEnsemble_L2");
		AG_CHECK(strstr(r.features, "x: number, number\n") != NULL);
		AG_CHECK(strstr(r.features, "same: number, dropped, ") != NULL);
		AG_CHECK(strstr(r.plan, "\"random_state\": 0") != NULL);
		AG_CHECK(strstr(r.params[1], "\"max_bin\": 31") != NULL);
		AG_CHECK(r.scores[2] > fmin(r.scores[0], r.scores[1]) - 0.01);
		AG_CHECK_EQ(r.n_warnings, 0);
		for (int member = 1; member <= 3; member++)
			AG_CHECK(error_of(mem, &r, member, classes[i]) < 0.12);
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Nets by the tables of the families: what is stored predicts what was learnt, and the plan shows lists. */
static void
nets_predict(AgMem *mem)
{
	static const AgOptionEntry entries[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "3"},
		{"/hyperparameters/NN_TORCH", AG_JSON_OBJECT, "2"},
		{"/hyperparameters/NN_TORCH/learning_rate", AG_JSON_NUMBER, "0.003"},
		{"/hyperparameters/NN_TORCH/num_epochs", AG_JSON_NUMBER, "40"},
		{"/hyperparameters/FASTAI", AG_JSON_OBJECT, "2"},
		{"/hyperparameters/FASTAI/layers", AG_JSON_ARRAY, "2"},
		{"/hyperparameters/FASTAI/layers/0", AG_JSON_NUMBER, "60"},
		{"/hyperparameters/FASTAI/layers/1", AG_JSON_NUMBER, "30"},
		{"/hyperparameters/FASTAI/epochs", AG_JSON_NUMBER, "20"},
		{"/hyperparameters/REALMLP", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/REALMLP/n_epochs", AG_JSON_NUMBER, "20"},
	};

	for (int i = 0; i < 2; i++)
	{
		Setting s = {.mem = mem,
					 .n_rows = 1200,
					 .n_classes = i * 3,
					 .entries = entries,
					 .n_entries = (int) (sizeof entries / sizeof entries[0]),
					 .n_threads = 2};
		Result r = {0};
		AgError err;

		if (!AG_CHECK_EQ(run(&s, &r, &err), AG_OK))
		{
			fprintf(stderr, "    %s\n", err.message);
			continue;
		}
		AG_CHECK_EQ(r.n_members, 4);
		AG_CHECK_STR(r.families[0], "NN_TORCH");
		AG_CHECK(strstr(r.params[1], "\"layers\": [60, 30]") != NULL);
		AG_CHECK_EQ(r.n_warnings, 0);
		for (int member = 1; member <= 4; member++)
			AG_CHECK(error_of(mem, &r, member, s.n_classes) < (i == 0 ? 0.25 : 0.15));
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
rules(void)
{
	AgFitOptions options = {.holdout_frac = (double) NAN};

	AG_CHECK_NEAR(ag_holdout_rule(100), 0.2, 1e-12);
	AG_CHECK_NEAR(ag_holdout_rule(4000), 0.125, 1e-12);
	AG_CHECK_NEAR(ag_holdout_rule(4999), 500.0 / 4999, 1e-12);
	AG_CHECK_NEAR(ag_holdout_rule(5000), 0.1, 1e-12);
	AG_CHECK_NEAR(ag_holdout_rule(100000), 0.025, 1e-12);
	AG_CHECK_NEAR(ag_holdout_rule(10000000), 0.01, 1e-12);
	/* a search has twice as many, 0.2 at most, unless it is said how many */
	AG_CHECK_NEAR(ag_holdout_asked(&options, 100000), 0.025, 1e-12);
	options.search.is_asked = true;
	AG_CHECK_NEAR(ag_holdout_asked(&options, 100000), 0.05, 1e-12);
	AG_CHECK_NEAR(ag_holdout_asked(&options, 4000), 0.2, 1e-12);
	AG_CHECK_NEAR(ag_holdout_asked(&options, 100), 0.2, 1e-12);
	options.holdout_frac = 0.3;
	AG_CHECK_NEAR(ag_holdout_asked(&options, 100000), 0.3, 1e-12);
}

/* The split itself: sizes, disjoint and complete, classes kept in training, the seed counts. */
static void
splits(AgMem *mem)
{
	for (int seed = 0; seed < 40; seed++)
	{
		AgClass classes[3] = {{"a", 1, 0, 0}, {"b", 1, 1, 0}, {"c", 1, 2, 0}};
		AgLabel label;
		AgFitOptions options;
		AgFit fit;
		AgError err;
		int32_t class_of[200];
		int n = 10 + seed * 4, seen[3] = {0, 0, 0}, at_train = 0, at_valid = 0;

		memset(&label, 0, sizeof label);
		memset(&options, 0, sizeof options);
		memset(&fit, 0, sizeof fit);
		ag_error_init(&err);
		/* one row of class c, two or so of b */
		for (int r = 0; r < n; r++)
		{
			class_of[r] = r == 3 ? 2 : r % 8 == 0 ? 1 : 0;
			classes[class_of[r]].n_rows++;
		}
		label.problem = AG_PROBLEM_MULTICLASS;
		label.n_classes = 3;
		label.classes = classes;
		label.class_of = class_of;
		label.n_rows = n;
		options.holdout_frac = (double) NAN;
		options.num_bag_folds = -1;
		options.random_state = (uint64_t) seed;
		fit.ctx.mem = mem;
		fit.ctx.error = &err;
		fit.options = &options;
		fit.label = &label;
		fit.n_rows = n;
		AG_REQUIRE(ag_fit_split(&fit) == AG_OK);
		AG_CHECK_EQ(fit.validation.split.n_train + fit.validation.split.n_valid, n);
		AG_CHECK_EQ(fit.validation.split.n_valid, (int64_t) ceil(0.2 * n));
		for (int r = 0; r < n; r++)
		{
			if (at_train < fit.validation.split.n_train &&
				fit.validation.split.train_rows[at_train] == (uint32_t) r)
			{
				at_train++;
				seen[class_of[r]]++;
			}
			else if (AG_CHECK(fit.validation.split.valid_rows[at_valid] == (uint32_t) r))
				AG_CHECK_EQ(fit.validation.class_of[at_valid++], class_of[r]);
		}
		AG_CHECK(seen[0] > 0 && seen[1] > 0 && seen[2] == 1);
		/* stratified: each class within one row of its share */
		AG_CHECK(fabs((double) (classes[1].n_rows - seen[1]) - 0.2 * (double) classes[1].n_rows) <=
				 1.0);
		ag_validation_free(&fit.ctx, &fit.validation);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
few_rows(AgMem *mem)
{
	for (int n = 0; n <= 14; n++)
		for (int n_classes = 0; n_classes <= 2; n_classes += 2)
		{
			Setting s = {.mem = mem,
						 .n_rows = n,
						 .n_classes = n_classes,
						 .entries = quick,
						 .n_entries = N_QUICK};
			Result r = {0};
			AgError err;
			AgStatus status = run(&s, &r, &err);

			if (n < 2)
				AG_CHECK_EQ(status, AG_ERR_DATA);
			else if (status == AG_OK)
			{
				AG_CHECK_EQ(isnan(r.score), n < AG_FIT_MIN_HOLDOUT_ROWS);
				AG_CHECK_EQ(r.n_members, n < AG_FIT_MIN_HOLDOUT_ROWS ? 2 : 3);
			}
			else /* all rows alike, or no feature tells them apart */
				AG_CHECK_EQ(status, AG_ERR_DATA);
			result_free(&r);
			AG_CHECK_EQ(mem->used_bytes, 0);
		}
}

static void
metrics(AgMem *mem)
{
	static const char *const names[] = {"mean_absolute_error", "r2", "spearmanr", "mape"};
	Setting s = {.mem = mem, .n_rows = 300, .n_entries = N_QUICK + 1};
	AgOptionEntry entries[N_QUICK + 1];
	Result r = {0};
	AgError err;

	memcpy(entries, quick, sizeof quick);
	s.entries = entries;
	for (int i = 0; i < 4; i++)
	{
		entries[N_QUICK] = (AgOptionEntry){"/eval_metric", AG_JSON_STRING, names[i]};
		AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
		AG_CHECK_EQ(r.metric, ag_metric_by_name(names[i]));
		AG_CHECK(isfinite(r.score));
		result_free(&r);
	}
	/* known only now that the label is a number */
	entries[N_QUICK] = (AgOptionEntry){"/eval_metric", AG_JSON_STRING, "roc_auc"};
	AG_CHECK_EQ(run(&s, &r, &err), AG_ERR_OPTION);
	AG_CHECK_STR(err.message, "metric \"roc_auc\" does not fit a regression problem");
	result_free(&r);
	s.n_classes = 2;
	AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
	AG_CHECK(r.score > 0.8);
	result_free(&r);
}

static void
gpu_warning(AgMem *mem)
{
	AgOptionEntry entries[N_QUICK + 2];
	Setting s = {.mem = mem, .n_rows = 200, .entries = entries, .n_entries = N_QUICK + 2};
	Result r = {0};
	AgError err;

	memcpy(entries, quick, sizeof quick);
	entries[N_QUICK] = (AgOptionEntry){"/ag_args_fit", AG_JSON_OBJECT, "1"};
	entries[N_QUICK + 1] = (AgOptionEntry){"/ag_args_fit/num_gpus", AG_JSON_NUMBER, "1"};
	AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
	AG_CHECK_EQ(r.n_warning_lines, 1);
	AG_CHECK_EQ(r.n_warnings, 1);
	AG_CHECK_STR(r.warning, "no GPU can be used, so the models are fitted on the CPU: no driver");
	result_free(&r);
}

/* Memory that runs out anywhere: an error that says so or a model left out with a WARNING, and nothing leaks. */
static void
no_memory(AgMem *mem)
{
	Setting s = {.mem = mem, .n_rows = 300, .entries = quick, .n_entries = N_QUICK};
	Result r = {0};
	AgError err;
	int64_t n;

	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	result_free(&r);
	mem->n_allocations = 0;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	result_free(&r);
	n = mem->n_allocations;
	for (int64_t after = 0; after < n; after += 1 + n / 150)
	{
		AgStatus status;

		mem->fail_after = after;
		status = run(&s, &r, &err);
		mem->fail_after = -1;
		AG_CHECK(status == AG_ERR_MEMORY || status == AG_OK);
		if (status == AG_ERR_MEMORY && r.fail_with == AG_OK)
			AG_CHECK(err.message[0] != '\0' || r.n_members > 0); /* or it was the sink's */
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

/* One model is too big: it is left out with a WARNING, and the other is the result. */
static void
left_out(void)
{
	static const AgOptionEntry entries[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_ARRAY, "2"},
		{"/hyperparameters/GBM/0", AG_JSON_OBJECT, "3"},
		{"/hyperparameters/GBM/0/num_boost_round", AG_JSON_NUMBER, "60"},
		{"/hyperparameters/GBM/0/num_leaves", AG_JSON_NUMBER, "10000"},
		{"/hyperparameters/GBM/0/min_data_in_leaf", AG_JSON_NUMBER, "1"},
		{"/hyperparameters/GBM/1", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/1/num_boost_round", AG_JSON_NUMBER, "20"},
	};
	AgMem mem;
	Setting s = {.mem = &mem, .n_rows = 20000, .entries = entries, .n_entries = 8};
	Result r = {0};
	AgError err;

	ag_mem_init(&mem, INT64_C(7) << 20);
	AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
	AG_CHECK_EQ(r.n_warning_lines, 1);
	AG_CHECK(strncmp(r.warning, "model GBM was left out: ", 24) == 0);
	AG_CHECK_EQ(r.n_members, 1);
	AG_CHECK_STR(r.names[0], "GBM_2");
	AG_CHECK_STR(r.best, "GBM_2");
	result_free(&r);
	AG_CHECK_EQ(mem.used_bytes, 0);
}

/* Too few rows to hold any out: every family is fitted all the same. */
static void
few_rows_all_families(AgMem *mem)
{
	static const AgOptionEntry all[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "10"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/RF", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/XT", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/NN_TORCH", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/NN_TORCH/num_epochs", AG_JSON_NUMBER, "3"},
		{"/hyperparameters/FASTAI", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/FASTAI/epochs", AG_JSON_NUMBER, "3"},
		{"/hyperparameters/TABM", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/TABM/n_epochs", AG_JSON_NUMBER, "3"},
		{"/hyperparameters/REALMLP", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/REALMLP/n_epochs", AG_JSON_NUMBER, "3"},
		{"/hyperparameters/XGB", AG_JSON_OBJECT, "0"},
		{"/hyperparameters/CAT", AG_JSON_OBJECT, "0"},
	};

	for (int n_classes = 0; n_classes <= 3; n_classes += n_classes == 0 ? 2 : 1)
	{
		Setting s = {.mem = mem,
					 .n_rows = 8,
					 .n_classes = n_classes,
					 .entries = all,
					 .n_entries = sizeof all / sizeof all[0]};
		Result r = {0};
		AgError err;

		if (!AG_CHECK_EQ(run(&s, &r, &err), AG_OK))
			fprintf(stderr, "    %s\n", err.message);
		AG_CHECK_EQ(r.n_members, AG_FAMILY_LAST);
		AG_CHECK_EQ(r.n_warnings, 0);
		if (r.n_warnings > 0)
			fprintf(stderr, "    %s\n", r.warning);
		for (int i = 0; i < r.n_members; i++)
			AG_CHECK(isnan(r.scores[i]) && r.can_infer[i]);
		AG_CHECK(strstr(r.log, "KNN: keeps 8 rows, 0.0 MB") != NULL);
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Classes that are left out for their few rows are counted, and so are their rows. */
static void
rare_are_counted(AgMem *mem)
{
	AgOptionEntry entries[N_QUICK + 1];
	Setting s = {
		.mem = mem, .n_rows = 200, .n_classes = 4, .entries = entries, .n_entries = N_QUICK + 1};
	int n_of[4] = {0}, n_rare = 0, n_rows = 0, threshold = INT_MAX;
	char text[16], line[160];
	Result r = {0};
	AgError err;

	for (int i = 0; i < s.n_rows; i++)
		n_of[(int) truth(i)]++;
	for (int k = 0; k < 4; k++)
		threshold = n_of[k] < threshold ? n_of[k] : threshold;
	threshold++;
	for (int k = 0; k < 4; k++)
		if (n_of[k] < threshold)
		{
			n_rare++;
			n_rows += n_of[k];
		}
	snprintf(text, sizeof text, "%d", threshold);
	snprintf(line, sizeof line,
			 "%d of 4 classes have fewer than %d rows: their %d rows are left out", n_rare,
			 threshold, n_rows);
	memcpy(entries, quick, sizeof quick);
	entries[N_QUICK] = (AgOptionEntry){"/label_count_threshold", AG_JSON_NUMBER, text};
	AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
	AG_CHECK_EQ(r.n_rows, s.n_rows - n_rows);
	AG_CHECK(strstr(r.log, line) != NULL);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
ends_early(AgMem *mem)
{
	static const AgOptionEntry slow[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_ARRAY, "2"},
		{"/hyperparameters/GBM/0", AG_JSON_OBJECT, "2"},
		{"/hyperparameters/GBM/0/num_boost_round", AG_JSON_NUMBER, "100000"},
		{"/hyperparameters/GBM/0/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/hyperparameters/GBM/1", AG_JSON_OBJECT, "3"},
		{"/hyperparameters/GBM/1/num_boost_round", AG_JSON_NUMBER, "100000"},
		{"/hyperparameters/GBM/1/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/hyperparameters/GBM/1/ag.max_time_limit", AG_JSON_NUMBER, "0.1"},
		{"/ag_args_fit", AG_JSON_OBJECT, "1"},
		{"/ag_args_fit/early_stop", AG_JSON_NULL, ""},
	};
	static const AgOptionEntry given[] = {{"/time_limit", AG_JSON_NUMBER, "1e-9"}};
	Setting s = {.mem = mem, .n_rows = 2000, .entries = slow, .n_entries = 11, .seconds = 2};
	_Atomic bool cancel = true;
	Result r = {0};
	AgError err;
	int64_t began = ag_clock_ns();

	AG_CHECK_EQ(run(&s, &r, &err), AG_OK);
	AG_CHECK(ag_fit_seconds(began) < 2.2);
	AG_CHECK_EQ(r.n_members, 3);
	AG_CHECK(strstr(r.plan, "\"stopped_by\": \"time\"") != NULL);
	result_free(&r);
	s.seconds = 1e-6;
	AG_CHECK_EQ(run(&s, &r, &err), AG_ERR_TIME);
	AG_CHECK(strstr(err.message, "within the time limit") != NULL && err.hint[0] != '\0');
	result_free(&r);
	s.entries = given;
	s.n_entries = 1;
	AG_CHECK_EQ(run(&s, &r, &err), AG_ERR_TIME);
	AG_CHECK_STR(err.message, "no model could be fitted within the time limit of 1e-09 s");
	result_free(&r);
	s.seconds = 0;
	s.cancel = &cancel;
	AG_CHECK_EQ(run(&s, &r, &err), AG_ERR_CANCELLED);
	result_free(&r);
	/* what the sink can't take ends the fit with its own status */
	s.cancel = NULL;
	s.entries = quick;
	s.n_entries = N_QUICK;
	r.fail_with = AG_ERR_SYSTEM;
	AG_CHECK_EQ(run(&s, &r, &err), AG_ERR_SYSTEM);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	rules();
	splits(&mem);
	results_predict(&mem);
	nets_predict(&mem);
	few_rows(&mem);
	few_rows_all_families(&mem);
	metrics(&mem);
	gpu_warning(&mem);
	no_memory(&mem);
	left_out();
	rare_are_counted(&mem);
	ends_early(&mem);
	return ag_unit_done("fit");
}
