/* bag.c - bags: how rows are dealt to folds, out-of-fold scores, names, sets, few rows, little time; folds at the same time on a GPU. */
#include <sched.h>

#include "engine/base/device.h"
#include "unit/fit_again.h"

#define N_FOLDS 3

static const AgOptionEntry bagged[] = {
	{"/hyperparameters", AG_JSON_OBJECT, "3"},
	{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
	{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "30"},
	{"/hyperparameters/LR", AG_JSON_OBJECT, "0"},
	{"/hyperparameters/KNN", AG_JSON_OBJECT, "0"},
	{"/num_bag_folds", AG_JSON_NUMBER, "3"},
	{"/num_bag_sets", AG_JSON_NUMBER, "1"},
	{"/ag_args_ensemble", AG_JSON_OBJECT, "1"},
	{"/ag_args_ensemble/use_child_oof", AG_JSON_BOOL, "false"}, /* KNN has folds, too */
	{"/eval_metric", AG_JSON_NULL, ""},
};
#define N_BAGGED ((int) (sizeof bagged / sizeof bagged[0]))

/* --- folds */

/* A fit that knows no more than labels: enough to deal rows. */
typedef struct Dealt
{
	AgLabel label;
	AgClass classes[4];
	AgFitOptions options;
	AgFit fit;
	AgError err;
	char log[1024];
} Dealt;

static void
dealt_log(void *host, AgLogLevel level, const char *text, const char *hint)
{
	Dealt *d = host;
	size_t at = strlen(d->log);

	(void) level;
	(void) hint;
	snprintf(d->log + at, sizeof d->log - at, "%s\n", text);
}

static void
deal_prepare(Dealt *d, AgMem *mem, int n, int n_classes, int32_t *class_of, int folds, int sets,
			 uint64_t seed)
{
	memset(d, 0, sizeof *d);
	ag_error_init(&d->err);
	for (int c = 0; c < n_classes; c++)
		d->classes[c].name = "c";
	for (int r = 0; r < n && n_classes > 0; r++)
		d->classes[class_of[r]].n_rows++;
	d->label.problem = n_classes == 0   ? AG_PROBLEM_REGRESSION
					   : n_classes == 2 ? AG_PROBLEM_BINARY
										: AG_PROBLEM_MULTICLASS;
	d->label.n_classes = n_classes;
	d->label.classes = d->classes;
	d->label.class_of = n_classes > 0 ? class_of : NULL;
	d->label.target = calloc((size_t) n + 1, sizeof(double));
	d->label.n_rows = n;
	d->options.holdout_frac = (double) NAN;
	d->options.num_bag_folds = folds;
	d->options.num_bag_sets = sets;
	d->options.random_state = seed;
	d->fit.ctx.mem = mem;
	d->fit.ctx.error = &d->err;
	d->fit.ctx.log = dealt_log;
	d->fit.ctx.host = d;
	d->fit.options = &d->options;
	d->fit.label = &d->label;
	d->fit.n_rows = n;
}

static void
deal(Dealt *d, AgMem *mem, int n, int n_classes, int32_t *class_of, int folds, int sets,
	 uint64_t seed)
{
	deal_prepare(d, mem, n, n_classes, class_of, folds, sets, seed);
	AG_REQUIRE(ag_fit_split(&d->fit) == AG_OK);
	split_room(&d->fit);
}

static void
deal_groups(Dealt *d, AgMem *mem, int n, uint32_t *group_of, uint32_t n_groups, int folds,
			uint64_t seed)
{
	deal_prepare(d, mem, n, 0, NULL, folds, 1, seed);
	d->fit.group_of = group_of;
	d->fit.n_groups = n_groups;
	AG_REQUIRE(ag_fit_split(&d->fit) == AG_OK);
	split_room(&d->fit);
}

static void
deal_free(Dealt *d)
{
	ag_validation_free(&d->fit.ctx, &d->fit.validation);
	free(d->label.target);
}

/* Every row in one fold of each set, classes and sizes even, training parts complete, and the lists say the same. */
static void
folds_even(AgMem *mem)
{
	for (int seed = 0; seed < 30; seed++)
	{
		int32_t class_of[400];
		int n = 60 + 11 * seed, folds = 2 + seed % 7, sets = 1 + seed % 2;
		Dealt d;
		const AgValidation *v = &d.fit.validation;

		/* class 3 has one row, class 2 two or more, fewer than folds at times */
		for (int r = 0; r < n; r++)
			class_of[r] = r == 7 ? 3 : r % 29 == 3 ? 2 : r % 5 == 0 ? 1 : 0;
		deal(&d, mem, n, 4, class_of, folds, sets, (uint64_t) seed);
		AG_CHECK_EQ(v->n_folds, folds);
		AG_CHECK_EQ(v->n_scored, n - 1);
		for (int set = 0; set < sets; set++)
		{
			const uint8_t *fold_of = v->fold_of + set * n;
			int n_valid = 0;

			for (int f = 0; f < folds; f++)
			{
				int64_t count[4] = {0, 0, 0, 0}, total = 0;

				for (int r = 0; r < n; r++)
					if (fold_of[r] == f)
					{
						count[class_of[r]]++;
						total++;
					}
				AG_CHECK(total == (n - 1) / folds || total == (n - 1) / folds + 1);
				for (int c = 0; c < 3; c++)
				{
					AG_CHECK(count[c] == d.classes[c].n_rows / folds ||
							 count[c] == d.classes[c].n_rows / folds + 1);
					AG_CHECK(count[c] < d.classes[c].n_rows); /* some are left to train on */
				}
				AG_CHECK_EQ(count[3], 0);
				ag_fit_split_fold(&d.fit, set, f, &d.fit.validation.split);
				AG_CHECK_EQ(v->split.n_valid, total);
				AG_CHECK_EQ(v->split.n_train + v->split.n_valid, n);
				AG_CHECK_EQ(v->split.number, 1 + set * folds + f);
				for (int64_t i = 0; i < v->split.n_valid; i++)
					AG_CHECK(fold_of[v->split.valid_rows[i]] == f);
				for (int64_t i = 1; i < v->split.n_train; i++)
					AG_CHECK(v->split.train_rows[i - 1] < v->split.train_rows[i]);
				n_valid += (int) total;
			}
			AG_CHECK_EQ(n_valid, n - 1);
			AG_CHECK_EQ(fold_of[7], AG_FIT_NO_FOLD);
		}
		if (sets == 2)
			AG_CHECK(memcmp(v->fold_of, v->fold_of + n, (size_t) n) != 0);
		for (int64_t i = 0; i < v->n_scored; i++)
			AG_CHECK_EQ(v->class_of[i], class_of[v->scored_rows[i]]);
		deal_free(&d);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* The same for the same seed, another for another. */
static void
folds_repeat(AgMem *mem)
{
	Dealt a, b, c;

	deal(&a, mem, 500, 0, NULL, 8, 1, 3);
	deal(&b, mem, 500, 0, NULL, 8, 1, 3);
	deal(&c, mem, 500, 0, NULL, 8, 1, 4);
	AG_CHECK(memcmp(a.fit.validation.fold_of, b.fit.validation.fold_of, 500) == 0);
	AG_CHECK(memcmp(a.fit.validation.fold_of, c.fit.validation.fold_of, 500) != 0);
	AG_CHECK_EQ(a.fit.validation.n_scored, 500);
	deal_free(&a);
	deal_free(&b);
	deal_free(&c);
}

/* Fewer folds where there is too little to deal, and none of a handful of rows. */
static void
folds_adapt(AgMem *mem)
{
	int32_t class_of[100] = {0};
	Dealt d;

	AG_CHECK_EQ(ag_folds_rule(20), 5);
	AG_CHECK_EQ(ag_folds_rule(59), 5);
	AG_CHECK_EQ(ag_folds_rule(60), 6);
	AG_CHECK_EQ(ag_folds_rule(79), 7);
	AG_CHECK_EQ(ag_folds_rule(80), 8);
	class_of[3] = class_of[40] = class_of[77] = 1;
	deal(&d, mem, 100, 2, class_of, 8, 1, 0);
	AG_CHECK_EQ(d.fit.validation.n_folds, 3);
	AG_CHECK(strstr(d.log, "3 folds instead of 8, for want of rows of the rarer class") != NULL);
	deal_free(&d);
	class_of[40] = class_of[77] = 0; /* one row of it: always trained on */
	deal(&d, mem, 100, 2, class_of, 8, 1, 0);
	AG_CHECK_EQ(d.fit.validation.n_folds, 8);
	AG_CHECK_EQ(d.fit.validation.n_scored, 99);
	deal_free(&d);
	deal(&d, mem, 9, 0, NULL, 8, 1, 0);
	AG_CHECK_EQ(d.fit.validation.n_folds, 4);
	AG_CHECK(strstr(d.log, "4 folds instead of 8, for want of rows") != NULL);
	deal_free(&d);
	deal(&d, mem, 3, 0, NULL, 8, 1, 0);
	AG_CHECK_EQ(d.fit.validation.n_folds, 0);
	AG_CHECK(strstr(d.log, "too few for a bag") != NULL);
	deal_free(&d);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* Folds of our own choice are as many as time allows, and fewer of many rows where it is short; those asked for aren't changed. */
static void
folds_by_time(AgMem *mem)
{
	static const struct
	{
		double seconds;
		int asked, folds, n;
		double slow; /* seconds so far, of which one was work; 0: not known */
		double gone; /* of the time promised: read, stored */
	} cases[] = {
		{1e6, -1, 8, 100000, 0, 0},   {60, -1, 4, 100000, 0, 0},    {1, -1, 0, 100000, 0, 0},
		{1, 8, 8, 100000, 0, 0},      {60, -1, 8, 19999, 0, 0},     {60, -1, 5, 20000, 0, 0},
		{700, -1, 8, 20000, 0, 0},    {550, -1, 5, 100000, 0, 0},   {550, -1, 0, 100001, 0, 0},
		{550, 8, 8, 100001, 0, 0},    {700, -1, 8, 100001, 0, 0},   {120, -1, 5, 100000, 1.0, 0},
		{120, -1, 4, 100000, 2.0, 0}, {120, -1, 0, 100000, 8.0, 0}, {120, 8, 8, 100000, 8.0, 0},
		{600, -1, 8, 100001, 0, 30}};

	for (int i = 0; i < (int) (sizeof cases / sizeof cases[0]); i++)
	{
		AgFitJob job = {.n_gpus = 0};
		AgPipeline pipeline = {.n_features = 50, .n_visible = 50};
		Dealt d;

		deal_prepare(&d, mem, cases[i].n, 0, NULL, cases[i].asked, 1, 0);
		d.options.auto_stack = true;
		d.fit.pipeline = &pipeline;
		d.fit.job = &job;
		if (cases[i].slow > 0.0)
		{
			d.fit.began_ns = ag_clock_ns() - (int64_t) (cases[i].slow * 1e9);
			d.fit.began_cpu_ns = ag_cpu_ns() - INT64_C(1000000000);
		}
		d.fit.promised_seconds = cases[i].seconds;
		d.fit.ctx.deadline_ns =
			ag_clock_ns() + (int64_t) ((cases[i].seconds - cases[i].gone) * 1e9);
		AG_REQUIRE(ag_fit_split(&d.fit) == AG_OK);
		split_room(&d.fit);
		AG_CHECK_EQ(d.fit.validation.n_folds, cases[i].folds);
		AG_CHECK((strstr(d.log, "ime") != NULL) == (cases[i].folds < 8));
		deal_free(&d);
	}
}

/* Of a million rows some are held out from all folds, unless the user says otherwise. */
static void
million_rows(AgMem *mem)
{
	for (int i = 0; i < 6; i++)
	{
		AgFitJob job = {.n_gpus = 0};
		Dealt d;

		deal_prepare(&d, mem, i == 1 ? 999999 : 1000000, 0, NULL, i == 3 ? 8 : -1, 1, 0);
		d.options.auto_stack = true;
		d.options.num_stack_levels = i == 4 ? 1 : -1;
		d.options.bag_holdout_said = i == 2;
		d.options.dynamic_stacking = i == 5 ? AG_DYNAMIC_ON : AG_DYNAMIC_AUTO;
		d.fit.job = &job;
		d.fit.ctx.deadline_ns = INT64_MAX;
		AG_REQUIRE(ag_fit_split(&d.fit) == AG_OK);
		split_room(&d.fit);
		AG_CHECK_EQ(d.fit.validation.n_folds, 8);
		AG_CHECK_EQ(d.fit.validation.is_held_out, i == 0);
		AG_CHECK_EQ(d.fit.validation.n_scored, i == 0 ? 10000 : d.fit.n_rows);
		AG_CHECK((strstr(d.log, "give \"use_bag_holdout\": false") != NULL) == (i == 0));
		deal_free(&d);
	}
}

/* How many folds are fitted at a time: as asked, or by the rows. */
static void
folds_at_a_time(AgMem *mem)
{
	static const AgOptionEntry args[] = {
		{"/ag_args_ensemble", AG_JSON_OBJECT, "2"},
		{"/ag_args_ensemble/num_folds_parallel", AG_JSON_NUMBER, "3"},
		{"/ag_args_ensemble/fold_fitting_strategy", AG_JSON_STRING, "sequential_local"},
	};
	static const int few[] = {AG_MAX_BAG_FOLDS, AG_MAX_BAG_FOLDS, 3, 1}, many[] = {1, 1, 3, 1};
	AgFitOptions *options;
	AgError err;

	ag_error_init(&err);
	for (int n = 0; n <= 3; n++)
	{
		AG_REQUIRE(ag_options_parse(mem, args, n, &options, &err) == AG_OK);
		AG_CHECK_EQ(ag_folds_at_a_time(options, 20000), few[n]);
		AG_CHECK_EQ(ag_folds_at_a_time(options, 20001), many[n]);
		ag_options_free(options);
	}
}

/* Rows of a group stay together, held out or in folds, and parts are about as large as they should be. */
static void
groups_together(AgMem *mem)
{
	uint32_t group_of[400];

	for (int seed = 0; seed < 20; seed++)
	{
		Dealt d;
		const AgValidation *v = &d.fit.validation;
		int fold_of_group[40], size[5] = {0, 0, 0, 0, 0}, n_seen = 0;
		bool held[40] = {false}, kept[40] = {false};

		for (int r = 0; r < 400; r++) /* group 0 has a quarter of the rows */
			group_of[r] = r % 4 == 0 ? 0 : (uint32_t) (1 + r * 7 % 39);
		for (int g = 0; g < 40; g++)
			fold_of_group[g] = -1;
		deal_groups(&d, mem, 400, group_of, 40, 4, (uint64_t) seed);
		for (int r = 0; r < 400; r++)
		{
			int f = v->fold_of[r], g = (int) group_of[r];

			AG_CHECK(fold_of_group[g] < 0 || fold_of_group[g] == f);
			n_seen += fold_of_group[g] < 0;
			fold_of_group[g] = f;
			size[f]++;
		}
		AG_CHECK_EQ(n_seen, 40);
		for (int f = 0; f < 4; f++)
			AG_CHECK(size[f] >= 90 && size[f] <= 110);
		deal_free(&d);
		deal_groups(&d, mem, 400, group_of, 40, 0, (uint64_t) seed);
		for (int64_t i = 0; i < v->split.n_valid; i++)
			held[group_of[v->split.valid_rows[i]]] = true;
		for (int64_t i = 0; i < v->split.n_train; i++)
			kept[group_of[v->split.train_rows[i]]] = true;
		for (int g = 0; g < 40; g++)
			AG_CHECK(held[g] != kept[g]);
		AG_CHECK(v->split.n_valid >= 60 && v->split.n_valid <= 120);
		deal_free(&d);
		deal_groups(&d, mem, 400, group_of, 40, 50, (uint64_t) seed);
		AG_CHECK_EQ(v->n_folds, 40);
		deal_free(&d);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* --- what children learn, and what they are scored on */

/* A bag's score is its metric over every row as the child without that row predicts it. */
static void
scores_are_out_of_fold(Again *a, const Result *r, const char *bag)
{
	const AgValidation *v = &a->fit.validation;
	int width = ag_label_outputs(a->label);
	double *proba = calloc((size_t) (v->n_scored * width), sizeof *proba), value;
	int at = find_name(r, bag);

	AG_REQUIRE(at >= 0);
	AG_CHECK_EQ(r->n_inputs[at], N_FOLDS);
	for (int f = 0; f < N_FOLDS; f++)
	{
		char name[80];
		AgPredictor *child;
		int member;

		snprintf(name, sizeof name, "%s/S1F%d", bag, f + 1);
		member = find_name(r, name);
		AG_REQUIRE(member >= 0);
		AG_CHECK_EQ(r->folds[member], f + 1);
		AG_CHECK_EQ(r->inputs[at][f], member + 1);
		AG_CHECK_NEAR(r->weights[at][f], 1.0 / N_FOLDS, 1e-15);
		AG_CHECK(isnan(r->scores[member]));
		child = open_member(a, r, member);
		for (int64_t i = 0; i < v->n_scored; i++)
			if (v->fold_of[v->scored_rows[i]] == f)
				predict_row(a, child, v->scored_rows[i], proba + i * width);
		ag_predictor_close(child);
	}
	if (v->class_of != NULL)
		AG_CHECK_EQ(ag_metric_classes(&a->ctx, r->metric, v->n_scored, width, v->class_of, proba,
									  0.5, NULL, &value),
					AG_OK);
	else
		AG_CHECK_EQ(
			ag_metric_regression(&a->ctx, r->metric, v->n_scored, v->target, proba, NULL, &value),
			AG_OK);
	AG_CHECK_NEAR(ag_metric_score(r->metric, value), r->scores[at], 1e-9);
	free(proba);
}

/* A child is what its family makes of the other folds' rows: with the labels of its own fold spoilt, the same bytes. */
static void
children_know_no_more(Again *a, const Result *r, int model, const char *bag)
{
	const AgSplit *split = &a->fit.validation.split;
	AgFitRows rows;

	memset(&rows, 0, sizeof rows);
	rows.ctx = &a->ctx;
	rows.pipeline = a->pipeline;
	rows.table = a->table;
	for (int f = 0; f < N_FOLDS; f++)
	{
		AgTraining training;
		AgTrainData data;
		AgTrained trained;
		char name[80];
		int member;
		AgLabel spoilt = *a->label;
		double *target = malloc((size_t) spoilt.n_rows * sizeof *target);

		ag_fit_split_fold(&a->fit, 0, f, &a->fit.validation.split);
		memcpy(target, spoilt.target, (size_t) spoilt.n_rows * sizeof *target);
		for (int64_t i = 0; i < split->n_valid; i++)
			target[split->valid_rows[i]] = 1e6 - (double) i;
		memset(&training, 0, sizeof training);
		training.config = &a->options->models[model];
		training.split = split->number;
		training.seed = f == 0 ? 0 : ag_key(0, (uint64_t) split->number);
		memset(&data, 0, sizeof data);
		data.problem = AG_PROBLEM_REGRESSION;
		data.target = target;
		data.train_rows = split->train_rows;
		data.n_train = split->n_train;
		data.valid_rows = split->valid_rows;
		data.n_valid = split->n_valid;
		data.stop_metric = AG_METRIC_RMSE;
		AG_REQUIRE(ag_family_train(&a->ctx, &rows, &training, &data, &trained) == AG_OK);
		snprintf(name, sizeof name, "%s/S1F%d", bag, f + 1);
		member = find_name(r, name);
		for (int i = 0; i < r->n_images; i++)
			if (r->images[i].member == member + 1)
				AG_CHECK(r->images[i].size == trained.n_image &&
						 memcmp(r->images[i].data, trained.image, trained.n_image) == 0);
		ag_trained_free(&a->ctx, &trained);
		free(target);
	}
	ag_fit_rows_free(&rows);
}

static void
out_of_fold(AgMem *mem)
{
	static const int classes[] = {0, 2, 4};

	for (int i = 0; i < 3; i++)
	{
		AgOptionEntry entries[N_BAGGED];
		Setting s = {.mem = mem,
					 .n_rows = 700,
					 .n_classes = classes[i],
					 .entries = entries,
					 .n_entries = N_BAGGED,
					 .n_threads = 2};
		Result r = {0};
		AgError err;
		Again a;

		memcpy(entries, bagged, sizeof bagged);
		if (classes[i] > 0)
			entries[N_BAGGED - 1] = (AgOptionEntry){"/eval_metric", AG_JSON_STRING, "log_loss"};
		AG_REQUIRE(run(&s, &r, &err) == AG_OK);
		AG_CHECK_EQ(r.n_members, 3 * (N_FOLDS + 1) + 1);
		AG_CHECK_EQ(r.n_images, 2 + 3 * N_FOLDS);
		AG_CHECK_STR(r.names[r.n_members - 1], "WeightedEnsemble_L2");
		AG_CHECK_EQ(r.folds[r.n_members - 1], 0);
		AG_CHECK(strstr(r.plan, "\"num_bag_folds\": 3") != NULL);
		AG_CHECK(strstr(r.plan, "\"children\": 3") != NULL);
		AG_CHECK(strstr(r.log, "Fitting GBM_BAG_L1 with 'num_gpus': 0, 'num_cpus': 2\nFolding "
							   "resources per job {'num_gpus': 0, 'num_cpus': 1}\n") != NULL);
		again(&a, &s);
		scores_are_out_of_fold(&a, &r, "GBM_BAG_L1");
		scores_are_out_of_fold(&a, &r, "LR_BAG_L1");
		scores_are_out_of_fold(&a, &r, "KNN_BAG_L1");
		if (i == 0)
		{
			children_know_no_more(&a, &r, 1, "LR_BAG_L1");
			children_know_no_more(&a, &r, 2, "KNN_BAG_L1");
		}
		again_free(&a);
		AG_CHECK(error_of(mem, &r, find_name(&r, "GBM_BAG_L1") + 1, classes[i]) < 0.25);
		AG_CHECK(error_of(mem, &r, r.n_members, classes[i]) < 0.15);
		result_free(&r);
	}
	AG_CHECK_EQ(mem->used_bytes, 0);
}

/* The same bytes at any number of threads; repeats of the folds; names of several of a family. */
static void
repeats(AgMem *mem)
{
	AgOptionEntry entries[N_BAGGED];
	Setting s = {.mem = mem, .n_rows = 400, .n_classes = 2, .entries = entries};
	Result one = {0}, three = {0};
	AgError err;

	memcpy(entries, bagged, sizeof bagged);
	s.n_entries = N_BAGGED;
	entries[6] = (AgOptionEntry){"/num_bag_sets", AG_JSON_NUMBER, "2"};
	s.n_threads = 1;
	AG_REQUIRE(run(&s, &one, &err) == AG_OK);
	s.n_threads = 3;
	AG_REQUIRE(run(&s, &three, &err) == AG_OK);
	AG_CHECK_EQ(one.n_members, 3 * (2 * N_FOLDS + 1) + 1);
	AG_CHECK(find_name(&one, "GBM_BAG_L1/S2F3") >= 0);
	AG_CHECK_EQ(one.n_inputs[find_name(&one, "KNN_BAG_L1")], 2 * N_FOLDS);
	AG_CHECK_EQ(one.n_images, three.n_images);
	for (int i = 0; i < one.n_images; i++)
		AG_CHECK(one.images[i].size == three.images[i].size &&
				 memcmp(one.images[i].data, three.images[i].data, one.images[i].size) == 0);
	for (int i = 0; i < one.n_members; i++)
		AG_CHECK(one.scores[i] == three.scores[i] || isnan(one.scores[i]));
	result_free(&one);
	result_free(&three);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

static void
few_rows(AgMem *mem)
{
	for (int n = 2; n <= 24; n++)
		for (int n_classes = 0; n_classes <= 4; n_classes += 2)
		{
			Setting s = {.mem = mem,
						 .n_rows = n,
						 .n_classes = n_classes,
						 .entries = bagged,
						 .n_entries = N_BAGGED};
			Result r = {0};
			AgError err;
			AgStatus status = run(&s, &r, &err);

			if (status == AG_OK)
				for (int m = 1; m <= r.n_members; m++)
					AG_CHECK(isfinite(error_of(mem, &r, m, n_classes)));
			else
				AG_CHECK_EQ(status, AG_ERR_DATA);
			result_free(&r);
			AG_CHECK_EQ(mem->used_bytes, 0);
		}
}

/* Time that runs out in a bag: what is there is used, and said to be of fewer folds or not at all. */
static void
little_time(AgMem *mem)
{
	static const AgOptionEntry slow[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_ARRAY, "2"},
		{"/hyperparameters/GBM/0", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/0/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/hyperparameters/GBM/1", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/1/learning_rate", AG_JSON_NUMBER, "0.0001"},
		{"/ag_args_fit", AG_JSON_OBJECT, "1"},
		{"/ag_args_fit/early_stop", AG_JSON_NULL, ""},
		{"/num_bag_folds", AG_JSON_NUMBER, "5"},
	};
	static const double limits[] = {5.0, 0.3, 0.1, 0.05, 0.02};

	for (int i = 0; i < 5; i++)
	{
		Setting s = {.mem = mem,
					 .n_rows = 3000,
					 .entries = slow,
					 .n_entries = 9,
					 .n_threads = 2,
					 .seconds = limits[i]};
		Result r = {0};
		AgError err;
		int64_t began = ag_clock_ns();
		AgStatus status = run(&s, &r, &err);

		AG_CHECK(ag_fit_seconds(began) < limits[i] + 5.0); /* rounds would go on for minutes */
		AG_CHECK(status == AG_OK || status == AG_ERR_TIME);
		if (i == 0 && AG_CHECK_EQ(status, AG_OK))
		{
			AG_CHECK_EQ(r.n_members, 2 * (5 + 1) + 1);
			AG_CHECK(strstr(r.plan, "\"stopped_by\": \"time\"") != NULL);
		}
		if (status == AG_OK)
		{
			AG_CHECK(isfinite(r.score));
			AG_CHECK(isfinite(error_of(mem, &r, r.n_members, 0)));
			if (r.n_members < 5 + 1) /* no bag was completed */
				AG_CHECK(strstr(r.log, "of 5 folds were fitted in time") != NULL);
		}
		result_free(&r);
		AG_CHECK_EQ(mem->used_bytes, 0);
	}
}

static void
no_memory(AgMem *mem)
{
	Setting s = {.mem = mem, .n_rows = 200, .n_classes = 2, .entries = bagged};
	Result r = {0};
	AgError err;
	int64_t n;

	s.n_entries = N_BAGGED;
	mem->n_allocations = 0;
	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	result_free(&r);
	n = mem->n_allocations;
	for (int64_t after = 0; after < n; after += 1 + n / 120)
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

/* ---- folds at the same time on a GPU ---- */

static _Atomic int n_inside, most_inside, n_opened, n_closed;
static _Atomic uint64_t devices_seen; /* by place */

struct AgDevice
{
	int number;
};
static struct AgDevice fake_devices[16];

static AgDeviceStatus
fake_open(int index, int64_t limit_bytes, AgDevice **device, char *why, int why_size)
{
	int number = atomic_fetch_add(&n_opened, 1);

	(void) why;
	(void) why_size;
	AG_CHECK(index == 0 && limit_bytes > 0 && number < 16);
	fake_devices[number].number = number;
	*device = &fake_devices[number];
	return AG_DEVICE_OK;
}

static void
fake_close(AgDevice *device)
{
	(void) device;
	n_closed++;
}

/* Each training asks it first: here the first one waits until another one asks, too. */
static int64_t
fake_memory(const AgDeviceShape *shape, const AgDeviceBoostSpec *spec)
{
	int64_t began = ag_clock_ns();
	int inside = atomic_fetch_add(&n_inside, 1) + 1;

	(void) spec;
	AG_CHECK_EQ(shape->n_rows, 300);
	if (inside > atomic_load(&most_inside))
		atomic_store(&most_inside, inside);
	while (atomic_load(&most_inside) < 2 && ag_clock_ns() - began < INT64_C(20000000000))
		sched_yield();
	atomic_fetch_sub(&n_inside, 1);
	return 1000;
}

static AgDeviceStatus
fake_matrix(AgDevice *device, const AgDeviceBins *bins, AgDeviceMatrix **matrix)
{
	(void) bins;
	(void) matrix;
	devices_seen |= UINT64_C(1) << device->number;
	return AG_DEVICE_UNSUPPORTED;
}

static void
fake_matrix_free(AgDevice *device, AgDeviceMatrix *matrix)
{
	(void) device;
	(void) matrix;
}

static AgDeviceStatus
fake_boost(AgDevice *device, const AgDeviceMatrix *matrix, const AgDeviceBoostSpec *spec,
		   AgDeviceBoost **boost)
{
	(void) device;
	(void) matrix;
	(void) spec;
	(void) boost;
	return AG_DEVICE_UNSUPPORTED;
}

/* Offered, and never come to. */
static AgDeviceStatus
fake_gradients(AgDevice *device, AgDeviceBoost *boost, int output, AgDeviceRange *range)
{
	(void) boost;
	(void) output;
	(void) range;
	return fake_boost(device, NULL, NULL, NULL);
}

static AgDeviceStatus
fake_grow(AgDevice *device, AgDeviceBoost *boost, const AgDeviceTreeOrder *order,
		  AgDeviceTree *tree)
{
	(void) boost;
	(void) order;
	(void) tree;
	return fake_boost(device, NULL, NULL, NULL);
}

static AgDeviceStatus
fake_add(AgDevice *device, AgDeviceBoost *boost, int output, const double *values)
{
	(void) boost;
	(void) output;
	(void) values;
	return fake_boost(device, NULL, NULL, NULL);
}

static AgDeviceStatus
fake_valid(AgDevice *device, AgDeviceBoost *boost, double *scores)
{
	(void) boost;
	(void) scores;
	return fake_boost(device, NULL, NULL, NULL);
}

static const char *
fake_why(AgDevice *device)
{
	(void) device;
	return "it is a fake";
}

static const AgDeviceOps fake_ops = {.abi = AG_DEVICE_ABI,
									 .kind = "cuda",
									 .open = fake_open,
									 .close = fake_close,
									 .why = fake_why,
									 .matrix_create = fake_matrix,
									 .matrix_free = fake_matrix_free,
									 .boost_memory = fake_memory,
									 .boost_create = fake_boost,
									 .boost_gradients = fake_gradients,
									 .boost_grow = fake_grow,
									 .boost_add = fake_add,
									 .boost_valid = fake_valid};

static void
grant_one(AgFitJob *job)
{
	job->gpu = (AgGpuState){.n_usable = 1, .families = UINT32_C(1) << AG_FAMILY_GBM};
	job->n_gpus = 1;
	job->gpus[0] = (AgGpuGrant){.shares = AG_GPU_SHARES, .memory_bytes = 1000000, .name = "Fake"};
	job->gpu_ops = &fake_ops;
}

/* Halves of a GPU: two folds at a time, each with a device (and so a stream) of its own. */
static void
folds_share_gpu(AgMem *mem)
{
	static const AgOptionEntry entries[] = {
		{"/hyperparameters", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM", AG_JSON_OBJECT, "1"},
		{"/hyperparameters/GBM/num_boost_round", AG_JSON_NUMBER, "2"},
		{"/num_bag_folds", AG_JSON_NUMBER, "4"},
		{"/num_bag_sets", AG_JSON_NUMBER, "1"},
		{"/ag_args_fit", AG_JSON_OBJECT, "1"},
		{"/ag_args_fit/num_gpus", AG_JSON_NUMBER, "0.5"},
	};
	Setting s = {.mem = mem,
				 .n_rows = 300,
				 .entries = entries,
				 .n_entries = (int) (sizeof entries / sizeof entries[0]),
				 .n_threads = 2,
				 .grant = grant_one};
	Result r = {0};
	AgError err;

	AG_REQUIRE(run(&s, &r, &err) == AG_OK);
	AG_CHECK(strstr(r.log, "Folding resources per job {'num_gpus': 0.5, 'num_cpus': 1}") != NULL);
	AG_CHECK_EQ(most_inside, 2);
	AG_CHECK_EQ(__builtin_popcountll(devices_seen), 2);
	AG_CHECK(n_opened >= 3 && n_closed == n_opened); /* the whole one is tried first */
	AG_CHECK_EQ(r.n_warning_lines, 1);
	AG_CHECK(strstr(r.log, "GBM_BAG_L1 was trained on the CPU: it is a fake") != NULL);
	result_free(&r);
	AG_CHECK_EQ(mem->used_bytes, 0);
}

int
main(void)
{
	AgMem mem;

	ag_mem_init(&mem, INT64_MAX);
	folds_even(&mem);
	folds_repeat(&mem);
	folds_adapt(&mem);
	folds_by_time(&mem);
	folds_at_a_time(&mem);
	million_rows(&mem);
	groups_together(&mem);
	out_of_fold(&mem);
	folds_share_gpu(&mem);
	repeats(&mem);
	few_rows(&mem);
	little_time(&mem);
	no_memory(&mem);
	return ag_unit_done("bag");
}
