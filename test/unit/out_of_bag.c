/* out_of_bag.c - bags of forests that are one forest: its score, its bytes, and where they stay bags of folds. */
#include "unit/fit_again.h"

#include "engine/model/forest.h"

static const AgOptionEntry forest[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/RF", AG_JSON_OBJECT, "2"},
	{"/hyperparameters/RF/n_estimators", AG_JSON_NUMBER, "100"},
	{"/hyperparameters/RF/min_samples_leaf", AG_JSON_NUMBER, "5"},
	{"/hyperparameters/XT", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/XT/n_estimators", AG_JSON_NUMBER, "10"},
	{"/num_bag_folds", AG_JSON_NUMBER, "3"},
	{"/eval_metric", AG_JSON_NULL, ""},
	{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
	{"/ag_args_ensemble/use_child_oof", AG_JSON_BOOL, "true"},
};
#define N_FOREST ((int) (sizeof forest / sizeof forest[0]))

/* The one child is the forest of all rows, and the bag's score that of the forest's out-of-bag predictions. */
static void
check_child(Again *a, const Result *r)
{
	const AgValidation *v = &a->fit.validation;
	int n = (int) a->fit.n_rows, at = find_name(r, "RF_BAG_L1");
	int child = find_name(r, "RF_BAG_L1/S1F1");
	uint32_t *rows = malloc((size_t) n * sizeof *rows);
	AgTraining training = {.split = 5, .wants_oob = true};
	AgTrainData data;
	AgTrained trained;
	AgFitRows forms;
	AgSplit split = {.train_rows = rows, .n_train = n};
	double value;

	AG_REQUIRE(at >= 0 && child >= 0);
	AG_CHECK_EQ(r->n_inputs[at], 1);
	for (int m = 0; m < a->options->n_models; m++)
		if (a->options->models[m].family->id == AG_FAMILY_RF)
			training.config = &a->options->models[m];
	memset(&forms, 0, sizeof forms);
	forms.ctx = &a->ctx;
	forms.pipeline = a->pipeline;
	forms.table = a->table;
	for (int i = 0; i < n; i++)
		rows[i] = (uint32_t) i;
	memset(&data, 0, sizeof data);
	data.problem = a->label->problem;
	data.n_classes = a->label->n_classes;
	data.target = a->label->target;
	data.class_of = a->label->class_of;
	data.train_rows = split.train_rows;
	data.n_train = n;
	AG_REQUIRE(ag_family_train(&a->ctx, &forms, &training, &data, &trained) == AG_OK);
	AG_REQUIRE(trained.oob_proba != NULL);
	for (int i = 0; i < r->n_images; i++)
		if (r->images[i].member == child + 1)
			AG_CHECK(r->images[i].size == trained.n_image &&
					 memcmp(r->images[i].data, trained.image, trained.n_image) == 0);
	AG_CHECK_EQ(v->n_scored, n);
	if (v->class_of != NULL)
		AG_CHECK_EQ(ag_metric_classes(&a->ctx, r->metric, n, data.n_classes, v->class_of,
									  trained.oob_proba, 0.5, NULL, &value),
					AG_OK);
	else
		AG_CHECK_EQ(
			ag_metric_regression(&a->ctx, r->metric, n, v->target, trained.oob_proba, NULL, &value),
			AG_OK);
	AG_CHECK_NEAR(ag_metric_score(r->metric, value), r->scores[at], 1e-12);
	ag_trained_free(&a->ctx, &trained);
	training.max_rounds = 7; /* as a fit that is repeated asks for it */
	AG_REQUIRE(ag_family_train(&a->ctx, &forms, &training, &data, &trained) == AG_OK);
	AG_CHECK_EQ(trained.rounds, 7);
	ag_trained_free(&a->ctx, &trained);
	ag_fit_rows_free(&forms);
	free(rows);
}

static void
test_child(AgMem *mem)
{
	for (int n_classes = 0; n_classes < 5; n_classes += 2)
	{
		AgOptionEntry entries[N_FOREST];
		Setting s = {.mem = mem,
					 .n_rows = 500,
					 .n_classes = n_classes,
					 .entries = entries,
					 .n_entries = N_FOREST,
					 .n_threads = 2};
		Result one = {0}, folds = {0};
		AgError err;
		Again a;

		memcpy(entries, forest, sizeof forest);
		if (n_classes > 0)
			entries[7] = (AgOptionEntry){"/eval_metric", AG_JSON_STRING, "log_loss"};
		AG_REQUIRE(run(&s, &one, &err) == AG_OK);
		again(&a, &s);
		check_child(&a, &one);
		again_free(&a);
		AG_CHECK(strstr(one.log, "one forest of all rows") != NULL);
		AG_CHECK_EQ(one.n_inputs[find_name(&one, "XT_BAG_L1")], 3); /* draws no rows */
		AG_CHECK(strstr(one.params[find_name(&one, "RF_BAG_L1")],
						"\"ag.ens.use_child_oof\": true") != NULL);
		AG_CHECK(strstr(one.params[find_name(&one, "XT_BAG_L1")], "use_child_oof") == NULL);
		entries[9].type = AG_JSON_NULL; /* the rule, where nothing is said */
		AG_REQUIRE(run(&s, &folds, &err) == AG_OK);
		AG_CHECK_EQ(folds.n_inputs[find_name(&folds, "RF_BAG_L1")], 1);
		AG_CHECK(folds.scores[find_name(&folds, "RF_BAG_L1")] ==
				 one.scores[find_name(&one, "RF_BAG_L1")]);
		result_free(&folds);
		entries[9].type = AG_JSON_BOOL;
		entries[9].text = "false";
		AG_REQUIRE(run(&s, &folds, &err) == AG_OK);
		AG_CHECK_EQ(folds.n_inputs[find_name(&folds, "RF_BAG_L1")], 3);
		AG_CHECK_NEAR(one.scores[find_name(&one, "RF_BAG_L1")] /
						  folds.scores[find_name(&folds, "RF_BAG_L1")],
					  1.0, 0.3);
		result_free(&one);
		result_free(&folds);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Where rows aren't as good as drawn one by one, folds keep apart what belongs together. */
static void
test_folds_stay(void)
{
	AgForestParams params = {.wants_oob = true};
	AgModelConfig config = {.family = ag_family(AG_FAMILY_RF), .params = &params};
	AgModelConfig own = config;
	uint32_t group = 0;
	AgFit fit;

	memset(&fit, 0, sizeof fit);
	AG_CHECK(ag_fit_is_out_of_bag(&fit, &config));
	fit.group_of = &group;
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &config));
	fit.group_of = NULL;
	fit.validation.is_forward = true;
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &config));
	fit.validation.is_forward = false;
	fit.validation.is_held_out = true;
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &config));
	fit.validation.is_held_out = false;
	own.prep.target = true;
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &own));
	own = config;
	own.family = ag_family(AG_FAMILY_GBM);
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &own));
	params.wants_oob = false;
	AG_CHECK(!ag_fit_is_out_of_bag(&fit, &config));
}

static const AgOptionEntry neighbours[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "3"},
	{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
	{"/ag_args_ensemble/use_child_oof", AG_JSON_BOOL, "true"},
};

/* One model of all rows; its score is near what folds say, though it knows more of each row's neighbourhood. */
static void
test_neighbours(AgMem *mem)
{
	for (int n_classes = 0; n_classes < 5; n_classes += 2)
	{
		AgOptionEntry entries[5];
		Setting s = {.mem = mem,
					 .n_rows = 400,
					 .n_classes = n_classes,
					 .entries = entries,
					 .n_entries = 5,
					 .n_threads = 2};
		Result one = {0}, folds = {0};
		AgError err;

		memcpy(entries, neighbours, sizeof neighbours);
		AG_REQUIRE(run(&s, &one, &err) == AG_OK);
		AG_CHECK(strstr(one.log, "each scored by its neighbours without itself") != NULL);
		AG_CHECK(strstr(one.log, "keeps 400 rows") != NULL);
		AG_CHECK_EQ(one.n_inputs[find_name(&one, "KNN_BAG_L1")], 1);
		entries[4].text = "false";
		AG_REQUIRE(run(&s, &folds, &err) == AG_OK);
		AG_CHECK_EQ(folds.n_inputs[find_name(&folds, "KNN_BAG_L1")], 3);
		AG_CHECK_NEAR(one.scores[find_name(&one, "KNN_BAG_L1")] /
						  folds.scores[find_name(&folds, "KNN_BAG_L1")],
					  1.0, 0.5);
		result_free(&one);
		result_free(&folds);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	test_child(&mem);
	test_folds_stay();
	test_neighbours(&mem);
	return ag_unit_done("out of bag");
}
